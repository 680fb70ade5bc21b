"""Inverse dynamics by recursive Newton-Euler: outward motion, Newton-Euler at the nodes, inward projection."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportIndexIssue=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.dynamics.loads import Times, put_loads
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.compiling import without_derivatives
from lissom.launch.over_models import for_models, over_models
from lissom.launch.prepare import TableOptions
from lissom.launch.workspace import Workspace, filled_workspace
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.model.tables import TablesStruct
from lissom.passes import traversal
from lissom.passes.scratch import ScratchStruct, acting_flags
from lissom.passes.traversal import project
from lissom.robot.checks import time
from lissom.systems.mass import add_armature_force
from lissom.systems.residual import recursive_newton_euler

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


AT_START = 0.0  # the default time, which needs no check


@without_derivatives
def inverse_dynamics_kernel(act: Acting) -> Any:
    """Kernel of inverse dynamics."""
    add, force = act.add, act.force

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def newton_euler(
        t: TablesStruct,
        s: ScratchStruct,
        q: wp.array2d(dtype=wp.float64),
        v: wp.array2d(dtype=wp.float64),
        a: wp.array2d(dtype=wp.float64),
        gravity: wp.array(dtype=vec3),
        load: wp.array2d(dtype=vec6),
        terms: wp.array(dtype=wp.int32),
        tau: wp.array2d(dtype=wp.float64),
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, a)
        recursive_newton_euler(t, s, i, q, v, a, gravity[0], load[i], terms[0], add)
        project(t, s, i, tau)
        force(t, s, i, q, v, terms[0], tau)
        add_armature_force(t, i, a, tau)
        traversal.inspect_result(s, i, tau)

    return newton_euler


def inverse_dynamics_buffers(model: Model, batch: int) -> Buffers:
    """Buffers with the output "tau"."""
    inputs = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,)}
    w = Buffers(model, batch, inputs, {"tau": (model.nv,)}, table_options=TableOptions(only_along_v=True))
    gravity = w.gravity()
    load = w.buffer("load", (batch, model.n_load_rows), vec6)
    terms = w.buffer("terms", (1,), wp.int32, common=True)
    d = w.on_device
    w.record(inverse_dynamics_kernel, [w.tables, w.scratch, d["q"], d["v"], d["a"], gravity, load, terms, d["tau"]])
    return w


def run_inverse_dynamics(
    model: Model, q: Any, v: Any, a: Any, gravity: bool, elastic: bool, loads: bool, t: Times
) -> tuple[Workspace, tuple[int, ...]]:
    """Fill and run the workspace of inverse dynamics: the workspace and the leading axes. The caller reads `tau` and
    `status`."""
    w, lead = filled_workspace(model, "inverse_dynamics", inverse_dynamics_buffers, ("q", "v", "a"), q, v, a)
    w.put_gravity(gravity)
    w.host["terms"][0] = acting_flags(elastic, loads)
    if loads:
        put_loads(model, w, t)
    w.run()
    return w, lead


def inverse_dynamics(
    model: Model | ModelBatch,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    gravity: bool = True,
    elastic: bool = True,
    loads: bool = True,
    t: float = AT_START,
) -> np.ndarray:
    """Generalised force that produces a given acceleration (recursive Newton-Euler).

        τ = M(q) a + c(q, v) + g(q) + K q + D v − Σ JᵀF        (1)

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units].
        v: velocity, shape (..., nv) [per second].
        a: acceleration, shape (..., nv) [per second squared].
        gravity, elastic, loads: which terms count; elastic covers K, D, joint springs and springs between points.
        t: time of the point loads [s].
    Returns:
        tau, shape (..., nv) [N·m, N, or N·m² and N·m for strain coordinates].
    Raises:
        ShapeError: an argument has a wrong shape, or a number that is not finite.
    Accuracy: exact for rigid joints; O(h⁴) in the length of a rod interval. Cost: O(nodes).
    Source: Mathew 2025 §4, eqs. (14)-(16); S in the child frame here.
    """
    if t is not AT_START:
        time(t)
    known = model.cache.get(("inverse_dynamics", gravity, elastic, loads, get_ident()))  # as `prepare` keeps it
    if known is not None:
        tau = known.call(q, v, a)
        if tau is not None:
            return tau
    if isinstance(model, ModelBatch):
        given = {"model": model, "q": q, "v": v, "a": a, "gravity": gravity, "elastic": elastic, "loads": loads, "t": t}
        return for_models(inverse_dynamics, given, "q", "v", "a")
    w, lead = run_inverse_dynamics(model, q, v, a, gravity, elastic, loads, t)
    w.raise_for_status()
    if not lead and not (loads and model.n_load_rows):
        w.prepare("inverse_dynamics", ("q", "v", "a"), ("tau",), (model.nv,), options=(gravity, elastic, loads))
    return w.result("tau", lead, model.nv)


@over_models("q", "v", batched=True)
def external_force(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, *, gravity: bool = True, loads: bool = True, t: float = 0.0
) -> np.ndarray:
    """Generalised external force F: gravity and point loads.

        F = Σ Jᵀ F_ext,    M a + C v + K q + D v = B u + F

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv); None is rest.
        gravity, loads: which terms count. t: time of the point loads [s].
    Returns:
        F, shape (..., nv).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Source: SoRoSim 2022 eq. (30).
    """
    zero = np.zeros(model.nv)
    v = zero if v is None else v
    moving = inverse_dynamics(model, q, v, zero, gravity=gravity, elastic=False, loads=loads, t=t)
    return inverse_dynamics(model, q, v, zero, gravity=False, elastic=False, loads=False) - moving
