"""Where the iteration of a fixed step ends: no sooner than the order allows, and at little more than it cost before."""

import runpy
import warnings
from dataclasses import replace
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
    """At most 1.1 times the evaluations of a step of old, whose iteration ended at a hundredth of the tolerance; new
    matrices, which cost as much as some four of them, in less than a third of the steps."""
    motion = ls.simulate(cdm, 10.0, u=tensions, method=method, dt=dt)
    cost = motion.statistics
    assert cost.steps == round(10.0 / dt)
    assert cost.evaluations <= 1.1 * before * cost.steps
    assert cost.jacobians < 0.3 * cost.steps


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


GRIPPER = """<mujoco><worldbody>
  <body pos="0 0 0.3"><freejoint/><geom type="box" size="0.03 0.025 0.04" density="1000"/></body>
  <body pos="-0.041 0 0.3"><joint type="slide" axis="1 0 0" stiffness="200" springref="0.1"/>
    <geom type="box" size="0.01 0.02 0.03" density="1000"/></body>
  <body pos="0.041 0 0.3"><joint type="slide" axis="-1 0 0" stiffness="200" springref="0.1"/>
    <geom type="box" size="0.01 0.02 0.03" density="1000"/></body>
</worldbody></mujoco>"""


def test_matrix_of_an_impact_is_not_kept_at_rest(tmp_path):
    """Fingers close on a box and hold it. The matrix of the impact contracts well enough to be kept, but takes a third
    change in each step: a new one pays within a few steps."""
    path = tmp_path / "gripper.xml"
    path.write_text(GRIPPER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LeftOutWarning)
        robot = ls.load_mjcf(path)
    soft = ls.Material(young=2e6, poisson=0.45, density=1000.0, friction=0.5, restitution=0.3)
    for name, link in robot.links.items():
        if isinstance(link.body, ls.RigidBody):
            robot.links[name] = replace(link, body=replace(link.body, material=soft))
    robot.add_mutual_contacts()
    model = robot.build()
    moving = ls.simulate(model, 2.0, ls.start_configuration(model), dt=2e-3)
    cost = moving.statistics
    assert cost.evaluations < 2.2 * cost.steps and cost.jacobians < 0.1 * cost.steps
    held = model.anchored(moving.anchors)
    rest = ls.simulate(held, 1.0, moving.q[-1], moving.v[-1], dt=2e-3).statistics
    assert rest.evaluations <= 1.02 * rest.steps and rest.jacobians <= 2
