"""Scales of the rows of systems of stages."""

import numpy as np

import lissom as ls
from lissom.gradients.stage_systems import stage_systems


def test_a_symmetric_system_keeps_its_diagonal():
    """For a chain of links from kilograms to micrograms at rest, the scales of rows are inverse roots of the diagonal.
    Scaled by natural sizes, S would have rows of light links as pivots of heavy ones."""
    robot, parent = ls.Robot("chain", gravity=(0.0, 0.0, 0.0)), None
    for k in range(5):
        length, place = 0.5 * 0.2**k, np.eye(4)
        place[0, 3] = 3.0 * length if k else 0.0
        axis = (0, 1, 0) if k % 2 else (0, 0, 1)
        body = ls.RigidBody.cylinder(length, 0.1 * length, density=1000)
        robot.add_link(f"link {k}", body, ls.JointRevolute(axis, stiffness=10.0**-k), parent=parent, placement=place)
        parent = f"link {k}"
    model = robot.build()
    motion = ls.rollout(model, dt=1e-3, steps=1, method="generalized_alpha")
    systems, _ = stage_systems(model, motion.stepping, motion.path)
    next(systems.matrices())
    S, units = systems.matrix.reshape(5, -1)[:, :5], systems.units[0]
    assert units.max() > 1e4 * units.min()
    np.testing.assert_allclose(np.diag(S) * units, 1.0, rtol=1e-12)
    assert np.abs(S * units).max() < 1.0 + 1e-12
