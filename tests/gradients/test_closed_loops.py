"""Rollouts under traced feedback laws: the steps of `simulate`, and derivatives of the closed loop."""

from functools import lru_cache

import numpy as np
import pytest
from gradients.moving_robots import changes, differenced, mismatch
from gradients.moving_robots import soft as soft_arm
from simulation import test_traced_laws as laws

import lissom as ls

jnp = pytest.importorskip("jax.numpy")
STEPS, DT = 16, 4e-3
# Steps of differences by q0, by v0 and by the inputs, at which errors of fourth order and of rounding are about equal.
# Where a tendon becomes slack, they are so short that all take the same steps by implicit Euler.
ROBOTS = {
    "free": (1e-4, 3e-4, 3e-4),
    "pulled": (3e-6, 1e-3, 1e-4),
    "touching": (1e-5, 1e-3, 1e-3),
    "looped": (1e-3, 1e-1, 1e-1),
    "block": (1e-4, 1e-3, 1e-3),
}
SCHEMES = [ls.generalized_alpha(0.8), ls.implicit_euler(), ls.bathe(), ls.sdirk(), ls.esdirk()]


@lru_cache
def built(name):
    """A robot, its law, an initial state and inputs that are added to those of the law."""
    model, rng = laws.ROBOTS[name](), np.random.default_rng(4)
    q0, v0 = laws.start(model), np.zeros(model.nv)
    if not model.n_rows:
        v0 = rng.uniform(-0.5, 0.5, model.nv) * np.minimum(model.dofs.scale, 1.0)
    u = 0.3 * np.array(laws.SIZES[name]) * rng.uniform(0.0, 1.0, (STEPS, model.nu))
    return model, laws.law_of(name), q0, v0, u


def moved(name, way=(0.0, 0.0, 0.0), x=0.0, **options):
    """The motion with initial state and inputs changed by x along a direction."""
    model, law, q0, v0, u = built(name)
    dq0, dv0, du = way
    q = ls.integrate(model, q0, x * dq0 * np.ones(model.nv))
    return ls.rollout(model, q, v0 + x * dv0, u + x * du, dt=DT, tolerance=1e-13, controller=law, **options)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda x: x.name)
@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives_by_start_and_inputs(name, scheme):
    """Forward derivatives equal differences of the closed loop. Backward ones have the same products with any
    weights."""
    model, rng = built(name)[0], np.random.default_rng(5)
    motion = moved(name, method=scheme)
    dq0, dv0 = rng.normal(size=(2, model.nv)) * model.dofs.scale
    way = motion.start_derivatives.onto_q[0] @ dq0, dv0, rng.normal(size=motion.u.shape) * laws.SIZES[name]
    for k in range(3):
        own = tuple(x if k == j else 0.0 * x for j, x in enumerate(way))
        exact = motion.forward(*own)
        h = ROBOTS[name][k]
        found = differenced(lambda x, own=own: changes(model, motion, moved(name, own, x, method=scheme)), h)
        assert np.abs(found).max() > 0.0
        tolerance = 1e-7 if model.n_rows else 3e-9  # constraint forces round to 1e-10
        assert mismatch(model, (exact.q, exact.v, exact.a), found) < tolerance, k
    weights = rng.normal(size=(3, STEPS + 1, model.nv)) / model.dofs.scale
    gradient, exact = motion.backward(*weights), motion.forward(*way)
    given = sum(np.sum(w * x) for w, x in zip(weights, (exact.q, exact.v, exact.a)))
    back = gradient.q0 @ way[0] + gradient.v0 @ way[1] + np.sum(gradient.u * way[2])
    assert back == pytest.approx(given, rel=1e-10)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda x: x.name)
@pytest.mark.parametrize("name", ROBOTS)
def test_motion_is_that_of_simulate(name, scheme):
    """Without further inputs a rollout is the motion of `simulate` under the same law, with the same inputs."""
    model, law, q0, v0, _ = built(name)
    # `simulate` divides no step of 1 ms; in longer ones loops do not resolve the start, and then â is that of a rollout
    dt = DT if model.n_rows and scheme.follows_accelerations else 1e-3
    motion = ls.rollout(model, q0, v0, dt=dt, steps=STEPS, controller=law, method=scheme, tolerance=1e-12)
    options = {"dt": dt, "rtol": 1e-12, "atol": 1e-15, "t_eval": motion.t, "project_velocity": False}
    same = ls.simulate(model, motion.t[-1], q0, v0, controller=law, method=scheme, **options)
    assert same.statistics.steps == STEPS
    np.testing.assert_allclose(motion.q, same.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(motion.inputs, same.u, rtol=1e-8, atol=1e-8 * max(laws.SIZES[name]))
    np.testing.assert_array_equal(motion.u, np.zeros((STEPS, model.nu)))


def test_inputs_are_added():
    """A law that is zero leaves the motion under the given inputs; one that is constant adds to them."""
    model, _, q0, v0, u = built("pulled")
    own = ls.rollout(model, q0, v0, u, dt=DT)
    zero = ls.rollout(model, q0, v0, u, dt=DT, controller=ls.TracedFunction(lambda t, q, v: jnp.zeros(model.nu)))
    np.testing.assert_allclose(zero.q, own.q, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(zero.inputs, own.inputs)
    more = np.array(laws.SIZES["pulled"])
    both = ls.rollout(model, q0, v0, u, dt=DT, controller=ls.TracedFunction(lambda t, q, v: jnp.asarray(more)))
    np.testing.assert_allclose(both.q, ls.rollout(model, q0, v0, u + more, dt=DT).q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.inputs[1:], u + more, rtol=1e-14)


def arm():
    """A soft arm, an initial state and a law of its motor and two tendons."""
    model = soft_arm().build()
    gains = jnp.array([[30.0, 2.0, 1.0], [-10.0, 3.0, 2.0], [4.0, 1.0, 5.0]])
    law = ls.TracedFunction(lambda t, q, v: 3.0 + 0.1 * gains @ q[:3] - 0.05 * jnp.tanh(v[:3]) + jnp.sin(20.0 * t))
    q0 = ls.integrate(model, model.neutral(), 0.05 * model.dofs.scale)
    return model, law, q0


def test_design_values_and_batches():
    """Derivatives by design values in closed loop are those of differences, also in batches and between kept states."""
    model, law, q0 = arm()
    weights = np.random.default_rng(3).normal(size=(2, STEPS + 1, model.nv)) / model.dofs.scale
    paths = ["arm.material.young", "ball.body.mass"]
    given = {"dt": DT, "steps": STEPS, "controller": law}

    def loss(motion):
        q = ls.difference(model, np.broadcast_to(model.neutral(), motion.q.shape), motion.q)
        return float(np.sum(weights[0] * q) + np.sum(weights[1] * motion.v))

    motion = ls.rollout(model, q0, **given)
    gradient = motion.backward(*weights, parameters=paths)
    assert ls.check_gradient(motion, loss, gradient).worst < 1e-7
    many = ls.rollout(model, np.array([q0, 0.5 * q0]), **given)
    np.testing.assert_array_equal(many.q[0], motion.q)
    both = many.backward(*(np.stack([w, w]) for w in weights), parameters=paths)
    np.testing.assert_allclose(both.q0[0], gradient.q0, rtol=1e-12)
    for path in paths:
        np.testing.assert_allclose(both.parameters[path][0], gradient.parameters[path], rtol=1e-10)
    sparse = ls.rollout(model, q0, every=4, **given)
    np.testing.assert_allclose(sparse.q, motion.q[::4], rtol=0, atol=1e-11)  # the tolerance of Newton's method
    np.testing.assert_allclose(sparse.inputs, motion.inputs[::4], rtol=1e-9)
    spread = np.zeros_like(weights)
    spread[:, ::4] = weights[:, ::4]
    found, want = sparse.backward(*weights[:, ::4]), motion.backward(*spread)
    np.testing.assert_allclose(found.q0, want.q0, rtol=1e-9)
    designs = model.batch("arm.material.young", [1e6, 1.3e6])
    of_models = ls.rollout(designs, q0, **given)
    other = of_models.backward(*(np.stack([w, w]) for w in weights), parameters=paths)
    alone = ls.rollout(designs[1], q0, **given)
    np.testing.assert_array_equal(of_models.q[1], alone.q)
    np.testing.assert_allclose(other.v0[1], alone.backward(*weights).v0, rtol=1e-9)


def test_the_estimated_error():
    """The error that a rollout under a law estimates is that of a motion with short steps."""
    model, law, q0 = arm()
    motion = ls.rollout(model, q0, dt=2e-3, steps=40, controller=law)
    fine = ls.rollout(model, q0, dt=2e-3 / 16, steps=640, every=16, controller=law)
    true = np.abs(ls.difference(model, fine.q, motion.q)).max()
    assert np.abs(motion.error()[0]).max() == pytest.approx(true, rel=0.3)


def test_matrices_of_steps():
    """Matrices of single steps are those of the closed loop, in rollouts and in `step_derivatives`."""
    model, law, q0 = arm()
    n, v0 = model.nv, 0.1 * np.ones(model.nv)
    motion = ls.rollout(model, q0, v0, dt=DT, steps=STEPS, controller=law, method="implicit_euler")
    x = np.vstack([np.eye(n), np.zeros((3 * n, n))])
    for A in motion.step_matrices()[0]:
        x = A @ x
    np.testing.assert_allclose(x[:n], motion.forward(np.eye(n)).q[:, -1].T, rtol=1e-9, atol=1e-12)
    for method in ("implicit_euler", "generalized_alpha"):
        step = ls.step_derivatives(model, q0, v0, [0.1, 0.2, 0.3], dt=DT, method=method, controller=law)
        one = ls.rollout(model, q0, v0, [0.1, 0.2, 0.3], dt=DT, steps=1, method=method, controller=law)
        np.testing.assert_allclose(step.q, one.q[-1], rtol=0, atol=1e-14)
        change = one.forward(np.eye(2 * n, n), np.eye(2 * n, n, -n))
        np.testing.assert_allclose(step.A, np.hstack([change.q[:, -1], change.v[:, -1]]).T, rtol=1e-8, atol=1e-9)


def test_python_steps(monkeypatch):
    """Robots whose bodies call Python take the same steps under a law as kernels, with the same derivatives."""
    from lissom.model.model import Model

    model, law, q0 = arm()
    u = np.linspace(0.0, 1.0, STEPS)[:, None] * np.ones(model.nu)
    kernels = ls.rollout(model, q0, u=u, dt=DT, controller=law)
    monkeypatch.setattr(Model, "calls_python", True)
    python = ls.rollout(model, q0, u=u, dt=DT, controller=law)
    np.testing.assert_allclose(python.q, kernels.q, rtol=0, atol=1e-12)
    weights = np.ones((2, STEPS + 1, model.nv))
    one, other = (motion.backward(*weights) for motion in (kernels, python))
    for name in ("q0", "v0", "u"):
        want = getattr(one, name)
        np.testing.assert_allclose(getattr(other, name), want, rtol=0.0, atol=1e-9 * np.abs(want).max())


def test_numbers_of_the_law_stay():
    """A motion that is computed again, for its error, keeps the numbers that the law has read."""
    gain = [5.0]
    law = ls.TracedFunction(lambda t, q, v: -gain[0] * q)
    model = laws.pendulum()
    motion = ls.rollout(model, [0.3], dt=0.02, steps=10, controller=law, every=5)
    error, slope = motion.error()[0], motion.backward(np.ones((3, 1))).q0
    gain[0] = 50.0
    np.testing.assert_array_equal(motion.error()[0], error)
    np.testing.assert_array_equal(motion.backward(np.ones((3, 1))).q0, slope)
    assert np.abs(ls.rollout(model, [0.3], dt=0.02, steps=10, controller=law).q[-1] - motion.q[-1]) > 0.01


REFUSED = {
    "python": (lambda t, q, v: -q, "must be an ls.TracedFunction"),
    "state": (ls.Controller(lambda t, q, v, z: -q), "must be an ls.TracedFunction"),
    "branch": (ls.TracedFunction(lambda t, q, v: -q if q[0] > 0 else q), "branches"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_laws_without_derivatives(case):
    """A law that is no traced function, or cannot be traced, is refused in one line that says what to take."""
    law, words = REFUSED[case]
    with pytest.raises(ls.ModelError) as caught:
        ls.rollout(laws.pendulum(), dt=0.01, steps=2, controller=law)
    text = str(caught.value)
    assert text.startswith("controller: ") and words in text and "\n" not in text


def test_inputs_that_are_not_finite():
    """A law that becomes NaN during a rollout is named, with the time."""
    law = ls.TracedFunction(lambda t, q, v: jnp.sqrt(0.05 - t) + q)
    with pytest.raises(ls.ShapeError, match=r"controller at t=0\.0[56]"):
        ls.rollout(laws.pendulum(), [0.1], dt=0.01, steps=10, controller=law)


@pytest.mark.parametrize("bridge", ["jax", "torch"])
def test_bridges(bridge):
    """Motions and gradients of JAX and PyTorch under a law are those of `rollout`."""
    pytest.importorskip(bridge)
    model, law, q0 = arm()
    rng = np.random.default_rng(6)
    v0, u = 0.1 * rng.normal(size=model.nv), rng.uniform(size=(STEPS, model.nu))
    weights = rng.normal(size=(3, STEPS + 1, model.nv)) / model.dofs.scale
    given = {"dt": DT, "controller": law, "every": 1}
    motion = ls.rollout(model, q0, v0, u, **given)
    want = motion.backward(*weights)
    if bridge == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)

        def loss(*x):
            return sum(jnp.sum(w * y) for w, y in zip(weights, ls.jax.rollout(model, *x, **given)))

        found, q = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(q0, v0, u), ls.jax.rollout(model, q0, v0, u, **given)[0]
    else:
        import torch

        x = [torch.tensor(y, requires_grad=True) for y in (q0, v0, u)]
        moved = ls.torch.rollout(model, *x, **given)
        sum((torch.tensor(w) * y).sum() for w, y in zip(weights, moved)).backward()
        found, q = [y.grad.numpy() for y in x], moved[0].detach().numpy()
    np.testing.assert_array_equal(q, motion.q)
    for one, other in zip(found, (want.q0, want.v0, want.u)):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.abs(other).max())
