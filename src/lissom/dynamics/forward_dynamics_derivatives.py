"""Exact derivatives of forward dynamics, from those of inverse dynamics at the acceleration a.

M ∂a/∂x = −∂(ID(q, v, a) − B(q) u)/∂x at fixed a,    M ∂a/∂u = B                                      (1)

With loops the derivatives on the right are taken at fixed λ too, and

    [M, −Aᵀ; A, 0] ∂(a; λ)/∂x = −∂(ID − B u − Aᵀ λ; A a + Ȧ v + 2 p A v + p² e)/∂x                         (2)

with p of forward_dynamics (2). Source: Mathew 2025 (50), (51).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.dynamics.actuation import input_response, input_rows
from lissom.dynamics.forward_dynamics import forward_dynamics, run_forward_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.launch.over_models import over_models
from lissom.launch.workspace import batch_of, flat, independent_rows, leading, row_slices, stack
from lissom.model.model import Model
from lissom.systems.bordered import solve_with_mass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_ROWS = ("A", "A_q", "rate_q", "acceleration_q", "acceleration_v")


def _parts(model: Model, n: int) -> Iterator[slice]:
    """Slices of n states for one launch each; single states if Python functions give derivatives."""
    return row_slices(n, 1) if model.calls_python else row_slices(n)


@over_models("q", "v", "u")
def forward_dynamics_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, u: ArrayLike | None = None, t: float = 0.0
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
    Accuracy: exact derivatives of the discrete model, times the condition number of M. With loops they are valid if
    the loops are closed.
    Source: Mathew 2025 eqs. (7), (9), (50), (51).
    """
    a = forward_dynamics(model, q, v, u, t)
    if model.n_rows:
        return _with_loops(model, q, v, u, a, t)
    rows = {"q": stack("q", q, model.nq), "v": stack("v", v, model.nv), "u": input_rows(model, u), "a": a}
    lead, n = leading(**rows), batch_of(a.shape[:-1])
    each = {name: flat(x, lead) for name, x in rows.items()}
    dq, dv, M = np.zeros((3, n, model.nv, model.nv))
    for part in _parts(model, n):
        q, v, a, u = (each[name][part] for name in ("q", "v", "a", "u"))
        dq[part], dv[part], M[part], _ = residual_derivatives(model, q, v, a, u, t)
    dq, dv, M = (x.reshape(*lead, model.nv, model.nv) for x in (dq, dv, M))
    B = input_response(model, rows["q"], rows["v"], rows["u"], t)
    B = np.broadcast_to(B, (*lead, model.nv, model.nu))
    given = model.prescribed.dof
    if len(given):
        B = B.copy()
        B[..., given, :] = dq[..., given, given] = 0.0
    da = np.linalg.solve(M, np.concatenate([-dq, -dv, B], axis=-1))
    return da[..., : model.nv], da[..., model.nv : 2 * model.nv], da[..., 2 * model.nv :]


def _with_loops(
    model: Model, q: Any, v: Any, u: Any, a: np.ndarray, t: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `forward_dynamics_derivatives`, for a robot with loops; a are the accelerations (..., nv)."""
    rows = {"q": stack("q", q, model.nq), "v": stack("v", v, model.nv), "u": input_rows(model, u), "a": a}
    lead, n = leading(**rows), batch_of(a.shape[:-1])
    each = {name: flat(x, lead) for name, x in rows.items()}
    nv, nu, found = model.nv, model.nu, []
    for part in _parts(model, n):
        q, v, u, a = (each[name][part] for name in ("q", "v", "u", "a"))
        force = run_forward_dynamics(model, q, v, u, t).host["force"].copy()
        B = np.broadcast_to(input_response(model, q, v, u, t), (len(q), nv, nu)).copy()
        B[:, model.prescribed.dof] = 0.0
        dq, dv, M, w = residual_derivatives(model, q, v, a, u, t, 1.0, force)
        loops = zip(*(row_results(model, w, name, (len(q),)) for name in _ROWS))
        kept = (independent_rows(w, k) for k in range(len(q)))
        found += [-_response(model, *x) for x in zip(dq, dv, M, loops, kept, repeat(0.0), -B)]
    da = np.array(found).reshape(*lead, nv, 2 * nv + nu)
    da[..., : 2 * nv][..., model.prescribed.dof, :] = 0.0
    da[..., model.prescribed.dof] = da[..., nv + model.prescribed.dof] = 0.0
    return da[..., :nv], da[..., nv : 2 * nv], da[..., 2 * nv :]


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
    """−∂a/∂(q, v) by (2), shape (nv, 2 nv); behind these, −∂a by further derivatives `more` (nv, m) of the residual."""
    dq, dv, M, w = residual_derivatives(model, q, v, a, u, t, 1.0, force)
    loops = tuple(row_results(model, w, name) for name in _ROWS)
    more = np.zeros((model.nv, 0)) if more is None else more
    return _response(model, dq, dv, M, loops, independent_rows(w), pull, more)


def _response(
    model: Model, dq: np.ndarray, dv: np.ndarray, M: np.ndarray, loops: tuple[np.ndarray, ...], kept: np.ndarray,
    pull: float, more: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The solution of (2) for a, with the opposite sign, shape (nv, 2 nv + m).

    Args:
        dq, dv, more: derivatives of the residual of the equation of motion, (nv, nv), (nv, nv) and (nv, m).
        loops: rows A of the loops and derivatives of their residuals, in the order of _ROWS, each (n_rows, nv).
        kept: indices of the independent rows. pull: p of (2).
    """
    A, A_q, rate_q, acceleration_q, acceleration_v = loops
    rows = A[kept]
    rows[:, model.prescribed.dof] = 0.0
    by_q, by_v = acceleration_q + 2.0 * pull * rate_q + pull**2 * A_q, acceleration_v + 2.0 * pull * A
    lower = np.hstack([by_q, by_v, np.zeros((model.n_rows, more.shape[1]))])[kept]
    return solve_with_mass(model, M, rows, np.hstack([dq, dv, more]), lower)
