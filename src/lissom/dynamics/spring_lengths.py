"""Lengths of springs between points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lissom.dynamics.kinematics import forward_kinematics
from lissom.launch.over_models import over_models
from lissom.model.model import Model

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@over_models("q")
def spring_lengths(model: Model, q: ArrayLike) -> np.ndarray:
    """Lengths of the springs between points [m], in the order added, shape (..., n_springs).

    Args:
        q: configuration, shape (..., nq).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    """
    springs, g = model.springs, forward_kinematics(model, q)
    world = np.broadcast_to(np.eye(4), (*g.shape[:-3], 1, 4, 4))
    here = np.concatenate([g, world], axis=-3)[..., springs.node, :, :]  # node -1 is the last
    ends = np.einsum("...ij,...j->...i", here[..., :3, :3], springs.position) + here[..., :3, 3]
    return np.linalg.norm(ends[..., 1, :] - ends[..., 0, :], axis=-1)
