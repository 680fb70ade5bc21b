"""Power series of third order: what primitives make of them, and arithmetic."""

from math import prod

import numpy as np
import pytest

from lissom.bodies import jets
from lissom.bodies.jets import Series
from lissom.bodies.volume_preserving import PrimitiveBending, PrimitiveSource, PrimitiveStretch
from lissom.robot.poses import compiled, in_double

jnp = pytest.importorskip("jax.numpy")
L = 0.3
POLYNOMIALS = ((0.0, 1.0, -1.0), (0.3, 0.0, 1.0))
PRIMITIVES = {
    "stretch": (PrimitiveStretch(POLYNOMIALS), 0.3),
    "bending": (PrimitiveBending(lambda s: jnp.stack([jnp.cos(s), s * s])), 4.0),
    "source": (PrimitiveSource(POLYNOMIALS), 1e-4),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitives_of_series(name):
    """The series of a moved point differs from the moved points nearby by the fourth power of their distance:
    half the distance gives a sixteenth."""
    (primitive, size), rng = PRIMITIVES[name], np.random.default_rng(0)
    p = rng.uniform((0.1, 0.005, 0.005), (L, 0.02, 0.02), (5, 3)).T
    s = size * rng.uniform(0.3, 1.0, 2)
    change = 0.2 * np.array([0.05, 0.02, 0.02, *2 * [size]]) * rng.uniform(0.5, 1.0, 5)

    def miss(by):
        (jet,) = jets.jets([(lambda x, q: primitive.moved(x, q, L), 2)], p.T, jnp.asarray(s))
        there = primitive.moved(tuple(p + by[:3, None]), s + by[3:], L)
        sums = (sum(value * factor(key, by) for order in orders for key, value in order.items()) for orders in jet)
        return jnp.stack([jnp.abs(total - exact).max() for total, exact in zip(sums, there)]).max()

    def factor(key, by):
        """The factor of a derivative in Taylor's series."""
        return prod(by[a] / (1 + key[:k].count(a)) for k, a in enumerate(key))

    function = compiled(miss)
    assert float(function(0.5 * change)) == pytest.approx(float(function(change)) / 16.0, rel=0.2)


def test_arithmetic():
    """Quotients and powers of series of two variables undo products."""

    def rests():
        x, y = Series.variable(np.array([2.0, 3.0]), 0), Series.variable(np.array([0.5, -0.7]), 1)
        return (x * y + 1.5) * x / x - 1.5 - x * y, jets.power(x * x, 0.5) - x

    for rest in in_double(rests)():
        assert all(np.abs(value).max() < 1e-14 for value in rest.terms.values())
