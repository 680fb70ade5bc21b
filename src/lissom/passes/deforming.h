// Integrals over deformable bodies as weighted sums of rows of constants. Equations are those of the Python module
// passes/deforming. A 3x3 matrix has nine numbers, row by row.

// c, P, c_j and P_j of (9) for body b, whose first coordinate in q is `first`.
LISSOM_INLINE void integrate_positions(
    const Tables& t, const Scratch& s, int b, int first, int n, int i, array<double> q
) {
    const int at = t.deforming.column_start.data[b], pair = t.deforming.pair_start.data[b];
    const double* x = row(q, i) + first;
    const double* P0_j = (const double*)(t.deforming.P0_j.data + at);
    const double* c_j = (const double*)(t.deforming.c_j.data + at);
    double* P_j = (double*)(row(s.deforming.P_j, i) + at);
    // P_j of (9)
    put_weighted_rows(n, 9 * n, x, (const double*)(t.deforming.Q.data + pair), P0_j, P_j);
    double* own_c_j = (double*)(row(s.deforming.c_j, i) + at);
    const double* c_0 = (const double*)(t.deforming.c_0.data + b);
    double last = 0.0, c0 = c_0[0], c1 = c_0[1], c2 = c_0[2], sums[8], turned[8];
    block sum = {}, other = {};  // Σ θ_j P_j and Σ θ_j ∫ρ x φ_jᵀ without their last elements, which are in `last`
    for (int j = 0; j < n; ++j) {
        const double x_j = x[j];
        sum += load(P_j + 9 * j) * x_j;
        other += load(P0_j + 9 * j) * x_j;
        last += x_j * (P_j[9 * j + 8] + P0_j[9 * j + 8]);
        c0 += x_j * (own_c_j[3 * j] = c_j[3 * j]);
        c1 += x_j * (own_c_j[3 * j + 1] = c_j[3 * j + 1]);
        c2 += x_j * (own_c_j[3 * j + 2] = c_j[3 * j + 2]);
    }
    store(sums, sum);
    store(turned, other);
    double* P = (double*)(row(s.deforming.P, i) + b);
    const double* P_0 = (const double*)(t.deforming.P_0.data + b);
    // P = P_0 + Σ θ_j (P_j + (∫ρ x φ_jᵀ)ᵀ)
    for (int r = 0; r < 8; ++r)
        P[r] = P_0[r] + sums[r] + turned[3 * (r % 3) + r / 3];
    P[8] = P_0[8] + last;
    double* c = (double*)(row(s.deforming.c, i) + b);
    c[0] = c0;
    c[1] = c1;
    c[2] = c2;
}

// All of (9) and (11) of body b, whose first coordinates in q and v are `first_q` and `first`.
//
// pair_rows (model/maps) has, for each eight coordinates, blocks of eight numbers: three of ∫ρ φ_j, then nine of
// ∫ρ x φ_jᵀ and nine of ∫ρ φ_k φ_jᵀ for each k, six of which are the symmetric part (xx, yy, zz, xy, xz, yz) and three
// the cross product. `total` sums blocks over all coordinates, `part` sums blocks of the present eight.
LISSOM_INLINE void integrate_rates(
    const Tables& t, const Scratch& s, int b, int first_q, int first, int n, int i, array<double> q, array<double> v,
    array<double> a
) {
    const int at = t.deforming.column_start.data[b];
    const double* from = t.deforming.pair_rows.data + t.deforming.pair_row_start.data[b];
    const double *x = row(q, i) + first_q, *y = row(v, i) + first, *z = row(a, i) + first;
    double* P_j = (double*)(row(s.deforming.P_j, i) + at);
    double* w_j = (double*)(row(s.deforming.w_j, i) + at);
    double* c_j = (double*)(row(s.deforming.c_j, i) + at);
    double* e_j = row(s.deforming.e, i) + at;
    enum { OF_P = 0, OF_PI = 6, OF_TURN = 12, OF_B = 15, OF_C = 18, OF_C_DOT = 21, OF_C_DDOT = 24 };  // in `total`
    block total[32] = {};
    for (int k = 0; k < n; k += 8) {
        const int here = n - k < 8 ? n - k : 8;
        double part[12][8] = {};
        for (int r = 0; r < here; ++r) {
            part[0][r] = x[k + r];
            part[1][r] = y[k + r];
            part[2][r] = z[k + r];
        }
        const block X = load(part[0]), Y = load(part[1]), Z = load(part[2]);
        for (int r = 0; r < 3; ++r, from += 8) {
            const block c = load(from);
            // c, ċ and c̈ of (11)
            total[OF_C + r] += c * X;
            total[OF_C_DOT + r] += c * Y;
            total[OF_C_DDOT + r] += c * Z;
            for (int j = 0; j < here; ++j)
                c_j[3 * (k + j) + r] = from[j];
        }
        block p0 = load(from), p1 = load(from + 8), p2 = load(from + 16), p3 = load(from + 24), p4 = load(from + 32);
        block p5 = load(from + 40), p6 = load(from + 48), p7 = load(from + 56), p8 = load(from + 64);
        total[OF_P] += p0 * X;
        total[OF_P + 1] += p1 * X;
        total[OF_P + 2] += p2 * X;
        total[OF_P + 3] += p3 * X;
        total[OF_P + 4] += p4 * X;
        total[OF_P + 5] += p5 * X;
        from += 72;
        block w0 = {}, w1 = {}, w2 = {}, e = {};
        for (int j = 0; j < n; ++j, from += 72) {
            const double x_j = x[j], y_j = y[j];
            block trace = load(from);
            const block yy = load(from + 8), zz = load(from + 16);
            p0 += trace * x_j;
            p1 += yy * x_j;
            p2 += zz * x_j;
            trace += yy;
            trace += zz;
            e += trace * z[j];  // e_j of (9)
            p3 += load(from + 24) * x_j;
            p4 += load(from + 32) * x_j;
            p5 += load(from + 40) * x_j;
            const block across0 = load(from + 48), across1 = load(from + 56), across2 = load(from + 64);
            p6 += across0 * x_j;
            p7 += across1 * x_j;
            p8 += across2 * x_j;
            w0 += across0 * y_j;  // w_j of (9)
            w1 += across1 * y_j;
            w2 += across2 * y_j;
        }
        const block p[9] = {p0, p1, p2, p3, p4, p5, p6, p7, p8};
        for (int r = 0; r < 6; ++r) {
            total[OF_P + r] += p[r] * X;
            total[OF_PI + r] += p[r] * Y;
        }
        for (int r = 6; r < 9; ++r) {
            total[OF_TURN + r - 6] += p[r] * Y;
            total[OF_B + r - 6] += p[r] * Z;  // b of (11)
        }
        for (int r = 0; r < 6; ++r)
            store(part[r], p[r]);
        for (int r = 6; r < 9; ++r)
            store(part[r], p[r] * 0.5);
        store(part[9], w0);
        store(part[10], w1);
        store(part[11], w2);
        for (int j = 0; j < here; ++j) {
            // P_j and w_j of (9), from their symmetric parts and their cross products
            double *to = P_j + 9 * (k + j), *w = w_j + 3 * (k + j);
            to[0] = part[0][j];
            to[1] = part[3][j] + part[8][j];
            to[2] = part[4][j] - part[7][j];
            to[3] = part[3][j] - part[8][j];
            to[4] = part[1][j];
            to[5] = part[5][j] + part[6][j];
            to[6] = part[4][j] + part[7][j];
            to[7] = part[5][j] - part[6][j];
            to[8] = part[2][j];
            w[0] = part[9][j];
            w[1] = part[10][j];
            w[2] = part[11][j];
        }
        store(part[0], e);
        for (int j = 0; j < here; ++j)
            e_j[k + j] = part[0][j];
    }
    double sums[32];
    for (int r = 0; r < 32; r += 8)
        store(sums + r, totals(total + r));
    const int place[9] = {0, 3, 4, 3, 1, 5, 4, 5, 2};  // among the symmetric parts
    const double* P_0 = (const double*)(t.deforming.P_0.data + b);
    double* P = (double*)(row(s.deforming.P, i) + b);
    double* Pi = (double*)(row(s.deforming.Pi, i) + b);
    for (int r = 0; r < 9; ++r) {
        P[r] = P_0[r] + sums[OF_P + place[r]];
        Pi[r] = sums[OF_PI + place[r]];
    }
    // the skew part of Π of (11)
    Pi[5] += 0.5 * sums[OF_TURN];
    Pi[7] -= 0.5 * sums[OF_TURN];
    Pi[6] += 0.5 * sums[OF_TURN + 1];
    Pi[2] -= 0.5 * sums[OF_TURN + 1];
    Pi[1] += 0.5 * sums[OF_TURN + 2];
    Pi[3] -= 0.5 * sums[OF_TURN + 2];
    const double* c_0 = (const double*)(t.deforming.c_0.data + b);
    double* c = (double*)(row(s.deforming.c, i) + b);
    double* c_dot = (double*)(row(s.deforming.c_dot, i) + b);
    double* c_ddot = (double*)(row(s.deforming.c_ddot, i) + b);
    double* moment = (double*)(row(s.deforming.b, i) + b);
    for (int r = 0; r < 3; ++r) {
        c[r] = c_0[r] + sums[OF_C + r];
        c_dot[r] = sums[OF_C_DOT + r];
        c_ddot[r] = sums[OF_C_DDOT + r];
        moment[r] = sums[OF_B + r];
    }
}

// (11) for a body whose points are not linear in θ; P_j, c_j and the parts with J̇θ̇ are known.
LISSOM_INLINE void integrate_motion(
    const Tables& t, const Scratch& s, int b, int first, int n, int i, array<double> v, array<double> a
) {
    const int at = t.deforming.column_start.data[b];
    const double* c_j = (const double*)(row(s.deforming.c_j, i) + at);
    const double* P_j = (const double*)(row(s.deforming.P_j, i) + at);
    const double *y = row(v, i) + first, *z = row(a, i) + first;
    const double* c_v = (const double*)(row(s.deforming.c_v, i) + b);
    double y0 = 0.0, y1 = 0.0, y2 = 0.0, z0 = c_v[0], z1 = c_v[1], z2 = c_v[2], last = 0.0, turned[8];
    block Pi = {}, sum = {};
    for (int j = 0; j < n; ++j) {
        const double y_j = y[j], z_j = z[j];
        const block P = load(P_j + 9 * j);
        // Π, ċ and c̈ of (11)
        Pi += P * y_j;
        sum += P * z_j;
        last += y_j * P_j[9 * j + 8];
        y0 += y_j * c_j[3 * j];
        y1 += y_j * c_j[3 * j + 1];
        y2 += y_j * c_j[3 * j + 2];
        z0 += z_j * c_j[3 * j];
        z1 += z_j * c_j[3 * j + 1];
        z2 += z_j * c_j[3 * j + 2];
    }
    double* to = (double*)(row(s.deforming.Pi, i) + b);
    store(to, Pi);
    to[8] = last;
    to = (double*)(row(s.deforming.c_dot, i) + b);
    to[0] = y0;
    to[1] = y1;
    to[2] = y2;
    to = (double*)(row(s.deforming.c_ddot, i) + b);
    to[0] = z0;
    to[1] = z1;
    to[2] = z2;
    store(turned, sum);
    const double* b_v = (const double*)(row(s.deforming.b_v, i) + b);
    to = (double*)(row(s.deforming.b, i) + b);
    // b of (11)
    to[0] = b_v[0] + turned[5] - turned[7];
    to[1] = b_v[1] + turned[6] - turned[2];
    to[2] = b_v[2] + turned[1] - turned[3];
}

// Generalised forces (3) of the coordinates of body b: c_j·a + A : P_j + 2 ω·w_j + e_j, with A of `turning`.
LISSOM_INLINE void put_inertial_forces(
    const Tables& t, const Scratch& s, int b, int n, int i, vec3 acc, vec3 w, mat3 A
) {
    const int at = t.deforming.column_start.data[b];
    const double* c_j = (const double*)(row(s.deforming.c_j, i) + at);
    const double* P_j = (const double*)(row(s.deforming.P_j, i) + at);
    const double* w_j = (const double*)(row(s.deforming.w_j, i) + at);
    const double *e_j = row(s.deforming.e, i) + at;
    double* to = row(s.deforming.inertial, i) + at;
    const double a0 = acc.c[0], a1 = acc.c[1], a2 = acc.c[2], w0 = 2.0 * w.c[0], w1 = 2.0 * w.c[1], w2 = 2.0 * w.c[2];
    const double A0 = A.data[0][0], A1 = A.data[0][1], A2 = A.data[0][2], A3 = A.data[1][0], A4 = A.data[1][1];
    const double A5 = A.data[1][2], A6 = A.data[2][0], A7 = A.data[2][1], A8 = A.data[2][2];
    for (int j = 0; j < n; ++j) {
        const double *c = c_j + 3 * j, *P = P_j + 9 * j, *x = w_j + 3 * j;
        to[j] = (e_j[j] + a0 * c[0] + a1 * c[1] + a2 * c[2]) + (w0 * x[0] + w1 * x[1] + w2 * x[2])
            + (A0 * P[0] + A1 * P[1] + A2 * P[2] + A3 * P[3])
            + (A4 * P[4] + A5 * P[5] + A6 * P[6] + A7 * P[7] + A8 * P[8]);
    }
}

// ∂Π/∂θ_j and ∂b/∂θ_j of (10) of body b, whose first coordinate in v is `first`.
LISSOM_INLINE void integrate_slopes(
    const Tables& t, const Scratch& s, int b, int first, int n, int i, array<double> v, array<double> a
) {
    const int at = t.deforming.column_start.data[b], pair = t.deforming.pair_start.data[b];
    double* Pi_q = (double*)(row(s.deforming.Pi_q, i) + at);
    double* b_q = (double*)(row(s.deforming.b_q, i) + at);
    // (10), Π before it is transposed and b with the opposite sign
    put_weighted_rows(n, 9 * n, row(v, i) + first, (const double*)(t.deforming.Q.data + pair), nullptr, Pi_q);
    put_weighted_rows(n, 3 * n, row(a, i) + first, (const double*)(t.deforming.Q_cross.data + pair), nullptr, b_q);
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
}

// out[j, e] += by_q A : ∂P_j/∂θ_e + by_v 2 w·∂w_j/∂θ̇_e + by_a ∂e_j/∂θ̈_e of body b, out in rows of `width`.
LISSOM_INLINE void add_own_block(
    const Tables& t, int b, int first, int n, int width, int i, mat3 A, vec3 w, double by_q, double by_v, double by_a,
    array<double> out
) {
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
        // ∂e_j/∂θ̈_e = ∫ρ φ_j·φ_e
        if (by_a != 0.0)
            for (int e = 0; e < n; ++e)
                to[e] += by_a * Q_dot[n * j + e];
        // ∂w_j/∂θ̇_e = ∫ρ φ_e×φ_j
        if (by_v != 0.0)
            for (int e = 0; e < n; ++e) {
                const double* from = Q_cross + 3 * (n * j + e);
                to[e] += x * from[0] + y * from[1] + z * from[2];
            }
        // ∂P_j/∂θ_e = ∫ρ φ_e φ_jᵀ
        if (by_q != 0.0)
            for (int e = 0; e < n; ++e) {
                const double* from = Q + 9 * (n * j + e);
                to[e] += (turn[0] * from[0] + turn[1] * from[1] + turn[2] * from[2])
                    + (turn[3] * from[3] + turn[4] * from[4] + turn[5] * from[5])
                    + (turn[6] * from[6] + turn[7] * from[7] + turn[8] * from[8]);
            }
    }
}

// The integrals of body b at θ and θ̇ by its native function (bodies/native_code): the tables of c to D.
LISSOM_INLINE void call_values(const Tables& t, const Scratch& s, int b, int i) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const int at = t.deforming.column_start.data[b], pair = t.deforming.pair_start.data[b];
    const double* in[] = {
        row(s.deforming.theta, i) + at, row(s.deforming.theta_dot, i) + at,
        t.deforming.points.data + t.deforming.points_start.data[b]
    };
    double* out[] = {
        (double*)(row(s.deforming.c, i) + b), (double*)(row(s.deforming.P, i) + b),
        (double*)(row(s.deforming.c_j, i) + at), (double*)(row(s.deforming.P_j, i) + at),
        row(s.deforming.M, i) + pair, (double*)(row(s.deforming.c_v, i) + b),
        (double*)(row(s.deforming.b_v, i) + b), (double*)(row(s.deforming.w_j, i) + at),
        row(s.deforming.e_v, i) + at, row(s.deforming.energy, i) + b, row(s.deforming.force, i) + at,
        row(s.deforming.D, i) + pair
    };
    (*(const Function*)t.deforming.values_function.data[b])(in, out);
#endif
}

// The derivatives of the integrals of body b at θ, θ̇ and θ̈ by its native function: the tables of c_q to K.
LISSOM_INLINE void call_derivatives(const Tables& t, const Scratch& s, int b, int i) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const int at = t.deforming.column_start.data[b], pair = t.deforming.pair_start.data[b];
    const double* in[] = {
        row(s.deforming.theta, i) + at, row(s.deforming.theta_dot, i) + at,
        t.deforming.points.data + t.deforming.points_start.data[b], row(s.deforming.theta_ddot, i) + at
    };
    double* out[] = {
        (double*)(row(s.deforming.c_q, i) + at), (double*)(row(s.deforming.b_q, i) + at),
        row(s.deforming.e_q, i) + pair, (double*)(row(s.deforming.c_jl, i) + pair),
        (double*)(row(s.deforming.P_jl, i) + pair), (double*)(row(s.deforming.w_q, i) + pair),
        (double*)(row(s.deforming.c_qdot, i) + at), (double*)(row(s.deforming.b_qdot, i) + at),
        row(s.deforming.e_qdot, i) + pair, (double*)(row(s.deforming.w_qdot, i) + pair), row(s.deforming.K, i) + pair
    };
    (*(const Function*)t.deforming.derivatives_function.data[b])(in, out);
#endif
}
