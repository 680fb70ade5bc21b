"""All that acts on robots, in the order in which it is added up."""

from __future__ import annotations

from lissom.forces import elasticity, immersion, joint_laws, loads, springs, touching, user_forces

TERMS = (
    elasticity.TERM,
    joint_laws.TERM,
    loads.TERM,
    immersion.TERM,
    touching.TERM,
    user_forces.TERM,
    springs.TERM,
)
