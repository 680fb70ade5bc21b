"""Meshes of tetrahedra: the domain of a body of any shape, and meshes of boxes and cylinders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np

from lissom.bodies import cubature, surfaces
from lissom.bodies.domains import MOST_DEGREE, Domain, Quadrature, Surface, check_degree
from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.fields import Numbers
from lissom.robot.poses import failure

_FLAT = 1e-12  # smallest volume of a cell, relative to the cube of its longest edge
EDGES = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
_EIGHTHS = np.array([  # of a cell, by its corners and the middles of its edges in their order
    (0, 4, 5, 6), (4, 1, 7, 8), (5, 7, 2, 9), (6, 8, 9, 3), (4, 5, 6, 8), (4, 5, 7, 8), (5, 6, 8, 9), (5, 7, 8, 9),
])  # fmt: skip


@final
@dataclass(frozen=True, eq=False)
class DomainTetrahedra(Domain):
    """A mesh of tetrahedra.

    Args:
        vertices: shape (m, 3) [m], in the body's frame.
        cells: indices of four vertices each, shape (k, 4), in an order that gives positive volumes.
        degree: degree of the polynomials that the quadrature integrates exactly in each cell.
        compress: None uses all quadrature points of the cells for finite elements, and with a `shape` or `stretch`. For
            other bodies with more than 500 points it selects few, such that integrals change by less than 1e-6; `info`
            names their number. A number selects points that integrate polynomials up to this degree over the whole body
            exactly. They are fewer still, but their error depends on how smooth the kinematics is. Finite elements need
            None.
        marks: further places by name, points (3,) [m].
        shape: function that moves the vertices by a few numbers, f(x, **numbers) with x and its result of shape (m, 3)
            [m]. It moves the marks too. None: the vertices stay.
        numbers: the numbers by name. They are design values, such as `finger.domain.numbers.waist`.
        stretch: factors along x, y and z of the vertices and marks, after `shape`; or one factor.

    With `shape` or `stretch`, `fixed` nodes of finite elements, the places "base" and "tip", the points of `compress`
    and those of contacts are chosen on the vertices as given, and move with them. So they are the same for all numbers.
    `compress` needs a mesh without a `shape`.
    """

    vertices: Numbers
    cells: Numbers
    degree: int = 2
    compress: int | None = None
    marks: Mapping[str, Numbers] | None = None
    shape: Callable[..., np.ndarray] | None = None
    numbers: Mapping[str, float] | None = None
    stretch: Numbers = 1.0

    @classmethod
    def load(cls, path: str | Path, *, scale: float = 1.0, degree: int = 2, compress: int | None = None,
             marks: Mapping[str, Numbers] | None = None) -> DomainTetrahedra:  # fmt: skip
        """The tetrahedra of a mesh file in any format that meshio reads. `scale` is the length unit of the file [m].

        Raises:
            ModelError: the file cannot be read or has no tetrahedra, or meshio is not installed.
        """
        try:
            import meshio
        except ImportError:
            raise ModelError(f"mesh '{path}': needs meshio: pip install 'lissom[deformable]'") from None
        try:
            mesh = meshio.read(path)
        except (Exception, SystemExit) as error:  # each format has errors of its own
            raise ModelError(f"mesh '{path}': cannot be read ({type(error).__name__}: {error})") from error
        blocks = [block.data[:, :4] for block in mesh.cells if block.type in ("tetra", "tetra10")]
        checks.require(bool(blocks), f"mesh '{path}'", "must hold tetrahedra", [block.type for block in mesh.cells])
        return cls(scale * np.asarray(mesh.points, dtype=np.float64), np.concatenate(blocks), degree, compress, marks)

    @property
    def is_reshaped(self) -> bool:
        """Whether the vertices are not those given."""
        return self.shape is not None or bool(np.any(np.asarray(self.stretch) != 1.0))

    @cached_property
    def as_given(self) -> DomainTetrahedra:
        """The mesh with the vertices as given."""
        return replace(self, shape=None, numbers=None, stretch=1.0) if self.is_reshaped else self

    @cached_property
    def positions(self) -> np.ndarray:
        """The vertices after `shape` and `stretch`, shape (m, 3) [m]."""
        return self._reshaped(np.asarray(self.vertices, dtype=np.float64))

    def _reshaped(self, x: np.ndarray) -> np.ndarray:
        """Points (m, 3) after `shape` and `stretch`."""
        if self.shape is not None:
            x = np.asarray(self.shape(x.copy(), **(self.numbers or {})), dtype=np.float64)
        return x * np.asarray(self.stretch, dtype=np.float64) if np.any(np.asarray(self.stretch) != 1.0) else x

    @cached_property
    def corners(self) -> np.ndarray:
        """Corners of each cell, shape (k, 4, 3) [m]."""
        return self.positions[np.asarray(self.cells, dtype=np.int64)]

    @cached_property
    def volumes(self) -> np.ndarray:
        """Volume of each cell, shape (k,) [m³]; negative for an inverted cell."""
        return np.linalg.det(self.corners[:, 1:] - self.corners[:, :1]) / 6.0

    def finer_rule(self) -> DomainTetrahedra:
        """The mesh with a quadrature of a higher degree."""
        degree = min(self.degree + 2, MOST_DEGREE)
        compress = None if self.compress is None else min(self.compress + 4, degree * 10, MOST_DEGREE)
        return replace(self, degree=degree, compress=compress)

    def halved(self) -> tuple[DomainTetrahedra, np.ndarray]:
        """The mesh with each cell divided into eight at the middles of its edges; and for each vertex the ends of its
        edge, shape (m, 2). For an old vertex both ends are the vertex itself."""
        old, cells = self.positions, np.asarray(self.cells, dtype=np.int64)
        edges, number = np.unique(np.sort(cells[:, EDGES], axis=-1).reshape(-1, 2), axis=0, return_inverse=True)
        all_ten = np.concatenate([cells, len(old) + number.reshape(len(cells), -1)], axis=1)
        new = all_ten[:, _EIGHTHS].reshape(-1, 4)
        ends = np.concatenate([np.repeat(np.arange(len(old))[:, None], 2, axis=1), edges])
        vertices = 0.5 * (old[ends[:, 0]] + old[ends[:, 1]])
        corners = vertices[new]
        inverted = np.linalg.det(corners[:, 1:] - corners[:, :1]) < 0.0
        new[inverted] = new[inverted][:, [0, 2, 1, 3]]
        return replace(self.as_given, vertices=vertices, cells=new), ends

    def check(self, where: str) -> None:
        vertices = checks.array(self.vertices, (-1, 3), f"{where}: vertices", "must be rows of three finite numbers")
        cells = checks.array(self.cells, (-1, 4), f"{where}: cells", "must be rows of four numbers of vertices")
        checks.require(len(cells) > 0, f"{where}: cells", "must hold at least one", self.cells)
        inside = (cells >= 0) & (cells < len(vertices)) & (cells == np.floor(cells))
        for k in np.flatnonzero(~inside.all(axis=1))[:1]:
            checks.require(
                False, f"{where}: cells[{k}]", f"must number vertices from 0 to {len(vertices) - 1}", cells[k]
            )
        self._check_shape(where)
        edge = np.linalg.norm(self.corners - np.roll(self.corners, 1, axis=1), axis=-1).max(axis=1)
        for k in np.flatnonzero(~(self.volumes > _FLAT * edge**3))[:1]:
            rule = "is inverted or flat: its vertices must span a volume > 0 in their order"
            checks.require(False, f"{where}: cells[{k}]", rule, float(self.volumes[k]))
        check_degree(self.degree, None, where)
        if self.compress is not None:
            checks.integer(self.compress, f"{where}: compress", least=0, most=min(self.degree * 10, MOST_DEGREE))
        for name, point in (self.marks or {}).items():
            checks.array(point, (3,), f"{where}: marks['{name}']", "must be a finite 3-vector")

    def _check_shape(self, where: str) -> None:
        named = self.numbers is None or isinstance(self.numbers, Mapping)
        checks.require(named, f"{where}: numbers", "must be numbers by name", self.numbers)
        for name, value in (self.numbers or {}).items():
            checks.number(value, f"{where} > numbers > {name}")
        rule = "must be three numbers > 0, or one"
        one = np.shape(self.stretch) == ()
        factors = checks.array(self.stretch, () if one else (3,), f"{where}: stretch", rule)
        checks.require(bool((factors > 0.0).all()), f"{where}: stretch", rule, self.stretch)
        if self.shape is None:
            checks.require(not self.numbers, f"{where}: numbers", "must be left out without a shape", self.numbers)
            return
        rule = "must be None with a shape, which makes no polynomials of polynomials"
        checks.require(self.compress is None, f"{where}: compress", rule, self.compress)
        where = f"{where}: shape"
        checks.require(callable(self.shape), where, "must be a function of points (m, 3)", self.shape)
        x, rule = np.asarray(self.vertices, dtype=np.float64), "must return finite points in the shape of its points"
        try:
            moved = np.asarray(self.shape(x.copy(), **(self.numbers or {})), dtype=np.float64)
        except Exception as error:
            raise ModelError(f"{where}: must be a function f(x, **numbers); it {failure(error)}") from error
        checks.require(moved.shape == x.shape, where, f"{rule} {x.shape}; its shape", moved.shape)
        checks.require(bool(np.isfinite(moved).all()), where, rule, moved)

    def cell_quadrature(self) -> Quadrature:
        """Points (k·m, 3) and weights of all cells, cell by cell."""
        barycentric, weights = cubature.tetrahedron(self.degree)
        points = np.einsum("mb,kbi->kmi", barycentric, self.corners).reshape(-1, 3)
        return Quadrature(points, np.outer(self.volumes, weights).ravel())

    def quadrature(self) -> Quadrature:
        points, weights = self.cell_quadrature()
        if self.compress is None:
            return Quadrature(points, weights)
        given = self.as_given.cell_quadrature()
        try:
            kept, w = cubature.compressed(*given, self.compress)
        except ArithmeticError as error:
            raise ModelError(f"mesh: compress: {error}; try a lower one (got {self.compress})") from error
        if self.is_reshaped:  # stretched: polynomials remain polynomials
            w = w * np.prod(np.broadcast_to(np.asarray(self.stretch, dtype=np.float64), (3,)))
        return Quadrature(points[kept], w)

    @property
    def volume(self) -> float:
        return float(self.volumes.sum())

    @cached_property
    def places(self) -> dict[str, np.ndarray]:
        """ "base" and "tip" are the centres of the boxes around the vertices with least and largest x; "center" is the
        centroid."""
        used, moved = self.as_given.corners.reshape(-1, 3), self.corners.reshape(-1, 3)
        x, near = used[:, 0], 1e-6 * np.ptp(used, axis=0).max()
        named = {"base": moved[x <= x.min() + near], "tip": moved[x >= x.max() - near]}
        found = {name: 0.5 * (ends.min(axis=0) + ends.max(axis=0)) for name, ends in named.items()}
        found["center"] = self.volumes @ self.corners.mean(axis=1) / self.volumes.sum()
        marks = {name: np.asarray(point, dtype=np.float64) for name, point in (self.marks or {}).items()}
        found |= {name: self._reshaped(point[None])[0] for name, point in marks.items()}
        for point in found.values():
            point.setflags(write=False)
        return found

    def surface(self) -> Surface:
        faces = surfaces.boundary(np.asarray(self.cells, dtype=np.int64))
        used, triangles = np.unique(faces, return_inverse=True)
        return Surface(self.positions[used], triangles.reshape(-1, 3))


def box_mesh(size: Sequence[float], divisions: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (m, 3) [m] and cells (k, 4) of a box: x from 0 to its length, y and z centred.

    Args:
        size: lengths along x, y and z [m].
        divisions: numbers of equal parts along x, y and z.
    Returns:
        vertices, cells: arguments of `DomainTetrahedra`.
    Raises:
        ModelError: a size is not > 0, or a number of parts is below 1.
    """
    lengths = checks.array(size, (3,), "box mesh: size", "must be three numbers > 0")
    checks.require(bool((lengths > 0.0).all()), "box mesh: size", "must be three numbers > 0", lengths)
    checks.require(len(divisions) == 3, "box mesh: divisions", "must be three integers >= 1", divisions)
    nx, ny, nz = (checks.integer(part, "box mesh: divisions", least=1) for part in divisions)
    y, z = (np.linspace(-0.5 * width, 0.5 * width, n + 1) for width, n in ((lengths[1], ny), (lengths[2], nz)))
    section = np.stack(np.meshgrid(y, z, indexing="ij"), axis=-1).reshape(-1, 2)
    corner = (np.arange(ny)[:, None] * (nz + 1) + np.arange(nz)).ravel()
    right, up, across = corner + nz + 1, corner + 1, corner + nz + 2
    triangles = np.concatenate([np.stack(part, axis=-1) for part in ((corner, right, across), (corner, across, up))])
    return _swept(np.linspace(0.0, lengths[0], nx + 1), section, triangles)


def cylinder_mesh(length: float, radius: float, divisions: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (m, 3) [m] and cells (k, 4) of a cylinder along x that begins at x = 0. Its sections are polygons inside
    the circle.

    Args:
        length, radius: length and radius [m].
        divisions: number of equal parts along x, and number of rings. With n rings the outermost ring has 6n sides.
    Returns:
        vertices, cells: arguments of `DomainTetrahedra`.
    Raises:
        ModelError: a size is not > 0, or a number of parts is below 1.
    """
    checks.number(length, "cylinder mesh: length", above=0.0)
    checks.number(radius, "cylinder mesh: radius", above=0.0)
    checks.require(len(divisions) == 2, "cylinder mesh: divisions", "must be two integers >= 1", divisions)
    along, rings = (checks.integer(part, "cylinder mesh: divisions", least=1) for part in divisions)
    section, triangles = [np.zeros((1, 2))], []
    first = [0, *(1 + 3 * ring * (ring - 1) for ring in range(1, rings + 1))]  # vertex of each ring
    for ring in range(1, rings + 1):
        angle = 2.0 * np.pi * np.arange(6 * ring) / (6 * ring)
        section.append(radius * ring / rings * np.stack([np.cos(angle), np.sin(angle)], axis=-1))
        inner, outer = 6 * max(ring - 1, 0) or 1, 6 * ring
        for sector in range(6):
            for k in range(ring):
                a = first[ring - 1] + (sector * (ring - 1) + k) % inner
                b, c = (first[ring] + (sector * ring + k + step) % outer for step in (0, 1))
                triangles.append((a, b, c))
                if k < ring - 1:
                    triangles.append((a, c, first[ring - 1] + (sector * (ring - 1) + k + 1) % inner))
    return _swept(np.linspace(0.0, length, along + 1), np.concatenate(section), np.array(triangles))


def _swept(x: np.ndarray, section: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangles of sections swept along x. Each prism is divided into three tetrahedra.

    On each side, the diagonal runs from the vertex with the smaller index below to the vertex with the larger index
    above. So neighbouring prisms share their diagonals.
    """
    count = len(section)
    vertices = np.concatenate([np.repeat(x, count)[:, None], np.tile(section, (len(x), 1))], axis=1)
    a, b, c = np.sort(triangles, axis=1).T
    cut = [(a, b, c, c + count), (a, b, b + count, c + count), (a, a + count, b + count, c + count)]
    layer = np.concatenate([np.stack(part, axis=-1) for part in cut])
    cells = (layer + count * np.arange(len(x) - 1)[:, None, None]).reshape(-1, 4)
    corners = vertices[cells]
    inverted = np.linalg.det(corners[:, 1:] - corners[:, :1]) < 0.0
    cells[inverted] = cells[inverted][:, [0, 2, 1, 3]]
    return vertices, cells
