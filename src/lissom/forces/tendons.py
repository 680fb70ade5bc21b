"""Actuation by channels: tendons, chambers, controlled wrenches and pulls inside deformable bodies, inside kernels.

A channel is a tendon, a chamber or a wrench. Inputs determine the magnitude of each, s.channel.size: a tension, a
pressure, the size of a wrench, or a length pulled in.

    L(q) = Σ w |𝒯| + Σ |x_b − x_a|,   𝒯 = ε + κ × d + d′                                                 (1)
    B = −(∂L/∂q)ᵀ:  inside a rod  −Σ w Φᵀ (d × t; t),  t = 𝒯/|𝒯|;  a straight piece pulls its two ends         (2)

A chamber has −wA in place of w, and t = x if its pressure acts normal to the section. The derivatives are

    inside a rod:   ∂(B u)/∂q = −Σ w f/|𝒯| Φᵀ [d^; 1] (1 − ttᵀ) [−d^, 1] Φ                                 (3)
    straight piece: the force f on its end at x_a changes by (f/l) (1 − nnᵀ)(δx_b − δx_a)                  (4)

A piece that runs round a shape on node w has the length l of forces/wrapping, with derivatives with respect to its ends
in the axes of the shape. With T the tension, f_a = −T ∂l/∂a acts on a, f_b on b, and −f_a − f_b at these points on w.

From (4) the recursion needs the change of −F_ext relative to a wrench that moves along with its node:

    H_a = [x_a^; 1] (K [−x_a^, 1] − f^ [1, 0]) = [x_a^; 1] K [−x_b^, 1],   K = (f/l)(1 − nnᵀ)               (5)

The derivatives of the wrenches on both nodes are contact (9) and (10), with H_a for K. A wrench (m; f) at x with fixed
direction in the world has

    H = −[[x^ f^ + m^, 0], [f^, 0]],   a follower wrench has H = 0                                         (6)

For a piece round a shape let δF_a = P α + Q β, δF_b = R α + S β with α = δ_a − δ_w, β = δ_b − δ_w, where

    P = [x_a^; 1] (T l_aa [−x_a^, 1] − f_a^ [1, 0]),   Q = [x_a^; 1] T l_ab [−x_b^, 1],   S and R alike       (10)

These are couplings of three pairs, in the form of contact (9) and (10): of a and w with K = P + Q and W̄ = W̄_a + Q − R,
of b and w with K = R + S and W̄ = W̄_b + R − Q, and of a and b with K = −Q and W̄ = R − Q.

An elastic tendon of length L(q) along its path, stiffness k and slack length L₀, of which a length u is pulled in, has
the tension

    T = max(0, k (L − L₀ + u))                                                                            (7)

With b = −(∂L/∂q)ᵀ it adds −b T to the residual ID − B u, and to the derivative of that with respect to q

    −T ∂b/∂q + k b bᵀ,   the second term if it is taut                                                    (8)

A tendon of exactly the slack length, to rounding, counts as taut. Elastic tendons have no energy here: their energy is
work of their inputs.

A pull is the force of a tendon or chamber inside a deformable body. Its generalised force per unit B, its wrench w on
the frame, which is a follower wrench, and their derivatives with respect to θ are in s.pulls: by the native functions
of passes/pulls, or filled before a launch by the equations of bodies.pulls. In

    r = ID(q, v, a) − B u,   F of the frame has the term −u w with the derivative −u ∂w/∂θ, and ∂r/∂θ −u ∂B/∂θ  (9)

Source: SoRoSim 2022 eqs. (23), (29); Mathew 2025 (D60)-(D63), with the opposite sign of u.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.contact import SHORT
from lissom.forces.term import SPRING_NUMBERS, STIFFNESS, TAUT_FROM, TENDON, Term, couple_nodes, put_spring
from lissom.forces.wrapping import PathLength, path_round
from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.se3 import adbar_matrix
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import kinds, pulls
from lissom.passes.columns import Columns, Matrix, add_point_block
from lissom.passes.features import is_rigid_with_contacts, may_have_elastic_tendons, may_have_straight_tendons
from lissom.passes.interval import project_at, strain_at
from lissom.passes.scratch import INPUTS, Scratch
from lissom.passes.traversal import origin_between, origin_of, project

native = native_functions("passes/linear_algebra.h")

SLACK_TOLERANCE = 1e-12  # relative to the slack length: a tendon that is shorter by less counts as taut
TOLERANCE_OF_SLACK = wp.constant(wp.float64(SLACK_TOLERANCE))
SMALLEST_TENSION = wp.constant(wp.float64(1e-300))  # of a taut tendon, so that > 0 means taut


@wp.func
def channel_sizes(t: Tables, s: Scratch, i: int, u: Matrix):
    """Fill s.channel.size from the inputs u: tensions, pressures, sizes of wrenches, lengths pulled in, and inputs of
    users' actuators and forces."""
    for c in range(s.channel.size.shape[1]):
        total = wp.float64(0.0)
        for j in range(u.shape[1]):
            total += t.channels.gain[c, j] * u[i, j]
        s.channel.size[i, c] = total


@wp.func
def path_tangent(t: Tables, xi: vec6, e: int):
    """Direction t of (2) at row e of the path table, and |𝒯| of (1); x and the x-component of 𝒯 for a pressure that
    acts normal to the section."""
    d = t.paths.offset[e]
    T = se3.linear(xi) + wp.cross(se3.angular(xi), d) + t.paths.slope[e]
    if t.paths.is_normal[e] != 0:
        return vec3(so3.ONE, so3.ZERO, so3.ZERO), T[0]
    stretch = wp.length(T)
    return T / stretch, stretch


@wp.func
def add_path_forces(t: Tables, i: int, q: Matrix, size: Matrix, sign: wp.float64, tau: Matrix):
    """tau += sign · (generalised force of the paths inside rods), for channels of magnitudes size[i, c]."""
    for k in range(t.points.xi.shape[0]):
        xi = t.points.xi[k] + strain_at(
            t.points.phi, t.points.run_start[k], t.points.run_v[k], i, t.points.q_shift[k], q
        )
        y = vec6()
        for e in range(t.points.path_start[k], t.points.path_start[k + 1]):
            direction, _stretch = path_tangent(t, xi, e)
            f = (sign * t.paths.weight[e] * size[i, t.paths.channel[e]]) * direction
            y += se3.join(wp.cross(t.paths.offset[e], f), f)
        project_at(t.points.phi, t.points.run_start[k], t.points.run_v[k], i, 0, y, tau)


@wp.func
def segment_end(t: Tables, s: Scratch, i: int, j: int, side: int) -> vec3:
    """Position of one end of straight piece j in the base frame."""
    k = t.segments.node[j, side]
    x = t.segments.position[j, side]
    if k < 0:
        return x - origin_of(t, s, i, t.segments.node[j, 1 - side])
    return s.node[i, k].R * x + s.node[i, k].p


@wp.func
def add_segment_wrench(t: Tables, s: Scratch, i: int, j: int, tension: wp.float64):
    """Subtract from F the wrenches of straight piece j, which pulls each of its ends towards the other."""
    a = segment_end(t, s, i, j, 0)
    b = segment_end(t, s, i, j, 1)
    f = (tension / wp.max(wp.length(b - a), SHORT)) * (b - a)
    k = t.segments.node[j, 0]
    if k >= 0:
        s.node[i, k].F = s.node[i, k].F - se3.join(wp.cross(a, f), f)
    k = t.segments.node[j, 1]
    if k >= 0:
        s.node[i, k].F = s.node[i, k].F + se3.join(wp.cross(b, f), f)


@wp.struct
class WrappedPiece:
    """A piece round a shape in the base frame: its ends, the rotation of the shape, and its length with derivatives in
    the axes of the shape."""

    a: vec3
    b: vec3
    R: mat3
    path: PathLength


@wp.func
def placed_point(s: Scratch, i: int, k: int, x: vec3, origin: vec3) -> vec3:
    """A point of node k, or of the world, in the base frame."""
    if k < 0:
        return x - origin
    return s.node[i, k].R * x + s.node[i, k].p


@wp.func
def wrapped_piece(t: Tables, s: Scratch, i: int, j: int) -> WrappedPiece:
    """Piece j, which runs round a shape."""
    w = t.segments.wrap[j]
    a = t.segments.node[j, 0]
    b = t.segments.node[j, 1]
    k = t.segments.wrap_node[w]
    origin = origin_between(t, s, i, a, b)
    if a < 0 and b < 0:
        origin = origin_of(t, s, i, k)
    x = WrappedPiece()
    x.a = placed_point(s, i, a, t.segments.position[j, 0], origin)
    x.b = placed_point(s, i, b, t.segments.position[j, 1], origin)
    x.R = t.segments.wrap_R[w]
    centre = placed_point(s, i, k, t.segments.wrap_p[w], origin)
    if k >= 0:
        x.R = s.node[i, k].R * x.R
    inward = wp.transpose(x.R)
    x.path = path_round(
        inward * (x.a - centre), inward * (x.b - centre), t.segments.wrap_radius[w], t.segments.wrap_side[w],
        t.segments.wrap_has_side[w], t.segments.wrap_is_sphere[w],
    )  # fmt: skip
    return x


@wp.func(inline=False)
def add_wrapped_wrench(t: Tables, s: Scratch, i: int, j: int, tension: wp.float64):
    """Subtract from F the wrenches of piece j round a shape."""
    x = wrapped_piece(t, s, i, j)
    f = -tension * (x.R * x.path.by_a)
    g = -tension * (x.R * x.path.by_b)
    on_a = se3.join(wp.cross(x.a, f), f)
    on_b = se3.join(wp.cross(x.b, g), g)
    k = t.segments.node[j, 0]
    if k >= 0:
        s.node[i, k].F = s.node[i, k].F - on_a
    k = t.segments.node[j, 1]
    if k >= 0:
        s.node[i, k].F = s.node[i, k].F - on_b
    k = t.segments.wrap_node[t.segments.wrap[j]]
    if k >= 0:
        s.node[i, k].F = s.node[i, k].F + on_a + on_b


@wp.func
def couple_pair(s: Scratch, i: int, a: int, b: int, K: mat6, bar: mat6, H: wp.array2d(dtype=mat6)):
    """Add K and K − W̄ to H of nodes a and b, and list their coupling."""
    if a >= 0:
        H[i, a] = H[i, a] + K
    if b >= 0:
        H[i, b] = H[i, b] + K - bar
    couple_nodes(s, i, a, b, K, mat6(), bar, 0)


@wp.func
def at_points(x: vec3, K: mat3, y: vec3) -> mat6:
    """[x^; 1] K [−y^, 1]: derivative of the wrench of a force at x by the position of y."""
    left = -(K * so3.hat(y))
    return se3.block(so3.cross_columns(x, left), so3.cross_columns(x, K), left, K)


@wp.func
def wrapped_response(x: WrappedPiece, T: wp.float64):
    """P, Q, R, S of (10) for the tension T, and the wrenches on the ends a and b."""
    f = -T * (x.R * x.path.by_a)
    g = -T * (x.R * x.path.by_b)
    turn = wp.transpose(x.R)
    cross = T * (x.R * x.path.ab * turn)
    P = at_point(x.a, T * (x.R * x.path.aa * turn), -so3.hat(f))
    S = at_point(x.b, T * (x.R * x.path.bb * turn), -so3.hat(g))
    Q = at_points(x.a, cross, x.b)
    R = at_points(x.b, wp.transpose(cross), x.a)
    return P, Q, R, S, se3.join(wp.cross(x.a, f), f), se3.join(wp.cross(x.b, g), g)


@wp.func(inline=False)
def respond_to_wrapped(t: Tables, s: Scratch, i: int, j: int, tension: wp.float64, H: wp.array2d(dtype=mat6)):
    """Add the derivatives (10) of piece j round a shape to H of its three nodes, and list their couplings."""
    x = wrapped_piece(t, s, i, j)
    P, Q, R, S, on_a, on_b = wrapped_response(x, tension)
    bar_a = adbar_matrix(on_a)
    bar_b = adbar_matrix(on_b)
    a = t.segments.node[j, 0]
    b = t.segments.node[j, 1]
    w = t.segments.wrap_node[t.segments.wrap[j]]
    couple_pair(s, i, a, w, P + Q, bar_a + Q - R, H)
    couple_pair(s, i, b, w, R + S, bar_b + R - Q, H)
    couple_pair(s, i, a, b, -Q, R - Q, H)


@wp.func
def piece_length(t: Tables, s: Scratch, i: int, j: int) -> wp.float64:
    """Length of piece j."""
    if t.segments.wrap[j] >= 0:
        x = wrapped_piece(t, s, i, j)
        return x.path.length
    return wp.length(segment_end(t, s, i, j, 1) - segment_end(t, s, i, j, 0))


@wp.func
def add_piece_wrench(t: Tables, s: Scratch, i: int, j: int, tension: wp.float64):
    """Subtract from F the wrenches of piece j."""
    if t.segments.wrap[j] >= 0:
        add_wrapped_wrench(t, s, i, j, tension)
    else:
        add_segment_wrench(t, s, i, j, tension)


@wp.func(inline=False)
def path_length(t: Tables, s: Scratch, i: int, c: int, q: Matrix) -> wp.float64:
    """L of (1) of tendon c, with its length inside deformable bodies, from the poses in s; −V for a chamber."""
    total = wp.float64(0.0)
    for k in range(t.points.xi.shape[0]):
        for e in range(t.points.path_start[k], t.points.path_start[k + 1]):
            if t.paths.channel[e] == c:
                phi_q = strain_at(t.points.phi, t.points.run_start[k], t.points.run_v[k], i, t.points.q_shift[k], q)
                _direction, stretch = path_tangent(t, t.points.xi[k] + phi_q, e)
                total -= t.paths.weight[e] * stretch
    if may_have_straight_tendons():
        for j in range(t.segments.channel.shape[0]):
            if t.segments.channel[j] == c:
                total += piece_length(t, s, i, j)
    if t.pulls.channel.shape[0] > 0:
        pulls.evaluate(t, s, i)
        for e in range(t.pulls.channel.shape[0]):
            if t.pulls.channel[e] == c:
                total -= s.pulls.work[i, e]
    return total


@wp.func
def input_wrench(t: Tables, s: Scratch, i: int, j: int):
    """Moment and force of controlled wrench j, and its point of application, in the base frame."""
    k = t.wrenches.node[j]
    size = s.channel.size[i, t.wrenches.channel[j]]
    m = size * se3.angular(t.wrenches.unit[j])
    f = size * se3.linear(t.wrenches.unit[j])
    if t.wrenches.is_body[j] != 0:
        m = s.node[i, k].R * m
        f = s.node[i, k].R * f
    return m, f, s.node[i, k].p + s.node[i, k].R * t.wrenches.position[j]


@wp.func
def add_channel_wrenches(t: Tables, s: Scratch, i: int, sign: wp.float64):
    """F −= sign · (wrenches of the straight pieces of tendons, and controlled wrenches)."""
    if may_have_straight_tendons():
        for j in range(t.segments.channel.shape[0]):
            add_piece_wrench(t, s, i, j, sign * s.channel.size[i, t.segments.channel[j]])
    for j in range(t.wrenches.channel.shape[0]):
        m, f, x = input_wrench(t, s, i, j)
        k = t.wrenches.node[j]
        s.node[i, k].F = s.node[i, k].F - sign * se3.join(m + wp.cross(x, f), f)


@wp.func
def at_point(x: vec3, K: mat3, C: mat3) -> mat6:
    """[x^; 1] (K [−x^, 1] + C [1, 0]): derivative of the wrench about the origin of a force at x, whose derivatives are
    K by the position of x and C by rotation."""
    left = C - K * so3.hat(x)
    return se3.block(so3.cross_columns(x, left), so3.cross_columns(x, K), left, K)


@wp.func
def add_path_derivatives(t: Tables, x: Columns, i: int, q: Matrix, size: Matrix, by_q: wp.float64, dq: Matrix):
    """dq −= by_q ∂(B u)/∂q of the paths inside rods, (3)."""
    for k in range(t.points.xi.shape[0]):
        xi = t.points.xi[k] + strain_at(
            t.points.phi, t.points.run_start[k], t.points.run_v[k], i, t.points.q_shift[k], q
        )
        H = mat6()
        for e in range(t.points.path_start[k], t.points.path_start[k + 1]):
            if t.paths.is_normal[e] == 0:
                n, stretch = path_tangent(t, xi, e)
                f = by_q * t.paths.weight[e] * size[i, t.paths.channel[e]] / stretch
                K = so3.quadratic(f, vec3(), -f * n, n)
                H -= at_point(t.paths.offset[e], K, mat3())
        add_point_block(x, i, t.n_nodes + k, H, dq)


@wp.func
def straight_response(t: Tables, s: Scratch, i: int, j: int, tension: wp.float64):
    """H_a of (5) of straight piece j, and the wrench on its end a."""
    x_a = segment_end(t, s, i, j, 0)
    x_b = segment_end(t, s, i, j, 1)
    length = wp.max(wp.length(x_b - x_a), SHORT)
    n = (x_b - x_a) / length
    pull = tension * n
    stiffness = wp.where(length > SHORT, tension / length, so3.ZERO)
    K = so3.quadratic(stiffness, vec3(), -stiffness * n, n)
    return at_point(x_a, K, -so3.hat(pull)), se3.join(wp.cross(x_a, pull), pull)


@wp.func
def respond_to_piece(t: Tables, s: Scratch, i: int, j: int, tension: wp.float64, H: wp.array2d(dtype=mat6)):
    """Add the derivatives of piece j at a constant tension to H of its nodes, and list their couplings in s.near."""
    if t.segments.wrap[j] >= 0:
        respond_to_wrapped(t, s, i, j, tension, H)
    else:
        K, on_a = straight_response(t, s, i, j, tension)
        couple_pair(s, i, t.segments.node[j, 0], t.segments.node[j, 1], K, adbar_matrix(on_a), H)


@wp.func
def respond_to_segments(t: Tables, s: Scratch, i: int, H: wp.array2d(dtype=mat6)):
    """Add the derivatives of every piece between two points to H of its nodes, and list their couplings in s.near."""
    if may_have_straight_tendons():
        for j in range(t.segments.channel.shape[0]):
            respond_to_piece(t, s, i, j, s.channel.size[i, t.segments.channel[j]], H)


@wp.func
def respond_to_wrenches(t: Tables, s: Scratch, i: int, H: wp.array2d(dtype=mat6)):
    """Add (6) of the controlled wrenches to H of their nodes."""
    for j in range(t.wrenches.channel.shape[0]):
        if t.wrenches.is_body[j] == 0:
            m, f, x = input_wrench(t, s, i, j)
            k = t.wrenches.node[j]
            H[i, k] = H[i, k] - se3.block(so3.hat(x) * so3.hat(f) + so3.hat(m), mat3(), so3.hat(f), mat3())


@wp.func
def add_pull_force(t: Tables, s: Scratch, i: int, e: int, size: wp.float64, tau: Matrix):
    """tau += size · B of pull e."""
    at = t.pulls.column_start[e]
    first = t.node[t.pulls.node[e]].v_start
    for j in range(t.pulls.column_start[e + 1] - at):
        tau[i, first + j] = tau[i, first + j] + size * s.pulls.B[i, at + j]


@wp.func
def add_pull_forces(t: Tables, s: Scratch, i: int, sign: wp.float64, tau: Matrix):
    """tau += sign · B u on the coordinates of the bodies."""
    pulls.evaluate(t, s, i)
    for e in range(t.pulls.channel.shape[0]):
        add_pull_force(t, s, i, e, sign * s.channel.size[i, t.pulls.channel[e]], tau)


@wp.func
def add_pull_wrenches(t: Tables, s: Scratch, i: int, sign: wp.float64):
    """F −= sign · (wrenches of pressures inside deformable bodies)."""
    pulls.evaluate(t, s, i)
    for e in range(t.pulls.channel.shape[0]):
        if t.pulls.presses[e] != 0:
            k = t.pulls.node[e]
            size = sign * s.channel.size[i, t.pulls.channel[e]]
            s.node[i, k].F = s.node[i, k].F - se3.Ad_dual(s.node[i, k].R, s.node[i, k].p, size * s.pulls.wrench[i, e])


@wp.func
def add_pulls(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
    """`add` of the term of pulls."""
    add_pull_wrenches(t, s, i, so3.ONE)


@wp.func
def respond_to_pulls(
    t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
):
    """`respond` of the term of pulls: the derivatives of the frames' wrenches by θ, into s.pulls.response."""
    for c in range(s.pulls.response.shape[1]):
        s.pulls.response[i, c] = vec6()
    pulls.evaluate_derivatives(t, s, i)
    for e in range(t.pulls.channel.shape[0]):
        if t.pulls.presses[e] != 0:
            at = t.pulls.column_start[e]
            to = t.deforming.column_start[t.node[t.pulls.node[e]].map]
            size = s.channel.size[i, t.pulls.channel[e]]
            for j in range(t.pulls.column_start[e + 1] - at):
                s.pulls.response[i, to + j] = s.pulls.response[i, to + j] - size * s.pulls.wrench_q[i, at + j]


@wp.func
def force_of_pulls(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, tau: Matrix):
    """`force` of the term of pulls."""
    add_pull_forces(t, s, i, -so3.ONE, tau)


@wp.func(inline=False)
def stiffen_by_pulls(
    t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64, by_v: wp.float64,
    out: Matrix,
):  # fmt: skip
    """`stiffen` of the term of pulls."""
    if by_q != so3.ZERO:
        pulls.evaluate_derivatives(t, s, i)
        for e in range(t.pulls.channel.shape[0]):
            first = t.node[t.pulls.node[e]].v_start
            at = t.pulls.pair_start[e]
            n = t.pulls.column_start[e + 1] - t.pulls.column_start[e]
            size = by_q * s.channel.size[i, t.pulls.channel[e]]
            for j in range(n):
                for c in range(n):
                    to = (first + j) * x.width + first + c
                    out[i, to] = out[i, to] - size * s.pulls.B_q[i, at + n * j + c]


@wp.func(inline=False)
def put_elastic_tensions(t: Tables, s: Scratch, i: int, q: Matrix):
    """Replace the inputs of elastic tendons, which are lengths pulled in, by their tensions (7), at the poses in the
    scratch memory s."""
    if may_have_elastic_tendons():
        for e in range(t.spools.channel.shape[0]):
            c = t.spools.channel[e]
            stretch = path_length(t, s, i, c, q) - t.spools.slack[e] + s.channel.size[i, c]
            s.channel.size[i, c] = so3.ZERO
            if stretch > -TOLERANCE_OF_SLACK * t.spools.slack[e]:
                s.channel.size[i, c] = wp.max(SMALLEST_TENSION, t.spools.stiffness[e] * stretch)


@wp.func(inline=False)
def tendon_row(t: Tables, s: Scratch, i: int, c: int, q: Matrix):
    """Write b of tendon c to s.channel.row, from the poses in s. Overwrites node.F and deforming.inertial in s."""
    for k in range(t.n_dynamic):
        s.node[i, k].F = vec6()
    for j in range(s.deforming.inertial.shape[1]):
        s.deforming.inertial[i, j] = so3.ZERO
    for j in range(t.segments.channel.shape[0]):
        if t.segments.channel[j] == c:
            add_piece_wrench(t, s, i, j, -so3.ONE)
    project(t, s, i, s.channel.row)
    for k in range(t.points.xi.shape[0]):
        for e in range(t.points.path_start[k], t.points.path_start[k + 1]):
            if t.paths.channel[e] == c:
                phi_q = strain_at(t.points.phi, t.points.run_start[k], t.points.run_v[k], i, t.points.q_shift[k], q)
                direction, _stretch = path_tangent(t, t.points.xi[k] + phi_q, e)
                f = t.paths.weight[e] * direction
                y = se3.join(wp.cross(t.paths.offset[e], f), f)
                project_at(t.points.phi, t.points.run_start[k], t.points.run_v[k], i, 0, y, s.channel.row)
    for e in range(t.pulls.channel.shape[0]):  # put_elastic_tensions has evaluated B
        if t.pulls.channel[e] == c:
            add_pull_force(t, s, i, e, so3.ONE, s.channel.row)


@wp.func_native(native("add_outer_product"))
def add_outer_product(nv: int, width: int, i: int, size: wp.float64, left: Matrix, right: Matrix, out: Matrix):
    """out += size · left rightᵀ, out in rows of `width`."""
    ...


@wp.func
def move_row(t: Tables, s: Scratch, i: int, move: Matrix):
    """s.channel.moved_row = T(move)ᵀ b."""
    for j in range(t.nv):
        s.channel.moved_row[i, j] = s.channel.row[i, j]
    for k in range(t.n_dynamic):
        kinds.pull_back(t, i, k, move, s.channel.row, s.channel.moved_row)


@wp.func(inline=False)
def add_tendon_stretch(
    t: Tables, s: Scratch, i: int, width: int, q: Matrix, move: Matrix, by_q: wp.float64, dq: Matrix
):  # fmt: skip
    """dq += by_q k b bᵀ T(move) of (8) for the taut elastic tendons. Overwrites node.F and deforming.inertial in s."""
    if may_have_elastic_tendons():
        for e in range(t.spools.channel.shape[0]):
            c = t.spools.channel[e]
            if s.channel.size[i, c] > so3.ZERO:
                tendon_row(t, s, i, c, q)
                move_row(t, s, i, move)
                add_outer_product(t.nv, width, i, by_q * t.spools.stiffness[e], s.channel.row, s.channel.moved_row, dq)


@wp.func
def add_channels(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
    """`add` of the term of channels; computes tensions of elastic tendons."""
    put_elastic_tensions(t, s, i, q)
    add_channel_wrenches(t, s, i, so3.ONE)


@wp.func
def respond_to_channels(
    t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
):
    """`respond` of the term of channels."""
    respond_to_segments(t, s, i, H)
    respond_to_wrenches(t, s, i, H)


@wp.func
def force_of_channels(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, tau: Matrix):
    """`force` of the term of channels."""
    add_path_forces(t, i, q, s.channel.size, -so3.ONE, tau)


@wp.func(inline=False)
def stiffen_by_channels(
    t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64, by_v: wp.float64,
    out: Matrix,
):  # fmt: skip
    """`stiffen` of the term of channels; elastic tendons overwrite the wrenches in s."""
    if by_q != so3.ZERO:
        add_path_derivatives(t, x, i, q, s.channel.size, by_q, out)
        add_tendon_stretch(t, s, i, x.width, q, move, by_q, out)


@wp.func(inline=False)
def measure_tendons(
    t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, u: Matrix, inverse_scale: wp.array(dtype=wp.float64),
    out: Matrix, row: int,
) -> int:  # fmt: skip
    """`measure` of elastic tendons, whose coordinates are their lengths. Overwrites node.F and deforming.inertial in
    s."""
    if may_have_elastic_tendons():
        for e in range(t.spools.channel.shape[0]):
            c = t.spools.channel[e]
            length = path_length(t, s, i, c, q)  # evaluates B of pulls, too
            tendon_row(t, s, i, c, q)
            rate = wp.float64(0.0)
            for j in range(t.nv):
                rate -= s.channel.row[i, j] * v[i, j]  # power of a unit tension
            pulled = wp.float64(0.0)
            for j in range(u.shape[1]):
                pulled += t.channels.gain[c, j] * u[i, j]
            put_spring(out, i, row + e, so3.ZERO, length, rate, so3.ZERO, so3.ZERO, so3.ONE, TENDON)
            at = (row + e) * SPRING_NUMBERS
            out[i, at + TAUT_FROM] = t.spools.slack[e] - pulled
            out[i, at + STIFFNESS] = t.spools.stiffness[e]
    return row + t.spools.channel.shape[0]


CHANNEL_TERM = Term(
    "tendons, chambers and wrenches",
    int(INPUTS),
    lambda model: not is_rigid_with_contacts(model),
    add=add_channels,
    respond=respond_to_channels,
    force=force_of_channels,
    stiffen=stiffen_by_channels,
    measure=measure_tendons,
    springs=lambda model: len(model.spools.channel),
)


PULL_TERM = Term(
    "pulls inside deformable bodies",
    int(INPUTS),
    is_in=lambda model: len(model.pulls) > 0,
    add=add_pulls,
    respond=respond_to_pulls,
    force=force_of_pulls,
    stiffen=stiffen_by_pulls,
)
