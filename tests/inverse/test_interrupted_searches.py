"""Ctrl-C in the middle of inverse problems: the best that was found is kept."""

import numpy as np
import pytest
from dynamics.small_robots import rod
from interrupting import press_at

import lissom as ls

TENSIONS = np.linspace(0.5, 3.0, 4)[:, None]


def interrupted(function, *args, **options):
    """Partial results of the KeyboardInterrupt in which a function ends."""
    with pytest.raises(KeyboardInterrupt) as stop:
        function(*args, **options)
    return stop.value.partial


def lowered(depth):
    """A pose that far down."""
    g = np.eye(4)
    g[2, 3] = -depth
    return g


@pytest.fixture(scope="module")
def shapes():
    """Positions of the tip of the rod under tensions, made by a stiffer one."""
    truth = rod().with_({"rod.material.young": 1.3e6})
    return {"rod": ls.frame_pose(truth, ls.solve_statics(truth, TENSIONS).q, "rod")[:, :3, 3]}


def test_a_fit_keeps_its_best_values(monkeypatch, shapes):
    """Purpose: after its third trial a fit has values better than its start, with the residuals that these leave."""
    model, task = rod(), (["rod.material.young"], TENSIONS, shapes)
    press_at(monkeypatch, "inverse.fit", 3)
    found = interrupted(ls.fit, model, *task)
    young = float(found.values["rod.material.young"])
    assert abs(young - 1.3e6) < 0.1e6
    own = model.with_({"rod.material.young": young})
    there = ls.frame_pose(own, ls.solve_statics(own, TENSIONS).q, "rod")[:, :3, 3]
    np.testing.assert_allclose(found.residuals[:, 0], there - shapes["rod"], atol=1e-10)
    assert found.iterations == 2 and found.low["rod.material.young"] < young < found.high["rod.material.young"]


def test_a_fit_without_values_leaves_nothing(monkeypatch, shapes):
    """Purpose: Ctrl-C in the equilibria at the start does not pass these for a fit."""
    press_at(monkeypatch, "statics.equilibrium", 2)
    assert interrupted(ls.fit, rod(), ["rod.material.young"], TENSIONS, shapes) is None


def assert_begins(part, whole, names, count):
    """Arrays of results are the first rows of those of others, to the last bit."""
    for name in names:
        own, other = getattr(part, name), getattr(whole, name)
        np.testing.assert_array_equal(own, other[:count], err_msg=name)


def test_prescribed_equilibria_of_a_batch_are_kept(monkeypatch):
    """Purpose: those that were found before Ctrl-C are those that are found without, slack tendons as well."""
    model, task = rod(), {"y": {"tendon": np.array([-2e-2, 1e-3, 2e-3, 3e-3])}, "slack": True}
    whole = ls.prescribed_equilibrium(model, **task)
    press_at(monkeypatch, "inverse.prescribed", 3)
    found = interrupted(ls.prescribed_equilibrium, model, **task)
    names = ("q", "u", "y", "slack", "multipliers", "residual", "iterations", "is_stable")
    assert_begins(found, whole, names, 3)
    assert found.slack.tolist() == [[True], [False], [False]]


def test_prescribed_equilibria_leave_no_others(monkeypatch):
    """Purpose: Ctrl-C in the equilibria that these go on from, where the first is unstable, does not pass them for
    prescribed ones."""
    robot, bar = ls.Robot("pendulum"), ls.RigidBody(0.1, (0.0, 0.0, -0.15), np.diag([1e-3, 1e-3, 1e-5]))
    robot.add_link("upper", bar, ls.JointRevolute((0, 1, 0)))
    robot.add_link("lower", bar, ls.JointRevolute((0, 1, 0)), parent="upper", placement=lowered(0.3))
    robot.add_joint_actuator("motor", "lower")
    press_at(monkeypatch, "statics.equilibrium", 1)
    assert interrupted(ls.prescribed_equilibrium, robot.build(), {"motor": [0.0, 0.1]}, q0=[np.pi, 0.0]) is None


@pytest.mark.parametrize("by", ["coordinates", "statics"])
def test_inverse_kinematics_keeps_the_best(monkeypatch, shapes, by):
    """Purpose: after two steps the tips are nearer than after one, and as far as the result says."""
    model, away = rod(), []
    for press in (2, 3):
        press_at(monkeypatch, "inverse.kinematics", press)
        found = interrupted(ls.inverse_kinematics, model, shapes, by=by, starts=3)
        left = shapes["rod"] - ls.frame_pose(model, found.q, "rod")[:, :3, 3]
        np.testing.assert_allclose(found.residual, left, atol=1e-12)
        away.append(np.linalg.norm(left, axis=1))
        assert (found.iterations == press - 1).all() and not found.converged.any()
    assert (away[1] < away[0]).all()
    if by == "statics":
        np.testing.assert_allclose(ls.solve_statics(model, found.u).q, found.q, atol=1e-9)


def test_inverse_kinematics_leaves_no_equilibria(monkeypatch, shapes):
    """Purpose: Ctrl-C in the equilibria that searches begin from does not present these as the result."""
    press_at(monkeypatch, "statics.equilibrium", 2)
    assert interrupted(ls.inverse_kinematics, rod(), shapes, by="statics", u0=TENSIONS) is None
