"""Exact derivatives of inverse dynamics with respect to q (in the tangent space), v and a, in two sweeps.

Outward, besides the motion, the columns of each node and their sums along its path from the base:

    S = D₀ Z,   Ṡ = D₁ Z + D₀ Ż,   S̈ = D₂ Z + 2 D₁ Ż + D₀ Z̈
    D₁ = ad_η D₀ + Ad_g Ṫ,   D₂ = ad_a D₀ + ad_η (D₁ + Ad_g Ṫ) + Ad_g T̈                                  (1)
    R, Q = Ṡ, S̈ for an EXP node;  ad_{η_p} S, (ad_{a_p} + ad_{η_p}²) S for a GROUP node                     (2)

Inward, with X̄ the sum of X over the path of node k, summed over the subtree of each node α:

    ∂τ/∂a  rows  S_αᵀ Σ M J                                                                               (3)
    ∂τ/∂v  rows  S_αᵀ Σ (M (J̇ + R̄) + N J)                                                                (4)
    ∂τ/∂q  rows  S_αᵀ [Σ (M Q̄ + N R̄ + H J) + Σ_{β>α} adbar_{Fᶜ_β} S_β] + local_α                          (5)

N = adbar_{Mη} − ad_ηᵀ M − M ad_η; H is the change of −F_ext with the pose of the node; Fᶜ is the wrench summed over a
subtree. With T here the tangent operator of the child side, f = Ad_gᵀ Fᶜ, y = Tᵀ f and κ = √3 h²/12, the local term is

    local_α = Zᵀ ∂(Tᵀ f)/∂Ω Z + κ (Φ₁ᵀ adbar_y Φ₂ − Φ₂ᵀ adbar_y Φ₁),   zero for a GROUP node               (6)

Source: Mathew 2025 §4, eqs. (21)-(33), merged and moved to the base frame.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.dynamics.loads import Times, called_response, put_loads
from lissom.dynamics.python_forces import python_responses
from lissom.forces.tendons import channel_sizes
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers, Passing
from lissom.launch.loop_buffers import with_loops
from lissom.launch.over_models import over_models
from lissom.launch.prepare import Wanted
from lissom.launch.workspace import Workspace, filled, require_finite
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import TablesStruct
from lissom.passes import columns, traversal
from lissom.passes.column_tables import Matrix, column_width
from lissom.passes.rare_kinds import may_have_loops
from lissom.passes.scratch import ScratchStruct, acting_flags
from lissom.passes.traversal import project
from lissom.systems.bordered import LoopRowsStruct, choose_independent
from lissom.systems.derivative_sweeps import (
    DerivativeBuffersStruct,
    LoopDerivativesStruct,
    add_loop_derivatives,
    derivative_buffers,
    derivative_inward,
    derivative_outward,
)
from lissom.systems.loops import add_loop_stiffness, add_loop_wrenches, loop_rates
from lissom.systems.mass import add_armature_rows
from lissom.systems.residual import recursive_newton_euler

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
        q: Matrix,
        v: Matrix,
        a: Matrix,
        u: Matrix,
        gravity: wp.array(dtype=vec3),
        load: wp.array2d(dtype=vec6),
        terms: wp.array(dtype=wp.int32),
        loops: LoopRowsStruct,
        rates: LoopDerivativesStruct,
        tau: Matrix,
        dq: Matrix,
        dv: Matrix,
        da: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, a)
        G = gravity[0]
        channel_sizes(t, s, i, u)
        recursive_newton_euler(t, s, i, q, v, a, G, load[i], terms[0], add)
        add_loop_wrenches(t, s, i, loops.force, loops.gap)
        columns.clear_rows(t.nv, b.x.width, i, dq)
        columns.clear_rows(t.nv, b.x.width, i, dv)
        columns.clear_rows(t.nv, b.x.width, i, da)
        project(t, s, i, tau)
        derivative_outward(t, s, b, i, v, a, se3.join(vec3(), -G), load[i], terms[0], respond, dq)
        add_loop_stiffness(t, s, i, loops.force, b.H)
        if may_have_loops():
            acc_base = se3.join(vec3(), -G)
            loop_rates(t, s, i, acc_base, loops.rate, loops.acceleration)
            add_loop_derivatives(t, s, b, i, acc_base, loops, rates)
            choose_independent(b.x, i, loops)
        derivative_inward(t, s, b, i, v, a, loops.force, dq, dv, da)
        add_armature_rows(t, b.x.width, i, so3.ONE, da)
        stiffen(t, s, b.x, i, q, v, b.no_move, so3.ONE, so3.ZERO, terms[0], dq)
        stiffen(t, s, b.x, i, q, v, b.no_move, so3.ZERO, so3.ONE, terms[0], dv)

    return derivatives


_WANTED = Wanted(differentiates=True)


def _make(model: Model, batch: int, *, anchored: bool = False) -> Buffers:
    square = (model.nv * column_width(model),)
    inputs = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,), "u": (model.nu,)}
    w = Buffers(model, batch, inputs, {"tau": (model.nv,), "dq": square, "dv": square, "da": square}, wanted=_WANTED)
    w.gravity()
    w.buffer("load", (batch, model.n_load_rows), vec6)
    w.buffer("terms", (1,), wp.int32, common=True)
    names = ("q", "v", "a", "u", "gravity", "load", "terms")
    tables = [w.anchored_tables() if anchored else w.tables, w.scratch, Passing(partial(derivative_buffers, model))]
    loops, rates = with_loops(w, model, batch), LoopDerivativesStruct()
    for name in LoopDerivativesStruct.vars:
        setattr(rates, name, w.buffer(name, (batch, model.n_rows * column_width(model))))
    results = [w.on_device[name] for name in ("tau", "dq", "dv", "da")]
    w.record(residual_derivatives_kernel, [*tables, *(w.on_device[n] for n in names), loops, rates, *results])
    return w


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
    rough: bool = False,
) -> None:
    """Run a filled workspace; the derivatives of ID(q, v, a) − B(q) u − Aᵀ λ are left in `dq`, `dv` and `da`, what
    loops ask in `gap`, `rate`, `acceleration`, `A`, `A_q` and the arrays of LoopDerivatives, which of the rows A are
    independent for `chosen_rows`. Inputs act if `inputs`."""
    w.host["force"][:] = force
    w.put_gravity(gravity, factor)
    w.host["terms"][0] = acting_flags(elastic, loads, inputs)
    if loads:
        put_loads(model, w, t, factor)
    w.run(_WANTED._replace(rough=rough))


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
    rough: bool = False,
    anchors: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Workspace]:
    """Derivatives of ID(q, v, a) − B(q) u − Aᵀ λ with respect to q (tangent), v and a, of states (..., n), and the
    workspace that holds what loops ask. `rough` ones, for Newton's method, may lack second derivatives of the columns
    of material points. `anchors` as of derivative_workspace.

    A prescribed coordinate answers to nothing: its rows and columns are those of the identity, of 0, and the identity.
    """
    w, lead = derivative_workspace(model, q, v, a, factor * u, anchors)
    run_residual_derivatives(model, w, t, inputs=True, factor=factor, force=force, rough=rough)
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
    """The workspace of the derivatives with q, v, a and u in it, and their leading axes; states (n, ...) may have
    anchors of their own, (n, n_pairs, 6)."""
    if anchors is None or not anchors.size:
        return filled(model, "residual_derivatives", _make, ("q", "v", "a", "u"), q, v, a, u)
    make = partial(_make, anchored=True)
    w, lead = filled(model, "residual_derivatives with anchors", make, ("q", "v", "a", "u"), q, v, a, u)
    w.put_anchors(anchors)
    return w, lead


def row_results(model: Model, w: Workspace, name: str, lead: tuple[int, ...] = ()) -> np.ndarray:
    """One of the arrays that hold a row for each row of the loops, as a fresh array (..., n_rows, nv)."""
    return w.result(name, lead, model.n_rows, column_width(model))[..., : model.nv]


def square_results(model: Model, w: Workspace, lead: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`dq`, `dv` and `da` as fresh arrays (..., nv, nv)."""
    n, width = model.nv, column_width(model)
    dq, dv, da = (w.result(name, lead, n, width)[..., :n] for name in ("dq", "dv", "da"))
    return dq, dv, da


@over_models("q", "v", "a", together=True)
def inverse_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    gravity: bool = True,
    elastic: bool = True,
    loads: bool = True,
    t: float = 0.0,
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
    Source: Mathew 2025 §4, eqs. (21)-(33), merged as (3)-(6) of this module say.
    """
    w, lead = derivative_workspace(model, q, v, a, np.zeros(model.nu))
    run_residual_derivatives(model, w, t, gravity=gravity, elastic=elastic, loads=loads)
    w.raise_for_status()
    dq, dv, da = square_results(model, w, lead)
    if loads and model.surroundings.called:
        found = [called_response(model, *state, t) for state in zip(w.host["q"], w.host["v"])]
        by_q, by_v = (np.array(x).reshape(dq.shape) for x in zip(*found))
        dq, dv = dq + by_q, dv + by_v
    require_finite(dq, dv, da)
    return dq, dv, da
