"""The functions of nodes by kind, inside kernels: the only branches on the kind of a node.

`interval`: the pose is exp(Ω(q)). `group`: the pose is stored in q. `mapped`: the pose is a general function of q.
`deforming`: the frame of a deformable body, which the coordinates of the body do not move. The module of a kind has
its functions, and this module calls them. Other properties of a node are entries of its row, such as `is_plain`.

In order: motion, columns, configurations (q ⊕ Δ and dq/dt; `integrate` of configuration is the same for arrays), and
inertia. The inertia of a deformable body acts on the body's coordinates too; all other kinds have that of `inertia`.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.types import mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import deforming, group, inertia, interval, mapped
from lissom.passes.columns import Columns, DerivativeSums, Matrix, NewtonPoint, NewtonSums
from lissom.passes.deforming import is_body
from lissom.passes.features import are_all_screws, has_stored_pose, is_exp, may_have_strains
from lissom.passes.mapped import is_mapped
from lissom.passes.scratch import Direction, Scratch


@wp.func
def place(t: Tables, s: Scratch, i: int, k: int, q: Matrix):
    """Store the pose of node k and, by its kind, Ω and strains, the tables of a map, or θ of a deformable body."""
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
def put_block_columns(t: Tables, s: Scratch, x: Columns, i: int, k: int, S: Matrix):
    """Columns S of node k in the base frame, with the column tables x of its block alone. Columns that are zero in any
    configuration are left as they are."""
    if is_mapped(t.node[k].kind):
        mapped.put_block_columns(t, s, x.width, i, k, S)
    elif not is_body(t.node[k].kind):
        motion_columns(t, s, x, i, k, S)


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
    t: Tables, s: Scratch, x: Columns, i: int, nodes: int, v: Matrix, a: Matrix, acc_base: vec6, sums: DerivativeSums,
    has_local: int, out: Matrix,
):  # fmt: skip
    """Columns S of the first `nodes` nodes, and their path sums with the columns S, R, Q and E = Ṡ + R; if `has_local`,
    local terms of intervals are added to out."""
    k = wp.int32(0)
    while k < nodes:
        stop = interval.intervals_stop(t, k, nodes)
        if may_have_strains() and stop > k:
            before = t.node[k].parent
            interval.derivative_columns(t, s, x, i, k, stop, before, v, a, sums, has_local, out)
        elif is_mapped(t.node[k].kind):
            mapped.derivative_columns(t, s, x, i, k, v, a, sums)
        elif is_body(t.node[k].kind):
            deforming.derivative_columns(t, x, i, k, sums)
        elif are_all_screws() or has_stored_pose(t.node[k].has_quaternion):
            group.derivative_columns(t, s, x, i, k, acc_base, sums)
        k = wp.max(stop, k + 1)


@wp.func
def newton_columns(t: Tables, s: Scratch, x: Columns, i: int, point: NewtonPoint, sums: NewtonSums, out: Matrix):
    """Columns S of all dynamic nodes, S T of those with a quaternion, and the path sums of newton_matrix; local terms
    of intervals are added to out."""
    k = wp.int32(0)
    while k < t.n_dynamic:
        before = t.node[k].parent
        stop = interval.intervals_stop(t, k, t.n_dynamic)
        if may_have_strains() and stop > k:
            interval.newton_columns(t, s, x, i, k, stop, before, point, sums, out)
        elif is_mapped(t.node[k].kind):
            mapped.newton_columns(t, s, x, i, k, before, point, sums)
        elif is_body(t.node[k].kind):
            deforming.newton_columns(t, x, i, k, before, sums)
        elif are_all_screws() or has_stored_pose(t.node[k].has_quaternion):
            group.newton_columns(t, s, x, i, k, before, point, sums)
        k = wp.max(stop, k + 1)


@wp.func
def newton_columns_of_node(
    t: Tables, s: Scratch, x: Columns, band: Columns, i: int, k: int, before: int, point: NewtonPoint,
    sums: NewtonSums, out: Matrix,
):  # fmt: skip
    """`newton_columns` for one node that moves by exp(Ω(q)) or has a quaternion. Path sums are added to those of node
    `before`, to zero if it is negative; local terms are added to out with the column tables `band`."""
    if may_have_strains() and is_exp(t.node[k].kind):
        interval.newton_columns_of_node(t, s, x, band, i, k, before, point, sums, out)
    else:
        group.newton_columns(t, s, x, i, k, before, point, sums)


@wp.func
def project(t: Tables, s: Scratch, i: int, k: int, F: vec6, tau: Matrix):
    """tau += Sᵀ F of node k, F in the base frame. The frame of a deformable body has no columns: tau gets the forces
    (3) of deforming, which newton_euler has stored."""
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
    """dq += ∂(Sᵀ F)/∂q of a mapped node k, with its wrench F held fixed. That of an interval is added where its columns
    are computed; spherical and free joints have none."""
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
    """tau += the change of Sᵀ F of node k along a direction, where F changes by dF. For a deformable body tau gets the
    change of the forces (3) of deforming, which newton_euler_change has stored."""
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


@wp.func
def length_error(t: Tables, i: int, k: int, q: Matrix) -> wp.float64:
    """Difference of the length of the quaternion of node k from one; zero for nodes without a quaternion."""
    if has_stored_pose(t.node[k].has_quaternion):
        return group.length_error(t, i, k, q)
    return so3.ZERO


@wp.func
def set_rates(
    t: Tables, i: int, k: int, c1: wp.float64, step: Matrix, rate: Matrix, bare: Matrix, v: Matrix, a: Matrix
):  # fmt: skip
    """Set v = T(Δ) w, (7) of schemes, and a of node k if it has a quaternion, from a step Δ, its rate w and the
    acceleration `bare` that the node would have with v = w. For other nodes v = w already."""
    if has_stored_pose(t.node[k].has_quaternion):
        group.set_rates(t, i, k, c1, step, rate, bare, v, a)


@wp.func
def has_step_tangent(t: Tables, k: int) -> bool:
    """Whether a step Δ multiplies the columns of node k by T(Δ), so that S T is stored apart from S."""
    return has_stored_pose(t.node[k].has_quaternion)


@wp.func
def pull_back(t: Tables, i: int, k: int, step: Matrix, row: Matrix, out: Matrix):
    """out = T(Δ)ᵀ row on the coordinates of node k if it has a quaternion. For other nodes T = 1, and out is kept."""
    if has_stored_pose(t.node[k].has_quaternion):
        group.pull_back(t, i, k, step, row, out)


@wp.func
def newton_euler(t: Tables, s: Scratch, i: int, k: int):
    """Store the wrench that the motion of node k requires, (3) of traversal without external wrenches."""
    if is_body(t.node[k].kind):
        s.node[i, k].F = deforming.newton_euler(t, s, i, k)
        return
    F = vec6()
    if t.node[k].has_inertia:
        F = inertia.newton_euler(t, s, i, k)
    s.node[i, k].F = F


@wp.func
def newton_euler_change(t: Tables, s: Scratch, d: Direction, i: int, k: int, v: Matrix, a: Matrix):
    """Store in d.node.F the change of the wrench of newton_euler along a direction, which is
    (10) of inverse_dynamics_derivatives without H x."""
    if is_body(t.node[k].kind):
        d.node[i, k].F = deforming.newton_euler_change(t, s, d, i, k, v, a)
        return
    F = vec6()
    if t.node[k].has_inertia:
        F = inertia.newton_euler_change(t, s, d, i, k)
    d.node[i, k].F = F


@wp.func
def momentum(t: Tables, s: Scratch, i: int, k: int, v: Matrix):
    """Momentum of node k in its own axes, about its origin, and its kinetic energy."""
    if is_body(t.node[k].kind):
        h, T = deforming.momentum(t, s, i, k, v)
        return h, T
    y, energy = inertia.momentum(t, s, i, k)
    return y, energy


@wp.func
def first_moments(t: Tables, s: Scratch, i: int, k: int):
    """First moments in its own axes of the mass of node k, and of the part of its mass on which gravity acts."""
    if is_body(t.node[k].kind):
        c = deforming.first_moment(t, s, i, k)
        return c, c
    return t.node[k].mass_c, t.node[k].heavy_c


@wp.func
def spatial_inertia(t: Tables, s: Scratch, i: int, k: int) -> mat6:
    """Spatial inertia of node k in the base frame: Ad⁻ᵀ M Ad⁻¹."""
    if not t.node[k].has_inertia:
        return mat6()
    if is_body(t.node[k].kind):
        return deforming.spatial_inertia(t, s, i, k)
    return inertia.spatial_inertia(t, s, i, k)


@wp.func
def coriolis(t: Tables, s: Scratch, i: int, k: int, M: mat6) -> mat6:
    """Y of node k in (4) of mass_matrix, with its inertia M in the base frame."""
    if is_body(t.node[k].kind):
        return deforming.body_coriolis(t, s, i, k, M)
    return inertia.coriolis(s, i, k, M)


@wp.func
def with_twist_response(t: Tables, s: Scratch, i: int, k: int, N: mat6) -> mat6:
    """N plus the derivative, by the twist of node k, of inertia forces that the rates of its coordinates cause."""
    if is_body(t.node[k].kind):
        return N + deforming.twist_response(t, s, i, k)
    return N


@wp.func
def couple_mass(t: Tables, s: Scratch, x: Columns, i: int, k: int, V: Matrix, half: Matrix):
    """Add the inertia of coordinates that deform node k to the subtree sum V and to half of the mass matrix."""
    if is_body(t.node[k].kind):
        deforming.couple_mass(t, s, x, i, k, V, half)


@wp.func
def couple_block(
    t: Tables, s: Scratch, i: int, k: int, square: int, width: int, row: int, H: Matrix, G: Matrix, diagonal: Matrix
):
    """Add the inertia of coordinates that deform node k to H, G and the diagonal of its block, with the storage of
    articulated."""
    if is_body(t.node[k].kind):
        deforming.couple_block(t, s, i, k, square, width, row, H, G, diagonal)


@wp.func
def couple_coriolis(t: Tables, s: Scratch, x: Columns, i: int, k: int, V: Matrix, P: Matrix, Q: Matrix, half: Matrix):
    """Add the Coriolis terms of coordinates that deform node k to the subtree sums V, P and Q and to half of the
    Coriolis matrix."""
    if is_body(t.node[k].kind):
        deforming.couple_coriolis(t, s, x, i, k, V, P, Q, half)


@wp.func
def couple(
    t: Tables, s: Scratch, x: Columns, i: int, k: int, v: Matrix, a: Matrix, weights: vec3, J_acc: Matrix,
    J_twist: Matrix, W: Matrix, out: Matrix,
):  # fmt: skip
    """Add the derivatives with respect to q, v and a, with three weights, of the inertia of coordinates that deform
    node k to the subtree sum W and the matrix out; the arguments are those of `couple` of deforming."""
    if is_body(t.node[k].kind):
        deforming.couple(t, s, x, i, k, v, a, weights, J_acc, J_twist, W, out)
