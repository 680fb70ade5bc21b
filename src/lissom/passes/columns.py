"""Matrices with one column for each velocity coordinate, inside kernels.

A 6 x nv matrix of node k is six rows of `width` numbers, width = nv rounded up to a multiple of 8, from 6 k width on.
All work goes by blocks of 8 columns, so that one loop step fills a vector register; only the stretches that hold
columns of the node's subtree are ever touched, and `subtree_*` lists them. A running sum belongs to a slot, which the
nodes of a chain share: the sum over a subtree grows in place on its way inward. The loops over columns are native
code: they are nothing but sums of products, and Warp's array indexing would cost more than the products.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import mat3, mat6, vec6
from lissom.passes.column_tables import Columns, Matrix

native = native_functions("passes/columns.h")


@wp.func_native(native("put_turned_columns"))
def put_turned_columns(x: Columns, i: int, k: int, A: mat3, B: mat3, S: Matrix):
    """S_k = [A, B] Φ₁ on the node's own blocks, of a node whose columns are those of one point."""
    ...


@wp.func_native(native("put_columns"))
def put_columns(x: Columns, i: int, k: int, A1: mat3, B1: mat3, A2: mat3, B2: mat3, S: Matrix):
    """S_k = [A₁, B₁] Φ₁ + [A₂, B₂] Φ₂ on the node's own blocks, a pair [A, B] standing for [[A, 0], [B, A]]."""
    ...


@wp.func_native(native("extend_path"))
def extend_path(
    x: Columns,
    parent: int,
    i: int,
    k: int,
    A1: mat3,
    B1: mat3,
    A2: mat3,
    B2: mat3,
    J: Matrix,
):
    """J_k = J_parent + [A₁, B₁] Φ₁ + [A₂, B₂] Φ₂ on the columns of the path to k."""
    ...


@wp.func
def copy_path(x: Columns, parent: int, i: int, k: int, J: Matrix):
    """J_k = J_parent on the columns of the path to k, for own columns to be added."""
    none = mat3()
    extend_path(x, parent, i, k, none, none, none, none, J)


@wp.func_native(native("clear_sums"))
def clear_sums(x: Columns, i: int, V: Matrix):
    """All running sums V = 0."""
    ...


@wp.func_native(native("add_product"))
def add_product(x: Columns, M: mat6, first: int, stop: int, i: int, k: int, S: Matrix, V: Matrix):
    """V += M S_k on the node's own columns first … stop − 1, V its running sum."""
    ...


@wp.func_native(native("fold_rows"))
def fold_rows(
    x: Columns,
    x_start: wp.array(dtype=wp.int32),
    x_range: wp.array(dtype=wp.int32),
    first: int,
    stop: int,
    i: int,
    k: int,
    S: Matrix,
    V: Matrix,
    out: Matrix,
):
    """Rows first … stop − 1 of out += S_kᵀ V on the listed columns of node k, V its running sum."""
    ...


@wp.func_native(native("pass_to_parent"))
def pass_to_parent(
    x: Columns,
    x_start: wp.array(dtype=wp.int32),
    x_range: wp.array(dtype=wp.int32),
    parent: int,
    i: int,
    k: int,
    V: Matrix,
):
    """The running sum of the parent += that of k on the listed columns of k, unless it is the same."""
    ...


@wp.func_native(native("add_transposed"))
def add_transposed(nv: int, width: int, i: int, A: Matrix, B: Matrix, out: Matrix):
    """out = A + Bᵀ, all nv x width."""
    ...


@wp.func_native(native("clear_rows"))
def clear_rows(nv: int, width: int, i: int, out: Matrix):
    """out = 0, nv x width."""
    ...


@wp.func
def column(x: Columns, S: Matrix, i: int, k: int, j: int) -> vec6:
    """Column j of the matrix of node k."""
    at = 6 * k * x.width + j
    w = x.width
    return vec6(S[i, at], S[i, at + w], S[i, at + 2 * w], S[i, at + 3 * w], S[i, at + 4 * w], S[i, at + 5 * w])


@wp.func
def put_column(x: Columns, i: int, k: int, j: int, y: vec6, S: Matrix):
    """Column j of the matrix of node k = y."""
    for r in range(6):
        S[i, (6 * k + r) * x.width + j] = y[r]


@wp.func
def add_column(x: Columns, i: int, k: int, j: int, y: vec6, S: Matrix):
    """Column j of the matrix of node k += y."""
    for r in range(6):
        at = (6 * k + r) * x.width + j
        S[i, at] = S[i, at] + y[r]
