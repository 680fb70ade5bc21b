"""The least of a quadratic function within limits, by Newton's method on the variables that no limit holds.

    minimise ½ δᵀH δ + gᵀδ,   low ≤ δ ≤ high,   H positive definite                                       (1)
    held: at a limit that the slope pushes against;   H_ff s = −(H δ + g)_f on the others                  (2)

and a search along the projection of δ + α s onto the limits.
Source: D. P. Bertsekas, SIAM J. Control Optim. 20, 1982.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

_ITERATIONS = 50
_SHARE = 0.1  # of the slope along s, that a step must gain at least
_SMALL = 1e-9  # of the largest slope at the start, that may be left


def box_least(H: np.ndarray, g: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """δ of (1), shape (n,), from 0, which must be within the limits."""
    x, slope, value = np.zeros_like(g), g, 0.0
    small = _SMALL * np.abs(g).max(initial=0.0)
    for _ in range(_ITERATIONS):
        free = np.flatnonzero(~(((x <= low) & (slope > 0.0)) | ((x >= high) & (slope < 0.0))))
        if np.abs(slope[free]).max(initial=0.0) <= small:
            break
        s = np.zeros_like(x)
        s[free] = -cho_solve(cho_factor(H[np.ix_(free, free)], check_finite=False), slope[free], check_finite=False)
        part, start = 1.0, x
        while True:  # the value falls by any short step
            x = np.clip(start + part * s, low, high)
            Hx = H @ x
            new = 0.5 * x @ Hx + g @ x
            if new <= value + _SHARE * slope @ (x - start) or part < 1e-8:
                break
            part *= 0.5
        slope, done = Hx + g, value - new <= 1e-14 * abs(new)
        value = new
        if done:
            break
    return x
