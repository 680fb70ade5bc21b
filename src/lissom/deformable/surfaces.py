"""Closed surfaces of triangles for pictures and chambers, counterclockwise seen from outside."""

from __future__ import annotations

import numpy as np

AROUND, ALONG = 32, 33  # facets round a body, stations along it


def _strips(rings: int, around: int) -> np.ndarray:
    """Triangles of a tube through rings of vertices, seen from outside where later rings lie farther along x."""
    k, i = (part.ravel() for part in np.meshgrid(np.arange(rings - 1), np.arange(around), indexing="ij"))
    a, b = k * around + i, k * around + (i + 1) % around
    c, d = a + around, b + around
    return np.concatenate([np.stack([a, b, c], axis=-1), np.stack([b, d, c], axis=-1)])


def _rings(x: np.ndarray, radius: np.ndarray) -> np.ndarray:
    angle = 2.0 * np.pi * np.arange(AROUND) / AROUND
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    across = radius[:, None, None] * circle
    return np.concatenate([np.broadcast_to(x[:, None, None], (*across.shape[:2], 1)), across], axis=-1).reshape(-1, 3)


def _lid(first: int, centre: int, around: int) -> np.ndarray:
    """Triangles from a ring to a vertex, seen from the side of rising x."""
    i = np.arange(around)
    return np.stack([first + i, first + (i + 1) % around, np.full(around, centre)], axis=-1)


def revolved(x: np.ndarray, outer: np.ndarray, inner: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """A body of revolution round x, or the wall between two, with flat ends."""
    if inner is not None:  # out along the outer side, back along the inner one
        x, radius = np.concatenate([x, x[::-1], x[:1]]), np.concatenate([outer, inner[::-1], outer[:1]])
        vertices, triangles = _rings(x, radius), _strips(len(x), AROUND)
        last = len(vertices) - AROUND  # the last ring is the first again
        return vertices[:last], np.where(triangles >= last, triangles - last, triangles)
    vertices = _rings(x, outer)
    base, tip = len(vertices), len(vertices) + 1
    vertices = np.concatenate([vertices, [[x[0], 0.0, 0.0], [x[-1], 0.0, 0.0]]])
    lids = [_lid(0, base, AROUND)[:, ::-1], _lid(base - AROUND, tip, AROUND)]
    return vertices, np.concatenate([_strips(len(x), AROUND), *lids])


def box(length: float, width_y: float, width_z: float, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """A box along x, its long sides cut at equal stations."""
    corners = 0.5 * np.array([[width_y, width_z], [-width_y, width_z], [-width_y, -width_z], [width_y, -width_z]])
    outline = np.concatenate([np.linspace(corners[k], corners[(k + 1) % 4], count)[:-1] for k in range(4)])
    x = np.linspace(0.0, length, ALONG)
    rings = np.concatenate([np.repeat(x, len(outline))[:, None], np.tile(outline, (ALONG, 1))], axis=1)
    around, base = len(outline), len(rings)
    vertices = np.concatenate([rings, [[0.0, 0.0, 0.0], [length, 0.0, 0.0]]])
    lids = [_lid(0, base, around)[:, ::-1], _lid(base - around, base + 1, around)]
    return vertices, np.concatenate([_strips(ALONG, around), *lids])


def boundary(cells: np.ndarray) -> np.ndarray:
    """The faces of tetrahedra (k, 4) that belong to one cell alone, seen from outside."""
    faces = np.concatenate([cells[:, face] for face in ([1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1])])
    _, first, count = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    return faces[np.sort(first[count == 1])]
