"""Native code of deformable bodies: integrals, and forces of tendons, chambers and pressures. Kernels call it at every
state.

The motion of the user is traced at one point to scalar operations (tracing/graph).

The integrals are those of inertia, weight and elasticity, with the derivatives of `integrals`. The integrand at a point
is a list of numbers; native code sums them over the points of the quadrature, LANES points at a time. Numbers that
depend on θ only are computed once for a state.

The constants of the material are entries of the table of points, so that bodies of other moduli need no other code.
Derivatives with respect to design values and fits need many of them.

The forces are those of `pulls`; the motion is differentiated on the graph. Bodies with the same motion share the code;
each actuator has a table of its own material points.

The work of a tendon is a sum over its pieces, so that native code returns it with its derivatives. The forces of a
surface follow from its vertices p_a, with G_a = ±⅓ Σ N over the triangles of a vertex:

    B_j = Σ G_a·∂p_a/∂θ_j,   ∂B_j/∂θ_l = Σ G_a·∂²p_a/∂θ_j∂θ_l + Σ ∂G_a/∂θ_l·∂p_a/∂θ_j                     (1)

Native code moves all vertices, four at a time, and returns the first sum of ∂B. passes/pulls computes G_a and the other
sums from the triangles. A point in the middle of a rim follows from the points of the rim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.bodies.evaluation import MotionNodes, TracedMotion, shared_by_equals
from lissom.bodies.integrals import ShapeIntegrals, inertia, inertia_slopes, material_forces, material_slopes
from lissom.bodies.jets import FirstDerivatives, SecondDerivatives
from lissom.bodies.materials import constants_of
from lissom.tracing.code_cache import content_key, stored_code
from lissom.tracing.graph import MOST_COORDINATES, Graph, Refused, copied, derivative, inputs, require_few, run
from lissom.tracing.native import LANES, Code, Traced, code_of, compiled_functions, table_of


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


@final
@dataclass(frozen=True, eq=False)
class NativePull:
    """Native functions of one actuator in a body.

    Fields:
        functions: for a tendon and for a volume that is a function of θ, functions of (θ, v, table) that return the
            work and B, ∂B, and the second derivative of the work along θ̇ = v. For a surface, functions of (θ, G,
            table) that return p and ∂p/∂θ of the vertices, and the first sum of ∂B in (1).
        table: material points, as the last argument.
        surface: integers of a surface that passes/pulls.h reads: the numbers of evaluations of LANES vertices, of rims
            and of triangles, then the number of points of each rim, the indices of these points, and those of the
            corners of the triangles. The middles of rims follow the vertices. Empty for other actuators.
        side: sign of G: 1 for a chamber, −1 for a pressure from outside.
    """

    functions: Traced
    table: np.ndarray
    surface: np.ndarray
    side: float = 1.0

    def room(self, n: int) -> int:
        """Numbers that passes/pulls.h stores for a surface of a body of n coordinates."""
        if not len(self.surface):
            return 0
        blocks, rims = int(self.surface[0]), int(self.surface[1])
        return (blocks + -(-rims // LANES)) * LANES * (6 + 3 * n)


_NO_SURFACE = np.zeros(0, dtype=np.int32)


def tendon_along_line(motion: Any, points: np.ndarray, tangents: np.ndarray) -> NativePull:
    """A tendon along a material line with points (k, 3) and tangents (k, 3) there.

    Raises:
        Refused: the motion has no native code.
    """
    rows = np.column_stack([points, np.ones(len(points)), tangents])
    return _tendon(shared_by_equals(_PullsOfMotion, motion).of_lines, rows)


def tendon_through_eyelets(motion: Any, points: np.ndarray) -> NativePull:
    """A tendon straight from point to point of (k, 3).

    Raises:
        Refused: the motion has no native code.
    """
    rows = np.column_stack([points[:-1], np.ones(len(points) - 1), points[1:]])
    return _tendon(shared_by_equals(_PullsOfMotion, motion).of_eyelets, rows)


def _tendon(made: tuple[Code, Traced], rows: np.ndarray) -> NativePull:
    code, functions = made
    assert code.table is not None
    return NativePull(functions, code.table.filled(rows), _NO_SURFACE)


def surface(
    motion: Any, points: np.ndarray, triangles: np.ndarray, rims: Sequence[np.ndarray], side: float
) -> NativePull:
    """A chamber or a pressure on triangles (k, 3) of points (m, 3), followed by the middles of rims.

    Raises:
        Refused: the motion has no native code.
    """
    code, functions = shared_by_equals(_PullsOfMotion, motion).of_surfaces
    assert code.table is not None
    table = code.table.filled(points)
    blocks = int(table[0] * table[1])
    place = np.append(code.table.slots(points), blocks * LANES + np.arange(len(rims)))
    counts = [blocks, len(rims), len(triangles), *map(len, rims)]
    parts = [np.array(counts), *(place[rim] for rim in rims), place[triangles].ravel()]
    return NativePull(functions, table, np.concatenate(parts).astype(np.int32), side)


def function_of_coordinates(volume: Callable[[Any], Any], n: int) -> NativePull:
    """A chamber whose volume is a function of θ (n,), written with jax.numpy.

    Raises:
        Refused: the function has no native code.
    """
    import jax.numpy as jnp

    if n > MOST_COORDINATES:
        raise Refused(f"has {n} coordinates, more than {MOST_COORDINATES}")
    graph = Graph()
    q, v = inputs(graph, [(n,), (n,)])
    (V,) = run(graph, lambda q: jnp.asarray(volume(q), dtype=jnp.float64), [q])

    def made() -> Code:
        return code_of(_work_and_slopes(graph, V, q, v), [n, n, 0])

    code = stored_code(content_key("pull", graph, V), made)
    return NativePull(compiled_functions(code), np.zeros(0), _NO_SURFACE)


def _work_and_slopes(
    graph: Graph, work: np.ndarray, q: np.ndarray, v: np.ndarray
) -> list[tuple[Graph, list[np.ndarray]]]:
    """The functions of a tendon: the work and B, ∂B, and the second derivative of the work along v."""
    B = derivative(graph, work, q.tolist())
    require_few(graph.count([B]) * (len(q) + 1) // 2)
    B_q = derivative(graph, B, q.tolist())
    require_few(graph.count([B_q]))
    bend = work
    for _ in range(2):
        bend = derivative(graph, bend, q.tolist(), [v.tolist()])
    return [(graph, [work, B]), (graph, [B_q]), (graph, [bend])]


@final
@dataclass(frozen=True, eq=False)
class _PullsOfMotion:
    """Native code of the actuators in all bodies of the same motion, each with its compiled functions."""

    kinematics: Any

    @cached_property
    def of_lines(self) -> tuple[Code, Traced]:
        """Sums over points x of a line of −w |∂f/∂x t|. A row is x, w and the tangent t."""
        import jax.numpy as jnp

        nodes = self._motion.nodes

        def work(graph: Graph, q: np.ndarray, row: np.ndarray) -> np.ndarray:
            F = self._at(graph, nodes.graph, nodes.F, q, row[:3])
            length = run(graph, lambda w, F, t: -w * jnp.sqrt(((F @ t) ** 2).sum()), [row[3], F, row[4:]])
            return length[0]

        return self._compiled("line", nodes.graph, nodes.F, lambda: self._sums(work))

    @cached_property
    def of_eyelets(self) -> tuple[Code, Traced]:
        """Sums over pairs of points x, y of −w |f(y) − f(x)|. A row is x, w and y."""
        import jax.numpy as jnp

        whole, _, p = self._motion.map

        def work(graph: Graph, q: np.ndarray, row: np.ndarray) -> np.ndarray:
            ends = [self._at(graph, whole, p, q, x) for x in (row[:3], row[4:])]
            return run(graph, lambda w, a, b: -w * jnp.sqrt(((b - a) ** 2).sum()), [row[3], *ends])[0]

        return self._compiled("eyelets", whole, p, lambda: self._sums(work))

    @cached_property
    def of_surfaces(self) -> tuple[Code, Traced]:
        """p and ∂p/∂θ (n, 3) of points x, and the sum Σ G·∂²p/∂θ∂θ. A row is x."""
        whole, _, p = self._motion.map

        def made() -> Code:
            graph, n = Graph(), self.kinematics.n
            q, G, row = inputs(graph, [(n,), (3,), (3,)])
            moved = self._at(graph, whole, p, q, row)
            J = derivative(graph, moved, q.tolist())
            require_few(graph.count([J]) * (n + 1) // 2)
            bent = derivative(graph, run(graph, lambda G, J: G @ J, [G, J])[0], q.tolist())
            require_few(graph.count([bent]))
            results = [[np.concatenate([moved, J.T.ravel()])], [bent]]
            table = table_of(graph, results, row.tolist(), (), G.tolist())
            return code_of([(graph, part) for part in results], [n, 3, 3], table, by_row=(0,))

        return self._compiled("surface", whole, p, made)

    @cached_property
    def _motion(self) -> TracedMotion:
        return shared_by_equals(TracedMotion, self.kinematics)

    def _at(self, graph: Graph, whole: Graph, nodes: np.ndarray, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Nodes of the motion in another graph, at θ = q and the point x, given by nodes."""
        n = self.kinematics.n
        return copied(graph, whole, nodes, {**dict(enumerate(q.tolist())), **{2 * n + k: int(x[k]) for k in range(3)}})

    def _sums(self, work: Callable[[Graph, np.ndarray, np.ndarray], np.ndarray]) -> Code:
        graph, n = Graph(), self.kinematics.n
        q, v, row = inputs(graph, [(n,), (n,), (7,)])
        functions = _work_and_slopes(graph, work(graph, q, row), q, v)
        table = table_of(graph, [results for _, results in functions], row.tolist(), (3,))
        return code_of(functions, [n, n, 7], table)

    def _compiled(self, kind: str, graph: Graph, nodes: np.ndarray, make: Callable[[], Code]) -> tuple[Code, Traced]:
        code = stored_code(content_key("pull", kind, graph, nodes), make)
        return code, compiled_functions(code)
