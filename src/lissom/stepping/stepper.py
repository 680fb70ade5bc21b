"""Motions that go on step by step under inputs that are given on the way: one that is watched, or many for learning.

The steps are implicit (newton_stages) and of one size. `Stepper` moves one robot: Newton's matrix is kept from one call
to the next, and inputs are those at the end of each step, which is right to second order where they change without a
jump.

`Copies` moves many copies of a robot, each from its own start and under its own inputs, all in one launch, in buffers
that stay. Inputs are held from one call to the next. A copy whose Newton iteration finds no step takes it in parts, in
further launches that leave the others alone. Each copy has its own time, which begins where it is placed, and its own
anchors of contacts that stick. Its motion depends on its own model, start and inputs alone: it is the same to the last
bit alone, among others and in any place among them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from lissom.dynamics.assembly import consistent_start, on_motion
from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.contacts import contact_anchors
from lissom.dynamics.forward_dynamics import input_rows, run_forward_dynamics
from lissom.dynamics.loads import rows_of_times
from lissom.launch.workspace import Workspace, stack
from lissom.model.common import acts_alike
from lissom.model.model import Model
from lissom.robot import checks
from lissom.stepping.driver import accelerations, cut_step
from lissom.stepping.python_stages import ImplicitSteps
from lissom.stepping.schemes import ORDER_SHARE, Scheme, StepState, generalized_alpha
from lissom.stepping.state import ControlLaw, StateDerivative
from lissom.stepping.step_kernel import LONGEST_RUN, FusedSteps, private_workspace, put_times, stage_times
from lissom.stepping.step_rows import DONE, HAS_MATRIX, NEW_FIRST, SLOW_IS_ENOUGH, STEADY, scheme_numbers

RTOL, ATOL = 1e-5, 1e-7  # of what an iteration may leave: far less than a picture shows


@final
class Stepper:
    """A robot in motion, which `advance` moves on.

    Args:
        q, v: start, shape (nq,) and (nv,); None is the neutral configuration, and rest. Moved onto loops and onto
            prescribed motions.
        u: inputs there, shape (nu,); None is zero. t: time of the start [s]. dt: size of the steps [s].
    Raises:
        ModelError, ShapeError: an argument is wrong, or q leaves a loop open.
    """

    def __init__(
        self,
        model: Model,
        q: Any = None,
        v: Any = None,
        u: Any = None,
        *,
        t: float = 0.0,
        dt: float,
        scheme: Scheme | None = None,
    ) -> None:
        self.dt = checks.number(dt, "dt", above=0.0)
        begin = model.neutral() if q is None else checked_configuration(model, "q", q)
        speed = np.zeros(model.nv) if v is None else stack("v", v, model.nv)
        begin, speed = consistent_start(model, *on_motion(model, t, begin, speed))
        self.model = model.anchored(contact_anchors(model, begin, speed)) if model.surroundings.sticks else model
        scheme = generalized_alpha() if scheme is None else scheme
        nothing = np.zeros(0)
        held = ControlLaw(lambda *_: np.zeros(model.nu), lambda *_: nothing, nothing, self.dt)
        self._f = StateDerivative(self.model, held)
        self._f.held, self._f.held_z = input_rows(model, u), nothing
        limits = RTOL, (ATOL, ATOL), True
        self._fused = FusedSteps(self.model, self._f, scheme, *limits)
        self._single = ImplicitSteps(self.model, self._f, scheme, *limits, ORDER_SHARE)
        a, force = (x[0] for x in accelerations(self.model, t, begin[None], speed[None], self._f.held[None]))
        self.state = StepState(t, begin, speed, a, a, 0.0, force, nothing, a, force)

    @property
    def matrices(self) -> int:
        """How often Newton's matrix was made."""
        return self._f.jacobians

    def advance(self, steps: int, u: Any = None) -> StepState:
        """Take so many steps under inputs u, shape (nu,), zero where there are none; the state they end in.

        Raises:
            ConvergenceError: at which time no step was found, the state being that before the steps.
        """
        self._f.held = input_rows(self.model, u)
        here, in_kernel = self.state, FusedSteps.can_run(self.model, self._f)
        ends = here.t + self.dt * np.arange(1, steps + 1)
        while len(ends):
            if in_kernel:
                done, _, here = self._fused.run(here, ends[:LONGEST_RUN])
                ends = ends[len(done) :]
                if len(done):
                    continue
            here = self._one(here, float(ends[0]), in_kernel)
            ends = ends[1:]
        self.state = here
        return here

    def _one(self, here: StepState, end: float, failed: bool) -> StepState:
        """One step, in parts where Newton's method needs them."""
        one = self._fused.step_to if failed else self._single.step_to
        here, parts = cut_step(self._single.scheme, one, here, end, self.dt, 0, failed)
        if parts > 1:
            self._fused.forget()
        return here


_PARTS = 4  # that a step is cut into,
_MOST_PARTS = _PARTS**6  # and these in turn
_TOGETHER = 64  # starts that are taken at once


@final
class Copies:
    """So many copies of a robot in motion.

    Args:
        model: the robot, or what the models of a batch have in common, of which each has as many copies, one model
            behind the other. copies: how many. dt: size of the steps [s]. steps: how many of them `advance` takes.
            scheme: None is generalised-α.
    Fields:
        q, v: where the copies are, (copies, nq) and (copies, nv); they change as `place` and `advance` are called.
    Raises:
        ModelError: an argument is wrong, or something needs Python functions of the state.
    """

    def __init__(
        self, model: Model, copies: int = 1, *, dt: float, steps: int = 1, scheme: Scheme | None = None
    ) -> None:
        self.model, self.n = _checked(model), checks.integer(copies, "copies", least=1)
        self.dt = checks.number(dt, "dt", above=0.0)
        self.steps = checks.integer(steps, "steps", least=1)
        scheme, most, alike = scheme or generalized_alpha(), max(self.steps, _PARTS), not TimeRows.are_needed(model)
        self.w = private_workspace(model, self.n, most, 0 if alike else TimeRows.rows(scheme, self.n, most))
        host, project = self.w.host, model.n_rows > 0
        host["numbers"][:] = scheme_numbers(scheme, RTOL, (ATOL, ATOL), project, ORDER_SHARE)
        self._times: TimeRows | None = None
        if alike:
            put_times(model, self.w, [0.0] * len(host["load"]))
        else:
            self._times = TimeRows(model, self.w, scheme, self.n, most, self.dt, self.steps)
        self.q, self.v, self._u = host["q"], host["v"], host["inputs"]
        self._counts, self._span, self._h = host["counts"], host["span"], host["h"]
        self._all, self._together, self._taken = np.arange(self.n), min(self.n, _TOGETHER), np.zeros(self.n, dtype=int)
        self._h[:] = self.dt

    def place(self, which: Any, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Put copies (k,) to states (k, ...) at time zero, moved onto loops and prescribed motions, at which inputs
        (k, nu) act; contacts that stick begin to hold there.

        Raises:
            ShapeError: the argument, the expected and the received shape. ModelError: a state has no acceleration.
        """
        model, which = self.model, np.asarray(which, dtype=int)
        q, v = checked_configuration(model, "q", q).copy(), stack("v", v, model.nv).copy()
        own = [model.one(k, self.n) for k in which.tolist()]
        for k, one in enumerate(own if model.n_rows or model.n_motions else ()):
            q[k], v[k] = consistent_start(one, *on_motion(one, 0.0, q[k], v[k]))
        a, force = self._accelerations(which, q, v, stack("u", u, model.nu))
        self._put(which, {"q": q, "v": v, "a": a, "ahead": a, "force": force})
        self._h[which, 0], self._taken[which] = 0.0, 0
        for k, one in enumerate(own if "anchor" in self.w.host else ()):
            self.w.host["anchor"][which[k]] = contact_anchors(one, q[k], v[k]).reshape(-1, 3)

    def _accelerations(
        self, which: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Those of any number of states, in launches of one size, as others would be recorded anew each time; of a
        batch of models in one launch of all copies, in which the others are where they are."""
        if self.model.models:
            return self._of_models(which, q, v, u)
        a, force = np.zeros_like(v), np.zeros((len(q), self.model.n_rows))
        for first in range(0, len(q), self._together):
            some = np.minimum(np.arange(first, first + self._together), len(q) - 1)
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
            accelerations(self.model.one(int(which[k]), self.n), 0.0, q[some], v[some], u[some])  # says what is wrong
        return w.host["a"][which], w.host["force"][which]

    def advance(self, u: np.ndarray, rests: np.ndarray | None = None) -> np.ndarray:
        """Take the steps under inputs u (copies, nu) that are held, but for copies that rest (copies,); which copies
        (k,) could not, which mostly is none. These stay where Newton's method found nothing."""
        stages = self._u.shape[2] // max(self.model.nu, 1)
        for stage in range(stages):
            self._u[:, :, stage * self.model.nu : (stage + 1) * self.model.nu] = u[:, None]
        self._h[:, 1 : self.steps + 1] = self.dt
        self._counts[:, DONE], self._span[:, 1] = 0, self.steps
        moving = self._all if rests is None else np.flatnonzero(~rests)
        if rests is not None:
            self._span[rests, 1] = 0
        if self._times is not None:
            self._times.put_steps(moving, self._taken[moving])
        self.w.run()
        left = self._span[:, 1] - self._counts[:, DONE]
        self._h[self._counts[:, DONE] > 0, 0] = self.dt
        self._taken[moving] += self.steps
        return self._cut(left) if left.any() else self._all[:0]

    def _cut(self, left: np.ndarray) -> np.ndarray:
        """Take in parts the steps (copies,) that some copies have left to do; which of them remain. What fails is cut
        in parts; what follows these is as long as before."""
        behind, parts = np.flatnonzero(left), np.ones(self.n, dtype=int)
        t = self.dt * (self._taken - left)
        failed, lost = behind, []
        while len(behind):
            self._back(failed)
            parts[failed] *= _PARTS
            left[failed] *= _PARTS
            lost.append(behind[parts[behind] > _MOST_PARTS])
            behind = behind[parts[behind] <= _MOST_PARTS]
            many = np.where(parts[behind] > 1, (left[behind] - 1) % _PARTS + 1, left[behind])
            sizes = self.dt / parts[behind]
            self._h[behind, 1:] = sizes[:, None]
            if self._times is not None:
                self._times.put_parts(behind, t[behind], sizes, many)
            self._counts[:, DONE], self._span[:, 1] = 0, 0
            self._span[behind, 1] = many
            self.w.run()
            reached = self._counts[behind, DONE]
            self._h[behind[reached > 0], 0] = self._h[behind[reached > 0], 1]
            left[behind] -= reached
            t[behind] += reached * sizes
            failed, whole = behind[reached < many], behind[(reached == many) & (parts[behind] > 1)]
            whole = whole[left[whole] % _PARTS == 0]
            parts[whole] //= _PARTS
            left[whole] //= _PARTS
            behind = behind[left[behind] > 0]
        return np.concatenate(lost)

    def _back(self, which: np.ndarray) -> None:
        """Put copies whose iteration failed back to the start of the step."""
        host = self.w.host
        names = {"q": "start", "v": "v_start", "a": "before", "ahead": "ahead_start", "force": "force_before"}
        self._put(which, {name: host[source][which] for name, source in names.items()})

    def _put(self, which: np.ndarray, state: dict[str, np.ndarray]) -> None:
        host = self.w.host
        for name, value in (state | {"before": state["a"], "force_before": state["force"]}).items():
            host[name][which] = value
        self._counts[which[:, None], [HAS_MATRIX, NEW_FIRST, STEADY, SLOW_IS_ENOUGH]] = 0


def _checked(model: Model) -> Model:
    """The model, if its steps need kernels alone."""
    where = f"robot {model.name!r}"
    checks.require(not model.calls_python, where, "must need kernels alone for many steps at once", "Python functions")
    return model


_MOST_KNOWN = 1024  # places of the grid that are remembered


class _Acting(NamedTuple):
    """Loads (n, n_load_rows, 6) and motions (n, 3 n_motions) at n ends of stages."""

    load: np.ndarray
    held: np.ndarray


@final
class TimeRows:
    """Rows of what acts on copies.

    Args:
        w: the buffers, with `rows` rows and room for `most` steps. copies: how many. dt: size of steps [s]. steps: how
            many they take at once.
    """

    def __init__(
        self, model: Model, w: Workspace, scheme: Scheme, copies: int, most: int, dt: float, steps: int
    ) -> None:
        self.model, self.scheme, self.copies, self.dt, self.steps = model, scheme, copies, dt, steps
        stages = len(scheme.stages)
        self._load = w.host["load"].reshape(copies, most * stages, *w.host["load"].shape[1:])
        self._held = w.host["motion"].reshape(copies, most * stages, -1)
        w.host["span"][:, 2] = most * np.arange(copies)
        self._are_alike = acts_alike(model)
        self._known: dict[tuple[int, int], _Acting] = {}

    @staticmethod
    def are_needed(model: Model) -> bool:
        """Whether something acts that is not the same at all times and for all models."""
        varies = model.loads.varies or model.n_motions > 0
        return varies or (model.n_load_rows > 0 and not acts_alike(model))

    @staticmethod
    def rows(scheme: Scheme, copies: int, most: int) -> int:
        """How many rows the buffers must have."""
        return copies * most * len(scheme.stages)

    def put_steps(self, which: np.ndarray, counts: np.ndarray) -> None:
        """Fill in what acts during the steps of copies (k,) that have taken so many (k,)."""
        for k, count in zip(which.tolist(), counts.tolist()):
            self._put(k, self._on_grid(k, count))

    def put_parts(self, which: np.ndarray, starts: np.ndarray, sizes: np.ndarray, many: np.ndarray) -> None:
        """Fill in what acts during so many (k,) steps of other sizes (k,), of copies (k,) at times (k,)."""
        for k, start, size, n in zip(which.tolist(), starts.tolist(), sizes.tolist(), many.tolist()):
            self._put(k, self._at(self._model_of(k), start, start + size * np.arange(1, n + 1)))

    def _put(self, copy: int, acting: _Acting) -> None:
        n = len(acting.load)
        self._load[copy, :n], self._held[copy, :n] = acting

    def _model_of(self, copy: int) -> Model:
        return self.model.one(copy, self.copies)

    def _on_grid(self, copy: int, count: int) -> _Acting:
        key = 0 if self._are_alike else copy * len(self.model.models) // self.copies, count
        found = self._known.get(key)
        if found is None:
            if len(self._known) == _MOST_KNOWN:
                self._known.clear()
            ends = self.dt * np.arange(count + 1, count + self.steps + 1)
            found = self._known[key] = self._at(self._model_of(copy), self.dt * count, ends)
        return found

    def _at(self, model: Model, start: float, ends: np.ndarray) -> _Acting:
        """What acts at the ends of the stages of steps from `start` to times."""
        times = stage_times(self.scheme, start, ends)
        held = model.motions_over(np.array(times)) if model.n_motions else np.zeros((len(times), 0))
        return _Acting(rows_of_times(model, times), held)
