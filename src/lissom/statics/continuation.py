"""Branches of static equilibria by pseudo-arclength continuation in a factor λ of gravity, loads and inputs, or in the
time λ of loads and prescribed motions.

    r(q, λ) = ID(q, 0, 0) − B(q) u = 0 under λ,   τᵀ x = s   for a step s along the unit tangent τ       (1)

The step is halved where Newton's method fails, the tangent turns by more than 25° or the curve is lost between the ends
of the step, and doubled where it is easy.
Source: H. B. Keller, Numerical solution of bifurcation and nonlinear eigenvalue problems, 1977; Seydel 2010.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.dynamics.assembly import closed_start, moved_to
from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.constraints import warn_of_redundancy
from lissom.dynamics.forward_dynamics import input_rows
from lissom.errors import ConvergenceError, ShapeError, renamed
from lissom.launch.over_models import over_models
from lissom.launch.progress import PATIENCE, progress_bar
from lissom.launch.workspace import flat, leading, stack
from lissom.model.model import Model
from lissom.robot import checks
from lissom.statics.branch_events import KINDS, BranchEvent, Lost, crossing, events_between
from lissom.statics.branch_runs import INTERRUPTED, Branch, Following, branch_so_far, driven
from lissom.statics.nearly_singular import balance, solved
from lissom.statics.static_path import WOUND_UP, PathPoint, StaticPath
from lissom.statics.sticking import warn_of_dropped_friction
from lissom.statics.verdict import floats_at

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_TURN = 0.9  # least cosine between the tangents of neighbours
_EASY = 4
_SMALLEST = 1e-6
_START_STEPS = 50
_AT_REST = 1e-6
_AT_A_CROSSING = 1e-8  # singular values that vanish at a bifurcation, located to 1e-10
_REACHED = 1e-13
_ORDER = "u and q0 are given by name, u= and q0=, since their order has become that of solve_statics"
_ALONG = "must be {} finite numbers"
_TOO_SHARP = "it turns by more than 25° within the shortest step"


@renamed(order=_ORDER)
@over_models("q0", "u", "along", apart=True)
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
    progress: bool = False,
) -> Branch:
    """Follow a branch of static equilibria through limit points and bifurcations.

        ID(q, 0, 0) = B(q) u   with gravity, point loads and u times a factor, or all that depends on it at a time

    It ends where the factor leaves its range, with a last point on the bound, or after max_points. A branch that leaves
    at a bifurcation is followed from an event of the first: q0, factor and along are its q, factor and direction.
    Contacts that stick keep the anchors of the model all along it.

    Args:
        u: inputs at factor 1, shape (nu,); None is zero.
        q0: start, shape (nq,), corrected at its factor; None is the neutral configuration.
        parameter: "factor" of gravity, loads and inputs, or "time": loads and prescribed motions go, without inertia,
            through what they are at each time, gravity and u stay, and every factor here is the time [s].
        factor: load factor at the start; None is 0, or the end of the range next to 0.
        factor_range: least and greatest factor, which bound the branch; their distance is the unit of the factor.
        along: direction (δq, δfactor) of the first step, shape (nv + 1,); q0 then is taken as it is, and as stable as
            the next point.
        direction: 1 starts with a rising factor, or along `along`; -1 the other way.
        step: longest step, in units of a rod's end rotation [rad] and stretch [-], and of the range.
        max_points: on the branch, the start included.
        t: time of loads and prescribed motions [s], with a factor; joints with a motion are at rest whatever its speed.
        events: which are located: True all, False none, or their kinds; stability is told in any case.
        progress: show how far it is, where it takes longer than a second.
    Returns:
        Branch.
    Raises:
        ConvergenceError: no equilibrium at the start, or none further on, and why; carries the Branch so far.
        ShapeError: the argument, the expected and the received shape. ModelError: a range, a step, a count, a parameter
        or kinds of events that are none, or coordinates without mass under loads that are not conservative.
        KeyboardInterrupt: Ctrl-C; its `partial` is the Branch so far, if there is any of it.
    Accuracy: points to 1e-11 of the unit of each coordinate, events to 1e-10. A step that crosses two bifurcations
    which undo each other's change in stability sees neither. Where K is symmetric, stability is the sign of
    its eigenvalues; else that of M s² + D s + K, for motions up to 1e7 times as fast as the slowest.
    Source: Keller 1977; Seydel 2010.
    """
    u, q = input_rows(model, u), model.neutral() if q0 is None else checked_configuration(model, "q0", q0)
    if u.ndim != 1 or q.ndim != 1 or not np.isfinite(u).all():
        raise ShapeError(f"q0, u: expected finite ({model.nq},) and ({model.nu},), got shapes {q.shape} and {u.shape}")
    line = None if along is None else checks.array(along, (model.nv + 1,), "along", _ALONG.format(model.nv + 1))[None]
    return _followed(
        model, q[None], u[None], line, parameter, factor, factor_range, direction, step, max_points, t, events, progress
    )[0]


@renamed(order=_ORDER)
@over_models("q0", "u", "along", apart=True)
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
    progress: bool = False,
) -> tuple[Branch, ...]:
    """Follow many branches of static equilibria at once: the next points of all of them come from the same launches.

    Each is the same to the last bit as `continuation` finds it alone. Events are located on one branch after the other,
    and so are all points where Python functions act or, with a factor, where tendons are elastic.

    Args:
        u: inputs at factor 1, shape (n, nu), or the same for all. q0: starts, shape (n, nq), or one for all.
        along: direction of the first step of each, shape (n, nv + 1), or one for all.
        parameter, factor, factor_range, direction, step, max_points, t [s], events, progress: as continuation, for all
            of them.
    Returns:
        a Branch for each.
    Raises:
        ConvergenceError: which branch has no equilibrium at its start, or none further on, and why; carries all
            branches, as far as they were found. ShapeError, ModelError: as continuation. KeyboardInterrupt: Ctrl-C;
            carries all branches as well.
    Accuracy: as continuation. Cost: a third of as many calls of it, on one core, where there are many.
    Source: Keller 1977; Seydel 2010.
    """
    u, q = input_rows(model, u), model.neutral() if q0 is None else checked_configuration(model, "q0", q0)
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
    progress: bool,
) -> tuple[Branch, ...]:
    """The branches from q (n, nq) under u (n, nu), along directions (n, nv + 1) if these are given."""
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
    q = closed_start(model, moved_to(model, q, begin if in_time else t))
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

        def tell() -> None:
            last = next((f", {parameter} {own[-1].factor:.4g}" for own in points if own and len(q) == 1), "")
            count = sum(map(len, points))
            advance(count, f"{count} equilibria{last}")

        found = driven([run(k, own) for k, own in enumerate(points)], tell)
    warn_of_dropped_friction(model, np.array([branch.q[-1] for branch in found]))
    return found


def _kinds(events: Any) -> frozenset[str]:
    """The kinds of events that are asked for."""
    if isinstance(events, bool):
        return frozenset(KINDS if events else ())
    given = (events,) if isinstance(events, str) else events
    known = isinstance(given, Iterable) and set(kinds := tuple(given)) <= set(KINDS)
    checks.require(known, "events", f"must be True, False or some of {KINDS}", events)
    return frozenset(kinds)


def _start(path: StaticPath, q: np.ndarray, factor: float, direction: int) -> PathPoint:
    """The equilibrium next to q at a fixed factor."""
    border = np.append(np.zeros(path.model.nv + len(path.kept)), float(direction))
    found = path.correct(q, np.zeros(path.model.n_rows), factor, border, _START_STEPS)
    there = found if isinstance(found, str) else path.point(*found[:2], factor, border)
    if isinstance(there, str):
        t, load = (factor, 1.0) if path.t is None else (path.t, factor)
        loose = floats_at(path.model, q, path.u, t, np.zeros(path.model.n_rows), load)
        cure = f"{loose}; hold it" if loose else "; give a q0 nearer to one, or start from the factor 0"
        raise ConvergenceError(
            f"continuation: found no equilibrium next to q0 at the {path.parameter} {factor:.6g}: {there}{cure}",
            branch_so_far([], [], there),
        )
    return there


def _start_along(path: StaticPath, q: np.ndarray, factor: float, along: np.ndarray) -> PathPoint:
    """q itself, which must be an equilibrium, and a given direction: at a bifurcation it is one of two tangents."""
    checks.require(bool(along.any()), "along", "must not be zero", along)
    nv, force = path.model.nv, np.zeros(path.model.n_rows)
    found, why = path.residual(q, force, factor), WOUND_UP
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
    """Points from a first one on; the first step away from a given direction is no place to look for events."""
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
    """The same, until it ends by itself."""
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
            if not regular:  # at a critical start the sign of what vanishes is rounding: it counts as a step further on
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
    """The next point, the events on the way, whether it was easy and whether it is on a bound; or what went wrong."""
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
    """Where the branch from a to b reaches a bound of the factor."""
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
