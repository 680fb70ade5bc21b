"""Motions under inputs that jump from step to step: of second order by default wherever steps are of constant size.

The reference is a pendulum of two links with its own equations of motion, solved between the jumps by DOP853.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lissom as ls
from lissom.stepping.stepper import Copies

H, N = 0.01, 40
MASS, LENGTH, INERTIA, DAMPING, GRAVITY = (1.5, 0.8), (0.3, 0.25), (0.01, 0.006), 0.02, 9.81
U = np.random.default_rng(0).normal(size=(N, 2)) * (4.0, 2.0)
Q0, V0 = np.array([0.4, -0.7]), np.array([0.5, -1.0])


@cache
def arm() -> ls.Model:
    """Two hinges about y with motors. The centre of mass of each link is at half its length along -z."""
    robot, place = ls.Robot("arm", gravity=(0, 0, -GRAVITY)), np.eye(4)
    for k, parent in enumerate((None, "l0")):
        own = {} if parent is None else {"parent": parent, "placement": place}
        body = ls.RigidBody(MASS[k], com=(0, 0, -LENGTH[k] / 2), inertia=(INERTIA[k], INERTIA[k], 0.001))
        robot.add_link(f"l{k}", body, ls.JointRevolute((0, 1, 0), damping=DAMPING), **own)
        robot.add_joint_actuator(f"m{k}", f"l{k}")
        place = np.eye(4)
        place[2, 3] = -LENGTH[k]
    return robot.build()


def rate(t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The equations of motion in absolute angles, M(φ) φ'' = f(φ, φ', u), as a rate of (q, v)."""
    q, v = x[:2], x[2:]
    phi, w, (m, n), (a, b) = np.cumsum(q), np.cumsum(v), MASS, LENGTH
    c, s = np.cos(phi[0] - phi[1]), np.sin(phi[0] - phi[1])
    cross = n * a * b / 2
    M = np.array([[INERTIA[0] + m * a * a / 4 + n * a * a, cross * c], [cross * c, INERTIA[1] + n * b * b / 4]])
    torque = u - DAMPING * v
    f = np.array([torque[0] - torque[1] - cross * s * w[1] ** 2 - (m / 2 + n) * a * GRAVITY * np.sin(phi[0]),
                  torque[1] + cross * s * w[0] ** 2 - n * b / 2 * GRAVITY * np.sin(phi[1])])  # fmt: skip
    turn = np.linalg.solve(M, f)
    return np.concatenate([v, [turn[0], turn[1] - turn[0]]])


def exact(inputs) -> np.ndarray:
    """States (N + 1, 4) under inputs(k, x), which are constant during each interval."""
    rows = [np.concatenate([Q0, V0])]
    for k in range(N):
        u = inputs(k, rows[-1])
        found = solve_ivp(rate, (0.0, H), rows[-1], method="DOP853", args=(u,), rtol=1e-12, atol=1e-13)
        rows.append(found.y[:, -1])
    return np.array(rows)


GAINS = np.array([[3.0, 1.0, 0.4, 0.1], [1.0, 2.0, 0.1, 0.3]])


def feedback(t, q, v, gains):
    """A law that is evaluated once a step, with a part that jumps."""
    return U[min(round(t / H), N - 1)] - gains @ np.concatenate([q, v])


def by_rollout(k):
    """`rollout` with steps of H/k."""
    found = ls.rollout(arm(), Q0, V0, np.repeat(U, k, axis=0), dt=H / k)
    return np.hstack([found.q, found.v])[::k]


def by_stepper(k):
    """`Stepper`, k steps for each input."""
    stepper = ls.Stepper(arm(), H / k, q0=Q0, v0=V0)
    rows = [np.concatenate([Q0, V0])]
    for u in U:
        stepper.step(u, k)
        rows.append(np.concatenate([stepper.state.q, stepper.state.v]))
    return np.array(rows)


def by_copies(k):
    """`Copies` of environments, k steps for each action."""
    copies = Copies(arm(), 2, dt=H / k, steps=k)
    copies.place([0, 1], np.tile(Q0, (2, 1)), np.tile(V0, (2, 1)), np.zeros((2, 2)))
    rows = [np.concatenate([Q0, V0])]
    for u in U:
        copies.advance(np.tile(u, (2, 1)))
        rows.append(np.concatenate([copies.q[1], copies.v[1]]))
    return np.array(rows)


def by_single_steps(k):
    """`step_derivatives`, from (q, v) alone."""
    q, v = Q0, V0
    rows = [np.concatenate([q, v])]
    for u in U:
        for _ in range(k):
            end = ls.step_derivatives(arm(), q, v, u, dt=H / k)
            q, v = end.q, end.v
        rows.append(np.concatenate([q, v]))
    return np.array(rows)


def by_jax(k):
    """`ls.jax.rollout`."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        q, v, _ = ls.jax.rollout(arm(), Q0, V0, np.repeat(U, k, axis=0), dt=H / k)
    return np.hstack([q, v])[::k]


def by_torch(k):
    """`ls.torch.rollout`."""
    torch = pytest.importorskip("torch")
    q, v, _ = ls.torch.rollout(arm(), *(torch.tensor(x) for x in (Q0, V0, np.repeat(U, k, axis=0))), dt=H / k)
    return np.hstack([q.numpy(), v.numpy()])[::k]


def by_samples(k):
    """`simulate` with a sampled controller and its default scheme for a fixed dt."""
    law = {"controller": lambda t, q, v: U[min(round(t / H), N - 1)], "period": H}
    found = ls.simulate(arm(), N * H, Q0, V0, dt=H / k, t_eval=H * np.arange(N + 1), **law)
    return np.hstack([found.q, found.v])


WAYS = (by_rollout, by_stepper, by_copies, by_single_steps, by_jax, by_torch, by_samples)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_second_order_by_default(way):
    """Purpose: a sixteenth of the error with a quarter of the step. Steps that begin with the acceleration under the
    input before have a quarter of it, and errors of 10 mrad with steps of 5 ms."""
    known = exact(lambda k, x: U[k])
    coarse, fine = (np.abs(way(k) - known).max(axis=0) for k in (2, 8))
    assert coarse[:2].max() < 6e-4
    assert (np.log2(coarse / fine) > 3.4).all(), (coarse, fine)


def test_feedback_is_of_second_order():
    """Purpose: `feedback_rollout`, whose inputs jump by the law. With one step for each input the law sees the state of
    the motion, whose error is that of the steps."""
    known = exact(lambda k, x: feedback(k * H, x[:2], x[2:], GAINS))
    found = ls.feedback_rollout(arm(), feedback, GAINS, Q0, V0, dt=H, steps=N)
    held = ls.feedback_rollout(arm(), feedback, GAINS, Q0, V0, dt=H, steps=N, method="generalized_alpha")
    error, other = (np.abs(np.hstack([x.q, x.v]) - known).max(axis=0) for x in (found, held))
    assert (error < 0.05 * other).all() and error[:2].max() < 1e-3


@pytest.mark.parametrize("law", [False, True], ids=["open", "closed"])
def test_derivatives_follow_the_steps(law):
    """Purpose: gradients by start, inputs and design values of default rollouts, against differences of the motion."""
    model = arm()
    control: dict[str, Any] = {}
    if law:
        pytest.importorskip("jax")
        control = {"controller": ls.TracedFunction(lambda t, q, v: -3.0 * q - 0.4 * v)}
    motion = ls.rollout(model, Q0, V0, U, dt=H, **control)
    weights = np.random.default_rng(1).normal(size=(2, *motion.q.shape))
    paths = ("l0.body.mass", "l1.joint.damping", "l1.body.com", "gravity")
    gradient = motion.backward(weights[0], weights[1], parameters=paths)
    check = ls.check_gradient(motion, lambda x: np.sum(weights[0] * x.q + weights[1] * x.v), gradient)
    assert check.worst < 1e-8, check


def test_fits_of_motions_under_jumping_inputs():
    """Purpose: the damping of a joint, from its exact motion with noise of 0.1 mm, lies inside its interval. It is
    0.5 % off, and 6.6 % by steps that begin with the acceleration under the input before."""
    model = arm()
    angle = exact(lambda k, x: U[k])[:, 0]
    elbow = -LENGTH[0] * np.stack([np.sin(angle), 0.0 * angle, np.cos(angle)], axis=1)
    noisy = elbow + 1e-4 * np.random.default_rng(2).normal(size=elbow.shape)
    start = model.with_({"l0.joint.damping": 0.1})
    given: dict[str, Any] = {"q0": Q0, "v0": V0, "dt": H}
    found = ls.fit(start, ["l0.joint.damping"], U, {"l1": noisy}, **given)
    other = ls.fit(start, ["l0.joint.damping"], U, {"l1": noisy}, method="generalized_alpha", **given)
    assert found.low["l0.joint.damping"] < DAMPING < found.high["l0.joint.damping"]
    assert abs(found.values["l0.joint.damping"] / DAMPING - 1.0) < 0.01
    assert abs(other.values["l0.joint.damping"] / DAMPING - 1.0) > 0.05
