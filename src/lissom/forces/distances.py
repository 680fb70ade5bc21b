"""Signed distances of shapes with their gradients n and Hessians N, inside kernels; axes along z.

Outside, N is the curvature of the parallel surface through the point: 1/distance along the directions in which the
nearest feature does not extend. Inside a box, a cylinder or a cone the nearest face counts.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import so3
from lissom.lie.types import mat3, vec3
from lissom.robot.shapes import ShapeKind

PLANE = wp.constant(wp.int32(ShapeKind.PLANE.value))
SPHERE = wp.constant(wp.int32(ShapeKind.SPHERE.value))
BOX = wp.constant(wp.int32(ShapeKind.BOX.value))
CYLINDER = wp.constant(wp.int32(ShapeKind.CYLINDER.value))
HOLLOW = wp.constant(wp.int32(ShapeKind.HOLLOW.value))
CONE = wp.constant(wp.int32(ShapeKind.CONE.value))
TINY = wp.constant(wp.float64(1e-30))
SHORT = wp.constant(wp.float64(1e-12))  # a length below which a line has no direction [m]


@wp.func
def projector(n: vec3) -> mat3:
    """1 − n nᵀ."""
    return wp.identity(n=3, dtype=wp.float64) - wp.outer(n, n)


@wp.func
def from_point(y: vec3, radius: wp.float64):
    """Of a sphere around the origin."""
    r = wp.max(wp.length(y), TINY)
    n = y / r
    return r - radius, n, projector(n) / r


@wp.func
def from_axis(y: vec3, radius: wp.float64):
    """Of a cylinder without end."""
    rho = wp.max(wp.sqrt(y[0] * y[0] + y[1] * y[1]), TINY)
    n = vec3(y[0] / rho, y[1] / rho, so3.ZERO)
    round_it = vec3(-n[1], n[0], so3.ZERO)
    return rho - radius, n, wp.outer(round_it, round_it) / rho


@wp.func
def from_box(half: vec3, y: vec3):
    """Of a box."""
    out = vec3()
    open_ = mat3()
    side = vec3()
    for c in range(3):
        side[c] = wp.where(y[c] < so3.ZERO, -so3.ONE, so3.ONE)
        excess = wp.abs(y[c]) - half[c]
        if excess > so3.ZERO:
            out[c] = side[c] * excess
            open_[c, c] = so3.ONE
    distance = wp.length(out)
    if distance > so3.ZERO:
        n = out / distance
        return distance, n, (open_ - wp.outer(n, n)) / distance
    nearest = wp.int32(0)
    for c in range(1, 3):
        if wp.abs(y[c]) - half[c] > wp.abs(y[nearest]) - half[nearest]:
            nearest = c
    n = vec3()
    n[nearest] = side[nearest]
    return wp.abs(y[nearest]) - half[nearest], n, mat3()


@wp.func
def from_rim(radius: wp.float64, y: vec3):
    """Of a circle around z at the origin."""
    side, n, _N = from_axis(y, radius)
    across = side * n + vec3(so3.ZERO, so3.ZERO, y[2])
    distance = wp.length(across)
    out = across / distance
    round_it = vec3(-n[1], n[0], so3.ZERO)
    curvature = wp.dot(out, n) / (side + radius) - so3.ONE / distance
    return distance, out, projector(out) / distance + curvature * wp.outer(round_it, round_it)


@wp.func
def from_cylinder(radius: wp.float64, half: wp.float64, y: vec3):
    """Of a cylinder with flat ends."""
    side, n, N = from_axis(y, radius)
    end = wp.where(y[2] < so3.ZERO, -so3.ONE, so3.ONE)
    above = wp.abs(y[2]) - half
    if side > so3.ZERO and above > so3.ZERO:
        d, m, M = from_rim(radius, y - vec3(so3.ZERO, so3.ZERO, end * half))
        return d, m, M
    if above > side:
        return above, vec3(so3.ZERO, so3.ZERO, end), mat3()
    return side, n, N


@wp.func
def from_cone(radius: wp.float64, half: wp.float64, y: vec3):
    """Of a cone with its base at −half and its tip at half."""
    slant = wp.length(vec3(radius, so3.TWO * half, so3.ZERO))
    outwards, upwards = so3.TWO * half / slant, radius / slant  # the normal of its side
    side, n, N = from_axis(y, radius)
    above = y[2] + half
    along = upwards * -side + outwards * above  # on the side, from the rim
    below = -above
    if side > so3.ZERO and along < so3.ZERO:
        d, m, M = from_rim(radius, y + vec3(so3.ZERO, so3.ZERO, half))
        return d, m, M
    if along > slant:
        d, m, M = from_point(y - vec3(so3.ZERO, so3.ZERO, half), so3.ZERO)
        return d, m, M
    beyond = outwards * side + upwards * above
    if below > beyond:
        return below, vec3(so3.ZERO, so3.ZERO, -so3.ONE), mat3()
    return beyond, outwards * n + vec3(so3.ZERO, so3.ZERO, upwards), outwards * N


@wp.func
def signed_distance(kind: int, size: vec3, y: vec3):
    """Distance of the point y from a shape, negative inside, with gradient and Hessian."""
    if kind == PLANE:
        return y[2], vec3(so3.ZERO, so3.ZERO, so3.ONE), mat3()
    if kind == SPHERE:
        d, n, N = from_point(y, size[0])
        return d, n, N
    if kind == BOX:
        d, n, N = from_box(size, y)
        return d, n, N
    if kind == HOLLOW:
        d, n, N = from_axis(y, size[0])
        return -d, -n, -N
    if kind == CYLINDER:
        if size[1] < so3.ZERO:
            d, n, N = from_axis(y, size[0])
            return d, n, N
        d, n, N = from_cylinder(size[0], size[1], y)
        return d, n, N
    if kind == CONE:
        d, n, N = from_cone(size[0], size[1], y)
        return d, n, N
    if wp.abs(y[2]) <= size[1]:  # a capsule
        d, n, N = from_axis(y, size[0])
        return d, n, N
    end = wp.where(y[2] < so3.ZERO, -size[1], size[1])
    d, n, N = from_point(y - vec3(so3.ZERO, so3.ZERO, end), size[0])
    return d, n, N
