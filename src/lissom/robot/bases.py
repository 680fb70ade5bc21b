"""Strain bases Φ(s) of rods. Each of the six strains is a combination of modes; columns are ordered by strain, then by
order.

`enriched_basis` adds modes to a basis. The part of an equilibrium or a motion in the added modes estimates the error of
the basis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import pairwise
from math import pi
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, final

import numpy as np
from numpy.polynomial import chebyshev

from lissom.robot import checks
from lissom.robot.fields import FunctionOfS, Numbers

STRAINS = ("torsion", "bending_y", "bending_z", "elongation", "shear_y", "shear_z")
MOST_ORDER = 200  # largest order of a strain; a rod that needs more must be split into several links
MOST_DEGREE = 20
_LOOKS = 24  # Gauss points on each smooth interval where modes are compared
_orders_of = attrgetter(*STRAINS)  # evaluated for every point of every rod that is built
_NEW = 1e-3  # a polynomial counts as new if this part of its norm is outside the span of the basis
_SPANNED = 1e-8  # singular values below this part of the largest belong to linearly dependent modes


_Class = TypeVar("_Class")


class Basis(ABC):
    """A strain basis.

    Law: the strain is ξ(s) = Φ(s) q + ξ*(s), with s from 0 to 1 along the rod. Φ has shape (6, size) and strain units
    (1/m in the first three rows, 1 in the others). Φ is smooth between the interior `breaks`, and its columns are
    linearly independent on [0, 1].
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of coordinates."""

    @abstractmethod
    def evaluate(self, s: float) -> np.ndarray:
        """Φ(s), shape (6, size)."""

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise ModelError if a field of the basis is invalid."""

    @abstractmethod
    def breaks(self) -> tuple[float, ...]:
        """Abscissae in (0, 1) where Φ is not smooth, in ascending order."""

    @abstractmethod
    def degree(self) -> int:
        """Polynomial degree of Φ between breaks, or a degree that approximates Φ well."""

    @abstractmethod
    def modes(self) -> tuple[int, ...]:
        """Number of modes of each of the six strains."""


def _naming_strains(basis: type[_Class]) -> type[_Class]:
    """Let a class with one field for each strain refuse other names with the rule and the nearest name."""
    made = basis.__init__

    @wraps(made)
    def initialise(self: Any, *orders: Any, **named: Any) -> None:
        for name in named.keys() - set(STRAINS):
            cure = "; give bending_y= and bending_z=" if name == "bending" else checks.nearest(name, STRAINS)
            raise checks.fail(type(self).__name__, f"must be given orders of {', '.join(STRAINS)}", name, cure)
        made(self, *orders, **named)

    basis.__init__ = initialise
    return basis


class StrainwiseBasis(Basis):
    """One family of scalar functions for all strains. Each strain has a field that holds the order of its modes. A
    strain whose order is None has no modes and keeps its reference value."""

    @staticmethod
    @abstractmethod
    def count(order: Any) -> int:
        """Number of modes for an order."""

    @staticmethod
    @abstractmethod
    def functions(order: Any, s: float) -> np.ndarray:
        """Values at s of the modes for an order, shape (count(order),)."""

    @classmethod
    @abstractmethod
    def check_order(cls, order: Any, where: str) -> None:
        """Raise ModelError if the order is invalid for this family of functions."""

    @staticmethod
    def knots(order: Any) -> tuple[float, ...]:
        """Interior breaks for an order; empty for smooth families."""
        return ()

    @staticmethod
    def polynomial_degree(order: Any) -> int:
        """Polynomial degree between breaks of the modes for an order."""
        return order

    @staticmethod
    def halved(order: Any) -> Any:
        """The order with intervals of half the length, whose functions span those of this order too; None for families
        without intervals."""
        return None

    def orders(self) -> tuple[Any, ...]:
        """The orders of the six strains."""
        return _orders_of(self)

    def modes(self) -> tuple[int, ...]:
        return tuple([0 if order is None else self.count(order) for order in self.orders()])

    @property
    def size(self) -> int:
        return sum(self.modes())

    def evaluate(self, s: float) -> np.ndarray:
        Phi = np.zeros((6, self.size))
        column = 0
        for row, order in enumerate(self.orders()):
            if order is not None:
                n = self.count(order)
                Phi[row, column : column + n] = self.functions(order, s)
                column += n
        return Phi

    def check(self, where: str) -> None:
        for name, order in zip(STRAINS, self.orders(), strict=True):
            if order is not None:
                self.check_order(order, f"{where}: {name}")
        checks.require(self.size > 0, where, "at least one strain must have an order", "no modes")

    def breaks(self) -> tuple[float, ...]:
        found = {knot for order in self.orders() if order is not None for knot in self.knots(order)}
        return tuple(sorted(found))

    def degree(self) -> int:
        return max(self.polynomial_degree(order) for order in self.orders() if order is not None)


@_naming_strains
@dataclass(frozen=True)
class ModalBasis(StrainwiseBasis):
    """One family of scalar functions for all strains; the order of each strain is an integer.

    Args:
        torsion, bending_y, bending_z, elongation, shear_y, shear_z: order of each strain; a strain with None has no
            modes and keeps its reference value.
    """

    torsion: int | None = None
    bending_y: int | None = None
    bending_z: int | None = None
    elongation: int | None = None
    shear_y: int | None = None
    shear_z: int | None = None

    least_order: ClassVar[int] = 0

    @staticmethod
    @abstractmethod
    def count(order: int) -> int:
        """Number of modes for an order."""

    @classmethod
    def check_order(cls, order: Any, where: str) -> None:
        checks.integer(order, f"{where} order", least=cls.least_order, most=MOST_ORDER)


@final
class BasisLegendre(ModalBasis):
    """Legendre polynomials Pₙ(2s − 1), with value 1 at s = 1; order n has n + 1 modes."""

    @staticmethod
    def count(order: int) -> int:
        return order + 1

    @staticmethod
    def functions(order: int, s: float) -> np.ndarray:
        x = 2.0 * s - 1.0
        P = [1.0, x]
        for n in range(2, order + 1):  # n Pₙ = (2n − 1) x Pₙ₋₁ − (n − 1) Pₙ₋₂
            P.append((P[n - 1] * x * (2 * n - 1) - P[n - 2] * (n - 1)) / n)
        return np.array(P[: order + 1])


@final
class BasisMonomial(ModalBasis):
    """Powers sⁿ; order n has n + 1 modes."""

    @staticmethod
    def count(order: int) -> int:
        return order + 1

    @staticmethod
    def functions(order: int, s: float) -> np.ndarray:
        return float(s) ** np.arange(order + 1)


@final
class BasisChebyshev(ModalBasis):
    """Chebyshev polynomials Tₙ(2s − 1); order n has n + 1 modes."""

    @staticmethod
    def count(order: int) -> int:
        return order + 1

    @staticmethod
    def functions(order: int, s: float) -> np.ndarray:
        return chebyshev.chebvander(np.array([2.0 * s - 1.0]), order)[0]


@final
class BasisFourier(ModalBasis):
    """1, cos 2πs, sin 2πs, …, cos 2πns, sin 2πns; order n has 2n + 1 modes."""

    @staticmethod
    def count(order: int) -> int:
        return 2 * order + 1

    @staticmethod
    def functions(order: int, s: float) -> np.ndarray:
        angle = 2 * pi * s * np.arange(1, order + 1)
        return np.concatenate([[1.0], np.stack([np.cos(angle), np.sin(angle)], axis=1).ravel()])

    @staticmethod
    def polynomial_degree(order: int) -> int:
        return 4 * order + 4  # resolves the waves, twice integrated, to 1e-6


@final
class BasisGaussian(ModalBasis):
    """Gaussians exp(−(s − c)²/(2σ²)) with equally spaced centres c from 0 to 1 and σ = 1/(n + 1); order n has n + 1
    modes."""

    @staticmethod
    def count(order: int) -> int:
        return order + 1

    @staticmethod
    def functions(order: int, s: float) -> np.ndarray:
        centres = np.linspace(0.0, 1.0, order + 1) if order else np.array([0.5])
        return np.exp(-0.5 * ((s - centres) * (order + 1)) ** 2)

    @staticmethod
    def polynomial_degree(order: int) -> int:
        return 4 + (3 * order + 1) // 2  # resolves the bells, twice integrated, to 1e-6


@final
class BasisHermite(ModalBasis):
    """Cubic Hermite splines on n equal elements; order n >= 1 has 2(n + 1) modes. The coordinates at each node are the
    value, then the slope times the element length."""

    least_order: ClassVar[int] = 1

    @staticmethod
    def count(order: int) -> int:
        return 2 * (order + 1)

    @staticmethod
    def functions(order: int, s: float) -> np.ndarray:
        element = min(int(s * order), order - 1)
        x = s * order - element
        out = np.zeros(2 * (order + 1))
        value, slope = 1 - 3 * x**2 + 2 * x**3, x - 2 * x**2 + x**3
        out[2 * element : 2 * element + 4] = value, slope, 1 - value, x**3 - x**2
        return out

    @staticmethod
    def knots(order: int) -> tuple[float, ...]:
        return tuple(k / order for k in range(1, order))

    @staticmethod
    def polynomial_degree(order: int) -> int:
        return 3

    @staticmethod
    def halved(order: int) -> int:
        return 2 * order


@final
class BasisPiecewiseConstant(ModalBasis):
    """Constant on each of n equal elements; order n >= 1 has n modes. The value at a break is the value of the element
    after it."""

    least_order: ClassVar[int] = 1

    @staticmethod
    def count(order: int) -> int:
        return order

    @staticmethod
    def functions(order: int, s: float) -> np.ndarray:
        out = np.zeros(order)
        out[min(int(s * order), order - 1)] = 1.0
        return out

    @staticmethod
    def knots(order: int) -> tuple[float, ...]:
        return tuple(k / order for k in range(1, order))

    @staticmethod
    def polynomial_degree(order: int) -> int:
        return 0

    @staticmethod
    def halved(order: int) -> int:
        return 2 * order


@final
class BasisPiecewiseLinear(ModalBasis):
    """Continuous, and linear on each of n equal elements; order n >= 1 has n + 1 modes. The coordinates are the values
    at the nodes."""

    least_order: ClassVar[int] = 1

    @staticmethod
    def count(order: int) -> int:
        return order + 1

    @staticmethod
    def functions(order: int, s: float) -> np.ndarray:
        element = min(int(s * order), order - 1)
        out = np.zeros(order + 1)
        out[element + 1] = s * order - element
        out[element] = 1.0 - out[element + 1]
        return out

    @staticmethod
    def knots(order: int) -> tuple[float, ...]:
        return tuple(k / order for k in range(1, order))

    @staticmethod
    def polynomial_degree(order: int) -> int:
        return 1

    @staticmethod
    def halved(order: int) -> int:
        return 2 * order


@final
@dataclass(frozen=True)
class BasisCustom(Basis):
    """A user-defined basis. A column may combine several strains.

    Args:
        function: function of s that returns Φ, shape (6, n), in strain units.
        order: polynomial degree that approximates Φ between breaks. It sets the default number of Gauss points.
        knots: abscissae in (0, 1) where Φ is not smooth.
    """

    function: FunctionOfS
    order: int = 6
    knots: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        return int(np.shape(self.function(0.5))[1])

    def evaluate(self, s: float) -> np.ndarray:
        return checks.call(self.function, s, (6, -1), "basis: function")

    def check(self, where: str) -> None:
        checks.require(callable(self.function), f"{where}: function", "must be a function of s", self.function)
        Phi = checks.call(self.function, 0.5, (6, -1), f"{where}: function")
        checks.require(Phi.shape[1] > 0, where, "at least one mode is needed", "no modes")
        checks.integer(self.order, f"{where}: order", least=0, most=MOST_ORDER)
        knots = checks.array(self.knots, (-1,), f"{where}: knots", "must be a list of numbers")
        inside = bool(np.all(np.diff(np.concatenate([[0.0], knots, [1.0]])) > 0))
        checks.require(inside, f"{where}: knots", "must rise strictly inside (0, 1)", self.knots)
        values = [checks.call(self.function, s, Phi.shape, f"{where}: function") for s in self._samples()]
        rank = int(np.linalg.matrix_rank(np.concatenate(values)))
        rule = f"its {Phi.shape[1]} modes must be linearly independent"
        checks.require(rank == Phi.shape[1], f"{where}: function", rule, f"rank {rank}")

    def _samples(self) -> np.ndarray:
        """Values of s, shape (n,), at which `check` and `modes` evaluate the basis: at least order + 3 inside each
        smooth interval."""
        edges = np.array([0.0, *self.breaks(), 1.0])
        inside = np.linspace(0.0137, 0.9871, max(24 // (len(edges) - 1), self.order + 3))
        return (edges[:-1, None] + np.diff(edges)[:, None] * inside).ravel()

    def breaks(self) -> tuple[float, ...]:
        return tuple(float(knot) for knot in self.knots)

    def degree(self) -> int:
        return self.order

    def modes(self) -> tuple[int, ...]:
        samples = np.array([self.evaluate(s) for s in self._samples()])
        return tuple(int(np.count_nonzero(np.any(samples[:, row] != 0.0, axis=0))) for row in range(6))


@final
@_naming_strains
@dataclass(frozen=True)
class BasisBSpline(StrainwiseBasis):
    """B-splines on a clamped knot vector. Each strain has its own degree and knots.

    Degree k on m intervals has m + k modes. The modes are >= 0 and their sum is 1. Derivatives below order k are
    continuous; derivative k jumps at the knots. With k = 0 the value at a knot is the value of the interval after it.

    Args:
        torsion, bending_y, bending_z, elongation, shear_y, shear_z: (degree, number of equal intervals), or (degree,
            interior knots) with knots ascending in (0, 1). A strain with None has no modes and keeps its reference
            value.
    """

    torsion: Numbers | None = None
    bending_y: Numbers | None = None
    bending_z: Numbers | None = None
    elongation: Numbers | None = None
    shear_y: Numbers | None = None
    shear_z: Numbers | None = None

    @staticmethod
    def count(order: Any) -> int:
        return order[0] + len(BasisBSpline.knots(order)) + 1

    @staticmethod
    def functions(order: Any, s: float) -> np.ndarray:
        from scipy.interpolate import BSpline  # imported here: descriptions without splines need no SciPy

        degree, ends = order[0], np.ones(order[0] + 1)
        clamped = np.concatenate([0.0 * ends, BasisBSpline.knots(order), ends])
        return BSpline.design_matrix(np.clip([float(s)], 0.0, 1.0), clamped, degree).toarray()[0]

    @staticmethod
    def knots(order: Any) -> tuple[float, ...]:
        spans = order[1]
        if _is_list(spans):
            return tuple(float(knot) for knot in spans)
        return tuple(k / int(spans) for k in range(1, int(spans)))

    @staticmethod
    def polynomial_degree(order: Any) -> int:
        return int(order[0])

    @staticmethod
    def halved(order: Any) -> tuple[int, tuple[float, ...]]:
        edges = [0.0, *BasisBSpline.knots(order), 1.0]
        middles = [0.5 * (a + b) for a, b in pairwise(edges)]
        return int(order[0]), tuple(sorted([*edges[1:-1], *middles]))

    @classmethod
    def check_order(cls, order: Any, where: str) -> None:
        rule = "must be (degree, number of spans) or (degree, interior knots)"
        checks.require(_is_list(order) and len(order) == 2, where, rule, order)
        checks.integer(order[0], f"{where} degree", least=0, most=MOST_DEGREE)
        if not _is_list(order[1]):
            checks.integer(order[1], f"{where} spans", least=1, most=MOST_ORDER)
            return
        knots = checks.array(order[1], (-1,), f"{where} knots", "must be a list of numbers")
        checks.require(len(knots) < MOST_ORDER, f"{where} knots", f"must be fewer than {MOST_ORDER}", len(knots))
        inside = bool((np.diff(np.concatenate([[0.0], knots, [1.0]])) > 0).all())
        checks.require(inside, f"{where} knots", "must rise strictly inside (0, 1)", order[1])


def _is_list(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str)


def has_intervals(basis: Basis) -> bool:
    """Whether `enriched_basis` halves the intervals of a basis."""
    return isinstance(basis, StrainwiseBasis) and any(
        order is not None and basis.halved(order) is not None for order in basis.orders()
    )


def enriched_basis(basis: Basis) -> BasisCustom:
    """A basis with added modes, which come after the modes of the basis.

    For families with intervals, such as splines, the added modes span the functions of the same family on intervals of
    half the length. Polynomials of higher degree would not do: they are orthogonal to those on the interval, so that
    they leave splines as smooth as they are, also where a contact or a load bends the rod sharply.

    For other bases, for each strain with modes and each smooth interval with m independent modes, they span the
    polynomials of degree up to m + 1 that are not combinations of the modes of the basis. If the basis holds all
    polynomials of degree p, the two added modes have degrees p + 1 and p + 2.
    """
    if isinstance(basis, StrainwiseBasis) and has_intervals(basis):
        return _with_halved_intervals(basis)
    edges = [0.0, *basis.breaks(), 1.0]
    stretches = list(pairwise(edges))
    rows = [i for i, count in enumerate(basis.modes()) if count]
    new = [(i, k, _new(basis, i, *stretch)) for i in rows for k, stretch in enumerate(stretches)]
    own, more = basis.size, sum(c.shape[1] for _, _, c in new)
    inner = np.array(edges[1:-1])
    degree = max(basis.degree(), max((len(c) - 1 for _, _, c in new), default=0))

    def Phi(s: float) -> np.ndarray:
        out = np.zeros((6, own + more))
        out[:, :own] = basis.evaluate(s)
        here, at = int(np.searchsorted(inner, s, side="right")), own
        for i, k, c in new:
            if k == here:
                a, b = stretches[k]
                out[i, at : at + c.shape[1]] = np.polynomial.legendre.legval(2.0 * (s - a) / (b - a) - 1.0, c)
            at += c.shape[1]
        return out

    return BasisCustom(Phi, order=degree, knots=tuple(edges[1:-1]))


def _with_halved_intervals(basis: StrainwiseBasis) -> BasisCustom:
    """A basis with the modes on intervals of half the length that are orthogonal to its own ones, in the mean over the
    rod."""
    finer = [None if order is None else basis.halved(order) for order in basis.orders()]
    new = [(i, order, _complement(basis, i, order)) for i, order in enumerate(finer) if order is not None]
    own, size = basis.size, basis.size + sum(C.shape[1] for _, _, C in new)
    knots = sorted({knot for _, order, _ in new for knot in basis.knots(order)})

    def Phi(s: float) -> np.ndarray:
        out, at = np.zeros((6, size)), own
        out[:, :own] = basis.evaluate(s)
        for i, order, C in new:
            out[i, at : at + C.shape[1]] = basis.functions(order, s) @ C
            at += C.shape[1]
        return out

    return BasisCustom(Phi, order=basis.degree(), knots=tuple(knots))


def _complement(basis: StrainwiseBasis, i: int, finer: Any) -> np.ndarray:
    """Combinations (n, m) of the n functions for the order `finer` that are orthonormal, and orthogonal to the modes of
    strain i."""
    x, w = np.polynomial.legendre.leggauss(basis.polynomial_degree(finer) + 1)  # exact for products of two functions
    stretches = list(pairwise([0.0, *basis.knots(finer), 1.0]))
    places = [(float(s), 0.5 * (b - a) * y) for a, b in stretches for s, y in zip(a + (b - a) * (x + 1.0) / 2.0, w)]
    root = np.sqrt([weight for _, weight in places])[:, None]
    fine, own = (
        root * np.array([basis.functions(order, s) for s, _ in places]) for order in (finer, basis.orders()[i])
    )
    Q, R = np.linalg.qr(fine)
    U, _, _ = np.linalg.svd(Q.T @ own, full_matrices=True)
    return np.linalg.solve(R, U[:, own.shape[1] :])


def strains_of(basis: Basis, size: int) -> np.ndarray:
    """Index (0 to 5) of the first strain that each added mode of an enriched basis contains. `size` is the size of the
    basis without the added modes."""
    enriched = enriched_basis(basis)
    looks = np.array([enriched.evaluate(s) for s in np.linspace(0.013, 0.987, 61)])
    return np.argmax(np.abs(looks).max(axis=0)[:, size:] > 0.0, axis=0)


def _new(basis: Basis, i: int, a: float, b: float) -> np.ndarray:
    """Legendre coefficients on [a, b], shape (degree + 1, m), of the added modes of strain i."""
    x, w = np.polynomial.legendre.leggauss(_LOOKS)
    weight = np.sqrt(w)[:, None]
    modes = weight * np.array([basis.evaluate(float(s))[i] for s in a + (b - a) * (x + 1) / 2])
    Q, sizes, _ = np.linalg.svd(modes, full_matrices=False)
    Q = Q[:, sizes > _SPANNED * max(float(sizes.max(initial=0.0)), 1e-300)]
    degree = Q.shape[1] + 1
    polynomials = weight * np.polynomial.legendre.legvander(x, degree) * np.sqrt(np.arange(degree + 1) + 0.5)
    _, sizes, V = np.linalg.svd(polynomials - Q @ (Q.T @ polynomials), full_matrices=False)
    return np.sqrt(np.arange(degree + 1) + 0.5)[:, None] * V[sizes > _NEW].T
