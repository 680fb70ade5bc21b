"""Grids of signed distances: sampled from meshes and functions, interpolated by cubic B-splines, and cached on disk.

Warp finds the nearest point of a mesh, and by its winding number whether a point is inside. The spline of n samples f_i
along an axis has n + 2 coefficients c,

    (c_i + 4 c_{i+1} + c_{i+2})/6 = f_i,   c_0 − 4 c_1 + 6 c_2 − 4 c_3 + c_4 = 0                           (1)

and the same at the other end: the third derivative is continuous at the last but one sample, so that the error is
O(h⁴) up to the ends. Distances of a mesh are those of float32, about 1e-7 of its size.

A distance has an edge in the middle of each wall. The error of the spline near an edge falls by a factor 2 − √3 from
cell to cell. A ball of radius r that touches a wall of thickness t has its centre at r + t/2 from the middle of the
wall, so that for normals n of walls the spacings h_k along the axes obey

    h_k |n_k| ≤ (r + t/2)/K,   K = 3 … 8                                                                   (2)

K = 8 leaves 3e-5, K = 3 leaves 0.02 of the error at the edge, which is a seventh of a cell. `_walls` finds t by a ray
into the body. `_compare` compares the spline with exact distances where balls touch.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportAssignmentType=false

from __future__ import annotations

import warnings
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, final
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
import warp as wp

from lissom.errors import AccuracyWarning, ModelError
from lissom.lie.start import cache_folder
from lissom.lie.types import kernel_options, vec3
from lissom.portable import read_cached, write_cached
from lissom.robot.meshes import surface_samples
from lissom.robot.sampled_shapes import (
    SampledShape,
    ShapeFunction,
    ShapeHeightField,
    Solid,
    TriangulatedShape,
    slope_fault,
)

wp.set_module_options(kernel_options())

MOST = 2**24  # largest number of samples of a grid; its coefficients take 128 MiB
_FEW = (2**19, 2**21)  # samples that are made in 2 and in 8 seconds
_ON_DISK = 2**30  # largest size of the cache on disk [B]
_FORMAT = b"3"  # of the files in the cache
_BESIDE = 2  # cells between the farthest point that contacts need and the end of the grid
_CHECKED = 20_000  # random points at which the grid of a function is compared with it
_NEAR = 2.0  # cells from the surface where the slope of a function is checked
_PLACES = 4096  # places on a mesh where its thickness is measured and its grid compared with exact distances
BEGIN = wp.constant(1e-5)  # distance from a place at which its ray begins, as a part of the size
_PARALLEL = 0.7  # least cosine of the angle between the sides of a wall
_SHEET = 0.98  # the same for a sheet, whose sides are no sharp edge
_K = (8.0, 5.0, 3.0)  # of (2)
_FEW_PLACES = 0.02  # part of the surface that may belong to walls that are too thin for the grid
_ROUNDED = 0.5  # largest error of a grid beside edges, in cells


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """A function on a grid as kernels read it.

    Fields:
        low: position (3,) of the first sample [m]. spacing: distances (3,) of the samples [m].
        size: sizes (3,) for kernels, as in robot.shapes.Surface.
        coefficient: of the B-splines (n_x + 2, n_y + 2, n_z + 2); (n_x + 2, n_y + 2, 1) of a height field.
    """

    low: np.ndarray
    spacing: np.ndarray
    size: tuple[float, float, float]
    coefficient: np.ndarray


_in_use: WeakValueDictionary[bytes, Grid] = WeakValueDictionary()  # grids of models in use, by content
_of_shapes: WeakKeyDictionary[SampledShape, dict[tuple[float, float], Grid]] = WeakKeyDictionary()  # by radii


def grid_of(shape: SampledShape | ShapeHeightField, reach: float, where: str, least: float | None = None) -> Grid:
    """The grid of a shape.

    Args:
        reach: distance from the surface up to which contacts need the shape [m]: the largest radius of the balls.
        least: smallest radius of the balls [m]; None: `reach`.
    Raises:
        ModelError: the shape breaks a rule, has parts that are too thin for the balls, or its grid would have too many
            samples.
    Accuracy: O(spacing⁴) where the distance is smooth, O(spacing) at edges, corners and ridges of the distance.
    """
    if isinstance(shape, ShapeHeightField):
        return _height_grid(shape, reach, where)
    radii = (reach if least is None else least, reach)
    known = _of_shapes.setdefault(shape, {})
    if radii not in known:
        known[radii] = _sampled(shape, radii, where)
    return known[radii]


def _sampled(shape: SampledShape, radii: tuple[float, float], where: str) -> Grid:
    """`grid_of` without a cache, for balls with radii from `radii[0]` to `radii[1]`."""
    box = _Box(*shape.bounds(where), radii[1])
    spacing = np.full(3, shape.spacing(where))
    if box.samples(spacing) > MOST:
        raise ModelError(
            f"{where}: its grid would have {box.samples(spacing):.3g} samples, and may have {MOST}; give a smaller "
            f"resolution than {shape.resolution}, or smaller balls (the largest radius is {radii[1]:g} m)"
        )
    if isinstance(shape, ShapeFunction):
        return _function_grid(shape, *box.grid(spacing), spacing, where)
    assert isinstance(shape, TriangulatedShape)
    solid = shape.solid(where)
    frame = _Frame(solid)
    walls = _walls(solid, frame)
    spacing = _spacing(box, shape, walls, radii[0], where)
    grid = _mesh_grid(solid, frame, *box.grid(spacing), spacing)
    _compare(grid, frame, walls, radii, where)
    return grid


class _Box(NamedTuple):
    """The box around a surface, and the distance from it up to which the grid reaches [m]."""

    low: np.ndarray
    high: np.ndarray
    reach: float

    def grid(self, spacing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position (3,) of the first sample [m], and numbers (3,) of samples, of a grid with spacings (3,) [m]."""
        half = np.ceil((0.5 * (self.high - self.low) + self.reach) / spacing).astype(int) + _BESIDE
        return 0.5 * (self.low + self.high) - spacing * half, 2 * half + 1

    def samples(self, spacing: np.ndarray) -> float:
        """Number of samples of this grid."""
        return float(np.prod(2.0 * (np.ceil((0.5 * (self.high - self.low) + self.reach) / spacing) + _BESIDE) + 1.0))


class _Walls(NamedTuple):
    """Places on a surface (n, 3) [m], outward normals (n, 3), the thickness of the wall there (n,) [m], infinite where
    no other side is opposite, and whether it is a sheet of parallel sides (n,)."""

    place: np.ndarray
    normal: np.ndarray
    thickness: np.ndarray
    is_sheet: np.ndarray


def _spacing(box: _Box, shape: TriangulatedShape, walls: _Walls, radius: float, where: str) -> np.ndarray:
    """Spacings (3,) of a grid that obey (2) for balls of a radius, with the largest K that has few samples. If all have
    many, (2) may be broken on a small part of the surface."""
    longest = shape.spacing(where)
    depth = (radius + 0.5 * walls.thickness)[:, None] / np.maximum(np.abs(walls.normal), 1e-9)
    tried = [(share, K, _FEW[0]) for share in (0.0, _FEW_PLACES) for K in _K[:2]]
    tried += [(_FEW_PLACES, K, _FEW[1]) for K in _K[1:]] + [(_FEW_PLACES, _K[-1], MOST)]
    for share, K, most in tried:
        spacing = np.minimum(longest, np.quantile(depth, share, axis=0, method="lower") / K)
        if box.samples(spacing) <= max(most, box.samples(np.full(3, longest))):
            break
    else:
        thinnest = float(np.quantile(walls.thickness, _FEW_PLACES, method="lower"))
        raise ModelError(
            f"{where}: is too thin for balls of radius {radius:g} m: walls of {thinnest:.3g} m need a grid of "
            f"{box.samples(spacing):.3g} samples, and it may have {MOST}; take shapes of few parts (ShapeBox, "
            "ShapeHull) for its walls, or larger balls"
        )
    for part in np.linspace(0.25, 1.0, 16).tolist():  # a plate gets as many samples as a cube, near its edges
        finer = np.minimum(spacing, max(part * longest, 0.5 * radius))
        if box.samples(finer) <= shape.resolution**3:
            return finer
    return spacing


def _walls(solid: Solid, frame: _Frame) -> _Walls:
    """Walls at places that are spread over a surface."""
    place, normal = surface_samples(solid.vertices[solid.triangles], _PLACES)
    if solid.thickness:
        sides = [place + side * 0.5 * solid.thickness * normal for side in (1.0, -1.0)]
        is_sheet = np.ones(2 * _PLACES, dtype=bool)
        thickness = np.full(2 * _PLACES, solid.thickness)
        return _Walls(np.concatenate(sides), np.concatenate([normal, -normal]), thickness, is_sheet)
    through, cosine = frame.walls(place, normal)
    return _Walls(place, normal, np.where(cosine > _PARALLEL, through, np.inf), cosine > _SHEET)


def _compare(grid: Grid, frame: _Frame, walls: _Walls, radii: tuple[float, float], where: str) -> None:
    """Compare the spline with exact distances at the centres of balls that touch the surface, and halfway there."""
    rng = np.random.default_rng(0)
    far = rng.uniform(0.5 * radii[0], radii[1], len(walls.place))
    points = walls.place + far[:, None] * walls.normal
    error = np.abs(values_at(grid, points)[0] - frame.distances(points))
    cell = float(grid.spacing.max())
    few = float(np.quantile(error, 1.0 - _FEW_PLACES))
    if few > _ROUNDED * cell:
        rule = f"its grid must be within {_ROUNDED * cell:.3g} m of the surface where balls touch it"
        raise ModelError(f"{where}: {rule} (got {few:.3g} m); give a larger resolution")
    thin = (radii[0] + 0.5 * walls.thickness)[:, None] < 0.99 * _K[-1] * grid.spacing * np.abs(walls.normal)
    lost = thin.any(axis=1) & walls.is_sheet & (error > 0.01 * cell)
    if lost.any():
        part, thinnest = 100.0 * lost.mean(), walls.thickness[lost].min()
        text = f"{where}: {part:.2g} % of its surface is too thin for its grid, walls of down to {thinnest:.3g} m"
        text = f"{text}; contacts there are up to {error[lost].max():.2g} m wrong"
        text = f"{text}. Give a larger resolution or larger balls, or shapes of few parts"
        warnings.warn(AccuracyWarning(text), stacklevel=2)


def coefficients(values: np.ndarray) -> np.ndarray:
    """Coefficients of the tensor-product spline (1) through values, with two more along each axis longer than one."""
    out = values
    for axis in range(values.ndim):
        if values.shape[axis] > 1:
            out = np.moveaxis(_along_first(np.moveaxis(out, axis, 0)), 0, axis)
    return np.ascontiguousarray(out)


def _along_first(f: np.ndarray) -> np.ndarray:
    """(1) along the first axis, for at least four samples."""
    n = len(f)
    c = np.empty((n + 2, *f.shape[1:]))
    # The condition at an end and the first three rows give c_2 = f_1 − (f_0 − 2 f_1 + f_2)/6.
    c[2] = f[1] - (f[0] - 2.0 * f[1] + f[2]) / 6.0
    c[n - 1] = f[-2] - (f[-1] - 2.0 * f[-2] + f[-3]) / 6.0
    pivot = 4.0
    pivots = []
    for k in range(3, n - 1):  # the rows between are tridiagonal
        c[k] = 6.0 * f[k - 1] - c[k - 1] / (pivot if k > 3 else 1.0)
        pivot = 4.0 - (1.0 / pivot if k > 3 else 0.0)
        pivots.append(pivot)
    for k, pivot in zip(range(n - 2, 2, -1), reversed(pivots)):
        c[k] = (c[k] - c[k + 1]) / pivot
    c[1] = 6.0 * f[1] - 4.0 * c[2] - c[3]
    c[n] = 6.0 * f[-2] - 4.0 * c[n - 1] - c[n - 2]
    c[0] = 6.0 * f[0] - 4.0 * c[1] - c[2]
    c[n + 1] = 6.0 * f[-1] - 4.0 * c[n] - c[n - 1]
    return c


def values_at(grid: Grid, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The spline of a grid and its gradient at points (n, 3) inside it, shapes (n,) and (n, 3)."""
    count = np.array(grid.coefficient.shape) - 3
    u = ((points - grid.low) / grid.spacing).clip(0.0, count)
    i = np.minimum(np.floor(u), count - 1).astype(int)
    a = u - i
    b = 1.0 - a
    weight = np.stack([b**3 / 6, (4 - 6 * a**2 + 3 * a**3) / 6, (4 - 6 * b**2 + 3 * b**3) / 6, a**3 / 6])
    slope = np.stack([-(b**2) / 2, (3 * a**2 - 4 * a) / 2, (4 * b - 3 * b**2) / 2, a**2 / 2]) / grid.spacing
    value, gradient = np.zeros(len(points)), np.zeros((len(points), 3))
    for p, q, r in np.ndindex(4, 4, 4):
        c = grid.coefficient[i[:, 0] + p, i[:, 1] + q, i[:, 2] + r]
        x, y, z = weight[p, :, 0], weight[q, :, 1], weight[r, :, 2]
        value += c * x * y * z
        gradient += c[:, None] * np.stack([slope[p, :, 0] * y * z, x * slope[q, :, 1] * z, x * y * slope[r, :, 2]], 1)
    return value, gradient


def _height_grid(shape: ShapeHeightField, reach: float, where: str) -> Grid:
    z, step = shape.table(where)
    c = coefficients(z)
    by_x, by_y = (np.abs(np.diff(c, axis=k)).max() / step[k] for k in (0, 1))  # bounds of the slopes of the spline
    low = np.array([*(-0.5 * step * (np.array(z.shape) - 1.0)), 0.0])
    steepest = float(np.sqrt(1.0 + by_x**2 + by_y**2))
    return Grid(low, np.array([*step, 1.0]), (steepest, 1.01 * reach, 0.0), c[..., None])


def _function_grid(shape: ShapeFunction, low: np.ndarray, count: np.ndarray, spacing: np.ndarray, where: str) -> Grid:
    f = shape.values(_nodes(low, spacing, count), where).reshape(count)
    grid = Grid(low, spacing, (0.0, 0.0, 0.0), coefficients(f))
    _check_function(shape, grid, where)
    content = blake2b(b"function", digest_size=20)
    for part in (grid.low, grid.spacing, grid.coefficient):
        content.update(part.tobytes())
    return _in_use.setdefault(content.digest(), grid)


def _check_function(shape: ShapeFunction, grid: Grid, where: str) -> None:
    """Compare the spline with the function, whose slope must be that of a distance, at random points near the
    surface."""
    low, high = shape.bounds(where)
    points = np.random.default_rng(0).uniform(low, high, (_CHECKED, 3))
    found, slope = values_at(grid, points)
    cell = float(grid.spacing[0])
    near = np.abs(found) < _NEAR * cell
    if not near.any():
        raise ModelError(f"{where}: distance: must be zero on a surface between low and high (got {found.min():.3g} to "
                         f"{found.max():.3g} at random points)")  # fmt: skip
    fault = slope_fault(np.linalg.norm(slope[near], axis=1))
    if fault:
        raise ModelError(f"{where}: distance: {fault}")
    error = float(np.abs(found[near] - shape.values(points[near], where)).max())
    tolerance = shape.tolerance or 0.5 * cell
    if error > tolerance:
        raise ModelError(f"{where}: tolerance: the grid must be within {tolerance:.3g} m of the function (got "
                         f"{error:.3g} m); give a larger resolution than {shape.resolution}")  # fmt: skip


def _nodes(low: np.ndarray, spacing: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Positions (n, 3) of the samples, the last axis first to change."""
    axes = (x + h * np.arange(n) for x, h, n in zip(low, spacing, count))
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def _mesh_grid(solid: Solid, frame: _Frame, low: np.ndarray, count: np.ndarray, spacing: np.ndarray) -> Grid:
    key = blake2b(_FORMAT, digest_size=20)
    for part in (solid.vertices, solid.triangles, np.array([solid.thickness]), spacing, low, count):
        key.update(np.ascontiguousarray(part).tobytes())
    grid = _in_use.get(key.digest())
    if grid is None:
        file = cache_folder("lissom-grids") / f"{key.hexdigest()}.npy"
        c = read_cached(file, lambda path: _stored(path, count))
        if c is None:
            c = made = coefficients(_mesh_distances(frame, low, spacing, count))
            write_cached(file, lambda stream: np.save(stream, made), _ON_DISK)
        grid = Grid(low, spacing, (0.0, 0.0, 0.0), c)
        _in_use[key.digest()] = grid
    return grid


@final
class _Frame:
    """A mesh for Warp, which computes in float32, in a frame with the mesh at its centre and of the mesh's size [m]."""

    def __init__(self, solid: Solid) -> None:
        self.size = float(np.ptp(solid.vertices, axis=0).max())
        self.centre = 0.5 * (solid.vertices.min(axis=0) + solid.vertices.max(axis=0))
        self.half, self.is_closed = 0.5 * solid.thickness / self.size, solid.thickness == 0.0
        self.mesh = wp.Mesh(
            points=wp.array((solid.vertices - self.centre) / self.size, dtype=wp.vec3, device="cpu"),
            indices=wp.array(solid.triangles.ravel(), dtype=wp.int32, device="cpu"),
            support_winding_number=self.is_closed,
        )

    def distances(self, points: np.ndarray) -> np.ndarray:
        """Signed distances (n,) of points (n, 3) [m]."""
        return self.size * self._measured(points, np.zeros((0, 3)))[0]

    def walls(self, points: np.ndarray, normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lengths (n,) [m] of rays from points (n, 3) of a surface into the body to its other side, and the cosines
        (n,) of the angles between the rays and the normals there; zero if there is none."""
        _, through, opposite = self._measured(points, normals)
        return self.size * through, opposite

    def _measured(self, points: np.ndarray, normals: np.ndarray) -> list[np.ndarray]:
        at = wp.array((points - self.centre) / self.size, dtype=vec3, device="cpu")
        along = wp.array(normals, dtype=wp.vec3, device="cpu")
        out = [wp.zeros(len(x), dtype=wp.float64, device="cpu") for x in (points, normals, normals)]
        given = [self.mesh.id, self.half, int(self.is_closed), at, along]
        wp.launch(mesh_distances, len(points), [*given, *out], device="cpu")
        return [x.numpy() for x in out]


def _mesh_distances(frame: _Frame, low: np.ndarray, spacing: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Signed distances [m] at the samples of a grid."""
    plane = _nodes(low, spacing, np.array([1, *count[1:]]))
    steps = spacing[0] * np.arange(count[0])
    return np.array([frame.distances(plane + np.array([x, 0.0, 0.0])) for x in steps.tolist()]).reshape(count)


@wp.kernel
def mesh_distances(
    mesh: wp.uint64,
    half: wp.float64,
    is_closed: int,
    at: wp.array(dtype=vec3),
    normal: wp.array(dtype=wp.vec3),
    out: wp.array(dtype=wp.float64),
    through: wp.array(dtype=wp.float64),
    opposite: wp.array(dtype=wp.float64),
):
    """Distance of each point: signed for a closed mesh, less `half` the thickness for a shell. If normals are given,
    also the wall behind each point."""
    k = wp.tid()
    point = wp.vec3(at[k])
    sign = wp.float64(1.0)
    if is_closed != 0:
        found = wp.mesh_query_point_sign_winding_number(mesh, point, 1e10)
        nearest = wp.mesh_eval_position(mesh, found.face, found.u, found.v)
        sign = wp.float64(found.sign)
    else:
        found = wp.mesh_query_point_no_sign(mesh, point, 1e10)
        nearest = wp.mesh_eval_position(mesh, found.face, found.u, found.v)
    out[k] = sign * wp.length(at[k] - vec3(nearest)) - half
    if normal.shape[0] > 0:
        ray = -normal[k]
        hit = wp.mesh_query_ray(mesh, point + BEGIN * ray, ray, 1e10)
        if hit.result:
            through[k] = wp.float64(hit.t + BEGIN)
            opposite[k] = wp.float64(wp.dot(hit.normal, ray))


def _stored(file: Path, count: np.ndarray) -> np.ndarray:
    """Coefficients in a file of the cache."""
    c = np.load(file, allow_pickle=False)
    if c.shape != tuple(count + 2) or c.dtype != np.float64 or not np.isfinite(c).all():
        raise ValueError
    return c
