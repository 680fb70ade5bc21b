"""Inputs whose equilibria bring frames to their targets, followed along stable equilibria.

    r(q, u) = ID(q, 0, 0) − f(q, u) − Aᵀ λ = 0,   c(q) = 0                                                (1)
    dq/du = S,   [K, −Aᵀ; A_q, 0] (S; ·) = (∂f/∂u; 0),   K = ∂r/∂q             implicit functions         (2)
    min ½ |δ + (1 − θ) u|²   with   J S δ = e,   low ≤ u + δ ≤ high             one step, at first θ = 0    (3)

f is the generalised force of the inputs: B u, or nonlinear with elastic tendons. Each step is cut to a given size of
the motion of the robot. Newton's method then solves (1) at the new inputs, from the prediction of S. The step is halved
if there is no equilibrium, or if it is unstable or far from the prediction. If (3) has no solution, the step of least
|J S δ − e| is used.
Source: equilibria as Mathew 2025 §3; J. Nocedal, S. J. Wright, Numerical Optimization, 2006, §18 (sequential quadratic
programming, here without the curvature of e).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import final

import numpy as np

from lissom.dynamics.actuation import input_response
from lissom.dynamics.configuration import difference, integrate, unit_quaternions
from lissom.dynamics.constraints import run_constraints
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.linearization import steady_velocity
from lissom.inverse.least_inputs import least_within
from lissom.inverse.targets import Targets, few_sizes, put_rows
from lissom.model.model import Model
from lissom.statics.newton import newton
from lissom.statics.newton_kernel import CONVERGED, Sought
from lissom.statics.stability import growing

_LONGEST, _SHORTEST = 0.5, 1e-4  # step, in units of the coordinates' natural sizes
_ASIDE = 0.5  # largest distance of an equilibrium from the prediction of S, over the step
_SETTLED, _LEAST = 1e-9, 1e-5  # steps that end a search, and that show that inputs are least
_PATIENCE = 20  # steps after which θ of (3) takes its next value
_KEPT = 0.0, 0.5, 0.9, 1.0  # values of θ; they rise, since (3) without curvature can keep the inputs in motion
_TOLERANCE, _ITERATIONS = 1e-11, 30  # of each equilibrium


@final
@dataclass
class Reach:
    """State of n searches.

    Fields:
        q, u, force: equilibria (n, nq), their inputs (n, nu) and forces of loops (n, n_rows). errors: (n, m) [rad, m].
        stable: whether the equilibria are stable (n,). iterations: steps (n,).
    """

    q: np.ndarray
    u: np.ndarray
    force: np.ndarray
    errors: np.ndarray
    stable: np.ndarray
    iterations: np.ndarray

    def rows(self, at: np.ndarray) -> Reach:
        """Copies of rows."""
        return Reach(*(getattr(self, field.name)[at].copy() for field in fields(self)))

    def take(self, rows: np.ndarray, other: Reach, better: np.ndarray) -> None:
        """Replace those of the rows for which `other` is better. Iterations are kept."""
        put_rows(self, ("q", "u", "force", "errors", "stable"), rows[better], other.rows(better))


@final
@dataclass(frozen=True)
class Inputs:
    """Limits of the inputs, and the units in which their sizes are compared."""

    low: np.ndarray
    high: np.ndarray
    unit: np.ndarray


def equilibria(
    model: Model, q: np.ndarray, u: np.ndarray, force: np.ndarray, t: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Equilibria near q (n, nq) under inputs (n, nu): q, forces of loops, and the masks of those that were found and of
    those that are stable."""
    sought = Sought(u, t, 1.0, np.zeros(model.n_rows), _TOLERANCE, _ITERATIONS)
    ends = newton(model, q, force, sought)
    at, push, _, why, stable = (np.array(part) for part in zip(*ends))
    there = why == CONVERGED
    for k in np.flatnonzero(there & ~stable):
        stable[k] = not len(growing(model, at[k], u[k], t, push[k]))
    return unit_quaternions(model, at), push, there, stable & there


def search_inputs(
    model: Model, targets: Targets, here: Reach, limits: Inputs, t: float, tolerance: float, most: int,
    report: Callable[[float], None],
) -> None:  # fmt: skip
    """Continue searches by (3) until the frames are at the targets with least inputs, or come no nearer, for at most
    `most` steps. `report` is called with the number of finished searches."""
    weights = targets.weights()
    radius, done = np.full(len(here.q), _LONGEST), ~here.stable
    for step in range(most):
        rows = np.flatnonzero(~done)
        report(len(done) - len(rows))
        if not len(rows):
            break
        S, G = _responses(model, targets, here, rows, t)
        kept = _KEPT[min(step // _PATIENCE, len(_KEPT) - 1)]
        wanted = _inputs_wanted(G, weights * here.errors[rows], here.u[rows], limits, weights, kept)
        moved = np.einsum("nij,nj->ni", S, wanted - here.u[rows])
        size = np.abs(moved / model.dofs.scale).max(1, initial=0.0)
        part = np.minimum(1.0, radius[rows] / np.maximum(size, 1e-300))
        there, near = _followed(model, targets, here, rows, part, moved, wanted, t)
        here.iterations[rows] += 1
        near &= there.stable
        shrinking = targets.away(there.errors) < targets.away(here.errors[rows])
        radius[rows] = np.where(near, np.where(shrinking, 2.0, 0.7), 0.5) * np.minimum(radius[rows], 2.0 * size + 1e-3)
        radius[rows] = np.minimum(radius[rows], _LONGEST)
        here.take(rows, there, near)
        settled = near & (part == 1.0) & (size < _SETTLED)
        hit = targets.away(here.errors[rows]) <= tolerance
        least = near & hit & (size <= _LEAST * (1.0 - kept) + kept // 1.0)
        done[rows] = settled | (~near & (radius[rows] < _SHORTEST)) | least


def _responses(
    model: Model, targets: Targets, here: Reach, rows: np.ndarray, t: float
) -> tuple[np.ndarray, np.ndarray]:
    """S of (2) and J S, with rows weighted like the errors."""
    S = few_sizes(lambda _, q, u, force: response(model, q, u, force, t), rows, here.q, here.u, here.force)
    J = few_sizes(lambda at, q, e: targets.of(at).jacobian(model, q, e), rows, here.q, here.errors)
    return S, targets.weights()[:, None] * J @ S


def response(model: Model, q: np.ndarray, u: np.ndarray, force: np.ndarray, t: float) -> np.ndarray:
    """S of (2), shape (n, nv, nu)."""
    zero = np.tile(steady_velocity(model), (len(q), 1))
    if model.calls_python and len(q) > 1:
        each = (response(model, q[k : k + 1], u[k : k + 1], force[k : k + 1], t) for k in range(len(q)))
        return np.concatenate(list(each))
    K = residual_derivatives(model, q, zero, np.zeros_like(zero), u, t, 1.0, force)[0]
    B = input_response(model, q, u)
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
    try:
        if model.n_rows:  # rows may depend on each other
            raise np.linalg.LinAlgError
        found = np.linalg.solve(K, B)
    except np.linalg.LinAlgError:
        found = np.linalg.pinv(K, rcond=1e-12) @ B
    return scale[:, None] * found[:, : model.nv]


def _inputs_wanted(
    G: np.ndarray, e: np.ndarray, u: np.ndarray, limits: Inputs, weights: np.ndarray, theta: float
) -> np.ndarray:
    """u + δ of (3), shape (n, nu)."""
    counted, unit, x = weights > 0.0, limits.unit, theta * u / limits.unit
    G, low, high = G[:, counted] * unit, limits.low / unit, limits.high / unit
    right = e[:, counted] + (1.0 - theta) * np.einsum("nij,nj->ni", G, u / unit)
    return np.clip(unit * (x + least_within(G, right, low - x, high - x)), limits.low, limits.high)


def _followed(
    model: Model, targets: Targets, here: Reach, rows: np.ndarray, part: np.ndarray, moved: np.ndarray,
    wanted: np.ndarray, t: float,
) -> tuple[Reach, np.ndarray]:  # fmt: skip
    """Equilibria after parts of the steps, and the mask of those near the prediction of S."""
    u = here.u[rows] + part[:, None] * (wanted - here.u[rows])
    foretold = integrate(model, here.q[rows], part[:, None] * moved)
    n = len(rows)
    found = few_sizes(
        lambda _, q, u, force: np.column_stack(equilibria(model, q, u, force, t)),
        np.arange(n), foretold, u, here.force[rows],
    )  # fmt: skip
    q, force, there, stable = np.split(found, np.cumsum([model.nq, model.n_rows, 1]), axis=1)
    q[there[:, 0] == 0.0] = here.q[rows][there[:, 0] == 0.0]
    aside = np.abs(difference(model, foretold, q) / model.dofs.scale).max(1, initial=0.0)
    step = np.abs(part[:, None] * moved / model.dofs.scale).max(1, initial=0.0)
    near = (there[:, 0] > 0.0) & (aside <= _ASIDE * step + 1e-6)
    errors = few_sizes(lambda at, q: targets.of(rows).of(at).errors(model, q), np.arange(n), q)
    return Reach(q, u, force, errors, stable[:, 0] > 0.0, here.iterations[rows]), near
