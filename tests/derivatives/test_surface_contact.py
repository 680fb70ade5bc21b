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
    "returns": {"stiffness": 1e4, "friction": 0.3, "restitution": 0.4, "stick_stiffness": 3e4, "stick_damping": 0.01},
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
    assert law != "returns" or 0.1 < model.contacts.law[0, 8] < 1.0  # v_r, about the speeds of the state
    check(model if law == "smooth" else displaced(model, q, v, law), q, v, a)


SOFT = ls.Material(young=1e5, poisson=0.4, density=1000.0)
FLAT_ROD = ls.Rod(0.1, ls.SectionEllipse(0.01, 0.006), ls.BasisLegendre(bending_y=1, bending_z=0), SOFT)
CUBE = ls.RigidBody(0.1, inertia=np.eye(3) * 1e-5, shapes=(
    ls.PlacedShape(ls.ShapeMesh(ls.Mesh.of_shape(ls.ShapeBox(0.04, 0.04, 0.04)))),))  # fmt: skip


@pytest.mark.parametrize(("body", "height"), [(FLAT_ROD, 0.0055), (CUBE, 0.0185)])
@pytest.mark.parametrize(("shape", "law"), [*(("plane", law) for law in LAWS), ("sphere", "smooth")])
def test_curved_cells_and_triangles(shape, body, height, law):
    """Purpose: the strips of cells that bend, and triangles, of which a part is pressed."""
    shape, reach = SHAPES[shape]
    robot, g = ls.Robot("lying"), np.eye(4)
    robot.add_link("body", body, ls.JointFree(), placement=moved(-0.05 if body is FLAT_ROD else 0.0, 0.0, height))
    g[2, 3] = -reach
    robot.add_contact("touch", "body", shape, placement=g, surface=6, **LAWS[law])
    model, rng = robot.build(), np.random.default_rng(4)
    lean = np.array([0.03, 0.02, 0.1, 0.0, 0.0, 0.0])
    joint = slice(model.nv - 6, None) if body is CUBE else slice(0, 6)
    q = model.neutral()
    step = np.zeros(model.nv)
    step[joint] = lean
    q, (v, a) = ls.integrate(model, q, step), 0.1 * rng.normal(size=(2, model.nv))
    depth = ls.contact_forces(model, q, v).depth
    assert len(depth) > 2
    check(model if law == "smooth" else displaced(model, q, v, law), q, v, a, 1e-6)  # cells are C² piecewise
