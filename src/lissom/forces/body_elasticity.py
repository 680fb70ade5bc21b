"""Elasticity and damping of deformable bodies whose points move in any way, as a term of force.

Force, stiffness, damping and energy of such a body are integrals of its material law, which come with those of its
inertia (passes/deforming).
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import numpy as np
import warp as wp

from lissom.forces.term import Term
from lissom.lie import so3
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes import deforming
from lissom.passes.columns import Columns, Matrix
from lissom.passes.scratch import SPRINGS, Scratch


@wp.func
def node_with_stiffness(t: Tables, s: Scratch, i: int, b: int) -> int:
    """The node of body b, after its force, stiffness and damping are computed."""
    k = t.deforming.node[b]
    deforming.integrate(t, s, i, k)
    deforming.integrate_derivatives(t, s, i, k)
    return k


@wp.func
def force(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, tau: Matrix):
    """tau += the elastic and viscous forces of all bodies that are not linear in θ."""
    for b in range(t.deforming.node.shape[0]):
        if t.deforming.is_linear[b] == 0:
            k = t.deforming.node[b]
            deforming.integrate(t, s, i, k)
            at = t.deforming.column_start[b]
            first = t.node[k].v_start
            for j in range(t.node[k].v_stop - first):
                tau[i, first + j] = tau[i, first + j] + s.deforming.force[i, at + j]


@wp.func
def stiffen(
    t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64, by_v: wp.float64,
    out: Matrix,
):  # fmt: skip
    """out += by_q K + by_v D of all bodies that are not linear in θ, in rows of x."""
    for b in range(t.deforming.node.shape[0]):
        if t.deforming.is_linear[b] == 0:
            k = node_with_stiffness(t, s, i, b)
            pair = t.deforming.pair_start[b]
            first = t.node[k].v_start
            n = t.node[k].v_stop - first
            for j in range(n):
                for e in range(n):
                    at = (first + j) * x.width + first + e
                    y = by_q * s.deforming.K[i, pair + n * j + e] + by_v * s.deforming.D[i, pair + n * j + e]
                    out[i, at] = out[i, at] + y


@wp.func
def change(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, dq: Matrix, dv: Matrix, tau: Matrix):
    """tau += K dq + D dv of all bodies that are not linear in θ."""
    for b in range(t.deforming.node.shape[0]):
        if t.deforming.is_linear[b] == 0:
            k = node_with_stiffness(t, s, i, b)
            pair = t.deforming.pair_start[b]
            first = t.node[k].v_start
            n = t.node[k].v_stop - first
            for j in range(n):
                y = wp.float64(so3.ZERO)
                for e in range(n):
                    at = pair + n * j + e
                    y += s.deforming.K[i, at] * dq[i, first + e] + s.deforming.D[i, at] * dv[i, first + e]
                tau[i, first + j] = tau[i, first + j] + y


@wp.func
def energy(t: Tables, s: Scratch, i: int, q: Matrix) -> wp.float64:
    """Elastic energy of all bodies that are not linear in θ [J]."""
    total = wp.float64(so3.ZERO)
    for b in range(t.deforming.node.shape[0]):
        if t.deforming.is_linear[b] == 0:
            deforming.integrate(t, s, i, t.deforming.node[b])
            total += s.deforming.energy[i, b]
    return total


def _is_in(model: Model) -> bool:
    """Whether a model has a body that is not linear in its coordinates."""
    return not bool(np.all(model.deforming.is_linear))


TERM = Term("bodies", int(SPRINGS), _is_in, force=force, stiffen=stiffen, change=change, energy=energy)
