"""Adaptive steps of many motions of one robot at once, in kernels that are split over the cores.

Each motion takes steps of its own size, as long as a launch has room for what they leave; those that have reached the
end wait for the others. States at the wanted times come from those at the ends of steps (dense_output). Each motion is
the same to the last bit as it is alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from lissom.dynamics.loads import laws_of_time, steps_of_inputs
from lissom.integration.adaptive_steps import FIRST_STEP, LEAST_STEP, NO_STEP, failure
from lissom.integration.batches import Batch, MotionFailed, present_anchors_of, put_anchors_at
from lissom.integration.dense_output import within
from lissom.integration.fused_runs import program_of, put_program, states_follow, steps_workspace
from lissom.integration.inputs import InputRows, input_function
from lissom.integration.paced_runs import ask_laws
from lissom.integration.paced_steps import BEFORE, LEAST, NEXT, NOW, STOP
from lissom.integration.step_rows import DONE, EVALUATIONS, MATRICES, scheme_numbers
from lissom.model.common import acts_alike
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_CROWDED


def what_parts(model: Model, is_implicit: bool, inputs: InputRows, has_controller: bool, has_steps: bool) -> str:
    """Why the motions of a batch, with steps of a given size or not, run one after the other; nothing where they run
    together."""
    if has_controller:
        return "a controller acts"
    if not is_implicit:
        return "the method is none of the implicit steps"
    if model.calls_python:
        return "Python is asked at every evaluation"
    if not acts_alike(model):
        return "loads, motions or currents of the models differ"
    if not (has_steps or ManyPacedMotions.can_run(model, inputs)):
        return "the kernel cannot know inputs, loads, motions or currents at all times"
    return ""


@final
class ManyPacedMotions:
    """The motions of a batch.

    Args:
        batch: what they are; their inputs are polynomials of time, or formulas.
    Fields:
        rows, shown, reached: as those of ManyMotions.
    """

    def __init__(self, batch: Batch) -> None:
        self.model, self.scheme, self.times, self.n = batch.model, batch.scheme, batch.times, len(batch.q)
        model, times, duration = batch.model, batch.times, batch.duration
        knots, pieces = batch.inputs.polynomials()
        drives = steps_of_inputs(model, batch.inputs.programs)
        self.inputs, self.w = batch.inputs, steps_workspace(model, self.n, len(knots), len(drives))
        put_program(self.w, program_of(model, drives))
        host = self.w.host
        host["numbers"][:] = scheme_numbers(batch.scheme, batch.rtol, batch.atol, batch.projects, None)
        host["counts"][:] = 0
        host["pause"][:], host["h"][:] = 0, 0.0
        host["knots"][:], host["pieces"][:, : len(knots)] = np.inf, pieces
        host["knots"][: len(knots)] = knots
        put_anchors_at(batch, self.w)
        self.leaves_states = states_follow(model, batch.projects, by_error=True)
        self.width = model.nq + 3 * model.nv + model.n_rows
        self.shown = np.broadcast_to(batch.inputs.at(times.tolist()), (self.n, len(times), model.nu)).copy()
        self.steps, self.given = np.zeros(self.n, dtype=int), np.ones(self.n, dtype=int)
        self.pace = host["pace"]
        self.pace[:] = 0.0
        self.pace[:, [STOP, NEXT, LEAST, BEFORE]] = duration, FIRST_STEP * duration, LEAST_STEP * duration, 1.0
        self.rows = np.zeros((self.n, len(times), self._row(np.zeros((1, self.width))).shape[1]))
        begun = batch.start(self.w, lambda t: self.shown[:, 0], None)
        self.last = np.hstack([begun[name] for name in ("q", "v", "a", "ahead", "force")])
        self.rows[:, 0] = self._row(self.last)

    @staticmethod
    def can_run(model: Model, inputs: InputRows) -> bool:
        """Whether the kernel knows all that acts, at all times."""
        return inputs.are_known and laws_of_time(model) is not None

    def _row(self, states: np.ndarray) -> np.ndarray:
        """What is handed out of states (n, width), (q, v, a, â, λ)."""
        nq, nv = self.model.nq, self.model.nv
        if self.leaves_states:
            return states[:, : nq + nv]
        return np.delete(states, np.s_[nq + 2 * nv : nq + 3 * nv], axis=1)

    @property
    def anchors(self) -> np.ndarray:
        """Where contacts hold on now, (n, n_pairs, 6)."""
        return present_anchors_of(self.model, self.w, self.n)

    @property
    def reached(self) -> int:
        """Times that all motions have reached."""
        return int(self.given.min())

    def counted(self, which: slice) -> tuple[int, int, int]:
        """Steps, evaluations and matrices of some motions, together."""
        counts = self.w.host["counts"][which].sum(axis=0)
        return int(self.steps[which].sum()), int(counts[EVALUATIONS]), int(counts[MATRICES])

    def run(self, advance: Callable[[float], None]) -> None:
        """Take all the steps.

        Raises:
            MotionFailed: the steps of a motion became too short; what has been reached stands in the fields.
        """
        host, behind = self.w.host, np.arange(self.n)
        room = host["times"].shape[1]
        while len(behind):
            began = self.pace[:, NOW].copy()
            host["counts"][:, DONE], host["span"][:] = 0, 0
            host["span"][behind, 1] = room
            self.w.run()
            if (self.w.status[behind] == STATUS_CROWDED).any():
                self.w.raise_for_status()
            self._take(behind, began)
            stuck = behind[self.pace[behind, NEXT] < self.pace[behind, LEAST]]
            if len(stuck):
                i = int(stuck[0])
                own = input_function(self.model, self.inputs.of(i))
                ask_laws(self.model.one(i, self.n), own, float(self.pace[i, NOW]), float(self.pace[i, STOP]))
                text = failure(self.scheme, float(self.pace[i, NOW]), int(self.steps[i]), NO_STEP)
                raise MotionFailed(str(text), i, int(self.given[i]))
            over = (self.given[behind] == len(self.times)) | (self.pace[behind, NOW] >= self.pace[behind, STOP])
            behind = behind[~over]
            advance(float(self.pace[:, NOW].min()))

    def _take(self, behind: np.ndarray, began: np.ndarray) -> None:
        """What the steps of a launch have left, at the wanted times within them."""
        host = self.w.host
        done, ends = host["counts"][:, DONE], host["times"]
        left = host["out"].reshape(self.n, ends.shape[1], self.width)
        who, which, before, end = [], [], [], []
        for i in behind[done[behind] > 0].tolist():
            t = np.append(began[i], ends[i, : done[i]])
            first = self.given[i]
            wanted = self.times[first : np.searchsorted(self.times, t[-1], side="right")]
            k = np.searchsorted(t, wanted, side="left") - 1
            who.append(np.full(len(wanted), i))
            which.append(first + np.arange(len(wanted)))
            before.append(k)
            end.append(t[np.stack([k, k + 1], axis=1)])
            self.given[i] += len(wanted)
        if who:
            motions, wanted, k = (np.concatenate(x) for x in (who, which, before))
            self._put(left, motions, wanted, k, np.concatenate(end))
        moved = behind[done[behind] > 0]
        self.steps[behind] += done[behind]
        self.last[moved] = left[moved, done[moved] - 1]
        host["h"][moved, 0] = host["h"][moved, done[moved]]

    def _put(self, left: np.ndarray, who: np.ndarray, which: np.ndarray, before: np.ndarray, ends: np.ndarray) -> None:
        """The rows of motions `who` at wanted times `which`, within their steps behind the ones `before`, which begin
        and end at times (n, 2)."""
        if not len(who):
            return
        nq, nv = self.model.nq, self.model.nv
        start = np.where((before == 0)[:, None], self.last[who], left[who, np.maximum(before - 1, 0)])
        stop = left[who, before]
        parts = [np.split(x, np.cumsum([nq, nv, nv, nv]), axis=1) for x in (start, stop)]
        q, v, a = within(self.model, self.times[which], ends, parts[0][:3], parts[1][:3])
        s = ((self.times[which] - ends[:, 0]) / (ends[:, 1] - ends[:, 0]))[:, None]
        force = (1.0 - s) * parts[0][4] + s * parts[1][4]
        self.rows[who, which] = self._row(np.hstack([q, v, a, parts[1][3], force]))
