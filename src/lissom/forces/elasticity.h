// Elastic and viscous forces by compressed rows of K and D. Equations are those of the Python module forces/elasticity.

// tau += K (q − q_rest) + D v of (1) by compressed rows. Coordinates of spherical and free joints have no place in q:
// their dof_q is negative.
LISSOM_INLINE void elastic_rows(
    int nv, array<int> start, array<int> column, array<double> stiffness, array<double> damping, array<int> dof_q,
    array<double> rest, int i, array<double> q, array<double> v, array<double> tau
) {
    double* out = row(tau, i);
    const double* x = row(q, i);
    const double* y = row(v, i);
    for (int row = 0; row < nv; ++row) {
        double total = out[row];
        for (int e = start.data[row]; e < start.data[row + 1]; ++e) {
            const int j = column.data[e], at = dof_q.data[j];
            total += stiffness.data[e] * (at < 0 ? 0.0 : x[at] - rest.data[j]) + damping.data[e] * y[j];
        }
        out[row] = total;
    }
}

// out += by_k K + by_d D by compressed rows.
LISSOM_INLINE void add_weighted_elastic_rows(
    int nv, int width, array<int> start, array<int> column, array<double> stiffness, array<double> damping, int i,
    double by_k, double by_d, array<double> out
) {
    double* to = row(out, i);
    for (int row = 0; row < nv; ++row)
        for (int e = start.data[row]; e < start.data[row + 1]; ++e)
            to[row * width + column.data[e]] += by_k * stiffness.data[e] + by_d * damping.data[e];
}

// tau += K dq + D dv by compressed rows.
LISSOM_INLINE void changed_elastic_rows(
    int nv, array<int> start, array<int> column, array<double> stiffness, array<double> damping, int i,
    array<double> dq, array<double> dv, array<double> tau
) {
    double* out = row(tau, i);
    const double* x = row(dq, i);
    const double* y = row(dv, i);
    for (int row = 0; row < nv; ++row) {
        double total = out[row];
        for (int e = start.data[row]; e < start.data[row + 1]; ++e)
            total += stiffness.data[e] * x[column.data[e]] + damping.data[e] * y[column.data[e]];
        out[row] = total;
    }
}
