"""The matrix of Newton's method for steps in time and for equilibria, computed in one pass, inside kernels.

For a step that changes q by Δ, and v and a by c₁ Δ and c₀ Δ,

    ∂r/∂Δ = ∂r/∂q T(Δ) + c₁ ∂r/∂v + c₀ ∂r/∂a                                                             (1)

is one matrix of the form (5) of inverse_dynamics_derivatives, at a third of the cost of the three: with the columns

    P = Q T + c₁ (Ṡ + R) + c₀ S,   R' = R T + c₁ S,   S T     (T = 1 but for spherical and free joints)

    rows  S_αᵀ [Σ (M P̄ + N R̄' + H J) + Σ_{β>α} adbar_{Fᶜ_β} S_β T] + local_α                             (2)

Source: Mathew 2025 §4, eqs. (21)-(33), merged and moved to the base frame.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from functools import cache
from typing import Any

import warp as wp

from lissom.forces.terms import Acting
from lissom.lie import so3
from lissom.lie.types import by_reference, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import columns, kinds
from lissom.passes.attachments import AttachmentsStruct, attachments
from lissom.passes.columns import ColumnsStruct, Matrix, NewtonSumsStruct, column_tables, newton_point
from lissom.passes.features import may_have_loops
from lissom.passes.scratch import ALL_TERMS, Scratch
from lissom.systems.bordered import LoopRowsStruct, loop_rows, replace_moved_columns, rows_from_sums
from lissom.systems.couplings import add_coupling_stiffness, row_count
from lissom.systems.derivative_sweeps import clear_attachments, inward_node
from lissom.systems.loops import add_function_stiffness, add_loop_stiffness
from lissom.systems.mass import add_armature_rows
from lissom.systems.newton_blocks import (
    BlockMatrixStruct,
    LoopFrontsStruct,
    block_matrix,
    clear_row,
    loop_fronts,
    open_blocks,
)


@wp.struct
class NewtonBuffersStruct:
    """Buffers of the matrix and its factors.

    Dense: sums: columns of the nodes and their path sums. W: subtree sum of (2). z: products at attachments. inertia,
    H: 6x6 matrices of the nodes. matrix: (1), nv x width; without loops its factors overwrite it. loops: constraint
    rows and the bordered matrix.

    Elimination of blocks: `blocks` and `fronts` contain everything but the right side and the unknowns, which are in
    `loops`.
    """

    x: ColumnsStruct
    z: AttachmentsStruct
    sums: NewtonSumsStruct
    W: Matrix
    inertia: wp.array2d(dtype=mat6)
    H: wp.array2d(dtype=mat6)
    matrix: Matrix
    loops: LoopRowsStruct
    blocks: BlockMatrixStruct
    fronts: LoopFrontsStruct


NewtonBuffers = by_reference(NewtonBuffersStruct)


def newton_buffers(model: Model, batch: int) -> NewtonBuffersStruct:
    """Buffers of the dense matrix for a batch."""
    b, sums = NewtonBuffersStruct(), NewtonSumsStruct()
    b.x, b.z = column_tables(model), attachments(model, batch)
    for name in NewtonSumsStruct.vars:
        size = (batch, 6 * model.n_dynamic * b.x.width)
        setattr(sums, name, wp.zeros(size, dtype=wp.float64, device=model.device))
    b.sums = sums
    for name, size in {"W": 6 * b.x.n_slots * b.x.width, "matrix": model.nv * b.x.width}.items():
        setattr(b, name, wp.zeros((batch, size), dtype=wp.float64, device=model.device))
    for name in ("inertia", "H"):
        setattr(b, name, wp.zeros((batch, model.n_dynamic), dtype=mat6, device=model.device))
    b.loops = loop_rows(model, batch, b.matrix)
    return b


def newton_block_buffers(model: Model, batch: int) -> NewtonBuffersStruct:
    """Buffers of the elimination of blocks for a batch."""
    b = NewtonBuffersStruct()
    b.matrix = wp.zeros((batch, 0), dtype=wp.float64, device=model.device)
    b.loops = loop_rows(model, batch, dense=False)
    b.blocks, b.fronts = block_matrix(model, batch), loop_fronts(model, batch, wide=True)
    return b


@cache
def newton_matrix_of(act: Acting) -> Any:
    """The function that makes the matrix with the terms of a model."""
    respond, stiffen = act.respond, act.stiffen

    @wp.func(inline=False, module="unique")
    def newton_matrix(
        t: Tables, s: Scratch, b: NewtonBuffers, i: int, q: Matrix, v: Matrix, a: Matrix, move: Matrix,
        c0: wp.float64, c1: wp.float64, gravity: vec3, load: wp.array(dtype=vec6),
    ):  # fmt: skip
        """Fill b.matrix with (1), and the constraint rows, from the results of the residual at (q, v, a) in s."""
        point = newton_point(v, a, move, c0, c1, gravity)
        columns.clear_rows(t.nv, b.x.width, i, b.matrix)
        columns.clear_sums(b.x, i, b.W)
        clear_attachments(t, b.x, b.z, i)
        kinds.newton_columns(t, s, b.x, i, point, b.sums, b.matrix)
        for k in range(t.n_dynamic):
            b.inertia[i, k] = kinds.spatial_inertia(t, s, i, k)
            b.H[i, k] = mat6()
        respond(t, s, i, gravity, load, ALL_TERMS, b.H)
        add_loop_stiffness(t, s, i, b.loops.force, b.H)
        for step in range(t.n_dynamic):
            k = t.n_dynamic - 1 - step
            kinds.couple(t, s, b.x, i, k, v, a, vec3(so3.ONE, c1, c0), b.sums.J_P, b.sums.J_R, b.W, b.matrix)
            inward_node(t, s, b.x, b.z, i, k, b.inertia, b.H, b.sums, b.loops.force, b.W, b.matrix)
        stiffen(t, s, b.x, i, q, v, move, so3.ONE, c1, ALL_TERMS, b.matrix)
        add_armature_rows(t, b.x.width, i, c0, b.matrix)
        if may_have_loops() and row_count(t) > 0:
            add_coupling_stiffness(t, i, b.x.width, q, b.loops.force, b.matrix)
            add_function_stiffness(t, s, b.x, i, b.sums.J, b.loops.force, b.matrix)
            rows_from_sums(t, s, b.x, i, q, v, c1, b.sums.J, b.sums.J_R, b.loops)
            if q.shape[1] != t.nv:
                replace_moved_columns(t, s, b.x, i, b.sums.S, b.sums.S_T, b.loops)

    return newton_matrix


@cache
def newton_blocks_of(act: Acting) -> Any:
    """The function that makes the matrix of all blocks with the terms of a model, in the same buffers."""
    respond, stiffen = act.respond, act.stiffen

    @wp.func(module="unique")
    def newton_matrix(
        t: Tables, s: Scratch, b: NewtonBuffers, i: int, q: Matrix, v: Matrix, a: Matrix, move: Matrix,
        c0: wp.float64, c1: wp.float64, gravity: vec3, load: wp.array(dtype=vec6),
    ):  # fmt: skip
        """Compute the matrix of a step for all blocks, from the results of the residual at (q, v, a) in s."""
        clear_row(i, b.blocks.K)
        for k in range(t.n_dynamic):
            b.blocks.H[i, k] = mat6()
        respond(t, s, i, gravity, load, ALL_TERMS, b.blocks.H)
        stiffen(t, s, b.blocks.band, i, q, v, move, so3.ONE, c1, ALL_TERMS, b.blocks.K)
        add_armature_rows(t, b.blocks.band.width, i, c0, b.blocks.K)
        point = newton_point(v, a, move, c0, c1, gravity)
        open_blocks(t, s, b.blocks, i, point)

    return newton_matrix
