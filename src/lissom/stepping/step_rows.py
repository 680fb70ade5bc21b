"""The state of a step inside kernels, its prediction, prescribed motions and loops. The equations are in
newton_stages."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

from functools import lru_cache

import numpy as np
import warp as wp

from lissom.launch.buffers import Buffers
from lissom.lie import se3, so3
from lissom.lie.types import by_reference, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, derived_array
from lissom.passes import kinds, traversal
from lissom.passes.features import may_have_loops
from lissom.passes.scratch import Scratch
from lissom.passes.traversal import place_bases
from lissom.stepping.schemes import MOST_STAGES, Scheme, implicit_euler
from lissom.systems.bordered import LoopRows, put_row_residuals
from lissom.systems.couplings import row_count
from lissom.systems.loops import loop_rates, loop_residuals
from lissom.systems.newton_matrix import NewtonBuffers

Rows = wp.array2d(dtype=wp.float64)

_LOOSER = 100.0  # tolerance of steps by implicit Euler in which contacts change, of first order, over that of others
CLOSED = wp.constant(wp.float64(1e-11))  # residual of a loop [rad, m]
AT_REST = wp.constant(wp.float64(1e-9))  # its rate [rad/s, m/s]


STAGE = 13 + 9 * (MOST_STAGES - 1)  # numbers of a stage
# Indices in `scheme_numbers`, after the tolerances:
N_STAGES = 6  # number of stages
FOLLOWS_RATES = 7  # whether they add up rates
POWER = 8  # power of h of the estimated error
DAMPS = 9  # whether an iteration that fails starts again with damping
IS_SAFE = 10  # 1 if the scheme has the weights of implicit Euler, 2 if they replace those of another scheme
FIRST_ERROR = 11  # first weight of the error
FIRST_STAGE = FIRST_ERROR + 4 + 3 * (MOST_STAGES - 1)  # first number of the first stage
SCHEME_NUMBERS = FIRST_STAGE + MOST_STAGES * STAGE

# Columns of `notes`, by instance: contraction; size of the last change; whether its matrix was made in this stage;
# whether that of the next change is; whether a new matrix is needed; whether a reused one is tried first; number of the
# iteration; number of unknowns; ∂a/∂Δ, ∂v/∂Δ and ∂â/∂Δ; the ∂v/∂Δ of the present matrix; and the estimated error of the
# step in units of the tolerance. Of damped iterations: number of the start, 0 without damping; part of the change that
# is tried, 0 before one is; size of the change, |r| and |e| before it; and whether a stage of this step was damped.
# SLOPE, CUTS: r·δ of the last change, and the number of changes of which a part was taken back. EXTRA: number of
# changes by the present matrix beyond ENOUGH of each stage that reused it. With a feedback law, the time at the end of
# the stage [s], and behind all columns the inputs that are added.
RATE, LAST, LAST_MADE_HERE, MADE_HERE, FRESH, TRIES_REUSE, ITERATION, UNKNOWNS, C0, C1, TO_AHEAD, REUSED_C1 = range(12)
ERROR, DAMPED_START, PART, SIZE, FORCES_LEFT, GAPS_LEFT, IS_DAMPED = range(12, 19)
TIME, SLOPE, CUTS, EXTRA = 19, 20, 21, 22
NOTES = ADDED = 23
# Columns of `counts`: steps done, residuals, matrices; whether there is a matrix; number of next stages that make a
# new matrix first (1: only the next one, if its reused matrix fails too); whether the extrapolated acceleration is the
# better prediction; number of next stages that accept a slow iteration; damped steps; residuals of damped iterations;
# whether the next step begins with the weights of implicit Euler (step_changes); the number of steps with them;
# whether a ball went through an obstacle in the last step; and whether the last step has noted the contacts at its end,
# from which the next one begins: whoever writes another state sets it to 0.
DONE, EVALUATIONS, MATRICES, HAS_MATRIX, NEW_FIRST, STEADY, SLOW_IS_ENOUGH, DAMPED, DAMPED_EVALUATIONS = range(9)
IS_PLASTIC, PLASTIC_STEPS, PASSED, IS_NOTED = range(9, 13)
COUNTS = 13


@wp.struct
class FeedbackStruct:
    """A feedback law and the scratch of its derivatives (feedback), empty without one.

    Fields:
        function: addresses of the native functions of u, and of its derivatives.
        time: times of the rows of loads of planned steps [s].
        by_q, by_v: ∂u/∂q and ∂u/∂v, row by row. change, moved: a row of them, and its product with T(Δ). column: of B.
        taut: whether each elastic tendon is taut.
    """

    function: wp.array(dtype=wp.uint64)
    time: wp.array(dtype=wp.float64)
    by_q: Rows
    by_v: Rows
    change: Rows
    moved: Rows
    column: Rows
    taut: Rows


@wp.struct
class StepRowsStruct:
    """The state of a step and the scratch of its iteration, one row for each instance.

    Fields:
        ahead: â of the scheme. before: acceleration at the start of the step. trend: its change in the last step.
        ahead_left, before_left: â and `before` as the last step left them.
        recent: acceleration at the end of the last stage. predicted: that predicted for the stage. earlier: Δ, its rate
        and a of the earlier stages. force_before, force_recent: the same for constraint forces. rate: rate of Δ. bare:
        acceleration if the rate of Δ were v. base, base_force: acceleration and constraint forces from which a damped
        iteration tries parts of change and change_force. residual: r there, in units row_unit. left: `earlier` at the
        end of each step. anchored: anchors of contacts that stick there. The last two may be empty. feedback: the law
        of inputs that depend on the state.
    """

    start: Rows
    q: Rows
    v: Rows
    a: Rows
    ahead: Rows
    v_start: Rows
    ahead_start: Rows
    ahead_left: Rows
    before_left: Rows
    before: Rows
    trend: Rows
    recent: Rows
    predicted: Rows
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
    feedback: FeedbackStruct


StepRows = by_reference(StepRowsStruct)


def step_rows(w: Buffers, model: Model, left: int = 0, anchored: int = 0, times: int = 0) -> StepRowsStruct:
    """Rows for the instances of buffers, which the host can read. `left` and `anchored` are the widths of these rows.
    With a feedback law, `times` is the number of rows of loads."""
    nv, m = model.nv, model.n_rows
    sizes = {"start": model.nq, "q": model.nq, "u": model.nu, "notes": NOTES}
    sizes |= dict.fromkeys(("force_before", "force_recent", "base_force", "change_force"), m)
    sizes |= {"earlier": 3 * (MOST_STAGES - 1) * nv, "left": left, "anchored": anchored}
    if times:
        sizes["notes"] = NOTES + model.nu
    x = StepRowsStruct()
    for name in StepRowsStruct.vars:
        if name not in ("inverse_scale", "feedback"):
            setattr(x, name, w.buffer(name, (w.batch, sizes.get(name, nv))))
    if times:
        x.feedback = _feedback(w, model, times)
    scales = [derived_array(one, "inverse scale", _inverse_scales) for one in model.models or (model,)]
    x.inverse_scale = w.per_model(scales[0], scales)
    return x


def _feedback(w: Buffers, model: Model, times: int) -> FeedbackStruct:
    """Room for a feedback law; the host writes `law` (2,) and `law_time` (times,)."""
    f, nv = FeedbackStruct(), model.nv
    f.function = w.buffer("law", (2,), wp.uint64, common=True)
    f.time = w.buffer("law_time", (times,), common=True)
    sizes = {"by_q": model.nu * nv, "by_v": model.nu * nv, "change": nv, "moved": nv, "column": nv}
    for name, size in (sizes | {"taut": len(model.spools.channel)}).items():
        setattr(f, name, wp.zeros((w.batch, size), dtype=wp.float64, device=model.device))
    return f


def _inverse_scales(model: Model) -> np.ndarray:
    return 1.0 / model.dofs.scale


@lru_cache(maxsize=64)
def scheme_numbers(
    scheme: Scheme, rtol: float, atol: tuple[float, float], project: bool, share: float | None, *, damps: bool = False
) -> np.ndarray:
    """The numbers of a scheme for kernels, and in a second row those of implicit Euler for steps in which contacts
    change (step_changes), shape (2, SCHEME_NUMBERS): tolerances, then the weights of its stages in the order of
    `predict`. With `damps` an iteration that fails starts again with damping; then loops are closed in q only."""
    given = project, share, damps, scheme.follows_rates
    is_exact = damps or scheme.stages == implicit_euler().stages  # derivatives of rollouts need converged steps
    loosest = rtol if is_exact else max(rtol, min(_LOOSER * rtol, 1e-4))
    loose = loosest, atol if is_exact else (max(atol[0], 0.01 * loosest), max(atol[1], 0.01 * loosest))
    numbers = np.array([_numbers(scheme, rtol, atol, *given), _numbers(implicit_euler(), *loose, *given)])
    numbers[1, IS_SAFE] = 2.0 - numbers[0, IS_SAFE]
    numbers.setflags(write=False)
    return numbers


def _numbers(
    scheme: Scheme, rtol: float, atol: tuple[float, float], project: bool, share: float | None, damps: bool,
    follows_rates: bool,
) -> np.ndarray:  # fmt: skip
    """The numbers of one scheme, (SCHEME_NUMBERS,)."""
    numbers = np.zeros(SCHEME_NUMBERS)
    settles = project and scheme.is_undamped
    is_safe = scheme.stages == implicit_euler().stages
    numbers[:N_STAGES] = rtol, *atol, project, settles, -1.0 if share is None else share
    numbers[N_STAGES:FIRST_ERROR] = len(scheme.stages), follows_rates, scheme.error_power, damps, is_safe
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
    """Tolerances of a step. atol, atol_v: absolute ones of q and v. project: whether velocities are projected onto
    loops. settle: whether (4) is applied. share: factor of (6), negative for adaptive steps. follows_rates: whether
    stages add up rates."""

    rtol: wp.float64
    atol: wp.float64
    atol_v: wp.float64
    project: wp.float64
    settle: wp.float64
    share: wp.float64
    follows_rates: wp.float64


@wp.func
def tolerances(numbers: wp.array(dtype=wp.float64)) -> Tolerances:
    """The tolerances at the start of `numbers`."""
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
    """Subtract a change from Δ, and its effect from rates, velocities, accelerations and â."""
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
    """Weights of a, and of v, a and â at the start of a step, in Δ, v and â of a stage, with the powers of h."""

    move: wp.vec4d
    v: wp.vec4d
    ahead: wp.vec4d


@wp.func
def weights(numbers: wp.array(dtype=wp.float64), at: int, h: wp.float64) -> Weights:
    """Weights of the stage whose numbers begin at index `at`."""
    w = Weights()
    square = h * h
    w.move = wp.vec4d(square * numbers[at + 1], h * numbers[at + 2], square * numbers[at + 3], square * numbers[at + 4])
    w.v = wp.vec4d(h * numbers[at + 5], numbers[at + 6], h * numbers[at + 7], h * numbers[at + 8])
    w.ahead = wp.vec4d(numbers[at + 9], numbers[at + 10] / h, numbers[at + 11], numbers[at + 12])
    return w


@wp.func
def put_prediction(nv: int, x: StepRows, w: Weights, i: int):
    """Set a to the predicted acceleration, and Δ, v and â to its share and those of the start of the step, with the
    weights w of a stage."""
    for j in range(nv):
        known = wp.vec4d(x.predicted[i, j], x.v_start[i, j], x.before[i, j], x.ahead_start[i, j])
        x.a[i, j] = known[0]
        x.move[i, j] = wp.dot(w.move, known)
        x.v[i, j] = wp.dot(w.v, known)
        x.ahead[i, j] = wp.dot(w.ahead, known)


@wp.func
def begin_step(t: Tables, x: StepRows, i: int, ratio: wp.float64, gain: wp.float64, loops: LoopRows):
    """Store the start of a step and predict the acceleration of its first stage by (5), with `gain` times the change in
    the last step. The change and â are first scaled to the step size, by `ratio`."""
    for j in range(x.q.shape[1]):
        x.start[i, j] = x.q[i, j]
    for j in range(t.nv):
        a = x.a[i, j]
        x.before_left[i, j] = x.before[i, j]
        x.ahead_left[i, j] = x.ahead[i, j]
        trend = ratio * (a - x.before[i, j])
        x.trend[i, j] = trend
        x.predicted[i, j] = a + gain * trend
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
    """Store Δ, its rate and a of the last stage, and predict the acceleration of this stage by (5), with `gain` times
    the change in the last stage."""
    place = 3 * (stage - 1) * t.nv
    for j in range(t.nv):
        a = x.a[i, j]
        x.earlier[i, place + j] = x.move[i, j]
        x.earlier[i, place + t.nv + j] = x.rate[i, j]
        x.earlier[i, place + 2 * t.nv + j] = a
        x.predicted[i, j] = a + gain * (a - x.recent[i, j])
        x.recent[i, j] = a
    for row in range(x.force_before.shape[1]):
        force = loops.force[i, row]
        loops.force[i, row] = force + gain * (force - x.force_recent[i, row])
        x.force_recent[i, row] = force


@wp.func
def predict(t: Tables, x: StepRows, i: int, stage: int, h: wp.float64, ratio: wp.float64, steady: int,
            numbers: wp.array(dtype=wp.float64), loops: LoopRows):  # fmt: skip
    """Set Δ, v, a, â and λ at which the iteration of a stage starts, and the derivatives of v, a and â by Δ."""
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
    if numbers[IS_SAFE] > so3.ONE:  # accelerations of an impact do not last
        for j in range(t.nv):
            x.predicted[i, j] = so3.ZERO
    inverse = so3.ONE / (numbers[at + 1] * h * h)
    x.notes[i, C0] = inverse
    x.notes[i, C1] = numbers[at + 5] * h * inverse
    x.notes[i, TO_AHEAD] = numbers[at + 9] * inverse
    set_stage_state(t, x, i, stage, h, numbers)


@wp.func
def set_stage_state(t: Tables, x: StepRows, i: int, stage: int, h: wp.float64, numbers: wp.array(dtype=wp.float64)):
    """Set Δ, its rate, v, a and â of a stage to those of the predicted acceleration."""
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
    """Set v and a of stored poses from the rate of Δ and its derivative: v = T(Δ) w of schemes."""
    if x.q.shape[1] != t.nv:
        for k in range(t.n_nodes):
            kinds.set_rates(t, i, k, x.notes[i, C1], x.move, x.rate, x.bare, x.v, x.a)


@wp.func
def add_earlier(t: Tables, x: StepRows, i: int, e: int, at: int, h: wp.float64, numbers: wp.array(dtype=wp.float64)):
    """Add Δ, its rate and a of an earlier stage e to Δ, v and â, with the nine weights from index `at` on."""
    for j in range(t.nv):
        move = x.earlier[i, 3 * e * t.nv + j]
        v = x.earlier[i, (3 * e + 1) * t.nv + j]
        a = x.earlier[i, (3 * e + 2) * t.nv + j]
        x.move[i, j] = x.move[i, j] + numbers[at] * move + h * (numbers[at + 1] * v + h * numbers[at + 2] * a)
        x.v[i, j] = x.v[i, j] + numbers[at + 3] * move / h + numbers[at + 4] * v + h * numbers[at + 5] * a
        x.ahead[i, j] = x.ahead[i, j] + (numbers[at + 6] * move / h + numbers[at + 7] * v) / h + numbers[at + 8] * a


@wp.func
def follow_motions(t: Tables, x: StepRows, i: int, motion: wp.array(dtype=wp.float64)):
    """Set prescribed coordinates to their motion at the end of a stage."""
    n_locked = t.prescribed.dof.shape[0]
    for e in range(n_locked):
        k = t.prescribed.dof[e]
        x.move[i, k] = motion[e] - x.start[i, t.dofs.q[k]]
        x.v[i, k] = motion[n_locked + e]
        x.a[i, k] = motion[2 * n_locked + e]
        x.rate[i, k] = x.v[i, k]
        x.bare[i, k] = x.a[i, k]
        x.ahead[i, k] = x.a[i, k]
        x.before[i, k] = x.a[i, k]
        x.trend[i, k] = so3.ZERO
        x.predicted[i, k] = x.a[i, k]


@wp.func
def prediction_error(t: Tables, x: StepRows, i: int) -> wp.float64:
    """Error of the prediction (5) of the acceleration, in natural units."""
    size = wp.float64(0.0)
    for j in range(t.nv):
        size = wp.max(size, wp.abs(x.a[i, j] - x.predicted[i, j]) * x.inverse_scale[j])
    return size


@wp.func
def is_steady(t: Tables, x: StepRows, i: int) -> int:
    """1 if the extrapolated acceleration of (5) would have been the better prediction, otherwise 0."""
    error_constant = wp.float64(0.0)
    error_trend = wp.float64(0.0)
    for j in range(t.nv):
        change = x.a[i, j] - x.before[i, j]
        error_constant = wp.max(error_constant, wp.abs(change) * x.inverse_scale[j])
        error_trend = wp.max(error_trend, wp.abs(change - x.trend[i, j]) * x.inverse_scale[j])
    return wp.where(error_trend < error_constant, 1, 0)


@wp.func
def loop_errors(t: Tables, s: Scratch, x: StepRows, c: Tolerances, i: int, loops: LoopRows):
    """Errors of the independent constraint rows and of the dependent ones: residuals over CLOSED, and with projection,
    or for rows that restrict velocities only, rates over AT_REST."""
    independent = wp.float64(0.0)
    dependent = wp.float64(0.0)
    if may_have_loops() and row_count(t) > 0:
        place_bases(t, s, i, x.q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, x.q, x.v, x.a, vec6())
        loop_residuals(t, s, i, x.q, loops.gap)
        loop_rates(t, s, i, x.q, x.v, x.a, vec6(), loops.rate, loops.acceleration)
        for row in range(loops.gap.shape[1]):
            of_rate = wp.max(c.project, wp.float64(loops.late[row]))
            missing = wp.max(wp.abs(loops.gap[i, row]) / CLOSED, of_rate * wp.abs(loops.rate[i, row]) / AT_REST)
            if loops.slot[i, row] >= 0:
                independent = wp.max(independent, missing)
            else:
                dependent = wp.max(dependent, missing)
    return independent, dependent


@wp.func(inline=False)
def put_loop_right_side(
    t: Tables, s: Scratch, x: StepRows, c: Tolerances, i: int, c1: wp.float64, gravity: vec3, loops: LoopRows
):
    """Set the right side of the constraint rows: e = 0, or A v = 0 for (3). Rows that restrict velocities only get
    A v / c₁ for e."""
    count = wp.int32(0)
    for row in range(loops.late.shape[0]):
        count += loops.late[row]
    if c.project != so3.ZERO or count > 0:
        loop_rates(t, s, i, x.q, x.v, x.a, se3.join(vec3(), -gravity), loops.rate, loops.acceleration)
        for row in range(loops.late.shape[0]):
            if loops.late[row] != 0:
                loops.gap[i, row] = loops.rate[i, row] / c1
    if c.project == so3.ZERO:
        put_row_residuals(t.nv, i, loops, so3.ONE, loops.gap)
    else:
        put_row_residuals(t.nv, i, loops, so3.ONE / c1, loops.rate)


@wp.func
def close_loops(t: Tables, b: NewtonBuffers, x: StepRows, i: int, c1: wp.float64, solve: wp.Function):
    """Move q by the part δ of (3), to remove the residual of e after the step has changed it by −A v / c₁."""
    for j in range(t.nv):
        b.loops.unknown[i, j] = so3.ZERO
    for row in range(b.loops.gap.shape[1]):
        b.loops.gap[i, row] = b.loops.gap[i, row] - b.loops.rate[i, row] / c1
    put_row_residuals(t.nv, i, b.loops, so3.ONE, b.loops.gap)
    solve(b, x, i)
    for j in range(t.nv):
        x.move[i, j] = x.move[i, j] - b.loops.unknown[i, j]


@wp.func
def settle_acceleration(t: Tables, b: NewtonBuffers, x: StepRows, i: int, c0: wp.float64, solve: wp.Function):
    """Remove the acceleration by which A a + Ȧ v differs from zero, and its forces, by (4)."""
    for j in range(t.nv):
        b.loops.unknown[i, j] = so3.ZERO
    put_row_residuals(t.nv, i, b.loops, so3.ONE, b.loops.acceleration)
    solve(b, x, i)
    for j in range(t.nv):
        x.a[i, j] = x.a[i, j] - b.loops.unknown[i, j]
        x.ahead[i, j] = x.ahead[i, j] - b.loops.unknown[i, j]
    for row in range(b.loops.force.shape[1]):
        at = b.loops.slot[i, row]
        if at >= 0:
            b.loops.force[i, row] = b.loops.force[i, row] - b.loops.sigma[i] / c0 * b.loops.unknown[i, t.nv + at]
