// Operations on whole rows of arrays, each the numbers of one instance.

// Whether row i has finite numbers alone.
LISSOM_INLINE bool is_finite(int i, array<double> x) {
    const double* from = row(x, i);
    const int n = x.shape[1];
    // zero times a number that is not finite is not zero
    block zeros = {};
    double zero = 0.0;
    int j = 0;
    for (; j + 8 <= n; j += 8)
        zeros += load(from + j) * 0.0;
    for (; j < n; ++j)
        zero += from[j] * 0.0;
    for (int e = 0; e < 8; ++e)
        zero += zeros[e];
    return zero == 0.0;
}

// out += size · left rightᵀ, out in rows of `width`.
LISSOM_INLINE void add_outer_product(
    int nv, int width, int i, double size, array<double> left, array<double> right, array<double> out
) {
    double* to = row(out, i);
    const double* a = row(left, i);
    const double* b = row(right, i);
    for (int j = 0; j < nv; ++j)
        for (int c = 0; c < nv; ++c)
            to[j * width + c] += size * (a[j] * b[c]);
}

// tau −= gain u + extra: motors, and the forces of the users' own actuators.
LISSOM_INLINE void subtract_inputs(
    int nv, int nu, int i, array<double> gain, array<double> u, array<double> extra, array<double> tau
) {
    double* out = row(tau, i);
    const double* more = row(extra, i);
    const double* in = row(u, i);
    for (int j = 0; j < nv; ++j) {
        double sum = more[j];
        for (int c = 0; c < nu; ++c)
            sum += gain.data[j * nu + c] * in[c];
        out[j] -= sum;
    }
}
