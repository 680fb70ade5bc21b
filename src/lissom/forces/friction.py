"""Friction of a ball on a shape, inside kernels: smooth in the slip, or held by an anchor.

With the normal force N, the slip w at the point of contact, n the outward normal, ball radius r and centre c,

    smooth      f = −μ N w / √(|w|² + v_s²)                                                              (1)
    anchored    s = x + τ w,   f = −k_t s,   but −μ N s/|s| where k_t |s| > μ N                           (2)
    x = P [(c − r n) − A] + r (φ/sin φ) P b,   P = 1 − n nᵀ,   cos φ = −n·b                               (3)

A is a point of the shape and b the direction, seen from its centre, of a point of the ball; they met when the ball was
anchored. The second part of (3) is the arc that the ball has rolled, so that x is what it has slipped: rolling asks for
nothing. A ball without an anchor has x = 0. With G = φ/sin φ and z = cos φ,

    ∂x/∂c = P (1 − r N) − (n·d + n dᵀ) N − r [G (n·b + n bᵀ) + G' (P b) bᵀ] N,   d = c − r n − A          (4)
    ∂x/∂θ = −r G P b^ + r G' (P b) (n × b)ᵀ for a turn θ of the ball,   G' = (z G − 1)/sin² φ              (5)

where N in (4) is the Hessian of the distance.
Source: K. L. Johnson, Contact Mechanics, 1985, ch. 7 (a tangential spring below the limit of friction); the return to
the cone is that of J. C. Simo, T. J. R. Hughes, Computational Inelasticity, 1998, ch. 1.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.distances import projector
from lissom.lie import so3
from lissom.lie.types import mat3, vec3

SMALL = wp.constant(wp.float64(0.02))  # 1 − cos φ below which G' is taken by its series
SURELY = wp.constant(wp.float64(1.0 - 1e-12))
TINY = wp.constant(wp.float64(1e-30))


@wp.struct
class ContactLaw:
    """k, p, c, μ, v_s, k_t (0 for the smooth law) and τ of robot.contacts.Contact."""

    stiffness: wp.float64
    exponent: wp.float64
    damping: wp.float64
    friction: wp.float64
    slip_speed: wp.float64
    stick_stiffness: wp.float64
    stick_damping: wp.float64


@wp.struct
class Grip:
    """An anchor as (3) takes it, in the base frame: whether there is one, d = c − r n − A and b."""

    holds: wp.int32
    d: vec3
    b: vec3


@wp.func
def rolled(n: vec3, b: vec3):
    """G and G' of (5)."""
    z = -wp.dot(n, b)
    y = so3.ONE - z
    if y < SMALL:
        G = so3.ZERO
        slope = so3.ZERO
        term = wp.float64(1.0)  # of G in powers of y; each is (m + 1)/(2m + 3) y times the one before
        m = wp.float64(0.0)
        for _k in range(9):
            G += term
            factor = (m + so3.ONE) / (so3.TWO * m + wp.float64(3.0))
            slope -= (m + so3.ONE) * factor * term
            term = term * factor * y
            m += so3.ONE
        return G, slope
    side = wp.max(wp.length(b + z * n), TINY)
    G = wp.atan2(side, z) / side
    return G, (z * G - so3.ONE) / (side * side)


@wp.func
def elastic_slip(grip: Grip, radius: wp.float64, n: vec3) -> vec3:
    """x of (3)."""
    if grip.holds == 0:
        return vec3()
    G, _slope = rolled(n, grip.b)
    return projector(n) * (grip.d + radius * G * grip.b)


@wp.func
def elastic_slip_derivatives(grip: Grip, radius: wp.float64, n: vec3, N: mat3):
    """∂x/∂c of (4) and ∂x/∂θ of (5)."""
    if grip.holds == 0:
        return mat3(), mat3()
    G, slope = rolled(n, grip.b)
    P = projector(n)
    one = wp.identity(n=3, dtype=wp.float64)
    arm = P * grip.b
    turned = G * (wp.dot(n, grip.b) * one + wp.outer(n, grip.b)) + slope * wp.outer(arm, grip.b)
    moved = wp.dot(n, grip.d) * one + wp.outer(n, grip.d)
    by_centre = P * (one - radius * N) - (moved + radius * turned) * N
    by_turn = radius * (slope * wp.outer(arm, wp.cross(n, grip.b)) - G * (P * so3.hat(grip.b)))
    return by_centre, by_turn


@wp.func
def friction_force(law: ContactLaw, grip: Grip, radius: wp.float64, push: wp.float64, n: vec3, w: vec3) -> vec3:
    """f of (1) or (2)."""
    most = law.friction * push
    if law.stick_stiffness == so3.ZERO:
        return (-most / wp.sqrt(wp.dot(w, w) + law.slip_speed * law.slip_speed)) * w
    s = elastic_slip(grip, radius, n) + law.stick_damping * w
    return -wp.min(law.stick_stiffness, most / wp.max(wp.length(s), TINY)) * s


@wp.func
def friction_slopes(law: ContactLaw, grip: Grip, radius: wp.float64, push: wp.float64, n: vec3, w: vec3):
    """∂f/∂s at fixed N, ∂f/∂N, and the share τ of w in s; for the smooth law s is w."""
    most = law.friction * push
    one = wp.identity(n=3, dtype=wp.float64)
    if law.stick_stiffness == so3.ZERO:
        size = wp.sqrt(wp.dot(w, w) + law.slip_speed * law.slip_speed)
        g = w / size
        return (-most / size) * (one - wp.outer(g, g)), -law.friction * g, so3.ONE
    s = elastic_slip(grip, radius, n) + law.stick_damping * w
    size = wp.length(s)
    if most <= so3.ZERO:
        return mat3(), vec3(), law.stick_damping
    if law.stick_stiffness * size <= most:
        return -law.stick_stiffness * one, vec3(), law.stick_damping
    g = s / size
    return (-most / size) * (one - wp.outer(g, g)), -law.friction * g, law.stick_damping


@wp.func
def held_slip(law: ContactLaw, grip: Grip, radius: wp.float64, push: wp.float64, n: vec3) -> vec3:
    """x after the ball has slipped as far as friction cannot hold it: k_t |x| < μ N, so that it sticks from there."""
    x = elastic_slip(grip, radius, n)
    most = SURELY * law.friction * push / law.stick_stiffness
    size = wp.length(x)
    if size > most:
        return (most / size) * x
    return x
