"""Partial feedback linearisation on the actuation coordinates y.

    M a + h = B(q) u,   ẏ = Bᵀ v          h = c + g + K q + D v − F                                       (1)
    ÿ = Bᵀ M⁻¹ B u + Bᵀ a₀ + Ḃᵀ v,        a₀ = −M⁻¹ h                                                     (2)
    w = ÿ_d + K_D (ẏ_d − ẏ) + K_P (y_d − y)                                                               (3)
    u = (Bᵀ M⁻¹ B)⁻¹ (w − Bᵀ a₀ − Ḃᵀ v)   and so   ë + K_D ė + K_P e = 0,   e = y_d − y                   (4)

In coordinates θ = (y, z), with any z that completes y, (Bᵀ M⁻¹ B)⁻¹ is M_aa − M_au M_uu⁻¹ M_ua, the inverse of a block
of the inverse of M in θ. (4) is the law of Pustina 2025 §7.1 without a choice of z. With loops and prescribed motions,
M⁻¹ is the map from forces to the accelerations that they allow.

Implicit methods need the derivatives of u by q and v. With r = ID(q, v, a) − B u, and without the change of B, which is
small, they are

    ∂u/∂q = D⁻¹ (BᵀM⁻¹ ∂r/∂q − K_P Bᵀ),   ∂u/∂v = D⁻¹ (BᵀM⁻¹ ∂r/∂v − K_D Bᵀ),   D = Bᵀ M⁻¹ B           (6)

The incomplete law uses the actuated rows of (1) and drops the accelerations of passive coordinates in them:

    u = B_a⁻¹ (M_aa B_a⁻ᵀ (w − Ḃ_aᵀ v_a) + h_a)   and so   ë + K_D ė + K_P e = B_aᵀ M_aa⁻¹ M_au a_u       (5)

Source: Pustina 2025 §7.1 and Simulation 9, whose supplement prints −c_a − g_a in (2): the sign is that of §7.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.control.actuation_coordinates import (
    actuated_rows,
    actuation_rates,
    coordinate_function,
    require_inputs,
    solve_rows,
)
from lissom.dynamics.forward_dynamics import forward_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.dynamics.mass_matrix import mass_inverse_dynamics
from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.robot import checks
from lissom.robot.functions import RowsOfTime
from lissom.robot.motions import JointMotion
from lissom.simulation.inputs import Controller

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_LEAST = 1e-10  # least eigenvalue of the decoupling matrix, scaled to a unit diagonal


def partial_feedback_linearization(
    model: Model,
    y: Any,
    *,
    proportional: ArrayLike,
    derivative: ArrayLike,
    velocity: Any = None,
    acceleration: Any = None,
    complete: bool = True,
    coordinates: Any = None,
) -> Controller:
    """Inputs that make the actuation coordinates y follow y_d(t) for any motion of the passive coordinates.

        u = (Bᵀ M⁻¹ B)⁻¹ (w − Bᵀ a₀ − Ḃᵀ v),   w = ÿ_d + K_D (ẏ_d − ẏ) + K_P (y_d − y)

    The error obeys ë + K_D ė + K_P e = 0 from any start, so that it decays exponentially. The rest of the robot stays
    bounded if its zero dynamics, the motion with y = y_d, is stable. This is so if the passive motions are damped and
    their elasticity outweighs gravity. With a `period` T the law gets no feedback between samples: keep T K_D and T²
    K_P well below 1. Elastic forces that change within T are not cancelled correctly.

    Args:
        y: y_d, of the coordinates of `actuation_coordinates`, shape (nu,) [m, m³, rad]: a constant, a function of t,
            or an ls.Tabulated, such as `path` of `static_reference`.
        proportional, derivative: K_P [1/s²] and K_D [1/s], positive definite: numbers, shape (nu,) or (nu, nu).
        velocity, acceleration: ẏ_d [per second] and ÿ_d, functions of t; None differentiates.
        complete: False leaves out the coupling with passive coordinates, like a computed torque for the actuated part
            only: u = B_a⁻¹ (M_aa B_a⁻ᵀ (w − Ḃ_aᵀ v_a) + h_a), in the actuated rows a. The error is then driven by the
            passive accelerations, B_aᵀ M_aa⁻¹ M_au a_u, and does not vanish while they last.
        coordinates: y as a function of q whose gradient is B(q)ᵀ, for inputs that `actuation_coordinates` does not
            cover.
    Returns:
        Controller for `simulate`, continuous or with a period.
    Raises:
        ModelError: wrong gains or reference, more inputs than coordinates, a force that is not linear in u, an input
        without coordinate; for complete=False, a number of actuated rows other than that of the inputs; in use, a
        singular decoupling matrix Bᵀ M⁻¹ B, with its least eigenvalue.
    Source: Pustina 2025 §7.1 and supplement eq. (2); Spong 1994.
    """
    require_inputs(model)
    K = [gain(value, model.nu, name) for name, value in (("proportional", proportional), ("derivative", derivative))]
    given = callable(y) or (velocity is None and acceleration is None)
    checks.require(given, "y", "must be a function of t if its rates are given", y)
    motion = JointMotion("reference", "", y, velocity, acceleration)
    motion.check("reference", model.nu)
    reference = motion.kinematics("reference", model.nu)
    rows = None if complete else actuated_rows(model)
    law = _Linearization(model, coordinate_function(model, coordinates), reference, K[0], K[1], rows)
    return Controller(law, derivatives=law.derivatives if rows is None and not model.n_multipliers else None)


def gain(value: Any, size: int, name: str) -> np.ndarray:
    """A gain as a positive definite matrix (size, size)."""
    rule = "must be symmetric positive definite"
    K = checks.symmetric(value, size, name, rule=rule)
    checks.require(bool(np.linalg.eigvalsh(K).min(initial=1.0) > 0.0), name, rule, value)
    return K


@final
@dataclass(frozen=True)
class _Linearization:
    """The law as a function of (t, q, v, z). rows: the actuated rows for the incomplete law; None for the complete."""

    model: Model
    coordinates: Callable[[np.ndarray], np.ndarray]
    reference: tuple[RowsOfTime, RowsOfTime, RowsOfTime]
    proportional: np.ndarray
    derivative: np.ndarray
    rows: np.ndarray | None
    last: dict[str, Any] = field(default_factory=dict, compare=False)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        if self.rows is None:
            return self._complete(t, q, v)[0]
        own = mass_inverse_dynamics(self.model, q, v, t=t)
        B, curving, w = self._wanted(t, q, v)
        a = self.rows
        acceleration = solve_rows(self.model, B[a].T, w - curving, t)
        return solve_rows(self.model, B[a], own.mass[np.ix_(a, a)] @ acceleration + own.bias[a], t)  # (5)

    def _wanted(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """B, Ḃᵀv and w of (3)."""
        B, curving = actuation_rates(self.model, q, v)
        y_d, rate_d, wanted = (np.array(function(t)) for function in self.reference)
        w = wanted + self.derivative @ (rate_d - B.T @ v) + self.proportional @ (y_d - self.coordinates(q))
        return B, curving, w

    def _complete(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """u of (4), B, a₀ and M⁻¹B. Those of the last state are cached, since its derivatives are computed next."""
        key = (t, q.tobytes(), v.tobytes())
        if self.last.get("key") != key:
            self.last.update(key=key, found=self._solved(t, q, v))
        return self.last["found"]

    def _solved(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        model = self.model
        if model.n_multipliers:
            B, curving, w = self._wanted(t, q, v)
            a = forward_dynamics(model, q, v, np.vstack([np.zeros(model.nu), np.eye(model.nu)]), t)
            a_0, response = a[0], (a[1:] - a[0]).T
        else:
            own = mass_inverse_dynamics(model, q, v, t=t)  # first: its cached body results serve _wanted
            B, curving, w = self._wanted(t, q, v)
            a = np.linalg.solve(own.mass, np.column_stack([-own.bias, B]))
            a_0, response = a[:, 0], a[:, 1:]
        return decoupled(model.inputs.names, B.T @ response, w - B.T @ a_0 - curving, t), B, a_0, response

    def derivatives(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂u/∂q and ∂u/∂v of (6)."""
        u, B, a_0, response = self._complete(t, q, v)
        dq, dv, _, _ = residual_derivatives(self.model, q, v, a_0 + response @ u, u, t, approximate=True)
        D = B.T @ response
        by_q = np.linalg.solve(D, response.T @ dq - self.proportional @ B.T)
        return by_q, np.linalg.solve(D, response.T @ dv - self.derivative @ B.T)


def decoupled(names: tuple[str, ...], D: np.ndarray, wanted: np.ndarray, t: float) -> np.ndarray:
    """D⁻¹ wanted for the decoupling matrix D = BᵀM⁻¹B of inputs with these names.

    Raises:
        ModelError: D is singular, with its least eigenvalue scaled to ones on its diagonal, and the inputs at fault.
    """
    size = np.sqrt(np.maximum(np.diag(D), 0.0))
    if not size.all():
        name = names[int(np.argmin(size))]
        raise ModelError(f"input {name!r}: must move the robot at t={t:g} s (got 0 on the diagonal of BᵀM⁻¹B)")
    value, vector = np.linalg.eigh(0.5 * (D + D.T) / np.outer(size, size))
    if value[0] < _LEAST:
        alike = [repr(names[k]) for k in np.flatnonzero(np.abs(vector[:, 0]) > 0.1)]
        rule = f"must not be singular, but {', '.join(alike)} move the robot alike"
        got = f"got the least eigenvalue {value[0]:.3g}, scaled to a unit diagonal, for at least {_LEAST:g}"
        raise ModelError(f"decoupling matrix BᵀM⁻¹B at t={t:g} s: {rule} ({got})")
    return np.linalg.solve(D, wanted)
