"""Which rows of loops are independent, found block by block, inside kernels.

What bordered finds by QR with row exchange of all rows A, in the units of the coordinates. Here the columns of A come
block by block from the tips to the base; reflections turn those of the blocks behind into as many columns as there are
rows of open loops, and rows are chosen where their loop closes, since all of their columns are known then:

    A D = [X_c; X_o],   X_c Qᵀ = [T 0],   X_o Qᵀ = [· X_o']   for the rows chosen, the largest that is left first    (1)

X_o' goes on to the block below. A row counts as dependent as in bordered: where not more is left of it than rounding of
the largest row could have made.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3
from lissom.lie.native import native_functions
from lissom.lie.types import vec3, vec6
from lissom.passes.block_tables import Blocks
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.front_tables import Fronts

native = native_functions("systems/fronts.h")


@wp.func_native(native("take_children"))
def take_children(y: Blocks, z: Fronts, i: int, e: int, front: Matrix, work: Matrix) -> int:
    """The rows at block e with the columns that the blocks behind it left; how many these are."""
    ...


@wp.func_native(native("pass_block"))
def pass_block(
    x: Columns, y: Blocks, i: int, e: int, k: int, at: int, given: int, sign: wp.float64, f: vec6, L: Matrix,
    scale: wp.array(dtype=wp.float64), work: Matrix,
):  # fmt: skip
    """What the coordinates of block e do to one row through node k, behind `given` other columns."""
    ...


@wp.func_native(native("add_sizes"))
def add_sizes(y: Blocks, z: Fronts, i: int, e: int, given: int, work: Matrix, size: Matrix):
    """The squares of the rows of A += those of the columns of block e."""
    ...


@wp.func_native(native("choose_closing"))
def choose_closing(
    y: Blocks, z: Fronts, i: int, e: int, given: int, largest: wp.float64, work: Matrix, mirror: Matrix, front: Matrix,
    slot: wp.array2d(dtype=wp.int32),
):  # fmt: skip
    """(1) for block e: mark the rows chosen, and let what is left of those of open loops wait for the block below."""
    ...


@wp.func(inline=False)
def put_passing(
    x: Columns, y: Blocks, z: Fronts, i: int, e: int, given: int, centre: vec3, rows: wp.array2d(dtype=vec6),
    L: Matrix, scale: wp.array(dtype=wp.float64), work: Matrix,
):  # fmt: skip
    """What the coordinates of block e do to all rows of loops with ends behind it, which are wrenches in the base."""
    for m in range(z.child_start[e], z.child_start[e + 1]):
        child = z.child[m]
        for a in range(z.up_start[child], z.up_start[child + 1]):
            at = z.up[a]
            f = about_centre(rows[i, z.who[z.who_start[e] + at]], centre)
            pass_block(x, y, i, e, y.parent[child], at, given, wp.float64(z.sign[a]), f, L, scale, work)
    for m in range(z.end_start[e], z.end_start[e + 1]):
        loop = z.end[m] / 2
        sign = wp.float64(1 - 2 * (z.end[m] % 2))
        for u in range(z.loop_start[loop], z.loop_start[loop + 1]):
            at = z.end_at[m] + u - z.loop_start[loop]
            pass_block(x, y, i, e, z.end_node[m], at, given, sign, about_centre(rows[i, u], centre), L, scale, work)


@wp.func
def about_centre(f: vec6, centre: vec3) -> vec6:
    """A wrench about a point at `centre` from that about the origin."""
    return se3.join(se3.angular(f) - wp.cross(centre, se3.linear(f)), se3.linear(f))


@wp.func(inline=False)
def row_sizes(
    x: Columns, y: Blocks, z: Fronts, i: int, centre: wp.array2d(dtype=vec3), rows: wp.array2d(dtype=vec6), L: Matrix,
    scale: wp.array(dtype=wp.float64), work: Matrix, size: Matrix,
):  # fmt: skip
    """The squares of the rows of loops in the units of the coordinates."""
    for row in range(size.shape[1]):
        size[i, row] = wp.float64(0.0)
    for e in range(y.count):
        clear_rows(y, z, i, e, work)
        put_passing(x, y, z, i, e, 0, centre[i, e], rows, L, scale, work)
        add_sizes(y, z, i, e, 0, work, size)


@wp.func(inline=False)
def choose_by_blocks(
    x: Columns, y: Blocks, z: Fronts, i: int, centre: wp.array2d(dtype=vec3), rows: wp.array2d(dtype=vec6), L: Matrix,
    scale: wp.array(dtype=wp.float64), work: Matrix, mirror: Matrix, front: Matrix, size: Matrix,
    slot: wp.array2d(dtype=wp.int32),
) -> int:  # fmt: skip
    """Number the independent ones of the rows of loops in slot, the others −1; how many there are."""
    m = slot.shape[1]
    for row in range(m):
        slot[i, row] = -1
    row_sizes(x, y, z, i, centre, rows, L, scale, work, size)
    largest = wp.float64(0.0)
    for row in range(m):
        largest = wp.max(largest, size[i, row])
    for step in range(y.count + 1):
        e = z.order[step]
        given = take_children(y, z, i, e, front, work)
        if e < y.count:
            put_passing(x, y, z, i, e, given, centre[i, e], rows, L, scale, work)
        choose_closing(y, z, i, e, given, largest, work, mirror, front, slot)
    kept = wp.int32(0)
    for row in range(m):
        if slot[i, row] >= 0:
            slot[i, row] = kept
            kept += 1
    return kept


@wp.func_native(native("clear_rows"))
def clear_rows(y: Blocks, z: Fronts, i: int, e: int, work: Matrix):
    """The rows at block e, with its own columns alone, = 0."""
    ...
