"""Implicit steps of a fixed size, cut where Newton's method fails, or of sizes as the error estimate asks.

They run in one kernel wherever nothing between two of them needs Python. A fixed step that goes through something is
told.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np

from lissom.errors import StepWarning
from lissom.integration.adaptive_steps import LEAST_STEP, adaptive_steps, failure, point
from lissom.integration.encounters import Lookout
from lissom.integration.fused_runs import LONGEST_RUN, FusedSteps
from lissom.integration.implicit_steps import ImplicitSteps
from lissom.integration.memory import handed_out, recalled
from lissom.integration.schemes import ORDER_SHARE, Scheme, StepState
from lissom.integration.state import StateDerivative
from lissom.integration.step_schedule import StepSchedule
from lissom.model.model import Model

_STRIDE = 8  # fixed steps that are looked at together first
_FIRST_RUN = 8  # fused steps at the start and after a failure, when the next failure may be near


def integrate_implicit(
    model: Model,
    f: StateDerivative,
    x0: np.ndarray,
    times: np.ndarray | None,
    duration: float,
    period: float,
    rtol: float,
    atol: tuple[float, float],
    dt: float | None,
    project: bool = True,
    *,
    scheme: Scheme,
) -> Iterator[tuple[float | np.ndarray, np.ndarray, np.ndarray, int]]:
    """Yield (t, x, (u, z), steps so far) at `times`, or at every step where times is None; the start comes first.

    x is (q, v, a, λ of loops) or (q, v); t, x and (u, z) may have a leading axis and then hold several points. Steps
    of size dt end on the wanted times; where dt is None they are as long as the error estimate allows.
    Raises:
        ConvergenceError: at which time it stopped and what to try, without a partial result.
    """
    share = None if dt is None else ORDER_SHARE
    stepper = ImplicitSteps(model, f, scheme, rtol, atol, project, share)
    here = None
    if f.begun is None:
        q, v, z = f.split(x0)
        if np.isfinite(period):
            f.sample(0.0, q, v)
        here = stepper.start(q, v, z, dt)
        yield point(stepper, here, 0)
    if dt is None:
        yield from adaptive_steps(stepper, here, times, duration, period)
    else:
        yield from _fixed_steps(stepper, here, times, duration, period, dt)


def _fixed_steps(
    stepper: ImplicitSteps, begin: StepState | None, times: np.ndarray | None, duration: float, period: float, dt: float
) -> Iterator[tuple[float | np.ndarray, np.ndarray, np.ndarray, int]]:
    """Steps of dt, shorter before a wanted time or a sample of the controller, cut where Newton's method fails; from a
    state, or from what the method remembers."""
    f, model = stepper.f, stepper.model
    plan = StepSchedule(times, duration, period, dt)
    fused = FusedSteps(model, f, stepper.scheme, stepper.rtol, stepper.atol, stepper.project)
    watch = Watch(model)
    parts = {"f": f, "stepper": stepper, "control": stepper.control, "fused": fused, "watch": watch}
    loop: Any = (begin, 0, 0, _FIRST_RUN) if f.begun is None else recalled(f, parts)
    here, k, steps, length = loop
    in_kernel = FusedSteps.can_run(model, f)
    while k < len(plan):
        points: list[Any] = []
        if in_kernel:
            run = min(length, plan.to_sample(k))
            before, ends = here, plan.ends(k, k + run)
            rows, inputs, here = fused.run(here, ends)
            watch.went(before, ends[: len(rows)], rows)
            at = np.flatnonzero(plan.wanted(k, k + len(rows)))
            if len(at) > 0:
                points.append((ends[at], rows[at], inputs[at], steps + int(at[-1]) + 1))
            steps, k = steps + len(rows), k + len(rows)
            failed = len(rows) < run
            length = _FIRST_RUN if failed else min(2 * length, LONGEST_RUN)
        else:
            failed = True
        if failed:
            yield from points  # before the error that may come
            points = []
            one = fused.step_to if in_kernel else stepper.step_to
            before, ends = here, plan.ends(k, k + 1)
            fused.forget()
            here, taken = cut_step(stepper.scheme, one, here, float(ends[0]), duration, steps, in_kernel)
            fused.forget()
            watch.went(before, ends, np.concatenate([here.q, here.v])[None])
            steps += taken
            if plan.wanted(k, k + 1)[0]:
                points.append(point(stepper, here, steps))
            k += 1
        if plan.is_sample(k - 1):
            here = stepper.sampled(here)
        yield from handed_out(f, points, parts, (here, k, steps, length))


def sparse_states(count: int) -> np.ndarray:
    """Numbers of the states that are looked at together first."""
    return np.unique(np.append(np.arange(0, count, _STRIDE), count - 1))


@final
class Watch:
    """Tells once of a fixed step during which a ball went through something."""

    def __init__(self, model: Model) -> None:
        self.model, self.lookout, self.told = model, Lookout(model, graze=0.5, deeper=0.5), False

    def went(self, start: StepState, ends: np.ndarray, rows: np.ndarray) -> None:
        """Look at the steps from a state to those (q, v, ...) of the times `ends`."""
        nq, nv = self.model.nq, self.model.nv
        if not self.told and len(self.model.surroundings.pair):
            q, v = np.vstack([start.q, rows[:, :nq]]), np.vstack([start.v, rows[:, nq : nq + nv]])
            self.passed(np.append(start.t, ends), q, v)

    def passed(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Look at the steps along states (n, nq), (n, nv) at times (n,)."""
        if self.told:
            return
        few = sparse_states(len(t))
        met = None if self.lookout.is_clear(t[few], q[few], v[few]) else self.lookout.first_met(t, q, v)
        if met is not None:
            self.told = True
            warnings.warn(f"a step of dt={t[1] - t[0]:.3g} s went through something at t={met[1]:.6g} s without "
                          "touching it; take shorter steps, or leave dt out", StepWarning, stacklevel=2)  # fmt: skip


def cut_step(
    scheme: Scheme,
    one: Callable[[StepState, float], StepState | None],
    here: StepState,
    end: float,
    duration: float,
    steps: int,
    failed: bool,
) -> tuple[StepState, int]:
    """From `here` to `end` in one step, unless that has failed already, or in as many as Newton's method needs; how
    many there were. `one` takes a step to a time."""
    h, taken = end - here.t, 0
    if failed:
        h *= 0.25
    while True:
        left = end - here.t
        size = left if h >= left * (1.0 - 1e-9) else h
        new = one(here, end if size == left else here.t + size)
        if new is None:
            h = 0.25 * size
            if h < LEAST_STEP * duration:
                raise failure(scheme, here.t, steps + taken, "Newton's method finds no step")
            continue
        taken += 1
        if size == left:
            return new, taken
        here, h = new, 2.0 * size
