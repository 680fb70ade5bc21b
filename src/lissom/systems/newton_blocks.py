"""The matrix of Newton's method for robots of many links, factored by elimination of blocks, inside kernels.

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

This is block elimination of the matrix of newton_matrix, from the tips to the base and back. Cost and memory are
proportional to the number of blocks. It is exact. Rows are swapped only within blocks, so that a block may be singular
though the whole matrix is not; long steps near a limit of stability may lead there. Such a step is rejected like one
with a singular matrix, and in a shorter step the mass matrix has more weight. Each block has an origin of its own, as
in articulated. The columns of a block are computed just before its elimination, in buffers that all blocks share. Only
the data for the solution are stored for each block, so that those of long chains stay in the processor's cache.

Source: R. Featherstone, Rigid Body Dynamics Algorithms, 2008, §7.3, for the way of articulated bodies; F. Boyer et al.
2023 §VI for linearised dynamics as one more pass along the links; the columns are those of Mathew 2025 §4.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.forces.term import with_response
from lissom.lie import se3, so3
from lissom.lie.spatial import about, adbar_matrix, rate_of_momentum
from lissom.lie.types import by_reference, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import kinds
from lissom.passes.blocks import (
    BlocksStruct,
    band_columns,
    band_size,
    block_columns,
    block_tables,
    block_width,
    branch_nodes,
    longest_block,
    squares,
)
from lissom.passes.columns import ColumnsStruct, Matrix
from lissom.passes.features import optional_kinds
from lissom.passes.scratch import ALL_TERMS, Scratch
from lissom.systems.articulated import sum_path
from lissom.systems.block_elimination import (
    add_matrix_at,
    block_motion,
    clear_columns,
    clear_row,
    columns_from,
    copy_columns,
    factor_block,
    gather_node,
    load_band,
    plus_matrix_at,
    reduced_response,
    solve_inward,
    solve_outward,
    subtract_projection,
)
from lissom.systems.mass import add_armature_rows

_LEAST_COORDINATES = 64  # from here on a step is faster by blocks, on chains of rods and of rigid links


@wp.struct
class NewtonBlocksStruct:
    """Buffers of the elimination of blocks.

    Tables: x, band, y. Of the current block, by node counted from its first: S, S_T: columns S and S T. J, J_P, J_R, L:
    path sums within the block. M, N: 6x6 matrices with those of attached blocks. By node: H. By branch node: attached:
    Λ of the blocks attached to it (H, N, M). branch_columns: L, J, J_R and J_P. Of all coordinates: K: local terms + K.

    By block: centre: its origin. B, pivots: LU factors of B and swapped rows. inverse_G: B⁻¹ G. V: V. wrench: Σ ĉ.
    state: y. pivot: the result of factor_block, 0 unless a pivot vanished.
    """

    x: ColumnsStruct
    band: ColumnsStruct
    y: BlocksStruct
    S: Matrix
    S_T: Matrix
    J: Matrix
    J_P: Matrix
    J_R: Matrix
    L: Matrix
    M: wp.array2d(dtype=mat6)
    N: wp.array2d(dtype=mat6)
    H: wp.array2d(dtype=mat6)
    attached: Matrix
    branch_columns: Matrix
    K: Matrix
    centre: wp.array2d(dtype=vec3)
    B: Matrix
    pivots: wp.array2d(dtype=wp.int32)
    inverse_G: Matrix
    V: Matrix
    wrench: wp.array2d(dtype=vec6)
    state: wp.array2d(dtype=vec6)
    pivot: wp.array2d(dtype=wp.int32)


NewtonBlocks = by_reference(NewtonBlocksStruct)


def newton_blocks(model: Model, batch: int) -> NewtonBlocksStruct:
    """Buffers for a batch."""
    b, size = NewtonBlocksStruct(), squares(model)
    b.x, b.band, b.y = block_columns(model), band_columns(model), block_tables(model)
    width = (size + 7) // 8 * 8
    rows, blocks, ends = int(width.sum()), len(size), int(branch_nodes(model).max(initial=-1)) + 1
    most, columns = longest_block(model), 6 * block_width(model)
    counts = dict.fromkeys(("S", "S_T", "J", "J_P", "J_R", "L"), most * columns)
    counts |= {
        "M": most,
        "N": most,
        "H": model.n_dynamic,
        "attached": 3 * 36 * ends,
        "branch_columns": 4 * ends * columns,
    }
    counts |= {"K": band_size(model), "B": int((size * width).sum()), "pivots": rows, "inverse_G": 24 * model.nv}
    counts |= {"V": 6 * rows, "centre": blocks, "wrench": blocks, "state": 3 * blocks, "pivot": 1}
    for name, count in counts.items():
        dtype = NewtonBlocksStruct.vars[name].type.dtype
        setattr(b, name, wp.zeros((batch, count), dtype=dtype, device=model.device))
    return b


@wp.func
def twist_from(y: vec6, r: vec3) -> vec6:
    """A twist about a point at r from that about the origin."""
    w = se3.angular(y)
    return se3.join(w, se3.linear(y) + wp.cross(w, r))


@wp.func
def wrench_from(F: vec6, r: vec3) -> vec6:
    """A wrench about a point at r from that about the origin."""
    return se3.join(se3.angular(F) - wp.cross(r, se3.linear(F)), se3.linear(F))


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
    s.node[i, k].F = wrench_from(F, centre)
    return p, eta, acc, F


@wp.func
def restore_node(s: Scratch, i: int, k: int, p: vec3, eta: vec6, acc: vec6, F: vec6):
    """Restore the state of node k before shift_origin exactly."""
    s.node[i, k].p = p
    s.node[i, k].eta = eta
    s.node[i, k].acc = acc
    s.node[i, k].F = F


@wp.func
def open_node(
    t: Tables, s: Scratch, b: NewtonBlocks, i: int, k: int, first: int, centre: vec3, v: Matrix, a: Matrix,
    move: Matrix, c0: wp.float64, c1: wp.float64, acc_base: vec6,
):  # fmt: skip
    """Compute columns, path sums, M, N, H and the local term of node k about the origin `centre`.

    `first` is the first node of its block. M, N and H include Λ of the blocks attached to the node.
    """
    p, eta, acc, F = shift_origin(s, i, k, centre)
    parent = t.node[k].parent
    p_below = vec3()
    eta_below = vec6()
    acc_below = vec6()
    F_below = vec6()
    if parent >= 0:
        p_below, eta_below, acc_below, F_below = shift_origin(s, i, parent, centre)
    before = b.y.inside[k]
    width = b.x.width
    S = columns_from(first, width, b.S)
    S_T = columns_from(first, width, b.S_T)
    J = columns_from(first, width, b.J)
    J_P = columns_from(first, width, b.J_P)
    J_R = columns_from(first, width, b.J_R)
    clear_columns(width, i, k, S)
    if kinds.has_step_tangent(t, k):
        clear_columns(width, i, k, S_T)
    kinds.newton_columns_of_node(
        t, s, b.x, b.band, i, k, before, v, a, move, c0, c1, acc_base, S, S_T, J, J_P, J_R, b.K
    )  # fmt: skip
    M = kinds.spatial_inertia(t, s, i, k)
    N = rate_of_momentum(M, s.node[i, k].eta) + about(with_response(s, i, k, mat6()), -centre)
    H = about(b.H[i, k], -centre)
    branch = b.y.branch_node[k]
    if branch >= 0:
        H = plus_matrix_at(i, 3 * branch, H, b.attached)
        N = plus_matrix_at(i, 3 * branch + 1, N, b.attached)
        M = plus_matrix_at(i, 3 * branch + 2, M, b.attached)
    b.H[i, k] = H
    b.N[i, k - first] = N
    b.M[i, k - first] = M
    if parent >= 0:
        restore_node(s, i, parent, p_below, eta_below, acc_below, F_below)
    restore_node(s, i, k, p, eta, acc, F)


@wp.func
def open_block(
    t: Tables, s: Scratch, b: NewtonBlocks, i: int, e: int, v: Matrix, a: Matrix, move: Matrix, c0: wp.float64,
    c1: wp.float64, acc_base: vec6,
):  # fmt: skip
    """Compute columns and matrices of all nodes of block e, and store the columns at its branch nodes."""
    first = b.y.node[b.y.node_start[e]]
    for m in range(b.y.node_start[e], b.y.node_start[e + 1]):
        k = b.y.node[m]
        open_node(t, s, b, i, k, first, b.centre[i, e], v, a, move, c0, c1, acc_base)
        sum_path(b.x, b.y.width[e], b.y.inside[k] - first, i, k - first, b.S, b.L)
        if b.y.branch_node[k] >= 0:
            copy_columns(b.x, i, k - first, 4 * b.y.branch_node[k], b.L, b.branch_columns)
            copy_columns(b.x, i, k - first, 4 * b.y.branch_node[k] + 1, b.J, b.branch_columns)
            copy_columns(b.x, i, k - first, 4 * b.y.branch_node[k] + 2, b.J_R, b.branch_columns)
            copy_columns(b.x, i, k - first, 4 * b.y.branch_node[k] + 3, b.J_P, b.branch_columns)


@wp.func
def close_block(t: Tables, s: Scratch, b: NewtonBlocks, i: int, e: int) -> int:
    """Compute B, G and V of block e, factor B and add Λ to the parent node; 1 + the coordinate of a zero pivot, or
    0."""
    load_band(b.y, b.band.width, i, e, b.K, b.B, b.inverse_G, b.V)
    first = b.y.node[b.y.node_start[e]]
    H = mat6()
    N = mat6()
    M = mat6()
    for m in range(b.y.node_start[e], b.y.node_start[e + 1]):
        k = b.y.node[m]
        at = k - first
        H += b.H[i, k]
        N += b.N[i, at]
        M += b.M[i, at]
        bar = adbar_matrix(wrench_from(s.node[i, k].F, b.centre[i, e]))
        before = b.y.inside[k] - first
        if kinds.has_step_tangent(t, k):
            gather_node(b.x, b.y, i, e, at, before, b.H[i, k], b.N[i, at], b.M[i, at], bar, b.S_T, b.J, b.J_R, b.J_P,
                        b.L, b.B, b.inverse_G, b.V)  # fmt: skip
        else:
            gather_node(b.x, b.y, i, e, at, before, b.H[i, k], b.N[i, at], b.M[i, at], bar, b.S, b.J, b.J_R, b.J_P,
                        b.L, b.B, b.inverse_G, b.V)  # fmt: skip
    pivot = factor_block(b.y, i, e, b.B, b.pivots, b.inverse_G, b.V)
    parent = b.y.parent[e]
    if pivot == 0 and parent >= 0:
        r = b.centre[i, e] - b.centre[i, b.y.above[e]]
        at = 3 * b.y.branch_node[parent]
        add_matrix_at(i, at, about(reduced_response(b.y, i, e, 0, H, b.inverse_G, b.V), r), b.attached)
        add_matrix_at(i, at + 1, about(reduced_response(b.y, i, e, 1, N, b.inverse_G, b.V), r), b.attached)
        add_matrix_at(i, at + 2, about(reduced_response(b.y, i, e, 2, M, b.inverse_G, b.V), r), b.attached)
    return pivot


@wp.func
def make_newton_blocks(
    t: Tables, s: Scratch, b: NewtonBlocks, i: int, q: Matrix, v: Matrix, a: Matrix, move: Matrix, c0: wp.float64,
    c1: wp.float64, gravity: vec3, load: wp.array(dtype=vec6), respond: wp.Function, stiffen: wp.Function,
):  # fmt: skip
    """Factor all blocks, from the results of the residual at (q, v, a) in s; b.pivot is not 0 if a pivot vanished."""
    clear_row(i, b.K)
    for k in range(t.n_dynamic):
        b.H[i, k] = mat6()
    clear_row(i, b.attached)
    for e in range(b.y.count):
        b.centre[i, e] = s.node[i, b.y.node[b.y.node_start[e]]].p
    respond(t, s, i, gravity, load, ALL_TERMS, b.H)
    stiffen(t, s, b.band, i, q, v, move, so3.ONE, c1, ALL_TERMS, b.K)
    add_armature_rows(t, b.band.width, i, c0, b.K)
    acc_base = se3.join(vec3(), -gravity)
    pivot = wp.int32(0)
    for step in range(b.y.count):
        e = b.y.count - 1 - step
        if pivot == 0:
            open_block(t, s, b, i, e, v, a, move, c0, c1, acc_base)
            pivot = close_block(t, s, b, i, e)
    b.pivot[i, 0] = pivot


@wp.func
def solve_newton_blocks(b: NewtonBlocks, i: int, f: Matrix):
    """Solve with the factors of make_newton_blocks: f becomes δ, which is zero for prescribed coordinates."""
    for e in range(b.y.count):
        b.wrench[i, e] = vec6()
    for step in range(b.y.count):
        e = b.y.count - 1 - step
        c = solve_inward(b.y, i, e, b.wrench[i, e], b.B, b.pivots, b.V, f)
        if b.y.parent[e] >= 0:
            below = b.y.above[e]
            c = wrench_from(c, b.centre[i, below] - b.centre[i, e])
            b.wrench[i, below] = b.wrench[i, below] + c
            subtract_projection(b.x, b.y, i, below, 4 * b.y.branch_node[b.y.parent[e]], c, b.branch_columns, f)
    for e in range(b.y.count):
        x = vec6()
        w = vec6()
        z = vec6()
        if b.y.parent[e] >= 0:
            k = 4 * b.y.branch_node[b.y.parent[e]]
            below = b.y.above[e]
            r = b.centre[i, e] - b.centre[i, below]
            x = twist_from(block_motion(b.x, b.y, i, below, k + 1, b.state[i, 3 * below], b.branch_columns, f), r)
            w = twist_from(block_motion(b.x, b.y, i, below, k + 2, b.state[i, 3 * below + 1], b.branch_columns, f), r)
            z = twist_from(block_motion(b.x, b.y, i, below, k + 3, b.state[i, 3 * below + 2], b.branch_columns, f), r)
        b.state[i, 3 * e] = x
        b.state[i, 3 * e + 1] = w
        b.state[i, 3 * e + 2] = z
        solve_outward(b.y, i, e, x, w, z, b.inverse_G, f)


def steps_by_blocks(model: Model) -> bool:
    """Whether implicit steps eliminate blocks.

    They do for robots with many coordinates of which no single block has more than half, and if only joints couple
    nodes: without loops, springs or straight tendon pieces between links, contacts of two moving links, and elastic
    tendons, whose tension couples all nodes along them.
    """
    few = model.nv < _LEAST_COORDINATES or squares(model).max(initial=0) > model.nv // 2
    return not (few or model.n_rows or has_couplings(model))


def has_couplings(model: Model) -> bool:
    """Whether forces couple nodes: springs, contacts, straight tendon pieces, elastic tendons, or Python functions."""
    one = model.of_row(0, 1)
    if model.calls_python or len(one.spools.channel) or optional_kinds(one.nodes):
        return True
    pairs = [one.segments.node, one.springs.node, one.contacts.pair_nodes]
    return any(bool((np.reshape(ends, (-1, 2)) >= 0).all(axis=1).any()) for ends in pairs)
