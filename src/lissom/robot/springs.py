"""Springs and dampers between two points, or along a path.

    T = T₀ + k (L − L₀) + c L̇,   or   T = law(L) + c L̇,   or   T = law(L, L̇)                              (1)

L is the distance between the points, or the length of the path. A tension T > 0 makes it shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.robot import checks
from lissom.robot.actuators import PathPoint, PathWrap, check_path
from lissom.robot.fields import ForcePlace, FunctionOfS, LinkName
from lissom.robot.functions import cubic_pieces, is_compiled
from lissom.robot.traced_functions import TracedFunction


@final
@dataclass(frozen=True)
class SpringBranch:
    """A further path of a spring, such as that of a rope over a movable pulley. A multiple of its length is added to L
    of the spring, and its tension is the same multiple of T.

    Args:
        path: PathPoint and PathWrap items in order; see Spring.
        factor: this multiple [-], not zero; it may be negative.
    """

    path: tuple[PathPoint | PathWrap, ...]
    factor: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.path, list):
            object.__setattr__(self, "path", tuple(self.path))

    def check(self, where: str) -> None:
        """Raise ModelError if the path is invalid or the factor is zero."""
        check_spring_path(self.path, where)
        checks.number(self.factor, f"{where}: factor")
        checks.require(self.factor != 0.0, f"{where}: factor", "must not be zero", self.factor)


@final
@dataclass(frozen=True)
class Spring:
    """A spring, a damper or a cable between two points, or along a path.

    Args:
        name: unique among springs.
        a, b: end points. Each is a PathPoint, or the name of a link for its frame (for a rod, its tip). One of the two
            may be a PathPoint(None, position) in the world.
        stiffness: k [N/m].
        damping: c [N·s/m].
        rest: L₀, the length at which the spring force k (L − L₀) is zero [m]; None is the length in the neutral
            configuration.
        preload: T₀, the tension at L₀ [N].
        slack: True for a cable, which has no negative tension: T is 0 if T₀ + k (L − L₀) or all of (1) is negative.
        law: tension [N] that replaces T₀ + k (L − L₀): rows (length, tension) of a cubic spline that is straight beyond
            its ends, or a Tabulated of the length. An ls.TracedFunction of (length, rate), whose derivatives are exact,
            or a Warp function of these replaces all of (1); both are compiled into the kernels.
        via: PathPoint and PathWrap items in order, over which the spring runs from a to b without friction. Straight
            lines join one item to the next, round a PathWrap between them.
        branches: further paths. Their lengths times their factors are added to L.
    """

    name: str
    a: LinkName | PathPoint
    b: LinkName | PathPoint
    stiffness: float = 0.0
    damping: float = 0.0
    rest: float | None = None
    preload: float = 0.0
    slack: bool = False
    law: FunctionOfS = None
    via: tuple[PathPoint | PathWrap, ...] = ()
    branches: tuple[SpringBranch, ...] = ()

    def ends(self) -> tuple[PathPoint, PathPoint]:
        """The two end points."""
        a, b = (end if isinstance(end, PathPoint) else PathPoint(end) for end in (self.a, self.b))
        return a, b

    def path(self) -> tuple[PathPoint | PathWrap, ...]:
        """The points and shapes from a to b."""
        a, b = self.ends()
        return a, *self.via, b

    def paths(self) -> tuple[tuple[float, tuple[PathPoint | PathWrap, ...]], ...]:
        """Factor and items of each path."""
        return (1.0, self.path()), *((branch.factor, branch.path) for branch in self.branches)

    def places(self) -> tuple[ForcePlace, ...]:
        """The two ends of a straight spring. Pieces of paths are placed otherwise."""
        ends = self.ends() if self.is_straight else ()
        return tuple(ForcePlace(end.link, end.s, bool(np.any(end.position))) for end in ends)

    @property
    def is_straight(self) -> bool:
        """Whether L is the distance of two points."""
        return not self.via and not self.branches

    def check(self, where: str) -> None:
        """Raise ModelError if an end, an item of a path, a branch or a number of the law is invalid, or if no item is
        on a link."""
        for name, end in (("a", self.a), ("b", self.b)):
            rule = "must be a PathPoint or the name of a link"
            checks.require(isinstance(end, PathPoint | str), f"{where}: {name}", rule, end)
        for name, point in zip(("a", "b"), self.ends()):
            checks.place(point.s, f"{where} > {name}: s")
            checks.array(point.position, (3,), f"{where} > {name}: position", "must be a finite 3-vector")
        for name, value in (("via", self.via), ("branches", self.branches)):
            checks.require(isinstance(value, tuple), f"{where}: {name}", "must be a tuple", value)
        if self.via:
            check_spring_path(self.path(), where)
        for k, branch in enumerate(self.branches):
            here = f"{where} > branches[{k}]"
            checks.require(isinstance(branch, SpringBranch), here, "must be a SpringBranch", branch)
            branch.check(here)
        grounded = all(item.link is None for _, path in self.paths() for item in path)
        checks.require(not grounded, where, "must be fixed to a link at one end", (self.a, self.b))
        checks.number(self.stiffness, f"{where}: stiffness", least=0.0)
        checks.number(self.damping, f"{where}: damping", least=0.0)
        checks.number(self.preload, f"{where}: preload")
        if self.rest is not None:
            checks.number(self.rest, f"{where}: rest", least=None if self.branches else 0.0)
        checks.require(isinstance(self.slack, bool), f"{where}: slack", "must be true or false", self.slack)
        self._check_law(where)

    def _check_law(self, where: str) -> None:
        given = {"stiffness": self.stiffness, "rest": self.rest, "preload": self.preload}
        if self.law is None:
            does = self.stiffness > 0.0 or self.damping > 0.0 or self.preload != 0.0
            checks.require(does, where, "needs a stiffness, a damping, a preload or a law", given)
            return
        for name, value in given.items():
            checks.require(not value, f"{where}: {name}", "must be left out where there is a law", value)
        if is_compiled(self.law) or isinstance(self.law, TracedFunction):
            rule = "must be left out where the law is a function, which has the rate"
            checks.require(not self.damping and not self.slack, f"{where}: damping, slack", rule, self.damping)
        else:
            self.table(where)

    def table(self, where: str) -> tuple[np.ndarray, np.ndarray]:
        """The tension as a function of the length, as cubic pieces; see cubic_pieces."""
        rule = "must be rows (length, tension), a Tabulated, an ls.TracedFunction or a Warp function of (length, rate)"
        knot, coefficient = cubic_pieces(self.law, f"{where}: law", rule, "lengths >= 0")
        rule = "needs at least two rising lengths >= 0"
        checks.require(knot[0] >= 0.0 or bool(self.branches), f"{where}: law", rule, knot)
        return knot, coefficient


def check_spring_path(path: tuple[PathPoint | PathWrap, ...], where: str) -> None:
    """Raise ModelError unless `path` consists of points and shapes in a valid order."""
    for k, item in enumerate(path if isinstance(path, tuple) else ()):
        rule = "must be a PathPoint or a PathWrap"
        checks.require(isinstance(item, PathPoint | PathWrap), f"{where} > path[{k}]", rule, item)
    check_path(path, where)
