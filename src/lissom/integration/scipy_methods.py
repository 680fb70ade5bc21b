"""Methods of SciPy, for comparison: Radau IIA of order 5 (implicit, exact Jacobian) and DOP853 (explicit, order 8).

A step that goes through something is taken again, no further than to where a ball was inside: there the force is felt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.integrate import DOP853, Radau

from lissom.errors import ConvergenceError
from lissom.integration.encounters import Lookout
from lissom.integration.memory import LEG, handed_out, recalled
from lissom.integration.pace import Pace
from lissom.integration.state import StateDerivative
from lissom.model.model import Model

_MAX_STEPS = 1_000_000


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
    lookout, inside = Lookout(model), np.inf
    pace = Pace(method, duration, _MAX_STEPS, rtol, f.scale[: model.nq])

    def point(t: float, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, int]:
        return t, x[: model.nq + model.nv], f.shown(t, *f.split(x)), steps

    parts = {"f": f, "pace": pace}
    if f.begun is None:
        if np.isfinite(period):
            f.sample(0.0, *f.split(x)[:2])
        yield point(t, x)
    else:
        t, x, steps, sample, inside = recalled(f, parts)
        wanted = [time for time in wanted if time > t]
    while t < duration:
        due = min(duration, sample * period)
        solver = _solver(f, t, x, min(due, inside), rtol, atol, largest_step or np.inf, method)
        met, leg = None, steps + LEG if f.streams else np.inf
        while solver.status == "running" and steps < leg:
            _step(f, solver, method, t, steps)
            met = f.first_met(lookout, np.array([t, solver.t]), np.vstack([x, solver.y]))
            if met is not None:
                break
            steps += 1
            t, x = float(solver.t), np.array(solver.y)
            f.ended(t)
            if pace.step(t, x[: model.nq]):
                raise _failure(method, t, steps, f"more than {_MAX_STEPS} steps")
            if times is None:
                yield point(t, x)
            while wanted and wanted[0] <= t:
                at = float(wanted.pop(0))
                yield point(at, x if at == t else solver.dense_output()(at))
        inside = np.inf if met is None else met[1]
        if t >= due and np.isfinite(period) and t < duration:
            f.sample(t, *f.split(x)[:2])
            sample += 1
        yield from handed_out(f, [], parts, (t, x, steps, sample, inside))


def _solver(
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


def _step(f: StateDerivative, solver: Any, method: str, t: float, steps: int) -> None:
    """One step; numerical failure becomes a ConvergenceError, what the user's functions raise goes on as it is."""
    try:
        why = solver.step()
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise _failure(method, t, steps, str(error)) from error
    if solver.status == "failed":
        raise _failure(method, t, steps, str(why))
    f.not_finite = 0


def _failure(method: str, t: float, steps: int, why: str) -> ConvergenceError:
    return ConvergenceError(f"simulation by {method} stopped at t={t:.6g} s after {steps} steps: {why}; try method="
                            "\"bdf\", another rtol, smoother inputs, or some damping")  # fmt: skip
