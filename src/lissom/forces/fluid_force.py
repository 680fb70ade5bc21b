"""What a fluid does to a node, inside kernels. y is the node's twist against the fluid, v and V its linear part.

    drag   F = D |v| y,   ∂F/∂y = D (|v| + y vᵀ/|v|)                                                      (1)
    wake   Φ = V_x p − ½ (p·V) x,   p = m V                         the force of the wake behind a tip        (2)

    A current C runs through the base frame as the twist (0; c), with the rate Ċ. What M_A feels of it beside its own
    motion, and how that answers to a pose δ and a twist δη of the node (y = η − C, δC = (ad_C + K) δ, K from ∇c):

    ΔF = M_A (ad_η C − Ċ) + coad(y, M_A y) − coad(η, M_A η) − M_D Ċ                                        (3)
    ΔN = L(y) − L(η) − M_A ad_C,   L(x) = adbar_{M_A x} − ad_xᵀ M_A                                        (4)
    ΔH = (M_A ad_η − L(y)) (ad_C + K) − (M_A + M_D) (ad_Ċ + K̇)                                            (5)

Source: Mathew 2025 (62)-(66); Boyer 2023 Example 3 and Lighthill 1971 for (2). Ċ is the rate that a particle of the
fluid has, which drives the fluid displaced, M_D, as well.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.spatial import ad_matrix, adbar_matrix
from lissom.lie.types import mat3, mat6, vec3, vec6


@wp.func
def drag(D: mat6, y: vec6) -> vec6:
    """F of (1)."""
    return wp.length(se3.linear(y)) * (D * y)


@wp.func
def drag_response(D: mat6, y: vec6) -> mat6:
    """∂F/∂y of (1)."""
    v = se3.linear(y)
    speed = wp.length(v)
    if speed == so3.ZERO:
        return mat6()
    return speed * D + wp.outer(D * y, se3.join(vec3(), v / speed))


@wp.func
def wake(mass: mat3, V: vec3) -> vec3:
    """Φ of (2)."""
    p = mass * V
    return V[0] * p - vec3(so3.HALF * wp.dot(p, V), so3.ZERO, so3.ZERO)


@wp.func
def wake_response(mass: mat3, V: vec3) -> mat3:
    """∂Φ/∂V of (2)."""
    p = mass * V
    x = vec3(so3.ONE, so3.ZERO, so3.ZERO)
    return V[0] * mass + wp.outer(p, x) - wp.outer(x, p)


@wp.func
def momentum_response(M: mat6, x: vec6) -> mat6:
    """L(x) of (4)."""
    return adbar_matrix(M * x) - wp.transpose(ad_matrix(x)) * M


@wp.func
def felt_current(M_A: mat6, M_D: mat6, eta: vec6, C: vec6, C_rate: vec6) -> vec6:
    """ΔF of (3)."""
    y = eta - C
    F = M_A * (se3.ad(eta, C) - C_rate) + se3.coad(y, M_A * y) - se3.coad(eta, M_A * eta)
    return F - M_D * C_rate
