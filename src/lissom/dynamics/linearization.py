"""Small motions about an equilibrium.

M δa + D δv + K_T δq = B δu,   K_T = ∂(ID(q, 0, 0) − B u)/∂q                                          (1)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.linalg import LinAlgError, eigh

from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.forward_dynamics import forward_dynamics, input_rows, run_forward_dynamics
from lissom.dynamics.forward_dynamics_derivatives import forward_dynamics_derivatives
from lissom.dynamics.independent_rows import allowed_motions, independent_rows
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
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
        frequencies: rising, shape (n,) [rad/s], n the motions that prescribed motions and loops leave; negative
        −sqrt(−ω²) where the equilibrium is unstable.
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
    still, row, given = np.zeros(model.nv), _one(model, q), _inputs(model, u)
    force = np.zeros(model.n_rows)
    if model.n_rows:  # the forces of loops at rest, next to equilibrium
        force = run_forward_dynamics(model, row, still, given, t).host["force"][0].copy()
    K, _, M, w = residual_derivatives(model, row, still, still, given, t, 1.0, force)
    A = row_results(model, w, "A")
    N = allowed_motions(model, A, independent_rows(model, A))
    K, M = (0.5 * N.T @ (X + X.T) @ N for X in (K, M))
    try:
        squares, shapes = eigh(K, M)
        shapes = N @ shapes
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
