"""The inertia of a rigid node, inside kernels: a constant 6x6 matrix M in the node's own frame.

    M = [[J, C], [Cᵀ, m]],   C = hat(d) with the first moment d if m is the same in every direction        (1)
    F = M a − ad_ηᵀ M η                                                                                    (2)
    δF = M δa − ad_δηᵀ M η − ad_ηᵀ M δη                                                                    (3)
    Ad_g⁻ᵀ M Ad_g⁻¹ in the base frame                                                                      (4)
    Y = ½ (adbar_{Mη} − ad_ηᵀ M − M ad_η),   Y η = −ad_ηᵀ M η                                              (5)

Added inertia of a fluid makes m depend on the direction. The inertia of a deformable body depends on its shape; it is
that of `deforming`.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.se3 import rate_of_momentum
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes.scratch import Direction, Scratch


@wp.func
def first_moment(t: Tables, k: int) -> vec3:
    """d = m c of a node whose C is hat(d)."""
    return vec3(t.node[k].C[2, 1], t.node[k].C[0, 2], t.node[k].C[1, 0])


@wp.func
def apply(t: Tables, k: int, y: vec6) -> vec6:
    """M y in the node's frame."""
    w = se3.angular(y)
    u = se3.linear(y)
    if t.node[k].is_plain:
        d = first_moment(t, k)
        return se3.join(t.node[k].J * w + wp.cross(d, u), t.node[k].m[0, 0] * u - wp.cross(d, w))
    C = t.node[k].C
    return se3.join(t.node[k].J * w + C * u, wp.transpose(C) * w + t.node[k].m * u)


@wp.func
def newton_euler(t: Tables, s: Scratch, i: int, k: int) -> vec6:
    """Wrench (2) that the motion of the node requires, in the base frame."""
    R = s.node[i, k].R
    p = s.node[i, k].p
    eta_B = se3.Ad_inverse(R, p, s.node[i, k].eta)
    acc_B = se3.Ad_inverse(R, p, s.node[i, k].acc)
    F_B = apply(t, k, acc_B) + se3.coad(eta_B, apply(t, k, eta_B))
    return se3.Ad_dual(R, p, F_B)


@wp.func
def newton_euler_change(t: Tables, s: Scratch, d: Direction, i: int, k: int) -> vec6:
    """Change (3) of the wrench (2) along a direction, in the base frame."""
    R = s.node[i, k].R
    p = s.node[i, k].p
    eta = s.node[i, k].eta
    w = d.node[i, k].w
    eta_B = se3.Ad_inverse(R, p, eta)
    d_eta_B = se3.Ad_inverse(R, p, w)
    d_acc_B = se3.Ad_inverse(R, p, d.node[i, k].z - se3.ad(eta, w))
    F_B = apply(t, k, d_acc_B)
    F_B += se3.coad(d_eta_B, apply(t, k, eta_B))
    F_B += se3.coad(eta_B, apply(t, k, d_eta_B))
    return se3.Ad_dual(R, p, F_B)


@wp.func
def momentum(t: Tables, s: Scratch, i: int, k: int):
    """Momentum M η of the node in its own axes, about its origin, and its kinetic energy."""
    eta = se3.Ad_inverse(s.node[i, k].R, s.node[i, k].p, s.node[i, k].eta)
    y = apply(t, k, eta)
    return y, so3.HALF * wp.dot(eta, y)


@wp.func
def moved(R: mat3, p: vec3, J_B: mat3, C_B: mat3, m_B: mat3) -> mat6:
    """(4) of the inertia [[J, C], [Cᵀ, m]] of a frame with the pose (R, p)."""
    Rt = wp.transpose(R)
    J = R * J_B * Rt
    C = R * C_B * Rt
    m = R * m_B * Rt
    C_p = C + so3.cross_columns(p, m)
    J_p = J + so3.cross_columns(p, wp.transpose(C_p)) + wp.transpose(so3.cross_columns(p, wp.transpose(C)))
    return se3.block(J_p, C_p, wp.transpose(C_p), m)


@wp.func
def spatial_inertia(t: Tables, s: Scratch, i: int, k: int) -> mat6:
    """(4) of the node."""
    R = s.node[i, k].R
    p = s.node[i, k].p
    if t.node[k].is_plain:  # J about p is J − d^p^ − p^d^ − m p^p^
        m = t.node[k].m[0, 0]
        d = R * first_moment(t, k)
        half = d + (so3.HALF * m) * p
        around = so3.diagonal_plus(so3.TWO * wp.dot(half, p), vec3()) - so3.symmetric_outer(half, p)
        first = so3.hat(d + m * p)
        J = R * t.node[k].J * wp.transpose(R)
        return se3.block(J + around, first, -first, so3.diagonal_plus(m, vec3()))
    return moved(R, p, t.node[k].J, t.node[k].C, t.node[k].m)


@wp.func
def coriolis(s: Scratch, i: int, k: int, M: mat6) -> mat6:
    """Y of (5) with the inertia M, both in the base frame."""
    return so3.HALF * rate_of_momentum(M, s.node[i, k].eta)
