"""Coordinates that inputs work on: their gradient is the actuation matrix, and where there are none."""

import numpy as np
import pytest
from control.controlled_robots import describe_routed, every_kind, routed, some_state, tipped

import lissom as ls
from lissom.control.actuation_coordinates import actuation_rates


@pytest.mark.parametrize("robot", [tipped, routed, every_kind])
def test_gradient_is_the_actuation_matrix(robot):
    """∂y/∂q = Bᵀ by central differences, whose error is some 1e-9 of B, and y = 0 in the neutral configuration."""
    model = robot()
    q, _ = some_state(model, 3)
    h = 1e-5 * model.dofs.scale
    ahead, behind = (ls.actuation_coordinates(model, q + sign * np.diag(h)) for sign in (1, -1))
    B = ls.actuation_matrix(model, q)
    found = (ahead - behind) / (2 * h[:, None])
    np.testing.assert_allclose(found, B, atol=1e-8 * np.abs(B).max(axis=0).min())
    assert not ls.actuation_coordinates(model, model.neutral()).any()


def test_rate_of_the_actuation_matrix():
    """Ḃᵀv is the exact derivative of B along v, which the tangent stiffness holds for each input."""
    model = routed()
    q, v = some_state(model, 4)
    _, found = actuation_rates(model, q, v)
    without = ls.tangent_stiffness(model, q)
    exact = [-v @ (ls.tangent_stiffness(model, q, unit) - without) @ v for unit in np.eye(model.nu)]
    assert np.abs(exact).min() > 1e-3
    np.testing.assert_allclose(found, exact, rtol=1e-7)


def test_units_of_tendons():
    """The y of a tendon is the length pulled in: how much shorter its path is than in the neutral configuration."""
    model = routed()
    q, _ = some_state(model, 5)
    shorter = ls.path_lengths(model, model.neutral()) - ls.path_lengths(model, q)
    np.testing.assert_allclose(ls.actuation_coordinates(model, q), shorter, atol=1e-15)


# parts that are added to a robot, and the messages of their errors
REFUSED = [
    (lambda r: r.add_wrench_input("thrust", "rod 1", directions=(0, 0, 0, 0, 0, 1)), "thrust.*WrenchInput"),
    (lambda r: r.add_custom_actuator("own", lambda q: np.ones(len(q))), "'own'.*CustomActuator"),
    (lambda r: r.add_tendon("rubber", "rod 0", (0, 0.01), stiffness=50.0), "rubber.*Tendon"),
]


@pytest.mark.parametrize("add, words", REFUSED)
def test_inputs_without_coordinates(add, words):
    """An actuator that is no gradient of a known y is refused by its name, with a remedy."""
    robot = describe_routed()
    add(robot)
    model = robot.build()
    with pytest.raises(ls.ModelError, match=words):
        ls.actuation_coordinates(model, model.neutral())


def test_motors_of_spherical_joints_have_none():
    """The rate of a spherical joint, its angular velocity, is the rate of no coordinates."""
    robot = ls.Robot("ball")
    robot.add_link("ball", ls.RigidBody.sphere(0.1, density=100.0), ls.JointSpherical())
    robot.add_joint_actuator("motor", "ball")
    model = robot.build()
    with pytest.raises(ls.ModelError, match=r"motor.*JointSpherical"):
        ls.actuation_coordinates(model, model.neutral())
