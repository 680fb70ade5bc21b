"""Points in space turned into references of tendon lengths by statics."""

import numpy as np
import pytest
from control.controlled_robots import routed
from dynamics.small_robots import looped

import lissom as ls

TIMES = np.linspace(0.0, 1.0, 9)


def circle(t):
    """Where the end of the arm should be, shape (1, 3)."""
    return np.array([[0.385, 0.04 * np.sin(2 * t), 0.03 * np.cos(2 * t)]])


@pytest.mark.filterwarnings("ignore:tendon:lissom.AccuracyWarning")
def test_equilibria_hold_the_points():
    """At each sample the state is an equilibrium of its inputs, with the end of the arm where it should be, and the
    path goes through its y with a continuous second derivative."""
    model = routed()
    found = ls.static_reference(model, TIMES, circle, ["rod 1"])
    ends = ls.frame_pose(model, found.q, "rod 1")[:, :3, 3]
    np.testing.assert_allclose(ends, np.concatenate([circle(t) for t in TIMES]), atol=1e-9)
    for q, u in zip(found.q, found.u):
        again = ls.solve_statics(model, u=u, q0=q, stable=False)
        np.testing.assert_allclose(again.q, q, atol=1e-7)
    np.testing.assert_allclose(found.path(TIMES), ls.actuation_coordinates(model, found.q), atol=1e-14)
    before, after = (found.path.slope(TIMES[3] + h, 2) for h in (-1e-9, 1e-9))
    np.testing.assert_allclose(before, after, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:tendon:lissom.AccuracyWarning")
def test_slow_motion_passes_through_the_points():
    """Feedback linearisation along the path carries the end along the circle, the better the slower."""
    model, off = routed(), []
    for slower in (1.0, 4.0):
        found = ls.static_reference(model, slower * TIMES, lambda t, f=slower: circle(t / f), ["rod 1"])
        law = ls.partial_feedback_linearization(model, found.path, proportional=400.0, derivative=40.0)
        run = ls.simulate(model, slower, found.q[0], controller=law, method="bdf", rtol=1e-6, atol=1e-8)
        ends = ls.frame_pose(model, run.q, "rod 1")[:, :3, 3]
        off.append(np.abs(ends - np.concatenate([circle(t / slower) for t in run.t]))[run.t > 0.5 * slower].max())
    assert off[0] < 5e-3 and off[1] < 0.5 * off[0]


def test_what_cannot_be_reached():
    """An end that should go through the base's wall, a table of wrong shape and a robot with loops raise errors."""
    model = routed()
    with pytest.raises(ls.ConvergenceError, match=r"points at t=0 s: no equilibrium reaches them \(got a distance"):
        ls.static_reference(model, TIMES, lambda t: [[0.2, 0, 0], [0.2, 0.1, 0]], ["rod 0", "rod 0"])
    with pytest.raises(ls.ModelError, match=r"points: must be finite, of shape \(9, 1, 3\)"):
        ls.static_reference(model, TIMES, np.zeros((9, 3)), ["rod 1"])
    with pytest.raises(ls.ModelError, match="t: must be at least four times"):
        ls.static_reference(model, TIMES[:3], circle, ["rod 1"])
    with pytest.raises(ls.ModelError, match="without loops"):
        ls.static_reference(looped(), TIMES, circle, ["arm"])


@pytest.mark.parametrize("upright", [False, True])
def test_passive_coordinates_that_fall(upright):
    """A passive pendulum on a driven slide gives a warning where it stands up, and none where it hangs."""
    robot = ls.Robot("cart", gravity=(0, 0, -9.81))
    robot.add_link("cart", ls.RigidBody(1.0), ls.JointPrismatic((1, 0, 0)))
    robot.add_link("bob", ls.RigidBody(0.5, (0, 0, -0.3), (0.01, 0.01, 0.01)), ls.JointRevolute((0, 1, 0)), "cart")
    robot.add_joint_actuator("motor", "cart")
    model, arguments = robot.build(), (TIMES, lambda t: [[0.1 * t, 0, 0]], ["cart"])
    if upright:
        with pytest.warns(ls.StabilityWarning, match="passive coordinates at fixed y"):
            found = ls.static_reference(model, *arguments, q0=[0.0, np.pi])
    else:
        found = ls.static_reference(model, *arguments)
    np.testing.assert_allclose(found.q, [[0.1 * t, np.pi * upright] for t in TIMES], atol=1e-9)
