"""Elimination of blocks of coordinates in [K, −Aᵀ; A_q, 0] of robots with many links, inside kernels.

K is the matrix of Newton's method of newton_matrix, A and A_q are the constraint rows of bordered (1) with σ = 1. A
tree has no rows. With the mass matrix in place of K the system is that of accelerations, [M, −Aᵀ; A, 0]; there inertias
replace H, and N and M are zero.

A change δ of the coordinates changes the motion of the nodes by x = J δ, w = J_R' δ and z = J_P δ, which are path sums
of the columns S T, R' and P of newton_matrix. The wrenches at the nodes change by H x + N w + M z. A block (blocks) is
attached to one node. It depends on the rest of the robot only by the 18 numbers y = (x, w, z) of that node, and acts on
the rest only by the six numbers of its wrench there. With Y_k the columns of the block up to its node k, L_k those of
S, and Ê_k = (H, N, M) of k with all blocks attached to it:

    y_k = y + Y_k δ                                                                                       (1)
    B δ = f − Σ L_kᵀ ĉ_k − G y,   G = Σ L_kᵀ Ê_k                                                            (2)
    B = Σ L_kᵀ Ê_k Y_k + Σ L_pᵀ adbar_{Fᶜ_k} S_k T + local + K + c₀ I_a,   p the node before k in the block         (3)
    Λ = Σ Ê_k − V B⁻¹ G,   c = Σ ĉ_k + V B⁻¹ (f − Σ L_kᵀ ĉ_k),   V = Σ Ê_k Y_k + Σ adbar_{Fᶜ_k} S_k T           (4)
    Ê_k = (H, N, M)_k + Σ Λ,   ĉ_k = Σ c   over the blocks attached to k                                    (5)

The elimination goes from the tips to the base and back. Cost and memory are proportional to the number of blocks. It
is exact. Rows are swapped only within blocks, so that a block may be singular though the whole matrix is not; long
steps near a limit of stability may lead there. Such a step is rejected like one with a singular matrix, and in a
shorter step the mass matrix has more weight. Each block has an origin of its own, as in articulated.

The unknowns of loops are those of loop_unknowns, and each block is eliminated together with its front of `fronts`. The
matrix is computed for all blocks before the elimination, since it may be factored twice: the first elimination uses
all constraint rows; if a pivot is not larger than its rounding error, `fronts` finds independent rows and the matrix is
factored again.

The matrices of all blocks of n coordinates each lie one after the other. Square ones (n x n, such as B) begin at
`square_start`. Those with six rows (6 x n, such as V) begin at 6 `row_start`. Those with n rows (such as G) have STATE
= 24 numbers in a row, of which 18 are used, and begin at 24 times the first coordinate of the block.

Source: R. Featherstone, Rigid Body Dynamics Algorithms, 2008, §7.3, for the way of articulated bodies; F. Boyer et al.
2023 §VI for linearised dynamics as one more pass along the links; the columns are those of Mathew 2025 §4.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.forces.term import with_response
from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.se3 import about, adbar_matrix, rate_of_momentum
from lissom.lie.types import by_reference, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import kinds
from lissom.passes.blocks import (
    STATE,
    Blocks,
    BlocksStruct,
    FrontsStruct,
    band_columns,
    band_size,
    block_columns,
    block_tables,
    block_width,
    coordinate_blocks,
    front_tables,
    squares,
)
from lissom.passes.columns import Columns, ColumnsStruct, Matrix, NewtonPoint, NewtonSumsStruct
from lissom.passes.features import may_have_loops, optional_kinds
from lissom.passes.linear_algebra import Pivots
from lissom.passes.scratch import Scratch
from lissom.systems.articulated import sum_path
from lissom.systems.bordered import LoopRows
from lissom.systems.fronts import (
    about_centre,
    add_column,
    add_row,
    choose_closing,
    clear_front,
    close_front,
    front_column,
    front_inward,
    front_outward,
    front_row,
    gather_children,
    merge_front,
    put_open_rows,
    reduce_front,
    row_sizes,
    store_front,
)
from lissom.systems.loop_unknowns import LoopUnknownsStruct
from lissom.systems.loops import loop_state, velocity_row
from lissom.systems.mass import add_armature_rows

_LEAST_COORDINATES = 64  # from here on a step is faster by blocks, on chains and nets of rods and of rigid links


native = native_functions("systems/elimination.h", STATE=STATE)


@wp.func_native(native("clear_row"))
def clear_row(i: int, X: Matrix):
    """X = 0."""
    ...


@wp.func_native(native("load_band"))
def load_band(y: Blocks, band: int, i: int, e: int, K: Matrix, B: Matrix, G: Matrix, V: Matrix):
    """B = local + K of block e, from K in rows of `band` numbers; G = V = 0."""
    ...


@wp.func_native(native("factor_block"))
def factor_block(
    y: Blocks, i: int, e: int, B: Matrix, pivots: Pivots, G: Matrix, V: Matrix
) -> int:  # fmt: skip
    """Overwrite B by its LU factors with swapped rows, and G by B⁻¹ G. Rows and columns of prescribed coordinates are
    those of the identity. Returns 0, or 1 + the coordinate of a pivot that is zero or not finite."""
    ...


@wp.func_native(native("reduced_response"))
def reduced_response(y: Blocks, i: int, e: int, part: int, sum: mat6, inverse_G: Matrix, V: Matrix) -> mat6:
    """The part of Λ of (4) for x, w or z (part 0, 1 or 2); `sum` is this part of Σ Ê."""
    ...


@wp.func_native(native("solve_inward"))
def solve_inward(
    y: Blocks, i: int, e: int, below: vec6, B: Matrix, pivots: Pivots, V: Matrix, f: Matrix
) -> vec6:  # fmt: skip
    """c of (4) for block e, with Σ ĉ in `below`; f − Σ Lᵀ ĉ on its coordinates is replaced by B⁻¹ (f − Σ Lᵀ ĉ)."""
    ...


@wp.func_native(native("subtract_projection"))
def subtract_projection(x: Columns, y: Blocks, i: int, e: int, k: int, c: vec6, L: Matrix, f: Matrix):
    """f −= L_kᵀ c on the coordinates of block e."""
    ...


@wp.func_native(native("block_motion"))
def block_motion(x: Columns, y: Blocks, i: int, e: int, k: int, start: vec6, J: Matrix, f: Matrix) -> vec6:
    """One of the three parts x, w or z of y_k of (1), at node k of block e. `start` is the same part of y, J the
    path sums of this part; f contains δ."""
    ...


@wp.func_native(native("solve_outward"))
def solve_outward(y: Blocks, i: int, e: int, x: vec6, w: vec6, z: vec6, inverse_G: Matrix, f: Matrix):
    """Replace the result of solve_inward in f by δ of (2); x, w and z are the parts of y."""
    ...


@wp.struct
class BlockMatrixStruct:
    """The matrix of all blocks and its factors.

    Tables: x, band, y. By node: sums: columns and path sums within its block. L: path sums of S within its block. M, N,
    H: 6x6 matrices. Of all coordinates: K: local terms + K. By block: centre: its origin. B, pivots: LU factors of B
    and swapped rows. inverse_G: B⁻¹ G. V: V. wrench: Σ ĉ. state: y.
    """

    x: ColumnsStruct
    band: ColumnsStruct
    y: BlocksStruct
    sums: NewtonSumsStruct
    L: Matrix
    M: wp.array2d(dtype=mat6)
    N: wp.array2d(dtype=mat6)
    H: wp.array2d(dtype=mat6)
    K: Matrix
    centre: wp.array2d(dtype=vec3)
    B: Matrix
    pivots: wp.array2d(dtype=wp.int32)
    inverse_G: Matrix
    V: Matrix
    wrench: wp.array2d(dtype=vec6)
    state: wp.array2d(dtype=vec6)


BlockMatrix = by_reference(BlockMatrixStruct)


@wp.func_native(native("gather_node"))
def gather_node(
    b: BlockMatrix, i: int, e: int, k: int, H: mat6, N: mat6, M: mat6, bar: mat6, S: Matrix
):  # fmt: skip
    """Add node k of block e, with its columns S T in S, to B of (3), G of (2) in inverse_G, and V of (4)."""
    ...


def block_matrix(model: Model, batch: int, *, of_mass: bool = False) -> BlockMatrixStruct:
    """Buffers for a batch; for a mass matrix, all path sums are the same array."""
    b, sums, size = BlockMatrixStruct(), NewtonSumsStruct(), squares(model)
    b.x, b.band, b.y = block_columns(model), band_columns(model), block_tables(model)
    width = (size + 7) // 8 * 8
    rows, blocks = int(width.sum()), len(size)
    columns = (batch, 6 * model.n_dynamic * block_width(model))
    for name in ("S", "J") if of_mass else NewtonSumsStruct.vars:
        setattr(sums, name, wp.zeros(columns, dtype=wp.float64, device=model.device))
    if of_mass:
        sums.S_T, sums.J_R, sums.J_P = sums.S, sums.J, sums.J
    b.sums = sums
    b.L = sums.J if of_mass else wp.zeros(columns, dtype=wp.float64, device=model.device)
    counts = dict.fromkeys(("M", "N", "H"), model.n_dynamic)
    counts |= {"K": band_size(model), "B": int((size * width).sum()), "pivots": rows, "inverse_G": 24 * model.nv}
    counts |= {"V": 6 * rows, "centre": blocks, "wrench": blocks, "state": 3 * blocks}
    for name, count in counts.items():
        dtype = BlockMatrixStruct.vars[name].type.dtype
        setattr(b, name, wp.zeros((batch, count), dtype=dtype, device=model.device))
    return b


@wp.func
def twist_from(y: vec6, r: vec3) -> vec6:
    """A twist about a point at r from that about the origin."""
    w = se3.angular(y)
    return se3.join(w, se3.linear(y) + wp.cross(w, r))


@wp.func
def shift_origin(s: Scratch, i: int, k: int, centre: vec3):
    """Express the state of node k about the origin `centre`; returns its former position, twist, acceleration and
    wrench."""
    p = s.node[i, k].p
    eta = s.node[i, k].eta
    acc = s.node[i, k].acc
    F = s.node[i, k].F
    s.node[i, k].p = p - centre
    s.node[i, k].eta = twist_from(eta, centre)
    s.node[i, k].acc = twist_from(acc, centre)
    s.node[i, k].F = about_centre(F, centre)
    return p, eta, acc, F


@wp.func
def restore_node(s: Scratch, i: int, k: int, p: vec3, eta: vec6, acc: vec6, F: vec6):
    """Restore the state of node k before shift_origin exactly."""
    s.node[i, k].p = p
    s.node[i, k].eta = eta
    s.node[i, k].acc = acc
    s.node[i, k].F = F


@wp.func(inline=False)
def make_mass_blocks(t: Tables, s: Scratch, b: BlockMatrix, i: int):
    """Compute the mass matrix of all blocks from the poses in s: inertias in place of H, path sums of S in place of all
    others."""
    for j in range(b.K.shape[1]):
        b.K[i, j] = so3.ZERO
    add_armature_rows(t, b.band.width, i, so3.ONE, b.K)
    for e in range(b.y.count):
        centre = s.node[i, b.y.node[b.y.node_start[e]]].p
        b.centre[i, e] = centre
        for m in range(b.y.node_start[e], b.y.node_start[e + 1]):
            k = b.y.node[m]
            p = s.node[i, k].p
            s.node[i, k].p = p - centre
            b.H[i, k] = kinds.spatial_inertia(t, s, i, k)
            b.N[i, k] = mat6()
            b.M[i, k] = mat6()
            kinds.motion_columns(t, s, b.x, i, k, b.sums.S)
            sum_path(b.x, b.y.width[e], b.y.inside[k], i, k, b.sums.S, b.sums.J)
            s.node[i, k].p = p


@wp.func(inline=False)
def open_node(t: Tables, s: Scratch, b: BlockMatrix, i: int, k: int, centre: vec3, point: NewtonPoint):
    """Compute the columns of node k and their path sums within its block, its 6x6 matrices M, N and H, and the
    derivative of Sᵀ F at fixed F, which is added to b.K; all with moments about `centre`. On entry b.H holds H about
    the origin of the base frame."""
    p, eta, acc, F = shift_origin(s, i, k, centre)
    parent = t.node[k].parent
    p_below = vec3()
    eta_below = vec6()
    acc_below = vec6()
    F_below = vec6()
    if parent >= 0:
        p_below, eta_below, acc_below, F_below = shift_origin(s, i, parent, centre)
    kinds.newton_columns_of_node(t, s, b.x, b.band, i, k, b.y.inside[k], point, b.sums, b.K)
    M = kinds.spatial_inertia(t, s, i, k)
    b.M[i, k] = M
    b.N[i, k] = rate_of_momentum(M, s.node[i, k].eta) + about(with_response(s, i, k, mat6()), -centre)
    b.H[i, k] = about(b.H[i, k], -centre)
    if parent >= 0:
        restore_node(s, i, parent, p_below, eta_below, acc_below, F_below)
    restore_node(s, i, k, p, eta, acc, F)


@wp.func
def open_blocks(t: Tables, s: Scratch, b: BlockMatrix, i: int, point: NewtonPoint):
    """Compute columns and matrices of all nodes (`open_node`) and the path sums L, each block about the position of its
    first node. On entry b.H holds H of all nodes, and s their motion and wrenches summed over subtrees."""
    for e in range(b.y.count):
        centre = s.node[i, b.y.node[b.y.node_start[e]]].p
        b.centre[i, e] = centre
        for m in range(b.y.node_start[e], b.y.node_start[e + 1]):
            k = b.y.node[m]
            open_node(t, s, b, i, k, centre, point)
            sum_path(b.x, b.y.width[e], b.y.inside[k], i, k, b.sums.S, b.L)


@wp.struct
class LoopFrontsStruct:
    """Fronts and unknowns of loops.

    Tables: z: fronts. rows: fronts whose unknowns are the forces only. p: coefficients of the unknowns.
    By block: C, R: coupling to the loops. closed_factors, swap: factors of the loops that close there, and swapped
    rows. front: remaining fronts of eliminated blocks, as a stack. work: the current front. reflector: a Householder
    vector. By unknown: subtracted: sum of magnitudes subtracted from its diagonal entry. right: right side. solution.
    local: values in the order of each front. By row of loops: row: row of A in the base frame. size: its square.
    By node: M, N, H: copies of the 6x6 matrices, for a second elimination.
    """

    z: FrontsStruct
    rows: FrontsStruct
    p: LoopUnknownsStruct
    C: Matrix
    R: Matrix
    closed_factors: Matrix
    swap: wp.array2d(dtype=wp.int32)
    front: Matrix
    work: Matrix
    reflector: Matrix
    subtracted: Matrix
    right: Matrix
    solution: Matrix
    local: Matrix
    row: wp.array2d(dtype=vec6)
    size: Matrix
    M: wp.array2d(dtype=mat6)
    N: wp.array2d(dtype=mat6)
    H: wp.array2d(dtype=mat6)


LoopFronts = by_reference(LoopFrontsStruct)


def loop_fronts(model: Model, batch: int, *, wide: bool) -> LoopFrontsStruct:
    """Buffers for a batch; `wide` for matrices of steps, with six unknowns for each loop."""
    b, fronts, rows = LoopFrontsStruct(), front_tables(model, wide=wide), front_tables(model, wide=False)
    b.z, b.rows = fronts.tables, rows.tables
    n, m = fronts.unknowns, model.n_rows
    counts = dict.fromkeys(("subtracted", "right", "solution"), n) | dict.fromkeys(("size", "row"), m)
    counts |= {"C": fronts.inverse_C, "R": fronts.rows, "closed_factors": fronts.closed_factors, "swap": fronts.places}
    counts |= {"local": fronts.places, "front": max(fronts.fronts, rows.fronts), "work": max(fronts.work, rows.work)}
    counts |= {"reflector": rows.longest_row} | dict.fromkeys(("M", "N", "H"), model.n_dynamic if m else 0)
    _fill(model, batch, b, counts)
    b.p = LoopUnknownsStruct()
    _fill(model, batch, b.p, {"diagonal": n, "damping": n, "row": n, "wrench": 2 * n, "known_wrench": 2 * n})
    return b


def _fill(model: Model, batch: int, b: Any, counts: dict[str, int]) -> None:
    """Set arrays of zeros (batch, count) in a struct."""
    for name, count in counts.items():
        dtype = b._cls.vars[name].type.dtype
        setattr(b, name, wp.zeros((batch, count), dtype=dtype, device=model.device))


@wp.func
def has_loops(c: LoopFronts) -> bool:
    """Whether there are unknowns of loops."""
    return may_have_loops() and c.right.shape[1] > 0


@wp.func
def choose_all_rows(i: int, loops: LoopRows):
    """Treat all constraint rows as independent."""
    for row in range(loops.force.shape[1]):
        loops.slot[i, row] = row
    loops.rank[i] = loops.force.shape[1]


@wp.func(inline=False)
def number_independent_rows(b: BlockMatrix, c: LoopFronts, i: int, loops: LoopRows):
    """Number the independent ones of the rows in c.row in loops.slot, the others −1, and count them in loops.rank."""
    m = loops.slot.shape[1]
    for row in range(m):
        loops.slot[i, row] = -1
    row_sizes(b.x, b.y, c.rows, i, b.centre, c.row, b.L, loops.scale, c.work, c.size)
    largest = wp.float64(0.0)
    for row in range(m):
        largest = wp.max(largest, c.size[i, row])
    for step in range(b.y.count + 1):
        e = c.rows.order[step]
        n_child = gather_children(b.y, c.rows, i, e, c.front, c.work)
        if e < b.y.count:
            put_open_rows(b.x, b.y, c.rows, i, e, n_child, b.centre[i, e], c.row, b.L, loops.scale, c.work)
        choose_closing(b.y, c.rows, i, e, n_child, largest, c.work, c.reflector, c.front, loops.slot)
    rank = wp.int32(0)
    for row in range(m):
        if loops.slot[i, row] >= 0:
            loops.slot[i, row] = rank
            rank += 1
    loops.rank[i] = rank


@wp.func(inline=False)
def choose_independent_rows(t: Tables, s: Scratch, b: BlockMatrix, c: LoopFronts, i: int, loops: LoopRows):
    """Find independent constraint rows: loops.slot and loops.rank."""
    for loop in range(t.loops.node.shape[0]):
        g = loop_state(t, s, i, loop)
        for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
            c.row[i, row] = se3.Ad_dual(g.R_B, g.p_B, velocity_row(t, s, g, i, loop, row))
    number_independent_rows(b, c, i, loops)


@wp.func(inline=False)
def gather_fronts(b: BlockMatrix, c: LoopFronts, i: int, e: int, by_wrench: wp.float64):
    """Assemble the front of block e from those of its child blocks and from the ends of loops at its nodes."""
    clear_front(b.y, c.z, i, e, c.work, c.C, c.R)
    for m in range(c.z.child_start[e], c.z.child_start[e + 1]):
        child = c.z.child[m]
        merge_front(c.z, i, e, child, c.front, c.work)
        if e < b.y.count:
            k = b.y.parent[child]
            r = b.centre[i, e] - b.centre[i, child]
            first = c.z.in_parent_start[child]
            for a in range(c.z.in_parent_start[child + 1] - first):
                at = c.z.in_parent[first + a]
                f = about_centre(front_row(c.z, i, child, a, 0, c.front), r)
                add_row(b.x, b.y, c.z, i, e, k, at, 0, f, b.sums.J, c.work, c.R)
                if by_wrench != so3.ZERO:
                    f = about_centre(front_row(c.z, i, child, a, 1, c.front), r)
                    add_row(b.x, b.y, c.z, i, e, k, at, 1, f, b.sums.J_R, c.work, c.R)
                    f = about_centre(front_row(c.z, i, child, a, 2, c.front), r)
                    add_row(b.x, b.y, c.z, i, e, k, at, 2, f, b.sums.J_P, c.work, c.R)
                column = about_centre(front_column(c.z, i, child, a, c.front), r)
                add_column(b.x, b.y, c.z, i, e, k, at, column, b.L, c.work, c.C)
    for m in range(c.z.end_start[e], c.z.end_start[e + 1]):
        loop = c.z.end[m] / 2
        side = c.z.end[m] % 2
        sign = wp.float64(1 - 2 * side)
        centre = b.centre[i, e]
        for u in range(c.z.loop_start[loop], c.z.loop_start[loop + 1]):
            at = c.z.end_place[m] + u - c.z.loop_start[loop]
            f = about_centre(sign * c.p.row[i, u], centre)
            add_row(b.x, b.y, c.z, i, e, c.z.end_node[m], at, 0, f, b.sums.J, c.work, c.R)
            F = about_centre(c.p.wrench[i, 2 * u + side], centre)
            add_column(b.x, b.y, c.z, i, e, c.z.end_node[m], at, F, b.L, c.work, c.C)


@wp.func
def front_part(c: LoopFronts, i: int, e: int, part: int) -> mat6:
    """The share of loops in Λ of block e, for one part (0, 1, 2: x, w, z) of the motion of the parent node."""
    out = mat6()
    open = c.z.size[e] - c.z.closed[e]
    for k in range(6):
        f = front_row(c.z, i, e, open + k, part, c.front)
        for j in range(6):
            out[k, j] = f[j]
    return out


@wp.func(inline=False)
def eliminate_closing_loops(b: BlockMatrix, c: LoopFronts, i: int, e: int, is_sure: bool) -> int:
    """Eliminate the loops that close at block e and store the remaining front; −1 if their rows may be dependent.

    `is_sure`: the rows are known to be independent, so that small pivots are accepted.
    """
    status = close_front(c.z, i, e, c.p.diagonal, c.subtracted, c.swap, c.work)
    if status < 0 or (status > 0 and not is_sure):
        return -1
    store_front(c.z, i, e, c.work, c.closed_factors, c.front)
    return 0


@wp.func(inline=False)
def close_block(
    t: Tables, s: Scratch, b: BlockMatrix, c: LoopFronts, i: int, e: int, by_wrench: wp.float64, is_sure: bool
) -> int:  # fmt: skip
    """Eliminate block e and the loops that close there, and add the remainder to the parent block; 1 + the coordinate
    of a zero pivot, −1 if constraint rows may be dependent, or 0."""
    if e == b.y.count:  # loops that close at the base
        gather_fronts(b, c, i, e, by_wrench)
        return eliminate_closing_loops(b, c, i, e, is_sure)
    load_band(b.y, b.band.width, i, e, b.K, b.B, b.inverse_G, b.V)
    H = mat6()
    N = mat6()
    M = mat6()
    for m in range(b.y.node_start[e], b.y.node_start[e + 1]):
        k = b.y.node[m]
        H += b.H[i, k]
        N += b.N[i, k]
        M += b.M[i, k]
        bar = by_wrench * adbar_matrix(about_centre(s.node[i, k].F, b.centre[i, e]))
        if kinds.has_step_tangent(t, k):
            gather_node(b, i, e, k, b.H[i, k], b.N[i, k], b.M[i, k], bar, b.sums.S_T)
        else:
            gather_node(b, i, e, k, b.H[i, k], b.N[i, k], b.M[i, k], bar, b.sums.S)
    pivot = factor_block(b.y, i, e, b.B, b.pivots, b.inverse_G, b.V)
    if pivot == 0 and has_loops(c):
        gather_fronts(b, c, i, e, by_wrench)
        reduce_front(b.y, c.z, i, e, b.B, b.pivots, b.inverse_G, b.V, c.C, c.R, c.work, c.subtracted)
        pivot = eliminate_closing_loops(b, c, i, e, is_sure)
    parent = b.y.parent[e]
    if pivot == 0 and parent >= 0:
        r = b.centre[i, e] - b.centre[i, b.y.above[e]]
        H = reduced_response(b.y, i, e, 0, H, b.inverse_G, b.V)
        N = reduced_response(b.y, i, e, 1, N, b.inverse_G, b.V)
        M = reduced_response(b.y, i, e, 2, M, b.inverse_G, b.V)
        if has_loops(c):
            H += front_part(c, i, e, 0)
            N += front_part(c, i, e, 1)
            M += front_part(c, i, e, 2)
        b.H[i, parent] = b.H[i, parent] + about(H, r)
        b.N[i, parent] = b.N[i, parent] + about(N, r)
        b.M[i, parent] = b.M[i, parent] + about(M, r)
    return pivot


@wp.func(inline=False)
def eliminate(
    t: Tables, s: Scratch, b: BlockMatrix, c: LoopFronts, i: int, by_wrench: wp.float64, is_sure: bool
) -> int:  # fmt: skip
    """Eliminate all blocks and loops; returns the status of close_block."""
    for u in range(c.subtracted.shape[1]):
        c.subtracted[i, u] = so3.ZERO
    pivot = wp.int32(0)
    for step in range(b.y.count + 1):
        e = c.z.order[step]
        if pivot == 0 and (e < b.y.count or has_loops(c)):
            pivot = close_block(t, s, b, c, i, e, by_wrench, is_sure)
    return pivot


@wp.func
def factor_blocks(
    t: Tables, s: Scratch, b: BlockMatrix, c: LoopFronts, i: int, by_wrench: wp.float64, loops: LoopRows,
    put: wp.Function,
) -> int:  # fmt: skip
    """Factor the matrix that open_blocks or make_mass_blocks has computed, with the coefficients of unknowns that `put`
    writes. Overwrites b.H, b.N and b.M. `by_wrench`: 1 for the matrix of a step, which reads F in s; 0 for a mass
    matrix. Returns 1 + the coordinate of a zero pivot, −1 for a pivot of loops, or 0."""
    loops.sigma[i] = so3.ONE
    choose_all_rows(i, loops)
    if has_loops(c):
        for k in range(t.n_dynamic):
            c.M[i, k] = b.M[i, k]
            c.N[i, k] = b.N[i, k]
            c.H[i, k] = b.H[i, k]
        put(t, s, c.p, i, loops)
    pivot = eliminate(t, s, b, c, i, by_wrench, False)
    if has_loops(c) and pivot < 0:
        for k in range(t.n_dynamic):
            b.M[i, k] = c.M[i, k]
            b.N[i, k] = c.N[i, k]
            b.H[i, k] = c.H[i, k]
        choose_independent_rows(t, s, b, c, i, loops)
        put(t, s, c.p, i, loops)
        pivot = eliminate(t, s, b, c, i, by_wrench, True)
    return pivot


@wp.func
def slot_of_unknown(c: LoopFronts, i: int, u: int, loops: LoopRows) -> int:
    """Number of unknown u among the independent rows, or −1."""
    row = c.z.row_of[u]
    if row >= 0:
        return loops.slot[i, row]
    return -1


@wp.func
def right_side(c: LoopFronts, i: int, nv: int, u: int, loops: LoopRows) -> wp.float64:
    """The right side of an unknown of a loop."""
    at = slot_of_unknown(c, i, u, loops)
    if at >= 0:
        return loops.unknown[i, nv + at]
    return so3.ZERO


@wp.func
def add_known_wrenches(b: BlockMatrix, c: LoopFronts, i: int, nv: int, e: int, loops: LoopRows):
    """Add the known wrenches of loops with ends at block e to the wrench of the block, and subtract their projection
    from its right side. A known wrench is that which the right side of an unknown causes (loop_unknowns)."""
    for m in range(c.z.end_start[e], c.z.end_start[e + 1]):
        loop = c.z.end[m] / 2
        F = vec6()
        for u in range(c.z.loop_start[loop], c.z.loop_start[loop + 1]):
            F += right_side(c, i, nv, u, loops) * c.p.known_wrench[i, 2 * u + c.z.end[m] % 2]
        F = about_centre(F, b.centre[i, e])
        b.wrench[i, e] = b.wrench[i, e] + F
        subtract_projection(b.x, b.y, i, e, c.z.end_node[m], F, b.L, loops.unknown)


@wp.func(inline=False)
def solve_blocks_inward(b: BlockMatrix, c: LoopFronts, i: int, nv: int, loops: LoopRows):
    """First half of the solution: from the tips to the base."""
    for e in range(b.y.count):
        b.wrench[i, e] = vec6()
    for u in range(c.right.shape[1]):
        c.right[i, u] = right_side(c, i, nv, u, loops)
    for step in range(b.y.count + 1):
        e = c.z.order[step]
        w = vec6()
        parent = wp.int32(-1)
        if e < b.y.count:
            parent = b.y.parent[e]
            if has_loops(c):
                add_known_wrenches(b, c, i, nv, e, loops)
            w = solve_inward(b.y, i, e, b.wrench[i, e], b.B, b.pivots, b.V, loops.unknown)
        if has_loops(c):
            w = front_inward(b.y, c.z, i, e, w, loops.unknown, c.R, c.closed_factors, c.swap, c.right, c.local)
        if parent >= 0:
            below = b.y.above[e]
            w = about_centre(w, b.centre[i, below] - b.centre[i, e])
            b.wrench[i, below] = b.wrench[i, below] + w
            subtract_projection(b.x, b.y, i, below, parent, w, b.L, loops.unknown)


@wp.func(inline=False)
def solve_blocks(b: BlockMatrix, c: LoopFronts, i: int, nv: int, loops: LoopRows):
    """Solve for the right side in loops.unknown by the factors of factor_blocks."""
    solve_blocks_inward(b, c, i, nv, loops)
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
                x = block_motion(b.x, b.y, i, below, k, b.state[i, 3 * below], b.sums.J, loops.unknown)
                w = block_motion(b.x, b.y, i, below, k, b.state[i, 3 * below + 1], b.sums.J_R, loops.unknown)
                z = block_motion(b.x, b.y, i, below, k, b.state[i, 3 * below + 2], b.sums.J_P, loops.unknown)
                x = twist_from(x, r)
                w = twist_from(w, r)
                z = twist_from(z, r)
            b.state[i, 3 * e] = x
            b.state[i, 3 * e + 1] = w
            b.state[i, 3 * e + 2] = z
            solve_outward(b.y, i, e, x, w, z, b.inverse_G, loops.unknown)
        if has_loops(c):
            front_outward(b.y, c.z, i, e, x, w, z, c.C, c.closed_factors, c.solution, c.local, loops.unknown)
    for u in range(c.solution.shape[1]):
        at = slot_of_unknown(c, i, u, loops)
        if at >= 0:
            loops.unknown[i, nv + at] = c.solution[i, u]


def steps_by_blocks(model: Model) -> bool:
    """Whether implicit steps eliminate blocks of coordinates, one for each joint or rod.

    Three conditions: the model has at least _LEAST_COORDINATES coordinates; no block has more than half of them; only
    joints and loops couple nodes. `has_couplings` lists the forces that couple nodes otherwise. `closes_by_blocks` has
    further conditions for loops.
    """
    if model.nv < _LEAST_COORDINATES or has_couplings(model):
        return False
    return closes_by_blocks(model) if model.n_rows else bool(squares(model).max(initial=0) <= model.nv // 2)


def has_couplings(model: Model) -> bool:
    """Whether forces couple nodes: those of `tied_nodes`, elastic couplings, contacts, elastic tendons, actuators of
    users, or Python functions."""
    return model.cached(("couples",), lambda: _has_couplings(model))


def _has_couplings(model: Model) -> bool:
    """`has_couplings` without a cache."""
    one = model.of_row(0, 1)
    if model.calls_python or len(one.spools.channel) or optional_kinds(one.nodes):
        return True
    if one.inputs.native:
        return True
    if one.joint_couplings.elastic_names:
        return True
    return any(bool((ends >= 0).all(axis=1).any()) for ends in (one.tied_nodes, one.contacts.pair_nodes))


def closes_by_blocks(model: Model) -> bool:
    """Whether the matrices of a robot with loops can be factored by elimination of blocks.

    There must be no couplings of joints, rigid or elastic, no skates, rolling contacts and functions. No block may have
    more than half of the coordinates. Each block at a tip must have a regular inertia; then the part beyond any block
    has one.
    """
    return bool(model.n_rows) and model.cached(("closes by blocks",), lambda: _closes(model))


def _closes(model: Model) -> bool:
    """`closes_by_blocks` without a cache, for a model with loops."""
    one, size = model.of_row(0, 1), squares(model)
    if one.joint_couplings.names or one.joint_couplings.elastic_names or set(one.loops.kinds) - {"loops"}:
        return False
    if size.max(initial=0) > model.nv // 2 or int(size.sum()) != model.nv:
        return False
    blocks = coordinate_blocks(one)
    parents = {one.nodes.parent[block.nodes[0]] for block in blocks}
    tips = [block for block in blocks if not parents.intersection(block.nodes)]
    regular = (max(map(np.linalg.matrix_rank, one.nodes.inertia[block.nodes])) == 6 for block in tips)
    return not optional_kinds(one.nodes) and all(regular)
