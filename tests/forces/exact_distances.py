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
    if isinstance(shape, ls.ShapeCone):
        return _cone(shape.radius, 0.5 * shape.length, np.array([across, along]))
    if shape.inside:
        return shape.radius - across, ()
    if shape.length is None:
        return across - shape.radius, ()
    d, label = _box(np.array([across - shape.radius, abs(along) - 0.5 * shape.length]), np.array([1.0, np.sign(along)]))
    return d, label


def _cone(radius, half, point):
    """From the edges of half the triangle that a plane through the axis cuts: base, then side."""
    base, rim, tip = np.array([[0.0, -half], [radius, -half], [0.0, half]])
    found = []
    for name, start, stop in (("base", base, rim), ("side", rim, tip)):
        edge = stop - start
        part = (point - start) @ edge / (edge @ edge)
        far = float(np.linalg.norm(point - start - min(max(part, 0.0), 1.0) * edge))
        corner = {"base": "rim" if part > 1 else name, "side": "rim" if part < 0 else "tip" if part > 1 else name}[name]
        found.append((far, corner))
    far, label = min(found)
    inside = point[1] > -half and point[0] < radius * (half - point[1]) / (2 * half)
    return (-far, ("inside", label)) if inside else (far, (label,))


def features(shape):
    """How many features a shape has, outside and inside where those inside are others."""
    if isinstance(shape, ls.ShapeBox):
        return 26 + 6
    if isinstance(shape, ls.ShapeCylinder) and shape.length is not None:
        return 5 + 3
    if isinstance(shape, ls.ShapeCone):
        return 4 + 2
    return 3 if isinstance(shape, ls.ShapeCapsule) else 1


def gradient(shape, y, step=1e-6):
    """Direction in which the distance grows, by central differences, shape (3,)."""
    n = np.array([distance(shape, y + step * e)[0] - distance(shape, y - step * e)[0] for e in np.eye(3)])
    return n / np.linalg.norm(n)


def some_place(shape, rng, far, clear=5e-3):
    """A random point at the distance `far` > 0 from a shape, and farther than `clear` from where another of its
    features becomes the nearest."""
    for _ in range(1000):
        y = rng.uniform(-0.3, 0.3, 3)
        for _ in range(3):
            y = y - (distance(shape, y)[0] - far) * gradient(shape, y)
        around = [distance(shape, y + clear * e)[1] for e in (*np.eye(3), *-np.eye(3), np.zeros(3))]
        if len(set(around)) == 1 and abs(distance(shape, y)[0] - far) < 1e-9:
            return y
    raise AssertionError(f"{shape} has no such place")


def _box(excess, sides):
    """From how far a point is beyond each pair of faces."""
    beyond = excess > 0.0
    if beyond.any():
        return float(np.linalg.norm(np.maximum(excess, 0.0))), tuple((beyond * sides).tolist())
    nearest = int(np.argmax(excess))
    return float(excess[nearest]), ("inside", nearest, float(sides[nearest]))
