"""Fronts of blocks with loops: assembly, elimination of a block and of the loops that it closes, as native loops.

With δ the coordinates of a block, y the motion of the node that it hangs on, u the unknowns of the loops that are open
behind it, those that close here first, and c the wrench that it hands on, a front is

    B δ + C u + G y = f,   R δ + S u + Q y = g,   c = V δ + E u + Λ y + ĉ                                  (1)

B, G and V are those of newton_blocks. The rest stands in `work` as rows of [S Q; E Λ], Q and Λ in STATE columns, and Λ
without the part that newton_blocks has. Eliminating δ, and then loops, leaves a front of the open ones alone:

    S − R B⁻¹ C,  Q − R B⁻¹ G,  E − V B⁻¹ C                                                               (2)
    [S_oo Q_o; E_o Λ] − [S_oc; E_c] S_cc⁻¹ [S_co Q_c]                                                     (3)

A block that it hangs on sees y = Y_k δ + y and adds L_kᵀ c to its rows. Forces of loops are eliminated once all that
they move has been, so that S_cc is that of a system of its own, and regular where the loops are independent; rows are
swapped within it.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import vec3, vec6
from lissom.passes.block_tables import Blocks
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.front_tables import STATE, Fronts
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
    """Add to row `at` of the front of block e what it answers to one part of the motion of node k, which is f from a
    point at r."""
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
