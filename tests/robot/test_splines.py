"""B-splines as strain basis: the properties in their textbooks, and those that they share with other bases."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import comb

import lissom as ls

GRID = np.linspace(0.0, 1.0, 101)
ORDERS = [(0, 4), (1, 3), (2, 1), (3, 4), (2, (0.2, 0.5)), (3, (0.1, 0.15, 0.9)), (4, ()), (0, (0.3,))]
SILICONE = ls.Material(young=1e6, density=1e3)


def values(order, s):
    """The modes of one order at s."""
    return ls.BasisBSpline(shear_y=order).evaluate(s)[4]


def clamped(order):
    """The whole knot vector."""
    degree, spans = order
    inner = np.arange(1, spans) / spans if np.ndim(spans) == 0 else spans
    return np.concatenate([np.zeros(degree + 1), inner, np.ones(degree + 1)])


@pytest.mark.parametrize("order", ORDERS)
def test_modes_are_positive_local_and_sum_to_one(order):
    """Purpose: as many modes as degree and spans, each >= 0 on degree + 1 spans only, a partition of unity; the first
    and the last have the value 1 at the ends."""
    t = clamped(order)
    count = len(t) - order[0] - 1
    assert ls.BasisBSpline(shear_y=order).modes() == (0, 0, 0, 0, count, 0)
    for s in GRID:
        found = values(order, s)
        assert found.shape == (count,) and found.min() >= 0.0
        assert found.sum() == pytest.approx(1.0, abs=1e-15)
        outside = (s < t[:count]) | (s > t[order[0] + 1 :])
        assert not found[outside].any()
    assert values(order, 0.0)[0] == values(order, 1.0)[-1] == 1.0


@pytest.mark.parametrize("order", [order for order in ORDERS if order[0] > 0])
def test_a_straight_line_has_the_means_of_knots_as_coordinates(order):
    """Purpose: Marsden's identity, s = Σ (t₁ + … + t_k)/k Bᵢ(s): the knots stand where they are said to."""
    t, degree = clamped(order), order[0]
    means = [t[i + 1 : i + degree + 1].mean() for i in range(len(t) - degree - 1)]
    np.testing.assert_allclose([values(order, s) @ means for s in GRID], GRID, rtol=0, atol=1e-15)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_smoothness_at_the_knots(degree):
    """Purpose: at a knot the derivatives below the degree are continuous, that of the degree jumps; no break is
    missing or left over."""
    basis = ls.BasisBSpline(shear_y=(degree, (0.3, 0.55)), torsion=(0, 2))
    assert basis.breaks() == (0.3, 0.5, 0.55)
    inside = np.linspace(0.1, 0.9, degree + 1)
    ends = [0.0, 0.3, 0.55, 1.0]
    pieces = [[np.polyfit(x, y, degree) for y in np.array([values((degree, (0.3, 0.55)), s) for s in x]).T]
              for x in (a + (b - a) * inside for a, b in pairwise(ends))]  # fmt: skip
    for knot, before, after in zip(ends[1:], pieces, pieces[1:]):
        jumps = np.array([
            [np.polyval(np.polyder(q, k), knot) - np.polyval(np.polyder(p, k), knot) for k in range(degree + 1)]
            for p, q in zip(before, after)
        ])  # fmt: skip
        assert np.abs(jumps[:, :degree]).max() < 1e-9 and np.abs(jumps[:, degree]).max() > 0.5


def test_special_cases_are_the_other_bases():
    """Purpose: without knots they are Bernstein's polynomials; of degree 0 and 1 on equal spans the piecewise bases."""
    for s in GRID:
        bernstein = [comb(4, k) * s**k * (1 - s) ** (4 - k) for k in range(5)]
        np.testing.assert_allclose(values((4, 1), s), bernstein, rtol=0, atol=1e-15)
        for spans in (1, 2, 5):
            constant = ls.BasisPiecewiseConstant(bending_y=spans, shear_z=spans)
            same = ls.BasisBSpline(bending_y=(0, spans), shear_z=(0, spans))
            assert np.array_equal(same.evaluate(s), constant.evaluate(s)) and same.breaks() == constant.breaks()
            linear = ls.BasisPiecewiseLinear(bending_y=spans).evaluate(s)
            given = ls.BasisBSpline(bending_y=(1, np.arange(1, spans) / spans)).evaluate(s)
            np.testing.assert_allclose(given, linear, rtol=0, atol=2e-15)


def cantilever(basis):
    """A tapered rod clamped at its base, with a load at its tip."""
    robot = ls.Robot("cantilever")
    robot.add_link("rod", ls.Rod(0.4, ls.SectionCircle((0.01, 0.006)), basis, SILICONE))
    robot.add_point_load("load", "rod", force=(0.0, 0.05, -0.1))
    return robot.build()


def test_a_rod_of_one_span_is_that_of_polynomials():
    """Purpose: the same space of strains gives the same shape under load and the same frequencies as Legendre's."""
    spline = cantilever(ls.BasisBSpline(torsion=(2, 1), bending_y=(4, 1), bending_z=(3, ())))
    legendre = cantilever(ls.BasisLegendre(torsion=2, bending_y=4, bending_z=3))
    shapes = [ls.solve_statics(model).q for model in (spline, legendre)]
    poses = [ls.frame_pose(model, q, "rod", s=GRID[::10]) for model, q in zip((spline, legendre), shapes)]
    np.testing.assert_allclose(poses[0], poses[1], rtol=0, atol=1e-9)
    assert np.linalg.norm(poses[0][-1, :3, 3] - (0.4, 0.0, 0.0)) > 0.05
    found, expected = (ls.modes(model, q).frequencies for model, q in zip((spline, legendre), shapes))
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_knots_where_the_section_steps_find_the_exact_rod():
    """Purpose: a rod of two thicknesses under a moment at its tip has two curvatures, which degree 0 with a knot at the
    step holds exactly: integrals end at the knots."""
    thickness = ls.SectionCircle(lambda s: 0.01 if s < 0.3 else 0.006)
    robot = ls.Robot("stepped", gravity=(0, 0, 0))
    robot.add_link("rod", ls.Rod(0.4, thickness, ls.BasisBSpline(bending_y=(0, (0.3,))), SILICONE))
    robot.add_point_load("moment", "rod", moment=(0.0, 2e-3, 0.0), frame="body")
    q = ls.solve_statics(robot.build()).q
    exact = [2e-3 / (1e6 * np.pi * r**4 / 4) for r in (0.01, 0.006)]
    np.testing.assert_allclose(q, exact, rtol=1e-9)


WRONG = {
    "3": (3, r"must be \(degree, number of spans\) or \(degree, interior knots\) \(got 3\)"),
    "text": ("33", r"must be \(degree"),
    "three entries": ((3, 4, 5), r"must be \(degree"),
    "degree": ((-1, 4), r"bending_y degree: must be an integer >= 0 \(got -1\)"),
    "float degree": ((2.0, 4), "bending_y degree: must be an integer >= 0"),
    "high degree": ((21, 4), "bending_y degree: must be at most 20"),
    "spans": ((2, 0), r"bending_y spans: must be an integer >= 1 \(got 0\)"),
    "falling": ((2, (0.5, 0.2)), r"bending_y knots: must rise strictly inside \(0, 1\) \(got \(0\.5, 0\.2\)\)"),
    "repeated": ((2, (0.5, 0.5)), "bending_y knots: must rise strictly"),
    "at the end": ((2, (0.5, 1.0)), "bending_y knots: must rise strictly"),
    "ragged": ((2, [[0.1], [0.2, 0.3]]), "bending_y knots: must be a list of numbers"),
    "not finite": ((2, (0.1, np.nan)), "bending_y knots: must be a list of numbers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_orders_are_named(name):
    """Purpose: the strain, the rule and the value of an order that is none."""
    order, rule = WRONG[name]
    with pytest.raises(ls.ModelError, match=f"link 'rod' > body > basis: .*{rule}"):
        cantilever(ls.BasisBSpline(bending_y=order))
    with pytest.raises(ls.ModelError, match="at least one strain must have an order"):
        cantilever(ls.BasisBSpline())
