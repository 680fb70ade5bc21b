"""Groups of a model: loads at points, prescribed motions and loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.model.fields import Floats, IntRows, Ints, Matrices3, Poses, PosesRows, Vectors3, Vectors3Rows, Vectors6


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
