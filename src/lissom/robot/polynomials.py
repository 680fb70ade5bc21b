"""Functions of time that are polynomials between knots, which kernels evaluate by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lissom.robot.functions import Tabulated

if TYPE_CHECKING:
    from scipy.interpolate import PPoly


def polynomial_of(value: Any, size: int) -> PPoly | None:
    """A constant or a function of time of so many numbers as polynomials between knots, coefficients of shape (order,
    stretches, size); None where it is something else.

    They are constants, tables that are linear or cubic, SciPy's PPoly (of which CubicSpline is one) that go on beyond
    their ends, and what says itself what polynomial it is, as ls.Samples do.
    """
    from scipy.interpolate import PPoly

    if value is None:
        return constant(np.zeros(size))
    if not callable(value):
        return constant(np.reshape(np.asarray(value, dtype=np.float64), size))
    found = _table(value) if isinstance(value, Tabulated) else getattr(value, "polynomial", value)
    goes_on = isinstance(found, PPoly) and found.extrapolate is not False and found.extrapolate != "periodic"
    if not goes_on or np.iscomplexobj(found.c) or found.c[0, 0].size != size or found.x[-1] < found.x[0]:
        return None
    return PPoly.construct_fast(found.c.reshape(*found.c.shape[:2], size).astype(float), found.x)


def is_exact(value: Any) -> bool:
    """Whether the rates of a function of time are those of its polynomials: tables and samples that are not smooth have
    corners, and SciPy's are taken as they are."""
    if isinstance(value, Tabulated):
        return value.interpolation == "cubic"
    return getattr(value, "smooth", True)


def constant(values: np.ndarray) -> PPoly:
    """Numbers that do not change."""
    from scipy.interpolate import PPoly

    return PPoly.construct_fast(np.array(values, dtype=np.float64)[None, None], np.array([0.0, 1.0]))


def _table(table: Tabulated) -> Any:
    """A table as polynomials; None of one that is a single one of a high order."""
    from scipy.interpolate import CubicSpline, PPoly

    if table.interpolation == "barycentric":
        return None
    x, y = np.asarray(table.points, dtype=np.float64), np.asarray(table.values, dtype=np.float64)
    if table.interpolation == "cubic":
        return CubicSpline(x, y)
    slope = np.diff(y, axis=0) / np.diff(x).reshape(-1, *[1] * (y.ndim - 1))
    return PPoly(np.stack([slope, y[:-1]]), x)


def together(parts: list[PPoly]) -> tuple[np.ndarray, np.ndarray]:
    """Many as one table for kernels.

    Returns:
        knots (2, n): where each stretch begins, the first at minus infinity, and from when on its powers are counted;
        coefficients (n, order, numbers), the highest power first.
    """
    inner = np.unique(np.concatenate([[], *(part.x[1:-1] for part in parts)]))
    begins, since = np.append(-np.inf, inner), np.append(inner[0] if len(inner) else 0.0, inner)
    order = max((part.c.shape[0] for part in parts), default=1)
    rows = [np.zeros((len(begins), order, 0))]
    for part in parts:
        k = np.clip(np.searchsorted(part.x, begins, side="right") - 1, 0, part.c.shape[1] - 1)
        rows.append(_moved(part.c[:, k], since - part.x[k], order))
    return np.stack([begins, since]), np.concatenate(rows, axis=2)


def _moved(c: np.ndarray, by: np.ndarray, order: int) -> np.ndarray:
    """Polynomials (m, n, size) in s as those in s − by (n,), shape (n, order, size), by Horner's scheme."""
    c = c.copy()
    for first in range(len(c) - 1):
        for k in range(1, len(c) - first):
            c[k] += by[:, None] * c[k - 1]
    out = np.zeros((c.shape[1], order, c.shape[2]))
    out[:, order - len(c) :] = np.swapaxes(c, 0, 1)
    return out
