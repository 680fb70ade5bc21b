"""Colours of pictures, graphs and the live view, and the quantities that colours show on a robot."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from lissom.dynamics.forward_dynamics import forward_dynamics
from lissom.dynamics.internal_wrench import internal_wrench
from lissom.errors import ModelError, ShapeError
from lissom.robot.bases import STRAINS
from lissom.robot.materials import Material
from lissom.viewing.geometry import Geometry


def rgb(color: str) -> np.ndarray:
    """Red, green and blue from 0 to 1 of "#rrggbb"."""
    return np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0


INK, FAINT, GRID = "#333333", "#b8bcc4", "#e6e8ec"  # colours of text, of frames and ticks, of grid lines
# Okabe and Ito's colours, distinct for colour-blind readers; neighbours differ in lightness, for print
SERIES = ("#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#8c6d00", "#6b6f76")
PALETTE = tuple(rgb(color) for color in SERIES)
COLOR_LEVELS = 16  # number of levels in the live view, where each mesh has one colour
# Quantity: its unit. The first group are strains of the section, whose curvature is the size of both bendings; strain
# is that of the fibre at the vertex, along the rod, against the rod without stress, and stress its elastic stress, of
# rods with a material; tension is that of whole sections.
SHAPE_QUANTITIES = {
    "curvature": "rad/m", "torsion": "rad/m", "bending_y": "rad/m", "bending_z": "rad/m",
    "elongation": "-", "shear_y": "-", "shear_z": "-", "strain": "-", "stress": "Pa",
}  # fmt: skip
QUANTITIES = SHAPE_QUANTITIES | {"tension": "N", "speed": "m/s"}
# Viridis (S. van der Walt and N. Smith, 2015) without its darkest end; distinct for colour-blind readers and in grey
_RAMP = np.array([[72, 29, 111], [66, 64, 134], [53, 95, 141], [41, 122, 142], [32, 147, 140], [39, 173, 129],
                  [84, 197, 104], [149, 216, 64], [223, 227, 24]]) / 255.0  # fmt: skip


def ramp(part: Any) -> np.ndarray:
    """Colours (..., 3) from 0 to 1 of fractions (...) of the scale from 0 to 1."""
    at, knots = np.clip(part, 0.0, 1.0), np.linspace(0.0, 1.0, len(_RAMP))
    return np.stack([np.interp(at, knots, column) for column in _RAMP.T], axis=-1)


def rgb_bytes(part: Any) -> np.ndarray:
    """Colours of `ramp` as integers from 0 to 255."""
    return (255.0 * ramp(part)).round().astype(np.uint8)


def shape_values(geometry: Geometry, quantity: str, q: np.ndarray) -> np.ndarray:
    """One of SHAPE_QUANTITIES at all points of a geometry and configurations (..., nq); NaN where undefined."""
    if quantity == "stress":
        return shape_values(geometry, "strain", q) * _young(geometry)
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


def _young(geometry: Geometry) -> np.ndarray:
    """Young's modulus (P,) at all points of rods [Pa]; NaN for bodies without a material of one modulus."""
    out, links = np.full(len(geometry.frame), np.nan), geometry.model.description.links
    for mesh in geometry.meshes:
        body = links[mesh.link].body if mesh.link in links else None
        material = getattr(body, "material", None)
        if mesh.kind == "rod" and isinstance(material, Material):
            out[mesh.rows] = material.young
    return out


def state_values(
    geometry: Geometry, quantity: str, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float
) -> np.ndarray:
    """One of QUANTITIES at all points of a geometry in one state, shape (P,); NaN where undefined."""
    if quantity == "speed":
        return geometry.speeds(q, v)
    if quantity == "tension":
        return _tensions(geometry, q, v, u, t)
    if quantity not in SHAPE_QUANTITIES:
        raise ModelError(f"paint: must be one of {sorted(QUANTITIES)} on robot {geometry.model.name!r} "
                         f"(got {quantity!r})")  # fmt: skip
    return shape_values(geometry, quantity, q)


def _tensions(geometry: Geometry, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float) -> np.ndarray:
    """Axial force in the sections of rods, tendons and chambers included; NaN where the state defines none."""
    model = geometry.model
    out, start = np.full(len(geometry.frame), np.nan), model.n_nodes + 1
    for part in geometry.sections:
        try:
            a = forward_dynamics(model, q, v, u, t) if v.any() else None
            carried = internal_wrench(model, q, v, a, u, part.link, part.s, t=t).total[:, 3]
        except (ModelError, ShapeError):
            carried = np.full(len(part.s), np.nan)
        here = (geometry.frame >= start) & (geometry.frame < start + len(part.s))
        out[here] = carried[geometry.frame[here] - start]
        start += len(part.s)
    return out


def readable(most: float, unit: str) -> tuple[float, str]:
    """The factor and the unit, such as 1e-3 and kN, with which values of a unit up to `most` are short numbers."""
    if unit in ("N", "Pa"):
        for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (0.1, ""), (1e-4, "m")):
            if most >= size:
                step = {"": 1.0, "m": 1e-3}.get(prefix, size)
                return 1.0 / step, f"{prefix}{unit}"
    return 1.0, unit


@final
class ColorScale:
    """Range of a quantity that colours show. Values outside widen the range; a new scale is empty."""

    def __init__(self, quantity: str) -> None:
        self.quantity, self.unit = quantity, QUANTITIES[quantity]
        self.low, self.high = np.inf, -np.inf

    def include(self, values: np.ndarray) -> None:
        """Widen the range to hold finite values."""
        seen = values[np.isfinite(values)]
        if len(seen):
            self.low, self.high = min(self.low, float(seen.min())), max(self.high, float(seen.max()))

    @property
    def label(self) -> tuple[str, float]:
        """The text at a bar of colours, and the factor of the numbers there."""
        factor, unit = readable(max(map(abs, self.ends)), self.unit)
        return f"{self.quantity} [{unit}]", factor

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end of the range."""
        if not np.isfinite(self.low):
            return 0.0, 1.0
        return (self.low, self.high) if self.high > self.low else (self.low - 0.5, self.high + 0.5)

    def fractions(self, values: np.ndarray) -> np.ndarray:
        """Position of each value between the ends of the range, 0 to 1; 0 for NaN."""
        low, high = self.ends
        return (np.nan_to_num(values, nan=low) - low) / (high - low)

    def levels(self, values: np.ndarray) -> np.ndarray:
        """Level of each value, -1 for NaN."""
        found = np.clip(COLOR_LEVELS * self.fractions(values), 0, COLOR_LEVELS - 1).astype(int)
        return np.where(np.isfinite(values), found, -1)


def facets_by_level(
    quads: np.ndarray, points: np.ndarray, values: np.ndarray, scale: ColorScale
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Vertices and triangles of each colour level, from quadrilaterals (m, 4) over points (P, 3); the mean of its
    corners' values decides the level of a quadrilateral."""
    level = scale.levels(values[quads].mean(axis=1))
    found = []
    for k in range(COLOR_LEVELS):
        used, numbers = np.unique(quads[level == k], return_inverse=True)
        a, b, c, d = numbers.reshape(-1, 4).T
        faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)[c != d]])
        found.append((points[used], faces))
    return found
