"""Rows of numbers that follow time, at one time and at many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np


@final
class RowsOfTime:
    """Numbers that follow time.

    Args:
        at: a function of t that returns them, a list or an array (n,), or says what is not finite.
        many: the same of times (n_times,), shape (n_times, n), faster than one by one and unchecked; None where there
            is nothing faster.
    """

    def __init__(self, at: Callable[[float], Any], many: Callable[[np.ndarray], np.ndarray] | None = None) -> None:
        self.at, self.many = at, many

    def __call__(self, t: float) -> Any:
        """The numbers at time t."""
        return self.at(t)

    def over(self, times: np.ndarray) -> np.ndarray:
        """The numbers at many times (n_times,), shape (n_times, n), the same whichever times are asked for together."""
        if self.many is not None:
            rows = self.many(times)
            if np.isfinite(rows).all():
                return rows
        return np.array([self.at(t) for t in times.tolist()])


def still(row: Any) -> RowsOfTime:
    """Numbers that do not change."""
    return RowsOfTime(lambda t: row, lambda times: np.tile(row, (len(times), 1)))
