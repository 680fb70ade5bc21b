"""How points change with the coordinates of a motion, points along the last axis."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple, TypeVar


class Slopes(NamedTuple):
    """Positions (3, N), ∂f/∂x (3, 3, N), their derivatives by each coordinate, first, and along θ̇ the second ones of
    both, J̇θ̇ (3, N) and Σ ∂²F/∂θ_j∂θ_k θ̇_jθ̇_k (3, 3, N)."""

    p: Any
    F: Any
    J: Any
    F_j: Any
    h: Any
    F_h: Any


class Bends(NamedTuple):
    """The same with second derivatives, H of p by [j, l] and F_jl of F, and ∂(J̇θ̇)/∂θ (n, 3, N)."""

    p: Any
    F: Any
    J: Any
    F_j: Any
    H: Any
    F_jl: Any
    h_q: Any


Kind = TypeVar("Kind", Slopes, Bends)


def packed(x: Slopes | Bends) -> Any:
    """All in one array (rows, N): functions of JAX return one sooner than many."""
    import jax.numpy as jnp

    return jnp.concatenate([part.reshape(-1, part.shape[-1]) for part in x])


def unpacked(kind: type[Kind], rows: Any, n: int) -> Kind:
    """What was packed, of n coordinates."""
    last = ((3,), (3, 3)) if kind is Slopes else ((n, n, 3), (n, n, 3, 3), (n, 3))
    parts, first = [], 0
    for shape in ((3,), (3, 3), (n, 3), (n, 3, 3), *last):
        size = prod(shape)
        parts.append(rows[first : first + size].reshape(*shape, rows.shape[-1]))
        first += size
    return kind(*parts)


def along_all(function: Callable[[Any], Any], q: Any) -> tuple[Any, Any]:
    """A function and its derivatives by all of q, the axis of q first."""
    import jax
    import jax.numpy as jnp

    return jax.vmap(lambda e: jax.jvp(function, (q,), (e,)), out_axes=(None, 0))(jnp.eye(len(q)))


def curved(function: Callable[..., Any], at: tuple[Any, ...], rates: tuple[Any, ...]) -> Any:
    """The second derivative of a function along rates, J̇θ̇ of positions."""
    import jax

    return jax.jvp(lambda *at: jax.jvp(function, at, rates)[1], at, rates)[1]


def slopes(positions: Callable[[Any], Any], deformations: Callable[[Any], Any], q: Any, v: Any) -> Slopes:
    """Of any motion, from functions of θ that return p and F."""
    both = lambda q: (positions(q), deformations(q))  # noqa: E731
    (p, F), (J, F_j) = along_all(both, q)
    return Slopes(p, F, J, F_j, *curved(both, (q,), (v,)))


def bends(positions: Callable[[Any], Any], deformations: Callable[[Any], Any], q: Any, v: Any) -> Bends:
    """Of any motion, from functions of θ that return p and F."""
    both = lambda q: (positions(q), deformations(q))  # noqa: E731
    ((p, F), (J, F_j)), (_, (H, F_jl)) = along_all(lambda q: along_all(both, q), q)
    _, h_q = along_all(lambda q: curved(positions, (q,), (v,)), q)
    return Bends(p, F, J, F_j, H, F_jl, h_q)
