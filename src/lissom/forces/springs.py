"""Springs between two points, and how they answer to the motion of both, inside kernels.

A spring pulls its end a, at x on node A, towards its end b on node B by f = T n, where n points from a to b and L is
their distance. With B at rest and u the velocity of a, L̇ = −n·u, P = 1 − n nᵀ:

    ∂f/∂x = −T_L n nᵀ − (T/L) P + (T_L̇/L) n (P u)ᵀ,   ∂f/∂u = −T_L̇ n nᵀ                                     (1)

which is a contact of a ball of no radius; what both nodes feel follows as in `touching`, (1) and (2) there.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import warp as wp

from lissom.forces.contact_force import contact_response, wrench_at_origin
from lissom.forces.distances import projector
from lissom.forces.term import Term, chosen
from lissom.forces.touching import pose_of, put_response, twist_of
from lissom.lie import se3, so3
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.springs import COMPILED, TABLE
from lissom.model.tables import Tables
from lissom.sweep.base_frames import origin_between
from lissom.sweep.scratch import SPRINGS, Scratch

IS_TABLE = wp.constant(wp.int32(TABLE))
IS_COMPILED = wp.constant(wp.int32(COMPILED))
SHORT = wp.constant(wp.float64(1e-12))  # a length below which a spring has no direction [m]
STEP = wp.constant(wp.float64(1e-3))  # of differences of a user's law, of fourth order, relative to the length
LEAST_STEP = wp.constant(wp.float64(1e-4))  # the same, in m and m/s


@wp.struct
class Pull:
    """A spring at one state: nodes, where its end a is, n, L, velocity of a against B, T and its derivatives."""

    a: wp.int32
    b: wp.int32
    x: vec3
    n: vec3
    length: wp.float64
    u: vec3
    tension: wp.float64
    by_length: wp.float64
    by_rate: wp.float64


@wp.func
def table_tension(t: Tables, j: int, length: wp.float64):
    """Tension of a table and its slope; straight beyond the ends."""
    first = t.springs.first[j]
    last = first + t.springs.pieces[j]
    e = wp.int32(first)
    while e < last and length >= t.springs.knot[e + 1]:
        e += 1
    x = length - t.springs.knot[e]
    c1 = t.springs.coefficient[e, 1]
    c2 = t.springs.coefficient[e, 2]
    c3 = t.springs.coefficient[e, 3]
    if x < so3.ZERO:
        c2 = so3.ZERO
        c3 = so3.ZERO
    value = t.springs.coefficient[e, 0] + x * (c1 + x * (c2 + x * c3))
    return value, c1 + x * (so3.TWO * c2 + wp.float64(3.0) * x * c3)


@wp.func
def slope_of_four(far_behind: wp.float64, behind: wp.float64, ahead: wp.float64, far_ahead: wp.float64, h: wp.float64):
    """Derivative by the central difference of fourth order."""
    return (wp.float64(8.0) * (ahead - behind) - (far_ahead - far_behind)) / (wp.float64(12.0) * h)


@wp.func
def compiled_tension(which: int, length: wp.float64, rate: wp.float64, law: wp.Function):
    """Tension of a user's law and its derivatives by differences."""
    h = STEP * length + LEAST_STEP
    g = STEP * wp.abs(rate) + LEAST_STEP
    by_length = slope_of_four(
        law(which, length - so3.TWO * h, rate),
        law(which, length - h, rate),
        law(which, length + h, rate),
        law(which, length + so3.TWO * h, rate),
        h,
    )
    by_rate = slope_of_four(
        law(which, length, rate - so3.TWO * g),
        law(which, length, rate - g),
        law(which, length, rate + g),
        law(which, length, rate + so3.TWO * g),
        g,
    )
    return law(which, length, rate), by_length, by_rate


@wp.func
def tension_of(t: Tables, j: int, length: wp.float64, rate: wp.float64, law: wp.Function):
    """T of spring j and its derivatives by the length and its rate."""
    if t.springs.kind[j] == IS_COMPILED:
        T, T_L, T_rate = compiled_tension(t.springs.first[j], length, rate, law)
        return T, T_L, T_rate
    k = t.springs.law[j, 0]
    value = t.springs.law[j, 2] + k * (length - t.springs.law[j, 1])
    if t.springs.kind[j] == IS_TABLE:
        value_t, slope_t = table_tension(t, j, length)
        value = value_t
        k = slope_t
    c = t.springs.law[j, 3]
    total = value + c * rate
    if t.springs.law[j, 4] != so3.ZERO and wp.min(value, total) <= so3.ZERO:
        return so3.ZERO, so3.ZERO, so3.ZERO
    return total, k, c


@wp.func(inline=False)
def pull_of(t: Tables, s: Scratch, i: int, j: int, law: wp.Function) -> Pull:
    """Spring j in the base frame."""
    x = Pull()
    x.a = t.springs.node[j, 0]
    x.b = t.springs.node[j, 1]
    origin = origin_between(t, s, i, x.a, x.b)
    R_a, p_a = pose_of(s, i, x.a, origin)
    R_b, p_b = pose_of(s, i, x.b, origin)
    x.x = R_a * t.springs.position[j, 0] + p_a
    across = R_b * t.springs.position[j, 1] + p_b - x.x
    x.length = wp.length(across)
    x.n = across / wp.max(x.length, SHORT)
    rho = twist_of(s, i, x.a) - twist_of(s, i, x.b)
    x.u = se3.linear(rho) + wp.cross(se3.angular(rho), x.x)
    T, T_L, T_rate = tension_of(t, j, x.length, -wp.dot(x.n, x.u), law)
    x.tension = T
    x.by_length = T_L
    x.by_rate = T_rate
    return x


@wp.func(inline=False)
def add_springs(t: Tables, s: Scratch, i: int, law: wp.Function):
    """F of both nodes of each spring."""
    for j in range(t.springs.node.shape[0]):
        x = pull_of(t, s, i, j, law)
        W = wrench_at_origin(x.x, vec3(), x.tension * x.n)
        if x.a >= 0:
            s.node[i, x.a].F = s.node[i, x.a].F - W
        if x.b >= 0:
            s.node[i, x.b].F = s.node[i, x.b].F + W


@wp.func(inline=False)
def respond_to_springs(t: Tables, s: Scratch, i: int, H: wp.array2d(dtype=mat6), law: wp.Function):
    """How both nodes of each spring answer to its motion; what ties them is listed in s.near after the contacts."""
    for j in range(t.springs.node.shape[0]):
        x = pull_of(t, s, i, j, law)
        P = projector(x.n)
        along = wp.outer(x.n, x.n)
        per_length = x.by_length
        across = vec3()
        if x.length > SHORT:
            per_length = x.tension / x.length
            across = (x.by_rate / x.length) * (P * x.u)
        f = x.tension * x.n
        D_c = wp.outer(x.n, across) - x.by_length * along - per_length * P  # (1)
        D_u = -x.by_rate * along
        H_c, N_c = contact_response(so3.ZERO, x.n, mat3(), x.u, vec3(), f, vec3(), D_c, D_u, mat3(), mat3())
        put_response(s, i, x.a, x.b, x.x, vec3(), f, H_c, N_c, H)


@wp.func
def no_law_of_user(which: int, length: wp.float64, rate: wp.float64) -> wp.float64:
    """What stands for the users' laws where there are none."""
    return so3.ZERO


def _either(one: Any, other: Any, number: int) -> Any:
    here = wp.constant(wp.int32(number))

    @wp.func(module="unique")
    def either(which: int, length: wp.float64, rate: wp.float64) -> wp.float64:
        if which == here:
            return one(length, rate)
        return other(which, length, rate)

    return either


def _bound(*functions: Any) -> dict[str, Any]:
    law = chosen(functions, _either, no_law_of_user)

    @wp.func(module="unique")
    def add(t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
        add_springs(t, s, i, law)

    @wp.func(module="unique")
    def respond(
        t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
    ):
        respond_to_springs(t, s, i, H, law)

    return {"add": add, "respond": respond}


TERM = Term(
    "springs between points",
    int(SPRINGS),
    lambda model: model.meets_anything,
    users=lambda model: model.springs.compiled,
    bind=_bound,
)
