"""Quantities that colours show on a robot, and the colours that show them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.dynamics.forward_dynamics import forward_dynamics
from lissom.dynamics.internal_wrench import internal_wrench
from lissom.errors import ModelError, ShapeError
from lissom.robot.bases import STRAINS
from lissom.viewing.surfaces import Geometry

# Quantity: its unit. The first group are strains of the section, whose curvature is the size of both bendings; strain
# is that of the fibre at the vertex, along the rod, against the rod without stress; tension is that of whole sections.
OF_SHAPE = {
    "curvature": "rad/m", "torsion": "rad/m", "bending_y": "rad/m", "bending_z": "rad/m",
    "elongation": "-", "shear_y": "-", "shear_z": "-", "strain": "-",
}  # fmt: skip
OF_MOTION = {"tension": "N", "speed": "m/s"}
QUANTITIES = OF_SHAPE | OF_MOTION
# Viridis, told apart by everybody and in grey: S. van der Walt and N. Smith, 2015. Its darkest end is left out.
_RAMP = np.array([[72, 29, 111], [66, 64, 134], [53, 95, 141], [41, 122, 142], [32, 147, 140], [39, 173, 129],
                  [84, 197, 104], [149, 216, 64], [223, 227, 24]]) / 255.0  # fmt: skip


def ramp(part: Any) -> np.ndarray:
    """Colours (..., 3), 0 to 1, of parts (...) of the scale, 0 to 1."""
    at, knots = np.clip(part, 0.0, 1.0), np.linspace(0.0, 1.0, len(_RAMP))
    return np.stack([np.interp(at, knots, column) for column in _RAMP.T], axis=-1)


def rgb_bytes(part: Any) -> np.ndarray:
    """The same colours as whole numbers, 0 to 255."""
    return (255.0 * ramp(part)).round().astype(np.uint8)


def of_shape(geometry: Geometry, quantity: str, q: np.ndarray) -> np.ndarray:
    """A quantity of OF_SHAPE at all points of a geometry and configurations (..., nq); NaN where there is none."""
    xi = geometry.strains(q)
    if quantity == "curvature":
        return np.hypot(xi[..., 1], xi[..., 2])
    if quantity == "elongation":
        return xi[..., 3] - 1.0
    if quantity != "strain":
        return xi[..., STRAINS.index(quantity)]
    _, kappa_y, kappa_z, along, _, _ = np.moveaxis(xi - geometry.strains(np.zeros_like(q)), -1, 0)
    _, y, z = geometry.local.T
    return along + kappa_y * z - kappa_z * y


def of_state(geometry: Geometry, quantity: str, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float) -> np.ndarray:
    """Any quantity at all points of a geometry in one state, shape (P,); NaN where there is none."""
    if quantity == "speed":
        return geometry.speeds(q, v)
    if quantity == "tension":
        return _tensions(geometry, q, v, u, t)
    if quantity not in OF_SHAPE:
        raise ModelError(f"paint: must be one of {sorted(QUANTITIES)} on robot {geometry.model.name!r} "
                         f"(got {quantity!r})")  # fmt: skip
    return of_shape(geometry, quantity, q)


def _tensions(geometry: Geometry, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float) -> np.ndarray:
    """The force along the rod that its sections carry, with what runs in them; NaN where the state has none."""
    model = geometry.model
    out, start = np.full(len(geometry.frame), np.nan), model.n_nodes + 1
    for stretch in geometry.stretches:
        try:
            a = forward_dynamics(model, q, v, u, t) if v.any() else None
            carried = internal_wrench(model, q, v, a, u, stretch.link, stretch.s, t=t).total[:, 3]
        except (ModelError, ShapeError):
            carried = np.full(len(stretch.s), np.nan)
        here = (geometry.frame >= start) & (geometry.frame < start + len(stretch.s))
        out[here] = carried[geometry.frame[here] - start]
        start += len(stretch.s)
    return out
