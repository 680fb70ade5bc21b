"""Fourth-order Magnus expansion of one interval, inside kernels.

Ω = h/2 (ξ₁ + ξ₂) + κ ad(ξ₁) ξ₂,    κ = √3 h²/12                                                     (1)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.types import vec6


@wp.func
def omega(xi1: vec6, xi2: vec6, h: wp.float64, kappa: wp.float64) -> vec6:
    """Ω of (1)."""
    return (so3.HALF * h) * (xi1 + xi2) + kappa * se3.ad(xi1, xi2)


@wp.func
def omega_dot(xi1: vec6, xi2: vec6, d1: vec6, d2: vec6, h: wp.float64, kappa: wp.float64) -> vec6:
    """Ω̇ for strain rates d1, d2."""
    return (so3.HALF * h) * (d1 + d2) + kappa * (se3.ad(d1, xi2) + se3.ad(xi1, d2))


@wp.func
def omega_transpose(xi1: vec6, xi2: vec6, y: vec6, h: wp.float64, kappa: wp.float64):
    """(∂Ω/∂ξ₁)ᵀ y and (∂Ω/∂ξ₂)ᵀ y, where ∂Ω/∂ξ₁ = h/2 − κ ad(ξ₂) and ∂Ω/∂ξ₂ = h/2 + κ ad(ξ₁)."""
    half = (so3.HALF * h) * y
    return half + kappa * se3.coad(xi2, y), half - kappa * se3.coad(xi1, y)
