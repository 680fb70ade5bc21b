"""Anchors of contacts that stick, carried from step to step beside the states, inside a kernel; equations of anchors.

The pairs that touch stand in rows, those of each stage of each step behind each other from `begin` on, with their
number `pair` and with `slopes`: generalised force by the anchor, (nv, 6), and the anchor that a step ends with by q and
by v there, (6, nv) each, and by the one before, (6, 6). `held` has the changes of the anchors of all pairs, or
derivatives by them, at the end of a step.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

Rows = wp.array2d(dtype=wp.float64)
Numbers = wp.array(dtype=wp.int32)

PULL_FORWARD = """
    const int r = base + k * stages + s;
    double* right = row(forcing, own) + (k * stages + s) * n;
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at) {
        const double* force = row(slopes, at);
        const double* moved = row(held, own) + 6 * pair.data[at];
        for (int j = 0; j < nv; ++j)
            for (int e = 0; e < 6; ++e)
                right[j] += force[6 * j + e] * moved[e];
    }
"""


@wp.func_native(PULL_FORWARD)
def pull_forward(
    nv: int, n: int, stages: int, base: int, own: int, k: int, s: int, begin: Numbers, pair: Numbers, slopes: Rows,
    held: Rows, forcing: Rows,
):  # fmt: skip
    """Add to f of stage s of step k what the changes of anchors give."""
    ...


MOVE_FORWARD = """
    const int first = begin.data[base], r = base + (k + 1) * stages - 1;
    const double* end = row(state, own);
    double* z = row(held, own);
    double* to = row(moves, own);
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at) {
        const double* by_q = row(slopes, at) + 6 * nv;
        const double *by_v = by_q + 6 * nv, *by_anchor = by_q + 12 * nv;
        for (int e = 0; e < 6; ++e) {
            double sum = 0.0;
            for (int j = 0; j < nv; ++j)
                sum += by_q[e * nv + j] * end[j] + by_v[e * nv + j] * end[nv + j];
            for (int c = 0; c < 6; ++c)
                sum += by_anchor[6 * e + c] * z[6 * pair.data[at] + c];
            to[6 * (at - first) + e] += sum;
        }
    }
    for (int j = 0; j < numbers; ++j)
        z[j] = 0.0;
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at)
        for (int e = 0; e < 6; ++e)
            z[6 * pair.data[at] + e] = to[6 * (at - first) + e];
"""


@wp.func_native(MOVE_FORWARD)
def move_forward(
    nv: int, numbers: int, stages: int, base: int, own: int, k: int, begin: Numbers, pair: Numbers, slopes: Rows,
    state: Rows, held: Rows, moves: Rows,
):  # fmt: skip
    """Changes of anchors at the end of step k, to what `moves` has of the rows there; none of pairs that do not
    touch."""
    ...


MOVE_BACKWARD = """
    const int first = begin.data[base], r = base + (k + 1) * stages - 1;
    double* end = row(state, own);
    double* z = row(held, own);
    double* to = row(moves, own);
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at)
        for (int e = 0; e < 6; ++e)
            to[6 * (at - first) + e] = z[6 * pair.data[at] + e];
    for (int j = 0; j < numbers; ++j)
        z[j] = 0.0;
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at) {
        const double* by_q = row(slopes, at) + 6 * nv;
        const double *by_v = by_q + 6 * nv, *by_anchor = by_q + 12 * nv;
        for (int e = 0; e < 6; ++e) {
            const double by = to[6 * (at - first) + e];
            for (int j = 0; j < nv; ++j) {
                end[j] += by_q[e * nv + j] * by;
                end[nv + j] += by_v[e * nv + j] * by;
            }
            for (int c = 0; c < 6; ++c)
                z[6 * pair.data[at] + c] += by_anchor[6 * e + c] * by;
        }
    }
"""


@wp.func_native(MOVE_BACKWARD)
def move_backward(
    nv: int, numbers: int, stages: int, base: int, own: int, k: int, begin: Numbers, pair: Numbers, slopes: Rows,
    state: Rows, held: Rows, moves: Rows,
):  # fmt: skip
    """Hand derivatives by the anchors that step k leaves on to its end and to the anchors before; `moves` has them by
    rows."""
    ...


PULL_BACKWARD = """
    const int r = base + k * stages + s;
    const double* y = row(mu, own) + (k * stages + s) * n;
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at) {
        const double* force = row(slopes, at);
        double* z = row(held, own) + 6 * pair.data[at];
        for (int j = 0; j < nv; ++j)
            for (int e = 0; e < 6; ++e)
                z[e] += force[6 * j + e] * y[j];
    }
"""


@wp.func_native(PULL_BACKWARD)
def pull_backward(
    nv: int, n: int, stages: int, base: int, own: int, k: int, s: int, begin: Numbers, pair: Numbers, slopes: Rows,
    held: Rows, mu: Rows,
):  # fmt: skip
    """Hand μ of stage s of step k on to the anchors that pull there."""
    ...
