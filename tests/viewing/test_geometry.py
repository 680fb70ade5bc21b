"""Surfaces and lines of a robot: closed, seen from outside, where the mechanics has them, with the right normals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lissom as ls
from lissom.robot.bodies import Solid
from lissom.viewing.geometry import (
    AROUND,
    STATIONS,
    contact_geometry,
    polygon_triangles,
    robot_geometry,
    solid_facets,
)

EXAMPLES = Path(__file__).parents[2] / "examples" / "robots"
BENT = ((0.0, -0.01), (0.02, -0.01), (0.02, 0.01), (0.01, 0.01), (0.01, 0.0), (0.0, 0.0))  # an L, its inner corner last


def of_rod(section, length=0.5):
    """A straight rod of a section along x, and its drawn geometry."""
    robot = ls.Robot("rod")
    basis = ls.BasisLegendre(torsion=1, bending_y=2, bending_z=2, elongation=1)
    robot.add_link("rod", ls.Rod(length, section, basis, ls.Material(young=1e6, density=1000), gauss_points=40))
    robot.add_tendon("t", "rod", lambda s: (0.01 * np.cos(6 * s), 0.01 * np.sin(6 * s)))
    model = robot.build()
    return model, robot_geometry(model)


@pytest.fixture(scope="module")
def hybrid():
    """A robot with boxes, rods, a branch, and a tendon through several links."""
    model = ls.load_robot(EXAMPLES / "hybrid_arm.yaml").build()
    return model, robot_geometry(model)


def states(model, count=2):
    """Random configurations."""
    rng = np.random.default_rng(3)
    return ls.integrate(model, model.neutral(), 0.3 * rng.normal(size=(count, model.nv)))


def volume(points, mesh):
    """Enclosed by a mesh, positive where its facets are seen from outside."""
    a, b, c = np.moveaxis(points[mesh.rows][mesh.triangles], 1, 0)
    return float(np.einsum("ki,ki->", a, np.cross(b, c))) / 6.0


def is_closed(points, mesh):
    """Whether each edge of a mesh is run along once in either direction, vertices at one place counting as one."""
    _, number = np.unique(np.round(points[mesh.rows], 9) + 0.0, axis=0, return_inverse=True)
    corners = number.reshape(-1)[mesh.triangles]
    corners = corners[[len(set(row)) == 3 for row in corners.tolist()]]
    edges = [tuple(e) for e in np.concatenate([corners[:, [k, (k + 1) % 3]] for k in range(3)]).tolist()]
    return len(set(edges)) == len(edges) and {(b, a) for a, b in edges} == set(edges)


POLYGON = AROUND / (2 * np.pi) * np.sin(2 * np.pi / AROUND)  # of the area of its circle
SECTIONS = [
    (ls.SectionCircle((0.02, 0.01)), POLYGON * np.pi * (0.02**2 + 0.02 * 0.01 + 0.01**2) / 3),
    (ls.SectionEllipse(0.02, (0.01, 0.005)), POLYGON * np.pi * 0.02 * 0.0075),
    (ls.SectionRectangle(0.02, (0.03, 0.01)), 0.02 * 0.02),
    (ls.SectionAnnulus(0.02, 0.012), POLYGON * np.pi * (0.02**2 - 0.012**2)),
    (ls.SectionPolygon(BENT), 0.02 * 0.01 + 0.01 * 0.01),
    (ls.SectionGeneral(shape=ls.SectionAnnulus(0.02, 0.01)), POLYGON * np.pi * (0.02**2 - 0.01**2)),
]


@pytest.mark.parametrize(("section", "area"), SECTIONS, ids=lambda x: type(x).__name__)
def test_rods_enclose_the_volume_of_their_sections(section, area):
    """Purpose: tapers, holes and corners are drawn, ends included, and all of it is seen from outside."""
    model, geometry = of_rod(section)
    (mesh,), points = geometry.meshes, geometry.points(model.neutral())
    assert mesh.kind == "rod" and is_closed(points, mesh)
    assert volume(points, mesh) == pytest.approx(0.5 * area, rel=1e-9)
    assert np.nanmin(mesh.s) == 0.0 and np.nanmax(mesh.s) == 1.0


@pytest.mark.parametrize("form", ["box", "cylinder", "ellipsoid"])
def test_solids_enclose_their_volume(form):
    """Purpose: the same for what rigid bodies are drawn as, about their centre."""
    half, centre = np.array([0.3, 0.2, 0.1]), np.array([1.0, -2.0, 0.5])
    found = solid_facets(Solid(form, half, centre))
    a, b, c, d = np.moveaxis(found.vertices[found.quads], 1, 0)
    enclosed = (np.einsum("ki,ki->", a, np.cross(b, c)) + np.einsum("ki,ki->", a, np.cross(c, d))) / 6.0
    full = {"box": 8.0, "cylinder": 2.0 * np.pi, "ellipsoid": 4.0 / 3.0 * np.pi}[form] * half.prod()
    assert enclosed == pytest.approx(full, rel=1e-9 if form == "box" else 1e-2)
    np.testing.assert_allclose([found.vertices.min(axis=0), found.vertices.max(axis=0)], [centre - half, centre + half])


def test_meshes_are_drawn_in_place_of_the_solid():
    """Purpose: a body's own meshes stand where they are placed, welded, with their colours, edges sharp."""
    shifted = np.eye(4)
    shifted[:3, 3] = 0.0, 0.0, 0.3
    meshes = (
        ls.Mesh.of_shape(ls.ShapeBox(0.1, 0.2, 0.4), color=(1.0, 0.5, 0.0)),
        ls.Mesh.of_shape(ls.ShapeSphere(0.05), placement=shifted),
    )
    robot = ls.Robot("one")
    robot.add_link("body", ls.RigidBody(1.0, inertia=(1.0, 1.0, 1.0), meshes=meshes), ls.JointRevolute((1, 0, 0)))
    model = robot.build()
    geometry, q = robot_geometry(model), np.array([0.4])
    points = geometry.points(q)
    box, ball = geometry.meshes
    assert box.color == (1.0, 0.5, 0.0) and ball.color is None and box.kind == "rigid" and box.name == "body"
    assert volume(points, box) == pytest.approx(0.1 * 0.2 * 0.4) and len(points[box.rows]) == 24
    g = ls.frame_pose(model, q, "body")
    np.testing.assert_allclose(np.linalg.norm(points[ball.rows] - g[:3, 3] - 0.3 * g[:3, 2], axis=1), 0.05, rtol=1e-9)


def test_triangles_of_a_polygon_fill_it():
    """Purpose: a polygon with inner corners is cut into triangles of its own area, none turned over."""
    angle = np.linspace(0.0, 2 * np.pi, 40, endpoint=False)
    star = (1.0 + 0.6 * np.cos(5 * angle))[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for points in (np.array(BENT), star):
        a, b, c = np.moveaxis(points[polygon_triangles(points)], 1, 0)
        areas = 0.5 * ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0])
        y, z = points.T
        assert areas.min() >= 0.0
        assert areas.sum() == pytest.approx(0.5 * (y @ np.roll(z, -1) - z @ np.roll(y, -1)), rel=1e-12)


def test_normals_are_smooth_around_and_sharp_at_edges(hybrid):
    """Purpose: on the side of a straight cylinder normals point from its axis, at its ends along it; on a box they are
    those of its faces; on a bent rod, and on all of a robot, they have unit length."""
    model, geometry = of_rod(ls.SectionCircle(0.02))
    points = geometry.points(model.neutral())
    normals, mesh = geometry.normals(points)[geometry.meshes[0].rows], geometry.meshes[0]
    end = np.abs(normals[:, 0]) > 0.5
    np.testing.assert_allclose(np.abs(normals[end, 0]), 1.0, atol=1e-12)
    across = points[mesh.rows][~end] * [0.0, 1.0, 1.0]
    np.testing.assert_allclose(normals[~end], across / 0.02, atol=1e-9)
    assert end.sum() == 2 * (AROUND + 1) and len(end) == end.sum() + STATIONS * AROUND

    model, geometry = hybrid
    q = states(model)[0]
    points = geometry.points(q)
    normals = geometry.normals(points)
    box = next(mesh for mesh in geometry.meshes if mesh.name == "base")
    R = ls.frame_pose(model, q, "base")[:3, :3]
    found = np.unique(np.round(normals[box.rows] @ R, 9) + 0.0, axis=0)
    np.testing.assert_array_equal(found, np.unique(np.concatenate([np.eye(3), -np.eye(3)]), axis=0))
    for mesh in geometry.meshes:
        np.testing.assert_allclose(np.linalg.norm(normals[mesh.rows], axis=1), 1.0, atol=1e-12)


def test_points_of_several_configurations_are_those_of_each(hybrid):
    """Purpose: a batch is what its rows are, and frames are frame_pose."""
    model, geometry = hybrid
    q = states(model, 3)
    together = geometry.points(q)
    np.testing.assert_allclose(together, [geometry.points(row) for row in q], atol=1e-13)
    for name, g in geometry.frames(q).items():
        np.testing.assert_allclose(g, ls.frame_pose(model, q, name), atol=1e-13)
    assert set(geometry.frames(q[0])) == {*model.links.names, *model.frames}


def test_strains_and_speeds_of_points():
    """Purpose: points on a section have its strain ξ = Φq + ξ*, by differences of poses along the rod; their speed is
    that of their section's twist."""
    model, geometry = of_rod(ls.SectionCircle(0.02))
    q, v = states(model)
    mesh, points = geometry.meshes[0], geometry.points(q)
    k = int(np.argmin(np.abs(mesh.s - 0.4)))
    s, h = float(mesh.s[k]), 1e-5
    g, ahead, behind = (ls.frame_pose(model, q, "rod", s=x) for x in (s, s + h, s - h))
    slope = np.linalg.inv(g) @ (ahead - behind) / (2 * h * 0.5)
    expected = [slope[2, 1], slope[0, 2], slope[1, 0], *slope[:3, 3]]
    np.testing.assert_allclose(geometry.strains(q)[k], expected, atol=1e-6)
    eta = ls.frame_twist(model, q, v, "rod", s=s)
    local = g[:3, :3].T @ (points[mesh.rows][k] - g[:3, 3])
    speed = np.linalg.norm(eta[3:] + np.cross(eta[:3], local))
    assert geometry.speeds(q, v)[k] == pytest.approx(speed, rel=1e-6)


def test_lines_end_where_springs_loops_and_links_do():
    """Purpose: springs, loops and ties join the points that the description names, in any configuration."""
    robot = ls.Robot("linkage")
    rod = ls.Rod(0.4, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=2), ls.Material(young=1e6, density=1000))
    robot.add_link("crank", ls.RigidBody.box(0.2, 0.02, 0.02, density=500), ls.JointRevolute((0, 1, 0)))
    aside = np.eye(4)
    aside[:3, 3] = 0.1, 0.0, 0.02
    robot.add_link("rod", rod, ls.JointRevolute((0, 1, 0)), parent="crank", placement=aside)
    ground = ls.PathPoint(None, (0.3, 0.0, -0.2))
    robot.add_spring("cable", ls.PathPoint("rod", (0.0, 0.0, 0.01), s=0.5), ground, stiffness=10.0)
    robot.add_loop("pin", "rod", None, placement_b=np.eye(4), joint=ls.JointRevolute((0, 1, 0)))
    model = robot.build()
    geometry, q = robot_geometry(model), states(model)[0]
    points = geometry.points(q)
    (spring,), (loop,), (tie,) = (geometry.of(kind) for kind in ("spring", "loop", "tie"))
    middle = ls.frame_pose(model, q, "rod", s=0.5)
    expected = [middle[:3, 3] + 0.01 * middle[:3, 2], ground.position]
    np.testing.assert_allclose(points[spring.rows], expected, atol=1e-13)
    np.testing.assert_allclose(points[loop.rows], [ls.frame_pose(model, q, "rod")[:3, 3], np.zeros(3)], atol=1e-13)
    starts = [ls.frame_pose(model, q, "crank")[:3, 3], ls.frame_pose(model, q, "rod", s=0.0)[:3, 3]]
    np.testing.assert_allclose(points[tie.rows], starts, atol=1e-13)
    assert spring.links == ("rod",) and tie.links == ("crank", "rod")


def test_contact_shapes_are_named_by_their_contact():
    """Purpose: a plane reaches over the box asked for, a shape on a link moves with it, and both name their kinds."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.1, density=100), ls.JointPrismatic((0, 0, 1)))
    robot.add_link("box", ls.RigidBody.box(0.1, 0.1, 0.1, density=500), ls.JointPrismatic((0, 0, 1)))
    robot.add_contact("floor", "ball", ls.ShapePlane())
    robot.add_contact("lid", "ball", ls.ShapeSphere(0.05), on="box")
    model = robot.build()
    q, low, high = np.array([0.0, 0.7]), np.array([-1.0, -2.0, -0.1]), np.array([3.0, 2.0, 1.0])
    geometry = contact_geometry(model, q, low, high)
    floor, lid = geometry.meshes
    assert (floor.kind, floor.name, floor.link) == ("plane", "floor", None)
    assert (lid.kind, lid.name, lid.link) == ("shape", "lid", "box")
    points = geometry.points(q)
    reach = np.abs(points[floor.rows]).max(axis=0)  # its axes are any two across its normal
    assert (reach[:2] >= 2.0).all() and reach[2] < 1e-12
    np.testing.assert_allclose(np.linalg.norm(points[lid.rows] - [0.0, 0.0, 0.7], axis=1), 0.05, rtol=1e-9)


def test_bodies_without_meshes_show_their_collision_shapes():
    """A body of a given inertia is drawn by its placed shapes, also without mass; an outline or meshes replace them."""
    place = np.eye(4)
    place[:3, 3] = 0.0, 0.0, -0.06
    shapes = (ls.PlacedShape(ls.ShapeBox(0.01, 0.04, 0.12), place), ls.PlacedShape(ls.ShapeSphere(0.02)))
    drawn = {}
    for name, given in {
        "shapes": {"inertia": (1e-4, 1e-4, 1e-4)},
        "weightless": {"mass": 0.0},
        "outline": {"inertia": (1e-4, 1e-4, 1e-4), "outline": (0.1, 0.1, 0.1)},
    }.items():
        robot = ls.Robot("bodies")
        robot.add_link("body", ls.RigidBody(**({"mass": 0.1} | given), shapes=shapes))
        model = robot.build()
        found = robot_geometry(model)
        points = np.concatenate([found.points(model.neutral())[mesh.rows] for mesh in found.meshes])
        drawn[name] = points.min(axis=0), points.max(axis=0)
    for name in ("shapes", "weightless"):
        np.testing.assert_allclose(drawn[name][0], [-0.02, -0.02, -0.12], atol=1e-3)
        np.testing.assert_allclose(drawn[name][1], [0.02, 0.02, 0.02], atol=1e-3)
    np.testing.assert_allclose(drawn["outline"][1], [0.1, 0.1, 0.1])
