"""Bases, sections, materials and functions of a description: the law each family states, swept over its members."""

from __future__ import annotations

import math
from itertools import pairwise

import families
import numpy as np
import pytest

import lissom as ls
from lissom.robot import bases as bases_module
from lissom.robot import functions
from lissom.robot.bases import Basis
from lissom.robot.bodies import STRAIGHT
from lissom.robot.fields import members
from lissom.robot.sections import Section

MATERIAL = ls.Material(young=2e6, poisson=0.3, density=1100.0, viscosity=50.0, damping_time=0.02)
GRID = np.linspace(0.0, 1.0, 101)
MODAL = {  # class: (least order, number of modes of order n)
    ls.BasisLegendre: (0, lambda n: n + 1),
    ls.BasisMonomial: (0, lambda n: n + 1),
    ls.BasisChebyshev: (0, lambda n: n + 1),
    ls.BasisFourier: (0, lambda n: 2 * n + 1),
    ls.BasisGaussian: (0, lambda n: n + 1),
    ls.BasisHermite: (1, lambda n: 2 * (n + 1)),
    ls.BasisPiecewiseConstant: (1, lambda n: n),
    ls.BasisPiecewiseLinear: (1, lambda n: n + 1),
}
CUSTOM = ls.BasisCustom(lambda s: np.eye(6, 3, k=-1) * (1 + s), order=1)
BASES = [
    make(**{name: least + (k + 1) % 4 for k, name in enumerate(bases_module.STRAINS)})
    for make, (least, _) in MODAL.items()
] + [CUSTOM, *families.all_made(Basis)]


def name_of(value):
    """The class of a parameter."""
    return value.__name__ if isinstance(value, type) else type(value).__name__


def scalar_modes(make, order, s):
    """The modes of one strain at s."""
    return make(torsion=order).evaluate(s)[0]


def test_the_sweep_holds_every_basis():
    """Purpose: a basis added to the library must be added here."""
    public = {getattr(ls, name) for name in ls.__all__ if name.startswith("Basis")}
    assert public == {type(basis) for basis in BASES} == set(members(Basis))


@pytest.mark.parametrize("basis", BASES, ids=name_of)
def test_shape_size_and_modes_agree(basis):
    """Purpose: Φ is (6, size), finite on [0, 1], and `modes` counts the columns that act on each strain."""
    basis.check("basis")
    for s in GRID:
        Phi = basis.evaluate(s)
        assert Phi.shape == (6, basis.size) and np.isfinite(Phi).all()
    acting = np.array([basis.evaluate(s) for s in GRID[1:-1]]).any(axis=0).sum(axis=1)
    assert basis.modes() == tuple(acting)


@pytest.mark.parametrize("basis", BASES, ids=name_of)
def test_the_columns_are_linearly_independent(basis):
    """Purpose: no two coordinates mean the same strain; the stacked Φ has full column rank."""
    stacked = np.concatenate([basis.evaluate(s) for s in GRID])
    values = np.linalg.svd(stacked, compute_uv=False)
    assert values[-1] > 1e-4 * values[0]


@pytest.mark.parametrize("basis", BASES, ids=name_of)
def test_the_basis_is_smooth_between_its_breaks(basis):
    """Purpose: a polynomial fitted between two breaks reproduces Φ; so breaks() leaves none out."""
    ends = [0.0, *basis.breaks(), 1.0]
    assert ends == sorted(set(ends))
    for a, b in pairwise(ends):
        x = a + (b - a) * (1 - np.cos(np.pi * (np.arange(31) + 0.5) / 31)) / 2
        values = np.array([basis.evaluate(s).ravel() for s in x])
        fit = np.polynomial.Chebyshev.fit
        for column in values.T[values.any(axis=0)]:
            series = fit(x, column, 30, domain=[a, b])
            between = a + (b - a) * np.array([0.013, 0.31, 0.77, 0.991])
            expected = [basis.evaluate(s).ravel() for s in between]
            found = np.array([series(s) for s in between])
            index = next(k for k in range(values.shape[1]) if np.array_equal(values[:, k], column))
            np.testing.assert_allclose(found, np.array(expected)[:, index], rtol=0, atol=1e-9)


@pytest.mark.parametrize("basis", BASES, ids=name_of)
def test_the_stated_degree_represents_the_basis(basis):
    """Purpose: degree() is exact for polynomials and good to 1e-3 for waves and bells, for Gauss rules to rely on."""
    ends = [0.0, *basis.breaks(), 1.0]
    exact = type(basis) not in families.APPROXIMATED
    for a, b in pairwise(ends):
        x = a + (b - a) * (np.arange(60) + 0.5) / 60
        values = np.array([basis.evaluate(s).ravel() for s in x])
        V = np.polynomial.chebyshev.chebvander(2 * (x - a) / (b - a) - 1, basis.degree())
        error = values - V @ np.linalg.lstsq(V, values, rcond=None)[0]
        assert np.abs(error).max() < (1e-12 if exact else 1e-3)


@pytest.mark.parametrize("make", MODAL, ids=name_of)
def test_the_order_gives_the_stated_number_of_modes(make):
    """Purpose: the counts of the docstrings; the coordinates of a strain left out do not exist."""
    least, count = MODAL[make]
    for order in range(least, 7):
        assert make(bending_z=order).size == count(order)
        assert make(torsion=order, shear_z=order).modes() == (count(order), 0, 0, 0, 0, count(order))


@pytest.mark.parametrize("make", MODAL, ids=name_of)
def test_the_coordinates_go_strain_by_strain(make):
    """Purpose: q is ordered mode by mode, torsion first, each strain's modes in its own row."""
    least, _ = MODAL[make]
    basis = make(torsion=least + 1, bending_z=least, shear_y=least + 2)
    Phi, start = basis.evaluate(0.37), 0
    for row, order in enumerate(basis.orders()):
        stop = start + basis.modes()[row]
        expected = np.zeros((6, stop - start))
        if order is not None:
            expected[row] = scalar_modes(make, order, 0.37)
        assert np.array_equal(Phi[:, start:stop], expected)
        start = stop
    assert start == basis.size


def test_polynomial_families_have_their_textbook_values():
    """Purpose: Legendre and Chebyshev of 2s − 1 with value 1 at the tip, monomials of s."""
    for s in (0.0, 0.3, 1.0):
        x = 2 * s - 1
        legendre = [1, x, (3 * x**2 - 1) / 2, (5 * x**3 - 3 * x) / 2]
        chebyshev = [math.cos(n * math.acos(x)) for n in range(4)]
        np.testing.assert_allclose(scalar_modes(ls.BasisLegendre, 3, s), legendre, rtol=0, atol=1e-15)
        np.testing.assert_allclose(scalar_modes(ls.BasisChebyshev, 3, s), chebyshev, rtol=0, atol=1e-15)
        np.testing.assert_allclose(scalar_modes(ls.BasisMonomial, 3, s), [1, s, s**2, s**3], rtol=0, atol=1e-15)
    assert np.array_equal(scalar_modes(ls.BasisLegendre, 6, 1.0), np.ones(7))


def test_legendre_modes_are_orthogonal():
    """Purpose: ∫ Pᵢ Pⱼ ds = δᵢⱼ / (2i + 1) on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(8)
    values = np.array([scalar_modes(ls.BasisLegendre, 5, (s + 1) / 2) for s in x])
    np.testing.assert_allclose(values.T * (w / 2) @ values, np.diag(1 / (2 * np.arange(6) + 1)), rtol=0, atol=1e-15)


def test_fourier_modes_are_a_constant_and_pairs_of_waves():
    """Purpose: 1, cos 2πs, sin 2πs, cos 4πs, sin 4πs."""
    a = 2 * math.pi * 0.123
    expected = [1, math.cos(a), math.sin(a), math.cos(2 * a), math.sin(2 * a)]
    np.testing.assert_allclose(scalar_modes(ls.BasisFourier, 2, 0.123), expected, rtol=0, atol=1e-15)


def test_gaussian_modes_peak_at_their_centres():
    """Purpose: centres at 0, 1/3, 2/3, 1 with σ = 1/4 for order 3; a single one at the middle."""
    for k, centre in enumerate((0, 1 / 3, 2 / 3, 1)):
        values = scalar_modes(ls.BasisGaussian, 3, centre)
        assert values[k] == 1.0 and values.argmax() == k
        assert scalar_modes(ls.BasisGaussian, 3, centre + 0.25)[k] == pytest.approx(math.exp(-0.5), abs=1e-15)
    assert scalar_modes(ls.BasisGaussian, 0, 0.5) == 1.0


@pytest.mark.parametrize("order", [1, 2, 3, 7])
def test_pieces_sum_to_one(order):
    """Purpose: piecewise constant and linear modes, and the values of Hermite, form a partition of unity."""
    for s in GRID:
        assert scalar_modes(ls.BasisPiecewiseConstant, order, s).sum() == 1.0
        assert scalar_modes(ls.BasisPiecewiseLinear, order, s).sum() == pytest.approx(1.0, abs=1e-15)
        assert scalar_modes(ls.BasisHermite, order, s)[::2].sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("order", [1, 3, 4])
def test_nodal_modes_interpolate(order):
    """Purpose: coordinates are the values at the nodes (and Hermite's slopes per element length)."""
    step = 1e-6
    for k in range(order + 1):
        node = k / order
        inside = min(max(node, step), 1 - step)
        unit = np.eye(order + 1)[k]
        np.testing.assert_allclose(scalar_modes(ls.BasisPiecewiseLinear, order, node), unit, rtol=0, atol=1e-14)
        hermite = scalar_modes(ls.BasisHermite, order, node)
        np.testing.assert_allclose(hermite[::2], unit, rtol=0, atol=1e-14)
        np.testing.assert_allclose(hermite[1::2], 0.0, rtol=0, atol=1e-14)
        ahead, behind = (scalar_modes(ls.BasisHermite, order, inside + h) for h in (step, -step))
        slope = (ahead - behind) / (2 * step) / order
        np.testing.assert_allclose(slope[1::2], unit, rtol=0, atol=2e-5)
        np.testing.assert_allclose(slope[::2], 0.0, rtol=0, atol=4e-5)


@pytest.mark.parametrize("coefficients", [(1.0, 0, 0, 0), (0, 1.0, 0, 0), (0.3, -1, 2, 0.5)])
def test_hermite_splines_reproduce_cubics(coefficients):
    """Purpose: nodal values and slopes of a cubic give the cubic everywhere, so the slopes have the stated scale."""
    cubic = np.polynomial.Polynomial(coefficients)
    n = 3
    nodes = np.arange(n + 1) / n
    q = np.stack([cubic(nodes), cubic.deriv()(nodes) / n], axis=1).ravel()
    values = [scalar_modes(ls.BasisHermite, n, s) @ q for s in GRID]
    np.testing.assert_allclose(values, cubic(GRID), rtol=0, atol=1e-14)


def test_a_break_belongs_to_the_element_after_it():
    """Purpose: piecewise constant modes switch at k/n as documented, and the tip belongs to the last."""
    assert [int(scalar_modes(ls.BasisPiecewiseConstant, 4, s).argmax()) for s in (0, 0.25, 0.5, 0.75, 1)] == [
        0,
        1,
        2,
        3,
        3,
    ]
    assert ls.BasisPiecewiseConstant(torsion=4, bending_y=2).breaks() == (0.25, 0.5, 0.75)


# -- sections ---------------------------------------------------------------------------------------------------------


def outline_moments(points):
    """Area and second moments ∫z², ∫y², ∫yz of a polygon (Green's theorem)."""
    (y, z), (y1, z1) = points.T, np.roll(points, -1, axis=0).T
    cross = y * z1 - y1 * z
    return (
        cross.sum() / 2,
        (cross * (z**2 + z * z1 + z1**2)).sum() / 12,
        (cross * (y**2 + y * y1 + y1**2)).sum() / 12,
        (cross * (y * z1 + 2 * y * z + 2 * y1 * z1 + y1 * z)).sum() / 24,
    )


SOLID = {
    "circle": ls.SectionCircle((0.03, 0.015)),
    "rectangle": ls.SectionRectangle(0.02, (0.03, 0.01)),
    "square": ls.SectionRectangle(0.02, 0.02, saint_venant=True),
    "ellipse": ls.SectionEllipse(lambda s: 0.02 + 0.01 * s, 0.01),
    "ellipse in torsion": ls.SectionEllipse(0.02, 0.01, saint_venant=True),
}


@pytest.mark.parametrize("name", SOLID)
@pytest.mark.parametrize("s", [0.0, 0.4, 1.0])
def test_matrices_are_the_moments_of_the_outline(name, s):
    """Purpose: Σ, inertia and Υ against moments integrated over the drawn outline; y and z are not swapped."""
    section, count = SOLID[name], 4000
    A, J_y, J_z, J_yz = outline_moments(section.outline(s, count))
    stiffness, inertia, damping = section.constitution(s, MATERIAL, "section")
    E, G, rho, eta, mu = 2e6, 2e6 / 2.6, 1100.0, 50.0, 0.02
    tolerance = 10.0 / count**2  # relative area missed by the chords of a circle: (2π/n)²/6 = 6.6/n²
    assert abs(J_yz) < 1e-12 * J_y
    np.testing.assert_allclose(np.diag(stiffness)[1:], [E * J_y, E * J_z, E * A, G * A, G * A], rtol=2 * tolerance)
    expected = rho * np.array([J_y + J_z, J_y, J_z, A, A, A])
    np.testing.assert_allclose(np.diag(inertia), expected, rtol=2 * tolerance)
    viscous = np.diag(damping) - mu * np.diag(stiffness)
    np.testing.assert_allclose(viscous[1:], eta * np.array([3 * J_y, 3 * J_z, 3 * A, A, A]), rtol=2 * tolerance)
    np.testing.assert_allclose(viscous[0] / eta, stiffness[0, 0] / G, rtol=1e-12)
    if not getattr(section, "saint_venant", False):
        np.testing.assert_allclose(stiffness[0, 0], G * (J_y + J_z), rtol=2 * tolerance)
    for matrix in (stiffness, inertia, damping):
        assert np.array_equal(matrix, np.diag(np.diag(matrix)))


SOME = [form for form in families.forms(Section) if form[0] not in (ls.SectionAnnulus, ls.SectionGeneral)]


def lamina(points, normal, shear):
    """∫ of normal n nᵀ + shear (t tᵀ + b bᵀ) over a polygon, with the strains of a fibre at (y, z) along x, y and z
    that strains of the centreline cause: n, t and b."""
    y, z = points.T
    A, J_y, J_z, J_yz = outline_moments(points)
    cross = y * np.roll(z, -1) - np.roll(y, -1) * z
    Y, Z = ((cross * (c + np.roll(c, -1))).sum() / 6 for c in (y, z))
    out = np.zeros((6, 6))
    out[1:4, 1:4] = normal * np.array([[J_y, -J_yz, Z], [-J_yz, J_z, -Y], [Z, -Y, A]])
    out[np.ix_([0, 4, 5], [0, 4, 5])] = shear * np.array([[J_y + J_z, -Z, Y], [-Z, A, 0.0], [Y, 0.0, A]])
    return out


@pytest.mark.parametrize("form", SOME, ids=families.name_of)
@pytest.mark.parametrize("seed", range(3))
def test_matrices_of_any_solid_section(form, seed):
    """Purpose: all 36 entries of Σ, inertia and Υ are integrals over the outline, wherever the centreline runs; where
    torsion is Saint-Venant's, all but those that shear and torsion share."""
    section = families.made(form, seed)
    for s in (0.0, 0.4, 1.0):
        points = section.outline(s, 4000)
        stiffness, inertia, damping = section.constitution(s, MATERIAL, "section")
        E, G, rho, eta, mu = 2e6, 2e6 / 2.6, 1100.0, 50.0, 0.02
        size = np.sqrt(np.outer(np.diag(inertia), np.diag(inertia))) / rho
        own = np.ones((6, 6), bool)
        if getattr(section, "saint_venant", False):
            own[0], own[:, 0] = False, False
        for matrix, expected in (
            (stiffness, lamina(points, E, G)),
            (damping - mu * stiffness, lamina(points, 3 * eta, eta)),
        ):
            np.testing.assert_allclose((matrix / size / E)[own], (expected / size / E)[own], rtol=2e-6, atol=1e-14)
        np.testing.assert_allclose(inertia / size, lamina(points, rho, rho) / size, rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize("form", families.forms(Section), ids=families.name_of)
def test_the_law_of_sections(form):
    """Purpose: matrices are symmetric, Σ and Υ positive semi-definite, the inertia that of a lamina: its first moments
    and products are consistent with one mass; the outline has the number of points that the section always gives."""
    section = families.made(form, 3)
    sizes = {len(section.outline(s)) for s in GRID[::20]}
    assert len(sizes) == 1 and sizes.pop() >= 3
    for s in (0.0, 0.5, 1.0):
        found = section.constitution(s, MATERIAL, "section")
        for matrix in found:
            np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-14 * np.abs(matrix).max())
            assert np.linalg.eigvalsh(matrix).min() > -1e-12 * np.abs(matrix).max()
        m = found.inertia[3, 3]
        c = np.array([0.0, -found.inertia[2, 3], found.inertia[1, 3]]) / m
        np.testing.assert_allclose(found.inertia[3:, 3:], m * np.eye(3), rtol=0, atol=1e-15 * m)
        np.testing.assert_allclose(found.inertia[:3, 3:], m * np.cross(np.eye(3), c), rtol=0, atol=1e-15 * m)
        about = found.inertia[:3, :3]
        assert about[0, 0] == pytest.approx(about[1, 1] + about[2, 2], rel=1e-12) and not about[0, 1:].any()
        assert Section.inner_radius(section, s) <= Section.radius(section, s) * (1 + 1e-12)


def test_a_tube_is_a_disc_less_a_disc():
    """Purpose: annulus matrices are the difference of two circles, and its outline is the outer one."""
    tube, disc, hole = ls.SectionAnnulus(0.02, (0.01, 0.005)), ls.SectionCircle(0.02), ls.SectionCircle((0.01, 0.005))
    for s in (0.0, 0.7):
        found, outer, inner = (section.constitution(s, MATERIAL, "") for section in (tube, disc, hole))
        for matrix, solid, void in zip(found, outer, inner, strict=True):
            np.testing.assert_allclose(matrix, solid - void, rtol=1e-12, atol=0)
        assert np.array_equal(tube.outline(s), disc.outline(s))


def torsion_constant(section):
    """Saint-Venant constant that a section takes, from its stiffness."""
    return section.constitution(0.5, MATERIAL, "").stiffness[0, 0] / MATERIAL.shear


def test_saint_venant_torsion_of_the_square():
    """Purpose: the textbook 0.1406 a⁴ (Timoshenko and Goodier: 0.140577)."""
    assert torsion_constant(ls.SectionRectangle(1.0, 1.0, saint_venant=True)) == pytest.approx(0.140577, abs=5e-7)


@pytest.mark.parametrize(("ratio", "beta"), [(1.5, 0.196), (2.0, 0.229), (3.0, 0.263), (5.0, 0.291), (10.0, 0.312)])
def test_saint_venant_torsion_of_rectangles(ratio, beta):
    """Purpose: the table of Timoshenko and Goodier (3 digits), whichever side is longer."""
    for sides in ((ratio, 1.0), (1.0, ratio)):
        constant = torsion_constant(ls.SectionRectangle(*sides, saint_venant=True))
        assert constant == pytest.approx(beta * ratio, abs=6e-4 * ratio)


def test_saint_venant_torsion_solves_the_stress_function():
    """Purpose: J = 2∫φ with Δφ = −2 on a 2:1 rectangle, by extrapolated finite differences."""
    from scipy.sparse import diags, identity, kron
    from scipy.sparse.linalg import spsolve

    def constant(n):
        h = 1.0 / n
        line = lambda m: diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(m, m)) / h**2  # noqa: E731
        a, b = 2 * n - 1, n - 1
        laplacian = kron(line(a), identity(b)) + kron(identity(a), line(b))
        return 2 * spsolve(laplacian.tocsc(), -2 * np.ones(a * b)).sum() * h**2

    extrapolated = (4 * constant(40) - constant(20)) / 3
    assert torsion_constant(ls.SectionRectangle(2.0, 1.0, saint_venant=True)) == pytest.approx(extrapolated, rel=2e-5)


def test_limits_of_the_torsion_constants():
    """Purpose: a thin strip tends to ab³/3, an ellipse of equal axes is a circle."""
    strip = torsion_constant(ls.SectionRectangle(1.0, 1e-3, saint_venant=True))
    assert strip == pytest.approx(1e-9 / 3 * (1 - 0.63e-3), rel=1e-6)
    round_ellipse = ls.SectionEllipse(0.02, 0.02, saint_venant=True)
    for ours, circle in zip(
        round_ellipse.constitution(0, MATERIAL, ""), ls.SectionCircle(0.02).constitution(0, MATERIAL, ""), strict=True
    ):
        np.testing.assert_allclose(ours, circle, rtol=1e-14)


def test_a_general_section_takes_what_is_given_and_the_shape_supplies_the_rest():
    """Purpose: vectors, matrices, arrays and functions of s are taken as given; None comes from shape and material."""
    disc = ls.SectionCircle((0.02, 0.01))
    base = disc.constitution(0.5, MATERIAL, "")
    full = np.diag([1.0, 2, 3, 4, 5, 6]) + 0.1 * np.eye(6)[[1, 0, 2, 3, 4, 5]] * (np.arange(6) < 2)
    full = (full + full.T) / 2
    mixed = ls.SectionGeneral(stiffness=lambda s: (1 + s) * full, damping=np.arange(6.0), shape=disc)
    found = mixed.constitution(0.5, MATERIAL, "")
    np.testing.assert_allclose(found.stiffness, 1.5 * full, rtol=1e-15)
    assert np.array_equal(found.inertia, base.inertia)
    assert np.array_equal(found.damping, np.diag(np.arange(6.0)))
    assert np.array_equal(mixed.outline(0.5), disc.outline(0.5))


def test_a_general_section_without_a_shape():
    """Purpose: damping is damping_time times the stiffness, or zero; the outline is the ellipse of equal inertia."""
    disc = ls.SectionCircle(0.02).constitution(0, MATERIAL, "")
    section = ls.SectionGeneral(disc.stiffness, disc.inertia)
    np.testing.assert_allclose(section.constitution(0, MATERIAL, "").damping, 0.02 * disc.stiffness, rtol=1e-15)
    assert not section.constitution(0, None, "").damping.any()
    np.testing.assert_allclose(section.outline(0), ls.SectionCircle(0.02).outline(0), rtol=0, atol=1e-16)
    assert section.radius(0) == pytest.approx(0.02, rel=1e-14)


def test_every_section_is_swept():
    """Purpose: a section added to the library must be added to these tests."""
    public = {getattr(ls, name) for name in ls.__all__ if name.startswith("Section")}
    swept = {cls for cls, _ in SOME} | {ls.SectionAnnulus, ls.SectionGeneral}
    assert public == swept == set(members(Section))


def test_shear_modulus_and_straight_reference():
    """Purpose: G = E / 2(1 + ν), and an incompressible material has E/3; ξ* is (0, 0, 0, 1, 0, 0)."""
    assert ls.Material(young=3e6, density=1.0).shear == pytest.approx(1e6, rel=1e-15)
    assert ls.Material(young=3e6, density=1.0, poisson=0.0).shear == 1.5e6
    assert STRAIGHT.tolist() == [0, 0, 0, 1, 0, 0]


# -- functions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.03 - 0.015*s", lambda s: 0.03 - 0.015 * s),
        ("-s**2", lambda s: -(s**2)),
        ("2**-s", lambda s: 2**-s),
        ("2**3**s", lambda s: 2 ** (3**s)),
        ("(1 + s)/(1 - s/2)*3", lambda s: (1 + s) / (1 - s / 2) * 3),
        ("+s - -s", lambda s: 2 * s),
        (" sqrt(3)/2 * s ", lambda s: math.sqrt(3) / 2 * s),
        ("sin(4*pi*s) + e", lambda s: math.sin(4 * math.pi * s) + math.e),
        ("maximum(s, 0.5) - minimum(s, 0.5)", lambda s: abs(s - 0.5)),
        ("abs(s - 0.5)*sign(s - 0.5)", lambda s: s - 0.5),
        ("exp(log(s + 1))", lambda s: s + 1),
        ("arctan(tan(s))", lambda s: s),
        ("cosh(s)**2 - sinh(s)**2", lambda s: 1.0),
        ("1e-3", lambda s: 1e-3),
        (7, lambda s: 7.0),
    ],
)
def test_expressions_mean_what_python_means(text, expected):
    """Purpose: precedence, signs, constants and functions agree with Python's own arithmetic."""
    expression = ls.Expression(text)
    for s in (0.0, 0.25, 0.5, 1.0):
        assert expression(s) == pytest.approx(expected(s), rel=1e-14, abs=1e-15)


def test_lists_of_expressions_give_arrays():
    """Purpose: the value has the shape of the source, and time has its own variable."""
    assert ls.Expression(["s", "2*s"])(0.5).tolist() == [0.5, 1.0]
    assert ls.Expression([["s", 1], [0, "-s"]])(2.0).tolist() == [[2.0, 1.0], [0.0, -2.0]]
    assert ls.Expression("t**2", "t")(3.0) == 9.0


@pytest.mark.parametrize("interpolation", ["linear", "cubic", "barycentric"])
def test_tables_pass_through_their_points(interpolation):
    """Purpose: exact at the points (also NumPy's warnings stay silent there), of the shape of one entry."""
    x = 0.5 - 0.5 * np.cos(np.pi * np.arange(9) / 8)
    values = np.stack([np.sin(3 * x), np.cos(3 * x)], axis=1)
    table = ls.Tabulated(x, values, interpolation)
    np.testing.assert_allclose([table(s) for s in x], values, rtol=0, atol=1e-15)
    assert np.shape(table(0.3)) == (2,) and np.shape(ls.Tabulated(x, x, interpolation)(0.3)) == ()


@pytest.mark.parametrize(("interpolation", "order"), [("linear", 2), ("cubic", 4)])
def test_tables_converge_as_stated(interpolation, order):
    """Purpose: the error falls as h² for linear and h⁴ for cubic tables, by a fit over three halvings."""
    sizes, errors = np.array([40, 80, 160, 320]), []
    for n in sizes:
        x = np.linspace(0, 1, n + 1)
        table = ls.Tabulated(x, np.exp(np.sin(5 * x)), interpolation)
        errors.append(np.abs([table(s) - np.exp(np.sin(5 * s)) for s in np.linspace(0, 1, 997)]).max())
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-order, abs=0.2)


def test_barycentric_tables_are_polynomials():
    """Purpose: nine points hold a polynomial of degree eight to rounding, and 129 points stay stable."""
    for count in (9, 129):
        x = 0.5 - 0.5 * np.cos(np.pi * np.arange(count) / (count - 1))
        polynomial = np.polynomial.Chebyshev([1, -2, 3, 0.5, 0, 1, 2, -1, 0.3], domain=[0, 1])
        table = ls.Tabulated(x, polynomial(x), "barycentric")
        np.testing.assert_allclose([table(s) for s in GRID], polynomial(GRID), rtol=0, atol=3e-14)


def test_profiles():
    """Purpose: a number is constant, a pair is a linear taper, a function is itself; all must stay positive."""
    for value, at_half in (
        (0.02, 0.02),
        ((0.03, 0.01), 0.02),
        (lambda s: 0.03 - 0.02 * s, 0.02),
        (np.array([3, 1]), 2.0),
    ):
        assert functions.profile(value, "radius")(0.5) == pytest.approx(at_half, rel=1e-15)
    with pytest.raises(ls.ModelError, match=r"radius at s=0\.9: must be > 0 \(got -0\.6"):
        functions.profile(lambda s: 0.3 - s, "radius")(0.9)


def test_the_eighth_order_derivative():
    """Purpose: the derivative of offset functions is good to 1e-12 of their scale, also at the ends."""
    for s in (0.0, 1e-16, 1e-5, 0.047, 0.23, 0.5, 0.953, 1.0 - 1e-16, 1.0):
        found = functions.derivative(lambda x: (math.sin(4 * math.pi * x), math.exp(x)), s, (2,), "offset")
        expected = [4 * math.pi * math.cos(4 * math.pi * s), math.exp(s)]
        np.testing.assert_allclose(found, expected, rtol=0, atol=4 * math.pi * 1e-12)
    with pytest.raises(ls.ModelError, match=r"only taken in \[0, 1\]"):
        functions.derivative(math.sin, -0.1, (), "offset")


def test_matrices_alone_need_no_material():
    """With an outline of its own or of a shape: strains without a given damping have none. A missing material of a
    shape is named."""
    given = {"stiffness": (1.0, 1.0, 1.0, 100.0, 100.0, 100.0), "inertia": (1e-4, 5e-5, 5e-5, 0.1, 0.1, 0.1)}
    for shape in (None, ls.SectionCircle(0.01)):
        found = ls.SectionGeneral(**given, shape=shape).constitution(0.5, None, "section")
        np.testing.assert_array_equal(found.stiffness, np.diag(given["stiffness"]))
        assert not found.damping.any()
    rod = ls.Rod(0.3, ls.SectionGeneral(**given, shape=ls.SectionCircle(0.01)), ls.BasisLegendre(bending_y=1))
    robot = ls.Robot("bare")
    robot.add_link("arm", rod)
    assert not ls.damping_matrix(robot.build()).any()
    for name in given:
        part = {key: value for key, value in given.items() if key != name}
        with pytest.raises(
            ls.ModelError, match=f"section: {name}, damping: comes from the shape and a material; give it"
        ):
            ls.SectionGeneral(**part, shape=ls.SectionCircle(0.01)).constitution(0.5, None, "section")
