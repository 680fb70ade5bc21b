"""Loads: point loads, and compiled forces of the user, as terms inside kernels.

The wrench of a point load with fixed direction in the world depends on the pose of its node. A user's force may depend
on pose and twist; its derivatives are central differences.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportIndexIssue=false, reportInvalidTypeForm=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import warp as wp

from lissom.forces.term import Term, codes_in_kernels, switch_of
from lissom.lie import se3, so3
from lissom.lie.se3 import in_base
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes.columns import Matrix
from lissom.passes.features import is_rigid_with_contacts
from lissom.passes.scratch import LOADS, Scratch
from lissom.passes.traversal import origin_of

STEP = wp.constant(wp.float64(6e-6))  # of central differences of a user's force


@wp.func
def apply_loads(
    t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, wrench: wp.array(dtype=vec6), acting: int
):  # fmt: skip
    """Subtract the point loads from the wrenches of their nodes."""
    for j in range(t.loads.node.shape[0]):
        k = t.loads.node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        m = se3.angular(wrench[j])
        f = se3.linear(wrench[j])
        if t.loads.is_body[j] != 0:
            m = R * (t.loads.R[j] * m)
            f = R * (t.loads.R[j] * f)
        x = p + R * t.loads.p[j]
        s.node[i, k].F = s.node[i, k].F - se3.join(m + wp.cross(x, f), f)


@wp.func
def load_stiffness(
    t: Tables, s: Scratch, i: int, gravity: vec3, wrench: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
):
    """H of loads with fixed direction in the world: −[[r^ f^ + m^, 0], [f^, 0]]; follower loads have none."""
    for j in range(t.loads.node.shape[0]):
        if t.loads.is_body[j] == 0:
            k = t.loads.node[j]
            r = s.node[i, k].p + s.node[i, k].R * t.loads.p[j]
            f = so3.hat(se3.linear(wrench[j]))
            top = so3.hat(r) * f + so3.hat(se3.angular(wrench[j]))
            H[i, k] = H[i, k] - se3.block(top, mat3(), f, mat3())


LOAD_TERM = Term(
    "point loads",
    int(LOADS),
    lambda model: not is_rigid_with_contacts(model),
    add=apply_loads,
    respond=load_stiffness,
)


@wp.func(inline=False)
def add_forces_of_user(t: Tables, s: Scratch, i: int, load: wp.array(dtype=vec6), force: wp.Function):
    """Subtract the users' compiled forces from F of their nodes."""
    for j in range(t.forces.node.shape[0]):
        k = t.forces.node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        W = user_wrench(t, j, R, p + origin_of(t, s, i, k), se3.Ad_inverse(R, p, s.node[i, k].eta), load, force)
        s.node[i, k].F = s.node[i, k].F - se3.Ad_dual(R, p, W)


@wp.func
def user_wrench(t: Tables, j: int, R: mat3, x: vec3, eta: vec6, load: wp.array(dtype=vec6), force: wp.Function) -> vec6:
    """The wrench of row j of the forces, in the body's axes."""
    time = load[t.loads.node.shape[0] + 1][0]
    return t.forces.weight[j] * force(t.forces.which[j], R, x, eta, t.forces.s[j], time)


@wp.func(inline=False)
def respond_to_user(
    t: Tables, s: Scratch, i: int, load: wp.array(dtype=vec6), H: wp.array2d(dtype=mat6), force: wp.Function
):
    """Add H and N of the users' compiled forces, by central differences along the body's axes."""
    for j in range(t.forces.node.shape[0]):
        k = t.forces.node[j]
        R = s.node[i, k].R
        p = s.node[i, k].p
        x = p + origin_of(t, s, i, k)
        eta = se3.Ad_inverse(R, p, s.node[i, k].eta)
        by_pose = mat6()
        by_twist = mat6()
        for c in range(6):
            step = vec6()
            step[c] = STEP
            w = se3.angular(step)
            move = so3.exp(w)
            back = wp.transpose(move)
            along = R * se3.linear(step)
            ahead = user_wrench(t, j, R * move, x + along, eta, load, force)
            behind = user_wrench(t, j, R * back, x - along, eta, load, force)
            faster = user_wrench(t, j, R, x, eta + step, load, force)
            slower = user_wrench(t, j, R, x, eta - step, load, force)
            for r in range(6):
                by_pose[r, c] = (behind[r] - ahead[r]) / (so3.TWO * STEP)
                by_twist[r, c] = (slower[r] - faster[r]) / (so3.TWO * STEP)
        H[i, k] = H[i, k] + in_base(R, p, by_pose)
        s.near.N[i, k] = s.near.N[i, k] + in_base(R, p, by_twist)


@wp.func
def no_force_of_user(which: int, R: mat3, p: vec3, eta: vec6, at: wp.float64, time: wp.float64) -> vec6:
    """The force of models without forces of users."""
    return vec6()


def _either(one: Any, other: Any, number: int) -> Any:
    here = wp.constant(wp.int32(number))

    @wp.func(module="unique")
    def either(which: int, R: mat3, p: vec3, eta: vec6, at: wp.float64, time: wp.float64) -> vec6:
        if which == here:
            return one(R, p, eta, at, time)
        return other(which, R, p, eta, at, time)

    return either


def _bound(*functions: Any) -> dict[str, Any]:
    force = switch_of(functions, _either, no_force_of_user)

    @wp.func(module="unique")
    def add(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
        add_forces_of_user(t, s, i, load, force)

    @wp.func(module="unique")
    def respond(
        t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
    ):
        respond_to_user(t, s, i, load, H, force)

    return {"add": add, "respond": respond}


USER_TERM = Term(
    "compiled forces of the user's own",
    int(LOADS),
    lambda model: len(codes_in_kernels(model, model.forces.compiled)) > 0,
    users=lambda model: codes_in_kernels(model, model.forces.compiled),
    bind=_bound,
)
