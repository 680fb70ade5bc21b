"""The fluid around a robot, and the coefficients of its forces on the links.

    added mass   ρ π (b_z², b_y²) across a rod with half-widths b_y, b_z; ρ π (b_y² − b_z²)²/8 about its axis      (1)
    drag         D |v| η,  D = ½ ρ diag(C_t perimeter, C_n 2b_z, C_n 2b_y); lift: C_l 2b off the diagonal          (2)
    rigid body   Lamb's added masses of the ellipsoid of its proportions and volume; drag: C_n times its areas     (3)

Source: Mathew 2025 (62); Armanini et al. 2021 (drag and lift of flagella); Lamb, Hydrodynamics, §§114-115.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import pi
from typing import NamedTuple, final

import numpy as np

from lissom.robot import checks
from lissom.robot.bodies import RigidBody
from lissom.robot.fields import FunctionOfS, FunctionOfT, LinkName
from lissom.robot.sections import Section


class Immersion(NamedTuple):
    """Fluid coefficients of a rigid body, or of a unit length of a rod, in its own axes.

    Fields:
        added: added inertia (6, 6), angular first.
        drag: drag matrix (6, 6), angular first.
        volume: displaced volume [m³], or area for a rod [m²].
        centre: centroid of the displaced volume or area, shape (3,) [m].
    """

    added: np.ndarray
    drag: np.ndarray
    volume: float
    centre: np.ndarray


@final
@dataclass(frozen=True)
class Hydrodynamics:
    """Coefficients of the fluid's forces on a link.

    Args:
        drag_normal, drag_tangent, lift: dimensionless coefficients C_n, C_t and C_l of (2). On a rigid body C_n acts in
            all three directions, each with the projected area of its outline.
        added_mass: dimensionless factor of the added masses (1) or (3); 0 omits them.
        tail: whether the reaction force of the wake acts at the tip of a rod (Lighthill's large-amplitude
            elongated-body theory): V_x p − ½ (p·V) x, with the velocity V of the tip, the axis x, and the momentum p =
            M_A V of the fluid around the tip's section. The added mass along the rod is the other part of that theory.
            A rigid body has no tip.
        added_matrix, drag_matrix: matrices (6, 6) that replace those of the coefficients: per metre for a rod, total
            for a rigid body. Each is a matrix, its diagonal, or on a rod a function of s.
        volume: volume displaced by a rigid body [m³]; None is the volume of its box, cylinder or sphere.
    """

    drag_normal: float = 1.1
    drag_tangent: float = 0.01
    lift: float = 0.0
    added_mass: float = 1.0
    tail: bool = False
    added_matrix: FunctionOfS = None
    drag_matrix: FunctionOfS = None
    volume: float | None = None

    def check(self, where: str) -> None:
        """Raise ModelError unless coefficients and volume are non-negative (the lift: finite), and matrices or
        functions of s have the shape (6, 6)."""
        for name in ("drag_normal", "drag_tangent", "added_mass"):
            checks.number(getattr(self, name), f"{where}: {name}", least=0.0)
        checks.number(self.lift, f"{where}: lift")
        if self.volume is not None:
            checks.number(self.volume, f"{where}: volume", least=0.0)
        for name in ("added_matrix", "drag_matrix"):
            for s in (0.0, 0.5, 1.0):
                self._given(name, np.zeros((6, 6)), s, where)

    def of_rod(self, section: Section, s: float, density: float, where: str) -> Immersion:
        """Fluid coefficients of a unit length of a rod at s."""
        y, z = np.ptp(section.outline(s, 64), axis=0) / 2
        edge = section.outline(s, 512)
        centre = _middle(edge)
        perimeter = float(np.linalg.norm(edge - np.roll(edge, 1, axis=0), axis=1).sum())
        added = self.added_mass * density * pi * np.array([(y * y - z * z) ** 2 / 8, 0, 0, 0, z * z, y * y])
        drag = np.zeros((6, 6))
        along = [self.drag_tangent * perimeter, 2 * self.drag_normal * z, 2 * self.drag_normal * y]
        drag[3:, 3:] = 0.5 * density * (np.diag(along) + 2 * self.lift * np.array([[0, 0, 0], [0, 0, -z], [0, y, 0]]))
        there = np.eye(6)
        there[3:, :3] = np.cross(np.eye(3), centre).T  # the twist of the middle, by that of the centreline
        return Immersion(
            self._given("added_matrix", there.T @ np.diag(added) @ there, s, where),
            self._given("drag_matrix", there.T @ drag @ there, s, where),
            _enclosed(section, s),
            centre,
        )

    def of_body(self, body: RigidBody, density: float, where: str) -> Immersion:
        """Fluid coefficients of a rigid body."""
        rule = "is needed for a body whose form is no box, cylinder or sphere"
        volume = body.volume if self.volume is None else float(self.volume)
        if volume is None:
            raise checks.fail(f"{where}: volume", rule, self.volume)
        added, drag = np.zeros((6, 6)), np.zeros((6, 6))
        if body.form is None:
            for name, unused in (("added_matrix", self.added_mass), ("drag_matrix", self.drag_normal)):
                checks.require(getattr(self, name) is not None or unused == 0.0, f"{where}: {name}", rule, None)
        else:
            added = self.added_mass * density * _ellipsoid(body, volume)
            drag[3:, 3:] = 0.5 * density * self.drag_normal * np.diag(body.areas)
        return Immersion(
            self._given("added_matrix", added, 0.0, where),
            self._given("drag_matrix", drag, 0.0, where),
            volume,
            np.zeros(3) if body.form is not None else np.asarray(body.com, dtype=np.float64),
        )

    def _given(self, name: str, otherwise: np.ndarray, s: float, where: str) -> np.ndarray:
        value = checks.value_at(getattr(self, name), s, f"{where}: {name}")
        if value is None:
            return otherwise
        if name == "added_matrix":
            return checks.symmetric(value, 6, f"{where}: {name}")
        rule = "must be a 6x6 matrix or its diagonal"
        shape = (6, 6) if len(checks.shape(value)) == 2 else (6,)
        matrix = checks.array(value, shape, f"{where}: {name}", rule)
        return matrix if matrix.ndim == 2 else np.diag(matrix)


@final
@dataclass(frozen=True)
class Fluid:
    """The fluid around a robot.

    Args:
        density: density [kg/m³].
        current: velocity of the fluid [m/s]: shape (3,); a function of t that returns (3,); an ls.TracedFunction of (x,
            t), the velocity at the point x; or a Warp function of (x, t) that returns a 6-vector: the velocity at the
            point x, then the acceleration of the fluid particle there [m/s²]. None is a fluid at rest.
        default: coefficients of the links that are not in `links`; with None the fluid does not act on them.
        links: coefficients by link name; the fluid does not act on a link with None.
    """

    density: float
    current: FunctionOfT = None
    default: Hydrodynamics | None = field(default_factory=Hydrodynamics)
    links: dict[LinkName, Hydrodynamics | None] = field(default_factory=dict)

    def felt_by(self, link: str) -> Hydrodynamics | None:
        """The coefficients of a link; None if the fluid does not act on it."""
        return self.links.get(link, self.default)

    def check(self, where: str) -> None:
        """Raise ModelError unless the density is positive, the links have Hydrodynamics or None, and the current is a
        3-vector or a function."""
        checks.number(self.density, f"{where}: density", above=0.0)
        links = [(f"link {name!r}", value) for name, value in self.links.items()]
        for name, value in [("default", self.default), *links]:
            here = f"{where} > {name}"
            fits = value is None or isinstance(value, Hydrodynamics)
            checks.require(fits, here, "must be a Hydrodynamics or None", value)
            if value is not None:
                value.check(here)
        if self.current is not None and not callable(self.current):
            checks.array(self.current, (3,), f"{where}: current", "must be a finite 3-vector or a function")


def _middle(edge: np.ndarray) -> np.ndarray:
    """Centroid (0, y, z) [m] of the area inside an outline (n, 2) [m]. Coordinates that are rounding errors are set to
    0."""
    ahead = np.roll(edge, -1, axis=0)
    cross = edge[:, 0] * ahead[:, 1] - edge[:, 1] * ahead[:, 0]
    centroid = cross @ (edge + ahead) / (3.0 * cross.sum())
    return np.array([0.0, *np.where(np.abs(centroid) > 1e-12 * np.abs(edge).max(), centroid, 0.0)])


def _enclosed(section: Section, s: float) -> float:
    """Area inside the outline of a section at s [m²], extrapolated from two inscribed polygons."""

    def polygon(count: int) -> float:
        y, z = section.outline(s, count).T
        return 0.5 * abs(float(y @ np.roll(z, 1) - z @ np.roll(y, 1)))

    return (4.0 * polygon(1024) - polygon(512)) / 3.0


def _ellipsoid(body: RigidBody, volume: float) -> np.ndarray:
    """Added inertia (6, 6) by Lamb, in a fluid of density 1 kg/m³, of the ellipsoid with the axis ratios of the body's
    outline and the given volume [m³]. Frame: the body's axes at its centre."""
    from scipy.special import elliprd  # imported here: descriptions without a body in a fluid need no SciPy

    a = np.asarray(body.outline, dtype=np.float64)
    a = a * (volume / (4 / 3 * pi * a.prod())) ** (1 / 3)
    square = a * a
    alpha = 2 / 3 * a.prod() * np.array([elliprd(square[k - 2], square[k - 1], square[k]) for k in range(3)])
    mass = alpha / (2.0 - alpha)
    turning = np.zeros(3)
    for k in range(3):
        m, n = (k + 1) % 3, (k + 2) % 3
        d, total, slope = square[m] - square[n], square[m] + square[n], alpha[n] - alpha[m]
        if abs(d) > 1e-9 * total:
            turning[k] = d * d * slope / (5.0 * (2.0 * d - total * slope))
    return volume * np.diag(np.concatenate([turning, mass]))
