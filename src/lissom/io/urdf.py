"""Import of URDF files: trees of rigid bodies in the format of ROS.

This module parses the file itself, because URDF packages lack two things: transmissions, which become inputs, and line
numbers for errors. Nothing in a file is executed. trimesh reads the meshes.

    R = Rz(yaw) Ry(pitch) Rx(roll)   of rpy = (roll, pitch, yaw)                                           (1)

    R = 1 + 2 w x̂ + 2 x̂ x̂            of the unit quaternion quat_xyzw = (x, w), since URDF 1.1                (2)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any, final
from xml.parsers import expat

import numpy as np

from lissom.errors import ModelError
from lissom.io.imports import Findings, check_shape, shape_mesh
from lissom.io.text_files import bytes_of, collection_paused
from lissom.robot import checks
from lissom.robot.bodies import RigidBody
from lissom.robot.contact_points import FILLING
from lissom.robot.joints import Joint, JointFixed, JointFree, JointPlanar, JointPrismatic, JointRevolute
from lissom.robot.meshes import Mesh
from lissom.robot.robot import Robot
from lissom.robot.sampled_shapes import ShapeMesh
from lissom.robot.shapes import PlacedShape, Shape, ShapeBox, ShapeCapsule, ShapeCylinder, ShapeSphere


@final
@dataclass(eq=False, slots=True)
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
        """The first child element with a tag; None if there is none."""
        for element in self.inside:
            if element.tag == tag:
                return element
        return None

    def need(self, tag: str) -> Element:
        """The first child element with a tag. Raises ModelError if there is none."""
        found = self.find(tag)
        if found is None:
            raise self.error(f"must hold <{tag}>")
        return found

    def attribute(self, name: str) -> str:
        """The text of a required attribute."""
        text = self.given.get(name, "").strip()
        if not text:
            raise self.error(f"the attribute {name!r} is required")
        return text

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
            raise self.error(f"the attribute {name!r} must be {count} finite numbers (got {self.given[name]!r})")
        return np.array(out)

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number of an attribute. Without a default the attribute is required."""
        if default is not None and name not in self.given:
            return default
        text = self.attribute(name)
        try:
            out = float(text)
        except ValueError:
            out = inf
        if not isfinite(out):
            raise self.error(f"the attribute {name!r} must be a finite number (got {self.given[name]!r})")
        return out


def parse_xml(raw: bytes, name: str) -> Element:
    """The outermost element of an XML text.

    Raises:
        ModelError: wrong syntax; the message gives file and line.
    """
    parser, open_elements, roots = expat.ParserCreate(), [], []
    inside = raw.lstrip()  # some files begin with an empty line, which XML forbids before its declaration
    above = raw[: len(raw) - len(inside)].count(b"\n")

    def start(tag: str, given: dict[str, str]) -> None:
        element = Element(name, parser.CurrentLineNumber + above, tag, given)
        (open_elements[-1].inside if open_elements else roots).append(element)
        open_elements.append(element)

    def text(piece: str) -> None:
        if open_elements:
            open_elements[-1].text.append(piece)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: open_elements.pop()
    parser.CharacterDataHandler = text
    try:
        parser.Parse(inside, True)
    except expat.ExpatError as error:
        why = expat.errors.messages[error.code]
        raise ModelError(f"{name}, line {error.lineno + above}: the XML is broken or cut off: {why}") from None
    except (ValueError, LookupError) as error:  # unknown encodings
        raise ModelError(f"{name}, line {parser.CurrentLineNumber + above}: the XML cannot be read ({error})") from None
    return roots[0]


_KNOWN = {  # the child elements that are read, by element
    "robot": {"link", "joint", "material", "transmission"},
    "link": {"inertial", "visual", "collision"},
    "inertial": {"origin", "mass", "inertia"},
    "visual": {"origin", "geometry", "material"},
    "collision": {"origin", "geometry"},
    "geometry": {"box", "capsule", "cylinder", "sphere", "mesh"},
    "material": {"color"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"},
    "transmission": {"type", "joint", "actuator", "mechanicalReduction"},
    "transmission joint": {"hardwareInterface"},
    "actuator": {"mechanicalReduction", "hardwareInterface"},
    "gazebo": {"springStiffness", "springReference"},
}
_ATTRIBUTES = {  # the attributes that are read, by element, and those that change nothing
    "robot": {"name", "version"},
    "link": {"name"},
    "joint": {"name", "type"},
    "origin": {"xyz", "rpy", "quat_xyzw"},
    "mass": {"value"},
    "inertia": {"ixx", "ixy", "ixz", "iyy", "iyz", "izz"},
    "visual": {"name"},
    "collision": {"name"},
    "box": {"size"},
    "capsule": {"radius", "length"},
    "cylinder": {"radius", "length"},
    "sphere": {"radius"},
    "mesh": {"filename", "scale"},
    "material": {"name"},
    "color": {"rgba"},
    "parent": {"link"},
    "child": {"link"},
    "axis": {"xyz"},
    "limit": {"lower", "upper", "effort", "velocity"},
    "dynamics": {"damping", "friction"},
    "mimic": {"joint", "multiplier", "offset"},
    "transmission": {"name"},
    "transmission joint": {"name"},
    "actuator": {"name"},
    "gazebo": {"reference"},
}
# elements that may occur several times
_REPEATABLE = {"link", "joint", "material", "transmission", "visual", "collision", "actuator", "gazebo"}
_MOMENTS, _PRODUCTS = ("ixx", "iyy", "izz"), ("ixy", "ixz", "iyz")
_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_ALONG_Z = (0.0, 0.0, 1.0)
_NO_MASS = 1e-12  # a negative mass down to this [kg] is rounding


def load_urdf(
    path: str | os.PathLike[str],
    *,
    base: Joint | None = None,
    motors: bool = False,
    balls: int = FILLING,
    limit_stiffness: float = 1e4,
    limit_damping: float = 0.0,
    packages: Mapping[str, str | os.PathLike[str]] | None = None,
    strict: bool = False,
) -> Robot:
    """Read a URDF file as a Robot. Each link of the file becomes a link with its parent joint.

    | URDF | Robot |
    |---|---|
    | visual elements | drawn meshes, which nothing touches |
    | collision elements | collision shapes |
    | transmissions | inputs |
    | limits | stops |
    | `springStiffness`, `springReference` of `gazebo` | springs of joints |
    | joints that mimic others | couplings |

    No pair of links touches until `Robot.add_contact` or `Robot.add_mutual_contacts` makes contacts. The first motion
    of a robot that can fall without any contact gives a LeftOutWarning.

    A LeftOutWarning lists the parts and attributes of the file that the robot does not have, among them wrong parts
    that the mechanism does not need. A RepairWarning lists numbers that no part can have, such as a negative moment of
    inertia or a color beyond 1: the robot has the nearest possible ones.

    Args:
        path: path of the file.
        base: joint between the world and the root link; None fixes the root.
        motors: True adds a motor, named after the joint, to each moving joint that has no transmission and mimics no
            other.
        balls: largest number of balls that fill a collision mesh where its link touches others; see `RigidBody`. 0: no
            collision shapes at all.
        limit_stiffness, limit_damping: stiffness [N·m/rad, N/m] and damping [N·m·s/rad, N·s/m] of the stops, which URDF
            does not specify.
        packages: folders of packages in `package://`, by name. Other packages are searched in the parent folders of the
            file.
        strict: True makes wrong parts and wrong numbers errors. Nothing is repaired.
    Raises:
        ModelError: the file has a mistake; the message gives file, line, element and rule.
        OSError: the file cannot be read.
    """
    name = os.fspath(path)
    checks.integer(balls, "load_urdf: balls", least=0, most=10_000)
    stops = {"limit_stiffness": limit_stiffness, "limit_damping": limit_damping}
    with collection_paused():
        root = parse_xml(bytes_of(path), name)
        if root.tag != "robot":
            raise root.error("a URDF file begins with <robot>")
        reader = _Reader(root, Path(name).resolve(), balls, stops, dict(packages or {}), strict)
        robot = reader.robot(base or JointFixed(), motors)
        try:
            robot.check()
        except ModelError as error:
            raise reader.located(robot, error) from None
    reader.findings.warn()
    robot.source = os.path.basename(name)
    return robot


@final
class _Reader:
    """Conversion of a URDF file to a Robot."""

    def __init__(
        self, root: Element, path: Path, balls: int, stops: dict[str, float], packages: dict, strict: bool
    ) -> None:
        self.root, self.path, self.folder = root, path, path.parent
        self.balls, self.stops, self.packages = balls, stops, packages
        self.findings = Findings(root.source, strict)
        self.links = _by_name(root, "link")
        self.joints = _by_name(root, "joint")
        self.colors: dict[str, tuple[float, ...] | None] = {}
        for material in root.all("material"):
            with self._unless_wrong(material):
                self.colors[material.attribute("name")] = self._color(material)
        inertials = [inertial for link in self.links.values() for inertial in link.all("inertial")]
        self.inertias = {id(part): _symmetric(part) for inertial in inertials for part in inertial.all("inertia")}
        self.largest = max((float(np.abs(matrix).max()) for matrix in self.inertias.values()), default=0.0)
        self.below: dict[str, list[str]] = {name: [] for name in self.links}  # the links that hang on each link
        self.above: dict[str, Element] = {}  # the joint above each link
        for joint in self.joints.values():
            parent, child = (joint.need(end).attribute("link") for end in ("parent", "child"))
            for end, link in (("parent", parent), ("child", child)):
                if link not in self.links:
                    raise joint.need(end).error(f"must be one of the links (got {link!r})")
            if child in self.above:
                raise joint.error(f"link {child!r} hangs on {self.above[child].title} already; chains must not close")
            self.above[child] = joint
            self.below[parent].append(child)

    @contextmanager
    def _unless_wrong(self, element: Element) -> Iterator[None]:
        """Inside this block a mistake leaves out an element that the mechanism does not need."""
        try:
            yield
        except ModelError as error:
            self.findings.overlooked(error, f"wrong <{element.tag}>", f"line {element.line}")

    def robot(self, base: Joint, motors: bool) -> Robot:
        """The robot that the file describes."""
        title = self.root.given.get("name", "").strip()
        if not title:
            title = self.path.stem
            self.findings.overlooked(self.root.error("the attribute 'name' is required"), "name", "<robot>")
        robot = Robot(title)
        roots = [name for name in self.links if name not in self.above]
        if len(roots) != 1:
            raise self.root.error(f"must have one link that hangs on no joint (got {roots or 'none'})")
        self._look(self.root, "robot")
        waiting = roots
        while waiting:
            name = waiting.pop()
            self._add(robot, name, base)
            waiting += reversed(self.below[name])
        if len(robot.links) < len(self.links):
            lost = next(link for name, link in self.links.items() if name not in robot.links)
            raise lost.error("hangs on itself: a chain of joints leads back to it")
        self._add_springs(robot)
        self._add_couplings(robot)
        self._add_inputs(robot, motors)
        return robot

    def located(self, robot: Robot, error: ModelError) -> ModelError:
        """An error of the robot with the file, and with the line of the body that is wrong."""
        for name, link in robot.links.items():
            element = self.links[name]
            try:
                if link.body is not None:
                    link.body.check("body")
            except ModelError as wrong:
                return (element.find("inertial") or element).error(f"{element.title}: {wrong}")
        return ModelError(f"{self.root.source}: {error}")

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
        axis = (1.0, 0.0, 0.0)
        given = element.find("axis")
        if given is not None and kind not in ("fixed", "floating"):
            axis = tuple(given.numbers("xyz", 3, axis).tolist())
            if not np.any(axis):
                raise given.error("the attribute 'xyz' must not be zero")
        if kind == "fixed":
            return JointFixed()
        options = self._losses(element, kind) | self._limits(element, kind)
        if kind == "floating":
            return JointFree(**options)
        if kind == "planar":
            return JointPlanar(normal=axis, **options)
        return JointPrismatic(axis=axis, **options) if kind == "prismatic" else JointRevolute(axis=axis, **options)

    def _losses(self, element: Element, kind: str) -> dict[str, Any]:
        """Damping and dry friction of a joint; empty without them."""
        dynamics, found = element.find("dynamics"), {}
        if dynamics is None:
            return found
        for name in ("damping", "friction"):
            value, where = dynamics.number(name, 0.0), f"{element.title} (line {dynamics.line})"
            if value < 0.0:
                error = dynamics.error(f"{element.title}: {name} must be >= 0 (got {value:g})")
                self.findings.overlooked(error, f"negative {name}", where)
            elif value > 0.0 and name == "friction" and kind == "floating":
                self.findings.left_out("dry friction of a floating joint", where)
            elif value > 0.0:
                found[name] = value
        return found

    def _limits(self, element: Element, kind: str) -> dict[str, Any]:
        """The fields of the stops at the limits of a joint; empty without limits."""
        limit, has_stops = element.find("limit"), kind in ("revolute", "prismatic")
        if limit is None:
            if has_stops:
                raise element.error(f"a {kind} joint must hold <limit>; one that turns without end is 'continuous'")
            return {}
        for key in ("effort", "velocity"):
            if limit.number(key, 0.0):
                self.findings.left_out(f"limits of {key}", element.title)
        low, high = limit.number("lower", 0.0), limit.number("upper", 0.0)
        if not has_stops:
            if low or high:
                self.findings.left_out(f"limits of a {kind} joint", f"{element.title} (line {limit.line})")
            return {}
        if not low < high:
            error = limit.error(f"{element.title}: lower must be < upper (got {low:g} and {high:g})")
            self.findings.overlooked(error, "limits without a range", f"{element.title} (line {limit.line})")
            return {}
        return {"limits": (low, high), **self.stops}

    def _body(self, element: Element) -> RigidBody | None:
        inertial = element.find("inertial")
        mass, com, inertia = (0.0, np.zeros(3), np.zeros((3, 3))) if inertial is None else self._inertia(element)
        meshes: list[Mesh] = []
        shapes: list[PlacedShape] = []
        for part in (*element.all("visual"), *element.all("collision")):
            with self._unless_wrong(part):
                if part.tag == "visual":
                    meshes += self._visual(part)
                elif self.balls:
                    shapes += self._collision(part)
        if inertial is None and not meshes and not shapes:
            return None
        filling = None if self.balls == FILLING else self.balls
        return RigidBody(mass, com.tolist(), inertia.tolist(), shapes=tuple(shapes), meshes=tuple(meshes),
                         balls=filling if shapes else None)  # fmt: skip

    def _collision(self, collision: Element) -> list[PlacedShape]:
        """The shape of a collision element; none if its file does not exist."""
        part = _geometry(collision)
        if part.tag != "mesh":
            return [PlacedShape(_shape(part), _placement(collision))]
        return [PlacedShape(ShapeMesh(replace(mesh, placement=None)), mesh.placement) for mesh in self._mesh(collision)]

    def _inertia(self, element: Element) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass, centre of mass (3,) and inertia (3, 3) of a link. Without <mass> it has no inertia, as in Pinocchio;
        without <inertia> it is a point mass."""
        inertial, com, inertia = element.need("inertial"), np.zeros(3), np.zeros((3, 3))
        for tag in ("mass", "inertia"):
            if inertial.find(tag) is None:
                error, place = inertial.error(f"must hold <{tag}>"), f"{element.title} (line {inertial.line})"
                self.findings.overlooked(error, f"<inertial> without <{tag}>", place)
        if inertial.find("mass") is None:
            return 0.0, com, inertia
        mass = inertial.need("mass").number("value")
        g, given = _pose(inertial.find("origin")), inertial.find("inertia")
        if given is not None:
            own = self.findings.inertia(self.inertias[id(given)], element.given["name"], self.largest)
            inertia = g[:3, :3] @ own @ g[:3, :3].T
            missing = [key for key in _PRODUCTS if key not in given.given]
            if missing:
                error, place = given.error(f"the attribute {missing[0]!r} is required"), f"(line {given.line})"
                self.findings.overlooked(error, "<inertia> without products", f"{element.title} {place}")
        if mass < -_NO_MASS:
            error = inertial.error(f"{element.title}: body: mass: must be >= 0 (got {mass!r})")
            self.findings.repaired(error, f"mass of {element.given['name']!r} by {-mass:.2g} kg")
        return max(mass, 0.0), g[:3, 3], 0.5 * (inertia + inertia.T)

    def _visual(self, visual: Element) -> list[Mesh]:
        """The drawn mesh of a visual element."""
        material = visual.find("material")
        color = None
        if material is not None:
            color, name = self._color(material), material.given.get("name", "")
            if color is not None:
                self.colors.setdefault(name, color)
            elif name in self.colors:
                color = self.colors[name]
            elif not material.inside:
                error = material.error("must be one of the materials of the file, or hold <color>")
                self.findings.overlooked(error, "unknown material", f"{material.title} (line {material.line})")
        part = _geometry(visual)
        if part.tag != "mesh":
            return [shape_mesh(_shape(part), _placement(visual), color)]
        return self._mesh(visual, color)

    def _color(self, material: Element) -> tuple[float, ...] | None:
        """The color of a material, with numbers from 0 to 1; None if it has none."""
        color = material.find("color")
        if color is None:
            return None
        given = color.numbers("rgba", 4)
        in_bytes = bool(np.any(given > 2.0)) and not np.any(given % 1.0) and bool(np.all(given[:3] >= 0.0))
        scale = np.where(in_bytes & ((np.arange(4) < 3) | (given > 1.0)), 255.0, 1.0)
        return self.findings.color(given / scale, given, color.error, f"{material.title} (line {color.line})")

    def _mesh(self, element: Element, color: tuple[float, ...] | None = None) -> list[Mesh]:
        """The mesh of a visual or collision element whose geometry is a file; none if the file does not exist."""
        part = _geometry(element)
        file = self._file(part)
        if file is None:
            self.findings.left_out("missing mesh file", f"{part.given['filename']!r} (line {part.line})")
            return []
        return [Mesh(file=file, scale=tuple(_scale(part).tolist()), placement=_placement(element), color=color)]

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

    def _add_springs(self, robot: Robot) -> None:
        """Give joints the springs of Gazebo's extension."""
        for spring in filter(_is_spring, self.root.all("gazebo")):
            with self._unless_wrong(spring):
                joint = self.joints.get(spring.attribute("reference"))
                if joint is None:
                    raise spring.error("the attribute 'reference' must be one of the joints of the file")
                link = robot.links[joint.need("child").attribute("link")]
                if link.joint.nv != 1:
                    raise spring.error(f"{joint.title}: must have one coordinate to have a spring")
                k, rest = (_number_in(spring, tag) for tag in ("springStiffness", "springReference"))
                if k < 0.0:
                    raise spring.error(f"{joint.title}: springStiffness must be >= 0 (got {k:g})")
                law: dict[str, Any] = {"stiffness": k, "rest": (rest,)} if k else {}
                robot.links[link.name] = replace(link, joint=replace(link.joint, **law))  # type: ignore[type-var]

    def _add_couplings(self, robot: Robot) -> None:
        """Add a coupling q = multiplier q_leader + offset for each joint that mimics another, its leader. A leader that
        is fixed has q = 0."""
        moving = {name: robot.links[joint.need("child").attribute("link")] for name, joint in self.joints.items()}
        leaders: dict[str, str] = {}
        for name, joint in self.joints.items():
            mimic = joint.find("mimic")
            if mimic is None:
                continue
            with self._unless_wrong(mimic):
                leader = mimic.attribute("joint")
                multiplier, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
                if leader not in self.joints:
                    raise mimic.error(f"{joint.title}: must mimic one of the joints of the file (got {leader!r})")
                for one in (name, leader):
                    if moving[one].joint.nv > 1:
                        raise mimic.error(f"{joint.title}: joint {one!r} must have one coordinate to be coupled")
                if moving[name].joint.nv == 0:
                    raise mimic.error(f"{joint.title}: must be a joint that moves")
                leaders[name] = leader
                if moving[leader].joint.nv and multiplier:
                    links, ratios = [moving[name].name, moving[leader].name], [1.0, -multiplier]
                else:
                    links, ratios = [moving[name].name], [1.0]
                if name != leader:
                    robot.add_coupling(name, links, ratios, offset)
        free: set[str] = set()  # joints whose leaders are known to end at one that mimics none
        for name in leaders:
            chain, last = {name: None}, name
            while last in leaders and (last := leaders[last]) not in free:
                if last in chain:
                    way = " > ".join(map(repr, [*list(chain)[list(chain).index(last) :], last]))
                    raise self.joints[last].need("mimic").error(f"joint {last!r} must not mimic itself ({way})")
                chain[last] = None
            free.update(chain)

    def _add_inputs(self, robot: Robot, motors: bool) -> None:
        """Add the motors of transmissions; with `motors` also of all other moving joints that mimic none."""
        driven = set()
        for transmission in self.root.all("transmission"):
            joints, actuators = list(transmission.all("joint")), list(transmission.all("actuator"))
            if len(joints) != 1 or len(actuators) != 1:
                rule = f"{len(joints)} joints and {len(actuators)} actuators"
                self.findings.left_out(f"transmission of {rule}", f"{transmission.title} (line {transmission.line})")
                continue
            with self._unless_wrong(transmission):
                name, actuator = joints[0].attribute("name"), actuators[0]
                if name not in self.joints:
                    raise joints[0].error("is none of the joints of the file")
                link = self.joints[name].need("child").attribute("link")
                if robot.links[link].joint.nv == 0:
                    raise joints[0].error("must be a joint that moves")
                gear = actuator.find("mechanicalReduction") or transmission.find("mechanicalReduction")
                _add_motor(robot, actuator.attribute("name"), name, link, 1.0 if gear is None else _reduction(gear))
                driven.add(name)
        driven |= set(robot.joint_couplings)
        for name, joint in self.joints.items():
            link = joint.need("child").attribute("link")
            if motors and name not in driven and robot.links[link].joint.nv:
                robot.add_joint_actuator(name, link)

    def _look(self, element: Element, kind: str, owner: str = "") -> None:
        """Note attributes and child elements that are not read as left out. `owner` is the title of the link or joint
        that holds the element. Links and joints are checked when they are added."""
        owner = element.title if "name" in element.given or not owner else owner
        where = element.title if owner == element.title else f"<{element.tag}> of {owner}"
        for name in element.given:
            if name not in _ATTRIBUTES.get(kind, ()) and not name.startswith("xmlns"):
                self.findings.left_out(f"attribute {name!r}", f"{where} (line {element.line})")
        seen = set()
        for part in element.inside:
            if part.tag not in _KNOWN.get(kind, ()) and not (kind == "robot" and _is_spring(part)):
                self.findings.left_out(f"<{part.tag}>", f"{element.title} (line {part.line})")
            elif part.tag in seen:
                error = part.error(f"occurs twice in {element.title}")
                self.findings.overlooked(error, f"second <{part.tag}>", f"{element.title} (line {part.line})")
            elif part.tag not in ("link", "joint") or kind == "transmission":
                self._look(part, "transmission joint" if part.tag == "joint" else part.tag, owner)
            if part.tag not in _REPEATABLE:
                seen.add(part.tag)


def _is_spring(element: Element) -> bool:
    """Whether an element is Gazebo's extension for the spring of a joint, and nothing else."""
    return element.tag == "gazebo" and {part.tag for part in element.inside} - {"springReference"} == {
        "springStiffness"
    }


def _add_motor(robot: Robot, name: str, joint: str, link: str, gear: float) -> None:
    """Add a motor. The torque on the joint is the motor torque times the gear reduction."""
    if gear == 1.0:
        robot.add_joint_actuator(name, link)
        return
    behind = joint if joint != name else f"{joint} behind its gear"
    robot.add_joint_actuator(behind, link)
    robot.couple_inputs(name, {behind: gear})


def _number_in(element: Element, tag: str) -> float:
    """The number in a child element; 0 without it."""
    found = element.find(tag)
    if found is None:
        return 0.0
    text = "".join(found.text).strip()
    try:
        out = float(text)
    except ValueError:
        out = inf
    if not isfinite(out):
        raise found.error(f"must be a finite number (got {text!r})")
    return out


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
    if origin is not None and "quat_xyzw" in origin.given:
        if "rpy" in origin.given:
            raise origin.error("must have one of the attributes 'rpy' and 'quat_xyzw' (got both)")
        q = origin.numbers("quat_xyzw", 4)
        if not np.any(q):
            raise origin.error("the attribute 'quat_xyzw' must not be zero")
        x, y, z, w = q / np.abs(q).max() / np.linalg.norm(q / np.abs(q).max())
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        g[:3, :3] += 2.0 * w * cross + 2.0 * cross @ cross  # (2)
    if origin is not None and "rpy" in origin.given:
        (cr, cp, cy), (sr, sp, sy) = (f(origin.numbers("rpy", 3, (0.0, 0.0, 0.0))) for f in (np.cos, np.sin))
        g[:3, :3] = [  # (1)
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    if origin is not None:
        g[:3, 3] = origin.numbers("xyz", 3, (0.0, 0.0, 0.0))
    return g


def _symmetric(inertia: Element) -> np.ndarray:
    """The matrix (3, 3) of an <inertia>. Products that it does not have are zero."""
    xx, yy, zz = (inertia.number(key) for key in _MOMENTS)
    xy, xz, yz = (inertia.number(key, 0.0) for key in _PRODUCTS)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


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
        kind = ShapeCapsule if part.tag == "capsule" else ShapeCylinder
        shape = kind(part.number("radius"), part.number("length"), axis=_ALONG_Z)
    try:
        check_shape(shape, part.tag)
    except ModelError as error:
        raise part.error(str(error)) from None
    return shape


def _scale(part: Element) -> np.ndarray:
    return part.numbers("scale", 3, (1.0, 1.0, 1.0))
