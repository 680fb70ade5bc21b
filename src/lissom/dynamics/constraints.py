"""Constraints as arrays: residuals of loops, the constraint Jacobian and its derivatives, and the wrenches in loops.

    M a + c + g + K q + D v = B u + F + Aᵀ λ,   A v = prescribed velocities, then 0 for loops              (1)

Rows and λ stand in one order: prescribed motions, then loops, as added. Where rows depend on each other λ is not
unique; the one of least norm lies in the range of A, λ = Q Qᵀ λ with Q an orthonormal basis of that range.
Source: Mathew 2025 §5.2, (47), (D68)-(D83).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
import warp as wp

from lissom.dynamics.closed_dynamics import solves_closed
from lissom.dynamics.closing import LEAST, STILL, run_closing
from lissom.dynamics.inverse_dynamics_derivatives import (
    derivative_workspace,
    row_results,
    run_residual_derivatives,
    square_results,
)
from lissom.errors import RedundancyWarning
from lissom.forces.acting import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.composed import free_of_forces
from lissom.launch.loop_buffers import with_loops
from lissom.launch.over_models import over_models
from lissom.launch.workspace import Workspace, batch_of, filled, leading, parts, stack
from lissom.lie.types import kernel_options, vec6
from lissom.model.model import Model
from lissom.model.tables import TablesStruct
from lissom.passes import kinds, traversal
from lissom.passes.base_frames import place_bases
from lissom.passes.block_tables import block_columns
from lissom.passes.column_tables import ColumnsStruct, Matrix, column_tables
from lissom.passes.scratch import ScratchStruct
from lissom.robot import formatting
from lissom.systems.bordered import LoopRowsStruct, choose_independent, own_rows
from lissom.systems.loops import loop_rates, loop_residuals

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_NOTHING = 1e-12  # of the largest eigenvalue of A Aᵀ


@free_of_forces
def constraint_kernel(act: Acting) -> Any:
    """Kernel of the residuals, rates and rows of loops."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def constraint_alone(
        t: TablesStruct,
        s: ScratchStruct,
        x: ColumnsStruct,
        S: Matrix,
        loops: LoopRowsStruct,
        q: Matrix,
        v: Matrix,
        choosing: wp.array(dtype=wp.int32),
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, v)
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, v, vec6())
            if S.shape[1] > 0:
                kinds.motion_columns(t, s, x, i, k, S)
        loop_residuals(t, s, i, loops.gap)
        loop_rates(t, s, i, vec6(), loops.rate, loops.acceleration)
        if S.shape[1] > 0:
            own_rows(t, s, x, i, S, 0, loops.A)
            own_rows(t, s, x, i, S, 1, loops.A_q)
        if choosing[0] != 0:
            choose_independent(x, i, loops)

    return constraint_alone


def _make(model: Model, batch: int, *, whole: bool = True) -> Buffers:
    w = Buffers(model, batch, {"q": (model.nq,), "v": (model.nv,)})
    x = column_tables(model) if whole else block_columns(model)
    size = 6 * model.n_dynamic * x.width if whole else 0
    S = wp.zeros((batch, size), dtype=wp.float64, device=model.device)
    loops, choosing = with_loops(w, model, batch, whole=whole), w.buffer("choosing", (1,), wp.int32, common=True)
    w.record(constraint_kernel, [w.tables, w.scratch, x, S, loops, w.on_device["q"], w.on_device["v"], choosing])
    return w


def run_constraints(
    model: Model, q: Any, v: Any = None, *, choosing: bool = False
) -> tuple[Workspace, tuple[int, ...]]:
    """Residuals, rates and rows of loops, left in `gap`, `rate`, `A` and `A_q`; the leading axes. If `choosing`, also
    which rows are independent, for `chosen_rows` and in `kept`, which takes half as long again."""
    w, lead = filled(model, "constraints", _make, ("q", "v"), q, np.zeros(model.nv) if v is None else v)
    w.host["choosing"][0] = choosing
    w.run()
    w.raise_for_status()
    return w, lead


def run_residuals(model: Model, q: Any, v: Any = None) -> tuple[Workspace, tuple[int, ...]]:
    """Residuals and rates of loops alone, left in `gap` and `rate`; the leading axes."""
    make = partial(_make, whole=False)
    w, lead = filled(model, "residuals of loops", make, ("q", "v"), q, np.zeros(model.nv) if v is None else v)
    w.run()
    w.raise_for_status()
    return w, lead


@over_models("q", together=True)
def loop_residual(model: Model, q: ArrayLike) -> np.ndarray:
    """By how much each loop is open.

    Args:
        q: configuration, shape (..., nq).
    Returns:
        e, shape (..., n_rows), loop by loop: of each, the rotation that is left, then the displacement [rad, m], in the
        axes of its frame B and without the directions in which its joint is free.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: Mathew 2025 (47c).
    """
    w, lead = run_residuals(model, q)
    return w.result("gap", lead, model.n_rows)


@over_models("q", together=True)
def constraint_jacobian(model: Model, q: ArrayLike) -> np.ndarray:
    """A(q) of (1): unit rows of prescribed coordinates, then the rows of the loops.

    Args:
        q: configuration, shape (..., nq).
    Returns:
        shape (..., n_multipliers, nv) [rad, m per unit of the coordinate]. Where the loops are closed it is the
        derivative of loop_residual along the tangent space of `integrate`.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: Mathew 2025 (47a).
    """
    w, lead = run_constraints(model, q)
    return _with_motions(model, row_results(model, w, "A", lead), 1.0)


@over_models("q", "v", together=True)
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
    return _with_motions(model, row_results(model, w, "A_dot", lead), 0.0)


@final
@formatting.in_one_line
@dataclass(frozen=True)
class ConstraintDerivatives:
    """Derivatives of what loops ask, with respect to q in the tangent space of `integrate`, and v.

    Fields, each (..., n_rows, nv) [rad, m, and per second and second squared, per unit of the coordinate]:
        residual_q: of loop_residual. velocity_q: of A v. acceleration_q, acceleration_v: of A a + Ȧ v.
    """

    residual_q: np.ndarray
    velocity_q: np.ndarray
    acceleration_q: np.ndarray
    acceleration_v: np.ndarray


@over_models("q", "v", "a", together=True)
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
    return ConstraintDerivatives(*(row_results(model, w, name, lead) for name in ("A_q", "rate_q", "turn_q", "turn_v")))


@over_models("q", "multipliers", together=True)
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
    """The wrench that each loop exerts on its link a, at frame B and in its axes; on link b acts the opposite.

    Args:
        q: configuration, shape (..., nq). multipliers: λ, shape (..., n_multipliers) [N·m, N], of a Trajectory or an
            Equilibrium.
    Returns:
        (moment; force), shape (..., n_loops, 6) [N·m, N].
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
    R = np.swapaxes(frames[..., 1, :3, :3], -1, -2) @ frames[..., 0, :3, :3]
    out = np.zeros((*lead, len(model.loops.names), 6))
    for loop, (first, stop) in enumerate(zip(model.loops.row_start, model.loops.row_start[1:])):
        for row in range(first, stop):
            P = model.loops.row_direction[row]
            if model.loops.row_is_hinge[row]:
                turn = np.cross(R[..., loop, :, :] @ model.loops.hinge[loop, 1], model.loops.hinge[loop, 0])
                P = np.concatenate([turn, np.zeros_like(turn)], axis=-1)
            out[..., loop, :] += force[..., row, None] * P
    return out


def minimum_norm(model: Model, q: np.ndarray, force: np.ndarray) -> np.ndarray:
    """The forces λ (n, n_rows) of least norm that act as the given ones do, at configurations (n, nq), or of many
    motions (m, n, ...)."""
    if not force.size:
        return force
    if q.ndim == 2:
        return minimum_norm(model, q[None], force[None])[0]
    least = force.copy()
    for part in parts(q.shape[1]):
        some, rows = q[:, part], force[:, part].reshape(-1, model.n_rows)
        least[:, part] = _least(model, some.reshape(len(rows), -1), rows).reshape(least[:, part].shape)
    return least


def _least(model: Model, q: np.ndarray, force: np.ndarray) -> np.ndarray:
    """The same (n, n_rows) of a few states."""
    if solves_closed(model):
        w = run_closing(model, LEAST, q, force=force)
        if not w.status.any():
            return w.host["force"].copy()
    return least_norm(model, run_constraints(model, q, choosing=True)[0], force)


def least_norm(model: Model, w: Workspace, force: np.ndarray) -> np.ndarray:
    """The same where a workspace holds the configurations `q`, as `kept` how many rows are independent, and the rows
    `A`, unless it eliminated them block by block."""
    dependent = np.flatnonzero(w.host["kept"] < model.n_rows)
    if not len(dependent):
        return force.copy()
    if not w.host["A"].size:
        return _least(model, w.host["q"], force)
    scale = model.by_row(lambda one: one.dofs.scale, w.batch)
    scale = scale if scale.ndim == 1 else scale[dependent, None]
    A = row_results(model, w, "A", (w.batch,))[dependent] * scale
    A[..., model.prescribed.dof] = 0.0
    size, Q = np.linalg.eigh(A @ np.swapaxes(A, -1, -2))
    Q *= (size > _NOTHING * size[:, -1:])[:, None, :]
    least = force.copy()
    least[dependent] = (Q @ (np.swapaxes(Q, -1, -2) @ force[dependent, :, None]))[..., 0]
    return least


def warn_of_redundancy(model: Model, q: np.ndarray) -> None:
    """Say once for each model that rows of its loops depend on each other at q (nq,)."""
    if model.n_rows and "redundancy" not in model.cache:
        rank = model.cache["redundancy"] = _rank(model, q)
        if rank < model.n_rows:
            warnings.warn(
                f"robot {model.name!r}: of the {model.n_rows} rows of its loops {rank} are independent; these are "
                "kept, and the forces in the loops are those of least norm", RedundancyWarning, stacklevel=3
            )  # fmt: skip


def _rank(model: Model, q: np.ndarray) -> int:
    """How many rows of loops are independent at q (nq,)."""
    if solves_closed(model):
        w = run_closing(model, STILL, q[None], weights=model.dofs.scale)
        if not w.status.any():
            return int(w.host["kept"][0])
    return int(run_constraints(model, q, choosing=True)[0].host["kept"][0])


def _derivatives(model: Model, q: Any, v: Any, a: Any) -> tuple[Workspace, tuple[int, ...]]:
    """The workspace of the derivatives after a run without external forces."""
    w, lead = derivative_workspace(model, q, v, a, np.zeros(model.nu))
    run_residual_derivatives(model, w, 0.0, gravity=False, elastic=False, loads=False)
    w.raise_for_status()
    return w, lead


def _with_motions(model: Model, rows: np.ndarray, unit: float) -> np.ndarray:
    """Rows of loops behind the rows of prescribed coordinates."""
    held = np.zeros((*rows.shape[:-2], model.n_motions, model.nv))
    held[..., np.arange(model.n_motions), model.prescribed.dof] = unit
    return np.concatenate([held, rows], axis=-2)
