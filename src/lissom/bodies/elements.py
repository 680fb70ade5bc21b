"""Tetrahedral elements with straight sides: nodes, shape functions, and where points lie.

With λ the barycentric coordinates of a point in its cell, the shape functions of linear elements are λ_i of the
corners, those of quadratic ones, with a node amid each edge,

    λ_i (2λ_i − 1) of the corners,   4 λ_i λ_j of the edges                                               (1)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies import cubature
from lissom.bodies.meshes import DomainTetrahedra
from lissom.errors import ModelError

_EDGES = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
_INSIDE = -1e-9  # the least barycentric coordinate of a point in a cell
_OUTSIDE = -0.5  # and of one that still moves with the cell beside it, as on a curved face that the mesh cuts off
_NEAR = 16  # cells by their centres that are looked at first
_BLOCK = 1 << 21  # pairs of points and cells that are looked at in one go


class Located(NamedTuple):
    """Points by the cells (N,) in which they lie and their barycentric coordinates (N, 4) there."""

    cell: np.ndarray
    barycentric: np.ndarray


@final
@dataclass(frozen=True, eq=False)
class TetrahedralElements:
    """The elements of a mesh.

    Args:
        mesh: whose cells they are.
        degree: of their shape functions, 1 or 2.
    """

    mesh: DomainTetrahedra
    degree: int

    @cached_property
    def _numbered(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Vertices that cells use, cells by those, and the two ends (m, 2) of each node, the same for a corner."""
        cells = np.asarray(self.mesh.cells, dtype=np.int64)
        used, flat = np.unique(cells, return_inverse=True)
        cells = flat.reshape(cells.shape)
        corners = np.repeat(np.arange(len(used))[:, None], 2, axis=1)
        if self.degree == 1:
            return used, cells, corners
        ends, edge = np.unique(np.sort(cells[:, _EDGES], axis=-1).reshape(-1, 2), axis=0, return_inverse=True)
        cells = np.concatenate([cells, len(used) + edge.reshape(len(cells), -1)], axis=1)
        return used, cells, np.concatenate([corners, ends])

    @property
    def vertices(self) -> np.ndarray:
        """Of the mesh, by number, those that are nodes: the first len(vertices) nodes."""
        return self._numbered[0]

    @property
    def cells(self) -> np.ndarray:
        """Nodes of each cell, shape (k, 4) or (k, 10)."""
        return self._numbered[1]

    @property
    def ends(self) -> np.ndarray:
        """The nodes amid which each node lies, shape (m, 2); a corner's are itself."""
        return self._numbered[2]

    @cached_property
    def nodes(self) -> np.ndarray:
        """Shape (m, 3) [m]."""
        corners = np.asarray(self.mesh.vertices, dtype=np.float64)[self.vertices]
        return 0.5 * (corners[self.ends[:, 0]] + corners[self.ends[:, 1]])

    @cached_property
    def slopes(self) -> np.ndarray:
        """∂λ/∂x of each cell, shape (k, 4, 3) [1/m]."""
        inner = np.linalg.inv((self.mesh.corners[:, 1:] - self.mesh.corners[:, :1]).swapaxes(1, 2))
        return np.concatenate([-inner.sum(axis=1, keepdims=True), inner], axis=1)

    @cached_property
    def offsets(self) -> np.ndarray:
        """λ of each cell at x = 0, shape (k, 4)."""
        return np.array([1.0, 0.0, 0.0, 0.0]) - np.einsum("kba,ka->kb", self.slopes, self.mesh.corners[:, 0])

    def quadrature(self, degree: int) -> tuple[Located, np.ndarray]:
        """Points and weights [m³], cell by cell, exact to a degree on each."""
        barycentric, weights = cubature.tetrahedron(degree)
        count = len(self.cells)
        located = Located(np.repeat(np.arange(count), len(weights)), np.tile(barycentric, (count, 1)))
        return located, np.outer(self.mesh.volumes, weights).ravel()

    def locate(self, points: np.ndarray) -> Located:
        """Where points (N, 3) lie: known for those of the mesh's quadrature, found by search for others.

        Raises:
            ModelError: a point lies so far outside that no cell is beside it.
        """
        if self.mesh.compress is None and np.array_equal(points, self.mesh.points):
            return self.quadrature(self.mesh.degree)[0]
        cell, least = self._nearest(points)
        for k in np.flatnonzero(~(least > _OUTSIDE))[:1]:
            raise ModelError(f"finite elements: points must lie in the mesh (got {points[k].tolist()})")
        return Located(cell, np.einsum("kba,ka->kb", self.slopes[cell], points) + self.offsets[cell])

    def around(self, point: np.ndarray) -> Located:
        """The point (3,) in all cells that hold it: one inside, several on a face, an edge or a node."""
        everywhere = self.slopes @ point + self.offsets
        best = self.locate(point[None]).barycentric.min()
        cell = np.flatnonzero(everywhere.min(axis=1) >= min(best, 0.0) + _INSIDE)
        return Located(cell, everywhere[cell])

    def _nearest(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cell of each point in which its least barycentric coordinate is largest, and that."""
        from scipy.spatial import KDTree

        count = min(_NEAR, len(self.cells))
        near = KDTree(self.mesh.corners.mean(axis=1)).query(points, count)[1].reshape(len(points), count)
        inside = (np.einsum("kcba,ka->kcb", self.slopes[near], points) + self.offsets[near]).min(axis=-1)
        best = inside.argmax(axis=1)
        cell, least = near[np.arange(len(points)), best], inside.max(axis=1)
        lost = np.flatnonzero(~(least >= _INSIDE))
        step = max(1, _BLOCK // len(self.cells))
        for some in (lost[k : k + step] for k in range(0, len(lost), step)):
            inside = (np.einsum("cba,ka->kcb", self.slopes, points[some]) + self.offsets).min(axis=-1)
            cell[some], least[some] = inside.argmax(axis=1), inside.max(axis=1)
        return cell, least

    def shapes(self, barycentric: Any, xp: Any = np) -> Any:
        """(1) at barycentric coordinates (..., 4), shape (..., 4) or (..., 10), made of NumPy or jax.numpy."""
        if self.degree == 1:
            return barycentric
        first, second = barycentric[..., _EDGES[:, 0]], barycentric[..., _EDGES[:, 1]]
        return xp.concatenate([barycentric * (2.0 * barycentric - 1.0), 4.0 * first * second], axis=-1)

    def gradients(self, located: Located) -> np.ndarray:
        """Of the shape functions by x, shape (N, 4 or 10, 3) [1/m]."""
        slopes = self.slopes[located.cell]
        if self.degree == 1:
            return slopes
        b = located.barycentric[:, :, None]
        first, second = _EDGES.T
        edges = 4.0 * (b[:, second] * slopes[:, first] + b[:, first] * slopes[:, second])
        return np.concatenate([(4.0 * b - 1.0) * slopes, edges], axis=1)
