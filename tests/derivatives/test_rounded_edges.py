"""Contact at the edge of a shape on a grid, where the gradient of the sampled distance is no unit vector."""

import numpy as np
import pytest
from derivatives.test_surroundings import check
from gradients.moving_robots import changes, differenced, mismatch, redesigned

import lissom as ls
from lissom.dynamics.contacts import contact_geometry

LAWS = {
    "smooth": {"slip_speed": 0.1},
    "sticks": {"stick_stiffness": 500.0, "stick_damping": 0.01},
    "slips": {"stick_stiffness": 5e5, "stick_damping": 0.01},
}


def on_an_edge(law):
    """A ball on an edge of a cube from a coarse grid, and a state with a gradient whose length is clearly not 1."""
    robot = ls.Robot("edge")
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=1000), ls.JointFree())
    place = ls.lie.se3_exp([0.1, 0.2, 0.3, 0.0, 0.0, 0.0])
    corners = 0.1 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    given = {"stiffness": 1e4, "friction": 0.3, "damping": 0.5, "placement": place}
    robot.add_contact("edge", "ball", ls.ShapeHull(corners, 16), **given | LAWS[law])
    model = robot.build()
    q, v = model.neutral(), np.array([0.3, -0.2, 0.4, 0.02, 0.01, 0.03])
    q[-3:] = place[:3, :3] @ [0.108, 0.02, 0.107]
    slope = contact_geometry(model, q[None])[1][0, 17]
    assert abs(slope - 1.0) > 0.01, slope
    return model, q, v


def slipped(model, q):
    """The model with anchors of a state nearby."""
    before = ls.integrate(model, q, 1e-3 * np.array([20.0, 10.0, -20.0, 0.3, 0.5, -0.3]))
    return model.anchored(ls.contact_anchors(model, before))


def test_new_anchors_keep_the_force():
    """Purpose: the normal is a unit vector, and new anchors at the present state leave the force of friction as it is.
    Otherwise bodies creep, since each step changes the force."""
    model, q, _ = on_an_edge("sticks")
    held = slipped(model, q)
    found = ls.contact_forces(held, q)
    again = ls.contact_forces(model.anchored(ls.contact_anchors(held, q)), q)
    assert np.linalg.norm(found.normal[0]) == pytest.approx(1.0, abs=1e-15)
    friction = found.force[0] - found.normal[0] * (found.force[0] @ found.normal[0])
    assert np.linalg.norm(friction) > 0.1
    np.testing.assert_allclose(again.force, found.force, rtol=0, atol=1e-12)


def test_the_force_has_a_potential():
    """Purpose: without damping and friction the force is the slope of k δ^(p + 1)/(p + 1), also where edges are
    rounded."""
    robot = ls.Robot("edge", gravity=(0, 0, 0))
    robot.add_link("ball", ls.RigidBody.sphere(0.02, density=1000), ls.JointFree())
    corners = 0.1 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    robot.add_contact("edge", "ball", ls.ShapeHull(corners, 16), stiffness=1e4)
    model, q = robot.build(), np.array([1.0, 0, 0, 0, 0.108, 0.02, 0.107])
    step, energy = 1e-6, np.zeros((3, 2))
    for axis in range(3):
        for k, side in enumerate((1, -1)):
            depth = ls.contact_forces(model, ls.integrate(model, q, side * step * np.eye(6)[3 + axis])).depth[0]
            energy[axis, k] = 1e4 * depth**2.5 / 2.5
    force = ls.contact_forces(model, q).force[0]
    np.testing.assert_allclose(
        force, (energy[:, 1] - energy[:, 0]) / (2 * step), rtol=0, atol=1e-7 * np.abs(force).max()
    )


@pytest.mark.parametrize("law", LAWS)
def test_derivatives_at_the_edge(law):
    """Purpose: derivatives by positions, turns and velocities equal differences."""
    model, q, v = on_an_edge(law)
    check(model if law == "smooth" else slipped(model, q), q, v, np.zeros(6))


@pytest.mark.filterwarnings("ignore:.*its start violates:lissom.PlausibilityWarning")  # the ball begins deep
@pytest.mark.parametrize("law", ["sticks", "slips"])
def test_derivatives_of_motions_at_the_edge(law):
    """Purpose: derivatives of a motion by its start and by the place of the shape equal differences, through anchors
    that move with the ball."""
    model, q, v = on_an_edge(law)
    rng, options = np.random.default_rng(0), {"dt": 1e-3, "steps": 15, "tolerance": 1e-13}
    motion = ls.rollout(model, q, v, **options)
    assert np.isfinite(motion.anchors[1:]).any()
    way = 0.1 * rng.normal(size=(2, 6))
    change = motion.forward(way[0], way[1])
    found = differenced(
        lambda x: changes(
            model, motion, ls.rollout(model, ls.integrate(model, q, x * way[0]), v + x * way[1], **options)
        ),
        1e-4,
    )
    assert mismatch(model, (change.q, change.v, change.a), found) < 1e-6
    turn = rng.normal(size=6)
    change = motion.forward(parameters={"edge.placement": turn})
    found = differenced(
        lambda x: changes(model, motion, ls.rollout(redesigned(model, "edge.placement", x * turn), q, v, **options)),
        1e-5,
    )
    assert mismatch(model, (change.q, change.v, change.a), found) < 1e-6
