"""What every load promises: its wrench, in its frame, at its time, at its point, and the power it gives."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lissom as ls

FORCE, MOMENT, OFFSET = np.array([1.5, -0.7, 0.4]), np.array([0.2, 0.3, -0.5]), np.array([0.05, -0.1, 0.02])
PLACES = {"base": ("rod", 0.0), "inside": ("rod", 0.37), "at a point": ("rod", 0.5), "tip": ("rod", 1.0),
          "body": ("tool", 1.0)}  # fmt: skip
every_place = pytest.mark.parametrize("place", PLACES)
every_frame = pytest.mark.parametrize("frame", ["world", "body"])


def robot_with(**load):
    """A floating rod with a body on a universal joint, and one load."""
    robot = ls.Robot("loaded", gravity=(0.0, 0.0, 0.0))
    rod = ls.Rod(0.4, ls.SectionCircle(0.02), ls.BasisLegendre(torsion=0, bending_y=1, bending_z=1, elongation=0),
                 ls.Material(young=1e6, density=1e3), gauss_points=5)  # fmt: skip
    robot.add_link("rod", rod, ls.JointFree())
    robot.add_link("tool", ls.RigidBody.box(0.1, 0.05, 0.02, density=500), ls.JointUniversal(), parent="rod")
    if load:
        robot.add_point_load("load", **load)
    return robot


def configuration(model, seed=0):
    """Bent, and turned a lot."""
    q = np.random.default_rng(seed).uniform(-1, 1, model.nq)
    q[:4] = np.roll(Rotation.from_rotvec([1.2, -0.8, 2.0]).as_quat(), 1)
    return q


def expected_force(model, q, link, s, frame, force, moment):
    """J'F of a wrench at OFFSET from the frame at s, by the public Jacobian and pose."""
    g, J = ls.frame_pose(model, q, link, s), ls.frame_jacobian(model, q, link, s)
    R = g[:3, :3] if frame == "world" else np.eye(3)
    f, m = R.T @ force, R.T @ moment
    return J.T @ np.concatenate([m + np.cross(OFFSET, f), f])


@every_place
@every_frame
def test_force_and_moment(place, frame):
    """The generalised force is J'F at the point of application, whichever frame the components are given in."""
    link, s = PLACES[place]
    model = robot_with(link=link, s=s, force=FORCE, moment=MOMENT, frame=frame, position=OFFSET).build()
    q = configuration(model)
    expected = expected_force(model, q, link, s, frame, FORCE, MOMENT)
    np.testing.assert_allclose(ls.external_force(model, q), expected, atol=1e-14)
    tau = ls.inverse_dynamics(model, q, np.zeros(model.nv), np.zeros(model.nv), elastic=False)
    np.testing.assert_allclose(tau, -expected, atol=1e-14)
    assert not ls.external_force(model, q, loads=False).any()


@every_place
@every_frame
def test_loads_of_time(place, frame):
    """Functions of t are taken at t, force and moment by themselves; a batch shares one time."""
    link, s = PLACES[place]
    model = robot_with(
        link=link, s=s, force=lambda t: FORCE * np.cos(t), moment=lambda t: MOMENT * t, frame=frame, position=OFFSET
    ).build()
    q = np.stack([configuration(model, seed) for seed in range(2)])
    for t in (0.0, 0.3, -2.0):
        total = ls.external_force(model, q, t=t)
        for k in range(2):
            expected = expected_force(model, q[k], link, s, frame, FORCE * np.cos(t), MOMENT * t)
            np.testing.assert_allclose(total[k], expected, atol=1e-14)


@every_frame
def test_resultant_on_a_floating_robot(frame):
    """Without weight, M a = J'F moves the centre of mass by F/m: the free joint's momentum balance."""
    model = robot_with(link="tool", force=FORCE, frame=frame).build()
    q = configuration(model)
    a = ls.forward_dynamics(model, q, np.zeros(model.nv))
    R = ls.frame_pose(model, q, "rod", 0.0)[:3, :3]
    total = ls.mass_matrix(model, q)[3:6] @ a  # rate of the linear momentum, in the axes of the free joint
    world = FORCE if frame == "world" else ls.frame_pose(model, q, "tool")[:3, :3] @ FORCE
    elastic = ls.stiffness_matrix(model)[3:6]
    assert not elastic.any()
    np.testing.assert_allclose(R @ total, world, atol=1e-12)


@every_frame
def test_power(frame):
    """F·v of the point of application is the generalised power."""
    model = robot_with(link="rod", s=0.37, force=FORCE, moment=MOMENT, frame=frame).build()
    q, v = configuration(model), np.random.default_rng(1).uniform(-1, 1, model.nv)
    twist = ls.frame_twist(model, q, v, "rod", 0.37)
    R = ls.frame_pose(model, q, "rod", 0.37)[:3, :3] if frame == "world" else np.eye(3)
    power = np.concatenate([R.T @ MOMENT, R.T @ FORCE]) @ twist
    assert ls.external_force(model, q) @ v == pytest.approx(power, rel=1e-13)


def test_a_world_load_has_a_potential():
    """A constant world force does the work F·Δx between any two configurations, a follower force does not."""
    work = {}
    for frame in ("world", "body"):
        model = robot_with(link="rod", force=FORCE, frame=frame).build()
        q0 = configuration(model)
        dq = np.random.default_rng(2).uniform(-1, 1, model.nv)
        x, w = np.polynomial.legendre.leggauss(20)
        along = [ls.integrate(model, q0, (s + 1) / 2 * dq) for s in x]
        # the velocity along integrate is the constant twist dq
        work[frame] = 0.5 * w @ np.array([ls.external_force(model, q) @ dq for q in along])
        q1 = ls.integrate(model, q0, dq)
        moved = ls.frame_pose(model, q1, "rod")[:3, 3] - ls.frame_pose(model, q0, "rod")[:3, 3]
        gained = FORCE @ moved
    assert work["world"] == pytest.approx(gained, rel=1e-12)
    assert abs(work["body"] - gained) > 1e-2


def test_loads_add():
    """Several loads, also at one place, act together; none changes the forces of the others."""
    forces = [{"link": "rod", "s": s, "force": (k + 1) * FORCE, "frame": f}
              for k, (s, f) in enumerate([(0.5, "world"), (0.5, "body"), (1.0, "world")])]  # fmt: skip
    robot = robot_with()
    for k, load in enumerate(forces):
        robot.add_point_load(f"load {k}", **load)
    model = robot.build()
    q = configuration(model)
    alone = sum(ls.external_force(robot_with(**load).build(), q) for load in forces)
    np.testing.assert_allclose(ls.external_force(model, q), alone, atol=1e-14)


def test_a_load_on_what_cannot_move():
    """A load on a fixed base changes nothing."""
    robot = ls.Robot("fixed")
    robot.add_link("base", ls.RigidBody.box(0.1, 0.1, 0.1, density=1.0))
    robot.add_link("arm", ls.RigidBody.box(0.1, 0.1, 0.1, density=1.0), ls.JointRevolute((0, 1, 0)), parent="base")
    free = ls.external_force(robot.build(), [0.3])
    robot.add_point_load("load", "base", force=FORCE)
    np.testing.assert_allclose(ls.external_force(robot.build(), [0.3]), free, atol=1e-16)


def test_a_load_that_turns_bad_names_itself():
    """A function of t that returns NaN or a wrong shape later on is an error that names the load, t and the value."""
    model = robot_with(link="tool", force=lambda t: FORCE if t < 1 else [np.nan, 0, 0]).build()
    q, zero = configuration(model), np.zeros(model.nv)
    ls.inverse_dynamics(model, q, zero, zero, t=0.5)
    for call in (lambda: ls.inverse_dynamics(model, q, zero, zero, t=1.5),
                 lambda: ls.forward_dynamics(model, q, zero, t=1.5),
                 lambda: ls.external_force(model, q, t=1.5)):  # fmt: skip
        with pytest.raises(ls.ModelError, match=r"load 'load': force: the function must return finite .* at 1.5"):
            call()
