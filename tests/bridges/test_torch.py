"""Functions of the library within PyTorch: its own check of gradients, and values beside the library itself."""

import sys

import numpy as np
import pytest
from gradients.moving_robots import floating, soft, start

import lissom as ls

torch = pytest.importorskip("torch")  # `make test-torch` installs it: its wheels hold gigabytes for other devices
ROBOTS = {"soft": soft, "floating": floating}  # without quaternions and with two


def tensors(*arrays):
    """Tensors that ask for gradients."""
    return tuple(torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in arrays)


@pytest.fixture(scope="module", params=ROBOTS)
def moving(request):
    """A model, a state, an acceleration and three rows of inputs."""
    model = ROBOTS[request.param]().build()
    rng = np.random.default_rng(0)
    return model, *start(model), rng.normal(size=model.nv), rng.uniform(0.5, 2.0, (3, model.nu))


def test_gradients_pass_gradcheck(moving):
    """Purpose: torch.autograd.gradcheck passes for dynamics and rollouts, along quaternions too, of a batch."""
    model, q, v, a, u = moving
    many = np.stack([v, 0.5 * v])
    options = {"eps": 1e-6, "rtol": 1e-4}
    inverse, forward = ls.torch.inverse_dynamics, ls.torch.forward_dynamics
    assert torch.autograd.gradcheck(lambda *x: inverse(model, *x), tensors(q, many, a), atol=1e-4, **options)
    given, pulls = (tensors(x) if model.nu else () for x in (u, u[0]))  # gradcheck takes no empty tensors
    assert torch.autograd.gradcheck(lambda *x: forward(model, *x), (*tensors(q, v), *pulls), atol=1e-2, **options)

    def moved(q, v, u=None):
        return ls.torch.rollout(model, q, v, u, dt=1e-3, steps=3)[:2]

    assert torch.autograd.gradcheck(moved, (*tensors(q, v), *given), atol=1e-4, **options)


def test_statics_pass_gradcheck():
    """Purpose: the same of equilibria by inputs, of a batch."""
    model = soft().build()
    u = np.random.default_rng(1).uniform(0.5, 2.0, (2, model.nu))
    assert torch.autograd.gradcheck(lambda u: ls.torch.solve_statics(model, u), tensors(u), atol=1e-6)


def test_values_and_gradients_are_the_library_s(moving):
    """Purpose: a batch gives the library's numbers, and a gradient of a rollout is its backward pass."""
    model, q, v, _, u = moving
    many = np.stack([v, 0.5 * v])
    found = ls.torch.forward_dynamics(model, q, many, u[0])
    np.testing.assert_array_equal(found.numpy(), ls.forward_dynamics(model, q, many, u[0]))
    v0, given = tensors(many, u)
    _, speed, _ = ls.torch.rollout(model, q, v0, given, dt=1e-3)
    speed[:, -1, 0].sum().backward()
    motion = ls.rollout(model, q, many, u, dt=1e-3)
    weights = np.zeros_like(motion.v)
    weights[:, -1, 0] = 1.0
    exact = motion.backward(dL_dv=weights)
    np.testing.assert_allclose(v0.grad, exact.v0, rtol=1e-12)
    np.testing.assert_allclose(given.grad, exact.u.sum(axis=0), rtol=1e-12)


def test_wrong_arguments_are_named(monkeypatch):
    """Purpose: shapes, batches of models and a missing extra are named."""
    model = soft().build()
    with pytest.raises(ls.ShapeError, match=r"v: expected shape \(..., 7\), got \(6,\)"):
        ls.torch.forward_dynamics(model, model.neutral(), np.zeros(6))
    with pytest.raises(ls.ModelError, match="steps: must be given"):
        ls.torch.rollout(model, dt=1e-3)
    with pytest.raises(ls.ModelError, match="model: must be one Model"):
        ls.torch.solve_statics(model.batch("arm.length", [0.4, 0.5]))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ls.ModelError, match=r"pip install 'lissom\[torch\]'"):
        ls.torch.solve_statics(model)
