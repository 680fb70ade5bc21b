"""Newton's method for equilibria in one kernel, for robots whose forces need no Python.

The matrix is made in one pass (newton_matrix with c₀ = c₁ = 0) and factored in the kernel. Where it is singular to
rounding, as where a robot may turn about itself, the iteration ends, and the one in Python goes on by shortest steps.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.dynamics.loads import load_rows
from lissom.dynamics.steady_motion import steady_velocity
from lissom.forces.acting import Acting
from lissom.launch.loop_buffers import shown
from lissom.launch.workspace import LONG, Workspace, crowded, workspace
from lissom.lie import so3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.sweep.column_tables import column_width
from lissom.sweep.linear_solve import largest, lu_factor, lu_solve
from lissom.sweep.moves import move_configuration
from lissom.sweep.scratch import STATUS_CROWDED, Scratch
from lissom.systems.bordered import LoopRows, ask_closed, border
from lissom.systems.constrained import hold_prescribed
from lissom.systems.newton_matrix import NewtonBuffers, newton_buffers, newton_matrix_of
from lissom.systems.residual import residual_of

Rows = wp.array2d(dtype=wp.float64)

LONGEST_STEP = 2.0  # of one iteration, in units of dofs.scale
FLOOR = 1e-7  # length below which rounding may keep a step from shrinking
LEAST_FRACTION = 1e-4
ASTRAY = 1e-6  # stiffness along a step, over that of the coordinates themselves, below which rounding may lead it
CONVERGED, WOUND_UP, NOT_FINITE, SINGULAR, NO_STEP, TOO_MANY = range(6)

_LONGEST_STEP = wp.constant(wp.float64(LONGEST_STEP))
_FLOOR = wp.constant(wp.float64(FLOOR))
_LEAST_FRACTION = wp.constant(wp.float64(LEAST_FRACTION))
_ASTRAY = wp.constant(wp.float64(ASTRAY))
_CONVERGED, _WOUND_UP, _NOT_FINITE = wp.constant(CONVERGED), wp.constant(WOUND_UP), wp.constant(NOT_FINITE)
_SINGULAR, _NO_STEP, _TOO_MANY = wp.constant(SINGULAR), wp.constant(NO_STEP), wp.constant(TOO_MANY)


@wp.struct
class EquilibriumRows:
    """Iterate q, trial point, Newton step with the change of the forces of loops behind it, its tried part, the last
    tangent stiffness (nv rows), the residual that it met, and what the residual needs, by instance, v being that of a
    steady motion; by how much the loops are meant to stay open; units of the coordinates, and how stiff springs and
    rods hold each."""

    q: Rows
    trial: Rows
    step: Rows
    move: Rows
    stiffness: Rows
    met: Rows
    still: Rows
    v: Rows
    u: Rows
    extra: Rows
    channel: Rows
    opened: wp.array(dtype=wp.float64)
    inverse_scale: wp.array(dtype=wp.float64)
    sprung: wp.array(dtype=wp.float64)


@wp.func
def force_at_trial(
    t: Tables,
    s: Scratch,
    x: EquilibriumRows,
    loops: LoopRows,
    i: int,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    residual: wp.Function,
) -> wp.float64:
    """Residual at the trial point into loops.unknown, what it leaves in s being that of the trial point; not zero where
    that fails."""
    s.status[i] = 0
    residual(t, s, i, x.trial, x.v, x.still, x.u, x.extra, x.channel, gravity, load, loops, loops.unknown)
    for e in range(t.prescribed.dof.shape[0]):
        loops.unknown[i, t.prescribed.dof[e]] = so3.ZERO
    bad = wp.float64(0.0)
    for j in range(t.nv):
        bad += so3.ZERO * loops.unknown[i, j]
    for row in range(loops.gap.shape[1]):
        loops.gap[i, row] = loops.gap[i, row] - x.opened[row]
        bad += so3.ZERO * loops.gap[i, row]
    if s.status[i] != 0:
        bad = so3.ONE
    return bad


@wp.func
def is_led_astray(nv: int, width: int, i: int, x: EquilibriumRows) -> bool:
    """Whether a step may go where K holds nothing but rounding: |r| is next to nothing beside |K| |step|, in units in
    which what springs and rods hold is 1; other coordinates share the largest stiffness that is no spring's."""
    loads = wp.float64(0.0)
    for j in range(nv):
        other = wp.abs(x.stiffness[i, j * width + j] - x.sprung[j])
        loads = wp.max(loads, other / (x.inverse_scale[j] * x.inverse_scale[j]))
    force = wp.float64(0.0)
    moved = wp.float64(0.0)
    for j in range(nv):
        own = loads * x.inverse_scale[j] * x.inverse_scale[j]
        if x.sprung[j] > so3.ZERO:
            own = wp.max(x.sprung[j], wp.abs(x.stiffness[i, j * width + j]))
        if own > so3.ZERO:
            force = wp.max(force, wp.abs(x.met[i, j]) / wp.sqrt(own))
            moved = wp.max(moved, wp.abs(x.step[i, j]) * wp.sqrt(own))
    return force <= _ASTRAY * moved


@wp.func
def keep(n: int, i: int, here: Rows, there: Rows):
    """Copy the first n numbers of row i."""
    for j in range(n):
        there[i, j] = here[i, j]


@wp.func
def iterate_equilibrium(
    t: Tables,
    s: Scratch,
    b: NewtonBuffers,
    x: EquilibriumRows,
    i: int,
    tolerance: wp.float64,
    limit: int,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    iterations: wp.array(dtype=wp.int32),
    residual: wp.Function,
    matrix: wp.Function,
) -> int:
    """Damped Newton iteration from x.q; why it ended. Where a tendon or a cable that begins to pull lets no step come
    nearer, the shortest one goes behind that once, where K knows of its pull."""
    nq = x.q.shape[1]
    may_pull = t.spools.channel.shape[0] + t.springs.node.shape[0] > 0
    crossed = wp.int32(0)
    keep(nq, i, x.q, x.trial)
    if force_at_trial(t, s, x, b.loops, i, gravity, load, residual) != so3.ZERO:
        return _WOUND_UP
    last = wp.float64(1e300)
    for iteration in range(limit):
        iterations[i] = iteration + 1
        matrix(t, s, b, i, x.trial, x.v, x.still, x.still, so3.ZERO, so3.ZERO, x.channel, gravity, load)
        n = border(t, b.x, i, b.matrix, b.loops.A_q, b.loops)
        keep(t.nv * b.x.width, i, b.matrix, x.stiffness)
        hold_prescribed(t, n, b.loops.width, i, x.still, b.loops.matrix, b.loops.unknown)
        keep(t.nv, i, b.loops.unknown, x.met)
        if lu_factor(n, b.loops.width, i, b.loops.matrix, b.loops.factors, b.loops.pivots) != 0:
            return _SINGULAR
        newton_step(t.nv, n, i, b.loops)
        for j in range(n):
            x.step[i, j] = -b.loops.unknown[i, j]
        length = largest(t.nv, i, x.inverse_scale, x.step)
        if not (length < wp.float64(1e300)) or (length > _FLOOR and is_led_astray(t.nv, b.x.width, i, x)):
            return _SINGULAR
        done = length <= tolerance or (length < _FLOOR and length > wp.float64(0.3) * last)
        last = length
        fraction = wp.min(so3.ONE, _LONGEST_STEP / wp.max(length, tolerance))
        going = wp.int32(1)
        while going == 1:
            for j in range(t.nv):
                x.move[i, j] = fraction * x.step[i, j]
            move_configuration(t, i, x.q, x.move, x.trial)
            add_forces(t.nv, i, fraction, x.step, b.loops)
            bad = force_at_trial(t, s, x, b.loops, i, gravity, load, residual)
            next_length = wp.float64(1e300)
            if bad == so3.ZERO:
                for j in range(t.nv):
                    x.move[i, j] = b.loops.unknown[i, j]
                newton_step(t.nv, n, i, b.loops)
                next_length = largest(t.nv, i, x.inverse_scale, b.loops.unknown)
                for j in range(t.nv):
                    b.loops.unknown[i, j] = x.move[i, j]
            if done:
                if next_length <= length:
                    for j in range(nq):
                        x.q[i, j] = x.trial[i, j]
                else:
                    add_forces(t.nv, i, -fraction, x.step, b.loops)
                return _CONVERGED
            nearer = next_length <= (so3.ONE - so3.HALF * so3.HALF * fraction) * length
            nearer = nearer or (bad == so3.ZERO and length < _FLOOR)
            behind = may_pull and crossed == 0 and bad == so3.ZERO and fraction < so3.TWO * _LEAST_FRACTION
            if nearer or behind:
                going = wp.int32(0)
                crossed = wp.where(nearer, wp.int32(0), wp.int32(1))
            else:
                add_forces(t.nv, i, -fraction, x.step, b.loops)
                fraction = so3.HALF * fraction
                if fraction < _LEAST_FRACTION:
                    return _NO_STEP
        keep(nq, i, x.trial, x.q)
    return _TOO_MANY


@wp.func
def newton_step(nv: int, n: int, i: int, loops: LoopRows):
    """Solve for the step that the residual in loops.unknown asks for, in place."""
    ask_closed(nv, i, loops, so3.ONE, loops.gap)
    lu_solve(n, loops.width, i, loops.matrix, loops.factors, loops.pivots, loops.unknown)


@wp.func
def add_forces(nv: int, i: int, fraction: wp.float64, step: Rows, loops: LoopRows):
    """λ += a fraction of what the step says of it."""
    for row in range(loops.force.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            loops.force[i, row] = loops.force[i, row] + fraction * loops.sigma[i] * step[i, nv + at]


def equilibrium_kernel(act: Acting) -> Any:
    """Kernel of Newton's method for equilibria."""
    residual, matrix = residual_of(act), newton_matrix_of(act)

    @wp.kernel(module="unique", module_options=kernel_options())
    def equilibria(
        t: Tables,
        s: Scratch,
        b: NewtonBuffers,
        x: EquilibriumRows,
        tolerance: wp.array(dtype=wp.float64),
        limit: wp.array(dtype=wp.int32),
        gravity: wp.array(dtype=vec3),
        load: wp.array(dtype=vec6),
        iterations: wp.array(dtype=wp.int32),
        ended: wp.array(dtype=wp.int32),
        first: int,
    ):
        i = first + wp.tid()
        iterations[i] = 0
        ended[i] = iterate_equilibrium(
            t, s, b, x, i, tolerance[0], limit[0], gravity[0], load, iterations, residual, matrix
        )

    return equilibria


def _make(model: Model, batch: int) -> Workspace:
    sizes = {"q": model.nq, "trial": model.nq, "u": model.nu, "channel": len(model.channels.names)}
    sizes |= {name: model.nv for name in ("move", "met", "still", "v", "extra")} | {"step": model.nv + model.n_rows}
    sizes["stiffness"] = model.nv * column_width(model)
    w = Workspace(model, batch, {name: (size,) for name, size in sizes.items()})
    x = EquilibriumRows()
    for name in sizes:
        setattr(x, name, w.on_device[name])
    x.opened = w.buffer("opened", (model.n_rows,), common=True)
    x.inverse_scale = wp.array(1.0 / model.dofs.scale, dtype=wp.float64, device=model.device)
    x.sprung = wp.array(np.diag(model.elasticity.stiffness).copy(), dtype=wp.float64, device=model.device)
    rest = [
        w.buffer("tolerance", (1,)),
        w.buffer("limit", (1,), wp.int32),
        w.buffer("gravity", (1,), vec3),
        w.buffer("load", (model.n_load_rows,), vec6, common=True),
        w.buffer("iterations", (batch,), wp.int32),
        w.buffer("ended", (batch,), wp.int32),
    ]
    b = newton_buffers(model, batch)
    shown(w, b.loops)
    w.weight = LONG
    w.record(equilibrium_kernel, [w.tables, w.scratch, b, x, *rest])
    return w


def newton_in_kernel(
    model: Model,
    q: np.ndarray,
    force: np.ndarray,
    u: np.ndarray,
    t: float,
    factor: float,
    opened: np.ndarray,
    tolerance: float,
    limit: int,
    hold: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Newton iterations of a batch, from q (n, nq) and forces of loops (n, n_rows) with inputs u (n, nu), to loops with
    residuals `opened` (n_rows,), under a generalised force that holds: last iterates, forces of loops there,
    iterations, why each ended; and, as views that the next run overwrites, the last tangent stiffness (n, nv, nv) and
    rows A (n, n_rows, nv)."""
    w = workspace(model, "equilibrium", len(q), _make)
    w.host["q"][:], w.host["force"][:], w.host["u"][:] = q, force, factor * u
    w.host["v"][:] = steady_velocity(model, factor)
    w.host["extra"][:] = hold
    w.host["tolerance"][0], w.host["limit"][0] = tolerance, limit
    w.host["gravity"][0], w.host["opened"][:] = factor * model.gravity, opened
    if model.n_load_rows:
        w.host["load"][:] = load_rows(model, t, factor)
    w.run()
    if (w.status == STATUS_CROWDED).any():
        raise crowded(model)
    q, force, iterations, ended = (w.host[name].copy() for name in ("q", "force", "iterations", "ended"))
    K, A = (w.host[name].reshape(len(q), rows, column_width(model))[..., : model.nv]
            for name, rows in (("stiffness", model.nv), ("A", model.n_rows)))  # fmt: skip
    return q, force, iterations, ended, (K, A)
