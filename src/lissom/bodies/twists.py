"""Exponentials of twists, with jax.numpy or NumPy, smooth at zero.

exp needs c_1 = sin φ/φ, c_2 = (1 − cos φ)/φ² and c_3 = (φ − sin φ)/φ³. They are Stumpff functions of t = φ²:

    c_k(t) = Σ (−t)^j/(2j + k)!,   c_k = 1/k! − t c_(k+2),   dc_k/dt = ½ (k c_(k+2) − c_(k+1))              (1)

They are entire functions, and their derivatives belong to the same family. With (1) as a differentiation rule for JAX,
derivatives of any order are exact in float64, compile fast, and are never NaN at zero. NumPy arrays, real or complex,
are evaluated by NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np

from lissom.tracing.graph import is_tracing, stumpff

_SWITCH = 16.0  # below this t: series and downward recursion; above it: sine, cosine and upward recursion
_TERMS = 20  # 16^20/41! is 4e-26


def _library(x: Any) -> Any:
    """numpy for a NumPy array, otherwise jax.numpy."""
    if isinstance(x, np.ndarray):
        return np
    import jax.numpy as jnp

    return jnp


def _stumpff(t: Any, first: int, count: int) -> Any:
    """c_k for `count` values of k from `first`, stacked along a new first axis."""
    xp = _library(t)
    small = t.real < _SWITCH
    low, high = xp.where(small, t, 0.0), xp.where(small, _SWITCH, t)
    last = first + count - 1
    series: dict[int, Any] = {}
    for k in (last, last - 1):
        total = xp.zeros_like(low)
        for j in reversed(range(_TERMS)):
            total = (-1.0) ** j / factorial(2 * j + k) + low * total
        series[k] = total
    root = xp.sqrt(high)
    closed = {0: xp.cos(root), 1: xp.sin(root) / root}
    for k in range(last - 2, first - 1, -1):
        series[k] = 1.0 / factorial(k) - low * series[k + 2]
    for k in range(2, last + 1):
        closed[k] = (1.0 / factorial(k - 2) - closed[k - 2]) / high
    return xp.stack([xp.where(small, series[k], closed[k]) for k in range(first, last + 1)])


@lru_cache(maxsize=1)
def _family() -> Callable[..., Any]:
    """`_stumpff` with (1) as its differentiation rule."""
    import jax
    import jax.numpy as jnp

    function = jax.custom_jvp(_stumpff, nondiff_argnums=(1, 2))

    @function.defjvp
    def rule(first: int, count: int, values: Any, rates: Any) -> Any:
        c = function(values[0], first, count + 2)
        orders = jnp.arange(first, first + count, dtype=c.dtype).reshape(-1, *[1] * values[0].ndim)
        return c[:count], 0.5 * (orders * c[2:] - c[1:-1]) * rates[0]

    return function


def cross(a: Any, b: Any) -> Any:
    """a×b of vectors (..., 3)."""
    x, y, z = (a[..., k] for k in range(3))
    u, v, w = (b[..., k] for k in range(3))
    parts = [y * w - z * v, z * u - x * w, x * v - y * u]
    return _library(parts[0]).stack(parts, axis=-1)


def _times(A: Any, B: Any) -> Any:
    """A B for small matrices (..., 3, m), as sums. XLA is slow at many small matrix products."""
    return (A[..., :, :, None] * B[..., None, :, :]).sum(axis=-2)


def exp(twist: Any) -> Any:
    """Poses (R, r) of twists (..., 6), as matrices (..., 3, 4)."""
    xp = _library(twist)
    w, v = twist[..., :3], twist[..., 3:]
    t = (w * w).sum(axis=-1)
    first, second, third = (_stumpff if xp is np else stumpff if is_tracing() else _family())(t, 1, 3)[..., None]
    one = xp.eye(3)
    columns = []
    for k in range(3):  # R e_k = e_k + c_1 w×e_k + c_2 (w w_k − t e_k)
        e = xp.broadcast_to(one[k], w.shape)
        columns.append(e + first * cross(w, e) + second * (w * w[..., k : k + 1] - t[..., None] * e))
    turned = cross(w, v)
    columns.append(v + second * turned + third * cross(w, turned))
    return xp.stack(columns, axis=-1)


def bracket(a: Any, b: Any) -> Any:
    """Lie bracket ad(a) b of twists (..., 6)."""
    xp = _library(a)
    w, u = a[..., :3], b[..., :3]
    return xp.concatenate([cross(w, u), cross(w, b[..., 3:]) + cross(a[..., 3:], u)], axis=-1)


def product(g: Any) -> Any:
    """The product of poses (m, ..., 3, 4) along the first axis, pair by pair, shape (..., 3, 4)."""
    xp = _library(g)
    while len(g) > 1:
        even = len(g) - len(g) % 2
        first, second = g[0:even:2], g[1:even:2]
        both = _times(first[..., :3], second)
        both = xp.concatenate([both[..., :3], both[..., 3:] + first[..., 3:]], axis=-1)
        g = xp.concatenate([both, g[even:]]) if len(g) % 2 else both
    return g[0]
