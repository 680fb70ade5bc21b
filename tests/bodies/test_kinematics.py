"""Kinematics of deformable bodies: laws that all obey, closed forms, and the native rod."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from bodies.kinematics_makers import KINDS, PRIMITIVES, RADIUS, L, composed

import lissom as ls
from lissom.bodies.domains import DomainCylinder
from lissom.bodies.strains import InflationBumps, KinematicsStrain
from lissom.robot.bases import BasisCustom, BasisLegendre
from lissom.robot.poses import compiled

jax = pytest.importorskip("jax")
DOMAIN = DomainCylinder(L, RADIUS, 2)
POINTS = DOMAIN.points


def large(kind, seed=0):
    """Random coordinates of a kind at a large but regular shape."""
    return KINDS[kind][1] * np.random.default_rng(seed).uniform(-1, 1, KINDS[kind][0].n)


def mover(kinematics, points):
    """Positions of points as a function of θ, compiled once."""
    positions = compiled(lambda q: kinematics.positions(points, q))
    return lambda q: np.asarray(positions(q))


@pytest.mark.parametrize("kind", KINDS)
def test_laws(kind):
    """f(x, 0) = x exactly; fixed points move as single ones do; FᵀF is that of differences of the motion along x."""
    kinematics = KINDS[kind][0]
    kinematics.check("here")
    assert kinematics.n == len(KINDS[kind][1])
    moved = mover(kinematics, POINTS)
    np.testing.assert_allclose(moved(np.zeros(kinematics.n)), POINTS, atol=1e-15)
    q = large(kind)
    few = POINTS[::7]
    mapped = compiled(jax.vmap(kinematics.map, (0, None)))
    one = lambda points, q: np.asarray(mapped(points, q))  # noqa: E731
    np.testing.assert_allclose(one(few, q), moved(q)[::7], atol=1e-15)
    F = np.asarray(compiled(lambda q: kinematics.deformations(few, q))(q))
    h = 1e-3 * RADIUS * np.eye(3)
    slope = np.stack([8 * (one(few + d, q) - one(few - d, q)) - one(few + 2 * d, q) + one(few - 2 * d, q)
                      for d in h], axis=-1) / (12 * h[0, 0])  # fmt: skip
    stretched = [np.einsum("kai,kaj->kij", X, X) for X in (F, slope)]
    np.testing.assert_allclose(*stretched, atol=2e-6)  # of the integrator along curves that are not of constant strain
    volume = np.linalg.det(F)
    assert (volume > 0.2).all()
    if kinematics.keeps_volume:
        np.testing.assert_allclose(volume, 1.0, atol=1e-12)


@pytest.mark.parametrize("kind", ["planar", "constant strain", "gaussian", "bumps", "volume preserving"])
def test_derivatives_at_the_reference_shape(kind):
    """Derivatives in θ up to the third are finite at θ = 0 and continuous there, as differences across it say."""
    kinematics, size = KINDS[kind]
    direction = size * np.random.default_rng(3).uniform(-1, 1, kinematics.n)
    few = POINTS[::9]

    def rates(t):
        """The positions along the direction, with their derivatives up to the third."""
        p0 = lambda t: kinematics.positions(few, t * direction)  # noqa: E731
        p1 = lambda t: jax.jvp(p0, (t,), (1.0,))  # noqa: E731
        p2 = lambda t: jax.jvp(p1, (t,), (1.0,))  # noqa: E731
        (low, middle), (second, third) = jax.jvp(p2, (t,), (1.0,))
        return low[0], middle[0], second[1], third[1]

    followed = compiled(rates)
    h = 1e-4
    low, exact, high = (np.array([np.asarray(part) for part in followed(np.float64(t))]) for t in (-h, 0.0, h))
    assert np.isfinite(exact).all()
    np.testing.assert_allclose((high - low)[:-1] / (2 * h), exact[1:], atol=1e-6 * (np.abs(exact).max() + L))


def test_constant_curvature_is_a_circle():
    """Planar constant curvature has its closed form, for angles from 1e-9 to a turn and a half."""
    moved = mover(KINDS["planar"][0], POINTS)
    x, y, z = POINTS.T
    for angle in (1e-9, 1e-5, 1e-3, 0.1, 1.0, 3.9, 4.1, 9.0):
        k = angle / L
        a = k * x
        rise = np.where(a < 1e-3, k * x * x / 2 * (1 - a * a / 12), (1 - np.cos(a)) / k)
        exact = np.stack([np.sin(a) / k - y * np.sin(a), rise + y * np.cos(a), z], axis=-1)
        np.testing.assert_allclose(moved(np.array([k])), exact, atol=2e-16 + 1e-15 * L)


ORDERS = [*list(permutations(["stretch", "bending_y", "twist", "bending_z"], 4))[::7], *[[name] for name in PRIMITIVES]]


@pytest.mark.parametrize("names", [*ORDERS, ["shear_y", "source", "shear_z", "bending_z"]])
def test_primitives_keep_volume(names):
    """det ∂f/∂x = 1 to 1e-12 for primitives alone and composed in any order, their modes polynomials or functions."""
    kinematics, size = composed(names)
    kinematics.check("here")
    q = size * np.random.default_rng(len(names)).uniform(-1, 1, kinematics.n)
    F = np.asarray(compiled(lambda q: kinematics.deformations(POINTS, q))(q))
    assert np.abs(F - np.eye(3)).max() > 1e-3
    np.testing.assert_allclose(np.linalg.det(F), 1.0, atol=1e-12)


def test_primitives_do_what_they_say():
    """On the axis: bending makes an arc, stretch lengthens by ∫m, twist and shear turn and slide sections."""
    tip = np.array([[L, 0.0, 0.0]])
    bent = mover(composed(["bending_y"])[0], tip)(np.array([4.0, 0.0]))[0]
    np.testing.assert_allclose(bent, (np.sin(4 * L) / 4, 0, -(1 - np.cos(4 * L)) / 4), atol=1e-15)
    longer = mover(composed(["stretch"])[0], tip)(np.array([0.3, 0.6]))[0]
    np.testing.assert_allclose(longer, (L * (1 + 0.3 / 6 + 0.6 / 3), 0, 0), atol=1e-15)
    rim = np.array([[L, RADIUS, 0.0]])
    turned = mover(composed(["twist"])[0], rim)(np.array([0.5]))[0]
    np.testing.assert_allclose(turned, (L, RADIUS * np.cos(0.5), RADIUS * np.sin(0.5)), atol=1e-15)
    slid = mover(composed(["shear_z"])[0], tip)(np.array([0.5]))[0]
    np.testing.assert_allclose(slid, (L, 0, 0.05), atol=1e-15)
    wider = mover(composed(["source"])[0], rim)(np.array([1e-4]))[0]
    np.testing.assert_allclose(wider, (L, np.sqrt(RADIUS**2 + 1e-4), 0), atol=1e-15)


def test_bumps():
    """Bumps are one amid the body in their direction, vanish on the other side and at the ends, and are smooth."""
    bumps = InflationBumps(angles=(np.pi / 2,))
    grown = compiled(bumps.growth)
    growth = lambda s, y, z: float(grown(s, y, z)[0])  # noqa: E731
    assert growth(0.5, 0.0, 1.0) == pytest.approx(1.0)
    assert growth(0.5, 0.0, -1.0) == growth(0.0, 0.0, 1.0) == growth(1.0, 0.3, 1.0) == 0.0
    ratio = np.exp(-16 / 3 / np.pi**2 * 0.25)
    assert growth(0.5, np.sin(np.pi / 4), np.cos(np.pi / 4)) == pytest.approx(ratio, rel=1e-12)
    with pytest.raises(ls.ModelError, match=r"here: width: must be at most a turn, 2π \(got 7"):
        InflationBumps(width=7.0).check("here")


@pytest.mark.parametrize("kind", ["spatial", "pieces", "gaussian", "splines"])
def test_sections_are_those_of_the_native_rod(kind):
    """The line and its sections are those of a native rod of the same basis with many Gauss points."""
    q = large(kind)
    kinematics = replace(KINDS[kind][0], steps=32)
    robot = ls.Robot("rod")
    section, material = ls.SectionCircle(RADIUS), ls.Material(young=1e6, density=1e3)
    rod = ls.Rod(L, section, kinematics.basis, material, gauss_points=24, interval_points=4)
    robot.add_link("rod", rod, ls.JointFixed())
    model = robot.build()
    across = np.array([[0.0, 0.0, 0.0], [0.0, 0.01, 0.0], [0.0, 0.0, 0.01]])
    places = (0.3, 0.77, 1.0)
    moved = mover(kinematics, np.concatenate([across + np.array([s * L, 0, 0]) for s in places]))(q).reshape(3, 3, 3)
    for s, found in zip(places, moved):
        g = ls.frame_pose(model, q, "rod", s)
        np.testing.assert_allclose(found, g[:3, 3] + across @ g[:3, :3].T, rtol=0, atol=1e-6 * L)


def test_order_of_the_integrator():
    """Poses along curves of varying strain converge with the sixth power of the steps."""
    basis = BasisLegendre(torsion=1, bending_y=2, bending_z=1, elongation=1)
    q = np.array([6.0, 4.0, 5.0, 4.0, 3.0, 5.0, 4.0, 0.1, 0.1])
    tips = [mover(KinematicsStrain(L, basis, steps=n), np.array([[L, 0.01, 0.0]]))(q) for n in (3, 6, 12, 64)]
    errors = [np.linalg.norm(tip - tips[-1]) for tip in tips[:-1]]
    assert np.log2(errors[0] / errors[1]) > 5.6 and np.log2(errors[1] / errors[2]) > 5.6


def test_a_basis_that_is_not_smooth_is_reported():
    """A custom basis with a kink that it does not name is refused."""
    kink = BasisCustom(lambda s: np.abs(s - 0.43) * np.eye(6)[:, 1:2])
    with pytest.raises(ls.ModelError, match="here > basis: must be smooth between its breaks"):
        KinematicsStrain(L, kink).check("here")
    KinematicsStrain(L, BasisCustom(kink.function, knots=(0.43,))).check("here")
