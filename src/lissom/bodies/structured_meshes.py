"""Meshes of tetrahedra of simple shapes: sections of triangles, swept along x into prisms of three tetrahedra each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lissom.robot import checks


def box_mesh(size: Sequence[float], divisions: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (m, 3) [m] and cells (k, 4) of a box: x from 0 to its length, y and z centred.

    Args:
        size: along x, y and z [m].
        divisions: equal parts along x, y and z.
    Returns:
        vertices, cells: as `DomainTetrahedra` takes them.
    Raises:
        ModelError: a size is not > 0, or a number of parts is none.
    """
    lengths = checks.array(size, (3,), "box mesh: size", "must be three numbers > 0")
    checks.require(bool((lengths > 0.0).all()), "box mesh: size", "must be three numbers > 0", lengths)
    checks.require(len(divisions) == 3, "box mesh: divisions", "must be three integers >= 1", divisions)
    nx, ny, nz = (checks.integer(part, "box mesh: divisions", least=1) for part in divisions)
    y, z = (np.linspace(-0.5 * width, 0.5 * width, n + 1) for width, n in ((lengths[1], ny), (lengths[2], nz)))
    section = np.stack(np.meshgrid(y, z, indexing="ij"), axis=-1).reshape(-1, 2)
    corner = (np.arange(ny)[:, None] * (nz + 1) + np.arange(nz)).ravel()
    right, up, across = corner + nz + 1, corner + 1, corner + nz + 2
    triangles = np.concatenate([np.stack(part, axis=-1) for part in ((corner, right, across), (corner, across, up))])
    return _swept(np.linspace(0.0, lengths[0], nx + 1), section, triangles)


def cylinder_mesh(length: float, radius: float, divisions: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (m, 3) [m] and cells (k, 4) of a cylinder along x, from 0; its sections are polygons inside the circle.

    Args:
        length, radius: [m].
        divisions: equal parts along x, and rings across: the outermost has six sides a ring.
    Returns:
        vertices, cells: as `DomainTetrahedra` takes them.
    Raises:
        ModelError: a size is not > 0, or a number of parts is none.
    """
    checks.number(length, "cylinder mesh: length", above=0.0)
    checks.number(radius, "cylinder mesh: radius", above=0.0)
    checks.require(len(divisions) == 2, "cylinder mesh: divisions", "must be two integers >= 1", divisions)
    along, rings = (checks.integer(part, "cylinder mesh: divisions", least=1) for part in divisions)
    section, triangles = [np.zeros((1, 2))], []
    first = [0, *(1 + 3 * ring * (ring - 1) for ring in range(1, rings + 1))]  # vertex of each ring
    for ring in range(1, rings + 1):
        angle = 2.0 * np.pi * np.arange(6 * ring) / (6 * ring)
        section.append(radius * ring / rings * np.stack([np.cos(angle), np.sin(angle)], axis=-1))
        inner, outer = 6 * max(ring - 1, 0) or 1, 6 * ring
        for sector in range(6):
            for k in range(ring):
                a = first[ring - 1] + (sector * (ring - 1) + k) % inner
                b, c = (first[ring] + (sector * ring + k + step) % outer for step in (0, 1))
                triangles.append((a, b, c))
                if k < ring - 1:
                    triangles.append((a, c, first[ring - 1] + (sector * (ring - 1) + k + 1) % inner))
    return _swept(np.linspace(0.0, length, along + 1), np.concatenate(section), np.array(triangles))


def _swept(x: np.ndarray, section: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Prisms of sections; their sides are cut from the lower vertex below to the higher above, as in neighbours."""
    count = len(section)
    vertices = np.concatenate([np.repeat(x, count)[:, None], np.tile(section, (len(x), 1))], axis=1)
    a, b, c = np.sort(triangles, axis=1).T
    cut = [(a, b, c, c + count), (a, b, b + count, c + count), (a, a + count, b + count, c + count)]
    layer = np.concatenate([np.stack(part, axis=-1) for part in cut])
    cells = (layer + count * np.arange(len(x) - 1)[:, None, None]).reshape(-1, 4)
    corners = vertices[cells]
    inverted = np.linalg.det(corners[:, 1:] - corners[:, :1]) < 0.0
    cells[inverted] = cells[inverted][:, [0, 2, 1, 3]]
    return vertices, cells
