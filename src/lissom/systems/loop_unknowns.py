"""Unknowns of loops in elimination block by block, inside kernels: for accelerations, their forces.

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
from lissom.systems.loops import loop_gap, velocity_row


@wp.struct
class LoopUnknownsStruct:
    """By unknown its own diagonal, the row for x_A − x_B, and on A and on B in turn its wrench and that of its right
    side, in the base frame."""

    own: Matrix
    pull: wp.array2d(dtype=vec6)
    push: wp.array2d(dtype=vec6)
    known: wp.array2d(dtype=vec6)


LoopUnknowns = by_reference(LoopUnknownsStruct)


@wp.func(inline=False)
def put_forces(t: Tables, s: Scratch, p: LoopUnknowns, i: int, loops: LoopRows):
    """What each unknown does to the ends of its loop and what its row asks of them, for accelerations."""
    for loop in range(t.loops.node.shape[0]):
        g = loop_gap(t, s, i, loop)
        for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
            y = se3.Ad_dual(g.R_B, g.p_B, velocity_row(t, g, loop, row))
            p.own[i, row] = so3.ZERO
            if loops.slot[i, row] < 0:
                y = vec6()
                p.own[i, row] = so3.ONE
            p.pull[i, row] = y
            p.push[i, 2 * row] = -y
            p.push[i, 2 * row + 1] = y
            p.known[i, 2 * row] = vec6()
            p.known[i, 2 * row + 1] = vec6()
