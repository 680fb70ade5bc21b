"""Couplings of joints, inside kernels: one row of constraints for each.

With the terms f_i of a coupling, each of one coordinate q_i,

    e = Σ f_i(q_i) − offset,   A_i = ∂e/∂q_i = f_i',   A v = Σ f_i' v_i,   A a + Ȧ v = Σ (f_i' a_i + f_i'' v_i²)   (1)

and the force of the coupling on coordinate i is f_i' λ, whose derivative with respect to q_i is f_i'' λ. The rows of
couplings follow those of the loops.

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
from lissom.robot.expression_programs import DEPTH, Operation

native = native_functions("systems/couplings.h", DEPTH=DEPTH, **{code.name: code.value for code in Operation})
_NAN = wp.constant(wp.float64(float("nan")))
BEYOND = wp.constant(wp.float64(1e-9))  # of a span: moves onto loops may pass an end by rounding


@wp.func
def row_count(t: Tables) -> int:
    """Number of constraint rows of loops and of couplings."""
    return t.loops.row_kind.shape[0] + t.joint_couplings.offset.shape[0]


@wp.func_native(native("program_jet"))
def program_jet(start: int, x: wp.float64, code: wp.array(dtype=wp.int32), numbers: wp.array(dtype=wp.float64)) -> vec6:
    """f and its first three derivatives by the program that begins at `start`, at the coordinate x; then zeros."""
    ...


@wp.func(inline=False)
def term_derivatives(t: Tables, term: int, x: wp.float64) -> vec6:
    """f of a term and its first three derivatives at the coordinate x; then zeros."""
    if t.joint_couplings.program[term] >= 0:
        return program_jet(t.joint_couplings.program[term], x, t.joint_couplings.code, t.joint_couplings.numbers)
    out = vec6()
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
    """e of (1). Sets the status of the instance if a function has no value."""
    if may_have_loops():
        first = t.loops.row_kind.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            e = -t.joint_couplings.offset[c]
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                d = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
                e += d[0]
            gap[i, first + c] = e
            if not wp.isfinite(e) and s.status[i] == 0:
                s.status[i] = STATUS_COUPLING


@wp.func
def coupling_rates(t: Tables, i: int, q: Matrix, v: Matrix, a: Matrix, rate: Matrix, acceleration: Matrix):
    """A v and A a + Ȧ v of (1)."""
    if may_have_loops():
        first = t.loops.row_kind.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            by_v = wp.float64(0.0)
            by_a = wp.float64(0.0)
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                d = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
                speed = v[i, t.joint_couplings.v[term]]
                by_v += d[1] * speed
                by_a += d[1] * a[i, t.joint_couplings.v[term]] + d[2] * speed * speed
            rate[i, first + c] = by_v
            acceleration[i, first + c] = by_a


@wp.func
def add_coupling_forces(t: Tables, s: Scratch, i: int, q: Matrix, force: Matrix, gap: Matrix, tau: Matrix):
    """tau −= Aᵀ λ, and the residuals e."""
    coupling_residuals(t, s, i, q, gap)
    if may_have_loops():
        first = t.loops.row_kind.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                d = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
                j = t.joint_couplings.v[term]
                tau[i, j] = tau[i, j] - d[1] * force[i, first + c]


@wp.func
def add_coupling_stiffness(t: Tables, i: int, width: int, q: Matrix, force: Matrix, out: Matrix):
    """out += ∂(−Aᵀ λ)/∂q, rows of `width`."""
    if may_have_loops():
        first = t.loops.row_kind.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                d = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
                at = t.joint_couplings.v[term] * (width + 1)
                out[i, at] = out[i, at] - d[2] * force[i, first + c]


@wp.func
def put_coupling_rows(t: Tables, i: int, width: int, q: Matrix, out: Matrix):
    """Set the rows A = A_q of couplings, which are zero on entry."""
    if may_have_loops():
        first = t.loops.row_kind.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                d = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
                out[i, (first + c) * width + t.joint_couplings.v[term]] = d[1]


@wp.func
def put_coupling_derivatives(
    t: Tables, i: int, width: int, q: Matrix, v: Matrix, a: Matrix, A_dot: Matrix, rate_q: Matrix,
    acceleration_q: Matrix, acceleration_v: Matrix,
):  # fmt: skip
    """Set the derivatives of (1), which are zero on entry: Ȧ, ∂(A v)/∂q, and those of A a + Ȧ v by q and v."""
    first = t.loops.row_kind.shape[0]
    for c in range(t.joint_couplings.offset.shape[0]):
        for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
            d = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
            j = t.joint_couplings.v[term]
            at = (first + c) * width + j
            speed = v[i, j]
            A_dot[i, at] = d[2] * speed
            rate_q[i, at] = d[2] * speed
            acceleration_q[i, at] = d[2] * a[i, j] + d[3] * speed * speed
            acceleration_v[i, at] = so3.TWO * d[2] * speed
