"""Quadrature rules in few dimensions, and rules with few points for the moments of many."""

from __future__ import annotations

from math import comb

import numpy as np

_MOMENTS = 1e-11  # how far, relative to the volume, the moments of a small rule may be off


def gauss(count: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre points and weights on an interval, exact to degree 2 count − 1."""
    x, w = np.polynomial.legendre.leggauss(count)
    return 0.5 * (low + high) + 0.5 * (high - low) * x, 0.5 * (high - low) * w


def gauss_of_degree(degree: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """The Gauss-Legendre rule that is exact to a degree with fewest points."""
    return gauss(degree // 2 + 1, low, high)


def ring(degree: int, inner: float, outer: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (m, 2) and weights on a disk or an annulus, exact for all polynomials up to a degree.

    Polynomials of even degree k integrate along r as polynomials of degree k/2 in t = r², those of odd degree vanish
    round the circle, where degree + 1 equidistant points are exact.
    """
    t, w = gauss_of_degree(degree // 2, inner**2, outer**2)
    angle = 2.0 * np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    points = np.sqrt(t)[:, None, None] * circle
    weights = np.repeat(np.pi * w / (degree + 1), degree + 1)  # dA = r dr dφ = dt dφ / 2
    return points.reshape(-1, 2), weights


def tetrahedron(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Barycentric points (m, 4) and positive weights of sum one on a tetrahedron, exact to a degree.

    Rules of one and four points to degree 2, of 14 to degree 5 (Walkington 2000), and beyond it the product of
    Gauss-Jacobi rules on the collapsed cube.
    """
    if degree <= 1:
        return np.full((1, 4), 0.25), np.ones(1)
    if degree == 2:
        near, far = (5.0 + 3.0 * 5.0**0.5) / 20.0, (5.0 - 5.0**0.5) / 20.0
        return far + (near - far) * np.eye(4), np.full(4, 0.25)
    if degree <= 5:
        return _fourteen()
    from scipy.special import roots_jacobi

    rules = [roots_jacobi(degree // 2 + 1, power, 0) for power in (2, 1, 0)]  # weights (1 − u)², 1 − v, 1
    (u, a), (v, b), (w, c) = [(0.5 * (np.asarray(x) + 1.0), np.asarray(y)) for x, y, *_ in rules]
    U, V, W = (part.ravel() for part in np.meshgrid(u, v, w, indexing="ij"))
    first, second, third = U, (1.0 - U) * V, (1.0 - U) * (1.0 - V) * W
    weights = np.einsum("i,j,k->ijk", a, b, c).ravel()
    return np.stack([1.0 - first - second - third, first, second, third], axis=-1), weights / weights.sum()


def _fourteen() -> tuple[np.ndarray, np.ndarray]:
    """The rule of degree 5: two orbits of four points and one of six."""
    points, weights = [], []
    for a, weight in (
        (0.31088591926330060980, 0.11268792571801585080),
        (0.092735250310891226402, 0.073493043116361949544),
    ):
        points.append(a + (1.0 - 4.0 * a) * np.eye(4))
        weights += [weight] * 4
    a = 0.045503704125649649492
    pairs = [(i, j) for i in range(4) for j in range(i)]
    points.append(np.array([[0.5 - a if k in pair else a for k in range(4)] for pair in pairs]))
    weights = np.array([*weights, *[0.042546020777081466438] * 6])
    return np.concatenate(points), weights / weights.sum()


def polynomials(points: np.ndarray, degree: int, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Products of Legendre polynomials of total degree up to `degree` on the box from low to high, shape (N, m)."""
    size = np.where(high > low, high - low, 1.0)
    unit = 2.0 * (points - low) / size - 1.0
    x, y, z = (np.polynomial.legendre.legvander(unit[:, k], degree) for k in range(3))
    powers = [(i, j, k - i - j) for k in range(degree + 1) for i in range(k + 1) for j in range(k + 1 - i)]
    return np.stack([x[:, i] * y[:, j] * z[:, k] for i, j, k in powers], axis=-1)


def compressed(points: np.ndarray, weights: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """A positive rule on few of the points, at most as many as there are monomials, with all moments up to a degree.

    Such a rule exists (Tchakaloff); non-negative least squares finds it, after Lawson and Hanson 1974, chapter 23.
    """
    if len(points) <= comb(degree + 3, 3):
        return points, weights
    A = polynomials(points, degree, points.min(axis=0), points.max(axis=0))
    A = np.linalg.qr(A * np.sqrt(weights)[:, None])[0] / np.sqrt(weights)[:, None]  # orthonormal for the rule
    kept, w = _nonnegative(A.T, A.T @ weights)
    found = np.abs(A[kept].T @ w - A.T @ weights).max() / np.sqrt(weights.sum())
    if not found < _MOMENTS:
        raise ArithmeticError(f"no positive rule of degree {degree}: its moments are off by {found:.1e}")
    return points[kept], w


def _nonnegative(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of A and their weights w > 0 with A w = b."""
    active: list[int] = []
    w = np.zeros(0)
    scale = np.linalg.norm(b)
    for _ in range(10 * len(b)):
        residual = b - A[:, active] @ w
        if np.linalg.norm(residual) <= 1e-14 * scale:
            break
        gain = A.T @ residual
        gain[active] = -np.inf
        active.append(int(np.argmax(gain)))
        w = np.append(w, 0.0)
        while True:
            best = np.linalg.lstsq(A[:, active], b, rcond=None)[0]
            if (best > 0.0).all():
                w = best
                break
            bad = np.flatnonzero(best <= 0.0)
            ratio = w[bad] / np.maximum(w[bad] - best[bad], 1e-300)
            w = w + ratio.min() * (best - w)
            w[bad[np.argmin(ratio)]] = 0.0
            stay = np.flatnonzero(w > 0.0)
            active, w = [active[k] for k in stay], w[stay]
    return np.array(active), w
