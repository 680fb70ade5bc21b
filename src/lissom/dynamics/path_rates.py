"""How fast lengths of tendons and volumes of chambers bend along a motion: L̈ at a = 0, inside kernels.

    ÿ = Bᵀ a + Ḃᵀ v,   (Ḃᵀ v)_c = −L̈_c at a = 0                                                           (1)
    in a rod        L̈ = Σ w (|𝒯̇|² − (t·𝒯̇)²)/|𝒯|,   𝒯̇ of 𝒯 = ε + κ×d + d′, which is linear in q           (2)
    straight        L̈ = t·(ẍ_b − ẍ_a) + (|ẋ_b − ẋ_a|² − L̇²)/L                                             (3)

with the accelerations (3) of the ends at a = 0, and what is inside deformable bodies filled in before the launch.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.forces.contact import SHORT
from lissom.forces.tendons import path_tangent, segment_end, strain_at
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.composed import free_of_forces
from lissom.launch.prepare import Wanted
from lissom.launch.stacks import pulls
from lissom.launch.workspace import filled
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, vec3
from lissom.model.model import Model
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import traversal
from lissom.passes.base_frames import place_bases
from lissom.passes.rare_kinds import may_be_tied
from lissom.passes.scratch import Scratch, ScratchStruct

Rows = wp.array2d(dtype=wp.float64)


@wp.func
def end_rates(t: Tables, s: Scratch, i: int, j: int, side: int):
    """Position, velocity and acceleration of one end of straight piece j in the base frame."""
    x = segment_end(t, s, i, j, side)
    k = t.segments.node[j, side]
    if k < 0:
        return x, vec3(), vec3()
    turn = se3.angular(s.node[i, k].eta)
    rate = wp.cross(turn, x) + se3.linear(s.node[i, k].eta)
    bend = wp.cross(se3.angular(s.node[i, k].acc), x) + se3.linear(s.node[i, k].acc) + wp.cross(turn, rate)
    return x, rate, bend


@wp.func
def segment_bend(t: Tables, s: Scratch, i: int, j: int) -> wp.float64:
    """(3)."""
    a, a1, a2 = end_rates(t, s, i, j, 0)
    b, b1, b2 = end_rates(t, s, i, j, 1)
    length = wp.length(b - a)
    if length < SHORT:
        return so3.ZERO
    along = (b - a) / length
    rate = wp.dot(along, b1 - a1)
    return wp.dot(along, b2 - a2) + (wp.dot(b1 - a1, b1 - a1) - rate * rate) / length


@wp.func
def rod_bend(t: Tables, i: int, c: int, q: Rows, v: Rows) -> wp.float64:
    """(2) of channel c."""
    total = wp.float64(0.0)
    for k in range(t.points.xi.shape[0]):
        for e in range(t.points.path_start[k], t.points.path_start[k + 1]):
            if t.paths.channel[e] == c and t.paths.is_normal[e] == 0:
                start = t.points.run_start[k]
                xi = t.points.xi[k] + strain_at(t.points.phi, start, t.points.run_v[k], i, t.points.q_shift[k], q)
                xi_dot = strain_at(t.points.phi, start, t.points.run_v[k], i, 0, v)
                along, stretch = path_tangent(t, xi, e)
                T_dot = se3.linear(xi_dot) + wp.cross(se3.angular(xi_dot), t.paths.offset[e])
                rate = wp.dot(along, T_dot)
                total -= t.paths.weight[e] * (wp.dot(T_dot, T_dot) - rate * rate) / stretch
    return total


@free_of_forces
def path_rates_kernel(act: Acting) -> Any:
    """Kernel of (2) and (3)."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def bends(
        t: TablesStruct, s: ScratchStruct, q: Rows, v: Rows, a: Rows, inside: Rows, out: Rows, first: int
    ):  # fmt: skip
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, a)
        place_bases(t, s, i, q)
        for k in range(t.n_dynamic):
            traversal.outward_motion(t, s, i, k, q, v, a, se3.join(vec3(), vec3()))
        for c in range(out.shape[1]):
            total = rod_bend(t, i, c, q, v)
            if may_be_tied():
                for j in range(t.segments.channel.shape[0]):
                    if t.segments.channel[j] == c:
                        total += segment_bend(t, s, i, j)
            for e in range(t.pulls.channel.shape[0]):
                if t.pulls.channel[e] == c:
                    total -= inside[i, e]
            out[i, c] = total

    return bends


def _make(model: Model, batch: int) -> Buffers:
    inputs = {"q": (model.nq,), "v": (model.nv,), "no_acceleration": (model.nv,), "inside": (len(model.pulls),)}
    outputs = {"bend": (len(model.channels.names),)}
    w = Buffers(model, batch, inputs, outputs, wanted=Wanted(weighs=False, sums=True))
    w.record(path_rates_kernel, [w.tables, w.scratch, *(w.on_device[name] for name in (*inputs, *outputs))])
    return w


def has_path_bends(model: Model) -> bool:
    """Whether all inputs but motors are lengths and volumes, whose L̈ is known here."""
    others = any(model.channels.gain[c].any() for c in (*model.spools.channel, *model.wrenches.channel))
    return not (others or model.pulls.presses.any() or model.inputs.custom)


def path_bends(model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """L̈ of (1) of all channels at one state, shape (n_channels,) [m/s², m³/s²]."""
    w, lead = filled(model, "path_rates", _make, ("q", "v"), q, v)
    for part in pulls(model):
        w.host["inside"][0, part.by_pull] = part.pulls.second_along(q[part.q], v[part.v])
    w.run()
    w.raise_for_status()
    return w.result("bend", lead, len(model.channels.names))
