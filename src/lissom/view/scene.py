"""What a robot looks like: facets of its bodies and of what it touches, and lines of its tendons in the world.

NumPy only, no plotting.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lissom.dynamics.kinematics import forward_kinematics, frame_pose, poses_at
from lissom.model.model import Model
from lissom.model.points import place_of_point
from lissom.robot import facets
from lissom.robot.actuators import PathBody, PathItem, PathRod, Tendon, offset_function
from lissom.robot.bodies import Body, Solid
from lissom.robot.robot import Robot

STATIONS = 41
AROUND = 24


def body_facets(model: Model, q: np.ndarray, name: str) -> np.ndarray:
    """Quadrilaterals of the body of a link, (n, m, 4, 3) [m] for configurations (n, nq); m is 0 without a body."""
    body = model.links.body[model.links.names.index(name)]
    solid = None if body is None else body.solid()
    if solid is not None:
        return _on_frame(frame_pose(model, q, name), _solid_facets(solid))
    if body is not None and body.is_slender:
        return _slender_facets(model, q, name, body)
    return np.zeros((len(q), 0, 4, 3)) if body is None else _surface_facets(model, q, name, body)


def soft_links(model: Model) -> set[str]:
    """Names of the links whose bodies change their shape."""
    return {*model.rods, *(model.links.names[k] for k in model.nodes.link[model.deforming.node])}


def connectors(model: Model, q: np.ndarray, links: Sequence[str]) -> np.ndarray:
    """Straight lines from each link to the links it carries away from its own end, shape (n, m, 2, 3) [m]."""
    lines = []
    for k, name in enumerate(model.links.names):
        parent = int(model.links.parent[k])
        if parent >= 0 and name in links and model.links.names[parent] in links:
            start = _origin(model, q, name)
            rod = model.links.names[parent] in model.rods
            s = np.linspace(0.0, 1.0, STATIONS) if rod else [model.description.links[name].at]
            held = frame_pose(model, q, model.links.names[parent], s=s)[..., :3, 3]
            near = np.argmin(np.linalg.norm(held - start[:, None], axis=-1), axis=-1) if rod else 0
            lines.append(np.stack([held[np.arange(len(q)), near], start], axis=1))
    return np.stack(lines, axis=1) if lines else np.zeros((len(q), 0, 2, 3))


def tendon_lines(model: Model, robot: Robot, q: np.ndarray) -> dict[str, np.ndarray]:
    """Lines of the tendons by name, each (n, points, 3) [m] for configurations (n, nq)."""
    tendons = [actuator for actuator in robot.actuators.values() if isinstance(actuator, Tendon)]
    return {t.name: np.concatenate([_path_line(model, q, item) for item in t.path], axis=1) for t in tendons}


def obstacle_facets(
    model: Model, q: np.ndarray, links: Sequence[str], low: np.ndarray, high: np.ndarray
) -> list[np.ndarray]:
    """Quadrilaterals (n, m, 4, 3) [m] of each shape that contacts fix to the world or to one of the links.

    What has no end reaches over the box from `low` to `high`; a shape of several contacts comes once.
    """
    world, found = model.surroundings, {}
    corners = np.array(np.meshgrid(*zip(low, high))).reshape(3, -1).T
    for k, (shape, link) in enumerate(zip(world.obstacle_shape, world.obstacle_link)):
        if shape is None or (link is not None and link not in links):
            continue
        node, placement = int(world.obstacle_node[k]), world.obstacle_placement[k]
        g = (np.eye(4) if link is None else forward_kinematics(model, q)[..., node, :, :]) @ placement
        g = np.broadcast_to(g, (len(q), 4, 4))
        seen = np.einsum("nji,ncj->nci", g[:, :3, :3], corners - g[:, None, :3, 3]).reshape(-1, 3)
        key = int(world.obstacle_kind[k]), node, placement.tobytes(), world.obstacle_size[k].tobytes()
        found[key] = _on_frame(g, shape.facets(seen.min(axis=0), seen.max(axis=0)))
    return list(found.values())


def cut_to_box(polygons: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """What lies inside a box of polygons (m, corners, 3), each a polygon (k, 3)."""
    inside = ((polygons >= low) & (polygons <= high)).all(axis=(1, 2))
    cut = [_cut(polygon, low, high) for polygon in polygons[~inside]]
    return [*polygons[inside], *(polygon for polygon in cut if len(polygon) > 2)]


def _cut(polygon: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The part of a convex polygon inside a box, side after side (Sutherland and Hodgman 1974)."""
    for axis in range(3):
        for sign, bound in ((1.0, low[axis]), (-1.0, high[axis])):
            kept, depth = [], sign * (polygon[:, axis] - bound)
            for k in range(len(polygon)):
                if depth[k - 1] * depth[k] < 0.0:
                    part = depth[k - 1] / (depth[k - 1] - depth[k])
                    kept.append(polygon[k - 1] + part * (polygon[k] - polygon[k - 1]))
                if depth[k] >= 0.0:
                    kept.append(polygon[k])
            polygon = np.array(kept).reshape(-1, 3)
    return polygon


def ribbon_facets(line: np.ndarray, radius: float) -> np.ndarray:
    """A thin three-sided tube along lines (n, points, 3), as quadrilaterals (n, m, 4, 3)."""
    along = np.gradient(line, axis=1)
    along /= np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), 1e-300)
    least = np.eye(3)[np.argmin(np.abs(along).mean(axis=1), axis=-1)]
    side = np.cross(along, least[:, None])
    side /= np.maximum(np.linalg.norm(side, axis=-1, keepdims=True), 1e-300)
    other = np.cross(along, side)
    turns = 2 * np.pi / 3 * np.arange(3)
    return facets.between(np.stack([line + radius * (np.cos(a) * side + np.sin(a) * other) for a in turns], axis=2))


def facet_normals(facets: np.ndarray) -> np.ndarray:
    """Unit normals of quadrilaterals (m, 4, 3) from their diagonals, shape (m, 3)."""
    normals = np.cross(facets[:, 2] - facets[:, 0], facets[:, 3] - facets[:, 1])
    return normals / np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-300)


def _slender_facets(model: Model, q: np.ndarray, name: str, body: Body) -> np.ndarray:
    s = np.linspace(0.0, 1.0, STATIONS)
    outline = np.array([body.cross_outline(x, AROUND) for x in s])
    g = frame_pose(model, q, name, s=s)
    rings = g[..., None, :3, 3] + np.einsum("nsij,skj->nski", g[..., :3, 1:3], outline)
    return np.concatenate(
        [facets.between(rings), _cap(rings[:, 0], g[:, 0], True), _cap(rings[:, -1], g[:, -1], False)], 1
    )


def _surface_facets(model: Model, q: np.ndarray, name: str, body: Body) -> np.ndarray:
    """The surface of a body that deforms, as triangles with their first corner doubled."""
    drawn = [body.surface(row) for row in _own_coordinates(model, q, name)]
    facets = np.stack([vertices[triangles][:, [0, 1, 2, 0]] for vertices, triangles in drawn])
    g = frame_pose(model, q, name, s=0.0)
    return np.einsum("nij,nfcj->nfci", g[:, :3, :3], facets) + g[:, None, None, :3, 3]


def _own_coordinates(model: Model, q: np.ndarray, name: str) -> np.ndarray:
    """θ of the deformable body of a link, shape (n, 0) where it is none."""
    bodies, link = model.deforming, model.links.names.index(name)
    here = [(int(bodies.q_start[b]), int(bodies.column_start[b + 1] - bodies.column_start[b]))
            for b, node in enumerate(bodies.node) if model.nodes.link[node] == link]  # fmt: skip
    first, n = here[0] if here else (0, 0)
    return q[:, first : first + n]


def _path_in_body(model: Model, q: np.ndarray, item: PathBody) -> np.ndarray:
    """Points along a path in a deformable body, in the body's frame, shape (n, m, 3)."""
    if callable(item.points):
        points = np.array([item.points(s) for s in np.linspace(0.0, 1.0, 2 * STATIONS)])
    else:
        points = np.asarray(item.points, dtype=np.float64)
        if item.gauss_points is not None:
            at = np.linspace(0.0, len(points) - 1.0, STATIONS * (len(points) - 1) + 1)
            points = np.stack([np.interp(at, np.arange(len(points)), column) for column in points.T], axis=1)
    body = model.links.body[model.links.names.index(item.link)]
    return np.array([body.moved(points, row) for row in _own_coordinates(model, q, item.link)])


def _cap(ring: np.ndarray, g: np.ndarray, backwards: bool) -> np.ndarray:
    """The flat end of a rod as triangles (their last corner doubled) about its centre."""
    centre = np.broadcast_to(g[:, None, :3, 3], ring.shape)
    ends = (np.roll(ring, -1, axis=1), ring) if backwards else (ring, np.roll(ring, -1, axis=1))
    return np.stack([centre, *ends, centre], axis=2)


def _solid_facets(solid: Solid) -> np.ndarray:
    """Facets of a solid in the frame of its body."""
    if solid.form == "box":
        return facets.box(solid.half) + solid.centre
    x = np.linspace(-1.0, 1.0, 13)
    profile = np.sqrt(np.maximum(1.0 - x**2, 0.0)) if solid.form == "ellipsoid" else np.ones_like(x)
    angle = 2 * np.pi * np.arange(AROUND) / AROUND
    circle = np.stack([np.zeros_like(angle), np.cos(angle), np.sin(angle)], axis=1)
    rings = (x[:, None, None] * np.array([1.0, 0.0, 0.0]) + profile[:, None, None] * circle) * solid.half
    ends = [_cap(rings[k][None], _at(rings[k].mean(axis=0))[None], k == 0)[0] for k in (0, -1)]
    return np.concatenate([facets.between(rings[None])[0], *ends]) + solid.centre


def _at(position: np.ndarray) -> np.ndarray:
    g = np.eye(4)
    g[:3, 3] = position
    return g


def _on_frame(g: np.ndarray, facets: np.ndarray) -> np.ndarray:
    return np.einsum("nij,fcj->nfci", g[:, :3, :3], facets) + g[:, None, None, :3, 3]


def _origin(model: Model, q: np.ndarray, name: str) -> np.ndarray:
    return frame_pose(model, q, name, s=0.0)[..., :3, 3]


def _path_line(model: Model, q: np.ndarray, item: PathItem) -> np.ndarray:
    if isinstance(item, PathBody):
        local = _path_in_body(model, q, item)
        g = frame_pose(model, q, item.link, s=0.0)
        return g[:, None, :3, 3] + np.einsum("nij,nsj->nsi", g[:, :3, :3], local)
    if isinstance(item, PathRod):
        s = np.linspace(item.start, item.stop, 2 * STATIONS)
        offset = offset_function(item.offset, "tendon: offset")
        local = np.array([[0.0, *offset(x)] for x in s])
        g = frame_pose(model, q, item.link, s=s)
        return g[..., :3, 3] + np.einsum("nsij,sj->nsi", g[..., :3, :3], local)
    position = np.asarray(item.position, dtype=np.float64)
    if item.link is None:
        return np.broadcast_to(position, (len(q), 1, 3))
    if not position.any():
        return poses_at(model, q, place_of_point(model, item.link, item.s))[:, :, :3, 3]
    s = item.s if isinstance(item.s, str) or np.ndim(item.s) == 0 else [item.s]
    g = frame_pose(model, q, item.link, s=s).reshape(-1, 4, 4)
    return (g[:, :3, :3] @ position + g[:, :3, 3])[:, None]
