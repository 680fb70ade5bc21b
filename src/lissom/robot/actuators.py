"""Actuators of a robot: tendons, chambers, motors, wrenches, pressures on deformable bodies, and user-defined
actuators. Each actuator has one or more inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.fields import (
    LINK_OR_WORLD,
    ActuatorName,
    FunctionOfS,
    JointName,
    LinkName,
    Numbers,
    Place,
    Placement,
)
from lissom.robot.functions import Tabulated, derivative, profile
from lissom.robot.shapes import Shape, ShapeCylinder, ShapeKind, ShapeSphere
from lissom.robot.traced_functions import TracedFunction


def offset_function(value: Any, where: str) -> Callable[[float], np.ndarray]:
    """A path in the cross-section as a function of s that returns (y, z) [m]. `value` is a constant pair (y, z), rows
    (s, y, z), or a function of s."""
    path = _offset_path(value, where)
    if callable(path):
        return lambda s: checks.call(path, s, (2,), where)
    return lambda s: path


def offset_slope(value: Any, where: str) -> Callable[[float], np.ndarray]:
    """Derivative of a path in the cross-section with respect to s, for s in (0, 1): a function that returns (y', z')
    [m]."""
    path = _offset_path(value, where)
    if isinstance(path, Tabulated):
        return lambda s: checks.call(path.slope, s, (2,), where)
    if callable(path):
        return lambda s: derivative(path, s, (2,), where)
    return lambda s: np.zeros(2)


def _offset_path(value: Any, where: str) -> Any:
    """A path in the cross-section as a function of s, or as an array (2,) if it is constant."""
    if callable(value):
        return value
    rule = "must be (y, z), rows (s, y, z) or a function of s"
    listed = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim > 0)
    if listed and len(value) and isinstance(value[0], Sequence | np.ndarray):
        rows = checks.array(value, (-1, 3), where, rule)
        try:
            return Tabulated(rows[:, 0], rows[:, 1:], "cubic" if len(rows) >= 4 else "linear")
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None
    return checks.array(value, (2,), where, rule)


@final
@dataclass(frozen=True)
class PathRod:
    """A part of a path that runs along a rod.

    Args:
        link: name of a link whose body is a Rod.
        offset: position (y, z) [m] of the path in the cross-section: a constant pair, rows (s, y, z), or a function of
            s. It may lie outside the section.
        start, stop: abscissae s where the path begins and ends, 0 at the base and 1 at the tip. With start > stop the
            path runs towards the base.
    """

    link: LinkName
    offset: FunctionOfS
    start: float = 0.0
    stop: float = 1.0


@final
@dataclass(frozen=True)
class PathPoint:
    """A point through which a path passes without friction.

    Args:
        link: name of a link; None is the world.
        position: position in the frame of the link at s, shape (3,) [m].
        s: abscissa on a rod (0 to 1), or a place on a deformable body (see DeformableBody).
    """

    link: Annotated[str | None, LINK_OR_WORLD, "s", "position"]
    position: Numbers = (0.0, 0.0, 0.0)
    s: Place = 1.0


@final
@dataclass(frozen=True, eq=False)
class PathBody:
    """A part of a path that runs without friction along material points of a deformable body.

    Args:
        link: name of a link whose body is a DeformableBody.
        points: material points (m, 3) [m] of the undeformed shape, in the order of the path, joined by straight lines;
            or a function of a number from 0 to 1 that returns a material point (3,).
        gauss_points: number of Gauss points for the length of each line, or of the function. The path follows the
            material between the points. With None the path runs straight from point to point, as a cable does through
            eyelets.
    """

    link: LinkName
    points: Numbers | Callable[[float], Any]
    gauss_points: int | None = 8

    def check(self, where: str) -> None:
        """Raise ModelError unless `points` are at least two distinct points (x, y, z), or a function that returns them,
        and `gauss_points` is a number from 1 to 1000."""
        if self.gauss_points is not None:
            checks.integer(self.gauss_points, f"{where}: gauss_points", least=1, most=1000)
        if callable(self.points):
            rule = "must be a number where points is a function"
            checks.require(self.gauss_points is not None, f"{where}: gauss_points", rule, self.gauss_points)
            for at in (0.0, 0.5, 1.0):
                checks.call(self.points, at, (3,), f"{where}: points")
            return
        points = checks.array(self.points, (-1, 3), f"{where}: points", "must be rows (x, y, z), or a function")
        rule = "must hold two points or more"
        checks.require(len(points) > 1, f"{where}: points", rule, len(points))
        apart = np.linalg.norm(np.diff(points, axis=0), axis=1)
        checks.require(bool((apart > 0.0).all()), f"{where}: points", "those next to each other must differ", points)

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The material points (3,) at which the path begins and ends."""
        if callable(self.points):
            return np.asarray(self.points(0.0), dtype=np.float64), np.asarray(self.points(1.0), dtype=np.float64)
        rows = np.asarray(self.points, dtype=np.float64)
        return rows[0], rows[-1]


@final
@dataclass(frozen=True)
class PathWrap:
    """A sphere or a cylinder round which a path runs without friction, between the ends of the items before and after
    it. The path is the shortest one outside the shape. It is straight while it does not touch, and while one of these
    ends lies inside the shape.

    Args:
        link: name of the link that carries the shape; None is the world.
        shape: ShapeSphere, or an infinitely long ShapeCylinder.
        s: abscissa on a rod, or a place on a deformable body.
        placement: pose (4, 4) of the shape's frame in the frame of the link at s, or in the world; None is the
            identity.
        side: a point (3,) in the shape's frame [m]. The path passes the shape on the side of this point, also where the
            straight line would pass on the other side. None is the shortest path.
    """

    link: Annotated[str | None, LINK_OR_WORLD, "s", "placement"]
    shape: Shape
    s: Place = 1.0
    placement: Placement = None
    side: Numbers = None

    def check(self, where: str) -> None:
        """Raise ModelError unless the shape is a sphere or an infinite cylinder with a valid place, placement and
        side."""
        checks.place(self.s, f"{where}: s")
        checks.pose(self.placement, f"{where}: placement")
        rule = "must be a ShapeSphere or an infinitely long ShapeCylinder"
        checks.require(isinstance(self.shape, ShapeSphere | ShapeCylinder), f"{where}: shape", rule, self.shape)
        surface = self.shape.surface(f"{where} > shape")
        round_it = surface.kind is ShapeKind.SPHERE or (surface.kind is ShapeKind.CYLINDER and surface.size[1] < 0.0)
        checks.require(round_it, f"{where}: shape", rule, self.shape)
        if self.side is not None:
            side = checks.array(self.side, (3,), f"{where}: side", "must be a finite 3-vector")
            across = np.linalg.norm(surface.rotation.T[: 3 if self.is_sphere else 2] @ side)
            checks.require(
                bool(across > 0.0), f"{where}: side", "must not lie on the axis, or in the centre", self.side
            )

    @property
    def is_sphere(self) -> bool:
        """Whether the shape is a sphere."""
        return isinstance(self.shape, ShapeSphere)

    def own_side(self) -> np.ndarray | None:
        """`side` in the frame in which the axis is z, shape (3,)."""
        return None if self.side is None else self.shape.surface("shape").rotation.T @ np.asarray(self.side, float)

    def course(self, a: np.ndarray, b: np.ndarray, count: int) -> tuple[float, np.ndarray]:
        """The path from a to b, both (3,) in the frame in which the axis is z.

        Returns:
            Its length [m], and `count` points (count, 3) on the shape; they lie on the straight line if the path does
            not touch.
        Source: forces/wrapping (1), (2).
        """
        r, side = self.shape.surface("shape").size[0], self.own_side()
        only = np.ones(3) if self.is_sphere else np.array([1.0, 1.0, 0.0])
        u, w = a * only, b * only
        at = np.clip(-(u @ (w - u)) / max((w - u) @ (w - u), 1e-300), 0.0, 1.0)
        straight = a + np.linspace(0.0, 1.0, count)[:, None] * (b - a)
        near = u + at * (w - u)
        if np.linalg.norm(near) >= r and (side is None or near @ (side * only) >= 0.0):
            return float(np.linalg.norm(b - a)), straight
        ends = np.array([np.linalg.norm(u), np.linalg.norm(w)])
        if ends.min() < r * (1.0 - 1e-9):
            return float(np.linalg.norm(b - a)), straight
        ends = np.maximum(ends, r)
        x = u / np.linalg.norm(u)
        across = w - (w @ x) * x
        if np.linalg.norm(across) < 1e-12 * ends[1]:
            seed = np.roll(x, 1) if side is None else side * only
            across = seed - (seed @ x) * x
        y = across / np.linalg.norm(across)
        theta = float(np.arctan2(w @ y, w @ x))
        touch = np.arccos(np.minimum(r / ends, 1.0))
        if side is not None:
            ways = 0.5 * (np.array([theta, 2.0 * np.pi - theta]) + touch[0] - touch[1])
            short, long = (side @ (np.cos(m) * x + turn * np.sin(m) * y) for m, turn in zip(ways, (1.0, -1.0)))
            if long > short or theta <= touch.sum():
                y, theta = -y, 2.0 * np.pi - theta
        if theta <= touch.sum():
            return float(np.linalg.norm(b - a)), straight
        flat = np.sqrt(ends**2 - r**2)
        angle = np.linspace(touch[0], theta - touch[1], count)
        gone = flat[0] + r * (angle - touch[0])
        whole = gone[-1] + flat[1]
        rise = (b - a) * (1.0 - only)
        points = r * (np.cos(angle)[:, None] * x + np.sin(angle)[:, None] * y) + a * (1.0 - only)
        return float(np.hypot(whole, np.linalg.norm(rise))), points + (gone / whole)[:, None] * rise


PathItem = PathRod | PathPoint | PathBody | PathWrap


@dataclass(frozen=True)
class Actuator(ABC):
    """A source of generalised force that is linear in its inputs u: τ = B(q) u. An elastic tendon is linear only while
    it is taut.

    Args:
        name: unique among the actuators and inputs of the robot.
    """

    name: str

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError if a field of the actuator is invalid."""


@final
@dataclass(frozen=True)
class Tendon(Actuator):
    """Frictionless tendon: B = −(∂L/∂q)ᵀ with its length L(q); u is the tension [N]. A tension u > 0 shortens the
    tendon.

    A tendon with a stiffness is elastic. Its input u is then the length [m] that a spool has wound up, and its tension
    is

        T = max(0, k (L − L₀ + u))

    Args:
        path: PathRod, PathPoint, PathBody and PathWrap items in order; straight lines join one item to the next, round
            a PathWrap between them.
        stiffness: k of the whole tendon [N/m]. None: the tendon is inextensible and u is its tension.
        slack_length: L₀, the length [m] up to which an elastic tendon has no tension at u = 0. None is the length in
            the neutral configuration.
    """

    path: tuple[PathItem, ...]
    stiffness: float | None = None
    slack_length: float | None = None

    @property
    def is_elastic(self) -> bool:
        """Whether the tendon has a stiffness, so that its tension follows from its length."""
        return self.stiffness is not None

    def check(self, where: str) -> None:
        check_path(self.path, where)
        if self.stiffness is not None:
            checks.number(self.stiffness, f"{where}: stiffness", above=0.0)
        if self.slack_length is not None:
            rule = "must be left out where the tendon has no stiffness"
            checks.require(self.is_elastic, f"{where}: slack_length", rule, self.slack_length)
            checks.number(self.slack_length, f"{where}: slack_length", least=0.0)


@final
@dataclass(frozen=True)
class Chamber(Actuator):
    """Inflated chamber along a rod; u = pressure above ambient [Pa].

    Args:
        path: one PathRod, the centreline of the chamber.
        area: cross-section [m²]: a number, (base, tip) for a linear taper, or a function of s.
        force: how the pressure acts. "tangent": the force u · area is tangent to the chamber's centreline, and B is the
            gradient of ∫ area |t| ds, with t the tangent. "volume": the force is normal to the rod's cross-section, and
            B is the gradient of the volume of a hole with this area in the rod.
    """

    path: PathRod
    area: FunctionOfS
    force: str = "tangent"

    def check(self, where: str) -> None:
        check_path((self.path,), where)
        area = profile(self.area, f"{where}: area")
        for s in (self.path.start, 0.5 * (self.path.start + self.path.stop), self.path.stop):
            area(s)
        kinds = ("tangent", "volume")
        checks.require(checks.among(self.force, kinds), f"{where}: force", f"must be one of {kinds}", self.force)


@final
@dataclass(frozen=True)
class JointActuator(Actuator):
    """Motor on all coordinates of a joint; u = generalised forces, one for each velocity coordinate [N·m, N].

    Args:
        link: name of the link whose joint is driven.
    """

    link: JointName

    def check(self, where: str) -> None:
        checks.require(isinstance(self.link, str), f"{where}: link", "must be the name of a link", self.link)


@final
@dataclass(frozen=True)
class WrenchInput(Actuator):
    """Controlled wrench at a point of a link: (moment; force) = directions · u.

    Args:
        link: name of the link.
        s: abscissa on a rod, or a place on a deformable body.
        directions: wrench (moment; force) per unit of each input, shape (6, n), or (6,) for one input. None: u has six
            entries, the moment [N·m] and the force [N].
        frame: axes of the wrench. "body": axes that turn with the link (with its cross-section on a rod); "world":
            fixed axes.
        position: point of application in the frame of the link at s, shape (3,) [m].
    """

    link: LinkName
    s: Place = 1.0
    directions: Numbers = None
    frame: str = "body"
    position: Numbers = (0.0, 0.0, 0.0)

    def check(self, where: str) -> None:
        checks.place(self.s, f"{where}: s")
        columns = self.columns(where)
        empty = not columns.size or bool((columns == 0.0).all(axis=0).any())
        checks.require(not empty, f"{where}: directions", "must hold wrenches that are not zero", self.directions)
        frames = ("body", "world")
        checks.require(checks.among(self.frame, frames), f"{where}: frame", f"must be one of {frames}", self.frame)
        checks.array(self.position, (3,), f"{where}: position", "must be a finite 3-vector")

    def columns(self, where: str) -> np.ndarray:
        """`directions` as a matrix (6, n)."""
        if self.directions is None:
            return np.eye(6)
        one = len(checks.shape(self.directions)) == 1
        rule = "must be a finite matrix of shape (6, n), or (6,) for one input"
        return checks.array(self.directions, (6,) if one else (6, -1), f"{where}: directions", rule).reshape(6, -1)


@final
@dataclass(frozen=True)
class CustomActuator(Actuator):
    """A user-defined generalised force: τ = B(q) u, or any τ(q, u).

    Args:
        function: function of q (nq,) that returns B, shape (nv, size), or (nv,) for one input. An ls.TracedFunction is
            compiled with exact derivatives, and kernels call it; the numbers that it reads besides q are those at the
            build. Other functions are called at every state, and their derivatives are central differences.
        size: number of inputs.
        linear: False: the function is an ls.TracedFunction of q and the inputs (size,) that returns τ (nv,).
    """

    function: Callable[..., Any]
    size: int = 1
    linear: bool = True

    def check(self, where: str) -> None:
        checks.require(callable(self.function), f"{where}: function", "must be a function of q", self.function)
        checks.integer(self.size, f"{where}: size", least=1, most=10_000)
        checks.require(isinstance(self.linear, bool), f"{where}: linear", "must be true or false", self.linear)
        traced = self.linear or isinstance(self.function, TracedFunction)
        rule = "must be an ls.TracedFunction of q and inputs, since it is not linear"
        checks.require(traced, f"{where}: function", rule, self.function)


@final
@dataclass(frozen=True)
class InputCoupling:
    """One input that drives several actuators. Each actuator receives its gain times the input.

    Args:
        name: name of the input.
        gains: gain by actuator name. Each of these actuators has exactly one input.
    """

    name: str
    gains: dict[ActuatorName, float]

    def check(self, where: str) -> None:
        """Raise ModelError unless `gains` holds a finite number for each of at least one actuator."""
        checks.require(isinstance(self.gains, dict), f"{where}: gains", "must be gains by actuator name", self.gains)
        checks.require(bool(self.gains), where, "must couple at least one actuator", self.gains)
        for actuator, gain in self.gains.items():
            checks.number(gain, f"{where} > {actuator}: gain")


def check_path(path: Any, where: str) -> None:
    """Raise ModelError unless `path` is a list of valid path items."""
    rule = "must be a list of PathRod, PathPoint, PathBody and PathWrap items"
    checks.require(isinstance(path, tuple) and len(path) > 0, f"{where}: path", rule, path)
    for k, item in enumerate(path):
        here = f"{where} > path[{k}]"
        checks.require(
            isinstance(item, PathItem), here, "must be a PathRod, a PathPoint, a PathBody or a PathWrap", item
        )
        if isinstance(item, PathRod):
            ends = checks.abscissa(item.start, f"{here}: start"), checks.abscissa(item.stop, f"{here}: stop")
            checks.require(ends[0] != ends[1], here, "start and stop must differ", ends)
            offset = offset_function(item.offset, f"{here}: offset")
            for s in ends:
                offset(s)
        elif isinstance(item, PathBody):
            item.check(here)
        elif isinstance(item, PathWrap):
            item.check(here)
            between = 0 < k < len(path) - 1 and not isinstance(path[k - 1], PathWrap)
            checks.require(between, here, "a PathWrap must lie between two items that are none", type(item).__name__)
        else:
            checks.array(item.position, (3,), f"{here}: position", "must be a finite 3-vector")
            checks.place(item.s, f"{here}: s")
    lone = len(path) == 1 and isinstance(path[0], PathPoint)
    checks.require(not lone, f"{where}: path", "one point alone has no length", path)


@final
@dataclass(frozen=True, eq=False)
class BodyChamber(Actuator):
    """A chamber in a deformable body; u = pressure above ambient [Pa], B = (∂V/∂q)ᵀ with the volume V of the chamber.

    Args:
        link: name of a link whose body is a DeformableBody.
        surface: the wall of the chamber. Either (vertices, triangles): vertices (m, 3) [m] of the undeformed shape,
            which move with the material, and triangles (k, 3), such as `cylinder_surface` returns; or a function of a
            point (3,) that is true at the boundary vertices of the body that belong to the wall. A flat lid closes each
            open rim. The force on a lid is shared equally by the vertices of its rim.
        volume: instead of a surface: V [m³] as a function of the body's own coordinates (n,), written with jax.numpy.
    """

    link: LinkName
    surface: Any = None
    volume: Callable[[Any], Any] | None = None

    def check(self, where: str) -> None:
        one = (self.surface is None) != (self.volume is None)
        checks.require(one, where, "must have a surface or a volume", (self.surface, self.volume))
        made = self.volume is None or callable(self.volume)
        checks.require(made, f"{where}: volume", "must be a function of the body's coordinates", self.volume)
        if self.volume is None:
            check_surface(self.surface, where)


@final
@dataclass(frozen=True, eq=False)
class SurfacePressure(Actuator):
    """A pressure on a part of the surface of a deformable body; u = pressure [Pa].

    The pressure is normal to the deformed surface and acts on the side to which the normals of the triangles point.

    Args:
        link: name of a link whose body is a DeformableBody.
        surface: the loaded part. Either (vertices, triangles): vertices (m, 3) [m] of the undeformed shape and
            triangles (k, 3), counterclockwise as seen from the side of the pressure; or a function of a point (3,) that
            is true at the boundary vertices of the body that belong to the part. In the second case the pressure acts
            from outside.
    """

    link: LinkName
    surface: Any

    def check(self, where: str) -> None:
        check_surface(self.surface, where)


def check_surface(surface: Any, where: str) -> None:
    """Raise ModelError unless `surface` is a function, or a pair (vertices, triangles)."""
    if callable(surface):
        return
    rule = "must be vertices (m, 3) and triangles (k, 3), or a function of a point"
    pair = isinstance(surface, tuple | list) and len(surface) == 2
    checks.require(pair, f"{where}: surface", rule, surface)
    vertices = checks.array(surface[0], (-1, 3), f"{where}: surface", rule)
    triangles = checks.array(surface[1], (-1, 3), f"{where}: surface", rule)
    rule = f"its triangles must hold whole numbers from 0 to {len(vertices) - 1}"
    whole = (triangles == triangles.round()) & (triangles >= 0) & (triangles < len(vertices))
    checks.require(len(triangles) > 0 and bool(whole.all()), f"{where}: surface", rule, surface[1])
