"""Cross-sections of rods. y and z are the section's axes, x its normal. Sizes may vary with s in [0, 1].

The torsion constant and the shear centre of a polygon may be taken from Saint-Venant's problem. Finite elements then
give an upper and a lower bound of the torsion constant.

A bar that is twisted by 1 rad/m carries the shear stress G τ, and its torque is G J. The warping function ω, Prandtl's
stress function φ, which vanishes on the boundary, and their approximations by finite elements satisfy

    τ = (∂ω/∂y − z, ∂ω/∂z + y),     J <= ∫ |τ|²                                                               (1)
    τ = (∂φ/∂z, −∂φ/∂y),            J >= ∫ |τ|² = 2 ∫ φ                                                       (2)
    upper bound − lower bound = ∫ |τ of (1) − τ of (2)|²                                                      (3)

(Prager and Synge 1947). Elements with a large share in (3) are refined; most of them are at reentrant corners. The
section turns about its shear centre e, where the warping does no work with bending (Trefftz 1935):

    ∫ (ω − e_z y + e_y z) y = ∫ (ω − e_z y + e_y z) z = 0,     y and z from the centroid                      (4)

A force through e bends the bar without twist.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import pi
from typing import Any, NamedTuple, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.fields import FunctionOfS, Numbers, Profile
from lissom.robot.functions import is_constant, profile
from lissom.robot.materials import Material, named_values

MOST_CORNERS = 1000
TORSION_ACCURACY = 5e-6  # half the distance between the bounds, relative to the lower one
TORSION_ROUNDS = 60
REFINED_SHARE = 0.2  # an element is refined if its share in (3) exceeds this fraction of the largest share
Corners = tuple[tuple[float, float], ...]


class Geometry(NamedTuple):
    """Area [m²], second moments of area about y and z [m⁴] and torsion constant [m⁴] of a section."""

    area: float
    J_y: float
    J_z: float
    J_torsion: float


class Constitution(NamedTuple):
    """Stiffness Σ, inertia per length and damping Υ of a section, each (6, 6), angular first, about the centreline."""

    stiffness: np.ndarray
    inertia: np.ndarray
    damping: np.ndarray


class ShearStresses(NamedTuple):
    """Shear stresses (τ_xy, τ_xz) at n points of a section, (n, 2) each: per torque [1/m³], and per shear force along y
    and along z [1/m²]."""

    torque: np.ndarray
    force_y: np.ndarray
    force_z: np.ndarray


class Section(ABC):
    """A cross-section. It gives the stiffness Σ, the inertia, the damping Υ and an outline at each s.

    Law: the three matrices are symmetric. Σ and Υ are positive semi-definite. The inertia is the one of a plane lamina.
    """

    @abstractmethod
    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        """The section's matrices at s: Σ [N·m², N], inertia [kg·m, kg/m], Υ [N·m²·s, N·s]."""

    @property
    def is_uniform(self) -> bool:
        """Whether the matrices are known to be the same at every s. They are then computed once for a rod."""
        return False

    @abstractmethod
    def outline(self, s: float, count: int = 24) -> np.ndarray:
        """Points (y, z) [m] around the section, shape (count, 2)."""

    def hole(self, s: float, count: int = 24) -> np.ndarray:
        """Points (y, z) [m] around the hole of the section, shape (count, 2); shape (0, 2) if there is no hole."""
        return np.zeros((0, 2))

    def shear_stresses(self, s: float, points: np.ndarray, where: str) -> ShearStresses:
        """Shear stresses at points (n, 2) of the outline [m], of a homogeneous section: of a torque by Saint-Venant, of
        shear forces by Jourawski's formula V Q / (J b) and along the outline.

        Raises:
            ModelError: the class has no such formula.
        """
        rule = "has no formula for shear stresses: leave them out by shear=False"
        raise ModelError(f"{where}: {type(self).__name__} {rule}")

    def radius(self, s: float) -> float:
        """Largest distance of the outline from the centreline [m]."""
        return float(np.linalg.norm(self.outline(s, 64), axis=1).max())

    def inner_radius(self, s: float) -> float:
        """Smallest distance of the outline from the centreline [m]."""
        return float(np.linalg.norm(self.outline(s, 64), axis=1).min())


def from_geometry(g: Geometry, material: Material | None, where: str) -> Constitution:
    """Section matrices: Σ = diag(GJx, EJy, EJz, EA, GA, GA), inertia ρ diag(Jx, Jy, Jz, A, A, A), damping as in
    Material.

    Jx of the inertia is the polar moment Jy + Jz. Jx of the stiffness is the torsion constant.
    """
    if material is None:
        raise checks.fail(where, "needs a material", None)
    E, G, rho, eta = material.young, material.shear, material.density, material.viscosity
    polar = g.J_y + g.J_z
    stiffness, inertia, viscous = np.zeros((3, 6, 6))
    stiffness.flat[::7] = G * g.J_torsion, E * g.J_y, E * g.J_z, E * g.area, G * g.area, G * g.area
    inertia.flat[::7] = rho * polar, rho * g.J_y, rho * g.J_z, rho * g.area, rho * g.area, rho * g.area
    viscous.flat[::7] = g.J_torsion, 3 * g.J_y, 3 * g.J_z, 3 * g.area, g.area, g.area
    return Constitution(stiffness, inertia, eta * viscous + material.damping_time * stiffness)


def _elliptic_stresses(a: float, b: float, hole: float, points: np.ndarray) -> ShearStresses:
    """Shear stresses on the outline of an ellipse with semi-axes a and b, or of a tube of radius a = b with a hole.

    Torque: φ = T (1 − y²/a² − z²/b²)/(π a b) of a solid ellipse; T r/J in a tube. Shear force along y: the mean over
    the cut at y is V Q/(J_z w) with the moment Q of the part beyond and the width w; the stress follows the outline.
    """
    y, z = points.T
    J_y, J_z = pi * (a * b**3 - hole**4) / 4, pi * (a**3 * b - hole**4) / 4
    if hole:
        torque = np.stack([-z, y], axis=1) / (J_y + J_z)
    else:
        torque = 2.0 / (pi * a * b) * np.stack([-z / b**2, y / a**2], axis=1)
    return ShearStresses(
        torque, _along_ellipse(a, b, hole, J_z, points), _along_ellipse(b, a, hole, J_y, points[:, ::-1])[:, ::-1]
    )


def _along_ellipse(a: float, b: float, hole: float, J: float, points: np.ndarray) -> np.ndarray:
    """(τ_xy, τ_xz)/V of a shear force along y on the outline of an ellipse with semi-axes a along y and b along z."""
    cos, sin = points[:, 0] / a, points[:, 1] / b
    solid = np.stack([(a * sin) ** 2, -a * b * sin * cos], axis=1) / (3.0 * J)  # Q/w = a² (1 − y²/a²)/3
    if not hole:
        return solid
    inner = np.sqrt(np.maximum(hole**2 - (a * cos) ** 2, 0.0))  # half the width of the cut through the hole
    outer = np.maximum(a * np.abs(sin), 1e-300)
    share = inner / outer  # (outer³ − inner³)/(outer² (outer − inner)) is the ratio of Q/w to that without a hole
    return (1.0 + share + share**2)[:, None] * solid


def _ellipse_points(a: float, b: float, count: int) -> np.ndarray:
    angle = 2 * pi * np.arange(count) / count
    return np.stack([a * np.cos(angle), b * np.sin(angle)], axis=1)


@final
@dataclass(frozen=True)
class SectionCircle(Section):
    """Solid circle.

    Args:
        radius: radius [m]: a number, (base, tip) for a linear taper, or a function of s. It may be zero at an end,
            where the rod tapers to a point.
    """

    radius: Profile  # type: ignore[assignment]

    @classmethod
    def named(cls, name: str) -> SectionCircle:
        """A wire of the catalogue, such as "AWG 24"; see `catalogue`."""
        return cls(**named_values(cls.__name__, name))

    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        r = profile(self.radius, f"{where}: radius", may_end=True)(s)
        J = pi * r**4 / 4
        return from_geometry(Geometry(pi * r**2, J, J, 2 * J), material, where)

    @property
    def is_uniform(self) -> bool:
        return is_constant(self.radius)

    def outline(self, s: float, count: int = 24) -> np.ndarray:
        r = profile(self.radius, "section: radius", may_end=True)(s)
        return _ellipse_points(r, r, count)

    def shear_stresses(self, s: float, points: np.ndarray, where: str) -> ShearStresses:
        r = profile(self.radius, f"{where}: radius")(s)
        return _elliptic_stresses(r, r, 0.0, points)


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
        """A needle or tube of the catalogue, such as "18G"; see `catalogue`."""
        return cls(**named_values(cls.__name__, name))

    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        r, hole = profile(self.outer, f"{where}: outer")(s), profile(self.inner, f"{where}: inner")(s)
        checks.require(hole < r, f"{where}: inner", f"must be < outer ({r:g}) at s={s:g}", hole)
        J = pi * (r**4 - hole**4) / 4
        return from_geometry(Geometry(pi * (r**2 - hole**2), J, J, 2 * J), material, where)

    @property
    def is_uniform(self) -> bool:
        return is_constant(self.outer, self.inner)

    def outline(self, s: float, count: int = 24) -> np.ndarray:
        r = profile(self.outer, "section: outer")(s)
        return _ellipse_points(r, r, count)

    def hole(self, s: float, count: int = 24) -> np.ndarray:
        r = profile(self.inner, "section: inner")(s)
        return _ellipse_points(r, r, count)

    def shear_stresses(self, s: float, points: np.ndarray, where: str) -> ShearStresses:
        r, hole = profile(self.outer, f"{where}: outer")(s), profile(self.inner, f"{where}: inner")(s)
        return _elliptic_stresses(r, r, hole, points)


@final
@dataclass(frozen=True)
class SectionEllipse(Section):
    """Solid ellipse.

    Args:
        semi_axis_y, semi_axis_z: semi-axes a and b [m]; each a number, (base, tip) or a function of s.
        saint_venant: True takes the torsion constant πa³b³/(a² + b²), False the polar moment.
    """

    semi_axis_y: Profile
    semi_axis_z: Profile
    saint_venant: bool = False

    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        a = profile(self.semi_axis_y, f"{where}: semi_axis_y", may_end=True)(s)
        b = profile(self.semi_axis_z, f"{where}: semi_axis_z", may_end=True)(s)
        J_y, J_z = pi * a * b**3 / 4, pi * a**3 * b / 4
        torsion = pi * a**3 * b**3 / (a**2 + b**2) if self.saint_venant else J_y + J_z
        return from_geometry(Geometry(pi * a * b, J_y, J_z, torsion), material, where)

    @property
    def is_uniform(self) -> bool:
        return is_constant(self.semi_axis_y, self.semi_axis_z)

    def outline(self, s: float, count: int = 24) -> np.ndarray:
        a, b = (profile(v, "section: semi_axis", may_end=True)(s) for v in (self.semi_axis_y, self.semi_axis_z))
        return _ellipse_points(a, b, count)

    def shear_stresses(self, s: float, points: np.ndarray, where: str) -> ShearStresses:
        a, b = (profile(v, f"{where}: semi_axis")(s) for v in (self.semi_axis_y, self.semi_axis_z))
        return _elliptic_stresses(a, b, 0.0, points)


@final
@dataclass(frozen=True)
class SectionRectangle(Section):
    """Solid rectangle.

    Args:
        width_y, width_z: full widths [m]; each a number, (base, tip) or a function of s.
        saint_venant: True takes Saint-Venant's torsion constant, False the polar moment.
    """

    width_y: Profile
    width_z: Profile
    saint_venant: bool = False

    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        b, h = (
            profile(self.width_y, f"{where}: width_y", may_end=True)(s),
            profile(self.width_z, f"{where}: width_z", may_end=True)(s),
        )
        J_y, J_z = b * h**3 / 12, b**3 * h / 12
        torsion = _rectangle_torsion(max(b, h), min(b, h)) if self.saint_venant else J_y + J_z
        return from_geometry(Geometry(b * h, J_y, J_z, torsion), material, where)

    @property
    def is_uniform(self) -> bool:
        return is_constant(self.width_y, self.width_z)

    def outline(self, s: float, count: int = 24) -> np.ndarray:
        b, h = (profile(v, "section: width", may_end=True)(s) for v in (self.width_y, self.width_z))
        side = np.linspace(-1.0, 1.0, max(count // 4, 1), endpoint=False)
        ones = np.ones_like(side)
        y, z = np.concatenate([side, ones, -side, -ones]), np.concatenate([-ones, side, ones, -side])
        return 0.5 * np.stack([b * y, h * z], axis=1)

    def shear_stresses(self, s: float, points: np.ndarray, where: str) -> ShearStresses:
        b, h = (profile(v, f"{where}: width")(s) for v in (self.width_y, self.width_z))
        y, z = points.T
        force_y = np.stack([1.5 / (b * h) * (1.0 - (2.0 * y / b) ** 2), 0.0 * y], axis=1)  # V Q/(J h)
        force_z = np.stack([0.0 * z, 1.5 / (b * h) * (1.0 - (2.0 * z / h) ** 2)], axis=1)
        return ShearStresses(_rectangle_stresses(b, h, points), force_y, force_z)


def _rectangle_torsion(long: float, short: float) -> float:
    """Saint-Venant's series ab³[1/3 − (64/π⁵)(b/a) Σ tanh(nπa/2b)/n⁵] over odd n, with sides a >= b, exact to rounding.

    Over odd n, Σ 1/n⁵ = 31 ζ(5)/32. The terms of the remaining sum, Σ (1 − tanh)/n⁵, decrease exponentially.
    """
    n = np.arange(1, 20, 2)
    rest = 1.0 - np.tanh(n * pi * long / (2.0 * short))
    series = 31.0 / 32.0 * 1.0369277551433699 - float(np.sum(rest / n**5))
    return long * short**3 * (1 / 3 - 64 / pi**5 * (short / long) * series)


_TERMS = 2000  # of the series for stresses of a rectangle; more matter only next to its corners


def _rectangle_stresses(b: float, h: float, points: np.ndarray) -> np.ndarray:
    """(τ_xy, τ_xz)/T on the outline of a rectangle b by h under a torque T, (n, 2), by Saint-Venant's series.

    On the sides y = ±b/2 the stress along z is, with n odd and G θ = T/J,

        τ_xz = ± (8 G θ b / π²) Σ (1/n²) [1 − cosh(nπz/b)/cosh(nπh/2b)]

    and the same with y and z exchanged, and the other sign, on the sides z = ±h/2.
    """
    J, out = _rectangle_torsion(max(b, h), min(b, h)), np.zeros(points.shape)
    on_y = np.abs(points[:, 0]) / b >= np.abs(points[:, 1]) / h
    n = np.arange(1, 2 * _TERMS, 2)
    for side, axis, width, other, sign in ((on_y, 0, b, h, 1.0), (~on_y, 1, h, b, -1.0)):
        along = np.abs(points[side, 1 - axis])[:, None]
        turns = n * pi / width
        ratio = np.exp(turns * (along - other / 2)) * (1.0 + np.exp(-2 * turns * along)) / (1 + np.exp(-turns * other))
        size = 8.0 * width / pi**2 * (pi**2 / 8 - np.sum(ratio / n**2, axis=1)) / J
        out[side, 1 - axis] = sign * np.sign(points[side, axis]) * size
    return out


@final
@dataclass(frozen=True)
class SectionGeneral(Section):
    """A section with given matrices.

    Args:
        stiffness, inertia, damping: section matrices about the centreline, angular first; the inertia is per length.
            Each is a 6-vector (diagonal), a (6, 6) matrix, or a function of s that returns one of these. A matrix that
            is None follows from `shape` and the material. Damping needs no `shape`: without one it is the material's
            damping_time times the stiffness, or zero without a material.
        shape: another section that supplies the outline, and the matrices that are None.
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
            missing = []  # the section has no damping
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

    def shear_stresses(self, s: float, points: np.ndarray, where: str) -> ShearStresses:
        if self.shape is None:
            return super().shear_stresses(s, points, where)
        return self.shape.shear_stresses(s, points, f"{where} > shape")


def _matrix(value: Any, s: float, where: str) -> np.ndarray:
    return checks.symmetric(checks.value_at(value, s, where), 6, where)


class Moments(NamedTuple):
    """Moments of a polygon.

    Fields:
        area: area [m²].
        centroid: centroid (y, z) [m].
        zz, yy, yz: ∫z², ∫y² and ∫yz [m⁴].
        is_simple: whether its edges meet only at their common corners.
    """

    area: float
    centroid: np.ndarray
    zz: float
    yy: float
    yz: float
    is_simple: bool


@final
@dataclass(frozen=True)
class SectionPolygon(Section):
    """Solid polygon.

    The centreline runs through the origin (0, 0) of the points. If the origin is not the centroid, elongation and
    bending are coupled. If the origin is not the shear centre, shear and torsion are coupled.

    Args:
        points: corners (y, z) in the order around the section, shape (n, 2) [m].
        scale: factor of the points: a number, (base, tip) for a linear taper, or a function of s.
        saint_venant: True takes the torsion constant and the shear centre of Saint-Venant's problem, solved by finite
            elements (extra `sections`). False takes the polar moment and the centroid.
    """

    points: Numbers
    scale: Profile = 1.0
    saint_venant: bool = False

    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        if material is None:
            raise checks.fail(where, "needs a material", None)
        corners = self._corners(where)
        m, k = _moments(corners), profile(self.scale, f"{where}: scale", may_end=True)(s)
        plain = Torsion(m.zz + m.yy - m.area * float(m.centroid @ m.centroid), m.centroid)
        twist = torsion(corners, m.centroid, where) if self.saint_venant else plain
        E, G, rho, eta = material.young, material.shear, material.density, material.viscosity
        stiffness = _polygon_matrix(m, twist, k, E, G)
        damping = _polygon_matrix(m, twist, k, 3 * eta, eta) + material.damping_time * stiffness
        return Constitution(stiffness, _polygon_matrix(m, plain, k, rho, rho), damping)

    @property
    def is_uniform(self) -> bool:
        return is_constant(self.scale)

    def outline(self, s: float, count: int = 24) -> np.ndarray:
        points = profile(self.scale, "section: scale", may_end=True)(s) * np.array(self._corners("section"))
        on_edge = np.arange(max(count // len(points), 1)) / max(count // len(points), 1)
        edges = np.roll(points, -1, axis=0) - points
        return (points[:, None] + on_edge[:, None] * edges[:, None]).reshape(-1, 2)

    def inner_radius(self, s: float) -> float:
        points = np.array(self._corners("section"))
        edges = np.roll(points, -1, axis=0) - points
        at = np.clip(-(points * edges).sum(axis=1) / (edges**2).sum(axis=1), 0.0, 1.0)
        nearest = float(np.linalg.norm(points + at[:, None] * edges, axis=1).min())
        return profile(self.scale, "section: scale", may_end=True)(s) * nearest

    def _corners(self, where: str) -> Corners:
        """The checked points in counter-clockwise order."""
        where = f"{where}: points"
        points = checks.array(self.points, (-1, 2), where, "must be rows (y, z)")
        checks.require(len(points) >= 3, where, "must be at least 3", len(points))
        checks.require(len(points) <= MOST_CORNERS, where, f"must be at most {MOST_CORNERS}", len(points))
        corners = tuple(map(tuple, points.tolist()))
        m = _moments(corners)
        size = float(np.ptp(points, axis=0).max())
        rule = "must be the corners of a polygon with an area, whose edges have a length and do not meet elsewhere"
        checks.require(m.is_simple and abs(m.area) > 1e-9 * size**2, where, rule, self.points)
        return corners if m.area > 0.0 else corners[::-1]


def _polygon_matrix(m: Moments, twist: Torsion, k: float, normal: float, shear: float) -> np.ndarray:
    """∫ normal n nᵀ + shear (t tᵀ + b bᵀ) over the section, scaled by k.

    n, t and b are the strains of a fibre at (y, z) along x, y and z, per strain of the centreline. In the part with
    `shear`, twist enters with the torsion constant, and the shear strains at the centre of twist with the area.
    """
    a, (cy, cz), (ey, ez) = k**2 * m.area, k * m.centroid, k * twist.centre
    zz, yy, yz, turning = k**4 * np.array([m.zz, m.yy, m.yz, twist.constant])
    out = np.zeros((6, 6))
    out[1:4, 1:4] = normal * np.array([[zz, -yz, a * cz], [-yz, yy, -a * cy], [a * cz, -a * cy, a]])
    t, b = np.array([-ez, 1.0, 0.0]), np.array([ey, 0.0, 1.0])
    sheared = a * (np.outer(t, t) + np.outer(b, b))
    sheared[0, 0] += turning
    out[np.ix_((0, 4, 5), (0, 4, 5))] = shear * sheared
    return out


@lru_cache(maxsize=256)
def _moments(corners: Corners) -> Moments:
    """Moments of a polygon by Green's theorem. The area is negative for clockwise corners."""
    points = np.array(corners)
    y, z = points.T
    Y, Z = np.roll(points, -1, axis=0).T
    cross = y * Z - Y * z
    area = float(cross.sum()) / 2
    first = np.array([(cross * (y + Y)).sum(), (cross * (z + Z)).sum()]) / 6
    zz, yy = (float((cross * (x * x + x * X + X * X)).sum()) / 12 for x, X in ((z, Z), (y, Y)))
    yz = float((cross * (y * Z + 2 * y * z + 2 * Y * Z + Y * z)).sum()) / 24
    centroid = first / area if area else np.zeros(2)
    return Moments(area, centroid, zz, yy, yz, _is_simple(points))


def _is_simple(points: np.ndarray) -> bool:
    """Whether each edge has a length, and meets only its two neighbours, at their common corners."""
    ends = np.roll(points, -1, axis=0)
    edges = ends - points

    def side(of: np.ndarray) -> np.ndarray:
        """Side of each edge (row) on which each point (column) lies: -1, 0 or 1."""
        offset = of[None] - points[:, None]
        return np.sign(edges[:, None, 0] * offset[..., 1] - edges[:, None, 1] * offset[..., 0])

    straddles = side(points) * side(ends) <= 0
    low, high = np.minimum(points, ends), np.maximum(points, ends)
    near = ((low[:, None] <= high) & (low <= high[:, None])).all(axis=-1)
    n = len(points)
    apart = (np.arange(n)[:, None] - np.arange(n)) % n
    far = (apart > 1) & (apart < n - 1)
    ahead = np.roll(edges, -1, axis=0)
    folds = (edges[:, 0] * ahead[:, 1] == edges[:, 1] * ahead[:, 0]) & ((edges * ahead).sum(axis=1) < 0.0)
    lengths = bool((edges != 0.0).any(axis=1).all())
    return lengths and not folds.any() and not (straddles & straddles.T & near & far).any()


class Torsion(NamedTuple):
    """Torsion constant J [m⁴] and shear centre (y, z) [m]."""

    constant: float
    centre: np.ndarray


def torsion(corners: Corners, centroid: np.ndarray, where: str) -> Torsion:
    """Torsion constant and shear centre of a polygon with ordered corners.

    Raises:
        ModelError: the packages that it needs are not installed.
    Accuracy: relative error of J below TORSION_ACCURACY.
    """
    try:
        import shapely  # noqa: F401  (optional, heavy)
        import skfem  # noqa: F401  (optional, heavy)
    except ImportError as error:
        needs = "Saint-Venant torsion of a polygon needs scikit-fem and shapely (pip install 'lissom[sections]')"
        raise ModelError(f"{where}: {needs}; {error}") from error
    points = np.array(corners) - centroid
    size = float(np.abs(points).max())
    scaled = _solved(tuple(map(tuple, (points / size).tolist())))
    return Torsion(size**4 * scaled.constant, centroid + size * scaled.centre)


@lru_cache(maxsize=64)
def _solved(corners: Corners) -> Torsion:
    """Torsion constant and shear centre of a polygon of size 1 with its centroid at the origin."""
    import skfem

    mesh, gap, lower = _triangles(np.array(corners)), np.inf, 1.0
    for _ in range(TORSION_ROUNDS):
        basis: Any = skfem.Basis(mesh, skfem.ElementTriP4(), intorder=8)
        omega, phi, lower = _potentials(basis)
        (y, z), slope, stress = basis.global_coordinates(), basis.interpolate(omega).grad, basis.interpolate(phi).grad
        share = (((slope[0] - z - stress[1]) ** 2 + (slope[1] + y + stress[0]) ** 2) * basis.dx).sum(axis=1)  # (3)
        gap = float(share.sum())
        if gap <= 2.0 * TORSION_ACCURACY * lower:
            return Torsion(lower + gap / 2, _centre(basis, omega))
        mesh = mesh.refined(np.flatnonzero(share > REFINED_SHARE * share.max()))
    raise ModelError(f"the torsion constant of a polygon lies between bounds that are {gap / lower:.1e} of it apart "
                     f"after {TORSION_ROUNDS} refinements; round corners that are much sharper, and drop edges that "
                     "are much shorter, than the others")  # fmt: skip


def _triangles(points: np.ndarray) -> Any:
    """A mesh of triangles whose vertices are the corners of a polygon."""
    import shapely
    import skfem

    pieces = shapely.constrained_delaunay_triangles(shapely.Polygon(points)).geoms
    rows = np.array([shapely.get_coordinates(piece)[:3] for piece in pieces])
    index = np.linalg.norm(rows[:, :, None] - points, axis=-1).argmin(axis=-1)
    return skfem.MeshTri(points.T.copy(), index.T.copy())


def _potentials(basis: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients of ω and φ on the finite elements, and the lower bound (2)."""
    import skfem

    @skfem.BilinearForm
    def laplacian(u: Any, v: Any, w: Any) -> Any:
        return u.grad[0] * v.grad[0] + u.grad[1] * v.grad[1]

    @skfem.LinearForm
    def turning(v: Any, w: Any) -> Any:
        return w.x[1] * v.grad[0] - w.x[0] * v.grad[1]

    @skfem.LinearForm
    def pressure(v: Any, w: Any) -> Any:
        return 2.0 * v

    K, f, p = laplacian.assemble(basis), turning.assemble(basis), pressure.assemble(basis)
    omega: Any = skfem.solve(*skfem.condense(K, f, D=np.array([0])))  # ω up to a constant
    phi: Any = skfem.solve(*skfem.condense(K, p, D=basis.get_dofs()))
    return omega, phi, float(p @ phi)


def _centre(basis: Any, omega: np.ndarray) -> np.ndarray:
    """Shear centre e of (4), shape (2,)."""
    (y, z), w, dx = basis.global_coordinates(), basis.interpolate(omega), basis.dx
    yy, zz, yz, wy, wz = (float((a * b * dx).sum()) for a, b in ((y, y), (z, z), (y, z), (w, y), (w, z)))
    return np.linalg.solve([[yz, -yy], [zz, -yz]], [-wy, -wz])
