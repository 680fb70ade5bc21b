"""Inputs of least size within limits.

    min ½ zᵀz   with   G z = b,   low ≤ z ≤ high                                                          (1)
    z = clip(Gᵀ λ, low, high)             what holds of the z of (1), with the multipliers λ of G z = b    (2)

The limits that z touches are sought by (2): those that are passed are taken, and the one that (2) speaks against most
is let go. Where that finds nothing, SciPy's bounded least squares do, and the nearest z where G z = b cannot be.
Source: J. Nocedal, S. J. Wright, Numerical Optimization, 2006, §16.5.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

_ROUNDING = 1e-10
_SMALL = 1e-6  # weight of z beside G z − b where (1) has no solution


def least_within(G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """z (k,) of (1) for G (m, k); where there is none, one that brings G z near b."""
    size = float(np.abs(G).max(initial=0.0)) or 1.0
    G, b = G / size, b / size
    near = _ROUNDING * (1.0 + float(np.abs(b).max(initial=0.0)))
    z = _active_set(G, b, low, high, np.zeros(G.shape[1], dtype=int))
    if z is not None and np.abs(G @ z - b).max(initial=0.0) <= near:
        return z
    tall = np.vstack([G, _SMALL * np.eye(G.shape[1])])
    room = np.maximum(high, low + 1e-12 * (1.0 + np.abs(low)))  # SciPy wants some
    found = lsq_linear(tall, np.concatenate([b, np.zeros(G.shape[1])]), (low, room), method="bvls")
    rough = np.clip(found.x, low, high)
    z = _active_set(G, b, low, high, np.asarray(found.active_mask, dtype=int))
    if z is not None and np.abs(G @ z - b).max(initial=0.0) <= min(near, np.abs(G @ rough - b).max(initial=0.0)):
        return z
    return rough


def _active_set(G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray, at: np.ndarray) -> np.ndarray | None:
    """z that fulfils (2), with the limits it touches sought from −1, 0 and 1 for low, none and high; or None."""
    at, tiny = at.copy(), _ROUNDING * (1.0 + np.abs(np.where(np.isfinite(low), low, 0.0)).max(initial=0.0))
    for _ in range(3 * len(at) + 3):
        free = at == 0
        z = np.where(at < 0, low, np.where(at > 0, high, 0.0))
        inverse = np.linalg.pinv(G[:, free], rcond=1e-12)
        z[free] = inverse @ (b - G[:, ~free] @ z[~free])
        passed = np.where(free & (z < low - tiny), -1, 0) + np.where(free & (z > high + tiny), 1, 0)
        if passed.any():
            at = at + passed
            continue
        y = G.T @ (inverse.T @ z[free])
        against = np.where(at < 0, y - low, np.where(at > 0, high - y, 0.0))
        worst = int(np.argmax(against))
        if against[worst] <= tiny:
            return np.clip(z, low, high)
        at[worst] = 0
    return None
