"""Buckling of a straight cantilever under a dead axial load at its tip, from the tangent stiffness.

In the straight state the tangent stiffness of an inextensible rod is exactly linear in P: K − P G, where the quadratic
form of G is ∫ θ² ds. On an interval of length h with κ = a + b s the fourth-order Magnus step falls short of ½∫θ² by
b²h⁵/240, so a mode of wave number k buckles late by (kh)⁴/120 of its load: the only error that a spectral basis leaves.
`tangent_stiffness` is good to about 1e-9 by central differences.
"""

from math import pi

import numpy as np
import pytest
from closed_form.beams import beam
from scipy.linalg import eigh
from scipy.optimize import brentq

import lissom as ls

EI, LENGTH = 1.4, 1.3
EULER = pi**2 * EI / (4 * LENGTH**2)
POINTS = 96
LATE = (pi / 2 * pi / 2 / POINTS) ** 4 / 120  # of the first mode: kL = π/2, the widest Gauss gap is πL/2n; 3.6e-9


def column(load, basis, points=POINTS, **stiffness):
    """A cantilever along x pushed back by a dead force at its tip."""
    robot = beam(basis, length=LENGTH, EI=EI, gauss_points=points, **stiffness)
    robot.add_point_load("tip", "beam", force=(-load, 0.0, 0.0))
    return robot.build()


def straight(model, basis, compression):
    """The straight state: every strain at rest but a constant elongation."""
    q = np.zeros(model.nq)
    if basis.elongation is not None:
        q[sum(basis.modes()[:3])] = -compression
    return q


def least_stiffness(load, basis, **stiffness):
    """Smallest eigenvalue of the tangent stiffness in the compressed straight state, which it checks is one."""
    model = column(load, basis, **stiffness)
    q = straight(model, basis, load / stiffness.get("EA", np.inf))
    found = ls.solve_statics(model, q0=q, stable=False).q
    np.testing.assert_allclose(found, q, rtol=0, atol=1e-10)
    T = ls.tangent_stiffness(model, q)
    np.testing.assert_allclose(T, T.T, rtol=0, atol=1e-8 * np.abs(T).max())
    return np.linalg.eigvalsh((T + T.T) / 2)[0]


def test_inextensible_column_buckles_at_euler_load():
    """π²EI/4L²: the smallest eigenvalue is positive below, negative above, and crosses zero there."""
    basis = ls.BasisLegendre(bending_y=9)
    assert least_stiffness(0.999 * EULER, basis) > 0
    assert least_stiffness(1.001 * EULER, basis) < 0
    critical = brentq(lambda load: least_stiffness(load, basis), 0.8 * EULER, 1.2 * EULER, xtol=1e-12, rtol=1e-12)
    assert -1e-9 < critical / EULER - 1 < LATE + 1e-9


def critical_loads(basis, points):
    """All critical loads from two tangent stiffnesses, over the Euler load."""
    relaxed, loaded = (ls.tangent_stiffness(m, np.zeros(m.nq)) for m in (column(0.0, basis, points),
                                                                        column(EULER, basis, points)))  # fmt: skip
    G = relaxed - loaded
    return 1 / eigh((G + G.T) / 2, (relaxed + relaxed.T) / 2, eigvals_only=True)[::-1]


def test_both_planes_and_higher_modes():
    """The loads of all modes are (2n − 1)² π²EI/4L², each twice for a round section, late by (kh)⁴/120 at most.

    Order 13 resolves the third mode, kL = 5π/2, to better than 1e-10.
    """
    modes = np.repeat([1.0, 3.0, 5.0], 2)
    found = critical_loads(ls.BasisLegendre(bending_y=13, bending_z=13), POINTS)[:6]
    late = found / modes**2 - 1
    np.testing.assert_array_less(-1e-8, late)
    np.testing.assert_array_less(late, LATE * modes**4 + 1e-8)


def test_error_falls_with_the_fourth_power_of_the_interval():
    """Twice the Gauss points divide the error of the second load by 16 (the widest gap behaves as 1/(n + ½))."""
    errors = [critical_loads(ls.BasisLegendre(bending_y=11), n)[1] / 9 - 1 for n in (16, 32)]
    order = np.log(errors[0] / errors[1]) / np.log(32.5 / 16.5)
    assert order == pytest.approx(4.0, abs=0.1)


@pytest.mark.parametrize("shear", [False, True])
def test_shortening_and_shear_shift_the_load(shear):
    """A compressible column buckles at P (1 − P/EA) = P_E, one that also shears at P (1 − P/EA + P/GA) = P_E.

    Moment balance m' + r' × n = 0 about the straight state with n = (−P, Pθ) in the section's axes, r' = (1 − P/EA)
    along the section's normal and Pθ/GA across it: EI θ'' + P (1 − P/EA + P/GA) θ = 0. Shortening the column delays
    buckling, shear brings it forward; EA and GA are made soft enough for the shifts to be +5.6 % and −4.6 %.
    """
    EA, GA = 20 * EULER, 10 * EULER
    stiffness = {"EA": EA, "GA": GA}
    basis = ls.BasisLegendre(bending_y=9, elongation=1, shear_z=9 if shear else None)
    factor = -1 / EA + (1 / GA if shear else 0.0)
    expected = (-1 + np.sqrt(1 + 4 * factor * EULER)) / (2 * factor)
    assert (expected > EULER) != shear
    critical = brentq(lambda load: least_stiffness(load, basis, **stiffness), 0.8 * EULER, 1.2 * EULER, rtol=1e-11)
    assert critical == pytest.approx(expected, rel=LATE + 1e-8)


def test_column_bends_to_the_elastica_just_above_the_load():
    """Above P_E the bent branch has the tip angle of the elastica, P/P_E = (2 K(sin α/2)/π)².

    The bent branch magnifies an error in the load by dα/dP = 4/αP near P_E, here about 7 times.
    """
    from scipy.special import ellipk

    alpha = 0.6
    load = EULER * (2 * ellipk(np.sin(alpha / 2) ** 2) / pi) ** 2
    basis = ls.BasisLegendre(bending_y=9)
    model = column(load, basis)
    start = np.zeros(model.nq)
    start[:2] = alpha / LENGTH, -alpha / LENGTH
    q = ls.solve_statics(model, q0=start).q
    R = ls.frame_pose(model, q, "beam")[:3, :3]
    assert abs(np.arctan2(R[0, 2], R[0, 0])) == pytest.approx(alpha, abs=7 * (LATE + 1e-9))
