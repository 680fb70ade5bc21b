"""Derivatives by design values of contacts with pressures on surfaces, and of laws that follow from materials."""

import numpy as np
import pytest
from gradients.moving_robots import assert_design_slopes

import lissom as ls
from lissom.dynamics.contacts import anchors_after
from lissom.gradients.anchors import anchor_moves, anchor_rows

SOFT = ls.Material(young=2e6, poisson=0.45, density=1000.0)
H, WEIGHTS = (-2e-5, -1e-5, 1e-5, 2e-5), np.array([1, -8, 8, -1]) / 12e-5
PATHS = ("touch.placement", "touch.shape.radius", "touch.friction", "touch.damping", "pad.material.young",
         "pad.material.poisson", "touch.material.young")  # fmt: skip


LOSSES = {"damping": ({"damping": 0.3}, 0.3), "restitution": ({"restitution": 0.4}, 0.01)}  # and speeds of states


def pad(slip_speed, loss="damping"):
    """A pad on a dome that turns on its base, and states in which the middle of one face is deep in the dome."""
    given, speed = LOSSES[loss]
    robot, rng = ls.Robot("pad", gravity=(0.0, 0.0, 0.0)), np.random.default_rng(1)
    robot.add_link("base", ls.RigidBody.sphere(0.03, density=500), ls.JointSpherical())
    robot.add_link("pad", ls.RigidBody.box(0.06, 0.05, 0.02, material=SOFT), ls.JointFree())
    tilt = ls.lie.se3_exp([0.1, -0.2, 0.3, 0.01, 0.02, 0.0])
    law = {"friction": 0.4, "slip_speed": slip_speed, "material": SOFT, "surface": 3} | given
    robot.add_contact("touch", "pad", ls.ShapeSphere(0.1), on="base", placement=tilt, **law)
    model, n = robot.build(), 2
    g = ls.frame_pose(model, model.neutral(), "base") @ tilt
    q, (v, a) = np.tile(model.neutral(), (n, 1)), speed * rng.normal(size=(2, n, model.nv))
    q[:, -3:] = np.array([[0.003, 0.002, 0.104], [0.01, -0.004, 0.1]]) @ g[:3, :3].T + g[:3, 3]
    before = ls.integrate(model, q, 0.01 * rng.normal(size=(n, model.nv)))
    assert all(len(x.depth) > 0 for x in ls.contact_forces(model, q))
    held = np.array([ls.contact_anchors(model, x) for x in before]) if slip_speed is None else None
    return model, q, v, a, held


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("slip_speed", [None, 0.1])
def test_design_values(slip_speed, loss):
    """Derivatives of the residual and of the next anchors equal differences of rebuilt robots."""
    model, q, v, a, held = pad(slip_speed, loss)
    paths = [path.replace("touch.damping", f"touch.{loss}") for path in PATHS]
    assert_design_slopes(model, paths, (q, v, a, held), 1e-5, np.random.default_rng(2))


def lying(body):
    """A body that lies on a plane with its surface, and a state with some penetration."""
    robot, rng = ls.Robot("lying", gravity=(0.0, 0.0, 0.0)), np.random.default_rng(1)
    robot.add_link("body", body, ls.JointFree())
    law = {"damping": 0.3, "friction": 0.4, "slip_speed": 0.1, "stiffness": 1e6, "surface": 3}
    robot.add_contact("floor", "body", ls.ShapePlane(), **law)
    model = robot.build()
    v, a = 0.3 * rng.normal(size=(2, 1, model.nv))
    turned = np.zeros(model.nv)
    turned[:6] = 0.02, 0.01, 0.03, 0.0, 0.0, 0.0176
    return model, ls.integrate(model, model.neutral(), turned)[None], v, a


BLOCK = ls.Mesh.of_shape(ls.ShapeBox(0.05, 0.04, 0.036))
BODIES = {
    "rod": (ls.Rod(0.1, ls.SectionCircle((0.02, 0.017)), ls.BasisLegendre(bending_y=0), SOFT), "body.section.radius"),
    "mesh": (
        ls.RigidBody(0.1, inertia=(1e-4,) * 3, shapes=(ls.PlacedShape(ls.ShapeMesh(BLOCK)),)),
        "body.shapes[0].shape.mesh.scale",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BODIES)
def test_sizes_of_surfaces(kind):
    """Normals and cells of surface points change with the size of their body, and derivatives include them."""
    body, path = BODIES[kind]
    model, q, v, a = lying(body)
    assert len(ls.contact_forces(model, q)[0].depth) > 2
    assert_design_slopes(model, [path], (q, v, a, None), 1e-5, np.random.default_rng(2))


@pytest.mark.parametrize("loss", LOSSES)
def test_anchors_by_the_motion(loss):
    """Derivatives of the next anchors by positions and velocities equal differences."""
    model, q, v, _, held = pad(None, loss)
    moves = anchor_moves(anchor_rows(model, held, q, v), model.nv, np.arange(len(q)))
    rng = np.random.default_rng(3)
    ways = rng.normal(size=(2, *v.shape))
    for k, way in enumerate(ways):
        rows = []
        for h in H:
            moved = (ls.integrate(model, q, h * way), v) if k == 0 else (q, v + h * way)
            rows.append(np.nan_to_num(anchors_after(model, held, *moved)).reshape(len(q), -1))
        wanted = np.tensordot(WEIGHTS, np.array(rows), 1)
        exact = np.einsum("sai,si->sa", moves[:, :, k * model.nv : (k + 1) * model.nv], way)
        assert np.abs(exact - wanted).max() < 1e-6 * np.abs(wanted).max() + 1e-9, k


@pytest.mark.parametrize("slip_speed", [None, 0.1])
def test_sizes_of_a_section_on_a_floor(slip_speed):
    """The cells of a rod move, turn and bend with the sizes of its section."""
    robot, rng = ls.Robot("lying", gravity=(0.0, 0.0, 0.0)), np.random.default_rng(1)
    basis = ls.BasisLegendre(bending_y=1, bending_z=0)
    up = np.eye(4)
    up[2, 3] = 0.0057
    robot.add_link("rod", ls.Rod(0.1, ls.SectionEllipse(0.01, 0.006), basis, SOFT), ls.JointFree(), placement=up)
    robot.add_contact("floor", "rod", ls.ShapePlane(), surface=6, friction=0.4, slip_speed=slip_speed)
    model, n = robot.build(), 2
    q = ls.integrate(model, np.tile(model.neutral(), (n, 1)), 1e-4 * rng.normal(size=(n, model.nv)))
    v, a = 1e-3 * rng.normal(size=(2, n, model.nv))  # so slow that no pair is torn off
    before = ls.integrate(model, q, 1e-5 * rng.normal(size=(n, model.nv)))
    held = np.array([ls.contact_anchors(model, x) for x in before]) if slip_speed is None else None
    paths = ("rod.section.semi_axis_y", "rod.section.semi_axis_z", "rod.length")
    assert_design_slopes(model, paths, (q, v, a, held), 1e-6, np.random.default_rng(2))
