// Linear algebra on rows of arrays, each the numbers of one instance. Symmetric positive definite systems are solved by
// LDLᵀ, others by LU with swapped rows.

namespace lissom {

// Σ a[j] y[j] for j from `begin` to before `end`.
LISSOM_INLINE double dot_product(const double* a, const double* y, int begin, int end) {
    // several sums keep the chain of additions short
    double even = 0.0, odd = 0.0;
    int j = begin;
    if (j + 8 <= end) {
        block sums = {};
        for (; j + 8 <= end; j += 8)
            sums += load(a + j) * load(y + j);
        for (int e = 0; e < 8; e += 2) {
            even += sums[e];
            odd += sums[e + 1];
        }
    }
    for (; j + 1 < end; j += 2) {
        even += a[j] * y[j];
        odd += a[j + 1] * y[j + 1];
    }
    if (j < end)
        even += a[j] * y[j];
    return even + odd;
}

// Solve L U y = P y in place, by the factors of lu_factor.
LISSOM_INLINE void solve_by_factors(
    int n, int width, const double* a, const double* lower, const int* swap, double* y
) {
    const double* end = lower + (n - 1) * width;
    // P y, then the lower factor, then the upper one
    for (int k = 0; k < n; ++k) {
        const double swapped = y[k];
        y[k] = y[swap[k]];
        y[swap[k]] = swapped;
    }
    for (int k = 0; k < n; ++k) {
        const double known = y[k];
        for (int j = k + 1; j < n; ++j)
            y[j] += lower[k * width + j] * known;
    }
    for (int k = n - 1; k >= 0; --k)
        y[k] = (y[k] - dot_product(a + k * width, y, k + 1, end[k] < n ? (int)end[k] : n)) / a[k * width + k];
}

// Whether all numbers of a block are zero.
LISSOM_INLINE bool is_zero(block x) {
    for (int e = 0; e < 8; ++e)
        if (x[e] != 0.0)
            return false;
    return true;
}

}  // namespace lissom

// Solve A x = b by LDLᵀ: A (n + 1 rows of width, the last one for work) and b = x are overwritten. Returns 0, or 1 +
// the index of a pivot that is zero to rounding.
LISSOM_INLINE int ldl_solve(int n, int width, int i, array<double> A, array<double> x) {
    double* a = row(A, i);
    double* y = row(x, i);
    double* diagonal = a + n * width;
    for (int k = 0; k < n; ++k)
        diagonal[k] = a[k * width + k];
    for (int k = 0; k < n; ++k) {
        const double* top = a + k * width;
        // the pivot is not larger than the rounding error of the diagonal
        if (!(top[k] > 1e-14 * diagonal[k]))
            return k + 1;
        const double inverse = 1.0 / top[k];
        for (int row = k + 1; row < n; ++row) {
            const double factor = top[row] * inverse;
            double* to = a + row * width;
            for (int j = row; j < n; ++j)
                to[j] -= factor * top[j];
            y[row] -= factor * y[k];
        }
        y[k] *= inverse;
    }
    // Lᵀ x = D⁻¹ L⁻¹ b
    for (int k = n - 1; k >= 0; --k) {
        const double* top = a + k * width;
        double sum = 0.0;
        for (int j = k + 1; j < n; ++j)
            sum += top[j] * y[j];
        y[k] -= sum / top[k];
    }
    return 0;
}

// LU factors of A (n rows of width) with swapped rows: the upper factor overwrites A; L gets the lower factor by
// columns, with the opposite sign. Returns 0, or 1 + the index of a pivot that is zero or not finite.
LISSOM_INLINE int lu_factor(int n, int width, int i, array<double> A, array<double> L, array<int> pivots) {
    double* a = row(A, i);
    double* lower = row(L, i);
    int* swap = row(pivots, i);
    // a row is zero before the block of its first entry, and stays so: only rows that are not zero in a column change
    // when it is eliminated. The last row of the lower factor has no entries; it holds the first block of each row
    // until that is a pivot, then the end of the blocks of the upper factor
    double* first = lower + (n - 1) * width;
    for (int row = 0; row < n; ++row) {
        int at = 0;
        while (at + 8 < n && is_zero(load(a + row * width + at)))
            at += 8;
        first[row] = at;
    }
    for (int k = 0; k < n; ++k) {
        int best = k;
        double size = fabs(a[k * width + k]);
        for (int row = k + 1; row < n; ++row) {
            if (first[row] > k)
                continue;
            const double here = fabs(a[row * width + k]);
            if (here > size) {
                best = row;
                size = here;
            }
        }
        swap[k] = best;
        if (!(size > 0.0) || !(size < 1e300))
            return k + 1;
        const int aligned = k / 8 * 8;
        double* top = a + k * width;
        // swap rows of A, and of the lower factor
        if (best != k) {
            for (int j = aligned; j < width; j += 8) {
                const block swapped = load(top + j);
                store(top + j, load(a + best * width + j));
                store(a + best * width + j, swapped);
            }
            for (int j = 0; j < k; ++j) {
                const double swapped = lower[j * width + k];
                lower[j * width + k] = lower[j * width + best];
                lower[j * width + best] = swapped;
            }
            const double swapped = first[k];
            first[k] = first[best];
            first[best] = swapped;
        }
        const double inverse = -1.0 / top[k];
        // rows and columns that are zero stay so: bodies that do not touch each other share none
        int end = width;
        while (end > aligned + 8 && is_zero(load(top + end - 8)))
            end -= 8;
        first[k] = end;
        for (int row = k + 1; row < n; ++row) {
            // eliminate column k from the rows below
            if (first[row] > k) {
                lower[k * width + row] = 0.0;
                continue;
            }
            double* to = a + row * width;
            const double factor = to[k] * inverse;
            lower[k * width + row] = factor;
            if (factor == 0.0)
                continue;
            for (int j = aligned; j < end; j += 8)
                add(to + j, load(top + j) * factor);
        }
    }
    return 0;
}

// Solve with the factors of lu_factor; the right side in x is overwritten by the solution.
LISSOM_INLINE void lu_solve(
    int n, int width, int i, array<double> A, array<double> L, array<int> pivots, array<double> x
) {
    solve_by_factors(n, width, row(A, i), row(L, i), row(pivots, i), row(x, i));
}

// Solve with the factors of instance i, in place in row `at` of x.
LISSOM_INLINE void lu_solve_at(
    int n, int width, int i, array<double> A, array<double> L, array<int> pivots, int at, array<double> x
) {
    solve_by_factors(n, width, row(A, i), row(L, i), row(pivots, i), row(x, at));
}

// Solve with the transposed matrix and the factors of instance i, in place from x[at, shift] on: by Uᵀ, Lᵀ and Pᵀ.
LISSOM_INLINE void lu_solve_transposed(
    int n, int width, int i, array<double> A, array<double> L, array<int> pivots, int at, int shift, array<double> x
) {
    const double* a = row(A, i);
    const double* lower = row(L, i);
    const int* swap = row(pivots, i);
    const double* end = lower + (n - 1) * width;
    double* y = row(x, at) + shift;
    for (int k = 0; k < n; ++k) {
        const double known = y[k] /= a[k * width + k];
        for (int j = k + 1; j < end[k] && j < n; ++j)
            y[j] -= a[k * width + j] * known;
    }
    for (int k = n - 1; k >= 0; --k)
        y[k] += dot_product(lower + k * width, y, k + 1, n);
    for (int k = n - 1; k >= 0; --k) {
        const double swapped = y[k];
        y[k] = y[swap[k]];
        y[swap[k]] = swapped;
    }
}

// Whether all numbers in row i are finite.
LISSOM_INLINE bool is_finite(int i, array<double> x) {
    const double* from = row(x, i);
    const int n = x.shape[1];
    // 0 · x is NaN if x is not finite
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

// tau −= gain u + extra: forces of motors and of custom actuators.
LISSOM_INLINE void subtract_inputs(
    int nv, int nu, int i, array<double> gain, array<double> u, array<double> extra, array<double> tau
) {
    double* out = row(tau, i);
    const double* extra_i = row(extra, i);
    const double* in = row(u, i);
    for (int j = 0; j < nv; ++j) {
        double sum = extra_i[j];
        for (int c = 0; c < nu; ++c)
            sum += gain.data[j * nu + c] * in[c];
        out[j] -= sum;
    }
}
