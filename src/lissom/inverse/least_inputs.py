"""Inputs of least size within limits.

    min ½ zᵀz   with   G z = b,   low ≤ z ≤ high                                                          (1)
    z = clip(Gᵀ λ, low, high)             necessary for (1), with the multipliers λ of G z = b             (2)
    z = G⁺ b + N y,   min |y|   with   H y ≥ h    by non-negative least squares, G N = 0                   (3)

An active-set method finds the active limits by (2): violated limits become active, and without any, the limit that
violates (2) most is released. If that does not end, (3) is solved. If G z = b has no solution within the limits, the
bounded least squares are solved.
Source: J. Nocedal, S. J. Wright, Numerical Optimization, 2006, §16.5; for (3) C. L. Lawson, R. J. Hanson, Solving Least
Squares Problems, 1974, §23.4.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import lsq_linear, nnls

_ROUNDING, _ROUGH = 1e-10, 1e-7
_SMALL = 1e-6  # weight of z beside G z − b where (1) has no solution


def least_within(G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """z (n, k) of (1) for each G (n, m, k), or the z within the limits with G z nearest to b."""
    size = np.abs(G).max(axis=(1, 2), initial=0.0)
    size = np.where(size > 0.0, size, 1.0)
    G, b = G / size[:, None, None], b / size[:, None]
    near = _ROUNDING * (1.0 + np.abs(b).max(axis=1, initial=0.0))
    z, found = _active_set(G, b, low, high, np.zeros(low.shape, dtype=int))
    for i in np.flatnonzero(~found | (_off(G, b, z) > near)):
        z[i] = _nearest(G[i], b[i], low[i], high[i], near[i])
    return z


def _off(G: np.ndarray, b: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Largest entries of G z − b, (n,)."""
    return np.abs(np.einsum("nij,nj->ni", G, z) - b).max(axis=1, initial=0.0)


def _nearest(G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray, near: float) -> np.ndarray:
    """z (k,) of one row by (3), refined with its active limits, or the z within the limits with G z nearest to b."""
    z = _least_distance(G, b, low, high)
    if z is None or float(_off(G[None], b[None], z[None])[0]) > _ROUGH:
        room = np.where(high > low, high, np.nextafter(high, np.inf))  # SciPy requires low < high
        tall = np.vstack([G, _SMALL * np.eye(len(low))])
        found = lsq_linear(tall, np.concatenate([b, np.zeros(len(low))]), (low, room), method="bvls")
        return np.clip(found.x, low, high)
    at = np.where(z >= high - _ROUGH, 1, 0) - np.where(z <= low + _ROUGH, 1, 0)
    sharp, good = _active_set(G[None], b[None], low[None], high[None], at[None])
    return sharp[0] if good[0] and float(_off(G[None], b[None], sharp)[0]) <= near else z


def _least_distance(G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray | None:
    """z (k,) of (3), or None if there is none."""
    first, N = np.linalg.pinv(G, rcond=1e-12) @ b, null_space(G, rcond=1e-12)
    below, above = np.isfinite(low), np.isfinite(high)
    if not (below.any() or above.any()):  # SciPy aborts if H is empty
        return first
    H = np.vstack([N[below], -N[above]])
    h = np.concatenate([(low - first)[below], (first - high)[above]])
    aim = np.append(np.zeros(N.shape[1]), 1.0)
    matrix = np.vstack([H.T, h])
    try:
        left = matrix @ nnls(matrix, aim)[0] - aim
    except RuntimeError:  # too many iterations
        return None
    if abs(left[-1]) < _ROUNDING:
        return None
    return np.clip(first - N @ (left[:-1] / left[-1]), low, high)


def _active_set(
    G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """z (n, k) that satisfies (2), by an active-set method, and the mask of those that were found. `at` (n, k) are the
    active limits at the start: −1 low, 0 none, 1 high."""
    at, z, done = at.copy(), np.zeros(low.shape), np.zeros(len(low), dtype=bool)
    tiny = _ROUNDING * (1.0 + np.abs(np.where(np.isfinite(low), low, 0.0)).max(axis=1, initial=0.0))
    for _ in range(3 * at.shape[1] + 3):
        rows = np.flatnonzero(~done)
        if not len(rows):
            break
        z[rows], at[rows], done[rows] = _exchange(G[rows], b[rows], low[rows], high[rows], at[rows], tiny[rows, None])
    return np.clip(z, low, high), done


def _exchange(
    G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray, at: np.ndarray, tiny: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """z for given active limits, the next active limits, and whether they are the same."""
    free = at == 0
    fixed = np.where(at < 0, low, np.where(at > 0, high, 0.0))
    inverse = np.linalg.pinv(G * free[:, None, :], rcond=1e-12)
    own = np.einsum("nji,ni->nj", inverse, b - np.einsum("nij,nj->ni", G, fixed))
    z = np.where(free, own, fixed)
    passed = np.where(free & (z > high + tiny), 1, 0) - np.where(free & (z < low - tiny), 1, 0)
    y = np.einsum("nij,ni->nj", G, np.einsum("nji,nj->ni", inverse, np.where(free, z, 0.0)))
    against = np.where(at < 0, y - low, np.where(at > 0, high - y, 0.0))
    worst = np.argmax(against, axis=1)
    wrong = against[np.arange(len(at)), worst] > tiny[:, 0]
    passes = passed.any(axis=1)
    after = at + passed
    released = np.flatnonzero(~passes & wrong)
    after[released, worst[released]] = 0
    return z, after, ~passes & ~wrong
