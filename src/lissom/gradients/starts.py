"""The state that steps begin with: anchors and accelerations there, and derivatives by q0, v0, inputs and designs.

    [M, −Aᵀ; A, 0] (δa; δλ) = f − (∂r/∂q; ∂(A a + Ȧ v)/∂q) δq − (∂r/∂v; ∂(A a + Ȧ v)/∂v) δv              (1)

Where contacts stick, the anchors z that the start gives change by δz = C (δq, δv) + Z δp, and F δz joins f, with C and
F of anchors. With loops q0 is closed and v0 put onto them, as `simulate` does; with the weights w of `assemble` and
A⁺ = M⁻¹Aᵀ(A M⁻¹Aᵀ)⁻¹, at a v0 that loops allow,

    δq = δq0 − w²Aᵀ (A w²Aᵀ)⁻¹ (A_q δq0 + e_p δp),   δv = δv0 − A⁺ (A δv0 + ∂(A v)/∂q δq + (A v)_p δp)         (2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from lissom.dynamics.actuation import input_response
from lissom.dynamics.assembly import closing_weights
from lissom.dynamics.contacts import anchors_after
from lissom.dynamics.inverse_dynamics_derivatives import residual_derivatives, row_results
from lissom.errors import ModelError
from lissom.gradients.anchors import anchor_moves, anchor_pulls, anchor_rows
from lissom.model.model import Model
from lissom.stepping.driver import accelerations


def forbid_anchors(model: Model) -> None:
    """Raise ModelError where contacts stick."""
    world = model.of_row(0, 1).contacts
    if world.sticks:
        rule = "stick_stiffness must be 0 for steps from (q, v) alone"
        raise ModelError(f"contact {world.sticking[0]!r}: {rule}, since anchors remember")


def own_anchors(model: Model, count: int) -> np.ndarray:
    """Anchors that the models of so many motions came with, (count, n_pairs, 6); of no pair where nothing sticks."""
    if not model.of_row(0, 1).contacts.sticks:
        return np.zeros((count, 0, 6))
    return np.array([one.contacts.anchors for one in model.of_rows(count)])


def held_starts(model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Anchors of motions that begin at states (n, ...), as of own_anchors, accelerations, and forces of loops."""
    own = own_anchors(model, len(q))
    if not own.size:
        return own, *accelerations(model, 0.0, q, v, u)
    first, found = anchors_after(model, own, q, v), []
    for i, one in enumerate(model.of_rows(len(q))):
        copy = one.anchored(first[i])
        found.append(accelerations(copy, 0.0, q[i : i + 1], v[i : i + 1], u[i : i + 1]))
    a, force = zip(*found)
    return first, np.concatenate(a), np.concatenate(force)


@final
@dataclass(frozen=True)
class Starts:
    """(1) and (2) at the starts of n motions, loops behind coordinates.

    Fields:
        solve: the inverse in (1), (n, unknowns, unknowns). by_q, by_v: the matrices on its right, less F C. B: of the
        inputs. pull, moved: F, (n, nv, 6 n_pairs), and C, (n, 6 n_pairs, 2 nv).
        onto_q, onto_v: by q0 and v0 in (2), (n, nv, nv). carried: δv by δq there. gap, rate: δq by e_p, and δv by
        (A v)_p.
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


def starts(
    model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, u: np.ndarray, force: np.ndarray, anchors: np.ndarray,
    t: float,
) -> Starts:  # fmt: skip
    """Of states (n, ...) with their accelerations, forces of loops and anchors (n, n_pairs, 6)."""
    n, nv, m, held = len(q), model.nv, model.n_rows, model.prescribed.dof
    K, D, M, w = residual_derivatives(model, q, v, a, u, np.full(n, t), 1.0, force, anchors=anchors)
    B = np.zeros((n, nv + m, model.nu))
    if model.nu:
        B[:, :nv] = input_response(model, q, u)
    B[:, held] = 0.0
    K[:, held, held] = 0.0
    by_q, by_v, matrix = np.zeros((n, nv + m, nv)), np.zeros((n, nv + m, nv)), np.zeros((n, nv + m, nv + m))
    by_q[:, :nv], by_v[:, :nv], matrix[:, :nv, :nv] = K, D, M
    free = np.eye(nv)
    free[held] = 0.0
    onto_q, onto_v = (np.repeat(free[None], n, axis=0) for _ in range(2))
    carried, gap, rate = np.zeros((n, nv, nv)), np.zeros((n, nv, m)), np.zeros((n, nv, m))
    if m:
        A, A_q, rate_q, acceleration_q, acceleration_v = (
            row_results(model, w, name, (n,)) for name in ("A", "A_q", "rate_q", "acceleration_q", "acceleration_v")
        )
        kept = w.host["slot"] >= 0
        for X in (A, A_q, rate_q, acceleration_q, acceleration_v):
            X[~kept] = 0.0
            X[..., held] = 0.0
        by_q[:, nv:], by_v[:, nv:] = acceleration_q, acceleration_v
        matrix[:, nv:, :nv], matrix[:, :nv, nv:] = A, -np.swapaxes(A, -1, -2)
        at, row = np.nonzero(~kept)
        matrix[at, nv + row, nv + row] = 1.0
        weights = model.by_row(lambda one: closing_weights(one, np.ones(nv, dtype=bool)), n)
        across = np.swapaxes(A, -1, -2)
        lost = np.zeros((n, m, m))
        lost[at, row, row] = 1.0
        light = np.linalg.solve(M, across)
        gap = -(weights**2)[..., :, None] * across @ np.linalg.inv(A * (weights**2)[..., None, :] @ across + lost)
        rate = -light @ np.linalg.inv(A @ light + lost)
        onto_q, onto_v, carried = onto_q + gap @ A_q, onto_v + rate @ A, rate @ rate_q
    pull, moved = _held(model, q, v, anchors)
    by_q[:, :nv] -= pull @ moved[..., :nv]
    by_v[:, :nv] -= pull @ moved[..., nv:]
    return Starts(np.linalg.inv(matrix), by_q, by_v, B, onto_q, onto_v, carried, gap, rate, pull, moved)


def _held(model: Model, q: np.ndarray, v: np.ndarray, anchors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """F and C."""
    n, nv, every = len(q), model.nv, np.arange(len(q))
    if not anchors.size:
        return np.zeros((n, nv, 0)), np.zeros((n, 0, 2 * nv))
    own = anchor_rows(model, own_anchors(model, n), q, v)
    return anchor_pulls(anchor_rows(model, anchors, q, v), nv, every), anchor_moves(own, nv, every)
