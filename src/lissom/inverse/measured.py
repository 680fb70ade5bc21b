"""Positions of points of a robot that were measured, and the numbers that a fit looks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.errors import ModelError, ShapeError
from lissom.model.model import Model
from lissom.model.points import places_of
from lissom.robot import checks
from lissom.robot.paths import value_at

_PLACING = ("nodes", "runs", "bases", "dofs", "maps", "deforming")  # tables that say where points are


@final
@dataclass(frozen=True)
class Measured:
    """Where points were seen in the world.

    Fields:
        points: (name, s) of each. positions: (..., n, points, 3) [m], NaN where there is none.
    """

    points: list[tuple[str, float]]
    positions: np.ndarray

    @cached_property
    def seen(self) -> np.ndarray:
        """Where something was measured."""
        return np.isfinite(self.positions)

    @property
    def count(self) -> int:
        """Of numbers measured."""
        return int(self.seen.sum())

    @cached_property
    def places(self) -> dict[str, tuple[list[int], np.ndarray]]:
        """Of each link or frame, which points are on it, and their abscissae."""
        names = dict.fromkeys(name for name, _ in self.points)
        own = {name: [k for k, point in enumerate(self.points) if point[0] == name] for name in names}
        return {name: (at, np.array([self.points[k][1] for k in at])) for name, at in own.items()}


@final
@dataclass(frozen=True)
class Numbers:
    """Design values, one behind the other.

    Fields:
        shapes: of the values, by path. start, low, high: of the numbers (k,). units: of each path its largest.
    """

    shapes: dict[str, tuple[int, ...]]
    start: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def paths(self) -> tuple[str, ...]:
        """Of the values."""
        return tuple(self.shapes)

    @property
    def units(self) -> np.ndarray:
        """Of each number the size of its value."""
        parts = self.split(self.start).values()
        return np.concatenate([np.zeros(0), *(np.full(x.size, np.abs(x).max() or 1.0) for x in parts)])

    def split(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Numbers by path."""
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes.values())])
        return {path: x[a:b].reshape(shape) for (path, shape), a, b in zip(self.shapes.items(), ends, ends[1:])}

    def model(self, model: Model, x: np.ndarray) -> Model:
        """The model with values x."""
        values = {path: value.tolist() for path, value in self.split(x).items()}
        return model.with_(values) if values else model


def stand_alike(models: tuple[Model, ...], model: Model, measured: Measured) -> bool:
    """Whether the points of a model are at the same places in all models, at any q, as far as can be told: where
    design values such as moduli and offsets of tendons differ."""
    for other in models:
        if not all(_same(getattr(other, group), getattr(model, group)) for group in _PLACING):
            return False
        for name, (_, abscissae) in measured.places.items():
            if not _same(places_of(other, name, abscissae), places_of(model, name, abscissae)):
                return False
    return True


def _same(a: Any, b: Any) -> bool:
    """Whether two tables are the same, as far as that can be told."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if is_dataclass(a) and type(a) is type(b):
        return all(_same(getattr(a, part.name), getattr(b, part.name)) for part in fields(a))
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, int | float | str) and type(a) is type(b) and a == b


def numbers_of(model: Model, paths: tuple[str, ...], bounds: Mapping[str, Any]) -> Numbers:
    """The values of a model at paths, and how far they may go.

    Raises:
        ModelError: a path leads to no number or array of numbers; bounds do not hold the values. ShapeError: bounds.
    """
    parts = []
    for path in paths:
        value = value_at(model.description, path)
        try:
            array = np.asarray(None if callable(value) or isinstance(value, bool) else value, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.full((), np.nan)
        good = bool(np.isfinite(array).all()) and array.shape != (4, 4)
        checks.require(good, f"robot {model.name!r} > {path}", "must be a number or an array of numbers", value)
        parts.append(array)
    start = np.concatenate([np.zeros(0), *(x.ravel() for x in parts)])
    shapes = {path: x.shape for path, x in zip(paths, parts)}
    low, high = _bounds(bounds, shapes)
    if not (low <= start).all() or not (start <= high).all():
        raise ModelError(f"bounds: must hold the values of the model, {start!r} (got {bounds!r})")
    return Numbers(shapes, start, low, high)


def _bounds(bounds: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest of all numbers."""
    for path in bounds:
        checks.require(path in shapes, f"bounds > {path}", f"must be of a value that is fitted, {list(shapes)}", path)
    ends: tuple[list[np.ndarray], list[np.ndarray]] = ([np.zeros(0)], [np.zeros(0)])
    for path, shape in shapes.items():
        try:
            low, high = (np.asarray(x, dtype=np.float64) for x in bounds.get(path, (-np.inf, np.inf)))
            for side, x in zip(ends, (low, high)):
                side.append(np.broadcast_to(x, shape).ravel())
        except (TypeError, ValueError):
            got = f"got {bounds[path]!r}"
            raise ShapeError(f"bounds > {path}: expected (low, high), numbers or shape {shape}, {got}") from None
    return np.concatenate(ends[0]), np.concatenate(ends[1])


def measured_points(measured: Mapping[Any, Any], lead: tuple[int, ...]) -> Measured:
    """Points by name or (name, s), with positions of shape (*lead, 3)."""
    checks.require(len(measured) > 0, "measured", "must hold the positions of a point at least", measured)
    points, positions = [], []
    for key, given in measured.items():
        name, s = key if isinstance(key, tuple) else (key, 1.0)
        rows = np.asarray(given, dtype=np.float64)
        if rows.shape != (*lead, 3) or np.isinf(rows).any():
            raise ShapeError(f"measured > {key!r}: expected positions or NaN of shape {(*lead, 3)}, got {rows.shape}")
        points.append((name, float(s)))
        positions.append(rows)
    return Measured(points, np.stack(positions, axis=-2))
