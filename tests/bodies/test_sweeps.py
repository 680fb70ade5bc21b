"""Deformable bodies in trees: dynamics, derivatives, energies, statics and motion, whatever their kinematics is."""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

import lissom as ls
from lissom.bodies.body import DeformableBody
from lissom.bodies.domains import DomainBox, DomainCylinder
from lissom.bodies.kinematics import KinematicsFunction, KinematicsRitz
from lissom.bodies.materials import HyperelasticLinear, HyperelasticSaintVenantKirchhoff

LENGTH = 0.3
STIFF = {"young": 1e5, "poisson": 0.4, "damping_time": 0.02}


def linear_shapes(x):
    """Bending in two planes, stretching with a bulge, twist: p = x + φ(x) θ."""
    X = x[0] / LENGTH
    bending = [jnp.array([-2.0 * x[1] * X / LENGTH, X**2, 0.0]), jnp.array([-2.0 * x[2] * X / LENGTH, 0.0, X**2])]
    return jnp.stack([*bending, jnp.array([X**2 / 2, x[1] * X, 0.0]), jnp.array([0.0, -x[2] * X, x[1] * X])], axis=1)


def curved(x, q):
    """A map that is not linear in θ."""
    X = x[0] / LENGTH
    along = q[2] * x[0] - 0.5 * (q[0] ** 2 + q[1] ** 2) * X**3 + x[1] * q[0] * X
    across = q[0] * X**2 * (1.0 + q[2]) - x[2] * jnp.sin(q[0] * X)
    return x + jnp.array([along, across, q[1] * X**2 + jnp.sin(q[2] * X) * x[1]])


def bodies():
    """One of each way in which integrals are made."""
    domain = DomainCylinder(length=LENGTH, radius=0.03)
    return {
        "constants": DeformableBody(KinematicsRitz(linear_shapes, 4), domain, HyperelasticLinear(**STIFF), 1e3),
        "function": DeformableBody(
            KinematicsFunction(curved, 3), domain, HyperelasticSaintVenantKirchhoff(**STIFF), 1e3, tip="tip"
        ),
    }


def chain(kind, base):
    """A rigid body, a deformable one, and on its tip a rigid one that carries another deformable body."""
    body, robot = bodies()[kind], ls.Robot("chain")
    robot.add_link("base", body=ls.RigidBody.box(0.1, 0.2, 0.15, density=500.0), joint=base)
    robot.add_link("one", body=body, joint=ls.JointRevolute((0, 0, 1)), parent="base")
    inner = ls.RigidBody(0.3, (0.02, 0.03, 0.01), np.diag([1e-3, 2e-3, 2.5e-3]))
    robot.add_link("middle", body=inner, joint=ls.JointRevolute((0, 1, 0)), parent="one", at=1.0)
    robot.add_link("two", body=body, joint=ls.JointFixed(), parent="middle")
    return robot.build()


CASES = [("constants", ls.JointFree), ("function", ls.JointFree), ("function", lambda: ls.JointRevolute((0, 1, 0)))]
MODELS = {}


@pytest.fixture(params=range(len(CASES)), ids=["constants-free", "function-free", "function-hinge"])
def case(request):
    """A model and a random state."""
    if request.param not in MODELS:
        kind, base = CASES[request.param]
        MODELS[request.param] = chain(kind, base())
    model, rng = MODELS[request.param], np.random.default_rng(request.param)
    q = ls.integrate(model, model.neutral(), 0.2 * rng.normal(size=model.nv))
    return model, q, *rng.normal(size=(2, model.nv))


def slopes(function, n, step=1e-5):
    """Jacobian by central differences."""
    return np.array([(function(step * e) - function(-step * e)) / (2 * step) for e in np.eye(n)]).T


def test_the_mass_matrix_is_that_of_inverse_dynamics_and_energy(case):
    """M by columns of inverse dynamics; symmetric, positive definite; T = ½ vᵀMv."""
    model, q, v, _ = case
    M, zero = ls.mass_matrix(model, q), np.zeros(model.nv)
    bias = ls.inverse_dynamics(model, q, zero, zero)
    columns = np.array([ls.inverse_dynamics(model, q, zero, e) - bias for e in np.eye(model.nv)]).T
    assert np.allclose(M, columns, rtol=0, atol=1e-12 * np.abs(M).max())
    assert np.array_equal(M, M.T) and np.linalg.eigvalsh(M).min() > 0.0
    assert ls.energy(model, q, v).kinetic == pytest.approx(0.5 * v @ M @ v, rel=1e-12)


def test_forward_dynamics_undoes_inverse_dynamics(case):
    """ID(FD(u = 0)) = 0."""
    model, q, v, _ = case
    a = ls.forward_dynamics(model, q, v)
    scale = np.abs(ls.inverse_dynamics(model, q, v, np.zeros(model.nv))).max()
    assert np.abs(ls.inverse_dynamics(model, q, v, a)).max() < 1e-10 * scale


def test_power_is_the_rate_of_energy(case):
    """dE/dt = vᵀ(τ − D v) along any motion."""
    model, q, v, a = case
    zero = np.zeros(model.nv)

    def total(s):
        return ls.energy(model, ls.integrate(model, q, s * v + 0.5 * s * s * a), v + s * a).total

    def elastic(v):
        return ls.inverse_dynamics(model, q, v, a) - ls.inverse_dynamics(model, q, v, a, elastic=False)

    rate = (total(1e-5) - total(-1e-5)) / 2e-5
    power = v @ (ls.inverse_dynamics(model, q, v, a) - elastic(v) + elastic(zero))
    assert rate == pytest.approx(power, rel=1e-7)
    assert v @ (elastic(v) - elastic(zero)) > 0.0


def test_derivatives_are_exact(case):
    """The three matrices against central differences, and the tangent against the matrices."""
    model, q, v, a = case
    exact = ls.inverse_dynamics_derivatives(model, q, v, a)
    moved = (
        slopes(lambda d: ls.inverse_dynamics(model, ls.integrate(model, q, d), v, a), model.nv),
        slopes(lambda d: ls.inverse_dynamics(model, q, v + d, a), model.nv),
        slopes(lambda d: ls.inverse_dynamics(model, q, v, a + d), model.nv, 1e-2),  # linear in a: only rounding
    )
    for one, other in zip(exact, moved):
        assert np.abs(one - other).max() < 1e-7 * np.abs(other).max()
    d = np.random.default_rng(5).normal(size=(3, model.nv))
    along = ls.inverse_dynamics_tangent(model, q, v, a, *d)
    expected = sum(matrix @ x for matrix, x in zip(exact, d))
    assert np.allclose(along, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_coriolis_matrix(case):
    """C v is the force of velocities and Ṁ − 2C is skew."""
    model, q, v, _ = case
    C, zero = ls.coriolis_matrix(model, q, v), np.zeros(model.nv)
    force = ls.inverse_dynamics(model, q, v, zero, gravity=False, elastic=False)
    assert np.allclose(C @ v, force, rtol=0, atol=1e-11 * np.abs(force).max())
    ahead, behind = (ls.mass_matrix(model, ls.integrate(model, q, s * v)) for s in (1e-6, -1e-6))
    skew = (ahead - behind) / 2e-6 - 2.0 * C
    assert np.abs(skew + skew.T).max() < 1e-6 * np.abs(C).max()


def test_gravity_is_the_gradient_of_its_energy(case):
    """And elastic forces at rest that of theirs."""
    model, q, _, _ = case
    zero = np.zeros(model.nv)
    force = ls.inverse_dynamics(model, q, zero, zero)

    def held(d):
        found = ls.energy(model, ls.integrate(model, q, d), zero)
        return np.array([found.gravitational + found.elastic])

    assert np.abs(slopes(held, model.nv, 1e-5)[0] - force).max() < 1e-7 * np.abs(force).max()


def test_momentum_and_centre_of_mass_follow_the_masses(case):
    """p = m dc/dt, and the momentum of a free robot changes by its weight."""
    model, q, v, _ = case
    mass = float(model.links.mass.sum())
    ahead, behind = (ls.center_of_mass(model, ls.integrate(model, q, s * v)) for s in (1e-6, -1e-6))
    p = ls.momentum(model, q, v)
    assert np.allclose(p[3:], mass * (ahead - behind) / 2e-6, rtol=0, atol=1e-7 * np.abs(p).max())
    if model.nq > model.nv:
        a = ls.forward_dynamics(model, q, v)
        h = 1e-2 / np.abs(a).max()  # within which v hardly changes
        later, before = (
            ls.momentum(model, ls.integrate(model, q, s * v + 0.5 * s * s * a), v + s * a) for s in (h, -h)
        )
        weight = mass * np.array(model.gravity)
        moment = np.cross(ls.center_of_mass(model, q), weight)
        rate = (later - before) / (2.0 * h)
        assert np.allclose(rate, np.concatenate([moment, weight]), rtol=0, atol=1e-6 * np.abs(weight).max())


def test_statics_is_where_motion_comes_to_rest():
    """A hanging chain: the equilibrium has no residual, is stable, and damped motion ends there."""
    model = chain("function", ls.JointRevolute((0, 1, 0), damping=0.3))
    found = ls.solve_statics(model)
    zero = np.zeros(model.nv)
    assert found.residual < 1e-9 and found.is_stable
    assert np.abs(ls.inverse_dynamics(model, found.q, zero, zero)).max() < 1e-9
    small = ls.integrate(model, found.q, 1e-3 * np.ones(model.nv))
    ends = [
        ls.simulate(model, 0.04, q0=small, method="generalized_alpha", dt=h).q[-1] for h in (4e-3, 2e-3, 1e-3, 5e-4)
    ]
    errors = [np.abs(one - two).max() for one, two in pairwise(ends)]
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.25)


def test_linear_kinematics_run_in_one_kernel():
    """Where p is linear in θ and elasticity is K θ, fused steps, their own derivatives and batches need no Python."""
    robot = ls.Robot("flap")
    robot.add_link("flap", body=bodies()["constants"], joint=ls.JointRevolute((0, 1, 0), stiffness=1.0))
    model = robot.build()
    assert not model.calls_python
    runs = [ls.simulate(model, 0.2, method=m, dt=0.002) for m in ("generalized_alpha", "bathe")]
    exact = ls.simulate(model, 0.2, method="bdf", rtol=1e-9, atol=1e-11)
    for run in runs:
        assert np.abs(run.q[-1] - exact.q[-1]).max() < 2e-3 * np.abs(exact.q[-1]).max()
    starts = np.random.default_rng(0).normal(size=(3, model.nq)) * 1e-3
    options = {"method": "generalized_alpha", "dt": 0.005, "t_eval": np.array([0.0, 0.05])}
    batch = ls.simulate(model, 0.05, q0=starts, **options)
    for k, start in enumerate(starts):
        one = ls.simulate(model, 0.05, q0=start, **options)
        assert np.array_equal(batch.q[k], one.q)


def test_a_body_that_does_not_deform_is_rigid():
    """f(x) = x up to a coordinate of no effect on the frame: the rows of the frame are those of the rigid body."""
    domain = DomainBox(0.2, 0.1, 0.05)
    bulge = KinematicsRitz(lambda x: (x * jnp.array([0.0, 1.0, 1.0]))[:, None], 1)
    robot = ls.Robot("soft")
    robot.add_link("b", body=DeformableBody(bulge, domain, HyperelasticLinear(**STIFF), 700.0), joint=ls.JointFree())
    soft = robot.build()
    masses = domain.weights * 700.0
    mass, com = masses.sum(), masses @ domain.points / masses.sum()
    x = domain.points - com
    inertia = np.einsum("k,k,ab->ab", masses, (x * x).sum(axis=1), np.eye(3)) - np.einsum("k,ka,kb->ab", masses, x, x)
    other = ls.Robot("rigid")
    other.add_link("b", body=ls.RigidBody(mass, com, inertia), joint=ls.JointFree())
    rigid = other.build()
    rng = np.random.default_rng(1)
    q = ls.integrate(rigid, rigid.neutral(), rng.normal(size=6))
    v, a = rng.normal(size=(2, 6))
    tau = ls.inverse_dynamics(soft, np.append(q, 0.0), np.append(v, 0.0), np.append(a, 0.0))
    expected = ls.inverse_dynamics(rigid, q, v, a)
    assert np.allclose(tau[:6], expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    dq, dv, da = ls.inverse_dynamics_derivatives(soft, np.append(q, 0.0), np.append(v, 0.0), np.append(a, 0.0))
    for one, same in zip((dq, dv, da), ls.inverse_dynamics_derivatives(rigid, q, v, a)):
        assert np.allclose(one[:6, :6], same, rtol=0, atol=1e-12 * np.abs(same).max())
