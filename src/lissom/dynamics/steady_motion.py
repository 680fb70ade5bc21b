"""The state of motion about which small motions and relative equilibria are taken, and how increments turn with it.

A nominal motion moves the tangent space of `integrate` along. For a pose g = g₀ exp(δ) with ġ = g (v + δv)^,

    dδ/dt = δv − ad_v δ      (δω − ω × δ for a spherical joint, δv for coordinates that add)              (1)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.dynamics.configuration import groups
from lissom.errors import ShapeError
from lissom.model.model import Model


def moving_state(model: Model, v: Any, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and acceleration (nv,): as the prescribed motions have them at time t, the others at rest, where v is
    None; otherwise v, kept up."""
    rate, growth = np.zeros(model.nv), np.zeros(model.nv)
    if v is None:
        if model.n_motions:
            _, rate[model.motion_dof], growth[model.motion_dof] = model.motions(t)
        return rate, growth
    rate = np.asarray(v, dtype=float)
    if rate.shape != (model.nv,) or not np.isfinite(rate).all():
        raise ShapeError(f"v: expected finite values of shape ({model.nv},), got {v!r}")
    return rate.copy(), growth


def carried(model: Model, v: np.ndarray) -> np.ndarray:
    """The matrix ad_v of (1), shape (nv, nv), zero but for spherical and free joints."""
    turn = np.zeros((model.nv, model.nv))
    for _, j, free in groups(model):
        spin = _cross_matrix(v[j : j + 3])
        turn[j : j + 3, j : j + 3] = spin
        if free:
            turn[j + 3 : j + 6, j + 3 : j + 6] = spin
            turn[j + 3 : j + 6, j : j + 3] = _cross_matrix(v[j + 3 : j + 6])
    return turn


def _cross_matrix(w: np.ndarray) -> np.ndarray:
    """w^ with w^ x = w × x."""
    return np.cross(w, np.eye(3)).T
