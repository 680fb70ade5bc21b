"""Coriolis matrix whose C(q, v) v is the velocity force and for which Ṁ − 2C is skew.

    C = Σ Jᵀ (M J̇ + Y J),   Y = ½ (adbar_{Mη} − ad_ηᵀ M − M ad_η),   adbar_f x = −ad_xᵀ f                  (1)

In the base frame; the body-frame form (docs/theory.md) has the body's J̇ = J̇ − ad_η J. With composite Mᶜ and Yᶜ, the
entry of a pair (α, β) needs only its own columns:

    β >= α:  S_αᵀ (Mᶜ_β Ṡ_β + Yᶜ_β S_β)          β < α:  (Mᶜ_α S_α)ᵀ Ṡ_β + (Yᶜ_αᵀ S_α)ᵀ S_β                    (2)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.composed import free_of_forces
from lissom.launch.over_models import over_models
from lissom.launch.prepare import Wanted
from lissom.launch.workspace import call_of, filled
from lissom.lie import so3
from lissom.lie.spatial import rate_of_momentum
from lissom.lie.types import kernel_options, mat6, vec6
from lissom.model.model import Model
from lissom.model.tables import TablesStruct
from lissom.passes import columns, deforming_derivatives, kinds, traversal
from lissom.passes.base_frames import place_bases
from lissom.passes.column_tables import ColumnsStruct, Matrix, column_tables, column_width
from lissom.passes.rare_kinds import is_body
from lissom.passes.scratch import ScratchStruct
from lissom.systems.mass import MassBuffersStruct, mass_buffers, sum_over_subtrees

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@free_of_forces
def coriolis_kernel(act: Acting) -> Any:
    """Kernel of the Coriolis matrix."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def coriolis(
        t: TablesStruct,
        s: ScratchStruct,
        x: ColumnsStruct,
        b: MassBuffersStruct,
        Y: wp.array2d(dtype=mat6),
        S_dot: Matrix,
        P: Matrix,
        Q: Matrix,
        lower: Matrix,
        q: Matrix,
        v: Matrix,
        C: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, v)
        place_bases(t, s, i, q)
        columns.clear_rows(t.nv, x.width, i, b.half)
        columns.clear_rows(t.nv, x.width, i, lower)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, v, vec6())
            traversal.base_inertia(t, s, b.composite, i, k)
            if is_body(t.node[k].kind):
                Y[i, k] = deforming_derivatives.own_coriolis(t, s, i, k, b.composite[i, k])
            else:
                Y[i, k] = so3.HALF * rate_of_momentum(b.composite[i, k], s.node[i, k].eta)
            kinds.motion_columns(t, s, x, i, k, b.S)
            kinds.rate_columns(t, s, x, i, k, q, v, S_dot)
        columns.clear_sums(x, i, b.V)
        columns.clear_sums(x, i, P)
        columns.clear_sums(x, i, Q)
        sum_over_subtrees(t, i, b.composite)
        sum_over_subtrees(t, i, Y)
        for step in range(t.n_dynamic):
            k = t.n_dynamic - 1 - step
            v0 = t.node[k].v_start
            v1 = t.node[k].v_stop
            M = b.composite[i, k]
            columns.fold_rows(x, x.subtree_start, x.subtree_range, v0, v1, i, k, S_dot, P, lower)
            columns.fold_rows(x, x.subtree_start, x.subtree_range, v0, v1, i, k, b.S, Q, lower)
            columns.add_product(x, M, v0, v1, i, k, b.S, P)
            columns.add_product(x, wp.transpose(Y[i, k]), v0, v1, i, k, b.S, Q)
            columns.add_product(x, M, v0, v1, i, k, S_dot, b.V)
            columns.add_product(x, Y[i, k], v0, v1, i, k, b.S, b.V)
            columns.fold_rows(x, x.subtree_start, x.subtree_range, v0, v1, i, k, b.S, b.V, b.half)
            if is_body(t.node[k].kind):
                deforming_derivatives.couple_coriolis(t, s, x, i, k, b.V, P, Q, b.half)
            columns.pass_to_parent(x, x.subtree_start, x.subtree_range, t.node[k].parent, i, k, b.V)
            columns.pass_to_parent(x, x.subtree_start, x.subtree_range, t.node[k].parent, i, k, P)
            columns.pass_to_parent(x, x.subtree_start, x.subtree_range, t.node[k].parent, i, k, Q)
        columns.add_transposed(t.nv, x.width, i, b.half, lower, C)
        traversal.inspect_result(s, i, C)

    return coriolis


def _make(model: Model, batch: int) -> Buffers:
    width, inputs = column_width(model), {"q": (model.nq,), "v": (model.nv,)}
    w = Buffers(model, batch, inputs, {"C": (model.nv * width,)}, wanted=Wanted(differentiates=True))
    x, b = column_tables(model), mass_buffers(model, batch)
    Y = wp.zeros((batch, model.n_dynamic), dtype=mat6, device=model.device)
    size = (batch, 6 * model.n_dynamic * width)
    work = [wp.zeros(size, dtype=wp.float64, device=model.device) for _ in range(3)]
    lower = wp.zeros((batch, model.nv * width), dtype=wp.float64, device=model.device)
    d = w.on_device
    w.record(coriolis_kernel, [w.tables, w.scratch, x, b, Y, *work, lower, d["q"], d["v"], d["C"]])
    return w


@over_models("q", "v", together=True)
def coriolis_matrix(model: Model, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Coriolis matrix C(q, v): C v is the force of velocities, and Ṁ − 2C is skew along `integrate`.

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
    Returns:
        C, shape (..., nv, nv).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: as inverse_dynamics. Cost: about three mass matrices.
    Source: SoRoSim 2022 eq. (26), from which it differs by a matrix that vanishes on v.
    """
    C = call_of(model, "coriolis_matrix", "C")(q, v)
    if C is not None:
        return C[:, : model.nv]
    w, lead = filled(model, "coriolis_matrix", _make, ("q", "v"), q, v)
    w.run()
    w.raise_for_status()
    if not lead:
        w.prepare("coriolis_matrix", ("q", "v"), "C", model.nv, column_width(model))
    return w.result("C", lead, model.nv, column_width(model))[..., : model.nv]
