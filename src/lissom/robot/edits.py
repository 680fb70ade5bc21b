"""Changes of a whole description: remove a link, lock or drive a joint, attach another robot.

Parts name links, joints and actuators in fields whose annotations say so (`LinkName`, `JointName`, ... of
robot/fields). The functions below find the names by these annotations, so that a new kind of part needs no code here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from lissom.robot import checks
from lissom.robot.actuators import CustomActuator
from lissom.robot.contacts import EVERYTHING, Contact, named_links
from lissom.robot.fields import ACTUATOR, JOINT, LINK, LINK_OR_WORLD, LINKS, Place, Placement
from lissom.robot.functions import Tabulated
from lissom.robot.joints import Joint, JointCustom, JointFixed, JointFree, JointMotion, JointSpherical
from lissom.robot.poses import PoseSpline
from lissom.robot.robot import PARTS, SHARED_NAMES, Robot, check_point

_OF_LINKS = (LINK, LINK_OR_WORLD, LINKS, JOINT)  # kinds of fields that hold names of links
_DRIVES = ("actuators", "motions")  # parts that drive a joint; a locked joint does not need them
_APART, _STILL = 1.5, 1e-9  # largest rotation between two samples, and smallest one with an axis [rad]
_FASTEST = 4.0  # largest rate of a rotation vector over that of the rotation: it is 4 near 5 rad, and grows towards 2π
_SHOWN = 8  # largest number of parts that an error lists

Renaming = Callable[[str, str], str]  # the new name, from the kind of the field and the old name
Named = set[tuple[str, str]]  # parts by kind and name


class _Names(NamedTuple):
    """Names in a field of a part.

    Fields:
        kind: the kind of the parts named; empty for a field whose parts have fields with names.
        place, pose: fields with the place and the pose on the link, if the field may be None for the world. A part
            that does not depend on the pose has no such field.
    """

    kind: str
    place: str = ""
    pose: str = ""


@cache
def _fields_with_names(cls: type) -> dict[str, _Names]:
    """The fields of a description class that hold names."""
    hints = get_type_hints(cls, include_extras=True)
    found = {field.name: _names_in(hints[field.name]) for field in fields(cls)}
    return {name: names for name, names in found.items() if names is not None}


def _names_in(hint: Any) -> _Names | None:
    if get_origin(hint) is Annotated:
        kind, *places = hint.__metadata__
        return _Names(kind, *places) if kind in (*_OF_LINKS, ACTUATOR) else None
    if isinstance(hint, type) and is_dataclass(hint):
        return _Names("") if _fields_with_names(hint) else None
    inner = [names for part in get_args(hint) if (names := _names_in(part)) is not None]
    return max(inner, key=lambda names: names.kind, default=None)


@cache
def _optional(cls: type) -> set[str]:
    """The fields of a class that may be empty mappings."""
    return {field.name for field in fields(cls) if field.default_factory is dict}


def _renamed(value: Any, kind: str, new: Renaming) -> Any:
    """A part, or the value of a field with names of a kind, with new names. The own name of a part stays."""
    if isinstance(value, str):
        return new(kind, value)
    if isinstance(value, list | tuple):
        return type(value)(_renamed(item, kind, new) for item in value)
    if isinstance(value, dict):
        return {_renamed(key, kind, new): item for key, item in value.items()}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    found = _fields_with_names(type(value)).items()
    return replace(value, **{name: _renamed(getattr(value, name), names.kind, new) for name, names in found})


def _names(value: Any, kind: str = "") -> list[tuple[str, str]]:
    """The names in a part or in the value of a field, each with the kind of its field."""
    found: list[tuple[str, str]] = []

    def noted(kind: str, name: str) -> str:
        found.append((kind, name))
        return name

    _renamed(value, kind, noted)
    return found


def _grounded(value: Any, parent: str | None, at: Place, g: np.ndarray | None) -> Any:
    """A part whose places in the world are moved to a frame: `parent` at the place `at`, displaced by g (4, 4)."""
    if isinstance(value, list | tuple):
        return type(value)(_grounded(item, parent, at, g) for item in value)
    if not is_dataclass(value) or isinstance(value, type) or (isinstance(value, Contact) and value.shape is None):
        return value
    changes: dict[str, Any] = {}
    for name, names in _fields_with_names(type(value)).items():
        inner = getattr(value, name)
        if names.kind == LINK_OR_WORLD and inner is None:
            changes |= {names.pose: _displaced(getattr(value, names.pose), g)} if names.pose else {}
            changes |= {} if parent is None else {name: parent, names.place: at}
        elif not names.kind or names.kind == LINK:
            changes[name] = _grounded(inner, parent, at, g)
    return replace(value, **changes)


def _displaced(pose: Any, g: np.ndarray | None) -> Any:
    """A pose (4, 4), a position (3,) or None for the identity, displaced by g."""
    if g is None:
        return pose
    if pose is None:
        return g.tolist()
    given = np.asarray(pose, dtype=np.float64)
    return (g @ given if given.ndim == 2 else g[:3, :3] @ given + g[:3, 3]).tolist()


def _without(part: Any, gone: set[str], kinds: tuple[str, ...]) -> Any:
    """A part without its references to the names `gone`, of the given kinds; None if the part needs one of them.
    Lists of links, and numbers by name, lose these names and stay if they have others."""
    changes: dict[str, Any] = {}
    for name, names in _fields_with_names(type(part)).items():
        value = getattr(part, name)
        if not any(kind in kinds and item in gone for kind, item in _names(value, names.kind)):
            continue
        if isinstance(value, dict):
            changes[name] = {key: item for key, item in value.items() if key not in gone}
        elif names.kind == LINKS and not isinstance(value, str):
            changes[name] = type(value)(item for item in value if item not in gone)
        if not changes.get(name) and name not in _optional(type(part)):
            return None
    return replace(part, **changes) if changes else part


def _title(kind: str, name: str) -> str:
    return f"{PARTS[kind].word} {name!r}"


def _listed(parts: list[str]) -> str:
    more = len(parts) - _SHOWN
    return ", ".join(parts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _refuse_functions_of_q(robot: Robot, where: str, cure: str) -> None:
    """Raise ModelError if a user-defined actuator is a function of all coordinates, whose number changes."""
    for name, actuator in robot.actuators.items():
        if isinstance(actuator, CustomActuator):
            raise checks.fail(where, f"no actuator may be a function of all coordinates{cure}", name)


def remove_link(robot: Robot, name: str, with_children: bool) -> list[str]:
    """See Robot.remove_link."""
    checks.named(name, robot.links, "remove_link", "links")
    is_choice = isinstance(with_children, bool)
    checks.require(is_choice, "remove_link: with_children", "must be true or false", with_children)
    where = f"link {name!r}"
    _refuse_functions_of_q(robot, where, ", whose number changes; remove it first")
    gone = _branch(robot, name)
    left = {kind: {key: _without(part, gone, _OF_LINKS) for key, part in _others(robot, kind, gone)} for kind in PARTS}
    _drop_inputs(robot, left)
    removed = [_title("links", link) for link in robot.links if link in gone]
    removed += [_title(kind, key) for kind, parts in left.items() for key, part in parts.items() if part is None]
    if not with_children and len(removed) > 1:
        cure = "; with_children=True removes them too"
        parts = [part for part in removed if part != where]
        raise checks.fail(where, f"must carry no link and no other part{cure}", _listed(parts))
    _replace_parts(robot, left)
    if robot.fluid is not None:
        felt = {link: feels for link, feels in robot.fluid.links.items() if link not in gone}
        robot.fluid = replace(robot.fluid, links=felt)
    return removed


def _others(robot: Robot, kind: str, gone: set[str]) -> list[tuple[str, Any]]:
    """The parts of a kind; of the links those that stay."""
    return [(key, part) for key, part in getattr(robot, kind).items() if kind != "links" or key not in gone]


def _branch(robot: Robot, name: str) -> set[str]:
    """A link and the links that hang on it."""
    children: dict[str, list[str]] = {}
    for link in robot.links.values():
        if link.parent is not None:
            children.setdefault(link.parent, []).append(link.name)
    found, waiting = {name}, [name]
    while waiting:
        new = [child for child in children.get(waiting.pop(), []) if child not in found]
        found.update(new)
        waiting += new
    return found


def _drop_inputs(robot: Robot, parts: dict[str, dict[str, Any]]) -> None:
    """Remove the names of removed actuators and inputs from the other parts, which are given by kind and name."""
    kept = {name for force in parts["forces"].values() if force is not None for name in force.inputs}
    for removed in ("actuators", "couplings", "forces"):
        gone = {name for name, part in parts[removed].items() if part is None}
        if removed == "forces":
            gone = set(robot.inputs_of_forces()) - kept
        for kind, items in parts.items():
            parts[kind] = {name: part and _without(part, gone, (ACTUATOR,)) for name, part in items.items()}


def _replace_parts(robot: Robot, parts: dict[str, dict[str, Any]]) -> None:
    """Set the parts of a robot by kind and name, without those that are None."""
    for kind, items in parts.items():
        setattr(robot, kind, {key: part for key, part in items.items() if part is not None})


def lock(robot: Robot, name: str, q: Any) -> list[str]:
    """See Robot.lock."""
    checks.named(name, robot.links, "lock", "links")
    link, where = robot.links[name], f"link {name!r} > joint"
    link.check(f"link {name!r}")
    checks.require(link.joint.nv > 0, where, "must move before it is locked", type(link.joint).__name__)
    turned = link.joint.displacement(link.joint.configuration(q, f"{where}: q"), where)
    return _with_joint(robot, name, JointFixed(), turned, "locked")


def _with_joint(robot: Robot, name: str, joint: Joint, turned: np.ndarray, done: str) -> list[str]:
    """Give a link another joint, whose frame in the parent is moved by `turned` (4, 4), and remove what drives the old
    one. Returns the removed parts. `done` says in errors what happens to the joint."""
    link, where = robot.links[name], f"link {name!r} > joint"
    _refuse_functions_of_q(robot, where, ", whose number changes; remove it first")
    left = {kind: {key: _without(part, {name}, (JOINT,)) for key, part in getattr(robot, kind).items()}
            for kind in PARTS}  # fmt: skip
    for kind, parts in left.items():
        needed = [_title(kind, key) for key, part in parts.items() if part is None and kind not in _DRIVES]
        checks.require(not needed, where, f"must not be {done} while other parts need it; remove them first", needed)
    _drop_inputs(robot, left)
    placement = turned if link.placement is None else np.asarray(link.placement, dtype=np.float64) @ turned
    left["links"][name] = replace(link, joint=joint, placement=placement.tolist())
    removed = [_title(kind, key) for kind, parts in left.items() for key, part in parts.items() if part is None]
    _replace_parts(robot, left)
    return removed


def drive(robot: Robot, motion: str, name: str, t: Any, q: Any) -> JointMotion:
    """See Robot.add_pose_motion."""
    where = f"motion {motion!r}"
    checks.named(name, robot.links, f"{where}: link", "links")
    joint = robot.links[name].joint
    kind = type(joint).__name__
    rule = "its joint must be spherical or free; add_joint_motion drives others"
    checks.require(isinstance(joint, JointSpherical | JointFree), f"{where}: link", rule, kind)
    times = checks.array(t, (-1,), f"{where}: t", "must be a list of finite times")
    rule = f"must hold the {joint.nq} coordinates of a {kind} for each of the {len(times)} times"
    rows = checks.array(q, (len(times), joint.nq), f"{where}: q", rule)
    length = np.linalg.norm(rows[:, :4], axis=1)
    far = np.abs(length - 1.0).max(initial=0.0)
    checks.require(far <= 1e-6, f"{where}: q", "must hold quaternions of unit length to 1e-6", far)
    origin, turns = rotation_vectors(rows[:, :4] / length[:, None], times, where)
    moves = rows[:, 4:] @ origin[:3, :3] if joint.nq == 7 else np.zeros((len(times), 3))
    spline = PoseSpline(times.tolist(), turns.tolist(), moves.tolist())
    spline.check(where)
    ends = np.linspace(times[0], times[-1], 4).tolist()
    made = JointMotion(motion, name, Tabulated(ends, ends))  # cubic, of which the rates are exact
    made.check(where, 1)
    _with_joint(robot, name, JointCustom(spline), origin, "driven")
    robot.motions[motion] = made
    return made


def rotation_vectors(quaternions: np.ndarray, times: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """The pose (4, 4) of the mean rotation of unit quaternions (n, 4), and rotation vectors (n, 3) [rad] from there
    that follow each other without jumps.

    Raises:
        ModelError: samples are too far apart to follow them, or the rotation goes round by nearly 2π about changing
            axes, where rotation vectors turn much faster than the body.
    """
    from scipy.spatial.transform import Rotation

    rotations = Rotation.from_quat(quaternions[:, [1, 2, 3, 0]])
    mean, origin = rotations.mean(), np.eye(4)
    origin[:3, :3] = mean.as_matrix()
    apart = (rotations[:-1].inv() * rotations[1:]).magnitude()
    k = int(np.argmax(apart)) if len(apart) else 0
    rule = f"must turn by at most {_APART:g} rad between two times; give more samples"
    checks.require(
        apart.max(initial=0.0) <= _APART, f"{where}: q", rule, (float(times[k]), float(apart.max(initial=0.0)))
    )
    found = (mean.inv() * rotations).as_rotvec()
    for k in range(1, len(found)):
        size, before = float(np.linalg.norm(found[k])), found[k - 1]
        along = found[k] / size if size > _STILL else before / max(float(np.linalg.norm(before)), _STILL)
        found[k] += 2.0 * np.pi * np.round((before - found[k]) @ along / (2.0 * np.pi)) * along
    faster = np.linalg.norm(np.diff(found, axis=0), axis=1) - _FASTEST * apart
    k = int(np.argmax(faster)) if len(apart) else 0
    rule = ("must not turn by nearly 2π or more from its mean rotation about changing axes; drive two links in series, "
            "of which the first has no mass")  # fmt: skip
    checks.require(
        faster.max(initial=0.0) <= 1e-9, f"{where}: q", rule, f"{np.linalg.norm(found[k]):.3g} rad at t = {times[k]:g}"
    )
    return origin, found


def _of_names(robot: Robot, part: Any) -> Any:
    """A part; a contact of all links of its robot with their names."""
    if not isinstance(part, Contact):
        return part
    others = None if part.others is None else named_links(robot, part.others)
    return replace(part, links=named_links(robot, part.links), others=others) if EVERYTHING in (
        part.links, part.others) else part  # fmt: skip


def attach(robot: Robot, other: Robot, parent: str | None, placement: Placement, prefix: str, at: Place) -> None:
    """See Robot.attach."""
    checks.require(isinstance(other, Robot), "attach", "expected a Robot, the description and not its Model", other)
    checks.title(prefix, "attach: prefix", may_be_empty=True)
    where = f"attach robot {other.name!r}"
    checks.pose(placement, f"{where}: placement")
    g = None if placement is None else np.array(placement, dtype=np.float64)
    if parent is not None:
        checks.named(parent, robot.links | robot.frames, f"{where}: parent", "links and frames")
        if parent in robot.frames:
            checks.require(
                checks.shape(at) == () and at == 1.0,
                f"{where}: at",
                "must be left out where the parent is a frame, which has it",
                at,
            )
            frame = robot.frames[parent]
            parent, at = frame.link, frame.s
            g = g if frame.placement is None else np.array(_displaced(placement, np.array(frame.placement)))
        checks.place(at, f"{where}: at")
        check_point(robot.links[parent], at, f"{where}: at")
    _refuse_functions_of_q(other, where, "; add it after attaching")
    new: dict[str, dict[str, Any]] = {}
    for kind in PARTS:
        copies = {prefix + name: _grounded(_renamed(_of_names(other, part), "", lambda _, name: prefix + name),
                                           parent, at, g) for name, part in getattr(other, kind).items()}  # fmt: skip
        new[kind] = {name: replace(part, name=name) for name, part in copies.items()}
    for kind, copies in new.items():
        taken = getattr(robot, kind).keys() | getattr(robot, SHARED_NAMES.get(kind, kind)).keys()
        rule = "must not be taken already; give another prefix"
        for name in copies:
            checks.require(name not in taken, f"{where} > {PARTS[kind].word} name", rule, name)
    for force in new["forces"].values():
        for name in force.inputs:
            checks.require(name not in robot.inputs_of_forces(), f"{where} > input of forces", rule, name)
    for kind, parts in new.items():
        getattr(robot, kind).update(parts)
    robot.near_pairs = max(robot.near_pairs, other.near_pairs)
    robot.source = robot.source or other.source
