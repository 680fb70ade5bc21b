"""The start of implicit steps, the driver of n motions with its treatment of rejected steps, loads by time,
checkpoints.

A launch of adaptive steps ends at a stop, when the buffers are full, when no step is found, or when steps were planned
ahead and another size is needed (step_sizes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from lissom.dynamics.assembly import flat_disc, prescribed_state
from lissom.dynamics.configuration import integrate
from lissom.dynamics.contacts import contact_forces, present_anchors, put_anchors
from lissom.dynamics.forward_dynamics import raise_if_massless, run_forward_dynamics
from lissom.dynamics.loads import rows_of_times
from lissom.errors import ConvergenceError, ShapeError, of_instance
from lissom.launch.cores import states_per_launch
from lissom.launch.workspace import Workspace, near_pairs_error
from lissom.model.groups import NEAR_END
from lissom.model.model import Model
from lissom.model.model_batch import acts_alike
from lissom.passes.scratch import STATUS_TOO_MANY_PAIRS
from lissom.robot.bodies import Rod
from lissom.stepping.schemes import Scheme, StepState
from lissom.stepping.state import Checkpoint, StateDerivative, takes_state
from lissom.stepping.step_kernel import (
    ends_of_stages,
    put_inputs,
    put_times,
    stage_times,
    workspace_with_room,
)
from lissom.stepping.step_rows import (
    COUNTS,
    DONE,
    EVALUATIONS,
    HAS_MATRIX,
    IS_NOTED,
    IS_PLASTIC,
    MATRICES,
    MOST_STAGES,
    PASSED,
    PLASTIC_STEPS,
    STEADY,
)
from lissom.stepping.step_sizes import LEAST, NEXT

if TYPE_CHECKING:
    from lissom.stepping.python_stages import ImplicitSteps

LEAST_STEP = 1e-10  # smallest step, relative to the duration
FIRST_STEP = 1e-4  # first adaptive step, relative to the duration; the error estimate determines the next ones
NO_STEP = "Newton's method finds no step, or none is accurate enough"
_NEAR_FLAT = 0.05  # inclination of a disc to its plane below which motions stop because of it [rad]
_RESOLVED = 0.25  # if the relative change of the acceleration in a step is larger, â starts without a lead

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
    """Accelerations at the start of motions. The states must be on their prescribed motions.

    With loops and a given step size h, â leads a by its lead time times da/dt; otherwise multipliers would start with a
    first-order error. If a step of size h does not resolve da/dt, â is a.

    Args:
        inputs, rate: functions of t and of rows of q, v and z that return u and dz/dt.
    Returns:
        a (n, nv), â (n, nv), constraint forces (n, n_rows), and the size of a (virtual) step before the start (n,) [s].
    """
    a, force = accelerations(model, 0.0, q, v, inputs(0.0, q, v, z))
    sizes = np.zeros(len(q))
    if not model.n_rows or h is None:
        return a, a, force, sizes
    part, later, slope = 1e-3 * h, [], rate(0.0, q, v, z)
    known = np.ones(len(q), dtype=bool)
    for ahead in (part, 2.0 * part):
        moved = integrate(model, q, ahead * v + 0.5 * ahead**2 * a)
        there = prescribed_state(model, ahead, moved, v + ahead * a)
        try:
            later.append(accelerations(model, ahead, *there, inputs(ahead, *there, z + ahead * slope))[0])
        except ShapeError:
            taken = np.array([takes_state(one, *row) for one, *row in zip(model.of_rows(len(q)), *there)])
            if taken.all():
                raise
            known &= taken  # a robot cannot be in the other states, so that the step does not resolve the motion
            there = np.where(taken[:, None], there[0], q), np.where(taken[:, None], there[1], v)
            later.append(accelerations(model, ahead, *there, inputs(ahead, *there, z + ahead * slope))[0])
    change = scheme.lead * h * (4.0 * later[0] - later[1] - 3.0 * a) / (2.0 * part)
    scale = model.by_row(lambda one: one.dofs.scale, len(q))
    size, most = (np.max(np.abs(x) / scale, axis=1, initial=0.0) for x in (change, a))
    is_resolved = known & (size <= _RESOLVED * most)
    sizes[is_resolved] = h
    return a, np.where(is_resolved[:, None], a + change, a), force, sizes


def accelerations(model: Model, t: float, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations by forward dynamics of states (n, ...), and the constraint forces."""
    n = len(q)
    a, force = np.zeros((n, model.nv)), np.zeros((n, model.n_rows))
    size = states_per_launch()
    for first in range(0, n, size):
        part = slice(first, first + size)
        w = run_forward_dynamics(model.common_of_rows(part, n), q[part], v[part], u[part], t)
        if w.status.any():
            k = first + int(np.flatnonzero(w.status)[0])
            with of_instance(k, n):
                one = model.of_row(k, n)
                _raise(one, run_forward_dynamics(one, q[k : k + 1], v[k : k + 1], u[k : k + 1], t))
        a[part], force[part] = w.host["a"], w.host["force"]
    return a, force


def _raise(model: Model, w: Workspace) -> None:
    """Raise the error of a state that has no acceleration."""
    raise_if_massless(model, w)
    w.raise_for_status()


NAMES = ("q", "v", "a", "ahead", "before", "force", "force_before")  # arrays of the state from which steps continue
_ALL = slice(None)
_KEPT = 3  # arguments of the step kernel that persist between launches: scratch, matrices, rows
_MOST_KNOWN = 1024  # largest number of times whose loads are cached

InputsAt = Callable[[np.ndarray, np.ndarray], np.ndarray]


@final
class Motions:
    """The driver of implicit steps of n motions of one model. The result of each motion equals the result of a single
    motion.

    If Newton's method fails in a step, the step is rejected and divided into parts. The first part is a quarter of the
    step. A failed part is divided by four; after a successful part the next part is twice as long. Other motions
    continue in the same launches.

    Args:
        least: size of a part below which a motion is lost [s]; infinity: no step is divided.
        w: buffers of the kernel, which hold the state of the motions.
        numbers: numbers of the scheme (scheme_numbers).
        time_rows: loads of motions that are at different times.
        python: takes the steps of a single motion instead of a kernel, if Python acts between its stages.
    Fields:
        host: arrays of the states (`NAMES`), step sizes and counts.
        steps: number of steps and parts that each motion has taken (n,).
        begun: states at the start of the last call.
        reached: number of steps that each motion completed in the last call (n,).
        lost: indices (k,) of motions that found no step in the last call.
        t: times that the motions have reached (n,) [s].
    """

    def __init__(
        self, model: Model, n: int, scheme: Scheme, least: float, *, w: Workspace | None = None,
        numbers: np.ndarray | None = None, time_rows: TimeRows | None = None, python: ImplicitSteps | None = None,
    ) -> None:  # fmt: skip
        self.model, self.n, self.scheme, self.least, self.w = model, n, scheme, least, w
        self.time_rows, self.python, self.all = time_rows, python, np.arange(n)
        if python is not None:
            python.least = least
        self.host = _python_host(model, n) if w is None else w.host
        if w is not None:
            self.host["numbers"][:], self.host["pause"][:], self.host["adaptive"][:] = numbers, 0, 0.0
            self.host["adaptive"][:, LEAST], self.host["deepest"][:] = least, 0.0
        self.host["counts"][:] = 0
        self.steps, self.reached = np.zeros((2, n), dtype=int)
        self.lost, self.t, self.z = self.all[:0], np.zeros(n), np.zeros(0)
        self.begun = {name: self.host[name].copy() for name in NAMES}
        self._saved = [(self.begun[name], self.host[name]) for name in NAMES]
        nq, nv = model.nq, model.nv
        ends = np.cumsum([0, nq, nv, nv, nv, model.n_rows]).tolist()
        self.parts: dict[str, slice] = dict(
            zip(("q", "v", "a", "ahead", "force"), (slice(*pair) for pair in pairwise(ends)))
        )
        self.width, self.longest = ends[-1], self.host["h"].shape[1] - 1

    @staticmethod
    def can_run(model: Model, f: StateDerivative) -> bool:
        """Whether a kernel takes the steps: Python computes at most inputs, at times known in advance."""
        return not model.calls_python and (not f.is_feedback or f.has_native_law)

    def put(self, which: Any, state: dict[str, Any], h: Any = 0.0) -> None:
        """Set the motions `which` to states (k, ...) after a step of size h [s]. The next step computes a new
        matrix."""
        host, counts = self.host, self.host["counts"]
        for name, value in ({"before": state["a"], "force_before": state["force"]} | state).items():
            host[name][which] = value
        host["h"][which, 0] = h
        for column in (HAS_MATRIX, STEADY, IS_PLASTIC, IS_NOTED):
            counts[which, column] = 0

    def put_state(self, s: StepState) -> None:
        """Set a single motion to a state."""
        self.put(0, {name: getattr(s, name) for name in NAMES}, s.h)
        self.host["counts"][0, [STEADY, IS_PLASTIC]], self.z = (s.is_steady, s.is_plastic), s.z

    def state(self, t: float) -> StepState:
        """The state of a single motion at its time t."""
        q, v, a, ahead, before, force, force_before = (self.host[name][0].copy() for name in NAMES)
        h, flags = float(self.host["h"][0, 0]), self.host["counts"][0, [STEADY, IS_PLASTIC]].astype(bool).tolist()
        return StepState(t, q, v, a, ahead, h, force, self.z, before, force_before, *flags)

    def rows(self) -> np.ndarray:
        """(q, v, a, â, λ) after each step of the last call, shape (n, longest, ...)."""
        return self.host["out"].reshape(self.n, -1, self.width)

    def advance(self, t: np.ndarray, inputs: InputsAt) -> None:
        """Take steps of all motions from t[0] to the times t[1:] [s].

        Args:
            inputs: function that returns u of motions (k,) at common times (times,), or at separate times (k, times),
                without those of a feedback law that the kernel evaluates.
        """
        if self.w is not None:
            times = ends_of_stages(self.scheme, t[:-1], t[1:]).ravel()
            put_times(self.model, self.w, times.tolist())
            put_inputs(self.w, inputs(self.all, times), len(self.scheme.stages))
        self.host["h"][:, 1 : len(t)] = np.diff(t)
        self.take(self.all, len(t) - 1, t, inputs)

    def take(self, which: np.ndarray, n_steps: int, t: np.ndarray, inputs: InputsAt | None = None) -> None:
        """Take `n_steps` steps of motions (k,) between times t (n_steps + 1,) or (n, n_steps + 1) [s].

        Step sizes, loads and inputs must be in the buffers. If `inputs` is None, the inputs in the buffers also serve
        the parts of rejected steps.
        """
        host, counts, span = self.host, self.host["counts"], self.host["span"]
        chosen = _ALL if which is self.all else which
        counts[:, DONE], span[:, :2] = 0, 0
        if self.time_rows is None:
            span[:, 2] = 0  # a lost motion leaves the offset of the rows of its last part
        span[chosen, 1] = n_steps
        for begun, now in self._saved:
            begun[:] = now
        self._launch(t)
        self.lost, self.reached = self.all[:0], counts[:, DONE]
        if self.reached[chosen].min(initial=n_steps) < n_steps:
            if self.w is not None and (self.w.status[chosen] == STATUS_TOO_MANY_PAIRS).any():
                raise near_pairs_error(self.model)
            rejected = _RejectedSteps(self, np.array(np.broadcast_to(t, (self.n, n_steps + 1))), inputs)
            behind = rejected.after(which)
            while len(behind):
                self._launch(rejected.times)
                behind = rejected.after(behind)
            self.lost, self.reached, self.t = np.flatnonzero(rejected.is_lost), rejected.step, rejected.t
        host["h"][chosen, 0] = host["h"][chosen, n_steps]
        self.steps[chosen] += n_steps

    def take_adaptive(self, which: np.ndarray, n_steps: int | None = None) -> np.ndarray:
        """Take adaptive steps of motions (k,) towards their stops.

        Args:
            n_steps: number of planned steps; None: as many as fit into the buffers.
        Returns:
            number of steps that each motion has taken (n,).
        Raises:
            ModelError: more pairs are near each other than there is room for.
        """
        host, counts, span, w = self.host, self.host["counts"], self.host["span"], self.w
        if w is None:
            raise RuntimeError("adaptive steps of a driver need a kernel")
        counts[:, DONE], span[:] = 0, 0
        span[which, 1] = self.longest if n_steps is None else n_steps
        w.run()
        if (w.status[which] == STATUS_TOO_MANY_PAIRS).any():
            w.raise_for_status()
        self.reached = counts[:, DONE].copy()
        host["h"][which, 0] = host["h"][which, self.reached[which]]
        self.steps += self.reached
        return self.reached

    def _launch(self, t: np.ndarray) -> None:
        """Take the steps in `span` of the buffers. A motion stops before a step for which Newton's method fails.

        Args:
            t: times of the steps [s], for steps in Python. The kernel reads their loads from the buffers.
        """
        if self.w is not None:
            self.w.run()
        elif self.python is not None:
            self._in_python(self.python, np.atleast_2d(t)[0])

    def _in_python(self, python: ImplicitSteps, t: np.ndarray) -> None:
        """`_launch` for a single motion with Python between the stages."""
        host = self.host
        for k in range(*host["span"][0, :2].tolist()):
            new = python.step_to(replace(self.state(float(t[k])), h=float(host["h"][0, k])), float(t[k + 1]))
            if new is None:
                return
            for name in NAMES:
                host[name][0] = getattr(new, name)
            host["counts"][0, [DONE, STEADY, IS_PLASTIC]], self.z = (k + 1, new.is_steady, new.is_plastic), new.z
            host["weights"][0, k] = python.weights
            host["counts"][0, PLASTIC_STEPS] += python.weights
            host["out"][0].reshape(-1, self.width)[k] = np.hstack([new.q, new.v, new.a, new.ahead, new.force])

    def put_whole(self, which: np.ndarray, size: Any) -> None:
        """Set the sizes of the steps that motions take in parts [s]; 0 for none."""
        if self.w is not None:
            self.host["adaptive"][which, NEXT] = size
        elif self.python is not None and len(which):
            self.python.whole = float(np.max(size))

    def put_inputs(self, u: np.ndarray, steps: int) -> None:
        """Write inputs to the buffers: (n, nu) for all next steps, or (n, steps, nu) for each of them, constant during
        a step."""
        rows, nu = self.host["inputs"], self.model.nu
        for stage in range(len(self.scheme.stages)):
            rows[:, :steps, stage * nu : (stage + 1) * nu] = u if u.ndim == 3 else u[:, None]

    def count(self, f: StateDerivative) -> None:
        """Add the evaluations, matrices and plastic steps of kernels since the last call to the counts of `f`."""
        counts = self.host["counts"]
        f.evaluations += int(counts[:, EVALUATIONS].sum())
        f.jacobians += int(counts[:, MATRICES].sum())
        f.plastic += int(counts[:, PLASTIC_STEPS].sum())
        f.deepest = max(f.deepest, self.deepest)
        counts[:, [EVALUATIONS, MATRICES, PLASTIC_STEPS]] = 0

    def counted(self, which: slice) -> dict[str, Any]:
        """Statistics of a range of motions since the start of their counts, by the names of Statistics."""
        counts = self.host["counts"][which].sum(axis=0)
        columns = {"evaluations": EVALUATIONS, "jacobians": MATRICES, "plastic": PLASTIC_STEPS}
        found: dict[str, Any] = {name: int(counts[column]) for name, column in columns.items()}
        deepest = float(self.host["deepest"][which].max(initial=0.0)) if "deepest" in self.host else 0.0
        return found | {"steps": int(self.steps[which].sum()), "deepest": deepest}

    @property
    def deepest(self) -> float:
        """Largest depth of a contact at the ends of fixed steps so far [m]."""
        return float(self.host["deepest"].max()) if "deepest" in self.host else 0.0

    @property
    def anchors(self) -> np.ndarray:
        """Anchors of contacts that stick, (n, n_pairs, 6)."""
        if "anchor" in self.host:
            return self.host["anchor"].reshape(self.n, -1, 6).copy()
        return np.array([present_anchors(one) for one in self.model.of_rows(self.n)])

    @anchors.setter
    def anchors(self, anchors: np.ndarray) -> None:
        if "anchor" in self.host:
            self.host["anchor"][:] = anchors.reshape(self.host["anchor"].shape)
        elif self.model.contacts.sticks:
            put_anchors(self.model, anchors[0])

    def back(self) -> None:
        """Return to the states at the start of the last call."""
        for begun, now in self._saved:
            now[:] = begun
        self.host["counts"][:, HAS_MATRIX] = self.host["counts"][:, IS_NOTED] = 0

    def snapshot(self) -> dict[str, Any]:
        """Copies of all data that the next steps depend on: states, counts and kept matrices."""
        self.host["counts"][:, IS_NOTED] = 0  # the snapshot does not hold the contacts that are noted
        names = (*NAMES, "counts", *(("anchor",) if "anchor" in self.host else ()))
        kept = [] if self.w is None else [x.copy() for x in self.w.persistent_arrays(_KEPT)]
        return {"host": {name: self.host[name].copy() for name in names}, "kept": kept, "z": self.z,
                "h": self.host["h"][:, 0].copy(), "steps": self.steps.copy()}  # fmt: skip

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Return to a snapshot, bit for bit."""
        for buffer, value in zip(() if self.w is None else self.w.persistent_arrays(_KEPT), snapshot["kept"]):
            buffer[...] = value
        for name, value in snapshot["host"].items():
            self.host[name][...] = value
        self.host["h"][:, 0] = snapshot["h"]
        self.z, self.steps[:] = snapshot["z"], snapshot["steps"]

    def failure(self, i: int) -> ConvergenceError:
        """The error of a motion that is lost."""
        q = self.host["q"][i].copy()
        why = why_rejected(self.host["counts"][i])
        return failure(self.model.of_row(i, self.n), self.scheme, float(self.t[i]), int(self.steps[i]), why, q)


def _python_host(model: Model, n: int) -> dict[str, np.ndarray]:
    """Arrays that replace the buffers, for one step at a time."""
    sizes = {"q": model.nq, "force": model.n_rows, "force_before": model.n_rows, "h": 2}
    sizes["out"] = model.nq + 3 * model.nv + model.n_rows
    host = {name: np.zeros((n, sizes.get(name, model.nv))) for name in (*NAMES, "h", "out")}
    host |= {"weights": np.zeros((n, 1), dtype=int)}
    return host | {"counts": np.zeros((n, COUNTS), dtype=int), "span": np.zeros((n, 3), dtype=int)}


@final
class _RejectedSteps:
    """Steps of one call that Newton's method rejected. They are divided into parts (see Motions). Launches leave the
    state at the start of a rejected step or part.

    Fields (one entry for each motion):
        step: index of the first step of the last launch, or of the divided step.
        taken: number of completed parts of the divided step.
        size: size of the next part [s]; 0 if no step is divided.
        t, until: start and end of the current part [s].
        is_last: whether the current part ends the step.
        is_lost: whether the next part would be smaller than `Motions.least`.
        times: starts and ends of the steps, or of the current part in place of its step (n, n_steps + 1) [s].
        ends: `times` of the undivided steps.
    """

    def __init__(self, motions: Motions, times: np.ndarray, inputs: InputsAt | None) -> None:
        self.motions, self.host, self.inputs = motions, motions.host, inputs
        self.times, self.ends, self.n_steps = times, times.copy(), times.shape[1] - 1
        self.step, self.taken = np.zeros((2, motions.n), dtype=int)
        self.t, self.until, self.size = np.zeros((3, motions.n))
        self.is_last, self.is_lost = np.zeros((2, motions.n), dtype=bool)

    def after(self, behind: np.ndarray) -> np.ndarray:
        """Evaluate the motions (k,) of the last launch and prepare the next launch. Returns the motions of the next
        launch."""
        self.host["span"][behind, 0] = self.n_steps  # motions without a further step take none
        done, is_cut = self.host["counts"][behind, DONE], self.size[behind] > 0.0
        is_over, has_moved = done == self.n_steps, done > self.step[behind]
        for change, chosen in (
            (self._accept, is_cut & has_moved),
            (self._shorten, is_cut & ~has_moved),
            (self._begin, ~is_cut & ~is_over),
        ):
            if chosen.any():  # each takes some 40 µs, also without motions
                change(behind[chosen])
        over = behind[~is_cut & is_over]
        self.step[over] = self.n_steps
        behind = behind[((self.size[behind] > 0.0) | ~is_over) & ~self.is_lost[behind]]
        divided = self.size[behind] > 0.0
        if divided.any():
            self._prepare(behind[divided])
        return behind

    def _begin(self, which: np.ndarray) -> None:
        """Begin to divide the step at which motions have stopped."""
        k = self.host["counts"][which, DONE]
        self.step[which], self.taken[which], self.t[which] = k, 0, self.ends[which, k]
        self.size[which] = self.ends[which, k + 1] - self.ends[which, k]
        self.motions.put_whole(which, self.size[which])
        self._shorten(which)

    def _shorten(self, which: np.ndarray) -> None:
        """Divide the size of the failed step or part by four. The next launch computes a new iteration matrix, and
        predicts by the last acceleration."""
        self.host["counts"][which, HAS_MATRIX] = self.host["counts"][which, STEADY] = 0
        size = 0.25 * self.size[which]
        self.size[which] = size
        if size.min() < self.motions.least:
            short = which[size < self.motions.least]
            self.is_lost[short] = True
            self.motions.steps[short] += self.step[short] + self.taken[short] - self.n_steps

    def _accept(self, which: np.ndarray) -> None:
        """Accept a part. The next part is twice as long."""
        host, k = self.host, self.step[which]
        rows = slice(None) if len(which) == self.motions.n else which  # a slice takes a fifth of the time
        host["ahead"][rows] = host["a"][rows]  # else a transient of â would grow with the sizes of parts
        self.taken[which] += 1
        self.t[which] = self.until[which]
        host["h"][which, k] = host["h"][which, k + 1]
        self.size[which] *= 2.0
        over = which[self.is_last[which]]
        if not len(over):
            return
        self.motions.steps[over] += self.taken[over] - 1
        self.step[over] += 1
        self.size[over] = 0.0
        self.motions.put_whole(over, 0.0)
        host["counts"][over, HAS_MATRIX] = 0
        host["span"][over, 0], host["span"][over, 1] = self.step[over], self.n_steps
        if self.motions.time_rows is None:
            host["span"][over, 2] = 0

    def _prepare(self, which: np.ndarray) -> None:
        """Write sizes, loads and inputs of the next parts to the buffers."""
        host, motions, k = self.host, self.motions, self.step[which]
        end, begin = self.ends[which, k + 1], self.t[which]
        left = end - begin
        is_last = self.size[which] >= left * (1.0 - 1e-9)
        size = np.where(is_last, left, self.size[which])
        self.is_last[which], self.size[which] = size == left, size
        self.until[which] = until = np.where(size == left, end, begin + size)
        self.times[which, k], self.times[which, k + 1] = begin, until
        host["h"][which, k + 1] = until - begin
        host["counts"][which, DONE] = k
        host["span"][which, 0], host["span"][which, 1] = k, k + 1
        if motions.w is None or not len(which):
            return
        times, stages = ends_of_stages(motions.scheme, begin, until), len(motions.scheme.stages)
        if motions.time_rows is not None:
            motions.time_rows.put_parts(which, k, begin, until)
        else:
            row = len(host["load"]) // MOST_STAGES - motions.w.buffers.capacity + which
            host["span"][which, 2] = row - k
            if motions.model.n_load_rows + motions.model.n_motions or "law_time" in motions.w.host:
                rows = stages * row[:, None] + np.arange(stages)
                put_times(motions.model, motions.w, times.ravel().tolist(), rows.ravel())
        if self.inputs is not None:
            u = self.inputs(which, times)
            host["inputs"][which, k, : stages * motions.model.nu] = u.reshape(len(which), -1)


class _Loads(NamedTuple):
    """Times (n,) of n ends of stages [s], and loads (n, n_load_rows, 6) and prescribed motions (n, 3 n_motions)
    there."""

    time: np.ndarray
    load: np.ndarray
    motion: np.ndarray


@final
class TimeRows:
    """Loads, currents and prescribed motions of motions at different times, in separate rows of the buffers, and these
    times if a feedback law needs them.

    Motions take steps of one size from time zero, so their times are on a grid. The loads of a step on the grid are
    computed once and serve all motions; so they are equal to the last bit.

    Args:
        w: the buffers, with `rows` rows and room for `most` steps.
        dt: step size [s].
        steps: number of steps of a call.
    """

    def __init__(self, model: Model, w: Workspace, scheme: Scheme, n: int, most: int, dt: float, steps: int) -> None:
        self.model, self.scheme, self.n, self.dt, self.steps = model, scheme, n, dt, steps
        self.stages = len(scheme.stages)
        self._load = w.host["load"].reshape(n, most * self.stages, *w.host["load"].shape[1:])
        self._motion = w.host["motion"].reshape(n, most * self.stages, -1)
        law_time = w.host.get("law_time", np.zeros(n * most * self.stages))
        self._time = law_time.reshape(n, most * self.stages)
        w.host["span"][:, 2] = most * np.arange(n)
        self._are_alike = acts_alike(model)
        self._known: dict[tuple[int, int], _Loads] = {}

    @staticmethod
    def are_needed(model: Model) -> bool:
        """Whether loads depend on time or differ between models."""
        varies = model.loads.varies or model.n_motions > 0
        return varies or (model.n_load_rows > 0 and not acts_alike(model))

    @staticmethod
    def rows(scheme: Scheme, n: int, most: int) -> int:
        """Number of rows that the buffers must have."""
        return n * most * len(scheme.stages)

    def put_steps(self, which: np.ndarray, counts: np.ndarray) -> None:
        """Write the loads of the next steps of motions (k,), which have taken `counts` steps (k,), to the buffers."""
        for i, count in zip(which.tolist(), counts.tolist()):
            key = 0 if self._are_alike else i * len(self.model.models) // self.n, count
            found = self._known.get(key)
            if found is None:
                if len(self._known) == _MOST_KNOWN:
                    self._known.clear()
                ends = self.dt * np.arange(count + 1, count + self.steps + 1)
                found = self._known[key] = self._at(self.model.of_row(i, self.n), self.dt * count, ends)
            for rows, own in zip((self._time, self._load, self._motion), found):
                rows[i, : len(own)] = own

    def put_parts(self, which: np.ndarray, numbers: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
        """Write the loads of parts of steps to the buffers: motions (k,), indices of the steps in the call, starts and
        ends [s]."""
        for i, k, start, end in zip(which.tolist(), numbers.tolist(), starts.tolist(), ends.tolist()):
            found, at = self._at(self.model.of_row(i, self.n), start, np.array([end])), slice(k * self.stages, None)
            for rows, own in zip((self._time, self._load, self._motion), found):
                rows[i, at][: self.stages] = own

    def _at(self, model: Model, start: float, ends: np.ndarray) -> _Loads:
        """The loads at the ends of the stages of steps from `start` to the times `ends`."""
        times = stage_times(self.scheme, start, ends)
        motion = model.motions_over(np.array(times)) if model.n_motions else np.zeros((len(times), 0))
        return _Loads(np.array(times), rows_of_times(model, times), motion)


LEG = 2000  # methods whose inner state cannot be stored restart after this many steps, to allow a checkpoint
_PLAIN = (bool, int, float, str, np.ndarray, np.generic, StepState, type(None))


def with_checkpoint(f: StateDerivative, points: list[Any], parts: Mapping[str, Any], loop: Any) -> Iterator[Any]:
    """Yield the points of one iteration of a method's loop; None if there are no points. After the last point, a
    checkpoint can be taken of `parts` and of the state `loop` of the loop."""
    yield from points[:-1]
    f.take_checkpoint = partial(checkpoint_of, f.model, parts, loop)
    if points or f.streams:
        yield points[-1] if points else None
    f.take_checkpoint = None


def checkpoint_of(model: Model, parts: Mapping[str, Any], loop: Any) -> Checkpoint:
    """The checkpoint of the parts of a method and of the state of its loop."""
    return {
        "loop": loop,
        "fields": {name: _fields(part) for name, part in parts.items()},
        "buffers": dict(_buffers(parts)),
        "anchors": present_anchors(model) if model.contacts.sticks else None,
    }


def restored(f: StateDerivative, parts: Mapping[str, Any]) -> Any:
    """Restore the parts of a method from a checkpoint. Returns the state of its loop."""
    memory, model = f.checkpoint, f.model
    if memory is None:
        raise RuntimeError("there is no checkpoint")
    for name, part in parts.items():
        if isinstance(part, Motions):
            part.restore(memory["fields"][name])
        else:
            vars(part).update(memory["fields"][name])
    if memory["anchors"] is not None:
        put_anchors(model, memory["anchors"])
    for name, arrays in memory["buffers"].items():
        part = parts[name]
        part.w = workspace_with_room(model, 1, *part.room)
        for buffer, array in zip(part.w.persistent_arrays(_KEPT), arrays):
            buffer[...] = array
    return memory["loop"]


def _fields(part: Any) -> dict[str, Any]:
    if isinstance(part, Motions):
        return part.snapshot()
    return {name: value for name, value in vars(part).items() if name != "streams" and _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _buffers(parts: Mapping[str, Any]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The persistent step buffers of each part, by the name of the part."""
    for name, part in parts.items():
        w = getattr(part, "w", None)
        if w is not None and not isinstance(part, Motions):
            yield name, [array.copy() for array in w.persistent_arrays(_KEPT)]


def why_rejected(counts: np.ndarray) -> str:
    """The reason why no step of a motion is accepted, by its counts (COUNTS,)."""
    if counts[PASSED] > 0:
        return "a ball went through an obstacle in each of its steps"
    return "Newton's method finds no step"


def deepest_contact(model: Model, q: np.ndarray) -> str:
    """The part of a message that names the deepest contact at q (nq,); empty if nothing touches."""
    touching = contact_forces(model, q) if len(model.contacts.pair) else None
    if touching is None or not len(touching.depth):
        return ""
    k = int(np.argmax(touching.depth))
    name, link = touching.contact[k], touching.link[k]
    return f"; contact {name!r} of link {link!r} is {1e3 * touching.depth[k]:.3g} mm deep"


def end_of_motion(model: Model, q: np.ndarray) -> str:
    """The part of a message that names a coupling whose function ends near q (nq,), or a disc that lies almost flat on
    its plane; empty if there is none."""
    end = model.joint_couplings.without_value(q, NEAR_END) or flat_disc(model, q, _NEAR_FLAT)
    return f"; {end}" if end else ""


def failure(model: Model, scheme: Scheme, t: float, steps: int, why: str, q: np.ndarray) -> ConvergenceError:
    """The error of a motion whose next step from q (nq,) would be too short. `why` is the reason in its message."""
    has_rods = any(isinstance(link.body, Rod) for link in model.description.links.values())
    cures = [
        "a smaller dt",
        "a looser rtol",
        "smoother inputs",
        "damping",
        *(["more Gauss points"] if has_rods else []),
    ]
    text = f"simulation by {scheme.name} stopped at t={t:.6g} s after {steps} steps: {why}"
    deepest, end = deepest_contact(model, q), end_of_motion(model, q)
    if end:
        return ConvergenceError(f"{text}{end}")
    if deepest:
        text += deepest
        cures.append("a softer contact")
    return ConvergenceError(f"{text}; try {', '.join(cures[:-1])} or {cures[-1]}")
