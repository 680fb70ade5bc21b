"""Elimination of the blocks of newton_blocks, whose equations these are, as native loops inside kernels.

Matrices by block start at `square_start` where they are square, at six numbers for each row of `row_start` where they
have as many columns as the block has coordinates, and where they have as many rows at 24 numbers for each coordinate
of the blocks before, 18 of which serve.
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


@wp.func_native(native("of_nodes_from"))
def of_nodes_from(first: int, width: int, S: Matrix) -> Matrix:
    """The columns of nodes from `first` on, as an array that is asked by the number of the node."""
    ...


@wp.func_native(native("clear_columns"))
def clear_columns(width: int, i: int, k: int, S: Matrix):
    """S_k = 0."""
    ...


@wp.func_native(native("clear_row"))
def clear_row(i: int, X: Matrix):
    """X = 0."""
    ...


@wp.func_native(native("hang"))
def hang(i: int, place: int, X: mat6, hanging: Matrix):
    """Add to the 6x6 matrix at a place."""
    ...


@wp.func_native(native("with_hanging"))
def with_hanging(i: int, place: int, X: mat6, hanging: Matrix) -> mat6:
    """X + the 6x6 matrix at a place."""
    ...


@wp.func_native(native("keep_columns"))
def keep_columns(x: Columns, i: int, k: int, place: int, J: Matrix, out: Matrix):
    """The columns J_k at a place among those that are kept."""
    ...


@wp.func_native(native("take_band"))
def take_band(y: Blocks, band: int, i: int, e: int, K: Matrix, B: Matrix, G: Matrix, V: Matrix):
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
    """Factors of B with swapped rows in its place, rows and columns of prescribed coordinates as in the identity, and
    B⁻¹ G in the place of G. Returns 0, or 1 + the coordinate of a pivot that is zero or not finite."""
    ...


@wp.func_native(native("reduced"))
def reduced(y: Blocks, i: int, e: int, part: int, sum: mat6, answer: Matrix, V: Matrix) -> mat6:
    """The part of Λ of (4) by x, w or z (0, 1, 2), from that of Σ Ê."""
    ...


@wp.func_native(native("solve_inward"))
def solve_inward(
    y: Blocks, i: int, e: int, below: vec6, B: Matrix, pivots: Pivots, V: Matrix, f: Matrix
) -> vec6:  # fmt: skip
    """c of (4) for block e from Σ ĉ; f − Σ Lᵀ ĉ on its coordinates becomes B⁻¹ times that."""
    ...


@wp.func_native(native("hand_on"))
def hand_on(x: Columns, y: Blocks, i: int, e: int, k: int, c: vec6, L: Matrix, f: Matrix):
    """f −= L_kᵀ c on the coordinates of block e."""
    ...


@wp.func_native(native("moved"))
def moved(x: Columns, y: Blocks, i: int, e: int, k: int, start: vec6, J: Matrix, f: Matrix) -> vec6:
    """One of the three parts of (1) at node k of block e."""
    ...


@wp.func_native(native("solve_outward"))
def solve_outward(y: Blocks, i: int, e: int, x: vec6, w: vec6, z: vec6, answer: Matrix, f: Matrix):
    """δ of (2) from what solve_inward left in f."""
    ...
