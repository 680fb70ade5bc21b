"""Dynamics, statics and rollouts as PyTorch functions with gradients.

PyTorch differentiates with respect to the stored entries of q, the library along increments δ of `integrate`. With δ =
E dq and dq = G δ at a configuration (`configuration_rate_derivatives`), gradients of arguments are dL/dq = Eᵀ dL/dδ,
and gradients of results are converted by dL/dδ = Gᵀ dL/dq.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, final

import numpy as np

from lissom.dynamics.configuration import configuration_rate_derivatives, quaternion_joints, unit_quaternions
from lissom.dynamics.forward_dynamics import forward_dynamics as accelerations
from lissom.dynamics.forward_dynamics_derivatives import forward_dynamics_derivatives
from lissom.dynamics.inverse_dynamics import inverse_dynamics as forces
from lissom.dynamics.inverse_dynamics_derivatives import inverse_dynamics_derivatives
from lissom.dynamics.start import default_start
from lissom.errors import ModelError, ShapeError, renamed
from lissom.gradients import rollout as rollouts
from lissom.gradients.equilibria import equilibrium_derivatives
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot.traced_functions import TracedFunction
from lissom.statics import equilibrium
from lissom.stepping.schemes import Scheme

Arrays = tuple[np.ndarray, ...]


def inverse_dynamics(
    model: Model, q: Any, v: Any, a: Any, *, gravity: bool = True, elastic: bool = True, loads: bool = True,
    t: float = 0.0,
) -> Any:  # fmt: skip
    """inverse_dynamics as a PyTorch function, with gradients with respect to q, v and a.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]. Quaternions are normalised.
        v, a: velocity and acceleration, shape (..., nv) [unit of q per s, per s²].
        gravity, elastic, loads, t: as in inverse_dynamics; Python values [-, s].
    Returns:
        tau, a tensor (..., nv) [N·m, N, or N·m² and N·m for strain coordinates].
    Raises:
        ModelError: PyTorch is not installed, or the model is a batch of models.
        ShapeError: an argument has a wrong shape.
    Accuracy: as inverse_dynamics and inverse_dynamics_derivatives. There are no second derivatives.
    """
    options: dict[str, Any] = {"gravity": gravity, "elastic": elastic, "loads": loads, "t": t}
    value, slopes = partial(forces, model, **options), partial(inverse_dynamics_derivatives, model, **options)
    return _smooth(model, value, slopes, (("q", q, model.nq), ("v", v, model.nv), ("a", a, model.nv)))


def forward_dynamics(model: Model, q: Any, v: Any, u: Any = None, t: float = 0.0) -> Any:
    """forward_dynamics as a PyTorch function, with gradients with respect to q, v and u.

    Args:
        q: configuration, shape (..., nq) [rad, m, or strain units]. Quaternions are normalised.
        v: velocity, shape (..., nv) [unit of q per s].
        u: inputs, shape (..., nu) [N, m, Pa or N·m, by actuator]; None is zero.
        t: as in forward_dynamics; a Python number [s].
    Returns:
        a, a tensor (..., nv) [per second squared].
    Raises:
        ModelError, ShapeError: as in inverse_dynamics.
    Accuracy: as forward_dynamics and forward_dynamics_derivatives. There are no second derivatives.
    """
    u = np.zeros(model.nu) if u is None else u
    given = ("q", q, model.nq), ("v", v, model.nv), ("u", u, model.nu)
    value, slopes = partial(accelerations, model, t=t), partial(forward_dynamics_derivatives, model, t=t)
    return _smooth(model, value, slopes, given)


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
    """The equilibrium configuration of solve_statics as a PyTorch function, with gradients with respect to u.

    Args:
        u: inputs, shape (..., nu) [N, m, Pa or N·m, by actuator]; None is zero.
        q0: start, an array (..., nq) [rad, m, or strain units] without gradient; None is `start_configuration`.
        v, stable, t, tolerance, max_iterations: as in solve_statics.
    Returns:
        q, a tensor (..., nq) [rad, m, or strain units].
    Raises:
        ModelError, ShapeError: as in inverse_dynamics.
    Accuracy: as solve_statics and equilibrium_derivatives. There are no second derivatives.
    """
    options: dict[str, Any] = {
        "v": v,
        "stable": stable,
        "t": t,
        "tolerance": tolerance,
        "max_iterations": max_iterations,
    }

    def value(u: np.ndarray) -> tuple[Arrays, Any]:
        found = equilibrium.solve_statics(model, u, q0, **options)
        return (found.q,), found

    def back(found: Any, x: Arrays, by: Arrays) -> Arrays:
        slopes = equilibrium_derivatives(found).u
        return (np.einsum("...j,...ju->...u", _by_increment(model, found.q, by[0]), slopes),)

    given = np.zeros(model.nu) if u is None else u
    return _called(model, value, back, (("u", given, (model.nu,)),))[0]


@renamed(scheme="method")
def rollout(
    model: Model, q0: Any = None, v0: Any = None, u: Any = None, *, dt: float, steps: int | None = None,
    method: str | Scheme = "sdirk", every: int = 1, tolerance: float = 1e-11,
    controller: TracedFunction | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """rollout as a PyTorch function, with gradients with respect to q0, v0 and u.

    Args:
        q0: start, shape (..., nq) [rad, m, or strain units]; None is `start_configuration`. Quaternions are
            normalised.
        v0: start velocity, shape (..., nv) [unit of q per s]; None is rest.
        u: inputs of each step, shape (..., steps, nu), or constant, (nu,) [N, m, Pa or N·m, by actuator]; None is zero.
        dt: step size [s].
        steps, method, every, tolerance, controller: as in rollout.
    Returns:
        (q, v, a) at the times of the rollout, tensors (..., n, nq), (..., n, nv) and (..., n, nv).
    Raises:
        ModelError, ShapeError: as in inverse_dynamics.
    Accuracy: as Rollout.backward. There are no second derivatives. Cost: as rollout and its backward.
    """
    nu, torch = model.nu, _torch(model)
    inputs = _tensor(torch, "u", np.zeros(nu) if u is None else u)
    if inputs.ndim == 1:
        if steps is None:
            raise ModelError("steps: must be given if u is constant (got None)")
        inputs = inputs.expand(steps, -1)

    stepping = rollouts.fixed_steps(model, dt, method, tolerance, controller)

    def value(*x: np.ndarray) -> tuple[Arrays, Any]:
        motion = rollouts.rolled(model, unit_quaternions(model, x[0]), *x[1:], stepping=stepping, every=every)
        return (motion.q, motion.v, motion.a), motion

    def back(motion: Any, x: Arrays, by: Arrays) -> Arrays:
        found = motion.backward(_by_increment(model, motion.q, by[0]), by[1], by[2])
        return _by_numbers(model, x[0], found.q0), found.v0, found.u

    start, rest = default_start(model) if q0 is None else q0, np.zeros(model.nv) if v0 is None else v0
    rows = ("q0", start, (model.nq,)), ("v0", rest, (model.nv,)), ("u", inputs, (inputs.shape[-2], model.nu))
    q, v, a = _called(model, value, back, rows)
    return q, v, a


def _torch(model: Any) -> Any:
    try:
        torch = import_module("torch")
    except ImportError:
        raise ModelError("functions for PyTorch need PyTorch: pip install 'lissom[torch]'") from None
    if isinstance(model, ModelBatch):
        raise ModelError("model: must be one Model for functions of PyTorch (got a ModelBatch)")
    return torch


def _tensor(torch: Any, name: str, value: Any) -> Any:
    """A value as a tensor in double precision; it stays in the autograd graph."""
    try:
        return torch.as_tensor(value).to(torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise ShapeError(f"{name}: expected numbers, got {value!r}") from None


def _smooth(
    model: Model, value: Callable[..., Any], slopes: Callable[..., Any], given: tuple[tuple[str, Any, int], ...]
) -> Any:
    """Result (..., nv) of a function of q and two more arrays, as a tensor with gradients.

    Args:
        value: the function.
        slopes: its derivatives with respect to each argument; for q along increments.
        given: name, value and size of each argument.
    """

    def results(*x: np.ndarray) -> tuple[Arrays, Any]:
        return (value(unit_quaternions(model, x[0]), *x[1:]),), None

    def back(_: Any, x: Arrays, by: Arrays) -> Arrays:
        found = slopes(unit_quaternions(model, x[0]), *x[1:])
        each = [np.einsum("...i,...ij->...j", by[0], s) for s in found]
        return _by_numbers(model, x[0], each[0]), *each[1:]

    return _called(model, results, back, tuple((name, x, (size,)) for name, x, size in given))[0]


def _called(
    model: Model,
    value: Callable[..., tuple[Arrays, Any]],
    back: Callable[[Any, Arrays, Arrays], Arrays],
    given: tuple[tuple[str, Any, tuple[int, ...]], ...],
) -> tuple[Any, ...]:
    """Results of a function of NumPy arrays with common leading axes, as tensors with gradients.

    Args:
        value: function that returns the results, and an object for `back`.
        back: function of this object, the arguments and the gradients of the results; it returns the gradients of the
            arguments.
        given: name, value and trailing axes of each argument.
    """
    torch = _torch(model)
    tensors = []
    for name, x, core in given:
        x = _tensor(torch, name, x)
        if x.ndim < len(core) or tuple(x.shape[x.ndim - len(core) :]) != core:
            raise ShapeError(f"{name}: expected shape (..., {', '.join(map(str, core))}), got {tuple(x.shape)}")
        tensors.append((x, core))
    try:
        lead = torch.broadcast_shapes(*(x.shape[: x.ndim - len(core)] for x, core in tensors))
    except RuntimeError:
        shapes = ", ".join(str(tuple(x.shape)) for x, _ in tensors)
        raise ShapeError(f"leading axes do not broadcast: {shapes}") from None

    @final
    class Call(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *x: Any) -> Any:
            ctx.arrays = tuple(np.array(y.detach().cpu().numpy()) for y in x)
            found, ctx.kept = value(*ctx.arrays)
            return tuple(torch.from_numpy(np.array(y)).to(x[0].device) for y in found)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *by: Any) -> Any:
            found = back(ctx.kept, ctx.arrays, tuple(y.detach().cpu().numpy() for y in by))
            return tuple(torch.from_numpy(np.array(y)).to(by[0].device) for y in found)

    return Call.apply(*(x.expand(*lead, *core) for x, core in tensors))


def _by_numbers(model: Model, q: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Derivatives with respect to the stored entries of q (..., nq), from derivatives with respect to an increment
    (..., nv)."""
    return _mapped(model, q, by, lambda x: configuration_rate_derivatives(model, x, np.zeros(model.nv))[2], model.nq)


def _by_increment(model: Model, q: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Derivatives with respect to an increment (..., nv), from derivatives with respect to the stored entries (...,
    nq)."""
    return _mapped(model, q, by, lambda x: configuration_rate_derivatives(model, x, np.zeros(model.nv))[1], model.nv)


def _mapped(
    model: Model, q: np.ndarray, by: np.ndarray, matrix: Callable[[np.ndarray], np.ndarray], size: int
) -> np.ndarray:
    """by @ matrix(q) at each state."""
    if not quaternion_joints(model):
        return by[..., model.dofs.q] if size == model.nv else by[..., np.argsort(model.dofs.q)]
    rows, slopes = q.reshape(-1, q.shape[-1]), by.reshape(-1, by.shape[-1])
    return np.array([slope @ matrix(x) for x, slope in zip(rows, slopes)]).reshape(*by.shape[:-1], size)
