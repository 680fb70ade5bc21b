"""Dynamics, statics and rollouts as functions of JAX.

JAX differentiates, maps and compiles programs that call the library. A call leaves the program by `pure_callback`
(`asked`). Derivatives of dynamics and statics are matrices times directions, given forwards; JAX transposes them itself
for gradients. The gradient of a rollout is one pass from the end of the motion to its start, and its change along a
direction is one pass forwards.

Such a tangent y = L(x) dx is an operation of JAX's own kind (`linear`). Its operands are x and dx. JAX evaluates it
forwards; backwards it asks for Lᵀ, which is the same operation with its two functions exchanged. L at a changed x has
no rule: second derivatives are an error that says so.

The library differentiates along increments δ of `integrate`, JAX by the stored numbers of q. A quaternion x acts as
x/|x|, which JAX differentiates itself; at unit length

    ω = 2 vec(x̄ dx),  dx = ½ x (0, ω)   of its rotation,   w = R(x)ᵀ dp,  dp = R(x) w   of a position               (1)

with δ = (ω, w) of a free joint. Changes along x, which no pose sees, have no effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from lissom.bridges.slopes import Sloped, sloped_forward_dynamics, sloped_inverse_dynamics
from lissom.dynamics.configuration import groups
from lissom.errors import ModelError, ShapeError, renamed
from lissom.gradients import rollout as rollouts
from lissom.gradients.equilibria import equilibrium_derivatives
from lissom.gradients.rollout import Rollout
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks
from lissom.statics import equilibrium
from lissom.stepping.schemes import Scheme

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
    if model.fills_tables_before_launch:
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


def broadcast(*arrays: tuple[Any, int]) -> tuple[tuple[int, ...], list[Any]]:
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


Function = Callable[..., tuple[np.ndarray, ...]]
Shapes = tuple[tuple[int, ...], ...]


def linear(function: Function, transpose: Function, shapes: Any, at: tuple[Any, ...], along: tuple[Any, ...]) -> Any:
    """function(*at, *along), arrays of such shapes, linear in `along`; transpose(*at, *weights) returns what has the
    shapes of `along`. `jax.vmap` adds leading axes, of size 1 where one of `at` is the same for all."""
    options = {"function": function, "transpose": transpose, "shapes": tuple(map(tuple, shapes)), "many": len(at)}
    return tuple(_operation().bind(*at, *along, **options))


@lru_cache(maxsize=1)
def _operation() -> Any:
    """The operation with its rules, made when first used."""
    import jax
    from jax.core import ShapedArray
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    made = Primitive("lissom_linear")
    made.multiple_results = True

    def call(*x: Any, function: Function, transpose: Function, shapes: Shapes, many: int) -> Any:
        return asked(function, list(shapes), *x)

    def described(*x: Any, shapes: Shapes, **_: Any) -> Any:
        return [ShapedArray(shape, np.dtype(np.float64)) for shape in shapes]

    def pushed(primals: Any, tangents: Any, *, many: int, **more: Any) -> Any:
        if not all(isinstance(x, ad.Zero) for x in tangents[:many]):
            raise ModelError("functions of the library have no second derivatives in JAX, since it has none itself")
        ways = [ad.instantiate_zeros(x) for x in tangents[many:]]
        return made.bind(*primals, many=many, **more), made.bind(*primals[:many], *ways, many=many, **more)

    def pulled(weights: Any, *x: Any, function: Function, transpose: Function, shapes: Shapes, many: int) -> Any:
        ready = [ad.instantiate_zeros(w) for w in weights]
        own = tuple(tuple(y.aval.shape) for y in x[many:])
        back = made.bind(*x[:many], *ready, function=transpose, transpose=function, shapes=own, many=many)
        return [None] * many + list(back)

    def mapped(x: Any, axes: Any, *, shapes: Shapes, many: int, **more: Any) -> Any:
        size = next(y.shape[axis] for y, axis in zip(x, axes) if axis is not None)
        ready = []
        for k, (y, axis) in enumerate(zip(x, axes)):
            front = jax.numpy.expand_dims(y, 0) if axis is None else jax.numpy.moveaxis(y, axis, 0)
            ready.append(front if k < many else jax.numpy.broadcast_to(front, (size, *front.shape[1:])))
        out = made.bind(*ready, shapes=tuple((size, *shape) for shape in shapes), many=many, **more)
        return out, [0] * len(out)

    made.def_impl(lambda *x, **more: jax.jit(lambda *y: call(*y, **more))(*x))
    made.def_abstract_eval(described)
    mlir.register_lowering(made, mlir.lower_fun(call, multiple_results=True))
    ad.primitive_jvps[made] = pushed
    ad.primitive_transposes[made] = pulled
    batching.primitive_batchers[made] = mapped
    return made


def inverse_dynamics(
    model: Model, q: Any, v: Any, a: Any, *, gravity: bool = True, elastic: bool = True, loads: bool = True,
    t: float = 0.0,
) -> Any:  # fmt: skip
    """inverse_dynamics as a function of JAX, with derivatives by q, v and a.

    Args:
        q: configuration, shape (..., nq); quaternions act by their direction. v, a: velocity and acceleration,
            shape (..., nv).
        gravity, elastic, loads, t: as inverse_dynamics; numbers of Python [-, s].
    Returns:
        tau, shape (..., nv) [N·m, N, or N·m² and N·m for strain coordinates].
    Raises:
        ModelError: JAX is missing or in single precision, or the robot calls it. ShapeError: the argument, the
        expected and the received shape. What the library finds wrong with values is an error of JAX that quotes it.
    Accuracy: as inverse_dynamics and inverse_dynamics_derivatives. There are no second derivatives.
    """
    require_jax(model)
    given = rows("q", q, model.nq), rows("v", v, model.nv), rows("a", a, model.nv)
    function = sloped_inverse_dynamics(model, gravity=gravity, elastic=elastic, loads=loads, t=t)
    return _smooth(model, function, given)


def forward_dynamics(model: Model, q: Any, v: Any, u: Any = None, t: float = 0.0) -> Any:
    """forward_dynamics as a function of JAX, with derivatives by q, v and u.

    Args:
        q: configuration, shape (..., nq); quaternions act by their direction. v: velocity, shape (..., nv).
        u: inputs, shape (..., nu); None is zero. t: as forward_dynamics, a number of Python [s].
    Returns:
        a, shape (..., nv) [per second squared].
    Raises:
        ModelError, ShapeError: as inverse_dynamics.
    Accuracy: as forward_dynamics and forward_dynamics_derivatives. There are no second derivatives.
    """
    require_jax(model)
    u = np.zeros(model.nu) if u is None else u
    given = rows("q", q, model.nq), rows("v", v, model.nv), rows("u", u, model.nu)
    return _smooth(model, sloped_forward_dynamics(model, t), given)


def solve_statics(
    model: Model,
    u: Any = None,
    q0: Any = None,
    *,
    v: Any = None,
    stable: bool = True,
    t: float = 0.0,
    tolerance: float = 1e-11,
    max_iterations: int = 100,
) -> Any:
    """Configuration that solve_statics finds as a function of JAX, with derivatives by u.

    Args:
        u: inputs, shape (..., nu); None is zero. q0: start, shape (..., nq); None is the neutral configuration. The
            equilibrium does not change with a small change of its start.
        v, stable, t, tolerance, max_iterations: as of solve_statics, values of Python.
    Returns:
        q, shape (..., nq) [rad, m, or strain units].
    Raises:
        ModelError, ShapeError: as inverse_dynamics.
    Accuracy: as solve_statics and equilibrium_derivatives. There are no second derivatives.
    """
    require_jax(model)
    import jax
    import jax.numpy as jnp

    options: dict[str, Any] = {
        "v": v,
        "stable": stable,
        "t": t,
        "tolerance": tolerance,
        "max_iterations": max_iterations,
    }
    u = rows("u", np.zeros(model.nu) if u is None else u, model.nu)
    q0 = jax.lax.stop_gradient(unit(model, rows("q0", model.neutral() if q0 is None else q0, model.nq)))
    lead, (u, q0) = broadcast((u, 1), (q0, 1))

    def both(u: np.ndarray, q0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = equilibrium.solve_statics(model, u, q0, **options)
        return found.q, equilibrium_derivatives(found).u

    @jax.custom_jvp
    def rest(u: Any, q0: Any) -> Any:
        return asked(lambda *x: (equilibrium.solve_statics(model, *x, **options).q,), [(*lead, model.nq)], u, q0)[0]

    @rest.defjvp
    def _(x: Any, dx: Any) -> Any:
        q, q_u = asked(both, [(*lead, model.nq), (*lead, model.nv, model.nu)], *x)
        return q, numbers(model, q, jnp.einsum("...ij,...j->...i", q_u, dx[0]))

    return rest(u, q0)


def _smooth(model: Model, smooth: Sloped, given: Any) -> Any:
    """A function of q and two more arrays, (..., nv), with its derivatives by each of them, by q along increments."""
    import jax
    import jax.numpy as jnp

    q, *others = given
    lead, given = broadcast((unit(model, q), 1), *((x, 1) for x in others))
    out = (*lead, model.nv)

    @jax.custom_jvp
    def function(*x: Any) -> Any:
        return asked(lambda *y: (smooth.value(*y),), [out], *x)[0]

    @function.defjvp
    def _(x: Any, dx: Any) -> Any:
        sizes = [model.nv, *(y.shape[-1] for y in x[1:])]
        shapes = [out, *((*out, size) for size in sizes)]
        found = asked(lambda *y: (smooth.value(*y), *smooth.slopes(*y)), shapes, *x)
        ways = increment(model, x[0], dx[0]), *dx[1:]
        return found[0], sum(jnp.einsum("...ij,...j->...i", s, way) for s, way in zip(found[1:], ways))

    return function(*given)


@renamed(scheme="method")
def rollout(
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
        ModelError, ShapeError: as inverse_dynamics.
    Accuracy: as Rollout.backward and Rollout.forward. There are no second derivatives. Cost: as rollout and these; the
        last motion is kept for its derivatives, others are found again.
    """
    require_jax(model)
    import jax

    q0 = unit(model, rows("q0", model.neutral() if q0 is None else q0, model.nq))
    v0 = rows("v0", np.zeros(model.nv) if v0 is None else v0, model.nv)
    u = _inputs(model, u, steps)
    lead, given = broadcast((q0, 1), (v0, 1), (u, 2))
    checks.integer(every, "every", least=1)
    times = u.shape[-2] // every + 1
    moved = _keeping_last(
        lambda *x: rollouts.rollout(model, *x, dt=dt, method=method, every=every, tolerance=tolerance)
    )

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


def _keeping_last(function: Callable[..., Rollout]) -> Callable[..., Rollout]:
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
