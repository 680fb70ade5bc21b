"""The driver of searches by gradients: against closed forms, at failures, and when it is interrupted."""

import numpy as np
import pytest
from dynamics.small_robots import rod
from interrupting import press_at

import lissom as ls
from lissom.lie.arrays import se3_exp, se3_log, se3_tangent_inverse

CENTER = {"modulus": 2.5e6, "radii": np.array([1e-3, 4e-3])}
SIZES = {"modulus": 1e6, "radii": np.array([1e-3, 2e-3])}


def bowl(x):
    """A quadratic function of numbers of very different units, and its derivatives."""
    away = {name: (x[name] - CENTER[name]) / SIZES[name] for name in CENTER}
    loss = 0.5 * away["modulus"] ** 2 + 0.5 * np.sum(np.array([1.0, 30.0]) * away["radii"] ** 2)
    slopes = {"modulus": away["modulus"], "radii": np.array([1.0, 30.0]) * away["radii"]}
    return 3.0 + loss, {name: slopes[name] / SIZES[name] for name in slopes}


BEGIN = {"modulus": 1e6, "radii": [2e-3, 2e-3]}


@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP"])
def test_numbers_of_all_units_reach_the_minimum(method):
    """Purpose: values of 1e6 and of 1e-3 reach the minimum of a quadratic function, and the report says so."""
    found = ls.minimize(bowl, start=BEGIN, method=method)
    assert found.converged and found.gradient_norm < 1e-6 and found.violation == 0.0
    assert isinstance(found.values["modulus"], float)
    np.testing.assert_allclose(found.values["modulus"], 2.5e6, rtol=1e-6)
    np.testing.assert_allclose(found.values["radii"], CENTER["radii"], rtol=1e-5)
    np.testing.assert_allclose(found.loss, 3.0, atol=1e-10)
    assert found.calls == len(found.losses) and found.losses[0] == bowl({**BEGIN, "radii": np.full(2, 2e-3)})[0]
    for text in ("converged", f"{found.calls} calls", "modulus", "derivative", "loss 3"):
        assert text in found.report


def test_a_bound_holds_and_its_gradient_does_not_count():
    """Purpose: at an active bound the value lies on it, and the remaining gradient is zero although the gradient is
    not."""
    found = ls.minimize(bowl, ["modulus", "radii"], BEGIN, bounds={"radii": (0.0, [3e-3, 3e-3])})
    np.testing.assert_allclose(found.values["radii"], [1e-3, 3e-3], rtol=1e-5)
    assert found.values["radii"][1] <= 3e-3
    assert abs(found.gradient["radii"][1]) > 1e3 and found.gradient_norm < 1e-5 and found.converged


def on_circle(x):
    """x² + y², and its derivatives."""
    return x["p"] @ x["p"], {"p": 2.0 * x["p"]}


def plane(x):
    """x + 2 y, and its derivatives."""
    return x["p"] @ [1.0, 2.0], {"p": np.array([1.0, 2.0])}


@pytest.mark.parametrize("low, high", [(5.0, 5.0), (None, 5.0)])
def test_constraints_hold(low, high):
    """Purpose: the least x + 2 y on and in a circle of radius √5 is at (-1, -2)."""
    found = ls.minimize(plane, start={"p": [0.5, -1.0]}, constraints=[(on_circle, low, high)])
    np.testing.assert_allclose(found.values["p"], [-1.0, -2.0], atol=1e-6)
    assert found.violation < 1e-6 and found.gradient_norm < 1e-5 and found.converged


def test_rows_of_a_constraint_have_limits_of_their_own():
    """Purpose: a constraint of several rows, with one equation and one lower limit, leads to the corner."""

    def both(x):
        return x["p"], {"p": np.eye(2)}

    found = ls.minimize(plane, start={"p": [3.0, 4.0]}, constraints=[(both, [2.0, -1.0], [2.0, np.inf])])
    np.testing.assert_allclose(found.values["p"], [2.0, -1.0], atol=1e-7)


def test_ipopt_finds_the_same(monkeypatch):
    """Purpose: Ipopt, where it is installed, finds the point of the circle."""
    pytest.importorskip("cyipopt", reason="cyipopt is not installed: it needs Ipopt, which pip does not bring")
    found = ls.minimize(plane, start={"p": [0.5, -1.0]}, constraints=[(on_circle, None, 5.0)], method="ipopt")
    np.testing.assert_allclose(found.values["p"], [-1.0, -2.0], atol=1e-5)
    assert found.converged and found.iterations > 0


def test_a_pose_turns_and_moves_to_its_target():
    """Purpose: a pose is searched by increments on its right, with derivatives by such increments at every point."""
    target = se3_exp([0.4, -0.9, 1.1, 0.3, -0.2, 0.5])

    def loss(x):
        away = se3_log(np.linalg.inv(target) @ x["g"])
        return 0.5 * away @ away, {"g": away @ se3_tangent_inverse(away)}

    found = ls.minimize(loss, start={"g": np.eye(4)}, tolerance=1e-8)
    np.testing.assert_allclose(found.values["g"], target, atol=1e-7)
    assert found.gradient["g"].shape == (6,) and found.calls < 30


@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP"])
@pytest.mark.parametrize("failure", [ls.ConvergenceError, ls.ModelError, None])
def test_a_step_into_nothing_is_shortened(method, failure):
    """Purpose: a function without values beyond its minimum is minimised by shorter steps."""

    def loss(x):
        if x["s"] < 0.2 and failure:
            raise failure("nothing here")
        with np.errstate(invalid="ignore"):
            return x["s"] - 0.1 * np.log(x["s"] - 0.2), {"s": 1.0 - 0.1 / (x["s"] - 0.2)}

    found = ls.minimize(loss, start={"s": 5.0}, method=method)
    assert np.isnan(found.losses).any()
    np.testing.assert_allclose(found.values["s"], 0.3, rtol=1e-4)


def test_errors_at_the_start_reach_the_caller():
    """Purpose: a loss that fails or is infinite at the start raises, without a result."""

    def fails(x):
        raise ls.ConvergenceError("no equilibrium")

    with pytest.raises(ls.ConvergenceError, match="no equilibrium") as stop:
        ls.minimize(fails, start={"s": 1.0})
    assert stop.value.partial is None
    with pytest.raises(ls.ModelError, match="loss: must be finite at the start"):
        ls.minimize(lambda x: (np.inf, {"s": 1.0}), start={"s": 1.0})


def test_the_best_is_kept_on_errors_and_interruption(monkeypatch):
    """Purpose: another error of the loss, and Ctrl-C, carry the best values that were reached."""
    calls = []

    def loss(x):
        calls.append(bowl(x)[0])
        if len(calls) == 6:
            raise ZeroDivisionError("the user's own")
        return bowl(x)

    with pytest.raises(ZeroDivisionError) as stop:
        ls.minimize(loss, start=BEGIN)
    partial = stop.value.partial
    assert partial.loss == min(calls[:5]) and not partial.converged and "the user's own" in partial.reason
    press_at(monkeypatch, "inverse.minimize", 4)
    with pytest.raises(KeyboardInterrupt) as pressed:
        ls.minimize(bowl, start=BEGIN)
    assert pressed.value.partial.loss == np.nanmin(pressed.value.partial.losses)
    assert pressed.value.partial.reason == "KeyboardInterrupt"


def test_design_and_tension_of_a_rod_reach_a_target():
    """Purpose: a path of the model starts at its value, an input beside it is searched too, and the result is a model
    that reaches."""
    model = rod()
    truth = model.with_({"rod.material.young": 8e5, "tendon.offset": (0.0, 0.012)})
    target = ls.frame_pose(truth, ls.solve_statics(truth, [6.0]).q, "rod")[[0, 2], 3]

    def loss(x):
        tension = x.pop("tension")
        own = model.with_(x)
        rest = ls.solve_statics(own, [tension])
        pose, J = ls.frame_pose(own, rest.q, "rod"), ls.frame_jacobian(own, rest.q, "rod")
        away = pose[[0, 2], 3] - target
        slopes = ls.equilibrium_derivatives(rest, away @ (pose[:3, :3] @ J[3:])[[0, 2]], parameters=list(x))
        return 0.5 * away @ away, {**slopes.parameters, "tension": slopes.u[0]}

    over = ["rod.material.young", "tendon.offset", "tension"]
    bounds = {"rod.material.young": (2e5, 5e6), "tension": (0.0, 30.0), "tendon.offset": (-0.018, 0.018)}
    found = ls.minimize(loss, over, {"tension": 3.0}, model=model, bounds=bounds, iterations=200)
    assert found.loss < 1e-8 * found.losses[0] and found.converged
    rest = ls.solve_statics(found.model, [found.values["tension"]])
    np.testing.assert_allclose(
        0.5 * np.sum((ls.frame_pose(found.model, rest.q, "rod")[[0, 2], 3] - target) ** 2), found.loss, rtol=1e-6
    )


@pytest.mark.parametrize(
    "given, text",
    [
        ({"over": []}, "over: must be names of values, each once"),
        ({"over": ["a", "a"]}, "over: must be names of values, each once"),
        ({"over": ["a"], "start": {"b": 1.0}}, "start > b: must be one of the values to search"),
        ({"over": ["a"]}, "start > a: must be given without a model"),
        ({"start": {"a": np.nan}}, "start > a: must be a finite number"),
        ({"start": {"a": 3.0}, "bounds": {"a": (4.0, 5.0)}}, "bounds: must contain the values at the start"),
        ({"start": {"a": 3.0}, "bounds": {"b": (4.0, 5.0)}}, "bounds > b: must be of one of the values"),
        ({"start": {"a": 3.0}, "method": "newton"}, "method: must be one of L-BFGS-B, SLSQP, ipopt"),
        ({"start": {"a": 3.0}, "constraints": [(plane, 2.0, 1.0)]}, r"constraints\[0\]: must have low <= high"),
        ({"start": {"a": 3.0}, "constraints": [plane]}, r"constraints\[0\]: must be \(function, low, high\)"),
        ({"start": {"a": 3.0}, "constraints": [(plane, 0.0, 1.0)], "method": "L-BFGS-B"}, "method: must take constr"),
        ({"start": {"a": 3.0}, "iterations": 0}, "iterations"),
        ({"start": {"a": 3.0}, "tolerance": 0.0}, "tolerance"),
        ({"start": {"a": 3.0, "b": 1.0}}, "loss > derivatives: must have one array for each of"),
        ({"start": {"a": [3.0]}}, r"loss > derivatives > a: expected shape \(1,\), got \(\)"),
    ],
)
def test_wrong_arguments_are_refused(given, text):
    """Purpose: each wrong argument raises one line that names it, the rule and the value."""
    with pytest.raises((ls.ModelError, ls.ShapeError), match=text):
        ls.minimize(lambda x: (1.0, {"a": 0.0}), **given)


def test_a_loss_without_derivatives_is_refused():
    """Purpose: a loss that returns a number only is refused with the rule."""
    with pytest.raises(ls.ModelError, match="loss: must return a value and its derivatives by name"):
        ls.minimize(lambda x: 1.0, start={"a": 1.0})
