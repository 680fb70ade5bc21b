"""Equation of motion and inputs in one launch: M, h, B, lengths L and L̈ at a state, for laws that need all of them.

Integrals over deformable bodies and their tendons are computed once for all of these. The equations are those of
mass_matrix and actuation.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import warp as wp

from lissom.dynamics.actuation import channel_forces, length_acceleration, put_actuation
from lissom.dynamics.loads import put_loads
from lissom.dynamics.mass_matrix import put_mass_and_bias
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers, motion_inputs
from lissom.launch.prepare import TableOptions, pulls
from lissom.launch.workspace import filled_workspace
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import TablesStruct
from lissom.passes import traversal
from lissom.passes.columns import ColumnsStruct, Matrix, column_tables, column_width
from lissom.passes.scratch import ScratchStruct, acting_flags
from lissom.systems.mass import MassBuffersStruct, mass_buffers
from lissom.systems.residual import MotionInputsStruct


@wp.struct
class InputDynamicsStruct:
    """Results: M in rows of column_width, h, and as in `put_actuation` tau, B and length; bend: L̈ at a = 0."""

    M: Matrix
    bias: Matrix
    tau: Matrix
    B: Matrix
    length: Matrix
    bend: Matrix


def input_dynamics_kernel(act: Acting) -> Any:
    """Kernel of M, h, B, L and L̈."""
    add, force = act.add, act.force

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def input_dynamics_alone(
        t: TablesStruct, s: ScratchStruct, x: ColumnsStruct, b: MassBuffersStruct, g: MotionInputsStruct,
        inside: Matrix, out: InputDynamicsStruct, first: int,
    ):  # fmt: skip
        i = first + wp.tid()
        put_mass_and_bias(t, s, x, b, i, g, out.M, out.bias, add, force)
        for j in range(s.deforming.inertial.shape[1]):
            s.deforming.inertial[i, j] = so3.ZERO
        put_actuation(t, s, i, g.q, out.tau, out.B, out.length)
        if t.segments.channel.shape[0] > 0:  # the accelerations of their ends, without gravity
            for k in range(t.n_dynamic):
                traversal.outward_motion(t, s, i, k, g.q, g.v, g.a, se3.join(vec3(), vec3()))
        for c in range(out.bend.shape[1]):
            out.bend[i, c] = length_acceleration(t, s, i, c, g.q, g.v, inside)

    return input_dynamics_alone


def _make(model: Model, batch: int) -> Buffers:
    n = len(model.channels.names)
    inputs = {"q": (model.nq,), "v": (model.nv,), "no_acceleration": (model.nv,), "inside": (len(model.pulls),)}
    outputs = {"M": (model.nv * column_width(model),), "bias": (model.nv,), "tau": (model.nv,), "B": (n * model.nv,)}
    outputs |= {"length": (n,), "bend": (n,)}
    w = Buffers(model, batch, inputs, outputs, table_options=TableOptions(only_along_v=True))
    w.gravity()
    w.buffer("load", (batch, model.n_load_rows), vec6)
    w.buffer("terms", (1,), wp.int32, common=True)
    tables, out = [w.tables, w.scratch, column_tables(model), mass_buffers(model, batch)], InputDynamicsStruct()
    for name in outputs:
        setattr(out, name, w.on_device[name])
    given = motion_inputs(w, a="no_acceleration"), w.on_device["inside"]
    w.record(input_dynamics_kernel, [*tables, *given, out])
    return w


@final
@dataclass(frozen=True)
class InputDynamics:
    """M (nv, nv), h (nv,), B (nv, nu), the lengths L of channels and L̈ at a = 0 (n_channels,), and Ḃᵀv (nu,) at a
    state."""

    mass: np.ndarray
    bias: np.ndarray
    B: np.ndarray
    lengths: np.ndarray
    bend: np.ndarray
    curving: np.ndarray


def input_dynamics(model: Model, q: np.ndarray, v: np.ndarray, t: float | None = None) -> InputDynamics:
    """M, h, B, L, L̈ and Ḃᵀv at a state and a time; without a time, h is that of the masses alone.

    B of an elastic tendon is that of a tension. L̈ and Ḃᵀv are right for models that has_length_accelerations.
    """
    w, lead = filled_workspace(model, "input_dynamics", _make, ("q", "v"), q, v)
    w.put_gravity(t is not None)
    w.host["terms"][0] = acting_flags(t is not None, t is not None)
    if t is not None:
        put_loads(model, w, t)
    for part in pulls(model):
        w.host["inside"][0, part.by_pull] = part.pulls.second_along(q[part.q], v[part.v])
    w.run()
    w.raise_for_status()
    nv, n, gain = model.nv, len(model.channels.names), model.channels.gain
    mass = w.result("M", lead, nv, column_width(model))[..., :nv]
    B = channel_forces(model, w, lead).T @ gain + model.inputs.joint_gain
    lengths, bend = w.result("length", lead, n), w.result("bend", lead, n)
    return InputDynamics(mass, w.result("bias", lead, nv), B, lengths, bend, -bend @ gain)
