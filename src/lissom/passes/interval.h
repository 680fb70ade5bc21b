// Columns of intervals for derivatives and Newton matrices, and their local terms. Equations are those of the Python
// module passes/interval, (1)-(6); lie/interval.h computes the numbers of eight nodes at once. The columns follow node
// by node, since path sums need those of the parent.
//
// Strains at points of one node from coordinates, and forces on coordinates from wrenches. The nonzero entries of a row
// of Φ, component c, are run_start[c] … run_start[c + 1] − 1, for the coordinates from run_v[c] on.

namespace lissom {

// Six rows each of S, R and the third kind (Q or P) for one block of columns of node k, from the numbers of(m, r, c) of
// its operator pairs. Afterwards e is the first entry of the next block.
// The pragmas unroll the loops before the compiler assigns registers, so that the sums stay in them.
template <typename Columns, typename Of>
LISSOM_INLINE void sum_own_columns(const Columns& x, int k, int at, int& e, const Of& of, block* sum) {
    for (; e < x.entry_start.data[k + 1] && x.entry_block.data[e] == at; ++e) {
        const block p1 = load(x.entry_phi1.data + 8 * e), p2 = load(x.entry_phi2.data + 8 * e);
        const int c = x.entry_component.data[e];
        if (c < 3)
#pragma unroll
            for (int m = 0; m < 3; ++m)
#pragma unroll
                for (int r = 0; r < 3; ++r) {
                    sum[6 * m + r] += p1 * of(4 * m, r, c);
                    sum[6 * m + r] += p2 * of(4 * m + 2, r, c);
                    sum[6 * m + r + 3] += p1 * of(4 * m + 1, r, c);
                    sum[6 * m + r + 3] += p2 * of(4 * m + 3, r, c);
                }
        else
#pragma unroll
            for (int m = 0; m < 3; ++m)
#pragma unroll
                for (int r = 0; r < 3; ++r) {
                    sum[6 * m + r + 3] += p1 * of(4 * m, r, c - 3);
                    sum[6 * m + r + 3] += p2 * of(4 * m + 2, r, c - 3);
                }
    }
}

// Add the local term (5) of node k, [[P, Q], [Q, 0]] between Φ_aᵀ and Φ_b, to rows of band.width numbers.
template <typename Columns, typename Of>
LISSOM_INLINE void add_local_term(const Columns& band, int k, const Of& local_of, double* out) {
    for (int e = band.entry_start.data[k]; e < band.entry_start.data[k + 1];) {
        const int at = band.entry_block.data[e];
        block v1[6] = {}, v2[6] = {};
        for (; e < band.entry_start.data[k + 1] && band.entry_block.data[e] == at; ++e) {
            const block p1 = load(band.entry_phi1.data + 8 * e), p2 = load(band.entry_phi2.data + 8 * e);
            const int c = band.entry_component.data[e];
            if (c < 3)
#pragma unroll
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
#pragma unroll
                for (int r = 0; r < 3; ++r) {
                    v1[r] += p1 * local_of(1, r, c - 3);
                    v1[r] += p2 * local_of(3, r, c - 3);
                    v2[r] += p1 * local_of(5, r, c - 3);
                    v2[r] += p2 * local_of(7, r, c - 3);
                }
        }
        for (int f = band.row_start.data[k]; f < band.row_start.data[k + 1]; ++f) {
            const int c = band.row_component.data[f];
            double* to = out + band.row_v.data[f] * band.width + at;
            block y = load(to);
            y += v1[c] * band.row_phi1.data[f];
            y += v2[c] * band.row_phi2.data[f];
            store(to, y);
        }
    }
}

// Columns S of the intervals first … stop − 1, whose numbers are lanes of T, and N path sums, added to those of node
// `before`, to zero if it is negative. The first three path sums are of S, of R + c₁ S and of Q + 2 c₁ R + c₀ S
// (1)-(3), a fourth one is of E = Ṡ + R. If `has_local`, local terms are added to out.
// Rows are addressed by x.width: from a local copy the compiler makes 48 addresses, which it keeps on the stack.
template <typename T, int N, typename Tables, typename Scratch, typename Columns>
LISSOM_INLINE void put_interval_columns(
    const Tables& t, const Scratch& s, const Columns& x, const Columns& band, int i, int first, int stop, int before,
    const double* v, const double* a, double c0, double c1, const array<double>& S,
    const array<double>* const (&sums)[N], bool has_local, double* out
) {
    const block none = {};
    const int count = sizeof(T) / sizeof(double);
    interval_state<T> state;
    operator_pair<T> pairs[6], locals[4];
    gather_intervals(t, s, i, first, stop, v, a, state);
    interval_columns(state, c0, c1, pairs);
    if (has_local)
        interval_local(state, locals);
    for (int k = first; k < stop; ++k) {
        const double* at_node = (const double*)pairs + (k - first);
        const double* at_local = (const double*)locals + (k - first);
        auto of = [&](int m, int r, int c) { return at_node[count * (9 * m + 3 * r + c)]; };
        auto local_of = [&](int m, int r, int c) { return at_local[count * (9 * m + 3 * r + c)]; };
        const int below = k == first ? before : t.node.data[k].parent;
        double *S_k = six_rows(S, i, k, x.width), *to[N];
        const double* from[N];
        for (int m = 0; m < N; ++m) {
            to[m] = six_rows(*sums[m], i, k, x.width);
            from[m] = six_rows(*sums[m], i, below < 0 ? 0 : below, x.width);
        }
        for_blocks(x.path_start, x.path_range, k, [&](int j) {
            for (int r = 0; r < 6; ++r)
                for (int m = 0; m < N; ++m)
                    store(to[m] + r * x.width + j, below < 0 ? none : load(from[m] + r * x.width + j));
        });
        for (int e = x.entry_start.data[k]; e < x.entry_start.data[k + 1];) {
            const int at = x.entry_block.data[e];
            block sum[18] = {};
            sum_own_columns(x, k, at, e, of, sum);
            for (int r = 0; r < 6; ++r) {
                const int here = r * x.width + at;
                store(S_k + here, sum[r]);
                for (int m = 0; m < 3; ++m)
                    add(to[m] + here, sum[6 * m + r]);
                if (N > 3)
                    add(to[N - 1] + here, sum[6 + r] * 2.0);  // E, since Ṡ = R here
            }
        }
        if (has_local)
            add_local_term(band, k, local_of, out);
    }
}

}  // namespace lissom

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

// End of the nodes from k on that one call handles: nodes that move by exp(Ω(q)), before node `stop`, at most LANES of
// them. Returns k in kernels without rods.
LISSOM_INLINE int intervals_stop(const Tables& t, int k, int stop) {
#ifdef LISSOM_SERVES_RIGID
    return k;
#endif
    int end = k;
    while (end < stop && end < k + LANES && t.node.data[end].kind == EXP)
        ++end;
    return end;
}

// Columns S of the intervals first … stop − 1, and path sums with S, R, Q and E = Ṡ + R, added to those of node
// `before`, to zero if it is negative; if `has_local`, local terms are added to out.
LISSOM_INLINE void derivative_columns(
    const Tables& t, const Scratch& s, const Columns& x, int i, int first, int stop, int before, array<double> v,
    array<double> a, const DerivativeSums& sums, int has_local, array<double> out
) {
    const array<double> J = sums.J, J_R = sums.J_R, J_Q = sums.J_Q, J_E = sums.J_E;
    const array<double>* const path[4] = {&J, &J_R, &J_Q, &J_E};
    put_interval_columns<lanes>(
        t, s, x, x, i, first, stop, before, row(v, i), row(a, i), 0.0, 0.0, sums.S, path, has_local, row(out, i)
    );
}

// Columns S of the intervals first … stop − 1, and path sums with S, P = Q + 2 c₁ Ṡ + c₀ S and R + c₁ S, added to those
// of node `before`, to zero if it is negative; local terms are added to out.
LISSOM_INLINE void newton_columns(
    const Tables& t, const Scratch& s, const Columns& x, int i, int first, int stop, int before,
    const NewtonPoint& point, const NewtonSums& sums, array<double> out
) {
    const array<double>* const path[3] = {&sums.J, &sums.J_R, &sums.J_P};
    put_interval_columns<lanes>(
        t, s, x, x, i, first, stop, before, row(point.v, i), row(point.a, i), point.c0, point.c1, sums.S, path, true,
        row(out, i)
    );
}

// As newton_columns, for interval k alone; local terms are stored with the column tables `band`.
LISSOM_INLINE void newton_columns_of_node(
    const Tables& t, const Scratch& s, const Columns& x, const Columns& band, int i, int k, int before,
    const NewtonPoint& point, const NewtonSums& sums, array<double> out
) {
    const array<double>* const path[3] = {&sums.J, &sums.J_R, &sums.J_P};
    put_interval_columns<double>(
        t, s, x, band, i, k, k + 1, before, row(point.v, i), row(point.a, i), point.c0, point.c1, sums.S, path, true,
        row(out, i)
    );
}
