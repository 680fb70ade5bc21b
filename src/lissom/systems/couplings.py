"""Couplings of joints, inside kernels: one row of constraints for each.

With the terms f_i of a coupling, each of one coordinate q_i,

    e = Σ f_i(q_i) − offset,   A_i = ∂e/∂q_i = f_i',   A v = Σ f_i' v_i,   A a + Ȧ v = Σ (f_i' a_i + f_i'' v_i²)   (1)

and the force of the coupling on coordinate i is f_i' λ, whose derivative with respect to q_i is f_i'' λ. The rows of
couplings follow those of the loops. A coupling may also be one function Φ of all its coordinates:

    e = Φ − offset,  A = ∇Φ,  A v = ∇Φ·v,  A a + Ȧ v = ∇Φ·a + vᵀ ∇²Φ v,  ∂(Aᵀ λ)/∂q = λ ∇²Φ                 (3)

Its derivatives by q and v are ∇²Φ a + ∇³Φ(v, v) and 2 ∇²Φ v. Φ is the program of an expression, as f may be. One run of
the program gives Φ and its derivatives along two directions (`program_jet`), with ∂_j for those by q_j:

    ∂_k Φ, ∂_j ∂_k Φ;   ∇Φ·v, vᵀ ∇²Φ v, ∂_j (∇Φ·v), ∂_j (vᵀ ∇²Φ v)                                          (4)

so that n coordinates take n runs for ∇Φ, n (n + 1)/2 for ∇²Φ, two for the rates, and 2 n for the derivatives of these.
A traced function becomes such a program, too (robot/expression_programs): native code of its own would need a compiler
for every function, has no address on GPUs, and saves little for the few operations of a constraint.

A function f is a ratio, the program of an expression, or polynomials between knots. Polynomials that stand for a
function of period p hold one period, from which others follow:

    f(q) = f(q − n p) + n (f(p) − f(0)),   n = ⌊(q − begin) / p⌋                                            (2)

Other polynomials of limited span are NaN beyond it, so that no step goes there.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import so3
from lissom.lie.native import native_functions
from lissom.lie.types import vec6
from lissom.model.tables import Tables
from lissom.passes.columns import Matrix
from lissom.passes.features import may_have_loops
from lissom.passes.scratch import STATUS_COUPLING, Scratch
from lissom.robot.expression_programs import DEPTH

native = native_functions("systems/programs.h", DEPTH=DEPTH)
_NAN = wp.constant(wp.float64(float("nan")))
BEYOND = wp.constant(wp.float64(1e-9))  # of a span: moves onto loops may pass an end by rounding


@wp.func
def row_count(t: Tables) -> int:
    """Number of constraint rows of loops and of couplings."""
    return t.loops.row_kind.shape[0] + t.joint_couplings.offset.shape[0]


@wp.func_native(native("program_jet"))
def program_jet(
    i: int, j: int, k: int, start: int, first: int, q: Matrix, w: Matrix, q_of: wp.array(dtype=wp.int32),
    v_of: wp.array(dtype=wp.int32), code: wp.array(dtype=wp.int32), numbers: wp.array(dtype=wp.float64),
) -> vec6:  # fmt: skip
    """Φ, Φ_a, Φ_b, Φ_ab, Φ_bb and Φ_abb of the program that begins at `start`, for instance i.

    Its variable m is the coordinate q_of[first + m] of q. Direction a is variable j. Direction b is variable k, or, if
    k is negative, w, whose number for variable m is v_of[first + m].
    """
    ...


@wp.func(inline=False)
def function_jet(t: Tables, i: int, c: int, j: int, k: int, q: Matrix, w: Matrix) -> vec6:
    """Results of program_jet for the function Φ of coupling c; j and k count the coordinates of Φ."""
    return program_jet(
        i, j, k, t.joint_couplings.function[c], t.joint_couplings.term_start[c], q, w, t.joint_couplings.q,
        t.joint_couplings.v, t.joint_couplings.code, t.joint_couplings.numbers,
    )  # fmt: skip


@wp.func(inline=False)
def term_derivatives(t: Tables, i: int, term: int, q: Matrix) -> vec6:
    """f of a term and its first three derivatives at its coordinate; then zeros."""
    out = vec6()
    if t.joint_couplings.program[term] >= 0:
        d = program_jet(
            i, 0, 0, t.joint_couplings.program[term], term, q, q, t.joint_couplings.q, t.joint_couplings.v,
            t.joint_couplings.code, t.joint_couplings.numbers,
        )  # fmt: skip
        out[0] = d[0]
        out[1] = d[1]
        out[2] = d[3]
        out[3] = d[5]
        return out
    x = q[i, t.joint_couplings.q[term]]
    first = t.joint_couplings.piece_start[term]
    last = t.joint_couplings.piece_start[term + 1] - 1
    if last < first:
        out[0] = t.joint_couplings.ratio[term] * x
        out[1] = t.joint_couplings.ratio[term]
        return out
    low = t.joint_couplings.low[term]
    high = t.joint_couplings.high[term]
    period = t.joint_couplings.period[term]
    turns = wp.float64(0.0)
    if period > so3.ZERO:
        turns = wp.floor((x - t.joint_couplings.begin_of_period[term]) / period)  # (2)
    inside = x - turns * period
    while first < last:  # bisection for the piece
        middle = (first + last + 1) / 2
        if t.joint_couplings.begin[middle] <= inside:
            first = middle
        else:
            last = middle - 1
    y = inside - t.joint_couplings.origin[first]
    f = wp.float64(0.0)
    slope = wp.float64(0.0)
    bend = wp.float64(0.0)  # half the second derivative
    third = wp.float64(0.0)  # a sixth of the third derivative
    for k in range(8):
        third = third * y + bend
        bend = bend * y + slope
        slope = slope * y + f
        f = f * y + t.joint_couplings.coefficients[first, k]
    out[0] = f + turns * t.joint_couplings.rise[term]
    out[1] = slope
    out[2] = so3.TWO * bend
    out[3] = wp.float64(6.0) * third
    rounding = BEYOND * (high - low)
    if x < low - rounding or x > high + rounding:
        out[0] = _NAN
    return out


@wp.func
def coupling_residuals(t: Tables, s: Scratch, i: int, q: Matrix, gap: Matrix):
    """e of (1) and (3). Sets the status of the instance if a function has no value."""
    if may_have_loops():
        first = t.loops.row_kind.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            e = -t.joint_couplings.offset[c]
            if t.joint_couplings.function[c] >= 0:
                d = function_jet(t, i, c, 0, 0, q, q)
                e += d[0]
            else:
                for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                    d = term_derivatives(t, i, term, q)
                    e += d[0]
            gap[i, first + c] = e
            if not wp.isfinite(e) and s.status[i] == 0:
                s.status[i] = STATUS_COUPLING


@wp.func
def coupling_rates(t: Tables, i: int, q: Matrix, v: Matrix, a: Matrix, rate: Matrix, acceleration: Matrix):
    """A v and A a + Ȧ v of (1) and (3)."""
    if may_have_loops():
        first = t.loops.row_kind.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            by_v = wp.float64(0.0)
            by_a = wp.float64(0.0)
            if t.joint_couplings.function[c] >= 0:
                along_v = function_jet(t, i, c, 0, -1, q, v)
                along_a = function_jet(t, i, c, 0, -1, q, a)
                by_v = along_v[2]
                by_a = along_a[2] + along_v[4]
            else:
                for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                    d = term_derivatives(t, i, term, q)
                    speed = v[i, t.joint_couplings.v[term]]
                    by_v += d[1] * speed
                    by_a += d[1] * a[i, t.joint_couplings.v[term]] + d[2] * speed * speed
            rate[i, first + c] = by_v
            acceleration[i, first + c] = by_a


@wp.func
def slope_of(t: Tables, i: int, c: int, term: int, q: Matrix) -> wp.float64:
    """The entry of the row A of coupling c for the coordinate of its term."""
    if t.joint_couplings.function[c] >= 0:
        k = term - t.joint_couplings.term_start[c]
        d = function_jet(t, i, c, k, k, q, q)
        return d[1]
    d = term_derivatives(t, i, term, q)
    return d[1]


@wp.func
def add_coupling_forces(t: Tables, s: Scratch, i: int, q: Matrix, force: Matrix, gap: Matrix, tau: Matrix):
    """tau −= Aᵀ λ, and the residuals e."""
    coupling_residuals(t, s, i, q, gap)
    if may_have_loops():
        first = t.loops.row_kind.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                j = t.joint_couplings.v[term]
                tau[i, j] = tau[i, j] - slope_of(t, i, c, term, q) * force[i, first + c]


@wp.func
def add_coupling_stiffness(t: Tables, i: int, width: int, q: Matrix, force: Matrix, out: Matrix):
    """out += ∂(−Aᵀ λ)/∂q, rows of `width`."""
    if may_have_loops():
        first = t.loops.row_kind.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            begin = t.joint_couplings.term_start[c]
            for term in range(begin, t.joint_couplings.term_start[c + 1]):
                j = t.joint_couplings.v[term]
                if t.joint_couplings.function[c] >= 0:
                    for other in range(begin, term + 1):
                        d = function_jet(t, i, c, term - begin, other - begin, q, q)
                        k = t.joint_couplings.v[other]
                        out[i, j * width + k] = out[i, j * width + k] - d[3] * force[i, first + c]
                        if other < term:
                            out[i, k * width + j] = out[i, k * width + j] - d[3] * force[i, first + c]
                else:
                    d = term_derivatives(t, i, term, q)
                    out[i, j * (width + 1)] = out[i, j * (width + 1)] - d[2] * force[i, first + c]


@wp.func
def put_coupling_rows(t: Tables, i: int, width: int, q: Matrix, out: Matrix):
    """Set the rows A = A_q of couplings, which are zero on entry."""
    if may_have_loops():
        first = t.loops.row_kind.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                out[i, (first + c) * width + t.joint_couplings.v[term]] = slope_of(t, i, c, term, q)


@wp.func
def put_coupling_derivatives(
    t: Tables, i: int, width: int, q: Matrix, v: Matrix, a: Matrix, A_dot: Matrix, rate_q: Matrix,
    acceleration_q: Matrix, acceleration_v: Matrix,
):  # fmt: skip
    """Set the derivatives of (1) and (3), zero on entry: Ȧ, ∂(A v)/∂q, and those of A a + Ȧ v by q and v."""
    first = t.loops.row_kind.shape[0]
    for c in range(t.joint_couplings.offset.shape[0]):
        for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
            j = t.joint_couplings.v[term]
            at = (first + c) * width + j
            if t.joint_couplings.function[c] >= 0:
                k = term - t.joint_couplings.term_start[c]
                along_v = function_jet(t, i, c, k, -1, q, v)
                along_a = function_jet(t, i, c, k, -1, q, a)
                A_dot[i, at] = along_v[3]
                rate_q[i, at] = along_v[3]
                acceleration_q[i, at] = along_a[3] + along_v[5]
                acceleration_v[i, at] = so3.TWO * along_v[3]
            else:
                d = term_derivatives(t, i, term, q)
                speed = v[i, j]
                A_dot[i, at] = d[2] * speed
                rate_q[i, at] = d[2] * speed
                acceleration_q[i, at] = d[2] * a[i, j] + d[3] * speed * speed
                acceleration_v[i, at] = so3.TWO * d[2] * speed
