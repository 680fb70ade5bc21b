"""Unknown values of a search, concatenated to a vector of numbers, with their bounds and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from lissom.errors import ModelError, ShapeError
from lissom.lie.arrays import se3_exp, se3_tangent
from lissom.model.model import Model
from lissom.robot import checks
from lissom.robot.paths import is_pose, number_at, size_of

_POSE_UNIT = 0.3  # [rad, m] of the changes of a pose


@final
@dataclass(frozen=True)
class Numbers:
    """Values by name, concatenated to a vector of k numbers. A pose has six numbers: an increment (w; u) on its right.

    Fields:
        shapes: shape of each value, by name.
        start, low, high: start and bounds of the numbers (k,).
        poses: the poses at the start, by name.
    """

    shapes: dict[str, tuple[int, ...]]
    start: np.ndarray
    low: np.ndarray
    high: np.ndarray
    poses: dict[str, np.ndarray]

    @property
    def paths(self) -> tuple[str, ...]:
        """Names of the values."""
        return tuple(self.shapes)

    @property
    def units(self) -> np.ndarray:
        """For each number, the largest absolute entry of its value at the start, shape (k,). For a value of zeros, half
        of the distance between its bounds if they are finite, otherwise 1."""
        out = [np.zeros(0)]
        ends = self.split(self.low), self.split(self.high)
        for name, x in self.split(self.start).items():
            wide = 0.5 * float(np.max(ends[1][name] - ends[0][name], initial=0.0))
            size = size_of(x, default=wide if np.isfinite(wide) and wide > 0.0 else 1.0)
            out.append(np.full(x.size, _POSE_UNIT if name in self.poses else size))
        return np.concatenate(out)

    def split(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Numbers (..., k) by name, with the shape of each value as the last axes."""
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes.values())])
        parts = zip(self.shapes.items(), ends, ends[1:])
        return {name: x[..., a:b].reshape((*x.shape[:-1], *shape)) for (name, shape), a, b in parts}

    def joined(self, parts: Mapping[str, Any], where: str, lead: tuple[int, ...] = ()) -> np.ndarray:
        """Numbers (*lead, k) from arrays by name, the inverse of `split`.

        Raises:
            ModelError: a name is missing or unknown. ShapeError: an array has a wrong shape.
        """
        listed = isinstance(parts, Mapping) and set(parts) == set(self.shapes)
        got = sorted(parts) if isinstance(parts, Mapping) else parts
        checks.require(listed, where, f"must have one array for each of {list(self.shapes)}", got)
        out = [np.zeros((*lead, 0))]
        for name, shape in self.shapes.items():
            array = np.asarray(parts[name], dtype=np.float64)
            if array.shape != (*lead, *shape):
                raise ShapeError(f"{where} > {name}: expected shape {(*lead, *shape)}, got {array.shape}")
            out.append(array.reshape(*lead, -1))
        return np.concatenate(out, axis=-1)

    def values(self, x: np.ndarray) -> dict[str, Any]:
        """Values by name from numbers (k,): floats, arrays and poses."""
        out: dict[str, Any] = {}
        for name, part in self.split(x).items():
            part = self.poses[name] @ se3_exp(part) if name in self.poses else part
            out[name] = float(part) if part.ndim == 0 else part.copy()
        return out

    def by_numbers(self, x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Derivatives with respect to the numbers (..., k), from `slopes`, those with respect to the values. For a pose
        they are derivatives with respect to an increment on the right of the pose at x."""
        if not self.poses:
            return slopes
        parts, at = self.split(slopes), self.split(x)
        parts |= {name: parts[name] @ se3_tangent(at[name]) for name in self.poses}
        return self.joined(parts, "derivatives", slopes.shape[:-1])

    def model(self, model: Model, x: np.ndarray) -> Model:
        """The model with values x."""
        values = {path: value.tolist() for path, value in self.split(x).items()}
        return model.with_(values) if values else model


def numbers_of(model: Model, paths: tuple[str, ...], bounds: Mapping[str, Any]) -> Numbers:
    """Values of a model at paths, with their bounds.

    Raises:
        ModelError: a path leads to no number or array of numbers, or a value is outside its bounds.
        ShapeError: bounds have a wrong shape.
    """
    parts = {path: array_at(model, path) for path in paths}
    for path, array in parts.items():
        rule = "must be a number or an array of numbers"
        checks.require(not is_pose(array), f"robot {model.name!r} > {path}", rule, array)
    return numbers_from(parts, bounds, "values of the model")


def array_at(model: Model, path: str) -> np.ndarray:
    """The number, array of numbers or pose at a path of a model.

    Raises:
        ModelError: there is none.
    """
    value = number_at(model.description, path)
    try:
        array = np.asarray(None if callable(value) or isinstance(value, bool) else value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full((), np.nan)
    rule = "must be a number or an array of numbers"
    checks.require(bool(np.isfinite(array).all()), f"robot {model.name!r} > {path}", rule, value)
    return array


def numbers_from(parts: Mapping[str, np.ndarray], bounds: Mapping[str, Any], kind: str) -> Numbers:
    """Arrays by name as numbers, with their bounds.

    Args:
        bounds: (low, high) by name, numbers or arrays in the shape of the value; of a pose, of its increment (6,).
        kind: words for the arrays in errors.
    Raises:
        ModelError: a value is outside its bounds. ShapeError: bounds have a wrong shape.
    """
    poses = {name: x for name, x in parts.items() if is_pose(x)}
    flat = {name: np.zeros(6) if name in poses else x for name, x in parts.items()}
    start = np.concatenate([np.zeros(0), *(x.ravel() for x in flat.values())])
    shapes = {name: x.shape for name, x in flat.items()}
    low, high = _bounds(bounds, shapes)
    if not (low <= start).all() or not (start <= high).all():
        raise ModelError(f"bounds: must contain the {kind}, {start!r} (got {bounds!r})")
    return Numbers(shapes, start, low, high, poses)


def _bounds(bounds: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of all numbers, (k,) each."""
    for path in bounds:
        checks.require(path in shapes, f"bounds > {path}", f"must be of one of the values, {list(shapes)}", path)
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
