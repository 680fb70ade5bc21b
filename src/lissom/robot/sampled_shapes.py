"""Obstacle shapes of any form: meshes, convex hulls, functions and height fields.

`model.distance_grids` samples the signed distance of a mesh, a hull or a function on a grid. A tensor product of cubic
B-splines through the samples has continuous second derivatives. It rounds edges and corners within about two cells.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.fields import FunctionOfPoint, Numbers
from lissom.robot.functions import at_points
from lissom.robot.meshes import Mesh, convex_hull, fault_of_surface
from lissom.robot.shapes import Shape, ShapeKind, Surface

FINEST = 512  # cells along the longest side
_DRAWN = 40  # cells along the longest side of a surface that is drawn
_ROWS = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])  # an axis and the two after it
_SLOPES = (0.9, 1.1)  # of a distance function near its surface
_SMALLER = 0.6  # box along the faces of a mesh that is worth turning the grid, as a part of the box along the axes
_SIDES = {"middle": 0.0, "front": 1.0, "back": -1.0}  # of a shell


class Solid(NamedTuple):
    """Triangles of a surface: vertices (n, 3) [m], rows of three vertices (m, 3), and the thickness of a shell [m], 0
    for a closed surface, whose triangles are counter-clockwise seen from outside. rotation: (3, 3) from the frame of
    the vertices, that of the grid, to the frame of the shape."""

    vertices: np.ndarray
    triangles: np.ndarray
    thickness: float
    rotation: np.ndarray


class SampledShape(Shape):
    """A shape whose distance is sampled on a grid.

    Law: `bounds` contain the surface, in the frame of the grid, which `surface` turns to that of the shape. No side of
    a cell is longer than a part 1/`resolution` of the longest side of the bounds.
    """

    resolution: int

    @abstractmethod
    def bounds(self, where: str) -> tuple[np.ndarray, np.ndarray]:
        """Corners (3,) of the box around the surface [m].

        Raises:
            ModelError: the bounds or another field of the shape are invalid.
        """

    def surface(self, where: str) -> Surface:
        checks.integer(self.resolution, f"{where}: resolution", least=8, most=FINEST)
        self.bounds(where)
        return Surface(ShapeKind.GRID, (0.0, 0.0, 0.0), np.eye(3))

    def spacing(self, where: str) -> float:
        """Longest side of a cell of the grid [m]."""
        low, high = self.bounds(where)
        return float((high - low).max()) / self.resolution


class TriangulatedShape(SampledShape):
    """A shape whose surface consists of triangles."""

    @abstractmethod
    def solid(self, where: str) -> Solid:
        """Its triangles.

        Raises:
            ModelError: the triangles bound no volume, or cannot be read.
        """

    def surface(self, where: str) -> Surface:
        return super().surface(where)._replace(rotation=self.solid(where).rotation)

    def bounds(self, where: str) -> tuple[np.ndarray, np.ndarray]:
        vertices, _, thickness, _ = self.solid(where)
        return vertices.min(axis=0) - 0.5 * thickness, vertices.max(axis=0) + 0.5 * thickness

    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        vertices, triangles, *_ = self.solid("shape")
        return vertices[triangles[:, [0, 1, 2, 2]]]


@final
@dataclass(frozen=True, eq=False)
class ShapeMesh(TriangulatedShape):
    """Solid body inside a closed mesh, or a shell around an open one.

    The mesh may have several parts, holes through it and cavities. Parts whose triangles are all turned inside out are
    turned back.

    Args:
        mesh: vertices and triangles, or a file.
        resolution: number of grid cells along the longest side of the mesh, 8 to 512. Cells across thin parts are
            smaller. Edges and corners are rounded within two cells.
        thickness: thickness of a shell on the triangles [m]; None for the body inside.
        side: where the shell lies: "middle", half of it on each side of the triangles; "front", on the side from which
            the triangles are counter-clockwise; or "back".
    """

    mesh: Mesh
    resolution: int = 64
    thickness: float | None = None
    side: str = "middle"

    def check(self, where: str) -> None:
        checks.require(isinstance(self.mesh, Mesh), f"{where}: mesh", "must be a Mesh", self.mesh)
        self.mesh.check(f"{where} > mesh")
        checks.integer(self.resolution, f"{where}: resolution", least=8, most=FINEST)

    def solid(self, where: str) -> Solid:
        checks.require(isinstance(self.mesh, Mesh), f"{where}: mesh", "must be a Mesh", self.mesh)
        checks.require(self.side in _SIDES, f"{where}: side", f"must be one of {list(_SIDES)}", self.side)
        try:
            *_, fault = self._surface
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from error
        if self.thickness is not None:
            checks.number(self.thickness, f"{where}: thickness", above=0.0)
        elif fault:
            raise ModelError(f"{where}: mesh {fault}")
        return self._solid

    @property
    def fault(self) -> str:
        """The reason why the mesh bounds no volume; empty if it bounds one."""
        return self._surface[2]

    @cached_property
    def _surface(self) -> tuple[np.ndarray, np.ndarray, str]:
        """Vertices, triangles turned outwards, and the reason why they bound no volume."""
        self.mesh.check("mesh")
        vertices, triangles = self.mesh.surface()
        return vertices, triangles, fault_of_surface(vertices, triangles)

    @cached_property
    def _solid(self) -> Solid:
        vertices, triangles, _ = self._surface
        if self.thickness is not None and self.side != "middle":
            vertices = _moved_along_normals(vertices, triangles, 0.5 * _SIDES[self.side] * self.thickness)
        return _along_faces(vertices, triangles, self.thickness or 0.0)


@final
@dataclass(frozen=True, eq=False)
class ShapeHull(TriangulatedShape):
    """Convex hull of points.

    Args:
        points: shape (n, 3) [m], which do not all lie in one plane.
        resolution: number of grid cells along the longest side, 8 to 512. Cells across a thin hull are smaller. Edges
            and corners are rounded within two cells.
    """

    points: Numbers
    resolution: int = 64

    def check(self, where: str) -> None:
        checks.integer(self.resolution, f"{where}: resolution", least=8, most=FINEST)
        self._given_points(where)

    def _given_points(self, where: str) -> np.ndarray:
        points = checks.array(self.points, (-1, 3), f"{where}: points", "must be rows of three finite numbers")
        checks.require(len(points) >= 4, f"{where}: points", "must be at least four", len(points))
        return points

    def solid(self, where: str) -> Solid:
        self._given_points(where)
        try:
            return self._solid
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from error

    @cached_property
    def _solid(self) -> Solid:
        corners = convex_hull(self._given_points("shape"), "points")
        vertices, number = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
        return _along_faces(vertices, number.reshape(-1, 3), 0.0)


@final
@dataclass(frozen=True, eq=False)
class ShapeFunction(SampledShape):
    """Region where a function of the place is negative.

    Args:
        distance: signed distance [m], negative inside: an expression of x, y and z, such as "sqrt(x**2 + y**2) - 0.1",
            or a Python function of arrays x, y and z (n,) that returns an array (n,). Near the surface its gradient
            must have length 1, as for a distance.
        low, high: corners (3,) of a box that contains the surface [m].
        resolution: number of grid cells along the longest side of the box, 8 to 512.
        tolerance: largest error of the grid near the surface [m]; None is half a cell. A larger resolution has a
            smaller error. Edges of the region have errors of up to a third of a cell.
    """

    distance: FunctionOfPoint
    low: Numbers
    high: Numbers
    resolution: int = 64
    tolerance: float | None = None

    def bounds(self, where: str) -> tuple[np.ndarray, np.ndarray]:
        low, high = (
            checks.array(x, (3,), f"{where}: {name}", "must be a finite 3-vector")
            for name, x in (("low", self.low), ("high", self.high))
        )
        checks.require(bool((low < high).all()), f"{where}: high", "must be above low along each axis", self.high)
        if self.tolerance is not None:
            checks.number(self.tolerance, f"{where}: tolerance", above=0.0)
        self.values(0.5 * (low + high)[None], where)
        return low, high

    def values(self, points: np.ndarray, where: str) -> np.ndarray:
        """Signed distances [m] of points (n, 3) [m], shape (n,).

        Raises:
            ModelError: the function fails, or returns anything but n finite numbers.
        """
        return at_points(self.distance, points, f"{where}: distance")

    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return _surface_of_function(lambda points: self.values(points, "shape"), *self.bounds("shape"))


@final
@dataclass(frozen=True, eq=False)
class ShapeHeightField(Shape):
    """Ground below the heights of a grid of points, which are joined by a smooth surface (a cubic spline).

    Beyond the edges of the grid the ground goes on at the height of its edge. Balls must be smaller than the radii of
    hollows; a ball in a narrower hollow touches one of its sides.

    Args:
        heights: shape (n, m), both at least 4 [m]: n points along x, m along y.
        size_x, size_y: lengths of the grid [m], with the frame's origin at its centre.
    """

    heights: Numbers
    size_x: float
    size_y: float

    def surface(self, where: str) -> Surface:
        self.table(where)
        return Surface(ShapeKind.HEIGHTS, (0.0, 0.0, 0.0), np.eye(3))

    def table(self, where: str) -> tuple[np.ndarray, np.ndarray]:
        """Heights (n, m) and the distances (2,) between neighbours along x and y [m]."""
        z = checks.array(self.heights, (-1, -1), f"{where}: heights", "must be rows of finite numbers")
        checks.require(min(z.shape) >= 4, f"{where}: heights", "must have at least 4 rows and 4 columns", z.shape)
        sizes = [checks.number(getattr(self, name), f"{where}: {name}", above=0.0) for name in ("size_x", "size_y")]
        return z, np.array(sizes) / (np.array(z.shape) - 1.0)

    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        z, step = self.table("shape")
        x, y = ((np.arange(n) - 0.5 * (n - 1)) * h for n, h in zip(z.shape, step))
        points = np.stack([*np.meshgrid(x, y, indexing="ij"), z], axis=-1)
        quads = np.stack([points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]], axis=2)
        return quads.reshape(-1, 4, 3)


GRIDDED = (SampledShape, ShapeHeightField)  # classes of shapes that kernels read from grids


def _along_faces(vertices: np.ndarray, triangles: np.ndarray, thickness: float) -> Solid:
    """A solid in axes along most of its faces, the eigenvectors of Σ A n nᵀ, if its box there is much smaller: an
    oblique plate is thin along one of them."""
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    area = np.cross(b - a, c - a)
    size = np.maximum(np.linalg.norm(area, axis=1), 1e-300)
    _, axes = np.linalg.eigh(np.einsum("m,mi,mj->ij", 1.0 / size, area, area))
    axes *= np.linalg.det(axes)
    here, turned = (np.ptp(x, axis=0) + thickness for x in (vertices, vertices @ axes))
    if np.prod(turned) < _SMALLER * np.prod(here):
        return Solid(vertices @ axes, triangles, thickness, axes)
    return Solid(vertices, triangles, thickness, np.eye(3))


def _moved_along_normals(vertices: np.ndarray, triangles: np.ndarray, by: float) -> np.ndarray:
    """Vertices of a surface whose planes are moved along their normals [m]. Where planes meet at an edge or a corner
    the vertex moves to the place where the moved ones meet."""
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    normal = np.cross(b - a, c - a)
    size = np.linalg.norm(normal, axis=1, keepdims=True)
    normal = normal / np.maximum(size, 1e-300)
    N, sums = np.zeros((len(vertices), 3, 3)), np.zeros((len(vertices), 3))
    for k in range(3):
        np.add.at(N, triangles[:, k], size[..., None] * normal[:, :, None] * normal[:, None, :])
        np.add.at(sums, triangles[:, k], size * normal)
    return vertices + by * np.einsum("nij,nj->ni", np.linalg.pinv(N, rcond=1e-3, hermitian=True), sums)


def half_width_of(shape: Shape) -> float:
    """Half the smallest width of a shape [m]; inf for a plane, a hole or a height field."""
    if isinstance(shape, ShapeMesh):
        vertices, triangles = shape.mesh.surface()
        return 0.5 * float(np.ptp(vertices[np.unique(triangles)], axis=0).min())
    if isinstance(shape, SampledShape):
        low, high = shape.bounds("shape")
        return 0.5 * float((high - low).min())
    kind, size, _ = shape.surface("shape")
    unbounded = kind in (ShapeKind.PLANE, ShapeKind.HOLLOW, ShapeKind.HEIGHTS)
    return np.inf if unbounded else min(x for x in size if x > 0.0)


def slope_fault(slopes: np.ndarray) -> str:
    """The reason why a function with these lengths of its gradient near the surface is no distance; empty if it is
    one."""
    least, most = _SLOPES
    low, high = np.quantile(slopes, (0.25, 0.75))  # splines have other slopes at edges
    if least <= low and high <= most:
        return ""
    return (f"must be a distance, with a slope of 1 near its surface (got slopes from {slopes.min():.3g} to "
            f"{slopes.max():.3g})")  # fmt: skip


def _surface_of_function(values: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Quadrilaterals (n, 4, 3) of the surface where a function is zero (surface nets).

    Each cell of a grid with both signs at its corners holds one vertex, moved towards the surface. Each edge of the
    grid with both signs is crossed by the quadrilateral of its four cells.
    """
    cell = float((high - low).max()) / _DRAWN
    count = np.maximum(np.ceil((high - low) / cell).astype(int), 1) + 3
    start = 0.5 * (low + high) - 0.5 * cell * (count - 1)
    nodes = np.stack(np.meshgrid(*(np.arange(n) for n in count), indexing="ij"), axis=-1)
    inside = (values((start + cell * nodes).reshape(-1, 3)) < 0.0).reshape(count)
    quads = []
    for x, y, z in _ROWS:
        turned = np.moveaxis(inside, (x, y, z), (0, 1, 2))
        crossed = np.argwhere(turned[:-1, 1:-1, 1:-1] != turned[1:, 1:-1, 1:-1]) + np.array([0, 1, 1])
        around = np.array([[0, -1, -1], [0, 0, -1], [0, 0, 0], [0, -1, 0]])
        cells = crossed[:, None] + around
        back = ~turned[tuple(crossed.T)]
        cells[back] = cells[back, ::-1]
        quads.append(cells[..., np.argsort([x, y, z])])
    cells, number = np.unique(np.concatenate(quads).reshape(-1, 3), axis=0, return_inverse=True)
    points = start + cell * (cells + 0.5)
    for _ in range(4):
        value = values(points)
        slope = np.stack([(values(points + 1e-3 * cell * e) - value) / (1e-3 * cell) for e in np.eye(3)], axis=-1)
        step = value / np.maximum((slope * slope).sum(axis=-1), 0.25)
        points = points - (step[:, None] * slope).clip(-0.5 * cell, 0.5 * cell)
    return points[number.reshape(-1, 4)]
