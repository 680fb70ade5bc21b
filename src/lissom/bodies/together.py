"""Functions of JAX that are called once for several bodies, and return all they find in one array."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, final

import numpy as np

from lissom.robot.poses import compiled


def one_by_one(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives of bodies, along the first axis as in its arguments, of which lists are stacked. What it
    makes of one stays in the cache of the processor: all at once would take longer."""
    import jax
    import jax.numpy as jnp

    if len(arguments[0]) == 1:
        return function(*(x[0] for x in arguments))[None]
    return jax.lax.map(lambda rows: function(*rows), [jnp.stack(x) if isinstance(x, list) else x for x in arguments])


@final
class Together:
    """A function that returns several arrays, of several bodies at once.

    Args:
        function: of what all bodies have in common, and of what each has. common: number of its first arguments that
            are the former.
    """

    def __init__(self, function: Callable[..., Any], common: int = 0) -> None:
        self.function, self.common = function, common
        self._shapes: list[tuple[int, ...]] = []  # of what it returns, once it was compiled
        self._compiled = compiled(self._all)

    def __call__(self, *arguments: Any) -> list[np.ndarray]:
        """What it gives of bodies, along the first axis as in the arguments that each has."""
        flat, parts, first = np.asarray(self._compiled(*arguments)), [], 0
        for shape in self._shapes:
            size = prod(shape)
            parts.append(flat[:, first : first + size].reshape(len(flat), *shape))
            first += size
        return parts

    def _all(self, *arguments: Any) -> Any:
        import jax.numpy as jnp

        def one(*own: Any) -> Any:
            found = [jnp.asarray(part) for part in self.function(*arguments[: self.common], *own)]
            self._shapes[:] = [part.shape for part in found]
            return jnp.concatenate([part.ravel() for part in found])

        return one_by_one(one, *arguments[self.common :])
