"""Integrals over deformable bodies whose points move linearly in θ, as sums of rows of their constants, inside kernels.

With the constants of model.deforming, φ_j the shapes, and the equations of the module deforming,

    P_j = ∫ρ x φ_jᵀ + Σ_e θ_e ∫ρ φ_e φ_jᵀ,   w_j = Σ_e θ̇_e ∫ρ φ_e×φ_j,   e_j = Σ_e θ̈_e ∫ρ φ_e·φ_j       (1)
    ∂Π/∂θ_j = (Σ_e θ̇_e ∫ρ φ_e φ_jᵀ)ᵀ,   ∂b/∂θ_j = Σ_e θ̈_e ∫ρ φ_j×φ_e                                    (2)

Native, since these sums over pairs are all that such a body costs: the constants of one e stand one after the other, so
that a row of them is added eight numbers at a time.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import mat3, vec3
from lissom.model.tables import Tables
from lissom.passes.column_tables import Matrix
from lissom.passes.scratch import Scratch

PLACE = """
    const int at = t.deforming.column_start.data[b], pair = t.deforming.pair_start.data[b];
    const double* x = row(q, i) + first;
    const double* P0_j = (const double*)(t.deforming.P0_j.data + at);
    const double* c_j = (const double*)(t.deforming.c_j.data + at);
    double* P_j = (double*)(row(s.deforming.P_j, i) + at);
    double* own_c_j = (double*)(row(s.deforming.c_j, i) + at);
    for (int r = 0; r < 9 * n; ++r)
        P_j[r] = P0_j[r];
    add_weighted_rows(n, 9 * n, x, (const double*)(t.deforming.Q.data + pair), P_j);
    double* P = (double*)(row(s.deforming.P, i) + b);
    double* c = (double*)(row(s.deforming.c, i) + b);
    for (int r = 0; r < 9; ++r)
        P[r] = ((const double*)(t.deforming.P_0.data + b))[r];
    for (int r = 0; r < 3; ++r)
        c[r] = ((const double*)(t.deforming.c_0.data + b))[r];
    for (int j = 0; j < n; ++j) {
        for (int r = 0; r < 3; ++r) {
            own_c_j[3 * j + r] = c_j[3 * j + r];
            c[r] += x[j] * c_j[3 * j + r];
            for (int e = 0; e < 3; ++e)
                P[3 * r + e] += x[j] * (P_j[9 * j + 3 * r + e] + P0_j[9 * j + 3 * e + r]);
        }
    }
"""


@wp.func_native(PLACE)
def integrate_positions(t: Tables, s: Scratch, b: int, first: int, n: int, i: int, q: Matrix):
    """c, P, c_j and P_j of body b, whose first coordinate in q is `first`."""
    ...


RATE = """
    const int at = t.deforming.column_start.data[b], pair = t.deforming.pair_start.data[b];
    double* w_j = (double*)(row(s.deforming.w_j, i) + at);
    double* e_j = row(s.deforming.e, i) + at;
    for (int r = 0; r < 3 * n; ++r)
        w_j[r] = 0.0;
    for (int r = 0; r < n; ++r)
        e_j[r] = 0.0;
    add_weighted_rows(n, 3 * n, row(v, i) + first, (const double*)(t.deforming.Q_cross.data + pair), w_j);
    add_weighted_rows(n, n, row(a, i) + first, t.deforming.Q_dot.data + pair, e_j);
"""


@wp.func_native(RATE)
def integrate_rates(t: Tables, s: Scratch, b: int, first: int, n: int, i: int, v: Matrix, a: Matrix):
    """w_j and e_j of body b, whose first coordinate in v is `first`."""
    ...


SLOPES = """
    const int at = t.deforming.column_start.data[b], pair = t.deforming.pair_start.data[b];
    double* Pi_q = (double*)(row(s.deforming.Pi_q, i) + at);
    double* b_q = (double*)(row(s.deforming.b_q, i) + at);
    for (int r = 0; r < 9 * n; ++r)
        Pi_q[r] = 0.0;
    for (int r = 0; r < 3 * n; ++r)
        b_q[r] = 0.0;
    add_weighted_rows(n, 9 * n, row(v, i) + first, (const double*)(t.deforming.Q.data + pair), Pi_q);
    add_weighted_rows(n, 3 * n, row(a, i) + first, (const double*)(t.deforming.Q_cross.data + pair), b_q);
    for (int j = 0; j < n; ++j) {
        for (int r = 0; r < 3; ++r) {
            b_q[3 * j + r] = -b_q[3 * j + r];
            for (int e = r + 1; e < 3; ++e) {
                const double above = Pi_q[9 * j + 3 * r + e];
                Pi_q[9 * j + 3 * r + e] = Pi_q[9 * j + 3 * e + r];
                Pi_q[9 * j + 3 * e + r] = above;
            }
        }
    }
"""


@wp.func_native(SLOPES)
def integrate_slopes(t: Tables, s: Scratch, b: int, first: int, n: int, i: int, v: Matrix, a: Matrix):
    """∂Π/∂θ_j and ∂b/∂θ_j of (2) of body b, whose first coordinate in v is `first`."""
    ...


BLOCK = """
    const int pair = t.deforming.pair_start.data[b];
    const double* Q = (const double*)(t.deforming.Q.data + pair);
    const double* Q_cross = (const double*)(t.deforming.Q_cross.data + pair);
    const double* Q_dot = t.deforming.Q_dot.data + pair;
    double turn[9];
    for (int r = 0; r < 3; ++r)
        for (int e = 0; e < 3; ++e)
            turn[3 * r + e] = by_q * A.data[e][r];  // Q_je = Q_ejᵀ
    const double x = -2.0 * by_v * w.c[0], y = -2.0 * by_v * w.c[1], z = -2.0 * by_v * w.c[2];
    for (int j = 0; j < n; ++j) {
        double* to = row(out, i) + size_t(first + j) * width + first;
        if (by_a != 0.0)
            for (int e = 0; e < n; ++e)
                to[e] += by_a * Q_dot[n * j + e];
        if (by_v != 0.0)
            for (int e = 0; e < n; ++e) {
                const double* from = Q_cross + 3 * (n * j + e);
                to[e] += x * from[0] + y * from[1] + z * from[2];
            }
        if (by_q != 0.0)
            for (int e = 0; e < n; ++e) {
                const double* from = Q + 9 * (n * j + e);
                to[e] += (turn[0] * from[0] + turn[1] * from[1] + turn[2] * from[2])
                    + (turn[3] * from[3] + turn[4] * from[4] + turn[5] * from[5])
                    + (turn[6] * from[6] + turn[7] * from[7] + turn[8] * from[8]);
            }
    }
"""


@wp.func_native(BLOCK)
def add_own_block(
    t: Tables, b: int, first: int, n: int, width: int, i: int, A: mat3, w: vec3, by_q: wp.float64, by_v: wp.float64,
    by_a: wp.float64, out: Matrix,
):  # fmt: skip
    """out[j, e] += by_q A : ∂P_j/∂θ_e + by_v 2 w·∂w_j/∂θ̇_e + by_a ∂e_j/∂θ̈_e of body b, out in rows of `width`."""
    ...
