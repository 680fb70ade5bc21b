"""Constraints by functions: one function of the relative pose of two frames, or of their relative velocity.

Frame A is at the position p = (x, y, z) and has the rotation R in frame B, both in the axes of B. A constraint holds

    Φ(p, R, q) = 0,   with coordinates q of joints, if any                                                (1)

or, for a velocity, with the rates ṗ = (vx, vy, vz) of the position, the angular velocity ω = (wx, wy, wz) of A relative
to B in the axes of B, and rates of joints, in all of which Φ is linear,

    Φ(p, R, q, ω, ṗ, q̇) = 0                                                                               (2)

Kernels run Φ as a program of an expression (expression_programs). The numbers of its variables say what they are: 0 to
2 is p, 3 + 3 j + i is row i of column j of R, then come ṗ and ω, and for each joint its coordinate and its rate.
Source: F. Boyer et al. 2023, Remark 2 and (7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from lissom.robot import checks
from lissom.robot.constraints import Closure, End, RowKind, check_program
from lissom.robot.expression_programs import Operation, Steps, program
from lissom.robot.fields import LINK_OR_WORLD, FunctionOfQ, JointName, LinkName, Place, Placement
from lissom.robot.functions import Expression
from lissom.robot.traced_functions import TracedFunction

MOST_JOINTS = 10  # of one function; kernels keep its six motions and these coordinates in two registers
RATES, JOINTS = 12, 18  # first numbers of the velocities of A in B, and of the coordinates of joints
_POSE = [*"xyz", *(f"R{i}{j}" for j in "123" for i in "123")]
_VELOCITY = ["vx", "vy", "vz", "wx", "wy", "wz"]
_NUMBERS = {name: k for k, name in enumerate([*_POSE, *_VELOCITY])}
_SUFFIX = "_rate"
_LAST_ROW = {12: 0.0, 13: 0.0, 14: 0.0, 15: 1.0}  # of a pose (4, 4)
_SUMS = (Operation.ADD, Operation.SUBTRACT)


def restricts(variable: int) -> bool:
    """Whether the variable with a number is a velocity."""
    return variable % 2 == 1 if variable >= JOINTS else variable >= RATES


@final
@dataclass(frozen=True)
class Constraint:
    """One function of the pose of frame A in frame B that stays zero, or of the velocity of A in B.

    Example: a point of a link on the surface z = x² of the world is Expression("z - x**2", "x, z"). Two places at the
    distance 0.3 m of each other have Expression("sqrt(x*x + y*y + z*z) - 0.3", "x, y, z"). The axes x of the two frames
    at an angle of 60 degrees have Expression("R11 - 0.5", "R11").

    Args:
        name: unique among the constraints.
        link_a: name of the link that carries frame A.
        link_b: name of the link that carries frame B; None is the world.
        function: Φ, of any unit. An ls.Expression whose variables are among x, y, z [m], the position of A in B, and
            R11, R12, ..., R33, the components of its rotation: Rij is the component of axis j of A along axis i of B.
            Further variables are coordinates of `joints`, in their order [rad, m]. Or an ls.TracedFunction of the pose
            (4, 4) of A in B, and of the coordinates (n,) if there are joints, of operations that expressions have. It
            has no corners, and its gradient does not vanish where it is zero.
        joints: names of links whose joints have one coordinate each, ten at most.
        velocity: whether Φ is a velocity that is zero, while no position is held. It is then linear in vx, vy, vz
            [m/s], the rates of x, y, z, in wx, wy, wz [rad/s], the angular velocity of A relative to B in the axes of
            B, and in rates of joints, such as angle_rate of a variable angle. A traced function is one of (g, eta), or
            (g, eta, q, v) with joints, where eta holds wx, wy, wz, vx, vy, vz.
        s_a, s_b: abscissae on rods, or places on deformable bodies.
        placement_a, placement_b: poses (4, 4) of frames A and B in their links' frames at s, or in the world; None is
            the identity.
    """

    name: str
    link_a: LinkName
    link_b: Annotated[str | None, LINK_OR_WORLD, "s_b", "placement_b"] = None
    function: FunctionOfQ = None
    joints: tuple[JointName, ...] = ()
    velocity: bool = False
    s_a: Place = 1.0
    s_b: Place = 1.0
    placement_a: Placement = None
    placement_b: Placement = None

    def check(self, where: str) -> None:
        """Raise ModelError if a place or a placement is invalid, the joints are no list of different names, or the
        function is none of those that the class allows."""
        for side in ("a", "b"):
            checks.place(getattr(self, f"s_{side}"), f"{where}: s_{side}")
            checks.pose(getattr(self, f"placement_{side}"), f"{where}: placement_{side}")
        checks.require(isinstance(self.velocity, bool), f"{where}: velocity", "must be true or false", self.velocity)
        listed = isinstance(self.joints, list | tuple) and all(isinstance(x, str) for x in self.joints)
        checks.require(listed, f"{where}: joints", "must be a list of names", self.joints)
        rule = f"must be {MOST_JOINTS} names at most, each of another joint"
        good = len(set(self.joints)) == len(self.joints) <= MOST_JOINTS
        checks.require(good, f"{where}: joints", rule, ", ".join(map(repr, self.joints)))
        self.program(where)

    def ends(self) -> tuple[End, End]:
        """Frames A and B."""
        a = End(self.link_a, self.s_a, self.placement_a, ("link_a", "s_a"))
        return a, End(self.link_b, self.s_b, self.placement_b, ("link_b", "s_b"))

    def closure(self, where: str) -> Closure:
        """A row without constants, whose kind tells kernels to take the function."""
        kind = RowKind.RATE_FUNCTION if self.velocity else RowKind.FUNCTION
        return Closure(np.zeros((1, 6)), np.array([kind], dtype=np.int32), 3, np.zeros(3), np.zeros((3, 3)), 0.0,
                       np.zeros((2, 3)))  # fmt: skip

    def program(self, where: str) -> Steps:
        """The program of Φ, with the numbers of its variables.

        Raises:
            ModelError: it is no expression and cannot be traced, has variables that are not known, has corners, does
                not depend on the pose and on each joint, or is not linear in velocities, if it is one.
        """
        where, function = f"{where}: function", self.function
        if isinstance(function, TracedFunction):
            steps, numbers, source = self._traced(function, where), range(JOINTS + 2 * MOST_JOINTS), function.function
        elif isinstance(function, Expression) and not isinstance(function.source, list | tuple):
            numbers, source = self._numbers(function, where), function.source
            steps = program(source, function.variable, function.constants)
        else:
            raise checks.fail(where, "must be one ls.Expression, or an ls.TracedFunction", function)
        steps = [(step, float(numbers[int(k)]) if step == Operation.TIME else k) for step, k in steps]
        check_program(steps, where, source)
        used = {int(k) for step, k in steps if step == Operation.TIME}
        rule = "must depend on the pose of frame A in frame B; relations of joints alone are couplings (add_coupling)"
        checks.require(any(k < JOINTS for k in used), where, rule, source)
        unused = [name for k, name in enumerate(self.joints) if not {JOINTS + 2 * k, JOINTS + 2 * k + 1} & used]
        rule = "must depend on each joint; leave out those on which it does not depend"
        checks.require(not unused, where, rule, ", ".join(map(repr, unused)))
        if self.velocity:
            rule = "must be linear in velocities, and zero at rest, where velocity is true"
            checks.require(_degree(steps) == 1, where, rule, source)
        else:
            rule = "must have no velocities; set velocity=True for a constraint on velocities"
            checks.require(not any(map(restricts, used)), where, rule, source)
        return steps

    def _numbers(self, function: Expression, where: str) -> list[int]:
        """The numbers of the variables of an expression, in their order."""
        others = list(dict.fromkeys(x.removesuffix(_SUFFIX) for x in function.variables if x not in _NUMBERS))
        known = "x, y, z, R11, ..., R33" + (", vx, vy, vz, wx, wy, wz" if self.velocity else "")
        rule = f"must have as variables some of {known}, and one name for each of its {len(self.joints)} joints"
        checks.require(len(others) == len(self.joints), where, rule, function.variable)
        return [
            _NUMBERS[x] if x in _NUMBERS else JOINTS + 2 * others.index(x.removesuffix(_SUFFIX)) + x.endswith(_SUFFIX)
            for x in function.variables
        ]

    def _traced(self, function: TracedFunction, where: str) -> Steps:
        """The program of a traced function, with the numbers of its variables."""
        n = len(self.joints)
        coordinates, rates = [JOINTS + 2 * k for k in range(n)], [JOINTS + 2 * k + 1 for k in range(n)]
        shapes: list[tuple[int, ...]] = [(4, 4), *([(6,)] if self.velocity else []), *([(n,)] if n else [])]
        numbers = [3 + 3 * j + i if j < 3 else i for i in range(4) for j in range(4)]
        if self.velocity:
            numbers += [*range(RATES + 3, JOINTS), *range(RATES, RATES + 3)]
        numbers += coordinates
        if self.velocity and n:
            shapes.append((n,))
            numbers += rates
        steps = function.program(where, shapes)
        known = [(Operation.NUMBER, _LAST_ROW[int(k)]) if step == Operation.TIME and k in _LAST_ROW else (step, k)
                 for step, k in steps]  # fmt: skip
        return [(step, float(numbers[int(k)]) if step == Operation.TIME else k) for step, k in known]


def _degree(steps: Steps) -> int | None:
    """The degree of a program in velocities: 0 or 1, −1 if it is zero, or None if it has none."""
    stack: list[int | None] = []
    for step, number in steps:
        if step == Operation.TIME:
            stack.append(int(restricts(int(number))))
        elif step == Operation.NUMBER:
            stack.append(-1 if number == 0.0 else 0)
        elif step in (*_SUMS, Operation.MULTIPLY, Operation.DIVIDE, Operation.POWER):
            y, x = stack.pop(), stack.pop()
            stack.append(_degree_of_pair(step, *((y, x) if number else (x, y))))
        elif step == Operation.NEGATE:
            pass
        else:
            stack.append(None if stack.pop() in (1, None) else 0)
    return stack.pop()


def _degree_of_pair(step: Operation, x: int | None, y: int | None) -> int | None:
    """The degree of an operation with two operands, from theirs."""
    if x is None or y is None:
        return None
    if step in _SUMS:
        return x if y in (x, -1) else y if x == -1 else None
    if step == Operation.MULTIPLY:
        return -1 if -1 in (x, y) else x + y if x + y < 2 else None
    if step == Operation.DIVIDE:
        return x if y == 0 else None
    return 0 if max(x, y) < 1 else None
