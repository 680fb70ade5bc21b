"""Singular and nearly singular linear systems, in units that balance their rows and columns.

A rod is stiffer against stretching than against bending by the square of its slenderness, and rows of loops have other
units. Therefore rows and columns are first taken in given units, then divided by the roots of their largest entries
until these are near 1. Entries of the size of rounding of the largest are not enlarged:

    B = R A C,   B y = R b,   x = C y                                                                     (1)

A symmetry leaves a motion n without stiffness. Next to an equilibrium A n is not 0 but as large as the residual b. The
solution divides the rounding of b along n by it, and Newton's method would drift along n. Such singular values are left
out, if the equations are solved without them. Of all solutions x the shortest is returned; its length counts the
coordinates and the load, which are the first entries and the last.
Source: D. Ruiz, A scaling algorithm to equilibrate both rows and columns norms in matrices, RAL 2001.
"""

from __future__ import annotations

import numpy as np
import scipy

_ROUNDS = 5
_LEAST = 1e-13  # entries below this part of the largest may be rounding
_REGULAR = 1e-8  # least reciprocal condition of a system of which no singular value is left out
_ROUNDING = 1e-14
_CONSISTENT = 1e-6
_NOTHING = 1e-12  # residual by rounding of equations of size 1


def balance(A: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The diagonals R (..., m) and C (..., n) of (1) of matrices A (..., m, n). units: those of the first rows and
    columns."""
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
    """x of (1) without singular values below `noise` times the largest, and, if b is a residual, below the size of b.
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
    """x plus the combination of the rows of `free` that makes the first n entries and the last one shortest."""
    counted = np.append(np.arange(n), -1)
    return x - np.linalg.lstsq(free[:, counted].T, x[counted], rcond=None)[0] @ free if len(free) else x


def null_vectors(A: np.ndarray, count: int, units: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Null vectors of A (m, n).

    Returns:
        the right singular vectors y (count, n) of the least singular values of B, with those in excess of its rows; C
        (n,); the left singular vector (m,) of the least singular value, in the units of A.
    """
    rows, columns = balance(A, units)
    U, _, V = np.linalg.svd(A * rows[:, None] * columns)
    return V[len(V) - count :], columns, U[:, -1] * rows


def nullity(A: np.ndarray, noise: float, units: np.ndarray) -> int:
    """Number of independent y with B y = 0: those whose singular value is below `noise` times the largest."""
    rows, columns = balance(A, units)
    values = np.linalg.svd(A * rows[:, None] * columns, compute_uv=False)
    return A.shape[1] - int((values > noise * values[0]).sum())
