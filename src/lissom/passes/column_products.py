"""Native loops over columns for the derivatives: running sums of products with 6x6 matrices, and blocks at a point."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import mat6, vec6
from lissom.passes.column_tables import Columns, Matrix

native = native_functions("passes/columns.h")


@wp.func_native(native("add_derivative_products"))
def add_derivative_products(
    x: Columns, start: wp.array(dtype=wp.int32), range: wp.array(dtype=wp.int32), i: int, k: int, M: mat6, N: mat6,
    H: mat6, J: Matrix, J_E: Matrix, J_R: Matrix, J_Q: Matrix, W_a: Matrix, W_v: Matrix, W_q: Matrix,
):  # fmt: skip
    """W_a += M J, W_v += M J_E + N J and W_q += M J_Q + N J_R + H J of node k, on its listed columns."""
    ...


@wp.func_native(native("fold_derivatives"))
def fold_derivatives(
    x: Columns, start: wp.array(dtype=wp.int32), range: wp.array(dtype=wp.int32), first: int, stop: int, i: int, k: int,
    S: Matrix, W_a: Matrix, W_v: Matrix, W_q: Matrix, da: Matrix, dv: Matrix, dq: Matrix,
):  # fmt: skip
    """Rows first … stop − 1 of da += S_kᵀ W_a, dv += S_kᵀ W_v and dq += S_kᵀ W_q on the listed columns of node k."""
    ...


@wp.func_native(native("add_weighted_products"))
def add_weighted_products(
    x: Columns,
    start: wp.array(dtype=wp.int32),
    range: wp.array(dtype=wp.int32),
    i: int,
    k: int,
    M: mat6,
    N: mat6,
    H: mat6,
    J_P: Matrix,
    J_R: Matrix,
    J: Matrix,
    W: Matrix,
):
    """W += M J_P + N J_R + H J of node k, on its listed columns."""
    ...


@wp.func_native(native("add_cross_product"))
def add_cross_product(
    x: Columns,
    i: int,
    to: int,
    from_: int,
    M: mat6,
    J: Matrix,
    W: Matrix,
):
    """W += M J of node `from_`, on the columns of its path, W the running sum of node `to`."""
    ...


@wp.func_native(native("add_point_block"))
def add_point_block(x: Columns, i: int, site: int, H: mat6, out: Matrix):
    """out += Φᵀ H Φ at one strain point."""
    ...


@wp.func_native(native("add_to_row"))
def add_to_row(
    x: Columns, i: int, k: int, number: int, y_acc: vec6, y_twist: vec6, J_acc: Matrix, J_twist: Matrix, out: Matrix
):
    """Row `number` of out += y_accᵀ J_acc + y_twistᵀ J_twist of node k, on the columns of its path."""
    ...
