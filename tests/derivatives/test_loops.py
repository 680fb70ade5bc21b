"""Derivatives of loops against central differences: every joint, open and closed, on trees and free bases."""

from functools import cache

import numpy as np
import pytest
from robots import random_placement
from sampling import halved

import lissom as ls

SILICONE = ls.Material(young=1e6, poisson=0.5, density=1000, viscosity=1e3)
JOINTS = {
    "fixed": ls.JointFixed(),
    "revolute": ls.JointRevolute((1, 2, 3)),
    "prismatic": ls.JointPrismatic((1, 2, 3)),
    "helical": ls.JointHelical((0, 1, 2), 0.1),
    "cylindrical": ls.JointCylindrical((1, 0, 2)),
    "universal": ls.JointUniversal((1, 0, 0), (0, 1, 1)),
    "planar": ls.JointPlanar((1, 1, 0)),
    "spherical": ls.JointSpherical(),
}
STEP = 1e-6


def rod():
    """A soft rod with every strain."""
    basis = ls.BasisLegendre(torsion=1, bending_y=2, bending_z=1, elongation=0, shear_y=0)
    return ls.Rod(0.4, ls.SectionCircle(0.02), basis, SILICONE, gauss_points=5)


def looped(joint, seed, *, free):
    """Two branches joined by a loop with the joint, and by a universal one; on a free base the first is tied to the
    world instead."""
    rng = np.random.default_rng(seed)
    robot = ls.Robot("two branches")
    base = ls.JointFree() if free else ls.JointRevolute((0, 1, 0), stiffness=5.0)
    robot.add_link("base", ls.RigidBody.box(0.1, 0.1, 0.1, density=1000), base)
    spring = ls.JointSpherical(stiffness=1.0)
    robot.add_link("left", rod(), spring, parent="base", placement=random_placement(rng))
    robot.add_link("right", rod(), ls.JointUniversal(stiffness=1.0), parent="base", placement=random_placement(rng))
    hand = ls.RigidBody.box(0.1, 0.2, 0.1, density=1000)
    robot.add_link("hand", hand, ls.JointCylindrical((1, 0, 0), stiffness=(1.0, 100.0)), parent="right", at=0.7)
    at = {"placement_a": random_placement(rng), "placement_b": random_placement(rng)}
    robot.add_loop("tie", "left", None if free else "hand", s_a=0.6, joint=joint, **at)
    robot.add_loop("link", "right", "left", s_a=0.9, s_b=0.8, joint=ls.JointUniversal((0, 1, 0), (1, 0, 1)), **at)
    return robot.build()


@cache
def made(name, *, free):
    """The same with a joint by its name."""
    return looped(JOINTS[name], 3 + list(JOINTS).index(name), free=free)


def state(model, seed):
    """Random q, v, a and multipliers: loops wide open."""
    rng = np.random.default_rng(seed)
    q = ls.integrate(model, model.neutral(), 0.5 * rng.normal(size=model.nv))
    return q, *rng.normal(size=(2, model.nv)), rng.normal(size=model.n_multipliers)


def closed_state(model, seed):
    """The same next to it, with the loops closed."""
    q, v, a, force = state(model, seed)
    return ls.assemble(model, q), v, a, force


def along_q(model, function, q):
    """Central differences of a function of q along the tangent space, the input on the trailing axis."""
    rows = [function(ls.integrate(model, q, STEP * e)) - function(ls.integrate(model, q, -STEP * e))
            for e in np.eye(model.nv)]  # fmt: skip
    return np.moveaxis(np.array(rows), 0, -1) / (2 * STEP)


def assert_near(exact, numerical):
    """Equal to 1e-7 of the largest entry."""
    np.testing.assert_allclose(exact, numerical, rtol=0, atol=1e-7 * max(np.abs(numerical).max(), 1e-3))


@pytest.mark.parametrize(("at", "name", "free"), halved((state, closed_state), JOINTS, (False, True)))
def test_derivatives(at, name, free):
    """Residual, A v and A a + Ȧ v by q and v, Ȧ along v, and Aᵀ λ by q."""
    model = made(name, free=free)
    q, v, a, force = at(model, 7)
    found = ls.constraint_derivatives(model, q, v, a)

    def speed(q, v):
        return (ls.constraint_jacobian(model, q) @ v)[model.n_motions :]

    def turn(q, v):
        A, A_dot = ls.constraint_jacobian(model, q), ls.constraint_jacobian_derivative(model, q, v)
        return A @ a + A_dot @ v

    assert_near(found.residual_q, along_q(model, lambda q: ls.loop_residual(model, q), q))
    assert_near(found.velocity_q, along_q(model, lambda q: speed(q, v), q))
    assert_near(found.acceleration_q, along_q(model, lambda q: turn(q, v), q))
    by_v = [(turn(q, v + STEP * e) - turn(q, v - STEP * e)) / (2 * STEP) for e in np.eye(model.nv)]
    assert_near(found.acceleration_v, np.array(by_v).T)
    ahead, behind = (ls.constraint_jacobian(model, ls.integrate(model, q, s * STEP * v)) for s in (1, -1))
    assert_near(ls.constraint_jacobian_derivative(model, q, v), (ahead - behind) / (2 * STEP))
    pushed = along_q(model, lambda q: ls.constraint_jacobian(model, q).T @ force, q)
    assert_near(ls.constraint_force_derivative(model, q, force), pushed)


@pytest.mark.parametrize("name", JOINTS)
def test_jacobian_is_that_of_the_residual_where_loops_are_closed(name):
    """A = ∂e/∂q at closed loops, however far the joint has turned."""
    model = made(name, free=False)
    q = closed_state(model, 7)[0]
    A = ls.constraint_jacobian(model, q)
    exact = ls.constraint_derivatives(model, q, np.zeros(model.nv), np.zeros(model.nv)).residual_q
    np.testing.assert_allclose(A, exact, rtol=0, atol=1e-9 * np.abs(A).max())


@pytest.mark.parametrize("name", ["revolute", "universal", "spherical"])
def test_forward_dynamics(name):
    """The constrained acceleration by q along the loops, by v and by u: A a + Ȧ v = 0 stays."""
    model = made(name, free=False)
    q, v, *_ = closed_state(model, 7)
    A = ls.constraint_jacobian(model, q)
    N = np.linalg.svd(A * model.dofs.scale)[2][np.linalg.matrix_rank(A) :].T * model.dofs.scale[:, None]
    v = N @ np.linalg.lstsq(N, v, rcond=None)[0]
    a = ls.forward_dynamics(model, q, v)
    rate = A @ a + ls.constraint_jacobian_derivative(model, q, v) @ v
    assert np.abs(rate).max() < 1e-9 * np.abs(a).max()
    da_dq, da_dv, _ = ls.forward_dynamics_derivatives(model, q, v)
    for x in N.T:
        for exact, moved, steps in (
            (da_dq @ x, lambda s, x=x: (ls.integrate(model, q, s * x), v), (2e-3, 1e-3, 5e-4, 2e-4, 1e-4)),
            (da_dv @ x, lambda s, x=x: (q, v + s * x), (1e-1, 1e-2)),
        ):
            at = [fourth_order(lambda s, moved=moved: ls.forward_dynamics(model, *moved(s)), h) for h in steps]
            assert min(np.abs(exact - row).max() / np.abs(row).max() for row in at) < 1e-7  # the best of the steps


def fourth_order(function, h):
    """Central difference of fourth order at 0."""
    near, far = (function(s * h) - function(-s * h) for s in (1, 2))
    return (8.0 * near - far) / (12.0 * h)


def test_batches_of_forward_dynamics_derivatives():
    """Many states with loops are one launch of each kernel, and each answers as it does alone."""
    model = looped(JOINTS["revolute"], 3, free=True)
    states = [closed_state(model, seed)[:2] for seed in range(5)]
    q, v = (np.array(x) for x in zip(*states))
    batch = ls.forward_dynamics_derivatives(model, q, v)
    for k in range(5):
        for many, one in zip(batch, ls.forward_dynamics_derivatives(model, q[k], v[k]), strict=True):
            np.testing.assert_allclose(many[k], one, rtol=0, atol=1e-12 * max(np.abs(one).max(initial=0.0), 1.0))
