"""Nodes whose pose is stored in q: a quaternion, and a position for a free joint, inside kernels.

v is the body twist of the joint, and derivatives with respect to q are along a tangent vector on the right at fixed v.
With η_p and a_p of the parent:

    S = Ad_g Φ,   Ṡ = ad_η S,   R = ad_{η_p} S,   Q = (ad_{a_p} + ad_{η_p}²) S                               (1)

There is no local term, since Sᵀ F at a fixed wrench does not depend on the node's own coordinates. A step q ⊕ Δ
multiplies the columns of a Newton matrix by T(Δ). Columns are products with Φ of a pair [A, B] that stands for
[[A, 0], [B, A]].
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.lie import se3, so3
from lissom.lie.types import mat3, vec3, vec6
from lissom.model.groups import Nodes
from lissom.model.tables import FREE, Tables
from lissom.passes import columns
from lissom.passes.columns import Columns, DerivativeSums, Matrix, NewtonPoint, NewtonSums
from lissom.passes.features import are_all_screws, is_exp
from lissom.passes.scratch import Direction, Scratch, joint_side, parent_motion
from lissom.robot.joints import MotionKind


def stored_poses(nodes: Nodes) -> list[tuple[int, int, bool]]:
    """(first index in q, first index in v, whether q holds a position too) of each node with a quaternion."""
    found = np.flatnonzero(nodes.has_quaternion)
    v = nodes.v_start[found]
    free = nodes.kind[found] == MotionKind.FREE.value
    return [(int(a + s), int(a), bool(f)) for a, s, f in zip(v, nodes.q_shift[found], free)]


@wp.func
def quaternion_rotation(q: Matrix, i: int, at: int) -> mat3:
    """Rotation of the quaternion stored at q[i, at:at+4], normalised."""
    w = q[i, at]
    v = vec3(q[i, at + 1], q[i, at + 2], q[i, at + 3])
    r = so3.ONE / wp.sqrt(w * w + wp.dot(v, v))
    return so3.from_quaternion(w * r, r * v)


@wp.func
def stored_position(t: Tables, q: Matrix, i: int, k: int) -> vec3:
    """Position part of the stored pose: zero for a spherical joint."""
    if t.node[k].kind == FREE:
        at = t.node[k].v_start + t.node[k].q_shift + 4
        return vec3(q[i, at], q[i, at + 1], q[i, at + 2])
    return vec3()


@wp.func
def twist(t: Tables, x: Matrix, i: int, k: int) -> vec6:
    """Φ x: the body twist, or its rate, in the node's velocity coordinates."""
    v = t.node[k].v_start
    if t.node[k].kind == FREE:
        return vec6(x[i, v], x[i, v + 1], x[i, v + 2], x[i, v + 3], x[i, v + 4], x[i, v + 5])
    return vec6(x[i, v], x[i, v + 1], x[i, v + 2], so3.ZERO, so3.ZERO, so3.ZERO)


@wp.func
def add_covector(t: Tables, i: int, k: int, y: vec6, out: Matrix):
    """out += Φᵀ y at the node's velocity coordinates."""
    at = t.node[k].v_start
    for c in range(6):
        if at + c < t.node[k].v_stop:
            out[i, at + c] = out[i, at + c] + y[c]


@wp.func
def place(t: Tables, s: Scratch, i: int, k: int, q: Matrix):
    """Pose of the node."""
    R0, p0 = joint_side(t, s, i, k)
    s.node[i, k].R = R0 * quaternion_rotation(q, i, t.node[k].v_start + t.node[k].q_shift)
    s.node[i, k].p = R0 * stored_position(t, q, i, k) + p0


@wp.func
def rate(t: Tables, s: Scratch, i: int, k: int, q: Matrix, v: Matrix, a: Matrix):
    """Pose of the node; Ad_g V and Ad_g A of its own twist V = Φ v and acceleration A = Φ a."""
    place(t, s, i, k, q)
    R = s.node[i, k].R
    p = s.node[i, k].p
    return se3.Ad(R, p, twist(t, v, i, k)), se3.Ad(R, p, twist(t, a, i, k))


@wp.func
def motion_block(s: Scratch, i: int, k: int):
    """Ad_g as a pair."""
    R = s.node[i, k].R
    return R, so3.cross_columns(s.node[i, k].p, R)


@wp.func
def motion_columns(s: Scratch, x: Columns, i: int, k: int, S: Matrix):
    """S of (1), with zeros in the rest of their blocks."""
    A, B = motion_block(s, i, k)
    columns.put_turned_columns(x, i, k, A, B, S)


@wp.func
def rate_columns(s: Scratch, x: Columns, i: int, k: int, S_dot: Matrix):
    """Ṡ of (1)."""
    A, B = motion_block(s, i, k)
    A_eta, B_eta = se3.ad_block(s.node[i, k].eta, A, B)
    columns.put_turned_columns(x, i, k, A_eta, B_eta, S_dot)


@wp.func
def group_pairs(t: Tables, s: Scratch, i: int, k: int, acc_base: vec6):
    """S, R, Q and Ṡ of (1) as pairs."""
    eta_p, acc_p = parent_motion(t, s, i, k, acc_base)
    A0, B0 = motion_block(s, i, k)
    RA, RB = se3.ad_block(eta_p, A0, B0)
    DA, DB = se3.ad_block(s.node[i, k].eta, A0, B0)
    QA, QB = se3.ad_block(acc_p, A0, B0)
    VA, VB = se3.ad_block(eta_p, RA, RB)
    return A0, B0, RA, RB, QA + VA, QB + VB, DA, DB


@wp.func
def derivative_columns(
    t: Tables, s: Scratch, x: Columns, i: int, k: int, acc_base: vec6, sums: DerivativeSums
):  # fmt: skip
    """Columns S, and the path sums with S, R, Q and E = Ṡ + R."""
    A, B, RA, RB, QA, QB, DA, DB = group_pairs(t, s, i, k, acc_base)
    none = mat3()
    parent = t.node[k].parent
    columns.put_columns(x, i, k, A, B, none, none, sums.S)
    columns.extend_path(x, parent, i, k, A, B, none, none, sums.J)
    columns.extend_path(x, parent, i, k, RA, RB, none, none, sums.J_R)
    columns.extend_path(x, parent, i, k, DA + RA, DB + RB, none, none, sums.J_E)
    columns.extend_path(x, parent, i, k, QA, QB, none, none, sums.J_Q)


@wp.func
def move_tangent(t: Tables, i: int, k: int, move: Matrix):
    """T(Δ) as a pair; the identity for a joint with one axis."""
    if are_all_screws() and is_exp(t.node[k].kind):
        return wp.identity(n=3, dtype=wp.float64), mat3()
    Omega = twist(t, move, i, k)
    w = se3.angular(Omega)
    A, B = se3.tangent(Omega, so3.stumpff(wp.dot(w, w)))
    return A, B


@wp.func
def newton_columns(
    t: Tables, s: Scratch, x: Columns, i: int, k: int, parent: int, point: NewtonPoint, sums: NewtonSums
):  # fmt: skip
    """Columns S and S T, and the path sums with S T, P = Q T + c₁ (Ṡ + R) + c₀ S and R T + c₁ S."""
    A, B, RA, RB, QA, QB, DA, DB = group_pairs(t, s, i, k, point.acc_base)
    TA, TB = move_tangent(t, i, k, point.move)
    c0 = point.c0
    c1 = point.c1
    none = mat3()
    A_T, B_T = se3.block_product(A, B, TA, TB)
    RA_T, RB_T = se3.block_product(RA, RB, TA, TB)
    QA_T, QB_T = se3.block_product(QA, QB, TA, TB)
    columns.put_columns(x, i, k, A, B, none, none, sums.S)
    columns.put_columns(x, i, k, A_T, B_T, none, none, sums.S_T)
    columns.extend_path(x, parent, i, k, A_T, B_T, none, none, sums.J)
    columns.extend_path(x, parent, i, k, RA_T + c1 * A, RB_T + c1 * B, none, none, sums.J_R)
    columns.extend_path(
        x, parent, i, k, QA_T + c1 * (DA + RA) + c0 * A, QB_T + c1 * (DB + RB) + c0 * B, none, none, sums.J_P
    )


@wp.func
def project(t: Tables, i: int, k: int, f: vec6, tau: Matrix):
    """tau += Φᵀ f, f the wrench on the node in its own frame."""
    add_covector(t, i, k, f, tau)


@wp.func
def change(t: Tables, s: Scratch, d: Direction, i: int, k: int, acc_base: vec6):
    """The terms of the node in x, w and z: (9) of inverse_dynamics_derivatives."""
    eta_p, acc_p = parent_motion(t, s, i, k, acc_base)
    R = s.node[i, k].R
    p = s.node[i, k].p
    e = se3.Ad(R, p, twist(t, d.dq, i, k))
    e1 = se3.Ad(R, p, twist(t, d.dv, i, k))
    turned = se3.ad(eta_p, e)
    z = se3.Ad(R, p, twist(t, d.da, i, k)) + se3.ad(s.node[i, k].eta, e1) + se3.ad(eta_p, e1 + turned)
    return e, e1 + turned, z + se3.ad(acc_p, e)


@wp.func
def project_change(t: Tables, i: int, k: int, df: vec6, tau: Matrix):
    """tau += the change of Φᵀ f, where f changes by df."""
    add_covector(t, i, k, df, tau)


@wp.func
def half_turn(w: vec3) -> wp.vec4d:
    """Unit quaternion (w, x, y, z) of a rotation vector; by the series of sin(x)/x where the angle is small."""
    square = so3.HALF * so3.HALF * wp.dot(w, w)
    factor = so3.HALF * (so3.ONE - square / wp.float64(6.0) * (so3.ONE - square / wp.float64(20.0)))
    if square > wp.float64(1e-4):
        half = wp.sqrt(square)
        factor = so3.HALF * wp.sin(half) / half
    r = factor * w
    return wp.vec4d(wp.cos(wp.sqrt(square)), r[0], r[1], r[2])


@wp.func
def move(t: Tables, i: int, k: int, start: Matrix, step: Matrix, q: Matrix):
    """The stored pose of q = start ⊕ step: a rotation by exp of the step; for a free joint, a motion by exp of
    SE(3)."""
    at = t.node[k].v_start + t.node[k].q_shift
    Omega = twist(t, step, i, k)
    w = se3.angular(Omega)
    turn = half_turn(w)
    s0 = start[i, at]
    s = vec3(start[i, at + 1], start[i, at + 2], start[i, at + 3])
    r = vec3(turn[1], turn[2], turn[3])
    c = s0 * turn[0] - wp.dot(s, r)
    x = s0 * r + turn[0] * s + wp.cross(s, r)
    scale = so3.ONE / wp.sqrt(c * c + wp.dot(x, x))
    q[i, at] = scale * c
    for e in range(3):
        q[i, at + 1 + e] = scale * x[e]
    if t.node[k].kind == FREE:
        _turned, p = se3.exp(Omega, so3.stumpff(wp.dot(w, w)))
        moved = quaternion_rotation(start, i, at) * p
        for e in range(3):
            q[i, at + 4 + e] = start[i, at + 4 + e] + moved[e]


@wp.func
def set_rates(
    t: Tables, i: int, k: int, c1: wp.float64, step: Matrix, rate: Matrix, bare: Matrix, v: Matrix, a: Matrix
):  # fmt: skip
    """v = T(Δ) w from the rate w = `rate` of a step Δ = `step`, and a = bare + c₁ (v − w)."""
    Omega = twist(t, step, i, k)
    omega = se3.angular(Omega)
    V = se3.relative_twist(Omega, twist(t, rate, i, k), so3.stumpff(wp.dot(omega, omega)))
    at = t.node[k].v_start
    for e in range(6):
        if at + e < t.node[k].v_stop:
            v[i, at + e] = V[e]
            a[i, at + e] = bare[i, at + e] + c1 * (V[e] - rate[i, at + e])


@wp.func
def pull_back(t: Tables, i: int, k: int, step: Matrix, row: Matrix, out: Matrix):
    """out = T(Δ)ᵀ row at the node's velocity coordinates."""
    A, B = move_tangent(t, i, k, step)
    y = se3.apply_transpose(A, B, twist(t, row, i, k))
    at = t.node[k].v_start
    for c in range(6):
        if at + c < t.node[k].v_stop:
            out[i, at + c] = y[c]


@wp.func
def configuration_rate(t: Tables, i: int, k: int, q: Matrix, v: Matrix, out: Matrix):
    """q̇ of the stored pose: ½ q (0, ω) of the quaternion and R v of a free joint's position."""
    at = t.node[k].v_start + t.node[k].q_shift
    own = twist(t, v, i, k)
    w = so3.HALF * se3.angular(own)
    c = q[i, at]
    x = vec3(q[i, at + 1], q[i, at + 2], q[i, at + 3])
    turned = c * w + wp.cross(x, w)
    out[i, at] = -wp.dot(x, w)
    for e in range(3):
        out[i, at + 1 + e] = turned[e]
    if t.node[k].kind == FREE:
        moved = quaternion_rotation(q, i, at) * se3.linear(own)
        for e in range(3):
            out[i, at + 4 + e] = moved[e]


@wp.func
def length_error(t: Tables, i: int, k: int, q: Matrix) -> wp.float64:
    """Difference of the length of the quaternion from one."""
    at = t.node[k].v_start + t.node[k].q_shift
    n = q[i, at] * q[i, at] + q[i, at + 1] * q[i, at + 1]
    n += q[i, at + 2] * q[i, at + 2] + q[i, at + 3] * q[i, at + 3]
    return wp.abs(wp.sqrt(n) - so3.ONE)
