"""Model predictive control: plans at the minimum within limits, and the law that plans again at each sample."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from control.controlled_robots import SOFT

import lissom as ls
from lissom.control.model_predictive import box_least

LOW, HIGH = 0.0, 12.0


@lru_cache(maxsize=1)
def arm():
    """A soft arm with three tendons, where its tip should be, and the controller."""
    robot = ls.Robot("arm")
    rod = ls.Rod(0.3, ls.SectionCircle(0.02), ls.BasisLegendre(bending_y=1, bending_z=1), SOFT)
    robot.add_link("arm", rod)
    for k, angle in enumerate((np.pi / 2, 7 * np.pi / 6, 11 * np.pi / 6)):
        robot.add_tendon(f"tendon {k}", "arm", (0.015 * np.cos(angle), 0.015 * np.sin(angle)))
    model = robot.build()
    rest = ls.solve_statics(model, u=[9.0, 3.0, 0.0])
    goal = ls.frame_pose(model, rest.q, "arm")[:3, 3]
    cost = ls.TrackingCost(model, inputs=1e-2, state=1e-2, points={"arm": 1e4}, point_reference=[goal], end=0.1)
    return model, goal, ls.ModelPredictiveControl(model, cost, dt=0.02, steps=8, limits=(LOW, HIGH))


def slopes_of_cost(control, plan):
    """Derivatives of the cost of a plan by its inputs, by the backward pass of a rollout."""
    model, cost = control.model, control.cost
    motion = ls.rollout(model, plan.q[0], plan.v[0], plan.u, dt=control.dt, method=control.method)
    to = cost.references(plan.t)
    each = np.append(np.full(control.steps, control.dt), cost.end)
    r, J = cost.residuals(to, motion.q, motion.v), cost.slopes(to, motion.q)
    by_x = each[:, None] * np.einsum("nri,nr->ni", J, r)
    by_u = control.dt * cost.of_inputs(plan.u) @ cost.input_root.T
    return motion.backward(by_x[:, : model.nv], by_x[:, model.nv :]).u + by_u


def test_least_of_a_quadratic_function_within_limits():
    """Purpose: the slope vanishes where no limit holds, and pushes against those that do."""
    rng = np.random.default_rng(0)
    for n in (1, 7, 40):
        A = rng.normal(size=(n + 3, n))
        H, g = A.T @ A + 0.01 * np.eye(n), rng.normal(size=n)
        low, high = -rng.uniform(0.0, 0.3, n), rng.uniform(0.0, 0.3, n)
        x = box_least(H, g, low, high)
        slope = H @ x + g
        assert (x >= low).all() and (x <= high).all()
        inside = (x > low) & (x < high)
        np.testing.assert_allclose(slope[inside], 0.0, atol=1e-7 * np.abs(g).max())
        assert (slope[x == low] >= -1e-7).all() and (slope[x == high] <= 1e-7).all()
        free = box_least(H, g, np.full(n, -np.inf), np.full(n, np.inf))
        np.testing.assert_allclose(H @ free, -g, atol=1e-7 * np.abs(g).max())


@pytest.mark.parametrize("scheme", ["sdirk", "implicit_euler", "bathe"])
def test_a_plan_is_a_minimum_within_the_limits(scheme):
    """Purpose: no input can lower the cost of a converged plan, by the gradient of the motion, and some limits hold,
    whether steps begin from q and v alone or with an acceleration too."""
    model, _, control = arm()
    control = replace(control, method=scheme)
    plan = control.plan(0.0, model.neutral(), np.zeros(model.nv), iterations=40)
    slope, start = (slopes_of_cost(control, x) for x in (plan, control.plan(0.0, plan.q[0], plan.v[0], iterations=0)))
    held = np.where(slope > 0.0, plan.u <= LOW, plan.u >= HIGH)
    assert held.any() and not held.all()
    assert np.abs(np.where(held, 0.0, slope)).max() < 1e-5 * np.abs(start).max()
    assert plan.left < 1e-8 and plan.iterations < 40


def throw():
    """A lightly damped arm that throws its hand by its shoulder; the goal of the hand, and the control."""
    robot, hand, dt, steps = ls.Robot("arm"), np.eye(4), 0.03, 30
    down = ls.lie.se3_exp([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
    hinges = (ls.JointRevolute((0, 1, 0), damping=1e-3, stiffness=k) for k in (0.0, 1.0))
    robot.add_link("upper", ls.RigidBody(0.5, (0.2, 0, 0), (1e-4, 7e-3, 7e-3)), next(hinges), placement=down)
    hand[0, 3] = 0.4
    lower = ls.RigidBody(0.2, (0.1, 0, 0), (1e-4, 1e-3, 1e-3))
    robot.add_link("lower", lower, next(hinges), parent="upper", placement=hand.copy())
    hand[0, 3] = 0.2
    robot.add_frame("hand", "lower", placement=hand)
    robot.add_joint_actuator("shoulder", "upper")
    model, goal = robot.build(), np.array([0.55, 0.0, -0.1])
    cost = ls.TrackingCost(model, inputs=0.1, state=1e-3, points={"hand": 2.0}, point_reference=[goal], end=1e3)
    return model, goal, ls.ModelPredictiveControl(model, cost, dt, steps, limits=(-2.0, 2.0))


def simulated(control, plan):
    """The motion under the inputs of a plan, by adaptive steps."""
    law, end = lambda t, q, v: plan.u[round(t / control.dt)], control.dt * control.steps
    return ls.simulate(control.model, end, q0=plan.q[0], v0=plan.v[0], controller=law, period=control.dt, rtol=1e-8)


def test_a_throw_lands_where_it_was_planned():
    """Purpose: a lightly damped arm thrown by its shoulder lands within 2 cm of the goal that its plan reaches within
    5 mm, and the error that the plan says of its steps is that of its end, within a factor of two."""
    model, goal, control = throw()
    plan = control.plan(0.0, model.neutral(), np.zeros(model.nv), iterations=30)
    motion = simulated(control, plan)
    planned, landed = (
        np.linalg.norm(ls.frame_pose(model, q, "hand")[:3, 3] - goal) for q in (plan.q[-1], motion.q[-1])
    )
    assert planned < 0.005 and landed < 0.02
    true, said = np.abs(plan.q[-1] - motion.q[-1]).max(), np.abs(plan.error()[0][-1]).max()
    assert 0.5 * true < said < 2.0 * true
    coarse = replace(control, method="implicit_euler").plan(0.0, plan.q[0], plan.v[0], iterations=30)
    assert np.abs(coarse.error()[0][-1]).max() > 0.1


@pytest.mark.parametrize("method", ["implicit_euler", "bathe", "generalized_alpha", "newmark", "hht", "esdirk"])
def test_plans_of_every_method_say_their_error(method):
    """Purpose: the error that a plan says of its end is the error itself within a factor of two, also of methods that
    its inputs, which jump, leave of first order."""
    model, _, control = throw()
    control = replace(control, method=method)
    plan = control.plan(0.0, model.neutral(), np.zeros(model.nv), iterations=30)
    true, said = np.abs(plan.q[-1] - simulated(control, plan).q[-1]).max(), np.abs(plan.error()[0][-1]).max()
    assert 0.5 * true < said < 2.0 * true


def test_one_iteration_each_comes_to_the_goal():
    """Purpose: with one iteration a sample the tip comes to rest near its goal, tensions within limits; the same motion
    comes from the same law again, whose state is the plan."""
    model, goal, control = arm()
    law = control.controller(0.01)
    motion = ls.simulate(model, 0.8, controller=law, period=0.01)
    tip = ls.frame_pose(model, motion.q[-1], "arm")[:3, 3]
    away = np.linalg.norm(ls.frame_pose(model, model.neutral(), "arm")[:3, 3] - goal)
    assert np.linalg.norm(tip - goal) < 0.02 * away
    assert motion.u.min() >= LOW and motion.u.max() <= HIGH
    again = ls.simulate(model, 0.2, controller=law, period=0.01, t_eval=[0.0, 0.2])
    same = ls.simulate(model, 0.2, controller=control.controller(0.01), period=0.01, t_eval=[0.0, 0.2])
    np.testing.assert_array_equal(again.q, same.q)


def test_plans_are_shifted():
    """Purpose: inputs held during steps are those of later steps, in between in proportion, the last ones held."""
    control = arm()[2]
    u = np.arange(24.0).reshape(8, 3)
    np.testing.assert_allclose(control.shifted(u, 0.02)[:7], u[1:])
    np.testing.assert_allclose(control.shifted(u, 0.005)[:7], 0.75 * u[:7] + 0.25 * u[1:])
    np.testing.assert_allclose(control.shifted(u, 1.0), np.tile(u[-1], (8, 1)))


def test_wrong_arguments_are_named():
    """Purpose: costs of other models, shapes of inputs, and robots that change in time."""
    model, _, control = arm()
    other = ls.Robot("other")
    other.add_link("arm", ls.RigidBody.sphere(0.1, density=1000.0), ls.JointRevolute())
    other.add_joint_actuator("motor", "arm")
    other.add_point_load("wind", "arm", force=lambda t: (np.sin(t), 0.0, 0.0))
    blown = other.build()
    with pytest.raises(ls.ModelError, match=r"cost: must be an ls\.TrackingCost of the same model"):
        ls.ModelPredictiveControl(blown, control.cost, dt=0.02, steps=8)
    del other.loads["wind"]
    other.set_fluid(1000.0, current=lambda t: (np.sin(t), 0.0, 0.0))
    for moved in (blown, other.build()):
        with pytest.raises(ls.ModelError, match="robot 'other': must have no loads, currents"):
            ls.ModelPredictiveControl(moved, ls.TrackingCost(moved, inputs=1.0), dt=0.02, steps=8)
    with pytest.raises(ls.ShapeError, match=r"u0: expected shape \(8, 3\), got \(2, 3\)"):
        control.plan(0.0, model.neutral(), np.zeros(model.nv), np.zeros((2, 3)))
