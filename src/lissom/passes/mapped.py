"""Nodes whose relative pose g(q) is a general smooth function of their n coordinates, inside kernels.

Tables contain, at the node's q, the pose and the columns S_j = (g⁻¹ ∂g/∂q_j)^∨ in the child's frame with their first
and second derivatives (Maps). Those of a spline are computed here, and those of points that move on straight lines,
whose columns (0; slope_j) are constant. Functions of a user are native code that JAX has traced (tracing/native). All
others are filled by Python before a launch (launch/prepare). The tables depend on q only, so that v and a may change
inside a kernel:

    Ṡ_j = Σ_c ∂S_j/∂q_c v_c,   S̈_j = Σ_c ∂S_j/∂q_c a_c + Σ_ce ∂²S_j/∂q_c∂q_e v_c v_e                       (1)
    V = Σ S_j v_j,   A = Σ S_j a_j + Σ Ṡ_j v_j                                                            (2)

In the base frame, g now the pose of the node, with d/dt Ad_g X = Ad_g Ẋ + ad_η Ad_g X,

    S → Ad_g S,   Ṡ → Ad_g Ṡ + ad_η Ad_g S,   S̈ → Ad_g S̈ + 2 ad_η Ad_g Ṡ + (ad_a + ad_η²) Ad_g S            (3)
    R = Ṡ,   Q = S̈                                                                                       (4)

(4) holds for any g(q), since q̇ = v: a change δq displaces the parts beyond the node by ζ = S δq, and Ad_g δη_B = ζ̇.
At a fixed wrench f on the node in its own frame,

    ∂(S_jᵀ f)/∂q_c = fᵀ ∂S_j/∂q_c                                                                         (5)

The frame of a cross-section in finite elements has the axes R of n = b×d and b, (2) of bodies.material_frames, where b
and d are linear in the coordinates: b' and d' along a direction are constant. In the axes R, with β = Rᵀb/|b| and ν =
Rᵀn/|n| of a change, B and N those along the direction, and W the rate of the axes,

    S_j = (w_j; u_j),   w = (β₃, −ν₃, ν₂),   u = Rᵀ ∂p/∂q_j,   W = (B₃, −N₃, N₂)                            (6)
    β' = −W×β − B₂ β,   ν' = Rᵀ(b_j×d' + b'×d_j)/|n| − W×ν − N₁ ν,   u' = −W×u                             (7)
    B' = −W×B − B₂ B,   N' = 2 Rᵀ(b'×d')/|n| − W×N − N₁ N                                                  (8)
    β'' = −W'×β − W×β' − B₂ β' − B₂' β,   u'' = −W'×u − W×u'                                               (9)

and ν'' likewise. Only coordinates of nodes of the cells around the point have columns, so that memory and time do not
grow with the other coordinates of the body. Σ_c ∂S_j/∂q_c v_c is (7), and Σ_ce ∂²S_j/∂q_c∂q_e v_c v_e is (9), along v.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.types import mat3, served, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import columns
from lissom.passes.columns import Columns, DerivativeSums, Matrix, NewtonPoint, NewtonSums
from lissom.passes.scratch import Direction, Scratch, joint_side
from lissom.robot.joints import MotionKind

THREE, FOUR, FIVE, SIX = (wp.constant(wp.float64(x)) for x in (3.0, 4.0, 5.0, 6.0))
TWELVE, TWENTY, SIXTY = (wp.constant(wp.float64(x)) for x in (12.0, 20.0, 60.0))

native = native_functions("passes/mapped.h")


@wp.func_native(f"return {served('MAP')} && kind == {MotionKind.MAP.value};")
def is_mapped(kind: int) -> bool:
    """Whether a node's pose is a general function of its coordinates."""
    ...


@wp.func_native(native("follow_function"))
def follow_function(t: Tables, s: Scratch, i: int, m: int, q: Matrix, first: int):
    """Fill R, p, S and S_q of map m by its native function; its coordinates begin at `first` in q."""
    ...


@wp.func_native(native("curve_function"))
def curve_function(t: Tables, s: Scratch, i: int, m: int, v: Matrix, first: int):
    """Fill S_vv of map m by its native function, at the q of `follow_function`; its rates begin at `first` in v."""
    ...


@wp.func
def follow_spline(t: Tables, s: Scratch, i: int, m: int, x: wp.float64):
    """Fill the tables of map m from its spline: R = exp(w), S = (T w'; Rᵀ p') and their derivatives with respect to q,
    at q = x."""
    piece = t.maps.piece_start[m]
    for e in range(t.maps.piece_start[m] + 1, t.maps.piece_start[m + 1]):
        if t.maps.knot[e] <= x:
            piece = e
    d = x - t.maps.knot[piece]
    c0 = t.maps.coefficient[piece, 0]
    c1 = t.maps.coefficient[piece, 1]
    c2 = t.maps.coefficient[piece, 2]
    c3 = t.maps.coefficient[piece, 3]
    c4 = t.maps.coefficient[piece, 4]
    c5 = t.maps.coefficient[piece, 5]
    y0 = c0 + d * (c1 + d * (c2 + d * (c3 + d * (c4 + d * c5))))
    y1 = c1 + d * (so3.TWO * c2 + d * (THREE * c3 + d * (FOUR * c4 + d * (FIVE * c5))))
    y2 = so3.TWO * c2 + d * (SIX * c3 + d * (TWELVE * c4 + d * (TWENTY * c5)))
    y3 = SIX * c3 + d * (so3.TWO * TWELVE * c4 + d * (SIXTY * c5))
    w0 = se3.angular(y0)
    w1 = se3.angular(y1)
    w2 = se3.angular(y2)
    Omega = se3.join(w0, vec3())
    rate = se3.join(w1, vec3())
    c = so3.stumpff(wp.dot(w0, w0))
    R, _p = se3.exp(Omega, c)
    T0, _Q0 = se3.tangent(Omega, c)
    T1, _Q1 = se3.tangent_dot(Omega, rate, c)
    T2, _Q2 = se3.tangent_ddot(Omega, rate, se3.join(w2, vec3()), c)
    turn = T0 * w1
    turn_1 = T1 * w1 + T0 * w2
    turn_2 = T2 * w1 + so3.TWO * (T1 * w2) + T0 * se3.angular(y3)
    Rt = wp.transpose(R)
    u0 = Rt * se3.linear(y1)
    u1 = Rt * se3.linear(y2) - wp.cross(turn, u0)
    u2 = Rt * se3.linear(y3) - wp.cross(turn, Rt * se3.linear(y2)) - wp.cross(turn_1, u0) - wp.cross(turn, u1)
    s.maps.R[i, m] = R
    s.maps.p[i, m] = se3.linear(y0)
    s.maps.S[i, t.maps.column_start[m]] = se3.join(turn, u0)
    s.maps.S_q[i, t.maps.pair_start[m]] = se3.join(turn_1, u1)
    s.maps.S_qq[i, t.maps.triple_start[m]] = se3.join(turn_2, u2)


@wp.func
def follow_line(t: Tables, s: Scratch, i: int, k: int, m: int, q: Matrix):
    """Fill the tables of map m of node k: p = origin + Σ slope_j q_j, without rotation."""
    first = t.node[k].v_start + t.node[k].q_shift
    p = t.maps.origin[m]
    for e in range(t.maps.column_start[m], t.maps.column_start[m + 1]):
        p += q[i, first + t.maps.coordinate[e]] * t.maps.slope[e]
        s.maps.S[i, e] = se3.join(vec3(), t.maps.slope[e])
    s.maps.R[i, m] = so3.diagonal_plus(so3.ONE, vec3())
    s.maps.p[i, m] = p


@wp.func
def area_axes(b: vec3, d: vec3) -> mat3:
    """R of a cross-section."""
    first = wp.normalize(wp.cross(b, d))
    second = wp.normalize(b)
    third = wp.cross(first, second)
    return mat3(
        first[0], second[0], third[0], first[1], second[1], third[1], first[2], second[2], third[2]
    )  # fmt: skip


@wp.func
def follow_area(t: Tables, s: Scratch, i: int, k: int, m: int, q: Matrix):
    """Fill the tables of map m of node k, by (6)."""
    first = t.node[k].v_start + t.node[k].q_shift
    p = t.maps.origin[m]
    b = vec3(so3.ZERO, so3.ONE, so3.ZERO)
    d = vec3(so3.ZERO, so3.ZERO, so3.ONE)
    for e in range(t.maps.column_start[m], t.maps.column_start[m + 1]):
        x = q[i, first + t.maps.coordinate[e]]
        p += x * t.maps.slope[e]
        b += x * t.maps.slope_b[e]
        d += x * t.maps.slope_d[e]
    R = area_axes(b, d)
    s.maps.R[i, m] = R
    s.maps.p[i, m] = p
    s.maps.sides[i, m] = se3.join(b, d)
    Rt = wp.transpose(R)
    over_b = so3.ONE / wp.length(b)
    over_n = so3.ONE / wp.length(wp.cross(b, d))
    for e in range(t.maps.column_start[m], t.maps.column_start[m + 1]):
        beta = Rt * t.maps.slope_b[e] * over_b
        nu = Rt * (wp.cross(t.maps.slope_b[e], d) + wp.cross(b, t.maps.slope_d[e])) * over_n
        s.maps.S[i, e] = se3.join(vec3(beta[2], -nu[2], nu[1]), Rt * t.maps.slope[e])


@wp.func
def is_area(t: Tables, k: int) -> bool:
    """Whether the pose of a mapped node is that of a cross-section in finite elements."""
    return t.maps.is_area[t.node[k].map] != 0


@wp.func
def side_rates(t: Tables, k: int, i: int, v: Matrix) -> vec6:
    """b' and d' of a cross-section along v; zero for other maps."""
    b1 = vec3()
    d1 = vec3()
    if is_area(t, k):
        m = t.node[k].map
        for e in range(t.maps.column_start[m], t.maps.column_start[m + 1]):
            x = v[i, t.node[k].v_start + t.maps.coordinate[e]]
            b1 += x * t.maps.slope_b[e]
            d1 += x * t.maps.slope_d[e]
    return se3.join(b1, d1)


@wp.func
def area_slope(t: Tables, s: Scratch, i: int, m: int, e: int, along: vec6, is_second: bool) -> vec6:
    """The first derivative (7) of column e of a cross-section along b' and d', or the second derivative (9)."""
    b = se3.angular(s.maps.sides[i, m])
    d = se3.linear(s.maps.sides[i, m])
    b1 = se3.angular(along)
    d1 = se3.linear(along)
    Rt = wp.transpose(s.maps.R[i, m])
    over_b = so3.ONE / wp.length(b)
    over_n = so3.ONE / wp.length(wp.cross(b, d))
    B = Rt * b1 * over_b
    N = Rt * (wp.cross(b1, d) + wp.cross(b, d1)) * over_n
    W = vec3(B[2], -N[2], N[1])
    beta = Rt * t.maps.slope_b[e] * over_b
    nu = Rt * (wp.cross(t.maps.slope_b[e], d) + wp.cross(b, t.maps.slope_d[e])) * over_n
    u = Rt * t.maps.slope[e]
    bend = Rt * (wp.cross(t.maps.slope_b[e], d1) + wp.cross(b1, t.maps.slope_d[e])) * over_n
    beta_1 = -wp.cross(W, beta) - B[1] * beta
    nu_1 = bend - wp.cross(W, nu) - N[0] * nu
    u_1 = -wp.cross(W, u)
    if not is_second:
        return se3.join(vec3(beta_1[2], -nu_1[2], nu_1[1]), u_1)
    B_1 = -wp.cross(W, B) - B[1] * B
    N_1 = so3.TWO * over_n * (Rt * wp.cross(b1, d1)) - wp.cross(W, N) - N[0] * N
    W_1 = vec3(B_1[2], -N_1[2], N_1[1])
    beta_2 = -wp.cross(W_1, beta) - wp.cross(W, beta_1) - B[1] * beta_1 - B_1[1] * beta
    bend_1 = -wp.cross(W, bend) - N[0] * bend
    nu_2 = bend_1 - wp.cross(W_1, nu) - wp.cross(W, nu_1) - N[0] * nu_1 - N_1[0] * nu
    return se3.join(vec3(beta_2[2], -nu_2[2], nu_2[1]), -wp.cross(W_1, u) - wp.cross(W, u_1))


@wp.func
def curve(t: Tables, s: Scratch, i: int, k: int, v: Matrix):
    """Fill S_vv of the node, if it has a native function. Splines have S_qq since `place`, functions in Python since
    before the launch; straight lines need neither."""
    if t.maps.curve_function[t.node[k].map] != wp.uint64(0):
        curve_function(t, s, i, t.node[k].map, v, t.node[k].v_start)


@wp.func
def count(t: Tables, k: int) -> int:
    """Number of the columns of a node."""
    return t.maps.column_start[t.node[k].map + 1] - t.maps.column_start[t.node[k].map]


@wp.func
def at_column(t: Tables, k: int, j: int) -> int:
    """The coordinate that moves the node along its column j."""
    return t.node[k].v_start + t.maps.coordinate[t.maps.column_start[t.node[k].map] + j]


@wp.func
def column(t: Tables, s: Scratch, i: int, k: int, j: int) -> vec6:
    """S_j."""
    return s.maps.S[i, t.maps.column_start[t.node[k].map] + j]


@wp.func
def slope(t: Tables, s: Scratch, i: int, k: int, j: int, c: int) -> vec6:
    """∂S_j/∂q_c."""
    m = t.node[k].map
    at = t.maps.column_start[m]
    if t.maps.is_linear[m] != 0:
        return vec6()
    if is_area(t, k):
        return area_slope(t, s, i, m, at + j, se3.join(t.maps.slope_b[at + c], t.maps.slope_d[at + c]), False)
    return s.maps.S_q[i, t.maps.pair_start[m] + count(t, k) * j + c]


@wp.func
def rate_column(t: Tables, s: Scratch, i: int, k: int, j: int, v: Matrix, sides: vec6) -> vec6:
    """Ṡ_j of (1); sides: the result of `side_rates` for v."""
    m = t.node[k].map
    out = vec6()
    if t.maps.is_linear[m] != 0:
        return out
    if is_area(t, k):
        return area_slope(t, s, i, m, t.maps.column_start[m] + j, sides, False)
    for c in range(count(t, k)):
        out += slope(t, s, i, k, j, c) * v[i, at_column(t, k, c)]
    return out


@wp.func
def second_column(t: Tables, s: Scratch, i: int, k: int, j: int, v: Matrix, a: Matrix, sides: vec6, more: vec6) -> vec6:
    """S̈_j of (1), after `curve`; sides, more: the results of `side_rates` for v and a."""
    m = t.node[k].map
    first = t.node[k].v_start
    n = count(t, k)
    out = vec6()
    if t.maps.is_linear[m] != 0:
        return out
    if is_area(t, k):
        e = t.maps.column_start[m] + j
        return area_slope(t, s, i, m, e, sides, True) + area_slope(t, s, i, m, e, more, False)
    at = t.maps.triple_start[m] + n * n * j
    is_native = t.maps.curve_function[m] != wp.uint64(0)
    if is_native:
        out += s.maps.S_vv[i, t.maps.column_start[m] + j]
    for c in range(n):
        out += slope(t, s, i, k, j, c) * a[i, first + c]
        for e in range(wp.where(is_native, 0, n)):
            out += s.maps.S_qq[i, at + n * c + e] * (v[i, first + c] * v[i, first + e])
    return out


@wp.func(inline=False)
def place(t: Tables, s: Scratch, i: int, k: int, q: Matrix):
    """Pose of the node; fills the tables of a spline, a straight line, a cross-section or a native function."""
    m = t.node[k].map
    if t.maps.piece_start[m + 1] > t.maps.piece_start[m]:
        follow_spline(t, s, i, m, q[i, t.node[k].v_start + t.node[k].q_shift])
    elif t.maps.is_linear[m] != 0:
        follow_line(t, s, i, k, m, q)
    elif is_area(t, k):
        follow_area(t, s, i, k, m, q)
    elif t.maps.place_function[m] != wp.uint64(0):
        follow_function(t, s, i, m, q, t.node[k].v_start + t.node[k].q_shift)
    R0, p0 = joint_side(t, s, i, k)
    s.node[i, k].R = R0 * s.maps.R[i, m]
    s.node[i, k].p = R0 * s.maps.p[i, m] + p0


@wp.func(inline=False)
def rate(t: Tables, s: Scratch, i: int, k: int, q: Matrix, v: Matrix, a: Matrix):
    """Pose of the node; Ad_g V and Ad_g A of (2)."""
    place(t, s, i, k, q)
    V = vec6()
    A = vec6()
    sides = side_rates(t, k, i, v)
    for j in range(count(t, k)):
        c = at_column(t, k, j)
        S = column(t, s, i, k, j)
        V += S * v[i, c]
        A += S * a[i, c] + rate_column(t, s, i, k, j, v, sides) * v[i, c]
    R = s.node[i, k].R
    p = s.node[i, k].p
    return se3.Ad(R, p, V), se3.Ad(R, p, A)


@wp.func(inline=False)
def motion_columns(t: Tables, s: Scratch, x: Columns, i: int, k: int, S: Matrix):
    """S of (3)."""
    for j in range(count(t, k)):
        y = se3.Ad(s.node[i, k].R, s.node[i, k].p, column(t, s, i, k, j))
        columns.put_column(x, i, k, at_column(t, k, j), y, S)


@wp.func(inline=False)
def put_block_columns(t: Tables, s: Scratch, width: int, i: int, k: int, S: Matrix):
    """S of (3) in rows of `width` that begin with the node's first coordinate."""
    for j in range(count(t, k)):
        y = se3.Ad(s.node[i, k].R, s.node[i, k].p, column(t, s, i, k, j))
        for r in range(6):
            S[i, (6 * k + r) * width + at_column(t, k, j) - t.node[k].v_start] = y[r]


@wp.func(inline=False)
def rate_columns(t: Tables, s: Scratch, x: Columns, i: int, k: int, v: Matrix, S_dot: Matrix):
    """Ṡ of (3)."""
    sides = side_rates(t, k, i, v)
    for j in range(count(t, k)):
        y = se3.Ad(s.node[i, k].R, s.node[i, k].p, column(t, s, i, k, j))
        turning = se3.Ad(s.node[i, k].R, s.node[i, k].p, rate_column(t, s, i, k, j, v, sides))
        columns.put_column(x, i, k, at_column(t, k, j), turning + se3.ad(s.node[i, k].eta, y), S_dot)


@wp.func
def base_columns(t: Tables, s: Scratch, i: int, k: int, j: int, v: Matrix, a: Matrix, sides: vec6, more: vec6):
    """S_j, Ṡ_j and S̈_j of (3); sides, more: the results of `side_rates` for v and a."""
    R = s.node[i, k].R
    p = s.node[i, k].p
    eta = s.node[i, k].eta
    y0 = se3.Ad(R, p, column(t, s, i, k, j))
    y1 = se3.Ad(R, p, rate_column(t, s, i, k, j, v, sides))
    y2 = se3.Ad(R, p, second_column(t, s, i, k, j, v, a, sides, more))
    turned = se3.ad(eta, y0)
    return y0, y1 + turned, y2 + se3.ad(eta, so3.TWO * y1 + turned) + se3.ad(s.node[i, k].acc, y0)


@wp.func(inline=False)
def derivative_columns(
    t: Tables, s: Scratch, x: Columns, i: int, k: int, v: Matrix, a: Matrix, sums: DerivativeSums
):  # fmt: skip
    """Columns S, and the path sums with S, R, Q and E = Ṡ + R."""
    curve(t, s, i, k, v)
    parent = t.node[k].parent
    columns.copy_path(x, parent, i, k, sums.J)
    columns.copy_path(x, parent, i, k, sums.J_R)
    columns.copy_path(x, parent, i, k, sums.J_Q)
    columns.copy_path(x, parent, i, k, sums.J_E)
    sides = side_rates(t, k, i, v)
    more = side_rates(t, k, i, a)
    for j in range(count(t, k)):
        c = at_column(t, k, j)
        y0, y1, y2 = base_columns(t, s, i, k, j, v, a, sides, more)
        columns.put_column(x, i, k, c, y0, sums.S)
        columns.add_column(x, i, k, c, y0, sums.J)
        columns.add_column(x, i, k, c, y1, sums.J_R)
        columns.add_column(x, i, k, c, y2, sums.J_Q)
        columns.add_column(x, i, k, c, so3.TWO * y1, sums.J_E)


@wp.func(inline=False)
def newton_columns(
    t: Tables, s: Scratch, x: Columns, i: int, k: int, parent: int, point: NewtonPoint, sums: NewtonSums
):  # fmt: skip
    """Columns S, and the path sums with S, P = Q + 2 c₁ Ṡ + c₀ S and R + c₁ S."""
    curve(t, s, i, k, point.v)
    c0 = point.c0
    c1 = point.c1
    columns.copy_path(x, parent, i, k, sums.J)
    columns.copy_path(x, parent, i, k, sums.J_P)
    columns.copy_path(x, parent, i, k, sums.J_R)
    sides = side_rates(t, k, i, point.v)
    more = side_rates(t, k, i, point.a)
    for j in range(count(t, k)):
        c = at_column(t, k, j)
        y0, y1, y2 = base_columns(t, s, i, k, j, point.v, point.a, sides, more)
        columns.put_column(x, i, k, c, y0, sums.S)
        columns.add_column(x, i, k, c, y0, sums.J)
        columns.add_column(x, i, k, c, y2 + (so3.TWO * c1) * y1 + c0 * y0, sums.J_P)
        columns.add_column(x, i, k, c, y1 + c1 * y0, sums.J_R)


@wp.func(inline=False)
def project(t: Tables, s: Scratch, i: int, k: int, f: vec6, tau: Matrix):
    """tau += Sᵀ f, f the wrench on the node in its own frame."""
    for j in range(count(t, k)):
        c = at_column(t, k, j)
        tau[i, c] = tau[i, c] + wp.dot(column(t, s, i, k, j), f)


@wp.func(inline=False)
def local_term(t: Tables, s: Scratch, x: Columns, i: int, k: int, f: vec6, dq: Matrix):
    """dq += (5)."""
    n = count(t, k)
    for j in range(n):
        for c in range(n):
            at = at_column(t, k, j) * x.width + at_column(t, k, c)
            dq[i, at] = dq[i, at] + wp.dot(slope(t, s, i, k, j, c), f)


@wp.func(inline=False)
def change(t: Tables, s: Scratch, d: Direction, i: int, k: int, v: Matrix, a: Matrix):
    """The terms of the node in x, w and z of inverse_dynamics_derivatives: S dq, Ṡ dq + S dv, S̈ dq + 2 Ṡ dv + S da."""
    curve(t, s, i, k, v)
    e = vec6()
    w = vec6()
    z = vec6()
    sides = side_rates(t, k, i, v)
    more = side_rates(t, k, i, a)
    for j in range(count(t, k)):
        c = at_column(t, k, j)
        y0, y1, y2 = base_columns(t, s, i, k, j, v, a, sides, more)
        e += d.dq[i, c] * y0
        w += d.dq[i, c] * y1 + d.dv[i, c] * y0
        z += d.dq[i, c] * y2 + (so3.TWO * d.dv[i, c]) * y1 + d.da[i, c] * y0
    return e, w, z


@wp.func(inline=False)
def project_change(t: Tables, s: Scratch, d: Direction, i: int, k: int, f: vec6, df: vec6, tau: Matrix):
    """tau += the change of Sᵀ f, where f changes by df."""
    sides = side_rates(t, k, i, d.dq)
    for j in range(count(t, k)):
        c = at_column(t, k, j)
        y = wp.dot(column(t, s, i, k, j), df) + wp.dot(rate_column(t, s, i, k, j, d.dq, sides), f)
        tau[i, c] = tau[i, c] + y
