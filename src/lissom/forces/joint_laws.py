"""Stops and nonlinear springs of joints, coordinate by coordinate, inside kernels.

A stop of stiffness k and damping c, d deep behind its limit, sets in smoothly over a width w and pushes back by

    N = max(0, k R(d) + c S(d) ḋ),   S = z² (3 − 2 z),   R = w (z³ − z⁴/2),   z = d/w                      (1)
    U = k Q(d),   Q = w² (z⁴/4 − z⁵/10)                                                                   (2)

and beyond w with S = 1, R = d − w/2, Q = (d − w/2)²/2 + w²/40. S = R' and R = Q', so that N and its derivatives have no
jump but where damping would pull. A spring takes f(x − rest) to hold, cubic pieces or a Warp function, with the energy
∫ f from rest.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.forces.laws import COMPILED, energy_of_user, slope_of_user, table_energy, table_force, table_rows
from lissom.forces.term import Term, chosen
from lissom.lie import so3
from lissom.model.model import Model
from lissom.model.tables import Tables, TermRows
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.scratch import SPRINGS, Scratch
from lissom.robot.functions import is_compiled
from lissom.robot.joints import coordinate_laws


@wp.func
def stop(d: wp.float64, rate: wp.float64, k: wp.float64, c: wp.float64, w: wp.float64):
    """N of (1) and its derivatives by d and ḋ."""
    if not d > so3.ZERO:
        return so3.ZERO, so3.ZERO, so3.ZERO
    S = so3.ONE
    S_d = so3.ZERO
    R = d - so3.HALF * w
    if d < w:
        z = d / w
        S = z * z * (wp.float64(3.0) - so3.TWO * z)
        S_d = wp.float64(6.0) * z * (so3.ONE - z) / w
        R = w * z * z * z * (so3.ONE - so3.HALF * z)
    N = k * R + c * S * rate
    if N <= so3.ZERO:
        return so3.ZERO, so3.ZERO, so3.ZERO
    return N, k * S + c * S_d * rate, c * S


@wp.func
def stop_energy(d: wp.float64, k: wp.float64, w: wp.float64) -> wp.float64:
    """U of (2)."""
    if not d > so3.ZERO:
        return so3.ZERO
    if d < w:
        z = d / w
        return k * w * w * z * z * z * z * (wp.float64(0.25) - wp.float64(0.1) * z)
    x = d - so3.HALF * w
    return k * (so3.HALF * x * x + w * w / wp.float64(40.0))


@wp.func
def spring_of(rows: TermRows, e: int, x: wp.float64, law: wp.Function):
    """f of the spring of law e and its slope."""
    first = rows.index[e, 2]
    count = rows.index[e, 3]
    if count == 0:
        return so3.ZERO, so3.ZERO
    if count < 0:
        return law(first, x, so3.ZERO), slope_of_user(first, x, so3.ZERO, law)
    f, slope = table_force(rows, first, count, x)
    return f, slope


@wp.func
def spring_energy_of(rows: TermRows, e: int, x: wp.float64, law: wp.Function) -> wp.float64:
    """∫ f from 0 to x."""
    first = rows.index[e, 2]
    count = rows.index[e, 3]
    if count == 0:
        return so3.ZERO
    if count < 0:
        return energy_of_user(first, x, law)
    return table_energy(rows, first, count, x)


@wp.func
def law_of(rows: TermRows, e: int, x: wp.float64, rate: wp.float64, law: wp.Function):
    """Force of law e and its derivatives by the coordinate and its rate."""
    k = rows.number[e, 2]
    c = rows.number[e, 3]
    w = rows.number[e, 4]
    low, low_d, low_rate = stop(rows.number[e, 0] - x, -rate, k, c, w)
    high, high_d, high_rate = stop(x - rows.number[e, 1], rate, k, c, w)
    f, f_x = spring_of(rows, e, x - rows.number[e, 5], law)
    return f + high - low, f_x + high_d + low_d, high_rate + low_rate


@wp.func
def no_law_of_user(which: int, x: wp.float64, rate: wp.float64) -> wp.float64:
    """What stands for the users' laws where there are none."""
    return so3.ZERO


def _either(one: Any, other: Any, number: int) -> Any:
    here = wp.constant(wp.int32(number))

    @wp.func(module="unique")
    def either(which: int, x: wp.float64, rate: wp.float64) -> wp.float64:
        if which == here:
            return one(x)
        return other(which, x, rate)

    return either


def _bound(place: Any, *functions: Any) -> dict[str, Any]:
    law = chosen(functions, _either, no_law_of_user)

    @wp.func(module="unique")
    def force(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, tau: Matrix):
        rows = t.terms[place]
        for e in range(rows.index.shape[0]):
            j = rows.index[e, 0]
            f, _f_x, _f_rate = law_of(rows, e, q[i, rows.index[e, 1]], v[i, j], law)
            tau[i, j] = tau[i, j] + f

    @wp.func(module="unique")
    def stiffen(
        t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64,
        by_v: wp.float64, out: Matrix,
    ):  # fmt: skip
        rows = t.terms[place]
        for e in range(rows.index.shape[0]):
            j = rows.index[e, 0]
            _f, f_x, f_rate = law_of(rows, e, q[i, rows.index[e, 1]], v[i, j], law)
            at = j * x.width + j
            out[i, at] = out[i, at] + by_q * f_x + by_v * f_rate

    @wp.func(module="unique")
    def change(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, dq: Matrix, dv: Matrix, tau: Matrix):
        rows = t.terms[place]
        for e in range(rows.index.shape[0]):
            j = rows.index[e, 0]
            _f, f_x, f_rate = law_of(rows, e, q[i, rows.index[e, 1]], v[i, j], law)
            tau[i, j] = tau[i, j] + f_x * dq[i, j] + f_rate * dv[i, j]

    @wp.func(module="unique")
    def energy(t: Tables, s: Scratch, i: int, q: Matrix) -> wp.float64:
        total = wp.float64(0.0)
        rows = t.terms[place]
        for e in range(rows.index.shape[0]):
            x = q[i, rows.index[e, 1]]
            total += stop_energy(rows.number[e, 0] - x, rows.number[e, 2], rows.number[e, 4])
            total += stop_energy(x - rows.number[e, 1], rows.number[e, 2], rows.number[e, 4])
            total += spring_energy_of(rows, e, x - rows.number[e, 5], law)
        return total

    return {"force": force, "stiffen": stiffen, "change": change, "energy": energy}


def _laws(model: Model) -> list[tuple[int, Any]]:
    """Velocity coordinate and CoordinateLaw of each coordinate that has one."""
    joints = zip(model.links.names, model.links.joint, model.links.v_start.tolist())
    return [(v + c, law) for name, joint, v in joints for c, law in coordinate_laws(joint, f"link {name!r} > joint")]


def _compiled(model: Model) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(law.spring for _, law in _laws(model) if is_compiled(law.spring)))


def _tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """By law its coordinates in v and q, the first row of its table or the number of its function, and how many rows;
    limits, k, c, w and rest, then by row of a table knot, coefficients, and energy at the knot."""
    laws, compiled = _laws(model), _compiled(model)
    index, pieces = [], [np.zeros((0, 6))]
    for j, law in laws:
        first, count = 0, 0
        if is_compiled(law.spring):
            first, count = compiled.index(law.spring), COMPILED
        elif law.pieces is not None:
            first, count = len(laws) + sum(map(len, pieces)), len(law.pieces[0])
            pieces.append(table_rows(*law.pieces, 0.0))
        index.append((j, model.dofs.q[j], first, count))
    numbers = np.array([law.numbers for _, law in laws]).reshape(-1, 6)
    return np.array(index, dtype=np.int32).reshape(-1, 4), np.vstack([numbers, *pieces])


TERM = Term("stops and nonlinear springs of joints", int(SPRINGS), users=_compiled, bind=_bound, tables=_tables)
