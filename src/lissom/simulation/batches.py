"""Motions of a batch at once, in kernels that are split over the cores.

Motions with fixed steps have the same times. Their steps are taken in windows, one launch for a window. A step at which
the iteration of a motion fails is cut, as for one motion, in further launches, along with the steps that others have
left in the window. With adaptive steps each motion takes steps of its own size, as long as a launch has room; those
that have reached the end wait for the others. Each motion is the same to the last bit as it is alone: its state does
not depend on the others.

A batch is split in groups, as many as there is room for. Where no Python is called, groups run at once, each on one
core. Otherwise one follows the other, and their launches are split over the cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any, final

import numpy as np

from lissom.dynamics.actuation import warn_of_pushing
from lissom.dynamics.contacts import contact_anchors
from lissom.dynamics.loads import laws_of_time, steps_of_inputs
from lissom.errors import ConvergenceError, of_instance
from lissom.launch.cores import at_once, cores
from lissom.launch.progress import progress_bar
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.model.model_batch import acts_alike
from lissom.model.plausibility import warn_of_motions
from lissom.simulation.implicit_methods import (
    ContactWarning,
    StepSchedule,
    within,
)
from lissom.simulation.inputs import InputRows, input_function
from lissom.simulation.trajectory import Statistics, Trajectory, motion_arrays
from lissom.stepping.adaptive import raise_if_not_finite
from lissom.stepping.driver import FIRST_STEP, LEAST_STEP, NO_STEP, Motions, failure, starting_accelerations
from lissom.stepping.schemes import ORDER_SHARE, Scheme
from lissom.stepping.step_kernel import (
    bytes_of_instance,
    program_of,
    put_program,
    states_follow,
    steps_workspace,
)
from lissom.stepping.step_rows import DONE, EVALUATIONS, MATRICES, scheme_numbers
from lissom.stepping.step_sizes import BEFORE, LEAST, NEXT, NOW, STOP


@final
@dataclass(frozen=True)
class Batch:
    """Motions of one robot in the same launches.

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

    def start(
        self, inputs: Callable[[float], np.ndarray], dt: float | None
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The states at t = 0, (q, v, a, â, λ), and the sizes (n,) of the steps behind them."""
        z = np.zeros((len(self.q), 0))
        a, ahead, force, h = starting_accelerations(
            self.model, self.scheme, self.q, self.v, z, lambda t, *x: inputs(t), lambda t, *x: z, dt
        )
        return {"q": self.q, "v": self.v, "a": a, "ahead": ahead, "force": force}, h


def put_anchors_at(batch: Batch, w: Workspace) -> None:
    """Put into buffers where contacts of the motions hold on at t = 0."""
    if "anchor" in w.host:
        for i, one in enumerate(batch.model.of_rows(len(batch.q))):
            w.host["anchor"][i] = contact_anchors(one, batch.q[i], batch.v[i]).reshape(-1, 3)


def present_anchors_of(model: Model, w: Workspace, n: int) -> np.ndarray:
    """Where contacts of n motions hold on now, (n, n_pairs, 6)."""
    if "anchor" in w.host:
        return w.host["anchor"].reshape(n, -1, 6).copy()
    return np.array([one.contacts.anchors for one in model.of_rows(n)])


@final
class MotionFailed(Exception):
    """The steps of one motion of a batch became too short; its place in the batch, and the times it has reached."""

    def __init__(self, message: str, motion: int, reached: int) -> None:
        super().__init__(message)
        self.motion, self.reached = motion, reached


@final
class FixedBatch:
    """The motions of a batch.

    Args:
        batch: what they are. dt: their steps [s].
    Fields:
        rows: states x at the times, (n, n_times, ...), (q, v, a, λ of loops), or (q, v) where a and λ follow from
        these. shown: inputs there. reached: times that all motions have reached.
    """

    def __init__(self, batch: Batch, dt: float) -> None:
        self.model, self.scheme, self.inputs, self.n = batch.model, batch.scheme, batch.inputs, len(batch.q)
        model, times = batch.model, batch.times
        plan = StepSchedule(times, batch.duration, np.inf, dt)
        self.times, self.ends, self.wanted = times, plan.ends(0, len(plan)), plan.wanted(0, len(plan))
        self.w, least = steps_workspace(model, self.n), LEAST_STEP * batch.duration
        numbers = scheme_numbers(batch.scheme, batch.rtol, batch.atol, batch.projects, ORDER_SHARE)
        self.motions = Motions(model, self.n, batch.scheme, least, w=self.w, numbers=numbers)
        self.warnings = [ContactWarning(one) for one in model.of_rows(self.n)] if len(model.contacts.pair) else []
        self.names = ("q", "v") if states_follow(model, batch.projects) else ("q", "v", "a", "force")
        width = sum(part.stop - part.start for part in (self.motions.parts[name] for name in self.names))
        self.rows = np.zeros((self.n, len(times), width))
        self.shown = np.zeros((self.n, len(times), model.nu))
        self.reached = 1
        put_anchors_at(batch, self.w)
        begun, h = batch.start(lambda t: self._inputs(self.motions.all, np.array([t]))[:, 0], dt)
        self.motions.put(slice(None), begun, h)
        self.rows[:, 0] = np.concatenate([begun[name] for name in self.names], axis=1)
        self.shown[:, 0] = self._inputs(self.motions.all, np.zeros(1))[:, 0]

    def _inputs(self, motions: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Inputs (n, times, nu) of all motions at common times (times,), or of some at times (k, times) of each."""
        if times.ndim > 1:
            return self.inputs.each(motions, times)
        rows = self.inputs.at(times.tolist())
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
        motions = self.motions
        for first in range(0, len(self.ends), motions.longest):
            ends = self.ends[first : first + motions.longest]
            t = np.append(self.ends[first - 1] if first else 0.0, ends)
            motions.advance(t, self._inputs)
            if len(motions.lost):
                i = int(motions.lost[0])
                self.keep(slice(i, i + 1), first, int(motions.reached[i]))
                raise MotionFailed(str(motions.failure(i)), i, self.reached)
            self._warn(t)
            self.keep(slice(None), first, len(ends))
            advance(float(ends[-1]))

    def counted(self, which: slice) -> tuple[int, int, int]:
        """Sums of steps, evaluations and matrices of some motions."""
        counts = self.w.host["counts"][which].sum(axis=0)
        return int(self.motions.steps[which].sum()), int(counts[EVALUATIONS]), int(counts[MATRICES])

    def _warn(self, t: np.ndarray) -> None:
        """Look for balls that went through something during the steps of the window."""
        rows, begun = self.motions.rows(), self.motions.begun
        for i, warning in enumerate(self.warnings):
            parts = ((begun[name][i], rows[i, : len(t) - 1, self.motions.parts[name]]) for name in ("q", "v"))
            warning.check(t, *(np.vstack(part) for part in parts))

    def keep(self, motions: slice, first: int, many: int) -> None:
        """Take what `many` steps of the window have left at the wanted times."""
        at = np.flatnonzero(self.wanted[first : first + many])
        to, start = slice(self.reached, self.reached + len(at)), 0
        if len(at) and at[-1] - at[0] + 1 == len(at):
            at = slice(int(at[0]), int(at[-1]) + 1)  # mostly so, and many times as fast to copy
        for part in (self.motions.parts[name] for name in self.names):
            stop = start + part.stop - part.start
            self.rows[motions, to, start:stop] = self.motions.rows()[motions, at, part]
            start = stop
        last = (len(self.scheme.stages) - 1) * self.model.nu
        self.shown[motions, to] = self.w.host["inputs"][motions, at, last : last + self.model.nu]
        self.reached = to.stop


def reason_to_separate(
    model: Model, is_implicit: bool, inputs: InputRows, has_controller: bool, has_steps: bool
) -> str:
    """Why the motions of a batch, with steps of a given size or not, run one after the other; empty where they run
    at once."""
    if has_controller:
        return "a controller acts"
    if not is_implicit:
        return "the method is none of the implicit steps"
    if model.calls_python:
        return "Python is asked at every evaluation"
    if not acts_alike(model):
        return "loads, motions or currents of the models differ"
    if not (has_steps or AdaptiveBatch.can_run(model, inputs)):
        return "the kernel cannot know inputs, loads, motions or currents at all times"
    return ""


@final
class AdaptiveBatch:
    """The motions of a batch.

    Args:
        batch: what they are; their inputs are polynomials of time, or formulas.
    Fields:
        rows, shown, reached: as those of FixedBatch.
    """

    def __init__(self, batch: Batch) -> None:
        self.model, self.scheme, self.times, self.n = batch.model, batch.scheme, batch.times, len(batch.q)
        model, times, duration = batch.model, batch.times, batch.duration
        knots, pieces = batch.inputs.polynomials()
        drives = steps_of_inputs(model, batch.inputs.programs)
        self.inputs, self.w = batch.inputs, steps_workspace(model, self.n, len(knots), len(drives))
        put_program(self.w, program_of(model, drives))
        host, least = self.w.host, LEAST_STEP * duration
        numbers = scheme_numbers(batch.scheme, batch.rtol, batch.atol, batch.projects, None)
        self.motions = Motions(model, self.n, batch.scheme, least, w=self.w, numbers=numbers)
        host["knots"][:], host["pieces"][:, : len(knots)] = np.inf, pieces
        host["knots"][: len(knots)] = knots
        put_anchors_at(batch, self.w)
        self.leaves_states = states_follow(model, batch.projects, by_error=True)
        self.width = model.nq + 3 * model.nv + model.n_rows
        self.shown = np.broadcast_to(batch.inputs.at(times.tolist()), (self.n, len(times), model.nu)).copy()
        self.given = np.ones(self.n, dtype=int)
        self.adaptive = host["adaptive"]
        self.adaptive[:, [STOP, NEXT, LEAST, BEFORE]] = duration, FIRST_STEP * duration, least, 1.0
        self.rows = np.zeros((self.n, len(times), self._row(np.zeros((1, self.width))).shape[1]))
        begun, _ = batch.start(lambda t: self.shown[:, 0], None)
        self.motions.put(slice(None), begun)
        self.last = np.hstack([begun[name] for name in ("q", "v", "a", "ahead", "force")])
        self.rows[:, 0] = self._row(self.last)

    @staticmethod
    def can_run(model: Model, inputs: InputRows) -> bool:
        """Whether the kernel knows all that acts, at all times."""
        return inputs.are_known and laws_of_time(model) is not None

    def _row(self, states: np.ndarray) -> np.ndarray:
        """States x to return of states (n, width), (q, v, a, â, λ)."""
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
        """Sums of steps, evaluations and matrices of some motions."""
        counts = self.w.host["counts"][which].sum(axis=0)
        return int(self.motions.steps[which].sum()), int(counts[EVALUATIONS]), int(counts[MATRICES])

    def run(self, advance: Callable[[float], None]) -> None:
        """Take all the steps.

        Raises:
            MotionFailed: the steps of a motion became too short; what has been reached stands in the fields.
        """
        behind = np.arange(self.n)
        while len(behind):
            began = self.adaptive[:, NOW].copy()
            self.motions.take_adaptive(behind)
            self._take(behind, began)
            stuck = behind[self.adaptive[behind, NEXT] < self.adaptive[behind, LEAST]]
            if len(stuck):
                i = int(stuck[0])
                own = input_function(self.model, self.inputs.of(i))
                raise_if_not_finite(
                    self.model.one(i, self.n), own, float(self.adaptive[i, NOW]), float(self.adaptive[i, STOP])
                )
                text = failure(self.scheme, float(self.adaptive[i, NOW]), int(self.motions.steps[i]), NO_STEP)
                raise MotionFailed(str(text), i, int(self.given[i]))
            over = (self.given[behind] == len(self.times)) | (self.adaptive[behind, NOW] >= self.adaptive[behind, STOP])
            behind = behind[~over]
            advance(float(self.adaptive[:, NOW].min()))

    def _take(self, behind: np.ndarray, began: np.ndarray) -> None:
        """Take the states at the wanted times within the steps of a launch."""
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
        self.last[moved] = left[moved, done[moved] - 1]

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


_MOST_GROUP_BYTES = 2**27  # of buffers of a group
_LEAST_GROUP = 64  # motions of a group, whatever memory they need
_LEAST_AT_ONCE = 16  # motions of a group that has a core: enough to hide what Python does for it
_ROUNDS = 2  # of groups, which do not take the same time


@final
class _Stopped(Exception):
    """Another group has failed, or the call was interrupted."""


def simulate_batch(batch: Batch, method: str, dt: float | None, unasked: int, progress: bool) -> list[Trajectory]:
    """The motions of a batch, group by group.

    Args:
        batch: what they are. method: its name. dt: their steps [s]; None: as long as their errors allow.
        unasked: times at the start that are left out. progress: show a bar.
    Raises:
        ConvergenceError: the steps of a motion became too short; it carries what there is of it.
        KeyboardInterrupt: Ctrl-C; its `partial` are the motions that have begun, each as far as it came.
    """
    model, count, stop = batch.model, len(batch.q), Event()
    kept: dict[int, Trajectory] = {}
    in_order = not batch.inputs.are_known or len(model.models) > 0
    groups = groups_of(model, count, 1 if in_order or count < cores() * _LEAST_AT_ONCE else cores())
    reached = np.zeros(len(groups))
    with progress_bar(progress, batch.duration) as advance:

        def tell(k: int, t: float) -> None:
            if stop.is_set():
                raise _Stopped
            reached[k] = t
            advance(float(np.mean(reached)))

        def run(k: int) -> Trajectory:
            own = batch.some(groups[k])
            many = AdaptiveBatch(own) if dt is None else FixedBatch(own, dt)
            keep = partial(kept.__setitem__, k)
            return _run_group(own.model, method, many, (groups[k].start, count), unasked, partial(tell, k), keep)

        calls = [partial(run, k) for k in range(len(groups))]
        try:
            motions = [call() for call in calls] if in_order else at_once(calls, stop)
        except KeyboardInterrupt as error:
            if begun := tuple(one for k in sorted(kept) for one in _singles(kept[k])):
                error.partial = begun  # type: ignore[attr-defined]
            raise
    for motion, some in zip(motions, groups):
        warn_of_pushing(model.some(some, count), motion.u)
        warn_of_motions(model.some(some, count), motion.q, motion.t)
    return motions


def groups_of(model: Model, count: int, at_once: int) -> list[slice]:
    """Groups of motions, as many as there is room for so many of them at once; the first are the
    largest, so that buffers made for them serve the others."""
    room = max(_LEAST_GROUP, _MOST_GROUP_BYTES // bytes_of_instance(model))
    rounds = max(1, -(-count // room))
    if at_once > 1:
        rounds = max(rounds, min(_ROUNDS, count // (at_once * _LEAST_AT_ONCE)))
    sizes = [len(part) for part in np.array_split(np.arange(count), min(rounds * at_once, count))]
    return [slice(stop - size, stop) for stop, size in zip(np.cumsum(sizes).tolist(), sizes)]


def _run_group(
    model: Model,
    method: str,
    motions: FixedBatch | AdaptiveBatch,
    place: tuple[int, int],
    unasked: int,
    advance: Callable[[float], None],
    keep: Callable[[Trajectory], None],
) -> Trajectory:
    """Run a group of motions to its end, or to the failure of one, which then carries its part; `place` is
    that of the first in the batch, and how many that has. `keep` is given what there is at the end, and where they are
    stopped."""
    began = time.perf_counter()

    def so_far(which: slice, reached: int, shape: tuple[int, ...]) -> Trajectory:
        t = motions.times[:reached]
        arrays = motion_arrays(model, t, motions.rows[which, :reached], motions.shown[which, :reached])
        cost = Statistics(method, *motions.counted(which), time.perf_counter() - began)
        asked: dict[str, Any] = {
            name: x[:, unasked:].reshape(*shape, reached - unasked, x.shape[-1]) for name, x in arrays.items()
        }
        anchors = motions.anchors[which].reshape(*shape, *model.contacts.anchors.shape)
        return Trajectory(t[unasked:], **asked, statistics=cost, anchors=anchors)

    try:
        motions.run(advance)
    except MotionFailed as error:
        i = error.motion
        with of_instance(place[0] + i, place[1]):
            raise ConvergenceError(str(error), so_far(slice(i, i + 1), error.reached, ())) from error
    except (_Stopped, KeyboardInterrupt):
        keep(so_far(slice(None), motions.reached, (motions.n,)))
        raise
    found = so_far(slice(None), motions.reached, (motions.n,))
    keep(found)
    return found


def _singles(motions: Trajectory) -> list[Trajectory]:
    """The motions of a batch (n,), without those that have reached no time that was asked for."""
    names = ("q", "v", "a", "u", "multipliers", "z", "anchors")
    rows = zip(*(getattr(motions, name) for name in names)) if len(motions.t) else ()
    return [replace(motions, **dict(zip(names, row))) for row in rows]
