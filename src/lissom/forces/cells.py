"""Pressure on a cell of a surface: integrals of a linear pressure over its pressed part.

A cell is a parallelogram with half-edges e₁, e₂, or a triangle. The depth of its point with coordinates x₁, x₂, from −1
to 1 for a parallelogram, is δ + x₁ g₁ + x₂ g₂. The means over the cell

    Φ = mean of ½ (δ + x₁ g₁ + x₂ g₂)₊²,   M = ∂Φ/∂δ,   mᵢ = ∂Φ/∂gᵢ                                          (1)

are the potential, the depth and its first moments. With s = |δ|, a >= b the sizes of g₁ and g₂, z = a − s and
y = a + b − s, the part of Φ that the clipping adds is

    T = (z³ + z b²)/(12 a) for s <= a − b,   y⁴/(96 a b) for a − b < s < a + b,   0 beyond                  (2)
    Φ = T for δ < 0,   ½ δ² + (a² + b²)/6 − T for δ > 0                                                     (3)

A plane is pressed exactly by cells of any size. Their forces begin smoothly, with continuous second derivatives.

A curved surface bends away from its tangent plane by c₁ and c₂ at the edges of the cell. The depth then is

    δ + x₁ g₁ + x₂ g₂ − c₁ (x₁² − ⅓) − c₂ (x₂² − ⅓)        δ is its mean                                   (4)

If a part of such a cell is pressed, it is divided into flat strips along e₁, along e₂ or both. A strip at x of m strips
has the mean depth of (4) and the slopes (gᵢ − 2 cᵢ xᵢ)/m. The sums over the strips are exact derivatives of one sum Φ.

A triangle has its first two corners at e₁ and e₂ from its centroid. Its corners have the depths p, q, r. If only the
first is pressed,

    Φ = p² a b/12,   a = p/(p − q),   b = p/(p − r)                                                        (5)

and if only the first is not pressed, Φ is ½ mean (δ + ...)² less (5) of −p, −q, −r.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.lie import so3
from lissom.lie.types import mat3, vec3

LEAST = wp.constant(wp.float64(1e-30))  # size of a slope that counts as zero [m]
STRIPS = 8  # of a cell that is curved along one edge
STRIPS_OF_BOTH = 4  # along each edge of a cell that is curved along both
SIXTH = wp.constant(wp.float64(1.0 / 6.0))


@wp.struct
class CellPressure:
    """Derivatives of Φ of (1). depth: M. m_1, m_2: m₁ and m₂. cover: ∂M/∂δ. depth_1, depth_2: ∂M/∂g₁ and ∂M/∂g₂. m_11,
    m_12, m_22: ∂m₁/∂g₁, ∂m₁/∂g₂ and ∂m₂/∂g₂."""

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


@wp.func
def pressed_corner(p: wp.float64, q: wp.float64, r: wp.float64):
    """First and second derivatives of (5) by p > 0 and q, r <= 0."""
    a = p / (p - q)
    b = p / (p - r)
    c = a * b / wp.float64(12.0)
    four = wp.float64(4.0)
    pq = c * a * (four - so3.TWO * a - b)
    pr = c * b * (four - a - so3.TWO * b)
    pp = so3.TWO * c * (wp.float64(6.0) - four * (a + b) + a * a + a * b + b * b)
    qr = c * a * b
    slope = (c * p) * vec3(four - a - b, a, b)
    return slope, mat3(pp, pq, pr, pq, so3.TWO * c * a * a, qr, pr, qr, so3.TWO * c * b * b)


@wp.func(inline=False)
def triangle_pressure(d: wp.float64, g_1: wp.float64, g_2: wp.float64) -> CellPressure:
    """The pressure of a triangle at a mean depth d with slopes g [m]."""
    corner = vec3(d + g_1, d + g_2, d - g_1 - g_2)
    count = wp.where(corner[0] > so3.ZERO, 1, 0) + wp.where(corner[1] > so3.ZERO, 1, 0)
    count += wp.where(corner[2] > so3.ZERO, 1, 0)
    slope = vec3()
    H = mat3()
    sign = so3.ONE
    if count >= 2:
        twelfth = so3.HALF * SIXTH
        slope = twelfth * (corner + wp.float64(3.0) * d * vec3(so3.ONE, so3.ONE, so3.ONE))
        H = wp.diag(vec3(twelfth, twelfth, twelfth)) + wp.outer(
            vec3(so3.ONE, so3.ONE, so3.ONE), vec3(twelfth, twelfth, twelfth)
        )
        sign = -so3.ONE
    # the corner that is alone on its side; none if all are on one side or the last one is on the plane
    k = wp.where(sign * corner[1] > so3.ZERO, 1, wp.where(sign * corner[2] > so3.ZERO, 2, 0))
    if count > 0 and sign * corner[k] > so3.ZERO:
        at = wp.vec3i(k, (k + 1) % 3, (k + 2) % 3)
        by, by_two = pressed_corner(sign * corner[k], sign * corner[at[1]], sign * corner[at[2]])
        for j in range(3):
            slope[at[j]] = slope[at[j]] + by[j]
            for c in range(3):
                H[at[j], at[c]] = H[at[j], at[c]] + sign * by_two[j, c]
    x = CellPressure()
    x.depth = slope[0] + slope[1] + slope[2]
    x.m_1 = slope[0] - slope[2]
    x.m_2 = slope[1] - slope[2]
    row = vec3(H[0, 0] + H[0, 1] + H[0, 2], H[1, 0] + H[1, 1] + H[1, 2], H[2, 0] + H[2, 1] + H[2, 2])
    x.cover = row[0] + row[1] + row[2]
    x.depth_1 = row[0] - row[2]
    x.depth_2 = row[1] - row[2]
    x.m_11 = H[0, 0] - so3.TWO * H[0, 2] + H[2, 2]
    x.m_12 = H[0, 1] - H[0, 2] - H[1, 2] + H[2, 2]
    x.m_22 = H[1, 1] - so3.TWO * H[1, 2] + H[2, 2]
    return x


@wp.func
def strips(c: wp.float64, other: wp.float64) -> int:
    """Number of strips along an edge with the bend c of (4)."""
    if c == so3.ZERO:
        return 1
    if other == so3.ZERO:
        return wp.static(STRIPS)
    return wp.static(STRIPS_OF_BOTH)


@wp.func(inline=False)
def curved_cell_pressure(
    d: wp.float64, g_1: wp.float64, g_2: wp.float64, c_1: wp.float64, c_2: wp.float64
) -> CellPressure:
    """The pressure of a cell with the depth (4) [m]."""
    n_1 = strips(c_1, c_2)
    n_2 = strips(c_2, c_1)
    reach = wp.abs(g_1) + wp.abs(g_2) + wp.abs(c_1) + wp.abs(c_2)
    if n_1 * n_2 == 1 or d >= reach:
        return cell_pressure(d, g_1, g_2)
    x = CellPressure()
    if d <= -reach:
        return x
    w_1 = so3.ONE / wp.float64(n_1)
    w_2 = so3.ONE / wp.float64(n_2)
    for j in range(n_1):
        x_1 = wp.float64(2 * j + 1) * w_1 - so3.ONE
        d_1 = d + x_1 * g_1 - c_1 * (x_1 * x_1 + so3.TWO * SIXTH * (w_1 * w_1 - so3.ONE))
        for k in range(n_2):
            x_2 = wp.float64(2 * k + 1) * w_2 - so3.ONE
            d_2 = d_1 + x_2 * g_2 - c_2 * (x_2 * x_2 + so3.TWO * SIXTH * (w_2 * w_2 - so3.ONE))
            y = cell_pressure(d_2, w_1 * (g_1 - so3.TWO * c_1 * x_1), w_2 * (g_2 - so3.TWO * c_2 * x_2))
            x.depth += y.depth
            x.m_1 += x_1 * y.depth + w_1 * y.m_1
            x.m_2 += x_2 * y.depth + w_2 * y.m_2
            x.cover += y.cover
            x.depth_1 += x_1 * y.cover + w_1 * y.depth_1
            x.depth_2 += x_2 * y.cover + w_2 * y.depth_2
            x.m_11 += x_1 * x_1 * y.cover + w_1 * (so3.TWO * x_1 * y.depth_1 + w_1 * y.m_11)
            x.m_12 += x_1 * x_2 * y.cover + w_2 * x_1 * y.depth_2 + w_1 * (x_2 * y.depth_1 + w_2 * y.m_12)
            x.m_22 += x_2 * x_2 * y.cover + w_2 * (so3.TWO * x_2 * y.depth_2 + w_2 * y.m_22)
    share = w_1 * w_2
    x.depth *= share
    x.m_1 *= share
    x.m_2 *= share
    x.cover *= share
    x.depth_1 *= share
    x.depth_2 *= share
    x.m_11 *= share
    x.m_12 *= share
    x.m_22 *= share
    return x


def triangle_pressures(d: np.ndarray, g_1: np.ndarray, g_2: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M and m of triangles for arrays [m], also complex ones, whose real parts choose the branch."""
    corner = np.stack(np.broadcast_arrays(d + g_1, d + g_2, d - g_1 - g_2), axis=-1)
    count = (np.real(corner) > 0.0).sum(axis=-1, keepdims=True)
    sign = np.where(count >= 2, -1.0, 1.0)
    slope = np.where(count >= 2, (corner + corner.sum(axis=-1, keepdims=True)) / 12.0, 0.0)
    for k in range(3):
        p, q, r = (sign * corner[..., [(k + j) % 3]] for j in range(3))
        alone = (np.real(p) > 0.0) & (np.real(q) <= 0.0) & (np.real(r) <= 0.0) & (count > 0) & (count < 3)
        a, b = (p / np.where(alone, p - x, 1.0) for x in (q, r))
        by = p * a * b / 12.0 * np.concatenate([4.0 - a - b, a, b], axis=-1)
        slope = slope + np.where(alone, np.roll(by, k, axis=-1), 0.0)
    return slope.sum(axis=-1), slope[..., 0] - slope[..., 2], slope[..., 1] - slope[..., 2]


def curved_cell_pressures(
    d: np.ndarray, g_1: np.ndarray, g_2: np.ndarray, c_1: np.ndarray, c_2: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M and m with the depth (4) for arrays [m], also complex ones, whose real parts choose the branch."""
    flat = cell_pressures(d, g_1, g_2)
    reach = sum(np.abs(np.real(x)) for x in (g_1, g_2, c_1, c_2))
    partly = np.abs(np.real(d)) < reach
    outside = np.real(d) <= -reach
    curved = np.real(c_1) != 0.0, np.real(c_2) != 0.0
    found = [np.where(outside & (curved[0] | curved[1]), 0.0, x) for x in flat]
    for of_1, of_2, n_1, n_2 in ((1, 0, STRIPS, 1), (0, 1, 1, STRIPS), (1, 1, STRIPS_OF_BOTH, STRIPS_OF_BOTH)):
        rows = np.broadcast_to(partly & (curved[0] == of_1) & (curved[1] == of_2), flat[0].shape)
        if rows.any():
            given = (np.broadcast_to(x, rows.shape)[rows] for x in (d, g_1, g_2, c_1, c_2))
            for whole, part in zip(found, _of_strips(n_1, n_2, *given)):
                whole[rows] = part
    return found[0], found[1], found[2]


def _of_strips(
    n_1: int, n_2: int, d: np.ndarray, g_1: np.ndarray, g_2: np.ndarray, c_1: np.ndarray, c_2: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M and m of cells (n,) in n_1 × n_2 strips."""
    x_1, x_2 = (x.ravel() for x in np.meshgrid(*((2.0 * np.arange(n) + 1.0) / n - 1.0 for n in (n_1, n_2))))
    d, g_1, g_2, c_1, c_2 = (x[:, None] for x in (d, g_1, g_2, c_1, c_2))
    here = d + x_1 * g_1 - c_1 * (x_1**2 + (n_1**-2 - 1.0) / 3.0)
    here = here + x_2 * g_2 - c_2 * (x_2**2 + (n_2**-2 - 1.0) / 3.0)
    M, m_1, m_2 = cell_pressures(here, (g_1 - 2.0 * c_1 * x_1) / n_1, (g_2 - 2.0 * c_2 * x_2) / n_2)
    return M.mean(axis=1), (x_1 * M + m_1 / n_1).mean(axis=1), (x_2 * M + m_2 / n_2).mean(axis=1)


def cell_pressures(d: np.ndarray, g_1: np.ndarray, g_2: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M and m of (1) for arrays [m], also complex ones, whose real parts choose the branch."""
    signs = [np.where(np.real(g) < 0.0, -1.0, 1.0) for g in (g_1, g_2)]
    (a, b), sign = (x * y for x, y in zip(signs, (g_1, g_2))), np.where(np.real(d) < 0.0, -1.0, 1.0)
    turned = np.real(b) > np.real(a)
    a, b, s = np.where(turned, b, a), np.where(turned, a, b), sign * d
    a, small = np.where(np.real(a) < 1e-30, a + 1e-30, a), np.real(b) < 1e-30
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


def pressures(
    is_triangle: np.ndarray, d: np.ndarray, g_1: np.ndarray, g_2: np.ndarray, c_1: np.ndarray, c_2: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M and m of cells of both kinds for arrays [m], also complex ones, whose real parts choose the branch."""
    kinds = zip(triangle_pressures(d, g_1, g_2), curved_cell_pressures(d, g_1, g_2, c_1, c_2))
    M, m_1, m_2 = (np.where(is_triangle, *found) for found in kinds)
    return M, m_1, m_2
