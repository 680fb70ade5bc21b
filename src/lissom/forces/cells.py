"""Pressure on a cell of a surface: integrals of a linear pressure over the pressed part of a parallelogram.

A cell has half-edges e₁, e₂. The depth of its point with coordinates x₁, x₂ from −1 to 1 is δ + x₁ g₁ + x₂ g₂. The
means over the cell

    Φ = mean of ½ (δ + x₁ g₁ + x₂ g₂)₊²,   M = ∂Φ/∂δ,   mᵢ = ∂Φ/∂gᵢ                                          (1)

are the potential, the depth and its first moments. With s = |δ|, a >= b the sizes of g₁ and g₂, z = a − s and
y = a + b − s, the part of Φ that the clipping adds is

    T = (z³ + z b²)/(12 a) for s <= a − b,   y⁴/(96 a b) for a − b < s < a + b,   0 beyond                  (2)
    Φ = T for δ < 0,   ½ δ² + (a² + b²)/6 − T for δ > 0                                                     (3)

A plane is pressed exactly by cells of any size. Their forces begin smoothly, with continuous second derivatives.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.lie import so3

LEAST = wp.constant(wp.float64(1e-30))  # size of a slope that counts as zero [m]
SIXTH = wp.constant(wp.float64(1.0 / 6.0))


@wp.struct
class CellPressure:
    """M, m and the second derivatives of Φ of (1): by δ twice, by δ and g, by g twice."""

    depth: wp.float64
    m_1: wp.float64
    m_2: wp.float64
    cover: wp.float64
    depth_1: wp.float64
    depth_2: wp.float64
    m_11: wp.float64
    m_12: wp.float64
    m_22: wp.float64


@wp.func
def ordered_pressure(d: wp.float64, a: wp.float64, b: wp.float64) -> CellPressure:
    """Derivatives of Φ by δ, a and b, for a >= b >= 0."""
    s = wp.abs(d)
    x = CellPressure()  # first the derivatives of T by s, a and b
    if s <= a - b:
        p = so3.ONE / (wp.float64(12.0) * a)
        z = a - s
        T = (z * z + b * b) * z * p
        across = (wp.float64(3.0) * z * z + b * b) * p
        x.depth = -across
        x.m_1 = across - T / a
        x.m_2 = so3.TWO * z * b * p
        x.cover = wp.float64(6.0) * z * p
        x.depth_1 = -x.cover + across / a
        x.depth_2 = -so3.TWO * b * p
        x.m_11 = x.cover - across / a - x.m_1 / a + T / (a * a)
        x.m_12 = so3.TWO * b * p - x.m_2 / a
        x.m_22 = so3.TWO * z * p
    elif s < a + b:
        y = a + b - s
        third = y * y * y / (wp.float64(24.0) * a * b)
        T = y * third / wp.float64(4.0)
        x.depth = -third
        x.m_1 = third - T / a
        x.m_2 = third - T / b
        x.cover = y * y / (wp.float64(8.0) * a * b)
        x.depth_1 = -x.cover + third / a
        x.depth_2 = -x.cover + third / b
        x.m_11 = x.cover + so3.TWO * (T / a - third) / a
        x.m_12 = x.cover - third / a - third / b + T / (a * b)
        x.m_22 = x.cover + so3.TWO * (T / b - third) / b
    if d < so3.ZERO:
        x.depth = -x.depth
        x.depth_1 = -x.depth_1
        x.depth_2 = -x.depth_2
        return x
    x.depth = d - x.depth
    x.m_1 = so3.TWO * SIXTH * a - x.m_1
    x.m_2 = so3.TWO * SIXTH * b - x.m_2
    x.cover = so3.ONE - x.cover
    x.depth_1 = -x.depth_1
    x.depth_2 = -x.depth_2
    x.m_11 = so3.TWO * SIXTH - x.m_11
    x.m_12 = -x.m_12
    x.m_22 = so3.TWO * SIXTH - x.m_22
    return x


@wp.func(inline=False)
def cell_pressure(d: wp.float64, g_1: wp.float64, g_2: wp.float64) -> CellPressure:
    """The pressure of a cell at a depth d with slopes g [m]."""
    a = wp.max(wp.abs(g_1), LEAST)
    b = wp.abs(g_2)
    turned = b > a
    x = ordered_pressure(d, wp.max(a, b), wp.min(a, b))
    if turned:
        y = x
        x.m_1 = y.m_2
        x.m_2 = y.m_1
        x.depth_1 = y.depth_2
        x.depth_2 = y.depth_1
        x.m_11 = y.m_22
        x.m_22 = y.m_11
    sign_1 = wp.where(g_1 < so3.ZERO, -so3.ONE, so3.ONE)
    sign_2 = wp.where(g_2 < so3.ZERO, -so3.ONE, so3.ONE)
    x.m_1 *= sign_1
    x.m_2 *= sign_2
    x.depth_1 *= sign_1
    x.depth_2 *= sign_2
    x.m_12 *= sign_1 * sign_2
    return x


def cell_pressures(d: np.ndarray, g_1: np.ndarray, g_2: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M and m of (1) for arrays [m], also complex ones, whose real parts choose the branch."""
    signs = [np.where(np.real(g) < 0.0, -1.0, 1.0) for g in (g_1, g_2)]
    (a, b), sign = (x * y for x, y in zip(signs, (g_1, g_2))), np.where(np.real(d) < 0.0, -1.0, 1.0)
    turned = np.real(b) > np.real(a)
    a, b, s = np.where(turned, b, a), np.where(turned, a, b), sign * d
    a, small = np.where(np.real(a) < 1e-30, 1e-30, a), np.real(b) < 1e-30
    b_corner = np.where(small, 1e-30, b)
    z, y = a - s, a + b - s
    inner, corner = np.real(s) <= np.real(a - b), np.real(y) > 0.0
    third = y**3 / (24.0 * a * b_corner)
    T = np.select([inner, corner], [(z**3 + z * b * b) / (12.0 * a), y * third / 4.0], 0.0)
    T_s = np.select([inner, corner], [-(3.0 * z * z + b * b) / (12.0 * a), -third], 0.0)
    T_a = np.select([inner | corner], [-T_s - T / a], 0.0)
    T_b = np.select([inner, corner], [z * b / (6.0 * a), third - T / b_corner], 0.0)
    pressed = sign > 0.0
    depth = np.where(pressed, d, 0.0) - T_s
    m_a, m_b = (np.where(pressed, x / 3.0 - T_x, T_x) for x, T_x in ((a, T_a), (b, T_b)))
    return depth, signs[0] * np.where(turned, m_b, m_a), signs[1] * np.where(turned, m_a, m_b)
