"""Anchors of contacts that stick, carried from step to step beside the states, inside a kernel; equations of anchors.

The pairs that touch stand in rows, those of each stage of each step behind each other from `begin` on, with their
number `pair` and with `slopes`: generalised force by the anchor, (nv, 6), and the anchor that a step ends with by q and
by v there, (6, nv) each, and by the one before, (6, 6). `held` has the changes of the anchors of all pairs, or
derivatives by them, at the end of a step.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions

native = native_functions("gradients/anchors.h")


Rows = wp.array2d(dtype=wp.float64)
Numbers = wp.array(dtype=wp.int32)


@wp.func_native(native("pull_forward"))
def pull_forward(
    nv: int, n: int, stages: int, base: int, own: int, k: int, s: int, begin: Numbers, pair: Numbers, slopes: Rows,
    held: Rows, forcing: Rows,
):  # fmt: skip
    """Add to f of stage s of step k what the changes of anchors give."""
    ...


@wp.func_native(native("move_forward"))
def move_forward(
    nv: int, numbers: int, stages: int, base: int, own: int, k: int, begin: Numbers, pair: Numbers, slopes: Rows,
    state: Rows, held: Rows, moves: Rows,
):  # fmt: skip
    """Changes of anchors at the end of step k, to what `moves` has of the rows there; none of pairs that do not
    touch."""
    ...


@wp.func_native(native("move_backward"))
def move_backward(
    nv: int, numbers: int, stages: int, base: int, own: int, k: int, begin: Numbers, pair: Numbers, slopes: Rows,
    state: Rows, held: Rows, moves: Rows,
):  # fmt: skip
    """Hand derivatives by the anchors that step k leaves on to its end and to the anchors before; `moves` has them by
    rows."""
    ...


@wp.func_native(native("pull_backward"))
def pull_backward(
    nv: int, n: int, stages: int, base: int, own: int, k: int, s: int, begin: Numbers, pair: Numbers, slopes: Rows,
    held: Rows, mu: Rows,
):  # fmt: skip
    """Hand μ of stage s of step k on to the anchors that pull there."""
    ...
