"""Integrals from 0 to x of smooth functions, for all x at once, with exact derivatives.

    y(θ, x) = ∫₀ˣ h(θ, s) ds,   dy = h(θ, x) dx + (∫₀ˣ ∂h/∂θ ds) dθ                                         (1)

Where x takes many values, h is evaluated at the nodes of one rule over all of them, and its integral is a series of
Chebyshev polynomials T_k. (1) is told to JAX: derivatives of any order are again such integrals, and by x exact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

_NODES = 32  # resolves bends by three turns to rounding
_UNIT = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
_SERIES = np.linalg.inv(chebyshev.chebvander(_UNIT, _NODES - 1))
_SUMMED = np.stack([chebyshev.chebint(c) for c in _SERIES.T], axis=-1)  # of the integral, from values at the nodes


def _polynomials(u: Any) -> Any:
    """T_0 to T_32 at u, shape (33, ...): T_(m+j) = 2 T_m T_j − T_(m−j)."""
    import jax.numpy as jnp

    T = jnp.stack([jnp.ones_like(u), u])
    while len(T) <= _NODES:
        T = jnp.concatenate([T, 2.0 * T[-1] * T[1:] - T[-2::-1]])
    return T


def plain_integral(function: Callable[[Any, Any], Any], q: Any, x: Any) -> Any:
    """The same as `integral`, of which JAX knows no derivatives by a rule."""
    import jax.numpy as jnp

    low, high = jnp.minimum(x.min(), 0.0), jnp.maximum(x.max(), 0.0)
    half = 0.5 * jnp.maximum(high - low, 1e-300)
    middle = low + half
    series = function(q, middle + half * _UNIT) @ _SUMMED.T
    T = _polynomials(jnp.concatenate([jnp.zeros(1), jnp.ravel(x)]) / half - middle / half)
    found = half * (series @ T)
    found = found[..., 1:] - found[..., :1]
    return found.reshape(*found.shape[:-1], *jnp.shape(x))


@lru_cache(maxsize=1)
def _made() -> Callable[..., Any]:
    """`plain_integral` with (1) as the rule of its derivatives."""
    import jax

    whole = jax.custom_jvp(plain_integral, nondiff_argnums=(0,))

    def rule(function: Callable[[Any, Any], Any], values: Any, rates: Any) -> Any:
        (q, x), (q_dot, x_dot) = values, rates
        zero = jax.custom_derivatives.SymbolicZero
        total = 0.0
        if not isinstance(x_dot, zero):
            total = function(q, x) * x_dot
        moving = [not isinstance(part, zero) for part in jax.tree.leaves(q_dot, is_leaf=lambda p: isinstance(p, zero))]
        if any(moving):
            filled = jax.tree.map(
                lambda rate, part: jax.numpy.zeros_like(part) if isinstance(rate, zero) else rate, q_dot, q,
                is_leaf=lambda p: isinstance(p, zero),
            )  # fmt: skip
            total = total + whole(_pushed(function), (q, filled), x)
        found = whole(function, q, x)
        return found, jax.numpy.broadcast_to(total, found.shape)

    whole.defjvp(rule, symbolic_zeros=True)
    return whole


def _pushed(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Its derivative by the first argument along a direction, which comes with that argument."""
    import jax

    return lambda both, s: jax.jvp(lambda q: function(q, s), (both[0],), (both[1],))[1]


def integral(function: Callable[[Any, Any], Any], q: Any, x: Any) -> Any:
    """y of (1), of the shape of x, and before it what axes the function has before those of its second argument.

    Args:
        function: h(q, s) of s, shape (m,), made of jax.numpy.
        q: its parameters, an array or several.
        x: of any shape.
    """
    import jax.numpy as jnp

    return _made()(function, q, jnp.asarray(x))
