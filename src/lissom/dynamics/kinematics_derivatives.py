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

from typing import Any

import numpy as np
import warp as wp

from lissom.dynamics.kinematics import frames_of
from lissom.launch.workspace import Workspace, filled
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, mat3, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.sweep import columns, traversal
from lissom.sweep.base_frames import place_bases
from lissom.sweep.column_tables import Matrix
from lissom.sweep.scratch import Scratch
from lissom.systems.derivative_sweeps import DerivativeBuffers, derivative_buffers, own_columns

wp.set_module_options(kernel_options())


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
    """Columns X̄ − ad_η Ȳ of node k, seen from a frame at (R, p), as 6 rows of nv numbers from `first` on; zero off the
    path."""
    for n in range(6 * t.nv):
        out[i, first + n] = so3.ZERO
    for e in range(b.x.path_start[k] / 2, b.x.path_start[k + 1] / 2):
        for j in range(b.x.path_range[2 * e], wp.min(b.x.path_range[2 * e + 1], t.nv)):
            x = columns.column(b.x, X, i, k, j) - se3.ad(eta, columns.column(b.x, Y, i, k, j))
            x = se3.Ad_inverse(R, p, x)
            for r in range(6):
                out[i, first + r * t.nv + j] = x[r]


@wp.kernel
def kinematics_derivatives_kernel(
    t: Tables,
    s: Scratch,
    b: DerivativeBuffers,
    nodes: wp.array(dtype=wp.int32),
    R_F: wp.array(dtype=mat3),
    p_F: wp.array(dtype=vec3),
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
    for k in range(t.n_nodes):
        traversal.outward_motion(t, s, i, k, q, v, a, vec6())
        own_columns(t, s, b, i, k, q, v, a, vec6())
    for f in range(nodes.shape[0]):
        k = nodes[f]
        if k >= 0:  # the world stands still, and the buffers start at zero
            R = s.node[i, k].R
            p = R * p_F[f] + s.node[i, k].p
            R = R * R_F[f]
            at = 6 * t.nv * f
            eta = s.node[i, k].eta
            put_in_frame(t, b, i, k, R, p, b.J_R, vec6(), b.J, at, twist_q)
            put_in_frame(t, b, i, k, R, p, b.J_Q, eta, b.J_R, at, acc_q)
            put_in_frame(t, b, i, k, R, p, b.J_E, eta, b.J, at, acc_v)
            put_in_frame(t, b, i, k, R, p, b.J, vec6(), b.J, at, by_rate)
    traversal.inspect_result(s, i, acc_q)


def _run(model: Model, q: Any, v: Any, a: Any, name: str, s: Any, results: tuple[str, ...]) -> tuple[np.ndarray, ...]:
    wide, nodes, placements, single = frames_of(model, name, s)

    def make(robot: Model, batch: int) -> Workspace:
        size = (6 * robot.nv * len(nodes),)
        names = ("twist_q", "acc_q", "acc_v", "by_rate")
        shapes = {"q": (robot.nq,), "v": (robot.nv,), "a": (robot.nv,)} | dict.fromkeys(names, size)
        w = Workspace(robot, batch, shapes)
        index = wp.array(nodes, dtype=wp.int32, device=robot.device)
        R = wp.array(placements[:, :3, :3], dtype=mat3, device=robot.device)
        p = wp.array(placements[:, :3, 3], dtype=vec3, device=robot.device)
        tables = [w.tables, w.scratch, derivative_buffers(robot, batch, robot.n_nodes), index, R, p]
        w.record(kinematics_derivatives_kernel, [*tables, *(w.on_device[n] for n in ("q", "v", "a", *names))])
        return w

    family = f"kinematics derivatives {name} {tuple(np.atleast_1d(s).tolist())}"
    w, lead = filled(wide, family, make, q=q, v=v, a=a)
    w.run()
    w.raise_for_status()
    out = (w.result(which, lead, len(nodes), 6, model.nv) for which in results)
    return tuple(x[..., 0, :, :] if single else x for x in out)


def frame_twist_derivatives(
    model: Model, q: Any, v: Any, link_or_frame: str, s: Any = 1.0
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


def frame_acceleration_derivatives(
    model: Model, q: Any, v: Any, a: Any, link_or_frame: str, s: Any = 1.0
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
