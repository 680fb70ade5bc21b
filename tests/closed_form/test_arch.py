"""Snap-through of a shallow clamped arch under a central load, against the theory of shallow arches.

The arch has the span 1, the rise f, w₀ = f (1 − 4ξ²) at ξ in [−½, ½], and the radius of gyration r. Its shape depends
on λ = 2f/r alone. With the thrust H = μ²EI and the load P = p r EI, the deflection v obeys

    v'''' + μ² v'' = 8 f μ² − p r δ(ξ),   v = v' = 0 at both ends                                        (1)
    −μ² r² = ∫ (w₀' v' + ½ v'²) dξ                                                                       (2)

(1) has the slope v' = f a + p r b with two functions a, b of μ; (2) then is a quadratic equation for p at every μ.
The load has limit points for λ > 11.07 (Bradford, Uy and Pi, J. Eng. Mech. 128, 2002), where μ reaches 2π. The arch
tilts to one side only where tan(μ/2) = μ/2, at μ = 8.99. With λ = 15 the thrust stays below that, μ < 7.50, so that
the symmetric limit points come first and the part between them has one motion that grows.

The theory leaves out the squares of slopes, of which the largest is α = 4f: limit loads differ from it by c α², where
c is of order 1 (−0.29 and −0.34 are seen). The loop is planar and so redundant, which is meant.
"""

import warnings

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

import lissom as ls

EI, LAMBDA = 1.0, 15.0
FULL = 1500.0  # p at the factor 1, above both limit points
POINTS = 48  # of the Gauss rule on each half


def slopes(mu, xi):
    """a and b of v' = f a + p r b at ξ in [0, ½]."""
    c, s = np.cos(mu / 2), np.sin(mu / 2)
    a = 8 * xi - 4 * np.sin(mu * xi) / s
    return a, (np.cos(mu * xi) - 1 + (1 - c) * np.sin(mu * xi) / s) / (2 * mu**2)


def quadratic(mu, shallowness):
    """A, B, C of A p² + B p + C = 0, which is (2) over r²."""
    x, w = np.polynomial.legendre.leggauss(40)
    xi, w, f = (x + 1) / 4, w / 2, shallowness / 2
    a, b = slopes(mu, xi)
    return w @ b**2 / 2, f * w @ ((a - 8 * xi) * b), mu**2 + f**2 * w @ ((a / 2 - 8 * xi) * a)


def largest_thrust(shallowness):
    """The μ where both roots of (2) meet."""

    def discriminant(mu):
        A, B, C = quadratic(mu, shallowness)
        return B**2 - 4 * A * C

    return float(brentq(discriminant, np.pi, 8.9))  # pyright: ignore[reportArgumentType]


def shallow_limits(shallowness=LAMBDA):
    """p at both limit points, the larger first."""
    end = largest_thrust(shallowness)
    loads = []
    for sign in (1, -1):

        def load(mu, sign=sign):
            A, B, C = quadratic(mu, shallowness)
            return (-B + sign * np.sqrt(max(B**2 - 4 * A * C, 0.0))) / (2 * A)

        found = minimize_scalar(lambda mu: -sign * load(mu), bounds=(2 * np.pi + 1e-3, end), method="bounded",  # noqa: B023
                                options={"xatol": 1e-10})  # fmt: skip
        loads.append(load(found.x))
    return np.array(loads)


def arch(rise, order=6):
    """The model, two rods that meet under the load, and the load at the factor 1."""
    alpha = 2 * np.arctan(2 * rise)  # half of the angle of the circle
    radius = 1 / (2 * np.sin(alpha))
    gyration = 2 * rise / LAMBDA
    section = ls.SectionGeneral(stiffness=(EI, EI, EI, EI / gyration**2, EI, EI), inertia=(0, 0, 0, 1, 1, 1))
    half = ls.Rod(alpha * radius, section, ls.BasisLegendre(bending_z=order, elongation=3),
                  reference_strain=(0, 0, -1 / radius, 1, 0, 0), gauss_points=POINTS)  # fmt: skip
    robot = ls.Robot("arch", gravity=(0, 0, 0))
    robot.add_link("left", half, placement=clamp(-0.5, alpha))
    robot.add_link("right", half, parent="left")
    robot.add_loop("clamp", "right", placement_b=clamp(0.5, -alpha))
    load = FULL * gyration * EI
    robot.add_point_load("weight", "left", force=(0.0, -load, 0.0))
    return robot.build()


def clamp(x, angle):
    """Pose at (x, 0, 0), turned about z."""
    g = np.eye(4)
    g[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    g[0, 3] = x
    return g


def snapped(rise, order=6):
    """The branch through both limit points."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.RedundancyWarning)
        return ls.continuation(arch(rise, order), step=0.02, factor_range=(0.0, 1.0))


def limits(branch):
    """p at the limit points of a branch."""
    return FULL * np.array([event.factor for event in branch.events if event.kind == "limit"])


def test_shallow_theory_solves_its_boundary_value_problem():
    """The slopes of the reference satisfy (1) by scipy's solve_bvp, at a load and a thrust between the limit points."""
    from scipy.integrate import solve_bvp

    mu, f, p = 7.2, LAMBDA / 2, 1200.0  # in units of r

    def rate(xi, y):
        return np.stack([y[1], y[2], y[3], 8 * f * mu**2 - mu**2 * y[2]])

    def ends(middle, clamp):
        return np.array([middle[1], middle[3] + p / 2, clamp[0], clamp[1]])

    xi = np.linspace(0.0, 0.5, 41)
    found = solve_bvp(rate, ends, xi, np.zeros((4, 41)), tol=1e-9)
    a, b = slopes(mu, xi)
    np.testing.assert_allclose(f * a + p * b, found.sol(xi)[1], rtol=0, atol=1e-6)


def test_shallow_theory_has_its_known_threshold():
    """Limit points begin at λ = 11.07, where the largest thrust is that of μ = 2π; at λ = 15 the arch cannot tilt."""
    threshold = brentq(lambda shallowness: largest_thrust(shallowness) - 2 * np.pi, 10.5, 12)
    assert threshold == pytest.approx(11.07, abs=5e-3)
    half = 8.98 / 2  # still below the root of tan x = x
    assert largest_thrust(LAMBDA) < 7.5 < 2 * half and np.tan(half) < half


@pytest.fixture(scope="module")
def branches():
    """The branches of two arches by their rise."""
    return {rise: snapped(rise) for rise in (0.02, 0.01)}


@pytest.mark.parametrize("rise", [0.02, 0.01])
def test_limit_loads_of_the_shallow_arch(branches, rise):
    """Both limit loads are those of the theory to ½α², α = 4f the steepest slope: to 3.2e-3 and to 8e-4."""
    assert [event.kind for event in branches[rise].events] == ["limit", "limit"]
    np.testing.assert_allclose(limits(branches[rise]), shallow_limits(), rtol=(4 * rise) ** 2 / 2)


def test_what_the_theory_leaves_out_is_of_second_order_in_the_slope(branches):
    """Half of the rise leaves a quarter of the difference, for both limit loads: the fitted order is 2.

    The Gauss points leave (κh)⁴ of it, which is 1e-6 of the load, and the next order α² of the difference.
    """
    coarse, fine = (limits(branches[rise]) / shallow_limits() - 1 for rise in (0.02, 0.01))
    np.testing.assert_allclose(np.log2(coarse / fine), 2.0, rtol=0, atol=0.03)


@pytest.mark.parametrize("rise", [0.02, 0.01])
def test_the_arch_is_unstable_between_its_limit_points(branches, rise):
    """One mode is unstable between the limit points and none elsewhere; the load falls exactly there."""
    branch = branches[rise]
    first, second = (event.index for event in branch.events)
    between = np.arange(first + 1, second + 1)
    expected = np.zeros(len(branch.factor), dtype=int)
    expected[between] = 1
    np.testing.assert_array_equal(branch.unstable_count, expected)
    np.testing.assert_array_equal(branch.stable, expected == 0)
    rising = np.sign(np.diff(branch.factor))
    assert (rising[: first - 1] > 0).all() and (rising[between[:-1]] < 0).all() and (rising[second + 1 :] > 0).all()
    assert branch.factor[-1] == 1.0, "the far side carries the full load"


def test_the_middle_snaps_straight_down(branches):
    """The crown stays on the axis of symmetry, and at the full load it hangs below the clamps, turned inside out."""
    model, branch = arch(0.01), branches[0.01]
    crown = ls.frame_pose(model, branch.q, "left")
    assert np.abs(crown[:, 0, 3]).max() < 1e-9
    np.testing.assert_allclose(crown[:, :3, :3], np.broadcast_to(np.eye(3), (len(crown), 3, 3)), rtol=0, atol=1e-8)
    assert crown[0, 1, 3] == pytest.approx(0.01, rel=1e-12)
    assert -0.02 < crown[-1, 1, 3] < 0 and (np.diff(crown[:, 1, 3]) < 0).all()
