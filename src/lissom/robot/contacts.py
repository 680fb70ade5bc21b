"""Contacts: contact spheres (balls) along links touch shapes, or the balls of other links.

    normal    N = k δ^p (1 + c δ̇)₊                          δ penetration depth of a ball in a shape              (1)
    friction  −μ N v_t / √(|v_t|² + v_s²)                     v_t slip velocity at the point of contact             (2)
              −k_t (x + τ v_t), no larger than μ N             x displacement of the ball from its anchor         (3)

(2) is Coulomb's law, smoothed at zero slip by v_s. (3) is Coulomb's law with a tangential spring that holds a contact
below the limit of friction.

Source: Mathew 2025 (57), (58); the factor with c is the law of Hunt and Crossley.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

from lissom.robot import checks
from lissom.robot.fields import LINK_OR_WORLD, FunctionOfS, LinkNames, Place, Placement
from lissom.robot.functions import profile
from lissom.robot.shapes import Shape


@final
@dataclass(frozen=True)
class Contact:
    """A contact law, and the links and the shape that may touch.

    Args:
        name: unique among contacts.
        links: names of the links whose contact spheres (balls) touch; a single name is a list of one.
        shape: the shape that these balls touch; None if they touch the balls of `others`.
        on: name of the link to which the shape is fixed; None is the world.
        s: abscissa on that link, or a place on a deformable body.
        placement: pose (4, 4) of the shape's frame in the frame of that link at s, or in the world; None is the
            identity.
        others: names of the links whose balls are touched; they may be the same as `links`. Balls of a
            link, or of a link and its parent, never touch if their distance along the links is below 1.2 times the sum
            of their radii.
        stiffness: k of (1) [N/m^p].
        exponent: p >= 1. 1.5 is Hertz's law. With 1 the force is not differentiable at first touch.
        damping: c [s/m]. A ball that hits a wall at speed v bounces with a coefficient of restitution of about 1 −
            2cv/3.
        friction: friction coefficient μ.
        slip_speed: v_s, the slip speed at which smooth friction reaches 0.7 μ N [m/s]. A body held by smooth friction
            creeps at a fraction of this speed. Ignored if `stick_stiffness` is given.
        stick_stiffness: k_t of (3) [N/m]. A spring ties the ball to its anchor: the point of first touch, or the point
            to which it has slipped. A robot at rest does not creep, and statics includes friction. None is the smooth
            law (2).
        stick_damping: τ of (3) [s].
        radius: radius of the balls on rods [m]: a number, (base, tip), or a function of s. None is half the smallest
            width of the section.
        per_interval: number of balls on each integration interval of a rod.
    """

    name: str
    links: LinkNames
    shape: Shape | None = None
    on: Annotated[str | None, LINK_OR_WORLD, "s", "placement"] = None
    s: Place = 1.0
    placement: Placement = None
    others: LinkNames | None = None
    stiffness: float = 1e5
    exponent: float = 1.5
    damping: float = 0.0
    friction: float = 0.0
    slip_speed: float = 1e-3
    stick_stiffness: float | None = None
    stick_damping: float = 1e-3
    radius: FunctionOfS = None
    per_interval: int = 1

    def carriers(self) -> tuple[str, ...]:
        """Names of the links in `links`."""
        return (self.links,) if isinstance(self.links, str) else tuple(self.links)

    def touched(self) -> tuple[str, ...]:
        """Names of the links in `others`."""
        if self.others is None:
            return ()
        return (self.others,) if isinstance(self.others, str) else tuple(self.others)

    def check(self, where: str) -> None:
        """Raise ModelError where the description breaks a rule."""
        for name, value in (("links", self.links), ("others", self.others)):
            is_list = isinstance(value, str | list | tuple) or (name == "others" and value is None)
            checks.require(is_list, f"{where}: {name}", "must be the name of a link or a list of names", value)
        checks.require(bool(self.carriers()), f"{where}: links", "must name at least one link", self.links)
        one = (self.shape is None) != (self.others is None)
        checks.require(one, where, "needs a shape or other links, and not both", (self.shape, self.others))
        if self.shape is not None:
            checks.require(isinstance(self.shape, Shape), f"{where}: shape", "must be a Shape", self.shape)
            self.shape.surface(f"{where} > shape")
        checks.place(self.s, f"{where}: s")
        checks.pose(self.placement, f"{where}: placement")
        checks.number(self.stiffness, f"{where}: stiffness", above=0.0)
        checks.number(self.exponent, f"{where}: exponent", least=1.0)
        checks.number(self.damping, f"{where}: damping", least=0.0)
        checks.number(self.friction, f"{where}: friction", least=0.0)
        checks.number(self.slip_speed, f"{where}: slip_speed", above=0.0)
        if self.stick_stiffness is not None:
            checks.number(self.stick_stiffness, f"{where}: stick_stiffness", above=0.0)
        checks.number(self.stick_damping, f"{where}: stick_damping", least=0.0)
        checks.integer(self.per_interval, f"{where}: per_interval", least=1, most=1000)
        if self.radius is not None:
            size = profile(self.radius, f"{where}: radius", least=0.0)
            for s in (0.0, 0.5, 1.0):
                size(s)
