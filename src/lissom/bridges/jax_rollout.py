"""Rollouts as functions of JAX, whose gradients are one pass from the end of the motion to its start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lissom.bridges.jax_calls import asked, increment, numbers, require_jax, rows, together, unit
from lissom.errors import ModelError
from lissom.gradients.rollout import Rollout, rollout
from lissom.integration.schemes import Scheme
from lissom.model.model import Model
from lissom.robot import checks


def jax_rollout(
    model: Model,
    q0: Any = None,
    v0: Any = None,
    u: Any = None,
    *,
    dt: float,
    steps: int | None = None,
    scheme: str | Scheme = "generalized_alpha",
    every: int = 1,
    tolerance: float = 1e-11,
) -> tuple[Any, Any, Any]:
    """rollout as a function of JAX, with gradients by q0, v0 and u.

    Args:
        q0: start, shape (..., nq), None is the neutral configuration; quaternions act by their direction. v0:
            velocity, shape (..., nv), None is rest. u: inputs, shape (..., steps, nu), or (nu,) held all the time; None
            is zero.
        dt: size of the steps [s]. steps, scheme, every, tolerance: as rollout. All of these are values of Python.
    Returns:
        (q, v, a) at the times of the rollout, shapes (..., n, nq) and twice (..., n, nv).
    Raises:
        ModelError, ShapeError: as jax_inverse_dynamics.
    Accuracy: as Rollout.backward. There are neither forward nor second derivatives. Cost: as rollout and its
        backward; the last motion is kept for its gradient, others are found again.
    """
    require_jax(model)
    import jax

    q0 = unit(model, rows("q0", model.neutral() if q0 is None else q0, model.nq))
    v0 = rows("v0", np.zeros(model.nv) if v0 is None else v0, model.nv)
    u = _inputs(model, u, steps)
    lead, given = together((q0, 1), (v0, 1), (u, 2))
    checks.integer(every, "every", least=1)
    times = u.shape[-2] // every + 1
    moved = _remembering(lambda *x: rollout(model, *x, dt=dt, scheme=scheme, every=every, tolerance=tolerance))

    def found(*x: np.ndarray) -> tuple[np.ndarray, ...]:
        motion = moved(*x)
        return motion.q, motion.v, motion.a

    def back(*x: np.ndarray) -> tuple[np.ndarray, ...]:
        return _carried_back(moved(*x[:3]), x[3:])

    @jax.custom_vjp
    def motion(*x: Any) -> Any:
        return asked(found, [(*lead, times, size) for size in (model.nq, model.nv, model.nv)], *x)

    def forwards(*x: Any) -> Any:
        states = motion(*x)
        return states, (x, states[0])

    def backwards(kept: Any, by: Any) -> Any:
        x, q = kept
        by_delta = _transposed(lambda delta: numbers(model, q, delta), by[1], by[0])
        q0, v0, u = asked(back, [(*lead, model.nv), x[1].shape, x[2].shape], *x, by_delta, *by[1:])
        return _transposed(lambda dq: increment(model, x[0], dq), x[0], q0), v0, u

    motion.defvjp(forwards, backwards)
    q, v, a = motion(*given)
    return q, v, a


def _inputs(model: Model, u: Any, steps: int | None) -> Any:
    """u as (..., steps, nu)."""
    import jax.numpy as jnp

    held = rows("u", np.zeros(model.nu) if u is None else u, model.nu)
    if held.ndim > 1:
        return rows("u", held, held.shape[-2] if steps is None else steps, model.nu)
    if steps is None:
        raise ModelError("steps: must be given where u is held all the time (got None)")
    return jnp.broadcast_to(held, (steps, model.nu))


def _transposed(linear: Callable[[Any], Any], like: Any, by: Any) -> Any:
    """The transpose of a linear function of arrays like one, times another array."""
    import jax
    import jax.numpy as jnp

    return jax.vjp(linear, jnp.zeros_like(like))[1](by)[0]


def _remembering(function: Callable[..., Rollout]) -> Callable[..., Rollout]:
    """A function of arrays that keeps its last answer: gradients are mostly of the motion found last."""
    last: list[Any] = []

    def call(*x: np.ndarray) -> Rollout:
        if not last or any(a.shape != b.shape or a.tobytes() != b.tobytes() for a, b in zip(last[0], x)):
            last[:] = [[np.array(a) for a in x], function(*x)]
        return last[1]

    return call


def _carried_back(motion: Rollout, weights: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Derivatives of functions by q0, v0 and u, given those by q, v and a, (..., n, nv). Axes that weights have and the
    motion, in which they are of size 1, has not are those of several functions of the one motion."""
    lead = motion.lead
    whole = np.broadcast_shapes(lead, *(w.shape[:-2] for w in weights))
    many = [k for k, (size, own) in enumerate(zip(whole, lead)) if size != own]
    front, ones = range(len(many)), [len(many) + k for k in many]
    ready = []
    for w in weights:
        w = np.broadcast_to(w, (*whole, *w.shape[-2:]))
        ready.append(np.expand_dims(np.moveaxis(w, many, front), ones))
    gradient = motion.backward(*ready)
    q0, v0, u = (np.squeeze(x, tuple(ones)) for x in (gradient.q0, gradient.v0, gradient.u))
    back = (np.moveaxis(x, front, many) for x in (q0, v0, u))
    return tuple(back)
