// Forces of tendons, chambers and pressures inside deformable bodies. Equations are those of the Python module
// passes/pulls. Traced functions (tracing/native) exist on the CPU only.
//
// A surface stores in s.pulls.room, for each four places: four numbers of p and ∂p/∂θ_j, entry by entry, then after all
// places four numbers of ±⅓ Σ N of the vertices, entry by entry. Table `surface` of NativePull gives the places.

// Work and B of pull e of body b, a tendon or a volume; of a surface, p and ∂p/∂θ of its vertices.
LISSOM_INLINE void call_pull(const Tables& t, const Scratch& s, int e, int b, int i) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const Function function = *(const Function*)t.pulls.values_function.data[e];
    const double* theta = row(s.deforming.theta, i) + t.deforming.column_start.data[b];
    const double* table = t.pulls.table.data + t.pulls.table_start.data[e];
    const int at = t.pulls.column_start.data[e], surface_at = t.pulls.surface_start.data[e];
    if (t.pulls.surface_start.data[e + 1] == surface_at) {
        const double* in[] = {theta, theta, table};
        double* out[] = {row(s.pulls.work, i) + e, row(s.pulls.B, i) + at};
        function(in, out);
        return;
    }
    const int* surface = t.pulls.surface.data + surface_at;
    const int width = 3 + 3 * (t.pulls.column_start.data[e + 1] - at), places = 4 * surface[0], rims = surface[1];
    double* x = row(s.pulls.room, i) + t.pulls.room_start.data[e];
    const double* in[] = {theta, nullptr, table};
    double* out[] = {x};
    function(in, out);
    const int* member = surface + 3 + rims;
    for (int r = 0; r < rims; ++r) {  // p and ∂p/∂θ in the middle of a rim
        const int count = surface[3 + r], middle = places + r;
        for (int k = 0; k < width; ++k) {
            double sum = 0.0;
            for (int c = 0; c < count; ++c)
                sum += x[(member[c] / 4 * width + k) * 4 + member[c] % 4];
            x[(middle / 4 * width + k) * 4 + middle % 4] = sum / count;
        }
        member += count;
    }
#endif
}

// (1) of pull e from the vertices of its surface.
LISSOM_INLINE void press(const Tables& t, const Scratch& s, int e, int i) {
    const int at = t.pulls.column_start.data[e], n = t.pulls.column_start.data[e + 1] - at, width = 3 + 3 * n;
    const int* surface = t.pulls.surface.data + t.pulls.surface_start.data[e];
    const int blocks = surface[0], rims = surface[1], triangles = surface[2], all = blocks + (rims + 3) / 4;
    const double side = t.pulls.side.data[e];
    double* x = row(s.pulls.room, i) + t.pulls.room_start.data[e];
    double* G = x + 4 * all * width;
    for (int k = 0; k < 12 * all; ++k)
        G[k] = 0.0;
    const int *member = surface + 3 + rims, *corner = member;
    for (int r = 0; r < rims; ++r)
        corner += surface[3 + r];
    double six = 0.0, force[3] = {}, moment[3] = {};
    for (int k = 0; k < triangles; ++k, corner += 3) {
        double p[3][3], N[3], sum[3];
        for (int c = 0; c < 3; ++c)
            for (int r = 0; r < 3; ++r)
                p[c][r] = x[(corner[c] / 4 * width + r) * 4 + corner[c] % 4];
        for (int r = 0; r < 3; ++r) {
            const int y = (r + 1) % 3, z = (r + 2) % 3;
            N[r] = 0.5 * ((p[1][y] - p[0][y]) * (p[2][z] - p[0][z]) - (p[1][z] - p[0][z]) * (p[2][y] - p[0][y]));
            sum[r] = p[0][r] + p[1][r] + p[2][r];
            six += p[0][r] * (p[1][y] * p[2][z] - p[1][z] * p[2][y]);
            force[r] += N[r];
        }
        for (int r = 0; r < 3; ++r) {
            const int y = (r + 1) % 3, z = (r + 2) % 3;
            moment[r] += sum[y] * N[z] - sum[z] * N[y];
            for (int c = 0; c < 3; ++c)
                G[(corner[c] / 4 * 3 + r) * 4 + corner[c] % 4] += side / 3.0 * N[r];
        }
    }
    for (int r = 0; r < rims; ++r) {  // a force in the middle of a rim acts on its points
        const int count = surface[3 + r], middle = 4 * blocks + r;
        for (int c = 0; c < count; ++c)
            for (int k = 0; k < 3; ++k)
                G[(member[c] / 4 * 3 + k) * 4 + member[c] % 4] += G[(middle / 4 * 3 + k) * 4 + middle % 4] / count;
        member += count;
    }
    row(s.pulls.work, i)[e] = side * six / (side > 0.0 ? 6.0 : 2.0);
    double *B = row(s.pulls.B, i) + at, *wrench = (double*)(row(s.pulls.wrench, i) + e);
    for (int r = 0; r < 3; ++r) {  // a closed surface exerts no force
        wrench[r] = side < 0.0 ? side / 3.0 * moment[r] : 0.0;
        wrench[3 + r] = side < 0.0 ? side * force[r] : 0.0;
    }
    for (int j = 0; j < n; ++j) {
        double sum[4] = {};
        for (int k = 0; k < blocks; ++k)
            for (int r = 0; r < 3; ++r)
                for (int lane = 0; lane < 4; ++lane)
                    sum[lane] += G[(3 * k + r) * 4 + lane] * x[(k * width + 3 + 3 * j + r) * 4 + lane];
        B[j] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

// ∂B/∂θ of pull e of body b, a tendon or a volume; of a surface, the part with second derivatives of vertices.
LISSOM_INLINE void call_pull_derivatives(const Tables& t, const Scratch& s, int e, int b, int i) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const Function function = *(const Function*)t.pulls.derivatives_function.data[e];
    const double* theta = row(s.deforming.theta, i) + t.deforming.column_start.data[b];
    const double* table = t.pulls.table.data + t.pulls.table_start.data[e];
    const int n = t.pulls.column_start.data[e + 1] - t.pulls.column_start.data[e];
    const int surface_at = t.pulls.surface_start.data[e];
    double* out[] = {row(s.pulls.B_q, i) + t.pulls.pair_start.data[e]};
    if (t.pulls.surface_start.data[e + 1] == surface_at) {
        const double* in[] = {theta, theta, table};
        function(in, out);
        return;
    }
    const int* surface = t.pulls.surface.data + surface_at;
    const double* x = row(s.pulls.room, i) + t.pulls.room_start.data[e];
    const double* in[] = {theta, x + 4 * (surface[0] + (surface[1] + 3) / 4) * (3 + 3 * n), table};
    function(in, out);
#endif
}

// The second derivative of the work of pull e of body b, a tendon or a volume, along the rates of θ.
LISSOM_INLINE double bend_of_pull(const Tables& t, const Scratch& s, int e, int b, int i) {
    double bend = 0.0;
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const int at = t.deforming.column_start.data[b];
    const double* in[] = {
        row(s.deforming.theta, i) + at, row(s.deforming.theta_dot, i) + at,
        t.pulls.table.data + t.pulls.table_start.data[e]
    };
    double* out[] = {&bend};
    (*(const Function*)t.pulls.second_function.data[e])(in, out);
#endif
    return bend;
}

// Add the other part of ∂B/∂θ of pull e, and write ∂wrench/∂θ, from the vertices of its surface.
LISSOM_INLINE void press_derivatives(const Tables& t, const Scratch& s, int e, int i) {
    const int at = t.pulls.column_start.data[e], n = t.pulls.column_start.data[e + 1] - at, width = 3 + 3 * n;
    const int* surface = t.pulls.surface.data + t.pulls.surface_start.data[e];
    const int rims = surface[1], triangles = surface[2];
    const double side = t.pulls.side.data[e], *x = row(s.pulls.room, i) + t.pulls.room_start.data[e];
    double* B_q = row(s.pulls.B_q, i) + t.pulls.pair_start.data[e];
    double* wrench_q = (double*)(row(s.pulls.wrench_q, i) + at);
    for (int k = 0; k < 6 * n; ++k)
        wrench_q[k] = 0.0;
    const int* corner = surface + 3 + rims;
    for (int r = 0; r < rims; ++r)
        corner += surface[3 + r];
    for (int k = 0; k < triangles; ++k, corner += 3) {
        double y[3][3 + 3 * MOST_COORDINATES], N[3], N_l[3 * MOST_COORDINATES], sum[3 + 3 * MOST_COORDINATES];
        for (int c = 0; c < 3; ++c)
            for (int r = 0; r < width; ++r)
                y[c][r] = x[(corner[c] / 4 * width + r) * 4 + corner[c] % 4];
        for (int r = 0; r < width; ++r) {  // b − a, c − a and their derivatives, after the sum of the corners
            sum[r] = y[0][r] + y[1][r] + y[2][r];
            y[1][r] -= y[0][r];
            y[2][r] -= y[0][r];
        }
        for (int r = 0; r < 3; ++r) {
            const int u = (r + 1) % 3, v = (r + 2) % 3;
            N[r] = 0.5 * (y[1][u] * y[2][v] - y[1][v] * y[2][u]);
            for (int l = 0; l < n; ++l) {
                const double *f = y[1] + 3 + 3 * l, *g = y[2] + 3 + 3 * l;
                N_l[3 * l + r] = 0.5 * (f[u] * y[2][v] - f[v] * y[2][u] + y[1][u] * g[v] - y[1][v] * g[u]);
            }
        }
        for (int l = 0; l < n; ++l) {
            const double *f = sum + 3 + 3 * l, *g = N_l + 3 * l;
            for (int r = 0; side < 0.0 && r < 3; ++r) {
                const int u = (r + 1) % 3, v = (r + 2) % 3;
                wrench_q[6 * l + r] += side / 3.0 * (f[u] * N[v] - f[v] * N[u] + sum[u] * g[v] - sum[v] * g[u]);
                wrench_q[6 * l + 3 + r] += side * g[r];
            }
            for (int j = 0; j < n; ++j) {
                const double* h = sum + 3 + 3 * j;
                B_q[n * j + l] += side / 3.0 * (h[0] * g[0] + h[1] * g[1] + h[2] * g[2]);
            }
        }
    }
}
