"""The state of motion about which small motions and relative equilibria are taken, and how increments turn with it.

A nominal motion moves the tangent space of `integrate` along. For a pose g = g₀ exp(δ) with ġ = g (v + δv)^,

    dδ/dt = δv − ad_v δ      (δω − ω × δ for a spherical joint, δv for coordinates that add)              (1)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lissom.dynamics.configuration import groups
from lissom.errors import ShapeError
from lissom.model.model import Model
from lissom.robot import checks


def moving_velocity(model: Model, v: Any, t: float) -> np.ndarray:
    """v (nv,); where it is None prescribed joints have the velocity of their motions at time t, and the others none."""
    if v is None:
        rate = np.zeros(model.nv)
        if model.n_motions:
            rate[model.prescribed.dof] = model.motions(t)[1]
        return rate
    rate = np.asarray(v, dtype=float)
    if rate.shape != (model.nv,) or not np.isfinite(rate).all():
        raise ShapeError(f"v: expected finite values of shape ({model.nv},), got {v!r}")
    return rate.copy()


def in_motion(model: Model, v: np.ndarray) -> Model:
    """The model about whose steady motion v equilibria are sought: prescribed joints move so, and other coordinates
    with a velocity are held as if they had a motion, spherical and free joints whole; itself where nothing moves."""
    if not v.any():
        return model
    moving = v != 0.0
    for _, j, free in groups(model):
        joint = slice(j, j + 6 if free else j + 3)
        moving[joint] = moving[joint].any()
    moving[model.prescribed.dof] = False
    held = np.flatnonzero(moving)
    _keep_shape(model, held, v)
    if len(held):
        model = model.cached(("held", tuple(held.tolist())), lambda: model.with_locked(held, None))
    return replace(model, prescribed=replace(model.prescribed, steady=v))


def _keep_shape(model: Model, held: np.ndarray, v: np.ndarray) -> None:
    """Raise ModelError where a rod is to change its shape steadily."""
    for j in held.tolist():
        k = int(np.searchsorted(model.links.v_start, j, side="right")) - 1
        of_joint = j < int(model.links.v_start[k]) + model.links.joint[k].nv
        rule = f"must be zero for the shape of link {model.links.names[k]!r}, which a steady motion keeps"
        checks.require(of_joint, f"v[{j}]", rule, float(v[j]))


def steady_velocity(model: Model, factor: float = 1.0) -> np.ndarray:
    """Velocity (nv,) of a model of in_motion, slowed so that inertia forces have a factor of theirs."""
    return np.zeros(model.nv) if model.prescribed.steady is None else np.sqrt(factor) * model.prescribed.steady


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
