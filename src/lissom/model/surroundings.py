"""Tables of contacts, of the fluid, of users' forces and of springs between two points.

Bodies make contact by balls: points on rods and deformable bodies, and on the shapes of rigid bodies. Points of each of
two bodies touch the shapes of the other one, or the balls of a body without shapes. Consecutive balls of a link form a
cluster. A block holds the pairs of the balls of one cluster with those of another, or with one shape. If the two are
far apart, all pairs of the block are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, final

import numpy as np

from lissom.errors import AccuracyWarning, ModelError
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
from lissom.robot.contact_laws import (
    Geometry,
    Law,
    chosen_law,
    column_factors,
    effective_modulus,
    factors,
    geometry_of_balls,
    geometry_of_shape,
    given_law,
    layer_stiffness,
    patch_factor,
    rest_depth,
    stiffened,
)
from lissom.robot.contact_points import (
    FILLING,
    Points,
    closed_shape,
    detail_on,
    shape_points,
    size_of,
    surface_rows,
    turned_rows,
)
from lissom.robot.contacts import EVERYTHING, Contact, warn_of_drawings
from lissom.robot.expression_programs import jet, programs_of
from lissom.robot.fluid import Fluid
from lissom.robot.functions import Tabulated, is_compiled
from lissom.robot.joints import JointFree
from lissom.robot.materials import Material
from lissom.robot.native_functions import NativeFunction
from lissom.robot.poses import captured
from lissom.robot.robot import Robot
from lissom.robot.sampled_shapes import GRIDDED, SampledShape
from lissom.robot.shapes import Shape, ShapeKind, ShapePlane, ShapeSphere, reach_of
from lissom.robot.surface_points import COLUMNS
from lissom.robot.traced_functions import NativeForce, TracedFunction

_RATE_STEP = 1e-5  # step of the difference for the rate of a current that is a function of time [s]
_NEIGHBOURS = 1.2  # balls of a link, or of a link and its parent, closer than this times their radii never touch
_PARALLEL = 0.17  # sine of the largest angle between axes that count as parallel
_CLUSTER_SIZE = 16  # balls of a cluster
_DEEP = 4e-3  # depth of points inside the hull of a mesh that is told, relative to its size
_SHARE = 0.1  # radius for the margin, as a part of the largest moving shape, if no ball has a radius
_CORNERS = np.sqrt(3.0) * np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])  # of a tetrahedron around the
# unit sphere


class Ball(NamedTuple):
    """One ball of a link or of the world: name of the link, None for the world, place s on it, number of the ball on
    the link, node, position in the node [m], radius [m], extent, outward normal and cell (2, 3) in the node, bends of
    the cell (2,) [m], whether it is a triangle, half of the part of an axis for which it stands, in the node (3,) [m],
    and the vectors of the half-axes of an ellipsoid inside of which it rolls, in the node (3, 3) [m], zero for others;
    see robot.surface_points and robot.contact_points."""

    link: str | None
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
    part: np.ndarray
    half_axes: np.ndarray


class ContactShape(NamedTuple):
    """A shape that takes part in contacts.

    Fields:
        link, s: link (None for the world) and place on it.
        node, frame: node, and pose (4, 4) of the shape's frame in the node.
        shape. where: its place in the description, for errors. filling: largest number of balls that fill it.
        is_own: whether it is a collision shape of the link. why_hull: why it is the convex hull of a mesh; empty if it
        is not.
    """

    link: str | None
    s: Any
    node: Node | None
    frame: np.ndarray
    shape: Shape
    where: str
    filling: int
    is_own: bool
    why_hull: str = ""


class Side(NamedTuple):
    """One side of a contact: a link, or the shape that a contact names, with numbers of its pieces.

    Fields:
        link: None for the world. pieces: numbers of the shapes. has_balls: whether the link touches by balls of its own
        in place of points of these shapes.
        material: None is rigid. body: None for the world. form: kinds and sizes of its shapes, equal for sides that
        touch by one law.
        is_given: whether the contact names the shape.
    """

    link: str | None
    pieces: tuple[int, ...]
    has_balls: bool
    material: Material | None
    body: PlacedBody | None
    form: Any
    is_given: bool = False

    @property
    def material_of_surface(self) -> Material | None:
        """The material of an elastic layer on its surface, stiffened if its body deforms itself."""
        if self.material is None or self.body is None or not self.body.deforms:
            return self.material
        return stiffened(self.material)

    @property
    def layer(self) -> float:
        """Thickness of the elastic layer of its surface [m]; 0 for the world."""
        return 0.0 if self.body is None else self.body.layer


class Obstacle(NamedTuple):
    """A shape or a ball that balls may touch.

    Fields:
        link, s: link (None for the world) and place on it.
        node, frame: node, and frame in the node, shape (4, 4).
        kind, size: kind and sizes of the shape, for kernels.
        shape: the shape; None for a ball.
        ball: number of the ball; None for a shape.
        where: place of the shape in the description, for errors. is_own: whether it is a collision shape of its link.
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
    where: str = ""
    is_own: bool = False
    grid: Grid | None = None


@final
@dataclass(frozen=True, eq=False)
class Contacts:
    """Balls of a robot, the obstacles that they may touch, and the pairs of both."""

    ball_link: tuple[str | None, ...]  # link of each ball; None is the world
    ball_s: np.ndarray
    ball_node: Ints
    ball_position: Vectors3  # in the node [m]
    ball_radius: Floats  # [m]
    ball_normal: Vectors3  # outward normal of a surface point, in the node; zero for other balls
    ball_cell: (
        Vectors3Rows  # half-edges of the cell of a surface point, in the node (n, 2, 3) [m]; zero for other balls
    )
    ball_is_triangle: Ints  # 1 for a surface point whose cell is a triangle
    ball_part: Vectors3  # half of the part of an axis for which a ball stands, in the node [m]; zero for other balls
    ball_squares: (
        Matrices3  # Q of forces.contact (16) of a ball that rolls in an ellipsoid, in the node [m²]; else zero
    )
    names: tuple[str, ...]  # of the contact of each row of `law`
    obstacle_link: tuple[str | None, ...]  # link of each shape or ball that balls may touch; None is the world
    obstacle_s: np.ndarray
    obstacle_kind: Ints  # of ShapeKind
    obstacle_node: Ints  # -1 for the world
    obstacle_placement: Annotated[
        np.ndarray, Read(mat3, name="obstacle_R", part=ROTATION), Read(vec3, name="obstacle_p", part=POSITION)
    ]  # in the node (n, 4, 4)
    obstacle_size: Vectors3  # sizes as in robot.shapes.Surface [m]
    obstacle_shape: tuple[Shape | None, ...]  # to draw: None for a ball, and for a shape of a link
    obstacle_roams: Ints  # whether it is an unbounded shape on a link, all pairs of which count as near
    obstacle_grid: Ints  # index in `grids`, -1 for none
    grids: tuple[Grid, ...]
    pair: IntRows  # ball, obstacle and row of `law` (n, 3)
    pair_weight: Floats  # factor of both stiffnesses of the law, for each pair
    pair_bow: Vectors3  # depth ρ by which the curvature of an obstacle reduces the mean depth of a cell, and bends c of
    # both surfaces at the edges of the cell, see forces.cells [m]
    block: IntRows  # of pairs, see in_blocks (n, 4)
    cluster_start: Ints  # first ball of each cluster, then the number of balls
    watched: Ints  # balls whose motion renews the list of near pairs: all but those of shapes, which have four around
    law: FloatRows  # k, p, c, μ, v_s, k_t (0 for None), τ, b and v_r of robot.contact_laws.Law (n, 9)
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

    @cached_property
    def sticking(self) -> tuple[str, ...]:
        """Names of the contacts that have friction with anchors."""
        return tuple(dict.fromkeys(name for name, law in zip(self.names, self.law) if law[3] > 0.0 and law[5] > 0.0))

    def laws_of(self, pairs: np.ndarray) -> np.ndarray:
        """Laws of pairs by their numbers, with their weights in both stiffnesses, shape (n, 9)."""
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
    compiled: tuple[Any, ...]  # Warp functions, then native code
    called: tuple[Any, ...]  # (name, function, node, placement, weight) of forces that stay in Python
    called_is_spread: np.ndarray
    driven: tuple[DrivenForce, ...]  # those that depend on inputs

    @property
    def native(self) -> list[NativeFunction]:
        """The compiled forces that are native code."""
        return [function for function in self.compiled if isinstance(function, NativeFunction)]


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
        self.pieces: list[ContactShape] = []
        self.pieces_of: dict[str, tuple[int, ...]] = {}  # of each link
        self.made: dict[Any, range] = {}  # numbers of balls that exist
        self.obstacle_of: dict[int, int] = {}  # obstacle of each piece
        self.points: dict[tuple[int, str, int], Points] = {}  # of each piece, by detail and factor of their number
        self.detail: dict[int, str] = {}  # how much of other bodies touches each piece
        self.listed = np.zeros((0, 3)), np.zeros(0, dtype=np.int64)  # see _listed
        self.waiting: dict[Any, tuple[Any, Any, float, list[Any]]] = {}  # pairs of the contact at hand, see _flush
        self.followed: list[int] = []  # balls of pieces, around which there are four points
        self.n_cells = 0  # pairs of cells of surfaces
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
            self._add_contact(contact)
        warn_of_gaps(self.pieces, {k: points.gap for (k, *_), points in self.points.items()})
        self._sample_obstacles()
        for piece in self.pieces:
            self._follow(piece)
        self.reach = [None if x.shape is None else reach_around(x.shape, x.kind, x.size)[1] for x in self.obstacles]
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
        if EVERYTHING in (contact.links, contact.others):
            warn_of_drawings(self.robot, where)
        ours = [self._side(link) for link in contact.carriers(self.robot)]
        theirs = [self._given(contact, where)] if contact.shape is not None else None
        shared: dict[Law, int] = {}  # rows of laws of this contact
        done: set[frozenset[str | None]] = set()
        count, may = len(self.pairs), False
        others = theirs or [self._side(link) for link in contact.touched(self.robot)]
        for a in ours:
            for b in others:
                key = frozenset((a.link, b.link))
                if (a.link == b.link and a.pieces) or (theirs is None and key in done):
                    continue
                done.add(key)
                may = self._touch(contact, a, b, shared, where) or may
        self._flush(contact, shared)
        if not may and count == len(self.pairs):
            names = [repr(x.link) if x.link else "the world" for x in (*ours, *others)]
            raise ModelError(f"{where}: needs two bodies that can move relative to each other (got {', '.join(names)})")

    def _side(self, link: str) -> Side:
        """A link as a side of a contact."""
        body = self.bodies[link]
        if link not in self.pieces_of:
            first = len(self.pieces)
            node, G = anchor(self.bodies, link, 1.0) if body.shapes else (None, np.eye(4))
            for k, placed in enumerate(body.shapes):
                where = f"link {link!r} > body > shapes[{k}]"
                shape, why_hull = closed_shape(placed.shape, where)
                self.pieces.append(
                    ContactShape(link, 1.0, node, G @ placed.pose, shape, where, body.filling, True, why_hull)
                )
            self.pieces_of[link] = tuple(range(first, len(self.pieces)))
        pieces = self.pieces_of[link]
        form = (link,) if body.has_balls else tuple(map(self._form, pieces))
        return Side(link, pieces, body.has_balls, body.surface_material, body, form)

    def _form(self, piece: int) -> Any:
        """What determines the points and the curvatures of a piece."""
        shape = self.pieces[piece].shape
        return id(shape) if isinstance(shape, GRIDDED) else tuple(shape.surface(self.pieces[piece].where)[:2])

    def _given(self, contact: Contact, where: str) -> Side:
        """The shape of a contact as a side."""
        node, G = anchor(self.bodies, contact.on, contact.s)
        g = G @ checks.pose(contact.placement, where)
        shape: Any = contact.shape
        self.pieces.append(ContactShape(contact.on, contact.s, node, g, shape, f"{where} > shape", FILLING, False))
        material, body = contact.material, self.bodies.get(contact.on or "")
        if material is None and body is not None:
            material = body.surface_material
        piece = len(self.pieces) - 1
        self._obstacle(piece)  # pictures show it, also if only its points touch
        return Side(contact.on, (piece,), False, material, body, self._form(piece), is_given=True)

    def _touch(self, contact: Contact, a: Side, b: Side, shared: dict[Law, int], where: str) -> bool:
        """Add the pairs of two sides: points of each on the shapes of the other, or balls on balls. Returns whether
        they have such pairs, though none may be left.

        Raises:
            ModelError: neither side has points that reach the shapes of the other one.
        """
        if not a.pieces and not b.pieces:
            self._touch_by_balls(contact, str(a.link), str(b.link), shared, where)
            return True
        if contact.surface:
            return self._add_side(contact, a, b, [(self._cells(a, contact, k), k) for k in b.pieces])
        found = [self._add_side(contact, x, y, self._acting(x, y, x is a, contact, where), a.link)
                 for x, y in ((a, b), (b, a))]  # fmt: skip
        if not any(found):
            kinds = [" and ".join(type(self.pieces[k].shape).__name__ for k in x.pieces) for x in (a, b)]
            names = [f"link {x.link!r}" if x.link else "the world" for x in (a, b)]
            raise ModelError(
                f"{where}: {names[0]} ({kinds[0]}) and {names[1]} ({kinds[1]}) cannot touch, since neither is bounded; "
                "give one of them a bounded shape, or leave this pair out"
            )
        return True

    def _touch_by_balls(self, contact: Contact, a: str, b: str, shared: dict[Law, int], where: str) -> None:
        """Add pairs of balls of two links with balls of their own."""
        ours, theirs = self._balls(a, contact, where), self._balls(b, contact, where)
        if ("ball", theirs) not in self.made:
            first = len(self.obstacles)
            for k in theirs:
                ball = self.balls[k]
                frame = np.eye(4)
                frame[:3, 3] = ball.position
                size = (ball.radius, 0.0, 0.0)
                self.obstacles.append(Obstacle(ball.link, ball.s, ball.node, frame, ShapeKind.SPHERE, size, None, k))
            self.made["ball", theirs] = range(first, len(self.obstacles))
        first = self.made["ball", theirs].start
        balls = [self.balls[at.start : at.stop] for at in (ours, theirs)]
        pairs = possible_pairs(self.robot, self.bodies, a, balls[0], b, balls[1])
        geometry = self._geometry(theirs.start + pairs[:, 1])
        rows, body = pairs + np.array([ours.start, first]), self.bodies[b]
        own = self.bodies[a].surface_material
        ones = np.ones(len(rows))
        self._add_pairs(contact, (own, body.surface_material), (0.0, 0.0), self.masses[a], rows, geometry, ones, shared)

    def _cells(self, side: Side, contact: Contact, on: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the points of a surface for a pressure on a piece, and their shares of a stiffness."""
        if not side.pieces:
            numbers = self._balls(str(side.link), contact, f"contact {contact.name!r}")
            return np.array(numbers, dtype=int), np.ones(len(numbers))
        flat = isinstance(self.pieces[on].shape, ShapePlane)
        count, found = contact.cells_on(self.pieces[on].shape), []
        for k in side.pieces:
            key = "surface", k, count, flat
            if key not in self.made:
                piece = self.pieces[k]
                self._put_balls(key, piece, surface_rows(piece.shape, count, piece.where, on_plane=flat))
            found.append(np.array(self.made[key], dtype=int))
        numbers = np.concatenate(found)
        return numbers, np.ones(len(numbers))

    def _acting(
        self, x: Side, y: Side, is_first: bool, contact: Contact, where: str
    ) -> list[tuple[tuple[np.ndarray, np.ndarray], int]]:
        """Numbers of the points of a side that touch each piece of the other side, and their shares.

        Sharp points touch all pieces but spheres, whose own ball is exact. The balls of one of two pieces touch the
        other piece.
        """
        out = []
        for k in y.pieces:
            if x.has_balls:
                numbers = self._apart_from(y.link, x, contact, where)
                out.append(((numbers, np.ones(len(numbers))), k))
                continue
            detail, other, found = self._detail_on(k), self.pieces[k], []
            exact = isinstance(other.shape, ShapeSphere) and not y.has_balls
            for own in x.pieces:
                if exact and not isinstance(self.pieces[own].shape, ShapeSphere):
                    continue
                points = self._points(own, detail, contact.per_interval)
                is_ball = points.rows[:, 3] > 0.0
                acts = np.where(is_ball, self._leads(own, k, y.has_balls, is_first, contact), not exact)
                if acts.any():
                    numbers = np.array(self._placed_points(own, detail, contact), dtype=int)
                    found.append((numbers[acts], points.share[acts]))
            if found:
                out.append(((np.concatenate([n for n, _ in found]), np.concatenate([w for _, w in found])), k))
        return out

    def _leads(self, own: int, other: int, has_balls: bool, is_first: bool, contact: Contact) -> bool:
        """Whether the balls of a piece touch another piece: they are closer to each other than those of the other one,
        and no larger than the grid of the other one."""
        mine, theirs = self.pieces[own].shape, self.pieces[other].shape
        if isinstance(mine, ShapeSphere) and not isinstance(theirs, ShapeSphere):
            return True  # its ball is exact, as that of the other one would be
        finer = contact.per_interval
        a, b = self._points(own, self._detail_on(other), finer), self._points(other, self._detail_on(own), finer)
        if has_balls or not (b.rows[:, 3] > 0.0).any():
            return True
        too_large = [x.rows[:, 3].max(initial=0.0) > size_of(shape) for x, shape in ((a, theirs), (b, mine))]
        if too_large[0] != too_large[1]:
            return too_large[1]
        return a.spacing < b.spacing or (a.spacing == b.spacing and is_first)

    def _detail_on(self, piece: int) -> str:
        """How much of another body touches a piece; see robot.contact_points."""
        if piece not in self.detail:
            self.detail[piece] = detail_on(self.pieces[piece].shape)
        return self.detail[piece]

    def _points(self, piece: int, detail: str, finer: int) -> Points:
        """The points of a piece in its own frame."""
        key = piece, detail, finer
        if key not in self.points:
            x = self.pieces[piece]
            self.points[key] = shape_points(x.shape, detail, x.filling, x.where, finer=finer)
        return self.points[key]

    def _placed_points(self, piece: int, detail: str, contact: Contact) -> range:
        """The numbers of the points of a piece. Faces have cells for laws that are linear in the depth, else points."""
        is_linear = contact.exponent in (None, 1.0)
        key = "shape", piece, detail, is_linear, contact.per_interval
        if key not in self.made:
            rows = self._points(piece, detail, contact.per_interval).rows.copy()
            if not is_linear:
                is_cell = (rows[:, 3] == 0.0) & rows[:, 8:14].any(axis=1)
                rows[is_cell, 5:] = 0.0
            self._put_balls(key, self.pieces[piece], rows)
        return self.made[key]

    def _put_balls(self, key: Any, piece: ContactShape, rows: np.ndarray) -> None:
        """Add balls from rows of robot.surface_points in the frame of a piece."""
        first = len(self.balls)
        for n, row in enumerate(turned_rows(rows, piece.frame[:3, :3], piece.frame[:3, 3])):
            self.balls.append(_ball(piece.link, piece.s, n, piece.node, row[:3], row[3:]))
        self.made[key] = range(first, len(self.balls))
        self.followed += self.made[key]

    def _apart_from(self, link: str | None, x: Side, contact: Contact, where: str) -> np.ndarray:
        """Numbers of the balls of a side that are not next to its joint with another link."""
        name = str(x.link)
        numbers = np.array(self._balls(name, contact, where), dtype=int)
        robot, body = self.robot, self.bodies[name]
        at = 0.0 if hangs_on(robot, name, link) else None
        if link and hangs_on(robot, link, name):
            at = robot.links[link].at
        if x.is_given or link is None or at is None or body.extent == 0.0:
            return numbers
        balls = [self.balls[k] for k in numbers]
        return numbers[_along(body, balls, at) > 2.0 * _NEIGHBOURS * _radii(balls)]

    def _add_side(
        self, contact: Contact, x: Side, y: Side, acting: list[tuple[tuple[np.ndarray, np.ndarray], int]],
        carrier: str | None = None,
    ) -> bool:  # fmt: skip
        """Collect pairs of points of x and pieces of y. Returns whether there are points at all."""
        pairs, shares, numbers = [], [], []
        for (balls, share), piece in acting:
            apart = self._listed()[1][balls] != id(self.pieces[piece].node)
            obstacle = self._obstacle(piece)
            pairs.append(np.column_stack([balls[apart], np.full(apart.sum(), obstacle)]))
            shares.append(share[apart])
            kind, size = self.obstacles[obstacle].kind, self.obstacles[obstacle].size
            one = geometry_of_shape(kind, size)
            numbers.append(one.take(np.zeros(int(apart.sum()), dtype=int)))
        if sum(map(len, pairs)):
            geometry = Geometry(*(np.concatenate(column) for column in zip(*numbers)))
            mass = self.masses.get(carrier or x.link or "", 0.0) or self.masses.get(y.link or "", 0.0)
            mass = mass or sum(self.masses.values())
            layers = (x.layer, y.layer or x.layer) if contact.surface else (0.0, 0.0)
            rows, share = np.concatenate(pairs).astype(int), np.concatenate(shares)
            materials = (x.material_of_surface, y.material_of_surface) if contact.surface else (x.material, y.material)
            key = *map(id, materials), layers, mass, x.form, y.form
            self.waiting.setdefault(key, (materials, layers, mass, []))[3].append((rows, geometry, share))
        return any(len(balls) for (balls, _), _ in acting)

    def _flush(self, contact: Contact, shared: dict[Law, int]) -> None:
        """Add the pairs of a contact that are collected. Those of equal bodies have one law."""
        for materials, layers, mass, parts in self.waiting.values():
            rows, geometries, shares = zip(*parts)
            geometry = Geometry(*(np.concatenate(column) for column in zip(*geometries)))
            share = np.concatenate(shares)
            self._add_pairs(contact, materials, layers, mass, np.concatenate(rows), geometry, share, shared)
        self.waiting.clear()

    def _obstacle(self, piece: int) -> int:
        """The number of the obstacle of a piece."""
        if piece not in self.obstacle_of:
            x = self.pieces[piece]
            kind, size, rotation = x.shape.surface(x.where)
            frame = np.eye(4)
            frame[:3, :3] = rotation
            self.obstacles.append(
                Obstacle(x.link, x.s, x.node, x.frame @ frame, kind, size, x.shape, None, x.where, x.is_own)
            )
            self.obstacle_of[piece] = len(self.obstacles) - 1
        return self.obstacle_of[piece]

    def _sample_obstacles(self) -> None:
        """Sample the distances of the shapes that kernels read from grids, as far as the largest ball that touches
        them."""
        pairs = np.concatenate([np.zeros((0, 3), dtype=np.int32), *self.pairs])
        for k, obstacle in enumerate(self.obstacles):
            shape: Any = obstacle.shape
            if isinstance(shape, GRIDDED):
                touching = np.unique(pairs[pairs[:, 1] == k, 0])
                radii = [self.balls[ball].radius for ball in touching] or [0.0]
                grid = grid_of(shape, max(radii), obstacle.where, min(radii))
                self.obstacles[k] = obstacle._replace(grid=grid, size=grid.size)

    def _geometry(self, balls: np.ndarray) -> Geometry:
        """Geometry of balls by their numbers."""
        return Geometry(*self._listed()[0][balls].T)

    def _listed(self) -> tuple[np.ndarray, np.ndarray]:
        """Geometry of all balls, (n, 3), and what tells their nodes apart, (n,)."""
        known = len(self.listed[1])
        if known < len(self.balls):
            more = self.balls[known:]
            sizes = geometry_of_balls(*np.array([(ball.radius, ball.extent) for ball in more]).T)
            for k, ball in enumerate(more):
                if ball.half_axes.any():  # an ellipsoid rests on the end of its shortest axis
                    c, b, a = np.sort(np.linalg.norm(ball.half_axes, axis=1))
                    sizes.low[k], sizes.high[k] = c / a**2, c / b**2
            nodes = np.array([id(ball.node) for ball in more])
            self.listed = np.concatenate([self.listed[0], np.transpose(sizes)]), np.concatenate([self.listed[1], nodes])
        return self.listed

    def _add_pairs(
        self, contact: Contact, materials: tuple[Material | None, Material | None], layers: tuple[float, float],
        mass: float, pairs: np.ndarray, geometry: Geometry, share: np.ndarray, shared: dict[Law, int],
    ) -> None:  # fmt: skip
        """Add pairs (n, 2) of balls and obstacles, with their laws.

        Args:
            materials: of the balls and of the obstacles. layers: of both sides [m]. mass: at which the link rests [kg].
            geometry: of the obstacles, in n rows. share: of a given stiffness (n,).
            shared: rows of the laws with given numbers, which pairs of other links share.
        """
        own, other = materials
        if contact.stiffness is not None and not contact.surface:
            law = given_law(contact, own, other, rest_depth(mass, contact.stiffness, contact.exponent or 1.0))
            if law not in shared:
                shared[law] = self._add_law(contact, law)
            self.pairs.append(np.column_stack([pairs, np.full(len(pairs), shared[law])]).astype(np.int32))
            self.weights.append(share)
            self.bows.append(self._bows(pairs[:, 0], geometry.low, geometry.high))
            return
        modulus = effective_modulus(own, other)
        if contact.surface:
            modulus = contact.stiffness or layer_stiffness(own, other, *layers)
            self.n_cells += sum(bool(self.balls[k].normal.any()) for k in pairs[:, 0])
        ours, parallel = self._geometry(pairs[:, 0]), self._parallel(pairs, geometry)
        exponents, weights = factors(ours, geometry, parallel, on_layer=bool(contact.surface))
        if not contact.surface:
            exponents, weights = column_factors(exponents, weights, self._columns(pairs))
        for exponent in np.unique(exponents).tolist():
            rows = exponents == exponent
            factor, patch = float(weights[rows].mean()), self._patch(pairs[rows], weights[rows])
            row = self._add_law(contact, chosen_law(contact, own, other, modulus, exponent, factor, patch, mass))
            self.pairs.append(np.column_stack([pairs[rows], np.full(rows.sum(), row)]).astype(np.int32))
            self.weights.append(weights[rows])
            self.bows.append(self._bows(pairs[rows, 0], geometry.low[rows], geometry.high[rows]))

    def _columns(self, pairs: np.ndarray) -> np.ndarray:
        """w [m] of the columns of balls in deformable bodies, of each pair (n, 2), in series if both are such balls;
        zero without any, infinite for radius 0."""
        if not any(body.deforms for body in self.bodies.values()):
            return np.zeros(len(pairs))
        softness, is_soft = np.zeros(len(pairs)), np.zeros(len(pairs), dtype=bool)
        for k, (ball, obstacle) in enumerate(pairs.tolist()):
            mine, theirs = self.balls[ball], self.obstacles[obstacle]
            sides = [(mine.link, mine.radius), *([(theirs.link, theirs.size[0])] if theirs.ball is not None else [])]
            bodies = [(self.bodies[str(link)], radius) for link, radius in sides]
            softness[k] = sum(radius / body.ball_area for body, radius in bodies if body.deforms)
            is_soft[k] = any(body.deforms for body, _ in bodies)
        with np.errstate(divide="ignore"):
            return np.where(is_soft, 1.0 / softness, 0.0)

    def _patch(self, pairs: np.ndarray, weights: np.ndarray) -> float:
        """The patch_factor of the balls of pairs (n, 2). Those of one link stand for those of equal ones."""
        link = self.balls[pairs[0, 0]].link
        own = np.array([self.balls[k].link == link for k in pairs[:, 0].tolist()])
        balls = pairs[own, 0]
        rows = np.array([(self.balls[k].radius, self.balls[k].extent, *self.balls[k].normal) for k in balls])
        return patch_factor(weights[own], balls, rows.reshape(-1, 5))

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
        if ball.part.any():
            return neutral_pose(ball.node)[:3, :3] @ (ball.part / np.linalg.norm(ball.part))
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
        edges = np.array([self.balls[k].cell for k in balls]).reshape(-1, 2, 3)
        bends = np.array([self.balls[k].bends for k in balls]).reshape(-1, 2)
        is_triangle = np.array([self.balls[k].is_triangle for k in balls], dtype=bool)
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

    def _balls(self, link: str, contact: Contact, where: str) -> range:
        """The numbers of the balls of a link that has its own. Contacts with the same balls share them."""
        key = "balls", link, *contact.choices
        if key not in self.made:
            first = len(self.balls)
            for n, (at, (node, position), row) in enumerate(self.bodies[link].balls(contact, where)):
                self.balls.append(_ball(link, at, n, node, position, row))
            self.made[key] = range(first, len(self.balls))
        return self.made[key]

    def _follow(self, piece: ContactShape) -> None:
        """Add four points around a bounded shape on a link. They move as far as any of its points, so that the list of
        near pairs is renewed when the shape moves."""
        kind, size, rotation = piece.shape.surface(piece.where)
        centre, reach = reach_around(piece.shape, kind, size)
        if piece.node is None or reach is None:
            return
        for n, corner in enumerate(_CORNERS):
            position = piece.frame[:3, 3] + piece.frame[:3, :3] @ (rotation @ (centre + reach * corner))
            self.balls.append(_ball(piece.link, piece.s, n, piece.node, position, np.zeros(COLUMNS - 3)))

    def _add_force(self, force: Any) -> None:
        where, function = f"force {force.name!r}", force.function
        if isinstance(function, TracedFunction) and not force.inputs:
            function = self._native(force, f"{where}: function")
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

    def _native(self, force: Any, where: str) -> Any:
        """The function of a force as native code: a NativeForce if it has inputs, otherwise a NativeFunction."""
        function, size = force.function, len(force.inputs)
        key = "force", function.function, captured(function.function), size
        if key not in self.traced:
            self.traced[key] = function.driven_force(where, size) if size else function.force(where)
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
        found = zip(*self.obstacles) if self.obstacles else ((),) * 11
        links, places, nodes, frames, kinds, sizes, shapes, _, _, owns, of_obstacle = found
        grids = tuple({id(grid): grid for grid in of_obstacle if grid is not None}.values())
        place = {id(grid): k for k, grid in enumerate(grids)}
        cluster = clusters(self.balls)
        theirs = np.array(
            [-1 - k if o.ball is None else cluster[o.ball] for k, o in enumerate(self.obstacles)], dtype=int
        )
        pairs, blocks, order = in_blocks(np.vstack([np.zeros((0, 3), np.int32), *self.pairs]), cluster, theirs)
        radii = np.array([ball.radius for ball in self.balls])
        contacts = Contacts(
            ball_link=tuple(ball.link for ball in self.balls),
            ball_s=np.array(
                [1.0 if ball.link is None else self.bodies[ball.link].along(ball.s) for ball in self.balls]
            ),
            ball_node=np.array([index_of(ball.node) for ball in self.balls], dtype=np.int32),
            ball_position=np.array([ball.position for ball in self.balls]).reshape(-1, 3),
            ball_radius=radii,
            ball_normal=np.array([ball.normal for ball in self.balls]).reshape(-1, 3),
            ball_cell=np.array([ball.cell for ball in self.balls]).reshape(-1, 2, 3),
            ball_is_triangle=np.array([ball.is_triangle for ball in self.balls], dtype=np.int32),
            ball_part=np.array([ball.part for ball in self.balls]).reshape(-1, 3),
            ball_squares=np.array([ball.half_axes.T @ ball.half_axes for ball in self.balls]).reshape(-1, 3, 3),
            names=tuple(self.names),
            obstacle_link=links,
            obstacle_s=np.array([1.0 if x is None else self.bodies[x].along(s) for x, s in zip(links, places)]),
            obstacle_kind=np.array([kind.value for kind in kinds], dtype=np.int32),
            obstacle_node=np.array([index_of(node) for node in nodes], dtype=np.int32),
            obstacle_placement=np.array(frames).reshape(-1, 4, 4),
            obstacle_shape=tuple(None if own else shape for shape, own in zip(shapes, owns)),
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
            watched=np.setdiff1d(np.arange(len(self.balls)), self.followed).astype(np.int32),
            law=np.array(self.laws).reshape(-1, len(Law._fields)),
            anchors=np.full((len(pairs), 6), np.nan),
            capacity=min(len(pairs), self.robot.near_pairs + self.n_cells),
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
        compiled = sorted(self.compiled, key=lambda function: isinstance(function, NativeFunction))
        forces = UserForces(
            node=np.array([index_of(row[0]) for row in self.forces], dtype=np.int32),
            which=np.array([compiled.index(self.compiled[row[1]]) for row in self.forces], dtype=np.int32),
            weight=np.array([row[2] for row in self.forces]),
            s=np.array([row[3] for row in self.forces]),
            is_spread=np.array([row[4] for row in self.forces], dtype=bool),
            compiled=tuple(compiled),
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


def reach_around(shape: Shape, kind: ShapeKind, size: tuple[float, float, float]) -> tuple[np.ndarray, float | None]:
    """Centre (3,), in the kernels' frame of a shape, and radius of a sphere around the shape [m]; None if it is
    unbounded."""
    if isinstance(shape, SampledShape):
        low, high = shape.bounds("shape")
        return 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
    return np.zeros(3), reach_of(kind, size)


def _ball(link: str | None, s: Any, number: int, node: Node | None, position: np.ndarray, row: np.ndarray) -> Ball:
    """A ball with the numbers (14,) of a row of robot.surface_points after its place."""
    radius, extent, normal, cell = float(row[0]), float(row[1]), row[2:5], row[5:11].reshape(2, 3)
    part, half_axes, is_triangle = np.zeros(3), np.zeros((3, 3)), bool(row[13])
    if radius > 0.0 and is_triangle:  # it rolls
        half_axes, normal, cell, is_triangle = row[2:11].reshape(3, 3), np.zeros(3), np.zeros((2, 3)), False
    elif radius > 0.0:
        part, cell = cell[0], np.zeros((2, 3))
    return Ball(link, s, number, node, position, radius, extent, normal, cell, row[11:13], is_triangle, part, half_axes)


def warn_of_gaps(pieces: Sequence[ContactShape], depths: Mapping[int, float]) -> None:
    """Issue one AccuracyWarning about meshes whose points are far inside their convex hulls, or that bound no volume.

    Args:
        depths: of the points inside the hulls, by the numbers of the pieces [m].
    """
    gaps: dict[str, float] = {}
    hulls: dict[str, list[str]] = {}  # by the reason
    for k, piece in enumerate(pieces):
        name = piece.where if piece.link is None else f"link {piece.link!r}"
        if piece.why_hull and name not in hulls.setdefault(piece.why_hull, []):
            hulls[piece.why_hull].append(name)
        if piece.is_own and depths.get(k, 0.0) > _DEEP * size_of(piece.shape):
            gaps[name] = max(gaps.get(name, 0.0), depths[k])
    text, rows = [], []
    if gaps:
        worst = max(gaps, key=lambda name: gaps[name])
        many = f"{len(gaps)} links, " if len(gaps) > 1 else ""
        depth = f"{1e3 * gaps[worst]:.2g} mm inside their hulls"
        text.append(f"points on collision meshes of {many}{worst} are up to {depth}")
        rows += [f"{name}: up to {1e3 * gap:.2g} mm inside" for name, gap in gaps.items()]
    for why, names in hulls.items():
        more = f" and {len(names) - 1} more links" if len(names) > 1 else ""
        text.append(f"collision meshes of {names[0]}{more} count as their convex hulls ({why})")
        rows += [f"{name}: {why}: convex hull" for name in names]
    if text:
        warnings.warn(AccuracyWarning("; ".join(text), "\n".join(rows)), stacklevel=5)


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
        if isinstance(given, Tabulated):
            return np.concatenate([checks.call(f, t, (3,), where) for f in (given, given.slope)])
        if t < _RATE_STEP:  # tables begin at 0, and their values before it are constant
            now, after, later = (checks.call(given, t + x, (3,), where) for x in (0.0, _RATE_STEP, 2.0 * _RATE_STEP))
            return np.concatenate([now, (4.0 * after - later - 3.0 * now) / (2.0 * _RATE_STEP)])
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
    robot: Robot, bodies: Mapping[str, PlacedBody], a: str, ours: Sequence[Ball], b: str, theirs: Sequence[Ball]
) -> np.ndarray:
    """Pairs of balls of two links, or of one, that may touch, as numbers of the balls on their links (n, 2). Balls that
    are close along the links are left out."""
    may = np.array([id(x.node) for x in ours])[:, None] != np.array([id(x.node) for x in theirs])
    if a == b:
        may &= np.arange(len(ours))[:, None] < np.arange(len(theirs))
    apart = _apart(robot, bodies, a, ours, b, theirs)
    if apart is not None:
        may &= apart > _NEIGHBOURS * (_radii(ours)[:, None] + _radii(theirs))
    return np.argwhere(may)


def _apart(
    robot: Robot, bodies: Mapping[str, PlacedBody], a: str, ours: Sequence[Ball], b: str, theirs: Sequence[Ball]
) -> np.ndarray | None:
    """Distances along the links between balls of a link, or of a link and its parent [m]; None for other links."""
    if a == b:
        return np.array([[bodies[a].between(x.s, y.s) for y in theirs] for x in ours])
    if hangs_on(robot, a, b):
        to_joint, from_joint = robot.links[a].at, 0.0
        return _along(bodies[a], ours, from_joint)[:, None] + _along(bodies[b], theirs, to_joint)
    if hangs_on(robot, b, a):
        return _along(bodies[a], ours, robot.links[b].at)[:, None] + _along(bodies[b], theirs, 0.0)
    return None


def hangs_on(robot: Robot, link: str, other: str | None) -> bool:
    """Whether a joint other than a free one connects a link with a parent."""
    here = robot.links[link]
    return here.parent == other and not isinstance(here.joint, JointFree)


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
