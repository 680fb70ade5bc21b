"""Native joints written as custom ones stay the same in every algorithm.

Both sides of a comparison run the same sweeps and differ by how the columns of one joint are made: 1e-12 of the largest
entry is some hundred roundings. What solvers end within their tolerance of is compared by that.
"""

import numpy as np
import pytest
from dynamics.custom_joints import AXIS, PAIRS, both, close, pairs, robot_with, state
from sampling import halved
from scipy.linalg import null_space

import lissom as ls

DYNAMICS = {
    "inverse dynamics": lambda m, q, v, a, u: ls.inverse_dynamics(m, q, v, a),
    "derivatives": lambda m, q, v, a, u: ls.inverse_dynamics_derivatives(m, q, v, a),
    "tangent": lambda m, q, v, a, u: ls.inverse_dynamics_tangent(m, q, v, a, a, v, np.cos(v)),
    "mass": lambda m, q, v, a, u: ls.mass_matrix(m, q),
    "coriolis": lambda m, q, v, a, u: ls.coriolis_matrix(m, q, v),
    "forward dynamics": lambda m, q, v, a, u: ls.forward_dynamics(m, q, v, u),
    "its derivatives": lambda m, q, v, a, u: ls.forward_dynamics_derivatives(m, q, v, u),
    "poses": lambda m, q, v, a, u: ls.frame_pose(m, q, "far"),
    "twist": lambda m, q, v, a, u: ls.frame_twist(m, q, v, "far"),
    "acceleration": lambda m, q, v, a, u: ls.frame_acceleration(m, q, v, a, "far"),
    "jacobian": lambda m, q, v, a, u: ls.frame_jacobian(m, q, "rod", 0.4),
    "its rate": lambda m, q, v, a, u: ls.frame_jacobian_derivative(m, q, v, "far"),
    "of twists": lambda m, q, v, a, u: ls.frame_twist_derivatives(m, q, v, "far"),
    "of accelerations": lambda m, q, v, a, u: ls.frame_acceleration_derivatives(m, q, v, a, "rod", 0.7),
    "energy": lambda m, q, v, a, u: tuple(vars(ls.energy(m, q, v)).values()),
    "momentum": lambda m, q, v, a, u: ls.momentum(m, q, v),
    "actuation": lambda m, q, v, a, u: ls.actuation_matrix(m, q),
    "internal wrench": lambda m, q, v, a, u: tuple(vars(ls.internal_wrench(m, q, v, a, u, "rod", 0.3)).values()),
    "joint wrench": lambda m, q, v, a, u: ls.joint_wrench(m, q, v, a, u, "near"),
    "linearized": lambda m, q, v, a, u: tuple(vars(ls.linearize(m, q, u, v=v)).values()),
}


@pytest.mark.parametrize("name", DYNAMICS)
@pairs
def test_native_joints_as_custom_ones(kind, name):
    """Every function of a state is the same."""
    native, custom = both(kind)
    close(DYNAMICS[name](custom, *state(native)), DYNAMICS[name](native, *state(native)))


@pairs
def test_batches(kind):
    """Leading axes give what single states do, to the rounding of JAX, which compiles for one state and for several."""
    _, custom = both(kind)
    q, v, a, _ = (np.array(rows) for rows in zip(*(state(custom, seed) for seed in range(40))))
    tau = ls.inverse_dynamics(custom, q, v, a)
    single = np.array([ls.inverse_dynamics(custom, *row) for row in zip(q, v, a)])
    np.testing.assert_allclose(tau, single, rtol=0, atol=1e-14 * np.abs(single).max())


@pairs
def test_statics_and_modes(kind):
    """Equilibria, their stability and natural frequencies are the same."""
    native, custom = both(kind, ls.JointFixed())
    u = np.array([1.0, 0.2, 0.1])[: native.nu]
    one, other = (ls.solve_statics(model, u) for model in (native, custom))
    close(other.q, one.q, 1e-9)
    assert other.is_stable == one.is_stable
    close(ls.modes(custom, one.q, u).frequencies, ls.modes(native, one.q, u).frequencies, 1e-9)


KINDS, METHODS = ("helical", "helical table", "universal"), ("generalized_alpha", "newmark", "bdf", "dop853")


@pytest.mark.parametrize(("kind", "method"), halved(KINDS, METHODS))
def test_simulations(kind, method):
    """Motions are the same, with steps driven from Python and in kernels."""
    native, custom = both(kind, ls.JointFixed())
    q, v, *_ = state(native, 2, 0.3)
    options = {"dt": 0.01} if method in ("generalized_alpha", "newmark") else {"rtol": 1e-8, "atol": 1e-10}
    u = np.array([1.0, 0.2, 0.1])[: native.nu]
    ends = [ls.simulate(model, 0.1, q, v, u, method=method, **options) for model in (native, custom)]
    close(ends[1].q[-1], ends[0].q[-1], 1e-6)
    close(ends[1].v[-1], ends[0].v[-1], 1e-5)


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
@pytest.mark.parametrize("kind", ["revolute", "revolute table"])
def test_in_loops(kind):
    """A four-bar with a custom joint of its tree: constraints, forward dynamics, assembly and motion are the same."""

    def four_bar(joint):
        g = np.eye(4)
        robot = ls.Robot("four-bar")
        robot.add_link("crank", ls.RigidBody(0.2, (0.1, 0, 0), (1e-3,) * 3), ls.JointRevolute(AXIS))
        for name, parent, length in (("coupler", "crank", 0.2), ("rocker", "coupler", 0.5)):
            at = g.copy()
            at[:3, 3] = length * np.array([0.8, 0.64, 0.0]) / np.hypot(0.8, 0.64)
            robot.add_link(name, ls.RigidBody(0.3, (0.1, 0.05, 0), (1e-3,) * 3), joint, parent, placement=at)
        end, ground = g.copy(), g.copy()
        end[:3, 3] = 0.4 * np.array([0.8, 0.64, 0.0]) / np.hypot(0.8, 0.64)
        ground[:3, 3] = 0.5 * np.array([0.8, 0.64, 0.0]) / np.hypot(0.8, 0.64)
        robot.add_loop("pin", "rocker", None, placement_a=end, placement_b=ground, joint=ls.JointRevolute(AXIS))
        return robot.build()

    one, other = (four_bar(joint) for joint in PAIRS[kind])
    q = ls.assemble(one, np.array([0.9, -0.8, 1.4]))
    close(ls.assemble(other, np.array([0.9, -0.8, 1.4])), q, 1e-9)
    v = null_space(ls.constraint_jacobian(one, q), rcond=1e-9)[:, 0]
    close(ls.constraint_jacobian(other, q), ls.constraint_jacobian(one, q))
    close(ls.forward_dynamics(other, q, v), ls.forward_dynamics(one, q, v), 1e-9)
    close(ls.forward_dynamics_derivatives(other, q, v), ls.forward_dynamics_derivatives(one, q, v), 1e-8)
    ends = [ls.simulate(model, 0.1, q, v, method="bdf", dt=0.005) for model in (one, other)]
    close(ends[1].q[-1], ends[0].q[-1], 1e-7)


@pytest.mark.parametrize("kind", ["revolute", "revolute table"])
def test_contacts(kind):
    """A body swings against a wall: steps, and the look for walls that a step may have leapt over, are the same."""

    def swing(joint):
        robot = ls.Robot("swing", gravity=(0.0, -9.81, 0.0))
        at = np.eye(4)
        at[:3, 3] = (0.3, 0.0, 0.0)
        robot.add_link("arm", ls.RigidBody(0.1, (0.1, 0, 0), (1e-4,) * 3), joint)
        robot.add_link("ball", ls.RigidBody.sphere(0.03, density=10000), parent="arm", placement=at)
        wall = np.eye(4)
        wall[:3, 3] = (0.0, -0.2, 0.0)
        robot.add_contact("floor", "ball", ls.ShapePlane((0, 1, 0)), placement=wall, stiffness=1e5, damping=0.3)
        return robot.build()

    models = [swing(joint) for joint in PAIRS[kind]]
    ends = [ls.simulate(model, 0.5, dt=0.002) for model in models]
    close(ends[1].q[-1], ends[0].q[-1], 1e-5)
    assert any(len(found.force) for found in ls.contact_forces(models[1], ends[1].q, ends[1].v))


def test_prescribed_motions_and_actuators():
    """A custom joint follows a motion, and its multiplier is the force that this takes."""
    models = []
    for joint in PAIRS["helical"]:
        robot = robot_with(joint, ls.JointFixed())
        robot.add_joint_motion("drive", "far", position=lambda t: 0.3 * np.sin(5.0 * t))
        models.append(robot.build())
    one, other = (ls.simulate(model, 0.1, dt=0.01) for model in models)
    close(other.q[-1], one.q[-1], 1e-6)
    close(other.multipliers[-1], one.multipliers[-1], 1e-4)
