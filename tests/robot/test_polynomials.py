"""Functions of time as polynomials between knots: the same numbers as the functions themselves."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PchipInterpolator, PPoly

import lissom as ls
from lissom.robot.functions import constant, polynomial_of, stacked_polynomials

T, X = np.array([0.0, 0.3, 0.45, 1.0, 1.2]), np.random.default_rng(0).normal(size=(5, 3))
FORMS = {
    "samples": (ls.Samples(T, X), 3),
    "smooth samples": (ls.Samples(T, X, smooth=True), 3),
    "one sample": (ls.Samples(T[:1], X[:1]), 3),
    "linear table": (ls.Tabulated(T, X, "linear"), 3),
    "cubic table": (ls.Tabulated(T, X), 3),
    "table of numbers": (ls.Tabulated(T, X[:, 0]), 1),
    "spline": (CubicSpline(T, X), 3),
    "quintic": (PPoly(np.random.default_rng(1).normal(size=(6, 4, 3)), T), 3),
}
ASKED = np.array([-0.2, 0.0, 0.1, 0.3, 0.31, 0.7, 1.0, 1.19, 1.3])


def read(table, t):
    """What kernels read of a table at a time."""
    (begins, since), laws = table
    k = np.flatnonzero(begins <= t)[-1]
    return sum(row * (t - since[k]) ** (laws.shape[1] - 1 - power) for power, row in enumerate(laws[k]))


@pytest.mark.parametrize("name", FORMS)
def test_polynomials_are_the_functions(name):
    """Before, between and behind the knots, alone and stacked with others."""
    function, size = FORMS[name]
    found = polynomial_of(function, size)
    other = polynomial_of(FORMS["quintic"][0], 3)
    table = stacked_polynomials([constant(np.arange(2.0)), other, found])
    for t in ASKED.tolist():
        expected = np.reshape(function(t), size)
        np.testing.assert_allclose(found(t), expected, rtol=0, atol=1e-13)
        np.testing.assert_allclose(read(table, t), [0.0, 1.0, *other(t), *expected], rtol=0, atol=1e-11)


def test_what_is_no_polynomial():
    """Functions, expressions, tables of a high order, splines that end or come round, and those of another size."""
    functions = [np.sin, ls.Expression("sin(t)", "t"), ls.Tabulated(T, X[:, 0], "barycentric"),
                 PchipInterpolator(T, X[:, 0], extrapolate=False), CubicSpline(T, X[:, :2])]  # fmt: skip
    functions.append(CubicSpline(T[[0, 1, 4]], X[[0, 1, 0], 0], bc_type="periodic"))
    assert [polynomial_of(f, 1) for f in functions] == [None] * 6
    assert polynomial_of(2.5, 1)(7.0) == 2.5 and not polynomial_of(None, 3)(1.0).any()


@pytest.mark.parametrize("given", ["spline", "smooth samples", "linear table"])
def test_rates_of_motions(given):
    """Exact for SciPy's polynomials and smooth samples, whose table for kernels holds them; differences elsewhere."""
    robot = ls.Robot("driven")
    robot.add_link("body", ls.RigidBody(1.0), ls.JointUniversal((1, 0, 0), (0, 1, 0)))
    forms = {"spline": CubicSpline(T, X[:, :2]), "smooth samples": ls.Samples(T, X[:, :2], smooth=True),
             "linear table": ls.Tabulated(T, X[:, :2], "linear")}  # fmt: skip
    robot.add_joint_motion("drive", "body", position=forms[given])
    model, h = robot.build(), 1e-5
    (q, v, a), (before, *_), (after, *_) = (model.motions(t) for t in (0.37, 0.37 - h, 0.37 + h))
    np.testing.assert_allclose(v, (after - before) / (2 * h), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(a, (after - 2 * q + before) / h**2, rtol=1e-3, atol=1e-3)
    found = robot.motions["drive"].polynomials(2)
    assert (found[1] is None) == (given == "linear table")
    if found[1] is not None:
        np.testing.assert_allclose([p(0.37) for p in found], [q, v, a], rtol=0, atol=1e-13)
