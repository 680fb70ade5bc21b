"""The fluid at the nodes, and how it answers to their motion, inside kernels.

Weight acts on what is heavy alone: F gains L (0; G) and H gains L ad_G, L being the inertia of the fluid driven and
displaced. Drag, wake and what a current does are those of fluid_force. Source: Mathew 2025 §6.3.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import warp as wp

from lissom.forces.contact_force import wrench_at_origin
from lissom.forces.fluid_force import drag, drag_response, felt_current, momentum_response, wake, wake_response
from lissom.forces.term import Term
from lissom.lie import se3, so3
from lissom.lie.spatial import ad_matrix, in_base
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes.base_frames import origin_of
from lissom.passes.column_tables import Matrix
from lissom.passes.scratch import LOADS, Scratch
from lissom.robot.functions import is_compiled

STEP = wp.constant(wp.float64(6e-6))  # of central differences of a user's current


@wp.func
def current_at(t: Tables, load: wp.array(dtype=vec6), x: vec3, current: wp.Function):
    """Twist C and rate Ċ of the fluid at a point of the world."""
    row = load[t.loads.node.shape[0]] + current(x, load[t.loads.node.shape[0] + 1][0])
    return se3.join(vec3(), se3.angular(row)), se3.join(vec3(), se3.linear(row))


@wp.func(inline=False)
def current_by_pose(
    t: Tables, load: wp.array(dtype=vec6), p: vec3, x: vec3, C: vec6, C_rate: vec6, current: wp.Function
):
    """ad_C + K and ad_Ċ + K̇: how the current at a node, at p in the base frame and x in the world, changes with its
    pose, seen from it."""
    slope = mat3()
    slope_rate = mat3()
    for c in range(3):
        step = vec3()
        step[c] = STEP
        ahead, ahead_rate = current_at(t, load, x + step, current)
        behind, behind_rate = current_at(t, load, x - step, current)
        for r in range(3):
            slope[r, c] = (ahead[3 + r] - behind[3 + r]) / (so3.TWO * STEP)
            slope_rate[r, c] = (ahead_rate[3 + r] - behind_rate[3 + r]) / (so3.TWO * STEP)
    by_pose = ad_matrix(C) + se3.block(mat3(), mat3(), -slope * so3.hat(p), slope)
    return by_pose, ad_matrix(C_rate) + se3.block(mat3(), mat3(), -slope_rate * so3.hat(p), slope_rate)


@wp.func(inline=False)
def add_fluid(
    t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), has_loads: int, current: wp.Function
):
    """F of what gravity does not pull, and with loads of drag, current and wake."""
    for j in range(t.surroundings.fluid_node.shape[0]):
        k = t.surroundings.fluid_node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        F_B = t.surroundings.fluid_weightless[j] * se3.join(vec3(), wp.transpose(R) * gravity)
        if has_loads != 0:
            y = s.node[i, k].eta
            if t.surroundings.has_current != 0:
                C, C_rate = current_at(t, load, p + origin_of(t, s, i, k), current)
                M_A = in_base(R, p, t.surroundings.fluid_added[j])
                M_D = in_base(R, p, t.surroundings.fluid_displaced[j])
                s.node[i, k].F = s.node[i, k].F + felt_current(M_A, M_D, y, C, C_rate)
                y -= C
            F_B += drag(t.surroundings.fluid_drag[j], se3.Ad_inverse(R, p, y))
        s.node[i, k].F = s.node[i, k].F + se3.Ad_dual(R, p, F_B)
    if has_loads != 0:
        for j in range(t.surroundings.tail_node.shape[0]):
            k = t.surroundings.tail_node[j]
            R = s.node[i, k].R
            p = s.node[i, k].p
            C, _C_rate = current_at(t, load, p + origin_of(t, s, i, k), current)
            V = se3.linear(se3.Ad_inverse(R, p, s.node[i, k].eta - C))
            Phi = R * wake(t.surroundings.tail_mass[j], V)
            s.node[i, k].F = s.node[i, k].F - wrench_at_origin(p, vec3(), Phi)


@wp.func(inline=False)
def respond_to_fluid(
    t: Tables,
    s: Scratch,
    i: int,
    gravity: vec3,
    load: wp.array(dtype=vec6),
    has_loads: int,
    H: wp.array2d(dtype=mat6),
    current: wp.Function,
):
    """H and N of the fluid's wrenches."""
    for j in range(t.surroundings.fluid_node.shape[0]):
        k = t.surroundings.fluid_node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        H[i, k] = H[i, k] + in_base(R, p, t.surroundings.fluid_weightless[j]) * ad_matrix(se3.join(vec3(), gravity))
        if has_loads != 0:
            eta = s.node[i, k].eta
            C, C_rate = current_at(t, load, p + origin_of(t, s, i, k), current)
            N = in_base(R, p, drag_response(t.surroundings.fluid_drag[j], se3.Ad_inverse(R, p, eta - C)))
            if t.surroundings.has_current != 0:
                by_pose, rate_by_pose = current_by_pose(t, load, p, p + origin_of(t, s, i, k), C, C_rate, current)
                M_A = in_base(R, p, t.surroundings.fluid_added[j])
                M_D = in_base(R, p, t.surroundings.fluid_displaced[j])
                L = momentum_response(M_A, eta - C)
                H[i, k] = H[i, k] + (M_A * ad_matrix(eta) - L - N) * by_pose - (M_A + M_D) * rate_by_pose
                N += L - momentum_response(M_A, eta) - M_A * ad_matrix(C)
            s.near.N[i, k] = s.near.N[i, k] + N
    if has_loads != 0:
        for j in range(t.surroundings.tail_node.shape[0]):
            k = t.surroundings.tail_node[j]
            R = s.node[i, k].R
            p = s.node[i, k].p
            C, C_rate = current_at(t, load, p + origin_of(t, s, i, k), current)
            V = se3.linear(se3.Ad_inverse(R, p, s.node[i, k].eta - C))
            N = -in_base(R, p, se3.block(mat3(), mat3(), mat3(), wake_response(t.surroundings.tail_mass[j], V)))
            if t.surroundings.has_current != 0:
                by_pose, rate_by_pose = current_by_pose(t, load, p, p + origin_of(t, s, i, k), C, C_rate, current)
                H[i, k] = H[i, k] - N * by_pose
            s.near.N[i, k] = s.near.N[i, k] + N


@wp.func
def no_current_of_user(x: vec3, time: wp.float64) -> vec6:
    """What stands for the user's current where there is none."""
    return vec6()


def _bound(current: Any = no_current_of_user) -> dict[str, Any]:
    @wp.func(module="unique")
    def add(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
        add_fluid(t, s, i, gravity, load, acting & LOADS, current)

    @wp.func(module="unique")
    def respond(
        t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
    ):
        respond_to_fluid(t, s, i, gravity, load, acting & LOADS, H, current)

    return {"add": add, "respond": respond}


TERM = Term(
    "fluid",
    0,  # what it carries of the weight acts without loads
    lambda model: model.has_surroundings,
    users=lambda model: (model.surroundings.current,) if is_compiled(model.surroundings.current) else (),
    bind=_bound,
)
