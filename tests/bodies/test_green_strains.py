"""Saint Venant-Kirchhoff's law of linear motions in kernels: what JAX makes of the same integrals."""

import jax.numpy as jnp
import numpy as np
import pytest

import lissom as ls

LENGTH = 0.3
LAW = ls.HyperelasticSaintVenantKirchhoff(young=1e5, poisson=0.4, damping_time=0.02)
DOMAIN = ls.DomainCylinder(LENGTH, 0.03, degree=4)


def shapes(x):
    """Bending in two planes, stretching with a bulge, twist."""
    X = x[0] / LENGTH
    bending = [jnp.array([-2.0 * x[1] * X / LENGTH, X**2, 0.0]), jnp.array([-2.0 * x[2] * X / LENGTH, 0.0, X**2])]
    return jnp.stack([*bending, jnp.array([X**2 / 2, x[1] * X, 0.0]), jnp.array([0.0, -x[2] * X, x[1] * X])], axis=1)


def fewer(x):
    """Two of them."""
    return shapes(x)[:, 1:3]


@pytest.fixture(scope="module")
def model():
    """A hip that carries two bodies of 4 and 2 coordinates."""
    robot = ls.Robot("pair")
    robot.add_link("hip", ls.RigidBody.box(0.1, 0.1, 0.1, density=500.0), ls.JointRevolute((0, 1, 0), stiffness=1.0))
    for name, function, n in (("one", shapes, 4), ("two", fewer, 2)):
        robot.add_link(name, ls.DeformableBody(ls.KinematicsRitz(function, n), DOMAIN, LAW, 1e3), parent="hip")
    return robot.build()


@pytest.fixture(scope="module")
def state(model):
    """Large strains in motion."""
    rng = np.random.default_rng(0)
    return rng.uniform(-0.2, 0.2, model.nq), *rng.normal(size=(2, model.nv))


OWN = {0: slice(1, 5), 1: slice(5, 7)}


def test_such_robots_ask_no_python(model):
    """Kernels know all of it."""
    assert not model.calls_python


def test_forces_and_energy_are_those_of_the_integrals(model, state):
    """τ with elasticity less τ without is ∂U/∂θ + d, to rounding."""
    q, v, a = state
    on, off = (ls.inverse_dynamics(model, q, v, a, elastic=elastic) for elastic in (True, False))
    U = 0.5 * q[0] ** 2
    for b, own in OWN.items():
        found = model.deforming.integrals[b].values(q[own], v[own])
        U += float(found.U)
        scale = np.abs(found.g).max() + np.abs(found.d).max()
        np.testing.assert_allclose((on - off)[own], found.g + found.d, rtol=0, atol=1e-12 * scale)
    assert ls.energy(model, q, v).elastic == pytest.approx(U, rel=1e-12)


def test_derivatives_are_those_of_the_integrals(model, state):
    """∂²U/∂θ² + ∂d/∂θ and ∂d/∂θ̇, in whole and along a direction."""
    q, v, a = state
    on, off = (ls.inverse_dynamics_derivatives(model, q, v, a, elastic=elastic) for elastic in (True, False))
    by_q, by_v = np.zeros((2, model.nv, model.nv))
    by_q[0, 0] = 1.0
    for b, own in OWN.items():
        found = model.deforming.integrals[b].derivatives(q[own], v[own], a[own])
        by_q[own, own] = found.K + found.d_q
        by_v[own, own] = model.deforming.integrals[b].values(q[own], v[own]).d_v
    for found, expected in ((on[0] - off[0], by_q), (on[1] - off[1], by_v)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(on[0]).max())
    dq, dv, da = np.random.default_rng(1).normal(size=(3, model.nv))
    along = ls.inverse_dynamics_tangent(model, q, v, a, dq, dv, da)
    expected = on[0] @ dq + on[1] @ dv + on[2] @ da
    np.testing.assert_allclose(along, expected, rtol=0, atol=1e-12 * np.abs(on[0]).max())
