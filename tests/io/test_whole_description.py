"""Whole descriptions in robot files: solids stay solids, and no field of any part is lost."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from robot_descriptions import assert_same, rod, round_trip

import lissom as ls
from lissom.robot.robot import PARTS


@pytest.mark.parametrize(("solid", "words"), [
    (ls.RigidBody.cylinder(0.1, 0.02, density=1234.5), "length: 0.1"),
    (ls.RigidBody.cylinder(0.02, 0.1 + 0.2, density=700.0), "radius: 0.30000000000000004"),
    (ls.RigidBody.box(0.1, 0.2, 1 / 3, density=0.1 + 0.2), "size: [0.1, 0.2, 0.3333333333333333]"),
    (ls.RigidBody.sphere(1 / 3, density=7850.0), "density: 7850.0"),
])  # fmt: skip
def test_bodies_made_as_solids_are_saved_as_solids(solid, words, tmp_path):
    """A cylinder stays a cylinder of its length, radius and density, bit for bit; with meshes, too, but not changed."""
    robot = ls.Robot()
    robot.add_link("body", solid)
    assert_same(robot, round_trip(robot, tmp_path))
    assert words in (tmp_path / "robot.yaml").read_text()
    mesh = ls.Mesh(vertices=[[0, 0, 0], [1, 0, 0], [0, 1, 0]], triangles=[[0, 1, 2]])
    robot.links["body"] = dataclasses.replace(robot.links["body"], body=dataclasses.replace(solid, meshes=(mesh,)))
    assert_same(robot, round_trip(robot, tmp_path))
    assert "shape:" in (tmp_path / "robot.yaml").read_text()
    robot.links["body"] = dataclasses.replace(robot.links["body"], body=dataclasses.replace(solid, mass=2.0))
    assert_same(robot, round_trip(robot, tmp_path))
    assert "shape:" not in (tmp_path / "robot.yaml").read_text()


def test_every_field_of_every_part_is_read_as_it_was_written(tmp_path):
    """Springs, contacts, a fluid, motions, limits and all else: each field has a value of its own that comes back."""
    robot = everything()
    assert_same(robot, round_trip(robot, tmp_path))
    left, seen = {}, {}
    parts = [
        robot.fluid,
        *robot.fluid.links.values(),
        *(part for kind in KINDS for part in getattr(robot, kind).values()),
    ]
    parts += [part for link in robot.links.values() for part in (link.joint, link.body) if part is not None]
    for part in parts:
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            same = type(value) is type(field.default) and np.array_equal(value, field.default)
            (left if same or value is None else seen).setdefault(type(part), set()).add(field.name)
    bare = {kind.__name__: names - seen.get(kind, set()) for kind, names in left.items()}
    assert {kind: names for kind, names in bare.items() if names} == {}


MATRICES = (np.eye(6), 2 * np.eye(6))
KINDS = [kind for kind, part in PARTS.items() if part.is_saved and kind != "actuators"]


def everything():
    """A robot in which each field of each part is given somewhere."""
    turn = np.array([[0.0, -1, 0, 0.1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    robot = ls.Robot("all", near_pairs=7)
    stops = {"limits": (-1.0, 2.0), "limit_stiffness": 50.0, "limit_damping": 0.1, "limit_width": 2e-3}
    own = {"damping": 0.2, "rest": 0.1}
    wheel = ls.JointRevolute((0, 1, 0), spring=[(-1.0, -2.0), (0.0, 0.0), (1.0, 3.0)], **own, **stops)
    hinge = ls.JointRevolute((1, 0, 0), stiffness=3.0, armature=0.02)
    mesh = ls.Mesh(vertices=[[0, 0, 0], [1, 0, 0], [0, 1, 0]], triangles=[[0, 1, 2]])
    skin = ls.Material(young=1e6, density=900.0, friction=0.7, restitution=0.6)
    solid = dataclasses.replace(
        ls.RigidBody.sphere(0.1, density=100.0), com=(0.01, 0, 0), meshes=(mesh,), material=skin
    )
    points = {"gauss_points": 6, "interval_points": 3, "exponentials": 1}
    robot.add_link("arm", rod(reference_strain=(0, 1, 0, 1, 0, 0), **points), wheel)
    robot.add_link("ball", solid,
                   hinge, parent="arm", at=0.5, placement=turn)  # fmt: skip
    robot.add_frame("eye", "arm", s=0.3, placement=turn)
    robot.add_tendon("t", "arm", (0.0, 0.01))
    robot.couple_inputs("pull", {"t": 2.0})
    wrench = {"force": (0, 0, 1), "moment": ls.Expression(["t", "0", "0"], "t"), "position": (0, 0.1, 0)}
    robot.add_point_load("push", "arm", s=0.5, frame="body", **wrench)
    robot.add_loop(
        "pin", "arm", "ball", s_a=0.9, s_b=0.8, placement_a=turn, placement_b=turn, joint=ls.JointSpherical()
    )
    sine = [ls.Expression(text, "t") for text in ("sin(t)", "cos(t)", "-sin(t)")]
    robot.add_joint_motion("swing", "arm", position=sine[0], velocity=sine[1], acceleration=sine[2])
    law = {"stiffness": 3.0, "damping": 0.1, "rest": 0.2, "preload": 0.5, "slack": True}
    robot.add_spring("stay", ls.PathPoint("arm", (0, 0.1, 0), 0.4), ls.PathPoint(None, (0, 0, 1)), **law)
    robot.add_spring("band", "arm", "ball", law=ls.Tabulated([0.1, 0.2, 0.4], [0.0, 1.0, 5.0], "linear"))
    law = {"stiffness": 1e3, "exponent": 2, "damping": 0.3, "friction": 0.5, "slip_speed": 0.01, "stick_stiffness": 2e4}
    law |= {"stick_damping": 2e-3, "radius": (0.02, 0.01), "per_interval": 2, "s": 0.5, "placement": turn, "on": "ball"}
    robot.add_contact("lid", ["arm"], ls.ShapeSphere(0.1), **law)
    robot.add_contact("push", "arm", others="ball", restitution=0.4, impact_speed=0.3)
    robot.add_contact("bed", "ball", ls.ShapePlane(), material=skin, surface=4)
    felt = {
        "arm": ls.Hydrodynamics(1.2, 0.02, 0.3, 0.9, True, *MATRICES),
        "ball": ls.Hydrodynamics(volume=1.0),
    }
    flow = ls.Expression(["sin(t)", "0", "0"], "t")
    robot.set_fluid(998.0, current=flow, default=ls.Hydrodynamics(lift=0.3), links=felt)
    return robot
