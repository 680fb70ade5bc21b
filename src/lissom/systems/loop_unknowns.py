"""Unknowns of loops in the elimination of blocks: forces, and in implicit steps also relative displacements.

For accelerations and for steps onto the loops the unknowns are the forces. Dependent rows have rows of the identity.

In implicit steps the wrench of a loop with forces λ depends on the poses of both ends, by H (x_A − x_B) on A and
U (x_A − x_B) on B (loops). A loop then has six unknowns: the changes of its forces, and the components s of
d = x_A − x_B that no row determines,

    [Z; N] d = (e; s),   d = Z⁺ e + N⁺ s       Z the rows of A_q, N rows of the identity that complete them       (1)

with the rows N d − s = 0. With s as unknowns the wrench on each end depends on unknowns only, not on the pose of the
other end. The products of H and U with Z⁺ e are known, since e is known.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportIndexIssue=false, reportInvalidTypeForm=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.types import by_reference, mat6, vec6
from lissom.model.tables import Tables
from lissom.passes.columns import Matrix
from lissom.passes.scratch import Scratch
from lissom.systems.bordered import LoopRows
from lissom.systems.loops import loop_state, residual_row, velocity_row, wrench_stiffness

native = native_functions("systems/loops.h")


@wp.struct
class LoopUnknownsStruct:
    """The coefficients of each unknown, in the base frame.

    diagonal: its diagonal entry. damping: diagonal entry for an independent row, zero unless the caller sets it. row:
    coefficients of x_A − x_B. wrench, known_wrench: wrenches of the unknown and of its right side, on A (entry 2 u) and
    on B (entry 2 u + 1).
    """

    diagonal: Matrix
    damping: Matrix
    row: wp.array2d(dtype=vec6)
    wrench: wp.array2d(dtype=vec6)
    known_wrench: wp.array2d(dtype=vec6)


LoopUnknowns = by_reference(LoopUnknownsStruct)


@wp.func
def put_force(p: LoopUnknowns, i: int, row: int, slot: int, y: vec6):
    """Set the coefficients of the force of a row: the wrench y on the ends of its loop, and the row y; both are zero
    for a dependent row (slot < 0)."""
    f = vec6()
    p.diagonal[i, row] = so3.ONE
    if slot >= 0:
        f = y
        p.diagonal[i, row] = p.damping[i, row]
    p.row[i, row] = f
    p.wrench[i, 2 * row] = -f
    p.wrench[i, 2 * row + 1] = f
    p.known_wrench[i, 2 * row] = vec6()
    p.known_wrench[i, 2 * row + 1] = vec6()


@wp.func(inline=False)
def put_forces(t: Tables, s: Scratch, p: LoopUnknowns, i: int, loops: LoopRows):
    """Set the coefficients of all forces for accelerations: their wrenches, and rows of A."""
    for loop in range(t.loops.node.shape[0]):
        g = loop_state(t, s, i, loop)
        for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
            put_force(p, i, row, loops.slot[i, row], se3.Ad_dual(g.R_B, g.p_B, velocity_row(t, s, g, i, loop, row)))


@wp.func(inline=False)
def put_residuals(t: Tables, s: Scratch, p: LoopUnknowns, i: int, loops: LoopRows):
    """Set the coefficients of all forces for steps onto the loops: their wrenches, and rows of A_q."""
    for loop in range(t.loops.node.shape[0]):
        g = loop_state(t, s, i, loop)
        for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
            put_force(p, i, row, loops.slot[i, row], se3.Ad_dual(g.R_B, g.p_B, residual_row(t, s, g, i, loop, row)))


@wp.func_native(native("complete_rows"))
def complete_rows(matrix: mat6, mask: int) -> mat6:
    """The rows of a matrix whose bits in mask are set; the others are replaced by rows of the identity so that the
    matrix is regular."""
    ...


@wp.func_native(native("inverse_of"))
def inverse_of(matrix: mat6) -> mat6:
    """The inverse of a regular matrix."""
    ...


@wp.func(inline=False)
def put_changes(t: Tables, s: Scratch, p: LoopUnknowns, i: int, loops: LoopRows):
    """Set the coefficients of all unknowns of (1) for implicit steps."""
    for loop in range(t.loops.node.shape[0]):
        g = loop_state(t, s, i, loop)
        on_A, on_B = wrench_stiffness(t, s, g, i, loop, loops.force)
        known = mat6()
        mask = wp.int32(0)
        first = t.loops.row_start[loop]
        for row in range(first, t.loops.row_start[loop + 1]):
            if loops.slot[i, row] >= 0:
                mask += 1 << (row - first)
                z = residual_row(t, s, g, i, loop, row)
                for j in range(6):
                    known[row - first, j] = z[j]
        every = complete_rows(known, mask)
        inverse = inverse_of(every)
        for k in range(6):
            u = 6 * loop + k
            p.row[i, u] = se3.Ad_dual(g.R_B, g.p_B, row_of(every, k))
            d = se3.Ad(g.R_B, g.p_B, column_of(inverse, k))
            if (mask >> k) & 1 != 0:
                y = se3.Ad_dual(g.R_B, g.p_B, velocity_row(t, s, g, i, loop, first + k))
                put_unknown(p, i, u, so3.ZERO, -y, y, on_A * d, on_B * d)
            else:
                put_unknown(p, i, u, -so3.ONE, on_A * d, on_B * d, vec6(), vec6())


@wp.func
def put_unknown(
    p: LoopUnknowns, i: int, u: int, entry: wp.float64, on_A: vec6, on_B: vec6, known_A: vec6, known_B: vec6
):
    """Set the diagonal entry of unknown u, its wrenches on A and B, and those of its right side."""
    p.diagonal[i, u] = entry
    p.wrench[i, 2 * u] = on_A
    p.wrench[i, 2 * u + 1] = on_B
    p.known_wrench[i, 2 * u] = known_A
    p.known_wrench[i, 2 * u + 1] = known_B


@wp.func
def row_of(M: mat6, k: int) -> vec6:
    """A row of a matrix."""
    return vec6(M[k, 0], M[k, 1], M[k, 2], M[k, 3], M[k, 4], M[k, 5])


@wp.func
def column_of(M: mat6, k: int) -> vec6:
    """A column of a matrix."""
    return vec6(M[0, k], M[1, k], M[2, k], M[3, k], M[4, k], M[5, k])
