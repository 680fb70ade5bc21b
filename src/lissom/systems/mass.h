// The mass matrix by composite inertias. Equations are those of the Python module systems/mass.

// composite[to] += composite[from_], matrices Mᶜ of (2).
LISSOM_INLINE void add_matrix(int i, int from_, int to, array<mat6> composite) {
    double* out = (double*)(row(composite, i) + to);
    const double* in = (const double*)(row(composite, i) + from_);
    for (int n = 0; n < 32; n += 8)
        add(out + n, load(in + n));
    for (int n = 32; n < 36; ++n)
        out[n] += in[n];
}

// V += Mᶜ S_k of (3), and rows first … stop − 1 of out += S_kᵀ V, where this increment of V counts half.
LISSOM_INLINE void fold_mass(
    const Columns& x, int first, int stop, int i, int k, array<mat6> composite, array<double> S, array<double> V,
    array<double> out
) {
    const int width = x.width, first_block = first / 8 * 8;
    const double* s = six_rows(S, i, k, width);
    double* v = six_rows(V, i, x.slot.data[k], width);
    double* to = row(out, i);
    const auto& M = row(composite, i)[k];
    for_blocks(x.subtree_start, x.subtree_range, k, [&](int j) {
        block sum[6];
        for (int r = 0; r < 6; ++r)
            sum[r] = load(v + r * width + j);
        if (j >= first_block && j < stop) {
            block product[6] = {};
            for (int c = 0; c < 6; ++c) {
                const block column = load(s + c * width + j);
                for (int r = 0; r < 6; ++r)
                    product[r] += column * M.data[r][c];  // Mᶜ S_k of (3)
            }
            for (int r = 0; r < 6; ++r) {
                add(v + r * width + j, product[r]);
                sum[r] += product[r] * 0.5;
            }
        }
        for (int alpha = first; alpha < stop; ++alpha) {
            block row = load(to + alpha * width + j);
            for (int r = 0; r < 6; ++r)
                row += sum[r] * s[r * width + alpha];  // S_kᵀ V of (2)
            store(to + alpha * width + j, row);
        }
    });
}

// M = X + Xᵀ (nv x nv, without padding), with X = b.half in rows of `width`.
LISSOM_INLINE void put_square(int nv, int width, const MassBuffers& b, int i, array<double> M) {
    const double* half = row(b.half, i);
    double* to = row(M, i);
    for (int r = 0; r < nv; ++r)
        for (int c = 0; c <= r; ++c)
            to[r * nv + c] = to[c * nv + r] = half[r * width + c] + half[c * width + r];
}

// Fill M (nv x nv) by (4), without rotors, for a model with is_rigid. Sets the origins of the base frames like
// place_bases.
//
// A vector has four numbers, the last of which is zero; a matrix has three such columns. Only in I[3] the fourth number
// is used: m behind d. `v` is the coordinate of a joint, −1 for other nodes; `up` is the joint or base before it.
LISSOM_INLINE void rigid_mass(
    const Tables& t, int i, array<double> q, array<vec3> origin, array<double> bodies, array<double> M
) {
#if defined(__CUDACC__) || defined(__CUDA_ARCH__)
    struct quad {
        double x[4];
        __device__ quad operator*(double a) const { return {{x[0] * a, x[1] * a, x[2] * a, x[3] * a}}; }
        __device__ quad operator*(const quad& a) const {
            return {{x[0] * a.x[0], x[1] * a.x[1], x[2] * a.x[2], x[3] * a.x[3]}};
        }
        __device__ quad operator+(const quad& a) const {
            return {{x[0] + a.x[0], x[1] + a.x[1], x[2] + a.x[2], x[3] + a.x[3]}};
        }
        __device__ quad operator-(const quad& a) const { return *this + a * -1.0; }
        __device__ double& operator[](int e) { return x[e]; }
        __device__ double operator[](int e) const { return x[e]; }
    };
    auto turned = [](const quad& a) { return quad{{a[1], a[2], a[0], a[3]}}; };
#else
    typedef double quad __attribute__((vector_size(32), aligned(8), may_alias));
    auto turned = [](const quad& a) { return __builtin_shufflevector(a, a, 1, 2, 0, 3); };
#endif
    struct body {
        quad R[3], p, I[4], w, u;
        int v, up;
    };
    body* const all = (body*)row(bodies, i);
    // A y, where y has the stride `by`
    auto apply = [](const quad* A, const double* y, int by) { return A[0] * y[0] + A[1] * y[by] + A[2] * y[2 * by]; };
    auto cross = [&](const quad& a, const quad& b) { return turned(a * turned(b) - turned(a) * b); };
    auto total = [](const quad& a) { return a[0] + a[1] + a[2]; };
    // the pose of node k, and (5) of its joint
    auto place = [&](int k) {
        const auto& node = t.node.data[k];
        body& b = all[k];
        const int from = node.parent;
        const double *G = (const double*)&node.R, *at = (const double*)&node.p, *axis = (const double*)&node.screw;
        b.v = node.is_screw ? node.v_start : -1;
        b.up = from < 0 || all[from].v >= 0 ? from : all[from].up;
        quad R[3], p;
        if (from < 0) {
            const double* o = (const double*)(row(origin, i) + node.base);
            for (int c = 0; c < 3; ++c)
                R[c] = quad{G[c], G[3 + c], G[6 + c], 0.0};
            p = quad{at[0] - o[0], at[1] - o[1], at[2] - o[2], 0.0};
        } else {
            for (int c = 0; c < 3; ++c)
                R[c] = apply(all[from].R, G + c, 3);
            p = all[from].p + apply(all[from].R, at, 1);
        }
        for (int c = 0; c < 3; ++c)
            b.R[c] = R[c];
        b.p = p;
        if (node.is_screw) {
            const double x = row(q, i)[node.v_start + node.q_shift];
            // exp of the screw: cos x = 1 − 2 sin² x/2, precise for small x
            const double sine = wp::sin(x), half = wp::sin(0.5 * x), versine = 2.0 * half * half;
            const double s[3] = {sine * axis[0], sine * axis[1], sine * axis[2]};
            const double cosine = 1.0 - versine * (axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
            const quad w = apply(R, axis, 1), u = apply(R, axis + 3, 1);
            b.R[0] = R[0] * cosine + w * (versine * axis[0]) + R[1] * s[2] - R[2] * s[1];
            b.R[1] = R[1] * cosine + w * (versine * axis[1]) + R[2] * s[0] - R[0] * s[2];
            b.R[2] = R[2] * cosine + w * (versine * axis[2]) + R[0] * s[1] - R[1] * s[0];
            b.p = p + u * x;
            b.w = w;
            b.u = u + cross(p, w);  // S of (5)
        }
    };
    // origins of the base frames, some of which move with a node
    for (int e = 0; e < t.bases.position.shape[0]; ++e) {
        const int first = t.bases.slide_start.data[e], stop = t.bases.slide_start.data[e + 1];
        auto& o = row(origin, i)[e];
        o = {};
        for (int j = first; j < stop; ++j)
            place(t.bases.slide.data[j]);
        if (first == stop)
            o = t.bases.position.data[e];
        else
            for (int c = 0; c < 3; ++c)
                o[c] = all[t.bases.slide.data[stop - 1]].p[c];
    }
    for (int k = 0; k < t.n_dynamic; ++k) {
        place(k);
        const auto& node = t.node.data[k];
        body& b = all[k];
        for (int c = 0; c < 4; ++c)
            b.I[c] = quad{0.0, 0.0, 0.0, 0.0};
        if (node.has_inertia) {
            // J, d and m of (6), moved by (7)
            const double *J = (const double*)&node.J, *C = (const double*)&node.C, *rows = (const double*)b.R;
            const double m = *(const double*)&node.m, first[3] = {C[7], C[2], C[3]};
            const quad d = apply(b.R, first, 1), h = d + b.p * (0.5 * m);
            const quad T[3] = {apply(b.R, J, 3), apply(b.R, J + 1, 3), apply(b.R, J + 2, 3)};
            const double around = 2.0 * total(h * b.p);
            for (int c = 0; c < 3; ++c) {
                b.I[c] = apply(T, rows + c, 4) - h * b.p[c] - b.p * h[c];
                b.I[c][c] += around;
            }
            b.I[3] = d + b.p * m;
            b.I[3][3] = m;
        }
    }
    double* const out = row(M, i);
    for (int e = 0; e < t.nv * t.nv; ++e)
        out[e] = 0.0;
    for (int k = t.n_dynamic - 1; k >= 0; --k) {
        const body& b = all[k];
        const int from = t.node.data[k].parent;
        if (b.v >= 0) {
            // F = Iᶜ_k S_k, then M_kj = S_jᵀ F of (4)
            const quad moment = apply(b.I, (const double*)&b.w, 1) + cross(b.I[3], b.u);
            const quad force = b.u * b.I[3][3] - cross(b.I[3], b.w);
            for (int j = k; j >= 0; j = all[j].up)
                out[b.v * t.nv + all[j].v] = out[all[j].v * t.nv + b.v] = total(all[j].w * moment + all[j].u * force);
        }
        if (from >= 0)
            for (int c = 0; c < 4; ++c)
                all[from].I[c] = all[from].I[c] + b.I[c];  // Iᶜ of (6)
    }
}
