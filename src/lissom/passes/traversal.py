"""The half-passes of which all algorithms consist, inside kernels. Twists and wrenches are in the base frame.

    g = g_p G exp(Ω),  D₀ = Ad_g T                                                                        (1)
    η = η_p + D₀ Ω̇,   a = a_p + D₀ Ω̈ + D₁ Ω̇,   D₁ = ad_η D₀ + Ad_g Ṫ                                  (2)
    F = M a − ad_ηᵀ M η − F_ext,  summed from the tips to the base                                        (3)
    τ = Zᵀ D₀ᵀ ΣF                                                                                         (4)

A base frame has the world's axes. Its origin is the placement of a root, displaced by the joint there if that can
slide, so that a robot far away from the world's origin loses no digits. Roots that loops, tendons or contacts may
couple share one base frame.

Source: Mathew 2025 §4, eqs. (14)-(16).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.types import vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import kinds
from lissom.passes.linear_algebra import is_finite
from lissom.passes.scratch import STATUS_NOT_FINITE, STATUS_OVERFLOW, STATUS_QUATERNION, Scratch, parent_motion

UNIT_TOLERANCE = wp.constant(wp.float64(1e-6))


@wp.func
def outward_pose(t: Tables, s: Scratch, i: int, k: int, q: wp.array2d(dtype=wp.float64)):
    """Pose of node k (1)."""
    kinds.place(t, s, i, k, q)


@wp.func
def outward_motion(
    t: Tables,
    s: Scratch,
    i: int,
    k: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
    acc_base: vec6,
):
    """Pose, twist and acceleration of node k, (1) and (2); the base has the acceleration acc_base."""
    eta, acc = parent_motion(t, s, i, k, acc_base)
    twist, own = kinds.rate(t, s, i, k, q, v, a)
    eta += twist
    acc += own
    acc += se3.ad(eta, twist)
    s.node[i, k].eta = eta
    s.node[i, k].acc = acc


@wp.func
def inward_force(t: Tables, s: Scratch, i: int, k: int, tau: wp.array2d(dtype=wp.float64)):
    """Add the wrench of node k to that of its parent, and project it on the node's own coordinates (4)."""
    F = s.node[i, k].F
    parent = t.node[k].parent
    if parent >= 0:
        s.node[i, parent].F = s.node[i, parent].F + F
    kinds.project(t, s, i, k, F, tau)


@wp.func
def inspect(
    t: Tables,
    s: Scratch,
    i: int,
    q: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
):
    """Set the status of an instance from its arguments: not finite, or a quaternion that is not of unit length; else
    0."""
    s.status[i] = 0
    if not (is_finite(i, q) and is_finite(i, v) and is_finite(i, a)):
        s.status[i] = STATUS_NOT_FINITE
    if q.shape[1] != t.nv:
        for k in range(t.n_nodes):
            if kinds.length_error(t, i, k, q) > UNIT_TOLERANCE:
                s.status[i] = STATUS_QUATERNION


@wp.func
def inspect_result(s: Scratch, i: int, out: wp.array2d(dtype=wp.float64)):
    """Set the status of an instance if its result is not finite and its status is still 0."""
    if not is_finite(i, out) and s.status[i] == 0:
        s.status[i] = STATUS_OVERFLOW


@wp.func
def project(t: Tables, s: Scratch, i: int, tau: wp.array2d(dtype=wp.float64)):
    """Inward half-pass: sum the wrenches to the base and project them on the coordinates."""
    for j in range(t.nv):
        tau[i, j] = so3.ZERO
    for step in range(t.n_dynamic):
        inward_force(t, s, i, t.n_dynamic - 1 - step, tau)


@wp.func
def origin_of(t: Tables, s: Scratch, i: int, k: int) -> vec3:
    """World position of the origin of node k's base frame; zero for the world (k = −1)."""
    if k < 0:
        return vec3()
    return s.origin[i, t.node[k].base]


@wp.func
def origin_between(t: Tables, s: Scratch, i: int, a: int, b: int) -> vec3:
    """World position of the origin of the base frame of two nodes, which share one unless one of them is the world."""
    if a < 0:
        return origin_of(t, s, i, b)
    return origin_of(t, s, i, a)


@wp.func(inline=False)
def slid_base(t: Tables, s: Scratch, i: int, b: int, q: wp.array2d(dtype=wp.float64)) -> vec3:
    """World position of the origin of base b whose root has a sliding joint."""
    s.origin[i, b] = vec3()
    p = vec3()
    for e in range(t.bases.slide_start[b], t.bases.slide_start[b + 1]):
        k = t.bases.slide[e]
        outward_pose(t, s, i, k, q)
        p = s.node[i, k].p
    return p


@wp.func
def place_bases(t: Tables, s: Scratch, i: int, q: wp.array2d(dtype=wp.float64)):
    """Origins of the base frames: the placement of a root, displaced by its joint if that can slide.

    This overwrites the poses of the nodes of such joints with poses about another origin; the next sweep corrects them.
    """
    for b in range(t.bases.position.shape[0]):
        if t.bases.slide_start[b] == t.bases.slide_start[b + 1]:
            s.origin[i, b] = t.bases.position[b]
        else:
            p = slid_base(t, s, i, b, q)
            s.origin[i, b] = p
