"""Native loops over columns for the derivatives: running sums of products with 6x6 matrices, and local blocks."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import mat6, vec6
from lissom.passes.column_tables import Columns, Matrix

RATES = """
    const int width = x.width, slot = x.slot.data[k];
    const double *j0 = six_rows(J, i, k, width), *e0 = six_rows(J_E, i, k, width);
    double *wa = six_rows(W_a, i, slot, width), *wv = six_rows(W_v, i, slot, width);
    auto add_product = [&](const wp::mat_t<6, 6, double>& matrix, const double* from, block* sum) {
        for (int c = 0; c < 6; ++c)
            for (int r = 0; r < 6; ++r)
                sum[r] += load(from + c * width) * matrix.data[r][c];
    };
    auto take = [&](block* sum, const double* from) {
        for (int r = 0; r < 6; ++r)
            sum[r] = load(from + r * width);
    };
    auto keep = [&](const block* sum, double* to) {
        for (int r = 0; r < 6; ++r)
            store(to + r * width, sum[r]);
    };
    for_blocks(x.path_start, x.path_range, k, [&](int j) {
        block sum[6];
        take(sum, wa + j);
        add_product(M, j0 + j, sum);
        keep(sum, wa + j);
        take(sum, wv + j);
        add_product(M, e0 + j, sum);
        add_product(N, j0 + j, sum);
        keep(sum, wv + j);
    });
"""


@wp.func_native(RATES)
def add_rate_products(
    x: Columns,
    i: int,
    k: int,
    M: mat6,
    N: mat6,
    J: Matrix,
    J_E: Matrix,
    W_a: Matrix,
    W_v: Matrix,
):
    """W_a += M J and W_v += M J_E + N J of node k, on the columns of its path."""
    ...


WEIGHTED = """
    const int width = x.width;
    const double *p0 = six_rows(J_P, i, k, width), *r0 = six_rows(J_R, i, k, width), *j0 = six_rows(J, i, k, width);
    double* w = six_rows(W, i, x.slot.data[k], width);
    for_blocks(x.path_start, x.path_range, k, [&](int j) {
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


@wp.func_native(WEIGHTED)
def add_weighted_products(
    x: Columns,
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
    """W += M J_P + N J_R + H J of node k, on the columns of its path."""
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


LOCAL = """
    double* to = row(out, i);
    for (int e = x.entry_start.data[site]; e < x.entry_start.data[site + 1];) {
        const int at = x.entry_block.data[e];
        block v1[6] = {}, v2[6] = {};
        for (; e < x.entry_start.data[site + 1] && x.entry_block.data[e] == at; ++e) {
            const block p1 = load(x.entry_phi1.data + 8 * e);
            const block p2 = load(x.entry_phi2.data + 8 * e);
            const int c = x.entry_component.data[e];
            for (int r = 0; r < 6; ++r) {
                v1[r] += p1 * H11.data[r][c];
                v1[r] += p2 * H12.data[r][c];
                v2[r] += p1 * H21.data[r][c];
                v2[r] += p2 * H22.data[r][c];
            }
        }
        for (int f = x.row_start.data[site]; f < x.row_start.data[site + 1]; ++f) {
            const int c = x.row_component.data[f];
            block* row = (block*)(to + x.row_v.data[f] * x.width + at);
            block sum = *row;
            sum += v1[c] * x.row_phi1.data[f];
            sum += v2[c] * x.row_phi2.data[f];
            *row = sum;
        }
    }
"""


@wp.func_native(LOCAL)
def add_local_block(x: Columns, i: int, site: int, H11: mat6, H12: mat6, H21: mat6, H22: mat6, out: Matrix):
    """out += Σ Φ_aᵀ H_ab Φ_b on a node's own coordinates, a and b its two strain points."""
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
