"""Contacts: contact spheres (balls) along links touch shapes, or the balls of other links.

    normal    N = k δ^p (1 + c δ̇)₊                          δ penetration depth of a ball in a shape              (1)
    friction  −μ N v_t / √(|v_t|² + v_s²)                     v_t sliding velocity at the point of contact          (2)
              −k_t (x + τ v_t), no larger than μ N             x elastic displacement from the anchor             (3)

(2) is Coulomb's law, smoothed near v_t = 0 by v_s. (3) is Coulomb's law with a tangential spring that holds a contact
below the limit of friction.

Contacts between all links of a robot leave out links that are joined. Links that fixed joints connect form a group. Two
links are neighbours if they belong to one group, if one joint connects their groups, or if a loop does.

Source: Mathew 2025 (57), (58); the factor with c is the law of Hunt and Crossley.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, final

from lissom.robot import checks
from lissom.robot.bodies import Body, RigidBody
from lissom.robot.fields import LINK_OR_WORLD, FunctionOfS, LinkNames, Place, Placement
from lissom.robot.functions import profile
from lissom.robot.joints import JointFree
from lissom.robot.materials import Material, check_surface
from lissom.robot.shapes import Shape, ShapePlane, ShapeSphere
from lissom.robot.surface_points import DEFAULT

if TYPE_CHECKING:
    from lissom.robot.robot import Robot

GIVEN = {"exponent": 1.5, "slip_speed": 1e-3, "stick_damping": 1e-3}  # defaults of a contact with a stiffness
_BOUNDS: dict[str, dict[str, float]] = {
    "stiffness": {"above": 0.0}, "exponent": {"least": 1.0}, "damping": {"least": 0.0}, "slip_speed": {"above": 0.0},
    "stick_stiffness": {"above": 0.0}, "stick_damping": {"least": 0.0}, "impact_speed": {"above": 0.0},
}  # fmt: skip


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
        stiffness: k of (1) [N/m^p]. None is chosen from the materials of both sides by Hertz's laws, with the exponent,
            the damping and the friction that are None; see the manual and `lissom info`.
        exponent: p >= 1. 1.5 is Hertz's law. With 1 the force is not differentiable at first touch. It needs a
            stiffness, with which None is 1.5.
        damping: c [s/m]. A ball that hits a wall at speed v bounces with a coefficient of restitution of about 1 −
            2cv/3. None follows from `restitution`; with a stiffness and without any restitution it is 0.
        friction: friction coefficient μ. None is that of the materials: the geometric mean of both sides, or that of
            the only side that states one. If none does, it is 0 with a stiffness, otherwise 0.5.
        slip_speed: v_s, the sliding speed at which smooth friction reaches 0.7 μ N [m/s]. A body held by smooth
            friction creeps at a fraction of this speed. Ignored if `stick_stiffness` is given. None is 1e-3 with a
            stiffness; without one it is law (3) with a chosen k_t.
        stick_stiffness: k_t of (3) [N/m]. A spring ties the ball to its anchor: the point of first touch, or the point
            to which it has slid. A robot at rest does not creep, and statics includes friction. None is the smooth
            law (2) if there is a `stiffness` or a `slip_speed`, otherwise chosen.
        stick_damping: τ of (3) [s]. None is 1e-3 if there is a stiffness, otherwise chosen.
        restitution: coefficient of restitution e in (0, 1] at the impact speed, in place of `damping`. None is that of
            the materials, each with the share of its compliance, or 0.5 if neither states one.
        impact_speed: speed at which the restitution holds [m/s]. Faster impacts return a smaller share.
        material: material of the shape; None is that of the link `on`, and rigid in the world.
        surface: whether a pressure is integrated over the surfaces of `links`, in place of forces on balls; a number is
            that of cells along an edge, True is 16, or 8 for rigid bodies on a plane. The pressure is that of an
            elastic layer (Winkler), p = K δ, with `stiffness` K [N/m³]; None is chosen from the materials.
            `stick_stiffness` is K_t [N/m³] then. The surfaces touch the shape, or the shapes of the rigid boxes,
            cylinders and spheres of `others`.
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
    stiffness: float | None = None
    exponent: float | None = None
    damping: float | None = None
    friction: float | None = None
    slip_speed: float | None = None
    stick_stiffness: float | None = None
    stick_damping: float | None = None
    radius: FunctionOfS = None
    per_interval: int = 1
    restitution: float | None = None
    impact_speed: float = 0.1
    material: Material | None = None
    surface: bool | int = False

    def __post_init__(self) -> None:
        """If a stiffness is given, set the fields that do not depend on materials to their defaults."""
        for name, value in GIVEN.items() if self.stiffness is not None else ():
            if getattr(self, name) is None:
                object.__setattr__(self, name, 1.0 if self.surface and name == "exponent" else value)

    def carriers(self) -> tuple[str, ...]:
        """Names of the links in `links`."""
        return (self.links,) if isinstance(self.links, str) else tuple(self.links)

    def touched(self) -> tuple[str, ...]:
        """Names of the links in `others`."""
        if self.others is None:
            return ()
        return (self.others,) if isinstance(self.others, str) else tuple(self.others)

    def same_balls(self, other: Contact) -> bool:
        """Whether links have the same balls in both contacts."""
        same = self.radius is other.radius and self.per_interval == other.per_interval
        return same and (self.count, self.cells) == (other.count, other.cells)

    @property
    def count(self) -> int:
        """Number of cells along an edge; 0 for balls."""
        return DEFAULT if self.surface is True else int(self.surface)

    @property
    def cells(self) -> int:
        """Number of cells along an edge of rigid bodies. By default it is halved for a plane, which cells of any size
        press exactly."""
        return self.count // 2 if self.surface is True and self.is_on_plane else self.count

    @property
    def is_on_plane(self) -> bool:
        """Whether the shape is a plane."""
        return isinstance(self.shape, ShapePlane)

    def check(self, where: str) -> None:
        """Raise ModelError if the contact has no links, has both or neither of a shape and other links, or if another
        field is invalid."""
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
        for name, bound in _BOUNDS.items():
            if getattr(self, name) is not None:
                checks.number(getattr(self, name), f"{where}: {name}", **bound)
        alone = self.stiffness is None and self.exponent is not None
        checks.require(not alone, f"{where}: exponent", "needs a stiffness", self.exponent)
        check_surface(self, where)
        twice = self.damping is not None and self.restitution is not None
        rule = "must be None with a damping, which states it already"
        checks.require(not twice, f"{where}: restitution", rule, self.restitution)
        if not isinstance(self.surface, bool):
            checks.integer(self.surface, f"{where}: surface", least=2, most=200)
        if self.surface:
            rule = "must be None or 1 with a surface, whose pressure is K δ"
            checks.require(self.exponent in (None, 1, 1.0), f"{where}: exponent", rule, self.exponent)
            checks.require(self.radius is None, f"{where}: radius", "must be None with a surface", self.radius)
        is_material = self.material is None or isinstance(self.material, Material)
        checks.require(is_material, f"{where}: material", "must be a Material", self.material)
        if self.material is not None:
            checks.require(
                self.shape is not None, f"{where}: material", "needs a shape, whose material it is", "others"
            )
            self.material.check(f"{where} > material")
        checks.integer(self.per_interval, f"{where}: per_interval", least=1, most=1000)
        if self.radius is not None:
            size = profile(self.radius, f"{where}: radius", least=0.0)
            for s in (0.0, 0.5, 1.0):
                size(s)


def pairs_of(links: LinkNames, others: LinkNames | None) -> set[frozenset[str]]:
    """The pairs of different links, one of `links` and one of `others`, or two of `links` without others."""
    first = (links,) if isinstance(links, str) else links
    second = first if others is None else (others,) if isinstance(others, str) else others
    return {frozenset((a, b)) for a in first for b in second if a != b}


@final
@dataclass(frozen=True)
class ContactExclusion:
    """Links that `Robot.add_mutual_contacts` does not let touch each other.

    Args:
        name: unique among contact exclusions.
        links: names of links.
        others: names of links that `links` do not touch; None are `links` themselves.
    """

    name: str
    links: LinkNames
    others: LinkNames | None = None

    def pairs(self) -> set[frozenset[str]]:
        """The pairs of links that do not touch each other."""
        return pairs_of(self.links, self.others)


@final
@dataclass(frozen=True)
class ContactPair:
    """Links that `Robot.add_mutual_contacts` lets touch each other although a joint connects them or a ContactExclusion
    names them.

    Args:
        name: unique among contact pairs.
        links: names of links.
        others: names of links that `links` touch; None are `links` themselves.
        friction: coefficient of their friction; None is that of the other contacts.
    """

    name: str
    links: LinkNames
    others: LinkNames | None = None
    friction: float | None = None

    def pairs(self) -> set[frozenset[str]]:
        """The pairs of links that touch each other."""
        return pairs_of(self.links, self.others)


class MutualContacts(NamedTuple):
    """The contacts between links of a robot; see `Robot.add_mutual_contacts`.

    Fields:
        contacts: the contacts that were added.
        neighbours: pairs of links that were left out since a joint or a loop connects them, or a ContactExclusion names
            them; pairs of a ContactPair are not left out.
        overlapping: pairs of links that were left out since they overlap at the neutral configuration.
    """

    contacts: tuple[Contact, ...]
    neighbours: tuple[tuple[str, str], ...]
    overlapping: tuple[tuple[str, str], ...]


def mutual_contacts(robot: Robot, links: Sequence[str] | None, law: Contact) -> MutualContacts:
    """Contacts between all pairs of links that are no neighbours.

    Args:
        links: names of the links; None is every link that can touch.
        law: a contact with the first part of their names and their numbers.
    Raises:
        ModelError: a name is unknown, or a body cannot touch.
    """
    where = f"mutual contacts {law.name!r}"
    rule = "must be None with a surface, since bodies without a form are touched by their balls"
    checks.require(not (law.surface and law.stiffness), f"{where}: stiffness", rule, law.stiffness)
    bodies = {key: link.body for key, link in robot.links.items() if isinstance(link.body, Body)}
    shapes = {key: body.contact_shape() for key, body in bodies.items()}
    if links is None:
        links = [key for key, body in bodies.items() if body.carries_balls or shapes[key] is not None]
    is_list = isinstance(links, Sequence) and not isinstance(links, str) and len(set(links)) == len(links)
    checks.require(is_list, f"{where}: links", "must be a list of names of different links", links)
    for link in links:
        checks.named(link, robot.links, f"{where}: links", "links")
        can = link in bodies and (bodies[link].carries_balls or shapes[link] is not None)
        checks.require(can, f"{where}: links", "must carry a body with balls or with a form", link)
    groups = {link: _group(robot, link) for link in links}
    bearers = {link: _bearer(robot, group) for link, group in groups.items()}
    near: dict[str, set[str]] = {link: set() for link in links}  # the links that each link does not touch
    members: dict[str | None, list[str]] = {}
    for link, group in groups.items():
        members.setdefault(group, []).append(link)
    joined = [(group, group) for group in members]
    joined += [(groups[link], bearers[link]) for link in links]
    joined += [(_group(robot, x.link_a), x.link_b and _group(robot, x.link_b)) for x in robot.loops.values()]
    for one, two in joined:
        for link in members.get(one, ()):
            near[link].update(members.get(two, ()))
        for link in members.get(two, ()):
            near[link].update(members.get(one, ()))
    excluded = {pair for exclusion in robot.contact_exclusions.values() for pair in exclusion.pairs()}
    for one, two in map(tuple, excluded):
        for link, other in ((one, two), (two, one)):
            if link in near:
                near[link].add(other)
    paired = {pair: part.friction for part in robot.contact_pairs.values() for pair in part.pairs()}
    for one, two in map(tuple, paired):
        for link, other in ((one, two), (two, one)):
            if link in near:
                near[link].discard(other)
    place = {link: k for k, link in enumerate(links)}
    carriers = [(n, other) for n, other in enumerate(links) if bodies[other].carries_balls]
    found, neighbours = [], []
    for k, link in enumerate(links):
        shape, by_friction, far = shapes[link], {law.friction: []}, near[link] - {link}
        neighbours += [(link, other) for other in sorted(far & place.keys(), key=place.__getitem__) if place[other] > k]
        for n, other in carriers:
            if other not in far and _takes(shape, shapes[other], other == link, n > k):
                friction = paired.get(frozenset((link, other))) if paired else None
                by_friction.setdefault(law.friction if friction is None else friction, []).append(other)
        for friction, others in by_friction.items():
            name = f"{law.name} {link}" if friction == law.friction else f"{law.name} {link} of friction {friction:g}"
            own = replace(law, name=name, links=tuple(others), friction=friction)
            if others and shape is not None:
                found.append(replace(own, shape=shape[0], on=link, placement=shape[1].tolist()))
            elif others:
                found.append(replace(own, others=link, surface=False))
    return MutualContacts(tuple(found), tuple(neighbours), ())


def _takes(shape: Any, other: Any, is_same: bool, is_later: bool) -> bool:
    """Whether the balls of another link touch this link, from the shapes of both links (None: a link has no shape).

    The balls of a body without a shape touch a shape. Of two bodies without shapes the later is touched. Of two bodies
    with shapes each is touched by the other, but a sphere only by a later sphere.
    """
    if is_same:
        return shape is None  # a rod or a deformable body touches itself
    if shape is None:
        return other is None and not is_later
    if other is not None and isinstance(shape[0], ShapeSphere):
        return isinstance(other[0], ShapeSphere) and is_later
    return True


def _group(robot: Robot, link: str) -> str:
    """The first link of the group of a link."""
    here = robot.links[link]
    parent = robot.links.get(here.parent or "")
    is_rigid = parent is not None and (parent.body is None or isinstance(parent.body, RigidBody))
    return _group(robot, here.parent) if here.parent and is_rigid and here.joint.nv == 0 else link


def _bearer(robot: Robot, group: str) -> str | None:
    """The group on which a group moves by its first joint; groups of one link without a body are skipped."""
    parent = robot.links[group].parent
    if parent is None:
        return None
    bearer = _group(robot, parent)
    return bearer if robot.links[parent].body is not None else _bearer(robot, bearer)


def not_parted(robot: Robot, contacts: Sequence[Contact]) -> tuple[Contact, ...]:
    """Mutual contacts without the pairs of links between which a free joint is on the chain of joints: those of
    different free bodies, which no joint keeps together."""
    floats: dict[str, str | None] = {}  # the last link with a free joint on the chain to each link; parents come first
    for name, link in robot.links.items():
        floats[name] = name if isinstance(link.joint, JointFree) else floats[link.parent] if link.parent else None
    out = []
    for contact in contacts:
        base = floats[contact.on or contact.touched()[0]]
        links = tuple(link for link in contact.carriers() if floats[link] == base)
        out += [replace(contact, links=links)] if links else []
    return tuple(out)


def without_pairs(contacts: Sequence[Contact], pairs: Sequence[tuple[str, str]]) -> tuple[Contact, ...]:
    """Mutual contacts without some pairs of links."""
    left_out, out = {frozenset(pair) for pair in pairs}, []
    for contact in contacts:
        touched = contact.on or contact.touched()[0]
        links = tuple(link for link in contact.carriers() if frozenset((link, touched)) not in left_out)
        out += [replace(contact, links=links)] if links else []
    return tuple(out)
