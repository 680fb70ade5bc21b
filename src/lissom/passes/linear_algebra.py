"""Linear algebra inside kernels: systems of equations, norms and checks of rows of arrays.

Symmetric positive definite systems are solved by LDLᵀ, others by LU with swapped rows.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.passes.columns import Matrix

native = native_functions("passes/linear_algebra.h")

Pivots = wp.array2d(dtype=wp.int32)

FINITE = wp.constant(wp.float64(1e300))  # a step of this size or larger counts as not finite


@wp.func_native(native("ldl_solve"))
def ldl_solve(n: int, width: int, i: int, A: Matrix, x: Matrix) -> int:
    """Solve A x = b by LDLᵀ: A (n + 1 rows of width, the last one for work) and b = x are overwritten. Returns 0, or 1
    + the index of a pivot that is zero to rounding."""
    ...


@wp.func_native(native("lu_factor"))
def lu_factor(n: int, width: int, i: int, A: Matrix, L: Matrix, pivots: Pivots) -> int:
    """LU factors of A (n rows of width) with swapped rows: the upper factor overwrites A; L gets the lower factor by
    columns, with the opposite sign. Returns 0, or 1 + the index of a pivot that is zero or not finite."""
    ...


@wp.func_native(native("lu_solve"))
def lu_solve(n: int, width: int, i: int, A: Matrix, L: Matrix, pivots: Pivots, x: Matrix):
    """Solve with the factors of lu_factor; the right side in x is overwritten by the solution."""
    ...


@wp.func_native(native("lu_solve_at"))
def lu_solve_at(n: int, width: int, i: int, A: Matrix, L: Matrix, pivots: Pivots, at: int, x: Matrix):
    """Solve with the factors of instance i, in place in row `at` of x."""
    ...


@wp.func_native(native("lu_solve_transposed"))
def lu_solve_transposed(
    n: int, width: int, i: int, A: Matrix, L: Matrix, pivots: Pivots, at: int, shift: int, x: Matrix
):
    """Solve with the transposed matrix and the factors of instance i, in place from x[at, shift] on."""
    ...


@wp.func
def largest(n: int, i: int, weight: wp.array(dtype=wp.float64), x: Matrix) -> wp.float64:
    """Largest |weight x| of the first n entries; NaN if one of them is not finite."""
    size = wp.float64(0.0)
    bad = wp.float64(0.0)
    for j in range(n):
        size = wp.max(size, wp.abs(x[i, j]) * weight[j])
        bad += wp.float64(0.0) * x[i, j]
    return size + bad


@wp.func_native(native("is_finite"))
def is_finite(i: int, x: Matrix) -> bool:
    """Whether all numbers in row i are finite."""
    ...
