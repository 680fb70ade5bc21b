// Systems with the mass matrix of a tree for many right sides. Equations are those of the Python module
// systems/mass_response.

// Factor a symmetric positive definite matrix A (nv rows of width) by (1), from its lower triangle: that of L and the
// diagonal of D take its place. `work` has nv numbers. Returns 0, or 1 + the index of a pivot that is zero to rounding.
LISSOM_INLINE int tree_factor(int nv, int width, int i, array<double> A, array<double> work) {
    double* a = row(A, i);
    double* diagonal = row(work, i);
    for (int k = 0; k < nv; ++k)
        diagonal[k] = a[k * width + k];
    for (int k = nv - 1; k >= 0; --k) {
        double* own = a + k * width;
        // the pivot is not larger than the rounding error of the diagonal
        if (!(own[k] > 1e-14 * diagonal[k]))
            return k + 1;
        const double inverse = 1.0 / own[k];
        for (int j = k - 1; j >= 0; --j) {
            if (own[j] == 0.0)  // not on the path from the base to k
                continue;
            const double factor = own[j] * inverse;
            double* to = a + j * width;
            for (int c = 0; c <= j; ++c)
                to[c] -= factor * own[c];
            own[j] = factor;  // of L; (1) needs no entry of row k behind it again
        }
    }
    return 0;
}

// X = −A⁻¹ X by the factors (1), for nv rows of X of `columns` numbers, a multiple of 8.
LISSOM_INLINE void tree_response(int nv, int width, int columns, int i, array<double> A, array<double> X) {
    const double* a = row(A, i);
    double* x = row(X, i);
    for (int c = 0; c < columns; c += 8) {
        // L⁻ᵀ, then −D⁻¹
        for (int k = nv - 1; k >= 0; --k) {
            const double* own = a + k * width;
            const block known = load(x + k * columns + c);
            for (int j = 0; j < k; ++j)
                if (own[j] != 0.0)
                    add(x + j * columns + c, known * -own[j]);
            store(x + k * columns + c, known * (-1.0 / own[k]));
        }
        // L⁻¹
        for (int k = 1; k < nv; ++k) {
            const double* own = a + k * width;
            block sum = load(x + k * columns + c);
            for (int j = 0; j < k; ++j)
                if (own[j] != 0.0)
                    sum += load(x + j * columns + c) * -own[j];
            store(x + k * columns + c, sum);
        }
    }
}
