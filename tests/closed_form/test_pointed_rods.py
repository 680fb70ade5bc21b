"""Rods that taper to a point: mass, deflection and frequencies of cones by closed forms and own integrals.

The radius of a cone of length L is R (1 − s). Its mass is ρπR²L/3. Clamped and level, under its own weight it has at s
the moment ρgπR²L²(1 − s)⁴/12 and the bending stiffness EπR⁴(1 − s)⁴/4, so that its curvature is ρgL²/(3ER²)
everywhere, up to the point.
"""

import numpy as np
import pytest
from scipy.linalg import eigh

import lissom as ls

LENGTH, RADIUS, YOUNG, DENSITY = 0.3, 0.01, 1e6, 1000.0
SOFT = ls.Material(young=YOUNG, poisson=0.3, density=DENSITY, viscosity=1e3)
SIDE = 2.0 * RADIUS
SECTIONS = {  # with the curvature relative to that of the cone, (area / second moment of area) R²/4
    "circle": (ls.SectionCircle((RADIUS, 0.0)), 1.0),
    "function": (ls.SectionCircle(lambda s: RADIUS * (1.0 - s)), 1.0),
    "ellipse": (ls.SectionEllipse((SIDE, 0.0), (RADIUS, 0.0)), 1.0),
    "rectangle": (ls.SectionRectangle((SIDE, 0.0), (SIDE, 0.0)), 0.75),
    "polygon": (ls.SectionPolygon([(1, 1), (-1, 1), (-1, -1), (1, -1)], scale=(RADIUS, 0.0)), 0.75),
}


def cone(section=SECTIONS["circle"][0], gravity=9.81, joint=None, **strains):
    """A robot of one cone, clamped level or on a joint."""
    robot = ls.Robot("cone", gravity=(0.0, 0.0, -gravity))
    basis = ls.BasisLegendre(**(strains or {"bending_y": 2}))
    robot.add_link("cone", ls.Rod(LENGTH, section, basis, SOFT), *([] if joint is None else [joint]))
    return robot


@pytest.mark.parametrize("name", SECTIONS)
def test_own_weight_bends_to_an_arc(name):
    """Purpose: constant curvature under a small weight, and the tip on the circle of this curvature."""
    section, ratio = SECTIONS[name]
    gravity = 1e-3
    model = cone(section, gravity).build()
    found = ls.solve_statics(model)
    bend = ratio * DENSITY * gravity * LENGTH**2 / (3.0 * YOUNG * RADIUS**2)
    scale = found.q[0] / bend
    np.testing.assert_allclose(found.q, [scale * bend, 0.0, 0.0], rtol=0, atol=1e-8 * bend)
    assert scale == pytest.approx(1.0, rel=1e-8)  # the weight turns with the rod: (κL)² = 1e-8
    tip = ls.frame_pose(model, found.q, "cone", s=1.0)[:3, 3]
    assert tip[2] == pytest.approx(-bend * LENGTH**2 / 2.0, rel=1e-8)


def test_mass_and_centre():
    """Purpose: mass, and the moments of inertia about the wide end, of a solid cone."""
    mass = DENSITY * np.pi * RADIUS**2 * LENGTH / 3.0
    free = cone(joint=ls.JointFree()).build()
    M = ls.mass_matrix(free, free.neutral())[:6, :6]
    np.testing.assert_allclose(np.diag(M[3:, 3:]), mass, rtol=1e-12)
    assert abs(M[2, 4]) == pytest.approx(mass * LENGTH / 4.0, rel=1e-12)
    assert M[0, 0] == pytest.approx(0.3 * mass * RADIUS**2, rel=1e-12)
    assert M[1, 1] == pytest.approx(mass * (0.1 * LENGTH**2 + 0.15 * RADIUS**2), rel=1e-12)


def test_frequencies():
    """Purpose: the two lowest vibrations, against Ritz's method with w = s², … s⁹ and exact integrals of a beam whose
    sections turn with inertia."""
    power = np.polynomial.polynomial
    shapes = [np.eye(10)[k] for k in range(2, 10)]
    area, second = (power.polypow([1.0, -1.0], k) for k in (2, 4))

    def integral(weight, one, other):
        whole = power.polyint(power.polymul(weight, power.polymul(one, other)))
        return power.polyval(1.0, whole)

    J, A = np.pi * RADIUS**4 / 4.0, np.pi * RADIUS**2
    slopes, bends = ([power.polyder(x, k) for x in shapes] for k in (1, 2))
    K = [[YOUNG * J / LENGTH**3 * integral(second, x, y) for x in bends] for y in bends]
    M = [[DENSITY * (A * LENGTH * integral(area, x, y) + J / LENGTH * integral(second, a, b))
          for x, a in zip(shapes, slopes)] for y, b in zip(shapes, slopes)]  # fmt: skip
    expected = np.sqrt(eigh(K, M, eigvals_only=True)[:2])
    robot = cone(gravity=0.0, bending_y=8)
    model = robot.build()
    found = np.sort(np.abs(ls.modes(model, model.neutral()).frequencies))[:2]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_points_swim_touch_and_are_saved(tmp_path):
    """Purpose: motions in water and onto a plane, with surfaces and with balls, and the robot file, have no trouble at
    the point."""
    for surface in (False, True):
        robot, below = cone(), np.eye(4)
        below[2, 3] = -0.05
        robot.set_fluid(50.0)
        robot.add_contact("floor", "cone", ls.ShapePlane(), placement=below, stiffness=1e4, surface=surface)
        end = ls.simulate(robot.build(), 0.5, t_eval=[0.5])
        assert np.isfinite(end.q).all()
    ls.save_robot(robot, tmp_path / "cone.yaml")
    again = ls.load_robot(tmp_path / "cone.yaml").build()
    np.testing.assert_array_equal(ls.solve_statics(again).q, ls.solve_statics(robot.build()).q)


@pytest.mark.parametrize("radius", [0.0, (0.0, 0.0), (RADIUS, -1e-9), lambda s: RADIUS * abs(2.0 * s - 1.0)])
def test_points_between_the_ends_are_refused(radius):
    """Purpose: a rod without thickness, with a negative one, or with none in its middle."""
    with pytest.raises(ls.ModelError, match="radius"):
        cone(ls.SectionCircle(radius)).build()
