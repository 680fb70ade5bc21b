"""Native loops over the strain basis of one node: strains from coordinates, and coordinates' forces from wrenches."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import mat6, vec6
from lissom.model.fields import vec6i, vec7i

STRAIN_SUMS = """
    const double *x = row(q, i) + q_shift, *y = row(v, i), *z = row(a, i);
    wp::mat_t<6, 6, double> out;
    for (int c = 0; c < 6; ++c) {
        double x1 = 0.0, x2 = 0.0, y1 = 0.0, y2 = 0.0, z1 = 0.0, z2 = 0.0;
        const int start = run_start[c], at = run_v[c] - start;
        for (int e = start; e < run_start[c + 1]; ++e) {
            const double p1 = phi1.data[e], p2 = phi2.data[e];
            x1 += p1 * x[at + e];
            x2 += p2 * x[at + e];
            y1 += p1 * y[at + e];
            y2 += p2 * y[at + e];
            z1 += p1 * z[at + e];
            z2 += p2 * z[at + e];
        }
        out.data[0][c] = x1;
        out.data[1][c] = x2;
        out.data[2][c] = y1;
        out.data[3][c] = y2;
        out.data[4][c] = z1;
        out.data[5][c] = z2;
    }
    return out;
"""


@wp.func_native(STRAIN_SUMS)
def strain_sums(
    phi1: wp.array(dtype=wp.float64),
    phi2: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    q_shift: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
) -> mat6:
    """Rows Φ₁q, Φ₂q, Φ₁v, Φ₂v, Φ₁a, Φ₂a of one node. Native, since indexing arrays costs more than the sums."""
    ...


PROJECT_STRAINS = """
    double* out = row(tau, i);
    for (int c = 0; c < 6; ++c) {
        const double w1 = y1[c], w2 = y2[c];
        const int start = run_start[c], at = run_v[c] - start;
        for (int e = start; e < run_start[c + 1]; ++e)
            out[at + e] += phi1.data[e] * w1 + phi2.data[e] * w2;
    }
"""


@wp.func_native(PROJECT_STRAINS)
def project_strains(
    phi1: wp.array(dtype=wp.float64),
    phi2: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    y1: vec6,
    y2: vec6,
    tau: wp.array2d(dtype=wp.float64),
):
    """tau += Φ₁ᵀ y1 + Φ₂ᵀ y2 of one node."""
    ...
