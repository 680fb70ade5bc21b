// One stage of a step forwards and backwards, the matrix of a stage, and the propagation of anchors of contacts that
// stick. Equations are those of the Python modules gradients/recursion, (1)-(4), and gradients/anchors;
// gradients/recursion describes the rows of contact pairs.
//
// A row of `state` holds δq, δv, δa and δâ at the end of a step, nv numbers each, or derivatives with respect to them.
// A row of `work` holds the same of the start of the step, then δΔ, δw and δa of each stage, nv numbers each, and three
// rows of sums.

namespace lissom {

// Weights of a stage: of Δ, of its rate w and, after the last stage, of â. In each, the first weight is that of x, the
// next three are those of δvₙ, δaₙ and δâₙ, and from PAST on there are three for each earlier stage.
enum { PAST = 4 };
struct stage_weights {
    const double *p, *w, *ahead;
};

// Weights of the stage in row r of all steps: those of the scheme, or of the one that replaces it in this step.
LISSOM_INLINE stage_weights weights_of(const array<double>& weights, const array<int>& scheme, int stages, int r) {
    const int size = PAST + 3 * (stages - 1);
    const double* p = weights.data + 3 * size * (scheme.data[r / stages] * stages + r % stages);
    return {p, p + size, p + 2 * size};
}

// Addresses in a row of `work`: of the start of the step, the changes of all stages, those of stage s, and the sums.
struct stage_changes {
    double *start, *all, *stage, *sums;
};

LISSOM_INLINE stage_changes changes_of(double* work, int nv, int stages, int s) {
    double* all = work + 4 * nv;
    return {work, all, all + 3 * nv * s, all + 3 * nv * stages};
}

// The coordinates first … first + size − 1 of one stored pose.
struct pose_group {
    int first, size;
};

LISSOM_INLINE pose_group group_of(const array<int>& group, int g) {
    return {group.data[2 * g], group.data[2 * g + 1]};
}

// The 6x6 matrix of group g in row r: of T, E or W.
LISSOM_INLINE const double* matrix_of(const array<double>& matrices, int r, int g) {
    return row(matrices, r) + 36 * g;
}

// Call `put` for each coordinate of a stored pose, with T δΔ + E δqₙ of (3) and its rate v = T w + W δΔ. c contains δΔ
// and w, `start` contains δqₙ.
template <typename F>
LISSOM_INLINE void for_pose_coordinates(
    int nv, int groups, const array<int>& group, const array<double>& T, const array<double>& E, const array<double>& W,
    int r, const double* c, const double* start, F&& put
) {
    for (int g = 0; g < groups; ++g) {
        const pose_group pose = group_of(group, g);
        const int at = pose.first;
        const double *turn = matrix_of(T, r, g), *carry = matrix_of(E, r, g), *bend = matrix_of(W, r, g);
        for (int e = 0; e < pose.size; ++e) {
            double moved = 0.0, v = 0.0;
            for (int j = 0; j < pose.size; ++j) {
                moved += turn[6 * e + j] * c[at + j] + carry[6 * e + j] * start[at + j];
                v += turn[6 * e + j] * c[nv + at + j] + bend[6 * e + j] * c[at + j];
            }
            put(at + e, moved, v);
        }
    }
}

}  // namespace lissom

// S of row `here` of a window, with the pose maps of row r of all steps. Dependent rows of A_q and A_v become zero.
LISSOM_INLINE void stage_matrix(
    const StageSizes& systems, const PoseMaps& poses, const StageMatrices& matrices, int r, int here, int s
) {
    const int nv = systems.nv, n = systems.n, width = systems.width, wide = systems.wide, stages = systems.stages,
        groups = systems.groups, rates = systems.rates;
    const array<int> &group = poses.group, &slot = matrices.slot;
    const array<double> &weights = systems.weights, &T = poses.T, &W = poses.W, &K = matrices.K, &D = matrices.D,
        &M = matrices.M, &A = matrices.A, &A_q = matrices.A_q, &A_v = matrices.A_v, &scale = systems.scale,
        &matrix = matrices.matrix, &units = matrices.units;
    const int m = n - nv;
    const bool rolls = A_v.shape[1] > 0;
    const stage_weights weight = weights_of(weights, systems.scheme, stages, r);
    const double p0 = weight.p[0], w0 = weight.w[0], c1 = w0 / p0;
    const double *by_q = row(K, here), *by_v = row(D, here), *by_a = row(M, here);
    double* out = row(matrix, here);
    for (int e = 0; e < nv; ++e) {
        for (int j = 0; j < width; j += 8) {
            // M + w₀ D + p₀ K
            block sum = load(by_a + e * width + j);
            sum += load(by_v + e * width + j) * w0;
            sum += load(by_q + e * width + j) * p0;
            store(out + e * wide + j, sum);
        }
        for (int j = width; j < wide; ++j)
            out[e * wide + j] = 0.0;
    }
    for (int k = 0; k < m; ++k) {
        // A_q + c₁ A_v and −Aᵀ; a dependent row becomes a row of the identity
        double* moves = row(A_q, here) + k * width;
        double* slips = rolls ? row(A_v, here) + k * width : nullptr;
        double* to = out + (nv + k) * wide;
        const bool is_independent = row(slot, here)[k] >= 0;
        for (int j = 0; j < wide; ++j)
            to[j] = 0.0;
        for (int j = 0; j < width; ++j)
            to[j] = moves[j] = is_independent ? moves[j] : 0.0;
        for (int j = 0; j < width && rolls; ++j) {
            slips[j] = is_independent ? slips[j] : 0.0;
            to[j] += c1 * slips[j];
        }
        for (int e = 0; e < nv; ++e)
            out[e * wide + nv + k] = is_independent ? -row(A, here)[k * width + e] : 0.0;
        if (!is_independent)
            to[nv + k] = 1.0;
    }
    for (int g = 0; g < groups; ++g) {
        // K' and D' of the coordinates of a stored pose
        const pose_group pose = group_of(group, g);
        const int at = pose.first, size = pose.size;
        const double* turn = matrix_of(T, r, g);
        const double* bend = matrix_of(W, r, g);
        for (int e = 0; e < n; ++e) {
            const double* q = e < nv ? by_q + e * width + at : row(A_q, here) + (e - nv) * width + at;
            const double *v = by_v + e * width + at, *a = by_a + e * width + at;
            const double* slip = e >= nv && rolls ? row(A_v, here) + (e - nv) * width + at : nullptr;
            for (int j = 0; j < size; ++j) {
                double move = 0.0, rate = 0.0;
                for (int c = 0; c < size; ++c)
                    move += q[c] * turn[6 * c + j];
                if (slip) {
                    // A_v (c₁ T + W), or c₁ A_v
                    for (int c = 0; c < size && rates; ++c)
                        move += slip[c] * (c1 * turn[6 * c + j] + bend[6 * c + j]);
                    move += rates ? 0.0 : c1 * slip[j];
                }
                if (e >= nv) {
                    out[e * wide + at + j] = move;
                    continue;
                }
                if (rates)
                    for (int c = 0; c < size; ++c) {
                        // K' = K T + (D + c₁ M) W, D' = D T + c₁ M (T − 1)
                        const double both = v[c] + c1 * a[c];
                        move += both * bend[6 * c + j];
                        rate += both * turn[6 * c + j];
                    }
                rate = rates ? rate - c1 * a[j] : v[j];
                out[e * wide + at + j] = a[j] + w0 * rate + p0 * move;
            }
        }
    }
    double* unit = row(units, here);
    for (int e = 0; e < n; ++e)
        unit[e] = 0.0;
    for (int j = 0; j < nv; ++j) {
        // scales of the rows: one over the largest entry in natural units of the coordinates
        const int diagonal = j * width + j;
        const double stiff = fabs(by_a[diagonal]) + w0 * fabs(by_v[diagonal]) + p0 * fabs(by_q[diagonal]);
        const double size = stiff > 0.0 ? 1.0 / sqrt(stiff) : scale.data[j];
        for (int e = 0; e < n; ++e) {
            const double x = fabs(out[e * wide + j]) * size;
            unit[e] = x > unit[e] ? x : unit[e];
        }
    }
    for (int e = 0; e < n; ++e) {
        unit[e] = unit[e] > 0.0 ? 1.0 / unit[e] : 1.0;
        for (int j = 0; j < wide; j += 8)
            store(out + e * wide + j, load(out + e * wide + j) * unit[e]);
    }
}

// Right side of Sᵀ μ = g in stage s of step k: derivatives with respect to the end of the step, with `seeds`, and by
// the use of this stage in later ones. A row of `seeds` has the derivatives with respect to q, v and a, and by the
// constraint forces.
LISSOM_INLINE void begin_backward(
    const StageSizes& systems, const PoseMaps& poses, const Carried& carried, int base, int i, int k, int s
) {
    const int nv = systems.nv, n = systems.n, stages = systems.stages, groups = systems.groups, rates = systems.rates;
    const array<int> &group = poses.group;
    const array<double> &weights = systems.weights, &T = poses.T, &E = poses.E, &W = poses.W,
        &seeds = carried.right_side, &state = carried.state, &work = carried.work, &mu = carried.result;
    const int r = base + k * stages + s;
    const stage_weights weight = weights_of(weights, systems.scheme, stages, r);
    double* end = row(state, i);
    const stage_changes change = changes_of(row(work, i), nv, stages, s);
    double *start = change.start, *all = change.all, *c = change.stage;
    const bool is_last = s == stages - 1;
    const double c1 = weight.w[0] / weight.p[0];
    if (is_last) {
        const double* seed = row(seeds, i) + k * (3 * nv + n - nv);
        for (int j = 0; j < 3 * nv; ++j)
            end[j] += seed[j];
        for (int j = 0; j < (4 + 3 * stages) * nv; ++j)
            start[j] = 0.0;
        for (int j = 0; j < nv; ++j) {
            // the transpose of (3), and of â
            c[j] = start[j] = end[j];
            c[nv + j] = end[nv + j];
            const double ahead = end[3 * nv + j];
            c[2 * nv + j] = end[2 * nv + j];
            for (int e = 1; e < 4; ++e)
                start[e * nv + j] += weight.ahead[e] * ahead;
            for (int e = 0; e < 3 * s; ++e)
                all[e * nv + j] += weight.ahead[PAST + e] * ahead;
        }
    }
    for (int g = 0; g < groups; ++g) {
        const pose_group pose = group_of(group, g);
        const int at = pose.first, size = pose.size;
        const double* turn = matrix_of(T, r, g);
        const double* carry = matrix_of(E, r, g);
        const double* bend = matrix_of(W, r, g);
        if (is_last)
            for (int j = 0; j < size; ++j) {
                // Tᵀ and Eᵀ of (3)
                double by_move = 0.0, by_start = 0.0;
                for (int e = 0; e < size; ++e) {
                    by_move += turn[6 * e + j] * end[at + e];
                    by_start += carry[6 * e + j] * end[at + e];
                }
                c[at + j] = by_move;
                start[at + j] = by_start;
            }
        if (rates) {
            double v[6];
            for (int e = 0; e < size; ++e) {
                // the transpose of v = T w + W δΔ and a = x + c₁ (v − w)
                v[e] = (is_last ? end[nv + at + e] : 0.0) + c1 * c[2 * nv + at + e];
                c[nv + at + e] -= (is_last ? end[nv + at + e] : 0.0) + c1 * c[2 * nv + at + e];
            }
            for (int j = 0; j < size; ++j)
                for (int e = 0; e < size; ++e) {
                    c[nv + at + j] += turn[6 * e + j] * v[e];
                    c[at + j] += bend[6 * e + j] * v[e];
                }
        }
    }
    // g of Sᵀ μ = g: by a, by w₀ x, by p₀ x and by â
    double* y = row(mu, i) + (k * stages + s) * n;
    for (int j = 0; j < nv; ++j)
        y[j] = c[2 * nv + j] + weight.w[0] * c[nv + j] + weight.p[0] * c[j]
            + (is_last ? weight.ahead[0] * end[3 * nv + j] : 0.0);
    // g_λ: seeds for the constraint forces
    const double* force_seed = row(seeds, i) + k * (3 * nv + n - nv) + 3 * nv;
    for (int j = nv; j < n; ++j)
        y[j] = is_last ? force_seed[j - nv] : 0.0;
}

// Scale μ, and add −K̃ᵀ μ, −Dᵀ μ and −Mᵀ μ to the derivatives with respect to the start of the step and by earlier
// stages.
LISSOM_INLINE void end_backward(
    const StageSizes& systems, const PoseMaps& poses, const StageMatrices& matrices, const Carried& carried,
    int base, int here, int i, int k, int s
) {
    const int nv = systems.nv, n = systems.n, width = systems.width, stages = systems.stages, groups = systems.groups,
        rates = systems.rates;
    const array<int> &group = poses.group;
    const array<double> &weights = systems.weights, &T = poses.T, &E = poses.E, &W = poses.W, &K = matrices.K,
        &A_q = matrices.A_q, &A_v = matrices.A_v, &D = matrices.D, &M = matrices.M, &units = matrices.units,
        &state = carried.state, &work = carried.work, &mu = carried.result;
    const int r = base + k * stages + s;
    const stage_weights weight = weights_of(weights, systems.scheme, stages, r);
    const stage_changes change = changes_of(row(work, i), nv, stages, s);
    double *start = change.start, *all = change.all, *c = change.stage, *z = change.sums;
    double* y = row(mu, i) + (k * stages + s) * n;
    const double c1 = weight.w[0] / weight.p[0];
    for (int j = 0; j < 3 * width; ++j)
        z[j] = 0.0;
    for (int e = 0; e < n; ++e)
        // μ, scaled like the rows
        y[e] *= row(units, here)[e];
    for (int e = 0; e < n; ++e) {
        // K̃ᵀ μ, Dᵀ μ and Mᵀ μ
        const double* from = e < nv ? row(K, here) + size_t(e) * width : row(A_q, here) + size_t(e - nv) * width;
        const double by = e < nv ? y[e] : y[e] / weight.p[0];
        for (int j = 0; j < width; j += 8)
            add(z + j, load(from + j) * by);
    }
    for (int e = 0; e < nv; ++e) {
        const double* from = row(D, here) + size_t(e) * width;
        for (int j = 0; j < width; j += 8)
            add(z + width + j, load(from + j) * y[e]);
    }
    for (int e = nv; e < n && A_v.shape[1] > 0; ++e) {
        const double* from = row(A_v, here) + size_t(e - nv) * width;
        for (int j = 0; j < width; j += 8)
            add(z + width + j, load(from + j) * (y[e] / weight.p[0]));
    }
    if (rates && groups)
        for (int e = 0; e < nv; ++e) {
            const double* from = row(M, here) + size_t(e) * width;
            for (int j = 0; j < width; j += 8)
                add(z + 2 * width + j, load(from + j) * y[e]);
        }
    for (int g = 0; g < groups; ++g) {
        const pose_group pose = group_of(group, g);
        const int at = pose.first, size = pose.size;
        const double* turn = matrix_of(T, r, g);
        const double* carry = matrix_of(E, r, g);
        const double* bend = matrix_of(W, r, g);
        double by_move[6], by_start[6], by_rate[6];
        for (int j = 0; j < size; ++j) {
            // the transpose of the terms of (2) in T, E and W
            by_move[j] = by_start[j] = 0.0;
            by_rate[j] = rates ? -c1 * z[2 * width + at + j] : z[width + at + j];
            for (int e = 0; e < size; ++e) {
                by_move[j] += turn[6 * e + j] * z[at + e];
                by_start[j] += carry[6 * e + j] * z[at + e];
                if (rates) {
                    const double v = z[width + at + e] + c1 * z[2 * width + at + e];
                    by_rate[j] += turn[6 * e + j] * v;
                    by_move[j] += bend[6 * e + j] * v;
                }
            }
        }
        for (int j = 0; j < size; ++j) {
            start[at + j] -= by_start[j];
            c[at + j] -= by_move[j];
            c[nv + at + j] -= by_rate[j];
            z[at + j] = z[width + at + j] = 0.0;
        }
    }
    for (int j = 0; j < nv; ++j) {
        start[j] -= z[j];
        c[j] -= z[j];
        c[nv + j] -= z[width + j];
        for (int e = 1; e < 4; ++e)
            // k_Δ and k_w of (1), transposed
            start[e * nv + j] += weight.p[e] * c[j] + weight.w[e] * c[nv + j];
        for (int e = 0; e < 3 * s; ++e)
            all[e * nv + j] += weight.p[PAST + e] * c[j] + weight.w[PAST + e] * c[nv + j];
    }
    if (s == 0) {
        double* to = row(state, i);
        for (int j = 0; j < 4 * nv; ++j)
            to[j] = start[j];
    }
}

// Right side of (2) in stage s of step k.
LISSOM_INLINE void begin_forward(
    const StageSizes& systems, const PoseMaps& poses, const StageMatrices& matrices, const Carried& carried,
    int base, int here, int i, int k, int s
) {
    const int nv = systems.nv, n = systems.n, width = systems.width, stages = systems.stages, groups = systems.groups,
        rates = systems.rates;
    const array<int> &group = poses.group;
    const array<double> &weights = systems.weights, &T = poses.T, &E = poses.E, &W = poses.W, &K = matrices.K,
        &A_q = matrices.A_q, &A_v = matrices.A_v, &D = matrices.D, &M = matrices.M, &units = matrices.units,
        &forcing = carried.right_side, &state = carried.state, &work = carried.work, &unknown = carried.unknown;
    const int r = base + k * stages + s;
    const stage_weights weight = weights_of(weights, systems.scheme, stages, r);
    const double* start = row(state, i);
    const stage_changes change = changes_of(row(work, i), nv, stages, s);
    double *all = change.all, *c = change.stage, *z = change.sums;
    const double* right = row(forcing, i) + (k * stages + s) * n;
    double* y = row(unknown, i);
    const double c1 = weight.w[0] / weight.p[0];
    for (int j = 0; j < 3 * width; ++j)
        z[j] = 0.0;
    for (int j = 0; j < nv; ++j) {
        // k_Δ and k_w of (1)
        double move = 0.0, rate = 0.0;
        for (int e = 1; e < 4; ++e) {
            move += weight.p[e] * start[e * nv + j];
            rate += weight.w[e] * start[e * nv + j];
        }
        for (int e = 0; e < 3 * s; ++e) {
            move += weight.p[PAST + e] * all[e * nv + j];
            rate += weight.w[PAST + e] * all[e * nv + j];
        }
        c[j] = move;
        c[nv + j] = rate;
        z[j] = start[j] + move;
        z[width + j] = rate;
    }
    for_pose_coordinates(nv, groups, group, T, E, W, r, c, start, [&](int j, double moved, double v) {
        z[j] = moved;
        if (rates) {
            z[width + j] = v;
            z[2 * width + j] = c1 * (v - c[nv + j]);
        }
    });
    for (int e = 0; e < n; ++e) {
        // f − K̃ (…) − D (…) − c₁ M (…) of (2)
        const double* by_q = e < nv ? row(K, here) + size_t(e) * width : row(A_q, here) + size_t(e - nv) * width;
        double moved = 0.0;
        for (int j = 0; j < nv; ++j)
            moved += by_q[j] * z[j];
        if (e >= nv && A_v.shape[1] > 0) {
            const double* slip = row(A_v, here) + size_t(e - nv) * width;
            for (int j = 0; j < nv; ++j)
                moved += slip[j] * z[width + j];
        }
        double sum = right[e] - (e < nv ? moved : moved / weight.p[0]);
        if (e < nv) {
            const double* by_v = row(D, here) + size_t(e) * width;
            for (int j = 0; j < nv; ++j)
                sum -= by_v[j] * z[width + j];
            if (rates && groups) {
                const double* by_a = row(M, here) + size_t(e) * width;
                for (int j = 0; j < nv; ++j)
                    sum -= by_a[j] * z[2 * width + j];
            }
        }
        y[e] = sum * row(units, here)[e];
    }
}

// δΔ, δv and δa of a stage by (1), and after the last stage the end of the step by (3).
LISSOM_INLINE void end_forward(
    const StageSizes& systems, const PoseMaps& poses, const Carried& carried, int base, int i, int k, int s
) {
    const int nv = systems.nv, n = systems.n, stages = systems.stages, groups = systems.groups, rates = systems.rates;
    const array<int> &group = poses.group;
    const array<double> &weights = systems.weights, &T = poses.T, &E = poses.E, &W = poses.W, &state = carried.state,
        &work = carried.work, &unknown = carried.unknown, &result = carried.result;
    const int r = base + k * stages + s;
    const stage_weights weight = weights_of(weights, systems.scheme, stages, r);
    double* start = row(state, i);
    const stage_changes change = changes_of(row(work, i), nv, stages, s);
    double *all = change.all, *c = change.stage;
    const bool is_last = s == stages - 1;
    const double* y = row(unknown, i);
    const double c1 = weight.w[0] / weight.p[0];
    double* out = row(result, i) + k * (4 * nv + n - nv);
    for (int j = 0; j < nv; ++j) {
        // (1)
        c[j] += weight.p[0] * y[j];
        c[nv + j] += weight.w[0] * y[j];
        c[2 * nv + j] = y[j];
    }
    if (is_last)
        for (int j = 0; j < nv; ++j) {
            // (3), and â
            double ahead = weight.ahead[0] * y[j];
            for (int e = 1; e < 4; ++e)
                ahead += weight.ahead[e] * start[e * nv + j];
            for (int e = 0; e < 3 * s; ++e)
                ahead += weight.ahead[PAST + e] * all[e * nv + j];
            out[j] = start[j] + c[j];
            out[nv + j] = c[nv + j];
            out[3 * nv + j] = ahead;
        }
    for_pose_coordinates(nv, groups, group, T, E, W, r, c, start, [&](int j, double moved, double v) {
        if (is_last)
            out[j] = moved;
        if (rates) {
            c[2 * nv + j] += c1 * (v - c[nv + j]);
            if (is_last)
                out[nv + j] = v;
        }
    });
    if (is_last) {
        for (int j = 0; j < nv; ++j)
            // the end of the step, and the start of the next one
            out[2 * nv + j] = c[2 * nv + j];
        for (int j = nv; j < n; ++j)
            out[3 * nv + j] = y[j];
        for (int j = 0; j < 4 * nv; ++j)
            start[j] = out[j];
    }
}

namespace lissom {

// Derivatives of one contact pair: of the generalised force by the anchor, (nv, 6), and of the anchor at the end of a
// step by q and by v there, (6, nv) each, and by the anchor before, (6, 6).
struct anchor_slopes {
    const double *force, *by_q, *by_v, *by_anchor;
};

LISSOM_INLINE anchor_slopes slopes_of(const array<double>& slopes, int pair, int nv) {
    const double* first = row(slopes, pair);
    return {first, first + 6 * nv, first + 12 * nv, first + 18 * nv};
}

}  // namespace lissom

// Add the forces of changed anchors to f of stage s of step k.
LISSOM_INLINE void anchor_forces_forward(
    const StageSizes& systems, const AnchorPairs& pairs, const Carried& carried, int base, int i, int k, int s
) {
    const int nv = systems.nv, n = systems.n, stages = systems.stages;
    const array<int> &begin = pairs.begin, &pair = pairs.pair;
    const array<double> &slopes = pairs.slopes, &anchor_change = carried.anchor_change, &forcing = carried.right_side;
    const int r = base + k * stages + s;
    double* right = row(forcing, i) + (k * stages + s) * n;
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at) {
        const double* force = slopes_of(slopes, at, nv).force;
        const double* moved = row(anchor_change, i) + 6 * pair.data[at];
        // f += ∂f/∂anchor δanchor
        for (int j = 0; j < nv; ++j)
            for (int e = 0; e < 6; ++e)
                right[j] += force[6 * j + e] * moved[e];
    }
}

// Changes of anchors at the end of step k, added to the entries of `moves`. Changes of pairs without contact become
// zero.
LISSOM_INLINE void anchor_motion_forward(
    const StageSizes& systems, const AnchorPairs& pairs, const Carried& carried, int base, int i, int k
) {
    const int nv = systems.nv, numbers = systems.anchors, stages = systems.stages;
    const array<int> &begin = pairs.begin, &pair = pairs.pair;
    const array<double> &slopes = pairs.slopes, &state = carried.state, &anchor_change = carried.anchor_change,
        &moves = carried.moves;
    const int first = begin.data[base], r = base + (k + 1) * stages - 1;
    const double* end = row(state, i);
    double* z = row(anchor_change, i);
    double* to = row(moves, i);
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at) {
        const anchor_slopes slope = slopes_of(slopes, at, nv);
        for (int e = 0; e < 6; ++e) {
            // δanchor at the end of the step, by δq, δv and the anchor before
            double sum = 0.0;
            for (int j = 0; j < nv; ++j)
                sum += slope.by_q[e * nv + j] * end[j] + slope.by_v[e * nv + j] * end[nv + j];
            for (int c = 0; c < 6; ++c)
                sum += slope.by_anchor[6 * e + c] * z[6 * pair.data[at] + c];
            to[6 * (at - first) + e] += sum;
        }
    }
    for (int j = 0; j < numbers; ++j)
        z[j] = 0.0;
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at)
        for (int e = 0; e < 6; ++e)
            z[6 * pair.data[at] + e] = to[6 * (at - first) + e];
}

// Propagate derivatives with respect to the anchors at the end of step k to the state there and to the anchors before.
// `moves` receives them by rows.
LISSOM_INLINE void anchor_motion_backward(
    const StageSizes& systems, const AnchorPairs& pairs, const Carried& carried, int base, int i, int k
) {
    const int nv = systems.nv, numbers = systems.anchors, stages = systems.stages;
    const array<int> &begin = pairs.begin, &pair = pairs.pair;
    const array<double> &slopes = pairs.slopes, &state = carried.state, &anchor_change = carried.anchor_change,
        &moves = carried.moves;
    const int first = begin.data[base], r = base + (k + 1) * stages - 1;
    double* end = row(state, i);
    double* z = row(anchor_change, i);
    double* to = row(moves, i);
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at)
        for (int e = 0; e < 6; ++e)
            to[6 * (at - first) + e] = z[6 * pair.data[at] + e];
    for (int j = 0; j < numbers; ++j)
        z[j] = 0.0;
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at) {
        const anchor_slopes slope = slopes_of(slopes, at, nv);
        for (int e = 0; e < 6; ++e) {
            // the transpose of anchor_motion_forward
            const double by = to[6 * (at - first) + e];
            for (int j = 0; j < nv; ++j) {
                end[j] += slope.by_q[e * nv + j] * by;
                end[nv + j] += slope.by_v[e * nv + j] * by;
            }
            for (int c = 0; c < 6; ++c)
                z[6 * pair.data[at] + c] += slope.by_anchor[6 * e + c] * by;
        }
    }
}

// Add the part of μ of stage s of step k to the derivatives with respect to the anchors of the contact pairs there.
LISSOM_INLINE void anchor_forces_backward(
    const StageSizes& systems, const AnchorPairs& pairs, const Carried& carried, int base, int i, int k, int s
) {
    const int nv = systems.nv, n = systems.n, stages = systems.stages;
    const array<int> &begin = pairs.begin, &pair = pairs.pair;
    const array<double> &slopes = pairs.slopes, &anchor_change = carried.anchor_change, &mu = carried.result;
    const int r = base + k * stages + s;
    const double* y = row(mu, i) + (k * stages + s) * n;
    for (int at = begin.data[r]; at < begin.data[r + 1]; ++at) {
        const double* force = slopes_of(slopes, at, nv).force;
        double* z = row(anchor_change, i) + 6 * pair.data[at];
        // (∂f/∂anchor)ᵀ μ
        for (int j = 0; j < nv; ++j)
            for (int e = 0; e < 6; ++e)
                z[e] += force[6 * j + e] * y[j];
    }
}
