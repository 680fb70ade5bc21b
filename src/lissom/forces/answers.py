"""How what acts answers to the motion of the nodes, as the terms have left it in s.near, inside kernels.

There is room for N only where something may answer to twists, and for pairs only where something may tie two nodes.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.types import mat6
from lissom.model.tables import Tables
from lissom.passes.column_products import add_cross_product
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.rare_kinds import may_be_tied
from lissom.passes.scratch import NodeChange, Scratch


@wp.func
def clear_answers(t: Tables, s: Scratch, i: int):
    """Forget what was left for another state."""
    if s.near.N.shape[0] > 0:
        for k in range(t.n_dynamic):
            s.near.N[i, k] = mat6()
    if s.near.touching.shape[0] > 0:
        s.near.touching[i] = 0


@wp.func
def tie_nodes(s: Scratch, i: int, a: int, b: int, K: mat6, D: mat6, bar: mat6, is_damped: int):
    """List what ties two nodes, of which neither is the world: K, N (here D) and W̄ of touching (1) and (2)."""
    if a >= 0 and b >= 0:
        at = s.near.touching[i]
        s.near.a[i, at] = a
        s.near.b[i, at] = b
        s.near.K[i, at] = K
        s.near.D[i, at] = D
        s.near.bar[i, at] = bar
        s.near.is_damped[i, at] = is_damped
        s.near.touching[i] = at + 1


@wp.func
def with_response(s: Scratch, i: int, k: int, N: mat6) -> mat6:
    """N of node k with how what acts answers to its twist."""
    if s.near.N.shape[0] > 0:
        return N + s.near.N[i, k]
    return N


@wp.func
def couple_tied(s: Scratch, x: Columns, i: int, k: int, of_twist: int, J: Matrix, W: Matrix):
    """Add to the running sum W of node k how its wrench answers to the columns J of the nodes that something ties it
    to, by touching (1) and (2)."""
    if may_be_tied() and s.near.touching.shape[0] > 0:
        couple_pairs(s, x, i, k, of_twist, J, W)


@wp.func(inline=False)
def couple_pairs(s: Scratch, x: Columns, i: int, k: int, of_twist: int, J: Matrix, W: Matrix):
    """The same, where there is room for pairs."""
    for j in range(s.near.touching[i]):
        counts = of_twist == 0 or s.near.is_damped[i, j] != 0
        if s.near.a[i, j] == k and counts:
            if of_twist == 1:
                add_cross_product(x, i, k, s.near.b[i, j], -s.near.D[i, j], J, W)
            else:
                add_cross_product(x, i, k, s.near.b[i, j], -s.near.K[i, j], J, W)
        if s.near.b[i, j] == k and counts:
            if of_twist == 1:
                add_cross_product(x, i, k, s.near.a[i, j], -s.near.D[i, j], J, W)
            else:
                add_cross_product(x, i, k, s.near.a[i, j], s.near.bar[i, j] - s.near.K[i, j], J, W)


@wp.func(inline=False)
def change_by_answers(
    t: Tables, s: Scratch, i: int, H: wp.array2d(dtype=mat6), d: wp.array2d(dtype=NodeChange)
):  # fmt: skip
    """Add to the changes of the wrenches what H and s.near answer to those of the motion."""
    for k in range(t.n_dynamic):
        d[i, k].F = d[i, k].F + H[i, k] * d[i, k].x
    if s.near.N.shape[0] > 0:
        for k in range(t.n_dynamic):
            d[i, k].F = d[i, k].F + s.near.N[i, k] * d[i, k].w
    if may_be_tied() and s.near.touching.shape[0] > 0:
        for j in range(s.near.touching[i]):
            a = s.near.a[i, j]
            b = s.near.b[i, j]
            d[i, a].F = d[i, a].F - s.near.K[i, j] * d[i, b].x - s.near.D[i, j] * d[i, b].w
            d[i, b].F = d[i, b].F + (s.near.bar[i, j] - s.near.K[i, j]) * d[i, a].x - s.near.D[i, j] * d[i, a].w
