"""Steps of robots with many links onto their loops, block by block, at a cost that grows with the number of links and
of loops that are open at once.

    [K, −Aᵀ; A, μ] (δ; λ) = (0; −e)                                                                       (1)

with K = W⁻², W weights of the coordinates, is a step of minimum |δ|²_K + |e + A δ|²_{1/μ}, and for μ = 0 the least one
that meets the rows; with K = M it changes velocities by the least kinetic energy. Neither A nor K is ever made
(closed_blocks).

Forces of least norm that act as given ones do are λ without its part n in the null space of Aᵀ, to which

    n ← ε (A D² Aᵀ + ε)⁻¹ n,   n = λ at first                                                             (2)

leads, D being the units of the coordinates: each turn divides what is not in that null space by 1 + σ² / ε.
Source: as closed_dynamics; for (2) J. D. Riley, Math. Tables Aids Comput. 9, 1955.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import warp as wp

from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers, Passing
from lissom.launch.composed import free_of_forces
from lissom.launch.loop_buffers import with_loops
from lissom.launch.workspace import Workspace, workspace
from lissom.lie import so3
from lissom.lie.types import kernel_options, mat6, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import scratch, traversal
from lissom.passes.base_frames import place_bases
from lissom.passes.column_tables import Matrix
from lissom.passes.scratch import Scratch, ScratchStruct
from lissom.systems.bordered import LoopRows, LoopRowsStruct
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

SHUT = 1  # steps of q onto the loops, by weights
STILL = 2  # of v, by weights
SWING = 3  # of v, by kinetic energy
LEAST = 4  # forces of least norm
_BOUNDLESS = wp.constant(wp.float64(1e200))  # K of a coordinate that stays
_FADING = wp.constant(wp.float64(1e-8))  # ε of (2), of the largest row: as far from rounding as from all there is
_MOST_TURNS = wp.constant(50)

Numbers = wp.array(dtype=wp.float64)


@wp.func(inline=False)
def put_weights(t: Tables, b: BlockMatrix, i: int, weights: Numbers):
    """W⁻² and nothing else in place of what make_mass_blocks left."""
    for j in range(b.K.shape[1]):
        b.K[i, j] = so3.ZERO
    for j in range(t.nv):
        square = weights[j] * weights[j]
        b.K[i, j * b.band.width + j] = wp.where(square * _BOUNDLESS > so3.ONE, so3.ONE / square, _BOUNDLESS)
    clear_inertias(t, b, i)


@wp.func
def clear_inertias(t: Tables, b: BlockMatrix, i: int):
    """Nothing moves what hangs on a node."""
    for k in range(t.n_dynamic):
        b.H[i, k] = mat6()
        b.N[i, k] = mat6()
        b.M[i, k] = mat6()


@wp.func
def solve_rows(
    t: Tables, b: BlockMatrix, c: ClosedBlocks, i: int, missing: Matrix, factor: wp.float64, loops: LoopRows
):
    """(δ; λ) of (1) in loops.unknown for what the kept rows miss, times a factor."""
    for j in range(t.nv):
        loops.unknown[i, j] = so3.ZERO
    for row in range(missing.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            loops.unknown[i, t.nv + at] = factor * missing[i, row]
    solve_closed_blocks(b, c, i, t.nv, loops)


@wp.func
def fade_once(t: Tables, b: BlockMatrix, c: ClosedBlocks, i: int, factor: wp.float64, loops: LoopRows) -> wp.float64:
    """One turn of (2) for loops.work; by how much it changes."""
    solve_rows(t, b, c, i, loops.work, factor, loops)
    change = wp.float64(0.0)
    for row in range(loops.force.shape[1]):
        left = loops.unknown[i, t.nv + row]
        change = wp.max(change, wp.abs(left - loops.work[i, row]))
        loops.work[i, row] = left
    return change


@wp.func(inline=False)
def fade(t: Tables, s: Scratch, b: BlockMatrix, c: ClosedBlocks, i: int, loops: LoopRows) -> int:
    """(2) for loops.force, all rows being asked; 0, or what eliminate says."""
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


def _make(model: Model, batch: int) -> Buffers:
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
    """δ of (1) in states (n, nq), (n, nv) left in `move`, the rows kept in `slot` and `kept`, residuals and rates of
    all in `gap` and `rate`, and where q is moved the squares of the rows A W in `size`; or forces in `force`. Weights
    are (nv,), μ (n, n_rows); the caller looks at `status`."""
    w = workspace(model, "closing", len(q), _make)
    values = {"q": q, "v": v, "task": task, "weights": weights, "damping": damping, "force": force}
    for name, value in values.items():
        w.host[name][:] = value
    w.run()
    return w
