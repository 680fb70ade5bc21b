"""Rigid motions, inside kernels. A pose is the pair (R, p); an operator [[A, 0], [B, A]] is the pair (A, B). Other
operators on twists and wrenches are 6x6 matrices.

T = [[T_w, 0], [Q, T_w]],  Q = D T_w[u]      Ṫ = [[D[ẇ], 0], [D²[u, ẇ] + D[u̇], D[ẇ]]]                (1)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportIndexIssue=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import so3
from lissom.lie.types import mat3, mat6, vec3, vec6, vec10

TWO = so3.TWO


@wp.func
def angular(x: vec6) -> vec3:
    """First half of a 6-vector."""
    return vec3(x[0], x[1], x[2])


@wp.func
def linear(x: vec6) -> vec3:
    """Second half of a 6-vector."""
    return vec3(x[3], x[4], x[5])


@wp.func
def join(w: vec3, u: vec3) -> vec6:
    """The 6-vector (w; u)."""
    return vec6(w[0], w[1], w[2], u[0], u[1], u[2])


@wp.func
def block(A: mat3, B: mat3, C: mat3, D: mat3) -> mat6:
    """[[A, B], [C, D]]."""
    M = mat6()
    for i in range(3):
        for j in range(3):
            M[i, j] = A[i, j]
            M[i, j + 3] = B[i, j]
            M[i + 3, j] = C[i, j]
            M[i + 3, j + 3] = D[i, j]
    return M


@wp.func
def exp(x: vec6, c: vec10):
    """exp(x) = (R, p), p = u + c₂ w × u + c₃ w × (w × u), from the Stumpff values of |w|²."""
    w = angular(x)
    u = linear(x)
    wu = wp.cross(w, u)
    return so3.rotation_from_stumpff(w, c), u + c[2] * wu + c[3] * wp.cross(w, wu)


@wp.func
def log(R: mat3, p: vec3) -> vec6:
    """The 6-vector x with exp(x) = (R, p) and angle in [0, π]."""
    w = so3.log(R)
    c = so3.stumpff(wp.dot(w, w))
    return join(w, wp.transpose(so3.tangent_inverse(w, c)) * p)


@wp.func
def ad(x: vec6, y: vec6) -> vec6:
    """ad_x y = (w × a; u × a + w × b), y = (a; b)."""
    w = angular(x)
    a = angular(y)
    return join(wp.cross(w, a), wp.cross(linear(x), a) + wp.cross(w, linear(y)))


@wp.func
def coad(x: vec6, f: vec6) -> vec6:
    """−ad_xᵀ f = (w × m + u × n; w × n), f = (m; n): the rate of a momentum seen from a moving frame."""
    w = angular(x)
    n = linear(f)
    return join(wp.cross(w, angular(f)) + wp.cross(linear(x), n), wp.cross(w, n))


@wp.func
def Ad(R: mat3, p: vec3, y: vec6) -> vec6:
    """Twist y of the frame at (R, p), expressed in the frame in which this pose is given."""
    a = R * angular(y)
    return join(a, wp.cross(p, a) + R * linear(y))


@wp.func
def Ad_inverse(R: mat3, p: vec3, y: vec6) -> vec6:
    """Ad of the inverse pose."""
    a = angular(y)
    Rt = wp.transpose(R)
    return join(Rt * a, Rt * (linear(y) - wp.cross(p, a)))


@wp.func
def Ad_dual(R: mat3, p: vec3, f: vec6) -> vec6:
    """Wrench f of the frame at (R, p), expressed in the frame in which this pose is given: (Ad⁻¹)ᵀ f."""
    n = R * linear(f)
    return join(R * angular(f) + wp.cross(p, n), n)


@wp.func
def Ad_transpose(R: mat3, p: vec3, f: vec6) -> vec6:
    """Adᵀ f: wrench f expressed in the frame at (R, p)."""
    n = linear(f)
    Rt = wp.transpose(R)
    return join(Rt * (angular(f) - wp.cross(p, n)), Rt * n)


@wp.func
def apply_transpose(A: mat3, B: mat3, f: vec6) -> vec6:
    """[[A, 0], [B, A]]ᵀ f."""
    n = linear(f)
    At = wp.transpose(A)
    return join(At * angular(f) + wp.transpose(B) * n, At * n)


@wp.func
def Ad_block(R: mat3, p: vec3, A: mat3, B: mat3):
    """Ad_(R, p) [[A, 0], [B, A]] as a pair."""
    RA = R * A
    return RA, so3.cross_columns(p, RA) + R * B


@wp.func
def ad_block(x: vec6, A: mat3, B: mat3):
    """ad_x [[A, 0], [B, A]] as a pair."""
    w = angular(x)
    return so3.cross_columns(w, A), so3.cross_columns(linear(x), A) + so3.cross_columns(w, B)


@wp.func
def block_product(A: mat3, B: mat3, C: mat3, D: mat3):
    """[[A, 0], [B, A]] [[C, 0], [D, C]] as a pair."""
    return A * C, B * C + A * D


@wp.func
def tangent(x: vec6, c: vec10):
    """T as the pair (T_w, Q) of (1)."""
    w = angular(x)
    return so3.tangent(w, c), so3.tangent_derivative(w, linear(x), c)


@wp.func
def tangent_inverse(x: vec6, c: vec10):
    """T⁻¹ as a pair; singular at |w| = 2π."""
    w = angular(x)
    A = so3.tangent_inverse(w, c)
    return A, -A * so3.tangent_derivative(w, linear(x), c) * A


@wp.func
def tangent_dot(x: vec6, x_dot: vec6, c: vec10):
    """Ṫ of (1) as a pair, along x_dot."""
    w = angular(x)
    w_dot = angular(x_dot)
    return (
        so3.tangent_derivative(w, w_dot, c),
        so3.tangent_derivative_2(w, linear(x), w_dot, c) + so3.tangent_derivative(w, linear(x_dot), c),
    )


@wp.func
def tangent_ddot(x: vec6, x_dot: vec6, x_ddot: vec6, c: vec10):
    """T̈ as a pair: the product rule on Ṫ."""
    w = angular(x)
    u = linear(x)
    w_dot = angular(x_dot)
    w_ddot = angular(x_ddot)
    A = so3.tangent_derivative_2(w, w_dot, w_dot, c) + so3.tangent_derivative(w, w_ddot, c)
    B = (
        so3.tangent_derivative_3(w, u, w_dot, w_dot, c)
        + TWO * so3.tangent_derivative_2(w, linear(x_dot), w_dot, c)
        + so3.tangent_derivative_2(w, u, w_ddot, c)
        + so3.tangent_derivative(w, linear(x_ddot), c)
    )
    return A, B


@wp.func
def relative_twist(x: vec6, x_dot: vec6, c: vec10) -> vec6:
    """V = T ẋ by vectors alone."""
    w = angular(x)
    u = linear(x)
    a = angular(x_dot)
    return join(tangent_apply(w, a, c), tangent_derivative_apply(w, u, a, c) + tangent_apply(w, linear(x_dot), c))


@wp.func
def tangent_dot_apply(x: vec6, x_dot: vec6, c: vec10) -> vec6:
    """Ṫ ẋ by vectors alone."""
    w = angular(x)
    a = angular(x_dot)
    b = linear(x_dot)
    return join(
        tangent_derivative_apply(w, a, a, c),
        tangent_derivative_2_apply(w, linear(x), a, a, c)
        + tangent_derivative_apply(w, b, a, c)
        + tangent_derivative_apply(w, a, b, c),
    )


@wp.func
def relative_wrench(x: vec6, f: vec6, c: vec10) -> vec6:
    """Tᵀ f by vectors alone, f = (m; n): (T_wᵀ m + Qᵀ n; T_wᵀ n)."""
    w = angular(x)
    u = linear(x)
    m = angular(f)
    n = linear(f)
    d = so3.slope(c)
    xu = TWO * wp.dot(w, u)
    wn = wp.dot(w, n)
    Qn = (
        (d[1] * xu) * n
        + wp.cross((d[2] * xu) * w + c[2] * u, n)
        + (d[3] * xu * wn + c[3] * wp.dot(u, n)) * w
        + (c[3] * wn) * u
    )
    return join(tangent_transpose_apply(w, m, c) + Qn, tangent_transpose_apply(w, n, c))


@wp.func
def tangent_transpose_apply(w: vec3, y: vec3, c: vec10) -> vec3:
    """T_wᵀ y."""
    return c[1] * y + c[2] * wp.cross(w, y) + (c[3] * wp.dot(w, y)) * w


@wp.func
def tangent_apply(w: vec3, y: vec3, c: vec10) -> vec3:
    """T_w y."""
    return c[1] * y - c[2] * wp.cross(w, y) + (c[3] * wp.dot(w, y)) * w


@wp.func
def tangent_derivative_apply(w: vec3, a: vec3, y: vec3, c: vec10) -> vec3:
    """D[a] y."""
    d = so3.slope(c)
    xa = TWO * wp.dot(w, a)
    wy = wp.dot(w, y)
    return (
        (d[1] * xa) * y
        - wp.cross((d[2] * xa) * w + c[2] * a, y)
        + (d[3] * xa * wy + c[3] * wp.dot(a, y)) * w
        + (c[3] * wy) * a
    )


@wp.func
def tangent_derivative_2_apply(w: vec3, a: vec3, b: vec3, y: vec3, c: vec10) -> vec3:
    """D²[a, b] y."""
    d = so3.slope(c)
    dd = so3.slope_2(c)
    xa = TWO * wp.dot(w, a)
    xb = TWO * wp.dot(w, b)
    xab = TWO * wp.dot(a, b)
    wy = wp.dot(w, y)
    mixed = xa * b + xb * a
    return (
        (dd[1] * xa * xb + d[1] * xab) * y
        - wp.cross((dd[2] * xa * xb + d[2] * xab) * w + d[2] * mixed, y)
        + ((dd[3] * xa * xb + d[3] * xab) * wy + d[3] * wp.dot(mixed, y)) * w
        + (d[3] * wy) * mixed
        + c[3] * (wp.dot(b, y) * a + wp.dot(a, y) * b)
    )


@wp.func
def tangent_transpose_derivative(x: vec6, f: vec6, c: vec10) -> mat6:
    """E = ∂(Tᵀ f)/∂x at fixed f = (m; n): [[K_m + L, K_n], [K_n, 0]], K_y = ∂(T_wᵀ y)/∂w, L = ∂(K_n u)/∂w."""
    w = angular(x)
    n = linear(f)
    K_n = so3.tangent_transpose_derivative(w, n, c)
    L = so3.tangent_transpose_derivative_2(w, n, linear(x), c)
    return block(so3.tangent_transpose_derivative(w, angular(f), c) + L, K_n, K_n, mat3())


@wp.func
def ad_matrix(x: vec6) -> mat6:
    """ad_x as a 6x6 matrix."""
    W = so3.hat(angular(x))
    return block(W, mat3(), so3.hat(linear(x)), W)


@wp.func
def adbar_matrix(f: vec6) -> mat6:
    """adbar_f: adbar_f x = −ad_xᵀ f."""
    N = so3.hat(linear(f))
    return block(-so3.hat(angular(f)), -N, -N, mat3())


@wp.func
def rate_of_momentum(M: mat6, eta: vec6) -> mat6:
    """N = adbar_{Mη} − ad_ηᵀ M − M ad_η: derivative of M η̇ − ad_ηᵀ M η by the twist, for an inertia in the base
    frame."""
    Y = M * ad_matrix(eta)
    return adbar_matrix(M * eta) - Y - wp.transpose(Y)


@wp.func(inline=False)
def in_base(R: mat3, p: vec3, X: mat6) -> mat6:
    """Ad⁻ᵀ X Ad⁻¹: a matrix X from twists to wrenches of the frame at (R, p), expressed in the frame in which this pose
    is given."""
    Rt = wp.transpose(R)
    A = R * top_left(X) * Rt
    B = R * top_right(X) * Rt
    C = R * bottom_left(X) * Rt
    D = R * bottom_right(X) * Rt
    B_p = B + so3.cross_columns(p, D)
    P = so3.hat(p)
    return block(A + so3.cross_columns(p, C) - B_p * P, B_p, C - D * P, D)


@wp.func
def about(X: mat6, r: vec3) -> mat6:
    """A matrix from twists to wrenches, both about a point at r, expressed about the origin with the same axes."""
    D = bottom_right(X)
    B = top_right(X) + so3.cross_columns(r, D)
    P = so3.hat(r)
    return block(top_left(X) + so3.cross_columns(r, bottom_left(X)) - B * P, B, bottom_left(X) - D * P, D)


@wp.func
def top_left(M: mat6) -> mat3:
    """M₁₁ of [[M₁₁, M₁₂], [M₂₁, M₂₂]]."""
    return mat3(M[0, 0], M[0, 1], M[0, 2], M[1, 0], M[1, 1], M[1, 2], M[2, 0], M[2, 1], M[2, 2])


@wp.func
def top_right(M: mat6) -> mat3:
    """M₁₂ of [[M₁₁, M₁₂], [M₂₁, M₂₂]]."""
    return mat3(M[0, 3], M[0, 4], M[0, 5], M[1, 3], M[1, 4], M[1, 5], M[2, 3], M[2, 4], M[2, 5])


@wp.func
def bottom_left(M: mat6) -> mat3:
    """M₂₁ of [[M₁₁, M₁₂], [M₂₁, M₂₂]]."""
    return mat3(M[3, 0], M[3, 1], M[3, 2], M[4, 0], M[4, 1], M[4, 2], M[5, 0], M[5, 1], M[5, 2])


@wp.func
def bottom_right(M: mat6) -> mat3:
    """M₂₂ of [[M₁₁, M₁₂], [M₂₁, M₂₂]]."""
    return mat3(M[3, 3], M[3, 4], M[3, 5], M[4, 3], M[4, 4], M[4, 5], M[5, 3], M[5, 4], M[5, 5])
