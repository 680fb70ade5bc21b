"""Identities that the dynamics of any robot must obey, on random hybrid trees.

Central differences are of fourth order with a step of 2e-4: truncation is far below their rounding, 1e-16 / 2e-4 of the
quantity, so 1e-8 of the largest entry is asked of them. Identities between algorithms hold to rounding.
"""

from functools import lru_cache

import numpy as np
import pytest
from robots import build, random_placement, random_state, random_tree

import lissom as ls

STEP = 2e-4
BY_DIFFERENCES, BY_ALGEBRA = 1e-8, 1e-10

pytestmark = pytest.mark.parametrize("seed", range(1, 50, 4), scope="module")  # tests of one tree follow each other


@lru_cache(maxsize=2)
def case(seed):
    """A tree's model and a state."""
    robot = random_tree(seed)
    return (build(robot), *random_state(robot, seed))


def close(value, expected, tolerance, scale=0.0):
    """Agreement relative to the largest entry, or to `scale` where that is larger."""
    assert np.shape(value) == np.shape(expected)
    return np.abs(value - expected).max(initial=0.0) <= tolerance * max(np.abs(expected).max(initial=0.0), scale)


def along(function, model, q, v):
    """Derivative of function(q) along the tangent vectors v, shape (..., nv); leading axes first."""
    near, far = ((function(ls.integrate(model, q, k * STEP * v)) - function(ls.integrate(model, q, -k * STEP * v)))
                 / (2 * k * STEP) for k in (1, 2))  # fmt: skip
    return (4 * near - far) / 3


def gradient(function, model, q):
    """Derivative of function(q) in the tangent space: axis 0 is the input."""
    return along(function, model, np.tile(q, (model.nv, 1)), np.eye(model.nv))


def test_kinetic_energy_is_quadratic(seed):
    """T = v'Mv / 2."""
    model, q, v, *_ = case(seed)
    assert close(ls.energy(model, q, v).kinetic, 0.5 * v @ ls.mass_matrix(model, q) @ v, BY_ALGEBRA)


def test_mass_matrix_is_symmetric_positive_definite(seed):
    """M is symmetric and all its eigenvalues are positive, beyond rounding."""
    model, q, *_ = case(seed)
    M = ls.mass_matrix(model, q)
    assert close(M, M.T, 1e-14)
    d = np.sqrt(np.diag(M))  # scaled, so that the units of the coordinates do not matter
    assert np.linalg.eigvalsh(M / np.outer(d, d)).min() > 1e-12


def test_mass_matrix_by_unit_accelerations(seed):
    """Inverse dynamics of unit accelerations at rest, without forces, gives the columns of M."""
    model, q, *_ = case(seed)
    nv, M = model.nv, ls.mass_matrix(model, q)
    none = {"gravity": False, "elastic": False, "loads": False}
    columns = ls.inverse_dynamics(model, np.tile(q, (nv, 1)), np.zeros((nv, nv)), np.eye(nv), **none)
    assert close(columns, M, 1e-12)


def test_velocity_force_is_coriolis_matrix_times_v(seed):
    """C v plus weight is the inverse dynamics of zero acceleration without springs and loads."""
    model, q, v, *_ = case(seed)
    force = ls.inverse_dynamics(model, q, v, np.zeros_like(v), elastic=False, loads=False)
    weight = -ls.external_force(model, q, v, loads=False)
    assert close(ls.coriolis_matrix(model, q, v) @ v + weight, force, BY_ALGEBRA)


def test_mass_rate_minus_twice_coriolis_is_skew(seed):
    """dM/dt - 2C is skew along integrate."""
    model, q, v, *_ = case(seed)
    rate, C = along(lambda x: ls.mass_matrix(model, x), model, q, v), ls.coriolis_matrix(model, q, v)
    X = rate - 2 * C
    assert close(X, -X.T, BY_DIFFERENCES, np.abs(rate).max())


def test_power_balance(seed):
    """Along a motion with d(energy)/dt = v'Bu - v'Dv + power of the loads: the work of the inputs equals the gain of
    the robot."""
    model, q, v, _, u = case(seed)
    t = 0.21
    a = ls.forward_dynamics(model, q, v, u, t=t)
    kinetic = v @ ls.mass_matrix(model, q) @ a
    kinetic += 0.5 * v @ along(lambda x: ls.mass_matrix(model, x), model, q, v) @ v
    potential = along(lambda x: _potential(model, x), model, q, v)
    loads = ls.external_force(model, q, v, gravity=False, t=t)
    supplied = np.array([v @ ls.actuation_matrix(model, q) @ u, -v @ ls.damping_matrix(model) @ v, v @ loads])
    # M a is large where light modes accelerate: their cancellation sets the scale
    scale = np.abs(v) @ np.abs(ls.mass_matrix(model, q)) @ np.abs(a)
    assert close(kinetic + potential, supplied.sum(), BY_DIFFERENCES, scale)


def _potential(model, q):
    energy = ls.energy(model, q, np.zeros((*np.shape(q)[:-1], model.nv)))
    return energy.gravitational + energy.elastic


def test_forward_dynamics_inverts_inverse_dynamics(seed):
    """ID(FD(u)) = B u; the residual of the solve is rounding of |M||a|."""
    model, q, v, _, u = case(seed)
    t = 0.21
    a = ls.forward_dynamics(model, q, v, u, t=t)
    scale = (np.abs(ls.mass_matrix(model, q)) @ np.abs(a)).max()
    expected = ls.actuation_matrix(model, q) @ u
    assert close(ls.inverse_dynamics(model, q, v, a, t=t), expected, 1e-12, max(scale, 100.0))


def test_static_forces_are_gradients_of_energy(seed):
    """Weight and springs at rest are the derivative of the potential energy."""
    model, q, *_ = case(seed)
    zero = np.zeros(model.nv)
    force = ls.inverse_dynamics(model, q, zero, zero, loads=False)
    assert close(gradient(lambda x: _potential(model, x), model, q), force, BY_DIFFERENCES)


def test_tendon_columns_are_gradients_of_lengths(seed):
    """B of each uncoupled tendon is minus the gradient of its length."""
    model, q, *_ = case(seed)
    robot = random_tree(seed)
    slopes = gradient(lambda x: ls.path_lengths(model, x), model, q).T
    B, column, found = ls.actuation_matrix(model, q), 0, 0
    coupled = {name for coupling in robot.couplings.values() for name in coupling.gains}
    if coupled:  # couplings move the columns: the same robot without them
        robot.couplings.clear()
        B = ls.actuation_matrix(build(robot), q)
    for actuator in robot.actuators.values():
        if hasattr(actuator, "path") and not hasattr(actuator, "area"):
            assert close(B[:, column], -slopes[found], BY_DIFFERENCES), actuator.name
            found += 1
        column += robot.input_size(actuator)
    assert found == len(slopes) == 2


def test_rigid_motion_of_the_whole_robot(seed):
    """Moving robot, gravity and world loads together changes no generalised force, matrix or energy difference."""
    model, q, v, a, _ = case(seed)
    still, moved, g = random_tree(seed), random_tree(seed), random_placement(np.random.default_rng(seed), 2.0)
    for robot in (still, moved):
        robot.actuators.clear()  # a path may pass through a point of the world, which would have to move as well
        robot.couplings.clear()
    _move(moved, g)
    model, other = build(still), build(moved)
    t = 0.4
    assert close(ls.inverse_dynamics(other, q, v, a, t=t), ls.inverse_dynamics(model, q, v, a, t=t), BY_ALGEBRA)
    assert close(ls.mass_matrix(other, q), ls.mass_matrix(model, q), BY_ALGEBRA)
    assert close(ls.coriolis_matrix(other, q, v), ls.coriolis_matrix(model, q, v), BY_ALGEBRA)
    assert close(ls.frame_pose(other, q, "link 4"), g @ ls.frame_pose(model, q, "link 4"), BY_ALGEBRA)
    assert close(ls.frame_twist(other, q, v, "link 4"), ls.frame_twist(model, q, v, "link 4"), BY_ALGEBRA)
    in_new_world = np.linalg.inv(ls.lie.se3_Ad(g)).T @ ls.momentum(model, q, v)
    assert close(ls.momentum(other, q, v), in_new_world, BY_ALGEBRA)
    assert close(ls.center_of_mass(other, q), g[:3, :3] @ ls.center_of_mass(model, q) + g[:3, 3], BY_ALGEBRA)


def _move(robot, g):
    """Move the robot by g, with gravity and the loads that are fixed in the world."""
    R = g[:3, :3]
    robot.gravity = R @ np.asarray(robot.gravity)
    for name, link in list(robot.links.items()):
        if link.parent is None:
            own = np.eye(4) if link.placement is None else link.placement
            robot.links[name] = ls.Link(name, link.body, link.joint, None, link.at, g @ own)
    loads = list(robot.loads.values())
    robot.loads.clear()
    for load in loads:
        turn = R if load.frame == "world" else np.eye(3)
        force, moment = (_turned(turn, value) for value in (load.force, load.moment))
        robot.add_point_load(
            load.name, load.link, s=load.s, force=force, moment=moment, frame=load.frame, position=load.position
        )


def _turned(R, value):
    if value is None:
        return None
    return (lambda t: R @ value(t)) if callable(value) else R @ np.asarray(value)


def test_integrate_and_difference_invert_each_other(seed):
    """difference(q, integrate(q, dv)) = dv, and integrate(q0, difference(q0, q1)) = q1."""
    model, q, v, a, _ = case(seed)
    dv = 0.5 * v
    assert close(ls.difference(model, q, ls.integrate(model, q, dv)), dv, 1e-12, 1.0)
    q1 = ls.integrate(model, q, 0.2 * a)
    back = ls.integrate(model, q, ls.difference(model, q, q1))
    assert close(ls.difference(model, back, q1), np.zeros(model.nv), 1e-12, 1.0)


def test_integrate_by_nothing_changes_nothing(seed):
    """integrate(q, 0) = q and difference(q, q) = 0."""
    model, q, *_ = case(seed)
    assert close(ls.integrate(model, q, np.zeros(model.nv)), q, 1e-15)
    assert not np.any(np.abs(ls.difference(model, q, q)) > 1e-15)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_batches_equal_single_calls(seed, shape):
    """Every function gives for a batch the results of single calls, with the batch's shape in front."""
    model, q0, *_ = case(seed)
    robot, count = random_tree(seed), int(np.prod(shape))
    states = [random_state(robot, 100 + k) for k in range(count)]
    q, v, a, u = (np.reshape([state[i] for state in states], (*shape, -1)) for i in range(4))
    functions = {
        "forward_kinematics": (lambda x: ls.forward_kinematics(model, x[0]), (model.n_nodes, 4, 4)),
        "frame_pose": (lambda x: ls.frame_pose(model, x[0], "link 1", s=0.4), (4, 4)),
        "frame_jacobian": (lambda x: ls.frame_jacobian(model, x[0], "link 1", s=0.4), (6, model.nv)),
        "frame_jacobian_derivative": (
            lambda x: ls.frame_jacobian_derivative(model, x[0], x[1], "link 1", s=0.4),
            (6, model.nv),
        ),
        "frame_twist": (lambda x: ls.frame_twist(model, x[0], x[1], "link 1", s=0.4), (6,)),
        "frame_acceleration": (lambda x: ls.frame_acceleration(model, *x[:3], "link 1", s=0.4), (6,)),
        "inverse_dynamics": (lambda x: ls.inverse_dynamics(model, *x[:3]), (model.nv,)),
        "mass_matrix": (lambda x: ls.mass_matrix(model, x[0]), (model.nv, model.nv)),
        "coriolis_matrix": (lambda x: ls.coriolis_matrix(model, x[0], x[1]), (model.nv, model.nv)),
        "actuation_matrix": (lambda x: ls.actuation_matrix(model, x[0]), (model.nv, model.nu)),
        "path_lengths": (lambda x: ls.path_lengths(model, x[0]), (2,)),
        "external_force": (lambda x: ls.external_force(model, x[0], x[1]), (model.nv,)),
        "forward_dynamics": (lambda x: ls.forward_dynamics(model, x[0], x[1], x[3]), (model.nv,)),
        "kinetic energy": (lambda x: ls.energy(model, x[0], x[1]).kinetic, ()),
        "total energy": (lambda x: ls.energy(model, x[0], x[1]).total, ()),
        "integrate": (lambda x: ls.integrate(model, x[0], 0.1 * x[1]), (model.nq,)),
        "difference": (lambda x: ls.difference(model, np.broadcast_to(q0, x[0].shape), x[0]), (model.nv,)),
    }
    for name, (function, size) in functions.items():
        batch = np.asarray(function((q, v, a, u)))
        assert batch.shape == (*shape, *size), name
        for index in np.ndindex(*shape):
            single = np.asarray(function((q[index], v[index], a[index], u[index])))
            # the same operations; threads and vector widths may change the last bits, a solve multiplies them
            assert close(batch[index], single, 1e-6 if name == "forward_dynamics" else 1e-12), name
