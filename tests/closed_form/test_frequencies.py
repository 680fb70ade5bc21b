"""Natural frequencies of straight beams, from the generalised eigenproblem of stiffness and mass at rest.

Bending is compared with Euler-Bernoulli. The rod carries rotary inertia, which that theory leaves out: with the radius
of gyration r/2 it lowers ω by (r/2)² ∫φ'²/∫φ² / 2, for the fourth free-free mode (βL = 14.14, ∫φ'²/∫φ² = 257/L²) by
1.3e-4 at L/r = 500 and 3.2e-5 at L/r = 1000. The comparison at 1e-4 is made at 1000; at 500 the same modes must be
lower by what Rayleigh's quotient says, to second order. Axial and torsional waves have no such term.
The rest is discretisation. Order 13 resolves the fourth mode to 1e-8. On an interval of length h two Zannah points
integrate a strain s⁴/24 with an error h⁵/4320 and the deflection of a curvature s³/6 with h⁵/1080, so a mode of wave
number k is off by (kh)⁴/4320 in ω for waves and (kh)⁴ (1/1080 + 1/4320) = (kh)⁴/864 in bending, at most, with h the
widest gap between Gauss points, πL/2n.
"""

from math import pi

import numpy as np
import pytest
from closed_form.beams import beam
from scipy.integrate import quad
from scipy.linalg import eigh
from scipy.optimize import brentq

import lissom as ls

LENGTH = 1.0
POINTS = 96
GAP = pi * LENGTH / 2 / POINTS
MATERIAL = ls.Material(young=2e11, poisson=0.3, density=7800.0)
JOINTS = {"clamped": ls.JointFixed(), "free": ls.JointFree()}
ENDS = pytest.mark.parametrize("end", ["clamped", "free"])


def round_beam(slenderness, basis, end):
    """A steel beam, clamped at its base or free at both ends, without gravity."""
    robot = ls.Robot("beam", gravity=(0, 0, 0))
    section = ls.SectionCircle(LENGTH / slenderness)
    robot.add_link("beam", ls.Rod(LENGTH, section, basis, MATERIAL, gauss_points=POINTS), JOINTS[end])
    return robot.build()


def squared_frequencies(model):
    """Eigenvalues ω² of (tangent stiffness, mass) at rest, rising; coordinates scaled by their inertia first."""
    q = model.neutral()
    K, M = ls.tangent_stiffness(model, q), ls.mass_matrix(model, q)
    np.testing.assert_allclose(K, ls.stiffness_matrix(model), rtol=0, atol=1e-9 * np.abs(K).max())
    d = np.sqrt(np.diag(M))
    scale = np.outer(d, d)
    return eigh((K + K.T) / 2 / scale, M / scale, eigvals_only=True)


def elastic_frequencies(model, end):
    """The frequencies above the rigid motions, of which a free beam has six and a clamped one none."""
    squares = squared_frequencies(model)
    rigid = 6 if end == "free" else 0
    assert np.all(np.abs(squares[:rigid]) < 1e-6 * squares[rigid]), "rigid motions have no stiffness"
    assert squares[rigid] > 0
    return np.sqrt(squares[rigid:])


def bending_roots(end):
    """βL of the first four modes: cos βL cosh βL = −1 clamped-free, +1 free-free."""
    sign = 1.0 if end == "clamped" else -1.0
    first = 0.5 if end == "clamped" else 1.5
    guesses = pi * (first + np.arange(4))
    return np.array([brentq(lambda x: np.cos(x) + sign / np.cosh(x), g - 0.6, g + 0.6, xtol=1e-14) for g in guesses])


def slope_ratio(beta, end):
    """∫φ'² / ∫φ² of a mode, for unit length."""
    if end == "clamped":
        c = (np.cosh(beta) + np.cos(beta)) / (np.sinh(beta) + np.sin(beta))
        phi = lambda x: np.cosh(beta * x) - np.cos(beta * x) - c * (np.sinh(beta * x) - np.sin(beta * x))  # noqa: E731
        slope = lambda x: np.sinh(beta * x) + np.sin(beta * x) - c * (np.cosh(beta * x) - np.cos(beta * x))  # noqa: E731
    else:
        c = (np.cosh(beta) - np.cos(beta)) / (np.sinh(beta) - np.sin(beta))
        phi = lambda x: np.cosh(beta * x) + np.cos(beta * x) - c * (np.sinh(beta * x) + np.sin(beta * x))  # noqa: E731
        slope = lambda x: np.sinh(beta * x) - np.sin(beta * x) - c * (np.cosh(beta * x) + np.cos(beta * x))  # noqa: E731
    return beta**2 * quad(lambda x: slope(x) ** 2, 0, 1)[0] / quad(lambda x: phi(x) ** 2, 0, 1)[0]


def euler_bernoulli(slenderness, end):
    """ω of the first four bending modes [rad/s]."""
    r = LENGTH / slenderness
    return bending_roots(end) ** 2 / LENGTH**2 * np.sqrt(MATERIAL.young * r**2 / 4 / MATERIAL.density)


@ENDS
def test_bending_frequencies_are_those_of_euler_bernoulli(end):
    """The first four, each in both planes, within 1e-4 at L/r = 1000."""
    model = round_beam(1000.0, ls.BasisLegendre(bending_y=13, bending_z=13), end)
    found = elastic_frequencies(model, end)[:8]
    np.testing.assert_allclose(found, np.repeat(euler_bernoulli(1000.0, end), 2), rtol=1e-4)


@ENDS
def test_rotary_inertia_lowers_them_as_rayleigh_says(end):
    """At L/r = 500, ω = ω_EB (1 − (r/2)² ∫φ'²/∫φ² / 2); the next order is the square of that shift."""
    model = round_beam(500.0, ls.BasisLegendre(bending_y=13, bending_z=13), end)
    found = elastic_frequencies(model, end)[:8]
    shift = np.array([0.5 * (0.5 / 500.0) ** 2 * slope_ratio(beta, end) for beta in bending_roots(end)])
    expected = euler_bernoulli(500.0, end) * (1 - shift)
    error = found / np.repeat(expected, 2) - 1
    tolerance = (bending_roots(end) / LENGTH * GAP) ** 4 / 864 + 4 * shift**2 + 1e-8
    np.testing.assert_array_less(np.abs(error), np.repeat(tolerance, 2))


@ENDS
@pytest.mark.parametrize("wave", ["axial", "torsional"])
def test_axial_and_torsional_frequencies(wave, end):
    """(2n − 1)πc/2L clamped-free and nπc/L free-free, c² = E/ρ or G/ρ."""
    basis = ls.BasisLegendre(elongation=13) if wave == "axial" else ls.BasisLegendre(torsion=13)
    modulus = MATERIAL.young if wave == "axial" else MATERIAL.shear
    model = round_beam(500.0, basis, end)
    halves = np.array([1, 3, 5, 7]) if end == "clamped" else np.array([2, 4, 6, 8])
    wave_number = halves * pi / (2 * LENGTH)
    error = elastic_frequencies(model, end)[:4] / (wave_number * np.sqrt(modulus / MATERIAL.density)) - 1
    np.testing.assert_array_less(np.abs(error), (wave_number * GAP) ** 4 / 4320 + 1e-8)


def test_all_strains_together_keep_the_four_families_apart():
    """A rod with all six strains has the same lowest bending, torsional and axial frequencies, shear shifting bending.

    At L/r = 50 Timoshenko's shear and rotary terms are of order (βr/2)²(1 + E/G) = 1e-3 for the first mode: only 1e-3
    is asked of bending, the rest is uncoupled in the straight state and exact.
    """
    model = round_beam(50.0, ls.BasisLegendre(7, 7, 7, 7, 7, 7), "clamped")
    found = elastic_frequencies(model, "clamped")
    np.testing.assert_allclose(found[:2], euler_bernoulli(50.0, "clamped")[0], rtol=1e-3)
    for modulus in (MATERIAL.young, MATERIAL.shear):
        expected = pi / (2 * LENGTH) * np.sqrt(modulus / MATERIAL.density)
        assert np.abs(found / expected - 1).min() < 1e-7


def test_a_tip_mass_alone_gives_the_spring_frequency():
    """A massless cantilever with a point mass m at its tip swings at √(3EI/mL³); order 1 holds its exact shape.

    The curvature under a tip force is linear in s, so the basis is exact; the error comes from the mass of the rod,
    1e-9 of the tip's, of which 33/140 would take part.
    """
    EI, mass = 3.7, 2.1
    light = 1e-9 * mass * np.array([0, 0, 0, 1, 1, 1])
    robot = beam(ls.BasisLegendre(bending_y=1), EI=EI, length=LENGTH, inertia=light)
    robot.add_link("mass", ls.RigidBody(mass), parent="beam")
    squares = squared_frequencies(robot.build())
    assert np.sqrt(squares[0]) == pytest.approx(np.sqrt(3 * EI / mass / LENGTH**3), rel=1e-8)
