"""Many implicit steps in one kernel, for robots and inputs that need no Python between two of them.

The steps and the Newton iteration are those of equations (1)-(3) of implicit_steps, with the matrix made in one
pass (newton_matrix) and factored in the kernel, whole or, of robots of many links, block by block (newton_blocks). A
step whose iteration fails ends the run. Inputs, loads and motions stand in rows, one for each stage of each step; where
the kernel chooses the steps itself (paced_steps) they are polynomials of time or expressions, and it looks for what
balls met on the way (step_meetings). Where something needs Python, the kernel pauses behind each part of a stage:
`pause` says whether it does, which part comes next, and of which stage.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import warp as wp

from lissom.forces.contact import anchor_row
from lissom.forces.terms import Acting, no_memory
from lissom.integration.paced_steps import (
    IS_PLANNED,
    NEXT,
    NOW,
    STOP,
    LawsStruct,
    asks_again,
    next_size,
    put_inputs,
    put_laws,
    stays_out,
)
from lissom.integration.step_meetings import (
    MeetingRows,
    MeetingRowsStruct,
    begin_approaches,
    first_event,
    keep_approaches,
    no_approaches,
    no_event,
)
from lissom.integration.step_rows import (
    DONE,
    FIRST_STAGE,
    MOST_STAGES,
    N_STAGES,
    STAGE,
    StepRows,
    StepRowsStruct,
    tolerances,
)
from lissom.integration.step_stages import (
    BEGIN,
    CONVERGED,
    FAILED,
    Counts,
    conclude,
    factor_blocks,
    factor_closed,
    factor_matrix,
    go_on,
    solve_blocks,
    solve_closed,
    solve_matrix,
)
from lissom.lie import so3
from lissom.lie.types import EXPRESSIONS, kernel_options, vec3, vec6
from lissom.model.tables import Tables, TablesStruct
from lissom.passes.scratch import Scratch, ScratchStruct
from lissom.systems.newton_matrix import (
    NewtonBuffersStruct,
    newton_blocks_of,
    newton_closed_of,
    newton_matrix_of,
)
from lissom.systems.residual import residual_of

Rows = wp.array2d(dtype=wp.float64)


@wp.func
def put_result(nv: int, x: StepRows, i: int, k: int, force: Rows, out: Rows):
    """(q, v, a, â, λ) as row k of what the steps leave."""
    nq = x.q.shape[1]
    at = k * (nq + 3 * nv + force.shape[1])
    for j in range(nq):
        out[i, at + j] = x.q[i, j]
    at += nq
    for j in range(nv):
        out[i, at + j] = x.v[i, j]
        out[i, at + nv + j] = x.a[i, j]
        out[i, at + 2 * nv + j] = x.ahead[i, j]
    for j in range(force.shape[1]):
        out[i, at + 3 * nv + j] = force[i, j]


@wp.func
def keep_stages(t: Tables, steps: int, x: StepRows, i: int, k: int):
    """Δ, v and a of the stages before the last one as row k of the steps of what those leave, where there is room, and
    anchors alike."""
    many = x.left.shape[1] / steps
    for j in range(many):
        x.left[i, k * many + j] = x.earlier[i, j]
    points = x.anchored.shape[1] / (3 * steps)
    for j in range(points):
        anchor = t.surroundings.anchor[anchor_row(t, i), j]
        for r in range(3):
            x.anchored[i, 3 * (k * points + j) + r] = anchor[r]


@wp.func
def take_inputs(x: StepRows, i: int, k: int, stage: int, inputs: wp.array3d(dtype=wp.float64)):
    """u at the end of a stage of step k."""
    nu = x.u.shape[1]
    for j in range(nu):
        x.u[i, j] = inputs[i, k, stage * nu + j]


@wp.func
def leave_step(
    t: Tables, s: Scratch, x: StepRows, m: MeetingRows, i: int, k: int, force: Rows, pace: Rows, out: Rows,
    times: Rows, counts: Counts, renew: wp.Function,
):  # fmt: skip
    """Hand out step k, which is kept, and remember it."""
    renew(t, s, i, x.q, x.v, x.a)
    keep_approaches(m, i)
    put_result(t.nv, x, i, k, force, out)
    keep_stages(t, times.shape[1], x, i, k)
    times[i, k] = pace[i, NOW]
    counts[i, DONE] = k + 1


@wp.func
def ratio_of(h: Rows, i: int, k: int) -> wp.float64:
    """By how much step k is longer than the one before."""
    if h[i, k] > so3.ZERO:
        return h[i, k + 1] / h[i, k]
    return so3.ONE


def driven_steps_kernel(acting: Acting) -> Any:
    """Kernel of many steps of a robot whose loads, motions or inputs are expressions, which it evaluates."""
    return implicit_steps_kernel(acting._replace(kinds=(*acting.kinds, EXPRESSIONS)))


def implicit_steps_kernel(act: Acting) -> Any:
    """Kernel of many steps."""
    return _kernel(act, newton_matrix_of(act), factor_matrix, solve_matrix)


def block_steps_kernel(act: Acting) -> Any:
    """The same for robots whose matrix is eliminated block by block."""
    return _kernel(act, newton_blocks_of(act), factor_blocks, solve_blocks)


def driven_block_steps_kernel(acting: Acting) -> Any:
    """The same of a robot whose loads, motions or inputs are expressions."""
    return block_steps_kernel(acting._replace(kinds=(*acting.kinds, EXPRESSIONS)))


def closed_steps_kernel(act: Acting) -> Any:
    """The same for robots with loops."""
    return _kernel(act, newton_closed_of(act), factor_closed, solve_closed)


def driven_closed_steps_kernel(acting: Acting) -> Any:
    """The same of a robot with loops whose loads, motions or inputs are expressions."""
    return closed_steps_kernel(acting._replace(kinds=(*acting.kinds, EXPRESSIONS)))


def _kernel(act: Acting, matrix: Any, factor: Any, solve: Any) -> Any:
    residual, renew = residual_of(act), act.renew
    looks = renew is not no_memory  # contacts alone remember something, and only what can touch has a way to look along
    begin, event_of = (begin_approaches, first_event) if looks else (no_approaches, no_event)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def implicit_steps(
        t: TablesStruct, s: ScratchStruct, b: NewtonBuffersStruct, x: StepRowsStruct,
        numbers: wp.array(dtype=wp.float64), span: wp.array2d(dtype=wp.int32), h: Rows,
        inputs: wp.array3d(dtype=wp.float64), gravity: wp.array(dtype=vec3), load: wp.array2d(dtype=vec6), held: Rows,
        out: Rows, counts: wp.array2d(dtype=wp.int32), pause: wp.array2d(dtype=wp.int32), pace: Rows,
        knots: wp.array(dtype=wp.float64), pieces: wp.array3d(dtype=wp.float64), times: Rows,
        laws: LawsStruct, m: MeetingRowsStruct, first: int,
    ):  # fmt: skip
        i = first + wp.tid()
        c = tolerances(numbers)
        stages = int(numbers[N_STAGES])
        pauses = pause[i, 0]
        stage_start = pause[i, 2]
        stage_stop = wp.where(pauses != 0, stage_start + 1, stages)
        going = int(CONVERGED)
        paces = pace[i, STOP] > so3.ZERO
        plans = pace[i, IS_PLANNED] != so3.ZERO
        begin(t, s, x, m, i, paces)
        for n in range(span[i, 0], span[i, 1]):
            if going == CONVERGED and (not paces or pace[i, NOW] < pace[i, STOP]):
                k = int(n)
                wanted = pace[i, NEXT]
                if paces and not plans:
                    k = counts[i, DONE]
                    h[i, k + 1] = next_size(pace, i)
                size = h[i, k + 1]
                ratio = ratio_of(h, i, k)
                for stage in range(stage_start, stage_stop):
                    if going == CONVERGED:
                        now = (k + span[i, 2]) * stages + stage
                        if paces and not plans:
                            now = (h.shape[1] - 1) * MOST_STAGES + i
                            time = pace[i, NOW] + numbers[FIRST_STAGE + stage * STAGE] * size
                            put_inputs(x, i, time, knots, pieces)
                            put_laws(time, laws, load[now], held[now], x.u[i])
                        else:
                            take_inputs(x, i, k, stage, inputs)
                        going = go_on(
                            pause[i, 1], pauses, t, s, b, x, c, i, stage, size, ratio, numbers, gravity[0], load[now],
                            held[now], counts, residual, matrix, factor, solve,
                        )  # fmt: skip
                if going == CONVERGED and stage_stop == stages:
                    conclude(t, x, c, b, i, size, numbers, counts, solve)
                again = wp.int32(0)
                if paces:
                    event = event_of(t, s, x, m, c, i, size, going, pace[i, NOW], not plans)
                    again = asks_again(t, x, i, size, ratio, going, event, numbers, pace, b.loops, counts)
                    going = wp.where(again != 0 and stays_out(s, pace, i), int(FAILED), int(CONVERGED))
                if going == CONVERGED and pauses == 0 and again == 0:
                    leave_step(t, s, x, m, i, k, b.loops.force, pace, out, times, counts, renew)
                if plans and (again != 0 or pace[i, NEXT] != wanted):
                    going = int(FAILED)
        pause[i, 1] = wp.where(pauses != 0, going, int(BEGIN))

    return implicit_steps
