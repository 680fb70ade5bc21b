"""Newton's step where the tangent stiffness is singular to rounding, as where a round rod may turn about its own axis.

In units D in which what springs and rods hold is 1,

    D K D = U diag(s) Vᵀ,   x = −D V diag(1/s, 0 where neutral) Uᵀ D r                                    (1)

is the shortest step. A direction is neutral if s < 1e-9 s₁; or if s < 1e-6 s₁ and r along it is rounding. It is left
out of one step if s < 1e-3 s₁ and less than a thousandth of r is along it: near a neutral direction of equilibria what
is left of r there says nothing before the rest is gone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lissom.model.model import Model

_SUSPECT = 1.0  # stiffness along a step, over that of the coordinates themselves, below which one looks closer
_SLACK = 1e-3
_SOFT = 1e-6
_NEUTRAL = 1e-9
_CONSISTENT = 1e-6  # part of r that may lie along what is neutral
_ROUNDING = 1e-13  # of the force for a unit move


def is_led_astray(model: Model, K: np.ndarray, r: np.ndarray, step: np.ndarray) -> bool:
    """Whether a step may go where K holds nothing but rounding: |r| is next to nothing beside |K| |step|, each in own
    units."""
    own = _own_stiffness(model, K)
    held = own > 0.0
    root = np.sqrt(own[held])
    force, moved = (np.max(np.abs(x), initial=0.0) for x in (r[held] / root, step[held] * root))
    return bool(force <= _SUSPECT * moved)


def shortest_step(
    model: Model, K: np.ndarray, matrix: np.ndarray, right: np.ndarray
) -> Callable[[np.ndarray], np.ndarray] | None:
    """What solves matrix x = right by (1), K (nv, nv) with the rows of loops behind it; None where forces drive what
    nothing holds."""
    own, S = _own_stiffness(model, K), model.dofs.scale
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
    taken = ~neutral & ~((s <= _SLACK * top) & (met <= _SLACK * met.max(initial=0.0)))
    U, s, V = U[:, taken], s[taken], V[taken]
    return lambda b: D * (V.T @ ((U.T @ (D * b)) / s))


def _own_stiffness(model: Model, K: np.ndarray) -> np.ndarray:
    """How stiff each coordinate is held by springs and rods; others share the largest stiffness that is no spring's."""
    own, diagonal, S = np.diag(model.elasticity.stiffness), np.diag(K).copy(), model.dofs.scale
    diagonal[model.prescribed.dof] = own[model.prescribed.dof]
    loads = (np.abs(diagonal - own) * S**2).max(initial=0.0)
    return np.where(own > 0.0, np.maximum(own, np.abs(diagonal)), loads / S**2)
