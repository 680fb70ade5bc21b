"""The two sweeps of the derivatives, inside kernels: columns and path sums outward, running sums and rows inward.

The equations are those of inverse_dynamics_derivatives.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.answers import couple_tied, with_response
from lissom.lie import se3, so3
from lissom.lie.spatial import adbar_matrix, rate_of_momentum
from lissom.lie.types import by_reference, mat6, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import columns, deforming_derivatives, kinds, traversal
from lissom.passes.column_products import (
    add_cross_product,
    add_rate_products,
    add_weighted_products,
)
from lissom.passes.column_tables import Columns, ColumnsStruct, Matrix, column_tables
from lissom.passes.rare_kinds import is_body
from lissom.passes.scratch import Scratch
from lissom.systems.loops import loop_coupling

Blocks = wp.array2d(dtype=mat6)


@wp.struct
class DerivativeBuffersStruct:
    """Own columns S of each node, sums along the path (J_*: of S, R, Q, E = Ṡ + R), the running sums of (3)-(5) (W_*),
    6x6 matrices of the nodes in the base frame, and a zero move."""

    x: ColumnsStruct
    S: Matrix
    J: Matrix
    J_R: Matrix
    J_Q: Matrix
    J_E: Matrix
    W_a: Matrix
    W_v: Matrix
    W_q: Matrix
    inertia: wp.array2d(dtype=mat6)
    H: wp.array2d(dtype=mat6)
    no_move: Matrix


DerivativeBuffers = by_reference(DerivativeBuffersStruct)


def derivative_buffers(model: Model, batch: int, nodes: int | None = None) -> DerivativeBuffersStruct:
    """Buffers for a batch and the first so many nodes; None: all that carry something."""
    count = model.n_dynamic if nodes is None else nodes
    b = DerivativeBuffersStruct()
    b.x = column_tables(model)
    sums, nodes = 6 * b.x.n_slots * b.x.width, 6 * count * b.x.width
    for name in ("S", "J", "J_R", "J_Q", "J_E", "W_a", "W_v", "W_q"):
        size = (batch, sums if name[0] == "W" else nodes)
        setattr(b, name, wp.zeros(size, dtype=wp.float64, device=model.device))
    for name in ("inertia", "H"):
        setattr(b, name, wp.zeros((batch, model.n_dynamic), dtype=mat6, device=model.device))
    b.no_move = wp.zeros((batch, model.nv), dtype=wp.float64, device=model.device)
    return b


@wp.func
def own_columns(
    t: Tables, s: Scratch, b: DerivativeBuffers, i: int, k: int, q: Matrix, v: Matrix, a: Matrix, acc_base: vec6
):
    """Columns S of node k, and its path sums with the columns S, R, Q and E."""
    kinds.derivative_columns(t, s, b.x, i, k, q, v, a, acc_base, b.S, b.J, b.J_R, b.J_Q, b.J_E)


@wp.func
def derivative_outward(
    t: Tables,
    s: Scratch,
    b: DerivativeBuffers,
    i: int,
    q: Matrix,
    v: Matrix,
    a: Matrix,
    acc_base: vec6,
    load: wp.array(dtype=vec6),
    acting: int,
    respond: wp.Function,
):
    """Columns, path sums and 6x6 matrices of all nodes, from the motion left in s."""
    for k in range(t.n_dynamic):
        own_columns(t, s, b, i, k, q, v, a, acc_base)
        traversal.base_inertia(t, s, b.inertia, i, k)
        b.H[i, k] = mat6()
    respond(t, s, i, -se3.linear(acc_base), load, acting, b.H)


@wp.func
def fold_sum(t: Tables, x: Columns, i: int, k: int, S: Matrix, W: Matrix, out: Matrix):
    """Rows out += Sᵀ W of node k, whose running sum W is complete, and W goes on to its parent."""
    columns.fold_rows(x, x.reach_start, x.reach_range, t.node[k].v_start, t.node[k].v_stop, i, k, S, W, out)
    columns.pass_to_parent(x, x.reach_start, x.reach_range, t.node[k].parent, i, k, W)


@wp.func
def twist_response(t: Tables, s: Scratch, i: int, k: int, M: mat6) -> mat6:
    """N of node k: of the inertia M, of what acts, and of a deformable body."""
    N = with_response(s, i, k, rate_of_momentum(M, s.node[i, k].eta))
    if is_body(t.node[k].kind):
        N += deforming_derivatives.twist_response(t, s, i, k)
    return N


@wp.func
def couple_body(
    t: Tables,
    s: Scratch,
    b: DerivativeBuffers,
    i: int,
    k: int,
    v: Matrix,
    a: Matrix,
    dq: Matrix,
    dv: Matrix,
    da: Matrix,
):
    """What ties the coordinates of a deformable body to the rest, in the three matrices and their running sums."""
    one = so3.ONE
    none = so3.ZERO
    deforming_derivatives.couple(t, s, b.x, i, k, v, a, none, none, one, b.J, b.J, 0, b.W_a, da)
    deforming_derivatives.couple(t, s, b.x, i, k, v, a, none, one, none, b.J_E, b.J, 1, b.W_v, dv)
    deforming_derivatives.couple(t, s, b.x, i, k, v, a, one, none, none, b.J_Q, b.J_R, 1, b.W_q, dq)


@wp.func
def inward_node(
    t: Tables, s: Scratch, x: Columns, i: int, k: int, inertia: Blocks, H: Blocks, S: Matrix, S_T: Matrix,
    J_P: Matrix, J_R: Matrix, J: Matrix, force: Matrix, W: Matrix, out: Matrix,
):  # fmt: skip
    """Node k of an inward sweep: W += M J_P + N J_R + H J with what couples it to other nodes, the rows Sᵀ W and its
    local term, and on to its parent. S T stands for S where a spherical or free joint has moved by Δ."""
    M = inertia[i, k]
    N = twist_response(t, s, i, k, M)
    add_weighted_products(x, i, k, M, N, H[i, k], J_P, J_R, J, W)
    for e in range(x.loop_end_start[k], x.loop_end_start[k + 1]):
        coupling, other = loop_coupling(t, s, i, x.loop_end[e], force)
        add_cross_product(x, i, k, other, coupling, J, W)
    couple_tied(s, x, i, k, 0, J, W)
    couple_tied(s, x, i, k, 1, J_R, W)
    first = t.node[k].v_start
    stop = t.node[k].v_stop
    parent = t.node[k].parent
    columns.fold_rows(x, x.reach_start, x.reach_range, first, stop, i, k, S, W, out)
    kinds.local_term(t, s, x, i, k, out)
    if parent >= 0:
        if t.node[k].has_quaternion:
            columns.add_product(x, adbar_matrix(s.node[i, k].F), first, stop, i, k, S_T, W)
        else:
            columns.add_product(x, adbar_matrix(s.node[i, k].F), first, stop, i, k, S, W)
        columns.pass_to_parent(x, x.reach_start, x.reach_range, parent, i, k, W)


@wp.func
def derivative_inward(
    t: Tables,
    s: Scratch,
    b: DerivativeBuffers,
    i: int,
    v: Matrix,
    a: Matrix,
    force: Matrix,
    dq: Matrix,
    dv: Matrix,
    da: Matrix,
):
    """Running sums and rows (3)-(5); s holds the wrenches summed over the subtrees."""
    columns.clear_sums(b.x, i, b.W_a)
    columns.clear_sums(b.x, i, b.W_v)
    columns.clear_sums(b.x, i, b.W_q)
    for step in range(t.n_dynamic):
        k = t.n_dynamic - 1 - step
        M = b.inertia[i, k]
        N = twist_response(t, s, i, k, M)
        add_rate_products(b.x, i, k, M, N, b.J, b.J_E, b.W_a, b.W_v)
        if is_body(t.node[k].kind):
            couple_body(t, s, b, i, k, v, a, dq, dv, da)
        couple_tied(s, b.x, i, k, 1, b.J, b.W_v)
        fold_sum(t, b.x, i, k, b.S, b.W_a, da)
        fold_sum(t, b.x, i, k, b.S, b.W_v, dv)
        inward_node(t, s, b.x, i, k, b.inertia, b.H, b.S, b.S, b.J_Q, b.J_R, b.J, force, b.W_q, dq)
