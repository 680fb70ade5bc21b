"""Searches of inverse kinematics for batches: by coordinates, and by inputs along stable equilibria.

Coordinates that bring frames to their targets are found by bounded least squares on the manifold:

    min ½ |Ĵ δ − W e|² + ½ μ |δ|²   with   A δ = −c,   low ≤ q ⊕ δ ≤ high                                 (1)
    d = projection of Ĵᵀ W e on the directions that limits and loops allow;  d = 0 at an optimum           (2)
    Ĥ = ∂(−Ĵᵀ W e + Aᵀ λ)/∂q,   λ the constraint forces that minimise |−Ĵᵀ W e + Aᵀ λ|                      (3)

W are the weights of the errors e, Ĵ = W J is their Jacobian, A and c are the constraint Jacobian and the residuals of
loops, and δ is in natural sizes of the coordinates. The damping μ decreases after a step that reduces the errors,
otherwise it increases. If targets are out of reach, (1) alone converges slowly. After several slow steps, ĴᵀĴ is
replaced by (3) with the absolute values of its eigenvalues. The search ends if the frames are at their targets, or if
(2) is zero to rounding.

Inputs whose equilibria bring frames to their targets are followed along stable equilibria:

    r(q, u) = ID(q, 0, 0) − f(q, u) − Aᵀ λ = 0,   c(q) = 0                                                (4)
    dq/du = S,   [K, −Aᵀ; A_q, 0] (S; ·) = (∂f/∂u; 0),   K = ∂r/∂q             implicit functions         (5)
    min ½ |δ + (1 − θ) u|²   with   J S δ = e,   low ≤ u + δ ≤ high             one step, at first θ = 0    (6)

f is the generalised force of the inputs: B u, or a nonlinear function with elastic tendons. The length of each step is
limited. Newton's method solves (4) at the new inputs, starting from the prediction by S. The step is halved if there is
no equilibrium, or if it is unstable or far from the prediction. If (6) has no solution, the step with least |J S δ − e|
is used.

Both searches need vectors of least norm within limits:

    min ½ zᵀz   with   G z = b,   low ≤ z ≤ high                                                          (7)
    z = clip(Gᵀ λ, low, high)             necessary for (7), with the multipliers λ of G z = b             (8)
    z = G⁺ b + N y,   min |y|   with   H y ≥ h    by non-negative least squares, G N = 0                   (9)

An active-set method finds the active limits by (8): violated limits become active; if there are none, the limit that
violates (8) most is released. If this does not end, (9) is solved. If G z = b has no solution within the limits, the
bounded least-squares problem is solved.

Source: Y. Nakamura, H. Hanafusa, J. Dyn. Syst. Meas. Control 108, 1986, for robots; J. Nocedal, S. J. Wright, Numerical
Optimization, 2006, §10.3 (Levenberg and Marquardt), §12.3 (the conditions of an optimum), §16.5 (active sets) and §18
(sequential quadratic programming, here without the curvature of e); equilibria as Mathew 2025 §3; for (9) C. L. Lawson,
R. J. Hanson, Solving Least Squares Problems, 1974, §23.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import final

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import lsq_linear, nnls

from lissom.dynamics.actuation import input_response
from lissom.dynamics.configuration import difference, integrate, unit_quaternions
from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.linearization import steady_velocity
from lissom.inverse.targets import Targets, on_padded_rows, replace_rows
from lissom.launch.workspace import row_slices
from lissom.model.model import Model
from lissom.statics.blas_threads import one_thread
from lissom.statics.newton import newton
from lissom.statics.newton_kernel import CONVERGED, Sought
from lissom.statics.stability import unstable_modes

# -- by coordinates ---------------------------------------------------------------------------------------------------

_LONGEST = 0.5  # longest step, in natural sizes of the coordinates
_CLOSED = 1e-10  # largest residual of a closed loop [rad, m]
_CLOSINGS, _RANK = 10, 1e-9  # most steps to close loops, and relative size of singular values of A that count as zero
_LOOPS = 1e3  # weight of residuals of loops in the cost
_LEAST_DAMPING, _MOST_DAMPING = 1e-14, 1e6  # damping μ over |Ĵ|²
_SLOW = 0.25  # a step is slow if more than this fraction of the cost remains
_TURNS = 20, 8  # numbers of slow steps by (1) and by (3), which alternate
_FAR = 0.1  # |d| over |Ĵ| |W e| below which (3) is used
_OPTIMAL = 1e-12  # |d| over |Ĵ| |W e| at an optimum
_ROUNDING = 1e-13  # relative rounding error of the cost, and of coordinates at a limit
_DIFFERENCE, _AT_ONCE = 1e-5, 4096  # step of the differences (3), and number of configurations in one launch


@final
@dataclass(frozen=True)
class Bounds:
    """Low and high limits of the coordinates in the order of v (infinite for none), and the mask of coordinates that
    may move."""

    low: np.ndarray
    high: np.ndarray
    moves: np.ndarray

    def kept(self, model: Model, q: np.ndarray) -> np.ndarray:
        """q (n, nq) clipped to the limits. A coordinate that differs from a limit by rounding only is set to the
        limit."""
        q, plain = q.copy(), np.flatnonzero(model.dofs.q >= 0)
        at, low, high = model.dofs.q[plain], self.low[plain], self.high[plain]
        slack = _ROUNDING * model.dofs.scale[plain]
        q[:, at] = np.where(q[:, at] <= low + slack, low, np.where(q[:, at] >= high - slack, high, q[:, at]))
        return q

    def room(self, model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest allowed step (n, nv) from q (n, nq), in natural sizes."""
        plain = np.flatnonzero(model.dofs.q >= 0)
        low, high = np.full((len(q), model.nv), -np.inf), np.full((len(q), model.nv), np.inf)
        here, scale = q[:, model.dofs.q[plain]], model.dofs.scale[plain]
        low[:, plain] = (np.minimum(self.low[plain], here) - here) / scale
        high[:, plain] = (np.maximum(self.high[plain], here) - here) / scale
        return np.where(self.moves, low, 0.0), np.where(self.moves, high, 0.0)

    def active(self, model: Model, q: np.ndarray) -> np.ndarray:
        """−1 for coordinates of q (n, nq) at their low limits, 1 at their high limits, otherwise 0; shape (n, nv)."""
        plain = np.flatnonzero((model.dofs.q >= 0) & self.moves)
        out = np.zeros((len(q), model.nv), dtype=int)
        here = q[:, model.dofs.q[plain]]
        out[:, plain] = np.where(here >= self.high[plain], 1, np.where(here <= self.low[plain], -1, 0))
        return out


@final
@dataclass
class CoordinateSearch:
    """State of n searches.

    Fields:
        q: configurations (n, nq).
        errors: errors (n, m).
        gaps: residuals of loops (n, n_rows).
        J, A: Ĵ (n, m, nv) and A (n, n_rows, nv), in natural sizes.
        descent: d of (2) (n, nv).
        iterations: number of steps (n,).
    """

    q: np.ndarray
    errors: np.ndarray
    gaps: np.ndarray
    J: np.ndarray
    A: np.ndarray
    descent: np.ndarray
    iterations: np.ndarray

    def cost(self, weights: np.ndarray) -> np.ndarray:
        """The cost that (1) reduces, shape (n,)."""
        return ((weights * self.errors) ** 2).sum(1) + _LOOPS**2 * (self.gaps**2).sum(1)

    @property
    def optimality(self) -> np.ndarray:
        """Largest absolute entry of (2), shape (n,)."""
        return np.abs(self.descent).max(1, initial=0.0)

    def found(self, targets: Targets, tolerance: float) -> np.ndarray:
        """Mask (n,) of searches with all frames at their targets and all loops closed."""
        return (targets.away(self.errors) <= tolerance) & self._closed()

    def settled(self, weights: np.ndarray) -> np.ndarray:
        """Mask (n,) of searches at an optimum, to rounding."""
        size = np.linalg.norm(self.J, axis=(1, 2)) * np.linalg.norm(weights * self.errors, axis=1)
        return (self.optimality <= _OPTIMAL * size) & self._closed()

    def _closed(self) -> np.ndarray:
        return np.abs(self.gaps).max(1, initial=0.0) <= _CLOSED

    def rows(self, at: np.ndarray) -> CoordinateSearch:
        """Copies of rows."""
        return CoordinateSearch(*(getattr(self, field.name)[at] for field in fields(self)))

    def take(self, rows: np.ndarray, other: CoordinateSearch, better: np.ndarray) -> None:
        """Replace the rows for which `other` is better. Iterations are kept."""
        names = [field.name for field in fields(self) if field.name != "iterations"]
        replace_rows(self, names, rows[better], other.rows(better))


def begin_search(model: Model, targets: Targets, q: np.ndarray, bounds: Bounds) -> CoordinateSearch:
    """Searches at configurations (n, nq), moved into the limits and onto the loops."""
    q = _closed(model, bounds.kept(model, q), bounds)
    return CoordinateSearch(q, *_evaluated(model, targets, q, np.arange(len(q)), bounds), np.zeros(len(q), dtype=int))


def search_coordinates(
    model: Model, targets: Targets, here: CoordinateSearch, bounds: Bounds, tolerance: float, most: int,
    report: Callable[[float], None],
) -> None:  # fmt: skip
    """Continue searches by (1) until their frames are at the targets or they are at an optimum, for at most `most`
    steps. `report` is called with the number of finished searches."""
    weights, n = targets.weights(), len(here.q)
    damping, stuck, slow = np.full((2, n), 1e-6), np.zeros(n, dtype=bool), np.zeros(n, dtype=int)
    for _ in range(most):
        there = here.found(targets, tolerance) | here.settled(weights)
        report(int(there.sum()))
        rows = np.flatnonzero(~(stuck | there))
        if not len(rows):
            break
        old = here.rows(rows)
        kind = ((slow[rows] % sum(_TURNS) >= _TURNS[0]) & _needs_curvature(old, weights)).astype(int)
        step = _steps(model, targets.of(rows), old, damping[kind, rows], kind == 1, bounds)
        size = np.abs(step).max(1, initial=0.0)
        step *= np.minimum(1.0, _LONGEST / np.maximum(size, 1e-300))[:, None]
        moved = here.q.copy()
        moved[rows] = _closed(model, bounds.kept(model, integrate(model, old.q, step * model.dofs.scale)), bounds)
        new = CoordinateSearch(moved[rows], *_evaluated(model, targets, moved, rows, bounds), old.iterations)
        was, now = old.cost(weights), new.cost(weights)
        level = (now <= was * (1.0 + _ROUNDING)) & (new.optimality < old.optimality)
        better = (now < was * (1.0 - _ROUNDING)) | level
        damping[kind, rows] = np.clip(damping[kind, rows] * np.where(better, 0.1, 10.0), _LEAST_DAMPING, None)
        slow[rows] = np.where(now > _SLOW * was, slow[rows] + 1, 0)
        here.iterations[rows] += 1
        stuck[rows] = (damping[:, rows] > _MOST_DAMPING).all(axis=0)
        here.take(rows, new, better)


def _evaluated(
    model: Model, targets: Targets, q: np.ndarray, rows: np.ndarray, bounds: Bounds
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Errors e, residuals c of loops, Ĵ, A and d of (2) at q[rows]."""
    found = on_padded_rows(lambda at, q: _linearized(model, targets.of(at), q), rows, q)
    m = found.shape[1] - model.n_rows
    e, J, gaps, A = found[:, :m, -1], found[:, :m, :-1], found[:, m:, -1], found[:, m:, :-1]
    return e, gaps, J, A, _descent(J, targets.weights() * e, A, *bounds.room(model, q[rows]))


def _linearized(model: Model, targets: Targets, q: np.ndarray) -> np.ndarray:
    """The linear system [Ĵ, e; A, c] of a step, shape (n, m + n_rows, nv + 1)."""
    errors = targets.errors(model, q)
    J = targets.weights()[:, None] * targets.jacobian(model, q, errors) * model.dofs.scale
    seen = np.concatenate([J, errors[:, :, None]], axis=2)
    return np.concatenate([seen, _loop_rows(model, q)], axis=1) if model.n_rows else seen


def _descent(J: np.ndarray, e: np.ndarray, A: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """d of (2), shape (n, nv): the vector nearest to Ĵᵀ W e among the directions that keep loops closed and limits
    satisfied."""
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
    """Configurations (n, nq) with closed loops. Each step is the shortest one; a long motion along the loops is
    possible."""
    for _ in range(_CLOSINGS if model.n_rows else 0):
        found = on_padded_rows(lambda _, q: _loop_rows(model, q), np.arange(len(q)), q)
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
    """[A, c] with A in natural sizes, shape (n, n_rows, nv + 1)."""
    w, lead = run_constraints(model, q)
    A = row_results(model, w, "A_q", lead) * model.dofs.scale
    return np.concatenate([A, w.host["gap"][:, :, None]], axis=2)


def _independent(A: np.ndarray, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal or zero rows R and right sides b, such that R δ = b gives the least-squares solution of A δ = −c."""
    U, size, V = np.linalg.svd(A, full_matrices=False)
    kept = size > _RANK * size.max(axis=1, initial=0.0, keepdims=True)
    right = -np.einsum("nji,nj->ni", U, gaps) / np.where(kept, size, 1.0)
    return V * kept[:, :, None], right * kept


def _steps(
    model: Model, targets: Targets, here: CoordinateSearch, mu: np.ndarray, slow: np.ndarray, bounds: Bounds
) -> np.ndarray:
    """δ of (1), shape (n, nv); for slow searches with the curvature (3)."""
    low, high = bounds.room(model, here.q)
    e, step = targets.weights() * here.errors, np.zeros((len(here.q), model.nv))
    rows, right = _independent(here.A * bounds.moves, here.gaps)
    for which, curved in ((np.flatnonzero(~slow), False), (np.flatnonzero(slow), True)):
        if len(which):
            J, left = here.J[which], e[which]
            if curved:
                J, left = _with_curvature(model, targets.of(which), here.rows(which), bounds)
            loops = rows[which], right[which]
            step[which] = _bounded(J * bounds.moves, left, *loops, mu[which], low[which], high[which])
    return step


def _needs_curvature(here: CoordinateSearch, weights: np.ndarray) -> np.ndarray:
    """Whether d of (2) is small compared with |Ĵ| |W e|, so that the curvature of the errors matters; shape (n,)."""
    e = weights * here.errors
    size = np.linalg.norm(here.J, axis=(1, 2)) * np.linalg.norm(e, axis=1)
    return here.optimality <= _FAR * size


def _at_limits(here: CoordinateSearch, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Mask (n, nv) of the coordinates that stay: pushed against a limit, or not allowed to move."""
    return ((low == 0.0) | (high == 0.0)) & (here.descent == 0.0)


def _bounded(
    J: np.ndarray, e: np.ndarray, A: np.ndarray, right: np.ndarray, mu: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """δ of (1) with A δ = right, shape (n, nv). Limits are considered only if the solution without them violates
    one."""
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


def _with_curvature(
    model: Model, targets: Targets, here: CoordinateSearch, bounds: Bounds
) -> tuple[np.ndarray, np.ndarray]:
    """Rows R and right sides b with RᵀR = |Ĥ| of (3), which replace Ĵ and W e in (1); shapes (n, nv, nv) and (n, nv).
    Coordinates at their limits are excluded."""
    low, high = bounds.room(model, here.q)
    push = np.einsum("nij,ni->nj", here.J, targets.weights() * here.errors)
    fixed = _at_limits(here, low, high)
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
    """Ĥ of (3) by central differences, symmetric, shape (n, nv, nv)."""
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


# -- by inputs along stable equilibria --------------------------------------------------------------------------------

_SHORTEST = 1e-4  # shortest step, in natural sizes of the coordinates
_PREDICTED = 0.5  # largest distance of an equilibrium from the prediction by S, relative to the step
_SETTLED_STEP, _LEAST_STEP = 1e-9, 1e-5  # a shorter step ends a search; a shorter step shows that inputs are least
_STEPS_PER_THETA = 20  # steps after which θ of (6) takes its next value
_THETAS = 0.0, 0.5, 0.9, 1.0  # values of θ; they increase, because (6) has no curvature and may not converge
_TOLERANCE, _ITERATIONS = 1e-11, 30  # tolerance, and largest number of iterations, of each equilibrium


@final
@dataclass
class InputSearch:
    """State of n searches.

    Fields:
        q: equilibria (n, nq).
        u: their inputs (n, nu).
        force: constraint forces (n, n_rows).
        errors: errors (n, m) [rad, m].
        stable: whether the equilibria are stable (n,).
        iterations: number of steps (n,).
        rest: whether q is an equilibrium (n,).
        reason: why a search failed (n,), if known.
    """

    q: np.ndarray
    u: np.ndarray
    force: np.ndarray
    errors: np.ndarray
    stable: np.ndarray
    iterations: np.ndarray
    rest: np.ndarray
    reason: np.ndarray

    def rows(self, at: np.ndarray) -> InputSearch:
        """Copies of rows."""
        return InputSearch(*(getattr(self, field.name)[at].copy() for field in fields(self)))

    def take(self, rows: np.ndarray, other: InputSearch, better: np.ndarray) -> None:
        """Replace the rows for which `other` is better. Iterations are kept."""
        replace_rows(self, ("q", "u", "force", "errors", "stable", "rest"), rows[better], other.rows(better))


@final
@dataclass(frozen=True)
class InputLimits:
    """Limits of the inputs, and the units in which their sizes are compared."""

    low: np.ndarray
    high: np.ndarray
    unit: np.ndarray


def equilibria(
    model: Model, q: np.ndarray, u: np.ndarray, force: np.ndarray, t: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Equilibria near q (n, nq) under inputs (n, nu): q, constraint forces, the mask of found equilibria, and the mask
    of stable ones."""
    sought = Sought(u, t, 1.0, np.zeros(model.n_rows), _TOLERANCE, _ITERATIONS)
    ends = newton(model, q, force, sought)
    at, push, _, why, stable = (np.array(part) for part in zip(*ends))
    there = why == CONVERGED
    for k in np.flatnonzero(there & ~stable):
        stable[k] = unstable_modes(model, at[k], u[k], t, push[k]) == 0
    return unit_quaternions(model, at), push, there, stable & there


def search_inputs(
    model: Model, targets: Targets, here: InputSearch, limits: InputLimits, t: float, tolerance: float, most: int,
    report: Callable[[float], None],
) -> None:  # fmt: skip
    """Continue searches by (6) until the frames are at the targets with least inputs, or come no nearer, for at most
    `most` steps. `report` is called with the number of finished searches."""
    weights = targets.weights()
    radius, done = np.full(len(here.q), _LONGEST), ~here.stable
    for step in range(most):
        rows = np.flatnonzero(~done)
        report(len(done) - len(rows))
        if not len(rows):
            break
        S, G = _responses(model, targets, here, rows, t)
        theta = _THETAS[min(step // _STEPS_PER_THETA, len(_THETAS) - 1)]
        wanted = _least_inputs(G, weights * here.errors[rows], here.u[rows], limits, weights, theta)
        moved = np.einsum("nij,nj->ni", S, wanted - here.u[rows])
        size = np.abs(moved / model.dofs.scale).max(1, initial=0.0)
        part = np.minimum(1.0, radius[rows] / np.maximum(size, 1e-300))
        there, near = _equilibria_after(model, targets, here, rows, part, moved, wanted, t)
        here.iterations[rows] += 1
        near &= there.stable
        shrinking = targets.away(there.errors) < targets.away(here.errors[rows])
        radius[rows] = np.where(near, np.where(shrinking, 2.0, 0.7), 0.5) * np.minimum(radius[rows], 2.0 * size + 1e-3)
        radius[rows] = np.minimum(radius[rows], _LONGEST)
        here.take(rows, there, near)
        settled = near & (part == 1.0) & (size < _SETTLED_STEP)
        hit = targets.away(here.errors[rows]) <= tolerance
        least = near & hit & (size <= _LEAST_STEP * (1.0 - theta) + theta // 1.0)
        done[rows] = settled | (~near & (radius[rows] < _SHORTEST)) | least


def _responses(
    model: Model, targets: Targets, here: InputSearch, rows: np.ndarray, t: float
) -> tuple[np.ndarray, np.ndarray]:
    """S of (5), and J S with rows weighted like the errors."""
    S = on_padded_rows(lambda _, q, u, force: response(model, q, u, force, t), rows, here.q, here.u, here.force)
    J = on_padded_rows(lambda at, q, e: targets.of(at).jacobian(model, q, e), rows, here.q, here.errors)
    return S, targets.weights()[:, None] * J @ S


def response(model: Model, q: np.ndarray, u: np.ndarray, force: np.ndarray, t: float) -> np.ndarray:
    """S of (5), shape (n, nv, nu)."""
    zero = np.tile(steady_velocity(model), (len(q), 1))
    if model.calls_python and len(q) > 1:
        each = (response(model, q[k : k + 1], u[k : k + 1], force[k : k + 1], t) for k in range(len(q)))
        return np.concatenate(list(each))
    K = residual_derivatives(model, q, zero, np.zeros_like(zero), u, t, 1.0, force)[0]
    B = input_response(model, q, zero, u, t)
    B[:, model.prescribed.dof] = 0.0
    scale = model.dofs.scale
    K, B = scale[:, None] * K * scale, scale[:, None] * B
    stiff = np.maximum(np.abs(K).max(axis=(1, 2), keepdims=True), 1e-300)
    K, B = K / stiff, B / stiff
    if model.n_rows:
        w, lead = run_constraints(model, q)
        A, A_q = (row_results(model, w, name, lead) * scale for name in ("A", "A_q"))
        A[..., model.prescribed.dof] = 0.0
        K = np.block([[K, -np.swapaxes(A, 1, 2)], [A_q, np.zeros((len(q), model.n_rows, model.n_rows))]])
        B = np.concatenate([B, np.zeros((len(q), model.n_rows, model.nu))], axis=1)
    with one_thread(K.shape[1]):
        try:
            if model.n_rows:  # rows may depend on each other
                raise np.linalg.LinAlgError
            found = np.linalg.solve(K, B)
        except np.linalg.LinAlgError:
            found = np.linalg.pinv(K, rcond=1e-12) @ B
    return scale[:, None] * found[:, : model.nv]


def units_by_kind(model: Model, size: np.ndarray) -> np.ndarray:
    """The median of `size` (nu,) over the inputs of the same kind, shape (nu,)."""
    kinds = []
    for j in range(model.nu):
        owners = [a for a, gain in zip(model.channels.actuator, model.channels.gain[:, j]) if gain]
        kinds.append(tuple(sorted({f"{type(a).__name__} {getattr(a, 'is_elastic', '')}" for a in owners})))
    return np.array([np.median([s for s, other in zip(size, kinds) if other == kind]) for kind in kinds])


def _least_inputs(
    G: np.ndarray, e: np.ndarray, u: np.ndarray, limits: InputLimits, weights: np.ndarray, theta: float
) -> np.ndarray:
    """u + δ of (6), shape (n, nu)."""
    counted, unit, x = weights > 0.0, limits.unit, theta * u / limits.unit
    G, low, high = G[:, counted] * unit, limits.low / unit, limits.high / unit
    right = e[:, counted] + (1.0 - theta) * np.einsum("nij,nj->ni", G, u / unit)
    return np.clip(unit * (x + least_within(G, right, low - x, high - x)), limits.low, limits.high)


def _equilibria_after(
    model: Model, targets: Targets, here: InputSearch, rows: np.ndarray, part: np.ndarray, moved: np.ndarray,
    wanted: np.ndarray, t: float,
) -> tuple[InputSearch, np.ndarray]:  # fmt: skip
    """Equilibria after the fractions `part` of the steps, and the mask of equilibria near the prediction by the
    sensitivity S."""
    u = here.u[rows] + part[:, None] * (wanted - here.u[rows])
    predicted = integrate(model, here.q[rows], part[:, None] * moved)
    n = len(rows)
    found = on_padded_rows(
        lambda _, q, u, force: np.column_stack(equilibria(model, q, u, force, t)),
        np.arange(n), predicted, u, here.force[rows],
    )  # fmt: skip
    q, force, there, stable = np.split(found, np.cumsum([model.nq, model.n_rows, 1]), axis=1)
    q[there[:, 0] == 0.0] = here.q[rows][there[:, 0] == 0.0]
    aside = np.abs(difference(model, predicted, q) / model.dofs.scale).max(1, initial=0.0)
    step = np.abs(part[:, None] * moved / model.dofs.scale).max(1, initial=0.0)
    near = (there[:, 0] > 0.0) & (aside <= _PREDICTED * step + 1e-6)
    errors = on_padded_rows(lambda at, q: targets.of(rows).of(at).errors(model, q), np.arange(n), q)
    masks = (mask[:, 0] > 0.0 for mask in (stable, there))
    stable, there = masks
    return InputSearch(q, u, force, errors, stable, here.iterations[rows], there, here.reason[rows]), near


# -- numbers of least size within limits ------------------------------------------------------------------------------

_EXACT, _ROUGH = 1e-10, 1e-7  # relative tolerance of z, and of active limits taken from (9)
_SMALL = 1e-6  # weight of z relative to G z − b if (7) has no solution


def least_within(G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """z (n, k) of (7) for each G (n, m, k). If there is none: the z within the limits with G z nearest to b."""
    size = np.abs(G).max(axis=(1, 2), initial=0.0)
    size = np.where(size > 0.0, size, 1.0)
    G, b = G / size[:, None, None], b / size[:, None]
    near = _EXACT * (1.0 + np.abs(b).max(axis=1, initial=0.0))
    z, found = _active_set(G, b, low, high, np.zeros(low.shape, dtype=int))
    for i in np.flatnonzero(~found | (_mismatch(G, b, z) > near)):
        z[i] = _row_within(G[i], b[i], low[i], high[i], near[i])
    return z


def _mismatch(G: np.ndarray, b: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Largest absolute entries of G z − b, shape (n,)."""
    return np.abs(np.einsum("nij,nj->ni", G, z) - b).max(axis=1, initial=0.0)


def _row_within(G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray, near: float) -> np.ndarray:
    """z (k,) of one row by (9), refined with its active limits. If there is none: the z within the limits with G z
    nearest to b."""
    z = _least_distance(G, b, low, high)
    if z is None or float(_mismatch(G[None], b[None], z[None])[0]) > _ROUGH:
        room = np.where(high > low, high, np.nextafter(high, np.inf))  # SciPy requires low < high
        tall = np.vstack([G, _SMALL * np.eye(len(low))])
        found = lsq_linear(tall, np.concatenate([b, np.zeros(len(low))]), (low, room), method="bvls")
        return np.clip(found.x, low, high)
    at = np.where(z >= high - _ROUGH, 1, 0) - np.where(z <= low + _ROUGH, 1, 0)
    sharp, good = _active_set(G[None], b[None], low[None], high[None], at[None])
    return sharp[0] if good[0] and float(_mismatch(G[None], b[None], sharp)[0]) <= near else z


def _least_distance(G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray | None:
    """z (k,) of (9); None if there is none."""
    first, N = np.linalg.pinv(G, rcond=1e-12) @ b, null_space(G, rcond=1e-12)
    below, above = np.isfinite(low), np.isfinite(high)
    if not (below.any() or above.any()):  # SciPy aborts if H is empty
        return first
    H = np.vstack([N[below], -N[above]])
    h = np.concatenate([(low - first)[below], (first - high)[above]])
    aim = np.append(np.zeros(N.shape[1]), 1.0)
    matrix = np.vstack([H.T, h])
    try:
        left = matrix @ nnls(matrix, aim)[0] - aim
    except RuntimeError:  # too many iterations
        return None
    if abs(left[-1]) < _EXACT:
        return None
    return np.clip(first - N @ (left[:-1] / left[-1]), low, high)


def _active_set(
    G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """z (n, k) that satisfies (8), by an active-set method, and the mask of rows for which it was found. `at` (n, k)
    holds the active limits at the start: −1 low, 0 none, 1 high."""
    at, z, done = at.copy(), np.zeros(low.shape), np.zeros(len(low), dtype=bool)
    tiny = _EXACT * (1.0 + np.abs(np.where(np.isfinite(low), low, 0.0)).max(axis=1, initial=0.0))
    for _ in range(3 * at.shape[1] + 3):
        rows = np.flatnonzero(~done)
        if not len(rows):
            break
        z[rows], at[rows], done[rows] = _exchange(G[rows], b[rows], low[rows], high[rows], at[rows], tiny[rows, None])
    return np.clip(z, low, high), done


def _exchange(
    G: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray, at: np.ndarray, tiny: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """z for the given active limits, the next active limits, and whether these are the same."""
    free = at == 0
    fixed = np.where(at < 0, low, np.where(at > 0, high, 0.0))
    inverse = np.linalg.pinv(G * free[:, None, :], rcond=1e-12)
    own = np.einsum("nji,ni->nj", inverse, b - np.einsum("nij,nj->ni", G, fixed))
    z = np.where(free, own, fixed)
    passed = np.where(free & (z > high + tiny), 1, 0) - np.where(free & (z < low - tiny), 1, 0)
    y = np.einsum("nij,ni->nj", G, np.einsum("nji,nj->ni", inverse, np.where(free, z, 0.0)))
    against = np.where(at < 0, y - low, np.where(at > 0, high - y, 0.0))
    worst = np.argmax(against, axis=1)
    wrong = against[np.arange(len(at)), worst] > tiny[:, 0]
    passes = passed.any(axis=1)
    after = at + passed
    released = np.flatnonzero(~passes & wrong)
    after[released, worst[released]] = 0
    return z, after, ~passes & ~wrong
