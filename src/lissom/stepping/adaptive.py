"""Adaptive steps of one motion. The kernel takes them if it can evaluate all loads.

The step sizes follow (1) of step_sizes. A launch ends in four cases: at a stop; when the buffers are full; when no step
is found; or when steps were planned ahead and another size is needed. If Python acts between the stages, single steps
follow the same law.

If a step passes through an obstacle, it is repeated up to a time at which the ball is inside. The kernel searches for
such contacts. If it cannot evaluate the prescribed motion of an obstacle, or if it pauses, the search follows after the
step.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple, final

import numpy as np

from lissom.dynamics.contacts import largest_depth, present_anchors, put_anchors
from lissom.dynamics.loads import laws_of_time, load_table, steps_of_inputs
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.stepping.contact_search import ContactSearch
from lissom.stepping.driver import FIRST_STEP, LEAST_STEP, NO_STEP, Motions, failure
from lissom.stepping.python_stages import ImplicitSteps
from lissom.stepping.schemes import Scheme, StepState
from lissom.stepping.state import FunctionOfTime, StateDerivative, constant_polynomials
from lissom.stepping.step_kernel import (
    LONGEST_RUN,
    Room,
    law_room,
    program_of,
    put_inputs,
    put_law,
    put_program,
    put_start,
    put_times,
    room_for,
    stage_times,
    state_after,
    workspace_with_room,
)
from lissom.stepping.step_rows import DONE, EVALUATIONS, MATRICES, NEW_FIRST, SLOW_IS_ENOUGH, STEADY, scheme_numbers
from lissom.stepping.step_sizes import (
    BEFORE,
    CUT,
    EVENT,
    IS_PLANNED,
    LEAST,
    NEXT,
    NOW,
    STOP,
    change_of_size,
    cut_of_size,
    of_numbers,
    size_towards,
)

_size_towards, _change_of_size, _cut_of_size = map(of_numbers, (size_towards, change_of_size, cut_of_size))
_CAREFUL = 4  # number of single steps after a run that passed through an obstacle


class AdaptiveRun(NamedTuple):
    """Steps that were taken.

    Fields:
        t: ends of the steps (n,) [s].
        rows: states (q, v, a, â, λ) there.
        shown: (u, z) there.
        last: the last state.
    """

    t: np.ndarray
    rows: np.ndarray
    shown: np.ndarray
    last: StepState


_SOON, _ASKED = 1e-12, 64  # laws are evaluated at this many times, from this fraction of the remaining time on
_FIRST_PLAN = 1  # number of planned steps at the start and after a change of size, which usually changes again


@final
class AdaptiveKernelSteps:
    """Takes adaptive steps of one scheme for one robot, several in a launch. It counts evaluations of the dynamics in
    the `StateDerivative` that it is made with.

    Fields:
        size: size of the next step [s].
        before: error of the last step over the tolerance; negative if the step was rejected.
        event: time of the next known event, at which a step must end [s]; a time in the past if there is none.
        is_stuck: whether the last launch found no step above the smallest size.
    """

    def __init__(
        self,
        model: Model,
        f: StateDerivative,
        scheme: Scheme,
        rtol: float,
        atol: tuple[float, float],
        project: bool,
        least: float,
    ) -> None:
        self.model, self.f, self.scheme, self.least = model, f, scheme, least
        self.numbers = scheme_numbers(scheme, rtol, atol, project and model.n_rows > 0, None)
        self.size, self.before, self.event, self.is_stuck, self.length = least, 1.0, 0.0, False, _FIRST_PLAN
        self.room: Room | None = None
        self.motions: Motions | None = None
        self.last: StepState | None = None
        self.new_first = self.slow_is_enough = 0
        self.drives = [] if f.law.feed is None else steps_of_inputs(model, f.law.feed.programs)
        self.program = program_of(model, self.drives)

    @property
    def w(self) -> Workspace | None:
        """Buffers of the steps; None before the first step."""
        return None if self.motions is None else self.motions.w

    @w.setter
    def w(self, w: Workspace) -> None:
        self.motions = Motions(self.model, 1, self.scheme, self.least, w=w, numbers=self.numbers)

    def run(self, here: StepState, stop: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, StepState]:
        """Take steps towards `stop` [s]. Returns their ends (n,), states (q, v, a, â, λ) and (u, z) there, and the last
        state."""
        model = self.model
        inputs = None if laws_of_time(model) is None else _polynomials(self.f, model.nu)
        motions = self._with_room_for(1 if inputs is None else len(inputs[0]))
        w = motions.w
        assert w is not None
        self._put(w, here, stop)
        if inputs is None:
            self._plan(w, here, stop)
        else:
            self._put_inputs(w, *inputs)
            put_program(w, self.program)
        w.host["deepest"][:] = 0.0
        motions.take_adaptive(motions.all, None if inputs is not None else int(w.host["span"][0, 1]))
        host = w.host
        counts = host["counts"][0].tolist()
        done, self.new_first, self.slow_is_enough = counts[DONE], counts[NEW_FIRST], counts[SLOW_IS_ENOUGH]
        self.f.evaluations += counts[EVALUATIONS]
        self.f.jacobians += counts[MATRICES]
        self.f.deepest = max(self.f.deepest, motions.deepest)
        self.size, self.before, self.event = host["adaptive"][0, [NEXT, BEFORE, EVENT]].tolist()
        self.is_stuck = self.size < self.least
        self.length = min(2 * self.length, LONGEST_RUN) if done == self.length else _FIRST_PLAN
        times, rows = host["times"][0, :done].copy(), host["out"][0].reshape(LONGEST_RUN, -1)[:done].copy()
        if done == 0:
            if self.is_stuck and inputs is not None:
                raise_if_not_finite(model, self.f.law.feed, here.t, stop)
                self.f.inputs(here.t, here.q, here.v, here.z)
            return times, rows, np.zeros((0, 0)), here
        h, is_steady = float(host["h"][0, done]), bool(counts[STEADY])
        self.last = state_after(model, here, rows, float(times[-1]), h, is_steady)
        if self.f.is_feedback:
            return times, rows, self.f.shown_rows(times, rows[:, : model.nq + model.nv]), self.last
        return times, rows, self.f.shown_over(times), self.last

    def _with_room_for(self, knots: int) -> Motions:
        """The driver with room for `knots` knots of inputs. If its size changes, a new driver without a matrix is
        made."""
        has_law = self.f.has_native_law
        room = law_room(self.model) if has_law else room_for(self.model, knots, len(self.drives))
        if self.motions is None or room != self.room:
            self.w, self.room, self.last = workspace_with_room(self.model, 1, *room), room, None
        assert self.motions is not None and self.motions.w is not None
        if has_law:
            put_law(self.motions.w, self.f.law.native)
        return self.motions

    def _put(self, w: Workspace, here: StepState, stop: float) -> None:
        """Write the start of a run to the buffers."""
        has_matrix, self.last = self.last is here, None
        put_start(w, self.numbers, here, LONGEST_RUN, has_matrix, (self.new_first, self.slow_is_enough))
        adaptive = w.host["adaptive"][0]
        adaptive[STOP], adaptive[NOW], adaptive[NEXT], adaptive[LEAST] = stop, here.t, self.size, self.least
        adaptive[BEFORE], adaptive[EVENT] = self.before, self.event

    def _put_inputs(self, w: Workspace, knots: np.ndarray, pieces: np.ndarray) -> None:
        """Write inputs to the buffers that the kernel can evaluate at all times."""
        host = w.host
        host["knots"][:], host["pieces"][0, : len(pieces)] = np.inf, pieces
        host["knots"][: len(knots)] = knots

    def _plan(self, w: Workspace, here: StepState, stop: float) -> None:
        """Write a plan of steps of one size to the buffers, with loads and inputs at the ends of their stages."""
        host, ends = w.host, [here.t]
        stop = min(stop, self.event) if self.event > here.t else stop
        while len(ends) <= self.length and ends[-1] < stop:
            left = stop - ends[-1]
            size = _size_towards(left, self.size)
            ends.append(stop if size == left else ends[-1] + size)
        n = len(ends) - 1
        host["span"][0], host["adaptive"][0, IS_PLANNED] = (0, n, 0), 1.0
        host["h"][0, 1 : n + 1] = np.diff(ends)
        times, stages = stage_times(self.scheme, here.t, np.array(ends[1:])), len(self.scheme.stages)
        put_inputs(w, self.f.known_inputs(np.array(times))[None], stages)
        put_times(self.model, w, times)


def _polynomials(f: StateDerivative, nu: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Inputs until the next sample of a controller, as polynomials of time; zeros for expressions; those that are added
    to a law that the kernel evaluates; None for other inputs."""
    if f.constant_u is not None or f.is_feedback:
        return constant_polynomials(f.known_inputs(np.zeros(1))[0])
    return None if f.law.feed is None else f.law.feed.polynomials()


def raise_if_not_finite(model: Model, feed: FunctionOfTime | None, start: float, stop: float) -> None:
    """Evaluate inputs, loads and motions in Python after a time at which no step was found. If a value is not finite,
    the error names its function (the kernel cannot do this).

    Raises:
        ModelError, ShapeError: the value of a function is not finite.
    """
    times = start + (stop - start) * np.geomspace(_SOON, 1.0, _ASKED)
    if feed is not None:
        feed.over(times)
    load_table(model, times.tolist())
    if model.n_motions:
        model.motions_over(times)


@final
class AdaptiveMotion:
    """Adaptive steps of one motion, with as many steps in one launch as possible."""

    def __init__(self, stepper: ImplicitSteps, duration: float) -> None:
        self.stepper, self.model, self.duration = stepper, stepper.model, duration
        self.least, self.size, self.careful = LEAST_STEP * duration, FIRST_STEP * duration, 0
        self.before = 1.0  # error of the last step, negative if it was rejected
        self.search = ContactSearch(stepper.model)
        given = stepper.rtol, stepper.atol, stepper.project, self.least
        self.kernel = AdaptiveKernelSteps(stepper.model, stepper.f, stepper.scheme, *given)
        self.looks_back = stepper.model.n_motions > 0 and laws_of_time(stepper.model) is None

    def steps(self, here: StepState, stop: float, before: int) -> AdaptiveRun:
        """The next steps towards a stop; none if a shorter step must be tried. `before` is the number of steps so far.

        Raises:
            ConvergenceError: the next step would be too short.
        """
        if self.careful > 0 or not Motions.can_run(self.model, self.stepper.f):
            self.careful = max(self.careful - 1, 0)
            return self._single_step(here, stop, before)
        sticks = self.looks_back and self.model.contacts.sticks
        anchors = present_anchors(self.model).copy() if sticks else None
        self.kernel.size, self.kernel.before = self.size, self.before
        run = AdaptiveRun(*self.kernel.run(here, stop))
        self.stepper.forget()
        if self.kernel.is_stuck and len(run.t) == 0:
            raise failure(self.model, self.stepper.scheme, here.t, before, NO_STEP, here.q)
        contact = self._contact(here, run.t, run.rows) if self.looks_back else None
        if contact is None:
            self.size, self.before = self.kernel.size, self.kernel.before
            return run
        k = contact[0]
        if k > 0 and anchors is None:  # the steps before the contact are good
            t = np.append(here.t, run.t)
            last = state_after(self.model, here, run.rows[:k], float(t[k]), float(t[k] - t[k - 1]), is_steady=False)
            self.size, self.careful = last.h, _CAREFUL
            return AdaptiveRun(run.t[:k], run.rows[:k], run.shown[:k], last)
        self.careful = _CAREFUL - 1
        if anchors is not None:  # the anchors after step k are unknown: these steps are taken singly
            put_anchors(self.model, anchors)
            self.careful += k
        return self._single_step(here, stop, before)

    def _contact(self, here: StepState, t: np.ndarray, rows: np.ndarray) -> tuple[int, float] | None:
        """The index of the first step of a run that passed through an obstacle, and the time; None if there is none."""
        if not len(self.model.contacts.pair):
            return None
        q, v, *_ = state_parts(self.model, rows)
        return self.search.first_contact(np.append(here.t, t), np.vstack([here.q, q]), np.vstack([here.v, v]))

    def _single_step(self, here: StepState, stop: float, before: int) -> AdaptiveRun:
        """Take one step. It is shortened until Newton's method converges, the error is small enough, and no obstacle is
        passed."""
        stepper, power = self.stepper, self.stepper.scheme.error_power
        while True:
            left = stop - here.t
            size = _size_towards(left, self.size)
            new = stepper.step(here, size)
            error = stepper.error
            if new is None or not error <= 1.0:
                self.size, self.before = size * (CUT.value if new is None else _cut_of_size(error, power)), -1.0
                if self.size < self.least:
                    why = "Newton's method finds no step" if new is None else "no step is accurate enough"
                    raise failure(self.model, stepper.scheme, here.t, before, why, here.q)
                continue
            row = state_row(new)
            contact = self._contact(here, np.array([new.t]), row)
            if contact is not None:
                self.size = min(contact[1] - here.t, 0.5 * size)
                continue
            new = new if size != left else replace(new, t=stop)
            stepper.renew(new)
            stepper.f.deepest = max(stepper.f.deepest, largest_depth(self.model, new.q[None]))
            self.size *= _change_of_size(error, self.before, power, size / self.size)
            self.before = error
            return AdaptiveRun(np.array([new.t]), row, stepper.f.shown(new.t, new.q, new.v, new.z)[None], new)


def state_row(s: StepState) -> np.ndarray:
    """A state as a row (1, ...)."""
    return np.concatenate([s.q, s.v, s.a, s.ahead, s.force])[None]


def state_parts(model: Model, rows: np.ndarray) -> list[np.ndarray]:
    """q, v, a, â and λ of the rows of states."""
    ends = accumulate((model.nq, model.nv, model.nv, model.nv, model.n_rows), initial=0)
    return [rows[..., begin:end] for begin, end in pairwise(ends)]
