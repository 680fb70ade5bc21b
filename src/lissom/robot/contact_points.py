"""Points by which a shape touches other shapes.

A contact of two shapes is integrated over points of each of them on the other one. Points are balls inside the shape
that touch its surface, and sharp points of radius 0 at corners, edges and flat sides. Rows are those of
robot.surface_points.

| shape | balls | sharp points |
|---|---|---|
| sphere | itself | |
| capsule | its two ends, and balls along the axis | |
| cylinder | along the axis | both rims, and a ring on each end |
| torus | around its circle | |
| ellipsoid | across its shortest axis; on a plane one that rolls inside of it | |
| box | | corners, points along the edges, four on each face |
| cone | | rim, a ring on its base, and the tip |
| mesh, hull, function | balls that fill it | vertices of its convex hull, and points on edges and faces of both |

On a plane, corners and rims are exact, so that the other sharp points are left out there. Those on flat sides lie
inside of the edges: corners and edges of a body that stands exactly on an equal one are on the boundary of the other,
which is neither inside nor outside. A shape that has no points, such as an infinite cylinder or a height field, could
pass between them: then the faces of a box have cells with a linear pressure.

A ball on the axis of a cylinder stands for a part of its length. Its row has half of this part along the axis in place
of the first half-edge of a cell. It touches only where its contact point is within this part, so that it does not reach
out of the flat ends. Points on the ends of a cylinder have its axis as their normal, and so the factor (11) of contact:
they carry an upright cylinder and leave one that lies to its balls.

The edges and faces of the convex hull of a mesh span its hollows. Points there are left out, since another body may be
in the hollow.

Edges that cross each other touch where a point of one of them is inside the other body. Right-angled edges sink into
each other by up to half the distance of the points times the sine of their angle.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lissom.errors import ModelError
from lissom.robot.meshes import (
    Mesh,
    convex_hull,
    distance_to,
    fit_balls,
    inner_balls,
    kind_of_fault,
    surface_samples,
)
from lissom.robot.sampled_shapes import ShapeFunction, ShapeHull, ShapeMesh
from lissom.robot.shapes import Shape, ShapeKind, is_bounded
from lissom.robot.surface_points import (
    COLUMNS,
    box_points,
    disc_ends,
    mesh_points,
    revolved_points,
    ring_points,
)

FILLING = 24  # balls that fill a mesh
_AROUND_RIM, _AROUND_RING = 24, 12  # points on a rim, and on the ring inside of it
_FACE_CELLS = 8  # cells along the shorter edge of a face of a box, on shapes without points
_INNER = 0.75  # distance of points on a flat side from its middle, relative to its size
_LARGE = 0.04  # area of a flat side of a hull that has points, relative to the hull
_PER_RADIUS = 6.0  # balls on half an axis for each radius
_PER_WIDTH = 1.25  # points along an edge for each smallest width of the shape, so that one lies on any crossing body
_MOST_ON_EDGE = 128
_SHARP = 0.45  # least angle between two faces of a hull whose edge is sharp [rad]
_FLAT = 1.0 - 1e-6  # least cosine of the angle between triangles of one flat side
_DIRECTIONS = 2000  # in which the vertices of a hull are compared with the points chosen
_INSIDE = 3e-3  # depth of the points inside a hull that is small enough, relative to its size
_OUTER = 64  # largest number of vertices and balls that are added for it


class Points(NamedTuple):
    """Points of a shape.

    Fields:
        rows: of robot.surface_points, in the frame of the shape, (n, 17). Column 4 is the length or the width for which
            a point stands [m], 0 for a sphere.
        share: factor of a stiffness that is given for each of the four corners of a face, (n,).
        spacing: distance between its balls [m]: 0 for a sphere, which its ball represents exactly; inf for a mesh.
        gap: largest depth of the points inside the convex hull of a mesh [m].
    """

    rows: np.ndarray
    share: np.ndarray
    spacing: float = np.inf
    gap: float = 0.0


def detail_on(shape: Shape) -> str:
    """How much of another body touches this shape: its "corners", also its "edges", or also its "faces"; a "plane" is
    touched by corners, and by the lowest points of ellipsoids."""
    surface = shape.surface("shape")
    if surface.kind is ShapeKind.PLANE:
        return "plane"
    if surface.kind is ShapeKind.HOLLOW:
        return "corners"
    return "faces" if not is_bounded(shape) else "edges"


def shape_points(shape: Shape, detail: str, count: int, where: str, *, finer: int = 1) -> Points:
    """The points of a shape.

    Args:
        detail: of `detail_on`. count: largest number of balls that fill a mesh. finer: factor of the number of balls on
            an axis and of points along an edge.
    Raises:
        ModelError: a mesh cannot be read, or is flat.
    """
    kind, size, rotation = shape.surface(where)
    on_plane, detail = detail == "plane", "corners" if detail == "plane" else detail
    if not is_bounded(shape):
        return Points(np.zeros((0, COLUMNS)), np.zeros(0))
    if kind is ShapeKind.SPHERE:
        found = Points(_balls(np.zeros((1, 3)), size[0]), np.ones(1), 0.0)
    elif kind is ShapeKind.BOX:
        found = _box(np.array(size), detail, finer)
    elif kind is ShapeKind.CAPSULE:
        found = _capsule(size[0], size[1], detail, finer)
    elif kind is ShapeKind.CYLINDER:
        found = _cylinder(size[0], size[1], detail, finer)
    elif kind is ShapeKind.CONE:
        found = _cone(size[0], size[1], detail)
    elif kind is ShapeKind.ELLIPSOID:
        found = _rolling_ball(np.array(size)) if on_plane else _ellipsoid(np.array(size))
    elif kind is ShapeKind.TORUS:
        angle = 2.0 * np.pi * np.arange(_torus_count(*size[:2])) / _torus_count(*size[:2])
        ring = size[0] * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(len(angle))])
        found = Points(_balls(ring, size[1]), np.ones(len(ring)), 2.0 * np.pi * size[0] / len(ring))
    else:
        vertices, triangles = _triangles_of(shape, where)
        try:
            return _mesh(vertices.tobytes(), triangles.tobytes(), detail, count, finer)
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


def _rolling_ball(half: np.ndarray) -> Points:
    """The largest ball that can roll along the inside of an ellipsoid with given half-axes. Its row has the vectors of
    the half-axes in place of the normal and of the half-edges of a cell, and 1 in the last column."""
    rows = _balls(np.zeros((1, 3)), half.min() ** 2 / half.max())
    rows[0, 5:14], rows[0, 16] = np.diag(half).ravel(), 1.0
    return Points(rows, np.ones(1), 0.0)


def _ellipsoid(half: np.ndarray) -> Points:
    """The largest balls inside an ellipsoid that touch it at points x. Their centres are in the plane across the
    shortest half-axis c, at the distance c² |(x/a², y/b², z/c²)| from x."""
    order = np.argsort(-half)
    s, angle = np.meshgrid(np.sin(0.5 * np.pi * np.arange(1, 6) / 5), 2.0 * np.pi * np.arange(24) / 24, indexing="ij")
    s, angle = np.append(0.0, s.ravel()), np.append(0.0, angle.ravel())
    a, b, c = half[order]
    x = np.column_stack([a * s * np.cos(angle), b * s * np.sin(angle), c * np.sqrt(np.maximum(1.0 - s * s, 0.0))])
    rows = np.zeros((len(x), COLUMNS))
    rows[:, order] = x * (1.0 - (c / half[order]) ** 2)
    rows[:, 3] = c**2 * np.linalg.norm(x / half[order] ** 2, axis=1)
    rows = rows[np.unique(rows[:, :4].round(12), axis=0, return_index=True)[1]]
    return Points(rows, np.ones(len(rows)))


def _torus_count(radius: float, tube: float) -> int:
    return int(np.clip(np.ceil(4.0 * np.pi * radius / tube), 12, 96))


def _capsule(radius: float, half: float, detail: str, finer: int) -> Points:
    count = finer * (1 if detail == "corners" else int(np.ceil(_PER_RADIUS * half / radius)))
    ends = _balls(np.array([[0.0, 0.0, -half], [0.0, 0.0, half]]), radius)
    rows = np.concatenate([ends, axis_balls(radius, half, count)])
    return Points(rows, np.ones(len(rows)), 2.0 * half / count)


def _cylinder(radius: float, half: float, detail: str, finer: int) -> Points:
    count = finer * max(int(np.ceil((2.0 if detail == "corners" else _PER_RADIUS) * half / radius)), 2)
    ends = [_end(radius, z, np.array([0.0, 0.0, np.sign(z)]), detail) for z in (-half, half)]
    rows = np.concatenate([axis_balls(radius, half, count), *ends])
    share = np.where(rows[:, 3] > 0.0, 1.0, _AROUND_RIM / len(ends[0]))
    return Points(rows, share, 2.0 * half / count)


def _end(radius: float, z: float, normal: np.ndarray, detail: str, on_rim: np.ndarray | None = None) -> np.ndarray:
    """Points on a flat circle about z with a normal (3,): its rim, whose points may have normals `on_rim` (n, 3), and
    unless the other shape is a plane a ring inside of it."""
    rings = [_ring(radius, z, _AROUND_RIM)] + ([] if detail == "corners" else [_ring(_INNER * radius, z, _AROUND_RING)])
    rows = np.concatenate(rings)
    rows[:, 4], rows[:, 5:8] = 2.0 * radius / len(rows), normal
    if on_rim is not None:
        rows[:_AROUND_RIM, 5:8] = on_rim
    return rows


def _ring(radius: float, z: float, count: int) -> np.ndarray:
    angle = 2.0 * np.pi * np.arange(count) / count
    return _balls(np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.full(count, z)]), 0.0)


def _cone(radius: float, half: float, detail: str) -> Points:
    """The normals of the rim are halfway between those of the base and of the side."""
    slant = np.hypot(radius, 2.0 * half)
    around = _ring(2.0 * half / slant, radius / slant - 1.0, _AROUND_RIM)[:, :3]
    base = _end(radius, -half, -np.eye(3)[2], detail, around / np.linalg.norm(around, axis=1)[:, None])
    tip = _balls(np.array([[0.0, 0.0, half]]), 0.0, 0.5 * radius)
    rows = np.concatenate([base, tip])
    return Points(rows, np.append(np.full(len(base), _AROUND_RIM / len(base)), 1.0))


def _box(half: np.ndarray, detail: str, finer: int) -> Points:
    """Corners, which share the punch of a mean face with the points on edges and faces."""
    corners = half * np.array(np.meshgrid(*[[-1.0, 1.0]] * 3, indexing="ij")).reshape(3, -1).T
    parts, on_face = [_balls(corners, 0.0)], 4.0
    if detail != "corners":
        edges = [_along_edge(corners[a], corners[b], 2.0 * half.min(), finer) for a in range(8) for b in range(a)
                 if (corners[a] != corners[b]).sum() == 1]  # fmt: skip
        inner = [np.where(np.arange(3) == axis, 1.0, _INNER) * corners for axis in range(3)]
        parts += [_balls(np.concatenate([*edges, *inner]), 0.0)]
        on_face += sum(map(len, edges)) / 3.0 + 4.0
    if detail == "faces":
        parts.append(box_points(half, _FACE_CELLS))
        on_face += len(parts[-1]) / 6.0
    rows = np.concatenate(parts)
    rows[:, 4] = _punch(8.0 * (half[0] * half[1] + half[1] * half[2] + half[2] * half[0])) / on_face
    return Points(rows, np.full(len(rows), 4.0 / on_face))


def _punch(area: float) -> float:
    """Width of the flat punch with the area of a mean face, a sixth of that of the body [m]."""
    return 2.0 * float(np.sqrt(area / 6.0 / np.pi))


def _along_edge(a: np.ndarray, b: np.ndarray, width: float, finer: int) -> np.ndarray:
    """Points evenly on an edge from a to b of a body with a smallest width [m], shape (n, 3)."""
    ratio = float(np.linalg.norm(b - a)) / width
    count = finer * int(np.clip(np.ceil(_PER_WIDTH * (ratio - 1.0) + 1.0 - 1e-9), 1, _MOST_ON_EDGE))
    return a + ((np.arange(count) + 0.5) / count)[:, None] * (b - a)


def _triangles_of(shape: Shape, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) [m] and triangles (m, 3) of a bounded shape in its frame."""
    if isinstance(shape, ShapeMesh | ShapeHull):
        solid = shape.solid(where)
        return solid.vertices, solid.triangles
    return Mesh.of_shape(shape).surface()


def closed_shape(shape: Shape, where: str) -> tuple[Shape, str]:
    """A collision shape, or for a mesh that bounds no volume its convex hull, and why; empty if it is the shape.

    Raises:
        ModelError: the mesh cannot be read, or is flat.
    """
    if not isinstance(shape, ShapeMesh) or shape.thickness is not None:
        return shape, ""
    try:
        if not shape.fault:
            return shape, ""
        corners = convex_hull(shape.mesh.surface()[0], "in place of its hull: its vertices")
    except ModelError as error:
        name = os.fspath(shape.mesh.file or "")
        file = f"mesh {name!r}: " if name and name not in str(error) else ""
        raise ModelError(f"{where}: {file}{error}; leave out this shape") from None
    return ShapeHull(np.unique(corners.reshape(-1, 3), axis=0), shape.resolution), kind_of_fault(shape.fault)


@lru_cache(maxsize=256)
def _mesh(vertices: bytes, triangles: bytes, detail: str, count: int, finer: int) -> Points:
    """Balls that fill a mesh, vertices of its convex hull where the balls are too far inside it, and points along the
    edges of the hull and on its faces."""
    points, rows = np.frombuffer(vertices).reshape(-1, 3), np.frombuffer(triangles, dtype=np.int64).reshape(-1, 3)
    fit = fit_balls(points, rows, count)
    balls = _balls(fit.balls[:, :3], 0.0)
    balls[:, 3] = fit.balls[:, 3]
    corners = convex_hull(points, "mesh")
    outer, gap = _outer_points(np.unique(corners.reshape(-1, 3), axis=0), corners, fit.balls)
    balls = np.concatenate([balls, outer[outer[:, 3] > 0.0]])
    chosen = outer[outer[:, 3] == 0.0, :3]
    cross = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(cross, axis=1)
    if detail != "corners":
        normal = cross / np.maximum(area, 1e-300)[:, None]
        flat = np.concatenate([chosen[:0], *_on_edges(corners, normal, finer), *_on_faces(corners, normal, area)])
        chosen = np.concatenate([chosen, flat if fit.is_hull else _on_surface(flat, points[rows])])
    sharp, on_face = _balls(chosen, 0.0), max(0.5 * len(chosen), 4.0)
    sharp[:, 4] = _punch(float(area.sum())) / on_face
    share = np.concatenate([np.ones(len(balls)), np.full(len(sharp), 4.0 / on_face)])
    return Points(np.concatenate([balls, sharp]), share, gap=gap)


def _outer_points(vertices: np.ndarray, corners: np.ndarray, balls: np.ndarray) -> tuple[np.ndarray, float]:
    """Points of a hull with given vertices (n, 3) and triangles (m, 3, 3), added one after another in the direction in
    which the points so far are deepest inside, and the depth that remains [m]. Where the hull is round they are balls
    that touch it from inside, else vertices; rows (k, 17)."""
    k = np.arange(_DIRECTIONS)
    z, angle = 1.0 - (2.0 * k + 1.0) / _DIRECTIONS, k * np.pi * (3.0 - np.sqrt(5.0))
    flat = np.sqrt(1.0 - z * z)
    ways = np.column_stack([flat * np.cos(angle), flat * np.sin(angle), z])
    heights = vertices @ ways.T
    most, farthest = heights.max(axis=0), heights.argmax(axis=0)
    enough = _INSIDE * float(np.ptp(vertices, axis=0).max())
    reached, rows = (balls[:, :3] @ ways.T + balls[:, 3:]).max(axis=0), np.zeros((0, COLUMNS))
    inner = None
    if (most - reached).max() > enough:
        inner = np.column_stack(inner_balls(*surface_samples(corners), corners))
    while len(rows) < _OUTER and (most - reached).max() > enough:
        worst = int(np.argmax(most - reached))
        row = _balls(vertices[farthest[worst], None], 0.0)
        best = inner[np.argmax(inner[:, :3] @ ways[worst] + inner[:, 3])]  # type: ignore[index]
        radius = distance_to(corners, best[:3])
        if best[:3] @ ways[worst] + radius > most[worst] - 0.5 * enough and radius > enough:
            row = _balls(best[None, :3], radius)
        rows = np.concatenate([rows, row])
        reached = np.maximum(reached, row[0, :3] @ ways.T + row[0, 3])
    return rows, float(max((most - reached).max(), 0.0))


def _on_edges(corners: np.ndarray, normal: np.ndarray, finer: int) -> list[np.ndarray]:
    """Points along the sharp edges of a convex hull of triangles (m, 3, 3) with normals (m, 3)."""
    points, number = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    ends = np.sort(number.reshape(-1, 3)[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    order, face = np.lexsort((ends[:, 1], ends[:, 0])), np.repeat(np.arange(len(corners)), 3)
    first, second = order[::2], order[1::2]  # each edge of a hull belongs to two triangles
    angle = np.arccos(np.clip((normal[face[first]] * normal[face[second]]).sum(axis=1), -1.0, 1.0))
    heights = points @ normal.T
    width = float(np.ptp(heights, axis=0).min())  # between parallel planes, one of which has a face
    return [_along_edge(points[a], points[b], width, finer) for a, b in ends[first[angle > _SHARP]]]


def _on_faces(corners: np.ndarray, normal: np.ndarray, area: np.ndarray) -> list[np.ndarray]:
    """Points inside of the corners of the large flat faces of a convex hull."""
    found, left = [], np.ones(len(corners), dtype=bool)
    for k in np.argsort(-area):
        if left[k]:
            face = left & (normal @ normal[k] > _FLAT)
            left &= ~face
            if area[face].sum() > _LARGE * area.sum():
                middle = (area[face, None] * corners[face].mean(axis=1)).sum(axis=0) / area[face].sum()
                outline = np.unique(corners[face].reshape(-1, 3), axis=0)
                found.append(middle + _INNER * (outline - middle))
    return found


def _on_surface(x: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Those of the points x (n, 3) of a convex hull that are on the mesh of triangles (m, 3, 3): others are in front of
    its hollows, where another body may be."""
    near = _INSIDE * float(np.ptp(corners, axis=(0, 1)).max())
    low, high = corners.min(axis=1) - near, corners.max(axis=1) + near
    kept = []
    for point in x:
        there = corners[((low <= point) & (point <= high)).all(axis=1)]
        kept.append(len(there) > 0 and distance_to(there, point) <= near)
    return x[np.array(kept, dtype=bool)]


def surface_rows(shape: Shape, n: int, where: str, *, on_plane: bool = False) -> np.ndarray:
    """Quadrature points for a pressure on the surface of a bounded shape, rows (m, 17) of robot.surface_points in its
    frame, with n along an edge."""
    kind, size, rotation = shape.surface(where)
    if kind is ShapeKind.SPHERE:
        rows = _balls(np.zeros((1, 3)), size[0])
    elif kind is ShapeKind.BOX:
        rows = box_points(np.array(size), n)
    elif kind is ShapeKind.CAPSULE:  # its ends count as whole spheres
        ends = _balls(np.array([[0.0, 0.0, -size[1]], [0.0, 0.0, size[1]]]), size[0])
        rows = np.concatenate([ends, axis_balls(size[0], size[1], n)])
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
