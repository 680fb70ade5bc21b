"""The default points of rods against many points and closed forms: their error lies below that of the basis."""

import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
from statics.cantilevers import beck_load, loaded

import lissom as ls

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

SILICONE = ls.Material(young=1e6, density=1e3)


def rod_model(basis, points):
    """A clamped rod."""
    robot = ls.Robot("rod")
    robot.add_link("rod", ls.Rod(0.5, ls.SectionCircle(0.01), basis, SILICONE, gauss_points=points))
    return robot.build()


def test_constant_strain_accelerates_as_with_many_points():
    """A rod of constant strain bent by 0.8 rad, whose poses are exact: only the integral of its mass has an error."""
    for basis in (ls.BasisLegendre(bending_y=0), ls.BasisLegendre(torsion=0, bending_y=0, bending_z=0)):
        given, fine = (rod_model(basis, points) for points in (None, 40))
        q = np.zeros(given.nq)
        q[-1] = 0.8 / 0.5
        found, exact = (ls.forward_dynamics(m, q, np.zeros(m.nv)) for m in (given, fine))
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * np.abs(exact).max())


def test_becks_column():
    """Flutter begins within 1e-5 of its load; one exponential in an interval puts it at 20.072, 1e-3 too late."""
    model = loaded(ls.BasisLegendre(bending_y=8), None, force=(-1.0, 0, 0), frame="body")
    (event,) = ls.continuation(model, factor_range=(18.0, 22.0), step=0.5).events
    assert event.kind == "flutter"
    assert event.factor == pytest.approx(beck_load(), rel=1e-5)


@pytest.mark.parametrize("order", [6, 8, 10, 14])
def test_follower_beam(order):
    """The paper's beam at 130 kN, which turns through half a circle and back: the tip stands where 160 points put it,
    to a tenth of the error of the basis or, where that is smaller, to 2e-5 of the length."""
    from follower_beam import DIAMETER, LENGTH, YOUNG, exact_shape

    def tip(points):
        robot = ls.Robot("follower beam", gravity=(0, 0, 0))
        rod = ls.Rod(LENGTH, ls.SectionCircle(DIAMETER / 2), ls.BasisLegendre(bending_y=order),
                     ls.Material(young=YOUNG, density=1000), gauss_points=points)  # fmt: skip
        robot.add_link("beam", rod)
        robot.add_point_load("follower", "beam", force=lambda t: (0.0, 0.0, t), frame="body")
        model = robot.build()
        q = model.neutral()
        for load in np.linspace(0.0, 130e3, 14)[1:]:
            q = ls.solve_statics(model, q0=q, t=float(load), stable=False).q
        return ls.frame_pose(model, q, "beam")[[0, 2], 3] / LENGTH

    exact = exact_shape(130e3, np.array([1.0]))[0] / LENGTH
    given, fine = tip(None), tip(160)
    assert np.linalg.norm(given - fine) < max(0.1 * np.linalg.norm(fine - exact), 2e-5)


def elastica_tip(load):
    """(x, y) of a cantilever of length 1 under a dead force across its base, PL²/EI = load (Bisshopp and Drucker)."""
    with mpmath.workdps(30):
        alpha = mpmath.sqrt(load)

        def parts(angle):
            m = (1 + mpmath.sin(angle)) / 2
            return m, mpmath.asin(1 / mpmath.sqrt(2 * m))

        def gap(angle):
            m, phi = parts(angle)
            return mpmath.ellipk(m) - mpmath.ellipf(phi, m) - alpha

        angle = mpmath.findroot(gap, (1.2, 1.5), solver="anderson")
        m, phi = parts(angle)
        y = 1 - 2 * (mpmath.ellipe(m) - mpmath.ellipe(phi, m)) / alpha
        return np.array([float(mpmath.sqrt(2 * mpmath.sin(angle)) / alpha), float(y)])


def test_bisshopp_and_drucker():
    """A dead force of 10 EI/L² across a cantilever, at an order that resolves it: within 1e-6 of the length."""
    model = loaded(ls.BasisLegendre(bending_y=12), None, force=(0, 0, 10.0))
    x, _, z = ls.frame_pose(model, ls.solve_statics(model).q, "beam")[:3, 3]
    np.testing.assert_allclose([x, z], elastica_tip(10.0), rtol=0, atol=1e-6)
