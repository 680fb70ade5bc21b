"""Native loops over columns for the derivatives: path sums, products with 6x6 matrices, local blocks."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.dynamics.columns import Matrix, column_width
from lissom.lie.types import mat6
from lissom.model.model import Model
from lissom.model.tables import vec6i, vec7i


def path_ranges(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Column stretches of the path from the base to each dynamic node, its own included."""
    return _ranges(_path_blocks(model))


def reach_ranges(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Column stretches that the running sum of each dynamic node may hold: the paths of all nodes of its subtree, and
    of the nodes that straight tendon pieces tie to them."""
    path = _path_blocks(model)
    reach = path.copy()
    for a, b in model.segment_node:
        for one, two in ((a, b), (b, a)):
            if one >= 0 and two >= 0:
                reach[one] |= path[two]
    for k in range(model.n_dynamic - 1, -1, -1):
        if model.node_parent[k] >= 0:
            reach[model.node_parent[k]] |= reach[k]
    return _ranges(reach)


def _path_blocks(model: Model) -> np.ndarray:
    """Whether each block of eight columns holds a column of the path to each dynamic node."""
    blocks = np.zeros((model.n_dynamic, column_width(model) // 8), dtype=bool)
    for k in range(model.n_dynamic):
        first, stop = int(model.node_v_start[k]), int(model.node_v_stop[k])
        if model.node_parent[k] >= 0:
            blocks[k] = blocks[model.node_parent[k]]
        if stop > first:
            blocks[k, first // 8 : (stop + 7) // 8] = True
    return blocks


def _ranges(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    edges = [8 * np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]]))) for row in blocks]
    start = np.cumsum([0] + [len(e) for e in edges])
    return start.astype(np.int32), np.concatenate([np.zeros(0, int), *edges]).astype(np.int32)


EXTEND = """
    const double* own = (const double*)((const char*)S.data + size_t(i) * S.strides[0]) + 6 * k * width;
    double* base = (double*)((char*)J.data + size_t(i) * J.strides[0]);
    double* to = base + 6 * k * width;
    for (int e = x_start.data[k]; e < x_start.data[k + 1]; e += 2)
        for (int r = 0; r < 6; ++r)
            for (int j = x_range.data[e]; j < x_range.data[e + 1]; j += 8)
                for (int n = 0; n < 8; ++n)
                    to[r * width + j + n] = parent < 0 ? 0.0 : base[(6 * parent + r) * width + j + n];
    if (stop > first)
        for (int r = 0; r < 6; ++r)
            for (int j = first / 8 * 8; j < stop; j += 8)
                for (int n = 0; n < 8; ++n)
                    to[r * width + j + n] += own[r * width + j + n];
"""


@wp.func_native(EXTEND)
def extend_path(
    x_start: wp.array(dtype=wp.int32),
    x_range: wp.array(dtype=wp.int32),
    first: int,
    stop: int,
    parent: int,
    i: int,
    k: int,
    width: int,
    S: Matrix,
    J: Matrix,
):
    """J_k = J_parent + S_k on the columns of the path to k."""
    ...


NEWTON = """
    const size_t row = size_t(i);
    const int at = 6 * k * width;
    const double* j0 = (const double*)((const char*)J.data + row * J.strides[0]) + at;
    const double* r0 = (const double*)((const char*)J_R.data + row * J_R.strides[0]) + at;
    const double* q0 = (const double*)((const char*)J_Q.data + row * J_Q.strides[0]) + at;
    const double* e0 = (const double*)((const char*)J_E.data + row * J_E.strides[0]) + at;
    double* wa = (double*)((char*)W_a.data + row * W_a.strides[0]) + at;
    double* wv = (double*)((char*)W_v.data + row * W_v.strides[0]) + at;
    double* wq = (double*)((char*)W_q.data + row * W_q.strides[0]) + at;
    for (int e = x_start.data[k]; e < x_start.data[k + 1]; e += 2)
        for (int j = x_range.data[e]; j < x_range.data[e + 1]; j += 8)
            for (int r = 0; r < 6; ++r) {
                double a[8], v[8], q[8];
                for (int n = 0; n < 8; ++n) {
                    a[n] = wa[r * width + j + n];
                    v[n] = wv[r * width + j + n];
                    q[n] = wq[r * width + j + n];
                }
                for (int c = 0; c < 6; ++c) {
                    const double m = M.data[r][c], s = N.data[r][c], h = H.data[r][c];
                    const int at_c = c * width + j;
                    for (int n = 0; n < 8; ++n) {
                        a[n] += m * j0[at_c + n];
                        v[n] += m * e0[at_c + n] + s * j0[at_c + n];
                        q[n] += m * q0[at_c + n] + s * r0[at_c + n] + h * j0[at_c + n];
                    }
                }
                for (int n = 0; n < 8; ++n) {
                    wa[r * width + j + n] = a[n];
                    wv[r * width + j + n] = v[n];
                    wq[r * width + j + n] = q[n];
                }
            }
"""


@wp.func_native(NEWTON)
def add_newton_products(
    x_start: wp.array(dtype=wp.int32),
    x_range: wp.array(dtype=wp.int32),
    i: int,
    k: int,
    width: int,
    M: mat6,
    N: mat6,
    H: mat6,
    J: Matrix,
    J_R: Matrix,
    J_Q: Matrix,
    J_E: Matrix,
    W_a: Matrix,
    W_v: Matrix,
    W_q: Matrix,
):
    """W_a += M J, W_v += M J_E + N J, W_q += M J_Q + N J_R + H J of node k, on the columns of its path."""
    ...


CROSS = """
    const double* in = (const double*)((const char*)J.data + size_t(i) * J.strides[0]) + 6 * from_ * width;
    double* out = (double*)((char*)W.data + size_t(i) * W.strides[0]) + 6 * to * width;
    for (int e = x_start.data[from_]; e < x_start.data[from_ + 1]; e += 2)
        for (int j = x_range.data[e]; j < x_range.data[e + 1]; ++j)
            for (int r = 0; r < 6; ++r)
                for (int c = 0; c < 6; ++c)
                    out[r * width + j] += M.data[r][c] * in[c * width + j];
"""


@wp.func_native(CROSS)
def add_cross_product(
    x_start: wp.array(dtype=wp.int32),
    x_range: wp.array(dtype=wp.int32),
    i: int,
    to: int,
    from_: int,
    width: int,
    M: mat6,
    J: Matrix,
    W: Matrix,
):
    """W of node `to` += M J of node `from_`, on the columns of the latter's path."""
    ...


POINT = """
    double* to = (double*)((char*)out.data + size_t(i) * out.strides[0]);
    for (int a = 0; a < 6; ++a)
        for (int e = run_start[a], row = run_v[a]; e < run_start[a + 1]; ++e, ++row)
            for (int c = 0; c < 6; ++c) {
                const double x = phi.data[e] * H.data[a][c];
                double* at = to + row * width + run_v[c];
                const int start = run_start[c], count = run_start[c + 1] - start;
                for (int f = 0; f < count; ++f)
                    at[f] += x * phi.data[start + f];
            }
"""


@wp.func_native(POINT)
def add_point_block(
    phi: wp.array(dtype=wp.float64), run_start: vec7i, run_v: vec6i, i: int, width: int, H: mat6, out: Matrix
):
    """out += Φᵀ H Φ at one strain point."""
    ...


LOCAL = """
    double* to = (double*)((char*)out.data + size_t(i) * out.strides[0]);
    for (int a = 0; a < 6; ++a)
        for (int e = run_start[a], row = run_v[a]; e < run_start[a + 1]; ++e, ++row) {
            const double p1 = phi1.data[e], p2 = phi2.data[e];
            for (int c = 0; c < 6; ++c) {
                const double x1 = p1 * H11.data[a][c] + p2 * H21.data[a][c];
                const double x2 = p1 * H12.data[a][c] + p2 * H22.data[a][c];
                double* at = to + row * width + run_v[c];
                const int start = run_start[c], count = run_start[c + 1] - start;
                for (int f = 0; f < count; ++f)
                    at[f] += x1 * phi1.data[start + f] + x2 * phi2.data[start + f];
            }
        }
"""


@wp.func_native(LOCAL)
def add_local_block(
    phi1: wp.array(dtype=wp.float64),
    phi2: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    width: int,
    H11: mat6,
    H12: mat6,
    H21: mat6,
    H22: mat6,
    out: Matrix,
):
    """out += Σ Φ_aᵀ H_ab Φ_b on a node's own coordinates, a and b its two strain points."""
    ...
