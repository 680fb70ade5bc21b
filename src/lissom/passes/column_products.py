"""Native loops over columns for the derivatives: running sums of products with 6x6 matrices, and blocks at a point."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import mat6, vec6
from lissom.passes.column_tables import Columns, Matrix

_NOTHING = """
    double any = 0.0;  // a massless frame on which nothing acts, such as that between two exponentials
    for (int r = 0; r < 6; ++r)
        for (int c = 0; c < 6; ++c)
            any += fabs(M.data[r][c]) + fabs(N.data[r][c]) + fabs(H.data[r][c]);
    if (any == 0.0)
        return;
"""

DERIVATIVES = (
    _NOTHING
    + """
    const int width = x.width, slot = x.slot.data[k];
    const double *j0 = six_rows(J, i, k, width), *e0 = six_rows(J_E, i, k, width);
    const double *r0 = six_rows(J_R, i, k, width), *q0 = six_rows(J_Q, i, k, width);
    double *wa = six_rows(W_a, i, slot, width), *wv = six_rows(W_v, i, slot, width);
    double* wq = six_rows(W_q, i, slot, width);
    for_blocks(start, range, k, [&](int at) {
        block a[6], v[6], q[6];
        for (int r = 0; r < 6; ++r) {
            a[r] = load(wa + r * width + at);
            v[r] = load(wv + r * width + at);
            q[r] = load(wq + r * width + at);
        }
        for (int c = 0; c < 6; ++c) {
            const block j = load(j0 + c * width + at), e = load(e0 + c * width + at);
            const block turn = load(r0 + c * width + at), bend = load(q0 + c * width + at);
            for (int r = 0; r < 6; ++r) {
                a[r] += j * M.data[r][c];
                v[r] += e * M.data[r][c];
                q[r] += bend * M.data[r][c];
                v[r] += j * N.data[r][c];
                q[r] += turn * N.data[r][c];
                q[r] += j * H.data[r][c];
            }
        }
        for (int r = 0; r < 6; ++r) {
            store(wa + r * width + at, a[r]);
            store(wv + r * width + at, v[r]);
            store(wq + r * width + at, q[r]);
        }
    });
"""
)


@wp.func_native(DERIVATIVES)
def add_derivative_products(
    x: Columns, start: wp.array(dtype=wp.int32), range: wp.array(dtype=wp.int32), i: int, k: int, M: mat6, N: mat6,
    H: mat6, J: Matrix, J_E: Matrix, J_R: Matrix, J_Q: Matrix, W_a: Matrix, W_v: Matrix, W_q: Matrix,
):  # fmt: skip
    """W_a += M J, W_v += M J_E + N J and W_q += M J_Q + N J_R + H J of node k, on its listed columns."""
    ...


FOLD = """
    const int width = x.width, slot = x.slot.data[k];
    const double* s = six_rows(S, i, k, width);
    const double *a = six_rows(W_a, i, slot, width), *v = six_rows(W_v, i, slot, width);
    const double* from[3] = {a, v, six_rows(W_q, i, slot, width)};
    double* to[3] = {row(da, i), row(dv, i), row(dq, i)};
    for_blocks(start, range, k, [&](int j) {
        block in[3][6];
        for (int m = 0; m < 3; ++m)
            for (int r = 0; r < 6; ++r)
                in[m][r] = load(from[m] + r * width + j);
        for (int alpha = first; alpha < stop; ++alpha) {
            block sum[3];
            for (int m = 0; m < 3; ++m)
                sum[m] = load(to[m] + alpha * width + j);
            for (int r = 0; r < 6; ++r)
                for (int m = 0; m < 3; ++m)
                    sum[m] += in[m][r] * s[r * width + alpha];
            for (int m = 0; m < 3; ++m)
                store(to[m] + alpha * width + j, sum[m]);
        }
    });
"""


@wp.func_native(FOLD)
def fold_derivatives(
    x: Columns, start: wp.array(dtype=wp.int32), range: wp.array(dtype=wp.int32), first: int, stop: int, i: int, k: int,
    S: Matrix, W_a: Matrix, W_v: Matrix, W_q: Matrix, da: Matrix, dv: Matrix, dq: Matrix,
):  # fmt: skip
    """Rows first … stop − 1 of da += S_kᵀ W_a, dv += S_kᵀ W_v and dq += S_kᵀ W_q on the listed columns of node k."""
    ...


WEIGHTED = (
    _NOTHING
    + """
    const int width = x.width;
    const double *p0 = six_rows(J_P, i, k, width), *r0 = six_rows(J_R, i, k, width), *j0 = six_rows(J, i, k, width);
    double* w = six_rows(W, i, x.slot.data[k], width);
    for_blocks(start, range, k, [&](int j) {
        block sum[6];
        for (int r = 0; r < 6; ++r)
            sum[r] = load(w + r * width + j);
        for (int c = 0; c < 6; ++c) {
            const block p = load(p0 + c * width + j);
            const block q = load(r0 + c * width + j);
            const block s = load(j0 + c * width + j);
            for (int r = 0; r < 6; ++r) {
                sum[r] += p * M.data[r][c];
                sum[r] += q * N.data[r][c];
                sum[r] += s * H.data[r][c];
            }
        }
        for (int r = 0; r < 6; ++r)
            store(w + r * width + j, sum[r]);
    });
"""
)


@wp.func_native(WEIGHTED)
def add_weighted_products(
    x: Columns,
    start: wp.array(dtype=wp.int32),
    range: wp.array(dtype=wp.int32),
    i: int,
    k: int,
    M: mat6,
    N: mat6,
    H: mat6,
    J_P: Matrix,
    J_R: Matrix,
    J: Matrix,
    W: Matrix,
):
    """W += M J_P + N J_R + H J of node k, on its listed columns."""
    ...


CROSS = """
    const int width = x.width;
    const double* in = six_rows(J, i, from_, width);
    double* out = six_rows(W, i, x.slot.data[to], width);
    for_blocks(x.path_start, x.path_range, from_, [&](int j) {
        for (int r = 0; r < 6; ++r)
            for (int c = 0; c < 6; ++c)
                add(out + r * width + j, load(in + c * width + j) * M.data[r][c]);
    });
"""


@wp.func_native(CROSS)
def add_cross_product(
    x: Columns,
    i: int,
    to: int,
    from_: int,
    M: mat6,
    J: Matrix,
    W: Matrix,
):
    """W += M J of node `from_`, on the columns of its path, W the running sum of node `to`."""
    ...


POINT = """
    double* to = row(out, i);
    for (int e = x.entry_start.data[site]; e < x.entry_start.data[site + 1];) {
        const int at = x.entry_block.data[e];
        block v[6] = {};
        for (; e < x.entry_start.data[site + 1] && x.entry_block.data[e] == at; ++e) {
            const block p = load(x.entry_phi1.data + 8 * e);
            const int c = x.entry_component.data[e];
            for (int r = 0; r < 6; ++r)
                v[r] += p * H.data[r][c];
        }
        for (int f = x.row_start.data[site]; f < x.row_start.data[site + 1]; ++f)
            add(to + x.row_v.data[f] * x.width + at, v[x.row_component.data[f]] * x.row_phi1.data[f]);
    }
"""


@wp.func_native(POINT)
def add_point_block(x: Columns, i: int, site: int, H: mat6, out: Matrix):
    """out += Φᵀ H Φ at one strain point."""
    ...


ROW = """
    const double *acc = six_rows(J_acc, i, k, x.width), *twist = six_rows(J_twist, i, k, x.width);
    double* to = row(out, i) + number * x.width;
    for_blocks(x.path_start, x.path_range, k, [&](int j) {
        block sum = load(to + j);
        for (int r = 0; r < 6; ++r) {
            sum += load(acc + r * x.width + j) * y_acc.c[r];
            sum += load(twist + r * x.width + j) * y_twist.c[r];
        }
        store(to + j, sum);
    });
"""


@wp.func_native(ROW)
def add_to_row(
    x: Columns, i: int, k: int, number: int, y_acc: vec6, y_twist: vec6, J_acc: Matrix, J_twist: Matrix, out: Matrix
):
    """Row `number` of out += y_accᵀ J_acc + y_twistᵀ J_twist of node k, on the columns of its path."""
    ...
