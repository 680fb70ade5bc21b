"""Scratch memory of kernels: results of the half-passes at the nodes, and the status of each instance.

The functions here read the two results that a node needs of its parent: the pose at which its own motion begins, and
the parent's motion.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import by_reference, mat3, mat6, vec3, vec6, vec10
from lissom.model.tables import Tables

STATUS_NOT_FINITE = wp.constant(1)
STATUS_QUATERNION = wp.constant(2)
STATUS_FULL_TURN = wp.constant(3)
STATUS_OVERFLOW = wp.constant(4)
STATUS_TOO_MANY_PAIRS = wp.constant(5)
STATUS_COUPLING = wp.constant(6)
STATUS_FLAT_DISC = wp.constant(7)
STATUS_FUNCTION = wp.constant(8)  # and the following ones
STATUS_SINGULAR = wp.constant(100)

# Flags of the terms of force.
LOADS = wp.constant(1)  # external loads: point loads, users' forces, contacts, fluid
SPRINGS = wp.constant(2)  # elasticity and damping: rods, joints, springs between points
INPUTS = wp.constant(4)  # actuators: tendons, chambers, wrenches
ALL_TERMS = wp.constant(7)


def acting_flags(elastic: bool, loads: bool, inputs: bool = False) -> int:
    """The sum of the flags of the chosen terms."""
    return int(LOADS) * loads + int(SPRINGS) * elastic + int(INPUTS) * inputs


@wp.struct
class NodeState:
    """Results of the half-passes at a node, in the base frame. R, p: pose. eta, acc: twist and acceleration. F: wrench
    that the motion requires minus external wrenches; the sum over the subtree after the inward half-pass. Of nodes that
    move by exp(Ω(q)): Omega, stumpff: Ω and its Stumpff values. xi1, xi2: strains."""

    R: mat3
    p: vec3
    Omega: vec6
    stumpff: vec10
    xi1: vec6
    xi2: vec6
    eta: vec6
    acc: vec6
    F: vec6


@wp.struct
class Near:
    """Near pairs of contacts, and couplings of nodes.

    pair, count: list of near pairs and its length, −1 before the first list. listed_position: positions of the
    balls when the list was made. room: gap of each near pair then [m]; zero if its obstacle is unbounded. place: of
    its ball in the frame of the obstacle's node then; NaN if a rotation changes the gap, too. moved: how far the
    farthest of the balls that are watched has moved since [m]. lists: number of lists made so far. is_swept:
    whether only near pairs may have anchors. centre, radius: of each cluster of balls, in the world. coupled:
    number of coupled pairs of nodes. a, b: their nodes. K, D, bar: their K, N and W̄ of (9), (10) of contact.
    is_damped: whether D is not zero; 2 if only node a is acted on. N: derivative of the wrench of each node by its
    own twist. gap, push: of each near pair at the last evaluation of contacts, the distance of the surfaces [m] and
    the normal force [N]. made_pair, made_push, made_count: pairs in contact, their forces and their number at the
    last matrix of a step.
    """

    pair: wp.array2d(dtype=wp.int32)
    count: wp.array(dtype=wp.int32)
    listed_position: wp.array2d(dtype=vec3)
    room: wp.array2d(dtype=wp.float64)
    place: wp.array2d(dtype=vec3)
    moved: wp.array(dtype=wp.float64)
    lists: wp.array(dtype=wp.int32)
    is_swept: wp.array(dtype=wp.int32)
    centre: wp.array2d(dtype=vec3)
    radius: wp.array2d(dtype=wp.float64)
    coupled: wp.array(dtype=wp.int32)
    a: wp.array2d(dtype=wp.int32)
    b: wp.array2d(dtype=wp.int32)
    K: wp.array2d(dtype=mat6)
    D: wp.array2d(dtype=mat6)
    bar: wp.array2d(dtype=mat6)
    is_damped: wp.array2d(dtype=wp.int32)
    N: wp.array2d(dtype=mat6)
    gap: wp.array2d(dtype=wp.float64)
    push: wp.array2d(dtype=wp.float64)
    made_pair: wp.array2d(dtype=wp.int32)
    made_push: wp.array2d(dtype=wp.float64)
    made_count: wp.array(dtype=wp.int32)


@wp.struct
class MapState:
    """Tables of mapped nodes: poses R, p in their parents' frames, by (instance, map); columns S and their first and
    second derivatives in their own frames, by (instance, index in Maps). By (instance, column): x, the coordinates of
    native functions, and S_vv, which these give in place of S_qq: Σ ∂²S_j/∂q_c∂q_e v_c v_e. By (instance, map):
    sides, b and d of a cross-section in finite elements."""

    R: wp.array2d(dtype=mat3)
    p: wp.array2d(dtype=vec3)
    S: wp.array2d(dtype=vec6)
    S_q: wp.array2d(dtype=vec6)
    S_qq: wp.array2d(dtype=vec6)
    S_vv: wp.array2d(dtype=vec6)
    x: wp.array2d(dtype=wp.float64)
    sides: wp.array2d(dtype=vec6)


@wp.struct
class ChannelState:
    """Numbers of the channels.

    size: magnitudes by (instance, channel): tensions, pressures, sizes of wrenches, and inputs of users' actuators and
    forces. The entry of an elastic tendon is the length pulled in until its tension replaces it. row: b of one elastic
    tendon; or τ of one user's actuator, followed by its derivatives, row by row; or the inputs of one user's force,
    followed by its derivatives. moved_row: T(move)ᵀ of b, or of one row of derivatives of an actuator.
    """

    size: wp.array2d(dtype=wp.float64)
    row: wp.array2d(dtype=wp.float64)
    moved_row: wp.array2d(dtype=wp.float64)


@wp.struct
class DeformingState:
    """Integrals over deformable bodies, by (instance, body), (instance, column) and (instance, pair) of Deforming.

    Names are those of the equations of deforming. Names that end in _v are values for θ̈ = 0. Names that end in _q and
    _qdot are derivatives with respect to θ and θ̇; those of ċ and Π are at fixed θ̇. force, K, D and energy belong to the
    material: its generalised force, stiffness, damping and energy. inertial, inertial_change: generalised inertial
    forces (3) and their changes.
    theta: the coordinates of all bodies; theta_dot, theta_ddot: the rates of those with native functions or tendons;
    known: which numbers belong to this state, a sum of deforming.VALUES, DERIVATIVES, PULLS and PULL_DERIVATIVES.
    """

    c: wp.array2d(dtype=vec3)
    P: wp.array2d(dtype=mat3)
    c_v: wp.array2d(dtype=vec3)
    b_v: wp.array2d(dtype=vec3)
    c_dot: wp.array2d(dtype=vec3)
    Pi: wp.array2d(dtype=mat3)
    c_ddot: wp.array2d(dtype=vec3)
    b: wp.array2d(dtype=vec3)
    energy: wp.array2d(dtype=wp.float64)
    c_j: wp.array2d(dtype=vec3)
    P_j: wp.array2d(dtype=mat3)
    w_j: wp.array2d(dtype=vec3)
    e_v: wp.array2d(dtype=wp.float64)
    e: wp.array2d(dtype=wp.float64)
    force: wp.array2d(dtype=wp.float64)
    inertial: wp.array2d(dtype=wp.float64)
    inertial_change: wp.array2d(dtype=wp.float64)
    c_q: wp.array2d(dtype=vec3)
    b_q: wp.array2d(dtype=vec3)
    c_dot_q: wp.array2d(dtype=vec3)
    Pi_q: wp.array2d(dtype=mat3)
    c_qdot: wp.array2d(dtype=vec3)
    b_qdot: wp.array2d(dtype=vec3)
    M: wp.array2d(dtype=wp.float64)
    c_jl: wp.array2d(dtype=vec3)
    P_jl: wp.array2d(dtype=mat3)
    w_q: wp.array2d(dtype=vec3)
    w_qdot: wp.array2d(dtype=vec3)
    e_q: wp.array2d(dtype=wp.float64)
    e_qdot: wp.array2d(dtype=wp.float64)
    K: wp.array2d(dtype=wp.float64)
    D: wp.array2d(dtype=wp.float64)
    theta: wp.array2d(dtype=wp.float64)
    theta_dot: wp.array2d(dtype=wp.float64)
    theta_ddot: wp.array2d(dtype=wp.float64)
    known: wp.array2d(dtype=wp.int32)


@wp.struct
class PullState:
    """Forces of unit inputs inside deformable bodies.

    By (instance, pull): work: potential of the input (minus the length of a tendon). wrench: on the frame, in its axes.
    By (instance, column) of Pulls: B, wrench_q: generalised force, and ∂wrench/∂θ. By (instance, pair) of Pulls: B_q:
    ∂B/∂θ. By (instance, column) of Deforming, in models with pressures: response: derivative of the wrench by θ.
    room: numbers of the surfaces of native pulls, as pulls.h describes them.
    """

    work: wp.array2d(dtype=wp.float64)
    wrench: wp.array2d(dtype=vec6)
    B: wp.array2d(dtype=wp.float64)
    wrench_q: wp.array2d(dtype=vec6)
    B_q: wp.array2d(dtype=wp.float64)
    response: wp.array2d(dtype=vec6)
    room: wp.array2d(dtype=wp.float64)


BY_BODY = ("c", "P", "c_v", "b_v", "c_dot", "Pi", "c_ddot", "b", "energy", "known")
BY_PAIR = ("M", "c_jl", "P_jl", "w_q", "w_qdot", "e_q", "e_qdot", "K", "D")


@wp.struct
class ScratchStruct:
    """Scratch memory: near: contacts and couplings. maps, deforming, pulls: tables of mapped nodes, deformable bodies
    and pulls in these. channel: magnitudes of channels. function: derivatives of functions of constraints, by
    (instance, number). origin: origins of the base frames in the world, by (instance, base). node: states of nodes, by
    (instance, node). status: of each instance, 0 or one of the STATUS constants, or STATUS_FUNCTION and the number of
    the function without a value.
    """

    near: Near
    maps: MapState
    deforming: DeformingState
    pulls: PullState
    channel: ChannelState
    function: wp.array2d(dtype=wp.float64)
    origin: wp.array2d(dtype=vec3)
    node: wp.array2d(dtype=NodeState)
    status: wp.array(dtype=wp.int32)


Scratch = by_reference(ScratchStruct)


@wp.struct
class NodeChange:
    """The change of a node along a direction: x, w, z and e of inverse_dynamics_derivatives, δΩ, δξ₁, δξ₂, and the
    change F of its wrench."""

    x: vec6
    w: vec6
    z: vec6
    e: vec6
    Omega: vec6
    xi1: vec6
    xi2: vec6
    F: vec6


@wp.struct
class DirectionStruct:
    """A direction (dq, dv, da) by instance and coordinate, and the changes along it by (instance, node)."""

    dq: wp.array2d(dtype=wp.float64)
    dv: wp.array2d(dtype=wp.float64)
    da: wp.array2d(dtype=wp.float64)
    node: wp.array2d(dtype=NodeChange)


Direction = by_reference(DirectionStruct)


@wp.func
def joint_side(t: Tables, s: Scratch, i: int, k: int):
    """Pose of node k before its own motion: g_p G."""
    parent = t.node[k].parent
    if parent < 0:
        return t.node[k].R, t.node[k].p - s.origin[i, t.node[k].base]
    R = s.node[i, parent].R
    p = s.node[i, parent].p
    if not t.node[k].is_placed:
        return R, p
    return R * t.node[k].R, R * t.node[k].p + p


@wp.func
def put_joint_side(t: Tables, s: Scratch, i: int, k: int):
    """Store the pose before the motion of node k as its pose: that of a fixed joint or of a deformable body's frame."""
    R, p = joint_side(t, s, i, k)
    s.node[i, k].R = R
    s.node[i, k].p = p


@wp.func
def parent_motion(t: Tables, s: Scratch, i: int, k: int, acc_base: vec6):
    """Twist and acceleration of the parent of node k; the world accelerates by acc_base."""
    parent = t.node[k].parent
    eta = vec6()
    acc = acc_base
    if parent >= 0:
        eta = s.node[i, parent].eta
        acc = s.node[i, parent].acc
    return eta, acc
