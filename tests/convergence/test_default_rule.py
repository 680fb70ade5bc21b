"""The default Gauss rule resolves mass and stiffness: every basis and order gives the frequencies of 60 points."""

import families
import numpy as np
import pytest

import lissom as ls
from lissom.robot.bases import Basis
from lissom.robot.fields import members

SILICONE = ls.Material(young=1e6, density=1e3)
THIN = ls.SectionCircle(0.005)
ALL = ("torsion", "bending_y", "bending_z", "elongation", "shear_y", "shear_z")
MODAL = [cls.__name__.removeprefix("Basis") for cls in members(Basis) if cls not in families.UNGRADED]


def graded(kind, order, strains):
    """A basis of a family with one order in some strains, and the number of its smooth pieces."""
    basis = families.graded(getattr(ls, f"Basis{kind}"), order, strains)
    return basis, len(basis.breaks()) + 1


def custom(order):
    """Cosines of the Chebyshev angle for both bendings, as a user would write them."""

    def Phi(s):
        row = np.cos(np.arange(order + 1) * np.arccos(np.clip(2 * s - 1, -1, 1)))
        return np.vstack([np.zeros((1, 2 * order + 2)), np.kron(np.eye(2), row), np.zeros((3, 2 * order + 2))])

    return ls.BasisCustom(Phi, order=order)


def frequencies(basis, section, points, **options):
    """Natural frequencies of a straight rod at rest, rising [rad/s]."""
    robot = ls.Robot("rod")
    robot.add_link("rod", ls.Rod(0.5, section, basis, SILICONE, gauss_points=points, **options))
    model = robot.build()
    M = ls.mass_matrix(model, model.neutral())
    unit = 1.0 / np.sqrt(np.diag(M))
    values, vectors = np.linalg.eigh(M * np.outer(unit, unit))
    # Rounding resolves shapes down to these only: of monomials of order 10, not the last.
    told = values > len(values) * np.finfo(float).eps * values[-1]
    free = unit[:, None] * vectors[:, told] / np.sqrt(values[told])
    return np.sqrt(np.abs(np.linalg.eigvalsh(free.T @ model.elasticity.stiffness @ free)))


def check(basis, section, pieces, *, top=True):
    """First frequency within 1e-6, the highest within 5 % of those of 60 points or more."""
    given, fine = (frequencies(basis, section, points) for points in (None, max(60 // pieces, 12)))
    assert given[0] == pytest.approx(fine[0], rel=1e-6)
    if top:
        assert given[-1] == pytest.approx(fine[-1], rel=0.05)


def check_thin(kind, order):
    """One order in bending.

    Monomials above order 8 span what Legendre's polynomials span, but in coordinates whose top float64 cannot resolve.
    """
    basis, pieces = graded(kind, order, ["bending_y"])
    check(basis, THIN, pieces, top=kind != "Monomial" or order <= 8)


@pytest.mark.parametrize("kind", MODAL)
def test_thin_rod_in_bending(kind):
    """Without shear and almost without rotary inertia, where too few points cost most; orders to 10."""
    for order in (1, 4, 10):
        check_thin(kind, order)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODAL)
def test_thin_rod_in_bending_at_the_other_orders(kind):
    """The orders between those of the test before."""
    for order in (0, 2, 3, 5, 6, 7, 8, 9):
        check_thin(kind, order)


@pytest.mark.parametrize("kind", MODAL)
def test_tapered_rod_with_all_strains(kind):
    """Six strains, and a section whose stiffness is of degree four in s."""
    for order in (1, 3):
        basis, pieces = graded(kind, order, ALL)
        check(basis, ls.SectionCircle((0.03, 0.015)), pieces)


def test_custom_basis_and_a_profile_that_is_no_polynomial():
    """A user's own basis to order 10; a radius that falls exponentially."""
    for order in (0, 3, 10):
        check(custom(order), THIN, 1)
    check(ls.BasisLegendre(bending_y=5), ls.SectionCircle(lambda s: 0.02 * np.exp(-s)), 1)


def test_orders_differ_between_strains():
    """The highest order decides, whichever strain has it."""
    check(ls.BasisLegendre(bending_y=2, elongation=7), THIN, 1)
    check(ls.BasisLegendre(bending_z=6, shear_y=1, torsion=3), THIN, 1)


def test_a_section_that_steps_at_the_breaks_costs_nothing():
    """Tapers are looked at between the breaks: one constant radius on each element needs three points there, and
    one for the bend."""
    basis = ls.BasisPiecewiseConstant(bending_y=2)
    robot = ls.Robot("steps")
    robot.add_link("rod", ls.Rod(0.5, ls.SectionCircle(lambda s: 0.01 if s < 0.5 else 0.008), basis, SILICONE))
    assert robot.build().n_nodes == 2 * (4 + 1)


def test_exact_without_a_bend():
    """Mean and first moment of the strain place a straight rod's nodes exactly: p + 3 points are 60, to rounding."""
    given, fine = (frequencies(ls.BasisLegendre(bending_y=7), THIN, points) for points in (10, 60))
    np.testing.assert_allclose(given, fine, rtol=1e-10)
    papers = frequencies(ls.BasisLegendre(bending_y=7), THIN, 10, interval_points=2)
    assert abs(papers[0] / fine[0] - 1) > 1e-6, "two Zannah points an interval, as in the papers, are not"


def test_a_rod_bent_beforehand_stays_near():
    """A reference that winds twice: intervals are chosen short enough, and fourth order leaves little."""
    helix = (4 * np.pi, 6 * np.pi, 0, 1, 0, 0)
    basis = ls.BasisLegendre(torsion=3, bending_y=3, bending_z=3)
    given, fine = (frequencies(basis, THIN, points, reference_strain=helix) for points in (None, 90))
    assert given[0] == pytest.approx(fine[0], rel=1e-3)
    assert given[-1] == pytest.approx(fine[-1], rel=0.05)


def built(basis, points, section=THIN, **options):
    """A rod's model, built."""
    robot = ls.Robot("rod")
    robot.add_link("rod", ls.Rod(0.5, section, basis, SILICONE, gauss_points=points, **options))
    return robot.build()


def test_a_warning_sees_the_mass():
    """Six points integrate the stiffness of order four exactly, but not its mass; who states the whole rule knows."""
    basis = ls.BasisLegendre(bending_y=4)
    with pytest.warns(ls.AccuracyWarning, match=r"6 Gauss points give the mass to \d\.\de-02 of its .* takes 9"):
        built(basis, 6)
    built(basis, 7)
    built(basis, 5, interval_points=2)


def test_a_warning_sees_the_taper():
    """Six points lose of the stiffness where the section is of degree four, and of the mass; eight lose nothing."""
    basis, section = ls.BasisLegendre(bending_y=4), ls.SectionCircle((0.03, 0.015))
    with pytest.warns(ls.AccuracyWarning, match="give the stiffness to .* and the mass to .* takes 10"):
        built(basis, 6, section)
    built(basis, 8, section)


def test_two_points_an_interval_are_the_zannah_points():
    """The papers' collocation is the rule of two points: strains at (1/2 ∓ √3/6) of each interval."""
    basis = ls.BasisChebyshev(bending_y=3, shear_z=2)
    model = built(basis, 6, ls.SectionCircle(0.01), interval_points=2)
    rod = model.rods["rod"]
    edges = np.concatenate([[0.0], rod.node_s])
    for k, node in enumerate(rod.node):
        run = slice(model.nodes.run_start[node, 1], model.nodes.run_start[node, 2])
        for values, side in ((model.runs.phi1, -1), (model.runs.phi2, 1)):
            s = (edges[k] + edges[k + 1]) / 2 + side * np.sqrt(3) / 6 * (edges[k + 1] - edges[k])
            np.testing.assert_allclose(values[run], basis.evaluate(s)[1, :4], rtol=0, atol=1e-14)
