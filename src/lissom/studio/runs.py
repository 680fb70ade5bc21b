"""Computations of the studio besides equilibria and motions: branches, sweeps, and values identified from a table.

Each maker checks its arguments and returns the call of the library, and the function that makes this call for a robot.
`progress` takes the part of the work that is done, None if its amount is unknown, and the same in words. It ends a
computation by an error.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.dynamics.configuration import difference, integrate
from lissom.errors import ModelError
from lissom.inverse.fit import fit
from lissom.model.model import Model
from lissom.robot import checks
from lissom.robot.robot import Robot
from lissom.simulation.trajectory import Trajectory
from lissom.statics.continuation import continuation
from lissom.stepping.statistics import Statistics
from lissom.sweeps.samples import Span
from lissom.sweeps.study import StudyStatics
from lissom.sweeps.sweep import sweep

Progress = Callable[[float | None, str], Any]
Compute = Callable[[Model, Progress], Any]
_SHOWN = 4.0  # duration of a branch or sweep on the screen [s]
_FRAMES = 120  # pictures of a branch or sweep
_MOST = 10_000  # samples of a sweep


@final
@dataclass(frozen=True)
class Axis:
    """A value that a sweep varies: its name, as for `sweep`, first and last value, and their number."""

    name: str
    low: float
    high: float
    steps: int


@final
@dataclass(frozen=True, eq=False)
class Swept:
    """Equilibria of a sweep.

    Fields:
        axes: what was varied. values: of each sample (n, axes). q: configurations (n, nq), NaN where none was found.
        stable: whether each is stable (n,). path: folder of the sweep, which `SweepResults.load` reads.
    """

    axes: tuple[Axis, ...]
    values: np.ndarray
    q: np.ndarray
    stable: np.ndarray
    path: Path

    @property
    def found(self) -> np.ndarray:
        """Whether an equilibrium was found for each sample (n,)."""
        return np.asarray(np.isfinite(self.q).all(axis=1))


def branch_run(u: Sequence[float], end: float, step: float, points: int) -> tuple[str, Compute]:
    """The branch of equilibria under a growing factor of gravity, loads and inputs.

    Args:
        u: inputs at factor 1. end: the last factor. step, points: as `step` and `max_points` of `continuation`.
    Raises:
        ModelError: an argument is wrong.
    """
    checks.number(end, "last factor")
    checks.require(end != 0.0, "last factor", "must not be 0, at which the branch starts", end)
    checks.number(step, "step", above=0.0)
    count = checks.integer(points, "points", least=2)
    span, direction = (min(0.0, end), max(0.0, end)), 1 if end > 0.0 else -1
    way = "" if direction == 1 else ", direction=-1"
    given = f"u={_listed(u)}, " if len(u) else ""
    call = f"branch = ls.continuation(model, {given}factor_range=({span[0]:g}, {span[1]:g}){way}, step={step:g})"

    def found(model: Model, progress: Progress) -> Any:
        return continuation(model, u=u if len(u) else None, factor_range=span, direction=direction, step=step,
                            max_points=count, progress=lambda n: progress(None, f"{n} points"))  # fmt: skip

    return call, found


def sweep_run(u: Sequence[float], axes: Sequence[Axis], out: Path) -> tuple[str, Compute]:
    """The equilibria for all values of one or two axes, recorded in a folder.

    Args:
        u: inputs that are not varied. out: folder of the results; another sweep that is there must be removed first.
    Raises:
        ModelError: an argument is wrong.
    """
    checks.require(1 <= len(axes) <= 2, "sweep", "must vary one or two values", len(axes))
    checks.require(len({axis.name for axis in axes}) == len(axes), "sweep", "must vary different values", axes)
    for axis in axes:
        checks.number(axis.low, f"{axis.name}: from")
        checks.number(axis.high, f"{axis.name}: to")
        checks.integer(axis.steps, f"{axis.name}: steps", least=2)
    count = int(np.prod([axis.steps for axis in axes]))
    checks.require(count <= _MOST, "sweep", f"must have at most {_MOST:,} samples", count)
    shown = ", ".join(f"{axis.name!r}: ls.Span({axis.low:g}, {axis.high:g}, steps={axis.steps})" for axis in axes)
    given, where = (f", u={_listed(u)}" if any(u) else ""), f"{out.parent.name}/{out.name}"
    call = f"found = ls.sweep(ls.StudyStatics(['q', 'is_stable']{given}), {{{shown}}}, robot=robot, out={where!r})"

    def found(model: Model, progress: Progress) -> Swept:
        spans = {axis.name: Span(axis.low, axis.high, steps=axis.steps) for axis in axes}
        study = StudyStatics(["q", "is_stable"], u=np.array(u) if len(u) else None)
        results = sweep(study, spans, robot=model.description, out=out, workers=1,
                        progress=lambda n: progress(n / count, f"{n} of {count} samples"))  # fmt: skip
        good = np.array([k not in results.failures for k in range(count)])
        q, stable = np.full((count, model.nq), np.nan), np.zeros(count, dtype=bool)
        q[good], stable[good] = results["q"][good], results["is_stable"][good]
        values = np.stack([np.asarray(results[axis.name], dtype=np.float64) for axis in axes], axis=1)
        return Swept(tuple(axes), values, q, stable, out)

    return call, found


def varied_names(robot: Robot, inputs: Sequence[str]) -> list[str]:
    """Names of values that a sweep may vary: the inputs, and all numbers of the description."""
    numbers = [path for path, value in robot.described_values().items() if isinstance(value, int | float | np.floating)
               and not isinstance(value, bool)]  # fmt: skip
    return [*(f"u.{name}" for name in inputs), *numbers]


# -- identification ---------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Measurements.

    Fields:
        t: times (n,) [s]; None if there is no such column. u: inputs (n, nu). measured: positions (n, 3) [m] by (name,
            s) of a rod or name of a link or frame.
    """

    t: np.ndarray | None
    u: np.ndarray
    measured: dict[Any, np.ndarray]


def table_of(path: Path, model: Model) -> Table:
    """Measurements of a CSV file, whose first line names the columns: t [s], inputs by name, and positions [m] as
    `<link or frame>.x`, `.y`, `.z`, on a rod also `<link>@<s>.x`. Inputs without a column are zero; an empty cell is a
    missing measurement. `Trajectory.to_csv` writes such files.

    Raises:
        ModelError: the file is no such table; the line and the column are named.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
    if len(rows) < 2:
        raise ModelError(f"{path.name}: must have a line of names and lines of numbers (got {len(rows)} lines)")
    names = [name.strip() for name in rows[0]]
    values = np.full((len(rows) - 1, len(names)), np.nan)
    for k, row in enumerate(rows[1:]):
        if len(row) != len(names):
            raise ModelError(f"{path.name}, line {k + 2}: must have {len(names)} cells (got {len(row)})")
        for j, cell in enumerate(row):
            try:
                values[k, j] = float(cell) if cell.strip() else np.nan
            except ValueError:
                raise ModelError(f"{path.name}, line {k + 2}: {names[j]}: must be a number (got {cell!r})") from None
    columns = dict(zip(names, values.T))
    u = np.stack([columns.get(name, np.zeros(len(values))) for name in model.inputs.names], axis=1) \
        if model.nu else np.zeros((len(values), 0))  # fmt: skip
    measured: dict[Any, np.ndarray] = {}
    for name in names:
        place, dot, axis = name.rpartition(".")
        if dot and axis == "x" and {f"{place}.y", f"{place}.z"} <= set(names):
            measured[_place(place, model, path)] = np.stack([columns[f"{place}.{x}"] for x in "xyz"], axis=1)
    if not measured:
        raise ModelError(f"{path.name}: must have columns <link>.x, .y and .z (got {', '.join(names[:8])})")
    return Table(columns.get("t"), u, measured)


def _place(text: str, model: Model, path: Path) -> Any:
    name, at, s = text.rpartition("@")
    link = name if at else text
    known = {*model.links.names, *model.frames}
    checks.require(link in known, f"{path.name}: {text}", "must begin with the name of a link or frame", link)
    try:
        return (link, float(s)) if at else link
    except ValueError:
        raise ModelError(f"{path.name}: {text}: must end in @ and an abscissa (got {s!r})") from None


def fit_run(path: Path, parameters: Sequence[str], is_motion: bool, model: Model) -> tuple[str, Compute]:
    """The values that explain a table of measurements, at rest or in one motion from rest at equal steps of time.

    Raises:
        ModelError: the file is no such table, or no parameter is given.
    """
    checks.require(bool(parameters), "identification", "needs the path of at least one value", list(parameters))
    table = table_of(path, model)
    more: dict[str, Any] = {}
    u, words = table.u, ""
    if is_motion:
        t = table.t
        if t is None or len(t) < 3 or not np.isfinite(t).all() or np.ptp(np.diff(t)) > 1e-6 * np.ptp(t):
            raise ModelError(f"{path.name}: a motion must have a column t with equal steps (got {t})")
        more = {"dt": float(t[-1] - t[0]) / (len(t) - 1)}
        u, words = table.u[:-1], f", dt={more['dt']:g}"
    call = f"found = ls.fit(model, {list(parameters)!r}, u, measured{words})  # u and measured from {path.name}"

    def found(model: Model, progress: Progress) -> Any:
        return fit(model, parameters, u, table.measured, progress=lambda n: progress(None, f"{n} values tried"), **more)

    return call, found


def places_of_values(values: Mapping[str, Any], data: Any) -> list[tuple[list[str | int], Any]]:
    """The places in a document of values by their paths.

    Raises:
        ModelError: a path has no place of its own, such as a part of an expression.
    """
    found = []
    for path, value in values.items():
        keys = _keys(path, data)
        if keys is None:
            raise ModelError(f"{path}: has no place of its own in the file; write the value {value!r} there yourself")
        plain = np.asarray(value, dtype=np.float64).tolist()
        found.append((keys, plain))
    return found


def _keys(path: str, data: Any) -> list[str | int] | None:
    for section, items in data.items() if isinstance(data, dict) else ():
        for k, item in enumerate(items if isinstance(items, list) else ()):
            name = item.get("name") if isinstance(item, dict) else None
            if isinstance(name, str) and path.startswith(f"{name}."):
                words: list[str | int] = []
                for word in path[len(name) + 1 :].split("."):
                    stem, *indices = word.split("[")
                    words += [stem, *(int(index.rstrip("]")) for index in indices)]
                for start in ([section, k], [section, k, "body"], [section, k, "path"]):
                    if _holds(data, [*start, *words]):
                        return [*start, *words]
    return [path] if isinstance(data, dict) and path in data else None


def _holds(data: Any, keys: Sequence[str | int]) -> bool:
    """Whether a document has a number or a list of numbers at a place."""
    here: Any = data
    for key in keys:
        if isinstance(here, dict):
            here = here.get(key)
        elif isinstance(here, list) and isinstance(key, int) and key < len(here):
            here = here[key]
        else:
            return False
    return not isinstance(here, dict | str | None)


# -- on the screen ----------------------------------------------------------------------------------------------------


def shown_as_motion(model: Model, q: np.ndarray, u: np.ndarray) -> Trajectory:
    """Configurations (n, nq) one after another as a motion of some seconds, under constant inputs (nu,)."""
    t = np.linspace(0.0, _SHOWN, max(len(q), 2))
    rows = q if len(q) > 1 else np.repeat(q, 2, axis=0)
    if len(rows) < _FRAMES:
        at = np.linspace(0.0, len(rows) - 1.0, _FRAMES)
        k = np.minimum(at.astype(int), len(rows) - 2)
        part = (at - k)[:, None]
        rows = integrate(model, rows[k], part * difference(model, rows[k], rows[k + 1]))
        t = np.linspace(0.0, _SHOWN, _FRAMES)
    n = len(t)
    nothing, forces = np.full((n, model.nv), np.nan), np.full((n, model.n_multipliers), np.nan)
    cost = Statistics("rests", n, 0, 0, 0.0)
    return Trajectory(t, rows, np.zeros((n, model.nv)), nothing, np.tile(u, (n, 1)), forces, np.zeros((n, 0)), cost)


def _listed(u: Sequence[float]) -> str:
    return "[" + ", ".join(f"{x:.6g}" for x in u) + "]"
