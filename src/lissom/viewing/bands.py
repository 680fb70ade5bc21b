"""What is painted in the viewer, as bands of one colour each: a mesh of the viewer has one colour."""

from __future__ import annotations

from typing import final

import numpy as np

from lissom.viewing.quantities import QUANTITIES

BANDS = 16


@final
class Scale:
    """The ends of a scale of colours, which grow with what is seen and shrink when they are begun anew."""

    def __init__(self, quantity: str) -> None:
        self.quantity, self.unit = quantity, QUANTITIES[quantity]
        self.low, self.high = np.inf, -np.inf

    def take_in(self, values: np.ndarray) -> None:
        """Let the ends reach over values."""
        seen = values[np.isfinite(values)]
        if len(seen):
            self.low, self.high = min(self.low, float(seen.min())), max(self.high, float(seen.max()))

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value."""
        if not np.isfinite(self.low):
            return 0.0, 1.0
        return (self.low, self.high) if self.high > self.low else (self.low - 0.5, self.high + 0.5)

    def bands(self, values: np.ndarray) -> np.ndarray:
        """The band of each value, -1 for NaN."""
        low, high = self.ends
        found = np.clip((np.nan_to_num(values, nan=low) - low) / (high - low) * BANDS, 0, BANDS - 1).astype(int)
        return np.where(np.isfinite(values), found, -1)


def banded(
    quads: np.ndarray, points: np.ndarray, values: np.ndarray, scale: Scale
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The quadrilaterals (m, 4) over points (P, 3) of each band: vertices, and triangles of these."""
    of_each = scale.bands(values[quads].mean(axis=1))
    found = []
    for band in range(BANDS):
        used, numbers = np.unique(quads[of_each == band], return_inverse=True)
        a, b, c, d = numbers.reshape(-1, 4).T
        faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)[c != d]])
        found.append((points[used], faces))
    return found
