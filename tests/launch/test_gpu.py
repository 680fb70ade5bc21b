"""Functions give the same numbers on a GPU as on the CPU. Skipped where there is no GPU."""

import warnings

import history_calls
import numpy as np
import pytest
import warp as wp
from traced_robots import hybrid_of_traced_functions

import lissom as ls

wp.init()
pytestmark = [
    pytest.mark.skipif(not wp.is_cuda_available(), reason="needs a GPU of NVIDIA and its driver"),
    pytest.mark.filterwarnings("ignore::lissom.errors.RedundancyWarning"),
]

BATCH = 33


@pytest.fixture(scope="module", params=["arm", "soft", "closed", "touching"])
def models(request):
    """A robot on the CPU and on the GPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = history_calls.ROBOTS[request.param]().build()
    return model, model.on("cuda:0")


def states(model, lead=(), seed=0):
    rng = np.random.default_rng(seed)
    q0 = np.broadcast_to(model.neutral(), (*lead, model.nq))
    q = ls.integrate(model, q0, 0.1 * rng.standard_normal((*lead, model.nv)))
    v, a = rng.standard_normal((2, *lead, model.nv))
    return q, v, a, rng.uniform(0.1, 1.0, (*lead, model.nu))


def assert_same(found, expected, relative=1e-10):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * max(np.abs(expected).max(initial=0.0), 1e-12))


FUNCTIONS = {
    "inverse_dynamics": lambda m, q, v, a, u: ls.inverse_dynamics(m, q, v, a),
    "mass_matrix": lambda m, q, v, a, u: ls.mass_matrix(m, q),
    "forward_dynamics": lambda m, q, v, a, u: ls.forward_dynamics(m, q, v, u),
    "actuation_matrix": lambda m, q, v, a, u: ls.actuation_matrix(m, q),
    "integrate": lambda m, q, v, a, u: ls.integrate(m, q, v),
    "difference": lambda m, q, v, a, u: ls.difference(m, np.broadcast_to(m.neutral(), q.shape), q),
}


@pytest.mark.parametrize("lead", [(), (BATCH,)], ids=["one", "batch"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(models, name, lead):
    """Single calls and batches."""
    on_cpu, on_gpu = models
    arguments = states(on_cpu, lead)
    assert_same(FUNCTIONS[name](on_gpu, *arguments), FUNCTIONS[name](on_cpu, *arguments))


def test_traced_functions():
    """Forces, springs and currents of jax.numpy."""
    on_cpu = hybrid_of_traced_functions().build()
    on_gpu = on_cpu.on("cuda:0")
    for name in ("inverse_dynamics", "forward_dynamics"):
        arguments = states(on_cpu, (BATCH,))
        assert_same(FUNCTIONS[name](on_gpu, *arguments), FUNCTIONS[name](on_cpu, *arguments))


@pytest.mark.parametrize("lead", [(), (BATCH,)], ids=["one", "batch"])
def test_derivatives(models, lead):
    """Exact derivatives of inverse dynamics."""
    on_cpu, on_gpu = models
    q, v, a, _ = states(on_cpu, lead)
    for found, expected in zip(
        ls.inverse_dynamics_derivatives(on_gpu, q, v, a),
        ls.inverse_dynamics_derivatives(on_cpu, q, v, a),
        strict=True,
    ):
        assert_same(found, expected)


@pytest.mark.parametrize("options", [{"method": "generalized_alpha", "dt": 1e-3}, {"method": "esdirk", "rtol": 1e-6}])
def test_motions(models, options):
    """Steps of fixed and of adaptive size in one kernel."""
    on_cpu, on_gpu = models
    q, v, _, u = states(on_cpu)
    if on_cpu.n_rows:
        q = ls.assemble(on_cpu, q)
        v = np.zeros(on_cpu.nv)
    found, expected = (ls.simulate(m, 0.02, q0=q, v0=0.1 * v, u=0.1 * u, **options) for m in (on_gpu, on_cpu))
    assert_same(found.t, expected.t, 1e-6)
    assert_same(found.q[-1], expected.q[-1], 1e-8)


def test_equilibrium(models):
    """Newton's method in one kernel."""
    on_cpu, on_gpu = models
    found, expected = (ls.solve_statics(m, stable=False) for m in (on_gpu, on_cpu))
    assert_same(found.q, expected.q, 1e-8)
