"""Control of soft robots, Pustina 2025, simulations 9 and 10: a UR10 with a soft tip, and shapes of a hanging arm."""

import numpy as np
import pytest
from gallery.examples import example

import lissom as ls

pytest.importorskip("jax")


@pytest.mark.slow  # JAX compiles the body for ten seconds
def test_bodies_are_rods():
    """Purpose: mass matrix, gravity, elasticity and inertial forces of the tip are those of a native rod."""
    body, rod = (example("soft_tipped_arm").build(native=native) for native in (False, True))
    rng = np.random.default_rng(7)
    q, v = rng.uniform(-0.5, 0.5, (2, body.nv))
    still, fast = ({"v": x, "a": x, "elastic": x is not v} for x in (0.0 * v, v))
    pairs = [[ls.inverse_dynamics(model, q, **state) for model in (body, rod)] for state in (still, fast)]
    pairs.append([ls.mass_matrix(model, q) for model in (body, rod)])
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * np.abs(other).max())


def test_what_each_law_leaves_of_the_errors():
    """Purpose: ë + K_D ė + K_P e vanishes under the complete law alone, from any state, by forward dynamics."""
    study, rng = example("soft_tipped_arm"), np.random.default_rng(3)
    model, alone = study.build(native=True), study.build(soft=False)
    q, v, t = *rng.uniform(-0.5, 0.5, (2, model.nv)), 0.7
    left = []
    for name in study.LAWS:
        a = ls.forward_dynamics(model, q, v, study.controller(name, model, alone).output(t, q, v, ()))[:6]
        e, rate = np.cos(t) - q[:6], -np.sin(t) - v[:6]
        left.append(np.abs(-np.cos(t) - a + study.DERIVATIVE * rate + study.PROPORTIONAL * e).max())
    size = study.PROPORTIONAL + study.DERIVATIVE
    assert left[0] < 1e-8 * size
    assert min(left[1:]) > 1e-2 * size


def check_following(numbers):
    """Errors of the joints decay at the rate of the gains with the complete law; with the others they stay, and are
    worst in the wrist; all motions stay bounded."""
    assert numbers["rate of decay [1/s]"] == pytest.approx(numbers["slow root of the law [1/s]"], rel=1e-5)
    laws = example("soft_tipped_arm").LAWS
    arm = [numbers[f"{law}: largest error of an arm joint in the last second [rad]"] for law in laws]
    wrist = [numbers[f"{law}: of a wrist joint [rad]"] for law in laws]
    assert max(arm[0], wrist[0]) < 1e-3
    assert wrist[1] > 10 * arm[1] and wrist[2] > 10 * arm[2]
    assert wrist[1] > 10 * wrist[0] and wrist[2] > 0.5
    assert max(numbers[f"{law}: largest bend [rad]"] for law in laws) < 2.0


def test_following_with_a_rod():
    """Purpose: statements of the paper on both laws, for the robot whose tip is a native rod, for 4.5 s."""
    check_following(example("soft_tipped_arm").main(duration=4.5, native=True))


@pytest.mark.slow  # three motions whose every evaluation goes through JAX
def test_following_with_a_deformable_body(tmp_path):
    """Purpose: the same with a deformable body for the whole time, and the pictures."""
    numbers = example("soft_tipped_arm").main(tmp_path)
    check_following(numbers)
    assert numbers["complete: of a wrist joint [rad]"] < 1e-4
    for picture in ("shapes.png", "motion.png"):
        assert (tmp_path / picture).stat().st_size > 10_000


def test_references_are_equilibria_of_the_law():
    """Purpose: at each reference, at rest, its law leaves no acceleration; a tenth of a step away it drives back."""
    study = example("shape_regulation")
    model = study.build(native=True)
    still = np.zeros(9)
    for goal, law in zip(study.REFERENCES / study.LENGTH, study.laws(model)):
        free = ls.forward_dynamics(model, goal, still, np.zeros(9))
        held = ls.forward_dynamics(model, goal, still, law.output(0.0, goal, still, ()))
        assert np.abs(held).max() < 1e-9 * np.abs(free).max()
        off = law.output(0.0, 0.9 * goal, still, ()) - law.output(0.0, goal, still, ())
        np.testing.assert_allclose(off, study.PROPORTIONAL * 0.1 * study.shapes(goal), atol=1e-12)


def check_regulation(numbers):
    """All three references are reached quickly, after swings beyond them."""
    for k, beyond in zip((1, 2, 3), (0.1, 0.05, 0.005)):
        assert numbers[f"reference {k}: error at its end"] < 1e-9
        assert numbers[f"reference {k}: settled after [s]"] < 0.5
        assert numbers[f"reference {k}: overshoot"] > beyond
    assert numbers["damping ratio"] < 0.6 and numbers["damping ratio with GPa"] > 10.0


def test_regulation_of_rods():
    """Purpose: convergence to all references with oscillation, of the arm made of native rods."""
    check_regulation(example("shape_regulation").main(native=True))


@pytest.mark.slow  # fifteen seconds of motion whose every evaluation goes through JAX
def test_regulation_of_deformable_bodies(tmp_path):
    """Purpose: the same of deformable bodies, and the picture."""
    check_regulation(example("shape_regulation").main(tmp_path))
    assert (tmp_path / "shape_regulation.png").stat().st_size > 10_000
