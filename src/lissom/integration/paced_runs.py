"""Adaptive implicit steps that a kernel takes by itself, as paced_steps says, and what stands in its buffers before.

A launch ends at a stop, where it has left as many steps as there is room for, where no step is found, or where steps
were planned ahead and another size is wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from lissom.dynamics.loads import laws_of_time, load_table, steps_of_inputs
from lissom.integration.fused_runs import (
    LONGEST_RUN,
    program_of,
    put_inputs,
    put_program,
    put_start,
    put_times,
    room_for,
    roomy_workspace,
    stage_times,
    state_after,
)
from lissom.integration.inputs import Constant, Formulas, knots_and_pieces, over
from lissom.integration.paced_steps import BEFORE, EVENT, IS_PLANNED, LEAST, NEXT, NOW, STOP
from lissom.integration.schemes import Scheme, StepState
from lissom.integration.state import StateDerivative
from lissom.integration.step_rows import DONE, EVALUATIONS, MATRICES, NEW_FIRST, SLOW_IS_ENOUGH, STEADY, scheme_numbers
from lissom.integration.step_sizes import size_towards
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_CROWDED

_SOON, _ASKED = 1e-12, 64  # part of the time left at which laws are asked first, and how often
_FIRST_RUN = 1  # steps planned at the start and after a change of their size, which mostly comes again soon


@final
class PacedSteps:
    """Runs of adaptive steps of one scheme for one robot; counts evaluations in `f`.

    Fields:
        size: of the next step [s]. before: the error of the last one, below zero where that was not kept. event: when
        the next one is, if it is not over [s]. is_stuck: whether the last run found no step that is long enough.
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
        self.size, self.before, self.event, self.is_stuck, self.length = least, 1.0, 0.0, False, _FIRST_RUN
        self.room: tuple[int, int] | None = None
        self.w: Workspace | None = None  # its own, from the first step on
        self.last: StepState | None = None
        self.new_first = self.slow_is_enough = 0
        feed = f.law.feed
        self.drives = steps_of_inputs(model, feed.programs) if isinstance(feed, Formulas) else []
        self.program = program_of(model, self.drives)

    @staticmethod
    def can_run(model: Model, f: StateDerivative) -> bool:
        """Whether nothing that follows the state comes from Python."""
        return not model.calls_python and not f.is_feedback

    def run(self, here: StepState, stop: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, StepState]:
        """Steps towards `stop`: the times reached (n,), rows (q, v, a, â, λ), (u, z) there, and the last state."""
        model = self.model
        inputs = None if laws_of_time(model) is None else _polynomials(self.f, model.nu)
        w = self._with_room_for(1 if inputs is None else len(inputs[0]))
        self._put(w, here, stop)
        if inputs is None:
            self._plan(w, here, stop)
        else:
            self._put_inputs(w, *inputs)
            put_program(w, self.program)
        w.run()
        host = w.host
        if w.status[0] == STATUS_CROWDED:
            w.raise_for_status()
        counts = host["counts"][0].tolist()
        done, self.new_first, self.slow_is_enough = counts[DONE], counts[NEW_FIRST], counts[SLOW_IS_ENOUGH]
        self.f.evaluations += counts[EVALUATIONS]
        self.f.jacobians += counts[MATRICES]
        self.size, self.before, self.event = host["pace"][0, [NEXT, BEFORE, EVENT]].tolist()
        self.is_stuck = self.size < self.least
        self.length = min(2 * self.length, LONGEST_RUN) if done == self.length else _FIRST_RUN
        times, rows = host["times"][0, :done].copy(), host["out"][0].reshape(LONGEST_RUN, -1)[:done].copy()
        if done == 0:
            if self.is_stuck and inputs is not None:
                ask_laws(model, self.f.law.feed, here.t, stop)
            return times, rows, np.zeros((0, 0)), here
        h, is_steady = float(host["h"][0, done]), bool(counts[STEADY])
        self.last = state_after(model, here, rows, float(times[-1]), h, is_steady)
        return times, rows, self.f.shown_over(times), self.last

    def _with_room_for(self, knots: int) -> Workspace:
        """Its buffers; others than before, without a matrix, where these have other room."""
        room = room_for(self.model, knots, len(self.drives))
        if self.w is None or room != self.room:
            self.w, self.room, self.last = roomy_workspace(self.model, 1, *room), room, None
        return self.w

    def _put(self, w: Workspace, here: StepState, stop: float) -> None:
        """Fill in where a run starts."""
        has_matrix, self.last = self.last is here, None
        put_start(w, self.numbers, here, LONGEST_RUN, has_matrix, (self.new_first, self.slow_is_enough))
        pace = w.host["pace"][0]
        pace[STOP], pace[NOW], pace[NEXT], pace[LEAST] = stop, here.t, self.size, self.least
        pace[BEFORE], pace[EVENT] = self.before, self.event

    def _put_inputs(self, w: Workspace, knots: np.ndarray, pieces: np.ndarray) -> None:
        """Fill in what acts, where the kernel knows it at all times."""
        host = w.host
        host["knots"][:], host["pieces"][0, : len(pieces)] = np.inf, pieces
        host["knots"][: len(knots)] = knots

    def _plan(self, w: Workspace, here: StepState, stop: float) -> None:
        """Fill in the next steps, were they all of the same size, and what acts at the ends of their stages."""
        host, ends = w.host, [here.t]
        stop = min(stop, self.event) if self.event > here.t else stop
        while len(ends) <= self.length and ends[-1] < stop:
            left = stop - ends[-1]
            size = size_towards(left, self.size)
            ends.append(stop if size == left else ends[-1] + size)
        n = len(ends) - 1
        host["span"][0], host["pace"][0, IS_PLANNED] = (0, n, 0), 1.0
        host["h"][0, 1 : n + 1] = np.diff(ends)
        times, stages = stage_times(self.scheme, here.t, np.array(ends[1:])), len(self.scheme.stages)
        put_inputs(w, self.f.shown_over(np.array(times))[None, :, : self.model.nu], stages)
        put_times(self.model, w, times)


def _polynomials(f: StateDerivative, nu: int) -> tuple[np.ndarray, np.ndarray] | None:
    """What drives the robot until the next sample of a controller, where that is polynomials of time; zeros for
    formulas."""
    function = f.law.feed if f.held is None else Constant(f.held)
    return None if function is None else knots_and_pieces(function, nu)


def ask_laws(model: Model, feed: Callable[[float], np.ndarray] | None, start: float, stop: float) -> None:
    """Let Python evaluate what drives a robot behind a time at which no step is found: where the kernel met a number
    that is not finite, Python says of what.

    Raises:
        ModelError, ShapeError: that.
    """
    times = start + (stop - start) * np.geomspace(_SOON, 1.0, _ASKED)
    if feed is not None:
        over(feed, times)
    load_table(model, times.tolist())
    if model.n_motions:
        model.motions_over(times)
