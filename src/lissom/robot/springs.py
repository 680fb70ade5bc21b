"""Springs and dampers between two points.

    T = T₀ + k (L − L₀) + c L̇,   or   T = law(L) + c L̇,   or   T = law(L, L̇)                              (1)

L is the distance between the points. A tension T > 0 pulls them towards each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.robot import checks
from lissom.robot.actuators import PathPoint
from lissom.robot.fields import FunctionOfS, LinkName
from lissom.robot.functions import cubic_pieces, is_compiled
from lissom.robot.traced_functions import TracedFunction


@final
@dataclass(frozen=True)
class Spring:
    """A spring, a damper or a cable between two points.

    Args:
        name: unique among springs.
        a, b: end points. Each is a PathPoint, or the name of a link for its frame (for a rod, its tip). One of the two
            may be a PathPoint(None, position) in the world.
        stiffness: k [N/m].
        damping: c [N·s/m].
        rest: L₀, the length at which the spring force k (L − L₀) is zero [m]; None is the length in the neutral
            configuration.
        preload: T₀, the tension at L₀ [N].
        slack: True for a cable, which only pulls: T is 0 if T₀ + k (L − L₀) or all of (1) is negative.
        law: tension [N] that replaces T₀ + k (L − L₀): rows (length, tension) of a cubic spline that is straight beyond
            its ends, or a Tabulated of the length. An ls.TracedFunction of (length, rate), whose derivatives are exact,
            or a Warp function of these replaces all of (1); both are compiled into the kernels.
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

    def ends(self) -> tuple[PathPoint, PathPoint]:
        """The two end points."""
        a, b = (end if isinstance(end, PathPoint) else PathPoint(end) for end in (self.a, self.b))
        return a, b

    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""
        for name, end in (("a", self.a), ("b", self.b)):
            rule = "must be a PathPoint or the name of a link"
            checks.require(isinstance(end, PathPoint | str), f"{where}: {name}", rule, end)
        for name, point in zip(("a", "b"), self.ends()):
            checks.place(point.s, f"{where} > {name}: s")
            checks.array(point.position, (3,), f"{where} > {name}: position", "must be a finite 3-vector")
        grounded = all(point.link is None for point in self.ends())
        checks.require(not grounded, where, "must be fixed to a link at one end", (self.a, self.b))
        checks.number(self.stiffness, f"{where}: stiffness", least=0.0)
        checks.number(self.damping, f"{where}: damping", least=0.0)
        checks.number(self.preload, f"{where}: preload")
        if self.rest is not None:
            checks.number(self.rest, f"{where}: rest", least=0.0)
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
        checks.require(knot[0] >= 0.0, f"{where}: law", "needs at least two rising lengths >= 0", knot)
        return knot, coefficient
