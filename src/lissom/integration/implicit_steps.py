"""Implicit steps on the manifold of configurations, one by one; the equations of all of them.

The unknown of a step is the tangent increment Δ of the configuration; quaternions turn by exp(Δ), so that nothing is
singular, however far the robot turns.

    r(Δ) = ID(q ⊕ Δ, v, a) − B u = Aᵀ λ,   a = c₀ Δ + known,  v = c₁ Δ + known                             (1)
    ∂r/∂Δ = c₀ ∂r/∂a + c₁ ∂r/∂v + ∂r/∂q T(Δ)                                                              (2)

What is known is a sum of values at the start and in earlier stages with the weights of the scheme (`schemes`).

Loops add the rows e(q ⊕ Δ) = 0 (index 3). With a projection of velocities λ keeps A v = 0 at the end of the step
instead, and a second multiplier closes the loops in q alone (Gear, Gupta and Leimkuhler), both of second order:

    q ⊕ (Δ + δ),   δ along the matrix⁻¹ Aᵀ η,   e = 0 by η,   A v = 0 by λ                                 (3)

Schemes that damp nothing would carry the rounding of A a + Ȧ v = 0 on for ever, with changing sign; it is taken off:

    a − δ,   λ − δλ / c₀   with  [K, −Aᵀ; A_q, 0] (δ; δλ) = (0; A a + Ȧ v)  for the matrix K of (2)          (4)

With fixed steps Newton's iteration starts from an acceleration that goes on as it changed, or that stays where this
was nearer to the last one. It ends where what it leaves is within the tolerance and far below the error of the step:

    aᵖ = aₙ + (aₙ − aₙ₋₁)   or   aᵖ = aₙ,   λ alike                                                        (5)
    |δ| ≤ 1e-4 |aₙ₊₁ − aᵖ| / c₀   in natural units, for the rest δ of Δ                                      (6)

Where the motion is resolved, aₙ₊₁ − aᵖ is h² d²a/dt². The rest is of order h⁴ then and changes v by c₁ δ, of order h³
as the error of the step itself is: the order stays, however short the steps are. (A share of h³ da/dt, which aₙ misses,
would not do: it leaves h² in v, which adds up to first order.) Where not even a new matrix brings an iteration within
the tolerance further, rounding rules: that one is taken as it is, and for a while so are others that end there.

Coordinates with a prescribed motion take its position, velocity and acceleration at the end of the step; what is left
of r in their rows is the force λ of the motion. Mathew 2025 (45) gives the position alone and leaves the acceleration
to the scheme: after a change of step it then is of first order, and with Newmark's ¼ and ½ its error grows with t and
does not fall with h. Newton's matrix is kept from step to step while the size stays and it contracts.
Source: Mathew 2025 §4, eqs. (10)-(12), and §5; Boyer 2023 §VI; M. Arnold, O. Brüls, A. Cardona, Numer. Math. 129, 2015.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import final

import numpy as np

from lissom.dynamics.actuation import input_response
from lissom.dynamics.assembly import on_motion
from lissom.dynamics.configuration import groups, integrate
from lissom.dynamics.contacts import contact_anchors, put_anchors
from lissom.dynamics.loads import put_python_forces, python_response
from lissom.integration.controller_steps import ControllerSteps, ControllerUnsolved
from lissom.integration.fused_runs import (
    put_start,
    put_times,
    room_for,
    roomy_workspace,
    stage_times,
    states_follow,
    whole_room,
)
from lissom.integration.schemes import Scheme, StepState
from lissom.integration.starts import accelerations, starting_accelerations
from lissom.integration.state import StateDerivative, takes_state
from lissom.integration.step_rows import (
    C1,
    ERROR,
    EVALUATIONS,
    MADE_HERE,
    MATRICES,
    NEW_FIRST,
    SLOW_IS_ENOUGH,
    STEADY,
    scheme_numbers,
)
from lissom.integration.step_stages import AVOID_KEPT, BEGIN, CONVERGED, FAILED, MATRIX, RESIDUAL
from lissom.launch.prepare import Wanted
from lissom.launch.workspace import Workspace
from lissom.lie.arrays import se3_tangent, so3_tangent
from lissom.model.model import Model
from lissom.passes.scratch import STATUS_CROWDED

_ROOT_EPS = float(np.sqrt(np.finfo(float).eps))
_WANTED = {RESIDUAL: Wanted(sums=True), MATRIX: Wanted(differentiates=True, rough=True)}  # by the parts that ask Python
_LONGEST_AVOIDED = 16 * AVOID_KEPT  # stages before a kept matrix is tried again


def _of_rows(law: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A function of t and of one state as one of rows, of which there is one."""
    return lambda t, *rows: law(t, *(x[0] for x in rows))[None]


@final
class ImplicitSteps:
    """Steps of one scheme for one robot; counts evaluations in `f`. Without a share for (6) the tolerance rules."""

    def __init__(
        self,
        model: Model,
        f: StateDerivative,
        scheme: Scheme,
        rtol: float,
        atol: tuple[float, float],
        project: bool,
        share: float | None = None,
    ) -> None:
        self.model, self.f, self.scheme, self.control = model, f, scheme, ControllerSteps(f, scheme)
        self.rtol, self.atol, self.project = rtol, atol, project and model.n_rows > 0
        self.numbers = scheme_numbers(scheme, rtol, atol, self.project, share)
        self.leaves_states = states_follow(model, self.project, share is None)
        self.room: tuple[int, int] | None = None
        self.w: Workspace | None = None  # its own, from the first step on
        self.has_matrix = False  # whether the last step left one there
        self.answer: np.ndarray | None = None  # ∂u/∂(q, v) of a continuous controller
        self.new_first = self.slow_is_enough = 0  # as counted in step_stages
        self.in_vain = 0  # how often of late a kept matrix was tried after some steps that began with a new one
        self.error = 0.0  # of the last step, over the tolerance

    def start(self, q: np.ndarray, v: np.ndarray, z: np.ndarray, h: float | None) -> StepState:
        """The state at t = 0, with its acceleration and the forces of loops, before steps of size h if it is known."""
        q, v = on_motion(self.model, 0.0, q, v)
        inputs, rate = (_of_rows(law) for law in (self.f.inputs, self.f.law.rate))
        rows = starting_accelerations(self.model, self.scheme, q[None], v[None], z[None], inputs, rate, h)
        a, ahead, force, size = (x[0] for x in rows)
        return StepState(0.0, q, v, a, ahead, float(size), force, z, a, force)

    def sampled(self, s: StepState) -> StepState:
        """The state under what a sampled controller now gives; the acceleration jumps, and â must not remember."""
        self.f.sample(s.t, s.q, s.v)
        a, force = self._acceleration(s.t, s.q, s.v, s.z)
        return replace(s, a=a, ahead=a, h=0.0, force=force, before=a, force_before=force)

    def _acceleration(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forward dynamics of a state, and the forces of loops."""
        a, force = accelerations(self.model, t, q[None], v[None], self.f.inputs(t, q, v, z)[None])
        return a[0], force[0]

    def step_to(self, s: StepState, end: float) -> StepState | None:
        """One step to the time `end`, which is not taken back; None where Newton's method fails."""
        new = self.step(s, end - s.t)
        if new is None:
            return None
        self.renew(new)
        return replace(new, t=end)

    def renew(self, s: StepState) -> None:
        """Move the anchors of contacts to where they are after a step that is not taken back."""
        if self.model.surroundings.sticks:
            put_anchors(self.model, contact_anchors(self.model, s.q, s.v))

    def step(self, s: StepState, h: float) -> StepState | None:
        """One step of size h; None where Newton's method fails."""
        kept = self.answer
        new = self._step(s, h)
        if new is None and kept is not None and self.answer is kept:
            self.answer = None  # the derivatives of the law may have been too old
            new = self._step(s, h)
        return new

    def _step(self, s: StepState, h: float) -> StepState | None:
        w = self._buffers()
        self._put(w, s, h)
        try:
            found = self._iterated(w, s, h)
        except ControllerUnsolved:
            found = None
        counts = w.host["counts"][0].tolist()
        self.new_first, self.slow_is_enough = self._avoids_kept(counts[NEW_FIRST]), counts[SLOW_IS_ENOUGH]
        self.f.evaluations += counts[EVALUATIONS]
        self.f.jacobians += counts[MATRICES]
        self.has_matrix = found is not None
        if found is None:
            self.control.inverse = None  # may be that of a state on the way
        return found

    def _buffers(self) -> Workspace:
        """Its buffers; others than before, without a matrix, where a controller begins or ends to act continuously."""
        room = whole_room(self.model) if self.f.is_feedback else room_for(self.model)
        if self.w is None or room != self.room:
            self.w, self.room, self.has_matrix = roomy_workspace(self.model, 1, *room), room, False
        return self.w

    def forget(self) -> None:
        """Let the next step begin with a matrix of its own."""
        self.has_matrix = False

    def _avoids_kept(self, counted: int) -> int:
        """How many steps begin with a new matrix: under feedback on bodies that Python evaluates, where a try in vain
        costs much, twice as many each time."""
        if counted == AVOID_KEPT and self.new_first <= 1 and self.f.is_feedback and self.model.calls_python:
            self.in_vain += 1
            return min(counted << (self.in_vain - 1), _LONGEST_AVOIDED)
        if counted == 0:
            self.in_vain = 0
        return counted

    def _put(self, w: Workspace, s: StepState, h: float) -> None:
        """Fill in where a step of size h starts, and what the last one left."""
        put_start(w, self.numbers, s, 1, self.has_matrix, (self.new_first, self.slow_is_enough))
        w.host["h"][0, 1] = h
        put_times(self.model, w, stage_times(self.scheme, s.t, np.array([s.t + h])))

    def _iterated(self, w: Workspace, s: StepState, h: float) -> StepState | None:
        """The state at the end of a step, the kernel pausing behind each part of its stages."""
        host, again = w.host, False
        for k, stage in enumerate(self.scheme.stages):
            self.control.begin(s, h, k)
            t, u, part = s.t + stage.end * h, np.zeros(0), BEGIN
            while part < FAILED:
                q, v = host["q"][0].copy(), host["v"][0].copy()
                try:
                    if part == RESIDUAL:
                        u = self.control.inputs(t, q, v)
                        self._put_forces(w, k, t, q, v, u)
                    host["pause"][0] = 1, part, k
                    w.run(_WANTED.get(part), still=part not in _WANTED)
                    if part == MATRIX:
                        self._add_answers(w, t, q, v, u, again)
                        again = True
                except Exception:
                    if takes_state(self.model, q, v) and takes_state(self.model, *self._moved(q, v)[1:]):
                        raise
                    return None  # Newton's method has left the states that the robot can have
                part = int(w.host["pause"][0, 1])
            if w.status[0] == STATUS_CROWDED:
                w.raise_for_status()
            if part != CONVERGED:
                return None
            if k + 1 < len(self.scheme.stages):
                self.control.end(s, h, t, host["q"][0].copy(), host["v"][0].copy())
        q, v, a, ahead, force = (w.host[name][0].copy() for name in ("q", "v", "a", "ahead", "force"))
        z = self.control.state(s.t + h, q, v)
        self.error = float(host["notes"][0, ERROR])
        return StepState(s.t + h, q, v, a, ahead, h, force, z, s.a, s.force, bool(w.host["counts"][0, STEADY]))

    def _put_forces(self, w: Workspace, stage: int, t: float, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Fill in inputs, and the forces that come from Python, at a state."""
        model, host = self.model, w.host
        host["inputs"][0, 0, stage * model.nu : (stage + 1) * model.nu] = u
        put_python_forces(model, host["extra"][0], host["load"][stage], q, v, u, t)

    def _add_answers(self, w: Workspace, t: float, q: np.ndarray, v: np.ndarray, u: np.ndarray, again: bool) -> None:
        """Add to the matrix (2) how forces that come from Python answer to q and v; `again` where it is not the first
        of its step."""
        model, note = self.model, w.host["notes"][0]
        if not (model.calls_python or self.f.is_feedback):
            return
        dq, dv = python_response(model, q, v, u, t)
        if self.f.is_feedback:
            by_q, by_v = np.split(input_response(model, q, u) @ self._law_answer(t, q, v, again), 2, axis=1)
            dq, dv = dq - by_q, dv - by_v
            note[MADE_HERE] = again or self.f.law.derivatives is not None  # else those of the law may be old
        move = w.host["move"][0]
        for _, j, free in groups(model):
            block = slice(j, j + (6 if free else 3))
            dq[:, block] = dq[:, block] @ (se3_tangent if free else so3_tangent)(move[block])
        matrix = w.host["matrix"][0].reshape(model.nv, -1)[:, : model.nv]
        matrix += dq + note[C1] * dv

    def _law_answer(self, t: float, q: np.ndarray, v: np.ndarray, again: bool) -> np.ndarray:
        """∂u/∂(q, v) of a continuous controller, by differences that take its state z along, unless it knows them.

        They cost more than all the rest of a matrix and change little: old ones serve until a matrix made with them
        contracts slowly.
        """
        answer, known = self.answer, self.f.law.derivatives
        if known is not None:
            return known(t, q, v, self.control.state(t, q, v))
        if again or answer is None:
            steps, *moved = self._moved(q, v)
            answer = self.answer = (self.control.changes(t, q, v, list(zip(*moved))) / steps[:, None]).T
        return answer

    def _moved(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Small steps (2 nv,) of q and v, and the states (2 nv, nq), (2 nv, nv) that each leads to."""
        model, scale = self.model, self.model.dofs.scale
        steps = _ROOT_EPS * np.concatenate([scale, np.maximum(np.abs(v), scale)])
        by_q, by_v = np.split(np.diag(steps), 2, axis=1)
        return steps, integrate(model, q, by_q), v + by_v
