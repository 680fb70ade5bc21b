"""Accuracy of one implicit step: Newton's error hides below the tolerance, and the estimate of its error is that of
its embedded scheme."""

import itertools

import numpy as np
import pytest

import lissom as ls
from lissom.simulation.inputs import control_law
from lissom.stepping import schemes
from lissom.stepping.python_stages import ImplicitSteps
from lissom.stepping.state import StateDerivative


def stepper(model, scheme, rtol, atol):
    """Steps without a controller whose error of v does not count."""
    f = StateDerivative(model, control_law(model, None, None, None))
    return ImplicitSteps(model, f, scheme, rtol, (atol, 1e30), False)


def test_the_iteration_hides_below_the_tolerance():
    """With a kept matrix Newton's method leaves less than a tenth of the tolerance of each of forty long steps of a
    double pendulum."""
    robot, end, h, rtol = ls.Robot("double pendulum"), np.eye(4), 0.06, 1e-5
    end[0, 3] = 0.3
    for name, parent, place in (("a", None, None), ("b", "a", end)):
        bar, hinge = ls.RigidBody.box(0.3, 0.02, 0.02, density=2000), ls.JointRevolute((0, 1, 0), damping=0.01)
        robot.add_link(name, bar, hinge, parent=parent, placement=place)
    model, scheme = robot.build(), ls.generalized_alpha(0.8)
    loose, tight = stepper(model, scheme, rtol, 0.0), stepper(model, scheme, 1e-13, 0.0)
    path = [loose.start(np.array([0.3, 0.8]), np.array([6.0, -9.0]), np.zeros(0), None)]
    for _ in range(40):
        path.append(loose.step(path[-1], h))
    for here, found in itertools.pairwise(path):
        exact = tight.step(here, h)
        assert np.abs(found.q - exact.q).max() < 0.1 * rtol * np.abs(exact.q - here.q).max()


def test_the_estimate_of_the_error_is_that_of_the_embedded_scheme():
    """Of a damped oscillator under "esdirk" it is twice h Σ (b − b̂) v over the stages of Butcher's tableau."""
    robot, k, d, h, atol = ls.Robot("cart", gravity=(0, 0, 0)), 50.0, 1.5, 0.03, 1e-3
    mass = ls.RigidBody.box(0.1, 0.1, 0.2, density=1000.0)
    robot.add_link("cart", mass, ls.JointPrismatic((1, 0, 0), stiffness=k, damping=d))
    model = robot.build()
    own = stepper(model, ls.esdirk(), 0.0, atol)
    begun = np.array([0.05, -0.2])
    own.step(own.start(begun[:1], begun[1:], np.zeros(0), None), h)
    A = np.array([[0.0, 1.0], [-k / 2.0, -d / 2.0]])
    slopes = [A @ begun]
    for row in schemes._ESDIRK_A[1:]:
        known = begun + h * sum(a * slope for a, slope in zip(row, slopes))
        slopes.append(A @ np.linalg.solve(np.eye(2) - 0.25 * h * A, known))
    misses = schemes._ESDIRK_A[-1] - schemes._EMBEDDED
    wanted = 2.0 * h * abs(misses @ np.array(slopes)[:, 0]) / (atol * model.dofs.scale[0])
    assert own.error == pytest.approx(wanted, rel=1e-7)
