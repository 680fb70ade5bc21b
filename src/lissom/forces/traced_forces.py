"""Users' forces as native code, with and without inputs, as two terms inside kernels.

The inputs w of a force, such as those of coils and thrusters, are sizes of channels, and its wrench W(t, g, η, w) is
any function of them. The functions of robot/traced_functions give the wrench in the axes of the frame and its exact
derivatives. With δ a motion of the frame, g exp(δ),

    F −= W,   H −= ∂W/∂δ,   N −= ∂W/∂η,   ∂τ/∂w_c = Σ Jᵀ ∂W/∂w_c                                          (1)

A force per metre has a row for each Gauss point of its rod, with its weight. The functions are called by addresses in
cells of the tables of the term, so that one kernel serves all of them; traced_forces.h describes the tables.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.forces.term import Term, native_codes
from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.se3 import in_base
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes.columns import Matrix
from lissom.passes.scratch import INPUTS, LOADS, Scratch
from lissom.passes.traversal import origin_of, project

native = native_functions("forces/traced_forces.h")
_HEAD = 3  # integers of a row before the channels of its inputs
HEAD = wp.constant(wp.int32(_HEAD))


@wp.func_native(native("call_force"))
def call_force(
    t: Tables, s: Scratch, place: int, e: int, which: int, i: int, time: wp.float64, R: mat3, p: vec3, eta: vec6
) -> vec6:
    """The wrench of row e if `which` is 0. Behind the inputs in s.channel.row write its derivatives with respect to
    pose and twist if it is 1, and those by the inputs if it is 2."""
    ...


@wp.func_native(native("matrix_in_row"))
def matrix_in_row(s: Scratch, i: int, at: int) -> mat6:
    """The 36 numbers of s.channel.row from `at` on as a matrix."""
    ...


@wp.func
def call_at_node(t: Tables, s: Scratch, place: int, e: int, which: int, i: int, time: wp.float64) -> vec6:
    """`call_force` at the pose and the twist of its node."""
    k = t.terms[place].index[e, 0]
    R = s.node[i, k].R
    p = s.node[i, k].p
    return call_force(
        t, s, place, e, which, i, time, R, p + origin_of(t, s, i, k), se3.Ad_inverse(R, p, s.node[i, k].eta)
    )


@wp.func
def time_of(t: Tables, load: wp.array(dtype=vec6)) -> wp.float64:
    """The time in the rows of loads."""
    return load[t.loads.node.shape[0] + 1][0]


@wp.func(inline=False)
def add_traced_forces(t: Tables, s: Scratch, place: int, i: int, load: wp.array(dtype=vec6)):
    """Subtract the forces from F of their nodes."""
    for e in range(t.terms[place].index.shape[0]):
        k = t.terms[place].index[e, 0]
        W = t.terms[place].number[e, 0] * call_at_node(t, s, place, e, 0, i, time_of(t, load))
        s.node[i, k].F = s.node[i, k].F - se3.Ad_dual(s.node[i, k].R, s.node[i, k].p, W)


@wp.func(inline=False)
def respond_to_traced_forces(
    t: Tables, s: Scratch, place: int, i: int, load: wp.array(dtype=vec6), H: wp.array2d(dtype=mat6)
):
    """Add H and N of the forces (1)."""
    for e in range(t.terms[place].index.shape[0]):
        k = t.terms[place].index[e, 0]
        n = t.terms[place].index[e, 2]
        weight = t.terms[place].number[e, 0]
        call_at_node(t, s, place, e, 1, i, time_of(t, load))
        R = s.node[i, k].R
        p = s.node[i, k].p
        H[i, k] = H[i, k] - in_base(R, p, weight * matrix_in_row(s, i, n))
        s.near.N[i, k] = s.near.N[i, k] - in_base(R, p, weight * matrix_in_row(s, i, n + 36))


@wp.func(inline=False)
def put_driven_column(t: Tables, s: Scratch, place: int, i: int, c: int, time: wp.float64, column: Matrix):
    """Set `column` to ∂τ/∂w of channel c (1), from the motion in s and the sizes of channels. Overwrites node.F and
    deforming.inertial in s."""
    for k in range(t.n_dynamic):
        s.node[i, k].F = vec6()
    for j in range(s.deforming.inertial.shape[1]):
        s.deforming.inertial[i, j] = so3.ZERO
    for e in range(t.terms[place].index.shape[0]):
        k = t.terms[place].index[e, 0]
        n = t.terms[place].index[e, 2]
        for j in range(n):
            if t.terms[place].index[e, HEAD + j] == c:
                call_at_node(t, s, place, e, 2, i, time)
                W = vec6()
                for r in range(6):
                    W[r] = t.terms[place].number[e, 0] * s.channel.row[i, n + 6 * j + r]
                s.node[i, k].F = s.node[i, k].F + se3.Ad_dual(s.node[i, k].R, s.node[i, k].p, W)
    project(t, s, i, column)


def _bound(place: Any) -> dict[str, Any]:
    @wp.func(module="unique")
    def add(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
        add_traced_forces(t, s, place, i, load)

    @wp.func(module="unique")
    def respond(
        t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
    ):
        respond_to_traced_forces(t, s, place, i, load, H)

    return {"add": add, "respond": respond}


def _driven_tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Tables of forces with inputs."""
    forces, names = model.forces.driven, model.channels.names
    most = max((len(force.inputs) for force in forces), default=0)
    first = min((names.index(name) for force in forces for name in force.inputs), default=0)
    rows, weights = [np.zeros((0, _HEAD + most))], [np.zeros(0)]
    for force in forces:
        channels = [names.index(name) for name in force.inputs]
        own = np.zeros((len(force.node), _HEAD + most), dtype=np.int32)
        own[:, 0], own[:, 1:_HEAD] = force.node, (first, len(channels))
        own[:, _HEAD : _HEAD + len(channels)] = channels
        rows.append(own)
        weights.append(force.weight)
    return np.concatenate(rows), np.concatenate(weights)[:, None]


def _natives(model: Model) -> tuple[np.ndarray, list[Any]]:
    """The rows of forces without inputs that are called by address, and the native code of each."""
    codes = native_codes(model, model.forces.compiled)
    rows = np.array([k for k, which in enumerate(model.forces.which.tolist()) if codes[which] is not None], dtype=int)
    found = [codes[which] for which in model.forces.which[rows].tolist()]
    return rows, [code for code in found if code is not None]


def _tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Tables of forces without inputs."""
    rows, _ = _natives(model)
    return np.stack([model.forces.node[rows], 0 * rows, 0 * rows], axis=1), model.forces.weight[rows, None]


TERM = Term(
    "users' forces as native code",
    int(LOADS),
    is_in=lambda model: any(native_codes(model, model.forces.compiled)),
    bind=_bound,
    tables=_tables,
    natives=lambda model: [*_natives(model)[1]],
)
DRIVEN_TERM = Term(
    "users' forces that depend on inputs",
    int(INPUTS),
    is_in=lambda model: len(model.forces.driven) > 0,
    bind=_bound,
    tables=_driven_tables,
    natives=lambda model: [force.function.functions for force in model.forces.driven for _ in force.node],
)
