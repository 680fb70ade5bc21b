"""The matrix S of a stage, made of the derivatives of the residual inside a kernel, for recursion.

    S = M + w₀ D' + p₀ K',   K' = K T + (D + c₁ M) W and D' = D T + c₁ M (T − 1)   of poses that add up rates,
    K' = K T and D' = D   of other poses,   K' = K and D' = D   of other coordinates;   with loops  (S, −Aᵀ; A_q T, 0)

A row of loops that follows from the others is one of the identity. Each row is multiplied by a unit that makes it of
size one in coordinates of size (M + w₀ |D| + p₀ |K|)^(-1/2), of the diagonals, or of natural size where these are zero:
so a symmetric S has its own diagonal for pivots. Otherwise rows of stiff coordinates and of loops serve as pivots of
soft ones, and solutions forwards and backwards lose two digits where a heavy arm ends in a light gripper.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions

native = native_functions("gradients/stages.h")


Rows = wp.array2d(dtype=wp.float64)
Integers = wp.array2d(dtype=wp.int32)


@wp.func_native(native("stage_matrix"))
def stage_matrix(
    nv: int, n: int, width: int, wide: int, stages: int, groups: int, rates: int, r: int, here: int, s: int,
    weights: Rows, group: Integers, T: Rows, W: Rows, K: Rows, D: Rows, M: Rows, A: Rows, A_q: Rows, slot: Integers,
    scale: wp.array(dtype=wp.float64), matrix: Rows, units: Rows,
):  # fmt: skip
    """S of row `here` of a window, whose poses have moved as row r of all; rows of A_q that follow from others become
    zero."""
    ...
