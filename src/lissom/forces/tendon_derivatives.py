"""Derivatives of the generalised force of tendons, chambers and controlled wrenches, inside kernels.

    inside a rod:   ∂(B u)/∂q = −Σ w f/|𝒯| Φᵀ [d^; 1] (1 − ttᵀ) [−d^, 1] Φ                                 (1)
    straight piece: the force f on its end at x_a changes by (f/l) (1 − nnᵀ)(δx_b − δx_a)                  (2)

What the recursion needs of (2) is the change of −F_ext beyond that of a wrench carried along by its node:

    H_a = [x_a^; 1] (K [−x_a^, 1] − f^ [1, 0]) = [x_a^; 1] K [−x_b^, 1],   K = (f/l)(1 − nnᵀ)               (3)

with which both nodes answer to each other as in touching, (1) and (2), where H_a stands for K. A wrench (m; f) at x
that is fixed in the world has

    H = −[[x^ f^ + m^, 0], [f^, 0]],   one that turns with its node none                                   (4)

Source: Mathew 2025 (D63) for (1), with the opposite sign of u.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.forces.answers import tie_nodes
from lissom.forces.distances import SHORT
from lissom.forces.tendons import input_wrench, path_tangent, segment_end, strain_at
from lissom.lie import se3, so3
from lissom.lie.spatial import adbar_matrix
from lissom.lie.types import mat3, mat6, vec3
from lissom.model.tables import Tables
from lissom.passes.column_products import add_point_block
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.rare_kinds import may_be_tied
from lissom.passes.scratch import Scratch


@wp.func
def at_point(x: vec3, K: mat3, C: mat3) -> mat6:
    """[x^; 1] (K [−x^, 1] + C [1, 0]): wrench at the origin of a force at x that answers to its motion by K and to its
    rotation by C."""
    left = C - K * so3.hat(x)
    return se3.block(so3.cross_columns(x, left), so3.cross_columns(x, K), left, K)


@wp.func
def add_path_derivatives(t: Tables, x: Columns, i: int, q: Matrix, size: Matrix, by_q: wp.float64, dq: Matrix):
    """dq −= by_q ∂(B u)/∂q of the paths inside rods, (1)."""
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
def respond_to_segments(t: Tables, s: Scratch, i: int, H: wp.array2d(dtype=mat6)):
    """(3) of every straight piece into H of its two nodes; what ties them is listed."""
    if may_be_tied():
        for j in range(t.segments.channel.shape[0]):
            x_a = segment_end(t, s, i, j, 0)
            x_b = segment_end(t, s, i, j, 1)
            length = wp.max(wp.length(x_b - x_a), SHORT)
            n = (x_b - x_a) / length
            tension = s.channel.size[i, t.segments.channel[j]]
            pull = tension * n
            stiffness = wp.where(length > SHORT, tension / length, so3.ZERO)
            K = so3.quadratic(stiffness, vec3(), -stiffness * n, n)
            on_a = at_point(x_a, K, -so3.hat(pull))
            bar = adbar_matrix(se3.join(wp.cross(x_a, pull), pull))
            a = t.segments.node[j, 0]
            b = t.segments.node[j, 1]
            if a >= 0:
                H[i, a] = H[i, a] + on_a
            if b >= 0:
                H[i, b] = H[i, b] + on_a - bar
            tie_nodes(s, i, a, b, on_a, mat6(), bar, 0)


@wp.func
def respond_to_wrenches(t: Tables, s: Scratch, i: int, H: wp.array2d(dtype=mat6)):
    """(4) of the controlled wrenches into H of their nodes."""
    for j in range(t.wrenches.channel.shape[0]):
        if t.wrenches.is_body[j] == 0:
            m, f, x = input_wrench(t, s, i, j)
            k = t.wrenches.node[j]
            H[i, k] = H[i, k] - se3.block(so3.hat(x) * so3.hat(f) + so3.hat(m), mat3(), so3.hat(f), mat3())
