"""Signed distances written anew with NumPy, in the frame of the shape itself, and which feature is the nearest."""

from __future__ import annotations

import numpy as np

import lissom as ls


def distance(shape, y):
    """Distance of the point y from a shape, negative inside, and a label of the feature that is nearest."""
    y = np.asarray(y, dtype=np.float64)
    if isinstance(shape, ls.ShapePlane):
        n = np.asarray(shape.normal, dtype=np.float64)
        return float(y @ n / np.linalg.norm(n)), ()
    if isinstance(shape, ls.ShapeSphere):
        return float(np.linalg.norm(y)) - shape.radius, ()
    if isinstance(shape, ls.ShapeBox):
        return _box(np.abs(y) - 0.5 * np.array([shape.size_x, shape.size_y, shape.size_z]), np.sign(y))
    axis = np.asarray(shape.axis, dtype=np.float64) / np.linalg.norm(shape.axis)
    along = float(y @ axis)
    across = float(np.linalg.norm(y - along * axis))
    if isinstance(shape, ls.ShapeCapsule):
        beyond = max(abs(along) - 0.5 * shape.length, 0.0)
        return float(np.hypot(across, beyond)) - shape.radius, (float(np.sign(along)) * (beyond > 0.0),)
    if shape.inside:
        return shape.radius - across, ()
    if shape.length is None:
        return across - shape.radius, ()
    d, label = _box(np.array([across - shape.radius, abs(along) - 0.5 * shape.length]), np.array([1.0, np.sign(along)]))
    return d, label


def _box(excess, sides):
    """From how far a point is beyond each pair of faces."""
    beyond = excess > 0.0
    if beyond.any():
        return float(np.linalg.norm(np.maximum(excess, 0.0))), tuple((beyond * sides).tolist())
    nearest = int(np.argmax(excess))
    return float(excess[nearest]), ("inside", nearest, float(sides[nearest]))
