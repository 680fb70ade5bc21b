"""Groups of tables of a model, and how kernels read their fields.

The annotation of a field states how kernels read it (`Read`); model.tables makes the struct of a group on a device from
these annotations, so that each field is written once. The groups here hold links, nodes, coordinates, elasticity,
loads, prescribed motions, loops, couplings of joints, and the tables of actuation. A tendon and a chamber have one
channel, a wrench input has one for each of its inputs. Index sets come first; `*_start` end with a sentinel; SI units,
6-vectors angular first.
"""

# Warp's vectors and matrices are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Annotated, Any, final, get_type_hints

import numpy as np
import warp as wp

from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.robot.expression_programs import Operation

vec6i = wp.types.vector(length=6, dtype=wp.int32)
vec7i = wp.types.vector(length=7, dtype=wp.int32)
_FAR = 1e300  # an end of a span beyond which there is none
NEAR_END = 1e-3  # of the span of a function of a coupling: so near to its end, motions and searches stop because of it
ROTATION, POSITION = np.s_[..., :3, :3], np.s_[..., :3, 3]  # of poses (..., 4, 4)


@final
@dataclass(frozen=True)
class Read:
    """How kernels read a field: entries of type `dtype` along `axes` axes (0 for one number), optionally under another
    `name`, or only a `part` of the array."""

    dtype: Any
    axes: int = 1
    name: str = ""
    part: Any = ...


Int = Annotated[int, Read(wp.int32, 0)]
Float = Annotated[float, Read(wp.float64, 0)]
Flag = Annotated[bool, Read(wp.int32, 0)]
Ints = Annotated[np.ndarray, Read(wp.int32)]
Addresses = Annotated[np.ndarray, Read(wp.uint64)]
Flags = Annotated[np.ndarray, Read(wp.bool)]
IntRows = Annotated[np.ndarray, Read(wp.int32, 2)]
Ints6 = Annotated[np.ndarray, Read(vec6i)]
Ints7 = Annotated[np.ndarray, Read(vec7i)]
Floats = Annotated[np.ndarray, Read(wp.float64)]
FloatRows = Annotated[np.ndarray, Read(wp.float64, 2)]
Vectors3 = Annotated[np.ndarray, Read(vec3)]
Vectors3Rows = Annotated[np.ndarray, Read(vec3, 2)]
Vectors6 = Annotated[np.ndarray, Read(vec6)]
Vectors6Rows = Annotated[np.ndarray, Read(vec6, 2)]
Matrices3 = Annotated[np.ndarray, Read(mat3)]
Matrices6 = Annotated[np.ndarray, Read(mat6)]
Poses = Annotated[np.ndarray, Read(mat3, name="R", part=ROTATION), Read(vec3, name="p", part=POSITION)]
PosesRows = Annotated[np.ndarray, Read(mat3, 2, "R", ROTATION), Read(vec3, 2, "p", POSITION)]


def hints(group: type) -> dict[str, Any]:
    """Annotations of the fields of a group, then of its properties."""
    declared = get_type_hints(group, include_extras=True)
    found = {field.name: declared[field.name] for field in fields(group)}
    for name, value in vars(group).items():
        if isinstance(value, property):
            found[name] = get_type_hints(value.fget, include_extras=True)["return"]
    return found


@cache
def read_by_kernels(group: type) -> tuple[tuple[str, Read], ...]:
    """The fields and properties of a group that kernels read, each with its Read, in the order declared."""
    found = [(name, read) for name, hint in hints(group).items() for read in getattr(hint, "__metadata__", ())]
    return tuple((name, read) for name, read in found if isinstance(read, Read))


@final
@dataclass(frozen=True, eq=False)
class Links:
    """Links in the order added."""

    names: tuple[str, ...]
    parent: np.ndarray  # index of the parent link, -1 for the world
    q_start: np.ndarray  # index in q of its first coordinate
    v_start: np.ndarray  # and in v
    mass: np.ndarray  # [kg]
    frame: dict[str, tuple[int, np.ndarray]]  # at its tip, by name: node (-1 for the world), placement (4, 4)
    joint: tuple[Any, ...]
    body: tuple[Any, ...]


@final
@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes: joints and intervals of rods, parents before children. Nodes with masses or forces come first."""

    placement: Poses  # in the parent (n, 4, 4)
    h: Floats  # length of an interval [m], 1 for a joint
    kappa: Floats  # √3 h²/12 [m²], 0 for a joint
    xi1: Vectors6  # reference strain at the two points of an interval
    xi2: Vectors6
    inertia: Annotated[
        np.ndarray,
        Read(mat3, name="J", part=np.s_[..., :3, :3]),
        Read(mat3, name="C", part=np.s_[..., :3, 3:]),
        Read(mat3, name="m", part=np.s_[..., 3:, 3:]),
    ]  # [[J, C], [Cᵀ, m]] (n, 6, 6), with the added inertia of the fluid
    dry: Annotated[
        np.ndarray, Read(wp.float64, name="mass", part=np.s_[..., 3]), Read(vec3, name="mass_c", part=np.s_[..., :3])
    ]  # first moment [kg·m] and mass [kg] without the fluid (n, 4)
    heavy: Annotated[
        np.ndarray, Read(wp.float64, name="heavy", part=np.s_[..., 3]), Read(vec3, name="heavy_c", part=np.s_[..., :3])
    ]  # the same, less those of the displaced fluid
    screw: Vectors6  # the only column of a joint that turns about or slides along an axis through its frame, else zero
    run_start: Ints7  # for each of the six strains, the start of its basis values in Runs; then the stop of the last
    run_v: Ints6  # and the index in v of the first of these
    parent: Ints  # node, -1 for the world
    base: Ints  # index of its base frame in Bases
    kind: Ints  # of MotionKind
    has_quaternion: Flags  # whether the pose is stored
    map: Ints  # index in Maps, or in Deforming for the frame of a deformable body; -1 for other kinds
    v_start: Ints  # its range in v
    v_stop: Ints
    q_shift: Ints  # difference between an index in q and that in v
    link: np.ndarray  # index of its link
    s: np.ndarray  # abscissa on the link

    @property
    def is_placed(self) -> Flags:
        """Whether the placement is not the identity."""
        return np.asarray((self.placement != np.eye(4)).any(axis=(1, 2)))

    @property
    def has_inertia(self) -> Flags:
        """Whether it has any inertia."""
        return np.asarray(self.inertia.any(axis=(1, 2)))

    @property
    def is_screw(self) -> Flags:
        """Whether it has a screw, so that its pose and motion need no exponential of a general twist."""
        return np.asarray(self.screw.any(axis=1))

    @property
    def is_plain(self) -> Flags:
        """Whether its mass m is the same in every direction, so that C = hat(m c) with the centre of mass c."""
        C, plain = self.inertia[:, :3, 3:], self.inertia[:, 5, 5, None, None] * np.eye(3)
        rounding = 4.0 * np.finfo(float).eps * np.abs(C).max(axis=(1, 2), initial=0.0)
        skew = np.abs(C + np.swapaxes(C, 1, 2)).max(axis=(1, 2), initial=0.0) <= rounding
        return skew & (self.inertia[:, 3:, 3:] == plain).all(axis=(1, 2))


@final
@dataclass(frozen=True, eq=False)
class Runs:
    """Non-zero values of the strain bases at the two Gauss points of each node, in the order of nodes and strains."""

    phi1: Floats
    phi2: Floats


@final
@dataclass(frozen=True, eq=False)
class Bases:
    """Base frames of the sweeps."""

    position: Vectors3  # of the root node that carries the frame (n, 3) [m]
    slide_start: Ints  # start of its range in `slide`
    slide: Ints  # nodes of the root's joint, up to the last that can slide


@final
@dataclass(frozen=True, eq=False)
class Dofs:
    """Coordinates, by their index in v."""

    q: Ints  # index in q, -1 for spherical and free joints
    rest: Floats  # coordinate at which its spring is slack
    armature: Floats  # inertia of rotors; empty if no joint has any
    scale: np.ndarray  # natural size: 1/length for a rod's curvatures and torsion, 1 otherwise
    neutral: np.ndarray  # the neutral configuration, by index in q


@final
@dataclass(frozen=True, eq=False)
class Elasticity:
    """K and D of rods, joints and bodies: square blocks on a diagonal, and the compressed rows that kernels read.

    The rows leave out parts that other terms evaluate: the stiffness of PoseSprings, and K and D of bodies of Green
    strains.
    """

    block_start: np.ndarray  # first coordinate of each block
    block_size: np.ndarray
    block_stiffness: np.ndarray  # K of one block after another, row by row
    block_damping: np.ndarray  # D likewise
    start: Ints  # start of each row in the three arrays below
    column: Ints  # index in v
    row_stiffness: Floats
    row_damping: Floats

    @cached_property
    def stiffness(self) -> np.ndarray:
        """K (nv, nv)."""
        return self._matrix(self.block_stiffness)

    @cached_property
    def damping(self) -> np.ndarray:
        """D (nv, nv)."""
        return self._matrix(self.block_damping)

    @property
    def stiffness_diagonal(self) -> np.ndarray:
        """The diagonal of K (nv,)."""
        out = np.zeros(len(self.start) - 1)
        for first, K in self._blocks(self.block_stiffness):
            out[first : first + len(K)] = np.diag(K)
        return out

    def _matrix(self, values: np.ndarray) -> np.ndarray:
        nv = len(self.start) - 1
        out = np.zeros((nv, nv))
        for first, X in self._blocks(values):
            out[first : first + len(X), first : first + len(X)] = X
        out.setflags(write=False)
        return out

    def _blocks(self, values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        at = 0
        for first, n in zip(self.block_start.tolist(), self.block_size.tolist()):
            yield first, values[at : at + n * n].reshape(n, n)
            at += n * n


@final
@dataclass(frozen=True, eq=False)
class PoseSprings:
    """Springs of spherical and free joints."""

    node: Ints
    rest: Poses  # pose at which it is slack (n, 4, 4)
    stiffness: Matrices6  # (n, 6, 6)


@final
@dataclass(frozen=True, eq=False)
class Loads:
    """Point loads, then users' Python forces."""

    node: Ints
    placement: Poses  # frame of application in the node (n, 4, 4)
    is_body: Ints  # whether its components are in the axes of this frame, not of the world
    wrench: tuple[Any, ...]  # of the point loads, RowsOfTime
    varies: bool  # whether a load depends on time


@final
@dataclass(frozen=True, eq=False)
class Prescribed:
    """Coordinates whose motion is prescribed. The last `n_locked` are locked at rest for a steady motion."""

    names: tuple[str, ...]
    dof: Ints  # index in v
    functions: tuple[Any, ...]  # RowsOfTime: positions, velocities and accelerations of the coordinates of each motion
    n_locked: int = 0
    steady: np.ndarray | None = None  # velocity (nv,) of the steady motion of relative equilibria; None at rest


@final
@dataclass(frozen=True, eq=False)
class Loops:
    """Loops, skates, rolling contacts and constraints by functions with the constants of robot.constraints.Closure,
    then the constrained directions of all of them by row."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]  # key of PARTS of each
    node: IntRows  # the two nodes, a then b; -1 is the world
    placement: PosesRows  # of the loop's frames in these nodes (n, 2, 4, 4)
    row_start: Ints  # index of its first row
    turns: Ints
    axis: Vectors3
    slide: Matrices3
    pitch: Floats
    hinge: Vectors3Rows
    radius: Floats
    function: Ints  # index in ConstraintFunctions, −1 for none
    row_direction: Vectors6  # Φ⊥ᵀ, of all loops
    row_kind: Ints  # RowKind


@final
@dataclass(frozen=True, eq=False)
class ConstraintFunctions:
    """Functions Φ of robot.constraint_functions, the coordinates of joints on which each depends, its terms, and where
    kernels store its derivatives (systems/constraint_functions)."""

    names: tuple[str, ...]
    loop: Ints  # its index in Loops, where it is one row
    is_rate: Flags  # whether it restricts a velocity
    start: Ints  # index of the first step of its program in `code`
    code: Ints  # steps of all programs (operation, operand), see expression_programs.linked
    numbers: Floats  # of the programs
    term_start: Ints  # index of its first term
    q: Ints  # index in q of the coordinate of a term
    v: Ints  # and in v
    node: np.ndarray  # of the joint of a term
    at: Ints  # index of its first stored number; then the count of all

    def __len__(self) -> int:
        return len(self.names)

    def steps(self, k: int) -> list[tuple[int, float]]:
        """The program of function k."""
        rows, first = self.code.reshape(-1, 2), int(self.start[k])
        stop = first + int((rows[first:, 0] == 0).argmax())
        return [(int(step), float(self.numbers[first + n])) for n, (step, _) in enumerate(rows[first:stop])]

    def operations(self) -> dict[str, str]:
        """The operations of the program of each function as text, without numbers, by name."""
        return {
            name: " ".join(Operation(step).name.lower() for step, _ in self.steps(k))
            for k, name in enumerate(self.names)
        }

    def tied_nodes(self, ends: np.ndarray) -> np.ndarray:
        """Pairs (n, 2) of a node at an end of a constraint, −1 for the world, and the node of a joint on which it
        depends; `ends` (n, 2) are the nodes of Loops."""
        function = np.repeat(np.arange(len(self)), np.diff(self.term_start))
        pairs = [np.stack([ends[self.loop[function], side], self.node], axis=1) for side in (0, 1)]
        return np.concatenate(pairs).astype(np.int32)


@final
@dataclass(frozen=True, eq=False)
class JointCouplings:
    """Couplings of joints, Σ f(q) = offset, their terms, and the functions f of these terms: ratio · q, the program of
    an expression, or polynomial pieces. A coupling Φ(q) = offset by one function has a program, and its terms are the
    coordinates of Φ only. Elastic couplings, which have no constraint, have fields of their own."""

    names: tuple[str, ...]
    offset: Floats  # [rad, m]
    function: Ints  # index of the first step of the program of Φ in `code`, −1 for a sum
    term_start: Ints  # index of its first term
    q: Ints  # index in q of the coordinate of a term
    v: Ints  # and in v
    ratio: Floats
    program: Ints  # index of the first step of its program in `code`, −1 for none
    code: Ints  # steps of all programs (operation, operand), see expression_programs.linked
    numbers: Floats  # of the programs
    low: Floats  # ends of the span of the pieces [rad, m], −∞ and ∞ for polynomials
    high: Floats
    period: Floats  # of the pieces, 0 for none
    begin_of_period: Floats  # the coordinate at which the pieces begin one
    rise: Floats  # of f over a period
    piece_start: Ints  # index of the first piece of a term
    begin: Floats  # coordinate at which a piece begins, −∞ for the first piece
    origin: Floats  # origin of its powers
    coefficients: FloatRows  # the highest power first (n, 8)
    links: tuple[str, ...]  # link of the joint of a term
    functions: tuple[Any, ...]  # ratio of a term as given, None for coordinates of Φ
    whole_functions: tuple[Any, ...]  # Φ of a coupling as given, None for a sum
    elastic_names: tuple[str, ...]
    elastic_start: np.ndarray  # index of the first joint of an elastic coupling
    elastic_dof: np.ndarray  # index in q and in v of the coordinate of a joint (n, 2)
    elastic_ratio: np.ndarray
    elastic_law: np.ndarray  # low, high, k, c and w of its stops, offset, and c of its damper (n, 7)
    elastic_spring: tuple[Any, ...]  # knots and coefficients of its spring, see cubic_pieces

    @property
    def has_ends(self) -> bool:
        """Whether a function has a value on a span only."""
        return bool((self.low > -_FAR).any())

    def spans(self, name: str) -> list[tuple[str, float, float]]:
        """The functions of a coupling that have a value on a span only: link of the joint, and the ends of the span."""
        at = self.names.index(name)
        terms = range(int(self.term_start[at]), int(self.term_start[at + 1]))
        return [(self.links[k], float(self.low[k]), float(self.high[k])) for k in terms if self.low[k] > -_FAR]

    def without_value(self, q: np.ndarray, share: float = 0.0) -> str:
        """A text that names the first function that has no value at q (nq,), or is within a share of its span from an
        end of it; empty if there is none."""
        for k, (link, function) in enumerate(zip(self.links, self.functions)):
            x, low, high = (float(values[at]) for values, at in ((q, self.q[k]), (self.low, k), (self.high, k)))
            name = self.names[int(np.searchsorted(self.term_start, k, side="right")) - 1]
            margin = share * min(high - low, np.finfo(np.float64).max)
            if low > -_FAR and np.isfinite(x) and not low + margin <= x <= high - margin:
                return (
                    f"joint {link!r} of coupling {name!r} is at {x:.6g}, at or beyond an end of the span "
                    f"[{low:.6g}, {high:.6g}] of its function; give the coupling a longer span, or an ls.Expression"
                )
            if self.program[k] >= 0 and not np.isfinite(function(x)):
                return f"the function of joint {link!r} of coupling {name!r} is not finite at {x:.6g}"
        for c, (name, function) in enumerate(zip(self.names, self.whole_functions)):
            part = slice(int(self.term_start[c]), int(self.term_start[c + 1]))
            x = q[self.q[part]]
            if function is not None and np.isfinite(x).all() and not np.isfinite(function(x)):
                places = ", ".join(f"{link!r} = {at:.6g}" for link, at in zip(self.links[part], x))
                return f"the function of coupling {name!r} is not finite at {places}"
        return ""


@final
@dataclass(frozen=True, eq=False)
class PlacedParts:
    """Parts of the description that exert forces at places on links; see `places` of robot.robot.Part."""

    names: tuple[str, ...]  # such as "spring 'left'"
    kinds: tuple[str, ...]  # the key of PARTS of each part
    parts: tuple[Any, ...]  # the parts themselves, None for kinds with other tables in the model
    place_start: np.ndarray  # index of the first place of each part
    node: np.ndarray  # of each place, −1 for the world
    placement: np.ndarray  # of the frame of each place in its node (n, 4, 4)

    def __len__(self) -> int:
        return len(self.names)

    def of(self, kind: str) -> list[tuple[Any, np.ndarray, np.ndarray]]:
        """The parts of a kind in the order added, each with the nodes (m,) and the placements (m, 4, 4) of its
        places."""
        rows = zip(self.kinds, self.parts, itertools.pairwise(self.place_start.tolist()))
        return [(part, self.node[at:to], self.placement[at:to]) for found, part, (at, to) in rows if found == kind]

    @property
    def pairs(self) -> np.ndarray:
        """All pairs of nodes of the same part, (n, 2), between which it may exert forces."""
        ends = itertools.pairwise(self.place_start.tolist())
        found = [pair for at, to in ends for pair in itertools.combinations(self.node[at:to].tolist(), 2)]
        return np.array(found, dtype=np.int32).reshape(-1, 2)


@final
@dataclass(frozen=True, eq=False)
class Points:
    """Strain points through which tendons and chambers run, with the runs of the strain basis as in Nodes."""

    q_shift: Ints
    xi: Vectors6  # reference strain
    run_start: Ints7
    run_v: Ints6
    phi: Floats  # values of the bases, of all points
    path_start: Ints  # start of its range in Paths


@final
@dataclass(frozen=True, eq=False)
class Paths:
    """Tendons and chambers through each point."""

    channel: Ints
    weight: Floats  # −w of a tendon, which shortens, and +wA of a chamber
    offset: Vectors3  # from the centreline [m]
    slope: Vectors3  # of the offset along the rod
    is_normal: Ints  # whether the force is normal to the section


@final
@dataclass(frozen=True, eq=False)
class Segments:
    """Pieces of tendons and of springs along paths between two points, straight or round a shape; then these shapes,
    spheres and cylinders.

    `channel` has a row for each piece of a tendon, and `spring` and `factor` for each of the pieces after them.
    """

    channel: Ints
    spring: Ints  # number of the spring among those along paths
    factor: Floats  # weight of the piece in the length of the spring
    node: IntRows  # of both ends, -1 for the world
    position: Vectors3Rows  # in these (n, 2, 3)
    wrap: Ints  # the shape round which it runs; -1 for a straight piece
    wrap_node: Ints  # -1 for the world
    wrap_placement: Annotated[
        np.ndarray, Read(mat3, name="wrap_R", part=ROTATION), Read(vec3, name="wrap_p", part=POSITION)
    ]  # of the shape in the node, its axis along z (n, 4, 4)
    wrap_radius: Floats  # [m]
    wrap_is_sphere: Ints
    wrap_has_side: Ints
    wrap_side: Vectors3  # a point on the side on which it passes, in the shape's frame [m]

    def coupled(self) -> np.ndarray:
        """Pairs of nodes whose relative motion changes a piece, −1 for the world, shape (n, 2)."""
        a, b = self.node.T
        round_it = self.wrap >= 0
        shape = self.wrap_node[self.wrap[round_it]]
        more = [np.stack([end[round_it], shape], axis=1) for end in (a, b)]
        along = [np.array(list(itertools.combinations(nodes, 2))).reshape(-1, 2) for nodes in self._nodes_of_springs()]
        return np.concatenate([self.node, *more, *along]).astype(np.int32)

    @property
    def n_couplings(self) -> int:
        """Largest number of coupled pairs of nodes that kernels list: one for a straight piece, three for one round a
        shape, and those of all ends along a spring with each other."""
        wraps = int((self.wrap >= 0).sum())
        first = len(self.channel)
        ends = np.bincount(self.spring, weights=np.where(self.wrap[first:] >= 0, 3, 2)).astype(int)
        return len(self.node) + 2 * wraps + int((ends * (ends - 1)).sum())

    def _nodes_of_springs(self) -> list[np.ndarray]:
        """The nodes of each spring along a path, −1 for the world."""
        first, found = len(self.channel), []
        for spring in np.unique(self.spring):
            rows = first + np.flatnonzero(self.spring == spring)
            shapes = self.wrap[rows]
            found.append(np.unique([*self.node[rows].ravel(), *self.wrap_node[shapes[shapes >= 0]]]))
        return found


@final
@dataclass(frozen=True, eq=False)
class Spools:
    """Elastic tendons."""

    channel: Ints
    stiffness: Floats  # [N/m]
    slack: Floats  # length [m]


@final
@dataclass(frozen=True, eq=False)
class Wrenches:
    """Controlled wrenches."""

    channel: Ints
    node: Ints
    unit: Vectors6  # wrench per unit of the channel
    position: Vectors3  # of the point of application, in the node
    is_body: Ints  # whether it turns with the node


@final
@dataclass(frozen=True, eq=False)
class Channels:
    """Channels: tendons, chambers, pressures and wrenches."""

    names: tuple[str, ...]
    actuator: tuple[Any, ...]  # the description of each
    units: tuple[str, ...]  # quantity and unit of each, such as "tension [N]"
    is_tendon: np.ndarray
    gain: FloatRows  # matrix from u to tensions, lengths pulled in of elastic tendons, pressures and sizes of wrenches


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs, in the order in which u stacks them."""

    names: tuple[str, ...]
    joint_gain: FloatRows  # joint forces from u (nv, nu)
    custom: tuple[Any, ...]  # users' actuators that Python calls: pairs of the description and gain (size, nu)
    native: tuple[Any, ...]  # those that kernels call: triples of the description, first channel and NativeActuation
    traced: tuple[Any, ...]  # those of which native code exists, on the CPU; as in `native`

    def on(self, device: str, gain: np.ndarray) -> Inputs:
        """These inputs for a model on another device ("cpu" or a GPU). On GPUs, Python calls all custom actuators.

        Args:
            device: name of the device. gain: the matrix that maps the inputs u to the channels, (n channels, nu).
        """
        if device == "cpu":
            theirs = [actuator for actuator, _, _ in self.traced]
            custom = tuple(pair for pair in self.custom if all(pair[0] is not actuator for actuator in theirs))
            return replace(self, custom=custom, native=self.traced)
        called = [(actuator, gain[c : c + actuator.size]) for actuator, c, _ in self.native]
        return replace(self, custom=(*self.custom, *called), native=())
