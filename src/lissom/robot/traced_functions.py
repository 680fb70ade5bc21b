"""Functions of the state, written with jax.numpy, that kernels call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks, formatting
from lissom.robot.poses import NotRepeatable, failure, in_double, result_shape
from lissom.tracing.graph import Graph, Refused, derivative, inputs, require_few, run

if TYPE_CHECKING:
    from lissom.tracing.native import Code, Traced

QuaternionJoints = Sequence[
    tuple[int, int, bool]
]  # first index in q, first index in v, and whether it is free, of each


@final
@formatting.in_one_line
@dataclass(frozen=True)
class TracedFunction:
    """A function of numbers that kernels call as native code. Derivatives of laws, of actuators and of springs are
    exact, those of forces are differences in the kernels, to 1e-8.

    The function is called with symbols in place of numbers, and the operations that it does with them become native
    code. It must depend on its arguments alone: values that it keeps between calls, such as the integral of an error,
    and random numbers would be fixed. Functions whose second call differs from the first are refused. Numbers that it
    reads besides its arguments are those at the start of each motion, or at the build for parts of a robot.

    `controller=` of `simulate`, `rollout`, `step_derivatives`, `Stepper` and tasks takes one of (t, q, v),
    `Robot.add_force` one of (t, g, eta), `Robot.add_custom_actuator` one of q, `Robot.add_spring(law=)` one of (length,
    rate), and `spring=` of a joint one of x. Elsewhere it is a Python function.

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

    def force(self, where: str) -> Any:
        """The function of (t, g, eta) as a Warp function of (R, p, eta, s, t) that returns a wrench. The numbers that
        it reads besides its arguments are the present ones.

        Raises:
            ModelError: it cannot be traced.
        """
        from lissom.tracing.native import compiled_force, force_code  # describing a robot needs no Warp

        graph, _, wrench = self.traced(where, [(), (4, 4), (6,)], (6,))
        try:
            return compiled_force(*force_code(graph, wrench))
        except Refused as error:
            raise ModelError(f"{where}: must be a function of few operations; it {error}") from error

    def spring_law(self, where: str, arguments: int) -> Any:
        """The function of x, or of x and its rate, as a Warp function of both with exact derivatives. The numbers that
        it reads besides its arguments are the present ones.

        Args:
            where: name of the place that takes the function, for messages. arguments: their number, 1 or 2.
        Raises:
            ModelError: it cannot be traced.
        """
        from lissom.tracing.native import compiled_law, law_code  # describing a robot needs no Warp

        graph, given, force = self.traced(where, [()] * arguments, (), (1,))
        force = force.reshape(1)
        slopes = derivative(graph, force, [int(x) for x in given])[0].tolist()
        if arguments == 1:
            slopes.append(graph.number(0.0))
        try:
            return compiled_law(*law_code(graph, [int(force[0]), *slopes]))
        except Refused as error:
            raise ModelError(f"{where}: must be a function of few operations; it {error}") from error

    def actuation(self, where: str, nq: int, size: int, places: np.ndarray, poses: QuaternionJoints) -> NativeActuation:
        """The function of q as native code of an actuator's B(q), shape (nv, size), or (nv,) for one input. The numbers
        that it reads besides q are the present ones.

        Args:
            where: name of the place that takes the function, for messages.
            places, poses: of the coordinates, as of `tangent_directions`.
        Raises:
            ModelError: it cannot be traced.
        """
        from lissom.tracing.code_cache import content_key, stored_code  # describing a robot needs no Warp
        from lissom.tracing.native import code_of, compiled_functions

        nv = len(places)
        graph, (q,), B = self.traced(where, [(nq,)], (nv, size), *([(nv,)] if size == 1 else []))
        B, w = B.reshape(nv, size), np.array([graph.input(nq + k) for k in range(size)])
        (force,) = run(graph, lambda B, w: B @ w, [B, w])

        def code() -> Code:
            by_q = derivative(graph, force, q.tolist(), tangent_directions(graph, q, places, poses))
            require_few(graph.count([by_q]))
            return code_of([(graph, [force]), (graph, [by_q]), (graph, [B])], [nq, size])

        try:
            require_few(graph.count([force]))
            found = stored_code(content_key("actuation", graph, B, force, nq, size, list(poses), places), code)
        except Refused as error:
            raise ModelError(f"{where}: must be a function of few operations; it {error}") from error
        return NativeActuation(compiled_functions(found), (nv, size))

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
        return graph, given, result


@final
@dataclass(frozen=True, eq=False)
class NativeActuation:
    """The matrix B(q) of an actuator as native code.

    Fields:
        functions: functions of q and the inputs w (size,) that return B w (nv,); ∂(B w)/∂q (nv, nv), changes of q being
            in the tangent space; and B (nv, size).
        shape: (nv, size).
    """

    functions: Traced
    shape: tuple[int, int]

    def matrix(self, q: np.ndarray) -> np.ndarray:
        """B at q (nq,), shape (nv, size)."""
        B = np.empty(self.shape)
        self.functions.call(2, [np.ascontiguousarray(q, dtype=np.float64), np.zeros(self.shape[1])], [B])
        return B


def tangent_directions(graph: Graph, q: np.ndarray, places: np.ndarray, poses: QuaternionJoints) -> list[list[int]]:
    """∂q/∂δ for each component of a change δ (nv,) in the tangent space, as nodes, shape (nv, nq).

    For a quaternion w + x of a joint with the body twist (ω; v), and for its position p, changes are

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
