"""Systems of linear equations, inside kernels: symmetric positive definite by LDLᵀ, others by LU with swapped rows."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

LDL_SOLVE = """
    double* a = (double*)((char*)A.data + size_t(i) * A.strides[0]);
    double* y = (double*)((char*)x.data + size_t(i) * x.strides[0]);
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
def ldl_solve(n: int, width: int, i: int, A: wp.array2d(dtype=wp.float64), x: wp.array2d(dtype=wp.float64)) -> int:
    """Solve A x = b by LDLᵀ: A (n + 1 rows of width, the last one for work) and b = x are
    overwritten. Returns 0, or 1 + the index of a pivot that rounding could have made."""
    ...


LU_FACTOR = """
    double* a = (double*)((char*)A.data + size_t(i) * A.strides[0]);
    int* swap = (int*)((char*)pivots.data + size_t(i) * pivots.strides[0]);
    for (int k = 0; k < n; ++k) {
        int best = k;
        for (int row = k + 1; row < n; ++row)
            if (fabs(a[row * width + k]) > fabs(a[best * width + k]))
                best = row;
        swap[k] = best;
        double* top = a + k * width;
        if (best != k)
            for (int j = 0; j < n; ++j) {
                const double kept = top[j];
                top[j] = a[best * width + j];
                a[best * width + j] = kept;
            }
        if (!(fabs(top[k]) > 0.0) || !(fabs(top[k]) < 1e300))
            return k + 1;
        const double inverse = 1.0 / top[k];
        for (int row = k + 1; row < n; ++row) {
            double* to = a + row * width;
            const double factor = to[k] * inverse;
            to[k] = factor;
            for (int j = k + 1; j < n; ++j)
                to[j] -= factor * top[j];
        }
    }
    return 0;
"""


@wp.func_native(LU_FACTOR)
def lu_factor(n: int, width: int, i: int, A: wp.array2d(dtype=wp.float64), pivots: wp.array2d(dtype=wp.int32)) -> int:
    """Overwrite A (n rows of width) by its factors L U of swapped rows. Returns 0, or 1 + the index of a pivot that is
    zero or not finite."""
    ...


LU_SOLVE = """
    const double* a = (const double*)((const char*)A.data + size_t(i) * A.strides[0]);
    const int* swap = (const int*)((const char*)pivots.data + size_t(i) * pivots.strides[0]);
    double* y = (double*)((char*)x.data + size_t(i) * x.strides[0]);
    for (int k = 0; k < n; ++k) {
        const double kept = y[k];
        y[k] = y[swap[k]];
        y[swap[k]] = kept;
    }
    for (int k = 0; k < n; ++k) {
        double sum = 0.0;
        for (int j = 0; j < k; ++j)
            sum += a[k * width + j] * y[j];
        y[k] -= sum;
    }
    for (int k = n - 1; k >= 0; --k) {
        double sum = 0.0;
        for (int j = k + 1; j < n; ++j)
            sum += a[k * width + j] * y[j];
        y[k] = (y[k] - sum) / a[k * width + k];
    }
"""


@wp.func_native(LU_SOLVE)
def lu_solve(
    n: int,
    width: int,
    i: int,
    A: wp.array2d(dtype=wp.float64),
    pivots: wp.array2d(dtype=wp.int32),
    x: wp.array2d(dtype=wp.float64),
):
    """Solve A x = b by the factors of lu_factor; b is overwritten by x."""
    ...
