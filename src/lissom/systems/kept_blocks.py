"""Blocks of robots with loops, whose columns are all kept, inside kernels.

What newton_blocks makes of a block just before its elimination stands here for all blocks at once, since a matrix may
be factored twice (closed_blocks). The mass matrix is one of these that x alone sees, with inertias in place of H.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie import so3
from lissom.lie.types import by_reference, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import kinds, traversal
from lissom.passes.block_tables import (
    BlocksStruct,
    band_columns,
    band_size,
    block_columns,
    block_tables,
    block_width,
    squares,
)
from lissom.passes.column_tables import ColumnsStruct, Matrix
from lissom.passes.scratch import Scratch
from lissom.systems.armature import add_armature_rows
from lissom.systems.articulated import sum_path


@wp.struct
class KeptBlocksStruct:
    """Tables; by node columns S, S T and path sums J, J_P, J_R and L within its block, and M, N and H; local + K; by
    block where it is seen from, the factors of B with the rows swapped, B⁻¹ G, V, the wrench Σ ĉ and y."""

    x: ColumnsStruct
    band: ColumnsStruct
    y: BlocksStruct
    S: Matrix
    S_T: Matrix
    J: Matrix
    J_P: Matrix
    J_R: Matrix
    L: Matrix
    M: wp.array2d(dtype=mat6)
    N: wp.array2d(dtype=mat6)
    H: wp.array2d(dtype=mat6)
    K: Matrix
    centre: wp.array2d(dtype=vec3)
    B: Matrix
    pivots: wp.array2d(dtype=wp.int32)
    answer: Matrix
    V: Matrix
    wrench: wp.array2d(dtype=vec6)
    state: wp.array2d(dtype=vec6)


KeptBlocks = by_reference(KeptBlocksStruct)


def kept_blocks(model: Model, batch: int, *, of_mass: bool = False) -> KeptBlocksStruct:
    """Buffers for a batch; of a mass matrix all path sums are one."""
    b, size = KeptBlocksStruct(), squares(model)
    b.x, b.band, b.y = block_columns(model), band_columns(model), block_tables(model)
    width = (size + 7) // 8 * 8
    rows, blocks = int(width.sum()), len(size)
    counts = dict.fromkeys(("S", "J"), 6 * model.n_dynamic * block_width(model))
    if not of_mass:
        counts |= dict.fromkeys(("S_T", "J_P", "J_R", "L"), counts["J"])
    counts |= dict.fromkeys(("M", "N", "H"), model.n_dynamic)
    counts |= {"K": band_size(model), "B": int((size * width).sum()), "pivots": rows, "answer": 24 * model.nv}
    counts |= {"V": 6 * rows, "centre": blocks, "wrench": blocks, "state": 3 * blocks}
    for name, count in counts.items():
        dtype = KeptBlocksStruct.vars[name].type.dtype
        setattr(b, name, wp.zeros((batch, count), dtype=dtype, device=model.device))
    if of_mass:
        b.S_T, b.L, b.J_R, b.J_P = b.S, b.J, b.J, b.J
    return b


@wp.func(inline=False)
def make_mass_blocks(t: Tables, s: Scratch, b: KeptBlocks, i: int):
    """What factor_closed_blocks needs for M, from the poses left in s: inertias in place of H, and sums along the path
    of the columns S in that of all others."""
    for j in range(b.K.shape[1]):
        b.K[i, j] = so3.ZERO
    add_armature_rows(t, b.band.width, i, so3.ONE, b.K)
    for e in range(b.y.count):
        centre = s.node[i, b.y.node[b.y.node_start[e]]].p
        b.centre[i, e] = centre
        for m in range(b.y.node_start[e], b.y.node_start[e + 1]):
            k = b.y.node[m]
            p = s.node[i, k].p
            s.node[i, k].p = p - centre
            traversal.base_inertia(t, s, b.H, i, k)
            b.N[i, k] = mat6()
            b.M[i, k] = mat6()
            kinds.motion_columns(t, s, b.x, i, k, b.S)
            sum_path(b.x, b.y.width[e], b.y.inside[k], i, k, b.S, b.J)
            s.node[i, k].p = p
