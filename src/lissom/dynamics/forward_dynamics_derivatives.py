"""Exact derivatives of forward dynamics.

They follow from those of inverse dynamics at the acceleration a:

    M ∂a/∂x = −∂(ID(q, v, a) − B(q) u)/∂x at fixed a,    M ∂a/∂u = B                                  (1)

With loops the derivatives on the right are taken at fixed λ too, and

    [M, −Aᵀ; A, 0] ∂(a; λ)/∂x = −∂(ID − B u − Aᵀ λ; A a + Ȧ v + 2 p A v + p² e)/∂x                         (2)

with p of (2) of forward_dynamics.

Source: Mathew 2025 eqs. (43)-(44), (46)-(51).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.dynamics.actuation import has_constant_response, input_response, input_rows, warn_of_pushing
from lissom.dynamics.forward_dynamics import (
    depends_on_state_only,
    forward_dynamics,
    prescribed_accelerations,
    raise_if_massless,
    record_accelerations,
    run_forward_dynamics,
)
from lissom.dynamics.inverse_dynamics_derivatives import (
    record_residual_derivatives,
    residual_derivatives,
    row_results,
)
from lissom.dynamics.loads import put_loads
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers, loop_buffers
from lissom.launch.compiling import free_of_forces
from lissom.launch.over_models import over_models
from lissom.launch.workspace import (
    batch_of,
    call_of,
    filled_workspace,
    flat,
    independent_rows,
    leading,
    row_slices,
    stack,
)
from lissom.lie import so3
from lissom.lie.types import kernel_options, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import traversal
from lissom.passes.columns import Matrix, column_width
from lissom.passes.scratch import STATUS_SINGULAR, ScratchStruct, acting_flags
from lissom.systems.bordered import solve_with_mass
from lissom.systems.mass_response import tree_factor, tree_response

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_FAMILY = "forward_dynamics_derivatives"


@wp.func
def fix_rows(t: Tables, i: int, width: int, columns: int, M: Matrix, dq: Matrix, dv: Matrix, du: Matrix):
    """Replace the rows of prescribed coordinates in (1) by the identity in M and by zeros on the right, where their
    columns are zero, too."""
    for e in range(t.prescribed.dof.shape[0]):
        k = t.prescribed.dof[e]
        for j in range(t.nv):
            M[i, k * width + j] = so3.ZERO
            M[i, j * width + k] = so3.ZERO
            dq[i, k * width + j] = so3.ZERO
            dq[i, j * width + k] = so3.ZERO
            dv[i, k * width + j] = so3.ZERO
            dv[i, j * width + k] = so3.ZERO
        M[i, k * width + k] = so3.ONE
        for j in range(columns):
            du[i, k * columns + j] = so3.ZERO


@free_of_forces
def mass_response_kernel(act: Acting) -> Any:
    """Kernel that solves (1): derivatives of the residual by q and v are replaced by those of a, and du by M⁻¹ B."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def mass_responses(
        t: TablesStruct, s: ScratchStruct, B: Matrix, M: Matrix, work: Matrix, dq: Matrix, dv: Matrix, du: Matrix,
        first: int,
    ):  # fmt: skip
        i = first + wp.tid()
        width = M.shape[1] / t.nv
        columns = du.shape[1] / t.nv
        for j in range(du.shape[1]):
            du[i, j] = -B[i, j]
        fix_rows(t, i, width, columns, M, dq, dv, du)
        pivot = tree_factor(t.nv, width, i, M, work)
        if pivot == 0:
            tree_response(t.nv, width, width, i, M, dq)
            tree_response(t.nv, width, width, i, M, dv)
            tree_response(t.nv, width, columns, i, M, du)
            traversal.inspect_result(s, i, dq)
            traversal.inspect_result(s, i, dv)
            traversal.inspect_result(s, i, du)
        elif s.status[i] == 0:
            s.status[i] = STATUS_SINGULAR + pivot

    return mass_responses


def input_width(model: Model) -> int:
    """Length of a row of derivatives by inputs: nu rounded up to a multiple of 8."""
    return (model.nu + 7) // 8 * 8


def forward_dynamics_derivatives_buffers(model: Model, batch: int) -> Buffers:
    """Buffers of three kernels: accelerations, derivatives of inverse dynamics there, and (1)."""
    inputs = {"q": (model.nq,), "u": (model.nu,)} | {x: (model.nv,) for x in ("v", "given", "extra")}
    w = _with_matrices(model, batch, inputs, ("a", "tau"))
    w.gravity()
    w.buffer("load", (batch, model.n_load_rows), vec6)
    loops = loop_buffers(w, model, batch)
    record_accelerations(w, model, batch, loops, w.buffer("pull", (1,)), w.buffer("q_dot", (batch, model.nq)))
    w.buffer("terms", (1,), wp.int32, common=True)
    record_residual_derivatives(w, model, batch, w.tables, loops)
    _record_mass_response(w)
    return w


def mass_response_buffers(model: Model, batch: int) -> Buffers:
    """Buffers of (1) alone, with the derivatives of the residual in "dq", "dv" and "da", and B in "B"."""
    w = _with_matrices(model, batch, {}, ())
    _record_mass_response(w)
    return w


def _with_matrices(model: Model, batch: int, inputs: dict[str, tuple[int, ...]], outputs: tuple[str, ...]) -> Buffers:
    """Buffers with the matrices of (1), further inputs, and further outputs of nv numbers."""
    width, by_u = column_width(model), (model.nv * input_width(model),)
    rows = {name: (model.nv,) for name in (*outputs, "work")} | {x: (model.nv * width,) for x in ("dq", "dv", "da")}
    return Buffers(model, batch, inputs | {"B": by_u}, rows | {"du": by_u})


def _record_mass_response(w: Buffers) -> None:
    arrays = ("B", "da", "work", "dq", "dv", "du")
    w.record(mass_response_kernel, [w.tables, w.scratch, *(w.on_device[name] for name in arrays)])


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
    if model.n_rows or model.calls_python or model.inputs.custom or model.nv == 0:
        return _in_python(model, q, v, u, t)
    u = np.zeros(model.nu) if u is None else u
    known = call_of(model, _FAMILY)(q, v, u)
    if known is not None:
        return known
    w, lead = filled_workspace(model, _FAMILY, forward_dynamics_derivatives_buffers, ("q", "v", "u"), q, v, u)
    w.put_gravity()
    w.host["terms"][0] = acting_flags(True, True, True)
    put_loads(model, w, t)
    if len(model.prescribed.dof):
        w.host["given"][:, model.prescribed.dof] = prescribed_accelerations(model, t, w.batch)
    n, width, columns = model.nv, column_width(model), input_width(model)
    B = input_response(model, w.host["q"], w.host["v"], w.host["u"], t)
    w.host["B"].reshape(w.batch, n, columns)[..., : model.nu] = B
    w.run()
    if w.status.any():
        forward_dynamics(model, q, v, u, t)  # with its own message
        raise_if_massless(model, w)
        w.raise_for_status()
    warn_of_pushing(model, w.host["u"])
    if not lead and depends_on_state_only(model) and has_constant_response(model):
        w.prepare(_FAMILY, ("q", "v", "u"), ("dq", "dv", "du"), (n, n), (n, n), (n, model.nu))
    return (
        w.result("dq", lead, n, width)[..., :n],
        w.result("dv", lead, n, width)[..., :n],
        w.result("du", lead, n, columns)[..., : model.nu],
    )


_ROWS = ("A", "A_q", "rate_q", "acceleration_q", "acceleration_v")


def _parts(model: Model, n: int) -> Iterator[slice]:
    """Slices of n states for one launch each; single states if Python functions give derivatives."""
    return row_slices(n, 1) if model.calls_python else row_slices(n)


def _in_python(model: Model, q: Any, v: Any, u: Any, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`forward_dynamics_derivatives` of robots with loops, and of those that call Python."""
    a = forward_dynamics(model, q, v, u, t)
    rows = {"q": stack("q", q, model.nq), "v": stack("v", v, model.nv), "u": input_rows(model, u), "a": a}
    lead, n = leading(**rows), batch_of(a.shape[:-1])
    each = {name: flat(x, lead) for name, x in rows.items()}
    nv, nu = model.nv, model.nu
    da = np.empty((n, nv, 2 * nv + nu))
    for part in _parts(model, n):
        q, v, u, a = (each[name][part] for name in ("q", "v", "u", "a"))
        force = run_forward_dynamics(model, q, v, u, t).host["force"].copy()
        B = np.broadcast_to(input_response(model, q, v, u, t), (len(q), nv, nu)).copy()
        B[:, model.prescribed.dof] = 0.0
        dq, dv, M, w = residual_derivatives(model, q, v, a, u, t, 1.0, force)
        loops = zip(*(row_results(model, w, name, (len(q),)) for name in _ROWS))
        kept = (independent_rows(w, k) for k in range(len(q)))
        da[part] = [-_response(model, *x) for x in zip(dq, dv, M, loops, kept, repeat(0.0), -B)]
    da = da.reshape(*lead, nv, 2 * nv + nu)
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
        kept: indices of the independent rows. pull: p of (2) of forward_dynamics.
    """
    A, A_q, rate_q, acceleration_q, acceleration_v = loops
    rows = A[kept]
    rows[:, model.prescribed.dof] = 0.0
    by_q, by_v = acceleration_q + 2.0 * pull * rate_q + pull**2 * A_q, acceleration_v + 2.0 * pull * A
    lower = np.hstack([by_q, by_v, np.zeros((model.n_rows, more.shape[1]))])[kept]
    return solve_with_mass(model, M, rows, np.hstack([dq, dv, more]), lower)
