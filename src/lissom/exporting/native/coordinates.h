// Coordinates of a component whose states q and v the tool integrates.
//
// The four numbers c of a quaternion change by half their product with the angular velocity,
//
//     c' = c (0, omega) / 2,     p' = R v     of the position p of a free joint,
//
// which keeps their length but for the errors of the tool's steps. The pose is that of c / |c|: only the direction of c
// acts, so that a length other than one changes no motion, and no event needs to restore it.

#pragma once

#include <cmath>
#include <cstring>

#include "fmu.h"
#include "robot.h"

namespace {

// Coordinates with quaternions of unit length. One of length zero stays, and the robot refuses it.
[[maybe_unused]] void put_unit_quaternions(const double* q, double* out) {
    std::memcpy(out, q, sizeof(double) * size_t(ROBOT_NQ));
    for (int k = 0; k < N_QUATERNIONS; ++k) {
        double* c = out + QUATERNIONS[k].q;
        const double size = std::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]);
        for (int e = 0; e < 4 && size > 0.0; ++e)
            c[e] /= size;
    }
}

#if HAS_MODEL_EXCHANGE
// out += c (0, w) / 2.
[[maybe_unused]] void add_half_product(const double* c, const double* w, double* out) {
    out[0] -= 0.5 * (c[1] * w[0] + c[2] * w[1] + c[3] * w[2]);
    out[1] += 0.5 * (c[0] * w[0] + c[2] * w[2] - c[3] * w[1]);
    out[2] += 0.5 * (c[0] * w[1] + c[3] * w[0] - c[1] * w[2]);
    out[3] += 0.5 * (c[0] * w[2] + c[1] * w[1] - c[2] * w[0]);
}

// The vector x turned by a quaternion c of unit length, or back by its inverse.
[[maybe_unused]] void turn(const double* c, double sign, const double* x, double* out) {
    const double a = sign * c[1], b = sign * c[2], d = sign * c[3];
    const double t0 = 2.0 * (b * x[2] - d * x[1]), t1 = 2.0 * (d * x[0] - a * x[2]), t2 = 2.0 * (a * x[1] - b * x[0]);
    out[0] = x[0] + c[0] * t0 + b * t2 - d * t1;
    out[1] = x[1] + c[0] * t1 + d * t0 - a * t2;
    out[2] = x[2] + c[0] * t2 + a * t1 - b * t0;
}

// The rates of q.
void put_coordinate_rates(const double* q, const double* v, double* out) {
    for (int j = 0; j < ROBOT_NV; ++j)
        if (Q_OF_V[j] >= 0)
            out[Q_OF_V[j]] = v[j];
    double unit[ROBOT_NQ];
    put_unit_quaternions(q, unit);
    for (int k = 0; k < N_QUATERNIONS; ++k) {
        const quaternion at = QUATERNIONS[k];
        std::memset(out + at.q, 0, 4 * sizeof(double));
        add_half_product(q + at.q, v + at.v, out + at.q);
        if (at.is_free)
            turn(unit + at.q, 1.0, v + at.v + 3, out + at.q + 4);
    }
}

// The tangent vector (nv) of a change dq of the coordinates (nq): of a quaternion twice the vector part of c* dc / |c|²,
// of a free joint's position the change in axes of the body.
void put_tangent(const double* q, const double* dq, double* out) {
    for (int j = 0; j < ROBOT_NV; ++j)
        if (Q_OF_V[j] >= 0)
            out[j] = dq[Q_OF_V[j]];
    double unit[ROBOT_NQ];
    put_unit_quaternions(q, unit);
    for (int k = 0; k < N_QUATERNIONS; ++k) {
        const quaternion at = QUATERNIONS[k];
        const double *c = q + at.q, *d = dq + at.q;
        const double part = 2.0 / (c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3]);
        out[at.v] = part * (c[0] * d[1] - c[1] * d[0] - c[2] * d[3] + c[3] * d[2]);
        out[at.v + 1] = part * (c[0] * d[2] - c[2] * d[0] - c[3] * d[1] + c[1] * d[3]);
        out[at.v + 2] = part * (c[0] * d[3] - c[3] * d[0] - c[1] * d[2] + c[2] * d[1]);
        if (at.is_free)
            turn(unit + at.q, -1.0, d + 4, out + at.v + 3);
    }
}

// The change of the rates of q with changes dq and dv, of which dq has the tangent vector `tangent`.
void put_changes_of_rates(
    const double* q, const double* v, const double* dq, const double* dv, const double* tangent, double* out
) {
    for (int j = 0; j < ROBOT_NV; ++j)
        if (Q_OF_V[j] >= 0)
            out[Q_OF_V[j]] = dv[j];
    double unit[ROBOT_NQ];
    put_unit_quaternions(q, unit);
    for (int k = 0; k < N_QUATERNIONS; ++k) {
        const quaternion at = QUATERNIONS[k];
        std::memset(out + at.q, 0, 4 * sizeof(double));
        add_half_product(dq + at.q, v + at.v, out + at.q);
        add_half_product(q + at.q, dv + at.v, out + at.q);
        if (at.is_free) {
            const double *w = tangent + at.v, *x = v + at.v + 3, *dx = dv + at.v + 3;
            const double moved[] = {w[1] * x[2] - w[2] * x[1] + dx[0], w[2] * x[0] - w[0] * x[2] + dx[1],
                                    w[0] * x[1] - w[1] * x[0] + dx[2]};
            turn(unit + at.q, 1.0, moved, out + at.q + 4);
        }
    }
}
#endif

}  // namespace
