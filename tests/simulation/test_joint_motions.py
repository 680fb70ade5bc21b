"""Prescribed joint motions: against reduced equations, across methods, in statics and in linearisations."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lissom as ls
from lissom.stepping.driver import Motions

TIMES = np.linspace(0.0, 1.0, 11)
ARM = 0.4


def cart(position: object = ls.Expression("0.1*sin(5*t)", "t"), **rates: object) -> ls.Model:
    """A pendulum of a point mass that hangs from a slider with a prescribed motion."""
    robot = ls.Robot("cart")
    robot.add_link("slider", ls.RigidBody(0.5), ls.JointPrismatic(axis=(1, 0, 0)))
    robot.add_link("bob", ls.RigidBody(2.0, com=(0, 0, -ARM)), ls.JointRevolute(axis=(0, 1, 0)), parent="slider")
    robot.add_joint_motion("drive", "slider", position=position, **rates)
    return robot.build()


def arm(moved: bool = True) -> ls.Model:
    """A hinge that turns as prescribed, a free hinge and a soft rod."""
    robot = ls.Robot("arm")
    body = ls.RigidBody(1.0, com=(0.1, 0, 0), inertia=(1e-3, 1e-3, 2e-3))
    shift = np.eye(4)
    shift[0, 3] = 0.2
    robot.add_link("upper", body, ls.JointRevolute(axis=(0, 1, 0)))
    robot.add_link("lower", body, ls.JointRevolute(axis=(0, 1, 0), damping=0.05), parent="upper", placement=shift)
    soft = ls.Material(young=1e6, density=1000, viscosity=1e4)
    rod = ls.Rod(0.3, ls.SectionCircle(0.01), ls.BasisLegendre(bending_y=2, bending_z=1), soft)
    robot.add_link("rod", rod, parent="lower", placement=shift)
    robot.add_point_load("push", "rod", force=lambda t: (0.0, 0.1 * np.sin(4 * t), 0.0))
    if moved:
        robot.add_joint_motion("turn", "upper", position=lambda t: 0.5 * np.sin(3.0 * t))
    return robot.build()


def slide(t: np.ndarray) -> np.ndarray:
    """The prescribed motion of the slider."""
    return 0.1 * np.sin(5 * t)


def slide_rates(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Its velocity and acceleration."""
    return 0.5 * np.cos(5 * t), -2.5 * np.sin(5 * t)


def reduced_pendulum(t_eval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angle of the pendulum, θ'' = −(g sin θ − x'' cos θ)/L, and the force that moves its pivot."""

    def rate(t: float, y: np.ndarray) -> list[float]:
        pivot = -2.5 * np.sin(5 * t)
        return [y[1], (-9.81 * np.sin(y[0]) + pivot * np.cos(y[0])) / ARM]

    found = solve_ivp(rate, (0.0, 1.0), [0.3, 0.0], t_eval=t_eval, rtol=1e-11, atol=1e-13, method="DOP853").y
    angle, speed = found
    turning = np.array([rate(t, y)[1] for t, y in zip(t_eval, found.T)])
    pivot = -2.5 * np.sin(5 * t_eval)
    force = 2.5 * pivot - 2.0 * ARM * (turning * np.cos(angle) - speed**2 * np.sin(angle))
    return angle, force


@pytest.mark.parametrize("method", ["bdf", "radau", "dop853"])
def test_a_pendulum_on_a_moving_pivot(method):
    """Purpose: index-1 methods meet the reduced equation of motion, and the multiplier is the force on the slider."""
    motion = ls.simulate(cart(), 1.0, [0.0, 0.3], method=method, t_eval=TIMES, rtol=1e-10, atol=1e-12)
    angle, force = reduced_pendulum(TIMES)
    np.testing.assert_allclose(motion.q[:, 1], angle, atol=1e-7)
    np.testing.assert_allclose(motion.multipliers[:, 0], force, atol=1e-5)
    assert np.array_equal(motion.q[:, 0], 0.1 * np.sin(5 * TIMES))


@pytest.mark.parametrize("method", ["generalized_alpha", "newmark", "hht", "bathe"])
def test_schemes_are_of_second_order(method):
    """Purpose: angle and force converge with h² from the first sample on, also where the scheme damps nothing, and the
    held joint does as prescribed."""
    model = cart()
    angle, force = reduced_pendulum(TIMES)
    steps, errors = [0.02, 0.01, 0.005, 0.0025], []
    for dt in steps:
        motion = ls.simulate(model, 1.0, [0.0, 0.3], method=method, dt=dt, t_eval=TIMES, rtol=1e-9)
        errors.append([np.abs(motion.q[:, 1] - angle).max(), np.abs(motion.multipliers[:, 0] - force).max()])
        for found, exact in zip((motion.q, motion.v, motion.a), (slide(TIMES), *slide_rates(TIMES))):
            np.testing.assert_allclose(found[:, 0], exact, rtol=0, atol=1e-9)
    orders = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    np.testing.assert_allclose(orders, 2.0, atol=0.02)


@cache
def forces_of_the_turn():
    """Multipliers of the arm at times, by an index-1 method."""
    times = np.linspace(0.0, 0.5, 13)  # 0.01 does not fit between them
    return times, ls.simulate(arm(), 0.5, t_eval=times, rtol=1e-10, atol=1e-12).multipliers


@pytest.mark.parametrize("method", ["newmark", "generalized_alpha", "bathe"])
def test_steps_that_change_do_not_shake_the_force(method):
    """Purpose: a shorter step before every sample leaves no trace in the force, which follows that of an index-1
    method."""
    times, exact = forces_of_the_turn()
    motions = [ls.simulate(arm(), 0.5, method=method, dt=dt, t_eval=times, rtol=1e-8) for dt in (0.01, 0.005)]
    coarse, fine = (np.abs(motion.multipliers - exact).max() for motion in motions)
    assert coarse < 2e-3 * np.abs(exact).max()
    assert fine < 0.35 * coarse


def test_fused_and_separate_steps_give_the_same_numbers(monkeypatch):
    """Purpose: the kernel with the time loop and separate launches take the same path, held coordinates included."""
    model = arm()
    options = {"method": "generalized_alpha", "dt": 0.01, "rtol": 1e-8}
    fused = ls.simulate(model, 1.0, **options)
    monkeypatch.setattr(Motions, "can_run", staticmethod(lambda model, f: False))
    separate = ls.simulate(model, 1.0, **options)
    assert fused.statistics.evaluations == separate.statistics.evaluations
    assert fused.statistics.jacobians == separate.statistics.jacobians
    np.testing.assert_allclose(fused.q, separate.q, atol=1e-12)
    np.testing.assert_allclose(fused.v, separate.v, atol=1e-10)
    np.testing.assert_allclose(fused.multipliers, separate.multipliers, atol=1e-8)


def test_multipliers_are_the_forces_of_a_robot_that_is_driven():
    """Purpose: a motor that gives the multipliers as torques moves the free robot the same way."""
    held, free = arm(), arm(moved=False)
    motion = ls.simulate(held, 1.0, t_eval=TIMES, rtol=1e-9, atol=1e-11)
    for k, t in enumerate(TIMES):
        tau = ls.inverse_dynamics(free, motion.q[k], motion.v[k], motion.a[k], t=t)
        np.testing.assert_allclose(tau[0], motion.multipliers[k, 0], atol=1e-9)
        np.testing.assert_allclose(tau[1:], 0.0, atol=1e-8)


def test_derivatives_with_a_held_coordinate():
    """Purpose: ∂a/∂(q, v) of the coordinates that are free equals central differences; held ones answer to nothing."""
    model, t, h = arm(), 0.3, 1e-5
    rng = np.random.default_rng(0)
    q, v = 0.3 * rng.normal(size=(2, model.nv))
    for matrix, step in zip(ls.forward_dynamics_derivatives(model, q, v, t=t), ([1, 0], [0, 1])):
        for j in range(model.nv):
            d = h * np.eye(model.nv)[j]
            ahead, behind = (ls.forward_dynamics(model, q + s * step[0] * d, v + s * step[1] * d, t=t) for s in (1, -1))
            numeric = (ahead - behind) / (2 * h) if j != 0 else np.zeros(model.nv)
            np.testing.assert_allclose(matrix[:, j], numeric, rtol=0, atol=1e-7 * np.abs(matrix).max())
    assert not ls.linearize(model, q, t=t).A[[0, model.nv]].any()
    assert len(ls.modes(model, q, t=t).frequencies) == model.nv - 1


def test_statics_at_a_prescribed_angle():
    """Purpose: at rest the prescribed joint has the angle of its motion, and its force balances the free robot; more
    motion, more force, and batches work."""
    held, free = arm(), arm(moved=False)
    found = ls.solve_statics(held, t=0.4, v=np.zeros(held.nv))
    np.testing.assert_allclose(found.q[0], 0.5 * np.sin(1.2), rtol=1e-15)
    still = np.zeros(free.nv)
    tau = ls.inverse_dynamics(free, found.q, still, still, t=0.4)
    np.testing.assert_allclose(tau[0], found.multipliers[0], rtol=1e-12)
    np.testing.assert_allclose(tau[1:], 0.0, atol=1e-10)
    assert ls.solve_statics(held, t=0.4, q0=np.tile(found.q, (3, 1))).multipliers.shape == (3, 1)


def test_the_work_of_a_motion_is_in_the_balance():
    """Purpose: energy that a prescribed motion brings is counted."""
    motion = ls.simulate(arm(), 1.0, rtol=1e-8, atol=1e-10)
    balance = ls.energy_balance(arm(), motion)
    assert balance.residual < 1e-4
    assert np.ptp(balance.work) > 0.1


def test_adaptive_steps_and_batches():
    """Purpose: the error estimate looks at free coordinates, and a batch takes the same motion."""
    model = cart()
    starts = np.array([[0.0, 0.3], [0.0, -0.2]])
    motion = ls.simulate(model, 1.0, starts, method="generalized_alpha", t_eval=TIMES, rtol=1e-7, atol=1e-9)
    assert motion.multipliers.shape == (2, 11, 1)
    np.testing.assert_allclose(motion.q[0, :, 1], reduced_pendulum(TIMES)[0], atol=1e-3)


@pytest.mark.parametrize("dt", [0.01, None])
def test_samples_of_a_controller_at_wanted_times(dt):
    """Purpose: where a sample (15 x 0.02) and a wanted time (3 x 0.1) differ by rounding alone, no step lies between
    them: it would be of no length, and spoil Newton's matrix and all later steps."""
    assert (TIMES[1:] != 0.02 * np.arange(5, 51, 5)).any()
    calls = []

    def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        calls.append(t)
        return np.zeros(0)

    options = {"method": "generalized_alpha", "dt": dt, "rtol": 1e-6, "t_eval": TIMES}
    sampled = ls.simulate(cart(), 1.0, [0.0, 0.3], controller=law, period=0.02, **options)
    np.testing.assert_allclose(sampled.q[:, 1], reduced_pendulum(TIMES)[0], rtol=0, atol=1e-3)
    assert np.diff(calls).min() > 0.0199 and len(calls) in (50, 51)
    assert dt is None or sampled.statistics.steps == 100


@pytest.mark.parametrize("method", ["bdf", "radau", "generalized_alpha"])
def test_a_start_beside_the_motion(method):
    """Purpose: the start is put on the motion before anything sees it, the controller included."""
    seen = []

    def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        seen.append((q[0], v[0]))
        return np.zeros(0)

    ls.simulate(cart(), 0.1, [0.7, 0.3], [0.7, 0.0], controller=law, period=0.05, method=method, dt=0.01)
    np.testing.assert_allclose(seen[0], (0.0, 0.5), rtol=0, atol=1e-9)
