// Anchors of contacts that stick, carried from step to step beside the states. Equations are those of the Python
// modules gradients/anchors and gradients/recursion; gradients/anchor_passes describes the rows.

namespace lissom {

// Derivatives of one pair that touches: of the generalised force by the anchor, (nv, 6), and of the anchor that a step
// ends with by q and by v there, (6, nv) each, and by the anchor before, (6, 6).
struct anchor_slopes {
    const double *force, *by_q, *by_v, *by_anchor;
};

LISSOM_INLINE anchor_slopes slopes_of(const array<double>& slopes, int pair, int nv) {
    const double* first = row(slopes, pair);
    return {first, first + 6 * nv, first + 12 * nv, first + 18 * nv};
}

}  // namespace lissom

// Add the forces of changed anchors to f of stage s of step k.
LISSOM_INLINE void pull_forward(
    int nv, int n, int stages, int base, int own, int k, int s, array<int> begin, array<int> pair, array<double> slopes,
    array<double> held, array<double> forcing
) {
    const int r = base + k * stages + s;
    double* right = row(forcing, own) + (k * stages + s) * n;
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at) {
        const double* force = slopes_of(slopes, at, nv).force;
        const double* moved = row(held, own) + 6 * pair.data[at];
        // f += ∂f/∂anchor δanchor
        for (int j = 0; j < nv; ++j)
            for (int e = 0; e < 6; ++e)
                right[j] += force[6 * j + e] * moved[e];
    }
}

// Changes of anchors at the end of step k, to which `moves` has already added a part; those of pairs that do not touch
// are zero.
LISSOM_INLINE void move_forward(
    int nv, int numbers, int stages, int base, int own, int k, array<int> begin, array<int> pair, array<double> slopes,
    array<double> state, array<double> held, array<double> moves
) {
    const int first = begin.data[base], r = base + (k + 1) * stages - 1;
    const double* end = row(state, own);
    double* z = row(held, own);
    double* to = row(moves, own);
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at) {
        const anchor_slopes slope = slopes_of(slopes, at, nv);
        for (int e = 0; e < 6; ++e) {
            // δanchor at the end of the step, by δq, δv and the anchor before
            double sum = 0.0;
            for (int j = 0; j < nv; ++j)
                sum += slope.by_q[e * nv + j] * end[j] + slope.by_v[e * nv + j] * end[nv + j];
            for (int c = 0; c < 6; ++c)
                sum += slope.by_anchor[6 * e + c] * z[6 * pair.data[at] + c];
            to[6 * (at - first) + e] += sum;
        }
    }
    for (int j = 0; j < numbers; ++j)
        z[j] = 0.0;
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at)
        for (int e = 0; e < 6; ++e)
            z[6 * pair.data[at] + e] = to[6 * (at - first) + e];
}

// Hand derivatives by the anchors that step k leaves on to its end and to the anchors before; `moves` has them by rows.
LISSOM_INLINE void move_backward(
    int nv, int numbers, int stages, int base, int own, int k, array<int> begin, array<int> pair, array<double> slopes,
    array<double> state, array<double> held, array<double> moves
) {
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
        const anchor_slopes slope = slopes_of(slopes, at, nv);
        for (int e = 0; e < 6; ++e) {
            // the transpose of that
            const double by = to[6 * (at - first) + e];
            for (int j = 0; j < nv; ++j) {
                end[j] += slope.by_q[e * nv + j] * by;
                end[nv + j] += slope.by_v[e * nv + j] * by;
            }
            for (int c = 0; c < 6; ++c)
                z[6 * pair.data[at] + c] += slope.by_anchor[6 * e + c] * by;
        }
    }
}

// Hand μ of stage s of step k on to the anchors of the pairs that touch there.
LISSOM_INLINE void pull_backward(
    int nv, int n, int stages, int base, int own, int k, int s, array<int> begin, array<int> pair, array<double> slopes,
    array<double> held, array<double> mu
) {
    const int r = base + k * stages + s;
    const double* y = row(mu, own) + (k * stages + s) * n;
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at) {
        const double* force = slopes_of(slopes, at, nv).force;
        double* z = row(held, own) + 6 * pair.data[at];
        // (∂f/∂anchor)ᵀ μ
        for (int j = 0; j < nv; ++j)
            for (int e = 0; e < 6; ++e)
                z[e] += force[6 * j + e] * y[j];
    }
}
