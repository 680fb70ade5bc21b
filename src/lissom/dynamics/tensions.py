"""What inputs do where tendons are elastic: tensions, generalised forces, and their answer to the inputs.

T = max(0, k (L − L₀ + u))   of an elastic tendon,   T = u of another                                 (1)
B T,   ∂(B T)/∂u = B where a tendon is not elastic, k B where an elastic one is taut, 0 where it is slack      (2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lissom.dynamics.actuation import actuation_matrix, custom_actuation, run_actuation, weighted_actuation
from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.forward_dynamics import input_rows
from lissom.forces.tendons import BEGINS_TO_PULL
from lissom.launch.over_models import over_models
from lissom.launch.workspace import leading, require_finite_rows, stack
from lissom.model.model import Model

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def channel_sizes(model: Model, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Tensions by (1) [N], pressures [Pa] and sizes of wrenches under inputs, shape (..., n_channels)."""
    lead = np.broadcast_shapes(q.shape[:-1], u.shape[:-1])
    size = np.broadcast_to(u @ model.channels.gain.T, (*lead, len(model.channels.names))).copy()
    if len(model.spools.channel):
        size[..., model.spools.channel] = model.spools.stiffness * np.maximum(0.0, _stretch(model, q, u))
    return size


def _stretch(model: Model, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """L − L₀ + u of the elastic tendons, negative where they are slack, shape (..., n)."""
    w, lead = run_actuation(model, q)
    c = model.spools.channel
    return (
        w.result("length", lead, len(model.channels.names))[..., c] - model.spools.slack + u @ model.channels.gain[c].T
    )


@over_models("q", "u")
def tendon_tensions(model: Model, q: ArrayLike, u: ArrayLike | None = None) -> np.ndarray:
    """Tensions of the tendons under given inputs [N], in the order added.

    Args:
        q: configuration, shape (..., nq). u: inputs, shape (..., nu); None is zero.
    Returns:
        T, shape (..., n_tendons): max(0, k (L − L₀ + u)) of an elastic tendon; of another its input, as it is given.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    q, u = stack("q", q, model.nq), input_rows(model, u)
    leading(q=q, u=u)
    require_finite_rows(q=q, u=u)
    q = checked_configuration(model, "q", q)
    return channel_sizes(model, q, u)[..., model.channels.is_tendon]


def input_force(model: Model, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Generalised force of all inputs, B T of (2), of states (n, ...); shape (n, nv)."""
    if not len(model.spools.channel):
        return np.einsum("nij,nj->ni", actuation_matrix(model, q), u)
    w, lead = run_actuation(model, q)
    B = w.result("B", lead, len(model.channels.names), model.nv)
    force = np.einsum("nci,nc->ni", B, channel_sizes(model, q, u)) + u @ model.inputs.joint_gain.T
    if model.inputs.custom:
        force += np.array([custom_actuation(model, row) @ given for row, given in zip(q, u)])
    return force


def input_response(model: Model, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """By how much the generalised force grows with the inputs, (2), shape (..., nv, nu)."""
    if not len(model.spools.channel):
        return actuation_matrix(model, q)
    taut = _stretch(model, q, u) > -BEGINS_TO_PULL * model.spools.slack
    size = np.ones((*taut.shape[:-1], len(model.channels.names)))
    size[..., model.spools.channel] = taut * model.spools.stiffness
    return weighted_actuation(model, q, size)
