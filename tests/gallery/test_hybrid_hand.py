"""The hand of rigid links, rods, finite elements and a body that keeps volume, with a loop, on a ball that it holds."""

import numpy as np
import pytest
from gallery.examples import example

import lissom as ls

pytest.importorskip("jax")
COARSE = (4, 1, 1)


@pytest.fixture(scope="module")
def study():
    """The example as a module."""
    return example("hybrid_hand")


@pytest.fixture(scope="module")
def hand(study):
    """On a coarse mesh."""
    return study.robot(divisions=COARSE).build()


def test_forward_and_inverse_dynamics(study, hand):
    """Purpose: bent, in motion, driven by all inputs: M symmetric and positive, and ID(FD) = B u + Aᵀ λ to rounding."""
    q = ls.assemble(hand, ls.integrate(hand, hand.neutral(), 0.02 * np.cos(np.arange(hand.nv))))
    M = ls.mass_matrix(hand, q)
    assert np.abs(M - M.T).max() < 1e-12 * np.abs(M).max() and np.linalg.eigvalsh(M).min() > 0.0
    assert hand.n_multipliers == 3 and set(study.INPUTS) == set(hand.inputs.names)
    assert study.mismatch(hand, q, np.sin(np.arange(hand.nv)), study.DRIVEN) < 1e-9


@pytest.fixture(scope="module")
def rest(study, hand):
    """The fingers closed on the ball."""
    return study.held(hand)


@pytest.mark.slow  # kernels of statics with loops, contacts that stick and deformable bodies take minutes to compile
def test_statics_of_the_closed_hand(study, hand, rest):
    """Purpose: a stable equilibrium of the closed loop, in which both fingers touch and their forces on the ball, which
    the stalk carries, leave little of either."""
    assert rest.is_stable and rest.residual < 1e-8
    assert np.abs(ls.loop_residual(hand, rest.q)).max() < 1e-10
    touching = ls.contact_forces(hand.anchored(rest.anchors), rest.q)
    assert {"finger", "gripper"} <= set(touching.link)
    sides = np.array([touching.force[np.array(touching.link) == name].sum(axis=0) for name in ("finger", "gripper")])
    assert np.abs(sides[:, 0]).min() > 0.1 and sides[0, 0] * sides[1, 0] < 0.0


@pytest.mark.slow  # as above, for derivatives
def test_derivatives_in_contact(study, hand, rest):
    """Purpose: those of forward dynamics in the closed hand, against central differences."""
    closed = hand.anchored(rest.anchors)
    errors = study.derivative_errors(closed, rest.q, 0.05 * np.cos(np.arange(hand.nv)), study.DRIVEN)
    assert max(errors) < 1e-6


@pytest.mark.slow  # as above, for a motion
def test_energy_is_kept(study, rest):
    """Purpose: without damping and friction, the work of the inputs equals the energy of bodies and contacts."""
    passive, u = study.robot(divisions=COARSE, passive=True).build(), 1.2 * study.GRIP
    motion = ls.simulate(passive, 0.02, rest.q, u=u, method="dop853", rtol=1e-8, atol=1e-10)
    moved = ls.energy(passive, motion.q, motion.v).kinetic.max()
    assert moved > 1e-6
    assert np.ptp(study.balance(passive, motion, u)) < 1e-6 * moved


@pytest.mark.graphics
@pytest.mark.slow  # a film, on a fine mesh
def test_the_hand_takes_the_ball(study, tmp_path):
    """Purpose: stable, closed, without a fold; the ball goes along, less far than the turret alone would turn the hand,
    and is back once it is let go; pictures and film."""
    numbers = study.main(tmp_path)
    assert numbers["stable"] and numbers["residual of statics [N, N·m]"] < 1e-8
    assert numbers["loop open by [m]"] < 1e-9
    assert numbers["mismatch of forward and inverse dynamics"] < 1e-9
    assert numbers["error of derivatives"] < 1e-6
    free = 1e3 * (study.UPPER + study.FORE) * study.TURN[0] / 15.0
    assert 0.3 * free < numbers["ball taken along [mm]"] < free
    assert numbers["ball at the end from its start [mm]"] < 1.0
    assert numbers["least det ∂f/∂x of the gripper"] == pytest.approx(1.0, abs=1e-9)
    assert numbers["least det ∂f/∂x of the finger"] > 0.3
    for name in ("shapes.png", "motion.png", "film.mp4"):
        assert (tmp_path / name).stat().st_size > 10_000
