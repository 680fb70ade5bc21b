"""Shape integrals against sums over points whose motions are differences of a NumPy map, and against Lagrange."""

import numpy as np
import pytest
from reference.reference_bodies import from_integrals, motions, point_by_point

from lissom.bodies.domains import DomainBox
from lissom.bodies.integrals import ShapeIntegrals, ShapeValues
from lissom.bodies.kinematics import KinematicsFunction, KinematicsRitz
from lissom.bodies.materials import (
    HyperelasticCompressibleNeoHookean,
    HyperelasticLinear,
    HyperelasticSaintVenantKirchhoff,
)

jax = pytest.importorskip("jax")
jnp = jax.numpy
N = 3
BOX = DomainBox(0.8, 0.3, 0.2, degree=3)


def warped(x, q, m):
    """A map nonlinear in both arguments, for NumPy and JAX alike; x of shape (..., 3)."""
    X, Y, Z = x[..., 0], x[..., 1], x[..., 2]
    angle = q[0] * X + 0.3 * q[1] * X * X
    first = X * (1 + 0.2 * q[1]) + 0.5 * q[2] * m.sin(2 * X) * Y
    second = m.cos(angle) * Y - m.sin(angle) * Z + 0.4 * q[0] * q[1] * X
    third = m.sin(angle) * Y + m.cos(angle) * Z + q[2] * X * X
    return m.stack([first, second, third], axis=-1)


def shapes(x, m):
    """Shape functions (..., 3, n) for both."""
    X, Y, Z = x[..., 0], x[..., 1], x[..., 2]
    columns = [(X * X, X * Y, 0 * X), (X * Z, X * X, X * Y), (Y * X, 0 * X, X * X * X)]
    return m.stack([m.stack(list(column), axis=-1) for column in columns], axis=-1)


KINDS = {
    "nonlinear": (
        KinematicsFunction(lambda x, q: warped(x, q, jnp), N),
        lambda x, q: warped(x, q, np),
        HyperelasticCompressibleNeoHookean(2e3, 0.3, damping_time=0.02),
    ),
    "linear": (
        KinematicsRitz(lambda x: shapes(x, jnp), N),
        lambda x, q: x + shapes(x, np) @ q,
        HyperelasticSaintVenantKirchhoff(2e3, 0.3, damping_time=0.02),
    ),
}
DENSITY = {"nonlinear": 1000.0, "linear": lambda x: 1000.0 * (1 + x[0])}
INTEGRALS = {kind: ShapeIntegrals(KINDS[kind][0], BOX, KINDS[kind][2], DENSITY[kind]) for kind in KINDS}


def state(seed):
    """A random (θ, θ̇, θ̈)."""
    rng = np.random.default_rng(seed)
    return tuple(scale * rng.normal(size=N) for scale in (0.3, 1.0, 2.0))


def masses(kind):
    """Of the points, from the density."""
    density = DENSITY[kind]
    return BOX.weights * ([density(x) for x in BOX.points] if callable(density) else density)


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_sums_over_points(kind):
    """Every integral of the values is the sum of its integrand over points that a NumPy map moves."""
    q, v, _ = state(1)
    m = masses(kind)
    p, J, p_dot, h = motions(lambda q: KINDS[kind][1](BOX.points, q), q, v, np.zeros(N))
    found = INTEGRALS[kind].values(q, v)
    expected = {
        "mass": m.sum(),
        "c": m @ p,
        "P": np.einsum("k,ka,kb->ab", m, p, p),
        "c_j": np.einsum("k,kaj->ja", m, J),
        "P_j": np.einsum("k,ka,kbj->jab", m, p, J),
        "M": np.einsum("k,kaj,kal->jl", m, J, J),
        "c_v": m @ h,
        "b_v": m @ np.cross(p, h),
        "w_j": np.stack([m @ np.cross(p_dot, J[..., j]) for j in range(N)]),
        "e_v": np.einsum("k,kaj,ka->j", m, J, h),
    }
    for name, value in expected.items():
        scale = np.abs(value).max() + 1e-3 * m.sum()
        np.testing.assert_allclose(getattr(found, name), value, atol=1e-8 * scale, err_msg=name)


def differences(function, x, h=1e-4):
    """Derivatives by fourth-order differences, the input's axis last."""
    e = h * np.eye(len(x))
    return np.stack([(8 * (function(x + d) - function(x - d)) - function(x + 2 * d) + function(x - 2 * d)) / (12 * h)
                     for d in e], axis=-1)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_differences_of_values(kind):
    """Every derivative, also that by θ̈, equals the difference of the values."""
    shape = INTEGRALS[kind]
    q, v, a = state(2)
    found = shape.derivatives(q, v, a)

    def whole(name):
        """The quantity that a name of the derivatives belongs to, as a function of (q, v)."""

        def function(q, v):
            s = shape.values(q, v)
            cross = np.stack([s.P_j[:, 1, 2] - s.P_j[:, 2, 1], s.P_j[:, 2, 0] - s.P_j[:, 0, 2],
                              s.P_j[:, 0, 1] - s.P_j[:, 1, 0]], axis=-1)  # fmt: skip
            return {"c": a @ s.c_j + s.c_v, "b": a @ cross + s.b_v, "e": s.M @ a + s.e_v, "w": s.w_j, "d": s.d,
                    "c_j": s.c_j, "P_j": s.P_j, "K": s.g}[name]  # fmt: skip

        return function

    names = {"c_q": ("c", 0), "b_q": ("b", 0), "e_q": ("e", 1), "c_jl": ("c_j", 1), "P_jl": ("P_j", 1),
             "w_q": ("w", 1), "c_v": ("c", 0), "b_v": ("b", 0), "e_v": ("e", 1), "w_v": ("w", 1),
             "K": ("K", 1), "d_q": ("d", 1)}  # fmt: skip
    for name, (quantity, axis) in names.items():
        f = whole(quantity)
        by_speed = name.endswith("_v")
        slopes = differences(lambda x, f=f, by=by_speed: f(q, x) if by else f(x, v), v if by_speed else q)
        expected = np.moveaxis(slopes, -1, axis)
        scale = np.abs(expected).max() + 1e-3
        np.testing.assert_allclose(getattr(found, name), expected, atol=1e-8 * scale, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_forces_of_the_material(kind):
    """g is the gradient of U, K of g, d_v of d; K and d_v are symmetric, and damping takes energy out of any motion."""
    shape = INTEGRALS[kind]
    q, v, a = state(3)
    values, rest = shape.values(q, v), shape.values(np.zeros(N), np.zeros(N))
    slope = differences(lambda q: shape.values(q, v).U, q)
    np.testing.assert_allclose(values.g, slope, rtol=1e-7)
    np.testing.assert_allclose(differences(lambda v: shape.values(q, v).d, v), values.d_v, rtol=1e-8, atol=1e-10)
    K = shape.derivatives(q, v, a).K
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-12 * np.abs(K).max())
    assert np.linalg.eigvalsh(values.d_v).min() > 0 and values.d @ v > 0
    assert abs(rest.U) < 1e-12 and np.abs(rest.g).max() < 1e-12 * np.abs(K).max()


@pytest.mark.parametrize("kind", KINDS)
def test_wrench_and_forces_are_sums_over_points(kind):
    """The formulae of the frame's wrench and the body's forces give Newton's law summed over the points."""
    rng = np.random.default_rng(4)
    q, v, a = state(4)
    omega, omega_dot, acceleration = rng.normal(size=(3, 3))
    moved = motions(lambda q: KINDS[kind][1](BOX.points, q), q, v, a)
    expected = point_by_point(masses(kind), moved, omega, omega_dot, acceleration)
    values = INTEGRALS[kind].values(q, v)
    bare = values._replace(g=0 * values.g, d=0 * values.d)
    for found, sum_ in zip(from_integrals(bare, omega, v, a, omega_dot, acceleration), expected):
        np.testing.assert_allclose(found, sum_, atol=1e-8 * np.abs(sum_).max())


def test_lagrange():
    """τ is d/dt ∂T/∂θ̇ − ∂T/∂θ + ∂U/∂θ of a frame that turns in any way, by JAX from the kinetic energy alone."""
    shape, (_, _, material) = INTEGRALS["nonlinear"], KINDS["nonlinear"]
    q, v, a = state(5)
    rng = np.random.default_rng(5)
    omega, omega_dot, acceleration, speed = rng.normal(size=(4, 3))
    m, x, w = masses("nonlinear"), BOX.points, BOX.weights
    with jax.enable_x64(True):

        def frame(t):
            """Angular velocity and velocity of the frame, in its axes; a = v̇ + ω×v."""
            return omega + t * omega_dot, speed + t * (acceleration - jnp.cross(omega, speed))

        def kinetic(q, v, t):
            p, p_dot = jax.jvp(lambda q: warped(x, q, jnp), (q,), (v,))
            turn, velocity = frame(t)
            whole = velocity + jnp.cross(turn[None], p) + p_dot
            return 0.5 * m @ (whole * whole).sum(axis=-1)

        def elastic(q):
            F = jax.vmap(jax.jacfwd(lambda x: warped(x, q, jnp)))(x)
            return w @ jax.vmap(material.energy_density)(F)

        momentum = jax.grad(kinetic, 1)
        rate = jax.jvp(momentum, (q, v, 0.0), (v, a, 1.0))[1]
        expected = np.asarray(rate - jax.grad(kinetic, 0)(q, v, 0.0) + jax.grad(elastic)(q))
    values = shape.values(q, v)
    found = from_integrals(values._replace(d=0 * values.d), omega, v, a, omega_dot, acceleration)[2]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("law", [HyperelasticSaintVenantKirchhoff, HyperelasticLinear])
def test_linear_coefficients(law):
    """The polynomials of the constants give the integrals, energy, forces and damping of a linear map."""
    kinematics, _, _ = KINDS["linear"]
    material = law(2e3, 0.3, damping_time=0.02)
    shape = ShapeIntegrals(kinematics, BOX, material, DENSITY["linear"])
    q, v, _ = state(6)
    k, found = shape.linear_coefficients(), shape.values(q, v)
    P_j = k.P0_j + np.einsum("kjab,k->jab", k.Q_jk, q)
    P = k.P_0 + np.einsum("jab,j->ab", k.P0_j, q)
    P = P + np.einsum("jba,j->ab", k.P0_j, q) + np.einsum("jkab,j,k->ab", k.Q_jk, q, q)
    w = np.einsum("kjab,k->jab", k.Q_jk, v)
    w_j = np.stack([w[:, 1, 2] - w[:, 2, 1], w[:, 2, 0] - w[:, 0, 2], w[:, 0, 1] - w[:, 1, 0]], axis=-1)
    zero = np.zeros(N)
    K3, K4 = (np.zeros((N,) * 3) if k.K3 is None else k.K3), (np.zeros((N,) * 4) if k.K4 is None else k.K4)
    U = 0.5 * q @ k.K2 @ q + 0.5 * np.einsum("jkl,j,k,l", K3, q, q, q) + np.einsum("jklm,j,k,l,m", K4, q, q, q, q) / 8
    third = np.einsum("jkl,l->jk", K3, q)
    d_v = 0.02 * (k.K2 + third + third.T + np.einsum("jlkm,l,m->jk", K4, q, q))
    expected = ShapeValues(k.mass, k.c_0 + q @ k.c_j, P, k.c_j, P_j, np.einsum("jkaa->jk", k.Q_jk), np.zeros(3),
                           np.zeros(3), w_j, zero, U, differences(lambda q: shape.values(q, v).U, q), d_v @ v,
                           d_v)  # fmt: skip
    for name, value in expected._asdict().items():
        scale = np.abs(value).max() + 1e-3
        np.testing.assert_allclose(getattr(found, name), value, atol=1e-8 * scale, err_msg=name)
    assert (k.K3 is None) == (law is HyperelasticLinear)


def test_batches():
    """A batch gives what its instances give alone, for any leading axes."""
    shape = INTEGRALS["nonlinear"]
    rng = np.random.default_rng(7)
    q, v, a = rng.normal(size=(3, 2, 2, N))
    many, derivatives = shape.values(0.1 * q, v), shape.derivatives(0.1 * q, v, a)
    one = shape.values(0.1 * q[1, 0], v[1, 0])
    for name in ShapeValues._fields[1:]:
        np.testing.assert_array_equal(getattr(many, name)[1, 0], getattr(one, name))
    assert derivatives.P_jl.shape == (2, 2, N, N, 3, 3) and shape.fold(0.1 * q).shape == (2, 2)


def test_single_precision_is_left_to_the_user():
    """The integrals are float64 and leave the user's setting of JAX as it was."""
    before = jax.config.jax_enable_x64
    assert INTEGRALS["linear"].values(np.zeros(N), np.ones(N)).M.dtype == np.float64
    assert jax.config.jax_enable_x64 == before


def test_forces_by_known_slopes_are_those_of_the_points(monkeypatch):
    """Where f is linear and W is not quadratic, forces come from ∂φ_j/∂x that are kept; where there is no room for
    them, from derivatives of the energy at every point: the same to rounding."""
    motion, _, _ = KINDS["linear"]
    law = HyperelasticCompressibleNeoHookean(2e3, 0.3, damping_time=0.02)
    kept = ShapeIntegrals(motion, BOX, law, 1000.0)
    q, v, a = state(4)
    known = kept.values(q, v), kept.derivatives(q, v, a)
    monkeypatch.setattr("lissom.bodies.integrals._MOST_SLOPES", 0)
    whole = ShapeIntegrals(motion, BOX, law, 1000.0)
    for found, expected in zip(known, (whole.values(q, v), whole.derivatives(q, v, a))):
        for name, value in expected._asdict().items():
            np.testing.assert_allclose(getattr(found, name), value, atol=1e-11 * np.abs(value).max(), err_msg=name)
