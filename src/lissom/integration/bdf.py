"""Adaptive stiff integration by SUNDIALS CVODE.

The state is (q, v) with q̇ from v (½ q ⊗ ω for quaternions) and v̇ = FD(q, v, u, t). The Jacobian is that of this state
derivative, from the exact derivatives of inverse dynamics (Mathew 2025, eqs. (7) and (9)). The state z of a controller
that acts continuously is part of it, x = (q, v, z). Coordinates with a
prescribed motion are put on it at every evaluation (index 1; Mathew 2025 eqs. (43)-(44)). A step ends where a ball
begins to touch, found as a root of its distance; one that goes through something is taken again to where it was inside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lissom.dynamics.assembly import on_motion
from lissom.dynamics.configuration import (
    configuration_rate_derivatives,
    unit_quaternions,
)
from lissom.dynamics.forward_dynamics import raise_if_massless, run_forward_dynamics
from lissom.dynamics.forward_dynamics_derivatives import constrained_response
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.errors import ConvergenceError
from lissom.integration.controllers import ControlLaw
from lissom.integration.encounters import Lookout
from lissom.integration.pace import Pace
from lissom.integration.step_ends import StepEnds
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.sweep.scratch import STATUS_CROWDED, STATUS_NOT_FINITE, STATUS_OVERFLOW

_MAX_STEPS = 200_000
_MOST_NOT_FINITE = 100  # evaluations in a row without a step
_LEAST_STEP = 1e-14  # of the duration
_MOST_PAST = 2000  # states to which a motion may go back
_MOST_KNOWN = 10_000  # inputs of times that are remembered
_ROOT = 2  # what CVODE's status says where it stops at a root
PULL = 100.0  # largest rate at which loops are pulled closed [1/s]: a larger one shakes what is stiff where it changes
_PULL_STEPS = 0.5  # its most times the longest step of late
_LEAST_PULL = 0.1
_LATE = 20  # steps
_ROOT_EPS = float(np.sqrt(np.finfo(float).eps))


@final
class StateDerivative:
    """ẋ = f(t, x) and its Jacobian for x = (q, v, z), in the form CVODE asks for; counts its evaluations.

    z is there under a controller with a state that acts continuously. A sampled one keeps its own, `held_z`.
    """

    def __init__(self, model: Model, law: ControlLaw) -> None:
        self.model, self.law = model, law
        self.held: np.ndarray | None = None
        self.held_z = self.next_z = law.start
        self.pull = PULL if model.n_rows else 0.0
        self.evaluations = self.jacobians = 0
        self.not_finite = 0
        self.late: list[float] = []
        self.pace: Pace | None = None
        self.error: Exception | None = None
        self.ready: Workspace | None = None
        self.known: dict[float, np.ndarray] = {}
        scale = model.dof_scale
        q_scale = np.ones(model.nq)
        on_q = model.dof_q >= 0
        q_scale[model.dof_q[on_q]] = scale[on_q]
        self.scale = np.concatenate([q_scale, scale, np.ones(len(law.carried))])

    @property
    def is_feedback(self) -> bool:
        """Whether the inputs follow the state at this moment, rather than time or a sample."""
        return self.law.is_feedback and self.held is None

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q with unit quaternions, v and z of a state."""
        nq, nv = self.model.nq, self.model.nv
        return unit_quaternions(self.model, x[:nq]), x[nq : nq + nv].copy(), x[nq + nv :].copy()

    def absolute(self, atol: tuple[float, float]) -> np.ndarray:
        """Absolute tolerance of each component, from those of q (and z) and of v."""
        out = np.full(len(self.scale), atol[0])
        out[self.model.nq : self.model.nq + self.model.nv] = atol[1]
        return out

    def inputs(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The inputs now: held by a sampled controller, or asked for; those of time alone are asked for once."""
        if self.held is not None:
            return self.held
        if self.law.is_feedback:
            return self.law.inputs(t, q, v, z)
        u = self.known.get(t)
        if u is None:
            if len(self.known) > _MOST_KNOWN:
                self.known.clear()
            u = self.known[t] = self.law.inputs(t, q, v, z)
        return u

    def shown(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(u, z) of a point to hand out; under a sampled controller the u that is held and the z that gave it."""
        return np.concatenate([self.inputs(t, q, v, z), z if self.held is None else self.held_z])

    def shown_rows(self, times: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The same of many points (n, ...)."""
        if self.is_feedback or self.held is not None:
            return np.array([self.shown(t, *self.split(row)) for t, row in zip(times.tolist(), rows)])
        return np.array([self.inputs(t, row, row, row[:0]) for t, row in zip(times.tolist(), rows)])

    def ended(self, t: float) -> None:
        """A step ended at t: where the steps are long, loops are pulled closed at half the rate of the longest one of
        late, so that the pull does not limit them, and takes away within two steps what one leaves open."""
        if not self.model.n_rows:
            return
        self.late.append(t)
        if len(self.late) > _LATE:
            h = max(float(np.diff(self.late).max()), 1e-300)
            wanted = min(max(_PULL_STEPS / h, _LEAST_PULL), PULL)
            if not 0.5 < wanted / self.pull < 2.0:
                self.pull = wanted
            self.late = self.late[-1:]

    def first_met(self, lookout: Lookout, times: np.ndarray, rows: np.ndarray) -> tuple[int, float] | None:
        """What `lookout` finds along states x (n, nq + nv + nz)."""
        model, end = self.model, self.model.nq + self.model.nv
        if not len(model.surroundings.pair):
            return None
        q, v = rows[:, : model.nq], rows[:, model.nq : end]
        if model.n_motions:
            q, v = (np.array(x) for x in zip(*(on_motion(model, t, *row) for t, *row in zip(times.tolist(), q, v))))
        return lookout.first_met(times, q, v)

    def sample(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Take the sample that is due, (2) of controllers: u is held from now on, and z moves on for the next."""
        z = self.held_z = self.next_z
        self.held = self.law.inputs(t, q, v, z)
        if len(z):
            self.next_z = z + self.law.period * self.law.rate(t, q, v, z)

    def _rows(self, t: float, x: np.ndarray) -> np.ndarray:
        """f at one time for states (n, nq + nv + nz), under continuous feedback."""
        model, law, end = self.model, self.law, self.model.nq + self.model.nv
        q, v = on_motion(model, t, x[:, : model.nq], x[:, model.nq : end])
        z = x[:, end:]
        seen = list(zip(unit_quaternions(model, q), v, z))
        u = np.array([law.inputs(t, *row) for row in seen])
        w = run_forward_dynamics(model, q, v, u, t, self.pull)
        raise_if_massless(model, w)
        z_dot = np.array([law.rate(t, *row) for row in seen]) if z.shape[1] else z
        return np.concatenate([w.host["q_dot"], w.host["a"], z_dot], axis=1)

    def _row(self, t: float, x: np.ndarray, out: np.ndarray) -> None:
        """f of one state into `out`, by the shortest way."""
        model, nq, end = self.model, self.model.nq, self.model.nq + self.model.nv
        q, v = on_motion(model, t, x[:nq], x[nq:end])
        z = x[end:]
        seen = unit_quaternions(model, q) if self.is_feedback else q
        u, w = self.inputs(t, seen, v, z), self.ready
        if w is None:
            w = run_forward_dynamics(model, q, v, u, t, self.pull)
            if w.alone is not None and not (model.calls_python or model.load_varies or model.n_motions):
                self.ready = w  # only q, v and u differ from now on
        else:
            row = w.row
            row["q"][:], row["v"][:], row["u"][:], w.host["pull"][0] = q, v, u, self.pull
            w.run()
        host = w.host
        out[:nq], out[nq:end] = host["q_dot"][0], host["a"][0]
        if w.status[0] != 0:
            self._refused(w)
        if len(z):
            out[end:] = self.law.rate(t, seen, v, z)

    def _refused(self, w: Workspace) -> None:
        """Raise where no shorter step helps, or where too many states in a row were not finite: CVODE takes one for a
        step too long, and tries shorter ones for ever."""
        raise_if_massless(self.model, w)
        if w.status[0] == STATUS_CROWDED:
            w.raise_for_status()
        self.not_finite += w.status[0] in (STATUS_NOT_FINITE, STATUS_OVERFLOW)
        if self.not_finite > _MOST_NOT_FINITE:
            raise FloatingPointError("the acceleration is not finite")

    def __call__(self, t: float, x: np.ndarray, out: np.ndarray) -> None:
        """Right-hand side; an exception of the user's law is kept for the caller, the state made unusable."""
        self.evaluations += 1
        try:
            self._row(t, x, out)
        except Exception as error:
            self.error = error
            raise

    def jacobian(self, t: float, x: np.ndarray, rate: np.ndarray, out: np.ndarray) -> None:
        """∂f/∂x: exact, except under continuous feedback, whose law is differenced with the rest."""
        self.jacobians += 1
        try:
            if self.is_feedback:
                step = _ROOT_EPS * np.maximum(np.abs(x), self.scale)
                rows = self._rows(t, np.concatenate([np.array(x)[None], x + np.diag(step)]))
                out[:, :] = ((rows[1:] - rows[0]) / step[:, None]).T
            else:
                self._exact(t, np.array(x), np.array(rate), out)
        except Exception as error:
            self.error = error
            raise

    def _exact(self, t: float, x: np.ndarray, rate: np.ndarray, out: np.ndarray) -> None:
        """∂f/∂x from the derivatives of inverse dynamics: ∂a/∂(q, v) = −M⁻¹ ∂r/∂(q, v), r = ID − B u at a."""
        model, nq, nv = self.model, self.model.nq, self.model.nv
        q, v = on_motion(model, t, unit_quaternions(model, x[:nq]), x[nq:])
        a = rate[nq:]
        u = self.inputs(t, q, v, x[nq + nv :])
        answer = self._response(t, q, v, a, u)
        rate_q, rate_v, tangent = configuration_rate_derivatives(model, x[:nq], v)
        out[:nq, :nq], out[:nq, nq:] = rate_q, rate_v
        out[nq:, :nq], out[nq:, nq:] = -answer[:, :nv] @ tangent, -answer[:, nv:]
        on_q, on_v = model.dof_q[model.motion_dof], nq + model.motion_dof
        for on in (on_q, on_v):  # prescribed coordinates move by themselves
            out[on], out[:, on] = 0.0, 0.0

    def _response(self, t: float, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray) -> np.ndarray:
        """−∂a/∂(q, v), shape (nv, 2 nv): M⁻¹ ∂r/∂(q, v), with loops that of Mathew 2025 (50), (51)."""
        model = self.model
        if not model.n_rows:
            dq, dv, M, _ = residual_derivatives(model, q, v, a, u, t)
            return cho_solve(cho_factor(M, check_finite=False), np.hstack([dq, dv]), check_finite=False)
        force = run_forward_dynamics(model, q, v, u, t, self.pull).host["force"][0].copy()
        return constrained_response(model, q, v, a, u, t, force, self.pull)


def integrate_bdf(
    model: Model,
    f: StateDerivative,
    x0: np.ndarray,
    times: np.ndarray | None,
    duration: float,
    period: float,
    rtol: float,
    atol: tuple[float, float],
    largest_step: float | None,
    project: bool = True,
) -> Iterator[tuple[float | np.ndarray, np.ndarray, np.ndarray, int]]:
    """Yield (t, (q, v), (u, z), steps so far) at `times`, or at every step where times is None; the start comes first.

    Raises:
        ConvergenceError: at which time CVODE stopped and what to try, without a partial result.
    """
    largest = largest_step or duration
    options = {"rtol": rtol, "atol": f.absolute(atol), "max_step": largest}
    options["min_step"] = min(_LEAST_STEP * duration, largest)
    f.pace = Pace("bdf", duration, _MAX_STEPS, rtol, f.scale[: model.nq])
    run = _Run(model, f, f.pace, x0, times, options)
    if np.isfinite(period):
        f.sample(0.0, *f.split(x0)[:2])
    yield run.point(0.0, x0)
    if len(x0) == 0:  # nothing moves, and CVODE takes no empty state
        for t in times[1:] if times is not None else (duration,):
            yield run.point(t, x0)
        return
    sample, slow = 1, times is not None or np.isfinite(period)
    while run.t < duration:
        due = min(duration, sample * period)
        points = None if slow else run.at_once(due)
        if points is None:
            slow = True  # step by step, to meet the failure where it is, or what is wanted between the steps
            points = run.one_by_one(due)
        yield from points
        if f.pace.count > _MAX_STEPS:
            raise _failure(run.t, run.steps, f"more than {_MAX_STEPS} steps")
        if run.t >= due and np.isfinite(period) and run.t < duration:
            f.sample(run.t, *f.split(run.x)[:2])
            sample += 1


@final
class _Run:
    """One motion by CVODE: where it is, and how it goes on."""

    def __init__(
        self,
        model: Model,
        f: StateDerivative,
        pace: Pace,
        x0: np.ndarray,
        times: np.ndarray | None,
        options: dict[str, Any],
    ) -> None:
        self.f, self.pace, self.options, self.size = f, pace, options, model.nq + model.nv
        self.t, self.x, self.steps, self.inside, self.lookout = 0.0, x0, 0, np.inf, Lookout(model)
        self.every, self.shown = times is None, 0.0
        self.wanted = iter(() if times is None else times[1:])
        self.target = next(self.wanted, None)

    def point(self, t: float, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, int]:
        """A point to hand out."""
        return float(t), x[: self.size], self.f.shown(float(t), *self.f.split(x)), self.steps

    def at_once(self, due: float) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]] | None:
        """All steps to `due`, a touch, or a change of order in one call, which is fastest. None where one fails: going
        step by step then meets the same failure, and keeps what came before it."""
        f, counts = self.f, (self.f.evaluations, self.f.jacobians)
        solver = _solver(f, self.pace, self.options)
        try:
            result = solver.solve(np.array([self.t, min(due, self.inside)]), self.x)
        except Exception:
            result = None
        if result is None or not result.success or f.error is not None:
            f.evaluations, f.jacobians, f.error, f.not_finite = *counts, None, 0
            return None
        at, rows = np.array(result.t), np.array(result.y)
        met = f.first_met(self.lookout, at, rows)
        last, self.inside = (len(at) - 1, np.inf) if met is None else met
        if self.pace.back:
            last = min(last, self.pace.start(at))
        if last == 0:
            return []  # the first step is taken again
        at, rows = at[1 : last + 1], rows[1 : last + 1]
        self.t, self.x, self.steps = float(at[-1]), rows[-1], self.steps + len(at)
        return [(at, rows[:, : self.size], f.shown_rows(at, rows), self.steps)]

    def one_by_one(self, due: float) -> Iterator[tuple[float, np.ndarray, np.ndarray, int]]:
        """Steps to `due`, a touch, or a change of order."""
        f, stop = self.f, min(due, self.inside)
        solver = _solver(f, self.pace, self.options)
        _guarded(f, self.t, self.steps, solver.init_step, self.t, self.x)
        self.inside, past = np.inf, deque([(self.t, self.x)], _MOST_PAST)
        while self.t < stop and self.pace.count <= _MAX_STEPS:
            result = _guarded(f, self.t, self.steps, solver.step, stop, method="onestep", tstop=stop)
            if not result.success or not np.isfinite(result.y).all():
                raise _failure(self.t, self.steps, str(result.message))
            t = float(np.ravel(result.t)[-1])
            x = np.array(result.y, dtype=np.float64).reshape(-1, len(self.x))[-1]
            met = f.first_met(self.lookout, np.array((self.t, t)), np.array((self.x, x))) if t > self.t else None
            if met is not None:
                self.inside = met[1]
                return  # the step is taken again, to where it was inside
            f.not_finite = 0
            self.steps += t > self.t  # after an output inside a step, CVODE first hands out the end of that step again
            self.t, self.x = t, x
            if t > past[-1][0]:
                past.append((t, x))
            if self.every and t > self.shown:
                yield self.point(t, x)
            while self.target is not None and self.target <= t:
                at = x
                if self.target < t:
                    inner = _guarded(f, t, self.steps, solver.step, self.target, method="normal")
                    at = np.array(inner.y, dtype=np.float64).reshape(-1, len(x))[-1]
                yield self.point(self.target, at)
                self.target = next(self.wanted, None)
            self.shown = max(self.shown, t)
            if self.pace.back:
                self.t, self.x = past[self.pace.start(np.array([t for t, _ in past]))]
                return
            if result.status == _ROOT:
                return  # what follows a touch starts anew, with small steps


def _solver(f: StateDerivative, pace: Pace, options: dict[str, Any]) -> Any:
    from sksundae.cvode import CVODE

    ends = StepEnds(f.model, pace, f.ended)
    limits = {"max_num_steps": _MAX_STEPS, "max_order": pace.order}
    return CVODE(f, jacfn=f.jacobian, eventsfn=ends, num_events=len(ends.terminal), **limits, **options)


def _guarded(f: StateDerivative, t: float, steps: int, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call CVODE; what the user's functions raised goes to the caller, numerical failure becomes a ConvergenceError."""
    try:
        result = call(*args, **options)
        if f.error is not None:
            raise f.error
    except Exception as error:
        cause = f.error or error
        if f.error is not None and not isinstance(cause, FloatingPointError | LinAlgError):
            raise cause from None
        raise _failure(t, steps, str(cause)) from error
    return result


def _failure(t: float, steps: int, why: str) -> ConvergenceError:
    return ConvergenceError(f"simulation by bdf stopped at t={t:.6g} s after {steps} steps: {why}; try a looser or "
                            "tighter rtol, smoother inputs, some damping, or more Gauss points; what vibrates without "
                            "damping goes well by method=\"generalized_alpha\" with a fixed dt")  # fmt: skip
