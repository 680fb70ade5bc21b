"""Material points of a motion that are moved together: those of a quadrature, of frames and of tendons.

Points go in as arguments, in rows of one length that the first point fills up, so that all bodies of the same motion
share what was compiled. Several bodies with the same points are moved in one call, each by its own θ: a call costs as
much as some hundred operations on a row. What was found at a state is kept: launches at that state, and integrals,
frames and tendons in each of them, ask JAX once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from lissom.bodies.slopes import Bends, Slopes, packed, unpacked
from lissom.bodies.together import one_by_one
from lissom.robot.poses import compiled

_UNIT = 16  # points of which rows are multiples
_LONGEST = 256  # points of a row
_SHORT = 128  # and of one that is not filled up to the longest, which is compiled but once
_MORE = 56  # points of frames and tendons that a row has room for beside those of a quadrature
_KEPT = 64  # rows at states
# what several operations need is made once, where code says so, and not in whatever XLA fuses with it
_ONCE = {"xla_disable_hlo_passes": "cse_barrier_expander"}


@final
@dataclass(frozen=True, eq=False)
class MotionSlopes:
    """How points of a ComposedKinematics change with θ, as functions that JAX compiles."""

    kinematics: Any

    @cached_property
    def _made(self) -> list[Any]:
        """Of the derivatives how they are put together, and those that are constants, once they were compiled."""
        return []

    @cached_property
    def jets(self) -> Callable[..., Any]:
        """Derivatives of the motions it is composed of, as a function of points (m, 3) and θ."""
        import jax
        import jax.numpy as jnp

        def stacked(points: Any, q: Any) -> Any:
            leaves, tree = jax.tree.flatten(self.kinematics.jets(points, q))
            self._made[:] = [tree, [x if isinstance(x, float) else None for x in leaves]]
            rows = [jnp.broadcast_to(x, len(points)) for x in leaves if not isinstance(x, float)]
            return jnp.stack(jax.lax.optimization_barrier(rows))

        return compiled(stacked, **_ONCE, xla_cpu_use_fusion_emitters=True)

    @cached_property
    def slopes(self) -> Callable[..., Any]:
        """What these make of points, packed, of each body: a function of them for each, of points and of θ̇ (k, n)."""
        function = compiled(lambda *state: self._moved(self.kinematics.slopes_of, *state), **_ONCE)
        return lambda jets, points, v: [function(*own, points, rate) for *own, rate in zip(jets, v)]

    @cached_property
    def bends(self) -> Callable[..., Any]:
        """The same with second derivatives, of all bodies in one array."""

        def moved(jets: Any, points: Any, v: Any) -> Any:
            return one_by_one(lambda own, rate: self._moved(self.kinematics.bends_of, own, points, rate), jets, v)

        return compiled(moved, **_ONCE)

    def _moved(self, function: Callable[..., Any], jets: Any, points: Any, v: Any) -> Any:
        (tree, constants), rows = self._made, iter(jets)
        given = tree.unflatten([next(rows) if x is None else x for x in constants])
        return packed(function(given, points, v))


class Places(NamedTuple):
    """Some points (m,) by their numbers, each of one of the bodies (k,) that are moved together."""

    number: np.ndarray
    body: np.ndarray


@final
class Row:
    """What was found of a row of points of several bodies at some θ̇, packed, and of some of its points."""

    def __init__(self, rate: bytes, found: Any) -> None:
        self.rate, self.found = rate, found
        self._picked: dict[tuple[bytes, bytes], np.ndarray] = {}

    def picked(self, number: np.ndarray, body: np.ndarray) -> np.ndarray:
        """Of points, along the last axis."""
        key = number.tobytes(), body.tobytes()
        if key not in self._picked:
            found = [np.asarray(x) for x in self.found] if isinstance(self.found, list) else np.asarray(self.found)
            picked = self._picked[key] = np.empty((len(found[0]), len(number)))
            for b in set(body.tolist()):
                at = np.flatnonzero(body == b)
                picked[:, at] = found[b][:, number[at]]
        return self._picked[key]


@final
class Rows:
    """What a function of derivatives, points and θ̇ gives of rows of points, kept for the last few states.

    Args:
        function: of what `given` returns, and of θ̇ (k, n). given: derivatives and points of a row at θ (k, n). size: of
            a row.
    """

    def __init__(self, function: Callable[..., Any], given: Callable[[int, np.ndarray], Any], size: int) -> None:
        self.function, self.given, self.size = function, given, size
        self._found: OrderedDict[tuple[int, bytes], Row] = OrderedDict()

    def holding(self, numbers: np.ndarray) -> list[int]:
        """The rows that points stand in, in order."""
        return sorted(set((numbers // self.size).tolist()))

    def has(self, row: int, q: np.ndarray) -> bool:
        return (row, q.tobytes()) in self._found

    def get(self, row: int, q: np.ndarray, v: np.ndarray | None) -> Row:
        """At any rate where v is None."""
        key, rate = (row, q.tobytes()), b"" if v is None else v.tobytes()
        known = self._found.get(key)
        if known is None or not (v is None or known.rate == rate):
            found = self.function(*self.given(row, q), np.zeros_like(q) if v is None else v)
            known = self._found[key] = Row(rate, found)
            _forget_oldest(self._found, len(q))
        return known

    def picked(self, places: Places, q: np.ndarray, v: np.ndarray | None) -> np.ndarray:
        """Of some points, as a NumPy array."""
        rows = self.holding(places.number)
        if len(rows) == 1:
            return self.get(rows[0], q, v).picked(places.number - rows[0] * self.size, places.body)
        there = places.number // self.size
        parts = [np.flatnonzero(there == row) for row in rows]
        found = [self.get(row, q, v).picked(places.number[at] - row * self.size, places.body[at])
                 for row, at in zip(rows, parts)]  # fmt: skip
        return np.concatenate(found, axis=1)[:, np.argsort(np.concatenate(parts))]

    def forget(self) -> None:
        self._found.clear()


def _forget_oldest(found: OrderedDict[tuple[int, bytes], Any], bodies: int) -> None:
    """Keep what was found at the last few states, the fewer the more bodies are in each."""
    if len(found) > max(_KEPT // bodies, 4):
        found.popitem(last=False)


@final
class MovedPoints:
    """The points of a body, those of its quadrature first.

    Args:
        motion: what moves them. points: of the quadrature, shape (N, 3) [m]. longest: rows are, however few points.
    """

    def __init__(self, motion: MotionSlopes, points: np.ndarray, *, longest: bool = False) -> None:
        self.count = len(points)
        self.size = float(np.ptp(points, axis=0).max()) or 1.0
        self._points = list(points)
        self._number: dict[bytes, int] = {}
        length = -(-(len(points) + _MORE) // _UNIT) * _UNIT
        length = _LONGEST if longest or length > _SHORT else length
        self._jets = motion.jets
        self._given: OrderedDict[tuple[int, bytes], tuple[Any, np.ndarray]] = OrderedDict()
        self._slopes, self._bends = (Rows(find, self._of_row, length) for find in (motion.slopes, motion.bends))

    def _of_row(self, row: int, q: np.ndarray) -> tuple[Any, np.ndarray]:
        """Derivatives and points of a row, which the first of its points fills up."""
        key = row, q.tobytes()
        if key not in self._given:
            size = self._slopes.size
            some = np.array(self._points[row * size : (row + 1) * size])
            filled = np.concatenate([some, np.repeat(some[:1], size - len(some), axis=0)])
            self._given[key] = [self._jets(filled, theta) for theta in q], filled  # compiled but once
            _forget_oldest(self._given, len(q))
        return self._given[key]

    def numbers(self, points: np.ndarray) -> np.ndarray:
        """Where points (m, 3) stand; new ones join the others."""
        for x in points:
            if x.tobytes() not in self._number:
                self._number[x.tobytes()] = len(self._points)
                self._points.append(x.copy())
                for part in (self._slopes, self._bends):
                    part.forget()
                self._given.clear()
        return np.array([self._number[x.tobytes()] for x in points], dtype=np.int64)

    def slopes(self, numbers: np.ndarray, q: np.ndarray) -> Slopes:
        """Of some points at θ = q (n,), as NumPy arrays, points along the last axis; h and F_h are of any rate."""
        return unpacked(Slopes, self.packed_slopes(Places(numbers, np.zeros_like(numbers)), q[None], None), len(q))

    def packed_slopes(self, places: Places, q: np.ndarray, v: np.ndarray | None) -> np.ndarray:
        """Of points of bodies at θ = q (k, n), packed; without v, h and F_h are those of any rate."""
        if v is None and all(self._bends.has(row, q) for row in self._bends.holding(places.number)):
            x = unpacked(Bends, self.packed_bends(places, q, None), q.shape[1])  # which say the same and more
            x = Slopes(x.p, x.F, x.J, x.F_j, np.zeros_like(x.p), np.zeros_like(x.F))
            return np.concatenate([part.reshape(-1, part.shape[-1]) for part in x])
        return self._slopes.picked(places, q, v)

    def packed_bends(self, places: Places, q: np.ndarray, v: np.ndarray | None) -> np.ndarray:
        """The same with second derivatives; without v, h_q is that of any rate."""
        return self._bends.picked(places, q, v)

    def slopes_by_row(self, q: np.ndarray, v: np.ndarray | None) -> list[Any]:
        """Slopes of the rows that hold the quadrature, of bodies at θ = q (k, n), packed, as JAX arrays."""
        return self._by_row(self._slopes, q, v)

    def bends_by_row(self, q: np.ndarray, v: np.ndarray) -> list[Any]:
        """Bends of the rows that hold the quadrature, packed, as JAX arrays."""
        return self._by_row(self._bends, q, v)

    def _by_row(self, rows: Rows, q: np.ndarray, v: np.ndarray | None) -> list[Any]:
        return [rows.get(row, q, v).found for row in range(-(-self.count // rows.size))]

    def weights(self, weights: np.ndarray, *, bends: bool) -> list[np.ndarray]:
        """Weights (N,) of the quadrature by rows, zero for what else stands there."""
        size = (self._bends if bends else self._slopes).size
        return list(np.pad(weights, (0, -len(weights) % size)).reshape(-1, size))
