"""Symmetric positive definite systems, inside kernels."""

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
