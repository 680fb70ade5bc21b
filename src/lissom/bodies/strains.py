"""Slender bodies whose cross-sections follow a line with given strains, as in Cosserat rods.

Sections are rigid, or an inflation makes them grow. JAX evaluates points; for the choice of a quadrature, NumPy does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import pi
from typing import Any, NamedTuple, final

import numpy as np
from numpy.polynomial import chebyshev

from lissom.bodies import twists
from lissom.bodies.domains import Domain
from lissom.bodies.enrichment import Enriched, further, further_modes
from lissom.bodies.evaluation import Samples, in_chunks, shared_by_equals
from lissom.bodies.kinematics import Kinematics, Modes, check_modes, mode_count, mode_values
from lissom.bodies.materials import Hyperelastic
from lissom.robot import checks
from lissom.robot.bases import Basis, BasisCustom, BasisMonomial, BasisPiecewiseConstant, enriched_basis
from lissom.robot.poses import compiled

STEPS = 8  # number of integrator steps without a body that chooses it
_STRAIGHT = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
_DEGREES = (4, 8, 16, 32, 64)
_RESOLVED = 1e-14  # largest last coefficients of a converged series, relative to the largest of all
_GAUSS = 0.5 + np.array([-0.5, 0.0, 0.5]) * 0.6**0.5


class Inflation(ABC):
    """Growth of cross-sections.

    Law: a point (y, z) of the section at s moves to (1 + Σ growth_k(s, y, z) θ_k) (y, z) in its section.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of coordinates."""

    @property
    def breaks_around(self) -> tuple[float, ...]:
        """Angles in [0, 1), in turns from +y towards +z, at which growth is not smooth or changes fast."""
        return ()

    @abstractmethod
    def growth(self, s: Any, y: Any, z: Any) -> Any:
        """growth_k of the law at a point, shape (size,), written with jax.numpy."""

    def enriched(self, domain: Domain) -> Inflation:
        """This growth, followed by its products with polynomials, on the sections of a body."""
        return _further_growth(self, _along, domain)

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError if a field of the inflation is invalid."""


@final
@dataclass(frozen=True)
class InflationUniform(Inflation):
    """Uniform growth of the whole section.

    Args:
        modes: growth as a function of s (dimensionless): polynomials, each a list of coefficients by ascending power of
            s; or a function of s that returns k values, shape (k,).
    """

    modes: Modes

    @property
    def size(self) -> int:
        return mode_count(self.modes)

    def growth(self, s: Any, y: Any, z: Any) -> Any:
        return mode_values(self.modes, s)

    def enriched(self, domain: Domain) -> Inflation:
        return InflationUniform(further_modes(self.modes))

    def check(self, where: str) -> None:
        check_modes(self.modes, f"{where}: modes")


@final
@dataclass(frozen=True)
class InflationBumps(Inflation):
    """Bumps on the side of a body, as inflated chambers make them. Each bump has one coordinate: the relative radial
    growth at its centre.

        growth = B(2s − 1, a) B(2 (φ − φ_0)/w, b),   B(u, a) = exp(a − a/(1 − u²)) for |u| < 1, otherwise 0

    s = x/length, and φ is the angle about x, from +y towards +z. The growth is smooth everywhere. Pustina 2025,
    simulation 4, has two bumps, each half a turn wide, with a = 4/length (length in metres) and b = 4/π², and without
    the factor exp(a) that makes B(0, a) = 1.

    Args:
        angles: φ_0 of each bump [rad].
        width: w, the full width of each bump around the body [rad].
        sharpness_along, sharpness_around: a and b, dimensionless; larger values give narrower bumps.
    """

    angles: Sequence[float] = (pi / 2, -pi / 2)
    width: float = pi
    sharpness_along: float = 1.0
    sharpness_around: float = 4.0 / pi**2

    @property
    def size(self) -> int:
        return len(self.angles)

    @property
    def breaks_around(self) -> tuple[float, ...]:
        """The edges of the bumps, in turns."""
        edges = [(angle + side * 0.5 * self.width) / (2 * pi) % 1.0 for angle in self.angles for side in (-1, 1)]
        edges = sorted(
            edge for k, edge in enumerate(edges) if all(_angle_between(edge, other) > 1e-9 for other in edges[:k])
        )
        return tuple(edges)

    def check(self, where: str) -> None:
        angles = checks.array(self.angles, (-1,), f"{where}: angles", "must be a list of finite numbers")
        checks.require(len(angles) > 0, f"{where}: angles", "must hold at least one", self.angles)
        width = checks.number(self.width, f"{where}: width", above=0.0)
        checks.require(width <= 2 * pi, f"{where}: width", "must be at most a turn, 2π", self.width)
        for name in ("sharpness_along", "sharpness_around"):
            checks.number(getattr(self, name), f"{where}: {name}", above=0.0)

    def growth(self, s: Any, y: Any, z: Any) -> Any:
        along = _bump(2.0 * s - 1.0, self.sharpness_along)
        return along * _bump(self._away(y, z), self.sharpness_around)

    def enriched(self, domain: Domain) -> Inflation:
        """The bumps, followed by their products with polynomials along the body and around it."""
        return _further_growth(
            self, lambda s, y, z: [*_along(s, y, z), self._away(y, z), self._away(y, z) ** 2], domain
        )

    def _away(self, y: Any, z: Any) -> Any:
        """Angles from the centre of each bump, in half widths, shape (size,)."""
        import jax.numpy as jnp

        axis = y * y + z * z == 0.0  # no angle and no growth there
        y = jnp.where(axis, 1.0, y)
        cosine, sine = jnp.cos(jnp.asarray(self.angles)), jnp.sin(jnp.asarray(self.angles))
        return 2.0 * jnp.arctan2(z * cosine - y * sine, y * cosine + z * sine) / self.width


def _angle_between(a: float, b: float) -> float:
    """The absolute difference of two angles, in turns."""
    return abs((a - b + 0.5) % 1.0 - 0.5)


def _bump(u: Any, sharpness: float) -> Any:
    """B(u, a) = exp(a − a/(1 − u²)) with a = sharpness, and zero if it underflows."""
    import jax.numpy as jnp

    t = 1.0 - u * u
    inside = t > sharpness / 700.0
    return jnp.where(inside, jnp.exp(sharpness - sharpness / jnp.where(inside, t, 1.0)), 0.0)


def _along(s: Any, y: Any, z: Any) -> list[Any]:
    """Polynomials of s that multiply the growth."""
    return [2.0 * s - 1.0, (2.0 * s - 1.0) ** 2]


def _further_growth(inflation: Inflation, factors: Callable[[Any, Any, Any], list[Any]], domain: Domain) -> Inflation:
    """A growth, followed by the parts of its products with factors that are outside its span, at the points of a
    domain."""
    import jax
    import jax.numpy as jnp

    def products(s: Any, y: Any, z: Any) -> Any:
        own = inflation.growth(s, y, z)
        return jnp.concatenate([own, *(own * factor for factor in factors(s, y, z))])

    x = domain.points
    values = np.asarray(
        compiled(jax.vmap(products))(x[:, 0] / np.ptp(domain.surface().vertices[:, 0]), x[:, 1], x[:, 2])
    )
    return _FurtherGrowth(inflation, products, further(values[:, : inflation.size], values[:, inflation.size :]))


@final
@dataclass(frozen=True, eq=False)
class _FurtherGrowth(Inflation):
    """A growth, followed by combinations of its products, with coefficients `combinations` (products, m)."""

    own: Inflation
    products: Callable[[Any, Any, Any], Any]
    combinations: np.ndarray

    @property
    def size(self) -> int:
        return self.own.size + self.combinations.shape[1]

    @property
    def breaks_around(self) -> tuple[float, ...]:
        return self.own.breaks_around

    def growth(self, s: Any, y: Any, z: Any) -> Any:
        import jax.numpy as jnp

        found = self.products(s, y, z)
        return jnp.concatenate([found[: self.own.size], found @ self.combinations])

    def check(self, where: str) -> None:
        self.own.check(where)


class _Pieces(NamedTuple):
    """Φ between the breaks of a basis: starts and ends of the intervals (p,), and Chebyshev coefficients (p, degree +
    1, 6, n)."""

    starts: np.ndarray
    ends: np.ndarray
    coefficients: np.ndarray


@final
@dataclass(frozen=True)
class KinematicsStrain(Kinematics):
    """Cross-sections along a line whose strains are combinations of modes: f = r(x) + R(x) (0, y, z).

    The pose g = (R, r) of the section at x follows g′ = g ξ̂ from the base, with the strain ξ = Φ(s) θ + (0, 0, 0, 1,
    0, 0) and s = x/length. An inflation changes (y, z); its coordinates come after those of the basis.

    Args:
        length: length of the body [m].
        basis: basis Φ(s) of the strains.
        inflation: growth of the sections; None: they are rigid.
        steps: number of steps, on each smooth interval of the basis, of the Magnus integrator (order 6) from the base
            to a section. Piecewise constant strains need one step, which is exact. None: the body chooses the number so
            that the error of its inertia is below 1e-6 (without a body it is 8).
    """

    length: float
    basis: Basis
    inflation: Inflation | None = None
    steps: int | None = None

    @classmethod
    def constant_curvature(cls, length: float, *, planar: bool = False, elongation: bool = False,
                           inflation: Inflation | None = None) -> KinematicsStrain:  # fmt: skip
        """Constant bending about y and z, with optional constant elongation.

        Args:
            length: length of the body [m].
            planar: True: bending about z only.
            elongation: True adds constant elongation.
            inflation: growth of the sections; None: they are rigid.
        """
        basis = BasisMonomial(bending_y=None if planar else 0, bending_z=0, elongation=0 if elongation else None)
        return cls(length, basis, inflation)

    @classmethod
    def constant_strain(cls, length: float, pieces: int = 1, *, inflation: Inflation | None = None) -> KinematicsStrain:
        """All six strains, constant on each of `pieces` equal intervals.

        Args:
            length: length of the body [m].
            pieces: number of intervals.
            inflation: growth of the sections; None: they are rigid.
        """
        return cls(length, BasisPiecewiseConstant(*[pieces] * 6), inflation)

    @classmethod
    def polynomial_curvature(cls, length: float, order: int = 1, *, planar: bool = False, elongation: bool = False,
                             inflation: Inflation | None = None) -> KinematicsStrain:  # fmt: skip
        """Bending curvature about y and z that is a polynomial of s.

        Args:
            length: length of the body [m].
            order: degree of the polynomial (1 = affine).
            planar: True: bending about z only.
            elongation: True adds constant elongation.
            inflation: growth of the sections; None: they are rigid.
        """
        bending_y = None if planar else order
        basis = BasisMonomial(bending_y=bending_y, bending_z=order, elongation=0 if elongation else None)
        return cls(length, basis, inflation)

    @classmethod
    def gaussian_curvature(cls, length: float, width: float = 2**-0.5, *, elongation: bool = True) -> KinematicsStrain:
        """Bending about y and about z, each with two modes: the constant 1 and the Gaussian exp(−(x − length/2)²/(2
        width²)).

        Args:
            length: length of the body [m].
            width: width of the Gaussian [m]. The default 1/√2 m gives exp(−(x − length/2)²), as in Pustina 2025,
                simulation 5.
            elongation: True adds constant elongation.
        """
        return cls(length, BasisCustom(_Bell(length, width, elongation), order=12))

    @cached_property
    def n(self) -> int:
        return self.basis.size + (self.inflation.size if self.inflation else 0)

    @property
    def keeps_volume(self) -> bool:
        """Whether the motion keeps volume: the sections only rotate and shear."""
        return self.inflation is None and not any(self.basis.modes()[1:4])

    @property
    def takes_arrays(self) -> bool:
        return False

    @property
    def is_exact(self) -> bool:
        """Whether the strains are constant between the breaks of the basis, so that one integrator step is exact."""
        return self._pieces.coefficients.shape[1] == 1

    @property
    def chooses_steps(self) -> bool:
        return self.steps is None and not self.is_exact

    def stepped(self, count: int | None) -> KinematicsStrain:
        return replace(self, steps=count)

    def enriched(
        self, domain: Domain, material: Hyperelastic, density: float | Callable[[np.ndarray], float]
    ) -> Enriched:
        basis, inflation = enriched_basis(self.basis), self.inflation and self.inflation.enriched(domain)
        growths = 0 if self.inflation is None else self.inflation.size
        own = np.concatenate([np.arange(self.basis.size), basis.size + np.arange(growths)])
        cure = "raise the orders of the strains of link {!r}" + (", and give it more growths" if growths else "")
        return Enriched(replace(self, basis=basis, inflation=inflation, steps=None), own, cure)

    @property
    def breaks(self) -> tuple[float, ...]:
        return tuple(self.basis.breaks())

    @property
    def breaks_around(self) -> tuple[float, ...]:
        return () if self.inflation is None else self.inflation.breaks_around

    def samples(self, points: np.ndarray) -> Samples:
        return _SamplesOfSections(self, points)

    def check(self, where: str) -> None:
        checks.number(self.length, f"{where}: length", above=0.0)
        checks.require(isinstance(self.basis, Basis), f"{where}: basis", "must be a Basis", self.basis)
        self.basis.check(f"{where} > basis")
        if self.inflation is not None:
            fits = isinstance(self.inflation, Inflation)
            checks.require(fits, f"{where}: inflation", "must be an Inflation", self.inflation)
            self.inflation.check(f"{where} > inflation")
        if self.steps is not None:
            checks.integer(self.steps, f"{where}: steps", least=1, most=1000)
        last = np.abs(self._pieces.coefficients[:, -2:]).max(initial=0.0)
        smooth = self._pieces.coefficients.shape[1] <= max(_DEGREES)
        checks.require(smooth, f"{where} > basis", "must be smooth between its breaks; its series does not end", last)

    @cached_property
    def _pieces(self) -> _Pieces:
        knots = np.array([0.0, *self.basis.breaks(), 1.0])
        starts, ends = knots[:-1], knots[1:]
        coefficients = np.zeros((len(starts), 1, 6, self.basis.size))
        for degree in _DEGREES:
            u = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
            s = starts[:, None] + 0.5 * (ends - starts)[:, None] * (u + 1.0)
            Phi = np.array([[self.basis.evaluate(float(x)) for x in row] for row in s])
            to_series = chebyshev.chebvander(u, degree).T * 2.0 / (degree + 1)
            to_series[0] *= 0.5
            coefficients = np.einsum("dk,pkrn->pdrn", to_series, Phi)
            size = np.abs(coefficients).max(axis=(0, 2, 3))
            if size[-2:].max() <= _RESOLVED * size.max():
                needed = int(np.flatnonzero(size > _RESOLVED * size.max()).max(initial=0))
                return _Pieces(starts, ends, coefficients[:, : needed + 1])
        return _Pieces(starts, ends, coefficients)

    def pose(self, x: Any, q: Any) -> Any:
        """Rotation and position (R, r) of the section at x [m], shape (3, 4)."""
        import jax.numpy as jnp

        return self._pose(*self._nodes(x, jnp), q)

    def _nodes(self, x: Any, xp: Any) -> tuple[Any, Any]:
        """For the integration from the base to x: Chebyshev polynomials (degree + 1, p, steps, 3) at the integrator's
        points, and the step length on each smooth interval (p,) [m]. By NumPy or jax.numpy."""
        starts, ends, coefficients = self._pieces
        s, steps = x / self.length, 1 if self.is_exact else self.steps or STEPS
        begin = [start + 0.0 * s if k == 0 else xp.where(s > start, start, s) for k, start in enumerate(starts)]
        end = [s if k == len(ends) - 1 else xp.where(s > e, e, s) for k, e in enumerate(ends)]
        part = (xp.stack(end) - xp.stack(begin)) / steps
        at = _GAUSS[1:2] if self.is_exact else _GAUSS
        unit = (np.arange(steps)[:, None] + at) * (part / (ends - starts))[:, None, None]
        T = [xp.ones_like(unit), 2.0 * unit - 1.0]
        while len(T) < coefficients.shape[1]:
            T.append(2.0 * T[1] * T[-1] - T[-2])
        return xp.stack(T[: coefficients.shape[1]]), self.length * part

    def _pose(self, T: Any, lengths: Any, q: Any) -> Any:
        """The pose at the section that `_nodes` belongs to."""
        import jax.numpy as jnp

        series = self._pieces.coefficients @ q[: self.basis.size]  # (p, degree + 1, 6)
        return twists.product(self._by_steps(jnp.einsum("kpmg,pkr->gpmr", T, series), lengths).reshape(-1, 3, 4))

    def nodes(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`_nodes` of sections at x (a,) [m], as argument of `poses`."""
        T, lengths = (np.stack(part, axis=-1) for part in zip(*(self._nodes(one, np) for one in x)))
        return T, lengths[..., None]

    def poses(self, nodes: tuple[np.ndarray, np.ndarray], q: np.ndarray) -> np.ndarray:
        """Poses of the a sections of `nodes` at d values of θ, shape (d, a, 3, 4). q: θ (d, n), real or complex."""
        series = self._pieces.coefficients @ q[:, : self.basis.size].T  # (p, degree + 1, 6, d)
        strains = np.einsum("kpmga,pkrd->gpmadr", nodes[0], series, optimize=True)
        g = self._by_steps(strains, nodes[1])
        return twists.product(g.reshape(-1, *g.shape[2:])).swapaxes(0, 1)

    @staticmethod
    def _by_steps(strains: Any, lengths: Any) -> Any:
        """Relative poses of the steps, (p, m, ..., 3, 4). `strains` (3, p, m, ..., 6) are the strains at the Gauss
        points of each step, minus those of a straight line.

        Magnus series of order 6 (Blanes et al. 2009, (253)); here g stands to the left of ξ.
        """
        h = lengths[:, None, ..., None]
        xi = h * (strains + _STRAIGHT)
        if len(xi) == 1:
            return twists.exp(xi[0])
        mean, slope, bend = xi[1], 15**0.5 / 3 * (xi[2] - xi[0]), 10 / 3 * (xi[2] - 2 * xi[1] + xi[0])
        first = twists.bracket(slope, mean)
        second = twists.bracket(mean, 2 * bend + first) / 60
        last = twists.bracket(slope + second, first - 20 * mean - bend) / 240
        return twists.exp(mean + bend / 12 + last)

    def _section(self, x: Any, q: Any) -> Any:
        """Position, in the frame of its section, of the point x of the undeformed shape, shape (3,)."""
        import jax.numpy as jnp

        across = jnp.stack([0.0 * x[0], x[1], x[2]])
        if self.inflation is None:
            return across
        growth = self.inflation.growth(x[0] / self.length, x[1], x[2])
        return (1.0 + growth @ q[self.basis.size :]) * across

    def map(self, x: Any, q: Any) -> Any:
        g = self.pose(x[0], q)
        return g[:, 3] + g[:, :3] @ self._section(x, q)

    def strained(self, x: Any, q: Any) -> Any:
        """Rᵀ ∂f/∂x at a point x, shape (3, 3)."""
        import jax

        xi, rho = self._strains_at(x[0], q), self._section(x, q)
        return jax.jacfwd(self._section)(x, q).at[:, 0].add(xi[3:] + twists.cross(xi[:3], rho))

    def axes(self, x: Any, q: Any) -> Any:
        """R of the section at a point x, shape (3, 3)."""
        return self.pose(x[0], q)[:, :3]

    def _strains_at(self, x: Any, q: Any) -> Any:
        """ξ (6,) of the section at x [m], from the series of its piece."""
        import jax.numpy as jnp

        starts, ends, coefficients = self._pieces
        s, total = x / self.length, jnp.zeros(6)
        for start, end, rows in zip(starts, ends, coefficients):
            u = 2.0 * (s - start) / (end - start) - 1.0
            T = [jnp.ones_like(u), u]
            while len(T) < len(rows):
                T.append(2.0 * u * T[-1] - T[-2])
            own = sum(value * (row @ q[: self.basis.size]) for value, row in zip(T, rows))
            total = jnp.where(s >= start, own, total) if start > 0.0 else own
        return total + _STRAIGHT

    def positions(self, points: np.ndarray, q: Any) -> Any:
        """f at constant points (N, 3). Each section is evaluated once."""
        return self.frames(points, q)[1]

    def frames(self, points: np.ndarray, q: Any) -> tuple[Any, Any]:
        """Axes of the sections (which stay plane) and positions, at constant points."""
        import jax

        x, section = np.unique(points[:, 0], return_inverse=True)
        T, lengths = (np.stack(part) for part in zip(*(self._nodes(one, np) for one in x)))
        g = jax.vmap(lambda T, h: self._pose(T, h, q))(T, lengths)[section]
        across = jax.vmap(lambda x: self._section(x, q))(points)
        return g[:, :, :3], g[:, :, 3] + (g[:, :, :3] * across[:, None, :]).sum(axis=-1)

    def deformations(self, points: np.ndarray, q: Any) -> Any:
        """Rᵀ ∂f/∂x at constant points, (N, 3, 3): the columns ε + κ×ρ + ∂ρ/∂x, ∂ρ/∂y and ∂ρ/∂z, with ρ the position in
        the section."""
        import jax

        Phi = np.array([self.basis.evaluate(float(s)) for s in points[:, 0] / self.length])
        xi = Phi @ q[: self.basis.size] + _STRAIGHT
        rho = jax.vmap(lambda x: self._section(x, q))(points)
        slope = jax.vmap(lambda x: jax.jacfwd(self._section)(x, q))(points)
        stretch = xi[:, 3:] + twists.cross(xi[:, :3], rho)
        return slope.at[:, :, 0].add(stretch)


@final
@dataclass(frozen=True, eq=False)
class _Growth:
    """The growth of sections, compiled by JAX."""

    length: float
    inflation: Inflation

    @cached_property
    def with_slopes(self) -> Any:
        """Growth (n,) and its derivatives (3, n) with respect to x, y and z, for points in rows."""
        import jax

        def at(x: Any) -> Any:
            return self.inflation.growth(x[0] / self.length, x[1], x[2])

        return compiled(jax.vmap(lambda x: (at(x), jax.jacfwd(at)(x).T)))


@final
class _SamplesOfSections(Samples):
    """Points on sections that follow a line of strains, by NumPy. JAX evaluates the growth, which is linear in θ."""

    def __init__(self, kinematics: KinematicsStrain, points: np.ndarray) -> None:
        self._kinematics, self._points = kinematics, points
        self._across = points * (0.0, 1.0, 1.0)
        self._growth, self._growth_x = np.zeros((len(points), 0)), np.zeros((len(points), 3, 0))
        if kinematics.inflation is not None:
            self._growing = shared_by_equals(_Growth, kinematics.length, kinematics.inflation)
            self._growth, self._growth_x = in_chunks(self._growing.with_slopes, points)
        self._x, self._section = np.unique(points[:, 0], return_inverse=True)

    @cached_property
    def _Phi(self) -> np.ndarray:
        basis = self._kinematics.basis
        return np.array([basis.evaluate(float(s)) for s in self._x / self._kinematics.length])[self._section]

    def _placed(self, q: np.ndarray) -> np.ndarray:
        """Positions of the points in their sections."""
        return (1.0 + self._growth @ q[self._kinematics.basis.size :])[:, None] * self._across

    @cached_property
    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        return self._kinematics.nodes(self._x)

    def positions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m, rho = self._kinematics.basis.size, self._placed(q)
        found = self._kinematics.poses(self._nodes, q + 1e-30j * np.eye(len(q))[: max(m, 1)])  # exact derivatives
        g = found[0].real[self._section]
        J = np.empty((len(rho), 3, len(q)))
        for j in range(m):
            J[:, :, j] = _on(found[j].imag[self._section] * 1e30, rho)
        J[:, :, m:] = (g[:, :, :3] @ self._across[:, :, None]) * self._growth[:, None, :]
        return _on(g, rho), J

    def slopes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m, rho, Phi = self._kinematics.basis.size, self._placed(q), self._Phi
        xi = Phi @ q[:m] + _STRAIGHT
        across = self._across[:, :, None, None]
        grown = across * self._growth_x[:, None] + np.diag([0.0, 1.0, 1.0])[:, :, None] * self._growth[:, None, None]
        F = np.diag([0.0, 1.0, 1.0]) + grown @ q[m:]
        F[:, :, 0] += xi[:, 3:] + np.cross(xi[:, :3], rho)
        F_j = np.zeros((*F.shape, len(q)))
        F_j[..., m:] = grown
        F_j[:, :, 0, :m] = Phi[:, 3:] + np.cross(Phi[:, :3], rho[:, :, None], axis=1)
        F_j[:, :, 0, m:] += np.cross(xi[:, :3], self._across)[:, :, None] * self._growth[:, None, :]
        return F, F_j


def _on(g: np.ndarray, points: np.ndarray) -> np.ndarray:
    """R p + r for each pose and point."""
    return g[:, :, 3] + (g[:, :, :3] @ points[:, :, None])[:, :, 0]


@final
@dataclass(frozen=True)
class _Bell:
    """Φ of `gaussian_curvature`: for each bending the constant 1 and a Gaussian [1/m], and elongation."""

    length: float
    width: float
    elongation: bool

    def __call__(self, s: float) -> np.ndarray:
        Phi = np.zeros((6, 4 + self.elongation))
        bell = np.exp(-0.5 * ((s - 0.5) * self.length / self.width) ** 2)
        Phi[1, :2] = Phi[2, 2:4] = 1.0, bell
        Phi[3, 4:] = 1.0
        return Phi
