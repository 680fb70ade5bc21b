"""Forward kinematics: poses, twists, accelerations and Jacobians of nodes, links, rod points and frames.

J = Σ S over the path from the base to a node,   J̇ = Σ Ṡ      in the base frame                       (1)
J_B = Ad_g⁻¹ J,   J̇_B = Ad_g⁻¹ (J̇ − ad_η J)         in the body frame                                  (2)
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false, reportIndexIssue=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from lissom.forces.terms import Acting
from lissom.launch.buffers import Buffers
from lissom.launch.compiling import free_of_forces, without_derivatives
from lissom.launch.over_models import over_models
from lissom.launch.points import (
    FrameRows,
    FrameRowsStruct,
    columns_with_room,
    frame_capacity,
    put_places,
    tables_with_room,
)
from lissom.launch.prepare import TableOptions
from lissom.launch.workspace import Workspace, call_of, filled_workspace
from lissom.lie import se3, so3
from lissom.lie.types import kernel_options, mat3, vec3, vec6
from lissom.model.model import Model
from lissom.model.points import Places, places_of
from lissom.model.tables import TablesStruct
from lissom.passes import columns, kinds, traversal
from lissom.passes.columns import ColumnsStruct, Matrix, column_width
from lissom.passes.scratch import STATUS_OVERFLOW, Scratch, ScratchStruct
from lissom.passes.traversal import origin_of, place_bases

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_STATE = ("q", "v", "a")
_TABLE_OPTIONS = TableOptions(all_nodes=True, integrals=False)


@wp.func
def put_pose(i: int, f: int, R: mat3, x: vec3, pose: Matrix):
    """Write the pose of frame f into the row of instance i."""
    for r in range(3):
        for c in range(3):
            pose[i, 16 * f + 4 * r + c] = R[r, c]
        pose[i, 16 * f + 4 * r + 3] = x[r]


@wp.func
def put_motion(i: int, f: int, R: mat3, x: vec3, eta: vec6, rate: vec6, pose: Matrix, twist: Matrix, acc: Matrix):
    """Write pose, twist and acceleration of frame f into the rows of instance i."""
    put_pose(i, f, R, x, pose)
    for r in range(6):
        twist[i, 6 * f + r] = eta[r]
        acc[i, 6 * f + r] = rate[r]


@free_of_forces
@without_derivatives
def motion_kernel(act: Acting) -> Any:
    """Kernel of poses, twists and accelerations of nodes."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def motion_of_nodes(
        t: TablesStruct,
        s: ScratchStruct,
        q: Matrix,
        v: Matrix,
        a: Matrix,
        pose: Matrix,
        twist: Matrix,
        acc: Matrix,
        first: int,
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
            put_motion(i, k, R, x, eta_B, acc_B, pose, twist, acc)
        traversal.inspect_result(s, i, pose)
        traversal.inspect_result(s, i, twist)
        traversal.inspect_result(s, i, acc)

    return motion_of_nodes


@wp.func
def frame_of(s: Scratch, i: int, frames: FrameRows, f: int):
    """Rotation and position of frame f in the base frame; in the world if the frame is fixed to the world."""
    k = frames.node[f]
    if k < 0:
        return frames.R[f], frames.p[f]
    return s.node[i, k].R * frames.R[f], s.node[i, k].R * frames.p[f] + s.node[i, k].p


@free_of_forces
@without_derivatives
def frames_kernel(act: Acting) -> Any:
    """Kernel of poses, twists and accelerations of frames."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def motion_of_frames(
        t: TablesStruct,
        s: ScratchStruct,
        frames: FrameRowsStruct,
        q: Matrix,
        v: Matrix,
        a: Matrix,
        pose: Matrix,
        twist: Matrix,
        acc: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        traversal.inspect(t, s, i, q, v, a)
        place_bases(t, s, i, q)
        for k in range(t.n_nodes + frames.count[1]):
            traversal.outward_motion(t, s, i, k, q, v, a, vec6())
        bad = wp.float64(0.0)
        for f in range(frames.count[0]):
            k = frames.node[f]
            R, p = frame_of(s, i, frames, f)
            x = p + origin_of(t, s, i, k)
            eta = vec6()
            rate = vec6()
            if k >= 0:
                eta = se3.Ad_inverse(R, p, s.node[i, k].eta)
                rate = se3.Ad_inverse(R, p, s.node[i, k].acc)
            put_motion(i, f, R, x, eta, rate, pose, twist, acc)
            for r in range(6):
                bad += so3.ZERO * (eta[r] + rate[r])
            bad += so3.ZERO * (x[0] + x[1] + x[2])
        if bad != so3.ZERO and s.status[i] == 0:  # NaN differs from zero
            s.status[i] = STATUS_OVERFLOW

    return motion_of_frames


@free_of_forces
@without_derivatives
def jacobian_kernel(act: Acting) -> Any:
    """Kernel of poses and Jacobians of frames, and of the rates of the Jacobians unless their array is empty."""

    @wp.kernel(module="unique", module_options=kernel_options(act.kinds))
    def jacobians(
        t: TablesStruct,
        s: ScratchStruct,
        x: ColumnsStruct,
        S: Matrix,
        S_dot: Matrix,
        frames: FrameRowsStruct,
        q: Matrix,
        v: Matrix,
        pose: Matrix,
        J: Matrix,
        J_dot: Matrix,
        first: int,
    ):
        i = first + wp.tid()
        has_rates = J_dot.shape[1] > 0
        traversal.inspect(t, s, i, q, v, v)
        place_bases(t, s, i, q)
        for k in range(t.n_nodes + frames.count[1]):
            traversal.outward_motion(t, s, i, k, q, v, v, vec6())
            kinds.motion_columns(t, s, x, i, k, S)
            if has_rates:
                kinds.rate_columns(t, s, x, i, k, q, v, S_dot)
        n = t.nv
        for f in range(frames.count[0]):
            for j in range(6 * n):
                J[i, 6 * n * f + j] = so3.ZERO
                if has_rates:
                    J_dot[i, 6 * n * f + j] = so3.ZERO
            k = frames.node[f]  # −1 for a frame of the world, which has no columns
            R, p = frame_of(s, i, frames, f)
            put_pose(i, f, R, p + origin_of(t, s, i, k), pose)
            eta = vec6()
            if k >= 0:
                eta = s.node[i, k].eta
            while k >= 0:
                for j in range(t.node[k].v_start, t.node[k].v_stop):
                    column = columns.column(x, S, i, k, j)
                    column_B = se3.Ad_inverse(R, p, column)
                    for r in range(6):
                        at = 6 * n * f + r * n + j
                        J[i, at] = J[i, at] + column_B[r]
                    if has_rates:
                        rate = columns.column(x, S_dot, i, k, j) - se3.ad(eta, column)
                        rate_B = se3.Ad_inverse(R, p, rate)
                        for r in range(6):
                            at = 6 * n * f + r * n + j
                            J_dot[i, at] = J_dot[i, at] + rate_B[r]
                k = t.node[k].parent

    return jacobians


def motion_buffers(model: Model, batch: int) -> Buffers:
    """Buffers with the poses, body twists and accelerations of all nodes."""
    n, inputs = model.n_nodes, {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,)}
    w = Buffers(
        model, batch, inputs, {"pose": (16 * n,), "twist": (6 * n,), "acc": (6 * n,)}, table_options=_TABLE_OPTIONS
    )
    w.host["pose"].reshape(batch, n, 4, 4)[..., 3, 3] = 1.0
    d = w.on_device
    names = ("q", "v", "a", "pose", "twist", "acc")
    w.record(motion_kernel, [w.tables, w.scratch, *(d[name] for name in names)])
    return w


def node_motion(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Poses (..., n_nodes, 4, 4) and body twists (..., n_nodes, 6) of all nodes."""
    w, lead = filled_workspace(model, "motion", motion_buffers, ("q", "v"), q, v)
    w.run()
    w.raise_for_status()
    return w.result("pose", lead, model.n_nodes, 4, 4), w.result("twist", lead, model.n_nodes, 6)


@over_models("q", batched=True)
def forward_kinematics(model: Model, q: ArrayLike) -> np.ndarray:
    """Poses of all nodes in the world, shape (..., n_nodes, 4, 4) [m].

    Nodes are the joints and the points of the rods; `model.nodes.link` and `model.nodes.s` give link and abscissa of
    each. Some nodes lie between two exponentials and are no frames of a section; `model.rods[name].node` lists those
    that are.

    Args:
        q: configuration, shape (..., nq).
    Raises:
        ShapeError: the argument, the expected and the received shape.
    Accuracy: exact for rigid joints; O(h⁴) in the length of a rod interval. Source: SoRoSim 2022 eq. (34).
    """
    g = call_of(model, "poses")(q)
    if g is not None:
        return g
    w, lead = filled_workspace(model, "poses", motion_buffers, ("q",), q)  # its own workspace: v and a stay zero there
    w.run()
    w.raise_for_status()
    if not lead:
        w.prepare("poses", ("q",), ("pose",), (model.n_nodes, 4, 4))
    return w.result("pose", lead, model.n_nodes, 4, 4)


def _common_node(model: Model, name: str, s: Any) -> int | None:
    """The node that is a frame in all models of a batch; None if the frame is no node, or another one in some model."""

    def find() -> tuple[int, ...]:
        places = [places_of(one, name, s) for one in model.models]
        if not all(x.single and not len(x.h) and np.array_equal(x.placement[0], np.eye(4)) for x in places):
            return ()
        nodes = {int(x.node[0]) for x in places}
        return tuple(nodes) if len(nodes) == 1 else ()

    found = model.cached(("node of a frame", name, s), find) if isinstance(s, float) else ()
    return found[0] if found else None


def _poses_on_node(model: Model, q: np.ndarray, link_or_frame: str, s: Any) -> np.ndarray | None:
    """Poses of a frame in all models of a batch, if it is the same node in each of them; else None. They are those of
    single models to the last bit."""
    k = _common_node(model, link_or_frame, s)
    return None if k is None else forward_kinematics(model, q)[..., k, :, :]


def _twists_on_node(model: Model, q: np.ndarray, v: np.ndarray, link_or_frame: str, s: Any) -> np.ndarray | None:
    """Twists of a frame, as `_poses_on_node`."""
    k = _common_node(model, link_or_frame, s)
    return None if k is None else node_motion(model, q, v)[1][..., k, :]


@over_models("q", try_launch=_poses_on_node)
def frame_pose(model: Model, q: ArrayLike, link_or_frame: str, s: ArrayLike = 1.0) -> np.ndarray:
    """Pose of a link, of a rod at s, or of a named frame, in the world.

    Args:
        q: configuration, shape (..., nq).
        link_or_frame: name of a link or of a frame.
        s: abscissa on a rod, a number or an array (n,); ignored for other links and frames.
    Returns:
        g, shape (..., 4, 4), or (..., n, 4, 4) for n abscissae [m].
    Raises:
        ModelError: no such link or frame, or s outside [0, 1]. ShapeError: the argument and its shapes.
    """
    return _poses(model, q, places_of(model, link_or_frame, s))


@over_models("q", "v", try_launch=_twists_on_node)
def frame_twist(model: Model, q: ArrayLike, v: ArrayLike, link_or_frame: str, s: ArrayLike = 1.0) -> np.ndarray:
    """Body twist η_B = (ω; v) of a link, rod point or frame, shape (..., 6) or (..., n, 6) [rad/s, m/s].

    Args:
        q: configuration, shape (..., nq). v: velocity, shape (..., nv).
        link_or_frame, s: as frame_pose.
    Raises:
        ModelError, ShapeError: as frame_pose.
    Source: SoRoSim 2022 eq. (16).
    """
    w, lead, places = _run_frames(model, q, v, None, link_or_frame, s)
    return frame_results(w, lead, places, "twist", 6)


@over_models("q", "v", "a")
def frame_acceleration(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, link_or_frame: str, s: ArrayLike = 1.0
) -> np.ndarray:
    """Rate of the body twist, η̇_B, of a link, rod point or frame, shape (..., 6) or (..., n, 6) [rad/s², m/s²].

    Args:
        q: configuration, shape (..., nq). v, a: velocity and acceleration, shape (..., nv).
        link_or_frame, s: as frame_pose.
    Raises:
        ModelError, ShapeError: as frame_pose.
    Source: SoRoSim 2022 eq. (17).
    """
    w, lead, places = _run_frames(model, q, v, a, link_or_frame, s)
    return frame_results(w, lead, places, "acc", 6)


def frames_buffers(model: Model, batch: int, room: int) -> Buffers:
    """Buffers of the motion of up to `room` frames, which `put_places` writes."""
    shapes = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,)}
    sizes = {"pose": (16 * room,), "twist": (6 * room,), "acc": (6 * room,)}
    w = Buffers(model, batch, shapes, sizes, table_options=_TABLE_OPTIONS, extra_nodes=room)
    t, frames = tables_with_room(w, model, room)
    w.host["pose"].reshape(batch, room, 4, 4)[..., 3, 3] = 1.0
    w.record(frames_kernel, [t, w.scratch, frames, *(w.on_device[name] for name in (*shapes, *sizes))])
    return w


def _run_frames(model: Model, q: Any, v: Any, a: Any, name: str, s: Any) -> tuple[Workspace, tuple[int, ...], Places]:
    """Compute the motion of frames: the workspace with `pose`, `twist` and `acc`, the leading axes, and the frames."""
    places = places_of(model, name, s)
    return *_run_at(model, q, v, a, places), places


def _run_at(model: Model, q: Any, v: Any, a: Any, places: Places) -> tuple[Workspace, tuple[int, ...]]:
    room, zero = frame_capacity(places), np.zeros(model.nv)
    make = partial(frames_buffers, room=room)
    w, lead = filled_workspace(
        model, f"frames {room}", make, _STATE, q, zero if v is None else v, zero if a is None else a
    )
    put_places(w, model, places)
    w.run()
    w.raise_for_status()
    return w, lead


def poses_at(model: Model, q: np.ndarray, places: Places) -> np.ndarray:
    """Poses (..., n_places, 4, 4) of frames."""
    return _poses(model, q, replace(places, single=False))


def _poses(model: Model, q: Any, places: Places) -> np.ndarray:
    """Poses (..., 4, 4) of a single frame, or (..., n_places, 4, 4)."""
    family = f"poses {frame_capacity(places)}"  # its own workspace: v and a stay zero there
    g = call_of(model, family, places=places)(q)
    if g is not None:
        return g
    w, lead = filled_workspace(model, family, partial(frames_buffers, room=frame_capacity(places)), ("q",), q)
    put_places(w, model, places)
    w.run()
    w.raise_for_status()
    if not lead and places.single:
        w.prepare(family, ("q",), ("pose",), (4, 4), places=places)
    return frame_results(w, lead, places, "pose", 4, 4)


def frame_results(w: Workspace, lead: tuple[int, ...], places: Places, name: str, *shape: int) -> np.ndarray:
    """A copy of an output of the frames, shape (*lead, n_frames, *shape), without n_frames for a single frame."""
    n, size = len(places.node), int(np.prod(shape))
    rows = w.host[name][:, : n * size].reshape((*lead, *(() if places.single else (n,)), *shape))
    return rows.copy()


def jacobian_buffers(model: Model, batch: int, room: int, *, rates: bool) -> Buffers:
    """Buffers of Jacobians of up to `room` frames, which `put_places` writes, and of their rates if `rates`."""
    size, inputs = (6 * model.nv * room,), {"q": (model.nq,), "v": (model.nv,)}
    outputs = {"pose": (16 * room,), "J": size, "J_dot": size if rates else (0,)}
    w = Buffers(model, batch, inputs, outputs, table_options=_TABLE_OPTIONS, extra_nodes=room)
    w.host["pose"].reshape(batch, room, 4, 4)[..., 3, 3] = 1.0
    (t, frames), x = tables_with_room(w, model, room), columns_with_room(w, model, room, paths=False)
    columns_shape = (batch, 6 * (model.n_nodes + room) * column_width(model))
    shapes = columns_shape, columns_shape if rates else (batch, 0)
    S, S_dot = (wp.zeros(shape, dtype=wp.float64, device=model.device) for shape in shapes)
    w.record(jacobian_kernel, [t, w.scratch, x, S, S_dot, frames, *(w.on_device[n] for n in (*inputs, *outputs))])
    return w


def _run_jacobian(model: Model, q: Any, v: Any, name: str, s: Any, which: str) -> np.ndarray:
    places = places_of(model, name, s)
    w, lead = _run_jacobians(model, q, v, places, rates=which == "J_dot")
    return frame_results(w, lead, places, which, 6, model.nv)


def jacobians_at(model: Model, q: np.ndarray, places: Places) -> tuple[np.ndarray, np.ndarray]:
    """Poses (..., n_places, 4, 4) and body Jacobians (..., n_places, 6, nv) of frames."""
    places = replace(places, single=False)
    w, lead = _run_jacobians(model, q, None, places, rates=False)
    return frame_results(w, lead, places, "pose", 4, 4), frame_results(w, lead, places, "J", 6, model.nv)


def jacobian_rates_at(
    model: Model, q: np.ndarray, v: np.ndarray, places: Places
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`jacobians_at`, and the rates of the Jacobians along v, (..., n_places, 6, nv)."""
    places = replace(places, single=False)
    w, lead = _run_jacobians(model, q, v, places, rates=True)
    J, J_dot = (frame_results(w, lead, places, name, 6, model.nv) for name in ("J", "J_dot"))
    return frame_results(w, lead, places, "pose", 4, 4), J, J_dot


def _run_jacobians(model: Model, q: Any, v: Any, places: Places, *, rates: bool) -> tuple[Workspace, tuple[int, ...]]:
    room, known = frame_capacity(places), ("q", "v") if rates else ("q",)  # without rates v stays zero there
    make = partial(jacobian_buffers, room=room, rates=rates)
    given = (q, np.zeros(model.nv) if v is None else v)[: len(known)]
    w, lead = filled_workspace(model, f"jacobian {'rates ' if rates else ''}{room}", make, known, *given)
    put_places(w, model, places)
    w.run()
    w.raise_for_status()
    return w, lead


@over_models("q")
def frame_jacobian(model: Model, q: ArrayLike, link_or_frame: str, s: ArrayLike = 1.0) -> np.ndarray:
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


@over_models("q", "v")
def frame_jacobian_derivative(
    model: Model, q: ArrayLike, v: ArrayLike, link_or_frame: str, s: ArrayLike = 1.0
) -> np.ndarray:
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
