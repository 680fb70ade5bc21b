"""Rods in a fluid: frequencies, floating at any pose, drifting with a current, momentum, and slender-body theory."""

from math import pi

import numpy as np
import pytest

import lissom as ls

RHO, LENGTH = 1000.0, 0.6
IDEAL = ls.Hydrodynamics(drag_normal=0.0, drag_tangent=0.0)
DRY = ls.Hydrodynamics(drag_normal=0.0, drag_tangent=0.0, added_mass=0.0)
BENT = ls.BasisLegendre(torsion=2, bending_y=2, bending_z=2, elongation=1)
SECTIONS = {
    "circle": ls.SectionCircle((0.03, 0.01)),
    "annulus": ls.SectionAnnulus(0.03, 0.02),
    "ellipse": ls.SectionEllipse((0.03, 0.01), 0.015),
    "rectangle": ls.SectionRectangle(0.03, (0.05, 0.01)),
    "polygon": ls.SectionPolygon([(0.0, 0.0), (0.05, -0.01), (0.02, 0.03)], (1.0, 0.5)),
    "general": ls.SectionGeneral(stiffness=(1, 1, 1, 1e4, 1e4, 1e4), shape=ls.SectionEllipse(0.01, 0.02)),
}


def silicone(density=RHO, viscosity=0.0):
    """A soft material."""
    return ls.Material(young=1e6, poisson=0.5, density=density, viscosity=viscosity)


def moved(model, seed, size=0.5):
    """A random configuration, far from the neutral one."""
    return ls.integrate(model, model.neutral(), size * np.random.default_rng(seed).normal(size=model.nv))


@pytest.mark.parametrize("density", [1000.0, 2500.0])
def test_water_lowers_the_frequencies_of_a_beam(density):
    """Purpose: by √(m/(m + m_A)), with the added mass ρπb² of the half-width b across the bending.

    Rotary inertia, which the water does not change, is (b/2L)² · 4.65/2 of the first mode, 2e-6 with b = L/600. In
    torsion there is nothing else: √(J/(J + J_A)) with J_A = ρπ(b_y² − b_z²)²/8, for each mode of the rod.
    """
    b_y, b_z = 1e-3, 0.4e-3
    basis = ls.BasisLegendre(torsion=4, bending_y=6, bending_z=6)
    found = {}
    for name, felt in (("dry", DRY), ("wet", IDEAL)):
        robot = ls.Robot("beam", gravity=(0, 0, 0))
        robot.add_link("beam", ls.Rod(LENGTH, ls.SectionEllipse(b_y, b_z), basis, silicone(density), gauss_points=24))
        robot.set_fluid(RHO, default=felt)
        modes = ls.modes(robot.build(), np.zeros(basis.size))
        kind = np.argmax([np.abs(part).max(axis=0) for part in np.split(modes.shapes, (5, 12))], axis=0)
        found[name] = [modes.frequencies[kind == k] for k in range(3)]
    m = density * pi * b_y * b_z
    polar, added = m * (b_y**2 + b_z**2) / 4, RHO * pi * (b_y**2 - b_z**2) ** 2 / 8
    expected = (polar / (polar + added), m / (m + RHO * pi * b_y**2), m / (m + RHO * pi * b_z**2))
    for k, tolerance in ((0, 1e-9), (1, 3e-6), (2, 3e-6)):
        modes = slice(None) if k == 0 else slice(1)
        ratio = found["wet"][k][modes] / found["dry"][k][modes]
        np.testing.assert_allclose(ratio, np.sqrt(expected[k]), rtol=tolerance)


@pytest.mark.parametrize("name", SECTIONS)
def test_neutrally_buoyant_rods_keep_still(name):
    """Purpose: at any pose, as a rigid body and in every strain; so does an air-filled tube as heavy as its water.

    The area in a smooth outline is extrapolated from polygons, 5e-11 off; a rectangle's is exact.
    """
    heavy = {"annulus": RHO * 0.03**2 / (0.03**2 - 0.02**2)}.get(name, RHO)
    robots = [ls.Robot("rod"), ls.Robot("rod")]
    for robot in robots:
        robot.add_link("rod", ls.Rod(LENGTH, SECTIONS[name], BENT, silicone(heavy)), ls.JointFree())
        robot.add_link("ball", ls.RigidBody.box(0.1, 0.2, 0.05, density=RHO), parent="rod")
        robot.add_link("tail", ls.RigidBody.cylinder(0.2, 0.02, density=RHO), ls.JointUniversal(), "rod", at=0.5)
    robots[1].set_fluid(RHO)
    dry, wet = (robot.build() for robot in robots)
    for seed in range(3):
        q = moved(wet, seed)
        pull, weight = (ls.external_force(model, q, np.zeros(model.nv)) for model in (wet, dry))
        rows = np.abs(weight) > 1e-3 * np.abs(weight).max()
        assert rows[:6].all(), "weight and its moment are there without water"
        assert np.abs(pull).max() < 1e-10 * np.abs(weight).max()


def swimmer(current=None, velocity=(0.0, 0.0, 0.0)):
    """A heavy body with two rods and a revolute joint that feel all a fluid does; and it at a velocity."""
    robot = ls.Robot("swimmer")
    section = ls.SectionEllipse((0.02, 0.01), (0.03, 0.02))
    rod = ls.Rod(0.3, section, ls.BasisLegendre(torsion=1, bending_y=1, bending_z=2), silicone(1200.0, 1e4))
    robot.add_link("body", ls.RigidBody.box(0.1, 0.08, 0.06, density=1300), ls.JointFree())
    robot.add_link("fin", rod, ls.JointRevolute((0, 0, 1)), "body")
    robot.add_link("tail", rod, parent="body", placement=np.diag([-1.0, -1.0, 1.0, 1.0]))
    felt = ls.Hydrodynamics(drag_normal=1.1, drag_tangent=0.02, lift=0.2, tail=True)
    robot.set_fluid(RHO, current=current, default=ls.Hydrodynamics(), links={"fin": felt, "tail": felt})
    model = robot.build()
    v = np.zeros(model.nv)
    v[:6] = 0.5, 1.0, -0.7, *velocity
    return model, v


@pytest.mark.parametrize("as_function", [False, True])
def test_motion_in_a_current_is_motion_in_still_water_moved_along(as_function):
    """Purpose: Galilei: released in a steady current c, a robot moves as one shot into still water with −c, plus c t.

    Free base, soft links, drag, lift and wake; both motions are good to 1e-8 a step.
    """
    c = np.array([0.4, -0.2, 0.3])
    options = {"method": "bdf", "rtol": 1e-8, "atol": 1e-10, "t_eval": np.linspace(0, 1.0, 21)}
    drifting, v = swimmer((lambda t: tuple(c)) if as_function else tuple(c))
    still, shot = swimmer(None, tuple(-c))
    one, other = ls.simulate(drifting, 1.0, v0=v, **options), ls.simulate(still, 1.0, v0=shot, **options)
    apart = one.q - other.q
    apart[:, 4:7] -= np.multiply.outer(one.t, c)
    assert np.abs(apart).max() < 1e-5
    assert np.abs(one.q[:, 7:]).max() > 0.1 and np.ptp(other.q[:, 4:7], axis=0).min() > 0.05, "it moves and bends"


def test_soft_body_in_an_ideal_fluid_keeps_its_impulse():
    """Purpose: without drag, tail and gravity the linear impulse of rods, bodies and their water is constant, and the
    energy, elastic and kinetic, too."""
    robot = ls.Robot("eel", gravity=(0, 0, 0))
    rod = ls.Rod(0.4, ls.SectionEllipse((0.02, 0.01), (0.04, 0.02)), BENT, silicone(1100.0))
    robot.add_link("head", ls.RigidBody.cylinder(0.1, 0.03, density=900.0), ls.JointFree())
    robot.add_link("eel", rod, parent="head")
    robot.set_fluid(RHO, default=IDEAL)
    model = robot.build()
    q0 = model.neutral()
    q0[[7, 10, 13]] = 2.0, 3.0, -2.0
    v0 = np.zeros(model.nv)
    v0[:6] = 0.2, -0.4, 0.5, 0.3, -0.5, 0.2
    motion = ls.simulate(model, 1.0, q0, v0, method="bdf", rtol=1e-9, atol=1e-11, t_eval=np.linspace(0, 1, 41))
    R = ls.frame_pose(model, motion.q, "head")[:, :3, :3]
    M = ls.mass_matrix(model, motion.q)
    P = np.einsum("tij,tjk,tk->ti", R, M[:, 3:6], motion.v)
    np.testing.assert_allclose(P, np.broadcast_to(P[0], P.shape), rtol=0, atol=1e-5 * np.linalg.norm(P[0]))
    E = ls.energy(model, motion.q, motion.v)
    assert np.abs(E.total - E.total[0]).max() < 1e-5 * np.ptp(E.elastic)
    assert np.ptp(E.elastic) > 0.2 * E.total[0]


def test_energy_balances_with_drag_and_wake():
    """Purpose: energy lost = work of weight, drag, lift, wake and of a current that varies, to the error of the steps
    and of Simpson's rule over rows 1/2000 s apart."""
    for current in (None, lambda t: (0.3 * np.sin(4 * t), 0.2, 0.1 * np.cos(3 * t))):
        model, v = swimmer(current, (0.8, -0.4, 0.1))
        motion = ls.simulate(model, 1.0, v0=v, rtol=1e-8, atol=1e-10, t_eval=np.linspace(0, 1, 2001))
        balance = ls.energy_balance(model, motion)
        assert balance.residual < 1e-5
        assert np.abs(balance.work[-1]) > 0.1 * balance.kinetic[0]


def oblique(felt, velocity, section):
    """The wrench that holds a straight rod, its nose in front, at a steady velocity: moment about the nose, force."""
    robot = ls.Robot("rod", gravity=(0, 0, 0))
    robot.add_link("rod", ls.Rod(LENGTH, section, BENT, silicone(), gauss_points=12), ls.JointFree())
    robot.set_fluid(RHO, default=felt)
    model = robot.build()
    v = np.zeros(model.nv)
    v[3:6] = velocity
    return ls.inverse_dynamics(model, model.neutral(), v, np.zeros(model.nv))[:6]


@pytest.mark.parametrize("velocity", [(-2.0, 0.3, 0.0), (1.5, 0.2, -0.4)])
def test_closed_slender_body_feels_the_moment_of_munk_alone(velocity):
    """Purpose: at a steady oblique velocity the reactive force vanishes (d'Alembert); the moment is u × ∫ M_A u ds."""
    section = ls.SectionEllipse((0.03, 0.01), 0.02)
    wrench = oblique(IDEAL, velocity, section)
    s = np.polynomial.legendre.leggauss(12)
    y = 0.03 - 0.02 * (s[0] + 1) / 2
    mass = RHO * pi * LENGTH * np.array([0.0, 0.02**2, (s[1] / 2) @ y**2])
    np.testing.assert_allclose(wrench[:3], np.cross(velocity, mass * velocity), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(wrench[3:], 0.0, rtol=0, atol=1e-12)


def test_open_tail_lifts_as_a_slender_wing():
    """Purpose: lift m_tail U V and induced drag ½ lift V/U (Jones): the effect of the wake of the tail beside Munk's
    moment.

    The rod points backwards and flies along −x with U, and across with V: lift is against V, and its lever is the rod.
    """
    section, U, V = ls.SectionEllipse(0.01, (0.02, 0.05)), 2.0, 0.1
    velocity = (-U, V, 0.0)
    with_tail = ls.Hydrodynamics(drag_normal=0.0, drag_tangent=0.0, tail=True)
    needed = oblique(with_tail, velocity, section) - oblique(IDEAL, velocity, section)
    mass = RHO * pi * 0.05**2
    lift, flight = mass * U * V, np.array(velocity) / np.hypot(U, V)
    np.testing.assert_allclose(needed[3:], [0.5 * mass * V**2, lift, 0.0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(needed[:3], [0.0, 0.0, LENGTH * lift], rtol=1e-12, atol=1e-12)
    assert needed[3:] @ flight == pytest.approx(0.5 * lift * V / U, rel=(V / U) ** 2)


@pytest.mark.parametrize("felt", [ls.Hydrodynamics(drag_normal=0.0, drag_tangent=0.0), ls.Hydrodynamics(lift=0.3)])
def test_water_pushes_in_the_middle_of_a_section(felt):
    """Purpose: a rectangle whose centreline runs along another line feels the forces of one about its middle: added
    inertia and drag as matrices, moved by the twist of the middle, and buoyancy there."""
    half, d = np.array([0.02, 0.01]), np.array([0.0, 0.013, -0.004])
    corners = half * [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    about, aside = (felt.of_rod(ls.SectionPolygon(x), 0.3, RHO, "") for x in (corners, corners + d[1:]))
    plain = felt.of_rod(ls.SectionRectangle(*(2 * half)), 0.3, RHO, "")
    np.testing.assert_allclose(about.added, plain.added, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(about.drag, plain.drag, rtol=1e-12, atol=1e-15)
    assert not plain.centre.any() and not about.centre.any()
    np.testing.assert_allclose(aside.centre, d, rtol=0, atol=1e-15)
    twist, rate = np.random.default_rng(0).normal(size=(2, 6))
    moved = [np.concatenate([x[:3], x[3:] + np.cross(x[:3], d)]) for x in (twist, rate)]
    for there, here in ((plain.added, aside.added), (plain.drag, aside.drag)):
        force = there @ moved[1]
        assert moved[0] @ force == pytest.approx(twist @ here @ rate, rel=1e-12)
        expected = np.concatenate([force[:3] + np.cross(d, force[3:]), force[3:]])
        np.testing.assert_allclose(here @ rate, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert aside.volume == pytest.approx(plain.volume, rel=1e-12)
