"""Tables of tendons, chambers, motors, wrenches, actuators in deformable bodies, and the inputs that drive them.

A tendon and a chamber have one channel. A wrench input, and an actuator of a user with native code, have one for each
of their inputs. So has each input of users' forces, behind those of the actuators.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeGuard, final

import numpy as np

from lissom.bodies.native_code import NativePull
from lissom.bodies.pulls import BodyPulls, LengthPulls, check_pull, pulls_on
from lissom.errors import PlausibilityWarning
from lissom.model.bodies import PlacedBody, PlacedDeformableBody, anchor, point
from lissom.model.groups import Addresses, Channels, Floats, Inputs, Ints, Paths, Points, Segments, Spools, Wrenches
from lissom.model.maps import starts
from lissom.model.nodes import Frame, Node, Point, component_runs, distance, index_of, neutral_pose
from lissom.model.tree import TreeBuilder
from lissom.robot import checks
from lissom.robot.actuators import (
    Actuator,
    BodyChamber,
    Chamber,
    CustomActuator,
    JointActuator,
    PathBody,
    PathItem,
    PathRod,
    PathWrap,
    SurfacePressure,
    Tendon,
    WrenchInput,
    offset_function,
    offset_slope,
)
from lissom.robot.functions import profile
from lissom.robot.loads import Force
from lissom.robot.poses import captured
from lissom.robot.robot import Robot
from lissom.robot.traced_functions import NativeActuation, TracedFunction

Piece = tuple[Point, Point, tuple[PathWrap, Frame] | None]  # of a path: its ends, and the shape between them


class PullsOfBody(NamedTuple):
    """The forces of actuators in one deformable body.

    Fields:
        q_start: first coordinate of the body in q.
        rows: range of its actuators in the tables of Pulls.
        pulls: the functions that return their work and forces.
    """

    q_start: int
    rows: slice
    pulls: BodyPulls | LengthPulls


@final
@dataclass(frozen=True, eq=False)
class Pulls:
    """Generalised forces of channels on deformable bodies and on their frames, body by body. Each row is the force of
    one actuator in one body (a pull, bodies/pulls)."""

    bodies: tuple[PullsOfBody, ...]
    channel: Ints
    node: Ints  # of kind BODY
    presses: Ints  # whether it acts on the frame
    column_start: Ints  # start of the entries of each row by coordinate
    pair_start: Ints  # and by pair of coordinates
    values_function: Addresses  # native functions (bodies/native_code); 0 where there are none
    derivatives_function: Addresses
    second_function: Addresses  # those of the second derivative along v; 0 for surfaces, and where there are none
    table_start: Ints  # start of the tables of each row for its native functions
    table: Floats
    surface_start: Ints
    surface: Ints
    side: Floats  # 1 for a chamber, −1 for a pressure from outside
    room_start: Ints  # start of the numbers that kernels store for each surface

    def __len__(self) -> int:
        return len(self.channel)

    @property
    def calls_python(self) -> bool:
        """Whether some forces come from Python functions, which kernels cannot call."""
        return bool((self.values_function == 0).any())

    def called(self) -> Iterator[PullsOfBody]:
        """The bodies whose forces come from Python."""
        return (part for part in self.bodies if self.values_function[part.rows.start] == 0)

    def on(self, device: str) -> Pulls:
        """The same tables for a device. Native functions exist on the CPU only; Python computes them elsewhere."""
        native = [part.pulls.native[0] if device == "cpu" else () for part in self.bodies]
        return replace(self, **_native_tables(self.bodies, native))

    def neutral_work(self, channel: int) -> float:
        """Work of a channel in the reference shapes: minus the length of a tendon [m]."""
        total = 0.0
        for part in self.bodies:
            work, _, _ = part.pulls.values(np.zeros((1, part.pulls.motion.n)))
            total += float(work[0, self.channel[part.rows] == channel].sum())
        return total


def pull_tables(found: list[tuple[int, PlacedDeformableBody, PathBody | BodyChamber | SurfacePressure]]) -> Pulls:
    """The tables of channels that act on deformable bodies, with the body and the actuator of each."""
    bodies, rows, channels, nodes, presses, sizes = [], 0, [], [], [], []
    for body in dict.fromkeys(body for _, body, _ in found):
        here = [(channel, item) for channel, on, item in found if on is body]
        pulls = pulls_on(body.body, tuple(item for _, item in here))
        _check_finite(pulls, [item for _, item in here])
        node, n = body.base[0], body.size
        bodies.append(PullsOfBody(body.q_start, slice(rows, rows + len(here)), pulls))
        channels += [channel for channel, _ in here]
        nodes += [index_of(node)] * len(here)
        presses += [pull.presses for pull in pulls.pulls]
        sizes += [n] * len(here)
        rows += len(here)
    each = np.array(sizes, dtype=int)
    return Pulls(
        bodies=tuple(bodies),
        channel=np.array(channels, dtype=np.int32),
        node=np.array(nodes, dtype=np.int32),
        presses=np.array(presses, dtype=np.int32),
        column_start=starts(each),
        pair_start=starts(each**2),
        **_native_tables(bodies, [part.pulls.native[0] for part in bodies]),
    )


def _native_tables(bodies: Sequence[PullsOfBody], native: Sequence[tuple[NativePull, ...]]) -> dict[str, np.ndarray]:
    """The fields of Pulls for the native functions of each body; those of a body without any are zero or empty."""
    sizes = [part.pulls.motion.n for part in bodies for _ in part.pulls.pulls]
    found = [pull for part, own in zip(bodies, native) for pull in own or [None] * len(part.pulls.pulls)]
    given = [() if pull is None else pull.functions.cell for pull in found]
    address = np.array([(*one, 0, 0, 0)[:3] for one in given], dtype=np.uint64)
    tables = [np.zeros(0) if pull is None else pull.table for pull in found]
    surfaces = [np.zeros(0, dtype=np.int32) if pull is None else pull.surface for pull in found]
    rooms = [0 if pull is None else pull.room(n) for pull, n in zip(found, sizes)]
    values, derivatives, second = address.reshape(-1, 3).T.copy()
    return {
        "values_function": values,
        "derivatives_function": derivatives,
        "second_function": second,
        "table_start": starts(np.array([len(table) for table in tables], dtype=int)),
        "table": np.concatenate([np.zeros(0), *tables]),
        "surface_start": starts(np.array([len(surface) for surface in surfaces], dtype=int)),
        "surface": np.concatenate([np.zeros(0, dtype=np.int32), *surfaces]),
        "side": np.array([1.0 if pull is None else pull.side for pull in found]),
        "room_start": starts(np.array(rooms, dtype=int)),
    }


def _check_finite(pulls: BodyPulls | LengthPulls, items: list[PathBody | BodyChamber | SurfacePressure]) -> None:
    """Raise ModelError if an actuator lies outside the material, or if the motion of the body is not differentiable at
    its points."""
    work, B, wrench = pulls.values(np.zeros((1, pulls.motion.n)))
    for item, *parts in zip(items, work[0], B[0], wrench[0]):
        finite = all(bool(np.isfinite(part).all()) for part in parts)
        rule = "its force on the body must be finite in the reference shape, at all its material points"
        checks.require(finite, f"link {item.link!r} > {type(item).__name__}", rule, parts[1])


# Weight, offset, slope and direction of a path at s, by the ids of actuator and path, with the two.
Courses = dict[tuple[int, int, float], tuple[Any, Any, tuple[float, np.ndarray, np.ndarray, bool]]]
_MOST_COURSES = 10_000  # more are discarded
TracedActuators = dict[tuple[Any, ...], NativeActuation]  # by function and the data that it reads


@final
class ActuationBuilder:
    """Collects tendons, chambers and wrenches while a robot is built. Once the nodes have numbers, its other methods
    return the frozen tables. `courses` and `traced` are caches, which later builders of the same robot use."""

    def __init__(
        self, robot: Robot, bodies: dict[str, PlacedBody], tree: TreeBuilder, courses: Courses, traced: TracedActuators
    ) -> None:
        self.robot, self.bodies, self.tree, self.courses, self.traced = robot, bodies, tree, courses, traced
        if len(courses) > _MOST_COURSES:
            courses.clear()
        owners = [a for a in robot.actuators.values() if isinstance(a, _WITH_CHANNELS) or is_traced(a)]
        self.owners: list[Any] = [actuator for actuator in owners for _ in range(robot.input_size(actuator))]
        self.names = [actuator.name for actuator in self.owners]
        self.first = _first_of(self.names)
        self.names += robot.inputs_of_forces()
        self.owners += robot.inputs_of_forces().values()
        self.rows: dict[tuple[str, float], list[tuple[int, float, np.ndarray, np.ndarray, bool]]] = {}
        self.segments: list[tuple[int, Piece]] = []
        self.pulls: list[tuple[int, PlacedDeformableBody, PathBody | BodyChamber | SurfacePressure]] = []
        for channel, actuator in enumerate(self.owners):
            if isinstance(actuator, Tendon | Chamber):
                self._add_path(channel, actuator)
            elif isinstance(actuator, BodyChamber | SurfacePressure):
                self._add_pull(channel, actuator, f"actuator {actuator.name!r}")
        self.pushes: list[tuple[int, Node, np.ndarray, np.ndarray, bool]] = []
        self.units = [_unit_of(actuator) for actuator in self.owners]
        for channel, actuator in enumerate(self.owners):
            if isinstance(actuator, WrenchInput):
                self._add_wrench(channel, actuator)

    def pulled(self) -> list[Node | None]:
        """Nodes with tendons or wrenches."""
        return nodes_of(piece for _, piece in self.segments) + [row[1] for row in self.pushes]

    def _add_path(self, channel: int, actuator: Tendon | Chamber) -> None:
        where = f"actuator {actuator.name!r}"
        for k, item in enumerate(actuator.path if isinstance(actuator, Tendon) else (actuator.path,)):
            if isinstance(item, PathBody):
                self._add_pull(channel, item, f"{where} > path[{k}]")
            elif isinstance(item, PathRod):
                for s, row in _path_rows(self.bodies[item.link], actuator, item, channel, where, self.courses):
                    self.rows.setdefault((item.link, s), []).append(row)
        if isinstance(actuator, Tendon):
            self.segments += [(channel, piece) for piece in path_pieces(actuator.path, self.bodies, where)]

    def _add_pull(self, channel: int, item: PathBody | BodyChamber | SurfacePressure, where: str) -> None:
        """Add an actuator that acts on the coordinates of a deformable body."""
        body = self.bodies[item.link]
        if not isinstance(body, PlacedDeformableBody):
            raise checks.fail(f"{where}: link", "must carry a DeformableBody", item.link)
        check_pull(body.body, item, where)
        self.pulls.append((channel, body, item))

    def _add_wrench(self, channel: int, actuator: WrenchInput) -> None:
        """Add a wrench input. An input on a link without nodes moves nothing and is left out. A wrench that turns with
        its body is stored in the axes of the node."""
        unit = actuator.columns("directions")[:, channel - self.first[actuator.name]]
        parts = [word for word, part in (("moment [N·m]", unit[:3]), ("force [N]", unit[3:])) if part.any()]
        self.units[channel] = parts[0] if len(parts) == 1 else "input"
        in_body = actuator.frame == "body"
        turns = in_body or bool(unit[:3].any()) or bool(np.any(actuator.position))
        node, G = anchor(self.bodies, actuator.link, actuator.s, turned=turns)
        turned = np.concatenate([G[:3, :3] @ unit[:3], G[:3, :3] @ unit[3:]]) if in_body else unit
        position = G[:3, 3] + G[:3, :3] @ np.asarray(actuator.position, dtype=np.float64)
        if node is not None:
            self.pushes.append((channel, node, turned, position, in_body))

    def points(self) -> tuple[Points, Paths]:
        """Strain points by link and s, with the values of the basis there, and the paths through each point."""
        flat = [row for paths in self.rows.values() for row in paths]
        on = [self.bodies[link].strain for link, _ in self.rows]
        bases = [strain.basis(s)[None] for strain, (_, s) in zip(on, self.rows)]
        start, column, phi = component_runs(bases, [strain.v_start for strain in on])
        points = Points(
            q_shift=np.array([strain.q_shift for strain in on], dtype=np.int32),
            xi=np.array([strain.reference(s) for strain, (_, s) in zip(on, self.rows)]).reshape(-1, 6),
            run_start=start,
            run_v=column,
            phi=phi[:, 0].copy(),
            path_start=np.cumsum([0] + [len(paths) for paths in self.rows.values()]).astype(np.int32),
        )
        return points, Paths(
            channel=np.array([row[0] for row in flat], dtype=np.int32),
            weight=np.array([row[1] for row in flat], dtype=np.float64),
            offset=np.array([row[2] for row in flat], dtype=np.float64).reshape(-1, 3),
            slope=np.array([row[3] for row in flat], dtype=np.float64).reshape(-1, 3),
            is_normal=np.array([row[4] for row in flat], dtype=np.int32),
        )

    def straight(self, springs: Sequence[tuple[int, float, Piece]]) -> Segments:
        """The pieces of tendons between two points, and those of springs along paths, each with the number of the
        spring and the factor of its length."""
        pieces = [piece for _, piece in self.segments] + [piece for *_, piece in springs]
        ends = [(index_of(a), index_of(b)) for (a, _), (b, _), _ in pieces]
        wraps = [wrap for *_, wrap in pieces if wrap is not None]
        number = np.cumsum([wrap is not None for *_, wrap in pieces]) - 1
        sides = [item.own_side() for item, _ in wraps]
        return Segments(
            channel=np.array([channel for channel, _ in self.segments], dtype=np.int32),
            spring=np.array([spring for spring, *_ in springs], dtype=np.int32),
            factor=np.array([factor for _, factor, _ in springs], dtype=np.float64),
            node=np.array(ends, dtype=np.int32).reshape(-1, 2),
            position=np.array([(a[1], b[1]) for a, b, _ in pieces]).reshape(-1, 2, 3),
            wrap=np.where([wrap is not None for *_, wrap in pieces], number, -1).astype(np.int32),
            wrap_node=np.array([index_of(node) for _, (node, _) in wraps], dtype=np.int32),
            wrap_placement=np.array([G for _, (_, G) in wraps]).reshape(-1, 4, 4),
            wrap_radius=np.array([item.shape.surface("shape").size[0] for item, _ in wraps], dtype=np.float64),
            wrap_is_sphere=np.array([item.is_sphere for item, _ in wraps], dtype=np.int32),
            wrap_has_side=np.array([side is not None for side in sides], dtype=np.int32),
            wrap_side=np.array([np.zeros(3) if side is None else side for side in sides]).reshape(-1, 3),
        )

    def spools(self, points: Points, paths: Paths, pulls: Pulls) -> Spools:
        """The elastic tendons. A slack length that is not given is the length in the neutral configuration."""
        rows = [(c, a) for c, a in enumerate(self.owners) if isinstance(a, Tendon) and a.is_elastic]
        slack = [
            self._neutral_path(points, paths, pulls, c) if a.slack_length is None else a.slack_length for c, a in rows
        ]
        return Spools(
            channel=np.array([c for c, _ in rows], dtype=np.int32),
            stiffness=np.array([a.stiffness for _, a in rows], dtype=np.float64),
            slack=np.array(slack, dtype=np.float64),
        )

    def _neutral_path(self, points: Points, paths: Paths, pulls: Pulls, channel: int) -> float:
        """Length of a tendon in the neutral configuration [m], by dynamics.actuation (1)."""
        rows = np.flatnonzero(paths.channel == channel)
        xi = points.xi[np.searchsorted(points.path_start, rows, side="right") - 1]
        tangent = xi[:, 3:] + np.cross(xi[:, :3], paths.offset[rows]) + paths.slope[rows]
        total = -float(paths.weight[rows] @ np.linalg.norm(tangent, axis=1)) - pulls.neutral_work(channel)
        for owner, piece in self.segments:
            if owner == channel:
                total += neutral_length(piece)
        return total

    def wrenches(self) -> Wrenches:
        """The controlled wrenches."""
        rows = self.pushes
        return Wrenches(
            channel=np.array([row[0] for row in rows], dtype=np.int32),
            node=np.array([row[1].index for row in rows], dtype=np.int32),
            unit=np.array([row[2] for row in rows], dtype=np.float64).reshape(-1, 6),
            position=np.array([row[3] for row in rows], dtype=np.float64).reshape(-1, 3),
            is_body=np.array([row[4] for row in rows], dtype=np.int32),
        )

    def channels(self) -> tuple[Channels, Inputs]:
        """The channels, and the inputs that drive them."""
        gain, inputs = _inputs(self.robot, self.first, len(self.names), self.tree)
        native = self._native()
        inputs = replace(inputs, native=native, traced=native)
        return Channels(
            names=tuple(self.names),
            actuator=tuple(self.owners),
            units=tuple(self.units),
            is_tendon=np.array([isinstance(actuator, Tendon) for actuator in self.owners], dtype=bool),
            gain=gain,
        ), inputs

    def _native(self) -> tuple[tuple[CustomActuator, int, NativeActuation], ...]:
        """Users' actuators as native code, each with its first channel."""
        tree, found = self.tree, []
        joints = [self.robot.links[name].joint for name in tree.names]
        poses = [
            (q, v, joint.nv == 6) for q, v, joint in zip(tree.q_start, tree.v_start, joints) if joint.nq != joint.nv
        ]
        for name, actuator in self.robot.actuators.items():
            if is_traced(actuator):
                function, size = actuator.function, actuator.size
                key = function.function, captured(function.function), size, actuator.linear
                if key not in self.traced:
                    where = f"actuator {name!r}: function"
                    self.traced[key] = function.actuation(
                        where, tree.q_start[-1], size, tree.dof_q, poses, linear=actuator.linear
                    )
                found.append((actuator, self.first[name], self.traced[key]))
        return tuple(found)


_WITH_CHANNELS = Tendon | Chamber | WrenchInput | BodyChamber | SurfacePressure


def is_traced(actuator: Actuator) -> TypeGuard[CustomActuator]:
    """Whether an actuator is a user's, with a function that becomes native code."""
    return isinstance(actuator, CustomActuator) and isinstance(actuator.function, TracedFunction)


def _unit_of(actuator: Actuator | Force) -> str:
    """Quantity and unit of the input of a tendon, a chamber, or a user's actuator or force."""
    if isinstance(actuator, Tendon):
        return "length pulled in [m]" if actuator.is_elastic else "tension [N]"
    return "input" if isinstance(actuator, CustomActuator | Force) else "pressure [Pa]"


def _path_rows(
    body: PlacedBody, actuator: Tendon | Chamber, item: PathRod, channel: int, where: str, courses: Courses
) -> Iterator[tuple[float, Any]]:
    """Quadrature points of a path along a body: s and (channel, signed weight, offset, slope, normal).

    The weight is −w for a tendon, which shortens, and +wA for a chamber. Each smooth stretch of the basis, clipped to
    the path, has the rod's number of Gauss points. Functions of s are called once for each point.
    """
    path = None
    low, high = sorted((item.start, item.stop))
    for start, stop, points, weights in body.stretches(where):
        a, b = max(start, low), min(stop, high)
        if b <= a:
            continue
        for fraction, weight in zip((points - start) / (stop - start), weights / (stop - start)):
            s = float(a + (b - a) * fraction)
            known = courses.get((id(actuator), id(item), s))
            if known is None:
                path = path or path_on_rod(actuator, item, 1.0)
                known = courses[id(actuator), id(item), s] = (actuator, item, path(s))
            size, d, slope, normal = known[2]
            yield s, (channel, weight * (b - a) * body.length * size, d, slope / body.length, normal)


def path_on_rod(
    actuator: Tendon | Chamber, item: PathRod, length: float
) -> Callable[[float], tuple[float, np.ndarray, np.ndarray, bool]]:
    """Path along a rod of some length, as a function of s that returns the signed weight per metre, the offset, its
    slope per metre, and whether the force is normal to the section."""
    where = f"actuator {actuator.name!r}"
    offset, slope = (make(item.offset, f"{where}: offset") for make in (offset_function, offset_slope))
    area = profile(actuator.area, f"{where}: area") if isinstance(actuator, Chamber) else None
    normal = isinstance(actuator, Chamber) and actuator.force == "volume"

    def at(s: float) -> tuple[float, np.ndarray, np.ndarray, bool]:
        size = -1.0 if area is None else area(s)
        return size, np.concatenate([[0.0], offset(s)]), np.concatenate([[0.0], slope(s) / length]), normal

    return at


def _ends_on(a: Point, b: Point, shape: Frame) -> tuple[np.ndarray, np.ndarray]:
    """Two points (3,) in the frame of a shape, in the neutral configuration."""
    node, G = shape
    inward = np.linalg.inv(neutral_pose(node) @ G)
    one, two = ((inward @ neutral_pose(end) @ np.append(x, 1.0))[:3] for end, x in (a, b))
    return one, two


def nodes_of(pieces: Iterable[Piece]) -> list[Node | None]:
    """The nodes that carry the ends of pieces of paths and the shapes between them."""
    return [node for a, b, wrap in pieces for node in (a[0], b[0], *(() if wrap is None else (wrap[1][0],)))]


def neutral_length(piece: Piece) -> float:
    """Length of a piece of a path between two points in the neutral configuration [m]."""
    a, b, wrap = piece
    return distance((a, b)) if wrap is None else wrap[0].course(*_ends_on(a, b, wrap[1]), 2)[0]


def path_pieces(path: Sequence[PathItem], bodies: dict[str, PlacedBody], where: str) -> Iterator[Piece]:
    """Pieces between consecutive items of a path, as pairs of (node, position), each with the shape between them and
    its frame, whose axis is z.

    Two rods fixed to each other at the same point of the path have no piece between them, since it has no length,
    direction or force.
    """

    def end(item: Any, s: float) -> Point:
        if isinstance(item, PathBody):
            body: Any = bodies[item.link]
            return body.end_of_path(item.ends()[round(s)])
        if isinstance(item, PathRod):
            return point(bodies, item.link, s, [0.0, *offset_function(item.offset, f"{where}: offset")(s)])
        return point(bodies, item.link, item.s, item.position)

    passed = [k for k, item in enumerate(path) if not isinstance(item, PathWrap)]
    for k, m in itertools.pairwise(passed):
        one, two = path[k], path[m]
        a, b = end(one, getattr(one, "stop", 1.0)), end(two, getattr(two, "start", 0.0))
        if m > k + 1:
            yield a, b, _wrapped(path[k + 1], bodies, a, b, f"{where} > path[{k + 1}]")
        elif a[0] is not b[0] or np.linalg.norm(b[1] - a[1]) > 1e-12:
            yield a, b, None


def _wrapped(item: Any, bodies: dict[str, PlacedBody], a: Point, b: Point, where: str) -> tuple[PathWrap, Frame]:
    """A shape round which a path runs from a to b, and its frame, whose axis is z."""
    node, G = anchor(bodies, item.link, item.s)
    surface, turn = item.shape.surface(f"{where} > shape"), np.eye(4)
    turn[:3, :3] = surface.rotation
    frame = node, G @ checks.pose(item.placement, f"{where}: placement") @ turn
    across = slice(None) if item.is_sphere else slice(2)
    far = min(float(np.linalg.norm(x[across])) for x in _ends_on(a, b, frame))
    if far < surface.size[0]:
        middle = "centre" if item.is_sphere else "axis"
        text = f"has an end of the path inside it in the neutral configuration, {far:.4g} m from its {middle}"
        cure = f"the path is straight while it is there; the radius is {surface.size[0]:g} m"
        warnings.warn(f"{where}: shape: {text}; {cure}", PlausibilityWarning, stacklevel=2)
    return item, frame


def _first_of(names: Sequence[str]) -> dict[str, int]:
    """The first index of each name."""
    return {name: len(names) - 1 - k for k, name in enumerate(reversed(names))}


def _inputs(robot: Robot, first_channel: dict[str, int], channels: int, tree: TreeBuilder) -> tuple[np.ndarray, Inputs]:
    """The gains from u to channels, and the names of the inputs with their gains to joints and custom actuators."""
    coupled = {member: c for c in robot.couplings.values() for member in c.gains}
    names: list[str] = []
    columns: dict[str, list[tuple[int, float]]] = {}
    column_of: dict[str, int] = {}  # of couplings
    for name, actuator in robot.actuators.items():
        size = robot.input_size(actuator)
        if name in coupled:
            coupling = coupled[name]
            if coupling.name not in column_of:
                column_of[coupling.name] = len(names)
                names.append(coupling.name)
            columns[name] = [(column_of[coupling.name], float(coupling.gains[name]))]
        else:
            first = len(names)
            names += [name] if size == 1 else [f"{name}[{k}]" for k in range(size)]
            columns[name] = [(first + k, 1.0) for k in range(size)]
    of_forces, first = list(robot.inputs_of_forces()), len(names)
    names += of_forces
    channel_gain, joint_gain = np.zeros((channels, len(names))), np.zeros((tree.nv, len(names)))
    for k in range(len(of_forces)):  # their channels are the last
        channel_gain[channels - len(of_forces) + k, first + k] = 1.0
    custom = []
    for name, actuator in robot.actuators.items():
        if isinstance(actuator, JointActuator):
            v = tree.v_start[tree.index[actuator.link]]
            for k, (column, gain) in enumerate(columns[name]):
                joint_gain[v + k, column] += gain
        elif isinstance(actuator, CustomActuator) and not is_traced(actuator):
            gains = np.zeros((actuator.size, len(names)))
            for k, (column, gain) in enumerate(columns[name]):
                gains[k, column] = gain
            custom.append((actuator, gains))
        else:
            for k, (column, gain) in enumerate(columns[name]):
                channel_gain[first_channel[name] + k, column] += gain
    return channel_gain, Inputs(tuple(names), joint_gain, tuple(custom), (), ())
