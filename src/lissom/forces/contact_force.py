"""The force on a ball that is pressed into a shape, and its derivatives, inside kernels.

With the shape at rest, φ its distance from the ball's centre c, n and N the gradient and Hessian of φ, ball radius r,
centre velocity u and angular velocity ω,

    δ = r − φ(c),   N = k δ^p (1 + d δ̇)₊,   δ̇ = −n·u                                                     (1)
    w = (1 − n nᵀ) u − r ω × n                                                                          (2)
    f = N n + f_t(N, w),   m = −r n × f                                        force, moment about the centre    (3)

with the friction f_t of `friction`. Derivatives are those seen in the body's frame, as D_c = ∂/∂c, D_u, D_ω and D_θ of
(3) give them, θ being a turn of the ball with its anchor (see `contact_response`).
Source: Mathew 2025 (57)-(61), with the shape's Hessian in place of that of a cylinder, damping and friction.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.distances import projector
from lissom.forces.friction import (
    ContactLaw,
    Grip,
    elastic_slip_derivatives,
    friction_force,
    friction_slopes,
)
from lissom.lie import se3, so3
from lissom.lie.types import mat3, mat6, vec3, vec6


@wp.func
def pressure(law: ContactLaw, depth: wp.float64, rate: wp.float64):
    """N of (1), its derivative by δ, and that by δ̇."""
    static = law.stiffness * wp.pow(depth, law.exponent)
    swell = so3.ONE + law.damping * rate
    if swell <= so3.ZERO:
        return so3.ZERO, so3.ZERO, so3.ZERO
    return static * swell, law.exponent * static / depth * swell, static * law.damping


@wp.func
def contact_force(law: ContactLaw, grip: Grip, radius: wp.float64, depth: wp.float64, n: vec3, u: vec3, spin: vec3):
    """f and m of (3)."""
    push, _by_depth, _by_rate = pressure(law, depth, -wp.dot(n, u))
    f = push * n
    if law.friction > so3.ZERO:
        slip = u - wp.dot(n, u) * n - radius * wp.cross(spin, n)
        f += friction_force(law, grip, radius, push, n, slip)
    return f, -radius * wp.cross(n, f)


@wp.func
def contact_derivatives(
    law: ContactLaw, grip: Grip, radius: wp.float64, depth: wp.float64, n: vec3, N: mat3, u: vec3, spin: vec3
):
    """D_c, D_u, D_ω and D_θ of f, with u and ω held fixed under D_c and D_θ."""
    push, by_depth, by_rate = pressure(law, depth, -wp.dot(n, u))
    along = n
    flat = projector(n)
    D_c = push * N
    D_u = mat3()
    D_spin = mat3()
    D_turn = mat3()
    if law.friction > so3.ZERO:
        slip = flat * u - radius * wp.cross(spin, n)
        G, by_push, share = friction_slopes(law, grip, radius, push, n, slip)
        along = n + by_push
        slip_c = -(wp.outer(n, N * u) + wp.dot(n, u) * N) - radius * so3.cross_columns(spin, N)
        D_c += share * (G * slip_c)
        D_u += share * (G * flat)
        D_spin += (share * radius) * (G * so3.hat(n))
        if law.stick_stiffness > so3.ZERO:
            by_centre, by_turn = elastic_slip_derivatives(grip, radius, n, N)
            D_c += G * by_centre
            D_turn += G * by_turn
    D_c += wp.outer(along, -by_depth * n - by_rate * (N * u))
    D_u += wp.outer(along, -by_rate * n)
    return D_c, D_u, D_spin, D_turn


@wp.func
def contact_response(
    radius: wp.float64,
    n: vec3,
    N: mat3,
    u: vec3,
    spin: vec3,
    f: vec3,
    m: vec3,
    D_c: mat3,
    D_u: mat3,
    D_spin: mat3,
    D_turn: mat3,
):
    """How −(m; f) at the centre answers to a small motion of the body, and to its twist, both taken at the centre.

    In the body's frame f changes by δf − θ × f for a turn θ, and u and ω by what turns them less θ × u and θ × ω.
    """
    turn = D_u * so3.hat(u) + D_spin * so3.hat(spin) - D_turn
    lever = radius * so3.hat(n)
    H = -se3.block(lever * turn + so3.hat(m), radius * so3.cross_columns(f, N) - lever * D_c, so3.hat(f) - turn, D_c)
    return H, -se3.block(-lever * D_spin, -lever * D_u, D_spin, D_u)


@wp.func
def at_origin(c: vec3, X: mat6) -> mat6:
    """A 6x6 matrix from twists at the point c to wrenches there, as one at the origin."""
    to_c = se3.block(wp.identity(n=3, dtype=wp.float64), mat3(), -so3.hat(c), wp.identity(n=3, dtype=wp.float64))
    return wp.transpose(to_c) * X * to_c


@wp.func
def wrench_at_origin(c: vec3, m: vec3, f: vec3) -> vec6:
    """The wrench of a moment and a force at the point c."""
    return se3.join(m + wp.cross(c, f), f)
