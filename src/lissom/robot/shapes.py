"""Obstacle shapes, each with its frame at the centre, their drawn surfaces, and how changed sizes move a surface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, final

import numpy as np

from lissom.robot import checks
from lissom.robot.fields import Numbers, Placement

_LONGEST = 1e4  # ratio of the half-axes of an ellipsoid
AROUND = 48  # vertices of a ring
_TURN = np.linspace(-np.pi / 2, np.pi / 2, 17)  # latitudes of the drawn rings of a sphere [rad]
_E_Z, _ACROSS = np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])


class ShapeKind(Enum):
    """Shapes whose signed distances kernels compute. Their axes are along z."""

    PLANE = 0
    SPHERE = 1
    BOX = 2
    CYLINDER = 3
    HOLLOW = 4
    CAPSULE = 5
    CONE = 6
    TORUS = 7
    ELLIPSOID = 8
    HEIGHTS = 9
    GRID = 10

    @property
    def is_rare(self) -> bool:
        """Whether kernels know the shape only by an option (passes/features)."""
        return self.value >= ShapeKind.TORUS.value


class Surface(NamedTuple):
    """A shape as kernels read it: kind, sizes (3,) [m], and the rotation (3, 3) from the kernels' frame to the shape's
    frame."""

    kind: ShapeKind
    size: tuple[float, float, float]
    rotation: np.ndarray


def reach_of(kind: ShapeKind, size: tuple[float, float, float]) -> float | None:
    """Radius of a sphere about the frame of a shape that contains the shape [m]; None if none is known."""
    if kind is ShapeKind.CYLINDER and size[1] < 0.0:
        return None
    known = {
        ShapeKind.SPHERE: size[0],
        ShapeKind.BOX: float(np.linalg.norm(size)),
        ShapeKind.CYLINDER: float(np.hypot(size[0], size[1])),
        ShapeKind.CAPSULE: size[0] + size[1],
        ShapeKind.CONE: float(np.hypot(size[0], size[1])),
        ShapeKind.TORUS: size[0] + size[1],
        ShapeKind.ELLIPSOID: max(size),
    }
    return known.get(kind)


class Shape(ABC):
    """A region that repels bodies by contact.

    Law: the signed distance is positive outside. Its gradient has unit length wherever it is differentiable.
    """

    @abstractmethod
    def surface(self, where: str) -> Surface:
        """The shape as kernels read it.

        Raises:
            ModelError: a dimension or a direction of the shape is invalid.
        """

    def check(self, where: str) -> None:
        """Raise ModelError if a field of the shape is invalid. Files of meshes are read later, when a contact needs
        them."""
        self.surface(where)

    @abstractmethod
    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Quadrilaterals to draw, shape (n, 4, 3) [m], in the kernels' frame, where the axis is z.

        An unbounded shape is cut off by the box with corners `low` (3,) and `high` (3,) [m] of that frame.
        """


@final
@dataclass(frozen=True)
class PlacedShape:
    """A shape at a place on a body.

    Args:
        shape: the shape.
        placement: pose (4, 4) of its frame in the frame of the body; None is the identity.
    """

    shape: Shape
    placement: Placement = None

    @property
    def pose(self) -> np.ndarray:
        """Pose (4, 4) of the frame of the shape in the frame of the body."""
        return checks.pose(self.placement, "placement")

    def check(self, where: str) -> None:
        """Raise ModelError if the shape or its place is invalid."""
        checks.require(isinstance(self.shape, Shape), f"{where}: shape", "must be a Shape", self.shape)
        self.shape.check(f"{where} > shape")
        checks.pose(self.placement, f"{where}: placement")


def is_bounded(shape: Shape) -> bool:
    """Whether a shape has a finite size: it is no plane, hole, infinite cylinder or height field."""
    kind, size, _ = shape.surface("shape")
    unbounded = kind in (ShapeKind.PLANE, ShapeKind.HOLLOW, ShapeKind.HEIGHTS)
    return not unbounded and not (kind is ShapeKind.CYLINDER and size[1] < 0.0)


def _along_z(axis: Any, where: str) -> np.ndarray:
    """A rotation matrix (3, 3) whose third column is the axis."""
    z = checks.direction(axis, where)
    x = np.eye(3)[np.argmin(np.abs(z))]
    x = x - (x @ z) * z
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


@final
@dataclass(frozen=True)
class ShapePlane(Shape):
    """Half-space below a plane through the frame's origin.

    Args:
        normal: vector (3,) towards the free side.
    """

    normal: Numbers = (0.0, 0.0, 1.0)

    def surface(self, where: str) -> Surface:
        return Surface(ShapeKind.PLANE, (0.0, 0.0, 0.0), _along_z(self.normal, f"{where}: normal"))

    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        (x, y, _), (X, Y, _) = low, high
        return np.array([[[x, y, 0.0], [X, y, 0.0], [X, Y, 0.0], [x, Y, 0.0]]])


@final
@dataclass(frozen=True)
class ShapeSphere(Shape):
    """Solid sphere.

    Args:
        radius: [m].
    """

    radius: float

    def surface(self, where: str) -> Surface:
        return Surface(ShapeKind.SPHERE, (checks.number(self.radius, f"{where}: radius", above=0.0), 0, 0), np.eye(3))

    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return revolved(self.radius * np.sin(_TURN), self.radius * np.cos(_TURN))


@final
@dataclass(frozen=True)
class ShapeBox(Shape):
    """Solid box.

    Args:
        size_x, size_y, size_z: full sizes [m].
    """

    size_x: float
    size_y: float
    size_z: float

    def surface(self, where: str) -> Surface:
        names = ("size_x", "size_y", "size_z")
        x, y, z = (0.5 * checks.number(getattr(self, name), f"{where}: {name}", above=0.0) for name in names)
        return Surface(ShapeKind.BOX, (x, y, z), np.eye(3))

    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return box_faces(0.5 * np.array([self.size_x, self.size_y, self.size_z]))


@final
@dataclass(frozen=True)
class ShapeCylinder(Shape):
    """Solid cylinder, or the wall around a cylindrical hole.

    Args:
        radius: radius [m].
        length: length [m]; None is infinite.
        axis: direction of the axis, shape (3,).
        inside: False: bodies stay outside the cylinder. True: bodies stay inside a hole, which is infinitely long.
    """

    radius: float
    length: float | None = None
    axis: Numbers = (1.0, 0.0, 0.0)
    inside: bool = False

    def surface(self, where: str) -> Surface:
        radius = checks.number(self.radius, f"{where}: radius", above=0.0)
        half = -1.0 if self.length is None else 0.5 * checks.number(self.length, f"{where}: length", above=0.0)
        checks.require(not (self.inside and half > 0.0), f"{where}: length", "must be None for a hole", self.length)
        kind = ShapeKind.HOLLOW if self.inside else ShapeKind.CYLINDER
        return Surface(kind, (radius, half, 0.0), _along_z(self.axis, f"{where}: axis"))

    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        if self.length is None:
            return revolved(np.linspace(low[2], high[2], 9), np.full(9, self.radius))
        ends = 0.5 * self.length * np.array([-1.0, -1.0, 1.0, 1.0])
        return revolved(ends, self.radius * np.array([0.0, 1.0, 1.0, 0.0]))


@final
@dataclass(frozen=True)
class ShapeCapsule(Shape):
    """Cylinder with half-spheres at its ends.

    Args:
        radius: radius [m].
        length: length of the cylinder without the half-spheres [m].
        axis: direction of the axis, shape (3,).
    """

    radius: float
    length: float
    axis: Numbers = (1.0, 0.0, 0.0)

    def surface(self, where: str) -> Surface:
        radius = checks.number(self.radius, f"{where}: radius", above=0.0)
        half = 0.5 * checks.number(self.length, f"{where}: length", above=0.0)
        return Surface(ShapeKind.CAPSULE, (radius, half, 0.0), _along_z(self.axis, f"{where}: axis"))

    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        ends = 0.5 * self.length * np.where(_TURN < 0, -1.0, 1.0)
        return revolved(self.radius * np.sin(_TURN) + ends, self.radius * np.cos(_TURN))


@final
@dataclass(frozen=True)
class ShapeCone(Shape):
    """Solid cone with a flat base.

    Args:
        radius: radius of the base [m].
        length: distance from the base to the tip [m]. The frame is halfway between them.
        axis: direction from the base to the tip, shape (3,).
    """

    radius: float
    length: float
    axis: Numbers = (1.0, 0.0, 0.0)

    def surface(self, where: str) -> Surface:
        radius = checks.number(self.radius, f"{where}: radius", above=0.0)
        half = 0.5 * checks.number(self.length, f"{where}: length", above=0.0)
        return Surface(ShapeKind.CONE, (radius, half, 0.0), _along_z(self.axis, f"{where}: axis"))

    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        ends = 0.5 * self.length * np.array([-1.0, -1.0, 1.0])
        return revolved(ends, self.radius * np.array([0.0, 1.0, 0.0]))


@final
@dataclass(frozen=True)
class ShapeEllipsoid(Shape):
    """Solid ellipsoid.

    Args:
        radius_x, radius_y, radius_z: half-axes along x, y and z [m].
    """

    radius_x: float
    radius_y: float
    radius_z: float

    def surface(self, where: str) -> Surface:
        names = ("radius_x", "radius_y", "radius_z")
        x, y, z = (checks.number(getattr(self, name), f"{where}: {name}", above=0.0) for name in names)
        rule = f"must be at most {_LONGEST:g} times as long as the shortest"
        checks.require(max(x, y, z) <= _LONGEST * min(x, y, z), f"{where}: half-axes", rule, (x, y, z))
        return Surface(ShapeKind.ELLIPSOID, (x, y, z), np.eye(3))

    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return revolved(np.sin(_TURN), np.cos(_TURN)) * np.array([self.radius_x, self.radius_y, self.radius_z])


@final
@dataclass(frozen=True)
class ShapeTorus(Shape):
    """Solid torus: a ring with a round section.

    Args:
        radius: radius of the circle at its middle [m].
        tube: radius of the section [m], less than `radius`.
        axis: direction of the axis, shape (3,).
    """

    radius: float
    tube: float
    axis: Numbers = (1.0, 0.0, 0.0)

    def surface(self, where: str) -> Surface:
        radius = checks.number(self.radius, f"{where}: radius", above=0.0)
        tube = checks.number(self.tube, f"{where}: tube", above=0.0)
        checks.require(tube < radius, f"{where}: tube", f"must be less than the radius {radius:g}", tube)
        return Surface(ShapeKind.TORUS, (radius, tube, 0.0), _along_z(self.axis, f"{where}: axis"))

    def facets(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        turn = 2 * np.pi * np.arange(25) / 24
        return revolved(self.tube * np.sin(turn), self.radius + self.tube * np.cos(turn))


def _between(rings: np.ndarray) -> np.ndarray:
    """Quadrilaterals (n, m, 4, 3) between consecutive rings of vertices (n, rings, corners, 3)."""
    ahead = np.roll(rings, -1, axis=2)
    quads = np.stack([rings[:, :-1], ahead[:, :-1], ahead[:, 1:], rings[:, 1:]], axis=3)
    return quads.reshape(len(rings), -1, 4, 3)


def revolved(z: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Quadrilaterals (m, 4, 3) of a surface of revolution about z, whose profile has heights `z` and radii `radius`
    [m]."""
    angle = 2 * np.pi * np.arange(AROUND) / AROUND
    rings = np.stack([radius[:, None] * np.cos(angle), radius[:, None] * np.sin(angle), 0 * angle + z[:, None]], axis=2)
    return _between(rings[None])[0]


def box_faces(half: np.ndarray) -> np.ndarray:
    """The six faces of a box with half-sizes `half` (3,) around the origin, shape (6, 4, 3)."""
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=np.float64)
    faces = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            corners = np.insert(square[:: int(sign)], axis, sign, axis=1)
            faces.append(corners if axis != 1 else corners[::-1])
    return np.array(faces) * half


class Nearest(NamedTuple):
    """A point y (..., 3) [m] in the kernels' frame of a shape, with the gradient n (..., 3) of the distance there, the
    sizes of the shape (..., 3) [m], and the increments of the sizes."""

    size: np.ndarray
    change: np.ndarray
    y: np.ndarray
    n: np.ndarray

    @property
    def by_first(self) -> np.ndarray:
        """Increment of the first size, (..., 1)."""
        return self.change[..., :1]

    @property
    def by_second(self) -> np.ndarray:
        """Increment of the second size, (..., 1)."""
        return self.change[..., 1:2]

    @property
    def side(self) -> np.ndarray:
        """Sign of each component of y, (..., 3)."""
        return np.where(self.y < 0.0, -1.0, 1.0)

    @property
    def around(self) -> np.ndarray:
        """Unit vector from the axis z to y; zero on the axis."""
        flat = self.y * _ACROSS
        return flat / np.maximum(np.linalg.norm(flat, axis=-1, keepdims=True), 1e-300)


class SizeEffect(NamedTuple):
    """How changed sizes of a kind of shape move its surface.

    Fields:
        shift: the displacement (..., 3) of the point of the surface nearest to y.
        slopes: for surfaces that also turn: of complex sizes and y, and of n, where its results hold, and the imaginary
            parts of the distance and of its gradient, (..., 1), (..., 1) and (..., 3). None for other surfaces.
    """

    shift: Callable[[Nearest], np.ndarray]
    slopes: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Any, np.ndarray, np.ndarray]] | None = None


def _stays(x: Nearest) -> np.ndarray:
    return np.zeros_like(x.y)


def _cone_shift(x: Nearest) -> np.ndarray:
    tip = x.by_second * _E_Z
    return np.where(_along_side(x.size, x.y)[1] > 1.0, tip, x.by_first * x.around - tip)


def _along_side(size: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance of a point from the rim of a cone outwards, and its place along the side, 0 at the rim, 1 at the tip."""
    radius, half = size[..., :1], size[..., 1:2]
    outside = np.linalg.norm(y * _ACROSS, axis=-1, keepdims=True) - radius
    square = np.maximum(radius**2 + 4.0 * half**2, 1e-300)
    return outside, (2.0 * half * (y[..., 2:] + half) - radius * outside) / square


def _side_of_cone(size: np.ndarray, y: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`slopes` of a cone, which hold where the nearest point is on its side."""
    radius, half = size[..., :1], size[..., 1:2]
    slant = np.sqrt(radius**2 + 4.0 * half**2)
    out, up = 2.0 * half / slant, radius / slant
    flat = y * _ACROSS
    axis = ~np.real(flat).any(axis=-1, keepdims=True)
    far = np.sqrt(np.where(axis, 1.0, (flat * flat).sum(axis=-1, keepdims=True)))
    round_it = np.where(axis, 0.0, flat / far)
    beyond = out * (np.where(axis, 0.0, far) - radius) + up * (y[..., 2:] + half)
    outside, along = _along_side(np.real(size), np.real(y))
    rim = (outside > 0.0) & (along < 0.0)
    on_side = ~rim & (along <= 1.0) & (n[..., 2:] > -1.0 + 1e-9)
    return on_side, np.imag(beyond), np.imag(out * round_it + up * _E_Z)


def _ellipsoid(size: np.ndarray, y: np.ndarray, n: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """`slopes` of an ellipsoid, by the complex step through (1) and (2) of forces.rare_shapes."""
    sign = np.where(np.real(y) < 0.0, -1.0, 1.0)
    y, least = y * sign, np.take_along_axis(size, np.argmin(np.real(size), axis=-1, keepdims=True), axis=-1)
    above = (size - least) * (size + least)
    s = np.max(np.real(size * y - above), axis=-1, keepdims=True).clip(min=1e-300)
    for k in range(60):
        of = np.real if k < 57 else np.asarray  # the last steps give the imaginary part
        part = of(size) * of(y) / (s + of(above))
        slope = -2.0 * (part * part / (s + of(above))).sum(axis=-1, keepdims=True)
        s = s - ((part * part).sum(axis=-1, keepdims=True) - 1.0) / slope
    g = y / (s + above)
    length = np.sqrt((g * g).sum(axis=-1, keepdims=True))
    return True, np.imag((s - least * least) * length), np.imag(sign * g / length)


SIZE_EFFECTS = {
    ShapeKind.PLANE: SizeEffect(_stays),  # has no size
    ShapeKind.SPHERE: SizeEffect(lambda x: x.by_first * x.n),
    ShapeKind.BOX: SizeEffect(lambda x: x.side * x.change),
    ShapeKind.CYLINDER: SizeEffect(lambda x: x.by_first * x.around + x.side[..., 2:] * x.by_second * _E_Z),
    ShapeKind.HOLLOW: SizeEffect(lambda x: x.by_first * x.around),
    ShapeKind.CAPSULE: SizeEffect(lambda x: x.by_first * x.n + x.side[..., 2:] * x.by_second * _E_Z),
    ShapeKind.CONE: SizeEffect(_cone_shift, _side_of_cone),
    ShapeKind.TORUS: SizeEffect(lambda x: x.by_first * x.around + x.by_second * x.n),
    ShapeKind.ELLIPSOID: SizeEffect(_stays, _ellipsoid),
    ShapeKind.HEIGHTS: SizeEffect(_stays),  # gradients refuse sizes of sampled shapes
    ShapeKind.GRID: SizeEffect(_stays),
}
