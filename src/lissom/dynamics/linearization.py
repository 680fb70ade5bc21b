"""Small motions about an equilibrium.

M δa + D δv + K_T δq = B δu,   K_T = ∂(ID(q, 0, 0) − B u)/∂q                                          (1)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.linalg import LinAlgError, eigh

from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.forward_dynamics import forward_dynamics, input_rows
from lissom.dynamics.forward_dynamics_derivatives import forward_dynamics_derivatives
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.errors import ShapeError
from lissom.model.model import Model


@final
@dataclass(frozen=True)
class Linearization:
    """State matrices: ẋ = A x + B δu for x = (δq, δv), δq in the tangent space of `integrate`.

    Fields:
        A: shape (2 nv, 2 nv). B: shape (2 nv, nu).
    """

    A: np.ndarray
    B: np.ndarray


@final
@dataclass(frozen=True)
class Modes:
    """Free undamped vibrations.

    Fields:
        frequencies: rising, shape (n,) [rad/s], n the coordinates without a prescribed motion; negative −sqrt(−ω²)
        where the equilibrium is unstable.
        shapes: one in each column, shape (nv, n), with shapesᵀ M shapes the identity.
    """

    frequencies: np.ndarray
    shapes: np.ndarray


def linearize(model: Model, q: Any, u: Any = None, *, t: float = 0.0) -> Linearization:
    """State matrices of small motions about a configuration at rest.

    Args:
        q: equilibrium, shape (nq,). u: inputs, shape (nu,); None is zero. t: time of the loads [s].
    Returns:
        Linearization.
    Raises:
        ShapeError, ModelError: as forward_dynamics.
    Accuracy: exact derivatives of the discrete model.
    """
    n = model.nv
    da_dq, da_dv, da_du = forward_dynamics_derivatives(model, _one(model, q), np.zeros(n), _inputs(model, u), t)
    rate = np.eye(n)
    rate[model.motion_dof] = 0.0
    A = np.block([[np.zeros((n, n)), rate], [da_dq, da_dv]])
    return Linearization(A, np.vstack([np.zeros((n, model.nu)), da_du]))


def modes(model: Model, q: Any, u: Any = None, *, t: float = 0.0) -> Modes:
    """Natural frequencies and shapes about an equilibrium, damping left out.

    Args:
        q: equilibrium, shape (nq,). u: inputs, shape (nu,); None is zero. t: time of the loads [s].
    Returns:
        Modes. With loads that turn with the body the stiffness is not symmetric: use linearize there.
    Raises:
        ShapeError: the argument, the expected and the received shape. ModelError: a coordinate moves no mass.
    Accuracy: exact for the discrete model.
    """
    still = np.zeros(model.nv)
    K, _, M = residual_derivatives(model, _one(model, q), still, still, _inputs(model, u), t)
    free = np.setdiff1d(np.arange(model.nv), model.motion_dof)
    K, M = (0.5 * (X + X.T)[np.ix_(free, free)] for X in (K, M))
    shapes = np.zeros((model.nv, len(free)))
    try:
        squares, shapes[free] = eigh(K, M)
    except LinAlgError:
        forward_dynamics(model, q, still, u, t)  # names the coordinate that moves no mass
        raise
    return Modes(np.sign(squares) * np.sqrt(np.abs(squares)), shapes)


def _one(model: Model, q: Any) -> np.ndarray:
    """q as one configuration (nq,)."""
    row = checked_configuration(model, "q", q)
    if row.ndim != 1:
        raise ShapeError(f"q: expected shape ({model.nq},), got {row.shape}")
    return row


def _inputs(model: Model, u: Any) -> np.ndarray:
    """u as one set of inputs (nu,)."""
    row = input_rows(model, u)
    if row.ndim != 1 or not np.isfinite(row).all():
        raise ShapeError(f"u: expected finite values of shape ({model.nu},), got {row!r}")
    return row
