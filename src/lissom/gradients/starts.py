"""Initial state of a rollout: its accelerations and anchors, and its derivatives with respect to q0, v0, inputs and
design values.

    [M, −Aᵀ; A, 0] (δa; δλ) = f − (∂r/∂q; ∂(A a + Ȧ v)/∂q) δq − (∂r/∂v; ∂(A a + Ȧ v)/∂v) δv              (1)

Where contacts stick, the anchors z at the start change by δz = C (δq, δv) + Z δp, and F δz is added to f. C and F are
those of anchors. With loops, q0 is moved onto the loops, and v0 gets the change of velocity d of
`assemble_velocities`, as in `simulate`: M d = Aᵀ μ in the rows without a prescribed motion. With the weights w of
`assemble`, A⁺ = M⁻¹Aᵀ(A M⁻¹Aᵀ)⁻¹, Y = (1 − A⁺ A) M⁻¹ and z = M d − Aᵀ μ,

    δq = δq0 − w²Aᵀ (A w²Aᵀ)⁻¹ (A_q δq0 + e_p δp)     A without rows that restrict velocities only        (2)
    δv = δv0 − A⁺ (A δv0 + ∂(A v)/∂q δq + (A v)_p δp) − Y (∂z/∂q δq + z_p δp + M δd)                      (3)

δd is the change of d in prescribed coordinates: −δv0 of a drive that v0 describes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.dynamics.actuation import input_response
from lissom.dynamics.assembly import closing_weights, drives_on_loops, is_moving
from lissom.dynamics.contacts import anchors_after
from lissom.dynamics.inverse_dynamics_derivatives import (
    derivative_workspace,
    residual_derivatives,
    row_results,
    run_residual_derivatives,
    square_results,
)
from lissom.dynamics.mass_matrix import mass_matrix
from lissom.errors import ModelError
from lissom.gradients.anchors import anchor_moves, anchor_pulls, anchor_rows
from lissom.gradients.designs import Designs
from lissom.model.model import Model
from lissom.stepping.driver import accelerations
from lissom.stepping.feedback import NativeLaw

_KEPT = 1e-5  # largest impulse, relative to v, of a v0 that is kept


def forbid_anchors(model: Model) -> None:
    """Raise ModelError if contacts stick."""
    world = model.of_row(0, 1).contacts
    if world.sticks:
        rule = "stick_stiffness must be 0 for steps from (q, v) alone"
        raise ModelError(f"contact {world.sticking[0]!r}: {rule}, since anchors depend on the motion so far")


def model_anchors(model: Model, count: int) -> np.ndarray:
    """Anchors of the models of `count` motions, (count, n_pairs, 6); n_pairs is 0 if no contact sticks."""
    if not model.of_row(0, 1).contacts.sticks:
        return np.zeros((count, 0, 6))
    return np.array([one.contacts.anchors for one in model.of_rows(count)])


def initial_values(
    model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Anchors (n, n_pairs, 6), accelerations (n, nv) and constraint forces (n, n_rows) at initial states (n, ...)."""
    own = model_anchors(model, len(q))
    if not own.size:
        return own, *accelerations(model, 0.0, q, v, u)
    anchors, found = anchors_after(model, own, q, v), []
    for i, row_model in enumerate(model.of_rows(len(q))):
        anchored = row_model.anchored(anchors[i])
        found.append(accelerations(anchored, 0.0, q[i : i + 1], v[i : i + 1], u[i : i + 1]))
    a, force = zip(*found)
    return anchors, np.concatenate(a), np.concatenate(force)


@final
@dataclass(frozen=True)
class StartDerivatives:
    """Matrices of (1) and (2) at the initial states of n motions. Constraint rows follow the rows of coordinates.

    Fields:
        solve: inverse of the matrix in (1), (n, unknowns, unknowns). by_q, by_v: matrices on the right of (1), minus
        F C, (n, unknowns, nv). B: derivative with respect to the inputs, (n, unknowns, nu). pull: F, (n, nv, 6
        n_pairs). moved: C, (n, 6 n_pairs, 2 nv).
        onto_q, onto_v, carried, gap, rate: ∂q/∂q0, ∂v/∂v0, ∂v/∂q, ∂q/∂e_p and ∂v/∂(A v)_p of (2) and (3), (n, nv, nv)
        for the first three. struck: −Y, ∂v/∂z_p of (3), (n, nv, nv). impulse, push: d (n, nv) and μ (n, n_rows).
    """

    solve: np.ndarray
    by_q: np.ndarray
    by_v: np.ndarray
    B: np.ndarray
    onto_q: np.ndarray
    onto_v: np.ndarray
    carried: np.ndarray
    gap: np.ndarray
    rate: np.ndarray
    pull: np.ndarray
    moved: np.ndarray
    struck: np.ndarray
    impulse: np.ndarray
    push: np.ndarray


def start_derivatives(
    model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, force: np.ndarray, anchors: np.ndarray,
    t: float, law: NativeLaw | None = None, impulse: np.ndarray | None = None,
) -> StartDerivatives:  # fmt: skip
    """Derivatives at initial states (n, ...) with their accelerations, constraint forces, anchors (n, n_pairs, 6), and
    changes of velocity d, None for zero. u includes the inputs of a feedback law."""
    n, nv, m, prescribed = len(q), model.nv, model.n_rows, model.prescribed.dof
    K, D, M, workspace = residual_derivatives(model, q, v, a, u, np.full(n, t), 1.0, force, anchors=anchors)
    B = np.zeros((n, nv + m, model.nu))
    if model.nu:
        B[:, :nv] = input_response(model, q, v, u, t)
    B[:, prescribed] = 0.0
    if law is not None:
        by_q, by_v = law.derivatives_over(np.full(n, t), q, v)
        by_q[..., prescribed], by_v[..., prescribed] = 0.0, 0.0
        K, D = K - B[:, :nv] @ by_q, D - B[:, :nv] @ by_v
    K[:, prescribed, prescribed] = 0.0
    by_q, by_v, matrix = np.zeros((n, nv + m, nv)), np.zeros((n, nv + m, nv)), np.zeros((n, nv + m, nv + m))
    by_q[:, :nv], by_v[:, :nv], matrix[:, :nv, :nv] = K, D, M
    free = np.eye(nv)
    free[prescribed] = 0.0
    onto_q, onto_v = (np.repeat(free[None], n, axis=0) for _ in range(2))
    carried, gap, rate = np.zeros((n, nv, nv)), np.zeros((n, nv, m)), np.zeros((n, nv, m))
    impulse = np.zeros((n, nv)) if impulse is None else impulse
    struck, push = np.zeros((n, nv, nv)), np.zeros((n, m))
    if m:
        A, A_q, rate_q, acceleration_q, acceleration_v = (
            row_results(model, workspace, name, (n,))
            for name in ("A", "A_q", "rate_q", "acceleration_q", "acceleration_v")
        )
        independent = workspace.host["slot"] >= 0
        for X in (A, A_q, rate_q, acceleration_q, acceleration_v):
            X[~independent] = 0.0
            X[..., prescribed] = 0.0
        by_q[:, nv:], by_v[:, nv:] = acceleration_q, acceleration_v
        matrix[:, nv:, :nv], matrix[:, :nv, nv:] = A, -np.swapaxes(A, -1, -2)
        at, row = np.nonzero(~independent)
        matrix[at, nv + row, nv + row] = 1.0
        weights = model.by_row(lambda one: closing_weights(one, np.ones(nv, dtype=bool)), n)
        A_T = np.swapaxes(A, -1, -2)
        dependent = np.zeros((n, m, m))
        dependent[at, row, row] = 1.0
        M_A_T = np.linalg.solve(M, A_T)
        closes = np.where(model.rate_rows[:, None], 0.0, A)  # rows with an e
        others = dependent.copy()
        others[:, model.rate_rows, model.rate_rows] = 1.0
        moves = (weights**2)[..., :, None] * np.swapaxes(closes, -1, -2)
        gap = -moves @ np.linalg.inv(closes @ moves + others)
        rate = -M_A_T @ np.linalg.inv(A @ M_A_T + dependent)
        onto_q, onto_v, carried = onto_q + gap @ A_q, onto_v + rate @ A, rate @ rate_q
        if impulse.any():
            whole = mass_matrix(model, q)
            struck = -(np.linalg.inv(M) + rate @ A @ np.linalg.inv(M))
            struck[:, prescribed] = struck[..., prescribed] = 0.0
            push = -np.einsum("njr,njk,nk->nr", rate, whole, impulse)
            z_q = _momentum_by_q(model, q, impulse, push)
            carried = carried + struck @ z_q
            drives, felt = drives_on_loops(model), _depends_on_drives(model, v, impulse)
            onto_v[..., drives] -= (struck @ whole)[..., drives] * felt[:, None, None]
    pull, moved = _anchor_derivatives(model, q, v, anchors)
    by_q[:, :nv] -= pull @ moved[..., :nv]
    by_v[:, :nv] -= pull @ moved[..., nv:]
    return StartDerivatives(
        np.linalg.inv(matrix), by_q, by_v, B, onto_q, onto_v, carried, gap, rate, pull, moved, struck, impulse, push
    )


def _momentum_by_q(model: Model, q: np.ndarray, impulse: np.ndarray, push: np.ndarray) -> np.ndarray:
    """∂z/∂q of (3), (n, nv, nv), with zero columns of prescribed coordinates."""
    w, lead = derivative_workspace(model, q, np.zeros_like(impulse), impulse, np.zeros((len(q), model.nu)))
    run_residual_derivatives(model, w, 0.0, gravity=False, elastic=False, loads=False, force=push)
    by_q = square_results(model, w, lead)[0]
    by_q[..., model.prescribed.dof] = 0.0
    return by_q


def _depends_on_drives(model: Model, v: np.ndarray, impulse: np.ndarray) -> np.ndarray:
    """Whether v depends on the entries of v0 of drives on loops, (n,): v0 moves, and is not kept as it is."""
    size = np.abs(v / model.dofs.scale).max(axis=1, initial=0.0)
    is_struck = np.abs(impulse / model.dofs.scale).max(axis=1, initial=0.0) > _KEPT * size
    return np.array([found and is_moving(model, x) for found, x in zip(is_struck, v - impulse)])


def momentum_slopes(designs: Designs, q: np.ndarray, s: StartDerivatives) -> np.ndarray:
    """z_p of (3), shape (n, count, nv)."""
    n, nv = s.impulse.shape
    if not s.impulse.any():
        return np.zeros((n, designs.count, nv))
    return designs.momentum_slopes(q, s.impulse, s.push)


def _anchor_derivatives(
    model: Model, q: np.ndarray, v: np.ndarray, anchors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """F (n, nv, 6 n_pairs) and C (n, 6 n_pairs, 2 nv)."""
    n, nv, every = len(q), model.nv, np.arange(len(q))
    if not anchors.size:
        return np.zeros((n, nv, 0)), np.zeros((n, 0, 2 * nv))
    own = anchor_rows(model, model_anchors(model, n), q, v)
    return anchor_pulls(anchor_rows(model, anchors, q, v), nv, every), anchor_moves(own, nv, every)
