"""Forward dynamics: the acceleration that given inputs produce.

    M(q) a = B(q) u + F_ext − c(q, v) − K q − D v                                                         (1)

A coordinate with a prescribed motion has the acceleration of that motion: its row of (1) is replaced, and the known
acceleration moves to the right side of the other rows. The residual of the replaced row is the force of the motion, a
multiplier. Loops add their forces and rows,

    M a − Aᵀ λ = the right side of (1),   A a = −Ȧ v − 2 p A v − p² e                                      (2)

with p = 0 unless an integrator stabilises the loops (Baumgarte).

For small robots M is factored. Robots with many coordinates and without loops solve (1) by the articulated-body
algorithm, at a cost that grows with the number of links. Robots with many coordinates and loops eliminate the blocks of
(2), at a cost that grows with the number of links and of loops that are open at once. These two never assemble M or A
(newton_blocks).

Source: Mathew 2025 eqs. (43)-(44), (46)-(49); R. Featherstone, Rigid Body Dynamics Algorithms, 2008, §7.3; I. S. Duff,
J. K. Reid, ACM Trans. Math. Softw. 9, 1983, with the tree of the robot for that of the elimination.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.dynamics.actuation import custom_actuation, warn_of_pushing
from lissom.dynamics.loads import Times, put_loads
from lissom.errors import ModelError, ShapeError
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers, Shapes, Temporary, loop_buffers, motion_inputs
from lissom.launch.compiling import without_derivatives
from lissom.launch.over_models import for_models
from lissom.launch.prepare import TableOptions
from lissom.launch.workspace import (
    Workspace,
    call_of,
    flat,
    leading,
    stack,
    workspace,
)
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import scratch, traversal
from lissom.passes.blocks import BlocksStruct, block_columns, block_tables, squares
from lissom.passes.columns import Columns, ColumnsStruct, column_tables, column_width
from lissom.passes.features import may_have_loops
from lissom.passes.kinds import put_configuration_rate
from lissom.passes.linear_algebra import ldl_solve
from lissom.passes.scratch import Scratch, ScratchStruct
from lissom.robot.checks import time
from lissom.systems import newton_blocks
from lissom.systems.articulated import ArticulatedStruct, articulated_buffers, factor_blocks, solve_blocks
from lissom.systems.bordered import (
    LoopRows,
    LoopRowsStruct,
    fix_prescribed,
    rows_from_columns,
    solve_constrained,
)
from lissom.systems.couplings import row_count
from lissom.systems.loop_unknowns import put_forces
from lissom.systems.loops import loop_rates
from lissom.systems.mass import MassBuffers, MassBuffersStruct, mass_buffers, mass_matrix_sweep
from lissom.systems.newton_blocks import (
    BlockMatrix,
    BlockMatrixStruct,
    LoopFronts,
    LoopFrontsStruct,
    block_matrix,
    closes_by_blocks,
    loop_fronts,
    make_mass_blocks,
)
from lissom.systems.residual import MotionInputs, MotionInputsStruct, residual_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_LEAST_COORDINATES_CLOSED = 100  # for elimination of blocks; it is faster from 60 on, but less exact for stiff robots

Rows = wp.array2d(dtype=wp.float64)


@wp.func
def solve_accelerations(
    t: Tables, b: BlockMatrix, c: LoopFronts, i: int, fixed: Rows, pull: wp.float64, loops: LoopRows, a: Rows
):  # fmt: skip
    """Solve (2) for a and loops.force with factored blocks.

    On entry a contains the residual of (1) for zero accelerations (those in `fixed` for prescribed coordinates) and
    zero constraint forces. `pull` is p of (2).
    """
    for j in range(t.nv):
        loops.unknown[i, j] = -a[i, j]
    for row in range(loops.force.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            missing = loops.acceleration[i, row] + pull * (so3.TWO * loops.rate[i, row] + pull * loops.gap[i, row])
            loops.unknown[i, t.nv + at] = -missing
    newton_blocks.solve_blocks(b, c, i, t.nv, loops)
    for j in range(t.nv):
        a[i, j] = loops.unknown[i, j]
    for e in range(t.prescribed.dof.shape[0]):
        a[i, t.prescribed.dof[e]] = fixed[i, t.prescribed.dof[e]]
    for row in range(loops.force.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            loops.force[i, row] = loops.unknown[i, t.nv + at]


@wp.func
def begin_acceleration(
    t: Tables, s: Scratch, i: int, q: Rows, v: Rows, given: Rows, q_dot: Rows, loops: LoopRows
):  # fmt: skip
    """Check a state, compute dq/dt, and set the constraint forces to zero."""
    traversal.inspect(t, s, i, q, v, given)
    put_configuration_rate(t, i, q, v, q_dot)
    for row in range(loops.force.shape[1]):
        loops.force[i, row] = so3.ZERO


def closed_kernel(act: Acting) -> Any:
    """Kernel of forward dynamics of closed chains. Its linear system is solved by blocks of coordinates."""
    residual = residual_of(act)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def closed_accelerations(
        t: TablesStruct,
        s: ScratchStruct,
        b: BlockMatrixStruct,
        c: LoopFrontsStruct,
        g: MotionInputsStruct,
        loops: LoopRowsStruct,
        pull: wp.array(dtype=wp.float64),
        q_dot: Rows,
        a: Rows,
        first: int,
    ):
        i = first + wp.tid()
        begin_acceleration(t, s, i, g.q, g.v, g.a, q_dot, loops)
        residual(t, s, i, g.q, g.v, g.a, g.u, g.extra, g.gravity[0], g.load[i], loops, a)
        loop_rates(t, s, i, g.q, g.v, g.a, se3.join(vec3(), -g.gravity[0]), loops.rate, loops.acceleration)
        make_mass_blocks(t, s, b, i)
        pivot = newton_blocks.factor_blocks(t, s, b, c, i, so3.ZERO, loops, put_forces)
        if pivot == 0:
            solve_accelerations(t, b, c, i, g.a, pull[0], loops, a)
        elif s.status[i] == 0:
            s.status[i] = scratch.STATUS_SINGULAR + wp.where(pivot > 0, pivot, t.nv)
        traversal.inspect_result(s, i, a)

    return closed_accelerations


def solves_closed(model: Model) -> bool:
    """Whether forward dynamics of a robot with loops eliminates blocks."""
    return model.nv >= _LEAST_COORDINATES_CLOSED and closes_by_blocks(model)


def _record_closed(w: Buffers, model: Model, batch: int, loops: LoopRowsStruct, pull: Any, q_dot: Any) -> None:
    """Record the launch for the buffers of forward_dynamics."""
    d, blocks = w.on_device, [partial(block_matrix, model, of_mass=True), partial(loop_fronts, model, wide=False)]
    tables = [w.tables, w.scratch, *map(Temporary, blocks)]
    w.record(closed_kernel, [*tables, motion_inputs(w, a="given"), loops, pull, q_dot, d["a"]])


_LEAST_COORDINATES_OPEN = 40  # from here on articulated bodies are faster on chains and trees of rods and rigid links


@without_derivatives
def articulated_kernel(act: Acting) -> Any:
    """Kernel of forward dynamics by articulated bodies."""
    residual = residual_of(act)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def articulated_accelerations(
        t: TablesStruct,
        s: ScratchStruct,
        x: ColumnsStruct,
        y: BlocksStruct,
        b: ArticulatedStruct,
        g: MotionInputsStruct,
        loops: LoopRowsStruct,
        q_dot: Rows,
        a: Rows,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, g.q, g.v, g.a)
        put_configuration_rate(t, i, g.q, g.v, q_dot)
        residual(t, s, i, g.q, g.v, g.a, g.u, g.extra, g.gravity[0], g.load[i], loops, a)
        pivot = factor_blocks(t, s, x, y, b, i)
        if pivot == 0:
            for j in range(t.nv):
                a[i, j] = -a[i, j]
            solve_blocks(x, y, b, i, a)
            for e in range(t.prescribed.dof.shape[0]):
                a[i, t.prescribed.dof[e]] = g.a[i, t.prescribed.dof[e]]
        elif s.status[i] == 0:
            s.status[i] = scratch.STATUS_SINGULAR + pivot
        traversal.inspect_result(s, i, a)

    return articulated_accelerations


def solves_by_blocks(model: Model) -> bool:
    """Whether forward dynamics uses articulated bodies instead of a factored M.

    It does for robots without loops that have many coordinates, of which no single block has more than half. All
    coordinates must belong to links.
    """
    size, most = squares(model), model.nv // 2
    large = model.nv >= _LEAST_COORDINATES_OPEN and size.max(initial=0) <= most
    return model.n_rows == 0 and large and int(size.sum()) == model.nv


def _record_articulated(w: Buffers, model: Model, batch: int, loops: LoopRowsStruct, q_dot: Any) -> None:
    """Record the launch for the buffers of forward_dynamics."""
    d = w.on_device
    tables = [w.tables, w.scratch, block_columns(model), block_tables(model), articulated_buffers(model, batch)]
    w.record(articulated_kernel, [*tables, motion_inputs(w, a="given"), loops, q_dot, d["a"]])


_LOOP_RESULTS = ("force", "gap", "rate", "acceleration", "slot", "rank")  # arrays with a row for each instance


def residual_kernel(act: Acting) -> Any:
    """Kernel of the residual."""
    residual = residual_of(act)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def residual_alone(
        t: TablesStruct,
        s: ScratchStruct,
        g: MotionInputsStruct,
        loops: LoopRowsStruct,
        tau: Rows,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, g.q, g.v, g.a)
        residual(t, s, i, g.q, g.v, g.a, g.u, g.extra, g.gravity[0], g.load[i], loops, tau)

    return residual_alone


@wp.func
def solve_by_mass_matrix(
    t: Tables, s: Scratch, x: Columns, b: MassBuffers, i: int, g: MotionInputs, pull: wp.float64, M: Rows,
    loops: LoopRows, a: Rows,
) -> int:  # fmt: skip
    """Solve (2) for a and loops.force with the right side of (1) in a; returns the number of a zero pivot, or 0."""
    if may_have_loops() and row_count(t) > 0:
        loop_rates(t, s, i, g.q, g.v, g.a, se3.join(vec3(), -g.gravity[0]), loops.rate, loops.acceleration)
        rows_from_columns(t, s, x, i, g.q, b.S, 0, loops.A)
        return solve_constrained(t, x, i, g.a, pull, M, loops, a)
    fix_prescribed(t, t.nv, x.width, i, g.a, M, a)
    return ldl_solve(t.nv, x.width, i, M, a)


@without_derivatives
def forward_dynamics_kernel(act: Acting) -> Any:
    """Kernel of forward dynamics."""
    residual = residual_of(act)

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def accelerations(
        t: TablesStruct,
        s: ScratchStruct,
        x: ColumnsStruct,
        b: MassBuffersStruct,
        g: MotionInputsStruct,
        loops: LoopRowsStruct,
        pull: wp.array(dtype=wp.float64),
        M: Rows,
        q_dot: Rows,
        a: Rows,
        first: int,
    ):
        i = first + wp.tid()
        begin_acceleration(t, s, i, g.q, g.v, g.a, q_dot, loops)
        residual(t, s, i, g.q, g.v, g.a, g.u, g.extra, g.gravity[0], g.load[i], loops, a)
        for j in range(t.nv):
            a[i, j] = -a[i, j]
        mass_matrix_sweep(t, s, x, b, i, M)
        pivot = solve_by_mass_matrix(t, s, x, b, i, g, pull[0], M, loops, a)
        if pivot > 0 and s.status[i] == 0:
            s.status[i] = scratch.STATUS_SINGULAR + pivot
        traversal.inspect_result(s, i, a)

    return accelerations


def _buffers(model: Model, batch: int, names: tuple[str, ...], outputs: Shapes) -> Buffers:
    inputs = {"q": (model.nq,), "u": (model.nu,)} | {name: (model.nv,) for name in names}
    w = Buffers(model, batch, inputs, outputs, table_options=TableOptions(only_along_v=True))
    w.gravity()
    w.buffer("load", (batch, model.n_load_rows), vec6)
    return w


def accelerations_kernel(model: Model) -> Any:
    """The kernel of forward dynamics for a model."""
    if solves_closed(model):
        return closed_kernel
    return articulated_kernel if solves_by_blocks(model) else forward_dynamics_kernel


def forward_dynamics_buffers(model: Model, batch: int, *, dense: bool = False) -> Buffers:
    """Buffers of accelerations by the solver of a model, or by the dense one."""
    w = _buffers(model, batch, ("v", "given", "extra"), {"a": (model.nv,)})
    closes = solves_closed(model) and not dense
    loops = loop_buffers(w, model, batch, dense=not closes)
    pull, q_dot = w.buffer("pull", (1,)), w.buffer("q_dot", (batch, model.nq))
    if closes:
        _record_closed(w, model, batch, loops, pull, q_dot)
    else:
        record_accelerations(w, model, batch, loops, pull, q_dot)
    return w


def record_accelerations(
    w: Buffers, model: Model, batch: int, loops: LoopRowsStruct, pull: Any, q_dot: Any
) -> None:  # fmt: skip
    """Record the launch that computes "a" from "q", "v", "u", "given" and "extra" without elimination of loops."""
    if solves_by_blocks(model):  # without loops, so that `pull` has no effect
        _record_articulated(w, model, batch, loops, q_dot)
        return
    width = column_width(model)
    M = wp.zeros((batch, (model.nv + 1) * width), dtype=wp.float64, device=model.device)
    tables = [w.tables, w.scratch, column_tables(model), mass_buffers(model, batch)]
    given = motion_inputs(w, a="given")
    w.record(forward_dynamics_kernel, [*tables, given, loops, pull, M, q_dot, w.on_device["a"]])


def _make_residual(model: Model, batch: int, *, anchored: bool = False) -> Buffers:
    w = _buffers(model, batch, ("v", "a", "extra"), {"tau": (model.nv,)})
    loops = loop_buffers(w, model, batch)
    tables = w.anchored_tables() if anchored else w.tables
    w.record(residual_kernel, [tables, w.scratch, motion_inputs(w), loops, w.on_device["tau"]])
    return w


def _fill(w: Workspace, model: Model, t: Times, factor: float, **values: np.ndarray) -> None:
    """Fill the buffers of named values, gravity, loads and custom actuators; factor multiplies gravity, loads and u."""
    host = w.host
    for name, value in values.items():
        host[name][:] = value
    if factor != 1.0:
        host["u"][:] *= factor
    w.put_gravity(True, factor)
    put_loads(model, w, t, factor)
    if model.inputs.custom:
        for k, (q, u) in enumerate(zip(w.host["q"], w.host["u"])):
            w.host["extra"][k] = custom_actuation(model, q) @ u


def run_forward_dynamics(
    model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: Times, pull: float = 0.0
) -> Workspace:
    """Accelerations of states (n, ...), or of one state; the caller checks `status`.

    Args:
        t: time, or a time for each state [s]. pull: p of (2) [1/s].
    Returns:
        The workspace: accelerations in `a`, dq/dt in `q_dot`, constraint forces in `force`.
    """
    w = workspace(model, "forward_dynamics", 1 if q.ndim == 1 else len(q), forward_dynamics_buffers, in_blocks=True)
    _run(w, model, q, v, u, t, pull)
    singular = w.status > scratch.STATUS_SINGULAR
    if singular.any() and solves_closed(model):  # the dense solver also handles a coordinate without mass in a loop
        dense = workspace(
            model, "forward_dynamics dense", w.batch, partial(forward_dynamics_buffers, dense=True), in_blocks=True
        )
        _run(dense, model, q, v, u, t, pull)
        if singular.all():
            return dense
        for name in ("a", *_LOOP_RESULTS):  # other states keep their results, so that a batch gives those of one state
            w.host[name][singular] = dense.host[name][singular]
        w.status[singular] = dense.status[singular]
    return w


def _run(w: Workspace, model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray, t: Times, pull: float) -> None:
    _fill(w, model, t, 1.0, q=q, v=v, u=u)
    if len(model.prescribed.dof):
        w.host["given"][:, model.prescribed.dof] = prescribed_accelerations(model, t, w.batch)
    w.host["pull"][0] = pull
    w.run()


def prescribed_accelerations(model: Model, t: Times, count: int) -> Any:
    """Accelerations of prescribed coordinates, (n_motions,) or (count, n_motions)."""
    if not model.models:
        return model.motions_over(t, (2,)) if isinstance(t, np.ndarray) else model.motions(t)[2]
    return [one.motions(x)[2] for one, x in zip(model.of_rows(count), np.broadcast_to(t, count).tolist())]


def run_residual(
    model: Model,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    u: np.ndarray,
    t: Times,
    factor: float = 1.0,
    force: Any = 0.0,
    anchors: np.ndarray | None = None,
) -> Workspace:
    """The residual ID(q, v, a) − B(q) u − Aᵀ λ of states (n, ...); the caller checks `status`.

    Args:
        t: time, or a time for each state [s]. factor: of gravity, loads and u. force: λ of loops.
        anchors: of contacts for each state, (n, n_pairs, 6); None: those of the model.
    Returns:
        The workspace: the residual in `tau`, residuals of loops in `gap`.
    """
    if anchors is None or not anchors.size:
        w = workspace(model, "residual", len(q), _make_residual, in_blocks=True)
    else:
        w = workspace(model, "residual with anchors", len(q), partial(_make_residual, anchored=True), in_blocks=True)
        w.put_anchors(anchors)
    _fill(w, model, t, factor, q=q, v=v, a=a, u=u)
    w.host["force"][:] = force
    w.run()
    return w


def forward_dynamics(
    model: Model | ModelBatch, q: ArrayLike, v: ArrayLike, u: ArrayLike | None = None, t: float = 0.0
) -> np.ndarray:
    """Acceleration that the inputs, loads, gravity and elasticity produce.

        M(q) a = B(q) u + F_ext − c(q, v) − g(q) − K q − D v

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
        u: inputs, shape (..., nu) [N, Pa, N·m; m pulled in of an elastic tendon]; None is zero.
        t: time of the point loads and prescribed motions [s].
    Returns:
        a, shape (..., nv); for a prescribed coordinate the acceleration of its motion.
    Raises:
        ShapeError: the argument, the expected and the received shape.
        ModelError: a coordinate moves no mass, with its index.
    Accuracy: as inverse_dynamics, times the condition number of M.
    Source: Mathew 2025 eq. (4).
    """
    time(t)
    if isinstance(model, ModelBatch):
        return for_models(forward_dynamics, locals(), "q", "v", "u")
    u = np.zeros(model.nu) if u is None else u
    known = call_of(model, "forward_dynamics")(q, v, u)
    if known is not None:
        return known
    q, v, u = stack("q", q, model.nq), stack("v", v, model.nv), stack("u", u, model.nu)
    lead = leading(q=q, v=v, u=u)
    rows = [flat(x, lead) for x in (q, v, u)]
    if not np.isfinite(rows[2]).all():
        raise ShapeError("u: must be finite, got NaN or infinity")
    warn_of_pushing(model, u)
    w = run_forward_dynamics(model, rows[0], rows[1], rows[2], t)
    raise_if_massless(model, w)
    w.raise_for_status()
    if not lead and depends_on_state_only(model):
        w.prepare("forward_dynamics", ("q", "v", "u"), ("a",), (model.nv,))
    return w.host["a"].reshape(*lead, model.nv).copy()


def depends_on_state_only(model: Model) -> bool:
    """Whether one kernel computes accelerations from q, v and u only, and there are no tendons, whose push gives a
    warning. Robots that eliminate blocks of loops have another kernel for states where that fails."""
    others = model.n_motions or solves_closed(model) or model.loads.varies or model.inputs.custom or model.forces.called
    return not others and not model.channels.is_tendon.any()


def raise_if_massless(model: Model, w: Workspace) -> None:
    """Raise ModelError if a pivot of M vanished, with the link and the coordinate."""
    if w.status[0] <= scratch.STATUS_SINGULAR if w.batch == 1 else (w.status <= scratch.STATUS_SINGULAR).all():
        return
    bad = w.status[w.status > scratch.STATUS_SINGULAR]
    j = int(bad[0]) - scratch.STATUS_SINGULAR - 1
    k = int(np.searchsorted(model.links.v_start, j, side="right")) - 1
    local = j - int(model.links.v_start[k])
    raise ModelError(f"link {model.links.names[k]!r}: its velocity coordinate {local} must move some mass of its own, "
                     "but the mass matrix is singular there; give the link or its children mass")  # fmt: skip
