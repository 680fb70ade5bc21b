"""Systems of linear equations, inside kernels: symmetric positive definite by LDLᵀ, others by LU with swapped rows."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.passes.column_tables import Matrix

FINITE = wp.constant(wp.float64(1e300))  # a size from which on a step is called none

LDL_SOLVE = """
    double* a = row(A, i);
    double* y = row(x, i);
    double* diagonal = a + n * width;
    for (int k = 0; k < n; ++k)
        diagonal[k] = a[k * width + k];
    for (int k = 0; k < n; ++k) {
        const double* top = a + k * width;
        if (!(top[k] > 1e-14 * diagonal[k]))
            return k + 1;
        const double inverse = 1.0 / top[k];
        for (int row = k + 1; row < n; ++row) {
            const double factor = top[row] * inverse;
            double* to = a + row * width;
            for (int j = row; j < n; ++j)
                to[j] -= factor * top[j];
            y[row] -= factor * y[k];
        }
        y[k] *= inverse;
    }
    for (int k = n - 1; k >= 0; --k) {
        const double* top = a + k * width;
        double sum = 0.0;
        for (int j = k + 1; j < n; ++j)
            sum += top[j] * y[j];
        y[k] -= sum / top[k];
    }
    return 0;
"""


@wp.func_native(LDL_SOLVE)
def ldl_solve(n: int, width: int, i: int, A: Matrix, x: Matrix) -> int:
    """Solve A x = b by LDLᵀ: A (n + 1 rows of width, the last one for work) and b = x are
    overwritten. Returns 0, or 1 + the index of a pivot that rounding could have made."""
    ...


LU_FACTOR = """
    double* a = row(A, i);
    double* lower = row(L, i);
    int* swap = row(pivots, i);
    for (int k = 0; k < n; ++k) {
        int best = k;
        double size = fabs(a[k * width + k]);
        for (int row = k + 1; row < n; ++row) {
            const double here = fabs(a[row * width + k]);
            if (here > size) {
                best = row;
                size = here;
            }
        }
        swap[k] = best;
        if (!(size > 0.0) || !(size < 1e300))
            return k + 1;
        const int aligned = k / 8 * 8;
        double* top = a + k * width;
        if (best != k) {
            for (int j = aligned; j < width; j += 8) {
                const block kept = load(top + j);
                store(top + j, load(a + best * width + j));
                store(a + best * width + j, kept);
            }
            for (int j = 0; j < k; ++j) {
                const double kept = lower[j * width + k];
                lower[j * width + k] = lower[j * width + best];
                lower[j * width + best] = kept;
            }
        }
        const double inverse = -1.0 / top[k];
        for (int row = k + 1; row < n; ++row) {
            double* to = a + row * width;
            const double factor = to[k] * inverse;
            lower[k * width + row] = factor;
            for (int j = aligned; j < width; j += 8)
                add(to + j, load(top + j) * factor);
        }
    }
    return 0;
"""


@wp.func_native(LU_FACTOR)
def lu_factor(n: int, width: int, i: int, A: Matrix, L: Matrix, pivots: wp.array2d(dtype=wp.int32)) -> int:
    """Factors of A (n rows of width) with swapped rows: A becomes the upper one; L holds the lower one by columns, with
    the opposite sign. Returns 0, or 1 + the index of a pivot that is zero or not finite."""
    ...


LU_SOLVE = """
    const double* a = row(A, i);
    const double* lower = row(L, i);
    const int* swap = row(pivots, i);
    double* y = row(x, i);
    for (int k = 0; k < n; ++k) {
        const double kept = y[k];
        y[k] = y[swap[k]];
        y[swap[k]] = kept;
    }
    for (int k = 0; k < n; ++k) {
        const double known = y[k];
        for (int j = k + 1; j < n; ++j)
            y[j] += lower[k * width + j] * known;
    }
    for (int k = n - 1; k >= 0; --k) {
        double even = y[k], odd = 0.0;
        int j = k + 1;
        for (; j + 1 < n; j += 2) {
            even -= a[k * width + j] * y[j];
            odd -= a[k * width + j + 1] * y[j + 1];
        }
        if (j < n)
            even -= a[k * width + j] * y[j];
        y[k] = (even + odd) / a[k * width + k];
    }
"""


@wp.func_native(LU_SOLVE)
def lu_solve(n: int, width: int, i: int, A: Matrix, L: Matrix, pivots: wp.array2d(dtype=wp.int32), x: Matrix):
    """Solve by the factors of lu_factor; the right-hand side in x is overwritten by the solution."""
    ...


@wp.func
def largest(n: int, i: int, weight: wp.array(dtype=wp.float64), x: Matrix) -> wp.float64:
    """Largest |weight x|; NaN if an entry is."""
    size = wp.float64(0.0)
    bad = wp.float64(0.0)
    for j in range(n):
        size = wp.max(size, wp.abs(x[i, j]) * weight[j])
        bad += wp.float64(0.0) * x[i, j]
    return size + bad
