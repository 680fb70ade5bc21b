"""Mass matrix by composite inertias, in the base frame.

    M = Σ_α Σ_β S_αᵀ Mᶜ_max(α,β) S_β,     Mᶜ_α = Σ of M over the subtree of α                              (1)
    V_α = Σ_{β ≥ α} Mᶜ_β S_β              one inward pass over the columns of each node's subtree          (2)

Columns need no transport in the base frame, so V is a running sum. Rigid bodies on joints of one axis take the short
way of mass (4).
Source: Mathew 2025 (D58)-(D59), in the base frame.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers, Passing
from lissom.launch.composed import free_of_forces
from lissom.launch.over_models import for_models
from lissom.launch.workspace import call_of, filled
from lissom.lie import so3
from lissom.lie.types import kernel_options
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.model.tables import TablesStruct
from lissom.passes import traversal
from lissom.passes.base_frames import place_bases
from lissom.passes.column_tables import ColumnsStruct, Matrix, column_tables
from lissom.passes.scratch import STATUS_NOT_FINITE, ScratchStruct
from lissom.systems.mass import (
    MassBuffersStruct,
    RigidBuffersStruct,
    add_armature_rows,
    is_rigid,
    mass_buffers,
    rigid_buffers,
    rigid_mass,
    square_mass_matrix,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@free_of_forces
def mass_matrix_kernel(act: Acting) -> Any:
    """Kernel of the mass matrix."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def mass_matrix_alone(
        t: TablesStruct, s: ScratchStruct, x: ColumnsStruct, b: MassBuffersStruct, q: Matrix, M: Matrix, first: int
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, q, q)
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_pose(t, s, i, k, q)
        square_mass_matrix(t, s, x, b, i, M)
        traversal.inspect_result(s, i, M)

    return mass_matrix_alone


@free_of_forces
def rigid_mass_matrix_kernel(act: Acting) -> Any:
    """Kernel of the mass matrix of rigid bodies on joints of one axis each."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def rigid_mass_matrix_alone(
        t: TablesStruct, s: ScratchStruct, b: RigidBuffersStruct, q: Matrix, M: Matrix, first: int
    ):
        i = first + wp.tid()
        s.status[i] = 0
        if not traversal.is_finite(i, q):
            s.status[i] = STATUS_NOT_FINITE
        rigid_mass(t, i, q, s.origin, b.bodies, M)
        add_armature_rows(t, t.nv, i, so3.ONE, M)
        traversal.inspect_result(s, i, M)

    return rigid_mass_matrix_alone


def kernel_of(model: Model) -> Any:
    """The kernel of the mass matrix of a model."""
    return rigid_mass_matrix_kernel if is_rigid(model) else mass_matrix_kernel


def _make(model: Model, batch: int) -> Buffers:
    w = Buffers(model, batch, {"q": (model.nq,)}, {"M": (model.nv**2,)})
    kernel = kernel_of(model)
    if kernel is rigid_mass_matrix_kernel:
        buffers = [Passing(partial(rigid_buffers, model))]
    else:
        buffers = [column_tables(model), mass_buffers(model, batch)]
    w.record(kernel, [w.tables, w.scratch, *buffers, w.on_device["q"], w.on_device["M"]])
    return w


def mass_matrix(model: Model | ModelBatch, q: ArrayLike) -> np.ndarray:
    """Generalised mass matrix M(q) by composite inertias.

    Args:
        q: configuration, shape (..., nq).
    Returns:
        M, shape (..., nv, nv), symmetric; positive definite where every coordinate moves some mass.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: as inverse_dynamics. Cost: O(nodes · nv · coordinates of one link); of rigid bodies on
        joints of one axis each, a scalar product for each pair of joints one of which carries the other.
    Source: Mathew 2025 (D58)-(D59); SoRoSim 2022 eq. (25).
    """
    if type(model) is ModelBatch:
        return for_models(mass_matrix, locals(), "q")
    M = call_of(model, "mass_matrix", "M")(q)
    if M is not None:
        return M
    w, lead = filled(model, "mass_matrix", _make, ("q",), q)
    w.run()
    w.raise_for_status()
    if not lead:
        w.prepare("mass_matrix", ("q",), "M", model.nv, model.nv)
    return w.result("M", lead, model.nv, model.nv)
