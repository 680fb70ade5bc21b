"""Supports in pictures: clamped rods are held by something, hanging robots hang, and chambers are seen."""

import numpy as np
import pytest

import lissom as ls
from lissom.viewing.canvas import background_planes, canvas, merged
from lissom.viewing.geometry import robot_geometry
from lissom.viewing.mounts import hangs, mounts
from lissom.viewing.render import Scene, tube

DOWN = np.array([[0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0.5], [0, 0, 0, 1.0]])
UP = np.array([[0, 0, -1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1.0]])


def arm(placement, **chamber):
    """A rod clamped to the world, with a chamber."""
    robot = ls.Robot("arm")
    basis = ls.BasisLegendre(bending_y=1, bending_z=1)
    rod = ls.Rod(0.4, ls.SectionCircle(0.02), basis, ls.Material(young=1e6, density=1000))
    robot.add_link("arm", rod, placement=placement)
    robot.add_chamber("bladder", "arm", **({"area": 1e-4, "offset": (0.008, 0.0)} | chamber))
    return robot.build()


def scene(model, q=None, **options):
    """The scene of a picture."""
    given = {"curves": [], "links": None, "paint": None, "values": None, "view": (20.0, -60.0), "obstacles": True}
    return Scene(model, (model.neutral() if q is None else np.asarray(q))[None], size=300, **(given | options))


def test_a_hanging_arm_hangs_from_a_plate_and_stands_on_nothing():
    """The plate touches the clamped end from outside, is wider than the rod, and no ground is drawn."""
    shown = scene(arm(DOWN))
    (plate,) = shown._shown_mounts
    assert plate.vertices[:, 2].min() == pytest.approx(0.5, abs=1e-12) and plate.vertices[:, 2].max() < 0.52
    assert np.abs(plate.vertices[:, :2]).max() > 0.02
    assert not shown._background.planes


def test_chambers_show_through_their_rod_and_not_through_the_plate():
    """Seen from above, the plate of a hanging arm has its own colours where it hides the chamber; the rod lets the
    chamber be seen."""
    model = arm(DOWN)
    shown, points = scene(model), robot_geometry(model).points(model.neutral())
    bodies = merged([shown._bodies(model.neutral(), points, None), *shown._shown_mounts])
    with canvas(shown.camera) as drawn:
        found = shown._robot(drawn, bodies, points)
        plain = drawn.layer(shown.camera, bodies, found.window)
        chamber = drawn.layer(shown.camera, shown.paint.lines(points), found.window)
        plate = drawn.layer(shown.camera, merged(shown._shown_mounts), found.window)
    hidden = np.isfinite(chamber.near) & (plate.near >= plain.near) & np.isfinite(plate.near)
    assert hidden.any() and np.array_equal(found.colors[hidden], plain.colors[hidden])
    seen = np.isfinite(chamber.near) & ~hidden
    assert np.abs(found.colors[seen] - plain.colors[seen]).max() > 0.05


def test_an_arm_that_stands_has_its_ground_and_no_plate():
    """Its base lies in the plane that is drawn."""
    shown = scene(arm(UP))
    assert shown._shown_mounts == [] and len(shown._background.planes) == 1


def test_a_pendulum_hangs_by_its_joint():
    """A body on a ball joint that swings below it: a stem leads from the joint up to a plate."""
    robot = ls.Robot("pendulum")
    robot.add_link("bob", ls.RigidBody.box(0.3, 0.02, 0.02, density=1e3), ls.JointRevolute((0.0, 1.0, 0.0)))
    low = np.eye(4)
    low[2, 3] = -0.3
    robot.add_link("weight", ls.RigidBody.sphere(0.05, density=1e3), parent="bob", placement=low)
    model = robot.build()
    shown = scene(model)
    stem, plate = shown._shown_mounts
    assert stem.vertices[:, 2].min() == pytest.approx(0.0, abs=1e-12)
    assert plate.vertices[:, 2].min() == pytest.approx(stem.vertices[:, 2].max(), abs=1e-12)
    points = robot_geometry(model).points(model.neutral())
    assert hangs(model, points) and len(background_planes(model, shown.camera, points)) == 1
    assert mounts(model, robot_geometry(model), model.neutral(), points, ["bob"], True) == []


def test_free_robots_hang_from_nothing():
    """A body that moves freely has neither plate nor stem."""
    robot = ls.Robot("flyer")
    robot.add_link("body", ls.RigidBody.box(0.2, 0.1, 0.1, density=1.0), ls.JointFree())
    assert scene(robot.build())._shown_mounts == []


def test_a_chamber_is_as_wide_as_its_area_and_follows_its_path():
    """The tube of a tapered chamber lies around frame_pose of its centreline, with the radius √(area/π)."""
    model = arm(UP, area=(2e-4, 5e-5))
    q = np.array([1.0, -0.5, 0.3, 0.2])
    (line,) = robot_geometry(model).of("chamber")
    points = robot_geometry(model).points(q)[line.rows]
    s = np.linspace(0.0, 1.0, len(points))
    g = ls.frame_pose(model, q, "arm", s=s)
    np.testing.assert_allclose(points, g[:, :3, 3] + g[:, :3, :3] @ [0.0, 0.008, 0.0], atol=1e-12)
    np.testing.assert_allclose(np.pi * line.radius**2, 2e-4 - 1.5e-4 * s, rtol=1e-12)
    drawn = tube(points, line.radius, np.ones(3)).vertices.reshape(len(points), -1, 3)
    away = np.linalg.norm(drawn - points[:, None], axis=-1)
    np.testing.assert_allclose(away, np.tile(line.radius[:, None], away.shape[1]), rtol=1e-9)
    assert list(scene(model, q).paint.keys) == ["bladder"]


def test_names_of_tendons_get_room_where_both_corners_are_taken():
    """A bar along the upper edge covers both corners of its picture; with names the picture leaves room for them."""
    robot = ls.Robot("bar", gravity=(0, 0, 0))
    rod = ls.Rod(0.4, ls.SectionRectangle(0.1, 0.1), ls.BasisLegendre(bending_y=1), ls.Material(young=1e6, density=1e3))
    robot.add_link("bar", rod)
    for k in range(6):
        robot.add_tendon(f"a tendon with a long name {k}", "bar", (0.0, 0.01 * k - 0.025))
    shown = scene(robot.build(), view=(0.0, -90.0))
    names, pixels = shown.paint.keys, shown.camera.pixels(shown._points)
    from lissom.viewing.canvas import Labels

    assert min(Labels(shown.camera).hidden_by_key(names, pixels)[:2]) == 0
