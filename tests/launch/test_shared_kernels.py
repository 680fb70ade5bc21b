"""Kernels with more terms and features than a robot needs, which the tests share, against those composed for it."""

import numpy as np
import pytest
from gradients.moving_robots import ROBOTS, start
from touching_robots import moved

import lissom as ls
from lissom.forces.terms import SHARED, acting_on


def boxes():
    """Two boxes that fall on a floor and on each other."""
    robot = ls.Robot("boxes")
    for name, height in (("lower", 0.06), ("upper", 0.15)):
        body = ls.RigidBody.box(0.1, 0.1, 0.05, density=1000)
        robot.add_link(name, body, ls.JointFree(), placement=moved(z=height))
    robot.add_contact("floor", ls.EVERYTHING, ls.ShapePlane())
    robot.add_mutual_contacts()
    return robot


def pressed():
    """A rod that meets a floor."""
    robot = ls.Robot("pressed")
    material = ls.Material(young=1e6, density=1e3, damping_time=0.01)
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=2, bending_z=1), material)
    robot.add_link("arm", rod, ls.JointRevolute((0, 1, 0)), placement=moved(z=0.02))
    robot.add_contact("floor", "arm", ls.ShapePlane())
    return robot


def mapped():
    """A table of poses as a joint, with a spring to the world."""
    robot, points = ls.Robot("mapped"), np.array([-2.0, -1.1, -0.3, 0.4, 1.0, 1.9, 2.5])
    way = ls.PoseSpline(points, points[:, None] * [0.0, 0.6, 0.8], 0.1 * points[:, None] ** 2 * [1.0, 0.0, 0.0])
    robot.add_link("cam", ls.RigidBody.box(0.1, 0.1, 0.05, density=1000), ls.JointCustom(way, stiffness=2.0))
    robot.add_spring("spring", "cam", ls.PathPoint(None, (0.3, 0.0, 0.2)), stiffness=30.0, rest=0.05)
    return robot


KINDS = {"soft": ROBOTS["soft"], "floating": ROBOTS["floating"], "boxes": boxes, "pressed": pressed, "mapped": mapped}
MOVES = ("floating", "boxes")  # whose kernels of steps are compared, too; they compile long


def results(model, moves):
    """Numbers of functions of all kinds at a state, and of some steps."""
    q, v = start(model)
    u = 0.1 * np.ones(model.nu)
    found = [ls.inverse_dynamics(model, q, v, v), ls.forward_dynamics(model, q, v, u), ls.energy(model, q, v).total]
    if moves:
        motion = ls.simulate(model, 0.1, q, v, u=u, dt=2e-3)
        found += [*ls.forward_dynamics_derivatives(model, q, v, u), motion.q, motion.v, motion.a]
    return [np.asarray(x) for x in found]


@pytest.mark.parametrize("name", KINDS)
def test_shared_kernels_have_the_results_of_own_ones(name, monkeypatch):
    """Terms and features that a robot does not need change nothing beyond rounding."""
    monkeypatch.setenv(SHARED, "1")
    model = KINDS[name]().build()
    acting, shared = acting_on(model), results(model, name in MOVES)
    monkeypatch.delenv(SHARED)
    model = KINDS[name]().build()
    assert (acting_on(model) is acting) == (name == "soft")  # a plain robot has its own kernels in either case
    for ours, theirs in zip(results(model, name in MOVES), shared):
        np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-10 * np.abs(ours).max(initial=1.0))
