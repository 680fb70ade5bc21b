"""Blocks of coordinates and the loops that are open at each, as tables for kernels that eliminate blocks.

A block is a set of nodes with common coordinates: one joint, or all intervals of a rod, with the nodes fixed to them.
It is attached to a node of its parent block. Matrices of its nodes have columns for its own coordinates only, so that
their memory grows with the number of blocks and not with its square.

A loop is open at a block if one of its ends is at or beyond this block and the other is not. It closes at the block
where the two paths from its ends to the base meet; if they do not meet, at an additional last block. A block with all
blocks beyond it depends on the rest of the robot only by the motion of its parent node and the unknowns of its open
loops. This dependence is a small dense matrix, its *front*. There is no other fill-in. The time for a chain of links
with short loops is proportional to their number, and that for a square net of n rods is about n² with small fronts,
compared with n³ for a dense matrix.

The unknowns of a loop, which have consecutive numbers, are its forces, or six numbers (loop_unknowns).

Source: I. S. Duff, J. K. Reid, ACM Trans. Math. Softw. 9, 1983 (the multifrontal method), with the tree of the robot
for that of the elimination.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, final

import numpy as np
import warp as wp

from lissom.lie.types import by_reference
from lissom.model.model import Model
from lissom.passes.columns import ColumnsStruct, all_sites, kept_columns, node_rows, set_tables, site_values

STATE = 24  # length of a row of coefficients of the motion of a node: 18 numbers, padded to whole registers


@wp.struct
class BlocksStruct:
    """Tables of blocks, parents before children.

    count: number of blocks. By block: node_start, node: its nodes. parent: its parent node, −1 for the world. above:
    the block of that node. v_start, size: first coordinate and number of coordinates. width: size padded to whole
    registers. row_start: sum of the widths of the blocks before. square_start: start of its square matrix, in rows of
    `width`. By node: inside: its parent in the same block, or −1. By coordinate: is_prescribed.
    """

    count: wp.int32
    node_start: wp.array(dtype=wp.int32)
    node: wp.array(dtype=wp.int32)
    parent: wp.array(dtype=wp.int32)
    above: wp.array(dtype=wp.int32)
    v_start: wp.array(dtype=wp.int32)
    size: wp.array(dtype=wp.int32)
    width: wp.array(dtype=wp.int32)
    row_start: wp.array(dtype=wp.int32)
    square_start: wp.array(dtype=wp.int32)
    inside: wp.array(dtype=wp.int32)
    is_prescribed: wp.array(dtype=wp.int32)


Blocks = by_reference(BlocksStruct)


@final
@dataclass(eq=False)
class Block:
    """Nodes, parents before children, with the coordinates v_start … v_stop − 1, attached to node `parent`."""

    parent: int
    v_start: int
    v_stop: int
    nodes: list[int] = field(default_factory=list)


def coordinate_blocks(model: Model) -> list[Block]:
    """The blocks of the dynamic nodes, parents before children."""
    return model.cached(("coordinate blocks",), lambda: _find(model))


def _find(model: Model) -> list[Block]:
    """`coordinate_blocks` without a cache."""
    blocks: list[Block] = []
    of_node: list[Block] = []
    by_start: dict[int, Block] = {}
    table = model.nodes
    for k in range(model.n_dynamic):
        parent, first, stop = int(table.parent[k]), int(table.v_start[k]), int(table.v_stop[k])
        block = by_start.get(first) if stop > first else of_node[parent] if parent >= 0 else None
        if block is None:
            block = Block(parent, first, stop)
            blocks.append(block)
            if stop > first:
                by_start[first] = block
        block.nodes.append(k)
        of_node.append(block)
    return blocks


def squares(model: Model) -> np.ndarray:
    """Number of coordinates of each block, (n_blocks,)."""
    return np.array([block.v_stop - block.v_start for block in coordinate_blocks(model)], dtype=int)


def block_width(model: Model) -> int:
    """Length of a row of columns of a block: the largest number of coordinates, padded to whole registers."""
    return max((int(squares(model).max(initial=0)) + 7) // 8, 1) * 8


def block_tables(model: Model) -> BlocksStruct:
    """The tables of blocks of a model on its device; made once."""
    if "blocks" not in model.cache:
        model.cache["blocks"] = _make_blocks(model)
    return model.cache["blocks"]


def block_columns(model: Model) -> ColumnsStruct:
    """Column tables in which the columns of each node are counted from the first one of its block; made once. A batch
    of models uses those of its first model."""
    model = model.models[0] if model.models else model
    return kept_columns(model, "block columns", _make_block_columns)


def _make_block_columns(model: Model) -> ColumnsStruct:
    """`block_columns` without a cache."""
    x = ColumnsStruct()
    x.width = block_width(model)
    first = model.nodes.v_start[: model.n_dynamic]
    sites = [node_rows(model, k) for k in range(model.n_dynamic)]
    values = site_values(sites, first)
    stop = np.zeros(model.n_dynamic, dtype=int)
    for block in coordinate_blocks(model):
        stop[block.nodes] = (block.v_stop - block.v_start + 7) // 8 * 8
    values["path_start"] = 2 * np.arange(model.n_dynamic + 1)
    values["path_range"] = np.stack([0 * stop, stop], axis=1).ravel()
    set_tables(model, "block columns", x, values)
    return x


def band_columns(model: Model) -> ColumnsStruct:
    """Column tables of a block-diagonal matrix in compact storage; made once.

    Entry (r, c) is number r w + c, with the width w of the widest block, so that functions for dense matrices can write
    it. Rows overlap, but entries of blocks do not: those of a later row or block have larger numbers.
    """
    model = model.models[0] if model.models else model
    return kept_columns(model, "band columns", _make_band_columns)


def _make_band_columns(model: Model) -> ColumnsStruct:
    """`band_columns` without a cache."""
    x, sites = ColumnsStruct(), all_sites(model)
    x.width, x.n_slots = block_width(model), -1
    set_tables(model, "band columns", x, site_values(sites, np.zeros(len(sites), int)))
    return x


def band_size(model: Model) -> int:
    """Length of a matrix of band_columns."""
    return model.nv * block_width(model) + (model.nv + 7) // 8 * 8


def _make_blocks(model: Model) -> BlocksStruct:
    blocks, y = coordinate_blocks(model), BlocksStruct()
    of_node = np.full(model.n_dynamic, -1)
    for e, block in enumerate(blocks):
        of_node[block.nodes] = e
    parent = np.array([block.parent for block in blocks], dtype=int)
    size = squares(model)
    width = (size + 7) // 8 * 8
    parents = model.nodes.parent[: model.n_dynamic]
    is_prescribed = np.zeros(model.nv, dtype=int)
    is_prescribed[model.prescribed.dof] = 1
    y.count = len(blocks)
    values = {
        "node_start": np.cumsum([0] + [len(block.nodes) for block in blocks]),
        "node": np.array([k for block in blocks for k in block.nodes], dtype=int),
        "parent": parent,
        "above": np.where(parent < 0, -1, of_node[parent]),
        "v_start": np.array([block.v_start for block in blocks], dtype=int),
        "size": size,
        "width": width,
        "row_start": np.concatenate([[0], np.cumsum(width)]),
        "square_start": np.concatenate([[0], np.cumsum(size * width)]),
        "inside": np.where((parents >= 0) & (of_node[parents] == of_node), parents, -1),
        "is_prescribed": is_prescribed,
    }
    set_tables(model, "blocks", y, values)
    return y


@wp.struct
class FrontsStruct:
    """Tables of fronts.

    order: blocks, children before parents, with the additional block last. By block: size: number of unknowns of its
    front before loops close. closed: number of these that close there; they come first. width: size padded to whole
    registers. unknown_start, unknown: its unknowns. child_start, child: its child blocks. in_parent_start, in_parent,
    sign: for each open unknown its place in the front of the parent block, and the sign of the end beyond (+1 for A).
    end_start, end, end_node, end_place: ends of loops at its nodes (2 loop + side), node, and place of their first
    unknown in the front. inverse_C_start, rows_start, closed_factor_start, front_start: starts of its parts in the
    buffers. loop_start: first unknown of each loop. row_of: row of each unknown, or −1.
    """

    order: wp.array(dtype=wp.int32)
    size: wp.array(dtype=wp.int32)
    closed: wp.array(dtype=wp.int32)
    width: wp.array(dtype=wp.int32)
    unknown_start: wp.array(dtype=wp.int32)
    unknown: wp.array(dtype=wp.int32)
    child_start: wp.array(dtype=wp.int32)
    child: wp.array(dtype=wp.int32)
    in_parent_start: wp.array(dtype=wp.int32)
    in_parent: wp.array(dtype=wp.int32)
    sign: wp.array(dtype=wp.int32)
    end_start: wp.array(dtype=wp.int32)
    end: wp.array(dtype=wp.int32)
    end_node: wp.array(dtype=wp.int32)
    end_place: wp.array(dtype=wp.int32)
    inverse_C_start: wp.array(dtype=wp.int32)
    rows_start: wp.array(dtype=wp.int32)
    closed_factor_start: wp.array(dtype=wp.int32)
    front_start: wp.array(dtype=wp.int32)
    loop_start: wp.array(dtype=wp.int32)
    row_of: wp.array(dtype=wp.int32)


Fronts = by_reference(FrontsStruct)


@final
@dataclass(frozen=True, eq=False)
class FrontTables:
    """Tables of the fronts of a model, and sizes of buffers.

    inverse_C, rows, closed_factors: of B⁻¹ C, R and the factors of closed loops of all blocks. fronts: of the stack of
    stored fronts. work: of the largest front. longest_row: of the rows in the choice of independent rows. places: sum
    of the numbers of unknowns of all fronts. unknowns: number of unknowns.
    """

    tables: FrontsStruct
    inverse_C: int
    rows: int
    closed_factors: int
    fronts: int
    work: int
    longest_row: int
    places: int
    unknowns: int


def whole_registers(n: Any) -> Any:
    """n rounded up to a multiple of eight."""
    return (n + 7) // 8 * 8


def front_tables(model: Model, *, wide: bool) -> FrontTables:
    """The fronts of a model on its device; made once. `wide`: with six unknowns for each loop instead of its forces."""
    one = model.models[0] if model.models else model
    return one.cached(("fronts", wide), lambda: _make_fronts(one, wide))


def _paths_of_ends(model: Model) -> list[list[int]]:
    """For each end of each loop the blocks on its path to the base, and the additional last block."""
    blocks = coordinate_blocks(model)
    of_node = {k: e for e, block in enumerate(blocks) for k in block.nodes}
    paths = []
    for node in model.loops.node.ravel().tolist():
        path = []
        while node >= 0:
            path.append(of_node[node])
            node = blocks[of_node[node]].parent
        paths.append([*path, len(blocks)])
    return paths


def _children(model: Model) -> list[list[int]]:
    """Child blocks of each block; those attached to the world are children of the additional last block."""
    blocks = coordinate_blocks(model)
    of_node = {k: e for e, block in enumerate(blocks) for k in block.nodes}
    children: list[list[int]] = [[] for _ in range(len(blocks) + 1)]
    for e, block in enumerate(blocks):
        children[of_node[block.parent] if block.parent >= 0 else len(blocks)].append(e)
    return children


def _order(children: list[list[int]]) -> list[int]:
    """Blocks, children directly before their parents."""
    order, waiting = [], [len(children) - 1]
    while waiting:
        order.append(waiting.pop())
        waiting += children[order[-1]]
    return order[::-1]


def _make_fronts(model: Model, wide: bool) -> FrontTables:
    """`front_tables` without a cache."""
    paths, children = _paths_of_ends(model), _children(model)
    count, order = len(children), _order(children)
    rows = model.loops.row_start
    start = 6 * np.arange(len(rows)) if wide else rows
    opened: list[list[int]] = [[] for _ in range(count)]  # loops, by block
    closed: list[list[int]] = [[] for _ in range(count)]
    ends: list[list[int]] = [[] for _ in range(count)]
    for loop in range(len(rows) - 1):
        sides = paths[2 * loop], paths[2 * loop + 1]
        common = next(e for e in sides[0] if e in set(sides[1]))
        closed[common].append(loop)
        for side, path in enumerate(sides):
            for e in path[: path.index(common)]:
                opened[e].append(2 * loop + side)
            if path[0] < count - 1:
                ends[path[0]].append(2 * loop + side)
    closing = [[u for loop in loops for u in range(start[loop], start[loop + 1])] for loops in closed]
    open_unknowns = [[u for j in sides for u in range(start[j // 2], start[j // 2 + 1])] for sides in opened]
    unknown = [first + others for first, others in zip(closing, open_unknowns)]
    place = [{u: k for k, u in enumerate(unknowns)} for unknowns in unknown]
    parent = {child: e for e, blocks in enumerate(children) for child in blocks}
    in_parent = [[place[parent[e]][u] for u in open_unknowns[e]] if e in parent else [] for e in range(count)]
    sign = [[1 - 2 * (j % 2) for j in sides for _ in range(start[j // 2], start[j // 2 + 1])] for sides in opened]
    row_of = np.full(int(start[-1]), -1)
    for loop in range(len(rows) - 1):
        own = np.arange(rows[loop], rows[loop + 1])
        row_of[start[loop] : start[loop] + len(own)] = own
    size, n_closing = (np.array([len(unknowns) for unknowns in lists]) for lists in (unknown, closing))
    n = np.append(squares(model), 0)
    width, padded_n, n_open = whole_registers(size), whole_registers(n), size - n_closing
    factors = n_closing * (width + STATE) + (n_open + 6) * whole_registers(n_closing)
    fronts, stack_size = _stacked(order, children, (n_open + 6) * (whole_registers(n_open) + STATE))
    starts = {
        "inverse_C_start": n * width,
        "rows_start": size * padded_n,
        "closed_factor_start": factors,
        "unknown_start": size,
    }
    tables = FrontsStruct()
    set_tables(model, f"fronts {wide}", tables, {name: _starts(counts) for name, counts in starts.items()} | {
        "order": np.array(order), "size": size, "closed": n_closing, "width": width, "unknown": _flat(unknown),
        "child_start": _starts([len(x) for x in children]), "child": _flat(children),
        "in_parent_start": _starts([len(x) for x in in_parent]), "in_parent": _flat(in_parent), "sign": _flat(sign),
        "end_start": _starts([len(x) for x in ends]), "end": _flat(ends),
        "end_node": model.loops.node.ravel()[_flat(ends)],
        "end_place": np.array([place[e][start[j // 2]] for e, sides in enumerate(ends) for j in sides], dtype=int),
        "front_start": fronts, "loop_start": start, "row_of": row_of,
    })  # fmt: skip
    row_length = whole_registers(np.array([sum(int(n_open[child]) for child in blocks) for blocks in children]) + n)
    work = max(np.max((size + 6) * (width + STATE)), np.max(size * row_length))
    sizes = [int(starts[name].sum()) for name in ("inverse_C_start", "rows_start", "closed_factor_start")]
    return FrontTables(tables, *sizes, stack_size, int(work), int(row_length.max()), int(size.sum()), int(start[-1]))


def _stacked(order: list[int], children: list[list[int]], size: np.ndarray) -> tuple[np.ndarray, int]:
    """Start of each stored front on a stack, where it replaces those of its children, and the size of the stack."""
    at, top, most = np.zeros(len(size), dtype=int), 0, 0
    for e in order:
        at[e] = top = top - sum(int(size[f]) for f in children[e])
        top += int(size[e])
        most = max(most, top)
    return at, most


def _starts(counts: Any) -> np.ndarray:
    return np.array(list(accumulate(map(int, counts), initial=0)))


def _flat(lists: list[list[int]]) -> np.ndarray:
    return np.array([x for numbers in lists for x in numbers], dtype=int)
