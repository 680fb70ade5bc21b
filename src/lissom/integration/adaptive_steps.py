"""Implicit steps as long as their error estimate allows, in the kernel wherever that knows all that acts.

Wanted times do not change the steps: states there come from those at the ends of steps (dense_output). A step that goes
through something is taken again, no further than to where a ball was inside. The kernel looks for that by itself; where
motions that it does not know at all times carry what may be hit, and where it pauses, it is looked for afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np

from lissom.dynamics.contacts import present_anchors, put_anchors
from lissom.dynamics.loads import laws_of_time
from lissom.errors import ConvergenceError
from lissom.integration.dense_output import between, cubic
from lissom.integration.encounters import Lookout
from lissom.integration.fused_runs import state_after
from lissom.integration.implicit_steps import ImplicitSteps
from lissom.integration.memory import handed_out, recalled
from lissom.integration.paced_runs import PacedSteps
from lissom.integration.schemes import Scheme, StepState
from lissom.integration.state import StateDerivative
from lissom.integration.step_schedule import SAME_TIME
from lissom.integration.step_sizes import change_of_size, cut_of_size, size_towards
from lissom.model.model import Model

LEAST_STEP = 1e-10  # of the duration
FIRST_STEP = 1e-4  # of the duration, where the step is free; the error estimate then takes over
NO_STEP = "Newton's method finds no step, or none is accurate enough"
_CAREFUL = 4  # steps taken one by one after a run that went through something

Point = tuple[float | np.ndarray, np.ndarray, np.ndarray, int]


def point(stepper: ImplicitSteps, s: StepState, steps: int) -> Point:
    """A point to hand out."""
    parts = [s.q, s.v] if stepper.leaves_states else [s.q, s.v, s.a, s.force]
    return s.t, np.concatenate(parts), stepper.f.shown(s.t, s.q, s.v, s.z), steps


class _Run(NamedTuple):
    """Steps that were taken: their ends (n,), rows (q, v, a, â, λ), (u, z) there, and the last state."""

    t: np.ndarray
    rows: np.ndarray
    shown: np.ndarray
    last: StepState


def adaptive_steps(
    stepper: ImplicitSteps, begin: StepState | None, times: np.ndarray | None, duration: float, period: float
) -> Iterator[Point]:
    """Points at the wanted times, or at every step where times is None; from a state, or from what the method
    remembers."""
    stepping, f = _Stepping(stepper, duration), stepper.f
    parts = {"f": f, "stepper": stepper, "control": stepper.control, "stepping": stepping, "paced": stepping.paced}
    loop: Any = (begin, 0, 1) if f.begun is None else recalled(f, parts)
    here, steps, sample = loop
    output = _Output(stepper, here, times)
    while here.t < duration and not output.is_complete:
        due = sample * period
        stop = duration if due > duration * (1.0 - SAME_TIME) else due
        run = stepping.steps(here, stop, steps)
        steps += len(run.t)
        points = list(output.of(here, run, steps))
        here = run.last
        if here.t >= stop and stop < duration:
            here, sample = stepper.sampled(here), sample + 1
        yield from handed_out(f, points, parts, (here, steps, sample))


@final
class _Stepping:
    """Takes steps, as many at once as the kernel can."""

    def __init__(self, stepper: ImplicitSteps, duration: float) -> None:
        self.stepper, self.model, self.duration = stepper, stepper.model, duration
        self.least, self.size, self.careful = LEAST_STEP * duration, FIRST_STEP * duration, 0
        self.before = 1.0  # the error of the last step, below zero where that was not kept
        self.lookout = Lookout(stepper.model)
        given = stepper.rtol, stepper.atol, stepper.project, self.least
        self.paced = PacedSteps(stepper.model, stepper.f, stepper.scheme, *given)
        self.looks_back = stepper.model.n_motions > 0 and laws_of_time(stepper.model) is None

    def steps(self, here: StepState, stop: float, before: int) -> _Run:
        """The next steps towards a stop, none where a shorter one is to be tried; `before` were taken so far.

        Raises:
            ConvergenceError: the next step would be too short.
        """
        if self.careful == 0 and PacedSteps.can_run(self.model, self.stepper.f):
            run = self._in_kernel(here, stop, before)
            if run is not None:
                return run
        self.careful = max(self.careful - 1, 0)
        return self._one(here, stop, before)

    def _in_kernel(self, here: StepState, stop: float, before: int) -> _Run | None:
        """Many steps at once; None where the first of them went through something."""
        sticks = self.looks_back and self.model.surroundings.sticks
        anchors = present_anchors(self.model).copy() if sticks else None
        self.paced.size, self.paced.before = self.size, self.before
        run = _Run(*self.paced.run(here, stop))
        self.stepper.forget()
        if self.paced.is_stuck and len(run.t) == 0:
            raise failure(self.stepper.scheme, here.t, before, NO_STEP)
        met = self._met(here, run.t, run.rows) if self.looks_back else None
        if met is None:
            self.size, self.before = self.paced.size, self.paced.before
            return run
        k = met[0]
        self.careful = _CAREFUL + (0 if anchors is None else k)
        if anchors is not None:
            put_anchors(self.model, anchors)  # those after step k are not known
        if anchors is not None or k == 0:
            return None
        t = np.append(here.t, run.t)
        last = state_after(self.model, here, run.rows[:k], float(t[k]), float(t[k] - t[k - 1]), is_steady=False)
        self.size = last.h
        return _Run(run.t[:k], run.rows[:k], run.shown[:k], last)

    def _met(self, here: StepState, t: np.ndarray, rows: np.ndarray) -> tuple[int, float] | None:
        """The first step of a run that went through something, and when."""
        if not len(self.model.surroundings.pair):
            return None
        q, v, *_ = _parts(self.model, rows)
        return self.lookout.first_met(np.append(here.t, t), np.vstack([here.q, q]), np.vstack([here.v, v]))

    def _one(self, here: StepState, stop: float, before: int) -> _Run:
        """One step, shortened until it is found, accurate, and goes through nothing."""
        stepper, power = self.stepper, self.stepper.scheme.error_power
        while True:
            left = stop - here.t
            size = size_towards(left, self.size)
            new = stepper.step(here, size)
            error = np.inf if new is None else stepper.error
            if new is None or not error <= 1.0:
                self.size, self.before = size * cut_of_size(error, power), -1.0
                if self.size < self.least:
                    why = "Newton's method finds no step" if new is None else "no step is accurate enough"
                    raise failure(stepper.scheme, here.t, before, why)
                continue
            row = _row(new)
            met = self._met(here, np.array([new.t]), row)
            if met is not None:
                self.size = min(met[1] - here.t, 0.5 * size)
                continue
            new = new if size != left else replace(new, t=stop)
            stepper.renew(new)
            self.size *= change_of_size(error, self.before, power, size / self.size)
            self.before = error
            return _Run(np.array([new.t]), row, stepper.f.shown(new.t, new.q, new.v, new.z)[None], new)


@final
class _Output:
    """Points to hand out of the steps that were taken."""

    def __init__(self, stepper: ImplicitSteps, start: StepState, times: np.ndarray | None) -> None:
        self.stepper, self.model = stepper, stepper.model
        self.left = None if times is None else times[times > start.t]
        self.keeps_forces = not stepper.leaves_states

    @property
    def is_complete(self) -> bool:
        """Whether there is nothing left to hand out."""
        return self.left is not None and len(self.left) == 0

    def of(self, here: StepState, run: _Run, steps: int) -> Iterator[Point]:
        """The points of a run that began at `here`, behind which there are `steps` steps."""
        if len(run.t) == 0:
            return
        if self.left is None:
            q, v, a, _, force = _parts(self.model, run.rows)
            yield run.t, np.hstack([q, v, a, force] if self.keeps_forces else [q, v]), run.shown, steps
            return
        wanted = self.left[self.left <= run.t[-1]]
        self.left = self.left[len(wanted) :]
        if len(wanted):
            rows = np.vstack([_row(here), run.rows])
            yield wanted, *self._within(here, np.append(here.t, run.t), rows, run, wanted), steps

    def _within(
        self, here: StepState, t: np.ndarray, rows: np.ndarray, run: _Run, wanted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """States x and (u, z) at wanted times within steps that end at t in `rows`."""
        q, v, a, _, force = _parts(self.model, rows)
        x = between(self.model, t, q, v, a, wanted)
        f = self.stepper.f
        z = _states_of_controller(f, t, here, run, wanted)
        if f.is_feedback:
            known = np.array([f.shown(*row) for row in zip(wanted.tolist(), x[0], x[1], z)])
        else:
            known = f.shown_over(wanted)
        if not self.keeps_forces:
            return np.hstack(x[:2]), known
        part = np.clip(np.searchsorted(t, wanted) - 1, 0, len(t) - 2)
        s = ((wanted - t[part]) / (t[part + 1] - t[part]))[:, None]
        return np.hstack([*x, (1.0 - s) * force[part] + s * force[part + 1]]), known


def _states_of_controller(
    f: StateDerivative, t: np.ndarray, here: StepState, run: _Run, wanted: np.ndarray
) -> np.ndarray:
    """z of a continuous controller within one step, by its rates at both ends; nothing where there is none."""
    if len(here.z) == 0:
        return np.zeros((len(wanted), 0))
    h, last = t[-1] - t[0], run.last
    slopes = [h * f.law.rate(state.t, state.q, state.v, state.z) for state in (here, last)]
    return cubic(((wanted - t[0]) / h)[:, None], here.z, last.z, *slopes)


def _row(s: StepState) -> np.ndarray:
    """A state as a row (1, ...)."""
    return np.concatenate([s.q, s.v, s.a, s.ahead, s.force])[None]


def _parts(model: Model, rows: np.ndarray) -> list[np.ndarray]:
    """q, v, a, â and λ of rows."""
    return np.split(rows, np.cumsum([model.nq, model.nv, model.nv, model.nv]), axis=-1)


def failure(scheme: Scheme, t: float, steps: int, why: str) -> ConvergenceError:
    """What to raise where the steps of a scheme end for want of a shorter one."""
    return ConvergenceError(f"simulation by {scheme.name} stopped at t={t:.6g} s after {steps} steps: {why}; try "
                            "a smaller dt, a looser rtol, smoother inputs, damping, or more Gauss points")  # fmt: skip
