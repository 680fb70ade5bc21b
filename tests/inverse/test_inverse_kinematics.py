"""Configurations and inputs that bring frames where they should be."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from control.controlled_robots import ahead, describe_routed, routed
from dynamics.small_robots import looped, mixed
from scipy.optimize import least_squares, minimize

import lissom as ls


def planar(limits=None):
    """Two hinges about z with links of 0.4 m and 0.3 m."""
    robot = ls.Robot("planar")
    for name, parent in (("upper", None), ("lower", "upper")):
        joint = ls.JointRevolute((0, 0, 1), limits=limits, limit_stiffness=10.0 if limits else 0.0)
        body = ls.RigidBody(1.0, (0.2, 0, 0), (0.001, 0.02, 0.02))
        robot.add_link(name, body, joint, parent, placement=ahead(0.4 if parent else 0.0))
    robot.add_frame("hand", "lower", placement=ahead(0.3))
    return robot.build()


def equal_links():
    """Two hinges about z with links of 0.4 m each."""
    robot = ls.Robot("equal")
    for name, parent in (("upper", None), ("lower", "upper")):
        body = ls.RigidBody(1.0, (0.2, 0, 0), (0.001, 0.02, 0.02))
        robot.add_link(name, body, ls.JointRevolute((0, 0, 1)), parent, placement=ahead(0.4 if parent else 0.0))
    robot.add_frame("hand", "lower", placement=ahead(0.4))
    return robot.build()


def some(model, count, size=0.5, seed=0):
    """Random configurations."""
    step = size * np.random.default_rng(seed).uniform(-1, 1, (count, model.nv)) * model.dofs.scale
    return ls.integrate(model, model.neutral(), step)


def test_two_hinges_in_closed_form():
    """Purpose: both angles are those of the triangle of the links, whose elbow is on the side of the start."""
    model, x, y = planar(), 0.5, 0.2
    for side in (1.0, -1.0):
        found = ls.inverse_kinematics(model, {"hand": [x, y, 0]}, q0=[0.1, 0.3 * side])
        elbow = side * np.arccos((x**2 + y**2 - 0.4**2 - 0.3**2) / (2 * 0.4 * 0.3))
        shoulder = np.arctan2(y, x) - np.arctan2(0.3 * np.sin(elbow), 0.4 + 0.3 * np.cos(elbow))
        assert found.converged and found.u is None
        np.testing.assert_allclose(found.q, [shoulder, elbow], atol=1e-8)


def test_out_of_reach_is_as_near_as_can_be():
    """Purpose: a place beyond the stretched arm leaves the distance beyond it, and does not count as found."""
    found = ls.inverse_kinematics(planar(), {"hand": [[0.0, 1.0, 0.0], [0.6, 0.1, 0.0]]}, q0=[1.0, 0.2])
    assert found.converged.tolist() == [False, True]
    np.testing.assert_allclose(found.residual[0], [0, 0.3, 0], atol=1e-5)


def test_limits_of_joints_and_of_the_call():
    """Purpose: coordinates stay within limits, where the nearest place is that of the bounded least squares."""
    place = np.array([-0.1, 0.5, 0.0])
    model = planar((-1.0, 1.0))
    for given, bounds in ((None, [(-1.0, 1.0)] * 2), (([-0.5, 0.2], [0.5, 2.5]), [(-0.5, 0.5), (0.2, 2.5)])):
        found = ls.inverse_kinematics(model, {"hand": place}, q0=[0.3, 0.4], limits=given, max_iterations=500)
        low, high = np.transpose(bounds)
        assert not found.converged and (found.q >= low).all() and (found.q <= high).all()
        least = minimize(
            lambda q: ((ls.frame_pose(model, q, "hand")[:3, 3] - place) ** 2).sum(), [0.3, 0.4], bounds=bounds
        )
        np.testing.assert_allclose(found.q, least.x, atol=1e-3)
        assert (found.residual**2).sum() <= least.fun * (1 + 1e-9)


def test_both_coordinates_at_limits():
    """Purpose: where both limits hold the arm, the answer is the corner, and it says that it is an optimum there."""
    limits = ([-0.5, 0.2], [0.5, 1.2])
    found = ls.inverse_kinematics(equal_links(), {"hand": [-0.1, 0.5, 0.0]}, limits=limits)
    assert not found.converged and found.optimality == 0.0
    np.testing.assert_array_equal(found.q, [0.5, 1.2])
    np.testing.assert_array_equal(found.active, [1, 1])


def test_bounded_optima_against_closed_form_kinematics():
    """Purpose: for random places, most out of reach within the limits, the gradient vanishes but for what limits hold,
    and SciPy's bounded least squares of the closed-form kinematics, started there, finds no better place."""
    low, high = np.array([-0.5, 0.2]), np.array([0.5, 1.2])
    places = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 3)) * [1.0, 1.0, 0.0]
    found = ls.inverse_kinematics(equal_links(), {"hand": places}, limits=(low, high), q0=[0.1, 0.5])
    assert found.optimality.max() < 1e-9 and (found.q >= low).all() and (found.q <= high).all()
    assert found.iterations.max() < 60
    np.testing.assert_array_equal(found.active, 1 * (found.q == high) - (found.q == low))
    assert len(np.unique(found.active, axis=0)) >= 8  # ways to touch the limits

    def miss(q, place):
        angles = np.array([q[0], q[0] + q[1]])
        return 0.4 * np.array([np.cos(angles).sum(), np.sin(angles).sum()]) - place[:2]

    for q, place, left in zip(found.q, places, found.residual):
        inside = np.clip(q, low + 1e-3, high - 1e-3)
        least = least_squares(miss, inside, bounds=(low, high), args=(place,), xtol=1e-15, ftol=1e-15, gtol=1e-15)
        np.testing.assert_allclose(q, least.x, atol=1e-6)
        assert 0.5 * (left**2).sum() <= least.cost + 1e-12


def test_a_loop_at_the_limits_of_its_joints():
    """Purpose: with loops the optimum within limits is that of SciPy's minimiser with the loops as constraints."""
    model = looped()
    start = ls.assemble(model, model.neutral())
    room, plain = np.full(model.nv, np.inf), np.flatnonzero(model.dofs.q >= 0)
    room[plain] = 0.05 * model.dofs.scale[plain]
    middle = np.zeros(model.nv)
    middle[plain] = start[model.dofs.q[plain]]
    place = ls.frame_pose(model, start, "arm")[:3, 3] + [0.2, 0.1, -0.3]
    found = ls.inverse_kinematics(model, {"arm": place}, q0=start, limits=(middle - room, middle + room))
    assert not found.converged and found.active.any() and found.optimality < 1e-8
    assert np.abs(ls.loop_residual(model, found.q)).max() < 1e-10
    S = model.dofs.scale
    least = minimize(
        lambda x: ((ls.frame_pose(model, ls.integrate(model, start, S * x), "arm")[:3, 3] - place) ** 2).sum(),
        np.zeros(model.nv), bounds=np.transpose([-room / S, room / S]), method="SLSQP", tol=1e-12,
        constraints={"type": "eq", "fun": lambda x: ls.loop_residual(model, ls.integrate(model, start, S * x))},
    )  # fmt: skip
    assert least.success and (found.residual**2).sum() == pytest.approx(least.fun, rel=1e-6)


def test_several_frames_on_the_manifold():
    """Purpose: a pose and a position at once, on a free base with a spherical wrist, for a batch of shape (2, 10)."""
    model = mixed()
    q = some(model, 20).reshape(2, 10, -1)
    targets = {"hand": ls.frame_pose(model, q, "hand"), ("arm", 0.7): ls.frame_pose(model, q, "arm", 0.7)[..., :3, 3]}
    found = ls.inverse_kinematics(model, targets, starts=3)
    assert found.converged.shape == (2, 10) and found.converged.all() and found.residual.shape == (2, 10, 9)
    np.testing.assert_allclose(ls.frame_pose(model, found.q, "hand"), targets["hand"], atol=3e-9)
    one = ls.inverse_kinematics(model, {key: value[0, 3] for key, value in targets.items()})
    assert one.converged.shape == ()


def test_weights_choose_between_targets():
    """Purpose: two places that exclude each other end where the weighted squares are least, also with a zero weight."""
    model, targets = planar(), {"hand": [0.7, 0.0, 0.0], "lower": [0.0, 0.4, 0.0]}
    for weight in (1.0, 3.0, 0.0):
        found = ls.inverse_kinematics(model, targets, weights={"lower": weight}, q0=[0.2, 0.2], max_iterations=500)

        def cost(q, weight=weight):
            parts = (targets[name] - ls.frame_pose(model, q, name)[:3, 3] for name in targets)
            return sum(w * (e**2).sum() for w, e in zip((1.0, weight**2), parts))

        least = minimize(cost, found.q, tol=1e-14)
        assert cost(found.q) <= least.fun + 1e-10
        assert bool(found.converged) == (weight == 0.0)


def test_loops_stay_closed():
    """Purpose: a reachable place of a robot with loops is found with the loops closed."""
    model = looped()
    start = ls.assemble(model, model.neutral())
    q = ls.assemble(model, ls.integrate(model, start, 0.2 * np.cos(np.arange(model.nv)) * model.dofs.scale))
    place = ls.frame_pose(model, q, "arm")[:3, 3]
    found = ls.inverse_kinematics(model, {"arm": place}, q0=start)
    assert found.converged and np.abs(ls.loop_residual(model, found.q)).max() < 1e-10


@pytest.fixture(scope="module")
def reached():
    """An arm of two rods with three tendons, its tips under random tensions, and the inverse kinematics of these."""
    model = routed()
    drawn = np.random.default_rng(3).uniform(0.0, 6.0, (16, model.nu))
    tips = ls.frame_pose(model, ls.solve_statics(model, u=drawn).q, "rod 1")[:, :3, 3]
    return model, drawn, tips, ls.inverse_kinematics(model, {"rod 1": tips}, by="statics", limits=(0.0, 6.0), starts=3)


def test_tensions_hold_the_tip(reached):
    """Purpose: inputs are within the limits, and statics alone, from rest, puts the tip where it should be."""
    model, drawn, tips, found = reached
    assert found.converged.all() and found.is_stable.all()
    assert (found.u >= 0.0).all() and (found.u <= 6.0).all()
    again = ls.solve_statics(model, u=found.u)
    np.testing.assert_allclose(ls.frame_pose(model, again.q, "rod 1")[:, :3, 3], tips, atol=1e-8)
    np.testing.assert_allclose(found.u, drawn, atol=1e-5)  # as many tendons as numbers of the place: no other there


def test_prescribed_joints_stay(reached):
    """Purpose: a joint with a prescribed motion is where that has it at t, by coordinates and by statics, at rest."""
    robot = describe_routed()
    robot.links["rod 0"] = replace(robot.links["rod 0"], joint=ls.JointRevolute((1, 0, 0)))
    robot.add_joint_motion("turn", "rod 0", position=lambda t: 0.2 * t)
    model = robot.build()
    rest = ls.solve_statics(model, u=[2.0, 1.0, 3.0], v=np.zeros(model.nv), t=2.0)
    place = ls.frame_pose(model, rest.q, "rod 1")[:3, 3]
    for by in ("coordinates", "statics"):
        found = ls.inverse_kinematics(model, {"rod 1": place}, by=by, t=2.0)
        assert found.converged and abs(found.q[0] - 0.4) < 1e-14
    np.testing.assert_allclose(found.u, [2.0, 1.0, 3.0], atol=1e-5)


def test_out_of_reach_by_statics(reached):
    """Purpose: limits are kept where they forbid the place, and it is not said to be found."""
    model, drawn, tips, _ = reached
    found = ls.inverse_kinematics(model, {"rod 1": tips}, by="statics", limits=(0.0, 2.0))
    beyond = drawn.max(axis=1) > 2.0
    assert beyond.sum() > 10 and not found.converged[beyond].any() and found.converged[~beyond].all()
    assert (found.u >= 0.0).all() and (found.u <= 2.0).all()


def test_elastic_tendons_pay_out():
    """Purpose: an elastic tendon that is tight from the start is let out where the tip belongs farther off."""
    robot = ls.Robot("arm", gravity=(0.0, 0.0, 0.0))
    material = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e4)
    robot.add_link("arm", ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=0), material))
    robot.add_tendon("tight", "arm", (0.0, 0.008), stiffness=400.0, slack_length=0.295)
    model = robot.build()
    place = ls.frame_pose(model, ls.solve_statics(model, u=[-0.003]).q, "arm")[:3, 3]
    found = ls.inverse_kinematics(model, {"arm": place}, by="statics")
    assert found.converged and found.u[0] == pytest.approx(-0.003, abs=1e-8)


def test_redundant_tendons_get_the_least_squares():
    """Purpose: five tendons put the tip there with the tensions of a general minimiser that starts elsewhere and takes
    differences of equilibria; some of them touch the limits."""
    robot = describe_routed()
    for k, hole in enumerate(((0.0, 0.02, -0.02), (0.0, -0.02, 0.01))):
        robot.add_tendon(f"more {k}", path=[ls.PathPoint(None, hole), ls.PathPoint("rod 1", hole)])
    model, most = robot.build(), 5.0

    def tip(u):
        return ls.frame_pose(model, ls.solve_statics(model, u=u).q, "rod 1")[:3, 3]

    drawn = np.array([4.0, 0.5, 1.0, 4.5, 0.5])
    place = tip(drawn)
    found = ls.inverse_kinematics(model, {"rod 1": place}, by="statics", limits=(0.0, most))
    there = {"type": "eq", "fun": lambda u: 1e2 * (tip(u) - place)}
    least = minimize(lambda u: u @ u, drawn, bounds=[(0.0, most)] * 5, constraints=there, method="SLSQP")
    assert found.converged and least.success
    assert 0.0 in found.u or most in found.u
    np.testing.assert_allclose(found.u, least.x, atol=2e-3 * most)
    assert found.u @ found.u < drawn @ drawn


def test_wrong_arguments():
    """Purpose: a wrong argument is named, with the rule and the value."""
    model = planar()
    for arguments, text in (
        (({"hand": [1.0, 2.0]},), r"target of 'hand': expected shape \(..., 3\) or \(..., 4, 4\), got \(2,\)"),
        (({"hand": [np.nan, 0, 0]},), "target of 'hand': must be finite"),
        (({},), "targets: must be a dictionary"),
        (({"hand": 2.0 * np.eye(4)},), "target of 'hand': must have rotation matrices"),
        (({"foot": [0, 0, 0]},), "foot"),
    ):
        with pytest.raises((ls.ModelError, ls.ShapeError), match=text):
            ls.inverse_kinematics(model, *arguments)
    place = {"hand": [0.1, 0.2, 0.0]}
    for options, text in (
        ({"by": "magic"}, "by: must be 'coordinates' or 'statics'"),
        ({"weights": {"foot": 1.0}}, "weights: must be a dictionary of numbers by frames that have a target"),
        ({"limits": (1.0, -1.0)}, r"limits: must be a pair \(low, high\)"),
        ({"by": "statics"}, "needs an actuator"),
        ({"u0": [1.0]}, "u0: is for by='statics'"),
        ({"starts": 0}, "starts"),
    ):
        with pytest.raises(ls.ModelError, match=text):
            ls.inverse_kinematics(model, place, **options)


@pytest.mark.slow  # a thousand tips, in half a minute
@pytest.mark.parametrize("most", [20.0, 40.0])
def test_thousand_tips_of_the_cable_driven_manipulator(most):
    """Purpose: tips that random tensions up to a limit reach are found again by statics, each to 1e-8 m within the
    limit, stable; and the lengths of the tendons there give back the tensions and the shape to 1e-10."""
    model = ls.load_robot(Path(__file__).parents[2] / "examples" / "robots" / "cdm.yaml").build()
    drawn = np.random.default_rng(1).uniform(0.0, most, (1000, model.nu))
    rest = ls.solve_statics(model, u=drawn)
    tips = ls.frame_pose(model, rest.q, "arm")[:, :3, 3]
    found = ls.inverse_kinematics(model, {"arm": tips}, by="statics", limits=(0.0, most))
    assert found.converged.all() and found.is_stable.all()
    assert (found.u >= 0.0).all() and (found.u <= most).all()
    again = ls.solve_statics(model, u=found.u, q0=found.q)
    np.testing.assert_allclose(ls.frame_pose(model, again.q, "arm")[:, :3, 3], tips, atol=1e-8)
    y = ls.actuation_coordinates(model, rest.q[:100])
    by_length = ls.prescribed_equilibrium(model, dict(zip(model.inputs.names, y.T)))
    np.testing.assert_allclose(by_length.u, drawn[:100], rtol=0, atol=1e-10)
    np.testing.assert_allclose(by_length.q, rest.q[:100], rtol=0, atol=1e-10)
