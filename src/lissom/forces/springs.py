"""Springs between two points, and how they answer to the motion of both, inside kernels.

A spring pulls its end a, at x on node A, towards its end b on node B by f = T n, where n points from a to b and L is
their distance. With B at rest and u the velocity of a, L̇ = −n·u, P = 1 − n nᵀ:

    ∂f/∂x = −T_L n nᵀ − (T/L) P + (T_L̇/L) n (P u)ᵀ,   ∂f/∂u = −T_L̇ n nᵀ                                     (1)

which is a contact of a ball of no radius; what both nodes feel follows by touching (1) and (2).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.forces.contact_force import contact_response, wrench_at_origin
from lissom.forces.distances import SHORT, projector
from lissom.forces.laws import (
    COMPILED,
    energy_of_user,
    pulling_part,
    slope_by_rate_of_user,
    slope_of_user,
    table_energy,
    table_force,
    table_rows,
)
from lissom.forces.term import Term, chosen
from lissom.forces.touching import pose_of, put_response, twist_of
from lissom.lie import se3, so3
from lissom.lie.types import mat3, mat6, vec3, vec6
from lissom.model.model import Model
from lissom.model.tables import Tables, TermRows
from lissom.passes.base_frames import origin_between
from lissom.passes.column_tables import Matrix
from lissom.passes.scratch import SPRINGS, Scratch
from lissom.robot.functions import is_compiled


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
def tension_of(rows: TermRows, j: int, length: wp.float64, rate: wp.float64, law: wp.Function):
    """T of spring j and its derivatives by the length and its rate."""
    first = rows.index[j, 0]
    count = rows.index[j, 1]
    if count < 0:
        by_length = slope_of_user(first, length, rate, law)
        return law(first, length, rate), by_length, slope_by_rate_of_user(first, length, rate, law)
    value, slope = table_force(rows, first, count, length)
    c = rows.number[j, 0]
    total = value + c * rate
    if rows.number[j, 1] != so3.ZERO and wp.min(value, total) <= so3.ZERO:
        return so3.ZERO, so3.ZERO, so3.ZERO
    return total, slope, c


@wp.func
def ends_of(t: Tables, s: Scratch, i: int, j: int):
    """Both ends of spring j in the base frame."""
    a = t.springs.node[j, 0]
    b = t.springs.node[j, 1]
    origin = origin_between(t, s, i, a, b)
    R_a, p_a = pose_of(s, i, a, origin)
    R_b, p_b = pose_of(s, i, b, origin)
    return R_a * t.springs.position[j, 0] + p_a, R_b * t.springs.position[j, 1] + p_b


@wp.func(inline=False)
def pull_of(t: Tables, s: Scratch, rows: TermRows, i: int, j: int, law: wp.Function) -> Pull:
    """Spring j in the base frame."""
    x = Pull()
    x.a = t.springs.node[j, 0]
    x.b = t.springs.node[j, 1]
    start, end = ends_of(t, s, i, j)
    x.x = start
    x.length = wp.length(end - start)
    x.n = (end - start) / wp.max(x.length, SHORT)
    rho = twist_of(s, i, x.a) - twist_of(s, i, x.b)
    x.u = se3.linear(rho) + wp.cross(se3.angular(rho), x.x)
    T, T_L, T_rate = tension_of(rows, j, x.length, -wp.dot(x.n, x.u), law)
    x.tension = T
    x.by_length = T_L
    x.by_rate = T_rate
    return x


@wp.func(inline=False)
def add_springs(t: Tables, s: Scratch, rows: TermRows, i: int, law: wp.Function):
    """F of both nodes of each spring."""
    for j in range(t.springs.node.shape[0]):
        x = pull_of(t, s, rows, i, j, law)
        W = wrench_at_origin(x.x, vec3(), x.tension * x.n)
        if x.a >= 0:
            s.node[i, x.a].F = s.node[i, x.a].F - W
        if x.b >= 0:
            s.node[i, x.b].F = s.node[i, x.b].F + W


@wp.func(inline=False)
def respond_to_springs(
    t: Tables, s: Scratch, rows: TermRows, i: int, H: wp.array2d(dtype=mat6), law: wp.Function
):  # fmt: skip
    """How both nodes of each spring answer to its motion; what ties them is listed in s.near after the contacts."""
    for j in range(t.springs.node.shape[0]):
        x = pull_of(t, s, rows, i, j, law)
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


@wp.func(inline=False)
def energy_of_springs(t: Tables, s: Scratch, rows: TermRows, i: int, law: wp.Function) -> wp.float64:
    """U of all springs at rest, ∫ T(x, 0) dx; zero at L₀, where a cable is slack, at a table's first length, or, of a
    user's law, at no length."""
    total = wp.float64(0.0)
    for j in range(t.springs.node.shape[0]):
        start, end = ends_of(t, s, i, j)
        length = wp.length(end - start)
        if rows.index[j, 1] < 0:
            total += energy_of_user(rows.index[j, 0], length, law)
        else:
            total += table_energy(rows, rows.index[j, 0], rows.index[j, 1], length)
    return total


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


def _bound(place: Any, *functions: Any) -> dict[str, Any]:
    law = chosen(functions, _either, no_law_of_user)

    @wp.func(module="unique")
    def add(t: Tables, s: Scratch, i: int, q: Matrix, gravity: vec3, load: wp.array(dtype=vec6), acting: int):
        add_springs(t, s, t.terms[place], i, law)

    @wp.func(module="unique")
    def respond(
        t: Tables, s: Scratch, i: int, gravity: vec3, load: wp.array(dtype=vec6), acting: int, H: wp.array2d(dtype=mat6)
    ):
        respond_to_springs(t, s, t.terms[place], i, H, law)

    @wp.func(module="unique")
    def energy(t: Tables, s: Scratch, i: int, q: Matrix) -> wp.float64:
        return energy_of_springs(t, s, t.terms[place], i, law)

    return {"add": add, "respond": respond, "energy": energy}


def _compiled(model: Model) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(law for law in model.springs.other_law if is_compiled(law)))


def _tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """By spring the first row of its table or the number of its function, and how many rows; damping and whether it
    only pulls, then the rows of the tables (see laws)."""
    compiled, count = _compiled(model), len(model.springs)
    index, pieces = [], [np.zeros((0, 6))]
    for (k, rest, preload, _, slack), law in zip(model.springs.law.tolist(), model.springs.other_law):
        if is_compiled(law):
            index.append((compiled.index(law), COMPILED))
            continue
        knot, c, zero = np.array([rest]), np.array([[preload, k, 0.0, 0.0]]), rest
        if law is not None:
            (knot, c), zero = law, law[0][0]
        elif slack and k > 0.0:
            zero = rest - preload / k
        if slack:
            knot, c = pulling_part(knot, c)
        index.append((count + sum(map(len, pieces)), len(knot)))
        pieces.append(table_rows(knot, c, zero))
    numbers = np.hstack([model.springs.law[:, 3:], np.zeros((count, 4))])
    return np.array(index, dtype=np.int32).reshape(-1, 2), np.vstack([numbers, *pieces])


TERM = Term(
    "springs between points",
    int(SPRINGS),
    lambda model: model.has_surroundings,
    users=_compiled,
    bind=_bound,
    tables=_tables,
)
