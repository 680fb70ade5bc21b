"""Adaptive stiff integration by SUNDIALS CVODE, of the state x = (q, v, z) of `state` with its Jacobian.

A step ends where a ball begins to touch, found as a root of its distance; one that goes through something is taken
again to where it was inside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np
from scipy.linalg import LinAlgError

from lissom.errors import ConvergenceError
from lissom.integration.encounters import Lookout
from lissom.integration.memory import LEG, handed_out, recalled
from lissom.integration.pace import Pace
from lissom.integration.state import StateDerivative
from lissom.integration.step_ends import StepEnds
from lissom.model.model import Model

_MAX_STEPS = 200_000
_LEAST_STEP = 1e-14  # of the duration
_MOST_PAST = 2000  # states to which a motion may go back
_ROOT = 2  # what CVODE's status says where it stops at a root


def integrate_bdf(
    model: Model,
    f: StateDerivative,
    x0: np.ndarray,
    times: np.ndarray | None,
    duration: float,
    period: float,
    rtol: float,
    atol: tuple[float, float],
    largest_step: float | None,
    project: bool = True,
) -> Iterator[tuple[float | np.ndarray, np.ndarray, np.ndarray, int]]:
    """Yield (t, (q, v), (u, z), steps so far) at `times`, or at every step where times is None; the start comes first.

    Raises:
        ConvergenceError: at which time CVODE stopped and what to try, without a partial result.
    """
    largest = largest_step or duration
    options = {"rtol": rtol, "atol": f.absolute(atol), "max_step": largest}
    options["min_step"] = min(_LEAST_STEP * duration, largest)
    f.pace = Pace("bdf", duration, _MAX_STEPS, rtol, f.scale[: model.nq])
    run = _Run(model, f, f.pace, x0, times, options)
    sample, parts = 1, {"f": f, "pace": f.pace, "run": run}
    if f.begun is None:
        if np.isfinite(period):
            f.sample(0.0, *f.split(x0)[:2])
        yield run.point(0.0, x0)
    else:
        sample = recalled(f, parts)
        run.leave_out(times)
    if len(x0) == 0:  # nothing moves, and CVODE takes no empty state
        for t in times[1:] if times is not None else (duration,):
            yield run.point(t, x0)
        return
    slow = times is not None or np.isfinite(period) or f.streams
    while run.t < duration:
        due = min(duration, sample * period)
        points = None if slow else run.at_once(due)
        if points is None:
            slow = True  # step by step, to meet the failure where it is, or what is wanted between the steps
            points = run.one_by_one(due)
        yield from points
        if f.pace.count > _MAX_STEPS:
            raise _failure(run.t, run.steps, f"more than {_MAX_STEPS} steps")
        if run.t >= due and np.isfinite(period) and run.t < duration:
            f.sample(run.t, *f.split(run.x)[:2])
            sample += 1
        yield from handed_out(f, [], parts, sample)


@final
class _Run:
    """One motion by CVODE: where it is, and how it goes on."""

    def __init__(
        self,
        model: Model,
        f: StateDerivative,
        pace: Pace,
        x0: np.ndarray,
        times: np.ndarray | None,
        options: dict[str, Any],
    ) -> None:
        self.f, self.pace, self.options, self.size = f, pace, options, model.nq + model.nv
        self.t, self.x, self.steps, self.inside, self.lookout = 0.0, x0, 0, np.inf, Lookout(model)
        self.every, self.shown = times is None, 0.0
        self.wanted = iter(() if times is None else times[1:])
        self.target = next(self.wanted, None)

    def leave_out(self, times: np.ndarray | None) -> None:
        """Go on behind the wanted times that were handed out before, now that the fields are recalled."""
        if times is not None and self.target is not None:
            self.wanted = iter(times[times > self.target])

    def point(self, t: float, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, int]:
        """A point to hand out; CVODE itself evaluates nothing at the end of a step."""
        try:
            shown = self.f.shown(float(t), *self.f.split(x))
        except Exception as error:
            if self.f.takes(t, x):
                raise
            raise _failure(t, self.steps, str(error)) from error
        return float(t), x[: self.size], shown, self.steps

    def at_once(self, due: float) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]] | None:
        """All steps to `due`, a touch, or a change of order in one call, which is fastest. None where one fails: going
        step by step then meets the same failure, and keeps what came before it."""
        f, counts = self.f, (self.f.evaluations, self.f.jacobians)
        solver = _solver(f, self.pace, self.options)
        try:
            result = solver.solve(np.array([self.t, min(due, self.inside)]), self.x)
        except Exception:
            result = None
        if result is None or not result.success or f.error is not None:
            f.evaluations, f.jacobians, f.error, f.not_finite = *counts, None, 0
            return None
        at, rows = np.array(result.t), np.array(result.y)
        met = f.first_met(self.lookout, at, rows)
        last, self.inside = (len(at) - 1, np.inf) if met is None else met
        if self.pace.back:
            last = min(last, self.pace.start(at))
        if last == 0:
            return []  # the first step is taken again
        at, rows = at[1 : last + 1], rows[1 : last + 1]
        if f.is_feedback and not f.takes(float(at[-1]), rows[-1]):
            return None
        self.t, self.x, self.steps = float(at[-1]), rows[-1], self.steps + len(at)
        return [(at, rows[:, : self.size], f.shown_rows(at, rows), self.steps)]

    def one_by_one(self, due: float) -> Iterator[tuple[float, np.ndarray, np.ndarray, int]]:
        """Steps to `due`, a touch, or a change of order."""
        f, stop = self.f, min(due, self.inside)
        solver = _solver(f, self.pace, self.options)
        _guarded(f, self.t, self.steps, solver.init_step, self.t, self.x)
        self.inside, past = np.inf, deque([(self.t, self.x)], _MOST_PAST)
        leg = self.steps + LEG if f.streams else np.inf
        while self.t < stop and self.pace.count <= _MAX_STEPS and self.steps < leg:
            result = _guarded(f, self.t, self.steps, solver.step, stop, method="onestep", tstop=stop)
            if not result.success or not np.isfinite(result.y).all():
                raise _failure(self.t, self.steps, str(result.message))
            t = float(np.ravel(result.t)[-1])
            x = np.array(result.y, dtype=np.float64).reshape(-1, len(self.x))[-1]
            met = f.first_met(self.lookout, np.array((self.t, t)), np.array((self.x, x))) if t > self.t else None
            if met is not None:
                self.inside = met[1]
                return  # the step is taken again, to where it was inside
            f.not_finite = 0
            self.steps += t > self.t  # after an output inside a step, CVODE first hands out the end of that step again
            self.t, self.x = t, x
            if t > past[-1][0]:
                past.append((t, x))
            if self.every and t > self.shown:
                yield self.point(t, x)
            while self.target is not None and self.target <= t:
                at = x
                if self.target < t:
                    inner = _guarded(f, t, self.steps, solver.step, self.target, method="normal")
                    at = np.array(inner.y, dtype=np.float64).reshape(-1, len(x))[-1]
                yield self.point(self.target, at)
                self.target = next(self.wanted, None)
            self.shown = max(self.shown, t)
            if self.pace.back:
                self.t, self.x = past[self.pace.start(np.array([t for t, _ in past]))]
                return
            if result.status == _ROOT:
                return  # what follows a touch starts anew, with small steps


def _solver(f: StateDerivative, pace: Pace, options: dict[str, Any]) -> Any:
    from sksundae.cvode import CVODE

    ends = StepEnds(f.model, pace, f.ended)
    limits = {"max_num_steps": _MAX_STEPS, "max_order": pace.order}
    return CVODE(f, jacfn=f.jacobian, eventsfn=ends, num_events=len(ends.terminal), **limits, **options)


def _guarded(f: StateDerivative, t: float, steps: int, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call CVODE; what the user's functions raised goes to the caller, numerical failure becomes a ConvergenceError."""
    try:
        result = call(*args, **options)
        if f.error is not None:
            raise f.error
    except Exception as error:
        cause = f.error or error
        if f.error is not None and not isinstance(cause, FloatingPointError | LinAlgError):
            raise cause from None
        raise _failure(t, steps, str(cause)) from error
    return result


def _failure(t: float, steps: int, why: str) -> ConvergenceError:
    return ConvergenceError(f"simulation by bdf stopped at t={t:.6g} s after {steps} steps: {why}; try a looser or "
                            "tighter rtol, smoother inputs, some damping, or more Gauss points; what vibrates without "
                            "damping goes well by method=\"generalized_alpha\" with a fixed dt")  # fmt: skip
