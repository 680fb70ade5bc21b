"""Points of shapes: they lie on the surface, none reaches out of it, and they are as many as their docstring says."""

import numpy as np
import pytest

import lissom as ls
from lissom.robot.contact_points import detail_on, shape_points, surface_rows
from lissom.robot.meshes import distance_to
from lissom.robot.shapes import is_bounded
from tests.forces.exact_distances import distance

UP = (0.0, 0.0, 1.0)
EXACT = {
    "sphere": ls.ShapeSphere(0.1),
    "box": ls.ShapeBox(0.2, 0.04, 0.1),
    "cylinder": ls.ShapeCylinder(0.05, 0.3, (1.0, 2.0, 0.5)),
    "coin": ls.ShapeCylinder(0.05, 0.01, UP),
    "capsule": ls.ShapeCapsule(0.05, 0.2, (0.0, 1.0, 0.0)),
    "cone": ls.ShapeCone(0.05, 0.2, UP),
    "torus": ls.ShapeTorus(0.05, 0.02),
}
CUBE = np.array(np.meshgrid(*[[-0.1, 0.1]] * 3)).reshape(3, -1).T
HULLS = {
    "hull": ls.ShapeHull(CUBE),
    "mesh": ls.ShapeMesh(ls.Mesh.of_shape(ls.ShapeBox(0.2, 0.2, 0.2))),
}
DETAILS = ("corners", "edges", "faces")


def touching(row):
    """A point of the surface that a row stands for, beside the axis of a ball that shares an axis."""
    part = row[8:11]
    if row[3] == 0.0 or not part.any():
        return row[:3]
    across = np.cross(part, [0.3, 0.5, 0.7])
    return row[:3] + row[3] * across / np.linalg.norm(across)


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("name", EXACT)
def test_points_lie_on_the_surface(name, detail):
    """Sharp points and points beside an axis have the distance zero, other balls touch the surface from inside."""
    for row in shape_points(EXACT[name], detail, 24, "shape").rows:
        inside = row[3] if row[3] > 0.0 and not row[8:11].any() else 0.0
        assert abs(distance(EXACT[name], touching(row))[0] + inside) < 1e-14


def test_balls_on_an_axis_share_its_length():
    """The parts of balls on an axis cover it once, and stand for its length."""
    for name in ("cylinder", "coin", "capsule"):
        shape = EXACT[name]
        rows = [row for row in shape_points(shape, "edges", 24, "shape").rows if row[8:11].any()]
        axis = np.array(shape.axis) / np.linalg.norm(shape.axis)
        ends = np.sort([(row[:3] + side * row[8:11]) @ axis for row in rows for side in (-1.0, 1.0)])
        np.testing.assert_allclose(ends[1:-1:2], ends[2::2], atol=1e-15)
        np.testing.assert_allclose(ends[[0, -1]], [-0.5 * shape.length, 0.5 * shape.length])
        assert sum(row[4] for row in rows) == pytest.approx(shape.length)


@pytest.mark.parametrize("name", HULLS)
def test_points_of_hulls(name):
    """A cube of triangles has its corners, a point on each edge and four on each face, and balls inside."""
    rows = shape_points(HULLS[name], "edges", 24, "shape").rows
    sharp, balls = rows[rows[:, 3] == 0.0, :3], rows[rows[:, 3] > 0.0]
    on_sides = (np.abs(np.abs(sharp) - 0.1) < 1e-12).sum(axis=1)
    assert [int((on_sides == k).sum()) for k in (3, 2, 1, 0)] == [8, 12, 24, 0]
    assert len(balls) == 24 and (np.abs(balls[:, :3]).max(axis=1) + balls[:, 3] < 0.1 + 1e-12).all()


def deepest(points, height):
    """Largest depth of points inside a convex shape with a given height in each direction, and the smallest."""
    ways = np.random.default_rng(0).normal(size=(5000, 3))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    inside = height(ways) - (points.rows[:, :3] @ ways.T + points.rows[:, 3:4]).max(axis=0)
    return inside.max(), inside.min()


@pytest.mark.parametrize("half", [(0.1, 0.06, 0.08), (0.05, 0.05, 0.1), (0.1, 0.1, 0.03), (0.1, 0.1, 0.1)])
def test_balls_of_an_ellipsoid_are_near_its_surface(half):
    """In no direction the balls reach out, or are deeper inside than half a percent of its size."""
    points = shape_points(ls.ShapeEllipsoid(*half), "corners", 24, "shape")
    most, least = deepest(points, lambda ways: np.linalg.norm(np.array(half) * ways, axis=1))
    assert least > -1e-12 and most < 5e-3 * 2 * max(half)


def test_round_meshes_are_filled():
    """A sphere of 80 triangles, a capsule and a cylinder touch by balls and vertices that are as near to their hulls as
    is told, and no point is outside."""
    for shape in (ls.ShapeSphere(0.1), ls.ShapeCapsule(0.05, 0.1), ls.ShapeCylinder(0.05, 0.2)):
        mesh = ls.Mesh.of_shape(shape)
        vertices = np.asarray(mesh.vertices)
        points = shape_points(ls.ShapeMesh(mesh), "corners", 12, "shape")
        most, least = deepest(points, lambda ways, x=vertices: (x @ ways.T).max(axis=0))
        assert least > -1e-12 and most < points.gap + 1e-3 and points.gap < 1e-3


def hollow_meshes():
    """A ring, a frame of a square section, and a bracket of two plates."""
    ring = ls.Mesh.of_shape(ls.ShapeTorus(0.05, 0.008))
    square = 0.05 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    x = np.concatenate([np.insert(size * square, 2, z, axis=1) for z in (-0.01, 0.01) for size in (1.0, 0.85)])
    low, inner, high, top = np.arange(16).reshape(4, 4)
    sides = (inner, low), (high, top), (low, high), (top, inner)
    faces = [np.stack([a, np.roll(a, -1), np.roll(b, -1), b], axis=1) for a, b in sides]
    frame = ls.Mesh(vertices=x, triangles=np.concatenate([f[:, k] for f in faces for k in ([0, 1, 2], [0, 2, 3])]))
    outline = 0.1 * np.array([[0, 0], [1, 0], [1, 0.1], [0.1, 0.1], [0.1, 1], [0, 1]])
    x = np.concatenate([np.insert(outline, 2, z, axis=1) for z in (0.0, 0.05)])
    a, b = np.arange(6), np.roll(np.arange(6), -1)
    ends = np.array([[0, 2, 1], [0, 3, 2], [0, 4, 3], [0, 5, 4]])
    walls = np.concatenate([np.stack([a, b, b + 6], axis=1), np.stack([a, b + 6, a + 6], axis=1)])
    bracket = ls.Mesh(vertices=x, triangles=np.concatenate([ends, ends[:, ::-1] + 6, walls]))
    return {"ring": ring, "frame": frame, "bracket": bracket}


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("name", ["ring", "frame", "bracket"])
def test_no_points_lie_in_a_hollow(name, detail):
    """Sharp points are on the surface of a mesh, and balls inside it, also where its convex hull spans a hollow."""
    mesh = hollow_meshes()[name]
    x, triangles = mesh.surface()
    rows = shape_points(ls.ShapeMesh(mesh), detail, 24, "shape").rows
    size = np.ptp(x, axis=0).max()
    assert (rows[:, 3] == 0.0).any() or name == "ring"
    for row in rows:
        away = distance_to(x[triangles], row[:3])
        if row[3] == 0.0:
            assert away < 3e-3 * size
        else:
            assert away > row[3] - 3e-3 * size and is_inside(x[triangles], row[:3])


def is_inside(corners, point):
    """Whether a point is inside triangles (m, 3, 3): their solid angles sum up to 4π (Van Oosterom and Strackee)."""
    a, b, c = np.moveaxis(corners - point, 1, 0)
    lengths = [np.linalg.norm(r, axis=1) for r in (a, b, c)]
    dots = [
        (p * q).sum(axis=1) * length for p, q, length in ((a, b, lengths[2]), (b, c, lengths[0]), (c, a, lengths[1]))
    ]
    volume = (a * np.cross(b, c)).sum(axis=1)
    return abs(2.0 * np.arctan2(volume, np.prod(lengths, axis=0) + sum(dots)).sum()) > 2.0 * np.pi


def test_the_punch_of_a_box_is_shared():
    """On every kind of shape the points of the faces of a cube stand for the punch of one face, and their shares of a
    given stiffness for four corners."""
    for detail in DETAILS:
        points = shape_points(ls.ShapeBox(0.2, 0.2, 0.2), detail, 24, "shape")
        low = np.abs(points.rows[:, 2] + 0.1) < 1e-12
        assert points.rows[low, 4].sum() == pytest.approx(2.0 * 0.2 / np.sqrt(np.pi))
        assert points.share[low].sum() == pytest.approx(4.0)


def test_details():
    """On a plane corners are enough, as in a hole; on bounded shapes edges; shapes without points need faces."""
    assert detail_on(ls.ShapePlane()) == "plane" and detail_on(ls.ShapeCylinder(0.1, inside=True)) == "corners"
    assert detail_on(ls.ShapeBox(1, 1, 1)) == detail_on(HULLS["hull"]) == "edges"
    ground = ls.ShapeHeightField(np.zeros((4, 4)), 1.0, 1.0)
    assert detail_on(ls.ShapeCylinder(0.1)) == detail_on(ground) == "faces"
    assert not any(is_bounded(shape) for shape in (ls.ShapePlane(), ls.ShapeCylinder(0.1), ground))


@pytest.mark.parametrize("name", [*EXACT, *HULLS])
def test_surfaces_have_their_area(name):
    """The areas of cells sum up to those of flat sides; parts of an axis to its length; normals point outwards."""
    shape = EXACT.get(name) or HULLS[name]
    rows = surface_rows(shape, 16, "shape")
    cells = rows[rows[:, 3] == 0.0]
    areas = {"sphere": 0.0, "box": 2 * (0.2 * 0.04 + 0.04 * 0.1 + 0.1 * 0.2), "cylinder": 2 * np.pi * 0.05**2,
             "coin": 2 * np.pi * 0.05**2, "capsule": 0.0, "cone": np.pi * 0.05 * (0.05 + np.hypot(0.05, 0.2)),
             "torus": 4 * np.pi**2 * 0.05 * 0.02, "hull": 0.24, "mesh": 0.24}  # fmt: skip
    assert cells[:, 4].sum() == pytest.approx(areas[name], rel=1e-2)  # curved sides are polygons of 32 or 48 sides
    assert ((cells[:, :3] * cells[:, 5:8]).sum(axis=1) > 0.0).all() or name == "torus"
