"""Loads and prescribed motions at a time, as a kernel of exported robots."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.dynamics.loads import laws_of_time
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.lie.types import EXPRESSIONS, kernel_options, vec6
from lissom.model.model import Model
from lissom.stepping.step_kernel import program_of
from lissom.stepping.step_sizes import LawsStruct, put_laws

Rows = wp.array2d(dtype=wp.float64)


def laws_kernel(acting: Acting) -> Any:
    """Kernel of loads, and of positions, velocities and accelerations of prescribed coordinates."""
    return laws_at_time_kernel(acting._replace(kinds=(*acting.kinds, EXPRESSIONS)))


def laws_at_time_kernel(act: Acting) -> Any:
    """`laws_kernel` of features, which the library itself never compiles."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def laws_at_time(
        laws: LawsStruct,
        time: wp.array(dtype=wp.float64),
        load: wp.array2d(dtype=vec6),
        motion: Rows,
        u: Rows,
        first: int,
    ):
        i = first + wp.tid()
        put_laws(time[0], laws, load[i], motion[i], u[i])

    return laws_at_time


def laws_buffers(model: Model) -> Buffers:
    """Buffers of the loads and prescribed motions of a model at the time in "time".

    Raises:
        LookupError: a load or motion is no polynomial of time and no expression.
    """
    found = laws_of_time(model)
    if found is None:
        raise LookupError("a load or motion is neither a polynomial of time nor an expression")
    w, laws = Buffers(model, 1, {}), LawsStruct()
    code, numbers = program_of(model, [])
    arrays: dict[str, np.ndarray] = {"knots": found[0], "pieces": found[1], "code": code, "numbers": numbers}
    for name, values in arrays.items():
        dtype = wp.int32 if name == "code" else wp.float64
        setattr(laws, name, w.buffer(f"laws {name}", values.shape, dtype, common=True))
        w.host[f"laws {name}"][:] = values
    time = w.buffer("time", (1,), common=True)
    load = w.buffer("load", (1, model.n_load_rows), vec6)
    motion, u = w.buffer("motion", (1, 3 * model.n_motions)), w.buffer("u", (1, model.nu))
    w.record(laws_kernel, [laws, time, load, motion, u])
    return w
