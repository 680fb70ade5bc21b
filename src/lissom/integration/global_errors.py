"""How far a simulated motion is from the true one, by a second one that is finer.

With x_h and x_h/2 of a scheme of order p, or x of a tolerance and x' of a tenth of it, at the same times,

    x_h − x ≈ (x_h − x_h/2) / (1 − 2⁻ᵖ),   or   x − x'                                                    (1)

Tolerances bound the error of one step. What a motion makes of these is its own: damping forgets them, while a fast
flight without damping lets them grow with e^(λt) for its largest exponent λ, which no tolerance bounds.
"""

from __future__ import annotations

import warnings

import numpy as np

from lissom.dynamics.configuration import difference
from lissom.errors import AccuracyWarning
from lissom.model.model import Model

_MOST = 0.01  # error above which one is warned
_AT_REST = 1e-3  # of its natural size: what moves less is measured by this


def global_error(model: Model, q: np.ndarray, other: np.ndarray) -> float:
    """The largest distance of motions (..., n_times, nq), over the way of the coordinate that moves farthest."""
    if not q.size:
        return 0.0
    scale = model.dofs.scale
    apart = np.abs(difference(model, q, other) / scale).max(axis=(-2, -1))
    moved = np.abs(difference(model, q[..., :1, :], q) / scale).max(axis=(-2, -1))
    return float(np.max(apart / np.maximum(moved, _AT_REST)))


def warn_of_error(error: float) -> None:
    """Warn where an error is large."""
    if not error <= _MOST:
        text = (
            f"the motion is off by {100.0 * error:.2g} % of its way, by a finer one; take a smaller rtol and atol, or "
        )
        text += "a smaller dt; fast motions without damping may let every error grow"
        warnings.warn(text, AccuracyWarning, stacklevel=4)
