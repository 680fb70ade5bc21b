"""Bodies in a fluid against closed forms: falling, drifting, carried along; added masses of ellipsoids, impulse, drag.

A sphere of density ρ_b and volume V in a fluid ρ has the mass (ρ_b + ρ/2) V, weighs (ρ_b − ρ) V g and feels the drag
½ ρ C A u², so that from rest u = u_∞ tanh(t/τ). CVODE holds steps to rtol; as errors add up, a motion is off by up to
√steps · rtol and some, for which 1e3 rtol is allowed.
"""

from math import pi

import numpy as np
import pytest
import warp as wp
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import lissom as ls
from lissom.lie.types import vec6

RHO, G, R, C_D = 1000.0, 9.81, 0.05, 0.5
VOLUME, AREA = 4 / 3 * pi * R**3, pi * R**2
RTOL = 1e-9
EXACT = {"method": "bdf", "rtol": RTOL, "atol": 1e-2 * RTOL}
IDEAL = ls.Hydrodynamics(drag_normal=0.0, drag_tangent=0.0)
SPIN = 2.0  # of the whirl [rad/s]


def free_body(body, felt=IDEAL, *, gravity=G, current=None):
    """One rigid body, free to move in the fluid."""
    robot = ls.Robot("body", gravity=(0, 0, -gravity))
    robot.add_link("body", body, ls.JointFree())
    robot.set_fluid(RHO, current=current, default=felt)
    return robot.build()


def ellipsoid(*semi_axes, density=RHO):
    """A homogeneous ellipsoid."""
    a, b, c = semi_axes
    m = density * 4 / 3 * pi * a * b * c
    inertia = (m / 5 * (b * b + c * c), m / 5 * (a * a + c * c), m / 5 * (a * a + b * b))
    return ls.RigidBody(m, inertia=inertia, outline=semi_axes, form="sphere")


def added_inertia(body, **options):
    """Added inertia of a body in the fluid, 6x6."""
    felt = ls.Hydrodynamics(drag_normal=0.0, **options)
    wet, dry = free_body(body, felt), free_body(body, ls.Hydrodynamics(drag_normal=0.0, added_mass=0.0))
    q = wet.neutral()
    return ls.mass_matrix(wet, q) - ls.mass_matrix(dry, q)


@pytest.mark.parametrize("density", [2700.0, 1100.0, 300.0])
def test_sphere_falls_or_rises_to_its_terminal_speed(density):
    """Purpose: u = u_∞ tanh(t/τ), u_∞ = √(2 (ρ_b − ρ) V g/(ρ C A)), with the added mass in τ."""
    model = free_body(ls.RigidBody.sphere(R, density=density), ls.Hydrodynamics(drag_normal=C_D))
    excess = abs(density - RHO) * VOLUME * G
    terminal = np.sqrt(2 * excess / (RHO * C_D * AREA))
    tau = (density + RHO / 2) * VOLUME * terminal / excess
    t = np.linspace(0.0, 8 * tau, 41)
    motion = ls.simulate(model, t[-1], t_eval=t, **EXACT)
    up = -np.sign(density - RHO)
    np.testing.assert_allclose(motion.v[:, 5], up * terminal * np.tanh(t / tau), rtol=0, atol=1e3 * RTOL * terminal)
    fallen = up * terminal * tau * np.log(np.cosh(t / tau))
    np.testing.assert_allclose(motion.q[:, 6], fallen, rtol=0, atol=1e3 * RTOL * abs(fallen[-1]))
    assert motion.v[-1, 5] == pytest.approx(up * terminal, rel=1e-6), "2 exp(−16) below it"


@pytest.mark.parametrize("density", [7800.0, 1000.0, 20.0])
def test_first_acceleration_of_a_released_sphere(density):
    """Purpose: −(ρ_b − ρ) g/(ρ_b + ρ/2), which is 2g upwards for a bubble and never more: added mass does not weigh."""
    model = free_body(ls.RigidBody.sphere(R, density=density), ls.Hydrodynamics(drag_normal=C_D))
    a = ls.forward_dynamics(model, model.neutral(), np.zeros(6), np.zeros(0))
    expected = -(density - RHO) * G / (density + RHO / 2)
    np.testing.assert_allclose(a, [0, 0, 0, 0, 0, expected], rtol=1e-12, atol=1e-12)


def test_ballast_rights_a_body():
    """Purpose: a ball with its centre of mass at c below that of its volume feels the moment c × m g alone."""
    c = np.array([0.004, -0.003, -0.01])
    model = free_body(ls.RigidBody(RHO * VOLUME, tuple(c), (1e-3,) * 3, outline=(R,) * 3, form="sphere"))
    for seed in range(5):
        turn = Rotation.random(random_state=seed)
        q = np.concatenate([np.roll(turn.as_quat(), 1), [0.3, -2.0, 1.0]])
        pull = np.cross(c, RHO * VOLUME * turn.inv().apply([0, 0, -G]))
        np.testing.assert_allclose(ls.external_force(model, q, np.zeros(6)), [*pull, 0, 0, 0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("axis", range(3))
def test_body_at_rest_drifts_with_a_steady_current(axis):
    """Purpose: its speed is c − c/(1 + k c t), k = ½ ρ C A/(m + m_A); it ends drifting with the current."""
    c = 0.7
    current = c * np.eye(3)[axis]
    body = ls.RigidBody.sphere(R, density=800.0)
    model = free_body(body, ls.Hydrodynamics(drag_normal=C_D), gravity=0.0, current=current)
    k = 0.5 * RHO * C_D * AREA / ((800.0 + RHO / 2) * VOLUME)
    t = np.linspace(0.0, 200.0 / (k * c), 51)
    motion = ls.simulate(model, t[-1], t_eval=t, **EXACT)
    expected = np.multiply.outer(c - c / (1 + k * c * t), np.eye(3)[axis])
    np.testing.assert_allclose(motion.v[:, 3:], expected, rtol=0, atol=1e3 * RTOL)
    assert motion.v[-1, 3 + axis] == pytest.approx(c, rel=6e-3)


@pytest.mark.parametrize("density", [3000.0, 1000.0, 100.0])
def test_swaying_water_carries_a_sphere_by_its_density(density):
    """Purpose: without drag v = 3ρ/(2ρ_b + ρ) c(t): 0 of heavy things, the water's of neutral ones, 3c of bubbles"""
    model = free_body(ls.RigidBody.sphere(R, density=density), gravity=0.0,
                      current=lambda t: (0.3 * np.sin(3 * t), 0.0, 0.2 * np.sin(5 * t)))  # fmt: skip
    t = np.linspace(0.0, 4.0, 81)
    motion = ls.simulate(model, 4.0, t_eval=t, **EXACT)
    c = np.column_stack([0.3 * np.sin(3 * t), 0 * t, 0.2 * np.sin(5 * t)])
    # the rate of a current given as a function is that of differences over 1e-5 s, good to 1e-9
    np.testing.assert_allclose(motion.v[:, 3:], 3 * RHO / (2 * density + RHO) * c, rtol=0, atol=3e3 * RTOL)


@wp.func
def whirl(x: wp.vec3d, t: wp.float64) -> vec6:
    """Water that turns about z like a solid, with the acceleration towards the axis."""
    w = wp.float64(SPIN)
    zero = wp.float64(0.0)
    return vec6(-w * x[1], w * x[0], zero, -w * w * x[0], -w * w * x[1], zero)


def test_neutral_sphere_goes_round_with_a_whirl():
    """Purpose: the pressure that holds the water on its circle holds a neutral sphere there; a heavier one is thrown
    out, with (ρ_b + ρ/2) r'' = −3/2 ρ ω² r, from its equation in the plane. The explicit method needs one kernel."""
    t = np.linspace(0.0, 2 * pi / SPIN, 33)
    for density in (1000.0, 1500.0):
        model = free_body(ls.RigidBody.sphere(R, density=density), gravity=0.0, current=whirl)
        q0 = model.neutral()
        q0[4] = 0.4
        motion = ls.simulate(model, t[-1], q0, [0, 0, 0, 0, SPIN * 0.4, 0], t_eval=t, **{**EXACT, "method": "dop853"})
        w = SPIN * np.sqrt(1.5 * RHO / (density + 0.5 * RHO))
        path = np.column_stack([0.4 * np.cos(w * t), 0.4 * SPIN / w * np.sin(w * t), 0 * t])
        np.testing.assert_allclose(motion.q[:, 4:], path, rtol=0, atol=1e4 * RTOL)


def test_added_mass_of_a_sphere():
    """Purpose: half of the water displaced in each direction, nothing about any axis; `added_mass` scales it."""
    sphere = ls.RigidBody.sphere(R, density=RHO)
    expected = np.diag([0, 0, 0, *[0.5 * RHO * VOLUME] * 3])
    np.testing.assert_allclose(added_inertia(sphere), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(added_inertia(sphere, added_mass=0.3), 0.3 * expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("ratio", [1.2, 2.0, 6.0, 30.0])
def test_added_inertia_of_a_spheroid(ratio):
    """Purpose: Lamb's k₁, k₂ and k' of a prolate spheroid in elementary functions of its eccentricity."""
    a, b = 0.1 * ratio, 0.1
    e = np.sqrt(1 - 1 / ratio**2)
    log = np.log((1 + e) / (1 - e))
    alpha, beta = 2 * (1 - e**2) / e**3 * (log / 2 - e), 1 / e**2 - (1 - e**2) / (2 * e**3) * log
    water = RHO * 4 / 3 * pi * a * b * b
    turn = e**4 * (beta - alpha) / ((2 - e**2) * (2 * e**2 - (2 - e**2) * (beta - alpha)))
    across, about = beta / (2 - beta) * water, turn * water / 5 * (a * a + b * b)
    expected = np.diag([0, about, about, alpha / (2 - alpha) * water, across, across])
    np.testing.assert_allclose(added_inertia(ellipsoid(a, b, b)), expected, rtol=1e-9, atol=1e-13)


def test_limits_of_added_inertia():
    """Purpose: a needle feels its volume across and nothing along; a disc 8/3 ρ a³ and 16/45 ρ a⁵ whatever its
    thickness; two equal axes are the limit of unequal ones; and axes may be exchanged."""
    needle = np.diag(added_inertia(ls.RigidBody.cylinder(10.0, 0.01, density=RHO)))
    water = RHO * pi * 0.01**2 * 10.0
    np.testing.assert_allclose(needle[3:] / water, [0, 1, 1], rtol=0, atol=1e-4)
    np.testing.assert_allclose(needle[[0, 2]], [0, needle[1]], rtol=1e-12, atol=1e-15)
    disc = np.diag(added_inertia(ellipsoid(1e-5, 0.3, 0.3)))
    np.testing.assert_allclose(disc[[1, 2, 3]], RHO * np.array([*[16 / 45 * 0.3**5] * 2, 8 / 3 * 0.3**3]), rtol=2e-4)
    near, equal = (np.diag(added_inertia(ellipsoid(0.2, 0.1 * (1 + x), 0.1))) for x in (1e-6, 0.0))
    np.testing.assert_allclose(near, equal, rtol=3e-6, atol=1e-9)
    one, other = np.diag(added_inertia(ellipsoid(0.1, 0.2, 0.4))), np.diag(added_inertia(ellipsoid(0.4, 0.1, 0.2)))
    np.testing.assert_allclose(other.reshape(2, 3), np.roll(one.reshape(2, 3), 1, axis=1), rtol=1e-12)


def kirchhoff(inertia, v):
    """Rate of a body twist in an ideal fluid: M η̇ = ad_ηᵀ M η."""
    h = inertia @ v
    w, u, L, P = v[:3], v[3:], h[:3], h[3:]
    return np.linalg.solve(inertia, np.concatenate([np.cross(L, w) + np.cross(P, u), np.cross(P, w)]))


def impulse(model, motion):
    """Linear and angular impulse of a body and its fluid about the world's origin, shape (n, 6)."""
    rows = []
    for q, v in zip(motion.q, motion.v):
        h = ls.mass_matrix(model, q) @ v
        turn = Rotation.from_quat(np.roll(q[:4], -1))
        P = turn.apply(h[3:6])
        rows.append([*P, *(turn.apply(h[:3]) + np.cross(q[4:7], P))])
    return np.array(rows)


START = np.array([1.3, -0.7, 0.9, 0.5, 0.3, -0.4])


def test_ideal_fluid_keeps_impulse_and_energy():
    """Purpose: a tumbling ellipsoid keeps the impulse and the energy of itself and its water, and follows Kirchhoff's
    equations, solved by SciPy; its own momentum changes all the time."""
    body = ellipsoid(0.3, 0.15, 0.1, density=1500.0)
    model = free_body(body, gravity=0.0)
    motion = ls.simulate(model, 5.0, v0=START, t_eval=np.linspace(0, 5, 51), **EXACT)
    h = impulse(model, motion)
    np.testing.assert_allclose(h, np.broadcast_to(h[0], h.shape), rtol=0, atol=1e3 * RTOL * np.abs(h[0]).max())
    np.testing.assert_allclose(np.roll(ls.momentum(model, motion.q, motion.v), 3, axis=1), h, rtol=1e-12, atol=1e-12)
    E = ls.energy(model, motion.q, motion.v).kinetic
    np.testing.assert_allclose(E, E[0], rtol=1e3 * RTOL)
    M = ls.mass_matrix(model, model.neutral())
    exact = solve_ivp(lambda t, v: kirchhoff(M, v), (0, 5), START, "DOP853", motion.t, rtol=1e-12, atol=1e-12).y.T
    np.testing.assert_allclose(motion.v, exact, rtol=0, atol=1e4 * RTOL)
    turns = Rotation.from_quat(np.roll(motion.q[:, :4], -1, axis=1))
    own = turns.apply(body.mass * motion.v[:, 3:])
    assert np.ptp(own, axis=0).max() > 0.05 * np.abs(own).max()


def test_steps_keep_energy_and_impulse_to_second_order():
    """Purpose: generalized_alpha loses energy and impulse with the square of its step; halves make quarters."""
    model = free_body(ellipsoid(0.3, 0.15, 0.1, density=1500.0), gravity=0.0)
    lost = []
    for dt in (0.01, 0.005):
        motion = ls.simulate(model, 2.0, v0=START, method=ls.generalized_alpha(1.0), dt=dt, rtol=1e-12, atol=1e-14)
        E, h = ls.energy(model, motion.q, motion.v).kinetic, impulse(model, motion)
        lost.append([np.abs(E / E[0] - 1).max(), np.abs(h - h[0]).max() / np.abs(h[0]).max()])
    np.testing.assert_allclose(np.log2(np.array(lost[0]) / lost[1]), 2.0, rtol=0, atol=0.1)
    assert np.max(lost[1]) < 1e-3


def test_work_of_drag_is_the_energy_lost():
    """Purpose: a sphere shot into still water slows down as u/(1 + k u t); its loss of energy is the work of its
    drag."""
    u, density = 3.0, 1000.0
    model = free_body(ls.RigidBody.sphere(R, density=density), ls.Hydrodynamics(drag_normal=C_D))
    mass = (density + RHO / 2) * VOLUME
    k = 0.5 * RHO * C_D * AREA / mass
    t = np.linspace(0.0, 2.0, 4001)
    motion = ls.simulate(model, 2.0, v0=[0, 0, 0, 0, 0, u], t_eval=t, **EXACT)
    balance = ls.energy_balance(model, motion)
    speed = u / (1 + k * u * t)
    np.testing.assert_allclose(balance.kinetic, 0.5 * mass * speed**2, rtol=1e-6)
    np.testing.assert_allclose(balance.work, 0.5 * mass * (speed**2 - u**2), rtol=1e-6, atol=1e-9)
    assert balance.residual < 1e-7
    assert balance.work[-1] < -0.9 * balance.kinetic[0]


@pytest.mark.parametrize("speed", [1.0, -2.5])
@pytest.mark.parametrize("angle", [np.pi / 6, -0.2])
def test_munks_moment_in_a_steady_current(angle, speed):
    """Purpose: a body held at α across a stream U is turned by ½ (m₂ − m₁) U² sin 2α, its added masses those of a
    spheroid six times as long as wide (§114: 0.0452 and 0.9171), in a current as when it moves itself."""
    e = np.sqrt(1.0 - 1.0 / 36.0)
    log = np.log((1.0 + e) / (1.0 - e))
    alpha = 2.0 * (1.0 - e * e) / e**3 * (0.5 * log - e), 1.0 / e**2 - (1.0 - e * e) / (2.0 * e**3) * log
    k = [a / (2.0 - a) for a in alpha]
    np.testing.assert_allclose(k, (0.0452, 0.9171), atol=5e-5)
    length, radius = 0.6, 0.05
    body = ls.RigidBody.cylinder(length, radius, density=RHO)
    expected = 0.5 * (k[1] - k[0]) * RHO * pi * radius**2 * length * speed**2 * np.sin(2.0 * angle)
    robot = ls.Robot("hull")
    robot.add_link("hull", body, ls.JointRevolute((0, 0, 1)))
    robot.set_fluid(RHO, current=(speed, 0, 0), default=IDEAL)
    assert -ls.inverse_dynamics(robot.build(), [angle], [0.0], [0.0])[0] == pytest.approx(expected, rel=1e-10)
    towed = ls.Robot("towed", gravity=(0, 0, 0))
    towed.add_link("carriage", joint=ls.JointPrismatic((1, 0, 0)))
    towed.add_link("hull", body, ls.JointRevolute((0, 0, 1)), parent="carriage")
    towed.set_fluid(RHO, default=IDEAL)
    force = -ls.inverse_dynamics(towed.build(), [0.0, angle], [-speed, 0.0], [0.0, 0.0])
    np.testing.assert_allclose(force, [0.0, expected], rtol=1e-10, atol=1e-12)
