"""Python forces that ask for coordinates, velocities, the Jacobian of their frame and its rate."""

import numpy as np
import pytest

import lissom as ls

MATERIAL = ls.Material(young=1e5, density=1000.0, viscosity=1e3)


def arm(**forces):
    """A ball in space that carries a rod, with forces by their names on the rod at s = 0.6 or on the ball."""
    robot = ls.Robot("arm")
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=1000), ls.JointFree())
    robot.add_link("rod", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(1, 1, 1), MATERIAL), parent="ball")
    for name, function in forces.items():
        robot.add_force(name, name.split("_")[0], function, s=0.6 if name.startswith("rod") else None)
    return robot.build()


def state(model, seed=0):
    """A random state."""
    rng = np.random.default_rng(seed)
    q = ls.integrate(model, model.neutral(), 0.5 * rng.normal(size=model.nv))
    return q, rng.normal(size=model.nv)


@pytest.mark.parametrize(("name", "place"), [("rod_end", ("rod", 0.6)), ("ball", ("ball", 1.0))])
def test_a_force_gets_the_state_and_its_jacobians(name, place):
    """q and v are those of the call, J that of frame_jacobian, and J_dot that of frame_jacobian_derivative."""
    seen = []

    def force(t, g, eta, J_dot, q, v, J):
        seen.append((g, eta, q.copy(), v.copy(), J.copy(), J_dot.copy()))
        return np.zeros(6)

    model = arm(**{name: force})
    q, v = state(model)
    ls.inverse_dynamics(model, q, v, 0 * v)
    g, eta, q_seen, v_seen, J, J_dot = seen[-1]
    np.testing.assert_array_equal(q_seen, q)
    np.testing.assert_array_equal(v_seen, v)
    np.testing.assert_allclose(J, ls.frame_jacobian(model, q, *place), rtol=0, atol=1e-12)
    np.testing.assert_allclose(J @ v, eta, rtol=0, atol=1e-12)
    np.testing.assert_allclose(g, ls.frame_pose(model, q, *place), rtol=0, atol=1e-14)
    expected = ls.frame_jacobian_derivative(model, q, v, *place)
    np.testing.assert_allclose(J_dot, expected, rtol=0, atol=1e-8 * max(np.abs(expected).max(), 1.0))


def test_forces_of_coordinates_act_and_have_derivatives():
    """A force along the section that a bending of the rod sets acts by Jᵀ F, and derivatives follow by q and v."""

    def force(t, g, eta, q, v):
        return np.array([0.0, 0.0, 0.0, 2.0 * q[-1], 0.3 * v[-2], 0.0])

    model = arm(rod_end=force)
    bare = arm()
    q, v = state(model)
    J = ls.frame_jacobian(model, q, "rod", 0.6)
    change = ls.inverse_dynamics(model, q, v, 0 * v) - ls.inverse_dynamics(bare, q, v, 0 * v)
    np.testing.assert_allclose(change, -J.T @ force(0.0, None, None, q, v), rtol=0, atol=1e-12)
    by_q, by_v, _ = ls.inverse_dynamics_derivatives(model, q, v, 0 * v)
    h = 1e-6
    for k in range(model.nv):
        step = h * np.eye(model.nv)[k]
        ahead, behind = (ls.inverse_dynamics(model, ls.integrate(model, q, x), v, 0 * v) for x in (step, -step))
        np.testing.assert_allclose(by_q[:, k], (ahead - behind) / (2 * h), rtol=0, atol=1e-6)
        ahead, behind = (ls.inverse_dynamics(model, q, v + x, 0 * v) for x in (step, -step))
        np.testing.assert_allclose(by_v[:, k], (ahead - behind) / (2 * h), rtol=0, atol=1e-6)


def test_at_rest_the_rate_is_zero_and_defaults_are_the_users():
    """J̇ vanishes at rest, and an argument with a default keeps it, whatever its name."""
    seen = []

    def force(t, g, eta, J_dot, q="mine"):
        seen.append((J_dot, q))
        return np.zeros(6)

    model = arm(ball=force)
    q, v = state(model)
    ls.inverse_dynamics(model, q, 0 * v, 0 * v)
    assert not seen[-1][0].any() and seen[-1][1] == "mine"


def test_other_names_are_refused():
    """A further argument with another name is an error that lists what may be asked for."""
    robot = ls.Robot("arm")
    robot.add_link("ball", ls.RigidBody.sphere(0.05, density=1000), ls.JointFree())
    robot.add_force("push", "ball", lambda t, g, eta, x: np.zeros(6))
    with pytest.raises(
        ls.ModelError, match=r"force 'push': function: must be of \(t, g, eta\).*q, v, J, J_dot \(got 'x'"
    ):
        robot.build()
