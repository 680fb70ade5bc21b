"""The half-passes every algorithm is composed of, inside kernels. Twists and wrenches are in the base frame.

    g = g_p G exp(Ω),  D₀ = Ad_g T                                                                        (1)
    η = η_p + D₀ Ω̇,   a = a_p + D₀ Ω̈ + D₁ Ω̇,   D₁ = ad_η D₀ + Ad_g Ṫ                                  (2)
    F = M a − ad_ηᵀ M η − F_ext,  summed from the tips to the base                                        (3)
    τ = Zᵀ D₀ᵀ ΣF                                                                                         (4)

The base frame is that of base_frames. Source: Mathew 2025 §4, eqs. (14)-(16).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import magnus, se3, so3
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import EXP, FREE, Tables, vec6i, vec7i
from lissom.sweep.scratch import (
    STATUS_FULL_TURN,
    STATUS_NOT_FINITE,
    STATUS_OVERFLOW,
    STATUS_QUATERNION,
    Scratch,
)

UNIT_TOLERANCE = wp.constant(wp.float64(1e-6))
FULL_TURN_SQUARED = wp.constant(wp.float64(39.47841760435743))


STRAIN_SUMS = """
    const double *x = row(q, i) + q_shift, *y = row(v, i), *z = row(a, i);
    wp::mat_t<6, 6, double> out;
    for (int c = 0; c < 6; ++c) {
        double x1 = 0.0, x2 = 0.0, y1 = 0.0, y2 = 0.0, z1 = 0.0, z2 = 0.0;
        const int start = run_start[c], at = run_v[c] - start;
        for (int e = start; e < run_start[c + 1]; ++e) {
            const double p1 = phi1.data[e], p2 = phi2.data[e];
            x1 += p1 * x[at + e];
            x2 += p2 * x[at + e];
            y1 += p1 * y[at + e];
            y2 += p2 * y[at + e];
            z1 += p1 * z[at + e];
            z2 += p2 * z[at + e];
        }
        out.data[0][c] = x1;
        out.data[1][c] = x2;
        out.data[2][c] = y1;
        out.data[3][c] = y2;
        out.data[4][c] = z1;
        out.data[5][c] = z2;
    }
    return out;
"""


@wp.func_native(STRAIN_SUMS)
def strain_sums(
    phi1: wp.array(dtype=wp.float64),
    phi2: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    q_shift: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
) -> mat6:
    """Rows Φ₁q, Φ₂q, Φ₁v, Φ₂v, Φ₁a, Φ₂a of one node. Native, since indexing arrays costs more than the sums."""
    ...


PROJECT_STRAINS = """
    double* out = row(tau, i);
    for (int c = 0; c < 6; ++c) {
        const double w1 = y1[c], w2 = y2[c];
        const int start = run_start[c], at = run_v[c] - start;
        for (int e = start; e < run_start[c + 1]; ++e)
            out[at + e] += phi1.data[e] * w1 + phi2.data[e] * w2;
    }
"""


@wp.func_native(PROJECT_STRAINS)
def project_strains(
    phi1: wp.array(dtype=wp.float64),
    phi2: wp.array(dtype=wp.float64),
    run_start: vec7i,
    run_v: vec6i,
    i: int,
    y1: vec6,
    y2: vec6,
    tau: wp.array2d(dtype=wp.float64),
):
    """tau += Φ₁ᵀ y1 + Φ₂ᵀ y2 of one node."""
    ...


@wp.func
def quaternion_rotation(q: wp.array2d(dtype=wp.float64), i: int, at: int) -> mat3:
    """Rotation of the quaternion stored at q[i, at:at+4], normalised."""
    w = q[i, at]
    v = vec3(q[i, at + 1], q[i, at + 2], q[i, at + 3])
    r = so3.ONE / wp.sqrt(w * w + wp.dot(v, v))
    return so3.from_quaternion(w * r, r * v)


@wp.func
def stored_position(t: Tables, q: wp.array2d(dtype=wp.float64), i: int, k: int) -> vec3:
    """Position part of a GROUP node's stored pose: zero for a spherical joint."""
    if t.node[k].kind == FREE:
        at = t.node[k].v_start + t.node[k].q_shift + 4
        return vec3(q[i, at], q[i, at + 1], q[i, at + 2])
    return vec3()


@wp.func
def joint_side(t: Tables, s: Scratch, i: int, k: int):
    """Pose of node k before its own motion: g_p G."""
    parent = t.node[k].parent
    if parent < 0:
        return t.node[k].R, t.node[k].p - s.origin[i, t.node[k].base]
    R = s.node[i, parent].R
    p = s.node[i, parent].p
    if t.node[k].is_placed == 0:
        return R, p
    return R * t.node[k].R, R * t.node[k].p + p


@wp.func
def group_twist(t: Tables, x: wp.array2d(dtype=wp.float64), i: int, k: int) -> vec6:
    """Φ x of a GROUP node: the body twist (or its rate) stored at its velocity coordinates."""
    v = t.node[k].v_start
    if t.node[k].kind == FREE:
        return vec6(x[i, v], x[i, v + 1], x[i, v + 2], x[i, v + 3], x[i, v + 4], x[i, v + 5])
    return vec6(x[i, v], x[i, v + 1], x[i, v + 2], so3.ZERO, so3.ZERO, so3.ZERO)


@wp.func
def place_group(t: Tables, s: Scratch, i: int, k: int, q: wp.array2d(dtype=wp.float64)):
    """Pose (1) of a GROUP node, whose own pose is stored."""
    R0, p0 = joint_side(t, s, i, k)
    s.node[i, k].R = R0 * quaternion_rotation(q, i, t.node[k].v_start + t.node[k].q_shift)
    s.node[i, k].p = R0 * stored_position(t, q, i, k) + p0


@wp.func
def place_interval(t: Tables, s: Scratch, i: int, k: int, xi1: vec6, xi2: vec6):
    """Pose (1) of an EXP node from its two strains; returns Ω and its Stumpff values for the rates that follow."""
    Omega = magnus.omega(xi1, xi2, t.node[k].h, t.node[k].kappa)
    w = se3.angular(Omega)
    c = so3.stumpff(wp.dot(w, w))
    R0, p0 = joint_side(t, s, i, k)
    R_k, p_k = se3.exp(Omega, c)
    R = R0 * R_k
    p = R0 * p_k + p0
    s.node[i, k].R = R
    s.node[i, k].p = p
    s.node[i, k].Omega = Omega
    s.node[i, k].stumpff = c
    s.node[i, k].xi1 = xi1
    s.node[i, k].xi2 = xi2
    if t.node[k].kappa > so3.ZERO and wp.dot(w, w) >= FULL_TURN_SQUARED:
        s.status[i] = STATUS_FULL_TURN
    return Omega, c


@wp.func
def outward_pose(t: Tables, s: Scratch, i: int, k: int, q: wp.array2d(dtype=wp.float64)):
    """Pose of node k (1)."""
    if t.node[k].kind == EXP:
        x = strain_sums(t.run_phi1, t.run_phi2, t.node[k].run_start, t.node[k].run_v, i, t.node[k].q_shift, q, q, q)
        place_interval(t, s, i, k, x[0] + t.node[k].xi1, x[1] + t.node[k].xi2)
    else:
        place_group(t, s, i, k, q)


@wp.func
def motion_block(t: Tables, s: Scratch, i: int, k: int):
    """D₀ of (1) as a pair; Ad_g for a GROUP node."""
    R = s.node[i, k].R
    p = s.node[i, k].p
    if t.node[k].kind == EXP:
        T_w, Q = se3.tangent(s.node[i, k].Omega, s.node[i, k].stumpff)
        A, B = se3.Ad_block(R, p, T_w, Q)
        return A, B
    return R, so3.cross_columns(p, R)


@wp.func
def strain_block(half: wp.float64, kappa: wp.float64, xi: vec6):
    """half + κ ad(ξ) as a pair: how Ω answers to one of its two strains."""
    w = se3.angular(xi)
    return so3.diagonal_plus(half, kappa * w), so3.hat(kappa * se3.linear(xi))


@wp.func
def outward_motion(
    t: Tables,
    s: Scratch,
    i: int,
    k: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
    acc_base: vec6,
):
    """Pose, twist and acceleration of node k, (1) and (2); the base accelerates by acc_base."""
    parent = t.node[k].parent
    eta = vec6()
    acc = acc_base
    if parent >= 0:
        eta = s.node[i, parent].eta
        acc = s.node[i, parent].acc
    twist = vec6()
    if t.node[k].kind == EXP:
        x = strain_sums(t.run_phi1, t.run_phi2, t.node[k].run_start, t.node[k].run_v, i, t.node[k].q_shift, q, v, a)
        xi1 = x[0] + t.node[k].xi1
        xi2 = x[1] + t.node[k].xi2
        d1 = x[2]
        d2 = x[3]
        Omega, stumpff = place_interval(t, s, i, k, xi1, xi2)
        h = t.node[k].h
        kappa = t.node[k].kappa
        Omega_dot = magnus.omega_dot(xi1, xi2, d1, d2, h, kappa)
        Omega_ddot = magnus.omega_dot(xi1, xi2, x[4], x[5], h, kappa)
        Omega_ddot += (so3.TWO * kappa) * se3.ad(d1, d2)
        V = se3.relative_twist(Omega, Omega_dot, stumpff)
        A = se3.relative_twist(Omega, Omega_ddot, stumpff) + se3.tangent_dot_apply(Omega, Omega_dot, stumpff)
        twist = se3.Ad(s.node[i, k].R, s.node[i, k].p, V)
        acc += se3.Ad(s.node[i, k].R, s.node[i, k].p, A)
    else:
        place_group(t, s, i, k, q)
        twist = se3.Ad(s.node[i, k].R, s.node[i, k].p, group_twist(t, v, i, k))
        acc += se3.Ad(s.node[i, k].R, s.node[i, k].p, group_twist(t, a, i, k))
    eta += twist
    acc += se3.ad(eta, twist)
    s.node[i, k].eta = eta
    s.node[i, k].acc = acc


@wp.func
def inertia_apply(t: Tables, k: int, y: vec6) -> vec6:
    """M_k y in the body frame."""
    w = se3.angular(y)
    u = se3.linear(y)
    C = t.node[k].C
    return se3.join(t.node[k].J * w + C * u, wp.transpose(C) * w + t.node[k].m * u)


@wp.func
def newton_euler(t: Tables, s: Scratch, i: int, k: int):
    """Wrench that node k needs for its motion, (3) without external loads."""
    F = vec6()
    if t.node[k].has_inertia != 0:
        R = s.node[i, k].R
        p = s.node[i, k].p
        eta_B = se3.Ad_inverse(R, p, s.node[i, k].eta)
        acc_B = se3.Ad_inverse(R, p, s.node[i, k].acc)
        F_B = inertia_apply(t, k, acc_B) + se3.coad(eta_B, inertia_apply(t, k, eta_B))
        F = se3.Ad_dual(R, p, F_B)
    s.node[i, k].F = F


@wp.func
def base_inertia(t: Tables, s: Scratch, out: wp.array2d(dtype=mat6), i: int, k: int):
    """Spatial inertia of node k in the base frame: Ad⁻ᵀ M Ad⁻¹."""
    if t.node[k].has_inertia == 0:
        out[i, k] = mat6()
    else:
        R = s.node[i, k].R
        p = s.node[i, k].p
        Rt = wp.transpose(R)
        J = R * t.node[k].J * Rt
        if t.node[k].is_centred != 0:
            mp = t.node[k].m[0, 0] * p
            around = so3.diagonal_plus(wp.dot(mp, p), vec3()) - wp.outer(mp, p)
            heavy = so3.diagonal_plus(t.node[k].m[0, 0], vec3())
            out[i, k] = se3.block(J + around, so3.hat(mp), -so3.hat(mp), heavy)
            return
        C = R * t.node[k].C * Rt
        m = R * t.node[k].m * Rt
        C_p = C + so3.cross_columns(p, m)
        J_p = J + so3.cross_columns(p, wp.transpose(C_p)) + wp.transpose(so3.cross_columns(p, wp.transpose(C)))
        out[i, k] = se3.block(J_p, C_p, wp.transpose(C_p), m)


@wp.func
def inward_force(t: Tables, s: Scratch, i: int, k: int, tau: wp.array2d(dtype=wp.float64)):
    """Hand the wrench of node k to its parent and project it on the node's own coordinates (4)."""
    F = s.node[i, k].F
    parent = t.node[k].parent
    if parent >= 0:
        s.node[i, parent].F = s.node[i, parent].F + F
    f = se3.Ad_transpose(s.node[i, k].R, s.node[i, k].p, F)
    at = t.node[k].v_start
    if t.node[k].kind == EXP:
        y = se3.relative_wrench(s.node[i, k].Omega, f, s.node[i, k].stumpff)
        y1, y2 = magnus.omega_transpose(s.node[i, k].xi1, s.node[i, k].xi2, y, t.node[k].h, t.node[k].kappa)
        project_strains(t.run_phi1, t.run_phi2, t.node[k].run_start, t.node[k].run_v, i, y1, y2, tau)
    else:
        for c in range(6):
            if at + c < t.node[k].v_stop:
                tau[i, at + c] = tau[i, at + c] + f[c]


@wp.func
def inspect(
    t: Tables,
    s: Scratch,
    i: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
):
    """Set the status of an instance from its inputs: NaN or infinity, or a quaternion that is not of unit length."""
    s.status[i] = 0
    bad_q = wp.float64(0.0)
    for j in range(q.shape[1]):
        bad_q += so3.ZERO * q[i, j]
    bad_v = wp.float64(0.0)
    bad_a = wp.float64(0.0)
    for j in range(v.shape[1]):
        bad_v += so3.ZERO * v[i, j]
        bad_a += so3.ZERO * a[i, j]
    if bad_q + bad_v + bad_a != so3.ZERO:  # NaN differs from zero
        s.status[i] = STATUS_NOT_FINITE
    if q.shape[1] != t.nv:
        for k in range(t.n_nodes):
            if t.node[k].kind != EXP:
                at = t.node[k].v_start + t.node[k].q_shift
                n = q[i, at] * q[i, at] + q[i, at + 1] * q[i, at + 1]
                n += q[i, at + 2] * q[i, at + 2] + q[i, at + 3] * q[i, at + 3]
                if wp.abs(wp.sqrt(n) - so3.ONE) > UNIT_TOLERANCE:
                    s.status[i] = STATUS_QUATERNION


@wp.func
def inspect_result(s: Scratch, i: int, out: wp.array2d(dtype=wp.float64)):
    """Set the status of an instance whose inputs were good and whose result is not finite."""
    bad = wp.float64(0.0)
    for j in range(out.shape[1]):
        bad += so3.ZERO * out[i, j]
    if bad != so3.ZERO and s.status[i] == 0:  # NaN differs from zero
        s.status[i] = STATUS_OVERFLOW


@wp.func
def project(t: Tables, s: Scratch, i: int, tau: wp.array2d(dtype=wp.float64)):
    """Inward half-pass: sum the wrenches to the base and project them on the coordinates."""
    for j in range(t.nv):
        tau[i, j] = so3.ZERO
    for step in range(t.n_dynamic):
        inward_force(t, s, i, t.n_dynamic - 1 - step, tau)
