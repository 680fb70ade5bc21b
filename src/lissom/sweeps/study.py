"""The study that a sweep computes for each sample: statics, a simulation, or a user's function.

| parameter | value |
|---|---|
| a path of the description (robot.paths) | a value of the robot |
| `u.<input>` | a constant input |
| `q0[k]`, `v0[k]` | a coordinate of the start of the whole robot |
| `q0.<link>[k]`, `v0.<link>[k]` | a coordinate of the start of a link |
| `extra.<name>` | a number for the user's function only |

Without a robot every name is of the last kind.

Trials of one model are computed in one launch. Each result is equal to the result of a single trial, to the last bit.
If a trial fails, they are computed one after another. Functions of this module import the modules that compute only
when they are called, so that processes start quickly.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.dynamics.start import default_start
from lissom.errors import ModelError, check_kept
from lissom.robot import checks, formatting
from lissom.robot.paths import is_value, unit_of, value_at
from lissom.robot.robot import Robot

if TYPE_CHECKING:
    from lissom.model.model import Model

_START = re.compile(r"(q0|v0)(?:\.(.+))?\[(\d+)\]")
_EXTRA, _INPUT = "extra.", "u."
_KEPT = 8  # largest number of models in the cache


def is_described(name: str) -> bool:
    """Whether a parameter of a sweep with a robot is a path of its description."""
    return not (name.startswith((_EXTRA, _INPUT)) or _START.fullmatch(name))


def parameter_units(robot: Robot | None, names: tuple[str, ...]) -> dict[str, str]:
    """The units of parameters, read from docstrings; empty if a docstring gives no unit.

    Raises:
        ModelError: the robot has no such parameter; the message lists possible ones.
    """
    if robot is None:
        return dict.fromkeys(names, "")
    for name in filter(is_described, names):
        _check_value(robot, name)
    units = {name: unit_of(robot, name) if is_described(name) else "" for name in names}
    rest = {name: 0.0 for name in names if not is_described(name)}
    if any(not name.startswith(_EXTRA) for name in rest):
        model = robot.build()
        _ = [_chosen(model, rest, which) for which in ("u", "q0", "v0")]
    return units


def _check_value(robot: Robot, name: str) -> None:
    """Raise ModelError if the path of a parameter does not lead to a number: every sample would fail."""
    if is_value(robot, name):
        return
    what = value_at(robot, name)
    is_input = name in robot.actuators or name in robot.couplings
    cure = f"; the input of this name is {_INPUT + name!r}" if is_input else ""
    raise ModelError(f"parameter {name!r}: must lead to a number{cure} (got a {type(what).__name__})")


def _chosen(model: Model, values: Mapping[str, float], which: str) -> dict[int, float]:
    """The entries of u, q0 or v0 that are parameters: value by index."""
    found = {}
    for name, value in values.items():
        if which == "u" and name.startswith(_INPUT):
            found[_input(model, name)] = value
        start = _START.fullmatch(name)
        if start and start[1] == which:
            found[_coordinate(model, name, *start.groups())] = value
    return found


def _input(model: Model, name: str) -> int:
    inputs = list(model.inputs.names)
    word = name.removeprefix(_INPUT)
    if word in inputs:
        return inputs.index(word)
    near = get_close_matches(word, inputs, n=1)
    hint = f"; the nearest is {near[0]!r}" if near else ""
    raise ModelError(f"parameter {name!r}: must name one of the inputs {inputs}{hint} (got {word!r})")


def _coordinate(model: Model, name: str, which: str, link: str | None, text: str) -> int:
    size = model.nq if which == "q0" else model.nv
    first, last, k = 0, size, int(text)
    if link is not None:
        if link not in model.links.names:
            raise ModelError(f"parameter {name!r}: must name one of the links {list(model.links.names)} (got {link!r})")
        starts = model.links.q_start if which == "q0" else model.links.v_start
        ends = [*starts.tolist()[1:], size]
        first, last = int(starts[model.links.names.index(link)]), ends[model.links.names.index(link)]
    if not k < last - first:
        raise ModelError(f"parameter {name!r}: must be below the number of coordinates, {last - first} (got {k})")
    return first + k


@final
class Designs:
    """The robots of a sweep. Trials that differ only in inputs and starts share a model."""

    def __init__(self, robot: Robot | None) -> None:
        self.robot = robot
        self._models: dict[tuple[tuple[str, float], ...], Model] = {}

    def robot_of(self, values: Mapping[str, float]) -> Robot:
        """The description with the values of a trial."""
        if self.robot is None:
            raise ModelError("trial: the sweep has no robot; give robot= to sweep")
        described = {name: value for name, value in values.items() if is_described(name)}
        return self.robot.with_(described) if described else self.robot

    def model_of(self, values: Mapping[str, float]) -> Model:
        """The model with the values of a trial."""
        key = tuple((name, value) for name, value in values.items() if is_described(name))
        model = self._models.get(key)
        if model is None:
            model = self._models[key] = self.robot_of(values).build()
            for old in list(self._models)[:-_KEPT]:
                del self._models[old]
        return model


@final
@formatting.in_one_line
@dataclass(frozen=True, eq=False)
class Trial:
    """One sample of a sweep, for the function that computes its results: `trial["arm.material.young"]`.

    Fields:
        number: number of the sample, from 0.
        values: values by parameter name, in their units.
        designs: the robots of the sweep.
    """

    number: int
    values: dict[str, float]
    designs: Designs

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    @cached_property
    def robot(self) -> Robot:
        """The robot of the sweep with the values of this sample."""
        return self.designs.robot_of(self.values)

    @cached_property
    def model(self) -> Model:
        """The model of `robot`. Trials that differ only in inputs and starts share it."""
        return self.designs.model_of(self.values)

    @property
    def u(self) -> np.ndarray | None:
        """Inputs (nu,). Inputs that are no parameters are zero. None if no input is a parameter."""
        return self.given("u", None)

    @property
    def q0(self) -> np.ndarray | None:
        """Start configuration (nq,). Coordinates that are no parameters are neutral. None if no coordinate is a
        parameter."""
        return self.given("q0", None)

    @property
    def v0(self) -> np.ndarray | None:
        """Start velocity (nv,). Entries that are no parameters are zero. None if no entry is a parameter."""
        return self.given("v0", None)

    def given(self, which: str, base: Any) -> Any:
        """u, q0 or v0: `base` with the values of the parameters. If `base` is None it is zero, or the neutral
        configuration."""
        entries = _chosen(self.model, self.values, which)
        if not entries:
            return base
        plain = {"u": np.zeros(self.model.nu), "q0": default_start(self.model), "v0": np.zeros(self.model.nv)}[which]
        out = plain if base is None else np.array(base, dtype=np.float64)
        for k, value in entries.items():
            out[..., k] = value
        return out


Outcome = Mapping[str, Any] | Exception
_OF_STATES = {"q": "", "v": "", "u": "", "multipliers": ""}
_OF_STATICS = _OF_STATES | {
    "residual": "N·m, N",
    "iterations": "",
    "is_stable": "",
    "unstable_count": "",
    "least_stiffness": "J",
}
_OF_MOTIONS = {"t": "s", "a": ""} | _OF_STATES
_ENERGIES = ("kinetic", "gravitational", "elastic", "total")


class Study(ABC):
    """The computation of a sweep for each sample.

    Law: the outcome of a trial does not depend on other trials in the same call.
    """

    @abstractmethod
    def run(self, trials: Sequence[Trial]) -> list[Outcome]:
        """For each trial its results by name, or its error."""

    @abstractmethod
    def unit(self, name: str) -> str:
        """The unit of a result."""

    @abstractmethod
    def check(self, robot: Robot | None) -> None:
        """Raise ModelError for a mistake that would make every sample fail."""

    @abstractmethod
    def text(self) -> str:
        """A text that is the same for equal studies."""


@final
@dataclass(frozen=True)
class StudyFunction(Study):
    """A user's function of a Trial that returns numbers or arrays by name, with their units."""

    function: Callable[[Trial], Mapping[str, Any]]
    units: Mapping[str, str]

    def run(self, trials: Sequence[Trial]) -> list[Outcome]:
        return [_outcome(lambda trial=trial: self.function(trial)) for trial in trials]

    def unit(self, name: str) -> str:
        return self.units.get(name, "")

    def check(self, robot: Robot | None) -> None:
        pass

    def text(self) -> str:
        named = self.function if hasattr(self.function, "__qualname__") else type(self.function)
        return f"function {named.__module__}.{named.__qualname__}"


@final
@dataclass(frozen=True)
class StudyStatics(Study):
    """Static equilibrium of each sample, for `sweep`.

    Args:
        results: names of results: fields of Equilibrium; `<link or frame>.position` [m] and `.pose`; `energy.total`,
            `.kinetic`, `.gravitational` and `.elastic` [J].
        u, q0: as in `solve_statics`. Parameters replace single entries.
        options: further arguments of `solve_statics`.
    """

    results: Sequence[str] = ("q", "is_stable")
    u: Any = None
    q0: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, trials: Sequence[Trial]) -> list[Outcome]:
        return _in_groups(trials, self._batch)

    def unit(self, name: str) -> str:
        return _unit(name, _OF_STATICS)

    def check(self, robot: Robot | None) -> None:
        _check(robot, self.results, _OF_STATICS)

    def text(self) -> str:
        return f"statics {_text_of(self)}"

    def _batch(self, model: Model, trials: Sequence[Trial]) -> list[Mapping[str, Any]]:
        from lissom.statics.equilibrium import solve_statics

        u, q0 = (_stacked([trial.given(name, getattr(self, name)) for trial in trials]) for name in ("u", "q0"))
        if u is None and q0 is None and len(trials) > 1:
            u = np.zeros((len(trials), model.nu))
        found = solve_statics(model, u, q0, **self.options)
        arrays = {name: _result(name, model, found, found.q, found.v) for name in self.results}
        return _each(arrays, len(trials), len(trials) > 1)


@final
@dataclass(frozen=True)
class StudySimulation(Study):
    """Motion of each sample, for `sweep`.

    Args:
        duration: end time [s].
        results: names of results: fields of Trajectory; `<link or frame>.position` [m] and `.pose`; `energy.total`,
            `.kinetic`, `.gravitational` and `.elastic` [J].
        t_eval: times of the results [s], which add a leading axis. None: only the end.
        u, q0, v0: as in `simulate`. Parameters replace single entries; in ls.Samples at all times.
        controller, method, dt: as in `simulate`. With fixed steps and no controller, samples of one model share
            launches.
        options: further arguments of `simulate`.
    """

    duration: float
    results: Sequence[str] = ("q", "v")
    t_eval: Any = None
    u: Any = None
    q0: Any = None
    v0: Any = None
    controller: Any = None
    method: Any = "auto"
    dt: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, trials: Sequence[Trial]) -> list[Outcome]:
        if self.dt is None or self.controller is not None:
            return [outcome for trial in trials for outcome in _in_groups([trial], self._batch)]
        return _in_groups(trials, self._batch)

    def unit(self, name: str) -> str:
        return _unit(name, _OF_MOTIONS)

    def check(self, robot: Robot | None) -> None:
        _check(robot, self.results, _OF_MOTIONS)

    def text(self) -> str:
        return f"simulation {_text_of(self)}"

    def _batch(self, model: Model, trials: Sequence[Trial]) -> list[Mapping[str, Any]]:
        from lissom.simulation.simulate import simulate

        check_kept("t_eval", self.t_eval)
        times = np.array([self.duration] if self.t_eval is None else self.t_eval, dtype=np.float64)
        q0, v0 = (_stacked([trial.given(name, getattr(self, name)) for trial in trials]) for name in ("q0", "v0"))
        u = None if self.controller is not None else _inputs([self._u(trial) for trial in trials])
        if len(trials) > 1 and u is None and q0 is None and v0 is None:
            v0 = np.zeros((len(trials), model.nv))
        motion = simulate(
            model, self.duration, q0, v0, u, method=self.method, dt=self.dt, t_eval=times, controller=self.controller,
            **self.options,
        )  # fmt: skip
        arrays = {name: _result(name, model, motion, motion.q, motion.v) for name in self.results}
        lead = (len(trials),) if motion.q.ndim == 3 else ()
        rows = {name: np.broadcast_to(x, (*lead, len(times))) if name == "t" else x for name, x in arrays.items()}
        shown = rows if self.t_eval is not None else {name: np.take(x, -1, axis=len(lead)) for name, x in rows.items()}
        return _each(shown, len(trials), bool(lead))

    def _u(self, trial: Trial) -> Any:
        """The inputs of a trial. Parameters replace entries of ls.Samples at all times."""
        if _is_sampled(self.u):
            return replace(self.u, u=trial.given("u", self.u.u))
        if callable(self.u) and trial.u is not None:
            raise ModelError("study: u must be an array or ls.Samples if inputs are parameters (got a function)")
        return self.u if callable(self.u) else trial.given("u", self.u)


def study_of(task: Any, units: Mapping[str, str] | None) -> Study:
    """The study of the first argument of `sweep`."""
    if isinstance(task, Study):
        checks.require(units is None, "units", "must be left out for a study, which has units", units)
        return task
    checks.require(callable(task), "task", "must be a function of a Trial, a StudyStatics or a StudySimulation", task)
    return StudyFunction(task, dict(units or {}))


def _outcome(compute: Callable[[], Any]) -> Any:
    """The value of a function, or the error that it raises."""
    try:
        return compute()
    except Exception as error:
        return error


def _in_groups(trials: Sequence[Trial], batch: Callable[[Model, Sequence[Trial]], list[Any]]) -> list[Outcome]:
    """Outcomes of trials. Trials of one model are computed as a batch; if it fails, one after another."""
    found: dict[int, Outcome] = {}
    for model, group in _groups(trials, found):
        rows = _outcome(lambda: batch(model, group))  # noqa: B023  (called at once)
        if isinstance(rows, Exception):
            alone = [trial for trial in group if len(group) > 1]
            rows = [_outcome(lambda: batch(model, [trial])[0]) for trial in alone] or [rows]  # noqa: B023
        found |= {trial.number: row for trial, row in zip(group, rows)}
    return [found[trial.number] for trial in trials]


def _groups(trials: Sequence[Trial], failed: dict[int, Outcome]) -> Iterator[tuple[Model, list[Trial]]]:
    """Trials grouped by model. Trials whose robot cannot be built are added to `failed`."""
    groups: dict[int, tuple[Model, list[Trial]]] = {}
    for trial in trials:
        model = _outcome(lambda: trial.model)  # noqa: B023
        if isinstance(model, Exception):
            failed[trial.number] = model
        else:
            groups.setdefault(id(model), (model, []))[1].append(trial)
    yield from groups.values()


def _each(arrays: Mapping[str, np.ndarray], count: int, is_batch: bool) -> list[Mapping[str, Any]]:
    """The results of each trial."""
    return [{name: x[k] if is_batch else x for name, x in arrays.items()} for k in range(count)]


def _stacked(rows: list[Any]) -> Any:
    """Arguments of trials as one array. A single trial has no leading axis."""
    if rows[0] is None or len(rows) == 1:
        return rows[0]
    return np.stack([np.asarray(row, dtype=np.float64) for row in rows])


def _is_sampled(u: Any) -> bool:
    """Whether inputs are ls.Samples."""
    from lissom.simulation.inputs import Samples

    return isinstance(u, Samples)


def _inputs(rows: list[Any]) -> Any:
    if _is_sampled(rows[0]) and len(rows) > 1:
        return replace(rows[0], u=np.stack([row.u for row in rows]))
    return rows[0] if callable(rows[0]) else _stacked(rows)


def _check(robot: Robot | None, results: Sequence[str], known: Mapping[str, str]) -> None:
    """Raise ModelError for an unknown result."""
    if robot is None:
        raise ModelError("study: statics and simulations need a robot; give robot= (got None)")
    listed = isinstance(results, Sequence) and not isinstance(results, str) and all(isinstance(x, str) for x in results)
    checks.require(listed and len(results) > 0, "study: results", "must be a list of names", results)
    places = {*robot.links, *robot.frames}
    for name in results:
        place, _, what = name.rpartition(".")
        good = name in known or (place == "energy" and what in _ENERGIES)
        good = good or (place in places and what in ("position", "pose"))
        rule = f"must be one of {sorted(known)}, energy.{' | '.join(_ENERGIES)}, <link or frame>.position or .pose"
        checks.require(good, "study: results", rule, name)


def _unit(name: str, known: Mapping[str, str]) -> str:
    return known.get(name, {"position": "m", **dict.fromkeys(_ENERGIES, "J")}.get(name.rpartition(".")[2], ""))


def _result(name: str, model: Model, found: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """One result of an equilibrium or a motion, with the leading axes of q."""
    place, _, what = name.rpartition(".")
    if not place:
        return np.asarray(getattr(found, name))
    if place == "energy":
        from lissom.dynamics.energy import energy

        return np.asarray(getattr(energy(model, q, v), what))
    from lissom.dynamics.kinematics import frame_pose

    pose = frame_pose(model, q, place)
    return pose if what == "pose" else pose[..., :3, 3]


def _text_of(study: Any) -> str:
    """The fields of a study as text; functions by their names."""
    parts = {}
    for name, value in vars(study).items():
        named = getattr(value, "__qualname__", type(value).__qualname__)
        shown = f"{value.t.tolist()} {value.u.tolist()} {value.smooth}" if _is_sampled(value) else None
        plain = (
            value.tolist() if isinstance(value, np.ndarray) else dict(value) if isinstance(value, Mapping) else value
        )
        parts[name] = shown or (named if callable(value) else plain)
    return lasting(parts)


def lasting(value: Any) -> str:
    """The repr of a value without memory addresses, which differ between processes."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
