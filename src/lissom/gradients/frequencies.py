"""How natural frequencies about an equilibrium answer to inputs and design values.

    dω² = xᵀ (dK − ω² dM) x − 2 xᵀ (K − ω² M) A⁺ dA x,   xᵀ M x = 1,   A⁺ = w²Aᵀ (A w²Aᵀ)⁻¹                (1)

of a frequency that no other equals. dK, dM and dA are differences of fourth order along the way of the equilibrium.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.forward_dynamics import run_forward_dynamics
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.dynamics.linearization import modes
from lissom.errors import ShapeError
from lissom.gradients.designs import CENTRAL, SHARE, Designs, Entry
from lissom.gradients.equilibria import equilibrium_derivatives
from lissom.launch.loop_buffers import chosen_rows
from lissom.model.model import Model
from lissom.robot import formatting
from lissom.statics.equilibrium import Equilibrium

_Matrices = tuple[np.ndarray, np.ndarray, np.ndarray]


@final
@formatting.in_one_line
@dataclass(frozen=True)
class ModeDerivatives:
    """Natural frequencies about an equilibrium, and their derivatives.

    Fields:
        frequencies: as of `modes`, (n,) [rad/s]. u: by the inputs, (n, nu). parameters: by design values, of the shape
        of each behind (n,).
    """

    frequencies: np.ndarray
    u: np.ndarray
    parameters: dict[str, np.ndarray]


def mode_derivatives(equilibrium: Equilibrium, *, parameters: Sequence[str] = ()) -> ModeDerivatives:
    """Derivatives of the undamped natural frequencies about an equilibrium at rest, which moves along.

    Args:
        equilibrium: of `solve_statics`, of one robot. parameters: paths of design values (`Robot.described_values`).
    Returns:
        ModeDerivatives [rad/s per unit of each]. Frequencies that are equal have derivatives together alone, of their
        sum.
    Raises:
        ShapeError: a batch of equilibria, or one in motion. ConvergenceError, ModelError: as equilibrium_derivatives.
    Accuracy: 1e-8 of the larger terms of (1), whose matrices are differenced. They are wrong where a contact begins,
        ends or slides, or a tendon goes slack, within the steps of these differences, 2e-4 of a design value.
    """
    model = equilibrium.model
    if equilibrium.q.ndim != 1 or not isinstance(model, Model):
        raise ShapeError(f"equilibrium: expected one of shape ({model.nq},), got {equilibrium.q.shape}")
    if equilibrium.v.any():
        raise ShapeError("equilibrium: expected one at rest, got one in a steady motion")
    q, u, t = equilibrium.q, equilibrium.u, equilibrium.t
    found = modes(model, q, u, v=np.zeros(model.nv), t=t)
    moves = equilibrium_derivatives(equilibrium, parameters=parameters)
    designs = Designs(model, tuple(parameters), 1)
    flat = [moves.parameters[path].reshape(model.nv, -1) for path in designs.paths]
    along = np.concatenate([np.zeros((model.nv, 0)), *flat], axis=1)
    here = _matrices(model, q, u, t)
    slopes = [_slope(_by_design(entry, q, u, t, along[:, k])) for k, entry in enumerate(designs.entries[0])]
    by_input = [_slope(_by_input(model, q, u, t, moves.u[:, k], k)) for k in range(model.nu)]
    rates = np.array([_rates(model, found.frequencies, found.shapes, here, s) for s in [*by_input, *slopes]])
    rates = rates.reshape(model.nu + designs.count, len(found.frequencies)).T
    return ModeDerivatives(found.frequencies, rates[:, : model.nu], designs.split(rates[:, model.nu :]))


def _matrices(model: Model, q: np.ndarray, u: np.ndarray, t: float) -> _Matrices:
    """K and M, symmetric, and the independent rows of loops, at rest."""
    rest = np.zeros(model.nv)
    force = run_forward_dynamics(model, q, rest, u, t).host["force"][0].copy() if model.n_rows else np.zeros(0)
    K, _, M, w = residual_derivatives(model, q, rest, rest, u, t, 1.0, force)
    A = row_results(model, w, "A")[chosen_rows(w)]
    A[:, model.prescribed.dof] = 0.0
    return 0.5 * (K + K.T), M, A


def _by_design(entry: Entry, q: np.ndarray, u: np.ndarray, t: float, move: np.ndarray) -> Iterator[tuple[float, Any]]:
    """Matrices at places beside a design value, with their weights."""
    for one, weight, step in zip(entry.models, entry.weights, entry.steps):
        with one.temporary_buffers():
            yield weight, _matrices(one, integrate(one, q, step * move), u, t)


def _by_input(
    model: Model, q: np.ndarray, u: np.ndarray, t: float, move: np.ndarray, k: int
) -> Iterator[tuple[float, Any]]:
    """Matrices beside an input, with their weights."""
    h = 10.0 * SHARE * (abs(u[k]) or float(np.abs(u).max(initial=0.0)) or 1.0)
    for place, weight in zip(*CENTRAL):
        there = u.copy()
        there[k] += place * h
        yield weight / h, _matrices(model, integrate(model, q, place * h * move), there, t)


def _slope(parts: Iterator[tuple[float, Any]]) -> _Matrices:
    """The weighted sums of matrices."""
    sums: list[Any] = [0.0, 0.0, 0.0]
    for weight, found in parts:
        sums = [x + weight * y for x, y in zip(sums, found)]
    return sums[0], sums[1], sums[2]


def _rates(model: Model, frequencies: np.ndarray, shapes: np.ndarray, here: _Matrices, slope: _Matrices) -> np.ndarray:
    """dω of all frequencies by (1)."""
    K, M, A = here
    squares = np.sign(frequencies) * frequencies**2
    rate = np.einsum("ik,ij,jk->k", shapes, slope[0], shapes)
    rate -= squares * np.einsum("ik,ij,jk->k", shapes, slope[1], shapes)
    if len(A):
        weights = model.dofs.scale**2
        weights = np.where(np.isin(np.arange(model.nv), model.prescribed.dof), 0.0, weights)
        back = (weights[:, None] * A.T) @ np.linalg.solve((A * weights) @ A.T, slope[2] @ shapes)
        rate -= 2.0 * np.einsum("ik,ik->k", K @ shapes - (M @ shapes) * squares, back)
    size = np.abs(frequencies)
    return rate / np.where(size > 0.0, 2.0 * size, np.inf)
