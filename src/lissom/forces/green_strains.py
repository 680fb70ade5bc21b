"""Bodies whose points move linearly in θ and whose energy is quadratic in the Green strain, as a term of what acts.

The strain of every point is a sum over θ_j and its pairs, which the body's stiffness 𝒦 knows (model.deforming):

    ε = (θ_j; θ_jθ_k for j < k and ½ θ_j² for j = k),   U = ½ εᵀ𝒦ε                                        (1)
    f = Zᵀ 𝒦 (ε + η ε̇),   Z = ∂ε/∂θ,   ε̇ = Z θ̇                                                           (2)
    ∂f/∂θ_k = Zᵀ 𝒦 (Z + η ∂ε̇/∂θ)_k + Σ σ_jk,   ∂f/∂θ̇ = η Zᵀ𝒦Z,   σ = 𝒦 (ε + η ε̇)                        (3)

with η the damping time. What of this is linear, K2 θ + η K2 θ̇, is left to the term of elasticity. The force costs
(n²/2)² products, the tangent twice as many: for some tens of coordinates less than a sum over the points of a mesh.
Source: Saint Venant-Kirchhoff's law of the module deformable.materials, multiplied out.
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
from lissom.model.deforming import MOST_IN_KERNELS
from lissom.model.model import Model
from lissom.model.tables import Tables
from lissom.passes.column_tables import Columns, Matrix
from lissom.passes.scratch import SPRINGS, Scratch

Rows = wp.array2d(dtype=wp.float64)

_ROOM = MOST_IN_KERNELS + MOST_IN_KERNELS * (MOST_IN_KERNELS + 1) // 2
_HEAD = f"""
    const int count = n + n * (n + 1) / 2;
    const double* K = row(number, 0) + first + 1;
    const double eta = K[-1];
    double strain[{_ROOM}], stress[{_ROOM}];
"""
_STRAIN = """
    for (int j = 0, at = n; j < n; ++j) {
        strain[j] = x[j] + eta * y[j];
        strain[at++] = x[j] * (0.5 * x[j] + eta * y[j]);
        for (int k = j + 1; k < n; ++k)
            strain[at++] = x[j] * x[k] + eta * (x[j] * y[k] + y[j] * x[k]);
    }
"""
_STRESS = """
    for (int r = 0; r < count; ++r)
        stress[r] = 0.0;
    for (int c = 0; c < count; ++c)
        for (int r = 0; r < count; ++r)
            stress[r] += K[c * count + r] * strain[c];
"""
_PROJECT = """
    for (int j = 0, at = n; j < n; ++j) {
        to[j] += stress[j] + stress[at++] * x[j];
        for (int k = j + 1; k < n; ++k, ++at) {
            to[j] += stress[at] * x[k];
            to[k] += stress[at] * x[j];
        }
    }
"""

FORCE = f"""
    const double *x = row(q, i) + q_start, *y = row(v, i) + v_start;
    double* to = row(tau, i) + v_start;
    {_HEAD} {_STRAIN} {_STRESS} {_PROJECT}
"""


@wp.func_native(FORCE)
def add_strain_force(number: Rows, first: int, n: int, q_start: int, v_start: int, i: int, q: Rows, v: Rows, tau: Rows):
    """tau += (2)."""
    ...


ENERGY = f"""
    const double *x = row(q, i) + q_start, *y = x;
    {_HEAD.replace("K[-1]", "0.0")} {_STRAIN} {_STRESS}
    double total = 0.0;
    for (int r = 0; r < count; ++r)
        total += 0.5 * strain[r] * stress[r];
    return total;
"""


@wp.func_native(ENERGY)
def strain_energy(number: Rows, first: int, n: int, q_start: int, i: int, q: Rows) -> wp.float64:
    """U of (1)."""
    ...


STIFFEN = f"""
    const double *x = row(q, i) + q_start, *y = row(v, i) + v_start;
    {_HEAD} {_STRAIN} {_STRESS}
    const double linear = by_q + eta * by_v;
    double z[{MOST_IN_KERNELS}];
    for (int j = 0; j < n; ++j)
        z[j] = linear * x[j] + by_q * eta * y[j];
    double* answer = strain;  // Zᵀ𝒦, one row after the other
    for (int j = 0, pair = n; j < n; pair += n - j, ++j) {{
        double* to = row(out, i) + size_t(v_start + j) * width + v_start;
        for (int r = 0; r < count; ++r)
            answer[r] = K[j * count + r];
        for (int l = 0; l < n; ++l) {{
            const int low = l < j ? l : j, high = l < j ? j : l;
            const double* from = K + size_t(n + low * n - low * (low - 1) / 2 + high - low) * count;
            for (int r = 0; r < count; ++r)
                answer[r] += x[l] * from[r];
        }}
        for (int k = 0, at = n; k < n; ++k) {{
            to[k] += linear * answer[k] + answer[at++] * z[k];
            for (int m = k + 1; m < n; ++m, ++at) {{
                to[k] += answer[at] * z[m];
                to[m] += answer[at] * z[k];
            }}
        }}
        to[j] += by_q * stress[pair];
        for (int k = j + 1; k < n; ++k) {{
            to[k] += by_q * stress[pair + k - j];
            to[size_t(k - j) * width + j] += by_q * stress[pair + k - j];
        }}
    }}
"""


@wp.func_native(STIFFEN)
def add_strain_stiffness(
    number: Rows, first: int, n: int, q_start: int, v_start: int, width: int, i: int, q: Rows, v: Rows,
    by_q: wp.float64, by_v: wp.float64, out: Rows,
):  # fmt: skip
    """out += by_q ∂f/∂θ + by_v ∂f/∂θ̇ of (3), out in rows of `width`."""
    ...


CHANGE = f"""
    const double *x = row(q, i) + q_start, *y = row(v, i) + v_start;
    const double *dx = row(dq, i) + v_start, *dy = row(dv, i) + v_start;
    double* to = row(tau, i) + v_start;
    {_HEAD} {_STRAIN} {_STRESS}
    for (int j = 0, at = n; j < n; ++j) {{
        to[j] += stress[at++] * dx[j];
        for (int k = j + 1; k < n; ++k, ++at) {{
            to[j] += stress[at] * dx[k];
            to[k] += stress[at] * dx[j];
        }}
    }}
    for (int j = 0, at = n; j < n; ++j) {{
        const double w = x[j] + eta * y[j];
        strain[j] = dx[j] + eta * dy[j];
        strain[at++] = w * dx[j] + eta * x[j] * dy[j];
        for (int k = j + 1; k < n; ++k)
            strain[at++] = w * dx[k] + dx[j] * (x[k] + eta * y[k]) + eta * (x[j] * dy[k] + dy[j] * x[k]);
    }}
    {_STRESS} {_PROJECT}
"""


@wp.func_native(CHANGE)
def add_strain_change(
    number: Rows, first: int, n: int, q_start: int, v_start: int, i: int, q: Rows, v: Rows, dq: Rows, dv: Rows,
    tau: Rows,
):  # fmt: skip
    """tau += what (2) changes by along (dq, dv)."""
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
    return any(part is not None for part in model.deforming.stretched)


def _tables(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """By body where its numbers start, n, and the first of its coordinates in q and v; the numbers, one body after the
    other: η, and 𝒦 row by row."""
    bodies, index, numbers, first = model.deforming, [], [np.zeros(0)], 0
    for b, part in enumerate(bodies.stretched):
        if part is not None:
            n = int(bodies.column_start[b + 1] - bodies.column_start[b])
            index.append((first, n, bodies.q_start[b], model.nodes.v_start[bodies.node[b]]))
            numbers += [np.array([part.damping_time]), part.stiffness.ravel()]
            first += 1 + part.stiffness.size
    return np.array(index, dtype=np.int32).reshape(-1, 4), np.concatenate(numbers)[None]


TERM = Term("bodies of Green strains", int(SPRINGS), is_in=_is_in, bind=_bound, tables=_tables)
