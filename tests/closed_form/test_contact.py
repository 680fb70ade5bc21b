"""Balls and blocks on planes, by two methods: rest, bounces, sliding, rolling and creep against closed forms.

The law is N = k δ^p (1 + c δ̇), friction μ N w/√(w² + v_s²) against the slip w, so that every answer here is exact,
smooth friction and all.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

import lissom as ls

G, MASS, RADIUS, MU, SLIP_SPEED = 9.81, 0.7, 0.05, 0.3, 1e-3
METHODS = {"bdf": 1e-10, "generalized_alpha": 1e-9}  # and their relative tolerance
ERRORS = {"bdf": 1e-6, "generalized_alpha": 2e-5}  # that this leaves: rtol^(2/3) is the error of a second-order method
methods = pytest.mark.parametrize("method", METHODS)


def ball():
    """A homogeneous ball."""
    return ls.RigidBody(MASS, inertia=(0.4 * MASS * RADIUS**2,) * 3, balls=[(0.0, 0.0, 0.0, RADIUS)])


def dropping(*, gravity=G, **law):
    """A ball above a plane that moves up and down alone; q is its height over touch."""
    up = np.eye(4)
    up[2, 3] = RADIUS
    robot = ls.Robot("ball", gravity=(0, 0, -gravity))
    robot.add_link("ball", ball(), ls.JointPrismatic((0, 0, 1)), placement=up)
    robot.add_contact("ground", "ball", ls.ShapePlane(), **law)
    return robot.build()


def sliding(angle=0.0, **law):
    """A ball that cannot turn on a plane that falls along x by an angle; q is the way along and over the plane."""
    slope = np.eye(4)
    slope[:3, :3] = ls.lie.so3_exp([0.0, angle, 0.0])
    robot = ls.Robot("block", gravity=(0, 0, -G))
    robot.add_link("slide", None, ls.JointPrismatic((1, 0, 0)), placement=slope)
    lift = np.eye(4)
    lift[2, 3] = RADIUS
    robot.add_link("ball", ball(), ls.JointPrismatic((0, 0, 1)), "slide", placement=lift)
    robot.add_contact("ground", "ball", ls.ShapePlane(), placement=slope, stiffness=1e6, **law)
    return robot.build()


def sunk(angle=0.0, stiffness=1e6, exponent=1.5):
    """How deep the ball rests."""
    return (MASS * G * np.cos(angle) / stiffness) ** (1 / exponent)


def moved(model, duration, q0, v0, method, *, rtol=None, **options):
    """Motion at the tolerance of the method."""
    rtol = METHODS[method] if rtol is None else rtol
    return ls.simulate(model, duration, q0, v0, method=method, rtol=rtol, atol=1e-2 * rtol, **options)


def contact_force(model, q, v):
    """What contact does on the coordinates."""
    still = np.zeros(model.nv)
    return ls.inverse_dynamics(model, q, v, still, loads=False) - ls.inverse_dynamics(model, q, v, still)


def slip_integral(w):
    """∫ √(w² + v_s²) dw from 0 to w."""
    return 0.5 * (w * np.hypot(w, SLIP_SPEED) + SLIP_SPEED**2 * np.arcsinh(w / SLIP_SPEED))


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0])
def test_rest_in_equilibrium(exponent):
    """Purpose: a ball at rest is (mg/k)^(1/p) deep, and the plane carries its weight."""
    model = dropping(stiffness=2e5, exponent=exponent, damping=0.5)
    found = ls.solve_statics(model, q0=[-1e-3])
    assert -found.q[0] == pytest.approx(sunk(0.0, 2e5, exponent), rel=1e-10)
    assert contact_force(model, found.q, [0.0])[0] == pytest.approx(MASS * G, rel=1e-10)


@methods
def test_comes_to_rest(method):
    """Purpose: dropped with damping, it bounces and comes to rest at that depth."""
    model = dropping(stiffness=1e4, exponent=1.0, damping=30.0)
    motion = moved(model, 1.5, [0.005], [0.0], method, rtol=1e-7)
    assert motion.q.min() < -1.5 * sunk(0.0, 1e4, 1.0)
    assert -motion.q[-1, 0] == pytest.approx(sunk(0.0, 1e4, 1.0), rel=1e-4)
    assert abs(motion.v[-1, 0]) < 1e-6


def rebound(speed, damping):
    """Speed v_o after an impact at v_i: c (v_i + v_o) = ln((1 + c v_i)/(1 − c v_o)), whatever k, p and the mass.

    With w = δ̇, m w dw/dδ = −k δ^p (1 + c w); w dw/(1 + c w) over the impact, from v_i to −v_o, sums to −k/m ∮ δ^p dδ,
    which is zero.
    """
    approach = damping * speed - np.log1p(damping * speed)
    return brentq(lambda v: -damping * v - np.log1p(-damping * v) - approach, 0.0, (1 - 1e-15) / damping, xtol=1e-15)


@methods
@pytest.mark.parametrize(("stiffness", "exponent"), [(1e5, 1.5), (1e4, 1.0), (3e6, 2.0)])
@pytest.mark.parametrize("damping", [0.1, 0.5, 2.0])
def test_bounce(method, stiffness, exponent, damping):
    """Purpose: the restitution is that of the law, which for slow impacts is 1 − 2cv/3."""
    model = dropping(gravity=0.0, stiffness=stiffness, exponent=exponent, damping=damping)
    motion = moved(model, 0.05, [0.01], [-1.2], method)
    assert motion.q.min() < -1e-3 and motion.q[-1, 0] > 0.0
    assert motion.v[-1, 0] == pytest.approx(rebound(1.2, damping), rel=ERRORS[method])
    assert rebound(1e-3, damping) / 1e-3 == pytest.approx(1 - 2 / 3 * damping * 1e-3, abs=(damping * 1e-3) ** 2)


@methods
def test_bounces_without_damping_keep_the_energy(method):
    """Purpose: an undamped ball bounces back to where it was let go, again and again, and its energy balances."""
    model = dropping(stiffness=1e5, exponent=1.5)
    fall = np.sqrt(2 * 0.1 / G)
    motion = moved(model, 9 * fall, [0.1], [0.0], method, rtol=METHODS[method])
    height = motion.q[:, 0] + motion.v[:, 0] ** 2 / (2 * G)
    free = motion.q[:, 0] > 0.0
    bounces = np.count_nonzero(np.diff(free.astype(int)) == 1)
    assert bounces == 4
    np.testing.assert_allclose(height[free], 0.1, rtol=1e-6 if method == "bdf" else 1e-4)


@methods
def test_slides_to_rest(method):
    """Purpose: a body that cannot turn stops after ∫ √(w² + v_s²) dw/(μg), that is v²/(2μg) but for the slip speed."""
    model, speed = sliding(friction=MU, slip_speed=SLIP_SPEED), 1.0
    motion = moved(model, 1.1 * speed / (MU * G), [0.0, -sunk()], [speed, 0.0], method)
    assert motion.q[-1, 0] == pytest.approx(slip_integral(speed) / (MU * G), rel=ERRORS[method])
    assert motion.q[-1, 0] == pytest.approx(speed**2 / (2 * MU * G), rel=5e-5)
    assert abs(motion.v[-1, 0]) < 1e-6


@methods
def test_ball_slides_until_it_rolls(method):
    """Purpose: from v₀ without spin a ball rolls on at 5/7 v₀; it slides for 2v₀/(7μg), over 12v₀²/(49μg).

    The slip w = v − rω falls by 7/2 μ g w/√(w² + v_s²), and v = 5/7 v₀ + 2/7 w.
    """
    robot = ls.Robot("ball", gravity=(0, 0, -G))
    robot.add_link("ball", ball(), ls.JointFree())
    robot.add_contact("ground", "ball", ls.ShapePlane(), stiffness=1e6, friction=MU, slip_speed=SLIP_SPEED)
    model, speed = robot.build(), 1.0
    slides = 2 * speed / (7 * MU * G)
    start = np.array([1.0, 0, 0, 0, 0, 0, RADIUS - sunk()])
    times = np.append(np.linspace(0.0, slides, 20), 1.5 * slides)
    motion = moved(model, times[-1], start, [0, 0, 0, speed, 0, 0], method, t_eval=times)
    pose = ls.frame_pose(model, motion.q, "ball")
    velocity = np.einsum("tij,tj->ti", pose[:, :3, :3], motion.v[:, 3:])
    way = 5 / 7 * speed * times[-1] + 4 / 49 * slip_integral(speed) / (MU * G)
    assert velocity[-1, 0] == pytest.approx(5 / 7 * speed, rel=ERRORS[method])
    assert RADIUS * motion.v[-1, 1] == pytest.approx(velocity[-1, 0], rel=ERRORS[method]), "it rolls"
    assert pose[-1, 0, 3] == pytest.approx(way, rel=ERRORS[method])
    assert pose[-2, 0, 3] == pytest.approx(12 * speed**2 / (49 * MU * G), rel=1e-4)
    np.testing.assert_allclose(velocity[:-2, 0], speed - MU * G * times[:-2], rtol=5e-5)


@methods
def test_creeps_below_the_friction_angle(method):
    """Purpose: just below tan⁻¹ μ a body creeps down at v_s tan θ/√(μ² − tan² θ)."""
    angle = 0.95 * np.arctan(MU)
    model = sliding(angle, friction=MU, slip_speed=SLIP_SPEED)
    creep = SLIP_SPEED * np.tan(angle) / np.sqrt(MU**2 - np.tan(angle) ** 2)
    motion = moved(model, 0.5, [0.0, -sunk(angle)], [0.0, 0.0], method)
    assert motion.v[-1, 0] == pytest.approx(creep, rel=ERRORS[method])
    assert np.all(motion.v[:, 0] < 1.001 * creep)


@methods
def test_slides_above_the_friction_angle(method):
    """Purpose: above it the body falls with g (sin θ − μ cos θ) as soon as it is much faster than the slip speed."""
    angle = 1.2 * np.arctan(MU)
    model = sliding(angle, friction=MU, slip_speed=SLIP_SPEED)
    motion = moved(model, 1.0, [0.0, -sunk(angle)], [0.0, 0.0], method, t_eval=[0.5, 1.0])
    rate = (motion.v[-1, 0] - motion.v[-2, 0]) / 0.5
    assert motion.v[-2, 0] > 100 * SLIP_SPEED
    assert rate == pytest.approx(G * (np.sin(angle) - MU * np.cos(angle)), rel=1e-4)
