"""What contacts, the fluid and users' forces do to the nodes, and how that answers to their motion, inside kernels.

In the base frame, with W the wrench that ball a of node A receives from an obstacle on node B (see contact_force),

    F_A −= W,  F_B += W
    seen from each of the two, for poses δ, twists δη and the bar W̄ = adbar_W:
    δF_A = K (δ_A − δ_B) + N (δη_A − δη_B),   K = H − N ad_{η_B}                                         (1)
    δF_B = (W̄ − K) (δ_A − δ_B) − N (δη_A − δη_B)                                                         (2)

H and N are those of an obstacle at rest, at the relative twist. Weight acts on what is heavy alone: F gains L (0; G)
and H gains L ad_G, L being the inertia of the fluid driven and displaced. Which balls are near an obstacle is listed
anew whenever one has moved by half the margin since the last time, so that a list is never short.
Source: Mathew 2025 §6.2, §6.3.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.dynamics.column_products import add_cross_product
from lissom.dynamics.column_tables import Columns, Matrix
from lissom.dynamics.hooks import current_of_user, force_of_user
from lissom.dynamics.sweeps import STATUS_CROWDED, NodeChange, Scratch
from lissom.environment.contact_force import (
    ContactLaw,
    at_origin,
    contact_derivatives,
    contact_force,
    contact_response,
    wrench_at_origin,
)
from lissom.environment.distances import signed_distance
from lissom.environment.fluid_force import drag, drag_response, felt_current, momentum_response, wake, wake_response
from lissom.lie import se3, so3
from lissom.lie.spatial import ad_matrix, adbar_matrix, in_base
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import Tables

STEP = wp.constant(wp.float64(6e-6))  # of central differences of users' functions
FAR = wp.constant(wp.float64(1e300))


@wp.func
def pose_of(s: Scratch, i: int, k: int, origin: vec3):
    """Pose of a node in the base frame, −1 being the world."""
    if k < 0:
        return wp.identity(n=3, dtype=wp.float64), -origin
    return s.node[i, k].R, s.node[i, k].p


@wp.func
def twist_of(s: Scratch, i: int, k: int) -> vec6:
    """Twist of a node, −1 being the world."""
    if k < 0:
        return vec6()
    return s.node[i, k].eta


@wp.func
def ball_centre(t: Tables, s: Scratch, i: int, ball: int, origin: vec3) -> vec3:
    """Centre of a ball in the base frame."""
    R, p = pose_of(s, i, t.world.ball_node[ball], origin)
    return R * t.world.ball_position[ball] + p


@wp.func
def gap_of_pair(t: Tables, s: Scratch, i: int, e: int, origin: vec3) -> wp.float64:
    """Distance of the surfaces of pair e, negative where they overlap."""
    ball = t.world.pair[e, 0]
    obstacle = t.world.pair[e, 1]
    R, p = pose_of(s, i, t.world.obstacle_node[obstacle], origin)
    x = wp.transpose(R) * (ball_centre(t, s, i, ball, origin) - p) - t.world.obstacle_p[obstacle]
    y = wp.transpose(t.world.obstacle_R[obstacle]) * x
    d, _n, _N = signed_distance(t.world.obstacle_kind[obstacle], t.world.obstacle_size[obstacle], y)
    return d - t.world.ball_radius[ball]


@wp.func
def has_moved(t: Tables, s: Scratch, i: int, origin: vec3) -> int:
    """Whether a ball has moved by half the margin since the last listing."""
    if s.near.count[i] < 0:
        return 1
    limit = so3.HALF * so3.HALF * t.world.margin * t.world.margin
    for ball in range(t.world.ball_node.shape[0]):
        moved = ball_centre(t, s, i, ball, origin) + origin - s.near.seen[i, ball]
        if not (wp.dot(moved, moved) < limit):
            return 1
    return 0


@wp.func
def list_near(t: Tables, s: Scratch, i: int, origin: vec3):
    """List the pairs within the margin, all those whose obstacle roams among them."""
    count = wp.int32(0)
    room = s.near.pair.shape[1]
    for e in range(t.world.pair.shape[0]):
        obstacle = t.world.pair[e, 1]
        if t.world.obstacle_roams[obstacle] != 0 or gap_of_pair(t, s, i, e, origin) < t.world.margin:
            if count < room:
                s.near.pair[i, count] = e
            count += 1
    for ball in range(t.world.ball_node.shape[0]):
        s.near.seen[i, ball] = ball_centre(t, s, i, ball, origin) + origin
    if count > room:
        s.status[i] = STATUS_CROWDED
        count = wp.int32(-1)
    s.near.count[i] = count


@wp.struct
class Touch:
    """A pair as the contact law takes it, in the base frame: law, radius, depth, centre, normal, Hessian, velocity of
    the centre and spin against the obstacle, nodes of ball and obstacle."""

    law: ContactLaw
    radius: wp.float64
    depth: wp.float64
    c: vec3
    n: vec3
    N: mat3
    u: vec3
    spin: vec3
    a: wp.int32
    b: wp.int32


@wp.func
def touch_of(t: Tables, s: Scratch, i: int, e: int, origin: vec3) -> Touch:
    """Pair e."""
    ball = t.world.pair[e, 0]
    obstacle = t.world.pair[e, 1]
    x = Touch()
    x.a = t.world.ball_node[ball]
    x.b = t.world.obstacle_node[obstacle]
    x.radius = t.world.ball_radius[ball]
    x.c = ball_centre(t, s, i, ball, origin)
    R_b, p_b = pose_of(s, i, x.b, origin)
    R = R_b * t.world.obstacle_R[obstacle]
    y = wp.transpose(R) * (x.c - R_b * t.world.obstacle_p[obstacle] - p_b)
    d, n, N = signed_distance(t.world.obstacle_kind[obstacle], t.world.obstacle_size[obstacle], y)
    x.depth = x.radius - d
    if x.depth > so3.ZERO:
        x.n = R * n
        x.N = R * N * wp.transpose(R)
        rho = twist_of(s, i, x.a) - twist_of(s, i, x.b)
        x.spin = se3.angular(rho)
        x.u = se3.linear(rho) + wp.cross(x.spin, x.c)
        row = t.world.pair[e, 2]
        x.law.stiffness = t.world.law[row, 0]
        x.law.exponent = t.world.law[row, 1]
        x.law.damping = t.world.law[row, 2]
        x.law.friction = t.world.law[row, 3]
        x.law.slip_speed = t.world.law[row, 4]
    return x


@wp.func
def add_contacts(t: Tables, s: Scratch, i: int, origin: vec3):
    """F of both nodes of each pair that touches."""
    if has_moved(t, s, i, origin) == 1:
        list_near(t, s, i, origin)
    for j in range(s.near.count[i]):
        x = touch_of(t, s, i, s.near.pair[i, j], origin)
        if x.depth > so3.ZERO:
            f, m = contact_force(x.law, x.radius, x.depth, x.n, x.u, x.spin)
            W = wrench_at_origin(x.c, m, f)
            if x.a >= 0:
                s.node[i, x.a].F = s.node[i, x.a].F - W
            if x.b >= 0:
                s.node[i, x.b].F = s.node[i, x.b].F + W


@wp.func
def respond_to_contacts(t: Tables, s: Scratch, i: int, origin: vec3, H: wp.array2d(dtype=mat6)):
    """K and N of (1), (2) on the two nodes themselves; what ties them is listed in s.near."""
    touching = wp.int32(0)
    for j in range(s.near.count[i]):
        x = touch_of(t, s, i, s.near.pair[i, j], origin)
        if x.depth > so3.ZERO:
            f, m = contact_force(x.law, x.radius, x.depth, x.n, x.u, x.spin)
            D_c, D_u, D_spin = contact_derivatives(x.law, x.radius, x.depth, x.n, x.N, x.u, x.spin, f)
            H_c, N_c = contact_response(x.radius, x.n, x.N, x.u, x.spin, f, m, D_c, D_u, D_spin)
            N = at_origin(x.c, N_c)
            K = at_origin(x.c, H_c)
            bar = adbar_matrix(wrench_at_origin(x.c, m, f))
            if x.b >= 0:
                K -= N * ad_matrix(s.node[i, x.b].eta)
                H[i, x.b] = H[i, x.b] + K - bar
                s.near.N[i, x.b] = s.near.N[i, x.b] + N
            if x.a >= 0:
                H[i, x.a] = H[i, x.a] + K
                s.near.N[i, x.a] = s.near.N[i, x.a] + N
            if x.a >= 0 and x.b >= 0:
                s.near.a[i, touching] = x.a
                s.near.b[i, touching] = x.b
                s.near.K[i, touching] = K
                s.near.D[i, touching] = N
                s.near.bar[i, touching] = bar
                touching += 1
    s.near.touching[i] = touching


@wp.func
def couple_touching(s: Scratch, x: Columns, i: int, k: int, of_twist: int, J: Matrix, W: Matrix):
    """The parts of (1) and (2) that tie node k to another one."""
    for j in range(s.near.touching[i]):
        if s.near.a[i, j] == k:
            if of_twist == 1:
                add_cross_product(x, i, k, s.near.b[i, j], -s.near.D[i, j], J, W)
            else:
                add_cross_product(x, i, k, s.near.b[i, j], -s.near.K[i, j], J, W)
        if s.near.b[i, j] == k:
            if of_twist == 1:
                add_cross_product(x, i, k, s.near.a[i, j], -s.near.D[i, j], J, W)
            else:
                add_cross_product(x, i, k, s.near.a[i, j], s.near.bar[i, j] - s.near.K[i, j], J, W)


@wp.func
def current_at(t: Tables, load: wp.array(dtype=vec6), p: vec3, origin: vec3):
    """Twist C and rate Ċ of the fluid at a point."""
    row = load[t.load_node.shape[0]] + current_of_user(p + origin, load[t.load_node.shape[0] + 1][0])
    return se3.join(vec3(), se3.angular(row)), se3.join(vec3(), se3.linear(row))


@wp.func
def current_turns(t: Tables, load: wp.array(dtype=vec6), p: vec3, origin: vec3, C: vec6, C_rate: vec6):
    """ad_C + K and ad_Ċ + K̇: how the current at a node changes with its pose, seen from it."""
    slope = mat3()
    slope_rate = mat3()
    for c in range(3):
        step = vec3()
        step[c] = STEP
        ahead, ahead_rate = current_at(t, load, p + step, origin)
        behind, behind_rate = current_at(t, load, p - step, origin)
        for r in range(3):
            slope[r, c] = (ahead[3 + r] - behind[3 + r]) / (so3.TWO * STEP)
            slope_rate[r, c] = (ahead_rate[3 + r] - behind_rate[3 + r]) / (so3.TWO * STEP)
    turn = ad_matrix(C) + se3.block(mat3(), mat3(), -slope * so3.hat(p), slope)
    return turn, ad_matrix(C_rate) + se3.block(mat3(), mat3(), -slope_rate * so3.hat(p), slope_rate)


@wp.func
def add_fluid(t: Tables, s: Scratch, i: int, origin: vec3, gravity: vec3, load: wp.array(dtype=vec6), has_loads: int):
    """F of what gravity does not pull, and with loads of drag, current and wake."""
    for j in range(t.world.fluid_node.shape[0]):
        k = t.world.fluid_node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        F_B = t.world.fluid_lift[j] * se3.join(vec3(), wp.transpose(R) * gravity)
        if has_loads != 0:
            y = s.node[i, k].eta
            if t.world.has_current != 0:
                C, C_rate = current_at(t, load, p, origin)
                M_A = in_base(R, p, t.world.fluid_added[j])
                M_D = in_base(R, p, t.world.fluid_displaced[j])
                s.node[i, k].F = s.node[i, k].F + felt_current(M_A, M_D, y, C, C_rate)
                y -= C
            F_B += drag(t.world.fluid_drag[j], se3.Ad_inverse(R, p, y))
        s.node[i, k].F = s.node[i, k].F + se3.Ad_dual(R, p, F_B)
    if has_loads != 0:
        for j in range(t.world.tail_node.shape[0]):
            k = t.world.tail_node[j]
            R = s.node[i, k].R
            p = s.node[i, k].p
            C, _C_rate = current_at(t, load, p, origin)
            V = se3.linear(se3.Ad_inverse(R, p, s.node[i, k].eta - C))
            Phi = R * wake(t.world.tail_mass[j], V)
            s.node[i, k].F = s.node[i, k].F - wrench_at_origin(p, vec3(), Phi)


@wp.func
def respond_to_fluid(
    t: Tables,
    s: Scratch,
    i: int,
    origin: vec3,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    has_loads: int,
    H: wp.array2d(dtype=mat6),
):
    """H and N of the fluid's wrenches."""
    for j in range(t.world.fluid_node.shape[0]):
        k = t.world.fluid_node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        H[i, k] = H[i, k] + in_base(R, p, t.world.fluid_lift[j]) * ad_matrix(se3.join(vec3(), gravity))
        if has_loads != 0:
            eta = s.node[i, k].eta
            C, C_rate = current_at(t, load, p, origin)
            N = in_base(R, p, drag_response(t.world.fluid_drag[j], se3.Ad_inverse(R, p, eta - C)))
            if t.world.has_current != 0:
                turn, turn_rate = current_turns(t, load, p, origin, C, C_rate)
                M_A = in_base(R, p, t.world.fluid_added[j])
                M_D = in_base(R, p, t.world.fluid_displaced[j])
                L = momentum_response(M_A, eta - C)
                H[i, k] = H[i, k] + (M_A * ad_matrix(eta) - L - N) * turn - (M_A + M_D) * turn_rate
                N += L - momentum_response(M_A, eta) - M_A * ad_matrix(C)
            s.near.N[i, k] = s.near.N[i, k] + N
    if has_loads != 0:
        for j in range(t.world.tail_node.shape[0]):
            k = t.world.tail_node[j]
            R = s.node[i, k].R
            p = s.node[i, k].p
            C, C_rate = current_at(t, load, p, origin)
            V = se3.linear(se3.Ad_inverse(R, p, s.node[i, k].eta - C))
            N = -in_base(R, p, se3.block(mat3(), mat3(), mat3(), wake_response(t.world.tail_mass[j], V)))
            if t.world.has_current != 0:
                turn, turn_rate = current_turns(t, load, p, origin, C, C_rate)
                H[i, k] = H[i, k] - N * turn
            s.near.N[i, k] = s.near.N[i, k] + N


@wp.func
def add_forces_of_user(t: Tables, s: Scratch, i: int, origin: vec3, load: wp.array(dtype=vec6)):
    """F of the users' compiled forces."""
    for j in range(t.world.force_node.shape[0]):
        k = t.world.force_node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        W = user_wrench(t, j, R, p + origin, se3.Ad_inverse(R, p, s.node[i, k].eta), load)
        s.node[i, k].F = s.node[i, k].F - se3.Ad_dual(R, p, W)


@wp.func
def user_wrench(t: Tables, j: int, R: mat3, x: vec3, eta: vec6, load: wp.array(dtype=vec6)) -> vec6:
    """The wrench of row j of the forces, in the body's axes."""
    time = load[t.load_node.shape[0] + 1][0]
    return t.world.force_weight[j] * force_of_user(t.world.force_which[j], R, x, eta, t.world.force_s[j], time)


@wp.func
def respond_to_user(t: Tables, s: Scratch, i: int, origin: vec3, load: wp.array(dtype=vec6), H: wp.array2d(dtype=mat6)):
    """H and N of the users' compiled forces, by central differences along the body's axes."""
    for j in range(t.world.force_node.shape[0]):
        k = t.world.force_node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        eta = se3.Ad_inverse(R, p, s.node[i, k].eta)
        by_pose = mat6()
        by_twist = mat6()
        for c in range(6):
            step = vec6()
            step[c] = STEP
            w = se3.angular(step)
            move = so3.exp(w)
            back = wp.transpose(move)
            x = R * se3.linear(step)
            ahead = user_wrench(t, j, R * move, p + origin + x, eta, load)
            behind = user_wrench(t, j, R * back, p + origin - x, eta, load)
            faster = user_wrench(t, j, R, p + origin, eta + step, load)
            slower = user_wrench(t, j, R, p + origin, eta - step, load)
            for r in range(6):
                by_pose[r, c] = (behind[r] - ahead[r]) / (so3.TWO * STEP)
                by_twist[r, c] = (slower[r] - faster[r]) / (so3.TWO * STEP)
        H[i, k] = H[i, k] + in_base(R, p, by_pose)
        s.near.N[i, k] = s.near.N[i, k] + in_base(R, p, by_twist)


@wp.func
def add_surroundings(
    t: Tables, s: Scratch, i: int, origin: vec3, gravity: vec3, load: wp.array(dtype=vec6), has_loads: int
):
    """See hooks."""
    add_fluid(t, s, i, origin, gravity, load, has_loads)
    if has_loads != 0:
        if t.world.pair.shape[0] > 0:
            add_contacts(t, s, i, origin)
        add_forces_of_user(t, s, i, origin, load)


@wp.func
def respond_to_surroundings(
    t: Tables,
    s: Scratch,
    i: int,
    origin: vec3,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    has_loads: int,
    H: wp.array2d(dtype=mat6),
):
    """See hooks; what the surroundings do must stand in s already."""
    for k in range(t.n_dynamic):
        s.near.N[i, k] = mat6()
    s.near.touching[i] = 0
    respond_to_fluid(t, s, i, origin, gravity, load, has_loads, H)
    if has_loads != 0:
        if t.world.pair.shape[0] > 0:
            respond_to_contacts(t, s, i, origin, H)
        respond_to_user(t, s, i, origin, load, H)


@wp.func
def with_response(s: Scratch, i: int, k: int, N: mat6) -> mat6:
    """See hooks."""
    return N + s.near.N[i, k]


@wp.func
def change_by_surroundings(
    t: Tables,
    s: Scratch,
    d: wp.array2d(dtype=NodeChange),
    i: int,
    origin: vec3,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    has_loads: int,
):
    """See hooks."""
    for k in range(t.n_dynamic):
        s.near.H[i, k] = mat6()
    respond_to_surroundings(t, s, i, origin, gravity, load, has_loads, s.near.H)
    for k in range(t.n_dynamic):
        d[i, k].F = d[i, k].F + s.near.H[i, k] * d[i, k].x + s.near.N[i, k] * d[i, k].w
    for j in range(s.near.touching[i]):
        a = s.near.a[i, j]
        b = s.near.b[i, j]
        d[i, a].F = d[i, a].F - s.near.K[i, j] * d[i, b].x - s.near.D[i, j] * d[i, b].w
        d[i, b].F = d[i, b].F + (s.near.bar[i, j] - s.near.K[i, j]) * d[i, a].x - s.near.D[i, j] * d[i, a].w
