"""Forces of users' own Python functions at one state: what kernels read of them, and how they answer to the state."""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.dynamics.actuation import custom_actuation
from lissom.dynamics.configuration import integrate
from lissom.dynamics.loads import Times, called_response, called_wrenches
from lissom.model.model import Model

_DIFFERENCE_STEP = 6e-6


def put_python_forces(
    model: Model,
    extra: np.ndarray,
    load: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    u: np.ndarray,
    t: float,
    factor: float = 1.0,
    hold: Any = 0.0,
) -> None:
    """Fill in what kernels read: in `extra` (nv,) the generalised force of actuators under inputs u, beside one that
    holds, and in the rows of `load` (n_load_rows, 6) wrenches times a factor."""
    if model.inputs.custom:
        extra[:] = hold + custom_actuation(model, q) @ u
    called = model.surroundings.called
    if called:
        first = len(model.loads.wrench)
        load[first : first + len(called)] = factor * called_wrenches(model, q[None], v[None], t)[0]


def python_response(
    model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float, factor: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """What these forces add to the derivatives of the residual with respect to q, in the tangent space, and v, by
    central differences; each (nv, nv)."""
    by_q, by_v = np.zeros((2, model.nv, model.nv))
    if model.surroundings.called:
        by_q, by_v = (factor * response for response in called_response(model, q, v, t))
    if model.inputs.custom:
        by_q = by_q - _custom_actuation_derivative(model, q, u)
    return by_q, by_v


def python_responses(
    model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: Times, factor: float = 1.0
) -> np.ndarray:
    """The same of many states (n, ...) at one time or at a time for each: by q and by v, (2, n, nv, nv)."""
    times = np.broadcast_to(np.asarray(t, dtype=np.float64), len(q)).tolist()
    rows = [python_response(model, *state, factor) for state in zip(q, v, u, times)]
    return np.swapaxes(np.array(rows), 0, 1)


def _custom_actuation_derivative(model: Model, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """∂(B(q) u)/∂q of the users' own actuators, by central differences in the tangent space; shape (nv, nv)."""
    moves = _DIFFERENCE_STEP * np.diag(model.dofs.scale)
    ahead, behind = (
        np.array([custom_actuation(model, row) @ u for row in integrate(model, q, sign * moves)]) for sign in (1, -1)
    )
    return ((ahead - behind) / (2.0 * np.diag(moves)[:, None])).T
