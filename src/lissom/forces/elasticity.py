"""Elastic and viscous forces of rods and joint springs, as a term inside kernels.

τ = K (q − q_rest) + D v,   and for a spherical or free joint  τ = T(x)⁻ᵀ K x,  x = log(g_rest⁻¹ g)    (1)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.term import Term
from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.types import mat3, mat6, vec6
from lissom.model.tables import Tables
from lissom.passes.columns import Columns
from lissom.passes.features import may_have_pose_springs
from lissom.passes.group import move_tangent, quaternion_rotation, stored_position, twist
from lissom.passes.scratch import SPRINGS, Scratch

native = native_functions("forces/elasticity.h")


@wp.func
def spring_logarithm(t: Tables, j: int, i: int, q: wp.array2d(dtype=wp.float64)) -> vec6:
    """x of (1) for the j-th spring of a spherical or free joint."""
    k = t.pose_springs.node[j]
    Rt = wp.transpose(t.pose_springs.R[j])
    R = quaternion_rotation(q, i, t.node[k].v_start + t.node[k].q_shift)
    return se3.log(Rt * R, Rt * (stored_position(t, q, i, k) - t.pose_springs.p[j]))


@wp.func_native(native("elastic_rows"))
def elastic_rows(
    nv: int,
    start: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    stiffness: wp.array(dtype=wp.float64),
    damping: wp.array(dtype=wp.float64),
    dof_q: wp.array(dtype=wp.int32),
    rest: wp.array(dtype=wp.float64),
    i: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    tau: wp.array2d(dtype=wp.float64),
):
    """tau += K (q − q_rest) + D v by compressed rows. Native, since indexing arrays costs more than the sums."""
    ...


@wp.func
def deflection(t: Tables, i: int, j: int, q: wp.array2d(dtype=wp.float64)) -> wp.float64:
    """Coordinate j minus its rest position; zero for coordinates of spherical and free joints."""
    at = t.dofs.q[j]
    if at < 0:
        return so3.ZERO
    return q[i, at] - t.dofs.rest[j]


@wp.func
def elastic_force(
    t: Tables,
    s: Scratch,
    i: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    tau: wp.array2d(dtype=wp.float64),
):
    """Add (1) to tau."""
    elastic_rows(
        t.nv,
        t.elasticity.start,
        t.elasticity.column,
        t.elasticity.row_stiffness,
        t.elasticity.row_damping,
        t.dofs.q,
        t.dofs.rest,
        i,
        q,
        v,
        tau,
    )
    if may_have_pose_springs():
        for j in range(t.pose_springs.node.shape[0]):
            k = t.pose_springs.node[j]
            x = spring_logarithm(t, j, i, q)
            w = se3.angular(x)
            A, B = se3.tangent_inverse(x, so3.stumpff(wp.dot(w, w)))
            y = se3.apply_transpose(A, B, t.pose_springs.stiffness[j] * x)
            start = t.node[k].v_start
            for c in range(6):
                if start + c < t.node[k].v_stop:
                    tau[i, start + c] = tau[i, start + c] + y[c]


@wp.func_native(native("add_weighted_elastic_rows"))
def add_weighted_elastic_rows(
    nv: int,
    width: int,
    start: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    stiffness: wp.array(dtype=wp.float64),
    damping: wp.array(dtype=wp.float64),
    i: int,
    by_k: wp.float64,
    by_d: wp.float64,
    out: wp.array2d(dtype=wp.float64),
):
    """out += by_k K + by_d D by compressed rows."""
    ...


@wp.func
def elastic_stiffness(
    t: Tables,
    s: Scratch,
    x: Columns,
    i: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    move: wp.array2d(dtype=wp.float64),
    by_q: wp.float64,
    by_v: wp.float64,
    out: wp.array2d(dtype=wp.float64),
):
    """Add the derivatives of (1), with the weights by_q and by_v: K and D, and the stiffness of the springs of
    spherical and free joints times T(move)."""
    add_weighted_elastic_rows(
        t.nv,
        x.width,
        t.elasticity.start,
        t.elasticity.column,
        t.elasticity.row_stiffness,
        t.elasticity.row_damping,
        i,
        by_q,
        by_v,
        out,
    )
    if may_have_pose_springs() and by_q != so3.ZERO:
        for j in range(t.pose_springs.node.shape[0]):
            k = t.pose_springs.node[j]
            A, B = move_tangent(t, i, k, move)
            K = by_q * group_spring_stiffness(t, j, i, q) * se3.block(A, mat3(), B, A)
            add_own_block(t, i, k, x.width, K, out)


@wp.func_native(native("changed_elastic_rows"))
def changed_elastic_rows(
    nv: int,
    start: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    stiffness: wp.array(dtype=wp.float64),
    damping: wp.array(dtype=wp.float64),
    i: int,
    dq: wp.array2d(dtype=wp.float64),
    dv: wp.array2d(dtype=wp.float64),
    tau: wp.array2d(dtype=wp.float64),
):
    """tau += K dq + D dv by compressed rows."""
    ...


@wp.func
def elastic_change(
    t: Tables,
    s: Scratch,
    i: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    dq: wp.array2d(dtype=wp.float64),
    dv: wp.array2d(dtype=wp.float64),
    tau: wp.array2d(dtype=wp.float64),
):
    """Add the change of (1) along (dq, dv)."""
    changed_elastic_rows(
        t.nv,
        t.elasticity.start,
        t.elasticity.column,
        t.elasticity.row_stiffness,
        t.elasticity.row_damping,
        i,
        dq,
        dv,
        tau,
    )
    if may_have_pose_springs():
        for j in range(t.pose_springs.node.shape[0]):
            k = t.pose_springs.node[j]
            start = t.node[k].v_start
            y = group_spring_stiffness(t, j, i, q) * twist(t, dq, i, k)
            for r in range(6):
                if start + r < t.node[k].v_stop:
                    tau[i, start + r] = tau[i, start + r] + y[r]


@wp.func
def group_spring_stiffness(t: Tables, j: int, i: int, q: wp.array2d(dtype=wp.float64)) -> mat6:
    """Derivative of (1) for the j-th spring of a spherical or free joint: with z = T⁻ᵀ K x and dx = T⁻¹ δ, it is
    T⁻ᵀ (K − ∂(Tᵀ z)/∂x) T⁻¹."""
    x = spring_logarithm(t, j, i, q)
    w = se3.angular(x)
    c = so3.stumpff(wp.dot(w, w))
    A, B = se3.tangent_inverse(x, c)
    T_inverse = se3.block(A, mat3(), B, A)
    z = se3.apply_transpose(A, B, t.pose_springs.stiffness[j] * x)
    inner = t.pose_springs.stiffness[j] - se3.tangent_transpose_derivative(x, z, c)
    return wp.transpose(T_inverse) * inner * T_inverse


@wp.func
def add_own_block(t: Tables, i: int, k: int, width: int, D: mat6, out: wp.array2d(dtype=wp.float64)):
    """Add the first rows and columns of D at the own coordinates of a spherical or free joint."""
    start = t.node[k].v_start
    n = t.node[k].v_stop - start
    for r in range(n):  # n is not constant, so that Warp does not unroll the loops; unrolled code compiles slowly
        for e in range(n):
            at = (start + r) * width + start + e
            out[i, at] = out[i, at] + D[r, e]


@wp.func
def elastic_energy(t: Tables, s: Scratch, i: int, q: wp.array2d(dtype=wp.float64)) -> wp.float64:
    """½ eᵀ K e with the deflections e = q − q_rest, plus ½ xᵀ K x of the springs of spherical and free joints [J]."""
    total = wp.float64(0.0)
    for row in range(t.nv):
        for e in range(t.elasticity.start[row], t.elasticity.start[row + 1]):
            j = t.elasticity.column[e]
            total += so3.HALF * t.elasticity.row_stiffness[e] * deflection(t, i, row, q) * deflection(t, i, j, q)
    if may_have_pose_springs():
        for j in range(t.pose_springs.node.shape[0]):
            x = spring_logarithm(t, j, i, q)
            total += so3.HALF * wp.dot(x, t.pose_springs.stiffness[j] * x)
    return total


TERM = Term(
    "rods and springs of joints",
    int(SPRINGS),
    force=elastic_force,
    stiffen=elastic_stiffness,
    change=elastic_change,
    energy=elastic_energy,
)
