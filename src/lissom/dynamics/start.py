"""The configuration at which motions begin by default, and warnings about starts that throw a robot.

Stops and contacts that a start violates hold energy like compressed springs. Let δ be the depth of a violation and δ̈
its second derivative at the start, from rest. The coordinate, or the body, is thrown with about the speed

    w = √(−δ̈ δ)                                                                                           (1)

which is exact for a linear spring without other forces, whose angular frequency is √(−δ̈/δ). In an equilibrium δ̈ = 0.
A robot that rests on a stop, or that presses against a wall, is therefore not thrown, whatever energy this holds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from lissom.dynamics.assembly import closed_start, open_loops
from lissom.dynamics.configuration import integrate
from lissom.dynamics.contacts import compressions
from lissom.errors import ConvergenceError, LeftOutWarning, PlausibilityWarning
from lissom.launch.over_models import over_models
from lissom.model.model import Model
from lissom.model.stops import given_start, stops_of, within_stops
from lissom.robot.joints import JointFree
from lissom.robot.robot import Robot

CHECKED = 8  # largest number of motions of a batch whose starts are checked
_FAST_TURN, _FAST = 5.0, 1.0  # speeds w of (1) above which a violation is told [rad/s, m/s]
_STEP = 1e-7  # of the difference for δ̈, in units of the coordinates
_SHOWN = 3  # largest number of violations that a warning names


@over_models()
def start_configuration(model: Model) -> np.ndarray:
    """The configuration at which motions and searches begin if no other is given: that of the `start` of each joint,
    otherwise the neutral one, within all stops.

    Files may state limits of a joint that exclude zero, such as a knee that bends by 30 to 100 degrees. Such a
    coordinate begins at the nearer limit. The joints of an elastic coupling with limits are moved together, as little
    as possible. Loops and couplings of joints that are closed before these moves stay closed.

    Returns:
        q, shape (nq,) [rad, m, or strain units].
    """
    return model.cached(("start",), lambda: _start(model)).copy()


def default_start(model: Model) -> np.ndarray:
    """`start_configuration` of a model, (nq,). For the common Model of a batch whose models have different ones, a row
    for each model."""
    if not model.models:
        return start_configuration(model)
    rows = np.array([start_configuration(one) for one in model.models])
    return rows[0] if (rows == rows[0]).all() else rows


def _start(model: Model) -> np.ndarray:
    given = given_start(model)
    q = within_stops(model)
    if np.array_equal(q, given) or not open_loops(model, q[None])[0] or open_loops(model, given[None])[0]:
        return q  # loops that are open at the given start are the user's to close
    moved = np.flatnonzero(np.isin(model.dofs.q, np.flatnonzero(q != given)))
    for fixed in (moved, np.zeros(0, dtype=int)):
        try:
            return closed_start(model, q[None], fixed=fixed)[0]
        except ConvergenceError:
            continue
    return given


def warn_of_start(model: Model, q: np.ndarray, acceleration: Callable[[], np.ndarray]) -> None:
    """Issue a PlausibilityWarning, once for a model, if violated stops or contacts throw the robot at its start.

    A LeftOutWarning tells, once too, that bodies of a file can fall and touch nothing.

    Args:
        q: configuration (nq,). acceleration: returns the acceleration (nv,) there. It is called if a stop is violated
            or a body touches.
    """
    _warn_of_missing_contacts(model)
    if "thrown" in model.cache:
        return
    stops, contacts = _thrown_by_stops(model, q, acceleration), _thrown_by_contacts(model, q, acceleration)
    if not stops and not contacts:
        return
    model.cache["thrown"] = True
    found = sorted([*stops, *contacts], key=lambda one: -one[1])
    cures = ["begin at ls.start_configuration(model), which is within the stops"] * bool(stops)
    cures += ["move bodies that overlap apart, or begin at an equilibrium of solve_statics"] * bool(contacts)
    texts, energies = zip(*found)
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    what = " and ".join(["stops"] * bool(stops) + ["contacts"] * bool(contacts))
    text = (
        f"robot {model.name!r}: its start violates {what}, which store {sum(energies):.4g} J and throw it: "
        f"{', '.join(texts[:_SHOWN])}{more}; {'; '.join(cures)}"
    )
    warnings.warn(text, PlausibilityWarning, stacklevel=4)


def _warn_of_missing_contacts(model: Model) -> None:
    """Issue a LeftOutWarning, once for a model, if links of a URDF or MJCF file have collision shapes and can fall, and
    the robot has no contact at all."""
    robot = model.description
    weightless = not np.any(np.asarray(robot.gravity, dtype=np.float64)) or robot.fluid is not None
    if robot.source is None or robot.contacts or weightless or "untouched" in model.cache:
        return
    model.cache["untouched"] = True
    roots = {name: _free_root(robot, name) for name in robot.links}
    ends = [(roots[x.link_a], None if x.link_b is None else roots[x.link_b]) for x in robot.loops.values()]
    held = {end for pair in ends for end in pair if None in pair}  # trees that a loop ties to the world
    bodies = {name: link.body for name, link in robot.links.items() if roots[name] is not None}
    names = [name for name, body in bodies.items() if roots[name] not in held and body is not None and body.touches]
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        text = (
            f"robot {robot.name!r}: no contact is described, so nothing stops the fall of links "
            f"{', '.join(map(repr, names[:_SHOWN]))}{more}, which have collision shapes in {robot.source}; "
            "robot.add_contact('floor', ls.EVERYTHING, ls.ShapePlane()) lets them touch a floor, and "
            "robot.add_mutual_contacts() each other"
        )
        warnings.warn(LeftOutWarning(text, "\n".join(names)), stacklevel=5)


def _free_root(robot: Robot, link: str | None) -> str | None:
    """The nearest link at or above `link` that moves freely; None if there is none."""
    while link is not None and not isinstance(robot.links[link].joint, JointFree):
        link = robot.links[link].parent
    return link


def _thrown_by_stops(model: Model, q: np.ndarray, acceleration: Callable[[], np.ndarray]) -> list[tuple[str, float]]:
    """A text and the energy [J] of each stop that throws its coordinate."""
    stops = stops_of(model)
    beyond = stops.excess(q)
    depth, w = np.abs(beyond), stops.width
    if not (depth > w).any():
        return []
    speed = np.sqrt(np.maximum(-(stops.by_v @ acceleration()) * beyond, 0.0))  # (1)
    fast = np.where([unit == "m" for unit in stops.units], _FAST, _FAST_TURN)
    energy = stops.stiffness * (0.5 * (depth - 0.5 * w) ** 2 + w**2 / 40.0)  # (3) of forces.springs
    out = []
    for k in np.flatnonzero((depth > w) & (speed > fast)).tolist():
        limit = stops.high[k] if beyond[k] > 0.0 else stops.low[k]
        where = f"{stops.names[k]} is {depth[k]:.3g} {stops.units[k]}".rstrip()
        out.append((f"{where} beyond its limit {limit:.3g}", float(energy[k])))
    return out


def _thrown_by_contacts(model: Model, q: np.ndarray, acceleration: Callable[[], np.ndarray]) -> list[tuple[str, float]]:
    """A text and the energy [J] of each contact that throws a link."""
    before = compressions(model, q)
    if not before:
        return []
    a = acceleration()
    size = float(np.abs(a / model.dofs.scale).max(initial=0.0))
    if not (np.isfinite(size) and size > 0.0):
        return []
    after = {one.pair: one.depth for one in compressions(model, integrate(model, q, (_STEP / size) * a))}
    found: dict[tuple[str, str, str | None], tuple[float, float]] = {}
    for one in before:
        rate = (after.get(one.pair, 0.0) - one.depth) * size / _STEP
        if -rate * one.depth > _FAST**2:  # (1)
            key = one.contact, one.link, one.other
            depth, energy = found.get(key, (0.0, 0.0))
            found[key] = max(depth, one.depth), energy + one.energy
    out, mass = [], dict(zip(model.links.names, model.links.mass.tolist()))
    for (contact, link, other), (depth, energy) in found.items():
        if energy < 0.5 * min(mass[link], mass.get(other or "", np.inf)) * _FAST**2:
            continue  # too little to throw the lighter link as a whole
        where = "the world" if other is None else repr(other)
        out.append((f"{link!r} is {1e3 * depth:.3g} mm deep in {where} ({contact})", energy))
    return out
