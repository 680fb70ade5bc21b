"""Which small motions about an equilibrium grow: exponents s with positive real part of

    (s² M + s D + K) x = 0                                                                                (1)

K symmetric: as many as K has negative eigenvalues, whatever M and D ≥ 0 are (Kelvin, Tait and Chetaev); else from M.
Without damping s² = −μ with μ an eigenvalue of L⁻¹ K L⁻ᵀ, M = L Lᵀ. Two real μ that meet and part into a complex pair
are flutter: the imaginary part then grows with the root of the load, so a millionth of |μ| tells it from rounding and
moves the load by 1e-12 only.
Source: H. Ziegler, Principles of Structural Stability, 1968.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from lissom.errors import ModelError

_ROUNDING = 4e-15  # twenty units in the last place, of the largest eigenvalue
_PARTED = 1e-6


def growing_exponents(K: np.ndarray, D: np.ndarray, M: np.ndarray) -> np.ndarray:
    """The s of (1) that grow, complex; for symmetric K the roots of its negative eigenvalues with the sign changed."""
    if _is_symmetric(K):
        curvature = np.linalg.eigvalsh(0.5 * (K + K.T))
        floor = -_ROUNDING * np.abs(curvature).max(initial=0.0)  # a buckled round rod turns about its axis for nothing
        return np.sqrt(-curvature[curvature < floor]).astype(complex)
    try:
        L = cholesky(0.5 * (M + M.T), lower=True)
    except np.linalg.LinAlgError:
        raise ModelError(
            "continuation: stability under loads that turn with the body needs a positive definite mass matrix: give "
            f"every coordinate a mass to move (got a least eigenvalue of {np.linalg.eigvalsh(M)[0]:.3g})"
        ) from None
    K, D = (solve_triangular(L, solve_triangular(L, X, lower=True).T, lower=True).T for X in (K, D))
    if np.abs(D).max() <= _ROUNDING * np.sqrt(np.abs(K).max()):
        return _undamped(K)
    n = len(K)
    s = np.asarray(np.linalg.eigvals(np.block([[np.zeros((n, n)), np.eye(n)], [-K, -D]])), dtype=np.complex128)
    floor = np.where(s.imag == 0.0, 0.0, _ROUNDING * np.abs(s).max())
    return s[np.real(s) > floor]


def is_flutter(growing: np.ndarray) -> bool:
    """Whether the slowest of the growing motions oscillates."""
    slowest = growing[np.argmin(np.real(growing))]
    return abs(slowest.imag) > abs(slowest.real)


def _undamped(K: np.ndarray) -> np.ndarray:
    mu = np.asarray(np.linalg.eigvals(K), dtype=np.complex128)
    parted = np.abs(mu.imag) > _PARTED * np.abs(mu) + 5 * _ROUNDING * np.abs(mu).max()
    s = np.sqrt(-np.where(parted, mu, mu.real))  # of the two roots, the one with Re s ≥ 0
    return s[np.logical_or(parted, mu.real < 0.0)]


def _is_symmetric(K: np.ndarray) -> bool:
    """Whether K equals Kᵀ to rounding, entry by entry in units of the diagonal."""
    size = np.sqrt(np.abs(np.diag(K)))
    return bool((np.abs(K - K.T) <= 1e-9 * np.outer(size, size) + 1e-12 * np.abs(K).max(initial=0.0)).all())
