"""Bodies whose points move linearly in θ and whose energy is quadratic in the Green strain, as a term of what acts.

The strain of every point is a sum over θ_j and its pairs, which the body's stiffness 𝒦 knows (model.deforming):

    ε = (θ_j; θ_jθ_k for j < k and ½ θ_j² for j = k),   U = ½ εᵀ𝒦ε                                        (1)
    f = Zᵀ 𝒦 (ε + η ε̇),   Z = ∂ε/∂θ,   ε̇ = Z θ̇                                                           (2)
    ∂f/∂θ_k = Zᵀ 𝒦 (Z + η ∂ε̇/∂θ)_k + Σ σ_jk,   ∂f/∂θ̇ = η Zᵀ𝒦Z,   σ = 𝒦 (ε + η ε̇)                        (3)

with η the damping time. The force costs (n²/2)² products, two for each number on and below the diagonal of 𝒦, all of
which damping depends on; U alone has but n⁴/24 terms. The tangent costs twice as many: for some tens of coordinates
less than a sum over the points of a mesh.
Source: Saint Venant-Kirchhoff's law of the module bodies.materials, multiplied out.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.forces.term import Term
from lissom.lie import so3
from lissom.model.deforming import MOST_IN_KERNELS
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.scratch import SPRINGS, Scratch

Rows = wp.array2d(dtype=wp.float64)

_WIDE = 8  # rows of 𝒦 are filled up by zeros to a multiple of so many numbers

_LONGEST = MOST_IN_KERNELS + _WIDE  # room for the coordinates and a block beyond them, and so for the strains
_ROOM = -(-(MOST_IN_KERNELS + MOST_IN_KERNELS * (MOST_IN_KERNELS + 1) // 2) // _WIDE) * _WIDE + _WIDE
_HEAD = f"""
    const int count = n + n * (n + 1) / 2, wide = (count + {_WIDE - 1}) / {_WIDE} * {_WIDE};
    const double* K = row(number, 0) + first + {_WIDE};
    const double eta = K[-{_WIDE}];
    double strain[{_ROOM}], stress[{_ROOM}];
"""
# θ, η θ̇ and their sum, and beyond them zeros, which let whole blocks be read.
_MOTION = f"""
    double x[{_LONGEST}] = {{}}, y[{_LONGEST}] = {{}}, w[{_LONGEST}] = {{}};
    for (int j = 0; j < n; ++j) {{
        x[j] = at_q[j];
        y[j] = eta * at_v[j];
        w[j] = x[j] + y[j];
    }}
"""
# ε + η ε̇: a row of pairs writes over what blocks of the row before have put beyond its end.
_STRAIN = """
    for (int j = 0; j < n; j += 8)
        store(strain + j, load(w + j));
    for (int j = 0, at = n; j < n; at += n - j, ++j) {
        for (int k = j; k < n; k += 8) {
            block pair = load(w + k) * x[j];
            pair += load(x + k) * y[j];
            store(strain + at + k - j, pair);
        }
        strain[at] *= 0.5;
    }
    for (int r = count; r < wide; ++r)
        strain[r] = 0.0;
"""
# Each eight columns of 𝒦 at once, their square on the diagonal and then the squares below it, which are columns that
# add to lower stresses and rows that add to their own. Two sums of each keep the chain of additions short.
_STRESS = f"""
    {{
        const block none = {{}};
        for (int r = 0; r <= wide; r += 8)
            store(stress + r, none);
        const double* from = K + size_t(wide) * wide + {2 * _WIDE};
        for (int p = 0; p < wide; p += 8, from += 64) {{
            const double x0 = strain[p], x1 = strain[p + 1], x2 = strain[p + 2], x3 = strain[p + 3];
            const double x4 = strain[p + 4], x5 = strain[p + 5], x6 = strain[p + 6], x7 = strain[p + 7];
            block own = load(from) * x0, other = load(from + 8) * x1;
            own += load(from + 16) * x2;
            other += load(from + 24) * x3;
            own += load(from + 32) * x4;
            other += load(from + 40) * x5;
            own += load(from + 48) * x6;
            other += load(from + 56) * x7;
            block y0 = {{}}, y1 = {{}}, y2 = {{}}, y3 = {{}}, y4 = {{}}, y5 = {{}}, y6 = {{}}, y7 = {{}};
            for (int r = p + 8; r < wide; r += 8) {{
                from += 64;
                const block e = load(strain + r);
                block sum = load(stress + r);
                const block k0 = load(from), k1 = load(from + 8), k2 = load(from + 16), k3 = load(from + 24);
                block more = k1 * x1;
                sum += k0 * x0;
                more += k3 * x3;
                sum += k2 * x2;
                y0 += k0 * e;
                y1 += k1 * e;
                y2 += k2 * e;
                y3 += k3 * e;
                const block k4 = load(from + 32), k5 = load(from + 40), k6 = load(from + 48), k7 = load(from + 56);
                sum += k4 * x4;
                more += k5 * x5;
                sum += k6 * x6;
                more += k7 * x7;
                y4 += k4 * e;
                y5 += k5 * e;
                y6 += k6 * e;
                y7 += k7 * e;
                sum += more;
                store(stress + r, sum);
            }}
            const block y[8] = {{y0, y1, y2, y3, y4, y5, y6, y7}};
            own += other;
            own += totals(y);
            add(stress + p, own);
        }}
    }}
"""
# Zᵀσ: σ_jk goes to f_j by θ_k and to f_k by θ_j, half of it where j = k. Blocks of a row of pairs that starts within
# them are cut off before its start.
_PROJECT = f"""
    {{
        const double keep[16] = {{0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}};
        block own[{_LONGEST}];
        const block none = {{}};
        for (int j = 0; j < n || j % 8 != 0; ++j)
            own[j] = none;
        for (int k = 0; k < n; k += 8) {{
            const block x_k = load(x + k);
            block sum = load(stress + k);
            for (int j = 0, at = n + k; j < n && j < k + 8; at += n - j - 1, ++j) {{
                block pair = load(stress + at);  // of j and k
                if (j >= k)
                    pair = pair * load(keep + 8 - j + k);
                sum += pair * x[j];
                own[j] += pair * x_k;
            }}
            store(sums + k, sum);
        }}
        for (int j = 0; j < n; j += 8)
            add(sums + j, totals(own + j));
        for (int j = 0; j < n; ++j)
            to[j] += sums[j];
    }}
"""

FORCE = f"""
    const double *at_q = row(q, i) + q_start, *at_v = row(v, i) + v_start;
    double *to = row(tau, i) + v_start, sums[{_LONGEST}];
    {_HEAD} {_MOTION} {_STRAIN} {_STRESS} {_PROJECT}
"""


@wp.func_native(FORCE)
def add_strain_force(number: Rows, first: int, n: int, q_start: int, v_start: int, i: int, q: Rows, v: Rows, tau: Rows):
    """tau += (2)."""
    ...


ENERGY = f"""
    const double *at_q = row(q, i) + q_start, *at_v = at_q;
    {_HEAD.replace("K[-8]", "0.0")} {_MOTION} {_STRAIN} {_STRESS}
    double total = 0.0;
    for (int r = 0; r < count; ++r)
        total += 0.5 * strain[r] * stress[r];
    return total;
"""


@wp.func_native(ENERGY)
def strain_energy(number: Rows, first: int, n: int, q_start: int, i: int, q: Rows) -> wp.float64:
    """U of (1)."""
    ...


# Zᵀ𝒦 of sixteen columns at a time, whose part of 𝒦 stays in the nearest cache; the last ones may be of no use.
_ANSWER = """
    auto answer_of = [&](int j, int start, double* to) {
        const double* from = K + size_t(j) * wide + start;
        block y0 = load(from), y1 = load(from + 8);
        from = K + size_t(n + j) * wide + start;
        for (int l = 0; l < n; ++l) {
            y0 += load(from) * x[l];
            y1 += load(from + 8) * x[l];
            from += size_t(l < j ? n - 1 - l : 1) * wide;  // from the pair (l, j) or (j, l) to the next
        }
        store(to, y0);
        store(to + 8, y1);
    };
"""
# What is symmetric, all but the change of viscous stresses, is made at and left of the diagonal, k ≤ j, to which pairs
# of a lesser member beyond j give nothing.
STIFFEN = f"""
    const double *at_q = row(q, i) + q_start, *at_v = row(v, i) + v_start;
    {_HEAD}
    if (by_q == 0.0 && eta == 0.0)
        return;
    {_MOTION}
    const double linear = by_q + eta * by_v;
    const bool is_symmetric = by_q * eta == 0.0;
    double z[{MOST_IN_KERNELS}], answer[16], sum[{MOST_IN_KERNELS * MOST_IN_KERNELS}];
    for (int j = 0; j < n; ++j)
        z[j] = linear * x[j] + by_q * y[j];
    for (int r = 0; r < n * n; ++r)
        sum[r] = 0.0;
    {_ANSWER}
    for (int start = 0, k = 0, m = 0; start < wide; start += 16) {{
        const int stop = start + 16 < count ? start + 16 : count, first_k = k, first_m = m;
        for (int j = is_symmetric ? first_k : 0; j < n; ++j) {{
            double* to = sum + n * j;
            answer_of(j, start, answer);
            int c = start;
            for (; c < n && c < stop; ++c)
                to[c] += linear * answer[c - start];
            for (k = first_k, m = first_m; c < stop;) {{  // pairs (k, m) up to the last m, or the last column
                const int here = stop - c < n - m ? stop - c : n - m;
                const double* from = answer + c - start;
                const bool twin = m == k;
                double own = twin ? from[0] * z[k] : 0.0;
                for (int e = twin; e < here; ++e) {{
                    own += from[e] * z[m + e];
                    to[m + e] += from[e] * z[k];
                }}
                to[k] += own;
                c += here;
                m += here;
                if (m == n)
                    m = ++k;
            }}
        }}
    }}
    double* to = row(out, i) + size_t(v_start) * width + v_start;
    for (int j = 0; j < n; ++j)
        for (int k = 0; k < n; ++k)
            to[size_t(j) * width + k] += is_symmetric && k > j ? sum[n * k + j] : sum[n * j + k];
    if (by_q == 0.0)
        return;
    {_STRAIN} {_STRESS}
    for (int j = 0, pair = n; j < n; pair += n - j, ++j, to += width) {{
        to[j] += by_q * stress[pair];
        for (int k = j + 1; k < n; ++k) {{
            to[k] += by_q * stress[pair + k - j];
            to[size_t(k - j) * width + j] += by_q * stress[pair + k - j];
        }}
    }}
"""


@wp.func_native(STIFFEN)
def add_strain_stiffness(
    number: Rows, first: int, n: int, q_start: int, v_start: int, width: int, i: int, q: Rows, v: Rows,
    by_q: wp.float64, by_v: wp.float64, out: Rows,
):  # fmt: skip
    """out += by_q ∂f/∂θ + by_v ∂f/∂θ̇ of (3), out in rows of `width`."""
    ...


CHANGE = f"""
    const double *at_q = row(q, i) + q_start, *at_v = row(v, i) + v_start;
    const double *dx = row(dq, i) + v_start, *dy = row(dv, i) + v_start;
    double *to = row(tau, i) + v_start, sums[{_LONGEST}];
    {_HEAD} {_MOTION} {_STRAIN} {_STRESS}
    for (int j = 0, at = n; j < n; ++j) {{
        to[j] += stress[at++] * dx[j];
        for (int k = j + 1; k < n; ++k, ++at) {{
            to[j] += stress[at] * dx[k];
            to[k] += stress[at] * dx[j];
        }}
    }}
    for (int j = 0, at = n; j < n; ++j) {{
        strain[j] = dx[j] + eta * dy[j];
        strain[at++] = w[j] * dx[j] + eta * x[j] * dy[j];
        for (int k = j + 1; k < n; ++k)
            strain[at++] = w[j] * dx[k] + dx[j] * w[k] + eta * (x[j] * dy[k] + dy[j] * x[k]);
    }}
    {_STRESS} {_PROJECT}
"""


@wp.func_native(CHANGE)
def add_strain_change(
    number: Rows, first: int, n: int, q_start: int, v_start: int, i: int, q: Rows, v: Rows, dq: Rows, dv: Rows,
    tau: Rows,
):  # fmt: skip
    """tau += what (2) changes by along (dq, dv)."""
    ...


def _bound(place: Any) -> dict[str, Any]:
    @wp.func(module="unique")
    def force(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, tau: Matrix):
        rows = t.terms[place]
        for e in range(rows.index.shape[0]):
            add_strain_force(
                rows.number, rows.index[e, 0], rows.index[e, 1], rows.index[e, 2], rows.index[e, 3], i, q, v, tau
            )

    @wp.func(module="unique")
    def stiffen(
        t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64,
        by_v: wp.float64, out: Matrix,
    ):  # fmt: skip
        rows = t.terms[place]
        for e in range(rows.index.shape[0]):
            add_strain_stiffness(
                rows.number, rows.index[e, 0], rows.index[e, 1], rows.index[e, 2], rows.index[e, 3], x.width, i, q, v,
                by_q, by_v, out,
            )  # fmt: skip

    @wp.func(module="unique")
    def change(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, dq: Matrix, dv: Matrix, tau: Matrix):
        rows = t.terms[place]
        for e in range(rows.index.shape[0]):
            add_strain_change(
                rows.number, rows.index[e, 0], rows.index[e, 1], rows.index[e, 2], rows.index[e, 3], i, q, v, dq, dv,
                tau,
            )  # fmt: skip

    @wp.func(module="unique")
    def energy(t: Tables, s: Scratch, i: int, q: Matrix) -> wp.float64:
        rows = t.terms[place]
        total = wp.float64(so3.ZERO)
        for e in range(rows.index.shape[0]):
            total += strain_energy(rows.number, rows.index[e, 0], rows.index[e, 1], rows.index[e, 2], i, q)
        return total

    return {"force": force, "stiffen": stiffen, "change": change, "energy": energy}


def _is_in(model: Model) -> bool:
    return any(part is not None for part in model.deforming.stretched)


def packed_rows(bodies: list[tuple[float, np.ndarray]]) -> tuple[np.ndarray, list[int]]:
    """The numbers of bodies, of each η and 𝒦, as one row, and where those of each start: η and zeros, 𝒦 row by row with
    rows and columns of zeros up to a multiple of eight, some more zeros, and what of 𝒦 is on and below the diagonal
    once more: of each eight columns from the diagonal down the squares, column by column."""
    parts, starts = [np.zeros(0)], [0]
    for eta, stiffness in bodies:
        count = len(stiffness)
        wide = -(-count // _WIDE) * _WIDE
        whole = np.zeros((wide, wide))
        whole[:count, :count] = stiffness
        squares = whole.reshape(wide // _WIDE, _WIDE, wide // _WIDE, _WIDE).transpose(2, 0, 3, 1)
        lower = [squares[p, p:].ravel() for p in range(len(squares))]
        own = [[eta], np.zeros(_WIDE - 1), whole.ravel(), np.zeros(2 * _WIDE), *lower]
        parts += own
        starts.append(starts[-1] + sum(map(len, own)))
    return np.concatenate(parts)[None], starts[:-1]


def _tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """By body where its numbers start, n, and the first of its coordinates in q and v; the numbers."""
    bodies = model.deforming
    found = [(b, part) for b, part in enumerate(bodies.stretched) if part is not None]
    number, starts = packed_rows([(part.damping_time, part.stiffness) for _, part in found])
    index = [(first, bodies.column_start[b + 1] - bodies.column_start[b], bodies.q_start[b],
              model.nodes.v_start[bodies.node[b]]) for first, (b, _) in zip(starts, found)]  # fmt: skip
    return np.array(index, dtype=np.int32).reshape(-1, 4), number


TERM = Term("bodies of Green strains", int(SPRINGS), is_in=_is_in, bind=_bound, tables=_tables)
