"""Motions that loops and prescribed motions allow, and accelerations on them, as arrays.

Which rows of loops are independent kernels choose (`bordered`).
"""

from __future__ import annotations

import numpy as np
import scipy  # whose parts are imported when they are first asked: many starts need none

from lissom.model.model import Model


def allowed_motions(model: Model, A: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Columns (nv, n) that span the motions which loops and prescribed motions allow. Soft coordinates follow the
    others, so that no stiff one is spread over several columns."""
    S = model.dofs.scale
    free = np.setdiff1d(np.arange(model.nv), model.prescribed.dof)
    N = np.diag(S)[:, free]
    if not len(kept):
        return N
    rows = (A[kept] * S)[:, free]
    own = model.elasticity.stiffness_diagonal[free] * S[free] ** 2
    soft = own[own > 0.0].min(initial=np.inf)
    order: np.ndarray = scipy.linalg.qr(rows / np.sqrt(1.0 + own / soft), mode="r", pivoting=True)[-1]  # pyright: ignore
    led, lead = order[: len(kept)], np.sort(order[len(kept) :])
    return N[:, lead] - N[:, led] @ np.linalg.solve(rows[:, led], rows[:, lead])


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
