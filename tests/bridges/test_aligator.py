"""Models as stages of aligator's problems, beside its own differences, the library, and solutions of Crocoddyl."""

import numpy as np
import pytest
from bridges.shooting_robots import flying, reaching, tracking
from gradients.moving_robots import soft, start

import lissom as ls

crocoddyl = pytest.importorskip("crocoddyl")  # before aligator, so that both share the classes of Pinocchio
WHERE = "aligator is not installed: it is not on PyPI, conda-forge has it"
aligator = pytest.importorskip("aligator", reason=WHERE)
LIMITS = (0.0, 3.0)


HAS_GROUPS = hasattr(aligator.manifolds, "SE3")  # aligator may be built without Pinocchio, whose they are
ROBOTS = [soft, flying] if HAS_GROUPS else [soft]


@pytest.fixture(scope="module", params=ROBOTS, ids=lambda robot: robot.__name__)
def moving(request):
    """A model, q and v, and inputs."""
    model = request.param().build()
    return model, *start(model, size=0.3), np.random.default_rng(3).uniform(0.5, 2.0, model.nu)


def test_quaternions_need_groups():
    """Purpose: states of a free base lie on aligator's groups; an aligator without groups raises an error that names
    them."""
    model = flying().build()
    if HAS_GROUPS:
        assert (ls.aligator.state(model).nx, ls.aligator.state(model).ndx) == (model.nq + model.nv, 2 * model.nv)
        return
    with pytest.raises(ls.ModelError, match="need an aligator that was built with Pinocchio"):
        ls.aligator.state(model)


def state_of(model, q, v):
    """The state of aligator."""
    return np.concatenate([q, v])[ls.aligator.order(model)[0]]


def evaluated(stage, x, u):
    """The data of a stage with all derivatives."""
    data = stage.createData()
    stage.evaluate(x, u, data)
    stage.computeFirstOrderDerivatives(x, u, data)
    stage.computeSecondOrderDerivatives(x, u, data)
    return data


def differenced(make, names, x, u):
    """Derivatives by one-sided differences of aligator, those of two sizes without their first error."""
    found = []
    for size in (1e-6, 2e-6):
        numerical = make(size)
        data = numerical.createData()
        steps = ("evaluate", "computeGradients") if "Lx" in names else ("forward", "dForward")
        for step in steps:
            getattr(numerical, step)(x, u, data)
        found.append([np.array(getattr(data, name)) for name in names])
    return [2.0 * near - far for near, far in zip(*found)]


def test_states_are_on_their_manifold(moving):
    """Purpose: moves and differences are those of the library in aligator's order."""
    model, q, v, _ = moving
    state, ways = ls.aligator.state(model), ls.aligator.order(model)[1]
    assert (state.nx, state.ndx) == (model.nq + model.nv, 2 * model.nv)
    dx = np.random.default_rng(5).normal(size=2 * model.nv)
    x, n = state_of(model, q, v), model.nv
    y = state.integrate(x, dx[ways])
    np.testing.assert_allclose(y, state_of(model, ls.integrate(model, q, dx[:n]), v + dx[n:]), atol=1e-14)
    np.testing.assert_allclose(state.difference(x, y), dx[ways], atol=1e-13)


@pytest.mark.parametrize("scheme", ["sdirk", "generalized_alpha"])
def test_a_step_and_its_derivatives(moving, scheme):
    """Purpose: the next state is that of `step_derivatives`, the Jacobians are aligator's differences to 1e-6."""
    model, q, v, u = moving
    x, dt = state_of(model, q, v), 5e-3 if scheme == "sdirk" else 1e-3
    stage = ls.aligator.stage(model, tracking(model), dt=dt, t=0.3, method=scheme)
    data = evaluated(stage, x, u).dynamics_data
    step = ls.step_derivatives(model, q, v, u, dt=dt, method=scheme)
    np.testing.assert_allclose(data.xnext, state_of(model, step.q, step.v), atol=1e-12)
    state = ls.aligator.state(model)
    jacobians = differenced(
        lambda size: aligator.DynamicsFiniteDifferenceHelper(state, stage.dynamics, size), ("Jx", "Ju"), x, u
    )
    for exact, found in zip((data.Jx, data.Ju), jacobians):
        np.testing.assert_allclose(exact, found, atol=1e-6 * max(1.0, np.abs(exact).max()))


def test_costs_are_those_of_crocoddyl_s_actions(moving):
    """Purpose: costs and Hessians are those of `crocoddyl_action`, gradients also aligator's differences."""
    model, q, v, u = moving
    ways, x, cost = ls.aligator.order(model)[1], state_of(model, q, v), tracking(model)
    problem = ls.aligator.problem(model, cost, q, v, dt=5e-3, steps=1, t=0.3)
    stage = problem.stages[0]
    found = evaluated(stage, x, u).cost_data
    end = problem.term_cost.createData()
    for step in ("evaluate", "computeGradients", "computeHessians"):
        getattr(problem.term_cost, step)(x, np.zeros(model.nu), end)
    for k, (data, used) in enumerate(((found, (u,)), (end, ()))):
        action = ls.crocoddyl.action(model, cost, dt=5e-3, t=0.3 + 5e-3 * k)
        other = action.createData()
        action.calc(other, np.concatenate([q, v]), *used)
        action.calcDiff(other, np.concatenate([q, v]), *used)
        assert data.value == pytest.approx(other.cost, rel=1e-12)
        np.testing.assert_allclose(data.Lx, other.Lx[ways], atol=1e-13)
        np.testing.assert_allclose(data.Lxx, other.Lxx[np.ix_(ways, ways)], atol=1e-13)
        np.testing.assert_allclose(np.ravel(data.Luu), np.ravel(other.Luu), atol=1e-13)
    slopes = differenced(lambda size: aligator.CostFiniteDifference(stage.cost, size), ("Lx", "Lu"), x, u)
    for exact, numerical in zip((found.Lx, found.Lu), slopes):
        np.testing.assert_allclose(exact, numerical, atol=1e-6)


def solutions(model, cost, q, v, limits, **options):
    """Those of ProxDDP and of box-FDDP from the start held: cost, u, states in the order of (q, v), each."""
    problem = ls.aligator.problem(model, cost, q, v, limits=limits, **options)
    steps, guess = options["steps"], [np.ones(model.nu)] * options["steps"]
    solver = aligator.SolverProxDDP(1e-6, 1e-4, max_iters=50)
    solver.setup(problem)
    assert solver.run(problem, [problem.x0_init] * (steps + 1), guess)
    mine, back = solver.results, np.argsort(ls.aligator.order(model)[0])
    other = crocoddyl.SolverBoxFDDP(ls.crocoddyl.problem(model, cost, q, v, limits=limits, **options))
    other.th_stop = 1e-14
    assert other.solve([np.concatenate([q, v])] * (steps + 1), guess, 100, False)
    one = mine.traj_cost, np.array(mine.us), np.array(mine.xs)[:, back]
    return one, (other.cost, np.array(other.us), np.array(other.xs))


def test_proxddp_reaches_as_box_fddp_does():
    """Purpose: of a soft arm on tendons ProxDDP finds the motion that box-FDDP finds, and keeps the limits."""
    model, cost, limits = reaching()
    q, v = model.neutral(), np.zeros(model.nv)
    (worth, u, x), (other, u_other, x_other) = solutions(model, cost, q, v, limits, dt=0.04, steps=8)
    low, high = np.array(limits[0]), np.array(limits[1])
    assert (u > low - 1e-6).all() and (u < high + 1e-6).all()
    assert (np.minimum(u - low, high - u) < 1e-6).any()
    assert worth == pytest.approx(other, rel=1e-6)
    np.testing.assert_allclose(u, u_other, atol=1e-5)
    np.testing.assert_allclose(x, x_other, atol=1e-4)
    motion = ls.rollout(model, q, v, np.clip(u, low, high), dt=0.04, method="sdirk")
    np.testing.assert_allclose(x[:, : model.nq], motion.q, atol=1e-5)


@pytest.mark.skipif(not HAS_GROUPS, reason="this aligator is built without Pinocchio, and so has no SE(3)")
def test_proxddp_turns_a_free_base_as_box_fddp_does():
    """Purpose: the same of a robot with quaternions, along their manifold, from a start that moves."""
    model = flying().build()
    q, v = start(model, size=0.3)
    one, other = solutions(model, tracking(model), q, v, LIMITS, dt=0.02, steps=8)
    assert one[0] == pytest.approx(other[0], rel=1e-6)
    assert one[1].min() > LIMITS[0] - 1e-6 and one[1].max() < LIMITS[1] + 1e-6
    np.testing.assert_allclose(one[1], other[1], atol=1e-5)
    np.testing.assert_allclose(one[2], other[2], atol=1e-4)


def test_fddp_of_both_is_the_same():
    """Purpose: without limits aligator's FDDP finds the motion of least cost that Crocoddyl's finds."""
    model, cost, _ = reaching()
    problem = ls.aligator.problem(model, cost, dt=0.04, steps=8)
    solver = aligator.SolverFDDP(1e-6)
    solver.setup(problem)
    assert solver.run(problem, [problem.x0_init] * 9, [np.ones(model.nu)] * 8)
    other = crocoddyl.SolverFDDP(ls.crocoddyl.problem(model, cost, dt=0.04, steps=8))
    other.th_stop = 1e-14
    assert other.solve([problem.x0_init] * 9, [np.ones(model.nu)] * 8, 100, False)
    assert solver.results.traj_cost == pytest.approx(other.cost, rel=1e-10)
    np.testing.assert_allclose(np.array(solver.results.us), np.array(other.us), atol=1e-5)


def test_aligator_s_own_costs_and_constraints():
    """Purpose: a cost of aligator stands beside the steps as it is, and a constraint at the end is kept."""
    model = soft().build()
    state, goal = ls.aligator.state(model), np.full(2 * model.nv, 0.3)
    cost = aligator.CostStack(state, model.nu)
    cost.addCost(aligator.QuadraticControlCost(state, np.zeros(model.nu), 0.1 * np.eye(model.nu)))
    problem = ls.aligator.problem(model, cost, dt=0.04, steps=6)
    hinge = aligator.StateErrorResidual(state, model.nu, goal)[0]
    problem.addTerminalConstraint(hinge, aligator.constraints.EqualityConstraintSet())
    solver = aligator.SolverProxDDP(1e-6, 1e-4, max_iters=50)
    solver.setup(problem)
    assert solver.run(problem, [problem.x0_init] * 7, [np.zeros(model.nu)] * 6)
    u = np.array(solver.results.us)
    assert solver.results.traj_cost == pytest.approx(0.05 * (u**2).sum(), rel=1e-9)
    with pytest.warns(ls.AccuracyWarning, match="a push"):
        motion = ls.rollout(model, u=u, dt=0.04, method="sdirk")
    assert motion.q[-1, 0] == pytest.approx(0.3, abs=1e-5)


def test_wrong_arguments_are_named():
    """Purpose: wrong costs and limits are named; a guess from which no step is found is an error of the solver."""
    model, cost, _ = reaching()
    with pytest.raises(ls.ModelError, match=r"cost: must be an ls.TrackingCost or an aligator.CostAbstract \(got 3\)"):
        ls.aligator.stage(model, 3, dt=0.02)
    with pytest.raises(ls.ModelError, match="limits: must be low <= high"):
        ls.aligator.stage(model, cost, dt=0.02, limits=(1.0, 0.0))
    problem = ls.aligator.problem(model, cost, dt=0.02, steps=2)
    solver = aligator.SolverProxDDP(1e-6, 1e-4, max_iters=5)
    solver.setup(problem)
    fast = np.concatenate([model.neutral(), np.full(model.nv, 1e5)])
    with pytest.raises(RuntimeError, match="NaN"):
        solver.run(problem, [problem.x0_init, fast, fast], [np.zeros(model.nu)] * 2)
