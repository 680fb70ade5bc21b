"""Thin bodies as meshes and hulls at the default resolution: a ball pressed into them feels the distance to a plane."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lissom as ls

DEEP = 1e-3  # depth of the ball [m]
FORCE = 1e6 * DEEP**1.5  # 31.62 N
BODIES = {
    "table top": (1.2, 0.8, 0.02),
    "plywood": (1.0, 1.0, 0.01),
    "sheet": (0.3, 0.3, 0.003),
    "beam": (1.0, 0.05, 0.03),
    "ruler": (0.3, 0.03, 0.002),
    "brick": (0.2, 0.1, 0.06),
}
STRAIGHT, TURNED = np.eye(3), Rotation.from_euler("xyz", [0.5, 0.3, 0.7]).as_matrix()


def box(sizes, turned=STRAIGHT):
    """Vertices and triangles of a box with these edges [m]."""
    mesh = ls.Mesh.of_shape(ls.ShapeBox(*sizes))
    return np.asarray(mesh.vertices) @ turned.T, np.asarray(mesh.triangles)


def touch(shape, place, radius):
    """Depth of a ball with its centre at `place` [m], and the force on it [N]; zeros if it touches nothing."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(radius, density=1000), ls.JointFree())
    robot.add_contact("touch", "ball", shape, stiffness=1e6)
    found = ls.contact_forces(robot.build(), [1.0, 0, 0, 0, *place])
    return (float(found.depth[0]), found.force[0]) if len(found.depth) else (0.0, np.zeros(3))


@pytest.mark.parametrize("radius", [0.02, 0.05])
@pytest.mark.parametrize("kind", ["mesh", "hull", "turned mesh", "turned hull"])
@pytest.mark.parametrize("name", BODIES)
def test_a_ball_on_the_large_side(name, kind, radius):
    """Purpose: 31.62 N at a depth of 1 mm, to the single precision of distances of meshes (4e-8 m, 6e-5 of the force)
    and the accuracy of the grid (3e-5 of a seventh of a cell of at most 9 mm)."""
    turned = TURNED if kind.startswith("turned") else STRAIGHT
    vertices, triangles = box(BODIES[name], turned)
    mesh = ls.Mesh(vertices=vertices, triangles=triangles)
    shape = ls.ShapeMesh(mesh) if kind.endswith("mesh") else ls.ShapeHull(vertices)
    for side in (1.0, -1.0):
        place = turned @ [0.0, 0.0, side * (0.5 * BODIES[name][2] + radius - DEEP)]
        depth, force = touch(shape, place, radius)
        assert depth == pytest.approx(DEEP, abs=1e-7)
        np.testing.assert_allclose(force, side * FORCE * turned[:, 2], rtol=0, atol=2e-4 * FORCE)


@pytest.mark.parametrize("far", [1.0, 10.0, 1000.0])
def test_vertices_that_no_triangle_uses_do_not_count(far):
    """Purpose: a stray vertex does not make the cells of a cube larger."""
    vertices, triangles = box((0.2, 0.2, 0.2))
    shape = ls.ShapeMesh(ls.Mesh(vertices=np.vstack([vertices, [far, 0, 0]]), triangles=triangles))
    assert touch(shape, [0.0, 0.0, 0.119], 0.02)[0] == pytest.approx(DEEP, abs=1e-7)


def test_a_ball_near_the_edge_of_a_table():
    """Purpose: a ball that is as far from the edge as it is large rests as in the middle, to a hundredth of the depth;
    beside the table it falls, and below the table it does not see the upper side."""
    table = ls.ShapeHull(box((1.2, 0.8, 0.02))[0])
    for x, y in ((0.58, 0.0), (0.0, 0.38), (0.58, -0.38)):
        assert touch(table, [x, y, 0.029], 0.02)[0] == pytest.approx(DEEP, rel=0.02)
        assert touch(table, [x, y, -0.029], 0.02)[1][2] < 0.0
    assert touch(table, [0.625, 0.0, 0.0], 0.02)[0] == 0.0


@pytest.mark.parametrize("turned", [STRAIGHT, TURNED], ids=["straight", "turned"])
def test_corners_on_a_thin_plate(turned):
    """Purpose: the points of a box, its 4 lower corners, 4 on the edges between them and 4 on the face, touch a plate
    of 10 mm at half a millimetre of depth, and so do balls in the plate that are below the box."""
    robot, g = ls.Robot("box"), np.eye(4)
    g[:3, :3] = turned
    g[:3, 3] = turned @ [0.0, 0.0, 0.005 + 0.05 - 5e-4]
    robot.add_link("box", ls.RigidBody.box(0.1, 0.1, 0.1, density=1000), ls.JointFree(), placement=g)
    vertices, triangles = box((1.0, 1.0, 0.01), turned)
    robot.add_contact("plate", "box", ls.ShapeMesh(ls.Mesh(vertices=vertices, triangles=triangles)), stiffness=1e6)
    model = robot.build()
    found = ls.contact_forces(model, model.neutral())
    np.testing.assert_allclose(found.depth, 5e-4, rtol=0, atol=1e-7)
    assert len(found.depth) >= 12


@pytest.mark.parametrize("side, above, below", [("middle", 0.002, 0.002), ("front", 0.004, 0.0), ("back", 0.0, 0.004)])
def test_the_side_of_a_shell(side, above, below):
    """Purpose: a shell of 4 mm lies on the side of an open sheet that is asked for."""
    sheet = ls.Mesh(vertices=[[-0.5, -0.5, 0], [0.5, -0.5, 0], [0.5, 0.5, 0], [-0.5, 0.5, 0]],
                    triangles=[[0, 1, 2], [0, 2, 3]])  # fmt: skip
    shell = ls.ShapeMesh(sheet, thickness=0.004, side=side)
    assert touch(shell, [0.1, 0.2, above + 0.019], 0.02)[0] == pytest.approx(DEEP, abs=1e-7)
    assert touch(shell, [0.1, 0.2, -below - 0.019], 0.02)[0] == pytest.approx(DEEP, abs=1e-7)


def test_shells_keep_their_corners():
    """Purpose: the walls of an open box move outwards by half the thickness, and meet in its corners."""
    vertices, triangles = box((0.2, 0.3, 0.4))
    top = vertices[triangles].mean(axis=1)[:, 2] > 0.19
    shell = ls.ShapeMesh(ls.Mesh(vertices=vertices, triangles=triangles[~top]), thickness=0.01, side="front")
    low, high = shell.bounds("shell")
    np.testing.assert_allclose(low, [-0.11, -0.16, -0.21], rtol=0, atol=1e-12)
    np.testing.assert_allclose(high[:2], [0.11, 0.16], rtol=0, atol=1e-12)


def crate(wall):
    """An open crate of 0.6 x 0.4 x 0.3 m of five plates [m]."""
    plates = [((0.6, 0.4, wall), (0.0, 0.0, 0.5 * wall))]
    for side in (-1.0, 1.0):
        plates += [((wall, 0.4, 0.3), (side * (0.3 - 0.5 * wall), 0.0, 0.15))]
        plates += [((0.6, wall, 0.3), (0.0, side * (0.2 - 0.5 * wall), 0.15))]
    parts = [box(sizes) for sizes, _ in plates]
    vertices = np.concatenate([part[0] + at for part, (_, at) in zip(parts, plates)])
    return ls.Mesh(vertices=vertices, triangles=np.concatenate([part[1] + 8 * k for k, part in enumerate(parts)]))


def test_walls_in_all_directions():
    """Purpose: on the floor and at a wall of a crate of 3 mm, whose walls lie across all axes, a ball is 1 mm deep to a
    hundredth; corners of boxes would need a finer grid than there may be, which is told with the wall."""
    shape = ls.ShapeMesh(crate(0.003))
    assert touch(shape, [0.02, 0.03, 0.022], 0.02)[0] == pytest.approx(DEEP, rel=0.01)
    assert touch(shape, [0.278, 0.03, 0.15], 0.02)[0] == pytest.approx(DEEP, rel=0.01)
    with pytest.raises(
        ls.ModelError, match=r"contact 'touch' > shape: is too thin for balls of radius 0 m: walls of 0\.00"
    ):
        robot = ls.Robot("box")
        robot.add_link("box", ls.RigidBody.box(0.1, 0.1, 0.1, density=1000), ls.JointFree())
        robot.add_contact("touch", "box", shape, stiffness=1e6)
        robot.build()


def test_a_fin_that_the_grid_does_not_resolve_is_told():
    """Purpose: a fin that is a small part of a large body is named, with its thickness, if balls are small."""
    body, fin = box((1.0, 1.0, 1.0)), box((0.001, 0.2, 0.2))
    mesh = ls.Mesh(
        vertices=np.concatenate([body[0], fin[0] + [0.0, 0.0, 0.6]]), triangles=np.concatenate([body[1], fin[1] + 8])
    )
    with pytest.warns(
        ls.AccuracyWarning, match=r"contact 'touch' > shape: .* % of its surface is too thin .* 0\.001 m"
    ):
        touch(ls.ShapeMesh(mesh), [0.0, 0.0, 0.505], 0.005)
