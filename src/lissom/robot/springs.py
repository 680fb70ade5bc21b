"""Springs and dampers between two points.

    T = T₀ + k (L − L₀) + c L̇,   or   T = law(L) + c L̇,   or   T = law(L, L̇)                              (1)

T > 0 pulls the two points towards each other; L is their distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.robot import checks
from lissom.robot.actuators import PathPoint
from lissom.robot.fields import FunctionOfS
from lissom.robot.functions import cubic_pieces, is_compiled


@final
@dataclass(frozen=True)
class Spring:
    """A spring, a damper or a cable between two points.

    Args:
        name: unique among springs.
        a, b: its end points: a PathPoint, or the name of a link for its frame (the tip of a rod). One of the two may be
            a PathPoint(None, position) in the world.
        stiffness: k [N/m]. damping: c [N·s/m].
        rest: L₀, the length at which k pulls nothing [m]; None is the length in the neutral configuration.
        preload: T₀, the tension at L₀ [N].
        slack: whether it only pulls, as a cable does: T is 0 where T₀ + k (L − L₀) or (1) is negative.
        law: the tension [N] in place of T₀ + k (L − L₀): rows (length, tension) of a cubic spline that is straight
            beyond its ends, or a Tabulated of the length. A Warp function of (length, rate), which is compiled into the
            kernels, replaces all of (1).
    """

    name: str
    a: str | PathPoint
    b: str | PathPoint
    stiffness: float = 0.0
    damping: float = 0.0
    rest: float | None = None
    preload: float = 0.0
    slack: bool = False
    law: FunctionOfS = None

    def ends(self) -> tuple[PathPoint, PathPoint]:
        """Its two points."""
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
        if is_compiled(self.law):
            rule = "must be left out where the law is a Warp function, which has the rate"
            checks.require(not self.damping and not self.slack, f"{where}: damping, slack", rule, self.damping)
        else:
            self.table(where)

    def table(self, where: str) -> tuple[np.ndarray, np.ndarray]:
        """The tension over the length as cubic pieces, see cubic_pieces."""
        rule = "must be rows (length, tension), a Tabulated, or a Warp function of (length, rate)"
        knot, coefficient = cubic_pieces(self.law, f"{where}: law", rule, "lengths >= 0")
        checks.require(knot[0] >= 0.0, f"{where}: law", "needs at least two rising lengths >= 0", knot)
        return knot, coefficient
