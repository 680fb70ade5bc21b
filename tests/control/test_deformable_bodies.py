"""Control laws of deformable bodies, whose tendons run through their material points."""

from functools import lru_cache

import numpy as np
import pytest
from control.controlled_robots import some_state

import lissom as ls

pytest.importorskip("jax")
pytestmark = pytest.mark.filterwarnings("ignore:tendon:lissom.AccuracyWarning")


def bent(x, theta):
    """A block that is bent about two axes, to second order, and stretched."""
    import jax.numpy as jnp

    slope = 20.0 * x[0] * theta[:2]
    return x + jnp.array([theta[2] * x[0] - slope @ x[1:], *(0.5 * slope * x[0])])


@lru_cache(maxsize=1)
def finger():
    """A block that moves so, with two tendons to its tip."""
    material = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.45, damping_time=0.02)
    domain = ls.DomainBox(0.12, 0.02, 0.02, degree=4, degree_along=4)
    body = ls.DeformableBody(bent, domain, material, 1070.0, n=3, tip="tip")
    robot = ls.Robot("finger", gravity=(9.81, 0, 0))
    robot.add_link("finger", body)
    for name, hole in (("y", (0, 0.006, 0)), ("z", (0, 0, 0.006))):
        robot.add_tendon(name, path=[ls.PathPoint(None, hole), ls.PathPoint("finger", hole)])
    return robot.build()


def test_tendon_lengths_accelerate_as_the_law_wants():
    """ÿ = K_P (y_d − y) − K_D ẏ by forward dynamics, with B(q) that turns; and B is the gradient of y."""
    model = finger()
    q, v = some_state(model, 10, size=0.2)
    law = ls.partial_feedback_linearization(model, [0.003, -0.002], proportional=100.0, derivative=25.0)
    a = ls.forward_dynamics(model, q, v, law.output(0.0, q, v, ()))
    ahead, behind = (ls.actuation_matrix(model, q + side * 1e-4 * v) for side in (1, -1))
    B = ls.actuation_matrix(model, q)
    found = B.T @ a + (ahead - behind).T @ v / 2e-4
    expected = 100.0 * (np.array([0.003, -0.002]) - ls.actuation_coordinates(model, q)) - 25.0 * B.T @ v
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())
    ahead, behind = (ls.actuation_coordinates(model, q + side * 1e-5 * v) for side in (1, -1))
    np.testing.assert_allclose((ahead - behind) / 2e-5, B.T @ v, rtol=1e-6)
