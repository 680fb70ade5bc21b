"""Meshes that are drawn for rigid bodies."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from stat import S_ISREG
from typing import Any, final
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.fields import Numbers, Placement
from lissom.robot.shapes import Shape

_MOST = 2**29  # [B] of a mesh
_FARTHEST = 1e12  # [m], whose squares and cubes are numbers
_STREAMS = (".gz", ".bz2", ".tgz", ".tar", ".xz")


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Mesh:
    """Triangles that are drawn for a rigid body; they neither weigh nor touch anything.

    Args:
        vertices: shape (n, 3), in `scale`; None where they are those of a file.
        triangles: numbers of three vertices each, counter-clockwise seen from outside, shape (m, 3).
        file: a mesh of any kind that trimesh reads (STL, OBJ, DAE, PLY, GLB, ...), read when it is asked for (extra
            `urdf`).
        scale: unit of the vertices [m]: a number, or one for each axis.
        placement: 4x4 of the mesh's frame in the body's frame; None is the identity.
        color: (red, green, blue), or with opacity behind, from 0 to 1; None leaves it to the picture.
    """

    vertices: Numbers | None = None
    triangles: Numbers | None = None
    file: str | None = None
    scale: Numbers = 1.0
    placement: Placement = None
    color: Numbers | None = None

    @classmethod
    def of_shape(cls, shape: Shape, *, placement: Any = None, color: Any = None) -> Mesh:
        """The surface of a shape that has an end, its frame at `placement` in the body's frame."""
        quads = shape.facets(-np.ones(3), np.ones(3)) @ shape.surface("mesh").rotation.T
        vertices, corner = np.unique(quads.reshape(-1, 3).round(12), axis=0, return_inverse=True)
        a, b, c, d = corner.reshape(-1, 4).T
        triangles = np.vstack([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
        flat = (triangles == np.roll(triangles, 1, axis=1)).any(axis=1)
        return cls(vertices=vertices, triangles=triangles[~flat], placement=placement, color=color)

    def surface(self) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (n, 3) [m] in the body's frame and triangles (m, 3).

        Raises:
            ModelError: the file cannot be read or holds no surface, or trimesh is not installed.
        """
        vertices, triangles = (self.vertices, self.triangles) if self.file is None else read_mesh(self.file)
        g = checks.pose(self.placement, "mesh: placement")
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            points = np.asarray(vertices, dtype=np.float64) * np.asarray(self.scale, dtype=np.float64)
            points, rows = points @ g[:3, :3].T + g[:3, 3], np.asarray(triangles, dtype=np.int64)
        _check_surface(points, rows, "mesh" if self.file is None else f"mesh {os.fspath(self.file)!r}")
        return points, rows

    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""
        given = (self.file is None) == (self.vertices is not None and self.triangles is not None)
        rule = "needs a file, or vertices and triangles, and not both"
        checks.require(given and (self.file is None or self.vertices is self.triangles is None), where, rule, self.file)
        if self.file is None:
            vertices = checks.array(self.vertices, (-1, 3), f"{where}: vertices", "must be rows of 3 finite numbers")
            rule = f"must be rows of three numbers of vertices, from 0 to {len(vertices) - 1}"
            rows = checks.array(self.triangles, (-1, 3), f"{where}: triangles", rule)
            inside = (rows >= 0) & (rows < len(vertices)) & (rows == np.floor(rows))
            checks.require(bool(inside.all()), f"{where}: triangles", rule, rows[~inside.all(axis=1)][:1])
            _check_surface(vertices, rows.astype(np.int64), where)
        else:
            checks.require(isinstance(self.file, str | os.PathLike), f"{where}: file", "must be a path", self.file)
        scale = checks.array(np.atleast_1d(self.scale), (-1,), f"{where}: scale", "must be a number or three")
        rule = "must be a number or three, and not 0"
        checks.require(len(scale) in (1, 3) and bool((scale != 0.0).all()), f"{where}: scale", rule, self.scale)
        checks.pose(self.placement, f"{where}: placement")
        if self.color is not None:
            rule = "must be three or four numbers from 0 to 1"
            color = checks.array(self.color, (-1,), f"{where}: color", rule)
            good = len(color) in (3, 4) and bool(((color >= 0.0) & (color <= 1.0)).all())
            checks.require(good, f"{where}: color", rule, self.color)


def read_mesh(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) and triangles (m, 3) of all parts of a mesh file.

    Raises:
        ModelError: the file cannot be read, has no triangles or would take too much memory, or trimesh is not
            installed.
    """
    name = os.fspath(path)
    try:
        known = os.stat(name)
        _check_size(name, known)
    except (OSError, BadZipFile) as error:
        raise ModelError(f"mesh {name!r}: cannot be read ({type(error).__name__}: {error})") from error
    return _read(name, known.st_mtime_ns)


def _check_size(name: str, known: os.stat_result) -> None:
    """Raise ModelError at what would take more memory than a mesh does, before any of it is read."""
    where = f"mesh {name!r}"
    checks.require(S_ISREG(known.st_mode), where, "must be a file", name)
    size, rule = known.st_size, f"must hold at most {_MOST / 2**20:g} MiB, unpacked as well"
    if name.lower().endswith(_STREAMS):  # which do not say what they unpack to
        raise ModelError(f"{where}: must not be packed; unpack it (got {os.path.splitext(name)[1]!r})")
    if is_zipfile(name):
        with ZipFile(name) as archive:
            size = sum(item.file_size for item in archive.infolist())
    checks.require(size <= _MOST, where, rule, f"{size / 2**20:.0f} MiB")


def _check_surface(vertices: np.ndarray, triangles: np.ndarray, where: str) -> None:
    """Raise ModelError at triangles that nothing can be drawn of."""
    near = np.abs(vertices) <= _FARTHEST  # False for NaN too
    if not near.all():
        raise checks.fail(f"{where}: vertices", f"must be within {_FARTHEST:g} m", vertices[~near.all(axis=1)][0])
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    edges = np.cross(b - a, c - a)
    if not edges.any():
        raise ModelError(f"{where}: must hold a triangle that is more than a point or a line (got {len(edges)} flat)")


@lru_cache(maxsize=64)
def _read(name: str, changed: int) -> tuple[np.ndarray, np.ndarray]:
    """What a file holds that was `changed` at this time."""
    try:
        import trimesh
    except ImportError:
        raise ModelError(f"mesh {name!r}: needs trimesh: pip install 'lissom[urdf]'") from None
    load: Callable[..., Any] = trimesh.load_mesh
    try:
        mesh = load(name, process=False)
        mesh = mesh.to_mesh() if isinstance(mesh, trimesh.Scene) else mesh
        vertices, triangles = np.array(mesh.vertices, dtype=np.float64), np.array(mesh.faces, dtype=np.int64)
    except Exception as error:  # each format has errors of its own
        raise ModelError(f"mesh {name!r}: cannot be read ({type(error).__name__}: {error})") from error
    if not len(triangles):
        raise ModelError(f"mesh {name!r}: must hold triangles (got {len(vertices)} points)")
    if vertices.shape[1:] != (3,) or triangles.shape[1:] != (3,):
        rule = "must hold vertices of three numbers and triangles of three vertices"
        raise ModelError(f"mesh {name!r}: {rule} (got shapes {vertices.shape} and {triangles.shape})")
    if triangles.min() < 0 or triangles.max() >= len(vertices):
        rule = f"its triangles must number vertices from 0 to {len(vertices) - 1}"
        raise ModelError(f"mesh {name!r}: {rule} (got {triangles.min()} to {triangles.max()})")
    vertices.setflags(write=False)
    triangles.setflags(write=False)
    return vertices, triangles
