"""Columns of intervals for derivatives and Newton matrices, and their local terms, as native loops inside kernels.

The equations are (1)-(6) of interval. What they make of one node are some 180 numbers from some 100, by products of 3x3
matrices: for eight nodes at once each of these is one instruction. Only then follow the columns, node by node, since
path sums need those of the parent.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.model.tables import Tables
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.scratch import Scratch
from lissom.robot.joints import MotionKind

native = native_functions("passes/interval_columns.h", EXP=MotionKind.EXP.value)


@wp.func_native(native("intervals_stop"))
def intervals_stop(t: Tables, k: int, stop: int) -> int:
    """The first node after k that is no interval, or that one call does not reach."""
    ...


@wp.func_native(native("derivative_columns"))
def derivative_columns(
    t: Tables, s: Scratch, x: Columns, band: Columns, i: int, first: int, stop: int, before: int, v: Matrix, a: Matrix,
    S: Matrix, J: Matrix, J_R: Matrix, J_Q: Matrix, J_E: Matrix, has_local: int, out: Matrix,
):  # fmt: skip
    """Columns S of the intervals first … stop − 1, the path sums with S, R, Q and E = Ṡ + R on top of those of the
    node `before`, none if that is negative; local terms go to out if they are asked for."""
    ...


@wp.func_native(native("newton_columns"))
def newton_columns(
    t: Tables, s: Scratch, x: Columns, band: Columns, i: int, first: int, stop: int, before: int, v: Matrix, a: Matrix,
    c0: wp.float64, c1: wp.float64, S: Matrix, J: Matrix, J_P: Matrix, J_R: Matrix, out: Matrix,
):  # fmt: skip
    """Columns S of the intervals first … stop − 1, the path sums with S, P = Q + 2 c₁ Ṡ + c₀ S and R + c₁ S on top of
    those of the node `before`, none if that is negative; local terms go to out."""
    ...


@wp.func_native(native("newton_columns_of_one"))
def newton_columns_of_one(
    t: Tables, s: Scratch, x: Columns, band: Columns, i: int, first: int, stop: int, before: int, v: Matrix, a: Matrix,
    c0: wp.float64, c1: wp.float64, S: Matrix, J: Matrix, J_P: Matrix, J_R: Matrix, out: Matrix,
):  # fmt: skip
    """The same of one interval, `stop` being the node after it."""
    ...
