"""Group axioms and the laws between the Lie functions, on random elements, next to the identity and next to π.

Entries are of order one (translations up to 2), so that a handful of products is good to 1e-14 or so; 1e-13 is asked,
absolute unless said otherwise. Central differences of the library's own functions with a step h of 1e-3 and fourth
order are good to h⁴ times the fifth derivative, about 1e-12, and to rounding over h, about 1e-13: 1e-10 is asked.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lissom as ls

BY_ALGEBRA, BY_DIFFERENCES = 1e-13, 1e-10
LAWS = settings(max_examples=40, deadline=None, derandomize=True, database=None)

unit = st.floats(-1.0, 1.0, allow_subnormal=False)
vectors = st.tuples(unit, unit, unit).map(np.array)
directions = vectors.filter(lambda v: np.linalg.norm(v) > 0.1).map(lambda v: v / np.linalg.norm(v))
angles = st.one_of(st.floats(0.0, 3.1), st.floats(0.0, 1e-8), st.floats(0.0, 1e-6).map(lambda gap: np.pi - gap))


@st.composite
def elements(draw, angle=angles):
    """A 6-vector: an angle at random, near 0 or near π, and a translation of order one or 1e-8."""
    reach = draw(st.sampled_from([2.0, 1e-8]))
    return np.concatenate([draw(angle) * draw(directions), reach * draw(vectors)])


six = st.tuples(*[unit] * 6).map(np.array)


def close(value, expected, tolerance=BY_ALGEBRA):
    """Absolute agreement, or relative to the largest entry where that is larger than 1."""
    assert value.shape == np.shape(expected)
    assert np.abs(value - expected).max(initial=0.0) <= tolerance * max(1.0, np.abs(expected).max(initial=0.0))


def slope(function):
    """Derivative of function(h) at 0 by fourth-order central differences."""
    h = 1e-3
    near, far = ((function(k * h) - function(-k * h)) / (2 * k * h) for k in (1, 2))
    return (4 * near - far) / 3


def inverse(g):
    """Inverse of poses (..., 4, 4) from their parts."""
    out = np.zeros(g.shape)
    Rt = np.swapaxes(g[..., :3, :3], -1, -2)
    out[..., :3, :3], out[..., 3, 3] = Rt, 1.0
    out[..., :3, 3] = -np.einsum("...ij,...j->...i", Rt, g[..., :3, 3])
    return out


@LAWS
@given(elements())
def test_exp_gives_a_rigid_motion(x):
    """exp is orthonormal with determinant +1, its last row (0, 0, 0, 1), and its rotation so3_exp's."""
    g = ls.lie.se3_exp(x)
    R = g[:3, :3]
    close(R @ R.T, np.eye(3), 1e-15 * 8)
    assert np.linalg.det(R) == pytest.approx(1.0, abs=1e-14)
    assert np.array_equal(g[3], [0, 0, 0, 1])
    assert np.array_equal(R, ls.lie.so3_exp(x[:3]))


@LAWS
@given(elements())
def test_exp_of_minus_x_is_the_inverse(x):
    """exp(x) exp(−x) is the identity."""
    close(ls.lie.se3_exp(x) @ ls.lie.se3_exp(-x), np.eye(4))


@LAWS
@given(elements(), unit, unit)
def test_powers_of_one_element_add(x, a, b):
    """exp(a x) exp(b x) = exp((a + b) x): a one-parameter group."""
    close(ls.lie.se3_exp(a * x) @ ls.lie.se3_exp(b * x), ls.lie.se3_exp((a + b) * x))


@LAWS
@given(elements(), elements(), elements())
def test_products_associate_and_Ad_is_a_homomorphism(x, y, z):
    """(g h) k = g (h k); Ad(g h) = Ad(g) Ad(h), Ad(g⁻¹) = Ad(g)⁻¹, Ad(1) = 1."""
    g, h, k = (ls.lie.se3_exp(e) for e in (x, y, z))
    close((g @ h) @ k, g @ (h @ k))
    close(ls.lie.se3_Ad(g @ h), ls.lie.se3_Ad(g) @ ls.lie.se3_Ad(h))
    close(ls.lie.se3_Ad(inverse(g)) @ ls.lie.se3_Ad(g), np.eye(6))
    assert np.array_equal(ls.lie.se3_Ad(np.eye(4)), np.eye(6))


@LAWS
@given(elements())
def test_exp_undoes_log(x):
    """exp(log g) = g to rounding, also at angles near 0 and π, where log itself turns sign."""
    g = ls.lie.se3_exp(x)
    close(ls.lie.se3_exp(ls.lie.se3_log(g)), g)
    close(ls.lie.so3_exp(ls.lie.so3_log(g[:3, :3])), g[:3, :3])


@LAWS
@given(elements(st.floats(0.0, 3.1)))
def test_log_undoes_exp(x):
    """log(exp x) = x below π, relative to x itself next to the identity."""
    y = ls.lie.se3_log(ls.lie.se3_exp(x))
    for part in (slice(0, 3), slice(3, 6)):
        size = max(np.linalg.norm(x[part]), 1e-8 * np.linalg.norm(x))
        assert np.linalg.norm(y[part] - x[part]) <= 1e-12 * size + 1e-30
    assert np.linalg.norm(ls.lie.so3_log(ls.lie.so3_exp(x[:3]))) <= np.pi


@LAWS
@given(elements(), six)
def test_Ad_carries_twists(x, y):
    """Ad(g) y is the twist of g ŷ g⁻¹: exp(Ad(g) y) = g exp(y) g⁻¹."""
    g = ls.lie.se3_exp(x)
    close(ls.lie.se3_exp(ls.lie.se3_Ad(g) @ y), g @ ls.lie.se3_exp(y) @ inverse(g))


@LAWS
@given(elements(), six)
def test_Ad_conjugates_ad(x, y):
    """Ad(g) ad(x) Ad(g)⁻¹ = ad(Ad(g) x)."""
    A = ls.lie.se3_Ad(ls.lie.se3_exp(x))
    close(A @ ls.lie.se3_ad(y) @ np.linalg.inv(A), ls.lie.se3_ad(A @ y))


@LAWS
@given(six, six, six)
def test_ad_is_a_lie_bracket(x, y, z):
    """[x, y] = −[y, x], the Jacobi identity, and ad([x, y]) = ad x ad y − ad y ad x."""
    X, Y, Z = (ls.lie.se3_ad(e) for e in (x, y, z))
    close(X @ y, -Y @ x)
    close(X @ (Y @ z) + Y @ (Z @ x) + Z @ (X @ y), np.zeros(6))
    close(ls.lie.se3_ad(X @ y), X @ Y - Y @ X)


@LAWS
@given(six, six, six)
def test_coad_is_dual_to_ad(x, y, f):
    """⟨coad(x) f, y⟩ = −⟨f, ad(x) y⟩, as −ad(x)ᵀ f."""
    close(ls.lie.se3_coad(x, f) @ y, -f @ (ls.lie.se3_ad(x) @ y))
    close(ls.lie.se3_coad(x, f), -ls.lie.se3_ad(x).T @ f)


@LAWS
@given(elements(), elements(), six)
def test_wrenches_and_twists_keep_their_power(x, y, f):
    """The power ⟨f, η⟩ is the same in every frame: Ad⁻ᵀ transforms f, and Ad transforms η."""
    A = ls.lie.se3_Ad(ls.lie.se3_exp(x))
    close(np.linalg.solve(A.T, f) @ (A @ y), f @ y)


@LAWS
@given(elements(), six)
def test_tangent_is_the_derivative_of_exp(x, d):
    """exp(x)⁻¹ d exp(x) = (T d)^, by differences of log(exp(x)⁻¹ exp(x + h d))."""
    g = inverse(ls.lie.se3_exp(x))
    close(ls.lie.se3_tangent(x) @ d, slope(lambda h: ls.lie.se3_log(g @ ls.lie.se3_exp(x + h * d))), BY_DIFFERENCES)


@LAWS
@given(elements())
def test_tangent_at_minus_x(x):
    """T(−x) = Ad(exp x) T(x), and T(x) x = x: what makes the child's frame simple."""
    close(ls.lie.se3_tangent(-x), ls.lie.se3_Ad(ls.lie.se3_exp(x)) @ ls.lie.se3_tangent(x))
    close(ls.lie.se3_tangent(x) @ x, x)


@LAWS
@given(elements())
def test_tangent_integrates_Ad(x):
    """T(x) = ∫₀¹ Ad(exp(−s x)) ds; ten Gauss points integrate functions of period 2 beyond rounding."""
    s, w = np.polynomial.legendre.leggauss(12)
    steps = ls.lie.se3_Ad(ls.lie.se3_exp(-np.outer((s + 1) / 2, x)))
    close(ls.lie.se3_tangent(x), np.einsum("k,kij->ij", w / 2, steps))


@LAWS
@given(elements())
def test_tangent_inverse_inverts(x):
    """T⁻¹ T = 1 on SO(3) and SE(3), up to π."""
    close(ls.lie.se3_tangent_inverse(x) @ ls.lie.se3_tangent(x), np.eye(6))
    close(ls.lie.so3_tangent_inverse(x[:3]) @ ls.lie.so3_tangent(x[:3]), np.eye(3))


@LAWS
@given(elements(st.floats(0.0, 6.2)))
def test_tangent_of_rotations_is_a_block(x):
    """The diagonal blocks of SE(3)'s T and T⁻¹ are SO(3)'s."""
    T, T_inverse = ls.lie.se3_tangent(x), ls.lie.se3_tangent_inverse(x)
    for at in (slice(0, 3), slice(3, 6)):
        assert np.array_equal(T[at, at], ls.lie.so3_tangent(x[:3]))
        assert np.array_equal(T_inverse[at, at], ls.lie.so3_tangent_inverse(x[:3]))
    assert not T[:3, 3:].any()


@LAWS
@given(elements(st.floats(0.0, 6.2)), six, six)
def test_rates_of_tangent_along_curves(x, d, e):
    """Ṫ and T̈ are the derivatives of T along x + t d + t²/2 e."""

    def curve(t):
        return x + t * d + t * t / 2 * e

    close(ls.lie.se3_tangent_dot(x, d), slope(lambda t: ls.lie.se3_tangent(curve(t))), BY_DIFFERENCES)
    rate = slope(lambda t: ls.lie.se3_tangent_dot(curve(t), d + t * e))
    close(ls.lie.se3_tangent_ddot(x, d, e), rate, BY_DIFFERENCES)


@LAWS
@given(elements(st.floats(0.0, 6.2)), six, six)
def test_derivative_of_tangent_transposed(x, f, d):
    """E d is the derivative of Tᵀ f along d."""
    E = ls.lie.se3_tangent_transpose_derivative(x, f)
    close(E @ d, slope(lambda h: ls.lie.se3_tangent(x + h * d).T @ f), BY_DIFFERENCES)


@LAWS
@given(elements(), six, six)
def test_twists_and_variations_commute(x, d, e):
    """∂V/∂Ω = Ṫ + ad_V T with V = T d says that the derivative of T d along e has this form."""
    T, V = ls.lie.se3_tangent(x), ls.lie.se3_tangent(x) @ d
    left = ls.lie.se3_tangent_dot(x, e) @ d
    close(left, (ls.lie.se3_tangent_dot(x, d) + ls.lie.se3_ad(V) @ T) @ e)
