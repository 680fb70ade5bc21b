// Derivatives of an interval exp(Ω) by its two strains, and its wrench, for several nodes at once: T is a number, or one
// number of each of eight nodes. Equations are those of the Python module passes/interval.

namespace lissom {

// Numbers of several nodes, and their count: threads of CUDA take one node each.
#if defined(__CUDACC__) || defined(__CUDA_ARCH__)
typedef double lanes;
enum { LANES = 1 };
#else
typedef block lanes;
enum { LANES = 8 };
LISSOM_INLINE double& lane(block& x, int n) {
    return ((double*)&x)[n];
}
#endif

// The number of lane n; a plain number has one lane.
LISSOM_INLINE double& lane(double& x, int) {
    return x;
}

template <typename T>
struct three {
    T c[3];
};

template <typename T>
struct nine {
    T c[3][3];
};

// [[A, 0], [B, A]]
template <typename T>
struct operator_pair {
    nine<T> A, B;
};

template <typename T>
LISSOM_INLINE three<T> operator+(const three<T>& a, const three<T>& b) {
    return {{a.c[0] + b.c[0], a.c[1] + b.c[1], a.c[2] + b.c[2]}};
}

template <typename T>
LISSOM_INLINE three<T> operator-(const three<T>& a, const three<T>& b) {
    return {{a.c[0] - b.c[0], a.c[1] - b.c[1], a.c[2] - b.c[2]}};
}

template <typename T>
LISSOM_INLINE three<T> scaled(T x, const three<T>& a) {
    return {{x * a.c[0], x * a.c[1], x * a.c[2]}};
}

template <typename T>
LISSOM_INLINE T dot(const three<T>& a, const three<T>& b) {
    return a.c[0] * b.c[0] + a.c[1] * b.c[1] + a.c[2] * b.c[2];
}

template <typename T>
LISSOM_INLINE three<T> cross(const three<T>& a, const three<T>& b) {
    return {{a.c[1] * b.c[2] - a.c[2] * b.c[1], a.c[2] * b.c[0] - a.c[0] * b.c[2], a.c[0] * b.c[1] - a.c[1] * b.c[0]}};
}

template <typename T>
LISSOM_INLINE nine<T> operator+(const nine<T>& a, const nine<T>& b) {
    nine<T> y;
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c)
            y.c[r][c] = a.c[r][c] + b.c[r][c];
    return y;
}

template <typename T>
LISSOM_INLINE operator_pair<T> operator+(const operator_pair<T>& a, const operator_pair<T>& b) {
    return {a.A + b.A, a.B + b.B};
}

template <typename T>
LISSOM_INLINE nine<T> scaled(T x, const nine<T>& a) {
    nine<T> y;
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c)
            y.c[r][c] = x * a.c[r][c];
    return y;
}

template <typename T>
LISSOM_INLINE operator_pair<T> scaled(T x, const operator_pair<T>& a) {
    return {scaled(x, a.A), scaled(x, a.B)};
}

template <typename T>
LISSOM_INLINE nine<T> operator*(const nine<T>& a, const nine<T>& b) {
    nine<T> y;
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c)
            y.c[r][c] = a.c[r][0] * b.c[0][c] + a.c[r][1] * b.c[1][c] + a.c[r][2] * b.c[2][c];
    return y;
}

// hat(p) M
template <typename T>
LISSOM_INLINE nine<T> cross_columns(const three<T>& p, const nine<T>& M) {
    nine<T> y;
    for (int c = 0; c < 3; ++c) {
        y.c[0][c] = p.c[1] * M.c[2][c] - p.c[2] * M.c[1][c];
        y.c[1][c] = p.c[2] * M.c[0][c] - p.c[0] * M.c[2][c];
        y.c[2][c] = p.c[0] * M.c[1][c] - p.c[1] * M.c[0][c];
    }
    return y;
}

// M hat(p)
template <typename T>
LISSOM_INLINE nine<T> cross_rows(const nine<T>& M, const three<T>& p) {
    nine<T> y;
    for (int r = 0; r < 3; ++r) {
        y.c[r][0] = M.c[r][1] * p.c[2] - M.c[r][2] * p.c[1];
        y.c[r][1] = M.c[r][2] * p.c[0] - M.c[r][0] * p.c[2];
        y.c[r][2] = M.c[r][0] * p.c[1] - M.c[r][1] * p.c[0];
    }
    return y;
}

// i I − hat(a)
template <typename T>
LISSOM_INLINE nine<T> diagonal_less(T i, const three<T>& a) {
    return {{{i, a.c[2], -a.c[1]}, {-a.c[2], i, a.c[0]}, {a.c[1], -a.c[0], i}}};
}

// M += a bᵀ
template <typename T>
LISSOM_INLINE void add_outer(nine<T>& M, const three<T>& a, const three<T>& b) {
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c)
            M.c[r][c] += a.c[r] * b.c[c];
}

// M += a bᵀ + b aᵀ
template <typename T>
LISSOM_INLINE void add_symmetric(nine<T>& M, const three<T>& a, const three<T>& b) {
    for (int r = 0; r < 3; ++r)
        for (int c = r; c < 3; ++c) {
            const T y = a.c[r] * b.c[c] + b.c[r] * a.c[c];
            M.c[r][c] += y;
            if (c > r)
                M.c[c][r] += y;
        }
}

// dc_k/dx of the Stumpff functions of lie/so3 (2) for k = 1, 2, 3; applied to second derivatives it gives the third.
template <typename T>
LISSOM_INLINE void slope(const T* c, T* d) {
    d[1] = 0.5 * (c[3] - c[2]);
    d[2] = c[4] - 0.5 * c[3];
    d[3] = 0.5 * (3.0 * c[5] - c[4]);
}

// d²c_k/dx² for k = 1 … 5.
template <typename T>
LISSOM_INLINE void slope_2(const T* c, T* d) {
    d[1] = 0.25 * (3.0 * (c[5] - c[4]) + c[3]);
    d[2] = 0.25 * (8.0 * c[6] - 5.0 * c[5] + c[4]);
    d[3] = 0.25 * (15.0 * c[7] - 7.0 * c[6] + c[5]);
    d[4] = 0.25 * (24.0 * c[8] - 9.0 * c[7] + c[6]);
    d[5] = 0.25 * (35.0 * c[9] - 11.0 * c[8] + c[7]);
}

// T, Ṫ and T̈ by (6), from Ω = (w; u) and its rates; _e is d/dε, _1 and _2 are d/dt and d²/dt².
template <typename T>
LISSOM_INLINE void tangents(
    const three<T>& w, const three<T>& u, const three<T>& w1, const three<T>& u1, const three<T>& w2,
    const three<T>& u2, const T* c, operator_pair<T>* out
) {
    T d[4], dd[6], ddd[4];
    slope(c, d);
    slope_2(c, dd);
    slope(dd, ddd);
    const T x_e = 2.0 * dot(w, u), x_1 = 2.0 * dot(w, w1), x_2 = 2.0 * (dot(w1, w1) + dot(w, w2));
    const T x_e1 = 2.0 * (dot(w1, u) + dot(w, u1)), x_e2 = 2.0 * (dot(w2, u) + 2.0 * dot(w1, u1) + dot(w, u2));
    T c_e[4], c_1[4], c_2[4], c_e1[4], c_e2[4];
    for (int k = 1; k < 4; ++k) {
        c_e[k] = d[k] * x_e;
        c_1[k] = d[k] * x_1;
        c_2[k] = dd[k] * x_1 * x_1 + d[k] * x_2;
        c_e1[k] = dd[k] * x_e * x_1 + d[k] * x_e1;
        c_e2[k] = ddd[k] * x_e * x_1 * x_1 + dd[k] * (x_e * x_2 + 2.0 * x_1 * x_e1) + d[k] * x_e2;
    }
    const three<T> w_3 = scaled(c[3], w1);
    out[0].A = diagonal_less(c[1], scaled(c[2], w));
    add_outer(out[0].A, scaled(c[3], w), w);
    out[0].B = diagonal_less(c_e[1], scaled(c_e[2], w) + scaled(c[2], u));
    add_symmetric(out[0].B, w, scaled(0.5 * c_e[3], w) + scaled(c[3], u));
    out[1].A = diagonal_less(c_1[1], scaled(c_1[2], w) + scaled(c[2], w1));
    add_symmetric(out[1].A, w, scaled(0.5 * c_1[3], w) + w_3);
    out[1].B = diagonal_less(c_e1[1], scaled(c_e1[2], w) + scaled(c_e[2], w1) + scaled(c_1[2], u) + scaled(c[2], u1));
    add_symmetric(
        out[1].B, w, scaled(0.5 * c_e1[3], w) + scaled(c_e[3], w1) + scaled(c_1[3], u) + scaled(c[3], u1)
    );
    add_symmetric(out[1].B, u, w_3);
    out[2].A = diagonal_less(c_2[1], scaled(c_2[2], w) + scaled(2.0 * c_1[2], w1) + scaled(c[2], w2));
    add_symmetric(out[2].A, w, scaled(0.5 * c_2[3], w) + scaled(2.0 * c_1[3], w1) + scaled(c[3], w2));
    add_symmetric(out[2].A, w1, w_3);
    out[2].B = diagonal_less(
        c_e2[1], scaled(c_e2[2], w) + scaled(2.0 * c_e1[2], w1) + scaled(c_e[2], w2) + scaled(c_2[2], u)
            + scaled(2.0 * c_1[2], u1) + scaled(c[2], u2)
    );
    add_symmetric(
        out[2].B, w, scaled(0.5 * c_e2[3], w) + scaled(2.0 * c_e1[3], w1) + scaled(c_e[3], w2) + scaled(c_2[3], u)
            + scaled(2.0 * c_1[3], u1) + scaled(c[3], u2)
    );
    add_symmetric(out[2].B, w1, scaled(c_e[3], w1) + scaled(2.0 * c_1[3], u) + scaled(2.0 * c[3], u1));
    add_symmetric(out[2].B, u, scaled(c[3], w2));
}

// Ad_(R, p) X
template <typename T>
LISSOM_INLINE operator_pair<T> Ad_block(const nine<T>& R, const three<T>& p, const operator_pair<T>& X) {
    const nine<T> A = R * X.A;
    return {A, cross_columns(p, A) + R * X.B};
}

// ad_(w; u) X
template <typename T>
LISSOM_INLINE operator_pair<T> ad_block(const three<T>& w, const three<T>& u, const operator_pair<T>& X) {
    return {cross_columns(w, X.A), cross_columns(u, X.A) + cross_columns(w, X.B)};
}

// X ad_(w; u)
template <typename T>
LISSOM_INLINE operator_pair<T> block_ad(const operator_pair<T>& X, const three<T>& w, const three<T>& u) {
    return {cross_rows(X.A, w), cross_rows(X.B, w) + cross_rows(X.A, u)};
}

// (half + ad_(−w; −u))ᵀ [[P, Q], [Q, 0]], of the same form.
template <typename T>
LISSOM_INLINE operator_pair<T> turned(T half, const three<T>& w, const three<T>& u, const operator_pair<T>& X) {
    return {
        scaled(half, X.A) + cross_columns(w, X.A) + cross_columns(u, X.B), scaled(half, X.B) + cross_columns(w, X.B)
    };
}

// A node of each lane: Ω, its Stumpff values, its rates, pose, twist and acceleration in the base frame, strains with
// their rates, h/2, κ, and the wrench on it in the base frame.
template <typename T>
struct interval_state {
    three<T> w, u, w1, u1, w2, u2, p, eta_w, eta_u, acc_w, acc_u, xi_w[2], xi_u[2], rate_w[2], rate_u[2], acc_xi_w[2],
        acc_xi_u[2], F_w, F_u;
    nine<T> R;
    T c[10], half, kappa;
};

// The state of the nodes first … stop − 1 in the lanes; spare lanes repeat the last node.
template <typename T, typename Tables, typename Scratch>
LISSOM_INLINE void gather_intervals(
    const Tables& t, const Scratch& s, int i, int first, int stop, const double* v, const double* a,
    interval_state<T>& x
) {
    for (int n = 0; n < int(sizeof(T) / sizeof(double)); ++n) {
        const int k = first + n < stop ? first + n : stop - 1;
        const auto& state = row(s.node, i)[k];
        const auto& table = t.node.data[k];
        auto put = [&](three<T>& to, const double* from) {
            for (int r = 0; r < 3; ++r)
                lane(to.c[r], n) = from[r];
        };
        auto put_both = [&](three<T>& w, three<T>& u, const double* from) {
            put(w, from);
            put(u, from + 3);
        };
        put_both(x.w, x.u, state.Omega.c);
        put_both(x.eta_w, x.eta_u, state.eta.c);
        put_both(x.acc_w, x.acc_u, state.acc.c);
        put_both(x.xi_w[0], x.xi_u[0], state.xi1.c);
        put_both(x.xi_w[1], x.xi_u[1], state.xi2.c);
        put_both(x.F_w, x.F_u, state.F.c);
        put(x.p, state.p.c);
        for (int r = 0; r < 3; ++r)
            put((three<T>&)x.R.c[r], state.R.data[r]);
        for (int k = 1; k < 10; ++k)
            lane(x.c[k], n) = state.stumpff.c[k];
        lane(x.half, n) = 0.5 * table.h;
        lane(x.kappa, n) = table.kappa;
        for (int c = 0; c < 6; ++c) {
            double rates[4] = {};
            const int start = table.run_start.c[c], at = table.run_v.c[c] - start;
            for (int e = start; e < table.run_start.c[c + 1]; ++e) {
                const double p1 = t.runs.phi1.data[e], p2 = t.runs.phi2.data[e];
                rates[0] += p1 * v[at + e];
                rates[1] += p2 * v[at + e];
                rates[2] += p1 * a[at + e];
                rates[3] += p2 * a[at + e];
            }
            for (int point = 0; point < 2; ++point) {
                lane((c < 3 ? x.rate_w : x.rate_u)[point].c[c % 3], n) = rates[point];
                lane((c < 3 ? x.acc_xi_w : x.acc_xi_u)[point].c[c % 3], n) = rates[2 + point];
            }
        }
    }
}

// ẋ of Ω from rates of the strains: (half + κ ad ξ₁) on one side, (half − κ ad ξ₂) on the other.
template <typename T>
LISSOM_INLINE void omega_rate(
    const interval_state<T>& s, const three<T>* dw, const three<T>* du, three<T>& w, three<T>& u
) {
    w = scaled(s.half, dw[0] + dw[1]) + scaled(s.kappa, cross(dw[0], s.xi_w[1]) + cross(s.xi_w[0], dw[1]));
    u = scaled(s.half, du[0] + du[1]) + scaled(
        s.kappa, cross(du[0], s.xi_w[1]) + cross(dw[0], s.xi_u[1]) + cross(s.xi_u[0], dw[1]) + cross(s.xi_w[0], du[1])
    );
}

// S, R + c₁ S and Q + 2 c₁ R + c₀ S of (1)-(3) before Φ₁ and before Φ₂: columns[2 m + point].
template <typename T>
LISSOM_INLINE void interval_columns(interval_state<T>& s, double c0, double c1, operator_pair<T>* columns) {
    omega_rate(s, s.rate_w, s.rate_u, s.w1, s.u1);
    omega_rate(s, s.acc_xi_w, s.acc_xi_u, s.w2, s.u2);
    const T two = 2.0 * s.kappa;
    s.w2 = s.w2 + scaled(two, cross(s.rate_w[0], s.rate_w[1]));
    s.u2 = s.u2 + scaled(two, cross(s.rate_u[0], s.rate_w[1]) + cross(s.rate_w[0], s.rate_u[1]));
    operator_pair<T> tangent[3], D[3];
    tangents(s.w, s.u, s.w1, s.u1, s.w2, s.u2, s.c, tangent);
    D[0] = Ad_block(s.R, s.p, tangent[0]);
    const operator_pair<T> once = Ad_block(s.R, s.p, tangent[1]);
    D[1] = ad_block(s.eta_w, s.eta_u, D[0]) + once;
    D[2] = ad_block(s.acc_w, s.acc_u, D[0]) + ad_block(s.eta_w, s.eta_u, D[1] + once)
        + Ad_block(s.R, s.p, tangent[2]);
    for (int point = 0; point < 2; ++point) {
        const int other = 1 - point;
        const T kappa = point == 0 ? -s.kappa : s.kappa;
        const three<T> w = scaled(kappa, s.xi_w[other]), u = scaled(kappa, s.xi_u[other]);
        const three<T> w1 = scaled(kappa, s.rate_w[other]), u1 = scaled(kappa, s.rate_u[other]);
        const three<T> w2 = scaled(kappa, s.acc_xi_w[other]), u2 = scaled(kappa, s.acc_xi_u[other]);
        const operator_pair<T> S = scaled(s.half, D[0]) + block_ad(D[0], w, u);
        const operator_pair<T> R = scaled(s.half, D[1]) + block_ad(D[1], w, u) + block_ad(D[0], w1, u1);
        const operator_pair<T> Q = scaled(s.half, D[2]) + block_ad(D[2], w, u)
            + block_ad(D[1], scaled(T() + 2.0, w1), scaled(T() + 2.0, u1)) + block_ad(D[0], w2, u2);
        columns[point] = S;
        columns[2 + point] = R + scaled(T() + c1, S);
        columns[4 + point] = Q + scaled(T() + 2.0 * c1, R) + scaled(T() + c0, S);
    }
}

// The blocks [[P, Q], [Q, 0]] between Φ_aᵀ and Φ_b of the local term (5): P and Q of out[2 a + b].
template <typename T>
LISSOM_INLINE void interval_local(const interval_state<T>& s, operator_pair<T>* out) {
    auto seen = [&](const three<T>& a) {
        three<T> y;
        for (int r = 0; r < 3; ++r)
            y.c[r] = s.R.c[0][r] * a.c[0] + s.R.c[1][r] * a.c[1] + s.R.c[2][r] * a.c[2];
        return y;
    };
    const three<T> m = seen(s.F_w - cross(s.p, s.F_u)), n = seen(s.F_u), w = s.w, u = s.u;
    const T* c = s.c;
    T d[4], dd[6];
    slope(c, d);
    slope_2(c, dd);
    const T wm = dot(w, m), wn = dot(w, n), wu = dot(w, u), nu = dot(n, u), two = T() + 2.0;
    const three<T> cross_n = cross(w, n);
    const three<T> radial_m = scaled(two, scaled(d[1], m) + scaled(d[2], cross(w, m)) + scaled(d[3] * wm, w));
    const three<T> radial_n = scaled(two, scaled(d[1], n) + scaled(d[2], cross_n) + scaled(d[3] * wn, w));
    const three<T> radial_2 = scaled(two, scaled(dd[1], n) + scaled(dd[2], cross_n) + scaled(dd[3] * wn, w));
    const three<T> moved = scaled(two, scaled(d[2], cross(u, n)) + scaled(d[3], scaled(wn, u) + scaled(nu, w)));
    nine<T> E1 = diagonal_less(c[3] * (wm + nu) + 2.0 * d[3] * wu * wn, scaled(c[2], m) + scaled(2.0 * wu * d[2], n));
    add_outer(E1, radial_m + scaled(2.0 * wu, radial_2) + moved, w);
    add_outer(E1, w, scaled(c[3], m));
    add_outer(E1, radial_n, u);
    add_outer(E1, scaled(2.0 * wu * d[3], w) + scaled(c[3], u), n);
    nine<T> E2 = diagonal_less(c[3] * wn, scaled(c[2], n));
    add_outer(E2, radial_n, w);
    add_outer(E2, w, scaled(c[3], n));
    const three<T> y_w = scaled(c[1], m) + scaled(c[2], cross(w, m)) + scaled(c[3] * wm, w) + scaled(2.0 * d[1] * wu, n)
        + cross(scaled(2.0 * d[2] * wu, w) + scaled(c[2], u), n) + scaled(2.0 * d[3] * wu * wn + c[3] * nu, w)
        + scaled(c[3] * wn, u);
    const three<T> y_u = scaled(c[1], n) + scaled(c[2], cross_n) + scaled(c[3] * wn, w);
    three<T> z_w[2], z_u[2];
    for (int point = 0; point < 2; ++point) {
        const T kappa = point == 0 ? -s.kappa : s.kappa;
        z_w[point] = scaled(kappa, s.xi_w[1 - point]);
        z_u[point] = scaled(kappa, s.xi_u[1 - point]);
    }
    for (int b = 0; b < 2; ++b) {
        const nine<T> P = scaled(s.half, E1) + cross_rows(E1, z_w[b]) + cross_rows(E2, z_u[b]);
        const nine<T> Q = scaled(s.half, E2) + cross_rows(E2, z_w[b]);
        for (int a = 0; a < 2; ++a) {
            operator_pair<T>& H = out[2 * a + b];
            H = turned<T>(s.half, scaled(T() - 1.0, z_w[a]), scaled(T() - 1.0, z_u[a]), {P, Q});
            if (a == b)
                continue;
            const T kappa = a == 0 ? s.kappa : -s.kappa, none = T();
            H.A = H.A + diagonal_less(none, scaled(kappa, y_w));
            H.B = H.B + diagonal_less(none, scaled(kappa, y_u));
        }
    }
}

}  // namespace lissom

using namespace lissom;
