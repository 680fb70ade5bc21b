"""Newton's method for equilibria in one kernel. A launch takes a batch.

The parts are: residual, matrix, border, solve, limit, try and judge. The kernel runs through them, or pauses before a
part that needs Python: Python forces at a new point, their derivatives in the matrix, and shortest steps if the matrix
is singular to rounding. `pause` holds whether the kernel pauses, and the next part.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import warp as wp

from lissom.dynamics.constraints import constraint_kernel
from lissom.dynamics.forward_dynamics import forward_dynamics_kernel, residual_kernel
from lissom.dynamics.kinematics import frames_kernel
from lissom.dynamics.linearization import steady_velocity
from lissom.dynamics.loads import load_rows
from lissom.forces.terms import Acting
from lissom.launch.buffers import ITERATIVE_COST, Buffers, register_loops
from lissom.launch.compiling import load_kernels
from lissom.launch.prepare import TableOptions
from lissom.launch.workspace import Workspace, workspace
from lissom.lie import so3
from lissom.lie.types import by_reference, kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes.columns import column_width
from lissom.passes.kinds import move_configuration
from lissom.passes.linear_algebra import FINITE, largest, lu_factor, lu_solve
from lissom.passes.scratch import STATUS_TOO_MANY_PAIRS, Scratch, ScratchStruct
from lissom.systems.bordered import LoopRows, assemble_bordered, fix_prescribed, put_row_residuals
from lissom.systems.newton_matrix import NewtonBuffers, NewtonBuffersStruct, newton_buffers, newton_matrix_of
from lissom.systems.residual import residual_of

Rows = wp.array2d(dtype=wp.float64)

# The next part,
BEGIN, RESIDUAL, MATRIX, BORDER, SOLVE, LIMIT, TRY, JUDGE = range(8)
# or how the iteration ended. After SINGULAR and ROUNDING_STEP shortest steps follow.
CONVERGED, WOUND_UP, NOT_FINITE, SINGULAR, ROUNDING_STEP, NO_STEP, TOO_MANY, CROWDED = range(8, 16)

# Columns of `notes`, by instance: number of the iteration, size of the system, length of the step and of the last one,
# whether the step is the final one, the tried fraction of it, whether the residual there is refused, whether the last
# step crossed the point where a tendon begins to pull, and whether steps are shortest steps.
ITERATION, UNKNOWNS, LENGTH, LAST, IS_LAST, FRACTION, REFUSED, CROSSED, SHORTEST = range(9)
NOTES = 9
# Entries of `numbers`: the length below which a step is final; the most iterations; the ratio of |r| to |step|, in
# units of own stiffness, below which rounding may determine a step; the length above which a step is checked for this.
TOLERANCE, MOST_ITERATIONS, ROUNDING_BELOW, CHECKED_FROM = range(4)
NUMBERS = 4

FLOOR = 1e-7  # below this length, rounding errors may prevent a step from shrinking
LONGEST_STEP = wp.constant(wp.float64(2.0))  # of one iteration, in units of dofs.scale
LEAST_FRACTION = wp.constant(wp.float64(1e-4))
SHORTEST_SEEN = wp.constant(wp.float64(FLOOR))  # shorter steps may be rounding
ROUNDED_CONTRACTION = wp.constant(wp.float64(0.3))  # a short step that shrinks by less has reached rounding


@wp.struct
class EquilibriumRowsStruct:
    """Arrays of the iteration; each Rows has one row for each instance.

    Fields:
        start: iterate. q: evaluated point. step: Newton step, then the change of the constraint forces. move: tried
        part of the step. stiffness: last tangent stiffness (nv rows). unit_stiffness: stiffness of each coordinate by
        itself, which gives its unit. residual: at q. between: scratch of `solve`. zeros, v, u, extra: the other
        arguments of the residual, v the velocity of a steady motion. notes, numbers: see above. opened: target of the
        residuals of loops. inverse_scale: 1 / dofs.scale. sprung: stiffness of each coordinate by springs and rods.
    """

    start: Rows
    q: Rows
    step: Rows
    move: Rows
    stiffness: Rows
    unit_stiffness: Rows
    residual: Rows
    between: Rows
    zeros: Rows
    v: Rows
    u: Rows
    extra: Rows
    notes: Rows
    numbers: wp.array(dtype=wp.float64)
    opened: wp.array(dtype=wp.float64)
    inverse_scale: wp.array(dtype=wp.float64)
    sprung: wp.array(dtype=wp.float64)


EquilibriumRows = by_reference(EquilibriumRowsStruct)


@wp.func(inline=False)
def run_parts(
    at: int, pauses: int, t: Tables, s: Scratch, b: NewtonBuffers, x: EquilibriumRows, i: int, gravity: vec3,
    load: wp.array(dtype=vec6), residual: wp.Function, matrix: wp.Function,
) -> int:  # fmt: skip
    """Damped Newton iteration from part `at` to its end, or to the next pause. Returns the next part, or how it
    ended."""
    part = int(at)
    while part < CONVERGED:
        if part == BEGIN:
            part = begin(x, i)
        elif part == RESIDUAL:
            part = take_residual(t, s, x, b.loops, i, gravity, load, residual)
        elif part == MATRIX:
            part = make_matrix(t, s, b, x, i, gravity, load, matrix)
        elif part == BORDER:
            part = border_matrix(t, b, x, i)
        elif part == SOLVE:
            part = solve_step(t, b, x, i)
        elif part == LIMIT:
            part = limit_step(x, i)
        elif part == TRY:
            part = try_step(t, x, b.loops, i)
        else:
            part = judge(t, x, b.loops, i)
        if pauses != 0 and (part == RESIDUAL or part == BORDER or part == SOLVE):  # noqa: SIM109 (kernels know no `in`)
            return part
    return part


@wp.func
def begin(x: EquilibriumRows, i: int) -> int:
    """Evaluate the start first: copy it to q and reset the notes."""
    keep(x.q.shape[1], i, x.start, x.q)
    x.notes[i, ITERATION] = so3.ZERO
    x.notes[i, LAST] = FINITE
    x.notes[i, CROSSED] = so3.ZERO
    return RESIDUAL


@wp.func
def take_residual(
    t: Tables, s: Scratch, x: EquilibriumRows, loops: LoopRows, i: int, gravity: vec3, load: wp.array(dtype=vec6),
    residual: wp.Function,
) -> int:  # fmt: skip
    """Residual at q with zeros for prescribed coordinates; afterwards the scratch s is that of q. The residual is
    refused if a rod interval turns too far, more pairs are near than the buffers hold, or a number is not finite."""
    s.status[i] = 0
    residual(t, s, i, x.q, x.v, x.zeros, x.u, x.extra, gravity, load, loops, x.residual)
    for e in range(t.prescribed.dof.shape[0]):
        x.residual[i, t.prescribed.dof[e]] = so3.ZERO
    bad = wp.float64(0.0)
    for j in range(t.nv):
        bad += so3.ZERO * x.residual[i, j]
    for row in range(loops.gap.shape[1]):
        loops.gap[i, row] = loops.gap[i, row] - x.opened[row]
        bad += so3.ZERO * loops.gap[i, row]
    refused = s.status[i] != 0 or bad != so3.ZERO
    x.notes[i, REFUSED] = wp.where(refused, so3.ONE, so3.ZERO)
    if x.notes[i, ITERATION] > so3.ZERO:
        return JUDGE
    if s.status[i] == STATUS_TOO_MANY_PAIRS:
        return CROWDED
    return wp.where(refused, WOUND_UP, MATRIX)


@wp.func
def make_matrix(
    t: Tables, s: Scratch, b: NewtonBuffers, x: EquilibriumRows, i: int, gravity: vec3, load: wp.array(dtype=vec6),
    matrix: wp.Function,
) -> int:  # fmt: skip
    """The tangent stiffness, newton_matrix with c₀ = c₁ = 0, and the constraint rows."""
    x.notes[i, ITERATION] = x.notes[i, ITERATION] + so3.ONE
    matrix(t, s, b, i, x.q, x.v, x.zeros, x.zeros, so3.ZERO, so3.ZERO, gravity, load)
    return BORDER


@wp.func
def border_matrix(t: Tables, b: NewtonBuffers, x: EquilibriumRows, i: int) -> int:
    """Border the stiffness by loops, fix prescribed coordinates, and set the residual as the right side."""
    n = assemble_bordered(t, b.x, i, b.matrix, b.loops.A_q, b.loops)
    keep(t.nv * b.x.width, i, b.matrix, x.stiffness)
    put_unit_stiffness(t.nv, b.x.width, i, x, b.loops.scale)
    fix_prescribed(t, n, b.loops.width, i, x.zeros, b.loops.matrix, x.residual)
    load_right_side(t.nv, x, i, b.loops)
    x.notes[i, UNKNOWNS] = wp.float64(n)
    x.notes[i, SHORTEST] = so3.ZERO
    return SOLVE


@wp.func
def solve_step(t: Tables, b: NewtonBuffers, x: EquilibriumRows, i: int) -> int:
    """Factor the matrix, unless Python has put the factors of shortest steps there, and solve for the step."""
    n = int(x.notes[i, UNKNOWNS])
    shortest = x.notes[i, SHORTEST] != so3.ZERO
    pivot = wp.int32(0)
    if not shortest:
        pivot = lu_factor(n, b.loops.width, i, b.loops.matrix, b.loops.factors, b.loops.pivots)
    if pivot != 0:
        return singular(t, b, x, i)
    solve(n, x, i, b.loops)
    for j in range(n):
        x.step[i, j] = -b.loops.unknown[i, j]
    length = largest(t.nv, i, x.inverse_scale, x.step)
    x.notes[i, LENGTH] = length
    if not (length < FINITE):
        return singular(t, b, x, i)
    if not shortest and length > x.numbers[CHECKED_FROM] and is_rounding_step(t.nv, i, x):
        return ROUNDING_STEP
    return LIMIT


@wp.func
def limit_step(x: EquilibriumRows, i: int) -> int:
    """Set the fraction of the step to try first, and whether the step is final: it is short, or rounding keeps it from
    getting shorter."""
    length = x.notes[i, LENGTH]
    is_last = length <= x.numbers[TOLERANCE] or (
        length < SHORTEST_SEEN and length > ROUNDED_CONTRACTION * x.notes[i, LAST]
    )
    x.notes[i, IS_LAST] = wp.where(is_last, so3.ONE, so3.ZERO)
    x.notes[i, LAST] = length
    x.notes[i, FRACTION] = wp.min(so3.ONE, LONGEST_STEP / wp.max(length, x.numbers[TOLERANCE]))
    return TRY


@wp.func
def try_step(t: Tables, x: EquilibriumRows, loops: LoopRows, i: int) -> int:
    """Move q to the point at a fraction of the step, and the constraint forces with it."""
    fraction = x.notes[i, FRACTION]
    for j in range(t.nv):
        x.move[i, j] = fraction * x.step[i, j]
    move_configuration(t, i, x.start, x.move, x.q)
    add_forces(t.nv, i, fraction, x.step, loops)
    return RESIDUAL


@wp.func
def judge(t: Tables, x: EquilibriumRows, loops: LoopRows, i: int) -> int:
    """Accept the point if the next step with the same matrix is shorter, otherwise try half of the fraction.

    A tendon or cable that begins to pull along the step may make all next steps longer. Then the shortest fraction is
    accepted once, so that the stiffness at the new point includes the pull.
    """
    length = x.notes[i, LENGTH]
    fraction = x.notes[i, FRACTION]
    good = x.notes[i, REFUSED] == so3.ZERO
    next_length = wp.float64(FINITE)
    if good:
        load_right_side(t.nv, x, i, loops)
        solve(int(x.notes[i, UNKNOWNS]), x, i, loops)
        next_length = largest(t.nv, i, x.inverse_scale, loops.unknown)
    if x.notes[i, IS_LAST] != so3.ZERO:
        if next_length <= length:  # the constraint forces are those of the final step in either case
            keep(x.q.shape[1], i, x.q, x.start)
        return CONVERGED
    nearer = next_length <= (so3.ONE - so3.HALF * so3.HALF * fraction) * length or (good and length < SHORTEST_SEEN)
    may_pull = t.spools.channel.shape[0] + t.springs.node.shape[0] + t.segments.spring.shape[0] > 0
    behind = may_pull and x.notes[i, CROSSED] == so3.ZERO and good and fraction < so3.TWO * LEAST_FRACTION
    if nearer or behind:
        x.notes[i, CROSSED] = wp.where(nearer, so3.ZERO, so3.ONE)
        keep(x.q.shape[1], i, x.q, x.start)
        return wp.where(x.notes[i, ITERATION] < x.numbers[MOST_ITERATIONS], MATRIX, TOO_MANY)
    add_forces(t.nv, i, -fraction, x.step, loops)
    x.notes[i, FRACTION] = so3.HALF * fraction
    return wp.where(so3.HALF * fraction < LEAST_FRACTION, NO_STEP, TRY)


@wp.func
def load_right_side(nv: int, x: EquilibriumRows, i: int, loops: LoopRows):
    """Set the right side to the residual at q and the residuals of loops."""
    keep(nv, i, x.residual, loops.unknown)
    put_row_residuals(nv, i, loops, so3.ONE, loops.gap)


@wp.func
def solve(n: int, x: EquilibriumRows, i: int, loops: LoopRows):
    """Solve the system in place, by the factors of LU or by those of shortest steps."""
    if x.notes[i, SHORTEST] == so3.ZERO:
        lu_solve(n, loops.width, i, loops.matrix, loops.factors, loops.pivots, loops.unknown)
    else:
        multiply(n, loops.width, i, loops.matrix, loops.unknown, x.between)
        multiply(n, loops.width, i, loops.factors, x.between, loops.unknown)


@wp.func
def multiply(n: int, width: int, i: int, A: Rows, x: Rows, y: Rows):
    """y = A x with n rows and columns; a row of A starts every `width` numbers."""
    for row in range(n):
        total = wp.float64(0.0)
        for j in range(n):
            total += A[i, row * width + j] * x[i, j]
        y[i, row] = total


@wp.func
def add_forces(nv: int, i: int, fraction: wp.float64, step: Rows, loops: LoopRows):
    """λ += a fraction of its change in the step."""
    for row in range(loops.force.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            loops.force[i, row] = loops.force[i, row] + fraction * loops.sigma[i] * step[i, nv + at]


@wp.func
def keep(n: int, i: int, here: Rows, there: Rows):
    """Copy the first n numbers of row i."""
    for j in range(n):
        there[i, j] = here[i, j]


@wp.func
def singular(t: Tables, b: NewtonBuffers, x: EquilibriumRows, i: int) -> int:
    """Why there is no step: SINGULAR, or NOT_FINITE if the matrix has such numbers."""
    bad = wp.float64(0.0)
    for j in range(t.nv * b.x.width):
        bad += so3.ZERO * x.stiffness[i, j]
    for j in range(b.loops.A_q.shape[1]):
        bad += so3.ZERO * b.loops.A_q[i, j]
    return wp.where(bad == so3.ZERO, SINGULAR, NOT_FINITE)


@wp.func
def put_unit_stiffness(nv: int, width: int, i: int, x: EquilibriumRows, scale: wp.array(dtype=wp.float64)):
    """Set the stiffness of each coordinate by itself. For one with a spring or rod it is the larger of its
    stiffness there and its diagonal entry of K; for others it is the largest stiffness of the loads. `scale` is zero
    for prescribed coordinates."""
    loads = wp.float64(0.0)
    for j in range(nv):
        loads = wp.max(loads, wp.abs(x.stiffness[i, j * width + j] - x.sprung[j]) * scale[j] * scale[j])
    for j in range(nv):
        own = loads * x.inverse_scale[j] * x.inverse_scale[j]
        if x.sprung[j] > so3.ZERO:
            own = wp.max(x.sprung[j], wp.abs(x.stiffness[i, j * width + j]))
        x.unit_stiffness[i, j] = own


@wp.func
def is_rounding_step(nv: int, i: int, x: EquilibriumRows) -> bool:
    """Whether the step may go along a direction in which K is only rounding: |r| is tiny compared with |step|, in units
    in which unit_stiffness is 1."""
    force = wp.float64(0.0)
    moved = wp.float64(0.0)
    for j in range(nv):
        if x.unit_stiffness[i, j] > so3.ZERO:
            root = wp.sqrt(x.unit_stiffness[i, j])
            force = wp.max(force, wp.abs(x.residual[i, j]) / root)
            moved = wp.max(moved, wp.abs(x.step[i, j]) * root)
    return force <= x.numbers[ROUNDING_BELOW] * moved


_ROUNDING = 1e-6  # ratio of |r| to |step| in units of unit_stiffness, below which rounding may determine a step


def equilibrium_kernel(act: Acting) -> Any:
    """The kernel of Newton's method for equilibria."""
    residual, matrix = residual_of(act), newton_matrix_of(act)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def equilibria(
        t: TablesStruct,
        s: ScratchStruct,
        b: NewtonBuffersStruct,
        x: EquilibriumRowsStruct,
        gravity: wp.array(dtype=vec3),
        load: wp.array(dtype=vec6),
        pause: wp.array2d(dtype=wp.int32),
        first: int,
    ):
        i = first + wp.tid()
        pause[i, 1] = run_parts(pause[i, 1], pause[i, 0], t, s, b, x, i, gravity[0], load, residual, matrix)

    return equilibria


def equilibrium_buffers(model: Model, batch: int) -> Buffers:
    """Buffers of Newton's method for equilibria."""
    unknowns = model.nv + model.n_rows
    sizes = {"start": model.nq, "q": model.nq, "u": model.nu, "notes": NOTES}
    sizes |= dict.fromkeys(("move", "unit_stiffness", "residual", "zeros", "v", "extra"), model.nv)
    sizes |= {"step": unknowns, "between": unknowns, "stiffness": model.nv * column_width(model)}
    shapes = {name: (size,) for name, size in sizes.items()}
    w = Buffers(model, batch, shapes, table_options=TableOptions(derivatives=True), cost=ITERATIVE_COST)
    x = EquilibriumRowsStruct()
    for name in sizes:
        setattr(x, name, w.on_device[name])
    x.numbers = w.buffer("numbers", (NUMBERS,), common=True)
    x.opened = w.buffer("opened", (model.n_rows,), common=True)
    x.inverse_scale = wp.array(1.0 / model.dofs.scale, dtype=wp.float64, device=model.device)
    x.sprung = wp.array(model.elasticity.stiffness_diagonal, dtype=wp.float64, device=model.device)
    rest = [
        w.buffer("gravity", (1,), vec3, common=True),
        w.buffer("load", (model.n_load_rows,), vec6, common=True),
        w.buffer("pause", (batch, 2), wp.int32),
    ]
    b = newton_buffers(model, batch)
    register_loops(w, b.loops)
    if batch == 1:  # Python may run between two parts of a single robot
        w.register("K", b.matrix)
        for name in ("matrix", "factors", "unknown", "sigma"):
            w.register(name, getattr(b.loops, name))
    w.record(equilibrium_kernel, [w.tables, w.scratch, b, x, *rest])
    return w


@final
@dataclass(frozen=True)
class Sought:
    """The equilibria that the Newton iterations of a batch search for, and the limits of the iterations.

    Fields:
        u: inputs (n, nu).
        t: time of the loads [s].
        factor: factor of loads, gravity and inputs.
        opened: target of the residuals of loops (n_rows,).
        tolerance: largest length of the final step, in units of dofs.scale.
        limit: largest number of iterations.
        support: additional generalised force (nv,), or a number.
        differences: whether the tangent stiffness comes from differences of the residual.
    """

    u: np.ndarray
    t: float
    factor: float
    opened: np.ndarray
    tolerance: float
    limit: int
    support: Any = 0.0
    differences: bool = False

    def of(self, k: int) -> Sought:
        """The search of instance k only."""
        return replace(self, u=self.u[k : k + 1])


def newton_workspace(model: Model, q: np.ndarray, force: np.ndarray, sought: Sought) -> Workspace:
    """Buffers and launch of the kernel before its first part, filled with the arguments of newton_in_kernel."""
    w = workspace(model, "equilibrium", len(q), equilibrium_buffers)
    host = w.host
    host["start"][:], host["force"][:] = q, force
    host["u"][:], host["opened"][:] = sought.factor * sought.u, sought.opened
    host["v"][:], host["extra"][:] = steady_velocity(model, sought.factor), sought.support
    host["numbers"][:] = sought.tolerance, sought.limit, _ROUNDING, FLOOR
    host["gravity"][0] = sought.factor * model.gravity
    if model.n_load_rows:
        host["load"][:] = load_rows(model, sought.t, sought.factor)
    host["pause"][:] = 0, BEGIN
    return w


def load_ahead(model: Model) -> None:
    """Load all kernels of statics together."""
    if not model.calls_python:
        loops = (constraint_kernel, forward_dynamics_kernel) if model.n_rows else ()
        load_kernels(model, "statics", equilibrium_kernel, residual_kernel, *loops, then=(frames_kernel,))


def newton_in_kernel(model: Model, q: np.ndarray, force: np.ndarray, sought: Sought) -> Workspace:
    """Newton iterations of a batch from q (n, nq) and constraint forces (n, n_rows). Read the returned workspace with
    `results` and `last_stiffness`."""
    w = newton_workspace(model, q, force, sought)
    w.run()
    return w


def results(w: Workspace) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Last iterates (n, nq), constraint forces (n, n_rows), numbers of iterations (n,), and how each iteration ended
    (n,)."""
    iterations = w.host["notes"][:, ITERATION].astype(int)
    return w.host["start"].copy(), w.host["force"].copy(), iterations, w.host["pause"][:, 1].copy()


def last_stiffness(w: Workspace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The last tangent stiffness (n, nv, nv) of a batch, the rows A of loops (n, n_rows, nv), and a mask of the
    independent rows (n, n_rows). The first two are views."""
    model = w.model
    K, A = (w.host[name].reshape(w.batch, rows, column_width(model))[..., : model.nv]
            for name, rows in (("stiffness", model.nv), ("A", model.n_rows)))  # fmt: skip
    return K, A, w.host["slot"] >= 0
