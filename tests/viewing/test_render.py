"""Pictures without a screen: their contents against stored ones, and the place of the camera."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import lissom as ls
from lissom.viewing import canvas
from lissom.viewing.camera import plane_axes, plane_of
from lissom.viewing.canvas import FINER, nice_number
from lissom.viewing.geometry import robot_geometry

REFERENCES = Path(__file__).parent / "references"
SIZE = (200, 150)
# Of 255. Drivers draw the rims of facets and the antialiased words differently: a pixel wide, on a few percent of the
# picture. The test of a hand turned by 17° shows that a changed picture fails.
ALIKE = 0.5


def described(*, planar=False):
    """A clamped rod with a tendon on its surface, and a hand that a cable holds; or without what leaves a plane."""
    robot = ls.Robot("arm")
    basis = ls.BasisLegendre(bending_y=1) if planar else ls.BasisLegendre(bending_y=1, bending_z=1)
    rod = ls.Rod(0.4, ls.SectionCircle((0.03, 0.02)), basis, ls.Material(young=1e6, density=1000))
    robot.add_link("arm", rod)
    robot.add_link("hand", ls.RigidBody.box(0.08, 0.05, 0.05, density=500), ls.JointRevolute((0, 1, 0)), parent="arm")
    robot.add_tendon("lift", "arm", lambda s: (0.0, 0.03 - 0.01 * s))
    robot.add_spring("cable", "hand", ls.PathPoint(None, (0.3, 0.0, 0.2)), stiffness=10.0)
    return robot


@pytest.fixture(scope="module")
def arm():
    """The arm beside a ball and above the ground."""
    robot = described()
    place = np.eye(4)
    place[:3, 3] = 0.2, -0.1, -0.1
    robot.add_contact("ball", "hand", ls.ShapeSphere(0.05), placement=place)
    ground = np.eye(4)
    ground[2, 3] = -0.2
    robot.add_contact("ground", "hand", ls.ShapePlane(), placement=ground)
    return robot.build()


@pytest.fixture(scope="module")
def planar():
    """A four-bar, which moves in the plane x, z."""
    robot, hinge = ls.Robot("four-bar"), ls.JointRevolute((0, 1, 0))
    bar = {"density": 500.0}
    ahead, aside = np.eye(4), np.eye(4)
    ahead[0, 3], aside[0, 3] = 0.1, 0.3
    robot.add_link("crank", ls.RigidBody.box(0.2, 0.02, 0.02, **bar), hinge)
    robot.add_link("coupler", ls.RigidBody.box(0.2, 0.02, 0.02, **bar), hinge, parent="crank", placement=ahead)
    robot.add_link("rocker", ls.RigidBody.box(0.2, 0.02, 0.02, **bar), hinge, placement=aside)
    robot.add_loop("pin", "coupler", "rocker", placement_a=ahead, placement_b=ahead, joint=hinge)
    return robot.build()


PICTURES = {
    "overlay": ("arm", [[0, 0, 0, 0, 0.5], [2, 0, 0, 0, 0.2], [4, 2, 1, 0, 0.8]], {"view": (20.0, -60.0)}),
    "painted": ("arm", [4, 2, 1, 0, 0.8], {"paint": "curvature", "obstacles": False, "title": "bent"}),
    "planar": ("planar", [-1.0, 0.7, -1.3], {}),
}


def drawn(name, arm, planar, more=0.0):
    """One of the pictures, its last coordinate moved a little."""
    model, q, options = PICTURES[name]
    q = np.array(q, dtype=np.float64)
    q[..., -1] += more
    return ls.render({"arm": arm, "planar": planar}[model], q, size=SIZE, **options).astype(float)


@pytest.mark.graphics
@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_those_that_were_stored(name, arm, planar):
    """Purpose: nothing about a picture changes unnoticed; a hand turned by 17° is noticed."""
    with Image.open(REFERENCES / f"{name}.png") as stored:
        reference = np.asarray(stored.convert("RGB"), dtype=float)
    assert np.abs(drawn(name, arm, planar) - reference).mean() < ALIKE
    assert np.abs(drawn(name, arm, planar, 0.3) - reference).mean() > 3.0 * ALIKE


@pytest.mark.graphics
def test_the_nearer_of_two_bodies_hides_the_other():
    """Purpose: where boxes cross each other each pixel shows the surface in front there, from either side."""
    robot = ls.Robot("cross")
    for color, turn in (((1.0, 0.0, 0.0), 0.4), ((0.0, 0.0, 1.0), -0.4)):
        g = np.eye(4)
        g[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        mesh = ls.Mesh.of_shape(ls.ShapeBox(0.4, 0.01, 0.1), placement=g, color=color)
        robot.add_link(f"body {color}", ls.RigidBody(1.0, inertia=(1.0,) * 3, meshes=(mesh,)), ls.JointFree())
    model = robot.build()
    for azimuth in (-90.0, 90.0):  # along y: the box that leans towards the eye on a side is in front there
        picture = ls.render(model, model.neutral(), view=(0.0, azimuth), size=SIZE).astype(int)
        red, blue = (picture[..., k] > picture[..., 2 - k] + 60 for k in (0, 2))
        columns = np.flatnonzero((red | blue)[40:110].any(axis=0))
        left, right = columns[: len(columns) // 3], columns[-len(columns) // 3 :]
        # at x < 0, where the red box has y < 0: in front of the blue one for an eye at y < 0
        assert red[40:110, left].sum() > 0 and blue[40:110, left].sum() == 0
        assert blue[40:110, right].sum() > 0 and red[40:110, right].sum() == 0


@pytest.mark.graphics
def test_overlays_keep_their_tendons(arm):
    """Purpose: the tendon of a translucent shape is drawn with it: blue where there would be the body alone."""
    bare = described()
    del bare.actuators["lift"]
    q = np.array([[4.0, 0.0, 0.0, 0.0, 0.0], [-4.0, 0.0, 0.0, 0.0, 0.0]])
    look = {"view": (0.0, -90.0), "size": SIZE, "obstacles": False}
    with_tendon, without = (ls.render(model, q, **look).astype(int) for model in (described().build(), bare.build()))
    changed = np.abs(with_tendon - without).max(axis=-1) > 12
    changed[:60, :70] = False  # the tendon's name
    lower, upper = changed[75:].sum(), changed[:75].sum()
    assert lower > 20 and upper > 20


def test_planar_robots_are_seen_square_on(arm, planar):
    """Purpose: a robot that cannot leave a plane is looked at along its normal, up against gravity, x to the right; one
    that can is not."""
    normal = plane_of(planar)
    np.testing.assert_allclose(np.abs(normal), [0.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(plane_axes(normal, np.array([0.0, 0.0, 1.0]))[:2], [[1, 0, 0], [0, 0, 1]], atol=1e-12)
    assert plane_of(arm) is None
    assert plane_of(described(planar=True).build()) is not None
    slide = ls.Robot("slide")
    slide.add_link("a", ls.RigidBody.box(0.1, 0.1, 0.1, density=1.0), ls.JointPrismatic((1, 0, 0)))
    assert abs(plane_of(slide.build()) @ [1.0, 0.0, 0.0]) < 1e-9
    tilted = ls.Robot("tilted")
    tilted.add_link("a", ls.RigidBody.box(0.1, 0.1, 0.1, density=1.0), ls.JointRevolute((1, 0, 0)))
    tilted.add_link("b", ls.RigidBody.box(0.1, 0.1, 0.1, density=1.0), ls.JointRevolute((0, 1, 0)), parent="a")
    assert plane_of(tilted.build()) is None


@pytest.mark.graphics
def test_a_shadow_lies_below_the_arm(arm):
    """Purpose: the ground is darker under a robot than beside it, and there is none without a ground in sight."""
    q = np.zeros(arm.nq)
    lit = ls.render(arm, q, view=(45.0, -90.0), size=SIZE).astype(float).sum(axis=-1)
    below = ls.render(arm, q, view=(-45.0, -90.0), size=SIZE).astype(float)
    assert lit[100:135, 60:140].min() < lit[100:135, 60:140].max() - 60.0
    assert (below[:10, 150:] == 255.0).all()


@pytest.mark.graphics
def test_files_trails_and_trajectories(arm, tmp_path):
    """Purpose: the file is the picture; a trajectory is shown at its instants with the path of a frame."""
    motion = ls.simulate(arm, 0.05, t_eval=np.linspace(0.0, 0.05, 6))
    picture = ls.render(arm, motion, tmp_path / "a.png", shapes=2, trail="hand", size=SIZE)
    with Image.open(tmp_path / "a.png") as file:
        np.testing.assert_array_equal(np.asarray(file), picture)
    assert picture.shape == (150, 200, 3) and picture.dtype == np.uint8
    same = ls.render(arm, motion.q[[0, -1]], trail=ls.frame_pose(arm, motion.q, "hand")[:, :3, 3], size=SIZE)
    np.testing.assert_array_equal(same, picture)
    assert ls.render(arm, motion.q[0], size=200).shape[1] == 200


@pytest.mark.parametrize(("most", "length"), [(0.99, 0.5), (1.0, 1.0), (0.023, 0.02), (7.0, 5.0)])
def test_scale_bars_have_round_lengths(most, length):
    """Purpose: 1, 2 or 5 times a power of ten, no longer than there is room for."""
    assert nice_number(most) == pytest.approx(length) and FINER == 2


def test_wrong_arguments_are_named(arm, tmp_path):
    """Purpose: a wrong argument is named, before anything is drawn."""
    q = arm.neutral()
    for options, words in (
        ({"links": ["leg"]}, "links: must be among"),
        ({"paint": "colour"}, "paint: must be one of"),
        ({"trail": "leg"}, "link or frame"),
    ):
        with pytest.raises(ls.ModelError, match=words):
            ls.render(arm, q, **options)
    for options, words in (
        ({"values": [1.0, 2.0]}, "values: expected"),
        ({"trail": np.zeros((2, 2))}, "trail: expected"),
    ):
        with pytest.raises(ls.ShapeError, match=words):
            ls.render(arm, q, **options)
    with pytest.raises(ls.ShapeError, match="q: expected"):
        ls.render(arm, np.zeros(arm.nq + 1))
    with pytest.raises(ls.ModelError, match="must end in"):
        ls.render(arm, q, tmp_path / "a.docx", size=SIZE)


def area(picture, color, near=60):
    """Number of pixels near a colour "#rrggbb"."""
    wanted = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)])
    return int((np.abs(picture.astype(int) - wanted).max(axis=-1) < near).sum())


@pytest.mark.graphics
def test_links_have_colours_of_their_own(arm):
    """Purpose: a link has the colour that is given for it, as text or numbers, and others keep theirs."""
    q = arm.neutral()
    plain = ls.render(arm, q, size=SIZE)
    for color in ("#22cc44", (0x22 / 255, 0xCC / 255, 0x44 / 255)):
        green = ls.render(arm, q, size=SIZE, colors={"arm": color})
        assert area(green, "#22cc44", 90) > 20 + area(plain, "#22cc44", 90)
        changed = np.abs(green.astype(int) - plain).max(axis=-1) > 8
        assert changed.mean() < 0.3
    for wrong, words in (
        ({"arm": "green"}, "colors > arm: must be three numbers"),
        ({"leg": "#22cc44"}, "among the links"),
        ({"arm": (1, 2, 3)}, "colors > arm"),
    ):
        with pytest.raises(ls.ModelError, match=words):
            ls.render(arm, q, size=SIZE, colors=wrong)


@pytest.mark.graphics
def test_rods_have_a_fineness_of_their_own(arm):
    """Purpose: a rod is drawn by as many sections and points around as are asked for; a coarse one looks different."""
    q = arm.neutral()
    for numbers in ((7, 5), (80, 60)):
        (mesh,) = [mesh for mesh in robot_geometry(arm, {"arm": numbers}).meshes if mesh.name == "arm"]
        points = robot_geometry(arm, {"arm": numbers}).points(q)[mesh.rows]
        assert len(np.unique(points[:, 0].round(9))) == numbers[0]
        assert len(np.unique(points.round(9), axis=0)) == numbers[0] * numbers[1] + 2  # and the centres of the ends
    plain, fine, coarse = (ls.render(arm, q, size=SIZE, fineness=x) for x in (None, {"arm": (90, 64)}, {"arm": (3, 3)}))
    apart = [np.abs(other.astype(int) - plain).mean() for other in (fine, coarse)]
    assert apart[0] < ALIKE < apart[1]
    for wrong in ({"hand": (10, 10)}, {"arm": 10}, {"arm": (1, 10)}, {"arm": (10, 2)}):
        with pytest.raises(ls.ModelError, match="fineness > "):
            ls.render(arm, q, size=SIZE, fineness=wrong)


@pytest.mark.graphics
def test_marks_show_what_acts():
    """Purpose: motors, prescribed motions, wrench inputs and loads have marks of their colours, with marks only."""
    robot = described()
    robot.add_joint_actuator("motor", "hand")
    robot.add_wrench_input("jet", "arm", s=0.5)
    robot.add_point_load("push", "arm", s=0.7, force=(0.0, 0.0, -1.0))
    model = robot.build()
    q = model.neutral()
    plain, marked = (ls.render(model, q, size=(600, 450), marks=on) for on in (False, True))
    for color in ("#b5179e", "#7a5195", "#c0392b"):
        assert area(marked, color, 12) > 40 + area(plain, color, 12), color
    assert area(marked, "#2456a6", 6) < 20 + area(plain, "#2456a6", 6)  # no motion is prescribed
    robot = described()
    robot.add_joint_motion("turn", "hand", position=0.3)
    driven = ls.render(robot.build(), q, size=(600, 450), marks=True)
    assert area(driven, "#2456a6", 12) > 40 + area(plain, "#2456a6", 12)


def test_without_pyvista_the_extra_is_named():
    """Purpose: who has not installed the extra reads how to."""
    code = """
import sys
sys.modules["pyvista"] = None
import lissom as ls
robot = ls.Robot("one")
robot.add_link("a", ls.RigidBody.sphere(0.1, density=1.0))
model = robot.build()
try:
    ls.render(model, model.neutral())
except ls.ModelError as error:
    sys.exit("pip install 'lissom[render]'" not in str(error))
sys.exit(2)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("display", ["", ":77"])
def test_without_opengl_a_sentence_says_so(arm, monkeypatch, display):
    """Purpose: where VTK is left with OSMesa and that library is missing, its first picture would end the process; an
    error comes instead, with what to install."""
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.setenv("VTK_DEFAULT_OPENGL_WINDOW", "vtkOSOpenGLRenderWindow")
    monkeypatch.setattr(canvas, "_OSMESA", ("libOSMesa_of_nobody.so",))
    monkeypatch.setattr(canvas, "check_graphics", canvas.check_graphics.__wrapped__)
    with pytest.raises(ls.ModelError, match=r"pictures need OpenGL, .*: apt install libegl1 libgl1-mesa-dri"):
        ls.render(arm, arm.neutral(), size=SIZE)
