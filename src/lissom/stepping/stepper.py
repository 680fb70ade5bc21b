"""Motions that advance step by step with inputs that the caller gives: of one robot, or of many copies for learning.

The steps are implicit (newton_stages) and of one size, by SDIRK if no other scheme is given: it uses q and v of the
start alone, so that inputs may jump between calls. `Stepper` moves one robot. Newton's matrix is kept from call to
call.

`Copies` moves many copies of a robot in one launch, each from its own start and with its own inputs. The buffers
persist. Inputs are constant from call to call. A copy whose step fails takes it in parts, in further launches that do
not change the other copies. Each copy has its own time, which is zero at `place`, and its own anchors of contacts that
stick. Its motion depends only on its own model, start and inputs. It is equal, to the last bit, in any batch and at any
place in it.

Designs of copies can change from episode to episode. Their tables are written into those of the model, because new
buffers and launches would take ten times as long as the tables.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from hashlib import blake2b
from math import isfinite
from threading import Lock
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.actuation import input_rows, single_inputs
from lissom.dynamics.assembly import consistent_start, require_motions_until
from lissom.dynamics.configuration import checked_configuration, single_configuration
from lissom.dynamics.contacts import contact_anchors, largest_depth
from lissom.dynamics.forward_dynamics import run_forward_dynamics
from lissom.dynamics.start import CHECKED, default_start, warn_of_start
from lissom.errors import ConvergenceError, ModelError, ShapeError
from lissom.launch.workspace import buffers_of, forget_numbers, require_finite_rows, stack, write_model
from lissom.model.model import Model
from lissom.model.model_batch import FUNCTIONS_OF_TIME, Differs, ModelBatch, act_alike
from lissom.model.redesign import described
from lissom.portable import reduced
from lissom.robot import checks
from lissom.robot.robot import Robot
from lissom.robot.traced_functions import TracedFunction
from lissom.stepping.adaptive import AdaptiveMotion
from lissom.stepping.driver import Motions, TimeRows, accelerations, checkpoint_of, restored
from lissom.stepping.feedback import NativeLaw, law_in_kernels
from lissom.stepping.python_stages import ImplicitSteps
from lissom.stepping.schemes import ORDER_SHARE, Scheme, StepState, esdirk, sdirk
from lissom.stepping.state import Checkpoint, ControlLaw, StateDerivative
from lissom.stepping.statistics import Statistics
from lissom.stepping.step_changes import may_change
from lissom.stepping.step_kernel import private_workspace, put_times, stage_times
from lissom.stepping.step_rows import PLASTIC_STEPS, scheme_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

RTOL, ATOL = 1e-5, 1e-7  # tolerances of Newton's iteration; such errors are not visible
LEAST_PART = 0.25**6 * (1.0 - 1e-9)  # smallest part of a step that is tried
_LONGEST = 64  # largest number of steps in one launch of a stepper
_ARRAYS = ("q", "v", "a", "ahead", "force", "before", "force_before")  # of a state
_SCHEMES = "must be a Scheme, such as ls.sdirk() or ls.generalized_alpha(), or None"
_STATES_PER_LAUNCH = 64  # number of starts whose accelerations are computed in one launch


@final
@dataclass(frozen=True)
class Snapshot:
    """A state of a `Stepper` with all that its next steps depend on.

    Fields:
        of: what the stepper must have in common with the one that is restored, by name.
        memory: the state and the memory of the steps.
    """

    of: dict[str, Any]
    memory: Checkpoint


@final
class Stepper:
    """A moving robot that advances step by step. It can be copied and pickled. One thread at a time may use it.

    Inputs u act during a whole step. The default scheme is of second order although they jump from call to call. The
    buffers are allocated once, so a step costs little more than its kernel. Newton's matrix is kept.

    Args:
        dt: step size [s].
        tolerance: relative error of a step; each step then consists of as many adaptive steps as the tolerance needs.
            None: one implicit step, which is divided only if Newton's method fails.
        controller: a feedback law f(t, q, v) of `ls.TracedFunction`, or None. The inputs are f(t, q, v) + u at all
            times of a step. Numbers that f reads besides its arguments are the present ones.
        scheme: such as `generalized_alpha()`, which takes half the time and is of first order in jumps of the inputs.
            None is `sdirk()`, or with a tolerance `esdirk()`.
        q0: start, shape (nq,) [rad, m, or strain units]; None is `start_configuration`.
        v0: velocity before the start, shape (nv,) [unit of q per s]; None is rest. q0 is moved onto loops and
            prescribed motions, and v0 by `assemble_velocities`.
        u: inputs at the start, shape (nu,) [N, m, Pa or N·m, by actuator]; None is zero.
        t: time of the start [s].
    Raises:
        ModelError, ShapeError: an argument is wrong, or q0 leaves a loop open.
    """

    def __init__(
        self,
        model: Model,
        dt: float,
        *,
        tolerance: float | None = None,
        controller: TracedFunction | None = None,
        scheme: Scheme | None = None,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        u: ArrayLike | None = None,
        t: float = 0.0,
    ) -> None:
        self.dt = checks.number(dt, "dt", above=0.0)
        checks.require(scheme is None or isinstance(scheme, Scheme), "scheme", _SCHEMES, scheme)
        scheme = scheme or (sdirk() if tolerance is None else esdirk())
        self._lock, self._given = Lock(), {"tolerance": tolerance, "controller": controller, "scheme": scheme}
        self._built = model
        rtol = RTOL if tolerance is None else checks.number(tolerance, "tolerance", above=0.0)
        nothing, atol = np.zeros(0), 0.01 * rtol
        law = law_in_kernels(model, controller, "give the inputs of a function in Python to `step`")
        no_inputs = ControlLaw(lambda *_: np.zeros(model.nu), lambda *_: nothing, nothing, self.dt)
        in_buffers = not model.calls_python and tolerance is None  # the anchors are there too
        self.model = model if in_buffers else model.anchored(model.contacts.anchors)
        self._t, self._f = (
            checks.number(t, "t"),
            StateDerivative(self.model, no_inputs if law is None else law.control_law()),
        )
        self._varies = law is not None or TimeRows.are_needed(model)
        if tolerance is not None:
            scheme.check_estimate()
        least, limits = LEAST_PART * self.dt, (rtol, (atol, atol), True)
        self._adaptive: AdaptiveMotion | None = None
        self._state: StepState | None = None
        self._spent = 0.0
        self._sticks = bool(model.contacts.sticks)
        if in_buffers:
            w = private_workspace(model, 1, _LONGEST, law=law)
            numbers = scheme_numbers(scheme, rtol, (atol, atol), model.n_rows > 0, ORDER_SHARE)
            self._motions = Motions(model, 1, scheme, least, w=w, numbers=numbers)
            put_times(model, w, [0.0] * len(w.host["load"]))
            self._parts = {"f": self._f, "motions": self._motions}
        else:
            python = ImplicitSteps(self.model, self._f, scheme, *limits, None if tolerance else ORDER_SHARE)
            self._motions = Motions(self.model, 1, scheme, least, python=python)
            self._parts = {"f": self._f, "motions": self._motions, "python": python, "control": python.control}
            if tolerance is not None:
                self._adaptive = AdaptiveMotion(python, self.dt)
                self._parts |= {"adaptive": self._adaptive, "kernel": self._adaptive.kernel}
        self._put(self._checked(q0, v0, "q0", "v0"), single_inputs(self.model, u), self._t)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(_copied, (self._built, self.dt, self._given, self.snapshot()), "stepper")

    def __deepcopy__(self, memo: dict[int, Any]) -> Stepper:
        return _copied((self._built, self.dt, self._given, self.snapshot()))

    @property
    def state(self) -> StepState:
        """The present state of the robot. Its arrays are read-only; `set_state` changes the state."""
        here = self._present()
        if self._adaptive is not None:  # whose next step reads the arrays
            return _read_only(replace(here, **{name: getattr(here, name).copy() for name in _ARRAYS}))
        return here

    def _present(self) -> StepState:
        if self._state is None:
            self._state = _read_only(self._motions.state(self._t))
        return self._state

    def _begin(self) -> None:
        """Take the lock, so that no other thread uses the stepper, nor a function that its steps call."""
        if not self._lock.acquire(False):
            raise ModelError("stepper: another thread, or a function that its step calls, uses it at the same time; "
                             "make one for each of them")  # fmt: skip

    @property
    def matrices(self) -> int:
        """Number of Newton matrices computed so far."""
        self._motions.count(self._f)
        return self._f.jacobians

    @property
    def statistics(self) -> Statistics:
        """Cost of the steps so far. Steps that `restore` took back count in `wall_time` alone.

        The energy that steps made is not counted: it needs the energy of all states and of their contacts, which takes
        two to three times as long as a step.
        Keep the states and use `energy`, or `simulate` with the same `dt` and `Trajectory.energy_made`.
        """
        f, motions = self._f, self._motions
        motions.count(f)
        if motions.w is None:  # steps do not count their last end in Python
            f.deepest = max(f.deepest, largest_depth(self.model, self.state.q[None]))
        return Statistics(motions.scheme.name, int(motions.steps[0]) - f.parts, f.evaluations, f.jacobians, self._spent,
                          parts=f.parts, plastic=f.plastic, deepest=f.deepest)  # fmt: skip

    def set_state(
        self,
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
        u: ArrayLike | None = None,
        *,
        t: float | None = None,
    ) -> None:
        """Set the state of the robot. Arguments as for the stepper; t None is the present time. Contacts that touch get
        new anchors.

        Raises:
            ModelError, ShapeError: an argument is wrong, or q leaves a loop open.
        """
        row, t = single_inputs(self.model, u), self._t if t is None else checks.number(t, "t")
        state = self._checked(q, v, "q", "v")
        self._begin()
        try:
            self._put(state, row, t)
        finally:
            self._lock.release()

    def _checked(self, q: Any, v: Any, name_q: str, name_v: str) -> tuple[np.ndarray, np.ndarray]:
        """A configuration and a velocity, by the names of the arguments, or those of the start for None."""
        model = self.model
        q = default_start(model) if q is None else single_configuration(model, q, name_q)
        v = np.zeros(model.nv) if v is None else stack(name_v, v, model.nv)
        if v.ndim != 1:
            raise ShapeError(f"{name_v}: expected shape ({model.nv},), got {v.shape}")
        require_finite_rows(**{name_v: v})
        return q, v

    def _put(self, state: tuple[np.ndarray, np.ndarray], u: np.ndarray, t: float) -> None:
        """Set the configuration and the velocity, inputs and the time."""
        model = self.model
        q, v = consistent_start(model, t, *state)
        self._t = t
        self._f.give(u)
        inputs = self._f.inputs(self._t, q, v, np.zeros(0))
        a, force = (x[0] for x in accelerations(model, self._t, q[None], v[None], inputs[None]))
        warn_of_start(model, q, lambda: a)
        self._motions.count(self._f)
        self._motions.put(0, {"q": q, "v": v, "a": a, "ahead": a, "force": force})
        self._motions.host["counts"][:], self._motions.z = 0, np.zeros(0)
        if model.contacts.sticks:
            self._motions.anchors = contact_anchors(model, q, v)[None]
        self._state = None

    def step(self, u: ArrayLike | None = None, steps: int = 1) -> None:
        """Take steps with inputs u, shape (nu,); None is zero. A controller adds to them.

        Raises:
            ConvergenceError: a step failed; the message gives the time. The robot stays in the state after the last
                step.
            ShapeError: u has a wrong shape, or is not finite.
            ModelError: `steps` is no integer >= 0, or another thread uses the stepper.
        """
        row = input_rows(self.model, u)
        if row.ndim != 1 or not isfinite(float(row @ row)):
            row = single_inputs(self.model, u)  # raises the error
        if type(steps) is not int or steps < 0:
            steps = checks.integer(steps, "steps", least=0)
        if self.model.n_motions:
            require_motions_until(self.model, self._t + self.dt * steps)
        if steps == 0:
            return
        self._begin()
        try:
            began, longest = time.perf_counter(), self._motions.longest
            if self._adaptive is not None:
                self._take_adaptive(self._adaptive, row, steps)
            else:
                self._f.give(row)
                for first in range(0, steps, longest):
                    self._take(row, min(longest, steps - first))
            self._spent += time.perf_counter() - began
        finally:
            self._lock.release()

    def _take(self, u: np.ndarray, n_steps: int) -> None:
        """Take `n_steps` fixed steps in one launch."""
        motions, t = self._motions, self._t
        ends = np.array((t, t + self.dt)) if n_steps == 1 else t + self.dt * np.arange(n_steps + 1)
        if motions.w is not None:
            motions.put_inputs(u[None], n_steps)
            if self._varies:
                put_times(self.model, motions.w, stage_times(motions.scheme, t, ends[1:]))
        anchors, before = motions.anchors if self._sticks else None, int(motions.steps[0])
        motions.host["h"][0, 1 : n_steps + 1] = ends[1:] - ends[:-1]
        motions.take(motions.all, n_steps, ends)
        if len(motions.lost):
            error = motions.failure(0)
            motions.back()
            motions.steps[0] = before
            if anchors is not None:
                motions.anchors = anchors
            raise error
        self._f.parts += int(motions.steps[0]) - before - n_steps
        self._t, self._state = float(ends[-1]), None

    def _take_adaptive(self, adaptive: AdaptiveMotion, u: np.ndarray, steps: int) -> None:
        """Take adaptive steps over the duration of `steps` fixed steps, with inputs that may have jumped."""
        here, stop, taken, anchors = self._present(), self._t + self.dt * steps, 0, self._motions.anchors
        before = self._f.inputs(here.t, here.q, here.v, here.z)
        self._f.give(u)
        if not np.array_equal(before, self._f.inputs(here.t, here.q, here.v, here.z)):
            here = adaptive.stepper.under_other_inputs(here)
        try:
            while here.t < stop:
                run = adaptive.steps(here, stop, taken)
                here, taken = run.last, taken + len(run.t)
        except ConvergenceError:
            self._motions.anchors = anchors
            raise
        self._motions.steps += taken
        self._t, self._state = here.t, here

    def snapshot(self) -> Snapshot:
        """All data that the next steps depend on, for `restore`. It can be pickled."""
        self._begin()
        try:
            self._motions.count(self._f)
            return Snapshot(self._setting(), deepcopy(checkpoint_of(self.model, self._parts, self._present())))
        finally:
            self._lock.release()

    def restore(self, snapshot: Snapshot) -> None:
        """Return, bit for bit, to a snapshot of this stepper, or of a stepper of the same model with the same dt,
        tolerance, scheme and number of controllers.

        Raises:
            ModelError: it is no such snapshot; the message names the difference.
        """
        checks.require(isinstance(snapshot, Snapshot), "snapshot", "must come from Stepper.snapshot", snapshot)
        for name, mine in self._setting().items():
            rule = f"must be of a stepper with the same {name}, here {_shown(mine)}"
            checks.require(snapshot.of[name] == mine, "snapshot", rule, _shown(snapshot.of[name]))
        self._begin()
        try:
            if self._motions.w is not None:
                self._motions.w.host["deepest"][:] = 0.0  # that of the snapshot is in its counts
            self._f.checkpoint = deepcopy(snapshot.memory)
            self._state = here = _read_only(restored(self._f, self._parts))
            self._t, self._f.checkpoint = here.t, None
        finally:
            self._lock.release()

    def _setting(self) -> dict[str, Any]:
        """What the steps depend on besides their state, by name."""
        of_model = self.model.name, self.model.cached(("content",), lambda: _content(self.model))
        given = {name: self._given[name] for name in ("tolerance", "scheme")}
        return {"model": of_model, "dt": self.dt, **given, "controller": self._given["controller"] is not None}


def _read_only(state: StepState) -> StepState:
    """The state, whose arrays are made read-only."""
    for name in _ARRAYS:
        getattr(state, name).setflags(False)
    return state


def _copied(given: tuple[Model, float, dict[str, Any], Snapshot]) -> Stepper:
    """A stepper in the state of a snapshot."""
    model, dt, options, snapshot = given
    here = snapshot.memory["loop"]
    made = Stepper(model, dt, **options, q0=here.q, v0=here.v, t=here.t)
    made.restore(snapshot)
    return made


def _content(model: Model) -> str:
    """A hash of the numbers of a model, but for the anchors of its contacts, which are part of a state."""
    found = blake2b(repr((model.nq, model.nv, model.nu, model.gravity.tolist())).encode(), digest_size=16)

    def add(part: Any) -> None:
        if isinstance(part, np.ndarray) and part.dtype.kind in "biuf":
            found.update(repr((part.shape, part.dtype.str)).encode() + part.tobytes())
        elif isinstance(part, int | float | str):
            found.update(repr(part).encode())
        elif isinstance(part, tuple | list):
            for each in part:
                add(each)
        elif is_dataclass(part) and type(part).__module__.startswith("lissom.model."):
            for item in fields(part):
                if item.name not in ("anchors", "known"):
                    add(getattr(part, item.name))

    for item in fields(Model):
        if item.name not in ("name", "description", "cache", "models", "device"):
            add(getattr(model, item.name))
    return found.hexdigest()


def _shown(value: Any) -> Any:
    """A part of the setting of a stepper in an error message."""
    if isinstance(value, tuple):
        return f"the model {value[0]!r} with numbers {value[1][:8]}"
    return value.name if isinstance(value, Scheme) else value


@final
class Copies:
    """Moving copies of a robot.

    Args:
        model: the model, or the common Model of a batch. Each model of a batch has the same number of consecutive
            copies.
        copies: number of copies.
        dt: step size [s].
        steps: number of steps of one `advance`.
        scheme: None is SDIRK.
        law: a feedback law, which adds to the inputs; None: no law.
    Fields:
        q, v: states (copies, nq) and (copies, nv), which `place` and `advance` change.
    Raises:
        ModelError: an argument is wrong, or the robot has Python functions of the state.
    """

    def __init__(
        self, model: Model, copies: int = 1, *, dt: float, steps: int = 1, scheme: Scheme | None = None,
        law: NativeLaw | None = None,
    ) -> None:  # fmt: skip
        self.law = law
        self.model, self.n = _checked(model), checks.integer(copies, "copies", least=1)
        self.dt = checks.number(dt, "dt", above=0.0)
        self.steps = checks.integer(steps, "steps", least=1)
        scheme, n, most = scheme or sdirk(), self.n, self.steps
        self._times: TimeRows | None = None
        alike = law is None and not TimeRows.are_needed(model)
        self.w = private_workspace(model, n, most, 0 if alike else TimeRows.rows(scheme, n, most), law)
        if alike:
            put_times(model, self.w, [0.0] * len(self.w.host["load"]))
        else:
            self._times = TimeRows(model, self.w, scheme, n, most, self.dt, most)
        numbers = scheme_numbers(scheme, RTOL, (ATOL, ATOL), model.n_rows > 0, ORDER_SHARE)
        least, given = LEAST_PART * self.dt, {"w": self.w, "numbers": numbers, "time_rows": self._times}
        self._motions = Motions(model, n, scheme, least, **given)
        self.q, self.v = self.w.host["q"], self.w.host["v"]
        self._per_launch = min(n, _STATES_PER_LAUNCH)
        self._taken, self._parts = np.zeros((2, n), dtype=int)
        self._is_judged, self._begins = may_change(model), np.arange(most + 1)

    def place(self, which: Any, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Set the copies `which` (k,) to states q (k, nq), v (k, nv) at time zero with inputs u (k, nu). The states are
        moved onto loops and prescribed motions. Contacts that stick get new anchors.

        Raises:
            ShapeError: an argument has a wrong shape, or an input of the law is not finite.
            ModelError: a state has no acceleration.
        """
        model, which = self.model, np.asarray(which, dtype=int)
        q, v = checked_configuration(model, "q", q).copy(), stack("v", v, model.nv).copy()
        own = [model.of_row(k, self.n) for k in which.tolist()]
        for k, one in enumerate(own if model.n_rows or model.n_motions else ()):
            q[k], v[k] = consistent_start(one, 0.0, q[k], v[k])
        inputs = stack("u", u, model.nu)
        if self.law is not None:
            inputs = inputs + self.law.inputs_over(np.zeros(len(q)), q, v)
        a, force = self._accelerations(which, q, v, inputs)
        for k, one in enumerate(own[:CHECKED] if not self._taken.any() else ()):
            warn_of_start(one, q[k], lambda k=k: a[k])
        self._motions.put(which, {"q": q, "v": v, "a": a, "ahead": a, "force": force})
        self.w.host["counts"][which], self._taken[which] = 0, 0
        self.w.host["deepest"][which], self._parts[which] = 0.0, 0
        for k, one in enumerate(own if "anchor" in self.w.host else ()):
            self.w.host["anchor"][which[k]] = contact_anchors(one, q[k], v[k]).reshape(-1, 3)

    def redraw(self, k: int, robot: Robot, values: Mapping[str, Any]) -> None:
        """Give copy k the model of a description with other values by path. Its state stays; `place` sets a start.

        The model must be the common Model of a `changeable` batch with one model for each copy.

        Raises:
            ModelError: as redraw.
        """
        redraw(self.model, k, robot, values)
        self.w.put_gravity()

    def _accelerations(
        self, which: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations and constraint forces for any number of states.

        All launches have one size, because each size must be recorded. For a batch of models one launch takes all
        copies, and the other copies keep their states.
        """
        if self.model.models:
            return self._of_models(which, q, v, u)
        a, force = np.zeros_like(v), np.zeros((len(q), self.model.n_rows))
        for first in range(0, len(q), self._per_launch):
            some = np.minimum(np.arange(first, first + self._per_launch), len(q) - 1)
            a[some], force[some] = accelerations(self.model, 0.0, q[some], v[some], u[some])
        return a, force

    def _of_models(
        self, which: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        rows = self.q.copy(), self.v.copy(), np.zeros((self.n, self.model.nu))
        for all_rows, own in zip(rows, (q, v, u)):
            all_rows[which] = own
        w = run_forward_dynamics(self.model, *rows, 0.0)
        for k in np.flatnonzero(w.status[which])[:1].tolist():
            some = slice(k, k + 1)
            own = self.model.of_row(int(which[k]), self.n)
            accelerations(own, 0.0, q[some], v[some], u[some])  # raises the error
        return w.host["a"][which], w.host["force"][which]

    def told(self) -> dict[str, np.ndarray]:
        """What the steps of each copy did since it was placed, by the names of `Statistics`, (copies,) each: the number
        of additional steps, since steps were divided; with contacts, stops or springs also the number of steps by
        implicit Euler; with contacts also the deepest one at the ends of steps [m]. A call of `advance` that finds no
        step adds no parts."""
        told = {"parts": self._parts.copy()}
        if self._is_judged:
            told["plastic"] = self.w.host["counts"][:, PLASTIC_STEPS].astype(int)
        if len(self.model.contacts.pair):
            told["deepest"] = self.w.host["deepest"].copy()
        return told

    def advance(self, u: np.ndarray, rests: np.ndarray | None = None) -> np.ndarray:
        """Take the steps with constant inputs u (copies, nu).

        Args:
            rests: mask (copies,) of copies that stay at rest; None: no copy.
        Returns:
            indices (k,) of copies for which Newton's method found no step. They keep their last state.
        """
        motions, taken, before = self._motions, self._taken, self._motions.steps.copy()
        if self.model.n_motions:
            require_motions_until(self.model, self.dt * (int(taken.max(initial=0)) + self.steps))
        moving = motions.all if rests is None else np.flatnonzero(~rests)
        motions.put_inputs(u, self.steps)
        self.w.host["h"][:, 1 : self.steps + 1] = self.dt
        if self._times is not None:
            self._times.put_steps(moving, taken[moving])
        motions.take(moving, self.steps, self.dt * (taken[:, None] + self._begins))
        parts = motions.steps - before - self.steps
        if rests is None and not len(motions.lost):  # without the cost of indices
            taken += self.steps
            self._parts += parts
        else:
            taken[moving] += self.steps
            found = np.setdiff1d(moving, motions.lost)
            self._parts[found] += parts[found]
        return motions.lost


def _checked(model: Model) -> Model:
    """The model. Raises ModelError if its steps need Python."""
    where = f"robot {model.name!r}"
    checks.require(not model.calls_python, where, "must need kernels alone for many steps at once", "Python functions")
    return model


def changeable(models: Sequence[Model]) -> ModelBatch:
    """A batch of copies of models of one structure, for `redraw`. The copies have tables of their own.

    Raises:
        ModelError: a model is not on the CPU, or Python functions fill its tables.
    """
    for model in models:
        if model.device != "cpu" or model.fills_tables_before_launch:
            rule = "a model whose design is drawn must be on the CPU, and no Python function may fill its tables"
            got = model.device if model.device != "cpu" else "Python functions"
            raise ModelError(f"robot {model.name!r}: {rule} (got {got})")
    batch = ModelBatch([described(model, model.description) for model in models])
    for one in batch:
        del one.cache["store"]  # equal arrays are not shared on the device
    return batch


def redraw(common: Model, k: int, robot: Robot, values: Mapping[str, Any]) -> None:
    """Make model k of a batch from `changeable`, in place, that of a description with other values.

    Args:
        common: the common Model of the batch. robot: the description. values: its new values by path, as in
            `Robot.with_`.
    Raises:
        ModelError: a path is unknown, a value breaks its rule, or a table changes its shape or its functions of time.
    """
    model = common.models[k]
    changed, before = described(model, robot.with_(values)), dict(vars(model))
    for group, word in (("loads", "point loads"), ("prescribed", "motions of joints"), ("fluid", "the current")):
        if not act_alike(model.description, changed.description, group):
            _refuse(robot, values, f"{word}, which act on all copies alike")
    phi, is_alike = changed.points.phi, changed.runs is model.runs
    if is_alike and (phi.shape != model.points.phi.shape or phi.tobytes() != model.points.phi.tobytes()):
        _refuse(robot, values, "the part of a rod along which a tendon runs")
    if not is_alike or not write_model(model, changed):
        _refuse(robot, values, "the structure of the robot")
    for buffers in buffers_of(common):
        if "gravity" in buffers.host:
            buffers.host["gravity"][k] = model.gravity
    forget_numbers(common)
    groups: dict[str, Any] = common.__dict__
    for item in fields(Model):
        name = item.name
        if name in ("cache", "models", "description") or getattr(model, name) is before[name]:
            continue
        group: Any = getattr(model, name)
        shared: Any = groups[name]
        if isinstance(group, int | str):
            continue  # the structure, which is the same
        if not is_dataclass(shared):
            groups[name] = Differs(name, group)
            continue
        parts = {part.name: (getattr(group, part.name), getattr(shared, part.name)) for part in fields(group)}
        parts.pop(FUNCTIONS_OF_TIME.get(name, ""), None)
        apart = {part: Differs(f"{name} > {part}", x) for part, (x, y) in parts.items()
                 if x is not y and not isinstance(y, Differs | int | str)}  # fmt: skip
        if apart:
            groups[name] = replace(groups[name], **apart)


def _refuse(robot: Robot, values: Mapping[str, Any], what: str) -> None:
    raise ModelError(f"robot {robot.name!r}: a design that is drawn must not change {what} (got {', '.join(values)})")
