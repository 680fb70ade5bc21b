"""Singular and nearly singular linear systems, with balanced rows and columns.

A rod is stiffer against stretching than against bending by the square of its slenderness, and the rows of loops have
other units. Therefore rows and columns are first multiplied by given units. Then they are divided by the square roots
of their largest entries until these are near 1. Entries that are rounding errors of the largest entry are not enlarged:

    B = R A C,   B y = R b,   x = C y                                                                     (1)

A symmetry gives a motion n without stiffness. Near an equilibrium A n is not 0 but as large as the residual b. A direct
solution would divide the rounding error of b along n by it, and Newton's method would drift along n. Such singular
values are omitted if the equations are solved without them. Of all solutions x the shortest is returned. Its length
includes the coordinates (the first entries) and the load (the last entry).

Source: D. Ruiz, A scaling algorithm to equilibrate both rows and columns norms in matrices, RAL 2001.
"""

from __future__ import annotations

import numpy as np
import scipy

_ROUNDS = 5
_LEAST = 1e-13  # entries below this fraction of the largest may be rounding errors
_REGULAR = 1e-8  # no singular value is omitted if the reciprocal condition number is at least this
_ROUNDING = 1e-14
_CONSISTENT = 1e-6
_NOTHING = 1e-12  # rounding error of the residual of equations of size 1


def balance(A: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The diagonals R (..., m) and C (..., n) of (1) for matrices A (..., m, n). `units` are the units of the first
    rows and columns."""
    rows, columns, sizes = np.ones(A.shape[:-1]), np.ones((*A.shape[:-2], A.shape[-1])), np.abs(A)
    rows[..., : len(units)], columns[..., : len(units)] = units, units
    for _ in range(_ROUNDS):
        size = sizes * rows[..., None] * columns[..., None, :]
        by_row, by_column = (size.max(axis=axis, initial=0.0) for axis in (-1, -2))
        floor = _LEAST * by_row.max(axis=-1, initial=0.0, keepdims=True)
        rows /= np.sqrt(np.where(by_row > floor, by_row, 1.0))
        columns /= np.sqrt(np.where(by_column > floor, by_column, 1.0))
    return rows, columns


def solved(
    A: np.ndarray, b: np.ndarray, noise: float, units: np.ndarray, *, is_residual: bool = False
) -> np.ndarray | None:
    """x of (1) without singular values below `noise` times the largest and, if b is a residual, below the size of b.
    None if no x solves the equations."""
    return solved_each(A[None], b[None], noise, units, is_residual=is_residual)[0]


def solved_each(
    A: np.ndarray, b: np.ndarray, noise: float, units: np.ndarray, *, is_residual: bool = False
) -> list[np.ndarray | None]:
    """`solved` for each of n systems, A (n, m, k) and b (n, m)."""
    out: list[np.ndarray | None] = [None] * len(A)
    good = np.flatnonzero(np.isfinite(A).all(axis=(1, 2)) & np.isfinite(b).all(axis=1))
    rows, columns = balance(A[good], units)
    B, c = A[good] * rows[..., None] * columns[..., None, :], b[good] * rows
    for k, i in enumerate(good.tolist()):
        out[i] = _balanced_solution(B[k], c[k], columns[k], noise, len(units), is_residual)
    return out


def _balanced_solution(
    B: np.ndarray, c: np.ndarray, columns: np.ndarray, noise: float, n: int, is_residual: bool
) -> np.ndarray | None:
    """x = C y for B y = c; None if no x solves the equations."""
    if B.shape[0] == B.shape[1]:
        lapack = scipy.linalg.lapack
        lu, pivots, singular = lapack.dgetrf(B)
        if not singular and lapack.dgecon(lu, np.abs(B).sum(axis=0).max())[0] >= _REGULAR:
            return columns * lapack.dgetrs(lu, pivots, c)[0]
    size = float(np.abs(c).max(initial=0.0))
    U, values, V = np.linalg.svd(B, full_matrices=False)
    for least in (max(noise, min(size, _REGULAR)) if is_residual else noise, _ROUNDING):
        kept = values > least * values[0]
        y = V[kept].T @ ((U[:, kept].T @ c) / values[kept])
        if np.abs(B @ y - c).max() <= _CONSISTENT * size + _NOTHING:
            return _shortest(columns * y, V[~kept] * columns, n)
    return None


def _shortest(x: np.ndarray, free: np.ndarray, n: int) -> np.ndarray:
    """x plus that combination of the rows of `free` for which the first n entries and the last entry are shortest."""
    counted = np.append(np.arange(n), -1)
    return x - np.linalg.lstsq(free[:, counted].T, x[counted], rcond=None)[0] @ free if len(free) else x


def null_vectors(A: np.ndarray, count: int, units: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Null vectors of A (m, n).

    Returns:
        y (count, n): right singular vectors of B with the smallest singular values (missing values count as 0). C (n,).
        The left singular vector (m,) of the smallest singular value, in the units of A.
    """
    rows, columns = balance(A, units)
    U, _, V = np.linalg.svd(A * rows[:, None] * columns)
    return V[len(V) - count :], columns, U[:, -1] * rows


def nullity(A: np.ndarray, noise: float, units: np.ndarray) -> int:
    """Number of independent y with B y = 0: singular values below `noise` times the largest count as zero."""
    rows, columns = balance(A, units)
    values = np.linalg.svd(A * rows[:, None] * columns, compute_uv=False)
    return A.shape[1] - int((values > noise * values[0]).sum())
