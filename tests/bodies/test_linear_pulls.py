"""Tendons, chambers and pressures in finite elements by native code: against JAX, and what kernels alone do."""

import numpy as np
import pytest

import lissom as ls
from lissom.bodies.pulls import BodyPulls

pytest.importorskip("jax")
LAW = ls.HyperelasticCompressibleNeoHookean(young=2e5, poisson=0.3, damping_time=0.02)
LENGTH, SIDE = 0.1, 0.02
SHUT = ls.cylinder_surface(0.02, 0.08, 0.004, around=5, along=3)
OPEN = SHUT[0], SHUT[1][:-5]  # without the fan of one end: the chamber is shut by the middle of its rim


def finger(modes, pressed=True):
    """A finger of finite elements on a hinge, whole or in some modes, with every kind of actuator."""
    mesh = ls.DomainTetrahedra(*ls.box_mesh((LENGTH, SIDE, SIDE), (4, 1, 1)), degree=2)
    elements = ls.KinematicsFiniteElements(mesh, 1)
    motion = elements if modes is None else elements.reduced(LAW, 1e3, modes=modes)
    robot = ls.Robot("finger")
    robot.add_link("finger", ls.DeformableBody(motion, mesh, LAW, 1e3), ls.JointRevolute((0, 1, 0), damping=0.01))
    line = [(0.0, 0.005, 0.0), (0.05, 0.006, 0.002), (LENGTH, 0.005, 0.001)]
    robot.add_tendon("line", path=[ls.PathBody("finger", line)])
    robot.add_tendon("eyelets", path=[ls.PathBody("finger", [x for x in line if x[0] < LENGTH], gauss_points=None)])
    robot.add_body_chamber("shut", "finger", surface=SHUT)
    robot.add_body_chamber("open", "finger", surface=OPEN)
    if pressed:
        robot.add_surface_pressure("outside", "finger", lambda x: x[1] > SIDE / 2 - 1e-9)
    return robot


@pytest.mark.parametrize("modes", [None, 5], ids=["whole", "modes"])
def test_forces_and_derivatives_are_those_of_jax(modes):
    """B of each actuator, its derivatives through the stiffness, and the response to velocities equal those of JAX."""
    model = finger(modes, pressed=modes is not None).build()
    assert not model.calls_python
    rng = np.random.default_rng(2)
    n, body = model.nv - 1, model.pulls.bodies[0].pulls
    assert isinstance(body, BodyPulls)
    q, v = np.append(0.2, (5e-4 if modes else 1e-3) * rng.normal(size=n)), rng.normal(size=n + 1)
    _, B, _ = body.values(q[None, 1:])
    found = ls.actuation_matrix(model, q)[1:]
    np.testing.assert_allclose(found, B[0].T, rtol=0, atol=1e-12 * np.abs(B).max())
    B_q, _ = body.derivatives(q[None, 1:])
    u, zero = 1e3 * rng.uniform(1.0, 2.0, model.nu), np.zeros(model.nu)
    with_inputs, without = (ls.tangent_stiffness(model, q, x)[1:, 1:] for x in (u, zero))
    known = -np.einsum("k,kjl->jl", u, B_q[0])
    np.testing.assert_allclose(with_inputs - without, known, rtol=0, atol=1e-9 * np.abs(without).max())
    assert np.isfinite(ls.forward_dynamics(model, q, v, u)).all()


def test_a_pressed_finger_moves_in_kernels_as_by_small_adaptive_steps():
    """A chamber bends the finger; steps in kernels, a batch and a rollout agree with a motion of small tolerance."""
    model = finger(6).build()
    u = np.array([0.5, 0.0, 2e3, 0.0, 500.0])
    exact = ls.simulate(model, 0.1, u=u, rtol=1e-9, atol=1e-11, t_eval=[0.1])
    fixed = ls.simulate(model, 0.1, u=u, dt=1e-3, method="sdirk", t_eval=[0.1])
    rolled = ls.rollout(model, u=u, dt=1e-3, steps=100)
    size = np.abs(exact.q[-1]).max()
    assert size > 1e-2
    np.testing.assert_allclose(fixed.q[-1], exact.q[-1], rtol=0, atol=1e-3 * size)
    np.testing.assert_allclose(rolled.q[-1], exact.q[-1], rtol=0, atol=1e-3 * size)


def test_rates_of_lengths_and_volumes():
    """Input rates follow from the motion: differences of the works along it."""
    model = finger(5).build()
    rng, h = np.random.default_rng(4), 1e-6
    q, v = 5e-4 * rng.normal(size=model.nv), 0.1 * rng.normal(size=model.nv)
    work = [model.pulls.bodies[0].pulls.values((q + s * h * v)[None, 1:])[0][0] for s in (1.0, -1.0)]
    rate = ls.actuation_matrix(model, q).T @ v
    known = (work[0] - work[1]) / (2.0 * h)
    np.testing.assert_allclose(rate[:4], known[:4], rtol=0, atol=1e-8 * np.abs(known).max())


def test_a_pressed_surface_of_many_coordinates_is_evaluated_in_python():
    """A surface pressure on unreduced elements stays with JAX, with the reason."""
    model = finger(None).build()
    assert model.calls_python and "surface under pressure" in model.pulls.bodies[0].pulls.native[1]
