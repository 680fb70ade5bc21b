"""Which columns each node has, holds in its subtree and finds on its path, as tables for kernels.

The own columns of a node are M₁ Φ₁ + M₂ Φ₂, with Φ the strain basis at its two Gauss points or, for a GROUP node, Φ₁
the unit vectors of its twist. A column of Φ has few components that are not zero, mostly one: an *entry* is a block of
8 columns and one component, with its 8 values; a *row* is one value that is not zero. Sites beyond the nodes are strain
points of tendons, which have Φ₁ alone.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from lissom.lie.types import by_reference
from lissom.model.model import Model
from lissom.model.tables import device_array

Matrix = wp.array2d(dtype=wp.float64)


@wp.struct
class ColumnsStruct:
    """What every column algorithm needs of the topology: width of a row, how many running sums there are (none where
    the columns of a node count from the first of its block, -1 where rows overlap as block_tables says), the one each
    node adds to, the columns below each node, on its path and in its running sum, the straight tendon pieces and the
    loops that end at it, and the entries and rows of Φ at each site."""

    width: wp.int32
    n_slots: wp.int32
    slot: wp.array(dtype=wp.int32)
    subtree_start: wp.array(dtype=wp.int32)
    subtree_range: wp.array(dtype=wp.int32)
    path_start: wp.array(dtype=wp.int32)
    path_range: wp.array(dtype=wp.int32)
    reach_start: wp.array(dtype=wp.int32)
    reach_range: wp.array(dtype=wp.int32)
    loop_end_start: wp.array(dtype=wp.int32)
    loop_end: wp.array(dtype=wp.int32)
    entry_start: wp.array(dtype=wp.int32)
    entry_block: wp.array(dtype=wp.int32)
    entry_component: wp.array(dtype=wp.int32)
    entry_phi1: wp.array(dtype=wp.float64)
    entry_phi2: wp.array(dtype=wp.float64)
    row_start: wp.array(dtype=wp.int32)
    row_v: wp.array(dtype=wp.int32)
    row_component: wp.array(dtype=wp.int32)
    row_phi1: wp.array(dtype=wp.float64)
    row_phi2: wp.array(dtype=wp.float64)


Columns = by_reference(ColumnsStruct)


def column_width(model: Model) -> int:
    """Numbers in a row of columns."""
    return max((model.nv + 7) // 8, 1) * 8


def column_tables(model: Model) -> ColumnsStruct:
    """The column tables of a model on its device, made once; of what models have in common those of the first."""
    model = model.models[0] if model.models else model
    if "columns" not in model.cache:
        model.cache["columns"] = _make(model)
    return model.cache["columns"]


def _make(model: Model) -> ColumnsStruct:
    x = ColumnsStruct()
    width = column_width(model)
    x.width = width
    slot = _sum_slots(model)
    x.n_slots = int(slot.max(initial=-1)) + 1
    below = np.zeros((model.n_nodes, width // 8), dtype=bool)
    for k in range(model.n_nodes - 1, -1, -1):
        below[k] |= own_blocks(model, k)
        if model.nodes.parent[k] >= 0:
            below[model.nodes.parent[k]] |= below[k]
    start, ranges = stretches(below)
    sites = all_sites(model)
    values = {"slot": slot, "subtree_start": start, "subtree_range": ranges}
    values["path_start"], values["path_range"] = stretches(path_blocks(model, model.n_nodes))
    values["reach_start"], values["reach_range"] = _reach_ranges(model)
    values["loop_end_start"], values["loop_end"] = _pair_ends(model, model.loops.node)
    put(model, "columns", x, values | site_values(sites, np.zeros(len(sites), int)))
    return x


def all_sites(model: Model) -> list[np.ndarray]:
    """The rows of all nodes, then of the strain points of tendons."""
    sites = [node_rows(model, k) for k in range(model.n_nodes)]
    return sites + [_point_rows(model, k) for k in range(len(model.points.run_start))]


def put(model: Model, group: str, x: Any, values: dict[str, np.ndarray]) -> None:
    """Set arrays of a struct of tables, called by the name of their group."""
    for name, value in values.items():
        setattr(x, name, device_array(model, f"{group}.{name}", value, x._cls.vars[name].type.dtype))


def site_values(sites: list[np.ndarray], first: np.ndarray) -> dict[str, np.ndarray]:
    """The rows of all sites, and their entries with columns counted from the first of each site."""
    entries = [_entries(rows - [at, 0.0, 0.0, 0.0]) for rows, at in zip(sites, first)]
    values = {"row_start": np.cumsum([0] + [len(rows) for rows in sites])}
    values["entry_start"] = np.cumsum([0] + [len(blocks) for blocks in entries])
    rows = np.concatenate([np.zeros((0, 4)), *sites])
    for c, name in enumerate(("row_v", "row_component", "row_phi1", "row_phi2")):
        values[name] = rows[:, c]
    flat = np.concatenate([np.zeros((0, 18)), *entries])
    values |= {"entry_block": flat[:, 0], "entry_component": flat[:, 1]}
    return values | {"entry_phi1": flat[:, 2:10].ravel(), "entry_phi2": flat[:, 10:].ravel()}


def own_blocks(model: Model, k: int) -> np.ndarray:
    """Whether each block of 8 columns holds a column of node k itself."""
    first, stop = int(model.nodes.v_start[k]), int(model.nodes.v_stop[k])
    blocks = np.arange(column_width(model) // 8)
    return (stop > first) & (blocks >= first // 8) & (blocks < (stop + 7) // 8)


def stretches(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of flags of blocks as column ranges: where each row's ranges start, and the ranges."""
    edges = [8 * np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]]))) for row in blocks]
    start = np.cumsum([0] + [len(e) for e in edges])
    return start.astype(np.int32), np.concatenate([np.zeros(0, int), *edges]).astype(np.int32)


def node_rows(model: Model, k: int) -> np.ndarray:
    """Coordinate, component and value at the two Gauss points of all that is not zero in Φ of node k, shape (n, 4)."""
    first, stop = int(model.nodes.v_start[k]), int(model.nodes.v_stop[k])
    if model.nodes.has_quaternion[k]:
        return np.array([(v, v - first, 1.0, 0.0) for v in range(first, stop)]).reshape(-1, 4)
    return _run_rows(model.nodes.run_start[k], model.nodes.run_v[k], model.runs.phi1, model.runs.phi2)


def _point_rows(model: Model, k: int) -> np.ndarray:
    """The same of a strain point of a tendon."""
    return _run_rows(
        model.points.run_start[k], model.points.run_v[k], model.points.phi, np.zeros_like(model.points.phi)
    )


def _run_rows(start: np.ndarray, at: np.ndarray, phi1: np.ndarray, phi2: np.ndarray) -> np.ndarray:
    rows = []
    for c, (begin, end) in enumerate(pairwise(start)):
        rows += [(at[c] + e - begin, c, phi1[e], phi2[e]) for e in range(begin, end)]
    return np.array(rows, dtype=float).reshape(-1, 4)


def _entries(rows: np.ndarray) -> np.ndarray:
    """Rows of a site gathered by block and component: first column, component, 8 values Φ₁, 8 values Φ₂."""
    found: dict[tuple[int, int], np.ndarray] = {}
    for v, c, p1, p2 in rows:
        values = found.setdefault((int(v) // 8 * 8, int(c)), np.zeros(16))
        values[int(v) % 8], values[8 + int(v) % 8] = p1, p2
    return np.array([[*key, *found[key]] for key in sorted(found)]).reshape(-1, 18)


def _reach_ranges(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Column stretches that the running sum of each dynamic node may hold."""
    return stretches(reach_blocks(model))


def tied_pairs(model: Model) -> list[np.ndarray]:
    """Pairs of nodes, -1 the world, that straight tendon pieces, springs and loops tie together or contacts may."""
    world = model.contacts
    touching = np.stack([world.ball_node[world.pair[:, 0]], world.obstacle_node[world.pair[:, 1]]], axis=1)
    return [*model.segments.node, *model.loops.node, *model.springs.node, *np.unique(touching, axis=0)]


def reach_blocks(model: Model) -> np.ndarray:
    """Whether each block of eight columns holds one on the paths of all nodes of a node's subtree, or of those that
    something ties to these."""
    path = path_blocks(model, model.n_dynamic)
    reach = path.copy()
    for a, b in tied_pairs(model):
        for one, two in ((a, b), (b, a)):
            if one >= 0 and two >= 0:
                reach[one] |= path[two]
    for k in range(model.n_dynamic - 1, -1, -1):
        if model.nodes.parent[k] >= 0:
            reach[model.nodes.parent[k]] |= reach[k]
    return reach


def path_blocks(model: Model, nodes: int) -> np.ndarray:
    """Whether each block of eight columns holds a column of the path to each node."""
    blocks = np.zeros((nodes, column_width(model) // 8), dtype=bool)
    for k in range(nodes):
        if model.nodes.parent[k] >= 0:
            blocks[k] = blocks[model.nodes.parent[k]]
        blocks[k] |= own_blocks(model, k)
    return blocks


def _sum_slots(model: Model) -> np.ndarray:
    """Number of the running sum that each dynamic node adds to: that of its last child, so that a chain has one."""
    slot = np.full(model.n_dynamic, -1, dtype=np.int32)
    count = 0
    for k in range(model.n_dynamic - 1, -1, -1):
        if slot[k] < 0:
            slot[k], count = count, count + 1
        parent = int(model.nodes.parent[k])
        if parent >= 0 and slot[parent] < 0:
            slot[parent] = slot[k]
    return slot


def _pair_ends(model: Model, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What ties two nodes, at each of the two: where a node's start, and 2 pair + end."""
    ends: list[list[int]] = [[] for _ in range(model.n_dynamic)]
    for j, (a, b) in enumerate(pairs):
        if a >= 0 and b >= 0:
            ends[a].append(2 * j)
            ends[b].append(2 * j + 1)
    start = np.cumsum([0] + [len(e) for e in ends])
    return start.astype(np.int32), np.array([e for some in ends for e in some], dtype=np.int32)
