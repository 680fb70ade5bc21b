"""The matrix S of a stage, made of the derivatives of the residual inside a kernel, for recursion.

    S = M + w₀ D' + p₀ K',   K' = K T + (D + c₁ M) W and D' = D T + c₁ M (T − 1)   of poses that add up rates,
    K' = K T and D' = D   of other poses,   K' = K and D' = D   of other coordinates;   with loops  (S, −Aᵀ; A_q T, 0)

A row of loops that follows from the others is one of the identity. Each row is multiplied by a unit that makes it of
size one in coordinates of size (M + w₀ |D| + p₀ |K|)^(-1/2), of the diagonals, or of natural size where these are zero:
so a symmetric S has its own diagonal for pivots. Otherwise rows of stiff coordinates and of loops serve as pivots of
soft ones, and solutions forwards and backwards lose two digits where a heavy arm ends in a light gripper.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

Rows = wp.array2d(dtype=wp.float64)
Integers = wp.array2d(dtype=wp.int32)

STAGE_MATRIX = """
    const int m = n - nv, size = 4 + 3 * (stages - 1);
    const double p0 = weights.data[3 * size * s], w0 = weights.data[3 * size * s + size], c1 = w0 / p0;
    const double *by_q = row(K, here), *by_v = row(D, here), *by_a = row(M, here);
    double* out = row(matrix, here);
    for (int e = 0; e < nv; ++e) {
        for (int j = 0; j < width; j += 8) {
            block sum = load(by_a + e * width + j);
            sum += load(by_v + e * width + j) * w0;
            sum += load(by_q + e * width + j) * p0;
            store(out + e * wide + j, sum);
        }
        for (int j = width; j < wide; ++j)
            out[e * wide + j] = 0.0;
    }
    for (int k = 0; k < m; ++k) {
        double* moves = row(A_q, here) + k * width;
        double* to = out + (nv + k) * wide;
        const bool kept = row(slot, here)[k] >= 0;
        for (int j = 0; j < wide; ++j)
            to[j] = 0.0;
        for (int j = 0; j < width; ++j)
            to[j] = moves[j] = kept ? moves[j] : 0.0;
        for (int e = 0; e < nv; ++e)
            out[e * wide + nv + k] = kept ? -row(A, here)[k * width + e] : 0.0;
        if (!kept)
            to[nv + k] = 1.0;
    }
    for (int g = 0; g < groups; ++g) {
        const int at = group.data[2 * g], many = group.data[2 * g + 1];
        const double* turn = row(T, r) + 36 * g;
        const double* bend = row(W, r) + 36 * g;
        for (int e = 0; e < n; ++e) {
            const double* q = e < nv ? by_q + e * width + at : row(A_q, here) + (e - nv) * width + at;
            const double *v = by_v + e * width + at, *a = by_a + e * width + at;
            for (int j = 0; j < many; ++j) {
                double move = 0.0, rate = 0.0;
                for (int c = 0; c < many; ++c)
                    move += q[c] * turn[6 * c + j];
                if (e >= nv) {
                    out[e * wide + at + j] = move;
                    continue;
                }
                if (rates)
                    for (int c = 0; c < many; ++c) {
                        const double both = v[c] + c1 * a[c];
                        move += both * bend[6 * c + j];
                        rate += both * turn[6 * c + j];
                    }
                rate = rates ? rate - c1 * a[j] : v[j];
                out[e * wide + at + j] = a[j] + w0 * rate + p0 * move;
            }
        }
    }
    double* unit = row(units, here);
    for (int e = 0; e < n; ++e)
        unit[e] = 0.0;
    for (int j = 0; j < nv; ++j) {
        const int own = j * width + j;
        const double weight = fabs(by_a[own]) + w0 * fabs(by_v[own]) + p0 * fabs(by_q[own]);
        const double size = weight > 0.0 ? 1.0 / sqrt(weight) : scale.data[j];
        for (int e = 0; e < n; ++e) {
            const double x = fabs(out[e * wide + j]) * size;
            unit[e] = x > unit[e] ? x : unit[e];
        }
    }
    for (int e = 0; e < n; ++e) {
        unit[e] = unit[e] > 0.0 ? 1.0 / unit[e] : 1.0;
        for (int j = 0; j < wide; j += 8)
            store(out + e * wide + j, load(out + e * wide + j) * unit[e]);
    }
"""


@wp.func_native(STAGE_MATRIX)
def stage_matrix(
    nv: int, n: int, width: int, wide: int, stages: int, groups: int, rates: int, r: int, here: int, s: int,
    weights: Rows, group: Integers, T: Rows, W: Rows, K: Rows, D: Rows, M: Rows, A: Rows, A_q: Rows, slot: Integers,
    scale: wp.array(dtype=wp.float64), matrix: Rows, units: Rows,
):  # fmt: skip
    """S of row `here` of a window, whose poses have moved as row r of all; rows of A_q that follow from others become
    zero."""
    ...
