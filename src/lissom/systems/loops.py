"""Loop closures, inside kernels: residual, its rows, and the wrenches that hold the loops. B is frame B of a loop.

    g_BA = exp(ε) h,  e = Φ⊥ᵀ ε                                                                           (1)
    y = Ad_{g_BA} η_A − η_B,   ė = E y,   E = Φ⊥ᵀ where the loop is closed                                (2)
    P y = 0,   P ẏ + Ṗ y = 0      P = Φ⊥ᵀ, but for a universal joint (b × a₁)ᵀ, b = R a₂, on the turn     (3)
    A = P Ad_{g_B}⁻¹ (J_A − J_B),   W = Ad_{g_B}⁻ᵀ Pᵀ λ acts on A, −W on B                                (4)

J and W are in the base frame, where W is the same 6-vector for A and B. Its derivative with respect to the poses,
without the parts that move with each node, is H (J_A − J_B) on A, with H = adbar_W − U, and U (J_A − J_B) on B; U is
the derivative of P. Source: Mathew 2025 (47), (D68)-(D80). The motion h of the joint in (1) is removed before the
logarithm, so that the joint may rotate by any angle.

Skates and rolling contacts are further rows P of (3), of robot.rolling, between the same two frames: P is constant for
a skate, and follows the point of contact of a wheel (rolling). Rows that restrict velocities only have no residual,
e = 0 and E = 0. A function of the pose or velocity of A in B is one more row (constraint_functions). It may depend on
coordinates of joints too. Where P depends on the pose of A in B, a motion y' changes it by D y', and

    d(P y)/dt = P ẏ + y·D y,   δ(P y) = P δy + δx·Dᵀ y,   δ(y·D y) = y·(D + Dᵀ) δy + δx·(its derivative)  (5)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.se3 import adbar_matrix
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes.columns import Columns, Matrix, add_column
from lissom.passes.features import may_have_loops
from lissom.passes.scratch import STATUS_FLAT_DISC, STATUS_FUNCTION, STATUS_SINGULAR, Scratch
from lissom.passes.traversal import origin_of
from lissom.robot.constraints import RowKind
from lissom.systems import constraint_functions
from lissom.systems.constraint_functions import (
    column_of,
    entry_of,
    joint_count,
    joint_rate,
    number_of_product,
    product_of,
    put_function,
    put_function_bend,
    row_by_pose,
    slope,
)
from lissom.systems.couplings import coupling_rates, coupling_residuals
from lissom.systems.rolling import (
    contact_height,
    contact_rate,
    contact_row,
    contact_turn,
    onto_contact,
    onto_contact_rate,
)

native = native_functions("systems/loops.h")


HINGE, FUNCTION, HEIGHT, ROLLING, RATE_FUNCTION, SKATE = (wp.constant(kind.value) for kind in list(RowKind)[1:])
_FLAT = wp.constant(wp.float64(1e-12))  # sine of the angle between a disc and its plane, squared
_FULL_TURN = wp.constant(wp.float64(6.283185307179586))


@wp.struct
class LoopState:
    """The state of a loop.

    R_B, p_B: frame B. R, p: pose of A in B. R_error, p_error, epsilon: exp(ε) of (1) and ε. p_h: position of h. b:
    R a₂, or the axis of a wheel. T_A, T_B: the left T⁻¹ of ε as a pair. k: θ̇ = k·ω for the angle θ of the joint.
    """

    R_B: mat3
    p_B: vec3
    R: mat3
    p: vec3
    R_error: mat3
    p_error: vec3
    epsilon: vec6
    p_h: vec3
    b: vec3
    T_A: mat3
    T_B: mat3
    k: vec3


@wp.func
def loop_pose(t: Tables, s: Scratch, i: int, loop: int, side: int):
    """Frame A (side 0) or B (side 1) of a loop in the base frame."""
    k = t.loops.node[loop, side]
    R = t.loops.R[loop, side]
    p = t.loops.p[loop, side]
    if k < 0:
        return R, p - origin_of(t, s, i, t.loops.node[loop, 1 - side])
    return s.node[i, k].R * R, s.node[i, k].R * p + s.node[i, k].p


@wp.func
def loop_motion(t: Tables, s: Scratch, i: int, loop: int, side: int, acc_base: vec6):
    """Twist and acceleration of the node of one side in the base frame."""
    k = t.loops.node[loop, side]
    if k < 0:
        return vec6(), acc_base
    return s.node[i, k].eta, s.node[i, k].acc


@wp.func
def nearest_turn(a: vec3, R: mat3):
    """Cosine, sine and matrix of the rotation about the axis a that is nearest to R."""
    w = so3.HALF * vec3(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1])
    c = so3.HALF * (R[0, 0] + R[1, 1] + R[2, 2] - wp.dot(a, R * a))
    s = wp.dot(a, w)
    size = wp.sqrt(c * c + s * s)
    c = c / size
    s = s / size
    return c, s, so3.diagonal_plus(c, s * a) + (so3.ONE - c) * wp.outer(a, a)


@wp.func
def loop_state(t: Tables, s: Scratch, i: int, loop: int) -> LoopState:
    """The parts of (1) and (2) that do not depend on the row."""
    g = LoopState()
    R_A, p_A = loop_pose(t, s, i, loop, 0)
    R_B, p_B = loop_pose(t, s, i, loop, 1)
    g.R_B = R_B
    g.p_B = p_B
    g.R = wp.transpose(R_B) * R_A
    g.p = wp.transpose(R_B) * (p_A - p_B)
    g.b = g.R * t.loops.hinge[loop, 1]
    a = t.loops.axis[loop]
    turns = t.loops.turns[loop]
    R_h = so3.diagonal_plus(so3.ONE, vec3())
    g.p_h = t.loops.slide[loop] * g.p
    if turns == 3:
        R_h = g.R
    if turns == 1:
        c, sine, R_h1 = nearest_turn(a, g.R)
        R_h = R_h1
        pitch = t.loops.pitch[loop]
        if pitch != so3.ZERO:
            angle = wp.atan2(sine, c)
            turned = (wp.dot(a, g.p) / pitch - angle) / _FULL_TURN
            g.p_h += (pitch * (angle + _FULL_TURN * wp.round(turned))) * a
    g.R_error = g.R * wp.transpose(R_h)
    g.p_error = g.p - g.R_error * g.p_h
    g.epsilon = se3.log(g.R_error, g.p_error)
    if turns == 3:
        g.R_error = so3.diagonal_plus(so3.ONE, vec3())
        g.epsilon = se3.join(vec3(), g.p_error)
    w = se3.angular(g.epsilon)
    T_A, T_B = se3.tangent_inverse(-g.epsilon, so3.stumpff(wp.dot(w, w)))
    g.T_A = T_A
    g.T_B = T_B
    k = wp.transpose(T_A) * a
    if turns == 1:
        g.k = k / wp.dot(k, g.R_error * a)
    return g


@wp.func
def restricts_rate(kind: int) -> bool:
    """Whether a row of a kind restricts velocities and no positions."""
    return kind >= ROLLING


@wp.func
def is_of_wheel(kind: int) -> bool:
    """Whether a row of a kind belongs to a wheel or ball."""
    return kind >= HEIGHT and kind <= ROLLING


@wp.func
def is_function(kind: int) -> bool:
    """Whether a row of a kind is a function of the pose or velocity."""
    if kind == FUNCTION:
        return True
    return kind == RATE_FUNCTION


@wp.func(inline=False)
def put_functions(t: Tables, s: Scratch, i: int, q: Matrix):
    """Store the functions of constraints and their derivatives at the poses in s. Sets the status of the instance if
    one has no value."""
    for f in range(t.constraint_functions.loop.shape[0]):
        loop = t.constraint_functions.loop[f]
        R_A, p_A = loop_pose(t, s, i, loop, 0)
        R_B, p_B = loop_pose(t, s, i, loop, 1)
        back = wp.transpose(R_B)
        put_function(t, i, f, back * R_A, back * (p_A - p_B), q, s.function)
        at = t.constraint_functions.at[f]
        total = wp.float64(0.0)
        for k in range(7 + joint_count(t, f)):
            total += s.function[i, at + k]
        if not wp.isfinite(total) and s.status[i] == 0:
            s.status[i] = STATUS_FUNCTION + wp.min(f, STATUS_SINGULAR - STATUS_FUNCTION - 1)


@wp.func
def row_residual(t: Tables, s: Scratch, g: LoopState, i: int, loop: int, row: int) -> wp.float64:
    """e of one row."""
    kind = t.loops.row_kind[row]
    a = t.loops.hinge[loop, 0]
    if kind == HINGE:
        return wp.dot(a, g.b) - wp.dot(a, t.loops.hinge[loop, 1])
    if kind == HEIGHT:
        return contact_height(g.b, a, g.p, t.loops.radius[loop])
    if kind == FUNCTION:
        return constraint_functions.value_of(t, s, i, t.loops.function[loop])
    if restricts_rate(kind):
        return so3.ZERO
    return wp.dot(t.loops.row_direction[row], g.epsilon)


@wp.func
def velocity_row(t: Tables, s: Scratch, g: LoopState, i: int, loop: int, row: int) -> vec6:
    """Row of P as a wrench in the axes of B."""
    kind = t.loops.row_kind[row]
    if is_function(kind):
        return constraint_functions.row_of(t, s, i, t.loops.function[loop])
    if kind == HINGE:
        return se3.join(wp.cross(g.b, t.loops.hinge[loop, 0]), vec3())
    if is_of_wheel(kind):
        d = se3.linear(t.loops.row_direction[row])
        return contact_row(g.b, t.loops.hinge[loop, 0], g.p, t.loops.radius[loop], d)
    return t.loops.row_direction[row]


@wp.func
def has_pose_row(t: Tables, row: int) -> bool:
    """Whether P of a row depends on the pose, so that D of (5) is not zero."""
    kind = t.loops.row_kind[row]
    return kind > 0 and kind < SKATE


@wp.func
def row_rate(t: Tables, s: Scratch, g: LoopState, i: int, loop: int, row: int, y: vec6, v: Matrix) -> vec6:
    """D y of (5) of a row that depends on the pose, with the part of the rates v of a function's joints."""
    if is_function(t.loops.row_kind[row]):
        return product_of(t, s, i, t.loops.function[loop], y, v, 0)
    n = t.loops.hinge[loop, 0]
    if t.loops.row_kind[row] == HINGE:
        return se3.join(wp.cross(wp.cross(se3.angular(y), g.b), n), vec3())
    c_dot = contact_rate(g.b, n, g.p, t.loops.radius[loop], y)
    return se3.join(wp.cross(c_dot, se3.linear(t.loops.row_direction[row])), vec3())


@wp.func
def onto_row(t: Tables, s: Scratch, g: LoopState, i: int, loop: int, row: int, y: vec6, v: Matrix) -> vec6:
    """Dᵀ y of (5) of such a row."""
    if is_function(t.loops.row_kind[row]):
        return product_of(t, s, i, t.loops.function[loop], y, v, 1)
    n = t.loops.hinge[loop, 0]
    w = se3.angular(y)
    if t.loops.row_kind[row] == HINGE:
        return se3.join(wp.cross(g.b, wp.cross(n, w)), vec3())
    e = wp.cross(se3.linear(t.loops.row_direction[row]), w)
    return onto_contact(g.b, n, g.p, t.loops.radius[loop], e)


@wp.func(inline=False)
def function_bend(t: Tables, s: Scratch, i: int, f: int, R: mat3, p: vec3, y: vec6, q: Matrix, v: Matrix) -> vec6:
    """Store T of function f at the pose (R, p) and the motion y of A in B; returns that of the pose."""
    put_function_bend(t, i, f, R, p, y, q, v, s.function)
    return constraint_functions.bend_of(t, s, i, f)


@wp.func
def onto_row_rate(
    t: Tables, s: Scratch, g: LoopState, i: int, loop: int, row: int, y: vec6, q: Matrix, v: Matrix
) -> vec6:
    """The derivative of y·D y by the pose for a constant y, of (5), of such a row. Stores that of a function."""
    if is_function(t.loops.row_kind[row]):
        return function_bend(t, s, i, t.loops.function[loop], g.R, g.p, y, q, v)
    n = t.loops.hinge[loop, 0]
    w = se3.angular(y)
    if t.loops.row_kind[row] == HINGE:
        return se3.join(wp.cross(g.b, wp.cross(w, wp.cross(w, n))), vec3())
    e = wp.cross(se3.linear(t.loops.row_direction[row]), w)
    return onto_contact_rate(g.b, n, g.p, t.loops.radius[loop], e, w)


@wp.func
def relative_motion(t: Tables, s: Scratch, g: LoopState, i: int, loop: int) -> vec6:
    """y of (2)."""
    eta_A, _acc = loop_motion(t, s, i, loop, 0, vec6())
    eta_B, _acc_B = loop_motion(t, s, i, loop, 1, vec6())
    return se3.Ad_inverse(g.R_B, g.p_B, eta_A - eta_B)


@wp.func
def residual_row(t: Tables, s: Scratch, g: LoopState, i: int, loop: int, row: int) -> vec6:
    """Row of E in (2): z = T⁻ᵀ Φ⊥ without its part along the motion of h, which follows from m = Ad_{exp ε}ᵀ z; zero
    for a row that restricts no position."""
    kind = t.loops.row_kind[row]
    if kind > 0 and kind < ROLLING:  # of a hinge, a function or a height
        return velocity_row(t, s, g, i, loop, row)
    if restricts_rate(kind):
        return vec6()
    z = se3.apply_transpose(g.T_A, g.T_B, t.loops.row_direction[row])
    m = se3.Ad_transpose(g.R_error, g.p_error, z)
    push = se3.linear(m)
    turn = se3.angular(m) - wp.cross(g.p_h, push)
    own = vec3()
    if t.loops.turns[loop] == 3:
        own = turn
    if t.loops.turns[loop] == 1:
        a = t.loops.axis[loop]
        own = (wp.dot(a, turn) + t.loops.pitch[loop] * wp.dot(a, push)) * g.k
    slid = t.loops.slide[loop] * push
    return z - se3.join(own + wp.cross(g.p, slid), slid)


@wp.func
def loop_wrench(t: Tables, s: Scratch, g: LoopState, i: int, loop: int, force: Matrix) -> vec6:
    """Pᵀ λ of a loop, in the axes of B."""
    f = vec6()
    for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
        f += force[i, row] * velocity_row(t, s, g, i, loop, row)
    return f


@wp.func
def check_disc(t: Tables, s: Scratch, g: LoopState, i: int, loop: int):
    """Set the status of the instance if a disc lies flat on its plane."""
    if t.loops.radius[loop] > so3.ZERO:
        z = wp.dot(t.loops.hinge[loop, 0], g.b)
        if so3.ONE - z * z < _FLAT and s.status[i] == 0:
            s.status[i] = STATUS_FLAT_DISC


@wp.func
def add_loop_wrenches(t: Tables, s: Scratch, i: int, q: Matrix, force: Matrix, gap: Matrix):
    """F −= W on A and F += W on B for all loops; their residuals are written to gap."""
    if may_have_loops():
        put_functions(t, s, i, q)
        for loop in range(t.loops.node.shape[0]):
            g = loop_state(t, s, i, loop)
            check_disc(t, s, g, i, loop)
            for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
                gap[i, row] = row_residual(t, s, g, i, loop, row)
            W = se3.Ad_dual(g.R_B, g.p_B, loop_wrench(t, s, g, i, loop, force))
            k = t.loops.node[loop, 0]
            if k >= 0:
                s.node[i, k].F = s.node[i, k].F - W
            k = t.loops.node[loop, 1]
            if k >= 0:
                s.node[i, k].F = s.node[i, k].F + W


@wp.func
def loop_residuals(t: Tables, s: Scratch, i: int, q: Matrix, gap: Matrix):
    """e of all constraint rows, from the poses in s, and of couplings."""
    coupling_residuals(t, s, i, q, gap)
    if may_have_loops():
        put_functions(t, s, i, q)
        for loop in range(t.loops.node.shape[0]):
            g = loop_state(t, s, i, loop)
            check_disc(t, s, g, i, loop)
            for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
                gap[i, row] = row_residual(t, s, g, i, loop, row)


@wp.func
def loop_rates(
    t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, a: Matrix, acc_base: vec6, rate: Matrix, acceleration: Matrix
):
    """P y = A v and P ẏ + Ṗ y = A a + Ȧ v of all constraint rows, from the motion in s, and of couplings."""
    coupling_rates(t, i, q, v, a, rate, acceleration)
    if may_have_loops():
        for loop in range(t.loops.node.shape[0]):
            g = loop_state(t, s, i, loop)
            eta_A, acc_A = loop_motion(t, s, i, loop, 0, acc_base)
            eta_B, acc_B = loop_motion(t, s, i, loop, 1, acc_base)
            across = eta_A - eta_B
            y = se3.Ad_inverse(g.R_B, g.p_B, across)
            y_dot = se3.Ad_inverse(g.R_B, g.p_B, acc_A - acc_B - se3.ad(eta_B, across))
            for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
                P = velocity_row(t, s, g, i, loop, row)
                rate[i, row] = wp.dot(P, y)
                acceleration[i, row] = wp.dot(P, y_dot)
                if has_pose_row(t, row):
                    acceleration[i, row] = acceleration[i, row] + wp.dot(row_rate(t, s, g, i, loop, row, y, v), y)
                if is_function(t.loops.row_kind[row]):
                    add_joint_rates(t, s, i, loop, row, y, v, a, rate, acceleration)


@wp.func
def add_joint_rates(
    t: Tables, s: Scratch, i: int, loop: int, row: int, y: vec6, v: Matrix, a: Matrix, rate: Matrix,
    acceleration: Matrix,
):  # fmt: skip
    """Add the parts of the joints of a function to P Y and P Ẏ + Y·D Y."""
    f = t.loops.function[loop]
    for k in range(joint_count(t, f)):
        P = entry_of(t, s, i, f, k)
        speed = joint_rate(t, i, f, k, v)
        change = P * joint_rate(t, i, f, k, a) + speed * number_of_product(t, i, f, 6 + k, y, v, 0, s.function)
        rate[i, row] = rate[i, row] + P * speed
        acceleration[i, row] = acceleration[i, row] + change


@wp.func
def wrench_stiffness(t: Tables, s: Scratch, g: LoopState, i: int, loop: int, force: Matrix):
    """H = adbar_W − U and U of a loop."""
    W = se3.Ad_dual(g.R_B, g.p_B, loop_wrench(t, s, g, i, loop, force))
    U = mat3()
    pull = mat3()
    for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
        n = g.R_B * t.loops.hinge[loop, 0]
        b = g.R_B * g.b
        if t.loops.row_kind[row] == HINGE:
            U = force[i, row] * so3.cross_columns(n, so3.hat(b))
        if is_of_wheel(t.loops.row_kind[row]):
            d = force[i, row] * (g.R_B * se3.linear(t.loops.row_direction[row]))
            turn = contact_turn(b, n, g.R_B * g.p + g.p_B, t.loops.radius[loop])
            U -= so3.cross_columns(d, turn)
            pull -= so3.hat(d)
    wide = se3.block(U, pull, mat3(), mat3())
    f = t.loops.function[loop]
    if f >= 0:
        size = force[i, t.loops.row_start[loop]]
        wide = size * constraint_functions.turned_slopes(t, i, f, g.R_B, g.p_B, s.function)
    return adbar_matrix(W) - wide, wide


@wp.func
def loop_coupling(t: Tables, s: Scratch, i: int, end: int, force: Matrix):
    """At end = 2 loop + side: the derivative of the wrench on the node of that side by the pose of the other node, and
    the number of the other node."""
    loop = end / 2
    g = loop_state(t, s, i, loop)
    on_A, on_B = wrench_stiffness(t, s, g, i, loop, force)
    if end % 2 == 0:
        return -on_A, t.loops.node[loop, 1]
    return on_B, t.loops.node[loop, 0]


@wp.func
def add_loop_stiffness(t: Tables, s: Scratch, i: int, force: Matrix, H: wp.array2d(dtype=mat6)):
    """Add to H the derivative of the wrench on the node of each side by its own pose."""
    if may_have_loops():
        for loop in range(t.loops.node.shape[0]):
            g = loop_state(t, s, i, loop)
            on_A, on_B = wrench_stiffness(t, s, g, i, loop, force)
            k = t.loops.node[loop, 0]
            if k >= 0:
                H[i, k] = H[i, k] + on_A
            k = t.loops.node[loop, 1]
            if k >= 0:
                H[i, k] = H[i, k] - on_B


@wp.func
def put_joint_entries(t: Tables, s: Scratch, i: int, width: int, of_residual: int, out: Matrix):
    """Set the entries of joints in the rows A of functions, or A_q if `of_residual`, zero on entry. Those of A_q are
    zero for velocities."""
    for f in range(t.constraint_functions.loop.shape[0]):
        if of_residual == 0 or not t.constraint_functions.is_rate[f]:
            first = t.loops.row_start[t.constraint_functions.loop[f]] * width
            for k in range(joint_count(t, f)):
                at = first + t.constraint_functions.v[t.constraint_functions.term_start[f] + k]
                out[i, at] = entry_of(t, s, i, f, k)


@wp.func
def put_joint_rates(t: Tables, s: Scratch, i: int, width: int, v: Matrix, factor: wp.float64, out: Matrix):
    """Add ∂(A v)/∂q of joints to rows of functions of velocities, times a factor."""
    for f in range(t.constraint_functions.loop.shape[0]):
        if t.constraint_functions.is_rate[f]:
            loop = t.constraint_functions.loop[f]
            g = loop_state(t, s, i, loop)
            y = relative_motion(t, s, g, i, loop)
            for k in range(joint_count(t, f)):
                j = t.constraint_functions.v[t.constraint_functions.term_start[f] + k]
                at = t.loops.row_start[loop] * width + j
                out[i, at] = out[i, at] + factor * number_of_product(t, i, f, 6 + k, y, v, 1, s.function)


@wp.func
def add_function_forces(t: Tables, s: Scratch, i: int, force: Matrix, tau: Matrix):
    """tau −= Aᵀ λ of the joints of functions."""
    if may_have_loops():
        for f in range(t.constraint_functions.loop.shape[0]):
            size = force[i, t.loops.row_start[t.constraint_functions.loop[f]]]
            for k in range(joint_count(t, f)):
                j = t.constraint_functions.v[t.constraint_functions.term_start[f] + k]
                tau[i, j] = tau[i, j] - size * entry_of(t, s, i, f, k)


@wp.func
def add_function_stiffness(t: Tables, s: Scratch, x: Columns, i: int, J: Matrix, force: Matrix, out: Matrix):
    """Rows of the joints of functions: out += ∂(−Aᵀ λ)/∂q, from path sums J."""
    if may_have_loops():
        for f in range(t.constraint_functions.loop.shape[0]):
            loop = t.constraint_functions.loop[f]
            size = -force[i, t.loops.row_start[loop]]
            for k in range(joint_count(t, f)):
                R_B, p_B = loop_pose(t, s, i, loop, 1)
                z = se3.Ad_dual(R_B, p_B, size * row_by_pose(t, s, i, f, k))
                at = t.constraint_functions.v[t.constraint_functions.term_start[f] + k] * x.width
                add_path_row(x, t.loops.node[loop, 0], i, z, J, at, out)
                add_path_row(x, t.loops.node[loop, 1], i, -z, J, at, out)
                for e in range(joint_count(t, f)):
                    j = at + t.constraint_functions.v[t.constraint_functions.term_start[f] + e]
                    out[i, j] = out[i, j] + size * slope(t, s, i, f, 6 + k, 6 + e)


@wp.func
def add_function_columns(t: Tables, s: Scratch, x: Columns, i: int, k: int, force: Matrix, W: Matrix):
    """Columns of the joints of functions: the subtree sum W of node k += the derivative of the wrenches on it."""
    for f in range(t.constraint_functions.loop.shape[0]):
        loop = t.constraint_functions.loop[f]
        size = wp.float64(0.0)
        if t.loops.node[loop, 0] == k:
            size -= force[i, t.loops.row_start[loop]]
        if t.loops.node[loop, 1] == k:
            size += force[i, t.loops.row_start[loop]]
        if size != so3.ZERO:
            R_B, p_B = loop_pose(t, s, i, loop, 1)
            for e in range(joint_count(t, f)):
                z = se3.Ad_dual(R_B, p_B, size * column_of(t, s, i, f, e))
                add_column(x, i, x.slot[k], t.constraint_functions.v[t.constraint_functions.term_start[f] + e], z, W)


@wp.func_native(native("add_covector"))
def add_covector(width: int, k: int, first: int, stop: int, i: int, y: vec6, X: Matrix, at: int, out: Matrix):
    """out[at + j] += yᵀ X_k on the blocks of columns first … stop − 1."""
    ...


@wp.func
def add_path_row(x: Columns, k: int, i: int, y: vec6, X: Matrix, at: int, out: Matrix):
    """out[at + j] += yᵀ X_k on the path of node k, with path sums X; no effect for the world (k < 0)."""
    if k >= 0:
        for e in range(x.path_start[k] / 2, x.path_start[k + 1] / 2):
            add_covector(x.width, k, x.path_range[2 * e], x.path_range[2 * e + 1], i, y, X, at, out)


@wp.func
def add_own_rows(t: Tables, x: Columns, node: int, i: int, y: vec6, S: Matrix, at: int, out: Matrix):
    """out[at + j] += yᵀ S on the columns of all nodes of the path to `node`."""
    k = node
    while k >= 0:
        if t.node[k].v_stop > t.node[k].v_start:
            add_covector(x.width, k, t.node[k].v_start, t.node[k].v_stop, i, y, S, at, out)
        k = t.node[k].parent
