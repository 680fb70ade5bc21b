"""Where fixed steps end: on wanted times and samples of a controller, and dt apart in between, the last before a stop
being shorter. They are told piece by piece, so that a motion of many steps needs room for few."""

from __future__ import annotations

from typing import final

import numpy as np

SAME_TIME = 1e-12  # of the duration: a sample and a wanted time that only rounding parts, with no step between them


@final
class StepSchedule:
    """The ends of all steps of a motion; `len` says how many there are.

    Args:
        times: wanted ones, the start first; None wants every end.
    """

    def __init__(self, times: np.ndarray | None, duration: float, period: float, dt: float) -> None:
        stops = times[1:] if times is not None else np.array([duration])
        samples = np.arange(1, int(np.ceil(duration / period))) * period if np.isfinite(period) else np.zeros(0)
        samples = _snapped(samples, stops, SAME_TIME * duration)
        self.dt, self.stops = dt, np.union1d(samples, stops)
        self.starts = np.append(0.0, self.stops)[: len(self.stops)]
        steps = np.maximum(np.ceil((self.stops - self.starts) / dt * (1.0 - 1e-9)).astype(int), 1)
        self.until = np.cumsum(steps)
        self.first = self.until - steps
        self.is_wanted = None if times is None else np.isin(self.stops, times)
        self.samples = self.until[np.isin(self.stops, samples)] - 1

    def __len__(self) -> int:
        return int(self.until[-1]) if len(self.until) else 0

    def ends(self, first: int, last: int) -> np.ndarray:
        """Where the steps from `first` to before `last` end."""
        k = np.arange(first, last)
        part = np.searchsorted(self.until, k, side="right")
        inner = k + 1 - self.first[part]
        return np.where(k + 1 == self.until[part], self.stops[part], self.starts[part] + self.dt * inner)

    def wanted(self, first: int, last: int) -> np.ndarray:
        """Which of these are wanted."""
        k = np.arange(first, last)
        if self.is_wanted is None:
            return np.ones(len(k), dtype=bool)
        part = np.searchsorted(self.until, k, side="right")
        return self.is_wanted[part] & (k + 1 == self.until[part])

    def is_sample(self, k: int) -> bool:
        """Whether step k ends with a sample."""
        at = int(np.searchsorted(self.samples, k))
        return at < len(self.samples) and int(self.samples[at]) == k

    def to_sample(self, k: int) -> int:
        """How many steps there are from step k on to the next that ends with a sample, or to the end."""
        next_one = int(np.searchsorted(self.samples, k))
        return (int(self.samples[next_one]) + 1 if next_one < len(self.samples) else len(self)) - k


def _snapped(samples: np.ndarray, ends: np.ndarray, tolerance: float) -> np.ndarray:
    """The samples, on the nearest of the ends where that is no further than the tolerance."""
    if len(samples) == 0 or len(ends) == 0:
        return samples
    after = np.minimum(np.searchsorted(ends, samples), len(ends) - 1)
    near = [ends[after], ends[np.maximum(after - 1, 0)]]
    return np.select([np.abs(end - samples) <= tolerance for end in near], near, samples)
