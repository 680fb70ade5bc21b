"""Frames of deformable bodies, which own the coordinates θ of their bodies without being moved by them, inside kernels.

All that the inertia of such a body does follows from integrals over it that depend on θ and its rates alone, in the
body's frame: c = ∫ρp, P = ∫ρ ppᵀ and, with J_j = ∂p/∂θ_j, c_j = ∫ρJ_j, P_j = ∫ρ pJ_jᵀ, M_jl = ∫ρ J_j·J_l. Where p is
linear in θ they are made here, of constants; others are filled in before a launch (launch/prepare). A frame of twist
(ω; v) whose acceleration less gravity is (ω̇; v̇), with a = v̇ + ω×v, then carries the wrench and the own forces

    force  = m a + ω̇×c + ω×(ω×c) + 2 ω×ċ + c̈                                                           (1)
    moment = c×a + I ω̇ + ω×Iω + 2 L ω + b,   I = tr P − P,   L = tr Π − Πᵀ,   Π = Σ P_j θ̇_j              (2)
    τ_j    = c_j·a + β_j·ω̇ + ωᵀP_jω − ω² tr P_j + 2 ω·w_j + e_j + f_j,   β_j = ∫ρ p×J_j                  (3)

with c̈ = ∫ρp̈, b = ∫ρ p×p̈, e_j = ∫ρ J_j·p̈, w_j = ∫ρ ṗ×J_j and f_j what elasticity and damping of the material take.
Source: Pustina 2025 §III, eqs. of Algorithms 1-3, written with integrals.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.types import mat3, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import columns
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.linear_bodies import integrate_motion, integrate_positions, integrate_rates, put_own_forces
from lissom.passes.parents import joint_side
from lissom.passes.scratch import Scratch


@wp.func
def crossed(X: mat3) -> vec3:
    """∫ a×b of X = ∫ abᵀ."""
    return vec3(X[1, 2] - X[2, 1], X[2, 0] - X[0, 2], X[0, 1] - X[1, 0])


@wp.func
def around(X: mat3) -> mat3:
    """tr X − X."""
    return so3.diagonal_plus(wp.trace(X), vec3()) - X


@wp.func
def gram(t: Tables, s: Scratch, i: int, b: int, j: int, n: int, c: int) -> wp.float64:
    """M_jc of body b."""
    at = t.deforming.pair_start[b] + n * j + c
    if t.deforming.is_linear[b] != 0:
        return t.deforming.Q_dot[at]
    return s.deforming.M[i, at]


@wp.func
def slope_of_P(t: Tables, s: Scratch, i: int, b: int, j: int, n: int, c: int) -> mat3:
    """∂P_j/∂θ_c of body b."""
    if t.deforming.is_linear[b] != 0:
        return t.deforming.Q[t.deforming.pair_start[b] + n * c + j]
    return s.deforming.P_jl[i, t.deforming.pair_start[b] + n * j + c]


@wp.func
def put_frame(t: Tables, s: Scratch, i: int, k: int):
    """Pose of the frame."""
    R, p = joint_side(t, s, i, k)
    s.node[i, k].R = R
    s.node[i, k].p = p


@wp.func(inline=False)
def place(t: Tables, s: Scratch, i: int, k: int, q: Matrix):
    """Pose of the frame, and the integrals that depend on θ alone."""
    put_frame(t, s, i, k)
    b = t.node[k].map
    if t.deforming.is_linear[b] != 0:
        first = t.node[k].v_start
        integrate_positions(t, s, b, first + t.node[k].q_shift, t.node[k].v_stop - first, i, q)


@wp.func(inline=False)
def rate(t: Tables, s: Scratch, i: int, k: int, q: Matrix, v: Matrix, a: Matrix):
    """Pose of the frame and all integrals; nothing of its twist and acceleration is its own."""
    put_frame(t, s, i, k)
    b = t.node[k].map
    first = t.node[k].v_start
    n = t.node[k].v_stop - first
    if t.deforming.is_linear[b] != 0:
        integrate_rates(t, s, b, first + t.node[k].q_shift, first, n, i, q, v, a)
    else:
        integrate_motion(t, s, b, first, n, i, v, a)
        at = t.deforming.column_start[b]
        for j in range(n):
            e_j = s.deforming.e_v[i, at + j]
            for c in range(n):
                e_j += gram(t, s, i, b, j, n, c) * a[i, first + c]
            s.deforming.e[i, at + j] = e_j
    return vec6(), vec6()


@wp.func
def own_motion(s: Scratch, i: int, k: int):
    """ω, v, ω̇ and a of the frame in its own axes."""
    R = s.node[i, k].R
    p = s.node[i, k].p
    eta = se3.Ad_inverse(R, p, s.node[i, k].eta)
    acc = se3.Ad_inverse(R, p, s.node[i, k].acc)
    w = se3.angular(eta)
    u = se3.linear(eta)
    return w, u, se3.angular(acc), se3.linear(acc) + wp.cross(w, u)


@wp.func
def turning(w: vec3, w_dot: vec3) -> mat3:
    """A with A : X = ω̇·∫a×b + ωᵀXω − ω² tr X of X = ∫ abᵀ: what (3) makes of P_j."""
    return wp.outer(w, w) - so3.hat(w_dot) - so3.diagonal_plus(wp.dot(w, w), vec3())


@wp.func(inline=False)
def newton_euler(t: Tables, s: Scratch, i: int, k: int) -> vec6:
    """Wrench (1), (2) on the frame, seen from the base frame; the own forces (3) are left in s."""
    b = t.node[k].map
    w, _u, w_dot, acc = own_motion(s, i, k)
    c = s.deforming.c[i, b]
    spread = around(s.deforming.P[i, b])
    L = wp.transpose(around(s.deforming.Pi[i, b]))
    force = t.deforming.mass[b] * acc + wp.cross(w_dot, c) + s.deforming.c_ddot[i, b]
    force += wp.cross(w, wp.cross(w, c) + so3.TWO * s.deforming.c_dot[i, b])
    moment = wp.cross(c, acc) + spread * w_dot + wp.cross(w, spread * w) + so3.TWO * (L * w) + s.deforming.b[i, b]
    put_own_forces(t, s, b, t.node[k].v_stop - t.node[k].v_start, i, acc, w, turning(w, w_dot))
    return se3.Ad_dual(s.node[i, k].R, s.node[i, k].p, se3.join(moment, force))


@wp.func(inline=False)
def momentum(t: Tables, s: Scratch, i: int, k: int, v: Matrix):
    """Momentum of the body in the frame's axes, about its origin, and its kinetic energy."""
    b = t.node[k].map
    R = s.node[i, k].R
    p = s.node[i, k].p
    eta = se3.Ad_inverse(R, p, s.node[i, k].eta)
    w = se3.angular(eta)
    u = se3.linear(eta)
    c = s.deforming.c[i, b]
    own = se3.join(crossed(s.deforming.Pi[i, b]), s.deforming.c_dot[i, b])
    frozen = se3.join(around(s.deforming.P[i, b]) * w + wp.cross(c, u), t.deforming.mass[b] * u - wp.cross(c, w))
    first = t.node[k].v_start
    n = t.node[k].v_stop - first
    twice = wp.dot(eta, frozen) + so3.TWO * wp.dot(eta, own)
    for j in range(n):
        for e in range(n):
            twice += v[i, first + j] * gram(t, s, i, b, j, n, e) * v[i, first + e]
    return frozen + own, so3.HALF * twice


@wp.func
def inertia(t: Tables, s: Scratch, i: int, k: int):
    """J, C and m of [[J, C], [Cᵀ, m]] in the frame's axes, of the body as it stands."""
    b = t.node[k].map
    return around(s.deforming.P[i, b]), so3.hat(s.deforming.c[i, b]), so3.diagonal_plus(t.deforming.mass[b], vec3())


@wp.func
def no_columns(t: Tables, x: Columns, i: int, k: int, S: Matrix):
    """S = 0 on the own columns of the node."""
    for j in range(t.node[k].v_start, t.node[k].v_stop):
        columns.put_column(x, i, k, j, vec6(), S)


@wp.func(inline=False)
def derivative_columns(
    t: Tables, x: Columns, i: int, k: int, S: Matrix, J: Matrix, J_R: Matrix, J_Q: Matrix, J_E: Matrix
):
    """S = 0, and the path sums of the parent."""
    parent = t.node[k].parent
    no_columns(t, x, i, k, S)
    columns.copy_path(x, parent, i, k, J)
    columns.copy_path(x, parent, i, k, J_R)
    columns.copy_path(x, parent, i, k, J_Q)
    columns.copy_path(x, parent, i, k, J_E)


@wp.func(inline=False)
def newton_columns(t: Tables, x: Columns, i: int, k: int, parent: int, S: Matrix, J: Matrix, J_P: Matrix, J_R: Matrix):
    """S = 0, and the path sums of the parent."""
    no_columns(t, x, i, k, S)
    columns.copy_path(x, parent, i, k, J)
    columns.copy_path(x, parent, i, k, J_P)
    columns.copy_path(x, parent, i, k, J_R)


@wp.func
def project(t: Tables, s: Scratch, i: int, k: int, tau: Matrix):
    """tau += (3)."""
    at = t.deforming.column_start[t.node[k].map]
    first = t.node[k].v_start
    for j in range(t.node[k].v_stop - first):
        tau[i, first + j] = tau[i, first + j] + s.deforming.own[i, at + j]


@wp.func
def acceleration_row(s: Scratch, i: int, at: int) -> vec6:
    """(β_j; c_j): what τ_j answers to the frame's acceleration by, and the frame's wrench to θ̈_j."""
    return se3.join(crossed(s.deforming.P_j[i, at]), s.deforming.c_j[i, at])


@wp.func(inline=False)
def couple_mass(t: Tables, s: Scratch, x: Columns, i: int, k: int, V: Matrix, half: Matrix):
    """Columns of M above the body and half of its own block, for the running sum V of half of M."""
    b = t.node[k].map
    at = t.deforming.column_start[b]
    first = t.node[k].v_start
    n = t.node[k].v_stop - first
    for j in range(n):
        y = se3.Ad_dual(s.node[i, k].R, s.node[i, k].p, acceleration_row(s, i, at + j))
        columns.add_column(x, i, x.slot[k], first + j, y, V)
        for e in range(n):
            at_e = (first + j) * x.width + first + e
            half[i, at_e] = half[i, at_e] + so3.HALF * gram(t, s, i, b, j, n, e)


@wp.func(inline=False)
def couple_block(
    t: Tables, s: Scratch, i: int, k: int, square: int, width: int, row: int, H: Matrix, G: Matrix, diagonal: Matrix
):
    """What the body adds to H, G and the diagonal of its block, which articulated places there."""
    b = t.node[k].map
    at = t.deforming.column_start[b]
    n = t.node[k].v_stop - t.node[k].v_start
    for j in range(n):
        y = se3.Ad_dual(s.node[i, k].R, s.node[i, k].p, acceleration_row(s, i, at + j))
        for c in range(6):
            G[i, 8 * (row + j) + c] = G[i, 8 * (row + j) + c] + y[c]
        diagonal[i, row + j] = diagonal[i, row + j] + gram(t, s, i, b, j, n, j)
        for e in range(n):
            H[i, square + j * width + e] = H[i, square + j * width + e] + gram(t, s, i, b, j, n, e)


@wp.func
def project_change(t: Tables, s: Scratch, i: int, k: int, tau: Matrix):
    """tau += what (3) changes by."""
    at = t.deforming.column_start[t.node[k].map]
    first = t.node[k].v_start
    for j in range(t.node[k].v_stop - first):
        tau[i, first + j] = tau[i, first + j] + s.deforming.own_change[i, at + j]
