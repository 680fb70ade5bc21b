"""Couplings of joints, inside kernels: one row of constraints for each.

With the terms f_i of a coupling, each of one coordinate q_i,

    e = Σ f_i(q_i) − offset,   A_i = ∂e/∂q_i = f_i',   A v = Σ f_i' v_i,   A a + Ȧ v = Σ (f_i' a_i + f_i'' v_i²)   (1)

and the force of the coupling on coordinate i is f_i' λ, whose derivative with respect to q_i is f_i'' λ. The rows of
couplings follow those of the loops.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false
# pyright: reportInvalidTypeForm=false, reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import so3
from lissom.model.tables import Tables
from lissom.passes.columns import Matrix
from lissom.passes.features import may_have_loops


@wp.func
def row_count(t: Tables) -> int:
    """Number of constraint rows of loops and of couplings."""
    return t.loops.row_is_hinge.shape[0] + t.joint_couplings.offset.shape[0]


@wp.func
def term_derivatives(t: Tables, term: int, x: wp.float64):
    """f of a term, with its ratio, and its first three derivatives at the coordinate x."""
    ratio = t.joint_couplings.ratio[term]
    first = t.joint_couplings.piece_start[term]
    last = t.joint_couplings.piece_start[term + 1] - 1
    if last < first:
        return ratio * x, ratio, so3.ZERO, so3.ZERO
    while first < last:  # bisection for the piece
        middle = (first + last + 1) / 2
        if t.joint_couplings.begin[middle] <= x:
            first = middle
        else:
            last = middle - 1
    y = x - t.joint_couplings.origin[first]
    f = wp.float64(0.0)
    slope = wp.float64(0.0)
    bend = wp.float64(0.0)  # f'' / 2
    third = wp.float64(0.0)  # f''' / 6
    for k in range(8):
        third = third * y + bend
        bend = bend * y + slope
        slope = slope * y + f
        f = f * y + t.joint_couplings.coefficients[first, k]
    return ratio * f, ratio * slope, so3.TWO * ratio * bend, wp.float64(6.0) * ratio * third


@wp.func
def coupling_residuals(t: Tables, i: int, q: Matrix, gap: Matrix):
    """e of (1)."""
    if may_have_loops():
        first = t.loops.row_is_hinge.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            e = -t.joint_couplings.offset[c]
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                f, _slope, _bend, _third = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
                e += f
            gap[i, first + c] = e


@wp.func
def coupling_rates(t: Tables, i: int, q: Matrix, v: Matrix, a: Matrix, rate: Matrix, acceleration: Matrix):
    """A v and A a + Ȧ v of (1)."""
    if may_have_loops():
        first = t.loops.row_is_hinge.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            by_v = wp.float64(0.0)
            by_a = wp.float64(0.0)
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                _f, slope, bend, _third = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
                speed = v[i, t.joint_couplings.v[term]]
                by_v += slope * speed
                by_a += slope * a[i, t.joint_couplings.v[term]] + bend * speed * speed
            rate[i, first + c] = by_v
            acceleration[i, first + c] = by_a


@wp.func
def add_coupling_forces(t: Tables, i: int, q: Matrix, force: Matrix, gap: Matrix, tau: Matrix):
    """tau −= Aᵀ λ, and the residuals e."""
    coupling_residuals(t, i, q, gap)
    if may_have_loops():
        first = t.loops.row_is_hinge.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                _f, slope, _bend, _third = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
                j = t.joint_couplings.v[term]
                tau[i, j] = tau[i, j] - slope * force[i, first + c]


@wp.func
def add_coupling_stiffness(t: Tables, i: int, width: int, q: Matrix, force: Matrix, out: Matrix):
    """out += ∂(−Aᵀ λ)/∂q, rows of `width`."""
    if may_have_loops():
        first = t.loops.row_is_hinge.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                _f, _slope, bend, _third = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
                at = t.joint_couplings.v[term] * (width + 1)
                out[i, at] = out[i, at] - bend * force[i, first + c]


@wp.func
def put_coupling_rows(t: Tables, i: int, width: int, q: Matrix, out: Matrix):
    """Set the rows A = A_q of couplings, which are zero on entry."""
    if may_have_loops():
        first = t.loops.row_is_hinge.shape[0]
        for c in range(t.joint_couplings.offset.shape[0]):
            for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
                _f, slope, _bend, _third = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
                out[i, (first + c) * width + t.joint_couplings.v[term]] = slope


@wp.func
def put_coupling_derivatives(
    t: Tables, i: int, width: int, q: Matrix, v: Matrix, a: Matrix, A_dot: Matrix, rate_q: Matrix,
    acceleration_q: Matrix, acceleration_v: Matrix,
):  # fmt: skip
    """Set the derivatives of (1), which are zero on entry: Ȧ, ∂(A v)/∂q, and those of A a + Ȧ v by q and v."""
    first = t.loops.row_is_hinge.shape[0]
    for c in range(t.joint_couplings.offset.shape[0]):
        for term in range(t.joint_couplings.term_start[c], t.joint_couplings.term_start[c + 1]):
            _f, _slope, bend, third = term_derivatives(t, term, q[i, t.joint_couplings.q[term]])
            j = t.joint_couplings.v[term]
            at = (first + c) * width + j
            speed = v[i, j]
            A_dot[i, at] = bend * speed
            rate_q[i, at] = bend * speed
            acceleration_q[i, at] = bend * a[i, j] + third * speed * speed
            acceleration_v[i, at] = so3.TWO * bend * speed
