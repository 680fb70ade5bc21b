"""Single implicit steps for robots and controllers that Python evaluates between the parts of a stage.

The kernel pauses after each part of a stage (newton_stages). Python writes the forces of the user's functions to the
buffers before the residual, and adds their derivatives to the matrix. A stage advances the state z of a continuous
controller by its weights `first_order`:

    z = zₙ + h (w₀ rate(tₙ, qₙ, vₙ, zₙ) + w₁ rate(t, q, v, z)) + the part of earlier stages                 (1)

at the end t of a stage. w₀ = w₁ = ½ is the trapezoidal rule, of second order like the schemes; implicit Euler has w₀ =
0, w₁ = 1. Newton's method solves (1) at every q and v that the step tries. So u is a function of q and v only, and a
rejected step changes nothing. For small increments of q and v, at z and with W = (1 − h w₁ ∂rate/∂z)⁻¹,

    δz = W h w₁ (rate(q + δq, v + δv, z) − rate(q, v, z)),   δu = output(q + δq, v + δv, z + δz) − output(q, v, z)   (2)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import final

import numpy as np

from lissom.dynamics.actuation import input_response
from lissom.dynamics.assembly import prescribed_state
from lissom.dynamics.configuration import integrate, quaternion_joints
from lissom.dynamics.contacts import contact_anchors, put_anchors
from lissom.dynamics.loads import put_python_forces, python_response
from lissom.launch.prepare import TableOptions
from lissom.launch.workspace import Workspace
from lissom.lie.arrays import se3_tangent, so3_tangent
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_TOO_MANY_PAIRS
from lissom.stepping.driver import accelerations, starting_accelerations
from lissom.stepping.newton_stages import (
    AVOID_REUSE,
    BEGIN,
    CONVERGED,
    FAILED,
    JUDGE,
    LAST_JUDGE,
    MATRIX,
    NOTE,
    RESIDUAL,
    SAME_SIZE,
    SLOW_CONTRACTION,
    UNSOLVED,
)
from lissom.stepping.schemes import Scheme, Stage, StepState, implicit_euler
from lissom.stepping.state import StateDerivative, takes_state
from lissom.stepping.step_changes import CHANGED, KEPT, may_change
from lissom.stepping.step_kernel import (
    Room,
    dense_room,
    put_start,
    put_times,
    room_for,
    stage_times,
    states_follow,
    workspace_with_room,
)
from lissom.stepping.step_rows import (
    C0,
    C1,
    ERROR,
    EVALUATIONS,
    IS_PLASTIC,
    IS_SAFE,
    MADE_HERE,
    MATRICES,
    NEW_FIRST,
    SLOW_IS_ENOUGH,
    STEADY,
    scheme_numbers,
)
from lissom.stepping.step_sizes import LEAST, NEXT

_SOLVED = 1e-13  # largest residual of (1), relative to the size of its terms
_ROUNDING = 1e-9  # below this residual, rounding errors may prevent it from shrinking
_MOST_ITERATIONS = 12
_ROOT_EPS = float(np.sqrt(np.finfo(float).eps))


@final
class ControllerUnsolved(Exception):
    """Newton's method finds no solution of (1), so the step is too long."""


@final
class ControllerSteps:
    """u and z at the end of steps."""

    def __init__(self, f: StateDerivative) -> None:
        self.f, self.size = f, len(f.law.carried)
        self.base = self.guess = f.law.carried
        self.weight = 0.0
        self.inverse: np.ndarray | None = None
        self.earlier: list[np.ndarray] = []  # the terms of (1), in the order of the weights after the first

    def begin(self, s: StepState, h: float, k: int, stage: Stage) -> None:
        """Start stage k of a step of size h [s]: compute the known terms of (1)."""
        if self.size == 0:
            return
        late, *weights = stage.first_order
        if abs(self.weight - late * h) > SAME_SIZE.value * h:
            self.inverse = None
        self.weight = late * h
        if k == 0:
            self.earlier = [h * self.f.law.rate(s.t, s.q, s.v, s.z)]
        self.base = s.z + sum(w * x for w, x in zip(weights, self.earlier))
        self.guess = s.z + stage.end * self.earlier[0]

    def end(self, s: StepState, h: float, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Store z and its rate at the end of a stage, for the following stages."""
        if self.size:
            z = self.state(t, q, v)
            self.earlier += [z - s.z, h * self.f.law.rate(t, q, v, z)]

    def inputs(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """u (nu,) for a step that ends at q and v."""
        return self.f.inputs(t, q, v, self.state(t, q, v))

    def state(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The solution z of (1).

        Raises:
            ControllerUnsolved: no solution was found.
        """
        if self.size == 0:
            return self.base
        z, last = self.guess, np.inf
        for iteration in range(_MOST_ITERATIONS):
            rate = self.f.law.rate(t, q, v, z)
            miss = z - self.base - self.weight * rate
            terms = np.abs(z) + np.abs(self.base) + self.weight * np.abs(rate)
            left = float(np.max(np.abs(miss) / np.maximum(terms, 1e-300)))
            if left <= _SOLVED or (left <= _ROUNDING and left > SLOW_CONTRACTION.value * last):
                self.guess = z
                return z
            if self.inverse is None or left > SLOW_CONTRACTION.value * last or iteration in (4, 8):
                self.inverse = self._inverse(t, q, v, z, rate)
            z, last = z - self.inverse @ miss, left
        raise ControllerUnsolved

    def changes(self, t: float, q: np.ndarray, v: np.ndarray, moved: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """δu of (2) for n slightly changed states `moved`, a list of (q, v): shape (n, nu)."""
        law, z = self.f.law, self.state(t, q, v)
        u = law.inputs(t, q, v, z)
        if self.size == 0:
            return np.array([law.inputs(t, *state, z) - u for state in moved])
        rate = law.rate(t, q, v, z)
        if self.inverse is None:
            self.inverse = self._inverse(t, q, v, z, rate)
        dz = self.weight * self.inverse
        return np.array([law.inputs(t, *state, z + dz @ (law.rate(t, *state, z) - rate)) - u for state in moved])

    def _inverse(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """W of (2), shape (nz, nz), by finite differences."""
        step = _ROOT_EPS * np.maximum(np.abs(z), 1.0)
        slopes = [(self.f.law.rate(t, q, v, z + row) - rate) / row.sum() for row in np.diag(step)]
        try:
            return np.linalg.inv(np.eye(self.size) - self.weight * np.array(slopes).T)
        except np.linalg.LinAlgError:
            raise ControllerUnsolved from None


_ROOT_EPS = float(np.sqrt(np.finfo(float).eps))
_TABLE_OPTIONS = {
    RESIDUAL: TableOptions(only_along_v=True),
    MATRIX: TableOptions(derivatives=True, approximate=True),
}  # by the parts that call Python
_LONGEST_AVOIDED = 16 * AVOID_REUSE  # largest number of stages before a reused matrix is tried again


def _turned(model: Model, move: np.ndarray, by_q: np.ndarray) -> np.ndarray:
    """Derivatives with respect to q (n, nv), times T(Δ) of the increment of a step (nv,)."""
    found = by_q.copy()
    for _, j, free in quaternion_joints(model):
        block = slice(j, j + (6 if free else 3))
        found[:, block] = by_q[:, block] @ (se3_tangent if free else so3_tangent)(move[block])
    return found


def _of_rows(law: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A function of t and one state, converted to a function of t and rows with a single state."""
    return lambda t, *rows: law(t, *(x[0] for x in rows))[None]


@final
class ImplicitSteps:
    """Steps of one scheme for one robot. `f` gives the inputs, and its counter `f.evaluations` is increased.

    Args:
        share: the factor 1e-4 in (6) of newton_stages; None: without (6), the tolerances alone end the iteration.
    Fields:
        least: size below which no step is divided [s]; infinity: none is.
        whole: size of the step of which the next one is a part [s]; 0 if it is not divided.
    """

    def __init__(
        self,
        model: Model,
        f: StateDerivative,
        scheme: Scheme,
        rtol: float,
        atol: tuple[float, float],
        project: bool,
        share: float | None = None,
        *,
        damps: bool = False,
    ) -> None:
        self.model, self.f, self.scheme, self.control = model, f, scheme, ControllerSteps(f)
        self.rtol, self.atol, self.project = rtol, atol, project and model.n_rows > 0
        self.numbers = scheme_numbers(scheme, rtol, atol, self.project, share, damps=damps)
        self.stages = scheme.stages, implicit_euler().stages  # by the rows of `numbers`
        self.whole = 0.0
        self.judges, self.least = share is not None and may_change(model), np.inf
        self.weights = 0  # row of the last step
        self.verdict = KEPT  # on the last step (step_changes)
        self.leaves_states = states_follow(model, self.project, share is None)
        self.room: Room | None = None
        self.w: Workspace | None = None  # None before the first step
        self.has_matrix = False  # whether the last step has left a matrix in w
        self.du: np.ndarray | None = None  # ∂u/∂(q, v) of a continuous controller
        # Under a law whose evaluations cost as much as a matrix, a motion begins as if a reused matrix had failed
        costly = f.law.along_step is not None
        self.new_first, self.slow_is_enough = AVOID_REUSE if costly else 0, 0  # counts of step_rows
        self.in_vain = int(costly)  # number of consecutive failures of a reused matrix after it was tried again
        self.error = 0.0  # of the last step, over the tolerance

    def start(self, q: np.ndarray, v: np.ndarray, z: np.ndarray, h: float | None) -> StepState:
        """The state at t = 0, with its acceleration and the constraint forces. `h` is the step size [s] if it is
        fixed."""
        q, v = prescribed_state(self.model, 0.0, q, v)
        inputs, rate = (_of_rows(law) for law in (self.f.inputs, self.f.law.rate))
        rows = starting_accelerations(self.model, self.scheme, q[None], v[None], z[None], inputs, rate, h)
        a, ahead, force, size = (x[0] for x in rows)
        return StepState(0.0, q, v, a, ahead, float(size), force, z, a, force)

    def sampled(self, s: StepState) -> StepState:
        """The state after a sample of the controller has changed the inputs."""
        self.f.sample(s.t, s.q, s.v)
        return self.under_other_inputs(s)

    def under_other_inputs(self, s: StepState) -> StepState:
        """The state after a jump of the inputs: the acceleration is computed again, and â and the trend of a are
        reset."""
        a, force = self._acceleration(s.t, s.q, s.v, s.z)
        return replace(s, a=a, ahead=a, h=0.0, force=force, before=a, force_before=force)

    def _acceleration(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Acceleration of a state by forward dynamics, and the constraint forces."""
        a, force = accelerations(self.model, t, q[None], v[None], self.f.inputs(t, q, v, z)[None])
        return a[0], force[0]

    def step_to(self, s: StepState, end: float) -> StepState | None:
        """Take one final step to the time `end` [s]; None if Newton's method fails."""
        new = self.step(s, end - s.t)
        if new is None:
            return None
        self.renew(new)
        return replace(new, t=end)

    def renew(self, s: StepState) -> None:
        """Move the anchors of contacts to their places after a final step."""
        if self.model.contacts.sticks:
            put_anchors(self.model, contact_anchors(self.model, s.q, s.v))

    def step(self, s: StepState, h: float) -> StepState | None:
        """Take one step of size h [s]; None if Newton's method fails."""
        kept = self.du
        new = self._step(s, h)
        if new is None and kept is not None and self.du is kept:
            self.du = None  # the failed step may have used outdated derivatives of the law
            new = self._step(s, h)
        return new

    def _step(self, s: StepState, h: float) -> StepState | None:
        w, found = self._buffers(), None
        is_safe = self.numbers[0, IS_SAFE] != 0.0
        for row in range(int(s.is_plastic or is_safe), 2) if self.judges else (0,):
            self._put(w, s, h, row)
            try:
                found = self._iterated(w, s, h, row)
            except ControllerUnsolved:
                found = None
            if found is not None:
                break
            known = w.host["counts"][0].tolist()
            self.has_matrix, self.new_first, self.slow_is_enough = False, known[NEW_FIRST], known[SLOW_IS_ENOUGH]
            s = replace(s, is_steady=False)
            if not (self.verdict == CHANGED or (self.verdict == KEPT and len(self.model.contacts.pair))):
                break
        counts = w.host["counts"][0].tolist()
        self.new_first, self.slow_is_enough = self._avoids_reuse(counts), counts[SLOW_IS_ENOUGH]
        self.f.evaluations += counts[EVALUATIONS]
        self.f.jacobians += counts[MATRICES]
        self.has_matrix = found is not None
        if found is None:
            self.control.inverse = None  # it may belong to a state of the failed iteration
        return found

    def _buffers(self) -> Workspace:
        """The buffers. New ones without a matrix are made when a controller begins or ends to act continuously."""
        room = dense_room(self.model) if self.f.is_feedback else room_for(self.model)
        if self.w is None or room != self.room:
            self.w, self.room, self.has_matrix = workspace_with_room(self.model, 1, *room), room, False
        return self.w

    @property
    def counts(self) -> np.ndarray:
        """The counts of the kernel, shape (1, COUNTS)."""
        return self._buffers().host["counts"]

    @property
    def earlier(self) -> np.ndarray:
        """Δ, its rate and a of all stages but the last, in the last step, shape (stages − 1, 3, nv)."""
        rows = self._buffers().host["earlier"].reshape(-1, 3, self.model.nv)
        return rows[: len(self.scheme.stages) - 1]

    def forget(self) -> None:
        """Discard the reused matrix: the next step computes a new one."""
        self.has_matrix = False

    def _avoids_reuse(self, counts: list[int]) -> int:
        """Number of stages that begin with a new matrix. With feedback and Python forces, a failed attempt with a
        reused matrix is expensive; then the number doubles with each failure. A law that gives its derivatives along a
        step computes a mass matrix at each evaluation, which costs as much as Newton's matrix. There a reused matrix
        has failed already if it needs more than one evaluation in addition to the two of a new one."""
        counted, tried = counts[NEW_FIRST], self.has_matrix and self.new_first <= 1
        if not self.f.is_feedback:
            return counted
        costly = self.f.law.along_step is not None
        if costly and tried and counts[EVALUATIONS] > 3 * len(self.scheme.stages):
            counted = AVOID_REUSE
        if counted == AVOID_REUSE and self.new_first <= 1 and (costly or self.model.calls_python):
            self.in_vain += 1
            return min(counted << (self.in_vain - 1), _LONGEST_AVOIDED)
        if counted == 0:
            self.in_vain = 0
        return counted

    def _put(self, w: Workspace, s: StepState, h: float, row: int) -> None:
        """Write the start of a step of size h with the weights of a row of `numbers`, and the data kept from the last
        step, to the buffers. List the contacts at the start."""
        before = w.host["counts"][0, [EVALUATIONS, MATRICES]].copy() if row and not s.is_plastic else 0
        put_start(w, self.numbers, s, 1, self.has_matrix, (self.new_first, self.slow_is_enough))
        w.host["h"][0, 1] = h
        w.host["counts"][0, [EVALUATIONS, MATRICES]] += before
        w.host["counts"][0, IS_PLASTIC], self.weights = row, row
        w.host["adaptive"][0, [LEAST, NEXT]] = self.least, self.whole
        put_times(self.model, w, stage_times(self.scheme, s.t, np.array([s.t + h])))

    def _iterated(self, w: Workspace, s: StepState, h: float, row: int) -> StepState | None:
        """The state at the end of a step, with Python after each part of its stages; None if Newton's method fails, or
        contacts change and the step is to be repeated or divided."""
        host, again, stages, last = w.host, False, self.stages[row], len(self.scheme.stages) - 1
        self.verdict = KEPT
        if self.judges:
            host["deepest"][0] = 0.0
            self._run(w, NOTE, 0, row)
            self.f.deepest = max(self.f.deepest, float(host["deepest"][0]))
        for k, stage in enumerate(stages):
            at = last if row else k  # implicit Euler has the loads and inputs at the end of the step
            self.control.begin(s, h, k, stage)
            t, u, part = s.t + stage.end * h, np.zeros(0), BEGIN
            while part < FAILED:
                q, v = host["q"][0].copy(), host["v"][0].copy()
                try:
                    if part == RESIDUAL:
                        u = self.control.inputs(t, q, v)
                        self._put_forces(w, at, t, q, v, u)
                    self._run(w, part, k, row)
                    if part == MATRIX:
                        self._add_responses(w, t, q, v, u, again)
                        again = True
                except Exception:
                    if takes_state(self.model, q, v) and takes_state(self.model, *self._moved(q, v)[1:]):
                        raise
                    part = UNSOLVED  # Newton's method has reached a state that the robot cannot have
                    continue
                part = int(w.host["pause"][0, 1])
            if w.status[0] == STATUS_TOO_MANY_PAIRS:
                w.raise_for_status()
            if part == CONVERGED and self.judges:
                self._run(w, LAST_JUDGE if k + 1 == len(stages) else JUDGE, k, row)
                part, self.verdict = int(host["pause"][0, 1]), int(host["pause"][0, 3])
            if part != CONVERGED:
                return None
            if k + 1 < len(stages):
                self.control.end(s, h, t, host["q"][0].copy(), host["v"][0].copy())
        q, v, a, ahead, force = (w.host[name][0].copy() for name in ("q", "v", "a", "ahead", "force"))
        z = self.control.state(s.t + h, q, v)
        self.error = float(host["notes"][0, ERROR])
        steady, plastic = w.host["counts"][0, [STEADY, IS_PLASTIC]].astype(bool).tolist()
        return StepState(s.t + h, q, v, a, ahead, h, force, z, s.a, s.force, steady, plastic)

    def _run(self, w: Workspace, part: int, stage: int, row: int) -> None:
        """Run one part of a stage, with the weights of a row of `numbers`."""
        w.host["pause"][0] = 1, part, stage, row
        w.run(_TABLE_OPTIONS.get(part), keep_tables=part not in _TABLE_OPTIONS)

    def _put_forces(self, w: Workspace, stage: int, t: float, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Write inputs, and the forces that Python computes, at a state to the buffers."""
        model, host = self.model, w.host
        host["inputs"][0, 0, stage * model.nu : (stage + 1) * model.nu] = u
        put_python_forces(model, host["extra"][0], host["load"][stage], q, v, u, t)

    def _add_responses(self, w: Workspace, t: float, q: np.ndarray, v: np.ndarray, u: np.ndarray, again: bool) -> None:
        """Add the derivatives of Python forces with respect to q and v to the matrix (2) of newton_stages. `again` is
        True if it is not the first matrix of the step."""
        model, note = self.model, w.host["notes"][0]
        if not (model.calls_python or self.f.is_feedback):
            return
        move, along = w.host["move"][0], self.f.law.along_step
        matrix = w.host["matrix"][0].reshape(model.nv, -1)[:, : model.nv]
        if self.f.is_feedback and along is not None and not model.calls_python:
            B, by_step = along(t, q, v, matrix, note[C0], note[C1], partial(_turned, model, move))
            matrix -= B @ by_step
            note[MADE_HERE] = True
            return
        dq, dv = python_response(model, q, v, u, t)
        if self.f.is_feedback:
            by_q, by_v = np.split(input_response(model, q, v, u, t) @ self._law_derivatives(t, q, v, again), 2, axis=1)
            dq, dv = dq - by_q, dv - by_v
            note[MADE_HERE] = again or self.f.law.derivatives is not None  # else those of the law may be old
        matrix += _turned(model, move, dq) + note[C1] * dv

    def _law_derivatives(self, t: float, q: np.ndarray, v: np.ndarray, again: bool) -> np.ndarray:
        """∂u/∂(q, v) of a continuous controller, from the law's derivatives, or by finite differences in which z
        changes too.

        Finite differences cost more than the rest of the matrix and change little. Old ones are used until a matrix
        made with them converges slowly.
        """
        du, known = self.du, self.f.law.derivatives
        if known is not None:
            return known(t, q, v, self.control.state(t, q, v))
        if again or du is None:
            steps, *moved = self._moved(q, v)
            du = self.du = (self.control.changes(t, q, v, list(zip(*moved))) / steps[:, None]).T
        return du

    def _moved(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Increments for finite differences, shape (2 nv,): nv for q, then nv for v. And the incremented states, (2 nv,
        nq) and (2 nv, nv)."""
        model, scale = self.model, self.model.dofs.scale
        steps = _ROOT_EPS * np.concatenate([scale, np.maximum(np.abs(v), scale)])
        by_q, by_v = np.split(np.diag(steps), 2, axis=1)
        return steps, integrate(model, q, by_q), v + by_v
