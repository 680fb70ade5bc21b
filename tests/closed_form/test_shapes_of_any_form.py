"""Bodies that touch shapes on grids: a ball in a bowl, and gradients of its motion."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lissom as ls

OUTER, INNER, RADIUS = 0.2, 0.18, 0.02  # of the bowl's wall and of the ball [m]
AROUND, RINGS = 120, 60


def bowl():
    """A mesh of half a hollow sphere, open to z."""
    turn, polar = 2.0 * np.pi * np.arange(AROUND) / AROUND, np.linspace(0.0, 0.5 * np.pi, RINGS)
    r = np.concatenate([OUTER * np.sin(polar), INNER * np.sin(polar[::-1])])
    z = -np.concatenate([OUTER * np.cos(polar), INNER * np.cos(polar[::-1])])
    rings = np.stack([np.outer(r, np.cos(turn)), np.outer(r, np.sin(turn)), z[:, None] + 0.0 * turn], axis=-1)
    index = np.arange(len(r) * AROUND).reshape(len(r), AROUND)
    a, b = index[:-1], index[1:]
    c, d = np.roll(b, -1, axis=1), np.roll(a, -1, axis=1)
    triangles = np.concatenate([np.stack([a, d, c], axis=-1), np.stack([a, c, b], axis=-1)]).reshape(-1, 3)
    return ls.Mesh(vertices=rings.reshape(-1, 3), triangles=triangles)


@pytest.fixture(scope="module")
def model():
    """A ball without friction in the bowl."""
    robot = ls.Robot("ball in a bowl")
    robot.add_link("ball", ls.RigidBody.sphere(RADIUS, density=2500), ls.JointFree())
    robot.add_contact("bowl", "ball", ls.ShapeMesh(bowl(), 96), stiffness=1e6, damping=2.0)
    return robot.build()


def start(angle):
    """The ball at rest on the wall, this angle from the lowest place."""
    weight = 9.81 * 2500 * 4.0 / 3.0 * np.pi * RADIUS**3
    length = INNER - RADIUS + (np.cos(angle) * weight / 1e6) ** (2.0 / 3.0)
    return np.array([1.0, 0.0, 0.0, 0.0, length * np.sin(angle), 0.0, -length * np.cos(angle)])


def test_a_ball_in_a_mesh_bowl(model):
    """Purpose: without friction the ball swings as a pendulum whose length is the radius of the bowl less that of the
    ball; the facets of the mesh are within 0.1 mm of the sphere."""
    motion = ls.rollout(model, start(0.4), dt=1e-3, steps=400)
    place = ls.frame_pose(model, motion.q, "ball")[:, :3, 3]
    swing = solve_ivp(
        lambda _, y: [y[1], -9.81 / (INNER - RADIUS) * np.sin(y[0])], (0.0, 0.4), [0.4, 0.0],
        t_eval=1e-3 * np.arange(401), rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(np.arctan2(place[:, 0], -place[:, 2]), swing.y[0], rtol=0, atol=4e-3)
    np.testing.assert_allclose(np.linalg.norm(place, axis=1), INNER - RADIUS, rtol=0, atol=3e-4)
    assert np.abs(place[:, 1]).max() < 1e-4


def test_gradients_of_a_motion_on_a_mesh(model):
    """Purpose: gradients of a motion by its start equal differences of whole motions: the spline's derivatives are
    exact."""
    options = {"dt": 1e-3, "steps": 25, "tolerance": 1e-13}
    motion = ls.rollout(model, start(0.4), **options)
    weights = np.zeros((26, 6))
    weights[-1, 3:] = 1.0, 0.5, -2.0
    found = motion.backward(weights).q0

    def total(way, x):
        return ls.rollout(model, ls.integrate(model, start(0.4), x * way), **options).q[-1, 4:] @ weights[-1, 3:]

    for way in np.eye(6)[3:]:
        h = 1e-7
        slope = (8 * (total(way, h) - total(way, -h)) - total(way, 2 * h) + total(way, -2 * h)) / (12 * h)
        assert found @ way == pytest.approx(slope, abs=1e-6 * np.abs(found).max())
