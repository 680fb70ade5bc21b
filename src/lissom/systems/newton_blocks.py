"""The matrix of Newton's method for steps of robots of many links, factored block by block, inside kernels.

A change δ of the coordinates moves the nodes by x = J δ, w = J_R' δ and z = J_P δ, sums along the path of the columns S
T, R' and P of newton_matrix, and the wrenches at them answer by H x + N w + M z. So a block (blocks) knows of all
that it hangs on the 18 numbers y = (x, w, z) of one node alone, and this knows of the block the six of its wrench.
With Y_k the columns of the block up to its node k, L_k those of S, and Ê_k = (H, N, M) of k with all that hangs on it:

    y_k = y + Y_k δ                                                                                       (1)
    B δ = f − Σ L_kᵀ ĉ_k − G y,   G = Σ L_kᵀ Ê_k                                                            (2)
    B = Σ L_kᵀ Ê_k Y_k + Σ L_pᵀ adbar_{Fᶜ_k} S_k T + local + K + c₀ I_a,   p the node before k in the block         (3)
    Λ = Σ Ê_k − V B⁻¹ G,   c = Σ ĉ_k + V B⁻¹ (f − Σ L_kᵀ ĉ_k),   V = Σ Ê_k Y_k + Σ adbar_{Fᶜ_k} S_k T           (4)
    Ê_k = (H, N, M)_k + Σ Λ,   ĉ_k = Σ c   over the blocks that hang on k                                   (5)

This is block elimination of the matrix of newton_matrix, from the tips to the base and back, at a cost and in a memory
proportional to the number of blocks. It is no approximation, and rows are swapped within blocks alone: a block that
cannot be eliminated before what it hangs on, which long steps at a limit of stability may meet, ends the step like a
singular matrix does, and a shorter step has more of the mass. Each block is seen from a point of its own, as in
articulated. Columns are made just before their block is eliminated, in room that all blocks share: what is kept by
block is what its solution needs, so that the matrices of long chains stay in the cache.

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
from lissom.lie.types import RARE, by_reference, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import kinds, traversal
from lissom.passes.blocks import (
    BlocksStruct,
    band_columns,
    band_size,
    block_columns,
    block_tables,
    block_width,
    junctions,
    longest_block,
    squares,
)
from lissom.passes.columns import ColumnsStruct, Matrix
from lissom.passes.features import is_stored
from lissom.passes.scratch import EVERYTHING, Scratch
from lissom.robot.joints import MotionKind
from lissom.systems.articulated import sum_path
from lissom.systems.block_elimination import (
    clear_columns,
    clear_row,
    factor_block,
    gather_node,
    hand_on,
    hang,
    keep_columns,
    moved,
    of_nodes_from,
    reduced,
    solve_inward,
    solve_outward,
    take_band,
    with_hanging,
)
from lissom.systems.mass import add_armature_rows

_LEAST_COORDINATES = 64  # from which on a step took less time on chains of rods and of rigid links
PLAIN = [kind.value for kind in MotionKind if kind.name not in RARE]


@wp.struct
class NewtonBlocksStruct:
    """Tables. Of the block at work, by its nodes in the order of all: columns S, S T and path sums J, J_P, J_R and L
    within it, M and N. By node H; by junction N and M of all that hangs on it, and L, J, J_R and J_P. Local + K; by
    block where it is seen from, the factors of B with the rows swapped, B⁻¹ G, V, the wrench Σ ĉ and y. The pivot that
    vanished, as from factor_block."""

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
    hanging: Matrix
    junctions: Matrix
    K: Matrix
    centre: wp.array2d(dtype=vec3)
    B: Matrix
    pivots: wp.array2d(dtype=wp.int32)
    answer: Matrix
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
    rows, blocks, ends = int(width.sum()), len(size), int(junctions(model).max(initial=-1)) + 1
    most, columns = longest_block(model), 6 * block_width(model)
    counts = dict.fromkeys(("S", "S_T", "J", "J_P", "J_R", "L"), most * columns)
    counts |= {"M": most, "N": most, "H": model.n_dynamic, "hanging": 3 * 36 * ends, "junctions": 4 * ends * columns}
    counts |= {"K": band_size(model), "B": int((size * width).sum()), "pivots": rows, "answer": 24 * model.nv}
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
def move_origin(s: Scratch, i: int, k: int, centre: vec3):
    """Let a node be seen from a centre; place, twist, acceleration and wrench as they were."""
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
def put_back(s: Scratch, i: int, k: int, p: vec3, eta: vec6, acc: vec6, F: vec6):
    """Undo move_origin to the last bit."""
    s.node[i, k].p = p
    s.node[i, k].eta = eta
    s.node[i, k].acc = acc
    s.node[i, k].F = F


@wp.func
def open_node(
    t: Tables, s: Scratch, b: NewtonBlocks, i: int, k: int, first: int, centre: vec3, v: Matrix, a: Matrix,
    move: Matrix, c0: wp.float64, c1: wp.float64, acc_base: vec6,
):  # fmt: skip
    """Columns, path sums, M, N, H and the local term of node k of the block whose first node is given, as seen from a
    centre; M, N and H with those of the blocks that hang on the node."""
    p, eta, acc, F = move_origin(s, i, k, centre)
    parent = t.node[k].parent
    p_below = vec3()
    eta_below = vec6()
    acc_below = vec6()
    F_below = vec6()
    if parent >= 0:
        p_below, eta_below, acc_below, F_below = move_origin(s, i, parent, centre)
    before = b.y.inside[k]
    width = b.x.width
    S = of_nodes_from(first, width, b.S)
    S_T = of_nodes_from(first, width, b.S_T)
    J = of_nodes_from(first, width, b.J)
    J_P = of_nodes_from(first, width, b.J_P)
    J_R = of_nodes_from(first, width, b.J_R)
    clear_columns(width, i, k, S)
    if is_stored(t.node[k].has_quaternion):
        clear_columns(width, i, k, S_T)
    kinds.newton_columns_of_one(
        t, s, b.x, b.band, i, k, before, v, a, move, c0, c1, acc_base, S, S_T, J, J_P, J_R, b.K
    )  # fmt: skip
    M = traversal.inertia_at(t, s, i, k)
    N = rate_of_momentum(M, s.node[i, k].eta) + about(with_response(s, i, k, mat6()), -centre)
    H = about(b.H[i, k], -centre)
    junction = b.y.junction[k]
    if junction >= 0:
        H = with_hanging(i, 3 * junction, H, b.hanging)
        N = with_hanging(i, 3 * junction + 1, N, b.hanging)
        M = with_hanging(i, 3 * junction + 2, M, b.hanging)
    b.H[i, k] = H
    b.N[i, k - first] = N
    b.M[i, k - first] = M
    if parent >= 0:
        put_back(s, i, parent, p_below, eta_below, acc_below, F_below)
    put_back(s, i, k, p, eta, acc, F)


@wp.func
def open_block(
    t: Tables, s: Scratch, b: NewtonBlocks, i: int, e: int, v: Matrix, a: Matrix, move: Matrix, c0: wp.float64,
    c1: wp.float64, acc_base: vec6,
):  # fmt: skip
    """Columns and matrices of all nodes of block e, and at its junctions what the solution needs."""
    first = b.y.node[b.y.node_start[e]]
    for m in range(b.y.node_start[e], b.y.node_start[e + 1]):
        k = b.y.node[m]
        open_node(t, s, b, i, k, first, b.centre[i, e], v, a, move, c0, c1, acc_base)
        sum_path(b.x, b.y.width[e], b.y.inside[k] - first, i, k - first, b.S, b.L)
        if b.y.junction[k] >= 0:
            keep_columns(b.x, i, k - first, 4 * b.y.junction[k], b.L, b.junctions)
            keep_columns(b.x, i, k - first, 4 * b.y.junction[k] + 1, b.J, b.junctions)
            keep_columns(b.x, i, k - first, 4 * b.y.junction[k] + 2, b.J_R, b.junctions)
            keep_columns(b.x, i, k - first, 4 * b.y.junction[k] + 3, b.J_P, b.junctions)


@wp.func
def close_block(t: Tables, s: Scratch, b: NewtonBlocks, i: int, e: int) -> int:
    """B, G, V and Λ of block e, handed on to what it hangs on; 1 + the coordinate of a pivot that vanished, or 0."""
    take_band(b.y, b.band.width, i, e, b.K, b.B, b.answer, b.V)
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
        if is_stored(t.node[k].has_quaternion):
            gather_node(b.x, b.y, i, e, at, before, b.H[i, k], b.N[i, at], b.M[i, at], bar, b.S_T, b.J, b.J_R, b.J_P,
                        b.L, b.B, b.answer, b.V)  # fmt: skip
        else:
            gather_node(b.x, b.y, i, e, at, before, b.H[i, k], b.N[i, at], b.M[i, at], bar, b.S, b.J, b.J_R, b.J_P,
                        b.L, b.B, b.answer, b.V)  # fmt: skip
    pivot = factor_block(b.y, i, e, b.B, b.pivots, b.answer, b.V)
    parent = b.y.parent[e]
    if pivot == 0 and parent >= 0:
        r = b.centre[i, e] - b.centre[i, b.y.above[e]]
        at = 3 * b.y.junction[parent]
        hang(i, at, about(reduced(b.y, i, e, 0, H, b.answer, b.V), r), b.hanging)
        hang(i, at + 1, about(reduced(b.y, i, e, 1, N, b.answer, b.V), r), b.hanging)
        hang(i, at + 2, about(reduced(b.y, i, e, 2, M, b.answer, b.V), r), b.hanging)
    return pivot


@wp.func
def make_newton_blocks(
    t: Tables, s: Scratch, b: NewtonBlocks, i: int, q: Matrix, v: Matrix, a: Matrix, move: Matrix, c0: wp.float64,
    c1: wp.float64, gravity: vec3, load: wp.array(dtype=vec6), respond: wp.Function, stiffen: wp.Function,
):  # fmt: skip
    """The factors of all blocks, from what the residual at (q, v, a) left in s; `pivot` says whether one vanished."""
    clear_row(i, b.K)
    for k in range(t.n_dynamic):
        b.H[i, k] = mat6()
    clear_row(i, b.hanging)
    for e in range(b.y.count):
        b.centre[i, e] = s.node[i, b.y.node[b.y.node_start[e]]].p
    respond(t, s, i, gravity, load, EVERYTHING, b.H)
    stiffen(t, s, b.band, i, q, v, move, so3.ONE, c1, EVERYTHING, b.K)
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
    """Solve by what make_newton_blocks left: f becomes δ, that of prescribed coordinates zero."""
    for e in range(b.y.count):
        b.wrench[i, e] = vec6()
    for step in range(b.y.count):
        e = b.y.count - 1 - step
        c = solve_inward(b.y, i, e, b.wrench[i, e], b.B, b.pivots, b.V, f)
        if b.y.parent[e] >= 0:
            below = b.y.above[e]
            c = wrench_from(c, b.centre[i, below] - b.centre[i, e])
            b.wrench[i, below] = b.wrench[i, below] + c
            hand_on(b.x, b.y, i, below, 4 * b.y.junction[b.y.parent[e]], c, b.junctions, f)
    for e in range(b.y.count):
        x = vec6()
        w = vec6()
        z = vec6()
        if b.y.parent[e] >= 0:
            k = 4 * b.y.junction[b.y.parent[e]]
            below = b.y.above[e]
            r = b.centre[i, e] - b.centre[i, below]
            x = twist_from(moved(b.x, b.y, i, below, k + 1, b.state[i, 3 * below], b.junctions, f), r)
            w = twist_from(moved(b.x, b.y, i, below, k + 2, b.state[i, 3 * below + 1], b.junctions, f), r)
            z = twist_from(moved(b.x, b.y, i, below, k + 3, b.state[i, 3 * below + 2], b.junctions, f), r)
        b.state[i, 3 * e] = x
        b.state[i, 3 * e + 1] = w
        b.state[i, 3 * e + 2] = z
        solve_outward(b.y, i, e, x, w, z, b.answer, f)


def steps_by_blocks(model: Model) -> bool:
    """Whether implicit steps eliminate blocks one after the other, which pays for robots that have many coordinates and
    not most of them in one block. Nothing may tie two nodes but joints: no loops, no springs or straight tendon pieces
    between links, no contact of two that move; and tensions that depend on the whole tendon tie all it runs through."""
    few = model.nv < _LEAST_COORDINATES or squares(model).max(initial=0) > model.nv // 2
    return not (few or model.n_rows or is_tied(model))


def is_tied(model: Model) -> bool:
    """Whether forces tie nodes that no joint and no loop does."""
    one = model.of_row(0, 1)
    if model.calls_python or len(one.spools.channel) or not np.isin(one.nodes.kind, PLAIN).all():
        return True
    pairs = [one.segments.node, one.springs.node, one.contacts.pair_nodes]
    return any(bool((np.reshape(ends, (-1, 2)) >= 0).all(axis=1).any()) for ends in pairs)
