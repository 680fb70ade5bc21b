"""The state of a step inside kernels, its prediction, prescribed motions and loops; equations of newton_stages."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.launch.buffers import Buffers
from lissom.lie import se3, so3
from lissom.lie.types import by_reference, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, device_array
from lissom.passes import group, traversal
from lissom.passes.features import is_stored, may_have_loops
from lissom.passes.scratch import Scratch
from lissom.passes.traversal import place_bases
from lissom.stepping.schemes import Scheme
from lissom.systems.bordered import LoopRows, ask_closed
from lissom.systems.loops import loop_rates, loop_residuals
from lissom.systems.newton_matrix import NewtonBuffers

Rows = wp.array2d(dtype=wp.float64)

CLOSED = wp.constant(wp.float64(1e-11))  # residual of a loop [rad, m]
AT_REST = wp.constant(wp.float64(1e-9))  # its rate [rad/s, m/s]


MOST_STAGES = 5
STAGE = 13 + 9 * (MOST_STAGES - 1)  # numbers of a stage
N_STAGES = 6  # where behind the tolerances it stands how many there are,
FOLLOWS_RATES = 7  # whether they add up rates,
POWER = 8  # to which power of h the estimated error grows,
DAMPS = 9  # whether iterations that fail go on with damping,
FIRST_ERROR = 10  # where the weights of the error begin,
FIRST_STAGE = FIRST_ERROR + 4 + 3 * (MOST_STAGES - 1)  # and where the stages do
SCHEME_NUMBERS = FIRST_STAGE + MOST_STAGES * STAGE

# What is noted of an iteration, by instance: contraction, size of the last change, whether that was by a matrix made in
# this stage, whether the next one is, whether the matrix is to be made anew, whether a kept one is tried first, the
# number of the iteration, that of unknowns, ∂a/∂Δ, ∂v/∂Δ and ∂â/∂Δ, the ∂v/∂Δ of the matrix at hand, and the estimated
# error of the step in units of the tolerance. Of damped iterations (damped_stages): the number of the start, 0 without
# damping; the part of the change that is tried, 0 before one is; size of the change, |r| and |e| of the residual before
# it; and whether a stage of this step was damped.
RATE, LAST, LAST_MADE_HERE, MADE_HERE, FRESH, TRIES_KEPT, ITERATION, UNKNOWNS, C0, C1, TO_AHEAD, KEPT_C1 = range(12)
ERROR, DAMPED_START, PART, SIZE, FORCES_LEFT, GAPS_LEFT, IS_DAMPED = range(12, 19)
NOTES = 19
# What is counted: steps done, residuals, matrices; whether there is a matrix; how many stages yet make a new matrix
# first (1: only the next, should its kept one fail too); whether the acceleration goes on as it changed; and how many
# stages yet take a slow iteration as it is; steps with damping, and residuals that damped iterations took.
DONE, EVALUATIONS, MATRICES, HAS_MATRIX, NEW_FIRST, STEADY, SLOW_IS_ENOUGH, DAMPED, DAMPED_EVALUATIONS = range(9)
COUNTS = 9


@wp.struct
class StepRowsStruct:
    """The state of a step and the work of its iteration, by instance; `ahead` is â of the scheme, `before` the
    acceleration at the start and `trend` its change since a step ago, `recent` the one a stage ago,
    `guess` the one that a stage was begun with, `earlier` Δ, v and a of the stages before; forces of loops alike.
    `rate` is that of Δ, and `bare` the acceleration were it v. A damped iteration changes the acceleration `base`
    and the forces `base_force` along `change` of Δ and `change_force`; `residual` is r, in units `row_unit`.
    `left` has `earlier` at the end of each step, and `anchored` the anchors of contacts that stick there; either may
    have no room."""

    start: Rows
    q: Rows
    v: Rows
    a: Rows
    ahead: Rows
    v_start: Rows
    ahead_start: Rows
    before: Rows
    trend: Rows
    recent: Rows
    guess: Rows
    earlier: Rows
    force_before: Rows
    force_recent: Rows
    move: Rows
    rate: Rows
    bare: Rows
    base: Rows
    change: Rows
    base_force: Rows
    change_force: Rows
    row_unit: Rows
    residual: Rows
    u: Rows
    extra: Rows
    notes: Rows
    left: Rows
    anchored: Rows
    inverse_scale: wp.array(dtype=wp.float64)


StepRows = by_reference(StepRowsStruct)


def step_rows(w: Buffers, model: Model, left: int = 0, anchored: int = 0) -> StepRowsStruct:
    """Rows for the instances of buffers, shown to the host, and numbers for what stages leave and for
    anchors at the ends of steps."""
    nv, m = model.nv, model.n_rows
    sizes = {"start": model.nq, "q": model.nq, "u": model.nu, "notes": NOTES}
    sizes |= dict.fromkeys(("force_before", "force_recent", "base_force", "change_force"), m)
    sizes |= {"earlier": 3 * (MOST_STAGES - 1) * nv, "left": left, "anchored": anchored}
    x = StepRowsStruct()
    for name in StepRowsStruct.vars:
        if name != "inverse_scale":
            setattr(x, name, w.buffer(name, (w.batch, sizes.get(name, nv))))
    scales = [device_array(one, "inverse scale", 1.0 / one.dofs.scale, wp.float64) for one in model.models or (model,)]
    x.inverse_scale = w.own(scales[0], scales)
    return x


def scheme_numbers(
    scheme: Scheme, rtol: float, atol: tuple[float, float], project: bool, share: float | None, *, damps: bool = False
) -> np.ndarray:
    """Numbers of a scheme for kernels: tolerances, then the weights of its stages in the order of `predict`. With
    `damps` an iteration that fails goes on with damping; loops then close in q alone."""
    numbers = np.zeros(SCHEME_NUMBERS)
    settles = project and scheme.is_undamped
    numbers[:N_STAGES] = rtol, *atol, project, settles, -1.0 if share is None else share
    numbers[N_STAGES:FIRST_ERROR] = len(scheme.stages), scheme.follows_rates, scheme.error_power, damps
    numbers[FIRST_ERROR:][: len(scheme.error)] = scheme.error
    for k, stage in enumerate(scheme.stages):
        weights = (stage.position, stage.velocity, stage.ahead)
        row = [stage.end, *(x for group in weights for x in group[:4])]
        for e in range(k):
            row += [x for group in weights for x in group[4 + 3 * e : 7 + 3 * e]]
        numbers[FIRST_STAGE + k * STAGE :][: len(row)] = row
    return numbers


@wp.struct
class Tolerances:
    """Tolerances, absolute ones of q and of v, whether loops keep their velocity and accelerations are settled, the
    share of (6), or less than zero, and whether stages add up rates."""

    rtol: wp.float64
    atol: wp.float64
    atol_v: wp.float64
    project: wp.float64
    settle: wp.float64
    share: wp.float64
    follows_rates: wp.float64


@wp.func
def tolerances(numbers: wp.array(dtype=wp.float64)) -> Tolerances:
    """What `numbers` begins with."""
    c = Tolerances()
    c.rtol = numbers[0]
    c.atol = numbers[1]
    c.atol_v = numbers[2]
    c.project = numbers[3]
    c.settle = numbers[4]
    c.share = numbers[5]
    c.follows_rates = numbers[FOLLOWS_RATES]
    return c


@wp.func
def correct(nv: int, x: StepRows, i: int, change: Rows, c0: wp.float64, c1: wp.float64, to_ahead: wp.float64):
    """Take a change from Δ, with what it does to rates, velocities, accelerations and â."""
    for j in range(nv):
        step = change[i, j]
        x.move[i, j] = x.move[i, j] - step
        x.bare[i, j] = x.bare[i, j] - c0 * step
        x.rate[i, j] = x.rate[i, j] - c1 * step
        x.a[i, j] = x.a[i, j] - c0 * step
        x.v[i, j] = x.v[i, j] - c1 * step
        x.ahead[i, j] = x.ahead[i, j] - to_ahead * step


@wp.struct
class Weights:
    """What a, and v, a and â at the start of a step, give of Δ, v and â of a stage, h included."""

    move: wp.vec4d
    v: wp.vec4d
    ahead: wp.vec4d


@wp.func
def weights(numbers: wp.array(dtype=wp.float64), at: int, h: wp.float64) -> Weights:
    """Weights of the stage whose numbers begin at a place."""
    w = Weights()
    square = h * h
    w.move = wp.vec4d(square * numbers[at + 1], h * numbers[at + 2], square * numbers[at + 3], square * numbers[at + 4])
    w.v = wp.vec4d(h * numbers[at + 5], numbers[at + 6], h * numbers[at + 7], h * numbers[at + 8])
    w.ahead = wp.vec4d(numbers[at + 9], numbers[at + 10] / h, numbers[at + 11], numbers[at + 12])
    return w


@wp.func
def put_prediction(nv: int, x: StepRows, w: Weights, i: int):
    """Δ, v, a and â, were the acceleration as guessed, by (1) of schemes."""
    for j in range(nv):
        known = wp.vec4d(x.guess[i, j], x.v_start[i, j], x.before[i, j], x.ahead_start[i, j])
        x.a[i, j] = known[0]
        x.move[i, j] = wp.dot(w.move, known)
        x.v[i, j] = wp.dot(w.v, known)
        x.ahead[i, j] = wp.dot(w.ahead, known)


@wp.func
def begin_step(t: Tables, x: StepRows, i: int, ratio: wp.float64, gain: wp.float64, loops: LoopRows):
    """Note where a step starts, and guess the acceleration of its first stage by (5), which adds `gain` of the change
    since a step ago; that and â first move to the step size, by `ratio` longer."""
    for j in range(x.q.shape[1]):
        x.start[i, j] = x.q[i, j]
    for j in range(t.nv):
        a = x.a[i, j]
        trend = ratio * (a - x.before[i, j])
        x.trend[i, j] = trend
        x.guess[i, j] = a + gain * trend
        x.before[i, j] = a
        x.recent[i, j] = a
        x.v_start[i, j] = x.v[i, j]
        x.ahead_start[i, j] = a + ratio * (x.ahead[i, j] - a)
    for row in range(x.force_before.shape[1]):
        force = loops.force[i, row]
        loops.force[i, row] = force + gain * ratio * (force - x.force_before[i, row])
        x.force_before[i, row] = force
        x.force_recent[i, row] = force


@wp.func
def begin_next(t: Tables, x: StepRows, i: int, stage: int, gain: wp.float64, loops: LoopRows):
    """Note Δ, v and a of the stage before, and guess the acceleration of this one by (5), which adds `gain` of the
    change in that one."""
    place = 3 * (stage - 1) * t.nv
    for j in range(t.nv):
        a = x.a[i, j]
        x.earlier[i, place + j] = x.move[i, j]
        x.earlier[i, place + t.nv + j] = x.rate[i, j]
        x.earlier[i, place + 2 * t.nv + j] = a
        x.guess[i, j] = a + gain * (a - x.recent[i, j])
        x.recent[i, j] = a
    for row in range(x.force_before.shape[1]):
        force = loops.force[i, row]
        loops.force[i, row] = force + gain * (force - x.force_recent[i, row])
        x.force_recent[i, row] = force


@wp.func
def predict(t: Tables, x: StepRows, i: int, stage: int, h: wp.float64, ratio: wp.float64, steady: int,
            numbers: wp.array(dtype=wp.float64), loops: LoopRows):  # fmt: skip
    """Δ, v, a, â and λ from which the iteration of a stage starts, and how v, a and â change with Δ."""
    at = FIRST_STAGE + STAGE * stage
    gain = numbers[at]
    if stage == 1:
        gain = (gain - numbers[at - STAGE]) / numbers[at - STAGE]
    if stage > 1:
        gain = (gain - numbers[at - STAGE]) / (numbers[at - STAGE] - numbers[at - 2 * STAGE])
    if steady != 1:
        gain = so3.ZERO
    if stage == 0:
        begin_step(t, x, i, ratio, gain, loops)
    else:
        begin_next(t, x, i, stage, gain, loops)
    inverse = so3.ONE / (numbers[at + 1] * h * h)
    x.notes[i, C0] = inverse
    x.notes[i, C1] = numbers[at + 5] * h * inverse
    x.notes[i, TO_AHEAD] = numbers[at + 9] * inverse
    place_stage(t, x, i, stage, h, numbers)


@wp.func
def place_stage(t: Tables, x: StepRows, i: int, stage: int, h: wp.float64, numbers: wp.array(dtype=wp.float64)):
    """Δ, its rate, v, a and â of a stage, were the acceleration as guessed."""
    at = FIRST_STAGE + STAGE * stage
    put_prediction(t.nv, x, weights(numbers, at, h), i)
    for e in range(stage):
        add_earlier(t, x, i, e, at + 13 + 9 * e, h, numbers)
    for j in range(t.nv):
        x.rate[i, j] = x.v[i, j]
        x.bare[i, j] = x.a[i, j]
    if numbers[FOLLOWS_RATES] != so3.ZERO:
        take_rates(t, x, i)


@wp.func
def take_rates(t: Tables, x: StepRows, i: int):
    """v and a of stored poses from the rate of Δ, and from the acceleration were that v: v = T(Δ) w of schemes."""
    if x.q.shape[1] != t.nv:
        for k in range(t.n_nodes):
            if is_stored(t.node[k].has_quaternion):
                group.take_rate(t, i, k, x.notes[i, C1], x.move, x.rate, x.bare, x.v, x.a)


@wp.func
def add_earlier(t: Tables, x: StepRows, i: int, e: int, at: int, h: wp.float64, numbers: wp.array(dtype=wp.float64)):
    """Add to Δ, v and â what Δ, v and a of an earlier stage e give, by the nine weights from `at` on."""
    for j in range(t.nv):
        move = x.earlier[i, 3 * e * t.nv + j]
        v = x.earlier[i, (3 * e + 1) * t.nv + j]
        a = x.earlier[i, (3 * e + 2) * t.nv + j]
        x.move[i, j] = x.move[i, j] + numbers[at] * move + h * (numbers[at + 1] * v + h * numbers[at + 2] * a)
        x.v[i, j] = x.v[i, j] + numbers[at + 3] * move / h + numbers[at + 4] * v + h * numbers[at + 5] * a
        x.ahead[i, j] = x.ahead[i, j] + (numbers[at + 6] * move / h + numbers[at + 7] * v) / h + numbers[at + 8] * a


@wp.func
def follow_motions(t: Tables, x: StepRows, i: int, motion: wp.array(dtype=wp.float64)):
    """Put prescribed coordinates where they are at the end of a stage."""
    n_held = t.prescribed.dof.shape[0]
    for e in range(n_held):
        k = t.prescribed.dof[e]
        x.move[i, k] = motion[e] - x.start[i, t.dofs.q[k]]
        x.v[i, k] = motion[n_held + e]
        x.a[i, k] = motion[2 * n_held + e]
        x.rate[i, k] = x.v[i, k]
        x.bare[i, k] = x.a[i, k]
        x.ahead[i, k] = x.a[i, k]
        x.before[i, k] = x.a[i, k]
        x.trend[i, k] = so3.ZERO
        x.guess[i, k] = x.a[i, k]


@wp.func
def missed(t: Tables, x: StepRows, i: int) -> wp.float64:
    """By how much (5) missed the acceleration, in natural units."""
    size = wp.float64(0.0)
    for j in range(t.nv):
        size = wp.max(size, wp.abs(x.a[i, j] - x.guess[i, j]) * x.inverse_scale[j])
    return size


@wp.func
def is_steady(t: Tables, x: StepRows, i: int) -> int:
    """1 where the acceleration has gone on as it changed before, rather than staying."""
    stays = wp.float64(0.0)
    goes = wp.float64(0.0)
    for j in range(t.nv):
        change = x.a[i, j] - x.before[i, j]
        stays = wp.max(stays, wp.abs(change) * x.inverse_scale[j])
        goes = wp.max(goes, wp.abs(change - x.trend[i, j]) * x.inverse_scale[j])
    return wp.where(goes < stays, 1, 0)


@wp.func
def still_open(t: Tables, s: Scratch, x: StepRows, c: Tolerances, i: int, loops: LoopRows):
    """What the kept rows miss, and the others: residuals over CLOSED and, where asked, rates over AT_REST."""
    kept = wp.float64(0.0)
    others = wp.float64(0.0)
    if may_have_loops() and t.loops.node.shape[0] > 0:
        place_bases(t, s, i, x.q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, x.q, x.v, x.a, vec6())
        loop_residuals(t, s, i, loops.gap)
        loop_rates(t, s, i, vec6(), loops.rate, loops.acceleration)
        for row in range(loops.gap.shape[1]):
            missing = wp.max(wp.abs(loops.gap[i, row]) / CLOSED, c.project * wp.abs(loops.rate[i, row]) / AT_REST)
            if loops.slot[i, row] >= 0:
                kept = wp.max(kept, missing)
            else:
                others = wp.max(others, missing)
    return kept, others


@wp.func
def ask_loops(
    t: Tables, s: Scratch, x: StepRows, c: Tolerances, i: int, c1: wp.float64, gravity: vec3, loops: LoopRows
):
    """Put what loops ask of the step on the right side: e = 0, or A v = 0 as (3) wants it."""
    if c.project == so3.ZERO:
        ask_closed(t.nv, i, loops, so3.ONE, loops.gap)
    else:
        loop_rates(t, s, i, se3.join(vec3(), -gravity), loops.rate, loops.acceleration)
        ask_closed(t.nv, i, loops, so3.ONE / c1, loops.rate)


@wp.func
def close_loops(t: Tables, b: NewtonBuffers, x: StepRows, i: int, c1: wp.float64, solve: wp.Function):
    """Move q alone by what is left of e when the step has changed it by −A v / c₁: the part δ of (3)."""
    for j in range(t.nv):
        b.loops.unknown[i, j] = so3.ZERO
    for row in range(b.loops.gap.shape[1]):
        b.loops.gap[i, row] = b.loops.gap[i, row] - b.loops.rate[i, row] / c1
    ask_closed(t.nv, i, b.loops, so3.ONE, b.loops.gap)
    solve(b, x, i)
    for j in range(t.nv):
        x.move[i, j] = x.move[i, j] - b.loops.unknown[i, j]


@wp.func
def settle_acceleration(t: Tables, b: NewtonBuffers, x: StepRows, i: int, c0: wp.float64, solve: wp.Function):
    """Take off the acceleration by which A a + Ȧ v differs from zero, and the forces it took, by (4)."""
    for j in range(t.nv):
        b.loops.unknown[i, j] = so3.ZERO
    ask_closed(t.nv, i, b.loops, so3.ONE, b.loops.acceleration)
    solve(b, x, i)
    for j in range(t.nv):
        x.a[i, j] = x.a[i, j] - b.loops.unknown[i, j]
        x.ahead[i, j] = x.ahead[i, j] - b.loops.unknown[i, j]
    for row in range(b.loops.force.shape[1]):
        at = b.loops.slot[i, row]
        if at >= 0:
            b.loops.force[i, row] = b.loops.force[i, row] - b.loops.sigma[i] / c0 * b.loops.unknown[i, t.nv + at]
