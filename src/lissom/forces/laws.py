"""Laws of springs, a force over one coordinate or length, as a table or a function of the user's own, inside kernels.

A table has rows (knot, c₀, c₁, c₂, c₃, U at the knot). From one knot to the next, with z the distance from it,

    f = c₀ + c₁ z + c₂ z² + c₃ z³,   U = U(knot) + ∫ f dz                                                 (1)

and before the first knot the straight line of its c₀ and c₁. A user's law f(x, ẋ) has derivatives by central
differences of fourth order and the energy ∫ f(y, 0) dy from 0 to x by Gauss's rule.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

from math import factorial

import numpy as np
import warp as wp

from lissom.lie import so3
from lissom.lie.types import vec8
from lissom.model.tables import TermRows

COMPILED = -1  # in the place of the number of pieces: the law is a user's
STEP = wp.constant(wp.float64(1e-4))  # of differences of a user's law, relative and absolute
GAUSS_X = wp.constant(vec8(*np.polynomial.legendre.leggauss(8)[0]))
GAUSS_W = wp.constant(vec8(*np.polynomial.legendre.leggauss(8)[1]))
AGREEMENT = wp.constant(wp.float64(1e-13))  # of two halves of a stretch with the whole, over the energy so far
SHORTEST = wp.constant(wp.float64(1e-8))  # of the stretches, over the whole way
MOST_STRETCHES = wp.constant(2000)


@wp.func
def piece_of(rows: TermRows, first: int, count: int, x: wp.float64):
    """Row of the piece that x lies on, the distance from its knot, and its last two coefficients, zero before the first
    knot."""
    at = int(first)
    last = first + count - 1
    while at < last and x >= rows.number[at + 1, 0]:
        at += 1
    z = x - rows.number[at, 0]
    if z < so3.ZERO:
        return at, z, so3.ZERO, so3.ZERO
    return at, z, rows.number[at, 3], rows.number[at, 4]


@wp.func
def table_force(rows: TermRows, first: int, count: int, x: wp.float64):
    """f of (1) and its slope."""
    at, z, c2, c3 = piece_of(rows, first, count, x)
    c1 = rows.number[at, 2]
    value = rows.number[at, 1] + z * (c1 + z * (c2 + z * c3))
    return value, c1 + z * (so3.TWO * c2 + wp.float64(3.0) * z * c3)


@wp.func
def table_energy(rows: TermRows, first: int, count: int, x: wp.float64) -> wp.float64:
    """U of (1)."""
    at, z, c2, c3 = piece_of(rows, first, count, x)
    by_z = so3.HALF * rows.number[at, 2] + z * (c2 / wp.float64(3.0) + so3.HALF * so3.HALF * z * c3)
    return rows.number[at, 5] + z * (rows.number[at, 1] + z * by_z)


@wp.func
def slope_of_four(far_behind: wp.float64, behind: wp.float64, ahead: wp.float64, far_ahead: wp.float64, h: wp.float64):
    """Derivative by the central difference of fourth order."""
    return (wp.float64(8.0) * (ahead - behind) - (far_ahead - far_behind)) / (wp.float64(12.0) * h)


@wp.func
def slope_of_user(which: int, x: wp.float64, rate: wp.float64, law: wp.Function) -> wp.float64:
    """∂f/∂x of a user's law."""
    h = STEP * (so3.ONE + wp.abs(x))
    return slope_of_four(
        law(which, x - so3.TWO * h, rate),
        law(which, x - h, rate),
        law(which, x + h, rate),
        law(which, x + so3.TWO * h, rate),
        h,
    )


@wp.func
def slope_by_rate_of_user(which: int, x: wp.float64, rate: wp.float64, law: wp.Function) -> wp.float64:
    """∂f/∂ẋ of a user's law."""
    h = STEP * (so3.ONE + wp.abs(rate))
    return slope_of_four(
        law(which, x, rate - so3.TWO * h),
        law(which, x, rate - h),
        law(which, x, rate + h),
        law(which, x, rate + so3.TWO * h),
        h,
    )


@wp.func
def energy_of_stretch(which: int, a: wp.float64, b: wp.float64, law: wp.Function) -> wp.float64:
    """∫ f from a to b by Gauss's rule of eight points."""
    total = wp.float64(0.0)
    half = so3.HALF * (b - a)
    for g in range(8):
        total += half * GAUSS_W[g] * law(which, so3.HALF * (a + b) + half * GAUSS_X[g], so3.ZERO)
    return total


@wp.func(inline=False)
def energy_of_user(which: int, x: wp.float64, law: wp.Function) -> wp.float64:
    """∫ f from 0 to x, in stretches so short that their halves agree with the whole, or the shortest at a kink."""
    total = wp.float64(0.0)
    at = wp.float64(0.0)
    step = x / wp.float64(8.0)
    for _stretch in range(MOST_STRETCHES):
        if at == x:
            return total
        ahead = at + step
        if wp.abs(x - at) <= wp.abs(step):
            ahead = x
        middle = so3.HALF * (at + ahead)
        whole = energy_of_stretch(which, at, ahead, law)
        halves = energy_of_stretch(which, at, middle, law) + energy_of_stretch(which, middle, ahead, law)
        near = wp.abs(halves - whole) <= AGREEMENT * (wp.abs(total) + wp.abs(halves))
        if near or wp.abs(ahead - at) <= SHORTEST * wp.abs(x):
            total += halves
            at = ahead
            step = so3.TWO * step
        else:
            step = so3.HALF * (ahead - at)
    return total + energy_of_stretch(which, at, x, law)


def table_rows(knot: np.ndarray, c: np.ndarray, zero: float) -> np.ndarray:
    """Rows of a table from its knots (n,) and coefficients (n, 4), U being zero at a place."""
    powers = np.diff(knot)[:, None] ** np.arange(1, 5) / np.arange(1, 5)
    held = np.concatenate([[0.0], np.cumsum((c[:-1] * powers).sum(axis=1))])
    at = max(int(np.searchsorted(knot, zero, side="right")) - 1, 0)
    z = zero - knot[at]
    here = c[at] if z >= 0.0 else np.array([*c[at, :2], 0.0, 0.0])
    held -= held[at] + float(here @ (z ** np.arange(1, 5) / np.arange(1, 5)))
    return np.column_stack([knot, c, held])


def pulling_part(knot: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Knots and coefficients of max(0, f) for a table of f."""
    pieces = [(knot[0], np.polynomial.Polynomial(c[0, :2]), -np.inf, 0.0)]
    pieces += [(x, np.polynomial.Polynomial(row), 0.0, stop - x) for x, row, stop in zip(knot, c, [*knot[1:], np.inf])]
    places = set(knot.tolist())
    for x, f, low, high in pieces:
        roots = f.trim().roots() if f.trim().degree() else np.zeros(0)
        places |= {float(x + z) for z in roots[np.isreal(roots)].real if low < z < high}
    if min(places) < knot[0] or c[0, 0] == 0.0:
        places.add(min(places) - 1.0)  # where the straight line before the table changes its sign
    start = np.array(sorted(places))
    rows = []
    for x, stop in zip(start, [*start[1:], start[-1] + 2.0]):
        at = int(np.searchsorted(knot, x, side="right")) - 1
        origin, f, _, _ = pieces[at + 1]
        middle = f(0.5 * (x + stop) - origin)
        rows.append([f.deriv(n)(x - origin) / factorial(n) if middle > 0.0 else 0.0 for n in range(4)])
    return start, np.array(rows)
