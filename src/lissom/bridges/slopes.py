"""Dynamics with their derivatives, as functions of three arrays, for the functions of JAX and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.dynamics.forward_dynamics import forward_dynamics
from lissom.dynamics.forward_dynamics_derivatives import forward_dynamics_derivatives
from lissom.dynamics.inverse_dynamics import inverse_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import inverse_dynamics_derivatives
from lissom.model.model import Model


@final
@dataclass(frozen=True)
class Sloped:
    """A function of (q, v, w) with values (..., nv), and its derivatives by each argument, by q along increments."""

    value: Callable[..., np.ndarray]
    slopes: Callable[..., tuple[np.ndarray, ...]]


def sloped_inverse_dynamics(model: Model, **options: Any) -> Sloped:
    """inverse_dynamics of (q, v, a)."""
    return Sloped(
        lambda *x: inverse_dynamics(model, *x, **options),
        lambda *x: inverse_dynamics_derivatives(model, *x, **options),
    )


def sloped_forward_dynamics(model: Model, t: float) -> Sloped:
    """forward_dynamics of (q, v, u)."""
    return Sloped(
        lambda *x: forward_dynamics(model, *x, t=t),
        lambda *x: forward_dynamics_derivatives(model, *x, t=t),
    )
