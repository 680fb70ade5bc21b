"""Couplings of joints: against reduced coordinates, closed forms, real mechanisms and differences."""

from functools import lru_cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lissom as ls

LENGTH = 0.4


def shifted(x=0.0, y=0.0, z=0.0):
    """A placement without rotation."""
    g = np.eye(4)
    g[:3, 3] = x, y, z
    return g


def arm(*couplings, tip=False):
    """A chain of four skew revolute joints with couplings given as (joints, ratios, offset). With `tip` it carries a
    motor on each joint and a rod."""
    robot = ls.Robot("arm")
    for k in range(4):
        body = ls.RigidBody.box(LENGTH, 0.1, 0.05, density=500.0)
        joint = ls.JointRevolute((0.0, 1.0, 0.2) if k % 2 else (0.0, 0.3, 1.0))
        parent, place = (f"l{k - 1}", shifted(0.3, 0.0, 0.02 * k)) if k else (None, None)
        robot.add_link(f"l{k}", body, joint, parent, placement=place)
        if tip:
            robot.add_joint_actuator(f"m{k}", f"l{k}")
    if tip:
        rubber = ls.Material(young=1e6, poisson=0.4, density=1000.0, damping_time=0.01)
        rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1, bending_z=1), rubber)
        robot.add_link("rod", rod, parent="l3", placement=shifted(0.2))
    for k, (joints, ratios, offset) in enumerate(couplings):
        robot.add_coupling(f"c{k}", joints, ratios, offset)
    return robot


LINEAR = (["l0", "l2"], [1.0, -0.5], 0.1)
CURVED = (["l1", "l3"], [1.0, ls.Expression("-sin(q) - 0.3*q**2", "q")], 0.0)


@lru_cache
def both():
    """The arm with both couplings, and without, as models."""
    return arm(LINEAR, CURVED).build(), arm().build()


def state(seed=0):
    """A state of the coupled arm: l2 and l3 are free, l0 and l1 follow."""
    rng = np.random.default_rng(seed)
    y, w = rng.normal(size=(2, 2))
    G = onto(y)
    return np.array([0.1 + 0.5 * y[0], np.sin(y[1]) + 0.3 * y[1] ** 2, *y]), G @ w, G, w, y


def onto(y):
    """∂q/∂y of the coupled arm."""
    return np.array([[0.5, 0.0], [0.0, np.cos(y[1]) + 0.6 * y[1]], [1.0, 0.0], [0.0, 1.0]])


def change_of_onto(y, w):
    """Its rate times w."""
    return np.array([0.0, (0.6 - np.sin(y[1])) * w[1] ** 2, 0.0, 0.0])


def reduced_acceleration(free, y, w):
    """Acceleration of y by projection of the uncoupled arm."""
    q, G = np.array([0.1 + 0.5 * y[0], np.sin(y[1]) + 0.3 * y[1] ** 2, *y]), onto(y)
    M = ls.mass_matrix(free, q)
    bias = ls.inverse_dynamics(free, q, G @ w, change_of_onto(y, w))
    return np.linalg.solve(G.T @ M @ G, -G.T @ bias)


@pytest.mark.parametrize("seed", range(5))
def test_accelerations_equal_those_in_reduced_coordinates(seed):
    """The accelerations are those of the coordinates that the couplings leave, and the forces do no work."""
    model, free = both()
    q, v, G, w, y = state(seed)
    assert np.abs(ls.loop_residual(model, q)).max() < 1e-13
    expected = G @ reduced_acceleration(free, y, w) + change_of_onto(y, w)
    np.testing.assert_allclose(ls.forward_dynamics(model, q, v), expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    A = ls.constraint_jacobian(model, q)
    np.testing.assert_allclose(A @ G, 0.0, atol=1e-12)


@pytest.mark.parametrize("method", ["auto", "esdirk"])
def test_motion_equals_that_in_reduced_coordinates(method):
    """A motion of two seconds equals an integration of the reduced coordinates by another solver."""
    model, free = both()
    q, v, _, w, y = state(1)
    found = ls.simulate(model, 1.0, q, v, method=method, rtol=1e-9, atol=1e-11)
    other = solve_ivp(
        lambda t, x: np.concatenate([x[2:], reduced_acceleration(free, x[:2], x[2:])]), (0, 1), [*y, *w],
        method="DOP853", rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(found.q[-1, 2:], other.y[:2, -1], atol=2e-6)
    assert np.abs(ls.loop_residual(model, found.q)).max() < 1e-9


def differences(function, x, step=1e-6):
    """Central differences of a function of x, the derivative on the last axis."""
    return np.stack(
        [(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))], axis=-1
    )  # fmt: skip


def test_derivatives_of_the_rows_equal_differences():
    """Derivatives of residuals, rates, accelerations and forces, away from the couplings too."""
    model, _ = both()
    rng = np.random.default_rng(2)
    q, v, a = rng.normal(size=(3, 4))
    d = ls.constraint_derivatives(model, q, v, a)

    def acceleration(q, v):
        return ls.constraint_jacobian(model, q) @ a + ls.constraint_jacobian_derivative(model, q, v) @ v

    pairs = [
        (d.residual_q, differences(lambda x: ls.loop_residual(model, x), q)),
        (d.velocity_q, differences(lambda x: ls.constraint_jacobian(model, x) @ v, q)),
        (d.acceleration_q, differences(lambda x: acceleration(x, v), q)),
        (d.acceleration_v, differences(lambda x: acceleration(q, x), v)),
    ]
    force = rng.normal(size=2)
    pairs.append(
        (
            ls.constraint_force_derivative(model, q, force),
            differences(lambda x: ls.constraint_jacobian(model, x).T @ force, q),
        )
    )
    for exact, found in pairs:
        np.testing.assert_allclose(exact, found, rtol=0, atol=1e-8)


def test_derivatives_of_accelerations_equal_differences():
    """forward_dynamics_derivatives of a coupled arm with a rod."""
    model = arm(LINEAR, CURVED, tip=True).build()
    q, v, *_ = state(3)
    q, v = np.append(q, np.full(model.nq - 4, 0.3)), np.append(v, np.full(model.nv - 4, -0.2))
    u = np.array([0.3, -0.2, 0.1, 0.4])
    by_q, by_v, by_u = ls.forward_dynamics_derivatives(model, q, v, u)
    size = np.abs(by_q).max()
    np.testing.assert_allclose(
        by_q, differences(lambda x: ls.forward_dynamics(model, x, v, u), q), rtol=0, atol=1e-7 * size
    )
    np.testing.assert_allclose(
        by_v, differences(lambda x: ls.forward_dynamics(model, q, x, u), v), rtol=0, atol=1e-7 * np.abs(by_v).max()
    )
    np.testing.assert_allclose(
        by_u, differences(lambda x: ls.forward_dynamics(model, q, v, x), u), rtol=0, atol=1e-7 * np.abs(by_u).max()
    )


def test_equilibrium_is_that_of_the_reduced_coordinates():
    """At rest the projected forces vanish, and derivatives by inputs and by the offset equal differences."""
    robot = arm(LINEAR, CURVED, tip=True)
    model = robot.build()
    u = np.array([0.3, -0.2, 0.1, 0.4])
    found = ls.solve_statics(model, u)
    assert np.abs(ls.loop_residual(model, found.q)).max() < 1e-13
    A = ls.constraint_jacobian(model, found.q)
    still = ls.forward_dynamics(model, found.q, np.zeros(model.nv), u)
    np.testing.assert_allclose(still, 0.0, atol=1e-7)
    free = arm(tip=True).build()
    left = ls.inverse_dynamics(free, found.q, *np.zeros((2, model.nv))) - ls.actuation_matrix(free, found.q) @ u
    np.testing.assert_allclose(left, A.T @ found.multipliers, atol=1e-9)
    way = np.linspace(1.0, 2.0, model.nv)
    d = ls.equilibrium_derivatives(found, way, parameters=["c0.offset"])

    def along(x):
        other = ls.solve_statics(model.with_({"c0.offset": 0.1 + x}), u, found.q)
        return way @ other.q

    np.testing.assert_allclose(d.parameters["c0.offset"], (along(1e-5) - along(-1e-5)) / 2e-5, rtol=1e-6)


def test_gradient_of_a_rollout():
    """The gradient of a motion by start, inputs and the offset agrees with differences."""
    model = arm(LINEAR, CURVED, tip=True).build()
    q, v, *_ = state(4)
    q, v = np.append(q, np.zeros(model.nq - 4)), np.append(0.1 * v, np.zeros(model.nv - 4))
    u = np.random.default_rng(0).normal(size=(20, 4))
    motion = ls.rollout(model, q, v, u, dt=5e-3, tolerance=1e-13)
    gradient = motion.backward(dL_dq=2.0 * motion.q, parameters=["c0.offset"])
    check = ls.check_gradient(motion, lambda m: float((m.q**2).sum()), gradient)
    assert check.worst < 1e-6, check


def test_gears_have_the_inertia_of_both_shafts():
    """Two wheels with gear ratio n: the first shaft feels I₁ + n² I₂."""
    n, I1, I2 = 3.0, 0.2, 0.05
    robot = ls.Robot("gears", gravity=(0, 0, 0))
    for name, inertia in (("motor", I1), ("wheel", I2)):
        robot.add_link(name, ls.RigidBody(1.0, (0, 0, 0), np.diag([inertia] * 3)), ls.JointRevolute((0, 0, 1)))
    robot.add_joint_actuator("torque", "motor")
    robot.add_coupling("gear", ["wheel", "motor"], [1.0, n])  # the wheels turn in opposite directions
    model = robot.build()
    a = ls.forward_dynamics(model, np.zeros(2), np.zeros(2), [2.0])
    np.testing.assert_allclose(a, np.array([1.0, -n]) * 2.0 / (I1 + n**2 * I2), rtol=1e-14)


def test_a_differential_balances_its_shafts():
    """The case turns at the mean of both shafts, and a torque on it splits into equal parts."""
    robot = ls.Robot("differential", gravity=(0, 0, 0))
    inertias = {"case": 0.3, "left": 0.1, "right": 0.4}
    for name, inertia in inertias.items():
        robot.add_link(name, ls.RigidBody(1.0, (0, 0, 0), np.diag([inertia] * 3)), ls.JointRevolute((0, 0, 1)))
    robot.add_joint_actuator("torque", "case")
    robot.add_coupling("gear", ["left", "right", "case"], [1.0, 1.0, -2.0])
    a = ls.forward_dynamics(robot.build(), np.zeros(3), np.zeros(3), [1.0])
    assert abs(a[1] + a[2] - 2.0 * a[0]) < 1e-14
    np.testing.assert_allclose(0.1 * a[1], 0.4 * a[2], rtol=1e-13)


def slider_crank(coupled):
    """A crank and a slider, joined by a massless rod (a loop), or by the function of the crank's angle."""
    r, rod = 0.1, 0.3
    robot = ls.Robot("press")
    robot.add_link("crank", ls.RigidBody.box(0.2, 0.03, 0.03, density=2000.0), ls.JointRevolute((0, 1, 0)))
    robot.add_link("slider", ls.RigidBody.box(0.05, 0.05, 0.05, density=3000.0), ls.JointPrismatic((1, 0, 0)))
    if coupled:
        f = lambda q: -(r * np.cos(q) + np.sqrt(rod**2 - (r * np.sin(q)) ** 2)) + r + rod  # noqa: E731
        robot.add_coupling("press", ["slider", "crank"], [1.0, f])
    else:
        body = ls.RigidBody(0.0, (0, 0, 0), np.zeros((3, 3)))
        robot.add_link("coupler", body, ls.JointRevolute((0, 1, 0)), "crank", placement=shifted(r))
        robot.add_loop("pin", "coupler", "slider", placement_a=shifted(rod), placement_b=shifted(r + rod),
                       joint=ls.JointRevolute((0, 1, 0)))  # fmt: skip
    return robot.build()


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_a_function_replaces_a_mechanism():
    """A slider that follows its crank by a Python function accelerates as one that a massless rod drives."""
    loop, coupled = slider_crank(False), slider_crank(True)
    for angle in (0.3, 1.2, 2.5):
        x = 0.1 * np.cos(angle) + np.sqrt(0.09 - (0.1 * np.sin(angle)) ** 2) - 0.4
        q = ls.assemble(loop, [angle, x, -angle], fixed=["crank"])
        A = ls.constraint_jacobian(loop, q)
        v = np.concatenate([[2.0], -np.linalg.lstsq(A[:, 1:], A[:, 0] * 2.0, rcond=None)[0]])
        expected = ls.forward_dynamics(loop, q, v)
        np.testing.assert_allclose(ls.forward_dynamics(coupled, q[:2], v[:2]), expected[:2], rtol=1e-8, atol=1e-9)


def test_batches_repeat_single_runs():
    """Accelerations of a batch and of models of a batch equal single ones to the bit."""
    model, _ = both()
    states = [state(k) for k in range(3)]
    q, v = np.array([s[0] for s in states]), np.array([s[1] for s in states])
    a = ls.forward_dynamics(model, q, v)
    for k in range(3):
        np.testing.assert_array_equal(a[k], ls.forward_dynamics(model, q[k], v[k]))
    offsets = [0.0, 0.1, 0.4]
    many = model.batch("c0.offset", offsets)
    e = ls.loop_residual(many, q)
    np.testing.assert_allclose(e[:, 0], 0.1 - np.array(offsets), atol=1e-15)


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_couplings_and_loops_together():
    """A four-bar whose rocker drives a wheel by gears moves as the loop alone with the wheel's inertia added."""

    def mechanism(geared):
        robot = ls.Robot("four-bar")
        body = ls.RigidBody.box(0.3, 0.02, 0.02, density=1000.0)
        robot.add_link("crank", body, ls.JointRevolute((0, 1, 0)))
        robot.add_link("coupler", body, ls.JointRevolute((0, 1, 0)), "crank", placement=shifted(0.3))
        armature = 0.0 if geared else 4.0 * 0.02
        robot.add_link("rocker", body, ls.JointRevolute((0, 1, 0), armature=armature), placement=shifted(0.5))
        robot.add_loop("pin", "coupler", "rocker", placement_a=shifted(0.4), placement_b=shifted(0.3),
                       joint=ls.JointRevolute((0, 1, 0)))  # fmt: skip
        if geared:
            robot.add_link("wheel", ls.RigidBody(1.0, (0, 0, 0), np.diag([0.02] * 3)), ls.JointRevolute((1, 0, 0)))
            robot.add_coupling("gear", ["wheel", "rocker"], [1.0, -2.0])
        return robot.build()

    geared, plain = mechanism(True), mechanism(False)
    q = ls.assemble(plain, [-1.0, 1.0, -1.2], fixed=["crank"])
    whole = np.append(q, 2.0 * q[2])
    a, b = (ls.forward_dynamics(m, x, np.zeros(len(x))) for m, x in ((geared, whole), (plain, q)))
    np.testing.assert_allclose(a[:3], b, rtol=1e-9)
    np.testing.assert_allclose(a[3], 2.0 * a[2], rtol=1e-12)
    motion = ls.simulate(geared, 0.3, whole, method="generalized_alpha", dt=1e-3)
    other = ls.simulate(plain, 0.3, q, method="generalized_alpha", dt=1e-3)
    np.testing.assert_allclose(motion.q[:, :3], other.q, atol=1e-6)


def test_files_keep_couplings(tmp_path):
    """A saved robot has the same couplings; a Python function cannot be saved, and the error names the alternatives."""
    robot = arm(LINEAR, CURVED, (["l0", "l1", "l3"], [1.0, ls.Tabulated([-2.0, 0.0, 1.0, 3.0], [0.1, 0.0, 0.3, 1.0]),
                                                      -2.0], 0.2))  # fmt: skip
    ls.save_robot(robot, tmp_path / "arm.yaml")
    again = ls.load_robot(tmp_path / "arm.yaml")
    q = np.random.default_rng(0).normal(size=4)
    np.testing.assert_array_equal(ls.loop_residual(again.build(), q), ls.loop_residual(robot.build(), q))
    robot.add_coupling("f", ["l1", "l2"], [1.0, np.tanh])
    with pytest.raises(ls.ModelError, match=r"coupling 'f'.*cannot be saved.*Expression\(..., 'q'\)"):
        ls.save_robot(robot, tmp_path / "arm.yaml")


@pytest.mark.parametrize(
    ("couplings", "message"),
    [
        ([(["l0", "l9"], [1, 1], 0)], "coupling 'c0': joints.*'l9'"),
        ([(["l0", "l0"], [1, 1], 0)], "coupling 'c0': joints: must not name a joint twice"),
        ([(["l0", "l1"], [1], 0)], "coupling 'c0': ratios: must hold 2 numbers or functions"),
        ([(["l0", "l1"], [1, 0.0], 0)], "ratio of joint 'l1': must not be zero"),
        ([(["l0", "l1"], [1, np.nan], 0)], "ratio of joint 'l1'"),
        ([(["l0", "l1"], [1, -1], np.inf)], "coupling 'c0': offset"),
        ([("l0", [1], 0)], "coupling 'c0': joints: must be a list of names"),
        ([(["l0", "l1"], [1, lambda q: abs(q - 0.3)], 0)], "ratio of joint 'l1': must be smooth between"),
        ([(["l0", "l1"], [1, np.sqrt], 0)], "ratio of joint 'l1'"),
        (
            [(["l0", "l1"], [1, -1], 0), (["l1", "l2"], [1, -2], 0), (["l0", "l2"], [1, -2], 0)],
            "coupling 'c2': must not follow from the couplings before it",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_bad_couplings(couplings, message):
    """The error names the coupling, the rule and the value."""
    with pytest.raises(ls.ModelError, match=message):
        arm(*couplings).build()


def test_joints_of_a_coupling_have_one_coordinate():
    """A spherical joint and a rigid connection have none to couple."""
    robot = arm()
    robot.add_link("ball", ls.RigidBody.sphere(0.1, density=1.0), ls.JointSpherical(), "l3")
    robot.add_coupling("c", ["l0", "ball"], [1.0, 1.0])
    with pytest.raises(ls.ModelError, match="coupling 'c': joint 'ball': each joint must have one coordinate"):
        robot.build()


def test_locked_joints_cannot_be_coupled_alone():
    """A coupling whose joints all have prescribed motions is refused; one of them drives the other."""
    robot = arm(LINEAR)
    robot.add_joint_motion("m0", "l0", position=ls.Expression("0.1*sin(t)", "t"))
    driven = robot.build()
    found = ls.simulate(driven, 0.2, ls.assemble(driven, np.zeros(4)), method="generalized_alpha", dt=1e-3)
    np.testing.assert_allclose(found.q[:, 2], 2.0 * (found.q[:, 0] - 0.1), atol=1e-9)
    robot.add_joint_motion("m2", "l2", position=0.0)
    with pytest.raises(ls.ModelError, match="coupling 'c0': must not have prescribed motions for all of its joints"):
        robot.build()


def test_an_open_start_is_named():
    """A start away from the coupling is refused with its name and its size."""
    model, _ = both()
    with pytest.raises(ls.ModelError, match=r"coupling 'c0' is off by 0\.1 rad or m"):
        ls.simulate(model, 0.1, np.zeros(4))


@pytest.mark.parametrize("stops", [(20.0, np.inf), (-np.inf, -20.0), (-1.0, np.inf), (30.0, 31.0)])
def test_functions_reach_beyond_one_stop(stops):
    """Purpose: a joint with one stop far from zero has its function beyond this stop, also through kernels."""
    robot = ls.Robot("one stop")
    slide = ls.JointPrismatic(limits=stops, limit_stiffness=1e3)
    robot.add_link("a", ls.RigidBody.box(0.1, 0.1, 0.1, density=1e3), slide)
    robot.add_link("b", ls.RigidBody.box(0.1, 0.1, 0.1, density=1e3), ls.JointPrismatic())
    robot.add_coupling("follows", ["a", "b"], [ls.Expression("sin(q)", "q"), -1.0])
    model = robot.build()
    end = stops[0] if np.isfinite(stops[0]) else stops[1]
    for x in end + np.array([0.1, 0.9, 7.0]) * (1.0 if np.isfinite(stops[0]) else -1.0):
        if stops[0] < x < stops[1]:
            np.testing.assert_allclose(ls.constraint_jacobian(model, [x, np.sin(x)]), [[np.cos(x), -1.0]], atol=1e-11)
