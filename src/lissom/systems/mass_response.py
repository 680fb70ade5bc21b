"""Systems with the mass matrix of a tree for many right sides.

Entry (i, j) of the mass matrix of a robot without loops is zero unless one of the coordinates i, j moves the other one.
The factors

    M = Lᵀ D L,   L lower triangular with a unit diagonal                                                 (1)

that begin with the last coordinate keep these zeros, so that the cost is that of the paths from the base.

Source: R. Featherstone, Rigid Body Dynamics Algorithms, 2008, §6.5.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.passes.columns import Matrix

native = native_functions("systems/mass_response.h")


@wp.func_native(native("tree_factor"))
def tree_factor(nv: int, width: int, i: int, A: Matrix, work: Matrix) -> int:
    """Factor a symmetric positive definite matrix A (nv rows of width) by (1). `work` has nv numbers. Returns 0, or 1 +
    the index of a pivot that is zero to rounding."""
    ...


@wp.func_native(native("tree_response"))
def tree_response(nv: int, width: int, columns: int, i: int, A: Matrix, X: Matrix):
    """X = −A⁻¹ X by the factors of tree_factor, for nv rows of X of `columns` numbers, a multiple of 8."""
    ...
