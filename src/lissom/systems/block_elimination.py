"""Elimination of blocks as native loops inside kernels. Equations are those of newton_blocks.

The matrices of all blocks of n coordinates each lie one after the other. Square ones (n x n, such as B) begin at
`square_start`. Those with six rows (6 x n, such as V) begin at 6 `row_start`. Those with n rows (such as G) have STATE
= 24 numbers in a row, of which 18 are used, and begin at 24 times the first coordinate of the block.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import mat6, vec6
from lissom.passes.blocks import STATE, Blocks
from lissom.passes.columns import Columns, Matrix
from lissom.passes.linear_algebra import Pivots

native = native_functions("systems/elimination.h", STATE=STATE)


@wp.func_native(native("clear_row"))
def clear_row(i: int, X: Matrix):
    """X = 0."""
    ...


@wp.func_native(native("load_band"))
def load_band(y: Blocks, band: int, i: int, e: int, K: Matrix, B: Matrix, G: Matrix, V: Matrix):
    """B = local + K of block e, with rows of `band`; G = V = 0."""
    ...


@wp.func_native(native("gather_node"))
def gather_node(
    x: Columns, y: Blocks, i: int, e: int, k: int, before: int, H: mat6, N: mat6, M: mat6, bar: mat6, S: Matrix,
    J: Matrix, J_R: Matrix, J_P: Matrix, L: Matrix, B: Matrix, G: Matrix, V: Matrix,
):  # fmt: skip
    """Add node k to B of (3), G of (2) and V of (4); `before` is the node before it in its block, or negative."""
    ...


@wp.func_native(native("factor_block"))
def factor_block(
    y: Blocks, i: int, e: int, B: Matrix, pivots: Pivots, G: Matrix, V: Matrix
) -> int:  # fmt: skip
    """Overwrite B by its LU factors with swapped rows, and G by B⁻¹ G. Rows and columns of prescribed coordinates are
    those of the identity. Returns 0, or 1 + the coordinate of a pivot that is zero or not finite."""
    ...


@wp.func_native(native("reduced_response"))
def reduced_response(y: Blocks, i: int, e: int, part: int, sum: mat6, inverse_G: Matrix, V: Matrix) -> mat6:
    """The part of Λ of (4) for x, w or z (part 0, 1 or 2); `sum` is this part of Σ Ê."""
    ...


@wp.func_native(native("solve_inward"))
def solve_inward(
    y: Blocks, i: int, e: int, below: vec6, B: Matrix, pivots: Pivots, V: Matrix, f: Matrix
) -> vec6:  # fmt: skip
    """c of (4) for block e, with Σ ĉ in `below`; f − Σ Lᵀ ĉ on its coordinates is replaced by B⁻¹ (f − Σ Lᵀ ĉ)."""
    ...


@wp.func_native(native("subtract_projection"))
def subtract_projection(x: Columns, y: Blocks, i: int, e: int, k: int, c: vec6, L: Matrix, f: Matrix):
    """f −= L_kᵀ c on the coordinates of block e."""
    ...


@wp.func_native(native("block_motion"))
def block_motion(x: Columns, y: Blocks, i: int, e: int, k: int, start: vec6, J: Matrix, f: Matrix) -> vec6:
    """One of the three parts of (1), x, w or z, at node k of block e; `start` is that of y."""
    ...


@wp.func_native(native("solve_outward"))
def solve_outward(y: Blocks, i: int, e: int, x: vec6, w: vec6, z: vec6, inverse_G: Matrix, f: Matrix):
    """Replace the result of solve_inward in f by δ of (2); x, w and z are the parts of y."""
    ...
