"""What is done with each sample of a sweep: statics, a simulation, or a function of the user's.

Trials of one model are computed together, in one launch, where each comes out the same to the last bit as alone; where
one of them fails, they are computed one by one. What computes is imported where it is called, so that a process that
needs none of it begins at once.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import checks
from lissom.studies.trials import Trial

if TYPE_CHECKING:
    from lissom.model.model import Model
    from lissom.robot.robot import Robot

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
    """What a sweep computes of each sample.

    Law: the outcome of a trial does not depend on the trials that it is computed with.
    """

    @abstractmethod
    def run(self, trials: Sequence[Trial]) -> list[Outcome]:
        """The results of each trial by name, or why there are none."""

    @abstractmethod
    def unit(self, name: str) -> str:
        """The unit of a result."""

    @abstractmethod
    def check(self, robot: Robot | None) -> None:
        """Raise ModelError at what would spoil every sample of a robot."""

    @abstractmethod
    def text(self) -> str:
        """What says whether two studies are the same."""


@final
@dataclass(frozen=True)
class StudyFunction(Study):
    """A function of a trial that returns numbers or arrays by name, with their units."""

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
        results: fields of Equilibrium; `<link or frame>.position` [m] and `.pose`; `energy.total`, `.kinetic`,
            `.gravitational` and `.elastic` [J].
        u, q0: as of `solve_statics`; parameters replace entries of them.
        options: further arguments of `solve_statics`.
    """

    results: Sequence[str] = ("q", "is_stable")
    u: Any = None
    q0: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, trials: Sequence[Trial]) -> list[Outcome]:
        return _in_groups(trials, self._together)

    def unit(self, name: str) -> str:
        return _unit(name, _OF_STATICS)

    def check(self, robot: Robot | None) -> None:
        _check(robot, self.results, _OF_STATICS)

    def text(self) -> str:
        return f"statics {_text_of(self)}"

    def _together(self, model: Model, trials: Sequence[Trial]) -> list[Mapping[str, Any]]:
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
        duration: [s].
        results: fields of Trajectory; `<link or frame>.position` [m] and `.pose`; `energy.total`, `.kinetic`,
            `.gravitational` and `.elastic` [J].
        t_eval: times [s] at which there are results, which then have a leading axis; None: at the end alone.
        u, q0, v0: as of `simulate`; parameters replace entries of them, in ls.Samples at all times.
        controller, method, dt: as of `simulate`. With steps of dt and no controller, samples of one model run at once.
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
            return [outcome for trial in trials for outcome in _in_groups([trial], self._together)]
        return _in_groups(trials, self._together)

    def unit(self, name: str) -> str:
        return _unit(name, _OF_MOTIONS)

    def check(self, robot: Robot | None) -> None:
        _check(robot, self.results, _OF_MOTIONS)

    def text(self) -> str:
        return f"simulation {_text_of(self)}"

    def _together(self, model: Model, trials: Sequence[Trial]) -> list[Mapping[str, Any]]:
        from lissom.integration.simulate import simulate

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
        """The inputs of a trial: constants replace those of ls.Samples at all times."""
        if _is_sampled(self.u):
            return replace(self.u, u=trial.given("u", self.u.u))
        if callable(self.u) and trial.u is not None:
            raise ModelError("study: u must be an array or ls.Samples where inputs are parameters (got a function)")
        return self.u if callable(self.u) else trial.given("u", self.u)


def study_of(task: Any, units: Mapping[str, str] | None) -> Study:
    """What the first argument of `sweep` asks for."""
    if isinstance(task, Study):
        checks.require(units is None, "units", "belong to a function; a study knows its own", units)
        return task
    checks.require(callable(task), "task", "must be a function of a Trial, a StudyStatics or a StudySimulation", task)
    return StudyFunction(task, dict(units or {}))


def _outcome(compute: Callable[[], Any]) -> Any:
    """What a function returns, or what it raises."""
    try:
        return compute()
    except Exception as error:
        return error


def _in_groups(trials: Sequence[Trial], together: Callable[[Model, Sequence[Trial]], list[Any]]) -> list[Outcome]:
    """Outcomes of trials, those of one model computed together; one by one where that fails."""
    found: dict[int, Outcome] = {}
    for model, group in _groups(trials, found):
        rows = _outcome(lambda: together(model, group))  # noqa: B023  (called at once)
        if isinstance(rows, Exception):
            alone = [trial for trial in group if len(group) > 1]
            rows = [_outcome(lambda: together(model, [trial])[0]) for trial in alone] or [rows]  # noqa: B023
        found |= {trial.number: row for trial, row in zip(group, rows)}
    return [found[trial.number] for trial in trials]


def _groups(trials: Sequence[Trial], failed: dict[int, Outcome]) -> Iterator[tuple[Model, list[Trial]]]:
    """Trials by their models; those whose robot cannot be built have failed."""
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
    """Arguments of trials as one; a single trial has no leading axis, so that it is computed as alone."""
    if rows[0] is None or len(rows) == 1:
        return rows[0]
    return np.stack([np.asarray(row, dtype=np.float64) for row in rows])


def _is_sampled(u: Any) -> bool:
    """Whether inputs are ls.Samples."""
    from lissom.integration.inputs import Samples

    return isinstance(u, Samples)


def _inputs(rows: list[Any]) -> Any:
    if _is_sampled(rows[0]) and len(rows) > 1:
        return replace(rows[0], u=np.stack([row.u for row in rows]))
    return rows[0] if callable(rows[0]) else _stacked(rows)


def _check(robot: Robot | None, results: Sequence[str], known: Mapping[str, str]) -> None:
    """Raise ModelError at a result that there is none of."""
    if robot is None:
        raise ModelError("study: statics and simulations need a robot; say robot= (got None)")
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
    """The fields of a study; functions by their names."""
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
    """What Python writes of a value, without the places in memory, which differ from process to process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
