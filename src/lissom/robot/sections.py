"""Cross-sections of rods. y and z are the section's axes, x its normal; every size may vary with s in [0, 1]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import pi
from typing import Any, NamedTuple, final

import numpy as np

from lissom.robot import checks
from lissom.robot.catalogue import named_values
from lissom.robot.fields import FunctionOfS, Profile
from lissom.robot.functions import profile
from lissom.robot.materials import Material


class Geometry(NamedTuple):
    """Area [m²], second moments about y and z [m⁴] and torsion constant [m⁴] of a section."""

    area: float
    J_y: float
    J_z: float
    J_torsion: float


class Constitution(NamedTuple):
    """Stiffness Σ, inertia per length and damping Υ of a section, each 6x6, angular first, at the centreline."""

    stiffness: np.ndarray
    inertia: np.ndarray
    damping: np.ndarray


class Section(ABC):
    """A cross-section: at each s its Σ, inertia and Υ, and an outline to draw.

    Law: the three matrices are symmetric, Σ and Υ positive semi-definite, the inertia that of a plane lamina.
    """

    @abstractmethod
    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        """The section's matrices at s: Σ [N·m², N], inertia [kg·m, kg/m], Υ [N·m²·s, N·s]."""

    @abstractmethod
    def outline(self, s: float, count: int = 24) -> np.ndarray:
        """Points (y, z) [m] around the section, shape (count, 2)."""

    def hole(self, s: float, count: int = 24) -> np.ndarray:
        """Points (y, z) [m] around its hole, as many as around itself; shape (0, 2) where it has none."""
        return np.zeros((0, 2))

    def radius(self, s: float) -> float:
        """Largest distance of the outline from the centreline [m]."""
        return float(np.linalg.norm(self.outline(s, 64), axis=1).max())

    def inner_radius(self, s: float) -> float:
        """Smallest distance of the outline from the centreline [m]."""
        return float(np.linalg.norm(self.outline(s, 64), axis=1).min())


def from_geometry(g: Geometry, material: Material | None, where: str) -> Constitution:
    """Σ = diag(GJx, EJy, EJz, EA, GA, GA), inertia ρ diag(Jx, Jy, Jz, A, A, A), damping as Material says.

    The inertia's Jx is always the polar moment Jy + Jz; the stiffness takes the torsion constant.
    """
    if material is None:
        raise checks.fail(where, "needs a material", None)
    E, G, rho, eta = material.young, material.shear, material.density, material.viscosity
    polar = g.J_y + g.J_z
    stiffness = np.diag([G * g.J_torsion, E * g.J_y, E * g.J_z, E * g.area, G * g.area, G * g.area])
    inertia = rho * np.diag([polar, g.J_y, g.J_z, g.area, g.area, g.area])
    viscous = np.diag([g.J_torsion, 3 * g.J_y, 3 * g.J_z, 3 * g.area, g.area, g.area])
    return Constitution(stiffness, inertia, eta * viscous + material.damping_time * stiffness)


def _ellipse_points(a: float, b: float, count: int) -> np.ndarray:
    angle = 2 * pi * np.arange(count) / count
    return np.stack([a * np.cos(angle), b * np.sin(angle)], axis=1)


@final
@dataclass(frozen=True)
class SectionCircle(Section):
    """Solid disc.

    Args:
        radius: [m]; a number, (base, tip) for a linear taper, or a function of s.
    """

    radius: Profile  # type: ignore[assignment]

    @classmethod
    def named(cls, name: str) -> SectionCircle:
        """A wire of the catalogue, such as "AWG 24". See `catalogue`."""
        return cls(**named_values(cls.__name__, name))

    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        r = profile(self.radius, f"{where}: radius")(s)
        J = pi * r**4 / 4
        return from_geometry(Geometry(pi * r**2, J, J, 2 * J), material, where)

    def outline(self, s: float, count: int = 24) -> np.ndarray:
        r = profile(self.radius, "section: radius")(s)
        return _ellipse_points(r, r, count)


@final
@dataclass(frozen=True)
class SectionAnnulus(Section):
    """Tube.

    Args:
        outer, inner: radii [m]; each a number, (base, tip) or a function of s.
    """

    outer: Profile
    inner: Profile

    @classmethod
    def named(cls, name: str) -> SectionAnnulus:
        """A needle or tube of the catalogue, such as "18G". See `catalogue`."""
        return cls(**named_values(cls.__name__, name))

    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        r, hole = profile(self.outer, f"{where}: outer")(s), profile(self.inner, f"{where}: inner")(s)
        checks.require(hole < r, f"{where}: inner", f"must be < outer ({r:g}) at s={s:g}", hole)
        J = pi * (r**4 - hole**4) / 4
        return from_geometry(Geometry(pi * (r**2 - hole**2), J, J, 2 * J), material, where)

    def outline(self, s: float, count: int = 24) -> np.ndarray:
        r = profile(self.outer, "section: outer")(s)
        return _ellipse_points(r, r, count)

    def hole(self, s: float, count: int = 24) -> np.ndarray:
        r = profile(self.inner, "section: inner")(s)
        return _ellipse_points(r, r, count)


@final
@dataclass(frozen=True)
class SectionEllipse(Section):
    """Solid ellipse.

    Args:
        semi_axis_y, semi_axis_z: [m]; each a number, (base, tip) or a function of s.
        saint_venant: take the torsion constant πa³b³/(a² + b²) instead of the polar moment.
    """

    semi_axis_y: Profile
    semi_axis_z: Profile
    saint_venant: bool = False

    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        a = profile(self.semi_axis_y, f"{where}: semi_axis_y")(s)
        b = profile(self.semi_axis_z, f"{where}: semi_axis_z")(s)
        J_y, J_z = pi * a * b**3 / 4, pi * a**3 * b / 4
        torsion = pi * a**3 * b**3 / (a**2 + b**2) if self.saint_venant else J_y + J_z
        return from_geometry(Geometry(pi * a * b, J_y, J_z, torsion), material, where)

    def outline(self, s: float, count: int = 24) -> np.ndarray:
        a, b = (profile(v, "section: semi_axis")(s) for v in (self.semi_axis_y, self.semi_axis_z))
        return _ellipse_points(a, b, count)


@final
@dataclass(frozen=True)
class SectionRectangle(Section):
    """Solid rectangle.

    Args:
        width_y, width_z: full widths [m]; each a number, (base, tip) or a function of s.
        saint_venant: take Saint-Venant's torsion constant instead of the polar moment.
    """

    width_y: Profile
    width_z: Profile
    saint_venant: bool = False

    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        b, h = profile(self.width_y, f"{where}: width_y")(s), profile(self.width_z, f"{where}: width_z")(s)
        J_y, J_z = b * h**3 / 12, b**3 * h / 12
        torsion = _rectangle_torsion(max(b, h), min(b, h)) if self.saint_venant else J_y + J_z
        return from_geometry(Geometry(b * h, J_y, J_z, torsion), material, where)

    def outline(self, s: float, count: int = 24) -> np.ndarray:
        b, h = (profile(v, "section: width")(s) for v in (self.width_y, self.width_z))
        side = np.linspace(-1.0, 1.0, max(count // 4, 1), endpoint=False)
        ones = np.ones_like(side)
        y, z = np.concatenate([side, ones, -side, -ones]), np.concatenate([-ones, side, ones, -side])
        return 0.5 * np.stack([b * y, h * z], axis=1)


def _rectangle_torsion(long: float, short: float) -> float:
    """Saint-Venant's series ab³[1/3 − (64/π⁵)(b/a) Σ tanh(nπa/2b)/n⁵], n odd, to rounding.

    Σ 1/n⁵ = 31 ζ(5)/32 over odd n; Σ (1 − tanh)/n⁵, which is left, falls exponentially.
    """
    n = np.arange(1, 20, 2)
    rest = 1.0 - np.tanh(n * pi * long / (2.0 * short))
    series = 31.0 / 32.0 * 1.0369277551433699 - float(np.sum(rest / n**5))
    return long * short**3 * (1 / 3 - 64 / pi**5 * (short / long) * series)


@final
@dataclass(frozen=True)
class SectionGeneral(Section):
    """A section whose matrices are given directly.

    Args:
        stiffness, inertia, damping: each a 6-vector (diagonal), a 6x6 matrix, or a function of s that returns one;
            angular first, inertia per length about the centreline. What is None comes from `shape` and the material,
            except the damping: without `shape` it is the material's damping_time times the stiffness, and without a
            material zero.
        shape: another section that supplies what is None, and the outline.
    """

    stiffness: FunctionOfS = None
    inertia: FunctionOfS = None
    damping: FunctionOfS = None
    shape: Section | None = None

    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        given: dict[str, Any] = {
            name: None if value is None else _matrix(value, s, f"{where}: {name}")
            for name, value in (("stiffness", self.stiffness), ("inertia", self.inertia), ("damping", self.damping))
        }
        is_shape = self.shape is None or isinstance(self.shape, Section)
        checks.require(is_shape, f"{where}: shape", "must be a Section", self.shape)
        missing = [name for name, value in given.items() if value is None]
        if material is None and missing == ["damping"]:
            missing = []  # nothing damps
        if self.shape is not None and missing:
            rule = "comes from the shape and a material; give it, or a material"
            checks.require(material is not None, f"{where}: {', '.join(missing)}", rule, None)
            base = self.shape.constitution(s, material, f"{where} > shape")._asdict()
            given = {name: base[name] if value is None else value for name, value in given.items()}
        for name in ("stiffness", "inertia"):
            checks.require(given[name] is not None, f"{where}: {name}", "is needed without a shape", None)
        if given["damping"] is None:
            time = 0.0 if material is None else material.damping_time
            given["damping"] = time * given["stiffness"]
        return Constitution(given["stiffness"], given["inertia"], given["damping"])

    def outline(self, s: float, count: int = 24) -> np.ndarray:
        if self.shape is not None:
            return self.shape.outline(s, count)
        inertia = _matrix(self.inertia, s, "section: inertia")
        a, b = 2 * np.sqrt(np.diag(inertia)[[2, 1]] / inertia[3, 3])
        return _ellipse_points(a, b, count)

    def hole(self, s: float, count: int = 24) -> np.ndarray:
        return super().hole(s, count) if self.shape is None else self.shape.hole(s, count)


def _matrix(value: Any, s: float, where: str) -> np.ndarray:
    return checks.symmetric(checks.value_at(value, s, where), 6, where)
