"""Models as action models of Crocoddyl, beside its own differences, and what its solver makes of them."""

import sys

import crocoddyl
import numpy as np
import pytest
from bridges.shooting_robots import flying, reaching, tracking
from gradients.moving_robots import soft, start

import lissom as ls

BOTH, FIRST, SECOND = crocoddyl.Jcomponent.both, crocoddyl.Jcomponent.first, crocoddyl.Jcomponent.second
NAMES = ("Fx", "Fu", "Lx", "Lu", "Lxx", "Luu", "Lxu")


@pytest.fixture(scope="module", params=[soft, flying], ids=["soft", "flying"])
def moving(request):
    """A model, a state x and inputs."""
    model = request.param().build()
    q, v = start(model, size=0.3)
    return model, np.concatenate([q, v]), np.random.default_rng(3).uniform(0.5, 2.0, model.nu)


def derivatives(model, x, u):
    """Those of an action model."""
    data = model.createData()
    model.calc(data, x, u)
    model.calcDiff(data, x, u)
    return {name: np.array(getattr(data, name)) for name in NAMES}


def mismatch(action, x, u, names=NAMES, *, gauss=True):
    """Largest difference from Crocoddyl's one-sided differences, relative to the largest entry; those of two sizes make
    one without their first error."""
    numerical = crocoddyl.ActionModelNumDiff(action, gauss)
    found = []
    for size in (1e-6, 2e-6):
        numerical.disturbance = size
        found.append(derivatives(numerical, x, u))
    exact, (near, far) = derivatives(action, x, u), found
    wanted = {name: 2.0 * near[name] - far[name] for name in names}
    return max(np.abs(exact[name] - wanted[name]).max() / max(1.0, np.abs(exact[name]).max()) for name in names)


@pytest.mark.parametrize(
    ("robot", "scheme"),
    [(soft, "sdirk"), (soft, "generalized_alpha"), (flying, "implicit_euler")],
    ids=lambda x: x if isinstance(x, str) else x.__name__,
)
def test_derivatives_are_crocoddyl_s_differences(robot, scheme):
    """Purpose: steps, costs and Gauss-Newton Hessians agree with Crocoddyl's NumDiff to 1e-6."""
    model = robot().build()
    x, u = np.concatenate(start(model, size=0.3)), np.random.default_rng(3).uniform(0.5, 2.0, model.nu)
    action = ls.crocoddyl.action(model, tracking(model), dt=5e-3, t=0.3, method=scheme)
    assert mismatch(action, x, u) < 1e-6


def test_states_are_on_their_manifold(moving):
    """Purpose: moves undo differences, and their Jacobians are those of Crocoddyl's differences of the state."""
    model, x, _ = moving
    state = ls.crocoddyl.state(model)
    other = state.rand()
    dx = state.diff(x, other)
    np.testing.assert_allclose(state.diff(state.integrate(x, dx), other), 0.0, atol=1e-12)
    numerical = crocoddyl.StateNumDiff(state)
    for jacobians in ("Jdiff", "Jintegrate"):
        second = other if jacobians == "Jdiff" else dx
        for exact, found in zip(*(getattr(s, jacobians)(x, second, BOTH) for s in (state, numerical))):
            np.testing.assert_allclose(exact, found, atol=1e-6)
    for side in (FIRST, SECOND) if model.nq > model.nv else ():
        whole = np.asarray(state.Jintegrate(x, dx, side)).reshape(2 * model.nv, 2 * model.nv)
        transported = state.JintegrateTransport(x, dx, np.eye(2 * model.nv), side)
        np.testing.assert_allclose(transported, whole, atol=1e-12)


def test_a_step_is_that_of_the_library(moving):
    """Purpose: the next state is a rollout's, the cost the sum of its squares, and at the end there is no step."""
    model, x, u = moving
    cost = tracking(model)
    action = ls.crocoddyl.action(model, cost, dt=5e-3, t=0.3)
    data = action.createData()
    action.calc(data, x, u)
    q, v = x[: model.nq], x[model.nq :]
    end = ls.rollout(model, q, v, u[None], dt=5e-3, method="sdirk")
    np.testing.assert_allclose(data.xnext, np.concatenate([end.q[1], end.v[1]]), atol=1e-12)
    q_r, v_r = cost.state_reference(0.3)
    away = np.concatenate([ls.difference(model, q_r, q), v - v_r])
    points = [ls.frame_pose(model, q, name)[:3, 3] - p for name, p in zip(cost.points, cost.point_reference)]
    far = 30.0 * points[0] @ points[0] + 10.0 * points[1] @ points[1]
    state = 0.5 * (away @ cost.state @ away + far)
    assert data.cost == pytest.approx(5e-3 * (state + 0.5 * (u - 1.0) @ cost.inputs @ (u - 1.0)), rel=1e-12)
    action.calc(data, x)
    assert data.cost == pytest.approx(0.5 * state, rel=1e-12)


def test_box_fddp_solves_it():
    """Purpose: at its solution within the limits no input can lower the cost, by the gradient of `rollout.backward`;
    the library's own plan is the same."""
    model, cost, (low, high) = reaching()
    problem = ls.crocoddyl.problem(model, cost, dt=0.04, steps=8, limits=(low, high))
    solver = crocoddyl.SolverBoxFDDP(problem)
    solver.th_stop = 1e-14
    rest = np.concatenate([model.neutral(), np.zeros(model.nv)])
    assert solver.solve([rest] * 9, [np.zeros(model.nu)] * 8, 60, False)
    u = np.array(solver.us)
    assert (u >= np.array(low) - 1e-12).all() and (u <= np.array(high) + 1e-12).all()
    control = ls.ModelPredictiveControl(model, cost, dt=0.04, steps=8, limits=(low, high))
    plan = control.plan(0.0, model.neutral(), np.zeros(model.nv), iterations=30)
    np.testing.assert_allclose(plan.u, u, atol=1e-5)
    assert plan.cost == pytest.approx(solver.cost, rel=1e-9)
    motion = ls.rollout(model, u=u, dt=0.04, method="sdirk")
    np.testing.assert_allclose(np.array(solver.xs)[:, : model.nq], motion.q, atol=1e-8)
    times, each = 0.04 * np.arange(9), np.array([0.04] * 8 + [cost.end])
    to = cost.references(times)
    r, J = cost.residuals(to, motion.q, motion.v), cost.slopes(to, motion.q)
    by_x = each[:, None] * np.einsum("nri,nr->ni", J, r)
    slope = motion.backward(by_x[:, : model.nv], by_x[:, model.nv :]).u + 0.04 * np.array(cost.inputs) * u
    bound = np.where(slope > 0.0, u <= np.array(low) + 1e-9, u >= np.array(high) - 1e-9)
    assert np.abs(np.where(bound, 0.0, slope)).max() < 1e-5 * np.abs(slope).max()
    assert bound.any() and not bound.all()


def test_crocoddyl_s_own_costs():
    """Purpose: a sum of Crocoddyl's costs stands beside the steps, with its own derivatives."""
    model = soft().build()
    x, u = np.concatenate(start(model, size=0.3)), np.ones(model.nu)
    state = ls.crocoddyl.state(model)
    costs = crocoddyl.CostModelSum(state, model.nu)
    goal = crocoddyl.ResidualModelState(state, state.zero(), model.nu)
    costs.addCost("goal", crocoddyl.CostModelResidual(state, goal), 2.0)
    effort = crocoddyl.ResidualModelControl(state, model.nu)
    costs.addCost("effort", crocoddyl.CostModelResidual(state, effort), 0.3)
    action = ls.crocoddyl.action(model, costs, dt=5e-3)
    assert mismatch(action, x, u, ("Fx", "Fu", "Lx", "Lu"), gauss=False) < 1e-6
    data = action.createData()
    action.calc(data, x)
    away = state.diff(state.zero(), x)
    assert data.cost == pytest.approx(away @ away, rel=1e-12)


def test_wrong_arguments_are_named(monkeypatch):
    """Purpose: wrong costs, limits and a missing extra are named; a step that is not found is one to infinity."""
    model, cost, _ = reaching()
    with pytest.raises(ls.ModelError, match=r"cost: must be an ls.TrackingCost or a crocoddyl.CostModelSum \(got 3\)"):
        ls.crocoddyl.action(model, 3, dt=0.02)
    with pytest.raises(ls.ModelError, match="limits: must be low <= high"):
        ls.crocoddyl.action(model, cost, dt=0.02, limits=(1.0, 0.0))
    with pytest.raises(ls.ModelError, match="point_reference: must be given for points"):
        ls.TrackingCost(model, inputs=1.0, points={"arm": 1.0})
    action = ls.crocoddyl.action(model, cost, dt=0.02)
    data = action.createData()
    action.calc(data, np.concatenate([model.neutral(), np.full(model.nv, 1e5)]), np.zeros(model.nu))
    assert np.isinf(data.xnext[model.nq :]).all()
    monkeypatch.setitem(sys.modules, "crocoddyl", None)
    with pytest.raises(ls.ModelError, match=r"pip install 'lissom\[crocoddyl\]'"):
        ls.crocoddyl.state(model)
