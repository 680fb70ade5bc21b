"""Constraints of a robot: loops, which are joints that close a chain of links, and couplings of joints.

A closed loop has g_BA = g_B⁻¹ g_A equal to a motion h of its joint. With h the motion of the joint nearest to g_BA, the
residual e of the loop is

    g_BA = exp(ε) h,   e = Φ⊥ᵀ ε = 0                                                                      (1)

Φ⊥ complements the joint's motion subspace, in the axes of B. For a fixed joint, ε is the logarithm of Mathew 2025
(47c). For other joints e has no jump if the joint itself turns by π. The motions of a universal joint form no group:
its rotational residual is a₁ᵀR a₂ − a₁ᵀa₂, with the axis a₁ fixed in B and a₂ fixed in A.

Couplings are gears, differentials, mimic joints, and mechanisms that are replaced by their transmission. A coupling
holds a sum of functions of single joint coordinates constant,

    Σ_i f_i(q_i) = offset,   f_i(q) = r_i q for a ratio r_i                                               (2)

by a Lagrange multiplier λ, so that joint i feels the force f_i'(q_i) λ. Kernels run the programs of expressions, and
evaluate other functions as polynomials between knots. A coupling may also hold one function of all its coordinates
constant, Φ(q_1, …, q_n) = offset, by the force ∂Φ/∂q_i λ on joint i.

An elastic coupling has no constraint. A spring, a damper and stops act on the sum x = Σ_i r_i q_i, and the joints feel
the forces

    τ_i = −r_i (k (x − offset) + c ẋ + N),   with N of the stops as in forces.springs (2)                  (3)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.robot.expression_programs import Operation, Steps, has_corners, jet, program, programs_of
from lissom.robot.fields import LINK_OR_WORLD, FunctionOfQ, FunctionOfS, JointName, LinkName, Numbers, Place, Placement
from lissom.robot.functions import Expression, Tabulated, cubic_pieces, fitted_polynomial, is_compiled, polynomial_of
from lissom.robot.joints import Joint, JointFixed, MotionKind, acting_fields, check_without_limits, stop_numbers
from lissom.robot.traced_functions import TracedFunction

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

_SMALL = 1e-9


@final
class RowKind(IntEnum):
    """What a row of constraints holds. Kernels compare these numbers, so that their order counts.

    DIRECTION: a row of Φ⊥ᵀ of (1). HINGE: the rotational row of a universal joint. FUNCTION: a function of the pose.
    HEIGHT: the height of the point of a wheel that touches a plane. ROLLING: the velocity of this point along a
    direction of the plane. RATE_FUNCTION: a function of the velocity and the pose. SKATE: the velocity of a point along
    a direction of frame B.
    """

    DIRECTION = 0
    HINGE = 1
    FUNCTION = 2
    HEIGHT = 3
    ROLLING = 4
    RATE_FUNCTION = 5
    SKATE = 6


# Kinds of rows that restrict velocities and no positions.
RATES = (RowKind.ROLLING, RowKind.RATE_FUNCTION, RowKind.SKATE)


class End(NamedTuple):
    """A frame of a constraint: at `placement` (4, 4) in the frame of a link at s, None for the world. `fields`: names
    of the fields of the link and of s."""

    link: str | None
    s: Place
    placement: Placement
    fields: tuple[str, str]

    @property
    def may_be_world(self) -> bool:
        """Whether the link may be None."""
        return self.fields[0] in ("link_b", "ground")


class Closure(NamedTuple):
    """Constants of the constraint (1) of a joint, or of those of `robot.rolling` and `robot.constraint_functions`.

    Fields:
        rows: Φ⊥ᵀ, shape (m, 6). The rotational row of a universal joint is zero.
        kinds: RowKind of each row (m,).
        turns: 0 for a joint that does not rotate, 1 for a joint that rotates about `axis`, 3 for a joint that rotates
            about any axis.
        axis: unit vector (3,) of the rotation.
        slide: projector (3, 3) onto the directions along which the joint slides.
        pitch: advance along the axis [m/rad].
        hinge: a₁ and a₂ / |a₁ × a₂| of a universal joint, shape (2, 3); the normal of the plane and the axis of a
            wheel; zero for other joints.
        radius: of a wheel or ball [m].
    """

    rows: np.ndarray
    kinds: np.ndarray
    turns: int
    axis: np.ndarray
    slide: np.ndarray
    pitch: float
    hinge: np.ndarray
    radius: float = 0.0

    @property
    def holds_turns(self) -> bool:
        """Whether the constraint depends on the orientation of the frames. It does not for a spherical joint."""
        return bool(self.rows[:, :3].any() or self.kinds.any())


@final
@dataclass(frozen=True)
class Loop:
    """A joint that closes a chain. It connects frame B to frame A; both are frames on links, or B is fixed in the
    world.

    Args:
        name: unique among the loops.
        link_a: name of the link that carries frame A.
        link_b: name of the link that carries frame B; None is the world.
        s_a, s_b: abscissae on rods, or places on deformable bodies.
        placement_a, placement_b: poses (4, 4) of frames A and B in their links' frames at s, or in the world; None is
            the identity.
        joint: any joint except JointFree and JointCustom, without spring, damper and stops. Its axes are given in frame
            B. At its neutral configuration the axes of frames A and B agree. A joint with these, or with a motor, is
            that of a link without a body, to which a fixed loop holds link a.
    """

    name: str
    link_a: LinkName
    link_b: Annotated[str | None, LINK_OR_WORLD, "s_b", "placement_b"] = None
    s_a: Place = 1.0
    s_b: Place = 1.0
    placement_a: Placement = None
    placement_b: Placement = None
    joint: Joint = field(default_factory=JointFixed)

    def check(self, where: str) -> None:
        """Raise ModelError if a place, a placement or the joint of the loop is invalid, or if the joint has a spring, a
        damper or another force of its own."""
        for side in ("a", "b"):
            checks.place(getattr(self, f"s_{side}"), f"{where}: s_{side}")
            checks.pose(getattr(self, f"placement_{side}"), f"{where}: placement_{side}")
        checks.require(isinstance(self.joint, Joint), f"{where} > joint", "must be a Joint", self.joint)
        self.joint.check(f"{where} > joint")
        rule = ("must be zero: close the chain at another joint, or give this joint to a link without a body and hold "
                "link a to it by a fixed loop")  # fmt: skip
        for name in acting_fields(self.joint):
            raise checks.fail(f"{where} > joint: {name}", rule, getattr(self.joint, name))
        rule = "must be left out: a loop has no coordinates of its own"
        checks.require(self.joint.start is None, f"{where} > joint: start", rule, self.joint.start)
        self.closure(where)

    def ends(self) -> tuple[End, End]:
        """Frames A and B."""
        a = End(self.link_a, self.s_a, self.placement_a, ("link_a", "s_a"))
        return a, End(self.link_b, self.s_b, self.placement_b, ("link_b", "s_b"))

    def closure(self, where: str) -> Closure:
        """The constraint of the joint."""
        motions = self.joint.motions(f"{where} > joint")
        kinds = [motion.kind for motion in motions]
        rule = "must be one of the joints with axes: close the chain elsewhere"
        known = {MotionKind.EXP, MotionKind.SPHERICAL, MotionKind.FREE}
        checks.require(known.issuperset(kinds), f"{where} > joint", rule, self.joint)
        rule = "must hold something: a free joint closes no loop"
        checks.require(MotionKind.FREE not in kinds, f"{where} > joint", rule, self.joint)
        Phi = np.hstack([np.zeros((6, 0)), *(motion.Phi for motion in motions)])
        turning = np.linalg.norm(Phi[:3], axis=0) > _SMALL
        slide = _projector(Phi[3:, ~turning])
        rank = int(np.linalg.matrix_rank(Phi[:3], tol=_SMALL))
        if MotionKind.SPHERICAL in kinds or rank == 3:
            return _ball(Phi, where)
        if rank == 2:
            return _hinge(Phi, slide, where)
        return _axial(Phi[:, turning], slide, where)


def _projector(directions: np.ndarray) -> np.ndarray:
    """Projector (3, 3) onto the span of the columns of `directions` (3, n)."""
    if directions.shape[1] == 0:
        return np.zeros((3, 3))
    U, size, _ = np.linalg.svd(directions)
    U = U[:, : int((size > _SMALL).sum())]
    return U @ U.T


def _complement(taken: np.ndarray) -> np.ndarray:
    """Orthonormal rows (n, 3), normal to the range of the projector `taken`. They follow the axes of the frame if
    possible."""
    rows: list[np.ndarray] = []
    for axis in np.eye(3):
        left = axis - taken @ axis - sum((row * (row @ axis) for row in rows), np.zeros(3))
        size = float(np.linalg.norm(left))
        if size > 0.5:
            rows.append(left / size)
    if len(rows) < round(3 - np.trace(taken)):  # no axis is near a missing direction
        return np.linalg.svd(np.eye(3) - taken)[2][: round(3 - np.trace(taken))]
    return np.array(rows).reshape(-1, 3)


def _wide(turn: np.ndarray, push: np.ndarray) -> np.ndarray:
    """Rows (n, 3) for rotations and rows (m, 3) for translations as rows (n + m, 6)."""
    return np.vstack([np.hstack([turn, np.zeros_like(turn)]), np.hstack([np.zeros_like(push), push])])


def _ball(Phi: np.ndarray, where: str) -> Closure:
    """The constraint of a joint that rotates about any axis through its origin."""
    if np.abs(Phi[3:]).max() > _SMALL:
        raise ModelError(f"{where} > joint: must be turns about its origin, if it turns about any axis "
                         f"(got {Phi.T.tolist()})")  # fmt: skip
    rows = _wide(np.zeros((0, 3)), np.eye(3))
    return Closure(rows, np.zeros(3, dtype=np.int32), 3, np.zeros(3), np.zeros((3, 3)), 0.0, np.zeros((2, 3)))


def _hinge(Phi: np.ndarray, slide: np.ndarray, where: str) -> Closure:
    """The constraint of a universal joint: two rotations, the first of which turns the axis of the second."""
    if Phi.shape[1] != 2 or np.abs(Phi[3:]).max() > _SMALL:
        raise ModelError(f"{where} > joint: must be two turns alone, if it turns about two axes (got {Phi.T.tolist()})")
    rows = _wide(np.zeros((1, 3)), np.eye(3))
    first, second = Phi[:3].T
    hinge = np.array([first, second / np.linalg.norm(np.cross(first, second))])
    return Closure(rows, np.array([RowKind.HINGE, 0, 0, 0], dtype=np.int32), 3, np.zeros(3), slide, 0.0, hinge)


def _axial(turning: np.ndarray, slide: np.ndarray, where: str) -> Closure:
    """The constraint of a joint that rotates about at most one axis through its origin, and may slide, with or without
    a pitch."""
    none = np.zeros((2, 3))
    if turning.shape[1] == 0:
        rows = _wide(np.eye(3), _complement(slide))
        return Closure(rows, np.zeros(len(rows), dtype=np.int32), 0, np.zeros(3), slide, 0.0, none)
    size = float(np.linalg.norm(turning[:3, 0]))
    axis, push = turning[:3, 0] / size, turning[3:, 0] / size
    push = push - slide @ push
    pitch = float(axis @ push)
    if turning.shape[1] > 1 or np.linalg.norm(push - pitch * axis) > _SMALL:
        raise ModelError(f"{where} > joint: its turns must be about one axis through its origin "
                         f"(got {turning.T.tolist()})")  # fmt: skip
    along = np.outer(axis, axis)
    across = slide - along @ slide
    if not (np.abs(slide @ along - along @ slide).max() < _SMALL and round(float(np.trace(across))) in (0, 2)):
        raise ModelError(f"{where} > joint: its rotation must keep its directions of sliding (got {slide.tolist()})")
    rows = _wide(_complement(along), _complement(slide))
    if pitch != 0.0:
        screw = np.concatenate([-pitch * axis, axis])
        rows = np.vstack([_wide(_complement(along), _complement(slide + along)), screw])
    return Closure(rows, np.zeros(len(rows), dtype=np.int32), 1, axis, slide, pitch, none)


_SPAN = 4.0 * np.pi  # functions of joints without stops are fitted from −_SPAN to _SPAN [rad, m]
_TURN = 2.0 * np.pi
_SAME = 1e-11  # of the values of a function a turn apart, relative to the largest
_BEYOND_STOPS = 0.25  # of the range between two stops, which give way


class CouplingTerm(NamedTuple):
    """A function f of a coupling: ratio · q, a program, or polynomials `pieces`.

    Fields:
        low, high: span of the pieces [rad, m], infinite for polynomials. period, rise: of f(q + period) = f(q) + rise,
            0 for other functions.
    """

    ratio: float = 1.0
    program: Steps | None = None
    pieces: PPoly | None = None
    low: float = -np.inf
    high: float = np.inf
    period: float = 0.0
    rise: float = 0.0


@final
@dataclass(frozen=True)
class JointCoupling:
    """A relation between the coordinates of joints: rigid (2), elastic (3) if it has a stiffness, a damping, a spring
    or limits, or by one function of all coordinates, Φ(q_1, …, q_n) = offset.

    A mimic joint q_a = m q_b + o has joints (a, b), ratios (1, −m) and offset o. A differential whose case c turns at
    the mean of its shafts a and b has ratios (1, 1, −2). A joint that follows a function, q_a = f(q_b), has ratios
    (1, −f). A point that slides on a circle of radius r has joints (x, y), function Expression("x*x + y*y", "x, y") and
    offset r².

    Args:
        name: unique among the couplings.
        joints: names of the links whose joints are coupled; each joint has one coordinate.
        ratios: for each joint a number, or a function of its coordinate: ls.Expression(..., "q"), ls.Tabulated, a
            polynomial of SciPy, or a Python function. Left out where there is a `function`.
        offset: value of the sum [rad, m], or of the function. An elastic coupling has no spring force there.
        span: (low, high), the interval of the coordinates in which Python functions and expressions with corners are
            fitted [rad, m]. Beyond it, and beyond the points of a Tabulated, motions and searches stop with an error
            that names the coupling. None: a function that repeats after a turn, but for a constant, has no ends. The
            span of others is the range of the joint between its stops and a quarter beyond; on a side without a stop it
            ends two turns from zero, or two turns from the other stop if this is farther.
        stiffness, damping: k [N·m/rad, N/m] and c [N·m·s/rad, N·s/m] of an elastic coupling, whose ratios are numbers.
        spring: nonlinear law that replaces `stiffness`: the restoring force (N·m or N) as a function of the sum less
            the offset (rad or m), as rows (x, force) of a cubic spline that is straight beyond its ends, or a
            Tabulated.
        limits: (low, high) of the sum [rad, m]; infinity for no stop.
        limit_stiffness, limit_damping, limit_width: of the stops, as those of joints.
        function: Φ, an ls.Expression of as many variables as there are joints, in their order, or an ls.TracedFunction
            of their coordinates (n,), of operations that expressions have. It has no corners, and its gradient does not
            vanish where Φ = offset. Its unit is free.
    Accuracy: linear terms, expressions without corners, polynomials up to degree 7, cubic tables and SciPy's
    polynomials are exact. Other functions are fitted to about 1e-14 of their largest value.
    """

    name: str
    joints: tuple[JointName, ...]
    ratios: tuple[FunctionOfQ, ...] = ()
    offset: float = 0.0
    span: Numbers = None
    stiffness: float = 0.0
    damping: float = 0.0
    spring: FunctionOfS = None
    limits: Numbers | None = None
    limit_stiffness: float = 0.0
    limit_damping: float = 0.0
    limit_width: float = 1e-3
    function: FunctionOfQ = None

    @property
    def is_elastic(self) -> bool:
        """Whether forces of a spring, a damper or stops act on the sum. Otherwise it or the function is constant."""
        given = any(np.any(x) for x in (self.stiffness, self.damping))
        return given or self.spring is not None or self.limits is not None

    def check(self, where: str) -> None:
        """Raise ModelError unless the names of joints are distinct, each joint has a ratio other than zero or the
        function depends on it, and the other fields are valid."""
        listed = isinstance(self.joints, list | tuple) and all(isinstance(x, str) for x in self.joints)
        checks.require(listed and bool(self.joints), f"{where}: joints", "must be a list of names", self.joints)
        twice = [name for k, name in enumerate(self.joints) if name in self.joints[:k]]
        checks.require(not twice, f"{where}: joints", "must not name a joint twice", ", ".join(map(repr, twice)))
        if self.function is not None:
            self._check_with_function(where)
            return
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

    def _check_with_function(self, where: str) -> None:
        """Raise ModelError unless the function and the offset are valid and no other law is given."""
        rule = "must be left out where there is a function"
        for name in ("ratios", "stiffness", "damping", "spring", "limits", "span"):
            value: Any = getattr(self, name)
            is_left_out = value is None or (not callable(value) and not np.any(value))
            checks.require(is_left_out, f"{where}: {name}", rule, value)
        check_without_limits(self, where)
        checks.number(self.offset, f"{where}: offset")
        self.program(where)

    def program(self, where: str) -> Steps | None:
        """The program of Φ; None for a sum of functions of single coordinates.

        Raises:
            ModelError: it is no expression and cannot be traced, has corners, or does not depend on each joint.
        """
        function, where, count = self.function, f"{where}: function", len(self.joints)
        if function is None:
            return None
        if isinstance(function, TracedFunction):
            steps, source = function.program(where, [(count,)]), function.function
        elif isinstance(function, Expression) and not isinstance(function.source, list | tuple):
            rule = f"must have {count} variables, one for each joint, with commas between their names"
            checks.require(len(function.variables) == count, where, rule, function.variable)
            source = function.source
            steps = program(source, function.variable, function.constants)
        else:
            raise checks.fail(where, "must be one ls.Expression, or an ls.TracedFunction", function)
        check_program(steps, where, source)
        used = {number for step, number in steps if step == Operation.TIME}
        unused = [joint for k, joint in enumerate(self.joints) if k not in used]
        rule = "must depend on each joint; leave out those on which it does not depend"
        checks.require(not unused, where, rule, ", ".join(map(repr, unused)))
        return steps

    def pieces(self, where: str) -> tuple[np.ndarray, np.ndarray]:
        """The force of the spring of an elastic coupling as cubic pieces; see cubic_pieces."""
        if self.spring is None:
            return np.zeros(1), np.array([[0.0, float(self.stiffness), 0.0, 0.0]])
        checks.require(self.stiffness == 0.0, f"{where}: stiffness", "must be left out where there is a spring",
                       self.stiffness)  # fmt: skip
        rule = "must be rows (x, force), or a Tabulated"
        checks.require(not is_compiled(self.spring), f"{where}: spring", rule, self.spring)
        return cubic_pieces(self.spring, f"{where}: spring", rule, "coordinates")

    def term(self, k: int, stops: tuple[float, float], where: str) -> CouplingTerm:
        """f_k of (2); where there is a function of all coordinates, no function of one.

        Args:
            k: index of the joint in the coupling. stops: least and largest coordinate of the joint, or infinite.
        Raises:
            ModelError: the function is not smooth, or not finite.
        """
        if self.function is not None:
            return CouplingTerm()
        ratio: Any = self.ratios[k]
        if not callable(ratio):
            return CouplingTerm(float(ratio))
        found = polynomial_of(ratio, 1)
        if found is not None:
            ends = (float(ratio.points[0]), float(ratio.points[-1])) if isinstance(ratio, Tabulated) else ()
            return CouplingTerm(1.0, None, found, *ends)
        where = f"{where}: ratio of joint {self.joints[k]!r}"
        low, high = map(float, stops if self.span is None else np.asarray(self.span))
        start = low if np.isfinite(low) else min(-_SPAN, high - _SPAN)
        end = high if np.isfinite(high) else max(_SPAN, low + _SPAN)
        programs = programs_of(ratio, 1) if isinstance(ratio, Expression) else None
        if programs is not None and not has_corners(programs[0]):
            value = jet(programs[0], np.linspace(start, end, 257))[0]
            rule = f"must be finite between {start:g} and {end:g}; give a part where it is by span=(low, high)"
            checks.require(bool(np.isfinite(value).all()), where, rule, ratio.source)
            return CouplingTerm(1.0, programs[0])
        if self.span is None and (rise := _rise_of_a_turn(ratio, where)) is not None:
            pieces = fitted_polynomial(ratio, -0.5 * _TURN, 0.5 * _TURN, where)
            repeats = (-0.5 * _TURN, 0.5 * _TURN, _TURN, rise) if pieces.c.shape[1] > 1 else ()
            return CouplingTerm(1.0, None, pieces, *repeats)
        has_two_stops = self.span is None and np.isfinite(low) and np.isfinite(high)
        beyond = _BEYOND_STOPS * (end - start) if has_two_stops else 0.0
        term = _limited_term(ratio, start, end, beyond, where)
        has_no_ends = self.span is None and term.pieces is not None and _is_polynomial(ratio, term.pieces, where)
        return CouplingTerm(pieces=term.pieces) if has_no_ends else term


def check_program(steps: Steps, where: str, source: Any) -> None:
    """Raise ModelError if the program of a constraint has corners, or numbers that are not finite."""
    rule = "must have derivatives: abs, sign, minimum and maximum have corners"
    checks.require(not has_corners(steps), where, rule, source)
    finite = all(np.isfinite(number) for _, number in steps)
    checks.require(finite, where, "must have finite numbers", source)


def _rise_of_a_turn(function: Any, where: str) -> float | None:
    """The constant f(q + 2π) − f(q) of a function that repeats after a turn, but for this constant; None for others."""
    q = _TURN * (np.arange(-12, 12) + 0.37) / 24.0
    try:
        rows = [
            np.array([float(checks.call(function, float(x + n * _TURN), (), where)) for x in q]) for n in (0, 1, -3)
        ]
    except ModelError:
        return None  # it has no value somewhere
    rise = float(np.mean(rows[1] - rows[0]))
    size = max(float(np.abs(rows).max()), 1e-300)
    same = all(np.abs(rows[k] - rows[0] - n * rise).max() <= _SAME * size for k, n in ((1, 1), (2, -3)))
    return rise if same else None


def _limited_term(function: Any, low: float, high: float, beyond: float, where: str) -> CouplingTerm:
    """A function as polynomials in [low, high], and by `beyond` on both sides if it is smooth there."""
    try:
        ends = low - beyond, high + beyond
        pieces = fitted_polynomial(function, *ends, where)
    except ModelError:
        ends = low, high
        pieces = fitted_polynomial(function, *ends, where)
    return CouplingTerm(1.0, None, pieces, *ends)


def _is_polynomial(function: Any, pieces: PPoly, where: str) -> bool:
    """Whether the function is one polynomial, also far beyond its span."""
    if pieces.c.shape[1] > 1:
        return False
    low, high = pieces.x
    far = [x + sign * n * (high - low) for x, sign in ((low, -1.0), (high, 1.0)) for n in (0.3, 3.0, 30.0)]
    try:
        values = [float(checks.call(function, x, (), where)) for x in far]
    except ModelError:
        return False
    return bool(np.allclose(pieces(far)[:, 0], values, rtol=1e-9, atol=0.0))
