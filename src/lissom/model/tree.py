"""Groups of a model: links, the nodes that they are made of, and coordinates. Index sets come first; `*_start` end with
a sentinel; SI units, 6-vectors angular first."""

# Warp's vectors and matrices are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, final

import numpy as np
import warp as wp

from lissom.lie.types import mat3, vec3
from lissom.model.fields import Flags, Floats, Ints, Ints6, Ints7, Poses, Read, Vectors3, Vectors6


@final
@dataclass(frozen=True, eq=False)
class Links:
    """What a robot is described by."""

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
    """Joints and intervals of rods, parents before children; first those that carry or hold up something."""

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
