"""Integrals over a deformable body as native code, which kernels call at every state.

The user's motion is traced at one point, with the derivatives of `integrals`, to scalar operations (tracing/graph). The
integrand at a point is a list of numbers; native code sums them over the points of the quadrature, LANES points at a
time. Numbers that depend on θ only are computed once for a state.

The constants of the material are entries of the table of points, so that bodies of other moduli need no other code.
Derivatives by design values and fits need many of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.bodies.evaluation import MotionNodes
from lissom.bodies.integrals import ShapeIntegrals, inertia, inertia_slopes, material_forces, material_slopes
from lissom.bodies.jets import FirstDerivatives, SecondDerivatives
from lissom.bodies.materials import constants_of
from lissom.tracing.code_cache import content_key, stored_code
from lissom.tracing.graph import Refused, derivative, require_few, run
from lissom.tracing.native import Code, Traced, code_of, compiled_functions, table_of


@final
@dataclass(frozen=True, eq=False)
class NativeIntegrals:
    """Native functions of (θ, θ̇, table, θ̈) with the tables of passes/scratch.DeformingState as results.

    Fields:
        functions: the values c, P, c_j, P_j, M, c_v, b_v, w_j, e_v, energy, force, D, which do not take θ̈; then the
            derivatives c_q, b_q, e_q, c_jl, P_jl, w_q, c_qdot, b_qdot, e_qdot, w_qdot, K.
        table: points, weights and masses of the quadrature and constants of the material, as argument of both.
    """

    functions: Traced
    table: np.ndarray


def native_integrals(integrals: ShapeIntegrals) -> tuple[NativeIntegrals | None, str]:
    """The native functions of a body, or the reason for which there are none."""
    motion, constants = integrals.motion, constants_of(integrals.material)

    def values(*given: Any) -> Any:
        p, F, J, F_j, h, v, w, m, numbers = given
        x = FirstDerivatives(p[:, None], F[..., None], J[..., None], F_j[..., None], h[:, None], None)
        U, g, d, d_v = material_forces(*constants.put(numbers), w, x.F, x.F_j, v)
        return *inertia(m, x, v), U, g + d, d_v

    def derivatives(*given: Any) -> Any:
        p, F, J, F_j, H, F_jl, h_q, a, v, w, m, numbers = given
        ends = H[..., None], F_jl[..., None], h_q[..., None]
        x = SecondDerivatives(p[:, None], F[..., None], J[..., None], F_j[..., None], *ends)
        K, d_q = material_slopes(*constants.put(numbers), w, x, v)
        return *inertia_slopes(m, x, v, a), K + d_q

    def made(nodes: MotionNodes) -> Code:
        graph, (q, v, row), p, F, J, F_j = nodes

        def by(nodes: np.ndarray, variables: np.ndarray) -> np.ndarray:
            return derivative(graph, nodes, variables.tolist())

        def along(nodes: np.ndarray) -> np.ndarray:
            return derivative(graph, nodes, q.tolist(), [v.tolist()])[..., 0]

        H = _symmetric(np.moveaxis(by(J, q), 0, -1))
        require_few(graph.count([H]))
        h = along(along(p))
        F_jl = _symmetric(np.moveaxis(by(F_j, q), (2, 3), (0, 1)))
        J, F_j, h_q = J.T, np.moveaxis(F_j, -1, 0), by(h, q).T
        first = len(q) + len(v) + len(row)
        numbers = np.array([graph.input(first + k) for k in range(len(constants.numbers))])
        a = np.array([graph.input(first + len(numbers) + k) for k in range(len(q))])
        ends = [v, row[3:4], row[4:5], numbers]
        functions = [
            (graph, run(graph, values, [p, F, J, F_j, h, *ends])),
            (graph, run(graph, derivatives, [p, F, J, F_j, H, F_jl, h_q, a, *ends])),
        ]
        require_few(max(graph.count(results) for _, results in functions))
        entries = [*row.tolist(), *numbers.tolist()]
        table = table_of(graph, [results for _, results in functions], entries, (3, 4), common=len(numbers))
        return code_of(functions, [len(q), len(v), len(entries), len(a)], table)

    try:
        nodes = motion.nodes
        key = content_key("integrals", *nodes[:1], *nodes[2:], *constants[:3])
        code = stored_code(key, lambda: made(nodes))
    except Refused as error:
        return None, str(error)
    assert code.table is not None
    points, weights, masses = integrals.domain.points, integrals.domain.weights, integrals.masses
    rows = np.column_stack([points, weights, masses, np.tile(constants.numbers, (len(points), 1))])
    return NativeIntegrals(compiled_functions(code), code.table.filled(rows)), ""


def _symmetric(nodes: np.ndarray) -> np.ndarray:
    """Nodes of second derivatives (n, n, ...), with the lower triangle in place of the upper one, to which it is
    equal."""
    j, k = np.indices(nodes.shape[:2])
    return nodes[np.maximum(j, k), np.minimum(j, k)]
