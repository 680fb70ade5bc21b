"""Scratch memory of kernels: results of the half-passes at the nodes, and the status of each instance.

A node reads two things of its parent there: the pose where its own motion begins, and the parent's motion.
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
STATUS_CROWDED = wp.constant(5)
STATUS_SINGULAR = wp.constant(100)

LOADS = wp.constant(1)  # flags of the terms: loads and all else that the world does,
SPRINGS = wp.constant(2)  # elasticity: rods, joints and springs between points,
INPUTS = wp.constant(4)  # and what inputs drive: tendons, chambers and wrenches
EVERYTHING = wp.constant(7)


def acting_flags(elastic: bool, loads: bool, inputs: bool = False) -> int:
    """The flags of the chosen terms, as a sum of the above."""
    return int(LOADS) * loads + int(SPRINGS) * elastic + int(INPUTS) * inputs


@wp.struct
class NodeState:
    """Results of the half-passes at a node: pose, Ω and its Stumpff values, strains, twist, acceleration, wrench."""

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
    """Results of the surroundings: near pairs by (instance, place), their number or −1, the places of the balls at
    that listing, the middle and the radius of each cluster of balls in the world; the number of coupled pairs of nodes,
    their nodes, their K, N (as D) and W̄ of (9), (10) of contact, and whether D is not zero; N by (instance, node)."""

    pair: wp.array2d(dtype=wp.int32)
    count: wp.array(dtype=wp.int32)
    seen: wp.array2d(dtype=vec3)
    centre: wp.array2d(dtype=vec3)
    reach: wp.array2d(dtype=wp.float64)
    coupled: wp.array(dtype=wp.int32)
    a: wp.array2d(dtype=wp.int32)
    b: wp.array2d(dtype=wp.int32)
    K: wp.array2d(dtype=mat6)
    D: wp.array2d(dtype=mat6)
    bar: wp.array2d(dtype=mat6)
    is_damped: wp.array2d(dtype=wp.int32)
    N: wp.array2d(dtype=mat6)


@wp.struct
class MapState:
    """Poses of mapped nodes in their parents' frames, by (instance, map), and their columns with one and two
    derivatives in their own frames, by (instance, place of Maps)."""

    R: wp.array2d(dtype=mat3)
    p: wp.array2d(dtype=vec3)
    S: wp.array2d(dtype=vec6)
    S_q: wp.array2d(dtype=vec6)
    S_qq: wp.array2d(dtype=vec6)


@wp.struct
class ChannelState:
    """Sizes of the channels, by (instance, channel); of an elastic tendon the length pulled in until its tension is
    computed. Room for the row b of one elastic tendon, and for T(move)ᵀ b."""

    size: wp.array2d(dtype=wp.float64)
    row: wp.array2d(dtype=wp.float64)
    moved_row: wp.array2d(dtype=wp.float64)


@wp.struct
class DeformingState:
    """Integrals over deformable bodies, by (instance, body), (instance, column) and (instance, pair) of Deforming.

    The equations of deforming are made of them. Those ending in _v stand for θ̈ = 0, those in _q and _qdot are
    derivatives by θ and θ̇, of ċ and Π those at fixed θ̇; `force`, K and D are of the material, `energy` its; `own` and
    `own_change` are the own forces and their changes.
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
    own: wp.array2d(dtype=wp.float64)
    own_change: wp.array2d(dtype=wp.float64)
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


@wp.struct
class PullState:
    """Unit inputs inside deformable bodies: work (minus the length of a tendon) and wrench on the frame in its axes by
    (instance, pull), B and ∂wrench/∂θ by (instance, column) and ∂B/∂θ by (instance, pair) of Pulls; the response to θ
    of the wrench that a frame needs by (instance, column) of Deforming, in models with pressures."""

    work: wp.array2d(dtype=wp.float64)
    wrench: wp.array2d(dtype=vec6)
    B: wp.array2d(dtype=wp.float64)
    wrench_q: wp.array2d(dtype=vec6)
    B_q: wp.array2d(dtype=wp.float64)
    response: wp.array2d(dtype=vec6)


BY_BODY = ("c", "P", "c_v", "b_v", "c_dot", "Pi", "c_ddot", "b", "energy")
BY_PAIR = ("M", "c_jl", "P_jl", "w_q", "w_qdot", "e_q", "e_qdot", "K", "D")


@wp.struct
class ScratchStruct:
    """States of all nodes, by (instance, node), origins of the base frames in the world, by (instance, base), results
    of the surroundings, tables of mapped nodes, of deformable bodies and of the pulls in these, sizes of channels, a
    status of each instance."""

    near: Near
    maps: MapState
    deforming: DeformingState
    pulls: PullState
    channel: ChannelState
    origin: wp.array2d(dtype=vec3)
    node: wp.array2d(dtype=NodeState)
    status: wp.array(dtype=wp.int32)


Scratch = by_reference(ScratchStruct)


@wp.struct
class NodeChange:
    """The change of a node along a direction: x, w, z and own e of inverse_dynamics_tangent, δΩ, δξ₁, δξ₂, and
    the change of its wrench."""

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
def parent_motion(t: Tables, s: Scratch, i: int, k: int, acc_base: vec6):
    """Twist and acceleration of the parent of node k; the world accelerates by acc_base."""
    parent = t.node[k].parent
    eta = vec6()
    acc = acc_base
    if parent >= 0:
        eta = s.node[i, parent].eta
        acc = s.node[i, parent].acc
    return eta, acc
