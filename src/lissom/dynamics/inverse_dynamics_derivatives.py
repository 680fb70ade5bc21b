"""Exact derivatives of inverse dynamics with respect to q (in the tangent space), v and a, in two sweeps.

Outward, besides the motion, the columns of each node and their sums along its path from the base:

    S = D₀ Z,   Ṡ = D₁ Z + D₀ Ż,   S̈ = D₂ Z + 2 D₁ Ż + D₀ Z̈
    D₁ = ad_η D₀ + Ad_g Ṫ,   D₂ = ad_a D₀ + ad_η (D₁ + Ad_g Ṫ) + Ad_g T̈                                  (1)
    R, Q = Ṡ, S̈ for an EXP node;  ad_{η_p} S, (ad_{a_p} + ad_{η_p}²) S for a GROUP node                     (2)

Inward, with X̄ the sum of X over the path of node k, and sums over the subtree of each node α:

    ∂τ/∂a  rows  S_αᵀ Σ M J                                                                               (3)
    ∂τ/∂v  rows  S_αᵀ Σ (M (J̇ + R̄) + N J)                                                                (4)
    ∂τ/∂q  rows  S_αᵀ [Σ (M Q̄ + N R̄ + H J) + Σ_{β>α} adbar_{Fᶜ_β} S_β] + local_α                          (5)

N = adbar_{Mη} − ad_ηᵀ M − M ad_η; H is the change of −F_ext with the pose of the node; Fᶜ is the wrench summed over a
subtree. With T here the tangent operator of the child side, f = Ad_gᵀ Fᶜ, y = Tᵀ f and κ = √3 h²/12, the local term is

    local_α = Zᵀ ∂(Tᵀ f)/∂Ω Z + κ (Φ₁ᵀ adbar_y Φ₂ − Φ₂ᵀ adbar_y Φ₁),   zero for a GROUP node               (6)

The directional derivative takes two sweeps over vectors, without columns, at a small multiple of the cost of inverse
dynamics. δΩ, δΩ̇, δΩ̈ are the changes of Ω and its rates along (dq, dv, da), x the displacement of a node, w and z the
changes of its twist and acceleration, all in the base frame and summed along the path. Outward,

    e = Ad_g T δΩ,   e₁ = Ad_g d/dt(T δΩ),   e₂ = Ad_g d²/dt²(T δΩ)                                       (7)
    x = x_p + e,   w = w_p + e₁ + ad_η e,   z = z_p + e₂ + 2 ad_η e₁ + (ad_a + ad_η²) e                     (8)

For a spherical or free joint, S = Ad_g Φ and the η_p, a_p of its parent,

    x = x_p + S dq,   w = w_p + S dv + ad_{η_p} S dq
    z = z_p + S da + (ad_η + ad_{η_p}) S dv + (ad_{a_p} + ad_{η_p}²) S dq                                  (9)

Here w = Ad_g δη_B and z − ad_η w = Ad_g δη̇_B, η_B the body twist, so that the wrench of each node changes by

    δF = Ad_g⁻ᵀ (M δη̇_B − ad_{δη_B}ᵀ M η_B − ad_{η_B}ᵀ M δη_B) + H x                                     (10)

with H as above. Inward, with Fᶜ the wrench summed over a subtree, y = Tᵀ Ad_gᵀ Fᶜ:

    δFᶜ_α = δF_α + Σ_{β child of α} (δFᶜ_β + adbar_{Fᶜ_β} e_β)                                             (11)
    δy = Tᵀ Ad_gᵀ δFᶜ + ∂(Tᵀ f)/∂Ω δΩ at f = Ad_gᵀ Fᶜ,   δτ = Zᵀ δy + κ (Φ₁ᵀ adbar_y δξ₂ − Φ₂ᵀ adbar_y δξ₁)  (12)

Source: Mathew 2025 §4, eqs. (21)-(33), merged and moved to the base frame; for the directional derivative Boyer 2023
§VII.B, moved to the base frame and to Magnus intervals.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.dynamics.inverse_dynamics import AT_START
from lissom.dynamics.loads import Times, called_response, put_loads, python_responses
from lissom.errors import ShapeError
from lissom.forces.tendons import channel_sizes
from lissom.forces.term import change_by_responses
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers, Temporary, loop_buffers, motion_inputs
from lissom.launch.over_models import for_models, over_models
from lissom.launch.prepare import TableOptions
from lissom.launch.workspace import Workspace, filled_workspace, require_finite
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import columns, kinds, traversal
from lissom.passes.columns import Matrix, column_width
from lissom.passes.features import may_have_loops
from lissom.passes.scratch import Direction, DirectionStruct, NodeChange, Scratch, ScratchStruct, acting_flags
from lissom.passes.traversal import project
from lissom.robot.checks import time
from lissom.systems.bordered import LoopRowsStruct, choose_independent
from lissom.systems.couplings import add_coupling_forces, add_coupling_stiffness
from lissom.systems.derivative_sweeps import (
    DerivativeBuffersStruct,
    LoopDerivativesStruct,
    add_loop_derivatives,
    derivative_buffers,
    derivative_inward,
    derivative_outward,
)
from lissom.systems.loops import (
    add_function_forces,
    add_function_stiffness,
    add_loop_stiffness,
    add_loop_wrenches,
    loop_rates,
)
from lissom.systems.mass import add_armature_force, add_armature_rows
from lissom.systems.residual import MotionInputsStruct, recursive_newton_euler

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def residual_derivatives_kernel(act: Acting) -> Any:
    """Kernel of the derivatives of the residual."""
    add, respond, stiffen = act.add, act.respond, act.stiffen

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def derivatives(
        t: TablesStruct,
        s: ScratchStruct,
        b: DerivativeBuffersStruct,
        g: MotionInputsStruct,
        loops: LoopRowsStruct,
        rates: LoopDerivativesStruct,
        tau: Matrix,
        dq: Matrix,
        dv: Matrix,
        da: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, g.q, g.v, g.a)
        G = g.gravity[0]
        channel_sizes(t, s, i, g.u)
        recursive_newton_euler(t, s, i, g.q, g.v, g.a, G, g.load[i], g.terms[0], add)
        add_loop_wrenches(t, s, i, g.q, loops.force, loops.gap)
        columns.clear_rows(t.nv, b.x.width, i, dq)
        columns.clear_rows(t.nv, b.x.width, i, dv)
        columns.clear_rows(t.nv, b.x.width, i, da)
        project(t, s, i, tau)
        add_coupling_forces(t, s, i, g.q, loops.force, loops.gap, tau)
        add_function_forces(t, s, i, loops.force, tau)
        derivative_outward(t, s, b, i, g.v, g.a, se3.join(vec3(), -G), g.load[i], g.terms[0], respond, dq)
        add_loop_stiffness(t, s, i, loops.force, b.H)
        if may_have_loops():
            acc_base = se3.join(vec3(), -G)
            loop_rates(t, s, i, g.q, g.v, g.a, acc_base, loops.rate, loops.acceleration)
            add_loop_derivatives(t, s, b, i, g.q, g.v, g.a, acc_base, loops, rates)
            choose_independent(b.x, i, loops)
        derivative_inward(t, s, b, i, g.v, g.a, loops.force, dq, dv, da)
        add_armature_rows(t, b.x.width, i, so3.ONE, da)
        add_coupling_stiffness(t, i, b.x.width, g.q, loops.force, dq)
        add_function_stiffness(t, s, b.x, i, b.sums.J, loops.force, dq)
        stiffen(t, s, b.x, i, g.q, g.v, b.no_move, so3.ONE, so3.ZERO, g.terms[0], dq)
        stiffen(t, s, b.x, i, g.q, g.v, b.no_move, so3.ZERO, so3.ONE, g.terms[0], dv)
        traversal.inspect_result(s, i, dq)
        traversal.inspect_result(s, i, dv)
        traversal.inspect_result(s, i, da)

    return derivatives


_FAMILY = "inverse_dynamics_derivatives"  # of prepared calls
_TABLE_OPTIONS = TableOptions(derivatives=True)
_APPROXIMATE = _TABLE_OPTIONS._replace(approximate=True)


def residual_derivatives_buffers(model: Model, batch: int, *, anchored: bool = False) -> Buffers:
    """Buffers with the outputs "tau", "dq", "dv" and "da", with anchors for each instance if `anchored`."""
    square = (model.nv * column_width(model),)
    inputs = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,), "u": (model.nu,)}
    w = Buffers(
        model,
        batch,
        inputs,
        {"tau": (model.nv,), "dq": square, "dv": square, "da": square},
        table_options=_TABLE_OPTIONS,
    )
    w.gravity()
    w.buffer("load", (batch, model.n_load_rows), vec6)
    w.buffer("terms", (1,), wp.int32, common=True)
    tables = w.anchored_tables() if anchored else w.tables
    record_residual_derivatives(w, model, batch, tables, loop_buffers(w, model, batch))
    return w


def record_residual_derivatives(
    w: Buffers, model: Model, batch: int, tables: TablesStruct, loops: LoopRowsStruct
) -> None:
    """Record the launch that computes "tau", "dq", "dv" and "da" from "q", "v", "a", "u", "terms" and the forces of
    loops."""
    rates = LoopDerivativesStruct()
    for name in LoopDerivativesStruct.vars:
        setattr(rates, name, w.buffer(name, (batch, model.n_rows * column_width(model))))
    given = [tables, w.scratch, Temporary(partial(derivative_buffers, model)), motion_inputs(w), loops, rates]
    w.record(residual_derivatives_kernel, [*given, *(w.on_device[name] for name in ("tau", "dq", "dv", "da"))])


def run_residual_derivatives(
    model: Model,
    w: Workspace,
    t: Times,
    *,
    gravity: bool = True,
    elastic: bool = True,
    loads: bool = True,
    inputs: bool = False,
    factor: float = 1.0,
    force: Any = 0.0,
    approximate: bool = False,
) -> None:
    """Compute the derivatives of ID(q, v, a) − B(q) u − Aᵀ λ with a filled workspace.

    The results are `dq`, `dv` and `da`; for loops `gap`, `rate`, `acceleration`, `A`, `A_q`, the arrays of
    LoopDerivatives, and the independent rows for `independent_rows`.

    Args:
        t: time, or a time for each state [s]. gravity, elastic, loads, inputs: the terms that act.
        factor: of gravity and loads. force: λ of loops. approximate: as in `residual_derivatives`.
    """
    w.host["force"][:] = force
    w.put_gravity(gravity, factor)
    w.host["terms"][0] = acting_flags(elastic, loads, inputs)
    if loads:
        put_loads(model, w, t, factor)
    w.run(_APPROXIMATE if approximate else _TABLE_OPTIONS)


def residual_derivatives(
    model: Model,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    u: np.ndarray,
    t: Times,
    factor: float = 1.0,
    force: Any = 0.0,
    *,
    approximate: bool = False,
    anchors: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Workspace]:
    """Derivatives of the residual ID(q, v, a) − B(q) u − Aᵀ λ by q (tangent), v and a at states (..., n).

    Args:
        factor: of gravity, loads and u. force: λ of loops. anchors: as in `derivative_workspace`.
        approximate: for Newton's method: may omit second derivatives of the columns of material points.
    Returns:
        dq, dv, da, each (..., nv, nv), and the workspace with the constraint rows. For prescribed coordinates the rows
        and columns are those of the identity in dq and da, zero in dv.
    """
    w, lead = derivative_workspace(model, q, v, a, factor * u, anchors)
    run_residual_derivatives(model, w, t, inputs=True, factor=factor, force=force, approximate=approximate)
    dq, dv, da = square_results(model, w, lead)
    if model.python_forces:
        by_q, by_v = python_responses(model, w.host["q"], w.host["v"], w.host["u"], t, factor)
        dq, dv = dq + by_q.reshape(dq.shape), dv + by_v.reshape(dv.shape)
    for k in model.prescribed.dof:
        for matrix, diagonal in ((dq, 1.0), (dv, 0.0), (da, 1.0)):
            matrix[..., k, :], matrix[..., k], matrix[..., k, k] = 0.0, 0.0, diagonal
    return dq, dv, da, w


def derivative_workspace(
    model: Model, q: Any, v: Any, a: Any, u: Any, anchors: np.ndarray | None = None
) -> tuple[Workspace, tuple[int, ...]]:
    """The workspace of the derivatives with q, v, a and u in its buffers, and the leading axes.

    States (n, ...) may have `anchors` (n, n_pairs, 6) each; None: those of the model.
    """
    if anchors is None or not anchors.size:
        return filled_workspace(
            model, "residual_derivatives", residual_derivatives_buffers, ("q", "v", "a", "u"), q, v, a, u
        )
    make = partial(residual_derivatives_buffers, anchored=True)
    w, lead = filled_workspace(model, "residual_derivatives with anchors", make, ("q", "v", "a", "u"), q, v, a, u)
    w.put_anchors(anchors)
    return w, lead


def row_results(model: Model, w: Workspace, name: str, lead: tuple[int, ...] = ()) -> np.ndarray:
    """A copy of the array `name` with a row for each row of the loops, shape (..., n_rows, nv)."""
    return w.result(name, lead, model.n_rows, column_width(model))[..., : model.nv]


def square_results(model: Model, w: Workspace, lead: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Copies of `dq`, `dv` and `da`, each (..., nv, nv)."""
    n, width = model.nv, column_width(model)
    dq, dv, da = (w.result(name, lead, n, width)[..., :n] for name in ("dq", "dv", "da"))
    return dq, dv, da


def inverse_dynamics_derivatives(
    model: Model | ModelBatch,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    gravity: bool = True,
    elastic: bool = True,
    loads: bool = True,
    t: float = AT_START,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exact derivatives of inverse_dynamics.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]. v, a: velocity and acceleration, shape (..., nv).
        gravity, elastic, loads, t: as inverse_dynamics.
    Returns:
        (dtau_dq, dtau_dv, dtau_da), each (..., nv, nv), the trailing axis the input; dtau_dq is along the tangent space
        of `integrate`, with v and a held fixed.
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: exact derivatives of the discrete model, to rounding. Cost: O(nodes · nv · coordinates of one link).
    Source: Mathew 2025 §4, eqs. (21)-(33), merged as in (3)-(6) of this module.
    """
    if t is not AT_START:
        time(t)
    known = model.cache.get((_FAMILY, gravity, elastic, loads, get_ident()))  # as `prepare` keeps it
    if known is not None:
        found = known.call(q, v, a)
        if found is not None:
            return found
    if isinstance(model, ModelBatch):
        given = {"model": model, "q": q, "v": v, "a": a, "gravity": gravity, "elastic": elastic, "loads": loads, "t": t}
        return for_models(inverse_dynamics_derivatives, given, "q", "v", "a")
    w, lead = derivative_workspace(model, q, v, a, np.zeros(model.nu))
    run_residual_derivatives(model, w, t, gravity=gravity, elastic=elastic, loads=loads)
    w.raise_for_status()
    dq, dv, da = square_results(model, w, lead)
    if loads and model.forces.called:
        found = [called_response(model, *state, t) for state in zip(w.host["q"], w.host["v"])]
        by_q, by_v = (np.array(x).reshape(dq.shape) for x in zip(*found))
        dq, dv = dq + by_q, dv + by_v
        require_finite(dq, dv)
    elif not lead and not (loads and model.n_load_rows):
        shapes = 3 * [(model.nv, model.nv)]
        w.prepare(_FAMILY, ("q", "v", "a"), ("dq", "dv", "da"), *shapes, options=(gravity, elastic, loads))
    return dq, dv, da


@wp.func
def outward_change(
    t: Tables, s: Scratch, d: Direction, i: int, k: int, q: Matrix, v: Matrix, a: Matrix, acc_base: vec6
):
    """x, w and z of node k by (8) or (9), from its motion in s."""
    parent = t.node[k].parent
    e, w, z = kinds.change(t, s, d, i, k, q, v, a, acc_base)
    x = e
    if parent >= 0:
        x += d.node[i, parent].x
        w += d.node[i, parent].w
        z += d.node[i, parent].z
    d.node[i, k].e = e
    d.node[i, k].x = x
    d.node[i, k].w = w
    d.node[i, k].z = z


@wp.func
def inward_change(t: Tables, s: Scratch, d: Direction, i: int, k: int, tau: Matrix):
    """Add the wrench of node k and its change (11) to its parent, and project the change by (12)."""
    F = s.node[i, k].F
    dF = d.node[i, k].F
    parent = t.node[k].parent
    if parent >= 0:
        s.node[i, parent].F = s.node[i, parent].F + F
        d.node[i, parent].F = d.node[i, parent].F + dF + se3.coad(d.node[i, k].e, F)
    kinds.project_change(t, s, d, i, k, F, dF, tau)


def inverse_dynamics_tangent_kernel(act: Acting) -> Any:
    """Kernel of the directional derivative."""
    add, respond, change = act.add, act.respond, act.change

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def tangent(
        t: TablesStruct,
        s: ScratchStruct,
        d: DirectionStruct,
        q: Matrix,
        v: Matrix,
        a: Matrix,
        gravity: wp.array(dtype=vec3),
        load: wp.array2d(dtype=vec6),
        terms: wp.array(dtype=wp.int32),
        H: wp.array2d(dtype=mat6),
        tau: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, d.dq, d.dv, d.da)
        direction_status = s.status[i]
        traversal.inspect(t, s, i, q, v, a)
        if s.status[i] == 0:
            s.status[i] = direction_status
        recursive_newton_euler(t, s, i, q, v, a, gravity[0], load[i], terms[0], add)
        for k in range(t.n_dynamic):
            outward_change(t, s, d, i, k, q, v, a, se3.join(vec3(), -gravity[0]))
            kinds.newton_euler_change(t, s, d, i, k, v, a)
        if load.shape[1] > 0:  # without rows of loads no wrench of a term depends on the state
            for k in range(t.n_dynamic):
                H[i, k] = mat6()
            respond(t, s, i, gravity[0], load[i], terms[0], H)
            change_by_responses(t, s, i, H, d.node)
        for j in range(t.nv):
            tau[i, j] = so3.ZERO
        for step in range(t.n_dynamic):
            inward_change(t, s, d, i, t.n_dynamic - 1 - step, tau)
        change(t, s, i, q, v, d.dq, d.dv, terms[0], tau)
        add_armature_force(t, i, d.da, tau)
        traversal.inspect_result(s, i, tau)

    return tangent


def _make_tangent(model: Model, batch: int) -> Buffers:
    inputs = {"q": (model.nq,), **{name: (model.nv,) for name in ("v", "a", "dq", "dv", "da")}}
    w = Buffers(model, batch, inputs, {"tau": (model.nv,)}, table_options=TableOptions(derivatives=True))
    on = w.on_device
    d = DirectionStruct()
    d.dq, d.dv, d.da = on["dq"], on["dv"], on["da"]
    d.node = wp.zeros((batch, model.n_nodes), dtype=NodeChange, device=model.device)
    gravity = w.gravity()
    load = w.buffer("load", (batch, model.n_load_rows), vec6)
    terms = w.buffer("terms", (1,), wp.int32, common=True)
    H = wp.zeros((batch, model.n_dynamic), dtype=mat6, device=model.device)
    state = [w.tables, w.scratch, d, on["q"], on["v"], on["a"]]
    w.record(inverse_dynamics_tangent_kernel, [*state, gravity, load, terms, H, on["tau"]])
    return w


@over_models("q", "v", "a", "dq", "dv", "da", batched=True)
def inverse_dynamics_tangent(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    dq: ArrayLike | None = None,
    dv: ArrayLike | None = None,
    da: ArrayLike | None = None,
    *,
    gravity: bool = True,
    elastic: bool = True,
    loads: bool = True,
    t: float = 0.0,
) -> np.ndarray:
    """Directional derivative of inverse_dynamics, by two sweeps.

        δτ = ∂τ/∂q dq + ∂τ/∂v dv + ∂τ/∂a da

    One direction costs two to three inverse dynamics, for any nv. For many directions inverse_dynamics_derivatives is
    cheaper.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]. v, a: velocity and acceleration, shape (..., nv).
        dq, dv, da: the direction, each of shape (..., nv) or None for zero; dq is a tangent vector of `integrate`, and
            v and a are held fixed along it. Leading axes broadcast with those of q, v and a.
        gravity, elastic, loads, t: as inverse_dynamics.
    Returns:
        dtau, shape (..., nv) [N·m, N, or N·m² and N·m for strain coordinates].
    Raises:
        ShapeError: the argument, the expected and the received shape, or an argument that is not finite.
    Accuracy: exact derivative of the discrete model, to rounding. Cost: O(nodes).
    Source: Boyer 2023 §VII.B, in the base frame.
    """
    zero = np.zeros(model.nv)
    directions = ("dq", "dv", "da")
    given = [zero if x is None else x for x in (dq, dv, da)]
    w, lead = filled_workspace(
        model, "inverse_dynamics_tangent", _make_tangent, ("q", "v", "a", *directions), q, v, a, *given
    )
    w.put_gravity(gravity)
    w.host["terms"][0] = acting_flags(elastic, loads)
    if loads:
        put_loads(model, w, t)
    w.run()
    if w.status.any():
        for name in directions:
            if not np.isfinite(w.host[name]).all():
                raise ShapeError(f"{name}: must be finite, got NaN or infinity")
        w.raise_for_status()
    tau = w.result("tau", lead, model.nv)
    if loads and model.forces.called:
        found = [called_response(model, *state, t) for state in zip(w.host["q"], w.host["v"])]
        moved = [by_q @ dq + by_v @ dv for (by_q, by_v), dq, dv in zip(found, w.host["dq"], w.host["dv"])]
        tau = tau + np.array(moved).reshape(tau.shape)
    return tau
