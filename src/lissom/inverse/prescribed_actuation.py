"""Actuation by length, angle or volume in motion: inputs as multipliers that keep coordinates on prescribed functions.

    M a + h = B_h u_h + B_g u_g + Aᵀ λ,   ẏ = B_hᵀ v                                                      (1)
    ÿ = D u_h + B_hᵀ a₀ + Ḃ_hᵀ v,   D = B_hᵀ M⁻¹ B_h,   a₀ = M⁻¹ (B_g u_g − h)                            (2)
    D u_h = ÿ_d + 2 p (ẏ_d − ẏ) + p² (y_d − y) − B_hᵀ a₀ − Ḃ_hᵀ v                                         (3)

With y on y_d at the start, (3) is the constraint y = y_d with the multiplier u_h, its index reduced, and p only takes
away what rounding and steps leave of it; otherwise y follows y_d as a critically damped servo. Loops and prescribed
motions replace M⁻¹ by the accelerations that they leave. Derivatives for implicit methods are as in
feedback_linearization, with K_P = p² and K_D = 2 p.
Source: J. Baumgarte, Comput. Methods Appl. Mech. Eng. 1, 1972, for p; Pustina 2025 §7.1 for (2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.control.actuation_coordinates import actuation_rates, coordinates_of_all
from lissom.control.feedback_linearization import decoupled
from lissom.dynamics.actuation import tightening_inputs
from lissom.dynamics.forward_dynamics import forward_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.dynamics.mass_inverse_dynamics import mass_inverse_dynamics
from lissom.integration.controllers import Controller
from lissom.integration.inputs import input_function
from lissom.inverse.prescribed import prescribed_inputs
from lissom.model.model import Model
from lissom.robot import checks
from lissom.robot.motions import JointMotion
from lissom.robot.rows_of_time import RowsOfTime

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lissom.integration.inputs import Samples


def prescribed_actuation(
    model: Model,
    y: Any,
    *,
    u: ArrayLike | Samples | Callable[[float], ArrayLike] | None = None,
    correction: Any = None,
    rate: float = 50.0,
    slack: bool = False,
) -> Controller:
    """Inputs that keep lengths of tendons, angles of motors or volumes of chambers on given functions of time.

        y_h(q(t)) = y_d(t),   u_h the tensions, torques and pressures that this takes

    The constraint is solved exactly at each evaluation. Start where it holds, at the q of `prescribed_equilibrium` say:
    from elsewhere y follows y_d as a critically damped servo, ë + 2 p ė + p² e = 0, as winches with a position loop do.
    A tendon that would have to push does so, and `simulate` warns of it, or goes slack.

    Args:
        y: y_d by name of the input, as `actuation_coordinates` counts them [m, rad, m³]: constants, functions of t,
            ls.Tabulated, or (y, ẏ, ÿ), three functions of t; where rates are not given they are differenced.
        u: the other inputs, as `simulate` takes them; None is zero.
        correction: a function of (t, q, v) that returns what is added to y_d, shape (n,) in the order of `y`, such as
            the answer of a control law; its rates count as zero, so that the servo smooths it.
        rate: p [1/s].
        slack: whether tendons that would have to push carry nothing; they are caught again as the servo does, not by an
            impact.
    Returns:
        Controller for `simulate`, whose `u` are the tensions found. Continuous; with a `period` T keep T p below 1.
    Raises:
        ModelError: names that are no inputs, inputs without a known coordinate, functions; in use inputs that move the
        robot alike, so that their lengths cannot be prescribed apart.
    Accuracy: as the integrator's tolerance. Source: Pustina 2025 §7.1.
    """
    held = prescribed_inputs(model, y)
    checks.number(rate, "rate", above=0.0)
    good = correction is None or callable(correction)
    checks.require(good, "correction", "must be a function of (t, q, v)", correction)
    motions = []
    for name, value in y.items():
        parts = value if isinstance(value, tuple) and len(value) == 3 else (value,)
        motion = JointMotion("y", "", *parts)
        motion.check(f"y[{name!r}]", 1)
        motions.append(motion.kinematics(f"y[{name!r}]", 1))
    law = _Held(model, held, tuple(motions), input_function(model, u), correction, float(rate))
    if slack:
        law = replace(law, may_slack=tightening_inputs(model)[held])
    known = not (model.n_multipliers or len(model.spools.channel) or correction)
    return Controller(law, derivatives=law.derivatives if known else None)


@final
@dataclass(frozen=True)
class _Held:
    """The law as a function of (t, q, v, z)."""

    model: Model
    held: np.ndarray
    motions: tuple[tuple[RowsOfTime, RowsOfTime, RowsOfTime], ...]
    others: Callable[[float], np.ndarray]
    correction: Callable[[float, np.ndarray, np.ndarray], Any] | None
    rate: float
    may_slack: np.ndarray | None = None
    last: dict[str, Any] = field(default_factory=dict, compare=False)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        return self._found(t, q, v)[0].copy()

    def _found(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """u, which of the held inputs act, B_h, a₀ and M⁻¹B_h; those of the last state are kept, where derivatives are
        asked for next."""
        key = (t, q.tobytes(), v.tobytes())
        if self.last.get("key") != key:
            self.last.update(key=key, found=self._solved(t, q, v))
        return self.last["found"]

    def _solved(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        model, u = self.model, np.array(self.others(t), dtype=np.float64)
        u[self.held] = 0.0
        if model.n_multipliers or len(model.spools.channel):
            units = np.zeros((len(self.held), model.nu))
            units[np.arange(len(self.held)), self.held] = 1.0
            a = forward_dynamics(model, q, v, np.vstack([u, u + units]), t)
            a_0, response = a[0], (a[1:] - a[0]).T
            B, curving = actuation_rates(model, q, v)
        else:
            own = mass_inverse_dynamics(model, q, v, t=t)
            B, curving = actuation_rates(model, q, v)
            a = np.linalg.solve(own.mass, np.column_stack([B @ u - own.bias, B[:, self.held]]))
            a_0, response = a[:, 0], a[:, 1:]
        B_h = B[:, self.held]
        wanted = self._wanted(t, q, v, B_h) - B_h.T @ a_0 - curving[self.held]
        taut = np.arange(len(self.held))
        while len(taut):
            names = tuple(model.inputs.names[k] for k in self.held[taut])
            found = decoupled(names, B_h.T[taut] @ response[:, taut], wanted[taut], t)
            pushing = (found < 0.0) & self.may_slack[taut] if self.may_slack is not None else np.zeros(len(taut), bool)
            if not pushing.any():
                u[self.held[taut]] = found
                break
            taut = np.delete(taut, np.argmin(np.where(pushing, found, np.inf)))
        return u, taut, B_h, a_0, response

    def _wanted(self, t: float, q: np.ndarray, v: np.ndarray, B_h: np.ndarray) -> np.ndarray:
        """The first three terms on the right of (3)."""
        y_d, rate_d, turn_d = (np.array([motion[k](t)[0] for motion in self.motions]) for k in range(3))
        if self.correction is not None:
            rule = f"must return finite values of shape ({len(self.held)},)"
            value = np.atleast_1d(self.correction(t, q.copy(), v.copy()))
            y_d = y_d + checks.array(value, (len(self.held),), "correction", rule)
        missing, p = y_d - coordinates_of_all(self.model, q)[self.held], self.rate
        return turn_d + 2.0 * p * (rate_d - B_h.T @ v) + p * p * missing

    def derivatives(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂u/∂q and ∂u/∂v."""
        model, p = self.model, self.rate
        u, taut, B_h, a_0, response = self._found(t, q, v)
        a = a_0 + response @ u[self.held]
        held, B_h, response = self.held[taut], B_h[:, taut], response[:, taut]
        dq, dv, _, _ = residual_derivatives(model, q, v, a, u, t, rough=True)
        D = B_h.T @ response
        by_q, by_v = np.zeros((model.nu, model.nv)), np.zeros((model.nu, model.nv))
        by_q[held] = np.linalg.solve(D, response.T @ dq - p * p * B_h.T)
        by_v[held] = np.linalg.solve(D, response.T @ dv - 2.0 * p * B_h.T)
        return by_q, by_v
