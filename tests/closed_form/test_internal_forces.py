"""Internal forces of rods against sums of loads taken independently of the library, and against closed forms."""

from math import pi

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lissom as ls

LENGTH, HEAVY, WATER, GRAVITY = 0.5, 1200.0, 1000.0, np.array([0.0, 0.0, -9.81])
BASE, TIP, BOB, BOB_DENSITY, BRANCH, POINT = 0.02, 0.012, 0.01, 2000.0, 0.63, 0.41
TORQUE, PULL, FOLLOWER, LEVER = (0.01, 0.02, -0.01), (0.1, 0.2, 0.1), (0.1, -0.2, 0.3), (0.0, 0.01, 0.0)
BASIS = ls.BasisLegendre(torsion=2, bending_y=3, bending_z=3, elongation=1, shear_y=1, shear_z=1)
SECTIONS = np.linspace(0.0, 0.97, 10)
DRAG, ALONG, LIFT = 1.1, 0.02, 0.2


def submerged(points):
    """A tapered rod in water with two tendons, a branch, a wake and two loads."""
    robot = ls.Robot("submerged", gravity=GRAVITY)
    silicone = ls.Material(young=1e6, poisson=0.5, density=HEAVY, viscosity=1e3)
    robot.add_link("arm", ls.Rod(LENGTH, ls.SectionCircle((BASE, TIP)), BASIS, silicone, gauss_points=points))
    robot.add_link("bob", ls.RigidBody.sphere(BOB, density=BOB_DENSITY), parent="arm", at=BRANCH)
    robot.add_tendon("twisted", "arm", lambda s: (0.015 * np.cos(2 * s), 0.015 * np.sin(2 * s)))
    robot.add_tendon("short", "arm", (0.0, -0.012), stop=0.7)
    robot.add_point_load("pull", "arm", force=PULL, moment=TORQUE)
    robot.add_point_load("follower", "arm", s=POINT, force=FOLLOWER, frame="body", position=LEVER)
    felt = ls.Hydrodynamics(drag_normal=DRAG, drag_tangent=ALONG, lift=LIFT, tail=True)
    robot.set_fluid(WATER, default=felt, links={"bob": None})
    return robot.build()


def hat(x):
    """The matrix of x ×."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def ad(x):
    """The matrix of the commutator with a twist."""
    return np.block([[hat(x[:3]), np.zeros((3, 3))], [hat(x[3:]), hat(x[:3])]])


def newton_euler(M, eta, acc):
    """Wrench that a body needs for its motion, in its axes."""
    return M @ acc - ad(eta).T @ (M @ eta)


def needed_per_metre(s, R, eta, acc):
    """Wrench on a metre of the rod beside those of the water and gravity, in the section's axes."""
    r = BASE + (TIP - BASE) * s
    A, J = pi * r**2, pi * r**4 / 4
    added = WATER * np.diag([0, 0, 0, 0, A, A])
    F = newton_euler(HEAVY * np.diag([2 * J, J, J, A, A, A]) + added, eta, acc)
    edge = 1024 * r * np.sin(pi / 512)  # the library's outline is a polygon of 512 corners
    turned = 2 * LIFT * r * np.array([[0, 0, 0], [0, 0, -1], [0, 1, 0]])
    drag = 0.5 * WATER * (np.diag([ALONG * edge, 2 * DRAG * r, 2 * DRAG * r]) + turned)
    F[3:] += np.linalg.norm(eta[3:]) * drag @ eta[3:] - (HEAVY - WATER) * A * R.T @ GRAVITY
    return F


def continuum(q, v, a, places):
    """The rod's own differential equations in s, integrated to 1e-12: pose, twist, rate of twist, and the integral of
    needed_per_metre from the base in world axes, about the origin."""

    def rate(s, y):
        R, p, eta, acc = y[:9].reshape(3, 3), y[9:12], y[12:18], y[18:24]
        xi, xi_dot, xi_ddot = (BASIS.evaluate(s) @ x for x in (q, v, a))
        xi[3] += 1.0
        F = needed_per_metre(s, R, eta, acc)
        eta_s, acc_s = xi_dot - ad(xi) @ eta, xi_ddot - ad(xi) @ acc - ad(xi_dot) @ eta
        force = R @ F[3:]
        moment = R @ F[:3] + np.cross(p, force)
        return LENGTH * np.concatenate([(R @ hat(xi[:3])).ravel(), R @ xi[3:], eta_s, acc_s, moment, force])

    start = np.concatenate([np.eye(3).ravel(), np.zeros(21)])
    found = solve_ivp(rate, (0, 1), start, method="DOP853", rtol=1e-12, atol=1e-14, t_eval=places).y.T
    parts = np.split(found, [9, 12, 18, 24], axis=1)
    return dict(zip(places, zip(parts[0].reshape(-1, 3, 3), *parts[1:])))


def exact_wrenches(q, v, a):
    """What lies beyond SECTIONS exerts, at them and in their axes."""
    places = np.unique([*SECTIONS, POINT, BRANCH, 1.0])
    at = continuum(q, v, a, places)
    R, p, eta, acc, whole = at[1.0]
    momentum = WATER * pi * TIP**2 * np.array([0.0, eta[4], eta[5]])
    wake = eta[3] * momentum - 0.5 * (momentum @ eta[3:]) * np.array([1.0, 0.0, 0.0])
    loads = [(1.0, p, np.array(TORQUE), np.array(PULL)), (1.0, p, np.zeros(3), R @ wake)]
    R, p = at[POINT][:2]
    loads.append((POINT, p + R @ LEVER, np.zeros(3), R @ FOLLOWER))
    R, p, eta, acc, _ = at[BRANCH]
    mass = BOB_DENSITY * 4 / 3 * pi * BOB**3
    F = newton_euler(mass * np.diag([0.4 * BOB**2] * 3 + [1.0] * 3), eta, acc)
    loads.append((BRANCH, p, -R @ F[:3], mass * GRAVITY - R @ F[3:]))
    out = []
    for s in SECTIONS:
        R, p, _, _, before = at[s]
        W = before - whole
        for place, x, m, f in loads:
            W = W + (place >= s) * np.concatenate([m + np.cross(x, f), f])
        out.append(np.concatenate([R.T @ (W[:3] - np.cross(p, W[3:])), R.T @ W[3:]]))
    return np.array(out)


@pytest.mark.parametrize("moving", [False, True])
def test_a_submerged_rod_against_its_continuum(moving):
    """Purpose: bent, twisted and pulled by tendons, at rest and in motion: 1e-8 at ten sections.

    The poses of nodes err with the fourth power of the intervals: in motion by 4e-7 of the largest at 40 Gauss points,
    8e-8 at 60, 5e-9 at 120.
    """
    model, u = submerged(120), np.array([3.0, 2.0])
    rng = np.random.default_rng(0)
    scale = np.where(np.abs(BASIS.evaluate(0.37)[:3]).any(axis=0), 2.0, 0.05)
    if moving:
        q, v, a = (scale * rng.uniform(-size, size, model.nv) for size in (1, 2, 5))
    else:
        q, v, a = ls.solve_statics(model, u, stable=False).q, np.zeros(model.nv), np.zeros(model.nv)
    assert np.abs(q).max() > 1.0
    found, exact = ls.internal_wrench(model, q, v, a, u, "arm", SECTIONS).total, exact_wrenches(q, v, a)
    errors, largest = (np.abs(x).reshape(-1, 2, 3).max(axis=(0, 2)) for x in (found - exact, exact))
    assert np.all(errors < 1e-8 * largest), errors / largest


def arm(basis, placement=None, gravity=(0, 0, -9.81), density=HEAVY, **rod):
    """A clamped uniform rod, to be loaded."""
    robot = ls.Robot("arm", gravity=gravity)
    silicone = ls.Material(young=1e6, poisson=0.5, density=density, viscosity=2e4)
    robot.add_link("arm", ls.Rod(LENGTH, ls.SectionCircle(BASE), basis, silicone, **rod), placement=placement)
    return robot


@pytest.mark.parametrize("basis", [ls.BasisLegendre(bending_y=2), ls.BasisPiecewiseLinear(bending_y=3)])
def test_a_straight_cantilever_under_its_weight_and_a_load(basis):
    """Purpose: shear w (L − x) + P, moment w (L − x)²/2 + P (L − x), at and between the Gauss points and at the ends of
    their stretches, to rounding."""
    robot = arm(basis)
    robot.add_point_load("tip", "arm", force=(0, 0, -0.3))
    model, s = robot.build(), np.linspace(0, 1, 25)
    x, w = LENGTH * (1 - s), HEAVY * pi * BASE**2 * 9.81
    W = ls.internal_wrench(model, model.neutral(), None, None, None, "arm", s).total
    np.testing.assert_allclose(W[:, 5], -w * x - 0.3, rtol=0, atol=1e-14 * w)
    np.testing.assert_allclose(W[:, 1], w * x**2 / 2 + 0.3 * x, rtol=0, atol=1e-14 * w)
    np.testing.assert_allclose(W[:, [0, 2, 3, 4]], 0.0, rtol=0, atol=1e-14 * w)
    clamp = ls.joint_wrench(model, model.neutral(), None, None, None, "arm")
    np.testing.assert_allclose(clamp, W[0], rtol=0, atol=1e-14 * w)


def test_what_hangs_pulls():
    """Purpose: a hanging rod with a weight carries a tension, the weight of the parts below; a standing one presses."""
    for sign in (1.0, -1.0):
        down = np.array([[0, 0, sign, 0], [0, 1, 0, 0], [-sign, 0, 0, 0], [0, 0, 0, 1.0]])
        robot = arm(ls.BasisLegendre(elongation=0), down)
        robot.add_link("weight", ls.RigidBody(0.2, inertia=(1e-4,) * 3), parent="arm")
        model = robot.build()
        s = np.linspace(0, 1, 7)
        W = ls.internal_wrench(model, model.neutral(), None, None, None, "arm", s).total
        tension = sign * 9.81 * (HEAVY * pi * BASE**2 * LENGTH * (1 - s) + 0.2)
        np.testing.assert_allclose(W[:, 3], tension, rtol=1e-13)


def test_a_bent_rod_without_weight_carries_its_tip_load():
    """Purpose: at any s force R'F and moment R'(r × F + M), with r from the section to the tip, and follower loads in
    the tip's axes, whatever the bending and however few the Gauss points."""
    basis = ls.BasisLegendre(torsion=1, bending_y=2, bending_z=2, elongation=1)
    robot = arm(basis, gravity=(0, 0, 0))
    F, M, f = np.array([0.5, -0.3, 0.8]), np.array([0.02, 0.01, -0.03]), np.array([0.1, 0.2, 0.4])
    robot.add_point_load("load", "arm", force=F, moment=M)
    robot.add_point_load("follower", "arm", force=f, frame="body", position=(0.0, 0.01, 0.02))
    robot.add_wrench_input("controlled", "arm")
    model = robot.build()
    s, u = np.linspace(0, 1, 9), np.array([0.01, 0.02, 0.03, 0.1, 0.2, 0.3])
    q = ls.solve_statics(model, u, q0=0.1 * np.ones(model.nv)).q
    g, tip = ls.frame_pose(model, q, "arm", s), ls.frame_pose(model, q, "arm")
    R = tip[:3, :3]
    force = F + R @ (f + u[3:])
    moment = M + R @ (np.cross([0.0, 0.01, 0.02], f) + u[:3])
    r = tip[:3, 3] - g[:, :3, 3]
    expected = np.stack([np.cross(r, force) + moment, np.broadcast_to(force, r.shape)], axis=1) @ g[:, :3, :3]
    W = ls.internal_wrench(model, q, None, None, u, "arm", s).total
    np.testing.assert_allclose(W, expected.reshape(-1, 6), rtol=0, atol=1e-13)


def strain_wrench(basis, q, v, s):
    """Σ (ξ − ξ*) + Υ ξ̇ of the uniform rod of `arm`."""
    A, J = pi * BASE**2, pi * BASE**4 / 4
    stiff = np.array([2 * J / 3, J, J, A, A / 3, A / 3]) * 1e6
    viscous = 2e4 * np.array([2 * J, 3 * J, 3 * J, 3 * A, A, A])
    Phi = np.array([basis.evaluate(x) for x in s])
    return stiff * (Phi @ q) + viscous * (Phi @ v)


def differences(basis, points, moving):
    """Largest difference of total − actuators from Σ (ξ − ξ*) + Υ ξ̇ at eleven sections, of moments and of forces, as
    parts of the largest ones; a rod with two tendons, a chamber and a load, at rest, or moving without the load."""
    robot = arm(basis, gauss_points=points)
    robot.add_tendon("helix", "arm", lambda s: (0.012 * np.cos(3 * s), 0.012 * np.sin(3 * s)))
    robot.add_tendon("straight", "arm", (0.0, 0.015))
    robot.add_chamber("chamber", "arm", offset=(0.01, 0.0), area=1e-4)
    if not moving:  # a sudden load makes waves that no few modes resolve
        robot.add_point_load("tip", "arm", force=(0.05, 0.2, 0.1), moment=(0.01, 0.0, 0.02))
    model, u, s = robot.build(), np.array([1.0, 2.0, 2e4]), np.linspace(0.0, 1.0, 11)
    if moving:
        options = {"method": "bdf", "rtol": 1e-8, "atol": 1e-10, "t_eval": [0.3]}
        motion = ls.simulate(model, 0.3, u=lambda t: u * np.sin(10 * t), **options)
        q, v, a, u = (x[-1] for x in (motion.q, motion.v, motion.a, motion.u))
    else:
        q, v, a = ls.solve_statics(model, u).q, np.zeros(model.nv), np.zeros(model.nv)
    found = ls.internal_wrench(model, q, v, a, u, "arm", s).material
    missed, largest = (
        np.abs(x).reshape(-1, 2, 3).max(axis=(0, 2)) for x in (found - strain_wrench(basis, q, v, s), found)
    )
    return missed / largest


def test_the_material_carries_what_its_strain_says():
    """Purpose: total − actuators, from equilibrium, is Σ (ξ − ξ*) where the strain modes resolve the equilibrium: the
    difference falls geometrically with their order, to 1e-5 of the largest at order 12."""
    errors = [differences(ls.BasisLegendre(*[order] * 6), 40, False).max() for order in (4, 8, 12)]
    assert errors[2] < 1e-5 and errors[0] > 30 * errors[1] > 900 * errors[2], errors


def test_the_material_of_a_moving_rod_carries_viscous_moments_too():
    """Purpose: the same for Σ (ξ − ξ*) + Υ ξ̇ in a motion; a rod that only bends and twists has a law for moments."""
    bases = [ls.BasisLegendre(torsion=order, bending_y=order, bending_z=order) for order in (4, 8, 12)]
    errors = [differences(basis, 40, True)[0] for basis in bases]
    assert errors[2] < 5e-6 and errors[0] > 30 * errors[1] > 900 * errors[2], errors
