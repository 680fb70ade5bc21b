"""Straight pieces of tendons whose ends meet."""

import numpy as np

import lissom as ls


def arm(doubled):
    """Two bars on hinges and a tendon over both, guided at the pivot by one point or by one of each bar."""
    robot = ls.Robot("arm")
    bar = ls.RigidBody(0.3, com=(0.1, 0.0, 0.0), inertia=(1e-4, 1e-3, 1e-3))
    tip = np.eye(4)
    tip[0, 3] = 0.2
    robot.add_link("a", bar, ls.JointRevolute((0, 1, 0)))
    robot.add_link("b", bar, ls.JointRevolute((0, 0, 1)), "a", placement=tip)
    pivot = [ls.PathPoint("a", (0.2, 0.0, 0.0)), ls.PathPoint("b", (0.0, 0.0, 0.0))][: 2 if doubled else 1]
    path = [ls.PathPoint(None, (0.0, 0.05, 0.1)), *pivot, ls.PathPoint("b", (0.15, 0.02, 0.01))]
    robot.add_tendon("t", path=path)
    return robot.build()


def test_a_piece_of_no_length_does_nothing():
    """Forces, their derivatives, lengths and statics are those of the tendon without it, and finite."""
    once, twice = arm(False), arm(True)
    q, v, u = np.array([0.3, -0.4]), np.array([1.0, 2.0]), np.array([5.0])
    for one, two in zip(*(ls.forward_dynamics_derivatives(model, q, v, u) for model in (once, twice))):
        np.testing.assert_allclose(two, one, rtol=0, atol=1e-11 * np.abs(one).max())
    np.testing.assert_allclose(ls.forward_dynamics(twice, q, v, u), ls.forward_dynamics(once, q, v, u), rtol=1e-11)
    np.testing.assert_allclose(ls.path_lengths(twice, q), ls.path_lengths(once, q), rtol=1e-14)
    np.testing.assert_allclose(ls.tangent_stiffness(twice, q, u), ls.tangent_stiffness(once, q, u), rtol=1e-11)
