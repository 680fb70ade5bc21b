"""Signed distances by independent formulas in NumPy, in the frame of the shape itself, and which feature is the
nearest."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.interpolate import NdBSpline, RectBivariateSpline, make_interp_spline
from scipy.optimize import brentq, fsolve

import lissom as ls
from lissom.model import distance_grids
from lissom.robot.sampled_shapes import SampledShape

REACH = 0.05  # of the grids of shapes that are sampled [m]


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
    if isinstance(shape, ls.ShapeEllipsoid):
        return _ellipsoid(np.array([shape.radius_x, shape.radius_y, shape.radius_z]), y)
    if isinstance(shape, ls.ShapeHeightField):
        return _over_heights(_height_spline(shape), y), ()
    if isinstance(shape, SampledShape):
        spline, low, high = _spline(shape)
        inside = np.clip(y, low, high)
        return float(np.hypot(np.linalg.norm(y - inside), spline(inside[None])[0])) * _sign(y, inside, spline), ()
    axis = np.asarray(shape.axis, dtype=np.float64) / np.linalg.norm(shape.axis)
    along = float(y @ axis)
    across = float(np.linalg.norm(y - along * axis))
    if isinstance(shape, ls.ShapeCapsule):
        beyond = max(abs(along) - 0.5 * shape.length, 0.0)
        return float(np.hypot(across, beyond)) - shape.radius, (float(np.sign(along)) * (beyond > 0.0),)
    if isinstance(shape, ls.ShapeTorus):
        return float(np.hypot(across - shape.radius, along)) - shape.tube, ()
    if isinstance(shape, ls.ShapeCone):
        return _cone(shape.radius, 0.5 * shape.length, np.array([across, along]))
    if shape.inside:
        return shape.radius - across, ()
    if shape.length is None:
        return across - shape.radius, ()
    d, label = _box(np.array([across - shape.radius, abs(along) - 0.5 * shape.length]), np.array([1.0, np.sign(along)]))
    return d, label


def _ellipsoid(half, y):
    """From the multiplier of the nearest point x, which solves y − x = m x/half². The label says on which side of the
    flat middle a point inside is, if it is above or below it."""
    y2, h2 = y * y, half * half
    least = int(np.argmin(half))

    def excess(m):
        return float((h2 * y2 / (m + h2) ** 2).sum()) - 1.0

    low = -h2.min() * (1.0 - 1e-15) + half[least] * abs(y[least]) * (1.0 - 1e-12)
    m = brentq(excess, low, float(np.linalg.norm(half * y)) + 1e-9, xtol=1e-300, rtol=9e-16, maxiter=500)
    x = y * h2 / (m + h2)
    far = float(np.sign(m) * np.linalg.norm(y - x))
    others = np.arange(3) != least
    above = float((y2[others] / (1.2 * half[others] * (1.0 - h2[least] / h2[others]) + 0.02) ** 2).sum()) < 1.0
    return far, (float(np.sign(y[least])),) if above and far < 0.0 else ()


@lru_cache(maxsize=32)
def _spline(shape):
    """The tensor-product spline of SciPy through the samples of a shape, and the corners of its grid."""
    grid = distance_grids.grid_of(shape, REACH, "shape")
    f = grid.coefficient
    for axis in range(3):
        f = np.moveaxis(f, axis, 0)
        f = np.moveaxis((f[:-2] + 4.0 * f[1:-1] + f[2:]) / 6.0, 0, axis)
    axes = [x + h * np.arange(n) for x, h, n in zip(grid.low, grid.spacing, f.shape)]
    knots = []
    for axis, x in enumerate(axes):
        one = make_interp_spline(x, f, k=3, axis=axis)
        knots.append(one.t)
        f = np.moveaxis(one.c, 0, axis)
    return NdBSpline(tuple(knots), f, 3), grid.low, np.array([x[-1] for x in axes])


def _sign(y, inside, spline):
    return 1.0 if (y != inside).any() else float(np.sign(spline(inside[None])[0]))


@lru_cache(maxsize=32)
def _height_spline(shape):
    """The spline of SciPy through heights."""
    z = np.asarray(shape.heights)
    axes = [np.linspace(-0.5 * size, 0.5 * size, n) for size, n in zip((shape.size_x, shape.size_y), z.shape)]
    return RectBivariateSpline(*axes, z)


def _over_heights(height, point):
    """From the foot of the perpendicular. An error of the foot is of second order in the distance."""

    def miss(at):
        over = point[2] - height.ev(*at)
        return [at[0] - point[0] - over * height.ev(*at, dx=1), at[1] - point[1] - over * height.ev(*at, dy=1)]

    foot = fsolve(miss, point[:2], xtol=1e-10)
    gap = np.array([*foot, height.ev(*foot)]) - point
    return float(np.linalg.norm(gap)) * (1.0 if point[2] > height.ev(*foot) else -1.0)


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
    if isinstance(shape, ls.ShapeEllipsoid):
        return 3
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
