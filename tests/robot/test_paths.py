"""Paths to the values of a description: the values that they name or replace, and the errors of those that lead
nowhere."""

import copy
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from robot_descriptions import assert_same, one_rod
from robots import random_tree

import lissom as ls

ROBOTS = Path(__file__).parents[2] / "examples" / "robots"


def driven():
    """A rod with parts of many kinds, one of which bears the name of another."""
    robot = one_rod()
    robot.add_tendon("t1", "arm", [0.01, 0.0])
    robot.add_tendon("t2", path=[ls.PathPoint(None, (0, 0, 0.1)), ls.PathRod("arm", (0.0, 0.01))])
    robot.add_chamber("c", "arm", area=1e-4)
    robot.couple_inputs("both", {"t1": 1.0, "t2": 2.0})
    robot.add_link("tip.1", ls.RigidBody(0.1, inertia=np.eye(3) * 1e-4), parent="arm")
    robot.add_loop("arm", "tip.1", joint=ls.JointSpherical())
    robot.add_point_load("weight", "arm", force=(0, 0, -1.0))
    robot.set_fluid(1000.0, links={"arm": ls.Hydrodynamics()})
    return robot


REPLACED = [
    ("links.arm.material.young", 2e6, lambda r: r.links["arm"].body.material.young),
    ("links.arm.body.section.radius", 0.02, lambda r: r.links["arm"].body.section.radius),
    ("links.arm.section", ls.SectionCircle(0.03), lambda r: r.links["arm"].body.section),
    ("tip.1.mass", 0.2, lambda r: r.links["tip.1"].body.mass),
    ("tip.1.inertia[0][0]", 2e-4, lambda r: r.links["tip.1"].body.inertia[0][0]),
    ("t1.offset", [0.0, 0.02], lambda r: r.actuators["t1"].path[0].offset),
    ("t1.offset[1]", 0.02, lambda r: r.actuators["t1"].path[0].offset[1]),
    ("t1.stiffness", 100.0, lambda r: r.actuators["t1"].stiffness),
    ("t2.path[1].start", 0.1, lambda r: r.actuators["t2"].path[1].start),
    ("c.area", 2e-4, lambda r: r.actuators["c"].area),
    ("c.stop", 0.5, lambda r: r.actuators["c"].path.stop),
    ("both.gains.t2", 3.0, lambda r: r.couplings["both"].gains["t2"]),
    ("weight.force[2]", -2.0, lambda r: r.loads["weight"].force[2]),
    ("gravity[2]", -1.62, lambda r: r.gravity[2]),
    ("gravity", (0, 0, 0), lambda r: r.gravity),
    ("fluid.density", 800.0, lambda r: r.fluid.density),
    ("fluid.links.arm.added_mass", None, lambda r: r.fluid.links["arm"].added_mass),
]


@pytest.mark.parametrize("path, value, read", REPLACED, ids=[row[0] for row in REPLACED])
def test_values_are_replaced(path, value, read):
    """The value at a path is the new one, everything else and the first description are as they were."""
    robot = driven()
    before = copy.deepcopy(robot)
    other = robot.with_({path: value})
    assert read(other) is value or read(other) == value
    assert_same(robot, before)
    back = other.with_({path: read(before)})
    assert_same(back, before)


@pytest.mark.parametrize("name", ["cdm", "serial_robot", "hybrid_arm"])
def test_all_values_put_back_give_the_same_robot(name):
    """Every path that is listed leads to its value: putting all of them back changes nothing."""
    robot = ls.load_robot(ROBOTS / f"{name}.yaml")
    assert_same(robot.with_(robot.described_values()), robot)


def test_every_number_of_random_robots_is_listed():
    """Whatever number stands in a description is under some path, and each path gives back what stands there."""
    for seed in range(4):
        robot = random_tree(seed)
        listed = robot.described_values()
        for link in robot.links.values():
            assert any(value is link.at for path, value in listed.items() if path.startswith(link.name))
            if isinstance(link.body, ls.Rod):
                assert listed[f"{link.name}.length"] == link.body.length
            for item in dataclasses.fields(link.joint):
                assert any(path.startswith(f"{link.name}.joint.{item.name}") for path in listed)
        assert set(robot.with_(listed).described_values()) == set(listed)


def test_a_star_means_every_part_that_has_the_value():
    """One path replaces the value of all parts, and skips those without it."""
    robot = driven()
    robot.add_link("arm_2", robot.links["arm"].body, parent="tip.1")
    other = robot.with_({"*.material.young": 3e6})
    assert [other.links[name].body.material.young for name in ("arm", "arm_2")] == [3e6, 3e6]
    assert other.links["tip.1"].body is robot.links["tip.1"].body


def test_what_is_replaced_is_checked_where_all_is():
    """A value that breaks a rule raises an error at the build, with its place."""
    with pytest.raises(ls.ModelError, match=r"link 'arm' > body > material: young must be > 0|young: must be > 0"):
        driven().with_({"links.arm.material.young": -1.0}).build()


WRONG = [
    ("links.arm.material.yung", r"> links.arm > material: must be .*; the nearest is 'young' \(got 'yung'\)"),
    ("arm.length", r"several kinds have this name; write links.arm or loops.arm \(got 'arm'\)"),
    ("tip.1.mas", r"> tip.1: must be one of .*; the nearest is 'mass' \(got 'mas'\)"),
    ("gravty", r"robot 'one': must be one of .*; the nearest is 'gravity' \(got 'gravty'\)"),
    ("gravity[3]", r"> gravity: an entry must be one of \[0\] to \[2\] \(got '\[3\]'\)"),
    ("gravity[-1]", r"> gravity: an entry must be one of \[0\] to \[2\]"),
    ("gravity[1", r"> gravity: an entry must be one of \[0\] to \[2\]"),
    ("gravity.x", r"> gravity: is a value and has no words of its own \(got 'x'\)"),
    ("fluid.density[0]", r"> fluid > density: has no entries in brackets \(got '\[0\]'\)"),
    ("gravity[0]x", r"> gravity\[0\]: must be followed by a dot or by an entry in brackets \(got 'x'\)"),
    ("t1.", r"> t1: a dot must be followed by a word"),
    ("t1.name", r"> t1: must be one of link, "),
    ("*.material.yung", r"after \* must name a value of some part; the nearest is 'material.young'"),
    ("", r"a path must be a text"),
    (3, r"a path must be a text \(got 3\)"),
]


@pytest.mark.parametrize("path, words", WRONG, ids=[str(row[0]) for row in WRONG])
def test_paths_that_lead_nowhere(path, words):
    """The error names the robot, how far the path led, and the nearest word."""
    with pytest.raises(ls.ModelError, match=words):
        driven().with_({path: 1.0})


def test_values_by_path_are_a_mapping():
    """A list is refused with the rule."""
    with pytest.raises(ls.ModelError, match=r"robot 'one': values must be given by path \(got \[1\]\)"):
        driven().with_([1])
