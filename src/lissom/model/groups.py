"""Groups of tables of a model, and how kernels read their fields.

The annotation of a field states how kernels read it (`Read`); model.tables makes the struct of a group on a device from
these annotations, so that each field is written once. The groups here hold links, nodes, coordinates, elasticity,
loads, prescribed motions, loops, and the tables of actuation. A tendon and a chamber have one channel, a wrench input
has one for each of its inputs. Index sets come first; `*_start` end with a sentinel; SI units, 6-vectors angular first.
"""

# Warp's vectors and matrices are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Annotated, Any, final, get_type_hints

import numpy as np
import warp as wp

from lissom.lie.types import mat3, mat6, vec3, vec6

vec6i = wp.types.vector(length=6, dtype=wp.int32)
vec7i = wp.types.vector(length=7, dtype=wp.int32)
ROTATION, POSITION = np.s_[..., :3, :3], np.s_[..., :3, 3]  # of poses (..., 4, 4)


@final
@dataclass(frozen=True)
class Read:
    """How kernels read a field: entries of type `dtype` along so many `axes` (0 is one number); optionally under
    another `name`, or only a `part` of it."""

    dtype: Any
    axes: int = 1
    name: str = ""
    part: Any = ...


Int = Annotated[int, Read(wp.int32, 0)]
Float = Annotated[float, Read(wp.float64, 0)]
Flag = Annotated[bool, Read(wp.int32, 0)]
Ints = Annotated[np.ndarray, Read(wp.int32)]
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
    """Each field or property of a group that kernels read, and how, in the order declared."""
    found = [(name, read) for name, hint in hints(group).items() for read in getattr(hint, "__metadata__", ())]
    return tuple((name, read) for name, read in found if isinstance(read, Read))


@final
@dataclass(frozen=True, eq=False)
class Links:
    """Links in the order added."""

    names: tuple[str, ...]
    parent: np.ndarray  # index of the link it hangs on, -1 for the world
    q_start: np.ndarray  # where its coordinates start in q
    v_start: np.ndarray  # and in v
    mass: np.ndarray  # [kg]
    frame: dict[str, tuple[int, np.ndarray]]  # at its tip, by name: node (-1 for the world), placement (4, 4)
    joint: tuple[Any, ...]
    body: tuple[Any, ...]


@final
@dataclass(frozen=True, eq=False)
class Nodes:
    """Joints and intervals of rods, parents before children; those with masses or forces come first."""

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
    ]  # [[J, C], [Cᵀ, m]] with that of the fluid around (n, 6, 6)
    dry: Annotated[
        np.ndarray, Read(wp.float64, name="mass", part=np.s_[..., 3]), Read(vec3, name="mass_c", part=np.s_[..., :3])
    ]  # first moment and mass of its own (n, 4)
    heavy: Annotated[
        np.ndarray, Read(wp.float64, name="heavy", part=np.s_[..., 3]), Read(vec3, name="heavy_c", part=np.s_[..., :3])
    ]  # the same less what the fluid carries
    screw: Vectors6  # the only column of a joint that turns about or slides along an axis through its frame, else zero
    run_start: Ints7  # for each of the six strains, where the values of its basis start in Runs
    run_v: Ints6  # and the index in v of the first
    parent: Ints  # node, -1 for the world
    base: Ints  # its base frame in Bases
    kind: Ints  # of MotionKind
    has_quaternion: Flags  # whether the pose is stored
    map: Ints  # number in Maps, or in Deforming for the frame of a deformable body; -1 for other kinds
    v_start: Ints  # its range in v
    v_stop: Ints
    q_shift: Ints  # from an index in v to that in q
    link: np.ndarray  # index of the link it belongs to
    s: np.ndarray  # where on that

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
        """Whether it is such a joint, whose pose and motion take no exponential of a general twist."""
        return np.asarray(self.screw.any(axis=1))

    @property
    def is_plain(self) -> Flags:
        """Whether it has the same mass m in every direction, so that C is hat(m c) of its centre c."""
        C, plain = self.inertia[:, :3, 3:], self.inertia[:, 5, 5, None, None] * np.eye(3)
        rounding = 4.0 * np.finfo(float).eps * np.abs(C).max(axis=(1, 2), initial=0.0)
        skew = np.abs(C + np.swapaxes(C, 1, 2)).max(axis=(1, 2), initial=0.0) <= rounding
        return skew & (self.inertia[:, 3:, 3:] == plain).all(axis=(1, 2))


@final
@dataclass(frozen=True, eq=False)
class Runs:
    """Values of the strain bases at the two points of each node, strain by strain, one after another."""

    phi1: Floats
    phi2: Floats


@final
@dataclass(frozen=True, eq=False)
class Bases:
    """Base frames of the sweeps."""

    position: Vectors3  # of the root each stands at (n, 3) [m]
    slide_start: Ints  # where its stretch of `slide` starts
    slide: Ints  # the nodes of a root's joint where it can slide


@final
@dataclass(frozen=True, eq=False)
class Dofs:
    """Coordinates, by their index in v."""

    q: Ints  # index in q, -1 for spherical and free joints
    rest: Floats  # where its spring is slack
    armature: Floats  # inertia of rotors; empty where no joint has any
    scale: np.ndarray  # natural size: 1/length for a rod's curvatures and twist, 1 otherwise
    neutral: np.ndarray  # the neutral configuration, by index in q


@final
@dataclass(frozen=True, eq=False)
class Elasticity:
    """K and D of rods, joints and bodies, which are square blocks on a diagonal; the rows kernels read are compressed,
    and have nothing of what other terms know: stiffness of PoseSprings, K and D of bodies of Green strains."""

    block_start: np.ndarray  # first coordinate of each block
    block_size: np.ndarray
    block_stiffness: np.ndarray  # K of one block after another, row by row
    block_damping: np.ndarray  # D likewise
    start: Ints  # where each row starts in what follows
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
    rest: Poses  # where it is slack (n, 4, 4)
    stiffness: Matrices6  # (n, 6, 6)


@final
@dataclass(frozen=True, eq=False)
class Loads:
    """Point loads, then users' Python forces."""

    node: Ints
    placement: Poses  # where it acts, in the node (n, 4, 4)
    is_body: Ints  # whether it is given in the axes there, not in the world's
    wrench: tuple[Any, ...]  # of the point loads, RowsOfTime
    varies: bool  # whether time enters


@final
@dataclass(frozen=True, eq=False)
class Prescribed:
    """Coordinates whose motion is prescribed; the last `n_held` have none, but are held for a steady motion."""

    names: tuple[str, ...]
    dof: Ints  # index in v
    functions: tuple[Any, ...]  # RowsOfTime: positions, velocities and accelerations of the coordinates of each motion
    n_held: int = 0
    steady: np.ndarray | None = None  # velocity (nv,) of the motion about which equilibria are sought; None at rest


@final
@dataclass(frozen=True, eq=False)
class Loops:
    """Loops, as robot.loops.Closure describes them, then the directions that all of them hold, row by row."""

    names: tuple[str, ...]
    node: IntRows  # the two nodes, a then b; -1 is the world
    placement: PosesRows  # of the loop's frames in these (n, 2, 4, 4)
    row_start: Ints  # where its rows start
    turns: Ints
    axis: Vectors3
    slide: Matrices3
    pitch: Floats
    hinge: Vectors3Rows
    row_direction: Vectors6  # Φ⊥ᵀ, of all loops
    row_is_hinge: Ints


@final
@dataclass(frozen=True, eq=False)
class Points:
    """Strain points through which tendons and chambers run, with the runs of the strain basis there, as of nodes."""

    q_shift: Ints
    xi: Vectors6  # reference strain
    run_start: Ints7
    run_v: Ints6
    phi: Floats  # values of the bases, of all points
    path_start: Ints  # where its stretch of Paths starts


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
    """Straight pieces of tendons between two points."""

    channel: Ints
    node: IntRows  # of both ends, -1 for the world
    position: Vectors3Rows  # in these (n, 2, 3)


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
    actuator: tuple[Any, ...]  # what describes each
    units: tuple[str, ...]  # of what drives it
    is_tendon: np.ndarray
    gain: FloatRows  # tensions, or lengths pulled in of elastic tendons, pressures and sizes of wrenches from u


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs, in the order in which u stacks them."""

    names: tuple[str, ...]
    joint_gain: FloatRows  # joint forces from u (nv, nu)
    custom: tuple[Any, ...]  # users' actuators: (function, gain (size, nu)) pairs
