"""Inputs of least size within limits."""

import numpy as np
from scipy.optimize import minimize

from lissom.inverse.searches import least_within


def problems(n=200, m=2, k=4, seed=0):
    """Matrices, and right sides of points within limits of which some are on them; the last of which cannot be met."""
    rng = np.random.default_rng(seed)
    G, low = rng.normal(size=(n, m, k)), rng.uniform(-1.0, 0.2, (n, k))
    high = low + rng.uniform(0.2, 1.5, (n, k))
    inside = np.clip(rng.uniform(low - 0.3, high + 0.3), low, high)
    b = np.einsum("nij,nj->ni", G, inside)
    b[-20:] += 30.0
    return G, b, low, high


def test_conditions_of_the_least():
    """Purpose: z meets G z = b within the limits, and is the clipped Gᵀλ of some λ, which says that it is the least."""
    G, b, low, high = (x[:-20] for x in problems())
    z = least_within(G, b, low, high)
    assert (z >= low).all() and (z <= high).all()
    np.testing.assert_allclose(np.einsum("nij,nj->ni", G, z), b, atol=1e-9)
    touching = (z == low) | (z == high)
    assert 0.2 < touching.mean() < 0.9
    for A, x, at, lo, hi in zip(G, z, touching, low, high):
        if (~at).sum() >= len(A):  # else many λ are possible
            y = A.T @ np.linalg.lstsq(A[:, ~at].T, x[~at], rcond=None)[0]
            np.testing.assert_allclose(np.clip(y, lo, hi), x, atol=1e-8)


def test_against_a_general_minimiser():
    """Purpose: the size is that of SciPy's sequential programming, row by row."""
    G, b, low, high = (x[:20] for x in problems(seed=1))
    for A, right, lo, hi, x in zip(G, b, low, high, least_within(G, b, low, high)):
        there = {"type": "eq", "fun": lambda z, A=A, right=right: A @ z - right, "jac": lambda z, A=A: A}
        least = minimize(
            lambda z: z @ z, 0.5 * (lo + hi), jac=lambda z: 2 * z, bounds=list(zip(lo, hi)), constraints=there
        )
        assert least.success and x @ x <= least.fun + 1e-6


def test_without_limits_it_is_the_pseudoinverse():
    """Purpose: infinite limits leave the shortest z, also where G z = b cannot be met."""
    G, b, low, _ = problems(5, 2, 4)
    G[-1, 1] = G[-1, 0]
    z = least_within(G, b, np.full_like(low, -np.inf), np.full_like(low, np.inf))
    np.testing.assert_allclose(z, np.einsum("nij,nj->ni", np.linalg.pinv(G), b), rtol=1e-5)


def test_what_cannot_be_met_is_met_best():
    """Purpose: where no z within limits meets G z = b, the one returned misses it by as little as any."""
    G, b, low, high = (x[-20:] for x in problems())
    rng = np.random.default_rng(2)
    for A, right, lo, hi, x in zip(G, b, low, high, least_within(G, b, low, high)):
        assert (x >= lo).all() and (x <= hi).all()
        others = rng.uniform(lo, hi, (2000, len(lo)))
        corners = np.where(rng.integers(0, 2, others.shape) > 0, hi, lo)
        missed = np.linalg.norm(np.vstack([others, corners]) @ A.T - right, axis=1)
        assert np.linalg.norm(A @ x - right) <= missed.min() * (1 + 1e-9)
