"""What a robot may touch is drawn where it is, behind it, cut to the picture, and only where it is wanted."""

from __future__ import annotations

import matplotlib.image
import numpy as np
import pytest
from forces.exact_distances import distance
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from robot_descriptions import SHAPES

import lissom as ls
from lissom.viewing import scene

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


def collections(figure):
    """Corners of what is drawn, in the order drawn: those of obstacles, and those of the robot."""
    found = sorted((c for c in figure.axes[0].collections if isinstance(c, Poly3DCollection)), key=lambda c: c.zorder)
    padding = [np.broadcast_to(c._invalid_vertices, np.shape(c._faces)[:2]) for c in found]  # polygons differ in size
    corners = [[face[~none] for face, none in zip(np.array(c._faces), rows)] for c, rows in zip(found, padding)]
    return [x for x, c in zip(corners, found) if c.zorder < 2], [x for x, c in zip(corners, found) if c.zorder >= 2]


def box(figure):
    """Corners of the box drawn."""
    ax = figure.axes[0]
    return np.transpose([ax.get_xlim(), ax.get_ylim(), ax.get_zlim()])


@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
@pytest.mark.parametrize("on", [None, "box"])
def test_every_corner_drawn_lies_on_the_shape_and_in_the_picture(shape, on):
    """Purpose: each shape is drawn on its surface, wherever it is and moves, and nothing leaves the box."""
    model = described(shape, on=on)
    q = np.linspace(-0.2, 0.2, 2 * model.nq).reshape(2, -1)
    figure = ls.plot_shapes(model, q)
    (drawn,), robot = collections(figure)
    low, high = box(figure)
    corners = np.concatenate(drawn)
    assert len(robot) == 2 and (corners >= low - 1e-12).all() and (corners <= high + 1e-12).all()
    g = PLACE if on is None else ls.frame_pose(model, q[-1], "box") @ PLACE
    local = (corners - g[:3, 3]) @ g[:3, :3]
    chords = 0.007 * getattr(shape, "radius", 0.0)  # what cuts leave of 48 facets around and 16 from pole to pole
    assert max(abs(distance(shape, x)[0]) for x in local) < 1e-12 + chords


def test_a_robot_that_touches_nothing_is_drawn_as_before():
    """Purpose: without contacts the option changes nothing, and without the option contacts change nothing."""
    plain, touching = described(), described(ls.ShapeSphere(0.1))
    q = np.full(plain.nq, 0.2)
    reference = ls.plot_shapes(plain, q, obstacles=False)
    for figure in (ls.plot_shapes(plain, q), ls.plot_shapes(touching, q, obstacles=False)):
        obstacles, (robot,) = collections(figure)
        np.testing.assert_array_equal(np.concatenate(robot), np.concatenate(collections(reference)[1][0]))
        np.testing.assert_array_equal(box(figure), box(reference))
        assert obstacles == []
    assert len(collections(ls.plot_shapes(touching, q))[0]) == 1


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
    assert len(collections(ls.plot_shapes(model, model.neutral()))[0]) == 2
    assert len(collections(ls.plot_shapes(model, model.neutral(), links=["a"]))[0]) == 1


def test_what_is_far_away_does_not_shrink_the_robot():
    """Purpose: a shape many lengths away, or much larger than the robot, leaves the picture's box to the robot."""
    away = np.eye(4)
    away[2, 3] = -50.0
    robot = ls.Robot("far")
    robot.add_link("box", ls.RigidBody.box(0.1, 0.1, 0.1, density=500), ls.JointRevolute())
    expected = box(ls.plot_shapes(robot.build(), [0.0]))
    robot.add_contact("floor", "box", ls.ShapePlane(), placement=away)
    robot.add_contact("earth", "box", ls.ShapeSphere(49.93), placement=away)
    model = robot.build()
    figure = ls.plot_shapes(model, [0.0])
    assert np.abs(box(figure) - expected).max() < 0.05
    for shape in collections(figure)[0]:
        assert (np.concatenate(shape) >= box(figure)[0] - 1e-12).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_cut_polygon_has_the_area_inside_the_box(seed):
    """Purpose: cutting a tilted square to a box keeps exactly the part inside, by counting random points of it."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    low, high = -np.array([0.5, 0.6, 0.7]), np.array([0.6, 0.4, 0.5])
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) @ frame.T
    (polygon,) = scene.cut_to_box(square[None], low, high)
    ahead = np.roll(polygon, -1, axis=0)
    area = 0.5 * np.linalg.norm(np.cross(polygon, ahead).sum(axis=0))
    points = np.column_stack([rng.uniform(-1, 1, (200_000, 2)), np.zeros(200_000)]) @ frame.T
    share = ((points >= low) & (points <= high)).all(axis=1).mean()
    assert abs(area - 4 * share) < 5 * 4 * np.sqrt(share * (1 - share) / 200_000)  # five standard deviations
    assert np.abs(polygon @ frame[:, 2]).max() < 1e-14


@pytest.mark.graphics
def test_a_film_shows_the_shapes_where_they_move(tmp_path):
    """Purpose: an obstacle that moves with a link moves in the film, and is not there without the option."""
    model = described(ls.ShapeSphere(0.1), on="box")
    motion = ls.simulate(model, 0.1, t_eval=np.linspace(0, 0.1, 3))
    frames = {}
    for shown in (True, False):
        path = motion.animate(tmp_path / f"{shown}.gif", fps=20, size=(200, 150), obstacles=shown)
        frames[shown] = matplotlib.image.imread(path)
    assert frames[True].shape[:2] != frames[False].shape[:2] or (frames[True] != frames[False]).mean() > 0.02
