"""Groups of a model: what inputs drive. A tendon and a chamber have one channel, a wrench input one for each input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.model.fields import FloatRows, Floats, IntRows, Ints, Ints6, Ints7, Vectors3, Vectors3Rows, Vectors6


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
    """What runs through each point."""

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
    """What pulls, presses and pushes."""

    names: tuple[str, ...]
    actuator: tuple[Any, ...]  # what describes each
    units: tuple[str, ...]  # of what drives it
    is_tendon: np.ndarray
    gain: FloatRows  # tensions, or lengths pulled in of elastic tendons, pressures and sizes of wrenches from u


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """What u stacks."""

    names: tuple[str, ...]
    joint_gain: FloatRows  # joint forces from u (nv, nu)
    custom: tuple[Any, ...]  # users' actuators: (function, gain (size, nu)) pairs
