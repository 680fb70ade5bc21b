"""The mass matrix and the bias force of a state in one pass: what forward dynamics and controllers are made of.

    M(q) a + h(q, v) = τ,   h = ID(q, v, 0)                                                               (1)

The motion of the nodes is found once for both.
Source: Pustina 2025, Algorithms 2 and 3 (MIID, MID), by composite inertias.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import warp as wp

from lissom.dynamics.loads import put_loads
from lissom.forces.acting import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.over_models import for_models
from lissom.launch.prepare import Wanted
from lissom.launch.workspace import filled
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.model.tables import TablesStruct
from lissom.passes import traversal
from lissom.passes.column_tables import ColumnsStruct, Matrix, column_tables, column_width
from lissom.passes.scratch import ScratchStruct, acting_flags
from lissom.robot import formatting
from lissom.robot.checks import time
from lissom.systems.mass import MassBuffersStruct, mass_buffers, mass_matrix_sweep
from lissom.systems.newton_euler import recursive_newton_euler

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@final
@formatting.in_one_line
@dataclass(frozen=True)
class MassAndBias:
    """M, shape (..., nv, nv), and h, shape (..., nv), of the equation of motion M a + h = τ.

    Fields:
        mass: M, symmetric. bias: h, the force of gravity, velocities, elasticity and loads.
    """

    mass: np.ndarray
    bias: np.ndarray


def mass_inverse_dynamics_kernel(act: Acting) -> Any:
    """Kernel of M and h."""
    add, force = act.add, act.force

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def mass_and_bias(
        t: TablesStruct,
        s: ScratchStruct,
        x: ColumnsStruct,
        b: MassBuffersStruct,
        q: Matrix,
        v: Matrix,
        a: Matrix,
        gravity: wp.array(dtype=vec3),
        load: wp.array2d(dtype=vec6),
        terms: wp.array(dtype=wp.int32),
        M: Matrix,
        bias: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, a)
        recursive_newton_euler(t, s, i, q, v, a, gravity[0], load[i], terms[0], add)
        traversal.project(t, s, i, bias)
        force(t, s, i, q, v, terms[0], bias)
        mass_matrix_sweep(t, s, x, b, i, M)
        traversal.inspect_result(s, i, bias)

    return mass_and_bias


def _make(model: Model, batch: int) -> Buffers:
    inputs = {"q": (model.nq,), "v": (model.nv,), "no_acceleration": (model.nv,)}
    outputs = {"bias": (model.nv,), "M": (model.nv * column_width(model),)}
    w = Buffers(model, batch, inputs, outputs, wanted=Wanted(sums=True))
    gravity = w.gravity()
    load = w.buffer("load", (batch, model.n_load_rows), vec6)
    terms = w.buffer("terms", (1,), wp.int32, common=True)
    tables = [w.tables, w.scratch, column_tables(model), mass_buffers(model, batch)]
    state = [w.on_device[name] for name in ("q", "v", "no_acceleration")]
    results = [w.on_device[name] for name in ("M", "bias")]
    w.record(mass_inverse_dynamics_kernel, [*tables, *state, gravity, load, terms, *results])
    return w


def mass_inverse_dynamics(
    model: Model | ModelBatch,
    q: ArrayLike,
    v: ArrayLike,
    *,
    gravity: bool = True,
    elastic: bool = True,
    loads: bool = True,
    t: float = 0.0,
) -> MassAndBias:
    """Mass matrix and bias force together, for less than the two apart.

        τ = M(q) a + h(q, v)

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]. v: velocity, shape (..., nv) [per second].
        gravity, elastic, loads, t: which terms h has, as in inverse_dynamics.
    Returns:
        MassAndBias: M, shape (..., nv, nv), and h, shape (..., nv).
    Raises:
        ShapeError: the argument, the expected and the received shape, or what is not finite.
    Accuracy: as inverse_dynamics and mass_matrix.
    Source: Pustina 2025, Algorithms 2 and 3.
    """
    time(t)
    if isinstance(model, ModelBatch):
        return for_models(mass_inverse_dynamics, locals(), "q", "v")
    w, lead = filled(model, "mass_inverse_dynamics", _make, ("q", "v"), q, v)
    w.put_gravity(gravity)
    w.host["terms"][0] = acting_flags(elastic, loads)
    if loads:
        put_loads(model, w, t)
    w.run()
    w.raise_for_status()
    mass = w.result("M", lead, model.nv, column_width(model))[..., : model.nv]
    return MassAndBias(mass, w.result("bias", lead, model.nv))
