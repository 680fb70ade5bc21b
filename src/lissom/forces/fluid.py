"""The fluid around nodes as a term: weight, drag, wake and current, inside kernels.

y is the node's twist relative to the fluid, v and V its linear part.

    drag   F = D |v| y,   ∂F/∂y = D (|v| + y vᵀ/|v|)                                                      (1)
    wake   Φ = V_x p − ½ (p·V) x,   p = m V                         the force of the wake behind a tip        (2)

A current is the twist C = (0; c) of the fluid in the base frame, with the rate Ċ. Its force on the added mass M_A and
the displaced mass M_D, and the derivatives of that by the pose δ and the twist δη of the node (y = η − C,
δC = (ad_C + K) δ, K from ∇c), are

    ΔF = M_A (ad_η C − Ċ) + coad(y, M_A y) − coad(η, M_A η) − M_D Ċ                                        (3)
    ΔN = L(y) − L(η) − M_A ad_C,   L(x) = adbar_{M_A x} − ad_xᵀ M_A                                        (4)
    ΔH = (M_A ad_η − L(y)) (ad_C + K) − (M_A + M_D) (ad_Ċ + K̇)                                            (5)

Ċ is the acceleration of a particle of the fluid, which also acts on the displaced fluid M_D. The inertia L of the fluid
has no weight: L (0; G) is added to F, and L ad_G to H.
Source: Mathew 2025 §6.3, (62)-(66); Boyer 2023 Example 3 and Lighthill 1971 for (2).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.forces.contact import wrench_at_origin
from lissom.forces.term import Term, codes_in_kernels, native_codes
from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.se3 import ad_matrix, adbar_matrix, in_base
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TermRows
from lissom.passes.columns import Matrix
from lissom.passes.scratch import LOADS, Scratch
from lissom.passes.traversal import origin_of
from lissom.robot.functions import is_compiled

native = native_functions("forces/fluid.h")
STEP = wp.constant(wp.float64(6e-6))  # of central differences of a user's current [m]


@wp.func
def drag(D: mat6, y: vec6) -> vec6:
    """F of (1)."""
    return wp.length(se3.linear(y)) * (D * y)


@wp.func
def drag_response(D: mat6, y: vec6) -> mat6:
    """∂F/∂y of (1)."""
    v = se3.linear(y)
    speed = wp.length(v)
    if speed == so3.ZERO:
        return mat6()
    return speed * D + wp.outer(D * y, se3.join(vec3(), v / speed))


@wp.func
def wake(mass: mat3, V: vec3) -> vec3:
    """Φ of (2)."""
    p = mass * V
    return V[0] * p - vec3(so3.HALF * wp.dot(p, V), so3.ZERO, so3.ZERO)


@wp.func
def wake_response(mass: mat3, V: vec3) -> mat3:
    """∂Φ/∂V of (2)."""
    p = mass * V
    x = vec3(so3.ONE, so3.ZERO, so3.ZERO)
    return V[0] * mass + wp.outer(p, x) - wp.outer(x, p)


@wp.func
def momentum_response(M: mat6, x: vec6) -> mat6:
    """L(x) of (4)."""
    return adbar_matrix(M * x) - wp.transpose(ad_matrix(x)) * M


@wp.func
def current_force(M_A: mat6, M_D: mat6, eta: vec6, C: vec6, C_rate: vec6) -> vec6:
    """ΔF of (3)."""
    y = eta - C
    F = M_A * (se3.ad(eta, C) - C_rate) + se3.coad(y, M_A * y) - se3.coad(eta, M_A * eta)
    return F - M_D * C_rate


@wp.func_native(native("call_current"))
def call_current(rows: TermRows, x: vec3, time: wp.float64) -> vec6:
    """Velocity and rate of the current at a point x of the world, from its native code."""
    ...


@wp.func
def current_of_user(rows: TermRows, x: vec3, time: wp.float64, current: wp.Function) -> vec6:
    """Velocity and rate of a user's current: of its native code if the term has some, otherwise of a Warp function."""
    if rows.cell.shape[1] > 0:
        return call_current(rows, x, time)
    return current(x, time)


@wp.func
def current_at(t: Tables, rows: TermRows, load: wp.array(dtype=vec6), x: vec3, current: wp.Function):
    """Twist C and rate Ċ of the fluid at a point x of the world."""
    row = load[t.loads.node.shape[0]] + current_of_user(rows, x, load[t.loads.node.shape[0] + 1][0], current)
    return se3.join(vec3(), se3.angular(row)), se3.join(vec3(), se3.linear(row))


@wp.func(inline=False)
def current_by_pose(
    t: Tables, rows: TermRows, load: wp.array(dtype=vec6), p: vec3, x: vec3, C: vec6, C_rate: vec6,
    current: wp.Function,
):  # fmt: skip
    """ad_C + K and ad_Ċ + K̇: the derivatives of C and Ċ at a node by its pose, in the axes of the node, which is at p
    in the base frame and at x in the world."""
    slope = mat3()
    slope_rate = mat3()
    for c in range(3):
        step = vec3()
        step[c] = STEP
        ahead, ahead_rate = current_at(t, rows, load, x + step, current)
        behind, behind_rate = current_at(t, rows, load, x - step, current)
        for r in range(3):
            slope[r, c] = (ahead[3 + r] - behind[3 + r]) / (so3.TWO * STEP)
            slope_rate[r, c] = (ahead_rate[3 + r] - behind_rate[3 + r]) / (so3.TWO * STEP)
    by_pose = ad_matrix(C) + se3.block(mat3(), mat3(), -slope * so3.hat(p), slope)
    return by_pose, ad_matrix(C_rate) + se3.block(mat3(), mat3(), -slope_rate * so3.hat(p), slope_rate)


@wp.func(inline=False)
def add_fluid(
    t: Tables, s: Scratch, rows: TermRows, i: int, gravity: vec3, load: wp.array(dtype=vec6), has_loads: int,
    current: wp.Function,
):  # fmt: skip
    """Remove the weight of the fluid's inertia from F; with loads, add drag and the forces of current and wake."""
    for j in range(t.fluid.node.shape[0]):
        k = t.fluid.node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        F_B = t.fluid.weightless[j] * se3.join(vec3(), wp.transpose(R) * gravity)
        if has_loads != 0:
            y = s.node[i, k].eta
            if t.fluid.has_current != 0:
                C, C_rate = current_at(t, rows, load, p + origin_of(t, s, i, k), current)
                M_A = in_base(R, p, t.fluid.added[j])
                M_D = in_base(R, p, t.fluid.displaced[j])
                s.node[i, k].F = s.node[i, k].F + current_force(M_A, M_D, y, C, C_rate)
                y -= C
            F_B += drag(t.fluid.drag[j], se3.Ad_inverse(R, p, y))
        s.node[i, k].F = s.node[i, k].F + se3.Ad_dual(R, p, F_B)
    if has_loads != 0:
        for j in range(t.fluid.tail_node.shape[0]):
            k = t.fluid.tail_node[j]
            R = s.node[i, k].R
            p = s.node[i, k].p
            C, _C_rate = current_at(t, rows, load, p + origin_of(t, s, i, k), current)
            V = se3.linear(se3.Ad_inverse(R, p, s.node[i, k].eta - C))
            Phi = R * wake(t.fluid.tail_mass[j], V)
            s.node[i, k].F = s.node[i, k].F - wrench_at_origin(p, vec3(), Phi)


@wp.func(inline=False)
def respond_to_fluid(
    t: Tables,
    s: Scratch,
    rows: TermRows,
    i: int,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    has_loads: int,
    H: wp.array2d(dtype=mat6),
    current: wp.Function,
):
    """Add H and N of the fluid's wrenches."""
    for j in range(t.fluid.node.shape[0]):
        k = t.fluid.node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        H[i, k] = H[i, k] + in_base(R, p, t.fluid.weightless[j]) * ad_matrix(se3.join(vec3(), gravity))
        if has_loads != 0:
            eta = s.node[i, k].eta
            C, C_rate = current_at(t, rows, load, p + origin_of(t, s, i, k), current)
            N = in_base(R, p, drag_response(t.fluid.drag[j], se3.Ad_inverse(R, p, eta - C)))
            if t.fluid.has_current != 0:
                by_pose, rate_by_pose = current_by_pose(t, rows, load, p, p + origin_of(t, s, i, k), C, C_rate, current)
                M_A = in_base(R, p, t.fluid.added[j])
                M_D = in_base(R, p, t.fluid.displaced[j])
                L = momentum_response(M_A, eta - C)
                H[i, k] = H[i, k] + (M_A * ad_matrix(eta) - L - N) * by_pose - (M_A + M_D) * rate_by_pose
                N += L - momentum_response(M_A, eta) - M_A * ad_matrix(C)
            s.near.N[i, k] = s.near.N[i, k] + N
    if has_loads != 0:
        for j in range(t.fluid.tail_node.shape[0]):
            k = t.fluid.tail_node[j]
            R = s.node[i, k].R
            p = s.node[i, k].p
            C, C_rate = current_at(t, rows, load, p + origin_of(t, s, i, k), current)
            V = se3.linear(se3.Ad_inverse(R, p, s.node[i, k].eta - C))
            N = -in_base(R, p, se3.block(mat3(), mat3(), mat3(), wake_response(t.fluid.tail_mass[j], V)))
            if t.fluid.has_current != 0:
                by_pose, rate_by_pose = current_by_pose(t, rows, load, p, p + origin_of(t, s, i, k), C, C_rate, current)
                H[i, k] = H[i, k] - N * by_pose
            s.near.N[i, k] = s.near.N[i, k] + N


@wp.func
def no_current_of_user(x: vec3, time: wp.float64) -> vec6:
    """The current of models without a current of the user."""
    return vec6()


def _bound(place: Any, current: Any = no_current_of_user) -> dict[str, Any]:
    @wp.func(module="unique")
    def add(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
        add_fluid(t, s, t.terms[place], i, gravity, load, acting & LOADS, current)

    @wp.func(module="unique")
    def respond(
        t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
    ):
        respond_to_fluid(t, s, t.terms[place], i, gravity, load, acting & LOADS, H, current)

    return {"add": add, "respond": respond}


def _currents(model: Model) -> list[Any]:
    """The current that kernels call."""
    return [model.fluid.current] if is_compiled(model.fluid.current) else []


TERM = Term(
    "fluid",
    0,  # no flag: the correction of the weight also acts without loads
    lambda model: model.has_surroundings and not model.has_contacts_only,
    users=lambda model: codes_in_kernels(model, _currents(model)),
    bind=_bound,
    tables=lambda model: (np.zeros((0, 0)), np.zeros((0, 0))),
    natives=lambda model: native_codes(model, _currents(model)),
)
