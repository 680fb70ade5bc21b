"""How an adaptive method gets on: when BDF is better off with order 2, and when another method is.

BDF of orders 3 to 5 is unstable for vibrations without damping, so that its steps must resolve the fastest one there
is, however small. Order 2 is stable for them. Which of the two gets on faster is tried where the steps are so small
that there would be too many of them, from a state before they became small: after that the vibration is in the motion.

What a motion needs is told by its turns: the way of the coordinate that turns most, in units of its range, among those
that move as far as a tenth of the farthest. A hint is given once, where there are many more steps than that.
"""

from __future__ import annotations

import warnings
from typing import final

import numpy as np

from lissom.errors import StepWarning

_FIRST_LOOK = 1000  # steps
_LEAST_SHARE = 0.25  # of too many steps, before which a hint would be a guess: what closes takes many, what holds few
_TOO_MANY = {"bdf": 20_000, "radau": 5_000, "dop853": 50_000}  # steps in all, by what the last ones make
_TRIAL = 500  # steps of order 2
_FASTER = 1.5
_PER_TURN = 30.0  # steps from one extreme to the next, at rtol = 1e-6
_FAR_TOO_MANY = 10.0  # times as many as a motion needs
_FAR = 0.1  # of the farthest coordinate


@final
class Pace:
    """Counts the steps of one motion and looks how long they are.

    Args:
        most: steps after which the run stops. scale: natural size of each coordinate, shape (nq,).
    """

    def __init__(self, method: str, duration: float, most: int, rtol: float, scale: np.ndarray) -> None:
        self.method, self.duration, self.most, self.scale = method, duration, most, scale
        self.per_turn = _PER_TURN * (1e-6 / rtol) ** 0.2
        self.order, self.count, self.told = 5, 0, False
        self.tried: float | None = None  # steps a second of order 5, while order 2 is tried
        self.since: float | None = None  # when order 2 began
        self.back = False  # whether to go back to where the steps were long
        self._look_at(_FIRST_LOOK)

    @property
    def remark(self) -> str:
        """What became of the order."""
        return "" if self.since is None else f"of order 2 from t={self.since:.6g} s on"

    def _look_at(self, count: int) -> None:
        self.look, self.middle = count, (self.count + count) // 2

    def step(self, t: float, q: np.ndarray) -> bool:
        """One more step, which ends at t in q; whether the run should stop there, for good or to change its order."""
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
        return self.count > self.most or (self.count >= self.look and self._changes(t))

    def start(self, t: np.ndarray) -> int:
        """Which of the ends of steps (n,) the trial of order 2 starts from: the first where they are few, else the last
        from which a long step went, longer than the geometric mean of the longest and the usual one of late."""
        self.back, h, k = False, np.diff(t), 0
        if len(h) > _FIRST_LOOK:
            usual = float(np.median(h[len(h) // 2 :]))
            k = int(np.flatnonzero(h >= np.sqrt(usual * h.max()))[-1])
        self.since = float(t[k])
        return k

    def _changes(self, t: float) -> bool:
        """Look at the last steps; whether the order changes."""
        rate = (self.look - self.middle) / max(t - self.passed, 1e-300)
        excess, worse = self._excess(t), False
        if self.method == "bdf" and self.since is None and self._total(t, rate) > _TOO_MANY["bdf"]:
            self.tried, self.before, self.order, self.since, self.back = rate, excess, 2, t, True
            self._look_at(self.count + _TRIAL)
            return True
        if self.tried is not None:
            worse = _FASTER * rate > self.tried
            if worse:
                rate, excess, self.order, self.since = self.tried, self.before, 5, None
            self.tried = None
        times, dt = excess
        most = _TOO_MANY[self.method]
        if (
            not self.told
            and self.count >= _LEAST_SHARE * most
            and self._total(t, rate) > most
            and times > _FAR_TOO_MANY
        ):
            self.told = True
            others = "" if self.method == "bdf" else 'method="bdf" or '
            warnings.warn(f"{self.method} would take about {self._total(t, rate):.2g} steps, {times:.0f} times what so "
                          "smooth a motion needs: contacts, samples, or vibrations with little damping hold it up; "
                          f'{others}method="generalized_alpha" with dt={dt:.0e} or longer may suit it better',
                          StepWarning, stacklevel=2)  # fmt: skip
        self._look_at((4 if worse else 2) * self.count)
        return worse

    def _total(self, t: float, rate: float) -> float:
        """How many steps there will have been, if they go on at this rate."""
        return self.count + rate * (self.duration - t)

    def _excess(self, t: float) -> tuple[float, float]:
        """How many times the last steps are more than the motion needs, and how long they might be."""
        span = self.high - self.low
        far = span > _FAR * self.scale * np.max(span / self.scale)
        needed = self.per_turn * max(1.0, float(np.max(self.way[far] / span[far], initial=0.0)))
        return (self.look - self.middle) / needed, (t - self.passed) / needed
