"""Elimination of the blocks of newton_blocks, whose equations these are, as native loops inside kernels.

Matrices by block start at `square_start` where they are square, at six numbers for each row of `row_start` where they
have as many columns as the block has coordinates, and where they have as many rows at 24 numbers for each coordinate
of the blocks before, 18 of which serve.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import mat6, vec6
from lissom.passes.block_tables import Blocks
from lissom.passes.column_tables import Columns, Matrix

Pivots = wp.array2d(dtype=wp.int32)

FROM = """
    wp::array_t<double> out = S;
    out.data = (double*)S.data - 6 * size_t(first) * size_t(width);
    return out;
"""


@wp.func_native(FROM)
def of_nodes_from(first: int, width: int, S: Matrix) -> Matrix:
    """The columns of nodes from `first` on, as an array that is asked by the number of the node."""
    ...


CLEAR = """
    double* to = six_rows(S, i, k, width);
    for (int j = 0; j < 6 * width; ++j)
        to[j] = 0.0;
"""


@wp.func_native(CLEAR)
def clear_columns(width: int, i: int, k: int, S: Matrix):
    """S_k = 0."""
    ...


CLEAR_ROW = """
    double* to = row(X, i);
    for (int n = 0; n < X.shape[1]; ++n)
        to[n] = 0.0;
"""


@wp.func_native(CLEAR_ROW)
def clear_row(i: int, X: Matrix):
    """X = 0."""
    ...


HANG = """
    double* to = row(hanging, i) + 36 * place;
    for (int n = 0; n < 36; ++n)
        to[n] += (&X.data[0][0])[n];
"""


@wp.func_native(HANG)
def hang(i: int, place: int, X: mat6, hanging: Matrix):
    """Add to the 6x6 matrix at a place."""
    ...


WITH = """
    const double* from = row(hanging, i) + 36 * place;
    wp::mat_t<6, 6, double> out = X;
    for (int n = 0; n < 36; ++n)
        (&out.data[0][0])[n] += from[n];
    return out;
"""


@wp.func_native(WITH)
def with_hanging(i: int, place: int, X: mat6, hanging: Matrix) -> mat6:
    """X + the 6x6 matrix at a place."""
    ...


KEEP = """
    const double* from = six_rows(J, i, k, x.width);
    double* to = six_rows(out, i, place, x.width);
    for (int j = 0; j < 6 * x.width; ++j)
        to[j] = from[j];
"""


@wp.func_native(KEEP)
def keep_columns(x: Columns, i: int, k: int, place: int, J: Matrix, out: Matrix):
    """The columns J_k at a place among those that are kept."""
    ...


TAKE = """
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    double* to = row(B, i) + y.square_start.data[e];
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < width; ++j)
            to[k * width + j] = j < n ? row(K, i)[(first + k) * band + first + j] : 0.0;
    for (int m = 0; m < 24 * n; ++m)
        row(G, i)[24 * first + m] = 0.0;
    for (int m = 0; m < 6 * width; ++m)
        row(V, i)[6 * at + m] = 0.0;
"""


@wp.func_native(TAKE)
def take_band(y: Blocks, band: int, i: int, e: int, K: Matrix, B: Matrix, G: Matrix, V: Matrix):
    """B = local + K of block e, with rows of `band`; G = V = 0."""
    ...


GATHER = """
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e];
    const double *x0 = six_rows(J, i, k, x.width), *w0 = six_rows(J_R, i, k, x.width);
    const double *z0 = six_rows(J_P, i, k, x.width), *s0 = six_rows(S, i, k, x.width);
    const double *rows = six_rows(L, i, k, x.width), *below = six_rows(L, i, before < 0 ? 0 : before, x.width);
    double* square = row(B, i) + y.square_start.data[e];
    double* coupling = row(G, i) + 24 * y.v_start.data[e];
    double* wrench = row(V, i) + 6 * at;
    for (int j = 0; j < width; j += 8) {
        block f[6] = {}, g[6] = {};
        for (int c = 0; c < 6; ++c) {
            const block xc = load(x0 + c * x.width + j), wc = load(w0 + c * x.width + j);
            const block zc = load(z0 + c * x.width + j), sc = load(s0 + c * x.width + j);
            for (int r = 0; r < 6; ++r) {
                f[r] += xc * H.data[r][c];
                f[r] += wc * N.data[r][c];
                f[r] += zc * M.data[r][c];
                g[r] += sc * bar.data[r][c];
            }
        }
        for (int a = 0; a < n; ++a) {
            block sum = load(square + a * width + j);
            for (int r = 0; r < 6; ++r) {
                sum += f[r] * rows[r * x.width + a];
                if (before >= 0)
                    sum += g[r] * below[r * x.width + a];
            }
            store(square + a * width + j, sum);
        }
        for (int r = 0; r < 6; ++r) {
            f[r] += g[r];
            add(wrench + r * width + j, f[r]);
        }
    }
    for (int a = 0; a < n; ++a)
        for (int r = 0; r < 6; ++r) {
            const double size = rows[r * x.width + a];
            for (int c = 0; c < 6; ++c) {
                coupling[24 * a + c] += size * H.data[r][c];
                coupling[24 * a + 6 + c] += size * N.data[r][c];
                coupling[24 * a + 12 + c] += size * M.data[r][c];
            }
        }
"""


@wp.func_native(GATHER)
def gather_node(
    x: Columns, y: Blocks, i: int, e: int, k: int, before: int, H: mat6, N: mat6, M: mat6, bar: mat6, S: Matrix,
    J: Matrix, J_R: Matrix, J_P: Matrix, L: Matrix, B: Matrix, G: Matrix, V: Matrix,
):  # fmt: skip
    """What node k adds to B of (3), G of (2) and V of (4); `before` is the node before it in its block, or negative."""
    ...


FACTOR = """
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    double* square = row(B, i) + y.square_start.data[e];
    double* wrench = row(V, i) + 6 * at;
    double* out = row(G, i) + 24 * first;
    int* swap = row(pivots, i) + at;
    for (int k = 0; k < n; ++k)
        if (y.held.data[first + k]) {
            for (int j = 0; j < n; ++j)
                square[k * width + j] = square[j * width + k] = 0.0;
            square[k * width + k] = 1.0;
            for (int c = 0; c < 24; ++c)
                out[24 * k + c] = 0.0;
            for (int r = 0; r < 6; ++r)
                wrench[r * width + k] = 0.0;
        }
    for (int k = 0; k < n; ++k) {
        int best = k;
        for (int row = k + 1; row < n; ++row)
            if (fabs(square[row * width + k]) > fabs(square[best * width + k]))
                best = row;
        const double size = fabs(square[best * width + k]);
        swap[k] = best;
        if (!(size > 0.0) || !(size < 1e300))
            return first + k + 1;
        if (best != k) {
            for (int j = 0; j < n; ++j) {
                const double kept = square[k * width + j];
                square[k * width + j] = square[best * width + j];
                square[best * width + j] = kept;
            }
            for (int c = 0; c < 24; ++c) {
                const double kept = out[24 * k + c];
                out[24 * k + c] = out[24 * best + c];
                out[24 * best + c] = kept;
            }
        }
        const double* top = square + k * width;
        const double inverse = 1.0 / top[k];
        for (int row = k + 1; row < n; ++row) {
            double* to = square + row * width;
            const double factor = to[k] * inverse;
            to[k] = factor;
            int j = k + 1;
            for (; j < n && j % 8; ++j)
                to[j] -= factor * top[j];
            for (; j < n; j += 8)
                add(to + j, load(top + j) * -factor);
            for (int c = 0; c < 24; c += 8)
                add(out + 24 * row + c, load(out + 24 * k + c) * -factor);
        }
    }
    for (int k = n - 1; k >= 0; --k) {
        const double* top = square + k * width;
        const double inverse = 1.0 / top[k];
        for (int c = 0; c < 24; c += 8) {
            block sum = load(out + 24 * k + c);
            for (int j = k + 1; j < n; ++j)
                sum += load(out + 24 * j + c) * -top[j];
            store(out + 24 * k + c, sum * inverse);
        }
    }
    return 0;
"""


@wp.func_native(FACTOR)
def factor_block(
    y: Blocks, i: int, e: int, B: Matrix, pivots: Pivots, G: Matrix, V: Matrix
) -> int:  # fmt: skip
    """Factors of B with swapped rows in its place, rows and columns of prescribed coordinates as in the identity, and
    B⁻¹ G in the place of G. Returns 0, or 1 + the coordinate of a pivot that is zero or not finite."""
    ...


REDUCE = """
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e];
    const double* wrench = row(V, i) + 6 * at;
    const double* solved = row(answer, i) + 24 * y.v_start.data[e] + 6 * part;
    wp::mat_t<6, 6, double> out = sum;
    for (int k = 0; k < n; ++k)
        for (int r = 0; r < 6; ++r)
            for (int c = 0; c < 6; ++c)
                out.data[r][c] -= wrench[r * width + k] * solved[24 * k + c];
    return out;
"""


@wp.func_native(REDUCE)
def reduced(y: Blocks, i: int, e: int, part: int, sum: mat6, answer: Matrix, V: Matrix) -> mat6:
    """The part of Λ of (4) that answers to x, w or z (0, 1, 2), from that of Σ Ê."""
    ...


INWARD = """
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    const double* square = row(B, i) + y.square_start.data[e];
    const double* wrench = row(V, i) + 6 * at;
    const int* swap = row(pivots, i) + at;
    double* z = row(f, i) + first;
    for (int k = 0; k < n; ++k)
        if (y.held.data[first + k])
            z[k] = 0.0;
    for (int k = 0; k < n; ++k) {
        const double kept = z[k];
        z[k] = z[swap[k]];
        z[swap[k]] = kept;
    }
    for (int k = 0; k < n; ++k)
        for (int row = k + 1; row < n; ++row)
            z[row] -= square[row * width + k] * z[k];
    for (int k = n - 1; k >= 0; --k) {
        double sum = z[k];
        for (int j = k + 1; j < n; ++j)
            sum -= square[k * width + j] * z[j];
        z[k] = sum / square[k * width + k];
    }
    wp::vec_t<6, double> out = below;
    for (int r = 0; r < 6; ++r)
        for (int k = 0; k < n; ++k)
            out.c[r] += wrench[r * width + k] * z[k];
    return out;
"""


@wp.func_native(INWARD)
def solve_inward(
    y: Blocks, i: int, e: int, below: vec6, B: Matrix, pivots: Pivots, V: Matrix, f: Matrix
) -> vec6:  # fmt: skip
    """c of (4) for block e from Σ ĉ; f − Σ Lᵀ ĉ on its coordinates becomes B⁻¹ times that."""
    ...


HAND_ON = """
    const double* rows = six_rows(L, i, k, x.width);
    double* to = row(f, i) + y.v_start.data[e];
    for (int j = 0; j < y.size.data[e]; ++j)
        for (int r = 0; r < 6; ++r)
            to[j] -= rows[r * x.width + j] * c.c[r];
"""


@wp.func_native(HAND_ON)
def hand_on(x: Columns, y: Blocks, i: int, e: int, k: int, c: vec6, L: Matrix, f: Matrix):
    """f −= L_kᵀ c on the coordinates of block e."""
    ...


MOVED = """
    const double* columns = six_rows(J, i, k, x.width);
    const double* a = row(f, i) + y.v_start.data[e];
    wp::vec_t<6, double> out = start;
    for (int r = 0; r < 6; ++r)
        for (int j = 0; j < y.size.data[e]; ++j)
            out.c[r] += columns[r * x.width + j] * a[j];
    return out;
"""


@wp.func_native(MOVED)
def moved(x: Columns, y: Blocks, i: int, e: int, k: int, start: vec6, J: Matrix, f: Matrix) -> vec6:
    """One of the three parts of (1) at node k of block e."""
    ...


OUTWARD = """
    const double* solved = row(answer, i) + 24 * y.v_start.data[e];
    double* a = row(f, i) + y.v_start.data[e];
    for (int k = 0; k < y.size.data[e]; ++k)
        for (int c = 0; c < 6; ++c) {
            a[k] -= solved[24 * k + c] * x.c[c];
            a[k] -= solved[24 * k + 6 + c] * w.c[c];
            a[k] -= solved[24 * k + 12 + c] * z.c[c];
        }
"""


@wp.func_native(OUTWARD)
def solve_outward(y: Blocks, i: int, e: int, x: vec6, w: vec6, z: vec6, answer: Matrix, f: Matrix):
    """δ of (2) from what solve_inward left in f."""
    ...
