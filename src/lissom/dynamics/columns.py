"""Matrices with one column for each velocity coordinate, inside kernels.

A 6 x nv matrix of node k is six rows of `width` numbers, width = nv rounded up to a multiple of 8, from 6 k width on.
Only the stretches that hold columns of the node's subtree are ever touched; `subtree_*` lists them, each rounded to
multiples of 8 so that one loop step fills a vector register. The loops over columns are native code: they are nothing
but sums of products, and Warp's array indexing would cost more than the products.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.dynamics import sweeps
from lissom.dynamics.sweeps import Scratch
from lissom.lie import se3, so3
from lissom.lie.types import mat3, mat6, vec6
from lissom.model.model import Model
from lissom.model.tables import EXP, Tables, vec6i, vec7i

Matrix = wp.array2d(dtype=wp.float64)


@wp.struct
class Columns:
    """What every column algorithm needs of the topology: width of a row and the columns below each node."""

    width: wp.int32
    subtree_start: wp.array(dtype=wp.int32)
    subtree_range: wp.array(dtype=wp.int32)


def column_tables(model: Model) -> Columns:
    """The column topology of a model on its device."""
    x = Columns()
    width = column_width(model)
    below = np.zeros((model.n_nodes, width // 8), dtype=bool)
    for k in range(model.n_nodes - 1, -1, -1):
        first, stop = int(model.node_v_start[k]), int(model.node_v_stop[k])
        if stop > first:
            below[k, first // 8 : (stop + 7) // 8] = True
        if model.node_parent[k] >= 0:
            below[model.node_parent[k]] |= below[k]
    edges = [8 * np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]]))) for row in below]
    x.width = width
    x.subtree_start = wp.array(np.cumsum([0] + [len(e) for e in edges]), dtype=wp.int32, device=model.device)
    x.subtree_range = wp.array(np.concatenate([[], *edges]), dtype=wp.int32, device=model.device)
    return x


def column_width(model: Model) -> int:
    """Numbers in a row of columns."""
    return max((model.nv + 7) // 8, 1) * 8


STRAIN_COLUMNS = """
    double* out = (double*)((char*)S.data + size_t(i) * S.strides[0]) + 6 * k * width;
    for (int c = 0; c < 6; ++c) {
        const int start = run_start[c], count = run_start[c + 1] - start;
        const double* p1 = phi1.data + start;
        const double* p2 = phi2.data + start;
        for (int r = 0; r < 6; ++r) {
            double* row = out + r * width + run_v[c];
            const double a1 = one.data[r][c], a2 = two.data[r][c];
            for (int e = 0; e < count; ++e)
                row[e] += p1[e] * a1 + p2[e] * a2;
        }
    }
"""


@wp.func_native(STRAIN_COLUMNS)
def add_strain_columns(
    phi1: wp.array(dtype=wp.float64),
    phi2: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    k: int,
    width: int,
    one: mat6,
    two: mat6,
    S: Matrix,
):
    """S_k += one Φ₁ + two Φ₂ for a node's strain basis."""
    ...


CLEAR = """
    double* out = (double*)((char*)V.data + size_t(i) * V.strides[0]) + 6 * k * width;
    for (int e = x_start.data[k]; e < x_start.data[k + 1]; e += 2)
        for (int r = 0; r < 6; ++r)
            for (int j = x_range.data[e]; j < x_range.data[e + 1]; ++j)
                out[r * width + j] = 0.0;
"""


@wp.func_native(CLEAR)
def clear_subtree(
    x_start: wp.array(dtype=wp.int32), x_range: wp.array(dtype=wp.int32), i: int, k: int, width: int, V: Matrix
):
    """V_k = 0 on the columns of the subtree of k."""
    ...


CLEAR_OWN = """
    double* out = (double*)((char*)S.data + size_t(i) * S.strides[0]) + 6 * k * width;
    for (int r = 0; r < 6; ++r)
        for (int j = first / 8 * 8; j < (stop + 7) / 8 * 8; ++j)
            out[r * width + j] = 0.0;
"""


@wp.func_native(CLEAR_OWN)
def clear_own(first: int, stop: int, i: int, k: int, width: int, S: Matrix):
    """S_k = 0 on the stretch of the node's own columns first … stop − 1."""
    ...


PRODUCT = """
    if (stop <= first) return;
    const double* in = (const double*)((const char*)S.data + size_t(i) * S.strides[0]) + 6 * k * width;
    double* out = (double*)((char*)V.data + size_t(i) * V.strides[0]) + 6 * k * width;
    for (int j = first / 8 * 8; j < stop; j += 8) {
        double s[6][8];
        for (int r = 0; r < 6; ++r)
            for (int n = 0; n < 8; ++n)
                s[r][n] = in[r * width + j + n];
        for (int r = 0; r < 6; ++r) {
            double sum[8];
            for (int n = 0; n < 8; ++n)
                sum[n] = out[r * width + j + n];
            for (int c = 0; c < 6; ++c)
                for (int n = 0; n < 8; ++n)
                    sum[n] += M.data[r][c] * s[c][n];
            for (int n = 0; n < 8; ++n)
                out[r * width + j + n] = sum[n];
        }
    }
"""


@wp.func_native(PRODUCT)
def add_product(M: mat6, first: int, stop: int, i: int, k: int, width: int, S: Matrix, V: Matrix):
    """V_k += M S_k on the node's own columns first … stop − 1."""
    ...


FOLD = """
    const double* s = (const double*)((const char*)S.data + size_t(i) * S.strides[0]) + 6 * k * width;
    const double* v = (const double*)((const char*)V.data + size_t(i) * V.strides[0]) + 6 * k * width;
    double* to = (double*)((char*)out.data + size_t(i) * out.strides[0]);
    for (int row = first; row < stop; ++row) {
        double a[6];
        for (int r = 0; r < 6; ++r)
            a[r] = s[r * width + row];
        for (int e = x_start.data[k]; e < x_start.data[k + 1]; e += 2)
            for (int j = x_range.data[e]; j < x_range.data[e + 1]; j += 8) {
                double sum[8];
                for (int n = 0; n < 8; ++n)
                    sum[n] = to[row * width + j + n];
                for (int r = 0; r < 6; ++r)
                    for (int n = 0; n < 8; ++n)
                        sum[n] += a[r] * v[r * width + j + n];
                for (int n = 0; n < 8; ++n)
                    to[row * width + j + n] = sum[n];
            }
    }
"""


@wp.func_native(FOLD)
def fold_rows(
    x_start: wp.array(dtype=wp.int32),
    x_range: wp.array(dtype=wp.int32),
    first: int,
    stop: int,
    i: int,
    k: int,
    width: int,
    S: Matrix,
    V: Matrix,
    out: Matrix,
):
    """Rows first … stop − 1 of out += S_kᵀ V_k on the columns of the subtree of k."""
    ...


PASS = """
    if (parent < 0) return;
    double* base = (double*)((char*)V.data + size_t(i) * V.strides[0]);
    const double* from = base + 6 * k * width;
    double* to = base + 6 * parent * width;
    for (int e = x_start.data[k]; e < x_start.data[k + 1]; e += 2)
        for (int r = 0; r < 6; ++r)
            for (int j = x_range.data[e]; j < x_range.data[e + 1]; j += 8)
                for (int n = 0; n < 8; ++n)
                    to[r * width + j + n] += from[r * width + j + n];
"""


@wp.func_native(PASS)
def pass_to_parent(
    x_start: wp.array(dtype=wp.int32),
    x_range: wp.array(dtype=wp.int32),
    parent: int,
    i: int,
    k: int,
    width: int,
    V: Matrix,
):
    """V_parent += V_k on the columns of the subtree of k."""
    ...


SYMMETRIC = """
    const double* a = (const double*)((const char*)A.data + size_t(i) * A.strides[0]);
    const double* b = (const double*)((const char*)B.data + size_t(i) * B.strides[0]);
    double* to = (double*)((char*)out.data + size_t(i) * out.strides[0]);
    for (int row = 0; row < nv; ++row)
        for (int col = 0; col < nv; ++col)
            to[row * width + col] = a[row * width + col] + b[col * width + row];
"""


@wp.func_native(SYMMETRIC)
def add_transposed(nv: int, width: int, i: int, A: Matrix, B: Matrix, out: Matrix):
    """out = A + Bᵀ, all nv x width."""
    ...


ZERO_ROWS = """
    double* to = (double*)((char*)out.data + size_t(i) * out.strides[0]);
    for (int n = 0; n < nv * width; ++n)
        to[n] = 0.0;
"""


@wp.func_native(ZERO_ROWS)
def clear_rows(nv: int, width: int, i: int, out: Matrix):
    """out = 0, nv x width."""
    ...


@wp.func
def full(A: mat3, B: mat3) -> mat6:
    """[[A, 0], [B, A]] as a 6x6 matrix."""
    return se3.block(A, mat3(), B, A)


@wp.func
def motion_columns(t: Tables, s: Scratch, x: Columns, i: int, k: int, S: Matrix):
    """S = D₀ Z of node k, D₀ Z = D₀ (h/2 − κ ad ξ₂) Φ₁ + D₀ (h/2 + κ ad ξ₁) Φ₂; zero beside its columns."""
    clear_own(t.node[k].v_start, t.node[k].v_stop, i, k, x.width, S)
    A, B = sweeps.motion_block(t, s, i, k)
    if t.node[k].kind == EXP:
        half = so3.HALF * t.node[k].h
        kappa = t.node[k].kappa
        A1, B1 = sweeps.strain_block(half, -kappa, s.node[i, k].xi2)
        A2, B2 = sweeps.strain_block(half, kappa, s.node[i, k].xi1)
        add_strain_columns(
            t.run_phi1,
            t.run_phi2,
            t.node[k].run_start,
            t.node[k].run_v,
            i,
            k,
            x.width,
            full(A * A1, B * A1 + A * B1),
            full(A * A2, B * A2 + A * B2),
            S,
        )
    else:
        put_group_columns(t, x.width, i, k, full(A, B), S)


@wp.func
def put_group_columns(t: Tables, width: int, i: int, k: int, M: mat6, S: Matrix):
    """S_k = M Φ of a GROUP node, whose Φ picks the first columns of M."""
    first = t.node[k].v_start
    for c in range(6):
        if first + c < t.node[k].v_stop:
            for r in range(6):
                S[i, (6 * k + r) * width + first + c] = M[r, c]


@wp.func
def column(x: Columns, S: Matrix, i: int, k: int, j: int) -> vec6:
    """Column j of the matrix of node k."""
    at = 6 * k * x.width + j
    w = x.width
    return vec6(S[i, at], S[i, at + w], S[i, at + 2 * w], S[i, at + 3 * w], S[i, at + 4 * w], S[i, at + 5 * w])
