"""Branches of static equilibria by pseudo-arclength continuation. The parameter λ is a factor of gravity, loads and
inputs, or the time of loads and prescribed motions.

    r(q, λ) = ID(q, 0, 0) − B(q) u = 0 under λ,   τᵀ x = s   for a step s along the unit tangent τ       (1)

The step is halved in three cases: Newton's method fails, the tangent turns by more than 25°, or the curve is lost
between the ends of the step. It is doubled if few iterations were needed. Many branches are followed at the same time.
An interrupted search returns the points found so far.

Between points a and b of a branch the curve is q(s), λ(s), with s measured along the tangent at a. A limit point is a
zero of λ'(s), found by inverse interpolation. Other events are changes in the number of unstable modes, which are
enclosed in a bracket. Beyond an event at s*, a mode is unstable and grows at a rate g. g is proportional to the square
root of s − s* (K symmetric, or no damping) or to s − s* (with damping). So the curve

    s(g^p) = s* + c₁ g^p + c₂ g^2p,   p = 2 or 1                                                           (2)

through three points with an unstable mode extrapolates to the event s*. The bracket is narrowed from both sides; every
fourth time it is halved. Intermediate points are predicted by the cubic through their neighbours. This prediction is
needed near a bifurcation, where the equations hardly determine the amplitude of the buckling motion.

At a bifurcation J has two right null vectors, the tangent φ₁ and φ₂, and one left null vector ψ. The crossing branch
has the direction

    ψᵀJ'[φ₂]φ₂ φ₁ − 2 ψᵀJ'[φ₁]φ₂ φ₂,   which is φ₂ at a symmetric bifurcation                            (3)

Motions without stiffness along the whole branch, such as rotations of a symmetric robot, are null vectors too; they are
excluded.

Source: H. B. Keller, Numerical solution of bifurcation and nonlinear eigenvalue problems, 1977; R. Seydel, Practical
Bifurcation and Stability Analysis, 2010; T. R. Chandrupatla, A new hybrid quadratic/bisection algorithm, 1997.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, final

import numpy as np

from lissom.dynamics.actuation import input_rows, single_inputs
from lissom.dynamics.assembly import closed_start, prescribed_configuration
from lissom.dynamics.configuration import checked_configuration, single_configuration
from lissom.dynamics.constraints import joined_too_often, warn_of_redundancy
from lissom.dynamics.start import default_start
from lissom.errors import ConvergenceError, ShapeError, renamed
from lissom.launch.over_models import over_models
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.launch.workspace import flat, leading, stack
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.statics.equilibrium import warn_of_dropped_friction
from lissom.statics.stability import floats_at, is_flutter
from lissom.statics.static_path import (
    Ahead,
    PathPoint,
    StaticPath,
    ahead_on_each,
    balance,
    null_vectors,
    nullity,
    refusal,
    solved,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

KINDS = ("limit", "bifurcation", "flutter")
_FINE = 1e-11  # accuracy of s of an event, in units of a rotation by 1 rad
_RELATIVE = 8e-16
_SAME = 1e-7  # changes of stability closer than this to each other, or to a limit point, are one event
_BESIDE = (0.5 * _SAME, 1e-4)
_DIFFERENCE = 1e-4
_SECANT = 1e-3
_SYMMETRY = 1e-9  # largest relative singular value of motions without stiffness, away from a bifurcation
_LARGEST = 0.99  # the first entry of at least this fraction of the largest entry counts as the largest


@final
@formatting.in_one_line
@dataclass(frozen=True)
class BranchEvent:
    """An event on a branch: a limit point, a bifurcation, or a change between flutter and no flutter.

    Fields:
        kind: "limit" (the load reaches an extremum), "bifurcation" (another branch crosses) or "flutter" (an
            oscillating mode becomes unstable or stable).
        index: index of the last point of the branch before the event.
        q: configuration, shape (nq,) [rad, m, or strain units].
        factor: load factor (1 is the full load), or the time [s].
        direction: (δq, δfactor), shape (nv + 1,): for a bifurcation the direction of the crossing branch, otherwise of
            this branch. The sign makes the largest entry positive, in these units: end rotation [rad] and stretch [-]
            of a rod, range of the factor. The first entry of at least 0.99 of the largest counts as the largest.
        count: number of modes that become unstable or stable.
    """

    kind: str
    index: int
    q: np.ndarray
    factor: float
    direction: np.ndarray
    count: int


@final
class Lost(Exception):
    """The curve between two points was lost; a shorter step is needed."""


@final
@dataclass
class _Arc:
    """The curve from point a. `seen` holds the points found on it, by s."""

    path: StaticPath
    a: PathPoint
    seen: dict[float, PathPoint] = field(default_factory=dict)

    def at(self, s: float) -> PathPoint:
        """The point at s, corrected from a prediction by its neighbours."""
        if s not in self.seen:
            found = self.path.ahead(self.a, s, self._predicted(s))
            if isinstance(found, str):
                raise Lost(found)
            self.seen[s] = found[0]
        return self.seen[s]

    def _predicted(self, s: float) -> np.ndarray:
        """The prediction at s as an increment from a: the cubic through the two neighbours and their tangents."""
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
    """The events of the given kinds at s in (0, length) of the curve from a to b, in order.

    Raises:
        Lost: an intermediate point was not found.
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
    """One s on each side of a limit point, such that the numbers of unstable modes there differ by one. Rounding
    shifts this change, so wider distances are tried one after another."""
    sides = [[max(s - gap, 0.0), min(s + gap, length)] for gap in _BESIDE]
    return next((x for x in sides if abs(len(arc.at(x[0]).growing) - len(arc.at(x[1]).growing)) == 1), sides[0])


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """A zero of a function with a sign change between `low` and `high`."""
    search = crossing(low, high, function(low), function(high), _FINE)
    s = next(search)
    while True:
        try:
            s = search.send(function(s))
        except StopIteration as end:
            return end.value


def crossing(low: float, high: float, at_low: float, at_high: float, fine: float) -> Generator[float, float, float]:
    """Generator that finds a sign change of a function. It yields arguments, receives the function's values, and
    returns the best argument.

    It uses inverse quadratic interpolation if the result certainly lies between the ends, otherwise bisection
    (Chandrupatla 1997).
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
    """Narrow brackets (low, high) of changes in the number of unstable modes. Changes of kinds not in `kinds` are
    omitted."""
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
    """The next s to evaluate in the search for a change: close to s* of (2). None if there are fewer than three
    points."""
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
    """The unit direction of the crossing branch by (3). If several branches cross, it is one of the null vectors."""
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
    """An increment scaled to length 1."""
    return x / path.length(x)


def _first(path: StaticPath, moves: np.ndarray) -> np.ndarray:
    """The unit increment in the span of `moves` (n, ...) with the largest entry. Its sign makes this entry positive."""
    U, size, _ = np.linalg.svd(np.array([path.border(x) for x in moves]), full_matrices=False)
    moves = (U / size).T @ moves
    entries = np.array([path.border(x) for x in moves])  # orthonormal
    largest = (entries**2).sum(axis=0)
    chosen = int(np.argmax(largest >= _LARGEST**2 * largest.max()))
    return _unit(path, entries[:, chosen] @ moves)


def _jacobian(path: StaticPath, at: PathPoint, x: np.ndarray) -> np.ndarray:
    """J after an increment x from a point."""
    q, force, factor = path.moved(at, x)
    found = path.residual(q, force, factor)
    if found is None:
        raise Lost(f"{refusal(path.model, q)}, at the {path.parameter} {factor:.6g}")
    return path.jacobian(q, force, factor, found[1])


INTERRUPTED = "interrupted"

Found = TypeVar("Found")
# A generator that follows a path: it yields (path, point, length) and receives the point ahead.
Following = Generator[tuple[StaticPath, PathPoint, float], Ahead, Found]


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Branch:
    """Equilibria in order along a branch, and the events between them.

    Fields:
        q: configurations (n, nq) [rad, m, or strain units].
        factor: load factors, or times [s] (n,).
        stable: True if there is no unstable mode (n,).
        unstable_count: number of unstable modes (n,).
        events: BranchEvents in order along the branch.
        ended: why the branch ends: "factor_range", "max_points", "interrupted", or the reason in the message of the
            ConvergenceError that carries this branch.
    """

    q: np.ndarray
    factor: np.ndarray
    stable: np.ndarray
    unstable_count: np.ndarray
    events: tuple[BranchEvent, ...]
    ended: str


def branch_so_far(points: list[PathPoint], events: list[BranchEvent], ended: str) -> Branch:
    """The Branch with the given points and events. `ended` says why there are no further points."""
    count = np.array([len(p.growing) for p in points], dtype=int)
    q, factor = np.array([p.q for p in points]), np.array([p.factor for p in points])
    return Branch(q, factor, count == 0, count, tuple(events), ended)


def driven(runs: list[Following[Branch]], report: Callable[[], None]) -> tuple[Branch, ...]:
    """The branches of all `runs`. One launch computes the next points of all branches. `report` is called after each
    launch."""
    found: list[Any] = [None] * len(runs)
    try:
        failed = _drive(runs, found, report)
    except KeyboardInterrupt as stop:
        for k, run in enumerate(runs):
            found[k] = found[k] or _stopped(run)
        if any(len(branch.factor) for branch in found):
            stop.partial = found[0] if len(runs) == 1 else tuple(found)  # type: ignore[attr-defined]
        raise
    for k in sorted(failed):
        if len(runs) == 1:
            raise failed[k]
        raise ConvergenceError(f"{failed[k]} (instance {k} of {len(runs)})", tuple(found)) from failed[k]
    return tuple(found)


def _stopped(run: Following[Branch]) -> Branch:
    """The branch of an interrupted run, up to its last point."""
    try:
        run.throw(KeyboardInterrupt())
    except StopIteration as end:
        return end.value
    except KeyboardInterrupt:  # the generator had not started
        return branch_so_far([], [], INTERRUPTED)
    raise AssertionError  # an interrupted run yields no further point


def _drive(runs: list[Following[Branch]], found: list[Any], report: Callable[[], None]) -> dict[int, ConvergenceError]:
    """Follow branches to their ends and store them in `found`. Returns the errors of the failed branches, by index."""
    failed: dict[int, ConvergenceError] = {}
    results: dict[int, Any] = dict.fromkeys(range(len(runs)))
    while results:
        requests = {}
        for k, result in results.items():
            try:
                requests[k] = runs[k].send(result)
            except StopIteration as end:
                found[k] = end.value
                if found[k].ended == INTERRUPTED:
                    raise KeyboardInterrupt from None
            except ConvergenceError as error:
                found[k], failed[k] = error.partial, error
        report()
        paths, points, lengths = zip(*requests.values()) if requests else ((), (), ())
        results = dict(zip(requests, ahead_on_each(paths, points, lengths))) if requests else {}
    return failed


_TURN = 0.9  # smallest cosine between the tangents of consecutive points
_EASY = 4
_SMALLEST = 1e-6
_START_STEPS = 50
_AT_REST = 1e-6
_AT_A_CROSSING = 1e-8  # largest singular value that counts as zero at a bifurcation, which is located to 1e-10
_REACHED = 1e-13
_ORDER = "give u and q0 by name, u= and q0=: their order has changed to that of solve_statics"
_ALONG = "must be {} finite numbers"
_TOO_SHARP = "it turns by more than 25° within the shortest step"


@renamed(order=_ORDER)
@over_models("q0", "u", "along", as_tuple=True)
def continuation(
    model: Model,
    *,
    u: ArrayLike | None = None,
    q0: ArrayLike | None = None,
    parameter: str = "factor",
    factor: float | None = None,
    factor_range: tuple[float, float] = (0.0, 1.0),
    along: ArrayLike | None = None,
    direction: int = 1,
    step: float = 0.1,
    max_points: int = 500,
    t: float = 0.0,
    events: bool | Iterable[str] = True,
    progress: bool | Callable[[float], Any] = False,
) -> Branch:
    """Follow a branch of static equilibria through limit points and bifurcations.

        ID(q, 0, 0) = B(q) u   with gravity, point loads and u times a factor, or with loads and motions at a time

    The branch ends where the factor leaves its range (the last point lies on the bound), or after `max_points` points.
    To follow the branch that crosses at a bifurcation, pass the event's q, factor and direction as q0, factor and
    along. Contacts that stick keep the anchors of the model along the whole branch.

    Args:
        u: inputs at factor 1, shape (nu,) [N, m, Pa or N·m, by actuator]; None is zero.
        q0: start, shape (nq,) [rad, m, or strain units], which is corrected at constant factor; None is the neutral
            configuration.
        parameter: "factor": gravity, loads and inputs are multiplied by a factor. "time": loads and prescribed motions
            have their values at each time, without inertia; gravity and u are constant, and all factors below are times
            [s].
        factor: factor at the start; None is 0, or the end of the range nearest to 0.
        factor_range: smallest and largest factor of the branch. The difference is the unit in which changes of the
            factor are measured.
        along: direction (δq, δfactor) of the first step, shape (nv + 1,). With it q0 is not corrected, and its
            stability is set to the one of the next point.
        direction: 1: the factor increases in the first step (or the step is along `along`); -1: the opposite direction.
        step: longest step, in these units: end rotation [rad] and stretch [-] of a rod, range of the factor.
        max_points: largest number of points, including the start.
        t: time of loads and prescribed motions [s], if the parameter is "factor". The velocity of the motions is zero.
        events: events to locate: True for all, False for none, or their kinds. Stability is always computed.
        progress: True shows the progress of a search that takes longer than one second. A function is called with the
            number of points instead.
    Returns:
        Branch.
    Raises:
        ConvergenceError: there is no equilibrium at the start, or no next point; the error carries the Branch so far.
        ShapeError: an argument has a wrong shape.
        ModelError: invalid range, step, count, parameter or kind of event; or coordinates without mass under loads that
            are not conservative.
        KeyboardInterrupt: Ctrl-C; its attribute `partial` is the Branch so far, if it has a point.
    Accuracy: points to 1e-11 of the unit of each coordinate, events to 1e-10. Two bifurcations within one step are
    missed if their changes of stability cancel. If K is symmetric, stability follows from the signs of its eigenvalues;
    otherwise from M s² + D s + K, for modes up to 1e7 times as fast as the slowest.
    Source: Keller 1977; Seydel 2010.
    """
    model.require_positions("continuation")
    u, q = single_inputs(model, u), default_start(model) if q0 is None else single_configuration(model, q0, "q0")
    line = None if along is None else checks.array(along, (model.nv + 1,), "along", _ALONG.format(model.nv + 1))[None]
    return _followed(
        model, q[None], u[None], line, parameter, factor, factor_range, direction, step, max_points, t, events, progress
    )[0]


@renamed(order=_ORDER)
@over_models("q0", "u", "along", as_tuple=True)
def branches(
    model: Model,
    *,
    u: ArrayLike | None = None,
    q0: ArrayLike | None = None,
    parameter: str = "factor",
    factor: float | None = None,
    factor_range: tuple[float, float] = (0.0, 1.0),
    along: ArrayLike | None = None,
    direction: int = 1,
    step: float = 0.1,
    max_points: int = 500,
    t: float = 0.0,
    events: bool | Iterable[str] = True,
    progress: bool | Callable[[float], Any] = False,
) -> tuple[Branch, ...]:
    """Follow many branches of static equilibria. One launch of a kernel computes the next points of all branches.

    Each branch is equal, to the last bit, to the branch of `continuation`. Events are located on one branch after
    another. Points are also computed one branch after another if Python functions act, or if tendons are elastic and
    the parameter is "factor".

    Args:
        u: inputs at factor 1, shape (n, nu), or (nu,) [N, m, Pa or N·m, by actuator] for all branches.
        q0: starts, shape (n, nq), or (nq,) [rad, m, or strain units] for all branches.
        along: directions of the first steps, shape (n, nv + 1), or (nv + 1,) for all branches.
        parameter, factor, factor_range, direction, step, max_points, t [s], events, progress: as in continuation, for
        all branches.
    Returns:
        tuple of Branches.
    Raises:
        ConvergenceError: a branch has no equilibrium at its start, or no next point; the error carries all branches so
            far.
        ShapeError, ModelError: as in continuation.
        KeyboardInterrupt: Ctrl-C; its attribute `partial` holds all branches so far.
    Accuracy: as continuation. Cost: for many branches on one core, a third of the time of separate calls.
    Source: Keller 1977; Seydel 2010.
    """
    model.require_positions("branches")
    u, q = input_rows(model, u), default_start(model) if q0 is None else checked_configuration(model, "q0", q0)
    lines = np.zeros(0) if along is None else stack("along", along, model.nv + 1)
    if not (np.isfinite(u).all() and np.isfinite(lines).all()):
        raise ShapeError("u, along: must be finite, got NaN or infinity")
    given = {"q0": q, "u": u} if along is None else {"q0": q, "u": u, "along": lines}
    lead = leading(**given)
    if len(lead) != 1:
        raise ShapeError(f"q0, u, along: expected one leading axis, that of the branches, got {lead}")
    q, u, *rest = (flat(x, lead) for x in given.values())
    line = rest[0] if rest else None
    return _followed(
        model, q, u, line, parameter, factor, factor_range, direction, step, max_points, t, events, progress
    )


def _followed(
    model: Model,
    q: np.ndarray,
    u: np.ndarray,
    along: np.ndarray | None,
    parameter: str,
    factor: float | None,
    factor_range: tuple[float, float],
    direction: int,
    step: float,
    max_points: int,
    t: float,
    events: bool | Iterable[str],
    progress: bool | Callable[[float], Any],
) -> tuple[Branch, ...]:
    """The branches from q (n, nq) under u (n, nu), along directions (n, nv + 1) or None. The other arguments are as in
    continuation."""
    low, high = checks.array(factor_range, (2,), "factor_range", "must be two finite numbers").tolist()
    checks.require(low < high, "factor_range", "must rise", factor_range)
    begin = checks.number(min(max(0.0, low), high) if factor is None else factor, "factor")
    checks.require(low <= begin <= high, "factor", "must lie in factor_range", factor)
    checks.require(direction in (-1, 1), "direction", "must be 1 or -1", direction)
    checks.number(step, "step", above=0.0)
    checks.integer(max_points, "max_points", least=1)
    checks.require(parameter in ("factor", "time"), "parameter", "must be 'factor' or 'time'", parameter)
    in_time = parameter == "time"
    checks.require(not (in_time and t), "t", "must be left out where the parameter is the time: it starts at factor", t)
    kinds = _kinds(events)
    q = closed_start(model, prescribed_configuration(model, q, begin if in_time else t))
    if len(q):
        warn_of_redundancy(model, q[0])

    def run(k: int, points: list[PathPoint]) -> Following[Branch]:
        path = StaticPath.near(model, q[k], u[k], None if in_time else t, begin, high - low)
        if along is None:
            here = _start(path, q[k], begin, direction)
        else:
            line = direction * along[k]
            line[model.prescribed.dof] = 0.0
            here = _start_along(path, q[k], begin, line)
        points.append(here)
        return (yield from _follow(path, points, (low, high), step, max_points, along is None, kinds))

    points: list[list[PathPoint]] = [[] for _ in q]
    label = f"following {len(q)} branches" if len(q) > 1 else "following a branch"
    with progress_bar(progress, None, label, patience=PATIENCE) as advance:

        def report() -> None:
            last = next((f", {parameter} {own[-1].factor:.4g}" for own in points if own and len(q) == 1), "")
            count = sum(map(len, points))
            advance(count, f"{count} equilibria{last}")

        found = driven([run(k, own) for k, own in enumerate(points)], report)
    warn_of_dropped_friction(model, np.array([branch.q[-1] for branch in found]))
    return found


def _kinds(events: Any) -> frozenset[str]:
    """The kinds of events to locate."""
    if isinstance(events, bool):
        return frozenset(KINDS if events else ())
    given = (events,) if isinstance(events, str) else events
    known = isinstance(given, Iterable) and set(kinds := tuple(given)) <= set(KINDS)
    checks.require(known, "events", f"must be True, False or some of {KINDS}", events)
    return frozenset(kinds)


def _start(path: StaticPath, q: np.ndarray, factor: float, direction: int) -> PathPoint:
    """The equilibrium nearest to q at constant factor."""
    border = np.append(np.zeros(path.model.nv + len(path.kept)), float(direction))
    found = path.correct(q, np.zeros(path.model.n_rows), factor, border, _START_STEPS)
    there = found if isinstance(found, str) else path.point(*found[:2], factor, border)
    if isinstance(there, str):
        t, load = (factor, 1.0) if path.t is None else (path.t, factor)
        loose = floats_at(path.model, q, path.u, t, np.zeros(path.model.n_rows), load)
        cure = f"{loose}; hold it" if loose else joined_too_often(path.model, q)
        cure = cure or "; give a q0 nearer to an equilibrium, or start from the factor 0"
        raise ConvergenceError(
            f"continuation: found no equilibrium next to q0 at the {path.parameter} {factor:.6g}: {there}{cure}",
            branch_so_far([], [], there),
        )
    return there


def _start_along(path: StaticPath, q: np.ndarray, factor: float, along: np.ndarray) -> PathPoint:
    """The point q itself, which must be an equilibrium, with `along` as its tangent. (A bifurcation has two
    tangents.)"""
    checks.require(bool(along.any()), "along", "must not be zero", along)
    nv, force = path.model.nv, np.zeros(path.model.n_rows)
    found, why = path.residual(q, force, factor), refusal(path.model, q)
    if found is not None and len(path.kept):  # the forces that come nearest to equilibrium
        J = path.jacobian(q, force, factor, found[1])
        rows = balance(J, path.own)[0]
        force[path.kept] = path.sigma * np.linalg.lstsq(rows[:, None] * J[:, nv:-1], -rows * found[0], rcond=None)[0]
        found = path.residual(q, force, factor)
    if found is not None:
        J = path.jacobian(q, force, factor, found[1])
        x = np.insert(along, nv, np.zeros(len(path.kept))) / path.units
        rows = balance(J, path.own)[0]
        x[nv:-1] = np.linalg.lstsq(rows[:, None] * J[:, nv:-1], -rows * (J @ x), rcond=None)[0]
        x /= path.length(x)
        there = path.point(q, force, factor, x)
        miss, why = solved(J, -found[0], _AT_A_CROSSING, path.own), "forces are left"
        if isinstance(there, str):
            why = there
        elif miss is not None and np.abs(path.border(miss)).max() < _AT_REST:
            return replace(there, tangent=x)
    message = f"continuation: q0 is no equilibrium at the {path.parameter} {factor:.6g}: {why}"
    raise ConvergenceError(message, branch_so_far([], [], why))


def _follow(
    path: StaticPath,
    points: list[PathPoint],
    bounds: tuple[float, float],
    step: float,
    limit: int,
    regular: bool,
    kinds: frozenset[str],
) -> Following[Branch]:
    """The branch that begins at the first point. `regular` is False if the start is an event (a direction is given):
    then no events are located on the first step."""
    events: list[BranchEvent] = []
    try:
        return (yield from _points_on(path, points, events, bounds, step, limit, regular, kinds))
    except KeyboardInterrupt:
        return branch_so_far(points, events, INTERRUPTED)


def _points_on(
    path: StaticPath,
    points: list[PathPoint],
    events: list[BranchEvent],
    bounds: tuple[float, float],
    step: float,
    limit: int,
    regular: bool,
    kinds: frozenset[str],
) -> Following[Branch]:
    """Append points and events to the lists until the branch ends. Returns the Branch."""
    here, length = points[0], step
    while len(points) < limit:
        found = yield from _next(path, here, bounds, length, len(points) - 1, regular, kinds)
        if isinstance(found, str):
            length *= 0.5
            if length < _SMALLEST * step:
                raise ConvergenceError(
                    f"continuation: no next point at the {path.parameter} {here.factor:.6g}: {found}; the branch may "
                    "end or cross another there: start from another q0", branch_so_far(points, events, found)
                )  # fmt: skip
            continue
        there, between, easy, ends = found
        events += between
        if there is not here:
            if not regular:  # the vanishing eigenvalue of a critical start is rounding: take the next point's
                points[:] = [replace(here, growing=there.growing)]
            points.append(there)
        if ends:
            return branch_so_far(points, events, "factor_range")
        here, regular = there, True
        length = min(step, 2.0 * length) if easy else length
    return branch_so_far(points, events, "max_points")


def _next(
    path: StaticPath,
    here: PathPoint,
    bounds: tuple[float, float],
    length: float,
    index: int,
    regular: bool,
    kinds: frozenset[str],
) -> Following[tuple[PathPoint, list[BranchEvent], bool, bool] | str]:
    """The next point, the events before it, whether the step may be doubled, and whether the point is on a bound; or
    the reason of a failure."""
    found = yield path, here, length
    if isinstance(found, str):
        return found
    there, iterations = found
    if regular and float(there.tangent @ path.border(here.tangent)) < _TURN:
        return _TOO_SHARP
    low, high = bounds
    ends = not low + _REACHED * path.width < there.factor < high - _REACHED * path.width
    try:
        if ends:
            length, there = yield from _at_bound(
                path, here, length, there, high if 2.0 * there.factor > low + high else low
            )
            if length == 0.0:
                return here, [], True, True
        between = events_between(path, here, there, length, index, kinds) if regular and kinds else []
    except Lost as lost:
        return f"the curve is lost on the way ({lost})"
    return there, between, iterations <= _EASY, ends


def _at_bound(
    path: StaticPath, a: PathPoint, length: float, b: PathPoint, bound: float
) -> Following[tuple[float, PathPoint]]:
    """The point between a and b whose factor is on a bound of the range, and its s."""
    seen = {length: b, 0.0: a}
    s = next((s for s, point in seen.items() if abs(point.factor - bound) <= _REACHED * path.width), -1.0)
    if s < 0.0:
        search = crossing(0.0, length, a.factor - bound, b.factor - bound, _REACHED)
        s = next(search)
        while s not in seen:
            found = yield path, a, s
            if isinstance(found, str):
                raise Lost(found)
            seen[s] = found[0]
            try:
                s = search.send(found[0].factor - bound)
            except StopIteration as end:
                s = end.value
    return s, replace(seen[s], factor=bound)
