"""Columns of intervals for derivatives and Newton matrices, and their local terms, as native loops inside kernels.

The equations are (1)-(6) of interval. What they make of one node are some 180 numbers from some 100, by products of 3x3
matrices: for eight nodes at once each of these is one instruction. Only then follow the columns, node by node, since
path sums need those of the parent.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.model.tables import Tables
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.scratch import Scratch
from lissom.robot.joints import MotionKind

STOP = f"""
    int end = k;
    while (end < stop && end < k + LANES && t.node.data[end].kind == {MotionKind.EXP.value})
        ++end;
    return end;
"""


@wp.func_native(STOP)
def intervals_stop(t: Tables, k: int, stop: int) -> int:
    """The first node after k that is no interval, or that one call does not reach."""
    ...


# The sums of one block of own columns, S, R and P after each other, of the node in lane n.
_OWN = """
            const int at = x.entry_block.data[e];
            block sum[18] = {};
            for (; e < x.entry_start.data[k + 1] && x.entry_block.data[e] == at; ++e) {
                const block p1 = load(x.entry_phi1.data + 8 * e), p2 = load(x.entry_phi2.data + 8 * e);
                const int c = x.entry_component.data[e];
                if (c < 3)
                    for (int m = 0; m < 3; ++m)
                        for (int r = 0; r < 3; ++r) {
                            sum[6 * m + r] += p1 * of(4 * m, r, c);
                            sum[6 * m + r] += p2 * of(4 * m + 2, r, c);
                            sum[6 * m + r + 3] += p1 * of(4 * m + 1, r, c);
                            sum[6 * m + r + 3] += p2 * of(4 * m + 3, r, c);
                        }
                else
                    for (int m = 0; m < 3; ++m)
                        for (int r = 0; r < 3; ++r) {
                            sum[6 * m + r + 3] += p1 * of(4 * m, r, c - 3);
                            sum[6 * m + r + 3] += p2 * of(4 * m + 2, r, c - 3);
                        }
            }
"""

# The local term of the node in lane n: blocks [[P, Q], [Q, 0]] between Φ_aᵀ and Φ_b.
_LOCAL = """
        for (int e = band.entry_start.data[k]; e < band.entry_start.data[k + 1];) {
            const int at = band.entry_block.data[e];
            block v1[6] = {}, v2[6] = {};
            for (; e < band.entry_start.data[k + 1] && band.entry_block.data[e] == at; ++e) {
                const block p1 = load(band.entry_phi1.data + 8 * e), p2 = load(band.entry_phi2.data + 8 * e);
                const int c = band.entry_component.data[e];
                if (c < 3)
                    for (int r = 0; r < 3; ++r) {
                        v1[r] += p1 * local_of(0, r, c);
                        v1[r] += p2 * local_of(2, r, c);
                        v1[r + 3] += p1 * local_of(1, r, c);
                        v1[r + 3] += p2 * local_of(3, r, c);
                        v2[r] += p1 * local_of(4, r, c);
                        v2[r] += p2 * local_of(6, r, c);
                        v2[r + 3] += p1 * local_of(5, r, c);
                        v2[r + 3] += p2 * local_of(7, r, c);
                    }
                else
                    for (int r = 0; r < 3; ++r) {
                        v1[r] += p1 * local_of(1, r, c - 3);
                        v1[r] += p2 * local_of(3, r, c - 3);
                        v2[r] += p1 * local_of(5, r, c - 3);
                        v2[r] += p2 * local_of(7, r, c - 3);
                    }
            }
            for (int f = band.row_start.data[k]; f < band.row_start.data[k + 1]; ++f) {
                const int c = band.row_component.data[f];
                double* to = row(out, i) + band.row_v.data[f] * band.width + at;
                block y = load(to);
                y += v1[c] * band.row_phi1.data[f];
                y += v2[c] * band.row_phi2.data[f];
                store(to, y);
            }
        }
"""


def _columns(number: str, c0: str, c1: str, sums: tuple[str, ...], own: str, ends: str) -> str:
    """Columns of nodes whose numbers stand in lanes of `number`: S, and `sums` as `own` adds to them, then `ends`."""
    paths = "\n".join(
        f"""
        double* {name}_0 = six_rows({name}, i, k, x.width);
        const double* {name}_below = six_rows({name}, i, below < 0 ? 0 : below, x.width);"""
        for name in sums
    )
    copies = "\n".join(
        f"                store({name}_0 + r * x.width + j, below < 0 ? none : load({name}_below + r * x.width + j));"
        for name in sums
    )
    return f"""
    typedef {number} numbers;
    const block none = {{}};
    const int count = sizeof(numbers) / sizeof(double);
    interval_state<numbers> state;
    operator_pair<numbers> pairs[6], locals[4];
    gather_intervals(t, s, i, first, stop, row(v, i), row(a, i), state);
    interval_columns(state, {c0}, {c1}, pairs);
    {ends}
    for (int k = first; k < stop; ++k) {{
        const double* at_node = (const double*)pairs + (k - first);
        const double* at_local = (const double*)locals + (k - first);
        auto of = [&](int m, int r, int c) {{ return at_node[count * (9 * m + 3 * r + c)]; }};
        auto local_of = [&](int m, int r, int c) {{ return at_local[count * (9 * m + 3 * r + c)]; }};
        const int below = k == first ? before : t.node.data[k].parent;
        double* S_0 = six_rows(S, i, k, x.width);
        {paths}
        for_blocks(x.path_start, x.path_range, k, [&](int j) {{
            for (int r = 0; r < 6; ++r) {{
{copies}
            }}
        }});
        for (int e = x.entry_start.data[k]; e < x.entry_start.data[k + 1];) {{
            {_OWN}
            for (int r = 0; r < 6; ++r) {{
                const int here = r * x.width + at;
                store(S_0 + here, sum[r]);
                {own}
            }}
        }}
        if (!has_local)
            continue;
        {_LOCAL}
    }}
"""


_NEWTON = (
    ("J", "J_P", "J_R"),
    "add(J_0 + here, sum[r]); add(J_R_0 + here, sum[r + 6]); add(J_P_0 + here, sum[r + 12]);",
)
_DERIVATIVES = (
    ("J", "J_R", "J_Q", "J_E"),
    "add(J_0 + here, sum[r]); add(J_R_0 + here, sum[r + 6]); add(J_Q_0 + here, sum[r + 12]);"
    " add(J_E_0 + here, sum[r + 6] * 2.0);",
)
_WITH_LOCAL = "const int has_local = 1; interval_local(state, locals);"
_IF_ASKED = "if (has_local) interval_local(state, locals);"


@wp.func_native(_columns("lanes", "0.0", "0.0", *_DERIVATIVES, _IF_ASKED))
def derivative_columns(
    t: Tables, s: Scratch, x: Columns, band: Columns, i: int, first: int, stop: int, before: int, v: Matrix, a: Matrix,
    S: Matrix, J: Matrix, J_R: Matrix, J_Q: Matrix, J_E: Matrix, has_local: int, out: Matrix,
):  # fmt: skip
    """Columns S of the intervals first … stop − 1, the path sums with S, R, Q and E = Ṡ + R on top of those of the
    node `before`, none if that is negative; local terms go to out if they are asked for."""
    ...


@wp.func_native(_columns("lanes", "c0", "c1", *_NEWTON, _WITH_LOCAL))
def newton_columns(
    t: Tables, s: Scratch, x: Columns, band: Columns, i: int, first: int, stop: int, before: int, v: Matrix, a: Matrix,
    c0: wp.float64, c1: wp.float64, S: Matrix, J: Matrix, J_P: Matrix, J_R: Matrix, out: Matrix,
):  # fmt: skip
    """Columns S of the intervals first … stop − 1, the path sums with S, P = Q + 2 c₁ Ṡ + c₀ S and R + c₁ S on top of
    those of the node `before`, none if that is negative; local terms go to out."""
    ...


@wp.func_native(_columns("double", "c0", "c1", *_NEWTON, _WITH_LOCAL))
def newton_columns_of_one(
    t: Tables, s: Scratch, x: Columns, band: Columns, i: int, first: int, stop: int, before: int, v: Matrix, a: Matrix,
    c0: wp.float64, c1: wp.float64, S: Matrix, J: Matrix, J_P: Matrix, J_R: Matrix, out: Matrix,
):  # fmt: skip
    """The same of one interval, `stop` being the node after it."""
    ...
