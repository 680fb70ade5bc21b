"""Contacts between all links of a robot that joints do not connect.

Links that fixed joints connect form a group. Two links are neighbours if they belong to one group, if one joint
connects their groups, or if a loop does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from lissom.robot import checks
from lissom.robot.bodies import Body, RigidBody
from lissom.robot.contacts import Contact
from lissom.robot.joints import JointFree
from lissom.robot.shapes import ShapeSphere

if TYPE_CHECKING:
    from lissom.robot.robot import Robot


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
    closed = [{_group(robot, x.link_a), x.link_b and _group(robot, x.link_b)} for x in robot.loops.values()]
    excluded = {pair for exclusion in robot.contact_exclusions.values() for pair in exclusion.pairs()}
    paired = {pair: part.friction for part in robot.contact_pairs.values() for pair in part.pairs()}
    found, neighbours = [], []
    for k, link in enumerate(links):
        shape, by_friction = shapes[link], {law.friction: []}
        for n, other in enumerate(links):
            joined = groups[other] in (groups[link], bearers[link]) or groups[link] == bearers[other]
            joined = joined or {groups[link], groups[other]} in closed or {link, other} in excluded
            pair = frozenset((link, other))
            if other != link and joined and pair not in paired:
                neighbours += [(link, other)] if k < n else []
            elif bodies[other].carries_balls and _takes(shape, shapes[other], other == link, n > k):
                friction = paired.get(pair)
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
    """Whether a link is touched by the balls of another one, from the shapes of both (None without one).

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


def are_parted(robot: Robot, a: str, b: str) -> bool:
    """Whether a free joint is on the chain of joints between two links."""
    chains: list[set[str]] = []
    for link in (a, b):
        chain, here = {link}, robot.links[link].parent
        while here is not None:
            chain.add(here)
            here = robot.links[here].parent
        chains.append(chain)
    return any(isinstance(robot.links[link].joint, JointFree) for link in chains[0] ^ chains[1])


def without_pairs(contacts: Sequence[Contact], pairs: Sequence[tuple[str, str]]) -> tuple[Contact, ...]:
    """Mutual contacts without some pairs of links."""
    left_out, out = [set(pair) for pair in pairs], []
    for contact in contacts:
        touched = contact.on or contact.touched()[0]
        links = tuple(link for link in contact.carriers() if {link, touched} not in left_out)
        out += [replace(contact, links=links)] if links else []
    return tuple(out)
