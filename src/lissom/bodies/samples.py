"""How material points move and strain with θ, of any points in NumPy arrays, for those who choose a quadrature.

A quadrature is chosen among many, and JAX would compile for each number of points. So points go through compiled
functions in chunks of one size; motions that need no JAX are evaluated by NumPy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.bodies.moved_points import MotionSlopes, MovedPoints
from lissom.bodies.sharing import shared
from lissom.bodies.slopes import along_all
from lissom.robot.poses import compiled

_CHUNK = 256


class Samples(ABC):
    """Some points (N, 3) of a motion.

    Law: p and F = ∂f/∂x, up to rotations from the left, with their derivatives by θ, exact.
    """

    @abstractmethod
    def positions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """p (N, 3) and ∂p/∂θ (N, 3, n) at θ = q."""

    @abstractmethod
    def slopes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """F (N, 3, 3) and ∂F/∂θ (N, 3, 3, n) at θ = q."""


def in_chunks(function: Callable[..., Any], points: np.ndarray, *others: Any) -> list[np.ndarray]:
    """A function of points (_CHUNK, 3), and others, that returns arrays with their axis first, of any points."""
    found = []
    for k in range(0, len(points), _CHUNK):
        some = points[k : k + _CHUNK]
        filled = np.concatenate([some, np.repeat(some[:1], _CHUNK - len(some), axis=0)])
        found.append([np.asarray(part)[: len(some)] for part in function(filled, *others)])
    return [np.concatenate(parts) for parts in zip(*found)]


@final
@dataclass(frozen=True, eq=False)
class _Chunks:
    """What JAX compiles for a motion that takes points as arguments."""

    kinematics: Any

    @cached_property
    def moved(self) -> Callable[..., Any]:
        """p, F, ∂p/∂θ and ∂F/∂θ of points, at θ."""
        motion = self.kinematics

        def moved(points: Any, q: Any) -> Any:
            (p, F), (J, F_j) = along_all(lambda q: (motion.positions(points, q), motion.deformations(points, q)), q)
            return p, F, J.transpose(1, 2, 0), F_j.transpose(1, 2, 3, 0)

        return compiled(moved)


@final
class SamplesByJax(Samples):
    """Of a motion of which no more is known.

    Args:
        kinematics: takes points as arguments. points: shape (N, 3) [m].
    """

    def __init__(self, kinematics: Any, points: np.ndarray) -> None:
        self._points, self._chunks = points, shared(_Chunks, kinematics)
        self._last: tuple[bytes, list[np.ndarray]] = b"", []

    def positions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, _, J, _ = self._moved(q)
        return p, J

    def slopes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, F, _, F_j = self._moved(q)
        return F, F_j

    def _moved(self, q: np.ndarray) -> list[np.ndarray]:
        if self._last[0] != q.tobytes():
            self._last = q.tobytes(), in_chunks(self._chunks.moved, self._points, q)
        return self._last[1]


@final
class SamplesOfComposition(Samples):
    """Of a composed motion, whose derivatives are known.

    Args:
        kinematics: composed. points: shape (N, 3) [m].
    """

    def __init__(self, kinematics: Any, points: np.ndarray) -> None:
        self._moved = MovedPoints(shared(MotionSlopes, kinematics), points, longest=True)

    def positions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = self._moved.slopes(np.arange(self._moved.count), q)
        return x.p.T, np.moveaxis(x.J, 0, -1).swapaxes(0, 1)

    def slopes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = self._moved.slopes(np.arange(self._moved.count), q)
        return np.moveaxis(x.F, -1, 0), x.F_j.transpose(3, 1, 2, 0)


@final
class SamplesOfShapes(Samples):
    """Of a linear motion, from its shapes.

    Args:
        kinematics: linear. points: shape (N, 3) [m].
    """

    def __init__(self, kinematics: Any, points: np.ndarray) -> None:
        self._kinematics, self._points = kinematics, points

    @cached_property
    def _shapes(self) -> np.ndarray:
        return self._kinematics.shapes(self._points)

    @cached_property
    def _gradients(self) -> np.ndarray:
        return self._kinematics.shape_gradients(self._points)

    def positions(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._points + self._shapes @ q, self._shapes

    def slopes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(3) + self._gradients @ q, self._gradients
