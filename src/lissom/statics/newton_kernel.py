"""Newton's method for equilibria in one kernel, for robots whose forces need no Python.

The matrix is made in one pass (newton_matrix with c₀ = c₁ = 0) and factored in the kernel.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.dynamics.forward_dynamics import hold_prescribed, residual_force
from lissom.dynamics.inverse_dynamics import load_wrenches
from lissom.dynamics.linear_solve import largest, lu_factor, lu_solve
from lissom.dynamics.moves import move_configuration
from lissom.dynamics.newton_matrix import NewtonBuffers, make_newton_matrix, newton_buffers
from lissom.dynamics.sweeps import Scratch
from lissom.dynamics.workspace import Workspace, workspace
from lissom.lie import so3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables

wp.set_module_options(kernel_options())

Rows = wp.array2d(dtype=wp.float64)

LONGEST_STEP = 2.0  # of one iteration, in units of dof_scale
FLOOR = 1e-7  # length below which rounding may keep a step from shrinking
LEAST_FRACTION = 1e-4
CONVERGED, WOUND_UP, NOT_FINITE, SINGULAR, NO_STEP, TOO_MANY = range(6)

_LONGEST_STEP = wp.constant(wp.float64(LONGEST_STEP))
_FLOOR = wp.constant(wp.float64(FLOOR))
_LEAST_FRACTION = wp.constant(wp.float64(LEAST_FRACTION))
_CONVERGED, _WOUND_UP, _NOT_FINITE = wp.constant(CONVERGED), wp.constant(WOUND_UP), wp.constant(NOT_FINITE)
_SINGULAR, _NO_STEP, _TOO_MANY = wp.constant(SINGULAR), wp.constant(NO_STEP), wp.constant(TOO_MANY)


@wp.struct
class EquilibriumRows:
    """Iterate q, trial point, Newton step, its tried part, residual, and what the residual needs, by instance."""

    q: Rows
    trial: Rows
    step: Rows
    move: Rows
    force: Rows
    still: Rows
    u: Rows
    extra: Rows
    channel: Rows
    inverse_scale: wp.array(dtype=wp.float64)


@wp.func
def force_at_trial(
    t: Tables, s: Scratch, x: EquilibriumRows, i: int, gravity: vec3, load: wp.array(dtype=vec6)
) -> wp.float64:
    """Residual at the trial point into x.force; what it leaves in s is that of the trial point. NaN where it fails."""
    s.status[i] = 0
    residual_force(t, s, i, x.trial, x.still, x.still, x.u, x.extra, x.channel, gravity, load, x.force)
    for e in range(t.motion_dof.shape[0]):
        x.force[i, t.motion_dof[e]] = so3.ZERO
    bad = wp.float64(0.0)
    for j in range(t.nv):
        bad += so3.ZERO * x.force[i, j]
    if s.status[i] != 0:
        bad = so3.ONE
    return bad


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
) -> int:
    """Damped Newton iteration from x.q; why it ended."""
    nq = x.q.shape[1]
    for j in range(nq):
        x.trial[i, j] = x.q[i, j]
    if force_at_trial(t, s, x, i, gravity, load) != so3.ZERO:
        return _WOUND_UP
    last = wp.float64(1e300)
    for iteration in range(limit):
        iterations[i] = iteration + 1
        make_newton_matrix(t, s, b, i, x.trial, x.still, x.still, x.still, so3.ZERO, so3.ZERO, x.channel, gravity, load)
        for j in range(t.nv):
            x.step[i, j] = -x.force[i, j]
        hold_prescribed(t, b.x.width, i, x.still, b.matrix, x.step)
        if lu_factor(t.nv, b.x.width, i, b.matrix, b.factors, b.pivots) != 0:
            return _SINGULAR
        lu_solve(t.nv, b.x.width, i, b.matrix, b.factors, b.pivots, x.step)
        length = largest(t.nv, i, x.inverse_scale, x.step)
        if not (length < wp.float64(1e300)):
            return _SINGULAR
        done = length <= tolerance or (length < _FLOOR and length > wp.float64(0.3) * last)
        last = length
        fraction = wp.min(so3.ONE, _LONGEST_STEP / wp.max(length, tolerance))
        going = wp.int32(1)
        while going == 1:
            for j in range(t.nv):
                x.move[i, j] = fraction * x.step[i, j]
            move_configuration(t, i, x.q, x.move, x.trial)
            bad = force_at_trial(t, s, x, i, gravity, load)
            next_length = wp.float64(1e300)
            if bad == so3.ZERO:
                for j in range(t.nv):
                    x.move[i, j] = x.force[i, j]
                lu_solve(t.nv, b.x.width, i, b.matrix, b.factors, b.pivots, x.move)
                next_length = largest(t.nv, i, x.inverse_scale, x.move)
            if done:
                if next_length <= length:
                    for j in range(nq):
                        x.q[i, j] = x.trial[i, j]
                return _CONVERGED
            if next_length <= (so3.ONE - so3.HALF * so3.HALF * fraction) * length or (
                bad == so3.ZERO and length < _FLOOR
            ):
                going = wp.int32(0)
            else:
                fraction = so3.HALF * fraction
                if fraction < _LEAST_FRACTION:
                    return _NO_STEP
        for j in range(nq):
            x.q[i, j] = x.trial[i, j]
    return _TOO_MANY


@wp.kernel
def equilibrium_kernel(
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
    ended[i] = iterate_equilibrium(t, s, b, x, i, tolerance[0], limit[0], gravity[0], load, iterations)


def _make(model: Model, batch: int) -> Workspace:
    sizes = {"q": model.nq, "trial": model.nq, "u": model.nu, "channel": len(model.channel_names)}
    sizes |= {name: model.nv for name in ("step", "move", "force", "still", "extra")}
    w = Workspace(model, batch, {name: (size,) for name, size in sizes.items()})
    x = EquilibriumRows()
    for name in sizes:
        setattr(x, name, w.on_device[name])
    x.inverse_scale = wp.array(1.0 / model.dof_scale, dtype=wp.float64, device=model.device)
    rest = [
        w.buffer("tolerance", (1,)),
        w.buffer("limit", (1,), wp.int32),
        w.buffer("gravity", (1,), vec3),
        w.buffer("load", (len(model.load_wrench),), vec6),
        w.buffer("iterations", (batch,), wp.int32),
        w.buffer("ended", (batch,), wp.int32),
    ]
    w.record(equilibrium_kernel, [w.tables, w.scratch, newton_buffers(model, batch), x, *rest])
    return w


def newton_in_kernel(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, factor: float, tolerance: float, limit: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Newton iterations of a batch, from q (n, nq) with inputs u (n, nu): last iterates, iterations, why each ended."""
    w = workspace(model, "equilibrium", len(q), _make)
    w.host["q"][:], w.host["u"][:] = q, factor * u
    w.host["tolerance"][0], w.host["limit"][0] = tolerance, limit
    w.host["gravity"][0] = factor * model.gravity
    if model.load_wrench:
        w.host["load"][:] = factor * load_wrenches(model, t)
    w.run()
    return w.host["q"].copy(), w.host["iterations"].copy(), w.host["ended"].copy()
