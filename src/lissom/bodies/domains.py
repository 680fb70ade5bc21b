"""Undeformed shapes of deformable bodies, with their quadrature, their surface and contact balls along it.

The long axis is x. The base lies at the origin, the tip at (length, 0, 0).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from math import pi
from typing import Any, NamedTuple, cast, final

import numpy as np

from lissom.bodies import cubature, surfaces
from lissom.bodies.cubature import Line
from lissom.robot import checks
from lissom.robot.surface_points import box_points, revolved_points, ring_points, skin_points, triangle_points

MOST_DEGREE = 60
_DEGREE = 6  # degree of the quadrature of a domain without a body that chooses one
_OFF = 1e-6  # distance from the surface to the start of a ray, in lengths of the body


class Quadrature(NamedTuple):
    """Material points (N, 3) [m] and their positive weights (N,) [m³]."""

    points: np.ndarray
    weights: np.ndarray


class Surface(NamedTuple):
    """A closed surface: vertices (m, 3) [m] and triangles (k, 3), counterclockwise seen from outside."""

    vertices: np.ndarray
    triangles: np.ndarray

    @property
    def area(self) -> float:
        """Area of all triangles [m²]."""
        a, b, c = np.moveaxis(self.vertices[self.triangles], 1, 0)
        return 0.5 * float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())


class Domain(ABC):
    """The material points of a body in the undeformed shape.

    Law: ∫ h(x) dV = Σ w_k h(x_k) for every polynomial h up to the degree. All points x_k lie inside, all weights w_k
    are > 0, and their sum is `volume`.
    """

    @abstractmethod
    def quadrature(self) -> Quadrature:
        """The points x_k and weights w_k of the law."""

    @property
    def is_chosen_by_body(self) -> bool:
        """Whether the body chooses the quadrature to suit its kinematics."""
        return False

    @property
    def as_given(self) -> Domain:
        """The domain on which discrete choices are made, so that they are the same for all design values."""
        return self

    @property
    @abstractmethod
    def volume(self) -> float:
        """Volume [m³]."""

    @property
    @abstractmethod
    def places(self) -> dict[str, np.ndarray]:
        """Named material points (3,) [m]: "base", "tip", "center" and others, depending on the shape."""

    @abstractmethod
    def surface(self) -> Surface:
        """The boundary as a closed surface of triangles."""

    def surface_cells(self, n: int) -> np.ndarray:
        """About n² cells of the surface as rows (m, 17) of robot.surface_points, for contacts. By default they are the
        triangles of `surface`, or groups of their corners if these are more than 4 n²."""
        vertices, triangles = self.surface()
        if len(triangles) <= 4 * n * n:
            return triangle_points(vertices, triangles)
        return skin_points(vertices, triangles, n * n, self.as_given.surface().vertices)

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError if a field of the domain is invalid."""

    @cached_property
    def _made(self) -> Quadrature:
        return self.quadrature()

    @property
    def points(self) -> np.ndarray:
        """Quadrature points, shape (N, 3) [m]."""
        return self._made.points

    @property
    def weights(self) -> np.ndarray:
        """Quadrature weights, shape (N,) [m³]."""
        return self._made.weights


def check_degree(degree: int | None, degree_along: int | None, where: str) -> None:
    """Raise ModelError unless each given degree is an integer in its range."""
    for name, given in (("degree", degree), ("degree_along", degree_along)):
        if given is not None:
            checks.integer(given, f"{where}: {name}", least=0, most=MOST_DEGREE)


class SweptDomain(Domain):
    """A section swept along x. Its quadrature is the product of three one-dimensional rules.

    Law: each rule is on [0, 1]. The first is for s = x/length, the others for the two coordinates of the section. The
    last coordinate may be an angle in turns.
    """

    length: float
    degree: int | None
    degree_along: int | None

    @property
    @abstractmethod
    def goes_round(self) -> bool:
        """Whether the last coordinate of the section is an angle."""

    @abstractmethod
    def product(self, along: Line, first: Line, second: Line) -> Quadrature:
        """The product of three rules as a quadrature."""

    @property
    def is_chosen_by_body(self) -> bool:
        return self.degree is None

    def left_to_body(self) -> SweptDomain:
        """A copy of the domain whose quadrature the body chooses."""
        return replace(cast(Any, self), degree=None, degree_along=None)

    def quadrature(self) -> Quadrature:
        degree = _DEGREE if self.degree is None else self.degree
        along = cubature.line_of_degree(max(degree, self.degree_along or 0) + self._extra_degree_along)
        first = cubature.line_of_degree(degree // 2 if self.goes_round else degree)
        second = cubature.equidistant(degree + 1) if self.goes_round else cubature.line_of_degree(degree)
        return self.product(along, first, second)

    @property
    def _extra_degree_along(self) -> int:
        """Degree along x that is added for sections of varying size."""
        return 0


def _swept(x: np.ndarray, weights: np.ndarray, across: np.ndarray, areas: np.ndarray) -> Quadrature:
    """The product of a rule along x and a rule across. `across` has shape (m, 2), or (len(x), m, 2) if it varies along
    x."""
    across = np.broadcast_to(across, (len(x), *across.shape[-2:]))
    areas = np.broadcast_to(areas, (len(x), areas.shape[-1]))
    points = np.concatenate([np.broadcast_to(x[:, None, None], (*across.shape[:2], 1)), across], axis=-1)
    return Quadrature(points.reshape(-1, 3), (weights[:, None] * areas).ravel())


def _revolved(
    length: float, inner: np.ndarray, outer: np.ndarray, along: Line, first: Line, second: Line
) -> Quadrature:
    """Quadrature of annuli between an inner and an outer radius at the points along x; dA = r dr dφ = dt dφ / 2 with t
    = r²."""
    inner, outer = (np.broadcast_to(r, along.at.shape)[:, None] ** 2 for r in (inner, outer))
    r = np.sqrt(inner + (outer - inner) * first.at)
    turned = 2.0 * pi * second.at
    circle = np.stack([np.cos(turned), np.sin(turned)], axis=-1)
    across = (r[:, :, None, None] * circle).reshape(len(along.at), -1, 2)
    areas = (pi * (outer - inner))[:, :, None] * np.outer(first.weights, second.weights)
    return _swept(length * along.at, length * along.weights, across, areas.reshape(len(along.at), -1))


def _round_cells(length: float, radii: tuple[float, float], n: int, inner: float = 0.0) -> np.ndarray:
    """Cells of a truncated cone or a tube: 2 n around and n/2 along it, n around and n/4 rings on its ends. The radii
    are those of the base and of the tip."""
    x = np.linspace(0.0, length, max(n // 2, 1) + 1)
    out = [revolved_points(x, np.linspace(*radii, len(x)), 2 * n)]
    if inner > 0.0:
        out.append(revolved_points(x, np.full(len(x), inner), 2 * n, -1.0))
    for at, side, radius in ((0.0, -1.0, radii[0]), (length, 1.0, radii[1])):
        if radius > 0.0:
            out.append(ring_points(at, side, radius, inner, n, max(n // 4, 1)))
    return np.concatenate(out)


def _axis(length: float, y: float, z: float) -> dict[str, np.ndarray]:
    """Places on the axis, and two on the rim of the tip, in the directions y and z. With the tip they define a
    frame."""
    named = {"base": (0.0, 0.0, 0.0), "tip": (length, 0.0, 0.0), "center": (length / 2, 0.0, 0.0)}
    named |= {"tip_y": (length, y, 0.0), "tip_z": (length, 0.0, z)}
    return {name: np.array(point) for name, point in named.items()}


@final
@dataclass(frozen=True)
class DomainCylinder(SweptDomain):
    """Circular cylinder along x.

    Args:
        length, radius: length and radius [m].
        degree: degree of the polynomials that the quadrature integrates exactly. None: the body chooses the points to
            suit its kinematics (without a body the degree is 6).
        degree_along: degree along x, if the motion varies more along x than across it; None is `degree`.
    """

    length: float
    radius: float
    degree: int | None = None
    degree_along: int | None = None

    def check(self, where: str) -> None:
        checks.number(self.length, f"{where}: length", above=0.0)
        checks.number(self.radius, f"{where}: radius", above=0.0)
        check_degree(self.degree, self.degree_along, where)

    @property
    def goes_round(self) -> bool:
        return True

    def product(self, along: Line, first: Line, second: Line) -> Quadrature:
        return _revolved(self.length, np.zeros(1), np.array([self.radius]), along, first, second)

    @property
    def volume(self) -> float:
        return pi * self.radius**2 * self.length

    @property
    def places(self) -> dict[str, np.ndarray]:
        return _axis(self.length, self.radius, self.radius)

    def surface(self) -> Surface:
        x = np.linspace(0.0, self.length, surfaces.ALONG)
        return Surface(*surfaces.revolved(x, np.full(len(x), self.radius)))

    def surface_cells(self, n: int) -> np.ndarray:
        return _round_cells(self.length, (self.radius, self.radius), n)


@final
@dataclass(frozen=True)
class DomainAnnulus(SweptDomain):
    """Circular tube along x, open at both ends.

    Args:
        length, outer, inner: length, outer radius and inner radius [m].
        degree: degree of the polynomials that the quadrature integrates exactly. None: the body chooses the points to
            suit its kinematics (without a body the degree is 6).
        degree_along: degree along x; None is `degree`.
    """

    length: float
    outer: float
    inner: float
    degree: int | None = None
    degree_along: int | None = None

    def check(self, where: str) -> None:
        checks.number(self.length, f"{where}: length", above=0.0)
        inner = checks.number(self.inner, f"{where}: inner", above=0.0)
        checks.require(self.outer > inner, f"{where}: outer", f"must be > inner, {inner:g}", self.outer)
        check_degree(self.degree, self.degree_along, where)

    @property
    def goes_round(self) -> bool:
        return True

    def product(self, along: Line, first: Line, second: Line) -> Quadrature:
        return _revolved(self.length, np.array([self.inner]), np.array([self.outer]), along, first, second)

    @property
    def volume(self) -> float:
        return pi * (self.outer**2 - self.inner**2) * self.length

    @property
    def places(self) -> dict[str, np.ndarray]:
        return _axis(self.length, self.outer, self.outer)

    def surface(self) -> Surface:
        x = np.linspace(0.0, self.length, surfaces.ALONG)
        return Surface(*surfaces.revolved(x, np.full(len(x), self.outer), np.full(len(x), self.inner)))

    def surface_cells(self, n: int) -> np.ndarray:
        return _round_cells(self.length, (self.outer, self.outer), n, self.inner)


@final
@dataclass(frozen=True)
class DomainCone(SweptDomain):
    """Circular cone or truncated cone along x.

    Args:
        length, base_radius, tip_radius: length and radii [m]. tip_radius 0 is a pointed cone.
        degree: degree of the polynomials that the quadrature integrates exactly. None: the body chooses the points to
            suit its kinematics (without a body the degree is 6).
        degree_along: degree along x; None is `degree`.
    """

    length: float
    base_radius: float
    tip_radius: float = 0.0
    degree: int | None = None
    degree_along: int | None = None

    def check(self, where: str) -> None:
        checks.number(self.length, f"{where}: length", above=0.0)
        checks.number(self.base_radius, f"{where}: base_radius", above=0.0)
        checks.number(self.tip_radius, f"{where}: tip_radius", least=0.0)
        check_degree(self.degree, self.degree_along, where)

    def _radius(self, x: np.ndarray) -> np.ndarray:
        return self.base_radius + (self.tip_radius - self.base_radius) * x / self.length

    @property
    def goes_round(self) -> bool:
        return True

    @property
    def _extra_degree_along(self) -> int:
        return 2  # x^a y^b z^c is a polynomial of degree a along x times R(x)^(2+b+c)

    def product(self, along: Line, first: Line, second: Line) -> Quadrature:
        return _revolved(self.length, np.zeros(1), self._radius(self.length * along.at), along, first, second)

    @property
    def volume(self) -> float:
        a, b = self.base_radius, self.tip_radius
        return pi / 3 * self.length * (a * a + a * b + b * b)

    @property
    def places(self) -> dict[str, np.ndarray]:
        a, b = self.base_radius, self.tip_radius
        center = self.length / 4 * (a * a + 2 * a * b + 3 * b * b) / (a * a + a * b + b * b)
        return _axis(self.length, b, b) | {"center": np.array([center, 0.0, 0.0])}

    def surface(self) -> Surface:
        x = np.linspace(0.0, self.length, surfaces.ALONG)
        return Surface(*surfaces.revolved(x, self._radius(x)))

    def surface_cells(self, n: int) -> np.ndarray:
        return _round_cells(self.length, (self.base_radius, self.tip_radius), n)


@final
@dataclass(frozen=True)
class DomainBox(SweptDomain):
    """Box along x: x from 0 to the length, y and z centred.

    Args:
        length, width_y, width_z: full sizes [m].
        degree: degree of the polynomials that the quadrature integrates exactly. None: the body chooses the points to
            suit its kinematics (without a body the degree is 6).
        degree_along: degree along x; None is `degree`.
    """

    length: float
    width_y: float
    width_z: float
    degree: int | None = None
    degree_along: int | None = None

    def check(self, where: str) -> None:
        for name in ("length", "width_y", "width_z"):
            checks.number(getattr(self, name), f"{where}: {name}", above=0.0)
        check_degree(self.degree, self.degree_along, where)

    @property
    def goes_round(self) -> bool:
        return False

    def product(self, along: Line, first: Line, second: Line) -> Quadrature:
        y, z = (h * (rule.at - 0.5) for h, rule in ((self.width_y, first), (self.width_z, second)))
        across = np.stack(np.meshgrid(y, z, indexing="ij"), axis=-1).reshape(-1, 2)
        areas = self.width_y * self.width_z * np.outer(first.weights, second.weights).ravel()
        return _swept(self.length * along.at, self.length * along.weights, across, areas)

    @property
    def volume(self) -> float:
        return self.length * self.width_y * self.width_z

    @property
    def places(self) -> dict[str, np.ndarray]:
        return _axis(self.length, self.width_y / 2, self.width_z / 2)

    def surface(self) -> Surface:
        return Surface(*surfaces.box(self.length, self.width_y, self.width_z))

    def surface_cells(self, n: int) -> np.ndarray:
        half = 0.5 * np.array([self.length, self.width_y, self.width_z])
        ratios = [max(half[a], half[b]) / min(half[a], half[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
        few = max(round(n / np.sqrt(2.0 * np.minimum(ratios, 2.0).sum())), 1)  # along the shorter edges
        rows = box_points(half, few)
        rows[:, 0] += half[0]
        return rows


def surface_balls(domain: Domain, count: int) -> np.ndarray:
    """Contact balls of a body: rows (x, y, z, radius) [m], at most `count`.

    The balls lie inside the undeformed shape and touch its surface from within, at evenly distributed points. Their
    radius is half the distance between these points, at most half the local thickness, and at most volume over surface.
    """
    vertices, triangles = domain.surface()
    corners = vertices[triangles]
    doubled = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(vertices)
    for k in range(3):
        np.add.at(normals, triangles[:, k], doubled)
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    chosen = _spread(domain.as_given.surface().vertices, count)
    x, inward = vertices[chosen], -normals[chosen]
    apart = np.linalg.norm(x[:, None] - x[None], axis=-1) + np.where(np.eye(len(x)), np.inf, 0.0)
    largest = domain.volume / (0.5 * np.linalg.norm(doubled, axis=1).sum())
    if len(x) > 1:
        largest = min(largest, 0.5 * float(np.median(apart.min(axis=1))))
    start = x + _OFF * float(np.ptp(vertices, axis=0).max()) * inward
    centres = x + np.minimum(largest, 0.5 * _depths(start, inward, corners))[:, None] * inward
    return np.column_stack([centres, np.minimum(largest, _distances(centres, corners, doubled))])


def _spread(points: np.ndarray, count: int) -> np.ndarray:
    """Indices of points far from each other: each point is the farthest from the points before it."""
    chosen = [int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    nearest = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < min(count, len(points)) and nearest.max() > 0.0:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return np.array(chosen)


def _depths(starts: np.ndarray, directions: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Distance along each ray to the first triangle; infinite if the ray meets none."""
    a, first, second = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    found = np.full(len(starts), np.inf)
    for k, (start, ray) in enumerate(zip(starts, directions)):
        across = np.cross(ray, second)
        size = np.einsum("ij,ij->i", first, across)
        size = np.where(np.abs(size) > 1e-300, size, np.nan)
        u = np.einsum("ij,ij->i", start - a, across) / size
        turned = np.cross(start - a, first)
        v, t = turned @ ray / size, np.einsum("ij,ij->i", second, turned) / size
        met = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t > 0.0)
        found[k] = t[met].min(initial=np.inf)
    return found


def _distances(points: np.ndarray, corners: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Distance of each point to the nearest triangle: to the plane if the point projects into a triangle, otherwise to
    the nearest corner."""
    unit = normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    found = np.empty(len(points))
    for k, x in enumerate(points):
        off = np.einsum("ij,ij->i", x - corners[:, 0], unit)
        foot = x - off[:, None] * unit
        sides = np.cross(np.roll(corners, -1, axis=1) - corners, foot[:, None] - corners)
        above = (np.einsum("kij,kj->ki", sides, unit) >= 0.0).all(axis=1)
        planes = np.abs(off[above]).min(initial=np.inf)
        found[k] = min(planes, float(np.linalg.norm(corners - x, axis=-1).min()))
    return found
