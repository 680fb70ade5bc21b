"""6x6 operators on twists and wrenches, inside kernels."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.types import mat3, mat6, vec3, vec6


@wp.func
def ad_matrix(x: vec6) -> mat6:
    """ad_x as a 6x6 matrix."""
    W = so3.hat(se3.angular(x))
    return se3.block(W, mat3(), so3.hat(se3.linear(x)), W)


@wp.func
def adbar_matrix(f: vec6) -> mat6:
    """adbar_f: adbar_f x = −ad_xᵀ f."""
    N = so3.hat(se3.linear(f))
    return se3.block(-so3.hat(se3.angular(f)), -N, -N, mat3())


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
    return se3.block(A + so3.cross_columns(p, C) - B_p * P, B_p, C - D * P, D)


@wp.func
def about(X: mat6, r: vec3) -> mat6:
    """A matrix from twists to wrenches, both about a point at r, expressed about the origin with the same axes."""
    D = bottom_right(X)
    B = top_right(X) + so3.cross_columns(r, D)
    P = so3.hat(r)
    return se3.block(top_left(X) + so3.cross_columns(r, bottom_left(X)) - B * P, B, bottom_left(X) - D * P, D)


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
