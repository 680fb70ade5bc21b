"""Parts that the imports of URDF and MJCF share: drawn shapes, the repair of inertias, and warnings about the parts of
a file that the robot does not have.

A body of density ρ with the second moments s_k = ∫ ρ x_k² dV >= 0 about its centre of mass has the principal moments

    I_k = Σ_j s_j − s_k                                                                                    (1)

`load_urdf` and `load_mjcf` have the same keywords: `base`, `motors`, `balls`, `limit_stiffness`, `limit_damping`,
`packages` and `strict`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, final

import numpy as np

from lissom.errors import LeftOutWarning, ModelError, PartsWarning, RepairWarning
from lissom.robot.meshes import Mesh
from lissom.robot.shapes import Shape

_SUMS = 1.0 - np.eye(3)  # (1)
_ROUNDING = 1e-9  # a change of an inertia that is no finding, relative to its largest moment
_NOTHING = 1e-12  # the same, relative to the largest moment of all bodies of a file
_SHAPES = 1024  # number of shapes whose meshes are cached
_SHOWN_PLACES = 3  # largest number of places that a warning names for each kind
_SHOWN_REPAIRS = 8  # largest number of repairs that a warning names


def nearest_inertia(inertia: np.ndarray) -> tuple[np.ndarray, float]:
    """The inertia of a body that is nearest to a symmetric matrix, and its distance.

    Args:
        inertia: symmetric matrix about the centre of mass, shape (3, 3) [kg·m²].
    Returns:
        The nearest matrix with the moments (1), the same array if it has them already, and the Frobenius norm of the
        difference [kg·m²].
    """
    low, middle, high = np.linalg.eigvalsh(inertia).tolist()
    if low + middle >= high:
        return inertia, 0.0
    from scipy.optimize import nnls

    moments, axes = np.linalg.eigh(inertia)
    second, gap = nnls(_SUMS, moments)
    nearest = (axes * (_SUMS @ second)) @ axes.T
    return 0.5 * (nearest + nearest.T), float(gap)


@lru_cache(maxsize=_SHAPES)
def check_shape(shape: Shape, where: str) -> None:
    """Raise ModelError if a dimension or a direction of the shape is invalid."""
    shape.surface(where)


def shape_mesh(shape: Shape, placement: Any = None, color: Any = None) -> Mesh:
    """The mesh that is drawn for a shape at a pose (4, 4) in the body's frame."""
    drawn = _own_mesh(shape)
    return Mesh(vertices=drawn.vertices, triangles=drawn.triangles, placement=placement, color=color)


@lru_cache(maxsize=_SHAPES)
def _own_mesh(shape: Shape) -> Mesh:
    return Mesh.of_shape(shape)


@final
class Findings:
    """Parts of a file that the robot does not have, by kind and place, and numbers that were repaired.

    Args:
        source: name of the file.
        strict: whether wrong parts and numbers are errors.
    """

    def __init__(self, source: str, strict: bool = False) -> None:
        self.source, self.strict = source, strict
        self._places: dict[str, list[str]] = {}
        self._repairs: list[str] = []

    def left_out(self, kind: str, place: str) -> None:
        """Add a part of a kind, at a place in the file."""
        self._places.setdefault(kind, []).append(place)

    def overlooked(self, error: ModelError, kind: str, place: str) -> None:
        """Add a wrong part that is left out. Raises the error if the reader is strict."""
        if self.strict:
            raise error
        self.left_out(kind, place)

    def repaired(self, error: ModelError, change: str) -> None:
        """Add a repaired number: its name and the size of its correction. Raises the error if the reader is strict."""
        if self.strict:
            raise error
        self._repairs.append(change)

    def inertia(self, matrix: np.ndarray, name: str, largest: float = 0.0) -> np.ndarray:
        """The inertia of a body that is nearest to a symmetric matrix (3, 3). A strict reader gets the matrix itself,
        which `RigidBody.check` refuses, unless the change is rounding.

        Args:
            name: name of its link.
            largest: largest moment of all bodies of the file [kg·m²].
        """
        nearest, gap = nearest_inertia(matrix)
        if gap == 0.0:
            return nearest
        size = float(np.abs(matrix).max())
        if gap <= max(_ROUNDING * size, _NOTHING * largest):
            return nearest
        if self.strict:
            return matrix
        self._repairs.append(f"inertia of {name!r} by {gap:.2g} kg·m² ({100.0 * gap / size:.2g} %)")
        return nearest

    def color(
        self, rgba: np.ndarray, given: np.ndarray, error: Callable[[str], ModelError], place: str
    ) -> tuple[float, ...]:
        """The color (4,) nearest to `rgba` whose numbers are from 0 to 1. It is a repair if it is not the given one.

        Args:
            given: numbers of the file, shape (4,).
            error: makes a ModelError of a message.
            place: name of the element.
        """
        nearest = np.clip(rgba, 0.0, 1.0)
        if np.any(nearest != given):
            shown = ", ".join(f"{x:.4g}" for x in given)
            rule = error(f"a color must have numbers from 0 to 1 (got {shown})")
            self.repaired(rule, f"color of {place} from ({shown}) to ({', '.join(f'{x:.4g}' for x in nearest)})")
        return tuple(nearest.tolist())

    def rows(self) -> tuple[str, ...]:
        """All parts that were left out, each with its kind."""
        return tuple(f"{kind} of {place}" for kind, places in self._places.items() for place in places)

    def warn(self) -> None:
        """Issue one warning about the parts that were left out, and one about repairs."""
        if self._places:
            kinds = [f"{kind} of {listed(places, _SHOWN_PLACES)}" for kind, places in self._places.items()]
            self._warn(LeftOutWarning, f"left out: {'; '.join(kinds)}", list(self.rows()))
        if self._repairs:
            text = f"repaired numbers that no part can have: {listed(self._repairs, _SHOWN_REPAIRS)}"
            self._warn(RepairWarning, f"{text}; strict=True refuses them", self._repairs)

    def _warn(self, kind: type[PartsWarning], text: str, rows: list[str]) -> None:
        warnings.warn(kind(f"{self.source}: {text}", "\n".join(rows)), stacklevel=4)


def listed(places: list[str], shown: int) -> str:
    """The first of some places, and the number of the others."""
    more = len(places) - shown
    return ", ".join(places[:shown]) + (f" and {more} more" if more > 0 else "")
