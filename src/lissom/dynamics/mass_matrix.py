"""Mass matrix, bias force and Coriolis matrix by composite inertias, in the base frame.

    M = Σ_α Σ_β S_αᵀ Mᶜ_max(α,β) S_β,     Mᶜ_α = Σ of M over the subtree of α                              (1)
    V_α = Σ_{β ≥ α} Mᶜ_β S_β              one inward pass over the columns of each node's subtree          (2)

Columns need no transformation between nodes in the base frame, so V is a subtree sum. Rigid bodies on joints of one
axis use the shorter formula (4) of mass. `mass_inverse_dynamics` computes the motion of the nodes once, for M and for
h of

    M(q) a + h(q, v) = τ = ID(q, v, a),   h = ID(q, v, 0)                                                 (3)

The Coriolis matrix C has the velocity force C(q, v) v, and Ṁ − 2C is skew:

    C = Σ Jᵀ (M J̇ + Y J),   Y = ½ (adbar_{Mη} − ad_ηᵀ M − M ad_η),   adbar_f x = −ad_xᵀ f                  (4)

The body-frame form (docs/theory.md) has the body's J̇ = J̇ − ad_η J. With composite Mᶜ and Yᶜ, the entry of a pair
(α, β) needs only its own columns:

    β >= α:  S_αᵀ (Mᶜ_β Ṡ_β + Yᶜ_β S_β)          β < α:  (Mᶜ_α S_α)ᵀ Ṡ_β + (Yᶜ_αᵀ S_α)ᵀ S_β                    (5)

Source: Mathew 2025 (D58)-(D59), in the base frame; Pustina 2025, Algorithm 3 (MIID) and its MID.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, final

import numpy as np
import warp as wp

from lissom.dynamics.loads import put_loads
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers, Temporary, motion_inputs
from lissom.launch.compiling import free_of_forces, without_derivatives
from lissom.launch.over_models import for_models, over_models
from lissom.launch.prepare import TableOptions
from lissom.launch.workspace import call_of, filled_workspace, require_finite_rows
from lissom.lie import so3
from lissom.lie.types import kernel_options, mat6, vec6
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import columns, kinds, traversal
from lissom.passes.columns import Columns, ColumnsStruct, Matrix, column_tables, column_width
from lissom.passes.scratch import STATUS_NOT_FINITE, Scratch, ScratchStruct, acting_flags
from lissom.passes.traversal import place_bases
from lissom.robot import formatting
from lissom.robot.checks import time
from lissom.systems.mass import (
    MassBuffers,
    MassBuffersStruct,
    RigidBuffersStruct,
    add_armature_rows,
    is_rigid,
    mass_buffers,
    mass_matrix_sweep,
    rigid_buffers,
    rigid_mass,
    square_mass_matrix,
    sum_over_subtrees,
)
from lissom.systems.residual import MotionInputs, MotionInputsStruct, recursive_newton_euler

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@free_of_forces
@without_derivatives
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
    """The compiled function (kernel) that computes the mass matrix of a model."""
    return rigid_mass_matrix_kernel if is_rigid(model) else mass_matrix_kernel


def mass_matrix_buffers(model: Model, batch: int) -> Buffers:
    """Buffers with the output "M", (nv²,)."""
    w = Buffers(model, batch, {"q": (model.nq,)}, {"M": (model.nv**2,)})
    kernel = kernel_of(model)
    if kernel is rigid_mass_matrix_kernel:
        buffers = [Temporary(partial(rigid_buffers, model))]
    else:
        buffers = [column_tables(model), mass_buffers(model, batch)]
    w.record(kernel, [w.tables, w.scratch, *buffers, w.on_device["q"], w.on_device["M"]])
    return w


def mass_matrix(model: Model | ModelBatch, q: ArrayLike) -> np.ndarray:
    """Generalised mass matrix M(q) by composite inertias.

    Args:
        q: configuration, shape (..., nq).
    Returns:
        M, shape (..., nv, nv), symmetric; positive definite if every coordinate moves some mass.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: as inverse_dynamics. Cost: O(nodes · nv · coordinates of one link); for rigid bodies on joints of one axis
        each, a scalar product for each pair of joints of which one is an ancestor of the other.
    Source: Mathew 2025 (D58)-(D59); SoRoSim 2022 eq. (25).
    """
    known = model.cache.get(("mass_matrix", get_ident()))  # as `prepare` keeps it
    if known is not None:
        M = known.call(q)
        if M is not None:
            return M
    if isinstance(model, ModelBatch):
        return for_models(mass_matrix, {"model": model, "q": q}, "q")
    w, lead = filled_workspace(model, "mass_matrix", mass_matrix_buffers, ("q",), q)
    w.run()
    w.raise_for_status()
    if not lead:
        w.prepare("mass_matrix", ("q",), ("M",), (model.nv, model.nv))
    return w.result("M", lead, model.nv, model.nv)


@final
@formatting.in_one_line
@dataclass(frozen=True)
class MassAndBias:
    """M, shape (..., nv, nv), and h and τ, shape (..., nv), of the equation of motion M a + h = τ.

    Fields:
        mass: M, symmetric. bias: h, the force of gravity, velocities, elasticity and loads.
        force: τ of the given acceleration; without one it is h.
    """

    mass: np.ndarray
    bias: np.ndarray
    force: np.ndarray


@wp.func
def put_mass_and_bias(
    t: Tables, s: Scratch, x: Columns, b: MassBuffers, i: int, g: MotionInputs, M: Matrix, bias: Matrix,
    add: wp.Function, force: wp.Function,
):  # fmt: skip
    """M and h of instance i, by the functions `add` and `force` of the terms that act."""
    traversal.inspect(t, s, i, g.q, g.v, g.a)
    recursive_newton_euler(t, s, i, g.q, g.v, g.a, g.gravity[0], g.load[i], g.terms[0], add)
    traversal.project(t, s, i, bias)
    force(t, s, i, g.q, g.v, g.terms[0], bias)
    mass_matrix_sweep(t, s, x, b, i, M)
    traversal.inspect_result(s, i, bias)


@without_derivatives
def mass_inverse_dynamics_kernel(act: Acting) -> Any:
    """Kernel of M and h."""
    add, force = act.add, act.force

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def mass_and_bias(
        t: TablesStruct,
        s: ScratchStruct,
        x: ColumnsStruct,
        b: MassBuffersStruct,
        g: MotionInputsStruct,
        M: Matrix,
        bias: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        put_mass_and_bias(t, s, x, b, i, g, M, bias, add, force)

    return mass_and_bias


def _make_mass_and_bias(model: Model, batch: int) -> Buffers:
    inputs = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,), "no_acceleration": (model.nv,)}
    outputs = {"bias": (model.nv,), "M": (model.nv * column_width(model),)}
    w = Buffers(model, batch, inputs, outputs, table_options=TableOptions(only_along_v=True))
    w.gravity()
    w.buffer("load", (batch, model.n_load_rows), vec6)
    w.buffer("terms", (1,), wp.int32, common=True)
    tables = [w.tables, w.scratch, column_tables(model), mass_buffers(model, batch)]
    results = [w.on_device[name] for name in ("M", "bias")]
    w.record(mass_inverse_dynamics_kernel, [*tables, motion_inputs(w, a="no_acceleration"), *results])
    return w


def mass_inverse_dynamics(
    model: Model | ModelBatch,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike | None = None,
    *,
    gravity: bool = True,
    elastic: bool = True,
    loads: bool = True,
    t: float = 0.0,
) -> MassAndBias:
    """Mass matrix and inverse dynamics in one call, which is faster than two.

        τ = M(q) a + h(q, v)

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]. v: velocity, shape (..., nv) [per second].
        a: acceleration, shape (..., nv) [per second squared]; None is zero.
        gravity, elastic, loads, t: the terms of h, as in inverse_dynamics. Without all three, h is the force c of
            velocities.
    Returns:
        MassAndBias: M, shape (..., nv, nv), h, shape (..., nv), and τ, shape (..., nv).
    Raises:
        ShapeError: an argument has a wrong shape, or a number that is not finite.
    Accuracy: as inverse_dynamics and mass_matrix.
    Source: Pustina 2025, Algorithm 3 (MIID, without gravity, elasticity and loads) and §5.2 (MID, with them).
    """
    time(t)
    if isinstance(model, ModelBatch):
        return for_models(mass_inverse_dynamics, locals(), "q", "v", "a")
    given = {"q": q, "v": v} | ({} if a is None else {"a": a})
    w, lead = filled_workspace(model, "mass_inverse_dynamics", _make_mass_and_bias, tuple(given), *given.values())
    w.put_gravity(gravity)
    w.host["terms"][0] = acting_flags(elastic, loads)
    if loads:
        put_loads(model, w, t)
    w.run()
    w.raise_for_status()
    mass = w.result("M", lead, model.nv, column_width(model))[..., : model.nv]
    bias = w.result("bias", lead, model.nv)
    if a is None:
        return MassAndBias(mass, bias, bias.copy())
    acceleration = w.result("a", lead, model.nv)
    require_finite_rows(a=acceleration)
    return MassAndBias(mass, bias, bias + (mass @ acceleration[..., None])[..., 0])  # (3)


@wp.struct
class CoriolisBuffersStruct:
    """Buffers of the Coriolis matrix. Y: 6x6 matrices of nodes. S_dot: columns Ṡ. P, Q: subtree sums. lower: rows of
    the lower triangle."""

    Y: wp.array2d(dtype=mat6)
    S_dot: Matrix
    P: Matrix
    Q: Matrix
    lower: Matrix


@free_of_forces
def coriolis_kernel(act: Acting) -> Any:
    """Kernel of the Coriolis matrix."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def coriolis(
        t: TablesStruct,
        s: ScratchStruct,
        x: ColumnsStruct,
        b: MassBuffersStruct,
        c: CoriolisBuffersStruct,
        q: Matrix,
        v: Matrix,
        C: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, v)
        place_bases(t, s, i, q)
        columns.clear_rows(t.nv, x.width, i, b.half)
        columns.clear_rows(t.nv, x.width, i, c.lower)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, v, vec6())
            b.composite[i, k] = kinds.spatial_inertia(t, s, i, k)
            c.Y[i, k] = kinds.coriolis(t, s, i, k, b.composite[i, k])
            kinds.motion_columns(t, s, x, i, k, b.S)
            kinds.rate_columns(t, s, x, i, k, q, v, c.S_dot)
        columns.clear_sums(x, i, b.V)
        columns.clear_sums(x, i, c.P)
        columns.clear_sums(x, i, c.Q)
        sum_over_subtrees(t, i, b.composite)
        sum_over_subtrees(t, i, c.Y)
        for step in range(t.n_dynamic):
            k = t.n_dynamic - 1 - step
            v0 = t.node[k].v_start
            v1 = t.node[k].v_stop
            M = b.composite[i, k]
            columns.fold_rows(x, x.subtree_start, x.subtree_range, v0, v1, i, k, c.S_dot, c.P, c.lower)
            columns.fold_rows(x, x.subtree_start, x.subtree_range, v0, v1, i, k, b.S, c.Q, c.lower)
            columns.add_product(x, M, v0, v1, i, k, b.S, c.P)
            columns.add_product(x, wp.transpose(c.Y[i, k]), v0, v1, i, k, b.S, c.Q)
            columns.add_product(x, M, v0, v1, i, k, c.S_dot, b.V)
            columns.add_product(x, c.Y[i, k], v0, v1, i, k, b.S, b.V)
            columns.fold_rows(x, x.subtree_start, x.subtree_range, v0, v1, i, k, b.S, b.V, b.half)
            kinds.couple_coriolis(t, s, x, i, k, b.V, c.P, c.Q, b.half)
            columns.pass_to_parent(x, x.subtree_start, x.subtree_range, t.node[k].parent, i, k, b.V)
            columns.pass_to_parent(x, x.subtree_start, x.subtree_range, t.node[k].parent, i, k, c.P)
            columns.pass_to_parent(x, x.subtree_start, x.subtree_range, t.node[k].parent, i, k, c.Q)
        columns.add_transposed(t.nv, x.width, i, b.half, c.lower, C)
        traversal.inspect_result(s, i, C)

    return coriolis


def _make_coriolis(model: Model, batch: int) -> Buffers:
    width, inputs = column_width(model), {"q": (model.nq,), "v": (model.nv,)}
    w = Buffers(model, batch, inputs, {"C": (model.nv * width,)}, table_options=TableOptions(derivatives=True))
    c, d = CoriolisBuffersStruct(), w.on_device
    c.Y = wp.zeros((batch, model.n_dynamic), dtype=mat6, device=model.device)
    for name in ("S_dot", "P", "Q", "lower"):
        size = model.nv * width if name == "lower" else 6 * model.n_dynamic * width
        setattr(c, name, wp.zeros((batch, size), dtype=wp.float64, device=model.device))
    tables = [w.tables, w.scratch, column_tables(model), mass_buffers(model, batch)]
    w.record(coriolis_kernel, [*tables, c, d["q"], d["v"], d["C"]])
    return w


@over_models("q", "v", batched=True)
def coriolis_matrix(model: Model, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Coriolis matrix C(q, v): C v is the velocity force, and Ṁ − 2C is skew along `integrate`.

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
    Returns:
        C, shape (..., nv, nv).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: as inverse_dynamics. Cost: about three mass matrices.
    Source: SoRoSim 2022 eq. (26), from which it differs by a matrix that vanishes on v.
    """
    C = call_of(model, "coriolis_matrix")(q, v)
    if C is not None:
        return C
    w, lead = filled_workspace(model, "coriolis_matrix", _make_coriolis, ("q", "v"), q, v)
    w.run()
    w.raise_for_status()
    if not lead:
        w.prepare("coriolis_matrix", ("q", "v"), ("C",), (model.nv, model.nv))
    return w.result("C", lead, model.nv, column_width(model))[..., : model.nv]
