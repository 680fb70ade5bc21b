"""Newton's step where the tangent stiffness is singular to rounding, as where a round rod may turn about its own axis.

In units D in which what springs and rods hold is 1,

    D K D = U diag(s) Vᵀ,   x = −D V diag(1/s, 0 where neutral) Uᵀ D r                                    (1)

is the shortest step. A direction is neutral if s < 1e-9 s₁; or if s < 1e-6 s₁ and r along it is rounding. It is left
out of one step if s < 1e-3 s₁ and less than a thousandth of r is along it: near a neutral direction of equilibria what
is left of r there says nothing before the rest is gone.
"""

from __future__ import annotations

import numpy as np

from lissom.model.model import Model

SUSPECT = 1.0  # stiffness along a step, over that of the coordinates themselves, below which one looks closer
_SLACK = 1e-3
_SOFT = 1e-6
_NEUTRAL = 1e-9
_CONSISTENT = 1e-6  # part of r that may lie along what is neutral
_ROUNDING = 1e-13  # of the force for a unit move


def shortest_step(
    model: Model, own: np.ndarray, matrix: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """diag(1/s) Uᵀ D and D V of (1), which map what is on the right, one behind the other, to what solves the system of
    the matrix (n, n), a stiffness with the rows of loops behind it, its coordinates being held by their `own` stiffness
    (nv,); rows and columns of what is left out are zero. None where forces drive what nothing holds."""
    S = model.dofs.scale
    size = float(np.abs(S * right[: model.nv]).max(initial=0.0)) or 1.0
    D = 1.0 / np.sqrt(np.where(own > 0.0, own, size / S**2))
    rows = np.linalg.norm(matrix[model.nv :, : model.nv] * D, axis=1)
    D = np.concatenate([D, 1.0 / np.where(rows > 0.0, rows, 1.0)])
    U, s, V = np.linalg.svd(matrix * D * D[:, None])
    met, rounding = np.abs(U.T @ (D * right)), _ROUNDING * float((S / D[: model.nv]).max(initial=0.0))
    top = max(s[0], 1.0)
    neutral = (s <= _NEUTRAL * top) | ((s <= _SOFT * top) & (met <= rounding))
    if met[neutral].max(initial=0.0) > _CONSISTENT * met.max(initial=0.0) + rounding:
        return None
    left_out = neutral | ((s <= _SLACK * top) & (met <= _SLACK * met.max(initial=0.0)))
    inverse = np.where(left_out, 0.0, 1.0 / np.where(left_out, 1.0, s))
    return (inverse * U).T * D, D[:, None] * np.where(left_out, 0.0, V.T)
