"""Elastic tendons inside kernels: their tensions, and what their stretch adds to derivatives.

A tendon of length L(q) along its path, stiffness k and slack length L₀, of which a length u is pulled in, carries

    T = max(0, k (L − L₀ + u))                                                                            (1)

With b = −(∂L/∂q)ᵀ it adds −b T to the residual ID − B u, and to the derivative of that with respect to q

    −T ∂b/∂q + k b bᵀ,   the second term where it is taut                                                 (2)

The first term is that of any tendon of tension T, in tendon_derivatives. At the slack length itself, to rounding, a
tendon counts as taut: it begins to pull there.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false
# pyright: reportArgumentType=false

from __future__ import annotations

import warp as wp

from lissom.forces.pulls import add_pull_force
from lissom.forces.tendons import add_segment_wrench, path_length, path_tangent, project_at, strain_at
from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.types import vec6
from lissom.model.tables import Tables
from lissom.passes import group
from lissom.passes.column_tables import Matrix
from lissom.passes.rare_kinds import is_stored, may_stretch
from lissom.passes.scratch import Scratch
from lissom.passes.traversal import project

native = native_functions("passes/rows.h")


BEGINS_TO_PULL = 1e-12  # of the slack length: what that may be short of where a tendon counts as taut
BEGINS = wp.constant(wp.float64(BEGINS_TO_PULL))
NEXT_TO_NOTHING = wp.constant(wp.float64(1e-300))  # the tension that says of a tendon that it begins to pull


@wp.func(inline=False)
def pull_elastic_tendons(t: Tables, s: Scratch, i: int, q: Matrix):
    """The lengths of elastic tendons pulled in become their tensions by (1); s holds the poses."""
    if may_stretch():
        for e in range(t.spools.channel.shape[0]):
            c = t.spools.channel[e]
            stretch = path_length(t, s, i, c, q) - t.spools.slack[e] + s.channel.size[i, c]
            s.channel.size[i, c] = so3.ZERO
            if stretch > -BEGINS * t.spools.slack[e]:
                s.channel.size[i, c] = wp.max(NEXT_TO_NOTHING, t.spools.stiffness[e] * stretch)


@wp.func(inline=False)
def tendon_row(t: Tables, s: Scratch, i: int, c: int, q: Matrix):
    """b of tendon c into s.channel.row, from the poses in s; the wrenches and own forces there are lost."""
    for k in range(t.n_dynamic):
        s.node[i, k].F = vec6()
    for j in range(s.deforming.own.shape[1]):
        s.deforming.own[i, j] = so3.ZERO
    for j in range(t.segments.channel.shape[0]):
        if t.segments.channel[j] == c:
            add_segment_wrench(t, s, i, j, -so3.ONE)
    project(t, s, i, s.channel.row)
    for k in range(t.points.xi.shape[0]):
        for e in range(t.points.path_start[k], t.points.path_start[k + 1]):
            if t.paths.channel[e] == c:
                phi_q = strain_at(t.points.phi, t.points.run_start[k], t.points.run_v[k], i, t.points.q_shift[k], q)
                direction, _stretch = path_tangent(t, t.points.xi[k] + phi_q, e)
                f = t.paths.weight[e] * direction
                y = se3.join(wp.cross(t.paths.offset[e], f), f)
                project_at(t.points.phi, t.points.run_start[k], t.points.run_v[k], i, 0, y, s.channel.row)
    for e in range(t.pulls.channel.shape[0]):
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
        if is_stored(t.node[k].has_quaternion):
            A, B = group.move_tangent(t, i, k, move)
            y = se3.apply_transpose(A, B, group.twist(t, s.channel.row, i, k))
            start = t.node[k].v_start
            for c in range(6):
                if start + c < t.node[k].v_stop:
                    s.channel.moved_row[i, start + c] = y[c]


@wp.func(inline=False)
def add_tendon_stretch(
    t: Tables, s: Scratch, i: int, width: int, q: Matrix, move: Matrix, by_q: wp.float64, dq: Matrix
):  # fmt: skip
    """dq += by_q k b bᵀ T(move) of (2) of the taut elastic tendons; the wrenches in s are lost."""
    if may_stretch():
        for e in range(t.spools.channel.shape[0]):
            c = t.spools.channel[e]
            if s.channel.size[i, c] > so3.ZERO:
                tendon_row(t, s, i, c, q)
                move_row(t, s, i, move)
                add_outer_product(t.nv, width, i, by_q * t.spools.stiffness[e], s.channel.row, s.channel.moved_row, dq)
