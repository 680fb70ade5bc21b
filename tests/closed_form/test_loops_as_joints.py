"""A loop has the effect of the joint that it replaces: a body on a hinge and a top, as trees and as floating bodies.

Both are compared with their own equations (mechanisms.py), the loop also for the wrench that holds the body. Steps of
h leave about (|ω| h)² |ω| t/12 in the attitude: 1e-7 for the hinge, 7e-6 for the top; and some (|ω| h)², which is 6e-6
for the top, of the wrench.
"""

import numpy as np
import pytest
from closed_form.mechanisms import HeldBody, rotation

import lissom as ls

AXIS = np.array([2.0, 1.0, 2.0]) / 3.0
FLAG = HeldBody(1.4, (0.11, -0.07, 0.05), (0.02, 0.03, 0.025), (0.0, 0.0, -9.81))
TOP = HeldBody(0.9, (0.0, 0.0, 0.08), (4e-3, 4e-3, 2.5e-3), (0.0, 0.0, -9.81))


def shift(place):
    """Pose of a frame moved without a turn."""
    g = np.eye(4)
    g[:3, 3] = place
    return g


def frame_b():
    """A turned frame at the origin for the loop's joint."""
    g = np.eye(4)
    g[:3, :3] = rotation(np.array([0.4, -0.8, 0.3]))
    return g


def held(body, joint, *, loop):
    """The body at the end of a joint, or floating and held by a loop of that joint in the axes of frame_b."""
    robot = ls.Robot("held", gravity=body.gravity)
    if not loop:
        robot.add_link("body", ls.RigidBody(body.mass, body.com, body.inertia), joint(np.eye(3)))
        return robot.build()
    robot.add_link("body", ls.RigidBody(body.mass, inertia=body.inertia), ls.JointFree())
    B = frame_b()
    at = shift(-np.array(body.com))
    robot.add_loop("held", "body", placement_a=at @ B, placement_b=B, joint=joint(B[:3, :3]))
    return robot.build()


def hinge(R):
    """A hinge about AXIS in the axes R."""
    return ls.JointRevolute(tuple(R.T @ AXIS))


def ball(R):
    """A ball joint, the same in all axes."""
    return ls.JointSpherical()


def quaternion(R):
    """(w, x, y, z) of a rotation that turns by less than a half turn."""
    w = 0.5 * np.sqrt(1.0 + np.trace(R))
    return np.array([w, R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / np.array([1, *[4 * w] * 3])


def floating(body, R, omega):
    """q and v of the floating body, whose frame is at its centre of mass."""
    c = np.array(body.com)
    return np.concatenate([quaternion(R), R @ c]), np.concatenate([omega, np.cross(omega, c)])


def reaction(model, motion):
    """Wrench on the floating body at the origin, in world axes, (n, 6)."""
    local = ls.loop_wrenches(model, motion.q, motion.multipliers)[:, 0].reshape(-1, 2, 3)
    return (local @ frame_b()[:3, :3].T).reshape(-1, 6)


def test_hinge_as_tree_and_as_loop():
    """A body on a slanted hinge moves and pulls alike as a joint, as a loop of a floating body and by its equations."""
    times = np.linspace(0.0, 0.6, 7)
    (angle, speed, _), wrench = FLAG.on_hinge(AXIS, 0.7, 3.0, times)
    R0 = rotation(0.7 * AXIS)
    q0, v0 = floating(FLAG, R0, 3.0 * AXIS)
    tree, loop = (held(FLAG, hinge, loop=x) for x in (False, True))
    options = {"t_eval": times, "method": ls.generalized_alpha(0.9), "dt": 2e-4, "rtol": 1e-10, "atol": 1e-12}
    swing = ls.simulate(tree, 0.6, [0.7], [3.0], **options)
    flight = ls.simulate(loop, 0.6, q0, v0, **options)
    np.testing.assert_allclose(swing.q[:, 0], angle, rtol=0, atol=1e-6)
    exact = [rotation(x * AXIS) for x in angle]
    pose = ls.frame_pose(loop, flight.q, "body")
    np.testing.assert_allclose(pose[:, :3, :3], exact, rtol=0, atol=1e-6)
    np.testing.assert_allclose(pose[:, :3, 3], exact @ np.array(FLAG.com), rtol=0, atol=1e-6)
    np.testing.assert_allclose(flight.v[:, :3], np.outer(speed, AXIS), rtol=0, atol=1e-5)
    np.testing.assert_allclose(reaction(loop, flight), wrench, rtol=0, atol=2e-5 * np.abs(wrench).max())
    by_hand = [FLAG.wrench(rotation(x * AXIS), v * AXIS, a * AXIS)
               for x, v, a in zip(swing.q[:, 0], swing.v[:, 0], swing.a[:, 0])]  # fmt: skip
    np.testing.assert_allclose(reaction(loop, flight), by_hand, rtol=0, atol=2e-5 * np.abs(wrench).max())


def test_top_as_tree_and_as_loop():
    """A spinning top on a point: ball joint, ball loop of a floating body and Euler's equations agree."""
    times = np.linspace(0.0, 0.5, 6)
    R0, omega0 = rotation(np.array([0.5, 0.0, 0.0])), np.array([0.3, -0.5, 12.0])
    attitudes, spins, wrench = TOP.on_point(R0, omega0, times)
    q0, v0 = floating(TOP, R0, omega0)
    tree, loop = (held(TOP, ball, loop=x) for x in (False, True))
    options = {"t_eval": times, "method": ls.generalized_alpha(0.9), "dt": 2e-4, "rtol": 1e-10, "atol": 1e-12}
    turning = ls.simulate(tree, 0.5, q0[:4], v0[:3], **options)
    flight = ls.simulate(loop, 0.5, q0, v0, **options)
    for model, motion in ((tree, turning), (loop, flight)):
        R = ls.frame_pose(model, motion.q, "body")[:, :3, :3]
        np.testing.assert_allclose(R, attitudes, rtol=0, atol=1e-5)
        np.testing.assert_allclose(motion.v[:, :3], spins, rtol=0, atol=3e-5)
    np.testing.assert_allclose(reaction(loop, flight)[:, 3:], wrench[:, 3:], rtol=0, atol=2e-5 * np.abs(wrench).max())


ACTIVE = {"stiffness": 2.0, "damping": 0.05, "rest": 0.3, "limits": (-3.0, 0.5), "limit_stiffness": 50.0,
          "limit_damping": 0.1, "armature": 0.01}  # fmt: skip


def bar(length, behind=0.0):
    """A bar from `behind` in front of its frame to its end."""
    mass = 2.0 * length
    inertia = mass * length**2 / 12
    return ls.RigidBody(mass, com=(length / 2 - behind, 0, 0), inertia=(1e-4, inertia, inertia))


def four_bar(*, cut_active, motion=None):
    """A four-bar linkage with a spring, a damper, stops, a rotor and a motor at the joint between crank and coupler,
    cut at the passive pin of the rocker, or behind the active joint."""
    robot = ls.Robot("four-bar", gravity=(0, -9.81, 0))
    robot.add_link("crank", bar(0.2), ls.JointRevolute())
    active, end = ls.JointRevolute(**ACTIVE), shift((0.2, 0, 0))
    robot.add_link("rocker", bar(0.4), ls.JointRevolute(), placement=shift((0.5, 0, 0)))
    if cut_active:
        robot.add_link("coupler", bar(0.5, 0.5), ls.JointRevolute(), "rocker", placement=shift((0.4, 0, 0)))
        robot.add_link("active", None, active, "crank", placement=end)
        robot.add_loop("closed", "coupler", "active", placement_a=shift((-0.5, 0, 0)))
    else:
        robot.add_link("active", bar(0.5), active, "crank", placement=end)
        robot.add_loop("pin", "active", "rocker", placement_a=shift((0.5, 0, 0)), placement_b=shift((0.4, 0, 0)),
                       joint=ls.JointRevolute())  # fmt: skip
    robot.add_joint_actuator("motor", "active")
    if motion is not None:
        robot.add_joint_motion("driven", "active", position=motion)
    return robot.build()


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_a_cut_behind_an_active_joint():
    """Motions under a motor that push the joint against its stop, equilibria, frequencies, and the force of a
    prescribed motion are those of the chain cut at a passive joint."""
    whole, cut = (four_bar(cut_active=x) for x in (False, True))
    q = ls.assemble(whole, [0.6, 1.5, 0.2], fixed=["crank"])  # crank, rocker, active joint
    p = np.array([*q[:2], q[0] + q[2] - q[1], q[2]])
    own = np.array([0, 1, 3])
    assert np.abs(ls.loop_residual(cut, p)).max() < 1e-12
    # The stop is a kink of the force: a step across it may be estimated a hundred times better than it is
    tight = {"method": "dop853", "rtol": 1e-12, "atol": 1e-14}
    for u in (np.array([0.0]), np.array([0.3])):
        one, other = (ls.simulate(m, 0.5, x, u=u, **tight) for m, x in ((whole, q), (cut, p)))
        np.testing.assert_allclose(other.q[-1, own], one.q[-1], rtol=0, atol=1e-8)
        assert one.q[:, 2].max() > 0.5
    one, other = (ls.solve_statics(m, [0.3], q0=x) for m, x in ((whole, q), (cut, p)))
    np.testing.assert_allclose(other.q[own], one.q, rtol=0, atol=1e-10)
    frequencies = [ls.modes(m, x.q, [0.3]).frequencies for m, x in ((whole, one), (cut, other))]
    np.testing.assert_allclose(*frequencies, rtol=1e-9)
    motion = ls.Expression(f"0.1*sin(3*t) + {float(q[2])!r}", "t")
    driven = [four_bar(cut_active=x, motion=motion) for x in (False, True)]
    one, other = (ls.simulate(m, 0.5, x, **tight) for m, x in zip(driven, (q, p)))
    np.testing.assert_allclose(other.q[-1, own], one.q[-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(other.multipliers[-1, 0], one.multipliers[-1, 0], rtol=1e-8)
