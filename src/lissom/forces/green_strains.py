"""Bodies whose points move linearly in θ and whose energy is quadratic in the Green strain, as a term of force.

The strain of every point is linear in θ_j and in products of pairs of them. The stiffness 𝒦 of the body contains the
coefficients (model.deforming):

    ε = (θ_j; θ_jθ_k for j < k and ½ θ_j² for j = k),   U = ½ εᵀ𝒦ε                                        (1)
    f = Zᵀ 𝒦 (ε + η ε̇),   Z = ∂ε/∂θ,   ε̇ = Z θ̇                                                           (2)
    ∂f/∂θ_k = Zᵀ 𝒦 (Z + η ∂ε̇/∂θ)_k + Σ σ_jk,   ∂f/∂θ̇ = η Zᵀ𝒦Z,   σ = 𝒦 (ε + η ε̇)                        (3)

with η the damping time. The force costs (n²/2)² products, two for each number on and below the diagonal of 𝒦. The
damping needs all of these numbers; U itself has only n⁴/24 terms. The stiffness costs twice as much. For some tens of
coordinates this is less than a sum over the points of a mesh.
Source: Saint Venant-Kirchhoff's law of the module bodies.materials, multiplied out.
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
from lissom.model.maps import MOST_IN_KERNELS
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes.columns import Columns, Matrix
from lissom.passes.scratch import SPRINGS, Scratch

Rows = wp.array2d(dtype=wp.float64)

_WIDE = 8  # rows of 𝒦 are padded with zeros to a multiple of this

_COORDINATE_ROOM = MOST_IN_KERNELS + _WIDE  # length of buffers for the coordinates and one block more
# Length of buffers for the strains and one block more.
_STRAIN_ROOM = -(-(MOST_IN_KERNELS + MOST_IN_KERNELS * (MOST_IN_KERNELS + 1) // 2) // _WIDE) * _WIDE + _WIDE

native = native_functions(
    "forces/green_strains.h", COORDINATE_ROOM=_COORDINATE_ROOM, STRAIN_ROOM=_STRAIN_ROOM,
    MOST_COORDINATES=MOST_IN_KERNELS, HEAD=_WIDE,
)  # fmt: skip


@wp.func_native(native("add_strain_force"))
def add_strain_force(number: Rows, first: int, n: int, q_start: int, v_start: int, i: int, q: Rows, v: Rows, tau: Rows):
    """tau += (2)."""
    ...


@wp.func_native(native("strain_energy"))
def strain_energy(number: Rows, first: int, n: int, q_start: int, i: int, q: Rows) -> wp.float64:
    """U of (1)."""
    ...


@wp.func_native(native("add_strain_stiffness"))
def add_strain_stiffness(
    number: Rows, first: int, n: int, q_start: int, v_start: int, width: int, i: int, q: Rows, v: Rows,
    by_q: wp.float64, by_v: wp.float64, out: Rows,
):  # fmt: skip
    """out += by_q ∂f/∂θ + by_v ∂f/∂θ̇ of (3), out in rows of `width`."""
    ...


@wp.func_native(native("add_strain_change"))
def add_strain_change(
    number: Rows, first: int, n: int, q_start: int, v_start: int, i: int, q: Rows, v: Rows, dq: Rows, dv: Rows,
    tau: Rows,
):  # fmt: skip
    """tau += the change of (2) along (dq, dv)."""
    ...


def _bound(place: Any) -> dict[str, Any]:
    @wp.func(module="unique")
    def force(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, tau: Matrix):
        rows = t.terms[place]
        for e in range(rows.index.shape[0]):
            add_strain_force(
                rows.number, rows.index[e, 0], rows.index[e, 1], rows.index[e, 2], rows.index[e, 3], i, q, v, tau
            )

    @wp.func(module="unique")
    def stiffen(
        t: Tables, s: Scratch, x: Columns, i: int, q: Matrix, v: Matrix, move: Matrix, by_q: wp.float64,
        by_v: wp.float64, out: Matrix,
    ):  # fmt: skip
        rows = t.terms[place]
        for e in range(rows.index.shape[0]):
            add_strain_stiffness(
                rows.number, rows.index[e, 0], rows.index[e, 1], rows.index[e, 2], rows.index[e, 3], x.width, i, q, v,
                by_q, by_v, out,
            )  # fmt: skip

    @wp.func(module="unique")
    def change(t: Tables, s: Scratch, i: int, q: Matrix, v: Matrix, dq: Matrix, dv: Matrix, tau: Matrix):
        rows = t.terms[place]
        for e in range(rows.index.shape[0]):
            add_strain_change(
                rows.number, rows.index[e, 0], rows.index[e, 1], rows.index[e, 2], rows.index[e, 3], i, q, v, dq, dv,
                tau,
            )  # fmt: skip

    @wp.func(module="unique")
    def energy(t: Tables, s: Scratch, i: int, q: Matrix) -> wp.float64:
        rows = t.terms[place]
        total = wp.float64(so3.ZERO)
        for e in range(rows.index.shape[0]):
            total += strain_energy(rows.number, rows.index[e, 0], rows.index[e, 1], rows.index[e, 2], i, q)
        return total

    return {"force": force, "stiffen": stiffen, "change": change, "energy": energy}


def _is_in(model: Model) -> bool:
    """Whether a model has a body of this energy."""
    return any(part is not None for part in model.deforming.stretched)


def packed_rows(bodies: list[tuple[float, np.ndarray]]) -> tuple[np.ndarray, list[int]]:
    """The numbers η and 𝒦 of bodies as one row (1, n), and the start of each body in it.

    The numbers of a body are: η and seven zeros; 𝒦 row by row, padded with zeros to a multiple of eight rows and
    columns; sixteen zeros; and again the part of 𝒦 on and below the diagonal, as 8x8 squares: for each eight columns
    the squares from the diagonal down, each column by column.
    """
    parts, starts = [np.zeros(0)], [0]
    for eta, stiffness in bodies:
        count = len(stiffness)
        wide = -(-count // _WIDE) * _WIDE
        whole = np.zeros((wide, wide))
        whole[:count, :count] = stiffness
        squares = whole.reshape(wide // _WIDE, _WIDE, wide // _WIDE, _WIDE).transpose(2, 0, 3, 1)
        lower = [squares[p, p:].ravel() for p in range(len(squares))]
        own = [[eta], np.zeros(_WIDE - 1), whole.ravel(), np.zeros(2 * _WIDE), *lower]
        parts += own
        starts.append(starts[-1] + sum(map(len, own)))
    return np.concatenate(parts)[None], starts[:-1]


def _tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Integers of each body, (n_bodies, 4): start of its numbers, n, first coordinates in q and v; and the numbers."""
    bodies = model.deforming
    found = [(b, part) for b, part in enumerate(bodies.stretched) if part is not None]
    number, starts = packed_rows([(part.damping_time, part.stiffness) for _, part in found])
    index = [(first, bodies.column_start[b + 1] - bodies.column_start[b], bodies.q_start[b],
              model.nodes.v_start[bodies.node[b]]) for first, (b, _) in zip(starts, found)]  # fmt: skip
    return np.array(index, dtype=np.int32).reshape(-1, 4), number


TERM = Term("bodies of Green strains", int(SPRINGS), is_in=_is_in, bind=_bound, tables=_tables)
