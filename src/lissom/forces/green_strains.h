// Bodies whose energy is quadratic in the Green strain. Equations are those of the Python module forces/green_strains.
// A body has n coordinates θ, `count` strains ε: those of θ_j first, then those of the pairs (j, k), k ≥ j, row by row.
// `wide` is count padded to whole registers. K points to the rows of 𝒦, which have `wide` numbers; packed_rows of the
// Python module describes the numbers behind them.

namespace lissom {

// x = θ, y = η θ̇ and w = x + y. Zeros follow them, so that whole blocks can be read.
LISSOM_INLINE void put_motion(
    int n, const double* at_q, const double* at_v, double eta, double* x, double* y, double* w
) {
    for (int j = 0; j < n; ++j) {
        x[j] = at_q[j];
        y[j] = eta * at_v[j];
        w[j] = x[j] + y[j];
    }
}

// ε + η ε̇ of (1) and (2). The blocks of a row of pairs write beyond its end; the next row overwrites these numbers.
LISSOM_INLINE void put_strains(
    int n, int count, int wide, const double* x, const double* y, const double* w, double* strain
) {
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
}

// σ = 𝒦 strain of (3), for eight columns of 𝒦 at once: first the square on the diagonal, then the squares below it. By
// symmetry each of these adds to the stresses of its rows and to those of its columns. Two sums of each keep the chain
// of additions short.
LISSOM_INLINE void put_stresses(int wide, const double* K, const double* strain, double* stress) {
    const block none = {};
    for (int r = 0; r <= wide; r += 8)
        store(stress + r, none);
    const double* from = K + size_t(wide) * wide + 16;  // behind 𝒦 and two blocks of zeros
    for (int p = 0; p < wide; p += 8, from += 64) {
        const double x0 = strain[p], x1 = strain[p + 1], x2 = strain[p + 2], x3 = strain[p + 3];
        const double x4 = strain[p + 4], x5 = strain[p + 5], x6 = strain[p + 6], x7 = strain[p + 7];
        block even = load(from) * x0, odd = load(from + 8) * x1;
        even += load(from + 16) * x2;
        odd += load(from + 24) * x3;
        even += load(from + 32) * x4;
        odd += load(from + 40) * x5;
        even += load(from + 48) * x6;
        odd += load(from + 56) * x7;
        block y0 = {}, y1 = {}, y2 = {}, y3 = {}, y4 = {}, y5 = {}, y6 = {}, y7 = {};
        for (int r = p + 8; r < wide; r += 8) {
            from += 64;
            const block e = load(strain + r);
            block sum = load(stress + r);
            const block k0 = load(from), k1 = load(from + 8), k2 = load(from + 16), k3 = load(from + 24);
            block odd_sum = k1 * x1;
            sum += k0 * x0;
            odd_sum += k3 * x3;
            sum += k2 * x2;
            y0 += k0 * e;
            y1 += k1 * e;
            y2 += k2 * e;
            y3 += k3 * e;
            const block k4 = load(from + 32), k5 = load(from + 40), k6 = load(from + 48), k7 = load(from + 56);
            sum += k4 * x4;
            odd_sum += k5 * x5;
            sum += k6 * x6;
            odd_sum += k7 * x7;
            y4 += k4 * e;
            y5 += k5 * e;
            y6 += k6 * e;
            y7 += k7 * e;
            sum += odd_sum;
            store(stress + r, sum);
        }
        const block y[8] = {y0, y1, y2, y3, y4, y5, y6, y7};
        even += odd;
        even += totals(y);
        add(stress + p, even);
    }
}

// f += Zᵀσ of (2): σ_jk adds θ_k σ_jk to f_j and θ_j σ_jk to f_k, half of each if j = k. The numbers of a block before
// the start of its row of pairs are set to zero.
template <int COORDINATE_ROOM>
LISSOM_INLINE void add_projected(int n, const double* x, const double* stress, double* to) {
    const double mask[16] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    block partial[COORDINATE_ROOM];
    double sums[COORDINATE_ROOM];
    const block none = {};
    for (int j = 0; j < n || j % 8 != 0; ++j)
        partial[j] = none;
    for (int k = 0; k < n; k += 8) {
        const block x_k = load(x + k);
        block sum = load(stress + k);
        for (int j = 0, at = n + k; j < n && j < k + 8; at += n - j - 1, ++j) {
            block pair = load(stress + at);  // of j and k
            if (j >= k)
                pair = pair * load(mask + 8 - j + k);
            sum += pair * x[j];
            partial[j] += pair * x_k;
        }
        store(sums + k, sum);
    }
    for (int j = 0; j < n; j += 8)
        add(sums + j, totals(partial + j));
    for (int j = 0; j < n; ++j)
        to[j] += sums[j];
}

// Sixteen columns of Zᵀ𝒦 of (3) in row j, from column `start` on. That part of 𝒦 stays in the nearest cache. The last
// columns may be beyond the strains.
LISSOM_INLINE void put_tangent_columns(
    int n, int wide, const double* K, const double* x, int j, int start, double* to
) {
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
}

}  // namespace lissom

// tau += f of (2).
LISSOM_INLINE void add_strain_force(
    array<double> number, int first, int n, int q_start, int v_start, int i, array<double> q, array<double> v,
    array<double> tau
) {
    const double *at_q = row(q, i) + q_start, *at_v = row(v, i) + v_start;
    double* to = row(tau, i) + v_start;
    const int count = n + n * (n + 1) / 2, wide = whole_registers(count);
    const double* K = row(number, 0) + first + HEAD;
    const double eta = K[-HEAD];
    double strain[STRAIN_ROOM], stress[STRAIN_ROOM];
    double x[COORDINATE_ROOM] = {}, y[COORDINATE_ROOM] = {}, w[COORDINATE_ROOM] = {};
    put_motion(n, at_q, at_v, eta, x, y, w);
    put_strains(n, count, wide, x, y, w, strain);
    put_stresses(wide, K, strain, stress);
    add_projected<COORDINATE_ROOM>(n, x, stress, to);
}

// U of (1).
LISSOM_INLINE double strain_energy(array<double> number, int first, int n, int q_start, int i, array<double> q) {
    const double *at_q = row(q, i) + q_start, *at_v = at_q;
    const int count = n + n * (n + 1) / 2, wide = whole_registers(count);
    const double* K = row(number, 0) + first + HEAD;
    const double eta = 0.0;
    double strain[STRAIN_ROOM], stress[STRAIN_ROOM];
    double x[COORDINATE_ROOM] = {}, y[COORDINATE_ROOM] = {}, w[COORDINATE_ROOM] = {};
    put_motion(n, at_q, at_v, eta, x, y, w);
    put_strains(n, count, wide, x, y, w, strain);
    put_stresses(wide, K, strain, stress);
    double total = 0.0;
    for (int r = 0; r < count; ++r)
        total += 0.5 * strain[r] * stress[r];
    return total;
}

// out += by_q ∂f/∂θ + by_v ∂f/∂θ̇ of (3), out in rows of `width`.
LISSOM_INLINE void add_strain_stiffness(
    array<double> number, int first, int n, int q_start, int v_start, int width, int i, array<double> q,
    array<double> v, double by_q, double by_v, array<double> out
) {
    const double *at_q = row(q, i) + q_start, *at_v = row(v, i) + v_start;
    const int count = n + n * (n + 1) / 2, wide = whole_registers(count);
    const double* K = row(number, 0) + first + HEAD;
    const double eta = K[-HEAD];
    double strain[STRAIN_ROOM], stress[STRAIN_ROOM];
    if (by_q == 0.0 && eta == 0.0)
        return;
    double x[COORDINATE_ROOM] = {}, y[COORDINATE_ROOM] = {}, w[COORDINATE_ROOM] = {};
    put_motion(n, at_q, at_v, eta, x, y, w);
    const double linear = by_q + eta * by_v;
    const bool is_symmetric = by_q * eta == 0.0;
    double z[MOST_COORDINATES], tangent[16], sum[MOST_COORDINATES * MOST_COORDINATES];
    for (int j = 0; j < n; ++j)
        z[j] = linear * x[j] + by_q * y[j];
    for (int r = 0; r < n * n; ++r)
        sum[r] = 0.0;
    // The symmetric part, all but the change of viscous stresses, is computed at and left of the diagonal, k ≤ j. Pairs
    // whose smaller member is larger than j do not contribute.
    for (int start = 0, k = 0, m = 0; start < wide; start += 16) {
        const int stop = start + 16 < count ? start + 16 : count, first_k = k, first_m = m;
        for (int j = is_symmetric ? first_k : 0; j < n; ++j) {
            double* to = sum + n * j;
            put_tangent_columns(n, wide, K, x, j, start, tangent);
            int c = start;
            for (; c < n && c < stop; ++c)
                to[c] += linear * tangent[c - start];
            for (k = first_k, m = first_m; c < stop;) {  // pairs (k, m) up to the last m, or the last column
                const int here = stop - c < n - m ? stop - c : n - m;
                const double* from = tangent + c - start;
                const bool is_square = m == k;
                double sum_k = is_square ? from[0] * z[k] : 0.0;
                for (int e = is_square; e < here; ++e) {
                    sum_k += from[e] * z[m + e];
                    to[m + e] += from[e] * z[k];
                }
                to[k] += sum_k;
                c += here;
                m += here;
                if (m == n)
                    m = ++k;
            }
        }
    }
    double* to = row(out, i) + size_t(v_start) * width + v_start;
    for (int j = 0; j < n; ++j)
        for (int k = 0; k < n; ++k)
            to[size_t(j) * width + k] += is_symmetric && k > j ? sum[n * k + j] : sum[n * j + k];
    if (by_q == 0.0)
        return;
    put_strains(n, count, wide, x, y, w, strain);
    put_stresses(wide, K, strain, stress);
    for (int j = 0, pair = n; j < n; pair += n - j, ++j, to += width) {
        to[j] += by_q * stress[pair];
        for (int k = j + 1; k < n; ++k) {
            to[k] += by_q * stress[pair + k - j];
            to[size_t(k - j) * width + j] += by_q * stress[pair + k - j];
        }
    }
}

// tau += the change of (2) along (dq, dv).
LISSOM_INLINE void add_strain_change(
    array<double> number, int first, int n, int q_start, int v_start, int i, array<double> q, array<double> v,
    array<double> dq, array<double> dv, array<double> tau
) {
    const double *at_q = row(q, i) + q_start, *at_v = row(v, i) + v_start;
    const double *dx = row(dq, i) + v_start, *dy = row(dv, i) + v_start;
    double* to = row(tau, i) + v_start;
    const int count = n + n * (n + 1) / 2, wide = whole_registers(count);
    const double* K = row(number, 0) + first + HEAD;
    const double eta = K[-HEAD];
    double strain[STRAIN_ROOM], stress[STRAIN_ROOM];
    double x[COORDINATE_ROOM] = {}, y[COORDINATE_ROOM] = {}, w[COORDINATE_ROOM] = {};
    put_motion(n, at_q, at_v, eta, x, y, w);
    put_strains(n, count, wide, x, y, w, strain);
    put_stresses(wide, K, strain, stress);
    for (int j = 0, at = n; j < n; ++j) {
        to[j] += stress[at++] * dx[j];
        for (int k = j + 1; k < n; ++k, ++at) {
            to[j] += stress[at] * dx[k];
            to[k] += stress[at] * dx[j];
        }
    }
    for (int j = 0, at = n; j < n; ++j) {
        strain[j] = dx[j] + eta * dy[j];
        strain[at++] = w[j] * dx[j] + eta * x[j] * dy[j];
        for (int k = j + 1; k < n; ++k)
            strain[at++] = w[j] * dx[k] + dx[j] * w[k] + eta * (x[j] * dy[k] + dy[j] * x[k]);
    }
    put_stresses(wide, K, strain, stress);
    add_projected<COORDINATE_ROOM>(n, x, stress, to);
}
