"""Alexander's scheme: its order under inputs that jump, and its damping of vibrations that it does not resolve."""

import itertools

import numpy as np
import pytest
from closed_form.mechanisms import FourBar
from closed_form.test_mechanisms import Case
from gradients.moving_robots import soft, start
from scipy.linalg import expm

import lissom as ls
from lissom.stepping.schemes import _SDIRK_GAMMA as _GAMMA
from lissom.stepping.schemes import Scheme, at_positions


def test_weights():
    """Order 2, an estimate of the error of third order, and nothing left of an infinitely fast vibration."""
    A, c = np.array([[_GAMMA, 0.0], [1.0 - _GAMMA, _GAMMA]]), np.array([_GAMMA, 1.0])
    b = A[1]
    assert b.sum() == pytest.approx(1.0) and b @ c == pytest.approx(0.5)
    assert ls.sdirk().error[0] == pytest.approx(1.0 / 6.0 - b @ A @ c)
    assert np.linalg.det(A - np.outer(np.ones(2), b)) == pytest.approx(0.0, abs=1e-16)  # R(∞) = 0
    assert not ls.sdirk().follows_accelerations


def held() -> Scheme:
    """The scheme that takes its place where loops are held at positions."""
    robot = ls.Robot("loop")
    robot.add_link("rod", ls.RigidBody(1.0, inertia=(0.1, 0.1, 0.1)), ls.JointPlanar())
    robot.add_loop("pin", "rod", joint=ls.JointRevolute((0, 0, 1)))
    return at_positions(ls.sdirk(), robot.build())


def tables(scheme):
    """c, A and B of Δ_i = h c_i v + h² Σ B_ij a_j and v_i = v + h Σ A_ij a_j."""
    n = len(scheme.stages)
    A, B = np.zeros((2, n, n))
    for i, stage in enumerate(scheme.stages):
        A[i, i], B[i, i] = stage.velocity[0], stage.position[0]
        A[i, :i], B[i, :i] = stage.velocity[6::3], stage.position[6::3]
        left = np.delete(stage.position, [0, 1, *range(6, len(stage.position), 3)])
        assert not left.any() and stage.position[1] == stage.end and stage.velocity[1] == 1.0
    return np.array([stage.end for stage in scheme.stages]), A, B


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_weights_at_positions():
    """Δ of third order in each stage, v of third order at the end, without the part of v at the start across the loops,
    and an estimate of the error of q of third order."""
    scheme = held()
    c, A, B = tables(scheme)
    b, b_q = A[-1], B[-1]
    np.testing.assert_allclose(A.sum(axis=1), c, atol=1e-15)
    np.testing.assert_allclose(B.sum(axis=1), 0.5 * c**2, atol=1e-15)
    np.testing.assert_allclose([b.sum(), b @ c, b @ c**2, b @ A @ c], [1.0, 1 / 2, 1 / 3, 1 / 6], rtol=1e-15)
    assert b @ np.linalg.solve(B, c) == pytest.approx(1.0, rel=1e-13)
    assert (b >= 0.0).all() and (b_q > 0.0).all()
    error = 1.0 / 6.0 - b_q @ c
    assert abs(error) < 0.07  # 0.04 of Alexander's scheme
    assert scheme.error[0] == pytest.approx(error / (1.0 - c[1])) and scheme.error[9] == -scheme.error[0]


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_no_vibration_grows_at_positions():
    """The largest factor of a step of x'' = −K x − D x' with random matrices of two and three coordinates is 1, from
    slow to infinitely fast vibrations, with damping and gyroscopic forces of any size and without."""
    c, A, B = tables(held())
    rng, count = np.random.default_rng(0), 4000
    for n, gyro, damping in itertools.product((1, 2, 3), (0.0, 1.0), (0.0, 1.0)):
        Q = np.linalg.qr(rng.normal(size=(count, n, n)))[0]
        K = Q * 10.0 ** rng.uniform(-2.0, 8.0, (count, 1, n)) @ np.swapaxes(Q, 1, 2)
        root, turn = rng.normal(size=(2, count, n, n))
        D = damping * 10.0 ** rng.uniform(-4.0, 4.0, (count, 1, 1)) * root @ np.swapaxes(root, 1, 2)
        D = D + gyro * 10.0 ** rng.uniform(-3.0, 3.0, (count, 1, 1)) * (turn - np.swapaxes(turn, 1, 2))
        x, v = np.eye(n, 2 * n), np.eye(n, 2 * n, n)
        a = np.zeros((3, count, n, 2 * n))
        for i in range(3):
            known = K @ (x + c[i] * v + np.tensordot(B[i], a, 1)) + D @ (v + np.tensordot(A[i], a, 1))
            a[i] = -np.linalg.solve(np.eye(n) + B[i, i] * K + A[i, i] * D, known)
        end = np.concatenate([x + v + np.tensordot(B[2], a, 1), v + np.tensordot(A[2], a, 1)], axis=1)
        assert np.abs(np.linalg.eigvals(end)).max() < 1.0 + 1e-8, (n, gyro, damping)  # K rounds to 1e-8 of slow ones


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
@pytest.mark.parametrize("dt", [0.02, 0.05, 0.1])
def test_long_steps_make_no_energy(dt):
    """A four-bar linkage that turns by up to 1.2 rad in a step gains less than a hundredth of its energy, in 300
    steps, and without Newton's method failing."""
    case = Case(FourBar())
    q, v, _ = case.coordinates(*case.start)
    motion = ls.rollout(case.model, q, v, dt=dt, steps=300)
    energy = ls.energy(case.model, motion.q, motion.v).total
    assert energy.max() < 1.01 * energy[0]


@pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")
def test_steps_by_the_estimate_at_positions():
    """Without dt and without projection the error of a four-bar linkage falls with the tolerance, as ⅔ of its power."""
    case, times, tolerances = Case(FourBar()), np.linspace(0.0, 0.3, 4), [1e-4, 1e-5, 1e-6, 1e-7]
    exact = case.reference(times)
    options = {"method": "sdirk", "project_velocity": False}
    errors = [case.errors(exact, case.simulate(times, rtol=x, atol=0.01 * x, **options))[0] for x in tolerances]
    assert (np.array(errors) < 100.0 * np.array(tolerances)).all(), errors
    assert 0.5 < np.polyfit(np.log(tolerances), np.log(errors), 1)[0] < 0.9


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
