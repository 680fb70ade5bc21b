"""The rows of the equation of motion that inputs act on: M_a a + h_a = B_a(q) u."""

from __future__ import annotations

import numpy as np

from lissom.dynamics.actuation import actuation_matrix
from lissom.dynamics.configuration import integrate
from lissom.errors import ModelError
from lissom.model.model import Model

_ROUNDING = 1e-9  # of the largest entry of a column, in units of the coordinates' natural sizes
_LEAST = 1e-10  # singular value of B_a, scaled to columns of length one


def actuated_rows(model: Model) -> np.ndarray:
    """The coordinates that some input acts on, in the neutral configuration or in one of three near it.

    Raises:
        ModelError: they are not as many as the inputs.
    """
    near = np.random.default_rng(0).uniform(-0.3, 0.3, (4, model.nv)) * model.dofs.scale
    near[0] = 0.0
    B = np.abs(actuation_matrix(model, integrate(model, model.neutral(), near))) * model.dofs.scale[:, None]
    rows = np.flatnonzero((_ROUNDING * B.max(axis=1, keepdims=True) < B).any(axis=(0, 2)))
    if len(rows) != model.nu:
        raise ModelError(f"inputs: must be as many as the coordinates they act on, {len(rows)} (got {model.nu})")
    return rows


def solve_rows(model: Model, B_a: np.ndarray, force: np.ndarray, t: float) -> np.ndarray:
    """B_a⁻¹ force.

    Raises:
        ModelError: B_a is singular, with its least singular value.
    """
    size = np.linalg.norm(B_a, axis=0)
    least = float(np.linalg.svd(B_a / np.where(size > 0.0, size, 1.0), compute_uv=False)[-1])
    if least < _LEAST:
        where = f"actuation matrix of {model.name!r} at t={t:g} s"
        got = f"got the least singular value {least:.3g}, scaled, for at least {_LEAST:g}"
        raise ModelError(f"{where}: must not be singular in the coordinates that inputs act on ({got})")
    return np.linalg.solve(B_a, force)
