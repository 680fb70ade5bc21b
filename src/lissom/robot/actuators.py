"""Actuators of a robot: tendons, chambers, motors, wrenches, pressures on deformable bodies and the user's own.

Each actuator owns one or more inputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.fields import FunctionOfS, Numbers, Place
from lissom.robot.functions import Tabulated, derivative, profile


def offset_function(value: Any, where: str) -> Callable[[float], np.ndarray]:
    """A path in the section, (y, z) [m]: a constant pair, rows (s, y, z) of points, or a function of s."""
    path = _offset_path(value, where)
    if callable(path):
        return lambda s: checks.call(path, s, (2,), where)
    return lambda s: path


def offset_slope(value: Any, where: str) -> Callable[[float], np.ndarray]:
    """The derivative with respect to s of a path in the section, inside (0, 1)."""
    path = _offset_path(value, where)
    if isinstance(path, Tabulated):
        return lambda s: checks.call(path.slope, s, (2,), where)
    if callable(path):
        return lambda s: derivative(path, s, (2,), where)
    return lambda s: np.zeros(2)


def _offset_path(value: Any, where: str) -> Any:
    """A path as a function of s or as a constant array (2,)."""
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
    """A stretch of a path along a rod.

    Args:
        link: name of a link whose body is a Rod.
        offset: (y, z) [m] in the section: constant, rows (s, y, z) of points, or a function of s. It may lie outside
            the section.
        start, stop: abscissae where the path enters and leaves; start > stop runs towards the base.
    """

    link: str
    offset: FunctionOfS
    start: float = 0.0
    stop: float = 1.0


@final
@dataclass(frozen=True)
class PathPoint:
    """A point a path passes through without friction.

    Args:
        link: name of a link, or None for the world.
        position: in the frame of the link at s, shape (3,) [m].
        s: abscissa on a rod, or a place on a deformable body.
    """

    link: str | None
    position: Numbers = (0.0, 0.0, 0.0)
    s: Place = 1.0


@final
@dataclass(frozen=True, eq=False)
class PathBody:
    """A stretch of a path along material points of a deformable body, which it runs through without friction.

    Args:
        link: name of a link whose body is a DeformableBody.
        points: material points (m, 3) joined by straight lines in the reference shape [m], in the order passed; or a
            function of a number from 0 to 1 that gives such a point (3,).
        gauss_points: number of Gauss points in the integral of the length along each line, or along the function. The
            path then follows the material between the points. None: it runs straight from point to point, as through
            eyelets.
    """

    link: str
    points: Numbers | Callable[[float], Any]
    gauss_points: int | None = 8

    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""
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
        """The material points (3,) where the path enters and leaves."""
        if callable(self.points):
            return np.asarray(self.points(0.0), dtype=np.float64), np.asarray(self.points(1.0), dtype=np.float64)
        rows = np.asarray(self.points, dtype=np.float64)
        return rows[0], rows[-1]


PathItem = PathRod | PathPoint | PathBody


@dataclass(frozen=True)
class Actuator(ABC):
    """A source of generalised force, linear in its inputs: τ = B(q) u. An elastic tendon is linear only while taut.

    Args:
        name: unique among the actuators and inputs of the robot.
    """

    name: str

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""


@final
@dataclass(frozen=True)
class Tendon(Actuator):
    """Frictionless tendon: B = −(∂L/∂q)ᵀ, u = tension [N]; u >= 0 pulls and shortens the robot.

    A tendon with a stiffness is elastic. Its input u is the length that a spool pulls in [m]; its tension is

        T = max(0, k (L − L₀ + u))

    Args:
        path: PathRod, PathPoint and PathBody items in order; straight segments join one to the next.
        stiffness: k of the whole tendon [N/m]; None: u is the tension, whatever the length.
        slack_length: L₀, the length up to which an elastic tendon carries nothing at u = 0 [m]; None is the length in
            the neutral configuration.
    """

    path: tuple[PathItem, ...]
    stiffness: float | None = None
    slack_length: float | None = None

    @property
    def is_elastic(self) -> bool:
        """Whether the tension follows from the length."""
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
        path: one PathRod, the line of the chamber's centre.
        area: cross-section [m²]: a number, (base, tip) or a function of s.
        force: "tangent": pressure times area along the chamber's line, the gradient of ∫ A |t| ds; "volume": the
            gradient of the volume that a hole of this area in the rod's section sweeps, pressure normal to the section.
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
    """Motor on all coordinates of a joint; u = its generalised forces, one per velocity coordinate [N·m, N].

    Args:
        link: name of the link whose joint is driven.
    """

    link: str

    def check(self, where: str) -> None:
        checks.require(isinstance(self.link, str), f"{where}: link", "must be the name of a link", self.link)


@final
@dataclass(frozen=True)
class WrenchInput(Actuator):
    """Controlled wrench at a point of a link: (moment; force) = directions · u.

    Args:
        link: name of the link.
        s: abscissa on a rod, or a place on a deformable body.
        directions: wrench (moment; force) per unit of each input, shape (6, n) or (6,) for one; None: the six
            components themselves, u = (moment [N·m]; force [N]).
        frame: "body": components that turn with the section; "world": fixed in the world.
        position: point of application in the frame of the link at s, shape (3,) [m].
    """

    link: str
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
    """A user's own generalised actuation: τ = B(q) u.

    Args:
        function: B as a function of q (nq,), returning shape (nv, size).
        size: number of inputs.
    """

    function: Callable[[np.ndarray], Any]
    size: int = 1

    def check(self, where: str) -> None:
        checks.require(callable(self.function), f"{where}: function", "must be a function of q", self.function)
        checks.integer(self.size, f"{where}: size", least=1, most=10_000)


@final
@dataclass(frozen=True)
class InputCoupling:
    """One input that drives several actuators: each receives gain times the input.

    Args:
        name: of the input.
        gains: gain by actuator name; the actuators must have one input of their own.
    """

    name: str
    gains: dict[str, float]

    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""
        checks.require(isinstance(self.gains, dict), f"{where}: gains", "must be gains by actuator name", self.gains)
        checks.require(bool(self.gains), where, "must couple at least one actuator", self.gains)
        for actuator, gain in self.gains.items():
            checks.number(gain, f"{where} > {actuator}: gain")


def check_path(path: Any, where: str) -> None:
    """Raise ModelError unless `path` is a list of path items with sane numbers."""
    rule = "must be a list of PathRod, PathPoint and PathBody items"
    checks.require(isinstance(path, tuple) and len(path) > 0, f"{where}: path", rule, path)
    for k, item in enumerate(path):
        here = f"{where} > path[{k}]"
        checks.require(isinstance(item, PathItem), here, "must be a PathRod, a PathPoint or a PathBody", item)
        if isinstance(item, PathRod):
            ends = checks.abscissa(item.start, f"{here}: start"), checks.abscissa(item.stop, f"{here}: stop")
            checks.require(ends[0] != ends[1], here, "start and stop must differ", ends)
            offset = offset_function(item.offset, f"{here}: offset")
            for s in ends:
                offset(s)
        elif isinstance(item, PathBody):
            item.check(here)
        else:
            checks.array(item.position, (3,), f"{here}: position", "must be a finite 3-vector")
            checks.place(item.s, f"{here}: s")
    lone = len(path) == 1 and isinstance(path[0], PathPoint)
    checks.require(not lone, f"{where}: path", "one point alone has no length", path)


@final
@dataclass(frozen=True, eq=False)
class BodyChamber(Actuator):
    """A chamber in a deformable body; u = pressure above ambient [Pa], B = ∂V/∂q.

    Args:
        link: name of a link whose body is a DeformableBody.
        surface: the wall of the chamber: vertices (m, 3) [m] in the reference shape and triangles (k, 3), such as
            `cylinder_surface` makes, which move as material points do; or a predicate of a point (3,), true at the
            corners of the body's boundary that belong to the wall. A flat lid closes each open rim. The force on a lid
            is shared equally by the corners of its rim.
        volume: in place of a surface, V [m³] as a function of the body's own coordinates (n,), made of jax.numpy.
    """

    link: str
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

    It acts along the normal of the deformed surface, on the side to which the normals point.

    Args:
        link: name of a link whose body is a DeformableBody.
        surface: vertices (m, 3) [m] in the reference shape and triangles (k, 3), counterclockwise as seen from the side
            of the pressure; or a predicate of a point (3,), true at the corners of the body's boundary that belong to
            the part, with the pressure outside the material.
    """

    link: str
    surface: Any

    def check(self, where: str) -> None:
        check_surface(self.surface, where)


def check_surface(surface: Any, where: str) -> None:
    """Raise ModelError unless `surface` is a function, or vertices and triangles."""
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
