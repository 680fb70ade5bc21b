"""Integrators of other libraries for the state x = (q, v, z): CVODE of SUNDIALS, Radau and DOP853 of SciPy.

CVODE (method "bdf") is adaptive and suits stiff robots. Its step ends when a ball begins to touch; this is a root of
the ball's distance. Radau IIA of order 5 (implicit, exact Jacobian) and DOP853 (explicit, order 8) serve for
comparison. If a step of one of these methods passes through an obstacle, it is repeated up to a time at which the ball
is inside, so that the contact force acts.

BDF of orders 3 to 5 is unstable for vibrations without damping, so its steps must resolve the fastest vibration, even
if its amplitude is tiny. Order 2 is stable for them. If the steps are so small that the motion would need too many, a
trial shows which order advances faster. The trial starts from a state before the steps became small, because later
states contain the vibration.

SUNDIALS must not write to the terminal. Warnings of its C code go to a file named by an environment variable, which is
read when a solver is made. Its Python binding prints failures. The returned status also contains them, and they become
the ConvergenceError. These prints are removed from `sys.stdout` while an integration runs.
"""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any, NamedTuple, final

import numpy as np
from scipy.integrate import DOP853, Radau
from scipy.linalg import LinAlgError

from lissom.dynamics.assembly import prescribed_state
from lissom.dynamics.contacts import ball_gaps
from lissom.errors import ConvergenceError
from lissom.model.model import Model
from lissom.simulation.step_monitor import StepMonitor
from lissom.stepping.contact_search import ContactSearch
from lissom.stepping.driver import LEG, end_of_motion, restored, with_checkpoint
from lissom.stepping.state import StateDerivative


class ScipyMethod(NamedTuple):
    """A solver of SciPy as a method of `simulate`.

    Fields:
        solver: the class, an OdeSolver.
        takes_jacobian: whether it is implicit.
    """

    solver: Any
    takes_jacobian: bool = False


SCIPY_METHODS = {
    "radau": ScipyMethod(Radau, takes_jacobian=True),
    "dop853": ScipyMethod(DOP853),
}
DIFFERENCING = ("bdf", *(name for name, method in SCIPY_METHODS.items() if method.takes_jacobian))  # if not exact


@final
class StepEnds:
    """Functions at whose zeros a step ends: the distance of each ball from its obstacles, and a function that becomes
    negative at the end of the last step before a change of order.

    Args:
        ended: called with the end of every step.
    """

    def __init__(self, model: Model, monitor: StepMonitor, ended: Callable[[float], None]) -> None:
        self.model, self.monitor, self.ended, self.balls = model, monitor, ended, len(model.contacts.ball_node)
        self.reached, self.end = -np.inf, np.inf
        self.terminal, self.direction = [True] * (self.balls + 1), [-1] * (self.balls + 1)

    def __call__(self, t: float, x: np.ndarray, out: np.ndarray) -> None:
        nq, nv = self.model.nq, self.model.nv
        if self.balls:
            out[:-1] = ball_gaps(self.model, prescribed_state(self.model, t, x[:nq], x[nq : nq + nv])[0])
        if t > self.reached:  # the end of a step, not an output time inside one
            is_start, self.reached = self.reached == -np.inf, t
            if not is_start:
                self.ended(t)
                self.end = t if self.monitor.step(t, x[:nq]) else np.inf
        out[-1] = 1.0 if t < self.end else -1.0


_WARNINGS = "SUNLOGGER_WARNING_FILENAME"
_MESSAGE = re.compile(r"\n\[\w+, Error: -?\d+\] ")  # the binding writes it at once, then the end of the line

_lock = Lock()
_users: list[int] = []
_left: list[Any] = []  # (stream, variable) before the first user


@final
class _Filter:
    """A text stream that drops the messages of SUNDIALS and writes all others to the original stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.ending: int | None = None  # the thread that has not yet written the end of line of a message

    def write(self, text: str) -> int:
        if _MESSAGE.match(text):
            self.ending = get_ident()
            return len(text)
        if text == "\n" and self.ending == get_ident():
            self.ending = None
            return 1
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def quiet_sundials() -> Iterator[None]:
    """Suppress the messages of SUNDIALS on the terminal, in any number of threads."""
    with _lock:
        if not _users:
            _left.append((sys.stdout, os.environ.get(_WARNINGS)))
            os.environ.setdefault(_WARNINGS, os.devnull)
            if sys.stdout is not None:
                sys.stdout = _Filter(sys.stdout)
        _users.append(get_ident())
    try:
        yield
    finally:
        with _lock:
            _users.pop()
            if not _users:
                stream, variable = _left.pop()
                if isinstance(sys.stdout, _Filter):  # otherwise the user has put another stream there
                    sys.stdout = stream
                if variable is None:
                    os.environ.pop(_WARNINGS, None)


_MOST_SCIPY_STEPS = 1_000_000


def integrate_scipy(
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
    *,
    method: str,
) -> Iterator[tuple[float, np.ndarray, np.ndarray, int]]:
    """Yield (t, (q, v), (u, z), number of steps so far) at `times`, or at every step if times is None. The start comes
    first.

    Raises:
        ConvergenceError: the method stopped; the message gives the time and a remedy. There is no partial result.
    """
    t, x, steps, sample = 0.0, x0, 0, 1
    wanted = list(times[1:]) if times is not None else []
    search, inside = ContactSearch(model), np.inf
    monitor = StepMonitor(method, duration, _MOST_SCIPY_STEPS, rtol, f.scale[: model.nq])

    def point(t: float, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, int]:
        return t, x[: model.nq + model.nv], f.shown(t, *f.split(x)), steps

    parts = {"f": f, "monitor": monitor}
    if f.checkpoint is None:
        if np.isfinite(period):
            f.sample(0.0, *f.split(x)[:2])
        yield point(t, x)
    else:
        t, x, steps, sample, inside = restored(f, parts)
        wanted = [time for time in wanted if time > t]
    while t < duration:
        due = min(duration, sample * period)
        solver = _scipy_solver(f, t, x, min(due, inside), rtol, atol, largest_step or np.inf, method)
        contact, leg = None, steps + LEG if f.streams else np.inf
        while solver.status == "running" and steps < leg:
            _scipy_step(f, solver, method, t, steps)
            contact = f.first_contact(search, np.array([t, solver.t]), np.vstack([x, solver.y]))
            if contact is not None:
                break
            steps += 1
            t, x = float(solver.t), np.array(solver.y)
            f.ended(t)
            if monitor.step(t, x[: model.nq]):
                raise _scipy_failure(method, t, steps, f"more than {_MOST_SCIPY_STEPS} steps")
            if times is None:
                yield point(t, x)
            while wanted and wanted[0] <= t:
                at = float(wanted.pop(0))
                yield point(at, x if at == t else solver.dense_output()(at))
        inside = np.inf if contact is None else contact[1]
        if t >= due and np.isfinite(period) and t < duration:
            f.sample(t, *f.split(x)[:2])
            sample += 1
        yield from with_checkpoint(f, [], parts, (t, x, steps, sample, inside))


def _scipy_solver(
    f: StateDerivative,
    t: float,
    x: np.ndarray,
    stop: float,
    rtol: float,
    atol: tuple[float, float],
    largest: float,
    method: str,
) -> Any:
    def rate(t: float, x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        f(t, x, out)
        return out

    def jacobian(t: float, x: np.ndarray) -> np.ndarray:
        out = np.zeros((len(x), len(x)))
        f.jacobian(t, x, rate(t, x), out)
        if not np.isfinite(out).all():
            raise FloatingPointError("the Jacobian is not finite")
        return out

    options: dict[str, Any] = {"rtol": rtol, "atol": f.absolute(atol), "max_step": largest}
    found = SCIPY_METHODS[method]
    exact = found.takes_jacobian and f.has_exact_jacobian  # otherwise an implicit solver forms differences
    return found.solver(rate, t, x, stop, **options, **({"jac": jacobian} if exact else {}))


def _scipy_step(f: StateDerivative, solver: Any, method: str, t: float, steps: int) -> None:
    """Take one step. Numerical failure becomes a ConvergenceError; errors of the user's functions are not changed."""
    try:
        why = solver.step()
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise _scipy_failure(method, t, steps, _reason(f, solver.y, error)) from error
    if solver.status == "failed":
        raise _scipy_failure(method, t, steps, _reason(f, solver.y, why))
    f.not_finite, f.left_span = 0, ""


def _reason(f: StateDerivative, x: np.ndarray, why: object) -> str:
    """Why no step leads on from the state x: a function that ends, a disc that falls flat, or what the solver says."""
    return f.left_span or f"{why}{end_of_motion(f.model, x[: f.model.nq])}"


def _scipy_failure(method: str, t: float, steps: int, why: str) -> ConvergenceError:
    return ConvergenceError(f"simulation by {method} stopped at t={t:.6g} s after {steps} steps: {why}; try method="
                            "\"bdf\", another rtol, smoother inputs, or some damping")  # fmt: skip


_MAX_STEPS = 200_000
_LEAST_STEP = 1e-14  # of the duration
_MOST_PAST = 2000  # number of past states to which a motion may return
_ROOT = 2  # CVODE's status after a stop at a root


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
    """Yield (t, (q, v), (u, z), number of steps so far) at `times`, or at every step if times is None. The start comes
    first.

    Raises:
        ConvergenceError: CVODE stopped; the message gives the time and a remedy. There is no partial result.
    """
    largest = largest_step or duration
    options = {"rtol": rtol, "atol": f.absolute(atol), "max_step": largest}
    options["min_step"] = min(_LEAST_STEP * duration, largest)
    f.monitor = StepMonitor("bdf", duration, _MAX_STEPS, rtol, f.scale[: model.nq])
    run = _CvodeRun(model, f, f.monitor, x0, times, options)
    sample, parts = 1, {"f": f, "monitor": f.monitor, "run": run}
    if f.checkpoint is None:
        if np.isfinite(period):
            f.sample(0.0, *f.split(x0)[:2])
        yield run.point(0.0, x0)
    else:
        sample = restored(f, parts)
        run.leave_out(times)
    if len(x0) == 0:  # nothing moves, and CVODE does not accept an empty state
        for t in times[1:] if times is not None else (duration,):
            yield run.point(t, x0)
        return
    slow = times is not None or np.isfinite(period) or f.streams
    while run.t < duration:
        due = min(duration, sample * period)
        points = None if slow else run.at_once(due)
        if points is None:
            slow = True  # step by step, to find the failure or the output times between steps
            points = run.step_by_step(due)
        yield from points
        if f.monitor.count > _MAX_STEPS:
            raise _cvode_failure(run.t, run.steps, f"more than {_MAX_STEPS} steps")
        if run.t >= due and np.isfinite(period) and run.t < duration:
            f.sample(run.t, *f.split(run.x)[:2])
            sample += 1
        yield from with_checkpoint(f, [], parts, sample)


@final
class _CvodeRun:
    """One motion by CVODE."""

    def __init__(
        self,
        model: Model,
        f: StateDerivative,
        monitor: StepMonitor,
        x0: np.ndarray,
        times: np.ndarray | None,
        options: dict[str, Any],
    ) -> None:
        self.f, self.monitor, self.options, self.size = f, monitor, options, model.nq + model.nv
        self.t, self.x, self.steps, self.inside, self.search = 0.0, x0, 0, np.inf, ContactSearch(model)
        self.every, self.shown = times is None, 0.0
        self.wanted = iter(() if times is None else times[1:])
        self.target = next(self.wanted, None)

    def leave_out(self, times: np.ndarray | None) -> None:
        """After a restart from a checkpoint, skip the wanted times that were already returned."""
        if times is not None and self.target is not None:
            self.wanted = iter(times[times > self.target])

    def point(self, t: float, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, int]:
        """The point (t, (q, v), (u, z), steps) of a state. CVODE does not evaluate the end of a step."""
        try:
            shown = self.f.shown(float(t), *self.f.split(x))
        except Exception as error:
            if self.f.takes(t, x):
                raise
            raise _cvode_failure(t, self.steps, str(error)) from error
        return float(t), x[: self.size], shown, self.steps

    def at_once(self, due: float) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]] | None:
        """All steps to `due`, to a touch, or to a change of order, in one call, which is fastest. None if a step fails:
        the steps are then repeated one by one, so that the points before the failure are returned."""
        f, counts = self.f, (self.f.evaluations, self.f.jacobians)
        solver = _cvode_solver(f, self.monitor, self.options)
        try:
            result = solver.solve(np.array([self.t, min(due, self.inside)]), self.x)
        except Exception:
            result = None
        if result is None or not result.success or f.error is not None:
            f.evaluations, f.jacobians, f.error, f.not_finite = *counts, None, 0
            return None
        at, rows = np.array(result.t), np.array(result.y)
        contact = f.first_contact(self.search, at, rows)
        last, self.inside = (len(at) - 1, np.inf) if contact is None else contact
        if self.monitor.back:
            last = min(last, self.monitor.start(at))
        if last == 0:
            return []  # the first step is repeated
        at, rows = at[1 : last + 1], rows[1 : last + 1]
        if f.is_feedback and not f.takes(float(at[-1]), rows[-1]):
            return None
        self.t, self.x, self.steps = float(at[-1]), rows[-1], self.steps + len(at)
        return [(at, rows[:, : self.size], f.shown_rows(at, rows), self.steps)]

    def step_by_step(self, due: float) -> Iterator[tuple[float, np.ndarray, np.ndarray, int]]:
        """Single steps to `due`, to a touch, or to a change of order."""
        f, stop = self.f, min(due, self.inside)
        solver = _cvode_solver(f, self.monitor, self.options)
        _guarded(f, self.t, self.steps, solver.init_step, self.t, self.x)
        self.inside, past = np.inf, deque([(self.t, self.x)], _MOST_PAST)
        leg = self.steps + LEG if f.streams else np.inf
        while self.t < stop and self.monitor.count <= _MAX_STEPS and self.steps < leg:
            result = _guarded(f, self.t, self.steps, solver.step, stop, method="onestep", tstop=stop)
            if not result.success or not np.isfinite(result.y).all():
                raise _cvode_failure(self.t, self.steps, _reason(f, self.x, result.message))
            t = float(np.ravel(result.t)[-1])
            x = np.array(result.y, dtype=np.float64).reshape(-1, len(self.x))[-1]
            contact = f.first_contact(self.search, np.array((self.t, t)), np.array((self.x, x))) if t > self.t else None
            if contact is not None:
                self.inside = contact[1]
                return  # the step is repeated up to the time at which the ball was inside
            f.not_finite = 0
            self.steps += t > self.t  # after an output inside a step, CVODE first returns the end of that step again
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
            if self.monitor.back:
                self.t, self.x = past[self.monitor.start(np.array([t for t, _ in past]))]
                return
            if result.status == _ROOT:
                return  # after a touch CVODE restarts with small steps


def _cvode_solver(f: StateDerivative, monitor: StepMonitor, options: dict[str, Any]) -> Any:
    from sksundae.cvode import CVODE

    ends = StepEnds(f.model, monitor, f.ended)
    limits = {"max_num_steps": _MAX_STEPS, "max_order": monitor.order}
    known = f.jacobian if f.has_exact_jacobian else None  # CVODE forms differences of f
    return CVODE(f, jacfn=known, eventsfn=ends, num_events=len(ends.terminal), **limits, **options)


def _guarded(f: StateDerivative, t: float, steps: int, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call CVODE. Errors of the user's functions are raised; numerical failure becomes a ConvergenceError."""
    try:
        result = call(*args, **options)
        if f.error is not None:
            raise f.error
    except Exception as error:
        cause = f.error or error
        if f.error is not None and not isinstance(cause, FloatingPointError | LinAlgError):
            raise cause from None
        raise _cvode_failure(t, steps, f.left_span or str(cause)) from error
    return result


def _cvode_failure(t: float, steps: int, why: str) -> ConvergenceError:
    return ConvergenceError(f"simulation by bdf stopped at t={t:.6g} s after {steps} steps: {why}; try a looser or "
                            "tighter rtol, smoother inputs, some damping, or more Gauss points; for vibrations without "
                            "damping take method=\"generalized_alpha\" with a fixed dt")  # fmt: skip
