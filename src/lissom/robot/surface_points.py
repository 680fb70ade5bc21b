"""Quadrature points on the surfaces of bodies, for contacts that integrate a pressure over them.

A row (x, y, z, radius, extent, n) is a point of radius 0 that stands for an area [m²] with the outward normal n (3,), a
ball on the axis of a round body that stands for a length [m], or a sphere with extent 0; balls have n = 0. On
flat sides the rules are exact for pressures that vary linearly. Round sections and spheres need one ball: their
pressure is integrated around them in closed form, see contact_laws.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from lissom.robot.sections import Section, SectionAnnulus, SectionCircle, SectionGeneral

DEFAULT = 16  # points along an edge of a face
_AROUND = 6  # points around an outline, for each point along an edge
_INSET = 2e-3  # part of half an edge by which points at the edges of faces lie inside, so that bodies of the same size
# touch with their faces
COLUMNS = 8


def _edge(half: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the Gauss-Lobatto rule along an edge [m], which has points at both ends. They lie inside by
    _INSET."""
    P = np.polynomial.Legendre.basis(n - 1)
    x = np.concatenate([[-1.0], np.sort(P.deriv().roots().real), [1.0]])
    return half * (1.0 - _INSET) * x, 2.0 * half / (n * (n - 1) * P(x) ** 2)


def box_points(half: np.ndarray, n: int) -> np.ndarray:
    """Points on the six faces of a box, n along each edge, rows (6 n², 8)."""
    out = []
    for axis in range(3):
        (x, w), (y, u) = (_edge(float(half[k]), n) for k in range(3) if k != axis)
        area = np.outer(w, u).ravel()
        for side in (-1.0, 1.0):
            rows = np.zeros((n * n, COLUMNS))
            others = [k for k in range(3) if k != axis]
            rows[:, others[0]], rows[:, others[1]] = (z.ravel() for z in np.meshgrid(x, y, indexing="ij"))
            rows[:, axis], rows[:, 4], rows[:, 5 + axis] = side * half[axis], area, side
            out.append(rows)
    return np.concatenate(out)


def disc_points(outline: np.ndarray, n: int, inner: float = 0.0) -> np.ndarray:
    """Points on a flat face within an outline (m, 2) that is star-shaped around its mean, rows (y, z, area).

    Args:
        n: number of rings. inner: size of a similar hole, relative to the outline.
    """
    centre = outline.mean(axis=0)
    arms = outline - centre
    ahead, behind = np.roll(arms, -1, axis=0), np.roll(arms, 1, axis=0)
    sector = 0.25 * np.abs(_cross(arms, ahead) + _cross(behind, arms))  # of each corner
    edges = np.linspace(inner, 1.0, n + 1)
    size, share = np.sqrt(0.5 * (edges[1:] ** 2 + edges[:-1] ** 2)), np.diff(edges**2)
    y, z = np.moveaxis(centre + size[:, None, None] * arms, -1, 0)
    return np.stack([y, z, share[:, None] * sector], axis=-1).reshape(-1, 3)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


def cylinder_points(half: float, radius: float, n: int) -> np.ndarray:
    """Points on both ends of a cylinder along x and on their rims, and balls on its axis that share its length."""
    angle = 2.0 * pi * np.arange(_AROUND * n) / (_AROUND * n)
    disc = disc_points(radius * np.column_stack([np.cos(angle), np.sin(angle)]), n)
    out = [_flat_end(x, side, disc) for x, side in ((-half, -1.0), (half, 1.0))]
    if half > radius:
        x, w = _edge(half - radius, n)
        w = w * half / (half - radius)
        out.append(np.column_stack([x, np.zeros((len(x), 2)), np.full(len(x), radius), w, np.zeros((len(x), 3))]))
    return np.concatenate(out)


def _flat_end(x: float, side: float, disc: np.ndarray) -> np.ndarray:
    """Rows of the points of a disc at x, which faces along side · x."""
    rows = np.zeros((len(disc), COLUMNS))
    rows[:, 0], rows[:, 1:3], rows[:, 4], rows[:, 5] = x, disc[:, :2], disc[:, 2], side
    return rows


def round_radius(section: Any, s: float) -> float | None:
    """Radius of a round section at s [m]; None for other sections."""
    if isinstance(section, SectionGeneral) and section.shape is not None:
        return round_radius(section.shape, s)
    return section.inner_radius(s) if isinstance(section, SectionCircle | SectionAnnulus) else None


def section_points(section: Section, s: float, n: int, length: float) -> np.ndarray:
    """Points on the outline of a section at s that stand for a length of the rod [m], rows (m, 8)."""
    radius = round_radius(section, s)
    if radius is not None:
        return np.array([[0.0, 0.0, 0.0, radius, length, 0.0, 0.0, 0.0]])
    outline = section.outline(s, _AROUND * n)
    side = np.sign(_cross(outline, np.roll(outline, -1, axis=0)).sum())
    edge = np.roll(outline, -1, axis=0) - outline
    outwards = side * np.column_stack([edge[:, 1], -edge[:, 0]])  # of each edge, times its length
    return _with_normals(outline, 0.5 * length * (outwards + np.roll(outwards, 1, axis=0)))


def end_points(section: Section, s: float, n: int) -> np.ndarray:
    """Points on the flat end of a rod at s = 0 or 1, rows (m, 8); none for round rods, whose end balls are round."""
    if round_radius(section, s) is not None:
        return np.zeros((0, COLUMNS))
    outline, hole = section.outline(s, _AROUND * n), section.hole(s, _AROUND * n)
    inner = float(np.sqrt(_area(hole) / _area(outline))) if len(hole) else 0.0
    return _flat_end(0.0, 1.0 if s > 0.5 else -1.0, disc_points(outline, max(n // 2, 1), inner))


def _with_normals(points: np.ndarray, area: np.ndarray) -> np.ndarray:
    """Rows of points (m, 2 or 3) with vectors of their areas of the same size; y and z for vectors of 2."""
    size = np.linalg.norm(area, axis=1)
    rows = np.zeros((len(points), COLUMNS))
    rows[:, 3 - points.shape[1] : 3], rows[:, 4] = points, size
    rows[:, 8 - points.shape[1] :] = area / np.maximum(size, 1e-300)[:, None]
    return rows


def _area(outline: np.ndarray) -> float:
    return 0.5 * abs(float(_cross(outline, np.roll(outline, -1, axis=0)).sum()))


def skin_points(vertices: np.ndarray, triangles: np.ndarray, most: int) -> np.ndarray:
    """At most about `most` vertices of a surface of triangles, spread over it, with the areas nearest to them."""
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    own = np.zeros(vertices.shape)
    np.add.at(own, triangles.ravel(), np.repeat(np.cross(b - a, c - a) / 6.0, 3, axis=0))
    used = np.flatnonzero(own.any(axis=1))
    points, own = vertices[used], own[used]
    chosen, nearest = [0], np.linalg.norm(points - points[0], axis=1)
    owner = np.zeros(len(points), dtype=int)
    while len(chosen) < min(most, len(points)) and nearest.max() > 0.0:
        chosen.append(int(np.argmax(nearest)))
        distance = np.linalg.norm(points - points[chosen[-1]], axis=1)
        owner[distance < nearest] = len(chosen) - 1
        nearest = np.minimum(nearest, distance)
    areas = np.zeros((len(chosen), 3))
    np.add.at(areas, owner, own)
    return _with_normals(points[chosen], areas)
