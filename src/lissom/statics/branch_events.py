"""What happens between two points of a branch: limit points, bifurcations and flutter, and the branch that leaves.

Between points a and b the curve is q(s), λ(s) with s along the tangent of a. A limit point is a zero of λ'(s), found by
Brent's method; elsewhere a change in the number of growing motions is bisected. At a bifurcation J has two null vectors
φ₁, the tangent, and φ₂, and a left one ψ; the other branch leaves along

    ψᵀJ'[φ₂]φ₂ φ₁ − 2 ψᵀJ'[φ₁]φ₂ φ₂,   which is φ₂ at a symmetric bifurcation                            (1)

Source: R. Seydel, Practical Bifurcation and Stability Analysis, 2010; H. B. Keller, 1977.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.optimize import brentq

from lissom.errors import ConvergenceError
from lissom.statics.stability import is_flutter
from lissom.statics.static_path import PathPoint, StaticPath

_FINE = 1e-11  # of s, in units of a turn of 1 rad
_SAME = 1e-7  # changes nearer to each other, or to a limit point, are one event
_DIFFERENCE = 1e-4
_SECANT = 1e-3


@final
@dataclass(frozen=True)
class BranchEvent:
    """Where the load turns back, another branch crosses, or the equilibrium begins or ends to flutter.

    Fields:
        kind: "limit", "bifurcation" or "flutter".
        index: of the last point of the branch before it.
        q: configuration, shape (nq,).
        factor: load factor there, a ratio to the full load.
        direction: (δq, δfactor) shape (nv + 1,): of the branch that crosses at a bifurcation, else of this one.
        count: how many motions change there between decaying or oscillating and growing.
    """

    kind: str
    index: int
    q: np.ndarray
    factor: float
    direction: np.ndarray
    count: int


def events_between(path: StaticPath, a: PathPoint, b: PathPoint, length: float, index: int) -> list[BranchEvent]:
    """The events at s in (0, length) of the curve from a to b, in order."""
    found: list[tuple[float, str, PathPoint, int]] = []
    if a.tangent[-1] * b.tangent[-1] < 0.0:
        s = float(brentq(lambda s: _on(path, a, s).tangent[-1], 0.0, length, xtol=_FINE))  # pyright: ignore[reportArgumentType]
        found.append((s, "limit", _on(path, a, s), 1))
    for before, after in _crossings(path, a, (0.0, a), (length, b)):
        s, change = 0.5 * (before[0] + after[0]), len(after[1].growing) - len(before[1].growing)
        near = [item for item in found if abs(s - item[0]) <= _SAME]
        if any(kind == "limit" for _, kind, *_ in near):
            continue
        found = [item for item in found if abs(s - item[0]) > _SAME]
        more = max(before[1].growing, after[1].growing, key=len)
        kind = "flutter" if is_flutter(more) else "bifurcation"
        found.append((s, kind, after[1], change + sum(count for *_, count in near)))
    events = []
    for s, kind, there, count in sorted((item for item in found if item[3]), key=lambda item: item[0]):
        direction = _crossing_branch(path, a, s, there, abs(count)) if kind == "bifurcation" else there.tangent
        outside = np.append(np.arange(path.model.nv), -1)
        change = (path.units * direction)[outside]
        events.append(BranchEvent(kind, index, there.q, there.factor, change, abs(count)))
    return events


def _on(path: StaticPath, a: PathPoint, s: float) -> PathPoint:
    """The point at s, which lies between points already found."""
    found = path.ahead(a, s)
    if found is None:
        raise ConvergenceError(f"continuation: lost the branch next to the factor {a.factor:.6g}; take a smaller step")
    return found[0]


def _crossings(path: StaticPath, a: PathPoint, low: Any, high: Any) -> list[tuple[Any, Any]]:
    """Narrow brackets ((s, point), (s, point)) of each change in the number of growing motions."""
    if len(low[1].growing) == len(high[1].growing):
        return []
    if high[0] - low[0] <= _FINE:
        return [(low, high)]
    s = 0.5 * (low[0] + high[0])
    middle = s, _on(path, a, s)
    return _crossings(path, a, low, middle) + _crossings(path, a, middle, high)


def _crossing_branch(path: StaticPath, a: PathPoint, s: float, at: PathPoint, count: int) -> np.ndarray:
    """The unit direction of the branch that crosses, by (1); one of several null vectors where several meet."""
    here = path.between(_on(path, a, s - _SECANT), _on(path, a, s + _SECANT))
    J = _jacobian(path, at, np.zeros(len(here)))
    U, _, V = np.linalg.svd(J)
    null = V[-2:] if count == 1 else V[-1 - count :]
    along = null @ here
    tangent = along @ null / np.linalg.norm(along)
    across = np.linalg.svd(null - np.outer(null @ tangent, tangent))[2][0]
    if count > 1:
        return across
    psi, step = U[:, -1], _DIFFERENCE * across
    change = psi @ (_jacobian(path, at, step) - _jacobian(path, at, -step)) / (2.0 * _DIFFERENCE)
    direction = (change @ across) * tangent - 2.0 * (change @ tangent) * across
    size = np.linalg.norm(direction)
    return direction / size if size > 1e-6 * np.linalg.norm(change) else across


def _jacobian(path: StaticPath, at: PathPoint, x: np.ndarray) -> np.ndarray:
    """J after a move x from a point."""
    q, force, factor = path.moved(at, x)
    found = path.residual(q, force, factor)
    if found is None:
        raise ConvergenceError(f"continuation: a rod interval turns by 2π at the factor {factor:.6g}")
    return path.jacobian(q, force, factor, found[1])
