"""Constraints on velocities: skates, and wheels, discs and balls that roll without slip.

They restrict how a robot moves, but not where it can be: constraints of this kind are called non-holonomic. In the
frame of the link, with the twist η = (ω, v) of a skate's link relative to the ground, the point P of a skate does not
move along d,

    w·η = 0,   w = (P × d, d)                                                                             (1)

A disc of radius r about the axis b, with its centre at p, touches the plane through the origin with the unit normal n
at c. A ball has no axis: b = 0.

    c = p − r m,   m = (n − (n·b) b)/|n − (n·b) b|                                                        (2)
    n·c = 0,   t₁·(v + ω × c) = 0,   t₂·(v + ω × c) = 0                                                   (3)

The height n·c is a constraint on the position, with the rate n·(v + ω × c). The tangents t₁ and t₂ are fixed in the
plane, so that (3) is smooth as long as the disc does not lie flat. Each row has a Lagrange multiplier λ, a force on the
link along d, t₁, t₂ or n.

Source: J. I. Neimark, N. A. Fufaev, Dynamics of Nonholonomic Systems, 1972; F. Boyer et al. 2023, Remark 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, final

import numpy as np

from lissom.robot import checks
from lissom.robot.constraints import Closure, End, RowKind
from lissom.robot.fields import LINK_OR_WORLD, LinkName, Numbers, Place, Placement

if TYPE_CHECKING:
    from collections.abc import Sequence

_NORMAL = np.array([0.0, 0.0, 1.0])  # of the plane, in its frame
_OWN, _GROUND = ("link", "s"), ("ground", "s_ground")


def _shifted(position: Any) -> np.ndarray:
    """The pose (4, 4) of a frame at a position, with the axes of the link."""
    pose = np.eye(4)
    pose[:3, 3] = position
    return pose


def _closure(rows: np.ndarray, kinds: Sequence[RowKind], hinge: np.ndarray, radius: float) -> Closure:
    """Rows (n, 3) along which points may not move, of the given kinds."""
    wide, kind = np.hstack([np.zeros((len(rows), 3)), rows]), np.array(kinds, dtype=np.int32)
    return Closure(wide, kind, 3, np.zeros(3), np.zeros((3, 3)), 0.0, hinge, radius)


@final
@dataclass(frozen=True)
class Skate:
    """A skate, a knife edge, or a passive wheel without inertia: a point of a link may not move along one direction,
    which is fixed in the link. It may move along other directions.

    Args:
        name: unique among the skates.
        link: name of the link.
        direction: d (3,) in the frame of the link at s, of any length [-].
        point: P (3,) in this frame [m].
        s: abscissa on a rod, or a place on a deformable body.
        ground: name of the link relative to which the point may not move; None is the world.
        s_ground: abscissa or place on this link.
    """

    name: str
    link: LinkName
    direction: Numbers
    point: Numbers = (0.0, 0.0, 0.0)
    s: Place = 1.0
    ground: Annotated[str | None, LINK_OR_WORLD, "s_ground"] = None
    s_ground: Place = 1.0

    def check(self, where: str) -> None:
        """Raise ModelError if a place is invalid, or the direction or the point is no vector."""
        checks.place(self.s, f"{where}: s")
        checks.place(self.s_ground, f"{where}: s_ground")
        checks.array(self.point, (3,), f"{where}: point", "must be (x, y, z)")
        self.closure(where)

    def ends(self) -> tuple[End, End]:
        """The ground, then the frame at the point."""
        return End(self.ground, self.s_ground, None, _GROUND), End(self.link, self.s, _shifted(self.point), _OWN)

    def closure(self, where: str) -> Closure:
        """The constraint (1). Its force on the link is λ d, that on the ground −λ d."""
        d = checks.direction(self.direction, f"{where}: direction")
        return _closure(-d[None], [RowKind.SKATE], np.zeros((2, 3)), 0.0)


@final
@dataclass(frozen=True)
class Rolling:
    """A wheel, a disc or a ball that rolls on a plane without slip.

    The plane holds it at its height from both sides, so that it does not lift off; its force along the normal tells
    whether it would, and `simulate` warns of a pull. A disc must not lie flat on the plane.

    Args:
        name: unique among the rolling contacts.
        link: name of the link that rolls: of a wheel, the link behind its revolute joint.
        radius: r [m].
        axis: axis of a wheel or disc (3,) in the frame of the link at s, of any length [-]; None is a ball.
        centre: centre (3,) in this frame [m].
        s: abscissa on a rod, or a place on a deformable body.
        ground: name of the link that carries the plane; None is the world.
        s_ground: abscissa or place on this link.
        placement: pose (4, 4) of the plane in the frame of this link at s_ground, or in the world: its origin lies on
            the plane, its z axis is the normal on the side of the wheel. None is the plane z = 0.
        height: whether the plane holds the height of the centre. False: other constraints do, as in a robot on a planar
            joint.
    """

    name: str
    link: LinkName
    radius: float
    axis: Numbers | None = None
    centre: Numbers = (0.0, 0.0, 0.0)
    s: Place = 1.0
    ground: Annotated[str | None, LINK_OR_WORLD, "s_ground", "placement"] = None
    s_ground: Place = 1.0
    placement: Placement = None
    height: bool = True

    def check(self, where: str) -> None:
        """Raise ModelError if a place or the placement is invalid, the axis or the centre is no vector, the radius is
        not positive, or `height` is not true or false."""
        checks.place(self.s, f"{where}: s")
        checks.place(self.s_ground, f"{where}: s_ground")
        checks.pose(self.placement, f"{where}: placement")
        checks.array(self.centre, (3,), f"{where}: centre", "must be (x, y, z)")
        checks.require(isinstance(self.height, bool), f"{where}: height", "must be true or false", self.height)
        self.closure(where)

    def ends(self) -> tuple[End, End]:
        """The frame at the centre, then the plane."""
        own = End(self.link, self.s, _shifted(self.centre), _OWN)
        return own, End(self.ground, self.s_ground, self.placement, _GROUND)

    def closure(self, where: str) -> Closure:
        """The constraints (3): t₁ and t₂ are the x and y axes of the plane, then the height. The forces act on the
        link."""
        radius = checks.number(self.radius, f"{where}: radius", above=0.0)
        axis = np.zeros(3) if self.axis is None else checks.direction(self.axis, f"{where}: axis")
        kinds = [RowKind.ROLLING, RowKind.ROLLING, RowKind.HEIGHT][: 3 if self.height else 2]
        return _closure(np.eye(3)[: len(kinds)], kinds, np.array([_NORMAL, axis]), radius)
