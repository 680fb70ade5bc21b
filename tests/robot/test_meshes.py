"""Meshes that are drawn for rigid bodies: their sources, refused meshes, robot files."""

import numpy as np
import pytest
from one_sided import projective_plane
from robot_descriptions import assert_same, round_trip

import lissom as ls

CORNERS = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
SIDES = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
PLACED = [[0, -1, 0, 0.1], [1, 0, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]]


def volume(vertices, triangles):
    """The volume of a closed surface, positive where it is seen counter-clockwise from outside."""
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
    """Purpose: the mesh of a shape encloses its volume, less the volume cut off by the facets, and faces outwards."""
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
    """Purpose: a saved file is read again, and names mesh files from the folder of the robot file."""
    mesh = ls.Mesh(vertices=CORNERS, triangles=SIDES, color=(0.1, 0.2, 0.3), placement=PLACED)
    robot = with_meshes(mesh, ls.Mesh(file=str(file), scale=(1e-3, 1e-3, -1e-3)))
    again = round_trip(robot, tmp_path)
    assert_same(robot, again)
    assert "file: meshes/body.stl" in (tmp_path / "robot.yaml").read_text(encoding="utf-8")
    assert volume(*again.links["body"].body.meshes[1].surface()) == pytest.approx(
        1 / 6
    )  # a mirrored mesh stays outside


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


def stl(*triangles):
    """The text of an STL file."""
    rows = ["solid s"]
    for corners in triangles:
        rows += ["facet normal 0 0 0", "outer loop", *(f"vertex {p}" for p in corners), "endloop", "endfacet"]
    return "\n".join([*rows, "endsolid s"])


P, Q, R = "0.1 0.2 0.3", "1 0 0", "0 1 0"
BROKEN = {
    "point.stl": (stl([P, P, P], [P, P, P]), "more than a point or a line"),
    "line.stl": (stl(["0 0 0", "1 0 0", "2 0 0"]), "more than a point or a line"),
    "nan.stl": (stl(["nan 0 0", Q, R]), "must be within"),
    "far.obj": ("v 1e300 0 0\nv 0 1e300 0\nv 0 0 1\nf 1 2 3\n", r"must be within .*got \[1e\+300"),
    "endless.obj": ("v 1e999 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\n", "must be within"),
    "wrong.obj": ("v 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 9\n", "cannot be read"),
    "wrong.ply": (
        "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
        "element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n",
        "must number vertices from 0 to 2",
    ),
}


def touching(robot):
    """A robot whose link a touches the ground, so that its contact balls are made."""
    robot.add_contact("ground", "a", ls.ShapePlane(), stiffness=1e3)
    return robot


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("use", ["surface", "urdf", "picture"])
def test_files_without_a_surface_are_named(name, use, tmp_path):
    """Wherever they are used, for an imported robot by a contact: an error of the library that names the file."""
    text, rule = BROKEN[name]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ls.ModelError, match=f"{name}'.*{rule}"):
        if use == "surface":
            ls.Mesh(file=str(path)).surface()
        elif use == "urdf":
            body = f'<collision><geometry><mesh filename="{path}"/></geometry></collision>'
            urdf = tmp_path / "robot.urdf"
            urdf.write_text(f'<robot name="r"><link name="a">{body}</link></robot>', encoding="utf-8")
            touching(ls.load_urdf(urdf)).build()
        else:
            ls.render(with_meshes(ls.Mesh(file=str(path))).build(), [0.0], size=(64, 48))


def test_flat_collision_meshes_are_named(tmp_path):
    """The fault of a flat mesh shows when a contact needs it; the file is named all the same."""
    path = tmp_path / "flat.stl"
    path.write_text(stl([P, Q, R]), encoding="utf-8")
    body = f'<collision><geometry><mesh filename="{path}"/></geometry></collision>'
    (tmp_path / "r.urdf").write_text(f'<robot name="r"><link name="a">{body}</link></robot>', encoding="utf-8")
    robot = touching(ls.load_urdf(tmp_path / "r.urdf"))
    rule = r"link 'a' > body > shapes\[0\]: mesh '.*flat\.stl': in place of its hull: .* leave out this shape"
    with pytest.raises(ls.ModelError, match=rule):
        robot.build()


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"vertices": np.array(CORNERS) * 1e300, "triangles": SIDES}, "must be within"),
        ({"vertices": CORNERS, "triangles": [[0, 0, 1]]}, "more than a point or a line"),
    ],
)
def test_numbers_without_a_surface_are_refused_at_build(given, rule):
    """As those of files are when they are read."""
    with pytest.raises(ls.ModelError, match=rf"meshes\[0\].*{rule}"):
        with_meshes(ls.Mesh(**given)).build()


def test_a_scale_that_overflows_is_refused(file):
    """The vertices are fine, the surface in metres is not."""
    with pytest.raises(ls.ModelError, match=r"body\.stl'.*must be within"):
        ls.Mesh(file=str(file), scale=1e308).surface()


def test_packed_meshes_are_not_unpacked(tmp_path, file, monkeypatch):
    """A small archive that says it holds gigabytes is refused before it is read, one of a mesh is read, and streams
    of unknown contents are refused."""
    import zipfile

    monkeypatch.setattr("lissom.robot.meshes._MOST", 10 * 2**20)
    bomb = tmp_path / "bomb.zip"
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.stl", "w", force_zip64=True) as out,
    ):
        zeros = bytes(2**20)
        for _ in range(12):
            out.write(zeros)
    for name in ("bomb.zip", "bomb.stl", "bomb.3mf"):
        if not (tmp_path / name).exists():
            (tmp_path / name).write_bytes(bomb.read_bytes())
        with pytest.raises(ls.ModelError, match=rf"{name}': must hold at most 10 MiB, unpacked as well \(got '12 MiB'"):
            ls.Mesh(file=str(tmp_path / name)).surface()
    small = tmp_path / "small.zip"
    with zipfile.ZipFile(small, "w") as archive:
        archive.write(file, "body.stl")
    assert len(ls.Mesh(file=str(small)).surface()[1]) == 4
    for name in ("a.stl.gz", "a.stl.bz2", "a.tar"):
        (tmp_path / name).write_bytes(b"1")
        with pytest.raises(ls.ModelError, match=rf"{name}': must not be packed; unpack it"):
            ls.Mesh(file=str(tmp_path / name)).surface()
    with pytest.raises(ls.ModelError, match="/dev/zero': must be a file"):
        ls.Mesh(file="/dev/zero").surface()


def prism(half=(0.1, 0.2, 0.3), at=(0.0, 0.0, 0.0)):
    """Vertices and outward triangles of a box with given half-edges [m]."""
    mesh = ls.Mesh.of_shape(ls.ShapeBox(*(2.0 * np.array(half))))
    return np.asarray(mesh.vertices) + np.array(at), np.asarray(mesh.triangles)


def joined(*parts):
    """One mesh of several parts (vertices, triangles)."""
    start = np.cumsum([0] + [len(part[0]) for part in parts])
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] + k for part, k in zip(parts, start)])


@pytest.mark.parametrize("scale", [-1.0, (-1, 1, 1), (-1, -1, 1), (1, 1, -2), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("inside_out", [False, True])
def test_meshes_are_turned_outwards(scale, inside_out):
    """Purpose: whatever its scale and the sense of its triangles, a closed mesh has its volume, positive."""
    vertices, triangles = prism()
    mesh = ls.Mesh(vertices=vertices, triangles=triangles[:, ::-1] if inside_out else triangles, scale=scale)
    assert volume(*mesh.surface()) == pytest.approx(0.048 * np.abs(np.prod(np.broadcast_to(scale, 3))))


def test_parts_are_turned_one_by_one():
    """Purpose: of two parts side by side the one that is inside out is turned; a part turned inwards inside another
    stays a cavity, and a hollow body that is inside out is turned with its cavity."""
    body, beside, inner = prism(), prism(at=(1.0, 0.0, 0.0)), prism(half=(0.05, 0.1, 0.15))

    def inverted(part):
        return part[0], part[1][:, ::-1]

    for parts, expected in (
        ((body, inverted(beside)), 0.096),
        ((body, inverted(inner)), 0.042),
        ((inverted(body), inner), 0.042),
        ((body, inner), 0.054),
        ((inverted(inner), body, inverted(beside)), 0.09),
    ):
        vertices, triangles = joined(*parts)
        assert volume(*ls.Mesh(vertices=vertices, triangles=triangles).surface()) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_neighbours_are_turned_alike(seed):
    """Purpose: random triangles of a body may be turned; the surface is the same."""
    mesh = ls.Mesh.of_shape(ls.ShapeCapsule(0.1, 0.5, (0, 0, 1)))
    triangles = np.asarray(mesh.triangles).copy()
    turned = np.random.default_rng(seed).random(len(triangles)) < 0.1 + 0.2 * seed
    triangles[turned] = triangles[turned, ::-1]
    found = ls.Mesh(vertices=mesh.vertices, triangles=triangles).surface()
    assert volume(*found) == pytest.approx(volume(*mesh.surface()))


def test_vertices_that_no_triangle_uses_are_left_out():
    """Purpose: they belong to no surface, and do not move its bounds."""
    vertices, triangles = prism()
    found, rows = ls.Mesh(vertices=np.vstack([[9.0, 0, 0], vertices]), triangles=triangles + 1).surface()
    np.testing.assert_array_equal(found[rows], vertices[triangles])
    assert len(found) == len(vertices)


def pressed(mesh):
    """Force on a body of a mesh whose lowest side lies 1 mm deep in the ground [N], with a pressure of 1e6 N/m³."""
    robot, shapes = ls.Robot("pressed"), [ls.PlacedShape(ls.ShapeMesh(mesh))]
    robot.add_link("body", ls.RigidBody(1.0, inertia=(1.0, 1.0, 1.0), shapes=shapes), ls.JointFree())
    robot.add_contact("floor", "body", ls.ShapePlane(), surface=True, stiffness=1e6)
    model, q = robot.build(), np.array([1.0, 0, 0, 0, 0, 0, 0.299])
    return ls.contact_forces(model, q).force.sum(axis=0)


@pytest.mark.parametrize("scale", [(1, 1, 1), (-1, 1, 1), (-1, -1, 1), (1, 1, -1)], ids=str)
@pytest.mark.parametrize("inside_out", [False, True])
def test_surfaces_of_mirrored_meshes_are_touched(scale, inside_out):
    """Purpose: area times pressure, 0.2 m x 0.4 m x 1 mm x 1e6 N/m³, whatever the scale and the sense of triangles."""
    vertices, triangles = prism()
    mesh = ls.Mesh(vertices=vertices, triangles=triangles[:, ::-1] if inside_out else triangles, scale=scale)
    np.testing.assert_allclose(pressed(mesh), [0.0, 0.0, 80.0], rtol=0, atol=1e-9)


def test_open_and_twisted_meshes_are_told():
    """Purpose: an open collision mesh counts as its hull, which is told; a shape of a contact that is open, or has no
    sides, is refused by its place."""
    vertices, triangles = prism()
    top = vertices[triangles].mean(axis=1)[:, 2] > 0.29
    tray = ls.Mesh(vertices=vertices, triangles=triangles[~top])
    why = "collision meshes of link 'body' count as their convex hulls"
    with pytest.warns(ls.AccuracyWarning, match=rf"{why} \(open\)"):
        force = pressed(tray)
    np.testing.assert_allclose(force, [0.0, 0.0, 80.0], rtol=0, atol=1e-9)
    plane = projective_plane()
    down = plane.vertices - np.array([0, 0, plane.vertices[:, 2].min() + 0.3])
    with pytest.warns(ls.AccuracyWarning, match=rf"{why} \(not all triangles can be turned outwards\)"):
        force = pressed(ls.Mesh(vertices=down, triangles=plane.triangles))
    assert force[2] > 0.0
    for mesh, rule in ((tray, "be closed"), (projective_plane(), "have triangles that are all turned outwards")):
        robot = ls.Robot("ball")
        robot.add_link("ball", ls.RigidBody.sphere(0.05, density=1000), ls.JointFree())
        robot.add_contact("cup", "ball", ls.ShapeMesh(mesh), stiffness=1e6)
        with pytest.raises(ls.ModelError, match=f"contact 'cup' > shape: mesh must {rule}"):
            robot.build()
