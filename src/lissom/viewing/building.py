"""How the surfaces and lines of a model are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from lissom.dynamics.kinematics import forward_kinematics
from lissom.model.model import Model
from lissom.model.points import place_of_point, places_of
from lissom.robot.actuators import PathBody, PathItem, PathPoint, PathRod, Tendon, offset_function
from lissom.viewing.meshing import STATIONS, Facets, as_quads, rod_facets, solid_facets, split_at_edges, welded
from lissom.viewing.surfaces import Geometry, Line, Mesh, Stretch, limited

ALONG = 2 * STATIONS - 1  # points of a tendon along a rod


@final
class Placed(NamedTuple):
    """Points (n, 3) in frames (n,), see Geometry; and what moves them where they are of a body that deforms."""

    frame: np.ndarray
    local: np.ndarray
    moved: tuple[slice, Callable[[np.ndarray], np.ndarray]] | None = None


def robot_geometry(model: Model) -> Geometry:
    """The bodies, tendons and springs of a model, and where its links and loops meet."""
    return model.cached(("geometry",), lambda: _Builder(model).geometry())


def contact_geometry(
    model: Model, q: np.ndarray, low: np.ndarray, high: np.ndarray, links: Sequence[str] | None = None
) -> Geometry:
    """Each shape that contacts fix to the world or to one of the links.

    What has no end reaches over the box from `low` to `high` at a configuration (nq,); a shape of several contacts
    comes once.
    """
    builder, world, known = _Builder(model), model.surroundings, set()
    corners = np.array(np.meshgrid(*zip(low, high))).reshape(3, -1).T
    for k, (shape, link) in enumerate(zip(world.obstacle_shape, world.obstacle_link)):
        node, placement = int(world.obstacle_node[k]), world.obstacle_placement[k]
        key = int(world.obstacle_kind[k]), node, placement.tobytes(), world.obstacle_size[k].tobytes()
        if shape is None or key in known or (link is not None and not limited([link], links)):
            continue
        known.add(key)
        g = (np.eye(4) if node < 0 else forward_kinematics(model, q)[node]) @ placement
        seen = (corners - g[:3, 3]) @ g[:3, :3]
        found = welded(shape.facets(seen.min(axis=0), seen.max(axis=0)))
        kind = "plane" if len(found.quads) == 1 else "shape"
        local = found.vertices @ placement[:3, :3].T + placement[:3, 3]
        touched = world.pair[world.pair[:, 1] == k, 2]
        name = world.contact_names[int(touched[0])] if len(touched) else f"shape {k}"
        builder.add_mesh(kind, name, link, Facets(local, found.quads), builder.node(node, local))
    return builder.geometry_of_shapes()


@final
class _Builder:
    def __init__(self, model: Model) -> None:
        self.model, self.robot = model, model.description
        self.meshes: list[Mesh] = []
        self.lines: list[Line] = []
        self.placed: list[Placed] = []
        self.size = 0
        self.stretches: list[Stretch] = []
        self.first: dict[str, int] = {}

    def geometry(self) -> Geometry:
        self._stretch()
        for name, body in zip(self.model.links.names, self.model.links.body):
            if body is not None:
                self._add_body(name, body)
        for actuator in self.robot.actuators.values():
            if isinstance(actuator, Tendon):
                self._add_line("tendon", actuator.name, [self._along(item) for item in actuator.path], actuator.path)
        for spring in self.robot.springs.values():
            self._add_line("spring", spring.name, [self._point(end) for end in spring.ends()], spring.ends())
        self._add_ties()
        for name, nodes, placements in zip(self.model.loops.names, self.model.loops.node, self.model.loops.placement):
            ends = [self.node(int(k), g[None, :3, 3]) for k, g in zip(nodes, placements)]
            loop = self.robot.loops[name]
            self._add_line("loop", name, ends, [PathPoint(loop.link_a), PathPoint(loop.link_b)])
        return self._made()

    def geometry_of_shapes(self) -> Geometry:
        return self._made()

    def _made(self) -> Geometry:
        frame = np.concatenate([np.zeros(0, dtype=int), *(part.frame for part in self.placed)])
        local = np.concatenate([np.zeros((0, 3)), *(part.local for part in self.placed)])
        moving, start = [], 0
        for part in self.placed:
            if part.moved is not None:
                moving.append((slice(start, start + len(part.frame)), *part.moved))
            start += len(part.frame)
        return Geometry(self.model, tuple(self.meshes), tuple(self.lines), tuple(self.stretches), frame, local,
                        tuple(moving))  # fmt: skip

    # -- frames and points in them ------------------------------------------------------------------------------------

    def _stretch(self) -> None:
        """Which sections of rods are asked for."""
        wanted = {name: [np.linspace(0.0, 1.0, STATIONS)] for name in self.model.rods}
        ends = [end for spring in self.robot.springs.values() for end in spring.ends()]
        for item in [*self._path_items(), *ends, *(PathPoint(x.parent, s=x.at) for x in self.robot.links.values())]:
            if item.link in wanted and not isinstance(item, PathBody):
                wanted[item.link].append(_abscissae(item))
        start = self.model.n_nodes + 1
        for name, found in wanted.items():
            self.stretches.append(Stretch(name, np.unique(np.concatenate(found))))
            self.first[name] = start
            start += len(self.stretches[-1].s)

    def _path_items(self) -> Iterator[PathItem]:
        for actuator in self.robot.actuators.values():
            if isinstance(actuator, Tendon):
                yield from actuator.path

    def node(self, node: int, local: np.ndarray) -> Placed:
        """Points fixed to a node, -1 for the world."""
        number = self.model.n_nodes if node < 0 else node
        return Placed(np.full(len(local), number), local)

    def _sections(self, link: str, s: np.ndarray, local: np.ndarray) -> Placed:
        """Points in sections of a rod."""
        known = next(stretch.s for stretch in self.stretches if stretch.link == link)
        return Placed(self.first[link] + np.searchsorted(known, s), local)

    def _deforming(self) -> dict[str, int]:
        """The number of the deformable body of each link that has one."""
        link = self.model.nodes.link[self.model.deforming.node]
        return {self.model.links.names[k]: b for b, k in enumerate(link.tolist())}

    def _body_node(self, name: str) -> tuple[int, np.ndarray]:
        """The frame of a body that has no sections: a node and the placement in it."""
        b = self._deforming().get(name)
        return self.model.links.frame[name] if b is None else (int(self.model.deforming.node[b]), np.eye(4))

    def _point(self, item: PathPoint) -> Placed:
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

    def _along(self, item: PathItem) -> Placed:
        """The points of one item of a path."""
        if isinstance(item, PathPoint):
            return self._point(item)
        if isinstance(item, PathRod):
            offset = offset_function(item.offset, "tendon: offset")
            s = _abscissae(item)
            return self._sections(item.link, s, np.array([[0.0, *offset(x)] for x in s]))
        points = _material_points(item)
        return self._followed(item.link, points)

    def _followed(self, link: str, points: np.ndarray) -> Placed:
        """Points of a body, which move in it as it deforms."""
        (node, g), b, bodies = self._body_node(link), self._deforming().get(link), self.model.deforming
        if b is None:
            return self.node(node, points @ g[:3, :3].T + g[:3, 3])
        start, columns = int(bodies.q_start[b]), bodies.column_start
        body = self.model.links.body[self.model.links.names.index(link)]
        moved = slice(start, start + int(columns[b + 1] - columns[b])), body.followed(points)
        return self.node(node, points)._replace(moved=moved)

    # -- what is drawn ------------------------------------------------------------------------------------------------

    def _add_body(self, name: str, body: Any) -> None:
        if body.is_slender:
            s = np.linspace(0.0, 1.0, STATIONS)
            found, station = rod_facets(body, s)
            along = np.column_stack([self.model.rods[name].strain.length * s[station], found.vertices[:, 1:]])
            placed = self._sections(name, s[station], found.vertices)
            self.add_mesh("rod", name, name, Facets(along, found.quads), placed, s[station])
            return
        for drawn in body.drawn_meshes():
            vertices, triangles = drawn.surface()
            found = welded(vertices[as_quads(triangles)])
            self.add_mesh("rigid", name, name, found, self._followed(name, found.vertices), color=drawn.color)
        if body.drawn_meshes():
            return
        solid, deforms = body.solid(), name in self._deforming()
        found = solid_facets(solid) if solid is not None else _of_triangles(body.domain.surface())
        self.add_mesh("deformable" if deforms else "rigid", name, name, found, self._followed(name, found.vertices))

    def add_mesh(
        self,
        kind: str,
        name: str,
        link: str | None,
        found: Facets,
        placed: Placed,
        s: np.ndarray | None = None,
        color: Any = None,
    ) -> None:
        """Facets whose vertices are placed; the edges of their shape in `found` stay sharp."""
        quads, old = split_at_edges(found)
        moved = None
        if placed.moved is not None:
            columns, function = placed.moved
            moved = columns, lambda q: function(q)[old]
        rows = self._add(Placed(placed.frame[old], placed.local[old], moved))
        at = np.full(len(old), np.nan) if s is None else s[old]
        painted = None if color is None else tuple(float(part) for part in color)
        self.meshes.append(Mesh(kind, name, link, rows, quads, at, painted))

    def _add_line(self, kind: str, name: str, parts: Sequence[Placed], items: Sequence[PathItem]) -> None:
        start = self.size
        for part in parts:
            self._add(part)
        links = dict.fromkeys(item.link for item in items if item.link is not None)
        self.lines.append(Line(kind, name, slice(start, self.size), tuple(links)))

    def _add(self, placed: Placed) -> slice:
        self.placed.append(placed)
        self.size += len(placed.frame)
        return slice(self.size - len(placed.frame), self.size)

    def _add_ties(self) -> None:
        """From where a link is carried to its own frame."""
        for name, link in self.robot.links.items():
            if link.parent is None:
                continue
            if name in self.model.rods:
                node, g = self.model.rods[name].base
            else:
                node, g = self._body_node(name)
            ends = [self._point(PathPoint(link.parent, s=link.at)), self.node(node, g[None, :3, 3])]
            self._add_line("tie", name, ends, [PathPoint(link.parent), PathPoint(name)])


def _of_triangles(surface: tuple[np.ndarray, np.ndarray]) -> Facets:
    return Facets(surface[0], as_quads(surface[1]))


def _abscissae(item: PathItem) -> np.ndarray:
    """Where a path, or one point, needs the sections of its rod."""
    if isinstance(item, PathRod):
        return np.linspace(item.start, item.stop, ALONG)
    return np.array([float(item.s)])  # type: ignore[union-attr]


def _material_points(item: PathBody) -> np.ndarray:
    """Points along a path in a deformable body in its reference shape, shape (m, 3)."""
    if callable(item.points):
        return np.array([item.points(s) for s in np.linspace(0.0, 1.0, ALONG)])
    points = np.asarray(item.points, dtype=np.float64)
    if item.gauss_points is None:
        return points
    at = np.linspace(0.0, len(points) - 1.0, STATIONS * (len(points) - 1) + 1)
    return np.stack([np.interp(at, np.arange(len(points)), column) for column in points.T], axis=1)
