"""Quadrature points on the surfaces of bodies, for contacts that integrate a pressure over them.

A row (x, y, z, radius, extent, n, e₁, e₂, c₁, c₂, k) is a point of radius 0 that stands for an area [m²] with the
outward normal n (3,), a ball on the axis of a round body that stands for a length [m], or a sphere with extent 0; balls
have n = 0. The area of a point is that of a cell. For k = 0 it has the half-edges e₁, e₂ (3,) [m] and bends inwards by
c₁, c₂ [m] at its edges. For k = 1 it is a triangle with corners at e₁, e₂ and −e₁ − e₂ from the point. Forces of planes
on flat sides are exact, also on a part of a side, since the pressure is integrated over the cells, see forces.cells.
Points at corners have e = 0. Round sections and spheres need one ball: their pressure is integrated around them in
closed form, see contact_laws.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from lissom.robot.sections import Section, SectionAnnulus, SectionCircle, SectionGeneral

DEFAULT = 16  # cells along an edge of a face
_AROUND = 6  # points around an outline, for each point along an edge
_SMALL = 0.2  # area of a triangle that shares a cell, as a part of that of the cell
_ASIDE = np.array([0.5772, 0.6931, 0.4320])  # gives edges a sign that does not change with small changes of a mesh
_TIE = 1e-9  # and decides between equal components of a normal
_FLAT = 0.9  # least cosine of the angles between the surfaces that meet at a point with a cell
COLUMNS = 17


def box_points(half: np.ndarray, n: int) -> np.ndarray:
    """Points on the six faces of a box with half-edges (3,), n along the shorter edge of each face and up to 2 n along
    the longer one, where cells are squares; rows (m, 17)."""
    out = []
    for axis in range(3):
        a, b = (k for k in range(3) if k != axis)
        n_a, n_b = (int(min(round(n * half[k] / min(half[a], half[b])), 2 * n)) for k in (a, b))
        places = ((2.0 * np.arange(count) + 1.0) / count - 1.0 for count in (n_a, n_b))
        x, y = (z.ravel() for z in np.meshgrid(*places, indexing="ij"))
        for side in (-1.0, 1.0):
            rows = np.zeros((len(x), COLUMNS))
            rows[:, a], rows[:, b], rows[:, axis] = half[a] * x, half[b] * y, side * half[axis]
            rows[:, 4], rows[:, 5 + axis] = 4.0 * half[a] * half[b] / len(x), side
            rows[:, 8 + a], rows[:, 11 + b] = half[a] / n_a, half[b] / n_b
            out.append(rows)
    return np.concatenate(out)


def disc_points(outline: np.ndarray, n: int, inner: float = 0.0) -> np.ndarray:
    """Points on a flat face in an outline (m, 2) [m], star-shaped around its mean; rows (n m, 7): y, z, area, and the
    half-edges e₁ (radial) and e₂ of a cell.

    Args:
        n: number of rings. inner: size of a hole of the same shape, relative to the outline.
    """
    centre = outline.mean(axis=0)
    arms = outline - centre
    ahead, behind = np.roll(arms, -1, axis=0), np.roll(arms, 1, axis=0)
    sector = 0.25 * np.abs(_cross(arms, ahead) + _cross(behind, arms))  # of each corner
    edges = np.linspace(inner, 1.0, n + 1)
    share = np.diff(edges**2)
    size = (2.0 / 3.0) * np.diff(edges**3) / share  # of the mean place of a cell
    area = (share[:, None] * sector)[..., None]
    out, along = size[:, None, None] * arms, 0.5 * np.diff(edges)[:, None, None] * arms
    across = 0.25 * size[:, None, None] * (ahead - behind)
    return np.concatenate([centre + out, area, along, across], axis=-1).reshape(-1, 7)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


def disc_ends(half: float, radius: float, n: int) -> np.ndarray:
    """Points on both ends of a cylinder along x, in n rings."""
    angle = 2.0 * pi * np.arange(_AROUND * n) / (_AROUND * n)
    disc = disc_points(radius * np.column_stack([np.cos(angle), np.sin(angle)]), n)
    return np.concatenate([_flat_end(x, side, disc) for x, side in ((-half, -1.0), (half, 1.0))])


def _flat_end(x: float, side: float, disc: np.ndarray) -> np.ndarray:
    """Rows of the points of a disc at x, which faces along side · x."""
    rows = np.zeros((len(disc), COLUMNS))
    rows[:, 0], rows[:, 1:3], rows[:, 4], rows[:, 5] = x, disc[:, :2], disc[:, 2], side
    rows[:, 9:11], rows[:, 12:14] = disc[:, 3:5], disc[:, 5:7]
    return rows


def revolved_points(x: np.ndarray, radius: np.ndarray, around: int, side: float = 1.0) -> np.ndarray:
    """Points on a surface of revolution about x, one in each of `around` cells of each ring between two stations, rows
    (m, 17).

    Args:
        x, radius: stations (k,) and radii there [m].
        side: 1 outside, -1 for the inner side of a tube.
    """
    step, change = np.diff(x), np.diff(radius)
    slant = np.hypot(step, change)
    r = 0.5 * (radius[1:] + radius[:-1])
    width = r * pi / around  # half of a cell's edge around
    flat = r - width**2 / (6.0 * r)  # at the mean place of the curved cell
    angle = 2.0 * pi * (np.arange(around) + 0.5) / around
    c, s = np.cos(angle), np.sin(angle)
    zero = np.zeros((len(r), around))
    place = np.stack([zero + 0.5 * (x[1:] + x[:-1])[:, None], np.outer(flat, c), np.outer(flat, s)], axis=-1)
    up, out = (-change / slant)[:, None], (step / slant)[:, None]
    normal = side * np.stack([zero + up, out * c, out * s], axis=-1)
    along = 0.5 * np.stack([zero + step[:, None], np.outer(change, c), np.outer(change, s)], axis=-1)
    across = width[:, None, None] * np.stack([zero, zero - s, zero + c], axis=-1)
    area, bend = zero + (2.0 * width * slant)[:, None], zero + (side * width**2 / (2.0 * r))[:, None]
    none = zero[..., None]
    numbers = (place, none, area[..., None], normal, along, across, none, bend[..., None], none)
    return np.concatenate(numbers, axis=-1).reshape(-1, COLUMNS)


def ring_points(x: float, side: float, outer: float, inner: float, around: int, rings: int) -> np.ndarray:
    """Points on a flat annulus at x, which faces along side · x, rows (m, 17)."""
    angle = 2.0 * pi * np.arange(around) / around
    return _flat_end(
        x, side, disc_points(outer * np.column_stack([np.cos(angle), np.sin(angle)]), rings, inner / outer)
    )


def round_radius(section: Any, s: float) -> float | None:
    """Radius of a round section at s [m]; None for other sections."""
    if isinstance(section, SectionGeneral) and section.shape is not None:
        return round_radius(section.shape, s)
    return section.inner_radius(s) if isinstance(section, SectionCircle | SectionAnnulus) else None


def section_points(section: Section, s: float, n: int, length: float) -> np.ndarray:
    """Points on the outline of a section at s that stand for a length of the rod [m], rows (m, 17)."""
    radius = round_radius(section, s)
    if radius is not None:
        return np.array([[0.0, 0.0, 0.0, radius, length, *np.zeros(COLUMNS - 5)]])
    outline = section.outline(s, _AROUND * n)
    side = np.sign(_cross(outline, np.roll(outline, -1, axis=0)).sum())
    edge = np.roll(outline, -1, axis=0) - outline
    outwards = side * np.column_stack([edge[:, 1], -edge[:, 0]])  # of each edge, times its length
    before = np.roll(edge, 1, axis=0)
    size = np.linalg.norm(edge, axis=1) * np.linalg.norm(before, axis=1)
    is_flat = (edge * before).sum(axis=1) > _FLAT * size
    rows = _with_normals(outline, 0.5 * length * (outwards + np.roll(outwards, 1, axis=0)))
    rows[:, 9:11] = 0.25 * is_flat[:, None] * (edge + before)
    rows[:, 1:3] += is_flat[:, None] * (edge - before) / 24.0  # the mean place of the curved cell
    rows[:, 14] = -0.125 * is_flat * ((edge - before) * rows[:, 6:8]).sum(axis=1)
    return rows


def end_points(section: Section, s: float, n: int) -> np.ndarray:
    """Points on the flat end of a rod at s = 0 or 1, rows (m, 17); none for round rods, whose end balls are round."""
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
    rows[:, 8 - points.shape[1] : 8] = area / np.maximum(size, 1e-300)[:, None]
    return rows


def _area(outline: np.ndarray) -> float:
    return 0.5 * abs(float(_cross(outline, np.roll(outline, -1, axis=0)).sum()))


def skin_points(vertices: np.ndarray, triangles: np.ndarray, most: int, places: np.ndarray | None = None) -> np.ndarray:
    """At most `most` vertices of a surface of triangles, spread over it, as rows (m, 17). Each takes the areas of the
    vertices nearest to it, by distances between `places` of all vertices; None: between the vertices."""
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    own, sizes, third = np.zeros(vertices.shape), np.zeros(len(vertices)), np.cross(b - a, c - a) / 6.0
    np.add.at(own, triangles.ravel(), np.repeat(third, 3, axis=0))
    np.add.at(sizes, triangles.ravel(), np.repeat(np.linalg.norm(third, axis=1), 3))
    used = np.flatnonzero(own.any(axis=1))
    points, own = vertices[used], own[used]
    apart = points if places is None else places[used]
    chosen, nearest = [0], np.linalg.norm(apart - apart[0], axis=1)
    owner = np.zeros(len(points), dtype=int)
    while len(chosen) < min(most, len(points)) and nearest.max() > 0.0:
        chosen.append(int(np.argmax(nearest)))
        distance = np.linalg.norm(apart - apart[chosen[-1]], axis=1)
        owner[distance < nearest] = len(chosen) - 1
        nearest = np.minimum(nearest, distance)
    areas, whole = np.zeros((len(chosen), 3)), np.zeros(len(chosen))
    np.add.at(areas, owner, own)
    np.add.at(whole, owner, sizes[used])
    rows = _with_normals(points[chosen], areas)
    half = 0.5 * np.sqrt(rows[:, 4] * (rows[:, 4] > _FLAT * whole))[:, None]
    least = np.argmin(np.abs(rows[:, 5:8]) + _TIE * np.arange(3), axis=1)
    across = np.cross(rows[:, 5:8], np.eye(3)[least])
    across /= np.maximum(np.linalg.norm(across, axis=1), 1e-300)[:, None]
    rows[:, 8:11], rows[:, 11:14] = half * across, half * np.cross(rows[:, 5:8], across)
    return rows


def triangle_points(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """One point for each triangle, rows (m, 17)."""
    return _single(vertices[triangles])


def mesh_points(vertices: np.ndarray, triangles: np.ndarray, n: int, *, on_plane: bool = False) -> np.ndarray:
    """Points on a rigid surface of triangles, rows (m, 17). Triangles that are longer than a cell of 6 n² cells are
    divided, on a plane those that are larger. If more than 24 n² triangles remain, on a plane 96 n², the smaller ones
    share one of about as many cells, which has their area with its first and second moments, and their curvature."""
    corners, most = vertices[triangles], (96 if on_plane else 24) * n * n
    area = float(_areas(corners).sum())
    size = float(np.sqrt(area / (6.0 * n * n)))
    if on_plane:
        corners = _divided(corners, lambda x: _areas(x) > 0.7 * size**2)
    if not on_plane or len(corners) > most:
        corners = _divided(corners, lambda x: _longest(x) > 1.6 * size)
    if len(corners) <= most:
        return _single(corners)
    size = float(np.sqrt(area / most))
    area, centre = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), corners.mean(axis=1)
    face = np.argmax(np.abs(area), axis=1)
    side = np.take_along_axis(area, face[:, None], axis=1)[:, 0] > 0.0
    small = np.linalg.norm(area, axis=1) < _SMALL * size**2
    own = np.where(small, -1, np.arange(len(corners)))
    bins = np.column_stack([np.floor(centre / size).astype(int), face, side, own])
    bins[~small, :5] = 0
    cell = np.unique(bins, axis=0, return_inverse=True)[1].ravel()
    alone = np.bincount(cell)[cell] == 1
    return np.concatenate([_single(corners[alone]), _grouped(corners[~alone], cell[~alone])])


def _divided(corners: np.ndarray, too_large: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Triangles (m, 3, 3), halved as long as they are too large."""
    while (large := too_large(corners)).any():
        corners = np.concatenate([corners[~large], _halved(corners[large])])
    return corners


def _single(corners: np.ndarray) -> np.ndarray:
    """Rows of triangles with given corners (m, 3, 3)."""
    centre = corners.mean(axis=1)
    rows = _with_normals(centre, 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    rows[:, 8:14] = (corners[:, :2] - centre[:, None]).reshape(-1, 6)
    rows[:, 16] = 1.0
    return rows


def _grouped(corners: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """Rows of the cells to which triangles with given corners (m, 3, 3) belong: the area of the triangles with its
    first and second moments, and their curvature."""
    cell = np.unique(cell, return_inverse=True)[1]
    area, centre = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), corners.mean(axis=1)
    weight = np.linalg.norm(area, axis=1)
    arms = corners - centre[:, None]
    within = np.einsum("kia,kib->kab", arms, arms) / 12.0
    count = int(cell.max(initial=-1)) + 1
    total, place, spread, normal = np.zeros(count), np.zeros((count, 3)), np.zeros((count, 3, 3)), np.zeros((count, 3))
    np.add.at(total, cell, weight)
    np.add.at(place, cell, weight[:, None] * centre)
    np.add.at(normal, cell, area)
    place /= total[:, None]
    apart = centre - place[cell]
    np.add.at(spread, cell, weight[:, None, None] * (within + apart[:, :, None] * apart[:, None, :]))
    rows = _with_normals(place, normal)
    values, axes = np.linalg.eigh(spread / total[:, None, None])
    axes = axes[:, :, 1:] * np.where(_ASIDE @ axes[:, :, 1:] < 0.0, -1.0, 1.0)[:, None, :]
    edges = np.sqrt(3.0 * np.maximum(values[:, 1:], 0.0))[:, None, :] * axes
    rows[:, 8:11], rows[:, 11:14] = edges[..., 0], edges[..., 1]
    rows[:, 14:16] = _bends(corners, weight, cell, place, rows[:, 5:8], edges)
    return rows


def _bends(
    corners: np.ndarray, weight: np.ndarray, cell: np.ndarray, place: np.ndarray, normal: np.ndarray, edges: np.ndarray
) -> np.ndarray:
    """c₁, c₂ (n, 2) of cells of triangles: those of the quadratic function of the place in the cell that is nearest to
    the corners of its triangles."""
    length = np.maximum(np.linalg.norm(edges, axis=1), 1e-300)
    arms = corners - place[cell][:, None]
    height = np.einsum("kia,ka->ki", arms, normal[cell])
    x, y = np.moveaxis(np.einsum("kia,kab->kib", arms, edges[cell]) / length[cell][:, None] ** 2, -1, 0)
    terms = np.stack([np.ones(x.shape), x, y, x * y, x * x, y * y], axis=-1)
    A, b = np.zeros((len(place), 6, 6)), np.zeros((len(place), 6))
    np.add.at(A, cell, np.einsum("k,kia,kib->kab", weight, terms, terms))
    np.add.at(b, cell, np.einsum("k,kia,ki->ka", weight, terms, height))
    bends = -np.einsum("kab,kb->ka", np.linalg.pinv(A, rcond=1e-6, hermitian=True), b)[:, 4:]
    return np.clip(bends, -0.5 * length, 0.5 * length)


def _areas(corners: np.ndarray) -> np.ndarray:
    return 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)


def _longest(corners: np.ndarray) -> np.ndarray:
    return np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)


def _halved(corners: np.ndarray) -> np.ndarray:
    """Triangles (2 m, 3, 3) that halve triangles (m, 3, 3) at their longest edges."""
    edge = np.argmax(np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2), axis=1)
    a, b, c = (corners[np.arange(len(corners)), (edge + k) % 3] for k in range(3))
    middle = 0.5 * (a + b)
    return np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
