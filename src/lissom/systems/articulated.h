// Articulated bodies by elimination of blocks. Equations are those of the Python module systems/articulated. A row of G
// and of H⁻¹ G fills one register: six numbers and two zeros.

// J_k = J of node `before` (none if negative) + S_k.
LISSOM_INLINE void sum_path(const Columns& x, int width, int before, int i, int k, array<double> S, array<double> J) {
    const double* S_k = six_rows(S, i, k, x.width);
    const double* up = six_rows(J, i, before < 0 ? 0 : before, x.width);
    double* out = six_rows(J, i, k, x.width);
    for (int r = 0; r < 6; ++r)
        for (int j = 0; j < width; j += 8) {
            // (1), summed along the block
            block sum = load(S_k + r * x.width + j);
            if (before >= 0)
                sum += load(up + r * x.width + j);
            store(out + r * x.width + j, sum);
        }
}

// H, G and the diagonal of block e = 0.
LISSOM_INLINE void clear_block(
    const Blocks& y, int i, int e, array<double> H, array<double> G, array<double> diagonal
) {
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e];
    double* to = row(H, i) + y.square_start.data[e];
    for (int m = 0; m < n * width; ++m)
        to[m] = 0.0;
    for (int m = 0; m < 8 * width; ++m)
        row(G, i)[8 * at + m] = 0.0;
    for (int m = 0; m < width; ++m)
        row(diagonal, i)[at + m] = 0.0;
}

// Add node k to H and G of (2) and to the diagonal of M.
LISSOM_INLINE void gather_node(
    const Columns& x, const Blocks& y, int i, int e, int k, mat6 inertia, mat6 composite, array<double> J,
    array<double> H, array<double> G, array<double> diagonal
) {
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e];
    const double* in = six_rows(J, i, k, x.width);
    double* square = row(H, i) + y.square_start.data[e];
    double* coupling = row(G, i) + 8 * at;
    double* full = row(diagonal, i) + at;
    for (int j = 0; j < width; j += 8) {
        block s[6], v[6] = {}, u[6] = {}, sum = {};
        for (int r = 0; r < 6; ++r)
            s[r] = load(in + r * x.width + j);
        for (int c = 0; c < 6; ++c)
            for (int r = 0; r < 6; ++r) {
                // Î_k J_k of (2), and the composite inertia times J_k
                v[r] += s[c] * inertia.data[r][c];
                u[r] += s[c] * composite.data[r][c];
            }
        for (int r = 0; r < 6; ++r)
            sum += s[r] * u[r];  // J_kᵀ Iᶜ_k J_k on the diagonal
        add(full + j, sum);
        for (int a = 0; a < n; ++a) {
            block h = load(square + a * width + j);
            for (int r = 0; r < 6; ++r)
                h += v[r] * in[r * x.width + a];  // H += J_kᵀ Î_k J_k of (2)
            store(square + a * width + j, h);
        }
        for (int c = 0; c < 8; ++c)
            for (int r = 0; r < 6; ++r)
                coupling[8 * (j + c) + r] += v[r][c];  // G += J_kᵀ Î_k of (2)
    }
}

// Overwrite H by its factors LDLᵀ, with rows of the identity for prescribed coordinates, and compute H⁻¹ G. Returns 0,
// or 1 + the coordinate of a pivot that is zero to rounding.
LISSOM_INLINE int factor_block(
    const Blocks& y, int i, int e, array<double> H, array<double> G, array<double> inverse_G, array<double> diagonal
) {
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    double* square = row(H, i) + y.square_start.data[e];
    double* coupling = row(G, i) + 8 * at;
    double* out = row(inverse_G, i) + 8 * at;
    double* full = row(diagonal, i) + at;
    for (int k = 0; k < n; ++k)
        // a prescribed coordinate: its row and column as in the identity
        if (y.is_prescribed.data[first + k]) {
            for (int j = 0; j < n; ++j)
                square[k * width + j] = square[j * width + k] = 0.0;
            square[k * width + k] = full[k] = 1.0;
            store(coupling + 8 * k, block{});
        }
    for (int k = 0; k < n; ++k)
        store(out + 8 * k, load(coupling + 8 * k));
    for (int k = 0; k < n; ++k) {
        const double* top = square + k * width;
        // the pivot is not larger than the rounding error of the diagonal of M
        if (!(top[k] > 1e-14 * full[k]))
            return first + k + 1;
        const double inverse = -1.0 / top[k];
        const block known = load(out + 8 * k);
        for (int row = k + 1; row < n; ++row) {
            const double factor = top[row] * inverse;
            for (int j = row / 8 * 8; j < width; j += 8)
                add(square + row * width + j, load(top + j) * factor);
            add(out + 8 * row, known * factor);
        }
    }
    // H⁻¹ G of (3)
    for (int k = n - 1; k >= 0; --k) {
        const double* top = square + k * width;
        block sum = load(out + 8 * k);
        for (int j = k + 1; j < n; ++j)
            sum += load(out + 8 * j) * -top[j];
        store(out + 8 * k, sum * (1.0 / top[k]));
    }
    return 0;
}

// Λ of (3) from Σ Î.
LISSOM_INLINE mat6 reduced_inertia(
    const Blocks& y, int i, int e, mat6 inertia, array<double> G, array<double> inverse_G
) {
    const int n = y.size.data[e], at = y.row_start.data[e];
    const double* coupling = row(G, i) + 8 * at;
    const double* solved = row(inverse_G, i) + 8 * at;
    mat6 out = inertia;
    for (int k = 0; k < n; ++k)
        for (int r = 0; r < 6; ++r)
            for (int c = 0; c < 6; ++c)
                out.data[r][c] -= coupling[8 * k + r] * solved[8 * k + c];  // Λ = Σ Î − Gᵀ H⁻¹ G of (3)
    return out;
}

// p of (3) for block e; f on its coordinates is replaced by H⁻¹ (f − Σ Jᵀ p̂).
LISSOM_INLINE vec6 solve_inward(
    const Columns& x, const Blocks& y, int i, int e, array<double> J, array<double> H, array<double> inverse_G,
    array<vec6> wrench, array<double> f
) {
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    const double* square = row(H, i) + y.square_start.data[e];
    const double* solved = row(inverse_G, i) + 8 * at;
    double* z = row(f, i) + first;
    vec6 out = {};
    for (int m = y.node_start.data[e]; m < y.node_start.data[e + 1]; ++m) {
        const int k = y.node.data[m];
        const double* in = six_rows(J, i, k, x.width);
        for (int r = 0; r < 6; ++r) {
            const double p = row(wrench, i)[k].c[r];
            out.c[r] += p;  // Σ p̂ of (3)
            if (p != 0.0)
                for (int j = 0; j < n; ++j)
                    z[j] -= in[r * x.width + j] * p;  // f − Σ Jᵀ p̂ of (2)
        }
    }
    for (int k = 0; k < n; ++k) {
        if (y.is_prescribed.data[first + k])
            z[k] = 0.0;
        for (int r = 0; r < 6; ++r)
            out.c[r] += solved[8 * k + r] * z[k];  // p += Gᵀ H⁻¹ (f − Σ Jᵀ p̂) of (3)
    }
    // H⁻¹ z by the factors LDLᵀ
    for (int k = 0; k < n; ++k) {
        const double* top = square + k * width;
        const double known = z[k] / top[k];
        for (int j = k + 1; j < n; ++j)
            z[j] -= top[j] * known;
    }
    for (int k = n - 1; k >= 0; --k) {
        const double* top = square + k * width;
        double sum = z[k];
        for (int j = k + 1; j < n; ++j)
            sum -= top[j] * z[j];
        z[k] = sum / top[k];
    }
    return out;
}

// Replace H⁻¹ (f − Σ Jᵀ p̂) in f by a of (2), and compute (1); `below` is the acceleration α̇_p.
LISSOM_INLINE void solve_outward(
    const Columns& x, const Blocks& y, int i, int e, vec6 below, array<double> J, array<double> inverse_G,
    array<vec6> acc, array<double> f
) {
    const int n = y.size.data[e], at = y.row_start.data[e];
    const double* solved = row(inverse_G, i) + 8 * at;
    double* a = row(f, i) + y.v_start.data[e];
    for (int k = 0; k < n; ++k)
        for (int r = 0; r < 6; ++r)
            a[k] -= solved[8 * k + r] * below.c[r];  // a = H⁻¹ (f − Σ Jᵀ p̂) − H⁻¹ G α̇_p of (2)
    for (int m = y.node_start.data[e]; m < y.node_start.data[e + 1]; ++m) {
        const int k = y.node.data[m];
        const double* in = six_rows(J, i, k, x.width);
        for (int r = 0; r < 6; ++r) {
            double sum = below.c[r];
            for (int j = 0; j < n; ++j)
                sum += in[r * x.width + j] * a[j];  // (1)
            row(acc, i)[k].c[r] = sum;
        }
    }
}
