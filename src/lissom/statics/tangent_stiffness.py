"""The tangent stiffness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lissom.dynamics.configuration import checked_configuration
from lissom.dynamics.forward_dynamics import input_rows
from lissom.dynamics.steady_motion import in_motion, moving_velocity
from lissom.errors import ShapeError
from lissom.launch.over_models import over_models
from lissom.launch.workspace import batch_of, leading
from lissom.model.model import Model
from lissom.statics.residual import residual_jacobian

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@over_models("q", "u", "v")
def tangent_stiffness(
    model: Model, q: ArrayLike, u: ArrayLike | None = None, *, v: ArrayLike | None = None, t: float = 0.0
) -> np.ndarray:
    """Tangent stiffness: the derivative of the residual of statics along the tangent space.

        ∂(ID(q, v, 0) − B(q) u)/∂q

    Args:
        q: configuration, shape (..., nq). u: inputs, shape (..., nu); None is zero.
        v: as in solve_statics: None takes the speed of prescribed motions at t, zeros are rest.
        t: time of loads and prescribed motions [s].
    Returns:
        shape (..., nv, nv); symmetric where gravity and loads are conservative and at equilibrium. Rows and columns of
        prescribed coordinates, and of those that v moves, are those of the identity.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: exact derivative of the discrete model; a user's own actuator is differenced.
    """
    rows, inputs = checked_configuration(model, "q", q), input_rows(model, u)
    if not np.isfinite(inputs).all():
        raise ShapeError("u: must be finite, got NaN or infinity")
    model = in_motion(model, moving_velocity(model, v, t))
    lead = leading(q=rows, u=inputs)
    flat = (np.broadcast_to(x, lead + x.shape[-1:]).reshape(batch_of(lead), x.shape[-1]) for x in (rows, inputs))
    found = [residual_jacobian(model, row, given, t)[0] for row, given in zip(*flat)]
    return np.array(found).reshape(*lead, model.nv, model.nv)
