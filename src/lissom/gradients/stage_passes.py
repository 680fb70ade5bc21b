"""One stage of a step forwards and backwards, inside a kernel; the equations are those of recursion. K, A_q, D, M and
the units of rows are those of a window of steps, row `here`; T, E and W those of all steps."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.passes.linear_solve import LU_SOLVE

Rows = wp.array2d(dtype=wp.float64)
Integers = wp.array2d(dtype=wp.int32)

SOLVE_TRANSPOSED = """
    const double* a = row(A, i);
    const double* lower = row(L, i);
    const int* swap = row(pivots, i);
    double* y = row(x, at) + shift;
    for (int k = 0; k < n; ++k) {
        const double known = y[k] /= a[k * width + k];
        for (int j = k + 1; j < n; ++j)
            y[j] -= a[k * width + j] * known;
    }
    for (int k = n - 1; k >= 0; --k) {
        double even = y[k], odd = 0.0;
        int j = k + 1;
        for (; j + 1 < n; j += 2) {
            even += lower[k * width + j] * y[j];
            odd += lower[k * width + j + 1] * y[j + 1];
        }
        if (j < n)
            even += lower[k * width + j] * y[j];
        y[k] = even + odd;
    }
    for (int k = n - 1; k >= 0; --k) {
        const double kept = y[k];
        y[k] = y[swap[k]];
        y[swap[k]] = kept;
    }
"""


@wp.func_native(SOLVE_TRANSPOSED)
def lu_solve_transposed(n: int, width: int, i: int, A: Rows, L: Rows, pivots: Integers, at: int, shift: int, x: Rows):
    """Solve with the transpose of a matrix by the factors of lu_factor, in place from x[at, shift] on."""
    ...


SOLVE_AT = LU_SOLVE.replace("row(x, i)", "row(x, at)")


@wp.func_native(SOLVE_AT)
def lu_solve_at(n: int, width: int, i: int, A: Rows, L: Rows, pivots: Integers, at: int, x: Rows):
    """Solve by the factors of lu_factor for instance i, in place in row `at` of x."""
    ...


BEGIN_BACKWARD = """
    const int last = stages - 1, size = 4 + 3 * last;
    const double* p = weights.data + 3 * size * s;
    const double* to_w = p + size;
    const double* to_ahead = to_w + size;
    const int r = base + k * stages + s;
    double* end = row(state, own);
    double* start = row(work, own);
    double* all = start + 4 * nv;
    double* c = all + 3 * nv * s;
    const bool is_last = s == last;
    const double c1 = to_w[0] / p[0];
    if (is_last) {
        const double* seed = row(seeds, own) + k * (3 * nv + n - nv);
        for (int j = 0; j < 3 * nv; ++j)
            end[j] += seed[j];
        for (int j = 0; j < (4 + 3 * stages) * nv; ++j)
            start[j] = 0.0;
        for (int j = 0; j < nv; ++j) {
            c[j] = start[j] = end[j];
            c[nv + j] = end[nv + j];
            const double ahead = end[3 * nv + j];
            c[2 * nv + j] = end[2 * nv + j];
            for (int e = 1; e < 4; ++e)
                start[e * nv + j] += to_ahead[e] * ahead;
            for (int e = 0; e < 3 * s; ++e)
                all[e * nv + j] += to_ahead[4 + e] * ahead;
        }
    }
    for (int g = 0; g < groups; ++g) {
        const int at = group.data[2 * g], many = group.data[2 * g + 1];
        const double* turn = row(T, r) + 36 * g;
        const double* carry = row(E, r) + 36 * g;
        const double* bend = row(W, r) + 36 * g;
        if (is_last)
            for (int j = 0; j < many; ++j) {
                double by_move = 0.0, by_start = 0.0;
                for (int e = 0; e < many; ++e) {
                    by_move += turn[6 * e + j] * end[at + e];
                    by_start += carry[6 * e + j] * end[at + e];
                }
                c[at + j] = by_move;
                start[at + j] = by_start;
            }
        if (rates) {
            double v[6];
            for (int e = 0; e < many; ++e) {
                v[e] = (is_last ? end[nv + at + e] : 0.0) + c1 * c[2 * nv + at + e];
                c[nv + at + e] -= (is_last ? end[nv + at + e] : 0.0) + c1 * c[2 * nv + at + e];
            }
            for (int j = 0; j < many; ++j)
                for (int e = 0; e < many; ++e) {
                    c[nv + at + j] += turn[6 * e + j] * v[e];
                    c[at + j] += bend[6 * e + j] * v[e];
                }
        }
    }
    double* y = row(mu, own) + (k * stages + s) * n;
    for (int j = 0; j < nv; ++j)
        y[j] = c[2 * nv + j] + to_w[0] * c[nv + j] + p[0] * c[j] + (is_last ? to_ahead[0] * end[3 * nv + j] : 0.0);
    const double* asked = row(seeds, own) + k * (3 * nv + n - nv) + 3 * nv;
    for (int j = nv; j < n; ++j)
        y[j] = is_last ? asked[j - nv] : 0.0;
"""


@wp.func_native(BEGIN_BACKWARD)
def begin_backward(
    nv: int, n: int, stages: int, groups: int, rates: int, base: int, own: int, k: int, s: int, weights: Rows,
    group: Integers, T: Rows, E: Rows, W: Rows, seeds: Rows, state: Rows, work: Rows, mu: Rows,
):  # fmt: skip
    """The right side of Sᵀ μ = g in stage s of step k: derivatives by what the step leaves, with `seeds`, and by what
    the stages behind take from this one."""
    ...


END_BACKWARD = """
    const int last = stages - 1, size = 4 + 3 * last;
    const double* p = weights.data + 3 * size * s;
    const double* to_w = p + size;
    const int r = base + k * stages + s;
    double* start = row(work, own);
    double* all = start + 4 * nv;
    double* c = all + 3 * nv * s;
    double* z = all + 3 * nv * stages;
    double* y = row(mu, own) + (k * stages + s) * n;
    const double c1 = to_w[0] / p[0];
    for (int j = 0; j < 3 * width; ++j)
        z[j] = 0.0;
    for (int e = 0; e < n; ++e)
        y[e] *= row(units, here)[e];
    for (int e = 0; e < n; ++e) {
        const double* from = e < nv ? row(K, here) + size_t(e) * width : row(A_q, here) + size_t(e - nv) * width;
        const double by = e < nv ? y[e] : y[e] / p[0];
        for (int j = 0; j < width; j += 8)
            add(z + j, load(from + j) * by);
    }
    for (int e = 0; e < nv; ++e) {
        const double* from = row(D, here) + size_t(e) * width;
        for (int j = 0; j < width; j += 8)
            add(z + width + j, load(from + j) * y[e]);
    }
    if (rates && groups)
        for (int e = 0; e < nv; ++e) {
            const double* from = row(M, here) + size_t(e) * width;
            for (int j = 0; j < width; j += 8)
                add(z + 2 * width + j, load(from + j) * y[e]);
        }
    for (int g = 0; g < groups; ++g) {
        const int at = group.data[2 * g], many = group.data[2 * g + 1];
        const double* turn = row(T, r) + 36 * g;
        const double* carry = row(E, r) + 36 * g;
        const double* bend = row(W, r) + 36 * g;
        double by_move[6], by_start[6], by_rate[6];
        for (int j = 0; j < many; ++j) {
            by_move[j] = by_start[j] = 0.0;
            by_rate[j] = rates ? -c1 * z[2 * width + at + j] : z[width + at + j];
            for (int e = 0; e < many; ++e) {
                by_move[j] += turn[6 * e + j] * z[at + e];
                by_start[j] += carry[6 * e + j] * z[at + e];
                if (rates) {
                    const double v = z[width + at + e] + c1 * z[2 * width + at + e];
                    by_rate[j] += turn[6 * e + j] * v;
                    by_move[j] += bend[6 * e + j] * v;
                }
            }
        }
        for (int j = 0; j < many; ++j) {
            start[at + j] -= by_start[j];
            c[at + j] -= by_move[j];
            c[nv + at + j] -= by_rate[j];
            z[at + j] = z[width + at + j] = 0.0;
        }
    }
    for (int j = 0; j < nv; ++j) {
        start[j] -= z[j];
        c[j] -= z[j];
        c[nv + j] -= z[width + j];
        for (int e = 1; e < 4; ++e)
            start[e * nv + j] += p[e] * c[j] + to_w[e] * c[nv + j];
        for (int e = 0; e < 3 * s; ++e)
            all[e * nv + j] += p[4 + e] * c[j] + to_w[4 + e] * c[nv + j];
    }
    if (s == 0) {
        double* to = row(state, own);
        for (int j = 0; j < 4 * nv; ++j)
            to[j] = start[j];
    }
"""


@wp.func_native(END_BACKWARD)
def end_backward(
    nv: int, n: int, width: int, stages: int, groups: int, rates: int, base: int, here: int, own: int, k: int, s: int,
    weights: Rows, group: Integers, T: Rows, E: Rows, W: Rows, K: Rows, A_q: Rows, D: Rows, M: Rows, units: Rows,
    state: Rows, work: Rows, mu: Rows,
):  # fmt: skip
    """Give μ its units, and hand on −K̃ᵀ μ, −Dᵀ μ and −Mᵀ μ to the start of the step and to the stages before."""
    ...


# A change of the steps' coordinates, carried into the charts of their ends group by group: moved, and its rate v.
CARRIED_BY_GROUPS = """    for (int g = 0; g < groups; ++g) {
        const int at = group.data[2 * g], many = group.data[2 * g + 1];
        const double* turn = row(T, r) + 36 * g;
        const double* carry = row(E, r) + 36 * g;
        const double* bend = row(W, r) + 36 * g;
        for (int e = 0; e < many; ++e) {
            double moved = 0.0, v = 0.0;
            for (int j = 0; j < many; ++j) {
                moved += turn[6 * e + j] * c[at + j] + carry[6 * e + j] * start[at + j];
                v += turn[6 * e + j] * c[nv + at + j] + bend[6 * e + j] * c[at + j];
            }
"""
BEGIN_FORWARD = (
    """
    const int size = 4 + 3 * (stages - 1);
    const double* p = weights.data + 3 * size * s;
    const double* to_w = p + size;
    const int r = base + k * stages + s;
    const double* start = row(state, own);
    double* all = row(work, own) + 4 * nv;
    double* c = all + 3 * nv * s;
    double* z = all + 3 * nv * stages;
    const double* right = row(forcing, own) + (k * stages + s) * n;
    double* y = row(unknown, own);
    const double c1 = to_w[0] / p[0];
    for (int j = 0; j < 3 * width; ++j)
        z[j] = 0.0;
    for (int j = 0; j < nv; ++j) {
        double move = 0.0, rate = 0.0;
        for (int e = 1; e < 4; ++e) {
            move += p[e] * start[e * nv + j];
            rate += to_w[e] * start[e * nv + j];
        }
        for (int e = 0; e < 3 * s; ++e) {
            move += p[4 + e] * all[e * nv + j];
            rate += to_w[4 + e] * all[e * nv + j];
        }
        c[j] = move;
        c[nv + j] = rate;
        z[j] = start[j] + move;
        z[width + j] = rate;
    }
"""
    + CARRIED_BY_GROUPS
    + """            z[at + e] = moved;
            if (rates) {
                z[width + at + e] = v;
                z[2 * width + at + e] = c1 * (v - c[nv + at + e]);
            }
        }
    }
    for (int e = 0; e < n; ++e) {
        const double* by_q = e < nv ? row(K, here) + size_t(e) * width : row(A_q, here) + size_t(e - nv) * width;
        double moved = 0.0;
        for (int j = 0; j < nv; ++j)
            moved += by_q[j] * z[j];
        double sum = right[e] - (e < nv ? moved : moved / p[0]);
        if (e < nv) {
            const double* by_v = row(D, here) + size_t(e) * width;
            for (int j = 0; j < nv; ++j)
                sum -= by_v[j] * z[width + j];
            if (rates && groups) {
                const double* by_a = row(M, here) + size_t(e) * width;
                for (int j = 0; j < nv; ++j)
                    sum -= by_a[j] * z[2 * width + j];
            }
        }
        y[e] = sum * row(units, here)[e];
    }
"""
)


@wp.func_native(BEGIN_FORWARD)
def begin_forward(
    nv: int, n: int, width: int, stages: int, groups: int, rates: int, base: int, here: int, own: int, k: int, s: int,
    weights: Rows, group: Integers, T: Rows, E: Rows, W: Rows, K: Rows, A_q: Rows, D: Rows, M: Rows, units: Rows,
    forcing: Rows, state: Rows, work: Rows, unknown: Rows,
):  # fmt: skip
    """The right side of (2) in stage s of step k."""
    ...


END_FORWARD = (
    """
    const int last = stages - 1, size = 4 + 3 * last;
    const double* p = weights.data + 3 * size * s;
    const double* to_w = p + size;
    const double* to_ahead = to_w + size;
    const int r = base + k * stages + s;
    double* start = row(state, own);
    double* all = row(work, own) + 4 * nv;
    double* c = all + 3 * nv * s;
    const double* y = row(unknown, own);
    const double c1 = to_w[0] / p[0];
    double* out = row(result, own) + k * (4 * nv + n - nv);
    for (int j = 0; j < nv; ++j) {
        c[j] += p[0] * y[j];
        c[nv + j] += to_w[0] * y[j];
        c[2 * nv + j] = y[j];
    }
    if (s == last)
        for (int j = 0; j < nv; ++j) {
            double ahead = to_ahead[0] * y[j];
            for (int e = 1; e < 4; ++e)
                ahead += to_ahead[e] * start[e * nv + j];
            for (int e = 0; e < 3 * s; ++e)
                ahead += to_ahead[4 + e] * all[e * nv + j];
            out[j] = start[j] + c[j];
            out[nv + j] = c[nv + j];
            out[3 * nv + j] = ahead;
        }
"""
    + CARRIED_BY_GROUPS
    + """            if (s == last)
                out[at + e] = moved;
            if (rates) {
                c[2 * nv + at + e] += c1 * (v - c[nv + at + e]);
                if (s == last)
                    out[nv + at + e] = v;
            }
        }
    }
    if (s == last) {
        for (int j = 0; j < nv; ++j)
            out[2 * nv + j] = c[2 * nv + j];
        for (int j = nv; j < n; ++j)
            out[3 * nv + j] = y[j];
        for (int j = 0; j < 4 * nv; ++j)
            start[j] = out[j];
    }
"""
)


@wp.func_native(END_FORWARD)
def end_forward(
    nv: int, n: int, stages: int, groups: int, rates: int, base: int, own: int, k: int, s: int, weights: Rows,
    group: Integers, T: Rows, E: Rows, W: Rows, state: Rows, work: Rows, unknown: Rows, result: Rows,
):  # fmt: skip
    """δΔ, δv and δa of a stage from (1), and behind the last one what the step leaves, by (3)."""
    ...
