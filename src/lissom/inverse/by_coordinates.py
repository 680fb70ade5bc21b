"""Coordinates that bring frames to where they should be: damped least squares on the manifold, a batch at a time.

    δ = Ĵᵀ (Ĵ Ĵᵀ + μ I)⁻¹ W (e − J δ₀) + δ₀,   Ĵ = W J (1 − A⁺A),   δ₀ = −A⁺ c                             (1)

W weighs the errors e, A and c are rows and residuals of loops, and δ is in units of the coordinates' natural sizes: the
smallest step that mends what can be mended. Coordinates at a limit that the step would pass stay there, and a step that
would pass others is cut at these. μ falls where a step brings the frames nearer, and rises where none does.
Source: Y. Nakamura, H. Hanafusa, J. Dyn. Syst. Meas. Control 108, 1986, for robots; K. Levenberg, D. Marquardt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import final

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.inverse_dynamics_derivatives import row_results
from lissom.inverse.targets import Targets, few_sizes, put_rows
from lissom.model.model import Model

_LONGEST = 0.5  # step, in units of the coordinates' natural sizes
_CLOSED = 1e-10  # what a loop may be open by [rad, m]
_CLOSINGS, _RANK = 10, 1e-9  # steps that close loops, and what counts as nothing in their rows
_LOOPS = 1e3  # weight of open loops beside errors
_LEAST, _MOST = 1e-14, 1e6  # damping, over the size of Ĵ Ĵᵀ
_STUCK = 1e-10  # step, over the longest, that goes nowhere


@final
@dataclass(frozen=True)
class Bounds:
    """Limits of coordinates in the order of v, infinite where there are none, and which of them may move."""

    low: np.ndarray
    high: np.ndarray
    moves: np.ndarray

    def kept(self, model: Model, q: np.ndarray) -> np.ndarray:
        """q (n, nq) within the limits."""
        q, plain = q.copy(), np.flatnonzero(model.dofs.q >= 0)
        at = model.dofs.q[plain]
        q[:, at] = np.clip(q[:, at], self.low[plain], self.high[plain])
        return q

    def stopped(self, model: Model, q: np.ndarray, push: np.ndarray) -> np.ndarray:
        """Which coordinates a push (n, nv) cannot move."""
        plain = np.flatnonzero(model.dofs.q >= 0)
        here = q[:, model.dofs.q[plain]]
        out = np.broadcast_to(~self.moves, push.shape).copy()
        out[:, plain] |= ((here >= self.high[plain]) & (push[:, plain] > 0)) | (
            (here <= self.low[plain]) & (push[:, plain] < 0)
        )
        return out


@final
@dataclass
class Search:
    """Where searches stand: configurations (n, nq), errors (n, m), residuals of loops (n, n_rows), iterations (n,)."""

    q: np.ndarray
    errors: np.ndarray
    gaps: np.ndarray
    iterations: np.ndarray

    def cost(self, weights: np.ndarray) -> np.ndarray:
        """What (1) lessens."""
        return ((weights * self.errors) ** 2).sum(1) + _LOOPS**2 * (self.gaps**2).sum(1)

    def found(self, targets: Targets, tolerance: float) -> np.ndarray:
        """Which are where they should be."""
        return (targets.away(self.errors) <= tolerance) & (np.abs(self.gaps).max(1, initial=0.0) <= _CLOSED)

    def rows(self, at: np.ndarray) -> Search:
        """Copies of some rows."""
        return Search(*(getattr(self, field.name)[at] for field in fields(self)))

    def take(self, rows: np.ndarray, other: Search, better: np.ndarray) -> None:
        """Put the better of the rows of another there, but for iterations."""
        put_rows(self, ("q", "errors", "gaps"), rows[better], other.rows(better))


def begun(model: Model, targets: Targets, q: np.ndarray, bounds: Bounds) -> Search:
    """Searches at configurations (n, nq), moved into the limits and onto the loops."""
    q = _closed(model, bounds.kept(model, q), bounds)
    return Search(q, *_errors(model, targets, q, np.arange(len(q))), np.zeros(len(q), dtype=int))


def search_coordinates(
    model: Model, targets: Targets, here: Search, bounds: Bounds, tolerance: float, most: int,
    tell: Callable[[float], None],
) -> None:  # fmt: skip
    """Follow (1) from where searches are, which then are where the frames are as they should be, or come no nearer;
    `tell` is called with how many are."""
    weights, n = targets.weights(), len(here.q)
    damping, stuck = np.full(n, 1e-6), np.zeros(n, dtype=bool)
    for _ in range(most):
        there = here.found(targets, tolerance)
        tell(int(there.sum()))
        rows = np.flatnonzero(~(stuck | there))
        if not len(rows):
            break
        step = few_sizes(
            lambda at, q, e, c, mu: _steps(model, targets.of(at), q, e, c, mu, bounds),
            rows, here.q, here.errors, here.gaps, damping,
        )  # fmt: skip
        size = np.abs(step).max(1, initial=0.0)
        step *= np.minimum(1.0, _LONGEST / np.maximum(size, 1e-300))[:, None]
        moved = here.q.copy()
        moved[rows] = _closed(
            model, bounds.kept(model, integrate(model, here.q[rows], step * model.dofs.scale)), bounds
        )
        errors, gaps = _errors(model, targets, moved, rows)
        new = Search(moved[rows], errors, gaps, here.iterations[rows])
        better = new.cost(weights) < here.rows(rows).cost(weights)
        damping[rows] = np.clip(damping[rows] * np.where(better, 0.1, 10.0), _LEAST, None)
        here.iterations[rows] += 1
        stuck[rows] = (damping[rows] > _MOST) | (size < _STUCK * _LONGEST)
        here.take(rows, new, better)


def _errors(model: Model, targets: Targets, q: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors and residuals of loops of some rows of q."""

    def both(at: np.ndarray, q: np.ndarray) -> np.ndarray:
        errors = targets.of(at).errors(model, q)
        return np.hstack([errors, run_constraints(model, q)[0].host["gap"]]) if model.n_rows else errors

    found = few_sizes(both, rows, q)
    m = found.shape[1] - model.n_rows
    return found[:, :m], found[:, m:]


def _closed(model: Model, q: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Configurations (n, nq) with their loops closed by shortest steps, so that one along them may be long."""
    for _ in range(_CLOSINGS if model.n_rows else 0):
        rows = few_sizes(lambda _, q: _loop_rows(model, q), np.arange(len(q)), q)
        A, gaps = rows[:, :, :-1] * bounds.moves, rows[:, :, -1]
        if np.abs(gaps).max(initial=0.0) <= 0.01 * _CLOSED:
            break
        step = -(np.linalg.pinv(A, rcond=_RANK) @ gaps[:, :, None])[:, :, 0]
        step *= np.minimum(1.0, _LONGEST / np.maximum(np.abs(step).max(1), 1e-300))[:, None]
        q = bounds.kept(model, integrate(model, q, step * model.dofs.scale))
    return q


def _loop_rows(model: Model, q: np.ndarray) -> np.ndarray:
    """A, by coordinates of natural size, and behind it the residuals of the loops, shape (n, n_rows, nv + 1)."""
    w, lead = run_constraints(model, q)
    A = row_results(model, w, "A_q", lead) * model.dofs.scale
    return np.concatenate([A, w.host["gap"][:, :, None]], axis=2)


def _steps(
    model: Model, targets: Targets, q: np.ndarray, errors: np.ndarray, gaps: np.ndarray, mu: np.ndarray, bounds: Bounds
) -> np.ndarray:
    """δ of (1), shape (n, nv)."""
    scale, W = model.dofs.scale, targets.weights()
    J = W[:, None] * targets.jacobian(model, q, errors) * scale
    A = _loop_rows(model, q)[:, :, :-1] if model.n_rows else np.zeros((len(q), 0, model.nv))
    stopped = np.broadcast_to(~bounds.moves, (len(q), model.nv))
    step = np.zeros((len(q), model.nv))
    for _ in range(3):  # what a step would push out of its limits is stopped, and the step made again
        free = ~stopped[:, None, :]
        step = _damped(J * free, A * free, W * errors, gaps, mu)
        more = stopped | bounds.stopped(model, q, step)
        if (more == stopped).all():
            break
        stopped = more
    return step


def _damped(J: np.ndarray, A: np.ndarray, e: np.ndarray, gaps: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """(1), the Jacobians in units."""
    first = np.zeros((len(J), J.shape[2]))
    if A.shape[1]:
        inverse = np.linalg.pinv(A, rcond=_RANK)
        first = -(inverse @ gaps[:, :, None])[:, :, 0]
        e = e - (J @ first[:, :, None])[:, :, 0]
        J = J - (J @ inverse) @ A
    square = J @ np.swapaxes(J, 1, 2)
    size = np.maximum(np.trace(square, axis1=1, axis2=2), 1e-300)
    square = square + (mu * size)[:, None, None] * np.eye(J.shape[1])
    return first + (np.swapaxes(J, 1, 2) @ np.linalg.solve(square, e[:, :, None]))[:, :, 0]
