"""6x6 operators on twists and wrenches, inside kernels."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.types import mat3, mat6, vec6


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
