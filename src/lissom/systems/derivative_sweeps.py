"""The two sweeps of the derivatives, inside kernels: columns and path sums outward, running sums and rows inward.

Equations (1)-(5) are those of inverse_dynamics_derivatives.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.hooks import couple_touching, respond_to_surroundings, with_response
from lissom.forces.loads import load_stiffness
from lissom.forces.tendon_derivatives import segment_coupling
from lissom.lie import magnus, se3, so3
from lissom.lie.spatial import adbar_matrix, rate_of_momentum, top_left, top_right
from lissom.lie.types import mat3, mat6, vec6
from lissom.model.model import Model
from lissom.model.tables import EXP, Tables
from lissom.sweep import columns, traversal
from lissom.sweep.column_products import (
    add_cross_product,
    add_local_block,
    add_rate_products,
    add_weighted_products,
)
from lissom.sweep.column_tables import Columns, Matrix, column_tables
from lissom.sweep.scratch import LOADS, Scratch
from lissom.systems.loops import loop_coupling

Blocks = wp.array2d(dtype=mat6)


@wp.struct
class DerivativeBuffers:
    """Own columns S of each node, sums along the path (J_*: of S, R, Q, E = Ṡ + R), the running sums of (3)-(5) (W_*),
    and 6x6 matrices of the nodes in the base frame."""

    x: Columns
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


def derivative_buffers(model: Model, batch: int, nodes: int | None = None) -> DerivativeBuffers:
    """Buffers for a batch and the first so many nodes; None: all that carry something."""
    count = model.n_dynamic if nodes is None else nodes
    b = DerivativeBuffers()
    b.x = column_tables(model)
    sums, nodes = 6 * b.x.n_slots * b.x.width, 6 * count * b.x.width
    for name in ("S", "J", "J_R", "J_Q", "J_E", "W_a", "W_v", "W_q"):
        size = (batch, sums if name[0] == "W" else nodes)
        setattr(b, name, wp.zeros(size, dtype=wp.float64, device=model.device))
    for name in ("inertia", "H"):
        setattr(b, name, wp.zeros((batch, model.n_dynamic), dtype=mat6, device=model.device))
    return b


@wp.func
def interval_pairs(t: Tables, s: Scratch, i: int, k: int, q: Matrix, v: Matrix, a: Matrix):
    """S, R and Q of (1) for an EXP node, each as two pairs: what stands before Φ₁ and before Φ₂."""
    xi1 = s.node[i, k].xi1
    xi2 = s.node[i, k].xi2
    eta = s.node[i, k].eta
    R = s.node[i, k].R
    p = s.node[i, k].p
    h = t.node[k].h
    kappa = t.node[k].kappa
    x = traversal.strain_sums(
        t.run_phi1, t.run_phi2, t.node[k].run_start, t.node[k].run_v, i, t.node[k].q_shift, q, v, a
    )
    d1 = x[2]
    d2 = x[3]
    Omega = s.node[i, k].Omega
    c = s.node[i, k].stumpff
    Omega_dot = magnus.omega_dot(xi1, xi2, d1, d2, h, kappa)
    Omega_ddot = magnus.omega_dot(xi1, xi2, x[4], x[5], h, kappa) + (so3.TWO * kappa) * se3.ad(d1, d2)
    A0, B0 = traversal.motion_block(t, s, i, k)
    T1, Q1 = se3.tangent_dot(Omega, Omega_dot, c)
    T2, Q2 = se3.tangent_ddot(Omega, Omega_dot, Omega_ddot, c)
    A_T1, B_T1 = se3.Ad_block(R, p, T1, Q1)
    A_T2, B_T2 = se3.Ad_block(R, p, T2, Q2)
    A_e, B_e = se3.ad_block(eta, A0, B0)
    A1 = A_e + A_T1
    B1 = B_e + B_T1
    A_a, B_a = se3.ad_block(s.node[i, k].acc, A0, B0)
    A_e1, B_e1 = se3.ad_block(eta, A1 + A_T1, B1 + B_T1)
    A2 = A_a + A_e1 + A_T2
    B2 = B_a + B_e1 + B_T2
    half = so3.HALF * h
    ZA1, ZB1 = traversal.strain_block(half, -kappa, xi2)
    ZA2, ZB2 = traversal.strain_block(half, kappa, xi1)
    YA1, YB1 = traversal.strain_block(so3.ZERO, -kappa, d2)
    YA2, YB2 = traversal.strain_block(so3.ZERO, kappa, d1)
    XA1, XB1 = traversal.strain_block(so3.ZERO, -kappa, x[5])
    XA2, XB2 = traversal.strain_block(so3.ZERO, kappa, x[4])
    SA1, SB1 = se3.block_product(A0, B0, ZA1, ZB1)
    SA2, SB2 = se3.block_product(A0, B0, ZA2, ZB2)
    PA1, PB1 = se3.block_product(A1, B1, ZA1, ZB1)
    PA2, PB2 = se3.block_product(A1, B1, ZA2, ZB2)
    OA1, OB1 = se3.block_product(A0, B0, YA1, YB1)
    OA2, OB2 = se3.block_product(A0, B0, YA2, YB2)
    QA1, QB1 = se3.block_product(A2, B2, ZA1, ZB1)
    QA2, QB2 = se3.block_product(A2, B2, ZA2, ZB2)
    VA1, VB1 = se3.block_product(so3.TWO * A1, so3.TWO * B1, YA1, YB1)
    VA2, VB2 = se3.block_product(so3.TWO * A1, so3.TWO * B1, YA2, YB2)
    UA1, UB1 = se3.block_product(A0, B0, XA1, XB1)
    UA2, UB2 = se3.block_product(A0, B0, XA2, XB2)
    return (
        SA1, SB1, SA2, SB2,
        PA1 + OA1, PB1 + OB1, PA2 + OA2, PB2 + OB2,
        QA1 + VA1 + UA1, QB1 + VB1 + UB1, QA2 + VA2 + UA2, QB2 + VB2 + UB2,
    )  # fmt: skip


@wp.func
def group_pairs(t: Tables, s: Scratch, i: int, k: int, acc_base: vec6):
    """S, R, Q of (2) and Ṡ = ad_η S for a spherical or free joint, as pairs."""
    parent = t.node[k].parent
    eta_p = vec6()
    acc_p = acc_base
    if parent >= 0:
        eta_p = s.node[i, parent].eta
        acc_p = s.node[i, parent].acc
    A0, B0 = traversal.motion_block(t, s, i, k)
    RA, RB = se3.ad_block(eta_p, A0, B0)
    DA, DB = se3.ad_block(s.node[i, k].eta, A0, B0)
    QA, QB = se3.ad_block(acc_p, A0, B0)
    VA, VB = se3.ad_block(eta_p, RA, RB)
    return A0, B0, RA, RB, QA + VA, QB + VB, DA, DB


@wp.func
def own_columns(
    t: Tables, s: Scratch, b: DerivativeBuffers, i: int, k: int, q: Matrix, v: Matrix, a: Matrix, acc_base: vec6
):
    """Columns S of node k, and its path sums with the columns S, R, Q and E."""
    if t.node[k].kind == EXP:
        A1, B1, A2, B2, RA1, RB1, RA2, RB2, QA1, QB1, QA2, QB2 = interval_pairs(t, s, i, k, q, v, a)
        columns.put_columns(b.x, i, k, A1, B1, A2, B2, b.S)
        extend(t, b, i, k, A1, B1, A2, B2, b.J)
        extend(t, b, i, k, RA1, RB1, RA2, RB2, b.J_R)
        extend(t, b, i, k, so3.TWO * RA1, so3.TWO * RB1, so3.TWO * RA2, so3.TWO * RB2, b.J_E)
        extend(t, b, i, k, QA1, QB1, QA2, QB2, b.J_Q)
    else:
        A, B, RA, RB, QA, QB, DA, DB = group_pairs(t, s, i, k, acc_base)
        none = mat3()
        columns.put_columns(b.x, i, k, A, B, none, none, b.S)
        extend(t, b, i, k, A, B, none, none, b.J)
        extend(t, b, i, k, RA, RB, none, none, b.J_R)
        extend(t, b, i, k, DA + RA, DB + RB, none, none, b.J_E)
        extend(t, b, i, k, QA, QB, none, none, b.J_Q)


@wp.func
def extend(t: Tables, b: DerivativeBuffers, i: int, k: int, A1: mat3, B1: mat3, A2: mat3, B2: mat3, J: Matrix):
    """Path sum J of node k: that of its parent and its own columns [A1, B1] Φ₁ + [A2, B2] Φ₂."""
    columns.extend_path(b.x, t.node[k].parent, i, k, A1, B1, A2, B2, J)


@wp.func
def congruence(E: mat6, A1: mat3, B1: mat3, A2: mat3, B2: mat3) -> mat6:
    """Z₁ᵀ E Z₂ of pairs, for the E of tangent_transpose_derivative: [[E₁, E₂], [E₂, 0]]."""
    E1 = top_left(E)
    E2 = top_right(E)
    X = E2 * A2
    At = wp.transpose(A1)
    return se3.block(At * (E1 * A2 + E2 * B2) + wp.transpose(B1) * X, At * X, At * X, mat3())


@wp.func
def local_term(t: Tables, s: Scratch, x: Columns, i: int, k: int, dq: Matrix):
    """local_α of (5): the change of the node's own S with its own coordinates, at fixed wrench."""
    if t.node[k].kind == EXP:
        f = se3.Ad_transpose(s.node[i, k].R, s.node[i, k].p, s.node[i, k].F)
        kappa = t.node[k].kappa
        half = so3.HALF * t.node[k].h
        E = se3.tangent_transpose_derivative(s.node[i, k].Omega, f, s.node[i, k].stumpff)
        bar = kappa * adbar_matrix(se3.relative_wrench(s.node[i, k].Omega, f, s.node[i, k].stumpff))
        A1, B1 = traversal.strain_block(half, -kappa, s.node[i, k].xi2)
        A2, B2 = traversal.strain_block(half, kappa, s.node[i, k].xi1)
        add_local_block(
            x,
            i,
            k,
            congruence(E, A1, B1, A1, B1),
            congruence(E, A1, B1, A2, B2) + bar,
            congruence(E, A2, B2, A1, B1) - bar,
            congruence(E, A2, B2, A2, B2),
            dq,
        )


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
):
    """Columns, path sums and 6x6 matrices of all nodes, from the motion left in s."""
    for k in range(t.n_dynamic):
        own_columns(t, s, b, i, k, q, v, a, acc_base)
        traversal.base_inertia(t, s, b.inertia, i, k)
        b.H[i, k] = mat6()
    if acting & LOADS != 0:
        load_stiffness(t, s, i, load, b.H)
    respond_to_surroundings(t, s, i, -se3.linear(acc_base), load, acting, b.H)


@wp.func
def fold_sum(t: Tables, x: Columns, i: int, k: int, S: Matrix, W: Matrix, out: Matrix):
    """Rows out += Sᵀ W of node k, whose running sum W is complete, and W goes on to its parent."""
    columns.fold_rows(x, x.reach_start, x.reach_range, t.node[k].v_start, t.node[k].v_stop, i, k, S, W, out)
    columns.pass_to_parent(x, x.reach_start, x.reach_range, t.node[k].parent, i, k, W)


@wp.func
def inward_node(
    t: Tables, s: Scratch, x: Columns, i: int, k: int, inertia: Blocks, H: Blocks, S: Matrix, S_T: Matrix,
    J_P: Matrix, J_R: Matrix, J: Matrix, channel: Matrix, force: Matrix, W: Matrix, out: Matrix,
):  # fmt: skip
    """Node k of an inward sweep: W += M J_P + N J_R + H J with what couples it to other nodes, the rows Sᵀ W and its
    local term, and on to its parent. S T stands for S where a spherical or free joint has moved by Δ."""
    M = inertia[i, k]
    N = with_response(s, i, k, rate_of_momentum(M, s.node[i, k].eta))
    add_weighted_products(x, i, k, M, N, H[i, k], J_P, J_R, J, W)
    for e in range(x.end_start[k], x.end_start[k + 1]):
        coupling, other = segment_coupling(t, s, i, x.end[e], channel)
        add_cross_product(x, i, k, other, coupling, J, W)
    for e in range(x.loop_end_start[k], x.loop_end_start[k + 1]):
        coupling, other = loop_coupling(t, s, i, x.loop_end[e], force)
        add_cross_product(x, i, k, other, coupling, J, W)
    couple_touching(s, x, i, k, 0, J, W)
    couple_touching(s, x, i, k, 1, J_R, W)
    first = t.node[k].v_start
    stop = t.node[k].v_stop
    parent = t.node[k].parent
    columns.fold_rows(x, x.reach_start, x.reach_range, first, stop, i, k, S, W, out)
    local_term(t, s, x, i, k, out)
    if parent >= 0:
        if t.node[k].kind == EXP:
            columns.add_product(x, adbar_matrix(s.node[i, k].F), first, stop, i, k, S, W)
        else:
            columns.add_product(x, adbar_matrix(s.node[i, k].F), first, stop, i, k, S_T, W)
        columns.pass_to_parent(x, x.reach_start, x.reach_range, parent, i, k, W)


@wp.func
def derivative_inward(
    t: Tables,
    s: Scratch,
    b: DerivativeBuffers,
    i: int,
    channel: Matrix,
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
        N = with_response(s, i, k, rate_of_momentum(M, s.node[i, k].eta))
        add_rate_products(b.x, i, k, M, N, b.J, b.J_E, b.W_a, b.W_v)
        couple_touching(s, b.x, i, k, 1, b.J, b.W_v)
        fold_sum(t, b.x, i, k, b.S, b.W_a, da)
        fold_sum(t, b.x, i, k, b.S, b.W_v, dv)
        inward_node(t, s, b.x, i, k, b.inertia, b.H, b.S, b.S, b.J_Q, b.J_R, b.J, channel, force, b.W_q, dq)
