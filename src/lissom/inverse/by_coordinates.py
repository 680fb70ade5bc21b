"""Coordinates that bring frames to their targets: bounded least squares on the manifold, for batches.

    min ½ |Ĵ δ − W e|² + ½ μ |δ|²   with   A δ = −c,   low ≤ q ⊕ δ ≤ high                                 (1)
    d = projection of Ĵᵀ W e on the moves that limits and loops admit;  d = 0 at an optimum                (2)
    Ĥ = ∂(−Ĵᵀ W e + Aᵀ λ)/∂q,   λ the forces of loops that minimise |−Ĵᵀ W e + Aᵀ λ|                      (3)

W are the weights of the errors e, Ĵ = W J is their Jacobian, A and c are rows and residuals of loops, and δ is in units
of the coordinates' natural sizes. μ decreases after a step that reduces the errors and increases after one that does
not. If targets are out of reach, (1) alone converges slowly. After several steps that reduce the cost by little, (3)
replaces ĴᵀĴ, with the absolute values of its eigenvalues. The search ends if the frames are at their targets, or if (2)
is zero up to rounding.
Source: Y. Nakamura, H. Hanafusa, J. Dyn. Syst. Meas. Control 108, 1986, for robots; J. Nocedal, S. J. Wright, Numerical
Optimization, 2006, §10.3 (Levenberg and Marquardt) and §12.3 (the conditions of an optimum).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import final

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.inverse_dynamics_derivatives import row_results
from lissom.inverse.least_inputs import least_within
from lissom.inverse.targets import Targets, few_sizes, put_rows
from lissom.launch.workspace import row_slices
from lissom.model.model import Model

_LONGEST = 0.5  # step, in units of the coordinates' natural sizes
_CLOSED = 1e-10  # largest residual of a closed loop [rad, m]
_CLOSINGS, _RANK = 10, 1e-9  # most steps to close loops, and relative size of singular values of A that count as zero
_LOOPS = 1e3  # weight of residuals of loops in the cost
_LEAST, _MOST = 1e-14, 1e6  # damping μ over |Ĵ|²
_SLOW = 0.25  # a step is slow if more than this part of the cost remains
_TURNS = 20, 8  # slow steps by (1), then by (3), in turn
_FAR = 0.1  # |d| over |Ĵ| |W e| below which (3) is used
_SETTLED = 1e-12  # |d| over |Ĵ| |W e| at an optimum
_ROUNDING = 1e-13  # relative, of the cost, and of coordinates at a limit
_DIFFERENCE, _AT_ONCE = 1e-5, 4096  # step of (3), and configurations in one launch of it


@final
@dataclass(frozen=True)
class Bounds:
    """Limits of coordinates in the order of v, infinite if there are none, and the mask of those that may move."""

    low: np.ndarray
    high: np.ndarray
    moves: np.ndarray

    def kept(self, model: Model, q: np.ndarray) -> np.ndarray:
        """q (n, nq) clipped to the limits, and exactly at a limit if it differs from it by rounding only."""
        q, plain = q.copy(), np.flatnonzero(model.dofs.q >= 0)
        at, low, high = model.dofs.q[plain], self.low[plain], self.high[plain]
        slack = _ROUNDING * model.dofs.scale[plain]
        q[:, at] = np.where(q[:, at] <= low + slack, low, np.where(q[:, at] >= high - slack, high, q[:, at]))
        return q

    def room(self, model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest step (n, nv) from q (n, nq), in units of natural sizes."""
        plain = np.flatnonzero(model.dofs.q >= 0)
        low, high = np.full((len(q), model.nv), -np.inf), np.full((len(q), model.nv), np.inf)
        here, scale = q[:, model.dofs.q[plain]], model.dofs.scale[plain]
        low[:, plain] = (np.minimum(self.low[plain], here) - here) / scale
        high[:, plain] = (np.maximum(self.high[plain], here) - here) / scale
        return np.where(self.moves, low, 0.0), np.where(self.moves, high, 0.0)

    def active(self, model: Model, q: np.ndarray) -> np.ndarray:
        """−1 for coordinates of q (n, nq) at their low limits, 1 at their high limits, else 0; shape (n, nv)."""
        plain = np.flatnonzero((model.dofs.q >= 0) & self.moves)
        out = np.zeros((len(q), model.nv), dtype=int)
        here = q[:, model.dofs.q[plain]]
        out[:, plain] = np.where(here >= self.high[plain], 1, np.where(here <= self.low[plain], -1, 0))
        return out


@final
@dataclass
class Search:
    """State of n searches: configurations (n, nq), errors (n, m), residuals of loops (n, n_rows), Ĵ (n, m, nv) and
    A (n, n_rows, nv) in units of natural sizes, d of (2) (n, nv), and iterations (n,)."""

    q: np.ndarray
    errors: np.ndarray
    gaps: np.ndarray
    J: np.ndarray
    A: np.ndarray
    descent: np.ndarray
    iterations: np.ndarray

    def cost(self, weights: np.ndarray) -> np.ndarray:
        """Cost that (1) reduces, shape (n,)."""
        return ((weights * self.errors) ** 2).sum(1) + _LOOPS**2 * (self.gaps**2).sum(1)

    @property
    def optimality(self) -> np.ndarray:
        """Largest entry of (2), shape (n,)."""
        return np.abs(self.descent).max(1, initial=0.0)

    def found(self, targets: Targets, tolerance: float) -> np.ndarray:
        """Mask (n,) of searches whose frames are at their targets and whose loops are closed."""
        return (targets.away(self.errors) <= tolerance) & self._closed()

    def settled(self, weights: np.ndarray) -> np.ndarray:
        """Mask (n,) of searches at an optimum, up to rounding."""
        size = np.linalg.norm(self.J, axis=(1, 2)) * np.linalg.norm(weights * self.errors, axis=1)
        return (self.optimality <= _SETTLED * size) & self._closed()

    def _closed(self) -> np.ndarray:
        return np.abs(self.gaps).max(1, initial=0.0) <= _CLOSED

    def rows(self, at: np.ndarray) -> Search:
        """Copies of rows."""
        return Search(*(getattr(self, field.name)[at] for field in fields(self)))

    def take(self, rows: np.ndarray, other: Search, better: np.ndarray) -> None:
        """Replace those of the rows for which `other` is better. Iterations are kept."""
        names = [field.name for field in fields(self) if field.name != "iterations"]
        put_rows(self, names, rows[better], other.rows(better))


def begun(model: Model, targets: Targets, q: np.ndarray, bounds: Bounds) -> Search:
    """Searches at configurations (n, nq), moved into the limits and onto the loops."""
    q = _closed(model, bounds.kept(model, q), bounds)
    return Search(q, *_evaluated(model, targets, q, np.arange(len(q)), bounds), np.zeros(len(q), dtype=int))


def search_coordinates(
    model: Model, targets: Targets, here: Search, bounds: Bounds, tolerance: float, most: int,
    report: Callable[[float], None],
) -> None:  # fmt: skip
    """Continue searches by (1) until their frames are at the targets or at an optimum, for at most `most` steps.
    `report` is called with the number of finished searches."""
    weights, n = targets.weights(), len(here.q)
    damping, stuck, slow = np.full((2, n), 1e-6), np.zeros(n, dtype=bool), np.zeros(n, dtype=int)
    for _ in range(most):
        there = here.found(targets, tolerance) | here.settled(weights)
        report(int(there.sum()))
        rows = np.flatnonzero(~(stuck | there))
        if not len(rows):
            break
        old = here.rows(rows)
        kind = ((slow[rows] % sum(_TURNS) >= _TURNS[0]) & _is_far(old, weights)).astype(int)
        step = _steps(model, targets.of(rows), old, damping[kind, rows], kind == 1, bounds)
        size = np.abs(step).max(1, initial=0.0)
        step *= np.minimum(1.0, _LONGEST / np.maximum(size, 1e-300))[:, None]
        moved = here.q.copy()
        moved[rows] = _closed(model, bounds.kept(model, integrate(model, old.q, step * model.dofs.scale)), bounds)
        new = Search(moved[rows], *_evaluated(model, targets, moved, rows, bounds), old.iterations)
        was, now = old.cost(weights), new.cost(weights)
        level = (now <= was * (1.0 + _ROUNDING)) & (new.optimality < old.optimality)
        better = (now < was * (1.0 - _ROUNDING)) | level
        damping[kind, rows] = np.clip(damping[kind, rows] * np.where(better, 0.1, 10.0), _LEAST, None)
        slow[rows] = np.where(now > _SLOW * was, slow[rows] + 1, 0)
        here.iterations[rows] += 1
        stuck[rows] = (damping[:, rows] > _MOST).all(axis=0)
        here.take(rows, new, better)


def _evaluated(
    model: Model, targets: Targets, q: np.ndarray, rows: np.ndarray, bounds: Bounds
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Errors, residuals of loops, Ĵ, A and d of rows of q."""
    found = few_sizes(lambda at, q: _linearized(model, targets.of(at), q), rows, q)
    m = found.shape[1] - model.n_rows
    e, J, gaps, A = found[:, :m, -1], found[:, :m, :-1], found[:, m:, -1], found[:, m:, :-1]
    return e, gaps, J, A, _descent(J, targets.weights() * e, A, *bounds.room(model, q[rows]))


def _linearized(model: Model, targets: Targets, q: np.ndarray) -> np.ndarray:
    """[Ĵ, e; A, c], shape (n, m + n_rows, nv + 1)."""
    errors = targets.errors(model, q)
    J = targets.weights()[:, None] * targets.jacobian(model, q, errors) * model.dofs.scale
    seen = np.concatenate([J, errors[:, :, None]], axis=2)
    return np.concatenate([seen, _loop_rows(model, q)], axis=1) if model.n_rows else seen


def _descent(J: np.ndarray, e: np.ndarray, A: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """d of (2), shape (n, nv): of all moves that open no loop and leave no limit, the nearest to Ĵᵀ W e."""
    push = np.einsum("nij,ni->nj", J, e)
    least, most = np.where(low < 0.0, -np.inf, 0.0), np.where(high > 0.0, np.inf, 0.0)
    if not A.shape[1]:
        return np.clip(push, least, most)
    size = np.abs(push).max(axis=1, initial=0.0)[:, None]
    push = push / np.where(size > 0.0, size, 1.0)
    rows, _ = _independent(A, np.zeros(A.shape[:2]))
    right = -np.einsum("nij,nj->ni", rows, push)
    return size * (push + least_within(rows, right, least - push, most - push))


def _closed(model: Model, q: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Configurations (n, nq) with their loops closed by shortest steps, so that one along them may be long."""
    for _ in range(_CLOSINGS if model.n_rows else 0):
        found = few_sizes(lambda _, q: _loop_rows(model, q), np.arange(len(q)), q)
        gaps = found[:, :, -1]
        if np.abs(gaps).max(initial=0.0) <= 0.01 * _CLOSED:
            break
        rows, right = _independent(found[:, :, :-1] * bounds.moves, gaps)
        step, (low, high) = np.einsum("nij,ni->nj", rows, right), bounds.room(model, q)
        out = np.flatnonzero(((step < low) | (step > high)).any(axis=1))
        step[out] = least_within(rows[out], right[out], low[out], high[out]) if len(out) else 0.0
        step *= np.minimum(1.0, _LONGEST / np.maximum(np.abs(step).max(1), 1e-300))[:, None]
        q = bounds.kept(model, integrate(model, q, step * model.dofs.scale))
    return q


def _loop_rows(model: Model, q: np.ndarray) -> np.ndarray:
    """[A, c], A in units of natural sizes, shape (n, n_rows, nv + 1)."""
    w, lead = run_constraints(model, q)
    A = row_results(model, w, "A_q", lead) * model.dofs.scale
    return np.concatenate([A, w.host["gap"][:, :, None]], axis=2)


def _independent(A: np.ndarray, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal or zero rows R and right sides b such that R δ = b is the least-squares solution of A δ = −c."""
    U, size, V = np.linalg.svd(A, full_matrices=False)
    kept = size > _RANK * size.max(axis=1, initial=0.0, keepdims=True)
    right = -np.einsum("nji,nj->ni", U, gaps) / np.where(kept, size, 1.0)
    return V * kept[:, :, None], right * kept


def _steps(
    model: Model, targets: Targets, here: Search, mu: np.ndarray, slow: np.ndarray, bounds: Bounds
) -> np.ndarray:
    """δ of (1), shape (n, nv), with the curvature (3) for slow searches."""
    low, high = bounds.room(model, here.q)
    e, step = targets.weights() * here.errors, np.zeros((len(here.q), model.nv))
    rows, right = _independent(here.A * bounds.moves, here.gaps)
    for which, curved in ((np.flatnonzero(~slow), False), (np.flatnonzero(slow), True)):
        if len(which):
            J, left = here.J[which], e[which]
            if curved:
                J, left = _curved(model, targets.of(which), here.rows(which), bounds)
            loops = rows[which], right[which]
            step[which] = _bounded(J * bounds.moves, left, *loops, mu[which], low[which], high[which])
    return step


def _is_far(here: Search, weights: np.ndarray) -> np.ndarray:
    """Whether d of (2) is small beside |Ĵ| |W e|, so that the curvature of the errors counts; shape (n,)."""
    e = weights * here.errors
    size = np.linalg.norm(here.J, axis=(1, 2)) * np.linalg.norm(e, axis=1)
    return here.optimality <= _FAR * size


def _fixed(here: Search, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Mask (n, nv) of coordinates that are pushed against their limits, or do not move."""
    return ((low == 0.0) | (high == 0.0)) & (here.descent == 0.0)


def _bounded(
    J: np.ndarray, e: np.ndarray, A: np.ndarray, right: np.ndarray, mu: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """δ of (1) with A δ = right, shape (n, nv). Limits enter only if the solution without them violates one."""
    size = np.linalg.norm(J, axis=(1, 2)) ** 2
    mu = mu * np.where(size > 0.0, size, 1.0)
    step = _damped(J, A, e, right, mu)
    out = np.flatnonzero(((step < low) | (step > high)).any(axis=1))
    if len(out):
        n, m = len(out), J.shape[1]
        slack = np.sqrt(mu[out])[:, None, None] * np.eye(m)
        G = np.block([[J[out], slack], [A[out], np.zeros((n, A.shape[1], m))]])
        far = np.full((n, m), np.inf)
        lows, highs = np.hstack([low[out], -far]), np.hstack([high[out], far])
        found = least_within(G, np.hstack([e[out], right[out]]), lows, highs)
        step[out] = np.clip(found[:, : J.shape[2]], low[out], high[out])
    return step


def _damped(J: np.ndarray, A: np.ndarray, e: np.ndarray, right: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """δ of (1) with A δ = right, without limits. The rows of A are orthonormal or zero."""
    first = np.einsum("nij,ni->nj", A, right)
    e = e - np.einsum("nij,nj->ni", J, first)
    J = J - (J @ np.swapaxes(A, 1, 2)) @ A
    square = J @ np.swapaxes(J, 1, 2) + mu[:, None, None] * np.eye(J.shape[1])
    return first + (np.swapaxes(J, 1, 2) @ np.linalg.solve(square, e[:, :, None]))[:, :, 0]


def _curved(model: Model, targets: Targets, here: Search, bounds: Bounds) -> tuple[np.ndarray, np.ndarray]:
    """Rows R and right sides b with RᵀR = |Ĥ| of (3), to use in (1) instead of Ĵ and W e; shapes (n, nv, nv) and
    (n, nv). Coordinates at their limits are left out."""
    low, high = bounds.room(model, here.q)
    push = np.einsum("nij,ni->nj", here.J, targets.weights() * here.errors)
    fixed = _fixed(here, low, high)
    A = here.A * ~fixed[:, None, :]
    force = np.einsum("nij,nj->ni", np.linalg.pinv(np.swapaxes(A, 1, 2), rcond=_RANK), push * ~fixed)
    rows, _ = _independent(A, here.gaps)
    N = np.eye(model.nv) - np.swapaxes(rows, 1, 2) @ rows
    H = N @ _hessian(model, targets, here.q, force) @ N
    H = H * ~(fixed[:, :, None] | fixed[:, None, :])
    size = np.abs(H).max(axis=(1, 2), initial=0.0)
    H = H + (np.where(size > 0.0, size, 1.0)[:, None] * fixed)[:, :, None] * np.eye(model.nv)
    values, V = np.linalg.eigh(H)
    values = np.abs(values)
    root = np.sqrt(np.maximum(values, 1e-12 * values.max(axis=1, keepdims=True)))
    right = np.einsum("nij,nj->ni", N, push - np.einsum("nij,ni->nj", A, force))
    return root[:, :, None] * np.swapaxes(V, 1, 2), np.einsum("nji,nj->ni", V, right) / root


def _hessian(model: Model, targets: Targets, q: np.ndarray, force: np.ndarray) -> np.ndarray:
    """(3) by central differences, symmetric, shape (n, nv, nv)."""
    nv, W = model.nv, targets.weights()
    aside = _DIFFERENCE * np.vstack([np.eye(nv), -np.eye(nv)]) * model.dofs.scale
    out = np.zeros((len(q), nv, nv))
    for part in row_slices(len(q), max(1, _AT_ONCE // (2 * nv))):
        moved = integrate(model, q[part][:, None], aside).reshape(-1, model.nq)
        each = np.repeat(np.arange(len(q))[part], 2 * nv)
        found = _linearized(model, targets.of(each), moved)
        errors, pull = W * found[:, : len(W), -1], np.repeat(force[part], 2 * nv, axis=0)
        slope = np.einsum("nij,ni->nj", found[:, :, :-1], np.hstack([-errors, pull])).reshape(-1, 2, nv, nv)
        out[part] = (slope[:, 0] - slope[:, 1]) / (2.0 * _DIFFERENCE)
    return 0.5 * (out + np.swapaxes(out, 1, 2))
