"""Functions of the state, written with jax.numpy, that kernels call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks, formatting
from lissom.robot.poses import NotRepeatable, failure, in_double, result_shape
from lissom.tracing.graph import Graph, Refused, inputs, run


@final
@formatting.in_one_line
@dataclass(frozen=True)
class TracedFunction:
    """A function of numbers that kernels call as native code, with exact derivatives.

    The function is called with symbols in place of numbers, and the operations that it does with them become native
    code. It must depend on its arguments alone: values that it keeps between calls, such as the integral of an error,
    and random numbers would be fixed. Functions whose second call differs from the first are refused. Numbers that it
    reads besides its arguments are those at the start of each simulation, or at the build for a force.

    `simulate(controller=)` takes one of (t, q, v), and `Robot.add_force` one of (t, g, eta). Elsewhere it is a Python
    function.

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

    def traced(
        self, where: str, shapes: Sequence[tuple[int, ...]], shape: tuple[int, ...]
    ) -> tuple[Graph, list[np.ndarray], np.ndarray]:
        """The graph of the function, the nodes of its arguments, and those of its result.

        Args:
            where: name of the place that takes the function, for messages.
            shapes: shapes of the arguments.
            shape: expected shape of the result.
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
        checks.require(found == shape, where, f"must return an array of shape {shape}, got shape", found)
        graph = Graph()
        given = inputs(graph, shapes)
        try:
            (result,) = run(graph, lambda *x: jnp.asarray(self.function(*x), dtype=jnp.float64), given)
        except Refused as error:
            raise ModelError(f"{rule} {error}") from error
        return graph, given, result
