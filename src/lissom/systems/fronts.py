"""Fronts of blocks with loops: assembly, elimination, solution, and the choice of independent rows, as native loops.

With δ the coordinates of a block, y the motion of its parent node, u the unknowns of the loops that are open at the
block (first those that close there), and c the wrench on the parent node, a front is

    B δ + C u + G y = f,   R δ + S u + Q y = g,   c = V δ + E u + Λ y + ĉ                                  (1)

B, G and V are those of newton_blocks. The rest is stored in `work` as rows of [S Q; E Λ], with STATE columns for Q and
Λ; Λ does not include the part of newton_blocks. Elimination of δ, then of the closing loops, leaves a front of the open
loops:

    S − R B⁻¹ C,  Q − R B⁻¹ G,  E − V B⁻¹ C                                                               (2)
    [S_oo Q_o; E_o Λ] − [S_oc; E_c] S_cc⁻¹ [S_co Q_c]                                                     (3)

In the parent block y = Y_k δ + y, and its rows get L_kᵀ c. Forces of a loop are eliminated after all coordinates that
they move, so that S_cc is regular if the loops are independent. Rows are swapped within S_cc.

Independent rows are found block by block; `bordered` finds them by QR with row exchange of all rows A in the units of
the coordinates. The columns of A are added from the tips to the base. Householder reflections reduce the columns of the
outer blocks to as many as there are rows of open loops. Rows are chosen at the block where their loop closes, since all
of their columns are known there:

    A D = [X_c; X_o],   X_c Qᵀ = [T 0],   X_o Qᵀ = [· X_o']   for the chosen rows, the largest remainder first    (4)

X_o' passes to the parent block. As in bordered, a row is dependent if its remainder is not larger than the rounding
error of the largest row.
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
from lissom.passes.linear_algebra import Pivots

native = native_functions("systems/fronts.h", STATE=STATE)


@wp.func_native(native("clear_front"))
def clear_front(y: Blocks, z: Fronts, i: int, e: int, work: Matrix, C: Matrix, R: Matrix):
    """Set the front of block e, C and R to zero."""
    ...


@wp.func_native(native("add_row"))
def add_row(
    x: Columns, y: Blocks, z: Fronts, i: int, e: int, k: int, at: int, part: int, f: vec6, J: Matrix, work: Matrix,
    R: Matrix,
):  # fmt: skip
    """Add to row `at` of the front of block e the coefficients f of part `part` (0, 1, 2: x, w, z) of the motion of
    node k."""
    ...


@wp.func_native(native("add_column"))
def add_column(
    x: Columns, y: Blocks, z: Fronts, i: int, e: int, k: int, at: int, f: vec6, L: Matrix, work: Matrix, C: Matrix
):
    """Add to the column of unknown `at` of the front of block e its wrench f on node k."""
    ...


@wp.func_native(native("merge_front"))
def merge_front(z: Fronts, i: int, e: int, child: int, front: Matrix, work: Matrix):
    """Add S of the front of a child block to that of block e."""
    ...


@wp.func_native(native("front_row"))
def front_row(z: Fronts, i: int, e: int, at: int, part: int, front: Matrix) -> vec6:
    """Part `part` of row `at` of Q of a stored front; rows behind the open unknowns are those of Λ."""
    ...


@wp.func_native(native("front_column"))
def front_column(z: Fronts, i: int, e: int, at: int, front: Matrix) -> vec6:
    """Column `at` of E of a stored front."""
    ...


@wp.func_native(native("reduce_front"))
def reduce_front(
    y: Blocks, z: Fronts, i: int, e: int, B: Matrix, pivots: Pivots, inverse_G: Matrix, V: Matrix, C: Matrix, R: Matrix,
    work: Matrix, subtracted: Matrix,
):  # fmt: skip
    """Compute (2) for block e, with C replaced by B⁻¹ C. Add the magnitudes subtracted from the diagonal of S to
    `subtracted`."""
    ...


@wp.func_native(native("close_front"))
def close_front(
    z: Fronts, i: int, e: int, shift: Matrix, subtracted: Matrix, swap: Pivots, work: Matrix
) -> int:  # fmt: skip
    """Compute (3) for block e and the factors of S_cc, with `shift` added to the diagonal of S_cc. Returns 0; −1 if a
    pivot is zero or not finite; 1 if a pivot is not larger than its rounding error, judged by `subtracted`."""
    ...


@wp.func_native(native("store_front"))
def store_front(z: Fronts, i: int, e: int, work: Matrix, closed_factors: Matrix, front: Matrix):
    """Store the factors of (3), and the front of the open loops for the parent block."""
    ...


@wp.func_native(native("front_inward"))
def front_inward(
    y: Blocks, z: Fronts, i: int, e: int, c: vec6, f: Matrix, R: Matrix, closed_factors: Matrix, swap: Pivots, g:
    Matrix,
    local: Matrix,
) -> vec6:  # fmt: skip
    """Eliminate δ and the closing loops from the right sides g of the loops open at block e, and the closing loops from
    the wrench c. On entry f contains B⁻¹ f, and solve_inward has eliminated δ from c. Returns c."""
    ...


@wp.func_native(native("front_outward"))
def front_outward(
    y: Blocks, z: Fronts, i: int, e: int, x: vec6, w: vec6, m: vec6, C: Matrix, closed_factors: Matrix, u: Matrix,
    local: Matrix,
    f: Matrix,
):  # fmt: skip
    """Solve for the unknowns of the loops that close at block e, from the motion (x, w, m) of its parent node, and
    subtract B⁻¹ C u of all its loops from δ in f."""
    ...


@wp.func_native(native("gather_children"))
def gather_children(y: Blocks, z: Fronts, i: int, e: int, front: Matrix, work: Matrix) -> int:
    """Put the reduced columns of the child blocks into the rows at block e; returns their number."""
    ...


@wp.func_native(native("put_coordinate_columns"))
def put_coordinate_columns(
    x: Columns, y: Blocks, i: int, e: int, k: int, at: int, n_child: int, sign: wp.float64, f: vec6, L: Matrix,
    scale: wp.array(dtype=wp.float64), work: Matrix,
):  # fmt: skip
    """Add the columns of the coordinates of block e to row `at`, for the wrench f on node k; `n_child` columns
    precede."""
    ...


@wp.func_native(native("add_square_sums"))
def add_square_sums(y: Blocks, z: Fronts, i: int, e: int, n_child: int, work: Matrix, size: Matrix):
    """Add the squares of the columns of block e to the squared norms of the rows of A."""
    ...


@wp.func_native(native("choose_closing"))
def choose_closing(
    y: Blocks, z: Fronts, i: int, e: int, n_child: int, largest: wp.float64, work: Matrix, reflector: Matrix,
    front: Matrix, slot: wp.array2d(dtype=wp.int32),
):  # fmt: skip
    """Compute (4) for block e: mark the chosen rows in `slot`, and store X_o' of the open loops for the parent
    block."""
    ...


@wp.func(inline=False)
def put_open_rows(
    x: Columns, y: Blocks, z: Fronts, i: int, e: int, n_child: int, centre: vec3, rows: wp.array2d(dtype=vec6),
    L: Matrix, scale: wp.array(dtype=wp.float64), work: Matrix,
):  # fmt: skip
    """Add the columns of the coordinates of block e to the rows of all loops with an end at or beyond it; `rows` are
    wrenches in the base frame."""
    for m in range(z.child_start[e], z.child_start[e + 1]):
        child = z.child[m]
        for a in range(z.in_parent_start[child], z.in_parent_start[child + 1]):
            at = z.in_parent[a]
            f = about_centre(rows[i, z.unknown[z.unknown_start[e] + at]], centre)
            put_coordinate_columns(x, y, i, e, y.parent[child], at, n_child, wp.float64(z.sign[a]), f, L, scale, work)
    for m in range(z.end_start[e], z.end_start[e + 1]):
        loop = z.end[m] / 2
        sign = wp.float64(1 - 2 * (z.end[m] % 2))
        for u in range(z.loop_start[loop], z.loop_start[loop + 1]):
            at = z.end_place[m] + u - z.loop_start[loop]
            put_coordinate_columns(
                x, y, i, e, z.end_node[m], at, n_child, sign, about_centre(rows[i, u], centre), L, scale, work
            )


@wp.func
def about_centre(f: vec6, centre: vec3) -> vec6:
    """The wrench f about the origin, expressed about the point `centre`."""
    return se3.join(se3.angular(f) - wp.cross(centre, se3.linear(f)), se3.linear(f))


@wp.func(inline=False)
def row_sizes(
    x: Columns, y: Blocks, z: Fronts, i: int, centre: wp.array2d(dtype=vec3), rows: wp.array2d(dtype=vec6), L: Matrix,
    scale: wp.array(dtype=wp.float64), work: Matrix, size: Matrix,
):  # fmt: skip
    """Squared norms of the constraint rows in the units of the coordinates, for all rows of instance i."""
    for row in range(size.shape[1]):
        size[i, row] = wp.float64(0.0)
    for e in range(y.count):
        clear_rows(y, z, i, e, work)
        put_open_rows(x, y, z, i, e, 0, centre[i, e], rows, L, scale, work)
        add_square_sums(y, z, i, e, 0, work, size)


@wp.func_native(native("clear_rows"))
def clear_rows(y: Blocks, z: Fronts, i: int, e: int, work: Matrix):
    """Set the rows at block e, with the columns of its own coordinates only, to zero."""
    ...
