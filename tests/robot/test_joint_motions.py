"""Descriptions of prescribed joint motions: allowed values, refused values, files."""

from __future__ import annotations

import numpy as np
import pytest

import lissom as ls


def describe(joint=None, **motion):
    """A robot of one body on a joint with a motion."""
    robot = ls.Robot("driven")
    robot.add_link("body", ls.RigidBody(1.0), ls.JointRevolute(axis=(0, 0, 1)) if joint is None else joint)
    robot.add_joint_motion("drive", "body", **motion)
    return robot


FUNCTIONS = {
    "expression": ls.Expression("0.5*sin(3*t)", "t"),
    "callable": lambda t: 0.5 * np.sin(3 * t),
    "table": ls.Tabulated(np.linspace(-1, 3, 400), 0.5 * np.sin(3 * np.linspace(-1, 3, 400))),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_rates_that_are_left_out(kind):
    """Purpose: velocity and acceleration come out of the position to nine digits, six for a table."""
    q, v, a = describe(position=FUNCTIONS[kind]).build().motions(0.7)
    tolerance = 2e-4 if kind == "table" else 1e-9
    np.testing.assert_allclose([*q, *v, *a], [0.5 * np.sin(2.1), 1.5 * np.cos(2.1), -4.5 * np.sin(2.1)], rtol=tolerance)


def test_given_rates_are_taken():
    """Purpose: functions that the user gives are not differenced; the acceleration then comes from the velocity."""
    model = describe(position=lambda t: t, velocity=lambda t: 2.0 * t).build()
    q, v, a = model.motions(0.5)
    assert (q[0], v[0]) == (0.5, 1.0)
    np.testing.assert_allclose(a, 2.0, rtol=1e-9)
    full = describe(position=lambda t: t, velocity=lambda t: 7.0, acceleration=lambda t: 8.0).build()
    assert [x[0] for x in full.motions(0.5)] == [0.5, 7.0, 8.0]


def test_a_constant_and_a_joint_of_two_coordinates():
    """Purpose: constants hold a joint still; several coordinates get names of their own."""
    model = describe(ls.JointUniversal(axis_1=(1, 0, 0), axis_2=(0, 1, 0)), position=(0.1, -0.2)).build()
    assert model.prescribed.names == ("drive[0]", "drive[1]")
    assert model.n_multipliers == 2
    for found, expected in zip(model.motions(3.0), ([0.1, -0.2], [0, 0], [0, 0])):
        np.testing.assert_array_equal(found, expected)


WRONG = {
    "free": (ls.JointFree(), {"position": 0.0}, "must not be spherical or free"),
    "spherical": (ls.JointSpherical(), {"position": 0.0}, "must not be spherical or free"),
    "fixed": (ls.JointFixed(), {"position": 0.0}, "its joint must move"),
    "size": (None, {"position": (0.0, 1.0)}, "must be finite, of shape ()"),
    "nan": (None, {"position": np.nan}, "must be finite"),
    "returns nan": (None, {"position": lambda t: np.nan}, "must return finite values"),
    "raises": (None, {"position": lambda t: 1 / 0}, "the function failed"),
    "velocity": (None, {"position": 0.0, "velocity": 1.0}, "velocity: must be a function of t (got 1.0)"),
    "text": (None, {"position": "sin(t)"}, "must be finite, of shape (), or a function of t (got 'sin(t)')"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_motions(case):
    """Purpose: each rule names the motion, the rule and the value."""
    joint, motion, rule = WRONG[case]
    with pytest.raises(ls.ModelError, match="motion 'drive'") as error:
        describe(joint, **motion).build()
    assert rule in str(error.value)


def test_two_motions_of_one_joint_and_names():
    """Purpose: a joint follows one motion; names are not given twice; links must exist."""
    robot = describe(position=0.0)
    with pytest.raises(ls.ModelError, match="must not be taken already"):
        robot.add_joint_motion("drive", "body", position=0.0)
    robot.add_joint_motion("second", "body", position=0.0)
    with pytest.raises(ls.ModelError, match="must not follow another motion"):
        robot.build()
    lost = ls.Robot("lost")
    lost.add_link("body", ls.RigidBody(1.0))
    lost.add_joint_motion("drive", "nobody", position=0.0)
    with pytest.raises(ls.ModelError, match="must be one of the links"):
        lost.build()


def test_files(tmp_path):
    """Purpose: a motion comes back from a file exactly; a Python function is refused with the remedy."""
    robot = describe(position=FUNCTIONS["expression"], velocity=FUNCTIONS["table"])
    ls.save_robot(robot, tmp_path / "robot.yaml")
    again = ls.load_robot(tmp_path / "robot.yaml")
    assert again.motions["drive"].position == robot.motions["drive"].position
    for one, two in zip(robot.build().motions(0.3), again.build().motions(0.3)):
        np.testing.assert_array_equal(one, two)
    with pytest.raises(ls.ModelError, match=r"give it as ls\.Expression"):
        ls.save_robot(describe(position=lambda t: t), tmp_path / "no.yaml")
    text = (tmp_path / "robot.yaml").read_text().replace("link: body", "link: boy")
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ls.ModelError, match=r"line \d+: motion 'drive': link: must be one of the links"):
        ls.load_robot(tmp_path / "bad.yaml")
