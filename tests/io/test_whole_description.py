"""Whole descriptions in robot files: solids stay solids, and no field of any part is lost."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from robot_descriptions import assert_same, everything, round_trip

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
    assert f"shape: {solid.form}" in (tmp_path / "robot.yaml").read_text()
    robot.links["body"] = dataclasses.replace(robot.links["body"], body=dataclasses.replace(solid, mass=2.0))
    assert_same(robot, round_trip(robot, tmp_path))
    assert f"shape: {solid.form}" not in (tmp_path / "robot.yaml").read_text()


def test_every_field_of_every_part_is_read_as_it_was_written(tmp_path):
    """Springs, contacts, a fluid, motions, limits and all else: each field has a value of its own that comes back."""
    robot = everything()
    assert not [kind for kind in KINDS if not getattr(robot, kind)]
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


KINDS = [kind for kind, part in PARTS.items() if part.is_saved and kind != "actuators"]
