"""M, h, B, lengths and their second derivatives in one launch, against the functions that compute each alone."""

import jax.numpy as jnp
import numpy as np
import pytest
from bodies.kinematics_makers import in_python
from control.controlled_robots import every_kind, routed
from dynamics.small_robots import state

import lissom as ls
from lissom.control.actuation_coordinates import actuation_coordinates, coordinates_from
from lissom.dynamics.input_dynamics import input_dynamics

SOFT, TIP = ls.HyperelasticSaintVenantKirchhoff(young=2e5, poisson=0.3, damping_time=0.02), (0.1, 0.0, 0.0)
CYLINDER = ls.DomainCylinder(0.1, 0.01, degree=4)


def swaying(x, q):
    """A block that bends and stretches."""
    bend = jnp.stack([-x[2] * x[0], 0.0 * x[0], 0.5 * x[0] ** 2]) * jnp.sin(q[0]) * 10.0
    return x + bend + jnp.stack([q[1] * x[0], -0.3 * q[1] * x[1], -0.3 * q[1] * x[2]])


def shapes(x):
    """Two shapes that a body moves by, linearly."""
    return jnp.stack([jnp.array([0.0 * x[1], -x[2], x[1]]) * x[0], jnp.array([-x[2], 0.0 * x[1], x[0]]) * x[0]], axis=1)


def block(motion):
    """Two blocks with tendons inside of them, in native code or in Python, under a load that depends on time."""
    robot = ls.Robot("blocks")
    for name, parent in (("a", None), ("b", "a")):
        body = ls.DeformableBody(motion, CYLINDER, SOFT, 1e3, tip=TIP)
        robot.add_link(name, body, parent=parent)
    for k, y in enumerate((0.005, -0.004)):
        line = [(0.0, y, 0.002), (0.05, y, 0.003), (0.09, y, 0.001)]
        robot.add_tendon(f"tendon {k}", path=[ls.PathBody(name, line) for name in "ab"[: k + 1]])
    robot.add_point_load("load", "a", s=0.0, force=lambda t: (np.sin(t), 0.0, 1.0))
    return robot.build()


MAKERS = {
    "routed": routed,
    "every kind": every_kind,
    "native": lambda: block(ls.KinematicsFunction(swaying, 2)),
    "in Python": lambda: block(ls.KinematicsFunction(in_python(swaying), 2)),
    "linear": lambda: block(ls.KinematicsRitz(shapes, 2)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_all_in_one_launch(make):
    """Every part is that of its own function, in any order of calls at two states."""
    model, t = make(), 0.7
    states = [state(model, seed=k)[:2] if k else (model.neutral(), np.zeros(model.nv)) for k in (1, 0, 2)]
    for q, v in states:
        q = model.neutral() + 0.2 * (q - model.neutral())
        found = input_dynamics(model, q, v, t)
        own = ls.mass_inverse_dynamics(model, q, v, t=t)
        B = [ls.actuation_matrix(model, ls.integrate(model, q, h * v)) for h in (0.0, 2e-4, -2e-4, 1e-4, -1e-4)]
        bent = (4.0 * (B[3] - B[4]) / 2e-4 - (B[1] - B[2]) / 4e-4) / 3.0
        np.testing.assert_allclose(
            found.curving, bent.T @ v, rtol=0, atol=1e-8 * max(np.abs(found.curving).max(), 1e-3)
        )
        pairs = [(found.mass, own.mass), (found.bias, own.bias), (found.B, B[0])]
        pairs.append((coordinates_from(model, q, found.lengths), actuation_coordinates(model, q)))
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * max(np.abs(other).max(), 1e-6))
