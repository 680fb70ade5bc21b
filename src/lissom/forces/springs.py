"""Springs: laws of force over a coordinate or a length, stops and springs of joints, elastic couplings of joints, and
springs between two points.

A law is a table or a compiled function of the user. A table has rows (knot, c₀, c₁, c₂, c₃, U at the knot). Between two
knots, with z the distance from the first,

    f = c₀ + c₁ z + c₂ z² + c₃ z³,   U = U(knot) + ∫ f dz                                                 (1)

and before the first knot f is the straight line of its c₀ and c₁. A user's law f(x, ẋ) has derivatives by central
differences of fourth order, or exact ones if it is traced, and the energy ∫ f(y, 0) dy from 0 to x by Gauss's rule.

A stop of a joint, of stiffness k and damping c, becomes stiff smoothly over a width w. At the depth d beyond its limit
it pushes back with the force

    N = max(0, k R(d) + c S(d) ḋ),   S = z² (3 − 2 z),   R = w (z³ − z⁴/2),   z = d/w                      (2)
    U = k Q(d),   Q = w² (z⁴/4 − z⁵/10)                                                                   (3)

and beyond w with S = 1, R = d − w/2, Q = (d − w/2)²/2 + w²/40. S = R' and R = Q', so that N and its derivatives have no
jump except where damping would pull. A spring of a joint has the force f(x − rest) of its law. An elastic coupling has
these forces, and c ẋ of a damper, on x = Σ r_i q_i; with their sum f, joint i feels −r_i f and K gains r_i r_j ∂f/∂x.

A spring between two points pulls its end a, at x on node A, towards its end b on node B with the force f = T n; n
points from a to b and L is their distance. With B at rest and u the velocity of a, L̇ = −n·u, P = 1 − n nᵀ:

    ∂f/∂x = −T_L n nᵀ − (T/L) P + (T_L̇/L) n (P u)ᵀ,   ∂f/∂u = −T_L̇ n nᵀ                                     (4)

This is a contact of a ball of radius zero; the derivatives of the wrenches on both nodes are contact (9) and (10).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

from functools import partial
from math import factorial
from typing import Any

import numpy as np
import warp as wp

from lissom.forces.contact import SHORT, contact_response, pose_of, projector, put_response, twist_of, wrench_at_origin
from lissom.forces.term import (
    SPRING,
    STOP,
    Term,
    code_in_kernels,
    codes_in_kernels,
    native_codes,
    put_spring,
    switch_of,
)
from lissom.lie import se3, so3
from lissom.lie.native import native_functions
from lissom.lie.types import mat3, mat6, vec3, vec6, vec8
from lissom.model.model import Model
from lissom.model.tables import Tables, TermRows
from lissom.passes.columns import Columns, Matrix
from lissom.passes.scratch import SPRINGS, Scratch
from lissom.passes.traversal import origin_between
from lissom.robot.functions import is_compiled
from lissom.robot.joints import coordinate_laws

native = native_functions("forces/springs.h")
COMPILED = -1  # number of pieces of a law that is a user's function
NATIVE = wp.constant(-1)  # number of a user's law that kernels call by its address
BY_X, BY_RATE = wp.constant(1), wp.constant(2)  # added to the number of a user's law for its derivatives
STEP = wp.constant(wp.float64(1e-4))  # h of differences of a user's law is STEP (1 + |x|)
GAUSS_X = wp.constant(vec8(*np.polynomial.legendre.leggauss(8)[0]))
GAUSS_W = wp.constant(vec8(*np.polynomial.legendre.leggauss(8)[1]))
TOLERANCE = wp.constant(wp.float64(1e-13))  # of two halves of a stretch with the whole, over the energy so far
SHORTEST_INTERVAL = wp.constant(wp.float64(1e-8))  # of the stretches, over the whole way
MAX_INTERVALS = wp.constant(2000)


@wp.func
def piece_of(rows: TermRows, first: int, count: int, x: wp.float64):
    """Row of the piece that contains x, the distance of x from its knot, and c₂ and c₃, which are zero before the first
    knot."""
    at = int(first)
    last = first + count - 1
    while at < last and x >= rows.number[at + 1, 0]:
        at += 1
    z = x - rows.number[at, 0]
    if z < so3.ZERO:
        return at, z, so3.ZERO, so3.ZERO
    return at, z, rows.number[at, 3], rows.number[at, 4]


@wp.func
def table_force(rows: TermRows, first: int, count: int, x: wp.float64):
    """f of (1) and its slope."""
    at, z, c2, c3 = piece_of(rows, first, count, x)
    c1 = rows.number[at, 2]
    value = rows.number[at, 1] + z * (c1 + z * (c2 + z * c3))
    return value, c1 + z * (so3.TWO * c2 + wp.float64(3.0) * z * c3)


@wp.func
def table_energy(rows: TermRows, first: int, count: int, x: wp.float64) -> wp.float64:
    """U of (1)."""
    at, z, c2, c3 = piece_of(rows, first, count, x)
    by_z = so3.HALF * rows.number[at, 2] + z * (c2 / wp.float64(3.0) + so3.HALF * so3.HALF * z * c3)
    return rows.number[at, 5] + z * (rows.number[at, 1] + z * by_z)


@wp.func
def fourth_order_difference(
    far_behind: wp.float64, behind: wp.float64, ahead: wp.float64, far_ahead: wp.float64, h: wp.float64
):
    """Derivative by the central difference of fourth order."""
    return (wp.float64(8.0) * (ahead - behind) - (far_ahead - far_behind)) / (wp.float64(12.0) * h)


@wp.func_native(native("call_law"))
def call_law(rows: TermRows, e: int, x: wp.float64, rate: wp.float64) -> vec3:
    """f(x, ẋ) of row e and its derivatives by x and ẋ, from the native code of a user's law."""
    ...


@wp.func
def law_of_user(rows: TermRows, e: int, which: int, x: wp.float64, rate: wp.float64, law: wp.Function) -> vec3:
    """f(x, ẋ) of row e and its derivatives by x and ẋ: those of native code if `which` is NATIVE, otherwise of the
    law of this number."""
    if which == NATIVE:
        return call_law(rows, e, x, rate)
    return vec3(law(which, x, rate), law(which + BY_X, x, rate), law(which + BY_RATE, x, rate))


@wp.func
def force_of_user(rows: TermRows, e: int, which: int, x: wp.float64, law: wp.Function) -> wp.float64:
    """f(x, 0) of row e, as `law_of_user`."""
    if which == NATIVE:
        found = call_law(rows, e, x, so3.ZERO)
        return found[0]
    return law(which, x, so3.ZERO)


@wp.func
def energy_of_interval(
    rows: TermRows, e: int, which: int, a: wp.float64, b: wp.float64, law: wp.Function
) -> wp.float64:
    """∫ f from a to b by Gauss's rule of eight points."""
    total = wp.float64(0.0)
    half = so3.HALF * (b - a)
    for g in range(8):
        total += half * GAUSS_W[g] * force_of_user(rows, e, which, so3.HALF * (a + b) + half * GAUSS_X[g], law)
    return total


@wp.func(inline=False)
def energy_of_user(rows: TermRows, e: int, which: int, x: wp.float64, law: wp.Function) -> wp.float64:
    """∫ f from 0 to x by adaptive integration: an interval is halved until its halves agree with the whole, or until it
    has the shortest length, as at a kink."""
    total = wp.float64(0.0)
    at = wp.float64(0.0)
    step = x / wp.float64(8.0)
    for _stretch in range(MAX_INTERVALS):
        if at == x:
            return total
        ahead = at + step
        if wp.abs(x - at) <= wp.abs(step):
            ahead = x
        middle = so3.HALF * (at + ahead)
        whole = energy_of_interval(rows, e, which, at, ahead, law)
        halves = energy_of_interval(rows, e, which, at, middle, law)
        halves += energy_of_interval(rows, e, which, middle, ahead, law)
        near = wp.abs(halves - whole) <= TOLERANCE * (wp.abs(total) + wp.abs(halves))
        if near or wp.abs(ahead - at) <= SHORTEST_INTERVAL * wp.abs(x):
            total += halves
            at = ahead
            step = so3.TWO * step
        else:
            step = so3.HALF * (ahead - at)
    return total + energy_of_interval(rows, e, which, at, x, law)


def table_rows(knot: np.ndarray, c: np.ndarray, zero: float) -> np.ndarray:
    """Rows (n, 6) of a table from its knots (n,) and coefficients (n, 4), with U = 0 at x = zero."""
    powers = np.diff(knot)[:, None] ** np.arange(1, 5) / np.arange(1, 5)
    energy = np.concatenate([[0.0], np.cumsum((c[:-1] * powers).sum(axis=1))])
    at = max(int(np.searchsorted(knot, zero, side="right")) - 1, 0)
    z = zero - knot[at]
    here = c[at] if z >= 0.0 else np.array([*c[at, :2], 0.0, 0.0])
    energy -= energy[at] + float(here @ (z ** np.arange(1, 5) / np.arange(1, 5)))
    return np.column_stack([knot, c, energy])


def positive_part(knot: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Knots (m,) and coefficients (m, 4) of max(0, f), for a table of f."""
    pieces = [(knot[0], np.polynomial.Polynomial(c[0, :2]), -np.inf, 0.0)]
    pieces += [(x, np.polynomial.Polynomial(row), 0.0, stop - x) for x, row, stop in zip(knot, c, [*knot[1:], np.inf])]
    places = set(knot.tolist())
    for x, f, low, high in pieces:
        roots = f.trim().roots() if f.trim().degree() else np.zeros(0)
        places |= {float(x + z) for z in roots[np.isreal(roots)].real if low < z < high}
    if min(places) < knot[0] or c[0, 0] == 0.0:
        places.add(min(places) - 1.0)  # the straight line before the table may be positive there
    start = np.array(sorted(places))
    rows = []
    for x, stop in zip(start, [*start[1:], start[-1] + 2.0]):
        at = int(np.searchsorted(knot, x, side="right")) - 1
        origin, f, _, _ = pieces[at + 1]
        middle = f(0.5 * (x + stop) - origin)
        rows.append([f.deriv(n)(x - origin) / factorial(n) if middle > 0.0 else 0.0 for n in range(4)])
    return start, np.array(rows)


@wp.func
def stop(d: wp.float64, rate: wp.float64, k: wp.float64, c: wp.float64, w: wp.float64):
    """N of (2) and its derivatives with respect to d and ḋ."""
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
    """U of (3)."""
    if not d > so3.ZERO:
        return so3.ZERO
    if d < w:
        z = d / w
        return k * w * w * z * z * z * z * (wp.float64(0.25) - wp.float64(0.1) * z)
    x = d - so3.HALF * w
    return k * (so3.HALF * x * x + w * w / wp.float64(40.0))


@wp.func
def spring_of(rows: TermRows, e: int, x: wp.float64, law: wp.Function):
    """f of the spring of law e and its derivative with respect to x."""
    first = rows.index[e, 2]
    count = rows.index[e, 3]
    if count == 0:
        return so3.ZERO, so3.ZERO
    if count < 0:
        found = law_of_user(rows, e, first, x, so3.ZERO, law)
        return found[0], found[1]
    f, slope = table_force(rows, first, count, x)
    return f, slope


@wp.func
def spring_energy_of(rows: TermRows, e: int, x: wp.float64, law: wp.Function) -> wp.float64:
    """Energy of the spring of law e, ∫ f from 0 to x."""
    first = rows.index[e, 2]
    count = rows.index[e, 3]
    if count == 0:
        return so3.ZERO
    if count < 0:
        return energy_of_user(rows, e, first, x, law)
    return table_energy(rows, first, count, x)


@wp.func
def stops_of(rows: TermRows, e: int, x: wp.float64, rate: wp.float64):
    """Force of the stops of law e and its derivatives with respect to the coordinate and its rate."""
    k = rows.number[e, 2]
    c = rows.number[e, 3]
    w = rows.number[e, 4]
    low, low_d, low_rate = stop(rows.number[e, 0] - x, -rate, k, c, w)
    high, high_d, high_rate = stop(x - rows.number[e, 1], rate, k, c, w)
    return high - low, high_d + low_d, high_rate + low_rate


@wp.func
def law_of(rows: TermRows, e: int, x: wp.float64, rate: wp.float64, law: wp.Function):
    """Force of law e and its derivatives with respect to the coordinate and its rate."""
    N, N_x, N_rate = stops_of(rows, e, x, rate)
    f, f_x = spring_of(rows, e, x - rows.number[e, 5], law)
    return f + N, f_x + N_x, N_rate


@wp.func
def no_law_of_user(which: int, x: wp.float64, rate: wp.float64) -> wp.float64:
    """The law of models without springs of users."""
    return so3.ZERO


def _of_x(law: Any) -> Any:
    @wp.func(module="unique")
    def value(x: wp.float64, rate: wp.float64) -> wp.float64:
        return law(x)

    return value


def _slope(law: Any) -> Any:
    @wp.func(module="unique")
    def slope(x: wp.float64, rate: wp.float64) -> wp.float64:
        h = STEP * (so3.ONE + wp.abs(x))
        far_behind = law(x - so3.TWO * h, rate)
        far_ahead = law(x + so3.TWO * h, rate)
        return fourth_order_difference(far_behind, law(x - h, rate), law(x + h, rate), far_ahead, h)

    return slope


def _slope_by_rate(law: Any) -> Any:
    @wp.func(module="unique")
    def slope(x: wp.float64, rate: wp.float64) -> wp.float64:
        h = STEP * (so3.ONE + wp.abs(rate))
        far_behind = law(x, rate - so3.TWO * h)
        far_ahead = law(x, rate + so3.TWO * h)
        return fourth_order_difference(far_behind, law(x, rate - h), law(x, rate + h), far_ahead, h)

    return slope


def _functions_of(law: Any, takes_rate: bool) -> tuple[Any, Any, Any]:
    """f(x, ẋ) of a user's law and its derivatives with respect to x and ẋ: those of a traced function, or
    differences."""
    exact = getattr(law, "slopes", None)
    if exact is not None:
        return law, *exact
    value = law if takes_rate else _of_x(law)
    return value, _slope(value), _slope_by_rate(value)


def _either_function(one: Any, other: Any, number: int) -> Any:
    here = wp.constant(wp.int32(number))

    @wp.func(module="unique")
    def either(which: int, x: wp.float64, rate: wp.float64) -> wp.float64:
        if which == here:
            return one(x, rate)
        return other(which, x, rate)

    return either


def switch_of_laws(functions: tuple[Any, ...], takes_rate: bool) -> Any:
    """One function of (which, x, ẋ) for all laws of users. Law k has the numbers 3 k for f, 3 k + BY_X and
    3 k + BY_RATE for its derivatives."""
    found = tuple(f for law in functions for f in _functions_of(law, takes_rate))
    return switch_of(found, _either_function, no_law_of_user)


def _bound_to_laws_of_joints(place: Any, *functions: Any) -> dict[str, Any]:
    return _bound_to_joints(place, switch_of_laws(functions, False), law_of)


def bound_to_coordinates(place: Any, law: Any, law_of: Any) -> dict[str, Any]:
    """The functions of a term that adds f of one law to each row of its tables, without energy.

    Args:
        law_of: function (rows, e, x, ẋ, law) that returns f of row e and its derivatives with respect to x and ẋ. The
            first two integers of a row are the coordinate in v and in q.
    """

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

    return {"force": force, "stiffen": stiffen, "change": change}


def _bound_to_joints(place: Any, law: Any, law_of: Any) -> dict[str, Any]:
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

    @wp.func(module="unique")
    def measure(
        t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, u: Matrix, inverse_scale: wp.array(dtype=wp.float64),
        out: Matrix, row: int,
    ) -> int:  # fmt: skip
        rows = t.terms[place]
        for e in range(rows.index.shape[0]):
            j = rows.index[e, 0]
            x = q[i, rows.index[e, 1]]
            N, N_x, N_rate = stops_of(rows, e, x, v[i, j])
            f, f_x, f_rate = law_of(rows, e, x, v[i, j], law)
            size = so3.ONE / inverse_scale[j]
            put_spring(out, i, row + 2 * e, N, x, v[i, j], N_x, N_rate, size, STOP)
            put_spring(out, i, row + 2 * e + 1, f - N, x, v[i, j], f_x - N_x, f_rate - N_rate, size, SPRING)
        return row + 2 * rows.index.shape[0]

    return {**bound_to_coordinates(place, law, law_of), "energy": energy, "measure": measure}


def _joint_laws(model: Model) -> list[tuple[int, Any]]:
    """Velocity coordinate and CoordinateLaw of each coordinate that has one."""
    joints = zip(model.links.names, model.links.joint, model.links.v_start.tolist())
    return [(v + c, law) for name, joint, v in joints for c, law in coordinate_laws(joint, f"link {name!r} > joint")]


def _joint_laws_of_users(model: Model) -> tuple[Any, ...]:
    return codes_in_kernels(model, (law.spring for _, law in _joint_laws(model) if is_compiled(law.spring)))


def _number_of_law(model: Model, law: Any, compiled: tuple[Any, ...]) -> int:
    """The number of a user's law among those that kernels contain, `compiled`, or NATIVE."""
    code = code_in_kernels(model, law)
    return int(NATIVE) if code is None else 3 * compiled.index(code)


def _joint_tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Tables of the term of joints.

    Returns:
        Integers of each law, (n, 4): its coordinate in v and in q, the first row of its table or the number of its
        function or NATIVE, and the number of rows, 0 without a spring or COMPILED. Numbers (m, 6): of each law its
        limits, k, c, w and rest; then the rows of the tables of (1).
    """
    laws, compiled = _joint_laws(model), _joint_laws_of_users(model)
    index, pieces = [], [np.zeros((0, 6))]
    for j, law in laws:
        first, count = 0, 0
        if is_compiled(law.spring):
            first, count = _number_of_law(model, law.spring, compiled), COMPILED
        elif law.pieces is not None:
            first, count = len(laws) + sum(map(len, pieces)), len(law.pieces[0])
            pieces.append(table_rows(*law.pieces, 0.0))
        index.append((j, model.dofs.q[j], first, count))
    numbers = np.array([law.numbers for _, law in laws]).reshape(-1, 6)
    return np.array(index, dtype=np.int32).reshape(-1, 4), np.vstack([numbers, *pieces])


JOINT_TERM = Term(
    "stops and nonlinear springs of joints",
    int(SPRINGS),
    springs=lambda model: 2 * len(_joint_laws(model)),
    users=_joint_laws_of_users,
    bind=_bound_to_laws_of_joints,
    tables=_joint_tables,
    natives=lambda model: native_codes(model, (law.spring for _, law in _joint_laws(model))),
)


@wp.func
def coupled_sum(rows: TermRows, e: int, i: int, of_velocity: int, x: Matrix) -> wp.float64:
    """Σ r_i x_i of elastic coupling e, with x the coordinates or the velocities."""
    total = wp.float64(0.0)
    for k in range(rows.index[e, 0], rows.index[e, 1]):
        total += rows.number[k, 0] * x[i, rows.index[k, of_velocity]]
    return total


@wp.func
def force_of_coupling(rows: TermRows, e: int, i: int, q: Matrix, v: Matrix):
    """f of elastic coupling e and its derivatives with respect to x and ẋ."""
    x = coupled_sum(rows, e, i, 0, q)
    rate = coupled_sum(rows, e, i, 1, v)
    f, f_x, f_rate = law_of(rows, e, x, rate, no_law_of_user)
    return f + rows.number[e, 6] * rate, f_x, f_rate + rows.number[e, 6]


def _bound_to_couplings(place: Any) -> dict[str, Any]:
    @wp.func(module="unique")
    def force(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, tau: Matrix):
        rows = t.terms[place]
        for e in range(rows.index[0, 0]):
            f, _f_x, _f_rate = force_of_coupling(rows, e, i, q, v)
            for k in range(rows.index[e, 0], rows.index[e, 1]):
                j = rows.index[k, 1]
                tau[i, j] = tau[i, j] + rows.number[k, 0] * f

    @wp.func(module="unique")
    def stiffen(
        t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64,
        by_v: wp.float64, out: Matrix,
    ):  # fmt: skip
        rows = t.terms[place]
        for e in range(rows.index[0, 0]):
            _f, f_x, f_rate = force_of_coupling(rows, e, i, q, v)
            slope = by_q * f_x + by_v * f_rate
            for k in range(rows.index[e, 0], rows.index[e, 1]):
                for c in range(rows.index[e, 0], rows.index[e, 1]):
                    at = rows.index[k, 1] * x.width + rows.index[c, 1]
                    out[i, at] = out[i, at] + rows.number[k, 0] * rows.number[c, 0] * slope

    @wp.func(module="unique")
    def change(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, dq: Matrix, dv: Matrix, tau: Matrix):
        rows = t.terms[place]
        for e in range(rows.index[0, 0]):
            _f, f_x, f_rate = force_of_coupling(rows, e, i, q, v)
            df = f_x * coupled_sum(rows, e, i, 1, dq) + f_rate * coupled_sum(rows, e, i, 1, dv)
            for k in range(rows.index[e, 0], rows.index[e, 1]):
                j = rows.index[k, 1]
                tau[i, j] = tau[i, j] + rows.number[k, 0] * df

    @wp.func(module="unique")
    def energy(t: Tables, s: Scratch, i: int, q: Matrix) -> wp.float64:
        total = wp.float64(0.0)
        rows = t.terms[place]
        for e in range(rows.index[0, 0]):
            x = coupled_sum(rows, e, i, 0, q)
            total += stop_energy(rows.number[e, 0] - x, rows.number[e, 2], rows.number[e, 4])
            total += stop_energy(x - rows.number[e, 1], rows.number[e, 2], rows.number[e, 4])
            total += spring_energy_of(rows, e, x - rows.number[e, 5], no_law_of_user)
        return total

    @wp.func(module="unique")
    def measure(
        t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, u: Matrix, inverse_scale: wp.array(dtype=wp.float64),
        out: Matrix, row: int,
    ) -> int:  # fmt: skip
        rows = t.terms[place]
        for e in range(rows.index[0, 0]):
            x = coupled_sum(rows, e, i, 0, q)
            rate = coupled_sum(rows, e, i, 1, v)
            N, N_x, N_rate = stops_of(rows, e, x, rate)
            f, f_x = spring_of(rows, e, x - rows.number[e, 5], no_law_of_user)
            put_spring(out, i, row + 2 * e, N, x, rate, N_x, N_rate, so3.ONE, STOP)
            put_spring(out, i, row + 2 * e + 1, f, x, rate, f_x, so3.ZERO, so3.ONE, SPRING)
        return row + 2 * rows.index[0, 0]

    return {"force": force, "stiffen": stiffen, "change": change, "energy": energy, "measure": measure}


def _coupling_tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Tables of the term of elastic couplings.

    Returns:
        Integers (m, 4): of each of the n couplings the first of its rows of joints, n for the first coupling, the row
        after them, the first row of its table and the number of these; of each row of a joint its coordinate in q and
        in v. Numbers (m, 7): of each coupling its limits, k, c, w, offset and the damping of its damper; of each row of
        a joint the ratio; then the rows of the tables of (1).
    """
    x = model.joint_couplings
    count, size = len(x.elastic_names), len(x.elastic_names) + len(x.elastic_ratio)
    index, pieces = np.zeros((max(size, 1), 4), dtype=np.int32), [np.zeros((size, 7))]  # a first row for n = 0, too
    for e, (knots, coefficients) in enumerate(x.elastic_spring):
        rows = table_rows(knots, coefficients, 0.0)
        index[e] = *(count + x.elastic_start[e : e + 2]), sum(map(len, pieces)), len(rows)
        pieces.append(np.pad(rows, ((0, 0), (0, 1))))
    index[count:size, :2] = x.elastic_dof
    pieces[0][:count], pieces[0][count:, 0] = x.elastic_law, x.elastic_ratio
    return index, np.vstack(pieces)


COUPLING_TERM = Term(
    "elastic couplings of joints",
    int(SPRINGS),
    lambda model: len(model.joint_couplings.elastic_names) > 0,
    springs=lambda model: 2 * len(model.joint_couplings.elastic_names),
    bind=_bound_to_couplings,
    tables=_coupling_tables,
)


@wp.struct
class SpringState:
    """A spring between points at one state: nodes a and b, position x of its end a, n, length L, velocity u of its end
    a relative to B, tension T and its derivatives with respect to L and L̇."""

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
    """T of spring j and its derivatives with respect to the length and its rate."""
    first = rows.index[j, 0]
    count = rows.index[j, 1]
    if count < 0:
        found = law_of_user(rows, j, first, length, rate, law)
        return found[0], found[1], found[2]
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
def spring_state(t: Tables, s: Scratch, rows: TermRows, i: int, j: int, law: wp.Function) -> SpringState:
    """The state of spring j, in the base frame."""
    x = SpringState()
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
    """Subtract the wrenches of springs from F of both nodes of each spring."""
    for j in range(t.springs.node.shape[0]):
        x = spring_state(t, s, rows, i, j, law)
        W = wrench_at_origin(x.x, vec3(), x.tension * x.n)
        if x.a >= 0:
            s.node[i, x.a].F = s.node[i, x.a].F - W
        if x.b >= 0:
            s.node[i, x.b].F = s.node[i, x.b].F + W


@wp.func(inline=False)
def respond_to_springs(
    t: Tables, s: Scratch, rows: TermRows, i: int, H: wp.array2d(dtype=mat6), law: wp.Function
):  # fmt: skip
    """Add H and N of both nodes of each spring, and list their couplings in s.near."""
    for j in range(t.springs.node.shape[0]):
        x = spring_state(t, s, rows, i, j, law)
        P = projector(x.n)
        along = wp.outer(x.n, x.n)
        per_length = x.by_length
        across = vec3()
        if x.length > SHORT:
            per_length = x.tension / x.length
            across = (x.by_rate / x.length) * (P * x.u)
        f = x.tension * x.n
        D_c = wp.outer(x.n, across) - x.by_length * along - per_length * P  # (4)
        D_u = -x.by_rate * along
        H_c, N_c = contact_response(so3.ZERO, x.n, mat3(), x.u, vec3(), f, vec3(), D_c, D_u, mat3(), mat3())
        put_response(s, i, x.a, x.b, x.x, vec3(), f, H_c, N_c, H)


@wp.func(inline=False)
def measure_springs(t: Tables, s: Scratch, rows: TermRows, i: int, out: Matrix, row: int, law: wp.Function):
    """`measure` of all springs, whose coordinates are their lengths."""
    for j in range(t.springs.node.shape[0]):
        x = spring_state(t, s, rows, i, j, law)
        put_spring(out, i, row + j, x.tension, x.length, -wp.dot(x.n, x.u), x.by_length, x.by_rate, so3.ONE, SPRING)


@wp.func
def energy_of_length(rows: TermRows, j: int, length: wp.float64, law: wp.Function) -> wp.float64:
    """U of spring j at rest."""
    if rows.index[j, 1] < 0:
        return energy_of_user(rows, j, rows.index[j, 0], length, law)
    return table_energy(rows, rows.index[j, 0], rows.index[j, 1], length)


@wp.func(inline=False)
def energy_of_springs(t: Tables, s: Scratch, rows: TermRows, i: int, law: wp.Function) -> wp.float64:
    """U of all springs at rest, ∫ T(x, 0) dx. It is zero at L₀, for a slack cable, at the first length of a table, and
    for a user's law at length zero."""
    total = wp.float64(0.0)
    for j in range(t.springs.node.shape[0]):
        start, end = ends_of(t, s, i, j)
        length = wp.length(end - start)
        total += energy_of_length(rows, j, length, law)
    return total


def bound_to_springs(
    add_springs: Any, respond_to_springs: Any, energy_of_springs: Any, measure_springs: Any, place: Any, *functions: Any
) -> dict[str, Any]:
    """The functions of a term of springs, from those that take the rows of its tables and one function for all laws of
    users."""
    law = switch_of_laws(functions, True)

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

    @wp.func(module="unique")
    def measure(
        t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, u: Matrix, inverse_scale: wp.array(dtype=wp.float64),
        out: Matrix, row: int,
    ) -> int:  # fmt: skip
        measure_springs(t, s, t.terms[place], i, out, row, law)
        return row + t.terms[place].index.shape[0]

    return {"add": add, "respond": respond, "energy": energy, "measure": measure}


def laws_of_users(model: Model, which: slice) -> tuple[Any, ...]:
    """The laws of some springs whose code kernels contain."""
    return codes_in_kernels(model, (law for law in model.springs.other_law[which] if is_compiled(law)))


def native_laws(model: Model, which: slice) -> list[Any]:
    """The native code of the laws of some springs."""
    return native_codes(model, model.springs.other_law[which])


def law_tables(model: Model, which: slice) -> tuple[np.ndarray, np.ndarray]:
    """Tables of a term of some springs.

    Returns:
        Integers of each spring, (n, 2): the first row of its table or the number of its function or NATIVE, and the
        number of rows or COMPILED. Numbers (m, 6): of each spring its damping and whether it only pulls; then the rows
        of the tables of (1).
    """
    springs = model.springs
    compiled, laws = laws_of_users(model, which), springs.law[which]
    count, index, pieces = len(laws), [], [np.zeros((0, 6))]
    for (k, rest, preload, _, slack), law in zip(laws.tolist(), springs.other_law[which]):
        if is_compiled(law):
            index.append((_number_of_law(model, law, compiled), COMPILED))
            continue
        knot, c, zero = np.array([rest]), np.array([[preload, k, 0.0, 0.0]]), rest
        if law is not None:
            (knot, c), zero = law, law[0][0]
        elif slack and k > 0.0:
            zero = rest - preload / k
        if slack:
            knot, c = positive_part(knot, c)
        index.append((count + sum(map(len, pieces)), len(knot)))
        pieces.append(table_rows(knot, c, zero))
    numbers = np.hstack([laws[:, 3:], np.zeros((count, 4))])
    return np.array(index, dtype=np.int32).reshape(-1, 2), np.vstack([numbers, *pieces])


SPRING_TERM = Term(
    "springs between points",
    int(SPRINGS),
    lambda model: model.has_surroundings and not model.has_contacts_only,
    springs=lambda model: len(model.springs.node),
    users=lambda model: laws_of_users(model, slice(len(model.springs.node))),
    bind=partial(bound_to_springs, add_springs, respond_to_springs, energy_of_springs, measure_springs),
    tables=lambda model: law_tables(model, slice(len(model.springs.node))),
    natives=lambda model: native_laws(model, slice(len(model.springs.node))),
)
