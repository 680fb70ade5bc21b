"""Fronts of blocks with loops: assembly, elimination, solution, and the choice of independent rows, as native loops.

With δ the coordinates of a block, y the motion of the node that carries it, u the unknowns of the loops that are open
at the block, those that close there first, and c the wrench on the carrying node, a front is

    B δ + C u + G y = f,   R δ + S u + Q y = g,   c = V δ + E u + Λ y + ĉ                                  (1)

B, G and V are those of newton_blocks. The rest stands in `work` as rows of [S Q; E Λ], Q and Λ in STATE columns, and Λ
without the part of newton_blocks. Elimination of δ, and then of the closing loops, leaves a front of the open ones:

    S − R B⁻¹ C,  Q − R B⁻¹ G,  E − V B⁻¹ C                                                               (2)
    [S_oo Q_o; E_o Λ] − [S_oc; E_c] S_cc⁻¹ [S_co Q_c]                                                     (3)

The carrying block sees y = Y_k δ + y and adds L_kᵀ c to its rows. Forces of loops are eliminated after all that they
move, so that S_cc is the matrix of a system of its own, and regular if the loops are independent; rows are swapped
within it.

Independent rows, which `bordered` finds by QR with row exchange of all rows A in the units of the coordinates, are
found here block by block. The columns of A come from the tips to the base; reflections turn those of the outer blocks
into as many columns as there are rows of open loops, and rows are chosen where their loop closes, since all of their
columns are known there:

    A D = [X_c; X_o],   X_c Qᵀ = [T 0],   X_o Qᵀ = [· X_o']   for the chosen rows, the largest remainder first    (4)

X_o' goes on to the carrying block. A row counts as dependent, as in bordered, if its remainder is no larger than the
rounding of the largest row.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportReturnType=false
# pyright: reportArgumentType=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3
from lissom.lie.native import native_functions
from lissom.lie.types import vec3, vec6
from lissom.passes.blocks import STATE, Blocks, Fronts
from lissom.passes.columns import Columns, Matrix
from lissom.systems.block_elimination import Pivots

native = native_functions("systems/fronts.h", STATE=STATE)


@wp.func_native(native("clear_front"))
def clear_front(y: Blocks, z: Fronts, i: int, e: int, work: Matrix, C: Matrix, R: Matrix):
    """The front of block e, C and R = 0."""
    ...


@wp.func_native(native("add_row"))
def add_row(
    x: Columns, y: Blocks, z: Fronts, i: int, e: int, k: int, at: int, part: int, r: vec3, f: vec6, J: Matrix,
    work: Matrix, R: Matrix,
):  # fmt: skip
    """Add to row `at` of the front of block e its response f, about a point at r, to one part of the motion of
    node k."""
    ...


@wp.func_native(native("add_column"))
def add_column(
    x: Columns, y: Blocks, z: Fronts, i: int, e: int, k: int, at: int, r: vec3, f: vec6, L: Matrix, work: Matrix,
    C: Matrix,
):  # fmt: skip
    """Add to unknown `at` of the front of block e the wrench f about a point at r, which it puts on node k."""
    ...


@wp.func_native(native("merge_front"))
def merge_front(z: Fronts, i: int, e: int, child: int, front: Matrix, work: Matrix):
    """S of the front of block e += S of that of a child."""
    ...


@wp.func_native(native("front_row"))
def front_row(z: Fronts, i: int, e: int, at: int, part: int, front: Matrix) -> vec6:
    """One part of row `at` of Q of a front that waits, or of Λ behind its open unknowns."""
    ...


@wp.func_native(native("front_column"))
def front_column(z: Fronts, i: int, e: int, at: int, front: Matrix) -> vec6:
    """Column `at` of E of a front that waits."""
    ...


@wp.func_native(native("reduce_front"))
def reduce_front(
    y: Blocks, z: Fronts, i: int, e: int, B: Matrix, pivots: Pivots, answer: Matrix, V: Matrix, C: Matrix, R: Matrix,
    work: Matrix, gross: Matrix,
):  # fmt: skip
    """(2) for block e, C becoming B⁻¹ C; gross gets the sizes of what is taken from the diagonal of S."""
    ...


@wp.func_native(native("close_front"))
def close_front(
    z: Fronts, i: int, e: int, own: Matrix, gross: Matrix, swap: Pivots, work: Matrix
) -> int:  # fmt: skip
    """(3) for block e, `own` being added to the diagonal of S_cc, and its factors. Returns 0, −1 where a pivot is zero
    or not finite, or 1 where one is so small beside what it is the difference of that rounding may have made it."""
    ...


@wp.func_native(native("store_front"))
def store_front(z: Fronts, i: int, e: int, work: Matrix, kept: Matrix, front: Matrix):
    """Keep the factors of (3), and let the front of the open loops wait for the block below."""
    ...


@wp.func_native(native("front_inward"))
def front_inward(
    y: Blocks, z: Fronts, i: int, e: int, c: vec6, f: Matrix, R: Matrix, kept: Matrix, swap: Pivots, g: Matrix,
    local: Matrix,
) -> vec6:  # fmt: skip
    """g of the loops open at block e with δ and the loops that close there eliminated, and c with these, from B⁻¹ f."""
    ...


@wp.func_native(native("front_outward"))
def front_outward(
    y: Blocks, z: Fronts, i: int, e: int, x: vec6, w: vec6, m: vec6, C: Matrix, kept: Matrix, u: Matrix, local: Matrix,
    f: Matrix,
):  # fmt: skip
    """The unknowns of the loops that close at block e, which hangs on what moves by (x, w, m), and what all of its
    loops do to δ."""
    ...


@wp.func_native(native("take_children"))
def take_children(y: Blocks, z: Fronts, i: int, e: int, front: Matrix, work: Matrix) -> int:
    """The rows at block e with the columns that the blocks behind it left; how many these are."""
    ...


@wp.func_native(native("pass_block"))
def pass_block(
    x: Columns, y: Blocks, i: int, e: int, k: int, at: int, given: int, sign: wp.float64, f: vec6, L: Matrix,
    scale: wp.array(dtype=wp.float64), work: Matrix,
):  # fmt: skip
    """Columns of the coordinates of block e in one row through node k, behind `given` other columns."""
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
    """(4) for block e: mark the rows chosen, and let what is left of those of open loops wait for the block below."""
    ...


@wp.func(inline=False)
def put_passing(
    x: Columns, y: Blocks, z: Fronts, i: int, e: int, given: int, centre: vec3, rows: wp.array2d(dtype=vec6),
    L: Matrix, scale: wp.array(dtype=wp.float64), work: Matrix,
):  # fmt: skip
    """Columns of the coordinates of block e in all rows of loops with ends behind it, as wrenches in the base."""
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
