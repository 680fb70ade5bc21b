"""Contacts and fluids in robot files: a written file is read as the same, and parts that cannot be written are
named."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import warp as wp
from robot_descriptions import SHAPES, assert_same, one_rod, rod, round_trip

import lissom as ls

TURN = [[0.0, -1, 0, 0.1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def assert_same_world(robot, again):
    """Both build the same tables of contacts and fluids; the current, a function, at some times."""
    one, other = robot.build(), again.build()
    for group in ("contacts", "fluid", "forces"):
        a, b = getattr(one, group), getattr(other, group)
        for field in dataclasses.fields(a):
            if field.name == "anchors":
                np.testing.assert_array_equal(a.anchors, b.anchors)
            elif field.name != "current":
                assert_same(getattr(a, field.name), getattr(b, field.name), field.name)
    assert_same(*(np.array([x.fluid.rows(t) for t in (0.0, 0.7, 2.0)]) for x in (one, other)), "current")
    return one.contacts


@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
@pytest.mark.parametrize("options", [{}, {"on": "palm", "placement": TURN}], ids=["world", "palm"])
def test_every_shape_is_read_as_it_was_written(shape, options, tmp_path):
    """Purpose: a saved contact has the same shape, place and law, and builds the same tables."""
    robot = one_rod()
    robot.add_link("palm", ls.RigidBody.box(0.1, 0.1, 0.1, density=1000.0))
    robot.add_contact("plain", "arm", shape, **options)
    law = {"stiffness": 1e3, "exponent": 2, "damping": 0.3, "friction": 0.5, "slip_speed": 0.01}
    law |= {"stick_stiffness": 2e4, "stick_damping": 2e-3}
    robot.add_contact("all", ["arm", "palm"], shape, s=0.5, radius=(0.02, 0.01), per_interval=2, **law, **options)
    again = round_trip(robot, tmp_path)
    assert_same(robot, again)
    assert len(assert_same_world(robot, again).pair) > 10


def test_the_path_of_a_mesh_is_relative_to_the_robot_file(tmp_path):
    """Purpose: a robot file and the mesh beside it can be moved together."""
    trimesh = pytest.importorskip("trimesh")
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    trimesh.creation.box((0.2, 0.3, 0.4)).export(first / "block.stl")
    robot = one_rod()
    robot.add_contact("block", "arm", ls.ShapeMesh(ls.Mesh(file=str(first / "block.stl")), 16))
    ls.save_robot(robot, first / "robot.yaml")
    assert "file: block.stl" in (first / "robot.yaml").read_text()
    first.rename(second)
    again = ls.load_robot(second / "robot.yaml")
    assert again.contacts["block"].shape.mesh.file == str(second / "block.stl")
    assert len(again.build().contacts.grids) == 1


def test_a_python_function_of_a_point_is_not_saved(tmp_path):
    """Purpose: the error names the field and says what to give."""
    robot = one_rod()
    shape = ls.ShapeFunction(lambda x, y, z: z, [-0.1] * 3, [0.1] * 3, 16)
    robot.add_contact("ground", "arm", shape)
    with pytest.raises(ls.ModelError, match="distance: a Python function of a point cannot be saved in a robot file"):
        ls.save_robot(robot, tmp_path / "robot.yaml")


def test_balls_against_balls_and_their_number_are_read_as_they_were_written(tmp_path):
    """Purpose: contacts between links, of a link with itself, radii that vary, and the room for near pairs."""
    robot = one_rod(gauss_points=6)
    robot.near_pairs = 7
    robot.add_link("other", rod())
    robot.add_contact("both", "arm", others="other", radius=lambda s: 0.01 + 0.001 * math.sin(3 * s))
    robot.add_contact("self", ("arm",), others=("arm", "other"), radius=ls.Expression("0.001*(1 + s)"))
    again = round_trip(robot, tmp_path)
    assert again.near_pairs == 7 and again.contacts["both"].others == "other"
    assert_same(robot, again)
    tables = [each.build().contacts for each in (robot, again)]
    np.testing.assert_allclose(tables[1].ball_radius, tables[0].ball_radius, rtol=1e-13)
    again.contacts["both"] = dataclasses.replace(again.contacts["both"], radius=robot.contacts["both"].radius)
    assert assert_same_world(robot, again).capacity == 7


FLUIDS = [
    {},
    {"current": (0.1, 0, -0.2)},
    {"current": ls.Expression(["0.1*sin(t)", "0", "t**2"], "t")},
    {"default": None},
    {"default": ls.Hydrodynamics(1.2, 0.02, 0.3, 0.9, tail=True), "links": {"arm": None}},
    {"links": {"arm": ls.Hydrodynamics(tail=True), "ball": None}},
    {"links": {"ball": ls.Hydrodynamics(volume=1e-3, added_matrix=np.diag([1.0, 2, 3, 4, 5, 6]), drag_matrix=[1] * 6)}},
    {"links": {"arm": ls.Hydrodynamics(drag_matrix=ls.Expression(["0", "s", "1", "1+s", "2", "2"]))}},
    {"links": {"arm": ls.Hydrodynamics(added_matrix=ls.Tabulated([0, 1], np.ones((2, 6)), "linear"))}},
]


@pytest.mark.parametrize("fluid", FLUIDS, ids=range(len(FLUIDS)))
def test_every_fluid_is_read_as_it_was_written(fluid, tmp_path):
    """Purpose: currents, coefficients and matrices of all links and of some, and links that feel nothing."""
    robot = one_rod()
    robot.add_link("ball", ls.RigidBody.sphere(0.1, density=1000.0), parent="arm")
    robot.set_fluid(998.0, **fluid)
    again = round_trip(robot, tmp_path)
    assert_same(robot, again)
    assert_same_world(robot, again)


def test_a_file_of_surroundings_is_readable_to_people(tmp_path):
    """Purpose: default values are left out, and null stands for a link without forces."""
    robot = one_rod()
    robot.add_contact("floor", "arm", ls.ShapePlane(), friction=0.5)
    robot.set_fluid(1000.0, links={"arm": None})
    ls.save_robot(robot, tmp_path / "robot.yaml")
    text = (tmp_path / "robot.yaml").read_text(encoding="utf-8")
    assert text.endswith(
        "contacts:\n- name: floor\n  links: arm\n  shape: {type: ShapePlane}\n  friction: 0.5\n"
        "fluid:\n  density: 1000.0\n  links: {arm: null}\n"
    ), text


def drift(x: wp.vec3d, t: wp.float64) -> wp.vec3d:
    """Becomes a Warp function below."""
    return x


def test_forces_and_currents_of_the_user_s_own_are_refused(tmp_path):
    """Purpose: a force, and a current that is a Python or a Warp function, are named with the rule and the remedy."""
    robot = one_rod()
    robot.add_force("wind", "arm", lambda t, g, eta: np.zeros(6))
    rule = "force 'wind': function: a Python function of the pose and the twist cannot be saved .*; add it again after"
    with pytest.raises(ls.ModelError, match=rule):
        ls.save_robot(robot, tmp_path / "robot.yaml")
    for current, rule in [
        (lambda t: (t, 0, 0), r"a Python function of t cannot be saved .* ls\.Expression\(\.\.\., 't'\)"),
        (wp.func(drift), "a Warp function cannot be saved in a robot file; add it again after loading the rest"),
    ]:
        robot = one_rod()
        robot.set_fluid(1000.0, current=current)
        with pytest.raises(ls.ModelError, match=f"^fluid: current: {rule}"):
            ls.save_robot(robot, tmp_path / "robot.yaml")
    assert not list(tmp_path.iterdir())
