"""Derivatives of forward dynamics, linearisation and modes."""

import numpy as np
import pytest
from robots import build, random_rigid_tree, random_state, random_tree

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
