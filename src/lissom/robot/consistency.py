"""Whether the parts of a description fit together: names that must exist, chains that must not close."""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.robot import checks
from lissom.robot.actuators import Actuator, Chamber, JointActuator, PathPoint, PathRod, Tendon, WrenchInput
from lissom.robot.bodies import Body
from lissom.robot.body_actuators import BodyChamber, SurfacePressure
from lissom.robot.robot import Link, Robot

_WORLD = ("world", "World", "ground", "base", "fixed", "none", "None", "null", "")  # what users call no parent


@np.errstate(all="ignore")  # what overflows is refused where it is used
def check_parts(robot: Robot) -> None:
    """Raise ModelError at the first rule the description breaks, or gather those of all parts (checks.gathered)."""
    checks.title(robot.name, "robot: name", may_be_empty=True)
    checks.integer(robot.near_pairs, f"robot {robot.name!r}: near_pairs", least=1, most=10**7)
    checks.require(bool(robot.links), f"robot {robot.name!r}", "needs at least one link", "no links")
    checks.array(robot.gravity, (3,), f"robot {robot.name!r}: gravity", "must be a finite 3-vector")
    for name, link in robot.links.items():
        with checks.part(f"link {name!r}"):
            link.check(f"link {name!r}")
            _check_parent(robot, link)
    for name, frame in robot.frames.items():
        with checks.part(f"frame {name!r}"):
            frame.check(f"frame {name!r}")
            _check_place(robot, frame.link, frame.s, f"frame {name!r}")
    for name, actuator in robot.actuators.items():
        with checks.part(f"actuator {name!r}"):
            where = f"actuator {name!r}"
            actuator.check(where)
            _check_actuator_links(robot, actuator, where)
    for name, load in robot.loads.items():
        with checks.part(f"load {name!r}"):
            load.check(f"load {name!r}")
            _check_place(robot, load.link, load.s, f"load {name!r}")
    for name, loop in robot.loops.items():
        with checks.part(f"loop {name!r}"):
            where = f"loop {name!r}"
            loop.check(where)
            _check_place(robot, loop.link_a, loop.s_a, where, "_a")
            if loop.link_b is not None:
                _check_place(robot, loop.link_b, loop.s_b, where, "_b")
    for name, spring in robot.springs.items():
        with checks.part(f"spring {name!r}"):
            where = f"spring {name!r}"
            spring.check(where)
            for end, point in zip(("a", "b"), spring.ends()):
                if point.link is not None:
                    _check_place(robot, point.link, point.s, f"{where} > {end}")
    _check_surroundings(robot)
    _check_cycles(robot)
    _check_couplings(robot)
    _check_motions(robot)


def _check_surroundings(robot: Robot) -> None:
    for name, contact in robot.contacts.items():
        with checks.part(f"contact {name!r}"):
            where = f"contact {name!r}"
            contact.check(where)
            for link in (*contact.carriers(), *contact.touched()):
                body = _check_link(robot, link, f"{where}: links").body
                rule = "must carry a Rod, or a RigidBody with balls"
                checks.require(body is not None and body.carries_balls, f"{where}: links", rule, link)
            if contact.on is not None:
                _check_point(_check_link(robot, contact.on, f"{where}: on"), contact.s, f"{where}: s")
    for name, force in robot.forces.items():
        with checks.part(f"force {name!r}"):
            force.check(f"force {name!r}")
            _check_place(robot, force.link, 1.0 if force.s is None else force.s, f"force {name!r}")
    if robot.fluid is not None:
        robot.fluid.check("fluid")
        for link, feels in robot.fluid.links.items():
            body = _check_link(robot, link, f"fluid > link {link!r}").body
            sheds = feels is not None and feels.tail
            rule = "needs a Rod, at whose tip the wake begins"
            slender = body is not None and body.is_slender
            checks.require(slender or not sheds, f"fluid > link {link!r}: tail", rule, sheds)
        for link, description in robot.links.items():
            dry = not isinstance(description.body, Body) or description.body.feels_fluid
            feels = robot.fluid.felt_by(link)
            rule = "must be None, since no fluid acts on its body yet"
            checks.require(dry or feels is None, f"fluid > link {link!r}", rule, type(description.body).__name__)


def _check_link(robot: Robot, name: Any, where: str) -> Link:
    checks.named(name, robot.links, where, "links")
    return robot.links[name]


def _check_place(robot: Robot, name: Any, s: Any, where: str, side: str = "") -> None:
    """A place on a link, which may be a material point of a body that has such."""
    _check_point(_check_link(robot, name, f"{where}: link{side}"), s, f"{where}: s{side}")


def _check_point(link: Link, s: Any, where: str) -> None:
    if isinstance(s, str | list | tuple) or np.ndim(s) > 0:
        point = link.body.material_point(s, where) if isinstance(link.body, Body) else None
        rule = "must be an abscissa in [0, 1]; material points and places are those of a DeformableBody"
        checks.require(point is not None, where, rule, s)


def _check_parent(robot: Robot, link: Link) -> None:
    if link.parent is not None:
        where = f"link {link.name!r}: parent"
        if not (isinstance(link.parent, str) and link.parent in robot.links):
            others = [name for name in robot.links if name != link.name]
            if checks.among(link.parent, _WORLD):
                cure = "; leave the parent out, which is None in Python: the link then hangs on the world"
                raise checks.fail(where, f"must be one of the links {sorted(others)}", link.parent, cure)
            checks.named(link.parent, dict.fromkeys(others), where, "links")
        parent = robot.links[link.parent]
        _check_point(parent, link.at, f"link {link.name!r}: at")


def _check_cycles(robot: Robot) -> None:
    rooted: set[str] = set()  # links whose way to the world is known
    for name in robot.links:
        with checks.part(f"link {name!r}"):
            _check_ancestors(robot, name, rooted)


def _check_ancestors(robot: Robot, name: str, rooted: set[str]) -> None:
    chain, ancestor = {name: None}, robot.links[name].parent
    while ancestor is not None and ancestor not in rooted and ancestor not in chain:
        chain[ancestor] = None
        ancestor = robot.links[ancestor].parent if ancestor in robot.links else None
    rooted.update(chain)
    if ancestor in chain:
        cycle = " -> ".join([*chain, ancestor])
        checks.require(False, f"link {name!r}: parent", "must not close a cycle", cycle)


def _check_actuator_links(robot: Robot, actuator: Actuator, where: str) -> None:
    if isinstance(actuator, JointActuator):
        link = _check_link(robot, actuator.link, f"{where}: link")
        if link.joint.nv == 0:
            cure = "; give that link a joint that moves, such as a JointRevolute, or name another link"
            raise checks.fail(f"{where}: link", "its joint must move", actuator.link, cure)
    elif isinstance(actuator, WrenchInput):
        _check_place(robot, actuator.link, actuator.s, where)
    elif isinstance(actuator, BodyChamber | SurfacePressure):
        _check_link(robot, actuator.link, f"{where}: link")
    path = actuator.path if isinstance(actuator, Tendon | Chamber) else ()
    for k, item in enumerate(path if isinstance(path, tuple) else (path,)):
        here = f"{where} > path[{k}]: link"
        if item.link is None and isinstance(item, PathPoint):
            continue
        link = _check_link(robot, item.link, here)
        if isinstance(item, PathRod):
            if link.body is None or not link.body.is_slender:
                cure = "; name a link whose body is a Rod, or a path of PathPoints"
                raise checks.fail(here, "must carry a Rod", item.link, cure)
        elif isinstance(item, PathPoint):
            _check_point(link, item.s, f"{where} > path[{k}]: s")


def _check_couplings(robot: Robot) -> None:
    driven: dict[str, str] = {}
    for name, coupling in robot.couplings.items():
        with checks.part(f"input {name!r}"):
            coupling.check(f"input {name!r}")
            for actuator in coupling.gains:
                _check_driven(robot, name, actuator, driven)


def _check_driven(robot: Robot, name: str, actuator: str, driven: dict[str, str]) -> None:
    where = f"input {name!r}"
    checks.named(actuator, robot.actuators, f"{where} > actuator", "actuators")
    rule = f"must not be driven by another input ({driven.get(actuator)!r})"
    checks.require(actuator not in driven, f"{where} > {actuator}", rule, actuator)
    driven[actuator] = name
    given = robot.actuators[actuator]
    if not isinstance(given, JointActuator) or given.link in robot.links:
        size = robot.input_size(given)
        checks.require(size == 1, f"{where} > {actuator}", "must have one input of its own", size)


def _check_motions(robot: Robot) -> None:
    moved: dict[str, str] = {}
    for name, motion in robot.motions.items():
        where = f"motion {name!r}"
        with checks.part(where):
            joint = _check_link(robot, motion.link, f"{where}: link").joint
            checks.require(joint.nv > 0, f"{where}: link", "its joint must move", motion.link)
            rule = "its joint must not be spherical or free; drive a mechanism of other joints instead"
            checks.require(joint.nq == joint.nv, f"{where}: link", rule, motion.link)
            rule = f"its joint must not follow another motion ({moved.get(motion.link)!r})"
            checks.require(motion.link not in moved, f"{where}: link", rule, motion.link)
            moved[motion.link] = name
            motion.check(where, joint.nv)
