"""Meshes that are drawn for rigid bodies: where they come from, what is refused, how robot files hold them."""

import numpy as np
import pytest
from robot_descriptions import assert_same, round_trip

import lissom as ls

CORNERS = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
SIDES = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
PLACED = [[0, -1, 0, 0.1], [1, 0, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]]


def volume(vertices, triangles):
    """What a closed surface encloses, positive where it is seen counter-clockwise from outside."""
    return np.linalg.det(vertices[triangles]).sum() / 6


def with_meshes(*meshes):
    """A robot of one body that is drawn by meshes."""
    robot = ls.Robot("drawn")
    robot.add_link("body", ls.RigidBody(1.0, inertia=(1.0, 1.0, 1.0), meshes=meshes), ls.JointRevolute())
    return robot


@pytest.fixture
def file(tmp_path):
    """A tetrahedron as an STL file in millimetres, in a folder beside the robot file."""
    (tmp_path / "meshes").mkdir()
    rows = ["solid tetrahedron"]
    for side in SIDES:
        corners = [f"vertex {' '.join(str(1000 * x) for x in CORNERS[k])}" for k in side]
        rows += ["facet normal 0 0 0", "outer loop", *corners, "endloop", "endfacet"]
    path = tmp_path / "meshes" / "body.stl"
    path.write_text("\n".join([*rows, "endsolid tetrahedron"]), encoding="utf-8")
    return path


def test_surface_is_scaled_and_placed(file):
    """Purpose: a mesh from numbers and the same from a file have one surface, in the body's frame in metres."""
    for mesh in (
        ls.Mesh(vertices=CORNERS, triangles=SIDES, placement=PLACED),
        ls.Mesh(file=str(file), scale=1e-3, placement=PLACED),
    ):
        vertices, triangles = mesh.surface()
        assert volume(vertices, triangles) == pytest.approx(1 / 6)
        assert vertices.min(axis=0) == pytest.approx([-0.9, 0.2, 0.3]) and len(triangles) == 4


@pytest.mark.parametrize(
    "shape, expected, error",
    [
        (ls.ShapeBox(0.1, 0.2, 0.3), 0.006, 1e-12),
        (ls.ShapeCylinder(0.1, 0.5, axis=(0, 1, 0)), np.pi * 0.005, 0.01),
        (ls.ShapeSphere(0.1), 4 / 3 * np.pi * 1e-3, 0.03),
        (ls.ShapeCapsule(0.1, 0.5, (0, 0, 1)), np.pi * (0.005 + 4e-3 / 3), 0.03),
    ],
    ids=lambda value: type(value).__name__,
)
def test_shapes_become_meshes(shape, expected, error):
    """Purpose: the mesh of a shape encloses its volume, less what the facets cut off, and faces outwards."""
    vertices, triangles = ls.Mesh.of_shape(shape).surface()
    assert volume(vertices, triangles) == pytest.approx(expected, rel=error)
    edges = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    assert (np.unique(edges, axis=0, return_counts=True)[1] == 2).all()  # it is closed


def test_meshes_reach_the_model_and_change_nothing():
    """Purpose: who draws a model finds the meshes at its bodies; the dynamics does not know them."""
    mesh = ls.Mesh(vertices=CORNERS, triangles=SIDES, color=(1, 0, 0, 0.5))
    model = with_meshes(mesh).build()
    assert model.links.body[0].drawn_meshes() == (mesh,)
    assert ls.mass_matrix(model, [0.3]) == pytest.approx(np.eye(1))
    assert with_meshes().build().links.body[0].drawn_meshes() == ()
    assert ls.Rod.drawn_meshes(None) == ()


def test_robot_files_hold_numbers_and_name_files(file, tmp_path):
    """Purpose: what is saved is read again, and names mesh files from the folder of the robot file."""
    mesh = ls.Mesh(vertices=CORNERS, triangles=SIDES, color=(0.1, 0.2, 0.3), placement=PLACED)
    robot = with_meshes(mesh, ls.Mesh(file=str(file), scale=(1e-3, 1e-3, -1e-3)))
    again = round_trip(robot, tmp_path)
    assert_same(robot, again)
    assert "file: meshes/body.stl" in (tmp_path / "robot.yaml").read_text(encoding="utf-8")
    assert volume(*again.links["body"].body.meshes[1].surface()) == pytest.approx(-1 / 6)


@pytest.mark.parametrize(
    "given, rule",
    [
        ({}, "needs a file, or vertices and triangles, and not both"),
        ({"file": "a.stl", "vertices": CORNERS}, "needs a file, or vertices"),
        ({"vertices": CORNERS, "triangles": [[0, 1, 4]]}, "numbers of vertices, from 0 to 3"),
        ({"file": "a.stl", "scale": 0.0}, "a number or three, and not 0"),
        ({"file": "a.stl", "color": (1, 2, 0)}, "from 0 to 1"),
        ({"file": 3}, "must be a path"),
    ],
)
def test_mistakes_are_named(given, rule):
    """Purpose: a wrong mesh is refused when the robot is built, by its place."""
    with pytest.raises(ls.ModelError, match=rf"link 'body' > body > meshes\[0\].*{rule}"):
        with_meshes(ls.Mesh(**given)).build()
    with pytest.raises(ls.ModelError, match="meshes: must be a list of Mesh"):
        ls.RigidBody(1.0, meshes="a.stl").check("body")


def test_files_that_cannot_be_read_are_named(tmp_path):
    """Purpose: a missing file, an empty one and one that is no mesh say so with their name, when they are drawn."""
    for name, content in (("missing.stl", None), ("empty.stl", ""), ("text.obj", "no mesh"), ("a.xyzzy", "1")):
        if content is not None:
            (tmp_path / name).write_text(content, encoding="utf-8")
        model = with_meshes(ls.Mesh(file=str(tmp_path / name))).build()
        with pytest.raises(ls.ModelError, match=rf"mesh '.*{name}': (cannot be read|must hold triangles)"):
            model.links.body[0].meshes[0].surface()
