"""Actuators of users as native code, as a term inside kernels.

Each input w of such an actuator is the size of a channel. Its generalised force, B(q) w if it is linear, and the
derivatives of that are

    τ(q, w),   ∂τ/∂q T(move),   ∂τ/∂w                                                                     (1)

The functions (robot/traced_functions) are called by addresses in cells of the term, so that one kernel serves all
of them. Row e of the table of integers holds the first channel of actuator e and the number of its channels.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.forces.term import Term
from lissom.lie import so3
from lissom.lie.native import native_functions
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import kinds
from lissom.passes.columns import Columns, Matrix
from lissom.passes.scratch import INPUTS, Scratch

native = native_functions("forces/custom_actuators.h")


@wp.func_native(native("call_actuator"))
def call_actuator(t: Tables, s: Scratch, place: int, e: int, which: int, i: int, q: Matrix):
    """Write τ of actuator e to s.channel.row if `which` is 0. Behind the first nv numbers of the row write ∂τ/∂q if it
    is 1, and ∂τ/∂w if it is 2, row by row."""
    ...


def _bound(place: Any) -> dict[str, Any]:
    @wp.func(module="unique")
    def force(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, tau: Matrix):
        for e in range(t.terms[place].index.shape[0]):
            call_actuator(t, s, place, e, 0, i, q)
            for j in range(t.nv):
                tau[i, j] = tau[i, j] - s.channel.row[i, j]

    @wp.func(module="unique")
    def stiffen(
        t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64,
        by_v: wp.float64, out: Matrix,
    ):  # fmt: skip
        if by_q != so3.ZERO:
            for e in range(t.terms[place].index.shape[0]):
                call_actuator(t, s, place, e, 1, i, q)
                for j in range(t.nv):
                    at = (j + 1) * t.nv
                    for c in range(t.nv):
                        s.channel.row[i, c] = s.channel.row[i, at + c]
                        s.channel.moved_row[i, c] = s.channel.row[i, at + c]
                    for k in range(t.n_dynamic):
                        kinds.pull_back(t, i, k, move, s.channel.row, s.channel.moved_row)
                    to = j * x.width
                    for c in range(t.nv):
                        out[i, to + c] = out[i, to + c] - by_q * s.channel.moved_row[i, c]

    return {"force": force, "stiffen": stiffen}


def _tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    rows = [(channel, made.shape[1]) for _, channel, made in model.inputs.native]
    return np.array(rows, dtype=np.int32).reshape(-1, 2), np.zeros((len(rows), 0))


TERM = Term(
    "actuators of users",
    int(INPUTS),
    is_in=lambda model: len(model.inputs.native) > 0,
    bind=_bound,
    tables=_tables,
    natives=lambda model: [made.functions for *_, made in model.inputs.native],
)
