"""Implicit steps on the manifold of configurations: generalised-α, Newmark, HHT, implicit Euler.

The unknown of a step is the tangent increment Δ of the configuration; quaternions turn by exp(Δ), so that nothing is
singular, however far the robot turns.

    r(Δ) = ID(q ⊕ Δ, vₙ₊₁, aₙ₊₁) − B u = Aᵀ λ,    v and a from (1), (2) of schemes                         (1)
    ∂r/∂Δ = c₀ ∂r/∂a + c₁ ∂r/∂v + ∂r/∂q T(Δ),    c₀ = (1 − α_m) / ((1 − α_f) b₁ h²),  c₁ = g₁ / (b₁ h)       (2)

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
from typing import NamedTuple, final

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs  # pyright: ignore[reportAttributeAccessIssue]

from lissom.dynamics.assembly import on_motion
from lissom.dynamics.configuration import groups, integrate
from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.contacts import contact_anchors, put_anchors
from lissom.dynamics.forward_dynamics import run_residual
from lissom.dynamics.independent_rows import bordered_matrix, independent_rows
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.tensions import input_response
from lissom.integration.controller_steps import ControllerSteps, ControllerUnsolved
from lissom.integration.schemes import Scheme, StepState
from lissom.integration.starts import accelerations, starting_accelerations
from lissom.integration.state import StateDerivative
from lissom.lie.arrays import se3_tangent, so3_tangent
from lissom.model.model import Model
from lissom.sweep.scratch import STATUS_CROWDED

_NEWTON_SHARE = 1e-2  # of the tolerance, so that Newton's error hides below the scheme's
_SLOW = 0.3  # contraction above which the matrix is made anew
_MOST_ITERATIONS = 12
_DOUBT = 9  # steps that begin with a new matrix after two in a row whose kept one was of no use
_SPARED = 30  # steps that take a slow iteration within the tolerance as it is, after a new matrix was of no use to one
_SAME_SIZE = 1e-6  # relative change of the step that a kept matrix allows
_CLOSED = 1e-11  # residual of a loop [rad, m]
_AT_REST = 1e-9  # its rate [rad/s, m/s]
_DOUBTFUL = 0.5  # contraction of a step's own matrix above which changes as long as
_FAR = 0.2  # this, of the whole move, may lead to another root: the step is cut
_ROUNDING = 1e-13  # size below which it may keep a step from shrinking
_LEAST = 2e-15  # rest that rounding may be the cause of
_EPS = float(np.finfo(float).eps)
_ROOT_EPS = float(np.sqrt(np.finfo(float).eps))


@final
class StepMatrix(NamedTuple):
    """LU factors of a step's matrix bordered by the kept rows of loops, and σ of that."""

    lu: np.ndarray
    pivots: np.ndarray
    kept: np.ndarray
    sigma: float

    def step(self, model: Model, r: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Newton's step in q and in the forces of loops."""
        x = -dgetrs(self.lu, self.pivots, np.concatenate([r, self.sigma * gap[self.kept]]))[0]
        push = np.zeros(model.n_rows)
        push[self.kept] = self.sigma * x[model.nv :]
        return x[: model.nv], push


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
        atol: float,
        project: bool,
        share: float | None = None,
    ) -> None:
        self.share, self.spared = share, 0
        self.model, self.f, self.scheme, self.control = model, f, scheme, ControllerSteps(f, scheme)
        self.rtol, self.atol, self.project = rtol, atol, project and model.n_rows > 0
        self.held = model.motion_dof
        self.free = np.setdiff1d(np.arange(model.nv), self.held)
        self.factors: tuple[float, StepMatrix] | None = None
        self.answer: np.ndarray | None = None  # ∂u/∂(q, v) of a continuous controller
        self.doubt = 0  # of the kept matrix: 1 after a step that had no use for it, more after two in a row

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
        try:
            self.control.begin(s, h)
            return self._iterated(s, h)
        except ControllerUnsolved:
            return None

    def _iterated(self, s: StepState, h: float) -> StepState | None:
        c, model, s = self.scheme, self.model, s.for_step(h)
        c0, c1 = (1.0 - c.alpha_m) / ((1.0 - c.alpha_f) * c.b1 * h * h), c.g1 / (c.b1 * h)
        move, v, a, ahead, force = self._predicted(s, h)
        guess = a
        kept, self.factors = None if self.project and c.is_undamped else self.factors, None
        matrix = kept[1] if kept is not None and abs(kept[0] - h) <= _SAME_SIZE * h else None
        if self.doubt > 1:
            matrix, self.doubt = None, self.doubt - 1
        on_trial, self.spared = matrix is not None, max(self.spared - 1, 0)
        last, rate, again, own, mine = np.inf, 1.0, False, False, False
        for iteration in range(_MOST_ITERATIONS):
            q = integrate(model, s.q, move)
            r = self._residual(s.t + h, q, v, a, force)
            if r is None:
                return None
            fresh = matrix is None or (iteration > 2 and rate > _SLOW) or (iteration > 0 and rate > 1.0)
            fresh = fresh or iteration in (5, 9)
            if fresh and on_trial:
                self.doubt, on_trial = (_DOUBT if self.doubt else 1), False
            if fresh:
                mine = again or not self.f.is_feedback  # else its derivatives of the law may be old
                matrix, again = self._factored(s.t + h, q, v, a, force, move, c0, c1, again), True
            if matrix is None:
                return None
            asked = r[2] / c1 if self.project else r[1]
            change, push = matrix.step(model, r[0], asked)
            force = force + push
            size = self._size(change)
            if not np.isfinite(size):
                return None
            move, a, v, ahead = move + change, a + c0 * change, v + c1 * change, ahead + change / (c.b1 * h * h)
            if self.project:
                move = move + matrix.step(model, np.zeros(model.nv), r[1] - r[2] / c1)[0]
            rate = size / last if last > 0.0 else 0.0
            far = self._size(move)
            left = min(size, size * rate / (1.0 - rate)) if rate < 1.0 and np.isfinite(last) else size
            is_last = (own and rate > _SLOW) or iteration == _MOST_ITERATIONS - 1
            is_stuck = size < _ROUNDING and rate > _SLOW and fresh
            if self._is_enough(far, left, self._size(a - guess) / c0, rate, is_stuck, is_last):
                q = integrate(model, s.q, move)
                missing = self._still_open(q, v)
                if missing.max(initial=0.0) <= 1.0:
                    self.doubt = 0 if on_trial else self.doubt
                    self.factors = h, matrix
                    z, is_steady = self.control.state(s.t + h, q, v), self._is_steady(s, a)
                    end = StepState(s.t + h, q, v, a, ahead, h, force, z, s.a, s.force, is_steady)
                    return self._settled(end, matrix, c0) if self.project and c.is_undamped else end
                if missing[matrix.kept].max(initial=0.0) <= 1.0:
                    matrix = None  # other rows than those chosen are independent by now
            elif own and rate > _DOUBTFUL and size > _FAR * far:
                return None
            own, last = mine, size
        return None

    def _predicted(self, s: StepState, h: float) -> tuple[np.ndarray, ...]:
        """Δ, v, a, â and λ from which the iteration starts, by (5), prescribed coordinates at the end of the step."""
        c, a, force = self.scheme, s.a.copy(), s.force
        if self.share is not None and s.is_steady:
            a, force = a + (a - s.before), force + (force - s.force_before)
        ahead = ((1.0 - c.alpha_f) * a + c.alpha_f * s.a - c.alpha_m * s.ahead) / (1.0 - c.alpha_m)
        move = h * s.v + h * h * (c.b0 * s.ahead + c.b1 * ahead)
        v = s.v + h * (c.g0 * s.ahead + c.g1 * ahead)
        if len(self.held):
            end, v[self.held], a[self.held] = self.model.motions(s.t + h)
            move[self.held], ahead[self.held] = end - s.q[self.model.dof_q[self.held]], a[self.held]
        return move, v, a, ahead, force

    def _is_enough(self, far: float, left: float, missed: float, rate: float, is_stuck: bool, is_last: bool) -> bool:
        """Whether an iteration that leaves `left` of a step of size `far`, whose (5) missed by `missed`, may end."""
        if left > _NEWTON_SHARE * (self.atol + self.rtol * far):
            return is_stuck
        if self.share is None or left <= max(self.share * missed, _EPS * far):
            return True
        if self.spared > 0 and (rate > _SLOW or left <= _LEAST):
            return True
        if is_last:
            self.spared = _SPARED
        return is_last

    def _is_steady(self, s: StepState, a: np.ndarray) -> bool:
        """Whether the acceleration after a step from s has gone on as it changed before, rather than staying."""
        change, trend = a - s.a, s.a - s.before
        change[self.held] = trend[self.held] = 0.0
        return self._size(change - trend) < self._size(change)

    def _size(self, x: np.ndarray) -> float:
        """Largest of x in natural units."""
        return float(np.max(np.abs(x) / self.model.dof_scale, initial=0.0))

    def _settled(self, s: StepState, matrix: StepMatrix, c0: float) -> StepState:
        """The state without what its acceleration and forces have left of (4)."""
        *_, w = residual_derivatives(self.model, s.q, s.v, s.a, self.f.inputs(s.t, s.q, s.v, s.z), s.t)
        change, push = matrix.step(self.model, np.zeros(self.model.nv), w.host["turn"][0].copy())
        return replace(s, a=s.a + change, ahead=s.ahead + change, force=s.force + push / c0)

    def _still_open(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """What each row of the loops misses, in units of what it may."""
        if not self.model.n_rows:
            return np.zeros(0)
        host = run_constraints(self.model, q, v)[0].host
        return np.maximum(np.abs(host["gap"][0]) / _CLOSED, self.project * np.abs(host["rate"][0]) / _AT_REST)

    def _residual(
        self, t: float, q: np.ndarray, v: np.ndarray, a: np.ndarray, force: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """r of (1) with zeros for prescribed coordinates, and the residuals and rates of loops."""
        self.f.evaluations += 1
        u = self.control.inputs(t, q, v)
        w = run_residual(self.model, q[None], v[None], a[None], u[None], t, 1.0, force)
        r, gap = w.host["tau"][0].copy(), w.host["gap"][0].copy()
        r[self.held] = 0.0
        if w.status[0] == STATUS_CROWDED:
            w.raise_for_status()
        if w.status[0] != 0 or not np.isfinite(r).all():
            return None
        return r, gap, run_constraints(self.model, q, v)[0].host["rate"][0].copy() if self.project else gap

    def _factored(
        self,
        t: float,
        q: np.ndarray,
        v: np.ndarray,
        a: np.ndarray,
        force: np.ndarray,
        move: np.ndarray,
        c0: float,
        c1: float,
        again: bool,
    ) -> StepMatrix | None:
        """LU factors of (2), bordered by loops, prescribed coordinates held; `again` where it is not the first of its
        step."""
        model = self.model
        self.f.jacobians += 1
        dq, dv, da, w = residual_derivatives(model, q, v, a, self.control.inputs(t, q, v), t, 1.0, force)
        A, A_q = row_results(model, w, "A"), row_results(model, w, "A_q")
        if self.f.is_feedback:
            dq, dv = self._with_feedback(t, q, v, dq, dv, again)
        for _, j, free in groups(model):
            block = slice(j, j + (6 if free else 3))
            tangent = (se3_tangent if free else so3_tangent)(move[block])
            dq[:, block], A_q[:, block] = dq[:, block] @ tangent, A_q[:, block] @ tangent
        kept = independent_rows(model, A)
        matrix, sigma = bordered_matrix(model, c0 * da + c1 * dv + dq, A, A_q, kept)
        if not np.isfinite(matrix).all():
            return None
        lu, pivots, singular = dgetrf(matrix)
        return None if singular else StepMatrix(lu, pivots, kept, sigma)

    def _with_feedback(
        self, t: float, q: np.ndarray, v: np.ndarray, dq: np.ndarray, dv: np.ndarray, again: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add −B ∂u/∂q and −B ∂u/∂v of a continuous controller, by differences that take its state z along.

        They cost more than all the rest of a matrix and change little: old ones serve until a matrix made with them
        contracts slowly.
        """
        model = self.model
        if again or self.answer is None:
            h_q = _ROOT_EPS * model.dof_scale
            h_v = _ROOT_EPS * np.maximum(np.abs(v), model.dof_scale)
            moved = [(row, v) for row in integrate(model, q, np.diag(h_q))] + [(q, v + row) for row in np.diag(h_v)]
            self.answer = (self.control.changes(t, q, v, moved) / np.concatenate([h_q, h_v])[:, None]).T
        B = input_response(model, q, self.control.inputs(t, q, v))
        by_q, by_v = np.split(B @ self.answer, 2, axis=1)
        return dq - by_q, dv - by_v

    def error(self, old: StepState, new: StepState) -> float:
        """Estimated error of a step in q, in units of the tolerance."""
        c, h, model = self.scheme, new.h, self.model
        start = old.for_step(h)
        estimate = h * h * (c.second_order_error * start.a + c.third_order_error * (new.ahead - start.ahead))
        size = np.ones(model.nv)
        plain = model.dof_q >= 0
        size[plain] = np.abs(new.q[model.dof_q[plain]]) / model.dof_scale[plain]
        weight = model.dof_scale * (self.atol + self.rtol * size)
        return float(np.sqrt(np.mean((estimate / weight)[self.free] ** 2))) if len(self.free) else 0.0
