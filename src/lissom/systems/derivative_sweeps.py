"""The two sweeps of the derivatives, inside kernels: columns and path sums outward, subtree sums and rows inward.

The equations are those of inverse_dynamics_derivatives. Between blocks of coordinates, (1) and (2) of attachments give
the common parts at lower cost. Derivatives of constraint rows use the same path sums. In the base frame, with
D_X = X̄_A − X̄_B for the sums X̄ of inverse_dynamics_derivatives (E = J̇ + R̄) and a row y of Ad_{g_B}⁻ᵀ Pᵀ,

    Ȧ             = y·(D_E − D_R − ad_{η_B} D_J)                                                          (1)
    ∂(A v)/∂q      = y·(D_R − ad_{η_A} D_J)                                                               (2)
    ∂(A a + Ȧ v)/∂q = y·(D_Q − (ad_{η_A} + ad_{η_B}) D_R + (ad_{η_B} ad_{η_A} − ad_{a_A}) D_J)             (3)
    ∂(A a + Ȧ v)/∂v = y·(D_E − (ad_{η_A} + ad_{η_B}) D_J)                                                 (4)

The row n = b × a₁ of a universal joint rotates with A, and the rows of a wheel follow its point of contact: the
products with D of loops (5) add a term to each of these. Gravity in the accelerations cancels between A and B.
Source: Mathew 2025 (D70)-(D83) for (1)-(4).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.term import add_coupled, with_response
from lissom.lie import se3, so3
from lissom.lie.se3 import adbar_matrix, rate_of_momentum
from lissom.lie.types import by_reference, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import columns, kinds
from lissom.passes.attachments import (
    Attachments,
    AttachmentsStruct,
    add_transposed_products,
    attachments,
    clear_foreign_columns,
    clear_products,
    fold_between,
)
from lissom.passes.columns import (
    Columns,
    ColumnsStruct,
    DerivativeSumsStruct,
    Matrix,
    NewtonSums,
    add_cross_product,
    add_derivative_products,
    add_weighted_products,
    column_tables,
    fold_derivatives,
)
from lissom.passes.features import may_have_loops, may_have_stored_poses
from lissom.passes.scratch import Scratch
from lissom.systems.bordered import LoopRows, clear_loop_rows
from lissom.systems.constraint_functions import entry_of_bend, joint_count, number_of_product
from lissom.systems.couplings import put_coupling_derivatives, put_coupling_rows, row_count
from lissom.systems.loops import (
    add_function_columns,
    add_path_row,
    has_pose_row,
    is_function,
    loop_coupling,
    loop_motion,
    loop_state,
    onto_row,
    onto_row_rate,
    put_joint_entries,
    residual_row,
    row_rate,
    velocity_row,
)

Blocks = wp.array2d(dtype=mat6)


@wp.struct
class DerivativeBuffersStruct:
    """Buffers of the derivative sweeps.

    x: column tables. z: sums at attachments. sums: columns, path sums and subtree sums. inertia, H: 6x6 matrices of the
    nodes in the base frame. no_move: zeros.
    """

    x: ColumnsStruct
    z: AttachmentsStruct
    sums: DerivativeSumsStruct
    inertia: wp.array2d(dtype=mat6)
    H: wp.array2d(dtype=mat6)
    no_move: Matrix


DerivativeBuffers = by_reference(DerivativeBuffersStruct)


def derivative_buffers(model: Model, batch: int, nodes: int | None = None) -> DerivativeBuffersStruct:
    """Buffers for a batch and the first `nodes` nodes; None: the dynamic nodes, with sums at attachments."""
    count = model.n_dynamic if nodes is None else nodes
    b, sums = DerivativeBuffersStruct(), DerivativeSumsStruct()
    b.x = column_tables(model)
    if nodes is None:
        b.z = attachments(model, batch)
    running, path = 6 * b.x.n_slots * b.x.width, 6 * count * b.x.width
    for name in DerivativeSumsStruct.vars:
        size = (batch, running if name[0] == "W" else path)
        setattr(sums, name, wp.zeros(size, dtype=wp.float64, device=model.device))
    b.sums = sums
    for name in ("inertia", "H"):
        setattr(b, name, wp.zeros((batch, model.n_dynamic), dtype=mat6, device=model.device))
    b.no_move = wp.zeros((batch, model.nv), dtype=wp.float64, device=model.device)
    return b


@wp.func
def derivative_outward(
    t: Tables,
    s: Scratch,
    b: DerivativeBuffers,
    i: int,
    v: Matrix,
    a: Matrix,
    acc_base: vec6,
    load: wp.array(dtype=vec6),
    acting: int,
    respond: wp.Function,
    dq: Matrix,
):
    """Compute columns, path sums and 6x6 matrices of all nodes from the motion and the summed wrenches in s, and add
    the local terms of intervals to dq."""
    kinds.derivative_columns(t, s, b.x, i, t.n_dynamic, v, a, acc_base, b.sums, 1, dq)
    for k in range(t.n_dynamic):
        b.inertia[i, k] = kinds.spatial_inertia(t, s, i, k)
        b.H[i, k] = mat6()
    respond(t, s, i, -se3.linear(acc_base), load, acting, b.H)


@wp.func
def twist_response(t: Tables, s: Scratch, i: int, k: int, M: mat6) -> mat6:
    """N of node k: of the inertia M, of the terms of force, and of rates of coordinates that deform the node."""
    N = with_response(s, i, k, rate_of_momentum(M, s.node[i, k].eta))
    return kinds.with_twist_response(t, s, i, k, N)


@wp.func
def couple_derivatives(
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
    """Add the inertia of coordinates that deform node k to the three matrices and their subtree sums."""
    by_q = vec3(so3.ONE, so3.ZERO, so3.ZERO)
    by_v = vec3(so3.ZERO, so3.ONE, so3.ZERO)
    by_a = vec3(so3.ZERO, so3.ZERO, so3.ONE)
    kinds.couple(t, s, b.x, i, k, v, a, by_a, b.sums.J, b.sums.J, b.sums.W_a, da)
    kinds.couple(t, s, b.x, i, k, v, a, by_v, b.sums.J_E, b.sums.J, b.sums.W_v, dv)
    kinds.couple(t, s, b.x, i, k, v, a, by_q, b.sums.J_Q, b.sums.J_R, b.sums.W_q, dq)


@wp.func
def clear_attachments(t: Tables, x: Columns, z: Attachments, i: int):
    """Set all sums at attachments to zero."""
    if z.N_attached.shape[1] > 0:
        clear_products(x, z, i)
        for j in range(z.row_start.shape[0]):
            z.M[i, j] = mat6()
            z.N[i, j] = mat6()
            z.H[i, j] = mat6()
        for k in range(t.n_dynamic):
            z.M_attached[i, k] = mat6()
            z.N_attached[i, k] = mat6()


@wp.func
def add_to_block(
    x: Columns, z: Attachments, i: int, k: int, M: mat6, N: mat6, H: mat6, S: Matrix, J: Matrix
):  # fmt: skip
    """Add node k to the sums of its block for (1) of attachments; with S in place of J for a joint with a
    quaternion."""
    j = z.of_node[k]
    if j >= 0:
        z.M[i, j] = z.M[i, j] + M
        z.N[i, j] = z.N[i, j] + N
        z.H[i, j] = z.H[i, j] + H
        if may_have_stored_poses() and z.own_stored[j] >= 0:
            add_transposed_products(x, z, M, N, H, i, k, z.own_stored[j], S)
        else:
            add_transposed_products(x, z, M, N, H, i, k, k, J)


@wp.func
def add_attached(z: Attachments, i: int, j: int, parent: int, H: Blocks):
    """Add M, N and H of the block of attachment j, with all blocks beyond it, to its parent node."""
    z.M_attached[i, parent] = z.M_attached[i, parent] + z.M[i, j]
    H[i, parent] = H[i, parent] + z.H[i, j]
    z.N_attached[i, parent] = z.N_attached[i, parent] + z.N[i, j]


@wp.func
def fold_before(t: Tables, x: Columns, z: Attachments, i: int, k: int, j: int, Y: Matrix, J: Matrix, out: Matrix):
    """Add a term of (1) of attachments at attachment j; k is the first node of its block."""
    first = t.node[k].v_start
    stop = t.node[k].v_stop
    fold_between(x, z.before_start, z.before_range, j, first, stop, i, j, Y, k, J, out)


@wp.func
def fold_beyond(
    t: Tables, x: Columns, z: Attachments, i: int, k: int, j: int, S: Matrix, J: Matrix, W: Matrix, out: Matrix
):
    """Add (2) of attachments at attachment j; k is the first node of its block, W its subtree sum."""
    clear_foreign_columns(x, z, j, i, k, W)
    slot = x.slot[k]
    first = z.row_start[j]
    stop = z.row_stop[j]
    if may_have_stored_poses() and z.stored[j] >= 0:
        fold_between(x, z.beyond_start, z.beyond_range, j, first, stop, i, z.stored[j], S, slot, W, out)
    else:
        fold_between(x, z.beyond_start, z.beyond_range, j, first, stop, i, t.node[k].parent, J, slot, W, out)


@wp.func
def add_coupled_nodes(
    t: Tables, s: Scratch, x: Columns, i: int, k: int, force: Matrix, J_R: Matrix, J: Matrix, W: Matrix
):
    """W += the coupling of node k to other nodes by loops, springs and contacts."""
    if may_have_loops():
        for e in range(x.loop_end_start[k], x.loop_end_start[k + 1]):
            coupling, other = loop_coupling(t, s, i, x.loop_end[e], force)
            add_cross_product(x, i, k, other, coupling, J, W)
        add_function_columns(t, s, x, i, k, force, W)
    add_coupled(s, x, i, k, 0, J, W)
    add_coupled(s, x, i, k, 1, J_R, W)


@wp.func
def add_wrench_products(t: Tables, s: Scratch, x: Columns, i: int, k: int, S: Matrix, S_T: Matrix, W: Matrix):
    """W += adbar_{Fᶜ} S of node k, with S_T in place of S for spherical and free joints."""
    first = t.node[k].v_start
    stop = t.node[k].v_stop
    if t.node[k].parent >= 0:
        if kinds.has_step_tangent(t, k):
            columns.add_product(x, adbar_matrix(s.node[i, k].F), first, stop, i, k, S_T, W)
        else:
            columns.add_product(x, adbar_matrix(s.node[i, k].F), first, stop, i, k, S, W)


@wp.func
def responses(t: Tables, s: Scratch, z: Attachments, i: int, k: int, inertia: Blocks):
    """M and N of node k with those of attached blocks."""
    M = inertia[i, k]
    N = twist_response(t, s, i, k, M)
    if z.N_attached.shape[1] > 0:
        M += z.M_attached[i, k]
        N += z.N_attached[i, k]
    return M, N


@wp.func
def inward_node(
    t: Tables, s: Scratch, x: Columns, z: Attachments, i: int, k: int, inertia: Blocks, H: Blocks, sums: NewtonSums,
    force: Matrix, W: Matrix, out: Matrix,
):  # fmt: skip
    """One step at node k of the inward sweep (2) of newton_matrix. It adds M J_P + N J_R + H J and couplings to other
    nodes to the subtree sum W, the rows Sᵀ W and the local term to out, then adbar_{Fᶜ} S T to W, and passes W to the
    parent. On entry s contains wrenches summed over subtrees."""
    M, N = responses(t, s, z, i, k, inertia)
    add_weighted_products(
        x, z.home_start, z.home_range, i, k, M, N, H[i, k], sums.J_P, sums.J_R, sums.J, W
    )  # fmt: skip
    add_to_block(x, z, i, k, M, N, H[i, k], sums.S, sums.J)
    add_coupled_nodes(t, s, x, i, k, force, sums.J_R, sums.J, W)
    columns.fold_rows(x, z.fold_start, z.fold_range, t.node[k].v_start, t.node[k].v_stop, i, k, sums.S, W, out)
    kinds.local_term(t, s, x, i, k, out)
    add_wrench_products(t, s, x, i, k, sums.S, sums.S_T, W)
    j = z.below[k]
    if j >= 0:
        fold_before(t, x, z, i, k, j, z.Y_M, sums.J_P, out)
        fold_before(t, x, z, i, k, j, z.Y_N, sums.J_R, out)
        fold_before(t, x, z, i, k, j, z.Y_H, sums.J, out)
        fold_beyond(t, x, z, i, k, j, sums.S, sums.J, W, out)
        add_attached(z, i, j, t.node[k].parent, H)
    columns.pass_to_parent(x, x.sum_start, x.sum_range, t.node[k].parent, i, k, W)


@wp.func
def fold_attachment(
    t: Tables, b: DerivativeBuffers, i: int, k: int, j: int, dq: Matrix, dv: Matrix, da: Matrix
):  # fmt: skip
    """Add the common parts of the blocks on both sides of attachment j, by (1) and (2) of attachments."""
    fold_before(t, b.x, b.z, i, k, j, b.z.Y_M, b.sums.J, da)
    fold_before(t, b.x, b.z, i, k, j, b.z.Y_M, b.sums.J_E, dv)
    fold_before(t, b.x, b.z, i, k, j, b.z.Y_N, b.sums.J, dv)
    fold_before(t, b.x, b.z, i, k, j, b.z.Y_M, b.sums.J_Q, dq)
    fold_before(t, b.x, b.z, i, k, j, b.z.Y_N, b.sums.J_R, dq)
    fold_before(t, b.x, b.z, i, k, j, b.z.Y_H, b.sums.J, dq)
    fold_beyond(t, b.x, b.z, i, k, j, b.sums.S, b.sums.J, b.sums.W_a, da)
    fold_beyond(t, b.x, b.z, i, k, j, b.sums.S, b.sums.J, b.sums.W_v, dv)
    fold_beyond(t, b.x, b.z, i, k, j, b.sums.S, b.sums.J, b.sums.W_q, dq)
    add_attached(b.z, i, j, t.node[k].parent, b.H)


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
    """Subtree sums and rows (3)-(5) of inverse_dynamics_derivatives; s contains wrenches summed over subtrees."""
    columns.clear_sums(b.x, i, b.sums.W_a)
    columns.clear_sums(b.x, i, b.sums.W_v)
    columns.clear_sums(b.x, i, b.sums.W_q)
    clear_attachments(t, b.x, b.z, i)
    for step in range(t.n_dynamic):
        k = t.n_dynamic - 1 - step
        M, N = responses(t, s, b.z, i, k, b.inertia)
        add_derivative_products(b.x, b.z.home_start, b.z.home_range, i, k, M, N, b.H[i, k], b.sums)
        add_to_block(b.x, b.z, i, k, M, N, b.H[i, k], b.sums.S, b.sums.J)
        couple_derivatives(t, s, b, i, k, v, a, dq, dv, da)
        add_coupled(s, b.x, i, k, 1, b.sums.J, b.sums.W_v)
        add_coupled_nodes(t, s, b.x, i, k, force, b.sums.J_R, b.sums.J, b.sums.W_q)
        fold_derivatives(b.x, b.z.fold_start, b.z.fold_range, t.node[k].v_start, t.node[k].v_stop, i, k, b.sums, da,
                         dv, dq)  # fmt: skip
        kinds.local_term(t, s, b.x, i, k, dq)
        add_wrench_products(t, s, b.x, i, k, b.sums.S, b.sums.S, b.sums.W_q)
        j = b.z.below[k]
        if j >= 0:
            fold_attachment(t, b, i, k, j, dq, dv, da)
        parent = t.node[k].parent
        columns.pass_to_parent(b.x, b.x.sum_start, b.x.sum_range, parent, i, k, b.sums.W_a)
        columns.pass_to_parent(b.x, b.x.sum_start, b.x.sum_range, parent, i, k, b.sums.W_v)
        columns.pass_to_parent(b.x, b.x.sum_start, b.x.sum_range, parent, i, k, b.sums.W_q)


@wp.struct
class LoopDerivativesStruct:
    """Ȧ, ∂(A v)/∂q, ∂(A a + Ȧ v)/∂q and ∂(A a + Ȧ v)/∂v of each instance, in rows of column_width."""

    A_dot: Matrix
    rate_q: Matrix
    acceleration_q: Matrix
    acceleration_v: Matrix


LoopDerivatives = by_reference(LoopDerivativesStruct)


@wp.func
def add_difference(x: Columns, a: int, b: int, i: int, y: vec6, X: Matrix, at: int, out: Matrix):
    """out[at + j] += yᵀ (X̄_a − X̄_b) of nodes a and b."""
    add_path_row(x, a, i, y, X, at, out)
    add_path_row(x, b, i, -y, X, at, out)


@wp.func
def add_loop_derivatives(
    t: Tables,
    s: Scratch,
    b: DerivativeBuffers,
    i: int,
    q: Matrix,
    v: Matrix,
    a: Matrix,
    acc_base: vec6,
    loops: LoopRows,
    d: LoopDerivatives,
):
    """Compute rows A and A_q, and (1)-(4), from the path sums in b and the motion in s; those of couplings too."""
    m = row_count(t)
    x = b.x
    clear_loop_rows(x.width, m, i, loops.A)
    clear_loop_rows(x.width, m, i, loops.A_q)
    clear_loop_rows(x.width, m, i, d.A_dot)
    clear_loop_rows(x.width, m, i, d.rate_q)
    clear_loop_rows(x.width, m, i, d.acceleration_q)
    clear_loop_rows(x.width, m, i, d.acceleration_v)
    put_coupling_rows(t, i, x.width, q, loops.A)
    put_coupling_rows(t, i, x.width, q, loops.A_q)
    put_joint_entries(t, s, i, x.width, 0, loops.A)
    put_joint_entries(t, s, i, x.width, 1, loops.A_q)
    put_coupling_derivatives(t, i, x.width, q, v, a, d.A_dot, d.rate_q, d.acceleration_q, d.acceleration_v)
    for loop in range(t.loops.node.shape[0]):
        g = loop_state(t, s, i, loop)
        node_A = t.loops.node[loop, 0]
        node_B = t.loops.node[loop, 1]
        eta_A, acc_A = loop_motion(t, s, i, loop, 0, acc_base)
        eta_B, acc_B = loop_motion(t, s, i, loop, 1, acc_base)
        for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
            at = row * x.width
            y = se3.Ad_dual(g.R_B, g.p_B, velocity_row(t, s, g, i, loop, row))
            z = se3.Ad_dual(g.R_B, g.p_B, residual_row(t, s, g, i, loop, row))
            both = se3.coad(eta_A + eta_B, y)
            add_difference(x, node_A, node_B, i, y, b.sums.J, at, loops.A)
            add_difference(x, node_A, node_B, i, z, b.sums.J, at, loops.A_q)
            add_difference(x, node_A, node_B, i, y, b.sums.J_E, at, d.A_dot)
            add_difference(x, node_A, node_B, i, -y, b.sums.J_R, at, d.A_dot)
            add_difference(x, node_A, node_B, i, se3.coad(eta_B, y), b.sums.J, at, d.A_dot)
            add_difference(x, node_A, node_B, i, y, b.sums.J_R, at, d.rate_q)
            add_difference(x, node_A, node_B, i, se3.coad(eta_A, y), b.sums.J, at, d.rate_q)
            onto_J = se3.coad(acc_A, y) + se3.coad(eta_A, se3.coad(eta_B, y))
            add_difference(x, node_A, node_B, i, y, b.sums.J_Q, at, d.acceleration_q)
            add_difference(x, node_A, node_B, i, both, b.sums.J_R, at, d.acceleration_q)
            add_difference(x, node_A, node_B, i, onto_J, b.sums.J, at, d.acceleration_q)
            add_difference(x, node_A, node_B, i, y, b.sums.J_E, at, d.acceleration_v)
            add_difference(x, node_A, node_B, i, both, b.sums.J, at, d.acceleration_v)
            if has_pose_row(t, row):
                across = eta_A - eta_B
                motion = se3.Ad_inverse(g.R_B, g.p_B, across)
                change = se3.Ad_inverse(g.R_B, g.p_B, acc_A - acc_B - se3.ad(eta_B, across))
                row_dot = se3.Ad_dual(g.R_B, g.p_B, row_rate(t, s, g, i, loop, row, motion, v))
                onto = se3.Ad_dual(g.R_B, g.p_B, onto_row(t, s, g, i, loop, row, motion, v))
                by_pose = onto_row(t, s, g, i, loop, row, change, a)
                by_pose += onto_row_rate(t, s, g, i, loop, row, motion, q, v)
                onto_turn = se3.Ad_dual(g.R_B, g.p_B, by_pose) + se3.coad(eta_A, row_dot + onto)
                add_difference(x, node_A, node_B, i, row_dot, b.sums.J, at, d.A_dot)
                add_difference(x, node_A, node_B, i, onto, b.sums.J, at, d.rate_q)
                add_difference(x, node_A, node_B, i, onto_turn, b.sums.J, at, d.acceleration_q)
                add_difference(x, node_A, node_B, i, row_dot + onto, b.sums.J_R, at, d.acceleration_q)
                add_difference(x, node_A, node_B, i, row_dot + onto, b.sums.J, at, d.acceleration_v)
                if is_function(t.loops.row_kind[row]):
                    put_joint_derivatives(t, s, i, loop, at, motion, change, v, a, d)


@wp.func
def put_joint_derivatives(
    t: Tables, s: Scratch, i: int, loop: int, at: int, y: vec6, y_dot: vec6, v: Matrix, a: Matrix, d: LoopDerivatives
):
    """Set the entries of the joints of a function in the row that begins at `at`: (2) and (3) of
    constraint_functions."""
    f = t.loops.function[loop]
    for k in range(joint_count(t, f)):
        to = at + t.constraint_functions.v[t.constraint_functions.term_start[f] + k]
        row_dot = number_of_product(t, i, f, 6 + k, y, v, 0, s.function)
        onto = number_of_product(t, i, f, 6 + k, y, v, 1, s.function)
        bend = number_of_product(t, i, f, 6 + k, y_dot, a, 1, s.function) + entry_of_bend(t, s, i, f, k)
        d.A_dot[i, to] = d.A_dot[i, to] + row_dot
        d.rate_q[i, to] = d.rate_q[i, to] + onto
        d.acceleration_q[i, to] = d.acceleration_q[i, to] + bend
        d.acceleration_v[i, to] = d.acceleration_v[i, to] + row_dot + onto
