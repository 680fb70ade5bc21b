"""Independent rows of constraints, and systems bordered by them, as arrays.

The same as `bordered` does inside kernels, equation (1) there, for what needs Python between two steps.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from lissom.model.model import Model

_DEPENDENT = 1e-8  # what is left of a row without the others, over the longest row


def independent_rows(model: Model, A: np.ndarray) -> np.ndarray:
    """Indices of independent rows of A (n_rows, nv) by pivoted QR, prescribed coordinates standing still; rising."""
    if not len(A):
        return np.zeros(0, dtype=int)
    scaled = A * model.dofs.scale
    scaled[:, model.prescribed.dof] = 0.0
    _, R, order = qr(scaled.T, mode="economic", pivoting=True)  # pyright: ignore[reportAssignmentType]
    size = np.abs(np.diag(R))
    return np.sort(order[: int((size > _DEPENDENT * size[0]).sum())])


def bordered_matrix(
    model: Model, K: np.ndarray, A: np.ndarray, A_q: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, float]:
    """[K, −σ Aᵀ; σ A_q, 0] with the kept rows, prescribed coordinates held, and its σ."""
    held, nv, n = model.prescribed.dof, model.nv, model.nv + len(kept)
    own = np.delete(np.abs(np.diag(K)) * model.dofs.scale**2, held)
    own = own[own > 0.0]
    sigma = float(np.exp(np.log(own).mean())) if len(own) else 1.0
    matrix = np.zeros((n, n))
    matrix[:nv, :nv] = K
    matrix[:nv, nv:], matrix[nv:, :nv] = -sigma * A[kept].T, sigma * A_q[kept]
    matrix[held], matrix[:, held] = 0.0, 0.0
    matrix[held, held] = 1.0
    return matrix, sigma


def solve_with_mass(model: Model, M: np.ndarray, rows: np.ndarray, top: np.ndarray, low: np.ndarray) -> np.ndarray:
    """x of [M, −rowsᵀ; rows, 0] (x; λ) = (top; low) for independent rows, prescribed coordinates being held by the
    caller; M itself may be singular, where a link without mass is held by its loop.

    Raises:
        LinAlgError: a coordinate moves no mass, and no row says how it moves.
    """
    own = np.diag(M)
    units = np.where(own > 0.0, 1.0 / np.sqrt(np.where(own > 0.0, own, 1.0)), 1.0)  # as in bordered (2)
    scaled = rows * units
    sizes = np.linalg.norm(scaled, axis=1)
    scaled /= sizes[:, None]
    matrix = np.block([[M * units * units[:, None], -scaled.T], [scaled, np.zeros((len(rows), len(rows)))]])
    right = np.vstack([top * units[:, None], low / sizes[:, None]])
    found = units[:, None] * np.linalg.solve(matrix, right)[: model.nv]
    if not np.isfinite(found).all():
        raise np.linalg.LinAlgError("the mass matrix is singular on the motions that the loops allow")
    return found


def allowed_motions(model: Model, A: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Columns (nv, n) that span the motions which loops and prescribed motions allow. Soft coordinates follow the
    others, so that no stiff one is spread over several columns."""
    S = model.dofs.scale
    free = np.setdiff1d(np.arange(model.nv), model.prescribed.dof)
    N = np.diag(S)[:, free]
    if not len(kept):
        return N
    rows = (A[kept] * S)[:, free]
    own = np.diag(model.elasticity.stiffness)[free] * S[free] ** 2
    soft = own[own > 0.0].min(initial=np.inf)
    order: np.ndarray = qr(rows / np.sqrt(1.0 + own / soft), mode="r", pivoting=True)[-1]  # pyright: ignore
    led, lead = order[: len(kept)], np.sort(order[len(kept) :])
    return N[:, lead] - N[:, led] @ np.linalg.solve(rows[:, led], rows[:, lead])
