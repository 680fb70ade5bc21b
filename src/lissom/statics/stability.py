"""Which small motions about an equilibrium grow: exponents s with positive real part of

    (s² M + s D + K) x = 0                                                                                (1)

K symmetric: as many as K has negative eigenvalues, whatever M and D ≥ 0 are (Kelvin, Tait and Chetaev); else from M.
A rod is stiffer against stretching than against bending by the square of its slenderness. What is slow or soft would
drown in the rounding of what is stiff, so coordinates are first taken in units of their own stiffness, which changes no
sign (Sylvester), and exponents come from the inverse, whose largest eigenvalues are the slow ones; M = L Lᵀ:

    D = 0:  s² = −μ,  1/(μ + c²) the eigenvalues of  Lᵀ (K + c² M)⁻¹ L                                    (2)
    else:   1/(s − c) those of  [−P(D + c M), −c P(M); P(K)/c, −c P(M)],  P(X) = Lᵀ (K + c D + c² M)⁻¹ X L⁻ᵀ  (3)

with c a multiple of the slowest frequency: what is more than 1e8 times as fast is lost in rounding, and taken as not
growing. Two real μ that meet and part into a complex pair are flutter: the imaginary part grows with the root of the
load, so a millionth of |μ| tells it from rounding and moves the load by 1e-12 only.
A motion x with K x = D x = 0 has s² = 0, which rounding would part. It is held, as no other exponent depends on that:

    K + c² M x (M x)ᵀ,  D + c M x (M x)ᵀ  for xᵀ M x = 1                                                  (4)

Source: H. Ziegler, Principles of Structural Stability, 1968.
"""

from __future__ import annotations

import numpy as np
import scipy

from lissom.errors import ModelError

_ROUNDING = 4e-15  # twenty units in the last place, of the largest eigenvalue
_NEUTRAL = 1e-12  # of the largest eigenvalue: what costs nothing by symmetry is left 1e-14 by loops and their forces
_PARTED = 1e-6
_NOTHING = 1e-13
_SHIFT = 100.0  # c over the slowest frequency: slow μ are then told to 1e-10, those 1e7 times as fast to 1e-4


def growing_exponents(
    K: np.ndarray, D: np.ndarray, M: np.ndarray, elastic: np.ndarray, rounding: float = _NEUTRAL
) -> np.ndarray:
    """The s of (1) that grow, complex; for symmetric K the roots of its negative eigenvalues with the sign changed, in
    units of `elastic`, the part of K (n, n) that springs and rods have at rest. What is above −`rounding` of the
    largest is zero: a buckled round rod turns about its axis for nothing."""
    units = own_units(K, elastic)
    K, D, M = (X * units * units[:, None] for X in (K, D, M))
    if is_symmetric(K):
        curvature = np.linalg.eigvalsh(0.5 * (K + K.T))
        return np.sqrt(-curvature[curvature < -rounding * np.abs(curvature).max(initial=0.0)]).astype(complex)
    try:
        L = scipy.linalg.cholesky(0.5 * (M + M.T), lower=True)
    except np.linalg.LinAlgError:
        raise ModelError(
            "continuation: stability under loads that turn with the body needs a positive definite mass matrix: give "
            f"every coordinate a mass to move (got a least eigenvalue of {np.linalg.eigvalsh(M)[0]:.3g})"
        ) from None
    c = _SHIFT / float(np.sqrt(np.linalg.norm(M, 2)))
    return _damped(*_held(K, D, M, c), M, L, c) if D.any() else _undamped(K, M, L, c)


def is_flutter(growing: np.ndarray) -> bool:
    """Whether the slowest of the growing motions oscillates."""
    slowest = growing[np.argmin(np.real(growing))]
    return abs(slowest.imag) > abs(slowest.real)


def own_units(K: np.ndarray, elastic: np.ndarray) -> np.ndarray:
    """Units (..., n) in which sprung coordinates of K (..., n, n) have a stiffness of about 1; those without a spring
    share that of the loads, since what is left in their own rows may be rounding."""
    own, diagonal = (np.diagonal(X, axis1=-2, axis2=-1) for X in (elastic, K))
    size = np.maximum(own, np.abs(diagonal))
    if not (own > 0.0).all():
        loads = np.abs(K - elastic).max(axis=(-2, -1), initial=0.0)[..., None]
        size = np.where(own > 0.0, size, np.where(loads > 0.0, loads, 1.0))
    return 1.0 / np.sqrt(size)


def _undamped(K: np.ndarray, M: np.ndarray, L: np.ndarray, c: float) -> np.ndarray:
    """By (2)."""
    shifted, rounding = _from_inverse(L.T @ np.linalg.solve(K + c * c * M, L))
    mu = shifted - c * c
    parted = np.abs(mu.imag) > _PARTED * np.abs(mu) + 5.0 * rounding
    s = np.sqrt(-np.where(parted, mu, mu.real))  # of the two roots, the one with Re s ≥ 0
    return s[np.logical_or(parted, mu.real < -rounding)]


def _held(K: np.ndarray, D: np.ndarray, M: np.ndarray, c: float) -> tuple[np.ndarray, np.ndarray]:
    """By (4)."""
    _, size, V = np.linalg.svd(np.vstack([X / np.abs(X).max() for X in (K, D)]))
    x = V[size <= _NOTHING].T
    Mx = M @ x
    spring = Mx @ np.linalg.solve(x.T @ Mx, Mx.T)
    return K + c * c * spring, D + c * spring


def _damped(K: np.ndarray, D: np.ndarray, M: np.ndarray, L: np.ndarray, c: float) -> np.ndarray:
    """By (3)."""
    P = np.linalg.solve(K + c * D + c * c * M, np.hstack([D + c * M, c * M, K / c]))
    upper, middle, lower = (L.T @ scipy.linalg.solve_triangular(L, X.T, lower=True).T for X in np.hsplit(P, 3))
    shifted, rounding = _from_inverse(np.block([[-upper, -middle], [lower, -middle]]))
    s = shifted + c
    return s[np.real(s) > rounding]


def _from_inverse(inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a matrix from those of its inverse, but for any too large to tell, and the rounding of each."""
    nu = np.asarray(np.linalg.eigvals(inverse), dtype=np.complex128)
    noise = _ROUNDING * np.abs(nu).max()
    nu = nu[np.abs(nu) > noise]
    return 1.0 / nu, noise / np.abs(nu) ** 2


def is_symmetric(K: np.ndarray) -> np.ndarray:
    """Whether K (..., n, n) equals Kᵀ to rounding, entry by entry in units of the diagonal; shape (...)."""
    size = np.sqrt(np.abs(np.diagonal(K, axis1=-2, axis2=-1)))
    slack = 1e-12 * np.abs(K).max(axis=(-2, -1), initial=0.0)[..., None, None]
    across = np.abs(K - np.swapaxes(K, -1, -2))
    return (across <= 1e-9 * size[..., :, None] * size[..., None, :] + slack).all(axis=(-2, -1))
