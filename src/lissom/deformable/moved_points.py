"""Material points of a motion whose derivatives are compiled once, whatever points are asked for.

Points go in as arguments in rows of one length, the first point filling the rest, so that integrals over bodies, frames
and tendons share what was compiled, and so do all bodies of the same motion.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, final

import numpy as np

from lissom.deformable.kinematics import Kinematics
from lissom.deformable.slopes import Bends, Slopes
from lissom.robot.poses import compiled

ROW = 32  # points of the shortest row, and what rows grow by; second derivatives are no faster in longer ones
_LONGEST = 256  # points beyond which others get shorter rows than the quadrature
_KEPT = 16  # states whose results are kept: more than the stages of a step have, for each of a few bodies

Found = TypeVar("Found")


def padded(points: np.ndarray) -> np.ndarray:
    """Points (m, 3) in a row of one of a few lengths."""
    return np.concatenate([points, np.repeat(points[:1], -len(points) % ROW, axis=0)])


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
class Recent:
    """What was found for the last few states, so that launches at one state ask JAX once."""

    def __init__(self) -> None:
        self._found: OrderedDict[bytes, Any] = OrderedDict()

    def __contains__(self, state: np.ndarray) -> bool:
        return state.tobytes() in self._found

    def get(self, make: Callable[..., Found], *state: np.ndarray) -> Found:
        """What `make` makes of a state, or made of it lately."""
        key = b"".join(part.tobytes() for part in state)
        if key not in self._found:
            self._found[key] = make(*state)
            if len(self._found) > _KEPT:
                self._found.popitem(last=False)
        else:
            self._found.move_to_end(key)
        return self._found[key]


@final
class MovedPoints:
    """The points of a motion that frames and tendons are at, all moved together.

    Args:
        motion: what moves them. size: of the body [m]. row: the points of a quadrature, whose row these may share.
    """

    def __init__(self, motion: MotionSlopes, size: float, row: int) -> None:
        self.motion, self.size = motion, size
        self._number: dict[bytes, int] = {}
        self._points: list[np.ndarray] = []
        self._row = row if row <= _LONGEST else ROW
        self._slopes, self._bends = Recent(), Recent()

    def numbers(self, points: np.ndarray) -> np.ndarray:
        """Where points (m, 3) stand in what `slopes` and `bends` return; new ones join the others."""
        known = len(self._points)
        for x in points:
            if x.tobytes() not in self._number:
                self._number[x.tobytes()] = len(self._points)
                self._points.append(x.copy())
        if len(self._points) > known:
            self._slopes, self._bends = Recent(), Recent()
        return np.array([self._number[x.tobytes()] for x in points], dtype=np.int64)

    def slopes(self, q: np.ndarray) -> Slopes:
        """Of all points at θ = q (n,), as NumPy arrays, points along the last axis; J̇θ̇ is that of θ̇ = 0."""
        if q in self._bends:  # which say the same and more
            found = self.bends(q)
            return Slopes(found.p, found.F, found.J, found.F_j, np.zeros_like(found.p))
        return self._slopes.get(lambda q: Slopes(*self._rows(self.motion.slopes, self._row, q)), q)

    def bends(self, q: np.ndarray) -> Bends:
        """The same with second derivatives."""
        return self._bends.get(lambda q: Bends(*self._rows(self.motion.bends, ROW, q)), q)

    def _rows(self, function: Callable[..., Any], row: int, q: np.ndarray) -> list[np.ndarray]:
        """What a function gives of all points, row by row."""
        points, still = np.array(self._points), np.zeros_like(q)
        found = []
        for k in range(0, len(points), row):
            some = points[k : k + row]
            filled = np.concatenate([some, np.repeat(some[:1], row - len(some), axis=0)])
            found.append([np.asarray(part)[..., : len(some)] for part in function(filled, q, still)])
        return found[0] if len(found) == 1 else [np.concatenate(parts, axis=-1) for parts in zip(*found)]
