"""Attachments of blocks to their parent blocks: tables and native loops for the inward sweeps of matrices.

A block is a set of nodes with common coordinates (blocks): a joint, or all intervals of a rod. Its path sums J are
constant beyond it. The subtree sums W of the columns beyond it are constant along its nodes. With J̃ the sums of its own
columns S, and p its parent node, the part of a matrix that two blocks have in common needs one product for the two
blocks instead of one for each node:

    rows of the block, columns of those before it   Σ S_αᵀ Σ_{k≥α} M_k J_p = (Σ M_kᵀ J̃_k)ᵀ J_p             (1)
    rows of those before it, its columns            Σ S_αᵀ W = J̃_pᵀ W                                      (2)

M_k of a node of the block includes M of all blocks attached to it. The subtree sum of a node then has only the columns
of its own block. (1) corresponds to composite inertias of rigid links (R. Featherstone, Rigid Body Dynamics Algorithms,
2008, §6.2). If loops, springs or contacts couple nodes of different blocks, if most columns belong to one block, or if
blocks are single joints on short paths, no attachments are used: each node has subtree sums for all columns on its
path.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import by_reference, mat6
from lissom.model.model import Model
from lissom.passes.blocks import coordinate_blocks
from lissom.passes.columns import (
    Columns,
    Matrix,
    column_ranges,
    column_tables,
    coupled_pairs,
    own_blocks,
    path_blocks,
    set_tables,
    sum_blocks,
)

native = native_functions("passes/columns.h")


# Ratio of the columns on the paths of all nodes to those of their own blocks, to use attachments; each of these costs
# as much as three registers of columns of a node
_LEAST_GAIN, _COST = 1.5, 3


@wp.struct
class AttachmentsStruct:
    """Tables of attachments, and buffers.

    By node: home (_start, _range): columns that it adds to its subtree sum. fold: columns of its rows of the result.
    of_node: attachment of its block, or −1. below: the same for the first node of a block, −1 for other nodes.
    By attachment: before, beyond: columns of (1) and of (2). row_start, row_stop: coordinates of the parent block.
    stored, own_stored: node of the parent block and of the block itself whose S replaces J, or −1. foreign_start,
    foreign_stop: columns of other blocks that share registers with the block.
    Buffers by attachment: Y_M, Y_N, Y_H: Σ Mᵀ J̃, Σ Nᵀ J̃ and Σ Hᵀ J̃. M, N, H: sums over the block and all blocks
    beyond. By node: M_attached, N_attached: sums of the attached blocks.
    """

    home_start: wp.array(dtype=wp.int32)
    home_range: wp.array(dtype=wp.int32)
    fold_start: wp.array(dtype=wp.int32)
    fold_range: wp.array(dtype=wp.int32)
    of_node: wp.array(dtype=wp.int32)
    below: wp.array(dtype=wp.int32)
    before_start: wp.array(dtype=wp.int32)
    before_range: wp.array(dtype=wp.int32)
    beyond_start: wp.array(dtype=wp.int32)
    beyond_range: wp.array(dtype=wp.int32)
    row_start: wp.array(dtype=wp.int32)
    row_stop: wp.array(dtype=wp.int32)
    stored: wp.array(dtype=wp.int32)
    own_stored: wp.array(dtype=wp.int32)
    foreign_start: wp.array(dtype=wp.int32)
    foreign_stop: wp.array(dtype=wp.int32)
    Y_M: Matrix
    Y_N: Matrix
    Y_H: Matrix
    M: wp.array2d(dtype=mat6)
    N: wp.array2d(dtype=mat6)
    H: wp.array2d(dtype=mat6)
    M_attached: wp.array2d(dtype=mat6)
    N_attached: wp.array2d(dtype=mat6)


Attachments = by_reference(AttachmentsStruct)


def attachments(model: Model, batch: int) -> AttachmentsStruct:
    """The tables of a model, and buffers for a batch."""
    one = model.models[0] if model.models else model
    tables = one.cached(("attachments",), lambda: _tables(one))
    z, width, count = AttachmentsStruct(), column_tables(model).width, len(tables["row_start"])
    set_tables(one, "attachments", z, tables)
    for name in ("Y_M", "Y_N", "Y_H"):
        setattr(z, name, wp.zeros((batch, 6 * count * width), dtype=wp.float64, device=model.device))
    for name in ("M", "N", "H"):
        setattr(z, name, wp.zeros((batch, count), dtype=mat6, device=model.device))
    for name in ("M_attached", "N_attached"):
        setattr(z, name, wp.zeros((batch, model.n_dynamic if count else 0), dtype=mat6, device=model.device))
    return z


def _tables(model: Model) -> dict[str, np.ndarray]:
    """The index tables of AttachmentsStruct, by name."""
    path, reach = path_blocks(model, model.n_dynamic), sum_blocks(model)
    blocks, home = coordinate_blocks(model), np.zeros_like(path)
    for block in blocks:
        for k in block.nodes:
            home[block.nodes] |= own_blocks(model, k)
    hanging = [block for block in blocks if block.parent >= 0 and block.v_stop > block.v_start]
    block_of = {k: block for block in blocks for k in block.nodes}
    tied = any((np.asarray(pair) >= 0).all() for pair in coupled_pairs(model))
    in_order = all(block.v_start >= block_of[block.parent].v_stop for block in hanging)
    if tied or not in_order or path.sum() < _LEAST_GAIN * (home.sum() + _COST * len(hanging)):
        hanging = []
    of_node, below = np.full(model.n_dynamic, -1), np.full(model.n_dynamic, -1)
    stored = {id(b): next((k for k in b.nodes if model.nodes.has_quaternion[k]), -1) for b in blocks}
    beyond = home.copy()
    for k in range(model.n_dynamic - 1, -1, -1):
        if model.nodes.parent[k] >= 0:
            beyond[model.nodes.parent[k]] |= beyond[k]
    for j, block in enumerate(hanging):
        of_node[block.nodes], below[block.nodes[0]] = j, j
    under = [block_of[block.parent] for block in hanging]
    first = [block.nodes[0] for block in hanging]
    each, folded = (home, home) if hanging else (path, reach)
    values = {"of_node": of_node, "below": below}
    ranges = {
        "home": each,
        "fold": folded,
        "before": path[first] & ~home[first],
        "beyond": beyond[first] & ~home[[b.nodes[0] for b in under]],
    }
    for name, flags in ranges.items():
        values[f"{name}_start"], values[f"{name}_range"] = column_ranges(flags)
    values |= {"row_start": [b.v_start for b in under], "row_stop": [b.v_stop for b in under]}
    values |= {"stored": [stored[id(b)] for b in under], "own_stored": [stored[id(b)] for b in hanging]}
    values |= {"foreign_start": [b.v_start // 8 * 8 for b in hanging], "foreign_stop": [b.v_start for b in hanging]}
    return {name: np.asarray(value, dtype=np.int32) for name, value in values.items()}


@wp.func_native(native("add_transposed_products"))
def add_transposed_products(
    x: Columns, z: Attachments, M: mat6, N: mat6, H: mat6, i: int, k: int, node: int, L: Matrix
):
    """Add Mᵀ L, Nᵀ L and Hᵀ L of node k, with the columns L of `node`, to the sums of its block for (1)."""
    ...


@wp.func_native(native("clear_products"))
def clear_products(x: Columns, z: Attachments, i: int):
    """Set Σ Mᵀ J̃, Σ Nᵀ J̃ and Σ Hᵀ J̃ of all attachments to zero."""
    ...


@wp.func_native(native("fold_between"))
def fold_between(
    x: Columns, start: wp.array(dtype=wp.int32), range: wp.array(dtype=wp.int32), attachment: int, first: int, stop:
    int,
    i: int, s_at: int, S: Matrix, v_at: int, V: Matrix, out: Matrix,
):  # fmt: skip
    """Rows first … stop − 1 of out += Sᵀ V on the columns listed for an attachment, S number s_at and V number v_at."""
    ...


@wp.func_native(native("clear_foreign_columns"))
def clear_foreign_columns(x: Columns, z: Attachments, attachment: int, i: int, k: int, W: Matrix):
    """Set the subtree sum of node k to zero on columns of other blocks that share registers with those of its block."""
    ...
