"""SE(3) in 60 digits: sums of powers and differences in mpmath, sharing nothing with the library.

Inputs are float64 numbers taken as exact; results are rounded to float64. 6-vectors are angular first. Every operator
is a power series, T(x) = Σ (−ad x)ᵏ / (k+1)!, and every derivative is a central difference with a step of 1e-15, whose
truncation (1e-30) and rounding (1e-60 over the step, or over its square) are far below float64. A matrix
[[A, 0], [B, A]] is summed as the pair (A, B), whose powers are (Aⁿ⁺¹, BₙA + AⁿB).
"""

import mpmath
import numpy as np

DIGITS = 60
STEP = mpmath.mpf(10) ** -15


def numbers(x):
    """Array of mpmath numbers."""
    with mpmath.workdps(DIGITS):
        x = np.asarray(x)
        return np.array([mpmath.mpf(value) for value in x.ravel()], dtype=object).reshape(x.shape)


def rounded(x):
    """Array of float64."""
    return np.array([float(value) for value in np.asarray(x).ravel()]).reshape(np.shape(x))


def hat(w):
    """w^ of a 3-vector."""
    zero = mpmath.mpf(0)
    return np.array([[zero, -w[2], w[1]], [w[2], zero, -w[0]], [-w[1], w[0], zero]], dtype=object)


def hat6(x):
    """4x4 matrix of a 6-vector (w; u)."""
    out = numbers(np.zeros((4, 4)))
    out[:3, :3], out[:3, 3] = hat(x[:3]), x[3:]
    return out


def ad(x):
    """[[w^, 0], [u^, w^]]."""
    out = numbers(np.zeros((6, 6)))
    out[:3, :3] = out[3:, 3:] = hat(x[:3])
    out[3:, :3] = hat(x[3:])
    return out


def power_series(A, B, shift):
    """Σ [[A, 0], [B, A]]ᵏ / (k + shift)! as a pair, summed until its terms vanish."""
    with mpmath.workdps(DIGITS):
        P, Q = numbers(np.eye(len(A))) / mpmath.factorial(shift), numbers(np.zeros(B.shape))
        total_P, total_Q, k = P.copy(), Q.copy(), 0
        while k % 8 or k < 8 or max(abs(value) for value in (*P.ravel(), *Q.ravel())) > mpmath.mpf(10) ** -DIGITS:
            k += 1
            P, Q = P.dot(A) / (k + shift), (Q.dot(A) + P.dot(B)) / (k + shift)
            total_P, total_Q = total_P + P, total_Q + Q
        return total_P, total_Q


def exp(x):
    """4x4 pose of a 6-vector, 3x3 rotation of a 3-vector."""
    A = hat(x) if len(x) == 3 else hat6(x)
    return power_series(A, numbers(np.zeros(A.shape)), 0)[0]


def tangent(x):
    """T of a 6-vector or of a 3-vector."""
    if len(x) == 3:
        return power_series(-hat(x), numbers(np.zeros((3, 3))), 1)[0]
    A, B = power_series(-hat(x[:3]), -hat(x[3:]), 1)
    return np.block([[A, numbers(np.zeros((3, 3)))], [B, A]])


def tangent_inverse(x):
    """Inverse of T."""
    with mpmath.workdps(DIGITS):
        return np.array((mpmath.matrix(tangent(x).tolist()) ** -1).tolist(), dtype=object)


def tangent_dot(x, x_dot):
    """Rate of T along x_dot."""
    with mpmath.workdps(DIGITS):
        return (tangent(x + STEP * x_dot) - tangent(x - STEP * x_dot)) / (2 * STEP)


def tangent_ddot(x, x_dot, x_ddot):
    """Second rate of T along x + t x_dot + t²/2 x_ddot."""
    with mpmath.workdps(DIGITS):
        bend = STEP**2 / 2 * x_ddot
        ends = tangent(x + STEP * x_dot + bend) + tangent(x - STEP * x_dot + bend)
        return (ends - 2 * tangent(x)) / STEP**2


def tangent_transpose_derivative(x, f):
    """∂(Tᵀ f)/∂x, column by column."""
    with mpmath.workdps(DIGITS):
        columns = [tangent_dot(x, unit).T.dot(f) for unit in numbers(np.eye(6))]
        return np.array(columns, dtype=object).T


def inverse_pose(g):
    """g⁻¹."""
    with mpmath.workdps(DIGITS):
        out = numbers(np.eye(4))
        out[:3, :3] = g[:3, :3].T
        out[:3, 3] = -g[:3, :3].T.dot(g[:3, 3])
        return out


def Ad(g):
    """[[R, 0], [p^R, R]]."""
    with mpmath.workdps(DIGITS):
        out = numbers(np.zeros((6, 6)))
        out[:3, :3] = out[3:, 3:] = g[:3, :3]
        out[3:, :3] = hat(g[:3, 3]).dot(g[:3, :3])
        return out
