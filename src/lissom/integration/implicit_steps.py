"""Implicit steps on the manifold of configurations: generalised-α, Newmark, HHT, implicit Euler.

The unknown of a step is the tangent increment Δ of the configuration; quaternions turn by exp(Δ), so that nothing is
singular, however far the robot turns.

    r(Δ) = ID(q ⊕ Δ, vₙ₊₁, aₙ₊₁) − B u = Aᵀ λ,    v and a from (1), (2) of schemes                         (1)
    ∂r/∂Δ = c₀ ∂r/∂a + c₁ ∂r/∂v + ∂r/∂q T(Δ),    c₀ = (1 − α_m) / ((1 − α_f) b₁ h²),  c₁ = g₁ / (b₁ h)       (2)

Coordinates with a prescribed motion take its position, velocity and acceleration at the end of the step; what is left
of r in their rows is the force λ of the motion. Mathew 2025 (45) gives the position alone and leaves the acceleration
to the scheme: after a change of step it then is of first order, and with Newmark's ¼ and ½ its error grows with t and
does not fall with h. Newton's matrix is kept from step to step while the size stays and it contracts.
Source: Mathew 2025 §4, eqs. (10)-(12), and §5.1; Boyer 2023 §VI.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, final

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs  # pyright: ignore[reportAttributeAccessIssue]

from lissom.dynamics.actuation import actuation_matrix
from lissom.dynamics.configuration import groups, integrate, unit_quaternions
from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.forward_dynamics import raise_if_massless, run_forward_dynamics, run_residual
from lissom.dynamics.independent_rows import bordered_matrix, independent_rows
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.errors import ConvergenceError
from lissom.integration.bdf import StateDerivative, on_motion
from lissom.integration.fused_steps import LONGEST_RUN, FusedSteps
from lissom.integration.schemes import Scheme, StepState
from lissom.lie.arrays import se3_tangent, so3_tangent
from lissom.model.model import Model

_NEWTON_SHARE = 1e-2  # of the tolerance, so that Newton's error hides below the scheme's
_SLOW = 0.3  # contraction above which the matrix is made anew
_MOST_ITERATIONS = 12
_FIRST_RUN = 8  # fused steps at the start and after a failure, when the next failure may be near
_SAME_SIZE = 1e-6  # relative change of the step that a kept matrix allows
_LEAST_STEP = 1e-10  # of the duration
_SAME_TIME = 1e-12  # of the duration: a sample and a wanted time that only rounding parts, with no step between them
_FIRST_STEP = 1e-4  # of the duration, where the step is free; the error estimate then takes over
_CLOSED = 1e-11  # residual of a loop [rad, m]
_AT_REST = 1e-10  # its rate [rad/s, m/s]
_RESOLVED = 0.25
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


@final
class ImplicitSteps:
    """Steps of one scheme for one robot; counts evaluations in `f`."""

    def __init__(
        self, model: Model, f: StateDerivative, scheme: Scheme, rtol: float, atol: float, project: bool
    ) -> None:
        self.model, self.f, self.scheme = model, f, scheme
        self.rtol, self.atol, self.project = rtol, atol, project
        self.held = model.motion_dof
        self.free = np.setdiff1d(np.arange(model.nv), self.held)
        self.factors: tuple[float, StepMatrix] | None = None

    def start(self, q: np.ndarray, v: np.ndarray, h: float | None) -> StepState:
        """The state at t = 0, with its acceleration and the forces of loops, before steps of size h if it is known."""
        q, v = on_motion(self.model, 0.0, q, v)
        a, force = self._acceleration(0.0, q, v)
        s = StepState(0.0, q, v, a, a, 0.0, force)
        return self._consistent(s, h) if self.model.n_rows and h is not None else s

    def sampled(self, s: StepState) -> StepState:
        """The state under what a sampled controller now gives; the acceleration jumps, and â must not remember."""
        self.f.held = self.f.law(s.t, s.q, s.v)
        a, force = self._acceleration(s.t, s.q, s.v)
        return replace(s, a=a, ahead=a, h=0.0, force=force)

    def _acceleration(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forward dynamics of a state, and the forces of loops."""
        w = run_forward_dynamics(self.model, q[None], v[None], self.f.inputs(t, q, v)[None], t)
        raise_if_massless(self.model, w)
        w.raise_for_status()
        return w.host["a"][0].copy(), w.host["force"][0].copy()

    def _consistent(self, s: StepState, h: float) -> StepState:
        """The start with â ahead of a by its lead times da/dt, without which multipliers begin with an error of first
        order; where a step of h does not resolve da/dt, â stays at a."""
        part, later = 1e-3 * h, []
        for ahead in (part, 2.0 * part):
            q = integrate(self.model, s.q, ahead * s.v + 0.5 * ahead**2 * s.a)
            later.append(self._acceleration(ahead, *on_motion(self.model, ahead, q, s.v + ahead * s.a))[0])
        change = self.scheme.lead * h * (4.0 * later[0] - later[1] - 3.0 * s.a) / (2.0 * part)
        size, most = (float(np.max(np.abs(x) / self.model.dof_scale, initial=0.0)) for x in (change, s.a))
        return replace(s, ahead=s.a + change, h=h) if size <= _RESOLVED * most else s

    def step(self, s: StepState, h: float) -> StepState | None:
        """One step of size h; None where Newton's method fails."""
        c, model, s = self.scheme, self.model, s.for_step(h)
        to_a = (1.0 - c.alpha_m) / (1.0 - c.alpha_f)
        a, ahead = s.a, (s.a - c.alpha_m * s.ahead) / (1.0 - c.alpha_m)
        move = h * s.v + h * h * (c.b0 * s.ahead + c.b1 * ahead)
        v = s.v + h * (c.g0 * s.ahead + c.g1 * ahead)
        c0, c1 = to_a / (c.b1 * h * h), c.g1 / (c.b1 * h)
        kept, self.factors = self.factors, None
        if len(self.held):
            a = a.copy()
            end, v[self.held], a[self.held] = model.motions(s.t + h)
            move[self.held], ahead[self.held] = end - s.q[model.dof_q[self.held]], a[self.held]
        matrix = kept[1] if kept is not None and abs(kept[0] - h) <= _SAME_SIZE * h else None
        force, last, rate = s.force, np.inf, 1.0
        for iteration in range(_MOST_ITERATIONS):
            q = integrate(model, s.q, move)
            r = self._residual(s.t + h, q, v, a, force)
            if r is None:
                return None
            fresh = matrix is None or (iteration > 2 and rate > _SLOW) or (iteration > 0 and rate > 1.0)
            if fresh:
                matrix = self._factored(s.t + h, q, v, a, force, move, c0, c1)
            if matrix is None:
                return None
            change, push = matrix.step(model, *r)
            force = force + push
            size = float(np.max(np.abs(change) / model.dof_scale, initial=0.0))
            if not np.isfinite(size):
                return None
            move, a, v, ahead = move + change, a + c0 * change, v + c1 * change, ahead + change / (c.b1 * h * h)
            rate = size / last if last > 0.0 else 0.0
            far = float(np.max(np.abs(move) / model.dof_scale, initial=0.0))
            wanted = _NEWTON_SHARE * (self.atol + self.rtol * far)
            left = size * rate / (1.0 - rate) if rate < 1.0 and np.isfinite(last) else size
            if min(size, left) <= wanted:
                q = integrate(model, s.q, move)
                gap = np.abs(run_constraints(model, q)[0].host["gap"][0]) if model.n_rows else np.zeros(0)
                if gap.max(initial=0.0) <= _CLOSED:
                    self.factors = h, matrix
                    return self._projected(StepState(s.t + h, q, v, a, ahead, h, force), matrix)
                if gap[matrix.kept].max(initial=0.0) <= _CLOSED:
                    matrix = None  # other rows than those chosen are independent by now
            elif rate > 2.0 and fresh and np.isfinite(last):
                return None
            last = size
        return None

    def _projected(self, s: StepState, matrix: StepMatrix) -> StepState | None:
        """The state with a velocity that keeps the loops closed, by the least change in the metric of the matrix."""
        model, v = self.model, s.v
        if not (self.project and model.n_rows):
            return s
        for _ in range(_MOST_ITERATIONS):
            rate = run_constraints(model, s.q, v)[0].host["rate"][0]
            if np.abs(rate).max() <= _AT_REST:
                return replace(s, v=v)
            v = v + matrix.step(model, np.zeros(model.nv), rate)[0]
        return None

    def _residual(
        self, t: float, q: np.ndarray, v: np.ndarray, a: np.ndarray, force: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """r of (1) with zeros for prescribed coordinates, and the residuals of loops."""
        self.f.evaluations += 1
        u = self.f.inputs(t, q, v)
        w = run_residual(self.model, q[None], v[None], a[None], u[None], t, 1.0, force)
        r, gap = w.host["tau"][0].copy(), w.host["gap"][0].copy()
        r[self.held] = 0.0
        return (r, gap) if w.status[0] == 0 and np.isfinite(r).all() else None

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
    ) -> StepMatrix | None:
        """LU factors of (2), bordered by loops, prescribed coordinates held."""
        model = self.model
        self.f.jacobians += 1
        dq, dv, da, w = residual_derivatives(model, q, v, a, self.f.inputs(t, q, v), t, 1.0, force)
        A, A_q = row_results(model, w, "A"), row_results(model, w, "A_q")
        if self.f.feedback and self.f.held is None:
            dq, dv = self._with_feedback(t, q, v, dq, dv)
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
        self, t: float, q: np.ndarray, v: np.ndarray, dq: np.ndarray, dv: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add −B ∂u/∂q and −B ∂u/∂v of a continuous controller, by differences."""
        f, model = self.f, self.model
        B, u = actuation_matrix(model, q), f.inputs(t, q, v)
        h = _ROOT_EPS * model.dof_scale
        by_q = np.array([(f.inputs(t, moved, v) - u) / h[j] for j, moved in enumerate(integrate(model, q, np.diag(h)))])
        h = _ROOT_EPS * np.maximum(np.abs(v), model.dof_scale)
        by_v = np.array([(f.inputs(t, q, v + row) - u) / h[j] for j, row in enumerate(np.diag(h))])
        return dq - B @ by_q.T, dv - B @ by_v.T

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


def integrate_implicit(
    model: Model,
    f: StateDerivative,
    x0: np.ndarray,
    times: np.ndarray | None,
    duration: float,
    period: float,
    rtol: float,
    atol: float,
    dt: float | None,
    project: bool = True,
    *,
    scheme: Scheme,
) -> Iterator[tuple[float | np.ndarray, np.ndarray, np.ndarray, int]]:
    """Yield (t, x, u, steps so far) at `times`, or at every step where times is None; the start comes first.

    x is (q, v, a, λ of loops); t, x and u may have a leading axis and then hold several points. Steps are of size dt,
    or, where dt is None, as the error estimate asks; they end on the wanted times.
    Raises:
        ConvergenceError: at which time it stopped and what to try, without a partial result.
    """
    stepper = ImplicitSteps(model, f, scheme, rtol, atol, project)
    q, v = unit_quaternions(model, x0[: model.nq]), x0[model.nq :]
    f.held = f.law(0.0, q, v) if np.isfinite(period) else None
    here = stepper.start(q, v, dt)
    yield _point(f, here, 0)
    if dt is None:
        yield from _adaptive_steps(stepper, here, times, duration, period)
    else:
        yield from _fixed_steps(stepper, here, times, duration, period, dt)


def _point(f: StateDerivative, s: StepState, steps: int) -> tuple[float, np.ndarray, np.ndarray, int]:
    """A point to hand out, with its acceleration."""
    return s.t, np.concatenate([s.q, s.v, s.a, s.force]), f.inputs(s.t, s.q, s.v), steps


def _fixed_steps(
    stepper: ImplicitSteps, here: StepState, times: np.ndarray | None, duration: float, period: float, dt: float
) -> Iterator[tuple[float | np.ndarray, np.ndarray, np.ndarray, int]]:
    """Steps of dt, shorter before a wanted time or a sample of the controller, cut where Newton's method fails."""
    f, model = stepper.f, stepper.model
    samples = np.arange(1, int(np.ceil(duration / period))) * period if np.isfinite(period) else np.zeros(0)
    ends = times[1:] if times is not None else np.array([duration])
    samples = _snapped(samples, ends, _SAME_TIME * duration)
    stops = np.union1d(samples, ends)
    ends = _step_ends(stops, dt)
    wanted = np.isin(ends, times) if times is not None else np.ones(len(ends), dtype=bool)
    is_sample = np.isin(ends, samples)
    fused = FusedSteps(model, f, stepper.scheme, stepper.rtol, stepper.atol, stepper.project)
    k, steps, length = 0, 0, _FIRST_RUN
    while k < len(ends):
        if FusedSteps.can_run(model, f):
            next_sample = np.flatnonzero(is_sample[k:])[:1]
            run = min(length, len(ends) - k, *(next_sample + 1).tolist())
            rows, inputs, here = fused.run(here, ends[k : k + run])
            at = np.flatnonzero(wanted[k : k + len(rows)])
            if len(at) > 0:
                yield ends[k + at], rows[at], inputs[at], steps + int(at[-1]) + 1
            steps, k = steps + len(rows), k + len(rows)
            failed = len(rows) < run
            length = _FIRST_RUN if failed else min(2 * length, LONGEST_RUN)
        else:
            failed = True
        if failed:
            here, taken = _cut_step(stepper, here, float(ends[k]), duration, steps)
            steps += taken
            if wanted[k]:
                yield _point(f, here, steps)
            k += 1
        if is_sample[k - 1]:
            here = stepper.sampled(here)


def _snapped(samples: np.ndarray, ends: np.ndarray, tolerance: float) -> np.ndarray:
    """The samples, on the nearest of the ends where that is no further than the tolerance."""
    if len(samples) == 0 or len(ends) == 0:
        return samples
    after = np.minimum(np.searchsorted(ends, samples), len(ends) - 1)
    near = [ends[after], ends[np.maximum(after - 1, 0)]]
    return np.select([np.abs(end - samples) <= tolerance for end in near], near, samples)


def _step_ends(stops: np.ndarray, dt: float) -> np.ndarray:
    """Where steps of dt end that meet every stop, the last before a stop being shorter."""
    ends, start = [], 0.0
    for stop in stops.tolist():
        whole = int(np.ceil((stop - start) / dt * (1.0 - 1e-9)))
        ends += [start + dt * np.arange(1, whole), [stop]]
        start = stop
    return np.concatenate(ends)


def _cut_step(
    stepper: ImplicitSteps, here: StepState, end: float, duration: float, steps: int
) -> tuple[StepState, int]:
    """From `here` to `end` in one step, or in as many as Newton's method needs; how many there were."""
    h, taken = end - here.t, 0
    while True:
        left = end - here.t
        size = left if h >= left * (1.0 - 1e-9) else h
        new = stepper.step(here, size)
        if new is None:
            h = 0.25 * size
            if h < _LEAST_STEP * duration:
                raise _failure(stepper.scheme, here.t, steps + taken, "Newton's method finds no step")
            continue
        taken += 1
        if size == left:
            return replace(new, t=end), taken
        here, h = new, 2.0 * size


def _adaptive_steps(
    stepper: ImplicitSteps, here: StepState, times: np.ndarray | None, duration: float, period: float
) -> Iterator[tuple[float | np.ndarray, np.ndarray, np.ndarray, int]]:
    """Steps as the error estimate asks; two to the next stop where one would leave a short rest."""
    f, scheme = stepper.f, stepper.scheme
    power = -1.0 / (3.0 if scheme.second_order_error == 0.0 else 2.0)
    h, steps, sample = _FIRST_STEP * duration, 0, 1
    for target in times[1:].tolist() if times is not None else [duration]:
        while here.t < target:
            due = sample * period
            due = target if abs(due - target) <= _SAME_TIME * duration else due
            stop = min(target, due)
            left = stop - here.t
            size = left if h >= left * (1.0 - 1e-9) else min(h, 0.5 * left)
            new = stepper.step(here, size)
            error = stepper.error(here, new) if new is not None else np.inf
            if new is None or error > 1.0:
                h = size * (0.25 if new is None else max(0.2, 0.9 * error**power))
                if h < _LEAST_STEP * duration:
                    raise _failure(scheme, here.t, steps, "Newton's method finds no step" if new is None else
                                   "no step is accurate enough")  # fmt: skip
                continue
            steps += 1
            here = new if size != left else replace(new, t=stop)
            if size == h or error > 0.1:
                h = size * min(2.0, 0.9 * max(error, 1e-9) ** power)
            if here.t >= due:
                here, sample = stepper.sampled(here), sample + 1
            if times is None:
                yield _point(f, here, steps)
        if times is not None:
            yield _point(f, here, steps)


def _failure(scheme: Scheme, t: float, steps: int, why: str) -> ConvergenceError:
    return ConvergenceError(f"simulation by {scheme.name} stopped at t={t:.6g} s after {steps} steps: {why}; try "
                            "a smaller dt, a looser rtol, smoother inputs, damping, or more Gauss points")  # fmt: skip
