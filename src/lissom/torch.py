"""Dynamics, statics and rollouts as functions of PyTorch, with their gradients (extra `torch`)."""

from lissom.bridges.torch_functions import forward_dynamics, inverse_dynamics, rollout, solve_statics

__all__ = ["forward_dynamics", "inverse_dynamics", "rollout", "solve_statics"]
