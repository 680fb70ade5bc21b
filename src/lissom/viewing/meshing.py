"""Facets of what is drawn in its own frame, as vertices and quadrilaterals; a triangle's last corner stands twice.

Vertices are shared where the surface is smooth and doubled along its edges, so that a normal belongs to each.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple, final

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from lissom.robot import facets
from lissom.robot.bodies import Body, Solid

STATIONS, AROUND = 41, 32  # of a rod, points around a section and around solids
_SHARP = np.cos(np.radians(38.0))  # between normals of facets that meet at an edge


@final
class Facets(NamedTuple):
    """Vertices (v, 3) [m] and quadrilaterals (m, 4), counterclockwise seen from outside."""

    vertices: np.ndarray
    quads: np.ndarray


def area_vectors(corners: np.ndarray) -> np.ndarray:
    """Of quadrilaterals (..., 4, 3): twice the area along the normal (..., 3) [m²]."""
    return np.cross(corners[..., 2, :] - corners[..., 0, :], corners[..., 3, :] - corners[..., 1, :])


def as_quads(triangles: np.ndarray) -> np.ndarray:
    """Triangles (k, 3) as quadrilaterals whose last corner stands twice."""
    return np.asarray(triangles)[:, [0, 1, 2, 2]]


def rod_facets(body: Body, s: np.ndarray) -> tuple[Facets, np.ndarray]:
    """The surface of a body that extends along s through sections at abscissae (n,), and the number of the section that
    each vertex is on; x of vertices is zero, as each is given in the frame of its section."""
    rings = np.array([body.cross_outline(x, AROUND) for x in s])
    holes = np.array([body.cross_hole(x, AROUND) for x in s])
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
    """Triangles that fill a ring (n, 2), around a further vertex in its middle if that sees all of it."""
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
    """The ends of a tube between its outer and its inner rings."""
    i = np.arange(around)
    ahead, inner, last = (i + 1) % around, count * around, (count - 1) * around
    base = np.stack([i, i + inner, ahead + inner, ahead], axis=-1)
    return [base, base[:, ::-1] + last]


def polygon_triangles(points: np.ndarray) -> np.ndarray:
    """Triangles (n − 2, 3) of a polygon (n, 2) that goes round counterclockwise, by cutting off its ears."""
    left, found = list(range(len(points))), []
    while len(left) > 3:
        corners = points[left]
        turns, before, after = _turns(corners), np.roll(corners, 1, axis=0), np.roll(corners, -1, axis=0)
        ears = [k for k in np.argsort(-turns) if not _holds(before[k], corners[k], after[k], corners)]
        k = int(ears[0]) if ears and turns[ears[0]] > 0.0 else int(np.argmin(np.abs(turns)))
        found.append((left[k - 1], left[k], left[(k + 1) % len(left)]))
        del left[k]
    return np.array([*found, tuple(left)])


def _turns(points: np.ndarray) -> np.ndarray:
    """Twice the signed area of each corner with its two neighbours."""
    before, after = points - np.roll(points, 1, axis=0), np.roll(points, -1, axis=0) - points
    return before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]


def _holds(a: np.ndarray, b: np.ndarray, c: np.ndarray, points: np.ndarray) -> bool:
    """Whether a triangle holds one of the points that is none of its corners."""
    sides = []
    for start, stop in pairwise((a, b, c, a)):
        edge, to = stop - start, points - start
        sides.append(edge[0] * to[:, 1] - edge[1] * to[:, 0] >= 0.0)
    corner = np.array([(points == x).all(axis=1) for x in (a, b, c)]).any(axis=0)
    return bool((np.all(sides, axis=0) & ~corner).any())


def solid_facets(solid: Solid) -> Facets:
    """A solid in the frame of its body."""
    if solid.form == "box":
        return welded(facets.box(solid.half) + solid.centre)
    turn = np.linspace(-np.pi / 2, np.pi / 2, 25)
    ends = np.array([-1.0, -1.0, 1.0, 1.0])
    is_round = solid.form == "ellipsoid"
    height, radius = (np.sin(turn), np.cos(turn)) if is_round else (ends, np.array([0.0, 1.0, 1.0, 0.0]))
    along_z = facets.turned(height, radius)
    return welded(along_z[..., [2, 0, 1]] * solid.half + solid.centre)


def welded(corners: np.ndarray) -> Facets:
    """Quadrilaterals (m, 4, 3) with vertices where corners meet; those without an area are left out."""
    points = corners.reshape(-1, 3)
    size = float(np.ptp(points, axis=0).max()) or 1.0
    _, first, number = np.unique(np.round(points / size, 9) + 0.0, axis=0, return_index=True, return_inverse=True)
    quads = number.reshape(-1, 4)
    flat = np.linalg.norm(area_vectors(corners), axis=-1) <= 1e-12 * size**2
    return Facets(points[first], quads[~flat])


def split_at_edges(found: Facets) -> tuple[np.ndarray, np.ndarray]:
    """Quadrilaterals whose vertices are doubled where facets meet at an edge, and the old number of each vertex."""
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
    """Pairs of corners, counted through all quadrilaterals, that two facets have in common where they meet smoothly;
    `ahead` is the next corner of each."""
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
