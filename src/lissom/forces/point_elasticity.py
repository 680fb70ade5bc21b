"""Elasticity and damping of deformable bodies as sums over points, as a term of force.

Such a body moves linearly in its coordinates, with a material law of any kind. The sums, their derivatives and the
energy are native code of the body (bodies/point_elasticity), which kernels call by addresses in cells of the tables.
"""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from lissom.forces.term import Term
from lissom.lie import so3
from lissom.lie.native import native_functions
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes.columns import Columns, Matrix
from lissom.passes.scratch import SPRINGS, Scratch

native = native_functions("forces/point_elasticity.h")


@wp.func_native(native("add_point_force"))
def add_point_force(t: Tables, place: int, e: int, i: int, q: Matrix, v: Matrix, tau: Matrix):
    """tau += the elastic and viscous force of body e."""
    ...


@wp.func_native(native("point_energy"))
def point_energy(t: Tables, place: int, e: int, i: int, q: Matrix) -> wp.float64:
    """Elastic energy of body e [J]."""
    ...


@wp.func_native(native("add_point_stiffness"))
def add_point_stiffness(
    t: Tables, place: int, e: int, width: int, i: int, q: Matrix, v: Matrix, by_q: wp.float64, by_v: wp.float64,
    out: Matrix,
):  # fmt: skip
    """out += by_q ∂f/∂θ + by_v ∂f/∂θ̇ of body e, out in rows of `width`."""
    ...


@wp.func_native(native("add_point_change"))
def add_point_change(
    t: Tables, place: int, e: int, i: int, q: Matrix, v: Matrix, dq: Matrix, dv: Matrix, tau: Matrix
):  # fmt: skip
    """tau += the change of the force of body e along (dq, dv)."""
    ...


def _bound(place: Any) -> dict[str, Any]:
    @wp.func(module="unique")
    def force(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, tau: Matrix):
        for e in range(t.terms[place].index.shape[0]):
            add_point_force(t, place, e, i, q, v, tau)

    @wp.func(module="unique")
    def stiffen(
        t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64,
        by_v: wp.float64, out: Matrix,
    ):  # fmt: skip
        for e in range(t.terms[place].index.shape[0]):
            add_point_stiffness(t, place, e, x.width, i, q, v, by_q, by_v, out)

    @wp.func(module="unique")
    def change(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, dq: Matrix, dv: Matrix, tau: Matrix):
        for e in range(t.terms[place].index.shape[0]):
            add_point_change(t, place, e, i, q, v, dq, dv, tau)

    @wp.func(module="unique")
    def energy(t: Tables, s: Scratch, i: int, q: Matrix) -> wp.float64:
        total = wp.float64(so3.ZERO)
        for e in range(t.terms[place].index.shape[0]):
            total += point_energy(t, place, e, i, q)
        return total

    return {"force": force, "stiffen": stiffen, "change": change, "energy": energy}


def _bodies(model: Model) -> list[tuple[int, Any]]:
    """Index and elasticity of each such body; none on devices without native code."""
    if model.device != "cpu":
        return []
    return [(b, part) for b, part in enumerate(model.deforming.pointwise) if part is not None]


def _tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Integers of each body: start of its numbers, first coordinates in q and in v; and the numbers of all bodies."""
    found, bodies = _bodies(model), model.deforming
    starts = np.cumsum([0, *(len(part.table) for _, part in found)])
    rows = [
        (start, bodies.q_start[b], model.nodes.v_start[bodies.node[b]]) for start, (b, _) in zip(starts.tolist(), found)
    ]
    numbers = np.concatenate([np.zeros(0), *(part.table for _, part in found)])
    return np.array(rows, dtype=np.int32).reshape(-1, 3), numbers[None]


TERM = Term(
    "bodies by points",
    int(SPRINGS),
    is_in=lambda model: bool(_bodies(model)),
    bind=_bound,
    tables=_tables,
    natives=lambda model: [part.functions for _, part in _bodies(model)],
)
