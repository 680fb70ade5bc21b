"""Integrators of others: CVODE of SUNDIALS, Radau and DOP853 of SciPy, for the state x = (q, v, z) and its Jacobian.

CVODE is adaptive and stiff. Its step ends where a ball begins to touch, found as a root of its distance. Radau IIA of
order 5 (implicit, exact Jacobian) and DOP853 (explicit, order 8) serve for comparison. A step of any of them that goes
through something is repeated, no further than to where a ball was inside: there the force is felt.

BDF of orders 3 to 5 is unstable for vibrations without damping, so that its steps must resolve the fastest one there
is, however small. Order 2 is stable for them. Which of the two gets on faster is tried where the steps are so small
that there would be too many of them, from a state before they became small: after that the vibration is in the motion.

The number of steps that a motion needs follows from its turns: the way of the coordinate that turns most, in units of
its range, among those that move as far as a tenth of the farthest. Where there are many more steps than that, a hint
is given once.

SUNDIALS keeps silent on the terminal. Warnings of its C code go to a file that an environment variable names when a
solver is made. Its Python binding prints failures, though the status that it returns says the same, which becomes the
ConvergenceError; these messages are filtered out of `sys.stdout` while somebody integrates.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any, final

import numpy as np
from scipy.integrate import DOP853, Radau
from scipy.linalg import LinAlgError

from lissom.dynamics.assembly import on_motion
from lissom.dynamics.contacts import ball_gaps
from lissom.errors import ConvergenceError, StepWarning
from lissom.model.model import Model
from lissom.stepping.contact_search import ContactSearch
from lissom.stepping.driver import LEG, restored, with_checkpoint
from lissom.stepping.state import StateDerivative

_FIRST_LOOK = 1000  # steps
_LEAST_SHARE = 0.25  # of too many steps, before which a hint would be a guess: what closes takes many, what holds few
_TOO_MANY = {"bdf": 20_000, "radau": 5_000, "dop853": 50_000}  # steps in all, by what the last ones make
_TRIAL = 500  # steps of order 2
_FASTER = 1.5
_PER_TURN = 30.0  # steps from one extreme to the next, at rtol = 1e-6
_FAR_TOO_MANY = 10.0  # times as many as a motion needs
_FAR = 0.1  # of the farthest coordinate


@final
class StepMonitor:
    """Counts the steps of one motion and looks how long they are.

    Args:
        most: steps after which the run stops. scale: natural size of each coordinate, shape (nq,).
    """

    def __init__(self, method: str, duration: float, most: int, rtol: float, scale: np.ndarray) -> None:
        self.method, self.duration, self.most, self.scale = method, duration, most, scale
        self.per_turn = _PER_TURN * (1e-6 / rtol) ** 0.2
        self.order, self.count, self.is_warned = 5, 0, False
        self.tried: float | None = None  # steps a second of order 5, while order 2 is tried
        self.since: float | None = None  # when order 2 began
        self.back = False  # whether to go back to where the steps were long
        self._look_at(_FIRST_LOOK)

    @property
    def remark(self) -> str:
        """The order, where it has changed."""
        return "" if self.since is None else f"of order 2 from t={self.since:.6g} s on"

    def _look_at(self, count: int) -> None:
        self.look, self.middle = count, (self.count + count) // 2

    def step(self, t: float, q: np.ndarray) -> bool:
        """One more step, which ends at t in q; whether the run should stop there, for good or to change its order."""
        self.count += 1
        if self.count < self.middle:
            return self.count > self.most
        if self.count == self.middle:
            self.passed = t
            self.last, self.low, self.high, self.way = q.copy(), q.copy(), q.copy(), np.zeros(len(q))
        else:
            self.way += np.abs(q - self.last)
            np.minimum(self.low, q, out=self.low)
            np.maximum(self.high, q, out=self.high)
            self.last[:] = q
        return self.count > self.most or (self.count >= self.look and self._changes(t))

    def start(self, t: np.ndarray) -> int:
        """Which of the ends of steps (n,) the trial of order 2 starts from: the first where they are few, else the last
        from which a long step went, longer than the geometric mean of the longest and the usual recent one."""
        self.back, h, k = False, np.diff(t), 0
        if len(h) > _FIRST_LOOK:
            usual = float(np.median(h[len(h) // 2 :]))
            k = int(np.flatnonzero(h >= np.sqrt(usual * h.max()))[-1])
        self.since = float(t[k])
        return k

    def _changes(self, t: float) -> bool:
        """Look at the last steps; whether the order changes."""
        rate = (self.look - self.middle) / max(t - self.passed, 1e-300)
        excess, worse = self._excess(t), False
        if self.method == "bdf" and self.since is None and self._total(t, rate) > _TOO_MANY["bdf"]:
            self.tried, self.before, self.order, self.since, self.back = rate, excess, 2, t, True
            self._look_at(self.count + _TRIAL)
            return True
        if self.tried is not None:
            worse = _FASTER * rate > self.tried
            if worse:
                rate, excess, self.order, self.since = self.tried, self.before, 5, None
            self.tried = None
        times, dt = excess
        most = _TOO_MANY[self.method]
        if (
            not self.is_warned
            and self.count >= _LEAST_SHARE * most
            and self._total(t, rate) > most
            and times > _FAR_TOO_MANY
        ):
            self.is_warned = True
            others = "" if self.method == "bdf" else 'method="bdf" or '
            warnings.warn(f"{self.method} would take about {self._total(t, rate):.2g} steps, {times:.0f} times what so "
                          "smooth a motion needs: contacts, samples, or vibrations with little damping hold it up; "
                          f'{others}method="generalized_alpha" with dt={dt:.0e} or longer may suit it better',
                          StepWarning, stacklevel=2)  # fmt: skip
        self._look_at((4 if worse else 2) * self.count)
        return worse

    def _total(self, t: float, rate: float) -> float:
        """How many steps the motion takes at this rate."""
        return self.count + rate * (self.duration - t)

    def _excess(self, t: float) -> tuple[float, float]:
        """How many times the last steps are more than the motion needs, and how long they might be."""
        span = self.high - self.low
        far = span > _FAR * self.scale * np.max(span / self.scale)
        needed = self.per_turn * max(1.0, float(np.max(self.way[far] / span[far], initial=0.0)))
        return (self.look - self.middle) / needed, (t - self.passed) / needed


@final
class StepEnds:
    """Root functions: the distance of each ball from what it may touch, since a step ends where one begins to touch;
    and one that falls below zero at the end of a step after which the order is to change.

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
            out[:-1] = ball_gaps(self.model, on_motion(self.model, t, x[:nq], x[nq : nq + nv])[0])
        if t > self.reached:  # the end of a step, not a time asked for inside one
            is_start, self.reached = self.reached == -np.inf, t
            if not is_start:
                self.ended(t)
                self.end = t if self.monitor.step(t, x[:nq]) else np.inf
        out[-1] = 1.0 if t < self.end else -1.0


_WARNINGS = "SUNLOGGER_WARNING_FILENAME"
_MESSAGE = re.compile(r"\n\[\w+, Error: -?\d+\] ")  # as the binding prints it, in one piece and then the end of a line

_lock = Lock()
_users: list[int] = []
_left: list[Any] = []  # (stream, variable), as they were before


@final
class _Filter:
    """A stream that passes on all but what SUNDIALS prints."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.ending: int | None = None  # the thread whose message still lacks its end of line

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
    """Keep the messages of SUNDIALS from the terminal, in any number of threads at once."""
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
                if isinstance(sys.stdout, _Filter):  # else somebody put another stream there meanwhile
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
    """Yield (t, (q, v), (u, z), steps so far) at `times`, or at every step where times is None; the start comes first.

    Raises:
        ConvergenceError: at which time the method stopped and what to try, without a partial result.
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
    if method == "radau":
        return Radau(rate, t, x, stop, jac=jacobian, **options)
    return DOP853(rate, t, x, stop, **options)


def _scipy_step(f: StateDerivative, solver: Any, method: str, t: float, steps: int) -> None:
    """One step; numerical failure becomes a ConvergenceError, errors of the user's functions pass unchanged."""
    try:
        why = solver.step()
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise _scipy_failure(method, t, steps, str(error)) from error
    if solver.status == "failed":
        raise _scipy_failure(method, t, steps, str(why))
    f.not_finite = 0


def _scipy_failure(method: str, t: float, steps: int, why: str) -> ConvergenceError:
    return ConvergenceError(f"simulation by {method} stopped at t={t:.6g} s after {steps} steps: {why}; try method="
                            "\"bdf\", another rtol, smoother inputs, or some damping")  # fmt: skip


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
        """Go on behind the wanted times that were handed out before, now that the fields are restored."""
        if times is not None and self.target is not None:
            self.wanted = iter(times[times > self.target])

    def point(self, t: float, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, int]:
        """A point to hand out; CVODE itself evaluates nothing at the end of a step."""
        try:
            shown = self.f.shown(float(t), *self.f.split(x))
        except Exception as error:
            if self.f.takes(t, x):
                raise
            raise _cvode_failure(t, self.steps, str(error)) from error
        return float(t), x[: self.size], shown, self.steps

    def at_once(self, due: float) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]] | None:
        """All steps to `due`, a touch, or a change of order in one call, which is fastest. None where one fails: going
        step by step then meets the same failure, and keeps what came before it."""
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
            return []  # the first step is taken again
        at, rows = at[1 : last + 1], rows[1 : last + 1]
        if f.is_feedback and not f.takes(float(at[-1]), rows[-1]):
            return None
        self.t, self.x, self.steps = float(at[-1]), rows[-1], self.steps + len(at)
        return [(at, rows[:, : self.size], f.shown_rows(at, rows), self.steps)]

    def one_by_one(self, due: float) -> Iterator[tuple[float, np.ndarray, np.ndarray, int]]:
        """Steps to `due`, a touch, or a change of order."""
        f, stop = self.f, min(due, self.inside)
        solver = _cvode_solver(f, self.monitor, self.options)
        _guarded(f, self.t, self.steps, solver.init_step, self.t, self.x)
        self.inside, past = np.inf, deque([(self.t, self.x)], _MOST_PAST)
        leg = self.steps + LEG if f.streams else np.inf
        while self.t < stop and self.monitor.count <= _MAX_STEPS and self.steps < leg:
            result = _guarded(f, self.t, self.steps, solver.step, stop, method="onestep", tstop=stop)
            if not result.success or not np.isfinite(result.y).all():
                raise _cvode_failure(self.t, self.steps, str(result.message))
            t = float(np.ravel(result.t)[-1])
            x = np.array(result.y, dtype=np.float64).reshape(-1, len(self.x))[-1]
            contact = f.first_contact(self.search, np.array((self.t, t)), np.array((self.x, x))) if t > self.t else None
            if contact is not None:
                self.inside = contact[1]
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
            if self.monitor.back:
                self.t, self.x = past[self.monitor.start(np.array([t for t, _ in past]))]
                return
            if result.status == _ROOT:
                return  # after a touch CVODE starts again, with small steps


def _cvode_solver(f: StateDerivative, monitor: StepMonitor, options: dict[str, Any]) -> Any:
    from sksundae.cvode import CVODE

    ends = StepEnds(f.model, monitor, f.ended)
    limits = {"max_num_steps": _MAX_STEPS, "max_order": monitor.order}
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
        raise _cvode_failure(t, steps, str(cause)) from error
    return result


def _cvode_failure(t: float, steps: int, why: str) -> ConvergenceError:
    return ConvergenceError(f"simulation by bdf stopped at t={t:.6g} s after {steps} steps: {why}; try a looser or "
                            "tighter rtol, smoother inputs, some damping, or more Gauss points; what vibrates without "
                            "damping goes well by method=\"generalized_alpha\" with a fixed dt")  # fmt: skip
