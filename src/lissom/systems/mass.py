"""The mass matrix by composite inertias in the base frame, inside kernels.

    M = Σ_α Σ_β S_αᵀ Mᶜ_max(α,β) S_β + I_a,     Mᶜ_α = Σ of M over the subtree of α                              (1)
    V_α = Σ_{β ≥ α} Mᶜ_β S_β              one inward pass over the columns of each node's subtree          (2)

Columns need no transport in the base frame, so V is a running sum.
Source: Mathew 2025 (D58)-(D59), in the base frame.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import so3
from lissom.lie.native import native_functions
from lissom.lie.types import by_reference, mat6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import columns, deforming, kinds, traversal
from lissom.passes.column_tables import Columns, Matrix, column_width
from lissom.passes.rare_kinds import is_body
from lissom.passes.scratch import Scratch
from lissom.systems.armature import add_armature_rows

native = native_functions("systems/mass.h")


@wp.struct
class MassBuffersStruct:
    """Composite inertias, motion subspaces S, running sums V and half of the result."""

    composite: wp.array2d(dtype=mat6)
    S: wp.array2d(dtype=wp.float64)
    V: wp.array2d(dtype=wp.float64)
    half: wp.array2d(dtype=wp.float64)


MassBuffers = by_reference(MassBuffersStruct)


def mass_buffers(model: Model, batch: int) -> MassBuffersStruct:
    """Buffers of mass_matrix_sweep for a batch."""
    b = MassBuffersStruct()
    width = column_width(model)
    b.composite = wp.zeros((batch, model.n_dynamic), dtype=mat6, device=model.device)
    b.S = wp.zeros((batch, 6 * model.n_dynamic * width), dtype=wp.float64, device=model.device)
    b.V = wp.zeros((batch, 6 * model.n_dynamic * width), dtype=wp.float64, device=model.device)
    b.half = wp.zeros((batch, model.nv * width), dtype=wp.float64, device=model.device)
    return b


@wp.func_native(native("add_matrix"))
def add_matrix(i: int, from_: int, to: int, composite: wp.array2d(dtype=mat6)):
    """One of the 6x6 matrices += another one."""
    ...


@wp.func
def sum_over_subtrees(t: Tables, i: int, composite: wp.array2d(dtype=mat6)):
    """Turn a 6x6 matrix of each node into the sum over its subtree."""
    for step in range(t.n_dynamic):
        k = t.n_dynamic - 1 - step
        parent = t.node[k].parent
        if parent >= 0:
            add_matrix(i, k, parent, composite)


@wp.func_native(native("fold_mass"))
def fold_mass(
    x: Columns,
    first: int,
    stop: int,
    i: int,
    k: int,
    composite: wp.array2d(dtype=mat6),
    S: Matrix,
    V: Matrix,
    out: Matrix,
):
    """V += Mᶜ S_k of (2) and the rows first … stop − 1 of out += S_kᵀ V, with half of what V grew by."""
    ...


@wp.func
def half_mass_sweep(t: Tables, s: Scratch, x: Columns, b: MassBuffers, i: int):
    """Fill the half X (nv x width) of M = X + Xᵀ, but for rotors, from the poses left in s."""
    columns.clear_rows(t.nv, x.width, i, b.half)
    for k in range(t.n_dynamic):
        traversal.base_inertia(t, s, b.composite, i, k)
        kinds.motion_columns(t, s, x, i, k, b.S)
    columns.clear_sums(x, i, b.V)
    sum_over_subtrees(t, i, b.composite)
    for step in range(t.n_dynamic):
        k = t.n_dynamic - 1 - step
        first = t.node[k].v_start
        stop = t.node[k].v_stop
        if stop > first:
            fold_mass(x, first, stop, i, k, b.composite, b.S, b.V, b.half)
        if is_body(t.node[k].kind):
            deforming.couple_mass(t, s, x, i, k, b.V, b.half)
        columns.pass_to_parent(x, x.subtree_start, x.subtree_range, t.node[k].parent, i, k, b.V)


@wp.func
def mass_matrix_sweep(t: Tables, s: Scratch, x: Columns, b: MassBuffers, i: int, M: Matrix):
    """Fill M (nv x width) from the poses left in s."""
    half_mass_sweep(t, s, x, b, i)
    columns.add_transposed(t.nv, x.width, i, b.half, b.half, M)
    add_armature_rows(t, x.width, i, so3.ONE, M)


@wp.func_native(native("put_square"))
def put_square(nv: int, width: int, b: MassBuffers, i: int, M: Matrix):
    """M = X + Xᵀ without what fills its rows up, X the half in the buffers."""
    ...


@wp.func
def square_mass_matrix(t: Tables, s: Scratch, x: Columns, b: MassBuffers, i: int, M: Matrix):
    """Fill M (nv x nv) from the poses left in s."""
    half_mass_sweep(t, s, x, b, i)
    put_square(t.nv, x.width, b, i, M)
    add_armature_rows(t, t.nv, i, so3.ONE, M)
