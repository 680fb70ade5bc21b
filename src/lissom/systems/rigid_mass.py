"""The mass matrix of rigid bodies on joints of one axis each, by composite rigid bodies in the base frame.

    M_kj = S_jᵀ F,     F = Iᶜ_k S_k,     j = k and the joints on the way from k to the base                (1)
    S = (w; u + p × w),     w and u the axis and the displacement of the joint at p                        (2)
    Iᶜ = (J, d, m) summed over the subtree: J of rotation about the base frame's origin, first moment d    (3)

F is made once for each joint, and then costs one scalar product for each joint on its way to the base. An inertia moved
by (R, p) is

    J = R J_B Rᵀ + 2 (h·p) 1 − h pᵀ − p hᵀ,     h = R d_B + m p / 2,     d = R d_B + m p                   (4)

Source: R. Featherstone, Rigid Body Dynamics Algorithms, 2008, §6.2.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import vec3
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes.column_tables import Matrix
from lissom.robot.joints import MotionKind

_SIZE = 41  # numbers of a body in the code below


@wp.struct
class RigidBuffersStruct:
    """Poses, columns and composite inertias, by instance; also of nodes beyond n_dynamic: a base frame may slide with
    them."""

    bodies: wp.array2d(dtype=wp.float64)


def rigid_buffers(model: Model, batch: int) -> RigidBuffersStruct:
    """Buffers of rigid_mass for a batch."""
    b = RigidBuffersStruct()
    b.bodies = wp.zeros((batch, _SIZE * model.n_nodes), dtype=wp.float64, device=model.device)
    return b


def is_rigid(model: Model) -> bool:
    """Whether all that carries anything are rigid bodies on fixed joints and on joints of one axis; a batch of models,
    each of them."""
    if model.models:
        return all(is_rigid(one) for one in model.models)
    nodes, carrying = model.nodes, slice(model.n_dynamic)
    moves = nodes.h != 1.0
    for x in (nodes.kappa, nodes.v_stop - nodes.v_start, *nodes.xi1.T, *nodes.xi2.T):
        moves |= x != 0
    simple = (nodes.kind == MotionKind.EXP.value) & (nodes.is_screw | ~moves) & nodes.is_plain
    return bool(simple[carrying].all())


# Vectors are the first three of four numbers, matrices three columns of that; the fourth number is zero but in I[3],
# where d stands before m. A joint has the index v of its coordinate, others −1, and `up`, the joint or base before it.
RIGID_MASS = """
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
    struct body { quad R[3], p, I[4], w, u; int v, up; };
    body* const all = (body*)row(bodies, i);
    auto apply = [](const quad* A, const double* y, int by) { return A[0] * y[0] + A[1] * y[by] + A[2] * y[2 * by]; };
    auto cross = [&](const quad& a, const quad& b) { return turned(a * turned(b) - turned(a) * b); };
    auto total = [](const quad& a) { return a[0] + a[1] + a[2]; };
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
            const double sine = wp::sin(x), half = wp::sin(0.5 * x), versine = 2.0 * half * half;
            const double s[3] = {sine * axis[0], sine * axis[1], sine * axis[2]};
            const double cosine = 1.0 - versine * (axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
            const quad w = apply(R, axis, 1), u = apply(R, axis + 3, 1);
            b.R[0] = R[0] * cosine + w * (versine * axis[0]) + R[1] * s[2] - R[2] * s[1];
            b.R[1] = R[1] * cosine + w * (versine * axis[1]) + R[2] * s[0] - R[0] * s[2];
            b.R[2] = R[2] * cosine + w * (versine * axis[2]) + R[0] * s[1] - R[1] * s[0];
            b.p = p + u * x;
            b.w = w;
            b.u = u + cross(p, w);
        }
    };
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
            const quad moment = apply(b.I, (const double*)&b.w, 1) + cross(b.I[3], b.u);
            const quad force = b.u * b.I[3][3] - cross(b.I[3], b.w);
            for (int j = k; j >= 0; j = all[j].up)
                out[b.v * t.nv + all[j].v] = out[all[j].v * t.nv + b.v] = total(all[j].w * moment + all[j].u * force);
        }
        if (from >= 0)
            for (int c = 0; c < 4; ++c)
                all[from].I[c] = all[from].I[c] + b.I[c];
    }
"""


@wp.func_native(RIGID_MASS)
def rigid_mass(t: Tables, i: int, q: Matrix, origin: wp.array2d(dtype=vec3), bodies: Matrix, M: Matrix):
    """Fill M (nv x nv), but for rotors, of a model that is rigid: (1). Origins of the base frames are as of
    place_bases."""
    ...
