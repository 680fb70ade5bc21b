"""Exact derivatives of what loops ask of a motion, inside kernels, row by row from path sums.

In the base frame, with D_X = X̄_A − X̄_B for the sums X̄ of inverse_dynamics_derivatives (E = J̇ + R̄) and a row y of
Ad_{g_B}⁻ᵀ Pᵀ,

    Ȧ             = y·(D_E − D_R − ad_{η_B} D_J)                                                          (1)
    ∂(A v)/∂q      = y·(D_R − ad_{η_A} D_J)                                                               (2)
    ∂(A a + Ȧ v)/∂q = y·(D_Q − (ad_{η_A} + ad_{η_B}) D_R + (ad_{η_B} ad_{η_A} − ad_{a_A}) D_J)             (3)
    ∂(A a + Ȧ v)/∂v = y·(D_E − (ad_{η_A} + ad_{η_B}) D_J)                                                 (4)

A universal joint's row n = b × a₁ turns with A: δn = a₁ × (b × δω), which adds to each. Gravity in the accelerations
cancels between A and B. Source: Mathew 2025 (D70)-(D83).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import warp as wp

from lissom.lie import se3
from lissom.lie.types import by_reference, vec3, vec6
from lissom.model.tables import Tables
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.scratch import Scratch
from lissom.systems.bordered import LoopRows, clear_loop_rows
from lissom.systems.derivative_sweeps import DerivativeBuffers
from lissom.systems.loops import Gap, add_path_row, loop_gap, loop_motion, residual_row, velocity_row


@wp.struct
class LoopDerivativesStruct:
    """Ȧ, ∂(A v)/∂q, and ∂(A a + Ȧ v)/∂q and /∂v by instance, in rows of column_width."""

    A_dot: Matrix
    rate_q: Matrix
    turn_q: Matrix
    turn_v: Matrix


LoopDerivatives = by_reference(LoopDerivativesStruct)


@wp.func
def add_difference(x: Columns, a: int, b: int, i: int, y: vec6, X: Matrix, at: int, out: Matrix):
    """out[at + j] += yᵀ D_X between nodes a and b."""
    add_path_row(x, a, i, y, X, at, out)
    add_path_row(x, b, i, -y, X, at, out)


@wp.func
def in_base(g: Gap, moment: vec3) -> vec6:
    """A moment in the axes of B as a wrench in the base frame."""
    return se3.join(g.R_B * moment, vec3())


@wp.func
def add_loop_derivatives(
    t: Tables,
    s: Scratch,
    b: DerivativeBuffers,
    i: int,
    acc_base: vec6,
    loops: LoopRows,
    d: LoopDerivatives,
):
    """Rows A and A_q, residuals and rates, and (1)-(4), from the sums in b and the motion in s."""
    m = t.loops.row_is_hinge.shape[0]
    x = b.x
    clear_loop_rows(x.width, m, i, loops.A)
    clear_loop_rows(x.width, m, i, loops.A_q)
    clear_loop_rows(x.width, m, i, d.A_dot)
    clear_loop_rows(x.width, m, i, d.rate_q)
    clear_loop_rows(x.width, m, i, d.turn_q)
    clear_loop_rows(x.width, m, i, d.turn_v)
    for loop in range(t.loops.node.shape[0]):
        g = loop_gap(t, s, i, loop)
        node_A = t.loops.node[loop, 0]
        node_B = t.loops.node[loop, 1]
        eta_A, acc_A = loop_motion(t, s, i, loop, 0, acc_base)
        eta_B, acc_B = loop_motion(t, s, i, loop, 1, acc_base)
        for row in range(t.loops.row_start[loop], t.loops.row_start[loop + 1]):
            at = row * x.width
            y = se3.Ad_dual(g.R_B, g.p_B, velocity_row(t, g, loop, row))
            z = se3.Ad_dual(g.R_B, g.p_B, residual_row(t, g, loop, row))
            both = se3.coad(eta_A + eta_B, y)
            add_difference(x, node_A, node_B, i, y, b.J, at, loops.A)
            add_difference(x, node_A, node_B, i, z, b.J, at, loops.A_q)
            add_difference(x, node_A, node_B, i, y, b.J_E, at, d.A_dot)
            add_difference(x, node_A, node_B, i, -y, b.J_R, at, d.A_dot)
            add_difference(x, node_A, node_B, i, se3.coad(eta_B, y), b.J, at, d.A_dot)
            add_difference(x, node_A, node_B, i, y, b.J_R, at, d.rate_q)
            add_difference(x, node_A, node_B, i, se3.coad(eta_A, y), b.J, at, d.rate_q)
            onto_J = se3.coad(acc_A, y) + se3.coad(eta_A, se3.coad(eta_B, y))
            add_difference(x, node_A, node_B, i, y, b.J_Q, at, d.turn_q)
            add_difference(x, node_A, node_B, i, both, b.J_R, at, d.turn_q)
            add_difference(x, node_A, node_B, i, onto_J, b.J, at, d.turn_q)
            add_difference(x, node_A, node_B, i, y, b.J_E, at, d.turn_v)
            add_difference(x, node_A, node_B, i, both, b.J, at, d.turn_v)
            if t.loops.row_is_hinge[row] != 0:
                a = t.loops.hinge[loop, 0]
                across = eta_A - eta_B
                w = se3.angular(se3.Ad_inverse(g.R_B, g.p_B, across))
                alpha = se3.angular(se3.Ad_inverse(g.R_B, g.p_B, acc_A - acc_B - se3.ad(eta_B, across)))
                n_dot = in_base(g, wp.cross(a, wp.cross(g.b, w)))
                onto_w = n_dot + in_base(g, wp.cross(g.b, wp.cross(a, w)))
                turned = wp.cross(a, alpha) + wp.cross(w, wp.cross(w, a))
                add_difference(x, node_A, node_B, i, n_dot, b.J, at, d.A_dot)
                add_difference(x, node_A, node_B, i, in_base(g, wp.cross(g.b, wp.cross(a, w))), b.J, at, d.rate_q)
                onto_turn = in_base(g, wp.cross(g.b, turned)) + se3.coad(eta_A, onto_w)
                add_difference(x, node_A, node_B, i, onto_turn, b.J, at, d.turn_q)
                add_difference(x, node_A, node_B, i, onto_w, b.J_R, at, d.turn_q)
                add_difference(x, node_A, node_B, i, onto_w, b.J, at, d.turn_v)
