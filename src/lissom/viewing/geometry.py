"""Surfaces and lines of a robot: facets that do not change, over points that follow the configuration.

Pictures, films and the live view draw these meshes. Nothing is drawn here, and only NumPy and SciPy are needed. Each
point is fixed in the frame of a node, of a section of a rod, or of the world,

    x_i(q) = p_k(q) + R_k(q) y_i,     k = frame of point i                                                 (1)

y_i is constant, except in a body that deforms, whose kinematics gives it. Facets share a vertex where the surface is
smooth; along its edges vertices are doubled, so that each vertex has one normal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple, final

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components

from lissom.dynamics.configuration import integrate
from lissom.dynamics.kinematics import forward_kinematics, poses_at
from lissom.model.model import Model
from lissom.model.points import place_of_point, places_of
from lissom.robot.actuators import Chamber, PathBody, PathItem, PathPoint, PathRod, PathWrap, Tendon, offset_function
from lissom.robot.bodies import Body, Solid
from lissom.robot.functions import profile
from lissom.robot.shapes import box_faces, revolved

STATIONS, AROUND = 41, 32  # stations of a rod; points around a section and around solids
_ALONG = 2 * STATIONS - 1  # number of points of a tendon along a rod
_SHARP = np.cos(np.radians(38.0))  # cosine of the angle between normals of facets above which their joint is smooth
_NONE = np.zeros(0)
_STEP = 1e-6  # step of the difference in time for speeds [s]


@final
@dataclass(frozen=True, eq=False)
class Mesh:
    """Surface of one body or one contact shape.

    Fields:
        kind: "rod", "rigid" or "deformable" for the body of a link, "plane" or "shape" for a contact shape.
        name: of the link, or of the first contact.
        link: name of the link that carries the mesh; None for the world.
        rows: the mesh's vertices among all points.
        quads: quadrilaterals (m, 4) of vertices, numbered from the first vertex of the mesh, counterclockwise seen from
            outside; a triangle repeats its last corner.
        s: abscissa of each vertex along a rod, shape (v,); NaN for other bodies.
        color: (red, green, blue), optionally with opacity, from the description; with None the picture chooses it.
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
        """The facets as triangles, shape (k, 3)."""
        a, b, c, d = self.quads.T
        both = np.concatenate([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)])
        x, y, z = both.T
        return both[(x != y) & (y != z) & (z != x)]

    @cached_property
    def _around(self) -> csr_matrix:
        """Incidence of facets (columns) and vertices (rows)."""
        count, corners = self.rows.stop - self.rows.start, self.quads.ravel()
        facet = np.repeat(np.arange(len(self.quads)), 4)
        met = csr_matrix((np.ones(len(corners)), (corners, facet)), shape=(count, len(self.quads)))
        met.data[:] = 1.0  # a repeated corner counts once
        return met

    def normals(self, vertices: np.ndarray) -> np.ndarray:
        """Unit normals (v, 3) at the vertices (v, 3): means of the normals of adjacent facets, weighted by area."""
        found = self._around @ area_vectors(vertices[self.quads])
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300)


@final
@dataclass(frozen=True, eq=False)
class Line:
    """Line through points.

    Fields:
        kind: "tendon"; "chamber", the centreline of one; "spring" between its two ends; "tie" from a link to the base
            of a child at some distance; "loop" between the two places that a loop joins.
        name: of the tendon, spring, child link or loop.
        rows: the line's points among all points.
        links: names of the links that the line touches, without the world.
        radius: of a chamber at its points, that of a circle of the same area (n,) [m]; empty for other lines.
    """

    kind: str
    name: str
    rows: slice
    links: tuple[str, ...]
    radius: np.ndarray = field(default_factory=lambda: np.zeros(0))


@final
@dataclass(frozen=True, eq=False)
class RodSections:
    """Sections of a rod whose frames carry points: name of its link, and abscissae (n,)."""

    link: str
    s: np.ndarray


@final
@dataclass(frozen=True, eq=False)
class Geometry:
    """Surfaces and lines of a model.

    Fields:
        model: the model.
        meshes, lines: its surfaces and its lines.
        sections: sections of rods. Frames are numbered in the order nodes, world, sections of one rod after the other.
        frame: number k of the frame of each point in (1), shape (P,).
        local: position y of each point in its frame, shape (P, 3) [m].
        moving: for each body that deforms its rows of points, its coordinates in q, and y as a function of these.
        wraps: for each shape round which a tendon runs the rows of the points along it, whose frame has the axis of the
            shape along z, and the item of the path. The path comes from the point before and leads to the one after.
    """

    model: Model
    meshes: tuple[Mesh, ...]
    lines: tuple[Line, ...]
    sections: tuple[RodSections, ...]
    frame: np.ndarray
    local: np.ndarray
    moving: tuple[tuple[slice, slice, Callable[[np.ndarray], np.ndarray]], ...]
    wraps: tuple[tuple[slice, np.ndarray, PathWrap], ...]

    def points(self, q: Any) -> np.ndarray:
        """All points at configurations (..., nq), shape (..., P, 3) [m]; `rows` of a mesh or line index them."""
        q = np.asarray(q, dtype=np.float64)
        g = self._frames(q)
        R, p = g[..., :3, :3][..., self.frame, :, :], g[..., :3, 3][..., self.frame, :]
        x = np.einsum("...pij,...pj->...pi", R, self._local(q)) + p
        for rows, placement, item in self.wraps:
            shape = g[..., self.frame[rows.start], :, :] @ placement
            for k in np.ndindex(q.shape[:-1]):
                turn, centre = shape[k][:3, :3], shape[k][:3, 3]
                a, b = ((x[(*k, end)] - centre) @ turn for end in (rows.start - 1, rows.stop))
                x[(*k, rows)] = item.course(a, b, rows.stop - rows.start)[1] @ turn.T + centre
        return x

    def normals(self, points: np.ndarray) -> np.ndarray:
        """Unit normals of all meshes at points (P, 3), shape (P, 3); zero on lines."""
        out = np.zeros_like(points)
        for mesh in self.meshes:
            out[mesh.rows] = mesh.normals(points[mesh.rows])
        return out

    def speeds(self, q: Any, v: Any) -> np.ndarray:
        """Speeds of all points at one configuration (nq,) and velocity (nv,), shape (P,) [m/s], by a central
        difference."""
        v = np.asarray(v, dtype=np.float64)
        ahead, behind = self.points(np.stack([integrate(self.model, q, sign * _STEP * v) for sign in (1.0, -1.0)]))
        return np.linalg.norm(ahead - behind, axis=-1) / (2.0 * _STEP)

    def strains(self, q: Any) -> np.ndarray:
        """Strain ξ of the section of each point at configurations (..., nq), shape (..., P, 6) [1/m, -]; NaN for points
        that are not on a rod."""
        q = np.asarray(q, dtype=np.float64)
        out = np.full((*q.shape[:-1], len(self.frame), 6), np.nan)
        for part, first in zip(self.sections, self._starts):
            rows = np.flatnonzero((self.frame >= first) & (self.frame < first + len(part.s)))
            Phi, reference = self._modes[part.link]
            strain = self.model.rods[part.link].strain
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
        """Lines of one kind."""
        return tuple(line for line in self.lines if line.kind == kind)

    @cached_property
    def _starts(self) -> list[int]:
        """Number of the first frame of each rod."""
        counts = [len(part.s) for part in self.sections]
        return (self.model.n_nodes + 1 + np.concatenate([[0], np.cumsum(counts)[:-1]])).astype(int).tolist()

    @cached_property
    def _modes(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Φ and ξ* along each rod."""
        found = {}
        for part in self.sections:
            strain, s = self.model.rods[part.link].strain, part.s.tolist()
            Phi = np.array([np.asarray(strain.basis(x)).reshape(6, -1) for x in s])
            found[part.link] = Phi, np.array([strain.reference(x) for x in s])
        return found

    def _frames(self, q: np.ndarray) -> np.ndarray:
        """Poses (..., frames, 4, 4) of all frames."""
        g, world = forward_kinematics(self.model, q), np.broadcast_to(np.eye(4), (*q.shape[:-1], 1, 4, 4))
        along = [poses_at(self.model, q, places_of(self.model, part.link, part.s)) for part in self.sections]
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


@final
class _Placed(NamedTuple):
    """Points (n, 3) in frames (n,), see Geometry; for a body that deforms also its coordinates in q, and the function
    from these to y."""

    frame: np.ndarray
    local: np.ndarray
    moved: tuple[slice, Callable[[np.ndarray], np.ndarray]] | None = None


def robot_geometry(model: Model, fineness: Mapping[str, tuple[int, int]] | None = None) -> Geometry:
    """Geometry of the bodies, tendons, springs, ties and loops of a model.

    Args:
        fineness: number of sections of rods and of points around them, by names of links; others have STATIONS and
            AROUND.
    """
    given = dict(fineness or {})
    return model.cached(("geometry", *sorted(given.items())), lambda: _Builder(model, given).geometry())


def contact_geometry(
    model: Model, q: np.ndarray, low: np.ndarray, high: np.ndarray, links: Sequence[str] | None = None
) -> Geometry:
    """Geometry of the contact shapes that are fixed to the world or to one of the links.

    Unbounded shapes are cut off at the box from `low` to `high`, at a configuration (nq,). A shape of several contacts
    occurs once.
    """
    builder, world, known = _Builder(model), model.contacts, set()
    corners = np.array(np.meshgrid(*zip(low, high))).reshape(3, -1).T
    for k, (shape, link) in enumerate(zip(world.obstacle_shape, world.obstacle_link)):
        node, placement = int(world.obstacle_node[k]), world.obstacle_placement[k]
        key = int(world.obstacle_kind[k]), node, placement.tobytes(), world.obstacle_size[k].tobytes()
        key = *key, int(world.obstacle_grid[k])
        if shape is None or key in known or (link is not None and links is not None and link not in links):
            continue
        known.add(key)
        g = (np.eye(4) if node < 0 else forward_kinematics(model, q)[node]) @ placement
        seen = (corners - g[:3, 3]) @ g[:3, :3]
        found = welded(shape.facets(seen.min(axis=0), seen.max(axis=0)))
        kind = "plane" if len(found.quads) == 1 else "shape"
        local = found.vertices @ placement[:3, :3].T + placement[:3, 3]
        touched = world.pair[world.pair[:, 1] == k, 2]
        owners = [contact.name for contact in model.description.contacts.values() if contact.shape is shape]
        name = world.names[int(touched[0])] if len(touched) else owners[0] if owners else f"shape {k}"
        builder.add_mesh(kind, name, link, Facets(local, found.quads), builder.node(node, local))
    return builder.finished()


@final
class _Builder:
    """Collects the points, meshes and lines of one model."""

    def __init__(self, model: Model, fineness: Mapping[str, tuple[int, int]] = MappingProxyType({})) -> None:
        self.model, self.robot, self.fineness = model, model.description, fineness
        self.meshes: list[Mesh] = []
        self.lines: list[Line] = []
        self.placed: list[_Placed] = []
        self.wraps: list[tuple[slice, np.ndarray, PathWrap]] = []
        self.size = 0
        self.sections: list[RodSections] = []
        self.first: dict[str, int] = {}

    def geometry(self) -> Geometry:
        """Geometry of the whole robot."""
        self._collect_sections()
        for name, body in zip(self.model.links.names, self.model.links.body):
            if body is not None:
                self._add_body(name, body)
        for actuator in self.robot.actuators.values():
            if isinstance(actuator, Tendon):
                self._add_path("tendon", actuator.name, actuator.path)
            if isinstance(actuator, Chamber):
                area = profile(actuator.area, f"{actuator.name}: area")
                radius = np.sqrt(np.array([float(area(s)) for s in _abscissae(actuator.path)]) / np.pi)
                self._add_line("chamber", actuator.name, [self._along(actuator.path)], [actuator.path], radius)
        for spring in sorted(self.robot.springs.values(), key=lambda spring: not spring.is_straight):
            for _, path in spring.paths():
                self._add_path("spring", spring.name, path)
        self._add_ties()
        loops = self.model.loops
        for kind, name, nodes, placements in zip(loops.kinds, loops.names, loops.node, loops.placement):
            if kind == "loops":
                ends = [self.node(int(k), g[None, :3, 3]) for k, g in zip(nodes, placements)]
                loop = self.robot.loops[name]
                self._add_line("loop", name, ends, [PathPoint(loop.link_a), PathPoint(loop.link_b)])
        return self.finished()

    def finished(self) -> Geometry:
        """Geometry of the meshes and lines added so far."""
        frame = np.concatenate([np.zeros(0, dtype=int), *(part.frame for part in self.placed)])
        local = np.concatenate([np.zeros((0, 3)), *(part.local for part in self.placed)])
        moving, start = [], 0
        for part in self.placed:
            if part.moved is not None:
                moving.append((slice(start, start + len(part.frame)), *part.moved))
            start += len(part.frame)
        return Geometry(self.model, tuple(self.meshes), tuple(self.lines), tuple(self.sections), frame, local,
                        tuple(moving), tuple(self.wraps))  # fmt: skip

    def _collect_sections(self) -> None:
        """Collect the abscissae at which meshes, paths, springs and children need sections of rods."""
        wanted = {name: [np.linspace(0.0, 1.0, self._fineness(name)[0])] for name in self.model.rods}
        for item in [*self._path_items(), *(PathPoint(x.parent, s=x.at) for x in self.robot.links.values())]:
            if item.link in wanted and not isinstance(item, PathBody):
                wanted[item.link].append(_abscissae(item))
        start = self.model.n_nodes + 1
        for name, found in wanted.items():
            self.sections.append(RodSections(name, np.unique(np.concatenate(found))))
            self.first[name] = start
            start += len(self.sections[-1].s)

    def _fineness(self, name: str) -> tuple[int, int]:
        return self.fineness.get(name, (STATIONS, AROUND))

    def _path_items(self) -> Iterator[PathItem]:
        for actuator in self.robot.actuators.values():
            if isinstance(actuator, Tendon):
                yield from actuator.path
            if isinstance(actuator, Chamber):
                yield actuator.path
        for spring in self.robot.springs.values():
            for _, path in spring.paths():
                yield from path

    def node(self, node: int, local: np.ndarray) -> _Placed:
        """Points fixed to a node, -1 for the world."""
        number = self.model.n_nodes if node < 0 else node
        return _Placed(np.full(len(local), number), local)

    def _sections(self, link: str, s: np.ndarray, local: np.ndarray) -> _Placed:
        """Points in sections of a rod."""
        known = next(part.s for part in self.sections if part.link == link)
        return _Placed(self.first[link] + np.searchsorted(known, s), local)

    def _deforming(self) -> dict[str, int]:
        """Number of the deformable body by name of its link."""
        link = self.model.nodes.link[self.model.deforming.node]
        return {self.model.links.names[k]: b for b, k in enumerate(link.tolist())}

    def _body_node(self, name: str) -> tuple[int, np.ndarray]:
        """Frame of a body without sections: its node, and its placement in that."""
        b = self._deforming().get(name)
        return self.model.links.frame[name] if b is None else (int(self.model.deforming.node[b]), np.eye(4))

    def _point(self, item: PathPoint) -> _Placed:
        """A point of the description."""
        local = np.asarray(item.position, dtype=np.float64)[None]
        if item.link is None:
            return self.node(-1, local)
        if item.link in self.model.rods:
            return self._sections(item.link, np.array([float(item.s)]), local)  # pyright: ignore[reportArgumentType]
        if local.any():
            one = isinstance(item.s, str) or np.ndim(item.s) == 0
            place = places_of(self.model, item.link, item.s if one else [item.s])
        else:
            place = place_of_point(self.model, item.link, item.s)
        g = place.placement[0]
        return self.node(int(place.node[0]), local @ g[:3, :3].T + g[:3, 3])

    def _along(self, item: PathItem) -> _Placed:
        """Points of one item of a path."""
        if isinstance(item, PathPoint):
            return self._point(item)
        if isinstance(item, PathWrap):
            return self.node(int(self.model.segments.wrap_node[len(self.wraps)]), np.zeros((AROUND, 3)))
        if isinstance(item, PathRod):
            offset = offset_function(item.offset, "tendon: offset")
            s = _abscissae(item)
            return self._sections(item.link, s, np.array([[0.0, *offset(x)] for x in s]))
        points = _material_points(item)
        return self._followed(item.link, points)

    def _followed(self, link: str, points: np.ndarray) -> _Placed:
        """Points of a body; they move in its frame if it deforms."""
        (node, g), b, bodies = self._body_node(link), self._deforming().get(link), self.model.deforming
        if b is None:
            return self.node(node, points @ g[:3, :3].T + g[:3, 3])
        start, columns = int(bodies.q_start[b]), bodies.column_start
        body = self.model.links.body[self.model.links.names.index(link)]
        moved = slice(start, start + int(columns[b + 1] - columns[b])), body.followed(points)
        return self.node(node, points)._replace(moved=moved)

    def _add_body(self, name: str, body: Any) -> None:
        if body.is_slender:
            count, around = self._fineness(name)
            s = np.linspace(0.0, 1.0, count)
            found, station = rod_facets(body, s, around)
            along = np.column_stack([self.model.rods[name].strain.length * s[station], found.vertices[:, 1:]])
            placed = self._sections(name, s[station], found.vertices)
            self.add_mesh("rod", name, name, Facets(along, found.quads), placed, s[station])
            return
        meshes = body.drawn_meshes()
        for drawn in meshes:
            vertices, triangles = drawn.surface()
            found = welded(vertices[as_quads(triangles)])
            self.add_mesh("rigid", name, name, found, self._followed(name, found.vertices), color=drawn.color)
        if meshes:
            return
        solid, kind = body.solid(), "deformable" if name in self._deforming() else "rigid"
        if solid is None:
            vertices, triangles = body.domain.surface()
            found, split = Facets(vertices, as_quads(triangles)), None
        else:
            found, split = _split_solid(solid.form, tuple(solid.half), tuple(solid.centre))
        self.add_mesh(kind, name, name, found, self._followed(name, found.vertices), split=split)

    def add_mesh(
        self,
        kind: str,
        name: str,
        link: str | None,
        found: Facets,
        placed: _Placed,
        s: np.ndarray | None = None,
        color: Any = None,
        split: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Add facets whose vertices are placed; edges of the shape `found` stay sharp. `split` is what `split_at_edges`
        gives, if it is known."""
        quads, old = split_at_edges(found) if split is None else split
        moved = None
        if placed.moved is not None:
            columns, function = placed.moved
            moved = columns, lambda q: function(q)[old]
        rows = self._add(_Placed(placed.frame[old], placed.local[old], moved))
        at = np.full(len(old), np.nan) if s is None else s[old]
        painted = None if color is None else tuple(float(part) for part in color)
        self.meshes.append(Mesh(kind, name, link, rows, quads, at, painted))

    def _add_path(self, kind: str, name: str, path: Sequence[PathItem]) -> None:
        """Add the line of a path, and the shapes round which it runs. All paths come in the order of their pieces."""
        start, parts = self.size, []
        for item in path:
            parts.append(self._along(item))
            if isinstance(item, PathWrap):
                placement = self.model.segments.wrap_placement[len(self.wraps)]
                self.wraps.append((slice(start, start + AROUND), placement, item))
            start += len(parts[-1].frame)
        self._add_line(kind, name, parts, path)

    def _add_line(
        self,
        kind: str,
        name: str,
        parts: Sequence[_Placed],
        items: Sequence[PathItem],
        radius: np.ndarray = _NONE,
    ) -> None:
        start = self.size
        for part in parts:
            self._add(part)
        links = dict.fromkeys(item.link for item in items if item.link is not None)
        self.lines.append(Line(kind, name, slice(start, self.size), tuple(links), radius))

    def _add(self, placed: _Placed) -> slice:
        self.placed.append(placed)
        self.size += len(placed.frame)
        return slice(self.size - len(placed.frame), self.size)

    def _add_ties(self) -> None:
        """Add a straight line from the attachment point on the parent link to the origin of the child's frame."""
        for name, link in self.robot.links.items():
            if link.parent is None:
                continue
            if name in self.model.rods:
                node, g = self.model.rods[name].base
            else:
                node, g = self._body_node(name)
            ends = [self._point(PathPoint(link.parent, s=link.at)), self.node(node, g[None, :3, 3])]
            self._add_line("tie", name, ends, [PathPoint(link.parent), PathPoint(name)])


def _abscissae(item: PathItem) -> np.ndarray:
    """Abscissae at which a path or a point needs sections of its rod."""
    if isinstance(item, PathRod):
        return np.linspace(item.start, item.stop, _ALONG)
    return np.array([float(item.s)])  # type: ignore[union-attr]


def _material_points(item: PathBody) -> np.ndarray:
    """Points along a path in the reference shape of a deformable body, shape (m, 3)."""
    if callable(item.points):
        return np.array([item.points(s) for s in np.linspace(0.0, 1.0, _ALONG)])
    points = np.asarray(item.points, dtype=np.float64)
    if item.gauss_points is None:
        return points
    at = np.linspace(0.0, len(points) - 1.0, STATIONS * (len(points) - 1) + 1)
    return np.stack([np.interp(at, np.arange(len(points)), column) for column in points.T], axis=1)


@final
class Facets(NamedTuple):
    """Vertices (v, 3) [m] and quadrilaterals (m, 4), counterclockwise seen from outside."""

    vertices: np.ndarray
    quads: np.ndarray


def area_vectors(corners: np.ndarray) -> np.ndarray:
    """Normals (..., 3) of quadrilaterals (..., 4, 3), as long as twice their areas [m²]."""
    return np.cross(corners[..., 2, :] - corners[..., 0, :], corners[..., 3, :] - corners[..., 1, :])


def as_quads(triangles: np.ndarray) -> np.ndarray:
    """Triangles (k, 3) as quadrilaterals that repeat their last corner."""
    return np.asarray(triangles)[:, [0, 1, 2, 2]]


def rod_facets(body: Body, s: np.ndarray, around: int = AROUND) -> tuple[Facets, np.ndarray]:
    """Surface of a slender body through its sections at abscissae (n,), and the number of the section of each vertex.

    The position of a vertex is given in the frame of its section, so its x is zero.
    """
    rings = np.array([body.cross_outline(x, around) for x in s])
    holes = np.array([body.cross_hole(x, around) for x in s])
    count, around = rings.shape[:2]
    quads, across = [_tube(count, around)], [rings.reshape(-1, 2), holes.reshape(-1, 2)]
    station = [np.repeat(np.arange(count), around)] * (2 if holes.size else 1)
    if holes.size:
        quads += [_tube(count, around)[:, ::-1] + count * around, *_washers(count, around)]
    else:
        for k in (0, count - 1):
            centre, triangles = _lid(rings[k])
            number = np.append(k * around + np.arange(around), sum(map(len, station)))[triangles]
            quads.append(as_quads(number[:, ::-1] if k == 0 else number))
            across.append(centre)
            station.append(np.full(len(centre), k))
    points = np.concatenate(across)
    return Facets(np.column_stack([np.zeros(len(points)), points]), np.concatenate(quads)), np.concatenate(station)


def _lid(ring: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangles that fill a ring (n, 2): a fan around its centre if all of the ring is visible from there, otherwise by
    ear clipping."""
    centre, k = ring.mean(axis=0), np.arange(len(ring))
    from_centre, ahead = ring - centre, np.roll(ring, -1, axis=0) - centre
    if (from_centre[:, 0] * ahead[:, 1] - from_centre[:, 1] * ahead[:, 0] >= 0.0).all():
        return centre[None], np.stack([np.full(len(ring), len(ring)), k, (k + 1) % len(ring)], axis=-1)
    return np.zeros((0, 2)), polygon_triangles(ring)


def _tube(count: int, around: int) -> np.ndarray:
    """Quadrilaterals between rings of vertices, ring after ring."""
    k, i = (part.ravel() for part in np.meshgrid(np.arange(count - 1), np.arange(around), indexing="ij"))
    a, b = k * around + i, k * around + (i + 1) % around
    return np.stack([a, b, b + around, a + around], axis=-1)


def _washers(count: int, around: int) -> list[np.ndarray]:
    """Quadrilaterals between the outer and the inner ring at both ends of a tube."""
    i = np.arange(around)
    ahead, inner, last = (i + 1) % around, count * around, (count - 1) * around
    base = np.stack([i, i + inner, ahead + inner, ahead], axis=-1)
    return [base, base[:, ::-1] + last]


def polygon_triangles(points: np.ndarray) -> np.ndarray:
    """Triangles (n − 2, 3) of a counterclockwise polygon (n, 2), by ear clipping."""
    left, found = list(range(len(points))), []
    while len(left) > 3:
        corners = points[left]
        turns, before, after = _turns(corners), np.roll(corners, 1, axis=0), np.roll(corners, -1, axis=0)
        ears = [k for k in np.argsort(-turns) if not _contains(before[k], corners[k], after[k], corners)]
        k = int(ears[0]) if ears and turns[ears[0]] > 0.0 else int(np.argmin(np.abs(turns)))
        found.append((left[k - 1], left[k], left[(k + 1) % len(left)]))
        del left[k]
    return np.array([*found, tuple(left)])


def _turns(points: np.ndarray) -> np.ndarray:
    """Twice the signed area of each corner with its two neighbours."""
    before, after = points - np.roll(points, 1, axis=0), np.roll(points, -1, axis=0) - points
    return before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]


def _contains(a: np.ndarray, b: np.ndarray, c: np.ndarray, points: np.ndarray) -> bool:
    """Whether a triangle contains a point other than its corners."""
    sides = []
    for start, stop in pairwise((a, b, c, a)):
        edge, to = stop - start, points - start
        sides.append(edge[0] * to[:, 1] - edge[1] * to[:, 0] >= 0.0)
    corner = np.array([(points == x).all(axis=1) for x in (a, b, c)]).any(axis=0)
    return bool((np.all(sides, axis=0) & ~corner).any())


@lru_cache(maxsize=512)
def _split_solid(form: str, half: tuple[float, ...], centre: tuple[float, ...]) -> tuple[Facets, Any]:
    """Facets of a solid, and the same split at its edges. Robots have many equal ones, also after an edit."""
    found = solid_facets(Solid(form, np.array(half), np.array(centre)))
    return found, split_at_edges(found)


def solid_facets(solid: Solid) -> Facets:
    """Facets of a solid in the frame of its body."""
    if solid.form == "box":
        return welded(box_faces(solid.half) + solid.centre)
    turn = np.linspace(-np.pi / 2, np.pi / 2, 25)
    ends = np.array([-1.0, -1.0, 1.0, 1.0])
    is_round = solid.form == "ellipsoid"
    height, radius = (np.sin(turn), np.cos(turn)) if is_round else (ends, np.array([0.0, 1.0, 1.0, 0.0]))
    along_z = revolved(height, radius)
    return welded(along_z[..., [2, 0, 1]] * solid.half + solid.centre)


def welded(corners: np.ndarray) -> Facets:
    """Quadrilaterals (m, 4, 3) with shared vertices where corners coincide; those of zero area are dropped."""
    points = corners.reshape(-1, 3)
    size = float(np.ptp(points, axis=0).max()) or 1.0
    _, first, number = np.unique(np.round(points / size, 9) + 0.0, axis=0, return_index=True, return_inverse=True)
    quads = number.reshape(-1, 4)
    flat = np.linalg.norm(area_vectors(corners), axis=-1) <= 1e-12 * size**2
    return Facets(points[first], quads[~flat])


def split_at_edges(found: Facets) -> tuple[np.ndarray, np.ndarray]:
    """Quadrilaterals with vertices doubled along edges, and the old number of each vertex."""
    quads = found.quads
    corner = np.arange(quads.size).reshape(quads.shape)
    ahead = np.roll(corner, -1, axis=1).ravel()
    twice = np.flatnonzero(quads.ravel() == quads.ravel()[ahead])
    ones, others = _smooth_corners(found, ahead)
    ones, others = np.concatenate([ones, twice]), np.concatenate([others, ahead[twice]])
    graph = coo_matrix((np.ones(len(ones)), (ones, others)), shape=(quads.size, quads.size))
    count, group = connected_components(graph, directed=False)
    old = np.empty(count, dtype=np.int64)
    old[group] = quads.ravel()
    return group.reshape(quads.shape), old


def _smooth_corners(found: Facets, ahead: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of corners that two smoothly joined facets share, numbered through all quadrilaterals.

    Args:
        ahead: the next corner of each.
    """
    normal = area_vectors(found.vertices[found.quads])
    normal /= np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-300)
    vertex = found.quads.ravel()
    start, stop = vertex.astype(np.int64), vertex[ahead].astype(np.int64)
    edge = np.minimum(start, stop) * len(found.vertices) + np.maximum(start, stop)
    order = np.argsort(edge, kind="stable")
    order = order[(start != stop)[order]]
    same = np.flatnonzero(edge[order[1:]] == edge[order[:-1]])
    a, b = order[same], order[same + 1]
    smooth = (normal[a // 4] * normal[b // 4]).sum(axis=1) >= _SHARP
    a, b = a[smooth], b[smooth]
    against = start[a] == stop[b]  # as neighbours that are seen from the same side run along their edge
    first, second = np.where(against, ahead[b], b), np.where(against, b, ahead[b])
    return np.concatenate([a, ahead[a]]), np.concatenate([first, second])
