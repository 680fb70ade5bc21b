"""Blocks of coordinates and the loops that are open at each, as tables for kernels that eliminate block by block.

A block is what shares coordinates: one joint, or all intervals of a rod, with the nodes that move along with them. It
hangs on one node of another block, and matrices of its nodes have columns for its own coordinates alone, so that what
they take grows with the number of blocks and not with its square.

A loop is open at a block that has one of its ends behind it and the other elsewhere, and is closed at the block where
the two ways from its ends to the base meet, or behind all blocks where they do not. What a block with all that hangs on
it answers to is the motion of the node that it hangs on and the forces of its open loops: its *front*, a small dense
matrix. No other fill arises, so that links in a row closed by short loops take a time proportional to their number, and
a square net of n rods about n² with small fronts, far from the n³ of a whole matrix.

A loop has so many unknowns, which stand one after the other: its forces, or six numbers.

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
from lissom.passes.columns import ColumnsStruct, all_sites, node_rows, put, site_values

STATE = 24  # numbers in a row that answers to the motion of a node: 18, in whole registers


@wp.struct
class BlocksStruct:
    """Blocks, parents before children: their number, the nodes of each, the node that each hangs on and the block of
    that (-1 for the world), its first coordinate, how many, and that in whole registers, and where its rows of one
    register and its square matrix start. By node the parent in the same block, or -1, and its number among those that
    other blocks hang on, or -1; by coordinate whether its motion is prescribed."""

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
    junction: wp.array(dtype=wp.int32)
    held: wp.array(dtype=wp.int32)


Blocks = by_reference(BlocksStruct)


@final
@dataclass(eq=False)
class Block:
    """Nodes, parents before children, that move by the coordinates v_start … v_stop - 1 on top of node `parent`."""

    parent: int
    v_start: int
    v_stop: int
    nodes: list[int] = field(default_factory=list)


def coordinate_blocks(model: Model) -> list[Block]:
    """The blocks of the dynamic nodes, parents before children."""
    return model.cached(("coordinate blocks",), lambda: _find(model))


def _find(model: Model) -> list[Block]:
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
    """Coordinates of each block."""
    return np.array([block.v_stop - block.v_start for block in coordinate_blocks(model)], dtype=int)


def junctions(model: Model) -> np.ndarray:
    """By node its number among the nodes that blocks hang on, or -1."""
    hangs = {block.parent for block in coordinate_blocks(model)} - {-1}
    numbers = np.full(model.n_dynamic, -1)
    numbers[sorted(hangs)] = range(len(hangs))
    return numbers


def longest_block(model: Model) -> int:
    """Nodes from the first to the last of one block, those of others between them counted, at most."""
    return max((block.nodes[-1] - block.nodes[0] + 1 for block in coordinate_blocks(model)), default=0)


def block_width(model: Model) -> int:
    """Numbers in a row of columns of any block."""
    return max((int(squares(model).max(initial=0)) + 7) // 8, 1) * 8


def block_tables(model: Model) -> BlocksStruct:
    """The blocks of a model on its device, made once."""
    if "blocks" not in model.cache:
        model.cache["blocks"] = _make_blocks(model)
    return model.cache["blocks"]


def block_columns(model: Model) -> ColumnsStruct:
    """Column tables where the columns of each node count from the first of its block, made once; of what models have
    in common those of the first."""
    model = model.models[0] if model.models else model
    if "block columns" not in model.cache:
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
        put(model, "block columns", x, values)
        model.cache["block columns"] = x
    return model.cache["block columns"]


def band_columns(model: Model) -> ColumnsStruct:
    """Column tables of a square matrix that has nothing beside the blocks on its diagonal, made once.

    Entry (r, c) stands at r w + c with the width w of the widest block, so that what fills in rows of all columns
    serves it: rows overlap, but no two entries of blocks meet, since those of a later row or block stand further on.
    """
    model = model.models[0] if model.models else model
    if "band columns" not in model.cache:
        x, sites = ColumnsStruct(), all_sites(model)
        x.width, x.n_slots = block_width(model), -1
        put(model, "band columns", x, site_values(sites, np.zeros(len(sites), int)))
        model.cache["band columns"] = x
    return model.cache["band columns"]


def band_size(model: Model) -> int:
    """Numbers of such a matrix."""
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
    held = np.zeros(model.nv, dtype=int)
    held[model.prescribed.dof] = 1
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
        "junction": junctions(model),
        "held": held,
    }
    put(model, "blocks", y, values)
    return y


@wp.struct
class FrontsStruct:
    """The order of the blocks, children before parents, with one behind all. By block: how many unknowns its front has
    before loops are closed, how many of these, which come first, are closed there, the first in whole registers, and
    which they are; the blocks that hang on it; where each open unknown stands in the front of the block below, and the
    sign of its end; the ends of loops at its nodes (2 loop + side), with the node and the place in the front; and where
    its parts start among factors and fronts. By loop where its unknowns start, by unknown its row, or -1."""

    order: wp.array(dtype=wp.int32)
    size: wp.array(dtype=wp.int32)
    closed: wp.array(dtype=wp.int32)
    width: wp.array(dtype=wp.int32)
    who_start: wp.array(dtype=wp.int32)
    who: wp.array(dtype=wp.int32)
    child_start: wp.array(dtype=wp.int32)
    child: wp.array(dtype=wp.int32)
    up_start: wp.array(dtype=wp.int32)
    up: wp.array(dtype=wp.int32)
    sign: wp.array(dtype=wp.int32)
    end_start: wp.array(dtype=wp.int32)
    end: wp.array(dtype=wp.int32)
    end_node: wp.array(dtype=wp.int32)
    end_at: wp.array(dtype=wp.int32)
    answer_start: wp.array(dtype=wp.int32)
    rows_start: wp.array(dtype=wp.int32)
    kept_start: wp.array(dtype=wp.int32)
    front_start: wp.array(dtype=wp.int32)
    loop_start: wp.array(dtype=wp.int32)
    row_of: wp.array(dtype=wp.int32)


Fronts = by_reference(FrontsStruct)


@final
@dataclass(frozen=True, eq=False)
class FrontTables:
    """Tables of the fronts of a model, and what their numbers take: of factors B⁻¹ C, rows R and closed loops, of
    fronts that wait for the block below, of the largest one at work and its longest row, and of unknowns by block
    and in all."""

    tables: FrontsStruct
    answers: int
    rows: int
    kept: int
    fronts: int
    work: int
    widest: int
    places: int
    unknowns: int


def whole_registers(n: Any) -> Any:
    """n rounded up to a multiple of eight."""
    return (n + 7) // 8 * 8


def front_tables(model: Model, *, wide: bool) -> FrontTables:
    """The fronts on the device of a model, made once: with six unknowns a loop, or with those of its forces alone."""
    one = model.models[0] if model.models else model
    return one.cached(("fronts", wide), lambda: _make_fronts(one, wide))


def _ways(model: Model) -> list[list[int]]:
    """Of each end of each loop the blocks from its own to the base, and the one behind all; of the world that alone."""
    blocks = coordinate_blocks(model)
    of_node = {k: e for e, block in enumerate(blocks) for k in block.nodes}
    ways = []
    for node in model.loops.node.ravel().tolist():
        way = []
        while node >= 0:
            way.append(of_node[node])
            node = blocks[of_node[node]].parent
        ways.append([*way, len(blocks)])
    return ways


def _children(model: Model) -> list[list[int]]:
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
    ways, children = _ways(model), _children(model)
    count, order = len(children), _order(children)
    rows = model.loops.row_start
    start = 6 * np.arange(len(rows)) if wide else rows
    opened: list[list[int]] = [[] for _ in range(count)]  # loops, by block
    closed: list[list[int]] = [[] for _ in range(count)]
    ends: list[list[int]] = [[] for _ in range(count)]
    for loop in range(len(rows) - 1):
        sides = ways[2 * loop], ways[2 * loop + 1]
        meets = next(e for e in sides[0] if e in set(sides[1]))
        closed[meets].append(loop)
        for side, way in enumerate(sides):
            for e in way[: way.index(meets)]:
                opened[e].append(2 * loop + side)
            if way[0] < count - 1:
                ends[way[0]].append(2 * loop + side)
    unknowns = [[u for j in some for u in range(start[j], start[j + 1])] for some in closed]
    who = [
        own + [u for j in some for u in range(start[j // 2], start[j // 2 + 1])] for own, some in zip(unknowns, opened)
    ]
    at = [{u: k for k, u in enumerate(some)} for some in who]
    below = {f: e for e, some in enumerate(children) for f in some}
    up = [[at[below[e]][u] for u in who[e][len(unknowns[e]) :]] if e in below else [] for e in range(count)]
    sign = [[1 - 2 * (j % 2) for j in some for _ in range(start[j // 2], start[j // 2 + 1])] for some in opened]
    row_of = np.full(int(start[-1]), -1)
    for loop in range(len(rows) - 1):
        held = np.arange(rows[loop], rows[loop + 1])
        row_of[start[loop] : start[loop] + len(held)] = held
    size, shut = np.array([len(some) for some in who]), np.array([len(some) for some in unknowns])
    moves = np.append(squares(model), 0)
    width, tall, left = whole_registers(size), whole_registers(moves), size - shut
    kept = shut * (width + STATE) + (left + 6) * whole_registers(shut)
    fronts, most = _stacked(order, children, (left + 6) * (whole_registers(left) + STATE))
    starts = {"answer_start": moves * width, "rows_start": size * tall, "kept_start": kept, "who_start": size}
    tables = FrontsStruct()
    put(model, f"fronts {wide}", tables, {name: _starts(n) for name, n in starts.items()} | {
        "order": np.array(order), "size": size, "closed": shut, "width": width, "who": _flat(who),
        "child_start": _starts([len(x) for x in children]), "child": _flat(children),
        "up_start": _starts([len(x) for x in up]), "up": _flat(up), "sign": _flat(sign),
        "end_start": _starts([len(x) for x in ends]), "end": _flat(ends),
        "end_node": model.loops.node.ravel()[_flat(ends)],
        "end_at": np.array([at[e][start[j // 2]] for e, some in enumerate(ends) for j in some], dtype=int),
        "front_start": fronts, "loop_start": start, "row_of": row_of,
    })  # fmt: skip
    long = whole_registers(np.array([sum(int(left[f]) for f in some) for some in children]) + moves)
    work = max(np.max((size + 6) * (width + STATE)), np.max(size * long))
    sizes = [int(starts[name].sum()) for name in ("answer_start", "rows_start", "kept_start")]
    return FrontTables(tables, *sizes, most, int(work), int(long.max()), int(size.sum()), int(start[-1]))


def _stacked(order: list[int], children: list[list[int]], size: np.ndarray) -> tuple[np.ndarray, int]:
    """Where each front waits, in the place of those it takes in, and how much room they need."""
    at, top, most = np.zeros(len(size), dtype=int), 0, 0
    for e in order:
        at[e] = top = top - sum(int(size[f]) for f in children[e])
        top += int(size[e])
        most = max(most, top)
    return at, most


def _starts(counts: Any) -> np.ndarray:
    return np.array(list(accumulate(map(int, counts), initial=0)))


def _flat(lists: list[list[int]]) -> np.ndarray:
    return np.array([x for some in lists for x in some], dtype=int)
