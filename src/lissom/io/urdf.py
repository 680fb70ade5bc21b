"""Import of URDF files: trees of rigid bodies in the format of ROS.

This module parses the file itself, because URDF packages lack two things: transmissions, which become inputs, and line
numbers for errors. Nothing in a file is executed. trimesh reads the meshes.

    R = Rz(yaw) Ry(pitch) Rx(roll)   of rpy = (roll, pitch, yaw)                                           (1)
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, final
from xml.parsers import expat

import numpy as np

from lissom.errors import AccuracyWarning, LeftOutWarning, ModelError
from lissom.io.text_files import bytes_of
from lissom.robot import checks
from lissom.robot.bodies import RigidBody
from lissom.robot.joints import Joint, JointFixed, JointFree, JointPlanar, JointPrismatic, JointRevolute
from lissom.robot.meshes import Mesh, fit_balls
from lissom.robot.robot import Robot
from lissom.robot.shapes import Shape, ShapeBox, ShapeCylinder, ShapeSphere


@final
@dataclass(frozen=True, eq=False)
class Element:
    """One element of an XML file.

    Args:
        source: name of the file.
        line: line of its start.
        tag: tag of the element.
        given: attributes.
        inside: child elements.
        text: pieces of its text.
    """

    source: str
    line: int
    tag: str
    given: dict[str, str]
    inside: list[Element] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The element in words, such as: joint 'elbow'."""
        name = self.given.get("name")
        return self.tag if name is None else f"{self.tag} {name!r}"

    def error(self, message: str) -> ModelError:
        """A ModelError that names the file, the line and the element."""
        return ModelError(f"{self.source}, line {self.line}: {self.title}: {message}")

    def all(self, tag: str) -> Iterator[Element]:
        """The child elements with a tag."""
        return (element for element in self.inside if element.tag == tag)

    def find(self, tag: str) -> Element | None:
        """The only child element with a tag; None if there is none. Raises ModelError if there are several."""
        found = list(self.all(tag))
        if len(found) > 1:
            raise found[1].error(f"occurs twice in {self.title}")
        return found[0] if found else None

    def need(self, tag: str) -> Element:
        """The only child element with a tag. Raises ModelError if there is none."""
        found = self.find(tag)
        if found is None:
            raise self.error(f"must hold <{tag}>")
        return found

    def attribute(self, name: str) -> str:
        """The text of a required attribute."""
        if not self.given.get(name, "").strip():
            raise self.error(f"the attribute {name!r} is required")
        return self.given[name].strip()

    def numbers(self, name: str, count: int, default: tuple[float, ...] | None = None) -> np.ndarray:
        """`count` finite numbers of an attribute. Without a default the attribute is required."""
        if default is not None and name not in self.given:
            return np.array(default, dtype=np.float64)
        words = self.attribute(name).split()
        try:
            out = [float(word) for word in words]
        except ValueError:
            out = []
        if len(out) != count or not all(map(isfinite, out)):
            many = "a finite number" if count == 1 else f"{count} finite numbers"
            raise self.error(f"the attribute {name!r} must be {many} (got {self.given[name]!r})")
        return np.array(out)

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number of an attribute. Without a default the attribute is required."""
        return float(self.numbers(name, 1, None if default is None else (default,))[0])


def parse_xml(raw: bytes, name: str) -> Element:
    """The outermost element of an XML text.

    Raises:
        ModelError: wrong syntax; the message gives file and line.
    """
    parser, open_elements, roots = expat.ParserCreate(), [], []

    def start(tag: str, given: dict[str, str]) -> None:
        element = Element(name, parser.CurrentLineNumber, tag, given)
        (open_elements[-1].inside if open_elements else roots).append(element)
        open_elements.append(element)

    def text(piece: str) -> None:
        if open_elements:
            open_elements[-1].text.append(piece)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: open_elements.pop()
    parser.CharacterDataHandler = text
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        why = expat.errors.messages[error.code]
        raise ModelError(f"{name}, line {error.lineno}: the XML is broken or cut off: {why}") from None
    except (ValueError, LookupError) as error:  # unknown encodings
        raise ModelError(f"{name}, line {parser.CurrentLineNumber}: the XML cannot be read ({error})") from None
    return roots[0]


_KNOWN = {  # the child elements that are read, by element
    "robot": {"link", "joint", "material", "transmission"},
    "link": {"inertial", "visual", "collision"},
    "inertial": {"origin", "mass", "inertia"},
    "visual": {"origin", "geometry", "material"},
    "collision": {"origin", "geometry"},
    "geometry": {"box", "cylinder", "sphere", "mesh"},
    "material": {"color"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"},
    "transmission": {"type", "joint", "actuator", "mechanicalReduction"},
    "transmission joint": {"hardwareInterface"},
    "actuator": {"mechanicalReduction", "hardwareInterface"},
}
_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_ALONG_Z = (0.0, 0.0, 1.0)


def load_urdf(
    path: str | os.PathLike[str],
    *,
    base: Joint | None = None,
    motors: bool = False,
    balls: int = 24,
    limit_stiffness: float = 1e4,
    limit_damping: float = 0.0,
    packages: Mapping[str, str | os.PathLike[str]] | None = None,
) -> Robot:
    """Read a URDF file as a Robot. Each link of the file becomes a link with its parent joint.

    | URDF | Robot |
    |---|---|
    | visual meshes | drawn meshes |
    | collision meshes | contact balls (see `fit_balls`) |
    | transmissions | inputs |
    | limits | stops |

    A LeftOutWarning lists the parts of the file that the robot does not have. An AccuracyWarning gives the distances
    between balls and meshes.

    Args:
        path: path of the file.
        base: joint between the world and the root link; None fixes the root.
        motors: True adds a motor, named after the joint, to each moving joint without a transmission.
        balls: largest number of balls of a collision mesh. 0: no balls at all, also none for simple shapes.
        limit_stiffness, limit_damping: stiffness [N·m/rad, N/m] and damping [N·m·s/rad, N·s/m] of the stops, which URDF
            does not specify.
        packages: folders of packages in `package://`, by name. Other packages are searched in the parent folders of the
            file.
    Raises:
        ModelError: the file has a mistake, or a joint that mimics another; the message gives file, line, element and
            rule.
        OSError: the file cannot be read.
    """
    name = os.fspath(path)
    root = parse_xml(bytes_of(path), name)
    if root.tag != "robot":
        raise root.error("a URDF file begins with <robot>")
    checks.integer(balls, "load_urdf: balls", least=0, most=10_000)
    stops = {"limit_stiffness": limit_stiffness, "limit_damping": limit_damping}
    reader = _Reader(root, Path(name).resolve().parent, balls, stops, dict(packages or {}))
    robot = reader.robot(base or JointFixed(), motors)
    robot.check()
    reader.left_out.warn()
    return robot


@final
class _Reader:
    """Conversion of a URDF file to a Robot."""

    def __init__(self, root: Element, folder: Path, balls: int, stops: dict[str, float], packages: dict) -> None:
        self.root, self.folder, self.balls, self.stops, self.packages = root, folder, balls, stops, packages
        self.left_out = LeftOut(root.source)
        self.links = _by_name(root, "link")
        self.joints = _by_name(root, "joint")
        self.colors = {m.attribute("name"): _color(m) for m in root.all("material")}
        self.above: dict[str, Element] = {}  # the joint above each link
        for joint in self.joints.values():
            parent, child = (joint.need(end).attribute("link") for end in ("parent", "child"))
            for end, link in (("parent", parent), ("child", child)):
                if link not in self.links:
                    raise joint.need(end).error(f"must be one of the links (got {link!r})")
            if child in self.above:
                raise joint.error(f"link {child!r} hangs on {self.above[child].title} already; chains must not close")
            self.above[child] = joint

    def robot(self, base: Joint, motors: bool) -> Robot:
        """The robot that the file describes."""
        robot = Robot(self.root.attribute("name"))
        roots = [name for name in self.links if name not in self.above]
        if len(roots) != 1:
            raise self.root.error(f"must have one link that hangs on no joint (got {roots or 'none'})")
        self._look(self.root, "robot")
        waiting = roots
        while waiting:
            name = waiting.pop(0)
            self._add(robot, name, base)
            waiting = [c for c, j in self.above.items() if j.need("parent").attribute("link") == name] + waiting
        if len(robot.links) < len(self.links):
            lost = next(link for name, link in self.links.items() if name not in robot.links)
            raise lost.error("hangs on itself: a chain of joints leads back to it")
        self._add_inputs(robot, motors)
        return robot

    def _add(self, robot: Robot, name: str, base: Joint) -> None:
        """Add a link with its joint and body."""
        element, joint = self.links[name], self.above.get(name)
        self._look(element, "link")
        body = self._body(element)
        if joint is None:
            robot.add_link(name, body, base)
            return
        self._look(joint, "joint")
        made = self._joint(joint)
        parent = joint.need("parent").attribute("link")
        robot.add_link(name, body, made, parent, placement=_pose(joint.find("origin")))

    def _joint(self, element: Element) -> Joint:
        kind = element.attribute("type")
        if kind not in _TYPES:
            raise element.error(f"the type must be one of {', '.join(_TYPES)} (got {kind!r})")
        mimic = element.find("mimic")
        if mimic is not None:
            raise mimic.error(f"{element.title} must not mimic another joint: that is not supported")
        axis = (1.0, 0.0, 0.0)
        given = element.find("axis")
        if given is not None and kind not in ("fixed", "floating"):
            axis = tuple(given.numbers("xyz", 3, axis).tolist())
            if not np.any(axis):
                raise given.error("the attribute 'xyz' must not be zero")
        if kind == "fixed":
            return JointFixed()
        options = self._damping(element) | self._limits(element, kind)
        if kind == "floating":
            return JointFree(**options)
        if kind == "planar":
            return JointPlanar(normal=axis, **options)
        return JointPrismatic(axis=axis, **options) if kind == "prismatic" else JointRevolute(axis=axis, **options)

    def _damping(self, element: Element) -> dict[str, Any]:
        dynamics = element.find("dynamics")
        if dynamics is None:
            return {}
        if dynamics.number("friction", 0.0):
            self.left_out.add("dry friction", f"{element.title} (line {dynamics.line})")
        damping = dynamics.number("damping", 0.0)
        return {"damping": damping} if damping else {}

    def _limits(self, element: Element, kind: str) -> dict[str, Any]:
        """The fields of the stops at the limits of a joint; empty without limits."""
        limit, has_stops = element.find("limit"), kind in ("revolute", "prismatic")
        if limit is None:
            if has_stops:
                raise element.error(f"a {kind} joint must hold <limit>; one that turns without end is 'continuous'")
            return {}
        for key in ("effort", "velocity"):
            if limit.number(key, 0.0):
                self.left_out.add(f"limits of {key}", element.title)
        low, high = limit.number("lower", 0.0), limit.number("upper", 0.0)
        if not has_stops:
            if low or high:
                self.left_out.add(f"limits of a {kind} joint", f"{element.title} (line {limit.line})")
            return {}
        if not low < high:
            raise limit.error(f"{element.title}: lower must be < upper (got {low:g} and {high:g})")
        return {"limits": (low, high), **self.stops}

    def _body(self, element: Element) -> RigidBody | None:
        mass, com, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
        inertial = element.find("inertial")
        if inertial is not None:
            mass = inertial.need("mass").number("value")
            g, given = _pose(inertial.find("origin")), inertial.need("inertia")
            xx, xy, xz, yy, yz, zz = (given.number(key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
            com = g[:3, 3]
            inertia = g[:3, :3] @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ g[:3, :3].T
            inertia = 0.5 * (inertia + inertia.T)
        meshes = [mesh for visual in element.all("visual") if (mesh := self._visual(visual)) is not None]
        balls = [row for part in element.all("collision") for row in self._collision(element, part)]
        if inertial is None and not meshes and not balls:
            return None
        touches = np.array(balls).tolist() if balls else None
        body = RigidBody(mass, com.tolist(), inertia.tolist(), balls=touches, meshes=tuple(meshes))
        try:
            body.check("body")
        except ModelError as error:
            raise (inertial or element).error(f"{element.title}: {error}") from None
        return body

    def _visual(self, visual: Element) -> Mesh | None:
        material = visual.find("material")
        color = None
        if material is not None:
            color = _color(material)
            if color is None:
                color = self.colors.get(material.given.get("name", ""))
        placement, part = _placement(visual), _geometry(visual)
        if part.tag != "mesh":
            return Mesh.of_shape(_shape(part), placement=placement, color=color)
        file = self._file(part)
        if file is None:
            self.left_out.add("missing mesh file", f"{part.given['filename']!r} (line {part.line})")
            return None
        return Mesh(file=file, scale=tuple(_scale(part).tolist()), placement=placement, color=color)

    def _collision(self, link: Element, collision: Element) -> list[list[float]]:
        """Balls of a shape or a mesh: rows (x, y, z, radius) in the body's frame."""
        if not self.balls:
            return []
        part, placement = _geometry(collision), _placement(collision)
        g = checks.pose(placement, "origin")
        if part.tag == "mesh":
            file = self._file(part)
            if file is None:
                self.left_out.add("missing mesh file", f"{part.given['filename']!r} (line {part.line})")
                return []
            try:
                fit = fit_balls(*Mesh(file=file, scale=_scale(part), placement=placement).surface(), self.balls)
            except ModelError as error:
                why = str(error) if file in str(error) else f"mesh {file!r}: {error}"
                raise part.error(f"{why}; balls=0 leaves it out") from None
            self.left_out.fitted(link.attribute("name"), len(fit.balls), fit.gap)
            return fit.balls.tolist()
        shape = _shape(part)
        if isinstance(shape, ShapeSphere):
            rows = [(0.0, 0.0, 0.0, shape.radius)]
        elif isinstance(shape, ShapeBox):
            rows = RigidBody.box(shape.size_x, shape.size_y, shape.size_z, density=1.0).balls
        else:
            rows = RigidBody.cylinder(part.number("length"), part.number("radius"), density=1.0).balls
            rows = np.array(rows)[:, [2, 1, 0, 3]]  # from the axis x to the axis z
        rows = np.array(rows, dtype=np.float64)
        return np.column_stack([rows[:, :3] @ g[:3, :3].T + g[:3, 3], rows[:, 3]]).tolist()

    def _file(self, part: Element) -> str | None:
        """The path of a mesh file; None if it does not exist."""
        text = part.attribute("filename")
        if text.startswith("package://"):
            package, _, rest = text.removeprefix("package://").partition("/")
            here = [self.folder, *self.folder.parents]
            given = [Path(self.packages[package]) / rest] if package in self.packages else []
            tries = [*given, *(folder / package / rest for folder in here)]
            tries += [folder / rest for folder in here if folder.name == package]
        else:
            tries = [self.folder / text.removeprefix("file://")]
        return next((os.fspath(file) for file in tries if file.is_file()), None)

    def _add_inputs(self, robot: Robot, motors: bool) -> None:
        """Add the motors of transmissions; with `motors` also of all other moving joints."""
        driven = set()
        for transmission in self.root.all("transmission"):
            joints, actuators = list(transmission.all("joint")), list(transmission.all("actuator"))
            if len(joints) != 1 or len(actuators) != 1:
                rule = f"{len(joints)} joints and {len(actuators)} actuators"
                self.left_out.add(f"transmission of {rule}", f"{transmission.title} (line {transmission.line})")
                continue
            name, actuator = joints[0].attribute("name"), actuators[0]
            if name not in self.joints:
                raise joints[0].error("is none of the joints of the file")
            link = self.joints[name].need("child").attribute("link")
            if robot.links[link].joint.nv == 0:
                raise joints[0].error("must be a joint that moves")
            driven.add(name)
            gear = actuator.find("mechanicalReduction") or transmission.find("mechanicalReduction")
            _add_motor(robot, actuator.attribute("name"), name, link, 1.0 if gear is None else _reduction(gear))
        for name, joint in self.joints.items():
            link = joint.need("child").attribute("link")
            if motors and name not in driven and robot.links[link].joint.nv:
                robot.add_joint_actuator(name, link)

    def _look(self, element: Element, kind: str) -> None:
        """Note child elements that are not read as left out. Links and joints are checked when they are added."""
        for part in element.inside:
            if part.tag not in _KNOWN.get(kind, ()):
                self.left_out.add(f"<{part.tag}>", f"{element.title} (line {part.line})")
            elif part.tag not in ("link", "joint") or kind == "transmission":
                self._look(part, "transmission joint" if part.tag == "joint" else part.tag)


def _add_motor(robot: Robot, name: str, joint: str, link: str, gear: float) -> None:
    """Add a motor. The torque on the joint is the motor torque times the gear reduction."""
    if gear == 1.0:
        robot.add_joint_actuator(name, link)
        return
    behind = joint if joint != name else f"{joint} behind its gear"
    robot.add_joint_actuator(behind, link)
    robot.couple_inputs(name, {behind: gear})


def _by_name(root: Element, tag: str) -> dict[str, Element]:
    out: dict[str, Element] = {}
    for element in root.all(tag):
        name = element.attribute("name")
        if name in out:
            raise element.error(f"has the name of the {tag} in line {out[name].line}")
        out[name] = element
    return out


def _reduction(element: Element) -> float:
    text = "".join(element.text).strip()
    try:
        return checks.number(float(text), "reduction")
    except (ValueError, ModelError):
        raise element.error(f"must be a finite number (got {text!r})") from None


def _pose(origin: Element | None) -> np.ndarray:
    """The pose (4, 4) of an <origin>; the identity if there is none."""
    g = np.eye(4)
    if origin is not None:
        (cr, cp, cy), (sr, sp, sy) = (f(origin.numbers("rpy", 3, (0.0, 0.0, 0.0))) for f in (np.cos, np.sin))
        g[:3, :3] = [  # (1)
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
        g[:3, 3] = origin.numbers("xyz", 3, (0.0, 0.0, 0.0))
    return g


def _placement(element: Element) -> list[list[float]] | None:
    origin = element.find("origin")
    return None if origin is None else _pose(origin).tolist()


def _geometry(element: Element) -> Element:
    """The only shape or mesh of a visual or collision element."""
    geometry = element.need("geometry")
    parts = [part for part in geometry.inside if part.tag in _KNOWN["geometry"]]
    if len(parts) != 1:
        raise geometry.error(f"must hold one of {', '.join(sorted(_KNOWN['geometry']))} (got {len(parts)})")
    return parts[0]


def _shape(part: Element) -> Shape:
    if part.tag == "box":
        shape: Shape = ShapeBox(*part.numbers("size", 3).tolist())
    elif part.tag == "sphere":
        shape = ShapeSphere(part.number("radius"))
    else:
        shape = ShapeCylinder(part.number("radius"), part.number("length"), axis=_ALONG_Z)
    try:
        shape.surface(part.tag)
    except ModelError as error:
        raise part.error(str(error)) from None
    return shape


def _scale(part: Element) -> np.ndarray:
    return part.numbers("scale", 3, (1.0, 1.0, 1.0))


def _color(material: Element) -> tuple[float, ...] | None:
    color = material.find("color")
    return None if color is None else tuple(color.numbers("rgba", 4).tolist())


# -- parts of files that the imports of URDF and MJCF leave out -------------------------------------------------------

_SHOWN_PLACES = 8  # largest number of places that a warning names for each kind


@final
class LeftOut:
    """Parts of a file that the robot does not have, by kind and place.

    Args:
        source: name of the file.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._places: dict[str, list[str]] = {}
        self._fits: dict[str, tuple[int, float]] = {}

    def add(self, kind: str, place: str) -> None:
        """Add a part of a kind, at a place in the file."""
        self._places.setdefault(kind, []).append(place)

    def fitted(self, link: str, count: int, gap: float) -> None:
        """Add a link whose collision mesh was replaced by `count` balls, with the largest distance `gap` [m] from the
        mesh."""
        before = self._fits.get(link, (0, 0.0))
        self._fits[link] = (before[0] + count, max(before[1], gap))

    def warn(self) -> None:
        """Issue one warning about the parts that were left out, and one about balls that replace meshes."""
        if self._places:
            kinds = [f"{kind} of {_listed(places)}" for kind, places in self._places.items()]
            warnings.warn(f"{self.source}: left out: {'; '.join(kinds)}", LeftOutWarning, stacklevel=3)
        if self._fits:
            balls = [f"{link!r} {count}, up to {1e3 * gap:.2g} mm away" for link, (count, gap) in self._fits.items()]
            text = f"{self.source}: balls replace collision meshes: {_listed(balls)}"
            warnings.warn(f"{text}; more balls fit closer, balls=0 makes none", AccuracyWarning, stacklevel=3)


def _listed(places: list[str]) -> str:
    more = len(places) - _SHOWN_PLACES
    return ", ".join(places[:_SHOWN_PLACES]) + (f" and {more} more" if more > 0 else "")
