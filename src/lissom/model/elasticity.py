"""Groups of a model: stiffness and damping of rods and joints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.model.fields import Floats, Ints, Matrices6, Poses


@final
@dataclass(frozen=True, eq=False)
class Elasticity:
    """K and D of rods, joints and bodies; the rows kernels read are compressed, and have nothing of what other terms
    know: stiffness of PoseSprings, K and D of bodies of Green strains."""

    stiffness: np.ndarray  # K (nv, nv)
    damping: np.ndarray  # D (nv, nv)
    start: Ints  # where each row starts in what follows
    column: Ints  # index in v
    row_stiffness: Floats
    row_damping: Floats


@final
@dataclass(frozen=True, eq=False)
class PoseSprings:
    """Springs of spherical and free joints."""

    node: Ints
    rest: Poses  # where it is slack (n, 4, 4)
    stiffness: Matrices6  # (n, 6, 6)
