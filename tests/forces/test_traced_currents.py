"""Currents of jax.numpy as code of kernels: against a Warp function with the acceleration of its particles by hand."""

import numpy as np
import pytest
import warp as wp
from dynamics.small_robots import MATERIAL

import lissom as ls
from lissom.errors import ModelError

jnp = pytest.importorskip("jax.numpy")
vec6 = wp.types.vector(length=6, dtype=wp.float64)


def flow(x, t):
    """A current that varies in space and time."""
    return jnp.stack([jnp.sin(x[1] + t), x[2] * x[0], 0.3])


@wp.func
def flow_by_hand(x: wp.vec3d, t: wp.float64) -> vec6:
    """The same, and ∂c/∂t + ∂c/∂x c."""
    s = wp.sin(x[1] + t)
    c = wp.cos(x[1] + t)
    turned = x[2] * s + wp.float64(0.3) * x[0]
    return vec6(s, x[2] * x[0], wp.float64(0.3), c * (wp.float64(1.0) + x[2] * x[0]), turned, wp.float64(0.0))


def swimmer(current):
    """A free stone and a rod on it, in water."""
    made = ls.Robot("swimmer")
    made.add_link("stone", ls.RigidBody.sphere(0.05, density=1500.0), ls.JointFree())
    rod = ls.Rod(0.3, ls.SectionCircle(0.015), ls.BasisLegendre(bending_y=1, bending_z=0), MATERIAL)
    made.add_link("rod", rod, parent="stone")
    made.set_fluid(1000.0, current=current, links={"rod": ls.Hydrodynamics(tail=True, lift=0.3)})
    return made.build()


def test_forces_derivatives_and_motions():
    """A traced current gives the forces, derivatives and motions of a Warp function, which adaptive batches repeat to
    the bit."""
    native, warp = swimmer(ls.TracedFunction(flow)), swimmer(flow_by_hand)
    assert not native.calls_python
    rng = np.random.default_rng(0)
    step, v, a = rng.uniform(-1, 1, (3, 3, native.nv))
    q = ls.integrate(native, native.neutral(), step)
    for time in (0.0, 0.7):
        one, other = ([ls.inverse_dynamics(m, q, v, a, t=time)] for m in (native, warp))
        for k in range(3):
            one += ls.inverse_dynamics_derivatives(native, q[k], v[k], a[k], t=time)
            other += ls.inverse_dynamics_derivatives(warp, q[k], v[k], a[k], t=time)
        for found, expected in zip(one, other, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    times = np.linspace(0.0, 0.3, 4)
    motions = ls.simulate(native, 0.3, q, 0.1 * v, t_eval=times)
    expected = ls.simulate(warp, 0.3, q, 0.1 * v, t_eval=times)
    np.testing.assert_allclose(motions.q, expected.q, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(motions.q[1], ls.simulate(native, 0.3, q[1], 0.1 * v[1], t_eval=times).q)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x, t: x[:2], r"fluid: current: must return an array of shape \(3,\), got shape \(got \(2,\)\)"),
        (lambda x, t: x if x[0] > 0.0 else -x, "fluid: current: must be a function of its arguments alone"),
    ],
)
def test_currents_that_cannot_be_traced(function, words):
    """The message names the current and the rule."""
    with pytest.raises(ModelError, match=words):
        swimmer(ls.TracedFunction(function))
