// Constraint rows: choice of independent rows, and systems bordered by them. Equations are those of the Python modules
// systems/bordered, (1) and (2), and for complete_rows and inverse_of systems/loop_unknowns, (1).

// out[at + j] += yᵀ X_k on the blocks of columns first … stop − 1.
LISSOM_INLINE void add_covector(
    int width, int k, int first, int stop, int i, vec6 y, array<double> X, int at, array<double> out
) {
    const double* in = six_rows(X, i, k, width);
    double* to = row(out, i) + at;
    for (int j = first / 8 * 8; j < stop; j += 8) {
        block sum = load(to + j);
        for (int r = 0; r < 6; ++r)
            sum += load(in + r * width + j) * y[r];
        store(to + j, sum);
    }
}

// Number the independent rows of A in `slot` in the order of their size, late ones after the others, and dependent ones
// −1, and return their number: pivoted Gram-Schmidt in the units of the coordinates.
LISSOM_INLINE int choose_rows(
    int m, int width, int i, array<double> A, array<double> scale, array<int> late, array<double> basis,
    array<double> work, array<int> slot
) {
    const double* rows = row(A, i);
    double* q = row(basis, i);
    double* size = row(work, i);
    int* to = row(slot, i);
    // a product of eight sums, whose order does not depend on the compiler
    auto product = [&](const double* x, const double* y) {
        block sum = {};
        for (int j = 0; j < width; j += 8)
            for (int c = 0; c < 8; ++c)
                ((double*)&sum)[c] += x[j + c] * y[j + c];
        double total = 0.0;
        for (int c = 0; c < 8; ++c)
            total += ((double*)&sum)[c];
        return total;
    };
    double largest = 0.0;
    for (int row = 0; row < m; ++row) {
        for (int j = 0; j < width; ++j)
            q[row * width + j] = rows[row * width + j] * scale.data[j];
        size[row] = product(q + row * width, q + row * width);
        largest = size[row] > largest ? size[row] : largest;
        to[row] = -1;
    }
    int rank = 0, turn = 0;
    while (rank < m) {
        // the largest remaining row, unless it is smaller than the rounding error of the largest row of all
        int best = -1;
        for (int row = 0; row < m; ++row)
            if (to[row] < 0 && late.data[row] <= turn && size[row] > 1e-16 * largest
                && (best < 0 || size[row] > size[best]))
                best = row;
        if (best < 0) {
            if (++turn > 1)
                break;
            continue;
        }
        to[best] = rank++;
        double* top = q + best * width;
        const double inverse = 1.0 / sqrt(size[best]);
        for (int j = 0; j < width; ++j)
            top[j] *= inverse;
        for (int row = 0; row < m; ++row)
            // subtract the part along the new direction from the others
            if (to[row] < 0) {
                double* other = q + row * width;
                const double along = product(top, other);
                for (int j = 0; j < width; ++j)
                    other[j] -= along * top[j];
                size[row] = product(other, other);
            }
    }
    return rank;
}

// Assemble the matrix of (1) from K with rows of `narrow`; returns σ.
LISSOM_INLINE double put_border(
    int nv, int m, int narrow, int width, int i, array<double> K, array<double> A, array<double> A_q,
    array<double> scale, array<int> slot, array<double> matrix
) {
    const double* from = row(K, i);
    const double* rows = row(A, i);
    const double* moves = row(A_q, i);
    double* out = row(matrix, i);
    const int* to = row(slot, i);
    double sum = 0.0;
    int count = 0;
    for (int j = 0; j < nv; ++j) {
        // σ: the geometric mean of |K_jj| in the units of the coordinates
        const double diagonal = fabs(from[j * narrow + j]) * scale.data[j] * scale.data[j];
        if (diagonal > 0.0) {
            sum += log(diagonal);
            ++count;
        }
    }
    const double sigma = count > 0 ? exp(sum / count) : 1.0;
    for (int row = 0; row < nv; ++row) {
        for (int j = 0; j < nv; ++j)
            out[row * width + j] = from[row * narrow + j];
        for (int j = nv; j < width; ++j)
            out[row * width + j] = 0.0;
    }
    for (int row = 0; row < m; ++row)
        if (to[row] >= 0) {
            // σ A_q and −σ Aᵀ of (1)
            const int at = nv + to[row];
            for (int j = 0; j < width; ++j)
                out[at * width + j] = j < nv ? sigma * moves[row * narrow + j] : 0.0;
            for (int j = 0; j < nv; ++j)
                out[j * width + at] = -sigma * rows[row * narrow + j];
        }
    return sigma;
}

// Assemble the matrix of (2) from M with rows of `narrow`, and compute the units D.
LISSOM_INLINE void put_constrained(
    int nv, int m, int narrow, int width, int i, array<double> M, array<double> A, array<int> slot, array<double> units,
    array<double> matrix
) {
    const double* from = row(M, i);
    const double* rows = row(A, i);
    double* out = row(matrix, i);
    double* d = row(units, i);
    const int* to = row(slot, i);
    for (int j = 0; j < nv; ++j) {
        // D of (2): each coordinate has mass one, each row of A has size one
        const double diagonal = from[j * narrow + j];
        d[j] = diagonal > 0.0 ? 1.0 / sqrt(diagonal) : 1.0;
    }
    for (int row = 0; row < nv; ++row) {
        for (int j = 0; j < nv; ++j)
            out[row * width + j] = d[row] * d[j] * from[row * narrow + j];
        for (int j = nv; j < width; ++j)
            out[row * width + j] = 0.0;
    }
    for (int row = 0; row < m; ++row)
        if (to[row] >= 0) {
            const int at = nv + to[row];
            // D A D and −D Aᵀ D of (2)
            double size = 0.0;
            for (int j = 0; j < nv; ++j) {
                const double here = rows[row * narrow + j] * d[j];
                size += here * here;
            }
            d[at] = 1.0 / sqrt(size);
            for (int j = 0; j < width; ++j)
                out[at * width + j] = j < nv ? d[at] * rows[row * narrow + j] * d[j] : 0.0;
            for (int j = 0; j < nv; ++j)
                out[j * width + at] = -d[at] * rows[row * narrow + j] * d[j];
        }
}

// [Z; N] of (1): the rows of a matrix whose bits in mask are set; the others are replaced by rows of the identity so
// that the matrix is regular.
LISSOM_INLINE mat6 complete_rows(mat6 matrix, int mask) {
    mat6 out = matrix, a = matrix;
    bool is_used[6] = {};
    for (int r = 0; r < 6; ++r) {
        if (!(mask >> r & 1))
            continue;
        // the column of the largest pivot; each column without a pivot gets a row of the identity
        int best = -1;
        for (int j = 0; j < 6; ++j)
            if (!is_used[j] && (best < 0 || fabs(a.data[r][j]) > fabs(a.data[r][best])))
                best = j;
        is_used[best] = true;
        for (int k = r + 1; k < 6; ++k) {
            const double factor = (mask >> k & 1) ? a.data[k][best] / a.data[r][best] : 0.0;
            for (int j = 0; j < 6; ++j)
                a.data[k][j] -= factor * a.data[r][j];
        }
    }
    int next = 0;
    for (int r = 0; r < 6; ++r)
        if (!(mask >> r & 1)) {
            while (is_used[next])
                ++next;
            is_used[next] = true;
            for (int j = 0; j < 6; ++j)
                out.data[r][j] = j == next ? 1.0 : 0.0;
        }
    return out;
}

// The inverse of a regular matrix.
LISSOM_INLINE mat6 inverse_of(mat6 matrix) {
    mat6 a = matrix, out = {};
    for (int r = 0; r < 6; ++r)
        out.data[r][r] = 1.0;
    for (int k = 0; k < 6; ++k) {
        // Gauss-Jordan elimination with swapped rows
        int best = k;
        for (int r = k + 1; r < 6; ++r)
            if (fabs(a.data[r][k]) > fabs(a.data[best][k]))
                best = r;
        const double inverse = 1.0 / a.data[best][k];
        for (int j = 0; j < 6; ++j) {
            const double x = a.data[best][j], y = out.data[best][j];
            a.data[best][j] = a.data[k][j];
            out.data[best][j] = out.data[k][j];
            a.data[k][j] = x * inverse;
            out.data[k][j] = y * inverse;
        }
        for (int r = 0; r < 6; ++r) {
            const double factor = r == k ? 0.0 : a.data[r][k];
            for (int j = 0; j < 6; ++j) {
                a.data[r][j] -= factor * a.data[k][j];
                out.data[r][j] -= factor * out.data[k][j];
            }
        }
    }
    return out;
}
