"""Static equilibria: r(q) = ID(q, 0, 0) − B(q) u = 0 by Newton's method.

The step is accepted by the natural monotonicity test, which does not depend on the units of the rows: the simplified
Newton step from the trial point must be shorter than the step that led there. Where Newton stalls, the loads, inputs
and gravity are raised in steps from zero.
Source: Mathew 2025 §3; P. Deuflhard, Newton Methods for Nonlinear Problems, 2011, §3.3 (the test).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs  # pyright: ignore[reportAttributeAccessIssue]

from lissom.dynamics.actuation import warn_of_pushing
from lissom.dynamics.configuration import checked_configuration, integrate, unit_quaternions
from lissom.dynamics.forward_dynamics import input_rows, run_residual
from lissom.dynamics.workspace import batch_of, leading
from lissom.errors import ConvergenceError, ShapeError
from lissom.model.model import Model
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
        q: configuration (..., nq). u: inputs (..., nu). multipliers: forces of the prescribed motions (..., n)
        [N·m, N]. residual: largest entry of the generalised force that is left (...).
        iterations: Newton steps (...).
    """

    q: np.ndarray
    u: np.ndarray
    multipliers: np.ndarray
    residual: np.ndarray
    iterations: np.ndarray


def static_residual(model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0) -> np.ndarray | None:
    """ID(q, 0, 0) − B(q) u with loads, inputs and gravity scaled, zero in the rows of prescribed coordinates, whose
    forces take what is left there; None where a rod interval turns too far."""
    still = np.zeros((1, model.nv))
    w = run_residual(model, q[None], still, still, u[None], t, factor)
    if w.status[0] == 3 or not np.isfinite(w.host["tau"][0]).all():
        return None
    w.raise_for_status()
    r = w.host["tau"][0].copy()
    r[model.motion_dof] = 0.0
    return r


def solve_statics(
    model: Model,
    u: Any = None,
    q0: Any = None,
    *,
    t: float = 0.0,
    tolerance: float = 1e-11,
    max_iterations: int = 100,
) -> Equilibrium:
    """Static equilibrium under gravity, loads and inputs.

        ID(q, 0, 0) = B(q) u

    Args:
        u: inputs, shape (..., nu); None is zero.
        q0: start, shape (..., nq); None is the neutral configuration. The equilibrium found is usually the nearest.
        t: time at which the loads and prescribed motions are taken [s].
        tolerance: largest last step, in units of a rod's end rotation [rad] and stretch [-].
        max_iterations: of each Newton solve.
    Returns:
        Equilibrium.
    Raises:
        ConvergenceError: no equilibrium was reached, even in load steps; carries the last iterate as an Equilibrium.
        ShapeError: the argument, the expected and the received shape. ModelError: tolerance or max_iterations.
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
    rows[0] = moved_to(model, rows[0], t)
    found = []
    for k, (row, direct) in enumerate(
        zip(rows[1], _newton(model, rows[0], rows[1], t, 1.0, tolerance, max_iterations))
    ):
        try:
            found.append(_load_steps(model, row, t, tolerance, max_iterations, direct) if direct.remedy else direct)
        except ConvergenceError as error:
            if lead:
                raise ConvergenceError(f"instance {k} of {batch_of(lead)}: {error}", error.partial) from error
            raise
    q = np.array([end.q for end in found]).reshape(len(found), model.nq)
    still = np.zeros((len(q), model.nv))
    left = run_residual(model, q, still, still, rows[1], t).host["tau"].copy() if len(q) else still
    multipliers = left[:, model.motion_dof]
    left[:, model.motion_dof] = 0.0
    return Equilibrium(
        q.reshape(*lead, model.nq),
        np.broadcast_to(u, (*lead, model.nu)).copy(),
        multipliers.reshape(*lead, model.n_multipliers),
        np.abs(left).max(axis=1, initial=0.0).reshape(lead),
        np.array([end.iterations for end in found], dtype=int).reshape(lead),
    )


@final
@dataclass
class _Iterate:
    """Where a Newton solve ended; and what to do about it, empty where it converged."""

    q: np.ndarray
    iterations: int
    remedy: str

    def equilibrium(self, model: Model, u: np.ndarray, t: float, factor: float = 1.0) -> Equilibrium:
        """The iterate as a result, with the residual it leaves."""
        r = static_residual(model, self.q, u, t, factor)
        size = np.array(np.inf if r is None else np.abs(r).max(initial=0.0))
        return Equilibrium(self.q, u, np.zeros(model.n_multipliers), size, np.array(self.iterations))


def moved_to(model: Model, q: np.ndarray, t: float) -> np.ndarray:
    """Configurations (..., nq) with the prescribed coordinates where they are at time t."""
    q = q.copy()
    if model.n_multipliers:
        q[..., model.dof_q[model.motion_dof]] = model.motions(t)[0]
    return q


def _newton(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float, tol: float, limit: int
) -> list[_Iterate]:
    """Damped Newton iterations from the rows of q (n, nq) with inputs u (n, nu); sizes of steps are in dof_scale."""
    if len(q) and not model.custom_actuators:
        ended = newton_in_kernel(model, q, u, t, factor, tol, limit)
    else:
        rows = [_newton_in_python(model, start, row, t, factor, tol, limit) for start, row in zip(q, u)]
        ended = zip(*rows) if rows else ((), (), ())
    return [_Iterate(unit_quaternions(model, end), int(count), _REMEDIES[why].format(limit=limit))
            for end, count, why in zip(*ended)]  # fmt: skip


def _newton_in_python(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float, tol: float, limit: int
) -> tuple[np.ndarray, int, int]:
    """The same iteration as that of newton_kernel, for users' own actuators: last iterate, iterations, why it ended."""
    scale = model.dof_scale
    r = static_residual(model, q, u, t, factor)
    if r is None:
        return q, 0, WOUND_UP
    last = np.inf
    for iteration in range(1, limit + 1):
        K = residual_jacobian(model, q, u, t, factor)
        if not np.isfinite(K).all():
            return q, iteration, NOT_FINITE
        lu, pivots, singular = dgetrf(K)
        if singular:
            return q, iteration, SINGULAR

        def newton_step(residual: np.ndarray, lu: np.ndarray = lu, pivots: np.ndarray = pivots) -> np.ndarray:
            return -dgetrs(lu, pivots, residual)[0]

        step = newton_step(r)
        length = float(np.max(np.abs(step) / scale, initial=0.0))
        if not np.isfinite(length):
            return q, iteration, SINGULAR
        if length <= tol or (length < FLOOR and length > 0.3 * last):  # rounding keeps it from shrinking further
            better = static_residual(model, moved := integrate(model, q, step), u, t, factor)
            closer = better is not None and np.abs(newton_step(better) / scale).max(initial=0.0) <= length
            return (moved if closer else q), iteration, CONVERGED
        last = length
        fraction = min(1.0, LONGEST_STEP / length)
        while True:
            trial = integrate(model, q, fraction * step)
            r_trial = static_residual(model, trial, u, t, factor)
            if r_trial is not None:
                next_length = float(np.max(np.abs(newton_step(r_trial)) / scale))
                if next_length <= (1.0 - 0.25 * fraction) * length or length < FLOOR:
                    break
            fraction *= 0.5
            if fraction < LEAST_FRACTION:
                return q, iteration, NO_STEP
        q, r = unit_quaternions(model, trial), r_trial
    return q, limit, TOO_MANY


def _load_steps(model: Model, u: np.ndarray, t: float, tol: float, limit: int, direct: _Iterate) -> _Iterate:
    """Raise loads, inputs and gravity from zero in adaptive steps."""
    reached, step, iterations = 0.0, 0.25, direct.iterations
    (here,) = _newton(model, moved_to(model, model.neutral()[None], t), u[None], t, 0.0, tol, limit)
    if here.remedy:
        raise ConvergenceError(f"statics: not even the unloaded robot has an equilibrium that Newton's method finds: "
                               f"{here.remedy}", direct.equilibrium(model, u, t))  # fmt: skip
    while reached < 1.0:
        goal = min(1.0, reached + step)
        (trial,) = _newton(model, here.q[None], u[None], t, goal, tol, limit)
        iterations += trial.iterations
        if not trial.remedy:
            here, reached, step = trial, goal, 1.5 * step
        else:
            step *= 0.5
            if step < 1e-3:
                raise ConvergenceError(
                    f"statics: stopped at {reached:.4g} of the load after {iterations} iterations: {trial.remedy}; the "
                    "equilibrium may end there (a limit point): start from another q0",
                    here.equilibrium(model, u, t, reached),
                )
    here.iterations = iterations
    return here
