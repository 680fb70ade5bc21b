"""Balls in place of meshes: inside, near the surface, and the better the more there are."""

import numpy as np
import pytest

import lissom as ls

SHAPES = {
    "box": ls.ShapeBox(0.1, 0.2, 0.4),
    "capsule": ls.ShapeCapsule(0.05, 0.3, (0, 0, 1)),
    "cylinder": ls.ShapeCylinder(0.05, 0.4),
}


def depth(name, points):
    """How far inside a shape points are [m]."""
    x = np.abs(points)
    if name == "box":
        return (np.array([0.05, 0.1, 0.2]) - x).min(axis=1)
    if name == "capsule":
        return 0.05 - np.linalg.norm(points - np.array([0, 0, 1]) * points.clip(-0.15, 0.15), axis=1)
    return np.minimum(0.2 - x[:, 0], 0.05 - np.hypot(x[:, 1], x[:, 2]))


@pytest.mark.parametrize("name", SHAPES)
def test_balls_are_inside_and_the_gap_is_what_it_says(name):
    """Purpose: no ball stands out, the gap is that of points of the surface, and more balls leave a smaller one."""
    surface, gaps = ls.Mesh.of_shape(SHAPES[name]).surface(), []
    for count in (4, 16, 64):
        fit = ls.fit_balls(*surface, count)
        assert len(fit.balls) <= count
        assert (fit.balls[:, 3] - depth(name, fit.balls[:, :3])).max() < 1e-12
        points = surface[0][surface[1]].mean(axis=1)
        beyond = np.linalg.norm(points[:, None] - fit.balls[:, :3], axis=-1) - fit.balls[:, 3]
        assert beyond.min(axis=1).max() < fit.gap + 0.01
        gaps.append(fit.gap)
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 0.025


@pytest.mark.parametrize("thickness", [0.01, 1e-4])
def test_balls_stay_within_a_thin_plate(thickness):
    """Purpose: balls are as large as a plate of 1 m x 1 m is thick, though samples on its sides are 30 mm apart."""
    fit = ls.fit_balls(*ls.Mesh.of_shape(ls.ShapeBox(1.0, 1.0, thickness)).surface(), 24)
    np.testing.assert_allclose(fit.balls[:, 3], 0.5 * thickness, rtol=1e-12)
    np.testing.assert_allclose(fit.balls[:, 2], 0.0, rtol=0, atol=1e-12 * thickness)


def test_a_ball_is_found_again():
    """Purpose: the best ball in a finely faceted sphere is that sphere, but for the depth of its facets."""
    fit = ls.fit_balls(*ls.Mesh.of_shape(ls.ShapeSphere(0.1)).surface(), 1)
    np.testing.assert_allclose(fit.balls, [[0, 0, 0, 0.1]], atol=0.006)
    assert fit.gap < 0.01


def test_open_and_inverted_meshes():
    """Purpose: a mesh seen from inside is turned, one with a hole is filled up to its convex hull."""
    vertices, triangles = ls.Mesh.of_shape(SHAPES["box"]).surface()
    balls = ls.fit_balls(vertices, triangles, 8).balls
    np.testing.assert_allclose(ls.fit_balls(vertices, triangles[:, ::-1], 8).balls[:, 3], balls[:, 3], atol=5e-3)
    fit = ls.fit_balls(vertices, triangles[1:], 8)
    assert (fit.balls[:, 3] - depth("box", fit.balls[:, :3])).max() < 1e-12


@pytest.mark.parametrize(
    "vertices, triangles, count, rule",
    [
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], 3, "must span a volume"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 3]], 3, "must number vertices from 0 to 2"),
        ([[0, 0], [1, 0]], [[0, 1, 3]], 3, "must be rows of three"),
        (np.eye(3), [[0, 1, 2]], 0, "count: must be an integer >= 1"),
    ],
)
def test_what_is_no_mesh_is_refused(vertices, triangles, count, rule):
    """Purpose: flat and broken meshes raise errors that name the fault."""
    with pytest.raises(ls.ModelError, match=rule):
        ls.fit_balls(vertices, triangles, count)
