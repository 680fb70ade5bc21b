"""Quadrature rules in up to three dimensions, and rules with few points that preserve the moments of a rule with
many."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import comb
from typing import NamedTuple

import numpy as np

_MOMENTS = 1e-11  # largest error of the moments of a compressed rule, relative to the volume


def gauss(count: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre points and weights on an interval, exact for polynomials of degree 2 count − 1."""
    x, w = np.polynomial.legendre.leggauss(count)
    return 0.5 * (low + high) + 0.5 * (high - low) * x, 0.5 * (high - low) * w


class Line(NamedTuple):
    """A rule on [0, 1]: points, and weights whose sum is 1."""

    at: np.ndarray
    weights: np.ndarray


def line(count: int, breaks: Sequence[float] = ()) -> Line:
    """A rule of `count` Gauss-Legendre points on each piece between breaks in (0, 1)."""
    ends = [0.0, *breaks, 1.0]
    at, weights = zip(*(gauss(count, low, high) for low, high in pairwise(ends)))
    return Line(np.concatenate(at), np.concatenate(weights))


def line_of_degree(degree: int) -> Line:
    """The smallest Gauss-Legendre rule that is exact for polynomials of the given degree."""
    return line(degree // 2 + 1)


def radii(count: int) -> Line:
    """A rule for the squares of radii, on [0, 1]. It is exact for polynomials of the radius up to degree 2 count − 1,
    with the weight of the area element, r dr."""
    from scipy.special import roots_jacobi

    x, w, *_ = roots_jacobi(count, 0, 1)
    return Line((0.5 * (np.asarray(x) + 1.0)) ** 2, 0.5 * np.asarray(w))


def equidistant(count: int) -> Line:
    """A rule for periodic functions, exact for harmonics below `count`."""
    return Line((np.arange(count) + 0.5) / count, np.full(count, 1.0 / count))


def circle(count: int, breaks: Sequence[float] = ()) -> Line:
    """A rule for periodic functions: `count` equidistant points; with breaks (in turns), `count` Gauss-Legendre points
    on each arc between them."""
    if not breaks:
        return equidistant(count)
    start = min(breaks)
    arcs = line(count, [part - start for part in sorted(breaks)[1:]])
    return Line((arcs.at + start) % 1.0, arcs.weights)


def tetrahedron(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Barycentric points (m, 4) and positive weights with sum 1 on a tetrahedron, exact for polynomials of the given
    degree.

    | degree | rule |
    |---|---|
    | up to 1 | one point |
    | 2 | four points |
    | 3 to 5 | 14 points (Walkington 2000) |
    | above 5 | product of Gauss-Jacobi rules on the collapsed cube |
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
    """The rule of degree 5 with two orbits of four points and one orbit of six."""
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
    """Products of Legendre polynomials with total degree up to `degree` on the box from `low` to `high`, at the points:
    shape (N, m)."""
    size = np.where(high > low, high - low, 1.0)
    unit = 2.0 * (points - low) / size - 1.0
    x, y, z = (np.polynomial.legendre.legvander(unit[:, k], degree) for k in range(3))
    powers = [(i, j, k - i - j) for k in range(degree + 1) for i in range(k + 1) for j in range(k + 1 - i)]
    return np.stack([x[:, i] * y[:, j] * z[:, k] for i, j, k in powers], axis=-1)


def compressed(points: np.ndarray, weights: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """A positive rule on a subset of the points, with the same moments up to a degree: the indices of its points, at
    most as many as there are monomials, and their weights.

    Such a rule exists (Tchakaloff). Non-negative least squares finds it (Lawson and Hanson 1974, chapter 23).
    """
    if len(points) <= comb(degree + 3, 3):
        return np.arange(len(points)), weights
    A = polynomials(points, degree, points.min(axis=0), points.max(axis=0))
    A = np.linalg.qr(A * np.sqrt(weights)[:, None])[0] / np.sqrt(weights)[:, None]  # orthonormal for the rule
    kept, w, error = selected(A, weights)
    if not error < _MOMENTS:
        raise ArithmeticError(f"no positive rule of degree {degree}: its moments are off by {error:.1e}")
    return kept, w


def selected(A: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """At most m points of a rule, and positive weights that give m functions the same integrals.

    Args:
        A: values of the functions at the points (N, m), orthonormal for the rule. weights: of the rule (N,).
    Returns:
        Indices of the points, their weights, and the largest error of an integral, relative to the root of the volume.
    Raises:
        ArithmeticError: the search for the weights does not end.
    """
    from scipy.optimize import nnls

    try:
        w, _ = nnls(A.T, A.T @ weights, maxiter=30 * A.shape[1])
    except RuntimeError as error:
        raise ArithmeticError(f"no positive rule for {A.shape[1]} functions: {error}") from error
    kept = np.flatnonzero(w)
    return kept, w[kept], float(np.abs(A.T @ (w - weights)).max() / np.sqrt(weights.sum()))
