"""Forward dynamics of robots without loops at a cost that grows with the number of links: articulated bodies.

M(q) a = B(q) u + F_ext − c(q, v) − K q − D v                                                         (1)

The right side is the residual of forward_dynamics; M is never made. Prescribed coordinates keep their accelerations.
Source: R. Featherstone, Rigid Body Dynamics Algorithms, 2008, §7.3.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import warp as wp

from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import TablesStruct
from lissom.passes import scratch, traversal
from lissom.passes.block_tables import BlocksStruct, block_columns, block_tables, squares
from lissom.passes.column_tables import ColumnsStruct
from lissom.passes.moves import put_configuration_rate
from lissom.passes.scratch import ScratchStruct
from lissom.systems.articulated import ArticulatedStruct, articulated_buffers, factor_blocks, solve_blocks
from lissom.systems.bordered import LoopRowsStruct
from lissom.systems.residual import residual_of

_LEAST_COORDINATES = 40  # from which on blocks took less time on chains and trees of rods and of rigid links

Rows = wp.array2d(dtype=wp.float64)


def articulated_kernel(act: Acting) -> Any:
    """Kernel of forward dynamics by articulated bodies."""
    residual = residual_of(act)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def articulated_accelerations(
        t: TablesStruct,
        s: ScratchStruct,
        x: ColumnsStruct,
        y: BlocksStruct,
        b: ArticulatedStruct,
        q: Rows,
        v: Rows,
        given: Rows,
        u: Rows,
        extra: Rows,
        gravity: wp.array(dtype=vec3),
        load: wp.array2d(dtype=vec6),
        loops: LoopRowsStruct,
        q_dot: Rows,
        a: Rows,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, given)
        put_configuration_rate(t, i, q, v, q_dot)
        residual(t, s, i, q, v, given, u, extra, gravity[0], load[i], loops, a)
        pivot = factor_blocks(t, s, x, y, b, i)
        if pivot == 0:
            for j in range(t.nv):
                a[i, j] = -a[i, j]
            solve_blocks(x, y, b, i, a)
            for e in range(t.prescribed.dof.shape[0]):
                a[i, t.prescribed.dof[e]] = given[i, t.prescribed.dof[e]]
        elif s.status[i] == 0:
            s.status[i] = scratch.STATUS_SINGULAR + pivot
        traversal.inspect_result(s, i, a)

    return articulated_accelerations


def solves_by_blocks(model: Model) -> bool:
    """Whether forward dynamics eliminates blocks one after the other rather than factoring M, which pays for robots
    without loops that have many coordinates and not most of them in one block. What moves nothing has no block."""
    size, most = squares(model), model.nv // 2
    large = model.nv >= _LEAST_COORDINATES and size.max(initial=0) <= most
    return model.n_rows == 0 and large and int(size.sum()) == model.nv


def record_articulated(w: Buffers, model: Model, batch: int, loops: LoopRowsStruct, q_dot: Any) -> None:
    """Record the launch for the buffers of forward_dynamics."""
    d = w.on_device
    tables = [w.tables, w.scratch, block_columns(model), block_tables(model), articulated_buffers(model, batch)]
    inputs = [d[name] for name in ("q", "v", "given", "u", "extra", "gravity", "load")]
    w.record(articulated_kernel, [*tables, *inputs, loops, q_dot, d["a"]])
