"""Simple surfaces as quadrilaterals, to draw, each seen counter-clockwise from outside."""

from __future__ import annotations

import numpy as np

AROUND = 48


def between(rings: np.ndarray) -> np.ndarray:
    """Quadrilaterals (n, m, 4, 3) between consecutive rings (n, rings, corners, 3)."""
    ahead = np.roll(rings, -1, axis=2)
    quads = np.stack([rings[:, :-1], ahead[:, :-1], ahead[:, 1:], rings[:, 1:]], axis=3)
    return quads.reshape(len(rings), -1, 4, 3)


def turned(z: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """The surface of revolution about z of a line given by its heights and radii, shape (m, 4, 3)."""
    angle = 2 * np.pi * np.arange(AROUND) / AROUND
    rings = np.stack([radius[:, None] * np.cos(angle), radius[:, None] * np.sin(angle), 0 * angle + z[:, None]], axis=2)
    return between(rings[None])[0]


def box(half: np.ndarray) -> np.ndarray:
    """The six faces of a box of half-sizes (3,) around the origin, shape (6, 4, 3)."""
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=np.float64)
    faces = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            corners = np.insert(square[:: int(sign)], axis, sign, axis=1)
            faces.append(corners if axis != 1 else corners[::-1])
    return np.array(faces) * half
