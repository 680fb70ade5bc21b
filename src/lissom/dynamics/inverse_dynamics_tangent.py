"""Directional derivative of inverse dynamics by two sweeps of vectors: no columns, at a small multiple of its cost.

Outward, with δΩ, δΩ̇, δΩ̈ the changes of Ω and its rates along (dq, dv, da), and x the displacement of a node, w and z
what its twist and acceleration change by, all in the base frame and summed along the path:

    e = Ad_g T δΩ,   e₁ = Ad_g d/dt(T δΩ),   e₂ = Ad_g d²/dt²(T δΩ)                                       (1)
    x = x_p + e,   w = w_p + e₁ + ad_η e,   z = z_p + e₂ + 2 ad_η e₁ + (ad_a + ad_η²) e                     (2)

For a spherical or free joint, S = Ad_g Φ and the η_p, a_p of its parent,

    x = x_p + S dq,   w = w_p + S dv + ad_{η_p} S dq
    z = z_p + S da + (ad_η + ad_{η_p}) S dv + (ad_{a_p} + ad_{η_p}²) S dq                                  (3)

Here w = Ad_g δη_B and z − ad_η w = Ad_g δη̇_B, η_B the body twist, so that each node needs more wrench by

    δF = Ad_g⁻ᵀ (M δη̇_B − ad_{δη_B}ᵀ M η_B − ad_{η_B}ᵀ M δη_B) + H x                                     (4)

with H as in inverse_dynamics_derivatives. Inward, with Fᶜ the wrench summed over a subtree, y = Tᵀ Ad_gᵀ Fᶜ:

    δFᶜ_α = δF_α + Σ_{β child of α} (δFᶜ_β + adbar_{Fᶜ_β} e_β)                                             (5)
    δy = Tᵀ Ad_gᵀ δFᶜ + ∂(Tᵀ f)/∂Ω δΩ at f = Ad_gᵀ Fᶜ,   δτ = Zᵀ δy + κ (Φ₁ᵀ adbar_y δξ₂ − Φ₂ᵀ adbar_y δξ₁)  (6)

Source: Boyer 2023 §VII.B, moved to the base frame and to Magnus intervals.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.dynamics.loads import called_response, put_loads
from lissom.errors import ShapeError
from lissom.forces.term import change_by_responses
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.over_models import over_models
from lissom.launch.prepare import Wanted
from lissom.launch.workspace import filled
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import deforming_derivatives, kinds, traversal
from lissom.passes.column_tables import Matrix
from lissom.passes.rare_kinds import is_body
from lissom.passes.scratch import Direction, DirectionStruct, NodeChange, Scratch, ScratchStruct, acting_flags
from lissom.systems.mass import add_armature_force
from lissom.systems.residual import recursive_newton_euler

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@wp.func
def outward_change(
    t: Tables, s: Scratch, d: Direction, i: int, k: int, q: Matrix, v: Matrix, a: Matrix, acc_base: vec6
):
    """x, w and z of node k by (2) or (3), from the motion left in s."""
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
def newton_euler_change(t: Tables, s: Scratch, d: Direction, i: int, k: int, v: Matrix, a: Matrix):
    """δF of (4) without external loads."""
    F = vec6()
    if is_body(t.node[k].kind):
        F = deforming_derivatives.newton_euler_change(t, s, d, i, k, v, a)
    elif t.node[k].has_inertia:
        R = s.node[i, k].R
        p = s.node[i, k].p
        eta = s.node[i, k].eta
        w = d.node[i, k].w
        eta_B = se3.Ad_inverse(R, p, eta)
        d_eta_B = se3.Ad_inverse(R, p, w)
        d_acc_B = se3.Ad_inverse(R, p, d.node[i, k].z - se3.ad(eta, w))
        F_B = traversal.inertia_apply(t, k, d_acc_B)
        F_B += se3.coad(d_eta_B, traversal.inertia_apply(t, k, eta_B))
        F_B += se3.coad(eta_B, traversal.inertia_apply(t, k, d_eta_B))
        F = se3.Ad_dual(R, p, F_B)
    d.node[i, k].F = F


@wp.func
def inward_change(t: Tables, s: Scratch, d: Direction, i: int, k: int, tau: Matrix):
    """Hand the wrench of node k and its change (5) to its parent, and project the change by (6)."""
    F = s.node[i, k].F
    dF = d.node[i, k].F
    parent = t.node[k].parent
    if parent >= 0:
        s.node[i, parent].F = s.node[i, parent].F + F
        d.node[i, parent].F = d.node[i, parent].F + dF + se3.coad(d.node[i, k].e, F)
    kinds.project_change(t, s, d, i, k, F, dF, tau)


def inverse_dynamics_tangent_kernel(act: Acting) -> Any:
    """Kernel of the tangent."""
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
        refused = s.status[i]
        traversal.inspect(t, s, i, q, v, a)
        if s.status[i] == 0:
            s.status[i] = refused
        recursive_newton_euler(t, s, i, q, v, a, gravity[0], load[i], terms[0], add)
        for k in range(t.n_dynamic):
            outward_change(t, s, d, i, k, q, v, a, se3.join(vec3(), -gravity[0]))
            newton_euler_change(t, s, d, i, k, v, a)
        if s.near.N.shape[0] > 0 or t.loads.node.shape[0] > 0:
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


def _make(model: Model, batch: int) -> Buffers:
    inputs = {"q": (model.nq,), **{name: (model.nv,) for name in ("v", "a", "dq", "dv", "da")}}
    w = Buffers(model, batch, inputs, {"tau": (model.nv,)}, wanted=Wanted(differentiates=True))
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


@over_models("q", "v", "a", "dq", "dv", "da", together=True)
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

    One direction costs two to three inverse dynamics, whatever nv; all columns at once are cheaper by
    inverse_dynamics_derivatives.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]. v, a: velocity and acceleration, shape (..., nv).
        dq, dv, da: the direction, each of shape (..., nv) or None for zero; dq is a tangent vector of `integrate`, and
            v and a are held fixed along it. Leading axes broadcast with those of q, v and a.
        gravity, elastic, loads, t: as inverse_dynamics.
    Returns:
        dtau, shape (..., nv) [N·m, N, or N·m² and N·m for strain coordinates].
    Raises:
        ShapeError: the argument, the expected and the received shape, or what is not finite.
    Accuracy: exact derivative of the discrete model, to rounding. Cost: O(nodes).
    Source: Boyer 2023 §VII.B, in the base frame.
    """
    zero = np.zeros(model.nv)
    directions = ("dq", "dv", "da")
    given = [zero if x is None else x for x in (dq, dv, da)]
    w, lead = filled(model, "inverse_dynamics_tangent", _make, ("q", "v", "a", *directions), q, v, a, *given)
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
    if loads and model.surroundings.called:
        found = [called_response(model, *state, t) for state in zip(w.host["q"], w.host["v"])]
        moved = [by_q @ dq + by_v @ dv for (by_q, by_v), dq, dv in zip(found, w.host["dq"], w.host["dv"])]
        tau = tau + np.array(moved).reshape(tau.shape)
    return tau
