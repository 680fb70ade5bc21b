"""Sections whose outline is a polygon."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, final

import numpy as np

from lissom.robot import checks
from lissom.robot.fields import Numbers, Profile
from lissom.robot.functions import profile
from lissom.robot.materials import Material
from lissom.robot.sections import Constitution, Section
from lissom.robot.torsion import Corners, Torsion, torsion

MOST_CORNERS = 1000


class Moments(NamedTuple):
    """Area [m²], centroid (2,) [m] and the moments ∫z², ∫y² and ∫yz [m⁴] of a polygon; whether it is one."""

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

    The centreline runs through the origin of its points. Where that is not the centroid, elongation is coupled with
    bending; where it is not the shear centre, shear is coupled with torsion.

    Args:
        points: corners (y, z) in the order around the section, shape (n, 2) [m].
        scale: what multiplies them; a number, (base, tip) for a linear taper, or a function of s.
        saint_venant: take Saint-Venant's torsion constant and shear centre, by finite elements (which needs the extra
            `sections`), instead of the polar moment and the centroid.
    """

    points: Numbers
    scale: Profile = 1.0
    saint_venant: bool = False

    def constitution(self, s: float, material: Material | None, where: str) -> Constitution:
        if material is None:
            raise checks.fail(where, "needs a material", None)
        corners = self._corners(where)
        m, k = _moments(corners), profile(self.scale, f"{where}: scale")(s)
        plain = Torsion(m.zz + m.yy - m.area * float(m.centroid @ m.centroid), m.centroid)
        twist = torsion(corners, m.centroid, where) if self.saint_venant else plain
        E, G, rho, eta = material.young, material.shear, material.density, material.viscosity
        stiffness = _matrix(m, twist, k, E, G)
        damping = _matrix(m, twist, k, 3 * eta, eta) + material.damping_time * stiffness
        return Constitution(stiffness, _matrix(m, plain, k, rho, rho), damping)

    def outline(self, s: float, count: int = 24) -> np.ndarray:
        points = profile(self.scale, "section: scale")(s) * np.array(self._corners("section"))
        on_edge = np.arange(max(count // len(points), 1)) / max(count // len(points), 1)
        edges = np.roll(points, -1, axis=0) - points
        return (points[:, None] + on_edge[:, None] * edges[:, None]).reshape(-1, 2)

    def inner_radius(self, s: float) -> float:
        points = np.array(self._corners("section"))
        edges = np.roll(points, -1, axis=0) - points
        at = np.clip(-(points * edges).sum(axis=1) / (edges**2).sum(axis=1), 0.0, 1.0)
        nearest = float(np.linalg.norm(points + at[:, None] * edges, axis=1).min())
        return profile(self.scale, "section: scale")(s) * nearest

    def _corners(self, where: str) -> Corners:
        """The points, checked, counter-clockwise."""
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


def _matrix(m: Moments, twist: Torsion, k: float, normal: float, shear: float) -> np.ndarray:
    """∫ normal n nᵀ + shear (t tᵀ + b bᵀ) over the section, scaled by k.

    n, t and b are the strains of a fibre at (y, z) along x, y and z that the strains of the centreline cause. The part
    of shear is that of the torsion constant, and of the area for what shears the section at the centre of twist.
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
    """By Green's theorem; the area is negative where the corners go round clockwise."""
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
    """Whether edges have a length and meet only their neighbours, and those at the corner alone."""
    ends = np.roll(points, -1, axis=0)
    edges = ends - points

    def side(of: np.ndarray) -> np.ndarray:
        """Side of each edge (rows) on which each point lies."""
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
