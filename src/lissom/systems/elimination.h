// Elimination of the blocks of a Newton matrix. Equations are those of the Python module systems/newton_blocks;
// systems/newton_blocks describes the storage of the matrices. A row of coefficients of the motion (x, w, z) of a
// node has STATE numbers: six each for x, w and z, and zeros.

// X = 0.
LISSOM_INLINE void clear_row(int i, array<double> X) {
    double* to = row(X, i);
    for (int n = 0, count = X.shape[1]; n < count; ++n)
        to[n] = 0.0;
}

// B = local + K of block e, from K in rows of `band` numbers; G = V = 0.
LISSOM_INLINE void load_band(
    const Blocks& y, int band, int i, int e, array<double> K, array<double> B, array<double> G, array<double> V
) {
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    double* to = row(B, i) + y.square_start.data[e];
    // local + K of (3)
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < width; ++j)
            to[k * width + j] = j < n ? row(K, i)[(first + k) * band + first + j] : 0.0;
    for (int m = 0; m < STATE * n; ++m)
        row(G, i)[STATE * first + m] = 0.0;
    for (int m = 0; m < 6 * width; ++m)
        row(V, i)[6 * at + m] = 0.0;
}

// Add node k of block e, with its columns S T in S, to B of (3), G of (2) in inverse_G, and V of (4).
LISSOM_INLINE void gather_node(
    const BlockMatrix& b, int i, int e, int k, mat6 H, mat6 N, mat6 M, mat6 bar, array<double> S
) {
    const auto& x = b.x;
    const auto& y = b.y;
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e], before = y.inside.data[k];
    const double *x0 = six_rows(b.sums.J, i, k, x.width), *w0 = six_rows(b.sums.J_R, i, k, x.width);
    const double *z0 = six_rows(b.sums.J_P, i, k, x.width), *s0 = six_rows(S, i, k, x.width);
    const double *rows = six_rows(b.L, i, k, x.width), *below = six_rows(b.L, i, before < 0 ? 0 : before, x.width);
    double* square = row(b.B, i) + y.square_start.data[e];
    double* coupling = row(b.inverse_G, i) + STATE * y.v_start.data[e];
    double* wrench = row(b.V, i) + 6 * at;
    for (int j = 0; j < width; j += 8) {
        block f[6] = {}, g[6] = {};
        for (int c = 0; c < 6; ++c) {
            const block xc = load(x0 + c * x.width + j), wc = load(w0 + c * x.width + j);
            const block zc = load(z0 + c * x.width + j), sc = load(s0 + c * x.width + j);
            for (int r = 0; r < 6; ++r) {
                // Ê_k Y_k and adbar S_k T, of (3) and (4)
                f[r] += xc * H.data[r][c];
                f[r] += wc * N.data[r][c];
                f[r] += zc * M.data[r][c];
                g[r] += sc * bar.data[r][c];
            }
        }
        for (int a = 0; a < n; ++a) {
            block sum = load(square + a * width + j);
            for (int r = 0; r < 6; ++r) {
                sum += f[r] * rows[r * x.width + a];  // L_kᵀ Ê_k Y_k of (3)
                if (before >= 0)
                    sum += g[r] * below[r * x.width + a];  // L_pᵀ adbar S_k T of (3)
            }
            store(square + a * width + j, sum);
        }
        for (int r = 0; r < 6; ++r) {
            f[r] += g[r];
            add(wrench + r * width + j, f[r]);  // V of (4)
        }
    }
    for (int a = 0; a < n; ++a)
        for (int r = 0; r < 6; ++r) {
            const double size = rows[r * x.width + a];
            for (int c = 0; c < 6; ++c) {
                // G = Σ L_kᵀ (H, N, M) of (2)
                coupling[STATE * a + c] += size * H.data[r][c];
                coupling[STATE * a + 6 + c] += size * N.data[r][c];
                coupling[STATE * a + 12 + c] += size * M.data[r][c];
            }
        }
}

// Overwrite B by its LU factors with swapped rows, and G by B⁻¹ G. Rows and columns of prescribed coordinates are those
// of the identity. Returns 0, or 1 + the coordinate of a pivot that is zero or not finite.
LISSOM_INLINE int factor_block(
    const Blocks& y, int i, int e, array<double> B, array<int> pivots, array<double> G, array<double> V
) {
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    double* square = row(B, i) + y.square_start.data[e];
    double* wrench = row(V, i) + 6 * at;
    double* out = row(G, i) + STATE * first;
    int* swap = row(pivots, i) + at;
    for (int k = 0; k < n; ++k)
        // a prescribed coordinate: its row and column as in the identity
        if (y.is_prescribed.data[first + k]) {
            for (int j = 0; j < n; ++j)
                square[k * width + j] = square[j * width + k] = 0.0;
            square[k * width + k] = 1.0;
            for (int c = 0; c < STATE; ++c)
                out[STATE * k + c] = 0.0;
            for (int r = 0; r < 6; ++r)
                wrench[r * width + k] = 0.0;
        }
    for (int k = 0; k < n; ++k) {
        int best = k;
        for (int row = k + 1; row < n; ++row)
            if (fabs(square[row * width + k]) > fabs(square[best * width + k]))
                best = row;
        const double size = fabs(square[best * width + k]);
        swap[k] = best;
        if (!(size > 0.0) || !(size < 1e300))
            return first + k + 1;
        // swap rows of B and of G
        if (best != k) {
            for (int j = 0; j < n; ++j) {
                const double swapped = square[k * width + j];
                square[k * width + j] = square[best * width + j];
                square[best * width + j] = swapped;
            }
            for (int c = 0; c < STATE; ++c) {
                const double swapped = out[STATE * k + c];
                out[STATE * k + c] = out[STATE * best + c];
                out[STATE * best + c] = swapped;
            }
        }
        const double* top = square + k * width;
        const double inverse = 1.0 / top[k];
        for (int row = k + 1; row < n; ++row) {
            // eliminate column k from the rows below, and from those of G
            double* to = square + row * width;
            const double factor = to[k] * inverse;
            to[k] = factor;
            int j = k + 1;
            for (; j < n && j % 8; ++j)
                to[j] -= factor * top[j];
            for (; j < n; j += 8)
                add(to + j, load(top + j) * -factor);
            for (int c = 0; c < STATE; c += 8)
                add(out + STATE * row + c, load(out + STATE * k + c) * -factor);
        }
    }
    // B⁻¹ G by the upper factor
    for (int k = n - 1; k >= 0; --k) {
        const double* top = square + k * width;
        const double inverse = 1.0 / top[k];
        for (int c = 0; c < STATE; c += 8) {
            block sum = load(out + STATE * k + c);
            for (int j = k + 1; j < n; ++j)
                sum += load(out + STATE * j + c) * -top[j];
            store(out + STATE * k + c, sum * inverse);
        }
    }
    return 0;
}

// The part of Λ of (4) for x, w or z (part 0, 1 or 2); `sum` is this part of Σ Ê.
LISSOM_INLINE mat6 reduced_response(
    const Blocks& y, int i, int e, int part, mat6 sum, array<double> inverse_G, array<double> V
) {
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e];
    const double* wrench = row(V, i) + 6 * at;
    const double* solved = row(inverse_G, i) + STATE * y.v_start.data[e] + 6 * part;
    mat6 out = sum;
    for (int k = 0; k < n; ++k)
        for (int r = 0; r < 6; ++r)
            for (int c = 0; c < 6; ++c)
                out.data[r][c] -= wrench[r * width + k] * solved[STATE * k + c];  // Λ = Σ Ê − V B⁻¹ G of (4)
    return out;
}

// c of (4) for block e, with Σ ĉ in `below`; f − Σ Lᵀ ĉ on its coordinates is replaced by B⁻¹ (f − Σ Lᵀ ĉ).
LISSOM_INLINE vec6 solve_inward(
    const Blocks& y, int i, int e, vec6 below, array<double> B, array<int> pivots, array<double> V, array<double> f
) {
    const int n = y.size.data[e], width = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    const double* square = row(B, i) + y.square_start.data[e];
    const double* wrench = row(V, i) + 6 * at;
    const int* swap = row(pivots, i) + at;
    double* z = row(f, i) + first;
    for (int k = 0; k < n; ++k)
        if (y.is_prescribed.data[first + k])
            z[k] = 0.0;
    // B⁻¹ z: swap rows, then the lower and the upper factor
    for (int k = 0; k < n; ++k) {
        const double swapped = z[k];
        z[k] = z[swap[k]];
        z[swap[k]] = swapped;
    }
    for (int k = 0; k < n; ++k)
        for (int row = k + 1; row < n; ++row)
            z[row] -= square[row * width + k] * z[k];
    for (int k = n - 1; k >= 0; --k) {
        double sum = z[k];
        for (int j = k + 1; j < n; ++j)
            sum -= square[k * width + j] * z[j];
        z[k] = sum / square[k * width + k];
    }
    vec6 out = below;
    for (int r = 0; r < 6; ++r)
        for (int k = 0; k < n; ++k)
            out.c[r] += wrench[r * width + k] * z[k];  // c = Σ ĉ + V B⁻¹ (f − Σ Lᵀ ĉ) of (4)
    return out;
}

// f −= L_kᵀ c on the coordinates of block e.
LISSOM_INLINE void subtract_projection(
    const Columns& x, const Blocks& y, int i, int e, int k, vec6 c, array<double> L, array<double> f
) {
    const double* rows = six_rows(L, i, k, x.width);
    double* to = row(f, i) + y.v_start.data[e];
    for (int j = 0; j < y.size.data[e]; ++j)
        for (int r = 0; r < 6; ++r)
            to[j] -= rows[r * x.width + j] * c.c[r];  // f − Lᵀ ĉ of (2)
}

// One of the three parts of (1), x, w or z, at node k of block e; `start` is that of y.
LISSOM_INLINE vec6
block_motion(const Columns& x, const Blocks& y, int i, int e, int k, vec6 start, array<double> J, array<double> f) {
    const double* columns = six_rows(J, i, k, x.width);
    const double* a = row(f, i) + y.v_start.data[e];
    vec6 out = start;
    for (int r = 0; r < 6; ++r)
        for (int j = 0; j < y.size.data[e]; ++j)
            out.c[r] += columns[r * x.width + j] * a[j];  // y_k = y + Y_k δ of (1)
    return out;
}

// Replace the result of solve_inward in f by δ of (2); x, w and z are the parts of y.
LISSOM_INLINE void solve_outward(
    const Blocks& y, int i, int e, vec6 x, vec6 w, vec6 z, array<double> inverse_G, array<double> f
) {
    const double* solved = row(inverse_G, i) + STATE * y.v_start.data[e];
    double* a = row(f, i) + y.v_start.data[e];
    for (int k = 0; k < y.size.data[e]; ++k)
        for (int c = 0; c < 6; ++c) {
            // δ = B⁻¹ (f − Σ Lᵀ ĉ) − B⁻¹ G y of (2)
            a[k] -= solved[STATE * k + c] * x.c[c];
            a[k] -= solved[STATE * k + 6 + c] * w.c[c];
            a[k] -= solved[STATE * k + 12 + c] * z.c[c];
        }
}
