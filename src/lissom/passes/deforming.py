"""Frames of deformable bodies, inside kernels. The node has the coordinates θ of its body, which do not move the frame.

The inertia forces of such a body follow from integrals over it that depend on θ and its rates only, in the body's
frame: c = ∫ρp, P = ∫ρ ppᵀ and, with J_j = ∂p/∂θ_j, c_j = ∫ρJ_j, P_j = ∫ρ pJ_jᵀ, M_jl = ∫ρ J_j·J_l. If p is linear in θ
they are computed here from constants. For other functions they are sums over points by native code
(bodies/native_code), made once for a state, when they are first needed; or Python fills them before a launch
(launch/prepare). With the twist
(ω; v) of the frame, its acceleration minus gravity (ω̇; v̇), and a = v̇ + ω×v, the wrench on the frame and the
generalised forces of θ are

    force  = m a + ω̇×c + ω×(ω×c) + 2 ω×ċ + c̈                                                           (1)
    moment = c×a + I ω̇ + ω×Iω + 2 L ω + b,   I = tr P − P,   L = tr Π − Πᵀ,   Π = Σ P_j θ̇_j              (2)
    τ_j    = c_j·a + β_j·ω̇ + ωᵀP_jω − ω² tr P_j + 2 ω·w_j + e_j,   β_j = ∫ρ p×J_j                  (3)

with c̈ = ∫ρp̈, b = ∫ρ p×p̈, e_j = ∫ρ J_j·p̈ and w_j = ∫ρ ṗ×J_j. Elasticity and damping are terms of force.

At fixed θ the derivatives with respect to the motion of the frame are those of a rigid body, plus N for its twist:

    N = [[2 L, 0], [−2 ċ^, 0]]                                                                            (4)
    ∂force/∂θ_l  = ω̇×c_l + ω×(ω×c_l) + 2 ω×ċ_l + ∂c̈/∂θ_l                                                (5)
    ∂moment/∂θ_l = c_l×a + I_l ω̇ + ω×I_l ω + 2 L_l ω + ∂b/∂θ_l                                           (6)
    ∂τ_j/∂(v̇; ω̇) = (c_j; β_j),   ∂τ_j/∂v = c_j×ω,   ∂τ_j/∂ω = v×c_j + (P_j + P_jᵀ) ω − 2 tr P_j ω + 2 w_j  (7)

with I_l and L_l from ∂P/∂θ_l = P_l + P_lᵀ and ∂Π/∂θ_l = Σ ∂P_k/∂θ_l θ̇_k. The velocity of a point in the frame's axes is
A (ω; v; θ̇), A = [−p^, 1, J]. A matrix C such that C (ω; v; θ̇) is the velocity force and Ṁ − 2C is skew is

    C = ∫ρ Aᵀ(ω^ A + Ȧ),   [[(Pω)^ + L, c^ω^], [−ω^c^ − ċ^, m ω^]] for the frame                          (8)

If p is linear in θ, with the constants of model/maps and the shapes φ_j,

    P_j = ∫ρ x φ_jᵀ + Σ_e θ_e ∫ρ φ_e φ_jᵀ,   w_j = Σ_e θ̇_e ∫ρ φ_e×φ_j,   e_j = Σ_e θ̈_e ∫ρ φ_e·φ_j       (9)
    ∂Π/∂θ_j = (Σ_e θ̇_e ∫ρ φ_e φ_jᵀ)ᵀ,   ∂b/∂θ_j = Σ_e θ̈_e ∫ρ φ_j×φ_e                                    (10)

and for any body

    ċ = Σ c_j θ̇_j,   Π = Σ P_j θ̇_j,   c̈ = ∫ρ J̇θ̇ + Σ c_j θ̈_j,   b = ∫ρ p×J̇θ̇ + Σ ∫ρ p×J_j θ̈_j           (11)

These sums over pairs are the main cost of such a body, so they are native: the constants of one e are consecutive, and
eight of them are added at a time.

Source: Pustina 2025 §III, eqs. of Algorithms 1-3, written with integrals.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportIndexIssue=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.se3 import ad_matrix, in_base
from lissom.lie.types import mat3, mat6, served, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import columns, inertia
from lissom.passes.columns import Columns, DerivativeSums, Matrix, NewtonSums, add_to_row
from lissom.passes.scratch import Direction, Scratch, put_joint_side
from lissom.robot.joints import MotionKind

# Numbers that are known at θ: integrals and their derivatives, pulls (passes/pulls) and their derivatives.
VALUES, DERIVATIVES, PULLS, PULL_DERIVATIVES = (wp.constant(wp.int32(k)) for k in (1, 2, 4, 8))

native = native_functions("passes/deforming.h")


@wp.func_native(f"return {served('BODY')} && kind == {MotionKind.BODY.value};")
def is_body(kind: int) -> bool:
    """Whether a node is the frame of a deformable body."""
    ...


@wp.func_native(native("integrate_positions"))
def integrate_positions(t: Tables, s: Scratch, b: int, first: int, n: int, i: int, q: Matrix):
    """c, P, c_j and P_j of body b, whose first coordinate in q is `first`."""
    ...


@wp.func_native(native("integrate_rates"))
def integrate_rates(
    t: Tables, s: Scratch, b: int, first_q: int, first: int, n: int, i: int, q: Matrix, v: Matrix, a: Matrix
):
    """All of (9) and (11) of body b, whose first coordinates in q and v are `first_q` and `first`."""
    ...


@wp.func_native(native("integrate_motion"))
def integrate_motion(t: Tables, s: Scratch, b: int, first: int, n: int, i: int, v: Matrix, a: Matrix):
    """(11) for a body whose points are not linear in θ; `first` is its first coordinate in v."""
    ...


@wp.func_native(native("put_inertial_forces"))
def put_inertial_forces(t: Tables, s: Scratch, b: int, n: int, i: int, acc: vec3, w: vec3, A: mat3):
    """Generalised forces (3) of the coordinates of body b: c_j·a + A : P_j + 2 ω·w_j + e_j, with A of
    `turning`."""
    ...


@wp.func_native(native("call_values"))
def call_values(t: Tables, s: Scratch, b: int, i: int):
    """Fill c, P, c_j, P_j, M, c_v, b_v, w_j, e_v, energy, force and D of body b at θ and θ̇ by its native function."""
    ...


@wp.func_native(native("call_derivatives"))
def call_derivatives(t: Tables, s: Scratch, b: int, i: int):
    """Fill c_q, b_q, e_q, c_jl, P_jl, w_q, c_qdot, b_qdot, e_qdot, w_qdot and K of body b at θ, θ̇ and θ̈ by its native
    function."""
    ...


@wp.func_native(native("integrate_slopes"))
def integrate_slopes(t: Tables, s: Scratch, b: int, first: int, n: int, i: int, v: Matrix, a: Matrix):
    """∂Π/∂θ_j and ∂b/∂θ_j of (10) of body b, whose first coordinate in v is `first`."""
    ...


@wp.func_native(native("add_own_block"))
def add_own_block(
    t: Tables, b: int, first: int, n: int, width: int, i: int, A: mat3, w: vec3, by_q: wp.float64, by_v: wp.float64,
    by_a: wp.float64, out: Matrix,
):  # fmt: skip
    """out[j, e] += by_q A : ∂P_j/∂θ_e + by_v 2 w·∂w_j/∂θ̇_e + by_a ∂e_j/∂θ̈_e of body b, out in rows of `width`."""
    ...


@wp.func
def crossed(X: mat3) -> vec3:
    """∫ a×b from X = ∫ abᵀ."""
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
def is_native(t: Tables, b: int) -> bool:
    """Whether body b has native functions of its integrals."""
    return t.deforming.values_function[b] != wp.uint64(0)


@wp.func(inline=False)
def integrate(t: Tables, s: Scratch, i: int, k: int):
    """Compute the integrals of a body with native functions, unless they are known at its state."""
    b = t.node[k].map
    if is_native(t, b) and s.deforming.known[i, b] & VALUES == 0:
        s.deforming.known[i, b] = s.deforming.known[i, b] | VALUES
        call_values(t, s, b, i)
        finish_rates(t, s, i, b, t.deforming.column_start[b], s.deforming.theta_dot, s.deforming.theta_ddot)


@wp.func(inline=False)
def integrate_derivatives(t: Tables, s: Scratch, i: int, k: int):
    """Compute the derivatives of the integrals of a body with native functions, unless they are known at its state."""
    b = t.node[k].map
    if is_native(t, b) and s.deforming.known[i, b] & DERIVATIVES == 0:
        s.deforming.known[i, b] = s.deforming.known[i, b] | DERIVATIVES
        call_derivatives(t, s, b, i)


@wp.func
def finish_rates(t: Tables, s: Scratch, i: int, b: int, first: int, v: Matrix, a: Matrix):
    """(11) and e_j of a body that is not linear in θ; θ̇ and θ̈ begin at `first` in v and a."""
    at = t.deforming.column_start[b]
    n = t.deforming.column_start[b + 1] - at
    integrate_motion(t, s, b, first, n, i, v, a)
    for j in range(n):
        e_j = s.deforming.e_v[i, at + j]
        for c in range(n):
            e_j += gram(t, s, i, b, j, n, c) * a[i, first + c]
        s.deforming.e[i, at + j] = e_j


@wp.func
def put_state(t: Tables, s: Scratch, i: int, k: int, q: Matrix):
    """Store the pose of the frame and θ. Mark the integrals and pulls of the body as unknown, and set the response to
    pressures to zero."""
    put_joint_side(t, s, i, k)
    b = t.node[k].map
    at = t.deforming.column_start[b]
    first = t.node[k].v_start
    s.deforming.known[i, b] = 0
    for j in range(t.node[k].v_stop - first):
        s.deforming.theta[i, at + j] = q[i, first + t.node[k].q_shift + j]
    if s.pulls.response.shape[1] > 0:
        for j in range(t.node[k].v_stop - first):
            s.pulls.response[i, at + j] = vec6()


@wp.func(inline=False)
def place(t: Tables, s: Scratch, i: int, k: int, q: Matrix):
    """Store the pose of the frame and, for points that are linear in θ, the integrals of θ. `integrate` computes those
    of a native function."""
    put_state(t, s, i, k, q)
    b = t.node[k].map
    first = t.node[k].v_start
    if t.deforming.is_linear[b] != 0:
        integrate_positions(t, s, b, first + t.node[k].q_shift, t.node[k].v_stop - first, i, q)
    elif is_native(t, b):
        at = t.deforming.column_start[b]
        for j in range(t.node[k].v_stop - first):
            s.deforming.theta_dot[i, at + j] = so3.ZERO
            s.deforming.theta_ddot[i, at + j] = so3.ZERO


@wp.func(inline=False)
def rate(t: Tables, s: Scratch, i: int, k: int, q: Matrix, v: Matrix, a: Matrix):
    """Store the pose of the frame and all integrals, without those of a native function, which `integrate` computes.
    Returns the relative twist and acceleration of the frame, which are zero."""
    put_state(t, s, i, k, q)
    b = t.node[k].map
    first = t.node[k].v_start
    n = t.node[k].v_stop - first
    if t.deforming.is_linear[b] != 0:
        integrate_rates(t, s, b, first + t.node[k].q_shift, first, n, i, q, v, a)
    elif is_native(t, b):
        at = t.deforming.column_start[b]
        for j in range(n):
            s.deforming.theta_dot[i, at + j] = v[i, first + j]
            s.deforming.theta_ddot[i, at + j] = a[i, first + j]
    else:
        finish_rates(t, s, i, b, first, v, a)
    return vec6(), vec6()


@wp.func
def frame_motion(s: Scratch, i: int, k: int):
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
    """A with A : X = ω̇·∫a×b + ωᵀXω − ω² tr X for X = ∫ abᵀ, so that A : P_j are the terms of P_j in (3)."""
    return wp.outer(w, w) - so3.hat(w_dot) - so3.diagonal_plus(wp.dot(w, w), vec3())


@wp.func(inline=False)
def newton_euler(t: Tables, s: Scratch, i: int, k: int) -> vec6:
    """Wrench (1), (2) on the frame, in the base frame, from the motion of node k in s. Stores the generalised forces
    (3) in s.deforming.inertial."""
    integrate(t, s, i, k)
    b = t.node[k].map
    w, _u, w_dot, acc = frame_motion(s, i, k)
    c = s.deforming.c[i, b]
    spread = around(s.deforming.P[i, b])
    L = wp.transpose(around(s.deforming.Pi[i, b]))
    force = t.deforming.mass[b] * acc + wp.cross(w_dot, c) + s.deforming.c_ddot[i, b]
    force += wp.cross(w, wp.cross(w, c) + so3.TWO * s.deforming.c_dot[i, b])
    moment = wp.cross(c, acc) + spread * w_dot + wp.cross(w, spread * w) + so3.TWO * (L * w) + s.deforming.b[i, b]
    put_inertial_forces(t, s, b, t.node[k].v_stop - t.node[k].v_start, i, acc, w, turning(w, w_dot))
    return se3.Ad_dual(s.node[i, k].R, s.node[i, k].p, se3.join(moment, force))


@wp.func(inline=False)
def momentum(t: Tables, s: Scratch, i: int, k: int, v: Matrix):
    """Momentum of the body in the frame's axes, about its origin, and its kinetic energy."""
    integrate(t, s, i, k)
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
def first_moment(t: Tables, s: Scratch, i: int, k: int) -> vec3:
    """c of the body, in the frame's axes."""
    integrate(t, s, i, k)
    return s.deforming.c[i, t.node[k].map]


@wp.func
def spatial_inertia(t: Tables, s: Scratch, i: int, k: int) -> mat6:
    """Inertia of the body in its present shape, in the base frame."""
    integrate(t, s, i, k)
    b = t.node[k].map
    J = around(s.deforming.P[i, b])
    m = so3.diagonal_plus(t.deforming.mass[b], vec3())
    return inertia.moved(s.node[i, k].R, s.node[i, k].p, J, so3.hat(s.deforming.c[i, b]), m)


@wp.func
def no_columns(t: Tables, x: Columns, i: int, k: int, S: Matrix):
    """S = 0 on the own columns of the node."""
    for j in range(t.node[k].v_start, t.node[k].v_stop):
        columns.put_column(x, i, k, j, vec6(), S)


@wp.func(inline=False)
def derivative_columns(t: Tables, x: Columns, i: int, k: int, sums: DerivativeSums):
    """S = 0, and path sums equal to those of the parent."""
    parent = t.node[k].parent
    no_columns(t, x, i, k, sums.S)
    columns.copy_path(x, parent, i, k, sums.J)
    columns.copy_path(x, parent, i, k, sums.J_R)
    columns.copy_path(x, parent, i, k, sums.J_Q)
    columns.copy_path(x, parent, i, k, sums.J_E)


@wp.func(inline=False)
def newton_columns(t: Tables, x: Columns, i: int, k: int, parent: int, sums: NewtonSums):
    """S = 0, and path sums equal to those of the parent."""
    no_columns(t, x, i, k, sums.S)
    columns.copy_path(x, parent, i, k, sums.J)
    columns.copy_path(x, parent, i, k, sums.J_P)
    columns.copy_path(x, parent, i, k, sums.J_R)


@wp.func
def project(t: Tables, s: Scratch, i: int, k: int, tau: Matrix):
    """tau += (3)."""
    at = t.deforming.column_start[t.node[k].map]
    first = t.node[k].v_start
    for j in range(t.node[k].v_stop - first):
        tau[i, first + j] = tau[i, first + j] + s.deforming.inertial[i, at + j]


@wp.func
def acceleration_row(s: Scratch, i: int, at: int) -> vec6:
    """(β_j; c_j): the derivative of τ_j by the frame's acceleration, and of the frame's wrench by θ̈_j."""
    return se3.join(crossed(s.deforming.P_j[i, at]), s.deforming.c_j[i, at])


@wp.func(inline=False)
def couple_mass(t: Tables, s: Scratch, x: Columns, i: int, k: int, V: Matrix, half: Matrix):
    """Add the coupling of θ to the frame to the subtree sum V, and half of the block of θ to the half of M."""
    integrate(t, s, i, k)
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
    """Add the terms of the body to H, G and the diagonal of its block, with the storage of `articulated`."""
    integrate(t, s, i, k)
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
    """tau += the change of (3) along a direction."""
    at = t.deforming.column_start[t.node[k].map]
    first = t.node[k].v_start
    for j in range(t.node[k].v_stop - first):
        tau[i, first + j] = tau[i, first + j] + s.deforming.inertial_change[i, at + j]


@wp.func(inline=False)
def twist_response(t: Tables, s: Scratch, i: int, k: int) -> mat6:
    """N of (4), in the base frame."""
    integrate(t, s, i, k)
    b = t.node[k].map
    L = wp.transpose(around(s.deforming.Pi[i, b]))
    N = se3.block(so3.TWO * L, mat3(), -so3.TWO * so3.hat(s.deforming.c_dot[i, b]), mat3())
    return in_base(s.node[i, k].R, s.node[i, k].p, N)


@wp.func
def twist_row(s: Scratch, i: int, at: int, w: vec3, u: vec3) -> vec6:
    """∂τ_j/∂(ω; v) of (7)."""
    c_j = s.deforming.c_j[i, at]
    P_j = s.deforming.P_j[i, at]
    turned = wp.cross(u, c_j) - (around(P_j) + wp.transpose(around(P_j))) * w + so3.TWO * s.deforming.w_j[i, at]
    return se3.join(turned, wp.cross(c_j, w))


@wp.func(inline=False)
def wrench_by_q(s: Scratch, i: int, at: int, w: vec3, w_dot: vec3, acc: vec3) -> vec6:
    """Derivative (5), (6) of the frame's wrench by the θ of column `at`, plus that of pressures inside the body.
    slopes_of_rates must have run."""
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
    """Compute ∂Π/∂θ_e at fixed θ̇. Compute also ∂b/∂θ_e for points that are linear in θ, and ∂ċ/∂θ_e for others; it is
    zero for points that are linear in θ. integrate_derivatives must have run."""
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
    """Derivative of the frame's wrench by the θ̇ of column `at`."""
    moment = so3.TWO * (wp.transpose(around(s.deforming.P_j[i, at])) * w) + s.deforming.b_qdot[i, at]
    return se3.join(moment, so3.TWO * wp.cross(w, s.deforming.c_j[i, at]) + s.deforming.c_qdot[i, at])


@wp.func(inline=False)
def inertial_by_q(
    t: Tables, s: Scratch, i: int, b: int, j: int, n: int, e: int, A: mat3, w: vec3, acc: vec3
) -> wp.float64:  # fmt: skip
    """∂τ_j/∂θ_e at a fixed motion of the frame, A of `turning`."""
    y = wp.ddot(A, slope_of_P(t, s, i, b, j, n, e))
    if t.deforming.is_linear[b] == 0:
        at = t.deforming.pair_start[b] + n * j + e
        y += wp.dot(s.deforming.c_jl[i, at], acc) + so3.TWO * wp.dot(w, s.deforming.w_q[i, at])
        y += s.deforming.e_q[i, at]
    return y


@wp.func
def inertial_by_v(t: Tables, s: Scratch, i: int, b: int, j: int, n: int, e: int, w: vec3) -> wp.float64:
    """∂τ_j/∂θ̇_e."""
    at = t.deforming.pair_start[b] + n * j + e
    if t.deforming.is_linear[b] != 0:
        return so3.TWO * wp.dot(w, t.deforming.Q_cross[t.deforming.pair_start[b] + n * e + j])
    return so3.TWO * wp.dot(w, s.deforming.w_qdot[i, at]) + s.deforming.e_qdot[i, at]


@wp.func(inline=False)
def couple(
    t: Tables, s: Scratch, x: Columns, i: int, k: int, v: Matrix, a: Matrix, weights: vec3, J_acc: Matrix,
    J_twist: Matrix, W: Matrix, out: Matrix,
):  # fmt: skip
    """Add the coupling of θ to the rest of the robot to a matrix.

    The columns of the frame's wrench by θ, θ̇ and θ̈, with three weights, are added to the subtree sum W. The rows of τ
    by the motion of the frame, and by θ, θ̇ and θ̈ with the same weights, are added to out. J_acc and J_twist are the
    columns of the frame's acceleration and twist. The twist does not depend on θ̈: without the other two weights,
    J_twist is not read.
    """
    by_q = weights[0]
    by_v = weights[1]
    by_a = weights[2]
    b = t.node[k].map
    at = t.deforming.column_start[b]
    first = t.node[k].v_start
    n = t.node[k].v_stop - first
    R = s.node[i, k].R
    p = s.node[i, k].p
    w, u, w_dot, acc = frame_motion(s, i, k)
    A = turning(w, w_dot)
    integrate_derivatives(t, s, i, k)
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
        by_acc = se3.Ad_dual(R, p, row)
        by_twist = vec6()
        if by_q != so3.ZERO or by_v != so3.ZERO:  # the acceleration in the frame's own axes changes by z − ad_η w
            by_twist = se3.Ad_dual(R, p, twist_row(s, i, at + j, w, u)) + se3.coad(s.node[i, k].eta, by_acc)
        add_to_row(x, i, k, first + j, by_acc, by_twist, J_acc, J_twist, out)
        if t.deforming.is_linear[b] == 0:
            for e in range(n):
                at_e = (first + j) * x.width + first + e
                y_e = out[i, at_e] + by_a * gram(t, s, i, b, j, n, e)
                if by_q != so3.ZERO:
                    y_e += by_q * inertial_by_q(t, s, i, b, j, n, e, A, w, acc)
                if by_v != so3.ZERO:
                    y_e += by_v * inertial_by_v(t, s, i, b, j, n, e, w)
                out[i, at_e] = y_e


@wp.func(inline=False)
def newton_euler_change(t: Tables, s: Scratch, d: Direction, i: int, k: int, v: Matrix, a: Matrix) -> vec6:
    """Change of the wrench (1), (2) on the frame along a direction, in the base frame. Stores the change of (3) in
    s.deforming.inertial_change. newton_euler must have run."""
    b = t.node[k].map
    at = t.deforming.column_start[b]
    first = t.node[k].v_start
    n = t.node[k].v_stop - first
    R = s.node[i, k].R
    p = s.node[i, k].p
    w, u, w_dot, acc = frame_motion(s, i, k)
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
    integrate_derivatives(t, s, i, k)
    slopes_of_rates(t, s, i, k, v, a)
    for j in range(n):
        row = acceleration_row(s, i, at + j)
        own = wp.dot(row, eta_dot) + wp.dot(twist_row(s, i, at + j, w, u), eta)
        y += d.dq[i, first + j] * wrench_by_q(s, i, at + j, w, w_dot, acc)
        y += d.dv[i, first + j] * wrench_by_v(s, i, at + j, w) + d.da[i, first + j] * row
        for e in range(n):
            own += d.dq[i, first + e] * inertial_by_q(t, s, i, b, j, n, e, A, w, acc)
            own += d.dv[i, first + e] * inertial_by_v(t, s, i, b, j, n, e, w)
            own += d.da[i, first + e] * gram(t, s, i, b, j, n, e)
        s.deforming.inertial_change[i, at + j] = own
    return se3.Ad_dual(R, p, y)


@wp.func(inline=False)
def body_coriolis(t: Tables, s: Scratch, i: int, k: int, M: mat6) -> mat6:
    """Y of (4) of mass_matrix for the frame, in the base frame: the block of (8) minus M ad_η. M is the inertia of the
    body in the base frame."""
    integrate(t, s, i, k)
    b = t.node[k].map
    w, _u, _w_dot, _acc = frame_motion(s, i, k)
    P = s.deforming.P[i, b]
    c = so3.hat(s.deforming.c[i, b])
    turn = so3.hat(w)
    top = so3.hat(P * w) + wp.transpose(around(s.deforming.Pi[i, b]))
    C = se3.block(top, c * turn, -turn * c - so3.hat(s.deforming.c_dot[i, b]), t.deforming.mass[b] * turn)
    return in_base(s.node[i, k].R, s.node[i, k].p, C) - M * ad_matrix(s.node[i, k].eta)


@wp.func(inline=False)
def couple_coriolis(t: Tables, s: Scratch, x: Columns, i: int, k: int, V: Matrix, P: Matrix, Q: Matrix, half: Matrix):
    """Add the coupling of θ to the frame in (8) to the subtree sums V, P and Q of coriolis_matrix, and the block of θ
    to half."""
    integrate_derivatives(t, s, i, k)
    b = t.node[k].map
    at = t.deforming.column_start[b]
    first = t.node[k].v_start
    n = t.node[k].v_stop - first
    R = s.node[i, k].R
    p = s.node[i, k].p
    eta = s.node[i, k].eta
    w, _u, _w_dot, _acc = frame_motion(s, i, k)
    for j in range(n):
        c_j = s.deforming.c_j[i, at + j]
        P_j = s.deforming.P_j[i, at + j]
        moment = wp.transpose(around(P_j)) * w + so3.HALF * s.deforming.b_qdot[i, at + j]
        column = se3.join(moment, wp.cross(w, c_j) + so3.HALF * s.deforming.c_qdot[i, at + j])
        row = se3.join(s.deforming.w_j[i, at + j] - wp.transpose(around(P_j)) * w, wp.cross(c_j, w))
        by_acc = se3.Ad_dual(R, p, acceleration_row(s, i, at + j))
        columns.add_column(x, i, x.slot[k], first + j, se3.Ad_dual(R, p, column), V)
        columns.add_column(x, i, x.slot[k], first + j, by_acc, P)
        columns.add_column(x, i, x.slot[k], first + j, se3.Ad_dual(R, p, row) + se3.coad(eta, by_acc), Q)
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
