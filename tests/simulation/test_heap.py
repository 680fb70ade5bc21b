"""Stones, which are meshes, fall into a heap and come to rest."""

import numpy as np
import pytest

import lissom as ls

CORNERS = 0.03 * np.array(
    [[1.1, 0, 0], [-1, 0, 0.1], [0, 0.9, 0], [0, -1, 0.1], [0.1, 0, 0.8], [0, 0.1, -0.8]]
)  # of an irregular octahedron [m]
TRIANGLES = np.array([[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]])
BALL = 0.004  # radius of the balls at corners and along edges [m]
ROUGH = ls.Material(young=5e6, poisson=0.45, density=1500, friction=0.6, restitution=0.2)
DROP = {"method": "generalized_alpha", "dt": 2e-3}
REST = {"method": "generalized_alpha", "dt": 1e-2}


def stone():
    """A homogeneous octahedron. Balls at its corners and along its edges touch the hulls of other stones."""
    a, b, c = np.moveaxis(CORNERS[TRIANGLES], 1, 0)
    volume = np.einsum("mi,mi->m", a, np.cross(b, c)) / 6.0  # of the tetrahedra on the origin
    mass, points = ROUGH.density * volume.sum(), np.stack([a, b, c], axis=1)
    com = np.einsum("m,mi->i", volume, points.sum(axis=1)) / (4.0 * volume.sum())
    total = points.sum(axis=1)
    second = np.einsum(
        "m,mij->ij", volume, np.einsum("mki,mkj->mij", points, points) + total[:, :, None] * total[:, None]
    )
    second = ROUGH.density * second / 20.0 - mass * np.outer(com, com)
    inner = CORNERS * (1.0 - 1.9 * BALL / np.linalg.norm(CORNERS, axis=1))[:, None]
    edges = np.unique(np.sort(TRIANGLES[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    places = np.concatenate([inner, inner[edges].mean(axis=1)])
    balls, mesh = np.column_stack([places, np.full(len(places), BALL)]), ls.Mesh(vertices=CORNERS, triangles=TRIANGLES)
    inertia = np.trace(second) * np.eye(3) - second
    return ls.RigidBody(mass, com.tolist(), inertia, balls=balls, meshes=(mesh,), material=ROUGH)


def heap(count, radius):
    """Stones above a floor in a round wall [m], and their places, in layers."""
    robot, body, hull = ls.Robot("heap", near_pairs=8000), stone(), ls.ShapeHull(CORNERS, 24)
    names = [f"stone {k}" for k in range(count)]
    for name in names:
        robot.add_link(name, body, ls.JointFree())
    robot.add_contact("floor", names, ls.ShapePlane(), material=ROUGH)
    robot.add_contact("wall", names, ls.ShapeCylinder(radius, axis=(0, 0, 1), inside=True), material=ROUGH)
    for name in names:
        robot.add_contact(f"on {name}", [other for other in names if other != name], hull, on=name)
    rng, line = np.random.default_rng(0), np.arange(-radius + 0.05, radius - 0.049, 0.07)
    places = [(x, y) for x in line for y in line if np.hypot(x, y) < radius - 0.045] or [(0.0, 0.0)]
    q = np.zeros((count, 7))
    q[:, :4] = rng.normal(size=(count, 4))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1)[:, None]
    q[:, 4:6] = np.resize(places, (count, 2)) + 0.003 * rng.normal(size=(count, 2))
    q[:, 6] = 0.04 + 0.07 * (np.arange(count) // len(places))
    return robot.build(), q.ravel()


@pytest.mark.parametrize("count, radius", [(6, 0.05), pytest.param(50, 0.11, marks=pytest.mark.slow)])
def test_a_heap_comes_to_rest(count, radius):
    """Three seconds after the drop the stones lie on each other, no ball is deeper than its radius, and for ten more
    seconds no stone moves by more than 1 µm. Fifty stones move by 1e-10 m, and from the fourth second on by 1e-14 m."""
    model, q0 = heap(count, radius)
    fall = ls.simulate(model, 3.0, q0, **DROP)
    places = fall.q[-1].reshape(count, 7)[:, 4:]
    assert np.hypot(*places[:, :2].T).max() < radius and places[:, 2].min() > 0.01
    assert places[:, 2].max() > 1.2 * np.linalg.norm(CORNERS, axis=1).max(), "no stone lies on others"
    held = model.anchored(fall.anchors)
    assert ls.contact_forces(held, fall.q[-1], fall.v[-1]).depth.max() < BALL
    rest = ls.simulate(held, 10.0, fall.q[-1], fall.v[-1], t_eval=np.linspace(0.0, 10.0, 11), **REST)
    moved = rest.q.reshape(-1, count, 7)[:, :, 4:] - places
    assert np.abs(moved).max() < 1e-6
