"""What an implicit step moves, and what motions and loops ask of it, inside kernels; equations of implicit_steps."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3, so3
from lissom.lie.types import vec3, vec6
from lissom.model.tables import Tables
from lissom.sweep import traversal
from lissom.sweep.base_frames import place_bases
from lissom.sweep.linear_solve import lu_solve
from lissom.sweep.scratch import Scratch
from lissom.systems.bordered import LoopRows, ask_closed
from lissom.systems.loops import loop_rates, loop_residuals

Rows = wp.array2d(dtype=wp.float64)

CLOSED = wp.constant(wp.float64(1e-11))  # residual of a loop [rad, m]
AT_REST = wp.constant(wp.float64(1e-9))  # its rate [rad/s, m/s]


@wp.struct
class StepRows:
    """The state of a step and the work of its iteration, by instance; `ahead` is â of the scheme, `before` the
    acceleration a step ago, `force_before` the forces of loops, `trend` the change of acceleration since, `guess` the
    one that a step was started with."""

    start: Rows
    q: Rows
    v: Rows
    a: Rows
    ahead: Rows
    before: Rows
    trend: Rows
    guess: Rows
    force_before: Rows
    move: Rows
    u: Rows
    extra: Rows
    channel: Rows
    inverse_scale: wp.array(dtype=wp.float64)


@wp.struct
class SchemeNumbers:
    """The numbers of a scheme, and the tolerances."""

    alpha_m: wp.float64
    alpha_f: wp.float64
    b0: wp.float64
    b1: wp.float64
    g0: wp.float64
    g1: wp.float64
    rtol: wp.float64
    atol: wp.float64
    project: wp.float64
    settle: wp.float64
    share: wp.float64


@wp.func
def correct(x: StepRows, i: int, j: int, step: wp.float64, c0: wp.float64, c1: wp.float64, to_ahead: wp.float64):
    """Move coordinate j by `step`, with its velocity, acceleration and â."""
    x.move[i, j] = x.move[i, j] + step
    x.a[i, j] = x.a[i, j] + c0 * step
    x.v[i, j] = x.v[i, j] + c1 * step
    x.ahead[i, j] = x.ahead[i, j] + to_ahead * step


@wp.func
def predict(
    t: Tables, x: StepRows, c: SchemeNumbers, i: int, h: wp.float64, ratio: wp.float64, steady: int,
    c0: wp.float64, c1: wp.float64, to_ahead: wp.float64, loops: LoopRows,
):  # fmt: skip
    """Δ, v, a, â and λ from which the iteration starts, by (5); â and what (5) adds first move to the step size."""
    for j in range(t.nv):
        x.trend[i, j] = ratio * (x.a[i, j] - x.before[i, j])
        x.before[i, j] = x.a[i, j]
        ahead = x.a[i, j] + ratio * (x.ahead[i, j] - x.a[i, j])
        next_ahead = (x.a[i, j] - c.alpha_m * ahead) / (so3.ONE - c.alpha_m)
        x.move[i, j] = h * x.v[i, j] + h * h * (c.b0 * ahead + c.b1 * next_ahead)
        x.v[i, j] = x.v[i, j] + h * (c.g0 * ahead + c.g1 * next_ahead)
        x.ahead[i, j] = next_ahead
        if steady == 1:
            correct(x, i, j, x.trend[i, j] / c0, c0, c1, to_ahead)
        x.guess[i, j] = x.a[i, j]
    for row in range(x.force_before.shape[1]):
        force = loops.force[i, row]
        if steady == 1:
            loops.force[i, row] = force + ratio * (force - x.force_before[i, row])
        x.force_before[i, row] = force


@wp.func
def follow_motions(t: Tables, x: StepRows, i: int, held: wp.array(dtype=wp.float64)):
    """Put prescribed coordinates where they are at the end of the step."""
    n_held = t.motion_dof.shape[0]
    for e in range(n_held):
        k = t.motion_dof[e]
        x.move[i, k] = held[e] - x.start[i, t.dof_q[k]]
        x.v[i, k] = held[n_held + e]
        x.a[i, k] = held[2 * n_held + e]
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
def still_open(t: Tables, s: Scratch, x: StepRows, c: SchemeNumbers, i: int, loops: LoopRows):
    """What the kept rows miss, and the others: residuals over CLOSED and, where asked, rates over AT_REST."""
    kept = wp.float64(0.0)
    others = wp.float64(0.0)
    if t.loop_node.shape[0] > 0:
        place_bases(t, s, i, x.q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, x.q, x.v, x.a, vec6())
        loop_residuals(t, s, i, loops.gap)
        loop_rates(t, s, i, vec6(), loops.rate, loops.turn)
        for row in range(loops.gap.shape[1]):
            missing = wp.max(wp.abs(loops.gap[i, row]) / CLOSED, c.project * wp.abs(loops.rate[i, row]) / AT_REST)
            if loops.slot[i, row] >= 0:
                kept = wp.max(kept, missing)
            else:
                others = wp.max(others, missing)
    return kept, others


@wp.func
def ask_loops(
    t: Tables, s: Scratch, x: StepRows, c: SchemeNumbers, i: int, c1: wp.float64, gravity: vec3, loops: LoopRows
):
    """Put what loops ask of the step on the right side: e = 0, or A v = 0 as (3) wants it."""
    if c.project == so3.ZERO:
        ask_closed(t.nv, i, loops, so3.ONE, loops.gap)
    else:
        loop_rates(t, s, i, se3.join(vec3(), -gravity), loops.rate, loops.turn)
        ask_closed(t.nv, i, loops, so3.ONE / c1, loops.rate)


@wp.func
def close_loops(t: Tables, x: StepRows, i: int, n: int, c1: wp.float64, loops: LoopRows):
    """Move q alone by what is left of e when the step has changed it by −A v / c₁: the part δ of (3)."""
    for j in range(t.nv):
        loops.unknown[i, j] = so3.ZERO
    for row in range(loops.gap.shape[1]):
        loops.gap[i, row] = loops.gap[i, row] - loops.rate[i, row] / c1
    ask_closed(t.nv, i, loops, so3.ONE, loops.gap)
    lu_solve(n, loops.width, i, loops.matrix, loops.factors, loops.pivots, loops.unknown)
    for j in range(t.nv):
        x.move[i, j] = x.move[i, j] - loops.unknown[i, j]


@wp.func
def settle_acceleration(t: Tables, x: StepRows, i: int, n: int, c0: wp.float64, loops: LoopRows):
    """Take off the acceleration by which A a + Ȧ v differs from zero, and the forces it took, by (4)."""
    for j in range(t.nv):
        loops.unknown[i, j] = so3.ZERO
    ask_closed(t.nv, i, loops, so3.ONE, loops.turn)
    lu_solve(n, loops.width, i, loops.matrix, loops.factors, loops.pivots, loops.unknown)
    for j in range(t.nv):
        x.a[i, j] = x.a[i, j] - loops.unknown[i, j]
        x.ahead[i, j] = x.ahead[i, j] - loops.unknown[i, j]
    for row in range(loops.force.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            loops.force[i, row] = loops.force[i, row] - loops.sigma[i] / c0 * loops.unknown[i, t.nv + at]
