"""The Jacobian of the static residual."""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.forward_dynamics import input_rows, run_residual
from lissom.dynamics.workspace import stack
from lissom.model.model import Model

_STEP = 6e-6


def residual_jacobian(model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0) -> np.ndarray:
    """∂(ID(q, 0, 0) − B(q) u)/∂q in the tangent space, shape (nv, nv).

    K is put in as it is; what is not linear in q is differenced centrally, all columns in one batch.
    """
    n = model.nv
    step = _STEP * model.dof_scale
    moves = np.concatenate([np.diag(step), -np.diag(step)])
    rows = integrate(model, q, moves)
    still = np.zeros((2 * n, n))
    tau = run_residual(model, rows, still, still, np.broadcast_to(u, (2 * n, len(u))), t, factor).host["tau"]
    plain = np.flatnonzero(model.dof_q >= 0)
    K = np.zeros((n, n))
    K[np.ix_(plain, plain)] = model.stiffness[np.ix_(plain, plain)]
    nonlinear = tau - moves @ K
    return K + (nonlinear[:n] - nonlinear[n:]).T / (2.0 * step)


def tangent_stiffness(model: Model, q: Any, u: Any = None, *, t: float = 0.0) -> np.ndarray:
    """Tangent stiffness: the derivative of the static residual ID(q, 0, 0) − B(q) u along the tangent space.

    Args:
        q: configuration, shape (nq,). u: inputs, shape (nu,); None is zero. t: time of the loads [s].
    Returns:
        shape (nv, nv); symmetric where gravity and loads are conservative and at equilibrium.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: about 1e-9 relative (central differences).
    """
    row, inputs = stack("q", q, model.nq), input_rows(model, u)
    return residual_jacobian(model, integrate(model, row, np.zeros(model.nv)), inputs, t)
