"""Derivatives of forward dynamics, linearisation and modes."""

import numpy as np
import pytest
from robots import build, random_rigid_tree, random_state, random_tree
from scipy.linalg import expm

import lissom as ls


@pytest.mark.parametrize("seed", range(6))
def test_derivatives_of_forward_dynamics(seed):
    """da/dq, da/dv and da/du equal central differences of forward_dynamics on well-conditioned rigid trees."""
    robot = random_rigid_tree(seed)
    robot.add_joint_actuator("motor", next(name for name, link in robot.links.items() if link.joint.nv))
    model = robot.build()
    q, v, _, _ = random_state(robot, seed)
    u = np.ones(model.nu)
    exact = ls.forward_dynamics_derivatives(model, q, v, u, t=0.2)
    moves = (
        lambda d: ls.forward_dynamics(model, ls.integrate(model, q, d), v, u, t=0.2),
        lambda d: ls.forward_dynamics(model, q, v + d, u, t=0.2),
        lambda d: ls.forward_dynamics(model, q, v, u + d, t=0.2),
    )
    for matrix, move, size in zip(exact, moves, (model.nv, model.nv, model.nu), strict=True):
        steps = 1e-5 * np.eye(size)
        numeric = np.array([(move(d) - move(-d)) / 2e-5 for d in steps]).T
        np.testing.assert_allclose(matrix, numeric, rtol=0, atol=1e-7 * max(np.abs(numeric).max(), 1.0))


def test_derivatives_of_forward_dynamics_satisfy_their_equation():
    """M da/dq + dtau/dq = 0 at the acceleration found, on a hybrid tree, and a batch equals its members."""
    robot = random_tree(7)
    model = build(robot)
    states = [random_state(robot, k) for k in range(3)]
    q, v, _, u = (np.array(x) for x in zip(*states, strict=True))
    batch = ls.forward_dynamics_derivatives(model, q, v, u)
    for k in range(3):
        single = ls.forward_dynamics_derivatives(model, q[k], v[k], u[k])
        for many, one in zip(batch, single, strict=True):
            np.testing.assert_allclose(many[k], one, rtol=1e-9, atol=1e-9 * np.abs(one).max())
        M = ls.mass_matrix(model, q[k])
        B = ls.actuation_matrix(model, q[k])
        np.testing.assert_allclose(M @ single[2], B, rtol=0, atol=1e-9 * np.abs(B).max())


def test_modes_of_a_spring_pendulum():
    """A pendulum with a joint spring swings at sqrt((k + m g l)/(m l²)) hanging, and is unstable upside down."""
    m, length, k = 2.0, 0.5, 3.0
    robot = ls.Robot("pendulum")
    robot.add_link("bob", ls.RigidBody(m, com=(0, 0, -length)), ls.JointRevolute((0, 1, 0), stiffness=k))
    model = robot.build()
    g = 9.81
    hanging = ls.modes(model, [0.0]).frequencies[0]
    np.testing.assert_allclose(hanging, np.sqrt((k + m * g * length) / (m * length**2)), rtol=1e-12)
    robot.links.clear()
    robot.add_link("bob", ls.RigidBody(m, com=(0, 0, length)), ls.JointRevolute((0, 1, 0), stiffness=k))
    upside = ls.modes(robot.build(), [0.0]).frequencies[0]
    np.testing.assert_allclose(upside, -np.sqrt((m * g * length - k) / (m * length**2)), rtol=1e-12)


def test_linearization_of_a_damped_rod():
    """The eigenvalues of A are those of λ² M + λ D + K, with A from linearize at an equilibrium under gravity."""
    robot = ls.Robot("rod")
    material = ls.Material(young=1e6, density=1000, viscosity=1e3)
    robot.add_link("rod", ls.Rod(0.4, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=3, torsion=1), material))
    model = robot.build()
    q = ls.solve_statics(model).q
    system = ls.linearize(model, q)
    K, D, M = ls.tangent_stiffness(model, q), ls.damping_matrix(model), ls.mass_matrix(model, q)
    for value in np.linalg.eigvals(system.A):
        P = value**2 * M + value * D + K
        scale = np.abs(value) ** 2 * M + np.abs(value) * D + np.abs(K)
        assert np.linalg.svd(P / np.sqrt(np.outer(np.diag(scale), np.diag(scale))))[1][-1] < 1e-8
    assert system.B.shape == (2 * model.nv, 0)
    np.testing.assert_allclose(system.A[: model.nv, model.nv :], np.eye(model.nv))


def flow_rates(model, q, v, x, step=2e-4, part=1e-4):
    """dδq/dt at 0 by central differences, where δq runs from the nominal motion to one that starts x beside it."""
    n, found = model.nv, []
    for side in (1, -1):
        start, speed = ls.integrate(model, q, side * part * x[:n]), v + side * part * x[n:]
        ends = [
            ls.difference(model, ls.integrate(model, q, h * v), ls.integrate(model, start, h * speed))
            for h in (step, -step)
        ]
        found.append((ends[0] - ends[1]) / (2 * step))
    return (found[0] - found[1]) / (2 * part)


@pytest.mark.parametrize("seed", [1, 4, 9, 12])
def test_linearization_about_a_motion(seed):
    """About a random (q, v) the rows of δq are those of two neighbouring motions, spherical and free joints included,
    and those of δv the derivatives of the acceleration."""
    robot = random_tree(seed)
    model = build(robot)
    q, v, _, u = random_state(robot, seed)
    system, n = ls.linearize(model, q, u, v=v, t=0.2), model.nv
    rng = np.random.default_rng(seed)
    for x in rng.normal(size=(4, 2 * n)):
        np.testing.assert_allclose(system.A[:n] @ x, flow_rates(model, q, v, x), rtol=0, atol=2e-6)
    for block, exact in zip(np.hsplit(system.A[n:], 2), ls.forward_dynamics_derivatives(model, q, v, u, t=0.2)):
        np.testing.assert_allclose(block, exact, rtol=0, atol=1e-9 * np.abs(exact).max())
    np.testing.assert_array_equal(system.v, v)


def spinner():
    """A free body that spins about an axis of symmetry, with a soft gimballed head on that axis."""
    robot = ls.Robot("spinner", gravity=(0, 0, 0))
    robot.add_link("body", ls.RigidBody(1.0, (0, 0, -0.05), (2e-3, 2e-3, 3e-3)), ls.JointFree())
    head = ls.RigidBody(0.4, (0, 0, 0.1), (6e-4, 6e-4, 3e-4))
    robot.add_link("head", head, ls.JointSpherical(stiffness=2.0, damping=0.01), "body")
    return robot.build()


def test_small_motions_of_a_spinning_robot():
    """What runs beside the steady spin of a free robot moves as exp(A t) says, to second order of its size; all is seen
    from axes that turn along."""
    model = spinner()
    q, v = model.neutral(), np.zeros(9)
    v[2] = 7.0
    assert np.abs(ls.forward_dynamics(model, q, v)).max() < 1e-12
    system, size = ls.linearize(model, q, v=v), 1e-5
    x = np.random.default_rng(2).normal(size=18) * np.repeat([1.0, 5.0], 9)
    options = {"method": "dop853", "rtol": 1e-11, "atol": 1e-13, "t_eval": [0.0, 0.4]}
    nominal = ls.simulate(model, 0.4, q, v, **options)
    rows = []
    for side in (size, -size):
        end = ls.simulate(model, 0.4, ls.integrate(model, q, side * x[:9]), v + side * x[9:], **options)
        rows.append(np.append(ls.difference(model, nominal.q[-1], end.q[-1]), end.v[-1] - nominal.v[-1]))
    exact = expm(0.4 * system.A) @ x
    np.testing.assert_allclose((rows[0] - rows[1]) / (2 * size), exact, rtol=0, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize("make", [spinner])
def test_modes_are_those_of_the_linearization(make):
    """Damped exponents are eigenvalues of A, and shapes its vectors, of a spinning free robot and of one with a loop on
    a turntable; prescribed coordinates have none."""
    model = make()
    v = None
    if not model.n_motions:
        v = np.zeros(9)
        v[2] = 7.0
    q = model.neutral()
    found = ls.modes(model, q, v=v, damped=True)
    system = ls.linearize(model, q, v=v)
    n, scale = model.nv, np.abs(found.exponents).max()
    G = system.A[:n, :n]
    for s, x in zip(found.exponents, found.shapes.T):
        if abs(s) < 1e-3 * scale:
            continue
        z = np.append(x, s * x - G @ x)  # δv = δq̇ + ad_v δq
        left = system.A @ z - s * z
        assert np.abs(left).max() < 1e-6 * abs(s) * np.abs(z).max()
    assert not found.shapes[model.prescribed.dof].any()
    M = ls.mass_matrix(model, q)
    np.testing.assert_allclose(np.einsum("ik,ij,jk->k", found.shapes.conj(), M, found.shapes), 1.0, rtol=1e-9)


def test_damped_modes_of_an_oscillator():
    """s = −ζ ω ± i ω √(1 − ζ²), and two real ones where damping is more than critical."""
    for damping, count in ((0.6, 1), (16.0, 2)):
        robot = ls.Robot("oscillator")
        robot.add_link("cart", ls.RigidBody(2.0), ls.JointPrismatic((1, 0, 0), stiffness=18.0, damping=damping))
        found = ls.modes(robot.build(), [0.0], damped=True)
        exact = np.roots([2.0, damping, 18.0])
        expected = exact[exact.imag >= 0]
        np.testing.assert_allclose(np.sort_complex(found.exponents), np.sort_complex(expected), rtol=1e-12)
        if count == 1:
            np.testing.assert_allclose(found.damping_ratios, damping / 2 / np.sqrt(36.0), rtol=1e-12)


def test_loops_carry_others_along_with_a_prescribed_joint():
    """Of a four-bar the velocity about which is linearised keeps the loop closed, the crank as prescribed."""
    robot = ls.Robot("four-bar", gravity=(0, 0, 0))
    lengths = {"crank": 0.2, "coupler": 0.5, "rocker": 0.4}
    shift = {name: np.eye(4) for name in (*lengths, "ground")}
    for name, length in (*lengths.items(), ("ground", 0.45)):
        shift[name][0, 3] = length
    body = ls.RigidBody(0.3, (0.1, 0, 0), (1e-4, 1e-3, 1e-3))
    robot.add_link("crank", body, ls.JointRevolute((0, 0, 1)))
    robot.add_link("coupler", body, ls.JointRevolute((0, 0, 1)), "crank", placement=shift["crank"])
    robot.add_link("rocker", body, ls.JointRevolute((0, 0, 1)), placement=shift["ground"])
    robot.add_loop("pin", "coupler", "rocker", placement_a=shift["coupler"], placement_b=shift["rocker"],
                   joint=ls.JointRevolute((0, 0, 1)))  # fmt: skip
    robot.add_joint_motion("speed", "crank", position=lambda t: 0.7 + 3.0 * t, velocity=lambda t: 3.0,
                           acceleration=lambda t: 0.0)  # fmt: skip
    model = robot.build()
    with pytest.warns(ls.RedundancyWarning):
        q = ls.assemble(model, [0.7, 0.3, 1.4])
    v = ls.linearize(model, q).v
    assert v[0] == 3.0
    assert np.abs(ls.constraint_jacobian(model, q)[1:] @ v).max() < 1e-10
    assert len(ls.modes(model, q).frequencies) == 0


@pytest.mark.parametrize("call", [ls.linearize, ls.modes])
def test_a_wrong_velocity_is_refused(call):
    """v of the wrong size or not finite is refused by name."""
    for v in (np.zeros(3), np.full(9, np.nan)):
        with pytest.raises(ls.ShapeError, match=r"^v: expected finite values of shape \(9,\)"):
            call(spinner(), spinner().neutral(), v=v)
