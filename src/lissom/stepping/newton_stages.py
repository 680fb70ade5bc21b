"""Newton's iteration of a stage of an implicit step, inside kernels, and the equations of all implicit steps.

The unknown of a step is the tangent increment Δ of the configuration. Quaternions rotate by exp(Δ), which is never
singular.

    r(Δ) = ID(q ⊕ Δ, v, a) − B u = Aᵀ λ,   a = c₀ Δ + known,  v = c₁ Δ + known                             (1)
    ∂r/∂Δ = c₀ ∂r/∂a + c₁ ∂r/∂v + ∂r/∂q T(Δ)                                                              (2)

The known parts are sums of values at the start and in earlier stages, with the weights of the scheme (`schemes`). Loops
add the rows e(q ⊕ Δ) = 0 (index 3). With projected velocities, λ enforces A v = 0 at the end of the step instead, and a
second multiplier η closes the loops in q (Gear, Gupta and Leimkuhler). Both corrections are of second order:

    q ⊕ (Δ + δ),   δ along the matrix⁻¹ Aᵀ η,   e = 0 by η,   A v = 0 by λ                                 (3)

Skates and rolling contacts restrict A v alone (index 2). Their rows have the residual A v / c₁, of the unit of Δ, in
place of e.

Schemes without damping would propagate the rounding error of A a + Ȧ v = 0 with alternating sign. It is removed by

    a − δ,   λ − δλ / c₀   with  [K, −Aᵀ; A_q, 0] (δ; δλ) = (0; A a + Ȧ v)  for the matrix K of (2)          (4)

With fixed steps, Newton's iteration starts from an extrapolated acceleration, or from the last acceleration if that was
the better prediction in the last step. It ends when the remaining error δ of Δ is within the tolerance and far below
the error of the step:

    aᵖ = aₙ + (aₙ − aₙ₋₁)   or   aᵖ = aₙ,   λ alike                                                        (5)
    |δ| ≤ 1e-4 |aₙ₊₁ − aᵖ| / c₀   in natural units                                                         (6)

If the steps resolve the motion, aₙ₊₁ − aᵖ is h² d²a/dt². Then δ is of order h⁴ and changes v by c₁ δ, of order h³ like
the error of the step. So the scheme keeps its order for any step size. (A bound by h³ da/dt, the error of aₙ, would not
suffice: it leaves an error h² in v, which accumulates to first order.) If an iteration within the tolerance does not
contract even with a new matrix, rounding errors limit it. It is accepted; for some further stages, other iterations
that stop there are accepted too.

Coordinates with a prescribed motion take its position, velocity and acceleration at the end of the step. The residuals
of r in their rows are the forces λ of the motion. Mathew 2025 (45) prescribes the position only, and the scheme
determines the acceleration. After a change of the step size this acceleration is of first order; with Newmark's ¼ and ½
its error grows with t and does not decrease with h.

Newton's matrix is reused from step to step while the step size is constant and the iteration contracts. It is replaced
in fixed steps when the changes that it has cost beyond two a stage would have paid for a new one. (A matrix made in an
impact is good enough to be kept for hundreds of steps at rest, with twice as many evaluations in each.) Adaptive steps
keep it: their iteration would end sooner, nearer to its tolerance, and momentum would drift up to six times as fast.

The error of a step is estimated from the values of its stages:

    e = Σ of the weights `error` of a scheme over (h² a; h vₙ, h² aₙ, h² âₙ; Δ₁, h v₁, h² a₁; …)           (7)
        of v: h Σ of the weights of h v in (7) over (aₙ; a₁, …, a)                                          (8)

Forces of contacts have corners: a contact opens, and a restitution has another force while it opens than while it
closes. The residual is the gradient of a potential except for friction, so that a change −δ is too long if the residual
at its end points against it. The part of δ that is kept is the root of the linear function through both slopes:

    r(Δ − δ)·δ < −½ r(Δ)·δ:   keep r(Δ)·δ/(r(Δ)·δ − r(Δ − δ)·δ)                                           (11)

Dry friction of joints is nearly a jump at rest. A change from one side of it to the other is too long likewise, and
friction is the gradient of a potential of the velocities.

A stage runs in parts: begin, residual, matrix, solve, correct and decide. The step kernel runs through them, or pauses
after each part if a force needs Python.

Rollouts do not divide steps, so that the step size does not depend on the state. If their iteration fails, it starts
again with damping. For the acceleration x, F(x, λ) = (r − Aᵀ λ; e) and the matrix S of (2), bordered by loops, the
fraction s of a change (δx; δλ) = −S⁻¹ F is halved until one of these conditions holds:

    |S⁻¹ F(x + s δx, λ + s δλ)| ≤ (1 − s/2) |S⁻¹ F(x, λ)|   in natural units of Δ                             (9)
    |F(x + s δx, λ + s δλ)| ≤ (1 − ε s) |F(x, λ)|           |r| in units of its rows, and |e|                (10)

(9) allows long steps for stiff rods. (10) is needed if a stiff contact begins, which S does not contain. Along (δx; δλ)
all rows of F decrease at the same rate at first, so r and e may be tested separately. The iteration starts with the
robot at the end of the previous stage, so that lasting contacts act from the start; a prediction of continued motion
may be deep inside an obstacle. If a step is long for its motion, there may be several roots; this start leads to a near
one. Later starts are x = 0, and x of the previous stage.

Source: Mathew 2025 §4, eqs. (10)-(12), and §5; Boyer 2023 §VI; M. Arnold, O. Brüls, A. Cardona, Numer. Math. 129, 2015;
P. Deuflhard, Newton Methods for Nonlinear Problems, 2004, section 3.3 (the natural monotonicity test (9)).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.forces import joint_friction
from lissom.forces.terms import TERMS
from lissom.lie import so3
from lissom.lie.types import by_reference, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes.features import may_have_loops
from lissom.passes.kinds import move_configuration
from lissom.passes.linear_algebra import FINITE, largest, lu_factor, lu_solve
from lissom.passes.scratch import STATUS_TOO_MANY_PAIRS, Scratch
from lissom.stepping.step_rows import (
    C0,
    C1,
    CLOSED,
    CUTS,
    DAMPED,
    DAMPED_EVALUATIONS,
    DAMPED_START,
    DAMPS,
    ERROR,
    EVALUATIONS,
    EXTRA,
    FIRST_ERROR,
    FIRST_STAGE,
    FOLLOWS_RATES,
    FORCES_LEFT,
    FRESH,
    GAPS_LEFT,
    HAS_MATRIX,
    IS_DAMPED,
    ITERATION,
    LAST,
    LAST_MADE_HERE,
    MADE_HERE,
    MATRICES,
    N_STAGES,
    NEW_FIRST,
    PART,
    RATE,
    REUSED_C1,
    SIZE,
    SLOPE,
    SLOW_IS_ENOUGH,
    STEADY,
    TO_AHEAD,
    TRIES_REUSE,
    UNKNOWNS,
    StepRows,
    Tolerances,
    close_loops,
    correct,
    follow_motions,
    is_steady,
    loop_errors,
    predict,
    prediction_error,
    put_loop_right_side,
    set_stage_state,
    settle_acceleration,
    take_rates,
)
from lissom.systems import newton_blocks
from lissom.systems.bordered import LoopRows, assemble_bordered, fix_prescribed, update_forces
from lissom.systems.couplings import row_count
from lissom.systems.loop_unknowns import put_changes
from lissom.systems.newton_matrix import NewtonBuffers

ADD_UP = wp.constant(wp.float64(2.0))  # factor of step errors, because they accumulate, above all in vibrations


@wp.func
def is_prescribed(t: Tables, j: int) -> bool:
    """Whether a coordinate has a prescribed motion."""
    found = wp.int32(0)
    for e in range(t.prescribed.dof.shape[0]):
        if t.prescribed.dof[e] == j:
            found = wp.int32(1)
    return found != 0


@wp.func
def weight(t: Tables, x: StepRows, c: Tolerances, i: int, j: int) -> wp.float64:
    """One over the tolerance of a coordinate."""
    size = so3.ONE
    place = t.dofs.q[j]
    if place >= 0:
        size = wp.abs(x.q[i, place]) * x.inverse_scale[j]
    return x.inverse_scale[j] / (c.atol + c.rtol * size)


@wp.func
def velocity_error(
    t: Tables, x: StepRows, c: Tolerances, i: int, h: wp.float64, numbers: wp.array(dtype=wp.float64)
) -> wp.float64:
    """The largest entry of (8) over the tolerance, for schemes that add up rates. The relative tolerance refers to the
    fastest coordinate. Relative to each coordinate, stiff vibrations of slow ones would need very short steps."""
    stages = int(numbers[N_STAGES])
    last = numbers[FIRST_ERROR] / numbers[FIRST_STAGE + 5]
    first = numbers[FIRST_ERROR + 1] - last
    fastest = wp.float64(0.0)
    most = wp.float64(0.0)
    for j in range(t.nv):
        e = last * x.a[i, j] + first * x.before[i, j]
        for k in range(stages - 1):
            e += numbers[FIRST_ERROR + 5 + 3 * k] * x.earlier[i, (3 * k + 2) * t.nv + j]
        fastest = wp.max(fastest, wp.abs(x.v[i, j]) * x.inverse_scale[j])
        if not is_prescribed(t, j):
            most = wp.max(most, wp.abs(e) * h * x.inverse_scale[j])
    return most / (c.atol_v + c.rtol * fastest)


@wp.func
def estimate_error(t: Tables, x: StepRows, c: Tolerances, i: int, h: wp.float64, numbers: wp.array(dtype=wp.float64)):
    """Store the largest entry of (7) over the tolerance. A mean would hide one moving coordinate among many at rest."""
    stages = int(numbers[N_STAGES])
    most = wp.float64(0.0)
    for j in range(t.nv):
        at = FIRST_ERROR
        e = numbers[at] * x.bare[i, j] + numbers[at + 2] * x.before[i, j] + numbers[at + 3] * x.ahead_start[i, j]
        e = h * (h * e + numbers[at + 1] * x.v_start[i, j])
        for k in range(stages - 1):
            at = FIRST_ERROR + 4 + 3 * k
            move = x.earlier[i, 3 * k * t.nv + j]
            rate = x.earlier[i, (3 * k + 1) * t.nv + j]
            a = x.earlier[i, (3 * k + 2) * t.nv + j]
            e += numbers[at] * move + h * (numbers[at + 1] * rate + h * numbers[at + 2] * a)
        e = e * weight(t, x, c, i, j)
        if not is_prescribed(t, j):
            most = wp.max(most, wp.abs(e))
    if numbers[FOLLOWS_RATES] != so3.ZERO:
        most = ADD_UP * wp.max(most, velocity_error(t, x, c, i, h, numbers))
    x.notes[i, ERROR] = most


Counts = wp.array2d(dtype=wp.int32)

# Parts of a stage, and how a stage ends. UNSOLVED: the iteration does not converge; a damped iteration follows. Of a
# kernel that pauses: NOTE lists the contacts at the start of a step; JUDGE and LAST_JUDGE judge it after a stage
# (step_changes).
BEGIN, RESIDUAL, MATRIX, CORRECT, UNSOLVED, FAILED, CONVERGED = range(7)
NOTE, JUDGE, LAST_JUDGE = range(7, 10)

NEWTON_SHARE = wp.constant(wp.float64(1e-2))  # largest error of Newton's iteration, relative to the tolerance
SPEED_SHARE = wp.constant(wp.float64(0.03))  # the same for v, with adaptive steps
SLOW_CONTRACTION = wp.constant(wp.float64(0.3))  # contraction above which a new matrix is made
AVOID_REUSE = wp.constant(9)  # stages that begin with a new matrix, after two in a row with which a reused one failed
ACCEPT_SLOW = wp.constant(30)  # stages that accept a slow iteration, after one that a new matrix did not make faster
MOST_ITERATIONS = wp.constant(12)
ROUNDING = wp.constant(wp.float64(1e-13))  # below this size, rounding errors may prevent a change from shrinking
ROUNDING_LEFT = wp.constant(wp.float64(2e-15))  # a remaining error of this size may be a rounding error
NEARLY_AT_REST = wp.constant(wp.float64(1e-10))  # largest move in a step of a robot for which it is small enough
ENOUGH = wp.constant(2)  # changes of a stage with a good matrix
WORTH = wp.constant(wp.float64(4.0))  # changes beyond these that cost as much as a matrix
EPS = wp.constant(wp.float64(np.finfo(float).eps))
SAME_SIZE = wp.constant(wp.float64(1e-6))  # relative change of the step that a reused matrix allows
POOR_CONTRACTION = wp.constant(wp.float64(0.5))  # contraction of a step's own matrix above which changes as long as
LONG_CHANGE = wp.constant(wp.float64(0.2))  # this, of the whole move, may lead to another root: the step is cut
OTHER_PUSH = wp.constant(wp.float64(0.5))  # part of the normal force of a contact by which it may differ from that of
# the matrix, unless it is
FAINT = wp.constant(wp.float64(1e-6))  # a smaller part than this of all normal forces
UPHILL = wp.constant(wp.float64(0.5))  # of (11)
LEAST_KEPT = wp.constant(wp.float64(0.05))  # smallest part of a change that is kept
MOST_CUTS = wp.constant(wp.float64(12.0))  # largest number of changes of a stage that are cut
FRICTION = wp.constant(wp.int32(TERMS.index(joint_friction.TERM)))  # place of its tables
DAMPED_STARTS = wp.constant(3)
MOST_DAMPED = wp.constant(wp.float64(60.0))  # largest number of changes from one start
LEAST_PART = wp.constant(wp.float64(2.0**-12))  # smallest fraction of a change
GAIN = wp.constant(wp.float64(1e-4))  # ε of (10)
DAMPED_ROUNDING = wp.constant(wp.float64(1e-12))  # changes of this size may be rounding errors,
SLOW_DAMPED = wp.constant(wp.float64(0.5))  # if they contract no faster than this


@wp.struct
class StageCallStruct:
    """A call of `run_stage`.

    stage: number of the stage. pauses: 1 to run one part only. h: size of the step. ratio: h over the size of the last
    step. numbers: weights of the scheme. gravity, load, motion: gravity, loads and prescribed motions at the end of the
    stage. counts: of all instances, which the stage changes.
    """

    stage: int
    pauses: int
    h: wp.float64
    ratio: wp.float64
    numbers: wp.array(dtype=wp.float64)
    gravity: vec3
    load: wp.array(dtype=vec6)
    motion: wp.array(dtype=wp.float64)
    counts: Counts


StageCall = by_reference(StageCallStruct)


@wp.func
def stage_call(
    stage: int, pauses: int, h: wp.float64, ratio: wp.float64, numbers: wp.array(dtype=wp.float64), gravity: vec3,
    load: wp.array(dtype=vec6), motion: wp.array(dtype=wp.float64), counts: Counts,
):  # fmt: skip
    """A StageCall of these values."""
    e = StageCallStruct()
    e.stage = stage
    e.pauses = pauses
    e.h = h
    e.ratio = ratio
    e.numbers = numbers
    e.gravity = gravity
    e.load = load
    e.motion = motion
    e.counts = counts
    return e


@wp.func(inline=False)
def run_stage(
    at: int, t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, c: Tolerances, i: int, e: StageCall,
    residual: wp.Function, matrix: wp.Function, factor: wp.Function, solve: wp.Function,
) -> int:  # fmt: skip
    """Run a stage from part `at` to its end, or one part if it pauses. Returns the next part, or how the stage
    ended."""
    part = int(at)
    while part < FAILED:
        if part == BEGIN:
            part = begin_stage(t, x, c, i, e, b)
        elif part == RESIDUAL:
            part = take_residual(t, s, b, x, i, e, residual)
        elif part == MATRIX:
            part = make_matrix(t, s, b, x, c, i, e, matrix)
        elif part == UNSOLVED:
            part = damp_stage(t, s, b, x, i, e)
        elif part == CORRECT and x.notes[i, DAMPED_START] > so3.ZERO:
            part = correct_damped(t, s, b, x, c, i, e, factor, solve)
        else:
            closes = c.share >= so3.ZERO or e.stage + 1 == int(e.numbers[N_STAGES])
            part = correct_stage(t, s, b, x, c, i, e.gravity, closes, e.counts, factor, solve)
        if e.pauses != 0:
            return part
    return part


@wp.func
def begin_stage(
    t: Tables, x: StepRows, c: Tolerances, i: int, e: StageCall, b: NewtonBuffers
) -> int:  # fmt: skip
    """Set the start of the iteration of a stage, and whether it tries the reused matrix first: it exists for this step
    size, and recently reused ones contracted."""
    predict(t, x, i, e.stage, e.h, e.ratio, e.counts[i, STEADY], e.numbers, b.loops)
    follow_motions(t, x, i, e.motion)
    move_configuration(t, i, x.start, x.move, x.q)
    if wp.abs(x.notes[i, C1] - x.notes[i, REUSED_C1]) > SAME_SIZE * x.notes[i, C1] or c.settle != so3.ZERO:
        e.counts[i, HAS_MATRIX] = 0  # (4) needs a matrix of this step
    if c.share >= so3.ZERO and x.notes[i, EXTRA] >= WORTH:
        e.counts[i, HAS_MATRIX] = 0
    if e.counts[i, NEW_FIRST] > 1:
        e.counts[i, HAS_MATRIX] = 0
        e.counts[i, NEW_FIRST] = e.counts[i, NEW_FIRST] - 1
    e.counts[i, SLOW_IS_ENOUGH] = wp.max(e.counts[i, SLOW_IS_ENOUGH] - 1, 0)
    x.notes[i, TRIES_REUSE] = wp.float64(e.counts[i, HAS_MATRIX])
    x.notes[i, UNKNOWNS] = wp.float64(t.nv + b.loops.rank[i])
    x.notes[i, RATE] = so3.ONE
    x.notes[i, LAST] = -so3.ONE
    x.notes[i, LAST_MADE_HERE] = so3.ZERO
    x.notes[i, MADE_HERE] = so3.ZERO
    x.notes[i, ITERATION] = so3.ZERO
    x.notes[i, DAMPED_START] = so3.ZERO
    x.notes[i, PART] = so3.ZERO
    x.notes[i, CUTS] = so3.ZERO
    if e.stage == 0:
        x.notes[i, IS_DAMPED] = so3.ZERO
    return RESIDUAL


@wp.func
def take_residual(
    t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int, e: StageCall, residual: wp.Function
) -> int:  # fmt: skip
    """Store r of (1) in b.loops.unknown, with zeros for prescribed coordinates. Returns MATRIX if a new matrix is
    needed, otherwise CORRECT; UNSOLVED if the residual sets the status of the instance."""
    s.status[i] = 0
    residual(t, s, b, x, i, e.gravity, e.load)
    e.counts[i, EVALUATIONS] = e.counts[i, EVALUATIONS] + 1
    is_damped = x.notes[i, DAMPED_START] > so3.ZERO
    if is_damped:
        e.counts[i, DAMPED_EVALUATIONS] = e.counts[i, DAMPED_EVALUATIONS] + 1
    if s.status[i] != 0:
        return UNSOLVED
    for n in range(t.prescribed.dof.shape[0]):
        b.loops.unknown[i, t.prescribed.dof[n]] = so3.ZERO
    iteration = int(x.notes[i, ITERATION])
    if iteration > 0 and not is_damped:
        part = part_kept(t, s, b, x, i)
        if part < so3.ONE:
            return take_back(t, x, i, part)
    rate = x.notes[i, RATE]
    fresh = (
        e.counts[i, HAS_MATRIX] == 0
        or (iteration > 2 and rate > SLOW_CONTRACTION)
        or (iteration > 0 and rate > so3.ONE)
    )
    fresh = fresh or iteration == 5 or iteration == 9
    if is_damped:
        fresh = x.notes[i, PART] == so3.ZERO
    elif not fresh and has_other_contacts(s, i):
        fresh = True
        x.notes[i, TRIES_REUSE] = so3.ZERO  # which says nothing about reuse in the next steps
    x.notes[i, FRESH] = wp.where(fresh, so3.ONE, so3.ZERO)
    return wp.where(fresh, MATRIX, CORRECT)


@wp.func
def has_near_pairs(s: Scratch, i: int) -> bool:
    """Whether pairs of contacts are near each other."""
    if s.near.made_count.shape[0] == 0:
        return False
    return s.near.count[i] > 0


@wp.func(inline=False)
def part_kept(t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int) -> wp.float64:
    """The part of the last change δ that is kept, by (11), of robots with near pairs or dry friction of joints."""
    jumps = has_near_pairs(s, i) or t.terms[FRICTION].index.shape[0] > 0
    if not jumps or x.notes[i, CUTS] >= MOST_CUTS:
        return so3.ONE
    slope = wp.float64(0.0)
    for j in range(t.nv):
        slope += b.loops.unknown[i, j] * x.change[i, j]
    before = x.notes[i, SLOPE]
    if before <= so3.ZERO or -slope <= UPHILL * before:
        return so3.ONE
    return wp.max(before / (before - slope), LEAST_KEPT)


@wp.func
def take_back(t: Tables, x: StepRows, i: int, part: wp.float64) -> int:
    """Keep a part of the last change, and take back the rest. Returns the next part of the stage."""
    x.notes[i, CUTS] = x.notes[i, CUTS] + so3.ONE
    x.notes[i, SLOPE] = part * x.notes[i, SLOPE]
    for j in range(t.nv):
        x.change[i, j] = (part - so3.ONE) * x.change[i, j]
    correct(t.nv, x, i, x.change, x.notes[i, C0], x.notes[i, C1], x.notes[i, TO_AHEAD])
    move_configuration(t, i, x.start, x.move, x.q)
    for j in range(t.nv):
        x.change[i, j] = x.change[i, j] * part / (part - so3.ONE)
    x.notes[i, LAST] = -so3.ONE
    x.notes[i, RATE] = so3.ONE
    return RESIDUAL


@wp.func(inline=False)
def has_other_contacts(s: Scratch, i: int) -> bool:
    """Whether the normal force of a pair differs by more than half from that with which the present matrix was made.
    The change by such a matrix may be small at any distance from the solution."""
    if s.near.made_count.shape[0] == 0:
        return False
    made = s.near.made_count[i]
    all_now = wp.float64(0.0)
    all_before = wp.float64(0.0)
    for j in range(s.near.count[i]):
        all_now += s.near.push[i, j]
    for k in range(made):
        all_before += s.near.made_push[i, k]
    faint = FAINT * wp.max(all_now, all_before)
    next = wp.int32(0)  # both lists are sorted by the numbers of the pairs
    for j in range(s.near.count[i]):
        now = s.near.push[i, j]
        if now != so3.ZERO:
            while next < made and s.near.made_pair[i, next] < s.near.pair[i, j]:
                if s.near.made_push[i, next] > faint:
                    return True
                next += 1
            before = so3.ZERO
            if next < made and s.near.made_pair[i, next] == s.near.pair[i, j]:
                before = s.near.made_push[i, next]
                next += 1
            most = wp.max(now, before)
            if most > faint and wp.abs(now - before) > OTHER_PUSH * most:
                return True
    while next < made and s.near.made_push[i, next] <= faint:
        next += 1
    return next < made


@wp.func(inline=False)
def note_matrix(s: Scratch, i: int):
    """Note the contacts of the present evaluation as those of the matrix."""
    if s.near.made_count.shape[0] == 0:
        return
    count = wp.int32(0)
    for j in range(s.near.count[i]):
        if s.near.push[i, j] != so3.ZERO:
            s.near.made_pair[i, count] = s.near.pair[i, j]
            s.near.made_push[i, count] = s.near.push[i, j]
            count += 1
    s.near.made_count[i] = count


@wp.func
def make_matrix(
    t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, c: Tolerances, i: int, e: StageCall, matrix: wp.Function
) -> int:  # fmt: skip
    """Make the matrix (2) and the constraint rows, and note if the reused matrix had failed."""
    matrix(t, s, b, x, i, e.gravity, e.load)
    e.counts[i, MATRICES] = e.counts[i, MATRICES] + 1
    e.counts[i, HAS_MATRIX] = 1
    x.notes[i, MADE_HERE] = so3.ONE
    note_matrix(s, i)
    x.notes[i, REUSED_C1] = x.notes[i, C1]
    x.notes[i, EXTRA] = so3.ZERO
    if x.notes[i, TRIES_REUSE] != so3.ZERO:
        if c.share >= so3.ZERO:
            e.counts[i, NEW_FIRST] = wp.where(e.counts[i, NEW_FIRST] == 0, 1, AVOID_REUSE)
        x.notes[i, TRIES_REUSE] = so3.ZERO
    return CORRECT


@wp.func
def factor_matrix(t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int) -> bool:
    """Border a new matrix by loops, fix prescribed coordinates, and factor it. Returns whether it has factors."""
    if x.notes[i, FRESH] == so3.ZERO:
        return True
    if x.notes[i, DAMPED_START] > so3.ZERO:
        for j in range(t.nv):
            largest_entry = wp.float64(0.0)
            for k in range(t.nv):
                largest_entry = wp.max(largest_entry, wp.abs(b.matrix[i, j * b.x.width + k]) / x.inverse_scale[k])
            x.row_unit[i, j] = wp.where(largest_entry > so3.ZERO, largest_entry, so3.ONE)
    n = assemble_bordered(t, b.x, i, b.matrix, b.loops.A_q, b.loops)
    x.notes[i, UNKNOWNS] = wp.float64(n)
    fix_prescribed(t, n, b.loops.width, i, b.loops.unknown, b.loops.matrix, b.loops.unknown)
    return lu_factor(n, b.loops.width, i, b.loops.matrix, b.loops.factors, b.loops.pivots) == 0


@wp.func
def solve_matrix(b: NewtonBuffers, x: StepRows, i: int):
    """Solve in place for the right side in b.loops.unknown, by the factors of factor_matrix."""
    n = int(x.notes[i, UNKNOWNS])
    lu_solve(n, b.loops.width, i, b.loops.matrix, b.loops.factors, b.loops.pivots, b.loops.unknown)


@wp.func
def put_energy_units(t: Tables, x: StepRows, i: int):
    """Set the units of the rows of r to 1/scale of their coordinates, so that r is measured in energies [J].
    factor_matrix takes units from the dense matrix instead; a matrix of blocks gives none."""
    for j in range(t.nv):
        x.row_unit[i, j] = x.inverse_scale[j]


@wp.func
def factor_blocks(t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int) -> bool:
    """Factor a new matrix of blocks. Returns whether it has factors."""
    if x.notes[i, FRESH] == so3.ZERO:
        return True
    put_energy_units(t, x, i)
    pivot = newton_blocks.factor_blocks(t, s, b.blocks, b.fronts, i, so3.ONE, b.loops, put_changes)
    x.notes[i, UNKNOWNS] = wp.float64(t.nv + b.loops.rank[i])
    return pivot == 0


@wp.func
def solve_blocks(b: NewtonBuffers, x: StepRows, i: int):
    """Solve by the factors of factor_blocks."""
    newton_blocks.solve_blocks(b.blocks, b.fronts, i, x.v.shape[1], b.loops)


@wp.func
def correct_stage(
    t: Tables,
    s: Scratch,
    b: NewtonBuffers,
    x: StepRows,
    c: Tolerances,
    i: int,
    gravity: vec3,
    closes: bool,
    counts: Counts,
    factor: wp.Function,
    solve: wp.Function,
) -> int:
    """Factor a new matrix, solve for a change of Δ and apply it. With `closes` the stage ends with closed loops.
    Returns the next part, or how the stage ended."""
    if not factor(t, s, b, x, i):
        return UNSOLVED
    c0 = x.notes[i, C0]
    c1 = x.notes[i, C1]
    put_loop_right_side(t, s, x, c, i, c1, gravity, b.loops)
    for j in range(t.nv):
        x.residual[i, j] = b.loops.unknown[i, j]
    solve(b, x, i)
    size = largest(t.nv, i, x.inverse_scale, b.loops.unknown)
    if not (size < FINITE):
        return UNSOLVED
    slope = wp.float64(0.0)
    for j in range(t.nv):
        x.change[i, j] = b.loops.unknown[i, j]
        slope += x.residual[i, j] * x.change[i, j]
    x.notes[i, SLOPE] = slope
    correct(t.nv, x, i, b.loops.unknown, c0, c1, x.notes[i, TO_AHEAD])
    if c.follows_rates != so3.ZERO:
        take_rates(t, x, i)
    update_forces(t.nv, i, b.loops)
    if may_have_loops() and c.project != so3.ZERO and row_count(t) > 0:
        close_loops(t, b, x, i, c1, solve)
    move_configuration(t, i, x.start, x.move, x.q)
    return part_after_change(t, s, b, x, c, i, size, closes, counts)


@wp.func
def part_after_change(
    t: Tables,
    s: Scratch,
    b: NewtonBuffers,
    x: StepRows,
    c: Tolerances,
    i: int,
    size: wp.float64,
    closes: bool,
    counts: Counts,
) -> int:
    """The next part after a change of the given size: RESIDUAL to continue, CONVERGED or UNSOLVED."""
    rate, left = contraction(size, x.notes[i, LAST])
    x.notes[i, RATE] = rate
    far = largest(t.nv, i, x.inverse_scale, x.move)
    made_here = x.notes[i, LAST_MADE_HERE] != so3.ZERO
    iteration = int(x.notes[i, ITERATION]) + 1
    is_last = (made_here and rate > SLOW_CONTRACTION) or iteration == MOST_ITERATIONS
    if is_converged(t, x, c, i, size, rate, left, far, is_last, counts):
        independent_error = so3.ZERO
        dependent_error = so3.ZERO
        if closes:
            independent_error, dependent_error = loop_errors(t, s, x, c, i, b.loops)
        if wp.max(independent_error, dependent_error) <= so3.ONE:
            if x.notes[i, TRIES_REUSE] != so3.ZERO:
                counts[i, NEW_FIRST] = 0
                x.notes[i, EXTRA] = x.notes[i, EXTRA] + wp.float64(wp.max(iteration - ENOUGH, 0))
            return CONVERGED
        if independent_error <= so3.ONE:
            counts[i, HAS_MATRIX] = 0  # the independent rows have changed
    if made_here and rate > POOR_CONTRACTION and size > LONG_CHANGE * far and not has_near_pairs(s, i):
        return UNSOLVED  # changes that contacts begin or end with are long, and (11) bounds them
    x.notes[i, LAST_MADE_HERE] = x.notes[i, MADE_HERE]
    x.notes[i, LAST] = size
    x.notes[i, ITERATION] = wp.float64(iteration)
    return wp.where(iteration < MOST_ITERATIONS, RESIDUAL, UNSOLVED)


@wp.func
def contraction(size: wp.float64, last: wp.float64):
    """Ratio of the last change of an iteration to the one before, and an estimate of the remaining error."""
    rate = so3.ZERO
    left = size
    if last > so3.ZERO:
        rate = size / last
        if rate < so3.ONE:
            left = wp.min(size, size * rate / (so3.ONE - rate))
    return rate, left


@wp.func
def allowed_error(t: Tables, x: StepRows, c: Tolerances, i: int) -> wp.float64:
    """The largest remaining error of Δ by (6). For schemes of order 4 it is two orders of h smaller."""
    error = prediction_error(t, x, i)
    rest = c.share * error / x.notes[i, C0]
    size = largest(t.nv, i, x.inverse_scale, x.a)
    if c.follows_rates != so3.ZERO and error < size:
        rest *= error / size
    return rest


@wp.func
def allowed_error_of_rate(t: Tables, x: StepRows, c: Tolerances, i: int) -> wp.float64:
    """The largest remaining error of Δ for its effect on v, which accumulates over all steps. It is smaller for tighter
    tolerances, which need more steps."""
    fastest = largest(t.nv, i, x.inverse_scale, x.v)
    return wp.min(SPEED_SHARE, wp.sqrt(c.rtol)) * (c.atol_v + c.rtol * fastest) / x.notes[i, C1]


@wp.func
def is_converged(
    t: Tables, x: StepRows, c: Tolerances, i: int, size: wp.float64, rate: wp.float64, left: wp.float64,
    far: wp.float64, is_last: bool, counts: Counts,
) -> bool:  # fmt: skip
    """Whether an iteration with the remaining error `left` of a move of size `far` may end, by (6)."""
    most = NEWTON_SHARE * (c.atol + c.rtol * far)
    if c.share < so3.ZERO and c.follows_rates != so3.ZERO:
        most = wp.min(most, wp.max(allowed_error_of_rate(t, x, c, i), ROUNDING_LEFT))
    if c.share >= so3.ZERO and far < NEARLY_AT_REST and left <= ROUNDING_LEFT:
        return True
    if left > most:
        return size < ROUNDING and rate > SLOW_CONTRACTION and x.notes[i, FRESH] != so3.ZERO
    if c.share < so3.ZERO or left <= wp.max(allowed_error(t, x, c, i), EPS * far):
        return True
    if counts[i, SLOW_IS_ENOUGH] > 0 and (rate > SLOW_CONTRACTION or left <= ROUNDING_LEFT):
        return True
    if is_last:
        counts[i, SLOW_IS_ENOUGH] = ACCEPT_SLOW
    return is_last


@wp.func
def conclude(
    t: Tables, x: StepRows, c: Tolerances, b: NewtonBuffers, i: int, h: wp.float64,
    numbers: wp.array(dtype=wp.float64), counts: Counts, solve: wp.Function,
):  # fmt: skip
    """Store whether the acceleration is steady and the error of a step of size h; apply (4) if the scheme needs it."""
    counts[i, STEADY] = is_steady(t, x, i)
    if x.notes[i, IS_DAMPED] != so3.ZERO:
        counts[i, DAMPED] = counts[i, DAMPED] + 1
    if c.share < so3.ZERO:  # only adaptive steps; fixed ones have a share
        estimate_error(t, x, c, i, h, numbers)
    if may_have_loops() and c.settle != so3.ZERO and row_count(t) > 0:
        settle_acceleration(t, b, x, i, x.notes[i, C0], solve)


@wp.func
def damp_stage(
    t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int, e: StageCall
) -> int:  # fmt: skip
    """Continue with damping after an iteration failed: try half of the fraction of the change that was tried, or begin
    from the next start if no change was tried or the fraction gets too small. FAILED if the scheme has no damping, or
    there are too many near pairs."""
    if e.numbers[DAMPS] == so3.ZERO or s.status[i] == STATUS_TOO_MANY_PAIRS:
        return FAILED
    part = wp.float64(0.5) * x.notes[i, PART]
    if part < LEAST_PART:
        return start_damped(t, b, x, i, e)
    return try_part(t, b, x, i, e, part)


@wp.func
def start_damped(
    t: Tables, b: NewtonBuffers, x: StepRows, i: int, e: StageCall
) -> int:  # fmt: skip
    """Begin a damped iteration from the next start. The starts are the pose at the end of the previous stage, zero
    acceleration, and the acceleration of the previous stage. FAILED after the last start."""
    start = int(x.notes[i, DAMPED_START]) + 1
    if start > DAMPED_STARTS:
        return FAILED
    for j in range(t.nv):
        x.predicted[i, j] = wp.where(start == DAMPED_STARTS, x.recent[i, j], so3.ZERO)
    if start == 1:
        set_stage_state(t, x, i, e.stage, e.h, e.numbers)
        for j in range(t.nv):
            move = so3.ZERO
            if e.stage > 0:
                move = x.earlier[i, 3 * (e.stage - 1) * t.nv + j]
            x.predicted[i, j] = (move - x.move[i, j]) * x.notes[i, C0]
    for j in range(t.nv):
        x.base[i, j] = x.predicted[i, j]
    for row in range(x.base_force.shape[1]):
        x.base_force[i, row] = x.force_recent[i, row]
        x.change_force[i, row] = so3.ZERO
    x.notes[i, DAMPED_START] = wp.float64(start)
    x.notes[i, ITERATION] = so3.ZERO
    x.notes[i, LAST] = -so3.ONE
    return try_part(t, b, x, i, e, so3.ZERO)


@wp.func
def try_part(
    t: Tables, b: NewtonBuffers, x: StepRows, i: int, e: StageCall, part: wp.float64
) -> int:  # fmt: skip
    """Move a damped iteration to a part of its change."""
    x.notes[i, PART] = part
    if part > so3.ZERO:
        for j in range(t.nv):
            x.predicted[i, j] = x.base[i, j] - part * x.notes[i, C0] * x.change[i, j]
    for row in range(x.base_force.shape[1]):
        b.loops.force[i, row] = x.base_force[i, row] - part * x.change_force[i, row]
    set_stage_state(t, x, i, e.stage, e.h, e.numbers)
    follow_motions(t, x, i, e.motion)
    move_configuration(t, i, x.start, x.move, x.q)
    return RESIDUAL


@wp.func
def correct_damped(
    t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, c: Tolerances, i: int, e: StageCall, factor: wp.Function,
    solve: wp.Function,
) -> int:  # fmt: skip
    """Solve for a change of a damped iteration, and try it whole or end with it; or judge the part that was tried."""
    if not factor(t, s, b, x, i):
        return UNSOLVED
    forces = norm_of_rows(t.nv, i, x.row_unit, b.loops.unknown)
    put_loop_right_side(t, s, x, c, i, x.notes[i, C1], e.gravity, b.loops)
    gaps = largest_residual(i, b.loops)
    for j in range(t.nv):
        x.residual[i, j] = b.loops.unknown[i, j]
    solve(b, x, i)
    size = largest(t.nv, i, x.inverse_scale, b.loops.unknown)
    part = x.notes[i, PART]
    if part > so3.ZERO:
        if not decreases(x, i, size, forces, gaps):
            return UNSOLVED
        x.notes[i, LAST] = wp.where(part == so3.ONE, x.notes[i, SIZE], -so3.ONE)
        for j in range(t.nv):
            x.base[i, j] = x.predicted[i, j]
            b.loops.unknown[i, j] = x.residual[i, j]
        for row in range(x.base_force.shape[1]):
            x.base_force[i, row] = b.loops.force[i, row]
        x.notes[i, PART] = so3.ZERO
        x.notes[i, FRESH] = so3.ONE
        return MATRIX
    x.notes[i, ITERATION] = x.notes[i, ITERATION] + so3.ONE
    if not (size < FINITE) or x.notes[i, ITERATION] > MOST_DAMPED:
        return UNSOLVED
    x.notes[i, SIZE] = size
    x.notes[i, FORCES_LEFT] = forces
    x.notes[i, GAPS_LEFT] = gaps
    for j in range(t.nv):
        x.change[i, j] = b.loops.unknown[i, j]
    for row in range(x.base_force.shape[1]):
        at = b.loops.slot[i, row]
        x.change_force[i, row] = so3.ZERO
        if at >= 0:
            x.change_force[i, row] = b.loops.sigma[i] * b.loops.unknown[i, t.nv + at]
    next_part = try_part(t, b, x, i, e, so3.ONE)
    far = largest(t.nv, i, x.inverse_scale, x.move)
    is_rounding = size < DAMPED_ROUNDING and x.notes[i, LAST] > so3.ZERO and size > SLOW_DAMPED * x.notes[i, LAST]
    if size <= NEWTON_SHARE * c.rtol * far or is_rounding:
        x.notes[i, IS_DAMPED] = so3.ONE
        return CONVERGED
    return next_part


@wp.func
def decreases(x: StepRows, i: int, size: wp.float64, forces: wp.float64, gaps: wp.float64) -> bool:
    """Whether (9) or (10) holds for the fraction s that was tried, or the change is as small as rounding errors. `size`
    is the size of the change that the trial leaves; `forces` and `gaps` are |r| and |e| after the trial."""
    part = x.notes[i, PART]
    shorter = size <= (so3.ONE - wp.float64(0.5) * part) * x.notes[i, SIZE]
    left = so3.ONE - GAIN * part
    lower = forces <= left * x.notes[i, FORCES_LEFT] and gaps <= wp.max(left * x.notes[i, GAPS_LEFT], CLOSED)
    return shorter or lower or (x.notes[i, SIZE] < DAMPED_ROUNDING and size < FINITE)


@wp.func
def norm_of_rows(n: int, i: int, unit: wp.array2d(dtype=wp.float64), r: wp.array2d(dtype=wp.float64)) -> wp.float64:
    """Norm of r in units of its rows."""
    sum = wp.float64(0.0)
    for j in range(n):
        value = r[i, j] / unit[i, j]
        sum += value * value
    return wp.sqrt(sum)


@wp.func
def largest_residual(i: int, loops: LoopRows) -> wp.float64:
    """Largest residual of the loops' independent rows."""
    most = wp.float64(0.0)
    for row in range(loops.gap.shape[1]):
        if loops.slot[i, row] >= 0:
            most = wp.max(most, wp.abs(loops.gap[i, row]))
    return most
