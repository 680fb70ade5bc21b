"""Contacts at the nodes, and how they answer to the motion of both sides, inside kernels.

In the base frame, with W the wrench that ball a of node A receives from an obstacle on node B (see contact_force),

    F_A −= W,  F_B += W
    seen from each of the two, for poses δ, twists δη and the bar W̄ = adbar_W:
    δF_A = K (δ_A − δ_B) + N (δη_A − δη_B),   K = H − N ad_{η_B}                                         (1)
    δF_B = (W̄ − K) (δ_A − δ_B) − N (δη_A − δη_B)                                                         (2)

H and N are those of an obstacle at rest, at the relative twist. Which balls are near an obstacle is listed anew
whenever one has moved by half the margin since the last time, so that a list is never short.
Source: Mathew 2025 §6.2.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.answers import tie_nodes
from lissom.forces.contact_force import (
    at_origin,
    contact_derivatives,
    contact_force,
    contact_response,
    pressure,
    wrench_at_origin,
)
from lissom.forces.distances import signed_distance
from lissom.forces.friction import ContactLaw, Grip, held_slip
from lissom.forces.term import Term
from lissom.lie import se3, so3
from lissom.lie.spatial import ad_matrix, adbar_matrix
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import traversal
from lissom.passes.base_frames import origin_between, origin_of, place_bases
from lissom.passes.column_tables import Matrix
from lissom.passes.scratch import LOADS, STATUS_CROWDED, Scratch

NOWHERE = wp.constant(wp.float64(wp.nan))


@wp.func
def pose_of(s: Scratch, i: int, k: int, origin: vec3):
    """Pose of a node in the base frame at the origin, −1 being the world."""
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
    R, p = pose_of(s, i, t.surroundings.ball_node[ball], origin)
    return R * t.surroundings.ball_position[ball] + p


@wp.func
def ball_in_world(t: Tables, s: Scratch, i: int, ball: int) -> vec3:
    """Centre of a ball in the world."""
    origin = origin_of(t, s, i, t.surroundings.ball_node[ball])
    return ball_centre(t, s, i, ball, origin) + origin


@wp.func
def obstacle_pose(t: Tables, s: Scratch, i: int, obstacle: int, origin: vec3):
    """Pose of the frame of an obstacle in the base frame."""
    R, p = pose_of(s, i, t.surroundings.obstacle_node[obstacle], origin)
    return R * t.surroundings.obstacle_R[obstacle], R * t.surroundings.obstacle_p[obstacle] + p


@wp.func
def gap_of_pair(t: Tables, s: Scratch, i: int, e: int) -> wp.float64:
    """Distance of the surfaces of pair e, negative where they overlap."""
    ball = t.surroundings.pair[e, 0]
    obstacle = t.surroundings.pair[e, 1]
    b = t.surroundings.obstacle_node[obstacle]
    origin = origin_between(t, s, i, t.surroundings.ball_node[ball], b)
    R, p = pose_of(s, i, b, origin)
    x = wp.transpose(R) * (ball_centre(t, s, i, ball, origin) - p) - t.surroundings.obstacle_p[obstacle]
    y = wp.transpose(t.surroundings.obstacle_R[obstacle]) * x
    d, _n, _N = signed_distance(t.surroundings.obstacle_kind[obstacle], t.surroundings.obstacle_size[obstacle], y)
    return d - t.surroundings.ball_radius[ball]


@wp.func(inline=False)
def has_moved(t: Tables, s: Scratch, i: int) -> int:
    """Whether a ball has moved by half the margin since the last listing."""
    if s.near.count[i] < 0:
        return 1
    limit = so3.HALF * so3.HALF * t.surroundings.margin * t.surroundings.margin
    for ball in range(t.surroundings.ball_node.shape[0]):
        moved = ball_in_world(t, s, i, ball) - s.near.seen[i, ball]
        if not (wp.dot(moved, moved) < limit):
            return 1
    return 0


@wp.func(inline=False)
def place_clusters(t: Tables, s: Scratch, i: int):
    """Where the balls are, the middle of each cluster of them, and how far its balls reach from there."""
    for c in range(s.near.centre.shape[1]):
        begin, end = t.surroundings.cluster_start[c], t.surroundings.cluster_start[c + 1]
        centre = vec3()
        for ball in range(begin, end):
            place = ball_in_world(t, s, i, ball)
            s.near.seen[i, ball] = place
            centre = centre + place / wp.float64(end - begin)
        reach = wp.float64(0.0)
        for ball in range(begin, end):
            out = wp.length(s.near.seen[i, ball] - centre) + t.surroundings.ball_radius[ball]
            reach = wp.max(reach, out)
        s.near.centre[i, c] = centre
        s.near.reach[i, c] = reach


@wp.func
def gap_of_block(t: Tables, s: Scratch, i: int, k: int) -> wp.float64:
    """What no gap of a pair of block k is below: of the spheres around two clusters, or of one and a shape."""
    mine = t.surroundings.block[k, 0]
    other = t.surroundings.block[k, 1]
    centre = s.near.centre[i, mine]
    if other >= 0:
        return wp.length(centre - s.near.centre[i, other]) - s.near.reach[i, mine] - s.near.reach[i, other]
    obstacle = t.surroundings.pair[t.surroundings.block[k, 2], 1]
    node = t.surroundings.obstacle_node[obstacle]
    origin = origin_of(t, s, i, node)
    R, p = pose_of(s, i, node, origin)
    x = wp.transpose(R) * (centre - origin - p) - t.surroundings.obstacle_p[obstacle]
    y = wp.transpose(t.surroundings.obstacle_R[obstacle]) * x
    d, _n, _N = signed_distance(t.surroundings.obstacle_kind[obstacle], t.surroundings.obstacle_size[obstacle], y)
    return d - s.near.reach[i, mine]


@wp.func(inline=False)
def list_near(t: Tables, s: Scratch, i: int):
    """List the pairs within the margin, all those whose obstacle roams among them."""
    count = wp.int32(0)
    room = s.near.pair.shape[1]
    place_clusters(t, s, i)
    for k in range(t.surroundings.block.shape[0]):
        begin, end = t.surroundings.block[k, 2], t.surroundings.block[k, 3]
        roams = t.surroundings.obstacle_roams[t.surroundings.pair[begin, 1]] != 0
        if roams or gap_of_block(t, s, i, k) < t.surroundings.margin:
            for e in range(begin, end):
                if roams or gap_of_pair(t, s, i, e) < t.surroundings.margin:
                    if count < room:
                        s.near.pair[i, count] = e
                    count += 1
    if count > room:
        s.status[i] = STATUS_CROWDED
        count = wp.int32(-1)
    s.near.count[i] = count


@wp.func
def anchor_at(t: Tables, i: int, e: int) -> vec3:
    """Point of the obstacle where pair e of an instance holds on; NaN where it does not."""
    return t.surroundings.anchor[holder(t, i), 2 * e]


@wp.func
def holder(t: Tables, i: int) -> int:
    """Row of the anchors of an instance: its own where there are so many, else that of all."""
    return wp.min(i, t.surroundings.anchor.shape[0] - 1)


@wp.func
def put_anchor(t: Tables, i: int, e: int, on_obstacle: vec3, on_ball: vec3):
    """Let pair e of an instance hold on there."""
    t.surroundings.anchor[holder(t, i), 2 * e] = on_obstacle
    t.surroundings.anchor[holder(t, i), 2 * e + 1] = on_ball


@wp.struct
class Touch:
    """A pair as the contact law takes it, in the base frame: law, anchor, radius, depth, centre, normal, Hessian,
    velocity of the centre and spin against the obstacle, nodes of ball and obstacle."""

    law: ContactLaw
    grip: Grip
    radius: wp.float64
    depth: wp.float64
    c: vec3
    n: vec3
    N: mat3
    u: vec3
    spin: vec3
    a: wp.int32
    b: wp.int32


@wp.func(inline=False)
def touch_of(t: Tables, s: Scratch, i: int, e: int) -> Touch:
    """Pair e."""
    ball = t.surroundings.pair[e, 0]
    obstacle = t.surroundings.pair[e, 1]
    x = Touch()
    x.a = t.surroundings.ball_node[ball]
    x.b = t.surroundings.obstacle_node[obstacle]
    x.radius = t.surroundings.ball_radius[ball]
    origin = origin_between(t, s, i, x.a, x.b)
    x.c = ball_centre(t, s, i, ball, origin)
    R, p = obstacle_pose(t, s, i, obstacle, origin)
    y = wp.transpose(R) * (x.c - p)
    d, n, N = signed_distance(t.surroundings.obstacle_kind[obstacle], t.surroundings.obstacle_size[obstacle], y)
    x.depth = x.radius - d
    if x.depth > so3.ZERO:
        x.n = R * n
        x.N = R * N * wp.transpose(R)
        rho = twist_of(s, i, x.a) - twist_of(s, i, x.b)
        x.spin = se3.angular(rho)
        x.u = se3.linear(rho) + wp.cross(x.spin, x.c)
        row = t.surroundings.pair[e, 2]
        x.law.stiffness = t.surroundings.law[row, 0]
        x.law.exponent = t.surroundings.law[row, 1]
        x.law.damping = t.surroundings.law[row, 2]
        x.law.friction = t.surroundings.law[row, 3]
        x.law.slip_speed = t.surroundings.law[row, 4]
        x.law.stick_stiffness = t.surroundings.law[row, 5]
        x.law.stick_damping = t.surroundings.law[row, 6]
        anchor = anchor_at(t, i, e)
        if x.law.stick_stiffness > so3.ZERO and not wp.isnan(anchor[0]):
            R_a, _p_a = pose_of(s, i, x.a, origin)
            x.grip.holds = 1
            x.grip.d = x.c - x.radius * x.n - R * anchor - p
            x.grip.b = R_a * t.surroundings.anchor[holder(t, i), 2 * e + 1]
    return x


@wp.func
def new_anchor(t: Tables, s: Scratch, i: int, e: int, x: Touch):
    """Anchor of pair e, which touches: where it is now, but for the slip that friction holds back; in the frames of the
    obstacle and of the ball's node."""
    push, _by_depth, _by_rate = pressure(x.law, x.depth, -wp.dot(x.n, x.u))
    origin = origin_between(t, s, i, x.a, x.b)
    R, p = obstacle_pose(t, s, i, t.surroundings.pair[e, 1], origin)
    R_a, _p_a = pose_of(s, i, x.a, origin)
    A = x.c - x.radius * x.n - held_slip(x.law, x.grip, x.radius, push, x.n)
    return wp.transpose(R) * (A - p), -(wp.transpose(R_a) * x.n)


@wp.func(inline=False)
def renew_anchors(t: Tables, s: Scratch, i: int):
    """Anchor what touches where it is now, less the slip that is held, and let go what has opened."""
    if has_moved(t, s, i) == 1:
        list_near(t, s, i)
    for e in range(t.surroundings.pair.shape[0]):
        if not wp.isnan(anchor_at(t, i, e)[0]) and not (gap_of_pair(t, s, i, e) < so3.ZERO):
            put_anchor(t, i, e, vec3(NOWHERE, NOWHERE, NOWHERE), vec3(NOWHERE, NOWHERE, NOWHERE))
    for j in range(s.near.count[i]):
        e = s.near.pair[i, j]
        x = touch_of(t, s, i, e)
        if x.depth > so3.ZERO and x.law.stick_stiffness > so3.ZERO:
            on_obstacle, on_ball = new_anchor(t, s, i, e, x)
            put_anchor(t, i, e, on_obstacle, on_ball)


@wp.func(inline=False)
def add_contacts(t: Tables, s: Scratch, i: int):
    """F of both nodes of each pair that touches."""
    if has_moved(t, s, i) == 1:
        list_near(t, s, i)
    for j in range(s.near.count[i]):
        x = touch_of(t, s, i, s.near.pair[i, j])
        if x.depth > so3.ZERO:
            f, m = contact_force(x.law, x.grip, x.radius, x.depth, x.n, x.u, x.spin)
            W = wrench_at_origin(x.c, m, f)
            if x.a >= 0:
                s.node[i, x.a].F = s.node[i, x.a].F - W
            if x.b >= 0:
                s.node[i, x.b].F = s.node[i, x.b].F + W


@wp.func
def put_response(
    s: Scratch, i: int, a: int, b: int, c: vec3, m: vec3, f: vec3, H_c: mat6, N_c: mat6, H: wp.array2d(dtype=mat6)
):
    """K and N of (1), (2) on the nodes a and b themselves, for the wrench (m; f) at c that a receives; what ties the
    two is listed in s.near."""
    N = at_origin(c, N_c)
    K = at_origin(c, H_c)
    bar = adbar_matrix(wrench_at_origin(c, m, f))
    if b >= 0:
        K -= N * ad_matrix(s.node[i, b].eta)
        H[i, b] = H[i, b] + K - bar
        s.near.N[i, b] = s.near.N[i, b] + N
    if a >= 0:
        H[i, a] = H[i, a] + K
        s.near.N[i, a] = s.near.N[i, a] + N
    tie_nodes(s, i, a, b, K, N, bar, 1)


@wp.func(inline=False)
def respond_to_contacts(t: Tables, s: Scratch, i: int, H: wp.array2d(dtype=mat6)):
    """How both nodes of each pair that touches answer."""
    for j in range(s.near.count[i]):
        x = touch_of(t, s, i, s.near.pair[i, j])
        if x.depth > so3.ZERO:
            f, m = contact_force(x.law, x.grip, x.radius, x.depth, x.n, x.u, x.spin)
            D_c, D_u, D_spin, D_turn = contact_derivatives(x.law, x.grip, x.radius, x.depth, x.n, x.N, x.u, x.spin)
            H_c, N_c = contact_response(x.radius, x.n, x.N, x.u, x.spin, f, m, D_c, D_u, D_spin, D_turn)
            put_response(s, i, x.a, x.b, x.c, m, f, H_c, N_c, H)


@wp.func
def add(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
    """See term."""
    if t.surroundings.pair.shape[0] > 0:
        add_contacts(t, s, i)


@wp.func
def respond(
    t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
):
    """See term."""
    if t.surroundings.pair.shape[0] > 0:
        respond_to_contacts(t, s, i, H)


@wp.func
def renew(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, a: Matrix):
    """See term; for one instance alone, since anchors belong to the model."""
    if t.surroundings.sticks != 0:
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, a, vec6())
        renew_anchors(t, s, i)


TERM = Term("contacts", int(LOADS), lambda model: model.has_surroundings, add=add, respond=respond, renew=renew)
