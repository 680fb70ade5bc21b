"""Steps among contacts and in moving water, in one kernel and one by one."""

import numpy as np
import pytest
from touching_robots import LAW, RADIUS, hybrid

import lissom as ls

STICKS = {"stick_stiffness": 1e3, "stick_damping": 1e-2}


def everything(base, **stick):
    """Rods and a ball that touch each other in a current that grows, one with a wake."""
    law = LAW | stick
    robot = hybrid(base, foot=(0.0, -0.01, 0.0))
    robot.add_contact("rods", "a", others="b", radius=RADIUS, **law)
    robot.add_contact("box", ["a", "ball"], ls.ShapeBox(0.3, 0.3, 0.3), on="b", s=0.6, radius=RADIUS, **law)
    wake = ls.Hydrodynamics(tail=True, lift=0.3)
    robot.set_fluid(500.0, current=lambda t: (np.sin(t), 0.4, t), links={"a": wake})
    return robot.build()


@pytest.mark.filterwarnings("ignore:.*its start violates:lissom.PlausibilityWarning")  # they overlap from the start
@pytest.mark.parametrize("base, stick", [("free", {}), ("fixed", {}), ("fixed", STICKS)])
def test_fused_steps_are_the_separate_ones(base, stick):
    """One kernel for all steps and a controller that does nothing take the same steps, and Newton's matrices but for
    those that rounding errors decide."""
    model, rng = everything(base, **stick), np.random.default_rng(3)
    start = ls.integrate(model, model.neutral(), 0.1 * rng.normal(size=model.nv) * model.dofs.scale)
    speed = 0.05 * rng.normal(size=model.nv) * model.dofs.scale
    options = {"method": "generalized_alpha", "dt": 5e-4, "rtol": 1e-9, "atol": 1e-11}
    fused = ls.simulate(model, 0.1, start, speed, **options)
    apart = ls.simulate(model, 0.1, start, speed, controller=lambda t, q, v: np.zeros(0), **options)
    assert len(ls.contact_forces(model, fused.q[-1], fused.v[-1]).depth) > 0
    assert fused.statistics.steps == apart.statistics.steps
    assert fused.statistics.evaluations == pytest.approx(apart.statistics.evaluations, rel=0.01)
    assert fused.statistics.jacobians == pytest.approx(apart.statistics.jacobians, rel=0.01)
    np.testing.assert_allclose(fused.q, apart.q, atol=1e-11)
    np.testing.assert_allclose(fused.v, apart.v, atol=1e-9)
    np.testing.assert_allclose(fused.anchors, apart.anchors, atol=1e-9)
    assert np.isfinite(fused.anchors).any() == bool(stick)


@pytest.mark.parametrize("method", ["bdf", "radau", "dop853"])
def test_forces_in_python_on_a_body_that_tumbles(method):
    """Solvers of other libraries let the length of a quaternion drift between steps; a force in Python does not stop
    there, and its motion is that of the library's own steps."""
    robot = ls.Robot("thrown")
    robot.add_link("body", ls.RigidBody.box(0.1, 0.1, 0.1, density=1e3), ls.JointFree())
    robot.add_force("draught", "body", lambda t, g, eta: np.array([0.01, 0.02, 0.0, 0.1, 0.0, 0.0]))
    model = robot.build()
    v0 = [5.0, 1.0, 2.0, 0.0, 0.0, 0.0]
    ends = [ls.simulate(model, 1.0, v0=v0, method=name, rtol=1e-8, atol=1e-10).q[-1] for name in (method, "esdirk")]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-6)
    assert np.linalg.norm(ends[0][:4]) == pytest.approx(1.0, abs=1e-12)
