"""What functions of the library need to be functions of JAX: calls out of its programs, and the tangent maps of q.

The library differentiates along increments δ of `integrate`, JAX by the stored numbers of q. A quaternion x acts as
x/|x|, which JAX differentiates itself; at unit length

    ω = 2 vec(x̄ dx),  dx = ½ x (0, ω)   of its rotation,   w = R(x)ᵀ dp,  dp = R(x) w   of a position               (1)

with δ = (ω, w) of a free joint, so that changes along x, which no pose sees, have no effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from lissom.dynamics.configuration import groups
from lissom.errors import ModelError, ShapeError
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch

_COPIED_AT_ONCE = 100_000  # bytes: JAX copies larger arrays in a thread of its pool
_alone = Lock()  # JAX may call from several threads at once; a model has one set of buffers


def require_jax(model: Any) -> None:
    """Raise ModelError where JAX is missing or computes in single precision, or with what it cannot call."""
    try:
        import jax
    except ImportError:
        raise ModelError("functions for JAX need JAX: pip install 'lissom[jax]'") from None
    if isinstance(model, ModelBatch):
        rule = "must be one Model, since jax.vmap puts axes in front of those of a batch of models"
        raise ModelError(f"model: {rule} (got a ModelBatch)")
    if model.asks_before_launch:
        rule = "must need no Python function before a launch, since JAX cannot be called while it waits"
        raise ModelError(f"robot {model.name!r}: {rule} (got joints or bodies that do)")
    if not jax.config.read("jax_enable_x64"):
        rule = "must be on: jax.config.update('jax_enable_x64', True)"
        raise ModelError(f"jax_enable_x64: {rule} (got off)")


def rows(name: str, value: Any, *core: int) -> Any:
    """An array of JAX (..., *core) in double precision."""
    import jax.numpy as jnp

    x = jnp.asarray(value, dtype=jnp.float64)
    if x.ndim < len(core) or x.shape[x.ndim - len(core) :] != core:
        raise ShapeError(f"{name}: expected shape (..., {', '.join(map(str, core))}), got {x.shape}")
    return x


def together(*arrays: tuple[Any, int]) -> tuple[tuple[int, ...], list[Any]]:
    """The common leading axes of arrays that end with so many axes of their own, and the arrays with these."""
    import jax.numpy as jnp

    fronts = [x.shape[: x.ndim - axes] for x, axes in arrays]
    try:
        lead = np.broadcast_shapes(*fronts)
    except ValueError:
        raise ShapeError(f"leading axes do not broadcast: {', '.join(map(str, fronts))}") from None
    return lead, [jnp.broadcast_to(x, (*lead, *x.shape[x.ndim - axes :])) for x, axes in arrays]


def asked(function: Callable[..., tuple[np.ndarray, ...]], shapes: list[tuple[int, ...]], *x: Any) -> Any:
    """The arrays of these shapes that a function of NumPy's arrays returns; `jax.vmap` adds leading axes, of size 1
    where an argument is the same for all."""
    import jax

    def call(*values: Any) -> tuple[np.ndarray, ...]:
        _raise_if_stuck(*values)
        given = [np.asarray(value, dtype=np.float64) for value in values]
        with _alone:
            return tuple(np.array(y, dtype=np.float64) for y in function(*given))

    kinds = tuple(jax.ShapeDtypeStruct(shape, np.dtype(np.float64)) for shape in shapes)
    return jax.pure_callback(call, kinds, *x, vmap_method="expand_dims")


def _raise_if_stuck(*values: Any) -> None:
    """Raise where JAX would wait for ever: its only thread waits for us, and would have to copy what we are given."""
    most = max(value.nbytes for value in values)
    if most > _COPIED_AT_ONCE and _threads_of_jax() == 1:
        rule = f"must take no more than {_COPIED_AT_ONCE} bytes on one core, where JAX has one thread, or be set to two"
        raise ModelError(f"batch: {rule}: XLA_FLAGS=--xla_force_host_platform_device_count=2 (got {most} bytes)")


def _threads_of_jax() -> int:
    """Threads of JAX's pool: one for each core of the process, or for each device that it was told to make."""
    import jax

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(cores, jax.local_device_count("cpu"))


def unit(model: Model, q: Any) -> Any:
    """q with quaternions of unit length."""
    import jax.numpy as jnp

    for at, _, _ in groups(model):
        x = q[..., at : at + 4]
        size = jnp.linalg.norm(x, axis=-1, keepdims=True)
        q = q.at[..., at : at + 4].set(x / size, unique_indices=True)
    return q


def _turned(x: Any, p: Any) -> Any:
    """R(x) p for unit quaternions."""
    import jax.numpy as jnp

    across = jnp.cross(x[..., 1:], p)
    return p + 2.0 * (x[..., :1] * across + jnp.cross(x[..., 1:], across))


def increment(model: Model, q: Any, dq: Any) -> Any:
    """The increment δ that a change of the numbers of q makes, by (1)."""
    import jax.numpy as jnp

    plain = np.flatnonzero(model.dofs.q >= 0)
    out = jnp.zeros((*dq.shape[:-1], model.nv)).at[..., plain].set(dq[..., model.dofs.q[plain]], unique_indices=True)
    for at, j, free in groups(model):
        x, dx = q[..., at : at + 4], dq[..., at : at + 4]
        w = x[..., :1] * dx[..., 1:] - dx[..., :1] * x[..., 1:] - jnp.cross(x[..., 1:], dx[..., 1:])
        out = out.at[..., j : j + 3].set(2.0 * w, unique_indices=True)
        if free:
            back = x * np.array([1.0, -1.0, -1.0, -1.0])
            turned = _turned(back, dq[..., at + 4 : at + 7])
            out = out.at[..., j + 3 : j + 6].set(turned, unique_indices=True)
    return out


def numbers(model: Model, q: Any, delta: Any) -> Any:
    """The change of the numbers of q that an increment δ makes, by (1)."""
    import jax.numpy as jnp

    plain = np.flatnonzero(model.dofs.q >= 0)
    out = (
        jnp.zeros((*delta.shape[:-1], model.nq))
        .at[..., model.dofs.q[plain]]
        .set(delta[..., plain], unique_indices=True)
    )
    for at, j, free in groups(model):
        x, w = q[..., at : at + 4], 0.5 * delta[..., j : j + 3]
        real = -jnp.sum(x[..., 1:] * w, axis=-1, keepdims=True)
        whole = jnp.concatenate([real, x[..., :1] * w + jnp.cross(x[..., 1:], w)], axis=-1)
        out = out.at[..., at : at + 4].set(whole, unique_indices=True)
        if free:
            turned = _turned(x, delta[..., j + 3 : j + 6])
            out = out.at[..., at + 4 : at + 7].set(turned, unique_indices=True)
    return out
