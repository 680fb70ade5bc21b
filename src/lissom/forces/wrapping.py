"""Shortest paths of tendons round spheres and cylinders, inside kernels.

In the frame of the obstacle, whose centre is the origin and whose axis is z, a path from a to b touches a circle of
radius r in the plane of a, b and the centre (sphere), or in the plane across the axis (cylinder). With ρ the distance
of a point from the centre in this plane, and Θ the angle of the path about the centre,

    l = S(ρ_a) + S(ρ_b) + r Θ,   S = √(ρ² − r²) − r acos(r/ρ),   S' = √(ρ² − r²)/ρ,   S'' = r²/(ρ² √(ρ² − r²))   (1)

The path touches if the straight line would cut the obstacle, and Θ > acos(r/ρ_a) + acos(r/ρ_b); otherwise l is the
distance of a and b. So it is while one of them lies inside the obstacle, ρ < r, as in MuJoCo. With a point `side` it
also touches where the straight line passes on the side opposite to this point, and it takes that of both ways round the
obstacle whose middle is nearer to the point.

On a cylinder, whose surface unrolls, the path is a straight line of length L over the height z,

    L = √(l² + (z_b − z_a)²)                                                                              (2)

With e_a and e_b unit vectors in the plane across a and b, in the direction in which Θ grows from a to b, and m the unit
normal of the plane of a sphere, the angle Θ = θ of the shorter way has the derivatives

    ∂θ/∂a = −e_a/ρ_a,   ∂²θ/∂a² = (â e_aᵀ + e_a âᵀ)/ρ_a² + m mᵀ cot θ/ρ_a²,   ∂²θ/∂a∂b = −m mᵀ/(ρ_a ρ_b sin θ)   (3)

without m on a cylinder. The longer way has Θ = 2π − θ.

Source: B. A. Garner, M. G. Pandy, Comput. Methods Biomech. Biomed. Eng. 3, 2000 (paths round spheres and cylinders).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.contact import SHORT
from lissom.lie import so3
from lissom.lie.types import mat3, vec3

_OUTSIDE = wp.constant(wp.float64(1.0 + 1e-9))  # ρ/r of an end on the obstacle
_INSIDE = wp.constant(wp.float64(1.0 - 1e-9))  # the largest ρ/r of an end inside the obstacle
_TURN = wp.constant(wp.float64(6.283185307179586))


@wp.struct
class PathLength:
    """Length of a path from a to b, its derivatives with respect to both points, and whether it touches the
    obstacle."""

    length: wp.float64
    by_a: vec3
    by_b: vec3
    aa: mat3
    ab: mat3
    bb: mat3
    touches: wp.int32


@wp.func
def straight_path(a: vec3, b: vec3) -> PathLength:
    """The straight line. Without length it has no direction and no second derivatives."""
    x = PathLength()
    x.length = wp.length(b - a)
    if x.length > SHORT:
        n = (b - a) / x.length
        K = (wp.identity(n=3, dtype=wp.float64) - wp.outer(n, n)) / x.length
        x.by_a = -n
        x.by_b = n
        x.aa = K
        x.ab = -K
        x.bb = K
    return x


@wp.func
def free_length(rho: wp.float64, r: wp.float64):
    """S of (1) and its first two derivatives."""
    root = wp.sqrt(rho * rho - r * r)
    return root - r * wp.acos(r / rho), root / rho, r * r / (rho * rho * root)


@wp.func
def direction_of(x: vec3, r: wp.float64):
    """The unit vector of x, and its length, at least a little more than r."""
    rho = wp.length(x)
    if rho < SHORT:
        return vec3(so3.ONE, so3.ZERO, so3.ZERO), r * _OUTSIDE
    return x / rho, wp.max(rho, r * _OUTSIDE)


@wp.func
def passes_freely(a: vec3, b: vec3, r: wp.float64, side: vec3, has_side: int) -> bool:
    """Whether an end lies inside the obstacle, or the line from a to b does not cut it and does not pass on the side
    opposite to `side`."""
    d = b - a
    size = wp.dot(d, d)
    if size < SHORT * SHORT or wp.min(wp.length(a), wp.length(b)) < r * _INSIDE:
        return True
    near = a + wp.clamp(-wp.dot(a, d) / size, so3.ZERO, so3.ONE) * d
    return wp.length(near) >= r and (has_side == 0 or wp.dot(near, side) >= so3.ZERO)


@wp.func
def path_on_circle(a: vec3, b: vec3, r: wp.float64, side: vec3, has_side: int, is_sphere: int) -> PathLength:
    """The path of (1) and (3); for a cylinder a, b and side lie in the plane across the axis."""
    if passes_freely(a, b, r, side, has_side):
        return straight_path(a, b)
    u, rho_a = direction_of(a, r)
    w, rho_b = direction_of(b, r)
    sine_m = wp.cross(u, w)
    m = vec3(so3.ZERO, so3.ZERO, so3.ONE)
    if is_sphere != 0:
        size = wp.length(sine_m)
        m = sine_m / wp.max(size, SHORT)
        if size < SHORT:  # a, the centre and b in one line: the plane of the side, or any
            across = vec3(u[1], u[2], u[0])
            if has_side != 0:
                across = side
            m = wp.normalize(wp.cross(u, across - wp.dot(across, u) * u))
    sine = wp.dot(sine_m, m)
    cosine = wp.dot(u, w)
    theta = wp.atan2(sine, cosine)  # negative for a clockwise way on a cylinder
    sign = wp.where(theta < so3.ZERO, -so3.ONE, so3.ONE)
    e_a = sign * wp.cross(m, u)
    e_b = sign * wp.cross(m, w)
    theta = wp.abs(theta)
    touch_a = wp.acos(r / rho_a)
    touch_b = wp.acos(r / rho_b)
    way = wp.float64(1.0)
    if has_side != 0:
        middle = so3.HALF * (theta + touch_a - touch_b)  # angle of the middle of the shorter way, and of the longer one
        other = so3.HALF * (_TURN - theta + touch_a - touch_b)
        outwards = wp.dot(side, u)
        onwards = wp.dot(side, e_a)
        nearer = outwards * wp.cos(other) - onwards * wp.sin(other) > outwards * wp.cos(middle) + onwards * wp.sin(
            middle
        )
        if nearer or theta <= touch_a + touch_b:
            way = -so3.ONE
            theta = _TURN - theta
    if theta <= touch_a + touch_b:
        return straight_path(a, b)
    S_a, slope_a, bend_a = free_length(rho_a, r)
    S_b, slope_b, bend_b = free_length(rho_b, r)
    x = PathLength()
    x.touches = 1
    x.length = S_a + S_b + r * theta
    x.by_a = slope_a * u - (way * r / rho_a) * e_a
    x.by_b = slope_b * w + (way * r / rho_b) * e_b
    c = way * r
    x.aa = bend_a * wp.outer(u, u) + (slope_a / rho_a) * wp.outer(e_a, e_a)
    x.aa += (c / (rho_a * rho_a)) * (wp.outer(u, e_a) + wp.outer(e_a, u))
    x.bb = bend_b * wp.outer(w, w) + (slope_b / rho_b) * wp.outer(e_b, e_b)
    x.bb -= (c / (rho_b * rho_b)) * (wp.outer(w, e_b) + wp.outer(e_b, w))
    if is_sphere != 0:
        sine = wp.max(wp.abs(sine), SHORT)
        M = wp.outer(m, m)
        x.aa += (slope_a / rho_a + c * cosine / (sine * rho_a * rho_a)) * M
        x.bb += (slope_b / rho_b + c * cosine / (sine * rho_b * rho_b)) * M
        x.ab = (-c / (sine * rho_a * rho_b)) * M
    return x


@wp.func
def flat(x: vec3) -> vec3:
    """The part of x across the axis z."""
    return vec3(x[0], x[1], so3.ZERO)


@wp.func
def path_round(a: vec3, b: vec3, r: wp.float64, side: vec3, has_side: int, is_sphere: int) -> PathLength:
    """The path from a to b round a sphere, or round an infinite cylinder by (2)."""
    if is_sphere != 0:
        return path_on_circle(a, b, r, side, has_side, 1)
    y = path_on_circle(flat(a), flat(b), r, flat(side), has_side, 0)
    if y.touches == 0:
        return straight_path(a, b)
    x = PathLength()
    z = vec3(so3.ZERO, so3.ZERO, so3.ONE)
    dz = b[2] - a[2]
    x.touches = 1
    x.length = wp.sqrt(y.length * y.length + dz * dz)
    x.by_a = (y.length * y.by_a - dz * z) / x.length
    x.by_b = (y.length * y.by_b + dz * z) / x.length
    Z = wp.outer(z, z)
    x.aa = (y.length * y.aa + wp.outer(y.by_a, y.by_a) + Z - wp.outer(x.by_a, x.by_a)) / x.length
    x.bb = (y.length * y.bb + wp.outer(y.by_b, y.by_b) + Z - wp.outer(x.by_b, x.by_b)) / x.length
    x.ab = (y.length * y.ab + wp.outer(y.by_a, y.by_b) - Z - wp.outer(x.by_a, x.by_b)) / x.length
    return x
