"""Material points of a motion that are moved together: those of a quadrature, of frames and of tendons.

Points go in as arguments, in rows of one length that the first point fills up, so that all bodies of the same motion
share what was compiled. What was found at a state is kept: launches at that state, and integrals, frames and tendons in
each of them, ask JAX once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.deformable.kinematics import Kinematics
from lissom.deformable.slopes import Bends, Slopes
from lissom.robot.poses import compiled

ROW = 32  # points of a row for second derivatives, which are no faster in longer ones
_LONGEST = 512  # points of a row for first derivatives
_MORE = 56  # points of frames and tendons that a row has room for beside those of a quadrature
_KEPT = 64  # rows at states


@final
@dataclass(frozen=True, eq=False)
class MotionSlopes:
    """How points of a motion change with θ, as functions of points (m, 3), θ and θ̇."""

    kinematics: Kinematics

    @cached_property
    def slopes(self) -> Callable[..., Slopes]:
        return compiled(self.kinematics.slopes)

    @cached_property
    def bends(self) -> Callable[..., Bends]:
        return compiled(self.kinematics.bends)


@final
class Rows:
    """What a function of points, θ and θ̇ gives of rows of points, kept for the last few states."""

    def __init__(self, function: Callable[..., Any], size: int) -> None:
        self.function, self.size = function, size
        self._found: OrderedDict[tuple[int, bytes], tuple[bytes, tuple[Any, ...]]] = OrderedDict()

    def holding(self, numbers: np.ndarray) -> list[int]:
        """The rows that points stand in, in order."""
        return sorted(set((numbers // self.size).tolist()))

    def has(self, row: int, q: np.ndarray) -> bool:
        return (row, q.tobytes()) in self._found

    def get(self, row: int, points: list[np.ndarray], q: np.ndarray, v: np.ndarray | None) -> tuple[Any, ...]:
        """Of a row of all points, at any rate where v is None."""
        key, rate = (row, q.tobytes()), b"" if v is None else v.tobytes()
        known = self._found.get(key)
        if known is not None and (v is None or known[0] == rate):
            return known[1]
        some = np.array(points[row * self.size : (row + 1) * self.size])
        filled = np.concatenate([some, np.repeat(some[:1], self.size - len(some), axis=0)])
        found = tuple(self.function(filled, q, np.zeros_like(q) if v is None else v))
        self._found[key] = rate, found
        if len(self._found) > _KEPT:
            self._found.popitem(last=False)
        return found

    def picked(self, numbers: np.ndarray, points: list[np.ndarray], q: np.ndarray, v: Any) -> list[np.ndarray]:
        """Of some points, as NumPy arrays."""
        rows = self.holding(numbers)
        found = [[np.asarray(part) for part in self.get(row, points, q, v)] for row in rows]
        at = np.searchsorted(rows, numbers // self.size) * self.size + numbers % self.size
        if len(found) == 1:
            return [part[..., at] for part in found[0]]
        return [np.concatenate(parts, axis=-1)[..., at] for parts in zip(*found)]

    def forget(self) -> None:
        self._found.clear()


@final
class MovedPoints:
    """The points of a body, those of its quadrature first.

    Args:
        motion: what moves them. points: of the quadrature, shape (N, 3) [m].
    """

    def __init__(self, motion: MotionSlopes, points: np.ndarray) -> None:
        self.count = len(points)
        self.size = float(np.ptp(points, axis=0).max()) or 1.0
        self._points = list(points)
        self._number: dict[bytes, int] = {}
        self._slopes = Rows(motion.slopes, min(-(-(len(points) + _MORE) // ROW) * ROW, _LONGEST))
        self._bends = Rows(motion.bends, ROW)

    def numbers(self, points: np.ndarray) -> np.ndarray:
        """Where points (m, 3) stand; new ones join the others."""
        for x in points:
            if x.tobytes() not in self._number:
                self._number[x.tobytes()] = len(self._points)
                self._points.append(x.copy())
                self._slopes.forget()
                self._bends.forget()
        return np.array([self._number[x.tobytes()] for x in points], dtype=np.int64)

    def slopes(self, numbers: np.ndarray, q: np.ndarray, v: np.ndarray | None = None) -> Slopes:
        """Of some points at θ = q (n,), as NumPy arrays, points along the last axis; without v, h and F_h are those of
        any rate."""
        if v is None and all(self._bends.has(row, q) for row in self._bends.holding(numbers)):
            x = self.bends(numbers, q)  # which say the same and more
            return Slopes(x.p, x.F, x.J, x.F_j, np.zeros_like(x.p), np.zeros_like(x.F))
        return Slopes(*self._slopes.picked(numbers, self._points, q, v))

    def bends(self, numbers: np.ndarray, q: np.ndarray) -> Bends:
        """The same with second derivatives, h_q being that of any rate."""
        return Bends(*self._bends.picked(numbers, self._points, q, None))

    def slopes_by_row(self, q: np.ndarray, v: np.ndarray | None) -> list[tuple[Any, ...]]:
        """Slopes of the rows that hold the quadrature, as JAX arrays."""
        return self._by_row(self._slopes, q, v)

    def bends_by_row(self, q: np.ndarray, v: np.ndarray) -> list[tuple[Any, ...]]:
        """Bends of the rows that hold the quadrature, as JAX arrays."""
        return self._by_row(self._bends, q, v)

    def _by_row(self, rows: Rows, q: np.ndarray, v: np.ndarray | None) -> list[tuple[Any, ...]]:
        return [rows.get(row, self._points, q, v) for row in range(-(-self.count // rows.size))]

    def weights(self, weights: np.ndarray, *, bends: bool) -> list[np.ndarray]:
        """Weights (N,) of the quadrature by rows, zero for what else stands there."""
        size = (self._bends if bends else self._slopes).size
        return list(np.pad(weights, (0, -len(weights) % size)).reshape(-1, size))
