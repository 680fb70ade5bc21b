"""The start of implicit steps, and adaptive steps of one motion that a kernel takes by itself.

A launch ends at a stop, where it has left as many steps as there is room for, where no step is found, or where steps
were planned ahead and another size is wanted (step_sizes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, final

import numpy as np

from lissom.dynamics.assembly import on_motion
from lissom.dynamics.configuration import integrate
from lissom.dynamics.contacts import present_anchors, put_anchors
from lissom.dynamics.forward_dynamics import raise_if_massless, run_forward_dynamics
from lissom.dynamics.laws_of_time import laws_of_time, steps_of_inputs
from lissom.dynamics.loads import load_table
from lissom.errors import ConvergenceError, of_instance
from lissom.launch.cores import states_together
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_CROWDED
from lissom.stepping.schemes import Scheme, StepState
from lissom.stepping.state import Checkpoint, FunctionOfTime, StateDerivative, constant_polynomials
from lissom.stepping.step_kernel import (
    LONGEST_RUN,
    program_of,
    put_inputs,
    put_program,
    put_start,
    put_times,
    room_for,
    stage_times,
    state_after,
    workspace_with_room,
)
from lissom.stepping.step_rows import DONE, EVALUATIONS, MATRICES, NEW_FIRST, SLOW_IS_ENOUGH, STEADY, scheme_numbers
from lissom.stepping.step_sizes import BEFORE, EVENT, IS_PLANNED, LEAST, NEXT, NOW, STOP, of_numbers, size_towards

LEAST_STEP = 1e-10  # of the duration
FIRST_STEP = 1e-4  # of the duration, where the step is free; the error estimate then takes over
NO_STEP = "Newton's method finds no step, or none is accurate enough"
_RESOLVED = 0.25  # change of the acceleration in a step, over the acceleration, that a lead may have

Inputs = Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def starting_accelerations(
    model: Model,
    scheme: Scheme,
    q: np.ndarray,
    v: np.ndarray,
    z: np.ndarray,
    inputs: Inputs,
    rate: Inputs,
    h: float | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """a (n, nv), â (n, nv), the forces of loops (n, n_rows) and the size (n,) of a step before the start, of states on
    their prescribed motions; inputs and rate are functions of t and of rows of q, v and z.

    With loops, and a size h of the steps to come, â runs ahead of a by its lead times da/dt, without which multipliers
    begin with an error of first order; where a step of h does not resolve da/dt, â stays at a.
    """
    a, force = accelerations(model, 0.0, q, v, inputs(0.0, q, v, z))
    sizes = np.zeros(len(q))
    if not model.n_rows or h is None:
        return a, a, force, sizes
    part, later, slope = 1e-3 * h, [], rate(0.0, q, v, z)
    for ahead in (part, 2.0 * part):
        moved = integrate(model, q, ahead * v + 0.5 * ahead**2 * a)
        there = on_motion(model, ahead, moved, v + ahead * a)
        u = inputs(ahead, *there, z + ahead * slope)
        later.append(accelerations(model, ahead, *there, u)[0])
    change = scheme.lead * h * (4.0 * later[0] - later[1] - 3.0 * a) / (2.0 * part)
    scale = model.by_row(lambda one: one.dofs.scale, len(q))
    size, most = (np.max(np.abs(x) / scale, axis=1, initial=0.0) for x in (change, a))
    is_resolved = size <= _RESOLVED * most
    sizes[is_resolved] = h
    return a, np.where(is_resolved[:, None], a + change, a), force, sizes


def accelerations(model: Model, t: float, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forward dynamics of states (n, ...), and the forces of loops."""
    n = len(q)
    a, force = np.zeros((n, model.nv)), np.zeros((n, model.n_rows))
    many = states_together()
    for first in range(0, n, many):
        some = slice(first, first + many)
        w = run_forward_dynamics(model.some(some, n), q[some], v[some], u[some], t)
        if w.status.any():
            k = first + int(np.flatnonzero(w.status)[0])
            with of_instance(k, n):
                one = model.one(k, n)
                _raise(one, run_forward_dynamics(one, q[k : k + 1], v[k : k + 1], u[k : k + 1], t))
        a[some], force[some] = w.host["a"], w.host["force"]
    return a, force


def _raise(model: Model, w: Workspace) -> None:
    """Say why a state has no acceleration."""
    raise_if_massless(model, w)
    w.raise_for_status()


_size_towards = of_numbers(size_towards)
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
        self.drives = [] if f.law.feed is None else steps_of_inputs(model, f.law.feed.programs)
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
        self.size, self.before, self.event = host["adaptive"][0, [NEXT, BEFORE, EVENT]].tolist()
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
            self.w, self.room, self.last = workspace_with_room(self.model, 1, *room), room, None
        return self.w

    def _put(self, w: Workspace, here: StepState, stop: float) -> None:
        """Fill in where a run starts."""
        has_matrix, self.last = self.last is here, None
        put_start(w, self.numbers, here, LONGEST_RUN, has_matrix, (self.new_first, self.slow_is_enough))
        adaptive = w.host["adaptive"][0]
        adaptive[STOP], adaptive[NOW], adaptive[NEXT], adaptive[LEAST] = stop, here.t, self.size, self.least
        adaptive[BEFORE], adaptive[EVENT] = self.before, self.event

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
            size = _size_towards(left, self.size)
            ends.append(stop if size == left else ends[-1] + size)
        n = len(ends) - 1
        host["span"][0], host["adaptive"][0, IS_PLANNED] = (0, n, 0), 1.0
        host["h"][0, 1 : n + 1] = np.diff(ends)
        times, stages = stage_times(self.scheme, here.t, np.array(ends[1:])), len(self.scheme.stages)
        put_inputs(w, self.f.shown_over(np.array(times))[None, :, : self.model.nu], stages)
        put_times(self.model, w, times)


def _polynomials(f: StateDerivative, nu: int) -> tuple[np.ndarray, np.ndarray] | None:
    """What drives the robot until the next sample of a controller, where that is polynomials of time; zeros for
    formulas."""
    if f.held is not None:
        return constant_polynomials(f.held)
    return None if f.law.feed is None else f.law.feed.polynomials()


def ask_laws(model: Model, feed: FunctionOfTime | None, start: float, stop: float) -> None:
    """Let Python evaluate what drives a robot behind a time at which no step is found: where the kernel met a number
    that is not finite, Python says of what.

    Raises:
        ModelError, ShapeError: that.
    """
    times = start + (stop - start) * np.geomspace(_SOON, 1.0, _ASKED)
    if feed is not None:
        feed.over(times)
    load_table(model, times.tolist())
    if model.n_motions:
        model.motions_over(times)


LEG = 2000  # steps after which methods that cannot be remembered within begin anew, so that they can
_PLAIN = (bool, int, float, str, np.ndarray, np.generic, StepState, type(None))
_BUFFERS = 3  # arguments of the kernel of steps that it finds again: scratch, matrices, rows


def with_checkpoint(f: StateDerivative, points: list[Any], parts: Mapping[str, Any], loop: Any) -> Iterator[Any]:
    """The points of one turn of a method's loop; behind the last of them, or behind None where there are none, its
    parts can be remembered, and where the loop stands."""
    yield from points[:-1]
    f.take_checkpoint = partial(_checkpoint_of, f.model, parts, loop)
    if points or f.streams:
        yield points[-1] if points else None
    f.take_checkpoint = None


def _checkpoint_of(model: Model, parts: Mapping[str, Any], loop: Any) -> Checkpoint:
    return {
        "loop": loop,
        "fields": {name: _fields(part) for name, part in parts.items()},
        "buffers": dict(_buffers(parts)),
        "anchors": present_anchors(model) if model.surroundings.sticks else None,
    }


def restored(f: StateDerivative, parts: Mapping[str, Any]) -> Any:
    """Put what is remembered back into parts that were made anew, and return where the loop stood."""
    memory, model = f.checkpoint, f.model
    if memory is None:
        raise RuntimeError("nothing is remembered")
    for name, part in parts.items():
        vars(part).update(memory["fields"][name])
    if memory["anchors"] is not None:
        put_anchors(model, memory["anchors"])
    for name, arrays in memory["buffers"].items():
        part = parts[name]
        part.w = workspace_with_room(model, 1, *part.room)
        for buffer, array in zip(part.w.kept(_BUFFERS), arrays):
            buffer[...] = array
    return memory["loop"]


def _fields(part: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(part).items() if name != "streams" and _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _buffers(parts: Mapping[str, Any]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The buffers of steps in which a part finds what it left, by its name."""
    for name, part in parts.items():
        w = getattr(part, "w", None)
        if w is not None:
            yield name, [array.copy() for array in w.kept(_BUFFERS)]


def failure(scheme: Scheme, t: float, steps: int, why: str) -> ConvergenceError:
    """What to raise where the steps of a scheme end for want of a shorter one."""
    return ConvergenceError(f"simulation by {scheme.name} stopped at t={t:.6g} s after {steps} steps: {why}; try "
                            "a smaller dt, a looser rtol, smoother inputs, damping, or more Gauss points")  # fmt: skip


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
