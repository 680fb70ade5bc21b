"""q ⊕ Δ inside kernels: coordinates add, a quaternion turns by exp(Δ), a free joint moves by exp(Δ) of SE(3).

The same as `integrate` of configuration, which is made of arrays.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.types import vec3
from lissom.model.tables import EXP, FREE, Tables
from lissom.sweep import traversal

Rows = wp.array2d(dtype=wp.float64)


@wp.func
def move_configuration(t: Tables, i: int, start: Rows, move: Rows, q: Rows):
    """q = start ⊕ move for instance i."""
    for j in range(t.nv):
        at = t.dof_q[j]
        if at >= 0:
            q[i, at] = start[i, at] + move[i, j]
    if q.shape[1] != t.nv:
        for k in range(t.n_nodes):
            if t.node[k].kind != EXP:
                move_group(t, i, k, start, move, q)


@wp.func
def move_group(t: Tables, i: int, k: int, start: Rows, move: Rows, q: Rows):
    """The pose of a spherical or free joint."""
    at = t.node[k].v_start + t.node[k].q_shift
    Omega = traversal.group_twist(t, move, i, k)
    w = se3.angular(Omega)
    turn = half_turn(w)
    s0 = start[i, at]
    s = vec3(start[i, at + 1], start[i, at + 2], start[i, at + 3])
    r = vec3(turn[1], turn[2], turn[3])
    c = s0 * turn[0] - wp.dot(s, r)
    x = s0 * r + turn[0] * s + wp.cross(s, r)
    scale = so3.ONE / wp.sqrt(c * c + wp.dot(x, x))
    q[i, at] = scale * c
    for e in range(3):
        q[i, at + 1 + e] = scale * x[e]
    if t.node[k].kind == FREE:
        _turned, p = se3.exp(Omega, so3.stumpff(wp.dot(w, w)))
        moved = traversal.quaternion_rotation(start, i, at) * p
        for e in range(3):
            q[i, at + 4 + e] = start[i, at + 4 + e] + moved[e]


@wp.func
def put_configuration_rate(t: Tables, i: int, q: Rows, v: Rows, out: Rows):
    """out = q̇ for instance i: v, but ½ q (0, ω) of quaternions and R v of a free joint's position."""
    for j in range(t.nv):
        at = t.dof_q[j]
        if at >= 0:
            out[i, at] = v[i, j]
    if q.shape[1] != t.nv:
        for k in range(t.n_nodes):
            if t.node[k].kind != EXP:
                at = t.node[k].v_start + t.node[k].q_shift
                twist = traversal.group_twist(t, v, i, k)
                w = so3.HALF * se3.angular(twist)
                c = q[i, at]
                x = vec3(q[i, at + 1], q[i, at + 2], q[i, at + 3])
                turned = c * w + wp.cross(x, w)
                out[i, at] = -wp.dot(x, w)
                for e in range(3):
                    out[i, at + 1 + e] = turned[e]
                if t.node[k].kind == FREE:
                    moved = traversal.quaternion_rotation(q, i, at) * se3.linear(twist)
                    for e in range(3):
                        out[i, at + 4 + e] = moved[e]


@wp.func
def half_turn(w: vec3) -> wp.vec4d:
    """Unit quaternion (w, x, y, z) of a rotation vector; by the series of sin(x)/x where the angle is small."""
    square = so3.HALF * so3.HALF * wp.dot(w, w)
    factor = so3.HALF * (so3.ONE - square / wp.float64(6.0) * (so3.ONE - square / wp.float64(20.0)))
    if square > wp.float64(1e-4):
        half = wp.sqrt(square)
        factor = so3.HALF * wp.sin(half) / half
    r = factor * w
    return wp.vec4d(wp.cos(wp.sqrt(square)), r[0], r[1], r[2])
