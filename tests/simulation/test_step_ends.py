"""Where the iteration of a fixed step ends: no sooner than the order allows, and at little more than it cost before."""

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

import lissom as ls
from lissom.stepping.driver import Motions

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def cdm():
    """The cable-driven manipulator, with the few Gauss points of its paper."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.AccuracyWarning)
        return ls.load_robot(EXAMPLES / "robots" / "cdm.yaml").build()


@pytest.fixture(scope="module")
def tensions():
    """Tensions of the manipulator's tendons over 10 s, a function of t."""
    return runpy.run_path(str(EXAMPLES / "cdm.py"))["tensions"]


@pytest.mark.parametrize(("method", "dt", "before"), [("generalized_alpha", 0.01, 3.776), ("newmark", 0.01, 4.276),
                                                      ("generalized_alpha", 0.002, 3.043),
                                                      ("newmark", 0.002, 3.086)])  # fmt: skip
def test_iterations_on_the_manipulator(cdm, tensions, method, dt, before):
    """At most 1.3 times the evaluations of a step of old, whose iteration ended at a hundredth of the tolerance."""
    motion = ls.simulate(cdm, 10.0, u=tensions, method=method, dt=dt)
    cost = motion.statistics
    assert cost.steps == round(10.0 / dt)
    assert cost.evaluations <= 1.3 * before * cost.steps
    assert cost.jacobians < 0.2 * cost.steps


@pytest.mark.parametrize("dt", [1e-2, 1e-3, 1e-4])
def test_rounding_is_not_iterated_on(cdm, dt):
    """Held still by its tendons, where all changes are rounding, a step takes hardly more than one evaluation."""
    u = np.array([5.0, 0.0, 0.0, 0.0, 3.0])
    motion = ls.simulate(cdm, 500 * dt, ls.solve_statics(cdm, u).q, u=u, method="generalized_alpha", dt=dt)
    cost = motion.statistics
    assert cost.steps == 500
    assert cost.evaluations < 1.5 * cost.steps and cost.jacobians < 0.1 * cost.steps


def flying_rod():
    """A free rod, bent and thrown: model, q and v."""
    material = ls.Material(young=1e6, poisson=0.5, density=1000)
    rod = ls.Rod(0.5, ls.SectionCircle((0.02, 0.01)), ls.BasisLegendre(torsion=1, bending_y=1, bending_z=1), material)
    robot = ls.Robot("flying rod", gravity=(0, 0, 0))
    robot.add_link("rod", rod, ls.JointFree())
    model = robot.build()
    q, v = model.neutral(), np.zeros(model.nv)
    q[-4], v[:6] = 1.0, (3.0, -1.0, 2.0, 0.1, 0.2, 0.3)
    return model, q, v


@pytest.mark.parametrize("dt", [1e-3, 1e-4])
def test_both_ways_of_stepping_end_alike(dt, monkeypatch):
    """Steps in one kernel and steps with Python between them count the same and agree at the default tolerances, as the
    size of the step changes on the way too."""
    model, q, v = flying_rod()
    times = [20.3 * dt, 40 * dt]
    options = {"method": "generalized_alpha", "dt": dt, "t_eval": times}
    fused = ls.simulate(model, times[-1], q, v, **options)
    monkeypatch.setattr(Motions, "can_run", staticmethod(lambda *_: False))
    apart = ls.simulate(model, times[-1], q, v, **options)
    for name in ("steps", "evaluations", "jacobians"):
        assert getattr(fused.statistics, name) == getattr(apart.statistics, name), name
    np.testing.assert_allclose(fused.q, apart.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fused.v, apart.v, rtol=0, atol=1e-10)


def test_steps_chosen_by_their_error_cost_what_they_did(cdm, tensions):
    """Without dt the tolerance alone ends iterations: two evaluations and one matrix a step, as before."""
    cost = ls.simulate(cdm, 0.3, u=tensions, method="generalized_alpha", rtol=1e-5, atol=1e-7).statistics
    assert cost.evaluations < 2.1 * cost.steps
