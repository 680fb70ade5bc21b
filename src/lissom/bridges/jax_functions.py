"""Dynamics and statics as functions of JAX, which differentiates, maps and compiles what they are part of.

JAX is told their derivatives forwards, as matrices times directions, and turns these round itself for gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.bridges.jax_calls import asked, increment, numbers, require_jax, rows, together, unit
from lissom.bridges.slopes import Sloped, sloped_forward_dynamics, sloped_inverse_dynamics
from lissom.gradients.equilibria import equilibrium_derivatives
from lissom.model.model import Model
from lissom.statics.equilibrium import solve_statics


def jax_inverse_dynamics(
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


def jax_forward_dynamics(model: Model, q: Any, v: Any, u: Any = None, t: float = 0.0) -> Any:
    """forward_dynamics as a function of JAX, with derivatives by q, v and u.

    Args:
        q: configuration, shape (..., nq); quaternions act by their direction. v: velocity, shape (..., nv).
        u: inputs, shape (..., nu); None is zero. t: as forward_dynamics, a number of Python [s].
    Returns:
        a, shape (..., nv) [per second squared].
    Raises:
        ModelError, ShapeError: as jax_inverse_dynamics.
    Accuracy: as forward_dynamics and forward_dynamics_derivatives. There are no second derivatives.
    """
    require_jax(model)
    u = np.zeros(model.nu) if u is None else u
    given = rows("q", q, model.nq), rows("v", v, model.nv), rows("u", u, model.nu)
    return _smooth(model, sloped_forward_dynamics(model, t), given)


def jax_solve_statics(
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
        ModelError, ShapeError: as jax_inverse_dynamics.
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
    lead, (u, q0) = together((u, 1), (q0, 1))

    def both(u: np.ndarray, q0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = solve_statics(model, u, q0, **options)
        return found.q, equilibrium_derivatives(found).u

    @jax.custom_jvp
    def rest(u: Any, q0: Any) -> Any:
        return asked(lambda *x: (solve_statics(model, *x, **options).q,), [(*lead, model.nq)], u, q0)[0]

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
    lead, given = together((unit(model, q), 1), *((x, 1) for x in others))
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
