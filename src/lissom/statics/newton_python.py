"""Newton's method for equilibria in Python: the iteration of newton_kernel, for robots whose forces call Python.

It also goes on where K is singular to rounding, by shortest steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs  # pyright: ignore[reportAttributeAccessIssue]

from lissom.dynamics.configuration import integrate, unit_quaternions
from lissom.dynamics.forward_dynamics import run_residual
from lissom.dynamics.independent_rows import bordered_matrix, independent_rows
from lissom.dynamics.steady_motion import steady_velocity
from lissom.model.model import Model
from lissom.statics.neutral_step import is_led_astray, shortest_step
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
)
from lissom.statics.tangent_stiffness import residual_jacobian


def static_residual(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0, force: Any = 0.0, hold: Any = 0.0
) -> np.ndarray | None:
    """ID(q, v, 0) − B(q) u − Aᵀ λ with loads, inputs, gravity and inertia forces scaled, less a generalised force that
    holds, zero in the rows of prescribed coordinates, whose forces take what is left there; then the residuals of
    loops. None where a rod interval turns too far."""
    v = steady_velocity(model, factor)[None]
    w = run_residual(model, q[None], v, np.zeros_like(v), u[None], t, factor, force)
    r = np.concatenate([w.host["tau"][0] - hold, w.host["gap"][0]])
    if w.status[0] == 3 or not np.isfinite(r).all():
        return None
    w.raise_for_status()
    r[model.prescribed.dof] = 0.0
    return r


def newton_in_python(
    model: Model,
    q: np.ndarray,
    force: np.ndarray,
    u: np.ndarray,
    t: float,
    factor: float,
    opened: np.ndarray,
    tol: float,
    limit: int,
    hold: Any,
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """The same iteration as that of newton_kernel, for what calls Python: last iterate, forces of loops, iterations,
    why it ended."""
    r = static_residual(model, q, u, t, factor, force, hold)
    if r is None:
        return q, force, 0, WOUND_UP
    last, crossed, may_pull = np.inf, False, len(model.spools.channel) + len(model.springs) > 0
    for iteration in range(1, limit + 1):
        step_to = _newton_map(model, q, u, t, factor, force, opened, r)
        if isinstance(step_to, int):
            return q, force, iteration, step_to
        step, push = step_to(r)
        length = _length(model, step)
        if not np.isfinite(length):
            return q, force, iteration, SINGULAR
        if length <= tol or (length < FLOOR and length > 0.3 * last):  # rounding keeps it from shrinking further
            moved = integrate(model, q, step), force + push
            better = static_residual(model, moved[0], u, t, factor, moved[1], hold)
            closer = better is not None and _length(model, step_to(better)[0]) <= length
            return (*moved, iteration, CONVERGED) if closer else (q, force, iteration, CONVERGED)
        last = length
        fraction = min(1.0, LONGEST_STEP / length)
        while True:
            trial, pushed = integrate(model, q, fraction * step), force + fraction * push
            r_trial = static_residual(model, trial, u, t, factor, pushed, hold)
            if r_trial is not None:
                next_length = _length(model, step_to(r_trial)[0])
                nearer = next_length <= (1.0 - 0.25 * fraction) * length or length < FLOOR
                if nearer or (may_pull and not crossed and fraction < 2.0 * LEAST_FRACTION):
                    crossed = not nearer
                    break
            fraction *= 0.5
            if fraction < LEAST_FRACTION:
                return q, force, iteration, NO_STEP
        q, force, r = unit_quaternions(model, trial), pushed, r_trial
    return q, force, limit, TOO_MANY


def _length(model: Model, step: np.ndarray) -> float:
    """Size of a step in q, in units of dofs.scale."""
    return float(np.max(np.abs(step) / model.dofs.scale, initial=0.0))


def _newton_map(
    model: Model,
    q: np.ndarray,
    u: np.ndarray,
    t: float,
    factor: float,
    force: np.ndarray,
    opened: np.ndarray,
    met: np.ndarray,
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | int:
    """What gives Newton's steps in q and in the forces of loops for residuals as the one met, or why there is none;
    shortest steps where K is singular to rounding and nothing drives what nothing holds."""
    K, A, A_q = residual_jacobian(model, q, u, t, factor, force)
    if not (np.isfinite(K).all() and np.isfinite(A_q).all()):
        return NOT_FINITE
    nv, kept = model.nv, independent_rows(model, A)
    matrix, sigma = bordered_matrix(model, K, A, A_q, kept)
    lu, pivots, singular = dgetrf(matrix)

    def asked(r: np.ndarray) -> np.ndarray:
        return np.concatenate([r[:nv], sigma * (r[nv:] - opened)[kept]])

    shortest = None
    if singular or is_led_astray(model, K, met[:nv], dgetrs(lu, pivots, asked(met))[0][:nv]):
        shortest = shortest_step(model, K, matrix, asked(met))
        if singular and shortest is None:
            return SINGULAR

    def step_to(r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = -dgetrs(lu, pivots, asked(r))[0] if shortest is None else -shortest(asked(r))
        push = np.zeros(model.n_rows)
        push[kept] = sigma * x[nv:]
        return x[:nv], push

    return step_to
