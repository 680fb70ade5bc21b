"""What happens between two points of a branch: limit points, bifurcations and flutter, and the branch that leaves.

Between points a and b the curve is q(s), λ(s) with s along the tangent of a. A limit point is a zero of λ'(s), found by
inverse interpolation; elsewhere a change in the number of growing motions is bracketed. The motion that begins to grow
does so at a rate g(s) that leaves 0 with the root of s (K symmetric, or nothing damped) or in proportion to s (damped),
so

    s(g^p) = s* + c₁ g^p + c₂ g^2p,   p = 2 or 1                                                           (1)

through points where it grows says where it begins; the bracket is closed from both sides of that, and halved now and
then. Points in between are predicted by the cubic through their neighbours: next to a bifurcation the equations hardly
hold what buckles, and the prediction does.
At a bifurcation J has two null vectors φ₁, the tangent, and φ₂, and a left one ψ; the other branch leaves along

    ψᵀJ'[φ₂]φ₂ φ₁ − 2 ψᵀJ'[φ₁]φ₂ φ₂,   which is φ₂ at a symmetric bifurcation                            (2)

Motions that cost nothing anywhere on the branch, as those of symmetry, are null vectors too, and are left out.
Source: R. Seydel, Practical Bifurcation and Stability Analysis, 2010; H. B. Keller, 1977;
T. R. Chandrupatla, A new hybrid quadratic/bisection algorithm, 1997.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import final

import numpy as np

from lissom.robot import telling
from lissom.statics.nearly_singular import null_vectors, nullity
from lissom.statics.stability import is_flutter
from lissom.statics.static_path import PathPoint, StaticPath

KINDS = ("limit", "bifurcation", "flutter")
_FINE = 1e-11  # of s, in units of a turn of 1 rad
_RELATIVE = 8e-16
_SAME = 1e-7  # changes nearer to each other, or to a limit point, are one event
_BESIDE = (0.5 * _SAME, 1e-4)
_DIFFERENCE = 1e-4
_SECANT = 1e-3
_SYMMETRY = 1e-9  # singular values of what costs nothing, a secant away from a bifurcation
_LARGEST = 0.99  # entries that count as the largest, of which the first is taken


@final
@telling.in_one_line
@dataclass(frozen=True)
class BranchEvent:
    """Where the load turns back, another branch crosses, or the equilibrium begins or ends to flutter.

    Fields:
        kind: "limit", "bifurcation" or "flutter".
        index: of the last point of the branch before it.
        q: configuration, shape (nq,).
        factor: load factor there, a ratio to the full load; or the time [s].
        direction: (δq, δfactor) shape (nv + 1,): of the branch that crosses at a bifurcation, else of this one. Of its
            two senses the one in which its largest entry grows, in units of a rod's end rotation [rad] and stretch [-]
            and of the range of the factor; of several as large as 0.99 of that, the first.
        count: how many motions change there between decaying or oscillating and growing.
    """

    kind: str
    index: int
    q: np.ndarray
    factor: float
    direction: np.ndarray
    count: int


@final
class Lost(Exception):
    """The curve between two points was lost: a shorter step is needed."""


@final
@dataclass
class _Arc:
    """The curve from a, and the points found on it by their s."""

    path: StaticPath
    a: PathPoint
    seen: dict[float, PathPoint] = field(default_factory=dict)

    def at(self, s: float) -> PathPoint:
        """The point at s, predicted by its neighbours."""
        if s not in self.seen:
            found = self.path.ahead(self.a, s, self._predicted(s))
            if isinstance(found, str):
                raise Lost(found)
            self.seen[s] = found[0]
        return self.seen[s]

    def _predicted(self, s: float) -> np.ndarray:
        """The cubic through the neighbours of s and their tangents, as a move from a."""
        before = max((x for x in self.seen if x < s), default=None)
        after = min((x for x in self.seen if x > s), default=None)
        if before is None or after is None:
            return s * self.a.tangent
        h, border = after - before, self.path.border(self.a.tangent)
        ends = [self.path.between(self.a, self.seen[x]) for x in (before, after)]
        slopes = [self.seen[x].tangent / (border @ self.seen[x].tangent) for x in (before, after)]
        x = (s - before) / h
        cubic = x * x * (3.0 - 2.0 * x)
        out = (1.0 - cubic) * ends[0] + cubic * ends[1]
        return out + h * (x * (1.0 - x) ** 2 * slopes[0] - x * x * (1.0 - x) * slopes[1])


def events_between(
    path: StaticPath, a: PathPoint, b: PathPoint, length: float, index: int, kinds: frozenset[str]
) -> list[BranchEvent]:
    """The events of some kinds at s in (0, length) of the curve from a to b, in order.

    Raises:
        Lost: a point in between was not found.
    """
    arc, turns = _Arc(path, a, {0.0: a, length: b}), a.tangent[-1] * b.tangent[-1] < 0.0
    found: list[tuple[float, str, PathPoint, int]] = []
    ends = [0.0, length]
    if turns and kinds & {"limit", "bifurcation"}:
        s = root(lambda s: arc.at(s).tangent[-1], 0.0, length)
        found.append((s, "limit", arc.at(s), 1))
        ends[1:1] = _beside(arc, s, length)
    for start, stop in [(0.0, length)] if len(ends) == 2 else [(0.0, ends[1]), (ends[2], length)]:
        for low, high in _changes(arc, start, stop, kinds):
            s, before, after = 0.5 * (low + high), arc.at(low), arc.at(high)
            near = [item for item in found if abs(s - item[0]) <= _SAME]
            if any(kind == "limit" for _, kind, *_ in near):
                continue
            found = [item for item in found if abs(s - item[0]) > _SAME]
            change = len(after.growing) - len(before.growing) + sum(count for *_, count in near)
            kind = "flutter" if is_flutter(max(before.growing, after.growing, key=len)) else "bifurcation"
            found.append((s, kind, after, change))
    events = []
    for s, kind, there, count in sorted((item for item in found if item[3]), key=lambda item: item[0]):
        if kind in kinds:
            x = _crossing_branch(arc, s, there, abs(count)) if kind == "bifurcation" else there.tangent
            events.append(BranchEvent(kind, index, there.q, there.factor, path.opened(x, there.factor), abs(count)))
    return events


def _beside(arc: _Arc, s: float, length: float) -> list[float]:
    """Both sides of a limit point, where the number of growing motions differs by one: rounding may shift that."""
    sides = [[max(s - gap, 0.0), min(s + gap, length)] for gap in _BESIDE]
    return next((x for x in sides if abs(len(arc.at(x[0]).growing) - len(arc.at(x[1]).growing)) == 1), sides[0])


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """A zero of a function that changes sign."""
    search = crossing(low, high, function(low), function(high), _FINE)
    s = next(search)
    while True:
        try:
            s = search.send(function(s))
        except StopIteration as end:
            return end.value


def crossing(low: float, high: float, at_low: float, at_high: float, fine: float) -> Generator[float, float, float]:
    """Where a function changes sign: asks for its values at places, and returns the best of these or of the ends.

    By inverse quadratic interpolation where that is sure to lie between the ends, else by halves (Chandrupatla 1997).
    """
    a, b, c, f_a, f_b, f_c, part = high, low, low, at_high, at_low, at_low, 0.5
    while True:
        x = a + part * (b - a)
        f_x = yield x
        if (f_x > 0.0) == (f_a > 0.0):
            c, f_c = a, f_a
        else:
            c, f_c, b, f_b = b, f_b, a, f_a
        a, f_a = x, f_x
        best = a if abs(f_a) < abs(f_b) else b
        least = (fine + _RELATIVE * abs(best)) / abs(b - a)
        if f_a == 0.0 or least > 0.5:
            return best
        part, place, height = 0.5, (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
        if height**2 < place and (1.0 - height) ** 2 < 1.0 - place:
            part = f_a / (f_b - f_a) * f_c / (f_b - f_c) + (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (f_c - f_b)
        part = min(max(part, least), 1.0 - least)


def _changes(arc: _Arc, low: float, high: float, kinds: frozenset[str], turn: int = 0) -> list[tuple[float, float]]:
    """Narrow brackets of each change in the number of growing motions that may be of some kinds."""
    before, after = arc.at(low).growing, arc.at(high).growing
    oscillating = sum(is_flutter(s[None]) for s in after) - sum(is_flutter(s[None]) for s in before)
    change = len(after) - len(before)
    only = "flutter" if oscillating == change else "bifurcation" if oscillating == 0 else None
    if change == 0 or (only and only not in kinds):
        return []
    if high - low <= _FINE:
        return [(low, high)]
    s = _guess(arc, low, high, len(after) > len(before)) if turn % 4 < 3 else None
    s = 0.5 * (low + high) if s is None else s
    return _changes(arc, low, s, kinds, turn + 1) + _changes(arc, s, high, kinds, turn + 1)


def _guess(arc: _Arc, low: float, high: float, rises: bool) -> float | None:
    """Where to look next for the change by (1): next to where it seems to be; None where too little is known."""
    side = high if rises else low
    count = len(arc.at(side).growing)
    known = sorted(s for s in arc.seen if (s >= high if rises else s <= low))
    known = (known if rises else known[::-1])[:3]
    if len(known) < 3 or any(len(arc.at(s).growing) != count for s in known):
        return None
    rate = np.array([np.real(arc.at(s).growing).min() for s in known])
    guesses = []
    for g in (rate, rate**2):
        with np.errstate(divide="ignore", invalid="ignore"):
            near, far = ((known[i] * g[j] - known[j] * g[i]) / (g[j] - g[i]) for i, j in ((0, 1), (1, 2)))
            guesses.append((abs(near - far), (near * g[2] - far * g[0]) / (g[2] - g[0])))
    miss, s = min((x for x in guesses if np.isfinite(x).all()), default=(np.inf, np.nan))
    aside = max(0.1 * miss, 0.4 * _FINE) * (1.0 if rises else -1.0)
    return next((x for x in (s - aside, s + aside) if low < x < high), None)


def _crossing_branch(arc: _Arc, s: float, at: PathPoint, count: int) -> np.ndarray:
    """The unit direction of the branch that crosses, by (2); one of several null vectors where several meet."""
    path, ends = arc.path, [arc.at(s - _SECANT), arc.at(s + _SECANT)]
    here = path.between(*ends)
    zero = np.zeros(len(here))
    costs_nothing = min(nullity(_jacobian(path, end, zero), _SYMMETRY, path.own) for end in ends) - 1
    J = _jacobian(path, at, zero)
    null, units, psi = null_vectors(J, 1 + costs_nothing + count, path.own)
    known = [here / units]
    if costs_nothing:
        free, free_units, _ = null_vectors(_jacobian(path, ends[0], zero), 1 + costs_nothing, path.own)
        known += [x * free_units / units for x in free]
    spread = np.linalg.svd(null @ np.array([x / np.linalg.norm(x) for x in known]).T)[0]
    others = (spread[:, 1 + costs_nothing :].T @ null) * units
    tangent = _unit(path, here)
    others -= np.outer(others @ path.border(tangent), tangent)
    across = _first(path, others)
    if count > 1:
        return across
    step = _DIFFERENCE * across
    change = psi @ (_jacobian(path, at, step) - _jacobian(path, at, -step)) / (2.0 * _DIFFERENCE)
    direction = (change @ across) * tangent - 2.0 * (change @ tangent) * across
    small = path.length(direction) <= 1e-6 * np.linalg.norm(change)
    return across if small else _first(path, direction[None])


def _unit(path: StaticPath, x: np.ndarray) -> np.ndarray:
    """A move of length 1."""
    return x / path.length(x)


def _first(path: StaticPath, moves: np.ndarray) -> np.ndarray:
    """Of the unit moves that some (n, ...) span, the one with the largest entry, which is positive."""
    U, size, _ = np.linalg.svd(np.array([path.border(x) for x in moves]), full_matrices=False)
    moves = (U / size).T @ moves
    entries = np.array([path.border(x) for x in moves])  # orthonormal
    largest = (entries**2).sum(axis=0)
    chosen = int(np.argmax(largest >= _LARGEST**2 * largest.max()))
    return _unit(path, entries[:, chosen] @ moves)


def _jacobian(path: StaticPath, at: PathPoint, x: np.ndarray) -> np.ndarray:
    """J after a move x from a point."""
    q, force, factor = path.moved(at, x)
    found = path.residual(q, force, factor)
    if found is None:
        raise Lost(f"a rod interval turns by 2π at the {path.parameter} {factor:.6g}")
    return path.jacobian(q, force, factor, found[1])
