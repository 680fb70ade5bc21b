"""Exact derivatives of forward dynamics, from those of inverse dynamics at the acceleration found.

M ∂a/∂x = −∂(ID(q, v, a) − B(q) u)/∂x at fixed a,    M ∂a/∂u = B                                      (1)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.dynamics.actuation import actuation_matrix
from lissom.dynamics.forward_dynamics import forward_dynamics, input_rows
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.dynamics.workspace import batch_of, leading, stack
from lissom.model.model import Model


def forward_dynamics_derivatives(
    model: Model, q: Any, v: Any, u: Any = None, t: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exact derivatives of forward_dynamics.

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
        u: inputs, shape (..., nu); None is zero. t: time of the point loads [s].
    Returns:
        (da_dq, da_dv, da_du) of shapes (..., nv, nv), (..., nv, nv) and (..., nv, nu); da_dq is along the tangent space
        of `integrate`. Rows and columns of prescribed coordinates are zero.
    Raises:
        ShapeError, ModelError: as forward_dynamics.
    Accuracy: exact derivatives of the discrete model, times the condition number of M.
    Source: Mathew 2025 eqs. (7), (9).
    """
    a = forward_dynamics(model, q, v, u, t)
    rows = {"q": stack("q", q, model.nq), "v": stack("v", v, model.nv), "u": input_rows(model, u), "a": a}
    lead, n = leading(**rows), batch_of(a.shape[:-1])
    flat = {name: np.broadcast_to(x, lead + x.shape[-1:]).reshape(n, x.shape[-1]) for name, x in rows.items()}
    found = [residual_derivatives(model, *x, t) for x in zip(flat["q"], flat["v"], flat["a"], flat["u"])]
    dq, dv, M = (np.array(x).reshape(*lead, model.nv, model.nv) for x in (zip(*found) if n else ([], [], [])))
    B = np.broadcast_to(actuation_matrix(model, q), (*lead, model.nv, model.nu))
    held = model.motion_dof
    if len(held):
        B = B.copy()
        B[..., held, :] = dq[..., held, held] = 0.0
    answer = np.linalg.solve(M, np.concatenate([-dq, -dv, B], axis=-1))
    return answer[..., : model.nv], answer[..., model.nv : 2 * model.nv], answer[..., 2 * model.nv :]
