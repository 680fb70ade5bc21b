"""Exact derivatives of twists and accelerations of frames.

In the base frame, with X̄ the sum of the columns X of inverse_dynamics_derivatives (1), (2) over the path of a node,

    ∂η_B/∂q = Ad_g⁻¹ R̄,   ∂η_B/∂v = Ad_g⁻¹ J                                                            (1)
    ∂η̇_B/∂q = Ad_g⁻¹ (Q̄ − ad_η R̄),   ∂η̇_B/∂v = Ad_g⁻¹ (J̇ + R̄ − ad_η J),   ∂η̇_B/∂a = Ad_g⁻¹ J         (2)

The derivative of a pose is the body Jacobian: g⁻¹ δg = (J_B δq)^. Source: Mathew 2025 §4, eqs. (23)-(29).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.dynamics.kinematics import frame_of, frame_results
from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.compiling import free_of_forces
from lissom.launch.over_models import over_models
from lissom.launch.points import FrameRowsStruct, columns_with_room, frame_capacity, put_places, tables_with_room
from lissom.launch.prepare import TableOptions
from lissom.launch.workspace import filled_workspace
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, mat3, vec3, vec6
from lissom.model.model import Model
from lissom.model.points import places_of
from lissom.model.tables import Tables, TablesStruct
from lissom.passes import columns, kinds, traversal
from lissom.passes.columns import Matrix
from lissom.passes.scratch import STATUS_OVERFLOW, ScratchStruct
from lissom.passes.traversal import place_bases
from lissom.systems.derivative_sweeps import DerivativeBuffers, DerivativeBuffersStruct, derivative_buffers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@wp.func
def put_in_frame(
    t: Tables,
    b: DerivativeBuffers,
    i: int,
    k: int,
    R: mat3,
    p: vec3,
    X: Matrix,
    eta: vec6,
    Y: Matrix,
    first: int,
    out: Matrix,
):
    """Write the columns X̄ − ad_η Ȳ of the path of node k, in a frame (R, p), as 6 rows of nv numbers from `first`."""
    for e in range(b.x.path_start[k] / 2, b.x.path_start[k + 1] / 2):
        for j in range(b.x.path_range[2 * e], wp.min(b.x.path_range[2 * e + 1], t.nv)):
            x = columns.column(b.x, X, i, k, j) - se3.ad(eta, columns.column(b.x, Y, i, k, j))
            x = se3.Ad_inverse(R, p, x)
            for r in range(6):
                out[i, first + r * t.nv + j] = x[r]


@free_of_forces
def kinematics_derivatives_kernel(act: Acting) -> Any:
    """Kernel of the derivatives of motions of frames."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def derivatives_of_frames(
        t: TablesStruct,
        s: ScratchStruct,
        b: DerivativeBuffersStruct,
        frames: FrameRowsStruct,
        q: Matrix,
        v: Matrix,
        a: Matrix,
        twist_q: Matrix,
        acc_q: Matrix,
        acc_v: Matrix,
        by_rate: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, a)
        place_bases(t, s, i, q)
        for k in range(t.n_nodes + frames.count[1]):
            traversal.outward_motion(t, s, i, k, q, v, a, vec6())
        nodes = t.n_nodes + frames.count[1]
        kinds.derivative_columns(t, s, b.x, i, nodes, v, a, vec6(), b.sums, 0, twist_q)
        for f in range(frames.count[0]):
            k = frames.node[f]
            for j in range(6 * t.nv * f, 6 * t.nv * (f + 1)):  # they stay zero for frames of the world
                twist_q[i, j] = so3.ZERO
                acc_q[i, j] = so3.ZERO
                acc_v[i, j] = so3.ZERO
                by_rate[i, j] = so3.ZERO
            if k >= 0:
                R, p = frame_of(s, i, frames, f)
                at = 6 * t.nv * f
                eta = s.node[i, k].eta
                put_in_frame(t, b, i, k, R, p, b.sums.J_R, vec6(), b.sums.J, at, twist_q)
                put_in_frame(t, b, i, k, R, p, b.sums.J_Q, eta, b.sums.J_R, at, acc_q)
                put_in_frame(t, b, i, k, R, p, b.sums.J_E, eta, b.sums.J, at, acc_v)
                put_in_frame(t, b, i, k, R, p, b.sums.J, vec6(), b.sums.J, at, by_rate)
        bad = wp.float64(0.0)
        for j in range(6 * t.nv * frames.count[0]):
            bad += so3.ZERO * acc_q[i, j]
        if bad != so3.ZERO and s.status[i] == 0:  # NaN differs from zero
            s.status[i] = STATUS_OVERFLOW

    return derivatives_of_frames


_RESULTS = ("twist_q", "acc_q", "acc_v", "by_rate")


def _make(model: Model, batch: int, room: int) -> Buffers:
    given = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,)}
    results = dict.fromkeys(_RESULTS, (6 * model.nv * room,))
    options = TableOptions(all_nodes=True, column_derivatives=True, integrals=False)
    w = Buffers(model, batch, given, results, table_options=options, extra_nodes=room)
    t, frames = tables_with_room(w, model, room)
    b = derivative_buffers(model, batch, model.n_nodes + room)
    b.x = columns_with_room(w, model, room, paths=True)
    w.record(kinematics_derivatives_kernel, [t, w.scratch, b, frames, *(w.on_device[n] for n in (*given, *_RESULTS))])
    return w


def _run(model: Model, q: Any, v: Any, a: Any, name: str, s: Any, results: tuple[str, ...]) -> tuple[np.ndarray, ...]:
    places = places_of(model, name, s)
    room = frame_capacity(places)
    w, lead = filled_workspace(
        model, f"kinematics derivatives {room}", partial(_make, room=room), ("q", "v", "a"), q, v, a
    )
    put_places(w, model, places)
    w.run()
    w.raise_for_status()
    return tuple(frame_results(w, lead, places, name, 6, model.nv) for name in results)


@over_models("q", "v")
def frame_twist_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, link_or_frame: str, s: ArrayLike = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Exact derivatives of frame_twist.

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
        link_or_frame, s: as frame_pose.
    Returns:
        (∂η_B/∂q, ∂η_B/∂v), each (..., 6, nv), or (..., n, 6, nv) for n abscissae [rad/s, m/s per unit]; the first along
        the tangent space of `integrate`, with v held fixed; the second is frame_jacobian.
    Raises:
        ModelError, ShapeError: as frame_pose.
    Accuracy: exact derivatives of the discrete model, to rounding. Source: Mathew 2025 §4, eqs. (23)-(26).
    """
    dq, dv = _run(model, q, v, np.zeros(model.nv), link_or_frame, s, ("twist_q", "by_rate"))
    return dq, dv


@over_models("q", "v", "a")
def frame_acceleration_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, link_or_frame: str, s: ArrayLike = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exact derivatives of frame_acceleration.

    Args:
        q: configuration, shape (..., nq). v, a: velocity and acceleration, shape (..., nv).
        link_or_frame, s: as frame_pose.
    Returns:
        (∂η̇_B/∂q, ∂η̇_B/∂v, ∂η̇_B/∂a), each (..., 6, nv), or (..., n, 6, nv) for n abscissae [rad/s², m/s² per unit].
    Raises:
        ModelError, ShapeError: as frame_pose.
    Accuracy: exact derivatives of the discrete model, to rounding. Source: Mathew 2025 §4, eqs. (27)-(29).
    """
    dq, dv, da = _run(model, q, v, a, link_or_frame, s, ("acc_q", "acc_v", "by_rate"))
    return dq, dv, da
