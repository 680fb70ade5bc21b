"""Tables of contacts, of the fluid, of users' forces and of springs between two points.

Bodies make contact by balls. Consecutive balls of a link form a cluster. A block holds the pairs of the balls of one
cluster with those of another, or with one shape. If the two are far apart, all pairs of the block are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, final

import numpy as np

from lissom.errors import AccuracyWarning
from lissom.lie.types import mat3, vec3
from lissom.model.actuation import Piece, neutral_length
from lissom.model.bodies import PlacedBody, anchor
from lissom.model.distance_grids import Grid, grid_of
from lissom.model.groups import (
    POSITION,
    ROTATION,
    Flag,
    Float,
    FloatRows,
    Floats,
    IntRows,
    Ints,
    Matrices3,
    Matrices6,
    Read,
    Vectors3,
    Vectors3Rows,
)
from lissom.model.nodes import Node, Point, distance, index_of, neutral_pose
from lissom.model.tree import Wet
from lissom.robot import checks
from lissom.robot.bodies import Body
from lissom.robot.contact_laws import (
    Geometry,
    Law,
    chosen_law,
    effective_modulus,
    factors,
    geometry_of_balls,
    geometry_of_shape,
    given_law,
    layer_stiffness,
)
from lissom.robot.contacts import Contact
from lissom.robot.expression_programs import jet, programs_of
from lissom.robot.fluid import Fluid
from lissom.robot.functions import is_compiled
from lissom.robot.materials import Material
from lissom.robot.poses import captured
from lissom.robot.robot import Robot
from lissom.robot.sampled_shapes import GRIDDED, SampledShape
from lissom.robot.shapes import Shape, ShapeKind, reach_of
from lissom.robot.traced_functions import NativeForce, TracedFunction

_RATE_STEP = 1e-5  # step of the difference for the rate of a current that is a function of time [s]
_NEIGHBOURS = 1.2  # balls of a link, or of a link and its parent, closer than this times their radii never touch
_PARALLEL = 0.17  # sine of the largest angle between axes that count as parallel
_CLUSTER_SIZE = 16  # balls of a cluster
_SHARE = 0.1  # radius for the margin, as a part of the largest moving shape, if no ball has a radius
_CORNERS = np.sqrt(3.0) * np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])  # of a tetrahedron around the
# unit sphere


class Ball(NamedTuple):
    """One ball of a link: name of the link, place s on it, number of the ball on the link, node, position in the node
    [m], radius [m], extent, outward normal and cell (2, 3) in the node, bends of the cell (2,) [m], and
    whether it is a triangle; see robot.surface_points."""

    link: str
    s: Any
    number: int
    node: Node | None
    position: np.ndarray
    radius: float
    extent: float
    normal: np.ndarray
    cell: np.ndarray
    bends: np.ndarray
    is_triangle: bool


class Obstacle(NamedTuple):
    """A shape or a ball that balls may touch.

    Fields:
        link, s: link (None for the world) and place on it.
        node, frame: node, and frame in the node, shape (4, 4).
        kind, size: kind and sizes of the shape, for kernels.
        shape: the shape; None for a ball.
        ball: number of the ball; None for a shape.
        grid: samples of the shape; None for a shape or a ball whose distance has a formula.
    """

    link: str | None
    s: Any
    node: Node | None
    frame: np.ndarray
    kind: ShapeKind
    size: tuple[float, float, float]
    shape: Shape | None
    ball: int | None
    grid: Grid | None = None


@final
@dataclass(frozen=True, eq=False)
class Contacts:
    """Balls of a robot, the obstacles that they may touch, and the pairs of both."""

    ball_link: tuple[str, ...]  # link of each ball
    ball_s: np.ndarray
    ball_node: Ints
    ball_position: Vectors3  # in the node [m]
    ball_radius: Floats  # [m]
    ball_normal: Vectors3  # outward normal of a surface point, in the node; zero for other balls
    ball_cell: (
        Vectors3Rows  # half-edges of the cell of a surface point, in the node (n, 2, 3) [m]; zero for other balls
    )
    ball_is_triangle: Ints  # 1 for a surface point whose cell is a triangle
    names: tuple[str, ...]  # of the contact of each row of `law`
    obstacle_link: tuple[str | None, ...]  # link of each shape or ball that balls may touch; None is the world
    obstacle_s: np.ndarray
    obstacle_kind: Ints  # of ShapeKind
    obstacle_node: Ints  # -1 for the world
    obstacle_placement: Annotated[
        np.ndarray, Read(mat3, name="obstacle_R", part=ROTATION), Read(vec3, name="obstacle_p", part=POSITION)
    ]  # in the node (n, 4, 4)
    obstacle_size: Vectors3  # sizes as in robot.shapes.Surface [m]
    obstacle_shape: tuple[Shape | None, ...]  # None for a ball
    obstacle_roams: Ints  # whether it is an unbounded shape on a link, all pairs of which count as near
    obstacle_grid: Ints  # index in `grids`, -1 for none
    grids: tuple[Grid, ...]
    pair: IntRows  # ball, obstacle and row of `law` (n, 3)
    pair_weight: Floats  # factor of both stiffnesses of the law, for each pair
    pair_bow: Vectors3  # depth ρ by which the curvature of an obstacle reduces the mean depth of a cell, and bends c of
    # both surfaces at the edges of the cell, see forces.cells [m]
    block: IntRows  # of pairs, see in_blocks (n, 4)
    cluster_start: Ints  # first ball of each cluster, then the number of balls
    law: FloatRows  # k, p, c, μ, v_s, k_t (0 for None) and τ of robot.contacts.Contact (n, 7)
    anchors: np.ndarray  # anchor of each pair (n, 6): point in the obstacle's frame [m], direction from the ball's
    # centre in its node; NaN for pairs that do not stick
    capacity: int  # largest number of pairs that may be near each other at once: near_pairs and all of surface points
    margin: Float  # distance below which a pair counts as near [m]

    @property
    def pair_nodes(self) -> np.ndarray:
        """The two nodes of each pair, shape (n, 2); -1 is the world."""
        return np.column_stack([self.ball_node[self.pair[:, 0]], self.obstacle_node[self.pair[:, 1]]])

    @property
    def has_rare_shapes(self) -> bool:
        """Whether an obstacle has one of the shapes of forces/rare_shapes."""
        return any(ShapeKind(kind).is_rare for kind in set(self.obstacle_kind.tolist()))

    @property
    def grid_low(self) -> Vectors3:
        """Position of the first sample of each grid [m]."""
        return np.array([grid.low for grid in self.grids]).reshape(-1, 3)

    @property
    def grid_spacing(self) -> Vectors3:
        """Distances of the samples of each grid [m]."""
        return np.array([grid.spacing for grid in self.grids]).reshape(-1, 3)

    @property
    def grid_count(self) -> IntRows:
        """Numbers of coefficients of each grid along its axes, and the index of its first coefficient (n, 4)."""
        start = np.cumsum([0, *(grid.coefficient.size for grid in self.grids)])
        rows = [(*grid.coefficient.shape, first) for grid, first in zip(self.grids, start.tolist())]
        return np.array(rows, dtype=np.int32).reshape(-1, 4)

    @property
    def grid_coefficient(self) -> Floats:
        """Coefficients of the splines of all grids."""
        return np.concatenate([np.zeros(0), *(grid.coefficient.ravel() for grid in self.grids)])

    @property
    def anchor(self) -> Vectors3Rows:
        """Both vectors of all anchors, shape (1, 2 n, 3). Kernels may get one row for each instance instead."""
        return self.anchors.reshape(1, -1, 3)

    @property
    def sticks(self) -> Flag:
        """Whether a contact has friction with anchors."""
        return bool(self.sticking)

    @property
    def sticking(self) -> tuple[str, ...]:
        """Names of the contacts that have friction with anchors."""
        return tuple(dict.fromkeys(name for name, law in zip(self.names, self.law) if law[3] > 0.0 and law[5] > 0.0))

    def laws_of(self, pairs: np.ndarray) -> np.ndarray:
        """Laws of pairs by their numbers, with their weights in both stiffnesses, shape (n, 7)."""
        law = self.law[self.pair[pairs, 2]]
        law[:, [0, 5]] *= self.pair_weight[pairs, None]
        return law


@final
@dataclass(frozen=True, eq=False)
class FluidNodes:
    """Nodes in the fluid, and the fluid's current."""

    node: Ints
    added: Matrices6  # added inertia
    drag: Matrices6  # drag matrix
    weightless: Matrices6  # inertia of the fluid driven and displaced, on which gravity does not act
    displaced: Matrices6  # inertia of the fluid displaced, a part of `weightless`
    tail_node: Ints  # nodes with the force of a wake
    tail_mass: Matrices3  # and the added mass across them
    current: Any  # velocity and rate of the fluid at time t, (6,), or a Warp function

    @property
    def has_current(self) -> Flag:
        """Whether the fluid flows."""
        return self.current is not None

    def rows(self, t: float) -> np.ndarray:
        """Velocity and acceleration of the current, then a row with the time, as kernels read them, shape (2, 6)."""
        out = np.zeros((2, 6))
        out[1, 0] = t
        if self.current is not None and not is_compiled(self.current):
            out[0] = self.current(t)
        return out


@final
@dataclass(frozen=True, eq=False)
class DrivenForce:
    """A force of a user that depends on inputs.

    Fields:
        name. function: the wrench as native code. inputs: the names of its channels.
        node, weight: of each frame on which it acts, (n,). is_spread: whether it is a force per metre along a rod.
    """

    name: str
    function: NativeForce
    inputs: tuple[str, ...]
    node: np.ndarray
    weight: np.ndarray
    is_spread: bool


@final
@dataclass(frozen=True, eq=False)
class UserForces:
    """Forces that are functions of a user: compiled ones, and those that stay in Python."""

    node: Ints  # of compiled forces
    which: Ints  # of `compiled`
    weight: Floats
    s: Floats
    is_spread: np.ndarray  # whether it is a force per metre, at a Gauss point of a rod
    compiled: tuple[Any, ...]  # the functions
    called: tuple[Any, ...]  # (name, function, node, placement, weight) of forces that stay in Python
    called_is_spread: np.ndarray
    driven: tuple[DrivenForce, ...]  # those that depend on inputs


@final
@dataclass(frozen=True, eq=False)
class Springs:
    """Springs without mass of their own: first those between two points, then those along paths, whose pieces are in
    Segments."""

    names: tuple[str, ...]
    place: np.ndarray  # of each spring of the description among these
    node: IntRows  # of both ends of those between two points, -1 for the world
    position: Vectors3Rows  # in these nodes (n, 2, 3)
    law: np.ndarray  # k, L₀, T₀, c of robot.springs.Spring, and 1 if its tension is never negative (n, 5)
    other_law: tuple[Any, ...]  # in place of k, L₀ and T₀: knots and coefficients, see cubic_pieces, or a Warp function

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_paths(self) -> int:
        """Number of the springs along paths."""
        return len(self.names) - len(self.node)


class BallNumbers(NamedTuple):
    """Numbers of n balls as arrays; see Ball. `node` has the identity of each node."""

    node: np.ndarray
    radius: np.ndarray
    extent: np.ndarray
    cell: np.ndarray
    bends: np.ndarray
    is_triangle: np.ndarray

    @classmethod
    def of(cls, balls: Sequence[Ball]) -> BallNumbers:
        """The numbers of some balls."""
        return cls(
            np.array([id(ball.node) for ball in balls], dtype=np.int64),
            np.array([ball.radius for ball in balls]),
            np.array([ball.extent for ball in balls]),
            np.array([ball.cell for ball in balls]).reshape(-1, 2, 3),
            np.array([ball.bends for ball in balls]).reshape(-1, 2),
            np.array([ball.is_triangle for ball in balls], dtype=bool),
        )


@final
class SurroundingsBuilder:
    """Collects contacts and forces during the build; `tables` freezes them once the nodes have numbers."""

    def __init__(
        self, robot: Robot, bodies: dict[str, PlacedBody], masses: Mapping[str, float], traced: dict[Any, Any]
    ) -> None:
        self.robot, self.bodies, self.masses, self.traced = robot, bodies, masses, traced
        self.names: list[str] = []
        self.balls: list[Ball] = []
        self.obstacles: list[Obstacle] = []
        self.made: dict[str, list[tuple[Contact, range]]] = {}  # the balls of each link, and the first contact of each
        self.known: BallNumbers | None = None  # of the balls so far
        self.pairs: list[np.ndarray] = []
        self.weights: list[np.ndarray] = []
        self.bows: list[np.ndarray] = []
        self.laws: list[Law] = []
        self.forces: list[tuple[Node | None, int, float, float, bool]] = []
        self.compiled: list[Any] = []
        self.called: list[tuple[str, Any, Node | None, np.ndarray, float]] = []
        self.called_is_spread: list[bool] = []
        self.driven: list[tuple[Any, NativeForce, list[tuple[Node | None, float]], bool]] = []
        for contact in robot.contacts.values():
            for one in _with_shapes(robot, contact):
                self._add_contact(one)
        warn_of_gaps(bodies)
        self.reach = [self._follow(obstacle) for obstacle in self.obstacles]  # after the balls
        for force in robot.forces.values():
            self._add_force(force)

    @property
    def varies(self) -> bool:
        """Whether forces depend on time: the current varies, or there are users' forces, except for traced ones that do
        not take the time."""
        fluid = self.robot.fluid
        functions = [*self.compiled, *(function for _, function, *_ in self.driven)]
        takes_time = any(getattr(function, "takes_time", True) for function in functions)
        return takes_time or bool(self.called) or (fluid is not None and callable(fluid.current))

    def pulled(self) -> list[Node | None]:
        """Nodes with contacts or forces."""
        touched = [ball.node for ball in self.balls] + [obstacle.node for obstacle in self.obstacles]
        driven = [node for *_, places, _ in self.driven for node, _ in places]
        return touched + [force[0] for force in self.forces] + [call[2] for call in self.called] + driven

    def _add_contact(self, contact: Contact) -> None:
        where = f"contact {contact.name!r}"
        ours = self._balls(contact.carriers(), contact, where)
        if contact.shape is not None:
            kind, size, rotation = contact.shape.surface(where)
            node, G = anchor(self.bodies, contact.on, contact.s)
            frame = np.eye(4)
            frame[:3, :3] = rotation
            g = G @ checks.pose(contact.placement, where) @ frame
            grid = None
            if isinstance(contact.shape, GRIDDED):
                reach = max((self.balls[k].radius for at in ours.values() for k in at), default=0.0)
                grid = grid_of(contact.shape, reach, f"{where} > shape")
                size = grid.size
            self.obstacles.append(Obstacle(contact.on, contact.s, node, g, kind, size, contact.shape, None, grid))
            obstacle = len(self.obstacles) - 1
            material = contact.material
            if material is None and contact.on is not None:
                material = self.bodies[contact.on].surface_material
            parts = [(link, material) for link in ours]
            starts, counts = (np.array(x, dtype=int) for x in zip(*((at.start, len(at)) for at in ours.values())))
            of_part = np.repeat(np.arange(len(parts)), counts)
            balls = np.arange(len(of_part)) + (starts - np.cumsum(counts) + counts)[of_part]
            kept = self.numbers.node[balls] != id(node)
            pairs = np.column_stack([balls[kept], np.full(kept.sum(), obstacle)])
            shape = Geometry(*(np.broadcast_to(x, len(pairs)) for x in geometry_of_shape(kind, size)))
            self._add_pairs(contact, parts, of_part[kept], pairs, shape)
            return
        theirs, first = self._balls(contact.touched(), contact, where), {}
        for link, at in theirs.items():
            first[link] = len(self.obstacles)
            for k in at:
                ball = self.balls[k]
                frame = np.eye(4)
                frame[:3, 3] = ball.position
                size = (ball.radius, 0.0, 0.0)
                self.obstacles.append(Obstacle(ball.link, ball.s, ball.node, frame, ShapeKind.SPHERE, size, None, k))
        balls, obstacles = ({link: self.balls[at.start : at.stop] for link, at in x.items()} for x in (ours, theirs))
        found = possible_pairs(self.robot, self.bodies, contact, balls, obstacles)
        parts = [(a, self.bodies[b].surface_material) for a, b in found]
        own = [rows + np.array([ours[a].start, theirs[b].start]) for (a, b), rows in found.items()]
        pairs = np.vstack([np.zeros((0, 2), dtype=int), *own])
        of_part = np.repeat(np.arange(len(own)), [len(rows) for rows in own])
        geometry = self._geometry(pairs[:, 1])
        pairs[:, 1] += np.array([first[b] - theirs[b].start for _, b in found], dtype=int)[of_part]  # to obstacles
        self._add_pairs(contact, parts, of_part, pairs, geometry)

    @property
    def numbers(self) -> BallNumbers:
        """The numbers of the balls so far."""
        if self.known is None or len(self.known.node) != len(self.balls):
            self.known = BallNumbers.of(self.balls)
        return self.known

    def _geometry(self, balls: np.ndarray) -> Geometry:
        """Geometry of balls by their numbers."""
        return geometry_of_balls(self.numbers.radius[balls], self.numbers.extent[balls])

    def _add_pairs(
        self, contact: Contact, parts: Sequence[tuple[str, Material | None]], of_part: np.ndarray, pairs: np.ndarray,
        geometry: Geometry,
    ) -> None:  # fmt: skip
        """Add the pairs (n, 2) of balls and obstacles of a contact, with a law for each part and each exponent in it.

        Args:
            parts: the link of the balls, and the material of the obstacles, None if they are rigid. of_part: the number
                of the part of each pair (n,), ascending. geometry: of the obstacles, in n rows.
        """
        if contact.stiffness is not None and not contact.surface:
            shared: dict[Law, int] = {}
            rows = np.zeros(len(parts), dtype=int)
            for k, (link, other) in enumerate(parts):
                law = given_law(contact, self.bodies[link].surface_material, other)
                if law not in shared:
                    shared[law] = self._add_law(contact, law)
                rows[k] = shared[law]
            self.pairs.append(np.column_stack([pairs, rows[of_part]]).astype(np.int32))
            self.weights.append(np.ones(len(pairs)))
            self.bows.append(np.zeros((len(pairs), 3)))
            return
        parallel = self._parallel(pairs, geometry)
        exponents, weights = factors(self._geometry(pairs[:, 0]), geometry, parallel, on_layer=bool(contact.surface))
        keys = 4.0 * of_part + exponents  # exponents are at most 2
        _, first, row = np.unique(keys, return_index=True, return_inverse=True)
        mean = np.bincount(row, weights, minlength=len(first)) / np.bincount(row, minlength=len(first))
        found: dict[tuple[Any, ...], Law] = {}  # links that are alike have equal laws
        start = len(self.laws)
        for k, factor in zip(first.tolist(), mean.tolist()):
            (link, other), exponent = parts[int(of_part[k])], float(exponents[k])
            body, mass = self.bodies[link], self.masses[link]
            own, thickness = body.surface_material, body.layer if contact.surface else 0.0
            key = id(own), id(other), thickness, exponent, factor, mass
            if key not in found:
                modulus = effective_modulus(own, other)
                if contact.surface:
                    layer = thickness if contact.on is None else self.bodies[contact.on].layer
                    modulus = contact.stiffness or layer_stiffness(own, other, thickness, layer)
                found[key] = chosen_law(contact, own, other, modulus, exponent, factor, mass)
            self._add_law(contact, found[key])
        self.pairs.append(np.column_stack([pairs, start + row]).astype(np.int32))
        self.weights.append(weights)
        self.bows.append(self._bows(pairs[:, 0], geometry.low, geometry.high))

    def _parallel(self, pairs: np.ndarray, geometry: Geometry) -> np.ndarray:
        """Whether the axes of rods and cylinders and those of obstacles are parallel within 10 degrees in the neutral
        configuration, for pairs (n, 2)."""
        has_axis = np.broadcast_to((geometry.high > 0.0) & (geometry.low == 0.0), len(pairs))
        if not has_axis.any():
            return has_axis
        balls, obstacles = (np.unique(x, return_inverse=True) for x in pairs.T)
        ours = np.array([self._axis(self.balls[k]) for k in balls[0]])[balls[1]]
        theirs = np.array([self._obstacle_axis(self.obstacles[k]) for k in obstacles[0]])[obstacles[1]]
        both = ours.any(axis=1) & theirs.any(axis=1)
        return has_axis & both & (np.linalg.norm(np.cross(ours, theirs), axis=1) < _PARALLEL)

    def _axis(self, ball: Ball) -> np.ndarray:
        """Axis (3,) of the rod or cylinder of a ball in the neutral configuration, in the world; zero for others."""
        if ball.radius == 0.0 or ball.extent == 0.0:
            return np.zeros(3)
        node, G = anchor(self.bodies, ball.link, ball.s)
        return neutral_pose(node)[:3, :3] @ G[:3, 0]

    def _obstacle_axis(self, obstacle: Obstacle) -> np.ndarray:
        """Axis (3,) of an obstacle, likewise."""
        if obstacle.ball is not None:
            return self._axis(self.balls[obstacle.ball])
        return neutral_pose(obstacle.node)[:3, :3] @ obstacle.frame[:3, 2]

    def _bows(self, balls: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Rows (n, 3) of `pair_bow` of the cells of balls and obstacles with given curvatures [1/m].

        The direction in which an obstacle curves is not known here. Its mean curvature reduces the mean depth. It adds
        to the bends of the cell if it is the same in all directions.
        """
        known = self.numbers
        edges, bends, is_triangle = known.cell[balls], known.bends[balls], known.is_triangle[balls]
        squares = (edges**2).sum(axis=2)
        spread = squares.sum(axis=1) / 3.0  # mean square of the distance from the point
        spread = np.where(is_triangle, (squares.sum(axis=1) + (edges.sum(axis=1) ** 2).sum(axis=1)) / 12.0, spread)
        is_sphere = (low == high) & np.isfinite(high) & ~is_triangle
        more = np.where(is_sphere[:, None], 0.5 * high[:, None] * squares, 0.0)
        return np.column_stack([0.25 * (low + high) * spread, bends + more])

    def _add_law(self, contact: Contact, law: Law) -> int:
        """The number of a new row of the laws."""
        self.names.append(contact.name)
        self.laws.append(law)
        return len(self.laws) - 1

    def _balls(self, links: tuple[str, ...], contact: Contact, where: str) -> dict[str, range]:
        """The numbers of the balls of each link. Contacts with the same balls share them."""
        found = {}
        for link in links:
            known = [at for other, at in self.made.get(link, ()) if other.same_balls(contact)]
            if known:
                found[link] = known[0]
                continue
            first = len(self.balls)
            for n, (at, (node, position), row) in enumerate(self.bodies[link].balls(contact, where)):
                self.balls.append(Ball(link, at, n, node, position, float(row[0]), float(row[1]), row[2:5],
                                       row[5:11].reshape(2, 3), row[11:13], bool(row[13])))  # fmt: skip
            found[link] = range(first, len(self.balls))
            self.made.setdefault(link, []).append((contact, found[link]))
        return found

    def _follow(self, obstacle: Obstacle) -> float | None:
        """Add four points around a bounded shape on a link, which move as far as any of its points, so that the list of
        near pairs is renewed when the shape moves. Returns the radius of a sphere around the shape [m], None if it is
        unbounded."""
        if obstacle.shape is None or obstacle.node is None or obstacle.link is None:
            return None
        centre, reach = np.zeros(3), reach_of(obstacle.kind, obstacle.size)
        if isinstance(obstacle.shape, SampledShape):
            low, high = obstacle.shape.bounds("shape")
            centre, reach = 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
        if reach is None:
            return None
        for n, corner in enumerate(_CORNERS):
            position = obstacle.frame[:3, 3] + obstacle.frame[:3, :3] @ centre + reach * corner
            none = np.zeros(3), np.zeros((2, 3)), np.zeros(2), False  # normal, cell, its bends and kind
            self.balls.append(Ball(obstacle.link, obstacle.s, n, obstacle.node, position, 0.0, 0.0, *none))
        return reach

    def _add_force(self, force: Any) -> None:
        where, function = f"force {force.name!r}", force.function
        if isinstance(function, TracedFunction) and not force.inputs:
            function = function.force(f"{where}: function")
        stations = self.bodies[force.link].stations() if force.s is None else []
        spread, driven = bool(stations), []
        for at, weight in stations or [(1.0 if force.s is None else force.s, 1.0)]:
            node, G = anchor(self.bodies, force.link, at)
            s = self.bodies[force.link].along(at)
            if is_compiled(function) or force.inputs:
                checks.require(bool((np.eye(4) == G).all()), where, "a compiled force needs a node of its own", force.s)
            if force.inputs:
                driven.append((node, weight))
            elif is_compiled(function):
                self.forces.append((node, self._number(function), weight, s, spread))
            else:
                self.called.append((force.name, function, node, G, weight))
                self.called_is_spread.append(spread)
        if driven:
            self.driven.append((force, self._native(force, f"{where}: function"), driven, spread))

    def _native(self, force: Any, where: str) -> NativeForce:
        """The function of a force with inputs as native code."""
        function = force.function
        key = "force", function.function, captured(function.function), len(force.inputs)
        if key not in self.traced:
            self.traced[key] = function.driven_force(where, len(force.inputs))
        return self.traced[key]

    def _number(self, function: Any) -> int:
        """The number of a compiled function; forces of the same function share it."""
        if function not in self.compiled:
            self.compiled.append(function)
        return self.compiled.index(function)

    def tables(
        self, wet: list[tuple[Node, Wet]], tails: list[tuple[Node, np.ndarray]]
    ) -> tuple[Contacts, FluidNodes, UserForces]:
        """Tables of contacts, of the fluid and of users' forces; `wet` are the nodes in the fluid, `tails` the nodes
        with a wake."""
        found = zip(*self.obstacles) if self.obstacles else ((),) * 9
        links, places, nodes, frames, kinds, sizes, shapes, _, of_obstacle = found
        grids = tuple({id(grid): grid for grid in of_obstacle if grid is not None}.values())
        place = {id(grid): k for k, grid in enumerate(grids)}
        cluster = clusters(self.balls)
        theirs = np.array(
            [-1 - k if o.ball is None else cluster[o.ball] for k, o in enumerate(self.obstacles)], dtype=int
        )
        pairs, blocks, order = in_blocks(np.vstack([np.zeros((0, 3), np.int32), *self.pairs]), cluster, theirs)
        radii = np.array([ball.radius for ball in self.balls])
        normals = np.array([ball.normal for ball in self.balls]).reshape(-1, 3)
        contacts = Contacts(
            ball_link=tuple(ball.link for ball in self.balls),
            ball_s=np.array([self.bodies[ball.link].along(ball.s) for ball in self.balls]),
            ball_node=np.array([index_of(ball.node) for ball in self.balls], dtype=np.int32),
            ball_position=np.array([ball.position for ball in self.balls]).reshape(-1, 3),
            ball_radius=radii,
            ball_normal=normals,
            ball_cell=np.array([ball.cell for ball in self.balls]).reshape(-1, 2, 3),
            ball_is_triangle=np.array([ball.is_triangle for ball in self.balls], dtype=np.int32),
            names=tuple(self.names),
            obstacle_link=links,
            obstacle_s=np.array([1.0 if x is None else self.bodies[x].along(s) for x, s in zip(links, places)]),
            obstacle_kind=np.array([kind.value for kind in kinds], dtype=np.int32),
            obstacle_node=np.array([index_of(node) for node in nodes], dtype=np.int32),
            obstacle_placement=np.array(frames).reshape(-1, 4, 4),
            obstacle_shape=tuple(shapes),
            obstacle_roams=np.array(
                [
                    o.shape is not None and o.node is not None and reach is None
                    for o, reach in zip(self.obstacles, self.reach)
                ],
                dtype=np.int32,
            ),
            obstacle_grid=np.array([place.get(id(grid), -1) for grid in of_obstacle], dtype=np.int32),
            grids=grids,
            obstacle_size=np.array(sizes, dtype=np.float64).reshape(-1, 3),
            pair=pairs,
            pair_weight=np.concatenate([np.zeros(0), *self.weights])[order],
            pair_bow=np.concatenate([np.zeros((0, 3)), *self.bows])[order],
            block=blocks,
            cluster_start=np.append(np.flatnonzero(np.diff(cluster, prepend=-1)), len(cluster)).astype(np.int32),
            law=np.array(self.laws).reshape(-1, 7),
            anchors=np.full((len(pairs), 6), np.nan),
            capacity=min(len(pairs), self.robot.near_pairs + int(normals[pairs[:, 0]].any(axis=1).sum())),
            margin=2.0 * (float(radii.max(initial=0.0)) or _SHARE * max(filter(None, self.reach), default=0.0)) + 1e-3,
        )
        fluid = FluidNodes(
            node=np.array([node.index for node, _ in wet], dtype=np.int32),
            added=np.array([x.added for _, x in wet]).reshape(-1, 6, 6),
            drag=np.array([x.drag for _, x in wet]).reshape(-1, 6, 6),
            weightless=np.array([x.weightless for _, x in wet]).reshape(-1, 6, 6),
            displaced=np.array([x.weightless - x.added for _, x in wet]).reshape(-1, 6, 6),
            tail_node=np.array([node.index for node, _ in tails], dtype=np.int32),
            tail_mass=np.array([mass for _, mass in tails]).reshape(-1, 3, 3),
            current=_current(self.robot.fluid),
        )
        forces = UserForces(
            node=np.array([index_of(row[0]) for row in self.forces], dtype=np.int32),
            which=np.array([row[1] for row in self.forces], dtype=np.int32),
            weight=np.array([row[2] for row in self.forces]),
            s=np.array([row[3] for row in self.forces]),
            is_spread=np.array([row[4] for row in self.forces], dtype=bool),
            compiled=tuple(self.compiled),
            called=tuple((name, f, index_of(node), G, weight) for name, f, node, G, weight in self.called),
            called_is_spread=np.array(self.called_is_spread, dtype=bool),
            driven=tuple(
                DrivenForce(
                    force.name,
                    function,
                    force.inputs,
                    np.array([index_of(node) for node, _ in places], dtype=np.int32),
                    np.array([weight for _, weight in places]),
                    spread,
                )
                for force, function, places, spread in self.driven
            ),
        )
        return contacts, fluid, forces


def _with_shapes(robot: Robot, contact: Contact) -> Iterator[Contact]:
    """A contact, or if surfaces touch other links, contacts of the surfaces with the shape of each of these links."""
    if not (contact.surface and contact.others):
        yield contact
        return
    for other in contact.touched():
        body = robot.links[other].body
        form = body.contact_shape() if isinstance(body, Body) else None
        links = tuple(link for link in contact.carriers() if link != other)
        if form is not None and links:
            shape, place = form
            yield replace(contact, links=links, shape=shape, on=other, placement=place.tolist(), others=None)


def warn_of_gaps(bodies: dict[str, PlacedBody]) -> None:
    """Issue one AccuracyWarning about all links whose contact balls fill meshes."""
    fits = {name: body.fit for name, body in bodies.items() if body.fit is not None}
    gaps = {name: fit.gap for name, fit in fits.items()}
    hulls = [name for name, fit in fits.items() if fit.is_hull]
    if gaps:
        worst = max(gaps, key=lambda name: gaps[name])
        many = f"{len(gaps)} links" if len(gaps) > 1 else f"link {worst!r}"
        text = f"balls fill the collision meshes of {many}, up to {1e3 * gaps[worst]:.2g} mm from the surface"
        text = f"{text} ({worst!r})" if len(gaps) > 1 else text
        more = [f"{name!r}" for name in hulls[:1]] + [f"{len(hulls) - 1} more links"] * (len(hulls) > 1)
        hint = f"; open meshes of {' and '.join(more)} count as their convex hulls" if hulls else ""
        rows = [f"{name!r}: up to {1e3 * gap:.2g} mm{', open: convex hull' if name in hulls else ''}"
                for name, gap in gaps.items()]  # fmt: skip
        warnings.warn(AccuracyWarning(f"{text}; more balls fit closer{hint}", "\n".join(rows)), stacklevel=5)


def _current_rule(t: float) -> str:
    return f"the function must return finite values of shape (3,), and have a rate, at {t:g}"


def _current(fluid: Fluid | None) -> Any:
    """The current as a function of t that returns its velocity and acceleration (6,), or as a Warp function."""
    if fluid is None or fluid.current is None or is_compiled(fluid.current):
        return None if fluid is None else fluid.current
    where = "fluid: current"
    if isinstance(fluid.current, TracedFunction):
        return fluid.current.current(where)
    if not callable(fluid.current):
        steady = np.concatenate([checks.array(fluid.current, (3,), where, "must be a finite 3-vector"), np.zeros(3)])
        return lambda t: steady
    given: Callable[[float], Any] = fluid.current

    programs = programs_of(given, 3)
    if programs is not None:
        return lambda t: checks.array([jet(x, t)[k] for k in (0, 1) for x in programs], (6,), where, _current_rule(t))

    def moving(t: float) -> np.ndarray:
        before, now, after = (checks.call(given, t + x, (3,), where) for x in (-_RATE_STEP, 0.0, _RATE_STEP))
        return np.concatenate([now, (after - before) / (2.0 * _RATE_STEP)])

    return moving


def clusters(balls: Sequence[Ball]) -> np.ndarray:
    """Number of the cluster of each ball, from 0. The clusters of a link have consecutive numbers."""
    return np.cumsum([ball.number % _CLUSTER_SIZE == 0 for ball in balls], dtype=np.int32) - 1


def in_blocks(pairs: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs (ball, obstacle, law), shape (n, 3), sorted by blocks, and the blocks.

    Args:
        ours: cluster of each ball. theirs: cluster of each obstacle that is a ball; −1 − k for a shape with number k.

    Returns:
        pairs (n, 3); blocks (m, 4): cluster, other cluster or −1 for a shape, first pair and end of its pairs; and the
        former numbers of the pairs (n,).
    """
    a, b = ours[pairs[:, 0]], theirs[pairs[:, 1]]
    order = np.lexsort((b, a, pairs[:, 2]))
    pairs, a, b = pairs[order], a[order], b[order]
    begins = np.ones(len(pairs), dtype=bool)
    begins[1:] = (np.diff(a) != 0) | (np.diff(b) != 0) | (np.diff(pairs[:, 2]) != 0)
    first = np.flatnonzero(begins)
    ends = np.append(first[1:], len(pairs))[: len(first)]
    return pairs, np.column_stack([a[first], np.maximum(b[first], -1), first, ends]).astype(np.int32), order


def possible_pairs(
    robot: Robot,
    bodies: Mapping[str, PlacedBody],
    contact: Contact,
    ours: Mapping[str, Sequence[Ball]],
    theirs: Mapping[str, Sequence[Ball]],
) -> dict[tuple[str, str], np.ndarray]:
    """Pairs of balls that may touch, for each pair of links, as numbers of the balls on their links (n, 2). Balls that
    are close along the links are left out."""
    twice, place = set(contact.carriers()) & set(contact.touched()), {name: k for k, name in enumerate(robot.links)}
    found = {}
    for a, some in ours.items():
        for b, others in theirs.items():
            if {a, b} <= twice and place[a] > place[b]:
                continue  # the same pair of links in the other order
            may = np.array([id(x.node) for x in some])[:, None] != np.array([id(x.node) for x in others])
            if a == b and a in twice:
                may &= np.arange(len(some))[:, None] < np.arange(len(others))
            apart = _apart(robot, bodies, a, some, b, others)
            if apart is not None:
                may &= apart > _NEIGHBOURS * (_radii(some)[:, None] + _radii(others))
            found[a, b] = np.argwhere(may)
    return found


def _apart(
    robot: Robot, bodies: Mapping[str, PlacedBody], a: str, ours: Sequence[Ball], b: str, theirs: Sequence[Ball]
) -> np.ndarray | None:
    """Distances along the links between balls of a link, or of a link and its parent [m]; None for other links."""
    if a == b:
        return np.array([[bodies[a].between(x.s, y.s) for y in theirs] for x in ours])
    if robot.links[a].parent == b:
        to_joint, from_joint = robot.links[a].at, 0.0
        return _along(bodies[a], ours, from_joint)[:, None] + _along(bodies[b], theirs, to_joint)
    if robot.links[b].parent == a:
        return _along(bodies[a], ours, robot.links[b].at)[:, None] + _along(bodies[b], theirs, 0.0)
    return None


def _along(body: PlacedBody, balls: Sequence[Ball], at: Any) -> np.ndarray:
    return np.array([body.between(ball.s, at) for ball in balls])


def _radii(balls: Sequence[Ball]) -> np.ndarray:
    return np.array([ball.radius for ball in balls])


def spring_tables(robot: Robot, ends: list[tuple[Point, Point]], pieces: Sequence[tuple[int, float, Piece]]) -> Springs:
    """The tables of springs from the two ends of each, and from the pieces of those along paths with their factors. The
    nodes must have numbers."""
    law, other = [], []
    springs = list(robot.springs.values())
    order = sorted(range(len(springs)), key=lambda k: not springs[k].is_straight)
    given = [springs[k] for k in order]
    for k, spring in enumerate(given):
        rest = spring.rest
        if rest is None and spring.law is None and spring.is_straight:
            rest = distance(ends[k])
        elif rest is None and spring.law is None:
            rest = sum(factor * neutral_length(piece) for n, factor, piece in pieces if n == k - len(ends))
        law.append((spring.stiffness, rest or 0.0, spring.preload, spring.damping, float(spring.slack)))
        where, found = f"spring {spring.name!r}", spring.law
        if isinstance(found, TracedFunction):
            found = found.spring_law(f"{where}: law", 2)
        elif found is not None and not is_compiled(found):
            found = spring.table(where)
        other.append(found)
    return Springs(
        names=tuple(spring.name for spring in given),
        place=np.argsort(np.array(order, dtype=int)),
        node=np.array([[index_of(node) for node, _ in pair] for pair in ends], dtype=np.int32).reshape(-1, 2),
        position=np.array([[x for _, x in pair] for pair in ends]).reshape(-1, 2, 3),
        law=np.array(law).reshape(-1, 5),
        other_law=tuple(other),
    )
