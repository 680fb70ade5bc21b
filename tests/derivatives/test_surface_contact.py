"""Derivatives with pressures on surfaces against central differences, with friction that slips, sticks and slides."""

import numpy as np
import pytest
from derivatives.test_sticking_contact import displaced
from derivatives.test_surroundings import check
from touching_robots import hybrid, moved, state

import lissom as ls

SMOOTH = {"stiffness": 1e7, "friction": 0.3, "damping": 0.1, "slip_speed": 0.1}
LAWS = {
    "smooth": SMOOTH,
    "sticks": SMOOTH | {"stick_stiffness": 3e4, "stick_damping": 0.01},
    "slips": SMOOTH | {"stick_stiffness": 3e7, "stick_damping": 0.01},
}
SHAPES = {
    "plane": (ls.ShapePlane(), 0.0),
    "sphere": (ls.ShapeSphere(0.2), 0.2),
    "capsule": (ls.ShapeCapsule(0.2, 0.5), 0.2),
}


def pressed(shape, base="free", moves=False, **law):
    """The base box pressed into a shape from below, fixed to the world or to the ball on its hinge; and a state."""
    shape, reach = SHAPES[shape]
    robot = hybrid(base)
    q, v, a = state(robot.build(), 3)
    bare = robot.build()
    lean = ls.lie.se3_exp([0.1, -0.2, 0.3, 0.0, 0.0, 0.0])
    g = ls.frame_pose(bare, q, "base") @ moved(0.003, 0.01, -0.0483 - reach) @ lean
    where = {}
    if moves:
        g, where = np.linalg.inv(ls.frame_pose(bare, q, "ball")) @ g, {"on": "ball"}
    robot.add_contact("touch", ["base", "a"], shape, placement=g, surface=5, **where, **law)
    return robot.build(), q, v, a


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("shape", "moves"), [("plane", False), ("sphere", True), ("capsule", False)])
def test_a_box_pressed_into_shapes(shape, moves, law):
    """Purpose: the projected area of surface points, in the derivatives by positions, turns and velocities."""
    model, q, v, a = pressed(shape, moves=moves, **LAWS[law])
    found = ls.contact_forces(model, q, v)
    assert len(found.depth) > 1
    check(model if law == "smooth" else displaced(model, q, v, law), q, v, a)
