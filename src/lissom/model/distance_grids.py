"""Grids of signed distances: sampled from meshes and functions, interpolated by cubic B-splines, and cached on disk.

Warp finds the nearest point of a mesh, and by its winding number whether a point is inside. The spline of n samples f_i
along an axis has n + 2 coefficients c,

    (c_i + 4 c_{i+1} + c_{i+2})/6 = f_i,   c_0 − 4 c_1 + 6 c_2 − 4 c_3 + c_4 = 0                           (1)

and the same at the other end: the third derivative is continuous at the last but one sample, so that the error is
O(h⁴) up to the ends. Distances of a mesh are those of float32, about 1e-7 of its size.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportAssignmentType=false

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import final
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
import warp as wp

from lissom.errors import ModelError
from lissom.lie.types import kernel_options, vec3
from lissom.portable import read_cached, write_cached
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
_ON_DISK = 2**30  # largest size of the cache on disk [B]
_FORMAT = b"2"  # of the files in the cache
_BESIDE = 2  # cells between the farthest point that contacts need and the end of the grid
_CHECKED = 20_000  # random points at which the grid of a function is compared with it
_NEAR = 2.0  # cells from the surface where the slope of a function is checked


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
_functions: WeakKeyDictionary[ShapeFunction, dict[int, Grid]] = WeakKeyDictionary()


def grid_of(shape: SampledShape | ShapeHeightField, reach: float, where: str) -> Grid:
    """The grid of a shape.

    Args:
        reach: distance from the surface up to which contacts need the shape [m]: the largest radius of the balls.
    Raises:
        ModelError: the shape breaks a rule, or its grid would have too many samples.
    Accuracy: O(spacing⁴) where the distance is smooth, O(spacing) at edges, corners and ridges of the distance.
    """
    if isinstance(shape, ShapeHeightField):
        return _height_grid(shape, reach, where)
    low, high = shape.bounds(where)
    spacing = shape.spacing(where)
    half = np.ceil((0.5 * (high - low) + reach) / spacing).astype(int) + _BESIDE
    samples = float(np.prod(2.0 * half + 1.0))
    if samples > MOST:
        raise ModelError(
            f"{where}: its grid would have {samples:.3g} samples, and may have {MOST}; give a smaller resolution than "
            f"{shape.resolution}, or smaller balls (the largest radius is {reach:g} m)"
        )
    origin = 0.5 * (low + high) - spacing * half
    count = 2 * half + 1
    if isinstance(shape, ShapeFunction):
        return _function_grid(shape, origin, spacing, count, where)
    assert isinstance(shape, TriangulatedShape)
    return _mesh_grid(shape.solid(where), origin, spacing, count)


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


def _function_grid(shape: ShapeFunction, low: np.ndarray, spacing: float, count: np.ndarray, where: str) -> Grid:
    known = _functions.setdefault(shape, {})
    key = int(count[0])
    if key not in known:
        f = shape.values(_nodes(low, spacing, count), where).reshape(count)
        grid = Grid(low, np.full(3, spacing), (0.0, 0.0, 0.0), coefficients(f))
        _check_function(shape, grid, where)
        content = blake2b(b"function", digest_size=20)
        for part in (grid.low, grid.spacing, grid.coefficient):
            content.update(part.tobytes())
        known[key] = _in_use.setdefault(content.digest(), grid)
    return known[key]


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


def _nodes(low: np.ndarray, spacing: float, count: np.ndarray) -> np.ndarray:
    """Positions (n, 3) of the samples, the last axis first to change."""
    axes = (x + spacing * np.arange(n) for x, n in zip(low, count))
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def _mesh_grid(solid: Solid, low: np.ndarray, spacing: float, count: np.ndarray) -> Grid:
    key = blake2b(_FORMAT, digest_size=20)
    for part in (solid.vertices, solid.triangles, np.array([solid.thickness, spacing]), low, count):
        key.update(np.ascontiguousarray(part).tobytes())
    grid = _in_use.get(key.digest())
    if grid is None:
        file = _folder() / f"{key.hexdigest()}.npy"
        c = read_cached(file, lambda path: _stored(path, count))
        if c is None:
            c = made = coefficients(_mesh_distances(solid, low, spacing, count))
            write_cached(file, lambda stream: np.save(stream, made), _ON_DISK)
        grid = Grid(low, np.full(3, spacing), (0.0, 0.0, 0.0), c)
        _in_use[key.digest()] = grid
    return grid


def _mesh_distances(solid: Solid, low: np.ndarray, spacing: float, count: np.ndarray) -> np.ndarray:
    """Signed distances [m] at the samples of a grid. Warp computes in float32, in a frame with the mesh at its centre
    and of the mesh's size."""
    size = float(np.ptp(solid.vertices, axis=0).max())
    centre = 0.5 * (solid.vertices.min(axis=0) + solid.vertices.max(axis=0))
    is_closed = solid.thickness == 0.0
    mesh = wp.Mesh(
        points=wp.array((solid.vertices - centre) / size, dtype=wp.vec3, device="cpu"),
        indices=wp.array(solid.triangles.ravel(), dtype=wp.int32, device="cpu"),
        support_winding_number=is_closed,
    )
    out = wp.zeros(shape=tuple(int(n) for n in count), dtype=wp.float64, device="cpu")
    start = vec3(*((low - centre) / size))
    arguments = [mesh.id, start, spacing / size, 0.5 * solid.thickness / size, int(is_closed), out]
    wp.launch(mesh_distances, out.shape, arguments, device="cpu")
    return size * out.numpy()


@wp.kernel
def mesh_distances(
    mesh: wp.uint64,
    low: vec3,
    spacing: wp.float64,
    half: wp.float64,
    is_closed: int,
    out: wp.array3d(dtype=wp.float64),
):
    """Distance at each sample of a grid: signed for a closed mesh, less `half` the thickness for a shell."""
    i, j, k = wp.tid()
    y = low + spacing * vec3(wp.float64(i), wp.float64(j), wp.float64(k))
    point = wp.vec3(y)
    sign = wp.float64(1.0)
    if is_closed != 0:
        found = wp.mesh_query_point_sign_winding_number(mesh, point, 1e10)
        nearest = wp.mesh_eval_position(mesh, found.face, found.u, found.v)
        sign = wp.float64(found.sign)
    else:
        found = wp.mesh_query_point_no_sign(mesh, point, 1e10)
        nearest = wp.mesh_eval_position(mesh, found.face, found.u, found.v)
    out[i, j, k] = sign * wp.length(y - vec3(nearest)) - half


def _folder() -> Path:
    """Folder of the cache, beside that of Warp's kernels."""
    return Path(str(wp.config.kernel_cache_dir)).parent / "lissom-grids"


def _stored(file: Path, count: np.ndarray) -> np.ndarray:
    """Coefficients in a file of the cache."""
    c = np.load(file, allow_pickle=False)
    if c.shape != tuple(count + 2) or c.dtype != np.float64 or not np.isfinite(c).all():
        raise ValueError
    return c
