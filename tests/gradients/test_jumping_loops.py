"""Motions of robots with loops, couplings, wheels and skates under inputs that jump from step to step: of second order
by default, like those of robots without.

The references are the equations of each mechanism in its free coordinates, solved between the jumps by DOP853.
"""

import itertools
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np
import pytest
from closed_form import test_rolling as rolling
from closed_form.mechanisms import FourBar
from closed_form.test_mechanisms import Case
from scipy.integrate import solve_ivp
from scipy.linalg import block_diag, null_space

import lissom as ls

pytestmark = pytest.mark.filterwarnings("ignore::lissom.RedundancyWarning")  # planar loops in space
H, N = 0.01, 20


@dataclass
class Mechanism:
    """A model, its inputs, and its exact states.

    Fields:
        model, u: of the robot, (N, nu). q, v: exact states at the ends of the intervals, beginning with the start.
        worst: largest error of q with steps of H. a: accelerations under the input before.
    """

    model: ls.Model
    u: np.ndarray
    q: np.ndarray
    v: np.ndarray
    worst: float
    a: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def errors(self, q, v):
        """Largest errors of q and v at the ends of the intervals, in natural sizes."""
        scale = self.model.dofs.scale
        found = ls.difference(self.model, self.q, q), v - self.v
        return np.array([np.abs(x / scale).max() for x in found])


def between(rates, start, inputs):
    """States (N + 1, n) of y' = rates(t, y, u) at the ends of intervals of length H with constant inputs."""
    rows = [np.asarray(start, dtype=float)]
    for u in inputs:
        found = solve_ivp(rates, (0.0, H), rows[-1], "DOP853", args=(u,), rtol=1e-12, atol=1e-13)
        rows.append(found.y[:, -1])
    return np.array(rows)


@cache
def four_bar():
    """A four-bar linkage whose crank turns at about 12 rad/s and is driven by torques that jump."""
    bars, u = FourBar(), np.random.default_rng(0).normal(size=(N, 1)) * 1.5
    case = Case(bars)
    y = between(lambda _, y, u: [y[1], bars.acceleration(y[0], y[1], u[0])], case.start, u)
    turns = [bars.acceleration(angle, speed, own) for (angle, speed), own in zip(y, u[[0, *range(N)], 0])]
    states = [case.coordinates(angle, speed, turn) for (angle, speed), turn in zip(y, turns)]
    q, v, a = (np.array([x[k] for x in states]) for k in range(3))
    return Mechanism(case.model, u, q, v, 0.01, a)


@cache
def cam():
    """A wheel that moves a rack by a cam: x = c sin θ, (J + m x'²) θ'' + m x' x'' θ'² = τ."""
    J, m, c = 1e-2, 2.5, 0.05
    robot = ls.Robot("cam", gravity=(0, 0, 0))
    robot.add_link("wheel", ls.RigidBody(1.0, inertia=(J, J, J)), ls.JointRevolute((0, 1, 0)))
    robot.add_link("rack", ls.RigidBody(m, inertia=(J, J, J)), ls.JointPrismatic((1, 0, 0)))
    robot.add_coupling("cam", ["rack", "wheel"], [1.0, ls.Expression(f"-{c}*sin(q)", "q")])
    robot.add_joint_actuator("motor", "wheel")
    u = np.random.default_rng(1).normal(size=(N, 1)) * 0.5

    def rates(_, y, u):
        first, second = c * np.cos(y[0]), -c * np.sin(y[0])
        return [y[1], (u[0] - m * first * second * y[1] ** 2) / (J + m * first**2)]

    angle, speed = between(rates, [0.3, 9.0], u).T
    q, v = np.stack([angle, c * np.sin(angle)], axis=1), np.stack([speed, c * np.cos(angle) * speed], axis=1)
    return Mechanism(robot.build(), u, q, v, 1e-3)


@cache
def coin():
    """A coin that rolls and leans on a plane, pushed at its centre and turned about its axis."""
    mass, inertia = rolling.COIN, (rolling.ACROSS, rolling.ACROSS, rolling.AXIAL)
    robot = ls.Robot("coin")
    robot.add_link("coin", ls.RigidBody(mass, inertia=inertia), ls.JointFree())
    robot.add_rolling("rim", "coin", rolling.RADIUS, axis=(0, 0, 1), placement=rolling.moved(0.2, -0.1, 0.3))
    robot.add_wrench_input("push", "coin", directions=np.eye(6, 3, -3), frame="world")
    robot.add_wrench_input("spin", "coin", directions=(0, 0, 1, 0, 0, 0))
    u = np.random.default_rng(2).normal(size=(N, 4)) * (4.0, 4.0, 4.0, 0.3)

    def rates(t, y, u):
        """Those of `coin_rates`. The plane, at the lever ρ, also holds the force F: −ρ × F."""
        found, R = rolling.coin_rates(t, y), y[:9].reshape(3, 3)
        rho = rolling.lever(R[:, 2], y[9:12])[0]
        arm = rolling.skew(rho)
        found[9:12] += np.linalg.solve(R @ np.diag(inertia) @ R.T - mass * arm @ arm, u[3] * R[:, 2] - arm @ u[:3])
        return found

    states = [rolling.coin_state(y, (0.0, 0.0, 0.0)) for y in between(rates, rolling.coin_start(), u)]
    return Mechanism(robot.build(), u, np.array([x[0] for x in states]), np.array([x[1] for x in states]), 1e-3)


@cache
def sleigh():
    """The sleigh of Chaplygin with a thrust F along its blade and a torque about it: m (u̇ − a ω²) = F and
    (J + m a²) ω̇ = τ − m a u ω."""
    m, J, a = rolling.MASS, rolling.ABOUT, rolling.A
    robot = ls.Robot("sleigh", gravity=(0, 0, 0))
    robot.add_link("body", ls.RigidBody(m, (a, 0, 0), (0.06, 0.05, J)), ls.JointPlanar())
    robot.add_skate("blade", "body", (0, 2, 0))
    robot.add_wrench_input("drive", "body", directions=np.eye(6)[[3, 2]].T)
    u = np.random.default_rng(3).normal(size=(N, 2)) * (20.0, 4.0)

    def rates(_, y, u):
        angle, speed, w = y[2:]
        turn = (u[1] - m * a * speed * w) / (J + m * a**2)
        return [speed * np.cos(angle), speed * np.sin(angle), w, u[0] / m + a * w**2, turn]

    y = between(rates, [0.0, 0.0, 0.2, 2.0, 3.0], u)
    v = np.stack([y[:, 3] * np.cos(y[:, 2]), y[:, 3] * np.sin(y[:, 2]), y[:, 4]], axis=1)
    return Mechanism(robot.build(), u, y[:, :3], v, 1e-4)


def by_rollout(own, k, method="sdirk"):
    """`rollout` with k steps for each input."""
    found = ls.rollout(own.model, own.q[0], own.v[0], np.repeat(own.u, k, axis=0), dt=H / k, every=k, method=method)
    return found.q, found.v


def by_single_steps(own, k):
    """`step_derivatives`, from (q, v) alone."""
    rows = [(own.q[0], own.v[0])]
    for u in np.repeat(own.u, k, axis=0):
        end = ls.step_derivatives(own.model, *rows[-1], u, dt=H / k)
        rows.append((end.q, end.v))
    return tuple(np.array(x) for x in zip(*rows[::k]))


def by_jax(own, k):
    """`ls.jax.rollout`."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        q, v, _ = ls.jax.rollout(own.model, own.q[0], own.v[0], np.repeat(own.u, k, axis=0), dt=H / k)
    return np.asarray(q)[::k], np.asarray(v)[::k]


def by_torch(own, k):
    """`ls.torch.rollout`."""
    torch = pytest.importorskip("torch")
    given = (torch.tensor(x) for x in (own.q[0], own.v[0], np.repeat(own.u, k, axis=0)))
    q, v, _ = ls.torch.rollout(own.model, *given, dt=H / k)
    return q.numpy()[::k], v.numpy()[::k]


def without_projection(own, k):
    """`simulate` in the steps of a rollout."""
    given = {"controller": lambda t, q, v: own.u[min(round(t / H), N - 1)], "period": H, "project_velocity": False}
    given |= {"dt": H / k, "t_eval": H * np.arange(N + 1), "rtol": 1e-11, "atol": 1e-13, "method": "sdirk"}
    found = ls.simulate(own.model, N * H, own.q[0], own.v[0], **given)
    return found.q, found.v


CASES = [(x, by_rollout) for x in (four_bar, cam, coin, sleigh)] + [
    (four_bar, x) for x in (by_single_steps, by_jax, by_torch, without_projection)
]


@pytest.mark.parametrize(("make", "way"), CASES, ids=lambda x: x.__name__)
def test_second_order_by_default(make, way):
    """A quarter of the error of q and of v with half of the step. Steps whose constraint forces are off by as much as
    themselves have half of it, and an error of the linkage of 0.11 rad with steps of 10 ms."""
    own = make()
    errors = np.array([own.errors(*way(own, k)) for k in (1, 2, 4)])
    assert errors[0, 0] < own.worst
    assert (errors[1] > 3.5 * errors[2]).all(), errors
    assert (errors[0] > 3.0 * errors[1]).all(), errors


@pytest.mark.parametrize("make", [four_bar, cam, coin])
def test_loops_stay_closed(make):
    """Positions hold to rounding at the ends of steps, and velocities follow with an error of second order."""
    own = make()
    rates = []
    for k in (1, 2):
        q, v = by_rollout(own, k)
        assert np.abs(ls.loop_residual(own.model, q)).max() < 1e-11
        rates.append(np.abs(ls.constraint_jacobian(own.model, q) @ v[..., None]).max())
    assert rates[0] > 3.5 * rates[1]


def test_accelerations_are_of_first_order():
    """So are forces of loops: half of the error with half of the step."""
    own, errors = four_bar(), []
    for k in (1, 2, 4, 8):
        motion = ls.rollout(own.model, own.q[0], own.v[0], np.repeat(own.u, k, axis=0), dt=H / k)
        errors.append(np.abs(motion.a[k::k] - own.a[1:]).max())
    assert errors[-1] < 0.02 * np.abs(own.a).max()
    assert all(one > 1.7 * other for one, other in itertools.pairwise(errors)), errors


def test_steps_of_other_robots_stay():
    """Robots whose constraints hold no positions, or that have none, keep both stages of Alexander's scheme."""
    robot = ls.Robot("pendulum")
    robot.add_link("rod", ls.RigidBody(1.0, (0, 0, -0.2), (0.01, 0.01, 0.01)), ls.JointRevolute((0, 1, 0)))
    for own, stages in ((sleigh(), 2), (four_bar(), 3), (cam(), 3), (coin(), 3)):
        motion = ls.rollout(own.model, own.q[0], dt=H, steps=1)
        assert len(motion.method.stages) == stages and motion.method.name == "sdirk"
    assert ls.rollout(robot.build(), dt=H, steps=1).method == ls.sdirk()
    own = four_bar()
    other = ls.rollout(own.model, own.q[0], own.v[0], own.u, dt=H, method="generalized_alpha")
    assert other.method == ls.generalized_alpha()


def test_the_estimated_error():
    """Of a motion with loops and jumping inputs, within a factor of two, as `Rollout.error` says."""
    own = four_bar()
    motion = ls.rollout(own.model, own.q[0], own.v[0], own.u, dt=H)
    for said, exact, found in zip(motion.error(), (own.q, own.v), (motion.q, motion.v)):
        ratio = said[-1] / (found - exact)[-1]
        assert ((ratio > 0.5) & (ratio < 2.0)).all(), ratio


DESIGNS = {four_bar: ("crank.body.mass", "coupler.body.com"), cam: ("rack.body.mass",), coin: ("rim.radius",)}


@pytest.mark.parametrize("make", DESIGNS)
def test_derivatives_follow_the_steps(make):
    """Gradients of q and v by start, inputs and design values, and of a by start and inputs, against differences of the
    motion."""
    own = make()
    motion, rng = ls.rollout(own.model, own.q[0], own.v[0], own.u, dt=H), np.random.default_rng(4)
    start, weights = motion.q, rng.normal(size=(3, N + 1, own.model.nv))

    def loss(of, x):
        parts = ls.difference(own.model, start, x.q), x.v, x.a
        return sum(float(np.sum(weights[k] * parts[k])) for k in of)

    gradient = motion.backward(weights[0], weights[1], parameters=DESIGNS[make])
    check = ls.check_gradient(motion, partial(loss, (0, 1)), gradient)
    assert check.worst < 1e-8, check
    check = ls.check_gradient(motion, partial(loss, (2,)), motion.backward(dL_da=weights[2]))
    assert check.worst < 1e-8, check


@pytest.mark.parametrize("make", [four_bar, cam])
def test_derivatives_of_one_step(make):
    """`step_derivatives` against central differences, along the loops."""
    own, h = make(), 1e-5
    model, q, v, u = own.model, own.q[3], own.v[3], own.u[3]
    n, found = model.nv, ls.step_derivatives(model, q, v, u, dt=H)
    along = null_space(ls.constraint_jacobian(model, q))
    ways = block_diag(along, np.eye(n + model.nu))

    def end(x):
        moved = ls.assemble(model, ls.integrate(model, q, x[:n]))
        step = ls.step_derivatives(model, moved, v + x[n : 2 * n], u + x[2 * n :], dt=H)
        return np.concatenate([step.q, step.v])

    wanted = np.stack([(end(h * x) - end(-h * x)) / (2 * h) for x in ways.T], axis=-1)
    exact = np.hstack([found.A, found.B]) @ ways
    np.testing.assert_allclose(exact, wanted, atol=1e-7 * np.abs(wanted).max())
