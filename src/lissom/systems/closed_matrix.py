"""The matrix of newton_blocks for robots with loops, made for all blocks at once, inside kernels.

Equations and columns are those of newton_blocks; what loops add stands in loop_changes.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.forces.term import with_response
from lissom.lie import se3, so3
from lissom.lie.spatial import about, rate_of_momentum
from lissom.lie.types import mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes import kinds, traversal
from lissom.passes.column_tables import Matrix
from lissom.passes.scratch import EVERYTHING, Scratch
from lissom.systems.armature import add_armature_rows
from lissom.systems.articulated import sum_path
from lissom.systems.block_elimination import clear_row
from lissom.systems.kept_blocks import KeptBlocks
from lissom.systems.newton_blocks import move_origin, put_back


@wp.func(inline=False)
def open_kept_node(
    t: Tables, s: Scratch, b: KeptBlocks, i: int, k: int, centre: vec3, v: Matrix, a: Matrix, move: Matrix,
    c0: wp.float64, c1: wp.float64, acc_base: vec6,
):  # fmt: skip
    """Columns, path sums, M, N, H and the local term of node k as seen from a centre."""
    p, eta, acc, F = move_origin(s, i, k, centre)
    parent = t.node[k].parent
    p_below = vec3()
    eta_below = vec6()
    acc_below = vec6()
    F_below = vec6()
    if parent >= 0:
        p_below, eta_below, acc_below, F_below = move_origin(s, i, parent, centre)
    kinds.newton_columns_of_one(
        t, s, b.x, b.band, i, k, b.y.inside[k], v, a, move, c0, c1, acc_base, b.S, b.S_T, b.J, b.J_P, b.J_R, b.K
    )  # fmt: skip
    M = traversal.inertia_at(t, s, i, k)
    b.M[i, k] = M
    b.N[i, k] = rate_of_momentum(M, s.node[i, k].eta) + about(with_response(s, i, k, mat6()), -centre)
    b.H[i, k] = about(b.H[i, k], -centre)
    if parent >= 0:
        put_back(s, i, parent, p_below, eta_below, acc_below, F_below)
    put_back(s, i, k, p, eta, acc, F)


@wp.func
def make_closed_matrix(
    t: Tables, s: Scratch, b: KeptBlocks, i: int, q: Matrix, v: Matrix, a: Matrix, move: Matrix, c0: wp.float64,
    c1: wp.float64, gravity: vec3, load: wp.array(dtype=vec6), respond: wp.Function, stiffen: wp.Function,
):  # fmt: skip
    """What factor_closed_blocks needs, from what the residual at (q, v, a) left in s."""
    clear_row(i, b.K)
    for k in range(t.n_dynamic):
        b.H[i, k] = mat6()
    respond(t, s, i, gravity, load, EVERYTHING, b.H)
    stiffen(t, s, b.band, i, q, v, move, so3.ONE, c1, EVERYTHING, b.K)
    add_armature_rows(t, b.band.width, i, c0, b.K)
    acc_base = se3.join(vec3(), -gravity)
    for e in range(b.y.count):
        centre = s.node[i, b.y.node[b.y.node_start[e]]].p
        b.centre[i, e] = centre
        for m in range(b.y.node_start[e], b.y.node_start[e + 1]):
            k = b.y.node[m]
            open_kept_node(t, s, b, i, k, centre, v, a, move, c0, c1, acc_base)
            sum_path(b.x, b.y.width[e], b.y.inside[k], i, k, b.S, b.L)
