"""Matrices with one column for each velocity coordinate, inside kernels.

A 6 x nv matrix of node k is six rows of `width` numbers, width = nv rounded up to a multiple of 8, from 6 k width on.
All work goes by blocks of 8 columns, so that one loop step fills a vector register; only the stretches that hold
columns of the node's subtree are ever touched, and `subtree_*` lists them. A running sum belongs to a slot, which the
nodes of a chain share: the sum over a subtree grows in place on its way inward. The loops over columns are native
code: they are nothing but sums of products, and Warp's array indexing would cost more than the products.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import mat3, mat6, vec6
from lissom.passes.column_tables import Columns, Matrix

# What both ways of making columns share: the sums of one block, from the pairs (A₁, B₁) and (A₂, B₂).
BLOCK_OF_COLUMNS = """
        for (; e < x.entry_start.data[k + 1] && x.entry_block.data[e] == at; ++e) {
            const block p1 = load(x.entry_phi1.data + 8 * e);
            const block p2 = load(x.entry_phi2.data + 8 * e);
            const int c = x.entry_component.data[e];
            if (c < 3)
                for (int r = 0; r < 3; ++r) {
                    sum[r] += p1 * A1.data[r][c];
                    sum[r] += p2 * A2.data[r][c];
                    sum[r + 3] += p1 * B1.data[r][c];
                    sum[r + 3] += p2 * B2.data[r][c];
                }
            else
                for (int r = 0; r < 3; ++r) {
                    sum[r + 3] += p1 * A1.data[r][c - 3];
                    sum[r + 3] += p2 * A2.data[r][c - 3];
                }
        }
"""

PUT = f"""
    double* out = six_rows(S, i, k, x.width);
    for (int e = x.entry_start.data[k]; e < x.entry_start.data[k + 1];) {{
        const int at = x.entry_block.data[e];
        block sum[6] = {{}};
        {BLOCK_OF_COLUMNS}
        for (int r = 0; r < 6; ++r)
            store(out + r * x.width + at, sum[r]);
    }}
"""


PUT_TURNED = """
    double* out = six_rows(S, i, k, x.width);
    for (int e = x.entry_start.data[k]; e < x.entry_start.data[k + 1];) {
        const int at = x.entry_block.data[e];
        block sum[6] = {};
        for (; e < x.entry_start.data[k + 1] && x.entry_block.data[e] == at; ++e) {
            const block phi = load(x.entry_phi1.data + 8 * e);
            const int c = x.entry_component.data[e];
            if (c < 3)
                for (int r = 0; r < 3; ++r) {
                    sum[r] += phi * A.data[r][c];
                    sum[r + 3] += phi * B.data[r][c];
                }
            else
                for (int r = 0; r < 3; ++r)
                    sum[r + 3] += phi * A.data[r][c - 3];
        }
        for (int r = 0; r < 6; ++r)
            store(out + r * x.width + at, sum[r]);
    }
"""


@wp.func_native(PUT_TURNED)
def put_turned_columns(x: Columns, i: int, k: int, A: mat3, B: mat3, S: Matrix):
    """S_k = [A, B] Φ₁ on the node's own blocks, of a node whose columns are those of one point."""
    ...


@wp.func_native(PUT)
def put_columns(x: Columns, i: int, k: int, A1: mat3, B1: mat3, A2: mat3, B2: mat3, S: Matrix):
    """S_k = [A₁, B₁] Φ₁ + [A₂, B₂] Φ₂ on the node's own blocks, a pair [A, B] standing for [[A, 0], [B, A]]."""
    ...


EXTEND = f"""
    double* out = six_rows(J, i, k, x.width);
    const double* before = six_rows(J, i, parent < 0 ? 0 : parent, x.width);
    for_blocks(x.path_start, x.path_range, k, [&](int j) {{
        for (int r = 0; r < 6; ++r)
            store(out + r * x.width + j, parent < 0 ? block{{}} : load(before + r * x.width + j));
    }});
    for (int e = x.entry_start.data[k]; e < x.entry_start.data[k + 1];) {{
        const int at = x.entry_block.data[e];
        block sum[6];
        for (int r = 0; r < 6; ++r)
            sum[r] = load(out + r * x.width + at);
        {BLOCK_OF_COLUMNS}
        for (int r = 0; r < 6; ++r)
            store(out + r * x.width + at, sum[r]);
    }}
"""


@wp.func_native(EXTEND)
def extend_path(
    x: Columns,
    parent: int,
    i: int,
    k: int,
    A1: mat3,
    B1: mat3,
    A2: mat3,
    B2: mat3,
    J: Matrix,
):
    """J_k = J_parent + [A₁, B₁] Φ₁ + [A₂, B₂] Φ₂ on the columns of the path to k."""
    ...


@wp.func
def copy_path(x: Columns, parent: int, i: int, k: int, J: Matrix):
    """J_k = J_parent on the columns of the path to k, for own columns to be added."""
    none = mat3()
    extend_path(x, parent, i, k, none, none, none, none, J)


CLEAR = """
    double* out = row(V, i);
    for (int n = 0; n < 6 * x.n_slots * x.width; ++n)
        out[n] = 0.0;
"""


@wp.func_native(CLEAR)
def clear_sums(x: Columns, i: int, V: Matrix):
    """All running sums V = 0."""
    ...


PRODUCT = """
    if (stop <= first) return;
    const int width = x.width;
    const double* in = six_rows(S, i, k, width);
    double* out = six_rows(V, i, x.slot.data[k], width);
    for (int j = first / 8 * 8; j < stop; j += 8) {
        block sum[6];
        for (int r = 0; r < 6; ++r)
            sum[r] = load(out + r * width + j);
        for (int c = 0; c < 6; ++c)
            for (int r = 0; r < 6; ++r)
                sum[r] += load(in + c * width + j) * M.data[r][c];
        for (int r = 0; r < 6; ++r)
            store(out + r * width + j, sum[r]);
    }
"""


@wp.func_native(PRODUCT)
def add_product(x: Columns, M: mat6, first: int, stop: int, i: int, k: int, S: Matrix, V: Matrix):
    """V += M S_k on the node's own columns first … stop − 1, V its running sum."""
    ...


FOLD = """
    const int width = x.width;
    const double* s = six_rows(S, i, k, width);
    const double* v = six_rows(V, i, x.slot.data[k], width);
    double* to = row(out, i);
    for_blocks(x_start, x_range, k, [&](int j) {
        block in[6];
        for (int r = 0; r < 6; ++r)
            in[r] = load(v + r * width + j);
        for (int alpha = first; alpha < stop; ++alpha) {
            block sum = load(to + alpha * width + j);
            for (int r = 0; r < 6; ++r)
                sum += in[r] * s[r * width + alpha];
            store(to + alpha * width + j, sum);
        }
    });
"""


@wp.func_native(FOLD)
def fold_rows(
    x: Columns,
    x_start: wp.array(dtype=wp.int32),
    x_range: wp.array(dtype=wp.int32),
    first: int,
    stop: int,
    i: int,
    k: int,
    S: Matrix,
    V: Matrix,
    out: Matrix,
):
    """Rows first … stop − 1 of out += S_kᵀ V on the listed columns of node k, V its running sum."""
    ...


PASS = """
    if (parent < 0 || x.slot.data[parent] == x.slot.data[k]) return;
    const double* from = six_rows(V, i, x.slot.data[k], x.width);
    double* to = six_rows(V, i, x.slot.data[parent], x.width);
    for_blocks(x_start, x_range, k, [&](int j) {
        for (int r = 0; r < 6; ++r)
            add(to + r * x.width + j, load(from + r * x.width + j));
    });
"""


@wp.func_native(PASS)
def pass_to_parent(
    x: Columns,
    x_start: wp.array(dtype=wp.int32),
    x_range: wp.array(dtype=wp.int32),
    parent: int,
    i: int,
    k: int,
    V: Matrix,
):
    """The running sum of the parent += that of k on the listed columns of k, unless it is the same."""
    ...


SYMMETRIC = """
    const double* a = row(A, i);
    const double* b = row(B, i);
    double* to = row(out, i);
    for (int row = 0; row < nv; ++row)
        for (int col = 0; col < nv; ++col)
            to[row * width + col] = a[row * width + col] + b[col * width + row];
"""


@wp.func_native(SYMMETRIC)
def add_transposed(nv: int, width: int, i: int, A: Matrix, B: Matrix, out: Matrix):
    """out = A + Bᵀ, all nv x width."""
    ...


ZERO_ROWS = """
    double* to = row(out, i);
    for (int n = 0; n < nv * width; ++n)
        to[n] = 0.0;
"""


@wp.func_native(ZERO_ROWS)
def clear_rows(nv: int, width: int, i: int, out: Matrix):
    """out = 0, nv x width."""
    ...


@wp.func
def column(x: Columns, S: Matrix, i: int, k: int, j: int) -> vec6:
    """Column j of the matrix of node k."""
    at = 6 * k * x.width + j
    w = x.width
    return vec6(S[i, at], S[i, at + w], S[i, at + 2 * w], S[i, at + 3 * w], S[i, at + 4 * w], S[i, at + 5 * w])


@wp.func
def put_column(x: Columns, i: int, k: int, j: int, y: vec6, S: Matrix):
    """Column j of the matrix of node k = y."""
    for r in range(6):
        S[i, (6 * k + r) * x.width + j] = y[r]


@wp.func
def add_column(x: Columns, i: int, k: int, j: int, y: vec6, S: Matrix):
    """Column j of the matrix of node k += y."""
    for r in range(6):
        at = (6 * k + r) * x.width + j
        S[i, at] = S[i, at] + y[r]
