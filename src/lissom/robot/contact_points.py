"""Points by which a shape touches other shapes.

A contact of two shapes is integrated over points of each of them on the other one. Points are balls inside the shape
that touch its surface, and sharp points of radius 0: corners, and cells along edges and rims. Rows are those of
robot.surface_points.

| shape | balls | sharp points |
|---|---|---|
| sphere | itself | |
| capsule | its two ends, and balls along the axis | |
| cylinder | along the axis | both rims |
| torus | around its circle | |
| box | | corners, and cells along the edges |
| cone | | rim and tip |
| mesh, hull, ellipsoid, function | balls that fill it | vertices, and cells along the edges of its convex hull |

On a plane corners are exact, so that cells along edges are left out there. A shape that has no points, such as an
infinite cylinder or a height field, could pass between the edges of a box: then the faces of the box have cells too.

A ball on the axis of a cylinder stands for a part of its length. Its row has half of this part along the axis in place
of the first half-edge of a cell. It touches only where its contact point is within this part, so that it does not reach
out of the flat ends.

Cells of edges have the direction between both faces as their normal, those of rims of cylinders the axis. Their force
has the factor (11) of forces.contact. A rim therefore carries an upright cylinder and leaves one that lies to its axis.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lissom.errors import ModelError
from lissom.robot.meshes import Mesh, convex_hull, fit_balls
from lissom.robot.sampled_shapes import ShapeFunction, ShapeHull, ShapeMesh
from lissom.robot.shapes import Shape, ShapeKind
from lissom.robot.surface_points import (
    COLUMNS,
    box_points,
    disc_ends,
    mesh_points,
    revolved_points,
    ring_points,
)

FILLING = 24  # balls that fill a mesh
_AROUND_RIM = 24  # points on a rim
_FACE_CELLS = 4  # cells along the shorter edge of a face of a box, on shapes without points
_PER_WIDTH = 1.25  # cells along an edge for each smallest width of the shape, so that one lies on any crossing edge
_MOST_CELLS = 128  # of one edge
_SHARP = 0.45  # angle between two faces of a hull from which their edge is sharp [rad]
_DIRECTIONS = 2000  # in which the vertices of a hull are compared with the points chosen
_INSIDE = 3e-3  # depth of the points inside a hull that is small enough, relative to its size
_VERTICES = 64  # largest number of vertices of a hull
UNBOUNDED = (ShapeKind.PLANE, ShapeKind.HOLLOW, ShapeKind.HEIGHTS)


class Points(NamedTuple):
    """Points of a shape.

    Fields:
        rows: of robot.surface_points, in the frame of the shape, (n, 17). Column 4 is the length or the width for which
            a point stands [m], 0 for a sphere.
        share: factor of a stiffness that is given for each corner, (n,).
        spacing: distance between its balls [m]: 0 for a sphere, which its ball represents exactly; inf for a mesh.
        gap: largest depth of the points inside the convex hull of a mesh [m].
    """

    rows: np.ndarray
    share: np.ndarray
    spacing: float = np.inf
    gap: float = 0.0


def detail_on(shape: Shape) -> str:
    """How much of another body touches this shape: its "corners", also its "edges", or also its "faces"."""
    surface = shape.surface("shape")
    if surface.kind in (ShapeKind.PLANE, ShapeKind.HOLLOW):
        return "corners"
    return "faces" if not has_points(shape) else "edges"


def has_points(shape: Shape) -> bool:
    """Whether a shape has points: it is bounded."""
    surface = shape.surface("shape")
    return surface.kind not in UNBOUNDED and not (surface.kind is ShapeKind.CYLINDER and surface.size[1] < 0.0)


def shape_points(shape: Shape, detail: str, count: int, where: str) -> Points:
    """The points of a shape.

    Args:
        detail: of `detail_on`. count: largest number of balls that fill a mesh.
    Raises:
        ModelError: a mesh cannot be read, or is flat.
    """
    kind, size, rotation = shape.surface(where)
    if not has_points(shape):
        return Points(np.zeros((0, COLUMNS)), np.zeros(0))
    if kind is ShapeKind.SPHERE:
        found = Points(_balls(np.zeros((1, 3)), size[0]), np.ones(1), 0.0)
    elif kind is ShapeKind.BOX:
        found = _box(np.array(size), detail)
    elif kind is ShapeKind.CAPSULE:
        found = _capsule(size[0], size[1], detail)
    elif kind is ShapeKind.CYLINDER:
        found = _cylinder(size[0], size[1], detail)
    elif kind is ShapeKind.CONE:
        found = _cone(size[0], size[1])
    elif kind is ShapeKind.TORUS:
        angle = 2.0 * np.pi * np.arange(_torus_count(*size[:2])) / _torus_count(*size[:2])
        ring = size[0] * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(len(angle))])
        found = Points(_balls(ring, size[1]), np.ones(len(ring)), 2.0 * np.pi * size[0] / len(ring))
    else:
        vertices, triangles = _triangles_of(shape, where)
        try:
            return _mesh(vertices.tobytes(), triangles.tobytes(), detail, count)
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None
    return found._replace(rows=turned_rows(found.rows, rotation))


def turned_rows(rows: np.ndarray, rotation: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
    """Rows of points in another frame."""
    out = rows.copy()
    out[:, :3] = rows[:, :3] @ rotation.T + (0.0 if shift is None else shift)
    out[:, 5:14] = (rows[:, 5:14].reshape(-1, 3, 3) @ rotation.T).reshape(-1, 9)
    return out


def _balls(centres: np.ndarray, radius: float, extent: float = 0.0) -> np.ndarray:
    rows = np.zeros((len(centres), COLUMNS))
    rows[:, :3], rows[:, 3], rows[:, 4] = centres, radius, extent
    return rows


def axis_balls(radius: float, half: float, count: int) -> np.ndarray:
    """Balls that share a length 2 `half` along z."""
    part = half / count
    centres = np.zeros((count, 3))
    centres[:, 2] = (2.0 * np.arange(count) + 1.0) * part - half
    rows = _balls(centres, radius, 2.0 * part)
    rows[:, 10] = part
    return rows


def _torus_count(radius: float, tube: float) -> int:
    return int(np.clip(np.ceil(4.0 * np.pi * radius / tube), 12, 96))


def _capsule(radius: float, half: float, detail: str) -> Points:
    count = 1 if detail == "corners" else int(np.ceil(4.0 * half / radius))
    ends = _balls(np.array([[0.0, 0.0, -half], [0.0, 0.0, half]]), radius)
    rows = np.concatenate([ends, axis_balls(radius, half, count)])
    return Points(rows, np.ones(len(rows)), 2.0 * half / count)


def _cylinder(radius: float, half: float, detail: str) -> Points:
    per_radius = 2.0 if detail == "corners" else 4.0
    count = max(int(np.ceil(per_radius * half / radius)), 2)
    rims = [_rim(radius, z, np.array([0.0, 0.0, np.sign(z)])) for z in (-half, half)]
    rows = np.concatenate([axis_balls(radius, half, count), *rims])
    return Points(rows, np.ones(len(rows)), 2.0 * half / count)


def _rim(radius: float, z: float, normal: np.ndarray) -> np.ndarray:
    """Points on a circle about z with one normal (3,), or one for each (n, 3)."""
    angle = 2.0 * np.pi * np.arange(_AROUND_RIM) / _AROUND_RIM
    ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.full(len(angle), z)])
    rows = _balls(ring, 0.0, 2.0 * radius / _AROUND_RIM)
    rows[:, 5:8] = normal
    return rows


def _cone(radius: float, half: float) -> Points:
    slant = np.hypot(radius, 2.0 * half)
    angle = 2.0 * np.pi * np.arange(_AROUND_RIM) / _AROUND_RIM
    out = 2.0 * half / slant
    normal = np.column_stack([out * np.cos(angle), out * np.sin(angle), np.full(len(angle), radius / slant - 1.0)])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    tip = _balls(np.array([[0.0, 0.0, half]]), 0.0, 0.5 * radius)
    rows = np.concatenate([_rim(radius, -half, normal), tip])
    return Points(rows, np.ones(len(rows)))


def _box(half: np.ndarray, detail: str) -> Points:
    """Corners, which share the punch of a mean face with the cells of its edges and faces."""
    corners = _balls(half * np.array(np.meshgrid(*[[-1.0, 1.0]] * 3, indexing="ij")).reshape(3, -1).T, 0.0)
    parts = [corners]
    if detail != "corners":
        parts += [_edge_of_box(half, axis, a, b) for axis in range(3) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    if detail == "faces":
        parts.append(box_points(half, _FACE_CELLS))
    width = 2.0 * np.sqrt(4.0 / 3.0 * (half[0] * half[1] + half[1] * half[2] + half[2] * half[0]) / np.pi)
    edges = sum(len(rows) for rows in parts[1:13])
    on_face = 4.0 + edges / 3.0 + (len(parts[13]) / 6.0 if detail == "faces" else 0.0)  # points of a mean face
    share = np.full(sum(map(len, parts)), 4.0 / on_face)
    rows = np.concatenate(parts)
    rows[:, 4] = width / on_face
    rows[8 : 8 + edges, 4] *= np.sqrt(2.0)  # their normals are at 45 degrees to the faces
    return Points(rows, share)


def _edge_of_box(half: np.ndarray, axis: int, a: float, b: float) -> np.ndarray:
    """Cells along an edge of a box, on the sides a and b of the other two axes."""
    step, count = _steps(2.0 * half[axis], 2.0 * half.min())
    rows = np.zeros((count, COLUMNS))
    one, two = (k for k in range(3) if k != axis)
    rows[:, axis] = step * (np.arange(count) + 0.5) - half[axis]
    rows[:, one], rows[:, two] = a * half[one], b * half[two]
    rows[:, 5 + one], rows[:, 5 + two] = a / np.sqrt(2.0), b / np.sqrt(2.0)
    rows[:, 8 + axis] = 0.5 * step
    return rows


def _steps(length: float, width: float) -> tuple[float, int]:
    """Length and number of the cells along an edge of a body with a smallest width [m]."""
    count = int(np.clip(np.ceil(_PER_WIDTH * (length / width - 1.0) + 1.0 - 1e-9), 1, _MOST_CELLS))
    return length / count, count


def _triangles_of(shape: Shape, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) [m] and triangles (m, 3) of a bounded shape in its frame."""
    if isinstance(shape, ShapeMesh | ShapeHull):
        solid = shape.solid(where)
        return solid.vertices, solid.triangles
    return Mesh.of_shape(shape).surface()


def closed_shape(shape: Shape, where: str) -> tuple[Shape, bool]:
    """A collision shape, or for an open mesh its convex hull; and whether it is this hull.

    Raises:
        ModelError: the mesh cannot be read, or is flat.
    """
    if not isinstance(shape, ShapeMesh) or shape.thickness is not None:
        return shape, False
    try:
        if not shape.fault:
            return shape, False
        corners = convex_hull(shape.mesh.surface()[0], "in place of its hull: its vertices")
    except ModelError as error:
        name = os.fspath(shape.mesh.file or "")
        file = f"mesh {name!r}: " if name and name not in str(error) else ""
        raise ModelError(f"{where}: {file}{error}; leave out this shape") from None
    return ShapeHull(np.unique(corners.reshape(-1, 3), axis=0), shape.resolution), True


@lru_cache(maxsize=256)
def _mesh(vertices: bytes, triangles: bytes, detail: str, count: int) -> Points:
    """Balls that fill a mesh, vertices of its convex hull where the balls are too far inside it, and cells along the
    edges of the hull."""
    points, rows = np.frombuffer(vertices).reshape(-1, 3), np.frombuffer(triangles, dtype=np.int64).reshape(-1, 3)
    fit = fit_balls(points, rows, count)
    balls = _balls(fit.balls[:, :3], 0.0)
    balls[:, 3] = fit.balls[:, 3]
    corners = convex_hull(points, "mesh")
    chosen, gap = _outer_vertices(np.unique(corners.reshape(-1, 3), axis=0), fit.balls)
    parts = [_balls(chosen, 0.0)]
    if detail != "corners":
        parts.append(_edges_of_hull(corners))
    sharp = np.concatenate(parts)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = 0.5 * float(np.linalg.norm(normal, axis=1).sum())
    on_face = max(0.5 * len(sharp), 4.0)
    sharp[:, 4] = 2.0 * np.sqrt(area / 6.0 / np.pi) / on_face
    share = np.concatenate([np.ones(len(balls)), np.full(len(sharp), 4.0 / on_face)])
    return Points(np.concatenate([balls, sharp]), share, gap=gap)


def _outer_vertices(vertices: np.ndarray, balls: np.ndarray) -> tuple[np.ndarray, float]:
    """Vertices of a hull (n, 3), added one after another in the direction in which the points chosen are deepest
    inside, and the depth that remains [m]."""
    k = np.arange(_DIRECTIONS)
    z, angle = 1.0 - (2.0 * k + 1.0) / _DIRECTIONS, k * np.pi * (3.0 - np.sqrt(5.0))
    flat = np.sqrt(1.0 - z * z)
    ways = np.column_stack([flat * np.cos(angle), flat * np.sin(angle), z])
    heights = vertices @ ways.T
    most, farthest = heights.max(axis=0), heights.argmax(axis=0)
    reached = (balls[:, :3] @ ways.T + balls[:, 3:]).max(axis=0)
    size, chosen = float(np.ptp(vertices, axis=0).max()), []
    while len(chosen) < _VERTICES and (most - reached).max() > _INSIDE * size:
        chosen.append(int(farthest[np.argmax(most - reached)]))
        reached = np.maximum(reached, heights[chosen[-1]])
    return vertices[chosen], float(max((most - reached).max(), 0.0))


def _edges_of_hull(corners: np.ndarray) -> np.ndarray:
    """Cells along the sharp edges of a convex hull of triangles (m, 3, 3)."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-300)[:, None]
    points, number = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    ends = number.reshape(-1, 3)[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    face = np.repeat(np.arange(len(corners)), 3)
    order = np.lexsort((ends.max(axis=1), ends.min(axis=1)))
    first, second = order[::2], order[1::2]  # each edge of a hull belongs to two triangles
    n_1, n_2 = normal[face[first]], normal[face[second]]
    sharp = np.arccos(np.clip((n_1 * n_2).sum(axis=1), -1.0, 1.0)) > _SHARP
    width, rows = _least_width(points, normal), []
    for (a, b), m in zip(points[ends[first[sharp]]], (n_1 + n_2)[sharp]):
        step, count = _steps(float(np.linalg.norm(b - a)), width)
        cells = np.zeros((count, COLUMNS))
        way = (b - a) / max(float(np.linalg.norm(b - a)), 1e-300)
        cells[:, :3] = a + step * (np.arange(count) + 0.5)[:, None] * way
        cells[:, 5:8], cells[:, 8:11] = m / np.linalg.norm(m), 0.5 * step * way
        rows.append(cells)
    return np.concatenate([np.zeros((0, COLUMNS)), *rows])


def _least_width(points: np.ndarray, normals: np.ndarray) -> float:
    """Smallest width of a hull between parallel planes, one of which has a face [m]."""
    heights = points @ normals.T
    return float((heights.max(axis=0) - heights.min(axis=0)).min())


def surface_rows(shape: Shape, n: int, where: str, *, on_plane: bool = False) -> np.ndarray:
    """Quadrature points for a pressure on the surface of a bounded shape, rows (m, 17) of robot.surface_points in its
    frame, with n along an edge."""
    kind, size, rotation = shape.surface(where)
    if kind is ShapeKind.SPHERE:
        rows = _balls(np.zeros((1, 3)), size[0])
    elif kind is ShapeKind.BOX:
        rows = box_points(np.array(size), n)
    elif kind is ShapeKind.CYLINDER:
        rows = np.concatenate([axis_balls(size[0], size[1], n), _along_z(disc_ends(size[1], size[0], n))])
    elif kind is ShapeKind.CONE:
        stations = np.linspace(-size[1], size[1], n // 2 + 1)
        side = revolved_points(stations, size[0] * np.linspace(1.0, 0.0, n // 2 + 1), 2 * n)
        rows = _along_z(np.concatenate([side, ring_points(-size[1], -1.0, size[0], 0.0, 2 * n, n // 2)]))
    else:
        vertices, triangles = _triangles_of(shape, where)
        return mesh_points(vertices, triangles, n, on_plane=on_plane)
    return turned_rows(rows, rotation)


_FROM_X = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])  # turns the axis x to z


def _along_z(rows: np.ndarray) -> np.ndarray:
    return turned_rows(rows, _FROM_X)


def size_of(shape: Shape) -> float:
    """Largest dimension of a shape on a grid [m]; inf for other shapes."""
    if isinstance(shape, ShapeMesh | ShapeHull | ShapeFunction):
        low, high = shape.bounds("shape")
        return float((high - low).max())
    return np.inf
