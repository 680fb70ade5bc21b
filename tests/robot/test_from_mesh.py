"""Rigid bodies made from meshes: mass, centre of mass and inertia of solids, files, and refused meshes."""

import numpy as np
import pytest

import lissom as ls


def pose(x=(0.0, 0.0, 0.0), turn=0.0):
    """A pose turned about z."""
    g = np.eye(4)
    g[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    g[:3, 3] = x
    return g


def test_a_box_anywhere():
    """A box away from the origin and turned has the mass, centre and inertia of `RigidBody.box`."""
    g = pose((0.3, -0.2, 0.1), 0.4)
    found = ls.RigidBody.from_mesh(ls.Mesh.of_shape(ls.ShapeBox(0.3, 0.2, 0.1), placement=g), density=800.0)
    known = ls.RigidBody.box(0.3, 0.2, 0.1, density=800.0)
    assert found.mass == pytest.approx(known.mass, rel=1e-12)
    np.testing.assert_allclose(found.com, g[:3, 3], atol=1e-12)
    turned = g[:3, :3] @ np.diag(known.inertia) @ g[:3, :3].T
    np.testing.assert_allclose(found.inertia, turned, rtol=0, atol=1e-12 * known.mass)
    assert [type(x.shape) for x in found.shapes] == [ls.ShapeMesh] and len(found.meshes) == 1


def prism(count, radius, height):
    """A prism over a regular polygon, as mesh, with its volume and its second moments ∫x² = ∫y² and ∫z²."""
    angle = 2 * np.pi * np.arange(count) / count
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    vertices = np.vstack([np.hstack([ring, np.full((count, 1), z)]) for z in (-height / 2, height / 2)])
    k = np.arange(count)
    after = (k + 1) % count
    rows = [np.stack([k, after, k + count], axis=1), np.stack([after, after + count, k + count], axis=1)]
    rows += [np.stack([0 * k[1:-1], k[2:], k[1:-1]], axis=1), np.stack([0 * k[1:-1], k[1:-1], k[2:]], axis=1) + count]
    area = count / 2 * radius**2 * np.sin(2 * np.pi / count)
    across = height * area * radius**2 * (2 + np.cos(2 * np.pi / count)) / 12
    return ls.Mesh(vertices=vertices, triangles=np.vstack(rows)), area * height, across, area * height**3 / 12


@pytest.mark.parametrize("count", [3, 7])
def test_prisms(count):
    """Volume and moments of a prism over a regular polygon."""
    mesh, volume, across, along = prism(count, 0.2, 0.5)
    found = ls.RigidBody.from_mesh(mesh, material=ls.Material(young=1e9, density=1200), shapes="hull")
    assert found.mass == pytest.approx(1200 * volume, rel=1e-12)
    expected = 1200 * np.diag([across + along, across + along, 2 * across])
    np.testing.assert_allclose(found.inertia, expected, rtol=0, atol=1e-12 * found.mass)
    assert [type(x.shape) for x in found.shapes] == [ls.ShapeHull]


def test_a_cavity_has_no_mass():
    """A box with a smaller box turned inwards in it weighs their difference."""
    outer, inner = (ls.Mesh.of_shape(ls.ShapeBox(a, a, a)).surface() for a in (0.2, 0.1))
    vertices = np.vstack([outer[0], inner[0]])
    triangles = np.vstack([outer[1], inner[1][:, ::-1] + len(outer[0])])
    found = ls.RigidBody.from_mesh(ls.Mesh(vertices=vertices, triangles=triangles), density=1000.0, shapes=None)
    assert found.mass == pytest.approx(1000 * (0.2**3 - 0.1**3), rel=1e-12) and found.shapes == ()


def test_a_file_in_millimetres(tmp_path):
    """An STL file in millimetres, by its path, falls like the box that it holds, in its joint frame."""
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / "part.stl"
    trimesh.creation.box((300.0, 200.0, 100.0)).export(path)
    found = ls.RigidBody.from_mesh(path, density=800.0, scale=1e-3, placement=pose((0.1, 0.0, 0.0)), shapes=None)
    known = ls.RigidBody.box(0.3, 0.2, 0.1, density=800.0)
    assert found.mass == pytest.approx(known.mass, rel=1e-6)  # STL has single precision
    np.testing.assert_allclose(found.com, [0.1, 0.0, 0.0], atol=1e-8)
    robot = ls.Robot("part")
    robot.add_link("part", found, ls.JointRevolute((0, 1, 0)))
    a = ls.forward_dynamics(robot.build(), [0.0], [0.0], [])
    expected = known.mass * 9.81 * 0.1 / (known.inertia[1] + known.mass * 0.01)
    assert a[0] == pytest.approx(expected, rel=1e-6)


def test_robot_files_take_meshes(tmp_path):
    """`shape: mesh` of a robot file reads the mesh beside it, with its unit; saving keeps its numbers."""
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((300.0, 200.0, 100.0)).export(tmp_path / "part.stl")
    text = """\
name: part
links:
  - name: part
    joint: {type: JointRevolute}
    body:
      {type: RigidBody, shape: mesh, mesh: {file: part.stl, scale: 0.001}, density: 800, shapes: hull}
"""
    (tmp_path / "robot.yaml").write_text(text, encoding="utf-8")
    body = ls.load_robot(tmp_path / "robot.yaml").links["part"].body
    known = ls.RigidBody.box(0.3, 0.2, 0.1, density=800.0)
    assert body.mass == pytest.approx(known.mass, rel=1e-6) and len(body.meshes) == 1
    np.testing.assert_allclose(np.diag(body.inertia), known.inertia, rtol=1e-6)
    assert [type(x.shape) for x in body.shapes] == [ls.ShapeHull]
    ls.save_robot(ls.load_robot(tmp_path / "robot.yaml"), tmp_path / "saved.yaml")
    again = ls.load_robot(tmp_path / "saved.yaml").links["part"].body
    assert again.mass == body.mass and np.array_equal(again.inertia, body.inertia)
    (tmp_path / "robot.yaml").write_text(text.replace("shapes: hull", "shapes: box"), encoding="utf-8")
    with pytest.raises(ls.ModelError, match="shapes"):
        ls.load_robot(tmp_path / "robot.yaml")


def test_refused_meshes(tmp_path):
    """Open meshes, densities and options that are wrong are errors with their rule."""
    vertices, triangles = ls.Mesh.of_shape(ls.ShapeBox(0.1, 0.1, 0.1)).surface()
    is_open = ls.Mesh(vertices=vertices, triangles=triangles[:-1])
    whole = ls.Mesh(vertices=vertices, triangles=triangles)
    for mesh, given, told in (
        (is_open, {"density": 1.0}, "RigidBody.from_mesh > mesh: .*triangle on one side only"),
        (whole, {}, "RigidBody.from_mesh > density: must be given"),
        (whole, {"density": -1.0}, "density: must be > 0"),
        (whole, {"density": 1.0, "shapes": "box"}, "must be 'mesh', 'hull' or None"),
        (whole, {"density": 1.0, "scale": 1e-3}, "must be left out with a Mesh"),
    ):
        with pytest.raises(ls.ModelError, match=told):
            ls.RigidBody.from_mesh(mesh, **given)
