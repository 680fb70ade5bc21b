"""Where blocks of coordinates hang on others, as tables and native loops for the inward sweeps of matrices.

A block is what shares coordinates (blocks): a joint, or all intervals of a rod. Beyond a block its path sums J
are constant, and so are along its nodes the running sums W of the columns beyond it. With J̃ the sums of its own columns
S, and p the node that it hangs on, all that two blocks have in common needs one product for the two, not one a node:

    rows of the block, columns of those before it   Σ S_αᵀ Σ_{k≥α} M_k J_p = (Σ M_kᵀ J̃_k)ᵀ J_p             (1)
    rows of those before it, its columns            Σ S_αᵀ W = J̃_pᵀ W                                      (2)

M_k of a node of the block counts with all that hangs on it; a node then has running sums for the columns of its own
block alone. (1) is what composite inertias do for rigid links (R. Featherstone, Rigid Body Dynamics Algorithms, 2008,
§6.2). Where loops, springs or contacts tie nodes across blocks, or most columns belong to one block, each node counts
for all columns on its path as if the robot were one block.
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
    column_tables,
    own_blocks,
    path_blocks,
    put,
    reach_blocks,
    stretches,
    tied_pairs,
)

native = native_functions("passes/columns.h")


_LEAST_GAIN = 1.5  # by how many times more columns the paths of all nodes must have than their own blocks


@wp.struct
class JunctionsStruct:
    """By node the columns of its running sum that it adds to and whose rows it makes, its junction and that below its
    block's first node, or -1; by junction the columns of (1) and (2), the first coordinate and how many of the block it
    hangs on, nodes whose S stands for J there and in its own block, or -1, and columns of other blocks in its sum.
    Room for Σ Mᵀ J̃ of M, N and H by junction, the sums of these by junction, and the M and N that hang on nodes."""

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
    M_hanging: wp.array2d(dtype=mat6)
    N_hanging: wp.array2d(dtype=mat6)


Junctions = by_reference(JunctionsStruct)


def junctions(model: Model, batch: int) -> JunctionsStruct:
    """The tables of a model, and room for a batch."""
    one = model.models[0] if model.models else model
    tables = one.cached(("junctions",), lambda: _tables(one))
    z, width, count = JunctionsStruct(), column_tables(model).width, len(tables["row_start"])
    put(one, "junctions", z, tables)
    for name in ("Y_M", "Y_N", "Y_H"):
        setattr(z, name, wp.zeros((batch, 6 * count * width), dtype=wp.float64, device=model.device))
    for name in ("M", "N", "H"):
        setattr(z, name, wp.zeros((batch, count), dtype=mat6, device=model.device))
    for name in ("M_hanging", "N_hanging"):
        setattr(z, name, wp.zeros((batch, model.n_dynamic if count else 0), dtype=mat6, device=model.device))
    return z


def _tables(model: Model) -> dict[str, np.ndarray]:
    path, reach = path_blocks(model, model.n_dynamic), reach_blocks(model)
    blocks, home = coordinate_blocks(model), np.zeros_like(path)
    for block in blocks:
        for k in block.nodes:
            home[block.nodes] |= own_blocks(model, k)
    hanging = [block for block in blocks if block.parent >= 0 and block.v_stop > block.v_start]
    block_of = {k: block for block in blocks for k in block.nodes}
    tied = any((np.asarray(pair) >= 0).all() for pair in tied_pairs(model))
    in_order = all(block.v_start >= block_of[block.parent].v_stop for block in hanging)
    if tied or not in_order or path.sum() < _LEAST_GAIN * home.sum():
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
        values[f"{name}_start"], values[f"{name}_range"] = stretches(flags)
    values |= {"row_start": [b.v_start for b in under], "row_stop": [b.v_stop for b in under]}
    values |= {"stored": [stored[id(b)] for b in under], "own_stored": [stored[id(b)] for b in hanging]}
    values |= {"foreign_start": [b.v_start // 8 * 8 for b in hanging], "foreign_stop": [b.v_start for b in hanging]}
    return {name: np.asarray(value, dtype=np.int32) for name, value in values.items()}


@wp.func_native(native("add_transposed_products"))
def add_transposed_products(x: Columns, z: Junctions, M: mat6, N: mat6, H: mat6, i: int, k: int, node: int, L: Matrix):
    """Mᵀ L, Nᵀ L and Hᵀ L of node k, L those of `node`, added to what (1) needs of its block."""
    ...


@wp.func_native(native("clear_products"))
def clear_products(x: Columns, z: Junctions, i: int):
    """Σ Mᵀ J̃ of all junctions = 0."""
    ...


@wp.func_native(native("fold_between"))
def fold_between(
    x: Columns, start: wp.array(dtype=wp.int32), range: wp.array(dtype=wp.int32), junction: int, first: int, stop: int,
    i: int, s_at: int, S: Matrix, v_at: int, V: Matrix, out: Matrix,
):  # fmt: skip
    """Rows first … stop − 1 of out += Sᵀ V on the columns listed for a junction, S and V those at given places."""
    ...


@wp.func_native(native("forget_foreign"))
def forget_foreign(x: Columns, z: Junctions, junction: int, i: int, k: int, W: Matrix):
    """The running sum of node k = 0 on columns that share registers with those of its block and belong to others."""
    ...
