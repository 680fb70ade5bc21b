"""Elastic and viscous forces of bodies whose points move linearly in θ, with any material law, as native code.

With F = 1 + Σ_j (∂F/∂θ_j) θ_j, constant ∂F/∂θ_j and quadrature weights w, the stress of `materials` and its sums are

    P(F, Ḟ) = ∂W/∂F + η (∂E/∂F)ᵀ ℂ Ė,   f_j = Σ w P : ∂F/∂θ_j                                              (1)
    ∂f_j/∂θ_l = Σ w ∂F/∂θ_j : ∂P/∂F : ∂F/∂θ_l,   ∂f_j/∂θ̇_l = Σ w ∂F/∂θ_j : ∂P/∂Ḟ : ∂F/∂θ_l                (2)

P and its derivatives at a point are code from the graph of the law. The sums, in C++, are those of every body: a point
of finite elements depends on the coordinates of its cell alone, so that (2) costs 9 m² products for the m coordinates
of a cell. The inertia of such a body is a polynomial of θ with constants (passes/deforming).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.bodies.integrals import ShapeIntegrals, point_stress
from lissom.bodies.materials import constants_of
from lissom.tracing.code_cache import content_key, stored_code
from lissom.tracing.graph import Graph, Refused, derivative, inputs, require_few, run
from lissom.tracing.native import Code, Traced, code_with, compiled_functions

MOST_COLUMNS = 600  # largest number of coordinates that move a point, which point_elasticity.h has room for
_WIDE = 8  # numbers of a block of the header


@final
@dataclass(frozen=True, eq=False)
class PointElasticity:
    """Native functions of a body, which point_elasticity.h describes: force and energy; stiffness; change of the force.

    Fields:
        functions: of θ, θ̇, the table and further arguments.
        table: the points with their weights and ∂F/∂θ, and the constants of the law.
    """

    functions: Traced
    table: np.ndarray


def point_elasticity(integrals: ShapeIntegrals) -> tuple[PointElasticity | None, str]:
    """The native functions of a body of linear kinematics, or the reason for which there are none."""
    constants = constants_of(integrals.material)

    def made() -> Code:
        graph = Graph()
        F, rate, numbers = inputs(graph, [(3, 3), (3, 3), constants.numbers.shape])
        W, P = run(graph, lambda F, rate, x: point_stress(*constants.put(x), F, rate), [F, rate, numbers])
        by_F, by_rate = (derivative(graph, P.ravel(), x.ravel().tolist()) for x in (F, rate))
        require_few(graph.count([by_F, by_rate]))
        law = {"law_values": [W, P], "law_slopes": [by_F, by_rate]}
        moving = [*F.ravel().tolist(), *rate.ravel().tolist()]
        sizes, calls = [9, 9, len(constants.numbers)], ("forces", "stiffness", "change")
        return code_with("bodies/point_elasticity.h", graph, law, sizes, moving, calls)

    try:
        table = points_table(integrals)
        code = stored_code(content_key("point elasticity", *constants[:3]), made)
    except Refused as error:
        return None, str(error)
    return PointElasticity(compiled_functions(code), table), ""


def points_table(integrals: ShapeIntegrals) -> np.ndarray:
    """The table of a body that point_elasticity.h describes.

    Raises:
        Refused: the table would be too large.
    """
    n, weights, numbers = integrals.kinematics.n, integrals.domain.weights, constants_of(integrals.material).numbers
    slopes = integrals.known_slopes
    if slopes is None or n > MOST_COLUMNS:
        raise Refused(f"has {len(weights)} points that move with {n} coordinates, too many for native code")
    slopes = slopes.reshape(-1, 9, n)
    is_new = np.append(True, (slopes[1:] != slopes[:-1]).any(axis=(1, 2)))  # points of a linear cell have one F
    weights = np.add.reduceat(weights, np.flatnonzero(is_new))
    head = [len(weights), len(numbers), float(integrals.material.damping_time != 0.0), 0.0]
    parts: list[Any] = [head, numbers]
    for slope, weight in zip(slopes[is_new], weights):
        index = np.flatnonzero(slope.any(axis=0)) if slope.any() else np.zeros(1, dtype=int)
        rows = np.zeros((9, -(-len(index) // _WIDE) * _WIDE))
        rows[:, : len(index)] = slope[:, index]
        parts += [[weight, len(index)], index, rows.ravel()]
    return np.concatenate(parts)
