"""The constant matrices of elastic and viscous forces."""

from __future__ import annotations

import numpy as np

from lissom.launch.over_models import over_models
from lissom.model.model import Model


@over_models()
def stiffness_matrix(model: Model) -> np.ndarray:
    """Stiffness matrix K of the equation of motion, shape (nv, nv) [N·m², N·m, N in the units of each coordinate].

    Constant; for the spring of a spherical or free joint it is the value at rest.

    Source: SoRoSim 2022 eq. (28), on the rods' Gauss points.
    """
    return model.elasticity.stiffness.copy()


@over_models()
def damping_matrix(model: Model) -> np.ndarray:
    """Damping matrix D of the equation of motion, shape (nv, nv) [N·m²·s, N·m·s, N·s in the units of each coordinate].

    Constant.

    Source: SoRoSim 2022 eq. (27), on the rods' Gauss points.
    """
    return model.elasticity.damping.copy()
