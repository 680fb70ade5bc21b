"""Partial feedback linearisation on the actuation coordinates y.

    M a + h = B(q) u,   ẏ = Bᵀ v          h = c + g + K q + D v − F                                       (1)
    ÿ = Bᵀ M⁻¹ B u + Bᵀ a₀ + Ḃᵀ v,        a₀ = −M⁻¹ h                                                     (2)
    w = ÿ_d + K_D (ẏ_d − ẏ) + K_P (y_d − y)                                                               (3)
    u = (Bᵀ M⁻¹ B)⁻¹ (w − Bᵀ a₀ − Ḃᵀ v)   and so   ë + K_D ė + K_P e = 0,   e = y_d − y                   (4)

This is the law of Pustina 2025 §7.1, without a choice of passive coordinates z: in coordinates θ = (y, z), with any z
that completes y, (Bᵀ M⁻¹ B)⁻¹ is the Schur complement M_aa − M_au M_uu⁻¹ M_ua of the mass matrix. With loops and
prescribed motions, M⁻¹ is the map from forces to the accelerations that they allow.

Implicit methods need the derivatives of u with respect to q and v. With r = ID(q, v, a) − B u, and without the small
derivative of B, they are

    ∂u/∂q = D⁻¹ (BᵀM⁻¹ ∂r/∂q − K_P Bᵀ),   ∂u/∂v = D⁻¹ (BᵀM⁻¹ ∂r/∂v − K_D Bᵀ),   D = Bᵀ M⁻¹ B           (6)

An implicit step with increment Δ, which changes v by c₁ Δ and a by c₀ Δ, knows K = ∂r/∂q T + c₁ ∂r/∂v + c₀ M at its own
a. With this K,

    ∂u/∂Δ = D⁻¹ (BᵀM⁻¹ (K − c₀ M) − K_P Bᵀ T − c₁ K_D Bᵀ)                                                 (7)

The incomplete law uses the actuated rows a of (1) and neglects the accelerations a_u of the passive coordinates in
them:

    u = B_a⁻¹ (M_aa B_a⁻ᵀ (w − Ḃ_aᵀ v_a) + h_a)   and so   ë + K_D ė + K_P e = B_aᵀ M_aa⁻¹ M_au a_u       (5)

Source: Pustina 2025 §7.1 and Simulation 9. The supplement has −c_a − g_a in (2); the sign here is the one of §7.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.linalg import get_lapack_funcs

from lissom.control.actuation_coordinates import (
    actuated_rows,
    actuation_rates,
    coordinate_function,
    coordinates_from,
    require_inputs,
    solve_rows,
)
from lissom.dynamics.actuation import has_length_accelerations
from lissom.dynamics.forward_dynamics import forward_dynamics
from lissom.dynamics.input_dynamics import input_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.dynamics.mass_matrix import mass_inverse_dynamics
from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.robot import checks
from lissom.robot.functions import Expression, RowsOfTime, Tabulated
from lissom.robot.joints import JointMotion
from lissom.simulation.inputs import Controller

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_potrf, _potrs, _pocon, _posv = get_lapack_funcs(("potrf", "potrs", "pocon", "posv"), dtype=np.float64)
_LEAST = 1e-10  # smallest eigenvalue of a regular decoupling matrix with unit diagonal


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
    """Control law by which the actuation coordinates y follow y_d(t), for any motion of the passive coordinates.

        u = (Bᵀ M⁻¹ B)⁻¹ (w − Bᵀ a₀ − Ḃᵀ v),   w = ÿ_d + K_D (ẏ_d − ẏ) + K_P (y_d − y)

    M is the mass matrix, B the actuation matrix, and a₀ the acceleration at u = 0. The error e = y_d − y obeys ë + K_D
    ė + K_P e = 0, so it decays exponentially from any start. The rest of the robot stays bounded if its zero dynamics
    (the motion with y = y_d) is stable. This holds if the passive motions are damped and their elasticity outweighs
    gravity. With a sampling `period` T there is no feedback between samples: keep T K_D and T² K_P well below 1.
    Elastic forces that change within T are not cancelled correctly.

    Args:
        y: desired y_d, shape (nu,) [m, m³, rad], for the coordinates of `actuation_coordinates`: a constant, a function
            of t, or an ls.Tabulated, such as `path` of `static_reference`.
        proportional, derivative: gains K_P [1/s²] and K_D [1/s], positive definite: numbers, shape (nu,) or (nu, nu).
        velocity, acceleration: functions of t that return ẏ_d [m/s, m³/s, rad/s] and ÿ_d [m/s², m³/s², rad/s²]. None:
            they are derivatives of y_d.
        complete: False neglects the accelerations a_u of the passive coordinates (index u), as a computed torque for
            the actuated rows (index a): u = B_a⁻¹ (M_aa B_a⁻ᵀ (w − Ḃ_aᵀ v_a) + h_a), with the bias force h. Then the
            term B_aᵀ M_aa⁻¹ M_au a_u drives the error, which does not vanish while the passive coordinates accelerate.
        coordinates: function of q that returns y, with gradient B(q)ᵀ, for inputs that `actuation_coordinates` does not
            support.
    Returns:
        Controller for `simulate`, continuous or with a period.
    Raises:
        ModelError: wrong gains or reference; more inputs than coordinates; a force that is not linear in u; an input
            without an actuation coordinate; for complete=False, different numbers of actuated rows and inputs. During a
            simulation: the decoupling matrix Bᵀ M⁻¹ B is singular (the message gives its smallest eigenvalue).
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
    is_fused = coordinates is None and rows is None and not model.n_multipliers and has_length_accelerations(model)
    fixed = isinstance(y, Tabulated | Expression) and velocity is None and acceleration is None
    law = _Linearization(model, coordinate_function(model, coordinates), reference, K[0], K[1], rows, is_fused, fixed)
    return Controller(law, derivatives=law.derivatives if rows is None and not model.n_multipliers else None)


def gain(value: Any, size: int, name: str) -> np.ndarray:
    """A gain as a positive definite matrix (size, size). Raises ModelError if it is none."""
    rule = "must be symmetric positive definite"
    K = checks.symmetric(value, size, name, rule=rule)
    checks.require(bool(np.linalg.eigvalsh(K).min(initial=1.0) > 0.0), name, rule, value)
    return K


@final
@dataclass(frozen=True)
class _Linearization:
    """The law as a function of (t, q, v, z).

    Fields:
        rows: actuated rows for the incomplete law; None for the complete law.
        is_fused: whether one launch computes all terms of the law.
        keeps_reference: whether the reference depends on t alone, so that its last value is cached.
    """

    model: Model
    coordinates: Callable[[np.ndarray], np.ndarray]
    reference: tuple[RowsOfTime, RowsOfTime, RowsOfTime]
    proportional: np.ndarray
    derivative: np.ndarray
    rows: np.ndarray | None
    is_fused: bool
    keeps_reference: bool
    last: dict[str, tuple[Any, Any]] = field(default_factory=dict, compare=False)  # by name a key and its value

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
        return B, curving, self._acceleration(t, v, B, self.coordinates(q))

    def _acceleration(self, t: float, v: np.ndarray, B: np.ndarray, y: np.ndarray) -> np.ndarray:
        """w of (3)."""
        known = self.last.get("reference") if self.keeps_reference else None
        if known is None or known[0] != t:  # iterations of a step ask again at its end
            known = self.last["reference"] = t, [np.array(function(t)) for function in self.reference]
        y_d, rate_d, wanted = known[1]
        return wanted + self.derivative @ (rate_d - B.T @ v) + self.proportional @ (y_d - y)

    def _complete(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """u of (4), B, a₀, M⁻¹B and M (zero with multipliers). The result at the last state is cached, because the
        derivatives there are computed next."""
        key = (t, q.tobytes(), v.tobytes())
        known = self.last.get("state")  # as one object, since other threads may replace it
        if known is None or known[0] != key:
            known = self.last["state"] = key, self._solved(t, q, v)
        return known[1]

    def _solved(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        model, mass = self.model, np.zeros((self.model.nv, self.model.nv))
        if self.is_fused:
            own = input_dynamics(model, q, v, t)
            mass, B, curving = own.mass, own.B, own.curving
            w = self._acceleration(t, v, B, coordinates_from(model, q, own.lengths))
            a = solve_mass(mass, np.column_stack([-own.bias, B]))
            a_0, response = a[:, 0], a[:, 1:]
        elif model.n_multipliers:
            B, curving, w = self._wanted(t, q, v)
            a = forward_dynamics(model, q, v, np.vstack([np.zeros(model.nu), np.eye(model.nu)]), t)
            a_0, response = a[0], (a[1:] - a[0]).T
        else:
            both = mass_inverse_dynamics(model, q, v, t=t)  # first: its cached body results serve _wanted
            mass, (B, curving, w) = both.mass, self._wanted(t, q, v)
            a = solve_mass(mass, np.column_stack([-both.bias, B]))
            a_0, response = a[:, 0], a[:, 1:]
        return decoupled(model.inputs.names, B.T @ response, w - B.T @ a_0 - curving, t), B, a_0, response, mass

    def along_step(
        self, t: float, q: np.ndarray, v: np.ndarray, matrix: np.ndarray, c0: float, c1: float, turned: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """B and ∂u/∂Δ of (7), from the matrix of a step without feedback."""
        _, B, _, response, mass = self._complete(t, q, v)
        moved = self.proportional @ turned(B.T) + c1 * self.derivative @ B.T
        return B, np.linalg.solve(B.T @ response, response.T @ (matrix - c0 * mass) - moved)

    def derivatives(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂u/∂q and ∂u/∂v of (6)."""
        u, B, a_0, response, _ = self._complete(t, q, v)
        dq, dv, _, _ = residual_derivatives(self.model, q, v, a_0 + response @ u, u, t, approximate=True)
        D = B.T @ response
        by_q = np.linalg.solve(D, response.T @ dq - self.proportional @ B.T)
        return by_q, np.linalg.solve(D, response.T @ dv - self.derivative @ B.T)


def decoupled(names: tuple[str, ...], D: np.ndarray, wanted: np.ndarray, t: float) -> np.ndarray:
    """D⁻¹ wanted, for the decoupling matrix D = BᵀM⁻¹B of inputs with the given names.

    Raises:
        ModelError: D is singular; the message gives its smallest eigenvalue (after scaling to unit diagonal) and the
            inputs concerned.
    """
    size = np.sqrt(np.maximum(np.diag(D), 0.0))
    if not size.all():
        name = names[int(np.argmin(size))]
        raise ModelError(f"input {name!r}: must move the robot at t={t:g} s (got 0 on the diagonal of BᵀM⁻¹B)")
    scaled = 0.5 * (D + D.T) / np.outer(size, size)
    factor, failed = _potrf(scaled)
    # 1 / |scaled⁻¹| in the 1-norm, estimated to a factor of some units, is a lower bound of the least eigenvalue
    if failed or _pocon(factor, norm := np.abs(scaled).sum(axis=0).max())[0] * norm < 1e3 * _LEAST:
        value, vector = np.linalg.eigh(scaled)
        if value[0] < _LEAST:
            alike = [repr(names[k]) for k in np.flatnonzero(np.abs(vector[:, 0]) > 0.1)]
            rule = f"must not be singular, but {', '.join(alike)} move the robot alike"
            got = f"got the least eigenvalue {value[0]:.3g}, scaled to a unit diagonal, for at least {_LEAST:g}"
            raise ModelError(f"decoupling matrix BᵀM⁻¹B at t={t:g} s: {rule} ({got})")
    return _potrs(factor, wanted / size)[0] / size


def solve_mass(mass: np.ndarray, B: np.ndarray) -> np.ndarray:
    """M⁻¹ B.

    Raises:
        ModelError: M is not positive definite; the message gives the size of its first leading block that is not.
    """
    _, found, failed = _posv(mass, B)
    if failed:
        raise ModelError(f"mass matrix: must be positive definite (its leading block of size {failed} is not)")
    return found
