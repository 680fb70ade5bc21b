// Fronts of blocks with loops: their assembly, their elimination with the loops that close at a block, solutions by the
// factors, and the choice of independent rows. Equations are those of the Python module systems/fronts.
//
// A front has a row for each of its `rows` unknowns, those that close at its block first, and six rows for the wrench.
// A row holds `width` numbers for the unknowns and STATE numbers for the motion of the parent node.

namespace lissom {

// The wrench f = (moment; force) about a point at r, expressed about the origin.
LISSOM_INLINE vec6 about_origin(const vec6& f, const vec3& r) {
    const double x = r.c[0], y = r.c[1], z = r.c[2];
    vec6 out = f;
    out.c[0] = f.c[0] + y * f.c[5] - z * f.c[4];
    out.c[1] = f.c[1] + z * f.c[3] - x * f.c[5];
    out.c[2] = f.c[2] + x * f.c[4] - y * f.c[3];
    return out;
}

}  // namespace lissom

// Set the front of block e, C and R to zero.
LISSOM_INLINE void clear_front(
    const Blocks& y, const Fronts& z, int i, int e, array<double> work, array<double> C, array<double> R
) {
    const bool is_last = e == y.count;
    const int n = is_last ? 0 : y.size.data[e], tall = is_last ? 0 : y.width.data[e];
    const int rows = z.size.data[e], width = z.width.data[e];
    double *to = row(work, i), *c = row(C, i) + z.inverse_C_start.data[e], *r = row(R, i) + z.rows_start.data[e];
    for (int m = 0; m < (rows + 6) * (width + STATE); ++m)
        to[m] = 0.0;
    for (int m = 0; m < n * width; ++m)
        c[m] = 0.0;
    for (int m = 0; m < rows * tall; ++m)
        r[m] = 0.0;
}

// Add to row `at` of the front of block e the coefficients f of part `part` (0, 1, 2: x, w, z) of the motion of node k.
LISSOM_INLINE void add_row(
    const Columns& x, const Blocks& y, const Fronts& z, int i, int e, int k, int at, int part, vec6 f,
    array<double> J, array<double> work, array<double> R
) {
    const int tall = y.width.data[e], stride = z.width.data[e] + STATE;
    const double* j0 = six_rows(J, i, k, x.width);
    double* to = row(R, i) + z.rows_start.data[e] + at * tall;
    double* Q = row(work, i) + at * stride + z.width.data[e] + 6 * part;
    for (int c = 0; c < 6; ++c)
        Q[c] += f.c[c];  // Q of (1)
    for (int j = 0; j < tall; j += 8) {
        block sum = load(to + j);
        for (int c = 0; c < 6; ++c)
            sum += load(j0 + c * x.width + j) * f.c[c];  // R of (1)
        store(to + j, sum);
    }
}

// Add to the column of unknown `at` of the front of block e its wrench f on node k.
LISSOM_INLINE void add_column(
    const Columns& x, const Blocks& y, const Fronts& z, int i, int e, int k, int at, vec6 f, array<double> L,
    array<double> work, array<double> C
) {
    const int n = y.size.data[e], width = z.width.data[e], stride = width + STATE;
    const double* rows = six_rows(L, i, k, x.width);
    double* to = row(C, i) + z.inverse_C_start.data[e] + at;
    double* E = row(work, i) + z.size.data[e] * stride + at;
    for (int c = 0; c < 6; ++c)
        E[c * stride] += f.c[c];  // E of (1)
    for (int j = 0; j < n; ++j) {
        double sum = 0.0;
        for (int c = 0; c < 6; ++c)
            sum += rows[c * x.width + j] * f.c[c];
        to[j * width] += sum;  // C of (1)
    }
}

// Add S of the front of a child block to that of block e.
LISSOM_INLINE void merge_front(const Fronts& z, int i, int e, int child, array<double> front, array<double> work) {
    const int open = z.size.data[child] - z.closed.data[child];
    const int from_stride = whole_registers(open) + STATE, stride = z.width.data[e] + STATE;
    const double* from = row(front, i) + z.front_start.data[child];
    const int* up = z.in_parent.data + z.in_parent_start.data[child];
    for (int a = 0; a < open; ++a) {
        double* to = row(work, i) + up[a] * stride;
        for (int b = 0; b < open; ++b)
            to[up[b]] += from[a * from_stride + b];
    }
}

// Part `part` of row `at` of Q of a stored front; rows behind the open unknowns are those of Λ.
LISSOM_INLINE vec6 front_row(const Fronts& z, int i, int e, int at, int part, array<double> front) {
    const int open = z.size.data[e] - z.closed.data[e], width = whole_registers(open);
    const double* from = row(front, i) + z.front_start.data[e] + at * (width + STATE) + width + 6 * part;
    vec6 out;
    for (int c = 0; c < 6; ++c)
        out.c[c] = from[c];
    return out;
}

// Column `at` of E of a stored front.
LISSOM_INLINE vec6 front_column(const Fronts& z, int i, int e, int at, array<double> front) {
    const int open = z.size.data[e] - z.closed.data[e], stride = whole_registers(open) + STATE;
    const double* from = row(front, i) + z.front_start.data[e] + open * stride + at;
    vec6 out;
    for (int c = 0; c < 6; ++c)
        out.c[c] = from[c * stride];
    return out;
}

// Compute (2) for block e, with C replaced by B⁻¹ C. Add the magnitudes subtracted from the diagonal of S to
// `subtracted`.
LISSOM_INLINE void reduce_front(
    const Blocks& y, const Fronts& z, int i, int e, array<double> B, array<int> pivots, array<double> inverse_G,
    array<double> V, array<double> C, array<double> R, array<double> work, array<double> subtracted
) {
    const int n = y.size.data[e], tall = y.width.data[e], at = y.row_start.data[e], first = y.v_start.data[e];
    const int rows = z.size.data[e], width = z.width.data[e], stride = width + STATE;
    const double* square = row(B, i) + y.square_start.data[e];
    const double* coupled = row(inverse_G, i) + STATE * first;
    const double* wrench = row(V, i) + 6 * at;
    const int* swap = row(pivots, i) + at;
    double* c = row(C, i) + z.inverse_C_start.data[e];
    double* r = row(R, i) + z.rows_start.data[e];
    for (int k = 0; k < n; ++k)
        // a prescribed coordinate has no row in C and no column in R
        if (y.is_prescribed.data[first + k]) {
            for (int j = 0; j < width; j += 8)
                store(c + k * width + j, block{});
            for (int a = 0; a < rows; ++a)
                r[a * tall + k] = 0.0;
        }
    for (int k = 0; k < n; ++k)
        // swap rows of C like those of B
        if (swap[k] != k)
            for (int j = 0; j < width; j += 8) {
                const block swapped = load(c + k * width + j);
                store(c + k * width + j, load(c + swap[k] * width + j));
                store(c + swap[k] * width + j, swapped);
            }
    for (int j = 0; j < width; j += 8) {
        // B⁻¹ C by the lower and the upper factor
        for (int a = 1; a < n; ++a) {
            block sum = load(c + a * width + j);
            for (int k = 0; k < a; ++k)
                sum += load(c + k * width + j) * -square[a * tall + k];
            store(c + a * width + j, sum);
        }
        for (int a = n - 1; a >= 0; --a) {
            block sum = load(c + a * width + j);
            for (int k = a + 1; k < n; ++k)
                sum += load(c + k * width + j) * -square[a * tall + k];
            store(c + a * width + j, sum * (1.0 / square[a * tall + a]));
        }
    }
    double* sizes = row(subtracted, i);
    const int* unknown = z.unknown.data + z.unknown_start.data[e];
    for (int a = 0; a < rows; ++a)
        for (int k = 0; k < n; ++k)
            sizes[unknown[a]] += fabs(r[a * tall + k] * c[k * width + a]);  // of S − R B⁻¹ C
    for (int a = 0; a < rows + 6; ++a) {
        const double* factors = a < rows ? r + a * tall : wrench + (a - rows) * tall;  // R or V
        double* to = row(work, i) + a * stride;
        for (int j = 0; j < width; j += 8) {
            block sum = load(to + j);
            for (int k = 0; k < n; ++k)
                sum += load(c + k * width + j) * -factors[k];  // S − R B⁻¹ C and E − V B⁻¹ C of (2)
            store(to + j, sum);
        }
        for (int j = 0; j < STATE && a < rows; j += 8) {
            block sum = load(to + width + j);
            for (int k = 0; k < n; ++k)
                sum += load(coupled + STATE * k + j) * -factors[k];  // Q − R B⁻¹ G of (2)
            store(to + width + j, sum);
        }
    }
}

// Compute (3) for block e and the factors of S_cc, with `shift` added to the diagonal of S_cc. Returns 0; −1 if a pivot
// is zero or not finite; 1 if a pivot is not larger than its rounding error, judged by `subtracted`.
LISSOM_INLINE int close_front(
    const Fronts& z, int i, int e, array<double> shift, array<double> subtracted, array<int> swap, array<double> work
) {
    const int rows = z.size.data[e], closed = z.closed.data[e], stride = z.width.data[e] + STATE, total = rows + 6;
    const int* unknown = z.unknown.data + z.unknown_start.data[e];
    double* a = row(work, i);
    int* to = row(swap, i) + z.unknown_start.data[e];
    bool is_doubtful = false;
    for (int k = 0; k < closed; ++k)
        a[k * stride + k] += row(shift, i)[unknown[k]];
    // LU of S_cc with swapped rows, by panels of eight columns, and (3) in the rows below
    for (int first = 0; first < closed; first += 8) {
        const int stop = first + 8 < closed ? first + 8 : closed;
        for (int k = first; k < stop; ++k) {
            int best = k;
            for (int r = k + 1; r < closed; ++r)
                if (fabs(a[r * stride + k]) > fabs(a[best * stride + k]))
                    best = r;
            const double size = fabs(a[best * stride + k]);
            to[k] = best;
            if (!(size > 0.0) || !(size < 1e300))
                return -1;
            if (row(shift, i)[unknown[k]] == 0.0 && size < 1e-8 * row(subtracted, i)[unknown[k]])
                is_doubtful = true;
            if (best != k)
                for (int j = 0; j < stride; j += 8) {
                    const block swapped = load(a + k * stride + j);
                    store(a + k * stride + j, load(a + best * stride + j));
                    store(a + best * stride + j, swapped);
                }
            // eliminate column k within the panel
            const double* top = a + k * stride;
            const double inverse = 1.0 / top[k];
            for (int r = k + 1; r < total; ++r) {
                double* here = a + r * stride;
                const double factor = here[k] *= inverse;
                for (int j = k + 1; j < stop; ++j)
                    here[j] -= factor * top[j];
            }
        }
        // subtract the panel from the columns behind it
        const int after = whole_registers(stop);
        for (int r = first + 1; r < total; ++r) {
            double* here = a + r * stride;
            const int most = r < stop ? r : stop;
            for (int j = stop; j < after && j < stride; ++j)
                for (int k = first; k < most; ++k)
                    here[j] -= here[k] * a[k * stride + j];
            for (int j = after; j < stride; j += 8) {
                block sum = load(here + j);
                for (int k = first; k < most; ++k)
                    sum += load(a + k * stride + j) * -here[k];
                store(here + j, sum);
            }
        }
    }
    return is_doubtful ? 1 : 0;
}

// Store the factors of (3), and the front of the open loops for the parent block.
LISSOM_INLINE void store_front(
    const Fronts& z, int i, int e, array<double> work, array<double> closed_factors, array<double> front
) {
    const int rows = z.size.data[e], closed = z.closed.data[e], width = z.width.data[e], stride = width + STATE;
    const int open = rows - closed, narrow = whole_registers(open), few = whole_registers(closed);
    const double* from = row(work, i);
    double* factors = row(closed_factors, i) + z.closed_factor_start.data[e];
    double* to = row(front, i) + z.front_start.data[e];
    // rows of the closed loops, then S_oc and E_c times the upper factor's inverse
    for (int m = 0; m < closed * stride; ++m)
        factors[m] = from[m];
    factors += closed * stride;
    for (int a = 0; a < open + 6; ++a) {
        const double* here = from + (closed + a) * stride;
        for (int j = 0; j < closed; ++j)
            factors[a * few + j] = here[j];
        double* out = to + a * (narrow + STATE);
        for (int j = 0; j < narrow; ++j)
            out[j] = j < open ? here[closed + j] : 0.0;
        for (int j = 0; j < STATE; ++j)
            out[narrow + j] = here[width + j];
    }
}

// Eliminate δ and the closing loops from the right sides g of the loops open at block e, and the closing loops from the
// wrench c. On entry f contains B⁻¹ f, and solve_inward has eliminated δ from c. Returns c.
LISSOM_INLINE vec6 front_inward(
    const Blocks& y, const Fronts& z, int i, int e, vec6 c, array<double> f, array<double> R,
    array<double> closed_factors, array<int> swap, array<double> g, array<double> local
) {
    const bool is_last = e == y.count;
    const int n = is_last ? 0 : y.size.data[e], tall = is_last ? 0 : y.width.data[e];
    const int rows = z.size.data[e], closed = z.closed.data[e], stride = z.width.data[e] + STATE;
    const int few = whole_registers(closed);
    const double* moved = is_last ? nullptr : row(f, i) + y.v_start.data[e];
    const double* r = row(R, i) + z.rows_start.data[e];
    const double* factors = row(closed_factors, i) + z.closed_factor_start.data[e];
    const double* low = factors + closed * stride;
    const int* unknown = z.unknown.data + z.unknown_start.data[e];
    const int* to = row(swap, i) + z.unknown_start.data[e];
    double* known = row(local, i) + z.unknown_start.data[e];
    double* right = row(g, i);
    for (int a = 0; a < rows; ++a) {
        // g − R B⁻¹ f of (1)
        double sum = right[unknown[a]];
        for (int k = 0; k < n; ++k)
            sum -= r[a * tall + k] * moved[k];
        known[a] = sum;
    }
    for (int k = 0; k < closed; ++k) {
        // swap rows as in close_front
        const double other = known[to[k]];
        known[to[k]] = known[k];
        known[k] = other;
    }
    for (int k = 1; k < closed; ++k)
        for (int j = 0; j < k; ++j)
            known[k] -= factors[k * stride + j] * known[j];
    vec6 out = c;
    // g and c of the open loops, of (3)
    for (int a = 0; a < rows - closed + 6; ++a) {
        double sum = 0.0;
        for (int k = 0; k < closed; ++k)
            sum += low[a * few + k] * known[k];
        if (a < rows - closed)
            right[unknown[closed + a]] = known[closed + a] - sum;
        else
            out.c[a - rows + closed] += sum;
    }
    return out;
}

// Solve for the unknowns of the loops that close at block e, from the motion (x, w, m) of its parent node, and subtract
// B⁻¹ C u of all its loops from δ in f.
LISSOM_INLINE void front_outward(
    const Blocks& y, const Fronts& z, int i, int e, vec6 x, vec6 w, vec6 m, array<double> C,
    array<double> closed_factors, array<double> u, array<double> local, array<double> f
) {
    const bool is_last = e == y.count;
    const int n = is_last ? 0 : y.size.data[e], rows = z.size.data[e], closed = z.closed.data[e];
    const int width = z.width.data[e], stride = width + STATE;
    const double* factors = row(closed_factors, i) + z.closed_factor_start.data[e];
    const double* coupled = row(C, i) + z.inverse_C_start.data[e];
    const int* unknown = z.unknown.data + z.unknown_start.data[e];
    double* found = row(local, i) + z.unknown_start.data[e];
    for (int k = closed; k < rows; ++k)
        found[k] = row(u, i)[unknown[k]];
    for (int k = closed - 1; k >= 0; --k) {
        // S_cc u_c = g_c − S_co u_o − Q_c y of (3)
        const double* top = factors + k * stride;
        double sum = found[k];
        for (int j = k + 1; j < rows; ++j)
            sum -= top[j] * found[j];
        for (int c = 0; c < 6; ++c)
            sum -= top[width + c] * x.c[c] + top[width + 6 + c] * w.c[c] + top[width + 12 + c] * m.c[c];
        row(u, i)[unknown[k]] = found[k] = sum / top[k];
    }
    for (int k = 0; k < n; ++k) {
        double sum = 0.0;
        for (int j = 0; j < rows; ++j)
            sum += coupled[k * width + j] * found[j];  // δ −= B⁻¹ C u of (1)
        row(f, i)[y.v_start.data[e] + k] -= sum;
    }
}

// Put the reduced columns of the child blocks into the rows at block e; returns their number.
LISSOM_INLINE int gather_children(
    const Blocks& y, const Fronts& z, int i, int e, array<double> front, array<double> work
) {
    const bool is_last = e == y.count;
    const int rows = z.size.data[e];
    int n_child = 0;
    for (int m = z.child_start.data[e]; m < z.child_start.data[e + 1]; ++m)
        n_child += z.size.data[z.child.data[m]] - z.closed.data[z.child.data[m]];
    const int width = whole_registers(n_child + (is_last ? 0 : y.size.data[e]));
    double* to = row(work, i);
    for (int m = 0; m < rows * width; ++m)
        to[m] = 0.0;
    int at = 0;
    for (int m = z.child_start.data[e]; m < z.child_start.data[e + 1]; ++m) {
        // X_o' of a child block, (4)
        const int child = z.child.data[m], open = z.size.data[child] - z.closed.data[child];
        const int* in_parent = z.in_parent.data + z.in_parent_start.data[child];
        const double* from = row(front, i) + z.front_start.data[child];
        for (int a = 0; a < open; ++a)
            for (int b = 0; b < open; ++b)
                to[in_parent[a] * width + at + b] = from[a * whole_registers(open) + b];
        at += open;
    }
    return n_child;
}

// Add the columns of the coordinates of block e to row `at`, for the wrench f on node k, behind the n_child columns of
// its child blocks.
LISSOM_INLINE void put_coordinate_columns(
    const Columns& x, const Blocks& y, int i, int e, int k, int at, int n_child, double sign, vec6 f, array<double> L,
    array<double> scale, array<double> work
) {
    const int n = y.size.data[e], width = whole_registers(n_child + n), first = y.v_start.data[e];
    const double* rows = six_rows(L, i, k, x.width);
    double* to = row(work, i) + at * width + n_child;
    for (int j = 0; j < n; ++j)
        for (int c = 0; c < 6; ++c)
            to[j] += sign * f.c[c] * rows[c * x.width + j] * scale.data[first + j];  // A D of (4)
}

// Add the squares of the columns of block e to the squared norms of the rows of A.
LISSOM_INLINE void add_square_sums(
    const Blocks& y, const Fronts& z, int i, int e, int n_child, array<double> work, array<double> size
) {
    const int rows = z.size.data[e], n = y.size.data[e], width = whole_registers(n_child + n);
    for (int a = 0; a < rows; ++a)
        for (int j = 0; j < n; ++j) {
            const double x = row(work, i)[a * width + n_child + j];
            row(size, i)[z.unknown.data[z.unknown_start.data[e] + a]] += x * x;
        }
}

// Compute (4) for block e: mark the chosen rows in `slot`, and store X_o' of the open loops for the parent block.
LISSOM_INLINE void choose_closing(
    const Blocks& y, const Fronts& z, int i, int e, int n_child, double largest, array<double> work,
    array<double> reflector, array<double> front, array<int> slot
) {
    const int rows = z.size.data[e], closed = z.closed.data[e], open = rows - closed;
    const int cols = n_child + (e == y.count ? 0 : y.size.data[e]), width = whole_registers(cols);
    const int* unknown = z.unknown.data + z.unknown_start.data[e];
    int* chosen = row(slot, i);
    double *a = row(work, i), *v = row(reflector, i);
    // squared norm of row r from column `from` on
    auto square = [&](int r, int from) {
        double sum = 0.0;
        for (int j = from; j < cols; ++j)
            sum += a[r * width + j] * a[r * width + j];
        return sum;
    };
    // Householder reflection of the columns from `from` on, which leaves one number of row p there; it is applied to
    // the rows from `first` on that are not chosen
    auto reflect = [&](int p, int from, int first) {
        for (int j = 0; j < width; ++j)
            v[j] = j < from ? 0.0 : a[p * width + j];
        const double length = sqrt(square(p, from));
        v[from] += v[from] < 0.0 ? -length : length;
        double sum = 0.0;
        for (int j = from; j < cols; ++j)
            sum += v[j] * v[j];
        if (!(sum > 0.0))
            return;
        for (int r = first; r < rows; ++r) {
            if (r < closed && chosen[unknown[r]] >= 0)
                continue;
            block total = {};
            double* here = a + r * width;
            for (int j = from / 8 * 8; j < width; j += 8)
                total += load(here + j) * load(v + j);
            double along = 0.0;
            for (int c = 0; c < 8; ++c)
                along += total[c];
            for (int j = from / 8 * 8; j < width; j += 8)
                add(here + j, load(v + j) * (-2.0 * along / sum));
        }
    };
    // T of (4): the largest remaining row, until it is not larger than the rounding error of the largest row of all
    int done = 0;
    for (; done < cols; ++done) {
        int best = -1;
        double most = 1e-16 * largest;
        for (int r = 0; r < closed; ++r) {
            const double left = chosen[unknown[r]] < 0 ? square(r, done) : 0.0;
            if (left > most) {
                most = left;
                best = r;
            }
        }
        if (best < 0)
            break;
        reflect(best, done, 0);
        chosen[unknown[best]] = 1;
    }
    // X_o' of (4): as few columns as there are open rows
    if (cols - done > open)
        for (int r = 0; r < open; ++r)
            reflect(closed + r, done + r, closed + r);
    double* to = row(front, i) + z.front_start.data[e];
    for (int r = 0; r < open; ++r)
        for (int j = 0; j < open; ++j)
            to[r * whole_registers(open) + j] = done + j < cols ? a[(closed + r) * width + done + j] : 0.0;
}

// Set the rows at block e, with the columns of its own coordinates only, to zero.
LISSOM_INLINE void clear_rows(const Blocks& y, const Fronts& z, int i, int e, array<double> work) {
    const int count = z.size.data[e] * whole_registers(y.size.data[e]);
    for (int m = 0; m < count; ++m)
        row(work, i)[m] = 0.0;
}
