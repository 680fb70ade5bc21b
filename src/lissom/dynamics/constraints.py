"""Constraints as arrays: residuals of loops, the constraint Jacobian and its derivatives, wrenches in loops, and steps
onto the loops.

    M a + c + g + K q + D v = B u + F + Aᵀ λ,   A v = prescribed velocities, then 0 for loops              (1)

Rows and λ have one order: prescribed motions, then loops, as added. If rows depend on each other, λ is not unique; the
one of least norm lies in the range of A, λ = Q Qᵀ λ with Q an orthonormal basis of that range.

Robots with many links compute steps onto their loops by elimination of blocks, at a cost that grows with the number of
links and of loops that are open at once:

    [K, −Aᵀ; A, μ] (δ; λ) = (0; −e)                                                                       (2)

With K = W⁻², W weights of the coordinates, the step minimises |δ|²_K + |e + A δ|²_{1/μ}; for μ = 0 it is the smallest
step that satisfies the rows. With K = M it is the change of velocities of least kinetic energy. The matrices A and K
are never assembled (newton_blocks).

Forces λ and λ − n have the same effect if n lies in the null space of Aᵀ. The part n of λ in this null space is the
limit of

    n ← ε (A D² Aᵀ + ε)⁻¹ n,   n = λ at first                                                             (3)

with D the units of the coordinates. Each iteration divides the part along a singular value σ of A D by 1 + σ² / ε.
Source: Mathew 2025 §5.2, (47), (D68)-(D83); for (2) as forward_dynamics; for (3) J. D. Riley, Math. Tables Aids
Comput. 9, 1955.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
import warp as wp

from lissom.dynamics.forward_dynamics import solves_closed
from lissom.dynamics.inverse_dynamics_derivatives import (
    derivative_workspace,
    row_results,
    run_residual_derivatives,
    square_results,
)
from lissom.errors import RedundancyWarning
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers, Temporary, loop_buffers
from lissom.launch.compiling import free_of_forces
from lissom.launch.over_models import over_models
from lissom.launch.workspace import Workspace, batch_of, filled_workspace, leading, row_slices, stack, workspace
from lissom.lie import so3
from lissom.lie.types import kernel_options, mat6, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import kinds, scratch, traversal
from lissom.passes.blocks import block_columns
from lissom.passes.columns import ColumnsStruct, Matrix, column_tables
from lissom.passes.scratch import Scratch, ScratchStruct
from lissom.passes.traversal import place_bases
from lissom.robot import formatting
from lissom.robot.constraint_functions import JOINTS, RATES
from lissom.robot.constraints import RowKind
from lissom.robot.expression_programs import jet_of
from lissom.systems import newton_blocks
from lissom.systems.bordered import LoopRows, LoopRowsStruct, choose_independent, rows_from_columns
from lissom.systems.fronts import row_sizes
from lissom.systems.loop_unknowns import put_forces, put_residuals
from lissom.systems.loops import loop_rates, loop_residuals
from lissom.systems.newton_blocks import (
    BlockMatrix,
    BlockMatrixStruct,
    LoopFronts,
    LoopFrontsStruct,
    block_matrix,
    choose_all_rows,
    eliminate,
    loop_fronts,
    make_mass_blocks,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_RANK_TOLERANCE = 1e-12  # relative to the largest eigenvalue of A D² Aᵀ
_ALMOST, _EXACTLY = 1e-6, 1e-13  # singular values of rows that almost, or exactly, follow from others


@free_of_forces
def constraint_kernel(act: Acting) -> Any:
    """Kernel of the residuals, rates and constraint rows."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def constraint_alone(
        t: TablesStruct,
        s: ScratchStruct,
        x: ColumnsStruct,
        S: Matrix,
        loops: LoopRowsStruct,
        q: Matrix,
        v: Matrix,
        find_independent: wp.array(dtype=wp.int32),
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, v)
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, v, vec6())
            if S.shape[1] > 0:
                kinds.motion_columns(t, s, x, i, k, S)
        loop_residuals(t, s, i, q, loops.gap)
        loop_rates(t, s, i, q, v, v, vec6(), loops.rate, loops.acceleration)
        if S.shape[1] > 0:
            rows_from_columns(t, s, x, i, q, S, 0, loops.A)
            rows_from_columns(t, s, x, i, q, S, 1, loops.A_q)
        if find_independent[0] != 0:
            choose_independent(x, i, loops)

    return constraint_alone


def _make(model: Model, batch: int, *, dense: bool = True) -> Buffers:
    w = Buffers(model, batch, {"q": (model.nq,), "v": (model.nv,)})
    x = column_tables(model) if dense else block_columns(model)
    size = 6 * model.n_dynamic * x.width if dense else 0
    S = wp.zeros((batch, size), dtype=wp.float64, device=model.device)
    loops = loop_buffers(w, model, batch, dense=dense)
    find_independent = w.buffer("find_independent", (1,), wp.int32, common=True)
    state = [w.on_device[name] for name in ("q", "v")]
    w.record(constraint_kernel, [w.tables, w.scratch, x, S, loops, *state, find_independent])
    return w


def run_constraints(
    model: Model, q: Any, v: Any = None, *, find_independent: bool = False
) -> tuple[Workspace, tuple[int, ...]]:
    """Compute residuals, rates and constraint rows at states (..., nq), (..., nv).

    Args:
        find_independent: whether to find the independent rows, for `independent_rows`, and their number, in `rank`.
            This takes half as long again.
    Returns:
        The workspace with the results `gap`, `rate`, `A` and `A_q`, and the leading axes.
    """
    w, lead = filled_workspace(model, "constraints", _make, ("q", "v"), q, np.zeros(model.nv) if v is None else v)
    w.host["find_independent"][0] = find_independent
    w.run()
    w.raise_for_status()
    return w, lead


def run_residuals(model: Model, q: Any, v: Any = None) -> tuple[Workspace, tuple[int, ...]]:
    """Compute residuals and rates of loops only: the workspace with `gap` and `rate`, and the leading axes."""
    make = partial(_make, dense=False)
    w, lead = filled_workspace(model, "residuals of loops", make, ("q", "v"), q, np.zeros(model.nv) if v is None else v)
    w.run()
    w.raise_for_status()
    return w, lead


@over_models("q", batched=True)
def loop_residual(model: Model, q: ArrayLike) -> np.ndarray:
    """Residuals of the loops: the misalignment of the two frames of each loop.

    Args:
        q: configuration, shape (..., nq).
    Returns:
        e, shape (..., n_rows), loop by loop: for each the rotation, then the displacement of frame A against frame B
        [rad, m], in the axes of frame B and without the directions in which its joint is free. Rows of skates are zero,
        as are those of rolling contacts but for the height of each [m]. The row of a constraint by a function is its
        value, zero for a velocity.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: Mathew 2025 (47c).
    """
    w, lead = run_residuals(model, q)
    return w.result("gap", lead, model.n_rows)


@over_models("q", batched=True)
def constraint_jacobian(model: Model, q: ArrayLike) -> np.ndarray:
    """A(q) of (1): unit rows of prescribed coordinates, then the rows of loops, skates, rolling contacts, constraints
    by functions, and couplings.

    Args:
        q: configuration, shape (..., nq).
    Returns:
        shape (..., n_multipliers, nv) [rad, m per unit of the coordinate]. If the loops are closed, its constraint rows
        are the derivative of loop_residual along the tangent space of `integrate`.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: Mathew 2025 (47a).
    """
    w, lead = run_constraints(model, q)
    return _below_motion_rows(model, row_results(model, w, "A", lead), 1.0)


@over_models("q", "v", batched=True)
def constraint_jacobian_derivative(model: Model, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Ȧ along v: A a + Ȧ v is the rate of A v.

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
    Returns:
        shape (..., n_multipliers, nv) [rad/s, m/s per unit of the coordinate].
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: Mathew 2025 (47b).
    """
    w, lead = _derivatives(model, q, v, np.zeros(model.nv))
    return _below_motion_rows(model, row_results(model, w, "A_dot", lead), 0.0)


@final
@formatting.in_one_line
@dataclass(frozen=True)
class ConstraintDerivatives:
    """Derivatives of the constraints of loops by q, in the tangent space of `integrate`, and by v.

    Fields, each (..., n_rows, nv) [rad, m, and per second and second squared, per unit of the coordinate]:
        residual_q: of loop_residual. velocity_q: of A v. acceleration_q, acceleration_v: of A a + Ȧ v.
    """

    residual_q: np.ndarray
    velocity_q: np.ndarray
    acceleration_q: np.ndarray
    acceleration_v: np.ndarray


@over_models("q", "v", "a", batched=True)
def constraint_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> ConstraintDerivatives:
    """Exact derivatives of loop residuals, of A v and of A a + Ȧ v, with v and a held fixed.

    Args:
        q: configuration, shape (..., nq). v, a: velocity and acceleration, shape (..., nv).
    Returns:
        ConstraintDerivatives [rad, m, per second and second squared, per unit of the coordinate].
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: exact derivatives of the discrete model, to rounding, open loops included.
    Source: Mathew 2025 (D70)-(D83).
    """
    w, lead = _derivatives(model, q, v, a)
    return ConstraintDerivatives(
        *(row_results(model, w, name, lead) for name in ("A_q", "rate_q", "acceleration_q", "acceleration_v"))
    )


@over_models("q", "multipliers", batched=True)
def constraint_force_derivative(model: Model, q: ArrayLike, multipliers: ArrayLike) -> np.ndarray:
    """∂(Aᵀ λ)/∂q at fixed λ.

    Args:
        q: configuration, shape (..., nq). multipliers: λ, shape (..., n_multipliers) [N·m, N].
    Returns:
        shape (..., nv, nv) [N·m, N per unit of the coordinate], along the tangent space of `integrate`.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: exact derivative of the discrete model. Source: Mathew 2025 (D68)-(D69).
    """
    force = stack("multipliers", multipliers, model.n_multipliers)[..., model.n_motions :]
    q = stack("q", q, model.nq)
    lead = leading(q=q, multipliers=force)
    force = np.broadcast_to(force, (*lead, model.n_rows)).reshape(batch_of(lead), model.n_rows)
    zero = np.zeros(model.nv)
    w, _ = derivative_workspace(model, np.broadcast_to(q, (*lead, model.nq)), zero, zero, np.zeros(model.nu))
    run_residual_derivatives(model, w, 0.0, gravity=False, elastic=False, loads=False, force=force)
    w.raise_for_status()
    return -square_results(model, w, lead)[0]


@over_models("q", "multipliers")
def loop_wrenches(model: Model, q: ArrayLike, multipliers: ArrayLike) -> np.ndarray:
    """The wrench that each loop exerts on its link a, at frame B and in its axes; link b gets the opposite wrench.

    Skates, rolling contacts and constraints by functions follow the loops. Frame B of a skate is at its point, in the
    axes of its link; its link a is the ground. Frame B of a rolling contact is that of the plane, its link a is the
    wheel.

    Args:
        q: configuration, shape (..., nq). multipliers: λ, shape (..., n_multipliers) [N·m, N], of a Trajectory or an
            Equilibrium.
    Returns:
        (moment; force), shape (..., n, 6) for n loops, skates, rolling contacts and constraints [N·m, N].
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: Mathew 2025 §5.2.
    """
    from lissom.dynamics.kinematics import forward_kinematics

    force = stack("multipliers", multipliers, model.n_multipliers)[..., model.n_motions :]
    poses = forward_kinematics(model, q)
    lead = leading(q=poses[..., 0, 0, :] if model.n_nodes else np.zeros(0), multipliers=force)
    world = np.broadcast_to(np.eye(4), (*poses.shape[:-3], 1, 4, 4))
    frames = np.concatenate([poses, world], axis=-3)[..., model.loops.node, :, :] @ model.loops.placement
    back = np.swapaxes(frames[..., 1, :3, :3], -1, -2)
    R = back @ frames[..., 0, :3, :3]
    p = (back @ (frames[..., 0, :3, 3] - frames[..., 1, :3, 3])[..., None])[..., 0]
    out = np.zeros((*lead, len(model.loops.names), 6))
    for loop, (first, stop) in enumerate(zip(model.loops.row_start, model.loops.row_start[1:])):
        for row in range(first, stop):
            P = model.loops.row_direction[row]
            n, b = model.loops.hinge[loop, 0], R[..., loop, :, :] @ model.loops.hinge[loop, 1]
            if model.loops.function[loop] >= 0:
                P = function_row(model, model.loops.function[loop], R[..., loop, :, :], p[..., loop, :], q)
            elif model.loops.row_kind[row] == RowKind.HINGE:
                turn = np.cross(b, n)
                P = np.concatenate([turn, np.zeros_like(turn)], axis=-1)
            elif model.loops.row_kind[row] in (RowKind.ROLLING, RowKind.HEIGHT):  # (2) of robot.rolling
                m = n - (b @ n)[..., None] * b
                m /= np.linalg.norm(m, axis=-1, keepdims=True)
                turn = np.cross(p[..., loop, :] - model.loops.radius[loop] * m, P[3:])
                P = np.concatenate([turn, np.broadcast_to(P[3:], turn.shape)], axis=-1)
            out[..., loop, :] += force[..., row, None] * P
    return out


def function_row(model: Model, f: int, R: np.ndarray, p: np.ndarray, q: ArrayLike) -> np.ndarray:
    """The row P of function f of a constraint, (1) of systems.constraint_functions, as a wrench in the axes of B.

    Args:
        R, p: rotation (..., 3, 3) and position (..., 3) of frame A in B. q: configuration (..., nq).
    Returns:
        shape (..., 6).
    """
    out = np.zeros((*p.shape[:-1], 6))
    for motion, y in enumerate(np.eye(6)):
        value, slope, _ = function_along(model, f, R, p, q, y)
        out[..., motion] = value if model.constraint_functions.is_rate[f] else slope
    return out


def function_along(model: Model, f: int, R: np.ndarray, p: np.ndarray, q: ArrayLike, y: np.ndarray) -> Any:
    """Function f of a constraint and its derivatives along the motion of twist y (6,) of A in B. Joints are at rest.
    Arguments as of `function_row`."""
    functions = model.constraint_functions
    x = np.concatenate([p[..., None], R], axis=-1)  # a point and three axes
    turn = np.cross(np.eye(3), y[:3])
    x_dot = turn @ x + np.outer(y[3:], [1.0, 0.0, 0.0, 0.0])
    x_ddot = turn @ x_dot
    jets = {k: tuple(z[..., k % 3, k // 3] for z in (x, x_dot, x_ddot)) for k in range(RATES)}
    none = np.zeros(p.shape[:-1])
    jets |= {RATES + k: (x_dot[..., k, 0], x_ddot[..., k, 0], none) for k in range(3)}
    jets |= {RATES + 3 + k: (none + y[k], none, none) for k in range(3)}
    for k, at in enumerate(functions.q[functions.term_start[f] : functions.term_start[f + 1]].tolist()):
        jets |= {JOINTS + 2 * k: (np.asarray(q, dtype=np.float64)[..., at], none, none)}
        jets |= {JOINTS + 2 * k + 1: (none, none, none)}
    return jet_of(jets, functions.steps(f))


def minimum_norm(model: Model, q: np.ndarray, force: np.ndarray) -> np.ndarray:
    """The forces λ of least norm that have the same effect as the given ones.

    Args:
        q: configurations (n, nq), or of many motions (m, n, nq). force: λ, (n, n_rows) or (m, n, n_rows) [N·m, N].
    Returns:
        λ, of the shape of `force`.
    """
    if not force.size:
        return force
    if q.ndim == 2:
        return minimum_norm(model, q[None], force[None])[0]
    least = force.copy()
    for part in row_slices(q.shape[1]):
        states, rows = q[:, part], force[:, part].reshape(-1, model.n_rows)
        least[:, part] = _least_norm_forces(model, states.reshape(len(rows), -1), rows).reshape(least[:, part].shape)
    return least


def _least_norm_forces(model: Model, q: np.ndarray, force: np.ndarray) -> np.ndarray:
    """As `minimum_norm`, for states (n, nq), (n, n_rows) of one launch."""
    if solves_closed(model):
        w = run_closing(model, LEAST_NORM_FORCES, q, force=force)
        if not w.status.any():
            return w.host["force"].copy()
    return least_norm(model, run_constraints(model, q, find_independent=True)[0], force)


def least_norm(model: Model, w: Workspace, force: np.ndarray) -> np.ndarray:
    """As `minimum_norm`, with the results of a workspace: the configurations `q`, the numbers `rank` of independent
    rows, and the rows `A`. `A` is empty if the workspace eliminates blocks; then other launches are made."""
    dependent = np.flatnonzero(w.host["rank"] < model.n_rows)
    if not len(dependent):
        return force.copy()
    if not w.host["A"].size:
        return _least_norm_forces(model, w.host["q"], force)
    scale = model.by_row(lambda one: one.dofs.scale, w.batch)
    scale = scale if scale.ndim == 1 else scale[dependent, None]
    A = row_results(model, w, "A", (w.batch,))[dependent] * scale
    A[..., model.prescribed.dof] = 0.0
    size, Q = np.linalg.eigh(A @ np.swapaxes(A, -1, -2))
    Q *= (size > _RANK_TOLERANCE * size[:, -1:])[:, None, :]
    least = force.copy()
    least[dependent] = (Q @ (np.swapaxes(Q, -1, -2) @ force[dependent, :, None]))[..., 0]
    return least


def warn_of_redundancy(model: Model, q: np.ndarray) -> None:
    """Warn, once for a model, if rows of its constraints depend on each other at q (nq,)."""
    if model.n_rows and "redundancy" not in model.cache:
        rank = model.cache["redundancy"] = _rank(model, q)
        if rank < model.n_rows:
            what = "constraints" if any(kind != "loops" for kind in model.loops.kinds) else "loops"
            warnings.warn(
                f"robot {model.name!r}: of the {model.n_rows} rows of its {what} {rank} are independent; these are "
                f"kept, and the forces in the {what} are those of least norm", RedundancyWarning, stacklevel=3
            )  # fmt: skip


def joined_too_often(model: Model, q: np.ndarray) -> str:
    """The part of a message about rows of loops that almost follow from each other at q (nq,), as where rods are joined
    at more places than their modes can follow; empty if there are none. Rows that follow exactly do no harm."""
    if not model.n_rows:
        return ""
    A = row_results(model, run_constraints(model, q)[0], "A") * model.dofs.scale
    size = np.linalg.norm(A, axis=1)
    s = np.linalg.svd(A[size > 0.0] / size[size > 0.0, None], compute_uv=False)
    almost = int(((s < _ALMOST * s[:1]) & (s > _EXACTLY * s[:1])).sum())
    if not almost:
        return ""
    rule = f"{almost} of the {model.n_rows} rows of its loops almost follow from the others"
    return (f"; {rule}: where loops join rods at more places than their modes can follow, use fewer loops, or higher "
            "orders of the modes")  # fmt: skip


def _rank(model: Model, q: np.ndarray) -> int:
    """Number of independent constraint rows at q (nq,)."""
    if solves_closed(model):
        w = run_closing(model, STEP_VELOCITIES, q[None], weights=model.dofs.scale)
        if not w.status.any():
            return int(w.host["rank"][0])
    return int(run_constraints(model, q, find_independent=True)[0].host["rank"][0])


def _derivatives(model: Model, q: Any, v: Any, a: Any) -> tuple[Workspace, tuple[int, ...]]:
    """Run the derivatives of the residual without external forces: the workspace and the leading axes."""
    w, lead = derivative_workspace(model, q, v, a, np.zeros(model.nu))
    run_residual_derivatives(model, w, 0.0, gravity=False, elastic=False, loads=False)
    w.raise_for_status()
    return w, lead


def _below_motion_rows(model: Model, rows: np.ndarray, unit: float) -> np.ndarray:
    """Constraint rows (..., n_rows, nv) below rows of prescribed coordinates, whose nonzero entries are `unit`."""
    motion_rows = np.zeros((*rows.shape[:-2], model.n_motions, model.nv))
    motion_rows[..., np.arange(model.n_motions), model.prescribed.dof] = unit
    return np.concatenate([motion_rows, rows], axis=-2)


# Tasks of closing_kernel.
STEP_POSITIONS = 1  # steps of q onto the loops, smallest by weights
STEP_VELOCITIES = 2  # steps of v, smallest by weights
STEP_BY_KINETIC_ENERGY = 3  # steps of v, smallest by kinetic energy
LEAST_NORM_FORCES = 4  # forces of least norm
_LOCKED_STIFFNESS = wp.constant(wp.float64(1e200))  # K of a coordinate that does not move
# ε of (3) relative to the largest row: the geometric mean of 1 and the rounding error.
_RELATIVE_EPSILON = wp.constant(wp.float64(1e-8))
_MAX_ITERATIONS = wp.constant(50)

Numbers = wp.array(dtype=wp.float64)


@wp.func(inline=False)
def put_weights(t: Tables, b: BlockMatrix, i: int, weights: Numbers):
    """Replace the blocks of make_mass_blocks by the diagonal matrix W⁻²."""
    for j in range(b.K.shape[1]):
        b.K[i, j] = so3.ZERO
    for j in range(t.nv):
        square = weights[j] * weights[j]
        b.K[i, j * b.band.width + j] = wp.where(
            square * _LOCKED_STIFFNESS > so3.ONE, so3.ONE / square, _LOCKED_STIFFNESS
        )
    clear_inertias(t, b, i)


@wp.func
def clear_inertias(t: Tables, b: BlockMatrix, i: int):
    """Set the inertias of all nodes to zero."""
    for k in range(t.n_dynamic):
        b.H[i, k] = mat6()
        b.N[i, k] = mat6()
        b.M[i, k] = mat6()


@wp.func
def solve_rows(t: Tables, b: BlockMatrix, c: LoopFronts, i: int, missing: Matrix, factor: wp.float64, loops: LoopRows):
    """Solve (2): (δ; λ) in loops.unknown, for the right side factor · missing on the independent rows."""
    for j in range(t.nv):
        loops.unknown[i, j] = so3.ZERO
    for row in range(missing.shape[1]):
        at = loops.slot[i, row]
        if at >= 0:
            loops.unknown[i, t.nv + at] = factor * missing[i, row]
    newton_blocks.solve_blocks(b, c, i, t.nv, loops)


@wp.func
def iterate_null_space(
    t: Tables, b: BlockMatrix, c: LoopFronts, i: int, factor: wp.float64, loops: LoopRows
) -> wp.float64:
    """One iteration of (3) for n in loops.work; returns the largest change."""
    solve_rows(t, b, c, i, loops.work, factor, loops)
    change = wp.float64(0.0)
    for row in range(loops.force.shape[1]):
        left = loops.unknown[i, t.nv + row]
        change = wp.max(change, wp.abs(left - loops.work[i, row]))
        loops.work[i, row] = left
    return change


@wp.func(inline=False)
def remove_null_space(t: Tables, s: Scratch, b: BlockMatrix, c: LoopFronts, i: int, loops: LoopRows) -> int:
    """Subtract from loops.force its part in the null space of Aᵀ, found by (3); returns 0 or the status of eliminate.

    On entry all rows take part; loops.work and the matrix of the blocks are overwritten.
    """
    largest = wp.float64(0.0)
    size = wp.float64(0.0)
    row_sizes(b.x, b.y, c.rows, i, b.centre, c.p.row, b.L, loops.scale, c.work, c.size)
    for row in range(loops.force.shape[1]):
        largest = wp.max(largest, c.size[i, row])
        size = wp.max(size, wp.abs(loops.force[i, row]))
        loops.work[i, row] = loops.force[i, row]
    for row in range(loops.force.shape[1]):
        c.p.damping[i, row] = _RELATIVE_EPSILON * largest
    clear_inertias(t, b, i)
    put_forces(t, s, c.p, i, loops)
    pivot = eliminate(t, s, b, c, i, so3.ZERO, True)
    change = wp.float64(1.0)
    for _turn in range(_MAX_ITERATIONS):
        if pivot == 0 and change > _RELATIVE_EPSILON * size:
            change = iterate_null_space(t, b, c, i, _RELATIVE_EPSILON * largest, loops)
    for row in range(loops.force.shape[1]):
        loops.force[i, row] = loops.force[i, row] - loops.work[i, row]
    return pivot


@wp.func
def least_forces(t: Tables, s: Scratch, b: BlockMatrix, c: LoopFronts, i: int, loops: LoopRows) -> int:
    """Replace loops.force by the forces of least norm; if all rows are independent, they are unique and stay."""
    choose_all_rows(i, loops)
    put_forces(t, s, c.p, i, loops)
    pivot = eliminate(t, s, b, c, i, so3.ZERO, False)
    if pivot < 0:
        pivot = remove_null_space(t, s, b, c, i, loops)
    return pivot


@wp.struct
class ClosingStruct:
    """Task of closing_kernel, weights W and damping μ of (2) as inputs; size: squared norms of the rows A W."""

    task: wp.array(dtype=wp.int32)
    weights: Numbers
    damping: Matrix
    size: Matrix


@free_of_forces
def closing_kernel(act: Acting) -> Any:
    """Kernel of steps onto the loops."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def closing_alone(
        t: TablesStruct,
        s: ScratchStruct,
        b: BlockMatrixStruct,
        c: LoopFrontsStruct,
        q: Matrix,
        v: Matrix,
        d: ClosingStruct,
        loops: LoopRowsStruct,
        move: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, v)
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, v, vec6())
        loop_residuals(t, s, i, q, loops.gap)
        loop_rates(t, s, i, q, v, v, vec6(), loops.rate, loops.acceleration)
        make_mass_blocks(t, s, b, i)
        for row in range(loops.force.shape[1]):
            c.p.damping[i, row] = d.damping[i, row]
        pivot = wp.int32(0)
        if d.task[0] == LEAST_NORM_FORCES:
            put_weights(t, b, i, loops.scale)
            pivot = least_forces(t, s, b, c, i, loops)
        elif d.task[0] == STEP_POSITIONS:
            put_weights(t, b, i, d.weights)
            pivot = newton_blocks.factor_blocks(t, s, b, c, i, so3.ZERO, loops, put_residuals)
            row_sizes(b.x, b.y, c.rows, i, b.centre, c.p.row, b.L, d.weights, c.work, d.size)
            solve_rows(t, b, c, i, loops.gap, -so3.ONE, loops)
        else:
            if d.task[0] == STEP_VELOCITIES:
                put_weights(t, b, i, d.weights)
            pivot = newton_blocks.factor_blocks(t, s, b, c, i, so3.ZERO, loops, put_forces)
            solve_rows(t, b, c, i, loops.rate, -so3.ONE, loops)
        if pivot != 0 and s.status[i] == 0:
            s.status[i] = scratch.STATUS_SINGULAR + wp.where(pivot > 0, pivot, t.nv)
        if d.task[0] != LEAST_NORM_FORCES:
            for j in range(t.nv):
                move[i, j] = loops.unknown[i, j]
            traversal.inspect_result(s, i, move)

    return closing_alone


def _make_closing(model: Model, batch: int) -> Buffers:
    inputs = {"q": (model.nq,), "v": (model.nv,), "damping": (model.n_rows,)}
    w = Buffers(model, batch, inputs, {"move": (model.nv,), "size": (model.n_rows,)})
    loops, given, d = loop_buffers(w, model, batch, dense=False), ClosingStruct(), w.on_device
    given.task = w.buffer("task", (1,), wp.int32, common=True)
    given.weights = w.buffer("weights", (model.nv,), common=True)
    given.damping, given.size = d["damping"], d["size"]
    blocks = [partial(block_matrix, model, of_mass=True), partial(loop_fronts, model, wide=False)]
    tables = [w.tables, w.scratch, *map(Temporary, blocks)]
    w.record(closing_kernel, [*tables, d["q"], d["v"], given, loops, d["move"]])
    return w


def run_closing(
    model: Model, task: int, q: np.ndarray, v: Any = 0.0, *, weights: Any = 0.0, damping: Any = 0.0, force: Any = 0.0
) -> Workspace:
    """Run a task of closing_kernel at states (n, nq), (n, nv); the caller checks `status`.

    Args:
        task: STEP_POSITIONS, STEP_VELOCITIES, STEP_BY_KINETIC_ENERGY or LEAST_NORM_FORCES.
        weights: W of (2), (nv,). damping: μ of (2), (n, n_rows). force: λ for LEAST_NORM_FORCES, (n, n_rows).
    Returns:
        The workspace: δ of (2) in `move`, independent rows in `slot` and their number in `rank`, residuals and rates of
        all rows in `gap` and `rate`; for STEP_POSITIONS the squared norms of the rows A W in `size`; for
        LEAST_NORM_FORCES the forces in `force`.
    """
    w = workspace(model, "closing", len(q), _make_closing)
    values = {"q": q, "v": v, "task": task, "weights": weights, "damping": damping, "force": force}
    for name, value in values.items():
        w.host[name][:] = value
    w.run()
    return w
