"""Loads, currents and prescribed motions that a kernel knows at all times, alone and in batches."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from simulation.driven_arms import describe_driven_arm, in_python, starts

import lissom as ls
from lissom.dynamics.loads import laws_of_time, load_rows
from lissom.simulation.batches import AdaptiveBatch
from lissom.stepping.adaptive import AdaptiveKernelSteps

T = np.linspace(0.0, 0.4, 9)
PUSH = ls.Samples(T, 0.3 * np.random.default_rng(0).normal(size=(9, 3)), smooth=True)
TURN = CubicSpline(T, 0.4 * np.sin(7.0 * T))
FLOW = ls.Tabulated(T, np.stack([np.sin(5.0 * T), 0.2 * T, 0.0 * T], axis=1))
OPTIONS = {"t_eval": np.array([0.03, 0.1, 0.1001, 0.3]), "rtol": 1e-5, "atol": 1e-8}


def arm(wrap):
    """The arm in water that flows, its joint with the rates of its law."""
    rates = {"velocity": wrap(TURN.derivative()), "acceleration": wrap(TURN.derivative(2))}
    return describe_driven_arm(wrap(PUSH), wrap(FLOW), position=wrap(TURN), **rates).build()


@pytest.fixture(scope="module")
def model():
    """The arm, whose laws are polynomials."""
    return arm(lambda law: law)


@pytest.mark.parametrize("t", [0.0, 0.05, 0.1234, 0.39])
def test_the_table_is_what_python_gives(model, t):
    """Wrenches, the current with its rate, the time, then positions, velocities and accelerations."""
    (begins, since), laws = laws_of_time(model)
    k = np.flatnonzero(begins <= t)[-1]
    found = sum(row * (t - since[k]) ** (laws.shape[1] - 1 - power) for power, row in enumerate(laws[k]))
    expected = np.append(load_rows(model, t).ravel(), model.motion_numbers(t))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)  # the rate of a current is differenced in Python
    assert found[12] == pytest.approx(t, abs=1e-15)


def test_polynomials_are_followed_in_the_kernel(model, monkeypatch):
    """The same motion as with functions in Python, for which steps are planned ahead; no step is planned here."""
    v0, plans, plan = starts(model)[0], [], AdaptiveKernelSteps._plan
    monkeypatch.setattr(AdaptiveKernelSteps, "_plan", lambda self, *args: plans.append(1) or plan(self, *args))
    found = ls.simulate(model, 0.3, v0=v0, **OPTIONS)
    assert not plans
    planned = arm(in_python)
    assert laws_of_time(planned) is None
    expected = ls.simulate(planned, 0.3, v0=v0, **OPTIONS)
    assert plans and abs(found.statistics.steps - expected.statistics.steps) < 3
    scale = np.abs(expected.q).max()
    np.testing.assert_allclose(found.q, expected.q, rtol=0, atol=1e-6 * scale)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.q[:, 0], TURN(OPTIONS["t_eval"]), rtol=0, atol=1e-14)


def test_a_batch_runs_together(model, monkeypatch):
    """Each motion is the same to the last bit as it is alone, at times of its own."""
    runs, run = [], AdaptiveBatch.run
    monkeypatch.setattr(AdaptiveBatch, "run", lambda self, advance: runs.append(run(self, advance)))
    v0 = starts(model)
    many = ls.simulate(model, 0.3, v0=v0, **OPTIONS)
    assert len(runs) == 1 and "after the other" not in many.statistics.remark
    for k in range(len(v0)):
        alone = ls.simulate(model, 0.3, v0=v0[k], **OPTIONS)
        for name in ("q", "v", "a", "multipliers"):
            np.testing.assert_array_equal(getattr(many, name)[k], getattr(alone, name), (k, name))


def test_functions_in_python_run_one_by_one():
    """The statistics say so, and why."""
    model = arm(in_python)
    v0 = starts(model, 2)
    many = ls.simulate(model, 0.05, v0=v0, t_eval=[0.05])
    assert "one motion after the other: the kernel cannot evaluate" in many.statistics.remark
    alone = ls.simulate(model, 0.05, v0=v0[1], t_eval=[0.05])
    np.testing.assert_array_equal(many.q[1], alone.q)
