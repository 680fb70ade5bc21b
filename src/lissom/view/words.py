"""What a robot is, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lissom.deformable.body import DeformableBody
from lissom.robot.robot import Robot


def place(s: Any) -> str:
    """A place on a link."""
    return f"{s:g}" if isinstance(s, int | float) else str(s)


def deformable_bodies(robot: Robot) -> list[str]:
    """Deformable bodies in words."""
    found = [(name, link.body) for name, link in robot.links.items() if isinstance(link.body, DeformableBody)]
    return [
        f"deformable body {name!r}: {type(body.motion).__name__}, n {body.motion.n}, {type(body.domain).__name__} "
        f"of {body.domain.volume:.6g} m³, {body.integrals.masses.sum():.6g} kg"
        for name, body in found
    ]


def surroundings(robot: Robot) -> list[str]:
    """Contacts, one by one, and the fluid, in words."""
    lines = []
    for name, contact in robot.contacts.items():
        if contact.shape is None:
            touched = f"links {_listed(contact.touched())}"
        else:
            touched = f"{type(contact.shape).__name__} on {'the world' if contact.on is None else repr(contact.on)}"
        law = f"stiffness {contact.stiffness:g}, exponent {contact.exponent:g}, friction {contact.friction:g}"
        lines.append(f"contact {name!r} of {_listed(contact.carriers())} with {touched}: {law}")
    if robot.fluid is not None:
        felt = [name for name in robot.links if robot.fluid.felt_by(name) is not None]
        flow = "still" if robot.fluid.current is None else "with a current"
        lines.append(f"fluid of {robot.fluid.density:g} kg/m³, {flow}, felt by {_listed(felt) or 'no link'}")
    return lines


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def driven_by(robot: Robot, name: str) -> str:
    """What an input drives, in words."""
    if name in robot.couplings:
        return "drives " + ", ".join(f"{gain:g} x {actuator}" for actuator, gain in robot.couplings[name].gains.items())
    actuator = robot.actuators.get(name) or robot.actuators.get(name.rpartition("[")[0])
    return type(actuator).__name__
