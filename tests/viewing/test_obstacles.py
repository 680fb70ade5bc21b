"""Contact shapes are drawn where they are, and only where they are wanted."""

from __future__ import annotations

import matplotlib.image
import numpy as np
import pytest
from forces.exact_distances import distance
from robot_descriptions import SHAPES

import lissom as ls
from lissom.robot.sampled_shapes import SampledShape
from lissom.viewing.geometry import contact_geometry
from lissom.viewing.render import Scene

PLACE = np.array([[0.36, 0.48, -0.8, 0.3], [-0.8, 0.6, 0, 0.1], [0.48, 0.64, 0.6, 0.05], [0, 0, 0, 1]])


def described(shape=None, **options):
    """A rod on a hinge and a box on a slide; the rod may touch a shape."""
    robot = ls.Robot("arm")
    rod = ls.Rod(0.5, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=1), ls.Material(young=1e6, density=1000))
    robot.add_link("arm", rod, ls.JointRevolute((0, 1, 0)))
    robot.add_link("box", ls.RigidBody.box(0.1, 0.1, 0.1, density=500), ls.JointPrismatic((0, 0, 1)))
    if shape is not None:
        robot.add_contact("touch", "arm", shape, placement=PLACE, **options)
    return robot.build()


LOW, HIGH = np.full(3, -0.6), np.full(3, 0.7)  # of the box that unbounded shapes are cut to


def shown(model, q, **options):
    """Contact shapes of a picture."""
    return contact_geometry(model, np.asarray(q, dtype=np.float64), LOW, HIGH, **options)


def height(model, q):
    """Height of a picture of one configuration [m]."""
    return Scene(model, np.atleast_2d(q), [], None, None, None, (20.0, -60.0), True, (300, 300)).camera.height


@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
@pytest.mark.parametrize("on", [None, "box"])
def test_every_corner_drawn_lies_on_the_shape(shape, on):
    """Purpose: each shape is drawn on its surface, wherever it is and moves."""
    model = described(shape, on=on)
    q = np.linspace(-0.2, 0.2, 2 * model.nq).reshape(2, -1)[-1]
    geometry = shown(model, q)
    assert len(geometry.meshes) == 1
    g = PLACE if on is None else ls.frame_pose(model, q, "box") @ PLACE
    local = (geometry.points(q) - g[:3, 3]) @ g[:3, :3]
    left = 0.007 * getattr(shape, "radius", 0.0)  # by chords: 48 facets around and 16 from pole to pole
    if isinstance(shape, SampledShape):  # grids round corners by part of a cell; a shell is drawn by its middle
        left = 0.5 * shape.spacing("shape") + 0.5 * (getattr(shape, "thickness", None) or 0.0)
    assert max(abs(distance(shape, x)[0]) for x in local) < 1e-12 + left


def test_a_sphere_that_touches_a_box_by_its_points_is_shown():
    """Purpose: shapes of contacts are drawn, also where the box is the obstacle, and the box once, as a body."""
    robot = ls.Robot("box")
    robot.add_link("box", ls.RigidBody.box(0.1, 0.1, 0.1, density=500), ls.JointFree())
    robot.add_contact("ball", "box", ls.ShapeSphere(0.1), placement=PLACE, stiffness=1e5)
    model = robot.build()
    (mesh,) = shown(model, model.neutral()).meshes
    assert mesh.kind == "shape" and mesh.name == "ball"


@pytest.mark.graphics
def test_a_robot_that_touches_nothing_is_drawn_as_before():
    """Purpose: without contacts the option changes nothing, and without the option contacts change nothing."""
    plain, touching = described(), described(ls.ShapeSphere(0.1))
    q = np.full(plain.nq, 0.2)
    reference = ls.render(plain, q, obstacles=False, size=(240, 180))
    for picture in (ls.render(plain, q, size=(240, 180)), ls.render(touching, q, obstacles=False, size=(240, 180))):
        np.testing.assert_array_equal(picture, reference)
    assert (ls.render(touching, q, size=(240, 180)) != reference).any(axis=-1).mean() > 0.02


def test_balls_repeated_shapes_and_links_that_are_not_drawn_are_left_out():
    """Purpose: a shape of two contacts is drawn once, balls never, the shape of a link with that link."""
    robot = ls.Robot("two")
    rod = ls.Rod(0.5, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=1), ls.Material(young=1e6, density=1000))
    for name in ("a", "b"):
        robot.add_link(name, rod, ls.JointRevolute((0, 1, 0)))
        robot.add_contact(f"floor of {name}", name, ls.ShapePlane())
    robot.add_contact("each other", "a", others="b")
    robot.add_contact("sphere", "a", ls.ShapeSphere(0.1), on="b")
    model = robot.build()
    assert len(shown(model, model.neutral()).meshes) == 2
    assert len(shown(model, model.neutral(), links=["a"]).meshes) == 1


def test_a_distant_shape_does_not_shrink_the_robot():
    """Purpose: a shape many lengths away, or much larger than the robot, leaves the picture to the robot."""
    away = np.eye(4)
    away[2, 3] = -50.0
    robot = ls.Robot("far")
    robot.add_link("box", ls.RigidBody.box(0.1, 0.1, 0.1, density=500), ls.JointRevolute())
    expected = height(robot.build(), [0.0])
    robot.add_contact("floor", "box", ls.ShapePlane(), placement=away)
    robot.add_contact("earth", "box", ls.ShapeSphere(49.93), placement=away)
    assert height(robot.build(), [0.0]) < 1.5 * expected


@pytest.mark.graphics
def test_a_film_shows_the_shapes_where_they_move(tmp_path):
    """Purpose: an obstacle that moves with a link moves in the film, and is not there without the option."""
    model = described(ls.ShapeSphere(0.1), on="box")
    with pytest.warns(ls.PlausibilityWarning, match="'arm' is 7.78 mm deep in 'box'"):
        motion = ls.simulate(model, 0.1, t_eval=np.linspace(0, 0.1, 3))
    frames = {}
    for shown in (True, False):
        path = motion.animate(tmp_path / f"{shown}.gif", fps=20, size=(200, 150), obstacles=shown)
        frames[shown] = matplotlib.image.imread(path)
    assert frames[True].shape[:2] != frames[False].shape[:2] or (frames[True] != frames[False]).mean() > 0.02
