"""Systems bordered by the constraint rows: Newton steps and accelerations under constraints, in kernels and as arrays.

    [K, −σ Aᵀ; σ A_q, 0] (δq; δλ/σ) = (r; σ e)                                                            (1)
    D [M, −Aᵀ; A, 0] D (a; λ)/D = D (f; −γ),   D the units that make M and rows of size one               (2)
    M a − Aᵀ λ = f,   A a = −Ȧ v − 2 p A v − p² e                                                         (3)

σ, the mean size of K in the units of the coordinates, keeps (1) well conditioned for every time step (C. L. Bottasso,
O. A. Bauchau, A. Cardona, J. Comput. Phys. 221, 2007). Pivoted Gram-Schmidt on A (QR with row exchange) finds
independent rows, and only these enter; rows that restrict velocities only come after the others, whose residuals would
else be left. The other rows are then satisfied too, and their forces stay constant. A row that restricts velocities
only has in a step the residual A v / c₁ in place of e, and its derivative by Δ in place of A_q (newton_stages). (2)
solves (3). There p = 0, except in integrators that stabilise the loops (Baumgarte); the row of a coordinate with a
prescribed motion is replaced by the prescribed acceleration.
Source: Mathew 2025 eqs. (46)-(49) for (3).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts are imported at their first use, which most processes do not need
import warp as wp

from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.types import by_reference, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, derived_array
from lissom.passes import kinds
from lissom.passes.columns import Columns, Matrix, column_width
from lissom.passes.features import may_have_loops
from lissom.passes.linear_algebra import lu_factor, lu_solve
from lissom.passes.scratch import Scratch
from lissom.systems.couplings import put_coupling_rows, row_count
from lissom.systems.loops import (
    add_covector,
    add_own_rows,
    add_path_row,
    has_pose_row,
    loop_motion,
    loop_state,
    onto_row,
    put_joint_entries,
    put_joint_rates,
    relative_motion,
    residual_row,
    restricts_rate,
    velocity_row,
)

native = native_functions("systems/loops.h")


@wp.struct
class LoopRowsStruct:
    """Buffers of loop rows and of the bordered system.

    By instance and row: force: λ. gap: residuals e. rate: P y = A v. acceleration: P ẏ + Ṗ y = A a + Ȧ v. A, A_q: the
    rows. basis: an orthonormal basis of the independent rows. slot: number of the unknown in (1) or (2) behind the
    coordinates, −1 for a dependent row. work: temporary numbers.

    By instance: unknown: the right side of (1) or (2), then its solution. units: D of (2). rank: number of independent
    rows. sigma: σ. matrix, factors, pivots: the matrix in rows of `width`, its factors and swapped rows.

    scale: units of the coordinates, zero for prescribed ones. late: 1 for rows that restrict velocities only.
    """

    width: wp.int32
    force: Matrix
    gap: Matrix
    rate: Matrix
    acceleration: Matrix
    work: Matrix
    unknown: Matrix
    units: Matrix
    A: Matrix
    A_q: Matrix
    basis: Matrix
    slot: wp.array2d(dtype=wp.int32)
    rank: wp.array(dtype=wp.int32)
    sigma: wp.array(dtype=wp.float64)
    scale: wp.array(dtype=wp.float64)
    late: wp.array(dtype=wp.int32)
    matrix: Matrix
    factors: Matrix
    pivots: wp.array2d(dtype=wp.int32)


LoopRows = by_reference(LoopRowsStruct)


def bordered_width(model: Model) -> int:
    """Numbers in a row of (1)."""
    return (model.nv + model.n_rows + 7) // 8 * 8 if model.n_rows else column_width(model)


def scale_array(model: Model) -> Any:
    """Units of the coordinates on the device, zero for prescribed ones; made once."""
    return derived_array(model.models[0] if model.models else model, "scale of loops", _scales)


def _scales(model: Model) -> np.ndarray:
    scale = np.zeros(column_width(model))
    scale[: model.nv] = model.dofs.scale
    scale[model.prescribed.dof] = 0.0
    return scale


def loop_rows(model: Model, batch: int, square: Any = None, *, dense: bool = True) -> LoopRowsStruct:
    """Buffers for a batch.

    Args:
        square: K with rows of column_width, which is the matrix of (1) for robots without loops.
        dense: whether there are buffers for rows and matrices; elimination of blocks does not need them.
    """
    loops = LoopRowsStruct()
    loops.width = bordered_width(model)
    m, w = model.n_rows, column_width(model) if dense else 0
    for name in ("force", "gap", "rate", "acceleration", "work"):
        setattr(loops, name, wp.zeros((batch, m), dtype=wp.float64, device=model.device))
    for name in ("A", "A_q", "basis"):
        setattr(loops, name, wp.zeros((batch, m * w), dtype=wp.float64, device=model.device))
    loops.slot = wp.full((batch, m), -1, dtype=wp.int32, device=model.device)
    loops.rank = wp.zeros(batch, dtype=wp.int32, device=model.device)
    loops.sigma = wp.zeros(batch, dtype=wp.float64, device=model.device)
    loops.scale = scale_array(model)
    loops.late = wp.array(model.rate_rows.astype(np.int32), dtype=wp.int32, device=model.device)
    size = (model.nv + m) * loops.width if dense and (m or square is not None) else 0
    loops.factors, bordered = (wp.zeros((batch, size), dtype=wp.float64, device=model.device) for _ in range(2))
    loops.matrix = bordered if m or square is None else square
    loops.unknown, loops.units = (
        wp.zeros((batch, model.nv + m), dtype=wp.float64, device=model.device) for _ in range(2)
    )
    loops.pivots = wp.zeros((batch, model.nv + m), dtype=wp.int32, device=model.device)
    return loops


@wp.func_native(native("choose_rows"))
def choose_rows(
    m: int,
    width: int,
    i: int,
    A: Matrix,
    scale: wp.array(dtype=wp.float64),
    late: wp.array(dtype=wp.int32),
    basis: Matrix,
    work: Matrix,
    slot: wp.array2d(dtype=wp.int32),
) -> int:
    """Number the independent rows of A in `slot` in the order of their size, `late` ones after the others, and
    dependent ones −1; returns their number."""
    ...


@wp.func
def choose_independent(x: Columns, i: int, loops: LoopRows) -> int:
    """Number independent rows of loops.A in loops.slot; returns their number, also in loops.rank."""
    m = loops.force.shape[1]
    if m == 0:
        return 0
    rank = choose_rows(m, x.width, i, loops.A, loops.scale, loops.late, loops.basis, loops.work, loops.slot)
    loops.rank[i] = rank
    return rank


@wp.func_native(native("put_border"))
def put_border(
    nv: int,
    m: int,
    narrow: int,
    width: int,
    i: int,
    K: Matrix,
    A: Matrix,
    A_q: Matrix,
    scale: wp.array(dtype=wp.float64),
    slot: wp.array2d(dtype=wp.int32),
    matrix: Matrix,
) -> wp.float64:
    """Assemble the matrix of (1) from K with rows of `narrow`; returns σ."""
    ...


@wp.func_native(native("put_constrained"))
def put_constrained(
    nv: int,
    m: int,
    narrow: int,
    width: int,
    i: int,
    M: Matrix,
    A: Matrix,
    slot: wp.array2d(dtype=wp.int32),
    units: Matrix,
    matrix: Matrix,
):
    """Assemble the matrix of (2) from M with rows of `narrow`, and compute the units D."""
    ...


@wp.func
def clear_loop_rows(narrow: int, m: int, i: int, rows: Matrix):
    """rows = 0."""
    for j in range(m * narrow):
        rows[i, j] = wp.float64(0.0)


@wp.func
def assemble_bordered(t: Tables, x: Columns, i: int, K: Matrix, A_q: Matrix, loops: LoopRows) -> int:
    """Find independent rows and assemble (1) from K, loops.A and A_q; returns the size of (1)."""
    m = row_count(t)
    if may_have_loops() and m > 0:
        rank = choose_independent(x, i, loops)
        loops.sigma[i] = put_border(
            t.nv, m, x.width, loops.width, i, K, loops.A, A_q, loops.scale, loops.slot, loops.matrix
        )
        return t.nv + rank
    return t.nv


@wp.func
def put_row_residuals(nv: int, i: int, loops: LoopRows, factor: wp.float64, missing: Matrix):
    """Put factor · σ · missing on the right side of (1) for the independent rows."""
    for row in range(missing.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            loops.unknown[i, nv + at] = factor * loops.sigma[i] * missing[i, row]


@wp.func
def update_forces(nv: int, i: int, loops: LoopRows):
    """Subtract the solution δλ of (1) from the forces λ."""
    for row in range(loops.force.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            loops.force[i, row] = loops.force[i, row] - loops.sigma[i] * loops.unknown[i, nv + at]


@wp.func
def rows_from_columns(t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, S: Matrix, of_residual: int, out: Matrix):
    """Rows A, or A_q if `of_residual`, from the columns S of each node, and those of couplings."""
    clear_loop_rows(x.width, row_count(t), i, out)
    if may_have_loops():
        put_coupling_rows(t, i, x.width, q, out)
        put_joint_entries(t, s, i, x.width, of_residual, out)
        for loop in range(t.loops.node.shape[0]):
            g = loop_state(t, s, i, loop)
            for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
                y = velocity_row(t, s, g, i, loop, row)
                if of_residual != 0:
                    y = residual_row(t, s, g, i, loop, row)
                y = se3.Ad_dual(g.R_B, g.p_B, y)
                at = row * x.width
                add_own_rows(t, x, t.loops.node[loop, 0], i, y, S, at, out)
                add_own_rows(t, x, t.loops.node[loop, 1], i, -y, S, at, out)


@wp.func
def rows_from_sums(
    t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, c1: wp.float64, J: Matrix, J_R: Matrix,
    loops: LoopRows,
):  # fmt: skip
    """Rows A and A_q from path sums J of S T and J_R of R' of newton_matrix, and those of couplings. Of rows that
    restrict velocities only, A_q is ∂(A v)/∂Δ / c₁, by (2) of derivative_sweeps with R' in place of R."""
    m = row_count(t)
    clear_loop_rows(x.width, m, i, loops.A)
    clear_loop_rows(x.width, m, i, loops.A_q)
    put_coupling_rows(t, i, x.width, q, loops.A)
    put_coupling_rows(t, i, x.width, q, loops.A_q)
    put_joint_entries(t, s, i, x.width, 0, loops.A)
    if c1 != so3.ZERO:
        put_joint_entries(t, s, i, x.width, 0, loops.A_q)
        put_joint_rates(t, s, i, x.width, v, so3.ONE / c1, loops.A_q)
    else:
        put_joint_entries(t, s, i, x.width, 1, loops.A_q)
    for loop in range(t.loops.node.shape[0]):
        g = loop_state(t, s, i, loop)
        a = t.loops.node[loop, 0]
        b = t.loops.node[loop, 1]
        for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
            at = row * x.width
            y = se3.Ad_dual(g.R_B, g.p_B, velocity_row(t, s, g, i, loop, row))
            z = se3.Ad_dual(g.R_B, g.p_B, residual_row(t, s, g, i, loop, row))
            add_path_row(x, a, i, y, J, at, loops.A)
            add_path_row(x, b, i, -y, J, at, loops.A)
            if restricts_rate(t.loops.row_kind[row]) and c1 != so3.ZERO:
                eta, _acc = loop_motion(t, s, i, loop, 0, vec6())
                z = se3.coad(eta, y)
                if has_pose_row(t, row):
                    motion = relative_motion(t, s, g, i, loop)
                    z += se3.Ad_dual(g.R_B, g.p_B, onto_row(t, s, g, i, loop, row, motion, v))
                z = z / c1
                add_path_row(x, a, i, y / c1, J_R, at, loops.A_q)
                add_path_row(x, b, i, -y / c1, J_R, at, loops.A_q)
            add_path_row(x, a, i, z, J, at, loops.A_q)
            add_path_row(x, b, i, -z, J, at, loops.A_q)


@wp.func
def replace_moved_columns(t: Tables, s: Scratch, x: Columns, i: int, S: Matrix, S_T: Matrix, loops: LoopRows):
    """Correct rows A from path sums with S T for spherical and free joints: replace S T by S."""
    for loop in range(t.loops.node.shape[0]):
        g = loop_state(t, s, i, loop)
        for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
            y = se3.Ad_dual(g.R_B, g.p_B, velocity_row(t, s, g, i, loop, row))
            for side in range(2):
                replace_on_path(t, x, t.loops.node[loop, side], i, y, S, S_T, row * x.width, loops.A)
                y = -y


@wp.func
def replace_on_path(t: Tables, x: Columns, node: int, i: int, y: vec6, S: Matrix, S_T: Matrix, at: int, out: Matrix):
    """out[at + j] += yᵀ (S − S T) on the columns of spherical and free joints on the path to `node`."""
    k = node
    while k >= 0:
        if kinds.has_step_tangent(t, k):
            add_covector(x.width, k, t.node[k].v_start, t.node[k].v_stop, i, y, S, at, out)
            add_covector(x.width, k, t.node[k].v_start, t.node[k].v_stop, i, -y, S_T, at, out)
        k = t.node[k].parent


@wp.func
def fix_prescribed(t: Tables, n: int, width: int, i: int, fixed: Matrix, M: Matrix, b: Matrix):
    """Replace rows and columns of prescribed coordinates by those of the identity of size n, and their right sides by
    `fixed`."""
    for e in range(t.prescribed.dof.shape[0]):
        k = t.prescribed.dof[e]
        for j in range(n):
            M[i, k * width + j] = so3.ZERO
            M[i, j * width + k] = so3.ZERO
        M[i, k * width + k] = so3.ONE
        b[i, k] = fixed[i, k]


@wp.func
def solve_constrained(
    t: Tables, x: Columns, i: int, fixed: Matrix, pull: wp.float64, M: Matrix, loops: LoopRows, a: Matrix
) -> int:
    """Solve (3) with p = `pull` for a and loops.force. On entry a contains the right side f, loops.A the rows, and
    loops.gap, rate and acceleration e, A v and A a + Ȧ v, with `fixed` for a: the prescribed accelerations, otherwise
    zero. Returns 1 + the index of a zero pivot, or 0."""
    m = loops.force.shape[1]
    n = t.nv + choose_independent(x, i, loops)
    put_constrained(t.nv, m, x.width, loops.width, i, M, loops.A, loops.slot, loops.units, loops.matrix)
    for j in range(t.nv):
        loops.unknown[i, j] = loops.units[i, j] * a[i, j]
    for e in range(t.prescribed.dof.shape[0]):
        loops.units[i, t.prescribed.dof[e]] = so3.ONE  # a prescribed coordinate has its own unit
    for row in range(m):
        at = loops.slot[i, row]
        if at >= 0:
            missing = loops.acceleration[i, row] + pull * (so3.TWO * loops.rate[i, row] + pull * loops.gap[i, row])
            loops.unknown[i, t.nv + at] = -loops.units[i, t.nv + at] * missing
    fix_prescribed(t, n, loops.width, i, fixed, loops.matrix, loops.unknown)
    pivot = lu_factor(n, loops.width, i, loops.matrix, loops.factors, loops.pivots)
    if pivot == 0:
        lu_solve(n, loops.width, i, loops.matrix, loops.factors, loops.pivots, loops.unknown)
        for j in range(t.nv):
            a[i, j] = loops.units[i, j] * loops.unknown[i, j]
        for row in range(m):
            at = loops.slot[i, row]
            if at >= 0:
                loops.force[i, row] = loops.units[i, t.nv + at] * loops.unknown[i, t.nv + at]
    return pivot


def allowed_motions(model: Model, A: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Columns (nv, n) that span the motions allowed by loops and prescribed motions.

    Soft coordinates are chosen as dependent ones, so that no stiff coordinate enters several columns.

    Args:
        A: rows of the loops, (n_rows, nv). kept: indices of independent rows.
    """
    S = model.dofs.scale
    free = np.setdiff1d(np.arange(model.nv), model.prescribed.dof)
    N = np.diag(S)[:, free]
    if not len(kept):
        return N
    rows = (A[kept] * S)[:, free]
    own = model.elasticity.stiffness_diagonal[free] * S[free] ** 2
    soft = own[own > 0.0].min(initial=np.inf)
    order: np.ndarray = scipy.linalg.qr(rows / np.sqrt(1.0 + own / soft), mode="r", pivoting=True)[-1]  # pyright: ignore
    dependent, independent = order[: len(kept)], np.sort(order[len(kept) :])
    return N[:, independent] - N[:, dependent] @ np.linalg.solve(rows[:, dependent], rows[:, independent])


def solve_with_mass(model: Model, M: np.ndarray, rows: np.ndarray, top: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Solve [M, −rowsᵀ; rows, 0] (x; λ) = (top; low) for x, shape (nv, n).

    The rows are independent, and the caller has fixed prescribed coordinates in M and rows. M may be singular if a loop
    determines the motion of a link without mass.

    Raises:
        LinAlgError: a coordinate moves no mass, and no row determines its motion.
    """
    own = np.diag(M)
    units = np.where(own > 0.0, 1.0 / np.sqrt(np.where(own > 0.0, own, 1.0)), 1.0)  # as in (2)
    scaled = rows * units
    sizes = np.linalg.norm(scaled, axis=1)
    scaled /= sizes[:, None]
    matrix = np.block([[M * units * units[:, None], -scaled.T], [scaled, np.zeros((len(rows), len(rows)))]])
    right = np.vstack([top * units[:, None], low / sizes[:, None]])
    found = units[:, None] * np.linalg.solve(matrix, right)[: model.nv]
    if not np.isfinite(found).all():
        raise np.linalg.LinAlgError("the mass matrix is singular on the motions that the loops allow")
    return found
