"""An implicit step is the same to the last bit, whether its stages run in one kernel or are launched one by one."""

from types import SimpleNamespace

import numpy as np
import pytest
from closed_form.test_mechanisms import Case, FourBar
from dynamics.small_robots import mixed

import lissom as ls
from lissom.stepping.driver import Motions
from lissom.stepping.newton_stages import AVOID_REUSE
from lissom.stepping.python_stages import ImplicitSteps
from lissom.stepping.step_rows import COUNTS, EVALUATIONS, NEW_FIRST

SCHEMES = [ls.generalized_alpha(), ls.newmark(), ls.implicit_euler(), ls.bathe()]


def both_ways(monkeypatch, run):
    """A motion by the kernel of many steps, and by launches."""
    fused = run()
    monkeypatch.setattr(Motions, "can_run", staticmethod(lambda *_: False))
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


def test_kept_matrices_are_tried_the_less_the_more_often_in_vain():
    """Under feedback on bodies of Python's the stages that begin with a new matrix double; once a reused one served all
    is as before, and without feedback or such bodies nothing is changed. Under a law that computes a mass matrix at
    each evaluation, a reused matrix has failed if it took more than three of them."""
    asks, law = SimpleNamespace(calls_python=True), SimpleNamespace(along_step=None)
    feedback, scheme = SimpleNamespace(is_feedback=True, law=law), SimpleNamespace(stages=(None,))
    steps = SimpleNamespace(new_first=1, in_vain=0, has_matrix=True, f=feedback, scheme=scheme, model=asks)

    def avoided(new_first, evaluations=2):
        counts = np.zeros(COUNTS, dtype=int)
        counts[[NEW_FIRST, EVALUATIONS]] = new_first, evaluations
        return ImplicitSteps._avoids_reuse(steps, counts.tolist())

    known = [avoided(AVOID_REUSE) for _ in range(6)]
    assert known == [AVOID_REUSE * 2 ** min(k, 4) for k in range(6)]
    assert avoided(0) == 0 and avoided(AVOID_REUSE) == AVOID_REUSE
    steps.f.is_feedback = False
    assert [avoided(AVOID_REUSE) for _ in range(3)] == [AVOID_REUSE] * 3
    steps.f.is_feedback, steps.model.calls_python = True, False
    assert [avoided(AVOID_REUSE) for _ in range(3)] == [AVOID_REUSE] * 3
    law.along_step, steps.in_vain = print, 0
    assert avoided(0, 3) == 0 and [avoided(0, 4) for _ in range(3)] == [AVOID_REUSE, 2 * AVOID_REUSE, 4 * AVOID_REUSE]
    steps.new_first = 5
    assert avoided(4, 4) == 4
