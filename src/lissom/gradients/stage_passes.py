"""One stage of a step forwards and backwards, inside a kernel; the equations are those of recursion. K, A_q, D, M and
the units of rows are those of a window of steps, row `here`; T, E and W those of all steps."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions

native = native_functions("gradients/stages.h")


Rows = wp.array2d(dtype=wp.float64)
Integers = wp.array2d(dtype=wp.int32)


@wp.func_native(native("begin_backward"))
def begin_backward(
    nv: int, n: int, stages: int, groups: int, rates: int, base: int, own: int, k: int, s: int, weights: Rows,
    group: Integers, T: Rows, E: Rows, W: Rows, seeds: Rows, state: Rows, work: Rows, mu: Rows,
):  # fmt: skip
    """The right side of Sᵀ μ = g in stage s of step k: derivatives by what the step leaves, with `seeds`, and by what
    the stages behind take from this one."""
    ...


@wp.func_native(native("end_backward"))
def end_backward(
    nv: int, n: int, width: int, stages: int, groups: int, rates: int, base: int, here: int, own: int, k: int, s: int,
    weights: Rows, group: Integers, T: Rows, E: Rows, W: Rows, K: Rows, A_q: Rows, D: Rows, M: Rows, units: Rows,
    state: Rows, work: Rows, mu: Rows,
):  # fmt: skip
    """Give μ its units, and hand on −K̃ᵀ μ, −Dᵀ μ and −Mᵀ μ to the start of the step and to the stages before."""
    ...


@wp.func_native(native("begin_forward"))
def begin_forward(
    nv: int, n: int, width: int, stages: int, groups: int, rates: int, base: int, here: int, own: int, k: int, s: int,
    weights: Rows, group: Integers, T: Rows, E: Rows, W: Rows, K: Rows, A_q: Rows, D: Rows, M: Rows, units: Rows,
    forcing: Rows, state: Rows, work: Rows, unknown: Rows,
):  # fmt: skip
    """The right side of (2) in stage s of step k."""
    ...


@wp.func_native(native("end_forward"))
def end_forward(
    nv: int, n: int, stages: int, groups: int, rates: int, base: int, own: int, k: int, s: int, weights: Rows,
    group: Integers, T: Rows, E: Rows, W: Rows, state: Rows, work: Rows, unknown: Rows, result: Rows,
):  # fmt: skip
    """δΔ, δv and δa of a stage from (1), and behind the last one what the step leaves, by (3)."""
    ...
