"""What writers of robot files for other tools share: joints as single moves, texts of XML, and the report of a file.

A joint is written as a row of hinges and slides, or as one ball or free joint. Their frames are those at the start of
the joint, which is the pose that a file states.
"""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from lissom.errors import AccuracyWarning
from lissom.io.imports import Findings
from lissom.io.rigid_chains import RigidChains, rigid_chains
from lissom.io.rod_segments import ChainError
from lissom.portable import write_whole
from lissom.robot import checks
from lissom.robot.joints import Joint, friction_numbers, stop_numbers, stored_pose
from lissom.robot.poses import exponential
from lissom.robot.robot import PARTS, Link, Robot
from lissom.robot.shapes import ShapeKind, Surface

_FLAT = 1e-12  # entry of a matrix, or part of an axis, that counts as rounding


@final
@dataclass(frozen=True)
class SavedRobot:
    """A file that was written for other tools, and what it does not hold.

    Fields:
        path: path of the file.
        chains: the error of each rod that became a chain of rigid links.
        left_out: parts of the robot that the file does not hold, by kind and name.
    """

    path: Path
    chains: tuple[ChainError, ...]
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"wrote {self.path}", *map(str, self.chains)]
        return "\n".join([*lines, *(f"left out: {part}" for part in self.left_out)])


class Move(NamedTuple):
    """One hinge, slide, ball or free joint.

    Fields:
        kind: "hinge", "slide", "ball" or "free".
        name: its name in the file.
        frame: pose (4, 4) of its moved frame in the frame of the parent link, at the start.
        axis: direction (3,) in this frame, of a hinge or a slide.
        stiffness [N·m/rad, N/m], damping [N·m·s/rad, N·s/m], armature [kg·m², kg] and friction [N·m, N].
        rest: coordinate without force of the spring [rad, m].
        limits: (low, high) of its coordinate [rad, m]; infinite without.
        start: coordinate at the pose of the file [rad, m].
    """

    kind: str
    name: str
    frame: np.ndarray
    axis: np.ndarray
    stiffness: float = 0.0
    damping: float = 0.0
    armature: float = 0.0
    friction: float = 0.0
    rest: float = 0.0
    limits: tuple[float, float] = (-np.inf, np.inf)
    start: float = 0.0


def moves_of(link: Link, note: Callable[[str], None], taken: Container[str] = ()) -> list[Move]:
    """The moves of the joint of a link, in their order.

    Args:
        note: takes the name of a part of the joint that no move has.
        taken: names that moves of a joint of several coordinates must not have, such as those of links.
    Raises:
        ModelError: the joint is no row of hinges and slides, and neither a ball nor a free joint.
    """
    joint, where = link.joint, f"link {link.name!r} > joint"
    g = np.eye(4) if link.placement is None else np.asarray(link.placement, dtype=np.float64)
    motions = joint.motions(where)
    if joint.nv == 0:
        return []
    _note_laws(joint, note)
    if joint.nq != joint.nv:
        return [_round(link, joint, g, note)]
    cure = "replace it by joints with axes, or give it a spline of its own in the other tool"
    rule = "must be of hinges and slides, a ball or a free joint, which other tools know"
    plain = all(motion.pose is None for motion in motions)
    checks.require(plain, where, f"{rule}; {cure}", type(joint).__name__)
    start, rest = joint.start_configuration(where), joint.rest_configuration(where)
    K, D = (checks.symmetric(x, joint.nv, where) for x in (joint.stiffness, joint.damping))
    rotors, stops = joint.armatures(where), stop_numbers(joint, joint.nv, where)
    rubs = friction_numbers(joint, where)
    out: list[Move] = []
    for column in np.hstack([motion.Phi for motion in motions]).T:
        c, turns = len(out), bool(np.abs(column[:3]).max() > _FLAT)
        rule = "must turn or slide, and not both by one coordinate: other tools have no screw"
        pure = not (turns and np.abs(column[3:]).max() > _FLAT)
        checks.require(pure, where, rule, type(joint).__name__)
        g = g @ exponential(column * start[c])
        axis = column[:3] if turns else column[3:]
        name = link.name if joint.nv == 1 else f"{link.name}_{c + 1}"
        while name in taken and joint.nv > 1:
            name += "_"
        law = (K[c, c], D[c, c], rotors[c], rubs[c, 0] if len(rubs) else 0.0, rest[c])
        limits = (float(stops[c, 0]), float(stops[c, 1]))
        out.append(Move("hinge" if turns else "slide", name, g, axis, *_five(law), limits, float(start[c])))
    return out


def _five(law: Iterable[Any]) -> tuple[float, float, float, float, float]:
    """Five numbers as plain ones."""
    a, b, c, d, e = (float(x) for x in law)
    return a, b, c, d, e


def _round(link: Link, joint: Joint, g: np.ndarray, note: Callable[[str], None]) -> Move:
    """The move of a joint with a quaternion, which is spherical or free."""
    n, where = joint.nv, f"link {link.name!r} > joint"
    K, D = (checks.symmetric(x, n, where) for x in (joint.stiffness, joint.damping))
    if any(np.ptp(np.diag(x)) > _FLAT for x in (K, D)):
        note("stiffness or damping that depends on the direction")
    if np.abs(joint.rest_configuration(where) - joint.neutral()).max() > _FLAT and K.any():
        note("rest of the spring")
    if joint.start is not None:
        note("start")
    rotor = float(joint.armatures(where)[0])
    return Move("ball" if n == 3 else "free", link.name, g, np.zeros(3), float(K[0, 0]),
                float(D[0, 0]), rotor)  # fmt: skip


def _note_laws(joint: Joint, note: Callable[[str], None]) -> None:
    """Note the parts of a joint that no move has."""
    n = joint.nv
    for name in ("stiffness", "damping"):
        matrix = checks.symmetric(getattr(joint, name), n, name)
        if np.abs(matrix - np.diag(np.diag(matrix))).max(initial=0.0) > _FLAT:
            note(f"{name} that couples its coordinates")
    if joint.spring is not None:
        note("nonlinear spring")
    if joint.static_friction is not None:
        note("static friction")


def displaced(link: Link) -> np.ndarray:
    """The pose (4, 4) of the body of a link in the frame of its parent, at the start of its joint."""
    g = np.eye(4) if link.placement is None else np.asarray(link.placement, dtype=np.float64)
    if link.joint.nv == 0:
        return g
    ball = link.joint.nq != link.joint.nv
    q = link.joint.neutral() if ball else link.joint.start_configuration(link.name)
    return g @ (stored_pose(q) if ball else link.joint.displacement(q, link.name))


def start_poses(robot: Robot) -> dict[str, np.ndarray]:
    """The pose (4, 4) of the body of each link in the world, at the start of all joints."""
    out: dict[str, np.ndarray] = {}
    waiting = list(robot.links.values())
    while waiting:
        link = waiting.pop(0)
        if link.parent is not None and link.parent not in out:
            waiting.append(link)
            continue
        above = np.eye(4) if link.parent is None else out[link.parent]
        out[link.name] = above @ displaced(link)
    return out


def parents_first(robot: Robot) -> list[Link]:
    """The links, each after its parent."""
    return [robot.links[name] for name in start_poses(robot)]


def rigid(robot: Robot, tolerance: float, joints: int | None, findings: Findings, where: str) -> RigidChains:
    """The robot with chains of rigid links in place of its rods. A rod with too few modes gives an AccuracyWarning."""
    rule = "expected a Robot, the description and not its Model"
    checks.require(isinstance(robot, Robot), where, rule, robot)
    made = rigid_chains(robot, tolerance=tolerance, joints=joints)
    for part in made.left_out:
        kind, _, name = part.rpartition(" of ")
        findings.left_out(kind, name)
    coarse = [one for one in made.errors if one.basis > tolerance]
    if coarse:
        names = ", ".join(f"{one.link!r} by {100.0 * one.basis:.2g} %" for one in coarse)
        text = f"rods of few modes are stiffer than the chains of links in the file, at their tips: {names}"
        warnings.warn(
            f"{findings.source}: {text}; a basis of higher order agrees with them", AccuracyWarning, stacklevel=4
        )
    return made


def note_kinds(robot: Robot, kinds: Iterable[str], findings: Findings) -> None:
    """Note all parts of some kinds as left out."""
    for kind in kinds:
        for name in getattr(robot, kind):
            findings.left_out(PARTS[kind].word, repr(name))
    if robot.fluid is not None:
        findings.left_out("fluid", "the robot")


def numbers(values: Any) -> str:
    """Numbers as text that is read back bit for bit; whole numbers without a point."""
    return " ".join(
        str(int(x)) if x == int(x) and abs(x) < 1e15 else repr(x) for x in np.ravel(values).astype(float).tolist()
    )


def surface_of(shape: Any, placement: Any, where: str) -> tuple[Surface, np.ndarray]:
    """A shape as kernels read it, with its axis along z, and the pose (4, 4) of that frame on the body."""
    surface = shape.surface(where)
    g = np.eye(4) if placement is None else np.asarray(placement, dtype=np.float64).copy()
    g[:3, :3] = g[:3, :3] @ surface.rotation
    return surface, g


SIMPLE = {ShapeKind.SPHERE: "sphere", ShapeKind.BOX: "box", ShapeKind.CYLINDER: "cylinder",
          ShapeKind.CAPSULE: "capsule", ShapeKind.ELLIPSOID: "ellipsoid"}  # fmt: skip


def add_element(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    """A new element inside another one."""
    return ET.SubElement(parent, tag, attributes)


def write_xml(root: ET.Element, path: Path, comment: str) -> None:
    """Write an XML text, completely or not at all."""
    ET.indent(root)
    text = f"<!-- {comment} -->\n{ET.tostring(root, encoding='unicode')}\n"
    write_whole(path, lambda file: file.write(text.encode("utf-8")))
