"""Momentum and centre of mass of a robot, from the sums over its masses that its energy needs too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lissom.dynamics.energy import mass_sums
from lissom.errors import ModelError
from lissom.launch.over_models import over_models
from lissom.launch.workspace import filled
from lissom.model.model import Model

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@over_models("q", "v", together=True)
def momentum(model: Model, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Angular momentum about the world's origin and linear momentum of the whole robot, in the world's axes.

        (L; p) = Σ Ad_g⁻ᵀ M η,   d(L; p)/dt = Σ (x × F + C; F) over all that acts from outside

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
    Returns:
        Momentum, shape (..., 6), angular first [kg·m²/s, kg·m/s].
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: as inverse_dynamics. Cost: O(nodes).
    Source: the sum of M η over the nodes, taken to the world as a wrench is.
    """
    w, lead = filled(model, "energy", mass_sums, ("q", "v"), q, v)
    w.run()
    w.raise_for_status()
    return w.result("out", lead, 12)[..., 3:9].copy()


@over_models("q", together=True)
def center_of_mass(model: Model, q: ArrayLike) -> np.ndarray:
    """Centre of mass of the whole robot in the world.

    Args:
        q: configuration, shape (..., nq).
    Returns:
        Position, shape (..., 3) [m].
    Raises:
        ModelError: the robot has no mass.
        ShapeError: the argument, the expected and the received shape.
    Accuracy: as inverse_dynamics. Cost: O(nodes).
    """
    w, lead = filled(model, "center_of_mass", mass_sums, ("q",), q)  # its own workspace: v stays zero there
    mass = np.atleast_1d(model.by_row(_mass, w.batch))
    w.run()
    w.raise_for_status()
    return w.result("out", lead, 12)[..., 9:] / (mass.reshape(*lead, 1) if len(mass) > 1 else mass)


def _mass(model: Model) -> float:
    mass = float(model.links.mass.sum())
    if not mass > 0.0:
        raise ModelError(f"robot {model.name!r}: a centre of mass needs a mass > 0 (got {mass!r})")
    return mass
