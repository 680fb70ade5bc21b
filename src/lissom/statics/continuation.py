"""Branches of static equilibria by pseudo-arclength continuation in a factor λ of gravity, loads and inputs.

    r(q, λ) = λ-scaled ID(q, 0, 0) − B(q) u = 0,   τᵀ x = s   for a step s along the unit tangent τ       (1)

The step is halved where Newton's method fails or the tangent turns by more than 25°, and doubled where it is easy.
Source: H. B. Keller, Numerical solution of bifurcation and nonlinear eigenvalue problems, 1977; Seydel 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from scipy.optimize import brentq

from lissom.dynamics.assembly import closed_start, moved_to
from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.constraints import warn_of_redundancy
from lissom.dynamics.forward_dynamics import input_rows
from lissom.errors import ConvergenceError, ShapeError
from lissom.model.model import Model
from lissom.robot import checks
from lissom.statics.branch_events import BranchEvent, events_between
from lissom.statics.static_path import PathPoint, StaticPath

_TURN = 0.9  # least cosine between the tangents of neighbours
_EASY = 4
_SMALLEST = 1e-6
_START_STEPS = 50
_AT_REST = 1e-6
_REACHED = 1e-13


@final
@dataclass(frozen=True)
class Branch:
    """Equilibria in order along a branch, and what happens between them.

    Fields:
        q: configurations (n, nq). factor: load factors (n,).
        stable: whether no small motion grows (n,). unstable_count: number of motions that grow (n,).
        events: BranchEvents in order along the branch.
    """

    q: np.ndarray
    factor: np.ndarray
    stable: np.ndarray
    unstable_count: np.ndarray
    events: tuple[BranchEvent, ...]


def continuation(
    model: Model,
    q0: Any = None,
    u: Any = None,
    *,
    factor: float | None = None,
    factor_range: tuple[float, float] = (0.0, 1.0),
    along: Any = None,
    direction: int = 1,
    step: float = 0.1,
    max_points: int = 500,
    t: float = 0.0,
) -> Branch:
    """Follow a branch of static equilibria through limit points and bifurcations.

        ID(q, 0, 0) = B(q) u   with gravity, point loads and u times a factor

    It ends where the factor leaves its range, with a last point on the bound, or after max_points. A branch that leaves
    at a bifurcation is followed from an event of the first: q0, factor and along are its q, factor and direction.

    Args:
        q0: start, shape (nq,), corrected at its factor; None is the neutral configuration.
        u: inputs at factor 1, shape (nu,); None is zero.
        factor: load factor at the start; None is 0, or the end of the range next to 0.
        factor_range: least and greatest factor, which bound the branch; their distance is the unit of the factor.
        along: direction (δq, δfactor) of the first step, shape (nv + 1,); q0 then is taken as it is, and as stable as
            the next point.
        direction: 1 starts with a rising factor, or along `along`; -1 the other way.
        step: longest step, in units of a rod's end rotation [rad] and stretch [-], and of the range.
        max_points: on the branch, the start included. t: time of loads and prescribed motions [s].
    Returns:
        Branch.
    Raises:
        ConvergenceError: no equilibrium at the start, or none further on; carries the Branch so far.
        ShapeError: the argument, the expected and the received shape. ModelError: a range, a step or a count that is
        none, or coordinates without mass under loads that are not conservative.
    Accuracy: points to 1e-11 of the unit of each coordinate, events to 1e-10. A step that crosses two bifurcations
    which undo each other's change in stability sees neither. Where K is symmetric, stability is the sign of
    its eigenvalues; else that of M s² + D s + K, for motions up to 1e7 times as fast as the slowest.
    Source: Keller 1977; Seydel 2010.
    """
    low, high = checks.array(factor_range, (2,), "factor_range", "must be two finite numbers")
    checks.require(low < high, "factor_range", "must rise", factor_range)
    begin = checks.number(min(max(0.0, low), high) if factor is None else factor, "factor")
    checks.require(low <= begin <= high, "factor", "must lie in factor_range", factor)
    checks.require(direction in (-1, 1), "direction", "must be 1 or -1", direction)
    checks.number(step, "step", above=0.0)
    checks.integer(max_points, "max_points", least=1)
    u, q = input_rows(model, u), model.neutral() if q0 is None else checked_configuration(model, "q0", q0)
    if u.ndim != 1 or q.ndim != 1 or not np.isfinite(u).all():
        raise ShapeError(f"q0, u: expected finite ({model.nq},) and ({model.nu},), got shapes {q.shape} and {u.shape}")
    (q,) = closed_start(model, moved_to(model, q, t)[None])
    warn_of_redundancy(model, q)
    path = StaticPath.near(model, q, u, t, float(high - low))
    if along is None:
        here = _start(path, q, begin, direction)
    else:
        given = checks.array(along, (model.nv + 1,), "along", f"must be {model.nv + 1} finite numbers")
        given[model.motion_dof] = 0.0
        here = _start_along(path, q, begin, direction * given)
    return _follow(path, here, (float(low), float(high)), step, max_points, along is None)


def _start(path: StaticPath, q: np.ndarray, factor: float, direction: int) -> PathPoint:
    """The equilibrium next to q at a fixed factor."""
    border = np.append(np.zeros(path.model.nv + len(path.kept)), float(direction))
    found = path.correct(q, np.zeros(path.model.n_rows), factor, border, _START_STEPS)
    there = None if found is None else path.point(*found[:2], factor, border)
    if there is None:
        raise ConvergenceError(
            f"continuation: found no equilibrium next to q0 at the factor {factor:.6g}: give a q0 nearer to one, "
            "start from the factor 0, or hold what floats freely", _branch([], [])
        )  # fmt: skip
    return there


def _start_along(path: StaticPath, q: np.ndarray, factor: float, along: np.ndarray) -> PathPoint:
    """q itself, which must be an equilibrium, and a given direction: at a bifurcation it is one of two tangents."""
    checks.require(bool(along.any()), "along", "must not be zero", along)
    nv, force = path.model.nv, np.zeros(path.model.n_rows)
    found = path.residual(q, force, factor)
    if found is not None and len(path.kept):  # the forces that come nearest to equilibrium
        pulls = path.jacobian(q, force, factor, found[1])[:, nv:-1]
        force[path.kept] = path.sigma * np.linalg.lstsq(pulls, -found[0], rcond=None)[0]
        found = path.residual(q, force, factor)
    if found is not None:
        J = path.jacobian(q, force, factor, found[1])
        x = np.insert(along, nv, np.zeros(len(path.kept))) / path.units
        x[nv:-1] = np.linalg.lstsq(J[:, nv:-1], -J @ x, rcond=None)[0]
        x /= path.length(x)
        there = path.point(q, force, factor, x)
        miss = path.border(np.linalg.lstsq(J, -found[0], rcond=1e-8)[0])
        if there is not None and np.abs(miss).max() < _AT_REST:
            return replace(there, tangent=x)
    raise ConvergenceError(f"continuation: q0 is no equilibrium at the factor {factor:.6g}", _branch([], []))


def _follow(
    path: StaticPath, here: PathPoint, bounds: tuple[float, float], step: float, limit: int, regular: bool
) -> Branch:
    """Points from `here` on; the first step away from a given direction is no place to look for events."""
    points, events, length = [here], [], step
    while len(points) < limit:
        found = path.ahead(here, length)
        if found is None or (regular and float(found[0].tangent @ path.border(here.tangent)) < _TURN):
            length *= 0.5
            if length < _SMALLEST * step:
                raise ConvergenceError(
                    f"continuation: no next point at the factor {here.factor:.6g}: the branch may end or cross another "
                    "there; start from another q0", _branch(points, events)
                )  # fmt: skip
            continue
        there, iterations = found
        low, high = bounds
        outside = not low + _REACHED * path.width < there.factor < high - _REACHED * path.width
        try:
            if outside:
                length, there = _at_bound(path, here, length, there, high if 2.0 * there.factor > low + high else low)
                if length == 0.0:
                    break
            events += events_between(path, here, there, length, len(points) - 1) if regular else []
        except ConvergenceError as error:
            raise ConvergenceError(str(error), _branch(points, events)) from error
        if not regular:  # at a critical start the sign of what vanishes is rounding: it counts as a step further on
            points = [replace(here, growing=there.growing)]
        points.append(there)
        if outside:
            break
        here, regular = there, True
        length = min(step, 2.0 * length) if iterations <= _EASY else length
    return _branch(points, events)


def _at_bound(path: StaticPath, a: PathPoint, length: float, b: PathPoint, bound: float) -> tuple[float, PathPoint]:
    """Where the branch from a to b reaches a bound of the factor."""
    seen = {length: b, 0.0: a}

    def beyond(s: float) -> float:
        if s not in seen:
            found = path.ahead(a, s)
            if found is None:
                raise ConvergenceError(f"continuation: lost the branch next to the factor {bound:.6g}")
            seen[s] = found[0]
        return seen[s].factor - bound

    s = next((s for s in seen if abs(beyond(s)) <= _REACHED * path.width), -1.0)
    if s < 0.0:
        s = float(brentq(beyond, 0.0, length, xtol=_REACHED))  # pyright: ignore[reportArgumentType]
        beyond(s)
    return s, replace(seen[s], factor=bound)


def _branch(points: list[PathPoint], events: list[BranchEvent]) -> Branch:
    count = np.array([len(p.growing) for p in points], dtype=int)
    q, factor = np.array([p.q for p in points]), np.array([p.factor for p in points])
    return Branch(q, factor, count == 0, count, tuple(events))
