"""Many implicit steps in one kernel, for robots and inputs that need no Python between two of them.

The steps and the Newton iteration are those of implicit_steps, equations (1)-(3) there, with the matrix made in one
pass (newton_matrix) and factored in the kernel; fused_runs launches them.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.forces.acting import Acting
from lissom.integration.step_rows import (
    SchemeNumbers,
    StepRows,
    ask_loops,
    close_loops,
    correct,
    follow_motions,
    is_steady,
    missed,
    predict,
    settle_acceleration,
    still_open,
)
from lissom.lie import so3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.tables import Tables
from lissom.sweep.linear_solve import largest, lu_factor, lu_solve
from lissom.sweep.moves import move_configuration
from lissom.sweep.scratch import Scratch
from lissom.systems.bordered import take_forces
from lissom.systems.constrained import hold_prescribed
from lissom.systems.newton_matrix import NewtonBuffers, newton_matrix_of
from lissom.systems.residual import residual_of

Rows = wp.array2d(dtype=wp.float64)

NEWTON_SHARE = wp.constant(wp.float64(1e-2))
SLOW = wp.constant(wp.float64(0.3))
DOUBT = wp.constant(9)  # steps that begin with a new matrix after two in a row whose kept one was of no use
SPARED = wp.constant(30)  # steps that take a slow iteration as it is, after a new matrix was of no use to one
MOST_ITERATIONS = wp.constant(12)
ROUNDING = wp.constant(wp.float64(1e-13))  # size below which it may keep a step from shrinking
LEAST = wp.constant(wp.float64(2e-15))  # rest that rounding may be the cause of
EPS = wp.constant(wp.float64(np.finfo(float).eps))
SAME_SIZE = wp.constant(wp.float64(1e-6))
DOUBTFUL = wp.constant(wp.float64(0.5))  # contraction of a step's own matrix above which changes as long as
FAR = wp.constant(wp.float64(0.2))  # this, of the whole move, may lead to another root: the step is cut


@wp.func
def factored(
    t: Tables,
    s: Scratch,
    b: NewtonBuffers,
    x: StepRows,
    i: int,
    c0: wp.float64,
    c1: wp.float64,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    counts: wp.array2d(dtype=wp.int32),
    matrix: wp.Function,
) -> int:
    """Make and factor the matrix (2), bordered by loops; its size, or −1 where it is singular."""
    n = matrix(t, s, b, i, x.q, x.v, x.a, x.move, c0, c1, x.channel, gravity, load)
    counts[i, 2] = counts[i, 2] + 1
    counts[i, 3] = 1
    hold_prescribed(t, n, b.loops.width, i, b.loops.unknown, b.loops.matrix, b.loops.unknown)
    if lu_factor(n, b.loops.width, i, b.loops.matrix, b.loops.factors, b.loops.pivots) != 0:
        return -1
    return n


@wp.func
def contraction(size: wp.float64, last: wp.float64):
    """By how much the last step of an iteration is shorter than the one before, and how far it is to the end."""
    rate = so3.ZERO
    left = size
    if last > so3.ZERO:
        rate = size / last
        if rate < so3.ONE:
            left = wp.min(size, size * rate / (so3.ONE - rate))
    return rate, left


@wp.func
def trial(i: int, counts: wp.array2d(dtype=wp.int32)) -> int:
    """1 where the kept matrix is tried first: there is one, and it is not in doubt."""
    if counts[i, 4] > 1:
        counts[i, 3] = 0
        counts[i, 4] = counts[i, 4] - 1
    return counts[i, 3]


@wp.func
def is_enough(
    t: Tables, x: StepRows, c: SchemeNumbers, i: int, c0: wp.float64, size: wp.float64, rate: wp.float64,
    left: wp.float64, far: wp.float64, fresh: bool, is_last: bool, counts: wp.array2d(dtype=wp.int32),
) -> bool:  # fmt: skip
    """Whether an iteration that leaves `left` of a step of size `far` may end, by (6)."""
    if left > NEWTON_SHARE * (c.atol + c.rtol * far):
        return size < ROUNDING and rate > SLOW and fresh
    is_spared = counts[i, 6] > 0 and (rate > SLOW or left <= LEAST)
    if left <= wp.max(c.share * missed(t, x, i) / c0, EPS * far) or is_spared:
        return True
    if is_last:
        counts[i, 6] = SPARED
    return is_last


@wp.func
def conclude(
    t: Tables, x: StepRows, c: SchemeNumbers, b: NewtonBuffers, i: int, n: int, c0: wp.float64, on_trial: int,
    counts: wp.array2d(dtype=wp.int32),
):  # fmt: skip
    """Note how a step went for the next one, and settle its acceleration where the scheme asks for that."""
    if on_trial == 1:
        counts[i, 4] = 0
    counts[i, 5] = is_steady(t, x, i)
    if c.settle != so3.ZERO:
        settle_acceleration(t, x, i, n, c0, b.loops)


@wp.func
def implicit_step(
    t: Tables,
    s: Scratch,
    b: NewtonBuffers,
    x: StepRows,
    c: SchemeNumbers,
    i: int,
    h: wp.float64,
    ratio: wp.float64,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    held: wp.array(dtype=wp.float64),
    counts: wp.array2d(dtype=wp.int32),
    residual: wp.Function,
    matrix: wp.Function,
) -> int:
    """One step of size h, by `ratio` longer than the one before; 1 where Newton's method converged."""
    c0 = (so3.ONE - c.alpha_m) / ((so3.ONE - c.alpha_f) * c.b1 * h * h)
    c1 = c.g1 / (c.b1 * h)
    to_ahead = so3.ONE / (c.b1 * h * h)
    rate = wp.float64(1.0)
    last = wp.float64(-1.0)
    predict(t, x, c, i, h, ratio, counts[i, 5], c0, c1, to_ahead, b.loops)
    follow_motions(t, x, i, held)
    n = t.nv + b.loops.kept[i]
    on_trial = trial(i, counts)
    counts[i, 6] = wp.max(counts[i, 6] - 1, 0)
    iteration = wp.int32(0)
    own = wp.int32(0)  # whether the last change was by a matrix of this step
    while iteration < MOST_ITERATIONS:
        move_configuration(t, i, x.start, x.move, x.q)
        s.status[i] = 0
        residual(t, s, i, x.q, x.v, x.a, x.u, x.extra, x.channel, gravity, load, b.loops, b.loops.unknown)
        counts[i, 1] = counts[i, 1] + 1
        if s.status[i] != 0:
            return 0
        for e in range(t.motion_dof.shape[0]):
            b.loops.unknown[i, t.motion_dof[e]] = so3.ZERO
        fresh = counts[i, 3] == 0 or (iteration > 2 and rate > SLOW) or (iteration > 0 and rate > so3.ONE)
        fresh = fresh or iteration == 5 or iteration == 9
        if fresh:
            n = factored(t, s, b, x, i, c0, c1, gravity, load, counts, matrix)
            if n < 0:
                return 0
            if on_trial == 1:
                counts[i, 4] = wp.where(counts[i, 4] == 0, 1, DOUBT)
                on_trial = wp.int32(0)
        ask_loops(t, s, x, c, i, c1, gravity, b.loops)
        lu_solve(n, b.loops.width, i, b.loops.matrix, b.loops.factors, b.loops.pivots, b.loops.unknown)
        size = largest(t.nv, i, x.inverse_scale, b.loops.unknown)
        if not (size < wp.float64(1e300)):
            return 0
        for j in range(t.nv):
            correct(x, i, j, -b.loops.unknown[i, j], c0, c1, to_ahead)
        take_forces(t.nv, i, b.loops)
        if c.project != so3.ZERO:
            close_loops(t, x, i, n, c1, b.loops)
        rate, left = contraction(size, last)
        far = largest(t.nv, i, x.inverse_scale, x.move)
        is_last = (own == 1 and rate > SLOW) or iteration == MOST_ITERATIONS - 1
        if is_enough(t, x, c, i, c0, size, rate, left, far, fresh, is_last, counts):
            move_configuration(t, i, x.start, x.move, x.q)
            kept_open, left_open = still_open(t, s, x, c, i, b.loops)
            if wp.max(kept_open, left_open) <= so3.ONE:
                conclude(t, x, c, b, i, n, c0, on_trial, counts)
                return 1
            if kept_open <= so3.ONE:
                counts[i, 3] = 0  # other rows than those chosen are independent by now
        if own == 1 and rate > DOUBTFUL and size > FAR * far:
            return 0
        if fresh:
            own = wp.int32(1)
        last = size
        iteration += 1
    return 0


@wp.func
def scheme_numbers(numbers: wp.array(dtype=wp.float64)) -> SchemeNumbers:
    """What a kernel is told of a scheme."""
    c = SchemeNumbers()
    c.alpha_m = numbers[0]
    c.alpha_f = numbers[1]
    c.b0 = numbers[2]
    c.b1 = numbers[3]
    c.g0 = numbers[4]
    c.g1 = numbers[5]
    c.rtol = numbers[6]
    c.atol = numbers[7]
    c.project = numbers[8]
    c.settle = numbers[9]
    c.share = numbers[10]
    return c


def implicit_steps_kernel(act: Acting) -> Any:
    """Kernel of many steps."""
    residual, matrix, renew = residual_of(act), newton_matrix_of(act), act.renew

    @wp.kernel(module="unique", module_options=kernel_options())
    def implicit_steps(
        t: Tables,
        s: Scratch,
        b: NewtonBuffers,
        x: StepRows,
        numbers: wp.array(dtype=wp.float64),
        span: wp.array2d(dtype=wp.int32),
        h: Rows,
        inputs: wp.array3d(dtype=wp.float64),
        gravity: wp.array(dtype=vec3),
        load: wp.array2d(dtype=vec6),
        held: Rows,
        out: Rows,
        counts: wp.array2d(dtype=wp.int32),
        first: int,
    ):
        i = first + wp.tid()
        c = scheme_numbers(numbers)
        nq = x.q.shape[1]
        m = b.loops.force.shape[1]
        row = nq + 3 * t.nv + m
        going = wp.int32(1)
        for k in range(span[i, 0], span[i, 1]):
            if going == 1:
                for j in range(nq):
                    x.start[i, j] = x.q[i, j]
                for j in range(inputs.shape[2]):
                    x.u[i, j] = inputs[i, k, j]
                ratio = wp.float64(1.0)
                if h[i, k] > so3.ZERO:
                    ratio = h[i, k + 1] / h[i, k]
                if wp.abs(ratio - so3.ONE) > SAME_SIZE or c.settle != so3.ZERO:
                    counts[i, 3] = 0  # (4) needs a matrix of this step
                now = k + span[i, 2]
                going = implicit_step(
                    t, s, b, x, c, i, h[i, k + 1], ratio, gravity[0], load[now], held[now], counts, residual, matrix
                )
                if going == 1:
                    renew(t, s, i, x.q, x.v, x.a)
                    for j in range(nq):
                        out[i, k * row + j] = x.q[i, j]
                    for j in range(t.nv):
                        out[i, k * row + nq + j] = x.v[i, j]
                        out[i, k * row + nq + t.nv + j] = x.a[i, j]
                        out[i, k * row + nq + 2 * t.nv + j] = x.ahead[i, j]
                    for j in range(m):
                        out[i, k * row + nq + 3 * t.nv + j] = b.loops.force[i, j]
                    counts[i, 0] = k + 1

    return implicit_steps
