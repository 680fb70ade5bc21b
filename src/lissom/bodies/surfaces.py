"""Closed surfaces of triangles for drawing and chambers. Triangles are counterclockwise seen from outside."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lissom.errors import ModelError

AROUND, ALONG = 32, 33  # facets around a body, stations along it


def _strips(rings: int, around: int) -> np.ndarray:
    """Triangles of a tube through rings of vertices, counterclockwise seen from outside if later rings have larger
    x."""
    k, i = (part.ravel() for part in np.meshgrid(np.arange(rings - 1), np.arange(around), indexing="ij"))
    a, b = k * around + i, k * around + (i + 1) % around
    c, d = a + around, b + around
    return np.concatenate([np.stack([a, b, c], axis=-1), np.stack([b, d, c], axis=-1)])


def _rings(x: np.ndarray, radius: np.ndarray, around: int = AROUND) -> np.ndarray:
    angle = 2.0 * np.pi * np.arange(around) / around
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    across = radius[:, None, None] * circle
    return np.concatenate([np.broadcast_to(x[:, None, None], (*across.shape[:2], 1)), across], axis=-1).reshape(-1, 3)


def _lid(first: int, centre: int, around: int) -> np.ndarray:
    """Triangles from a ring to a vertex, counterclockwise seen from +x."""
    i = np.arange(around)
    return np.stack([first + i, first + (i + 1) % around, np.full(around, centre)], axis=-1)


def revolved(
    x: np.ndarray, outer: np.ndarray, inner: np.ndarray | None = None, around: int = AROUND
) -> tuple[np.ndarray, np.ndarray]:
    """Surface of a body of revolution about x, or of the wall between two radii, with flat ends."""
    if inner is not None:  # out along the outer side, back along the inner one
        x, radius = np.concatenate([x, x[::-1], x[:1]]), np.concatenate([outer, inner[::-1], outer[:1]])
        vertices, triangles = _rings(x, radius), _strips(len(x), AROUND)
        last = len(vertices) - AROUND  # the last ring is the first again
        return vertices[:last], np.where(triangles >= last, triangles - last, triangles)
    vertices = _rings(x, outer, around)
    base, tip = len(vertices), len(vertices) + 1
    vertices = np.concatenate([vertices, [[x[0], 0.0, 0.0], [x[-1], 0.0, 0.0]]])
    lids = [_lid(0, base, around)[:, ::-1], _lid(base - around, tip, around)]
    return vertices, np.concatenate([_strips(len(x), around), *lids])


def box(length: float, width_y: float, width_z: float, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Surface of a box along x. Its long sides are divided at equal stations."""
    corners = 0.5 * np.array([[width_y, width_z], [-width_y, width_z], [-width_y, -width_z], [width_y, -width_z]])
    outline = np.concatenate([np.linspace(corners[k], corners[(k + 1) % 4], count)[:-1] for k in range(4)])
    x = np.linspace(0.0, length, ALONG)
    rings = np.concatenate([np.repeat(x, len(outline))[:, None], np.tile(outline, (ALONG, 1))], axis=1)
    around, base = len(outline), len(rings)
    vertices = np.concatenate([rings, [[0.0, 0.0, 0.0], [length, 0.0, 0.0]]])
    lids = [_lid(0, base, around)[:, ::-1], _lid(base - around, base + 1, around)]
    return vertices, np.concatenate([_strips(ALONG, around), *lids])


def boundary(cells: np.ndarray) -> np.ndarray:
    """The faces of tetrahedra (k, 4) that belong to one cell only, counterclockwise seen from outside."""
    faces = np.concatenate([cells[:, face] for face in ([1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1])])
    _, first, count = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    return faces[np.sort(first[count == 1])]


def cylinder_surface(
    start: float, stop: float, radius: float, *, center: tuple[float, float] = (0.0, 0.0), around: int = 32,
    along: int = 33,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """A closed cylinder along x, as the surface of a chamber. Its facets are flat and lie inside the circular cylinder.

    Args:
        start, stop: x of its ends [m].
        radius: radius [m].
        center: y and z of its axis [m].
        around, along: number of facets around it, and number of stations along it.
    Returns:
        vertices (m, 3) [m], triangles (k, 3) counterclockwise as seen from outside.
    Raises:
        ModelError: radius or length is not > 0, or there are too few facets.
    """
    for name, least, value in (("around", 3, around), ("along", 2, along)):
        if value < least:
            raise ModelError(f"cylinder_surface: {name} must be >= {least} (got {value!r})")
    if not (radius > 0.0 and stop > start):
        raise ModelError(f"cylinder_surface: radius and stop - start must be > 0 (got {radius!r}, {stop - start!r})")
    vertices, triangles = revolved(np.linspace(start, stop, along), np.full(along, radius), around=around)
    return vertices + np.array([0.0, *center]), triangles


def sphere_surface(
    center: tuple[float, float, float], radius: float, *, around: int = 32
) -> tuple[np.ndarray, np.ndarray]:
    """A closed sphere, as the surface of a chamber. Its facets are flat and lie inside the round sphere.

    Args:
        center: centre (3,) [m].
        radius: radius [m].
        around: number of facets around it; there are half as many from pole to pole.
    Returns:
        vertices (m, 3) [m], triangles (k, 3) counterclockwise as seen from outside.
    Raises:
        ModelError: the radius is not > 0, or there are too few facets.
    """
    if not (radius > 0.0 and around >= 4):
        raise ModelError(f"sphere_surface: radius must be > 0 and around >= 4 (got {radius!r}, {around!r})")
    polar = np.pi * np.arange(1, around // 2) / (around // 2)
    vertices, triangles = revolved(-np.cos(polar) * radius, np.sin(polar) * radius, around=around)
    vertices[-2:, 0] = -radius, radius
    return vertices + np.asarray(center, dtype=np.float64), triangles


def closed(triangles: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """The triangles (k, 3) with lids on their open rims, and the vertices of each rim. A lid connects the edges of a
    rim to one more vertex, whose index comes after the others.

    Raises:
        ModelError: an edge belongs to more than two triangles, or two triangles run along it in the same direction.
    """
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]).tolist()
    passed = set(map(tuple, edges))
    if len(passed) < len(edges):
        twice = next(edge for k, edge in enumerate(edges) if edge in edges[:k])
        raise ModelError(f"each edge must be passed once in each direction by its triangles (got {twice} twice)")
    ahead = {b: a for a, b in passed if (b, a) not in passed}  # lids pass the open edges backwards
    starts = {a for a, b in passed if (b, a) not in passed}
    if len(ahead) != len(starts) or len(ahead) != sum((b, a) not in passed for a, b in passed):
        raise ModelError("its open rims must not touch one another (got two rims at one vertex)")
    rims, lids, behind = [], [], int(triangles.max()) + 1
    while ahead:
        rim = [next(iter(ahead))]
        while rim[-1] in ahead:
            rim.append(ahead.pop(rim[-1]))
        rims.append(np.array(rim[:-1]))
        lids += [(a, b, behind + len(rims) - 1) for a, b in pairwise(rim)]
    return np.concatenate([triangles, np.array(lids, dtype=np.int64).reshape(-1, 3)]), tuple(rims)
