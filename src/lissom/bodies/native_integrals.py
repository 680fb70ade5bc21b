"""Integrals over a deformable body as native code, which kernels call at every state.

The user's motion is traced at one point, with the derivatives of `integrals`, to scalar operations (tracing/graph). The
integrand at a point is a list of numbers; native code sums them over the points of the quadrature, LANES points at a
time. Numbers that depend on θ only are computed once for a state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.bodies.integrals import ShapeIntegrals, inertia, inertia_slopes, material_forces, material_slopes
from lissom.bodies.kinematics import KinematicsFunction
from lissom.tracing.graph import Graph, Refused, trace
from lissom.tracing.native import Traced, native_code, table_of_rows

_MOST_COORDINATES = 8
_MOST_OPERATIONS = 40_000  # of one point; the compiler needs about a second for 4000


@final
@dataclass(frozen=True, eq=False)
class NativeIntegrals:
    """Native functions of (θ, θ̇, table) with the tables of passes/scratch.DeformingState as results.

    Fields:
        functions: the values c, P, c_j, P_j, M, c_v, b_v, w_j, e_v, energy, force, D; then the derivatives c_q, b_q and
            e_q at θ̈ = 0, c_jl, P_jl, w_q, c_qdot, b_qdot, e_qdot, w_qdot, K, and by θ̈ pxH and HJ of `integrals`.
        table: points, weights and masses of the quadrature, as argument of both.
    """

    functions: Traced
    table: np.ndarray


def native_integrals(integrals: ShapeIntegrals) -> tuple[NativeIntegrals | None, str]:
    """The native functions of a body, or the reason for which there are none."""
    motion, law = integrals.kinematics, integrals.material
    if not isinstance(motion, KinematicsFunction):
        return None, f"{type(motion).__name__} is evaluated by JAX"
    n = motion.n
    if n > _MOST_COORDINATES:
        return None, f"has {n} coordinates, more than {_MOST_COORDINATES}"
    moduli = law.moduli()

    def values(q: Any, v: Any, row: Any) -> Any:
        x = motion.first_derivatives(row[None, :3], q, v)
        U, g, d, d_v = material_forces(law, moduli, row[3:4], x.F, x.F_j, v)
        return *inertia(row[4:5], x, v), U, g + d, d_v

    def derivatives(q: Any, v: Any, row: Any) -> Any:
        x = motion.second_derivatives(row[None, :3], q, v)
        x = x._replace(H=_symmetric(x.H), F_jl=_symmetric(x.F_jl))
        K, d_q = material_slopes(law, moduli, row[3:4], x, v)
        *found, pxH, HJ = inertia_slopes(row[4:5], x, v)
        return *found, K + d_q, pxH, HJ

    sizes = [n, n, 5]
    try:
        functions = [_traced(function, sizes) for function in (values, derivatives)]
    except Refused as error:
        return None, str(error)
    compiled = native_code(functions, sizes, rows=2)
    points, weights, masses = integrals.domain.points, integrals.domain.weights, integrals.masses
    table = table_of_rows(np.column_stack([points, weights, masses]), (3, 4))
    return NativeIntegrals(compiled, table), ""


def _symmetric(x: Any) -> Any:
    """An array (n, n, ...) with its lower triangle in place of the upper one, to which it is equal."""
    j, k = np.indices(x.shape[:2])
    return x[np.maximum(j, k), np.minimum(j, k)]


def _traced(function: Callable[..., Any], sizes: list[int]) -> tuple[Graph, list[np.ndarray]]:
    graph, results = trace(function, [(size,) for size in sizes])
    count = graph.count(results)
    if count > _MOST_OPERATIONS:
        raise Refused(f"needs {count} operations at a point, more than {_MOST_OPERATIONS}")
    return graph, results
