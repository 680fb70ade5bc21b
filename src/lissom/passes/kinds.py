"""The functions of nodes by kind, inside kernels: the only branches on the kind of a node.

`interval`: the pose is exp(Ω(q)). `group`: the pose is stored in q. `mapped`: the pose is a general function of q.
`deforming`: the frame of a deformable body, which the coordinates of the body do not move. Other properties of a node
are entries of its row, such as `has_quaternion`.

Also q ⊕ Δ and dq/dt inside kernels; `integrate` of configuration is the same for arrays.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3
from lissom.lie.types import vec6
from lissom.model.tables import Tables
from lissom.passes import deforming, group, interval, mapped
from lissom.passes.columns import Columns, Matrix
from lissom.passes.features import has_stored_pose, is_body, is_exp, is_mapped
from lissom.passes.scratch import Direction, Scratch


@wp.func
def place(t: Tables, s: Scratch, i: int, k: int, q: Matrix):
    """Pose of node k."""
    if is_exp(t.node[k].kind):
        interval.place(t, s, i, k, q)
    elif is_mapped(t.node[k].kind):
        mapped.place(t, s, i, k, q)
    elif is_body(t.node[k].kind):
        deforming.place(t, s, i, k, q)
    else:
        group.place(t, s, i, k, q)


@wp.func
def rate(t: Tables, s: Scratch, i: int, k: int, q: Matrix, v: Matrix, a: Matrix):
    """Compute the pose of node k; returns its twist and acceleration relative to its parent, in the base frame."""
    if is_exp(t.node[k].kind):
        V, A = interval.rate(t, s, i, k, q, v, a)
        return V, A
    if is_mapped(t.node[k].kind):
        Y, C = mapped.rate(t, s, i, k, q, v, a)
        return Y, C
    if is_body(t.node[k].kind):
        zero_twist, zero_acceleration = deforming.rate(t, s, i, k, q, v, a)
        return zero_twist, zero_acceleration
    W, B = group.rate(t, s, i, k, q, v, a)
    return W, B


@wp.func
def motion_columns(t: Tables, s: Scratch, x: Columns, i: int, k: int, S: Matrix):
    """Columns S of node k in the base frame, with zeros in the rest of their blocks."""
    if is_exp(t.node[k].kind):
        interval.motion_columns(t, s, x, i, k, S)
    elif is_mapped(t.node[k].kind):
        mapped.motion_columns(t, s, x, i, k, S)
    elif is_body(t.node[k].kind):
        deforming.no_columns(t, x, i, k, S)
    else:
        group.motion_columns(s, x, i, k, S)


@wp.func
def rate_columns(t: Tables, s: Scratch, x: Columns, i: int, k: int, q: Matrix, v: Matrix, S_dot: Matrix):
    """Columns Ṡ of node k in the base frame."""
    if is_exp(t.node[k].kind):
        interval.rate_columns(t, s, x, i, k, q, v, S_dot)
    elif is_mapped(t.node[k].kind):
        mapped.rate_columns(t, s, x, i, k, v, S_dot)
    elif is_body(t.node[k].kind):
        deforming.no_columns(t, x, i, k, S_dot)
    else:
        group.rate_columns(s, x, i, k, S_dot)


@wp.func
def derivative_columns(
    t: Tables, s: Scratch, x: Columns, i: int, nodes: int, v: Matrix, a: Matrix, acc_base: vec6,
    S: Matrix, J: Matrix, J_R: Matrix, J_Q: Matrix, J_E: Matrix, has_local: int, out: Matrix,
):  # fmt: skip
    """Columns S of the first `nodes` nodes, and their path sums with the columns S, R, Q and E = Ṡ + R; if `has_local`,
    local terms of intervals are added to out."""
    k = wp.int32(0)
    while k < nodes:
        stop = interval.intervals_stop(t, k, nodes)
        if stop > k:
            before = t.node[k].parent
            interval.derivative_columns(
                t, s, x, x, i, k, stop, before, v, a, S, J, J_R, J_Q, J_E, has_local, out
            )  # fmt: skip
            k = stop
        else:
            if is_mapped(t.node[k].kind):
                mapped.derivative_columns(t, s, x, i, k, v, a, S, J, J_R, J_Q, J_E)
            elif is_body(t.node[k].kind):
                deforming.derivative_columns(t, x, i, k, S, J, J_R, J_Q, J_E)
            elif has_stored_pose(t.node[k].has_quaternion):
                group.derivative_columns(t, s, x, i, k, acc_base, S, J, J_R, J_Q, J_E)
            k += 1


@wp.func
def newton_columns(
    t: Tables, s: Scratch, x: Columns, i: int, v: Matrix, a: Matrix, move: Matrix, c0: wp.float64, c1: wp.float64,
    acc_base: vec6, S: Matrix, S_T: Matrix, J: Matrix, J_P: Matrix, J_R: Matrix, out: Matrix,
):  # fmt: skip
    """Columns S of all dynamic nodes, S T of those with a quaternion, and the path sums of newton_matrix; local terms
    of intervals are added to out."""
    k = wp.int32(0)
    while k < t.n_dynamic:
        before = t.node[k].parent
        stop = interval.intervals_stop(t, k, t.n_dynamic)
        if stop > k:
            interval.newton_columns(t, s, x, x, i, k, stop, before, v, a, c0, c1, S, J, J_P, J_R, out)
            k = stop
        else:
            if is_mapped(t.node[k].kind):
                mapped.newton_columns(t, s, x, i, k, before, v, a, c0, c1, S, J, J_P, J_R)
            elif is_body(t.node[k].kind):
                deforming.newton_columns(t, x, i, k, before, S, J, J_P, J_R)
            elif has_stored_pose(t.node[k].has_quaternion):
                group.newton_columns(t, s, x, i, k, before, move, c0, c1, acc_base, S, S_T, J, J_P, J_R)
            k += 1


@wp.func
def newton_columns_of_node(
    t: Tables, s: Scratch, x: Columns, band: Columns, i: int, k: int, before: int, v: Matrix, a: Matrix, move: Matrix,
    c0: wp.float64, c1: wp.float64, acc_base: vec6, S: Matrix, S_T: Matrix, J: Matrix, J_P: Matrix, J_R: Matrix,
    out: Matrix,
):  # fmt: skip
    """As `newton_columns`, for one interval or GROUP node. Path sums are added to those of node `before`, to zero if it
    is negative; local terms are stored with the column tables `band`."""
    if is_exp(t.node[k].kind):
        interval.newton_columns_of_node(
            t, s, x, band, i, k, k + 1, before, v, a, c0, c1, S, J, J_P, J_R, out
        )  # fmt: skip
    else:
        group.newton_columns(t, s, x, i, k, before, move, c0, c1, acc_base, S, S_T, J, J_P, J_R)


@wp.func
def project(t: Tables, s: Scratch, i: int, k: int, F: vec6, tau: Matrix):
    """tau += Sᵀ F of node k, F in the base frame."""
    f = se3.Ad_transpose(s.node[i, k].R, s.node[i, k].p, F)
    if is_exp(t.node[k].kind):
        interval.project(t, s, i, k, f, tau)
    elif is_mapped(t.node[k].kind):
        mapped.project(t, s, i, k, f, tau)
    elif is_body(t.node[k].kind):
        deforming.project(t, s, i, k, tau)
    else:
        group.project(t, i, k, f, tau)


@wp.func
def local_term(t: Tables, s: Scratch, x: Columns, i: int, k: int, dq: Matrix):
    """dq += the derivative of Sᵀ F by the coordinates of node k at its fixed wrench, for mapped nodes. Those of
    intervals are added with their columns; GROUP nodes have none."""
    if is_mapped(t.node[k].kind):
        f = se3.Ad_transpose(s.node[i, k].R, s.node[i, k].p, s.node[i, k].F)
        mapped.local_term(t, s, x, i, k, f, dq)


@wp.func
def change(
    t: Tables, s: Scratch, d: Direction, i: int, k: int, q: Matrix, v: Matrix, a: Matrix, acc_base: vec6
):  # fmt: skip
    """The terms of node k in x, w and z of inverse_dynamics_derivatives along a direction."""
    if is_exp(t.node[k].kind):
        e, e1, e2 = interval.change(t, s, d, i, k, q, v, a)
        return e, e1, e2
    if is_mapped(t.node[k].kind):
        y, y1, y2 = mapped.change(t, s, d, i, k, v, a)
        return y, y1, y2
    if is_body(t.node[k].kind):
        return vec6(), vec6(), vec6()
    x, w, z = group.change(t, s, d, i, k, acc_base)
    return x, w, z


@wp.func
def project_change(t: Tables, s: Scratch, d: Direction, i: int, k: int, F: vec6, dF: vec6, tau: Matrix):
    """tau += the change of Sᵀ F of node k along a direction, where F changes by dF."""
    df = se3.Ad_transpose(s.node[i, k].R, s.node[i, k].p, dF)
    f = se3.Ad_transpose(s.node[i, k].R, s.node[i, k].p, F)
    if is_exp(t.node[k].kind):
        interval.project_change(t, s, d, i, k, f, df, tau)
    elif is_mapped(t.node[k].kind):
        mapped.project_change(t, s, d, i, k, f, df, tau)
    elif is_body(t.node[k].kind):
        deforming.project_change(t, s, i, k, tau)
    else:
        group.project_change(t, i, k, df, tau)


Rows = wp.array2d(dtype=wp.float64)


@wp.func
def move_configuration(t: Tables, i: int, start: Rows, move: Rows, q: Rows):
    """q = start ⊕ move for instance i."""
    for j in range(t.nv):
        at = t.dofs.q[j]
        if at >= 0:
            q[i, at] = start[i, at] + move[i, j]
    if q.shape[1] != t.nv:
        for k in range(t.n_nodes):
            if has_stored_pose(t.node[k].has_quaternion):
                group.move(t, i, k, start, move, q)


@wp.func
def put_configuration_rate(t: Tables, i: int, q: Rows, v: Rows, out: Rows):
    """out = q̇ for instance i."""
    for j in range(t.nv):
        at = t.dofs.q[j]
        if at >= 0:
            out[i, at] = v[i, j]
    if q.shape[1] != t.nv:
        for k in range(t.n_nodes):
            if has_stored_pose(t.node[k].has_quaternion):
                group.configuration_rate(t, i, k, q, v, out)
