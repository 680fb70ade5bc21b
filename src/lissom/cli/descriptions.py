"""Parts of a robot as lines of text, for `lissom info`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import sqrt
from typing import Any

import numpy as np

from lissom.bodies.body import DeformableBody
from lissom.model.model import Model
from lissom.robot.actuators import BodyChamber, Chamber, JointActuator, SurfacePressure, Tendon
from lissom.robot.bases import STRAINS, Basis
from lissom.robot.bodies import RigidBody, Rod
from lissom.robot.contacts import EVERYTHING, Contact, reasons_against
from lissom.robot.materials import Material
from lissom.robot.robot import Robot
from lissom.robot.sections import Section, SectionGeneral, SectionPolygon


def place(s: Any) -> str:
    """Text of a place on a link: an abscissa or a name."""
    return f"{s:g}" if isinstance(s, int | float) else str(s)


def deformable_bodies(robot: Robot) -> list[str]:
    """One line for each deformable body."""
    found = [(name, link.body) for name, link in robot.links.items() if isinstance(link.body, DeformableBody)]
    return [
        f"deformable body {name!r}: {type(body.motion).__name__}, n {body.motion.n}, {type(body.domain).__name__} "
        f"of {body.domain.volume:.6g} m³, {body.integrals.masses.sum():.6g} kg, {len(body.integrals.masses)} points"
        + (f" ({body.resolution.chosen.words})" if body.resolution.chosen.words else "")
        for name, body in found
    ]


def bodies(robot: Robot) -> list[str]:
    """One line for each rod and rigid body, with numbers and units."""
    lines = []
    for name, link in robot.links.items():
        body = link.body
        if isinstance(body, Rod):
            parts = [f"length {body.length:g} m", _section(body.section), *_material(body.material), _basis(body.basis)]
            lines.append(f"link {name!r}: Rod, {', '.join(parts)}")
        elif isinstance(body, RigidBody):
            form = f", {body.form} of {_listed_numbers(2 * np.asarray(body.outline))} m" if body.form else ""
            kinds = [type(placed.shape).__name__ for placed in body.collision_shapes]
            touches = f", touches by {_counted(kinds)}" if kinds else ""
            lines.append(f"link {name!r}: RigidBody, {body.mass:.6g} kg{form}{touches}")
    return lines


def _counted(names: Sequence[str]) -> str:
    """Names, each once with its number."""
    return ", ".join(name if names.count(name) == 1 else f"{names.count(name)} {name}" for name in dict.fromkeys(names))


def _section(section: Section) -> str:
    described: Any = section
    plain = not isinstance(section, SectionGeneral | SectionPolygon)
    ends = {item.name: _ends(getattr(section, item.name)) for item in fields(described)} if plain else {}
    sizes = [f"{name} {' to '.join(f'{x:g}' for x in values)} m" for name, values in ends.items() if values]
    return " ".join([type(section).__name__, *sizes])


def _ends(size: Any) -> list[float]:
    """A size, or its values at the base and at the tip [m]; an empty list if the argument is no size."""
    varies: Any = size
    values = np.asarray([varies(s) for s in (0.0, 1.0)] if callable(size) else size)
    return values.ravel().tolist() if values.dtype.kind in "if" and values.ndim < 2 and values.size < 3 else []


def _material(material: Material | None) -> list[str]:
    if material is None:
        return []
    units = {"young": "Pa", "poisson": "", "density": "kg/m³", "viscosity": "Pa·s", "damping_time": "s"}
    units |= {"friction": "", "restitution": ""}
    values = {name: getattr(material, name) for name in units}
    return [f"{name} {values[name]:g} {unit}".rstrip() for name, unit in units.items() if values[name]]


def _basis(basis: Basis) -> str:
    orders = {name: getattr(basis, name, None) for name in STRAINS}
    given = [f"{name} {order}" for name, order in orders.items() if order is not None]
    return " ".join([type(basis).__name__, *given])


def _listed_numbers(values: np.ndarray) -> str:
    return " x ".join(f"{value:g}" for value in values)


def unit_of_input(robot: Robot, name: str) -> str:
    """The unit of an input."""
    actuator = robot.actuators.get(name) or robot.actuators.get(name.rpartition("[")[0])
    if isinstance(actuator, Tendon):
        return "[N]" if actuator.stiffness is None else "[m]"
    if isinstance(actuator, Chamber | BodyChamber | SurfacePressure):
        return "[Pa]"
    if isinstance(actuator, JointActuator):
        joint, column = robot.links[actuator.link].joint, name.rpartition("[")[2].rstrip("]")
        angular = np.hstack([motion.Phi[:3] for motion in joint.motions(f"link {actuator.link!r} > joint")])
        return "[N·m]" if np.abs(angular[:, int(column) if column.isdecimal() else 0]).max() > 0.0 else "[N]"
    return ""


def surroundings(model: Model) -> list[str]:
    """One line for each contact law, with the numbers chosen and the points that touch, one for the links that a
    contact of all links leaves out, and one for the fluid."""
    robot, world, lines = model.description, model.contacts, []
    row = world.pair[:, 2]
    for name, contact in robot.contacts.items():
        if contact.shape is None:
            touched = f"links {_listed(contact.touched(robot))}"
        else:
            touched = f"{type(contact.shape).__name__} on {'the world' if contact.on is None else repr(contact.on)}"
        head = f"contact {name!r} of {_listed(contact.carriers(robot))} with {touched}"
        laws: dict[str, list[int]] = {}  # numbers that are not shown may differ
        for k in (k for k, owner in enumerate(world.names) if owner == name):
            laws.setdefault(_law(contact, world.law[k], world.pair_weight[row == k]), []).append(k)
        lines += [f"{head}: {law}, {_points(model, np.isin(row, rows))}" for law, rows in laws.items()]
        if EVERYTHING in (contact.links, contact.others):
            reasons = [f"{key!r} ({why})" for key, why in reasons_against(robot).items() if why is not None]
            lines += [f"contact {name!r} leaves out {', '.join(reasons)}"] if reasons else []
    if robot.fluid is not None:
        felt = [name for name in robot.links if robot.fluid.felt_by(name) is not None]
        flow = "still" if robot.fluid.current is None else "with a current"
        lines.append(f"fluid of {robot.fluid.density:g} kg/m³, {flow}, felt by {_listed(felt) or 'no link'}")
    return lines


def _points(model: Model, which: np.ndarray) -> str:
    """How pairs of a contact are integrated: the number of points, their kinds and their links."""
    world = model.contacts
    balls = np.unique(world.pair[which, 0])
    is_ball, is_cell = world.ball_radius[balls] > 0.0, world.ball_cell[balls].any(axis=(1, 2))
    numbers = {"balls": is_ball.sum(), "cells": (is_cell & ~is_ball).sum(), "points": (~is_cell & ~is_ball).sum()}
    links = dict.fromkeys(world.ball_link[k] for k in balls)
    owners = ", ".join("the shape in the world" if link is None else repr(link) for link in list(links)[:_SHOWN])
    more = f" and {len(links) - _SHOWN} more" if len(links) > _SHOWN else ""
    kinds = " and ".join(f"{n} {word if n > 1 else word[:-1]}" for word, n in numbers.items() if n)
    return f"by {kinds or 'no points'} of {owners or 'no link'}{more}"


_SHOWN = 4  # links whose points are named
_ELSEWHERE = "is on a device without native functions"


def constraints(robot: Robot) -> list[str]:
    """One line for each skate, each rolling contact and each constraint by a function."""
    lines = []
    for name, x in robot.skates.items():
        lines.append(f"skate {name!r} on {x.link!r} at s={place(x.s)} against {_ground(x.ground)}")
    for name, x in robot.rolling.items():
        what, held = "ball" if x.axis is None else "wheel", "" if x.height else " without holding its height"
        lines.append(f"{what} {name!r} of radius {x.radius:g} on {x.link!r}, which rolls on {_ground(x.ground)}{held}")
    for name, x in robot.constraints.items():
        what = getattr(x.function, "source", "a traced function") + (", a velocity," if x.velocity else "")
        joints = f", with joints {', '.join(x.joints)}" if x.joints else ""
        lines.append(f"constraint {name!r}: {what} is zero for {x.link_a!r} in {_ground(x.link_b)}{joints}")
    return lines


def _ground(link: str | None) -> str:
    return "the world" if link is None else repr(link)


def python_functions(model: Model) -> list[str]:
    """One line for each function of the state that kernels cannot call, with the reason."""
    links, bodies = model.links.names, model.deforming
    lines = [
        f"pose of link {links[model.nodes.link[model.maps.node[m]]]!r} is evaluated in Python: it {pose.why_python}"
        for m, pose in model.maps.functions()
    ]
    frames = {links[model.nodes.link[model.maps.node[m]]]: model.maps.pose[m] for m in model.maps.called_frames()}
    for name, pose in frames.items():
        reason = getattr(pose, "why_python", "") or _ELSEWHERE
        lines.append(f"frames on deformable body {name!r} are evaluated in Python: it {reason}")
    for b in np.flatnonzero((bodies.is_linear == 0) & (bodies.values_function == 0)).tolist():
        name = links[model.nodes.link[bodies.node[b]]]
        reason = bodies.integrals[b].why_python or _ELSEWHERE
        lines.append(f"deformable body {name!r} is evaluated in Python: it {reason}")
    for part in model.pulls.called():
        name = links[model.nodes.link[model.pulls.node[part.rows.start]]]
        reason = part.pulls.native[1] or _ELSEWHERE
        lines.append(f"tendons and chambers in deformable body {name!r} are evaluated in Python: it {reason}")
    return lines


def _law(contact: Contact, law: np.ndarray, weights: np.ndarray) -> str:
    k, p, c, friction, slip_speed, stick, lag, b, rest_speed = law.tolist()
    words = [f"stiffness {k:g}", f"exponent {p:g}", f"friction {friction:g}"]
    if b:
        share = (1.0 - b) / (1.0 + b)  # e² of contact_laws
        words += [f"restitution {sqrt(share):.3g} above {6.0 * rest_speed / share:.2g} m/s"]
    if contact.stiffness is None:
        least, most = weights.min(initial=np.inf), weights.max(initial=0.0)
        spread = f"{k * most:.4g}" if least > 0.999 * most else f"{k * least:.4g} to {k * most:.4g}"
        words = [f"chosen from effective modulus {k:.4g} Pa: stiffness {spread} N/m^{p:g}", *words[1:]]
        words += [] if b else [f"damping {c:.4g} s/m"]
        if friction > 0.0:
            sticks = f"stick_stiffness {stick * weights.mean():.4g} N/m, stick_damping {lag:.3g} s"
            words += [sticks if stick else f"slip_speed {slip_speed:g} m/s"]
    return ", ".join(words)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def driven_by(robot: Robot, name: str) -> str:
    """The actuators that an input drives, with their gains, or the class of its actuator."""
    if name in robot.couplings:
        return "drives " + ", ".join(f"{gain:g} x {actuator}" for actuator, gain in robot.couplings[name].gains.items())
    if name in robot.inputs_of_forces():
        return "input of " + ", ".join(key for key, force in robot.forces.items() if name in force.inputs)
    actuator = robot.actuators.get(name) or robot.actuators.get(name.rpartition("[")[0])
    return type(actuator).__name__
