"""Static equilibria, and shapes kept in steady motion: r(q) = ID(q, v, 0) − B(q) u = 0 by Newton's method.

At rest v = 0. In a steady motion prescribed joints, and those whose velocity is given, have a v and the shape has none;
r is asked to vanish in the rows of the shape only. Where loads are raised from zero, inertia forces rise as they do.
The step is accepted by the natural monotonicity test, which does not depend on the units of the rows: the simplified
Newton step from the trial point must be shorter than the step that led there. Where Newton stalls, the loads, inputs
and gravity are raised in steps from zero.
Source: Mathew 2025 §3; P. Deuflhard, Newton Methods for Nonlinear Problems, 2011, §3.3 (the test).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs  # pyright: ignore[reportAttributeAccessIssue]

from lissom.dynamics.actuation import warn_of_pushing
from lissom.dynamics.assembly import closed_start, moved_to
from lissom.dynamics.configuration import checked_configuration, groups, integrate, unit_quaternions
from lissom.dynamics.constraints import loop_residual, minimum_norm, run_constraints, warn_of_redundancy
from lissom.dynamics.forward_dynamics import input_rows, run_forward_dynamics, run_residual
from lissom.dynamics.independent_rows import bordered_matrix, independent_rows
from lissom.dynamics.steady_motion import in_motion, moving_velocity, steady_velocity
from lissom.dynamics.workspace import batch_of, leading
from lissom.errors import AccuracyWarning, ConvergenceError, ModelError, ShapeError
from lissom.model.model import Model
from lissom.model.plausibility import CAUSE, inside_out, warn_of_shapes
from lissom.robot import checks
from lissom.statics.newton_kernel import (
    CONVERGED,
    FLOOR,
    LEAST_FRACTION,
    LONGEST_STEP,
    NO_STEP,
    NOT_FINITE,
    SINGULAR,
    TOO_MANY,
    WOUND_UP,
    newton_in_kernel,
)
from lissom.statics.tangent_stiffness import residual_jacobian

_UNMOVED = 1e-6  # of the fastest joint: slower than that, loops stand

_REMEDIES = {
    CONVERGED: "",
    WOUND_UP: "the start turns a rod interval by 2π or more; start nearer the reference",
    NOT_FINITE: "the tangent stiffness is not finite",
    SINGULAR: "the tangent stiffness is singular: hold what floats freely",
    NO_STEP: "no step along Newton's direction comes nearer",
    TOO_MANY: "{limit} iterations were not enough; raise max_iterations",
}


@final
@dataclass(frozen=True)
class Equilibrium:
    """A static equilibrium.

    Fields:
        q: configuration (..., nq). u: inputs (..., nu). multipliers: forces of the prescribed motions, then of the
        loops (..., n_multipliers) [N·m, N]. residual: largest entry of the generalised force that is left (...).
        iterations: Newton steps (...). v: the velocity of the steady motion it is found in, zero at rest (..., nv).
    """

    q: np.ndarray
    u: np.ndarray
    multipliers: np.ndarray
    residual: np.ndarray
    iterations: np.ndarray
    v: np.ndarray


def static_residual(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0, force: Any = 0.0
) -> np.ndarray | None:
    """ID(q, v, 0) − B(q) u − Aᵀ λ with loads, inputs, gravity and inertia forces scaled, zero in the rows of prescribed
    coordinates, whose forces take what is left there; then the residuals of loops. None where a rod interval turns too
    far."""
    v = steady_velocity(model, factor)[None]
    w = run_residual(model, q[None], v, np.zeros_like(v), u[None], t, factor, force)
    r = np.concatenate([w.host["tau"][0], w.host["gap"][0]])
    if w.status[0] == 3 or not np.isfinite(r).all():
        return None
    w.raise_for_status()
    r[model.motion_dof] = 0.0
    return r


def solve_statics(
    model: Model,
    u: Any = None,
    q0: Any = None,
    *,
    v: Any = None,
    t: float = 0.0,
    tolerance: float = 1e-11,
    max_iterations: int = 100,
) -> Equilibrium:
    """Static equilibrium under gravity, loads and inputs, loops closed; at rest, or relative to a steady motion.

        ID(q, v, 0) = B(q) u + A(q)ᵀ λ,   e(q) = 0

    Args:
        u: inputs, shape (..., nu); None is zero.
        q0: start, shape (..., nq); None is the neutral configuration. Loops that are open there are first closed by
            `assemble`. The equilibrium found is usually the nearest.
        v: steady velocity, shape (nv,), at which the robot keeps its shape: joints that it moves stay where q0 has
            them, spherical and free ones as a whole, and what keeps them going is not asked for. Zeros are rest. None:
            prescribed joints keep up the speed that their motions have at t; only where this would move loops is the
            robot at rest, with a warning.
        t: time at which the loads and prescribed motions are taken [s].
        tolerance: largest last step, in units of a rod's end rotation [rad] and stretch [-].
        max_iterations: of each Newton solve.
    Returns:
        Equilibrium.
    Raises:
        ConvergenceError: no equilibrium was reached, even in load steps, or one that turns a rod inside out, which no
            rod does; carries the last iterate as an Equilibrium.
        ShapeError: the argument, the expected and the received shape. ModelError: tolerance or max_iterations,
        or a v that changes the shape of a rod or opens a loop.
    Source: Mathew 2025 §3.
    """
    checks.number(tolerance, "tolerance", above=0.0)
    checks.integer(max_iterations, "max_iterations", least=1)
    u = input_rows(model, u)
    start = model.neutral() if q0 is None else checked_configuration(model, "q0", q0)
    if not np.isfinite(u).all():
        raise ShapeError("u: must be finite, got NaN or infinity")
    warn_of_pushing(model, u)
    lead = leading(u=u, q0=start)
    rows = [np.broadcast_to(x, lead + x.shape[-1:]).reshape(batch_of(lead), x.shape[-1]) for x in (start, u)]
    rows[0] = closed_start(model, moved_to(model, rows[0], t))
    if len(rows[0]):
        warn_of_redundancy(model, rows[0][0])
    model = _moving(model, rows[0], v, t)
    force, found = _forces_at_rest(model, rows[0], rows[1], t), []
    ends = _newton(model, rows[0], force, rows[1], t, 1.0, tolerance, max_iterations)
    for k, (begin, row, end) in enumerate(zip(*rows, ends)):
        try:
            found.append(_load_steps(model, begin, row, t, tolerance, max_iterations, end) if end.remedy else end)
            _refuse_inside_out(model, found[-1], row, t)
        except ConvergenceError as error:
            if lead:
                raise ConvergenceError(f"instance {k} of {batch_of(lead)}: {error}", error.partial) from error
            raise
    q = np.array([end.q for end in found]).reshape(len(found), model.nq)
    warn_of_shapes(model, q)
    force = np.array([end.force for end in found]).reshape(len(found), model.n_rows)
    rate = np.tile(steady_velocity(model), (len(q), 1))
    left = np.zeros_like(rate)
    if len(q):
        left[:] = run_residual(model, q, rate, left, rows[1], t, 1.0, force).host["tau"]
    driven = model.motion_dof[: model.n_motions - model.n_held]
    multipliers = np.hstack([left[:, driven], minimum_norm(model, q, force)])
    left[:, model.motion_dof] = 0.0
    return Equilibrium(
        q.reshape(*lead, model.nq),
        np.broadcast_to(u, (*lead, model.nu)).copy(),
        multipliers.reshape(*lead, model.n_multipliers - model.n_held),
        np.abs(left).max(axis=1, initial=0.0).reshape(lead),
        np.array([end.iterations for end in found], dtype=int).reshape(lead),
        rate.reshape(*lead, model.nv),
    )


def _moving(model: Model, q: np.ndarray, v: Any, t: float) -> Model:
    """The model in the motion of v, or of its prescribed motions; at rest where those would move loops."""
    moving = in_motion(model, moving_velocity(model, v, t))
    if moving.steady is None or not model.n_rows or not len(q):
        return moving
    w, _ = run_constraints(model, q, np.broadcast_to(moving.steady, (len(q), model.nv)))
    rate = np.abs(w.host["rate"]).max(axis=0)
    if rate.max(initial=0.0) <= _UNMOVED * np.abs(moving.steady).max():
        return moving
    name = model.loop_names[int(np.searchsorted(model.loop_row_start, rate.argmax(), side="right")) - 1]
    if v is not None:
        raise ModelError(f"v: must not move loop {name!r} (it parts at {rate.max():.3g} rad/s or m/s)")
    warnings.warn(
        f"robot {model.name!r}: statics takes it at rest where its prescribed motions have it at t = {t:g}: they would "
        f"move loop {name!r}, so that it keeps no shape; v=np.zeros(model.nv) says that rest is meant",
        AccuracyWarning, stacklevel=3,
    )  # fmt: skip
    return model


@final
@dataclass
class _Iterate:
    """Where a Newton solve ended, with the forces of loops; and what to do about it, empty where it converged."""

    q: np.ndarray
    force: np.ndarray
    iterations: int
    remedy: str

    def equilibrium(self, model: Model, u: np.ndarray, t: float, factor: float = 1.0) -> Equilibrium:
        """The iterate as a result, with the residual it leaves."""
        r = static_residual(model, self.q, u, t, factor, self.force)
        size = np.array(np.inf if r is None else np.abs(r[: model.nv]).max(initial=0.0))
        forces = np.concatenate([np.zeros(model.n_motions - model.n_held), self.force])
        return Equilibrium(self.q, u, forces, size, np.array(self.iterations), steady_velocity(model, factor))


def _refuse_inside_out(model: Model, end: _Iterate, u: np.ndarray, t: float) -> None:
    """Raise ConvergenceError where the equations hold but mean nothing."""
    found = inside_out(model, end.q)
    if found:
        raise ConvergenceError(
            f"robot {model.name!r}: in the only equilibrium reached {found}; {CAUSE}", end.equilibrium(model, u, t)
        )


def _forces_at_rest(model: Model, q: np.ndarray, u: np.ndarray, t: float) -> np.ndarray:
    """Forces of loops (n, n_rows) when the robot is let go at q (n, nq), at rest or in its steady motion: near an
    equilibrium those of that."""
    if not model.n_rows or not len(q):
        return np.zeros((len(q), model.n_rows))
    w = run_forward_dynamics(model, q, np.broadcast_to(steady_velocity(model), (len(q), model.nv)), u, t)
    return np.where((w.status == 0)[:, None], w.host["force"], 0.0)


def _newton(
    model: Model,
    q: np.ndarray,
    force: np.ndarray,
    u: np.ndarray,
    t: float,
    factor: float,
    tol: float,
    limit: int,
    opened: np.ndarray | None = None,
) -> list[_Iterate]:
    """Damped Newton iterations from the rows of q (n, nq) and forces of loops with inputs u (n, nu); sizes of steps are
    in dof_scale."""
    opened = np.zeros(model.n_rows) if opened is None else opened
    if len(q) and not model.calls_python:
        ended = newton_in_kernel(model, q, force, u, t, factor, opened, tol, limit)
    else:
        rows = [_newton_in_python(model, *row, t, factor, opened, tol, limit) for row in zip(q, force, u)]
        ended = zip(*rows) if rows else ((), (), (), ())
    return [_Iterate(unit_quaternions(model, end), force, int(count), _REMEDIES[why].format(limit=limit))
            for end, force, count, why in zip(*ended)]  # fmt: skip


def _newton_in_python(
    model: Model,
    q: np.ndarray,
    force: np.ndarray,
    u: np.ndarray,
    t: float,
    factor: float,
    opened: np.ndarray,
    tol: float,
    limit: int,
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """The same iteration as that of newton_kernel, for what calls Python: last iterate, forces of loops, iterations,
    why it ended."""
    r = static_residual(model, q, u, t, factor, force)
    if r is None:
        return q, force, 0, WOUND_UP
    last = np.inf
    for iteration in range(1, limit + 1):
        step_to = _newton_map(model, q, u, t, factor, force, opened)
        if isinstance(step_to, int):
            return q, force, iteration, step_to
        step, push = step_to(r)
        length = _length(model, step)
        if not np.isfinite(length):
            return q, force, iteration, SINGULAR
        if length <= tol or (length < FLOOR and length > 0.3 * last):  # rounding keeps it from shrinking further
            moved = integrate(model, q, step), force + push
            better = static_residual(model, moved[0], u, t, factor, moved[1])
            closer = better is not None and _length(model, step_to(better)[0]) <= length
            return (*moved, iteration, CONVERGED) if closer else (q, force, iteration, CONVERGED)
        last = length
        fraction = min(1.0, LONGEST_STEP / length)
        while True:
            trial, pushed = integrate(model, q, fraction * step), force + fraction * push
            r_trial = static_residual(model, trial, u, t, factor, pushed)
            if r_trial is not None:
                next_length = _length(model, step_to(r_trial)[0])
                if next_length <= (1.0 - 0.25 * fraction) * length or length < FLOOR:
                    break
            fraction *= 0.5
            if fraction < LEAST_FRACTION:
                return q, force, iteration, NO_STEP
        q, force, r = unit_quaternions(model, trial), pushed, r_trial
    return q, force, limit, TOO_MANY


def _length(model: Model, step: np.ndarray) -> float:
    """Size of a step in q, in units of dof_scale."""
    return float(np.max(np.abs(step) / model.dof_scale, initial=0.0))


def _newton_map(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float, force: np.ndarray, opened: np.ndarray
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | int:
    """What gives Newton's steps in q and in the forces of loops for a residual, or why there is none."""
    K, A, A_q = residual_jacobian(model, q, u, t, factor, force)
    if not (np.isfinite(K).all() and np.isfinite(A_q).all()):
        return NOT_FINITE
    nv, kept = model.nv, independent_rows(model, A)
    matrix, sigma = bordered_matrix(model, K, A, A_q, kept)
    lu, pivots, singular = dgetrf(matrix)

    def step_to(r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = -dgetrs(lu, pivots, np.concatenate([r[:nv], sigma * (r[nv:] - opened)[kept]]))[0]
        push = np.zeros(model.n_rows)
        push[kept] = sigma * x[nv:]
        return x[:nv], push

    return SINGULAR if singular else step_to


def _load_steps(
    model: Model, closed: np.ndarray, u: np.ndarray, t: float, tol: float, limit: int, direct: _Iterate
) -> _Iterate:
    """Raise loads, inputs and gravity from zero in adaptive steps: from the neutral configuration, or from a closed one
    if there are loops."""
    start, slack = _unloaded(model, closed, t)[None], np.zeros((1, model.n_rows))
    (here,) = _newton(model, closed[None] if model.n_rows else start, slack, u[None], t, 0.0, tol, limit)
    here.iterations += direct.iterations
    if here.remedy and model.n_rows:
        here = _mounted(model, start, u, t, tol, limit, here)
    if here.remedy:
        raise ConvergenceError(f"statics: not even the unloaded robot has an equilibrium that Newton's method finds: "
                               f"{here.remedy}", direct.equilibrium(model, u, t))  # fmt: skip

    def loaded_by(here: _Iterate, part: float) -> _Iterate:
        return _newton(model, here.q[None], here.force[None], u[None], t, part, tol, limit)[0]

    here, reached, remedy = _raised(here, loaded_by)
    if reached < 1.0:
        raise ConvergenceError(
            f"statics: stopped at {reached:.4g} of the load after {here.iterations} iterations: {remedy}; the "
            "equilibrium may end there (a limit point): start from another q0",
            here.equilibrium(model, u, t, reached),
        )
    return here


def _unloaded(model: Model, closed: np.ndarray, t: float) -> np.ndarray:
    """The neutral configuration (nq,), joints that move where they are."""
    q = moved_to(model, model.neutral(), t)
    held = model.motion_dof[model.n_motions - model.n_held :]
    plain = held[model.dof_q[held] >= 0]
    q[model.dof_q[plain]] = closed[model.dof_q[plain]]
    for at, j, free in groups(model):
        if j in held:
            place = slice(at, at + (7 if free else 4))
            q[place] = closed[place]
    return q


def _mounted(
    model: Model, start: np.ndarray, u: np.ndarray, t: float, tol: float, limit: int, failed: _Iterate
) -> _Iterate:
    """The unloaded robot in equilibrium while its loops close in adaptive steps, or what failed before."""
    gap = loop_residual(model, start[0])

    def closed_by(here: _Iterate, part: float) -> _Iterate:
        return _newton(model, here.q[None], here.force[None], u[None], t, 0.0, tol, limit, (1.0 - part) * gap)[0]

    here = closed_by(_Iterate(start[0], np.zeros(model.n_rows), 0, ""), 0.0)
    if here.remedy:
        return failed
    here.iterations += failed.iterations
    here, reached, _ = _raised(here, closed_by)
    return here if reached == 1.0 else failed


def _raised(here: _Iterate, solve: Callable[[_Iterate, float], _Iterate]) -> tuple[_Iterate, float, str]:
    """Follow equilibria from part 0 to part 1 of something; the last one, how far it got, and what stopped it."""
    reached, step, remedy = 0.0, 0.25, ""
    while reached < 1.0:
        goal = min(1.0, reached + step)
        trial = solve(here, goal)
        trial.iterations += here.iterations
        if not trial.remedy:
            here, reached, step = trial, goal, 1.5 * step
        else:
            here.iterations, remedy = trial.iterations, trial.remedy
            step *= 0.5
            if step < 1e-3:
                break
    return here, reached, remedy
