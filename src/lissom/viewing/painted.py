"""Quantities that are painted on a robot, as bands of one colour each: a mesh of a viewer has one colour."""

from __future__ import annotations

from typing import final

import numpy as np

from lissom.dynamics.forward_dynamics import forward_dynamics
from lissom.dynamics.internal_wrench import internal_wrench
from lissom.errors import ModelError, ShapeError
from lissom.viewing.surfaces import Geometry

# quantity: its unit. Strain is that of a fibre along the rod, at the vertex; tension that of whole sections.
QUANTITIES = {"strain": "-", "curvature": "1/m", "torsion": "1/m", "stretch": "-", "tension": "N", "speed": "m/s"}
BANDS = 16
# Viridis, told apart by everybody and in grey: S. van der Walt and N. Smith, 2015.
_RAMP = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], dtype=np.float64)


def ramp(part: np.ndarray) -> np.ndarray:
    """Colours (n, 3), 0 to 255, of parts (n,) of the scale, 0 to 1."""
    at, knots = np.clip(part, 0.0, 1.0), np.linspace(0.0, 1.0, len(_RAMP))
    return np.stack([np.interp(at, knots, column) for column in _RAMP.T], axis=-1).round().astype(np.uint8)


def painted_values(
    geometry: Geometry, quantity: str, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float
) -> np.ndarray:
    """The quantity at all points of a geometry, shape (P,); NaN where there is none."""
    if quantity == "speed":
        return geometry.speeds(q, v)
    model = geometry.model
    if quantity == "tension":
        return _tensions(geometry, q, v, u, t)
    xi, reference = geometry.strains(q), geometry.strains(np.zeros_like(q))
    kappa_x, kappa_y, kappa_z, along, _, _ = np.moveaxis(xi - reference, -1, 0)
    if quantity == "curvature":
        return np.hypot(kappa_y, kappa_z)
    if quantity == "torsion":
        return kappa_x
    if quantity == "stretch":
        return along
    if quantity == "strain":
        _, y, z = geometry.local.T
        return along + kappa_y * z - kappa_z * y
    raise ModelError(f"painting: must be one of {tuple(QUANTITIES)} on robot {model.name!r} (got {quantity!r})")


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


@final
class Scale:
    """The ends of a scale of colours, which grow with what is seen and shrink when they are begun anew."""

    def __init__(self, quantity: str) -> None:
        self.quantity, self.unit = quantity, QUANTITIES[quantity]
        self.low, self.high = np.inf, -np.inf

    def take_in(self, values: np.ndarray) -> None:
        """Let the ends reach over values."""
        seen = values[np.isfinite(values)]
        if len(seen):
            self.low, self.high = min(self.low, float(seen.min())), max(self.high, float(seen.max()))

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value."""
        if not np.isfinite(self.low):
            return 0.0, 1.0
        return (self.low, self.high) if self.high > self.low else (self.low - 0.5, self.high + 0.5)

    def bands(self, values: np.ndarray) -> np.ndarray:
        """The band of each value, -1 for NaN."""
        low, high = self.ends
        found = np.clip((np.nan_to_num(values, nan=low) - low) / (high - low) * BANDS, 0, BANDS - 1).astype(int)
        return np.where(np.isfinite(values), found, -1)


def banded(
    quads: np.ndarray, points: np.ndarray, values: np.ndarray, scale: Scale
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The quadrilaterals (m, 4) over points (P, 3) of each band: vertices, and triangles of these."""
    of_each = scale.bands(values[quads].mean(axis=1))
    found = []
    for band in range(BANDS):
        used, numbers = np.unique(quads[of_each == band], return_inverse=True)
        a, b, c, d = numbers.reshape(-1, 4).T
        faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)[c != d]])
        found.append((points[used], faces))
    return found
