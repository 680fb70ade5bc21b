"""Functions of the state, written with jax.numpy, that kernels call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks, formatting
from lissom.robot.expression_programs import MOST_STEPS, Operation, Steps, combined
from lissom.robot.native_functions import NativeFunction
from lissom.robot.poses import NotRepeatable, failure, in_double, result_shape
from lissom.tracing.graph import LEAVES, Graph, Refused, copied, derivative, inputs, require_few, run

if TYPE_CHECKING:
    from lissom.tracing.native import Code, Traced

_STEPS = {  # of programs, by the names of operations of graphs
    "add": Operation.ADD, "sub": Operation.SUBTRACT, "mul": Operation.MULTIPLY, "div": Operation.DIVIDE,
    "pow": Operation.POWER, "neg": Operation.NEGATE, "sin": Operation.SIN, "cos": Operation.COS, "tan": Operation.TAN,
    "sinh": Operation.SINH, "cosh": Operation.COSH, "tanh": Operation.TANH, "exp": Operation.EXP, "log": Operation.LOG,
    "sqrt": Operation.SQRT, "asin": Operation.ARCSIN, "acos": Operation.ARCCOS, "atan": Operation.ARCTAN,
}  # fmt: skip
_INPUTS = 23  # place of the first input among the entries of t, g, eta and the inputs of a force
QuaternionJoints = Sequence[
    tuple[int, int, bool]
]  # first index in q, first index in v, and whether it is free, of each


@final
@formatting.in_one_line
@dataclass(frozen=True)
class TracedFunction:
    """A function of numbers that kernels call as native code. Its derivatives are exact, but for those of a current in
    space, which are differences in the kernels, to 1e-8.

    The function is called with symbols in place of numbers, and the operations that it does with them become native
    code. It must depend on its arguments alone: values that it keeps between calls, such as the integral of an error,
    and random numbers would be fixed. Functions whose second call differs from the first are refused. Numbers that it
    reads besides its arguments are those at the start of each motion, or at the build for parts of a robot.

    `controller=` of `simulate`, `rollout`, `step_derivatives`, `Stepper` and tasks takes one of (t, q, v), `u=` of
    `simulate` one of t, `Robot.add_force` one of (t, g, eta), or of (t, g, eta, w) with inputs w,
    `Robot.add_custom_actuator` one of q, or of (q, u), `Robot.add_spring(law=)` one of (length, rate), `spring=` of a
    joint one of x, `Robot.add_coupling(function=)` one of q (n,), the coordinates of its joints,
    `Robot.add_constraint(function=)` one of the pose g, with coordinates and velocities if it has some, and
    `Robot.set_fluid(current=)` one of (x, t). Elsewhere it is a Python function.

    Args:
        function: function made of jax.numpy, with branches by `where`. The place that takes it states its arguments.
    Raises:
        ModelError: it is no function. Where it is used: it cannot be traced, or its result is not the same if it is
            called again; the message says which operation is the reason.
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        good = callable(self.function) and not isinstance(self.function, TracedFunction)
        checks.require(good, "traced function", "must be a function made of jax.numpy", self.function)

    def __call__(self, *arguments: Any) -> np.ndarray:
        """The value, computed by JAX in float64."""
        import jax.numpy as jnp

        def call(*given: Any) -> np.ndarray:
            return np.asarray(self.function(*(jnp.asarray(x, dtype=jnp.float64) for x in given)), dtype=np.float64)

        return in_double(call)(*arguments)

    def force(self, where: str) -> NativeFunction:
        """The function of (t, g, eta) as native code of a wrench and of its derivatives by pose and twist, or as a Warp
        function of (R, p, eta, s, t). The numbers that it reads besides its arguments are the present ones.

        Raises:
            ModelError: it cannot be traced.
        """
        from lissom.tracing.native import compiled_force, force_code  # describing a robot needs no Warp

        graph, wrench, known = self._wrench(where, 0)
        functions = self._functions_of_wrench(where, graph, wrench, known)
        takes_time = known[0] in _reached(graph, wrench)
        return NativeFunction(functions, takes_time, lambda: compiled_force(*force_code(graph, wrench)))

    def current(self, where: str) -> NativeFunction:
        """The function of (x, t) that returns the velocity c of a fluid (3,) as native code, or as a Warp function of
        (x, t), that returns c and the acceleration ∂c/∂t + ∂c/∂x c of the particle at x. The numbers that it reads
        besides its arguments are the present ones.

        Raises:
            ModelError: it cannot be traced.
        """
        from lissom.tracing.native import compiled_current, current_code  # describing a robot needs no Warp

        graph, (x, t), c = self.traced(where, [(3,), ()], (3,))
        along = [*c.tolist(), graph.number(1.0)]
        acceleration = derivative(graph, c, [*x.tolist(), int(t)], [along])[:, 0]
        flow = np.concatenate([c, acceleration])
        functions = _native(where, "current", graph, [3, 1], [flow])
        takes_time = int(t) in _reached(graph, flow)
        return NativeFunction(functions, takes_time, lambda: compiled_current(*current_code(graph, flow)))

    def program(self, where: str, shapes: Sequence[tuple[int, ...]]) -> Steps:
        """The function that returns a number, as a program of expressions. Its variables are the entries of the
        arguments, one array after the other. The numbers that it reads besides its arguments are the present ones.

        Args:
            where: name of the place that takes the function, for messages. shapes: shapes of the arguments.
        Raises:
            ModelError: it cannot be traced, uses an operation that programs do not have, or is too long.
        """
        graph, _, result = self.traced(where, shapes, ())
        node, pending, made = int(result), [int(result)], dict[int, tuple[Steps, int]]()
        while pending:
            operation, *operands = graph.nodes[k := pending[-1]]
            missing = [] if operation in LEAVES else [x for x in operands if x not in made]
            if missing:
                pending += missing
                continue
            pending.pop()
            if operation == "number":
                made[k] = [(Operation.NUMBER, float(operands[0]))], 1
            elif operation == "input":
                made[k] = [(Operation.TIME, float(operands[0]))], 1
            elif operation in _STEPS:
                made[k] = combined(_STEPS[operation], [made[x] for x in operands])
            else:
                rule = f"must be made of the operations {', '.join(_STEPS)}"
                raise checks.fail(where, rule, operation)
            size = len(made[k][0])
            rule = f"must be a short formula: without shared parts it may have {MOST_STEPS} operations and numbers"
            checks.require(size <= MOST_STEPS, where, rule, f"{size} or more")
        return made[node][0]

    def driven_force(self, where: str, size: int) -> NativeForce:
        """The function of (t, g, eta, w) with inputs w (size,) as native code of a wrench. The numbers that it reads
        besides its arguments are the present ones.

        Raises:
            ModelError: it cannot be traced.
        """
        graph, wrench, known = self._wrench(where, size)
        functions = self._functions_of_wrench(where, graph, wrench, known)
        plain, changing = Graph(), [known[0], *known[17:]]
        leaves = [plain.number(0.0) if k >= _INPUTS else plain.input(k) for k in range(len(known))]
        rest = copied(plain, graph, wrench, leaves)
        is_linear = not _reached(graph, derivative(graph, wrench, known[_INPUTS:])).intersection(changing)
        is_linear = is_linear and all(plain.value(k) == 0.0 for k in rest.tolist())
        return NativeForce(functions, size, is_linear, known[0] in _reached(graph, wrench))

    def _wrench(self, where: str, size: int) -> tuple[Graph, np.ndarray, list[int]]:
        """The graph of a wrench (6,) of t, g (4, 4), eta (6,) and inputs (size,), its nodes, and those of the entries
        of the arguments, one after the other.

        Raises:
            ModelError: it cannot be traced, or has too many operations.
        """
        arguments: list[tuple[int, ...]] = [(), (4, 4), (6,), *([(size,)] if size else [])]
        traced, _, found = self.traced(where, arguments, (6,))
        graph, bottom = Graph(), range(13, 17)  # the last row of g is constant
        known = [graph.number(float(k == 16)) if k in bottom else graph.input(k) for k in range(_INPUTS + size)]
        return graph, copied(graph, traced, found, known), known

    @staticmethod
    def _functions_of_wrench(where: str, graph: Graph, wrench: np.ndarray, known: list[int]) -> Traced:
        """Native code of the wrench, of its derivatives by pose and twist, and of those by inputs if there are some."""
        of_inputs, g = known[_INPUTS:], np.array(known[1:13]).reshape(3, 4)

        def slopes() -> list[list[np.ndarray]]:
            by_pose = derivative(graph, wrench, g.ravel().tolist(), pose_directions(graph, g))
            by_twist = derivative(graph, wrench, known[17:_INPUTS])
            return [[by_pose, by_twist], *([[derivative(graph, wrench, of_inputs).T]] if of_inputs else [])]

        return _native(where, "force", graph, [1, 16, 6, *([len(of_inputs)] if of_inputs else [])], [wrench], slopes)

    def spring_law(self, where: str, arguments: int) -> NativeFunction:
        """The function of x, or of x and its rate, as native code of the force of a spring together with its
        derivatives by both, or as a Warp function of both. The numbers that it reads besides its arguments are the
        present ones.

        Args:
            where: name of the place that takes the function, for messages. arguments: their number, 1 or 2.
        Raises:
            ModelError: it cannot be traced.
        """
        from lissom.tracing.native import compiled_law, law_code  # describing a robot needs no Warp

        graph, given, force = self.traced(where, [()] * arguments, (), (1,))
        force = force.reshape(1)

        slopes = derivative(graph, force, [int(x) for x in given])[0].tolist()
        law = np.array([*force, *slopes, *[graph.number(0.0)] * (2 - arguments)])
        functions = _native(where, "law", graph, [1, 1], [law])
        return NativeFunction(functions, False, lambda: compiled_law(*law_code(graph, law.tolist())))

    def actuation(
        self, where: str, nq: int, size: int, places: np.ndarray, poses: QuaternionJoints, *, linear: bool
    ) -> NativeActuation:
        """The function as native code of an actuator: of q that returns B(q), shape (nv, size), or (nv,) for one input,
        or of q and the inputs (size,) that returns the force (nv,). The numbers that it reads besides its arguments are
        the present ones.

        Args:
            where: name of the place that takes the function, for messages.
            places, poses: of the coordinates, as of `tangent_directions`. linear: whether it returns B.
        Raises:
            ModelError: it cannot be traced.
        """
        nv = len(places)
        if linear:
            graph, (q,), B = self.traced(where, [(nq,)], (nv, size), *([(nv,)] if size == 1 else []))
            B, w = B.reshape(nv, size), np.array([graph.input(nq + k) for k in range(size)])
            (force,) = run(graph, lambda B, w: B @ w, [B, w])
        else:
            graph, (q, w), force = self.traced(where, [(nq,), (size,)], (nv,))
            B = derivative(graph, force, w.tolist())

        def slopes() -> list[list[np.ndarray]]:
            return [[derivative(graph, force, q.tolist(), tangent_directions(graph, q, places, poses))], [B]]

        kind = f"actuation {list(poses)} {places.tolist()} {B.tolist()}"
        return NativeActuation(_native(where, kind, graph, [nq, size], [force], slopes), (nv, size), linear)

    def traced(
        self, where: str, shapes: Sequence[tuple[int, ...]], shape: tuple[int, ...], *others: tuple[int, ...]
    ) -> tuple[Graph, list[np.ndarray], np.ndarray]:
        """The graph of the function, the nodes of its arguments, and those of its result.

        Args:
            where: name of the place that takes the function, for messages.
            shapes: shapes of the arguments.
            shape, others: expected shape of the result, and others that it may have.
        Raises:
            ModelError: the function cannot be traced, or its result has another shape.
        """
        try:
            import jax
            import jax.numpy as jnp
        except ImportError:
            raise ModelError(f"{where}: a traced function needs JAX: pip install 'lissom[jax]'") from None
        rule = f"{where}: must be a function of its arguments alone, made of jax.numpy; it"
        arrays = [jax.ShapeDtypeStruct(size, np.float64) for size in shapes]
        try:
            in_double(lambda: jax.make_jaxpr(lambda *x: self.function(*x))(*arrays))()
        except Exception as error:
            raise ModelError(f"{rule} {failure(error)}") from error
        try:
            found = result_shape(self.function, *map(np.zeros, shapes))
        except NotRepeatable as error:
            raise ModelError(f"{rule} {failure(error)}") from error
        except Exception as error:  # the first call has left a symbol
            raise ModelError(f"{rule} uses a value of an earlier call, such as an integral that it sums up") from error
        fits = found in (shape, *others)
        checks.require(fits, where, f"must return an array of shape {shape}, got shape", found)
        graph = Graph()
        given = inputs(graph, shapes)
        try:
            (result,) = run(graph, lambda *x: jnp.asarray(self.function(*x), dtype=jnp.float64), given)
        except Refused as error:
            raise ModelError(f"{rule} {error}") from error
        for place in graph.never_finite(result.ravel().tolist())[:1]:
            raise ModelError(f"{where}: must return finite numbers, but number {place} of its result never is one")
        return graph, given, result


def _reached(graph: Graph, nodes: np.ndarray) -> set[int]:
    """The nodes on which others depend."""
    return set(graph.reached(nodes.ravel().tolist()))


def _native(
    where: str,
    kind: str,
    graph: Graph,
    sizes: list[int],
    value: list[np.ndarray],
    slopes: Callable[[], list[list[np.ndarray]]] = list,
) -> Traced:
    """Native code of a user's function: of its value, and of groups of derivatives, each with the nodes of its results.

    Args:
        where: name of the place that takes the function, for messages. kind: of function, part of the key under which
            its code is stored. sizes: numbers of entries of the arguments.
    Raises:
        ModelError: it has too many operations.
    """
    from lissom.tracing.code_cache import content_key, stored_code  # describing a robot needs no Warp
    from lissom.tracing.native import code_of, compiled_functions

    def code() -> Code:
        groups = slopes()
        require_few(graph.count([nodes for group in groups for nodes in group]))
        return code_of([(graph, results) for results in [value, *groups]], sizes)

    try:
        require_few(graph.count(value))
        return compiled_functions(stored_code(content_key(kind, graph, value, sizes), code))
    except Refused as error:
        raise ModelError(f"{where}: must be a function of few operations; it {error}") from error


@final
@dataclass(frozen=True, eq=False)
class NativeActuation:
    """The force τ(q, w) of an actuator with inputs w as native code, B(q) w if it is linear.

    Fields:
        functions: functions of q and the inputs w (size,) that return τ (nv,); ∂τ/∂q (nv, nv), with increments of q in
            the tangent space; and ∂τ/∂w (nv, size), which is B.
        shape: (nv, size). is_linear: whether τ = B w.
    """

    functions: Traced
    shape: tuple[int, int]
    is_linear: bool

    def force(self, q: np.ndarray, w: np.ndarray) -> np.ndarray:
        """τ at states q (n, nq) with inputs w (n, size), shape (n, nv)."""
        return self._rows(0, q, w, (len(q), self.shape[0]))

    def matrix(self, q: np.ndarray, w: np.ndarray) -> np.ndarray:
        """∂τ/∂w at states q (n, nq) with inputs w (n, size), shape (n, nv, size)."""
        return self._rows(2, q, w, (len(q), *self.shape))

    def _rows(self, k: int, q: np.ndarray, w: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        out = np.empty(shape)
        self.functions.call_rows(k, [np.ascontiguousarray(x, dtype=np.float64) for x in (q, w)], [out])
        return out


@final
@dataclass(frozen=True, eq=False)
class NativeForce:
    """A wrench W(t, g, eta, w) that depends on inputs w (size,), as native code.

    Fields:
        functions: functions of (t, g, eta, w) that return W (6,); ∂W/∂δ and ∂W/∂eta (6, 6), δ being motions g exp(δ) in
            the frame; and (∂W/∂w)ᵀ (size, 6).
        size: number of inputs. is_linear: whether W = B(g) w.
        takes_time: whether W depends on t.
    """

    functions: Traced
    size: int
    is_linear: bool
    takes_time: bool

    def results(self, k: int, t: np.ndarray, g: np.ndarray, eta: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Results of function k at times (n,), poses (n, 4, 4), twists (n, 6) and inputs (n, size): W (n, 6) if k is 0,
        (∂W/∂w)ᵀ (n, size, 6) if k is 2."""
        given = [np.ascontiguousarray(x, dtype=np.float64) for x in (t, g, eta, w)]
        out = np.empty((len(given[0]), 6) if k == 0 else (len(given[0]), self.size, 6))
        self.functions.call_rows(k, given, [out])
        return out


def pose_directions(graph: Graph, g: np.ndarray) -> list[list[int]]:
    """∂g/∂δ of g exp(δ) at δ = 0 for each component of δ, rotation first, as nodes (6, 12).

    Args:
        g: nodes of the first three rows of the pose, (3, 4).
    """
    rows = np.full((6, 3, 4), graph.number(0.0), dtype=np.int64)
    for c, (a, b) in enumerate(((1, 2), (2, 0), (0, 1))):  # R e_c^ has R_b in column a and −R_a in column b
        rows[c, :, a] = g[:, b]
        rows[c, :, b] = [graph.apply("neg", k) for k in g[:, a].tolist()]
        rows[3 + c, :, 3] = g[:, c]
    return rows.reshape(6, 12).tolist()


def tangent_directions(graph: Graph, q: np.ndarray, places: np.ndarray, poses: QuaternionJoints) -> list[list[int]]:
    """∂q/∂δ for each component of an increment δ (nv,) in the tangent space, as nodes, shape (nv, nq).

    For a quaternion w + x of a joint with the body twist (ω; v), and for its position p, the increments are

        dw = −½ x·ω,   dx = ½ (w ω + x × ω),   dp = R v

    Args:
        q: nodes of the coordinates.
        places: index in q of each component of δ, −1 for those of quaternion joints.
        poses: joints whose poses q stores with quaternions.
    """
    import jax.numpy as jnp

    rows = np.full((len(places), len(q)), graph.number(0.0), dtype=np.int64)
    for j in np.flatnonzero(places >= 0).tolist():
        rows[j, places[j]] = graph.number(1.0)

    def turned(x: Any) -> Any:
        w, (a, b, c) = x[0], x[1:]
        return 0.5 * jnp.stack([jnp.stack([-a, w, c, -b]), jnp.stack([-b, -c, w, a]), jnp.stack([-c, b, -a, w])])

    def rotation(x: Any) -> Any:
        w, (a, b, c) = x[0], x[1:]
        whole = jnp.stack([
            jnp.stack([w * w + a * a - b * b - c * c, 2 * (a * b - w * c), 2 * (a * c + w * b)]),
            jnp.stack([2 * (a * b + w * c), w * w - a * a + b * b - c * c, 2 * (b * c - w * a)]),
            jnp.stack([2 * (a * c - w * b), 2 * (b * c + w * a), w * w - a * a - b * b + c * c]),
        ])  # fmt: skip
        return whole.T / (x @ x)

    for k, j, free in poses:
        (rows[j : j + 3, k : k + 4],) = run(graph, turned, [q[k : k + 4]])
        if free:
            (rows[j + 3 : j + 6, k + 4 : k + 7],) = run(graph, rotation, [q[k : k + 4]])
    return rows.tolist()
