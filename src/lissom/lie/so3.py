"""Rotations, inside kernels. W = w^, x = |w|².

    exp(w) = c₀ I + c₁ W + c₂ wwᵀ            T_w = c₁ I − c₂ W + c₃ wwᵀ                                     (1)
    c_k(x) = Σ (−x)^j / (2j + k)!,  c_k = 1/k! − x c_{k+2},  dc_k/dx = (k c_{k+2} − c_{k+1}) / 2             (2)

The Stumpff functions (2) come from a series for c₈ and c₉ and downward recursion below |w| = 2, which avoids divisions
by a small angle. Above they come from sine and cosine and upward recursion.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportIndexIssue=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import mat3, vec3, vec10

ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
ONE = wp.constant(wp.float64(1.0))
TWO = wp.constant(wp.float64(2.0))
THREE = wp.constant(wp.float64(3.0))
QUARTER = wp.constant(wp.float64(0.25))
SERIES_LIMIT = wp.constant(wp.float64(4.0))


@wp.func
def hat(w: vec3) -> mat3:
    """w^: hat(w) y = w × y."""
    return mat3(ZERO, -w[2], w[1], w[2], ZERO, -w[0], -w[1], w[0], ZERO)


@wp.func
def diagonal_plus(i: wp.float64, w: vec3) -> mat3:
    """i I + hat(w)."""
    return mat3(i, -w[2], w[1], w[2], i, -w[0], -w[1], w[0], i)


@wp.func
def cross_columns(p: vec3, M: mat3) -> mat3:
    """hat(p) M, without the products by zero."""
    return mat3(
        p[1] * M[2, 0] - p[2] * M[1, 0],
        p[1] * M[2, 1] - p[2] * M[1, 1],
        p[1] * M[2, 2] - p[2] * M[1, 2],
        p[2] * M[0, 0] - p[0] * M[2, 0],
        p[2] * M[0, 1] - p[0] * M[2, 1],
        p[2] * M[0, 2] - p[0] * M[2, 2],
        p[0] * M[1, 0] - p[1] * M[0, 0],
        p[0] * M[1, 1] - p[1] * M[0, 1],
        p[0] * M[1, 2] - p[1] * M[0, 2],
    )


@wp.func
def symmetric_outer(a: vec3, b: vec3) -> mat3:
    """a bᵀ + b aᵀ."""
    ab = wp.outer(a, b)
    return ab + wp.transpose(ab)


@wp.func
def series_8(x: wp.float64) -> wp.float64:
    """c₈ of (2) for x < 4, ten terms by Horner's rule."""
    s = wp.float64(-2.4795962632247972e-27)
    s = wp.float64(1.6117375710961184e-24) + x * s
    s = wp.float64(-8.896791392450574e-22) + x * s
    s = wp.float64(4.110317623312165e-19) + x * s
    s = wp.float64(-1.5619206968586225e-16) + x * s
    s = wp.float64(4.779477332387385e-14) + x * s
    s = wp.float64(-1.1470745597729725e-11) + x * s
    s = wp.float64(2.08767569878681e-09) + x * s
    s = wp.float64(-2.755731922398589e-07) + x * s
    s = wp.float64(2.48015873015873e-05) + x * s
    return s


@wp.func
def series_9(x: wp.float64) -> wp.float64:
    """c₉ of (2) for x < 4, ten terms by Horner's rule."""
    s = wp.float64(-9.183689863795546e-29)
    s = wp.float64(6.446950284384474e-26) + x * s
    s = wp.float64(-3.8681701706306835e-23) + x * s
    s = wp.float64(1.9572941063391263e-20) + x * s
    s = wp.float64(-8.22063524662433e-18) + x * s
    s = wp.float64(2.8114572543455206e-15) + x * s
    s = wp.float64(-7.647163731819816e-13) + x * s
    s = wp.float64(1.6059043836821613e-10) + x * s
    s = wp.float64(-2.505210838544172e-08) + x * s
    s = wp.float64(2.7557319223985893e-06) + x * s
    return s


@wp.func
def stumpff(x: wp.float64) -> vec10:
    """c₀ … c₉ of (2) at x = |w|²."""
    c = vec10()
    if x < SERIES_LIMIT:
        c[8] = series_8(x)
        c[9] = series_9(x)
        c[7] = wp.float64(0.0001984126984126984) - x * c[9]
        c[6] = wp.float64(0.001388888888888889) - x * c[8]
        c[5] = wp.float64(0.008333333333333333) - x * c[7]
        c[4] = wp.float64(0.041666666666666664) - x * c[6]
        c[3] = wp.float64(0.16666666666666666) - x * c[5]
        c[2] = HALF - x * c[4]
        c[1] = ONE - x * c[3]
        c[0] = ONE - x * c[2]
    else:
        angle = wp.sqrt(x)
        c[0] = wp.cos(angle)
        c[1] = wp.sin(angle) / angle
        r = ONE / x
        half = wp.sin(HALF * angle)
        c[2] = TWO * half * half * r  # keeps its digits where 1 − cos has none, near 2π
        c[3] = (ONE - c[1]) * r
        c[4] = (HALF - c[2]) * r
        c[5] = (wp.float64(0.16666666666666666) - c[3]) * r
        c[6] = (wp.float64(0.041666666666666664) - c[4]) * r
        c[7] = (wp.float64(0.008333333333333333) - c[5]) * r
        c[8] = (wp.float64(0.001388888888888889) - c[6]) * r
        c[9] = (wp.float64(0.0001984126984126984) - c[7]) * r
    return c


@wp.func
def slope(c: vec10) -> vec10:
    """dc_k/dx of (2) for k = 1, 2, 3; applied to second derivatives it gives the third."""
    d = vec10()
    d[1] = HALF * (c[3] - c[2])
    d[2] = c[4] - HALF * c[3]
    d[3] = HALF * (THREE * c[5] - c[4])
    return d


@wp.func
def slope_2(c: vec10) -> vec10:
    """d²c_k/dx² = (k(k+2) c_{k+4} − (2k+1) c_{k+3} + c_{k+2}) / 4 for k = 1 … 5."""
    d = vec10()
    d[1] = QUARTER * (THREE * (c[5] - c[4]) + c[3])
    d[2] = QUARTER * (wp.float64(8.0) * c[6] - wp.float64(5.0) * c[5] + c[4])
    d[3] = QUARTER * (wp.float64(15.0) * c[7] - wp.float64(7.0) * c[6] + c[5])
    d[4] = QUARTER * (wp.float64(24.0) * c[8] - wp.float64(9.0) * c[7] + c[6])
    d[5] = QUARTER * (wp.float64(35.0) * c[9] - wp.float64(11.0) * c[8] + c[7])
    return d


@wp.func
def quadratic(i: wp.float64, a: vec3, b: vec3, w: vec3) -> mat3:
    """i I + hat(a) + b wᵀ, entry by entry."""
    return mat3(
        i + b[0] * w[0],
        b[0] * w[1] - a[2],
        b[0] * w[2] + a[1],
        b[1] * w[0] + a[2],
        i + b[1] * w[1],
        b[1] * w[2] - a[0],
        b[2] * w[0] - a[1],
        b[2] * w[1] + a[0],
        i + b[2] * w[2],
    )


@wp.func
def exp(w: vec3) -> mat3:
    """exp(w^)."""
    c = stumpff(wp.dot(w, w))
    return rotation_from_stumpff(w, c)


@wp.func
def rotation_from_stumpff(w: vec3, c: vec10) -> mat3:
    """exp(w^) = c₀ I + c₁ W + c₂ wwᵀ."""
    return quadratic(c[0], c[1] * w, c[2] * w, w)


@wp.func
def log(R: mat3) -> vec3:
    """Rotation vector of R, angle in [0, π], by way of the quaternion, which has no singular angle."""
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    w = ZERO
    v = vec3()
    if trace > ZERO:
        s = TWO * wp.sqrt(ONE + trace)
        w = QUARTER * s
        v = vec3(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]) / s
    elif R[0, 0] > R[1, 1] and R[0, 0] > R[2, 2]:
        s = TWO * wp.sqrt(ONE + R[0, 0] - R[1, 1] - R[2, 2])
        w = (R[2, 1] - R[1, 2]) / s
        v = vec3(QUARTER * s, (R[0, 1] + R[1, 0]) / s, (R[0, 2] + R[2, 0]) / s)
    elif R[1, 1] > R[2, 2]:
        s = TWO * wp.sqrt(ONE - R[0, 0] + R[1, 1] - R[2, 2])
        w = (R[0, 2] - R[2, 0]) / s
        v = vec3((R[0, 1] + R[1, 0]) / s, QUARTER * s, (R[1, 2] + R[2, 1]) / s)
    else:
        s = TWO * wp.sqrt(ONE - R[0, 0] - R[1, 1] + R[2, 2])
        w = (R[1, 0] - R[0, 1]) / s
        v = vec3((R[0, 2] + R[2, 0]) / s, (R[1, 2] + R[2, 1]) / s, QUARTER * s)
    if w < ZERO:
        w = -w
        v = -v
    n = wp.length(v)
    if n == ZERO:
        return v
    return (TWO * wp.atan2(n, w) / n) * v


@wp.func
def from_quaternion(w: wp.float64, v: vec3) -> mat3:
    """Rotation matrix of the unit quaternion (w, v)."""
    return quadratic(w * w - wp.dot(v, v), (TWO * w) * v, TWO * v, v)


@wp.func
def tangent(w: vec3, c: vec10) -> mat3:
    """T_w of (1)."""
    return quadratic(c[1], -c[2] * w, c[3] * w, w)


@wp.func
def tangent_inverse(w: vec3, c: vec10) -> mat3:
    """T_w⁻¹ = I + W/2 + e W², e = (c₃ − 2c₄) / 2c₂ = (2c₂ − c₁) / 2xc₂; singular at |w| = 2π."""
    x = wp.dot(w, w)
    top = c[3] - TWO * c[4]
    if x >= SERIES_LIMIT:
        top = (TWO * c[2] - c[1]) / x  # loses no digits where 2c₂ is small beside c₁
    e = top / (TWO * c[2])
    return quadratic(ONE - e * x, HALF * w, e * w, w)


@wp.func
def tangent_derivative(w: vec3, a: vec3, c: vec10) -> mat3:
    """D[a]: derivative of T_w in the direction a."""
    d = slope(c)
    xa = TWO * wp.dot(w, a)
    return quadratic(d[1] * xa, -((d[2] * xa) * w + c[2] * a), (d[3] * xa) * w + c[3] * a, w) + c[3] * wp.outer(w, a)


@wp.func
def tangent_derivative_2(w: vec3, a: vec3, b: vec3, c: vec10) -> mat3:
    """D²[a, b]: second derivative of T_w in the directions a and b."""
    d = slope(c)
    dd = slope_2(c)
    xa = TWO * wp.dot(w, a)
    xb = TWO * wp.dot(w, b)
    xab = TWO * wp.dot(a, b)
    i = dd[1] * xa * xb + d[1] * xab
    mixed = xa * b + xb * a
    turn = (dd[2] * xa * xb + d[2] * xab) * w + d[2] * mixed
    return (
        quadratic(i, -turn, (dd[3] * xa * xb + d[3] * xab) * w + d[3] * mixed, w)
        + d[3] * wp.outer(w, mixed)
        + c[3] * symmetric_outer(a, b)
    )


@wp.func
def tangent_derivative_3(w: vec3, a: vec3, b: vec3, e: vec3, c: vec10) -> mat3:
    """D³[a, b, e]: third derivative of T_w in three directions."""
    d = slope(c)
    dd = slope_2(c)
    ddd = slope(dd)
    xa = TWO * wp.dot(w, a)
    xb = TWO * wp.dot(w, b)
    xe = TWO * wp.dot(w, e)
    xab = TWO * wp.dot(a, b)
    xae = TWO * wp.dot(a, e)
    xbe = TWO * wp.dot(b, e)
    cubic = xa * xb * xe
    mixed = xab * xe + xae * xb + xbe * xa
    i = ddd[1] * cubic + dd[1] * mixed
    ab = dd[2] * xa * xb + d[2] * xab
    ae = dd[2] * xa * xe + d[2] * xae
    be = dd[2] * xb * xe + d[2] * xbe
    ab3 = dd[3] * xa * xb + d[3] * xab
    ae3 = dd[3] * xa * xe + d[3] * xae
    be3 = dd[3] * xb * xe + d[3] * xbe
    turn = (ddd[2] * cubic + dd[2] * mixed) * w + ab * e + ae * b + be * a
    return (
        quadratic(i, -turn, (ddd[3] * cubic + dd[3] * mixed) * w, w)
        + symmetric_outer(ab3 * e + ae3 * b + be3 * a, w)
        + d[3] * (xa * symmetric_outer(b, e) + xb * symmetric_outer(a, e) + xe * symmetric_outer(a, b))
    )


@wp.func
def tangent_transpose_derivative(w: vec3, y: vec3, c: vec10) -> mat3:
    """K_y = ∂(T_wᵀ y)/∂w at fixed y, T_wᵀ y = c₁ y + c₂ w × y + c₃ w (w·y)."""
    d = slope(c)
    wy = wp.dot(w, y)
    radial = TWO * (d[1] * y + d[2] * wp.cross(w, y) + d[3] * wy * w)
    return quadratic(c[3] * wy, -c[2] * y, radial, w) + c[3] * wp.outer(w, y)


@wp.func
def tangent_transpose_derivative_2(w: vec3, y: vec3, u: vec3, c: vec10) -> mat3:
    """L = ∂(K_y u)/∂w at fixed y and u, K_y the result of tangent_transpose_derivative."""
    d = slope(c)
    dd = slope_2(c)
    wy = wp.dot(w, y)
    wu = wp.dot(w, u)
    yu = wp.dot(y, u)
    radial = TWO * (d[1] * y + d[2] * wp.cross(w, y) + d[3] * wy * w)
    radial_2 = TWO * (dd[1] * y + dd[2] * wp.cross(w, y) + dd[3] * wy * w)
    moved = TWO * (d[2] * wp.cross(u, y) + d[3] * (wy * u + yu * w))
    i = TWO * d[3] * wu * wy + c[3] * yu
    return (
        quadratic(i, (-TWO * wu * d[2]) * y, (TWO * wu) * radial_2 + moved, w)
        + wp.outer(radial, u)
        + wp.outer((TWO * wu * d[3]) * w + c[3] * u, y)
    )
