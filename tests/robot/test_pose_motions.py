"""Prescribed orientations of spherical joints and poses of free joints, against functions of time and Euler's laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lissom as ls

TIMES = np.linspace(0.0, 2.0, 161)
INERTIA, MASS, GRAVITY = np.array([0.02, 0.03, 0.04]), 2.0, np.array([0.0, 0.0, -9.81])


def rotation(t):
    """A turn about z, then about x, both of which change with time."""
    return Rotation.from_euler("ZX", np.stack([0.8 * np.sin(2.0 * np.asarray(t)), 0.5 * np.asarray(t) ** 2], axis=-1))


def place(t):
    t = np.asarray(t)
    return np.stack([0.1 * np.sin(3.0 * t), 0.05 * t**2, 0.2 * np.cos(t)], axis=-1)


def quaternions(rotations):
    """As (w, x, y, z), with signs as random as a file may have them."""
    found = rotations.as_quat()[:, [3, 0, 1, 2]]
    return found * np.random.default_rng(0).choice([-1.0, 1.0], (len(found), 1))


def turn(t):
    """Angular velocity and acceleration in the axes of the body: those of the second hinge, and of the first one seen
    from behind the second."""
    a, b = 1.6 * np.cos(2.0 * t), 0.5 * t**2
    first = np.array([0.0, np.sin(b), np.cos(b)])
    swing = np.array([0.0, np.cos(b), -np.sin(b)])
    return a * first + [t, 0, 0], -3.2 * np.sin(2.0 * t) * first + a * t * swing + [1.0, 0, 0]


def driven_body(joint=None):
    robot = ls.Robot("driven", gravity=GRAVITY)
    robot.add_link("body", ls.RigidBody(MASS, inertia=INERTIA), ls.JointFree() if joint is None else joint)
    free = joint is None
    q = np.hstack([quaternions(rotation(TIMES)), place(TIMES)]) if free else quaternions(rotation(TIMES))
    robot.add_pose_motion("drive", "body", t=TIMES, q=q)
    return robot


def test_the_wrench_is_that_of_euler_and_newton():
    """Purpose: pose, twist and the wrench that drives a free body follow from functions of time by Euler's and Newton's
    laws; the multiplier is the power of this wrench."""
    model = driven_body().build()
    motion = ls.simulate(model, 2.0, method="dop853", rtol=1e-10, dt=0.1)
    W = -ls.joint_wrench(model, motion.q, motion.v, motion.a, None, "body", t=motion.t)
    assert motion.q.shape[1] == 1
    for t, q, wrench, power in zip(motion.t, motion.q, W, motion.multipliers[:, 0]):
        R, (w, alpha) = rotation(t).as_matrix(), turn(t)
        g = ls.frame_pose(model, q, "body")
        np.testing.assert_allclose(g[:3, :3], R, atol=2e-8)
        np.testing.assert_allclose(g[:3, 3], place(t), atol=1e-9)
        acceleration = np.array([-0.9 * np.sin(3 * t), 0.1, -0.2 * np.cos(t)])
        speed = np.array([0.3 * np.cos(3 * t), 0.1 * t, -0.2 * np.sin(t)])
        moment, force = INERTIA * alpha + np.cross(w, INERTIA * w), MASS * R.T @ (acceleration - GRAVITY)
        np.testing.assert_allclose(wrench, [*moment, *force], atol=2e-4)
        assert power == pytest.approx(moment @ w + force @ R.T @ speed, abs=2e-4)


def pendulum(parent, robot):
    down = np.eye(4)
    down[2, 3] = -0.1
    robot.add_link(
        "pendulum",
        ls.RigidBody(0.3, com=(0, 0, -0.2), inertia=(2e-3, 2e-3, 1e-3)),
        ls.JointSpherical(),
        parent,
        placement=down,
    )


@pytest.mark.parametrize("method", ["bdf", "generalized_alpha"])
def test_as_a_mechanism_of_hinges(method):
    """Purpose: a pendulum on a driven spherical joint swings as on two hinges that are driven by exact functions, by an
    adaptive method and in fixed steps."""
    ball, hinges = driven_body(ls.JointSpherical()), ls.Robot("hinges", gravity=GRAVITY)
    pendulum("body", ball)
    hinges.add_link("fork", ls.RigidBody(0.0), ls.JointRevolute((0, 0, 1)))
    hinges.add_link("body", ls.RigidBody(MASS, inertia=INERTIA), ls.JointRevolute((1, 0, 0)), "fork")
    hinges.add_joint_motion("z", "fork", position=ls.Expression("0.8*sin(2*t)", "t"))
    hinges.add_joint_motion("x", "body", position=ls.Expression("0.5*t**2", "t"))
    pendulum("body", hinges)
    options = {"rtol": 1e-8, "atol": 1e-10, "t_eval": np.linspace(0, 1, 11)} if method == "bdf" else {"dt": 0.01}
    found, exact = (ls.simulate(robot.build(), 1.0, method=method, **options) for robot in (ball, hinges))
    tips = [ls.frame_pose(run.model, run.q, "pendulum") for run in (found, exact)]
    np.testing.assert_allclose(tips[0], tips[1], atol=2e-6)
    np.testing.assert_allclose(found.q[:, 0], found.t, atol=1e-14)


def test_many_turns_about_one_axis():
    """Purpose: a link that spins at a constant speed for ten turns needs no force about its axis but the centripetal
    one, which ten turns do not change."""
    robot, speed = ls.Robot("spin", gravity=(0, 0, 0)), 20.0
    robot.add_link("body", ls.RigidBody(MASS, com=(0.1, 0, 0), inertia=INERTIA), ls.JointSpherical())
    t = np.linspace(0.0, np.pi, 201)
    robot.add_pose_motion("spin", "body", t=t, q=quaternions(Rotation.from_rotvec(np.outer(speed * t, [0, 0, 1]))))
    model = robot.build()
    for now in (0.0, 1.0, np.pi):
        W = -ls.joint_wrench(model, [now], [1.0], [0.0], None, "body", t=now)
        np.testing.assert_allclose(W, [0, 0, 0, -MASS * 0.1 * speed**2, 0, 0], atol=1e-8)


def test_samples_get_denser():
    """Purpose: between samples the error of the pose falls with the sixth power of their distance."""
    errors = []
    for n in (21, 41, 81):
        robot, t = ls.Robot("driven"), np.linspace(0.0, 2.0, n)
        robot.add_link("body", ls.RigidBody(1.0), ls.JointFree())
        robot.add_pose_motion("drive", "body", t=t, q=np.hstack([quaternions(rotation(t)), place(t)]))
        model, at = robot.build(), np.linspace(0.5, 1.5, 37)
        g = ls.frame_pose(model, at[:, None], "body")
        errors.append(np.abs(g[:, :3, :3] - rotation(at).as_matrix()).max())
    assert errors[0] / errors[1] > 2**5.3 and errors[1] / errors[2] > 2**5.3


def test_a_file_keeps_it(tmp_path):
    """Purpose: the driven robot is described by its joint and its motion, which files hold; drives of the joint are
    gone."""
    robot = ls.Robot("driven")
    robot.add_link("body", ls.RigidBody(1.0), ls.JointSpherical(stiffness=2.0))
    robot.add_joint_actuator("motor", "body")
    q = quaternions(rotation(TIMES))
    robot.add_pose_motion("drive", "body", t=TIMES, q=q)
    assert not robot.actuators and list(robot.motions) == ["drive"]
    ls.save_robot(robot, tmp_path / "driven.yaml")
    again = ls.load_robot(tmp_path / "driven.yaml").build()
    for model in (robot.build(), again):
        np.testing.assert_allclose(ls.frame_pose(model, [1.3], "body")[:3, :3], rotation(1.3).as_matrix(), atol=1e-8)


def test_longer_than_the_samples():
    """Purpose: a simulation beyond the last sample is refused with its time."""
    with pytest.raises(ls.ModelError, match=r"motion 'drive': its table must reach to 3 s.* last time of 2 s"):
        ls.simulate(driven_body().build(), 3.0)


def test_wrong_samples():
    """Purpose: a wrong argument is named with the rule and the value, and leaves the robot as it was."""
    good = {"t": TIMES, "q": quaternions(rotation(TIMES))}
    t = np.linspace(0, 1, 400)
    tumbling = Rotation.from_rotvec(np.outer(9.0 * t, [1, 0, 0])) * Rotation.from_rotvec(np.outer(3.0 * t, [0, 1, 0]))
    for change, text in (
        ({"q": good["q"][:, :3]}, r"motion 'drive': q: must hold the 4 coordinates of a JointSpherical for each"),
        ({"q": 1.1 * good["q"]}, "unit length to 1e-6"),
        ({"t": TIMES + 1.0}, "must begin at t <= 0"),
        ({"t": TIMES[::-1]}, "strictly increasing"),
        ({"t": TIMES[:5], "q": good["q"][:5]}, "needs at least 6"),
        ({"t": 8 * TIMES[::8], "q": quaternions(Rotation.from_rotvec(np.outer(8 * TIMES[::8], [3.0, 0, 0])))},
         r"must turn by at most 1.5 rad between two times"),
        ({"t": t, "q": quaternions(tumbling)}, "must not turn by nearly 2π"),
    ):  # fmt: skip
        robot = ls.Robot("driven")
        robot.add_link("body", ls.RigidBody(1.0), ls.JointSpherical())
        with pytest.raises(ls.ModelError, match=text):
            robot.add_pose_motion("drive", "body", **(good | change))
        assert isinstance(robot.links["body"].joint, ls.JointSpherical) and not robot.motions
    robot = ls.Robot("hinge")
    robot.add_link("body", ls.RigidBody(1.0), ls.JointRevolute((0, 0, 1)))
    with pytest.raises(ls.ModelError, match="its joint must be spherical or free; add_joint_motion drives others"):
        robot.add_pose_motion("drive", "body", **good)
    with pytest.raises(ls.ModelError, match="must not be spherical or free; take add_pose_motion"):
        robot = ls.Robot("ball")
        robot.add_link("body", ls.RigidBody(1.0), ls.JointSpherical())
        robot.add_joint_motion("drive", "body", position=0.0)
        robot.build()
