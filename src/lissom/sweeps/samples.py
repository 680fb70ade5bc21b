"""The samples of a sweep: all combinations of values, or points in the ranges of the parameters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks

KINDS = ("grid", "random", "latin_hypercube", "sobol", "listed")
_SCALES = ("linear", "log")
_MOST = 10_000_000  # largest number of samples of a grid


@final
@dataclass(frozen=True)
class Span:
    """The range of a parameter of a sweep.

    Args:
        low, high: ends of the range, in the unit of the parameter [-, or any other]; a grid includes both.
        steps: number of values in a grid.
        scale: "linear": values are evenly spaced and uniformly distributed; "log": the same in the logarithm.
    Raises:
        ModelError: an argument is invalid.
    """

    low: float
    high: float
    steps: int | None = None
    scale: str = "linear"

    def __post_init__(self) -> None:
        checks.require(checks.among(self.scale, _SCALES), "span: scale", f"must be one of {_SCALES}", self.scale)
        low = checks.number(self.low, "span: low", **({"above": 0.0} if self.scale == "log" else {}))
        checks.number(self.high, "span: high", above=low)
        if self.steps is not None:
            checks.integer(self.steps, "span: steps", least=2, most=_MOST)

    def at(self, part: Any) -> Any:
        """The values at fractions of the range, from 0 (`low`) to 1 (`high`)."""
        if self.scale == "log":
            return self.low * (self.high / self.low) ** part
        return self.low + (self.high - self.low) * part

    def evenly(self, where: str) -> np.ndarray:
        """The values of a grid."""
        if self.steps is None:
            raise ModelError(f"{where}: a grid needs the number of steps of a Span, or a list of values (got no steps)")
        inner = self.at(np.linspace(0.0, 1.0, self.steps))
        inner[0], inner[-1] = self.low, self.high
        return inner


@final
@dataclass(frozen=True)
class Sampling:
    """The samples of a sweep.

    Fields:
        names: names of the parameters.
        table: values of the parameters, shape (n, n_parameters).
        kind, seed: method and seed of the sampling.
    """

    names: tuple[str, ...]
    table: np.ndarray
    kind: str
    seed: int


def sampling(parameters: Mapping[str, Any], kind: str, count: int | None, seed: int) -> Sampling:
    """The Sampling for the arguments of `sweep`.

    Raises:
        ModelError: an argument is invalid.
    """
    checks.require(checks.among(kind, KINDS), "samples", f"must be one of {KINDS}", kind)
    known = isinstance(parameters, Mapping) and len(parameters) > 0 and all(isinstance(k, str) for k in parameters)
    checks.require(known, "parameters", "must be ranges or lists of values by name", parameters)
    checks.integer(seed, "seed", least=0)
    names = tuple(parameters)
    if kind in ("grid", "listed"):
        checks.require(count is None, "count", f"a {kind} has as many samples as its values give; leave it out", count)
        values = [_listed(parameters[name], f"parameter {name!r}") for name in names]
        size = prod(map(len, values)) if kind == "grid" else 0
        checks.require(size <= _MOST, "parameters", f"a grid has at most {_MOST:,} samples", size)
        table = _combined(values) if kind == "grid" else _side_by_side(names, values)
    else:
        size = checks.integer(count, "count", least=1, most=_MOST)
        points = _points(kind, len(names), size, seed)
        columns = [_spread(parameters[name], points[:, k], f"parameter {name!r}") for k, name in enumerate(names)]
        table = np.stack(columns, axis=1)
    table.setflags(write=False)
    return Sampling(names, table, kind, seed)


def _listed(values: Any, where: str) -> np.ndarray:
    """The values of a parameter of a grid or a list."""
    if isinstance(values, Span):
        return values.evenly(where)
    out = checks.array(values, (-1,), where, "must be a Span or a list of finite numbers")
    checks.require(len(out) > 0, where, "must hold a value", values)
    return out


def _combined(values: list[np.ndarray]) -> np.ndarray:
    """All combinations of the values; the last parameter varies fastest."""
    return np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(values))


def _side_by_side(names: tuple[str, ...], values: list[np.ndarray]) -> np.ndarray:
    sizes = {len(column) for column in values}
    given = {name: len(column) for name, column in zip(names, values)}
    checks.require(len(sizes) == 1, "parameters", "a list of samples needs equally many values of each", given)
    return np.stack(values, axis=1)


def _points(kind: str, size: int, count: int, seed: int) -> np.ndarray:
    """Sample points in the unit cube, shape (count, size)."""
    from scipy.stats import qmc

    generator = np.random.default_rng(seed)
    if kind == "random":
        return generator.random((count, size))
    make: Any = qmc.LatinHypercube if kind == "latin_hypercube" else qmc.Sobol
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about counts that are not powers of 2 (see the manual)
        return make(size, seed=generator).random(count)  # later versions of SciPy call it rng and accept both


def _spread(values: Any, points: np.ndarray, where: str) -> np.ndarray:
    """The values of a parameter at sample points from 0 to 1."""
    if isinstance(values, Span):
        return values.at(points)
    if hasattr(values, "ppf"):
        spread = np.asarray(values.ppf(points), dtype=np.float64)
        rule = "the distribution must give finite values"
        checks.require(spread.shape == points.shape and bool(np.isfinite(spread).all()), where, rule, values)
        return spread
    rule = "must be a Span, a list of values or a distribution of scipy.stats"
    checks.require(isinstance(values, Sequence | np.ndarray) and not isinstance(values, str), where, rule, values)
    out = _listed(values, where)
    return out[np.minimum((points * len(out)).astype(int), len(out) - 1)]
