"""Convergence to the elastica: an inextensible cantilever under a dead transverse force at its tip.

Closed form (Bisshopp and Drucker, 1945): with α² = PL²/EI and p² = (1 + sin θ_L)/2, sin φ = 1/(p√2),
    α = K(p) − F(φ, p),   x_L/L = √(2 sin θ_L)/α,   y_L/L = 1 − 2 (E(p) − E(φ, p))/α                             (1)
"""

from functools import lru_cache

import mpmath
import numpy as np
import pytest

import lissom as ls

EI, LENGTH = 1.0, 1.0
LOAD = 3.0  # PL²/EI; the tip turns by 56°


@lru_cache(maxsize=1)
def elastica_tip():
    """(x, y) of the tip by (1), to 25 digits."""
    with mpmath.workdps(30):
        alpha = mpmath.sqrt(LOAD)

        def parts(angle):
            m = (1 + mpmath.sin(angle)) / 2
            return m, mpmath.asin(1 / mpmath.sqrt(2 * m))

        def gap(angle):
            m, phi = parts(angle)
            return mpmath.ellipk(m) - mpmath.ellipf(phi, m) - alpha

        angle = mpmath.findroot(gap, 1.0)
        m, phi = parts(angle)
        x = mpmath.sqrt(2 * mpmath.sin(angle)) / alpha
        y = 1 - 2 * (mpmath.ellipe(m) - mpmath.ellipe(phi, m)) / alpha
        return np.array([float(x), float(y)])


def elastica(basis, gauss_points=None, **options):
    """The cantilever with its force."""
    section = ls.SectionGeneral(stiffness=(1, EI, EI, 1, 1, 1), inertia=(0, 0, 0, 1, 1, 1))
    robot = ls.Robot("elastica", gravity=(0, 0, 0))
    robot.add_link("rod", ls.Rod(LENGTH, section, basis, gauss_points=gauss_points, **options))
    robot.add_point_load("tip", "rod", force=(0, 0, LOAD * EI / LENGTH**2))
    return robot


def tip_error(basis, gauss_points, **options):
    """Distance of the computed tip from the elastica's; the force is along z, so the rod bends about −y."""
    model = elastica(basis, gauss_points, **options).build()
    x, y, z = ls.frame_pose(model, ls.solve_statics(model).q, "rod")[:3, 3]
    assert y == 0.0
    return float(np.hypot(x - elastica_tip()[0], z - elastica_tip()[1]))


def stretches(count, order=8):
    """Legendre polynomials over the whole rod, with knots that split it into equal stretches of Gauss points."""

    def Phi(s):
        row = np.zeros((6, order + 1))
        row[1] = np.polynomial.legendre.legvander([2 * s - 1], order)[0]
        return row

    return ls.BasisCustom(Phi, order=order, knots=tuple(np.arange(1, count) / count))


def test_closed_form_solves_the_boundary_value_problem():
    """The elliptic integrals against a direct integration of θ'' + (P/EI) cos θ = 0 with θ(0) = θ'(L) = 0."""
    from scipy.integrate import solve_bvp

    s = np.linspace(0, 1, 200)
    guess = np.stack([s, 1 - s, s, 0.5 * s**2])

    def rate(_, y):
        return np.stack([y[1], -LOAD * np.cos(y[0]), np.cos(y[0]), np.sin(y[0])])

    def ends(base, tip):
        return np.array([base[0], tip[1], base[2], base[3]])

    result = solve_bvp(rate, ends, s, guess, tol=1e-10, max_nodes=20000)
    assert result.success
    np.testing.assert_allclose(result.y[2:, -1], elastica_tip(), rtol=0, atol=1e-9)


def test_root_moment_converges_geometrically_with_the_order_at_the_default_points():
    """The moment at the clamp, EI κ(0) = P x_L, in the strains themselves: the worst place of a fit to them.

    Strains taken at two points of each interval would not do: high modes then pull with a wrong force, and the root
    gets worse with the order, 1e-2 at order 16.
    """
    exact = LOAD * elastica_tip()[0]
    errors = []
    for order in (*range(1, 11), 12, 16):
        basis = ls.BasisLegendre(bending_y=order)
        model = elastica(basis).build()
        errors.append(abs(abs((basis.evaluate(0.0) @ ls.solve_statics(model).q)[1]) * EI / exact - 1))
    assert np.polyfit(np.arange(1, 10), np.log10(errors[:9]), 1)[0] < -np.log10(3), "a factor of three an order"
    assert max(errors[8:]) < 3e-7, "the floor that the Magnus steps leave, and it is never left again"


def test_error_falls_geometrically_with_the_order():
    """Every order gains a constant factor until the floor that the Magnus steps of 96 points leave.

    The curvature is analytic in s, so its Legendre coefficients fall geometrically; the tip is nearly twice as good
    as the curvature, since the energy is stationary, so a factor of three an order at least is asked on average.
    """
    errors = np.array([tip_error(ls.BasisLegendre(bending_y=n), 96) for n in range(1, 11)])
    floor = errors[-1]
    falling = np.log10(errors[errors > 10 * floor])
    assert len(falling) >= 5
    slope = np.polyfit(np.arange(len(falling)), falling, 1)[0]
    assert slope < -np.log10(3)
    assert floor < 1e-8
    assert np.all(errors[len(falling) + 1 :] < 3 * floor), "it stays at the floor"


def test_floor_is_that_of_the_magnus_steps():
    """At a fixed high order the error falls 16 times when the gaps between Gauss points halve."""
    coarse, fine = (tip_error(ls.BasisLegendre(bending_y=12), n) for n in (24, 48))
    assert np.log(coarse / fine) / np.log(48.5 / 24.5) == pytest.approx(4.0, abs=0.3)


@pytest.mark.parametrize("interval_points, counts", [(2, (1, 2, 4, 8)), (6, (2, 4, 8))])
def test_order_four_in_the_interval_length(interval_points, counts):
    """Halving every interval divides the tip error by 16, at an order of the basis whose own error is negligible.

    Each stretch holds the same Gauss rule of 9 points, with which K is exact for order 8, so doubling the stretches
    halves every interval and changes nothing else. Order 8 itself is off by less than 1e-11. Strains are taken at the
    papers' two Zannah points of an interval, or exactly by their mean and moment; in one stretch these do better yet.
    """
    errors = [tip_error(stretches(count), 9, interval_points=interval_points) for count in counts]
    orders = -np.diff(np.log2(errors))
    assert np.all(np.abs(orders - 4.0) < 0.3), orders
    assert errors[-1] > 1e-10, "above the error of the basis"
