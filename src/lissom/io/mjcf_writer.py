"""Export of a robot as an MJCF file, for MuJoCo. Rods become chains of rigid links (io/rigid_chains).

A link without mass cannot move alone in MuJoCo. If it carries one other link only, its joint becomes one more joint of
that body. With the poses at the start of all joints, where F_k is the frame of joint k in the world and F the frame of
the body,

    axis = Rᵀ R_k axis_k,     anchor = F⁻¹ (origin of F_k)                                                  (1)

An actuator with the gear −1 of a spatial tendon pulls with its input. An elastic tendon T = max(0, k (L − L₀ + u)) is
an actuator with the gain −k and the bias (k L₀, −k, 0), whose force is never positive                       (2)
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any, final

import numpy as np
from scipy.spatial.transform import Rotation

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
    start_poses,
    surface_of,
    write_xml,
)
from lissom.robot import checks
from lissom.robot.actuators import JointActuator, PathPoint, PathWrap, Tendon, WrenchInput
from lissom.robot.bodies import RigidBody
from lissom.robot.constraints import JointCoupling, Loop
from lissom.robot.contacts import Contact
from lissom.robot.joints import JointFixed, JointRevolute, JointSpherical
from lissom.robot.meshes import Mesh
from lissom.robot.robot import PARTS, Link, Robot
from lissom.robot.sampled_shapes import ShapeHull, ShapeMesh
from lissom.robot.shapes import ShapeKind
from lissom.robot.springs import Spring

_LEFT_OUT = ("loads", "motions", "forces")
_REFUSED = ("skates", "rolling", "constraints")
_APART = 0.05  # distance of two points on the axis of a loop that turns [m]
_MOST_BITS = 30  # contacts that have a bit of their own
_STEP, _SHARE, _STIFFER = 2e-3, 0.3, 6.0  # largest step [s], step times the fastest frequency, ω² I/k of a chain
_HIDDEN = "4"  # group of sites and geoms that MuJoCo's viewer does not show at first


def save_mjcf(
    robot: Robot, path: str | os.PathLike[str], *, tolerance: float = 0.01, joints: int | None = None
) -> SavedRobot:
    """Write a robot as an MJCF file for MuJoCo. `load_mjcf` reads it.

    | Robot | MJCF |
    |---|---|
    | links | bodies, with inertia, drawn meshes and collision geoms |
    | rods | chains of rigid bodies with springs and dampers, see `rigid_chains` |
    | joints | hinges, slides, balls and free joints; `rest` is springref, `start` is ref |
    | frames | sites |
    | tendons, springs | spatial tendons through sites and round geoms |
    | inputs and their limits | actuators with ctrlrange |
    | loops, couplings of joints | `<equality>`; elastic couplings are fixed tendons |
    | contacts | bits of contype and conaffinity, and `<pair>`; the law is MuJoCo's own |
    | named states | keyframes |

    A LeftOutWarning names once what the file does not hold, such as loads, motions, fluids and nonlinear springs. An
    AccuracyWarning names rods whose basis has too few modes.

    Args:
        robot: the description.
        path: file to write.
        tolerance: largest error of the tips of rods, from which the number of links follows [-]; see ChainError.
        joints: number of elements of each rod; None chooses it by `tolerance`.
    Returns:
        SavedRobot: the error of each rod, and what is left out.
    Raises:
        ModelError: the description is invalid, or MuJoCo has no such mechanism: a deformable body, a screw, a joint of
            a user-defined function, a free joint below another link, a wheel, a loop or a coupling of another kind, or
            a link that moves without mass. OSError: the file cannot be written.
    """
    findings = Findings(os.fspath(path))
    made = rigid(robot, tolerance, joints, findings, "save_mjcf: robot")
    writer = _Writer(made.robot, findings)
    chains = [str(one) for one in made.errors]
    text = "; ".join(["Robot written by lissom; SI units", *chains]).replace("--", "- -")
    write_xml(writer.root(), Path(path), text)
    left = findings.rows()
    findings.warn()
    return SavedRobot(Path(path), made.errors, left)


@final
class _Writer:
    """The elements of a file.

    Fields:
        poses: pose (4, 4) of each link in the world, at the start.
        moves: moves of each body, with frames in the world.
        stands: the body that stands for each link.
        joints: the moves of the joint of each link.
    """

    def __init__(self, robot: Robot, findings: Findings) -> None:
        self.robot, self.findings = robot, findings
        for kind in _REFUSED:
            for name in getattr(robot, kind):
                raise ModelError(f"{PARTS[kind].word} {name!r}: MuJoCo has no such constraint; remove it first")
        self.poses, self.ordered = start_poses(robot), parents_first(robot)
        self.children: dict[str | None, list[str]] = {}
        for link in self.ordered:
            self.children.setdefault(link.parent, []).append(link.name)
        self.joints: dict[str, list[Move]] = {}
        self.elements: dict[str | None, ET.Element] = {}
        self.contact_bits = {name: 1 << (k % _MOST_BITS + 1) for k, name in enumerate(robot.contacts)}
        self.geoms: dict[str, list[str]] = {}
        self.sites: set[str] = set()
        self.named: set[str] = set()  # geoms and meshes
        self.top = ET.Element("mujoco", model=robot.name)

    def note(self, kind: str, name: str) -> None:
        """Note a part as left out."""
        self.findings.left_out(kind, repr(name))

    def root(self) -> ET.Element:
        """The whole file."""
        top, robot = self.top, self.robot
        add_element(top, "compiler", angle="radian", autolimits="true")
        self.option = add_element(top, "option", gravity=numbers(robot.gravity), integrator="implicitfast")
        self.asset = add_element(top, "asset")
        world = self.elements[None] = add_element(top, "worldbody")
        carried = {link.name: self._is_carried(link) for link in self.ordered}
        waiting: list[str] = []
        for link in self.ordered:
            self.joints[link.name] = self._moves(link)
            if carried[link.name]:
                continue
            waiting = self._above(link, carried)
            self._body(link, waiting)
        self._step()
        for name, frame in robot.frames.items():
            self._site(frame.link, self._matrix(frame.placement), name, shown=True)
        note_kinds(robot, _LEFT_OUT, self.findings)
        self.tendons, self.drives = ET.Element("tendon"), ET.Element("actuator")
        self.equal, self.touching = ET.Element("equality"), ET.Element("contact")
        for spring in robot.springs.values():
            self._spring(spring)
        for coupling in robot.joint_couplings.values():
            self._coupling(coupling)
        for loop in robot.loops.values():
            self._loop(loop)
        for contact in robot.contacts.values():
            self._contact(contact)
        for name, apart in robot.contact_exclusions.items():
            for k, pair in enumerate(sorted(map(sorted, apart.pairs()))):
                if len(pair) == 2 and all(x in self.elements for x in pair):
                    add_element(self.touching, "exclude", name=f"{name}_{k}", body1=pair[0], body2=pair[1])
        self._inputs()
        for part in (self.touching, self.equal, self.tendons, self.drives):
            if len(part):
                top.append(part)
        if not len(self.asset):
            top.remove(self.asset)
        self._states(world)
        return top

    # -- bodies -------------------------------------------------------------------------------------------------------

    def _is_carried(self, link: Link) -> bool:
        """Whether a link without a body gives its joint to the only link that it carries."""
        return link.body is None and link.joint.nv > 0 and len(self.children.get(link.name, [])) == 1

    def _above(self, link: Link, carried: dict[str, bool]) -> list[str]:
        """The link, and before it the links right above that give their joints to it."""
        out, parent = [link.name], link.parent
        while parent is not None and carried[parent]:
            out.insert(0, parent)
            parent = self.robot.links[parent].parent
        return out

    def _moves(self, link: Link) -> list[Move]:
        """The moves of the joint of a link, with frames in the world."""
        above = np.eye(4) if link.parent is None else self.poses[link.parent]
        moves = moves_of(link, lambda part: self.note(f"{part} of the joint", link.name), self.robot.links)
        return [move._replace(frame=above @ move.frame) for move in moves]

    def _body(self, link: Link, chain: list[str]) -> None:
        """Add a body with the joints of a chain of links, of which it is the last."""
        parent, g = self.robot.links[chain[0]].parent, self.poses[link.name]
        above = np.eye(4) if parent is None else self.poses[parent]
        element = add_element(self.elements[parent], "body", name=link.name, **_place(np.linalg.inv(above) @ g))
        self.elements[link.name] = element
        moves = [move for name in chain for move in self.joints[name]]
        for move in moves:
            self._joint(element, link, move, np.linalg.inv(g) @ move.frame, len(moves), parent)
        if moves and self._mass(link.name) <= 0.0:
            rule = "moves without mass, which MuJoCo refuses; give it a RigidBody"
            raise ModelError(f"link {link.name!r}: {rule}")
        if isinstance(link.body, RigidBody):
            self._solid(element, link.name, link.body)

    def _mass(self, name: str) -> float:
        """Mass of a link and of all links that are fixed to it [kg]."""
        body = self.robot.links[name].body
        own = float(body.mass) if isinstance(body, RigidBody) else 0.0
        fixed = [x for x in self.children.get(name, []) if self.robot.links[x].joint.nv == 0]
        return own + sum(map(self._mass, fixed))

    def _joint(
        self, element: ET.Element, link: Link, move: Move, frame: np.ndarray, count: int, parent: str | None
    ) -> None:
        if move.kind == "free":
            if parent is not None or count > 1:
                rule = "must hang on the world: MuJoCo has no free joint below another body"
                raise ModelError(f"link {link.name!r} > joint: {rule}; leave out its parent")
            add_element(element, "freejoint", name=move.name)
            for word in ("stiffness", "damping"):
                if getattr(move, word):
                    self.note(f"{word} of the free joint", move.name)
            return
        made = add_element(element, "joint", name=move.name, type=move.kind)
        anchor = frame[:3, 3]
        if np.abs(anchor).max() > 1e-14:
            made.set("pos", numbers(anchor))
        if move.kind != "ball":
            made.set("axis", numbers(frame[:3, :3] @ move.axis))
        if move.start:
            made.set("ref", numbers(move.start))
        for word, value in (
            ("stiffness", move.stiffness),
            ("springref", move.rest if move.stiffness else move.start),
            ("damping", move.damping),
            ("armature", move.armature),
            ("frictionloss", move.friction),
        ):
            if value:
                made.set(word, numbers(value))
        if move.start and move.stiffness and not move.rest:
            made.set("springref", "0")
        if np.isfinite(move.limits).any():
            low, high = np.clip(move.limits, -1e6, 1e6)
            made.set("range", numbers((low, high)))

    def _solid(self, element: ET.Element, name: str, body: RigidBody) -> None:
        """Add inertia, collision geoms and drawn geoms of a body."""
        given = np.asarray(body.inertia, dtype=np.float64)
        moments, axes = np.linalg.eigh(np.diag(given) if given.ndim == 1 else given)
        if np.linalg.det(axes) < 0.0:
            axes[:, 0] *= -1.0
        if body.mass > 0.0:
            g = np.eye(4)
            g[:3, :3], g[:3, 3] = axes, body.com
            moments = np.maximum(moments, 0.0)
            add_element(element, "inertial", mass=numbers(body.mass), diaginertia=numbers(moments), **_place(g, True))
        shapes = body.collision_shapes
        for k, placed in enumerate(shapes):
            hidden = {"group": "3"} if body.meshes else {}
            geom = self._shape(element, f"{name}_{k + 1}" if k else name, placed.shape, placed.placement, name)
            if geom is None:
                continue
            mask = sum(
                bit
                for key, bit in self.contact_bits.items()
                if name in self.robot.contacts[key].carriers(self.robot) and self.robot.contacts[key].shape
            )
            for key, value in {"contype": str(1 | mask), "conaffinity": "0", **hidden}.items():
                geom.set(key, value)
            self.geoms.setdefault(name, []).append(geom.get("name", ""))
        if body.ball_rows is not None:
            for k, (x, y, z, radius) in enumerate(body.ball_rows.tolist()):
                ball = self._geom_name(f"{name}_ball_{k + 1}")
                add_element(element, "geom", name=ball, type="sphere", size=numbers(radius),
                              pos=numbers((x, y, z)), contype="1", conaffinity="0", group="3")  # fmt: skip
        drawn = {"contype": "0", "conaffinity": "0", "group": "1"}
        for k, mesh in enumerate(body.drawn_meshes()):
            geom = self._mesh(element, f"{name}_drawn_{k + 1}", *mesh.surface())
            color = np.ones(4) if mesh.color is None else np.append(mesh.color, 1.0)[:4]
            geom.attrib |= {**drawn, "rgba": numbers(color if mesh.color is not None else (0.6, 0.65, 0.7, 1.0))}
        solid = body.solid()
        if not shapes and not body.drawn_meshes() and body.outline is not None and solid is not None:
            add_element(element, "geom", type="box", size=numbers(solid.half), pos=numbers(solid.centre), **drawn)

    def _geom_name(self, name: str) -> str:
        """A name of a geom that no other geom has."""
        while name in self.named:
            name += "_"
        self.named.add(name)
        return name

    def _shape(self, element: ET.Element, name: str, shape: Any, placement: Any, owner: str) -> ET.Element | None:
        """Add a geom for a shape; None if MuJoCo has none."""
        if isinstance(shape, ShapeHull | ShapeMesh):
            surface = (np.asarray(shape.points), None) if isinstance(shape, ShapeHull) else shape.mesh.surface()
            if isinstance(shape, ShapeMesh):
                self.note("hollows of the collision mesh (MuJoCo takes its convex hull)", owner)
            g = self._matrix(placement)
            return self._mesh(element, name, surface[0] @ g[:3, :3].T + g[:3, 3], surface[1])
        found, g = surface_of(shape, placement, f"shape of {owner!r}")
        sizes = {ShapeKind.SPHERE: found.size[:1], ShapeKind.ELLIPSOID: found.size, ShapeKind.BOX: found.size,
                 ShapeKind.CYLINDER: found.size[:2], ShapeKind.CAPSULE: found.size[:2]}.get(found.kind)  # fmt: skip
        if found.kind is ShapeKind.PLANE and element is not self.elements[None]:
            self.note("plane of a link (MuJoCo has planes in the world only)", owner)
            return None
        if found.kind is ShapeKind.PLANE:
            return add_element(element, "geom", name=self._geom_name(name), type="plane", size="0 0 1", **_place(g))
        if found.kind in (ShapeKind.CONE, ShapeKind.TORUS):
            if found.kind is ShapeKind.TORUS:
                self.note("hole of the torus (MuJoCo takes its convex hull)", owner)
            return self._mesh(element, name, *Mesh.of_shape(shape, placement=placement).surface())
        if sizes is None or min(sizes) <= 0.0:
            self.note(f"{found.kind.name.lower()} shape", owner)
            return None
        name, kind = self._geom_name(name), SIMPLE[found.kind]
        return add_element(element, "geom", name=name, type=kind, size=numbers(sizes), **_place(g))

    def _mesh(self, element: ET.Element, name: str, vertices: np.ndarray, triangles: np.ndarray | None) -> ET.Element:
        """Add a geom of a mesh, whose vertices are in the file."""
        name = self._geom_name(name)
        asset = add_element(self.asset, "mesh", name=name, vertex=numbers(vertices), inertia="shell")
        if triangles is not None:
            asset.set("face", numbers(triangles))
        else:
            asset.attrib.pop("inertia")
        return add_element(element, "geom", name=name, type="mesh", mesh=name)

    def _step(self) -> None:
        """Set a step that is stable for the stiffest spring, whose links swing against their neighbours."""
        fastest = 0.0
        for name, moves in self.joints.items():
            end = name
            while self._is_carried(self.robot.links[end]):
                end = self.children[end][0]
            body = self.robot.links[end].body
            if not isinstance(body, RigidBody) or body.mass <= 0.0:
                continue
            given, com = np.asarray(body.inertia, dtype=np.float64), np.asarray(body.com, dtype=np.float64)
            inertia = np.diag(given) if given.ndim == 1 else given
            own = inertia + body.mass * (com @ com * np.eye(3) - np.outer(com, com))
            for move in moves:
                axis = self.poses[end][:3, :3].T @ move.frame[:3, :3] @ move.axis
                size = float(axis @ own @ axis) if move.kind == "hinge" else float(body.mass)
                if move.stiffness and size > 0.0 and move.kind in ("hinge", "slide"):
                    fastest = max(fastest, float(np.sqrt(_STIFFER * move.stiffness / (size + move.armature))))
        if fastest * _STEP > _SHARE:
            self.option.set("timestep", f"{_SHARE / fastest:.2g}")

    # -- places -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _matrix(placement: Any) -> np.ndarray:
        return np.eye(4) if placement is None else np.asarray(placement, dtype=np.float64)

    def _element(self, link: str | None, what: str) -> ET.Element:
        """The body of a link that carries something."""
        if link not in self.elements:
            rule = f"has no mass and gives its joint to the link on it, so that it cannot carry {what}"
            raise ModelError(f"link {link!r}: {rule}; give it a RigidBody")
        return self.elements[link]

    def _site(self, link: str | None, g: np.ndarray, name: str, shown: bool = False) -> str:
        """Add a site on a link, and return its name. A link that gives its joint to a link that is fixed to it passes
        the site on."""
        while link is not None and link not in self.elements:
            below = self.robot.links[self.children[link][0]]
            if below.joint.nv:
                break
            link, g = below.name, np.linalg.inv(self._matrix(below.placement)) @ g
        while name in self.sites:
            name += "_"
        self.sites.add(name)
        hidden = {} if shown else {"group": _HIDDEN}
        add_element(self._element(link, f"site {name!r}"), "site", name=name, size="0.003", **hidden, **_place(g))
        return name

    def _path(self, tendon: ET.Element, items: Iterable[Any], name: str) -> None:
        """Add the points and shapes of a path to a spatial tendon."""
        for k, item in enumerate(items):
            if isinstance(item, PathPoint):
                g = np.eye(4)
                g[:3, 3] = item.position
                add_element(tendon, "site", site=self._site(item.link, g, f"{name}_{k + 1}"))
                continue
            wrap: PathWrap = item
            surface, g = surface_of(wrap.shape, wrap.placement, name)
            own = self._geom_name(f"{name}_wrap_{k + 1}")
            kind = SIMPLE[surface.kind]
            size = [surface.size[0], *([10.0 * surface.size[0]] if kind == "cylinder" else [])]
            hidden = {"contype": "0", "conaffinity": "0", "group": _HIDDEN}
            add_element(self._element(wrap.link, f"shape {own!r}"), "geom", name=own, type=kind, size=numbers(size),
                          **hidden, **_place(g))  # fmt: skip
            made = add_element(tendon, "geom", geom=own)
            if wrap.side is not None:
                at = np.eye(4)
                at[:3, 3] = (self._matrix(wrap.placement) @ np.append(np.asarray(wrap.side, dtype=np.float64), 1.0))[:3]
                made.set("sidesite", self._site(wrap.link, at, f"{own}_side"))

    # -- forces -------------------------------------------------------------------------------------------------------

    def _spring(self, spring: Spring) -> None:
        """Add a spring as a spatial tendon."""
        if spring.law is not None or (spring.slack and spring.damping):
            self.note("law of spring" if spring.law is not None else "slack of the damper of spring", spring.name)
        if spring.law is not None:
            return
        if any(factor <= 0.0 for factor, _ in spring.paths()):
            self.note("spring with a path of negative factor", spring.name)
            return
        tendon = add_element(self.tendons, "spatial", name=spring.name, stiffness=numbers(spring.stiffness),
                               damping=numbers(spring.damping))  # fmt: skip
        for k, (factor, path) in enumerate(spring.paths()):
            if k or factor != 1.0:
                add_element(tendon, "pulley", divisor=numbers(1.0 / factor))
            self._path(tendon, path, spring.name if not k else f"{spring.name}_{k + 1}")
        if spring.preload and not spring.stiffness:
            self.note("constant tension of spring", spring.name)
        if spring.stiffness:
            rest = spring.rest
            if rest is None:
                if any(isinstance(item, PathWrap) for _, path in spring.paths() for item in path):
                    self.note("neutral length round a shape of spring", spring.name)
                rest = sum(factor * self._length(path) for factor, path in spring.paths())
            rest -= spring.preload / spring.stiffness
            tendon.set("springlength", numbers((0.0, rest) if spring.slack else (rest,)))

    def _length(self, items: Iterable[Any]) -> float:
        """The length of straight lines through the points of a path in the neutral configuration [m]."""
        neutral = {link.name: link for link in self.ordered}
        poses: dict[str | None, np.ndarray] = {None: np.eye(4)}
        for link in self.ordered:
            poses[link.name] = poses[link.parent] @ self._matrix(neutral[link.name].placement)
        points = [(poses[item.link] @ np.append(np.asarray(item.position, dtype=np.float64), 1.0))[:3]
                  for item in items if isinstance(item, PathPoint)]  # fmt: skip
        return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())

    def _coupling(self, coupling: JointCoupling) -> None:
        """Add a coupling: an equality of two joints, of a fixed tendon, or the springs of a fixed tendon."""
        where = f"coupling {coupling.name!r}"
        if coupling.function is not None or not all(isinstance(x, int | float) for x in coupling.ratios):
            raise ModelError(f"{where}: must be linear: this writer has no functions of joints; remove it first")
        moves = [self.joints[link][0] for link in coupling.joints]
        ratios, start = [float(x) for x in coupling.ratios], [move.start for move in moves]
        if not coupling.is_elastic and len(moves) <= 2:
            c1 = -ratios[1] / ratios[0] if len(moves) == 2 else 0.0
            c0 = coupling.offset / ratios[0] - start[0] + (c1 * start[1] if len(moves) == 2 else 0.0)
            made = add_element(self.equal, "joint", name=coupling.name, joint1=moves[0].name,
                                 polycoef=numbers((c0, c1, 0.0, 0.0, 0.0)))  # fmt: skip
            if len(moves) == 2:
                made.set("joint2", moves[1].name)
            return
        tendon = self._fixed(coupling.name, dict(zip((move.name for move in moves), ratios)))
        if not coupling.is_elastic:
            at_start = sum(ratio * q for ratio, q in zip(ratios, start))
            add_element(self.equal, "tendon", name=coupling.name, tendon1=coupling.name,
                          polycoef=numbers((coupling.offset - at_start, 0.0, 0.0, 0.0, 0.0)))  # fmt: skip
            return
        if coupling.spring is not None:
            self.note("nonlinear spring of coupling", coupling.name)
        for word, value in (("stiffness", coupling.stiffness), ("damping", coupling.damping)):
            if value:
                tendon.set(word, numbers(value))
        tendon.set("springlength", numbers(coupling.offset))
        if coupling.limits is not None:
            tendon.set("range", numbers(np.clip(np.asarray(coupling.limits, dtype=np.float64), -1e6, 1e6)))

    def _fixed(self, name: str, ratios: dict[str, float]) -> ET.Element:
        """Add a fixed tendon of joints."""
        tendon = add_element(self.tendons, "fixed", name=name)
        for joint, ratio in ratios.items():
            add_element(tendon, "joint", joint=joint, coef=numbers(ratio))
        return tendon

    def _loop(self, loop: Loop) -> None:
        """Add the equality of a loop, between two sites."""
        kinds = (JointFixed, JointSpherical, JointRevolute)
        rule = "must be fixed, spherical or revolute: MuJoCo closes no other loop; close the chain elsewhere"
        checks.require(isinstance(loop.joint, kinds), f"loop {loop.name!r} > joint", rule, type(loop.joint).__name__)
        a, b = self._matrix(loop.placement_a), self._matrix(loop.placement_b)
        if not isinstance(loop.joint, JointRevolute):
            tag = "weld" if isinstance(loop.joint, JointFixed) else "connect"
            self._closed(tag, loop, a, b, loop.name)
            return
        axis = checks.direction(loop.joint.axis, f"loop {loop.name!r} > joint: axis")
        for k, side in enumerate((-_APART, _APART)):
            shift = np.eye(4)
            shift[:3, 3] = side * axis
            self._closed("connect", loop, a @ shift, b @ shift, f"{loop.name}_{k + 1}")

    def _closed(self, tag: str, loop: Loop, a: np.ndarray, b: np.ndarray, name: str) -> None:
        ends = {f"site{k}": self._site(link, g, f"{name}_{side}")
                for k, link, g, side in ((1, loop.link_a, a, "a"), (2, loop.link_b, b, "b"))}  # fmt: skip
        add_element(self.equal, tag, name=name, **ends)

    def _contact(self, contact: Contact) -> None:
        """Add the obstacle of a contact, or the pairs of geoms that touch."""
        self.note("law (MuJoCo has its own) of contact", contact.name)
        given = contact.friction
        if given is None and contact.material is not None:
            given = contact.material.friction
        friction = 0.5 if given is None else float(given)
        if contact.shape is not None:
            self._element(contact.on, f"contact {contact.name!r}")
            made = self._shape(self.elements[contact.on], contact.name, contact.shape, contact.placement, contact.name)
            if made is not None:
                bit = str(self.contact_bits[contact.name])
                made.attrib |= {"contype": "0", "conaffinity": bit, "priority": "1", "rgba": "0.8 0.82 0.85 1"}
                made.attrib |= {"friction": numbers((friction, 0.005, 1e-4))} if friction else {"condim": "1"}
            return
        near = {frozenset((link.name, link.parent)) for link in self.ordered}
        done: set[frozenset[str]] = set()
        for a in contact.carriers(self.robot):
            for b in contact.touched(self.robot):
                pair = frozenset((a, b))
                if a == b or pair in near or pair in done:
                    continue
                done.add(pair)
                for one in self.geoms.get(a, []):
                    for other in self.geoms.get(b, []):
                        rubs = {"friction": numbers((friction, friction, 0.005, 1e-4, 1e-4))} if friction else {}
                        add_element(self.touching, "pair", geom1=one, geom2=other, condim="3" if friction else "1",
                                      **rubs)  # fmt: skip

    # -- inputs -------------------------------------------------------------------------------------------------------

    def _inputs(self) -> None:
        """Add an actuator for each input of the robot."""
        robot, coupled = self.robot, {x for one in self.robot.couplings.values() for x in one.gains}
        self.controls: list[str] = []
        for name, actuator in robot.actuators.items():
            if name in coupled:
                continue
            if isinstance(actuator, JointActuator):
                self._motors(name, actuator)
            elif isinstance(actuator, Tendon):
                self._pull(name, {name: 1.0})
            elif isinstance(actuator, WrenchInput) and actuator.frame == "body":
                self._wrench(name, actuator)
            else:
                self.note("actuator", name)
        for name, coupling in robot.couplings.items():
            members = {x: robot.actuators.get(x) for x in coupling.gains}
            if all(isinstance(x, JointActuator) for x in members.values()):
                gains = {self.joints[x.link][0].name: coupling.gains[key] for key, x in members.items()
                         if isinstance(x, JointActuator)}  # fmt: skip
                self._drive("motor", name, {"tendon": self._fixed(f"{name}_tendon", gains).get("name", "")})
            elif all(isinstance(x, Tendon) and not x.is_elastic for x in members.values()):
                self._pull(name, dict(coupling.gains))
            else:
                self.note("input of several kinds of actuators", name)

    def _drive(self, tag: str, name: str, more: dict[str, str], size: int = 1, index: int = 0) -> None:
        """Add one actuator with the limits of an input."""
        own = name if size == 1 else f"{name}[{index}]"
        made = add_element(self.drives, tag, name=own, **more)
        self.controls.append(own)
        limits = self.robot.input_limits.get(name)
        if limits is None:
            return
        ends = [np.broadcast_to(np.asarray(x if x is not None else far, dtype=np.float64), (size,))[index]
                for x, far in ((limits.low, -1e9), (limits.high, 1e9))]  # fmt: skip
        made.set("ctrlrange", numbers(ends))

    def _motors(self, name: str, actuator: JointActuator) -> None:
        """Add the motors on the coordinates of a joint."""
        moves = self.joints[actuator.link]
        if moves and moves[0].kind == "free":
            self.note("motors of a free joint", name)
        elif moves and moves[0].kind == "ball":
            for k, gear in enumerate(np.eye(3)):
                self._drive("motor", name, {"joint": moves[0].name, "gear": numbers(gear)}, 3, k)
        else:
            for k, move in enumerate(moves):
                self._drive("motor", name, {"joint": move.name}, len(moves), k)

    def _pull(self, name: str, gains: dict[str, float]) -> None:
        """Add the actuator of a tendon, or of tendons that one input pulls with gains of one sign."""
        signs = {np.sign(gain) for gain in gains.values()}
        tendons: list[Tendon] = [self.robot.actuators[x] for x in gains]  # type: ignore[misc]
        if len(signs) != 1 or 0.0 in signs:
            self.note("gains of both signs of input", name)
            return
        sign = signs.pop()
        single = len(tendons) == 1
        made = add_element(self.tendons, "spatial", name=tendons[0].name if single else f"{name}_tendon")
        for tendon in tendons:
            if not single:
                add_element(made, "pulley", divisor=numbers(1.0 / abs(gains[tendon.name])))
            self._path(made, tendon.path, tendon.name)
        if not tendons[0].is_elastic:
            gear = sign * (abs(gains[tendons[0].name]) if single else 1.0)
            self._drive("motor", name, {"tendon": made.get("name", ""), "gear": numbers(-gear)})
            return
        k, rest = float(tendons[0].stiffness or 0.0), tendons[0].slack_length
        if rest is None:
            rest = self._length(tendons[0].path)
        law = {"gainprm": numbers(-k), "biastype": "affine", "biasprm": numbers((k * rest, -k, 0.0))}  # (2)
        self._drive("general", name, {"tendon": made.get("name", ""), "forcerange": "-1e9 0", **law})

    def _wrench(self, name: str, actuator: WrenchInput) -> None:
        """Add the actuators of a controlled wrench, at a site."""
        g = np.eye(4)
        g[:3, 3] = actuator.position
        site, columns = self._site(actuator.link, g, f"{name}_site"), actuator.columns(name)
        for k, column in enumerate(columns.T):
            gear = numbers(np.concatenate([column[3:], column[:3]]))
            self._drive("motor", name, {"site": site, "gear": gear}, columns.shape[1], k)

    # -- states -------------------------------------------------------------------------------------------------------

    def _states(self, world: ET.Element) -> None:
        """Add the named states as keyframes, in the order of the bodies of the file."""
        if not self.robot.states:
            return
        by_name = {move.name: (link, k, move) for link, moves in self.joints.items() for k, move in enumerate(moves)}
        order = [by_name[joint.get("name", "")] for body in world.iter("body")
                 for joint in body if joint.tag in ("joint", "freejoint")]  # fmt: skip
        frames = add_element(self.top, "keyframe")
        for name, state in self.robot.states.items():
            q: list[float] = []
            v: list[float] = []
            for link, k, move in order:
                joint = self.robot.links[link].joint
                at = joint.configuration(state.positions.get(link), f"state {name!r}")
                rate = np.broadcast_to(np.asarray(state.velocities.get(link, 0.0), dtype=np.float64), (joint.nv,))
                if move.kind == "ball":
                    q, v = [*q, *at.tolist()], [*v, *rate.tolist()]
                elif move.kind == "free":
                    where, turn = _free(move.frame, at)
                    q = [*q, *where[:3, 3].tolist(), *turn]
                    v = [*v, *(where[:3, :3] @ rate[3:]).tolist(), *rate[:3].tolist()]
                else:
                    q, v = [*q, float(at[k])], [*v, float(rate[k])]
            u = []
            for control in self.controls:
                own, _, rest = control.partition("[")
                given = np.atleast_1d(np.asarray(state.inputs.get(own, 0.0), dtype=np.float64))
                u.append(float(given[int(rest[:-1])]) if rest and len(given) > 1 else float(given[0]))
            more = {"qvel": numbers(v)} if np.any(v) else {}
            more |= {"ctrl": numbers(u)} if np.any(u) else {}
            add_element(frames, "key", name=name, qpos=numbers(q), **more)


def _free(start: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """The pose (4, 4) in the world of coordinates of a free joint, and its quaternion (w, x, y, z)."""
    g = np.eye(4)
    turned = Rotation.from_matrix(start[:3, :3]) * Rotation.from_quat(q[[1, 2, 3, 0]])
    g[:3, :3], g[:3, 3] = turned.as_matrix(), start[:3, 3] + start[:3, :3] @ q[4:]
    x, y, z, w = turned.as_quat().tolist()
    return g, [w, x, y, z]


def _place(g: np.ndarray, always: bool = False) -> dict[str, str]:
    """The attributes pos and quat of a pose, without those of the identity."""
    out = {} if not always and not g[:3, 3].any() else {"pos": numbers(g[:3, 3])}
    if not np.array_equal(g[:3, :3], np.eye(3)):
        x, y, z, w = Rotation.from_matrix(g[:3, :3]).as_quat().tolist()
        out["quat"] = numbers((w, x, y, z))
    return out
