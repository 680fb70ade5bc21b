"""Balls by which a deformable body touches other things.

They lie inside the reference shape and touch its surface from within, at points that are spread evenly over it. Their
radius is half of their distance, and no more than half of what the body is thick there, or than its volume over its
surface.
"""

from __future__ import annotations

import numpy as np

from lissom.bodies.domains import Domain

_OFF = 1e-6  # how far from the surface a ray begins, in lengths of the body


def surface_balls(domain: Domain, count: int) -> np.ndarray:
    """Rows (x, y, z, radius), at most `count` of them [m]."""
    vertices, triangles = domain.surface()
    corners = vertices[triangles]
    doubled = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(vertices)
    for k in range(3):
        np.add.at(normals, triangles[:, k], doubled)
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    chosen = _spread(vertices, count)
    x, inward = vertices[chosen], -normals[chosen]
    apart = np.linalg.norm(x[:, None] - x[None], axis=-1) + np.where(np.eye(len(x)), np.inf, 0.0)
    largest = domain.volume / (0.5 * np.linalg.norm(doubled, axis=1).sum())
    if len(x) > 1:
        largest = min(largest, 0.5 * float(np.median(apart.min(axis=1))))
    start = x + _OFF * float(np.ptp(vertices, axis=0).max()) * inward
    centres = x + np.minimum(largest, 0.5 * _depths(start, inward, corners))[:, None] * inward
    return np.column_stack([centres, np.minimum(largest, _distances(centres, corners, doubled))])


def _spread(points: np.ndarray, count: int) -> np.ndarray:
    """Which points are far from each other: each is the farthest from those before it."""
    chosen = [int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    nearest = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < min(count, len(points)) and nearest.max() > 0.0:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return np.array(chosen)


def _depths(starts: np.ndarray, directions: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """How far rays go until they meet a triangle, infinite where they meet none."""
    a, first, second = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    found = np.full(len(starts), np.inf)
    for k, (start, ray) in enumerate(zip(starts, directions)):
        across = np.cross(ray, second)
        size = np.einsum("ij,ij->i", first, across)
        size = np.where(np.abs(size) > 1e-300, size, np.nan)
        u = np.einsum("ij,ij->i", start - a, across) / size
        turned = np.cross(start - a, first)
        v, t = turned @ ray / size, np.einsum("ij,ij->i", second, turned) / size
        met = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t > 0.0)
        found[k] = t[met].min(initial=np.inf)
    return found


def _distances(points: np.ndarray, corners: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """How far points are from triangles: from their planes where they stand above them, or from their corners."""
    unit = normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    found = np.empty(len(points))
    for k, x in enumerate(points):
        off = np.einsum("ij,ij->i", x - corners[:, 0], unit)
        foot = x - off[:, None] * unit
        sides = np.cross(np.roll(corners, -1, axis=1) - corners, foot[:, None] - corners)
        above = (np.einsum("kij,kj->ki", sides, unit) >= 0.0).all(axis=1)
        planes = np.abs(off[above]).min(initial=np.inf)
        found[k] = min(planes, float(np.linalg.norm(corners - x, axis=-1).min()))
    return found
