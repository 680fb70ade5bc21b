"""Dynamics, statics and rollouts as JAX functions.

JAX differentiates, vectorises and compiles programs that call the library. A compiled program calls it by
`pure_callback` (`called`). Derivatives of dynamics and statics are defined in forward mode, as matrices times
directions; JAX transposes them for gradients. The gradient of a rollout is one backward pass, and its directional
derivative is one forward pass.

The derivative y = L(x) dx of a rollout is a JAX primitive (`linear`) with the operands x and dx. Its transpose Lᵀ is
the same primitive with its two functions exchanged. The derivative of L(x) y with respect to x along d is the
difference

    (8 (L(x + h d) − L(x − h d)) − L(x + 2h d) + L(x − 2h d)) y / 12 h                                           (2)

The library differentiates along increments δ of `integrate`, JAX with respect to the stored entries of q. JAX
normalises quaternions x to x/|x| and differentiates this too. At unit length

    ω = 2 vec(x̄ dx),  dx = ½ x (0, ω)   of its rotation,   w = R(x)ᵀ dp,  dp = R(x) w   of a position               (1)

with δ = (ω, w) for a free joint. An increment along x does not change the pose and has no effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from threading import Lock
from typing import Any, final

import numpy as np

from lissom.dynamics.configuration import quaternion_joints
from lissom.dynamics.forward_dynamics import forward_dynamics as accelerations
from lissom.dynamics.forward_dynamics_derivatives import forward_dynamics_derivatives
from lissom.dynamics.inverse_dynamics import inverse_dynamics as forces
from lissom.dynamics.inverse_dynamics_derivatives import inverse_dynamics_derivatives
from lissom.dynamics.start import default_start
from lissom.errors import ModelError, ShapeError, renamed
from lissom.gradients import rollout as rollouts
from lissom.gradients.equilibria import equilibrium_derivatives
from lissom.gradients.rollout import Rollout
from lissom.inverse.numbers import Numbers, numbers_of
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot import checks
from lissom.robot.traced_functions import TracedFunction
from lissom.statics import equilibrium
from lissom.stepping.schemes import Scheme

_COPIED_AT_ONCE = 100_000  # JAX copies arrays with more bytes in a thread of its pool
_SHARE = 3e-5  # step of (2) over the size of the numbers that it changes
_CENTRAL = ((1.0, 2.0 / 3.0), (-1.0, -2.0 / 3.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0))
_LOCK = Lock()  # JAX may call from several threads at once, and a model has one set of buffers


def require_jax(model: Any) -> None:
    """Raise ModelError if JAX is not installed, computes in single precision, or cannot call the model."""
    try:
        import jax
    except ImportError:
        raise ModelError("functions for JAX need JAX: pip install 'lissom[jax]'") from None
    if isinstance(model, ModelBatch):
        rule = "must be one Model, since jax.vmap adds axes before those of a batch of models"
        raise ModelError(f"model: {rule} (got a ModelBatch)")
    if model.fills_tables_before_launch:
        rule = "must need no Python code before a launch, since that cannot call JAX during a callback"
        raise ModelError(f"robot {model.name!r}: {rule} (got joints, bodies or actuators that do)")
    if not jax.config.read("jax_enable_x64"):
        rule = "must be on: jax.config.update('jax_enable_x64', True)"
        raise ModelError(f"jax_enable_x64: {rule} (got off)")


def rows(name: str, value: Any, *core: int) -> Any:
    """A value as a JAX array (..., *core) in double precision."""
    import jax.numpy as jnp

    x = jnp.asarray(value, dtype=jnp.float64)
    if x.ndim < len(core) or x.shape[x.ndim - len(core) :] != core:
        raise ShapeError(f"{name}: expected shape (..., {', '.join(map(str, core))}), got {x.shape}")
    return x


def broadcast(*arrays: tuple[Any, int]) -> tuple[tuple[int, ...], list[Any]]:
    """Common leading axes, and the arrays broadcast to them. Arguments: pairs (array, number of its trailing axes)."""
    import jax.numpy as jnp

    fronts = [x.shape[: x.ndim - axes] for x, axes in arrays]
    try:
        lead = np.broadcast_shapes(*fronts)
    except ValueError:
        raise ShapeError(f"leading axes do not broadcast: {', '.join(map(str, fronts))}") from None
    return lead, [jnp.broadcast_to(x, (*lead, *x.shape[x.ndim - axes :])) for x, axes in arrays]


def called(function: Callable[..., tuple[np.ndarray, ...]], shapes: list[tuple[int, ...]], *x: Any) -> Any:
    """Results, with the given shapes, of a function of NumPy arrays that a JAX program calls. `jax.vmap` adds leading
    axes to the arguments; their size is 1 for arguments that are not mapped."""
    import jax

    def call(*values: Any) -> tuple[np.ndarray, ...]:
        _raise_if_stuck(*values)
        given = [np.asarray(value, dtype=np.float64) for value in values]
        with _LOCK:
            return tuple(np.array(y, dtype=np.float64) for y in function(*given))

    kinds = tuple(jax.ShapeDtypeStruct(shape, np.dtype(np.float64)) for shape in shapes)
    return jax.pure_callback(call, kinds, *x, vmap_method="expand_dims")


def _raise_if_stuck(*values: Any) -> None:
    """Raise ModelError if JAX would wait forever: its only thread waits for this callback, and is needed to copy the
    arguments."""
    most = max(value.nbytes for value in values)
    if most > _COPIED_AT_ONCE and _threads_of_jax() == 1:
        rule = f"must take no more than {_COPIED_AT_ONCE} bytes on one core, where JAX has one thread; for a second one"
        raise ModelError(f"batch: {rule} set XLA_FLAGS=--xla_force_host_platform_device_count=2 (got {most} bytes)")


def _threads_of_jax() -> int:
    """Number of threads of JAX's pool: the number of cores of the process, or of JAX's CPU devices if that is
    larger."""
    import jax

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(cores, jax.local_device_count("cpu"))


def unit(model: Model, q: Any) -> Any:
    """q with its quaternions normalised."""
    import jax.numpy as jnp

    for at, _, _ in quaternion_joints(model):
        x = q[..., at : at + 4]
        size = jnp.linalg.norm(x, axis=-1, keepdims=True)
        q = q.at[..., at : at + 4].set(x / size, unique_indices=True)
    return q


def _turned(x: Any, p: Any) -> Any:
    """R(x) p for unit quaternions x (..., 4) and p (..., 3)."""
    import jax.numpy as jnp

    across = jnp.cross(x[..., 1:], p)
    return p + 2.0 * (x[..., :1] * across + jnp.cross(x[..., 1:], across))


def increment(model: Model, q: Any, dq: Any) -> Any:
    """The increment δ (..., nv) for an increment dq (..., nq) of the stored entries of q, by (1)."""
    import jax.numpy as jnp

    plain = np.flatnonzero(model.dofs.q >= 0)
    out = jnp.zeros((*dq.shape[:-1], model.nv)).at[..., plain].set(dq[..., model.dofs.q[plain]], unique_indices=True)
    for at, j, free in quaternion_joints(model):
        x, dx = q[..., at : at + 4], dq[..., at : at + 4]
        w = x[..., :1] * dx[..., 1:] - dx[..., :1] * x[..., 1:] - jnp.cross(x[..., 1:], dx[..., 1:])
        out = out.at[..., j : j + 3].set(2.0 * w, unique_indices=True)
        if free:
            back = x * np.array([1.0, -1.0, -1.0, -1.0])
            turned = _turned(back, dq[..., at + 4 : at + 7])
            out = out.at[..., j + 3 : j + 6].set(turned, unique_indices=True)
    return out


def numbers(model: Model, q: Any, delta: Any) -> Any:
    """The increment dq (..., nq) of the stored entries of q for an increment δ (..., nv), by (1)."""
    import jax.numpy as jnp

    plain = np.flatnonzero(model.dofs.q >= 0)
    out = (
        jnp.zeros((*delta.shape[:-1], model.nq))
        .at[..., model.dofs.q[plain]]
        .set(delta[..., plain], unique_indices=True)
    )
    for at, j, free in quaternion_joints(model):
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


@final
@dataclass(frozen=True, eq=False)
class Second:
    """Second derivatives of a function of x by (2).

    Fields:
        ahead: L dx as a function of (*x, *dx). back: Lᵀ w as a function of (*x, *w). sizes: sizes of the numbers of
        each array of x, (n,) each; None: its largest number. axes: number of trailing axes of each array of x.
        symmetric: False with quaternions. is_back: whether `bent` differentiates `back`.
    """

    ahead: Function
    back: Function
    sizes: tuple[np.ndarray | None, ...]
    axes: tuple[int, ...]
    symmetric: bool
    is_back: bool = False

    def transposed(self) -> Second:
        """The second derivatives of the transpose."""
        return replace(self, is_back=not self.is_back)

    def bent(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """(2) of `ahead` or `back` at (*x, *along, *d)."""
        return self._difference(self.back if self.is_back else self.ahead, arrays)

    def bent_transposed(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """The transpose of `bent` with respect to d, at (*x, *along, *weights)."""
        if not self.symmetric:
            raise ModelError(
                "second derivatives of a robot with quaternions need jax.jvp of jax.grad, not jax.grad twice"
            )
        n = len(self.axes)
        if self.is_back:
            return self._difference(self.back, arrays)
        x, along, weights = arrays[:n], arrays[n : 2 * n], arrays[2 * n :]
        return self._difference(self.back, (*x, *weights, *along))

    def _difference(self, function: Function, arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        n = len(self.axes)
        x, along, d = arrays[:n], arrays[n:-n], arrays[-n:]
        sizes = [np.max(np.abs(y), initial=0.0) or 1.0 if size is None else size for y, size in zip(x, self.sizes)]
        shares = [np.max(np.abs(y) / size, axis=tuple(range(-axes, 0)), initial=0.0)
                  for y, size, axes in zip(d, sizes, self.axes)]  # fmt: skip
        share = np.max(np.broadcast_arrays(*shares), axis=0)
        h = _SHARE / np.where(share > 0.0, share, 1.0)
        wide = [h.reshape(h.shape + (1,) * axes) for axes in self.axes]
        out: list[Any] = []
        for place, weight in _CENTRAL:
            found = function(*(a + place * step * b for a, step, b in zip(x, wide, d)), *along)
            parts = [weight * y / h.reshape(h.shape + (1,) * (y.ndim - h.ndim)) for y in found]
            out = [a + b for a, b in zip(out, parts)] if out else parts
        return tuple(out)


def linear(
    function: Function, transpose: Function, shapes: Any, at: tuple[Any, ...], along: tuple[Any, ...],
    second: Second | None = None,
) -> Any:  # fmt: skip
    """function(*at, *along), arrays with the given shapes, linear in `along`. transpose(*at, *weights) is its transpose
    and returns arrays with the shapes of `along`. `jax.vmap` adds leading axes; their size is 1 for arrays in `at` that
    are not mapped. second: derivatives with respect to `at`; None: there are none."""
    options = {"function": function, "transpose": transpose, "shapes": tuple(map(tuple, shapes)), "n_at": len(at)}
    return tuple(_operation().bind(*at, *along, **options, second=second))


@lru_cache(maxsize=1)
def _operation() -> Any:
    """The JAX primitive with its rules, created on first use."""
    import jax
    from jax.core import ShapedArray
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    made = Primitive("lissom_linear")
    made.multiple_results = True

    def call(*x: Any, function: Function, transpose: Function, shapes: Shapes, n_at: int, second: Second | None) -> Any:
        return called(function, list(shapes), *x)

    def described(*x: Any, shapes: Shapes, **_: Any) -> Any:
        return [ShapedArray(shape, np.dtype(np.float64)) for shape in shapes]

    def pushed(primals: Any, tangents: Any, *, n_at: int, second: Second | None, **more: Any) -> Any:
        changes = [ad.instantiate_zeros(x) for x in tangents[n_at:]]
        out = made.bind(*primals, n_at=n_at, second=second, **more)
        change = made.bind(*primals[:n_at], *changes, n_at=n_at, second=second, **more)
        if all(isinstance(x, ad.Zero) for x in tangents[:n_at]):
            return out, change
        if second is None:
            raise ModelError("this function of the library has no second or third derivatives in JAX")
        ways = [ad.instantiate_zeros(x) for x in tangents[:n_at]]
        both = {"function": second.bent, "transpose": second.bent_transposed, "shapes": more["shapes"]}
        bent = made.bind(*primals, *ways, n_at=len(primals), second=None, **both)
        return out, [a + b for a, b in zip(change, bent)]

    def pulled(
        weights: Any, *x: Any, function: Function, transpose: Function, shapes: Shapes, n_at: int, second: Second | None
    ) -> Any:
        ready = [ad.instantiate_zeros(w) for w in weights]
        own = tuple(tuple(y.aval.shape) for y in x[n_at:])
        other = second and second.transposed()
        back = made.bind(*x[:n_at], *ready, function=transpose, transpose=function, shapes=own, n_at=n_at, second=other)
        return [None] * n_at + list(back)

    def mapped(x: Any, axes: Any, *, shapes: Shapes, n_at: int, **more: Any) -> Any:
        size = next(y.shape[axis] for y, axis in zip(x, axes) if axis is not None)
        ready = []
        for k, (y, axis) in enumerate(zip(x, axes)):
            front = jax.numpy.expand_dims(y, 0) if axis is None else jax.numpy.moveaxis(y, axis, 0)
            ready.append(front if k < n_at else jax.numpy.broadcast_to(front, (size, *front.shape[1:])))
        out = made.bind(*ready, shapes=tuple((size, *shape) for shape in shapes), n_at=n_at, **more)
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
    """inverse_dynamics as a JAX function, with derivatives with respect to q, v and a.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]. Quaternions are normalised.
        v, a: velocity and acceleration, shape (..., nv) [unit of q per s, per s²].
        gravity, elastic, loads, t: as in inverse_dynamics; Python values [-, s].
    Returns:
        tau, shape (..., nv) [N·m, N, or N·m² and N·m for strain coordinates].
    Raises:
        ModelError: JAX is not installed or in single precision, or the robot needs Python code before each launch.
        ShapeError: an argument has a wrong shape. Errors of the library inside a call become JAX errors that contain
            their text.
    Accuracy: as inverse_dynamics and inverse_dynamics_derivatives. There are no second derivatives.
    """
    require_jax(model)
    given = rows("q", q, model.nq), rows("v", v, model.nv), rows("a", a, model.nv)
    options: dict[str, Any] = {"gravity": gravity, "elastic": elastic, "loads": loads, "t": t}
    value = partial(forces, model, **options)
    return _smooth(model, value, partial(inverse_dynamics_derivatives, model, **options), given)


def forward_dynamics(model: Model, q: Any, v: Any, u: Any = None, t: float = 0.0) -> Any:
    """forward_dynamics as a JAX function, with derivatives with respect to q, v and u.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]. Quaternions are normalised.
        v: velocity, shape (..., nv) [unit of q per s].
        u: inputs, shape (..., nu) [N, m, Pa or N·m, by actuator]; None is zero.
        t: as in forward_dynamics; a Python number [s].
    Returns:
        a, shape (..., nv) [per second squared].
    Raises:
        ModelError, ShapeError: as in inverse_dynamics.
    Accuracy: as forward_dynamics and forward_dynamics_derivatives. There are no second derivatives.
    """
    require_jax(model)
    u = np.zeros(model.nu) if u is None else u
    given = rows("q", q, model.nq), rows("v", v, model.nv), rows("u", u, model.nu)
    value = partial(accelerations, model, t=t)
    return _smooth(model, value, partial(forward_dynamics_derivatives, model, t=t), given)


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
    design: Mapping[str, Any] | None = None,
) -> Any:
    """The equilibrium configuration of solve_statics as a JAX function, with derivatives with respect to u and design
    values.

    Args:
        u: inputs, shape (..., nu) [N, m, Pa or N·m, by actuator]; None is zero.
        q0: start, shape (..., nq) [rad, m, or strain units]; None is `start_configuration`. Derivatives with
            respect to q0 are zero; where contacts stick, `equilibrium_derivatives` has them.
        v, stable, t, tolerance, max_iterations: as in solve_statics; Python values.
        design: values by path, numbers or arrays of numbers, (..., *shape of the value).
    Returns:
        q, shape (..., nq) [rad, m, or strain units].
    Raises:
        ModelError, ShapeError: as in inverse_dynamics, or a path leads to no number.
    Accuracy: as solve_statics and equilibrium_derivatives. Second derivatives are differences (2) of these, 1e-6 of
    their largest terms. Cost: a batch of different designs is computed one after the other.
    """
    require_jax(model)
    import jax

    options: dict[str, Any] = {
        "v": v,
        "stable": stable,
        "t": t,
        "tolerance": tolerance,
        "max_iterations": max_iterations,
    }
    u = rows("u", np.zeros(model.nu) if u is None else u, model.nu)
    q0 = jax.lax.stop_gradient(unit(model, rows("q0", default_start(model) if q0 is None else q0, model.nq)))
    known, x = _designs(model, design)
    lead, (u, q0, x) = broadcast((u, 1), (q0, 1), (x, 1))
    paths = known.paths

    def solved(own: Model, u: np.ndarray, q0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = equilibrium.solve_statics(own, u, q0, **options)
        slopes = equilibrium_derivatives(found, parameters=paths)
        parts = [slopes.parameters[path].reshape(*found.q.shape[:-1], model.nv, -1) for path in paths]
        return found.q, np.concatenate([slopes.u, *parts], axis=-1)

    both = _keeping_last(_over_designs(model, known, solved, 2, (1, 1)))
    values = _over_designs(model, known, lambda own, *z: (equilibrium.solve_statics(own, *z, **options).q,), 2, (1, 1))

    def ahead(u: np.ndarray, q0: np.ndarray, x: np.ndarray, du: np.ndarray, _: Any, dx: np.ndarray) -> Any:
        matrix = both(u, q0, x)[1]
        return (np.einsum("...ij,...j->...i", matrix, np.concatenate([du, dx], axis=-1)),)

    def back(u: np.ndarray, q0: np.ndarray, x: np.ndarray, w: np.ndarray) -> Any:
        found = np.einsum("...ij,...i->...j", both(u, q0, x)[1], w)
        none = np.zeros((*found.shape[:-1], model.nq))
        return found[..., : model.nu], none, found[..., model.nu :]

    sizes = None, np.ones(model.nq), known.units
    second = Second(ahead, back, sizes, (1, 1, 1), not quaternion_joints(model))

    @jax.custom_jvp
    def rest(*y: Any) -> Any:
        return called(values, [(*lead, model.nq)], *y)[0]

    @rest.defjvp
    def _(y: Any, dy: Any) -> Any:
        q = rest(*y)
        return q, numbers(model, q, linear(ahead, back, [(*lead, model.nv)], y, dy, second)[0])

    return rest(u, q0, x)


def _designs(model: Model, design: Mapping[str, Any] | None) -> tuple[Numbers, Any]:
    """Design values by path as Numbers, and as one JAX array (..., k)."""
    import jax.numpy as jnp

    given = dict(design or {})
    known = numbers_of(model, tuple(given), {})
    parts = [rows(f"design > {path}", given[path], *shape) for path, shape in known.shapes.items()]
    _, parts = broadcast(*((x, len(shape)) for x, shape in zip(parts, known.shapes.values())))
    flat = [x.reshape(*x.shape[: x.ndim - len(shape)], -1) for x, shape in zip(parts, known.shapes.values())]
    return known, jnp.concatenate(flat, axis=-1) if flat else jnp.zeros(0)


def _over_designs(
    model: Model, known: Numbers, function: Callable[..., Any], place: int, axes: tuple[int, ...]
) -> Function:
    """function(model, *arrays) as a function of arrays among which the designs (..., k) are at index `place`. axes:
    numbers of trailing axes of the other arrays. Different designs of a batch are computed one after the other."""
    last: list[Any] = []

    def changed(x: np.ndarray) -> Model:
        if not known.shapes:
            return model
        if not last or not np.array_equal(last[0], x):
            last[:] = [x.copy(), known.model(model, x)]
        return last[1]

    def call(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        x, given = arrays[place], [*arrays[:place], *arrays[place + 1 :]]
        flat = x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1])
        lead = np.broadcast_shapes(x.shape[:-1], *(y.shape[: y.ndim - n] for y, n in zip(given, axes)))
        if not known.shapes or len(flat) == 1:
            return function(changed(flat[0]), *given)
        given = [np.broadcast_to(y, (*lead, *y.shape[y.ndim - n :])) for y, n in zip(given, axes)]
        if not (flat != flat[0]).any():
            return function(changed(flat[0]), *given)
        x = np.broadcast_to(x, (*lead, x.shape[-1]))
        found = [function(changed(x[k]), *(y[k] for y in given)) for k in np.ndindex(*lead)]
        return tuple(np.reshape(np.stack(y), (*lead, *y[0].shape)) for y in zip(*found))

    return call


def _smooth(model: Model, value: Callable[..., Any], slopes: Callable[..., Any], given: Any) -> Any:
    """Result (..., nv) of a function of q and two more arrays, with derivatives for JAX.

    Args:
        value: the function.
        slopes: its derivatives with respect to each argument; for q along increments.
        given: the arguments.
    """
    import jax
    import jax.numpy as jnp

    q, *others = given
    lead, given = broadcast((unit(model, q), 1), *((x, 1) for x in others))
    out = (*lead, model.nv)

    @jax.custom_jvp
    def function(*x: Any) -> Any:
        return called(lambda *y: (value(*y),), [out], *x)[0]

    @function.defjvp
    def _(x: Any, dx: Any) -> Any:
        sizes = [model.nv, *(y.shape[-1] for y in x[1:])]
        shapes = [out, *((*out, size) for size in sizes)]
        found = called(lambda *y: (value(*y), *slopes(*y)), shapes, *x)
        changes = increment(model, x[0], dx[0]), *dx[1:]
        return found[0], sum(jnp.einsum("...ij,...j->...i", s, change) for s, change in zip(found[1:], changes))

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
    method: str | Scheme = "sdirk",
    every: int = 1,
    tolerance: float = 1e-11,
    controller: TracedFunction | None = None,
    design: Mapping[str, Any] | None = None,
) -> tuple[Any, Any, Any]:
    """rollout as a JAX function, with forward and backward derivatives with respect to q0, v0, u and design values.

    Args:
        q0: start, shape (..., nq) [rad, m, or strain units]; None is `start_configuration`. Quaternions are
            normalised.
        v0: start velocity, shape (..., nv) [unit of q per s]; None is rest.
        u: inputs of each step, shape (..., steps, nu), or constant, (nu,) [N, m, Pa or N·m, by actuator]; None is zero.
        dt: step size [s], a Python number.
        steps, method, every, tolerance, controller: as in rollout; Python values. Numbers that a controller reads
            besides its arguments are those of this call.
        design: values by path, numbers or arrays of numbers, (..., *shape of the value).
    Returns:
        (q, v, a) at the times of the rollout, shapes (..., n, nq), (..., n, nv) and (..., n, nv).
    Raises:
        ModelError, ShapeError: as in inverse_dynamics, or a path leads to no number.
    Accuracy: as Rollout.backward and Rollout.forward. Second derivatives are differences (2) of these, 1e-6 of their
    largest terms. Cost: as rollout and these. Only the last motion is cached for its derivatives; other motions are
    computed again. A batch of different designs is computed one after the other.
    """
    require_jax(model)
    import jax

    q0 = unit(model, rows("q0", default_start(model) if q0 is None else q0, model.nq))
    v0 = rows("v0", np.zeros(model.nv) if v0 is None else v0, model.nv)
    u = _inputs(model, u, steps)
    known, x = _designs(model, design)
    lead, given = broadcast((q0, 1), (v0, 1), (u, 2), (x, 1))
    checks.integer(every, "every", least=1)
    times = u.shape[-2] // every + 1
    stepping = rollouts.fixed_steps(model, dt, method, tolerance, controller)
    moved = _keeping_last(lambda own, *y: rollouts.rolled(own, *y, stepping=stepping, every=every))

    def states(own: Model, *y: np.ndarray) -> tuple[np.ndarray, ...]:
        motion = moved(own, _unit(model, y[0]), *y[1:])
        return motion.q, motion.v, motion.a

    def carried_ahead(own: Model, *y: np.ndarray) -> tuple[np.ndarray, ...]:
        return _carried_ahead(moved(own, _unit(model, y[0]), *y[1:3]), known, y[3:])

    def carried_back(own: Model, *y: np.ndarray) -> tuple[np.ndarray, ...]:
        return _carried_back(moved(own, _unit(model, y[0]), *y[1:3]), known, y[3:])

    found = _over_designs(model, known, states, 3, (1, 1, 2))
    ahead = _over_designs(model, known, carried_ahead, 3, (1, 1, 2, 1, 1, 2, 1))
    back = _over_designs(model, known, carried_back, 3, (1, 1, 2, 2, 2, 2))
    sizes = np.ones(model.nq), np.ones(model.nv), None, known.units
    second = Second(ahead, back, sizes, (1, 1, 2, 1), not quaternion_joints(model))
    shapes = [(*lead, times, size) for size in (model.nq, model.nv, model.nv)]

    @jax.custom_jvp
    def motion(*x: Any) -> Any:
        return called(found, shapes, *x)

    @motion.defjvp
    def _(x: Any, dx: Any) -> Any:
        q, v, a = motion(*x)
        change = increment(model, x[0], dx[0]), *dx[1:]
        dq, dv, da = linear(ahead, back, [(*shape[:-1], model.nv) for shape in shapes], x, change, second)
        return (q, v, a), (numbers(model, q, dq), dv, da)

    q, v, a = motion(*given)
    return q, v, a


def _inputs(model: Model, u: Any, steps: int | None) -> Any:
    """Inputs of each step, shape (..., steps, nu)."""
    import jax.numpy as jnp

    inputs = rows("u", np.zeros(model.nu) if u is None else u, model.nu)
    if inputs.ndim > 1:
        return rows("u", inputs, inputs.shape[-2] if steps is None else steps, model.nu)
    if steps is None:
        raise ModelError("steps: must be given if u is constant (got None)")
    return jnp.broadcast_to(inputs, (steps, model.nu))


def _unit(model: Model, q: np.ndarray) -> np.ndarray:
    """q (..., nq) with its quaternions normalised; the same array if it has none."""
    joints = quaternion_joints(model)
    q = q.copy() if joints else q
    for at, _, _ in joints:
        q[..., at : at + 4] /= np.linalg.norm(q[..., at : at + 4], axis=-1, keepdims=True)
    return q


def _keeping_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a cache of its last result, because gradients mostly belong to the last motion."""
    last: list[Any] = []

    def same(a: Any, b: Any) -> bool:
        return a is b or (isinstance(a, np.ndarray) and a.shape == b.shape and a.tobytes() == b.tobytes())

    def call(*x: Any) -> Any:
        if not last or not all(map(same, last[0], x)):
            last[:] = [[np.array(a) if isinstance(a, np.ndarray) else a for a in x], function(*x)]
        return last[1]

    return call


def _carried_ahead(motion: Rollout, known: Numbers, changes: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Increments of q, v and a, (..., n, nv) each, for increments of q0 and v0, (..., nv), of u, (..., steps, nu), and
    of the design values, (..., k)."""
    axes, (*ready, dx) = _mapped_first(motion, changes, (1, 1, 2, 1))
    if np.prod(motion.lead, dtype=int) == 1:
        along = known.split(dx.reshape(*dx.shape[: len(axes)], dx.shape[-1]))
        found = motion.forward(*ready, parameters=along)
        return tuple(_moved_back(x, axes) for x in (found.q, found.v, found.a))
    found = motion.forward(*ready)
    by_design = motion.forward(parameters=known.split(np.eye(dx.shape[-1]))) if known.shapes else found
    out = []
    for x, slopes in ((found.q, by_design.q), (found.v, by_design.v), (found.a, by_design.a)):
        x = x + (dx[..., None, None] * np.moveaxis(slopes, 0, -3)).sum(axis=-3) if known.shapes else x
        out.append(_moved_back(x, axes))
    return tuple(out)


def _carried_back(motion: Rollout, known: Numbers, weights: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Derivatives of functions with respect to q0, v0, u and the design values, from their derivatives with respect to
    q, v and a, (..., n, nv)."""
    axes, ready = _mapped_first(motion, weights, (2, 2, 2))
    found = motion.backward(*ready, parameters=known.paths)
    by_design = known.joined(found.parameters, "design", found.q0.shape[:-1])
    return tuple(_moved_back(x, axes) for x in (found.q0, found.v0, found.u, by_design))


def _mapped_first(
    motion: Rollout, arrays: tuple[np.ndarray, ...], own: tuple[int, ...]
) -> tuple[list[int], list[np.ndarray]]:
    """Indices of the axes that `jax.vmap` has added for directions or functions, and the arrays with these axes first.

    Along these axes the motion has size 1, the arrays do not. `own` holds the numbers of trailing axes of the arrays.
    """
    lead = motion.lead
    whole = np.broadcast_shapes(lead, *(x.shape[: x.ndim - axes] for x, axes in zip(arrays, own)))
    mapped = [k for k, (size, here) in enumerate(zip(whole, lead)) if size != here]
    front, ones = range(len(mapped)), [len(mapped) + k for k in mapped]
    ready = []
    for x, axes in zip(arrays, own):
        x = np.broadcast_to(x, (*whole, *x.shape[x.ndim - axes :]))
        ready.append(np.expand_dims(np.moveaxis(x, mapped, front), ones))
    return mapped, ready


def _moved_back(x: np.ndarray, mapped: list[int]) -> np.ndarray:
    """The result with the order of axes before `_mapped_first`."""
    out = np.squeeze(x, tuple(len(mapped) + k for k in mapped))
    return np.moveaxis(out, range(len(mapped)), mapped)
