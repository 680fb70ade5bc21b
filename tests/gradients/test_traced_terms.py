"""Traced forces and actuators wherever steps run: rollouts with gradients, single steps, steppers, copies with times of
their own, environments, filters and predictive control."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest
from dynamics.small_robots import MATERIAL
from gradients.moving_robots import changes, differenced, mismatch

import lissom as ls
from lissom.stepping.stepper import ATOL, RTOL, Copies, Stepper

jnp = pytest.importorskip("jax.numpy")
STEPS, DT = 12, 4e-3
SAME = {"method": "sdirk", "rtol": RTOL, "atol": ATOL}  # the steps of a stepper


def gust(t, g, eta):
    """A force that swings quickly in time, fades with the place and damps the motion."""
    pull = jnp.stack([jnp.sin(150.0 * t), jnp.cos(g[0, 3]), g[2, 3]]) * jnp.exp(-(g[:3, 3] @ g[:3, 3]))
    return jnp.concatenate([0.01 * jnp.sin(g[:3, 0]), 0.3 * g[:3, :3].T @ pull - 0.05 * eta[3:]])


@lru_cache
def swinging():
    """A hinge and a rod under a traced force, with a traced actuator of two inputs and a tendon."""
    robot = ls.Robot("swinging")
    robot.add_link("upper", ls.RigidBody.cylinder(0.3, 0.02, density=1000.0), ls.JointRevolute((0, 1, 0), damping=0.1))
    basis = ls.BasisLegendre(bending_y=1, bending_z=1)
    robot.add_link("lower", ls.Rod(0.3, ls.SectionCircle(0.015), basis, MATERIAL), parent="upper")
    robot.add_tendon("tendon", "lower", (0.0, 0.01))
    robot.add_force("gust", "lower", ls.TracedFunction(gust))
    nv = robot.build().nv
    C = np.random.default_rng(1).standard_normal((nv, 2, nv))
    coils = ls.TracedFunction(lambda q: 0.01 * jnp.sin(jnp.einsum("jkq,q->jk", C, q) + jnp.arange(2.0)))
    robot.add_custom_actuator("coils", coils, size=2)
    model = robot.build()
    assert not model.calls_python
    return model


def state(lead=()):
    """A start, velocities and inputs of each step."""
    model, rng = swinging(), np.random.default_rng(3)
    q, v = 0.05 * rng.uniform(-1, 1, (2, *lead, model.nv)) * model.dofs.scale
    return q, v, 0.5 + 0.2 * rng.uniform(size=(*lead, STEPS, model.nu))


@pytest.mark.parametrize(
    "method", ["generalized_alpha", pytest.param("implicit_euler", marks=pytest.mark.slow), "esdirk"]
)
def test_rollouts(method):
    """A rollout moves as `simulate`, and its derivatives are those of differences."""
    model, (q, v, u) = swinging(), state()
    options = {"dt": DT, "method": method, "tolerance": 1e-13}
    held = ls.rollout(model, q, v, u[0], steps=STEPS, **options)
    known = {"dt": DT, "method": method, "rtol": 1e-12, "atol": 1e-15, "t_eval": held.t}
    same = ls.simulate(model, held.t[-1], q, v, u=u[0], **known)
    np.testing.assert_allclose(held.q, same.q, rtol=0, atol=1e-9)
    motion, rng = ls.rollout(model, q, v, u, **options), np.random.default_rng(5)
    dq, dv = rng.normal(size=(2, model.nv)) * model.dofs.scale
    way = dq, dv, rng.normal(size=u.shape)
    for k, h in enumerate((1e-5, 1e-3, 1e-4)):
        one, two, three = (x if k == j else 0.0 * x for j, x in enumerate(way))
        exact = motion.forward(one, two, three)
        found = differenced(
            lambda x, a=one, b=two, c=three: changes(
                model, motion, ls.rollout(model, q + x * a, v + x * b, u + x * c, **options)
            ),
            h,
        )
        assert mismatch(model, (exact.q, exact.v, exact.a), found) < 1e-9, k
    weights = rng.normal(size=(3, STEPS + 1, model.nv)) / model.dofs.scale
    gradient = motion.backward(*weights, parameters=["lower.material.young"])

    def loss(other):
        parts = zip(weights, (other.q, other.v, other.a))
        return float(sum(np.sum(w * x) for w, x in parts))

    assert ls.check_gradient(motion, loss, gradient).worst < 1e-7


def test_single_steps():
    """`step_derivatives` is a rollout of one step with its derivatives."""
    model, (q, v, u) = swinging(), state()
    step = ls.step_derivatives(model, q, v, u[0], dt=DT, method="implicit_euler")
    one = ls.rollout(model, q, v, u[:1], dt=DT, method="implicit_euler")
    change = one.forward(np.eye(2 * model.nv, model.nv), np.eye(2 * model.nv, model.nv, -model.nv))
    np.testing.assert_allclose(step.q, one.q[-1], rtol=0, atol=1e-14)
    np.testing.assert_allclose(step.A, np.hstack([change.q[:, -1], change.v[:, -1]]).T, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("tolerance", [None, 1e-8])
def test_steppers(tolerance):
    """A stepper that begins at a later time is where a simulation is, also with adaptive steps."""
    model, (q, v, u) = swinging(), state()
    last = STEPS * DT
    options = {"dt": DT, **SAME} if tolerance is None else {"method": "esdirk", "rtol": 1e-9, "atol": 1e-11}
    known = ls.simulate(model, last, q, v, u=u[0], t_eval=[DT, last], **options)
    stepper = Stepper(model, DT, q0=q, v0=v, u=u[0], tolerance=tolerance)
    stepper.step(u[0], STEPS)
    limit = 1e-9 if tolerance is None else 1e-5
    assert np.abs(stepper.state.q - known.q[-1]).max() < limit * np.abs(known.q[-1]).max()
    if tolerance is not None:
        later = Stepper(model, DT, q0=known.q[0], v0=known.v[0], u=u[0], tolerance=tolerance, t=DT)
        later.step(u[0], STEPS - 1)
        assert np.abs(later.state.q - known.q[-1]).max() < limit * np.abs(known.q[-1]).max()


def test_copies_have_times_of_their_own():
    """Copies that are placed at different moments move as a stepper from time zero."""
    model, (q, v, u) = swinging(), state()
    copies = Copies(model, 3, dt=DT, steps=2)
    rows = [np.tile(x, (3, 1)) for x in (q, v, u[0])]
    copies.place([0, 1, 2], *rows)
    copies.advance(rows[2])
    copies.place([1], *(x[:1] for x in rows))
    copies.advance(rows[2])
    copies.advance(rows[2])
    for k, steps in ((0, 6), (1, 4), (2, 6)):
        stepper = Stepper(model, DT, q0=q, v0=v, u=u[0])
        stepper.step(u[0], steps)
        assert np.abs(copies.q[k] - stepper.state.q).max() < 1e-9 * np.abs(stepper.state.q).max()
    assert np.abs(copies.q[0] - copies.q[1]).max() > 1e-3 * np.abs(copies.q[0]).max()


@dataclass(frozen=True, eq=False)
class Stay(ls.gym.Task):
    """Stay at the start."""

    def start(self, random):
        """The start of the tests."""
        q, v, u = state()
        return ls.gym.TaskStart(q=q, v=v, u=u[0])

    def observe(self, state):
        """The configuration."""
        return state.q

    def reward(self, state):
        """Smaller for faster motions."""
        return -(state.v**2).sum(axis=1)

    def inputs(self, action):
        """Inputs of the tests."""
        return np.tile(state()[2][0], (len(action), 1))


def test_environments():
    """Copies of an environment move as a simulation."""
    pytest.importorskip("gymnasium")
    model, (q, v, u) = swinging(), state()
    env = ls.gym.vector_environment(Stay(model, period=2 * DT, steps=2), 2)
    env.reset(seed=0)
    for _ in range(3):
        seen = env.step(np.zeros((2, model.nu)))[0]
    known = ls.simulate(model, 6 * DT, q, v, u=u[0], dt=DT, t_eval=[6 * DT], **SAME)
    np.testing.assert_allclose(seen, np.tile(known.q[-1], (2, 1)), rtol=0, atol=1e-9 * np.abs(known.q[-1]).max())


def test_jax():
    """The gradient in JAX is that of the rollout."""
    import jax

    jax.config.update("jax_enable_x64", True)
    model, (q, v, u) = swinging(), state()
    want = ls.rollout(model, q, v, u, dt=DT)
    weights = np.zeros_like(want.v)
    weights[-1] = want.v[-1]

    def loss(u):
        return 0.5 * jnp.sum(ls.jax.rollout(model, q, v, u, dt=DT)[1][-1] ** 2)

    found = jax.grad(loss)(u)
    np.testing.assert_allclose(found, want.backward(dL_dv=weights).u, rtol=1e-10, atol=1e-12 * np.abs(found).max())


def steady(time):
    """A rod on a hinge under a force that takes the time only if `time` is not zero."""
    robot = ls.Robot("steady")
    rod = ls.Rod(0.3, ls.SectionCircle(0.015), ls.BasisLegendre(torsion=0, bending_y=1), MATERIAL)
    robot.add_link("rod", rod, ls.JointRevolute((0, 1, 0), stiffness=1.0, damping=0.05))
    robot.add_tendon("tendon", "rod", (0.0, 0.01))
    away = ls.TracedFunction(lambda t, g, eta: gust(0.01 + time * t if time else 0.01, g, eta))
    robot.add_force("away", "rod", away)
    return robot.build()


def test_filters_and_predictive_control():
    """Filters and predictive control take traced forces that do not depend on time: a filter converges to the motion,
    and a plan is the motion of `simulate` under its inputs. They refuse forces that depend on time."""
    model, u = steady(0.0), 0.5 + 0.3 * np.sin(np.arange(40.0))[:, None]
    motion = ls.rollout(model, 0.05 * model.dofs.scale, u=u, dt=DT, method="sdirk")
    sensors = [ls.SensorPosition("rod", 1e-4), ls.SensorLength("tendon", 1e-5)]
    options = {"dt": DT, "input_noise": 1e-3, "process_noise": np.full(8, 1e-6), "method": "sdirk"}
    kalman = ls.ExtendedKalmanFilter(model, sensors, **options)
    measured = [one.value(model, motion.q[1:], motion.v[1:]) for one in sensors]
    uncertain = np.concatenate([0.2 * model.dofs.scale, model.dofs.scale])
    found = kalman.run(kalman.start(model.neutral(), np.zeros(model.nv), uncertain), u, measured)
    apart = np.abs(ls.difference(model, found.q, motion.q)) / model.dofs.scale
    assert apart[-1].max() < 1e-3 < 0.03 < apart[0].max()
    cost = ls.TrackingCost(model, 1e-3, points={"rod": 10.0}, point_reference=[[0.29, 0.0, -0.02]])
    control = ls.ModelPredictiveControl(model, cost, dt=DT, steps=10, limits=(0.0, 20.0))
    plan = control.plan(0.0, model.neutral(), np.zeros(model.nv), iterations=5)
    known = ls.rollout(model, model.neutral(), np.zeros(model.nv), plan.u, dt=DT, method="sdirk", tolerance=1e-12)
    np.testing.assert_allclose(plan.q, known.q, rtol=0, atol=1e-6)
    taking = steady(1.0)
    for refused in (
        lambda: ls.ExtendedKalmanFilter(taking, sensors, **options),
        lambda: ls.ModelPredictiveControl(taking, ls.TrackingCost(taking, 1e-3), dt=DT, steps=10),
    ):
        with pytest.raises(ls.ModelError, match="depend on time"):
            refused()


def test_motions_under_steady_forces():
    """A force that does not take the time moves the robot as the same force that takes it without effect."""
    one, other = (ls.simulate(steady(time), 0.05, 0.05 * np.ones(4), dt=DT, u=[1.0]) for time in (0.0, 1e-300))
    np.testing.assert_allclose(one.q, other.q, rtol=0, atol=1e-12)
