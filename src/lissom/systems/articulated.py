"""Articulated bodies: M a = f solved by elimination of blocks, from the tips to the base and back, inside kernels.

Each block is attached to a node of its parent block. With α̇_p the acceleration of that node, J_k the columns of the
block up to its node k, and Î_k the inertia of that node with all blocks attached to it:

    α̇_k = α̇_p + J_k a                                                                                     (1)
    H a = f − Σ J_kᵀ p̂_k − G α̇_p,   H = I_a + Σ J_kᵀ Î_k J_k,   G = Σ J_kᵀ Î_k                                   (2)
    Λ = Σ Î_k − Gᵀ H⁻¹ G,   p = Σ p̂_k + Gᵀ H⁻¹ (f − Σ J_kᵀ p̂_k)                                             (3)
    Î_k = M_k + Σ Λ,   p̂_k = Σ p   over the blocks attached to k                                           (4)

All blocks use the axes of the base frame. Each block has an origin of its own, the position of its first node, since
rounding would lose the inertia of a short link about a distant point. A pivot of H counts as zero if it is small
relative to the same entry of M, which composite inertias give.
Source: R. Featherstone, Rigid Body Dynamics Algorithms, 2008, §7.3, with blocks of coordinates for joints.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3
from lissom.lie.native import native_functions
from lissom.lie.se3 import about
from lissom.lie.types import by_reference, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import kinds
from lissom.passes.blocks import Blocks, block_width, squares
from lissom.passes.columns import Columns, Matrix
from lissom.passes.scratch import Scratch
from lissom.systems.mass import add_armature_block

native = native_functions("systems/articulated.h")


@wp.struct
class ArticulatedStruct:
    """Buffers of articulated bodies.

    inertia, composite: Î and composite inertia of each node. centre: origin of each block. S, J: columns and path sums
    of each node. H, G, inverse_G, diagonal: H, G, H⁻¹ G and the diagonal of M of each block. wrench, acc: p̂ and
    acceleration of each node.
    """

    inertia: wp.array2d(dtype=mat6)
    composite: wp.array2d(dtype=mat6)
    centre: wp.array2d(dtype=vec3)
    S: Matrix
    J: Matrix
    H: Matrix
    G: Matrix
    inverse_G: Matrix
    diagonal: Matrix
    wrench: wp.array2d(dtype=vec6)
    acc: wp.array2d(dtype=vec6)


Articulated = by_reference(ArticulatedStruct)


def articulated_buffers(model: Model, batch: int) -> ArticulatedStruct:
    """Buffers of factor_blocks and solve_blocks for a batch."""
    b, size = ArticulatedStruct(), squares(model)
    width = (size + 7) // 8 * 8
    columns, rows = 6 * model.n_dynamic * block_width(model), int(width.sum())
    shapes = dict.fromkeys(("inertia", "composite", "wrench", "acc"), model.n_dynamic)
    shapes |= {"centre": len(size), "S": columns, "J": columns}
    shapes |= {"H": int((size * width).sum()), "G": 8 * rows, "inverse_G": 8 * rows, "diagonal": rows}
    for name, count in shapes.items():
        dtype = ArticulatedStruct.vars[name].type.dtype
        setattr(b, name, wp.zeros((batch, count), dtype=dtype, device=model.device))
    return b


@wp.func_native(native("sum_path"))
def sum_path(x: Columns, width: int, before: int, i: int, k: int, S: Matrix, J: Matrix):
    """J_k = J of node `before` (none if negative) + S_k."""
    ...


@wp.func_native(native("clear_block"))
def clear_block(y: Blocks, i: int, e: int, H: Matrix, G: Matrix, diagonal: Matrix):
    """H, G and the diagonal of block e = 0."""
    ...


@wp.func_native(native("gather_node"))
def gather_node(
    x: Columns, y: Blocks, i: int, e: int, k: int, inertia: mat6, composite: mat6, J: Matrix, H: Matrix, G: Matrix,
    diagonal: Matrix,
):  # fmt: skip
    """Add node k to H and G of (2) and to the diagonal of M."""
    ...


@wp.func_native(native("factor_block"))
def factor_block(y: Blocks, i: int, e: int, H: Matrix, G: Matrix, inverse_G: Matrix, diagonal: Matrix) -> int:
    """Overwrite H by its factors LDLᵀ, with rows of the identity for prescribed coordinates, and compute H⁻¹ G. Returns
    0, or 1 + the coordinate of a pivot that is zero to rounding."""
    ...


@wp.func_native(native("reduced_inertia"))
def reduced_inertia(y: Blocks, i: int, e: int, inertia: mat6, G: Matrix, inverse_G: Matrix) -> mat6:
    """Λ of (3) from Σ Î."""
    ...


@wp.func_native(native("solve_inward"))
def solve_inward(
    x: Columns, y: Blocks, i: int, e: int, J: Matrix, H: Matrix, inverse_G: Matrix, wrench: wp.array2d(dtype=vec6),
    f: Matrix,
) -> vec6:  # fmt: skip
    """p of (3) for block e; f on its coordinates is replaced by H⁻¹ (f − Σ Jᵀ p̂)."""
    ...


@wp.func_native(native("solve_outward"))
def solve_outward(
    x: Columns, y: Blocks, i: int, e: int, below: vec6, J: Matrix, inverse_G: Matrix, acc: wp.array2d(dtype=vec6),
    f: Matrix,
):  # fmt: skip
    """Replace H⁻¹ (f − Σ Jᵀ p̂) in f by a of (2), and compute (1); `below` is the acceleration α̇_p."""
    ...


@wp.func
def open_block(t: Tables, s: Scratch, x: Columns, y: Blocks, b: Articulated, i: int, e: int):
    """Compute inertias and J of the nodes of block e about its origin. Their positions in s become relative to it."""
    centre = s.node[i, y.node[y.node_start[e]]].p
    b.centre[i, e] = centre
    for m in range(y.node_start[e], y.node_start[e + 1]):
        k = y.node[m]
        s.node[i, k].p = s.node[i, k].p - centre
        b.inertia[i, k] = kinds.spatial_inertia(t, s, i, k)
        b.composite[i, k] = b.inertia[i, k]
        kinds.put_block_columns(t, s, x, i, k, b.S)
        sum_path(x, y.width[e], y.inside[k], i, k, b.S, b.J)


@wp.func
def close_block(t: Tables, s: Scratch, x: Columns, y: Blocks, b: Articulated, i: int, e: int) -> int:
    """Compute H and G of block e, factor H and add Λ to the parent node; 1 + the coordinate of a zero pivot, or 0."""
    clear_block(y, i, e, b.H, b.G, b.diagonal)
    inertia = mat6()
    composite = mat6()
    for m in range(y.node_start[e], y.node_start[e + 1]):
        k = y.node[m]
        inertia += b.inertia[i, k]
        composite += b.composite[i, k]
        gather_node(x, y, i, e, k, b.inertia[i, k], b.composite[i, k], b.J, b.H, b.G, b.diagonal)
        kinds.couple_block(t, s, i, k, y.square_start[e], y.width[e], y.row_start[e], b.H, b.G, b.diagonal)
    at = y.square_start[e]
    add_armature_block(t, i, y.v_start[e], y.size[e], at, y.width[e], y.row_start[e], b.H, b.diagonal)
    pivot = factor_block(y, i, e, b.H, b.G, b.inverse_G, b.diagonal)
    parent = y.parent[e]
    if pivot == 0 and parent >= 0:
        r = b.centre[i, e] - b.centre[i, y.above[e]]
        b.inertia[i, parent] = b.inertia[i, parent] + about(reduced_inertia(y, i, e, inertia, b.G, b.inverse_G), r)
        b.composite[i, parent] = b.composite[i, parent] + about(composite, r)
    return pivot


@wp.func
def factor_blocks(t: Tables, s: Scratch, x: Columns, y: Blocks, b: Articulated, i: int) -> int:
    """Compute (2)-(4) for the poses in s; 1 + the coordinate of a zero pivot, or 0."""
    for e in range(y.count):
        open_block(t, s, x, y, b, i, e)
    pivot = wp.int32(0)
    for step in range(y.count):
        if pivot == 0:
            pivot = close_block(t, s, x, y, b, i, y.count - 1 - step)
    for e in range(y.count):
        for m in range(y.node_start[e], y.node_start[e + 1]):
            s.node[i, y.node[m]].p = s.node[i, y.node[m]].p + b.centre[i, e]
    return pivot


@wp.func
def solve_blocks(x: Columns, y: Blocks, b: Articulated, i: int, f: Matrix):
    """Solve M a = f with the results of factor_blocks: f becomes a, which is zero for prescribed coordinates."""
    for e in range(y.count):
        for m in range(y.node_start[e], y.node_start[e + 1]):
            b.wrench[i, y.node[m]] = vec6()
    for step in range(y.count):
        e = y.count - 1 - step
        p = solve_inward(x, y, i, e, b.J, b.H, b.inverse_G, b.wrench, f)
        parent = y.parent[e]
        if parent >= 0:
            lever = b.centre[i, e] - b.centre[i, y.above[e]]
            moment = se3.angular(p) + wp.cross(lever, se3.linear(p))
            b.wrench[i, parent] = b.wrench[i, parent] + se3.join(moment, se3.linear(p))
    for e in range(y.count):
        below = vec6()
        parent = y.parent[e]
        if parent >= 0:
            w = se3.angular(b.acc[i, parent])
            r = b.centre[i, e] - b.centre[i, y.above[e]]
            below = se3.join(w, se3.linear(b.acc[i, parent]) + wp.cross(w, r))
        solve_outward(x, y, i, e, below, b.J, b.inverse_G, b.acc, f)
