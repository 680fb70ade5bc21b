"""The mass matrix: inertia of rotors, composite inertias in the base frame, and a faster formula for rigid bodies.

A rotor of inertia I behind a gear of ratio n turns n times as fast as its joint and has n² times its inertia there;
I_a = n² I adds to the equation of motion and to the kinetic energy

    I_a a,   ½ I_a v²                                                                                     (1)

The rotation of the rotor together with its link is neglected: for gears of large ratio it is small relative to (1).

    M = Σ_α Σ_β S_αᵀ Mᶜ_max(α,β) S_β + I_a,     Mᶜ_α = Σ of M over the subtree of α                              (2)
    V_α = Σ_{β ≥ α} Mᶜ_β S_β              one inward pass over the columns of each node's subtree          (3)

Columns need no transformation between nodes in the base frame, so V is a subtree sum. For rigid bodies on joints of one
axis each,

    M_kj = S_jᵀ F,     F = Iᶜ_k S_k,     j = k and the joints on the way from k to the base                (4)
    S = (w; u + p × w),     w and u the axis and the displacement of the joint at p                        (5)
    Iᶜ = (J, d, m) summed over the subtree: J of rotation about the base frame's origin, first moment d    (6)

F is computed once for each joint k; each joint j on its path to the base then costs one scalar product. An inertia J_B,
d_B, m in a frame (R, p) becomes in the base frame

    J = R J_B Rᵀ + 2 (h·p) 1 − h pᵀ − p hᵀ,     h = R d_B + m p / 2,     d = R d_B + m p                   (7)

Source: Mathew 2025 (D58)-(D59), in the base frame; R. Featherstone, Rigid Body Dynamics Algorithms, 2008, §6.2, §9.6.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import so3
from lissom.lie.native import native_functions
from lissom.lie.types import by_reference, mat6, vec3
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import columns, kinds
from lissom.passes.columns import Columns, Matrix, column_width
from lissom.passes.features import are_single_screws
from lissom.passes.scratch import Scratch


@wp.func
def add_armature_force(t: Tables, i: int, a: Matrix, tau: Matrix):
    """tau += I_a a."""
    for j in range(t.dofs.armature.shape[0]):
        tau[i, j] = tau[i, j] + t.dofs.armature[j] * a[i, j]


@wp.func
def add_armature_rows(t: Tables, width: int, i: int, by_a: wp.float64, out: Matrix):
    """out += by_a I_a, rows of `width`."""
    for j in range(t.dofs.armature.shape[0]):
        out[i, j * width + j] = out[i, j * width + j] + by_a * t.dofs.armature[j]


@wp.func
def add_armature_block(t: Tables, i: int, first: int, n: int, square: int, width: int, row: int, H: Matrix,
                       diagonal: Matrix):  # fmt: skip
    """H and the diagonal of a block of n coordinates from `first` on += I_a, with the storage of `articulated`."""
    if t.dofs.armature.shape[0] > 0:
        for j in range(n):
            H[i, square + j * width + j] = H[i, square + j * width + j] + t.dofs.armature[first + j]
            diagonal[i, row + j] = diagonal[i, row + j] + t.dofs.armature[first + j]


@wp.func
def armature_energy(t: Tables, i: int, v: Matrix) -> wp.float64:
    """½ Σ I_a v² [J]."""
    total = wp.float64(0.0)
    for j in range(t.dofs.armature.shape[0]):
        total += so3.HALF * t.dofs.armature[j] * v[i, j] * v[i, j]
    return total


native = native_functions("systems/mass.h")


@wp.struct
class MassBuffersStruct:
    """Composite inertias, motion subspaces S, subtree sums V, and the half X of M = X + Xᵀ."""

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
    """composite[to] += composite[from_], 6x6 matrices of two nodes."""
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
    """V += Mᶜ S_k of (3), and rows first … stop − 1 of out += S_kᵀ V, where this increment of V counts half."""
    ...


@wp.func
def half_mass_sweep(t: Tables, s: Scratch, x: Columns, b: MassBuffers, i: int):
    """Fill the half X (nv x width) of M = X + Xᵀ, without rotors, from the poses in s."""
    columns.clear_rows(t.nv, x.width, i, b.half)
    for k in range(t.n_dynamic):
        b.composite[i, k] = kinds.spatial_inertia(t, s, i, k)
        kinds.motion_columns(t, s, x, i, k, b.S)
    columns.clear_sums(x, i, b.V)
    sum_over_subtrees(t, i, b.composite)
    for step in range(t.n_dynamic):
        k = t.n_dynamic - 1 - step
        first = t.node[k].v_start
        stop = t.node[k].v_stop
        if stop > first:
            fold_mass(x, first, stop, i, k, b.composite, b.S, b.V, b.half)
        kinds.couple_mass(t, s, x, i, k, b.V, b.half)
        columns.pass_to_parent(x, x.subtree_start, x.subtree_range, t.node[k].parent, i, k, b.V)


@wp.func
def mass_matrix_sweep(t: Tables, s: Scratch, x: Columns, b: MassBuffers, i: int, M: Matrix):
    """Fill M (nv x width) from the poses in s."""
    half_mass_sweep(t, s, x, b, i)
    columns.add_transposed(t.nv, x.width, i, b.half, b.half, M)
    add_armature_rows(t, x.width, i, so3.ONE, M)


@wp.func_native(native("put_square"))
def put_square(nv: int, width: int, b: MassBuffers, i: int, M: Matrix):
    """M = X + Xᵀ (nv x nv, without padding), with X = b.half in rows of `width`."""
    ...


@wp.func
def square_mass_matrix(t: Tables, s: Scratch, x: Columns, b: MassBuffers, i: int, M: Matrix):
    """Fill M (nv x nv) from the poses in s."""
    half_mass_sweep(t, s, x, b, i)
    put_square(t.nv, x.width, b, i, M)
    add_armature_rows(t, t.nv, i, so3.ONE, M)


_NUMBERS_PER_BODY = 41  # size of `struct body` in rigid_mass, in doubles


@wp.struct
class RigidBuffersStruct:
    """Poses, columns and composite inertias of all nodes; nodes beyond n_dynamic may move the origin of a base
    frame."""

    bodies: wp.array2d(dtype=wp.float64)


def rigid_buffers(model: Model, batch: int) -> RigidBuffersStruct:
    """Buffers of rigid_mass for a batch."""
    b = RigidBuffersStruct()
    b.bodies = wp.zeros((batch, _NUMBERS_PER_BODY * model.n_nodes), dtype=wp.float64, device=model.device)
    return b


def is_rigid(model: Model) -> bool:
    """Whether all dynamic nodes are rigid bodies on fixed joints or joints of one axis; for a batch, in each model."""
    if model.models:
        return all(is_rigid(one) for one in model.models)
    dynamic = slice(model.n_dynamic)
    return bool(are_single_screws(model.nodes)[dynamic].all() and model.nodes.is_plain[dynamic].all())


@wp.func_native(native("rigid_mass"))
def rigid_mass(t: Tables, i: int, q: Matrix, origin: wp.array2d(dtype=vec3), bodies: Matrix, M: Matrix):
    """Fill M (nv x nv) by (4), without rotors, for a model with is_rigid. Sets the origins of the base frames as
    place_bases does."""
    ...
