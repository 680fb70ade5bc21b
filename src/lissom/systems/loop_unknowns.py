"""Unknowns of loops in elimination block by block, inside kernels: for accelerations and for steps onto the loops,
their forces.

Those of rows that are left out keep a row of the identity.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.types import by_reference, vec6
from lissom.model.tables import Tables
from lissom.passes.column_tables import Matrix
from lissom.passes.scratch import Scratch
from lissom.systems.bordered import LoopRows
from lissom.systems.loops import loop_gap, residual_row, velocity_row


@wp.struct
class LoopUnknownsStruct:
    """By unknown its own diagonal, that of a row that is kept (zero unless the caller asks for more), the row for
    x_A − x_B, and on A and on B in turn its wrench and that of its right side, in the base frame."""

    own: Matrix
    damping: Matrix
    pull: wp.array2d(dtype=vec6)
    push: wp.array2d(dtype=vec6)
    known: wp.array2d(dtype=vec6)


LoopUnknowns = by_reference(LoopUnknownsStruct)


@wp.func
def put_force(p: LoopUnknowns, i: int, row: int, slot: int, y: vec6):
    """What the force of a row does, and asks of the ends of its loop: y, or nothing where the row is left out."""
    f = vec6()
    p.own[i, row] = so3.ONE
    if slot >= 0:
        f = y
        p.own[i, row] = p.damping[i, row]
    p.pull[i, row] = f
    p.push[i, 2 * row] = -f
    p.push[i, 2 * row + 1] = f
    p.known[i, 2 * row] = vec6()
    p.known[i, 2 * row + 1] = vec6()


@wp.func(inline=False)
def put_forces(t: Tables, s: Scratch, p: LoopUnknowns, i: int, loops: LoopRows):
    """What each unknown does to the ends of its loop and what its row of A asks of them, for accelerations."""
    for loop in range(t.loops.node.shape[0]):
        g = loop_gap(t, s, i, loop)
        for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
            put_force(p, i, row, loops.slot[i, row], se3.Ad_dual(g.R_B, g.p_B, velocity_row(t, g, loop, row)))


@wp.func(inline=False)
def put_residuals(t: Tables, s: Scratch, p: LoopUnknowns, i: int, loops: LoopRows):
    """The same with rows of A_q, which the residuals of open loops follow."""
    for loop in range(t.loops.node.shape[0]):
        g = loop_gap(t, s, i, loop)
        for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
            put_force(p, i, row, loops.slot[i, row], se3.Ad_dual(g.R_B, g.p_B, residual_row(t, g, loop, row)))
