"""The step kernel, which takes many implicit steps in one launch, its buffers, and the arguments of a launch.

The equations are in newton_stages. The matrix is computed in one pass (newton_matrix) and factored in the kernel, as a
whole or, for robots with many links, block by block (newton_blocks). If Newton's method fails in a step, the run of its
instance ends. Inputs, loads and prescribed motions are rows of the buffers, one for each stage of each step. Adaptive
steps evaluate them from polynomials of time and expressions (step_sizes), and search for contacts (contact_search). If
a force needs Python, the kernel pauses after each part of a stage; `pause` holds whether it pauses, the next part, its
stage, and the row of the scheme's numbers.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import warp as wp

from lissom.dynamics.loads import laws_of_time, rows_of_times, steady_loads, steps_of_laws, zero_laws
from lissom.forces.contact import anchor_row
from lissom.forces.terms import Acting, no_memory
from lissom.launch.buffers import ITERATIVE_COST, Buffers, register_loops
from lissom.launch.prepare import TableOptions
from lissom.launch.workspace import Workspace, unpooled_workspace, workspace
from lissom.lie import so3
from lissom.lie.types import EXPRESSIONS, kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes.scratch import Scratch, ScratchStruct
from lissom.robot.expression_programs import Steps, linked
from lissom.stepping.contact_search import (
    ContactRows,
    ContactRowsStruct,
    advance_search,
    begin_search,
    contact_rows,
    first_event,
    no_event,
)
from lissom.stepping.feedback import (
    NativeLaw,
    add_law_response,
    begin_law,
    law_response_with,
    no_inputs,
    no_law,
    no_response,
    put_law_inputs,
)
from lissom.stepping.newton_stages import (
    BEGIN,
    CONVERGED,
    FAILED,
    LAST_JUDGE,
    NOTE,
    Counts,
    conclude,
    factor_blocks,
    factor_matrix,
    run_stage,
    solve_blocks,
    solve_matrix,
    stage_call,
)
from lissom.stepping.schemes import Scheme, StepState
from lissom.stepping.step_changes import CHANGED, KEPT, begins_unnoted, has_pairs, is_judged, judging_of
from lissom.stepping.step_rows import (
    C0,
    C1,
    COUNTS,
    DONE,
    FIRST_STAGE,
    HAS_MATRIX,
    IS_PLASTIC,
    IS_SAFE,
    MOST_STAGES,
    N_STAGES,
    PLASTIC_STEPS,
    SCHEME_NUMBERS,
    STAGE,
    STEADY,
    StepRows,
    StepRowsStruct,
    step_rows,
    tolerances,
)
from lissom.stepping.step_sizes import (
    ADAPTIVE,
    CUT,
    IS_PLANNED,
    LEAST,
    NEXT,
    NOW,
    STOP,
    LawsStruct,
    gives_up,
    next_size,
    put_laws,
    put_polynomials,
    restore_start,
    retry,
)
from lissom.systems.newton_blocks import steps_by_blocks
from lissom.systems.newton_matrix import (
    NewtonBuffers,
    NewtonBuffersStruct,
    newton_block_buffers,
    newton_blocks_of,
    newton_buffers,
    newton_matrix_of,
)
from lissom.systems.residual import residual_of

Rows = wp.array2d(dtype=wp.float64)


@wp.struct
class StepInputsStruct:
    """Inputs of the step kernel.

    numbers: weights and tolerances of the scheme, and of implicit Euler (scheme_numbers). span: for each instance the
    first step, the end, and the offset of its rows in `load` and `motion`. inputs: u of all stages. gravity, load,
    motion: gravity, and rows of loads and prescribed motions for all stages. knots, pieces: inputs as polynomials of
    time. laws: loads and motions as functions of time.
    """

    numbers: Rows
    span: wp.array2d(dtype=wp.int32)
    inputs: wp.array3d(dtype=wp.float64)
    gravity: wp.array(dtype=vec3)
    load: wp.array2d(dtype=vec6)
    motion: Rows
    knots: wp.array(dtype=wp.float64)
    pieces: wp.array3d(dtype=wp.float64)
    laws: LawsStruct


@wp.struct
class StepResultsStruct:
    """Results of the step kernel, with a row for each instance.

    out: states at the ends of steps. times: their times. h: sizes of steps, which are inputs unless steps are adaptive.
    weights: the row of numbers that each step has.
    Kept from launch to launch: counts, and `adaptive`, the state of the step-size law; its LEAST is also that of parts
    of fixed steps, and NEXT the size of the whole step. pause: whether to pause after each part, the part, the stage,
    and the row of the scheme's numbers.
    """

    out: Rows
    times: Rows
    h: Rows
    weights: wp.array2d(dtype=wp.int32)
    counts: wp.array2d(dtype=wp.int32)
    adaptive: Rows
    pause: wp.array2d(dtype=wp.int32)


@wp.func
def put_result(nv: int, x: StepRows, i: int, k: int, force: Rows, out: Rows):
    """Store (q, v, a, â, λ) in row k of the results."""
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
def put_stages(t: Tables, steps: int, x: StepRows, i: int, k: int):
    """Store Δ, its rate and a of all stages but the last in row k of `left`, and the anchors in row k of `anchored`, if
    these have room."""
    many = x.left.shape[1] / steps
    for j in range(many):
        x.left[i, k * many + j] = x.earlier[i, j]
    points = x.anchored.shape[1] / (3 * steps)
    for j in range(points):
        anchor = t.contacts.anchor[anchor_row(t, i), j]
        for r in range(3):
            x.anchored[i, 3 * (k * points + j) + r] = anchor[r]


@wp.func
def leave_no_stages(x: StepRows, i: int):
    """Set Δ, its rate and a of all stages but the last to zero, in a step with the weights of implicit Euler."""
    for j in range(x.earlier.shape[1]):
        x.earlier[i, j] = so3.ZERO


@wp.func
def take_inputs(x: StepRows, i: int, k: int, stage: int, inputs: wp.array3d(dtype=wp.float64)):
    """u at the end of a stage of step k."""
    nu = x.u.shape[1]
    for j in range(nu):
        x.u[i, j] = inputs[i, k, stage * nu + j]


@wp.func
def leave_step(
    t: Tables, s: Scratch, x: StepRows, m: ContactRows, i: int, k: int, force: Rows, adaptive: Rows, out: Rows,
    times: Rows, counts: Counts, renew: wp.Function,
):  # fmt: skip
    """Store the results of step k, which is accepted."""
    renew(t, s, i, x.q, x.v, x.a)
    if adaptive[i, STOP] > so3.ZERO:
        advance_search(s, m, i)
    put_result(t.nv, x, i, k, force, out)
    put_stages(t, times.shape[1], x, i, k)
    times[i, k] = adaptive[i, NOW]
    counts[i, DONE] = k + 1


@wp.func
def ratio_of(h: Rows, i: int, k: int) -> wp.float64:
    """Ratio of the size of step k to that of the one before."""
    if h[i, k] > so3.ZERO:
        return h[i, k + 1] / h[i, k]
    return so3.ONE


def driven_steps_kernel(acting: Acting) -> Any:
    """The step kernel of robots with loads, motions or inputs that are expressions, which the kernel evaluates."""
    return implicit_steps_kernel(acting._replace(kinds=(*acting.kinds, EXPRESSIONS)))


def implicit_steps_kernel(act: Acting) -> Any:
    """The step kernel."""
    return _kernel(act, newton_matrix_of(act), factor_matrix, solve_matrix)


def block_steps_kernel(act: Acting) -> Any:
    """The step kernel of robots whose matrix is eliminated block by block."""
    return _kernel(act, newton_blocks_of(act), factor_blocks, solve_blocks)


def driven_block_steps_kernel(acting: Acting) -> Any:
    """`block_steps_kernel` for robots with loads, motions or inputs that are expressions."""
    return block_steps_kernel(acting._replace(kinds=(*acting.kinds, EXPRESSIONS)))


def law_steps_kernel(act: Acting) -> Any:
    """The step kernel of a feedback law, which couples all coordinates."""
    plain = act.custom < 0 and act.driven < 0
    law = LAW if plain else (*LAW[:2], law_response_with(act.custom, act.driven))
    return _kernel(act, newton_matrix_of(act), factor_matrix, solve_matrix, law)


def driven_law_steps_kernel(acting: Acting) -> Any:
    """`law_steps_kernel` for robots with loads or motions that are expressions."""
    return law_steps_kernel(acting._replace(kinds=(*acting.kinds, EXPRESSIONS)))


LAW, NO_LAW = (begin_law, put_law_inputs, add_law_response), (no_law, no_inputs, no_response)


def _kernel(act: Acting, matrix: Any, factor: Any, solve: Any, law: tuple[Any, Any, Any] = NO_LAW) -> Any:
    residual, renew, (begin_stage_at, put_inputs_at, respond) = residual_of(act), act.renew, law

    @wp.func(module="unique")
    def residual_of_stage(
        t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int, gravity: vec3, load: wp.array(dtype=vec6)
    ):  # fmt: skip
        put_inputs_at(x, i)
        residual(t, s, i, x.q, x.v, x.a, x.u, x.extra, gravity, load, b.loops, b.loops.unknown)

    @wp.func(module="unique")
    def matrix_of_stage(
        t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int, gravity: vec3, load: wp.array(dtype=vec6)
    ):  # fmt: skip
        matrix(t, s, b, i, x.q, x.v, x.a, x.move, x.notes[i, C0], x.notes[i, C1], gravity, load)
        respond(t, s, b, x, i)

    searches = renew is not no_memory  # only robots with contacts have anchors and search for contacts
    event_of, begin_adaptive = (first_event, begin_search) if searches else (no_event, begins_unnoted)
    begin, judge, keep = judging_of(act)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def implicit_steps(
        t: TablesStruct, s: ScratchStruct, b: NewtonBuffersStruct, x: StepRowsStruct, g: StepInputsStruct,
        r: StepResultsStruct, m: ContactRowsStruct, first: int,
    ):  # fmt: skip
        i = first + wp.tid()
        stages = int(g.numbers[0, N_STAGES])
        pauses = r.pause[i, 0]
        stage_start = r.pause[i, 2]
        stage_stop = wp.where(pauses != 0, stage_start + 1, stages)
        status = int(CONVERGED)
        is_adaptive = r.adaptive[i, STOP] > so3.ZERO
        is_planned = r.adaptive[i, IS_PLANNED] != so3.ZERO
        judges = pauses == 0 and not is_adaptive
        part = r.pause[i, 1]
        if is_adaptive:
            begin_adaptive(t, s, x, m, i, r.counts)
        if judges or (pauses != 0 and part == NOTE):
            begin(t, s, x, m, i, r.counts)
        if pauses != 0 and part > NOTE:
            divides = CUT * r.h[i, 1] >= r.adaptive[i, LEAST]
            verdict = judge(
                t, s, x, m, i, r.h[i, 1], r.adaptive[i, NEXT], part == LAST_JUDGE, divides, g.gravity[0], r.counts
            )
            status = wp.where(verdict == KEPT, int(CONVERGED), int(FAILED))
            r.pause[i, 3] = verdict  # read by python_stages; each pause writes its own row there
        for n in range(g.span[i, 0], wp.where(pauses != 0 and part >= NOTE, g.span[i, 0], g.span[i, 1])):
            if status == CONVERGED and (not is_adaptive or r.adaptive[i, NOW] < r.adaptive[i, STOP]):
                k = int(n)
                wanted = r.adaptive[i, NEXT]
                if is_adaptive and not is_planned:
                    k = r.counts[i, DONE]
                    r.h[i, k + 1] = next_size(r.adaptive, i)
                size = r.h[i, k + 1]
                ratio = ratio_of(r.h, i, k)
                row = r.pause[i, 3]
                tries = wp.int32(1)
                if judges and is_judged(m):
                    if g.numbers[0, IS_SAFE] != so3.ZERO:
                        r.counts[i, IS_PLASTIC] = 1
                    row = r.counts[i, IS_PLASTIC]
                    tries = 2 - row
                begins = wp.int32(row)
                verdict = int(KEPT)
                for _try in range(tries):
                    if status == CONVERGED and row >= 0:
                        c = tolerances(g.numbers[row])
                        stop = wp.where(row == 1, 1, stage_stop)  # implicit Euler has one stage
                        for stage in range(stage_start, stop):
                            if status == CONVERGED:
                                end = wp.where(row == 1, stages - 1, stage)
                                now = (k + g.span[i, 2]) * stages + end
                                time = r.adaptive[i, NOW] + g.numbers[0, FIRST_STAGE + end * STAGE] * size
                                if is_adaptive and not is_planned:
                                    now = (r.h.shape[1] - 1) * MOST_STAGES + i
                                    put_polynomials(x, i, time, g.knots, g.pieces)
                                    put_laws(time, g.laws, g.load[now], g.motion[now], x.u[i])
                                else:
                                    take_inputs(x, i, k, end, g.inputs)
                                begin_stage_at(x, i, now, time, is_adaptive and not is_planned)
                                e = stage_call(
                                    stage, pauses, size, ratio, g.numbers[row], g.gravity[0], g.load[now],
                                    g.motion[now], r.counts,
                                )  # fmt: skip
                                status = run_stage(
                                    part, t, s, b, x, c, i, e, residual_of_stage, matrix_of_stage, factor,
                                    solve,
                                )  # fmt: skip
                                if judges and status == CONVERGED:
                                    divides = CUT * size >= r.adaptive[i, LEAST]
                                    verdict = judge(
                                        t, s, x, m, i, size, wanted, stage + 1 == stop, divides, g.gravity[0],
                                        r.counts,
                                    )  # fmt: skip
                                    status = wp.where(verdict == KEPT, int(CONVERGED), int(FAILED))
                        r.weights[i, k] = row
                        repeats = judges and row == 0 and (verdict == CHANGED or (verdict == KEPT and has_pairs(m)))
                        if status == FAILED and repeats:  # with row 1
                            status = int(CONVERGED)
                            r.counts[i, IS_PLASTIC] = 1
                            restore_start(t, x, i, b.loops)
                            r.counts[i, STEADY] = 0
                            r.counts[i, HAS_MATRIX] = 0
                            row = wp.int32(1)
                        else:
                            row = wp.int32(-1)
                used = r.weights[i, k]
                if judges and status != CONVERGED:
                    r.counts[i, IS_PLASTIC] = begins
                    restore_start(t, x, i, b.loops)
                c = tolerances(g.numbers[used])
                if status == CONVERGED and (stage_stop == stages or used == 1):
                    conclude(t, x, c, b, i, size, g.numbers[used], r.counts, solve)
                again = wp.int32(0)
                if is_adaptive:
                    event = event_of(t, s, x, m, c, i, size, status, r.adaptive[i, NOW], not is_planned)
                    again = retry(t, x, i, size, status, event, g.numbers[0], r.adaptive, b.loops, r.counts)
                    status = wp.where(again != 0 and gives_up(s, r.adaptive, i), int(FAILED), int(CONVERGED))
                if status == CONVERGED and pauses == 0 and again == 0:
                    if used == 1:
                        leave_no_stages(x, i)
                        r.counts[i, PLASTIC_STEPS] = r.counts[i, PLASTIC_STEPS] + 1
                    leave_step(t, s, x, m, i, k, b.loops.force, r.adaptive, r.out, r.times, r.counts, renew)
                    if judges:
                        keep(t, s, x, m, i, size, r.counts)
                if is_planned and (again != 0 or r.adaptive[i, NEXT] != wanted):
                    status = int(FAILED)
        r.pause[i, 1] = wp.where(pauses != 0, status, int(BEGIN))

    return implicit_steps


STEPS_FAMILY = "implicit_steps"
_WHOLE = 0  # replaces the room for knots, for workspaces that factor the matrix as a whole
LONGEST_RUN = 512  # largest number of steps in a launch: enough to hide its overhead, few enough to show progress
_LEAST_RUN = 8
_LEAST_ROOM = 64
_MOST_BYTES = 2**26  # largest size of the results of one launch of a batch [B]


def steps_workspace(model: Model, batch: int, knots: int = 1, drives: int = 0) -> Workspace:
    """Buffers and launch of the step kernel for a batch.

    A row of `span` has an instance's first step, the end, and the offset of its rows in `load` and `motion`.

    Args:
        knots: number of knots of inputs that must fit.
        drives: number of operations of the program that evaluates formulas of inputs.
    """
    return workspace_with_room(model, batch, *room_for(model, knots, drives))


Room = tuple[int, int, bool]  # for knots, of the program of expressions, and whether a law is evaluated


def room_for(model: Model, knots: int = 1, drives: int = 0) -> Room:
    """Room for `knots` knots, and the length of a program with `drives` steps for inputs."""
    return 1 if knots == 1 else _room(knots), _length(model, drives), False


def dense_room(model: Model) -> Room:
    """`room_for` of buffers that factor the matrix as a whole, also for robots with many links. They are needed for
    feedback laws: Python adds their derivatives to the matrix, which couple all coordinates."""
    return _WHOLE if steps_by_blocks(model) else 1, _length(model, 0), False


def law_room(model: Model) -> Room:
    """`room_for` of buffers whose kernel evaluates a feedback law. They factor the matrix as a whole."""
    return 1, _length(model, 0), True


def workspace_with_room(model: Model, batch: int, room: int, length: int, has_law: bool = False) -> Workspace:
    """Buffers and launch with the sizes from `room_for`, `dense_room` or `law_room`."""
    make = partial(_make, room=max(room, 1), length=length, is_whole=room == _WHOLE, has_law=has_law)
    return workspace(model, f"{STEPS_FAMILY} {room} {length}{' law' if has_law else ''}", batch, make)


def _room(least: int) -> int:
    return max(_LEAST_ROOM, 4 ** ((least - 1).bit_length() // 2 + 1))


def _length(model: Model, drives: int) -> int:
    steps = len(steps_of_laws(model)) + drives
    return _room(steps + 1) if steps else 0


def steps_kernel(model: Model, drives: int = 0, has_law: bool = False) -> Any:
    """The kernel of `steps_workspace`, or of `law_room`."""
    return _kernels_of(model, has_law=has_law)[1 if _length(model, drives) else 0]


def _kernels_of(model: Model, is_whole: bool = False, has_law: bool = False) -> tuple[Any, Any, Any]:
    """The step kernel, the step kernel that evaluates formulas, and the function that makes their matrix buffers."""
    if has_law:
        return law_steps_kernel, driven_law_steps_kernel, newton_buffers
    if not is_whole and steps_by_blocks(model):
        return block_steps_kernel, driven_block_steps_kernel, newton_block_buffers
    return implicit_steps_kernel, driven_steps_kernel, newton_buffers


def recording_workspace(model: Model, batch: int, scheme: Scheme, law: NativeLaw | None = None) -> Workspace:
    """`steps_workspace` that stores Δ, the rate of Δ and a of all stages but the last in `left`, and the anchors at the
    ends of steps in `anchored`. It has its own anchors even for a batch of one. A feedback law adds to the inputs."""
    before = len(scheme.stages) - 1
    if not before and law is None and not model.of_row(0, 1).contacts.sticks:
        return steps_workspace(model, batch)
    make = partial(_make, room=1, length=_length(model, 0), before=before, has_law=law is not None)
    w = workspace(model, f"{STEPS_FAMILY} keeping {before}{'' if law is None else ' law'}", batch, make)
    if law is not None:
        put_law(w, law)
    return w


def private_workspace(model: Model, batch: int, steps: int, rows: int = 0, law: NativeLaw | None = None) -> Workspace:
    """A `steps_workspace` for one owner, outside the cache. It has its own anchors even for a batch of one.

    Args:
        steps: largest number of steps in a launch.
        rows: number of rows of loads; 0: all instances share the rows.
        law: a feedback law that adds to the inputs.
    """
    make = partial(_make, room=1, length=_length(model, 0), steps=steps, rows=rows, has_law=law is not None)
    w = unpooled_workspace(model, batch, make)
    if law is not None:
        put_law(w, law)
    return w


def bytes_of_instance(model: Model) -> int:
    """Memory for one motion in a batch, without the results of its steps [B]."""
    w = steps_workspace(model.of_row(0, 1), 1)
    return max(w.buffers.nbytes - w.host["out"].nbytes - w.host["inputs"].nbytes, 1)


def _run_length(model: Model, batch: int) -> int:
    """Number of steps in one launch. For a batch, their loads and results take at most _MOST_BYTES."""
    if batch == 1:
        return LONGEST_RUN
    numbers = model.nq + 3 * model.nv + model.n_rows + MOST_STAGES * model.nu + 1
    return int(np.clip(_MOST_BYTES // (8 * numbers * max(batch, 1)), _LEAST_RUN, LONGEST_RUN))


def _make(
    model: Model,
    batch: int,
    room: int,
    length: int,
    before: int | None = None,
    steps: int = 0,
    is_whole: bool = False,
    rows: int = 0,
    has_law: bool = False,
) -> Buffers:
    world, keeps = model.of_row(0, 1).contacts, before is not None
    anchors = 6 * len(world.pair) if world.sticks else 0
    n, row = steps or _run_length(model, batch), model.nq + 3 * model.nv + model.n_rows
    if keeps and anchors:
        n = min(n, max(_LEAST_RUN, _MOST_BYTES // (8 * anchors * batch)))
    w = Buffers(
        model, batch, {}, {"out": (n * row,)}, table_options=TableOptions(derivatives=True), cost=ITERATIVE_COST
    )
    common = rows or (n + batch) * MOST_STAGES
    left = n * 3 * (before or 0) * model.nv
    x = step_rows(w, model, left, n * anchors if keeps else 0, common if has_law else 0)
    g, r = StepInputsStruct(), StepResultsStruct()
    g.numbers, g.span = w.buffer("numbers", (2, SCHEME_NUMBERS), common=True), w.buffer("span", (batch, 3), wp.int32)
    g.inputs = w.buffer("inputs", (batch, n, MOST_STAGES * model.nu))
    g.gravity, g.load = w.gravity(), w.buffer("load", (common, model.n_load_rows), vec6, common=True)
    g.motion = w.buffer("motion", (common, 3 * model.n_motions), common=True)
    g.knots, g.pieces = w.buffer("knots", (room,), common=True), w.buffer("pieces", (batch, room, 4 * model.nu))
    r.out, r.times, r.h = w.on_device["out"], w.buffer("times", (batch, n)), w.buffer("h", (batch, n + 1))
    r.weights = w.buffer("weights", (batch, n), wp.int32)
    r.counts, r.adaptive = w.buffer("counts", (batch, COUNTS), wp.int32), w.buffer("adaptive", (batch, ADAPTIVE))
    r.pause = w.buffer("pause", (batch, 4), wp.int32)
    plain, driven, buffers = _kernels_of(model, is_whole, has_law)
    b = buffers(model, batch)
    register_loops(w, b.loops)
    w.register("matrix", b.matrix)
    tables = w.tables
    if (batch > 1 or steps or keeps) and anchors:
        tables = w.anchored_tables()
    g.laws = _put_laws(model, w, length)
    inputs = [tables, w.scratch, b, x, g, r, contact_rows(w, model, g.laws)]
    w.record(driven if length else plain, inputs)
    return w


def _put_laws(model: Model, w: Buffers, length: int) -> LawsStruct:
    """Loads and motions as functions of time, with room for a program of the given length (see `put_program`)."""
    laws, (knots, pieces) = LawsStruct(), laws_of_time(model) or zero_laws(model)
    laws.knots = w.buffer("law_knots", knots.shape, common=True)
    laws.pieces = w.buffer("laws", pieces.shape, common=True)
    laws.code = w.buffer("code", (max(length, 1), 2), wp.int32, common=True)
    laws.numbers = w.buffer("operands", (max(length, 1),), common=True)
    w.host["law_knots"][:], w.host["laws"][:] = knots, pieces
    return laws


def program_of(model: Model, inputs: Steps) -> tuple[np.ndarray, np.ndarray]:
    """The program of a robot's laws and of its inputs, for `put_program`."""
    return linked([*steps_of_laws(model), *inputs])


def put_program(w: Workspace, program: tuple[np.ndarray, np.ndarray]) -> None:
    """Write the program that evaluates expressions to the buffers."""
    code, numbers = program
    w.host["code"][: len(code)], w.host["operands"][: len(numbers)] = code, numbers


def put_law(w: Workspace, law: NativeLaw) -> None:
    """Write the addresses of a feedback law to the buffers of `law_room`."""
    w.host["law"][:] = law.functions.address


def put_times(model: Model, w: Workspace, times: list[float], rows: np.ndarray | None = None) -> None:
    """Write loads and prescribed motions at the ends of stages (times [s]), and these times for a feedback law, to the
    first rows of the buffers, or to given rows."""
    host, to = w.host, slice(len(times)) if rows is None else rows
    if "law_time" in host:
        host["law_time"][to] = times
    if model.n_load_rows:
        host["load"][to] = rows_of_times(model, times) if model.loads.varies else steady_loads(model)
    if model.n_motions:
        some = {t: k for k, t in enumerate(dict.fromkeys(times))}  # motions with cut steps have the same times
        host["motion"][to] = model.motions_over(np.array(list(some)))[[some[t] for t in times]]


def put_inputs(w: Workspace, u: np.ndarray, stages: int) -> None:
    """Write the inputs (n, n_times, nu) at the ends of all stages of the first steps to the buffers."""
    rows = u.reshape(len(u), u.shape[1] // stages, stages * u.shape[2])
    w.host["inputs"][:, : rows.shape[1], : rows.shape[2]] = rows


def put_start(
    w: Workspace, numbers: np.ndarray, here: StepState, steps: int, has_matrix: bool, known: tuple[int, int]
) -> None:
    """Write the start of `steps` fixed steps without a pause to the buffers, with whether there is a matrix, and the
    counts new_first and slow_is_enough of step_rows."""
    host = w.host
    host["numbers"][:], host["span"][0], host["pause"][:], host["adaptive"][:] = numbers, (0, steps, 0), 0, 0.0
    host["h"][0, 0] = here.h
    for name in ("q", "v", "a", "ahead", "before", "force", "force_before"):
        host[name][0] = getattr(here, name)
    new_first, slow_is_enough = known
    host["counts"][0] = 0, 0, 0, has_matrix, new_first, here.is_steady, slow_is_enough, 0, 0, 0, 0, 0, 0


def stage_times(scheme: Scheme, start: float, ends: np.ndarray) -> list[float]:
    """Ends of the stages [s] of steps from `start` to the times `ends`, step by step."""
    return ends_of_stages(scheme, np.append(start, ends[:-1]), ends).ravel().tolist()


def ends_of_stages(scheme: Scheme, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Ends of the stages of n steps, shape (n, stages) [s]."""
    parts = scheme.ends
    times = ends[:, None] + (ends - starts)[:, None] * (parts - 1.0)
    times[:, -1] = ends
    return times


def states_follow(model: Model, project: bool, by_error: bool = False) -> bool:
    """Whether a and λ of results are computed from q and v, instead of taken from the steps.

    This is the case with projected velocities, and with adaptive steps without loops, for which the error of a exceeds
    the error of q. It is not the case with contacts that stick, because only the steps know the anchors.
    """
    return (project or (by_error and not model.n_rows)) and not model.of_row(0, 1).contacts.sticks


def state_after(model: Model, here: StepState, rows: np.ndarray, t: float, h: float, is_steady: bool) -> StepState:
    """The state at time t after steps from `here` with results `rows` (q, v, a, â, λ). `h` is the size of the last step
    [s]."""
    nq, nv = model.nq, model.nv
    last, first = rows[-1].copy(), nq + nv
    q, v, a = last[:nq], last[nq:first], last[first : first + nv]
    ahead, force = last[first + nv : first + 2 * nv], last[first + 2 * nv :]
    before, force_before = here.a, here.force
    if len(rows) > 1:
        previous = rows[-2].copy()
        before, force_before = previous[first : first + nv], previous[first + 2 * nv :]
    return StepState(t, q, v, a, ahead, h, force, here.z, before, force_before, is_steady)
