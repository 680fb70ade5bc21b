"""Forward kinematics: poses, twists, accelerations and Jacobians of nodes, links, rod points and frames.

J = Σ S over the path from the base,   J̇ = Σ Ṡ      in the base frame                                 (1)
J_B = Ad_g⁻¹ J,   J̇_B = Ad_g⁻¹ (J̇ − ad_η J)         in the body frame                                  (2)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportIndexIssue=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.errors import ModelError
from lissom.launch.workspace import Workspace, filled
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, vec3, vec6
from lissom.model.model import Model
from lissom.model.points import frame_nodes
from lissom.model.tables import Tables
from lissom.sweep import columns, kinds, traversal
from lissom.sweep.base_frames import origin_of, place_bases
from lissom.sweep.column_tables import Columns, Matrix, column_tables, column_width
from lissom.sweep.scratch import Scratch

wp.set_module_options(kernel_options())

_WORLD, _STILL = np.eye(4), np.zeros(6)


@wp.kernel
def motion_kernel(
    t: Tables, s: Scratch, q: Matrix, v: Matrix, a: Matrix, pose: Matrix, twist: Matrix, acc: Matrix, first: int
):
    i = first + wp.tid()
    traversal.inspect(t, s, i, q, v, a)
    place_bases(t, s, i, q)
    for k in range(t.n_nodes):
        traversal.outward_motion(t, s, i, k, q, v, a, vec6())
        R = s.node[i, k].R
        p = s.node[i, k].p
        x = p + origin_of(t, s, i, k)
        eta_B = se3.Ad_inverse(R, p, s.node[i, k].eta)
        acc_B = se3.Ad_inverse(R, p, s.node[i, k].acc)
        for r in range(3):
            for c in range(3):
                pose[i, 16 * k + 4 * r + c] = R[r, c]
            pose[i, 16 * k + 4 * r + 3] = x[r]
        for r in range(6):
            twist[i, 6 * k + r] = eta_B[r]
            acc[i, 6 * k + r] = acc_B[r]
    traversal.inspect_result(s, i, pose)
    traversal.inspect_result(s, i, twist)
    traversal.inspect_result(s, i, acc)


@wp.kernel
def jacobian_kernel(
    t: Tables,
    s: Scratch,
    x: Columns,
    S: Matrix,
    S_dot: Matrix,
    nodes: wp.array(dtype=wp.int32),
    R_F: wp.array(dtype=wp.mat33d),
    p_F: wp.array(dtype=vec3),
    q: Matrix,
    v: Matrix,
    J: Matrix,
    J_dot: Matrix,
    first: int,
):
    i = first + wp.tid()
    traversal.inspect(t, s, i, q, v, v)
    place_bases(t, s, i, q)
    for k in range(t.n_nodes):
        traversal.outward_motion(t, s, i, k, q, v, v, vec6())
        kinds.motion_columns(t, s, x, i, k, S)
        kinds.rate_columns(t, s, x, i, k, q, v, S_dot)
    n = t.nv
    for f in range(nodes.shape[0]):
        for j in range(6 * n):
            J[i, 6 * n * f + j] = so3.ZERO
            J_dot[i, 6 * n * f + j] = so3.ZERO
        k = nodes[f]
        R = mat_identity()
        p = vec3()  # the world's frame has no columns
        eta = vec6()
        if k >= 0:
            R = s.node[i, k].R
            p = s.node[i, k].p
            eta = s.node[i, k].eta
        p = R * p_F[f] + p
        R = R * R_F[f]
        while k >= 0:
            for j in range(t.node[k].v_start, t.node[k].v_stop):
                column = columns.column(x, S, i, k, j)
                rate = columns.column(x, S_dot, i, k, j) - se3.ad(eta, column)
                column_B = se3.Ad_inverse(R, p, column)
                rate_B = se3.Ad_inverse(R, p, rate)
                for r in range(6):
                    at = 6 * n * f + r * n + j
                    J[i, at] = J[i, at] + column_B[r]
                    J_dot[i, at] = J_dot[i, at] + rate_B[r]
            k = t.node[k].parent


@wp.func
def mat_identity() -> wp.mat33d:
    """The 3x3 identity."""
    return so3.diagonal_plus(so3.ONE, vec3())


def _make_motion(model: Model, batch: int) -> Workspace:
    n = model.n_nodes
    shapes = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,)}
    w = Workspace(model, batch, shapes | {"pose": (16 * n,), "twist": (6 * n,), "acc": (6 * n,)})
    d = w.on_device
    names = ("q", "v", "a", "pose", "twist", "acc")
    w.record(motion_kernel, [w.tables, w.scratch, *(d[name] for name in names)])
    return w


def _run_motion(model: Model, q: Any, v: Any = None, a: Any = None) -> tuple[tuple[int, ...], Workspace]:
    still = np.zeros(model.nv)
    w, lead = filled(model, "motion", _make_motion, q=q, v=still if v is None else v, a=still if a is None else a)
    w.run()
    w.raise_for_status()
    return lead, w


def _node_poses(model: Model, q: Any) -> np.ndarray:
    lead, w = _run_motion(model, q)
    g = w.result("pose", lead, model.n_nodes, 4, 4)
    g[..., 3, 3] = 1.0
    return g


def node_motion(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Poses (..., n_nodes, 4, 4) and body twists (..., n_nodes, 6) of all nodes."""
    lead, w = _run_motion(model, q, v)
    g = w.result("pose", lead, model.n_nodes, 4, 4)
    g[..., 3, 3] = 1.0
    return g, w.result("twist", lead, model.n_nodes, 6)


def forward_kinematics(model: Model, q: Any) -> np.ndarray:
    """Poses of all nodes in the world, shape (..., n_nodes, 4, 4) [m].

    Nodes are the joints and the points of the rods; `model.node_link` and `model.node_s` say where each one is.

    Args:
        q: configuration, shape (..., nq).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: exact for rigid joints; O(h⁴) in the length of a rod interval. Source: SoRoSim 2022 eq. (34).
    """
    return _node_poses(model, q)


def frame_pose(model: Model, q: Any, link_or_frame: str, s: Any = 1.0) -> np.ndarray:
    """Pose of a link, of a rod at s, or of a named frame, in the world.

    Args:
        q: configuration, shape (..., nq).
        link_or_frame: name of a link or of a frame.
        s: abscissa on a rod, a number or an array (n,); it says nothing elsewhere.
    Returns:
        g, shape (..., 4, 4), or (..., n, 4, 4) for n abscissae [m].
    Raises:
        ModelError: no such link or frame, or s outside [0, 1]. ShapeError: the argument and its shapes.
    """
    wide, nodes, placements, single = frames_of(model, link_or_frame, s)
    out = _on_nodes(_node_poses(wide, q), nodes, _WORLD) @ placements
    return out[..., 0, :, :] if single else out


def frame_twist(model: Model, q: Any, v: Any, link_or_frame: str, s: Any = 1.0) -> np.ndarray:
    """Body twist η_B = (ω; v) of a link, rod point or frame, shape (..., 6) or (..., n, 6) [rad/s, m/s].

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
        link_or_frame, s: as frame_pose.
    Raises:
        ModelError, ShapeError: as frame_pose.
    Source: SoRoSim 2022 eq. (16).
    """
    wide, nodes, placements, single = frames_of(model, link_or_frame, s)
    lead, w = _run_motion(wide, q, v)
    return _in_frames(w.result("twist", lead, wide.n_nodes, 6), nodes, placements, single)


def frame_acceleration(model: Model, q: Any, v: Any, a: Any, link_or_frame: str, s: Any = 1.0) -> np.ndarray:
    """Rate of the body twist, η̇_B, of a link, rod point or frame, shape (..., 6) or (..., n, 6) [rad/s², m/s²].

    Args:
        q: configuration, shape (..., nq). v, a: velocity and acceleration, shape (..., nv).
        link_or_frame, s: as frame_pose.
    Raises:
        ModelError, ShapeError: as frame_pose.
    Source: SoRoSim 2022 eq. (17).
    """
    wide, nodes, placements, single = frames_of(model, link_or_frame, s)
    lead, w = _run_motion(wide, q, v, a)
    return _in_frames(w.result("acc", lead, wide.n_nodes, 6), nodes, placements, single)


def _on_nodes(rows: np.ndarray, nodes: np.ndarray, world: np.ndarray) -> np.ndarray:
    """Rows (..., n_nodes, *shape of world) of some nodes; -1 is the world."""
    axis = rows.ndim - world.ndim - 1
    if nodes.min(initial=0) >= 0:
        return rows.take(nodes, axis)
    last = np.broadcast_to(world, (*rows.shape[:axis], 1, *world.shape))
    return np.concatenate([rows, last], axis).take(nodes, axis)


def _in_frames(rows: np.ndarray, nodes: np.ndarray, placements: np.ndarray, single: bool) -> np.ndarray:
    """Twists of nodes seen in frames fixed to them; the world stands still."""
    on_node = _on_nodes(rows, nodes, _STILL)
    R, p = placements[:, :3, :3], placements[:, :3, 3]
    w, v = on_node[..., :3], on_node[..., 3:]
    carried = np.empty_like(w)  # v + w × p
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        carried[..., i] = v[..., i] + w[..., j] * p[:, k] - w[..., k] * p[:, j]
    out = np.concatenate([(part[..., None, :] @ R)[..., 0, :] for part in (w, carried)], axis=-1)
    return out[..., 0, :] if single else out


def frames_of(model: Model, name: str, s: Any) -> tuple[Model, np.ndarray, np.ndarray, bool]:
    """The model with nodes for the named frames, those nodes, the frames in them, and whether there is just one."""
    if type(s) is float and s == 1.0 and isinstance(name, str):  # what controllers ask for at every evaluation
        return model.cached(("frame", name), lambda: _frames_of(model, name, s))
    return _frames_of(model, name, s)


def _frames_of(model: Model, name: str, s: Any) -> tuple[Model, np.ndarray, np.ndarray, bool]:
    try:
        abscissae = np.asarray(s, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"s: must lie in [0, 1], a number or a list (got {s!r})") from None
    if abscissae.ndim > 1 or not np.all((abscissae >= 0.0) & (abscissae <= 1.0)):
        raise ModelError(f"s: must lie in [0, 1], a number or a list (got {s!r})")
    wide, nodes, placements = frame_nodes(model, name, tuple(np.atleast_1d(abscissae).tolist()))
    return wide, nodes, placements, abscissae.ndim == 0


def _run_jacobian(model: Model, q: Any, v: Any, name: str, s: Any, which: str) -> np.ndarray:
    wide, nodes, placements, single = frames_of(model, name, s)

    def make(robot: Model, batch: int) -> Workspace:
        size = 6 * robot.nv * len(nodes)
        shapes = {"q": (robot.nq,), "v": (robot.nv,), "J": (size,), "J_dot": (size,)}
        w = Workspace(robot, batch, shapes)
        columns_shape = (batch, 6 * robot.n_nodes * column_width(robot))
        S, S_dot = (wp.zeros(columns_shape, dtype=wp.float64, device=robot.device) for _ in range(2))
        index = wp.array(nodes, dtype=wp.int32, device=robot.device)
        R = wp.array(placements[:, :3, :3], dtype=wp.mat33d, device=robot.device)
        p = wp.array(placements[:, :3, 3], dtype=vec3, device=robot.device)
        d = w.on_device
        tables = [w.tables, w.scratch, column_tables(robot), S, S_dot, index, R, p]
        w.record(jacobian_kernel, [*tables, d["q"], d["v"], d["J"], d["J_dot"]])
        return w

    family = f"jacobian {name} {tuple(np.atleast_1d(s).tolist())}"
    w, lead = filled(wide, family, make, q=q, v=np.zeros(model.nv) if v is None else v)
    w.run()
    w.raise_for_status()
    out = w.result(which, lead, len(nodes), 6, model.nv)
    return out[..., 0, :, :] if single else out


def frame_jacobian(model: Model, q: Any, link_or_frame: str, s: Any = 1.0) -> np.ndarray:
    """Body Jacobian of a link, rod point or frame: η_B = J_B v.

    Args:
        q: configuration, shape (..., nq).
        link_or_frame, s: as frame_pose.
    Returns:
        J_B, shape (..., 6, nv), or (..., n, 6, nv) for n abscissae.
    Raises:
        ModelError, ShapeError: as frame_pose.
    Source: SoRoSim 2022 eq. (40).
    """
    return _run_jacobian(model, q, None, link_or_frame, s, "J")


def frame_jacobian_derivative(model: Model, q: Any, v: Any, link_or_frame: str, s: Any = 1.0) -> np.ndarray:
    """Rate of the body Jacobian along v: η̇_B = J_B a + J̇_B v.

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
        link_or_frame, s: as frame_pose.
    Returns:
        J̇_B, shape (..., 6, nv), or (..., n, 6, nv) for n abscissae.
    Raises:
        ModelError, ShapeError: as frame_pose.
    Source: SoRoSim 2022 eq. (41).
    """
    return _run_jacobian(model, q, v, link_or_frame, s, "J_dot")
