"""Bathe's composite scheme: its amplification matrix, its damping, and its order on a closed mechanism."""

import numpy as np
import pytest
from closed_form.test_mechanisms import Case, FourBar

import lissom as ls

MASS, STIFFNESS = 2.0, 800.0


def oscillator() -> ls.Model:
    """A mass on a spring along x, without gravity."""
    robot = ls.Robot("oscillator", gravity=(0, 0, 0))
    body = ls.RigidBody(MASS, com=(0, 0, 0), inertia=(1.0, 1.0, 1.0))
    robot.add_link("mass", body, ls.JointPrismatic((1, 0, 0), stiffness=STIFFNESS))
    return robot.build()


def amplification(z: float, gamma: float) -> np.ndarray:
    """The amplification matrix of one step, on (q, h v) of q̈ = −(z/h)² q: the two rules as linear systems of
    first-order equations."""
    F = np.array([[0.0, 1.0], [-z * z, 0.0]])
    first = np.linalg.solve(np.eye(2) - 0.5 * gamma * F, np.eye(2) + 0.5 * gamma * F)
    left = (2.0 - gamma) / (1.0 - gamma) * np.eye(2) - F
    return np.linalg.solve(left, first / (gamma * (1.0 - gamma)) - (1.0 - gamma) / gamma * np.eye(2))


@pytest.mark.parametrize("gamma", [2.0 - np.sqrt(2.0), 0.5])
@pytest.mark.parametrize("h", [0.005, 0.1, 50.0])
def test_amplification_of_an_oscillator(h, gamma):
    """Steps that resolve the vibration, and ones that do not, are powers of the matrix, whose radius falls to 0."""
    model, start, n = oscillator(), np.array([0.3, -0.7]), 3
    run = ls.simulate(model, n * h, [start[0]], [start[1]], method=ls.bathe(gamma), dt=h, rtol=1e-13, atol=1e-15)
    A = amplification(np.sqrt(STIFFNESS / MASS) * h, gamma)
    x = np.array([start[0], h * start[1]])
    for k in range(n):
        x = A @ x
        found = np.array([run.q[k + 1, 0], h * run.v[k + 1, 0]])
        assert np.abs(found - x).max() < 1e-10 * max(1.0, h), (k, found, x)
    if h > 1.0:
        assert np.abs(np.linalg.eigvals(A)).max() < 0.01


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")  # a planar loop in space
def test_order_two_on_a_four_bar():
    """Errors in q, v and the loop's force fall with the square of the step, and the loop stays closed."""
    case, times = Case(FourBar()), np.linspace(0.0, 0.5, 11)
    exact = case.reference(times)
    steps, errors = [0.05 / 4**n for n in range(2, 5)], []
    for dt in steps:
        motion = case.simulate(times, dt=dt, method="bathe")
        errors.append(case.errors(exact, motion))
        assert np.abs(ls.loop_residual(case.model, motion.q)).max() < 1e-11
    found = np.array(errors)
    for column in found.T:
        assert abs(np.polyfit(np.log(steps), np.log(column), 1)[0] - 2.0) < 0.1, found


@pytest.mark.parametrize("gamma", [0.0, 1.0, -0.5, 1.5])
def test_gamma_is_refused(gamma):
    """The first stage ends within the step."""
    with pytest.raises(ls.ModelError, match="bathe > gamma"):
        ls.bathe(gamma)
