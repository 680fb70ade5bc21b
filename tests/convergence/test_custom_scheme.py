"""A user's implicit scheme from its tableau: Alexander's scheme with three stages.

    γ³ − 3γ² + 3γ/2 − 1/6 = 0,   c = (γ, (1 + γ)/2, 1)

It is of third order. Two of its stages carry an embedded scheme of second order for the size of the steps.
Source: R. Alexander, SIAM J. Numer. Anal. 14, 1977.
"""

from dataclasses import replace

import numpy as np
import pytest

import lissom as ls

GAMMA = float(np.roots([1.0, -3.0, 1.5, -1.0 / 6.0]).real[1])
ENDS = np.array([GAMMA, 0.5 * (1.0 + GAMMA), 1.0])
A = np.zeros((3, 3))
A[1, 0] = 0.5 * (1.0 - GAMMA)
A[2, :2] = -1.5 * GAMMA**2 + 4.0 * GAMMA - 0.25, 1.5 * GAMMA**2 - 5.0 * GAMMA + 1.25
np.fill_diagonal(A, GAMMA)
EMBEDDED = np.append(np.linalg.solve(np.vander(ENDS[:2], increasing=True).T, [1.0, 0.5]), 0.0)
INERTIA = np.array([1.0, 2.0, 2.0])
SPIN = np.array([3.0, 1.0, 0.5, 0.3, 0.0, 0.1])


def sdirk3():
    """Alexander's scheme with three stages."""
    return ls.Scheme.from_tableau("sdirk3", A, EMBEDDED, order=3)


def test_weights():
    """Order 3; the embedded weights have order 2 alone; γ makes a step damp infinitely fast vibrations."""
    b = A[2]
    np.testing.assert_allclose(A.sum(axis=1), ENDS, rtol=0, atol=1e-14)
    found = b.sum() - 1.0, b @ ENDS - 1 / 2, b @ ENDS**2 - 1 / 3, b @ A @ ENDS - 1 / 6
    np.testing.assert_allclose(found, 0.0, atol=1e-13)
    assert abs(EMBEDDED.sum() - 1.0) < 1e-14 and abs(EMBEDDED @ ENDS - 0.5) < 1e-14
    assert abs(EMBEDDED @ ENDS**2 - 1 / 3) > 1e-3
    assert 0.43 < GAMMA < 0.44


def free_top():
    """A top, symmetric about x, in empty space."""
    robot = ls.Robot("top", gravity=(0, 0, 0))
    robot.add_link("top", ls.RigidBody(2.0, com=(0, 0, 0), inertia=tuple(INERTIA)), ls.JointFree())
    return robot.build()


def swinging_rod():
    """A soft rod on a hinge, damped enough for all its waves to be resolved by the steps below."""
    robot = ls.Robot("swinging rod")
    material = ls.Material(young=1e5, poisson=0.5, density=1000, viscosity=1e3)
    basis = ls.BasisLegendre(bending_y=1, bending_z=1)
    robot.add_link("rod", ls.Rod(0.3, ls.SectionCircle(0.01), basis, material), ls.JointRevolute(axis=(0, 1, 0)))
    return robot.build()


@pytest.mark.parametrize("case", ["rod", "top"])
def test_order_three(case):
    """The errors of q and v fall with the cube of the step, where coordinates add and where poses are stored."""
    model, v0, n = (swinging_rod(), None, 400) if case == "rod" else (free_top(), SPIN, 20)
    options = {"v0": v0, "t_eval": [0.5]}
    exact = ls.simulate(model, 0.5, method="radau", rtol=1e-12, atol=1e-13, **options)
    errors = []
    for steps in (n, 2 * n, 4 * n):
        run = ls.simulate(model, 0.5, method=sdirk3(), dt=0.5 / steps, rtol=1e-12, atol=1e-13, **options)
        off = ls.difference(model, exact.q[-1], run.q[-1]), exact.v[-1] - run.v[-1]
        errors.append([float(np.abs(x).max()) for x in off])
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert (np.abs(orders - 3.0) < 0.2).all(), (errors, orders)


def test_adaptive_steps():
    """The number of steps grows with the cube root of the tolerance, and the error falls with the tolerance."""
    model = swinging_rod()
    exact = ls.simulate(model, 0.5, method="radau", rtol=1e-12, atol=1e-13, t_eval=[0.5])
    errors, counts = [], []
    for rtol in (1e-4, 1e-7):
        run = ls.simulate(model, 0.5, method=sdirk3(), rtol=rtol, atol=0.01 * rtol, t_eval=[0.5])
        errors.append(float(np.abs(run.q[-1] - exact.q[-1]).max()))
        counts.append(run.statistics.steps)
    assert errors[1] < 0.01 * errors[0], errors
    assert 5.0 < counts[1] / counts[0] < 15.0, counts


EULER = ls.Stage(1.0, (1.0, 1.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (1.0, 0.0))
WRONG = {
    "no stage": ({"stages": ()}, "stages: must be a tuple of one to 5 stages"),
    "not a stage": ({"stages": (1.0,)}, r"stages\[0\]: must be a Stage"),
    "explicit": ({"stages": (replace(EULER, position=(0.0, 1.0, 0.0, 0.0)),)}, r"position\[0\]: must be > 0"),
    "too few weights": ({"stages": (replace(EULER, velocity=(1.0, 1.0)),)}, "velocity: must be a tuple of 4 numbers"),
    "not finite": ({"stages": (replace(EULER, ahead=(np.nan, 0.0, 0.0, 0.0)),)}, r"ahead\[0\]"),
    "ends early": ({"stages": (replace(EULER, end=0.5),)}, "end: must be 1, the end of the step"),
    "ends late": ({"stages": (replace(EULER, end=1.5),)}, "end: must be <= 1"),
    "error": ({"error": (0.0,)}, "error: must be a tuple of 4 numbers"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_schemes(case):
    """Are refused by the name of the number that is wrong."""
    given, message = WRONG[case]
    with pytest.raises(ls.ModelError, match=message):
        ls.Scheme(**({"name": "mine", "stages": (EULER,), "error": (0.5, 0.0, 0.0, 0.0)} | given))


def test_a_scheme_without_estimated_errors_needs_fixed_steps():
    """Adaptive steps would be as long as Newton's method allows, whatever their error."""
    robot = ls.Robot("pendulum")
    robot.add_link("rod", ls.RigidBody(1.0, (0.3, 0.0, 0.0), (0.01, 0.02, 0.02)), ls.JointRevolute((0.0, 1.0, 0.0)))
    model, bare = robot.build(), ls.Scheme("bare", (EULER,), error=(0.0,) * 4, order=1)
    for adaptive in (
        lambda: ls.simulate(model, 0.1, method=bare),
        lambda: ls.simulate(model, 0.1, [[0.1], [0.2]], method=bare, t_eval=[0.1]),
        lambda: ls.Stepper(model, 0.1, tolerance=1e-6, scheme=bare),
    ):
        with pytest.raises(ls.ModelError, match=r"Scheme\('bare'\) > error: must have a weight that is not zero"):
            adaptive()
    fixed, same = (ls.simulate(model, 0.1, [0.2], method=x, dt=0.01) for x in (bare, "implicit_euler"))
    assert np.array_equal(fixed.t, same.t) and np.abs(fixed.q - same.q).max() < 1e-12
    stepper = ls.Stepper(model, 0.01, scheme=bare, q0=[0.2])
    stepper.step()
    assert stepper.state.q == pytest.approx(same.q[1], abs=1e-12)


@pytest.mark.parametrize(
    ("A", "embedded", "message"),
    [
        ([[0.0, 0.0], [1.0, 0.0]], [1.0, 0.0], r"position\[0\]: must be > 0"),
        ([[0.5, 0.5], [0.5, 0.5]], [1.0, 0.0], "A: must be lower triangular"),
        ([[1.0]], [1.0, 0.0], "embedded: must be as many numbers as A has rows"),
        ([[0.5]], [1.0], "end: must be 1, the end of the step"),
    ],
)
def test_wrong_tableaus(A, embedded, message):
    """Explicit ones too, such as that of Heun."""
    with pytest.raises(ls.ModelError, match=message):
        ls.Scheme.from_tableau("mine", A, embedded, order=2)
