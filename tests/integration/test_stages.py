"""An implicit step is the same to the last bit, whether its stages run in one kernel or are launched one by one."""

import numpy as np
import pytest
from closed_form.test_mechanisms import Case, FourBar
from dynamics.small_robots import mixed

import lissom as ls
from lissom.integration.fused_runs import FusedSteps

SCHEMES = [ls.generalized_alpha(), ls.newmark(), ls.implicit_euler(), ls.bathe()]


def both_ways(monkeypatch, run):
    """A motion by the kernel of many steps, and by launches."""
    fused = run()
    monkeypatch.setattr(FusedSteps, "can_run", staticmethod(lambda *_: False))
    return fused, run()


def assert_same(one, other):
    """The same motion by the same work."""
    for name in ("t", "q", "v", "a", "multipliers"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    counts = [(x.statistics.steps, x.statistics.evaluations, x.statistics.jacobians) for x in (one, other)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
def test_trees(scheme, monkeypatch):
    """A robot of rods and rigid joints, spherical and free ones among them."""
    model = mixed()
    start = ls.integrate(model, model.neutral(), 0.05 * np.cos(np.arange(model.nv)))
    fused, launched = both_ways(monkeypatch, lambda: ls.simulate(model, 0.05, start, method=scheme, dt=5e-3))
    assert_same(fused, launched)


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")  # a planar loop in space
@pytest.mark.parametrize("project", [True, False])
@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
def test_loops(scheme, project, monkeypatch):
    """A four-bar linkage, with velocities projected and without."""
    case = Case(FourBar())
    options = {"dt": 5e-3, "method": scheme, "project_velocity": project}
    assert_same(*both_ways(monkeypatch, lambda: case.simulate(np.linspace(0.0, 0.2, 5), **options)))
