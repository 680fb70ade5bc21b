"""Checks of constraint rows of any robot against differences."""

import numpy as np
import pytest

import lissom as ls


def state(model, seed=0):
    """A configuration off the constraints, a velocity, an acceleration and forces, all random."""
    rng = np.random.default_rng(seed)
    q = ls.integrate(model, model.neutral(), 0.5 * rng.normal(size=model.nv))
    return q, *rng.normal(size=(2, model.nv)), rng.normal(size=model.n_rows)


def along(model, q, f, move, h=1e-5):
    """The derivative of f(q) along a move of the tangent space, by differences of fourth order."""
    at_step = [f(ls.integrate(model, q, k * h * move)) for k in (-2, -1, 1, 2)]
    return (at_step[0] - 8.0 * at_step[1] + 8.0 * at_step[2] - at_step[3]) / (12.0 * h)


def by_q(model, q, f):
    """The derivative of f by q, with the last axis that of the coordinates."""
    return np.stack([along(model, q, f, move) for move in np.eye(model.nv)], axis=-1)


def check_derivatives(model, seed=0):
    """Derivatives of residuals, rows, rates and forces against differences, at a random state."""
    q, v, a, force = state(model, seed)
    found = ls.constraint_derivatives(model, q, v, a)

    def acceleration(q, v):
        return ls.constraint_jacobian(model, q) @ a + ls.constraint_jacobian_derivative(model, q, v) @ v

    def assert_near(x, y, error=1e-8):
        np.testing.assert_allclose(x, y, atol=error * max(1.0, np.abs(y).max()))

    assert_near(found.residual_q, by_q(model, q, lambda x: ls.loop_residual(model, x)))
    assert_near(found.velocity_q, by_q(model, q, lambda x: ls.constraint_jacobian(model, x) @ v))
    assert_near(found.acceleration_q, by_q(model, q, lambda x: acceleration(x, v)))
    slopes = [(acceleration(q, v + 1e-3 * e) - acceleration(q, v - 1e-3 * e)) / 2e-3 for e in np.eye(model.nv)]
    assert_near(found.acceleration_v, np.stack(slopes, axis=-1))
    assert_near(ls.constraint_jacobian_derivative(model, q, v),
                along(model, q, lambda x: ls.constraint_jacobian(model, x), v))  # fmt: skip
    assert_near(ls.constraint_force_derivative(model, q, force),
                by_q(model, q, lambda x: ls.constraint_jacobian(model, x).T @ force))  # fmt: skip


def check_derivatives_of_forward_dynamics(model, seed=1):
    """By q and v, against differences, at a random state that satisfies the positions."""
    q, v, *_ = state(model, seed)
    q = ls.assemble(model, q)
    by_place, by_speed, _ = ls.forward_dynamics_derivatives(model, q, v)
    wanted = by_q(model, q, lambda x: ls.forward_dynamics(model, x, v))
    np.testing.assert_allclose(by_place, wanted, atol=1e-7 * np.abs(wanted).max())
    slopes = [(ls.forward_dynamics(model, q, v + 1e-3 * e) - ls.forward_dynamics(model, q, v - 1e-3 * e)) / 2e-3
              for e in np.eye(model.nv)]  # fmt: skip
    wanted = np.stack(slopes, axis=-1)
    np.testing.assert_allclose(by_speed, wanted, atol=1e-8 * np.abs(wanted).max())


def check_wrenches(model, without=()):
    """The power of loop_wrenches on the relative motion of their frames is that of Aᵀ λ; `without` lists constraints
    that act on joints too, whose forces are zero here."""
    q, v, _, force = state(model)
    for name in without:
        force[model.loops.row_start[model.loops.names.index(name)]] = 0.0
    power = force @ ls.constraint_jacobian(model, q) @ v
    h, total = 1e-6, 0.0
    W = ls.loop_wrenches(model, q, force)
    poses = [
        np.concatenate([ls.forward_kinematics(model, ls.integrate(model, q, k * h * v)), np.eye(4)[None]])
        for k in (-1, 0, 1)
    ]
    for loop, (a, b) in enumerate(model.loops.node):
        A, B = model.loops.placement[loop]
        g = [np.linalg.solve(x[b] @ B, x[a] @ A) for x in poses]
        rate = (g[2] - g[0]) / (2 * h) @ np.linalg.inv(g[1])
        total += W[loop] @ [rate[2, 1], rate[0, 2], rate[1, 0], *rate[:3, 3]]
    assert total == pytest.approx(power, rel=1e-7)
