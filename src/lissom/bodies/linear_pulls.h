// Forces of tendons, chambers and pressures in a body whose points move linearly in θ. Equations are those of the Python
// module bodies/linear_pulls, which writes the tables. A table begins with the number of its pieces and the number n of
// coordinates; then, for each piece of a tendon or triangle of a chamber, its vectors at θ = 0, the number m of
// coordinates that move it, their indices, and the derivative of each entry of the vectors by them.

struct Piece {
    enum { MOST = 9 };
    int count;  // coordinates
    const double *index, *slope, *end;
    double x[MOST];

    // A piece of `size` numbers at θ = q.
    Piece(const double* at, int size, const double* q) {
        count = (int)at[size];
        index = at + size + 1;
        slope = index + count;
        end = slope + size * count;
        for (int r = 0; r < size; ++r) {
            double sum = at[r];
            for (int j = 0; j < count; ++j)
                sum += slope[r * count + j] * q[(int)index[j]];
            x[r] = sum;
        }
    }

    // The rate of number r along θ̇ = v.
    double rate(int r, const double* v) const {
        double sum = 0.0;
        for (int j = 0; j < count; ++j)
            sum += slope[r * count + j] * v[(int)index[j]];
        return sum;
    }
};

static void clear(double* to, int count) {
    for (int k = 0; k < count; ++k)
        to[k] = 0.0;
}

// −L and B of a tendon. in: θ, θ̇, table.
static void length(const double* const* in, double* const* out) {
    const double *table = in[2], *at = table + 2;
    double total = 0.0, *B = out[1];
    clear(B, (int)table[1]);
    for (int k = (int)table[0]; k > 0; --k) {
        const Piece s(at, 3, in[0]);
        const double size = f_sqrt(s.x[0] * s.x[0] + s.x[1] * s.x[1] + s.x[2] * s.x[2]);
        total -= size;
        for (int j = 0; j < s.count; ++j) {
            const double* d = s.slope + j;
            B[(int)s.index[j]] -= (s.x[0] * d[0] + s.x[1] * d[s.count] + s.x[2] * d[2 * s.count]) / size;
        }
        at = s.end;
    }
    out[0][0] = total;
}

// ∂B/∂θ of a tendon.
static void length_slopes(const double* const* in, double* const* out) {
    const double *table = in[2], *at = table + 2;
    const int n = (int)table[1];
    double* B_q = out[0];
    clear(B_q, n * n);
    for (int k = (int)table[0]; k > 0; --k) {
        const Piece s(at, 3, in[0]);
        const int m = s.count;
        const double size = f_sqrt(s.x[0] * s.x[0] + s.x[1] * s.x[1] + s.x[2] * s.x[2]);
        const double t[3] = {s.x[0] / size, s.x[1] / size, s.x[2] / size};
        for (int j = 0; j < m; ++j) {
            const double* d = s.slope + j;
            const double along = t[0] * d[0] + t[1] * d[m] + t[2] * d[2 * m];
            const double across[3] = {d[0] - along * t[0], d[m] - along * t[1], d[2 * m] - along * t[2]};
            double* to = B_q + n * (int)s.index[j];
            for (int l = 0; l < m; ++l) {
                const double* e = s.slope + l;
                to[(int)s.index[l]] -= (across[0] * e[0] + across[1] * e[m] + across[2] * e[2 * m]) / size;
            }
        }
        at = s.end;
    }
}

// The second derivative of −L along θ̇.
static void length_bend(const double* const* in, double* const* out) {
    const double *table = in[2], *at = table + 2;
    double total = 0.0;
    for (int k = (int)table[0]; k > 0; --k) {
        const Piece s(at, 3, in[0]);
        const double size = f_sqrt(s.x[0] * s.x[0] + s.x[1] * s.x[1] + s.x[2] * s.x[2]);
        double square = 0.0, along = 0.0;
        for (int r = 0; r < 3; ++r) {
            const double rate = s.rate(r, in[1]);
            square += rate * rate;
            along += rate * s.x[r] / size;
        }
        total -= (square - along * along) / size;
        at = s.end;
    }
    out[0][0] = total;
}

// y = the products p_b×p_c, p_c×p_a and p_a×p_b of three vectors
static void put_products(const double* p, double* y) {
    for (int c = 0; c < 3; ++c) {
        const double *f = p + 3 * ((c + 1) % 3), *g = p + 3 * ((c + 2) % 3);
        for (int r = 0; r < 3; ++r)
            y[3 * c + r] = f[(r + 1) % 3] * g[(r + 2) % 3] - f[(r + 2) % 3] * g[(r + 1) % 3];
    }
}

// V and B of a chamber. in: θ, θ̇, table.
static void volume(const double* const* in, double* const* out) {
    const double *table = in[2], *at = table + 2;
    double total = 0.0, y[9], *B = out[1];
    clear(B, (int)table[1]);
    for (int k = (int)table[0]; k > 0; --k) {
        const Piece p(at, 9, in[0]);
        put_products(p.x, y);
        total += (p.x[0] * y[0] + p.x[1] * y[1] + p.x[2] * y[2]) / 6.0;
        for (int j = 0; j < p.count; ++j) {
            double sum = 0.0;
            for (int r = 0; r < 9; ++r)
                sum += y[r] * p.slope[r * p.count + j];
            B[(int)p.index[j]] += sum / 6.0;
        }
        at = p.end;
    }
    out[0][0] = total;
}

// z = the change of the products of three vectors p that change by d
static void put_change_of_products(const double* p, const double* d, double* z) {
    for (int c = 0; c < 3; ++c) {
        const int b = 3 * ((c + 1) % 3), a = 3 * ((c + 2) % 3);
        for (int r = 0; r < 3; ++r) {
            const int u = (r + 1) % 3, v = (r + 2) % 3;
            z[3 * c + r] = d[b + u] * p[a + v] - d[b + v] * p[a + u] + p[b + u] * d[a + v] - p[b + v] * d[a + u];
        }
    }
}

// ∂B/∂θ of a chamber.
static void volume_slopes(const double* const* in, double* const* out) {
    const double *table = in[2], *at = table + 2;
    const int n = (int)table[1];
    double d[9], z[9], *B_q = out[0];
    clear(B_q, n * n);
    for (int k = (int)table[0]; k > 0; --k) {
        const Piece p(at, 9, in[0]);
        for (int j = 0; j < p.count; ++j) {
            for (int r = 0; r < 9; ++r)
                d[r] = p.slope[r * p.count + j];
            put_change_of_products(p.x, d, z);
            double* to = B_q + n * (int)p.index[j];
            for (int l = 0; l < p.count; ++l) {
                double sum = 0.0;
                for (int r = 0; r < 9; ++r)
                    sum += z[r] * p.slope[r * p.count + l];
                to[(int)p.index[l]] += sum / 6.0;
            }
        }
        at = p.end;
    }
}

// The second derivative of V along θ̇.
static void volume_bend(const double* const* in, double* const* out) {
    const double *table = in[2], *at = table + 2;
    double total = 0.0, d[9], z[9];
    for (int k = (int)table[0]; k > 0; --k) {
        const Piece p(at, 9, in[0]);
        for (int r = 0; r < 9; ++r)
            d[r] = p.rate(r, in[1]);
        put_change_of_products(p.x, d, z);
        for (int r = 0; r < 9; ++r)
            total += z[r] * d[r] / 6.0;
        at = p.end;
    }
    out[0][0] = total;
}

// p and ∂p/∂θ of the vertices of a surface, in the order of passes/pulls.h: for each four vertices the three entries of
// p, then those of ∂p/∂θ_j. The table has the same numbers at θ = 0 in this order.
static void vertices(const double* const* in, double* const* out) {
    const double *table = in[2], *at = table + 2, *q = in[0];
    const int n = (int)table[1], width = 4 * (3 + 3 * n);
    double* to = out[0];
    for (int k = (int)table[0]; k > 0; --k, at += width, to += width) {
        __builtin_memcpy(to, at, width * sizeof(double));
        for (int j = 0; j < n; ++j)
            for (int e = 0; e < 12; ++e)
                to[e] += at[12 + 12 * j + e] * q[j];
    }
}

// Vertices that move linearly have no second derivatives.
static void no_bend_of_vertices(const double* const* in, double* const* out) {
    const int n = (int)in[2][1];
    clear(out[0], n * n);
}
