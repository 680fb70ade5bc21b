"""PD control in actuation coordinates, with compensation of potential forces.

    u = u_d + K_P (y_d − y) − K_D ẏ,         B(q_d) u_d = g(q_d) + K q_d − F = ID(q_d, 0, 0)               (1)
    u = B_a(q)⁻¹ ID(q, 0, 0)_a + K_P (y_d − y) − K_D ẏ                                                   (2)

With V = ½ vᵀM v + U(q) + ½ (y_d − y)ᵀK_P(y_d − y) − u_dᵀy, (1) gives V̇ = −ẏᵀK_D ẏ − vᵀD v, because the power of the
inputs is uᵀẏ. V has its minimum at q_d if ∂(ID − B u_d)/∂q + B K_P Bᵀ is positive definite there.                (3)

Source: Pustina 2025, supplement eq. (3) for (1) with y = q, and §7.2 for (2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.control.actuation_coordinates import actuated_rows, coordinate_function, require_inputs, solve_rows
from lissom.control.feedback_linearization import gain
from lissom.dynamics.actuation import actuation_matrix
from lissom.dynamics.configuration import single_configuration
from lissom.dynamics.constraints import constraint_jacobian
from lissom.dynamics.inverse_dynamics import inverse_dynamics
from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.simulation.inputs import Controller

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_LEFT = 1e-6  # largest fraction of the potential force that inputs need not balance at the reference


def pd_compensation(
    model: Model,
    q: ArrayLike,
    *,
    proportional: ArrayLike,
    derivative: ArrayLike,
    cancel: bool = False,
    coordinates: Any = None,
) -> Controller:
    """PD control law that holds a robot at a reference q_d against gravity, elasticity and loads.

        u = u_d + K_P (y_d − y) − K_D ẏ,     B(q_d) u_d = ID(q_d, 0, 0),     y_d = y(q_d)

    y are the `actuation_coordinates`. With a motor on each coordinate y = q, and this is the law of the source. The
    model is used only once, for u_d. The energy of the closed loop never increases. q_d is asymptotically stable if
    ∂(ID − B u_d)/∂q + B K_P Bᵀ is positive definite there, and all motions with constant y are damped. With a sampling
    `period` T this holds if T is well below the periods of the closed loop and below M/K_D, with the smallest inertia M
    at a motor.

    Args:
        q: q_d, shape (nq,) [rad, m, strain units]: an equilibrium under some inputs, for instance of `solve_statics`.
        proportional, derivative: gains K_P [N·m/rad, N/m] and K_D [N·m·s/rad, N·s/m], positive definite: numbers, shape
            (nu,) or (nu, nu).
        cancel: True compensates the forces at the present q instead of q_d: u = B_a(q)⁻¹ ID(q, 0, 0)_a + K_P (y_d − y)
            − K_D ẏ, in the actuated rows a. If all coordinates are actuated, this law is stable from any start, and q_d
            need not be an equilibrium.
        coordinates: function of q that returns y, with gradient B(q)ᵀ, for inputs that `actuation_coordinates` does not
            support.
    Returns:
        Controller for `simulate`, continuous or with a period.
    Raises:
        ModelError: wrong gains; more inputs than coordinates; a force that is not linear in u; an input without an
            actuation coordinate; a q that no inputs balance (the message gives the remaining force); for cancel=True,
            different numbers of actuated rows and inputs.
        ShapeError: an argument has a wrong shape.
    Source: Pustina 2025, supplement eq. (3), and §7.2.
    """
    require_inputs(model)
    K = [gain(value, model.nu, name) for name, value in (("proportional", proportional), ("derivative", derivative))]
    q = single_configuration(model, q)
    y = coordinate_function(model, coordinates)
    rows = actuated_rows(model) if cancel else None
    balance = np.zeros(model.nu) if cancel else _balancing_inputs(model, q)
    return Controller(_Compensation(model, y, y(q), balance, K[0], K[1], rows))


def _balancing_inputs(model: Model, q: np.ndarray) -> np.ndarray:
    """u_d of (1); of several solutions the smallest. Loops and prescribed motions carry a part of the force."""
    zero = np.zeros(model.nv)
    force, B = model.dofs.scale * inverse_dynamics(model, q, zero, zero), actuation_matrix(model, q)
    supports = np.hstack([B, constraint_jacobian(model, q).T]) if model.n_multipliers else B
    found = np.linalg.lstsq(model.dofs.scale[:, None] * supports, force, rcond=None)[0]
    left = np.abs(force - model.dofs.scale * (supports @ found)).max()
    if left > _LEFT * np.abs(force).max():
        part = f"{left / np.abs(force).max():.3g} of the potential force there"
        rule = f"must be an equilibrium under some inputs, but they leave {part}; take it from solve_statics"
        raise ModelError(f"q: {rule} (got {q!r})")
    return found[: model.nu]


@final
@dataclass(frozen=True)
class _Compensation:
    """The law as a function of (t, q, v, z). `rows` holds the actuated rows if forces at the present q are cancelled,
    otherwise None."""

    model: Model
    coordinates: Callable[[np.ndarray], np.ndarray]
    y_d: np.ndarray
    u_d: np.ndarray
    proportional: np.ndarray
    derivative: np.ndarray
    rows: np.ndarray | None

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        B = actuation_matrix(self.model, q)
        u = self.u_d + self.proportional @ (self.y_d - self.coordinates(q)) - self.derivative @ (B.T @ v)  # (1)
        if self.rows is None:
            return u
        zero = np.zeros(self.model.nv)
        force = inverse_dynamics(self.model, q, zero, zero, t=t)[self.rows]
        return u + solve_rows(self.model, B[self.rows], force, t)  # (2)
