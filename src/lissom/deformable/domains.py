"""Reference shapes of deformable bodies: x is the long axis, the base lies at the origin, the tip at (length, 0, 0)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import pi
from typing import NamedTuple, final

import numpy as np

from lissom.deformable import cubature, surfaces
from lissom.robot import checks

MOST_DEGREE = 60


class Quadrature(NamedTuple):
    """Material points (N, 3) [m] and their positive weights (N,) [m³]."""

    points: np.ndarray
    weights: np.ndarray


class Surface(NamedTuple):
    """A closed surface: vertices (m, 3) [m] and triangles (k, 3), counterclockwise seen from outside."""

    vertices: np.ndarray
    triangles: np.ndarray


class Domain(ABC):
    """The material points of a body in its reference shape.

    Law: ∫ h(x) dV = Σ w_k h(x_k) for every polynomial h up to the degree, with all points inside and all weights > 0;
    the weights sum to `volume`.
    """

    @abstractmethod
    def quadrature(self) -> Quadrature:
        """The points and weights of the law."""

    @property
    @abstractmethod
    def volume(self) -> float:
        """[m³]."""

    @property
    @abstractmethod
    def places(self) -> dict[str, np.ndarray]:
        """Named material points (3,) [m]: "base", "tip" and "center", and what else a shape has."""

    @abstractmethod
    def surface(self) -> Surface:
        """The boundary as a closed surface of triangles."""

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""

    @cached_property
    def _made(self) -> Quadrature:
        return self.quadrature()

    @property
    def points(self) -> np.ndarray:
        """Of the quadrature, shape (N, 3) [m]."""
        return self._made.points

    @property
    def weights(self) -> np.ndarray:
        """Of the quadrature, shape (N,) [m³]."""
        return self._made.weights


def check_degree(degree: int, degree_along: int | None, where: str) -> None:
    """Raise ModelError where the degrees of a quadrature break a rule."""
    checks.integer(degree, f"{where}: degree", least=0, most=MOST_DEGREE)
    if degree_along is not None:
        checks.integer(degree_along, f"{where}: degree_along", least=0, most=MOST_DEGREE)


def _swept(x: np.ndarray, weights: np.ndarray, across: np.ndarray, areas: np.ndarray) -> Quadrature:
    """The product of a rule along x and one across it; `across` is (m, 2), or (len(x), m, 2) where it changes."""
    across = np.broadcast_to(across, (len(x), *across.shape[-2:]))
    areas = np.broadcast_to(areas, (len(x), areas.shape[-1]))
    points = np.concatenate([np.broadcast_to(x[:, None, None], (*across.shape[:2], 1)), across], axis=-1)
    return Quadrature(points.reshape(-1, 3), (weights[:, None] * areas).ravel())


def _axis(length: float, y: float, z: float) -> dict[str, np.ndarray]:
    """Places on the axis, and one each on the rim of the tip along y and z: with the tip, three points of a frame."""
    named = {"base": (0.0, 0.0, 0.0), "tip": (length, 0.0, 0.0), "center": (length / 2, 0.0, 0.0)}
    named |= {"tip_y": (length, y, 0.0), "tip_z": (length, 0.0, z)}
    return {name: np.array(point) for name, point in named.items()}


@final
@dataclass(frozen=True)
class DomainCylinder(Domain):
    """Circular cylinder along x.

    Args:
        length, radius: [m].
        degree: of the polynomials that the quadrature integrates exactly.
        degree_along: the same along x alone, where the motion varies more than across; None is `degree`.
    """

    length: float
    radius: float
    degree: int = 6
    degree_along: int | None = None

    def check(self, where: str) -> None:
        checks.number(self.length, f"{where}: length", above=0.0)
        checks.number(self.radius, f"{where}: radius", above=0.0)
        check_degree(self.degree, self.degree_along, where)

    def quadrature(self) -> Quadrature:
        along = cubature.gauss_of_degree(max(self.degree, self.degree_along or 0), 0.0, self.length)
        return _swept(*along, *cubature.ring(self.degree, 0.0, self.radius))

    @property
    def volume(self) -> float:
        return pi * self.radius**2 * self.length

    @property
    def places(self) -> dict[str, np.ndarray]:
        return _axis(self.length, self.radius, self.radius)

    def surface(self) -> Surface:
        x = np.linspace(0.0, self.length, surfaces.ALONG)
        return Surface(*surfaces.revolved(x, np.full(len(x), self.radius)))


@final
@dataclass(frozen=True)
class DomainAnnulus(Domain):
    """Circular tube along x, open at both ends.

    Args:
        length, outer, inner: length and radii [m].
        degree: of the polynomials that the quadrature integrates exactly.
        degree_along: the same along x alone; None is `degree`.
    """

    length: float
    outer: float
    inner: float
    degree: int = 6
    degree_along: int | None = None

    def check(self, where: str) -> None:
        checks.number(self.length, f"{where}: length", above=0.0)
        inner = checks.number(self.inner, f"{where}: inner", above=0.0)
        checks.require(self.outer > inner, f"{where}: outer", f"must be > inner, {inner:g}", self.outer)
        check_degree(self.degree, self.degree_along, where)

    def quadrature(self) -> Quadrature:
        along = cubature.gauss_of_degree(max(self.degree, self.degree_along or 0), 0.0, self.length)
        return _swept(*along, *cubature.ring(self.degree, self.inner, self.outer))

    @property
    def volume(self) -> float:
        return pi * (self.outer**2 - self.inner**2) * self.length

    @property
    def places(self) -> dict[str, np.ndarray]:
        return _axis(self.length, self.outer, self.outer)

    def surface(self) -> Surface:
        x = np.linspace(0.0, self.length, surfaces.ALONG)
        return Surface(*surfaces.revolved(x, np.full(len(x), self.outer), np.full(len(x), self.inner)))


@final
@dataclass(frozen=True)
class DomainCone(Domain):
    """Circular cone or truncated cone along x.

    Args:
        length, base_radius, tip_radius: [m]; the tip may be a point, radius 0.
        degree: of the polynomials that the quadrature integrates exactly.
        degree_along: the same along x alone; None is `degree`.
    """

    length: float
    base_radius: float
    tip_radius: float = 0.0
    degree: int = 6
    degree_along: int | None = None

    def check(self, where: str) -> None:
        checks.number(self.length, f"{where}: length", above=0.0)
        checks.number(self.base_radius, f"{where}: base_radius", above=0.0)
        checks.number(self.tip_radius, f"{where}: tip_radius", least=0.0)
        check_degree(self.degree, self.degree_along, where)

    def _radius(self, x: np.ndarray) -> np.ndarray:
        return self.base_radius + (self.tip_radius - self.base_radius) * x / self.length

    def quadrature(self) -> Quadrature:
        # x^a y^b z^c is a polynomial of degree a along x times R(x)^(2+b+c)
        x, w = cubature.gauss_of_degree(max(self.degree, self.degree_along or 0) + 2, 0.0, self.length)
        unit, areas = cubature.ring(self.degree, 0.0, 1.0)
        R = self._radius(x)
        return _swept(x, w, R[:, None, None] * unit, R[:, None] ** 2 * areas)

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


@final
@dataclass(frozen=True)
class DomainBox(Domain):
    """Box along x: x from 0 to the length, y and z centred.

    Args:
        length, width_y, width_z: [m].
        degree: of the polynomials that the quadrature integrates exactly.
        degree_along: the same along x alone; None is `degree`.
    """

    length: float
    width_y: float
    width_z: float
    degree: int = 6
    degree_along: int | None = None

    def check(self, where: str) -> None:
        for name in ("length", "width_y", "width_z"):
            checks.number(getattr(self, name), f"{where}: {name}", above=0.0)
        check_degree(self.degree, self.degree_along, where)

    def quadrature(self) -> Quadrature:
        along = cubature.gauss_of_degree(max(self.degree, self.degree_along or 0), 0.0, self.length)
        (y, a), (z, b) = (cubature.gauss_of_degree(self.degree, -h / 2, h / 2) for h in (self.width_y, self.width_z))
        across = np.stack(np.meshgrid(y, z, indexing="ij"), axis=-1).reshape(-1, 2)
        return _swept(*along, across, np.outer(a, b).ravel())

    @property
    def volume(self) -> float:
        return self.length * self.width_y * self.width_z

    @property
    def places(self) -> dict[str, np.ndarray]:
        return _axis(self.length, self.width_y / 2, self.width_z / 2)

    def surface(self) -> Surface:
        return Surface(*surfaces.box(self.length, self.width_y, self.width_z))
