"""The residual of statics and its Jacobian, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.dynamics.forward_dynamics import run_residual
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.loads import Times
from lissom.dynamics.steady_motion import steady_velocity
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_FULL_TURN


def static_residual(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0, force: Any = 0.0
) -> np.ndarray | None:
    """The row of static_residuals of one configuration; None where it is refused."""
    rows, refused = static_residuals(model, q[None], u[None], t, factor, force)
    return None if refused[0] else rows[0]


def static_residuals(
    model: Model, q: np.ndarray, u: np.ndarray, t: Times, factor: float = 1.0, force: Any = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Of configurations (n, nq) under inputs (n, nu), ID(q, v, 0) − B(q) u − Aᵀ λ with loads, inputs, gravity and
    inertia forces scaled, zero in the rows of prescribed coordinates, whose forces take what is left there; then the
    residuals of loops. And which are refused, (n,): where a rod interval turns too far."""
    v = np.tile(steady_velocity(model, factor), (len(q), 1))
    w = run_residual(model, q, v, np.zeros_like(v), u, t, factor, force)
    rows = np.concatenate([w.host["tau"], w.host["gap"]], axis=1)
    refused = (w.status == STATUS_FULL_TURN) | ~np.isfinite(rows).all(axis=1)
    if w.status[~refused].any():
        w.raise_for_status()
    rows[:, model.prescribed.dof] = 0.0
    return rows, refused


def residual_jacobian(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0, force: Any = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """∂(ID(q, v, 0) − B(q) u − Aᵀ λ)/∂q in the tangent space, shape (nv, nv), with gravity, loads, u and the inertia
    forces of a steady motion v times factor; and the rows (n_rows, nv) of loops: A, and those of the residual."""
    at_rest = np.zeros(model.nv)
    K, _, _, w = residual_derivatives(model, q, steady_velocity(model, factor), at_rest, u, t, factor, force)
    return K, row_results(model, w, "A"), row_results(model, w, "A_q")
