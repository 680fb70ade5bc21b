"""Dynamics, statics and rollouts as functions of JAX, with their derivatives (extra `jax`)."""

from lissom.bridges.jax_functions import forward_dynamics, inverse_dynamics, rollout, solve_statics

__all__ = ["forward_dynamics", "inverse_dynamics", "rollout", "solve_statics"]
