"""Constraints as arrays: residuals of loops, the constraint Jacobian and its derivatives, wrenches in loops, and steps
onto the loops.

    M a + c + g + K q + D v = B u + F + Aᵀ λ,   A v = prescribed velocities, then 0 for loops              (1)

Rows and λ stand in one order: prescribed motions, then loops, as added. Where rows depend on each other λ is not
unique; the one of least norm lies in the range of A, λ = Q Qᵀ λ with Q an orthonormal basis of that range.

Robots with many links step onto their loops block by block, at a cost that grows with the number of links and of loops
that are open at once:

    [K, −Aᵀ; A, μ] (δ; λ) = (0; −e)                                                                       (2)

with K = W⁻², W weights of the coordinates, is a step of minimum |δ|²_K + |e + A δ|²_{1/μ}, and for μ = 0 the least one
that meets the rows; with K = M it changes velocities by the least kinetic energy. Neither A nor K is ever made
(closed_blocks).

Forces λ and λ − n act alike if n lies in the null space of Aᵀ. The part n of λ in that null space is the limit of

    n ← ε (A D² Aᵀ + ε)⁻¹ n,   n = λ at first                                                             (3)

with D the units of the coordinates: each turn divides the part outside that null space by 1 + σ² / ε.
Source: Mathew 2025 §5.2, (47), (D68)-(D83); for (2) as forward_dynamics; for (3) J. D. Riley, Math. Tables Aids
Comput. 9, 1955.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
import warp as wp

from lissom.dynamics.forward_dynamics import solves_closed
from lissom.dynamics.inverse_dynamics_derivatives import (
    derivative_workspace,
    row_results,
    run_residual_derivatives,
    square_results,
)
from lissom.errors import RedundancyWarning
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers, Passing, with_loops
from lissom.launch.compiling import free_of_forces
from lissom.launch.over_models import over_models
from lissom.launch.workspace import Workspace, batch_of, filled, leading, parts, stack, workspace
from lissom.lie import so3
from lissom.lie.types import kernel_options, mat6, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import kinds, scratch, traversal
from lissom.passes.blocks import block_columns
from lissom.passes.columns import ColumnsStruct, Matrix, column_tables
from lissom.passes.scratch import Scratch, ScratchStruct
from lissom.passes.traversal import place_bases
from lissom.robot import formatting
from lissom.systems.bordered import LoopRows, LoopRowsStruct, choose_independent, own_rows
from lissom.systems.closed_blocks import (
    BlockMatrix,
    BlockMatrixStruct,
    ClosedBlocks,
    ClosedBlocksStruct,
    block_matrix,
    choose_all,
    closed_blocks,
    eliminate,
    factor_closed_blocks,
    make_mass_blocks,
    solve_closed_blocks,
)
from lissom.systems.fronts import row_sizes
from lissom.systems.loop_unknowns import put_forces, put_residuals
from lissom.systems.loops import loop_rates, loop_residuals

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_NOTHING = 1e-12  # of the largest eigenvalue of A Aᵀ


@free_of_forces
def constraint_kernel(act: Acting) -> Any:
    """Kernel of the residuals, rates and rows of loops."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def constraint_alone(
        t: TablesStruct,
        s: ScratchStruct,
        x: ColumnsStruct,
        S: Matrix,
        loops: LoopRowsStruct,
        q: Matrix,
        v: Matrix,
        choosing: wp.array(dtype=wp.int32),
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, v)
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, v, vec6())
            if S.shape[1] > 0:
                kinds.motion_columns(t, s, x, i, k, S)
        loop_residuals(t, s, i, loops.gap)
        loop_rates(t, s, i, vec6(), loops.rate, loops.acceleration)
        if S.shape[1] > 0:
            own_rows(t, s, x, i, S, 0, loops.A)
            own_rows(t, s, x, i, S, 1, loops.A_q)
        if choosing[0] != 0:
            choose_independent(x, i, loops)

    return constraint_alone


def _make(model: Model, batch: int, *, whole: bool = True) -> Buffers:
    w = Buffers(model, batch, {"q": (model.nq,), "v": (model.nv,)})
    x = column_tables(model) if whole else block_columns(model)
    size = 6 * model.n_dynamic * x.width if whole else 0
    S = wp.zeros((batch, size), dtype=wp.float64, device=model.device)
    loops, choosing = with_loops(w, model, batch, whole=whole), w.buffer("choosing", (1,), wp.int32, common=True)
    w.record(constraint_kernel, [w.tables, w.scratch, x, S, loops, w.on_device["q"], w.on_device["v"], choosing])
    return w


def run_constraints(
    model: Model, q: Any, v: Any = None, *, choosing: bool = False
) -> tuple[Workspace, tuple[int, ...]]:
    """Residuals, rates and rows of loops, left in `gap`, `rate`, `A` and `A_q`; the leading axes. If `choosing`, also
    which rows are independent, for `chosen_rows` and in `kept`, which takes half as long again."""
    w, lead = filled(model, "constraints", _make, ("q", "v"), q, np.zeros(model.nv) if v is None else v)
    w.host["choosing"][0] = choosing
    w.run()
    w.raise_for_status()
    return w, lead


def run_residuals(model: Model, q: Any, v: Any = None) -> tuple[Workspace, tuple[int, ...]]:
    """Residuals and rates of loops alone, left in `gap` and `rate`; the leading axes."""
    make = partial(_make, whole=False)
    w, lead = filled(model, "residuals of loops", make, ("q", "v"), q, np.zeros(model.nv) if v is None else v)
    w.run()
    w.raise_for_status()
    return w, lead


@over_models("q", together=True)
def loop_residual(model: Model, q: ArrayLike) -> np.ndarray:
    """By how much each loop is open.

    Args:
        q: configuration, shape (..., nq).
    Returns:
        e, shape (..., n_rows), loop by loop: of each, the rotation that is left, then the displacement [rad, m], in the
        axes of its frame B and without the directions in which its joint is free.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: Mathew 2025 (47c).
    """
    w, lead = run_residuals(model, q)
    return w.result("gap", lead, model.n_rows)


@over_models("q", together=True)
def constraint_jacobian(model: Model, q: ArrayLike) -> np.ndarray:
    """A(q) of (1): unit rows of prescribed coordinates, then the rows of the loops.

    Args:
        q: configuration, shape (..., nq).
    Returns:
        shape (..., n_multipliers, nv) [rad, m per unit of the coordinate]. Where the loops are closed it is the
        derivative of loop_residual along the tangent space of `integrate`.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: Mathew 2025 (47a).
    """
    w, lead = run_constraints(model, q)
    return _with_motions(model, row_results(model, w, "A", lead), 1.0)


@over_models("q", "v", together=True)
def constraint_jacobian_derivative(model: Model, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Ȧ along v: A a + Ȧ v is the rate of A v.

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
    Returns:
        shape (..., n_multipliers, nv) [rad/s, m/s per unit of the coordinate].
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: Mathew 2025 (47b).
    """
    w, lead = _derivatives(model, q, v, np.zeros(model.nv))
    return _with_motions(model, row_results(model, w, "A_dot", lead), 0.0)


@final
@formatting.in_one_line
@dataclass(frozen=True)
class ConstraintDerivatives:
    """Derivatives of what loops ask, with respect to q in the tangent space of `integrate`, and v.

    Fields, each (..., n_rows, nv) [rad, m, and per second and second squared, per unit of the coordinate]:
        residual_q: of loop_residual. velocity_q: of A v. acceleration_q, acceleration_v: of A a + Ȧ v.
    """

    residual_q: np.ndarray
    velocity_q: np.ndarray
    acceleration_q: np.ndarray
    acceleration_v: np.ndarray


@over_models("q", "v", "a", together=True)
def constraint_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> ConstraintDerivatives:
    """Exact derivatives of loop residuals, of A v and of A a + Ȧ v, with v and a held fixed.

    Args:
        q: configuration, shape (..., nq). v, a: velocity and acceleration, shape (..., nv).
    Returns:
        ConstraintDerivatives [rad, m, per second and second squared, per unit of the coordinate].
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: exact derivatives of the discrete model, to rounding, open loops included.
    Source: Mathew 2025 (D70)-(D83).
    """
    w, lead = _derivatives(model, q, v, a)
    return ConstraintDerivatives(*(row_results(model, w, name, lead) for name in ("A_q", "rate_q", "turn_q", "turn_v")))


@over_models("q", "multipliers", together=True)
def constraint_force_derivative(model: Model, q: ArrayLike, multipliers: ArrayLike) -> np.ndarray:
    """∂(Aᵀ λ)/∂q at fixed λ.

    Args:
        q: configuration, shape (..., nq). multipliers: λ, shape (..., n_multipliers) [N·m, N].
    Returns:
        shape (..., nv, nv) [N·m, N per unit of the coordinate], along the tangent space of `integrate`.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: exact derivative of the discrete model. Source: Mathew 2025 (D68)-(D69).
    """
    force = stack("multipliers", multipliers, model.n_multipliers)[..., model.n_motions :]
    q = stack("q", q, model.nq)
    lead = leading(q=q, multipliers=force)
    force = np.broadcast_to(force, (*lead, model.n_rows)).reshape(batch_of(lead), model.n_rows)
    zero = np.zeros(model.nv)
    w, _ = derivative_workspace(model, np.broadcast_to(q, (*lead, model.nq)), zero, zero, np.zeros(model.nu))
    run_residual_derivatives(model, w, 0.0, gravity=False, elastic=False, loads=False, force=force)
    w.raise_for_status()
    return -square_results(model, w, lead)[0]


@over_models("q", "multipliers")
def loop_wrenches(model: Model, q: ArrayLike, multipliers: ArrayLike) -> np.ndarray:
    """The wrench that each loop exerts on its link a, at frame B and in its axes; on link b acts the opposite.

    Args:
        q: configuration, shape (..., nq). multipliers: λ, shape (..., n_multipliers) [N·m, N], of a Trajectory or an
            Equilibrium.
    Returns:
        (moment; force), shape (..., n_loops, 6) [N·m, N].
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: Mathew 2025 §5.2.
    """
    from lissom.dynamics.kinematics import forward_kinematics

    force = stack("multipliers", multipliers, model.n_multipliers)[..., model.n_motions :]
    poses = forward_kinematics(model, q)
    lead = leading(q=poses[..., 0, 0, :] if model.n_nodes else np.zeros(0), multipliers=force)
    world = np.broadcast_to(np.eye(4), (*poses.shape[:-3], 1, 4, 4))
    frames = np.concatenate([poses, world], axis=-3)[..., model.loops.node, :, :] @ model.loops.placement
    R = np.swapaxes(frames[..., 1, :3, :3], -1, -2) @ frames[..., 0, :3, :3]
    out = np.zeros((*lead, len(model.loops.names), 6))
    for loop, (first, stop) in enumerate(zip(model.loops.row_start, model.loops.row_start[1:])):
        for row in range(first, stop):
            P = model.loops.row_direction[row]
            if model.loops.row_is_hinge[row]:
                turn = np.cross(R[..., loop, :, :] @ model.loops.hinge[loop, 1], model.loops.hinge[loop, 0])
                P = np.concatenate([turn, np.zeros_like(turn)], axis=-1)
            out[..., loop, :] += force[..., row, None] * P
    return out


def minimum_norm(model: Model, q: np.ndarray, force: np.ndarray) -> np.ndarray:
    """The forces λ (n, n_rows) of least norm that act as the given ones do, at configurations (n, nq), or of many
    motions (m, n, ...)."""
    if not force.size:
        return force
    if q.ndim == 2:
        return minimum_norm(model, q[None], force[None])[0]
    least = force.copy()
    for part in parts(q.shape[1]):
        some, rows = q[:, part], force[:, part].reshape(-1, model.n_rows)
        least[:, part] = _least(model, some.reshape(len(rows), -1), rows).reshape(least[:, part].shape)
    return least


def _least(model: Model, q: np.ndarray, force: np.ndarray) -> np.ndarray:
    """The same (n, n_rows) of a few states."""
    if solves_closed(model):
        w = run_closing(model, LEAST, q, force=force)
        if not w.status.any():
            return w.host["force"].copy()
    return least_norm(model, run_constraints(model, q, choosing=True)[0], force)


def least_norm(model: Model, w: Workspace, force: np.ndarray) -> np.ndarray:
    """The same where a workspace holds the configurations `q`, as `kept` how many rows are independent, and the rows
    `A`, unless it eliminated them block by block."""
    dependent = np.flatnonzero(w.host["kept"] < model.n_rows)
    if not len(dependent):
        return force.copy()
    if not w.host["A"].size:
        return _least(model, w.host["q"], force)
    scale = model.by_row(lambda one: one.dofs.scale, w.batch)
    scale = scale if scale.ndim == 1 else scale[dependent, None]
    A = row_results(model, w, "A", (w.batch,))[dependent] * scale
    A[..., model.prescribed.dof] = 0.0
    size, Q = np.linalg.eigh(A @ np.swapaxes(A, -1, -2))
    Q *= (size > _NOTHING * size[:, -1:])[:, None, :]
    least = force.copy()
    least[dependent] = (Q @ (np.swapaxes(Q, -1, -2) @ force[dependent, :, None]))[..., 0]
    return least


def warn_of_redundancy(model: Model, q: np.ndarray) -> None:
    """Say once for each model that rows of its loops depend on each other at q (nq,)."""
    if model.n_rows and "redundancy" not in model.cache:
        rank = model.cache["redundancy"] = _rank(model, q)
        if rank < model.n_rows:
            warnings.warn(
                f"robot {model.name!r}: of the {model.n_rows} rows of its loops {rank} are independent; these are "
                "kept, and the forces in the loops are those of least norm", RedundancyWarning, stacklevel=3
            )  # fmt: skip


def _rank(model: Model, q: np.ndarray) -> int:
    """How many rows of loops are independent at q (nq,)."""
    if solves_closed(model):
        w = run_closing(model, STILL, q[None], weights=model.dofs.scale)
        if not w.status.any():
            return int(w.host["kept"][0])
    return int(run_constraints(model, q, choosing=True)[0].host["kept"][0])


def _derivatives(model: Model, q: Any, v: Any, a: Any) -> tuple[Workspace, tuple[int, ...]]:
    """The workspace of the derivatives after a run without external forces."""
    w, lead = derivative_workspace(model, q, v, a, np.zeros(model.nu))
    run_residual_derivatives(model, w, 0.0, gravity=False, elastic=False, loads=False)
    w.raise_for_status()
    return w, lead


def _with_motions(model: Model, rows: np.ndarray, unit: float) -> np.ndarray:
    """Rows of loops behind the rows of prescribed coordinates."""
    held = np.zeros((*rows.shape[:-2], model.n_motions, model.nv))
    held[..., np.arange(model.n_motions), model.prescribed.dof] = unit
    return np.concatenate([held, rows], axis=-2)


SHUT = 1  # steps of q onto the loops, by weights
STILL = 2  # of v, by weights
SWING = 3  # of v, by kinetic energy
LEAST = 4  # forces of least norm
_BOUNDLESS = wp.constant(wp.float64(1e200))  # K of a coordinate that stays
_FADING = wp.constant(wp.float64(1e-8))  # ε of (3), of the largest row: as far from rounding as from all there is
_MOST_TURNS = wp.constant(50)

Numbers = wp.array(dtype=wp.float64)


@wp.func(inline=False)
def put_weights(t: Tables, b: BlockMatrix, i: int, weights: Numbers):
    """Put W⁻² alone in place of the blocks of make_mass_blocks."""
    for j in range(b.K.shape[1]):
        b.K[i, j] = so3.ZERO
    for j in range(t.nv):
        square = weights[j] * weights[j]
        b.K[i, j * b.band.width + j] = wp.where(square * _BOUNDLESS > so3.ONE, so3.ONE / square, _BOUNDLESS)
    clear_inertias(t, b, i)


@wp.func
def clear_inertias(t: Tables, b: BlockMatrix, i: int):
    """Set the inertias of all nodes to zero."""
    for k in range(t.n_dynamic):
        b.H[i, k] = mat6()
        b.N[i, k] = mat6()
        b.M[i, k] = mat6()


@wp.func
def solve_rows(
    t: Tables, b: BlockMatrix, c: ClosedBlocks, i: int, missing: Matrix, factor: wp.float64, loops: LoopRows
):
    """(δ; λ) of (2) in loops.unknown, for residuals of the kept rows times a factor."""
    for j in range(t.nv):
        loops.unknown[i, j] = so3.ZERO
    for row in range(missing.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            loops.unknown[i, t.nv + at] = factor * missing[i, row]
    solve_closed_blocks(b, c, i, t.nv, loops)


@wp.func
def fade_once(t: Tables, b: BlockMatrix, c: ClosedBlocks, i: int, factor: wp.float64, loops: LoopRows) -> wp.float64:
    """One turn of (3) for loops.work; returns the largest change."""
    solve_rows(t, b, c, i, loops.work, factor, loops)
    change = wp.float64(0.0)
    for row in range(loops.force.shape[1]):
        left = loops.unknown[i, t.nv + row]
        change = wp.max(change, wp.abs(left - loops.work[i, row]))
        loops.work[i, row] = left
    return change


@wp.func(inline=False)
def fade(t: Tables, s: Scratch, b: BlockMatrix, c: ClosedBlocks, i: int, loops: LoopRows) -> int:
    """Turns of (3) for loops.force, with all rows; returns 0 or the status of eliminate."""
    largest = wp.float64(0.0)
    size = wp.float64(0.0)
    row_sizes(b.x, b.y, c.rows, i, b.centre, c.p.pull, b.L, loops.scale, c.work, c.size)
    for row in range(loops.force.shape[1]):
        largest = wp.max(largest, c.size[i, row])
        size = wp.max(size, wp.abs(loops.force[i, row]))
        loops.work[i, row] = loops.force[i, row]
    for row in range(loops.force.shape[1]):
        c.p.damping[i, row] = _FADING * largest
    clear_inertias(t, b, i)
    put_forces(t, s, c.p, i, loops)
    pivot = eliminate(t, s, b, c, i, so3.ZERO, True)
    change = wp.float64(1.0)
    for _turn in range(_MOST_TURNS):
        if pivot == 0 and change > _FADING * size:
            change = fade_once(t, b, c, i, _FADING * largest, loops)
    for row in range(loops.force.shape[1]):
        loops.force[i, row] = loops.force[i, row] - loops.work[i, row]
    return pivot


@wp.func
def least_forces(t: Tables, s: Scratch, b: BlockMatrix, c: ClosedBlocks, i: int, loops: LoopRows) -> int:
    """Forces of least norm; those of independent rows are that."""
    choose_all(i, loops)
    put_forces(t, s, c.p, i, loops)
    pivot = eliminate(t, s, b, c, i, so3.ZERO, False)
    if pivot < 0:
        pivot = fade(t, s, b, c, i, loops)
    return pivot


@free_of_forces
def closing_kernel(act: Acting) -> Any:
    """Kernel of steps onto the loops."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def closing_alone(
        t: TablesStruct,
        s: ScratchStruct,
        b: BlockMatrixStruct,
        c: ClosedBlocksStruct,
        q: Matrix,
        v: Matrix,
        task: wp.array(dtype=wp.int32),
        weights: Numbers,
        damping: Matrix,
        size: Matrix,
        loops: LoopRowsStruct,
        move: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, v)
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, v, vec6())
        loop_residuals(t, s, i, loops.gap)
        loop_rates(t, s, i, vec6(), loops.rate, loops.acceleration)
        make_mass_blocks(t, s, b, i)
        for row in range(loops.force.shape[1]):
            c.p.damping[i, row] = damping[i, row]
        pivot = wp.int32(0)
        if task[0] == LEAST:
            put_weights(t, b, i, loops.scale)
            pivot = least_forces(t, s, b, c, i, loops)
        elif task[0] == SHUT:
            put_weights(t, b, i, weights)
            pivot = factor_closed_blocks(t, s, b, c, i, so3.ZERO, loops, put_residuals)
            row_sizes(b.x, b.y, c.rows, i, b.centre, c.p.pull, b.L, weights, c.work, size)
            solve_rows(t, b, c, i, loops.gap, -so3.ONE, loops)
        else:
            if task[0] == STILL:
                put_weights(t, b, i, weights)
            pivot = factor_closed_blocks(t, s, b, c, i, so3.ZERO, loops, put_forces)
            solve_rows(t, b, c, i, loops.rate, -so3.ONE, loops)
        if pivot != 0 and s.status[i] == 0:
            s.status[i] = scratch.STATUS_SINGULAR + wp.where(pivot > 0, pivot, t.nv)
        if task[0] != LEAST:
            for j in range(t.nv):
                move[i, j] = loops.unknown[i, j]
            traversal.inspect_result(s, i, move)

    return closing_alone


def _make_closing(model: Model, batch: int) -> Buffers:
    inputs = {"q": (model.nq,), "v": (model.nv,), "damping": (model.n_rows,)}
    w = Buffers(model, batch, inputs, {"move": (model.nv,), "size": (model.n_rows,)})
    loops, task = with_loops(w, model, batch, whole=False), w.buffer("task", (1,), wp.int32, common=True)
    weights = w.buffer("weights", (model.nv,), common=True)
    blocks = [partial(block_matrix, model, of_mass=True), partial(closed_blocks, model, wide=False)]
    d = w.on_device
    tables = [w.tables, w.scratch, *map(Passing, blocks)]
    w.record(closing_kernel, [*tables, d["q"], d["v"], task, weights, d["damping"], d["size"], loops, d["move"]])
    return w


def run_closing(
    model: Model, task: int, q: np.ndarray, v: Any = 0.0, *, weights: Any = 0.0, damping: Any = 0.0, force: Any = 0.0
) -> Workspace:
    """δ of (2) in states (n, nq), (n, nv) left in `move`, the rows kept in `slot` and `kept`, residuals and rates of
    all in `gap` and `rate`, and where q is moved the squares of the rows A W in `size`; or forces in `force`. Weights
    are (nv,), μ (n, n_rows); the caller looks at `status`."""
    w = workspace(model, "closing", len(q), _make_closing)
    values = {"q": q, "v": v, "task": task, "weights": weights, "damping": damping, "force": force}
    for name, value in values.items():
        w.host[name][:] = value
    w.run()
    return w
