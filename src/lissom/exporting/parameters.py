"""Parameters of exported robots: numbers of the description that may change after the export, and their ranges.

The rules of the description are functions in Python. The range of a number is found by trying values: it is the
interval around the value of the robot for which the robot can be built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nextafter
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.model.redesign import described
from lissom.robot import checks
from lissom.robot.paths import is_pose, number_at, size_of, unit_of

_PLACES = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, np.pi, -np.pi)  # where rules usually end a range
_FAR = (4.0, 1e3, 1e6, 1e9)  # tried values, over the size of the number; a range that holds all of them has no end
_TINY = 1e-9
_HALVINGS = 80


@final
@dataclass(frozen=True)
class Parameter:
    """A number of the description of a robot that may change after the export.

    Fields:
        name: path, with the entry of an array in brackets, or the name that the caller gave, with the same.
        path: path of the value. index: entry in it; empty for a number.
        unit: unit of the number. value: the number at the export. size: its size, for steps.
        least, most: ends of its range, which belong to it; infinite if there is none.
        pose: index of the first parameter of its placement; -1 if it is in none.
    """

    name: str
    path: str
    index: tuple[int, ...]
    unit: str
    value: float
    size: float
    least: float
    most: float
    pose: int

    @property
    def turns(self) -> bool:
        """Whether it is an entry of the rotation of a placement."""
        return self.pose >= 0 and self.index[1] < 3


def parameters_of(model: Model, chosen: Sequence[str] | Mapping[str, str]) -> tuple[Parameter, ...]:
    """The parameters at paths of the description: one for each number of a value, and the first three rows of a
    placement.

    Args:
        chosen: paths, or paths by own names.
    Raises:
        ModelError: a path is unknown, or leads to no number; or the range of a number ends at its value.
    """
    named = dict(chosen) if isinstance(chosen, Mapping) else {path: path for path in _listed(chosen)}
    found: list[Parameter] = []
    for name, path in named.items():
        checks.title(name, "parameters")
        found += _of_path(model, name, path, len(found))
    names = [one.name for one in found]
    places = [(one.path, one.index) for one in found]
    several: list[Any]
    for several in (names, places):
        twice = next((one for one in several if several.count(one) > 1), None)
        checks.require(twice is None, "parameters", "must name each number once", twice)
    return tuple(found)


def _listed(chosen: Any) -> list[str]:
    listed = [chosen] if isinstance(chosen, str) else list(chosen)
    checks.require(all(isinstance(one, str) for one in listed), "parameters", "must be paths", chosen)
    return list(dict.fromkeys(listed))


def _of_path(model: Model, name: str, path: str, first: int) -> Iterator[Parameter]:
    path, chosen = _split(model, path)
    value, where = number_at(model.description, path), f"robot {model.name!r} > {path}"
    rule = "a parameter of an export must be a number, an array of numbers or a placement"
    if callable(value):
        raise checks.fail(where, f"{rule}; name the numbers of the function, such as {path}.values", value)
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full((), np.nan)
    good = value is not None and not isinstance(value, bool | np.bool_) and array.size and np.isfinite(array).all()
    checks.require(bool(good), where, rule, value)
    try:
        described(model, _with_numbers(model, {(path, ()): float(array)} if not array.ndim else {}))
    except ModelError as error:  # an integer
        raise checks.fail(where, f"{rule}: {error}", value) from None
    unit, at_pose = unit_of(model.description, path), is_pose(array)
    if chosen is not None and not (len(chosen) == array.ndim and all(k < n for k, n in zip(chosen, array.shape))):
        raise checks.fail(where, f"must be followed by an entry of its shape {array.shape}", list(chosen))
    if at_pose and chosen is not None and (chosen[1] < 3 or chosen[0] == 3):
        raise checks.fail(where, "its rotation has no entries of its own; name the placement, or [0][3] to [2][3]",
                          list(chosen))  # fmt: skip
    for index in np.ndindex(*array.shape) if chosen is None else (chosen,):
        if at_pose and index[0] == 3:
            continue
        size = 1.0 if at_pose and index[1] < 3 else size_of(array, index, default=0.1)
        least, most = -inf, inf
        if not at_pose:
            least, most = (_end(model, path, index, float(array[index]), size, side) for side in (-1.0, 1.0))
        entry = "".join(f"[{k}]" for k in index) if chosen is None else ""
        of_entry = "" if at_pose and index[1] < 3 else "m" if at_pose else unit
        of_pose = first if at_pose and chosen is None else -1
        yield Parameter(f"{name}{entry}", path, index, of_entry, float(array[index]), size, least, most, of_pose)


def _split(model: Model, path: str) -> tuple[str, tuple[int, ...] | None]:
    """A path without the entry of an array or placement at its end, and this entry; None if it has none."""
    found = re.fullmatch(r"(.+?)((?:\[\d+\])+)", path)
    if found is None or _is_deeper(model, found[1]):
        return path, None
    return found[1], tuple(map(int, re.findall(r"\d+", found[2])))


def _is_deeper(model: Model, path: str) -> bool:
    """Whether a value holds more than numbers, so that its entries have paths of their own."""
    try:
        np.asarray(number_at(model.description, path), dtype=np.float64)
    except (TypeError, ValueError):
        return True
    return False


def _end(model: Model, path: str, index: tuple[int, ...], value: float, size: float, side: float) -> float:
    """The end of the range of a number at one side, which belongs to the range."""

    def allows(x: float) -> bool:
        try:
            described(model, _with_numbers(model, {(path, index): x}))
        except (ModelError, OverflowError, ZeroDivisionError):
            return False
        return True

    good, bad = value, inf * side
    for far in _FAR:
        x = value + side * far * size
        if not allows(x):
            bad = x
            break
        good = x
    if not isfinite(bad):
        return bad
    for x in _PLACES:
        if side * good < side * x < side * bad or x == value:
            inside = x - side * _TINY * size
            if allows(x):
                if not allows(x + side * _TINY * size):
                    return x
                good = x
            elif allows(inside):
                return nextafter(x, -side * inf)
            elif side * x < side * bad:
                bad = x
    for _ in range(_HALVINGS):
        x = 0.5 * (good + bad)
        if x in (good, bad):
            break
        good, bad = (x, bad) if allows(x) else (good, x)
    return good


def _with_numbers(model: Model, numbers: Mapping[tuple[str, tuple[int, ...]], float]) -> Any:
    """The description of a model with other numbers, by path and entry."""
    values: dict[str, Any] = {}
    for (path, index), number in numbers.items():
        if path not in values:
            array = np.array(number_at(model.description, path), dtype=np.float64)
            values[path] = array if array.ndim else float(number)
        if index:
            values[path][index] = number
    robot = model.description
    return robot.with_({path: _plain(robot, path, value) for path, value in values.items()})


def _plain(robot: Any, path: str, value: Any) -> Any:
    """An array in the form that the description has."""
    old = number_at(robot, path)
    return tuple(value.tolist()) if isinstance(value, np.ndarray) and isinstance(old, tuple | list) else value


def model_with(model: Model, parameters: Sequence[Parameter], values: np.ndarray) -> Model:
    """The model with other values of parameters. No warnings are shown.

    Raises:
        ModelError: a value breaks a rule.
    """
    numbers = {(one.path, one.index): float(x) for one, x in zip(parameters, values)}
    return described(model, _with_numbers(model, numbers))
