"""q ⊕ Δ and dq/dt inside kernels: coordinates add, stored poses move as the file of their kind says.

The same as `integrate` of configuration, which is made of arrays.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.model.tables import Tables
from lissom.passes import group
from lissom.passes.rare_kinds import is_stored

Rows = wp.array2d(dtype=wp.float64)


@wp.func
def move_configuration(t: Tables, i: int, start: Rows, move: Rows, q: Rows):
    """q = start ⊕ move for instance i."""
    for j in range(t.nv):
        at = t.dofs.q[j]
        if at >= 0:
            q[i, at] = start[i, at] + move[i, j]
    if q.shape[1] != t.nv:
        for k in range(t.n_nodes):
            if is_stored(t.node[k].has_quaternion):
                group.move(t, i, k, start, move, q)


@wp.func
def put_configuration_rate(t: Tables, i: int, q: Rows, v: Rows, out: Rows):
    """out = q̇ for instance i."""
    for j in range(t.nv):
        at = t.dofs.q[j]
        if at >= 0:
            out[i, at] = v[i, j]
    if q.shape[1] != t.nv:
        for k in range(t.n_nodes):
            if is_stored(t.node[k].has_quaternion):
                group.configuration_rate(t, i, k, q, v, out)
