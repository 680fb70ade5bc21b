"""Linear quadratic regulators about equilibria.

With x = (q ⊖ q_e, v) and u = u_e + δu, ẋ = A x + B δu by `linearize`. On the motions that loops and prescribed motions
allow, x = E z with E = diag(N, N). The columns of N are these motions (A N = 0 with the constraint Jacobian A), and N⁺
N is the identity. Then

    ż = Â z + B̂ δu,     Â = E⁺ A E,     B̂ = E⁺ B                                                          (1)

At rest Ȧ v has no first-order effect, so these motions stay in their tangent space. With Q̂ = Eᵀ Q E

    Âᵀ P̂ + P̂ Â − P̂ B̂ R⁻¹ B̂ᵀ P̂ + Q̂ = 0,     K̂ = R⁻¹ B̂ᵀ P̂                                                   (2)

minimises ∫ xᵀQ x + δuᵀR δu dt. With inputs that are constant for T, Φ = exp(T Â) and Γ = ∫₀ᵀ exp(s Â) ds B̂,

    Φᵀ P̂ Φ − P̂ − Φᵀ P̂ Γ (T R + Γᵀ P̂ Γ)⁻¹ Γᵀ P̂ Φ + T Q̂ = 0,     K̂ = (T R + Γᵀ P̂ Γ)⁻¹ Γᵀ P̂ Φ               (3)

minimises the sum of T (xᵀQ x + δuᵀR δu) over the samples. In all coordinates K = K̂ E⁺ and P = E⁺ᵀ P̂ E⁺.

Source: B. D. O. Anderson and J. B. Moore, Optimal Control, 1990, chapters 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.linalg import LinAlgError, block_diag, expm, null_space, solve_continuous_are, solve_discrete_are

from lissom.control.feedback_linearization import gain
from lissom.dynamics.actuation import input_force
from lissom.dynamics.configuration import apply_tangent_operator, difference, single_configuration
from lissom.dynamics.constraints import constraint_jacobian
from lissom.dynamics.inverse_dynamics import inverse_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import inverse_dynamics_derivatives
from lissom.dynamics.linearization import linearize
from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.robot import checks, formatting
from lissom.simulation.inputs import Controller

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_LEFT = 1e-6  # largest remaining force, relative to the forces at rest and of a move of natural size
_DEPENDENT = 1e-9  # smallest singular value of independent rows, relative to the largest
_REACHED = 1e-9  # smallest effect of the inputs on a controllable motion, relative to B


@final
@formatting.in_one_line
@dataclass(frozen=True)
class Regulator:
    """A linear quadratic regulator u = u_e − K x, with x = (q ⊖ q_e, v) and ⊖ the increment of `difference`.

    Fields:
        model: the model of the robot.
        q: equilibrium q_e (nq,) [rad, m, or strain units].
        u: its inputs u_e (nu,) [N, m, Pa or N·m, by actuator].
        gain: K, shape (nu, 2 nv).
        eigenvalues: eigenvalues of the closed loop, slowest decay first: exponents [1/s], or with a period factors per
            sample [-]. There are two for each motion that loops and prescribed motions allow.
        riccati: P, shape (2 nv, 2 nv). xᵀP x is the optimal cost from the state x.
        period: time between samples [s]; None for a continuous law.
    """

    model: Model
    q: np.ndarray
    u: np.ndarray
    gain: np.ndarray
    eigenvalues: np.ndarray
    riccati: np.ndarray
    period: float | None

    def controller(self, limits: tuple[ArrayLike, ArrayLike] | None = None) -> Controller:
        """The law for `simulate`. Pass the regulator's `period` to `simulate` as well.

        Args:
            limits: (low, high) of the inputs, numbers or shape (nu,); infinite entries are no limits. None: those of
                the robot (`Robot.limit_input`). Inputs are clipped. The gains do not account for limits, so a robot far
                from q_e may not return.
        Raises:
            ModelError: u_e is outside the limits.
            ShapeError: limits have a wrong shape.
        """
        low, high = _limits(self.model.input_limits if limits is None else limits, self.u)
        law = _Law(self.model, self.q, self.u, self.gain, low, high)
        return Controller(law, derivatives=law.derivatives)


def lqr(
    model: Model,
    q: ArrayLike,
    u: ArrayLike | None = None,
    *,
    state: ArrayLike,
    inputs: ArrayLike,
    period: float | None = None,
) -> Regulator:
    """Linear quadratic regulator that holds a robot at an equilibrium, stable or unstable.

        u = u_e − K x,   x = (q ⊖ q_e, v),     K for the least  ∫ xᵀQ x + (u − u_e)ᵀR (u − u_e) dt

    q ⊖ q_e is the tangent increment of `difference`, also for quaternions. The gains are computed for the linearised
    motions that loops and prescribed motions allow, and returned for all coordinates. Prescribed joints are at rest.

    Args:
        q: q_e, shape (nq,) [rad, m, strain units]: an equilibrium under u, for instance of
            `solve_statics(stable=False)`.
        u: u_e, shape (nu,) [N, N·m, Pa]; None is zero.
        state: Q, symmetric and positive semidefinite: a number, shape (2 nv,) or (2 nv, 2 nv) [per squared unit of the
            coordinates and velocities].
        inputs: R, symmetric and positive definite: a number, shape (nu,) or (nu, nu) [per squared unit of the inputs].
        period: time T between samples [s], with constant inputs in between. The cost is then the sum of T (xᵀQ x + δuᵀR
            δu) over the samples. None: a continuous law.
    Returns:
        Regulator. Its `controller()` is for `simulate`.
    Raises:
        ModelError: no inputs; wrong costs or period; q is no equilibrium; or a motion that does not decay is not
            controlled by the inputs, or not included in the cost.
        ShapeError: an argument has a wrong shape.
    Accuracy: of the Riccati solver. Derivatives, and the linear motion between samples, are exact.
    Source: Anderson and Moore 1990.
    """
    model.require_positions("lqr")
    checks.require(model.nu > 0, "inputs", "a control law needs an actuator", model.nu)
    q = single_configuration(model, q)
    if period is not None:
        checks.number(period, "period", above=0.0)
    rule = "must be symmetric positive semidefinite"
    Q, R = checks.symmetric(state, 2 * model.nv, "state", rule=rule), gain(inputs, model.nu, "inputs")
    still = np.zeros(model.nv)
    u_rest = np.zeros(model.nu) if u is None else np.array(u, dtype=np.float64)
    found = linearize(model, q, u_rest, v=still)
    W = _allowed(model, q)
    _require_equilibrium(model, q, u_rest, W)
    S = model.dofs.scale[:, None]
    E, back = block_diag(S * W, S * W), block_diag((W / S).T, (W / S).T)
    A, B = back @ found.A @ E, back @ found.B  # (1)
    solved = _riccati(A, B, E.T @ Q @ E, R, period)
    if solved is None:
        raise ModelError(f"robot {model.name!r}: {_reason(A, B)}")
    P, K, eigenvalues = solved
    return Regulator(model, q.copy(), u_rest, K @ back, eigenvalues, back.T @ P @ back, period)


def _allowed(model: Model, q: np.ndarray) -> np.ndarray:
    """Orthonormal columns (nv, n), in natural sizes of the coordinates, that span the motions allowed by loops and
    prescribed motions."""
    rows = constraint_jacobian(model, q) * model.dofs.scale
    return null_space(rows, rcond=_DEPENDENT) if len(rows) else np.eye(model.nv)


def _require_equilibrium(model: Model, q: np.ndarray, u: np.ndarray, W: np.ndarray) -> None:
    """Raise ModelError if forces remain on the allowed motions."""
    S, still = model.dofs.scale, np.zeros(model.nv)
    force = S * inverse_dynamics(model, q, still, still)
    push = S * input_force(model, q[None], still[None], u[None], 0.0)[0]
    stiff = S[:, None] * inverse_dynamics_derivatives(model, q, still, still)[0] * S
    left = np.abs(W.T @ (force - push)).max(initial=0.0)
    most = max(np.abs(x).max(initial=0.0) for x in (force, push, stiff))
    if left > _LEFT * most:
        part = f"{left / most:.3g} of the forces there"
        raise ModelError(
            f"q: must be an equilibrium under u, but {part} are left; take it from solve_statics (got {q!r})"
        )


def _riccati(
    A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, period: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """P̂, K̂ and the eigenvalues of the closed loop by (2) or (3); None if the closed loop is not stable."""
    try:
        if period is None:
            P = solve_continuous_are(A, B, Q, R)
            K = np.linalg.solve(R, B.T @ P)
            eigenvalues = np.linalg.eigvals(A - B @ K)
            decay = np.real(eigenvalues)
        else:
            A, B = _sampled(A, B, period)
            P = solve_discrete_are(A, B, period * Q, period * R)
            K = np.linalg.solve(period * R + B.T @ P @ B, B.T @ P @ A)
            eigenvalues = np.linalg.eigvals(A - B @ K)
            decay = np.abs(eigenvalues) - 1.0
    except LinAlgError:
        return None
    order = np.argsort(-decay, kind="stable")
    return None if decay.max(initial=-1.0) >= 0.0 else (P, K, eigenvalues[order])


def _sampled(A: np.ndarray, B: np.ndarray, period: float) -> tuple[np.ndarray, np.ndarray]:
    """Φ and Γ of (3), from one matrix exponential."""
    n, many = B.shape
    both = expm(period * np.block([[A, B], [np.zeros((many, n + many))]]))
    return both[:n, :n], both[:n, n:]


def _reason(A: np.ndarray, B: np.ndarray) -> str:
    """Why the inputs do not stabilise (1): uncontrollable modes that do not decay or, if none, the state cost."""
    s, left = np.linalg.eig(A.T)
    moved = np.linalg.norm(left.T @ B, axis=1) / np.maximum(np.linalg.norm(B), np.finfo(float).tiny)
    stays = np.real(s) >= -1e-9 * np.abs(s).max(initial=0.0)
    lost = s[stays & (moved < _REACHED)]
    if len(lost):
        named = ", ".join(f"{x:.3g}" for x in lost[np.imag(lost) >= 0.0])
        got = f"none controls that of exponent {named} 1/s"
        return f"inputs must control every motion that does not decay by itself ({got})"
    return "the state cost must include every motion that does not decay by itself, and inputs must control it"


def _limits(limits: Any, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Low and high of each input."""
    low, high = checks.limits(limits, len(u))
    good = bool((low <= u).all() and (u <= high).all())
    checks.require(good, "limits", f"must be low <= u_e <= high with u_e = {u!r}", limits)
    return low, high


@final
@dataclass(frozen=True)
class _Law:
    """u = u_e − K x, clipped to limits, as a function of (t, q, v, z)."""

    model: Model
    q: np.ndarray
    u: np.ndarray
    gain: np.ndarray
    low: Any
    high: Any

    def _free(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """u before clipping, and q ⊖ q_e."""
        move = difference(self.model, self.q, q)
        return self.u - self.gain @ np.concatenate([move, v]), move

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.clip(self._free(q, v)[0], self.low, self.high)

    def derivatives(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂u/∂q and ∂u/∂v. The rate of q ⊖ q_e is T⁻¹ v, with the tangent operator T of the exponential."""
        u, move = self._free(q, v)
        moving = apply_tangent_operator(self.model, move, np.eye(self.model.nv), invert=True).T
        K = np.where(((u > self.low) & (u < self.high))[:, None], self.gain, 0.0)
        return -K[:, : self.model.nv] @ moving, -K[:, self.model.nv :]
