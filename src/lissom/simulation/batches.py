"""Motions of a batch in shared kernel launches, on all cores.

Motions with fixed steps have the same times. A launch computes the steps of a window, which is a range of steps. If
Newton's method fails for a motion, its step is divided as for a single motion; further launches compute the parts,
together with the remaining steps of the other motions. With adaptive steps, each motion takes steps of its own size
until the buffers of the launch are full. Motions that have reached the end wait for the others. Each motion is equal,
to the last bit, to a single motion: its state does not depend on the others.

A batch is split into groups whose buffers fit into the memory. If no Python function is called, groups run in parallel,
each on one core. Otherwise they run one after another, and the launches of a group use all cores.
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
from lissom.dynamics.start import CHECKED
from lissom.errors import ConvergenceError, of_instance
from lissom.launch.cores import cores, run_in_parallel
from lissom.launch.progress import progress_bar
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.model.model_batch import acts_alike
from lissom.model.plausibility import warn_of_motions, warn_of_wheels
from lissom.robot.traced_functions import TracedFunction
from lissom.simulation.implicit_methods import (
    SAME_TIME,
    StepSchedule,
    step_monitor,
    within,
)
from lissom.simulation.inputs import InputRows, input_function
from lissom.simulation.trajectory import Trajectory, motion_arrays
from lissom.stepping.adaptive import raise_if_not_finite
from lissom.stepping.driver import (
    FIRST_STEP,
    LEAST_STEP,
    NO_STEP,
    Motions,
    accelerations,
    failure,
    starting_accelerations,
)
from lissom.stepping.feedback import NativeLaw
from lissom.stepping.schemes import ORDER_SHARE, Scheme
from lissom.stepping.state import configuration_scale
from lissom.stepping.statistics import Statistics
from lissom.stepping.step_kernel import (
    bytes_of_instance,
    law_room,
    program_of,
    put_law,
    put_program,
    states_follow,
    steps_workspace,
    workspace_with_room,
)
from lissom.stepping.step_rows import DONE, IS_PLASTIC, STEADY, scheme_numbers
from lissom.stepping.step_sizes import BEFORE, EVENT, LEAST, NEXT, NOW, STOP


@final
@dataclass(frozen=True)
class Batch:
    """Motions of one robot that share launches.

    Fields:
        q, v: starts (n, nq) and (n, nv) of at least two motions, on the loops and on prescribed motions.
        inputs: inputs of all motions.
        times: times to return, beginning with 0 [s].
        law, period: a feedback law as native code, and its sampling period [s], infinite for a continuous law; then
            there are no other inputs. None: no feedback.
        scheme, duration, rtol, atol, project_velocity: as for one motion.
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
    law: NativeLaw | None = None
    period: float = np.inf

    def part(self, which: slice) -> Batch:
        """The batch of a range of the motions."""
        model = self.model.common_of_rows(which, len(self.q))
        return replace(self, model=model, q=self.q[which], v=self.v[which], inputs=self.inputs.part(which))

    @property
    def projects(self) -> bool:
        """Whether the velocity is projected onto the loops after each step."""
        return self.project_velocity and self.model.n_rows > 0

    @property
    def is_continuous(self) -> bool:
        """Whether a feedback law acts at every evaluation."""
        return self.law is not None and np.isinf(self.period)

    def buffers(self, knots: int = 1, drives: int = 0) -> Workspace:
        """Buffers for all motions, with the law if it is continuous."""
        if self.law is None or not self.is_continuous:
            return steps_workspace(self.model, len(self.q), knots, drives)
        w = workspace_with_room(self.model, len(self.q), *law_room(self.model))
        put_law(w, self.law)
        return w

    def start(
        self, inputs: Callable[[float], np.ndarray], dt: float | None
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The states (q, v, a, â, λ) at t = 0, and the sizes of the first steps (n,) [s]. `inputs` returns u of all
        motions, unless a law is continuous."""

        def at(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
            return self.feedback(np.full(len(q), t), q, v) if self.is_continuous else inputs(t)

        z = np.zeros((len(self.q), 0))
        a, ahead, force, h = starting_accelerations(self.model, self.scheme, self.q, self.v, z, at, lambda t, *x: z, dt)
        return {"q": self.q, "v": self.v, "a": a, "ahead": ahead, "force": force}, h

    def feedback(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """u of the law at times (n,) and states (n, nq), (n, nv), shape (n, nu).

        Raises:
            ShapeError: an input is not finite.
        """
        if self.law is None:
            raise RuntimeError("no feedback law acts")
        return self.law.inputs_over(t, q, v)

    def shown(self, rows: np.ndarray) -> np.ndarray:
        """Inputs of the law for all motions at states (n, n_times, ...), whose first entries are (q, v)."""
        flat, nq = rows.reshape(-1, rows.shape[-1]), self.model.nq
        times = np.tile(self.times[: rows.shape[1]], len(rows))
        return self.feedback(times, flat[:, :nq], flat[:, nq : nq + self.model.nv]).reshape(*rows.shape[:2], -1)

    def sampled(self, t: float, state: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The inputs of a sample of the law in states of all motions, and these states with the accelerations under
        them."""
        q, v = state["q"], state["v"]
        u = self.feedback(np.full(len(q), t), q, v)
        a, force = accelerations(self.model, t, q, v, u)
        return u, {"q": q, "v": v, "a": a, "ahead": a, "force": force}


def put_anchors_at(batch: Batch, w: Workspace) -> None:
    """Fill the buffer of anchors with the anchors of the motions at t = 0."""
    if "anchor" in w.host:
        for i, one in enumerate(batch.model.of_rows(len(batch.q))):
            w.host["anchor"][i] = contact_anchors(one, batch.q[i], batch.v[i]).reshape(-1, 3)


def present_anchors_of(model: Model, w: Workspace, n: int) -> np.ndarray:
    """The present anchors of n motions, shape (n, n_pairs, 6)."""
    if "anchor" in w.host:
        return w.host["anchor"].reshape(n, -1, 6).copy()
    return np.array([one.contacts.anchors for one in model.of_rows(n)])


@final
class MotionFailed(Exception):
    """The steps of one motion of a batch became too short.

    Fields:
        motion: index of the motion in the batch.
        reached: number of returned times that it has reached.
    """

    def __init__(self, message: str, motion: int, reached: int) -> None:
        super().__init__(message)
        self.motion, self.reached = motion, reached


def put_sample(batch: Batch, motions: Motions, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Set the motions, which are all at time t, to their states after a sample of the law. Returns its inputs (n, nu),
    and these states as rows (q, v, a, â, λ)."""
    u, state = batch.sampled(t, {name: motions.host[name][: len(batch.q)].copy() for name in ("q", "v")})
    kept = motions.host["counts"][:, [STEADY, IS_PLASTIC]].copy()
    motions.put(slice(None), state)
    motions.host["counts"][:, [STEADY, IS_PLASTIC]] = kept
    return u, np.hstack([state[name] for name in ("q", "v", "a", "ahead", "force")])


@final
class FixedBatch:
    """The motions of a batch with fixed steps.

    Args:
        batch: the motions.
        dt: step size [s].
    Fields:
        rows: states x at the times, (n, n_times, ...): (q, v, a, λ of loops), or (q, v) if a and λ are computed
            afterwards.
        shown: inputs at the times.
        reached: number of times that all motions have reached.
    """

    def __init__(self, batch: Batch, dt: float) -> None:
        self.model, self.scheme, self.inputs, self.n = batch.model, batch.scheme, batch.inputs, len(batch.q)
        model, times, self.batch = batch.model, batch.times, batch
        self.plan = plan = StepSchedule(times, batch.duration, batch.period, dt)
        self.times, self.ends, self.wanted = times, plan.ends(0, len(plan)), plan.wanted(0, len(plan))
        self.w, least = batch.buffers(), LEAST_STEP * batch.duration
        self.sampled_u: np.ndarray | None = None  # inputs of the last sample of a law
        if batch.law is not None and not batch.is_continuous:
            self.sampled_u = batch.feedback(np.zeros(self.n), batch.q, batch.v)
        numbers = scheme_numbers(batch.scheme, batch.rtol, batch.atol, batch.projects, ORDER_SHARE)
        self.motions = Motions(model, self.n, batch.scheme, least, w=self.w, numbers=numbers)
        self.names = ("q", "v") if states_follow(model, batch.projects) else ("q", "v", "a", "force")
        width = sum(part.stop - part.start for part in (self.motions.parts[name] for name in self.names))
        self.rows = np.zeros((self.n, len(times), width))
        self.shown = np.zeros((self.n, len(times), model.nu))
        self.reached = 1
        put_anchors_at(batch, self.w)
        begun, h = batch.start(lambda t: self._inputs(self.motions.all, np.array([t]))[:, 0], dt)
        self.motions.put(slice(None), begun, h)
        self.rows[:, 0] = np.concatenate([begun[name] for name in self.names], axis=1)
        if not batch.is_continuous:
            self.shown[:, 0] = self._inputs(self.motions.all, np.zeros(1))[:, 0]

    def _inputs(self, motions: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Inputs (n, times, nu) of all motions at common times (times,), or of k motions at times (k, times), without
        those of a continuous law."""
        if self.sampled_u is not None:
            return np.repeat(self.sampled_u[motions, None], times.shape[-1], axis=1)
        if times.ndim > 1:
            return self.inputs.each(motions, times)
        rows = self.inputs.at(times.tolist())
        return np.broadcast_to(rows, (self.n, *rows.shape[1:]))

    @property
    def anchors(self) -> np.ndarray:
        """The present anchors, shape (n, n_pairs, 6)."""
        return present_anchors_of(self.model, self.w, self.n)

    def run(self, advance: Callable[[float], None]) -> None:
        """Take all steps.

        Raises:
            MotionFailed: the steps of a motion became too short; the fields hold the motions up to that time.
        """
        motions, first = self.motions, 0
        while first < len(self.ends):
            ends = self.ends[first : first + min(motions.longest, self.plan.to_sample(first))]
            t = np.append(self.ends[first - 1] if first else 0.0, ends)
            motions.advance(t, self._inputs)
            if len(motions.lost):
                i = int(motions.lost[0])
                self._store(slice(i, i + 1), first, int(motions.reached[i]))
                raise MotionFailed(str(motions.failure(i)), i, self.reached)
            self._store(slice(None), first, len(ends))
            first += len(ends)
            if self.plan.is_sample(first - 1):
                self.sampled_u = put_sample(self.batch, motions, float(ends[-1]))[0]
            advance(float(ends[-1]))

    def counted(self, which: slice) -> dict[str, Any]:
        """Statistics of a range of motions."""
        planned = len(self.ends) * len(range(*which.indices(self.n)))
        return {**self.motions.counted(which), "parts": int(self.motions.steps[which].sum()) - planned}

    def _store(self, motions: slice, first: int, count: int) -> None:
        """Store states and inputs at the ends of those of the first `count` steps of the window that end on wanted
        times."""
        at = np.flatnonzero(self.wanted[first : first + count])
        to, start = slice(self.reached, self.reached + len(at)), 0
        if len(at) and at[-1] - at[0] + 1 == len(at):
            at = slice(int(at[0]), int(at[-1]) + 1)  # the usual case; a slice is much faster to copy
        for part in (self.motions.parts[name] for name in self.names):
            stop = start + part.stop - part.start
            self.rows[motions, to, start:stop] = self.motions.rows()[motions, at, part]
            start = stop
        self.reached = to.stop
        if self.batch.is_continuous:
            return
        last = (len(self.scheme.stages) - 1) * self.model.nu
        self.shown[motions, to] = self.w.host["inputs"][motions, at, last : last + self.model.nu]


def reason_to_separate(model: Model, is_implicit: bool, inputs: InputRows, controller: Any, has_steps: bool) -> str:
    """The reason why the motions of a batch run one after another; empty if each launch takes steps of all motions.

    Args:
        controller: the argument of `simulate`.
        has_steps: whether the step size is given.
    """
    if controller is not None and not isinstance(controller, TracedFunction):
        return "a controller acts"
    if controller is not None and model.device != "cpu":
        return "a traced controller acts, which needs the CPU"
    if not is_implicit:
        return "the method is not an implicit scheme"
    if model.calls_python:
        return "each evaluation calls Python"
    if not acts_alike(model):
        return "loads, motions or currents of the models differ"
    if not (has_steps or AdaptiveBatch.can_run(model, inputs)):
        return "the kernel cannot evaluate inputs, loads, motions or currents at all times"
    return ""


@final
class AdaptiveBatch:
    """The motions of a batch with adaptive steps.

    Args:
        batch: the motions. Their inputs are polynomials of time, or formulas.
    Fields:
        rows, shown, reached: as in FixedBatch.
    """

    def __init__(self, batch: Batch) -> None:
        self.model, self.scheme, self.times, self.n = batch.model, batch.scheme, batch.times, len(batch.q)
        model, times, duration = batch.model, batch.times, batch.duration
        knots, pieces = batch.inputs.polynomials()
        drives = steps_of_inputs(model, batch.inputs.programs)
        self.batch, self.inputs, self.w = batch, batch.inputs, batch.buffers(len(knots), len(drives))
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
        self.sampled_u: np.ndarray | None = None  # inputs of the last sample of a law
        if batch.law is not None and not batch.is_continuous:
            self._put_sample(batch.feedback(np.zeros(self.n), batch.q, batch.v))
            self.shown[:, 0] = self.sampled_u
        self.given = np.ones(self.n, dtype=int)
        self.adaptive = host["adaptive"]
        self.adaptive[:, [STOP, NEXT, LEAST, BEFORE]] = duration, FIRST_STEP * duration, least, 1.0
        self.rows = np.zeros((self.n, len(times), self._row(np.zeros((1, self.width))).shape[1]))
        given = batch.scheme, duration, batch.rtol, configuration_scale(model.of_row(0, self.n))
        self.monitors = [step_monitor(*given) for _ in range(min(self.n, CHECKED))]
        begun, _ = batch.start(lambda t: self.shown[:, 0], None)
        self.motions.put(slice(None), begun)
        self.last = np.hstack([begun[name] for name in ("q", "v", "a", "ahead", "force")])
        self.rows[:, 0] = self._row(self.last)

    def _put_sample(self, u: np.ndarray) -> None:
        """Set the constant inputs (n, nu) until the next sample."""
        self.sampled_u = u
        self.w.host["pieces"][:, 0, 3 * self.model.nu :] = u

    @staticmethod
    def can_run(model: Model, inputs: InputRows) -> bool:
        """Whether the kernel can evaluate all inputs, loads, motions and currents at all times."""
        return inputs.are_known and laws_of_time(model) is not None

    def _row(self, states: np.ndarray) -> np.ndarray:
        """The states x to return for states (q, v, a, â, λ), shape (n, width)."""
        nq, nv = self.model.nq, self.model.nv
        if self.leaves_states:
            return states[:, : nq + nv]
        return np.delete(states, np.s_[nq + 2 * nv : nq + 3 * nv], axis=1)

    @property
    def anchors(self) -> np.ndarray:
        """The present anchors, shape (n, n_pairs, 6)."""
        return present_anchors_of(self.model, self.w, self.n)

    @property
    def reached(self) -> int:
        """Number of times that all motions have reached."""
        return int(self.given.min())

    def counted(self, which: slice) -> dict[str, Any]:
        """Statistics of a range of motions."""
        return self.motions.counted(which)

    def run(self, advance: Callable[[float], None]) -> None:
        """Take all steps.

        Raises:
            MotionFailed: the steps of a motion became too short; the fields hold the motions up to that time.
        """
        sample, period, duration = 1, self.batch.period, self.batch.duration
        while sample:
            due = sample * period
            stop = duration if due > duration * (1.0 - SAME_TIME) else due
            self.adaptive[:, STOP] = stop
            self._run_to_stop(advance)
            sample = 0 if stop == duration or self.reached == len(self.times) else sample + 1
            if sample:
                u, self.last = put_sample(self.batch, self.motions, stop)
                self.adaptive[:, EVENT] = np.minimum(self.adaptive[:, EVENT], stop)
                self.w.host["h"][:, 0] = 0.0
                self._put_sample(u)

    def _run_to_stop(self, advance: Callable[[float], None]) -> None:
        """Take all steps to the stop."""
        behind = np.arange(self.n)
        while len(behind):
            began = self.adaptive[:, NOW].copy()
            self.motions.take_adaptive(behind)
            self._take(behind, began)
            stuck = behind[self.adaptive[behind, NEXT] < self.adaptive[behind, LEAST]]
            if len(stuck):
                i = int(stuck[0])
                if self.batch.is_continuous:
                    self.batch.feedback(self.adaptive[stuck, NOW], self.last[stuck, : self.model.nq],
                                        self.last[stuck, self.model.nq : self.model.nq + self.model.nv])  # fmt: skip
                own = input_function(self.model, self.inputs.of(i))
                raise_if_not_finite(
                    self.model.of_row(i, self.n), own, float(self.adaptive[i, NOW]), float(self.adaptive[i, STOP])
                )
                where = self.model.of_row(i, self.n), self.scheme, float(self.adaptive[i, NOW])
                text = failure(*where, int(self.motions.steps[i]), NO_STEP, self.w.host["q"][i].copy())
                raise MotionFailed(str(text), i, int(self.given[i]))
            over = (self.given[behind] == len(self.times)) | (self.adaptive[behind, NOW] >= self.adaptive[behind, STOP])
            behind = behind[~over]
            advance(float(self.adaptive[:, NOW].min()))

    def _take(self, behind: np.ndarray, began: np.ndarray) -> None:
        """Store the states at those wanted times that lie within the steps of a launch."""
        host = self.w.host
        done, ends = host["counts"][:, DONE], host["times"]
        left = host["out"].reshape(self.n, ends.shape[1], self.width)
        who, which, before, end = [], [], [], []
        for i in behind[done[behind] > 0].tolist():
            t = np.append(began[i], ends[i, : done[i]])
            if i < len(self.monitors):
                self._monitor(i, t[1:], left[i, : done[i], : self.model.nq])
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

    def _monitor(self, i: int, t: np.ndarray, q: np.ndarray) -> None:
        """Count the steps of motion i, which end at t (n,) in q (n, nq). The batch has one warning."""
        self.monitors[i].follow(t, q)
        if self.monitors[i].is_warned:
            self.monitors = []

    def _put(self, left: np.ndarray, who: np.ndarray, which: np.ndarray, before: np.ndarray, ends: np.ndarray) -> None:
        """Store interpolated states.

        Args:
            left: states after the steps of the launch.
            who: index of the motion of each state to store.
            which: index of its time.
            before: index of the step that contains the time.
            ends: start and end of that step [s], shape (n, 2).
        """
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
        if self.sampled_u is not None:
            self.shown[who, which] = self.sampled_u[who]


_MOST_GROUP_BYTES = 2**27  # largest size of the buffers of a group [B]
_LEAST_GROUP = 64  # smallest number of motions of a group, independent of the memory they need
_LEAST_AT_ONCE = 16  # smallest number of motions of a group with its own core; fewer are limited by Python's part
_ROUNDS = 2  # groups per core, because groups take different times


@final
class _Stopped(Exception):
    """Another group has failed, or the call was interrupted."""


def simulate_batch(batch: Batch, method: str, dt: float | None, left_out: int, progress: Any) -> list[Trajectory]:
    """Simulate all motions of a batch; returns them in its order. Each thread takes one group of motions at a time.

    Args:
        batch: model, initial states, inputs and times of the motions.
        method: name of the method.
        dt: step size [s]; None: adaptive steps.
        left_out: number of first entries of the times that the results leave out.
        progress: as for `simulate`.
    Raises:
        ConvergenceError: the steps of a motion became too short; the error carries this motion so far.
        KeyboardInterrupt: Ctrl-C; its attribute `partial` holds the motions that were begun, each up to its last time.
    """
    model, count, stop = batch.model, len(batch.q), Event()
    kept: dict[int, Trajectory] = {}
    in_order = not batch.inputs.are_known or len(model.models) > 0
    groups = groups_of(model, count, 1 if in_order or count < cores() * _LEAST_AT_ONCE else cores())
    reached = np.zeros(len(groups))
    with progress_bar(progress, batch.duration) as advance:

        def report(k: int, t: float) -> None:
            if stop.is_set():
                raise _Stopped
            reached[k] = t
            advance(float(np.mean(reached)))

        def run(k: int) -> Trajectory:
            own = batch.part(groups[k])
            group = AdaptiveBatch(own) if dt is None else FixedBatch(own, dt)
            keep = partial(kept.__setitem__, k)
            return _run_group(own.model, method, group, (groups[k].start, count), left_out, partial(report, k), keep)

        calls = [partial(run, k) for k in range(len(groups))]
        try:
            motions = [call() for call in calls] if in_order else run_in_parallel(calls, stop)
        except KeyboardInterrupt as error:
            if begun := tuple(one for k in sorted(kept) for one in _singles(kept[k])):
                error.partial = begun  # type: ignore[attr-defined]
            raise
    for motion, group in zip(motions, groups):
        warn_of_pushing(model.common_of_rows(group, count), motion.u)
        warn_of_motions(model.common_of_rows(group, count), motion.q, motion.t)
        warn_of_wheels(model.common_of_rows(group, count), motion.multipliers, motion.t)
    return motions


def groups_of(model: Model, count: int, at_once: int) -> list[slice]:
    """Ranges of motions such that the buffers of `at_once` groups fit into the memory. The first groups are the
    largest, so that the others reuse their buffers."""
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
    left_out: int,
    advance: Callable[[float], None],
    keep: Callable[[Trajectory], None],
) -> Trajectory:
    """Run a group of motions to its end.

    Args:
        place: index of the first motion in the batch, and number of motions in the batch.
        keep: called with the motions at the end, or when they are stopped.
    Raises:
        ConvergenceError: a motion failed; the error carries the motion so far.
    """
    began = time.perf_counter()

    def so_far(which: slice, reached: int, shape: tuple[int, ...]) -> Trajectory:
        t, rows = motions.times[:reached], motions.rows[which, :reached]
        shown = motions.batch.shown(rows) if motions.batch.is_continuous else motions.shown[which, :reached]
        arrays = motion_arrays(model, t, rows, shown)
        cost = Statistics(method, wall_time=time.perf_counter() - began, **motions.counted(which))
        asked: dict[str, Any] = {
            name: x[:, left_out:].reshape(*shape, reached - left_out, x.shape[-1]) for name, x in arrays.items()
        }
        anchors = motions.anchors[which].reshape(*shape, *model.contacts.anchors.shape)
        return Trajectory(t[left_out:], **asked, statistics=cost, anchors=anchors)

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
    """The motions of a batch (n,) as single trajectories; empty if none of the times was reached."""
    names = ("q", "v", "a", "u", "multipliers", "z", "anchors")
    rows = zip(*(getattr(motions, name) for name in names)) if len(motions.t) else ()
    return [replace(motions, **dict(zip(names, row))) for row in rows]
