"""Solving by the factors of front_factors, whose equations these are, as native loops inside kernels."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import vec6
from lissom.passes.block_tables import Blocks
from lissom.passes.column_tables import Matrix
from lissom.passes.front_tables import Fronts
from lissom.systems.block_elimination import Pivots

INWARD = """
    const bool is_last = e == y.count;
    const int n = is_last ? 0 : y.size.data[e], tall = is_last ? 0 : y.width.data[e];
    const int rows = z.size.data[e], closed = z.closed.data[e], stride = z.width.data[e] + 24;
    const int few = (closed + 7) / 8 * 8;
    const double* moved = is_last ? nullptr : row(f, i) + y.v_start.data[e];
    const double* r = row(R, i) + z.rows_start.data[e];
    const double* factors = row(kept, i) + z.kept_start.data[e];
    const double* low = factors + closed * stride;
    const int* who = z.who.data + z.who_start.data[e];
    const int* to = row(swap, i) + z.who_start.data[e];
    double* known = row(local, i) + z.who_start.data[e];
    double* right = row(g, i);
    for (int a = 0; a < rows; ++a) {
        double sum = right[who[a]];
        for (int k = 0; k < n; ++k)
            sum -= r[a * tall + k] * moved[k];
        known[a] = sum;
    }
    for (int k = 0; k < closed; ++k) {
        const double other = known[to[k]];
        known[to[k]] = known[k];
        known[k] = other;
    }
    for (int k = 1; k < closed; ++k)
        for (int j = 0; j < k; ++j)
            known[k] -= factors[k * stride + j] * known[j];
    wp::vec_t<6, double> out = c;
    for (int a = 0; a < rows - closed + 6; ++a) {
        double sum = 0.0;
        for (int k = 0; k < closed; ++k)
            sum += low[a * few + k] * known[k];
        if (a < rows - closed)
            right[who[closed + a]] = known[closed + a] - sum;
        else
            out.c[a - rows + closed] += sum;
    }
    return out;
"""


@wp.func_native(INWARD)
def front_inward(
    y: Blocks, z: Fronts, i: int, e: int, c: vec6, f: Matrix, R: Matrix, kept: Matrix, swap: Pivots, g: Matrix,
    local: Matrix,
) -> vec6:  # fmt: skip
    """g of the loops open at block e with δ and the loops that close there eliminated, and c with these, from B⁻¹ f."""
    ...


OUTWARD = """
    const bool is_last = e == y.count;
    const int n = is_last ? 0 : y.size.data[e], rows = z.size.data[e], closed = z.closed.data[e];
    const int width = z.width.data[e], stride = width + 24;
    const double* factors = row(kept, i) + z.kept_start.data[e];
    const double* coupled = row(C, i) + z.answer_start.data[e];
    const int* who = z.who.data + z.who_start.data[e];
    double* found = row(local, i) + z.who_start.data[e];
    for (int k = closed; k < rows; ++k)
        found[k] = row(u, i)[who[k]];
    for (int k = closed - 1; k >= 0; --k) {
        const double* top = factors + k * stride;
        double sum = found[k];
        for (int j = k + 1; j < rows; ++j)
            sum -= top[j] * found[j];
        for (int c = 0; c < 6; ++c)
            sum -= top[width + c] * x.c[c] + top[width + 6 + c] * w.c[c] + top[width + 12 + c] * m.c[c];
        row(u, i)[who[k]] = found[k] = sum / top[k];
    }
    for (int k = 0; k < n; ++k) {
        double sum = 0.0;
        for (int j = 0; j < rows; ++j)
            sum += coupled[k * width + j] * found[j];
        row(f, i)[y.v_start.data[e] + k] -= sum;
    }
"""


@wp.func_native(OUTWARD)
def front_outward(
    y: Blocks, z: Fronts, i: int, e: int, x: vec6, w: vec6, m: vec6, C: Matrix, kept: Matrix, u: Matrix, local: Matrix,
    f: Matrix,
):  # fmt: skip
    """The unknowns of the loops that close at block e, which hangs on what moves by (x, w, m), and what all of its
    loops do to δ."""
    ...
