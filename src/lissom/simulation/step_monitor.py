"""Number of steps of one motion by an adaptive method, with a warning if there are too many.

The number of steps that a motion needs is estimated from the number of its turns: the path length of a coordinate
divided by its range, the largest among coordinates that move at least a tenth as far as the farthest one. If there are
many more steps, a warning is issued once.
"""

from __future__ import annotations

import warnings
from typing import final

import numpy as np

from lissom.errors import StepWarning

_TOO_MANY = {"radau": 5_000, "dop853": 50_000}  # steps that a motion should not exceed, extrapolated from the last ones
_TOO_MANY_ELSE = 20_000  # by "bdf" and implicit schemes
_FIRST_CHECK = 1000  # number of steps before the first check of their size
_LEAST_SHARE = 0.25  # fraction of too many steps before which there is no warning: closing contacts need many
_TRIAL = 500  # steps of the trial of order 2
_FASTER = 1.5
_PER_TURN = 30.0  # steps from one extreme to the next, at rtol = 1e-6 by a method of order 4
_FAR_TOO_MANY = 10.0  # ratio of the steps to the needed steps, above which a warning is issued
_FAR = 0.1  # range of a coordinate that counts, relative to the farthest one


@final
class StepMonitor:
    """Counts the steps of one motion, warns of too many steps, and changes the order of BDF.

    Args:
        most: number of steps after which the run stops.
        scale: natural size of each coordinate, shape (nq,).
        power: power of the step size to which the error of a step is proportional.
    """

    def __init__(
        self, method: str, duration: float, most: float, rtol: float, scale: np.ndarray, power: int = 5
    ) -> None:
        self.method, self.duration, self.most, self.scale = method, duration, most, scale
        self.per_turn = _PER_TURN * 1e-6**0.2 * rtol ** (-1.0 / power)
        self.too_many = _TOO_MANY.get(method, _TOO_MANY_ELSE)
        self.order, self.count, self.is_warned = 5, 0, False
        self.tried: float | None = None  # steps per second of order 5 during the trial of order 2 [1/s]
        self.since: float | None = None  # time at which order 2 began [s]
        self.back = False  # whether the run must go back to a state before the steps became small
        self._check_at(_FIRST_CHECK)

    @property
    def remark(self) -> str:
        """A remark about a change of order; empty if there was none."""
        return "" if self.since is None else f"of order 2 from t={self.since:.6g} s on"

    def _check_at(self, count: int) -> None:
        self.due, self.middle = count, (self.count + count) // 2

    def step(self, t: float, q: np.ndarray) -> bool:
        """Count a step that ends at time t in q. Returns whether the run must stop there, at its limit of steps or to
        change the order."""
        self.count += 1
        if self.count < self.middle:
            return self.count > self.most
        if self.count == self.middle:
            self.passed = t
            self.last, self.low, self.high, self.way = q.copy(), q.copy(), q.copy(), np.zeros(len(q))
        else:
            self.way += np.abs(q - self.last)
            np.minimum(self.low, q, out=self.low)
            np.maximum(self.high, q, out=self.high)
            self.last[:] = q
        return self.count > self.most or (self.count >= self.due and self._changes(t))

    def follow(self, t: np.ndarray, q: np.ndarray) -> None:
        """Count the steps of a run, which end at t (n,) in q (n, nq), by a method whose order does not change."""
        if self.count + len(t) < self.middle:
            self.count += len(t)
            return
        for end, row in zip(t.tolist(), q):
            self.step(end, row)

    def start(self, t: np.ndarray) -> int:
        """Index in t (n,), the times at which steps ended, of the time from which the run is repeated with order 2.

        With few steps it is the first time. Otherwise it is the last time before a long step. A step is long if it
        exceeds the geometric mean of the longest step and of the median of the later half of the steps.
        """
        self.back, h, k = False, np.diff(t), 0
        if len(h) > _FIRST_CHECK:
            usual = float(np.median(h[len(h) // 2 :]))
            k = int(np.flatnonzero(h >= np.sqrt(usual * h.max()))[-1])
        self.since = float(t[k])
        return k

    def _changes(self, t: float) -> bool:
        """Check the size of the last steps. Returns whether the order changes."""
        rate = (self.due - self.middle) / max(t - self.passed, 1e-300)
        excess, worse = self._excess(t), False
        if self.method == "bdf" and self.since is None and self._total(t, rate) > self.too_many:
            self.tried, self.before, self.order, self.since, self.back = rate, excess, 2, t, True
            self._check_at(self.count + _TRIAL)
            return True
        if self.tried is not None:
            worse = _FASTER * rate > self.tried
            if worse:
                rate, excess, self.order, self.since = self.tried, self.before, 5, None
            self.tried = None
        times, dt = excess
        most = self.too_many
        if (
            not self.is_warned
            and self.count >= _LEAST_SHARE * most
            and self._total(t, rate) > most
            and times > _FAR_TOO_MANY
        ):
            self.is_warned = True
            others = 'method="bdf" or ' if self.method in _TOO_MANY else ""
            warnings.warn(f"{self.method} would take about {self._total(t, rate):.2g} steps, {times:.0f} times as many "
                          "as such a smooth motion needs: contacts, samples, or vibrations with little damping slow it "
                          f'down; {others}method="generalized_alpha" with dt={dt:.0e} or longer may be faster',
                          StepWarning, stacklevel=2)  # fmt: skip
        self._check_at((4 if worse else 2) * self.count)
        return worse

    def _total(self, t: float, rate: float) -> float:
        """Number of steps of the whole motion, extrapolated from time t at a rate [1/s]."""
        return self.count + rate * (self.duration - t)

    def _excess(self, t: float) -> tuple[float, float]:
        """Number of the last steps divided by the number that their turns need, and the step size that would suffice
        [s]."""
        span = self.high - self.low
        far = span > _FAR * self.scale * np.max(span / self.scale)
        needed = self.per_turn * max(1.0, float(np.max(self.way[far] / span[far], initial=0.0)))
        return (self.due - self.middle) / needed, (t - self.passed) / needed
