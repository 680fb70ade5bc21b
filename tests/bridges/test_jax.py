"""Functions of the library within JAX: its own check of gradients, compiled and mapped, beside the library itself."""

import sys

import jax
import numpy as np
import pytest
from gradients.moving_robots import floating, soft, start
from jax.test_util import check_grads

import lissom as ls
from lissom.bridges import jax_functions

MODES = ("fwd", "rev")
ROBOTS = {"soft": soft, "floating": floating}  # without quaternions and with two


@pytest.fixture(scope="module", autouse=True)
def double():
    """JAX in double precision, and as it was afterwards."""
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module", params=ROBOTS)
def moving(request):
    """A model, a state, an acceleration and four rows of inputs."""
    model = ROBOTS[request.param]().build()
    rng = np.random.default_rng(0)
    return model, *start(model), rng.normal(size=model.nv), rng.uniform(0.5, 2.0, (4, model.nu))


@pytest.fixture(scope="module")
def arm():
    """The soft arm and inputs."""
    model = soft().build()
    return model, np.random.default_rng(1).uniform(0.5, 2.0, (3, model.nu))


def test_dynamics_pass_the_check_of_jax(moving):
    """Derivatives forwards and backwards are those of differences by all numbers of q, also along quaternions."""
    model, q, v, a, u = moving
    check_grads(lambda *x: ls.jax.inverse_dynamics(model, *x), (q, v, a), 1, MODES, eps=1e-5)
    check_grads(lambda *x: ls.jax.forward_dynamics(model, *x), (q, v, u[0]), 1, MODES, eps=1e-5)


def test_rollouts_pass_the_check_of_jax(moving):
    """Derivatives by start and inputs, forwards and backwards, are those of differences."""
    model, q, v, _, u = moving
    check_grads(lambda *x: ls.jax.rollout(model, *x, dt=1e-3), (q, v, u), 1, MODES, eps=1e-6)


def test_statics_pass_the_check_of_jax(arm):
    """Derivatives by inputs are those of differences, and the start has none."""
    model, u = arm
    check_grads(lambda u: ls.jax.solve_statics(model, u), (u,), 1, MODES)
    by_start = jax.grad(lambda q0: ls.jax.solve_statics(model, u[0], q0).sum())(model.neutral())
    assert not np.any(by_start)


def test_mapped_and_compiled_values_are_the_library_s(moving):
    """`vmap` within `jit` makes one batch, of which some arguments are the same for all, and changes no number."""
    model, q, v, a, u = moving
    many = np.stack([model.neutral(), q])
    found = jax.jit(jax.vmap(lambda q: ls.jax.forward_dynamics(model, q, v, u[0])))(many)
    assert np.array_equal(found, ls.forward_dynamics(model, many, v, u[0]))
    found = jax.vmap(lambda a: ls.jax.inverse_dynamics(model, many, v, a))(np.stack([a, 2 * a, 3 * a]))
    exact = ls.inverse_dynamics(model, many, v, np.stack([a, 2 * a, 3 * a])[:, None])
    assert np.array_equal(found, exact)


def test_gradients_of_rollouts_are_those_of_backward(moving):
    """Within `jit`, `vmap` over starts and several functions of each motion, which take one motion together."""
    model, q, v, _, u = moving
    speeds = np.stack([v, 0.5 * v])
    ends = jax.jacrev(lambda v, u: ls.jax.rollout(model, q, v, u, dt=1e-3)[1][-1, :3], argnums=(0, 1))
    by_v, by_u = jax.jit(jax.vmap(ends, (0, None)))(speeds, u)
    motion = ls.rollout(model, q, speeds, u, dt=1e-3)
    weights = np.zeros((3, 2, 5, model.nv))
    weights[[0, 1, 2], :, -1, [0, 1, 2]] = 1.0
    exact = motion.backward(dL_dv=weights)
    for found, own in ((by_v, exact.v0), (by_u, exact.u)):
        np.testing.assert_allclose(np.swapaxes(found, 0, 1), own, rtol=1e-9, atol=1e-12 * np.abs(own).max(initial=1))


def test_derivatives_of_rollouts_forwards_are_those_of_forward(moving):
    """Within `jit`, along many directions of one motion, and mapped over starts: `jacfwd` is `jacrev`, and both are the
    library's."""
    model, q, v, _, u = moving
    speeds = np.stack([v, 0.5 * v])
    ends = lambda v: ls.jax.rollout(model, q, v, u, dt=1e-3)[1][-1]  # noqa: E731
    ahead = jax.jit(jax.vmap(jax.jacfwd(ends)))(speeds)
    exact = ls.rollout(model, q, speeds, u, dt=1e-3).forward(dv0=np.eye(model.nv)[:, None]).v[:, :, -1]
    size = 1e-9 * np.abs(exact).max()
    np.testing.assert_allclose(np.moveaxis(ahead, 2, 0), exact, atol=size)
    np.testing.assert_allclose(jax.vmap(jax.jacrev(ends))(speeds), ahead, atol=size)


DESIGN = ("arm.material.young", "arm.length")


def designs(model):
    """Two design values of the soft arm by path."""
    known = model.description.described_values()
    return {path: np.asarray(known[path], dtype=float) for path in DESIGN}


def test_designs_have_the_derivatives_of_the_library(arm):
    """Gradients by design values, of motions and equilibria, forwards and backwards, also mapped over designs."""
    model, u = arm
    x = designs(model)
    last = lambda x: ls.jax.rollout(model, u=u, dt=1e-3, design=x)[1][-1]  # noqa: E731
    motion = ls.rollout(model, u=u, dt=1e-3)
    weights = np.zeros_like(motion.v)
    weights[-1] = 1.0
    exact = motion.backward(dL_dv=weights, parameters=DESIGN).parameters
    found = jax.jit(jax.grad(lambda x: last(x).sum()))(x)
    ahead = jax.jacfwd(last)(x)
    for path in DESIGN:
        np.testing.assert_allclose(found[path], exact[path], rtol=1e-9)
        np.testing.assert_allclose(np.sum(ahead[path]), exact[path], rtol=1e-8)
    shorter = {path: np.stack([value, 0.9 * value]) for path, value in x.items()}
    many = jax.vmap(jax.grad(lambda x: last(x).sum()))(shorter)
    own = jax.grad(lambda x: last(x).sum())({path: value[1] for path, value in shorter.items()})
    for path in DESIGN:
        np.testing.assert_allclose(many[path], [exact[path], own[path]], rtol=1e-8)
    pulls = np.stack([u, 0.5 * u])
    rows = jax.vmap(jax.jacfwd(lambda x, u: ls.jax.rollout(model, u=u, dt=1e-3, design=x)[1][-1]), (None, 0))(x, pulls)
    for path in DESIGN:
        np.testing.assert_allclose(rows[path][0], ahead[path], rtol=1e-7, atol=1e-9 * np.abs(ahead[path]).max())
    rest = ls.equilibrium_derivatives(ls.solve_statics(model, u[0]), parameters=DESIGN).parameters
    for mode in (jax.jacfwd, jax.jacrev):
        slopes = mode(lambda x: ls.jax.solve_statics(model, u[0], design=x))(x)
        for path in DESIGN:
            np.testing.assert_allclose(slopes[path], rest[path], rtol=1e-9, atol=1e-12 * np.abs(rest[path]).max())


def test_second_derivatives_are_those_of_differences(arm):
    """Hessian-vector products of motions and equilibria, forwards over backwards and backwards twice, by inputs and
    design values together."""
    model, u = arm
    x = designs(model)
    scaled = {"u": np.ones_like(u), **{path: np.ones(()) for path in DESIGN}}
    rng = np.random.default_rng(3)
    way = {name: rng.normal(size=value.shape) for name, value in scaled.items()}

    def along(slopes, way):
        return sum(jax.numpy.sum(slopes[name] * way[name]) for name in way)

    def moving(y):
        design = {path: y[path] * x[path] for path in DESIGN}
        q, v, _ = ls.jax.rollout(model, u=y["u"] * u, dt=1e-3, design=design)
        return jax.numpy.sum(v[-1] ** 2) + jax.numpy.sum(q[-1])

    def resting(y):
        design = {path: y[path] * x[path] for path in DESIGN}
        return jax.numpy.sum(ls.jax.solve_statics(model, y["u"][0] * u[0], design=design) ** 2)

    for loss in (moving, resting):
        slope = jax.jit(jax.grad(loss))  # compiled once for all places
        _, found = jax.jvp(slope, (scaled,), (way,))
        twice = jax.grad(lambda y, slope=slope: along(slope(y), way))(scaled)
        h = 1e-3
        places = [{name: scaled[name] + k * h * way[name] for name in scaled} for k in (2, 1, -1, -2)]
        ends = [slope(place) for place in places]
        size = max(float(np.abs(part).max()) for part in jax.tree.leaves(found))
        for name in scaled:
            wanted = (8 * (ends[1][name] - ends[2][name]) - ends[0][name] + ends[3][name]) / (12 * h)
            np.testing.assert_allclose(found[name], wanted, atol=1e-6 * size)
            np.testing.assert_allclose(twice[name], found[name], atol=1e-6 * size)


def test_second_derivatives_with_quaternions():
    """Along a direction of the start, the derivative of the gradient is that of differences; a gradient of a gradient
    is refused."""
    model = floating().build()
    q, v = start(model)
    u = np.ones((3, model.nu))
    slope = jax.jit(jax.grad(lambda q: ls.jax.rollout(model, q, v, u, dt=1e-3)[1][-1].sum()))
    way = np.random.default_rng(2).normal(size=model.nq)
    _, found = jax.jvp(slope, (q,), (way,))
    h = 1e-5
    ends = [slope(q + k * h * way) for k in (2, 1, -1, -2)]
    wanted = (8 * (ends[1] - ends[2]) - ends[0] + ends[3]) / (12 * h)
    np.testing.assert_allclose(found, wanted, atol=1e-6 * np.abs(wanted).max())
    with pytest.raises(Exception, match=r"need jax\.jvp of jax\.grad"):
        jax.grad(lambda q: slope(q) @ way)(q)


def test_third_derivatives_are_refused(arm):
    """Dynamics have no second, motions no third derivatives, and the error says so."""
    model, u = arm
    slope = jax.grad(lambda u: ls.jax.rollout(model, u=u, dt=1e-3)[1].sum())
    twice = jax.grad(lambda u: slope(u).sum())
    with pytest.raises(ls.ModelError, match="no second or third derivatives in JAX"):
        jax.grad(lambda u: twice(u).sum())(u)


def test_wrong_arguments_are_named(arm):
    """Single precision, batches of models, and shapes that do not fit."""
    model, u = arm
    with pytest.raises(ls.ShapeError, match=r"v: expected shape \(..., 7\), got \(6,\)"):
        ls.jax.forward_dynamics(model, model.neutral(), np.zeros(6))
    with pytest.raises(ls.ModelError, match=r"steps: must be given"):
        ls.jax.rollout(model, u=u[0], dt=1e-3)
    with pytest.raises(ls.ModelError, match=r"model: must be one Model.*got a ModelBatch"):
        ls.jax.solve_statics(model.batch("arm.length", [0.4, 0.5]), u[0])
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(ls.ModelError, match="jax_enable_x64"):
            ls.jax.solve_statics(model, u)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_a_missing_extra_is_named(arm, monkeypatch):
    """Without JAX each function says what to install."""
    monkeypatch.setitem(sys.modules, "jax", None)
    model, u = arm
    for call in (ls.jax.solve_statics, lambda *x: ls.jax.rollout(*x, dt=1e-3)):
        with pytest.raises(ls.ModelError, match=r"pip install 'lissom\[jax\]'"):
            call(model, u)


def test_one_core_raises_instead_of_waiting(arm, monkeypatch):
    """A batch that JAX would copy in the thread that waits for the library is an error; smaller ones go through."""
    model, _ = arm
    monkeypatch.setattr(jax_functions, "_threads_of_jax", lambda: 1)
    still = jax.vmap(lambda q: ls.jax.inverse_dynamics(model, q, np.zeros(7), np.zeros(7)))
    assert still(np.zeros((1000, 7))).shape == (1000, 7)
    with pytest.raises(Exception, match="must take no more than 100000 bytes on one core"):
        still(np.zeros((3000, 7))).block_until_ready()
    assert still(np.ones((2, 7))).shape == (2, 7), "and JAX raises the error no second time, when Python ends"
