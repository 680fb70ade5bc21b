"""The residual of statics and its Jacobian, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.dynamics.forward_dynamics import run_residual
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.steady_motion import steady_velocity
from lissom.model.model import Model
from lissom.sweep.scratch import STATUS_FULL_TURN


def static_residual(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0, force: Any = 0.0
) -> np.ndarray | None:
    """ID(q, v, 0) − B(q) u − Aᵀ λ with loads, inputs, gravity and inertia forces scaled, zero in the rows of prescribed
    coordinates, whose forces take what is left there; then the residuals of loops. None where a rod interval turns too
    far."""
    v = steady_velocity(model, factor)[None]
    w = run_residual(model, q[None], v, np.zeros_like(v), u[None], t, factor, force)
    r = np.concatenate([w.host["tau"][0], w.host["gap"][0]])
    if w.status[0] == STATUS_FULL_TURN or not np.isfinite(r).all():
        return None
    w.raise_for_status()
    r[model.prescribed.dof] = 0.0
    return r


def residual_jacobian(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0, force: Any = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """∂(ID(q, v, 0) − B(q) u − Aᵀ λ)/∂q in the tangent space, shape (nv, nv), with gravity, loads, u and the inertia
    forces of a steady motion v times factor; and the rows (n_rows, nv) of loops: A, and those of the residual."""
    at_rest = np.zeros(model.nv)
    K, _, _, w = residual_derivatives(model, q, steady_velocity(model, factor), at_rest, u, t, factor, force)
    return K, row_results(model, w, "A"), row_results(model, w, "A_q")
