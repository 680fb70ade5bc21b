"""The exponential of twists in JAX: against SciPy, and its functions of Stumpff against many digits."""

import mpmath
import numpy as np
import pytest
from scipy.linalg import expm

from lissom.bodies.twists import _family, exp, product
from lissom.robot.poses import in_double

jax = pytest.importorskip("jax")


def hat(twist):
    """4x4 matrix of a twist."""
    x, y, z, *v = twist
    return np.array([[0, -z, y, v[0]], [z, 0, -x, v[1]], [-y, x, 0, v[2]], [0, 0, 0, 0]])


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 0.3, 2.0, 3.999, 4.001, 6.0, 20.0])
def test_exp(angle):
    """Rotation and position are those of the matrix exponential for angles from zero to several turns."""
    rng = np.random.default_rng(0)
    w, v = rng.normal(size=(2, 3))
    twist = np.concatenate([angle * w / np.linalg.norm(w), v])
    np.testing.assert_allclose(np.asarray(in_double(exp)(twist)), expm(hat(twist))[:3], atol=2e-15 * max(angle, 1))


def test_product():
    """Motions one after the other, for even and odd numbers of them."""
    twists = np.random.default_rng(1).normal(size=(5, 6))
    for m in (1, 2, 3, 4, 5):
        expected = np.linalg.multi_dot([np.eye(4), *[expm(hat(t)) for t in twists[:m]]])
        found = in_double(lambda m=m: product(exp(twists[:m])))()
        np.testing.assert_allclose(np.asarray(found), expected[:3], atol=1e-14)


@pytest.mark.parametrize("t", [0.0, 1e-12, 0.5, 7.0, 15.9999, 16.0, 17.0, 60.0, 300.0])
def test_functions_of_stumpff_and_their_derivatives(t):
    """c_1, c_2, c_3 and their derivatives up to the fourth have 13 digits on both sides of the switch."""
    mpmath.mp.dps = 40

    def exact(k, order):
        j = range(order, 120)
        terms = [
            (-1) ** i * mpmath.ff(i, order) * mpmath.mpf(t) ** (i - order) / mpmath.factorial(2 * i + k) for i in j
        ]
        return float(mpmath.fsum(terms))

    function = lambda t: _family()(t, 1, 3)  # noqa: E731
    for order in range(5):
        found = np.asarray(in_double(function)(np.float64(t)))
        expected = np.array([exact(k, order) for k in (1, 2, 3)])
        largest = np.array([1.0, 0.5, 1 / 6]) * (0.1**order if order else 1)
        np.testing.assert_allclose(found, expected, atol=1e-13 * largest.max())
        function = jax.jacfwd(function)
