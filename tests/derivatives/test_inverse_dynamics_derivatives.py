"""Exact derivatives against central differences along the tangent space, on random hybrid trees."""

from functools import lru_cache

import numpy as np
import pytest
from robots import SEEDS, build, random_rigid_tree, random_state, random_tree

import lissom as ls
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives
from lissom.simulation.inputs import control_law
from lissom.stepping.state import StateDerivative

TIME = 0.3


def differences(function, n):
    """Columns of the derivative of function(d) at d = 0, by fourth-order differences; function takes and gives rows.

    Step 1e-5 leaves 1e-20 of truncation and about 1e-11 of rounding, relative to the largest value.
    """
    steps = np.array([1e-5, -1e-5, 2e-5, -2e-5])
    ahead, behind, far_ahead, far_behind = function(np.concatenate([h * np.eye(n) for h in steps])).reshape(4, n, -1)
    return ((4 * (ahead - behind) / 2e-5 - (far_ahead - far_behind) / 4e-5) / 3).T


@lru_cache(maxsize=2)
def case(seed):
    """A tree's model and a state. Tests of one tree follow each other."""
    robot = random_tree(seed)
    return (build(robot), *random_state(robot, seed)[:3])


def close(exact, numeric, tolerance=1e-7):
    """Agreement relative to the largest entry."""
    return np.abs(exact - numeric).max() <= tolerance * max(np.abs(numeric).max(), 1e-3)


@pytest.mark.parametrize("seed", SEEDS, scope="module")
def test_derivatives_of_inverse_dynamics(seed):
    """dtau/dq, dtau/dv and dtau/da equal central differences of inverse_dynamics through integrate."""
    model, q, v, a = case(seed)
    dq, dv, da = ls.inverse_dynamics_derivatives(model, q, v, a, t=TIME)

    def tau(q, v):
        return ls.inverse_dynamics(model, q, v, a, t=TIME)

    assert close(dq, differences(lambda d: tau(ls.integrate(model, q, d), v), model.nv))
    assert close(dv, differences(lambda d: tau(q, v + d), model.nv))
    assert close(da, differences(lambda d: ls.inverse_dynamics(model, q, v, a + d, t=TIME), model.nv))
    assert close(da, ls.mass_matrix(model, q), 1e-12)


@pytest.mark.parametrize("seed", SEEDS, scope="module")
def test_derivatives_of_the_actuation(seed):
    """The derivative of ID − B u includes tendons inside rods, straight pieces, chambers and users' actuators."""
    model, q, v, a = case(seed)
    u = np.random.default_rng(seed).uniform(1.0, 20.0, model.nu)

    def residual(d):
        moved = ls.integrate(model, q, d)
        return ls.inverse_dynamics(model, moved, v, a, t=TIME) - ls.actuation_matrix(model, moved) @ u

    assert close(residual_derivatives(model, q, v, a, u, TIME)[0], differences(residual, model.nv))


def test_options_and_batches():
    """Each option takes its terms out of the derivative too, and a batch equals its members."""
    robot = random_tree(3)
    model = build(robot)
    states = [random_state(robot, seed)[:3] for seed in range(4)]
    q, v, a = (np.array(x) for x in zip(*states, strict=True))
    for option in ({"gravity": False}, {"elastic": False}, {"loads": False}):
        batch = ls.inverse_dynamics_derivatives(model, q, v, a, **option)
        for k, (one, two, three) in enumerate(states):
            single = ls.inverse_dynamics_derivatives(model, one, two, three, **option)
            assert all(np.array_equal(x[k], y) for x, y in zip(batch, single, strict=True))
    bare = {"gravity": False, "elastic": False, "loads": False}
    dq, _, _ = ls.inverse_dynamics_derivatives(model, q[0], 0 * v[0], 0 * a[0], **bare)
    assert not dq.any()


@pytest.mark.parametrize("seed", range(6))
def test_jacobian_of_the_state_derivative(seed):
    """The exact Jacobian of (q̇, v̇) equals central differences in the stored coordinates, quaternions included."""
    robot = random_rigid_tree(seed)  # rigid, so that M is well conditioned and differences are sharp
    model = robot.build()
    q, v, _, u = random_state(robot, seed)
    f = StateDerivative(model, control_law(model, u, None, None))
    x = np.concatenate([q, v])
    size, rate = len(x), np.zeros(len(x))
    f(TIME, x, rate)
    exact, numeric = np.zeros((size, size)), np.zeros((size, size))
    f.jacobian(TIME, x, rate, exact)
    for j in range(size):
        ahead, behind, d = np.zeros(size), np.zeros(size), np.zeros(size)
        d[j] = 1e-6
        f(TIME, x + d, ahead)
        f(TIME, x - d, behind)
        numeric[:, j] = (ahead - behind) / 2e-6
    assert close(exact, numeric)
