"""What integrals over bodies whose points move linearly in θ are polynomials of.

With f = x + Σ φ_j(x) θ_j, so that J̇ = 0 and J_j = φ_j, and the names of the module integrals,

    c = c_0 + Σ c_j θ_j,   P_j = P0_j + Σ Q_kj θ_k,   M_jk = tr Q_jk,   w_j = Σ ε:Q_kj θ̇_k                    (1)
    U = ½ K2_jk θ_jθ_k + ½ K3_jkl θ_jθ_kθ_l + ⅛ K4_jklm θ_jθ_kθ_lθ_m                                           (2)

the energy where W is quadratic in the strain E = A_j θ_j + ½ B_jk θ_jθ_k:

    K2 = ∫A_j:ℂ:A_k,   K3 = ∫A_j:ℂ:B_kl,   K4 = ∫B_jk:ℂ:B_lm                                               (3)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lissom.bodies.domains import Domain, Quadrature
from lissom.bodies.kinematics import Kinematics
from lissom.bodies.materials import Hyperelastic
from lissom.errors import ModelError

_MOST_LINEAR = 1000  # coordinates of a linear map, whose Q_jk of (1) has 9 n² numbers
_MOST_QUARTIC = 50  # coordinates for which K4 of (2) is made
_BLOCK = 1 << 20  # numbers that are made of points in one go


class LinearCoefficients(NamedTuple):
    """The constants of (1) and (2).

    K3 and K4 are None for linear elasticity, and all three are where W is not quadratic in the strain, or where θ has
    more than 50 coordinates and it is not linear: with n⁴ terms, energies then come cheaper from the points.
    `damping_time` times K2_jk + (K3_jkl + K3_kjl) θ_l + K4_jlkm θ_lθ_m is d_v of (1) in the module of materials.
    """

    mass: float
    c_0: np.ndarray  # ∫ρx (3,)
    P_0: np.ndarray  # ∫ρ x xᵀ (3, 3)
    c_j: np.ndarray  # ∫ρ φ_j (n, 3)
    P0_j: np.ndarray  # ∫ρ x φ_jᵀ (n, 3, 3)
    Q_jk: np.ndarray  # ∫ρ φ_j φ_kᵀ (n, n, 3, 3)
    K2: np.ndarray | None
    K3: np.ndarray | None
    K4: np.ndarray | None


def linear_coefficients(
    kinematics: Kinematics, domain: Domain | Quadrature, law: Hyperelastic, masses: np.ndarray
) -> LinearCoefficients:
    """The constants of a linear kinematics, `masses` being those of the points of the domain."""
    points, m, n = domain.points, masses, kinematics.n
    if n > _MOST_LINEAR:
        raise ModelError(f"shape integrals: a linear kinematics must have at most {_MOST_LINEAR} coordinates (got {n})")
    phi = kinematics.shapes(points)
    weighted = m[:, None, None] * phi
    inertia = (m @ points, np.einsum("k,ka,kb->ab", m, points, points), weighted.sum(axis=0).T)
    first = np.einsum("ka,kbj->jab", points, weighted)
    second = np.tensordot(phi, weighted, axes=(0, 0)).transpose(1, 3, 0, 2)
    return LinearCoefficients(float(m.sum()), *inertia, first, second, *_polynomial(kinematics, domain, law))


def _polynomial(
    kinematics: Kinematics, domain: Domain | Quadrature, law: Hyperelastic
) -> tuple[np.ndarray | None, ...]:
    """K2, K3 and K4 of (3)."""
    n = kinematics.n
    if not law.is_quadratic or (n > _MOST_QUARTIC and not law.is_linear):
        return None, None, None
    square, axes = np.linalg.eigh(law.moduli())
    root = (np.sqrt(np.maximum(square, 0.0)) * axes)[:, -6:].T  # ℂ = rootᵀ root, which sees symmetric parts alone
    pairs = np.triu_indices(n)  # B_jk and B_kj are the same
    count = n if law.is_linear else n + len(pairs[0])
    K = np.zeros((count, count))
    slopes = kinematics.shape_gradients(domain.points)
    for k in range(0, len(slopes), step := max(1, _BLOCK // (33 * count))):
        slope, w = slopes[k : k + step], domain.weights[k : k + step]
        strained = [slope.reshape(-1, 9, n)]
        if not law.is_linear:
            B = np.einsum("kcap,kcbp->kabp", slope[..., pairs[0]], slope[..., pairs[1]])
            strained.append(B.reshape(len(w), 9, -1))
        AB = (np.sqrt(w)[:, None, None] * (root @ np.concatenate(strained, axis=-1))).reshape(-1, count)
        K += AB.T @ AB
    if law.is_linear:
        return K, None, None
    place = np.zeros((n, n), dtype=np.int64)
    place[pairs] = place.T[pairs] = np.arange(n, count)
    return K[:n, :n], K[:n, place], K[place[:, :, None, None], place]
