"""Blocks of coordinates, as tables for kernels that eliminate one after the other from the tips to the base.

A block is what shares coordinates: one joint, or all intervals of a rod, with the nodes that move along with them. It
hangs on one node of another block, and matrices of its nodes have columns for its own coordinates alone, so that what
they take grows with the number of blocks and not with its square.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np
import warp as wp

from lissom.lie.types import by_reference
from lissom.model.model import Model
from lissom.passes.column_tables import ColumnsStruct, all_sites, node_rows, put, site_values


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
        model.cache["blocks"] = _make(model)
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


def _make(model: Model) -> BlocksStruct:
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
