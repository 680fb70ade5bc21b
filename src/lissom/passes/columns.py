"""Matrices with one column for each velocity coordinate: tables of the columns of each node, and loops over them.

The columns of a node itself are M₁ Φ₁ + M₂ Φ₂, with Φ the strain basis at its two Gauss points or, for a GROUP node, Φ₁
the unit vectors of its twist. A column of Φ has few nonzero components, mostly one. An *entry* is a block of 8 columns
and one component, with its 8 values; a *row* is one nonzero value. A *site* is a node, or a strain point of a tendon,
which has Φ₁ only.

A 6 x nv matrix of node k is six rows of `width` numbers, width = nv rounded up to a multiple of 8, from 6 k width on.
Loops take 8 columns at once, which fill a vector register. They only touch the ranges of columns of the node's subtree,
which `subtree_*` lists. A subtree sum belongs to a slot, which the nodes of a chain share, so that the sum over a
subtree grows in place on its way inward. The loops over columns are native code: they are sums of products, and Warp's
array indexing would cost more than the products.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from lissom.lie import so3
from lissom.lie.native import native_functions
from lissom.lie.types import by_reference, mat3, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import device_array

native = native_functions("passes/columns.h")

Matrix = wp.array2d(dtype=wp.float64)


@wp.struct
class ColumnsStruct:
    """Column tables.

    width: length of a row. n_slots: number of subtree sums; 0 in block_columns, −1 in band_columns. By node: slot: its
    subtree sum. subtree, path, sum (_start, _range): ranges of columns of its subtree, of its path, and in its
    subtree sum. loop_end_start, loop_end: ends of loops at it. By site: entry_start, entry_block, entry_component,
    entry_phi1, entry_phi2: entries of Φ₁ and Φ₂. row_start, row_v, row_component, row_phi1, row_phi2: their rows.
    """

    width: wp.int32
    n_slots: wp.int32
    slot: wp.array(dtype=wp.int32)
    subtree_start: wp.array(dtype=wp.int32)
    subtree_range: wp.array(dtype=wp.int32)
    path_start: wp.array(dtype=wp.int32)
    path_range: wp.array(dtype=wp.int32)
    sum_start: wp.array(dtype=wp.int32)
    sum_range: wp.array(dtype=wp.int32)
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


@wp.struct
class DerivativeSumsStruct:
    """Columns of nodes and their sums, for derivatives with respect to q, v and a.

    S: columns of each node. J, J_R, J_Q, J_E: path sums of S, R, Q and E = Ṡ + R. W_a, W_v, W_q: subtree sums of
    (3)-(5) of inverse_dynamics_derivatives.
    """

    S: Matrix
    J: Matrix
    J_R: Matrix
    J_Q: Matrix
    J_E: Matrix
    W_a: Matrix
    W_v: Matrix
    W_q: Matrix


DerivativeSums = by_reference(DerivativeSumsStruct)


@wp.struct
class NewtonSumsStruct:
    """Columns of nodes and their path sums, for the matrix of newton_matrix.

    S, S_T: columns of each node, and S T of GROUP nodes. J, J_P, J_R: path sums of S T, P and R'.
    """

    S: Matrix
    S_T: Matrix
    J: Matrix
    J_P: Matrix
    J_R: Matrix


NewtonSums = by_reference(NewtonSumsStruct)


@wp.struct
class NewtonPointStruct:
    """State at which the matrix of newton_matrix is taken.

    v, a: velocity and acceleration. move: the step Δ. c0, c1: derivatives of a and v by Δ. acc_base: acceleration of
    the base.
    """

    v: Matrix
    a: Matrix
    move: Matrix
    c0: wp.float64
    c1: wp.float64
    acc_base: vec6


NewtonPoint = by_reference(NewtonPointStruct)


@wp.func
def newton_point(v: Matrix, a: Matrix, move: Matrix, c0: wp.float64, c1: wp.float64, gravity: vec3):
    """A NewtonPoint under gravity, which is an upward acceleration of the base."""
    point = NewtonPointStruct()
    point.v = v
    point.a = a
    point.move = move
    point.c0 = c0
    point.c1 = c1
    point.acc_base = vec6(so3.ZERO, so3.ZERO, so3.ZERO, -gravity[0], -gravity[1], -gravity[2])
    return point


def column_width(model: Model) -> int:
    """Length of a row of columns: nv rounded up to a multiple of 8, at least 8."""
    return max((model.nv + 7) // 8, 1) * 8


def column_tables(model: Model) -> ColumnsStruct:
    """The column tables of a model on its device; made once. A batch of models uses those of its first model."""
    model = model.models[0] if model.models else model
    return kept_columns(model, "columns", _make)


def kept_columns(model: Model, name: str, make: Callable[[Model], ColumnsStruct]) -> ColumnsStruct:
    """Column tables from the cache of a model. Models of a batch whose bases are the same share them."""
    if name not in model.cache:
        store, key = model.cache.get("store", {}), (name, id(model.runs), id(model.points))
        if key not in store:
            store[key] = make(model), model.runs, model.points  # keeps their ids
        model.cache[name] = store[key][0]
    return model.cache[name]


def _make(model: Model) -> ColumnsStruct:
    """`column_tables` without a cache."""
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
    start, ranges = column_ranges(below)
    sites = all_sites(model)
    values = {"slot": slot, "subtree_start": start, "subtree_range": ranges}
    values["path_start"], values["path_range"] = column_ranges(path_blocks(model, model.n_nodes))
    values["sum_start"], values["sum_range"] = _sum_ranges(model)
    values["loop_end_start"], values["loop_end"] = _pair_ends(model, model.loops.node)
    set_tables(model, "columns", x, values | site_values(sites, np.zeros(len(sites), int)))
    return x


def all_sites(model: Model) -> list[np.ndarray]:
    """Rows (n, 4) of all sites: of all nodes, then of the strain points of tendons."""
    sites = [node_rows(model, k) for k in range(model.n_nodes)]
    return sites + [_point_rows(model, k) for k in range(len(model.points.run_start))]


def set_tables(model: Model, group: str, x: Any, values: dict[str, np.ndarray]) -> None:
    """Set the arrays of a struct of tables; `group` is part of their names on the device."""
    for name, value in values.items():
        setattr(x, name, device_array(model, f"{group}.{name}", value, x._cls.vars[name].type.dtype))


def site_values(sites: list[np.ndarray], first: np.ndarray) -> dict[str, np.ndarray]:
    """The tables of rows of all sites, and of their entries with columns counted from `first` of each site."""
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
    """Whether each block of 8 columns contains a column of node k itself, (n_blocks,)."""
    first, stop = int(model.nodes.v_start[k]), int(model.nodes.v_stop[k])
    blocks = np.arange(column_width(model) // 8)
    return (stop > first) & (blocks >= first // 8) & (blocks < (stop + 7) // 8)


def column_ranges(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Flags of blocks of 8 columns (n, n_blocks) as column ranges: starts of the ranges of each row, and the ranges."""
    edges = [8 * np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]]))) for row in blocks]
    start = np.cumsum([0] + [len(e) for e in edges])
    return start.astype(np.int32), np.concatenate([np.zeros(0, int), *edges]).astype(np.int32)


def node_rows(model: Model, k: int) -> np.ndarray:
    """Coordinate, component, and values at the two Gauss points, of the nonzero entries in Φ of node k, shape (n,
    4)."""
    first, stop = int(model.nodes.v_start[k]), int(model.nodes.v_stop[k])
    if model.nodes.has_quaternion[k]:
        return np.array([(v, v - first, 1.0, 0.0) for v in range(first, stop)]).reshape(-1, 4)
    return _run_rows(model.nodes.run_start[k], model.nodes.run_v[k], model.runs.phi1, model.runs.phi2)


def _point_rows(model: Model, k: int) -> np.ndarray:
    """As `node_rows`, for strain point k of tendons."""
    return _run_rows(
        model.points.run_start[k], model.points.run_v[k], model.points.phi, np.zeros_like(model.points.phi)
    )


def _run_rows(start: np.ndarray, at: np.ndarray, phi1: np.ndarray, phi2: np.ndarray) -> np.ndarray:
    rows = []
    for c, (begin, end) in enumerate(pairwise(start)):
        rows += [(at[c] + e - begin, c, phi1[e], phi2[e]) for e in range(begin, end)]
    return np.array(rows, dtype=float).reshape(-1, 4)


def _entries(rows: np.ndarray) -> np.ndarray:
    """Rows of a site as entries (n, 18): first column of the block, component, 8 values of Φ₁, 8 values of Φ₂."""
    found: dict[tuple[int, int], np.ndarray] = {}
    for v, c, p1, p2 in rows:
        values = found.setdefault((int(v) // 8 * 8, int(c)), np.zeros(16))
        values[int(v) % 8], values[8 + int(v) % 8] = p1, p2
    return np.array([[*key, *found[key]] for key in sorted(found)]).reshape(-1, 18)


def _sum_ranges(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Column ranges in the subtree sum of each dynamic node."""
    return column_ranges(sum_blocks(model))


def coupled_pairs(model: Model) -> list[np.ndarray]:
    """Pairs of nodes, −1 for the world, coupled by loops, joints of constraints, possible contacts or other
    forces."""
    world = model.contacts
    contacts = np.stack([world.ball_node[world.pair[:, 0]], world.obstacle_node[world.pair[:, 1]]], axis=1)
    joints = model.constraint_functions.tied_nodes(model.loops.node)
    return [*model.tied_nodes, *model.loops.node, *joints, *np.unique(contacts, axis=0)]


def sum_blocks(model: Model) -> np.ndarray:
    """Whether each block of 8 columns is in the subtree sum of each dynamic node, (n_dynamic, n_blocks): it has a
    column on the path of a node of the subtree, or of a node coupled to one of these."""
    path = path_blocks(model, model.n_dynamic)
    reach = path.copy()
    for a, b in coupled_pairs(model):
        for one, two in ((a, b), (b, a)):
            if one >= 0 and two >= 0:
                reach[one] |= path[two]
    for k in range(model.n_dynamic - 1, -1, -1):
        if model.nodes.parent[k] >= 0:
            reach[model.nodes.parent[k]] |= reach[k]
    return reach


def path_blocks(model: Model, nodes: int) -> np.ndarray:
    """Whether each block of 8 columns contains a column of the path to each node, (nodes, n_blocks)."""
    blocks = np.zeros((nodes, column_width(model) // 8), dtype=bool)
    for k in range(nodes):
        if model.nodes.parent[k] >= 0:
            blocks[k] = blocks[model.nodes.parent[k]]
        blocks[k] |= own_blocks(model, k)
    return blocks


def _sum_slots(model: Model) -> np.ndarray:
    """Number of the subtree sum of each dynamic node: that of its last child, so that a chain has one sum."""
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
    """Ends 2 pair + side of pairs of nodes, sorted by node: starts of the ends of each node, and the ends."""
    ends: list[list[int]] = [[] for _ in range(model.n_dynamic)]
    for j, (a, b) in enumerate(pairs):
        if a >= 0 and b >= 0:
            ends[a].append(2 * j)
            ends[b].append(2 * j + 1)
    start = np.cumsum([0] + [len(e) for e in ends])
    return start.astype(np.int32), np.array([e for group in ends for e in group], dtype=np.int32)


@wp.func_native(native("put_turned_columns"))
def put_turned_columns(x: Columns, i: int, k: int, A: mat3, B: mat3, S: Matrix):
    """S_k = [A, B] Φ₁ on the blocks of a node with one Gauss point (Φ₂ = 0)."""
    ...


@wp.func_native(native("put_columns"))
def put_columns(x: Columns, i: int, k: int, A1: mat3, B1: mat3, A2: mat3, B2: mat3, S: Matrix):
    """S_k = [A₁, B₁] Φ₁ + [A₂, B₂] Φ₂ on the node's own blocks, a pair [A, B] standing for [[A, 0], [B, A]]."""
    ...


@wp.func_native(native("extend_path"))
def extend_path(
    x: Columns,
    parent: int,
    i: int,
    k: int,
    A1: mat3,
    B1: mat3,
    A2: mat3,
    B2: mat3,
    J: Matrix,
):
    """J_k = J_parent + [A₁, B₁] Φ₁ + [A₂, B₂] Φ₂ on the columns of the path to k."""
    ...


@wp.func
def copy_path(x: Columns, parent: int, i: int, k: int, J: Matrix):
    """J_k = J_parent on the columns of the path to k; columns of k may then be added."""
    none = mat3()
    extend_path(x, parent, i, k, none, none, none, none, J)


@wp.func_native(native("clear_sums"))
def clear_sums(x: Columns, i: int, V: Matrix):
    """All subtree sums V = 0."""
    ...


@wp.func_native(native("add_product"))
def add_product(x: Columns, M: mat6, first: int, stop: int, i: int, k: int, S: Matrix, V: Matrix):
    """V += M S_k on the node's own columns first … stop − 1, V its subtree sum."""
    ...


@wp.func_native(native("fold_rows"))
def fold_rows(
    x: Columns,
    x_start: wp.array(dtype=wp.int32),
    x_range: wp.array(dtype=wp.int32),
    first: int,
    stop: int,
    i: int,
    k: int,
    S: Matrix,
    V: Matrix,
    out: Matrix,
):
    """Rows first … stop − 1 of out += S_kᵀ V on the listed columns of node k, V its subtree sum."""
    ...


@wp.func_native(native("pass_to_parent"))
def pass_to_parent(
    x: Columns,
    x_start: wp.array(dtype=wp.int32),
    x_range: wp.array(dtype=wp.int32),
    parent: int,
    i: int,
    k: int,
    V: Matrix,
):
    """Add the subtree sum of k to that of its parent on the listed columns of k, unless both are the same."""
    ...


@wp.func_native(native("add_transposed"))
def add_transposed(nv: int, width: int, i: int, A: Matrix, B: Matrix, out: Matrix):
    """out = A + Bᵀ, all nv x width."""
    ...


@wp.func_native(native("clear_rows"))
def clear_rows(nv: int, width: int, i: int, out: Matrix):
    """out = 0, nv x width."""
    ...


@wp.func
def column(x: Columns, S: Matrix, i: int, k: int, j: int) -> vec6:
    """Column j of the matrix of node k."""
    at = 6 * k * x.width + j
    w = x.width
    return vec6(S[i, at], S[i, at + w], S[i, at + 2 * w], S[i, at + 3 * w], S[i, at + 4 * w], S[i, at + 5 * w])


@wp.func
def put_column(x: Columns, i: int, k: int, j: int, y: vec6, S: Matrix):
    """Column j of the matrix of node k = y."""
    for r in range(6):
        S[i, (6 * k + r) * x.width + j] = y[r]


@wp.func
def add_column(x: Columns, i: int, k: int, j: int, y: vec6, S: Matrix):
    """Column j of the matrix of node k += y."""
    for r in range(6):
        at = (6 * k + r) * x.width + j
        S[i, at] = S[i, at] + y[r]


@wp.func_native(native("add_derivative_products"))
def add_derivative_products(
    x: Columns, start: wp.array(dtype=wp.int32), range: wp.array(dtype=wp.int32), i: int, k: int, M: mat6, N: mat6,
    H: mat6, sums: DerivativeSums,
):  # fmt: skip
    """W_a += M J, W_v += M J_E + N J and W_q += M J_Q + N J_R + H J of node k, on its listed columns."""
    ...


@wp.func_native(native("fold_derivatives"))
def fold_derivatives(
    x: Columns, start: wp.array(dtype=wp.int32), range: wp.array(dtype=wp.int32), first: int, stop: int, i: int, k: int,
    sums: DerivativeSums, da: Matrix, dv: Matrix, dq: Matrix,
):  # fmt: skip
    """Rows first … stop − 1 of da += S_kᵀ W_a, dv += S_kᵀ W_v and dq += S_kᵀ W_q on the listed columns of node k."""
    ...


@wp.func_native(native("add_weighted_products"))
def add_weighted_products(
    x: Columns,
    start: wp.array(dtype=wp.int32),
    range: wp.array(dtype=wp.int32),
    i: int,
    k: int,
    M: mat6,
    N: mat6,
    H: mat6,
    J_P: Matrix,
    J_R: Matrix,
    J: Matrix,
    W: Matrix,
):
    """W += M J_P + N J_R + H J of node k, on its listed columns."""
    ...


@wp.func_native(native("add_cross_product"))
def add_cross_product(
    x: Columns,
    i: int,
    to: int,
    from_: int,
    M: mat6,
    J: Matrix,
    W: Matrix,
):
    """W += M J of node `from_`, on the columns of its path, W the subtree sum of node `to`."""
    ...


@wp.func_native(native("add_point_block"))
def add_point_block(x: Columns, i: int, site: int, H: mat6, out: Matrix):
    """out += Φᵀ H Φ at one strain point."""
    ...


@wp.func_native(native("add_to_row"))
def add_to_row(
    x: Columns, i: int, k: int, number: int, y_acc: vec6, y_twist: vec6, J_acc: Matrix, J_twist: Matrix, out: Matrix
):
    """Row `number` of out += y_accᵀ J_acc + y_twistᵀ J_twist of node k, on the columns of its path."""
    ...
