"""Meshes: triangles that are drawn for a rigid body, and contact balls fitted into them.

Triangles are turned outwards once, when a mesh is read: those of a mesh that is turned inside out, and those that a
scale with one or three negative numbers mirrors. What is left out of order is named by `fault_of_surface`.

The largest ball inside a mesh that touches its surface at the point x, with outward normal n, has

    c = x − r n,    r = min over y of |x − y|² / (2 nᵀ(x − y))   where nᵀ(x − y) > 0                       (1)

with y all other points of the surface. The algorithm starts with a large ball and repeatedly shrinks it to the surface
point nearest to its centre (J. Ma, S. Bae, S. Choi, 3D medial axis point approximation using nearest neighbors and the
normal field, Visual Computer, 2012). From these balls it selects one after another, each time the ball that brings the
union of the selected balls closest to the surface.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, final
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks, formatting
from lissom.robot.fields import Numbers, Placement
from lissom.robot.shapes import Shape

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_MOST = 2**29  # largest size of a mesh file [B]
_FARTHEST = 1e12  # largest coordinate of a vertex [m]; its squares and cubes are finite
_STREAMS = (".gz", ".bz2", ".tgz", ".tar", ".xz")
_SAMPLES = 2000  # sample points on the surface
_CANDIDATES = 500  # balls to select from
_SHRINKS = 30
_NEARBY = 4.0  # distance of a sample beyond which no ball reaches through a wall, in distances between samples
_OPEN, _TURNED = "must be closed", "must have triangles that are all turned outwards"
_SMALLEST = 1e-9  # least size of a body [m]
_WELD = 2.0**-20  # vertices closer than this share of the size are one
_NEAR = 1e-6  # largest depth of another surface point inside a ball, relative to its radius


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Mesh:
    """Triangles that are drawn for a rigid body, or bound a shape. They have no mass.

    Closed parts whose triangles are turned inwards are turned back.

    Args:
        vertices: shape (n, 3), in units of `scale`; None if a file holds them.
        triangles: indices of three vertices each, counter-clockwise seen from outside, shape (m, 3).
        file: path of a mesh file in any format that trimesh reads (STL, OBJ, DAE, PLY, GLB, ...). It is read on first
            use (extra `urdf`).
        scale: unit of the vertices [m]: a number, or one for each axis. Negative numbers mirror the mesh, whose
            triangles stay counter-clockwise.
        placement: pose (4, 4) of the mesh's frame in the body's frame; None is the identity.
        color: (red, green, blue) or (red, green, blue, opacity), from 0 to 1; None is the default color of the picture.
    """

    vertices: Numbers | None = None
    triangles: Numbers | None = None
    file: str | None = None
    scale: Numbers = 1.0
    placement: Placement = None
    color: Numbers | None = None

    @classmethod
    def of_shape(cls, shape: Shape, *, placement: Any = None, color: Any = None) -> Mesh:
        """The surface of a bounded shape. `placement` is the pose of the shape's frame in the body's frame."""
        quads = shape.facets(-np.ones(3), np.ones(3)) @ shape.surface("mesh").rotation.T
        vertices, corner = np.unique(quads.reshape(-1, 3).round(12), axis=0, return_inverse=True)
        a, b, c, d = corner.reshape(-1, 4).T
        triangles = np.vstack([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
        flat = (triangles == np.roll(triangles, 1, axis=1)).any(axis=1)
        return cls(vertices=vertices, triangles=triangles[~flat], placement=placement, color=color)

    def surface(self) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (n, 3) [m] in the body's frame, and triangles (m, 3), turned outwards. Vertices that no triangle
        uses are left out.

        Raises:
            ModelError: the file cannot be read or holds no surface, or trimesh is not installed.
        """
        vertices, rows = self._given if self.file is None else read_mesh(self.file)
        g, scale = checks.pose(self.placement, "mesh: placement"), np.asarray(self.scale, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # _check_surface refuses numbers that overflow
            points = (vertices * scale) @ g[:3, :3].T + g[:3, 3]
        _check_surface(points, rows, "mesh" if self.file is None else f"mesh {os.fspath(self.file)!r}")
        return points, rows[:, ::-1] if np.prod(np.sign(np.broadcast_to(scale, 3))) < 0.0 else rows

    @cached_property
    def _given(self) -> tuple[np.ndarray, np.ndarray]:
        """The given vertices that triangles use, and triangles turned outwards."""
        return outward(np.asarray(self.vertices, dtype=np.float64), np.asarray(self.triangles, dtype=np.int64))

    def check(self, where: str) -> None:
        """Raise ModelError unless the mesh has either a file, or vertices and triangles, and its scale, placement and
        colour are valid."""
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
    """Raise ModelError, before reading, if a file would take too much memory."""
    where = f"mesh {name!r}"
    checks.require(S_ISREG(known.st_mode), where, "must be a file", name)
    size, rule = known.st_size, f"must hold at most {_MOST / 2**20:g} MiB, unpacked as well"
    if name.lower().endswith(_STREAMS):  # these formats do not state their unpacked size
        raise ModelError(f"{where}: must not be packed; unpack it (got {os.path.splitext(name)[1]!r})")
    if is_zipfile(name):
        with ZipFile(name) as archive:
            size = sum(item.file_size for item in archive.infolist())
    checks.require(size <= _MOST, where, rule, f"{size / 2**20:.0f} MiB")


def _check_surface(vertices: np.ndarray, triangles: np.ndarray, where: str) -> None:
    """Raise ModelError if vertices are too far away or all triangles have zero area."""
    near = np.abs(vertices) <= _FARTHEST  # False for NaN too
    if not near.all():
        raise checks.fail(f"{where}: vertices", f"must be within {_FARTHEST:g} m", vertices[~near.all(axis=1)][0])
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    edges = np.cross(b - a, c - a)
    if not edges.any():
        raise ModelError(f"{where}: must hold a triangle that is more than a point or a line (got {len(edges)} flat)")


@lru_cache(maxsize=64)
def _read(name: str, changed: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of a file. `changed`, the file's time of modification, is part of the cache's key."""
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
    return outward(vertices, triangles)


def outward(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The vertices (n, 3) that triangles use, and the triangles (m, 3) of closed parts turned outwards, read-only.

    Neighbours that are turned against each other are turned as most of their part. A closed part whose triangles are
    turned inwards is a cavity inside another part. Inside no other part it is turned back, with the parts inside it.
    """
    used, number = np.unique(triangles, return_inverse=True)
    vertices, triangles = vertices[used], number.reshape(-1, 3)
    if np.isfinite(vertices).all() and np.abs(vertices).max() <= _FARTHEST:  # others are refused later
        triangles = _agreeing(vertices, triangles)
        part = _parts(vertices, triangles)
        volumes = _volumes(vertices, triangles, part)
        inwards = [k for k in np.flatnonzero(volumes < 0.0).tolist() if _is_closed(vertices, triangles[part == k])]
        if inwards:
            turned = _inside_out(vertices, triangles, part, inwards)
            triangles = np.where(turned[part][:, None], triangles[:, ::-1], triangles)
    triangles = np.ascontiguousarray(triangles)
    vertices.setflags(write=False)
    triangles.setflags(write=False)
    return vertices, triangles


def _agreeing(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Triangles of which neighbours are turned alike, if that is possible.

    Each triangle has two sides. Those sides of two neighbours are connected that face the same way. A part has two sets
    of connected sides; a Möbius strip has one.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = _welded(vertices, triangles)[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    ahead, key = edges[:, 0] < edges[:, 1], edges.min(axis=1) * (edges.max() + 1) + edges.max(axis=1)
    order = np.argsort(key, kind="stable")
    _, first, count = np.unique(key[order], return_index=True, return_counts=True)
    a, b = (order[first[count == 2] + k] for k in (0, 1))
    against = ahead[a] == ahead[b]
    if not against.any():
        return triangles
    m, one, two = len(triangles), a // 3, b // 3
    rows, columns = np.concatenate([one, one + m]), np.concatenate([two + m * against, two + m * ~against])
    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(2 * m, 2 * m))
    front, back = connected_components(graph, directed=False)[1].reshape(2, m)
    fronts = np.bincount(front, minlength=2 * m)
    turned = (fronts[front] < fronts[back]) | ((fronts[front] == fronts[back]) & (front > back))
    return np.where(turned[:, None], triangles[:, ::-1], triangles)


def _inside_out(vertices: np.ndarray, triangles: np.ndarray, part: np.ndarray, inwards: list[int]) -> np.ndarray:
    """Whether each part is to be turned: those of `inwards` that lie in no other part, and the parts inside them."""
    count = int(part.max()) + 1
    boxes = np.array([(x.min(axis=0), x.max(axis=0)) for x in (vertices[triangles[part == k]].reshape(-1, 3)
                                                              for k in range(count))])  # fmt: skip
    one = np.array([vertices[triangles[np.argmax(part == k), 0]] for k in range(count)])  # a vertex of each part

    def inside(a: int, b: int) -> bool:
        around = (boxes[b, 0] <= boxes[a, 0]).all() and (boxes[b, 1] >= boxes[a, 1]).all()
        return a != b and bool(around) and abs(_winding(vertices[triangles[part == b]], one[a])) > 0.5

    turned = np.zeros(count, dtype=bool)
    for k in inwards:
        if not any(inside(k, other) for other in range(count)):
            turned[[k, *(other for other in range(count) if inside(other, k))]] = True
    return turned


def _winding(corners: np.ndarray, point: np.ndarray) -> float:
    """How often triangles (m, 3, 3) go around a point (3,)."""
    a, b, c = np.moveaxis(corners - point, 1, 0)
    x, y, z = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    dots = [np.einsum("mi,mi->m", p, q) for p, q in ((a, b), (b, c), (c, a))]
    over = np.einsum("mi,mi->m", a, np.cross(b, c))
    angles = np.arctan2(over, x * y * z + dots[0] * z + dots[1] * x + dots[2] * y)
    return float(angles.sum() / (2.0 * np.pi))


def _welded(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Triangles by numbers of places: vertices that are close have one number."""
    size = float(np.ptp(vertices, axis=0).max()) or 1.0
    cell = np.round((vertices - vertices.min(axis=0)) / (size * _WELD)).astype(np.int64)
    return np.unique(cell @ np.array([1, 2**21, 2**42]), return_inverse=True)[1].ravel()[triangles]


def _parts(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Number of the connected part of each triangle (m,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    corners = _welded(vertices, triangles)
    first, last = corners[:, [0, 0]].ravel(), corners[:, 1:].ravel()
    count = int(corners.max()) + 1
    graph = coo_array((np.ones(len(first)), (first, last)), shape=(count, count))
    found = connected_components(graph, directed=False)[1][corners[:, 0]]
    return np.unique(found, return_inverse=True)[1].ravel()


def _volumes(vertices: np.ndarray, triangles: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Volume inside each part [m³], negative if its triangles are turned inwards."""
    corners = vertices[triangles]
    corners = corners - corners.mean(axis=(0, 1))
    return np.bincount(part, np.einsum("mi,mi->m", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0)


def _edges(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each edge, the number of its triangles, and of those that pass it forwards less those that pass it back."""
    edges = _welded(vertices, triangles)[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    edges = edges[edges[:, 0] != edges[:, 1]]
    first, last = edges.min(axis=1), edges.max(axis=1)
    _, edge = np.unique(first * (last.max(initial=0) + 1) + last, return_inverse=True)
    return np.bincount(edge), np.bincount(edge, weights=np.where(edges[:, 0] < edges[:, 1], 1.0, -1.0))


def _is_closed(vertices: np.ndarray, triangles: np.ndarray) -> bool:
    """Whether each edge has as many triangles on one side as on the other."""
    return not _edges(vertices, triangles)[1].any()


def fault_of_surface(vertices: np.ndarray, triangles: np.ndarray) -> str:
    """The reason why triangles bound no volume; empty if they do: each edge has as many triangles on one side as on the
    other."""
    count, balance = _edges(vertices, triangles)
    is_open, is_turned = count % 2 == 1, (count % 2 == 0) & (balance != 0.0)
    if is_open.any():
        return (f"{_OPEN}: {is_open.sum()} of its {len(count)} edges have a triangle on one side only; close its "
                "holes, or give a thickness for a shell")  # fmt: skip
    if is_turned.any():
        return (f"{_TURNED}: at {is_turned.sum()} of its {len(count)} edges "
                "neighbours are turned against each other")  # fmt: skip
    size = float(np.ptp(vertices, axis=0).max())
    volume = abs(float(_volumes(vertices, triangles, np.zeros(len(triangles), dtype=int))[0]))
    if volume <= 1e-9 * size**3:
        return f"must enclose a volume (got {volume:.3g} m³)"
    return ""


def kind_of_fault(fault: str) -> str:
    """A few words about why a mesh bounds no volume, by its `fault_of_surface`."""
    if fault.startswith(_OPEN):
        return "open"
    return "not all triangles can be turned outwards" if fault.startswith(_TURNED) else "no volume inside"


def solid_moments(vertices: np.ndarray, triangles: np.ndarray, where: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume V [m³], centroid (3,) [m] and second moments ∫ x xᵀ dV (3, 3) [m⁵] of the solid that triangles bound.

    They are the sums over the tetrahedra between the mean of the vertices and each triangle. With det = 6 V of one with
    corners 0, a, b and c,

        ∫ x = V (a + b + c)/4,   ∫ x xᵀ = V/20 (a aᵀ + b bᵀ + c cᵀ + (a + b + c)(a + b + c)ᵀ)

    Raises:
        ModelError: the triangles bound no volume.
    """
    fault = fault_of_surface(vertices, triangles)
    if fault:
        raise ModelError(f"{where}: {fault}")
    origin = vertices.mean(axis=0)
    corners = (vertices - origin)[triangles]
    V = np.linalg.det(corners) / 6.0
    total = corners.sum(axis=1)
    first = np.einsum("t,ti->i", V, total) / 4.0
    second = np.einsum("t,tai,taj->ij", V, corners, corners) + np.einsum("t,ti,tj->ij", V, total, total)
    volume = float(V.sum())
    moved = np.outer(origin, first)
    return volume, origin + first / volume, second / 20.0 + moved + moved.T + volume * np.outer(origin, origin)


def check_balls(rows: Any, where: str) -> np.ndarray:
    """Balls as an array (n, 4) [m]. Raises ModelError unless they are finite rows (x, y, z, radius) with radii >= 0."""
    balls = checks.array(rows, (-1, 4), where, "must be rows (x, y, z, radius)")
    checks.require(bool((balls[:, 3] >= 0).all()), where, "must have radii >= 0", rows)
    return balls


@final
@formatting.in_one_line
@dataclass(frozen=True, eq=False)
class FittedBalls:
    """Balls that fill a mesh.

    Args:
        balls: rows (x, y, z, radius), shape (n, 4) [m], for `RigidBody(balls=)`.
        gap: largest distance [m] from a point of the surface to the nearest ball. No ball reaches out of the mesh.
        is_hull: whether the mesh is open, or its triangles cannot all be turned outwards, so that its convex hull
            replaces it.
    """

    balls: np.ndarray
    gap: float
    is_hull: bool = False


def fit_balls(vertices: ArrayLike, triangles: ArrayLike, count: int = 24) -> FittedBalls:
    """Balls inside a mesh, selected to be close to all of its surface.

    A mesh with holes, or whose triangles cannot all be turned outwards, is replaced by its convex hull.

    Args:
        vertices: shape (n, 3) [m].
        triangles: indices of three vertices each, shape (m, 3).
        count: largest number of balls.
    Returns:
        FittedBalls.
    Raises:
        ModelError: the arrays are no mesh, or the mesh is flat.
    Accuracy: the gap is the largest distance at 2000 points of the surface.
    """
    points = checks.array(vertices, (-1, 3), "fit_balls: vertices", "must be rows of three finite numbers")
    rows = checks.array(triangles, (-1, 3), "fit_balls: triangles", "must be rows of three numbers of vertices")
    inside = bool(len(rows)) and bool(((rows >= 0) & (rows < len(points)) & (rows == np.floor(rows))).all())
    checks.require(inside, "fit_balls: triangles", f"must number vertices from 0 to {len(points) - 1}", rows[:1])
    checks.integer(count, "fit_balls: count", least=1, most=10_000)
    points, rows = outward(points, rows.astype(np.int64))
    corners = points[rows]
    size = float(np.ptp(corners, axis=(0, 1)).max())
    rule = f"must be apart, by {_SMALLEST:g} m to {1.0 / _SMALLEST:g} m"
    checks.require(_SMALLEST <= size <= 1.0 / _SMALLEST, "fit_balls: vertices", rule, size)
    is_hull = not _is_closed(points, rows)
    if is_hull:
        corners = convex_hull(points, "fit_balls: vertices")
    x, n = surface_samples(corners)
    centre, radius = inner_balls(x, n, corners)
    widest = _widest_ball(corners)
    if widest is not None:
        centre, radius = np.vstack([centre, widest[0]]), np.append(radius, widest[1])
    chosen = _chosen(x, centre, radius, count)
    found = centre[chosen]
    exact = np.array([distance_to(corners, c) for c in found])
    beyond = np.linalg.norm(x[:, None] - found, axis=-1) - exact
    return FittedBalls(np.column_stack([found, exact]), float(max(beyond.min(axis=1).max(), 0.0)), is_hull)


def convex_hull(points: np.ndarray, where: str) -> np.ndarray:
    """Triangles of the convex hull of points (n, 3), counter-clockwise seen from outside, shape (m, 3, 3).

    Raises:
        ModelError: the points lie in one plane.
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except QhullError:
        raise ModelError(f"{where}: must span a volume (all lie in one plane)") from None
    corners = points[hull.simplices]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("mi,mi->m", normal, hull.equations[:, :3]) < 0.0
    corners[inward] = corners[inward, ::-1]
    return corners


def surface_samples(corners: np.ndarray, count: int = _SAMPLES) -> tuple[np.ndarray, np.ndarray]:
    """Points evenly distributed on triangles (m, 3, 3), shape (count, 3), and the outward normals there, shape (count,
    3)."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normal, axis=1)
    corners, normal, area = corners[area > 0.0], normal[area > 0.0], area[area > 0.0]
    total = np.cumsum(area) / area.sum()
    k = np.arange(count)
    which = np.searchsorted(total, (k + 0.5) / count).clip(max=len(area) - 1)
    # An evenly spread sequence of pairs.
    a, b = (0.5 + k * 0.7548776662466927) % 1.0, (0.5 + k * 0.5698402909980532) % 1.0
    a, b = np.where(a + b > 1.0, 1.0 - a, a), np.where(a + b > 1.0, 1.0 - b, b)
    first, second, third = np.moveaxis(corners[which], 1, 0)
    x = first + a[:, None] * (second - first) + b[:, None] * (third - first)
    return x, (normal / area[:, None])[which]


def inner_balls(x: np.ndarray, n: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centres and radii of the balls (1) at samples of the surface of triangles (m, 3, 3).

    A ball that touches a sample nearby, or none, may be in a thin wall, whose other side it reaches through between
    samples. It is at most half as large as the wall is thick.
    """
    from scipy.spatial import KDTree

    tree, start = KDTree(x), np.linspace(0, len(x) - 1, min(len(x), _CANDIDATES)).astype(int)
    p, normal = x[start], n[start]
    radius = np.full(len(p), float(np.linalg.norm(np.ptp(x, axis=0))))
    reached = np.zeros(len(p))  # square of the distance of the sample that a ball touches; 0 if it touches none
    for _ in range(_SHRINKS):
        centre = p - radius[:, None] * normal
        distance, nearest = tree.query(centre)
        away = p - x[nearest]
        ahead = np.einsum("ni,ni->n", away, normal)
        shrinks = (distance < radius * (1.0 - _NEAR)) & (nearest != start) & (ahead > 0.0)
        if not shrinks.any():
            break
        square = np.einsum("ni,ni->n", away, away)
        radius = np.where(shrinks, square / (2.0 * np.where(shrinks, ahead, 1.0)), radius)
        reached = np.where(shrinks, square, reached)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    near = reached < _NEARBY**2 * 0.5 * float(np.linalg.norm(cross, axis=1).sum()) / len(x)
    radius[near] = np.minimum(radius[near], 0.5 * _thicknesses(corners, p[near], normal[near]))
    return p - radius[:, None] * normal, radius


def _thicknesses(corners: np.ndarray, places: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Distances [m] from places (n, 3) on the surface of triangles (m, 3, 3), with outward normals (n, 3), through the
    body to the surface behind them, (n,); inf where there is none."""
    least, vertices = _NEAR * float(np.ptp(corners, axis=(0, 1)).max()), np.moveaxis(corners, 1, 0).copy()
    found = np.full(len(places), np.inf)
    for k, (p, n) in enumerate(zip(places, normals)):
        across = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        across /= np.linalg.norm(across)
        x, y, z = (v @ across - p @ across for v in vertices)
        lowest, highest = np.minimum(np.minimum(x, y), z), np.maximum(np.maximum(x, y), z)
        near = corners[(lowest <= 0.0) & (highest >= 0.0)] - p
        a, b, c = np.moveaxis(near @ np.column_stack([across, np.cross(n, across), -n]), 1, 0)
        shares = np.stack([v[:, 0] * w[:, 1] - v[:, 1] * w[:, 0] for v, w in ((b, c), (c, a), (a, b))])
        area = shares.sum(axis=0)
        met = ((shares >= 0.0).all(axis=0) | (shares <= 0.0).all(axis=0)) & (area != 0.0)
        depth = (shares * np.stack([a[:, 2], b[:, 2], c[:, 2]])).sum(axis=0)[met] / area[met]
        found[k] = depth[depth > least].min(initial=np.inf)
    return found


def _widest_ball(corners: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Centre of the largest ball inside the convex hull of closed triangles (m, 3, 3), and its distance from them [m];
    None if the centre is outside the triangles."""
    from scipy.optimize import linprog
    from scipy.spatial import ConvexHull, QhullError

    try:
        planes = ConvexHull(corners.reshape(-1, 3)).equations
    except QhullError:
        return None  # of a flat mesh
    found = linprog([0, 0, 0, -1], np.insert(planes[:, :3], 3, 1.0, axis=1), -planes[:, 3], bounds=[(None, None)] * 4)
    a, b, c = np.moveaxis(corners - found.x[:3], 1, 0)
    x, y, z = (np.linalg.norm(v, axis=1) for v in (a, b, c))
    volume = np.einsum("mi,mi->m", a, np.cross(b, c))
    flat = x * y * z + (a * b).sum(axis=1) * z + (b * c).sum(axis=1) * x + (c * a).sum(axis=1) * y
    turns = np.arctan2(volume, flat).sum() / (2.0 * np.pi)  # the solid angle of the triangles over 4 π
    return (found.x[:3], distance_to(corners, found.x[:3])) if turns > 0.5 else None


def distance_to(corners: np.ndarray, point: np.ndarray) -> float:
    """Distance [m] from a point to the nearest of the triangles `corners` (m, 3, 3)."""
    edge, away = np.roll(corners, -1, axis=1) - corners, point - corners
    along = np.einsum("mki,mki->mk", away, edge) / np.maximum(np.einsum("mki,mki->mk", edge, edge), 1e-300)
    to_edge = np.linalg.norm(away - along.clip(0.0, 1.0)[..., None] * edge, axis=-1).min()
    normal = np.cross(edge[:, 0], edge[:, 1])
    size = np.linalg.norm(normal, axis=1)
    over = (np.einsum("mki,mi->mk", np.cross(edge, away), normal) >= 0.0).all(axis=1) & (size > 0.0)
    height = np.abs(np.einsum("mi,mi->m", away[over, 0], normal[over])) / size[over]
    return float(min(to_edge, height.min(initial=np.inf)))


def _chosen(x: np.ndarray, centre: np.ndarray, radius: np.ndarray, count: int) -> list[int]:
    """Indices of the selected balls. Each step selects the ball that brings the union closest to the samples."""
    beyond = np.linalg.norm(x[None] - centre[:, None], axis=-1) - radius[:, None]
    beyond = np.maximum(beyond, 0.0)
    left, chosen = np.full(len(x), np.inf), []
    for _ in range(min(count, len(centre))):
        best = int(np.argmin((np.minimum(left, beyond) ** 2).sum(axis=1)))
        if best in chosen:
            break
        chosen.append(best)
        left = np.minimum(left, beyond[best])
    return chosen
