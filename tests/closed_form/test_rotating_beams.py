"""Modes about steady rotation: the rotating cantilever, whirling shafts and the top, against their closed forms.

The blade is an Euler-Bernoulli beam without rotary inertia that neither stretches nor shears, on a hub of no radius.
With lengths in L and times in L² √(ρA/EI) its flapping out of the plane of rotation obeys

    φ'''' − ½ γ² ((1 − x²) φ')' = ω² φ,   φ = φ' = 0 at 0,   φ'' = φ''' = 0 at 1                         (1)

and its lagging in the plane the same with ω² + γ². Polynomials x² P_k(2x − 1) up to degree 21 solve (1) to 1e-11; the
table of the literature has the digits of (2) in D. H. Hodges and M. J. Rutkowski, AIAA J. 19, 1981. The error of the
library is that of the Magnus steps, below (kh)⁴/864 as in test_frequencies with k² = ω: 7e-8 at most of the first
mode.
"""

import numpy as np
import pytest
from numpy.polynomial import Legendre, Polynomial
from scipy.linalg import eigh

import lissom as ls

TABLE = {0: 3.51602, 1: 3.68165, 2: 4.13732, 3: 4.79728, 4: 5.58500, 5: 6.44954, 6: 7.36037, 12: 13.17015}
GAP = np.pi / 2 / 64  # widest between the Gauss points of a blade
MASS, RADIUS, LENGTH, BENDING = 0.8, 0.05, 0.6, 40.0  # of the disc and the light shaft that carries it
POLAR, ACROSS = 0.5 * MASS * RADIUS**2, 0.25 * MASS * RADIUS**2


def spinning(robot, link, speed):
    """The robot with a joint that turns at a constant speed."""
    robot.add_joint_motion(f"spin of {link}", link, position=lambda t: speed * t, velocity=lambda t: speed,
                           acceleration=lambda t: 0.0)  # fmt: skip
    return robot


def blade(gamma, order=10):
    """A beam of unit stiffness and mass that turns about z."""
    robot = ls.Robot("blade", gravity=(0, 0, 0))
    section = ls.SectionGeneral(stiffness=(1, 1, 1, 1, 1, 1), inertia=(0, 0, 0, 1, 1, 1))
    rod = ls.Rod(1.0, section, ls.BasisLegendre(bending_y=order, bending_z=order), gauss_points=64)
    robot.add_link("blade", rod, ls.JointRevolute((0, 0, 1)))
    return spinning(robot, "blade", gamma).build()


def galerkin(gamma):
    """ω of (1), rising."""
    x, w = np.polynomial.legendre.leggauss(40)
    x, w = 0.5 * (x + 1.0), 0.5 * w
    lift = Polynomial([0.0, 0.0, 1.0])
    shapes = [lift * Legendre.basis(k, domain=[0, 1]).convert(kind=Polynomial) for k in range(14)]
    phi, slope, bend = (np.array([p.deriv(n)(x) if n else p(x) for p in shapes]) for n in range(3))
    K = (bend * w) @ bend.T + 0.5 * gamma**2 * (slope * w * (1.0 - x**2)) @ slope.T
    return np.sqrt(eigh(K, (phi * w) @ phi.T, eigvals_only=True))


@pytest.mark.parametrize("gamma", TABLE)
def test_rotating_cantilever(gamma):
    """Two modes of flapping meet Galerkin's solution, which is the table's to its digits, and two of lagging that with
    ω² − γ²; nothing grows or decays."""
    model = blade(float(gamma))
    exact = galerkin(gamma)
    assert abs(exact[0] - TABLE[gamma]) < 6e-6
    found = ls.modes(model, model.neutral())
    lag = np.sqrt(exact[:2] ** 2 - gamma**2)
    magnus = (exact[:2] * GAP**2) ** 2 / 864 + 1e-10
    np.testing.assert_array_less(np.abs(found.frequencies[[1, 3]] / exact[:2] - 1), magnus)
    np.testing.assert_array_less(np.abs(found.frequencies[[0, 2]] / lag - 1), magnus * (exact[:2] / lag) ** 2)
    assert abs(found.frequencies[1] / TABLE[gamma] - 1) < 1e-6 + 6e-6 / TABLE[gamma]
    assert not found.exponents.real.any() and not found.damping_ratios.any()


def test_the_same_blade_turned_by_its_velocity():
    """Without a prescribed motion the velocity says as much, and rest is what v = 0 says."""
    model = blade(5.0)
    assert ls.modes(model, model.neutral()).v[0] == 5.0
    rest = ls.modes(model, model.neutral(), v=np.zeros(model.nv))
    np.testing.assert_allclose(rest.frequencies[:2], galerkin(0.0)[0], rtol=1e-8)
    turned = blade(0.0)
    speed = np.zeros(model.nv)
    speed[0] = 5.0
    same = ls.modes(turned, model.neutral(), v=speed).frequencies
    np.testing.assert_allclose(same, ls.modes(model, model.neutral()).frequencies, rtol=1e-12)


def light_shaft():
    """A rod without mass that bends as a cubic, which is all that a load at its end makes of it."""
    section = ls.SectionGeneral(stiffness=(1, BENDING, BENDING, 1, 1, 1), inertia=(0, 0, 0, 0, 0, 0))
    return ls.Rod(LENGTH, section, ls.BasisLegendre(bending_y=1, bending_z=1), gauss_points=32)


def disc():
    """A disc across the x axis."""
    return ls.RigidBody(MASS, inertia=(POLAR, ACROSS, ACROSS))


def overhung(speed, *, turning):
    """A disc at the end of a light shaft, which turns with it or stands still."""
    robot = ls.Robot("rotor", gravity=(0, 0, 0))
    about_x = ls.JointRevolute((1, 0, 0))
    robot.add_link("shaft", light_shaft(), about_x if turning else None)
    robot.add_link("disc", disc(), None if turning else about_x, parent="shaft")
    return spinning(robot, "shaft" if turning else "disc", speed).build()


def whirl_of_overhung(speed):
    """The four ω of det(K − ω² M + ω Ω P) = 0 for deflection and slope at the end, backward ones negative."""
    K = BENDING / LENGTH**3 * np.array([[12.0, -6.0 * LENGTH], [-6.0 * LENGTH, 4.0 * LENGTH**2]])
    deflection, slope = (Polynomial(x) for x in ([K[0, 0], 0, -MASS], [K[1, 1], speed * POLAR, -ACROSS]))
    return np.sort((deflection * slope - Polynomial([K[0, 1] ** 2])).roots().real)


@pytest.mark.parametrize("speed", [0.0, 30.0, 400.0])
def test_whirl_of_a_disc_on_a_shaft(speed):
    """Forward and backward whirl of an overhung disc: as they are where the shaft stands and the disc spins, less and
    more by the speed where the coordinates turn with the shaft; and which is which, by the shapes of the tip."""
    exact = whirl_of_overhung(speed)
    model = overhung(speed, turning=False)
    found = ls.modes(model, model.neutral())
    order = np.argsort(np.abs(exact))
    np.testing.assert_allclose(found.frequencies, np.abs(exact[order]), rtol=1e-7)
    if speed:
        moved = ls.frame_jacobian(model, model.neutral(), "shaft")[3:] @ found.shapes
        area = np.imag(moved[1].conj() * moved[2])
        np.testing.assert_array_equal(np.sign(-area), np.sign(exact[order]))
        np.testing.assert_allclose(moved[2] / moved[1], -1j * np.sign(exact[order]), atol=1e-6)
    turning = overhung(speed, turning=True)
    seen = ls.modes(turning, turning.neutral()).frequencies
    np.testing.assert_allclose(seen, np.sort(np.abs(exact - speed)), rtol=1e-7, atol=1e-5)


def test_whirl_of_a_supported_shaft():
    """A turning shaft with rotary inertia on two supports: (A + I k²) ω² − 2 I k² Ω ω = EI k⁴/ρ for k = nπ/L."""
    speed, gyration = 3.0, 0.05
    robot = ls.Robot("shaft", gravity=(0, 0, 0))
    section = ls.SectionGeneral(stiffness=(1, 1, 1, 1, 1, 1), inertia=(2 * gyration, gyration, gyration, 1, 1, 1))
    rod = ls.Rod(1.0, section, ls.BasisLegendre(bending_y=10, bending_z=10), gauss_points=64)
    robot.add_link("bearing", None, ls.JointRevolute((1, 0, 0)))
    robot.add_link("shaft", rod, ls.JointUniversal((0, 1, 0), (0, 0, 1)), parent="bearing")
    at = np.eye(4)
    at[0, 3] = 1.0
    robot.add_link("slider", ls.RigidBody(1e-3), ls.JointPrismatic((1, 0, 0)), placement=at)
    robot.add_loop("support", "shaft", "slider", joint=ls.JointSpherical())
    model = spinning(robot, "bearing", speed).build()
    found = ls.modes(model, model.neutral()).frequencies
    k = np.pi * np.arange(1, 4)
    heavy, turned = 1.0 + gyration * k**2, gyration * k**2 * speed
    root = np.sqrt(turned**2 + heavy * k**4)
    exact = np.concatenate([(turned + root) / heavy - speed, (root - turned) / heavy + speed])
    np.testing.assert_allclose(found[:6], np.sort(np.abs(exact)), rtol=1e-6)


@pytest.mark.parametrize("spin", [20.0, 60.0])
def test_sleeping_top(spin):
    """An upright top on a spherical joint: I₁ λ² − I₃ n λ + m g l = 0 in space, λ − n in its own axes. Where the roots
    are complex it falls over, by the same numbers."""
    mass, height, own, polar = 0.3, 0.04, 3e-4, 4e-4
    robot = ls.Robot("top")
    across = own + mass * height**2  # about the point
    robot.add_link("top", ls.RigidBody(mass, (0, 0, height), (own, own, polar)), ls.JointSpherical())
    model = robot.build()
    found = ls.modes(model, model.neutral(), v=[0.0, 0.0, spin])
    exact = 1j * (np.roots([across, -polar * spin, mass * 9.81 * height]) - spin)
    whirl = found.exponents[found.exponents.imag > 1.0]
    assert np.abs(found.exponents[found.exponents.imag <= 1.0]).max() < 1e-5  # turning about its axis
    expected = np.where(exact.imag > 0, exact, exact.conj())
    for one in expected:
        assert np.abs(whirl - one).min() < 1e-8 * abs(one)
    assert (found.exponents.real.max() > 1.0) == (spin < np.sqrt(4 * across * mass * 9.81 * height) / polar)
