"""Rollouts as functions of JAX, whose gradients are one pass from the end of the motion to its start, and whose changes
along directions one from its start to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lissom.bridges.jax_calls import asked, increment, numbers, require_jax, rows, together, unit
from lissom.bridges.jax_linear import linear
from lissom.errors import ModelError, renamed
from lissom.gradients.rollout import Rollout, rollout
from lissom.integration.schemes import Scheme
from lissom.model.model import Model
from lissom.robot import checks


@renamed(scheme="method")
def jax_rollout(
    model: Model,
    q0: Any = None,
    v0: Any = None,
    u: Any = None,
    *,
    dt: float,
    steps: int | None = None,
    method: str | Scheme = "generalized_alpha",
    every: int = 1,
    tolerance: float = 1e-11,
) -> tuple[Any, Any, Any]:
    """rollout as a function of JAX, with derivatives by q0, v0 and u, forwards and backwards.

    Args:
        q0: start, shape (..., nq), None is the neutral configuration; quaternions act by their direction. v0:
            velocity, shape (..., nv), None is rest. u: inputs, shape (..., steps, nu), or (nu,) held all the time; None
            is zero.
        dt: size of the steps [s]. steps, method, every, tolerance: as rollout. All of these are values of Python.
    Returns:
        (q, v, a) at the times of the rollout, shapes (..., n, nq) and twice (..., n, nv).
    Raises:
        ModelError, ShapeError: as jax_inverse_dynamics.
    Accuracy: as Rollout.backward and Rollout.forward. There are no second derivatives. Cost: as rollout and these; the
        last motion is kept for its derivatives, others are found again.
    """
    require_jax(model)
    import jax

    q0 = unit(model, rows("q0", model.neutral() if q0 is None else q0, model.nq))
    v0 = rows("v0", np.zeros(model.nv) if v0 is None else v0, model.nv)
    u = _inputs(model, u, steps)
    lead, given = together((q0, 1), (v0, 1), (u, 2))
    checks.integer(every, "every", least=1)
    times = u.shape[-2] // every + 1
    moved = _remembering(lambda *x: rollout(model, *x, dt=dt, method=method, every=every, tolerance=tolerance))

    def found(*x: np.ndarray) -> tuple[np.ndarray, ...]:
        motion = moved(*x)
        return motion.q, motion.v, motion.a

    def ahead(*x: np.ndarray) -> tuple[np.ndarray, ...]:
        return _carried_ahead(moved(*x[:3]), x[3:])

    def back(*x: np.ndarray) -> tuple[np.ndarray, ...]:
        return _carried_back(moved(*x[:3]), x[3:])

    shapes = [(*lead, times, size) for size in (model.nq, model.nv, model.nv)]

    @jax.custom_jvp
    def motion(*x: Any) -> Any:
        return asked(found, shapes, *x)

    @motion.defjvp
    def _(x: Any, dx: Any) -> Any:
        q, v, a = motion(*x)
        way = increment(model, x[0], dx[0]), *dx[1:]
        dq, dv, da = linear(ahead, back, [(*shape[:-1], model.nv) for shape in shapes], x, way)
        return (q, v, a), (numbers(model, q, dq), dv, da)

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


def _remembering(function: Callable[..., Rollout]) -> Callable[..., Rollout]:
    """A function of arrays that keeps its last answer: gradients are mostly of the motion found last."""
    last: list[Any] = []

    def call(*x: np.ndarray) -> Rollout:
        if not last or any(a.shape != b.shape or a.tobytes() != b.tobytes() for a, b in zip(last[0], x)):
            last[:] = [[np.array(a) for a in x], function(*x)]
        return last[1]

    return call


def _carried_ahead(motion: Rollout, ways: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Changes of q, v and a along those of q0 and v0, (..., nv), and of u, (..., steps, nu)."""
    front, ready = _in_front(motion, ways, (1, 1, 2))
    found = motion.forward(*ready)
    return tuple(_back(x, front) for x in (found.q, found.v, found.a))


def _carried_back(motion: Rollout, weights: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Derivatives of functions by q0, v0 and u, given those by q, v and a, (..., n, nv)."""
    front, ready = _in_front(motion, weights, (2, 2, 2))
    found = motion.backward(*ready)
    return tuple(_back(x, front) for x in (found.q0, found.v0, found.u))


def _in_front(
    motion: Rollout, arrays: tuple[np.ndarray, ...], own: tuple[int, ...]
) -> tuple[list[int], list[np.ndarray]]:
    """Arrays that end with so many axes of their own, with the axes moved to the front that they have and the motion,
    in which they are of size 1, has not: those of several functions, or directions, of the one motion."""
    lead = motion.lead
    whole = np.broadcast_shapes(lead, *(x.shape[: x.ndim - axes] for x, axes in zip(arrays, own)))
    many = [k for k, (size, here) in enumerate(zip(whole, lead)) if size != here]
    front, ones = range(len(many)), [len(many) + k for k in many]
    ready = []
    for x, axes in zip(arrays, own):
        x = np.broadcast_to(x, (*whole, *x.shape[x.ndim - axes :]))
        ready.append(np.expand_dims(np.moveaxis(x, many, front), ones))
    return many, ready


def _back(x: np.ndarray, many: list[int]) -> np.ndarray:
    """What _in_front undoes."""
    out = np.squeeze(x, tuple(len(many) + k for k in many))
    return np.moveaxis(out, range(len(many)), many)
