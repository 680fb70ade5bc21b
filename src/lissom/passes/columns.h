// Loops over matrices with one column for each velocity coordinate: own columns of nodes and path sums, subtree sums of
// products with 6x6 matrices, and the rows that they add to the result. Equations are those of the Python modules
// passes/columns and passes/attachments.

namespace lissom {

// Add [A₁, B₁] Φ₁ + [A₂, B₂] Φ₂ of node k to six blocks of eight columns from column `at` on, and move the entry e to
// the first one of the next block.
template <typename Columns>
LISSOM_INLINE void add_own_columns(
    const Columns& x, int k, int at, const mat3& A1, const mat3& B1, const mat3& A2, const mat3& B2, int& e, block* sum
) {
    for (; e < x.entry_start.data[k + 1] && x.entry_block.data[e] == at; ++e) {
        const block p1 = load(x.entry_phi1.data + 8 * e);
        const block p2 = load(x.entry_phi2.data + 8 * e);
        const int c = x.entry_component.data[e];
        if (c < 3)
            for (int r = 0; r < 3; ++r) {
                sum[r] += p1 * A1.data[r][c];
                sum[r] += p2 * A2.data[r][c];
                sum[r + 3] += p1 * B1.data[r][c];
                sum[r + 3] += p2 * B2.data[r][c];
            }
        else
            for (int r = 0; r < 3; ++r) {
                sum[r + 3] += p1 * A1.data[r][c - 3];
                sum[r + 3] += p2 * A2.data[r][c - 3];
            }
    }
}

// Whether three matrices are zero: those of a massless frame without loads between two exponentials.
LISSOM_INLINE bool are_zero(const mat6& M, const mat6& N, const mat6& H) {
    for (int r = 0; r < 6; ++r)
        for (int c = 0; c < 6; ++c)
            if (M.data[r][c] != 0.0 || N.data[r][c] != 0.0 || H.data[r][c] != 0.0)
                return false;
    return true;
}

// The columns first … stop − 1 of S that are not zero, if they may be few among many. A point of a body of finite
// elements has some dozen columns among hundreds.
struct nonzero_columns {
    enum { MANY = 16, FEW = 128 };
    int first, count, at[FEW];
    bool are_listed;
};

LISSOM_INLINE void find_columns(int first, int stop, int width, const double* s, nonzero_columns& out) {
    out.first = first;
    out.count = 0;
    out.are_listed = stop - first > nonzero_columns::MANY;
    for (int alpha = first; out.are_listed && alpha < stop; ++alpha) {
        bool is_zero = true;
        for (int r = 0; r < 6; ++r)
            is_zero = is_zero && s[r * width + alpha] == 0.0;
        if (is_zero)
            continue;
        out.are_listed = out.count < nonzero_columns::FEW;
        if (out.are_listed)
            out.at[out.count++] = alpha;
    }
    if (!out.are_listed)
        out.count = stop - first;
}

LISSOM_INLINE int column_number(const nonzero_columns& own, int e) {
    return own.are_listed ? own.at[e] : own.first + e;
}

// Rows first … stop − 1 of `to` += Sᵀ V on the columns listed for k.
LISSOM_INLINE void fold_columns(
    const array<int>& start, const array<int>& range, int k, int first, int stop, int width, const double* s,
    const double* v, double* to
) {
    nonzero_columns own;
    find_columns(first, stop, width, s, own);
    for_blocks(start, range, k, [&](int j) {
        block in[6];
        for (int r = 0; r < 6; ++r)
            in[r] = load(v + r * width + j);
        for (int e = 0; e < own.count; ++e) {
            const int alpha = column_number(own, e);
            block sum = load(to + alpha * width + j);
            for (int r = 0; r < 6; ++r)
                sum += in[r] * s[r * width + alpha];
            store(to + alpha * width + j, sum);
        }
    });
}

}  // namespace lissom

// S_k = [A, B] Φ₁ on the blocks of a node with one Gauss point (Φ₂ = 0).
LISSOM_INLINE void put_turned_columns(const Columns& x, int i, int k, mat3 A, mat3 B, array<double> S) {
    double* out = six_rows(S, i, k, x.width);
    for (int e = x.entry_start.data[k]; e < x.entry_start.data[k + 1];) {
        const int at = x.entry_block.data[e];
        block sum[6] = {};
        for (; e < x.entry_start.data[k + 1] && x.entry_block.data[e] == at; ++e) {
            const block phi = load(x.entry_phi1.data + 8 * e);
            const int c = x.entry_component.data[e];
            if (c < 3)
                for (int r = 0; r < 3; ++r) {
                    sum[r] += phi * A.data[r][c];
                    sum[r + 3] += phi * B.data[r][c];
                }
            else
                for (int r = 0; r < 3; ++r)
                    sum[r + 3] += phi * A.data[r][c - 3];
        }
        for (int r = 0; r < 6; ++r)
            store(out + r * x.width + at, sum[r]);
    }
}

// S_k = [A₁, B₁] Φ₁ + [A₂, B₂] Φ₂ on the node's own blocks, a pair [A, B] standing for [[A, 0], [B, A]].
LISSOM_INLINE void put_columns(const Columns& x, int i, int k, mat3 A1, mat3 B1, mat3 A2, mat3 B2, array<double> S) {
    double* out = six_rows(S, i, k, x.width);
    for (int e = x.entry_start.data[k]; e < x.entry_start.data[k + 1];) {
        const int at = x.entry_block.data[e];
        block sum[6] = {};
        add_own_columns(x, k, at, A1, B1, A2, B2, e, sum);
        for (int r = 0; r < 6; ++r)
            store(out + r * x.width + at, sum[r]);
    }
}

// J_k = J_parent + [A₁, B₁] Φ₁ + [A₂, B₂] Φ₂ on the columns of the path to k.
LISSOM_INLINE void extend_path(
    const Columns& x, int parent, int i, int k, mat3 A1, mat3 B1, mat3 A2, mat3 B2, array<double> J
) {
    double* out = six_rows(J, i, k, x.width);
    const double* before = six_rows(J, i, parent < 0 ? 0 : parent, x.width);
    // the columns of the parent, then the node's own on top of them
    for_blocks(x.path_start, x.path_range, k, [&](int j) {
        for (int r = 0; r < 6; ++r)
            store(out + r * x.width + j, parent < 0 ? block{} : load(before + r * x.width + j));
    });
    for (int e = x.entry_start.data[k]; e < x.entry_start.data[k + 1];) {
        const int at = x.entry_block.data[e];
        block sum[6];
        for (int r = 0; r < 6; ++r)
            sum[r] = load(out + r * x.width + at);
        add_own_columns(x, k, at, A1, B1, A2, B2, e, sum);
        for (int r = 0; r < 6; ++r)
            store(out + r * x.width + at, sum[r]);
    }
}

// All subtree sums V = 0.
LISSOM_INLINE void clear_sums(const Columns& x, int i, array<double> V) {
    double* out = row(V, i);
    const int count = 6 * x.n_slots * x.width;  // the compiler cannot know that writing leaves these alone
    for (int n = 0; n < count; ++n)
        out[n] = 0.0;
}

// V += M S_k on the node's own columns first … stop − 1, V its subtree sum.
LISSOM_INLINE void add_product(
    const Columns& x, mat6 M, int first, int stop, int i, int k, array<double> S, array<double> V
) {
    if (stop <= first)
        return;
    const int width = x.width;
    const double* in = six_rows(S, i, k, width);
    double* out = six_rows(V, i, x.slot.data[k], width);
    for (int j = first / 8 * 8; j < stop; j += 8) {
        block sum[6];
        for (int r = 0; r < 6; ++r)
            sum[r] = load(out + r * width + j);
        for (int c = 0; c < 6; ++c)
            for (int r = 0; r < 6; ++r)
                sum[r] += load(in + c * width + j) * M.data[r][c];  // M S_k
        for (int r = 0; r < 6; ++r)
            store(out + r * width + j, sum[r]);
    }
}

// Rows first … stop − 1 of out += S_kᵀ V on the listed columns of node k, V its subtree sum.
LISSOM_INLINE void fold_rows(
    const Columns& x, array<int> x_start, array<int> x_range, int first, int stop, int i, int k, array<double> S,
    array<double> V, array<double> out
) {
    const int width = x.width;
    const double* s = six_rows(S, i, k, width);
    const double* v = six_rows(V, i, x.slot.data[k], width);
    fold_columns(x_start, x_range, k, first, stop, width, s, v, row(out, i));
}

// Add the subtree sum of k to that of its parent on the listed columns of k, unless both are the same.
LISSOM_INLINE void pass_to_parent(
    const Columns& x, array<int> x_start, array<int> x_range, int parent, int i, int k, array<double> V
) {
    if (parent < 0 || x.slot.data[parent] == x.slot.data[k])
        return;
    const double* from = six_rows(V, i, x.slot.data[k], x.width);
    double* to = six_rows(V, i, x.slot.data[parent], x.width);
    for_blocks(x_start, x_range, k, [&](int j) {
        for (int r = 0; r < 6; ++r)
            add(to + r * x.width + j, load(from + r * x.width + j));
    });
}

// out = A + Bᵀ, all nv x width.
LISSOM_INLINE void add_transposed(int nv, int width, int i, array<double> A, array<double> B, array<double> out) {
    const double* a = row(A, i);
    const double* b = row(B, i);
    double* to = row(out, i);
    for (int row = 0; row < nv; ++row)
        for (int col = 0; col < nv; ++col)
            to[row * width + col] = a[row * width + col] + b[col * width + row];
}

// out = 0, nv x width.
LISSOM_INLINE void clear_rows(int nv, int width, int i, array<double> out) {
    double* to = row(out, i);
    for (int n = 0; n < nv * width; ++n)
        to[n] = 0.0;
}

// W_a += M J, W_v += M J_E + N J and W_q += M J_Q + N J_R + H J of node k, on its listed columns.
LISSOM_INLINE void add_derivative_products(
    const Columns& x, array<int> start, array<int> range, int i, int k, mat6 M, mat6 N, mat6 H,
    const DerivativeSums& sums
) {
    if (are_zero(M, N, H))
        return;
    const int width = x.width, slot = x.slot.data[k];
    const double *j0 = six_rows(sums.J, i, k, width), *e0 = six_rows(sums.J_E, i, k, width);
    const double *r0 = six_rows(sums.J_R, i, k, width), *q0 = six_rows(sums.J_Q, i, k, width);
    double *wa = six_rows(sums.W_a, i, slot, width), *wv = six_rows(sums.W_v, i, slot, width);
    double* wq = six_rows(sums.W_q, i, slot, width);
    for_blocks(start, range, k, [&](int at) {
        block a[6], v[6], q[6];
        for (int r = 0; r < 6; ++r) {
            a[r] = load(wa + r * width + at);
            v[r] = load(wv + r * width + at);
            q[r] = load(wq + r * width + at);
        }
        for (int c = 0; c < 6; ++c) {
            const block j = load(j0 + c * width + at), e = load(e0 + c * width + at);
            const block turn = load(r0 + c * width + at), bend = load(q0 + c * width + at);
            for (int r = 0; r < 6; ++r) {
                // M J; M J_E + N J; M J_Q + N J_R + H J
                a[r] += j * M.data[r][c];
                v[r] += e * M.data[r][c];
                q[r] += bend * M.data[r][c];
                v[r] += j * N.data[r][c];
                q[r] += turn * N.data[r][c];
                q[r] += j * H.data[r][c];
            }
        }
        for (int r = 0; r < 6; ++r) {
            store(wa + r * width + at, a[r]);
            store(wv + r * width + at, v[r]);
            store(wq + r * width + at, q[r]);
        }
    });
}

// Rows first … stop − 1 of da += S_kᵀ W_a, dv += S_kᵀ W_v and dq += S_kᵀ W_q on the listed columns of node k.
LISSOM_INLINE void fold_derivatives(
    const Columns& x, array<int> start, array<int> range, int first, int stop, int i, int k, const DerivativeSums& sums,
    array<double> da, array<double> dv, array<double> dq
) {
    const int width = x.width, slot = x.slot.data[k];
    const double* s = six_rows(sums.S, i, k, width);
    const double *a = six_rows(sums.W_a, i, slot, width), *v = six_rows(sums.W_v, i, slot, width);
    const double* from[3] = {a, v, six_rows(sums.W_q, i, slot, width)};
    double* to[3] = {row(da, i), row(dv, i), row(dq, i)};
    nonzero_columns own;
    find_columns(first, stop, width, s, own);
    for_blocks(start, range, k, [&](int j) {
        block in[3][6];
        for (int m = 0; m < 3; ++m)
            for (int r = 0; r < 6; ++r)
                in[m][r] = load(from[m] + r * width + j);
        for (int e = 0; e < own.count; ++e) {
            const int alpha = column_number(own, e);
            block sum[3];
            for (int m = 0; m < 3; ++m)
                sum[m] = load(to[m] + alpha * width + j);
            for (int r = 0; r < 6; ++r)
                for (int m = 0; m < 3; ++m)
                    sum[m] += in[m][r] * s[r * width + alpha];  // S_kᵀ W
            for (int m = 0; m < 3; ++m)
                store(to[m] + alpha * width + j, sum[m]);
        }
    });
}

// W += M J_P + N J_R + H J of node k, on its listed columns.
LISSOM_INLINE void add_weighted_products(
    const Columns& x, array<int> start, array<int> range, int i, int k, mat6 M, mat6 N, mat6 H, array<double> J_P,
    array<double> J_R, array<double> J, array<double> W
) {
    if (are_zero(M, N, H))
        return;
    const int width = x.width;
    const double *p0 = six_rows(J_P, i, k, width), *r0 = six_rows(J_R, i, k, width), *j0 = six_rows(J, i, k, width);
    double* w = six_rows(W, i, x.slot.data[k], width);
    for_blocks(start, range, k, [&](int j) {
        block sum[6];
        for (int r = 0; r < 6; ++r)
            sum[r] = load(w + r * width + j);
        for (int c = 0; c < 6; ++c) {
            const block p = load(p0 + c * width + j);
            const block q = load(r0 + c * width + j);
            const block s = load(j0 + c * width + j);
            for (int r = 0; r < 6; ++r) {
                // M J_P + N J_R + H J
                sum[r] += p * M.data[r][c];
                sum[r] += q * N.data[r][c];
                sum[r] += s * H.data[r][c];
            }
        }
        for (int r = 0; r < 6; ++r)
            store(w + r * width + j, sum[r]);
    });
}

// W += M J of node `from_`, on the columns of its path, W the subtree sum of node `to`.
LISSOM_INLINE void add_cross_product(
    const Columns& x, int i, int to, int from_, mat6 M, array<double> J, array<double> W
) {
    const int width = x.width;
    const double* in = six_rows(J, i, from_, width);
    double* out = six_rows(W, i, x.slot.data[to], width);
    for_blocks(x.path_start, x.path_range, from_, [&](int j) {
        for (int r = 0; r < 6; ++r)
            for (int c = 0; c < 6; ++c)
                add(out + r * width + j, load(in + c * width + j) * M.data[r][c]);
    });
}

// out += Φᵀ H Φ at one strain point.
LISSOM_INLINE void add_point_block(const Columns& x, int i, int site, mat6 H, array<double> out) {
    double* to = row(out, i);
    for (int e = x.entry_start.data[site]; e < x.entry_start.data[site + 1];) {
        const int at = x.entry_block.data[e];
        block v[6] = {};
        for (; e < x.entry_start.data[site + 1] && x.entry_block.data[e] == at; ++e) {
            const block p = load(x.entry_phi1.data + 8 * e);
            const int c = x.entry_component.data[e];
            for (int r = 0; r < 6; ++r)
                // H Φ, then Φᵀ times that
                v[r] += p * H.data[r][c];
        }
        for (int f = x.row_start.data[site]; f < x.row_start.data[site + 1]; ++f)
            add(to + x.row_v.data[f] * x.width + at, v[x.row_component.data[f]] * x.row_phi1.data[f]);
    }
}

// Row `number` of out += y_accᵀ J_acc + y_twistᵀ J_twist of node k, on the columns of its path.
LISSOM_INLINE void add_to_row(
    const Columns& x, int i, int k, int number, vec6 y_acc, vec6 y_twist, array<double> J_acc, array<double> J_twist,
    array<double> out
) {
    const double *acc = six_rows(J_acc, i, k, x.width), *twist = six_rows(J_twist, i, k, x.width);
    double* to = row(out, i) + number * x.width;
    for_blocks(x.path_start, x.path_range, k, [&](int j) {
        block sum = load(to + j);
        for (int r = 0; r < 6; ++r) {
            sum += load(acc + r * x.width + j) * y_acc.c[r];
            sum += load(twist + r * x.width + j) * y_twist.c[r];
        }
        store(to + j, sum);
    });
}

// Add Mᵀ L, Nᵀ L and Hᵀ L of node k, with the columns L of `node`, to the sums of its block for (1) of attachments.
LISSOM_INLINE void add_transposed_products(
    const Columns& x, const Attachments& z, mat6 M, mat6 N, mat6 H, int i, int k, int node, array<double> L
) {
    const int width = x.width, j = z.of_node.data[k];
    const double* from = six_rows(L, i, node, width);
    double *m = six_rows(z.Y_M, i, j, width), *n = six_rows(z.Y_N, i, j, width), *h = six_rows(z.Y_H, i, j, width);
    for_blocks(z.home_start, z.home_range, k, [&](int at) {
        block sum[18];
        for (int r = 0; r < 6; ++r) {
            sum[r] = load(m + r * width + at);
            sum[r + 6] = load(n + r * width + at);
            sum[r + 12] = load(h + r * width + at);
        }
        for (int c = 0; c < 6; ++c) {
            const block s = load(from + c * width + at);
            for (int r = 0; r < 6; ++r) {
                // (Σ M_kᵀ J̃_k) of (1), for M, N and H
                sum[r] += s * M.data[c][r];
                sum[r + 6] += s * N.data[c][r];
                sum[r + 12] += s * H.data[c][r];
            }
        }
        for (int r = 0; r < 6; ++r) {
            store(m + r * width + at, sum[r]);
            store(n + r * width + at, sum[r + 6]);
            store(h + r * width + at, sum[r + 12]);
        }
    });
}

// Set Σ Mᵀ J̃, Σ Nᵀ J̃ and Σ Hᵀ J̃ of all attachments to zero.
LISSOM_INLINE void clear_products(const Columns& x, const Attachments& z, int i) {
    double* sums[3] = {row(z.Y_M, i), row(z.Y_N, i), row(z.Y_H, i)};
    const int count = 6 * z.row_start.shape[0] * x.width;
    for (double* sum : sums)
        for (int e = 0; e < count; ++e)
            sum[e] = 0.0;
}

// Rows first … stop − 1 of out += Sᵀ V on the columns listed for an attachment, with S number s_at and V number v_at.
LISSOM_INLINE void fold_between(
    const Columns& x, array<int> start, array<int> range, int attachment, int first, int stop, int i, int s_at,
    array<double> S, int v_at, array<double> V, array<double> out
) {
    const double *s = six_rows(S, i, s_at, x.width), *v = six_rows(V, i, v_at, x.width);
    // (1) with sums of Mᵀ J̃ for S and J_p for V, or (2) with J̃_p for S and W for V
    fold_columns(start, range, attachment, first, stop, x.width, s, v, row(out, i));
}

// Set the subtree sum of node k to zero on columns of other blocks that share registers with those of its block.
LISSOM_INLINE void clear_foreign_columns(
    const Columns& x, const Attachments& z, int attachment, int i, int k, array<double> W
) {
    double* to = six_rows(W, i, x.slot.data[k], x.width);
    for (int r = 0; r < 6; ++r)
        for (int j = z.foreign_start.data[attachment]; j < z.foreign_stop.data[attachment]; ++j)
            to[r * x.width + j] = 0.0;
}
