"""A robot whose force, spring and current are functions of jax.numpy."""

import jax.numpy as jnp
from jax.scipy.special import erf, erfc
from touching_robots import hybrid

import lissom as ls


def traced_pull(t, g, eta):
    """A user's force of jax.numpy, of each function that has code of its own for a GPU."""
    x, turn = eta[3], g[0, 0]
    smooth = (jnp.tan, jnp.arctan, jnp.sinh, jnp.cosh, jnp.tanh, jnp.exp, jnp.exp2, jnp.expm1, jnp.arcsinh)
    rough = (jnp.floor, jnp.ceil, jnp.trunc, jnp.round, jnp.sign, jnp.abs, jnp.cbrt)
    within = (jnp.arcsin, jnp.arccos, jnp.arctanh, erf, erfc)
    total = sum(f(x) for f in smooth + rough) + sum(f(0.5 * turn) for f in within)
    square = x * x
    total += jnp.sqrt(1 + square) + jnp.log1p(square) + jnp.log(2 + square) + jnp.arccosh(2 + square)
    total += jnp.arctan2(x, turn) + square**1.25
    total += jnp.where((x > 0) & jnp.isfinite(x) & ~(turn > 1), jnp.maximum(x, turn), jnp.minimum(x, turn))
    return jnp.stack([total, jnp.sin(x + t), jnp.cos(x + t), jnp.fmod(x, 0.3), t, g[2, 3]])


def hybrid_of_traced_functions():
    """A free robot of rods and rigid bodies in a current, with a force on a rod and a spring."""
    robot = hybrid("free")
    robot.add_force("pull", "a", ls.TracedFunction(traced_pull))
    robot.add_spring("muscle", "a", "ball", law=ls.TracedFunction(lambda x, rate: 20.0 * jnp.tanh(x) + rate))
    robot.set_fluid(
        density=1000.0, current=ls.TracedFunction(lambda x, t: jnp.stack([jnp.sin(x[1] + t), x[2], 0.3 + t]))
    )
    return robot
