// Elastic and viscous forces of a deformable body whose points move linearly in θ, as sums over the points of its
// quadrature. Equations are those of the Python module bodies/point_elasticity. This code stands in a struct with two
// functions of the material law,
//
//     law_values(in, row, sum): W, and P = ∂W/∂F + P_v, of F and Ḟ in `row` and the constants in[2], for some points
//     law_slopes(in, row, sum): ∂P/∂F and ∂P/∂Ḟ
//
// A table holds the number of points, the number of constants, whether the material is damped, and the constants; then
// for each point its weight w, the number m of coordinates that move it, their indices, and 9 rows ∂F_ab/∂θ with m
// numbers, padded with zeros to whole blocks. `points_table` of the Python module writes it.

typedef double block __attribute__((vector_size(64), aligned(8), may_alias));
enum { MOST_COLUMNS = 608 };

static inline block load(const double* from) {
    return *(const block*)from;
}

static inline void store(double* to, block y) {
    *(block*)to = y;
}

static inline double total(block y) {
    const auto half = __builtin_shufflevector(y, y, 0, 1, 2, 3) + __builtin_shufflevector(y, y, 4, 5, 6, 7);
    const auto quarter = __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);
    return quarter[0] + quarter[1];
}

struct Point {
    double weight;
    int count, wide;  // coordinates, also padded
    bool is_run;      // whether the coordinates follow each other
    const double *index, *slope, *end;

    void read(const double* at) {
        weight = at[0];
        count = (int)at[1];
        wide = (count + 7) / 8 * 8;
        index = at + 2;
        is_run = (int)index[count - 1] - (int)index[0] == count - 1;
        slope = index + count;
        end = slope + 9 * wide;
    }

    int first() const { return (int)index[0]; }

    // Σ ∂F_ab/∂θ_j x_j
    void put_change(const double* x, double* F) const {
        double own[MOST_COLUMNS];
        for (int j = count; j < wide; ++j)
            own[j] = 0.0;
        if (is_run)
            __builtin_memcpy(own, x + first(), count * sizeof(double));
        else
            for (int j = 0; j < count; ++j)
                own[j] = x[(int)index[j]];
        for (int r = 0; r < 9; ++r) {
            block sum = {};
            for (int j = 0; j < wide; j += 8)
                sum += load(slope + r * wide + j) * load(own + j);
            F[r] = total(sum);
        }
    }

    // f_j += Σ P_ab ∂F_ab/∂θ_j
    void add_force(const double* P, double* f) const {
        for (int j = 0; j < wide; j += 8) {
            block sum = load(slope + j) * P[0];
            for (int r = 1; r < 9; ++r)
                sum += load(slope + r * wide + j) * P[r];
            const int stop = count - j < 8 ? count - j : 8;
            for (int e = 0; e < stop; ++e)
                f[(int)index[j + e]] += sum[e];
        }
    }

    // K_jl += Σ ∂F_ab/∂θ_j A_abcd ∂F_cd/∂θ_l, K in rows of `width`
    void add_stiffness(const double* A, int width, double* K) const {
        double T[9 * MOST_COLUMNS];
        for (int r = 0; r < 9; ++r)
            for (int j = 0; j < wide; j += 8) {
                block sum = load(slope + j) * A[9 * r];
                for (int s = 1; s < 9; ++s)
                    sum += load(slope + s * wide + j) * A[9 * r + s];
                store(T + r * wide + j, sum);
            }
        for (int j = 0; j < count; ++j) {
            double* to = K + (long long)index[j] * width;
            for (int l = 0; l < wide; l += 8) {
                block sum = load(T + l) * slope[j];
                for (int r = 1; r < 9; ++r)
                    sum += load(T + r * wide + l) * slope[r * wide + j];
                if (is_run && l + 8 <= count)
                    store(to + first() + l, load(to + first() + l) + sum);
                else
                    for (int e = 0; e < 8 && l + e < count; ++e)
                        to[(int)index[l + e]] += sum[e];
            }
        }
    }
};

// Points of a body, LANES at a time: F and Ḟ, and the results of the law. The last ones may repeat a point.
struct Points {
    enum { LANES = sizeof(vector) / sizeof(double) };
    vector moved[18];
    Point point[LANES];
    int count;  // of the points of this group, those that are no repetition
    int left;
    bool is_damped;
    const double *at, *in[3];

    explicit Points(const double* table) {
        left = (int)table[0];
        is_damped = table[2] != 0.0;
        in[0] = in[1] = nullptr;
        in[2] = table + 4;
        at = in[2] + (int)table[1];
    }

    // The next points at θ = q and θ̇ = v; false behind the last one.
    bool next(const double* q, const double* v) {
        if (left == 0)
            return false;
        count = left < LANES ? left : LANES;
        left -= count;
        double own[18] = {};
        for (int k = 0; k < LANES; ++k) {
            if (k < count) {
                point[k].read(at);
                at = point[k].end;
                point[k].put_change(q, own);
                own[0] += 1.0;
                own[4] += 1.0;
                own[8] += 1.0;
                if (is_damped)
                    point[k].put_change(v, own + 9);
            }
            for (int r = 0; r < 18; ++r)
                moved[r][k] = own[r];
        }
        return true;
    }
};

// f += the force; U. in: θ, θ̇, table. out: f, which may be null, and U.
static void forces(const double* const* in, double* const* out) {
    Points x(in[2]);
    double energy = 0.0, P[9];
    vector found[10];
    while (x.next(in[0], in[1])) {
        law_values(x.in, x.moved, found);
        for (int k = 0; k < x.count; ++k) {
            const double w = x.point[k].weight;
            energy += w * found[0][k];
            for (int r = 0; r < 9; ++r)
                P[r] = w * found[1 + r][k];
            if (out[0])
                x.point[k].add_force(P, out[0]);
        }
    }
    out[1][0] = energy;
}

// K += the derivatives of the force by θ and by θ̇, each times a factor. in: θ, θ̇, table, the two factors and the width
// of K. out: K.
static void stiffness(const double* const* in, double* const* out) {
    Points x(in[2]);
    const double by_q = in[3][0], by_v = x.is_damped ? in[3][1] : 0.0;
    double A[81];
    vector found[162];
    if (by_q == 0.0 && by_v == 0.0)
        return;
    while (x.next(in[0], in[1])) {
        law_slopes(x.in, x.moved, found);
        for (int k = 0; k < x.count; ++k) {
            const double q = x.point[k].weight * by_q, v = x.point[k].weight * by_v;
            for (int r = 0; r < 81; ++r)
                A[r] = q * found[r][k] + v * found[81 + r][k];
            x.point[k].add_stiffness(A, (int)in[3][2], out[0]);
        }
    }
}

// f += the change of the force along (δθ, δθ̇). in: θ, θ̇, table, δθ, δθ̇. out: f.
static void change(const double* const* in, double* const* out) {
    Points x(in[2]);
    double dF[9], d_rate[9] = {}, dP[9];
    vector found[162];
    while (x.next(in[0], in[1])) {
        law_slopes(x.in, x.moved, found);
        for (int k = 0; k < x.count; ++k) {
            x.point[k].put_change(in[3], dF);
            if (x.is_damped)
                x.point[k].put_change(in[4], d_rate);
            for (int r = 0; r < 9; ++r) {
                double sum = 0.0;
                for (int s = 0; s < 9; ++s)
                    sum += found[9 * r + s][k] * dF[s] + found[81 + 9 * r + s][k] * d_rate[s];
                dP[r] = x.point[k].weight * sum;
            }
            x.point[k].add_force(dP, out[0]);
        }
    }
}
