"""Stops and nonlinear springs on custom joints, alone, in trees and in loops: forces, derivatives, energy, statics."""

import numpy as np
import pytest
from dynamics.custom_joints import AXIS, CURVED, body, close, jnp, posed, robot_with, screw, spline, state, turned
from sampling import halved
from scipy.linalg import null_space
from scipy.optimize import brentq

import lissom as ls

ROWS = [(-1.0, -2.0), (-0.3, -0.1), (0.2, 0.05), (0.9, 1.5), (1.2, 4.0)]
STOPS = {"limits": (-0.4, 0.5), "limit_stiffness": 30.0, "limit_damping": 0.2, "limit_width": 0.2}
LAWS = {"spring": ROWS, "rest": 0.1, **STOPS}
EACH = {"spring": [ROWS, None, ls.Tabulated([-1.0, 0.1, 1.0], [-1.0, 0.3, 4.0], "linear")],
        "limits": ((-0.4, -np.inf, -0.3), (0.5, 0.3, np.inf)), "limit_stiffness": (30.0, 20.0, 10.0),
        "limit_damping": 0.3, "limit_width": 0.1, "rest": (0.1, 0.0, 0.0)}  # fmt: skip
R_FIXED, R_ROLLING, OFFSET = 0.03, 0.02, 0.15
RATIO = (R_FIXED + R_ROLLING) / R_ROLLING


def with_laws(joint):
    """The pose of a custom joint with stops and springs on all its coordinates."""
    return ls.JointCustom(joint.pose, joint.n, **(LAWS if joint.n == 1 else EACH))


BENT = {kind: with_laws(joint) for kind, joint in CURVED.items()}
bent = pytest.mark.parametrize("kind", BENT)
seeds = pytest.mark.parametrize("seed", range(3))


def behind_stops(model, seed):
    """A random state in which some coordinates are behind their stops."""
    q, v, a, _ = state(model, seed, 0.9)
    return q, v, a


def differences(model, function, h=1e-6):
    """Central differences of function(d) in the tangent space, columns last."""
    ends = h * np.eye(model.nv)
    return np.stack([(function(d) - function(-d)) / (2 * h) for d in ends], axis=-1)


@pytest.mark.parametrize("pose", [screw, spline(0.0)], ids=["function", "table"])
def test_the_same_as_on_a_native_joint(pose):
    """A revolute joint written as a custom one: forces, derivatives and energies with all laws."""
    native, custom = (
        robot_with(joint).build() for joint in (ls.JointRevolute(AXIS, **LAWS), ls.JointCustom(pose, **LAWS))
    )
    for seed in range(4):
        q, v, a = behind_stops(native, seed)
        close(ls.inverse_dynamics(custom, q, v, a), ls.inverse_dynamics(native, q, v, a))
        close(ls.inverse_dynamics_derivatives(custom, q, v, a), ls.inverse_dynamics_derivatives(native, q, v, a), 1e-11)
        close(ls.energy(custom, q, v).elastic, ls.energy(native, q, v).elastic)


@pytest.mark.parametrize(("seed", "kind"), halved(range(3), BENT))
def test_derivatives(kind, seed):
    """∂τ/∂q and ∂τ/∂v against differences, the tangent against both; the laws are in them."""
    model = robot_with(BENT[kind]).build()
    q, v, a = behind_stops(model, seed)
    by_q, by_v, by_a = ls.inverse_dynamics_derivatives(model, q, v, a)
    along = differences(model, lambda d: ls.inverse_dynamics(model, ls.integrate(model, q, d), v, a))
    close(by_q, along, 1e-7)
    close(by_v, differences(model, lambda d: ls.inverse_dynamics(model, q, v + d, a)), 1e-7)
    x, y, z = np.random.default_rng(seed).normal(size=(3, model.nv))
    close(ls.inverse_dynamics_tangent(model, q, v, a, x, y, z), by_q @ x + by_v @ y + by_a @ z)
    plain = ls.inverse_dynamics_derivatives(model, q, v, a, elastic=False)
    start = model.links.v_start[model.links.names.index("near")]
    assert abs(by_q[start, start] - plain[0][start, start]) > 0.05


@seeds
@bent
def test_force_is_the_slope_of_the_energy(kind, seed):
    """At rest, behind the stops and between them."""
    model = robot_with(BENT[kind]).build()
    q, still = behind_stops(model, seed)[0], np.zeros(model.nv)
    force = ls.inverse_dynamics(model, q, still, still, gravity=False, loads=False)
    slope = differences(model, lambda d: ls.energy(model, ls.integrate(model, q, d), still).elastic, 1e-5)
    close(force, slope, 1e-7)


def knee(q):
    """Two cylinders that roll on each other: q turns the line of their centres."""
    p = (R_FIXED + R_ROLLING) * jnp.array([jnp.cos(q[0]), jnp.sin(q[0]), 0.0])
    return posed(turned(np.array([0.0, 0.0, 1.0]), RATIO * q[0]), p)


def knee_table():
    """The same as a table."""
    x = np.linspace(-2.5, 2.5, 121)
    p = (R_FIXED + R_ROLLING) * np.stack([np.cos(x), np.sin(x), 0 * x], axis=1)
    return ls.PoseSpline(x, RATIO * x[:, None] * np.array([0.0, 0.0, 1.0]), p)


POSES = {"function": knee, "table": knee_table()}
poses = pytest.mark.parametrize("pose", POSES.values(), ids=POSES)


def shank(pose, **laws):
    """A body beyond the knee, its mass along x of its frame, under weight along −y."""
    robot = ls.Robot("knee", gravity=(0.0, -9.81, 0.0))
    robot.add_link("shank", ls.RigidBody(0.8, (OFFSET, 0, 0), (1e-3, 2e-3, 3e-3)), ls.JointCustom(pose, **laws))
    return robot.build()


@pytest.mark.parametrize(("kind", "method"), halved(POSES, ("bdf", "newmark")))
def test_bounce_keeps_its_energy(kind, method):
    """A knee that falls from stop to stop, without damping."""
    model = shank(POSES[kind], limits=(-0.7, 0.4), limit_stiffness=60.0, limit_width=0.05)
    fixed = {"dt": 5e-4} if method == "newmark" else {"rtol": 1e-9, "atol": 1e-11}
    motion = ls.simulate(model, 1.0, q0=[0.2], v0=[5.0], method=method, **fixed)
    E = ls.energy(model, motion.q, motion.v)
    assert np.sum(np.diff(np.sign(motion.v[:, 0])) != 0) >= 3 and np.ptp(E.elastic) > 0.3
    tolerance = 5e-3 if method == "newmark" else 1e-6
    assert np.abs(E.total - E.total[0]).max() < tolerance * np.ptp(E.elastic)


@poses
def test_statics_on_a_stop(pose):
    """The knee sinks into its lower stop until that bears the weight: k (low − w/2 − q) = m g ∂c_y/∂q."""
    model = shank(pose, limits=(-0.5, 0.4), limit_stiffness=60.0, limit_width=1e-3)

    def missing(q):
        lever = (R_FIXED + R_ROLLING) * np.cos(q) + RATIO * OFFSET * np.cos(RATIO * q)
        return 60.0 * (-0.5 - 5e-4 - q) - 0.8 * 9.81 * lever

    want = brentq(missing, -0.7, -0.501, xtol=1e-15)
    rest = ls.solve_statics(model)
    assert rest.is_stable and rest.q[0] == pytest.approx(want, abs=1e-12 if pose is knee else 1e-8)


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
@pytest.mark.filterwarnings("ignore:.*its start violates:lissom.PlausibilityWarning")  # the crank begins in a stop
@pytest.mark.parametrize("pose", [screw, spline(0.0)], ids=["function", "table"])
def test_loop(pose):
    """A four-bar whose crank swings between stops against a spring: derivatives, and the energy of a motion."""

    def four_bar(crank):
        robot, at = ls.Robot("four-bar", gravity=(0.0, -9.81, 0.0)), np.eye(4)
        across = np.array([0.8, 0.64, 0.0]) / np.hypot(0.8, 0.64)  # normal to the axis
        parent = None
        for name, length, joint in (("crank", 0.0, crank), ("coupler", 0.2, None), ("rocker", 0.5, None)):
            place = at.copy()
            place[:3, 3] = length * across
            joint = ls.JointRevolute(AXIS) if joint is None else joint
            robot.add_link(name, body(np.random.default_rng(1), 0.3), joint, parent, placement=place)
            parent = name
        end, ground = at.copy(), at.copy()
        end[:3, 3], ground[:3, 3] = 0.4 * across, 0.5 * across
        robot.add_loop("pin", "rocker", None, placement_a=end, placement_b=ground, joint=ls.JointRevolute(AXIS))
        return robot.build()

    laws = {"limits": (0.7, 1.1), "limit_stiffness": 40.0, "limit_width": 0.05, "spring": ROWS, "rest": 0.9}
    model = four_bar(ls.JointCustom(pose, **laws))
    q = ls.assemble(model, np.array([0.9, -0.8, 1.4]))
    v = null_space(ls.constraint_jacobian(model, q), rcond=1e-9)[:, 0]
    v *= 8.0 / abs(v[0])
    native = four_bar(ls.JointRevolute(AXIS, **laws))
    deep = ls.assemble(native, q + np.array([0.35, -0.2, 0.0]), fixed=["crank"])
    speed = null_space(ls.constraint_jacobian(native, deep), rcond=1e-9)[:, 0]
    close(ls.forward_dynamics(model, deep, speed), ls.forward_dynamics(native, deep, speed), 1e-9)
    found = ls.forward_dynamics_derivatives(model, deep, speed)
    close(found, ls.forward_dynamics_derivatives(native, deep, speed), 1e-8)
    motion = ls.simulate(model, 0.4, q, v, rtol=1e-9, atol=1e-11)
    E = ls.energy(model, motion.q, motion.v)
    assert motion.q[:, 0].max() > 1.1 and motion.q[:, 0].min() < 0.7
    assert np.abs(E.total - E.total[0]).max() < 1e-6 * np.ptp(E.elastic)
