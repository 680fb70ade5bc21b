"""Couplings of joints: gears, differentials, mimic joints, and mechanisms that are replaced by their transmission.

A coupling holds a sum of functions of single joint coordinates constant,

    Σ_i f_i(q_i) = offset,   f_i(q) = r_i q for a ratio r_i                                               (1)

by a Lagrange multiplier λ, so that joint i feels the force f_i'(q_i) λ. Kernels evaluate the functions as polynomials
between knots.

An elastic coupling holds nothing. The sum x = Σ_i r_i q_i has a spring, a damper and stops of its own, and the joints
feel

    τ_i = −r_i (k (x − offset) + c ẋ + N),   with N of the stops as in forces.springs (2)                  (2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.robot import checks
from lissom.robot.fields import FunctionOfQ, FunctionOfS, JointName, Numbers
from lissom.robot.functions import cubic_pieces, fitted_polynomial, is_compiled, polynomial_of
from lissom.robot.joints import check_without_limits, stop_numbers

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

_SPAN = 4.0 * np.pi  # functions of joints without stops are fitted from −_SPAN to _SPAN [rad, m]


@final
@dataclass(frozen=True)
class JointCoupling:
    """A relation between the coordinates of joints: rigid (1), or elastic (2) if it has a stiffness, a damping, a
    spring or limits.

    A mimic joint q_a = m q_b + o has joints (a, b), ratios (1, −m) and offset o. A differential whose case c turns at
    the mean of its shafts a and b has ratios (1, 1, −2). A joint that follows a function, q_a = f(q_b), has ratios
    (1, −f).

    Args:
        name: unique among the couplings.
        joints: names of the links whose joints are coupled; each joint has one coordinate.
        ratios: for each joint a number, or a function of its coordinate: ls.Expression(..., "q"), ls.Tabulated, a
            polynomial of SciPy, or a Python function.
        offset: value of the sum [rad, m]. An elastic coupling has no spring force there.
        span: (low, high), the interval of the coordinates in which functions are fitted [rad, m]. Beyond it they
            continue as straight lines, but polynomials continue. None is the range of the joint between its stops; on a
            side without a stop it ends two turns from zero, or two turns from the other stop if this is farther.
        stiffness, damping: k [N·m/rad, N/m] and c [N·m·s/rad, N·s/m] of an elastic coupling, whose ratios are numbers.
        spring: nonlinear law that replaces `stiffness`: the restoring force (N·m or N) as a function of the sum less
            the offset (rad or m), as rows (x, force) of a cubic spline that is straight beyond its ends, or a
            Tabulated.
        limits: (low, high) of the sum [rad, m]; infinity for no stop.
        limit_stiffness, limit_damping, limit_width: of the stops, as those of joints.
    Accuracy: linear terms, polynomials up to degree 7, cubic tables and SciPy's polynomials are exact. Other functions
    are fitted to about 1e-14 of their largest value.
    """

    name: str
    joints: tuple[JointName, ...]
    ratios: tuple[FunctionOfQ, ...]
    offset: float = 0.0
    span: Numbers = None
    stiffness: float = 0.0
    damping: float = 0.0
    spring: FunctionOfS = None
    limits: Numbers | None = None
    limit_stiffness: float = 0.0
    limit_damping: float = 0.0
    limit_width: float = 1e-3

    @property
    def is_elastic(self) -> bool:
        """Whether forces of a spring, a damper or stops act on the sum, which is held otherwise."""
        given = any(np.any(x) for x in (self.stiffness, self.damping))
        return given or self.spring is not None or self.limits is not None

    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""
        listed = isinstance(self.joints, list | tuple) and all(isinstance(x, str) for x in self.joints)
        checks.require(listed and bool(self.joints), f"{where}: joints", "must be a list of names", self.joints)
        twice = [name for k, name in enumerate(self.joints) if name in self.joints[:k]]
        checks.require(not twice, f"{where}: joints", "must not name a joint twice", ", ".join(map(repr, twice)))
        several = isinstance(self.ratios, Sequence | np.ndarray) and not isinstance(self.ratios, str)
        rule = f"must hold {len(self.joints)} numbers or functions, one for each joint"
        checks.require(several and len(self.ratios) == len(self.joints), f"{where}: ratios", rule, self.ratios)
        checks.number(self.offset, f"{where}: offset")
        if self.span is not None:
            low, high = checks.array(self.span, (2,), f"{where}: span", "must be (low, high)")
            checks.require(low < high, f"{where}: span", "must rise", self.span)
        for ratio, joint in zip(self.ratios, self.joints):
            if not callable(ratio):
                here = f"{where}: ratio of joint {joint!r}"
                checks.require(checks.number(ratio, here) != 0.0, here, "must not be zero", ratio)
        checks.number(self.stiffness, f"{where}: stiffness", least=0.0)
        checks.number(self.damping, f"{where}: damping", least=0.0)
        check_without_limits(self, where) if self.limits is None else stop_numbers(self, 1, where)
        if self.is_elastic:
            rule = "must hold numbers only, since the coupling is elastic"
            checks.require(not any(map(callable, self.ratios)), f"{where}: ratios", rule, self.ratios)
            checks.require(self.span is None, f"{where}: span", "must be left out where ratios are numbers", self.span)
            self.pieces(where)

    def pieces(self, where: str) -> tuple[np.ndarray, np.ndarray]:
        """The force of the spring of an elastic coupling as cubic pieces; see cubic_pieces."""
        if self.spring is None:
            return np.zeros(1), np.array([[0.0, float(self.stiffness), 0.0, 0.0]])
        checks.require(self.stiffness == 0.0, f"{where}: stiffness", "must be left out where there is a spring",
                       self.stiffness)  # fmt: skip
        rule = "must be rows (x, force), or a Tabulated"
        checks.require(not is_compiled(self.spring), f"{where}: spring", rule, self.spring)
        return cubic_pieces(self.spring, f"{where}: spring", rule, "coordinates")

    def term(self, k: int, stops: tuple[float, float], where: str) -> float | PPoly:
        """f_k of (1): its ratio, or its polynomials.

        Args:
            k: number of the joint in the coupling. stops: least and largest coordinate of the joint, or infinite.
        Raises:
            ModelError: the function is not smooth, or not finite.
        """
        ratio: Any = self.ratios[k]
        if not callable(ratio):
            return float(ratio)
        found = polynomial_of(ratio, 1)
        if found is not None:
            return found
        low, high = map(float, stops if self.span is None else np.asarray(self.span))
        start = low if np.isfinite(low) else min(-_SPAN, high - _SPAN)
        end = high if np.isfinite(high) else max(_SPAN, low + _SPAN)
        return fitted_polynomial(ratio, start, end, f"{where}: ratio of joint {self.joints[k]!r}")
