"""The point at which a wheel or ball touches a plane, inside kernels, and how it moves with their relative pose.

The plane goes through the origin and has the unit normal n. The wheel has its centre at p and the axis b, b = 0 for a
ball. With z = n·b and s = √(1 − z²),

    c = p − r m(b),   m = (n − z b)/s                                                                     (1)

A relative motion (ω, v) moves p by v + ω × p and b by ω × b, so that for a constant e

    ċ·e = v·e + (ω × p)·e − r ∇φ·(ω × b),   φ(b) = e·m(b)                                                 (2)
    ∇φ = −(z/s) e + (y/s³) n,   y = (e·n) z − e·b                                                         (3)
    ∇²φ x = −(n·x/s³) e + [((e·n)(n·x) − e·x)/s³ + 3 z y (n·x)/s⁵] n                                      (4)

A row holds the velocity of the wheel at c along a constant direction d of the plane, P = (c × d, d). It changes by
D (ω, v) = (ċ × d, 0), and with e = d × ω the products with D are those with (2):

    (ω, v)·D (ω', v') = ċ(ω', v')·e                                                                       (5)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.types import mat3, vec3, vec6

_THREE = wp.constant(wp.float64(3.0))


@wp.func
def slope_of(b: vec3, n: vec3, e: vec3) -> vec3:
    """∇φ of (3)."""
    z = wp.dot(n, b)
    s = wp.sqrt(so3.ONE - z * z)
    return -(z / s) * e + ((wp.dot(e, n) * z - wp.dot(e, b)) / (s * s * s)) * n


@wp.func
def bend_of(b: vec3, n: vec3, e: vec3, x: vec3) -> vec3:
    """∇²φ x of (4)."""
    z = wp.dot(n, b)
    u = wp.dot(e, n)
    s = wp.sqrt(so3.ONE - z * z)
    cube = so3.ONE / (s * s * s)
    along = wp.dot(n, x)
    y = u * z - wp.dot(e, b)
    return -(along * cube) * e + (cube * (u * along - wp.dot(e, x)) + _THREE * z * y * along * cube / (s * s)) * n


@wp.func
def contact_height(b: vec3, n: vec3, p: vec3, r: wp.float64) -> wp.float64:
    """n·c of (1)."""
    z = wp.dot(n, b)
    return wp.dot(n, p) - r * wp.sqrt(so3.ONE - z * z)


@wp.func
def contact_row(b: vec3, n: vec3, p: vec3, r: wp.float64, d: vec3) -> vec6:
    """P = (c × d, d)."""
    z = wp.dot(n, b)
    c = p - (r / wp.sqrt(so3.ONE - z * z)) * (n - z * b)
    return se3.join(wp.cross(c, d), d)


@wp.func
def contact_rate(b: vec3, n: vec3, p: vec3, r: wp.float64, y: vec6) -> vec3:
    """ċ of (2) for the motion y."""
    w = se3.angular(y)
    turned = wp.cross(w, b)
    # m moves by −(z/s) δb + (z n − b)(n·δb)/s³, the transpose of (3)
    z = wp.dot(n, b)
    s = wp.sqrt(so3.ONE - z * z)
    moved = -(z / s) * turned + (wp.dot(n, turned) / (s * s * s)) * (z * n - b)
    return se3.linear(y) + wp.cross(w, p) - r * moved


@wp.func
def onto_contact(b: vec3, n: vec3, p: vec3, r: wp.float64, e: vec3) -> vec6:
    """The covector of the motion in (2)."""
    return se3.join(wp.cross(p, e) - r * wp.cross(b, slope_of(b, n, e)), e)


@wp.func
def onto_contact_rate(b: vec3, n: vec3, p: vec3, r: wp.float64, e: vec3, w: vec3) -> vec6:
    """The derivative of (2) by the relative pose, for a constant motion of angular velocity w."""
    f = wp.cross(e, w)
    h = bend_of(b, n, e, wp.cross(w, b)) + wp.cross(slope_of(b, n, e), w)
    return se3.join(wp.cross(p, f) - r * wp.cross(b, h), f)


@wp.func
def contact_turn(b: vec3, n: vec3, p: vec3, r: wp.float64) -> mat3:
    """The matrix C with ċ = v + C ω in (2)."""
    z = wp.dot(n, b)
    s = wp.sqrt(so3.ONE - z * z)
    across = so3.hat(b)
    # m moves by M (ω × b) = −M hat(b) ω
    moved = -(z / s) * across + wp.outer((so3.ONE / (s * s * s)) * (z * n - b), wp.transpose(across) * n)
    return -so3.hat(p) + r * moved
