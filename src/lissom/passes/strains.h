// Strains at points of one node from coordinates, and forces on coordinates from wrenches. Rows of Φ are runs of
// numbers: component c has those from run_start[c] to run_start[c + 1], which belong to the coordinates from run_v[c]
// on.

// Rows Φ₁q, Φ₂q, Φ₁v, Φ₂v, Φ₁a, Φ₂a of one node.
LISSOM_INLINE mat6 strain_sums(
    array<double> phi1, array<double> phi2, vec7i run_start, vec6i run_v, int i, int q_shift, array<double> q,
    array<double> v, array<double> a
) {
    const double *x = row(q, i) + q_shift, *y = row(v, i), *z = row(a, i);
    mat6 out;
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
}

// tau += Φ₁ᵀ y1 + Φ₂ᵀ y2 of one node.
LISSOM_INLINE void project_strains(
    array<double> phi1, array<double> phi2, vec7i run_start, vec6i run_v, int i, vec6 y1, vec6 y2, array<double> tau
) {
    double* out = row(tau, i);
    for (int c = 0; c < 6; ++c) {
        const double w1 = y1[c], w2 = y2[c];
        const int start = run_start[c], at = run_v[c] - start;
        for (int e = start; e < run_start[c + 1]; ++e)
            out[at + e] += phi1.data[e] * w1 + phi2.data[e] * w2;
    }
}

// Φ q at one strain point.
LISSOM_INLINE vec6 strain_at(array<double> phi, vec7i run_start, vec6i run_v, int i, int q_shift, array<double> q) {
    const double* x = row(q, i) + q_shift;
    vec6 out;
    for (int c = 0; c < 6; ++c) {
        double sum = 0.0;
        for (int e = run_start[c], j = run_v[c]; e < run_start[c + 1]; ++e, ++j)
            sum += phi.data[e] * x[j];
        out[c] = sum;
    }
    return out;
}

// tau += Φᵀ y at one strain point, tau from column `shift` on.
LISSOM_INLINE void project_at(
    array<double> phi, vec7i run_start, vec6i run_v, int i, int shift, vec6 y, array<double> tau
) {
    double* out = row(tau, i) + shift;
    for (int c = 0; c < 6; ++c)
        for (int e = run_start[c], j = run_v[c]; e < run_start[c + 1]; ++e, ++j)
            out[j] += phi.data[e] * y[c];
}
