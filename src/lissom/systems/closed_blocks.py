"""Blocks of robots with loops: factors of [K, −Aᵀ; A_q, 0], and solving by them, inside kernels.

The matrix of bordered (1) without its σ is made and factored block by block, as newton_blocks does without loops,
along with the fronts of front_factors, whose unknowns are those of loop_unknowns. With M in place of K, seen by x
alone, it is that of accelerations, [M, −Aᵀ; A, 0].

All rows of loops are taken at first. Where a pivot is so small that rounding may have made it, the independent ones are
found (independent_rows) and the matrix is factored again.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.lie import se3, so3
from lissom.lie.spatial import about, adbar_matrix
from lissom.lie.types import by_reference, mat6, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes.block_tables import coordinate_blocks, squares
from lissom.passes.column_tables import Matrix
from lissom.passes.front_tables import FrontsStruct, front_tables
from lissom.passes.rare_kinds import is_stored
from lissom.passes.scratch import Scratch
from lissom.systems.block_elimination import (
    factor_block,
    gather_node,
    hand_on,
    moved,
    reduced,
    solve_inward,
    solve_outward,
    take_band,
)
from lissom.systems.bordered import LoopRows
from lissom.systems.front_factors import (
    add_column,
    add_row,
    clear_front,
    close_front,
    front_column,
    front_row,
    merge_front,
    reduce_front,
    store_front,
)
from lissom.systems.front_solves import front_inward, front_outward
from lissom.systems.independent_rows import choose_by_blocks
from lissom.systems.kept_blocks import KeptBlocks
from lissom.systems.loop_unknowns import LoopUnknownsStruct
from lissom.systems.loops import loop_gap, velocity_row
from lissom.systems.newton_blocks import PLAIN, is_tied, twist_from, wrench_from

_LEAST_COORDINATES = 60  # from which on a step took less time on nets of rods


@wp.struct
class ClosedBlocksStruct:
    """The fronts z, and `rows`, those with unknowns for the forces alone; unknowns of loops; C and R by block, factors
    of closed loops and the rows swapped there, fronts that wait, the one at work, and a row for reflections; by unknown
    what was taken from its diagonal, its right side and itself, and those of each front; by row of loops that of A in
    the base frame, and its size; M, N and H of newton_blocks as they were."""

    z: FrontsStruct
    rows: FrontsStruct
    p: LoopUnknownsStruct
    C: Matrix
    R: Matrix
    kept: Matrix
    swap: wp.array2d(dtype=wp.int32)
    front: Matrix
    work: Matrix
    mirror: Matrix
    gross: Matrix
    right: Matrix
    found: Matrix
    local: Matrix
    row: wp.array2d(dtype=vec6)
    size: Matrix
    M: wp.array2d(dtype=mat6)
    N: wp.array2d(dtype=mat6)
    H: wp.array2d(dtype=mat6)


ClosedBlocks = by_reference(ClosedBlocksStruct)


def closed_blocks(model: Model, batch: int, *, wide: bool) -> ClosedBlocksStruct:
    """Buffers for a batch, wide for matrices of steps."""
    b, fronts, rows = ClosedBlocksStruct(), front_tables(model, wide=wide), front_tables(model, wide=False)
    b.z, b.rows = fronts.tables, rows.tables
    n, m = fronts.unknowns, model.n_rows
    counts = dict.fromkeys(("gross", "right", "found"), n) | dict.fromkeys(("size", "row"), m)
    counts |= {"C": fronts.answers, "R": fronts.rows, "kept": fronts.kept, "swap": fronts.places}
    counts |= {"local": fronts.places, "front": max(fronts.fronts, rows.fronts), "work": max(fronts.work, rows.work)}
    counts |= {"mirror": rows.widest} | dict.fromkeys(("M", "N", "H"), model.n_dynamic)
    _fill(model, batch, b, counts)
    b.p = LoopUnknownsStruct()
    _fill(model, batch, b.p, {"own": n, "damping": n, "pull": n, "push": 2 * n, "known": 2 * n})
    return b


def _fill(model: Model, batch: int, b: Any, counts: dict[str, int]) -> None:
    for name, count in counts.items():
        dtype = b._cls.vars[name].type.dtype
        setattr(b, name, wp.zeros((batch, count), dtype=dtype, device=model.device))


@wp.func
def ask_all(i: int, loops: LoopRows):
    """Choose all rows of loops."""
    for row in range(loops.force.shape[1]):
        loops.slot[i, row] = row
    loops.kept[i] = loops.force.shape[1]


@wp.func(inline=False)
def choose_again(t: Tables, s: Scratch, b: KeptBlocks, c: ClosedBlocks, i: int, loops: LoopRows):
    """Choose independent rows of loops."""
    for loop in range(t.loops.node.shape[0]):
        g = loop_gap(t, s, i, loop)
        for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
            c.row[i, row] = se3.Ad_dual(g.R_B, g.p_B, velocity_row(t, g, loop, row))
    loops.kept[i] = choose_by_blocks(
        b.x, b.y, c.rows, i, b.centre, c.row, b.L, loops.scale, c.work, c.mirror, c.front, c.size, loops.slot
    )


@wp.func(inline=False)
def gather_fronts(b: KeptBlocks, c: ClosedBlocks, i: int, e: int, by_wrench: wp.float64):
    """The front of block e from those that hang on it and from ends of loops at its nodes."""
    clear_front(b.y, c.z, i, e, c.work, c.C, c.R)
    for m in range(c.z.child_start[e], c.z.child_start[e + 1]):
        child = c.z.child[m]
        merge_front(c.z, i, e, child, c.front, c.work)
        if e < b.y.count:
            k = b.y.parent[child]
            r = b.centre[i, child] - b.centre[i, e]
            first = c.z.up_start[child]
            for a in range(c.z.up_start[child + 1] - first):
                at = c.z.up[first + a]
                add_row(b.x, b.y, c.z, i, e, k, at, 0, r, front_row(c.z, i, child, a, 0, c.front), b.J, c.work, c.R)
                if by_wrench != so3.ZERO:
                    f = front_row(c.z, i, child, a, 1, c.front)
                    add_row(b.x, b.y, c.z, i, e, k, at, 1, r, f, b.J_R, c.work, c.R)
                    f = front_row(c.z, i, child, a, 2, c.front)
                    add_row(b.x, b.y, c.z, i, e, k, at, 2, r, f, b.J_P, c.work, c.R)
                add_column(b.x, b.y, c.z, i, e, k, at, r, front_column(c.z, i, child, a, c.front), b.L, c.work, c.C)
    for m in range(c.z.end_start[e], c.z.end_start[e + 1]):
        loop = c.z.end[m] / 2
        side = c.z.end[m] % 2
        sign = wp.float64(1 - 2 * side)
        r = -b.centre[i, e]
        for u in range(c.z.loop_start[loop], c.z.loop_start[loop + 1]):
            at = c.z.end_at[m] + u - c.z.loop_start[loop]
            add_row(b.x, b.y, c.z, i, e, c.z.end_node[m], at, 0, r, sign * c.p.pull[i, u], b.J, c.work, c.R)
            add_column(b.x, b.y, c.z, i, e, c.z.end_node[m], at, r, c.p.push[i, 2 * u + side], b.L, c.work, c.C)


@wp.func
def front_part(c: ClosedBlocks, i: int, e: int, part: int) -> mat6:
    """What loops add to Λ of block e in answer to one part of the motion of what it hangs on."""
    out = mat6()
    open = c.z.size[e] - c.z.closed[e]
    for k in range(6):
        f = front_row(c.z, i, e, open + k, part, c.front)
        for j in range(6):
            out[k, j] = f[j]
    return out


@wp.func(inline=False)
def closed_front(b: KeptBlocks, c: ClosedBlocks, i: int, e: int, is_sure: bool) -> int:
    """Eliminate the loops that close at block e and keep its front; −1 where their rows may depend on each other."""
    found = close_front(c.z, i, e, c.p.own, c.gross, c.swap, c.work)
    if found < 0 or (found > 0 and not is_sure):
        return -1
    store_front(c.z, i, e, c.work, c.kept, c.front)
    return 0


@wp.func(inline=False)
def close_block(
    t: Tables, s: Scratch, b: KeptBlocks, c: ClosedBlocks, i: int, e: int, by_wrench: wp.float64, is_sure: bool
) -> int:  # fmt: skip
    """Eliminate block e and the loops that close there, and hand on what is left; 1 + the coordinate of a pivot that
    vanished, −1 where rows of loops may depend on each other, or 0."""
    if e == b.y.count:
        gather_fronts(b, c, i, e, by_wrench)
        return closed_front(b, c, i, e, is_sure)
    take_band(b.y, b.band.width, i, e, b.K, b.B, b.answer, b.V)
    H = mat6()
    N = mat6()
    M = mat6()
    for m in range(b.y.node_start[e], b.y.node_start[e + 1]):
        k = b.y.node[m]
        H += b.H[i, k]
        N += b.N[i, k]
        M += b.M[i, k]
        bar = by_wrench * adbar_matrix(wrench_from(s.node[i, k].F, b.centre[i, e]))
        before = b.y.inside[k]
        if is_stored(t.node[k].has_quaternion):
            gather_node(b.x, b.y, i, e, k, before, b.H[i, k], b.N[i, k], b.M[i, k], bar, b.S_T, b.J, b.J_R, b.J_P,
                        b.L, b.B, b.answer, b.V)  # fmt: skip
        else:
            gather_node(b.x, b.y, i, e, k, before, b.H[i, k], b.N[i, k], b.M[i, k], bar, b.S, b.J, b.J_R, b.J_P,
                        b.L, b.B, b.answer, b.V)  # fmt: skip
    pivot = factor_block(b.y, i, e, b.B, b.pivots, b.answer, b.V)
    if pivot != 0:
        return pivot
    gather_fronts(b, c, i, e, by_wrench)
    reduce_front(b.y, c.z, i, e, b.B, b.pivots, b.answer, b.V, c.C, c.R, c.work, c.gross)
    pivot = closed_front(b, c, i, e, is_sure)
    parent = b.y.parent[e]
    if pivot == 0 and parent >= 0:
        r = b.centre[i, e] - b.centre[i, b.y.above[e]]
        H = reduced(b.y, i, e, 0, H, b.answer, b.V) + front_part(c, i, e, 0)
        N = reduced(b.y, i, e, 1, N, b.answer, b.V) + front_part(c, i, e, 1)
        M = reduced(b.y, i, e, 2, M, b.answer, b.V) + front_part(c, i, e, 2)
        b.H[i, parent] = b.H[i, parent] + about(H, r)
        b.N[i, parent] = b.N[i, parent] + about(N, r)
        b.M[i, parent] = b.M[i, parent] + about(M, r)
    return pivot


@wp.func(inline=False)
def eliminate(
    t: Tables, s: Scratch, b: KeptBlocks, c: ClosedBlocks, i: int, by_wrench: wp.float64, is_sure: bool
) -> int:  # fmt: skip
    """Eliminate all blocks and loops; as close_block."""
    for u in range(c.gross.shape[1]):
        c.gross[i, u] = so3.ZERO
    pivot = wp.int32(0)
    for step in range(b.y.count + 1):
        e = c.z.order[step]
        if pivot == 0:
            pivot = close_block(t, s, b, c, i, e, by_wrench, is_sure)
    return pivot


@wp.func
def factor_closed_blocks(
    t: Tables, s: Scratch, b: KeptBlocks, c: ClosedBlocks, i: int, by_wrench: wp.float64, loops: LoopRows,
    put: wp.Function,
) -> int:  # fmt: skip
    """Factor what was made of all blocks, with the loops, `put` saying what their unknowns do; 1 + the coordinate of a
    pivot that vanished, −1 where one of loops has, or 0."""
    for k in range(t.n_dynamic):
        c.M[i, k] = b.M[i, k]
        c.N[i, k] = b.N[i, k]
        c.H[i, k] = b.H[i, k]
    loops.sigma[i] = so3.ONE
    ask_all(i, loops)
    put(t, s, c.p, i, loops)
    pivot = eliminate(t, s, b, c, i, by_wrench, False)
    if pivot < 0:
        for k in range(t.n_dynamic):
            b.M[i, k] = c.M[i, k]
            b.N[i, k] = c.N[i, k]
            b.H[i, k] = c.H[i, k]
        choose_again(t, s, b, c, i, loops)
        put(t, s, c.p, i, loops)
        pivot = eliminate(t, s, b, c, i, by_wrench, True)
    return pivot


@wp.func
def slot_of(c: ClosedBlocks, i: int, u: int, loops: LoopRows) -> int:
    """Number of the kept row of an unknown, or -1."""
    row = c.z.row_of[u]
    if row >= 0:
        return loops.slot[i, row]
    return -1


@wp.func
def asked(c: ClosedBlocks, i: int, nv: int, u: int, loops: LoopRows) -> wp.float64:
    """What stands on the right side for an unknown of a loop."""
    at = slot_of(c, i, u, loops)
    if at >= 0:
        return loops.unknown[i, nv + at]
    return so3.ZERO


@wp.func
def push_known(b: KeptBlocks, c: ClosedBlocks, i: int, nv: int, e: int, loops: LoopRows):
    """Put on block e what the right sides of loops do to their ends there."""
    for m in range(c.z.end_start[e], c.z.end_start[e + 1]):
        loop = c.z.end[m] / 2
        F = vec6()
        for u in range(c.z.loop_start[loop], c.z.loop_start[loop + 1]):
            F += asked(c, i, nv, u, loops) * c.p.known[i, 2 * u + c.z.end[m] % 2]
        F = wrench_from(F, b.centre[i, e])
        b.wrench[i, e] = b.wrench[i, e] + F
        hand_on(b.x, b.y, i, e, c.z.end_node[m], F, b.L, loops.unknown)


@wp.func(inline=False)
def solve_inward_closed(b: KeptBlocks, c: ClosedBlocks, i: int, nv: int, loops: LoopRows):
    """From the tips to the base."""
    for e in range(b.y.count):
        b.wrench[i, e] = vec6()
    for u in range(c.right.shape[1]):
        c.right[i, u] = asked(c, i, nv, u, loops)
    for step in range(b.y.count + 1):
        e = c.z.order[step]
        w = vec6()
        parent = wp.int32(-1)
        if e < b.y.count:
            parent = b.y.parent[e]
            push_known(b, c, i, nv, e, loops)
            w = solve_inward(b.y, i, e, b.wrench[i, e], b.B, b.pivots, b.V, loops.unknown)
        w = front_inward(b.y, c.z, i, e, w, loops.unknown, c.R, c.kept, c.swap, c.right, c.local)
        if parent >= 0:
            below = b.y.above[e]
            w = wrench_from(w, b.centre[i, below] - b.centre[i, e])
            b.wrench[i, below] = b.wrench[i, below] + w
            hand_on(b.x, b.y, i, below, parent, w, b.L, loops.unknown)


@wp.func(inline=False)
def solve_closed_blocks(b: KeptBlocks, c: ClosedBlocks, i: int, nv: int, loops: LoopRows):
    """Solve by what factor_closed_blocks left for what stands in loops.unknown."""
    solve_inward_closed(b, c, i, nv, loops)
    for step in range(b.y.count + 1):
        e = c.z.order[b.y.count - step]
        x = vec6()
        w = vec6()
        z = vec6()
        if e < b.y.count:
            k = b.y.parent[e]
            if k >= 0:
                below = b.y.above[e]
                r = b.centre[i, e] - b.centre[i, below]
                x = twist_from(moved(b.x, b.y, i, below, k, b.state[i, 3 * below], b.J, loops.unknown), r)
                w = twist_from(moved(b.x, b.y, i, below, k, b.state[i, 3 * below + 1], b.J_R, loops.unknown), r)
                z = twist_from(moved(b.x, b.y, i, below, k, b.state[i, 3 * below + 2], b.J_P, loops.unknown), r)
            b.state[i, 3 * e] = x
            b.state[i, 3 * e + 1] = w
            b.state[i, 3 * e + 2] = z
            solve_outward(b.y, i, e, x, w, z, b.answer, loops.unknown)
        front_outward(b.y, c.z, i, e, x, w, z, c.C, c.kept, c.found, c.local, loops.unknown)
    for u in range(c.found.shape[1]):
        at = slot_of(c, i, u, loops)
        if at >= 0:
            loops.unknown[i, nv + at] = c.found[i, u]


def steps_closed_by_blocks(model: Model) -> bool:
    """Whether implicit steps of a robot with loops eliminate blocks one after the other."""
    return model.nv >= _LEAST_COORDINATES and closes_by_blocks(model) and not is_tied(model)


def closes_by_blocks(model: Model) -> bool:
    """Whether the matrices of a robot with loops can be factored block by block: no block is most of it, and all that
    nothing hangs on has an inertia of its own, so that what is behind a block is never without."""
    return bool(model.n_rows) and model.cached(("closes by blocks",), lambda: _closes(model))


def _closes(model: Model) -> bool:
    one, size = model.of_row(0, 1), squares(model)
    if size.max(initial=0) > model.nv // 2 or int(size.sum()) != model.nv:
        return False
    blocks = coordinate_blocks(one)
    bears = {one.nodes.parent[block.nodes[0]] for block in blocks}
    ends = [block for block in blocks if not bears.intersection(block.nodes)]
    plain = bool(np.isin(one.nodes.kind, PLAIN).all())
    return plain and all(max(map(np.linalg.matrix_rank, one.nodes.inertia[block.nodes])) == 6 for block in ends)
