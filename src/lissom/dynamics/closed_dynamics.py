"""Forward dynamics of robots with loops block by block, at a cost that grows with the number of links and of loops that
are open at once.

    M a − Aᵀ λ = f,   A a = −Ȧ v − 2 p A v − p² e                                                         (1)

is (2) of forward_dynamics; neither M nor A is ever made (closed_blocks). Prescribed coordinates keep their
accelerations.
Source: I. S. Duff, J. K. Reid, ACM Trans. Math. Softw. 9, 1983, with the tree of the robot for that of the elimination.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from functools import partial
from typing import Any

import warp as wp

from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers, Passing
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import scratch, traversal
from lissom.passes.moves import put_configuration_rate
from lissom.passes.scratch import ScratchStruct
from lissom.systems.bordered import LoopRows, LoopRowsStruct
from lissom.systems.closed_blocks import (
    BlockMatrix,
    BlockMatrixStruct,
    ClosedBlocks,
    ClosedBlocksStruct,
    block_matrix,
    closed_blocks,
    closes_by_blocks,
    factor_closed_blocks,
    make_mass_blocks,
    solve_closed_blocks,
)
from lissom.systems.loop_unknowns import put_forces
from lissom.systems.loops import loop_rates
from lissom.systems.residual import residual_of

_LEAST_COORDINATES = 100  # from 60 on blocks took less time on nets, but they lose some digits of stiff robots

Rows = wp.array2d(dtype=wp.float64)


@wp.func
def solve_accelerations(
    t: Tables, b: BlockMatrix, c: ClosedBlocks, i: int, given: Rows, pull: wp.float64, loops: LoopRows, a: Rows
):  # fmt: skip
    """a and λ of (1) by the factors, what is left of the equation of motion without them being in a."""
    for j in range(t.nv):
        loops.unknown[i, j] = -a[i, j]
    for row in range(loops.force.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            missing = loops.acceleration[i, row] + pull * (so3.TWO * loops.rate[i, row] + pull * loops.gap[i, row])
            loops.unknown[i, t.nv + at] = -missing
    solve_closed_blocks(b, c, i, t.nv, loops)
    for j in range(t.nv):
        a[i, j] = loops.unknown[i, j]
    for e in range(t.prescribed.dof.shape[0]):
        a[i, t.prescribed.dof[e]] = given[i, t.prescribed.dof[e]]
    for row in range(loops.force.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            loops.force[i, row] = loops.unknown[i, t.nv + at]


def closed_kernel(act: Acting) -> Any:
    """Kernel of forward dynamics with loops by blocks."""
    residual = residual_of(act)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def closed_accelerations(
        t: TablesStruct,
        s: ScratchStruct,
        b: BlockMatrixStruct,
        c: ClosedBlocksStruct,
        q: Rows,
        v: Rows,
        given: Rows,
        u: Rows,
        extra: Rows,
        gravity: wp.array(dtype=vec3),
        load: wp.array2d(dtype=vec6),
        loops: LoopRowsStruct,
        pull: wp.array(dtype=wp.float64),
        q_dot: Rows,
        a: Rows,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, given)
        put_configuration_rate(t, i, q, v, q_dot)
        for row in range(loops.force.shape[1]):
            loops.force[i, row] = so3.ZERO
        residual(t, s, i, q, v, given, u, extra, gravity[0], load[i], loops, a)
        loop_rates(t, s, i, se3.join(vec3(), -gravity[0]), loops.rate, loops.acceleration)
        make_mass_blocks(t, s, b, i)
        pivot = factor_closed_blocks(t, s, b, c, i, so3.ZERO, loops, put_forces)
        if pivot == 0:
            solve_accelerations(t, b, c, i, given, pull[0], loops, a)
        elif s.status[i] == 0:
            s.status[i] = scratch.STATUS_SINGULAR + wp.where(pivot > 0, pivot, t.nv)
        traversal.inspect_result(s, i, a)

    return closed_accelerations


def solves_closed(model: Model) -> bool:
    """Whether forward dynamics of a robot with loops eliminates blocks one after the other."""
    return model.nv >= _LEAST_COORDINATES and closes_by_blocks(model)


def record_closed(w: Buffers, model: Model, batch: int, loops: LoopRowsStruct, pull: Any, q_dot: Any) -> None:
    """Record the launch for the buffers of forward_dynamics."""
    d, blocks = w.on_device, [partial(block_matrix, model, of_mass=True), partial(closed_blocks, model, wide=False)]
    tables = [w.tables, w.scratch, *map(Passing, blocks)]
    inputs = [d[name] for name in ("q", "v", "given", "u", "extra", "gravity", "load")]
    w.record(closed_kernel, [*tables, *inputs, loops, pull, q_dot, d["a"]])
