// Signed distances of shapes that few robots have: tori, ellipsoids, height fields and shapes on grids. Equations are
// those of the Python module forces/rare_shapes. A result is the matrix [[N, n], [nᵀ, d]] of the distance d, its
// gradient n and its Hessian N.

// A torus about z: radius size[0] of the circle at its middle, radius size[1] of the tube.
LISSOM_INLINE mat4 torus_distance(vec3 size, vec3 y) {
    mat4 out;
#if LISSOM_SERVES_SHAPES
    const double rho = wp::max(wp::sqrt(y[0] * y[0] + y[1] * y[1]), 1e-30), side = rho - size[0];
    const double around[3] = {-y[1] / rho, y[0] / rho, 0.0};
    const double tube = wp::max(wp::sqrt(side * side + y[2] * y[2]), 1e-30);
    const double n[3] = {side * y[0] / (rho * tube), side * y[1] / (rho * tube), y[2] / tube};
    const double bend = (side / rho - 1.0) / tube;  // curvature along the circle, less that across
    for (int r = 0; r < 3; ++r) {
        for (int c = 0; c < 3; ++c)
            out.data[r][c] = ((r == c) - n[r] * n[c]) / tube + bend * around[r] * around[c];
        out.data[r][3] = out.data[3][r] = n[r];
    }
    out.data[3][3] = tube - size[1];
#endif
    return out;
}

// An ellipsoid with half-axes `size`, by (1) to (3).
LISSOM_INLINE mat4 ellipsoid_distance(vec3 size, vec3 y) {
    mat4 out;
#if LISSOM_SERVES_SHAPES
    const double least = wp::min(size[0], wp::min(size[1], size[2]));
    double above[3], far[3], sign[3], s = 0.0;
    for (int k = 0; k < 3; ++k) {
        above[k] = (size[k] - least) * (size[k] + least);
        sign[k] = y[k] < 0.0 ? -1.0 : 1.0;
        far[k] = wp::max(sign[k] * y[k], 1e-20 * least);
        s = wp::max(s, size[k] * far[k] - above[k]);
    }
    // From the left of the root of a convex, decreasing function Newton's method rises to it.
    for (int step = 0; step < 50; ++step) {
        double value = -1.0, slope = 0.0;
        for (int k = 0; k < 3; ++k) {
            const double part = size[k] * far[k] / (s + above[k]);
            value += part * part;
            slope -= 2.0 * part * part / (s + above[k]);
        }
        const double next = s - value / slope;
        if (!(next > s))
            break;
        s = next;
    }
    double g[3], length = 0.0, along = 0.0, w[3];
    for (int k = 0; k < 3; ++k) {
        g[k] = far[k] / (s + above[k]);
        length += g[k] * g[k];
        w[k] = size[k] * size[k] * g[k] / (s + above[k]);
        along += w[k] * g[k];
    }
    length = wp::sqrt(length);
    double turned = 0.0;  // g·W g
    for (int k = 0; k < 3; ++k)
        turned += g[k] * g[k] / (s + above[k]);
    for (int r = 0; r < 3; ++r) {
        for (int c = 0; c < 3; ++c) {
            // P W (1 − g wᵀ/w·g) of (3), with P = 1 − n nᵀ
            const double diagonal = r == c ? 1.0 / (s + above[r]) : 0.0;
            const double bent = g[r] / (s + above[r]) - g[r] * turned / (length * length);
            const double flat = g[r] * g[c] / ((s + above[c]) * length * length);
            out.data[r][c] = sign[r] * sign[c] * (diagonal - flat - bent * w[c] / along) / length;
        }
        out.data[r][3] = out.data[3][r] = sign[r] * g[r] / length;
    }
    out.data[3][3] = (s - least * least) * length;
#endif
    return out;
}

// A height field by (4) to (6), with the coefficients c of its spline, `count` of them along x and y.
LISSOM_INLINE mat4 heights_distance(
    vec3 size, vec3 y, vec3 low, vec3 spacing, int n_x, int n_y, int start, array<double> c
) {
    mat4 out;
#if LISSOM_SERVES_SHAPES
    const double* first = c.data + start;
    const double h_x = spacing[0], h_y = spacing[1];
    // height, slopes (2) and second derivatives (xx, xy, yy) at a place
    auto field = [&](double X, double Y, double* out_) {
        const double u = (X - low[0]) / h_x, v = (Y - low[1]) / h_y;
        const double i = wp::floor(u), j = wp::floor(v), a = u - i, b = v - j;
        const double A[3][4] = {
            {(1 - a) * (1 - a) * (1 - a) / 6, (4 - 6 * a * a + 3 * a * a * a) / 6,
             (1 + 3 * a + 3 * a * a - 3 * a * a * a) / 6, a * a * a / 6},
            {-(1 - a) * (1 - a) / 2, (3 * a * a - 4 * a) / 2, (1 + 2 * a - 3 * a * a) / 2, a * a / 2},
            {1 - a, 3 * a - 2, 1 - 3 * a, a}};
        const double B[3][4] = {
            {(1 - b) * (1 - b) * (1 - b) / 6, (4 - 6 * b * b + 3 * b * b * b) / 6,
             (1 + 3 * b + 3 * b * b - 3 * b * b * b) / 6, b * b * b / 6},
            {-(1 - b) * (1 - b) / 2, (3 * b * b - 4 * b) / 2, (1 + 2 * b - 3 * b * b) / 2, b * b / 2},
            {1 - b, 3 * b - 2, 1 - 3 * b, b}};
        for (int k = 0; k < 6; ++k)
            out_[k] = 0.0;
        for (int p = 0; p < 4; ++p) {
            const int row = (int)(wp::min(wp::max(i + p, 0.0), n_x - 1.0));
            double line[3] = {};
            for (int q = 0; q < 4; ++q) {
                const double value = first[row * n_y + (int)(wp::min(wp::max(j + q, 0.0), n_y - 1.0))];
                for (int k = 0; k < 3; ++k)
                    line[k] += B[k][q] * value;
            }
            out_[0] += A[0][p] * line[0];
            out_[1] += A[1][p] * line[0] / h_x;
            out_[2] += A[0][p] * line[1] / h_y;
            out_[3] += A[2][p] * line[0] / (h_x * h_x);
            out_[4] += A[1][p] * line[1] / (h_x * h_y);
            out_[5] += A[0][p] * line[2] / (h_y * h_y);
        }
    };
    double X = y[0], Y = y[1], f[6];
    field(X, Y, f);
    if (y[2] - f[0] > size[0] * size[1]) {  // so high that (y_z − h)/size[0] is a lower bound beyond every ball
        for (int r = 0; r < 3; ++r)
            for (int k = 0; k < 3; ++k)
                out.data[r][k] = r < 2 && k < 2 ? -f[3 + r + k] / size[0] : 0.0;
        for (int r = 0; r < 3; ++r)
            out.data[r][3] = out.data[3][r] = (r < 2 ? -f[1 + r] : 1.0) / size[0];
        out.data[3][3] = (y[2] - f[0]) / size[0];
        return out;
    }
    double H[3], determinant = 0.0, flat = 0.0;
    for (int step = 0; step < 30; ++step) {
        const double over = y[2] - f[0], before = (X - y[0]) * (X - y[0]) + (Y - y[1]) * (Y - y[1]) + over * over;
        const double g[2] = {X - y[0] - over * f[1], Y - y[1] - over * f[2]};
        flat = (1 + f[1] * f[1]) * (1 + f[2] * f[2]) - f[1] * f[1] * f[2] * f[2];
        H[0] = 1 + f[1] * f[1] - over * f[3];
        H[1] = f[1] * f[2] - over * f[4];
        H[2] = 1 + f[2] * f[2] - over * f[5];
        determinant = H[0] * H[2] - H[1] * H[1];
        if (!(determinant > 1e-3 * flat && H[0] > 0.0)) {  // beyond the centre of curvature: the matrix of a plane
            H[0] = 1 + f[1] * f[1];
            H[1] = f[1] * f[2];
            H[2] = 1 + f[2] * f[2];
            determinant = flat;
        }
        const double to_x = -(H[2] * g[0] - H[1] * g[1]) / determinant;
        const double to_y = -(H[0] * g[1] - H[1] * g[0]) / determinant;
        double share = 1.0, next[6];
        for (int half = 0; half < 20; ++half, share *= 0.5) {
            field(X + share * to_x, Y + share * to_y, next);
            const double e_x = X + share * to_x - y[0], e_y = Y + share * to_y - y[1], e_z = y[2] - next[0];
            if (e_x * e_x + e_y * e_y + e_z * e_z <= before * (1.0 + 1e-14))
                break;
        }
        X += share * to_x;
        Y += share * to_y;
        for (int k = 0; k < 6; ++k)
            f[k] = next[k];
        if (to_x * to_x + to_y * to_y < 1e-28 * (h_x * h_x + h_y * h_y))
            break;
    }
    const double w = wp::sqrt(1.0 + f[1] * f[1] + f[2] * f[2]);
    const double n[3] = {-f[1] / w, -f[2] / w, 1.0 / w};
    const double move[2][3] = {  // ∂(X, Y)/∂y of (6)
        {H[2] / determinant, -H[1] / determinant, (H[2] * f[1] - H[1] * f[2]) / determinant},
        {-H[1] / determinant, H[0] / determinant, (H[0] * f[2] - H[1] * f[1]) / determinant}};
    for (int k = 0; k < 3; ++k) {
        const double turn[2] = {
            -(f[3] * move[0][k] + f[4] * move[1][k]) / w, -(f[4] * move[0][k] + f[5] * move[1][k]) / w};
        const double along = n[0] * turn[0] + n[1] * turn[1];
        for (int r = 0; r < 3; ++r)
            out.data[r][k] = (r < 2 ? turn[r] : 0.0) - n[r] * along;
        out.data[k][3] = out.data[3][k] = n[k];
    }
    out.data[3][3] = (y[2] - f[0]) * w;
#endif
    return out;
}

// A shape on a grid by (7) to (9), with n_x, n_y and n_z coefficients c of its spline, from number `start`.
LISSOM_INLINE mat4 grid_distance(
    vec3 y, vec3 low, vec3 spacing, int n_x, int n_y, int n_z, int start, array<double> c
) {
    mat4 out;
#if LISSOM_SERVES_SHAPES
    const int count[3] = {n_x, n_y, n_z};
    double W[3][3][4], away[3], square = 0.0;  // W: weights of axis, order of the derivative, coefficient
    int at[3];
    for (int k = 0; k < 3; ++k) {
        const double h = spacing[k], most = count[k] - 3.0;  // the grid ends at the last but one coefficient
        const double u = (y[k] - low[k]) / h, inside = wp::min(wp::max(u, 0.0), most);
        const double i = wp::min(wp::floor(inside), most - 1.0), a = inside - i;
        away[k] = (u - inside) * h;
        square += away[k] * away[k];
        at[k] = (int)(i);
        const double b = 1 - a;
        W[k][0][0] = b * b * b / 6;
        W[k][0][1] = (4 - 6 * a * a + 3 * a * a * a) / 6;
        W[k][0][2] = (4 - 6 * b * b + 3 * b * b * b) / 6;
        W[k][0][3] = a * a * a / 6;
        W[k][1][0] = -b * b / (2 * h);
        W[k][1][1] = (3 * a * a - 4 * a) / (2 * h);
        W[k][1][2] = (4 * b - 3 * b * b) / (2 * h);
        W[k][1][3] = a * a / (2 * h);
        W[k][2][0] = b / (h * h);
        W[k][2][1] = (3 * a - 2) / (h * h);
        W[k][2][2] = (3 * b - 2) / (h * h);
        W[k][2][3] = a / (h * h);
    }
    double d = 0.0, n[3] = {}, N[3][3] = {};
    for (int p = 0; p < 4; ++p) {
        double face[6] = {};  // sums over y and z: value, by y, by z, by yy, by yz, by zz
        for (int q = 0; q < 4; ++q) {
            const double* line = c.data + start + (size_t(at[0] + p) * n_y + at[1] + q) * n_z + at[2];
            double sum[3] = {};
            for (int o = 0; o < 3; ++o)
                sum[o] = W[2][o][0] * line[0] + W[2][o][1] * line[1] + W[2][o][2] * line[2] + W[2][o][3] * line[3];
            face[0] += W[1][0][q] * sum[0];
            face[1] += W[1][1][q] * sum[0];
            face[2] += W[1][0][q] * sum[1];
            face[3] += W[1][2][q] * sum[0];
            face[4] += W[1][1][q] * sum[1];
            face[5] += W[1][0][q] * sum[2];
        }
        d += W[0][0][p] * face[0];
        n[0] += W[0][1][p] * face[0];
        n[1] += W[0][0][p] * face[1];
        n[2] += W[0][0][p] * face[2];
        N[0][0] += W[0][2][p] * face[0];
        N[0][1] += W[0][1][p] * face[1];
        N[0][2] += W[0][1][p] * face[2];
        N[1][1] += W[0][0][p] * face[3];
        N[1][2] += W[0][0][p] * face[4];
        N[2][2] += W[0][0][p] * face[5];
    }
    N[1][0] = N[0][1];
    N[2][0] = N[0][2];
    N[2][1] = N[1][2];
    if (square > 0.0) {  // (9)
        const double whole = wp::sqrt(square + d * d);
        double slope[3];
        for (int k = 0; k < 3; ++k) {
            if (away[k] != 0.0)
                n[k] = 0.0;
            slope[k] = (away[k] + d * n[k]) / whole;
        }
        for (int r = 0; r < 3; ++r)
            for (int k = 0; k < 3; ++k) {
                const bool free = away[r] == 0.0 && away[k] == 0.0;
                const double bent = (free ? n[r] * n[k] + d * N[r][k] : 0.0) + (r == k && away[r] != 0.0);
                N[r][k] = (bent - slope[r] * slope[k]) / whole;
            }
        for (int k = 0; k < 3; ++k)
            n[k] = slope[k];
        d = whole;
    }
    for (int r = 0; r < 3; ++r) {
        for (int k = 0; k < 3; ++k)
            out.data[r][k] = N[r][k];
        out.data[r][3] = out.data[3][r] = n[r];
    }
    out.data[3][3] = d;
#endif
    return out;
}
