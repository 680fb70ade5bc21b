"""Exact derivatives of forward dynamics, from those of inverse dynamics at the acceleration found.

M ∂a/∂x = −∂(ID(q, v, a) − B(q) u)/∂x at fixed a,    M ∂a/∂u = B                                      (1)

With loops λ is held fixed as well on the right of (1), and

    [M, −Aᵀ; A, 0] ∂(a; λ)/∂x = −∂(ID − B u − Aᵀ λ; A a + Ȧ v + 2 p A v + p² e)/∂x                         (2)

p pulls back onto the loops (forward_dynamics (2)). Source: Mathew 2025 (50), (51).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.dynamics.forward_dynamics import forward_dynamics, input_rows, run_forward_dynamics
from lissom.dynamics.independent_rows import independent_rows, solve_with_mass
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.tensions import input_response
from lissom.launch.workspace import batch_of, leading, stack
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
    Accuracy: exact derivatives of the discrete model, times the condition number of M. With loops they hold where
    these are closed.
    Source: Mathew 2025 eqs. (7), (9), (50), (51).
    """
    a = forward_dynamics(model, q, v, u, t)
    if model.n_rows:
        return _with_loops(model, q, v, u, a, t)
    rows = {"q": stack("q", q, model.nq), "v": stack("v", v, model.nv), "u": input_rows(model, u), "a": a}
    lead, n = leading(**rows), batch_of(a.shape[:-1])
    flat = {name: np.broadcast_to(x, lead + x.shape[-1:]).reshape(n, x.shape[-1]) for name, x in rows.items()}
    found = [residual_derivatives(model, *x, t)[:3] for x in zip(flat["q"], flat["v"], flat["a"], flat["u"])]
    dq, dv, M = (np.array(x).reshape(*lead, model.nv, model.nv) for x in (zip(*found) if n else ([], [], [])))
    B = np.broadcast_to(input_response(model, rows["q"], rows["u"]), (*lead, model.nv, model.nu))
    held = model.motion_dof
    if len(held):
        B = B.copy()
        B[..., held, :] = dq[..., held, held] = 0.0
    answer = np.linalg.solve(M, np.concatenate([-dq, -dv, B], axis=-1))
    return answer[..., : model.nv], answer[..., model.nv : 2 * model.nv], answer[..., 2 * model.nv :]


def _with_loops(
    model: Model, q: Any, v: Any, u: Any, a: np.ndarray, t: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same with loops, one state after another."""
    rows = {"q": stack("q", q, model.nq), "v": stack("v", v, model.nv), "u": input_rows(model, u), "a": a}
    lead, n = leading(**rows), batch_of(a.shape[:-1])
    flat = {name: np.broadcast_to(x, lead + x.shape[-1:]).reshape(n, x.shape[-1]) for name, x in rows.items()}
    nv, nu, found = model.nv, model.nu, []
    for q_k, v_k, u_k, a_k in zip(flat["q"], flat["v"], flat["u"], flat["a"]):
        force = run_forward_dynamics(model, q_k[None], v_k[None], u_k[None], t).host["force"][0].copy()
        B = input_response(model, q_k, u_k)
        B[model.motion_dof] = 0.0
        found.append(-constrained_response(model, q_k, v_k, a_k, u_k, t, force, 0.0, -B))
    answer = np.array(found).reshape(*lead, nv, 2 * nv + nu)
    answer[..., : 2 * nv][..., model.motion_dof, :] = 0.0
    answer[..., model.motion_dof] = answer[..., nv + model.motion_dof] = 0.0
    return answer[..., :nv], answer[..., nv : 2 * nv], answer[..., 2 * nv :]


def constrained_response(
    model: Model,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    u: np.ndarray,
    t: float,
    force: np.ndarray,
    pull: float,
    more: np.ndarray | None = None,
) -> np.ndarray:
    """−∂a/∂(q, v) by (2), shape (nv, 2 nv); or with more columns of the force that is left."""
    dq, dv, M, w = residual_derivatives(model, q, v, a, u, t, 1.0, force)
    A, A_q, rate_q, turn_q, turn_v = (row_results(model, w, x) for x in ("A", "A_q", "rate_q", "turn_q", "turn_v"))
    more = np.zeros((model.nv, 0)) if more is None else more
    kept = independent_rows(model, A)
    rows = A[kept]
    rows[:, model.motion_dof] = 0.0
    by_q, by_v = turn_q + 2.0 * pull * rate_q + pull**2 * A_q, turn_v + 2.0 * pull * A
    lower = np.hstack([by_q, by_v, np.zeros((model.n_rows, more.shape[1]))])[kept]
    return solve_with_mass(model, M, rows, np.hstack([dq, dv, more]), lower)
