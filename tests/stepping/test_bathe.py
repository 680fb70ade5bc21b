"""Bathe's scheme of two stages where a stage fails, among contacts that hold, in batches, and with steps of its own.

Other files test the properties that all schemes share; this one tests those that a second stage could spoil.
"""

import numpy as np
import pytest
from closed_form.test_mechanisms import Case, FourBar
from closed_form.test_sticking import block, on_floor
from simulation.test_batches import ball, compare
from simulation.test_loops import at_rest, driven
from stepping.test_cut_steps import hooked_rod

import lissom as ls
from lissom.stepping.driver import Motions
from lissom.stepping.python_stages import ImplicitSteps

SECOND = 1
EARLY = ls.bathe(0.2)  # its second stage goes far beyond its first


@pytest.fixture
def failures(monkeypatch):
    """A list that fills with (time, stage) where launches of single stages fail."""
    found, iterated = [], ImplicitSteps._iterated

    def watched(self, w, s, h, row):
        new = iterated(self, w, s, h, row)
        if new is None:
            found.append((s.t, int(w.host["pause"][0, 2])))
        return new

    monkeypatch.setattr(ImplicitSteps, "_iterated", watched)
    return found


def launched(monkeypatch, run):
    """A run whose stages are launched one by one."""
    with monkeypatch.context() as patch:
        patch.setattr(Motions, "can_run", staticmethod(lambda *_: False))
        return run()


def test_a_second_stage_that_fails_is_taken_back_whole(failures, monkeypatch):
    """Steps whose second stage finds no end are cut; nothing of their first stage is left, in the kernel as outside."""
    model, q0 = hooked_rod()
    inside = ls.simulate(model, 0.06, q0, method=EARLY, dt=0.01)
    outside = launched(monkeypatch, lambda: ls.simulate(model, 0.06, q0, method=EARLY, dt=0.01))
    assert failures and {stage for _, stage in failures} == {SECOND}
    assert inside.statistics.steps == outside.statistics.steps > 6
    for name in ("t", "q", "v", "a"):
        assert np.array_equal(getattr(inside, name), getattr(outside, name)), name


def test_a_failing_robot_leaves_the_others_as_they_are():
    """In a batch those whose second stage fails are cut, and each motion is the one it is alone."""
    model, q0 = hooked_rod()
    q = np.array([0.05, 1.0, 0.2, 0.9, 0.0])[:, None] * q0
    options = {"method": EARLY, "dt": 0.01, "t_eval": [0.03, 0.06]}
    compare(model, q, np.zeros((5, model.nv)), None, **options)
    steps = [ls.simulate(model, 0.06, x, **options).statistics.steps for x in q]
    assert min(steps) == 6 < max(steps)


def test_a_robot_that_no_cut_helps_is_named():
    """The error says which it is and when, and carries the motion that it has made, alone or among others."""
    robot = ls.Robot("pulled")
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=1), ls.Material(young=1e6, density=1000))
    robot.add_link("rod", rod)
    robot.add_tendon("tendon", "rod", (0.0, 0.005))
    model, late = robot.build(), np.array([0.0, 0.055, 0.056, 0.2])
    u = np.zeros((3, 4, 1))
    u[1, 2:] = 1e10  # behind the first stage of the sixth step
    options = {"method": "bathe", "dt": 0.01, "t_eval": np.linspace(0.0, 0.1, 11)}
    with pytest.raises(ls.ConvergenceError, match=r"at t=0\.05.* \(instance 1 of 3\)$") as among:
        ls.simulate(model, 0.1, u=ls.Samples(late, u), **options)
    with pytest.raises(ls.ConvergenceError, match=r"at t=0\.05") as alone:
        ls.simulate(model, 0.1, u=ls.Samples(late, u[1]), **options)
    one, other = among.value.partial, alone.value.partial
    assert len(one.t) == len(other.t) == 6
    assert np.array_equal(one.q, other.q)


def test_a_block_that_friction_holds_stays():
    """Below the friction angle a block moves by less than 1e-9 m in 10 s from its equilibrium."""
    model = block(np.radians(20))
    found = ls.solve_statics(model, q0=on_floor(model))
    motion = ls.simulate(model.anchored(found.anchors), 10.0, found.q, method="bathe", dt=0.01)
    assert np.abs(motion.q - found.q).max() < 1e-9


def test_anchors_move_at_the_ends_of_steps(failures, monkeypatch):
    """Balls that fall and roll, with steps so long that some are cut: anchors follow whole steps alone. Batches and
    single motions agree to the last bit, launches of single stages to the tolerance of plastic steps."""
    model = ball(1e4)
    q, v = np.tile(model.neutral(), (4, 1)), np.random.default_rng(3).normal(size=(4, 6)) * [1, 1, 1, 0.3, 0.3, 0.1]
    q[:, 6] += np.linspace(-0.012, 0.02, 4)
    options = {"method": "bathe", "dt": 0.04, "t_eval": np.linspace(0.0, 0.4, 6)}
    many = compare(model, q, v, None, **options)
    assert not np.isnan(many.anchors).all()
    ones = launched(monkeypatch, lambda: [ls.simulate(model, 0.4, *x, **options) for x in zip(q, v)])
    for motion, one in zip(many.q, ones):
        np.testing.assert_allclose(one.q, motion, rtol=0.0, atol=1e-6)
    assert failures and many.statistics.steps > 4 * 10


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")  # a planar loop in space
def test_forces_of_loops_without_projection():
    """Where velocities are not kept on the loops, q and v are of second order and forces of the first: the backward
    difference divides velocities by h whose errors of h² differ. With projection all are of second order."""
    case, times = Case(FourBar()), np.linspace(0.0, 0.5, 11)
    exact = case.reference(times)
    steps, orders = [0.05 / 4**n for n in range(3, 6)], {}
    for project in (True, False):
        runs = [case.simulate(times, dt=dt, method="bathe", project_velocity=project, rtol=1e-12, atol=1e-14)
                for dt in steps]  # fmt: skip
        errors = np.log([case.errors(exact, run) for run in runs])
        orders[project] = np.polyfit(np.log(steps), errors, 1)[0]
        assert max(np.abs(ls.loop_residual(case.model, run.q)).max() for run in runs) < 1e-11
    np.testing.assert_allclose(orders[True], [2.0, 2.0, 2.0], atol=0.03)
    np.testing.assert_allclose(orders[False], [2.0, 2.0, 1.0], atol=0.05)


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_steps_by_the_estimate_of_the_error():
    """Without dt the error of a robot with a loop, a prescribed motion and a tendon falls with the tolerance as the
    order says, h³ being the order of the error of one step."""
    model = driven().build()
    start, times, errors = at_rest(model, [1.0]).q, [0.25, 0.5], []
    exact = ls.simulate(model, 0.5, start, u=[3.0], method="radau", t_eval=times, rtol=1e-9, atol=1e-11)
    tolerances = [1e-4, 1e-5, 1e-6, 1e-7]
    for rtol in tolerances:
        options = {"method": "bathe", "rtol": rtol, "atol": 1e-2 * rtol, "t_eval": times}
        run = ls.simulate(model, 0.5, start, u=[3.0], **options)
        errors.append(np.abs(ls.difference(model, exact.q, run.q) / model.dofs.scale).max())
        assert errors[-1] < 50.0 * rtol
    slope = np.polyfit(np.log(tolerances), np.log(errors), 1)[0]
    assert 0.5 < slope < 0.9  # ⅔: an error of h³ a step leaves h² at the end
