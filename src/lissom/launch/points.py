"""Tables of a model with rows behind its nodes for further points of rods, on which frames may be.

Such tables belong to the buffers of one kernel family. Points of other frames are written into them before a launch.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.launch.buffers import Buffers
from lissom.launch.workspace import Workspace
from lissom.lie.types import by_reference, mat3, vec3
from lissom.model.model import Model
from lissom.model.points import Places
from lissom.model.tables import NODE_ROW, NodeRow, TablesStruct, altered, device_tables
from lissom.passes.columns import ColumnsStruct, column_ranges, column_tables, column_width
from lissom.robot.joints import MotionKind

_ONE, _SEVEN = np.eye(4), np.arange(7)


@wp.struct
class FrameRowsStruct:
    """count: numbers of frames and of further points, (2,). node: node of each frame, −1 for the world; R, p: its
    placement in the frame of that node."""

    count: wp.array(dtype=wp.int32)
    node: wp.array(dtype=wp.int32)
    R: wp.array(dtype=mat3)
    p: wp.array(dtype=vec3)


FrameRows = by_reference(FrameRowsStruct)


def frame_capacity(places: Places) -> int:
    """Number of frames for which a workspace has room: the next power of two."""
    return 1 << max(len(places.node) - 1, 0).bit_length()


def tables_with_room(w: Buffers, model: Model, room: int) -> tuple[TablesStruct, FrameRowsStruct]:
    """The tables of a model with room for `room` further points, and rows for as many frames."""
    base, frames, values = device_tables(model), FrameRowsStruct(), 6 * model.nv * room
    phi1 = _extended(w, "run_phi1", base.runs.phi1.numpy(), values, wp.float64)
    phi2 = _extended(w, "run_phi2", base.runs.phi2.numpy(), values, wp.float64)
    node = _extended(w, "rows of nodes", base.node.numpy(), room, NodeRow)
    t = altered(base, node=node, runs=altered(base.runs, phi1=phi1, phi2=phi2))
    frames.count = w.buffer("frames and points", (2,), wp.int32, common=True)
    frames.node = w.buffer("nodes of frames", (room,), wp.int32, common=True)
    frames.R = w.buffer("R of frames", (room,), mat3, common=True)
    frames.p = w.buffer("p of frames", (room,), vec3, common=True)
    return t, frames


def columns_with_room(w: Buffers, model: Model, room: int, *, paths: bool) -> ColumnsStruct:
    """The column tables of the nodes, with room for `room` further points, and for their paths if `paths`."""
    x, base, blocks = ColumnsStruct(), column_tables(model), column_width(model) // 8
    for name in ColumnsStruct.vars:
        setattr(x, name, getattr(base, name))
    entries = int(base.entry_start.numpy()[model.n_nodes])
    for name, size in (("entry_block", 1), ("entry_component", 1), ("entry_phi1", 8), ("entry_phi2", 8)):
        kept, dtype = getattr(base, name).numpy()[: entries * size], ColumnsStruct.vars[name].type.dtype
        setattr(x, name, _extended(w, name, kept, 6 * blocks * size * room, dtype))
    x.entry_start = _extended(w, "entry_start", base.entry_start.numpy()[: model.n_nodes + 1], room, wp.int32)
    if not paths:
        return x
    x.path_start = _extended(w, "path_start", base.path_start.numpy(), room, wp.int32)
    x.path_range = _extended(w, "path_range", base.path_range.numpy(), (blocks + 1) * room, wp.int32)
    return x


def _extended(w: Buffers, name: str, array: np.ndarray, more: int, dtype: Any) -> Any:
    """A buffer common to all instances: a copy of an array with `more` zeros behind it."""
    out = w.buffer(name, (len(array) + more,), dtype, common=True)
    w.host[name][: len(array)] = array
    return out


def put_places(w: Workspace, model: Model, places: Places) -> None:
    """Write the frames `places` into the tables of a workspace, unless they are there already."""
    if w.buffers.places is places:
        return
    host, n, m, first = w.host, len(places.node), len(places.h), model.n_nodes
    host["frames and points"][:] = n, m
    host["nodes of frames"][:n] = places.node
    host["R of frames"][:n], host["p of frames"][:n] = places.placement[:, :3, :3], places.placement[:, :3, 3]
    if m:
        _put_points(w, model, places, slice(first, first + m))
        if "entry_start" in host:
            _put_columns(w, model, places)
        if "path_start" in host:
            _put_paths(w, model, places)
    w.buffers.places = places


def _put_points(w: Workspace, model: Model, places: Places, at: slice) -> None:
    """Write the rows of further points as nodes; each of their strains depends on all modes of the rod."""
    rows, (m, _, modes) = w.host["rows of nodes"][at], places.Phi1.shape
    start = len(model.runs.phi1)
    for name, Phi in (("run_phi1", places.Phi1), ("run_phi2", places.Phi2)):
        w.host[name][start : start + Phi.size] = Phi.ravel()
    rows[:] = _row(places, modes)
    rows["run_start"] = (start + 6 * modes * np.arange(m))[:, None] + modes * _SEVEN
    rows["parent"], rows["h"], rows["kappa"] = places.parent, places.h, places.kappa
    rows["xi1"], rows["xi2"] = places.xi1, places.xi2
    is_placed = (places.G != _ONE).any(axis=(1, 2))
    if is_placed.any():
        rows["R"], rows["p"], rows["is_placed"] = places.G[:, :3, :3], places.G[:, :3, 3], is_placed


def _row(places: Places, modes: int) -> np.ndarray:
    """The entries of the row of a node that all points of a rod share, (1,)."""
    row: Any = np.zeros(1, dtype=NODE_ROW)
    row["R"], row["kind"], row["base"] = np.eye(3), MotionKind.EXP.value, places.base
    row["v_start"], row["v_stop"], row["run_v"] = places.v_start, places.v_start + modes, places.v_start
    row["q_shift"] = places.q_shift
    return row


def _put_columns(w: Workspace, model: Model, places: Places) -> None:
    """Write the columns of further points, as column_tables does for nodes.

    All columns of the rod are written, so that no entry of an earlier point remains.
    """
    host, m, own = w.host, len(places.h), _own_blocks(places)
    at, modes = places.v_start - 8 * int(own[0]), places.Phi1.shape[2]
    Phi = np.zeros((2, m, 6, 8 * len(own)))
    Phi[0, :, :, at : at + modes], Phi[1, :, :, at : at + modes] = places.Phi1, places.Phi2
    by_block = np.moveaxis(Phi.reshape(2, m, 6, len(own), 8), 2, 3).reshape(2, -1)
    first, each = int(host["entry_start"][model.n_nodes]), 6 * len(own)
    rows = slice(first, first + each * m)
    host["entry_block"][rows] = np.tile(np.repeat(8 * own, 6), m)
    host["entry_component"][rows] = np.tile(np.arange(6), m * len(own))
    for name, values in zip(("entry_phi1", "entry_phi2"), by_block):
        host[name][8 * rows.start : 8 * rows.stop] = values
    host["entry_start"][model.n_nodes + 1 : model.n_nodes + m + 1] = first + each * np.arange(1, m + 1)


def _put_paths(w: Workspace, model: Model, places: Places) -> None:
    """Write the ranges of columns on the paths of further points to the base."""
    host, nodes, m = w.host, model.n_nodes, len(places.h)
    start, ranges = column_ranges(_paths(model, places, host["path_start"], host["path_range"]))
    first = int(host["path_start"][nodes])
    host["path_start"][nodes + 1 : nodes + m + 1] = first + start[1:]
    host["path_range"][first : first + len(ranges)] = ranges


def _own_blocks(places: Places) -> np.ndarray:
    """Indices of the blocks of eight columns that contain a mode of the rod."""
    return np.arange(places.v_start // 8, (places.v_start + places.Phi1.shape[2] + 7) // 8)


def _paths(model: Model, places: Places, start: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """Whether each block of eight columns contains a column of the path to each point, (n_points, n_blocks)."""
    blocks = np.arange(column_width(model) // 8)
    paths = np.tile(np.isin(blocks, _own_blocks(places)), (len(places.h), 1))
    for row, parent in zip(paths, places.parent.tolist()):
        for a, b in ranges[start[parent] : start[parent + 1]].reshape(-1, 2).tolist() if parent >= 0 else ():
            row |= (blocks >= a // 8) & (blocks < b // 8)
    return paths
