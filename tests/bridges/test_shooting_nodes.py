"""Nodes of problems of optimal control at values that no robot reaches but solvers ask for."""

import sys
import warnings

import numpy as np
import pytest
from bridges.shooting_robots import flying, reaching, tracking
from gradients.moving_robots import start

import lissom as ls
from lissom.bridges.shooting_nodes import shooting_node


def node(model, cost):
    """A node without limits."""
    return shooting_node(model, cost, (ls.TrackingCost, ""), dt=0.02)


def test_what_cannot_be_computed_is_infinite():
    """Purpose: neither a step that is not found nor a rod that turns too far raises: steps and costs are infinite."""
    model, cost, _ = reaching()
    u, one = np.zeros(model.nu), node(model, cost)
    fast, turned = np.full(model.nv, 1e5), np.full(model.nq, 1e3)
    for q, v in ((model.neutral(), fast), (turned, np.zeros(model.nv))):
        end = one.step(np.concatenate([q, v]), u)
        assert (end[: model.nq] == q).all() and np.isinf(end[model.nq :]).all()
        assert not any(slope.any() for slope in one.slopes(np.concatenate([q, v]), u))
    x = np.concatenate([turned, np.zeros(model.nv)])
    for used in (u, None):
        assert np.isinf(one.residual(x, used)[: cost.count]).all()
        by_x, by_u = one.gradient(x, used)
        assert not by_x.any() and np.isfinite(by_u).all() and not one.hessian(x, used)[0].any()


def test_tendons_push_without_a_warning_where_a_solver_tries():
    """Purpose: inputs outside the limits are tried in silence, and the warning is still there for those who ask."""
    model, cost, _ = reaching()
    x, u = np.concatenate([model.neutral(), np.zeros(model.nv)]), np.full(model.nu, -0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        end = node(model, cost).step(x, u)
        node(model, cost).slopes(x, u)
    with pytest.warns(ls.AccuracyWarning, match="it is computed as a push"):
        motion = ls.rollout(model, u=u[None], dt=0.02, method="sdirk")
    np.testing.assert_array_equal(end, np.concatenate([motion.q[1], motion.v[1]]))


def test_derivatives_of_a_cost_are_its_differences():
    """Purpose: gradients, along quaternions and at the end too, agree with central differences."""
    model = flying().build()
    one = node(model, tracking(model))
    x, u, n, h = np.concatenate(start(model, size=0.3)), np.array([0.7]), 2 * model.nv, 1e-6

    def value(way, used):
        q = ls.integrate(model, x[: model.nq], way[: model.nv])
        r = one.residual(np.concatenate([q, x[model.nq :] + way[model.nv : n]]), used)
        return 0.5 * r @ r

    for used in (u, None):
        by_x, by_u = one.gradient(x, used)
        slope = [(value(h * way, used) - value(-h * way, used)) / (2.0 * h) for way in np.eye(n)]
        np.testing.assert_allclose(by_x, slope, atol=1e-7 * np.abs(by_x).max())
        by_input = 0.0 if used is None else (value(np.zeros(n), u + h) - value(np.zeros(n), u - h)) / (2.0 * h)
        np.testing.assert_allclose(by_u, by_input, atol=1e-8)


def test_a_batch_of_models_is_refused():
    """Purpose: a problem is that of one robot."""
    model, cost, _ = reaching()
    with pytest.raises(ls.ModelError, match="must be one Model"):
        node(model.batch("arm.length", [0.4, 0.5]), cost)


def test_orders_of_aligator_put_places_first():
    """Purpose: the place of a free joint comes before its quaternion, real parts last, and the rest stays."""
    model = flying().build()
    order, ways = ls.aligator.order(model)
    assert order[:11].tolist() == [4, 5, 6, 1, 2, 3, 0, 8, 9, 10, 7]
    assert ways[:9].tolist() == [3, 4, 5, 0, 1, 2, 6, 7, 8]
    assert (order[11:] == np.arange(11, model.nq + model.nv)).all() and (ways[9:] == np.arange(9, 2 * model.nv)).all()


def test_aligator_is_asked_for(monkeypatch):
    """Purpose: where it is missing, or another package has its name, the message says where to get it."""
    model, cost, _ = reaching()
    for module in (None, sys):
        monkeypatch.setitem(sys.modules, "aligator", module)
        for call in (lambda: ls.aligator.state(model), lambda: ls.aligator.problem(model, cost, dt=0.02, steps=2)):
            with pytest.raises(ls.ModelError, match="conda install -c conda-forge aligator"):
                call()
