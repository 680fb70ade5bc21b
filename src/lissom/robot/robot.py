"""The description of a robot: plain data, and checks that its parts fit together.

`Robot.check` and `Robot.build` first check each part alone. Then they check that all names exist and that no chain of
parents is a cycle.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, final

import numpy as np

from lissom.errors import ModelError
from lissom.portable import reduced
from lissom.robot import checks
from lissom.robot.actuators import (
    Actuator,
    BodyChamber,
    Chamber,
    CustomActuator,
    InputCoupling,
    JointActuator,
    PathItem,
    PathPoint,
    PathRod,
    PathWrap,
    SurfacePressure,
    Tendon,
    WrenchInput,
)
from lissom.robot.bodies import Body, RigidBody
from lissom.robot.constraint_functions import Constraint
from lissom.robot.constraints import JointCoupling, Loop
from lissom.robot.contacts import (
    EVERYTHING,
    Contact,
    ContactExclusion,
    ContactPair,
    MutualContacts,
    mutual_contacts,
    named_links,
    not_parted,
    without_pairs,
)
from lissom.robot.fields import LINK_OR_WORLD, ForcePlace, FunctionOfS, Place, Placement
from lissom.robot.fluid import Fluid, Hydrodynamics
from lissom.robot.joints import Joint, JointFixed, JointMotion
from lissom.robot.loads import Force, Frame, PointLoad
from lissom.robot.materials import Material
from lissom.robot.rolling import Rolling, Skate
from lissom.robot.shapes import Shape
from lissom.robot.springs import Spring, SpringBranch
from lissom.robot.states import InputLimits, NamedState

if TYPE_CHECKING:
    from lissom.model.model import Model

_MARSHAL = 2  # the last version of marshal whose output depends on the contents only
# parts that are not counted in the repr of a robot
_WITHOUT_EFFECT = ("frames", "couplings", "contact_exclusions", "contact_pairs", "states", "input_limits")
_WORLD = ("world", "World", "ground", "base", "fixed", "none", "None", "null", "")  # wrong names for the world


@final
@dataclass(frozen=True)
class Link:
    """A joint and the body that it carries.

    Args:
        name: unique among links and frames.
        body: Rod, RigidBody or DeformableBody; None is a frame without mass.
        joint: joint between the parent (after `placement`) and the body.
        parent: name of the parent link; None is the world.
        at: abscissa on a parent rod, or a place on a deformable parent (see DeformableBody).
        placement: pose (4, 4) of the joint frame in the parent's cross-section at s=at, in the parent's body frame, or
            in the world; None is the identity.
    """

    name: str
    body: Body | None = None
    joint: Joint = field(default_factory=JointFixed)
    parent: Annotated[str | None, LINK_OR_WORLD, "at", "placement"] = None
    at: Place = 1.0
    placement: Placement = None

    def check(self, where: str) -> None:
        """Raise ModelError if the joint, the body or another field of the link is invalid.

        A link of plain numbers and texts that passes keeps a copy of them; its next check only compares them.
        """
        contents = self._contents()
        if contents is not None and contents == self.__dict__.get("_passed"):
            return
        faults = checks.faults()
        self._check(where)
        if contents is not None and checks.faults() == faults:
            object.__setattr__(self, "_passed", contents)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_passed"}

    def _contents(self) -> bytes | None:
        """All numbers and texts of the link; None if it has other contents, such as functions and meshes."""
        if not (isinstance(self.joint, Joint) and (self.body is None or isinstance(self.body, Body))):
            return None
        contents: Any = [self.at, self.placement, vars(self.joint), None if self.body is None else vars(self.body)]
        try:
            return marshal.dumps(contents, _MARSHAL)
        except ValueError:
            return None

    def _check(self, where: str) -> None:
        is_body = self.body is None or isinstance(self.body, Body)
        checks.require(is_body, f"{where} > body", "must be a Rod, a RigidBody or a DeformableBody", self.body)
        checks.require(isinstance(self.joint, Joint), f"{where} > joint", "must be a Joint", self.joint)
        if self.body is not None:
            with checks.part(f"{where} > body"):
                self.body.check(f"{where} > body")
        with checks.part(f"{where} > joint"):
            self.joint.check(f"{where} > joint")
        with checks.part(where):
            checks.place(self.at, f"{where}: at")
        with checks.part(where):
            checks.pose(self.placement, f"{where}: placement")


class Part(NamedTuple):
    """A kind of part of a robot.

    Fields:
        cls: its class, or a base class.
        word: its name in messages.
        add: the method of Robot that adds one. It takes the fields of the class by name, except for actuators.
        variable: argument of functions in its fields.
        is_saved: whether robot files have a list of it.
        places: the places on which a part exerts forces, which get nodes (`PlacedParts` of model.groups). None for
            parts without forces, and those that the build places in another way.
        has_tables: whether a group of the model has their numbers. If not, a term of forces makes its tables from the
            parts in `PlacedParts`, and `check_parts` needs no lines for the kind.
    """

    cls: type
    word: str
    add: str
    variable: str = "s"
    is_saved: bool = True
    places: Callable[[Any], Sequence[ForcePlace]] | None = None
    has_tables: bool = False


# The parts of a robot by the attribute that holds them, which is also their list in robot files.
PARTS = {
    "links": Part(Link, "link", "add_link"),
    "frames": Part(Frame, "frame", "add_frame"),
    "actuators": Part(Actuator, "actuator", ""),
    "couplings": Part(InputCoupling, "input", "couple_inputs"),
    "loads": Part(PointLoad, "load", "add_point_load", "t"),
    "loops": Part(Loop, "loop", "add_loop"),
    "skates": Part(Skate, "skate", "add_skate"),
    "rolling": Part(Rolling, "rolling contact", "add_rolling"),
    "constraints": Part(Constraint, "constraint", "add_constraint", "q"),
    "joint_couplings": Part(JointCoupling, "coupling", "add_coupling", "q"),
    "motions": Part(JointMotion, "motion", "add_joint_motion", "t"),
    "springs": Part(Spring, "spring", "add_spring", places=Spring.places, has_tables=True),
    "contacts": Part(Contact, "contact", "add_contact"),
    "contact_exclusions": Part(ContactExclusion, "contact exclusion", "exclude_contacts"),
    "contact_pairs": Part(ContactPair, "contact pair", "pair_contacts"),
    "states": Part(NamedState, "state", "add_state"),
    "input_limits": Part(InputLimits, "limits of input", "limit_input"),
    "forces": Part(Force, "force", "add_force", is_saved=False),
}
# The kinds of parts whose constraints are rows between two frames, in the order of these rows.
CLOSING = ("loops", "skates", "rolling", "constraints")
# Kinds of parts whose names must differ from each other.
SHARED_NAMES = {"links": "frames", "frames": "links", "actuators": "couplings", "couplings": "actuators"}


@final
class Robot:
    """A robot: links, loops, actuators, loads, contacts, springs, forces and a fluid.

    A Robot may be edited before and after `build`. `build` makes a Model from a copy.

    Args:
        name: name of the robot.
        gravity: gravity in the world frame, shape (3,) [m/s²].
        near_pairs: largest number of pairs of a ball and an obstacle that may be near each other at the same time.
    Fields:
        source: name of the URDF or MJCF file that the robot, or a robot attached to it, was read from; None: no such
            file.
    """

    def __init__(
        self, name: str = "robot", *, gravity: Sequence[float] = (0.0, 0.0, -9.81), near_pairs: int = 4096
    ) -> None:
        self.name, self.near_pairs = name, near_pairs
        self.gravity: Any = gravity
        self.source: str | None = None
        self.links: dict[str, Link] = {}
        self.frames: dict[str, Frame] = {}
        self.actuators: dict[str, Actuator] = {}
        self.couplings: dict[str, InputCoupling] = {}
        self.loads: dict[str, PointLoad] = {}
        self.motions: dict[str, JointMotion] = {}
        self.loops: dict[str, Loop] = {}
        self.skates: dict[str, Skate] = {}
        self.rolling: dict[str, Rolling] = {}
        self.constraints: dict[str, Constraint] = {}
        self.joint_couplings: dict[str, JointCoupling] = {}
        self.springs: dict[str, Spring] = {}
        self.contacts: dict[str, Contact] = {}
        self.contact_exclusions: dict[str, ContactExclusion] = {}
        self.contact_pairs: dict[str, ContactPair] = {}
        self.states: dict[str, NamedState] = {}
        self.input_limits: dict[str, InputLimits] = {}
        self.forces: dict[str, Force] = {}
        self.fluid: Fluid | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(_from_parts, self.__dict__, f"robot {self.name!r}")

    def __copy__(self) -> Robot:
        """A copy with its own dictionaries, which hold the same parts."""
        return _from_parts({name: copy(part) for name, part in self.__dict__.items()})

    def __deepcopy__(self, memo: dict[int, Any]) -> Robot:
        compiled = [force.function for force in self.forces.values()] + [x.law for x in self.springs.values()]
        compiled += [] if self.fluid is None else [self.fluid.current]
        memo.update((id(function), function) for function in compiled)  # Warp's functions cannot be copied
        return _from_parts(deepcopy(self.__dict__, memo))

    def __repr__(self) -> str:
        from lissom.robot.formatting import counted

        kinds = [kind for kind in PARTS if kind == "links" or (getattr(self, kind) and kind not in _WITHOUT_EFFECT)]
        parts = [counted(kind, getattr(self, kind)) for kind in kinds]
        return f"Robot({self.name!r}: {'; '.join(parts)}{'; in a fluid' if self.fluid is not None else ''})"

    def _repr_html_(self) -> str:
        from lissom.robot.formatting import html_table

        rows = [(x.name, x.parent or "the world", type(x.joint).__name__, type(x.body).__name__ if x.body else "none")
                for x in self.links.values()]  # fmt: skip
        return html_table(repr(self), ("link", "parent", "joint", "body"), rows)

    def add_link(
        self,
        name: str,
        body: Body | None = None,
        joint: Joint | None = None,
        parent: str | None = None,
        at: Any = 1.0,
        placement: Any = None,
    ) -> Link:
        """Add a link; see Link for the arguments. The parent may be added later."""
        self._new_name(name, "link", self.links, self.frames)
        self.links[name] = Link(name, body, JointFixed() if joint is None else joint, parent, at, placement)
        return self.links[name]

    def add_frame(self, name: str, link: str, *, s: Any = 1.0, placement: Any = None) -> Frame:
        """Add a named frame on a link. It does not change the dynamics.

        Args:
            s: abscissa on a rod, 0 at the base and 1 at the tip, or a place on a deformable body.
            placement: pose (4, 4) in the link's frame at s [-, m]; None is the identity.
        """
        self._new_name(name, "frame", self.links, self.frames)
        self.frames[name] = Frame(name, link, s, placement)
        return self.frames[name]

    def add_tendon(
        self,
        name: str,
        link: str | None = None,
        offset: Any = None,
        *,
        start: float = 0.0,
        stop: float = 1.0,
        path: Sequence[PathItem] | None = None,
        stiffness: float | None = None,
        slack_length: float | None = None,
    ) -> Tendon:
        """Add a tendon along one rod (`link`, `offset`, `start`, `stop`), or along a `path` of several items; see
        Tendon.

        Its input is the tension [N]. If the tendon is elastic, its input is the wound-up length [m].

        Args:
            offset: position (y, z) in the cross-section [m]: a pair, rows (s, y, z), or a function of s.
            start, stop: abscissae at which the tendon begins and ends, 0 at the base and 1 at the tip.
            path: PathRod, PathPoint, PathBody and PathWrap items in order.
            stiffness: of the whole elastic tendon [N/m]; None: the tendon is inextensible.
            slack_length: length up to which an elastic tendon has no tension [m]; None is the neutral length.
        """
        if path is None:
            checks.require(link is not None and offset is not None, f"tendon {name!r}",
                           "needs a link and an offset, or a path", (link, offset))  # fmt: skip
            path = (PathRod(link, offset, start, stop),)  # type: ignore[arg-type]
        else:
            checks.require(link is None and offset is None, f"tendon {name!r}",
                           "takes a link and an offset, or a path, not both", (link, offset))  # fmt: skip
            checks.require(isinstance(path, Sequence), f"tendon {name!r}: path",
                           "must be a list of PathRod, PathPoint, PathBody and PathWrap items", path)  # fmt: skip
        return self._add_actuator("tendon", Tendon(name, tuple(path), stiffness, slack_length))

    def add_chamber(
        self,
        name: str,
        link: str,
        *,
        offset: Any = (0.0, 0.0),
        area: Any,
        start: float = 0.0,
        stop: float = 1.0,
        force: str = "tangent",
    ) -> Chamber:
        """Add an inflated chamber along a rod; see Chamber. Its input is the pressure above ambient [Pa].

        Args:
            offset: position (y, z) of its centreline in the cross-section [m]: a pair, rows (s, y, z), or a function of
                s.
            area: cross-section [m²]: a number, (base, tip), or a function of s.
            start, stop: abscissae at which the chamber begins and ends, 0 at the base and 1 at the tip.
            force: "tangent" or "volume", how the pressure acts.
        """
        return self._add_actuator("chamber", Chamber(name, PathRod(link, offset, start, stop), area, force))

    def add_body_chamber(
        self, name: str, link: str, *, surface: Any = None, volume: Callable[[Any], Any] | None = None
    ) -> BodyChamber:
        """Add a chamber in a deformable body, given by its `surface` [m] or its `volume` [m³]; see BodyChamber. Its
        input is the pressure above ambient [Pa]."""
        return self._add_actuator("chamber", BodyChamber(name, link, surface, volume))

    def add_surface_pressure(self, name: str, link: str, surface: Any) -> SurfacePressure:
        """Add a pressure on a part of the surface of a deformable body; see SurfacePressure. Its input is the pressure
        [Pa]."""
        return self._add_actuator("pressure", SurfacePressure(name, link, surface))

    def add_joint_actuator(self, name: str, link: str) -> JointActuator:
        """Add a motor on the joint of a link. It has one input for each velocity coordinate [N·m, N]."""
        return self._add_actuator("joint actuator", JointActuator(name, link))

    def add_wrench_input(
        self,
        name: str,
        link: str,
        *,
        s: Any = 1.0,
        directions: Any = None,
        frame: str = "body",
        position: Any = (0.0, 0.0, 0.0),
    ) -> WrenchInput:
        """Add a controlled wrench at a point of a link, such as a propeller or a thruster; see WrenchInput.

        Args:
            s: abscissa on a rod, 0 at the base and 1 at the tip, or a place on a deformable body.
            directions: wrench (moment; force) per unit of each input, shape (6, n) or (6,). None: the six inputs are
                the moment [N·m] and the force [N].
            frame: axes of the wrench: "body" or "world".
            position: point of application in the frame of the link at s, shape (3,) [m].
        """
        return self._add_actuator("wrench input", WrenchInput(name, link, s, directions, frame, position))

    def add_custom_actuator(self, name: str, function: Any, *, size: int = 1, linear: bool = True) -> CustomActuator:
        """Add a user-defined generalised actuation B(q), or a force τ(q, u) if not `linear`; see CustomActuator."""
        return self._add_actuator("custom actuator", CustomActuator(name, function, size, linear))

    def couple_inputs(self, name: str, gains: dict[str, float]) -> InputCoupling:
        """Drive several actuators by one input. In u it takes the place of the first of these actuators.

        Args:
            gains: gain by actuator name [unit of the input of the actuator per unit of the common input].
        """
        self._new_name(name, "input", self.actuators, self.couplings)
        checks.require(isinstance(gains, Mapping), f"input {name!r}: gains", "must be gains by actuator name", gains)
        self.couplings[name] = InputCoupling(name, dict(gains))
        return self.couplings[name]

    def add_point_load(
        self,
        name: str,
        link: str,
        *,
        s: Any = 1.0,
        force: Any = None,
        moment: Any = None,
        frame: str = "world",
        position: Any = (0.0, 0.0, 0.0),
    ) -> PointLoad:
        """Add a force and a moment at a point of a link; see PointLoad.

        Args:
            s: abscissa on a rod, 0 at the base and 1 at the tip, or a place on a deformable body.
            force: [N], shape (3,): a constant or a function of t [s].
            moment: [N·m], shape (3,): a constant or a function of t [s].
            frame: axes of force and moment: "world" or "body".
            position: point of application in the frame of the link at s, shape (3,) [m].
        """
        self._new_name(name, "load", self.loads)
        self.loads[name] = PointLoad(name, link, s, force, moment, frame, position)
        return self.loads[name]

    def add_joint_motion(
        self, name: str, link: str, *, position: Any, velocity: Any = None, acceleration: Any = None
    ) -> JointMotion:
        """Prescribe the motion of a link's joint by functions of time; see JointMotion.

        Args:
            position: coordinates of the joint [rad, m]: a constant or a function of t [s].
            velocity, acceleration: their rates [rad/s, m/s] and [rad/s², m/s²] as functions of t; None differentiates.
        """
        self._new_name(name, "motion", self.motions)
        self.motions[name] = JointMotion(name, link, position, velocity, acceleration)
        return self.motions[name]

    def add_pose_motion(self, name: str, link: str, *, t: Any, q: Any) -> JointMotion:
        """Prescribe the orientation of a spherical joint, or the pose of a free joint, by samples.

        The joint is replaced by a JointCustom with a PoseSpline through the samples. Its single coordinate is the time
        on the spline [s], which the motion sets to t; twist and acceleration are exact derivatives of the spline. The
        multiplier of the motion is the power that drives the link [W]; `joint_wrench` gives the whole wrench. Springs,
        damping, stops, rotors, motors and other motions of the joint disappear.

        Args:
            t: times [s], strictly increasing, at least six, the first one at most 0. Simulations end at the last one.
            q: coordinates of the joint at these times: unit quaternions (w, x, y, z) of a spherical joint (n, 4);
                followed by the position [m] for a free joint (n, 7). Opposite quaternions are the same orientation.
        Returns:
            the motion.
        Raises:
            ModelError: the name is taken; the joint is neither spherical nor free; wrong times or quaternions; samples
                are more than 1.5 rad apart; the link turns by nearly 2π from its mean orientation about changing axes;
                another part needs the joint.
        Accuracy: exact at the samples; the error between samples h apart is O(h⁶), of accelerations O(h⁴).
        """
        from lissom.robot.edits import drive

        self._new_name(name, "motion", self.motions)
        return drive(self, name, link, t, q)

    def add_loop(
        self,
        name: str,
        link_a: str,
        link_b: str | None = None,
        *,
        s_a: Any = 1.0,
        s_b: Any = 1.0,
        placement_a: Any = None,
        placement_b: Any = None,
        joint: Joint | None = None,
    ) -> Loop:
        """Close a chain: join two links, or a link and the world, by one more joint; see Loop.

        Args:
            s_a, s_b: abscissae on rods, 0 at the base and 1 at the tip, or places on deformable bodies.
            placement_a, placement_b: poses (4, 4) of the joined frames in the links' frames at s, or in the world
                [-, m]; None is the identity.
            joint: joint between the frames; None is a fixed joint.
        """
        self._new_name(name, "loop", self.loops)
        closing = JointFixed() if joint is None else joint
        self.loops[name] = Loop(name, link_a, link_b, s_a, s_b, placement_a, placement_b, closing)
        return self.loops[name]

    def add_skate(
        self,
        name: str,
        link: str,
        direction: Any,
        *,
        point: Any = (0.0, 0.0, 0.0),
        s: Any = 1.0,
        ground: str | None = None,
        s_ground: Any = 1.0,
    ) -> Skate:
        """Hold a point of a link so that it does not move along a direction of the link, like a skate or a passive
        wheel; see Skate.

        Args:
            direction, point: (3,) in the frame of the link at s [-, m].
            s, s_ground: abscissae on rods, 0 at the base and 1 at the tip, or places on deformable bodies.
            ground: link relative to which the point is held; None is the world.
        """
        self._new_name(name, "skate", self.skates)
        self.skates[name] = Skate(name, link, direction, point, s, ground, s_ground)
        return self.skates[name]

    def add_rolling(
        self,
        name: str,
        link: str,
        radius: float,
        *,
        axis: Any = None,
        centre: Any = (0.0, 0.0, 0.0),
        s: Any = 1.0,
        ground: str | None = None,
        s_ground: Any = 1.0,
        placement: Any = None,
        height: bool = True,
    ) -> Rolling:
        """Let a wheel, a disc or a ball roll on a plane without slip; see Rolling.

        Args:
            radius: of the wheel or ball [m].
            axis: axis of the wheel (3,) in the frame of the link at s [-]; None is a ball.
            centre: its centre (3,) in this frame [m].
            s, s_ground: abscissae on rods, 0 at the base and 1 at the tip, or places on deformable bodies.
            ground: link that carries the plane; None is the world.
            placement: pose (4, 4) of the plane in the frame of this link at s_ground, or in the world [-, m]: its z
                axis is the normal. None is the plane z = 0.
            height: False if other constraints hold the height of the centre.
        """
        self._new_name(name, "rolling contact", self.rolling)
        self.rolling[name] = Rolling(name, link, radius, axis, centre, s, ground, s_ground, placement, height)
        return self.rolling[name]

    def add_constraint(
        self,
        name: str,
        link_a: str,
        link_b: str | None = None,
        *,
        function: Any,
        joints: Sequence[str] = (),
        velocity: bool = False,
        s_a: Any = 1.0,
        s_b: Any = 1.0,
        placement_a: Any = None,
        placement_b: Any = None,
    ) -> Constraint:
        """Hold a function of the pose of frame A in frame B at zero, such as a point on a surface or a curve, a
        distance, or an angle between two axes; see Constraint.

            Φ(x, y, z, R11, ..., R33, q) = 0

        Args:
            function: Φ, an expression of some of x, y, z, R11, ..., R33, and of coordinates of `joints`, or a traced
                function of the pose (4, 4), and of the coordinates (n,) if there are joints.
            joints: links whose joints have one coordinate each, on which Φ depends too.
            velocity: whether Φ is linear in the velocities vx, vy, vz, wx, wy, wz and holds these alone.
            s_a, s_b: abscissae on rods, 0 at the base and 1 at the tip, or places on deformable bodies.
            placement_a, placement_b: poses (4, 4) of the frames in the links' frames at s, or in the world [-, m]; None
                is the identity.
        """
        self._new_name(name, "constraint", self.constraints)
        names: Any = tuple(joints) if isinstance(joints, list) else joints
        given = function, names, velocity, s_a, s_b, placement_a, placement_b
        self.constraints[name] = Constraint(name, link_a, link_b, *given)
        return self.constraints[name]

    def add_coupling(
        self,
        name: str,
        joints: Sequence[str],
        ratios: Sequence[Any] = (),
        offset: float = 0.0,
        *,
        function: Any = None,
        span: Any = None,
        stiffness: float = 0.0,
        damping: float = 0.0,
        spring: Any = None,
        limits: Any = None,
        limit_stiffness: float = 0.0,
        limit_damping: float = 0.0,
        limit_width: float = 1e-3,
    ) -> JointCoupling:
        """Couple joints by gears, a differential, a transmission or as a mimic joint, rigidly or by a spring, a damper
        and stops; see JointCoupling.

            Σ_i f_i(q_i) = offset,   f_i(q) = ratio_i q for a number;   or Φ(q_1, …, q_n) = offset

        Args:
            offset: value of the sum [rad, m], or of the function.
            function: Φ in place of `ratios`: an expression of several variables, one for each joint, or a traced
                function of their coordinates.
            span: interval (low, high) of the coordinates in which functions are fitted [rad, m].
            stiffness, damping: [N·m/rad, N/m] and [N·m·s/rad, N·s/m] of an elastic coupling.
            spring: nonlinear law in place of `stiffness`: force [N·m, N] of the sum less the offset [rad, m].
            limits: (low, high) of the sum [rad, m].
            limit_stiffness, limit_damping, limit_width: [N·m/rad, N/m], [N·m·s/rad, N·s/m] and [rad, m] of the stops.
        """
        self._new_name(name, "coupling", self.joint_couplings)
        names: Any = tuple(joints) if isinstance(joints, list) else joints
        given: Any = tuple(ratios) if isinstance(ratios, list | np.ndarray) else ratios
        law: Any = (stiffness, damping, spring, limits, limit_stiffness, limit_damping, limit_width)
        self.joint_couplings[name] = JointCoupling(name, names, given, offset, span, *law, function=function)
        return self.joint_couplings[name]

    def add_spring(
        self,
        name: str,
        a: str | PathPoint,
        b: str | PathPoint,
        *,
        stiffness: float = 0.0,
        damping: float = 0.0,
        rest: float | None = None,
        preload: float = 0.0,
        slack: bool = False,
        law: Any = None,
        via: Sequence[PathPoint | PathWrap] = (),
        branches: Sequence[SpringBranch] = (),
    ) -> Spring:
        """Add a spring, a damper or a cable between two points of links or of the world, or along a path; see Spring.

        Args:
            a, b: end points: PathPoints or names of links.
            stiffness: [N/m]. damping: [N·s/m].
            rest: length without a spring force [m]; None is the length in the neutral configuration.
            preload: tension at the length `rest` [N].
            slack: True for a cable, which has no negative tension.
            law: tension [N] that replaces T₀ + k (L − L₀).
            via: PathPoint and PathWrap items between a and b. branches: further paths.
        """
        self._new_name(name, "spring", self.springs)
        items: Any = tuple(via) if isinstance(via, list) else via
        others: Any = tuple(branches) if isinstance(branches, list) else branches
        self.springs[name] = Spring(name, a, b, stiffness, damping, rest, preload, slack, law, items, others)
        return self.springs[name]

    def add_contact(
        self,
        name: str,
        links: str | Sequence[str],
        shape: Shape | None = None,
        *,
        others: str | Sequence[str] | None = None,
        on: str | None = None,
        s: Place = 1.0,
        placement: Placement = None,
        stiffness: float | None = None,
        exponent: float | None = None,
        damping: float | None = None,
        friction: float | None = None,
        slip_speed: float | None = None,
        stick_stiffness: float | None = None,
        stick_damping: float | None = None,
        radius: FunctionOfS = None,
        per_interval: int = 1,
        restitution: float | None = None,
        impact_speed: float | None = None,
        material: Material | None = None,
        surface: bool | int = False,
    ) -> Contact:
        """Add contacts of links with a shape, or with other links; see Contact.

        The law follows from the materials of both sides. Each number that is given replaces the chosen one.

        Args:
            name: unique among contacts.
            links: names of the links that touch, or one name; EVERYTHING is all links that have mass and can touch.
            shape: the shape that they touch; None if they touch `others`.
            others: names of the links that are touched, one name, or EVERYTHING.
            on: name of the link to which the shape is fixed; None is the world.
            s: abscissa on that link, or a place on a deformable body.
            placement: pose (4, 4) of the shape's frame in the frame of that link at s, or in the world.
            stiffness, exponent, damping: k [N/m^p], p and c [s/m] of the normal force k δ^p (1 + c δ̇), δ the
                penetration depth. With a restitution, and by default, the damping is another law.
            friction, slip_speed: friction coefficient μ, and the sliding speed at which smooth friction reaches 0.7 μ N
                [m/s].
            stick_stiffness, stick_damping: k_t [N/m] and τ [s] of friction that sticks; None is smooth friction.
            radius: radius of the balls on rods [m]; None is half the smallest width of the section.
            per_interval: number of balls on each integration interval of a rod, and factor of the number of points
                along edges of shapes and of balls on their axes.
            restitution, impact_speed: coefficient of restitution of impacts at all speeds, in place of the damping, and
                the speed at which it is exact [m/s].
            material: material of the shape; None is that of the link `on`, and rigid in the world.
            surface: whether to integrate a pressure over surfaces instead of forces on points; a number is that of
                cells along an edge. `stiffness` is K [N/m³] then.
        """
        self._new_name(name, "contact", self.contacts)
        self.contacts[name] = Contact(
            name,
            links,
            shape,
            others=others,
            on=on,
            s=s,
            placement=placement,
            stiffness=stiffness,
            exponent=exponent,
            damping=damping,
            friction=friction,
            slip_speed=slip_speed,
            stick_stiffness=stick_stiffness,
            stick_damping=stick_damping,
            radius=radius,
            per_interval=per_interval,
            restitution=restitution,
            impact_speed=impact_speed,
            material=material,
            surface=surface,
        )
        return self.contacts[name]

    def add_mutual_contacts(
        self,
        name: str = "mutual",
        links: Sequence[str] | None = None,
        *,
        stiffness: float | None = None,
        exponent: float | None = None,
        damping: float | None = None,
        friction: float | None = None,
        slip_speed: float | None = None,
        stick_stiffness: float | None = None,
        stick_damping: float | None = None,
        radius: FunctionOfS = None,
        per_interval: int = 1,
        restitution: float | None = None,
        impact_speed: float | None = None,
        surface: bool | int = False,
    ) -> MutualContacts:
        """Let links touch each other: robots, fingers and objects, each pair that joints do not connect.

        Points of each of two rigid bodies touch the shapes of the other one; rods and deformable bodies touch shapes,
        each other and themselves by their balls. The contact "<name> <link>" holds the pairs of a link with later ones.
        Pairs that are far apart cost nothing.

        Args:
            name: first part of the names of the contacts.
            links: names of the links; None is every link with a body that has mass and can touch.
            stiffness, exponent, damping, friction, slip_speed, stick_stiffness, stick_damping, radius, per_interval,
                restitution, impact_speed: of all these contacts, as in `add_contact`.
            surface: whether to integrate pressures over surfaces that touch shapes; see `add_contact`.
        Returns:
            MutualContacts: the contacts with their pairs of links, the links that were left out, and the pairs left
            out. These are neighbours: links between which there is one joint, but no free joint, or a loop, or none;
            and pairs of `exclude_contacts`; but not pairs of `pair_contacts`. Links that overlap at the neutral
            configuration are left out too, unless a free joint separates them.
        Raises:
            ModelError: a name is unknown, or a body cannot touch; or the robot cannot be built.
        """
        from lissom.dynamics.contacts import overlapping_links

        law = Contact(
            name,
            (),
            stiffness=stiffness,
            exponent=exponent,
            damping=damping,
            friction=friction,
            slip_speed=slip_speed,
            stick_stiffness=stick_stiffness,
            stick_damping=stick_damping,
            radius=radius,
            per_interval=per_interval,
            restitution=restitution,
            impact_speed=impact_speed,
            surface=surface,
        )
        found = mutual_contacts(self, links, law)
        for contact in found.contacts:
            self._new_name(contact.name, "contact", self.contacts)
        apart = copy(self)
        apart.contacts = {contact.name: contact for contact in not_parted(self, found.contacts)}
        apart.near_pairs = 10**7
        overlapping = overlapping_links(apart.build()) if apart.contacts else []
        kept = without_pairs(found.contacts, overlapping)
        self.contacts |= {contact.name: contact for contact in kept}
        apart_from = [set(pair) for pair in overlapping]
        pairs = tuple(pair for pair in found.pairs if set(pair) not in apart_from)
        return found._replace(contacts=kept, pairs=pairs, overlapping=tuple(overlapping))

    def exclude_contacts(self, name: str, links: Any, others: Any = None) -> ContactExclusion:
        """Keep links from touching each other, or from touching `others`, in mutual contacts that are added later; see
        ContactExclusion."""
        self._new_name(name, "contact exclusion", self.contact_exclusions)
        self.contact_exclusions[name] = ContactExclusion(name, links, others)
        return self.contact_exclusions[name]

    def pair_contacts(self, name: str, links: Any, others: Any = None, *, friction: float | None = None) -> ContactPair:
        """Let links touch each other, or `others`, in mutual contacts that are added later, also if they are neighbours
        or excluded; see ContactPair."""
        self._new_name(name, "contact pair", self.contact_pairs)
        self.contact_pairs[name] = ContactPair(name, links, others, friction)
        return self.contact_pairs[name]

    def add_state(
        self,
        name: str,
        positions: Mapping[str, Any] | None = None,
        velocities: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> NamedState:
        """Add a named state, such as a home pose; see NamedState."""
        self._new_name(name, "state", self.states)
        given = {"positions": positions, "velocities": velocities, "inputs": inputs}
        for word, values in given.items():
            is_mapping = values is None or isinstance(values, Mapping)
            checks.require(is_mapping, f"state {name!r}: {word}", "must be numbers by name", values)
        self.states[name] = NamedState(name, *(dict(values or {}) for values in given.values()))
        return self.states[name]

    def limit_input(self, name: str, low: Any = None, high: Any = None) -> InputLimits:
        """Set the least and the largest value of an input, for controllers; see InputLimits."""
        self._new_name(name, "limits of input", self.input_limits)
        self.input_limits[name] = InputLimits(name, low, high)
        return self.input_limits[name]

    def add_force(
        self, name: str, link: str, function: Any, *, s: Any = None, inputs: str | Sequence[str] = ()
    ) -> Force:
        """Add a user-defined force that depends on the pose and the twist of a link, and on inputs; see Force."""
        self._new_name(name, "force", self.forces)
        names: Any = (inputs,) if isinstance(inputs, str) else tuple(inputs) if isinstance(inputs, list) else inputs
        self.forces[name] = Force(name, link, function, s, names)
        return self.forces[name]

    def set_fluid(
        self,
        density: float,
        *,
        current: Any = None,
        default: Hydrodynamics | None = Hydrodynamics(),  # noqa: B008
        links: Mapping[str, Hydrodynamics | None] | None = None,
    ) -> Fluid:
        """Put the robot into a fluid; see Fluid."""
        is_mapping = links is None or isinstance(links, Mapping)
        checks.require(is_mapping, "fluid: links", "must be Hydrodynamics or None by name of the link", links)
        self.fluid = Fluid(density, current, default, dict(links or {}))
        return self.fluid

    def remove_link(self, name: str, *, with_children: bool = False) -> list[str]:
        """Remove a link that carries no other link and no other part.

        Args:
            name: name of the link.
            with_children: True also removes the links that hang on it, and every part that needs a removed link, such
                as a frame, a motor, a loop or a tendon. The links of a contact, the gains of an input and the
                coefficients of the fluid lose the removed names; a contact or an input with no other name is removed.
        Returns:
            the parts that were removed, such as "frame 'tip'".
        Raises:
            ModelError: the link is unknown; other parts need it (the message names them); an actuator is a function of
                all coordinates.
        """
        from lissom.robot.edits import remove_link

        return remove_link(self, name, with_children)

    def lock(self, joint: str, q: Any = None) -> list[str]:
        """Replace the joint of a link by a fixed joint at a configuration.

        Springs, damping, stops and rotors of the joint disappear. So do motors and prescribed motions of the joint;
        inputs that drive other actuators too lose its gain.

        Args:
            joint: name of the link whose joint is locked.
            q: coordinates of the joint, shape (nq,) [rad, m]; a single coordinate may be a number. None is the neutral
                configuration.
        Returns:
            the parts that were removed, such as "actuator 'motor'".
        Raises:
            ModelError: the link is unknown or its joint does not move; q has a wrong shape; another part needs the
                joint (the message names it).
        """
        from lissom.robot.edits import lock

        return lock(self, joint, q)

    def attach(
        self, other: Robot, parent: str | None, placement: Placement = None, *, prefix: str = "", at: Place = 1.0
    ) -> None:
        """Copy all parts of another robot into this one.

        The world of the other robot becomes a frame on `parent`. Its links, points, loops and shapes that are fixed to
        the world are then fixed to this frame. Directions given in world axes, and functions of the pose, keep the axes
        of the world. Gravity and fluid are those of this robot; those of the other robot are ignored. `near_pairs`
        becomes the larger one of the two. The coordinates and inputs of the copies follow those of this robot.

        Args:
            other: the robot that is copied; it does not change.
            parent: name of a link or a frame of this robot; None is the world.
            placement: pose (4, 4) of the other robot's world in the parent's frame at `at`; None is the identity.
            prefix: text put before the names of all copies, also where parts name each other.
            at: abscissa on a parent rod, or a place on a deformable parent; left out for a frame.
        Raises:
            ModelError: the parent is unknown; a name is taken already; an actuator of the other robot is a function of
                all coordinates. This robot has then not changed.
        """
        from lissom.robot.edits import attach

        attach(self, other, parent, placement, prefix, at)

    if not TYPE_CHECKING:  # else every misspelt attribute would pass

        def __getattr__(self, name: str) -> Any:
            """Raise an error that asks for a Model if `name` is an attribute of Model."""
            from lissom.model.model import Model

            if name.startswith("_") or not (hasattr(Model, name) or name in Model.__dataclass_fields__):
                raise AttributeError(f"'Robot' object has no attribute {name!r}")
            title = self.__dict__.get("name", "robot")
            raise ModelError(f"robot {title!r}: expected a Model, got a Robot: call robot.build()")

    def build(self) -> Model:
        """Check the description and make a Model from it.

        Raises:
            ModelError: a part of the description is invalid, or parts do not fit each other.
        """
        from lissom.model.build import build

        return build(self)

    def described_values(self) -> dict[str, Any]:
        """The values of the description by path, such as `arm.material.young`; see `with_`."""
        from lissom.robot.paths import described_values

        return described_values(self)

    def with_(self, values: Mapping[str, Any] | None = None, **more: Any) -> Robot:
        """A copy of the description in which some values are replaced.

        Args:
            values: new values by path: `{"arm.material.young": 2e6}`. `described_values` lists the paths.
            more: new values of one-word paths as keywords: `gravity=(0, 0, 0)`.
        Raises:
            ModelError: a word of a path is unknown; the message gives the nearest known word.
        """
        from lissom.robot.paths import with_values

        return with_values(self, more if values is None else values, more)

    def check(self) -> None:
        """Raise ModelError at the first rule that the description breaks."""
        check_parts(self)

    def _add_actuator(self, kind: str, actuator: Any) -> Any:
        self._new_name(actuator.name, kind, self.actuators, self.couplings)
        self.actuators[actuator.name] = actuator
        return actuator

    def _new_name(self, name: Any, kind: str, *taken: dict[str, Any]) -> None:
        checks.title(name, f"{kind} name")
        used = any(name in names for names in taken)
        checks.require(not used, f"{kind} name", "must not be taken already", name)

    def input_size(self, actuator: Actuator) -> int:
        """Number of inputs of an actuator."""
        if isinstance(actuator, JointActuator):
            return self.links[actuator.link].joint.nv
        if isinstance(actuator, WrenchInput):
            return actuator.columns(f"actuator {actuator.name!r}").shape[1]
        return actuator.size if isinstance(actuator, CustomActuator) else 1

    def inputs_of_forces(self) -> dict[str, Force]:
        """The names of the inputs of forces, in their order, each with the first force that has it."""
        found: dict[str, Force] = {}
        for force in self.forces.values():
            for name in force.inputs:
                found.setdefault(name, force)
        return found


def _from_parts(parts: dict[str, Any]) -> Robot:
    robot = Robot()
    robot.__dict__.update(parts)
    return robot


@np.errstate(all="ignore")  # checks refuse numbers that overflow
def check_parts(robot: Robot, known: Robot | None = None) -> None:
    """Raise ModelError at the first part that is invalid, alone or together with others. Inside checks.gathered,
    collect the errors of all parts.

    Args:
        known: a valid description of the same structure. Links and actuators that it shares are not checked.
    """
    checks.title(robot.name, "robot: name", may_be_empty=True)
    checks.integer(robot.near_pairs, f"robot {robot.name!r}: near_pairs", least=1, most=10**7)
    checks.require(bool(robot.links), f"robot {robot.name!r}", "needs at least one link", "no links")
    checks.array(robot.gravity, (3,), f"robot {robot.name!r}: gravity", "must be a finite 3-vector")
    for name, link in _unknown(robot, known, "links"):
        with checks.part(f"link {name!r}"):
            link.check(f"link {name!r}")
            _check_parent(robot, link)
    for name, frame in robot.frames.items():
        with checks.part(f"frame {name!r}"):
            frame.check(f"frame {name!r}")
            _check_place(robot, frame.link, frame.s, f"frame {name!r}")
    for name, actuator in _unknown(robot, known, "actuators"):
        with checks.part(f"actuator {name!r}"):
            where = f"actuator {name!r}"
            actuator.check(where)
            _check_actuator_links(robot, actuator, where)
    for name, load in robot.loads.items():
        with checks.part(f"load {name!r}"):
            load.check(f"load {name!r}")
            _check_place(robot, load.link, load.s, f"load {name!r}")
    for kind in placed_kinds():
        for name, part in getattr(robot, kind).items() if not PARTS[kind].has_tables else ():
            with checks.part(where := f"{PARTS[kind].word} {name!r}"):
                part.check(where)
                for place in places_of_part(kind, part):
                    if place.link is not None:
                        _check_place(robot, place.link, place.s, where)
    for kind in CLOSING:
        for name, closing in getattr(robot, kind).items():
            with checks.part(where := f"{PARTS[kind].word} {name!r}"):
                closing.check(where)
                for end in closing.ends():
                    if end.link is not None or not end.may_be_world:
                        link = _check_link(robot, end.link, f"{where}: {end.fields[0]}")
                        check_point(link, end.s, f"{where}: {end.fields[1]}")
                if isinstance(closing, Constraint):
                    _check_single_coordinates(robot, closing.joints, where)
    for name, spring in robot.springs.items():
        with checks.part(f"spring {name!r}"):
            where = f"spring {name!r}"
            spring.check(where)
            for end, point in zip(("a", "b"), spring.ends()):
                if point.link is not None:
                    _check_place(robot, point.link, point.s, f"{where} > {end}")
            for branch, items in (
                ("via", spring.via),
                *((f"branches[{k}] > path", branch.path) for k, branch in enumerate(spring.branches)),
            ):
                for k, item in enumerate(items):
                    if item.link is not None:
                        _check_place(robot, item.link, item.s, f"{where} > {branch}[{k}]")
    _check_surroundings(robot)
    _check_cycles(robot)
    _check_input_couplings(robot)
    _check_motions(robot)
    _check_joint_couplings(robot)
    _check_states(robot)
    for kind in ("contact_exclusions", "contact_pairs"):
        for name, pairs in getattr(robot, kind).items():
            title = f"{PARTS[kind].word} {name!r}"
            with checks.part(title):
                if kind == "contact_pairs" and pairs.friction is not None:
                    checks.number(pairs.friction, f"{title}: friction", least=0.0)
                for word, links in (("links", pairs.links), ("others", pairs.others or ())):
                    where, is_list = f"{title}: {word}", isinstance(links, str | list | tuple)
                    checks.require(is_list, where, "must be the name of a link, or a list of names", links)
                    for link in (links,) if isinstance(links, str) else links:
                        _check_link(robot, link, where)
    for name, limits in robot.input_limits.items():
        with checks.part(f"limits of input {name!r}"):
            limit_values(robot, limits)


def placed_kinds() -> list[str]:
    """The kinds of parts that exert forces at places; see `places` of Part."""
    return [kind for kind, part in PARTS.items() if part.places is not None]


def places_of_part(kind: str, part: Any) -> Sequence[ForcePlace]:
    """The places on which a part exerts forces."""
    places = PARTS[kind].places
    return () if places is None else places(part)


def _unknown(robot: Robot, known: Robot | None, kind: str) -> list[tuple[str, Any]]:
    """The parts of a kind, with their names, that a known description does not share."""
    given = {} if known is None else getattr(known, kind)
    return [(name, part) for name, part in getattr(robot, kind).items() if part is not given.get(name)]


def _check_surroundings(robot: Robot) -> None:
    for name, contact in robot.contacts.items():
        with checks.part(f"contact {name!r}"):
            where = f"contact {name!r}"
            contact.check(where)
            for word, given in (("links", contact.links), ("others", contact.others)):
                for link in () if given is None else named_links(robot, given):
                    by_surface = bool(contact.surface) and word == "others"
                    _check_touching(robot, link, f"{where}: {word}", surfaces=by_surface)
            can = contact.links != EVERYTHING or bool(contact.carriers(robot))
            rule = "must find a link that has mass, and collision shapes or balls"
            checks.require(can, f"{where}: links", rule, contact.links)
            if contact.on is not None:
                check_point(_check_link(robot, contact.on, f"{where}: on"), contact.s, f"{where}: s")
    for name, force in robot.forces.items():
        with checks.part(f"force {name!r}"):
            force.check(f"force {name!r}")
            _check_place(robot, force.link, 1.0 if force.s is None else force.s, f"force {name!r}")
            for key in force.inputs:
                rule = "must not be the name of an actuator or of a coupled input"
                free = key not in robot.actuators and key not in robot.couplings
                checks.require(free, f"force {name!r}: inputs", rule, key)
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


def _check_touching(robot: Robot, name: Any, where: str, *, surfaces: bool) -> None:
    """Check that a link can touch others; if it is touched by `surfaces`, it needs shapes."""
    body = _check_link(robot, name, where).body
    if isinstance(body, RigidBody) and not body.touches and body.meshes:
        rule = "must carry a body with collision shapes, since nothing touches drawings; give the body shapes="
        raise checks.fail(where, rule, name)
    rule = "must carry a Rod, a DeformableBody, or a RigidBody with collision shapes or balls"
    checks.require(isinstance(body, Body) and body.touches, where, rule, name)
    if surfaces:
        rule = "must carry a RigidBody with collision shapes, which a surface touches"
        checks.require(isinstance(body, Body) and bool(body.collision_shapes), where, rule, name)


def _check_link(robot: Robot, name: Any, where: str) -> Link:
    checks.named(name, robot.links, where, "links")
    return robot.links[name]


def _check_place(robot: Robot, name: Any, s: Any, where: str) -> None:
    """Check the name of a link and a place on it. The place may be a material point of a deformable body."""
    check_point(_check_link(robot, name, f"{where}: link"), s, f"{where}: s")


def check_point(link: Link, s: Any, where: str) -> None:
    """Raise ModelError unless s is a place on a link."""
    if isinstance(s, str | list | tuple) or bool(checks.shape(s)):
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
        check_point(parent, link.at, f"link {link.name!r}: at")


def _check_cycles(robot: Robot) -> None:
    rooted: set[str] = set()  # links whose chain of parents is known to end at the world
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
        if item.link is None and isinstance(item, PathPoint | PathWrap):
            continue
        link = _check_link(robot, item.link, here)
        if isinstance(item, PathRod):
            if link.body is None or not link.body.is_slender:
                cure = "; name a link whose body is a Rod, or a path of PathPoints"
                raise checks.fail(here, "must carry a Rod", item.link, cure)
        elif isinstance(item, PathPoint | PathWrap):
            check_point(link, item.s, f"{where} > path[{k}]: s")


def _check_input_couplings(robot: Robot) -> None:
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
            rule = "its joint must not be spherical or free; take add_pose_motion"
            checks.require(joint.nq == joint.nv, f"{where}: link", rule, motion.link)
            rule = f"its joint must not follow another motion ({moved.get(motion.link)!r})"
            checks.require(motion.link not in moved, f"{where}: link", rule, motion.link)
            moved[motion.link] = name
            motion.check(where, joint.nv)


def _check_states(robot: Robot) -> None:
    for name, state in robot.states.items():
        with checks.part(f"state {name!r}"):
            state_values(robot, state)


def state_values(robot: Robot, state: NamedState) -> tuple[dict[str, np.ndarray], ...]:
    """Positions, velocities and inputs of a state as arrays by name.

    Raises:
        ModelError: a name is unknown, or numbers have a wrong shape.
    """
    where = f"state {state.name!r}"
    sizes: dict[str, dict[str, int]] = {"positions": {}, "velocities": {}, "inputs": {}}
    for word in ("positions", "velocities"):
        for name in getattr(state, word):
            joint = _check_link(robot, name, f"{where}: {word}").joint
            checks.require(joint.nv > 0, f"{where}: {word}", "must be of joints that move", name)
            sizes[word][name] = joint.nq if word == "positions" else joint.nv
    for name in state.inputs:
        sizes["inputs"][name] = _size_of_input(robot, name, f"{where}: inputs")
    found: dict[str, dict[str, np.ndarray]] = {word: {} for word in sizes}
    for word, counts in sizes.items():
        for name, size in counts.items():
            here, value = f"{where} > {name}: {word}", getattr(state, word)[name]
            if word == "positions":
                found[word][name] = robot.links[name].joint.configuration(value, here)
            else:
                given = value if -1 in checks.shape(value) else np.atleast_1d(value)
                found[word][name] = checks.array(given, (size,), here, f"must have shape ({size},)")
    return tuple(found.values())


def _size_of_input(robot: Robot, name: Any, where: str) -> int:
    """Number of values of an input, the name of an actuator or of a coupled input."""
    coupled = {actuator for coupling in robot.couplings.values() for actuator in coupling.gains}
    known: dict[str, Any] = {key: x for key, x in (robot.actuators | robot.couplings).items() if key not in coupled}
    checks.named(name, known | robot.inputs_of_forces(), where, "inputs")
    return robot.input_size(robot.actuators[name]) if name in robot.actuators else 1


def limit_values(robot: Robot, limits: InputLimits) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest values of an input, shape (size,) each; infinite without a limit.

    Raises:
        ModelError: no input has this name, or numbers have a wrong shape or order.
    """
    where = f"limits of input {limits.name!r}"
    size, ends = _size_of_input(robot, limits.name, f"{where}: name"), []
    for word, value, none in (("low", limits.low, -np.inf), ("high", limits.high, np.inf)):
        rule = f"must be a finite number, or {size} of them"
        ends.append(np.full(size, none) if value is None else checks.each(value, size, f"{where}: {word}", rule))
    low, high = ends
    checks.require(bool((low <= high).all()), where, "must be low <= high", (limits.low, limits.high))
    return low, high


def _check_joint_couplings(robot: Robot) -> None:
    """Check each coupling, and that the linear ones do not depend on each other."""
    moved = {motion.link for motion in robot.motions.values()}
    found: dict[str, dict[str, float]] = {}  # eliminated coefficients of linear couplings by their first joint
    for name, coupling in robot.joint_couplings.items():
        where = f"coupling {name!r}"
        with checks.part(where):
            coupling.check(where)
            _check_single_coordinates(robot, coupling.joints, where)
            free = [link for link in coupling.joints if link not in moved]
            rule = "must not have prescribed motions for all of its joints"
            checks.require(bool(free) or coupling.is_elastic, where, rule, ", ".join(map(repr, coupling.joints)))
            is_linear = coupling.function is None and not any(map(callable, coupling.ratios))
            if is_linear and not coupling.is_elastic:
                row = {link: float(r) for link, r in zip(coupling.joints, coupling.ratios) if link in free}
                _eliminate(row, found)
                rule = "must not follow from the couplings before it; remove one of this cycle"
                checks.require(bool(row), where, rule, ", ".join(map(repr, coupling.joints)))
                found[next(iter(row))] = row


def _check_single_coordinates(robot: Robot, joints: Sequence[str], where: str) -> None:
    """Raise ModelError unless each of the joints is that of a link and has one coordinate."""
    for link in joints:
        joint = _check_link(robot, link, f"{where}: joints").joint
        rule = "each joint must have one coordinate"
        checks.require(joint.nq == joint.nv == 1, f"{where}: joint {link!r}", rule, joint.nv)


def _eliminate(row: dict[str, float], found: dict[str, dict[str, float]]) -> None:
    """Subtract multiples of the rows of `found` from a row so that it has no entry at the pivot of any of them. The
    pivots are the keys of `found`."""
    least = 1e-12 * max(map(abs, row.values()))
    while pivots := [key for key in row if key in found]:
        other = found[pivots[0]]
        factor = row.pop(pivots[0]) / other[pivots[0]]
        for key, value in other.items():
            if key != pivots[0]:
                row[key] = row.get(key, 0.0) - factor * value
                if abs(row[key]) <= least:
                    del row[key]
