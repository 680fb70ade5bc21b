"""Derivatives of the generalised force by the inputs of users' actuators and forces, as a kernel of exported robots.

The library computes them in Python (dynamics/actuation, (8)).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import warp as wp

from lissom.forces.custom_actuators import call_actuator
from lissom.forces.tendons import channel_sizes
from lissom.forces.terms import Acting
from lissom.forces.traced_forces import put_driven_column
from lissom.launch.buffers import Buffers
from lissom.lie.types import kernel_options, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import traversal
from lissom.passes.scratch import Scratch, ScratchStruct
from lissom.passes.traversal import place_bases

Rows = wp.array2d(dtype=wp.float64)


def has_input_columns(model: Model) -> bool:
    """Whether the robot has users' actuators or forces with inputs that kernels call."""
    return len(model.inputs.native) > 0 or len(model.forces.driven) > 0


@wp.func
def no_columns(t: Tables, s: Scratch, i: int, q: Rows, time: wp.float64, column: Rows, out: Rows):
    """No columns."""
    ...


def _columns_of_actuators(place: int) -> Any:
    here = wp.constant(wp.int32(place))

    @wp.func(module="unique")
    def put(t: Tables, s: Scratch, i: int, q: Rows, time: wp.float64, column: Rows, out: Rows):
        for e in range(t.terms[here].index.shape[0]):
            first = t.terms[here].index[e, 0]
            n = t.terms[here].index[e, 1]
            call_actuator(t, s, here, e, 2, i, q)
            for k in range(n):
                for j in range(t.nv):
                    out[i, (first + k) * t.nv + j] = s.channel.row[i, t.nv + j * n + k]

    return put


def _columns_of_forces(place: int) -> Any:
    here = wp.constant(wp.int32(place))

    @wp.func(module="unique")
    def put(t: Tables, s: Scratch, i: int, q: Rows, time: wp.float64, column: Rows, out: Rows):
        for c in range(t.terms[here].index[0, 1], s.channel.size.shape[1]):
            put_driven_column(t, s, here, i, c, time, column)
            for j in range(t.nv):
                out[i, c * t.nv + j] = column[i, j]

    return put


def input_columns_kernel(act: Acting) -> Any:
    """Kernel of ∂τ/∂w by the sizes w of all channels; zero for those of tendons, chambers and wrenches."""
    of_actuators = no_columns if act.custom < 0 else _columns_of_actuators(act.custom)
    of_forces = no_columns if act.driven < 0 else _columns_of_forces(act.driven)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def input_columns(
        t: TablesStruct, s: ScratchStruct, time: wp.array(dtype=wp.float64), q: Rows, v: Rows, a: Rows, u: Rows,
        column: Rows, out: Rows, first: int,
    ):  # fmt: skip
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, a)
        channel_sizes(t, s, i, u)
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, a, vec6())
        of_actuators(t, s, i, q, time[0], column, out)
        of_forces(t, s, i, q, time[0], column, out)

    return input_columns


def input_columns_buffers(model: Model) -> Buffers:
    """Buffers with the output "out", ∂τ/∂w at the time in "time", a row of nv numbers for each channel."""
    inputs = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,), "u": (model.nu,)}
    outputs = {"column": (model.nv,), "out": (len(model.channels.names) * model.nv,)}
    w = Buffers(model, 1, inputs, outputs)
    time, d = w.buffer("time", (1,), common=True), w.on_device
    w.record(
        input_columns_kernel,
        [w.tables, w.scratch, time, d["q"], d["v"], d["a"], d["u"], d["column"], d["out"]],
    )
    return w
