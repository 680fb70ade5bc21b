"""Accelerations under constraints, inside kernels.

    M a − Aᵀ λ = f,   A a = −Ȧ v − 2 p A v − p² e                                                         (1)

p = 0 but where an integrator asks to be pulled back onto the loops; a coordinate with a prescribed motion has the
acceleration of that, and its row of (1) is replaced. Source: Mathew 2025 eqs. (46)-(49).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import so3
from lissom.model.tables import Tables
from lissom.passes.column_tables import Columns
from lissom.passes.linear_solve import lu_factor, lu_solve
from lissom.systems.bordered import LoopRows, choose_independent, put_constrained

Rows = wp.array2d(dtype=wp.float64)


@wp.func
def hold_prescribed(t: Tables, n: int, width: int, i: int, given: Rows, M: Rows, b: Rows):
    """Rows and columns of prescribed coordinates as in the identity of size n, with the given values on the right."""
    for e in range(t.prescribed.dof.shape[0]):
        k = t.prescribed.dof[e]
        for j in range(n):
            M[i, k * width + j] = so3.ZERO
            M[i, j * width + k] = so3.ZERO
        M[i, k * width + k] = so3.ONE
        b[i, k] = given[i, k]


@wp.func
def solve_constrained(
    t: Tables, x: Columns, i: int, given: Rows, pull: wp.float64, M: Rows, loops: LoopRows, a: Rows
) -> int:
    """a and λ of (1), the force without constraints being in a; 1 + the index of a pivot that vanished, or 0."""
    m = loops.force.shape[1]
    n = t.nv + choose_independent(x, i, loops)
    put_constrained(t.nv, m, x.width, loops.width, i, M, loops.A, loops.slot, loops.units, loops.matrix)
    for j in range(t.nv):
        loops.unknown[i, j] = loops.units[i, j] * a[i, j]
    for e in range(t.prescribed.dof.shape[0]):
        loops.units[i, t.prescribed.dof[e]] = so3.ONE  # what is held has its own unit
    for row in range(m):
        at = loops.slot[i, row]
        if at >= 0:
            missing = loops.acceleration[i, row] + pull * (so3.TWO * loops.rate[i, row] + pull * loops.gap[i, row])
            loops.unknown[i, t.nv + at] = -loops.units[i, t.nv + at] * missing
    hold_prescribed(t, n, loops.width, i, given, loops.matrix, loops.unknown)
    pivot = lu_factor(n, loops.width, i, loops.matrix, loops.factors, loops.pivots)
    if pivot == 0:
        lu_solve(n, loops.width, i, loops.matrix, loops.factors, loops.pivots, loops.unknown)
        for j in range(t.nv):
            a[i, j] = loops.units[i, j] * loops.unknown[i, j]
        for row in range(m):
            at = loops.slot[i, row]
            if at >= 0:
                loops.force[i, row] = loops.units[i, t.nv + at] * loops.unknown[i, t.nv + at]
    return pivot
