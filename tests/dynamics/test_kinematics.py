"""Poses, twists and Jacobians where they are asked for: nodes, points between them, frames, the world."""

import numpy as np
import pytest
from dynamics.small_robots import MATERIAL, describe_mixed, mixed, pendulum, rod, state

import lissom as ls


def test_nodes_are_where_the_model_says():
    """forward_kinematics lists the nodes of nodes.link and nodes.s: frame_pose at the s of points of a rod finds the
    same poses."""
    model = mixed()
    q, *_ = state(model)
    g = ls.forward_kinematics(model, q)
    assert g.shape == (model.n_nodes, 4, 4)
    assert np.array_equal(g[:, 3], np.tile([0, 0, 0, 1.0], (model.n_nodes, 1)))
    np.testing.assert_allclose(np.einsum("nij,nkj->nik", g[:, :3, :3], g[:, :3, :3]),
                               np.tile(np.eye(3), (model.n_nodes, 1, 1)), atol=1e-14)  # fmt: skip
    found = 0
    for node in model.rods["arm"].node:
        np.testing.assert_allclose(ls.frame_pose(model, q, "arm", model.nodes.s[node]), g[node], atol=1e-14)
        found += 1
    assert found >= 3


def test_points_between_nodes():
    """Many s at once are the single ones, in any order and with repeats, and continuous across nodes."""
    model = mixed()
    q, v, a, _ = state(model)
    s = np.array([0.9, 0.0, 0.123, 1.0, 0.123, 0.5])
    for function, arguments in ((ls.frame_pose, (q,)), (ls.frame_twist, (q, v)), (ls.frame_acceleration, (q, v, a)),
                                (ls.frame_jacobian, (q,)), (ls.frame_jacobian_derivative, (q, v))):  # fmt: skip
        many = function(model, *arguments, "arm", s)
        for k, one in enumerate(s):
            np.testing.assert_allclose(many[k], function(model, *arguments, "arm", one), atol=1e-14)
        assert function(model, *arguments, "arm", list(s)).shape == many.shape
    node = model.nodes.s[model.nodes.link == model.links.names.index("arm")]
    for at in node[(node > 0) & (node < 1)]:
        near = ls.frame_pose(model, q, "arm", [at - 1e-9, at, at + 1e-9])
        assert np.abs(np.diff(near, axis=0)).max() < 1e-8


@pytest.mark.parametrize("name", ["base", "hand", "mark"])
def test_s_says_nothing_away_from_rods(name):
    """On rigid bodies and frames every s in [0, 1] is the same place."""
    model = mixed()
    q, *_ = state(model)
    g = ls.frame_pose(model, q, name)
    assert np.array_equal(ls.frame_pose(model, q, name, 0.3), g)
    assert np.array_equal(ls.frame_pose(model, q, name, [0.0, 1.0]), np.stack([g, g]))


def test_constant_curvature():
    """A rod of constant curvature and elongation is an arc: pose, length and twist in closed form."""
    robot = ls.Robot("arc")
    robot.add_link("rod", ls.Rod(0.4, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=0, elongation=0), MATERIAL))
    model = robot.build()
    k, e = 3.7, 0.1
    for s in (0.0, 0.2, 0.77, 1.0):
        angle, R = 0.4 * k * s, (1 + e) / k
        g = ls.frame_pose(model, [k, e], "rod", s)
        np.testing.assert_allclose(g[:3, 3], [R * np.sin(angle), 0.0, R * (np.cos(angle) - 1)], atol=1e-15)
        np.testing.assert_allclose(g[:3, 0], [np.cos(angle), 0.0, -np.sin(angle)], atol=1e-15)
        twist = ls.frame_twist(model, [k, e], [1.0, 0.0], "rod", s)
        np.testing.assert_allclose(twist[:3], [0.0, 0.4 * s, 0.0], atol=1e-15)


def test_the_world_stands_still():
    """Frames and links fixed to the world have zero twist, acceleration and Jacobian, whatever moves."""
    robot = describe_mixed()
    placement = np.eye(4)
    placement[:3, 3] = (0.4, -0.2, 1.0)
    robot.add_link("wall", None, placement=placement)
    robot.add_frame("nail", "wall", placement=placement)
    model = robot.build()
    q, v, a, _ = state(model)
    np.testing.assert_allclose(ls.frame_pose(model, q, "nail"), placement @ placement, atol=1e-16)
    assert np.array_equal(ls.frame_twist(model, q, v, "wall"), np.zeros(6))
    assert np.array_equal(ls.frame_acceleration(model, q, v, a, "nail"), np.zeros(6))
    assert np.array_equal(ls.frame_jacobian(model, q, "nail"), np.zeros((6, model.nv)))


@pytest.mark.parametrize("name, s", [("hand", 1.0), ("arm", 0.4), ("mark", 1.0)])
def test_rates(name, s):
    """η = J v, η̇ = J a + J̇ v, and J̇ is the rate of J along integrate, by differences of fourth order."""
    model, h = mixed(), 1e-3
    q, v, a, _ = state(model)
    J, J_dot = ls.frame_jacobian(model, q, name, s), ls.frame_jacobian_derivative(model, q, v, name, s)
    np.testing.assert_allclose(ls.frame_twist(model, q, v, name, s), J @ v, atol=1e-14)
    np.testing.assert_allclose(ls.frame_acceleration(model, q, v, a, name, s), J @ a + J_dot @ v, atol=1e-13)
    steps = [ls.frame_jacobian(model, ls.integrate(model, q, k * h * v), name, s) for k in (-2, -1, 1, 2)]
    np.testing.assert_allclose(J_dot, (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h), atol=1e-9)


def test_far_from_the_origin():
    """A free robot a million metres away keeps the digits of its shape and forces."""
    model = mixed()
    q, v, a, u = state(model)
    far = q.copy()
    far[4:7] += 1e6
    np.testing.assert_allclose(ls.mass_matrix(model, far), ls.mass_matrix(model, q), atol=1e-13)
    expected = ls.inverse_dynamics(model, q, v, a)
    np.testing.assert_allclose(ls.inverse_dynamics(model, far, v, a), expected, atol=1e-12)
    near = ls.frame_twist(model, q, v, "hand")
    np.testing.assert_allclose(ls.frame_twist(model, far, v, "hand"), near, atol=1e-13)
    np.testing.assert_allclose(ls.forward_dynamics(model, far, v, u), ls.forward_dynamics(model, q, v, u), rtol=1e-9)


def test_pendulum_in_closed_form():
    """A uniform rod on a hinge: M = mL²/3, weight mgL/2 sin q, energies, acceleration of the tip."""
    model = pendulum()
    for q, v, a in ((0.0, 0.0, 0.0), (0.7, -1.3, 2.1), (-2.9, 4.0, -0.5)):
        inertia, weight = 2 / 3, 2 * 9.81 * 0.5 * np.sin(q)
        assert ls.mass_matrix(model, [q])[0, 0] == pytest.approx(inertia, rel=1e-14)
        assert ls.inverse_dynamics(model, [q], [v], [a])[0] == pytest.approx(inertia * a + weight, abs=1e-13)
        assert ls.forward_dynamics(model, [q], [v], [0.3])[0] == pytest.approx((0.3 - weight) / inertia, abs=1e-13)
        assert abs(ls.coriolis_matrix(model, [q], [v])[0, 0]) < 1e-14
        E = ls.energy(model, [q], [v])
        assert E.kinetic == pytest.approx(inertia * v * v / 2, rel=1e-14)
        assert E.gravitational == pytest.approx(-2 * 9.81 * 0.5 * np.cos(q), rel=1e-14)
        assert E.elastic == 0.0
        assert E.total == pytest.approx(E.kinetic + E.gravitational)
        assert np.array_equal(ls.actuation_matrix(model, [q]), [[1.0]])
        # body axes: turning about y, the tip at (0, 0, −1) moves along −x, and is held back towards the hinge
        tip = np.eye(4)
        tip[2, 3] = -1.0
        g = ls.frame_pose(model, [q], "bob") @ tip
        np.testing.assert_allclose(g[:3, 3], [-np.sin(q), 0.0, -np.cos(q)], atol=1e-15)
        np.testing.assert_allclose(ls.frame_twist(model, [q], [v], "bob"), [0, v, 0, 0, 0, 0], atol=1e-15)


def test_rod_at_rest_is_straight():
    """The neutral rod lies along x with its reference length, and hangs under no elastic force."""
    model = rod()
    g = ls.frame_pose(model, model.neutral(), "rod", [0.0, 0.5, 1.0])
    np.testing.assert_allclose(g[:, :3, 3], [[0, 0, 0], [0.2, 0, 0], [0.4, 0, 0]], atol=1e-16)
    zero = np.zeros(model.nv)
    assert not ls.inverse_dynamics(model, model.neutral(), zero, zero, gravity=False).any()


def test_terms_can_be_left_out():
    """gravity, elastic and loads are separate sums: their effects add up to everything."""
    model = mixed()
    q, v, a, _ = state(model)
    names = ("gravity", "elastic", "loads")
    parts = {
        one: ls.inverse_dynamics(model, q, v, a, t=0.8, **{name: name == one for name in names})
        for one in (*names, "none")
    }
    whole = ls.inverse_dynamics(model, q, v, a, t=0.8)
    total = parts["none"] + sum(parts[name] - parts["none"] for name in names)
    np.testing.assert_allclose(whole, total, atol=1e-13)
    external = ls.external_force(model, q, v, t=0.8)
    np.testing.assert_allclose(external, 2 * parts["none"] - parts["gravity"] - parts["loads"], atol=1e-13)
    np.testing.assert_allclose(ls.external_force(model, q, t=0.8), external, atol=1e-13)
