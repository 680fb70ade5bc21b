"""Joints of no native kind: columns and derivatives against differences, identities, a rolling knee against its own
Lagrangian, refused arguments, and the contents of files and pickles.

Fourth-order differences with steps of 1e-3 leave 1e-9 of the largest entry or less.
"""

import pickle

import numpy as np
import pytest
from dynamics.custom_joints import (
    AXIS,
    CURVED,
    PITCH,
    body,
    close,
    jnp,
    posed,
    robot_with,
    screw,
    state,
    turned,
    wound,
)  # fmt: skip

import lissom as ls

curved = pytest.mark.parametrize("kind", CURVED)


def slope(function, model, x, h=1e-3):
    """Derivative of function(x) along dx, fourth-order central differences: columns last."""
    columns = []
    for row in np.eye(model.nv):
        near, far = ((function(x(k * h * row)) - function(x(-k * h * row))) / (2 * k * h) for k in (1, 2))
        columns.append((4 * near - far) / 3)
    return np.stack(columns, axis=-1)


@curved
def test_columns_are_those_of_the_pose(kind):
    """J v is the rate of the pose, η̇ that of the twist, and J̇ v + J a agrees."""
    model = robot_with(CURVED[kind]).build()
    q, v, a, _ = state(model, 1)
    g = ls.frame_pose(model, q, "far")

    def log(t):
        return ls.lie.se3_log(np.linalg.inv(g) @ ls.frame_pose(model, ls.integrate(model, q, t * v), "far"))

    h = 1e-3
    rate = (8 * (log(h) - log(-h)) - (log(2 * h) - log(-2 * h))) / (12 * h)
    twist, J = ls.frame_twist(model, q, v, "far"), ls.frame_jacobian(model, q, "far")
    close(rate, twist, 1e-8)
    close(J @ v, twist)
    acc = ls.frame_acceleration(model, q, v, a, "far")
    close(J @ a + ls.frame_jacobian_derivative(model, q, v, "far") @ v, acc)
    later = [ls.frame_twist(model, ls.integrate(model, q, t * v), v + t * a, "far") for t in (h, -h, 2 * h, -2 * h)]
    close((8 * (later[0] - later[1]) - (later[2] - later[3])) / (12 * h), acc, 1e-8)


@curved
def test_derivatives_against_differences(kind):
    """∂ID/∂(q, v, a), the tangent, and the derivatives of twists and accelerations."""
    model = robot_with(CURVED[kind]).build()
    q, v, a, _ = state(model, 4)
    dq, dv, da = ls.inverse_dynamics_derivatives(model, q, v, a)

    def tau(x):
        return ls.inverse_dynamics(model, x, v, a)

    close(slope(tau, model, lambda d: ls.integrate(model, q, d)), dq, 1e-8)
    close(slope(lambda x: ls.inverse_dynamics(model, q, x, a), model, lambda d: v + d), dv, 1e-8)
    close(ls.mass_matrix(model, q), da)
    x, y, z = np.random.default_rng(0).normal(size=(3, model.nv))
    close(ls.inverse_dynamics_tangent(model, q, v, a, x, y, z), dq @ x + dv @ y + da @ z)
    for found, function in (
        (ls.frame_twist_derivatives(model, q, v, "far")[0], lambda x: ls.frame_twist(model, x, v, "far")),
        (ls.frame_acceleration_derivatives(model, q, v, a, "far")[0],
         lambda x: ls.frame_acceleration(model, x, v, a, "far")),
    ):  # fmt: skip
        close(slope(function, model, lambda d: ls.integrate(model, q, d)), found, 1e-8)


@curved
def test_identities(kind):
    """T = ½ vᵀ M v, Ṁ − 2C is skew, C v is the velocity force, ID undoes FD."""
    model = robot_with(CURVED[kind]).build()
    q, v, _, u = state(model, 5)
    M, C = ls.mass_matrix(model, q), ls.coriolis_matrix(model, q, v)
    assert ls.energy(model, q, v).kinetic == pytest.approx(0.5 * v @ M @ v, rel=1e-12)
    h = 1e-3
    rows = [ls.mass_matrix(model, ls.integrate(model, q, t * v)) for t in (h, -h, 2 * h, -2 * h)]
    skew = (8 * (rows[0] - rows[1]) - (rows[2] - rows[3])) / (12 * h) - 2.0 * C
    close(skew, -skew.T, 1e-8)
    options = {"gravity": False, "elastic": False, "loads": False}
    close(C @ v, ls.inverse_dynamics(model, q, v, np.zeros(model.nv), **options), 1e-11)
    a = ls.forward_dynamics(model, q, v, u)
    close(ls.inverse_dynamics(model, q, v, a), ls.actuation_matrix(model, q) @ u, 1e-10)


@curved
def test_energy_stays(kind):
    """Without damping and loads the energy of a motion is constant, for every driver of the steps."""
    robot = ls.Robot("swing")
    robot.add_link("arm", body(np.random.default_rng(0)), CURVED["function"] if kind == "function" else
                   ls.JointCustom(wound(), stiffness=0.3))  # fmt: skip
    robot.add_link("next", body(np.random.default_rng(1)), ls.JointRevolute((0, 1, 0)), "arm")
    model = robot.build()
    q = np.zeros(model.nq)
    q[-1] = 0.4
    motion = ls.simulate(model, 0.06, q, 0.2 * np.ones(model.nv), rtol=1e-10, atol=1e-12)
    total = ls.energy(model, motion.q, motion.v).total
    assert np.abs(total - total[0]).max() < 1e-7 * np.abs(ls.energy(model, motion.q, motion.v).kinetic).max()


R_FIXED, R_ROLLING = 0.03, 0.02
RATIO = (R_FIXED + R_ROLLING) / R_ROLLING  # the rolling cylinder turns so much more than the line of centres
MASS, INERTIA, OFFSET = 0.8, 3e-3, 0.15


def knee(q):
    """Two circular cylinders about z that roll on each other: q turns the line of their centres."""
    p = (R_FIXED + R_ROLLING) * jnp.array([jnp.cos(q[0]), jnp.sin(q[0]), 0.0])
    return posed(turned(np.array([0.0, 0.0, 1.0]), RATIO * q[0]), p)


def knee_table():
    """The same as a table."""
    x = np.linspace(-1.5, 1.5, 121)
    p = (R_FIXED + R_ROLLING) * np.stack([np.cos(x), np.sin(x), 0 * x], axis=1)
    return ls.PoseSpline(x, RATIO * x[:, None] * np.array([0.0, 0.0, 1.0]), p)


KNEES = {"function": (knee, 1e-12), "table": (knee_table(), 1e-8)}  # h⁴ of a second derivative, h = 0.025
knees = pytest.mark.parametrize("kind", KNEES)


def shank(pose):
    """A body beyond the knee, its mass along x of its frame."""
    robot = ls.Robot("knee", gravity=(0.0, -9.81, 0.0))
    robot.add_link("shank", ls.RigidBody(MASS, (OFFSET, 0, 0), (1e-3, 2e-3, INERTIA)), ls.JointCustom(pose))
    return robot.build()


@knees
def test_knee_rolls(kind):
    """The point of the body that touches the fixed cylinder stands still."""
    pose, share = KNEES[kind]
    model = shank(pose)
    for q in (-0.7, 0.0, 0.9):
        g, twist = ls.frame_pose(model, [q], "shank"), ls.frame_twist(model, [q], [1.3], "shank")
        touching = R_FIXED * np.array([np.cos(q), np.sin(q), 0.0])
        r = g[:3, :3].T @ (touching - g[:3, 3])
        assert np.abs(twist[3:] + np.cross(twist[:3], r)).max() < share


@knees
def test_knee_against_its_lagrangian(kind):
    """Accelerations of T = ½ M(q) q̇², V(q) with the mass at c = ρ e^{iq} + d e^{ikq}."""
    pose, share = KNEES[kind]
    model, rho = shank(pose), R_FIXED + R_ROLLING
    for q, v in ((-0.7, 2.0), (0.0, -1.0), (0.9, 5.0)):
        c_1 = 1j * rho * np.exp(1j * q) + 1j * RATIO * OFFSET * np.exp(1j * RATIO * q)
        c_2 = -rho * np.exp(1j * q) - RATIO**2 * OFFSET * np.exp(1j * RATIO * q)
        M = MASS * abs(c_1) ** 2 + INERTIA * RATIO**2
        half_slope = MASS * (c_1 * np.conj(c_2)).real
        expected = -(half_slope * v * v + MASS * 9.81 * c_1.imag) / M
        assert ls.forward_dynamics(model, [q], [v])[0] == pytest.approx(expected, rel=share)


@knees
def test_knee_keeps_its_energy(kind):
    """A swing of large angles, with adaptive and with fixed steps."""
    model = shank(KNEES[kind][0])
    motion = ls.simulate(model, 1.0, [0.2], [0.0], rtol=1e-10, atol=1e-12)
    total = ls.energy(model, motion.q, motion.v).total
    assert np.abs(total - total[0]).max() < 1e-7 * ls.energy(model, motion.q, motion.v).kinetic.max()
    fixed = ls.simulate(model, 1.0, [0.2], [0.0], method="newmark", dt=0.001)
    assert fixed.q[-1] == pytest.approx(motion.q[-1], abs=2e-3)
    assert np.abs(motion.v).max() > 2.0


BAD = {
    "pose must be a function": (lambda: ls.JointCustom(3.0), "must be a function of q or a PoseSpline"),
    "n must be an integer": (lambda: ls.JointCustom(screw, 1.5), "n: must be an integer >= 1"),
    "n must not be large": (lambda: ls.JointCustom(screw, 7), "must be at most 6"),
    "a table has one coordinate": (lambda: ls.JointCustom(wound(), 2), "must be 1 for a PoseSpline"),
    "3x3": (lambda: ls.JointCustom(lambda q: turned(AXIS, q[0])), "must return a 4x4 matrix"),
    "not rigid": (lambda: ls.JointCustom(lambda q: (1.0 + q[0]) * jnp.eye(4)), "must be a rigid transform"),
    "mirrored": (lambda: ls.JointCustom(lambda q: posed(-turned(AXIS, q[0]), AXIS)), "must be a rigid transform"),
    "NumPy": (lambda: ls.JointCustom(lambda q: np.array([[np.sin(float(q[0]))]])), "made of jax.numpy"),
    "not smooth": (lambda: ls.JointCustom(lambda q: posed(jnp.eye(3), jnp.sqrt(jnp.abs(q[0])) * AXIS)), "derivatives"),
    "few points": (lambda: ls.JointCustom(ls.PoseSpline([0, 1], [AXIS] * 2, [AXIS] * 2)), "needs at least 6"),
    "falling": (lambda: ls.JointCustom(ls.PoseSpline([0, 1, 3, 2], [AXIS] * 4, [AXIS] * 4, 3)), "strictly increasing"),
    "degree": (lambda: ls.JointCustom(ls.PoseSpline([0, 1, 2, 3], [AXIS] * 4, [AXIS] * 4, 4)), "must be 3 or 5"),
    "rotation": (lambda: ls.JointCustom(ls.PoseSpline([0, 1, 2, 3], AXIS, [AXIS] * 4, 3)), "rotation: must hold 3"),
    "rest": (lambda: ls.JointCustom(screw, rest=[1.0, 2.0]), "rest: must have shape"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    """The error names the link, the joint and the rule."""
    make, rule = BAD[case]
    robot = ls.Robot("bad")
    robot.add_link("arm", ls.RigidBody(1.0), make())
    with pytest.raises(ls.ModelError, match="link 'arm' > joint") as error:
        robot.build()
    assert rule in str(error.value)


def test_without_jax(monkeypatch):
    """Where JAX is missing the error names the extra, and tables still work."""
    import sys

    monkeypatch.setitem(sys.modules, "jax", None)
    robot = ls.Robot("bare")
    robot.add_link("arm", ls.RigidBody(1.0), ls.JointCustom(lambda q: screw(q)))
    with pytest.raises(ls.ModelError, match=r"lissom\[jax\]"):
        robot.build()
    assert shank(knee_table()).nv == 1


def test_closes_no_loop():
    """A custom joint belongs in the tree."""
    robot = ls.Robot("loop")
    robot.add_link("arm", ls.RigidBody(1.0), ls.JointRevolute())
    robot.add_loop("pin", "arm", None, joint=ls.JointCustom(screw))
    with pytest.raises(ls.ModelError, match="close the chain elsewhere"):
        robot.build()


def test_robot_files(tmp_path):
    """A table is saved and read; a function is refused by name."""
    robot = ls.Robot("knee")
    robot.add_link("shank", ls.RigidBody(1.0), ls.JointCustom(knee_table(), stiffness=2.0, rest=[0.1]))
    ls.save_robot(robot, tmp_path / "knee.yaml")
    again = ls.load_robot(tmp_path / "knee.yaml")
    one, other = robot.build(), again.build()
    motion = np.array([[0.3], [1.0], [2.0]])
    assert np.array_equal(ls.inverse_dynamics(one, *motion), ls.inverse_dynamics(other, *motion))
    robot.add_link("arm", ls.RigidBody(1.0), ls.JointCustom(screw))
    with pytest.raises(ls.ModelError, match="cannot be saved"):
        ls.save_robot(robot, tmp_path / "no.yaml")


def named_screw(q):
    """A function that a module names, so that it can be pickled."""
    return screw(q, PITCH)


def test_pickling():
    """A model with a custom joint travels to another process with its function."""
    robot = ls.Robot("travels")
    robot.add_link("arm", body(np.random.default_rng(0)), ls.JointCustom(named_screw, stiffness=1.0))
    model = robot.build()
    again = pickle.loads(pickle.dumps(model))
    motion = np.array([[0.3], [1.0], [2.0]])
    assert np.array_equal(ls.inverse_dynamics(again, *motion), ls.inverse_dynamics(model, *motion))
