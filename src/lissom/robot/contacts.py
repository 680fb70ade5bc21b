"""Contacts: points of links touch shapes, those of other links or given ones.

Each pair of shapes has a force from both sides: points of each touch the other one; see robot.contact_points. Rods and
deformable bodies have contact spheres (balls), which touch shapes, or the balls of other such bodies.

    normal    N = k δ^p (1 + b δ̇/√(δ̇² + v_r²))             δ penetration depth of a ball in a shape              (1)
              N = k δ^p (1 + c δ̇)₊                                                                              (4)
    friction  −μ N v_t / √(|v_t|² + v_s²)                     v_t sliding velocity at the point of contact          (2)
              −k_t (x + τ v_t), no larger than μ N             x elastic displacement from the anchor             (3)

(1) returns the same part of the speed of all impacts that are much faster than v_r, e = √((1 − b)/(1 + b)). v_r is
about the speed of a fall through the depth of rest, so that bodies come to rest. (4) is the law of Hunt and Crossley:
its coefficient of restitution is 1 for slow impacts, and falls with the speed.

(2) is Coulomb's law, smoothed near v_t = 0 by v_s. (3) is Coulomb's law with a tangential spring that holds a contact
below the limit of friction.

Contacts between all links of a robot leave out links that are joined. Links that fixed joints connect form a group. Two
links are neighbours if they belong to one group, if one joint other than a free one connects their groups, or if a loop
does.

Source: Mathew 2025 (57), (58); K. H. Hunt, F. R. E. Crossley, J. Appl. Mech. 42, 1975; for (1) see contact_laws.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, final

from lissom.errors import LeftOutWarning
from lissom.robot import checks
from lissom.robot.bodies import Body, RigidBody
from lissom.robot.fields import LINK_OR_WORLD, FunctionOfS, LinkNames, Place, Placement
from lissom.robot.functions import profile
from lissom.robot.joints import JointFree
from lissom.robot.materials import Material, check_surface
from lissom.robot.shapes import Shape, ShapePlane
from lissom.robot.surface_points import DEFAULT

if TYPE_CHECKING:
    from lissom.robot.robot import Robot

GIVEN = {"exponent": 1.5, "slip_speed": 1e-3, "stick_damping": 1e-3}  # defaults of a contact with a stiffness
DRAWN_ONLY = "drawings only, which nothing touches; give the body shapes="
_BOUNDS: dict[str, dict[str, float]] = {
    "stiffness": {"above": 0.0}, "exponent": {"least": 1.0}, "damping": {"least": 0.0}, "slip_speed": {"above": 0.0},
    "stick_stiffness": {"above": 0.0}, "stick_damping": {"least": 0.0}, "impact_speed": {"above": 0.0},
}  # fmt: skip


@final
class _Everything(str):
    """All links of a robot that have mass and can touch, in place of their names in a contact. Links without mass count
    if fixed joints connect them with a mass, or with the world."""


EVERYTHING = _Everything("*")


@final
@dataclass(frozen=True)
class Contact:
    """A contact law, and the links and the shape that may touch.

    Args:
        name: unique among contacts.
        links: names of the links that touch; a single name is a list of one. EVERYTHING is all links that have mass and
            can touch.
        shape: the shape that they touch; None if they touch `others`.
        on: name of the link to which the shape is fixed; None is the world.
        s: abscissa on that link, or a place on a deformable body.
        placement: pose (4, 4) of the shape's frame in the frame of that link at s, or in the world; None is the
            identity.
        others: names of the links that are touched; they may be the same as `links`. Balls of a rod or a deformable
            body, or of such a link and its parent, never touch if their distance along the links is below 1.2 times the
            sum of their radii.
        stiffness: k of (1) [N/m^p]. None is chosen from the materials of both sides by Hertz's laws, with the exponent,
            the damping and the friction that are None; see the manual and `lissom info`.
        exponent: p >= 1. 1.5 is Hertz's law. With 1 the force is not differentiable at first touch. It needs a
            stiffness, with which None is 1.5.
        damping: c of (4) [s/m], in place of a restitution. A ball that hits a wall at speed v bounces with a
            coefficient of restitution of about 1 − 2cv/3, which falls with the speed. None is law (1).
        friction: friction coefficient μ. None is that of the materials: the geometric mean of both sides, or that of
            the only side that states one. If none does, it is 0 with a stiffness, otherwise 0.5.
        slip_speed: v_s, the sliding speed at which smooth friction reaches 0.7 μ N [m/s]. A body held by smooth
            friction creeps at a fraction of this speed. Ignored if `stick_stiffness` is given. None is 1e-3 with a
            stiffness; without one it is law (3) with a chosen k_t.
        stick_stiffness: k_t of (3) [N/m]. A spring ties the ball to its anchor: the point of first touch, or the point
            to which it has slid. A robot at rest does not creep, and statics includes friction. None is the smooth
            law (2) if there is a `stiffness` or a `slip_speed`, otherwise chosen.
        stick_damping: τ of (3) [s]. None is 1e-3 if there is a stiffness, otherwise chosen.
        restitution: coefficient of restitution e in (0, 1] of (1). None is that of the materials, each with the share
            of its compliance. If neither states one, it is 1 with a stiffness, otherwise 0.5.
        impact_speed: speed of impacts at which the restitution is exact [m/s]. None is exact for fast impacts, and
            less than 2 % too large above 6 v_r/e². A small speed makes v_r small, and impacts stiffer.
        material: material of the shape; None is that of the link `on`, and rigid in the world.
        surface: whether a pressure is integrated over the surfaces of `links`, in place of forces on balls; a number is
            that of cells along an edge, True is 16, or 8 for rigid bodies on a plane. The pressure is that of an
            elastic layer (Winkler), p = K δ, with `stiffness` K [N/m³]; None is chosen from the materials.
            `stick_stiffness` is K_t [N/m³] then. The surfaces touch the shape, or the shapes of the rigid bodies of
            `others`.
        radius: radius of the balls on rods [m]: a number, (base, tip), or a function of s. None is half the smallest
            width of the section.
        per_interval: number of balls on each integration interval of a rod, and factor of the number of points along
            edges of shapes and of balls on their axes.
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
    impact_speed: float | None = None
    material: Material | None = None
    surface: bool | int = False

    def __post_init__(self) -> None:
        """If a stiffness is given, set the fields that do not depend on materials to their defaults."""
        for name, value in GIVEN.items() if self.stiffness is not None else ():
            if getattr(self, name) is None:
                object.__setattr__(self, name, 1.0 if self.surface and name == "exponent" else value)

    def carriers(self, robot: Robot) -> tuple[str, ...]:
        """Names of the links in `links`."""
        return named_links(robot, self.links)

    def touched(self, robot: Robot) -> tuple[str, ...]:
        """Names of the links in `others`."""
        return () if self.others is None else named_links(robot, self.others)

    @property
    def choices(self) -> tuple[Any, ...]:
        """What determines the balls of rods and deformable bodies."""
        return id(self.radius) if callable(self.radius) else str(self.radius), self.per_interval, self.count

    @property
    def count(self) -> int:
        """Number of cells along an edge; 0 for balls."""
        return DEFAULT if self.surface is True else int(self.surface)

    def cells_on(self, shape: Shape) -> int:
        """Number of cells along an edge of rigid bodies. By default it is halved for a plane, which cells of any size
        press exactly."""
        return self.count // 2 if self.surface is True and isinstance(shape, ShapePlane) else self.count

    def check(self, where: str) -> None:
        """Raise ModelError if the contact has no links, has both or neither of a shape and other links, or if another
        field is invalid."""
        for name, value in (("links", self.links), ("others", self.others)):
            is_list = isinstance(value, str | list | tuple) or (name == "others" and value is None)
            checks.require(is_list, f"{where}: {name}", "must be the name of a link or a list of names", value)
        checks.require(bool(self.links), f"{where}: links", "must name at least one link", self.links)
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
        alone = self.damping is None or self.impact_speed is None
        rule = "must be None with a damping, whose restitution falls with the speed"
        checks.require(alone, f"{where}: impact_speed", rule, self.impact_speed)
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


def named_links(robot: Robot, links: LinkNames) -> tuple[str, ...]:
    """The names of links: one name, a list, or for EVERYTHING all links that have mass and can touch."""
    if isinstance(links, str) and links == EVERYTHING:
        return tuple(name for name, reason in reasons_against(robot).items() if reason is None)
    return (links,) if isinstance(links, str) else tuple(links)


def reasons_against(robot: Robot) -> dict[str, str | None]:
    """Why each link takes no part in contacts of all links; None if it does. Links without mass take part if fixed
    joints connect them with a mass, or with the world."""
    groups = {name: _group(robot, name) for name in robot.links}
    bodies = {name: link.body for name, link in robot.links.items() if isinstance(link.body, Body)}
    heavy = {groups[name] for name, body in bodies.items() if not isinstance(body, RigidBody) or body.mass > 0.0}
    out: dict[str, str | None] = {}
    for name, link in robot.links.items():
        body, touches = link.body, isinstance(link.body, Body) and link.body.touches
        if not isinstance(body, Body):
            out[name] = "no body"
        elif not touches:
            out[name] = DRAWN_ONLY if body.drawn_meshes() else "no shape"
        else:
            out[name] = None if groups[name] in heavy or _is_fixed(robot, groups[name]) else "no mass"
    return out


def warn_of_drawings(robot: Robot, where: str) -> None:
    """Issue one LeftOutWarning about links that contacts of all links leave out since they have drawings only."""
    names = [name for name, reason in reasons_against(robot).items() if reason == DRAWN_ONLY]
    if names:
        shown = ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        text = f"{where}: left out: links {shown}: {DRAWN_ONLY}"
        warnings.warn(LeftOutWarning(text, "\n".join(names)), stacklevel=6)


def _is_fixed(robot: Robot, group: str) -> bool:
    """Whether a group of links is fixed to the world."""
    return robot.links[group].parent is None and robot.links[group].joint.nv == 0


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
        pairs: the pairs of links that may touch; a rod or a deformable body also touches itself.
        neighbours: pairs of links that were left out since a joint or a loop connects them, or a ContactExclusion names
            them, or both are rigid and fixed to the world; pairs of a ContactPair are not left out.
        overlapping: pairs of links that were left out since they overlap at the neutral configuration.
        left_out: links that were left out, each with the reason: it has no body, no mass, no shape, or drawings only.
    """

    contacts: tuple[Contact, ...]
    pairs: tuple[tuple[str, str], ...]
    neighbours: tuple[tuple[str, str], ...]
    overlapping: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]


def mutual_contacts(robot: Robot, links: Sequence[str] | None, law: Contact) -> MutualContacts:
    """Contacts between all pairs of links that are no neighbours.

    Args:
        links: names of the links; None is every link that has mass and can touch.
        law: a contact with the first part of their names and their numbers.
    Raises:
        ModelError: a name is unknown, or a body cannot touch.
    """
    where, left_out = f"mutual contacts {law.name!r}", []
    rule = "must be None with a surface, since bodies without a shape are touched by their balls"
    checks.require(not (law.surface and law.stiffness), f"{where}: stiffness", rule, law.stiffness)
    if links is None or links == EVERYTHING:
        warn_of_drawings(robot, where)
        reasons = reasons_against(robot)
        links = [name for name, reason in reasons.items() if reason is None]
        left_out = [(name, reason) for name, reason in reasons.items() if reason is not None]
    is_list = isinstance(links, Sequence) and not isinstance(links, str) and len(set(links)) == len(links)
    checks.require(is_list, f"{where}: links", "must be a list of names of different links", links)
    bodies: dict[str, Body] = {}
    for link in links:
        checks.named(link, robot.links, f"{where}: links", "links")
        body = robot.links[link].body
        can = isinstance(body, Body) and body.touches
        checks.require(can, f"{where}: links", "must carry a body with collision shapes or balls", link)
        bodies[link] = body  # type: ignore[assignment]
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
    standing = {link for link in links if isinstance(bodies[link], RigidBody) and _is_fixed(robot, groups[link])}
    found: dict[tuple[str, float | None, bool], list[str]] = {}
    made, neighbours = [], []
    for k, link in enumerate(links):
        for other in links[k:]:
            pair = frozenset((link, other))
            joined = other in near[link] or (pair not in paired and link in standing and other in standing)
            if other == link and bodies[link].collision_shapes:
                continue
            if other != link and joined:
                neighbours.append((link, other))
                continue
            friction = law.friction if paired.get(pair) is None else paired[pair]
            touched, carrier, by_surface = _sides(bodies, link, other, bool(law.surface))
            found.setdefault((touched, friction, by_surface), []).append(carrier)
            made.append((link, other))
    contacts = []
    for touched, friction, by_surface in sorted(found, key=lambda key: links.index(key[0])):
        name = f"{law.name} {touched}" + (f" of friction {friction:g}" if friction != law.friction else "")
        name += " by balls" if law.surface and not by_surface else ""
        carriers = tuple(found[touched, friction, by_surface])
        surface = law.surface if by_surface else False
        contacts.append(replace(law, name=name, links=carriers, others=touched, friction=friction, surface=surface))
    return MutualContacts(tuple(contacts), tuple(made), tuple(neighbours), (), tuple(left_out))


def _sides(bodies: dict[str, Body], link: str, other: str, by_surface: bool) -> tuple[str, str, bool]:
    """The link that is touched, the one that touches it, and whether a surface does: that of a body without shapes, or
    of the thinner one of two bodies with shapes, whose cells are smaller."""
    ours, theirs = (bool(bodies[name].collision_shapes) for name in (link, other))
    if not by_surface or not (ours or theirs):
        return link, other, False
    swaps = not ours
    if ours and theirs:
        thin = [body.half_thickness for body in (bodies[link], bodies[other]) if isinstance(body, RigidBody)]
        swaps = thin[0] < thin[1]
    return (other, link, True) if swaps else (link, other, True)


def _group(robot: Robot, link: str) -> str:
    """The first link of the group of a link."""
    here = robot.links[link]
    parent = robot.links.get(here.parent or "")
    is_rigid = parent is not None and (parent.body is None or isinstance(parent.body, RigidBody))
    return _group(robot, here.parent) if here.parent and is_rigid and here.joint.nv == 0 else link


def _bearer(robot: Robot, group: str) -> str | None:
    """The group on which a group moves by its first joint; groups of one link without a body are skipped. None if the
    group moves freely or on the world."""
    parent = robot.links[group].parent
    if parent is None or isinstance(robot.links[group].joint, JointFree):
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
        links = tuple(link for link in contact.links if floats[link] == floats[str(contact.others)])
        out += [replace(contact, links=links)] if links else []
    return tuple(out)


def without_pairs(contacts: Sequence[Contact], pairs: Sequence[tuple[str, str]]) -> tuple[Contact, ...]:
    """Mutual contacts without some pairs of links."""
    left_out, out = {frozenset(pair) for pair in pairs}, []
    for contact in contacts:
        links = tuple(link for link in contact.links if frozenset((link, contact.others)) not in left_out)
        out += [replace(contact, links=links)] if links else []
    return tuple(out)
