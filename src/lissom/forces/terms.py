"""All that acts on robots, in the order in which it is added up.

Two things that act are no terms. Gravity is the acceleration −G of the base, from which the sweeps start: every inertia
then weighs without a sum of its own, and its derivatives come with those of the motion. Motors, and actuators that are
Python functions, are forces on coordinates that no state changes within a kernel: the residual subtracts them as they
are (systems.residual). Reactions of loops are unknowns of the equations, not laws, and stand with these
(systems.loops).
"""

from __future__ import annotations

from lissom.forces import (
    channels,
    elasticity,
    green_strains,
    immersion,
    joint_laws,
    loads,
    pulls,
    springs,
    touching,
    user_forces,
)

TERMS = (
    elasticity.TERM,
    green_strains.TERM,
    joint_laws.TERM,
    loads.TERM,
    immersion.TERM,
    touching.TERM,
    user_forces.TERM,
    springs.TERM,
    channels.TERM,
    pulls.TERM,  # after channels, which know the tensions
)
