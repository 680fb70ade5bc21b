"""Fixed steps of many motions of one robot at once, in kernels that are split over the cores.

All motions have the same times. Their steps are taken in windows, one launch for a window. A step at which the
iteration of a motion fails is cut, as for one motion, in further launches, along with what others have left to do in
the window. Each motion is the same to the last bit as it is alone: its state does not depend on the others, and its
matrix is kept from step to step where it is kept there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import final

import numpy as np

from lissom.dynamics.contacts import contact_anchors
from lissom.integration.adaptive_steps import LEAST_STEP, failure
from lissom.integration.fused_runs import (
    ends_of_stages,
    put_inputs,
    put_times,
    stage_times,
    states_follow,
    steps_workspace,
)
from lissom.integration.inputs import InputRows
from lissom.integration.schemes import ORDER_SHARE, Scheme
from lissom.integration.starts import starting_accelerations
from lissom.integration.step_control import Watch, sparse_states
from lissom.integration.step_rows import MOST_STAGES, scheme_numbers
from lissom.integration.step_schedule import StepSchedule
from lissom.launch.workspace import Workspace
from lissom.model.model import Model

NAMES = ("q", "v", "a", "ahead", "before", "force", "force_before")
_DONE, _EVALUATIONS, _MATRICES, _HAS_MATRIX = range(4)  # places in `counts` of the kernel


@final
@dataclass(frozen=True)
class Batch:
    """Motions of one robot that run together.

    Fields:
        q, v: starts on the loops and on prescribed motions, (n, nq), (n, nv), of two motions at least. inputs: of all.
        times: wanted ones, from 0 on. The others are as for one motion.
    """

    model: Model
    scheme: Scheme
    q: np.ndarray
    v: np.ndarray
    inputs: InputRows
    times: np.ndarray
    duration: float
    rtol: float
    atol: tuple[float, float]
    project_velocity: bool

    def some(self, which: slice) -> Batch:
        """Some of its motions."""
        model = self.model.some(which, len(self.q))
        return replace(self, model=model, q=self.q[which], v=self.v[which], inputs=self.inputs.some(which))

    @property
    def projects(self) -> bool:
        """Whether steps end with velocities that loops allow."""
        return self.project_velocity and self.model.n_rows > 0

    def start(self, w: Workspace, inputs: Callable[[float], np.ndarray], dt: float | None) -> dict[str, np.ndarray]:
        """Put the states at t = 0 into buffers: (q, v, a, â, λ), and the step h that these belong to."""
        z = np.zeros((len(self.q), 0))
        a, ahead, force, h = starting_accelerations(
            self.model, self.scheme, self.q, self.v, z, lambda t, *x: inputs(t), lambda t, *x: z, dt
        )
        begun = {"q": self.q, "v": self.v, "a": a, "ahead": ahead, "force": force}
        for name, value in (begun | {"before": a, "force_before": force}).items():
            w.host[name][:] = value
        return begun | {"h": h}


def put_anchors_at(batch: Batch, w: Workspace) -> None:
    """Put into buffers where contacts of the motions hold on at t = 0."""
    if "anchor" in w.host:
        for i, one in enumerate(batch.model.of_rows(len(batch.q))):
            w.host["anchor"][i] = contact_anchors(one, batch.q[i], batch.v[i]).reshape(-1, 3)


def present_anchors_of(model: Model, w: Workspace, n: int) -> np.ndarray:
    """Where contacts of n motions hold on now, (n, n_pairs, 6)."""
    if "anchor" in w.host:
        return w.host["anchor"].reshape(n, -1, 6).copy()
    return np.array([one.surroundings.anchors for one in model.of_rows(n)])


@final
class MotionFailed(Exception):
    """The steps of one motion of a batch became too short; its place in the batch, and the times it has reached."""

    def __init__(self, message: str, motion: int, reached: int) -> None:
        super().__init__(message)
        self.motion, self.reached = motion, reached


@final
class ManyMotions:
    """The motions of a batch.

    Args:
        batch: what they are. dt: their steps [s].
    Fields:
        rows: states x at the times, (n, n_times, ...), (q, v, a, λ of loops), or (q, v) where a and λ follow from
        these. shown: inputs there. reached: times that all motions have reached. steps: of each motion.
    """

    def __init__(self, batch: Batch, dt: float) -> None:
        self.model, self.scheme, self.inputs, self.n = batch.model, batch.scheme, batch.inputs, len(batch.q)
        model, times, self.duration = batch.model, batch.times, batch.duration
        plan = StepSchedule(times, batch.duration, np.inf, dt)
        self.times, self.ends, self.wanted = times, plan.ends(0, len(plan)), plan.wanted(0, len(plan))
        self.w = steps_workspace(model, self.n)
        host = self.w.host
        host["numbers"][:] = scheme_numbers(batch.scheme, batch.rtol, batch.atol, batch.projects, ORDER_SHARE)
        host["counts"][:] = 0
        host["pause"][:], host["pace"][:] = 0, 0.0  # steps are given, whatever ran here before
        self.steps = np.zeros(self.n, dtype=int)
        self.watches = [Watch(one) for one in model.of_rows(self.n)] if len(model.surroundings.pair) else []
        parts = np.cumsum([0, model.nq, model.nv, model.nv, model.nv, model.n_rows]).tolist()
        self.parts = dict(zip(("q", "v", "a", "ahead", "force"), (slice(*ends) for ends in pairwise(parts))))
        self.names = ("q", "v") if states_follow(model, batch.projects) else ("q", "v", "a", "force")
        width = sum(self.parts[name].stop - self.parts[name].start for name in self.names)
        self.rows = np.zeros((self.n, len(times), width))
        self.shown = np.zeros((self.n, len(times), model.nu))
        self.reached = 1
        put_anchors_at(batch, self.w)
        begun = batch.start(self.w, lambda t: self._inputs([t])[:, 0], dt)
        host["h"][:, 0] = begun["h"]
        self.rows[:, 0] = np.concatenate([begun[name] for name in self.names], axis=1)
        self.shown[:, 0] = self._inputs([0.0])[:, 0]

    def _inputs(self, times: list[float]) -> np.ndarray:
        """Inputs (n, n_times, nu) of all motions."""
        rows = self.inputs.at(times)
        return np.broadcast_to(rows, (self.n, *rows.shape[1:]))

    @property
    def anchors(self) -> np.ndarray:
        """Where contacts hold on now, (n, n_pairs, 6)."""
        return present_anchors_of(self.model, self.w, self.n)

    def run(self, advance: Callable[[float], None]) -> None:
        """Take all the steps.

        Raises:
            MotionFailed: the steps of a motion became too short; what has been reached stands in the fields.
        """
        longest = self.w.host["inputs"].shape[1]
        for first in range(0, len(self.ends), longest):
            ends = self.ends[first : first + longest]
            self._take(first, ends)
            advance(float(ends[-1]))

    def counted(self, which: slice) -> tuple[int, int, int]:
        """Steps, evaluations and matrices of some motions, together."""
        counts = self.w.host["counts"][which].sum(axis=0)
        return int(self.steps[which].sum()), int(counts[_EVALUATIONS]), int(counts[_MATRICES])

    def _take(self, first: int, ends: np.ndarray) -> None:
        """The steps of one window, and what they leave at the wanted times."""
        w, many, start = self.w, len(ends), float(self.ends[first - 1]) if first else 0.0
        host = w.host
        times = stage_times(self.scheme, start, ends)
        put_times(self.model, w, times)
        put_inputs(w, self._inputs(times), len(self.scheme.stages))
        host["h"][:, 1 : many + 1] = np.diff(ends, prepend=start)
        host["counts"][:, _DONE], host["span"][:] = 0, (0, many, 0)
        begun = {name: host[name].copy() for name in NAMES}
        cuts = _Cuts(self, first, np.append(start, ends), {name: x.copy() for name, x in begun.items()})
        behind = np.arange(self.n)
        while len(behind):
            w.run()
            host["span"][behind, 0] = many  # those that are there stay there
            behind = cuts.after(behind)
        self._watch(np.append(start, ends), begun)
        host["h"][:, 0] = host["h"][:, many]
        self.steps += many
        self.keep(slice(None), first, many)

    def left(self) -> np.ndarray:
        """(q, v, a, â, λ) after each step of the window, (n, longest, ...)."""
        rows = self.w.host["out"]
        return rows.reshape(len(rows), -1, self.parts["force"].stop)

    def _watch(self, t: np.ndarray, begun: dict[str, np.ndarray]) -> None:
        """Look for what the steps of the window went through."""
        if not self.watches:
            return
        left, few = self.left(), sparse_states(len(t))
        q, v = (np.concatenate([begun[name][:, None], left[:, few[1:] - 1, self.parts[name]]], axis=1)
                for name in ("q", "v"))  # fmt: skip
        for i, watch in enumerate(self.watches):
            if not (watch.told or watch.lookout.is_clear(t[few], q[i], v[i])):
                rows = left[i, : len(t) - 1]
                watch.passed(t, *(np.vstack([begun[name][i], rows[:, self.parts[name]]]) for name in ("q", "v")))

    def keep(self, motions: slice, first: int, many: int) -> None:
        """Take what `many` steps of the window have left at the wanted times."""
        at = np.flatnonzero(self.wanted[first : first + many])
        to, start = slice(self.reached, self.reached + len(at)), 0
        if len(at) and at[-1] - at[0] + 1 == len(at):
            at = slice(int(at[0]), int(at[-1]) + 1)  # mostly so, and many times as fast to copy
        for part in (self.parts[name] for name in self.names):
            stop = start + part.stop - part.start
            self.rows[motions, to, start:stop] = self.left()[motions, at, part]
            start = stop
        last = (len(self.scheme.stages) - 1) * self.model.nu
        self.shown[motions, to] = self.w.host["inputs"][motions, at, last : last + self.model.nu]
        self.reached = to.stop


@final
class _Cuts:
    """The steps of one window that are taken in parts, as `cut_step` of step_control does.

    Fields, by motion:
        state: the last one that is known to be good, but for what stands in the rows that steps since have left.
        step: the one of the window that begins there, or that is being cut. parts: taken of it. size: of the next part,
        0 where none is cut. t, until: where the part at hand begins and ends. is_last: whether it ends the step.
    """

    def __init__(self, motions: ManyMotions, first: int, t: np.ndarray, state: dict[str, np.ndarray]) -> None:
        self.motions, self.host, self.first, self.times, self.state = motions, motions.w.host, first, t, state
        self.step, self.parts = np.zeros((2, motions.n), dtype=int)
        self.t, self.until, self.size = np.zeros((3, motions.n))
        self.is_last = np.zeros(motions.n, dtype=bool)

    def after(self, behind: np.ndarray) -> np.ndarray:
        """Look at what a launch has left of the motions that took part in it, and prepare the next one; those that have
        something left to do."""
        done, is_cut = self.host["counts"][behind, _DONE], self.size[behind] > 0.0
        is_over, has_moved = done == len(self.times) - 1, done > self.step[behind]
        self._taken(behind[is_cut & has_moved])
        self._missed(behind[is_cut & ~has_moved])
        self._begin(behind[~is_cut & ~is_over])
        behind = behind[(self.size[behind] > 0.0) | ~is_over]
        self._prepare(behind[self.size[behind] > 0.0])
        return behind

    def _begin(self, some: np.ndarray) -> None:
        """Begin to cut the step at which motions have stopped: find the state before it."""
        k, left = self.host["counts"][some, _DONE], self.motions.left()
        since = k - self.step[some]
        for name in ("before", "force_before"):
            source = self.motions.parts["a" if name == "before" else "force"]
            later, next_one = some[since > 1], some[since == 1]
            self.state[name][next_one] = self.state["a" if name == "before" else "force"][next_one]
            self.state[name][later] = left[later, k[since > 1] - 2, source]
        moved = some[since > 0]
        for name, part in self.motions.parts.items():
            self.state[name][moved] = left[moved, k[since > 0] - 1, part]
        self.step[some], self.parts[some], self.t[some] = k, 0, self.times[k]
        self.size[some] = 0.25 * (self.times[k + 1] - self.times[k])
        self._restore(some)

    def _restore(self, some: np.ndarray) -> None:
        """Put the last good states back, to go on with a new matrix."""
        for name in NAMES:
            self.host[name][some] = self.state[name][some]
        self.host["counts"][some, _HAS_MATRIX] = 0

    def _missed(self, some: np.ndarray) -> None:
        """Shorten the part that has failed."""
        self.size[some] *= 0.25
        short = some[self.size[some] < LEAST_STEP * self.motions.duration]
        if len(short):
            i, motions = int(short[0]), self.motions
            motions.steps[i] += self.step[i] + self.parts[i]
            motions.keep(slice(i, i + 1), self.first, int(self.step[i]))
            text = failure(motions.scheme, float(self.t[i]), int(motions.steps[i]), "Newton's method finds no step")
            raise MotionFailed(str(text), i, motions.reached)
        self._restore(some)

    def _taken(self, some: np.ndarray) -> None:
        """Go on behind the part that has been taken."""
        host, k = self.host, self.step[some]
        for name in NAMES:
            self.state[name][some] = host[name][some]
        self.parts[some] += 1
        self.t[some] = self.until[some]
        host["h"][some, k] = host["h"][some, k + 1]
        self.size[some] *= 2.0
        over = some[self.is_last[some]]
        self.motions.steps[over] += self.parts[over] - 1
        self.step[over] += 1
        self.size[over] = 0.0
        host["counts"][over, _HAS_MATRIX] = 0
        host["span"][over] = np.stack([self.step[over], np.full(len(over), len(self.times) - 1), 0 * over], axis=1)

    def _prepare(self, some: np.ndarray) -> None:
        """Say how far the next parts go, and what acts at their ends."""
        host, motions, k = self.host, self.motions, self.step[some]
        end = self.times[k + 1]
        left = end - self.t[some]
        is_last = self.size[some] >= left * (1.0 - 1e-9)
        size = np.where(is_last, left, self.size[some])
        self.is_last[some], self.size[some] = size == left, size
        self.until[some] = np.where(size == left, end, self.t[some] + size)
        host["h"][some, k + 1] = self.until[some] - self.t[some]
        host["counts"][some, _DONE] = k
        own = len(host["load"]) // MOST_STAGES - motions.w.buffers.room + some
        host["span"][some] = np.stack([k, k + 1, own - k], axis=1)
        stages, acts = len(motions.scheme.stages), motions.model.n_load_rows + motions.model.n_motions > 0
        times = ends_of_stages(motions.scheme, self.t[some], self.until[some])
        if acts and len(some):
            rows = stages * own[:, None] + np.arange(stages)
            put_times(motions.model, motions.w, times.ravel().tolist(), rows.ravel())
        host["inputs"][some, k, : stages * motions.model.nu] = motions.inputs.each(some, times)
