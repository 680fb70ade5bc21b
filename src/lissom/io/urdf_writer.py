"""Export of a robot as a URDF file, for ROS. Rods become chains of rigid links (io/rigid_chains).

URDF has hinges, slides and free joints of one element each, so that a joint of several coordinates becomes a row of
links without mass. It has dampers and no springs. Springs are written in the extension of Gazebo, <springStiffness> and
<springReference> of <gazebo reference="joint">, which `load_urdf` reads; other tools leave them out.

    R = Rz(yaw) Ry(pitch) Rx(roll)   of rpy = (roll, pitch, yaw)                                           (1)
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from dataclasses import replace
from math import atan2, hypot
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.io.imports import Findings
from lissom.io.writing import (
    SIMPLE,
    Move,
    SavedRobot,
    add_element,
    moves_of,
    note_kinds,
    numbers,
    parents_first,
    rigid,
    surface_of,
    write_xml,
)
from lissom.portable import write_whole
from lissom.robot import checks
from lissom.robot.actuators import JointActuator
from lissom.robot.bodies import RigidBody
from lissom.robot.constraints import JointCoupling
from lissom.robot.meshes import Mesh
from lissom.robot.robot import PARTS, Link, Robot
from lissom.robot.sampled_shapes import ShapeHull, ShapeMesh
from lissom.robot.shapes import ShapeKind

_LEFT_OUT = ("loads", "motions", "forces", "springs", "contacts", "states")
_REFUSED = ("loops", "skates", "rolling", "constraints")
_FAR = 1e3  # limits of a slide without stops, which URDF demands [m]
_EFFORT, _SPEED = 1e6, 1e3  # limits of a joint without any, which URDF demands [N·m, N; rad/s, m/s]
_POLE = 1e-9  # cosine of the pitch below which roll and yaw are one angle


def save_urdf(
    robot: Robot,
    path: str | os.PathLike[str],
    *,
    tolerance: float = 0.01,
    joints: int | None = None,
    package: str | None = None,
) -> SavedRobot:
    """Write a robot as a URDF file. `load_urdf` reads it.

    | Robot | URDF |
    |---|---|
    | links | links with inertia, visual and collision elements; meshes are STL files in a folder beside the file |
    | rods | chains of rigid links, see `rigid_chains` |
    | joints | revolute, continuous, prismatic, fixed, floating; links without mass between several coordinates |
    | springs of joints | the extension of Gazebo |
    | frames | links without mass on fixed joints |
    | motors | transmissions |
    | couplings of two joints | mimic |

    URDF has no springs, tendons, gravity, contacts and states. A LeftOutWarning names once what the file does not hold.
    An AccuracyWarning names rods whose basis has too few modes.

    Args:
        robot: the description.
        path: file to write.
        tolerance: largest error of the tips of rods, from which the number of links follows [-]; see ChainError.
        joints: number of elements of each rod; None chooses it by `tolerance`.
        package: name of a ROS package whose folder holds the file. Paths of meshes then begin with package://; None
            writes them relative to the file.
    Returns:
        SavedRobot: the error of each rod, and what is left out.
    Raises:
        ModelError: the description is invalid, or URDF has no such mechanism: a deformable body, a loop, a wheel, a
            spherical joint, a screw, a joint of a user-defined function, or a rigid coupling that is no mimic joint; or
            trimesh is not installed for meshes. OSError: a file cannot be written.
    """
    findings = Findings(os.fspath(path))
    made = rigid(robot, tolerance, joints, findings, "save_urdf: robot")
    if package is not None:
        checks.title(package, "save_urdf: package")
    writer = _Writer(made.robot, Path(path), package, findings)
    text = "; ".join(["Robot written by lissom; SI units", *map(str, made.errors)])
    write_xml(writer.root(), Path(path), text.replace("--", "- -"))
    left = findings.rows()
    findings.warn()
    return SavedRobot(Path(path), made.errors, left)


@final
class _Writer:
    """The elements of a file, and the meshes beside it."""

    def __init__(self, robot: Robot, path: Path, package: str | None, findings: Findings) -> None:
        self.robot, self.path, self.package, self.findings = robot, path, package, findings
        for kind in _REFUSED:
            for name in getattr(robot, kind):
                cure = "save_mjcf has loops" if kind == "loops" else "remove it first"
                raise ModelError(f"{PARTS[kind].word} {name!r}: URDF holds trees of joints only; {cure}")
        self.top = ET.Element("robot", name=robot.name)
        self.joints: dict[str, list[str]] = {}
        self.of_joint: dict[str, ET.Element] = {}
        self.taken = {*robot.links, *robot.frames}

    def note(self, kind: str, name: str) -> None:
        """Note a part as left out."""
        self.findings.left_out(kind, repr(name))

    def root(self) -> ET.Element:
        """The whole file."""
        robot = self.robot
        if not np.array_equal(np.asarray(robot.gravity, dtype=np.float64), (0.0, 0.0, -9.81)):
            self.findings.left_out("gravity", "the robot")
        links = parents_first(robot)
        roots = [link for link in links if link.parent is None]
        alone = len(roots) == 1 and roots[0].joint.nv == 0 and _is_identity(roots[0].placement)
        world = None if alone else self._new("world")
        if world is not None:
            add_element(self.top, "link", name=world)
        for link in links:
            self._link(link, world)
        for name, frame in robot.frames.items():
            add_element(self.top, "link", name=name)
            self._fixed(f"{name}_joint", frame.link, name, frame.placement)
        note_kinds(robot, _LEFT_OUT, self.findings)
        for coupling in robot.joint_couplings.values():
            self._coupling(coupling)
        self._inputs()
        return self.top

    def _new(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    # -- links and joints ---------------------------------------------------------------------------------------------

    def _link(self, link: Link, world: str | None) -> None:
        """Add a link with its joints."""
        if link.joint.start is not None:
            self.note("start of the joint", link.name)
            link = replace(link, joint=replace(link.joint, start=None))  # type: ignore[type-var]
        moves = moves_of(link, lambda part: self.note(f"{part} of the joint", link.name), self.robot.links)
        parent = link.parent or world
        above = np.eye(4)
        for k, move in enumerate(moves):
            last = k == len(moves) - 1
            end = link.name if last else self._new(f"{link.name}_{k + 1}")
            if not last:
                add_element(self.top, "link", name=end)
            self._joint(move, str(parent), end, np.linalg.inv(above) @ move.frame)
            self.joints.setdefault(link.name, []).append(move.name)
            parent, above = end, move.frame
        if not moves and parent is not None:
            self._fixed(f"{link.name}_joint", parent, link.name, link.placement)
        element = add_element(self.top, "link", name=link.name)
        if isinstance(link.body, RigidBody):
            self._body(element, link.name, link.body)

    def _fixed(self, name: str, parent: str, child: str, placement: Any) -> None:
        while name in self.robot.links:
            name += "_"
        joint = add_element(self.top, "joint", name=name, type="fixed")
        self._ends(joint, parent, child, np.eye(4) if placement is None else np.asarray(placement, dtype=np.float64))

    @staticmethod
    def _ends(joint: ET.Element, parent: str, child: str, g: np.ndarray) -> None:
        _origin(joint, g)
        add_element(joint, "parent", link=parent)
        add_element(joint, "child", link=child)

    def _joint(self, move: Move, parent: str, child: str, g: np.ndarray) -> None:
        """Add one joint."""
        rule = "must not be spherical: URDF has no such joint; replace it by three links with JointRevolute"
        if move.kind == "ball":
            raise ModelError(f"link {child!r} > joint: {rule}")
        bounded = bool(np.isfinite(move.limits).any())
        kind = {"free": "floating", "slide": "prismatic", "hinge": "revolute" if bounded else "continuous"}[move.kind]
        joint = self.of_joint[move.name] = add_element(self.top, "joint", name=move.name, type=kind)
        self._ends(joint, parent, child, g)
        if move.kind != "free":
            add_element(joint, "axis", xyz=numbers(move.axis))
        if move.damping or move.friction:
            given = {"damping": move.damping, "friction": move.friction}
            add_element(joint, "dynamics", **{key: numbers(x) for key, x in given.items() if x})
        if kind in ("revolute", "prismatic"):
            low, high = np.clip(move.limits, -_FAR, _FAR).tolist()
            add_element(joint, "limit", lower=numbers(low), upper=numbers(high), effort=numbers(_EFFORT),
                          velocity=numbers(_SPEED))  # fmt: skip
        if move.armature:
            self.note("armature of the joint", move.name)
        if move.stiffness and move.kind == "free":
            self.note("spring of the joint", move.name)
        elif move.stiffness:
            spring = add_element(self.top, "gazebo", reference=move.name)
            add_element(spring, "springStiffness").text = numbers(move.stiffness)
            add_element(spring, "springReference").text = numbers(move.rest)

    # -- bodies -------------------------------------------------------------------------------------------------------

    def _body(self, element: ET.Element, name: str, body: RigidBody) -> None:
        """Add inertia, drawn and collision geometry of a body."""
        given = np.asarray(body.inertia, dtype=np.float64)
        inertia, g = np.diag(given) if given.ndim == 1 else given, np.eye(4)
        g[:3, 3] = body.com
        inertial = add_element(element, "inertial")
        _origin(inertial, g)
        add_element(inertial, "mass", value=numbers(body.mass))
        words = {f"i{'xyz'[a]}{'xyz'[b]}": numbers(inertia[a, b]) for a in range(3) for b in range(a, 3)}
        add_element(inertial, "inertia", **words)
        for k, mesh in enumerate(body.drawn_meshes()):
            visual = add_element(element, "visual")
            self._mesh(visual, mesh, f"{name}_drawn_{k + 1}")
            if mesh.color is not None:
                look = add_element(visual, "material", name=f"{name}_color_{k + 1}")
                add_element(look, "color", rgba=numbers(np.append(mesh.color, 1.0)[:4]))
        shapes = list(body.collision_shapes)
        for tag in ("visual", "collision") if not body.drawn_meshes() else ("collision",):
            for k, placed in enumerate(shapes):
                self._shape(element, tag, placed.shape, placed.placement, f"{name}_shape_{k + 1}", name)
        solid = body.solid()
        if not shapes and not body.drawn_meshes() and body.outline is not None and solid is not None:
            visual, at = add_element(element, "visual"), np.eye(4)
            at[:3, 3] = solid.centre
            _origin(visual, at)
            add_element(add_element(visual, "geometry"), "box", size=numbers(2.0 * solid.half))

    def _shape(self, element: ET.Element, tag: str, shape: Any, placement: Any, file: str, owner: str) -> None:
        """Add the elements of a shape. A capsule is a cylinder with two spheres, which all versions of URDF have."""
        if isinstance(shape, ShapeMesh):
            pose = shape.mesh.placement
            g = [np.eye(4) if x is None else np.asarray(x, dtype=np.float64) for x in (placement, pose)]
            self._mesh(add_element(element, tag), replace(shape.mesh, placement=(g[0] @ g[1]).tolist()), file)
            return
        if isinstance(shape, ShapeHull):
            self._mesh(add_element(element, tag), Mesh.of_shape(shape, placement=placement), file)
            return
        found, g = surface_of(shape, placement, f"shape of {owner!r}")
        kind, size = SIMPLE.get(found.kind, ""), found.size
        if found.kind in (ShapeKind.CONE, ShapeKind.TORUS, ShapeKind.ELLIPSOID):
            self._mesh(add_element(element, tag), Mesh.of_shape(shape, placement=placement), file)
            return
        if not kind or (found.kind is not ShapeKind.SPHERE and min(size[:2]) <= 0.0):
            self.note(f"{found.kind.name.lower()} shape", owner)
            return
        made = add_element(element, tag)
        _origin(made, g)
        geometry = add_element(made, "geometry")
        if kind == "sphere":
            add_element(geometry, "sphere", radius=numbers(size[0]))
        elif kind == "box":
            add_element(geometry, "box", size=numbers(2.0 * np.asarray(size)))
        else:
            add_element(geometry, "cylinder", radius=numbers(size[0]), length=numbers(2.0 * size[1]))
        for end in (-size[1], size[1]) if kind == "capsule" else ():
            ball, at = add_element(element, tag), np.eye(4)
            at[2, 3] = end
            _origin(ball, g @ at)
            add_element(add_element(ball, "geometry"), "sphere", radius=numbers(size[0]))

    def _mesh(self, element: ET.Element, mesh: Mesh, name: str) -> None:
        """Add the geometry of a mesh: of its own file, or of one that is written beside the robot."""
        g = np.eye(4) if mesh.placement is None else np.asarray(mesh.placement, dtype=np.float64)
        _origin(element, g)
        if mesh.file is None:
            file = self.path.parent / f"{self.path.stem}_meshes" / f"{name.replace(' ', '_').replace('/', '_')}.stl"
            file.parent.mkdir(parents=True, exist_ok=True)
            _write_mesh(file, *replace(mesh, placement=None).surface())
            scale = np.ones(3)
        else:
            file, scale = Path(mesh.file), np.broadcast_to(np.asarray(mesh.scale, dtype=np.float64), (3,))
        near = Path(os.path.relpath(file, self.path.parent)).as_posix()
        text = near if self.package is None else f"package://{self.package}/{near}"
        made = add_element(add_element(element, "geometry"), "mesh", filename=text)
        if not np.array_equal(scale, np.ones(3)):
            made.set("scale", numbers(scale))

    # -- couplings and inputs -----------------------------------------------------------------------------------------

    def _coupling(self, coupling: JointCoupling) -> None:
        """Add a coupling of two joints as a mimic joint."""
        if coupling.is_elastic:
            self.note("elastic coupling", coupling.name)
            return
        ratios = coupling.ratios
        plain = coupling.function is None and len(ratios) == 2 and all(isinstance(x, int | float) for x in ratios)
        rule = "must be linear in two joints, which a mimic joint is; remove it first"
        checks.require(plain, f"coupling {coupling.name!r}", rule, coupling.joints)
        (a, b), (first, second) = (self.joints[link][0] for link in coupling.joints), map(float, ratios)
        joint = self.of_joint[a]
        rule = "must be of joints that mimic one other joint at most"
        checks.require(joint.find("mimic") is None, f"coupling {coupling.name!r}", rule, coupling.joints)
        add_element(joint, "mimic", joint=b, multiplier=numbers(-second / first),
                      offset=numbers(coupling.offset / first))  # fmt: skip

    def _inputs(self) -> None:
        """Add the motors of single joints as transmissions, with the gear of an input that drives one of them."""
        coupled = {x for one in self.robot.couplings.values() for x in one.gains}
        driven = {name: (name, 1.0) for name in self.robot.actuators if name not in coupled}
        for name, coupling in self.robot.couplings.items():
            if len(coupling.gains) == 1:
                driven[name] = next(iter(coupling.gains.items()))
            else:
                self.note("input of several actuators", name)
        for name, (key, gear) in driven.items():
            actuator = self.robot.actuators[key]
            moves = self.joints.get(actuator.link, []) if isinstance(actuator, JointActuator) else []
            if not moves or self.of_joint[moves[0]].get("type") == "floating":
                self.note(type(actuator).__name__, name)
                continue
            for k, move in enumerate(moves):
                own = name if len(moves) == 1 else f"{name}[{k}]"
                made = add_element(self.top, "transmission", name=f"{own}_transmission")
                add_element(made, "type").text = "transmission_interface/SimpleTransmission"
                joint = add_element(made, "joint", name=move)
                add_element(joint, "hardwareInterface").text = "hardware_interface/EffortJointInterface"
                motor = add_element(made, "actuator", name=own)
                add_element(motor, "mechanicalReduction").text = numbers(gear)
                self._effort(name, move, k)

    def _effort(self, name: str, joint: str, k: int) -> None:
        """Set the limit of the effort of a joint to that of entry k of an input."""
        limits, limit = self.robot.input_limits.get(name), self.of_joint[joint].find("limit")
        ends = [] if limits is None else [np.ravel(x) for x in (limits.low, limits.high) if x is not None]
        if ends and limit is not None:
            limit.set("effort", numbers(max(abs(float(x[min(k, len(x) - 1)])) for x in ends)))
        elif ends and k == 0:
            self.note("limits of input", name)


def _is_identity(placement: Any) -> bool:
    """Whether a placement is the identity."""
    return placement is None or np.array_equal(np.asarray(placement, dtype=np.float64), np.eye(4))


def _origin(element: ET.Element, g: np.ndarray) -> None:
    """Add the origin of a pose (4, 4) by (1), unless it is the identity."""
    if np.array_equal(g, np.eye(4)):
        return
    R = g[:3, :3]
    flat = hypot(R[0, 0], R[1, 0])
    pitch = atan2(-R[2, 0], flat)
    roll = atan2(R[2, 1], R[2, 2]) if flat > _POLE else 0.0
    yaw = atan2(R[1, 0], R[0, 0]) if flat > _POLE else atan2(-R[0, 1], R[1, 1])
    element.insert(0, ET.Element("origin", xyz=numbers(g[:3, 3]), rpy=numbers((roll, pitch, yaw))))


def _write_mesh(file: Path, vertices: np.ndarray, triangles: np.ndarray) -> None:
    """Write triangles as a binary STL file."""
    try:
        import trimesh
    except ImportError:
        raise ModelError(f"{file}: meshes need trimesh: pip install 'lissom[urdf]'") from None
    made: Any = trimesh.Trimesh(vertices, triangles, process=False)
    write_whole(file, lambda out: out.write(made.export(file_type="stl")))
