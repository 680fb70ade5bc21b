"""Calls of a function at one state, prepared once for a workspace: robots of a few links take less time than Python
takes to look at a few arrays.

A buffer takes an array of float64 of just its shape and refuses all else, so that nothing is left to check. Where it
refuses, or the kernel does, the call gives None, and the general way says what is wrong or finds that nothing is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[..., np.ndarray | None]

_ALL = slice(None)
MASKED = np.ma.MaskedArray  # which buffers would take without its mask
REFUSED = (TypeError, ValueError, BufferError)  # what a buffer raises where an array does not fit


def prepared(into: list[memoryview], launch: Callable[[], None], status: memoryview, result: np.ndarray) -> Call:
    """A function of as many arguments as there are buffers, at most three, that returns a fresh copy of a result. They
    are written one by one, since a loop over them takes as long as the copies."""
    copy, (first, second, third) = result.copy, [*into, *[memoryview(b"")] * (3 - len(into))]

    def of_one(x: Any) -> np.ndarray | None:
        try:
            if x.__class__ is MASKED:
                return None
            first[_ALL] = x
        except REFUSED:
            return None
        launch()
        return None if status[0] else copy()

    def of_two(x: Any, y: Any) -> np.ndarray | None:
        try:
            if x.__class__ is MASKED or y.__class__ is MASKED:
                return None
            first[_ALL], second[_ALL] = x, y
        except REFUSED:
            return None
        launch()
        return None if status[0] else copy()

    def of_three(x: Any, y: Any, z: Any) -> np.ndarray | None:
        try:
            if x.__class__ is MASKED or y.__class__ is MASKED or z.__class__ is MASKED:
                return None
            first[_ALL], second[_ALL], third[_ALL] = x, y, z
        except REFUSED:
            return None
        launch()
        return None if status[0] else copy()

    return (of_one, of_two, of_three)[len(into) - 1]


def unprepared(*_: Any) -> None:
    """What stands for a call that is not prepared."""
