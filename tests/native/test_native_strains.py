"""Native functions on strains of pairs of coordinates against NumPy."""

import numpy as np
import pytest
import warp as wp
from native.native_calls import COUNT, HERE, RNG, changed, device, random

from lissom.forces.green_strains import (
    add_strain_change,
    add_strain_force,
    add_strain_stiffness,
    packed_rows,
    strain_energy,
)
from lissom.lie.types import kernel_options
from lissom.passes.columns import Matrix

wp.set_module_options(kernel_options())

N, Q_START, V_START, WIDTH, SIZE = 4, 2, 1, 8, 7
ETA = 0.3
LINES, OTHERS = np.triu_indices(N)
STIFFNESS = RNG.normal(size=(N + len(LINES),) * 2)
STIFFNESS += STIFFNESS.T
NUMBER, (_, FIRST) = packed_rows([(0.1, RNG.normal(size=(3, 3))), (ETA, STIFFNESS)])
Q, V, DQ, DV = random(4, COUNT, SIZE)
OWN_Q, OWN = slice(Q_START, Q_START + N), slice(V_START, V_START + N)


def strain(x):
    """ε."""
    return np.concatenate([x, np.where(LINES == OTHERS, 0.5, 1.0) * x[LINES] * x[OTHERS]])


def slope(x):
    """∂ε/∂θ, whose pairs are linear in θ."""
    one = np.eye(N)
    pairs = one[LINES] * x[OTHERS, None] + one[OTHERS] * x[LINES, None]
    return np.concatenate([one, np.where(LINES == OTHERS, 0.5, 1.0)[:, None] * pairs])


def force(x, y):
    """Zᵀ𝒦(ε + η ε̇)."""
    return slope(x).T @ STIFFNESS @ (strain(x) + ETA * slope(x) @ y)


def jacobians(x, y):
    """Of the force by x and y, by differences that are exact for cubic polynomials to rounding."""
    h, one = 1e-3, np.eye(N)

    def of(function):
        near, far = ([function(k * h * e) - function(-k * h * e) for e in one] for k in (1, 2))
        return np.array([(8 * a - b) / (12 * h) for a, b in zip(near, far)]).T

    return of(lambda e: force(x + e, y)), of(lambda e: force(x, y + e))


@wp.kernel
def k_force(tau: Matrix, number: Matrix, q: Matrix, v: Matrix, i: int):
    add_strain_force(number, FIRST, N, Q_START, V_START, i, q, v, tau)


@wp.kernel
def k_energy(out: Matrix, number: Matrix, q: Matrix, i: int):
    out[i, 0] = strain_energy(number, FIRST, N, Q_START, i, q)


@wp.kernel
def k_stiffness(out: Matrix, number: Matrix, q: Matrix, v: Matrix, by_q: wp.float64, by_v: wp.float64, i: int):
    add_strain_stiffness(number, FIRST, N, Q_START, V_START, WIDTH, i, q, v, by_q, by_v, out)


@wp.kernel
def k_change(tau: Matrix, number: Matrix, q: Matrix, v: Matrix, dq: Matrix, dv: Matrix, i: int):
    add_strain_change(number, FIRST, N, Q_START, V_START, i, q, v, dq, dv, tau)


def test_force_and_energy():
    """add_strain_force( and strain_energy(."""
    tau = random(COUNT, SIZE)
    expected = tau[HERE].copy()
    expected[OWN] += force(Q[HERE, OWN_Q], V[HERE, OWN])
    (found,) = changed(k_force, [tau], *map(device, (NUMBER, Q, V)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    (found,) = changed(k_energy, [random(COUNT, 1)], device(NUMBER), device(Q))
    e = strain(Q[HERE, OWN_Q])
    assert found[0] == pytest.approx(0.5 * e @ STIFFNESS @ e, rel=1e-12)


def test_stiffness_and_change():
    """add_strain_stiffness( with both weights, and add_strain_change(."""
    by_q, by_v = jacobians(Q[HERE, OWN_Q], V[HERE, OWN])
    for a, b in ((1.3, 0.0), (0.0, 0.7), (1.3, 0.7)):
        out = random(COUNT, SIZE * WIDTH)
        expected = out[HERE].reshape(SIZE, WIDTH).copy()
        expected[OWN, OWN] += a * by_q + b * by_v
        (found,) = changed(k_stiffness, [out], *map(device, (NUMBER, Q, V)), a, b)
        np.testing.assert_allclose(found.reshape(SIZE, WIDTH), expected, rtol=0, atol=1e-10)
    tau = random(COUNT, SIZE)
    expected = tau[HERE].copy()
    expected[OWN] += by_q @ DQ[HERE, OWN] + by_v @ DV[HERE, OWN]
    (found,) = changed(k_change, [tau], *map(device, (NUMBER, Q, V, DQ, DV)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
