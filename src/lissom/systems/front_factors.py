"""Fronts of blocks with loops: assembly, elimination of a block and of the loops that it closes, as native loops.

With δ the coordinates of a block, y the motion of the node that it hangs on, u the unknowns of the loops that are open
behind it, those that close here first, and c the wrench that it hands on, a front is

    B δ + C u + G y = f,   R δ + S u + Q y = g,   c = V δ + E u + Λ y + ĉ                                  (1)

B, G and V are those of newton_blocks. The rest stands in `work` as rows of [S Q; E Λ], Q and Λ in STATE columns, and Λ
without the part that newton_blocks has. Eliminating δ, and then loops, leaves a front of the open ones alone:

    S − R B⁻¹ C,  Q − R B⁻¹ G,  E − V B⁻¹ C                                                               (2)
    [S_oo Q_o; E_o Λ] − [S_oc; E_c] S_cc⁻¹ [S_co Q_c]                                                     (3)

A block that it hangs on sees y = Y_k δ + y and adds L_kᵀ c to its rows. Forces of loops are eliminated once all that
they move has been, so that S_cc is that of a system of its own, and regular where the loops are independent; rows are
swapped within it.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import vec3, vec6
from lissom.passes.block_tables import Blocks
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.front_tables import Fronts
from lissom.systems.block_elimination import Pivots

CLEAR = """
    const bool is_last = e == y.count;
    const int n = is_last ? 0 : y.size.data[e], tall = is_last ? 0 : y.width.data[e];
    const int rows = z.size.data[e], width = z.width.data[e];
    double *to = row(work, i), *c = row(C, i) + z.answer_start.data[e], *r = row(R, i) + z.rows_start.data[e];
    for (int m = 0; m < (rows + 6) * (width + 24); ++m)
        to[m] = 0.0;
    for (int m = 0; m < n * width; ++m)
        c[m] = 0.0;
    for (int m = 0; m < rows * tall; ++m)
        r[m] = 0.0;
"""


@wp.func_native(CLEAR)
def clear_front(y: Blocks, z: Fronts, i: int, e: int, work: Matrix, C: Matrix, R: Matrix):
    """The front of block e, C and R = 0."""
    ...


ADD_ROW = """
    const int tall = y.width.data[e], stride = z.width.data[e] + 24;
    const double* j0 = six_rows(J, i, k, x.width);
    double* to = row(R, i) + z.rows_start.data[e] + at * tall;
    double* own = row(work, i) + at * stride + z.width.data[e] + 6 * part;
    const double w[6] = {f.c[0] + r.c[1] * f.c[5] - r.c[2] * f.c[4], f.c[1] + r.c[2] * f.c[3] - r.c[0] * f.c[5],
                         f.c[2] + r.c[0] * f.c[4] - r.c[1] * f.c[3], f.c[3], f.c[4], f.c[5]};
    for (int c = 0; c < 6; ++c)
        own[c] += w[c];
    for (int j = 0; j < tall; j += 8) {
        block sum = load(to + j);
        for (int c = 0; c < 6; ++c)
            sum += load(j0 + c * x.width + j) * w[c];
        store(to + j, sum);
    }
"""


@wp.func_native(ADD_ROW)
def add_row(
    x: Columns, y: Blocks, z: Fronts, i: int, e: int, k: int, at: int, part: int, r: vec3, f: vec6, J: Matrix,
    work: Matrix, R: Matrix,
):  # fmt: skip
    """Add to row `at` of the front of block e what it answers to one part of the motion of node k, which is f from a
    point at r."""
    ...


ADD_COLUMN = """
    const int n = y.size.data[e], width = z.width.data[e], stride = width + 24;
    const double* rows = six_rows(L, i, k, x.width);
    const double w[6] = {f.c[0] + r.c[1] * f.c[5] - r.c[2] * f.c[4], f.c[1] + r.c[2] * f.c[3] - r.c[0] * f.c[5],
                         f.c[2] + r.c[0] * f.c[4] - r.c[1] * f.c[3], f.c[3], f.c[4], f.c[5]};
    double* to = row(C, i) + z.answer_start.data[e] + at;
    double* own = row(work, i) + z.size.data[e] * stride + at;
    for (int c = 0; c < 6; ++c)
        own[c * stride] += w[c];
    for (int j = 0; j < n; ++j) {
        double sum = 0.0;
        for (int c = 0; c < 6; ++c)
            sum += rows[c * x.width + j] * w[c];
        to[j * width] += sum;
    }
"""


@wp.func_native(ADD_COLUMN)
def add_column(
    x: Columns, y: Blocks, z: Fronts, i: int, e: int, k: int, at: int, r: vec3, f: vec6, L: Matrix, work: Matrix,
    C: Matrix,
):  # fmt: skip
    """Add to unknown `at` of the front of block e the wrench f about a point at r, which it puts on node k."""
    ...


MERGE = """
    const int open = z.size.data[child] - z.closed.data[child];
    const int from_stride = (open + 7) / 8 * 8 + 24, stride = z.width.data[e] + 24;
    const double* from = row(front, i) + z.front_start.data[child];
    const int* up = z.up.data + z.up_start.data[child];
    for (int a = 0; a < open; ++a) {
        double* to = row(work, i) + up[a] * stride;
        for (int b = 0; b < open; ++b)
            to[up[b]] += from[a * from_stride + b];
    }
"""


@wp.func_native(MERGE)
def merge_front(z: Fronts, i: int, e: int, child: int, front: Matrix, work: Matrix):
    """S of the front of block e += S of that of a child."""
    ...


FRONT_ROW = """
    const int open = z.size.data[e] - z.closed.data[e], width = (open + 7) / 8 * 8;
    const double* from = row(front, i) + z.front_start.data[e] + at * (width + 24) + width + 6 * part;
    wp::vec_t<6, double> out;
    for (int c = 0; c < 6; ++c)
        out.c[c] = from[c];
    return out;
"""


@wp.func_native(FRONT_ROW)
def front_row(z: Fronts, i: int, e: int, at: int, part: int, front: Matrix) -> vec6:
    """One part of row `at` of Q of a front that waits, or of Λ behind its open unknowns."""
    ...


FRONT_COLUMN = """
    const int open = z.size.data[e] - z.closed.data[e], stride = (open + 7) / 8 * 8 + 24;
    const double* from = row(front, i) + z.front_start.data[e] + open * stride + at;
    wp::vec_t<6, double> out;
    for (int c = 0; c < 6; ++c)
        out.c[c] = from[c * stride];
    return out;
"""


@wp.func_native(FRONT_COLUMN)
def front_column(z: Fronts, i: int, e: int, at: int, front: Matrix) -> vec6:
    """Column `at` of E of a front that waits."""
    ...


REDUCE = """
    const int n = y.size.data[e], tall = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    const int rows = z.size.data[e], width = z.width.data[e], stride = width + 24;
    const double* square = row(B, i) + y.square_start.data[e];
    const double* coupled = row(answer, i) + 24 * first;
    const double* wrench = row(V, i) + 6 * at;
    const int* swap = row(pivots, i) + at;
    double* c = row(C, i) + z.answer_start.data[e];
    double* r = row(R, i) + z.rows_start.data[e];
    for (int k = 0; k < n; ++k)
        if (y.held.data[first + k]) {
            for (int j = 0; j < width; j += 8)
                store(c + k * width + j, block{});
            for (int a = 0; a < rows; ++a)
                r[a * tall + k] = 0.0;
        }
    for (int k = 0; k < n; ++k)
        if (swap[k] != k)
            for (int j = 0; j < width; j += 8) {
                const block kept = load(c + k * width + j);
                store(c + k * width + j, load(c + swap[k] * width + j));
                store(c + swap[k] * width + j, kept);
            }
    for (int j = 0; j < width; j += 8) {
        for (int a = 1; a < n; ++a) {
            block sum = load(c + a * width + j);
            for (int k = 0; k < a; ++k)
                sum += load(c + k * width + j) * -square[a * tall + k];
            store(c + a * width + j, sum);
        }
        for (int a = n - 1; a >= 0; --a) {
            block sum = load(c + a * width + j);
            for (int k = a + 1; k < n; ++k)
                sum += load(c + k * width + j) * -square[a * tall + k];
            store(c + a * width + j, sum * (1.0 / square[a * tall + a]));
        }
    }
    double* sizes = row(gross, i);
    for (int a = 0; a < rows; ++a)
        for (int k = 0; k < n; ++k)
            sizes[z.who.data[z.who_start.data[e] + a]] += fabs(r[a * tall + k] * c[k * width + a]);
    for (int a = 0; a < rows + 6; ++a) {
        const double* factors = a < rows ? r + a * tall : wrench + (a - rows) * tall;
        double* to = row(work, i) + a * stride;
        for (int j = 0; j < width; j += 8) {
            block sum = load(to + j);
            for (int k = 0; k < n; ++k)
                sum += load(c + k * width + j) * -factors[k];
            store(to + j, sum);
        }
        for (int j = 0; j < 24 && a < rows; j += 8) {
            block sum = load(to + width + j);
            for (int k = 0; k < n; ++k)
                sum += load(coupled + 24 * k + j) * -factors[k];
            store(to + width + j, sum);
        }
    }
"""


@wp.func_native(REDUCE)
def reduce_front(
    y: Blocks, z: Fronts, i: int, e: int, B: Matrix, pivots: Pivots, answer: Matrix, V: Matrix, C: Matrix, R: Matrix,
    work: Matrix, gross: Matrix,
):  # fmt: skip
    """(2) for block e, C becoming B⁻¹ C; gross gets the sizes of what is taken from the diagonal of S."""
    ...


CLOSE = """
    const int rows = z.size.data[e], closed = z.closed.data[e], stride = z.width.data[e] + 24, total = rows + 6;
    const int* who = z.who.data + z.who_start.data[e];
    double* a = row(work, i);
    int* to = row(swap, i) + z.who_start.data[e];
    bool is_doubtful = false;
    for (int k = 0; k < closed; ++k)
        a[k * stride + k] += row(own, i)[who[k]];
    for (int first = 0; first < closed; first += 8) {
        const int stop = first + 8 < closed ? first + 8 : closed;
        for (int k = first; k < stop; ++k) {
            int best = k;
            for (int r = k + 1; r < closed; ++r)
                if (fabs(a[r * stride + k]) > fabs(a[best * stride + k]))
                    best = r;
            const double size = fabs(a[best * stride + k]);
            to[k] = best;
            if (!(size > 0.0) || !(size < 1e300))
                return -1;
            if (row(own, i)[who[k]] == 0.0 && size < 1e-8 * row(gross, i)[who[k]])
                is_doubtful = true;
            if (best != k)
                for (int j = 0; j < stride; j += 8) {
                    const block kept = load(a + k * stride + j);
                    store(a + k * stride + j, load(a + best * stride + j));
                    store(a + best * stride + j, kept);
                }
            const double* top = a + k * stride;
            const double inverse = 1.0 / top[k];
            for (int r = k + 1; r < total; ++r) {
                double* here = a + r * stride;
                const double factor = here[k] *= inverse;
                for (int j = k + 1; j < stop; ++j)
                    here[j] -= factor * top[j];
            }
        }
        const int after = (stop + 7) / 8 * 8;
        for (int r = first + 1; r < total; ++r) {
            double* here = a + r * stride;
            const int most = r < stop ? r : stop;
            for (int j = stop; j < after && j < stride; ++j)
                for (int k = first; k < most; ++k)
                    here[j] -= here[k] * a[k * stride + j];
            for (int j = after; j < stride; j += 8) {
                block sum = load(here + j);
                for (int k = first; k < most; ++k)
                    sum += load(a + k * stride + j) * -here[k];
                store(here + j, sum);
            }
        }
    }
    return is_doubtful ? 1 : 0;
"""


@wp.func_native(CLOSE)
def close_front(
    z: Fronts, i: int, e: int, own: Matrix, gross: Matrix, swap: Pivots, work: Matrix
) -> int:  # fmt: skip
    """(3) for block e, `own` being added to the diagonal of S_cc, and its factors. Returns 0, −1 where a pivot is zero
    or not finite, or 1 where one is so small beside what it is the difference of that rounding may have made it."""
    ...


STORE = """
    const int rows = z.size.data[e], closed = z.closed.data[e], width = z.width.data[e], stride = width + 24;
    const int open = rows - closed, narrow = (open + 7) / 8 * 8, few = (closed + 7) / 8 * 8;
    const double* from = row(work, i);
    double* factors = row(kept, i) + z.kept_start.data[e];
    double* to = row(front, i) + z.front_start.data[e];
    for (int m = 0; m < closed * stride; ++m)
        factors[m] = from[m];
    factors += closed * stride;
    for (int a = 0; a < open + 6; ++a) {
        const double* here = from + (closed + a) * stride;
        for (int j = 0; j < closed; ++j)
            factors[a * few + j] = here[j];
        double* out = to + a * (narrow + 24);
        for (int j = 0; j < narrow; ++j)
            out[j] = j < open ? here[closed + j] : 0.0;
        for (int j = 0; j < 24; ++j)
            out[narrow + j] = here[width + j];
    }
"""


@wp.func_native(STORE)
def store_front(z: Fronts, i: int, e: int, work: Matrix, kept: Matrix, front: Matrix):
    """Keep the factors of (3), and let the front of the open loops wait for the block below."""
    ...
