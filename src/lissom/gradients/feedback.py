"""Motions under state feedback that is evaluated once a step, and their derivatives with respect to the gains.

The input u_k = f(t_k, q_k, v_k, g) is constant during step k. Let A and B be the matrices of each step, x = (δq, δv,
δa, δâ) the increment of the state before it, with the increments of anchors if contacts stick, and F the derivatives of
f. Then

    x_k+1 = A_k x_k + B_k δu_k,   δu_k = F_x x_k + F_g δg                                                 (1)

The derivatives λ of a function of the motion with respect to x, and those with respect to g, follow backwards:

    μ_k = B_kᵀ λ_k+1,   λ_k = A_kᵀ λ_k+1 + F_xᵀ μ_k + (∂L/∂x)_k,   ∂L/∂g = Σ F_gᵀ μ_k                          (2)

The initial acceleration also depends on u_0, and the initial anchors depend on the initial state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.errors import ModelError, ShapeError, renamed
from lissom.gradients.rollout import Rollout, rollout
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.simulation.inputs import called, checked_row
from lissom.stepping.schemes import Scheme

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Law = Callable[[float, np.ndarray, np.ndarray, np.ndarray], Any]


@final
@formatting.in_one_line
@dataclass(frozen=True)
class FeedbackGradient:
    """Derivatives of a function of a motion under feedback.

    Fields:
        gains: with respect to the gains, in their shape.
        q0, v0: with respect to the initial state, q0 in the tangent space of `integrate`, (nv,).
    """

    gains: np.ndarray
    q0: np.ndarray
    v0: np.ndarray


@renamed(scheme="method")
def feedback_rollout(
    model: Model,
    law: Law,
    gains: ArrayLike,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    *,
    dt: float,
    steps: int,
    method: str | Scheme = "sdirk",
    tolerance: float = 1e-11,
) -> Rollout:
    """Motion of a robot under feedback u = law(t, q, v, gains), evaluated once a step and constant during it.

    Args:
        law: function of (t, q, v, gains) that returns u, shape (nu,).
        gains: an array of any shape, in the units of the law.
        q0, v0, dt [s], method, tolerance: as `rollout`.
        steps: number of steps.
    Returns:
        Rollout, whose `u` contains the results of the law.
    Raises:
        ConvergenceError, ModelError, ShapeError: as rollout, or for a wrong result of the law.
    """
    nu, numbers = model.nu, np.asarray(gains, dtype=np.float64)
    u = np.zeros((checks.integer(steps, "steps", least=1), nu))
    options: dict[str, Any] = {"dt": dt, "method": method, "tolerance": tolerance}
    first = rollout(model, q0, v0, u[:1], **options)
    if first.lead:
        raise ShapeError(f"q0, v0: expected a single motion, got a batch of shape {first.lead}")
    u[0] = _input(model, law, 0.0, first.q[0], first.v[0], numbers)
    first = rollout(model, q0, v0, u[:1], **options)
    path = first.path
    for k in range(1, steps):
        begin = path.state(-1)
        u[k] = _input(model, law, dt * k, begin["q"][0], begin["v"][0], numbers)
        path = first.stepping.run(model, begin, u[None, k : k + 1], k)
    return rollout(model, q0, v0, u, **options)


def feedback_gradient(
    motion: Rollout,
    gains: ArrayLike,
    derivatives: Law,
    dL_dq: ArrayLike | None = None,
    dL_dv: ArrayLike | None = None,
    dL_du: ArrayLike | None = None,
) -> FeedbackGradient:
    """Derivatives of a function L of a motion under feedback with respect to gains and initial state, in closed loop.

    Args:
        motion: result of `feedback_rollout`.
        gains: gains of the motion.
        derivatives: function of (t, q, v, gains) that returns ∂u/∂q, in the tangent space of `integrate`, (nu, nv),
            ∂u/∂v, (nu, nv), and ∂u/∂gains, (nu, *shape of the gains).
        dL_dq, dL_dv: derivatives of L with respect to q, in the tangent space of `integrate`, and v at all times,
            (n, nv). None is zero.
        dL_du: derivatives of L with respect to the inputs of each step, (steps, nu). None is zero.
    Returns:
        FeedbackGradient, in the unit of L [per unit of each].
    Raises:
        ModelError: a batch, or a motion with every > 1. ShapeError: the argument, the expected and the received shape.
    Accuracy: exact derivative of the steps, to rounding. Cost: the matrices of each step, for any number of gains.
    """
    model, nv, numbers = motion.common, motion.common.nv, np.asarray(gains, dtype=np.float64)
    if motion.lead:
        raise ModelError(f"motion: must be a single one (got a batch of shape {motion.lead})")
    A, B = motion.step_matrices()
    times, steps = len(motion.t), motion.steps
    shapes = {"dL_dq": (dL_dq, (times, nv)), "dL_dv": (dL_dv, (times, nv)), "dL_du": (dL_du, (steps, model.nu))}
    by_q, by_v, by_u = (_checked_derivatives(name, x, shape) for name, (x, shape) in shapes.items())
    state, by_gains = np.zeros(A.shape[-1]), np.zeros(numbers.size)
    s = motion.start_derivatives
    for k in reversed(range(steps)):
        state[:nv], state[nv : 2 * nv] = state[:nv] + by_q[k + 1], state[nv : 2 * nv] + by_v[k + 1]
        mu = B[k].T @ state + by_u[k]
        state = A[k].T @ state  # (2)
        if k == 0:
            onto_a = (state[2 * nv : 3 * nv] + state[3 * nv : 4 * nv]) @ s.solve[0, :nv]
            mu = mu + onto_a @ s.B[0]
            state[:nv] -= onto_a @ s.by_q[0]
            state[nv : 2 * nv] -= onto_a @ s.by_v[0]
            state[: 2 * nv] += state[4 * nv :] @ s.moved[0]
        F_q, F_v, F_g = _law_derivatives(motion, derivatives, numbers, k)
        state[:nv] += mu @ F_q
        state[nv : 2 * nv] += mu @ F_v
        by_gains += mu @ F_g
    dq0, dv0 = state[:nv] + by_q[0], state[nv : 2 * nv] + by_v[0]
    dq0 = dq0 + dv0 @ s.carried[0]
    return FeedbackGradient(by_gains.reshape(numbers.shape), dq0 @ s.onto_q[0], dv0 @ s.onto_v[0])


def _input(model: Model, law: Law, t: float, q: np.ndarray, v: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """The input that a law returns."""
    return checked_row(called("law", t, law, t, q.copy(), v.copy(), gains), model.nu, "law", t)


def _checked_derivatives(name: str, x: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A user's derivatives of L as an array of a given shape; zeros for None."""
    found = np.zeros(shape) if x is None else np.asarray(x, dtype=np.float64)
    if found.shape != shape or not np.isfinite(found).all():
        raise ShapeError(f"{name}: expected finite values of shape {shape}, got {found.shape}")
    return found


def _law_derivatives(motion: Rollout, derivatives: Law, gains: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """F of (1) at step k: ∂f/∂q, ∂f/∂v, and ∂f/∂g with the gains as one row."""
    nu, nv = motion.common.nu, motion.common.nv
    found = derivatives(float(motion.t[k]), motion.q[k].copy(), motion.v[k].copy(), gains)
    shapes = ((nu, nv), (nu, nv), (nu, *gains.shape))
    rows = [np.asarray(x, dtype=np.float64) for x in found]
    if [x.shape for x in rows] != list(shapes):
        raise ShapeError(f"derivatives: expected arrays of shapes {shapes}, got {[x.shape for x in rows]}")
    return rows[0], rows[1], rows[2].reshape(nu, -1)
