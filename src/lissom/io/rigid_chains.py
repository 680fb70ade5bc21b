"""A robot whose rods are chains of rigid links, for tools that know no rods.

The first link of a chain has the name of the rod, and its joint. The links behind it are called after it, with the
number of the element. A joint for each strain of the rod stands before each of them, on links without a body. What lies
on the rod at s moves to the link that has s, at the same place of the stress-free shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, final

import numpy as np

from lissom.bodies.body import DeformableBody
from lissom.io.rod_segments import MOST, ChainError, RodShape
from lissom.robot import checks
from lissom.robot.actuators import (
    Chamber,
    CustomActuator,
    InputCoupling,
    PathPoint,
    PathRod,
    Tendon,
    WrenchInput,
    offset_function,
)
from lissom.robot.bodies import Rod
from lissom.robot.constraint_functions import Constraint
from lissom.robot.contacts import Contact
from lissom.robot.functions import is_constant
from lissom.robot.joints import Joint, JointPrismatic, JointRevolute
from lissom.robot.loads import Force, PointLoad
from lissom.robot.robot import PARTS, Link, Robot
from lissom.robot.rolling import Rolling, Skate
from lissom.robot.springs import Spring

_TURNED = 1e-12  # rotation of a link against the section on it that counts as rounding


@final
@dataclass(frozen=True)
class RigidChains:
    """A robot of rigid links in place of rods.

    Fields:
        robot: the robot.
        errors: one ChainError for each rod.
        left_out: parts of the robot that the new one does not have.
    """

    robot: Robot
    errors: tuple[ChainError, ...]
    left_out: tuple[str, ...]


def rigid_chains(robot: Robot, *, tolerance: float = 0.01, joints: int | None = None) -> RigidChains:
    """A robot whose rods are chains of rigid links, joined by springs and dampers.

    A rod becomes N + 1 rigid segments with N joints at equal distances, for each of its strains, with the compliance
    and the damping of its sections. Mass, centre of mass and inertia in the stress-free shape are those of the rod.
    Tendons along a rod run straight from the middle of one link to the next. A chamber of constant area becomes a
    tendon that pushes.

    Args:
        robot: the description.
        tolerance: largest error of the displacement of the tip, under a tip load and under the rod's weight, from which
            N follows [-]. ChainError defines it.
        joints: N for all rods; None chooses it by `tolerance`.
    Returns:
        RigidChains: the robot, the errors, and the parts that are left out. A robot without rods stays as it is.
    Raises:
        ModelError: the description is invalid, or has a deformable body; or a rod has no mass, or a strain without
            stiffness.
    """
    checks.require(isinstance(robot, Robot), "robot", "expected a Robot, the description and not its Model", robot)
    checks.number(tolerance, "tolerance", above=0.0)
    if joints is not None:
        checks.integer(joints, "joints", least=1, most=MOST)
    robot.check()
    for name, link in robot.links.items():
        if isinstance(link.body, DeformableBody):
            rule = "must not be deformable: no chain of rigid links stands for it; replace it by a RigidBody"
            raise checks.fail(f"link {name!r} > body", rule, type(link.body).__name__)
    return _Chains(robot, tolerance, joints).made()


@final
class _Chains:
    """The conversion of one robot."""

    def __init__(self, robot: Robot, tolerance: float, joints: int | None) -> None:
        self.robot, self.out, self.left = robot, copy(robot), []
        self.shapes: dict[str, RodShape] = {}
        self.names: dict[str, list[str]] = {}  # links of each chain, from its base
        self.errors: list[ChainError] = []
        taken = {*robot.links, *robot.frames}
        for name, link in robot.links.items():
            if isinstance(link.body, Rod):
                shape = RodShape(link.body, f"link {name!r} > body")
                count = joints or shape.count_for(tolerance)
                self.shapes[name] = shape
                self.names[name] = [name, *(_new(f"{name}_{k + 1}", taken) for k in range(count))]
                self.errors.append(shape.error(name, count))
                if shape.is_coupled:
                    self.left.append(f"coupling of strains of {name!r}")

    def made(self) -> RigidChains:
        """The robot of rigid links."""
        if not self.shapes:
            return RigidChains(self.out, (), ())
        self.out.links = {}
        for link in self.robot.links.values():
            self._add_link(link)
        for kind in PARTS:
            if kind != "links":
                parts = {name: self._part(part, name) for name, part in getattr(self.robot, kind).items()}
                setattr(self.out, kind, {name: part for name, part in parts.items() if part is not None})
        self._chambers()
        if self.out.fluid is not None:
            felt = {name: x for name, x in self.out.fluid.links.items() if name not in self.shapes}
            felt |= {name: None for names in self.names.values() for name in names}  # a chain feels no fluid
            self.out.fluid = replace(self.out.fluid, links=felt)
            self.left.append("fluid of the rods")
        self.out.check()
        return RigidChains(self.out, tuple(self.errors), tuple(self.left))

    def _add_link(self, link: Link) -> None:
        """Add a link, or the chain that takes its place."""
        moved: Link = self._moved(link)
        if link.name not in self.shapes:
            self.out.links[link.name] = moved
            return
        shape, names = self.shapes[link.name], self.names[link.name]
        count = len(names) - 1
        ends = [0.0, *((np.arange(count) + 0.5) / count).tolist(), 1.0]
        self.out.links[link.name] = replace(moved, body=shape.body(ends[0], ends[1], np.eye(4)))
        taken = {*self.out.links, *self.robot.links, *self.robot.frames, *names}
        for k in range(1, count + 1):
            laws = shape.laws((k - 1) / count, k / count)
            before, at = (shape.pose(s) if s > 0.0 else np.eye(4) for s in (ends[k - 1] if k > 1 else 0.0, ends[k]))
            place, parent = np.linalg.inv(before) @ at, names[k - 1]
            rows = list(zip(shape.active, laws[0].tolist(), laws[1].tolist()))
            for j, (strain, stiffness, damping) in enumerate(rows):
                last = j == len(rows) - 1
                name = names[k] if last else _new(f"{names[k]}_{_WORDS[strain]}", taken)
                body = shape.body(ends[k], ends[k + 1], at) if last else None
                joint = _joint(strain, stiffness, damping)
                placement = None if j else place.tolist()
                self.out.links[name] = Link(name, body, joint, parent, placement=placement)
                parent = name

    def place(self, link: str, s: Any) -> tuple[str, np.ndarray]:
        """The link of a chain that has s, and the pose (4, 4) of the section there in its frame."""
        shape, names = self.shapes[link], self.names[link]
        count = len(names) - 1
        k = min(int(float(s) * count + 0.5), count)
        base = np.eye(4) if k == 0 else shape.pose((k - 0.5) / count)
        return names[k], np.linalg.inv(base) @ shape.pose(float(s))

    def _part(self, part: Any, name: str) -> Any:
        """A part on the new links; None if it cannot be carried."""
        if isinstance(part, CustomActuator):
            self.left.append(f"function of all coordinates of actuator {name!r}")
            return None
        if isinstance(part, Chamber):
            return part
        if isinstance(part, Skate | Rolling | Constraint | Force):
            ends = [getattr(part, key, None) for key in ("link", "link_a", "link_b", "ground")]
            if any(end in self.shapes for end in ends):
                self.left.append(f"{type(part).__name__.lower()} on a rod of {name!r}")
                return None
            return part
        if isinstance(part, Contact) and part.radius is not None and self.shapes.keys() & {*part.carriers(self.robot)}:
            self.left.append(f"radius of balls of contact {name!r}")
            part = replace(part, radius=None)
        if isinstance(part, Tendon):
            return replace(part, path=tuple(item for one in part.path for item in self._path(one)))
        if isinstance(part, Spring):
            a, b = part.ends()
            part = replace(part, a=a, b=b)
        if isinstance(part, PointLoad | WrenchInput) and part.link in self.shapes:
            return self._turned(part, name)
        return self._moved(part)

    def _path(self, item: Any) -> list[Any]:
        """The items of a path that take the place of one."""
        if not isinstance(item, PathRod):
            return [self._moved(item)]
        offset, count = offset_function(item.offset, "path: offset"), len(self.names[item.link]) - 1
        low, high = sorted((item.start, item.stop))
        inner = [k / count for k in range(1, count) if low < k / count < high]
        out = []
        for s in (item.start, *(inner if item.start < item.stop else inner[::-1]), item.stop):
            link, g = self.place(item.link, s)
            y, z = offset(s)
            out.append(PathPoint(link, tuple((g @ (0.0, y, z, 1.0))[:3].tolist())))
        return out

    def _turned(self, part: Any, name: str) -> Any:
        """A load or a controlled wrench, whose axes may be those of the section."""
        moved, g = self._moved(part), self.place(part.link, part.s)[1]
        R = g[:3, :3]
        if part.frame == "world" or np.abs(R - np.eye(3)).max() < _TURNED:
            return moved
        if isinstance(part, WrenchInput):
            columns = part.columns(name)
            return replace(moved, directions=np.vstack([R @ columns[:3], R @ columns[3:]]).tolist())
        if part.varies:
            self.left.append(f"function of time in axes of a curved rod of load {name!r}")
            return None
        turned = {key: None if x is None else (R @ x).tolist() for key, x in
                  (("force", part.force), ("moment", part.moment))}  # fmt: skip
        return replace(moved, **turned)

    def _moved(self, part: Any) -> Any:
        """A part whose places on rods are places on links of chains."""
        if isinstance(part, list | tuple):
            return type(part)(self._moved(item) for item in part)
        if not is_dataclass(part) or isinstance(part, type):
            return part
        changes: dict[str, Any] = {}
        of_links = type(part).__annotations__
        own = {field.name for field in fields(part)}
        for name in own:
            value = getattr(part, name)
            several = isinstance(value, tuple) and any(is_dataclass(x) for x in value)
            if several or type(value) is PathPoint:
                changes[name] = self._moved(value)
            elif isinstance(value, str) and value in self.shapes:
                place, pose = _place_fields(name, own)
                if place:
                    changes |= self._put(part, name, place, pose)
                elif "LinkNames" in str(of_links.get(name, "")):
                    changes[name] = list(self.names[value])
            elif isinstance(value, list | tuple) and "LinkNames" in str(of_links.get(name, "")):
                changes[name] = [x for link in value for x in self.names.get(link, [link])]
        return replace(part, **changes) if changes else part

    def _put(self, part: Any, name: str, place: str, pose: str) -> dict[str, Any]:
        """The fields of a part that name a rod and a place on it, for the link that has this place."""
        link, g = self.place(getattr(part, name), getattr(part, place))
        given = getattr(part, pose)
        if pose.startswith("position"):
            return {name: link, place: 1.0, pose: tuple((g @ np.append(given, 1.0))[:3].tolist())}
        inner = np.eye(4) if given is None else np.asarray(given, dtype=np.float64)
        return {name: link, place: 1.0, pose: (g @ inner).tolist()}

    def _chambers(self) -> None:
        """Replace chambers of constant area by tendons along their centrelines: a pressure p pushes with p times the
        area."""
        for name, chamber in list(self.out.actuators.items()):
            if not isinstance(chamber, Chamber):
                continue
            del self.out.actuators[name]
            if not is_constant(chamber.area) or chamber.force != "tangent" or np.ndim(chamber.area):
                self.left.append(f"pressure on sections, or area that varies, of chamber {name!r}")
                self._drop_input(name)
                continue
            own = _new(f"{name}_line", {*self.out.actuators, *self.out.couplings})
            self.out.actuators[own] = Tendon(own, tuple(self._path(chamber.path)))
            area, used = float(chamber.area), False
            for key, coupling in self.out.couplings.items():
                if name in coupling.gains:
                    gains = {own if x == name else x: -area * g if x == name else g for x, g in coupling.gains.items()}
                    self.out.couplings[key], used = replace(coupling, gains=gains), True
            if not used:
                self.out.couplings[name] = InputCoupling(name, {own: -area})
        for name, part in self.robot.actuators.items():
            if isinstance(part, CustomActuator):
                self._drop_input(name)

    def _drop_input(self, name: str) -> None:
        """Remove the limits, the gains and the values of an input that is gone."""
        self.out.input_limits.pop(name, None)
        for key, coupling in list(self.out.couplings.items()):
            if name in coupling.gains:
                del self.out.couplings[key]
                self._drop_input(key)
        self.out.states = {key: replace(state, inputs={x: u for x, u in state.inputs.items() if x != name})
                           for key, state in self.out.states.items()}  # fmt: skip


_WORDS = ("twist", "bend_y", "bend_z", "stretch", "shear_y", "shear_z")  # names of the links between two segments


def _joint(strain: int, stiffness: float, damping: float) -> Joint:
    """The joint of a strain."""
    axis = tuple(np.eye(3)[strain % 3].tolist())
    kind = JointRevolute if strain < 3 else JointPrismatic
    return kind(axis=axis, stiffness=stiffness, damping=damping)


def _place_fields(name: str, own: Sequence[str] | set[str]) -> tuple[str, str]:
    """The fields of the place and of the pose on the link that a field names; empty names for others."""
    suffix = name.removeprefix("link") if name.startswith("link") else ""
    place = "at" if name == "parent" else f"s{suffix}"
    pose = next((x for x in (f"placement{suffix}", "position") if x in own), "")
    known = name in ("parent", "on") or name.startswith("link")
    return (place, pose) if known and place in own and pose else ("", "")


def _new(name: str, taken: set[str]) -> str:
    """A name that is not taken, and is then."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
