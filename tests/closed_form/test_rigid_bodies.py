"""Rigid bodies in motion: pendulums against their own equations, free bodies against Euler's and Poinsot's solutions.

CVODE holds the error of every step to rtol times the size of the state, and the flow carries it on. As errors of either
sign add up, a motion is off by up to 3 √steps · rtol · size · growth, growth being how far neighbouring motions part.
"""

from math import pi

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import lissom as ls

GRAVITY = 9.81
RTOL = 1e-10
MASSES = np.array([1.3, 0.8, 0.5])
LENGTHS = np.array([0.5, 0.4, 0.3])  # hinge to hinge
CENTRES = np.array([0.2, 0.25, 0.1])  # hinge to centre of mass
INERTIAS = np.array([0.03, 0.015, 0.004])  # about the centre of mass, around the hinge axis


def pendulum(count):
    """Rigid bodies hinged about y one below the other; their x axes point down at q = 0."""
    down = np.array([[0.0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]])
    robot = ls.Robot("pendulum", gravity=(0, 0, -GRAVITY))
    for k in range(count):
        placement = down if k == 0 else np.eye(4) + LENGTHS[k - 1] * np.eye(4)[:, [0]] @ np.eye(4)[[3]]
        body = ls.RigidBody(MASSES[k], com=(CENTRES[k], 0, 0), inertia=(INERTIAS[k],) * 3)
        robot.add_link(f"{k}", body, ls.JointRevolute((0, 1, 0)), f"{k - 1}" if k else None, placement=placement)
    return robot.build()


def lagrange(count):
    """Rates of the angles φ from the vertical, from Lagrange's equations.

    Σ_j a_ij (cos δ φ̈_j + sin δ φ̇_j²) + I_i φ̈_i = −g b_i sin φ_i, δ = φ_i − φ_j, with a_ij = Σ_k m_k l_ki l_kj and
    b_i = Σ_k m_k l_ki, where l_kj is the lever of angle j in the place of body k's centre.
    """
    m, c, inertia = MASSES[:count], CENTRES[:count], INERTIAS[:count]
    reach = np.tril(np.tile(LENGTHS[:count], (count, 1)), -1) + np.diag(c)  # reach[k, j]: lever of angle j in body k
    a = reach.T @ (m[:, None] * reach)
    b = m @ reach

    def rate(_, y):
        phi, speed = y[:count], y[count:]
        delta = phi[:, None] - phi
        A = a * np.cos(delta) + np.diag(inertia)
        return np.concatenate([speed, np.linalg.solve(A, -a * np.sin(delta) @ speed**2 - GRAVITY * b * np.sin(phi))])

    return rate


def growth(rate, start, times):
    """How far motions part that start close together: largest distance at any of `times` for each unit of start."""

    def run(y):
        return solve_ivp(rate, (0, times[-1]), y, "DOP853", times, rtol=1e-12, atol=1e-12).y

    nearby = [run(start + 1e-6 * e) for e in np.eye(len(start))]
    return np.abs(np.array(nearby) - run(start)).max() / 1e-6


@pytest.mark.parametrize("count", [1, 2, 3])
def test_pendulum_follows_its_equations(count):
    """A simple, double and triple pendulum over two seconds from a wide angle, against DOP853 at 1e-12."""
    model = pendulum(count)
    times = np.linspace(0, 2.0, 41)
    q0 = np.array([0.8, -0.3, 0.4])[:count]  # relative angles
    v0 = np.array([0.0, 0.5, -1.0])[:count]
    motion = ls.simulate(model, 2.0, q0, v0, rtol=RTOL, atol=RTOL, t_eval=times)
    start = np.concatenate([np.cumsum(q0), np.cumsum(v0)])
    exact = solve_ivp(lagrange(count), (0, 2.0), start, "DOP853", times, rtol=1e-12, atol=1e-12).y
    tolerance = 3 * np.sqrt(motion.statistics.steps) * RTOL * np.abs(exact).max()
    tolerance *= growth(lagrange(count), start, times)
    assert tolerance < 1e-5, "the motion is predictable enough to compare"
    np.testing.assert_allclose(np.cumsum(motion.q, axis=1), exact[:count].T, rtol=0, atol=tolerance)
    np.testing.assert_allclose(np.cumsum(motion.v, axis=1), exact[count:].T, rtol=0, atol=tolerance)


def test_large_swing_period():
    """A pendulum released from 150° has the period 4 √(l/g) K(sin 75°), l the reduced length."""
    model = pendulum(1)
    reduced = (INERTIAS[0] + MASSES[0] * CENTRES[0] ** 2) / (MASSES[0] * CENTRES[0])
    amplitude = 5 * pi / 6
    period = 4 * np.sqrt(reduced / GRAVITY) * ellipk(np.sin(amplitude / 2) ** 2)
    times = np.arange(9) / 4 * period
    motion = ls.simulate(model, times[-1], [amplitude], rtol=RTOL, atol=RTOL, t_eval=times)
    swing = np.array([1, 0, -1, 0, 1, 0, -1, 0, 1]) * amplitude
    tolerance = 3 * np.sqrt(motion.statistics.steps) * RTOL * np.abs(motion.v).max()
    tolerance *= growth(lagrange(1), np.array([amplitude, 0.0]), times)
    np.testing.assert_allclose(motion.q[:, 0], swing, rtol=0, atol=tolerance)


def thrown(inertia, v0, times):
    """Motion of a free body from the origin under gravity."""
    robot = ls.Robot("thrown", gravity=(0, 0, -GRAVITY))
    robot.add_link("body", ls.RigidBody(1.7, inertia=tuple(inertia)), ls.JointFree())
    model = robot.build()
    return model, ls.simulate(model, float(times[-1]), v0=v0, rtol=RTOL, atol=RTOL, t_eval=times)


def conserved(model, motion, inertia):
    """Angular momentum about the centre of mass in the world frame (n, 3), and twice the energy of rotation (n,)."""
    R = ls.frame_pose(model, motion.q, "body")[:, :3, :3]
    omega = motion.v[:, :3]
    return np.einsum("tij,tj->ti", R, inertia * omega), omega**2 @ inertia


def test_symmetric_top_precesses_as_poinsot_says():
    """R(t) = exp(t L/I_t) exp(t (1 − I_a/I_t) ω_a e_a) for a thrown top, and its centre follows the parabola.

    Neighbouring tops part linearly: by |ω| t = 13 turned radians for each relative change of their speed.
    """
    I_a, I_t = 0.03, 0.02
    inertia = np.array([I_a, I_t, I_t])
    omega, velocity = np.array([6.0, 2.0, -1.0]), np.array([1.0, 0.5, 4.0])
    times = np.linspace(0, 2.0, 41)
    model, motion = thrown(inertia, np.concatenate([omega, velocity]), times)
    tolerance = 3 * np.sqrt(motion.statistics.steps) * RTOL * 13
    pose = ls.frame_pose(model, motion.q, "body")
    turn = [
        ls.lie.so3_exp(t * inertia * omega / I_t) @ ls.lie.so3_exp(t * (1 - I_a / I_t) * omega * [1, 0, 0])
        for t in times
    ]
    np.testing.assert_allclose(pose[:, :3, :3], turn, rtol=0, atol=tolerance)
    fall = np.outer(times, velocity) + 0.5 * np.outer(times**2, [0, 0, -GRAVITY])
    np.testing.assert_allclose(pose[:, :3, 3], fall, rtol=0, atol=tolerance * np.abs(fall).max())
    momentum, twice_energy = conserved(model, motion, inertia)
    np.testing.assert_allclose(momentum, momentum[:1] + 0 * momentum, rtol=0, atol=tolerance * np.abs(momentum).max())
    np.testing.assert_allclose(twice_energy, twice_energy[0], rtol=tolerance)


def test_spin_about_the_middle_axis_flips():
    """Dzhanibekov: a body spun about its middle axis turns over and back, with Jacobi's functions for its spin.

    For I₁ < I₂ < I₃ and L² < 2T I₂ (Landau and Lifshitz, Mechanics, §37, axes 1 and 3 exchanged), from ω₃ = 0:
    ω₁ ∝ dn, ω₂ ∝ cd, ω₃ ∝ sd; a full cycle takes 4 K(m)/λ. Errors made near the
    unstable spin, where ω₁ is least, have grown by ω₂/ω₁ when ω₁ is largest.
    """
    I1, I2, I3 = inertia = np.array([0.01, 0.02, 0.025])
    omega = np.array([0.05, 5.0, 0.0])
    twice_T, square_L = inertia @ omega**2, (inertia * omega) @ (inertia * omega)
    upper, lower = twice_T * I3 - square_L, square_L - twice_T * I1
    assert square_L < twice_T * I2
    rate = np.sqrt((I2 - I1) * upper / (I1 * I2 * I3))
    m = (I3 - I2) * lower / ((I2 - I1) * upper)
    quarter = ellipk(m) / rate
    times = np.linspace(0, 4 * quarter, 81)
    model, motion = thrown(inertia, np.concatenate([omega, np.zeros(3)]), times)
    sn, cn, dn, _ = ellipj(rate * (times + quarter), m)
    size = np.sqrt([upper / (I1 * (I3 - I1)), lower / (I2 * (I2 - I1)), lower / (I3 * (I3 - I1))])
    tolerance = 3 * np.sqrt(motion.statistics.steps) * RTOL * omega[1] * omega[1] / omega[0]
    np.testing.assert_allclose(motion.v[:, :3], size * np.stack([dn, sn, cn], axis=1), rtol=0, atol=tolerance)
    assert motion.v[40, 1] == pytest.approx(-omega[1], abs=tolerance), "half way it spins the other way round"
    momentum, twice_energy = conserved(model, motion, inertia)
    np.testing.assert_allclose(momentum, momentum[:1] + 0 * momentum, rtol=0, atol=tolerance * inertia[1])
    np.testing.assert_allclose(twice_energy, twice_energy[0], rtol=tolerance)
