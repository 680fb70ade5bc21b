"""Runs of implicit steps in the kernel of fused_steps: its buffers, and what stands in them before a launch.

A run that goes on where the last one ended keeps its matrix. A step whose iteration fails ends the run; the caller cuts
it, and the next one begins with a matrix of its own.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from functools import partial
from typing import Any, final

import numpy as np
import warp as wp

from lissom.dynamics.loads import constant_laws, laws_of_time, rows_of_times, steps_of_laws
from lissom.integration.fused_steps import (
    block_steps_kernel,
    closed_steps_kernel,
    driven_block_steps_kernel,
    driven_closed_steps_kernel,
    driven_steps_kernel,
    implicit_steps_kernel,
)
from lissom.integration.paced_steps import PACE, LawsStruct
from lissom.integration.schemes import ORDER_SHARE, Scheme, StepState
from lissom.integration.state import StateDerivative
from lissom.integration.step_meetings import meeting_rows
from lissom.integration.step_rows import MOST_STAGES, SCHEME_NUMBERS, scheme_numbers, step_rows
from lissom.launch.buffers import LONG, Buffers, shown
from lissom.launch.prepare import Wanted
from lissom.launch.workspace import Workspace, own_workspace, workspace
from lissom.lie.types import vec6
from lissom.model.model import Model
from lissom.robot.expression_programs import Steps, linked
from lissom.systems.closed_blocks import steps_closed_by_blocks
from lissom.systems.newton_blocks import steps_by_blocks
from lissom.systems.newton_matrix import newton_block_buffers, newton_buffers, newton_closed_buffers

STEPS_FAMILY = "implicit_steps"
_WHOLE = 0  # in place of the room for knots, of workspaces with the matrix as a whole
LONGEST_RUN = 512  # steps in one launch: long enough to hide its cost, short enough to show progress
_LEAST_RUN = 8
_LEAST_ROOM = 64
_MOST_BYTES = 2**26  # what the steps of one launch of a batch may leave


def steps_workspace(model: Model, batch: int, knots: int = 1, drives: int = 0) -> Workspace:
    """Buffers and launch of the kernel for a batch: `span` says which of the steps at hand each instance takes, and how
    much further on in `load` and `held` stands what acts in them; with room for so many knots of inputs, and so many
    steps of the program that puts formulas into them."""
    return roomy_workspace(model, batch, *room_for(model, knots, drives))


def room_for(model: Model, knots: int = 1, drives: int = 0) -> tuple[int, int]:
    """Room for so many knots, and the length of a program that has room for so many steps for inputs."""
    return 1 if knots == 1 else _room(knots), _length(model, drives)


def whole_room(model: Model) -> tuple[int, int]:
    """The same of buffers with the matrix as a whole even of robots of many links: the derivatives of feedback laws,
    which Python adds to it, tie all to all."""
    return _WHOLE if steps_by_blocks(model) or steps_closed_by_blocks(model) else 1, _length(model, 0)


def roomy_workspace(model: Model, batch: int, room: int, length: int) -> Workspace:
    """Buffers and launch with such room."""
    make = partial(_make, room=max(room, 1), length=length, is_whole=room == _WHOLE)
    return workspace(model, f"{STEPS_FAMILY} {room} {length}", batch, make)


def _room(least: int) -> int:
    return max(_LEAST_ROOM, 4 ** ((least - 1).bit_length() // 2 + 1))


def _length(model: Model, drives: int) -> int:
    steps = len(steps_of_laws(model)) + drives
    return _room(steps + 1) if steps else 0


def steps_kernel(model: Model, drives: int = 0) -> Any:
    """The kernel of that workspace."""
    return _ways(model)[1 if _length(model, drives) else 0]


def _ways(model: Model, is_whole: bool = False) -> tuple[Any, Any, Any]:
    """The kernel, that of a robot that formulas drive, and what makes their buffers."""
    if not is_whole and steps_by_blocks(model):
        return block_steps_kernel, driven_block_steps_kernel, newton_block_buffers
    if not is_whole and steps_closed_by_blocks(model):
        return closed_steps_kernel, driven_closed_steps_kernel, newton_closed_buffers
    return implicit_steps_kernel, driven_steps_kernel, newton_buffers


def keeping_workspace(model: Model, batch: int, scheme: Scheme) -> Workspace:
    """The same, which keeps Δ, the rate of Δ and a of the stages before the last one in `left`, and anchors at the ends
    of steps in `anchored`, which are its own even for a batch of one."""
    before = len(scheme.stages) - 1
    if not before and not model.one(0, 1).surroundings.sticks:
        return steps_workspace(model, batch)
    make = partial(_make, room=1, length=_length(model, 0), before=before)
    return workspace(model, f"{STEPS_FAMILY} keeping {before}", batch, make)


def private_workspace(model: Model, batch: int, steps: int, rows: int = 0) -> Workspace:
    """The same, kept for long, with room for so many steps in a launch, anchors of their own even for a batch of one,
    and rows for what acts, or as many as all instances share."""
    make = partial(_make, room=1, length=_length(model, 0), steps=steps, rows=rows)
    return own_workspace(model, batch, make)


def bytes_of_instance(model: Model) -> int:
    """Memory of a motion in a batch, without what its steps leave."""
    w = steps_workspace(model.one(0, 1), 1)
    return max(w.buffers.nbytes - w.host["out"].nbytes - w.host["inputs"].nbytes, 1)


def _run_length(model: Model, batch: int) -> int:
    """Steps in one launch: of a batch so many that what they need and leave stays within _MOST_BYTES."""
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
) -> Buffers:
    world, keeps = model.one(0, 1).surroundings, before is not None
    anchors = 6 * len(world.pair) if world.sticks else 0
    n, row = steps or _run_length(model, batch), model.nq + 3 * model.nv + model.n_rows
    if keeps and anchors:
        n = min(n, max(_LEAST_RUN, _MOST_BYTES // (8 * anchors * batch)))
    w = Buffers(model, batch, {}, {"out": (n * row,)}, wanted=Wanted(differentiates=True), weight=LONG)
    x = step_rows(w, model, n * 3 * (before or 0) * model.nv, n * anchors if keeps else 0)
    common = rows or (n + batch) * MOST_STAGES
    shared = [
        w.buffer("numbers", (SCHEME_NUMBERS,), common=True),
        w.buffer("span", (batch, 3), wp.int32),
        w.buffer("h", (batch, n + 1)),
        w.buffer("inputs", (batch, n, MOST_STAGES * model.nu)),
        w.gravity(),
        w.buffer("load", (common, model.n_load_rows), vec6, common=True),
        w.buffer("held", (common, 3 * model.n_motions), common=True),
    ]
    out, counts = w.on_device["out"], w.buffer("counts", (batch, 7), wp.int32)
    plain, driven, buffers = _ways(model, is_whole)
    b = buffers(model, batch)
    shown(w, b.loops)
    w.share("matrix", b.matrix)
    tables = w.tables
    if (batch > 1 or steps or keeps) and anchors:
        tables = w.anchored_tables()
    laws = _put_laws(model, w, length)
    paced = [
        w.buffer("pause", (batch, 3), wp.int32),
        w.buffer("pace", (batch, PACE)),
        w.buffer("knots", (room,), common=True),
        w.buffer("pieces", (batch, room, 4 * model.nu)),
        w.buffer("times", (batch, n)),
        laws,
        meeting_rows(w, model, laws),
    ]
    w.record(driven if length else plain, [tables, w.scratch, b, x, *shared, out, counts, *paced])
    return w


def _put_laws(model: Model, w: Buffers, length: int) -> LawsStruct:
    """What drives the robot, with room for a program of a length, which `put_program` fills."""
    laws, (knots, pieces) = LawsStruct(), laws_of_time(model) or constant_laws(model)
    laws.knots = w.buffer("law_knots", knots.shape, common=True)
    laws.pieces = w.buffer("laws", pieces.shape, common=True)
    laws.code = w.buffer("code", (max(length, 1), 2), wp.int32, common=True)
    laws.numbers = w.buffer("operands", (max(length, 1),), common=True)
    w.host["law_knots"][:], w.host["laws"][:] = knots, pieces
    return laws


def program_of(model: Model, inputs: Steps) -> tuple[np.ndarray, np.ndarray]:
    """The program of a robot's laws and of its inputs, as `put_program` takes it."""
    return linked([*steps_of_laws(model), *inputs])


def put_program(w: Workspace, program: tuple[np.ndarray, np.ndarray]) -> None:
    """Fill in what evaluates expressions."""
    code, numbers = program
    w.host["code"][: len(code)], w.host["operands"][: len(numbers)] = code, numbers


def put_times(model: Model, w: Workspace, times: list[float], rows: np.ndarray | None = None) -> None:
    """Fill in what loads and prescribed motions are at the ends of stages, in the first rows or in given ones."""
    host, to = w.host, slice(len(times)) if rows is None else rows
    if model.n_load_rows:
        host["load"][to] = rows_of_times(model, times if model.loads.varies else [0.0])
    if model.n_motions:
        some = {t: k for k, t in enumerate(dict.fromkeys(times))}  # motions that are cut meet the same times
        host["held"][to] = model.motions_over(np.array(list(some)))[[some[t] for t in times]]


def put_inputs(w: Workspace, u: np.ndarray, stages: int) -> None:
    """Fill in the inputs (n, n_times, nu) at the ends of all stages of the first steps."""
    rows = u.reshape(len(u), u.shape[1] // stages, stages * u.shape[2])
    w.host["inputs"][:, : rows.shape[1], : rows.shape[2]] = rows


def put_start(
    w: Workspace, numbers: np.ndarray, here: StepState, steps: int, has_matrix: bool, known: tuple[int, int]
) -> None:
    """Fill in where so many steps begin, which are given and taken without a pause; whether there is a matrix, and what
    is known of the iterations: new_first and slow_is_enough of step_rows."""
    host = w.host
    host["numbers"][:], host["span"][0], host["pause"][:], host["pace"][:] = numbers, (0, steps, 0), 0, 0.0
    host["h"][0, 0] = here.h
    for name in ("q", "v", "a", "ahead", "before", "force", "force_before"):
        host[name][0] = getattr(here, name)
    new_first, slow_is_enough = known
    host["counts"][0] = 0, 0, 0, has_matrix, new_first, here.is_steady, slow_is_enough


def stage_times(scheme: Scheme, start: float, ends: np.ndarray) -> list[float]:
    """Where the stages of steps from `start` to the times `ends` end, step by step."""
    return ends_of_stages(scheme, np.append(start, ends[:-1]), ends).ravel().tolist()


def ends_of_stages(scheme: Scheme, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Where the stages of steps (n,) end, (n, stages)."""
    parts = scheme.ends
    times = ends[:, None] + (ends - starts)[:, None] * (parts - 1.0)
    times[:, -1] = ends
    return times


def states_follow(model: Model, project: bool, by_error: bool = False) -> bool:
    """Whether a and λ are those that q and v ask for: of robots with loops whose velocities are projected, and where
    steps are as long as their error allows, which leaves more of a than of q. Where contacts stick, the anchors are
    known to the steps alone."""
    return (project or (by_error and not model.n_rows)) and not model.one(0, 1).surroundings.sticks


def state_after(model: Model, here: StepState, rows: np.ndarray, t: float, h: float, is_steady: bool) -> StepState:
    """The state after steps from `here` that left rows (q, v, a, â, λ), the last of size h."""
    nq, nv = model.nq, model.nv
    last, first = rows[-1].copy(), nq + nv
    q, v, a = last[:nq], last[nq:first], last[first : first + nv]
    ahead, force = last[first + nv : first + 2 * nv], last[first + 2 * nv :]
    before, force_before = here.a, here.force
    if len(rows) > 1:
        one_before = rows[-2].copy()
        before, force_before = one_before[first : first + nv], one_before[first + 2 * nv :]
    return StepState(t, q, v, a, ahead, h, force, here.z, before, force_before, is_steady)


@final
class FusedSteps:
    """Runs of steps of one scheme for one robot; counts evaluations in `f`."""

    def __init__(
        self, model: Model, f: StateDerivative, scheme: Scheme, rtol: float, atol: tuple[float, float], project: bool
    ) -> None:
        self.model, self.f, self.scheme = model, f, scheme
        self.follows = states_follow(model, project)
        self.room = room_for(model)
        self.w: Workspace | None = None  # its own, from the first step on
        self.last: StepState | None = None
        self.new_first = self.slow_is_enough = 0
        self.numbers = scheme_numbers(scheme, rtol, atol, project, ORDER_SHARE)

    @staticmethod
    def can_run(model: Model, f: StateDerivative) -> bool:
        """Whether nothing but the inputs of given times comes from Python."""
        return not model.calls_python and not f.is_feedback

    def forget(self) -> None:
        """Let the next step begin with a matrix of its own."""
        self.last = None

    def step_to(self, here: StepState, end: float) -> StepState | None:
        """One step to the time `end`; None where Newton's method fails."""
        rows, _, new = self.run(here, np.array([end]))
        return new if len(rows) else None

    def run(self, here: StepState, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, StepState]:
        """Steps to the times `ends`, at most LONGEST_RUN of them.

        Returns:
            rows (q, v, a, λ), or (q, v) where a and λ follow from these, and (u, z) at those of the times that were
            reached, and the last state; fewer rows than times mean that the step after the last of them failed.
        """
        model, n = self.model, len(ends)
        w = self.w = self.w or roomy_workspace(model, 1, *self.room)
        h = ends - np.append(here.t, ends[:-1])
        host = w.host
        put_start(w, self.numbers, here, n, self.last is here, (self.new_first, self.slow_is_enough))
        host["h"][0, 1 : n + 1] = h
        times, stages = stage_times(self.scheme, here.t, ends), len(self.scheme.stages)
        shown = self.f.shown_over(np.array(times))
        put_inputs(w, shown[None, :, : model.nu], stages)
        shown = shown[stages - 1 :: stages]
        put_times(model, w, times)
        w.run()
        done, evaluations, matrices, _, self.new_first, is_steady, self.slow_is_enough = host["counts"][0].tolist()
        self.f.evaluations += evaluations
        self.f.jacobians += matrices
        rows = host["out"][0].reshape(LONGEST_RUN, -1)[:done]
        if done == 0:
            self.forget()
            return rows[:, : model.nq + model.nv], shown[:0], here
        nq, nv = model.nq, model.nv
        self.last = state_after(model, here, rows, float(ends[done - 1]), float(h[done - 1]), bool(is_steady))
        parts = [rows[:, : nq + nv]] if self.follows else [rows[:, : nq + 2 * nv], rows[:, nq + 3 * nv :]]
        return np.concatenate(parts, axis=1), shown[:done], self.last
