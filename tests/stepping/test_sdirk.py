"""Alexander's scheme: its order under inputs that jump, and its damping of vibrations that it does not resolve."""

import itertools

import numpy as np
import pytest
from gradients.moving_robots import soft, start
from scipy.linalg import expm

import lissom as ls
from lissom.stepping.schemes import _SDIRK_GAMMA as _GAMMA


def test_weights():
    """Order 2, an estimate of the error of third order, and nothing left of an infinitely fast vibration."""
    A, c = np.array([[_GAMMA, 0.0], [1.0 - _GAMMA, _GAMMA]]), np.array([_GAMMA, 1.0])
    b = A[1]
    assert b.sum() == pytest.approx(1.0) and b @ c == pytest.approx(0.5)
    assert ls.sdirk().error[0] == pytest.approx(1.0 / 6.0 - b @ A @ c)
    assert np.linalg.det(A - np.outer(np.ones(2), b)) == pytest.approx(0.0, abs=1e-16)  # R(∞) = 0
    assert not ls.sdirk().follows_accelerations


def test_inputs_that_jump():
    """Under inputs that jump the error of a linear oscillator is of second order against the exponential of its matrix,
    and a rollout's estimate of its error is that error to a tenth."""
    robot, k, d = ls.Robot("cart", gravity=(0, 0, 0)), 50.0, 1.5
    mass = ls.RigidBody.box(0.1, 0.1, 0.2, density=1000.0)
    robot.add_link("cart", mass, ls.JointPrismatic((1, 0, 0), stiffness=k, damping=d))
    robot.add_joint_actuator("push", "cart")
    model, jumps = robot.build(), np.array([3.0, -5.0, 8.0, 0.0, -2.0])
    whole = np.array([[0.0, 1.0, 0.0], [-k / 2.0, -d / 2.0, 0.5], [0.0, 0.0, 0.0]])
    x = np.array([0.05, -0.2, 0.0])
    for u in jumps:
        x = expm(0.1 * whole) @ [*x[:2], u]
    errors = []
    for n in (5, 10, 20):
        motion = ls.rollout(model, [0.05], [-0.2], np.repeat(jumps, n)[:, None], dt=0.1 / n, method="sdirk")
        errors.append([motion.q[-1, 0] - x[0], motion.v[-1, 0] - x[1]])
        said = [rows[-1, 0] for rows in motion.error()]
        np.testing.assert_allclose(said, errors[-1], rtol=0.1)
    np.testing.assert_allclose(np.log2(np.abs(errors[:-1]) / np.abs(errors[1:])), 2.0, atol=0.15)


def test_a_soft_arm():
    """Of an arm with tendons under inputs that jump q and v are of second order, where schemes that begin with an
    acceleration are of first order."""
    model = soft().build()
    (q, v), u = start(model), np.random.default_rng(0).uniform(0.0, 3.0, (5, model.nu))
    for scheme, order in (("sdirk", 2.0), ("bathe", 1.0)):
        runs = [ls.rollout(model, q, v, np.repeat(u, n, axis=0), dt=0.04 / n, method=scheme) for n in (10, 20, 40)]
        apart = [np.abs(one.q[-1] - other.q[-1]).max() for one, other in itertools.pairwise(runs)]
        assert np.log2(apart[0] / apart[1]) == pytest.approx(order, abs=0.15), scheme


SCHEMES = ("generalized_alpha", "newmark", "hht", "implicit_euler", "bathe", "sdirk", "esdirk")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_a_rollout_says_of_its_error(scheme):
    """Under inputs that jump, change little or stay, and a batch of these, a rollout's estimate of the errors of q and
    v is within a factor of two of their largest ones against steps of a 64th."""
    robot, below, n = ls.Robot("arm"), np.eye(4), 20
    below[0, 3] = 0.4
    upper, lower = (
        ls.RigidBody(0.5, (0.2, 0, 0), (1e-4, 7e-3, 7e-3)),
        ls.RigidBody(0.2, (0.1, 0, 0), (1e-4, 1e-3, 1e-3)),
    )
    robot.add_link("upper", upper, ls.JointRevolute((0, 1, 0), damping=0.02))
    robot.add_link("lower", lower, ls.JointRevolute((0, 1, 0), damping=0.02), parent="upper", placement=below)
    robot.add_joint_actuator("shoulder", "upper")
    model, dt = robot.build(), 0.015
    jumps = np.random.default_rng(0).uniform(-1.0, 1.0, n)
    u = np.stack([jumps, np.sin(3.0 * np.arange(n) / n), np.full(n, 0.5)])[:, :, None]
    motion = ls.rollout(model, [0.1, 0.1], None, u, dt=dt, method=scheme)
    fine = ls.rollout(model, [0.1, 0.1], None, np.repeat(u, 64, axis=1), dt=dt / 64, method="sdirk", every=64)
    for said, exact, own in zip(motion.error(), (fine.q, fine.v), (motion.q, motion.v)):
        ratio = np.abs(said).max(axis=(1, 2)) / np.abs(own - exact).max(axis=(1, 2))
        assert np.all((ratio > 0.5) & (ratio < 2.0)), ratio
