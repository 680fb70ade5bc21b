"""The mass matrix of rigid bodies on joints of one axis each, by composite rigid bodies in the base frame.

    M_kj = S_jᵀ F,     F = Iᶜ_k S_k,     j = k and the joints on the way from k to the base                (1)
    S = (w; u + p × w),     w and u the axis and the displacement of the joint at p                        (2)
    Iᶜ = (J, d, m) summed over the subtree: J of rotation about the base frame's origin, first moment d    (3)

F is made once for each joint, and then costs one scalar product for each joint on its way to the base. An inertia moved
by (R, p) is

    J = R J_B Rᵀ + 2 (h·p) 1 − h pᵀ − p hᵀ,     h = R d_B + m p / 2,     d = R d_B + m p                   (4)

Source: R. Featherstone, Rigid Body Dynamics Algorithms, 2008, §6.2.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie.native import native_functions
from lissom.lie.types import vec3
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes.column_tables import Matrix
from lissom.robot.joints import MotionKind

native = native_functions("systems/mass.h")


_SIZE = 41  # numbers of a body in the code below


@wp.struct
class RigidBuffersStruct:
    """Poses, columns and composite inertias, by instance; also of nodes beyond n_dynamic: a base frame may slide with
    them."""

    bodies: wp.array2d(dtype=wp.float64)


def rigid_buffers(model: Model, batch: int) -> RigidBuffersStruct:
    """Buffers of rigid_mass for a batch."""
    b = RigidBuffersStruct()
    b.bodies = wp.zeros((batch, _SIZE * model.n_nodes), dtype=wp.float64, device=model.device)
    return b


def is_rigid(model: Model) -> bool:
    """Whether all that carries anything are rigid bodies on fixed joints and on joints of one axis; a batch of models,
    each of them."""
    if model.models:
        return all(is_rigid(one) for one in model.models)
    nodes, carrying = model.nodes, slice(model.n_dynamic)
    moves = nodes.h != 1.0
    for x in (nodes.kappa, nodes.v_stop - nodes.v_start, *nodes.xi1.T, *nodes.xi2.T):
        moves |= x != 0
    simple = (nodes.kind == MotionKind.EXP.value) & (nodes.is_screw | ~moves) & nodes.is_plain
    return bool(simple[carrying].all())


@wp.func_native(native("rigid_mass"))
def rigid_mass(t: Tables, i: int, q: Matrix, origin: wp.array2d(dtype=vec3), bodies: Matrix, M: Matrix):
    """Fill M (nv x nv), but for rotors, of a model that is rigid: (1). Origins of the base frames are as of
    place_bases."""
    ...
