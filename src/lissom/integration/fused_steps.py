"""Many implicit steps in one kernel, for robots and inputs that need no Python between two of them.

The steps and the Newton iteration are those of implicit_steps, equations (1) and (2) there, with the matrix made in one
pass (newton_matrix) and factored in the kernel. A run that goes on where the last one ended keeps its matrix. A step
whose iteration fails ends the run; the caller cuts it.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from typing import final

import numpy as np
import warp as wp

from lissom.dynamics import sweeps
from lissom.dynamics.bordered import LoopRows, ask_closed, shown, take_forces
from lissom.dynamics.forward_dynamics import hold_prescribed, residual_force
from lissom.dynamics.inverse_dynamics import load_wrenches
from lissom.dynamics.linear_solve import largest, lu_factor, lu_solve
from lissom.dynamics.loops import loop_rates, loop_residuals
from lissom.dynamics.moves import move_configuration
from lissom.dynamics.newton_matrix import NewtonBuffers, make_newton_matrix, newton_buffers
from lissom.dynamics.sweeps import Scratch
from lissom.dynamics.workspace import Workspace, workspace
from lissom.integration.bdf import StateDerivative
from lissom.integration.schemes import Scheme, StepState
from lissom.lie import so3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables

wp.set_module_options(kernel_options())

Rows = wp.array2d(dtype=wp.float64)
LONGEST_RUN = 512  # steps in one launch: long enough to hide its cost, short enough to show progress

NEWTON_SHARE = wp.constant(wp.float64(1e-2))
SLOW = wp.constant(wp.float64(0.3))
MOST_ITERATIONS = wp.constant(12)
CLOSED = wp.constant(wp.float64(1e-11))  # residual of a loop [rad, m]
AT_REST = wp.constant(wp.float64(1e-10))  # its rate [rad/s, m/s]
SAME_SIZE = wp.constant(wp.float64(1e-6))
DIVERGED = wp.constant(wp.float64(2.0))


@wp.struct
class StepRows:
    """The state of a step and the work of its iteration, by instance; `ahead` is â of the scheme."""

    start: Rows
    q: Rows
    v: Rows
    a: Rows
    ahead: Rows
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


@wp.func
def predict(t: Tables, x: StepRows, c: SchemeNumbers, i: int, h: wp.float64, ratio: wp.float64):
    """Δ, v, a and â from which the iteration starts: the acceleration stays; â first moves to the step size."""
    for j in range(t.nv):
        ahead = x.a[i, j] + ratio * (x.ahead[i, j] - x.a[i, j])
        next_ahead = (x.a[i, j] - c.alpha_m * ahead) / (so3.ONE - c.alpha_m)
        x.move[i, j] = h * x.v[i, j] + h * h * (c.b0 * ahead + c.b1 * next_ahead)
        x.v[i, j] = x.v[i, j] + h * (c.g0 * ahead + c.g1 * next_ahead)
        x.ahead[i, j] = next_ahead


@wp.func
def correct(x: StepRows, i: int, j: int, step: wp.float64, c0: wp.float64, c1: wp.float64, to_ahead: wp.float64):
    """Move coordinate j by `step`, with its velocity, acceleration and â."""
    x.move[i, j] = x.move[i, j] + step
    x.a[i, j] = x.a[i, j] + c0 * step
    x.v[i, j] = x.v[i, j] + c1 * step
    x.ahead[i, j] = x.ahead[i, j] + to_ahead * step


@wp.func
def implicit_step(
    t: Tables,
    s: Scratch,
    b: NewtonBuffers,
    x: StepRows,
    c: SchemeNumbers,
    i: int,
    h: wp.float64,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    held: wp.array(dtype=wp.float64),
    counts: wp.array2d(dtype=wp.int32),
) -> int:
    """One step of size h, from the prediction; 1 where Newton's method converged."""
    c0 = (so3.ONE - c.alpha_m) / ((so3.ONE - c.alpha_f) * c.b1 * h * h)
    c1 = c.g1 / (c.b1 * h)
    to_ahead = so3.ONE / (c.b1 * h * h)
    rate = wp.float64(1.0)
    last = wp.float64(-1.0)
    n_held = t.motion_dof.shape[0]
    for e in range(n_held):
        k = t.motion_dof[e]
        x.move[i, k] = held[e] - x.start[i, t.dof_q[k]]
        x.v[i, k] = held[n_held + e]
        x.a[i, k] = held[2 * n_held + e]
        x.ahead[i, k] = x.a[i, k]
    n = t.nv + b.loops.kept[i]
    iteration = wp.int32(0)
    while iteration < MOST_ITERATIONS:
        move_configuration(t, i, x.start, x.move, x.q)
        s.status[i] = 0
        residual_force(t, s, i, x.q, x.v, x.a, x.u, x.extra, x.channel, gravity, load, b.loops, b.loops.unknown)
        counts[i, 1] = counts[i, 1] + 1
        if s.status[i] != 0:
            return 0
        for e in range(n_held):
            b.loops.unknown[i, t.motion_dof[e]] = so3.ZERO
        fresh = counts[i, 3] == 0 or (iteration > 2 and rate > SLOW) or (iteration > 0 and rate > so3.ONE)
        if fresh:
            n = make_newton_matrix(t, s, b, i, x.q, x.v, x.a, x.move, c0, c1, x.channel, gravity, load)
            counts[i, 2] = counts[i, 2] + 1
            hold_prescribed(t, n, b.loops.width, i, b.loops.unknown, b.loops.matrix, b.loops.unknown)
            if lu_factor(n, b.loops.width, i, b.loops.matrix, b.loops.factors, b.loops.pivots) != 0:
                return 0
            counts[i, 3] = 1
        ask_closed(t.nv, i, b.loops, b.loops.gap)
        lu_solve(n, b.loops.width, i, b.loops.matrix, b.loops.factors, b.loops.pivots, b.loops.unknown)
        size = largest(t.nv, i, x.inverse_scale, b.loops.unknown)
        if not (size < wp.float64(1e300)):
            return 0
        for j in range(t.nv):
            correct(x, i, j, -b.loops.unknown[i, j], c0, c1, to_ahead)
        take_forces(t.nv, i, b.loops)
        rate = so3.ZERO
        left = size
        if last > so3.ZERO:
            rate = size / last
            if rate < so3.ONE:
                left = size * rate / (so3.ONE - rate)
        wanted = NEWTON_SHARE * (c.atol + c.rtol * largest(t.nv, i, x.inverse_scale, x.move))
        if wp.min(size, left) <= wanted:
            move_configuration(t, i, x.start, x.move, x.q)
            kept_open, left_open = still_open(t, s, i, x.q, b.loops)
            if wp.max(kept_open, left_open) <= CLOSED:
                return 1
            if kept_open <= CLOSED:
                counts[i, 3] = 0  # other rows than those chosen are independent by now
        if rate > DIVERGED and fresh and last >= so3.ZERO and size > wanted:
            return 0
        last = size
        iteration += 1
    return 0


@wp.func
def still_open(t: Tables, s: Scratch, i: int, q: Rows, loops: LoopRows):
    """Largest residual of the rows that are kept, and of the others, at q."""
    kept = wp.float64(0.0)
    others = wp.float64(0.0)
    if t.loop_node.shape[0] > 0:
        origin = sweeps.base_origin(t, q, i)
        for k in range(t.n_dynamic):
            sweeps.outward_pose(t, s, i, k, q, origin)
        loop_residuals(t, s, i, origin, loops.gap)
        for row in range(loops.gap.shape[1]):
            if loops.slot[i, row] >= 0:
                kept = wp.max(kept, wp.abs(loops.gap[i, row]))
            else:
                others = wp.max(others, wp.abs(loops.gap[i, row]))
    return kept, others


@wp.func
def project_velocity(t: Tables, s: Scratch, b: NewtonBuffers, x: StepRows, i: int) -> int:
    """Move v onto A v = 0 by the least change in the metric of the step's matrix; 1 where it got there."""
    origin = sweeps.base_origin(t, x.q, i)
    iteration = wp.int32(0)
    while iteration < MOST_ITERATIONS:
        for k in range(t.n_dynamic):
            sweeps.outward_motion(t, s, i, k, x.q, x.v, x.a, origin, vec6())
        loop_rates(t, s, i, vec6(), origin, b.loops.rate, b.loops.turn)
        size = wp.float64(0.0)
        for row in range(b.loops.rate.shape[1]):
            size = wp.max(size, wp.abs(b.loops.rate[i, row]))
        if size <= AT_REST:
            return 1
        for j in range(t.nv):
            b.loops.unknown[i, j] = so3.ZERO
        ask_closed(t.nv, i, b.loops, b.loops.rate)
        n = t.nv + b.loops.kept[i]
        lu_solve(n, b.loops.width, i, b.loops.matrix, b.loops.factors, b.loops.pivots, b.loops.unknown)
        for j in range(t.nv):
            x.v[i, j] = x.v[i, j] - b.loops.unknown[i, j]
        iteration += 1
    return 0


@wp.kernel
def implicit_steps_kernel(
    t: Tables,
    s: Scratch,
    b: NewtonBuffers,
    x: StepRows,
    numbers: wp.array(dtype=wp.float64),
    steps: wp.array(dtype=wp.int32),
    h: wp.array(dtype=wp.float64),
    inputs: Rows,
    gravity: wp.array(dtype=vec3),
    load: wp.array2d(dtype=vec6),
    held: Rows,
    out: Rows,
    counts: wp.array2d(dtype=wp.int32),
    first: int,
):
    i = first + wp.tid()
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
    nq = x.q.shape[1]
    m = b.loops.force.shape[1]
    row = nq + 3 * t.nv + m
    going = wp.int32(1)
    for k in range(steps[0]):
        if going == 1:
            for j in range(nq):
                x.start[i, j] = x.q[i, j]
            for j in range(inputs.shape[1]):
                x.u[i, j] = inputs[k, j]
            ratio = wp.float64(1.0)
            if h[k] > so3.ZERO:
                ratio = h[k + 1] / h[k]
            if wp.abs(ratio - so3.ONE) > SAME_SIZE:
                counts[i, 3] = 0
            predict(t, x, c, i, h[k + 1], ratio)
            going = implicit_step(t, s, b, x, c, i, h[k + 1], gravity[0], load[k], held[k], counts)
            if going == 1 and m > 0 and c.project != so3.ZERO:
                going = project_velocity(t, s, b, x, i)
            if going == 1:
                for j in range(nq):
                    out[i, k * row + j] = x.q[i, j]
                for j in range(t.nv):
                    out[i, k * row + nq + j] = x.v[i, j]
                    out[i, k * row + nq + t.nv + j] = x.a[i, j]
                    out[i, k * row + nq + 2 * t.nv + j] = x.ahead[i, j]
                for j in range(m):
                    out[i, k * row + nq + 3 * t.nv + j] = b.loops.force[i, j]
                counts[i, 0] = k + 1


def _make(model: Model, batch: int) -> Workspace:
    nq, nv, n = model.nq, model.nv, LONGEST_RUN
    sizes = {"start": nq, "q": nq, "u": model.nu, "extra": nv, "channel": len(model.channel_names)}
    sizes |= {name: nv for name in ("v", "a", "ahead", "move")}
    row = nq + 3 * nv + model.n_rows
    w = Workspace(model, batch, {name: (size,) for name, size in sizes.items()} | {"out": (n * row,)})
    x = StepRows()
    for name in sizes:
        setattr(x, name, w.on_device[name])
    x.inverse_scale = wp.array(1.0 / model.dof_scale, dtype=wp.float64, device=model.device)
    shared = [
        w.buffer("numbers", (9,)),
        w.buffer("steps", (1,), wp.int32),
        w.buffer("h", (n + 1,)),
        w.buffer("inputs", (n, model.nu)),
        w.buffer("gravity", (1,), vec3),
        w.buffer("load", (n, len(model.load_wrench)), vec6),
        w.buffer("held", (n, 3 * model.n_motions)),
    ]
    w.host["gravity"][0] = model.gravity
    out, counts = w.on_device["out"], w.buffer("counts", (batch, 4), wp.int32)
    b = newton_buffers(model, batch)
    shown(w, b.loops)
    w.record(implicit_steps_kernel, [w.tables, w.scratch, b, x, *shared, out, counts])
    return w


@final
class FusedSteps:
    """Runs of steps of one scheme for one robot; counts evaluations in `f`."""

    def __init__(
        self, model: Model, f: StateDerivative, scheme: Scheme, rtol: float, atol: float, project: bool
    ) -> None:
        self.model, self.f = model, f
        self.last: StepState | None = None
        c = scheme
        self.numbers = np.array([c.alpha_m, c.alpha_f, c.b0, c.b1, c.g0, c.g1, rtol, atol, project])

    @staticmethod
    def can_run(model: Model, f: StateDerivative) -> bool:
        """Whether nothing but the inputs of given times comes from Python."""
        return not model.custom_actuators and (not f.feedback or f.held is not None)

    def run(self, here: StepState, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, StepState]:
        """Steps to the times `ends`, at most LONGEST_RUN of them.

        Returns:
            rows (q, v, a, λ) and inputs at those of the times that were reached, and the last state; fewer rows than
            times mean that the step after the last of them failed.
        """
        model, n = self.model, len(ends)
        w = workspace(model, "implicit_steps", 1, _make)
        h = np.diff(ends, prepend=here.t)
        host = w.host
        host["numbers"][:], host["steps"][0] = self.numbers, n
        host["h"][0], host["h"][1 : n + 1] = here.h, h
        for name in ("q", "v", "a", "ahead", "force"):
            host[name][0] = getattr(here, name)
        times = ends.tolist()
        inputs = np.array([self.f.inputs(t, here.q, here.v) for t in times]).reshape(n, model.nu)
        host["inputs"][:n] = inputs
        if model.load_wrench:
            varying = model.load_varies
            host["load"][:n] = [load_wrenches(model, t) for t in times] if varying else load_wrenches(model, 0.0)
        if model.n_motions:
            host["held"][:n] = [model.motion_numbers(t) for t in times]
        host["counts"][0] = 0, 0, 0, w.user is self and self.last is here  # then its matrix is still there
        w.run()
        done, evaluations, matrices, _ = host["counts"][0].tolist()
        self.f.evaluations += evaluations
        self.f.jacobians += matrices
        rows = host["out"][0].reshape(LONGEST_RUN, -1)[:done]
        if done == 0:
            w.user = None
            return rows, inputs[:0], here
        nq, nv = model.nq, model.nv
        q, v, a, ahead, force = np.split(rows, (nq, nq + nv, nq + 2 * nv, nq + 3 * nv), axis=1)
        end = (x[-1].copy() for x in (q, v, a, ahead))
        w.user, self.last = self, StepState(times[done - 1], *end, float(h[done - 1]), force[-1].copy())
        return np.hstack([q, v, a, force]), inputs[:done], self.last
