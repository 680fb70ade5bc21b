"""Nodes that move by exp(Ω(q)), inside kernels: intervals of rods, and joints whose twist is constant in their frame.

With T the tangent operator of the child side, Z = ∂Ω/∂q and D₀ = Ad_g T, in the base frame:

    S = D₀ Z,   Ṡ = D₁ Z + D₀ Ż,   S̈ = D₂ Z + 2 D₁ Ż + D₀ Z̈                                              (1)
    D₁ = ad_η D₀ + Ad_g Ṫ,   D₂ = ad_a D₀ + ad_η (D₁ + Ad_g Ṫ) + Ad_g T̈                                  (2)
    R = Ṡ,   Q = S̈       derivatives of twists and accelerations beyond the node by its coordinates         (3)
    Ω = h/2 (ξ₁ + ξ₂) + κ ad(ξ₁) ξ₂,   κ = √3 h²/12       Magnus expansion of order 4
    Z = ∂Ω/∂q = (h/2 − κ ad ξ₂) Φ₁ + (h/2 + κ ad ξ₁) Φ₂                                                   (4)

At a fixed wrench F on the node, with f = Ad_gᵀ F in its own frame and y = Tᵀ f, the derivative of Sᵀ F by the node's
coordinates is the local term

    Zᵀ ∂(Tᵀ f)/∂Ω Z + κ (Φ₁ᵀ adbar_y Φ₂ − Φ₂ᵀ adbar_y Φ₁)                                                 (5)

Columns are products with Φ₁ and Φ₂ of pairs [A, B] that stand for [[A, 0], [B, A]]. The columns for derivatives and
Newton matrices, and (5), are computed by native loops. These first compute some 180 numbers of each node from some 100,
by products of 3x3 matrices, for eight nodes at once, so that each operation is one vector instruction. The columns then
follow node by node, since path sums need those of the parent. There T = [A, B] with Ω = (w; u) and its rates are

    A = c₁ − c₂ w^ + c₃ w wᵀ,   B = dA/dε along w + ε u,   T' = dT/dt along Ω(t),   T'' = d²T/dt²            (6)

by the product rule for w and c_k(|w|²); scalar factors are summed before 3x3 matrices are formed.

Source: Mathew 2025 §4.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.types import mat3, mat6, vec6
from lissom.model.groups import vec6i, vec7i
from lissom.model.tables import Tables
from lissom.passes import columns
from lissom.passes.columns import Columns, DerivativeSums, Matrix, NewtonPoint, NewtonSums
from lissom.passes.features import are_all_screws
from lissom.passes.scratch import STATUS_FULL_TURN, Direction, Scratch, joint_side, put_joint_side
from lissom.robot.joints import MotionKind

native = native_functions("passes/interval.h", EXP=MotionKind.EXP.value)

FULL_TURN_SQUARED = wp.constant(wp.float64(39.47841760435743))


@wp.func
def omega(xi1: vec6, xi2: vec6, h: wp.float64, kappa: wp.float64) -> vec6:
    """Ω of the Magnus expansion."""
    return (so3.HALF * h) * (xi1 + xi2) + kappa * se3.ad(xi1, xi2)


@wp.func
def omega_dot(xi1: vec6, xi2: vec6, d1: vec6, d2: vec6, h: wp.float64, kappa: wp.float64) -> vec6:
    """Ω̇ for strain rates d1, d2."""
    return (so3.HALF * h) * (d1 + d2) + kappa * (se3.ad(d1, xi2) + se3.ad(xi1, d2))


@wp.func
def omega_transpose(xi1: vec6, xi2: vec6, y: vec6, h: wp.float64, kappa: wp.float64):
    """(∂Ω/∂ξ₁)ᵀ y and (∂Ω/∂ξ₂)ᵀ y, where ∂Ω/∂ξ₁ = h/2 − κ ad(ξ₂) and ∂Ω/∂ξ₂ = h/2 + κ ad(ξ₁)."""
    half = (so3.HALF * h) * y
    return half + kappa * se3.coad(xi2, y), half - kappa * se3.coad(xi1, y)


@wp.func
def node_strains(t: Tables, i: int, k: int, q: Matrix, v: Matrix, a: Matrix) -> mat6:
    """Rows Φ₁q, Φ₂q, Φ₁v, Φ₂v, Φ₁a, Φ₂a of node k."""
    start = t.node[k].run_start
    return strain_sums(t.runs.phi1, t.runs.phi2, start, t.node[k].run_v, i, t.node[k].q_shift, q, v, a)


@wp.func
def place_by_strains(t: Tables, s: Scratch, i: int, k: int, xi1: vec6, xi2: vec6):
    """Store the pose g_p G exp(Ω), Ω, its Stumpff values and the two strains. Returns Ω and its Stumpff values. Sets
    the status of the instance if an interval turns by 2π or more."""
    Omega = omega(xi1, xi2, t.node[k].h, t.node[k].kappa)
    w = se3.angular(Omega)
    c = so3.stumpff(wp.dot(w, w))
    R0, p0 = joint_side(t, s, i, k)
    R_k, p_k = se3.exp(Omega, c)
    R = R0 * R_k
    p = R0 * p_k + p0
    s.node[i, k].R = R
    s.node[i, k].p = p
    s.node[i, k].Omega = Omega
    s.node[i, k].stumpff = c
    s.node[i, k].xi1 = xi1
    s.node[i, k].xi2 = xi2
    if t.node[k].kappa > so3.ZERO and wp.dot(w, w) >= FULL_TURN_SQUARED:
        s.status[i] = STATUS_FULL_TURN
    return Omega, c


@wp.func
def place_screw(t: Tables, s: Scratch, i: int, k: int, q: Matrix):
    """Pose of a joint with one axis, Ω = Φ q, whose displacement is along the axis."""
    Omega = q[i, t.node[k].v_start + t.node[k].q_shift] * t.node[k].screw
    w = se3.angular(Omega)
    c = so3.stumpff(wp.dot(w, w))
    R0, p0 = joint_side(t, s, i, k)
    s.node[i, k].R = R0 * so3.rotation_from_stumpff(w, c)
    s.node[i, k].p = R0 * se3.linear(Omega) + p0
    s.node[i, k].Omega = Omega
    s.node[i, k].stumpff = c
    s.node[i, k].xi1 = Omega
    s.node[i, k].xi2 = Omega


@wp.func
def is_fixed_joint(t: Tables, k: int) -> bool:
    """Whether node k is a fixed joint. Intervals of rods have κ > 0, also those without coordinates."""
    return t.node[k].v_stop == t.node[k].v_start and t.node[k].kappa == so3.ZERO


@wp.func
def place(t: Tables, s: Scratch, i: int, k: int, q: Matrix):
    """Pose of the node."""
    if t.node[k].is_screw:
        place_screw(t, s, i, k, q)
        return
    if are_all_screws() or is_fixed_joint(t, k):
        put_joint_side(t, s, i, k)  # its Ω is never written and stays zero
        return
    x = node_strains(t, i, k, q, q, q)
    place_by_strains(t, s, i, k, x[0] + t.node[k].xi1, x[1] + t.node[k].xi2)


@wp.func
def rate(t: Tables, s: Scratch, i: int, k: int, q: Matrix, v: Matrix, a: Matrix):
    """Pose of the node; Ad_g V and Ad_g A of its own twist V = T Ω̇ and acceleration A = T Ω̈ + Ṫ Ω̇. A joint with one
    axis has V = Φ v and A = Φ a."""
    if t.node[k].is_screw:
        place_screw(t, s, i, k, q)
        S = se3.Ad(s.node[i, k].R, s.node[i, k].p, t.node[k].screw)
        return v[i, t.node[k].v_start] * S, a[i, t.node[k].v_start] * S
    if are_all_screws() or is_fixed_joint(t, k):
        put_joint_side(t, s, i, k)
        return vec6(), vec6()
    x = node_strains(t, i, k, q, v, a)
    xi1 = x[0] + t.node[k].xi1
    xi2 = x[1] + t.node[k].xi2
    d1 = x[2]
    d2 = x[3]
    Omega, stumpff = place_by_strains(t, s, i, k, xi1, xi2)
    h = t.node[k].h
    kappa = t.node[k].kappa
    Omega_dot = omega_dot(xi1, xi2, d1, d2, h, kappa)
    Omega_ddot = omega_dot(xi1, xi2, x[4], x[5], h, kappa)
    Omega_ddot += (so3.TWO * kappa) * se3.ad(d1, d2)
    V = se3.relative_twist(Omega, Omega_dot, stumpff)
    A = se3.relative_twist(Omega, Omega_ddot, stumpff) + se3.tangent_dot_apply(Omega, Omega_dot, stumpff)
    R = s.node[i, k].R
    p = s.node[i, k].p
    return se3.Ad(R, p, V), se3.Ad(R, p, A)


@wp.func
def motion_block(s: Scratch, i: int, k: int):
    """D₀ as a pair."""
    T_w, Q = se3.tangent(s.node[i, k].Omega, s.node[i, k].stumpff)
    A, B = se3.Ad_block(s.node[i, k].R, s.node[i, k].p, T_w, Q)
    return A, B


@wp.func
def strain_block(half: wp.float64, kappa: wp.float64, xi: vec6):
    """half + κ ad(ξ) as a pair: the derivative of Ω by one of its two strains."""
    w = se3.angular(xi)
    return so3.diagonal_plus(half, kappa * w), so3.hat(kappa * se3.linear(xi))


@wp.func
def motion_columns(t: Tables, s: Scratch, x: Columns, i: int, k: int, S: Matrix):
    """S of (1), with zeros in the rest of their blocks. For a joint with one axis S = Ad_g Φ."""
    if t.node[k].is_screw:
        R = s.node[i, k].R
        columns.put_turned_columns(x, i, k, R, so3.cross_columns(s.node[i, k].p, R), S)
        return
    if are_all_screws() or is_fixed_joint(t, k):
        return
    A, B = motion_block(s, i, k)
    half = so3.HALF * t.node[k].h
    kappa = t.node[k].kappa
    ZA1, ZB1 = strain_block(half, -kappa, s.node[i, k].xi2)
    ZA2, ZB2 = strain_block(half, kappa, s.node[i, k].xi1)
    A1, B1 = se3.block_product(A, B, ZA1, ZB1)
    A2, B2 = se3.block_product(A, B, ZA2, ZB2)
    columns.put_columns(x, i, k, A1, B1, A2, B2, S)


@wp.func
def rate_columns(t: Tables, s: Scratch, x: Columns, i: int, k: int, q: Matrix, v: Matrix, S_dot: Matrix):
    """Ṡ of (1)."""
    A, B = motion_block(s, i, k)
    A_eta, B_eta = se3.ad_block(s.node[i, k].eta, A, B)
    xi1 = s.node[i, k].xi1
    xi2 = s.node[i, k].xi2
    h = t.node[k].h
    kappa = t.node[k].kappa
    rates = node_strains(t, i, k, q, v, v)
    Omega_dot = omega_dot(xi1, xi2, rates[2], rates[3], h, kappa)
    T_dot, Q_dot = se3.tangent_dot(s.node[i, k].Omega, Omega_dot, s.node[i, k].stumpff)
    A_T, B_T = se3.Ad_block(s.node[i, k].R, s.node[i, k].p, T_dot, Q_dot)
    A_D = A_eta + A_T
    B_D = B_eta + B_T
    half = so3.HALF * h
    ZA1, ZB1 = strain_block(half, -kappa, xi2)
    ZA2, ZB2 = strain_block(half, kappa, xi1)
    YA1, YB1 = strain_block(so3.ZERO, -kappa, rates[3])
    YA2, YB2 = strain_block(so3.ZERO, kappa, rates[2])
    A1, B1 = se3.block_product(A_D, B_D, ZA1, ZB1)
    A2, B2 = se3.block_product(A_D, B_D, ZA2, ZB2)
    C1, E1 = se3.block_product(A, B, YA1, YB1)
    C2, E2 = se3.block_product(A, B, YA2, YB2)
    columns.put_columns(x, i, k, A1 + C1, B1 + E1, A2 + C2, B2 + E2, S_dot)


@wp.func
def project(t: Tables, s: Scratch, i: int, k: int, f: vec6, tau: Matrix):
    """tau += Zᵀ Tᵀ f, f the wrench on the node in its own frame; Φᵀ f for a joint with one axis."""
    if t.node[k].is_screw:
        tau[i, t.node[k].v_start] = tau[i, t.node[k].v_start] + wp.dot(t.node[k].screw, f)
        return
    if are_all_screws() or is_fixed_joint(t, k):
        return
    y = se3.relative_wrench(s.node[i, k].Omega, f, s.node[i, k].stumpff)
    y1, y2 = omega_transpose(s.node[i, k].xi1, s.node[i, k].xi2, y, t.node[k].h, t.node[k].kappa)
    project_strains(t.runs.phi1, t.runs.phi2, t.node[k].run_start, t.node[k].run_v, i, y1, y2, tau)


@wp.func
def pair_apply(A: mat3, B: mat3, y: vec6) -> vec6:
    """[[A, 0], [B, A]] y."""
    w = se3.angular(y)
    return se3.join(A * w, B * w + A * se3.linear(y))


@wp.func
def interval_changes(t: Tables, s: Scratch, d: Direction, i: int, k: int, q: Matrix, v: Matrix, a: Matrix):
    """Ad_g T δΩ, Ad_g d/dt(T δΩ) and Ad_g d²/dt²(T δΩ) along a direction."""
    x = node_strains(t, i, k, q, v, a)
    y = strain_sums(t.runs.phi1, t.runs.phi2, t.node[k].run_start, t.node[k].run_v, i, 0, d.dq, d.dv, d.da)
    xi1 = s.node[i, k].xi1
    xi2 = s.node[i, k].xi2
    h = t.node[k].h
    kappa = t.node[k].kappa
    two = so3.TWO * kappa
    d_Omega = omega_dot(xi1, xi2, y[0], y[1], h, kappa)
    d_dot = omega_dot(xi1, xi2, y[2], y[3], h, kappa) + kappa * (se3.ad(y[0], x[3]) + se3.ad(x[2], y[1]))
    d_ddot = omega_dot(xi1, xi2, y[4], y[5], h, kappa) + kappa * (se3.ad(y[0], x[5]) + se3.ad(x[4], y[1]))
    d_ddot += two * (se3.ad(y[2], x[3]) + se3.ad(x[2], y[3]))
    Omega = s.node[i, k].Omega
    c = s.node[i, k].stumpff
    rate = omega_dot(xi1, xi2, x[2], x[3], h, kappa)
    rate_2 = omega_dot(xi1, xi2, x[4], x[5], h, kappa) + two * se3.ad(x[2], x[3])
    A0, B0 = se3.tangent(Omega, c)
    A1, B1 = se3.tangent_dot(Omega, rate, c)
    A2, B2 = se3.tangent_ddot(Omega, rate, rate_2, c)
    e1 = pair_apply(A0, B0, d_dot) + pair_apply(A1, B1, d_Omega)
    e2 = pair_apply(A0, B0, d_ddot) + so3.TWO * pair_apply(A1, B1, d_dot) + pair_apply(A2, B2, d_Omega)
    R = s.node[i, k].R
    p = s.node[i, k].p
    d.node[i, k].Omega = d_Omega
    d.node[i, k].xi1 = y[0]
    d.node[i, k].xi2 = y[1]
    return se3.Ad(R, p, pair_apply(A0, B0, d_Omega)), se3.Ad(R, p, e1), se3.Ad(R, p, e2)


@wp.func
def change(t: Tables, s: Scratch, d: Direction, i: int, k: int, q: Matrix, v: Matrix, a: Matrix):
    """The terms of the node in x, w and z, (8) of inverse_dynamics_derivatives: e, e₁ + ad_η e and
    e₂ + 2 ad_η e₁ + (ad_a + ad_η²) e."""
    e, e1, e2 = interval_changes(t, s, d, i, k, q, v, a)
    eta = s.node[i, k].eta
    turned = se3.ad(eta, e)
    return e, e1 + turned, e2 + se3.ad(eta, so3.TWO * e1 + turned) + se3.ad(s.node[i, k].acc, e)


@wp.func
def project_change(t: Tables, s: Scratch, d: Direction, i: int, k: int, f: vec6, df: vec6, tau: Matrix):
    """tau += the change of Zᵀ Tᵀ f: Zᵀ δy + κ (Φ₁ᵀ adbar_y δξ₂ − Φ₂ᵀ adbar_y δξ₁), y = Tᵀ f."""
    c = s.node[i, k].stumpff
    Omega = s.node[i, k].Omega
    y = se3.relative_wrench(Omega, f, c)
    dy = se3.relative_wrench(Omega, df, c) + wrench_turn(Omega, f, d.node[i, k].Omega, c)
    kappa = t.node[k].kappa
    y1, y2 = omega_transpose(s.node[i, k].xi1, s.node[i, k].xi2, dy, t.node[k].h, kappa)
    y1 += kappa * se3.coad(d.node[i, k].xi2, y)
    y2 -= kappa * se3.coad(d.node[i, k].xi1, y)
    project_strains(t.runs.phi1, t.runs.phi2, t.node[k].run_start, t.node[k].run_v, i, y1, y2, tau)


@wp.func
def wrench_turn(Omega: vec6, f: vec6, d_Omega: vec6, c: so3.vec10) -> vec6:
    """∂(Tᵀ f)/∂Ω δΩ at fixed f."""
    w = se3.angular(Omega)
    n = se3.linear(f)
    turn = se3.angular(d_Omega)
    K_n = so3.tangent_transpose_derivative(w, n, c)
    K_m = so3.tangent_transpose_derivative(w, se3.angular(f), c)
    L = so3.tangent_transpose_derivative_2(w, n, se3.linear(Omega), c)
    return se3.join((K_m + L) * turn + K_n * se3.linear(d_Omega), K_n * turn)


@wp.func_native(native("strain_sums"))
def strain_sums(
    phi1: wp.array(dtype=wp.float64),
    phi2: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    q_shift: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
) -> mat6:
    """Rows Φ₁q, Φ₂q, Φ₁v, Φ₂v, Φ₁a, Φ₂a of one node. Native, since indexing arrays costs more than the sums."""
    ...


@wp.func_native(native("project_strains"))
def project_strains(
    phi1: wp.array(dtype=wp.float64),
    phi2: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    y1: vec6,
    y2: vec6,
    tau: wp.array2d(dtype=wp.float64),
):
    """tau += Φ₁ᵀ y1 + Φ₂ᵀ y2 of one node."""
    ...


@wp.func_native(native("strain_at"))
def strain_at(
    phi: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    q_shift: int,
    q: wp.array2d(dtype=wp.float64),
) -> vec6:
    """Φ q at one strain point."""
    ...


@wp.func_native(native("project_at"))
def project_at(
    phi: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    shift: int,
    y: vec6,
    tau: wp.array2d(dtype=wp.float64),
):
    """tau += Φᵀ y at one strain point, tau from column `shift` on."""
    ...


@wp.func_native(native("intervals_stop"))
def intervals_stop(t: Tables, k: int, stop: int) -> int:
    """End of the nodes from k on that one call handles: nodes that move by exp(Ω(q)), before node `stop`, at most
    eight (one on a GPU). Returns k in kernels without rods."""
    ...


@wp.func_native(native("derivative_columns"))
def derivative_columns(
    t: Tables, s: Scratch, x: Columns, i: int, first: int, stop: int, before: int, v: Matrix, a: Matrix,
    sums: DerivativeSums, has_local: int, out: Matrix,
):  # fmt: skip
    """Columns S of the intervals first … stop − 1, and path sums with S, R, Q and E = Ṡ + R, added to those of node
    `before`, to zero if it is negative; if `has_local`, local terms are added to out."""
    ...


@wp.func_native(native("newton_columns"))
def newton_columns(
    t: Tables, s: Scratch, x: Columns, i: int, first: int, stop: int, before: int, point: NewtonPoint,
    sums: NewtonSums, out: Matrix,
):  # fmt: skip
    """Columns S of the intervals first … stop − 1, and path sums with S, P = Q + 2 c₁ Ṡ + c₀ S and R + c₁ S, added to
    those of node `before`, to zero if it is negative; local terms are added to out."""
    ...


@wp.func_native(native("newton_columns_of_node"))
def newton_columns_of_node(
    t: Tables, s: Scratch, x: Columns, band: Columns, i: int, k: int, before: int, point: NewtonPoint,
    sums: NewtonSums, out: Matrix,
):  # fmt: skip
    """As `newton_columns`, for interval k alone; local terms are stored with the column tables `band`."""
    ...
