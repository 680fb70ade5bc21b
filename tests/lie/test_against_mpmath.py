"""Every public Lie function against sums in 60 digits.

The error of each 3x3 block (each 3-vector) is relative to the largest entry of that block, so that small blocks count
as much as large ones. 1e-12 leaves four digits for the upward recursion of the Stumpff functions above |w| = 2 and for
the products of T's blocks.
"""

import numpy as np
import pytest
from lie import exact_lie as exact

import lissom as ls

TOLERANCE = 1e-12
ANGLES = [0.0, 1e-12, 1e-8, 1e-4, 0.7, 2 - 1e-9, 2 + 1e-9, 3.14, np.pi - 1e-9, 4.0, 6.0, 6.2]
UP_TO_PI = [angle for angle in ANGLES if angle < np.pi]
DIRECTIONS = {"generic": (0.36, -0.48, 0.8), "z": (0.0, 0.0, 1.0)}
BRANCHES = DIRECTIONS | {"x": (-1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "mostly x": (-0.8, 0.6, 0.0),
                         "mostly y": (0.36, -0.8, -0.48), "xy": (0.6, 0.6, -np.sqrt(0.28))}  # fmt: skip

generic = pytest.mark.parametrize("direction", ["generic"])  # where differences in 60 digits take their time
sweep = pytest.mark.parametrize("direction", DIRECTIONS)
branches = pytest.mark.parametrize("direction", BRANCHES)


def element(angle, direction, reach=1.0):
    """x = (w; u) of an angle; u is generic and of the size `reach`."""
    return np.concatenate([angle * np.array(BRANCHES[direction]), reach * np.array([0.7, -1.1, 0.4])])


X_DOT = np.array([0.9, -0.3, 1.4, -0.5, 0.8, 0.2])
X_DDOT = np.array([-1.2, 0.6, 0.1, 2.0, -0.7, 1.1])
WRENCH = np.array([0.3, 1.7, -0.6, -2.1, 0.9, 1.3])


def check(value, expected, tolerance=TOLERANCE):
    """Agreement block by block, 3 by 3 (the last row and column of a pose by themselves)."""
    expected = exact.rounded(expected)
    expected[np.abs(expected) < 1e-50] = 0.0  # what 60 digits leave of a zero
    assert value.shape == expected.shape
    cuts = range(0, value.shape[0], 3)
    for at in np.ndindex(*(len(cuts),) * value.ndim):
        block = tuple(slice(3 * k, 3 * k + 3) for k in at)
        error = np.abs(value[block] - expected[block]).max()
        scale = np.abs(expected[block]).max()
        assert error <= tolerance * scale, f"block {at}: {error:.2e} of {scale:.2e}"


@sweep
@pytest.mark.parametrize("angle", [*ANGLES, 20.0])
def test_so3_exp(angle, direction):
    """exp on SO(3) is the sum of powers, at any angle."""
    w = element(angle, direction)[:3]
    check(ls.lie.so3_exp(w), exact.exp(exact.numbers(w)))


@sweep
@pytest.mark.parametrize("reach", [1.0, 1e-6])
@pytest.mark.parametrize("angle", [*ANGLES, 20.0])
def test_se3_exp(angle, direction, reach):
    """exp on SE(3) is the sum of powers, at any angle and for short and long translations."""
    x = element(angle, direction, reach)
    check(ls.lie.se3_exp(x), exact.exp(exact.numbers(x)))


@branches
@pytest.mark.parametrize("angle", [*UP_TO_PI, np.pi - 1e-12])
def test_so3_log(angle, direction):
    """log inverts the exact exp up to the rounding of the matrix, also next to π and next to 0."""
    w = element(angle, direction)[:3]
    check(ls.lie.so3_log(exact.rounded(exact.exp(exact.numbers(w)))), w)


@branches
@pytest.mark.parametrize("angle", [*UP_TO_PI, np.pi - 1e-12])
def test_se3_log(angle, direction):
    """log inverts the exact exp up to the rounding of the pose, also next to π and next to 0."""
    x = element(angle, direction)
    check(ls.lie.se3_log(exact.rounded(exact.exp(exact.numbers(x)))), x)


@branches
def test_log_at_half_a_turn(direction):
    """At exactly π both signs of the axis are right; log gives one of them."""
    axis = np.array(BRANCHES[direction])
    w = ls.lie.so3_log(2 * np.outer(axis, axis) - np.eye(3))
    np.testing.assert_allclose(w * np.sign(w @ axis), np.pi * axis, atol=4e-15)


@branches
def test_log_just_beyond_half_a_turn(direction):
    """Beyond π log takes the shorter way round."""
    angle = np.pi + 1e-3
    w = ls.lie.so3_log(exact.rounded(exact.exp(exact.numbers(element(angle, direction)[:3]))))
    check(w, (angle - 2 * np.pi) * np.array(BRANCHES[direction]))


@sweep
@pytest.mark.parametrize("angle", [*ANGLES, 20.0])
def test_so3_tangent(angle, direction):
    """T on SO(3) is the sum of powers of −w^."""
    w = element(angle, direction)[:3]
    check(ls.lie.so3_tangent(w), exact.tangent(exact.numbers(w)))


@sweep
@pytest.mark.parametrize("reach", [1.0, 1e-6])
@pytest.mark.parametrize("angle", [*ANGLES, 20.0])
def test_se3_tangent(angle, direction, reach):
    """T on SE(3) is the sum of powers of −ad x."""
    x = element(angle, direction, reach)
    check(ls.lie.se3_tangent(x), exact.tangent(exact.numbers(x)))


@sweep
@pytest.mark.parametrize("angle", [a for a in ANGLES if a < 6.1])
def test_tangent_inverse(angle, direction):
    """T⁻¹ on SO(3) and SE(3) against the inverse of the sum, well below 2π."""
    x = element(angle, direction)
    check(ls.lie.so3_tangent_inverse(x[:3]), exact.tangent_inverse(exact.numbers(x[:3])))
    check(ls.lie.se3_tangent_inverse(x), exact.tangent_inverse(exact.numbers(x)))


@sweep
@pytest.mark.parametrize("gap", [0.083, 1e-3, 1e-6])
def test_tangent_inverse_next_to_a_full_turn(gap, direction):
    """T is singular at 2π: at 2π − gap its inverse has condition 2π/gap, and loses that many digits and no more."""
    x = element(2 * np.pi - gap, direction)
    tolerance = 8 * np.finfo(float).eps * 2 * np.pi / gap + TOLERANCE
    check(ls.lie.so3_tangent_inverse(x[:3]), exact.tangent_inverse(exact.numbers(x[:3])), tolerance)
    check(ls.lie.se3_tangent_inverse(x), exact.tangent_inverse(exact.numbers(x)), 4 * tolerance)


@sweep
@pytest.mark.parametrize("angle", ANGLES)
def test_se3_tangent_dot(angle, direction):
    """Ṫ against a difference of sums."""
    x = element(angle, direction)
    check(ls.lie.se3_tangent_dot(x, X_DOT), exact.tangent_dot(exact.numbers(x), exact.numbers(X_DOT)))


@generic
@pytest.mark.parametrize("angle", ANGLES)
def test_se3_tangent_ddot(angle, direction):
    """T̈ against a second difference of sums, with and without a curved motion."""
    x = element(angle, direction)
    for bend in (X_DDOT, 0 * X_DDOT):
        check(ls.lie.se3_tangent_ddot(x, X_DOT, bend), exact.tangent_ddot(*map(exact.numbers, (x, X_DOT, bend))))


@generic
@pytest.mark.parametrize("angle", ANGLES)
def test_se3_tangent_transpose_derivative(angle, direction):
    """E = ∂(Tᵀf)/∂x against differences of sums; its last block is exactly zero."""
    x = element(angle, direction)
    E = ls.lie.se3_tangent_transpose_derivative(x, WRENCH)
    assert not E[3:, 3:].any()
    expected = exact.rounded(exact.tangent_transpose_derivative(exact.numbers(x), exact.numbers(WRENCH)))
    expected[3:, 3:] = 0.0  # a difference of what cancels exactly
    check(E, expected)


@sweep
@pytest.mark.parametrize("angle", ANGLES)
def test_adjoints(angle, direction):
    """Ad, ad and coad against their matrices."""
    x = element(angle, direction)
    g = exact.exp(exact.numbers(x))
    check(ls.lie.se3_Ad(exact.rounded(g)), exact.Ad(g))
    matrix = exact.ad(exact.numbers(x))
    check(ls.lie.se3_ad(x), matrix)
    check(ls.lie.se3_coad(x, WRENCH), -matrix.T.dot(exact.numbers(WRENCH)))
