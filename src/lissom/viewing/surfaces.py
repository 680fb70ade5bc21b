"""What a robot looks like: surfaces and lines whose facets stay, and whose points follow its configuration.

NumPy only, no plotting: pictures, films and viewers draw what they find here. Each point stands in the frame of a node,
of a section of a rod, or of the world,

    x_i(q) = p_k(q) + R_k(q) y_i,     k = frame of point i                                                 (1)

where y_i is constant but in a body that deforms, whose kinematics gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.sparse import csr_matrix

from lissom.dynamics.configuration import integrate
from lissom.dynamics.kinematics import forward_kinematics, poses_at
from lissom.model.model import Model
from lissom.model.points import places_of
from lissom.viewing.meshing import area_vectors

_STEP = 1e-6  # of time, for speeds [s]


@final
@dataclass(frozen=True, eq=False)
class Mesh:
    """The surface of one thing.

    Fields:
        kind: "rod", "rigid" or "deformable" for the body of a link, "plane" or "shape" for what contacts fix.
        name: of the link, or of the first contact. link: name of the link that it is on; None is the world.
        rows: which of all points are its vertices. quads: quadrilaterals (m, 4) of these, counted from the first,
        counterclockwise seen from outside; a triangle's last corner stands twice. Vertices are shared where the surface
        is smooth, and doubled along its edges.
        s: abscissa of each vertex along a rod, shape (v,); NaN elsewhere.
        color: (red, green, blue), or with opacity behind, that the description gives it; None leaves it to the picture.
    """

    kind: str
    name: str
    link: str | None
    rows: slice
    quads: np.ndarray
    s: np.ndarray
    color: tuple[float, ...] | None = None

    @cached_property
    def triangles(self) -> np.ndarray:
        """The same facets as triangles (k, 3)."""
        a, b, c, d = self.quads.T
        both = np.concatenate([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)])
        x, y, z = both.T
        return both[(x != y) & (y != z) & (z != x)]

    @cached_property
    def _around(self) -> csr_matrix:
        """Which facets (columns) meet at each vertex (rows)."""
        count, corners = self.rows.stop - self.rows.start, self.quads.ravel()
        facet = np.repeat(np.arange(len(self.quads)), 4)
        met = csr_matrix((np.ones(len(corners)), (corners, facet)), shape=(count, len(self.quads)))
        met.data[:] = 1.0  # a corner that stands twice counts once
        return met

    def normals(self, vertices: np.ndarray) -> np.ndarray:
        """Unit normals (v, 3) at its vertices (v, 3): of the facets that meet there, by their areas."""
        found = self._around @ area_vectors(vertices[self.quads])
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300)


@final
@dataclass(frozen=True, eq=False)
class Line:
    """A line through points.

    Fields:
        kind: "tendon"; "spring", from end to end; "tie", from a link to one that it carries away from itself; "loop",
        the two places that a loop joins. name: of the tendon, spring, carried link or loop. rows: which of all points.
        links: names of the links it is on, without the world.
    """

    kind: str
    name: str
    rows: slice
    links: tuple[str, ...]


@final
@dataclass(frozen=True, eq=False)
class Stretch:
    """The frames along a rod: its link, and their abscissae (n,)."""

    link: str
    s: np.ndarray


@final
@dataclass(frozen=True, eq=False)
class Geometry:
    """The surfaces and lines of a model.

    Fields:
        model; meshes; lines.
        stretches: rods whose sections carry points. Frames are numbered: nodes, the world, sections rod after rod.
        frame: number k of the frame of each point in (1), shape (P,). local: y in it, shape (P, 3) [m].
        moving: of bodies that deform, their rows of points, their coordinates in q, and y as a function of those.
    """

    model: Model
    meshes: tuple[Mesh, ...]
    lines: tuple[Line, ...]
    stretches: tuple[Stretch, ...]
    frame: np.ndarray
    local: np.ndarray
    moving: tuple[tuple[slice, slice, Callable[[np.ndarray], np.ndarray]], ...]

    def points(self, q: Any) -> np.ndarray:
        """All points at configurations (..., nq), shape (..., P, 3) [m]; those of a mesh or line are its `rows`."""
        q = np.asarray(q, dtype=np.float64)
        g = self._frames(q)
        R, p = g[..., :3, :3][..., self.frame, :, :], g[..., :3, 3][..., self.frame, :]
        return np.einsum("...pij,...pj->...pi", R, self._local(q)) + p

    def normals(self, points: np.ndarray) -> np.ndarray:
        """Unit normals of all meshes at points (P, 3), shape (P, 3); zero on lines."""
        out = np.zeros_like(points)
        for mesh in self.meshes:
            out[mesh.rows] = mesh.normals(points[mesh.rows])
        return out

    def speeds(self, q: Any, v: Any) -> np.ndarray:
        """Of all points at one configuration (nq,) and velocity (nv,), shape (P,) [m/s]; by a central difference."""
        v = np.asarray(v, dtype=np.float64)
        ahead, behind = self.points(np.stack([integrate(self.model, q, sign * _STEP * v) for sign in (1.0, -1.0)]))
        return np.linalg.norm(ahead - behind, axis=-1) / (2.0 * _STEP)

    def strains(self, q: Any) -> np.ndarray:
        """Strain ξ of the section that each point is on, at configurations (..., nq), shape (..., P, 6) [1/m, -]; NaN
        where a point is on no rod."""
        q = np.asarray(q, dtype=np.float64)
        out = np.full((*q.shape[:-1], len(self.frame), 6), np.nan)
        for stretch, first in zip(self.stretches, self._starts):
            rows = np.flatnonzero((self.frame >= first) & (self.frame < first + len(stretch.s)))
            Phi, reference = self._modes[stretch.link]
            strain = self.model.rods[stretch.link].strain
            start = strain.v_start + strain.q_shift
            own = np.einsum("sij,...j->...si", Phi, q[..., start : start + Phi.shape[2]]) + reference
            out[..., rows, :] = own[..., self.frame[rows] - first, :]
        return out

    def frames(self, q: Any) -> dict[str, np.ndarray]:
        """Poses (..., 4, 4) of the links, rods at their tips, and of the named frames, by name."""
        g = forward_kinematics(self.model, q)
        named = self.model.links.frame | self.model.frames
        return {name: (placed if node < 0 else g[..., node, :, :] @ placed) for name, (node, placed) in named.items()}

    def of(self, kind: str) -> tuple[Line, ...]:
        """The lines of one kind."""
        return tuple(line for line in self.lines if line.kind == kind)

    @cached_property
    def _starts(self) -> list[int]:
        """The number of the first frame of each stretch."""
        counts = [len(stretch.s) for stretch in self.stretches]
        return (self.model.n_nodes + 1 + np.concatenate([[0], np.cumsum(counts)[:-1]])).astype(int).tolist()

    @cached_property
    def _modes(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Φ and ξ* along each rod."""
        found = {}
        for stretch in self.stretches:
            strain, s = self.model.rods[stretch.link].strain, stretch.s.tolist()
            Phi = np.array([np.asarray(strain.basis(x)).reshape(6, -1) for x in s])
            found[stretch.link] = Phi, np.array([strain.reference(x) for x in s])
        return found

    def _frames(self, q: np.ndarray) -> np.ndarray:
        """Poses (..., frames, 4, 4) of all frames."""
        g, world = forward_kinematics(self.model, q), np.broadcast_to(np.eye(4), (*q.shape[:-1], 1, 4, 4))
        along = [poses_at(self.model, q, places_of(self.model, part.link, part.s)) for part in self.stretches]
        return np.concatenate([g, world, *along], axis=-3)

    def _local(self, q: np.ndarray) -> np.ndarray:
        """y (..., P, 3) of all points."""
        if not self.moving:
            return self.local
        local = np.broadcast_to(self.local, (*q.shape[:-1], *self.local.shape)).copy()
        for rows, columns, moved in self.moving:
            own = q[..., columns].reshape(-1, columns.stop - columns.start)
            local[..., rows, :] = np.reshape([moved(row) for row in own], local[..., rows, :].shape)
        return local


def limited(names: Sequence[str], links: Sequence[str] | None) -> list[str]:
    """Those of the names that are wanted, in their order; None wants all."""
    return [name for name in names if links is None or name in links]
