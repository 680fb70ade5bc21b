"""How frames of deformable bodies and their own forces answer, in kernels. Equations (1)-(3) are those of deforming.

At fixed θ the body answers as a rigid one, and to its twist by N more:

    N = [[2 L, 0], [−2 ċ^, 0]]                                                                            (4)
    ∂force/∂θ_l  = ω̇×c_l + ω×(ω×c_l) + 2 ω×ċ_l + ∂c̈/∂θ_l                                                (5)
    ∂moment/∂θ_l = c_l×a + I_l ω̇ + ω×I_l ω + 2 L_l ω + ∂b/∂θ_l                                           (6)
    ∂τ_j/∂(v̇; ω̇) = (c_j; β_j),   ∂τ_j/∂v = c_j×ω,   ∂τ_j/∂ω = v×c_j + (P_j + P_jᵀ) ω − 2 tr P_j ω + 2 w_j  (7)

I_l and L_l being those of ∂P/∂θ_l = P_l + P_lᵀ and ∂Π/∂θ_l = Σ ∂P_k/∂θ_l θ̇_k. The points move at
A (ω; v; θ̇) in the frame's axes, A = [−p^, 1, J]. A matrix C with C (ω; v; θ̇) the force of velocities and Ṁ − 2C skew:

    C = ∫ρ Aᵀ(ω^ A + Ȧ),   [[(Pω)^ + L, c^ω^], [−ω^c^ − ċ^, m ω^]] for the frame                          (8)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.spatial import ad_matrix, in_base
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import columns
from lissom.passes.column_products import add_to_row
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.deforming import acceleration_row, around, gram, own_motion, slope_of_P, turning
from lissom.passes.linear_bodies import add_own_block, integrate_slopes
from lissom.passes.scratch import Direction, Scratch


@wp.func(inline=False)
def twist_response(t: Tables, s: Scratch, i: int, k: int) -> mat6:
    """N of (4), in the base frame."""
    b = t.node[k].map
    L = wp.transpose(around(s.deforming.Pi[i, b]))
    N = se3.block(so3.TWO * L, mat3(), -so3.TWO * so3.hat(s.deforming.c_dot[i, b]), mat3())
    return in_base(s.node[i, k].R, s.node[i, k].p, N)


@wp.func
def twist_row(s: Scratch, i: int, at: int, w: vec3, u: vec3) -> vec6:
    """What τ_j answers to the frame's twist by, (7)."""
    c_j = s.deforming.c_j[i, at]
    P_j = s.deforming.P_j[i, at]
    turned = wp.cross(u, c_j) - (around(P_j) + wp.transpose(around(P_j))) * w + so3.TWO * s.deforming.w_j[i, at]
    return se3.join(turned, wp.cross(c_j, w))


@wp.func(inline=False)
def wrench_by_q(s: Scratch, i: int, at: int, w: vec3, w_dot: vec3, acc: vec3) -> vec6:
    """Change (5), (6) of the frame's wrench with the θ of column `at`, and of what presses on the body, once
    slopes_of_rates is done."""
    c_e = s.deforming.c_j[i, at]
    P_e = s.deforming.P_j[i, at]
    I_e = around(P_e) + wp.transpose(around(P_e))
    force = s.deforming.c_q[i, at] + wp.cross(w_dot, c_e)
    force += wp.cross(w, wp.cross(w, c_e) + so3.TWO * s.deforming.c_dot_q[i, at])
    moment = s.deforming.b_q[i, at] + wp.cross(c_e, acc) + I_e * w_dot + wp.cross(w, I_e * w)
    y = se3.join(moment + so3.TWO * (wp.transpose(around(s.deforming.Pi_q[i, at])) * w), force)
    if s.pulls.response.shape[1] > 0:
        y += s.pulls.response[i, at]
    return y


@wp.func(inline=False)
def slopes_of_rates(t: Tables, s: Scratch, i: int, k: int, v: Matrix, a: Matrix):
    """∂ċ/∂θ_e and ∂Π/∂θ_e, and ∂b/∂θ_e where kernels make it."""
    b = t.node[k].map
    at = t.deforming.column_start[b]
    pair = t.deforming.pair_start[b]
    first = t.node[k].v_start
    n = t.node[k].v_stop - first
    if t.deforming.is_linear[b] != 0:
        integrate_slopes(t, s, b, first, n, i, v, a)
    else:
        for e in range(n):
            c_dot = vec3()
            Pi = mat3()
            for c in range(n):
                c_dot += v[i, first + c] * s.deforming.c_jl[i, pair + n * c + e]
                Pi += v[i, first + c] * s.deforming.P_jl[i, pair + n * c + e]
            s.deforming.c_dot_q[i, at + e] = c_dot
            s.deforming.Pi_q[i, at + e] = Pi


@wp.func
def wrench_by_v(s: Scratch, i: int, at: int, w: vec3) -> vec6:
    """Change of the frame's wrench with θ̇_j."""
    moment = so3.TWO * (wp.transpose(around(s.deforming.P_j[i, at])) * w) + s.deforming.b_qdot[i, at]
    return se3.join(moment, so3.TWO * wp.cross(w, s.deforming.c_j[i, at]) + s.deforming.c_qdot[i, at])


@wp.func(inline=False)
def own_by_q(t: Tables, s: Scratch, i: int, b: int, j: int, n: int, e: int, A: mat3, w: vec3, acc: vec3) -> wp.float64:
    """∂τ_j/∂θ_e at a fixed motion of the frame, A of `turning`."""
    y = wp.ddot(A, slope_of_P(t, s, i, b, j, n, e))
    if t.deforming.is_linear[b] == 0:
        at = t.deforming.pair_start[b] + n * j + e
        y += wp.dot(s.deforming.c_jl[i, at], acc) + so3.TWO * wp.dot(w, s.deforming.w_q[i, at])
        y += s.deforming.e_q[i, at] + s.deforming.K[i, at]
    return y


@wp.func
def own_by_v(t: Tables, s: Scratch, i: int, b: int, j: int, n: int, e: int, w: vec3) -> wp.float64:
    """∂τ_j/∂θ̇_e."""
    at = t.deforming.pair_start[b] + n * j + e
    if t.deforming.is_linear[b] != 0:
        return so3.TWO * wp.dot(w, t.deforming.Q_cross[t.deforming.pair_start[b] + n * e + j])
    return so3.TWO * wp.dot(w, s.deforming.w_qdot[i, at]) + s.deforming.e_qdot[i, at] + s.deforming.D[i, at]


@wp.func(inline=False)
def couple(
    t: Tables, s: Scratch, x: Columns, i: int, k: int, v: Matrix, a: Matrix,
    by_q: wp.float64, by_v: wp.float64, by_a: wp.float64, J_acc: Matrix, J_twist: Matrix, turns: int,
    W: Matrix, out: Matrix,
):  # fmt: skip
    """What ties θ to the rest: with weights, the columns of the frame's wrench by θ, θ̇ and θ̈ go to the running sum W,
    and the rows of τ by the motion of the frame and by θ to out, J_acc and J_twist (if `turns`) being the columns of
    its acceleration and twist."""
    b = t.node[k].map
    at = t.deforming.column_start[b]
    first = t.node[k].v_start
    n = t.node[k].v_stop - first
    R = s.node[i, k].R
    p = s.node[i, k].p
    w, u, w_dot, acc = own_motion(s, i, k)
    A = turning(w, w_dot)
    if by_q != so3.ZERO:
        slopes_of_rates(t, s, i, k, v, a)
    if t.deforming.is_linear[b] != 0:
        add_own_block(t, b, first, n, x.width, i, A, w, by_q, by_v, by_a, out)
    for j in range(n):
        row = acceleration_row(s, i, at + j)
        y = by_a * row
        if by_q != so3.ZERO:
            y += by_q * wrench_by_q(s, i, at + j, w, w_dot, acc)
        if by_v != so3.ZERO:
            y += by_v * wrench_by_v(s, i, at + j, w)
        columns.add_column(x, i, x.slot[k], first + j, se3.Ad_dual(R, p, y), W)
        answer = se3.Ad_dual(R, p, row)
        turned = vec6()
        if turns != 0:  # z − ad_η w is what the acceleration in the frame's own axes changes by
            turned = se3.Ad_dual(R, p, twist_row(s, i, at + j, w, u)) + se3.coad(s.node[i, k].eta, answer)
        add_to_row(x, i, k, first + j, answer, turned, J_acc, J_twist, out)
        if t.deforming.is_linear[b] == 0:
            for e in range(n):
                at_e = (first + j) * x.width + first + e
                y_e = out[i, at_e] + by_a * gram(t, s, i, b, j, n, e)
                if by_q != so3.ZERO:
                    y_e += by_q * own_by_q(t, s, i, b, j, n, e, A, w, acc)
                if by_v != so3.ZERO:
                    y_e += by_v * own_by_v(t, s, i, b, j, n, e, w)
                out[i, at_e] = y_e


@wp.func(inline=False)
def newton_euler_change(t: Tables, s: Scratch, d: Direction, i: int, k: int, v: Matrix, a: Matrix) -> vec6:
    """Change of the wrench on the frame along a direction, in the base frame; that of the own forces is left in s."""
    b = t.node[k].map
    at = t.deforming.column_start[b]
    first = t.node[k].v_start
    n = t.node[k].v_stop - first
    R = s.node[i, k].R
    p = s.node[i, k].p
    w, u, w_dot, acc = own_motion(s, i, k)
    change = d.node[i, k].w
    eta = se3.Ad_inverse(R, p, change)
    eta_dot = se3.Ad_inverse(R, p, d.node[i, k].z - se3.ad(s.node[i, k].eta, change))
    dw = se3.angular(eta)
    du = se3.linear(eta)
    dw_dot = se3.angular(eta_dot)
    d_acc = se3.linear(eta_dot) + wp.cross(dw, u) + wp.cross(w, du)
    c = s.deforming.c[i, b]
    spread = around(s.deforming.P[i, b])
    L = wp.transpose(around(s.deforming.Pi[i, b]))
    force = t.deforming.mass[b] * d_acc + wp.cross(dw_dot, c) + wp.cross(w, wp.cross(dw, c))
    force += wp.cross(dw, wp.cross(w, c) + so3.TWO * s.deforming.c_dot[i, b])
    moment = (
        wp.cross(c, d_acc) + spread * dw_dot + wp.cross(dw, spread * w) + wp.cross(w, spread * dw) + so3.TWO * (L * dw)
    )
    y = se3.join(moment, force)
    A = turning(w, w_dot)
    slopes_of_rates(t, s, i, k, v, a)
    for j in range(n):
        row = acceleration_row(s, i, at + j)
        own = wp.dot(row, eta_dot) + wp.dot(twist_row(s, i, at + j, w, u), eta)
        y += d.dq[i, first + j] * wrench_by_q(s, i, at + j, w, w_dot, acc)
        y += d.dv[i, first + j] * wrench_by_v(s, i, at + j, w) + d.da[i, first + j] * row
        for e in range(n):
            own += d.dq[i, first + e] * own_by_q(t, s, i, b, j, n, e, A, w, acc)
            own += d.dv[i, first + e] * own_by_v(t, s, i, b, j, n, e, w)
            own += d.da[i, first + e] * gram(t, s, i, b, j, n, e)
        s.deforming.own_change[i, at + j] = own
    return se3.Ad_dual(R, p, y)


@wp.func(inline=False)
def own_coriolis(t: Tables, s: Scratch, i: int, k: int, M: mat6) -> mat6:
    """Y of coriolis_matrix of the frame, in the base frame: the block of (8) less M ad_η, M the inertia there."""
    b = t.node[k].map
    w, _u, _w_dot, _acc = own_motion(s, i, k)
    P = s.deforming.P[i, b]
    c = so3.hat(s.deforming.c[i, b])
    turn = so3.hat(w)
    top = so3.hat(P * w) + wp.transpose(around(s.deforming.Pi[i, b]))
    C = se3.block(top, c * turn, -turn * c - so3.hat(s.deforming.c_dot[i, b]), t.deforming.mass[b] * turn)
    return in_base(s.node[i, k].R, s.node[i, k].p, C) - M * ad_matrix(s.node[i, k].eta)


@wp.func(inline=False)
def couple_coriolis(t: Tables, s: Scratch, x: Columns, i: int, k: int, V: Matrix, P: Matrix, Q: Matrix, half: Matrix):
    """Columns of (8) beside the frame for the running sums V, P and Q of coriolis_matrix, and the block of θ."""
    b = t.node[k].map
    at = t.deforming.column_start[b]
    first = t.node[k].v_start
    n = t.node[k].v_stop - first
    R = s.node[i, k].R
    p = s.node[i, k].p
    eta = s.node[i, k].eta
    w, _u, _w_dot, _acc = own_motion(s, i, k)
    for j in range(n):
        c_j = s.deforming.c_j[i, at + j]
        P_j = s.deforming.P_j[i, at + j]
        moment = wp.transpose(around(P_j)) * w + so3.HALF * s.deforming.b_qdot[i, at + j]
        column = se3.join(moment, wp.cross(w, c_j) + so3.HALF * s.deforming.c_qdot[i, at + j])
        row = se3.join(s.deforming.w_j[i, at + j] - wp.transpose(around(P_j)) * w, wp.cross(c_j, w))
        answer = se3.Ad_dual(R, p, acceleration_row(s, i, at + j))
        columns.add_column(x, i, x.slot[k], first + j, se3.Ad_dual(R, p, column), V)
        columns.add_column(x, i, x.slot[k], first + j, answer, P)
        columns.add_column(x, i, x.slot[k], first + j, se3.Ad_dual(R, p, row) + se3.coad(eta, answer), Q)
        for e in range(n):
            at_e = (first + j) * x.width + first + e
            half[i, at_e] = half[i, at_e] + coriolis_pair(t, s, i, b, j, n, e, w)


@wp.func
def coriolis_pair(t: Tables, s: Scratch, i: int, b: int, j: int, n: int, e: int, w: vec3) -> wp.float64:
    """∫ρ J_j·(ω×J_e + J̇_e)."""
    at = t.deforming.pair_start[b] + n * j + e
    if t.deforming.is_linear[b] != 0:
        return wp.dot(w, t.deforming.Q_cross[t.deforming.pair_start[b] + n * e + j])
    return wp.dot(w, s.deforming.w_qdot[i, at]) + so3.HALF * s.deforming.e_qdot[i, at]
