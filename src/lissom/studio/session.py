"""The robot of a document: built again in the background after each edit, at rest under its inputs, and its results.

One thread builds, another one computes results. A page reads what they have found; it never waits for them. The last
good robot stays until a new one has been built.
"""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.dynamics.configuration import integrate
from lissom.dynamics.linearization import Modes, modes
from lissom.dynamics.start import start_configuration
from lissom.errors import AccuracyWarning, ConvergenceError, ModelError, PlausibilityWarning, ShapeError
from lissom.inverse.fit import Fit
from lissom.io.reading import Fault, read
from lissom.io.robot_file import fault_of
from lissom.model.build import build
from lissom.model.model import Model
from lissom.model.redesign import redesign_of
from lissom.robot.functions import Expression
from lissom.robot.paths import sharing, value_at
from lissom.robot.robot import Robot
from lissom.simulation.simulate import simulate
from lissom.simulation.trajectory import Trajectory
from lissom.statics.continuation import Branch
from lissom.statics.equilibrium import Equilibrium, solve_statics
from lissom.stepping.statistics import Statistics
from lissom.studio.document import RobotDocument, files_outside, within
from lissom.studio.runs import Axis, Swept, branch_run, fit_run, places_of_values, shown_as_motion, sweep_run
from lissom.studio.values import table_expression
from lissom.viewing.controls import input_sliders
from lissom.viewing.plots import inputs_by_unit
from lissom.viewing.session import Session

_PAUSE = 0.25  # between two looks at the file [s]
_WIDER = 1.5  # factor of ranges of inputs, below which they stay over an edit
_FPS = 25.0  # pictures of a film a second
_KEPT = 500  # number of times and of calls that are kept
_FRAMES = 60  # pictures of one period of a mode
_PERIODS, _SECONDS = 3, 2.0  # periods of a mode in a motion, and their duration on the screen [s]
_LARGE = 0.4  # amplitude of a mode: displacement relative to the sizes of coordinates
_TOLD = (ModelError, ShapeError, ConvergenceError, OSError)  # errors whose text is meant for the user


@final
class Stopped(KeyboardInterrupt):
    """A computation was stopped by the user, as by Ctrl-C: what is found so far is its `partial`."""


@final
@dataclass(frozen=True)
class Result:
    """A result with a name.

    Fields:
        name: name of the result.
        kind: "statics", "motion", "modes", "branch", "sweep" or "fit".
        model: the robot that it is of.
        value: an Equilibrium, a Trajectory, Modes, a Branch, Swept equilibria or a Fit.
        call: the call of the library that gives it.
        seconds: computing time [s].
    """

    name: str
    kind: str
    model: Model
    value: Any
    call: str
    seconds: float


@final
@dataclass
class Run:
    """A computation that is running.

    Fields:
        name, call: of the result, and the call of the library.
        began: time of the clock [s].
        done: part of the work done, 0 to 1; None if the amount of work is unknown.
        said: the work done in words, such as "3 of 11 samples".
        is_stopped: whether the user has asked it to stop.
    """

    name: str
    call: str
    began: float
    done: float | None = None
    said: str = ""
    is_stopped: bool = False

    def advance(self, part: float | None = None, said: str = "") -> None:
        """Note the part of the work that is done, 0 to 1, and the same in words; raise Stopped once the user has asked
        for it."""
        self.done, self.said = None if part is None else min(float(part), 1.0), said
        if self.is_stopped:
            raise Stopped

    @property
    def text(self) -> str:
        """What is done, and the time that it has taken, in one line; with the time that is left if that is known."""
        spent = time.perf_counter() - self.began
        words = [f"{self.name}: {self.said or 'computing'}", f"{spent:.0f} s"]
        if self.done and spent > 1.0:
            words.append(f"{spent * (1.0 - self.done) / self.done:.0f} s left")
        return ", ".join(words)


@final
@dataclass
class Built:
    """What is known about one version of the document.

    Fields:
        version: of the document.
        faults: mistakes, which the robot that is shown does not have.
        doubts: warnings about the robot that is shown.
        seconds: time from the edit until the robot was shown [s].
    """

    version: int = -1
    faults: list[Fault] = field(default_factory=list)
    doubts: list[Fault] = field(default_factory=list)
    seconds: float = 0.0


@final
class StudioSession:
    """A document, the last good robot that it describes, and the results.

    Args:
        document: the robot file.
        show: called with the viewer's session of each new robot, or of a result.
        show_ranges: called with the session that is shown after its inputs have got other ranges.
    Fields:
        built: what is known about the last version that was built.
        model, view: the last good robot, and the session in which it is shown; None before the first one.
        calls: calls of the library so far, the last one at the end.
        results: results by name.
        run: the computation that is running; None if none is.
        note: the last message about a computation.
    """

    def __init__(
        self,
        document: RobotDocument,
        show: Callable[[Session], Any] = lambda session: None,
        show_ranges: Callable[[Session], Any] = lambda session: None,
    ) -> None:
        self.document, self._show, self._show_ranges, self._is_ranged = document, show, show_ranges, True
        self.built = Built()
        self.model: Model | None = None
        self.view: Session | None = None
        self.calls: deque[str] = deque(maxlen=_KEPT)
        self.times: deque[float] = deque(maxlen=_KEPT)
        self.results: dict[str, Result] = {}
        self.ghosts: list[str] = []  # names of results that stay in the scene beside others
        self.run: Run | None = None
        self.note = ""
        self.inputs: dict[str, float] = {}
        self.building: float | None = None
        self._last_doubts: list[str] = []
        self._has_loaded = False
        self._data: Any = {}
        self._changed: float | None = time.perf_counter()
        self._due, self._ends, self._lock = threading.Condition(), threading.Event(), threading.RLock()
        self._thread = threading.Thread(target=self._follow, name="lissom studio", daemon=True)
        document.listeners.append(self._on_change)
        self._thread.start()

    def stop(self) -> None:
        """End the threads."""
        self._ends.set()
        with self._due:
            self._due.notify_all()
        self._thread.join(timeout=10.0)

    def wait(self, seconds: float = 60.0) -> bool:
        """Wait until the last version of the document has been built. Returns whether it has."""
        with self._due:
            return self._due.wait_for(lambda: self.built.version == self.document.version, seconds)

    @property
    def busy_for(self) -> float:
        """Time for which the present version has been built so far [s]; 0 if nothing is built."""
        began = self.building
        return 0.0 if began is None else time.perf_counter() - began

    # -- building -----------------------------------------------------------------------------------------------------

    def _on_change(self) -> None:
        with self._due:
            self._changed = time.perf_counter()
            self._due.notify_all()

    def _follow(self) -> None:
        """Build each version of the document, and look at the file on the disk."""
        while not self._ends.is_set():
            if self.built.version != self.document.version:
                self._build()
                continue
            try:
                self.document.refresh()
            except (ModelError, OSError) as error:
                self.note = str(error)
            with self._due:
                is_due = self._due.wait_for(
                    lambda: self._ends.is_set() or self.built.version != self.document.version, timeout=_PAUSE
                )
            if not is_due:
                self._find_ranges()

    def _find_ranges(self) -> None:
        """Find the ranges of inputs again some time after an edit, which takes over those of the robot before."""
        view = self.view
        if self._is_ranged or view is None or self.built.version != self.document.version:
            return
        self._is_ranged = True
        found = input_sliders(view.model)
        if any(max(one.high, old.high) > _WIDER * min(one.high, old.high) for one, old in zip(found, view.inputs)):
            view.inputs = found
            self._show_ranges(view)

    def _build(self) -> None:
        version, text = self.document.version, self.document.text
        began, self.building = self._changed or time.perf_counter(), time.perf_counter()
        try:
            found = self._built(text)
        except Exception as error:  # a mistake of the library must not end the thread
            logging.getLogger("lissom").exception("studio")
            found = [Fault(1, f"{type(error).__name__}: {error}")], []
        seconds = time.perf_counter() - began
        with self._due:
            self.building = None
            self.built = Built(version, *found, seconds)
            if not found[0]:
                self.times.append(seconds)
            self._due.notify_all()

    def _built(self, text: str) -> tuple[list[Fault], list[Fault]]:
        """Build and show the robot of a text. Returns mistakes, with which nothing is shown, and warnings."""
        name = self.document.name
        try:
            robot, faults = read(text, name)
        except ModelError as error:
            return [_of_syntax(str(error), name)], []
        outside = files_outside(self.document.data, self.document.folder)
        faults = [*faults, *(Fault(1, message, tuple(keys)) for keys, message in outside)]
        if robot is not None and not robot.links and not self.document.names("links"):
            return [], []
        if robot is None or faults:
            return faults, []
        try:
            model, caught = self._model(robot)
            view = self._session(model)
        except (ModelError, ConvergenceError) as error:  # such as a loop that cannot be closed
            return [fault_of(str(error), text, name)], []
        self.model, self.view = model, view
        if not self._has_loaded:
            self._has_loaded = True
            self._load_results(model)
        self._show(view)
        return [], [fault_of(message, text, name) for message in caught]

    def _model(self, robot: Robot) -> tuple[Model, list[str]]:
        """The model of a description and the warnings of its build; of the last model only what differs is computed."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = None
            if self.model is not None:
                robot = sharing(robot, self.model.description)
                model = redesign_of(self.model).model(robot)
            call = "model = robot.build()" if model is None else _with(robot, self._paths())
            if model is None:
                model, self._data = build(robot, like=self.model), self.document.data
                self._last_doubts = _told(caught)
        self._say(call)
        return model, self._last_doubts

    def _paths(self) -> list[str]:
        """The paths of the values in which the document differs from the one of the last model."""
        before, self._data = self._data, self.document.data
        return [path for keys in changed_places(before, self._data) if (path := path_of(keys, self._data))]

    def _session(self, model: Model) -> Session:
        """The robot at rest under its inputs, near where it was."""
        before = self.view
        same = before is not None and alike(before.model, model)
        names = model.inputs.names
        if before is not None and before.mode != "replay":  # whose inputs are those of a result
            self.inputs |= dict(zip(before.model.inputs.names, before.u.tolist()))
        u = [self.inputs.get(name, 0.0) for name in names]
        known = before.inputs if before is not None and _have_same_inputs(before.model, model) else None
        view = Session(model, None, None, u, before if same else None, known)
        self._is_ranged = known is None
        if before is not None:
            view.set_shape(before.q if same else kept_shape(before.model, before.q, model))
        mode = before.mode if before is not None else "equilibrium"
        view.set_mode("equilibrium" if mode in ("replay", "simulate") else mode)
        view.update(0.0)
        if not view.is_good and view.mode == "equilibrium" and not same:
            view.set_shape(view.start)
            view.update(0.0)
        self._say(call_of(view))
        return view

    def _say(self, call: str) -> None:
        if call and (not self.calls or self.calls[-1] != call):
            self.calls.append(call)

    # -- results ------------------------------------------------------------------------------------------------------

    def compute(self, name: str, kind: str, call: str, function: Callable[[Model, Run], Any]) -> bool:
        """Compute a result in the background. Returns False if another computation is running.

        Args:
            name: of the result; an older one of this name is replaced.
            kind: of the result.
            call: the call of the library.
            function: called with the robot and the Run, whose `advance` it calls now and then.
        Raises:
            ModelError: there is no robot yet.
        """
        if self.model is None:
            raise ModelError("studio: a robot without mistakes is needed first")
        with self._lock:
            if self.run is not None:
                return False
            self.run = Run(name, call, time.perf_counter())
        work = threading.Thread(target=self._compute, args=(name, kind, function, self.model, self.run), daemon=True)
        work.start()
        return True

    def _compute(self, name: str, kind: str, function: Callable[[Model, Run], Any], model: Model, run: Run) -> None:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                value = function(model, run)
            told = "; ".join(_told(caught))
            if value is None:  # a file
                self._say(run.call)
                self.note = f"wrote {name} in {_duration(time.perf_counter() - run.began)}"
                return
            self._keep(Result(name, kind, model, value, run.call, time.perf_counter() - run.began), told)
        except Stopped as stop:
            self._keep_part(name, kind, model, run, stop, "stopped")
        except _TOLD as error:
            self._keep_part(name, kind, model, run, error, str(error))
        except Exception as error:  # shown on the page, and in the log with its place
            logging.getLogger("lissom").exception("studio")
            self.note = f"{name}: {type(error).__name__}: {error}"
        finally:
            self.run = None

    def _keep(self, result: Result, told: str) -> None:
        """Keep a result and show it."""
        self.results[result.name] = result
        self._say(result.call)
        said = f"{result.name}: {summary(result)} in {_duration(result.seconds)}"
        self.note = said + (f"; {told}" if told else "")
        self.show_result(result.name)

    def _keep_part(self, name: str, kind: str, model: Model, run: Run, error: BaseException, why: str) -> None:
        """Keep the branch so far of a computation that has ended early; of others, say why only."""
        part = getattr(error, "partial", None)
        if kind == "branch" and isinstance(part, Branch) and len(part.factor) > 1:
            self._keep(Result(name, kind, model, part, run.call, time.perf_counter() - run.began), why)
        else:
            self.note = f"{name}: {why}"

    def stop_run(self) -> None:
        """Ask the computation that is running to stop; it does so at its next step."""
        if self.run is not None:
            self.run.is_stopped = True

    def solve_statics(self, name: str, u: list[float]) -> bool:
        """Find the equilibrium under inputs u [their units] and keep it under a name."""
        call = f"rest = ls.solve_statics(model, u={_listed(u)})"
        return self.compute(name, "statics", call, lambda model, run: self._rest(model, u, run))

    def _rest(self, model: Model, u: Any, run: Run) -> Equilibrium:
        """The equilibrium near the one that is shown; a long search can be stopped."""
        return solve_statics(model, u, self._guess(model), progress=lambda done: run.advance())

    def _guess(self, model: Model) -> np.ndarray | None:
        view = self.view
        return None if view is None or view.model is not model else view.q

    def simulate(self, name: str, duration: float, u: list[str], from_rest: bool) -> bool:
        """Simulate a motion and keep it under a name.

        Args:
            duration: end time [s].
            u: a number, or an expression of t, for each input.
            from_rest: whether the motion starts at the equilibrium under the inputs at t = 0, or at the start of the
                robot, as drawn.
        Raises:
            ModelError: an expression has a mistake.
        """
        inputs = inputs_of(u)
        given = f"ls.Expression({inputs.source!r}, 't')" if isinstance(inputs, Expression) else _listed(inputs)
        start = "rest.q" if from_rest else "None"
        call = f"motion = ls.simulate(model, {duration:g}, {start}, u={given})" if u else (
            f"motion = ls.simulate(model, {duration:g}, {start})")  # fmt: skip

        def moved(model: Model, run: Run) -> Trajectory:
            first = None
            if from_rest:
                here = inputs(0.0) if isinstance(inputs, Expression) else inputs
                first = self._rest(model, here if u else None, run).q
            return simulate(model, duration, first, None, inputs if u else None,
                            progress=lambda t: run.advance(t / duration, f"{t:.3g} of {duration:g} s"))  # fmt: skip

        return self.compute(name, "motion", call, moved)

    def find_modes(self, name: str, u: list[float]) -> bool:
        """Find the natural frequencies about the equilibrium under inputs u and keep them under a name."""
        call = f"found = ls.modes(model, ls.solve_statics(model, u={_listed(u)}).q, u={_listed(u)})"

        def found(model: Model, run: Run) -> Modes:
            rest = self._rest(model, u, run)
            run.advance()
            return modes(model, rest.q, u)

        return self.compute(name, "modes", call, found)

    def follow_branch(self, name: str, u: list[float], end: float, step: float, points: int) -> bool:
        """Follow the branch of equilibria to the load factor `end`; see `branch_run`."""
        call, found = branch_run(u, end, step, points)
        return self.compute(name, "branch", call, lambda model, run: found(model, run.advance))

    def sweep(self, name: str, u: list[float], axes: Sequence[Axis]) -> bool:
        """Find the equilibria for all values of one or two axes and record them beside the robot; see `sweep_run`."""
        call, found = sweep_run(u, axes, self._results_folder() / name)
        return self.compute(name, "sweep", call, lambda model, run: found(model, run.advance))

    def identify(self, name: str, file: str, parameters: Sequence[str], is_motion: bool) -> bool:
        """Fit values to the measurements of a CSV file below the folder of the robot; see `fit_run`."""
        if self.model is None:
            raise ModelError("studio: a robot without mistakes is needed first")
        call, found = fit_run(within(self.document.folder, file), parameters, is_motion, self.model)
        return self.compute(name, "fit", call, lambda model, run: found(model, run.advance))

    def take_values(self, name: str) -> None:
        """Write the values of an identification into the document, each as one edit.

        Raises:
            ModelError: a value has no place of its own in the file.
        """
        for keys, value in places_of_values(self.results[name].value.values, self.document.data):
            self.document.put(keys, value)

    def rename(self, name: str, new: str) -> None:
        """Give a result another name.

        Raises:
            ModelError: the name is taken or empty.
        """
        if not new or new in self.results:
            raise ModelError(f"result: the name must be new (got {new!r})")
        self.results = {new if key == name else key: replace(result, name=new) if key == name else result
                        for key, result in self.results.items()}  # fmt: skip
        self.ghosts = [new if key == name else key for key in self.ghosts]

    def forget(self, name: str) -> None:
        """Drop a result, and its ghost."""
        self.results.pop(name, None)
        if name in self.ghosts:
            self.toggle_ghost(name)

    def toggle_ghost(self, name: str) -> None:
        """Keep a result in the scene as a ghost beside what is shown, or remove it."""
        self.ghosts = [one for one in self.ghosts if one != name] if name in self.ghosts else [*self.ghosts, name]
        if self.view is not None:
            self._show(self.view)

    def ghost_motions(self) -> list[tuple[str, Model, Trajectory]]:
        """Name, robot and motion of each ghost."""
        known = [self.results[name] for name in self.ghosts if name in self.results]
        return [(one.name, one.model, self._motion_of(one, 0)) for one in known]

    def show_result(self, name: str, mode: int = 0) -> None:
        """Show a result: an equilibrium, a motion to replay, or a mode of vibration, counted from 0."""
        result = self.results[name]
        if result.kind == "statics":
            view = Session(result.model, result.value.q, None, result.value.u)
            view.set_mode("equilibrium")
        else:
            view = Session(result.model, None, self._motion_of(result, mode))
        view.update(0.0)
        self.view = view
        self._show(view)

    def _motion_of(self, result: Result, mode: int) -> Trajectory:
        """A result as a motion on the screen."""
        value, model = result.value, result.model
        if result.kind in ("motion", "modes"):
            return value if result.kind == "motion" else mode_motion(value, mode)
        if result.kind == "fit":
            rest = value.equilibrium
            return shown_as_motion(model, value.motion.q if rest is None else rest.q, np.zeros(model.nu))
        rows = value.q[value.found] if result.kind == "sweep" else np.atleast_2d(value.q)
        if not len(rows):
            raise ModelError(f"{result.name}: no equilibrium was found; the folder {value.path.name!r} says why")
        return shown_as_motion(model, rows, np.atleast_2d(getattr(value, "u", np.zeros(model.nu)))[0])

    def back(self) -> None:
        """Show the robot of the document again."""
        if self.model is not None:
            self.view = self._session(self.model)
            self._show(self.view)

    def store(self, name: str, ending: str) -> Path:
        """Write a result into the folder of results beside the robot file, and return its path.

        Args:
            ending: "npz", "csv", "mat" or "png" of a motion; "png" of others.
        Raises:
            ModelError: there is no such result, or it has no such file.
        """
        from lissom.viewing.render import render

        result = self.results.get(name)
        if result is None or (ending != "png" and result.kind != "motion"):
            raise ModelError(f"result {name!r}: must be a motion, or its file a picture (got .{ending})")
        folder = self._results_folder()
        folder.mkdir(exist_ok=True)
        path = within(folder, f"{name}.{ending}")
        if ending == "png":
            is_many = result.kind in ("branch", "sweep", "fit")
            render(
                result.model, self._motion_of(result, 0) if is_many or result.kind == "motion" else result.value.q, path
            )
        elif ending == "csv":
            result.value.to_csv(path, model=result.model)
        elif ending == "mat":
            result.value.to_mat(path, model=result.model)
        else:
            result.value.save(path)
        self._say({"png": f"ls.render(model, motion, {path.name!r})", "csv": f"motion.to_csv({path.name!r})",
                   "mat": f"motion.to_mat({path.name!r})"}.get(ending, f"motion.save({path.name!r})"))  # fmt: skip
        return path

    def film(self, name: str) -> bool:
        """Film a result in the background, as `Trajectory.animate` does, into the folder of results beside the robot
        file. Returns False if a computation is running.

        Raises:
            ModelError: there is no such result, or nothing of it moves.
        """
        from lissom.viewing.render import chosen_speed

        result = self.results.get(name)
        if result is None or result.kind == "statics":
            raise ModelError(f"result {name!r}: must move, as motions, modes, branches and sweeps do")
        motion, path = self._motion_of(result, 0), within(self._results_folder(), f"{name}.mp4")
        duration = float(motion.t[-1] - motion.t[0])
        count = max(duration * _FPS / chosen_speed(duration), 1.0)

        def filmed(_: Model, run: Run) -> None:
            path.parent.mkdir(exist_ok=True)
            motion.animate(path, model=result.model, fps=_FPS,
                           progress=lambda n: run.advance(n / count, f"{n:.0f} of {count:.0f} pictures"))  # fmt: skip

        return self.compute(path.name, "film", f"motion.animate({path.name!r})", filmed)

    def _results_folder(self) -> Path:
        """Folder of results beside the robot file."""
        stem = "robot" if self.document.path is None else self.document.path.stem
        return self.document.folder / f"{stem} results"

    def _load_results(self, model: Model) -> None:
        """Motions of this robot that were written before."""
        for path in sorted(self._results_folder().glob("*.npz")):
            try:
                motion = Trajectory.load(path)
            except (OSError, ValueError, KeyError, ShapeError, ModelError) as error:
                self.note = f"{path.name}: {error}"
                continue
            if motion.q.ndim == 2 and motion.q.shape[1] == model.nq and motion.u.shape[1] == model.nu:
                call = f"motion = ls.Trajectory.load({path.name!r})"
                self.results[path.stem] = Result(path.stem, "motion", model, motion, call, 0.0)


def changed_places(a: Any, b: Any, keys: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The places at which two documents of one structure hold different values."""
    if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
        return [place for key in b for place in changed_places(a[key], b[key], (*keys, key))]
    is_list = isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and not all(map(_is_number, b))
    if is_list:
        return [place for k, item in enumerate(b) for place in changed_places(a[k], item, (*keys, k))]
    return [] if a == b else [keys]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def path_of(keys: Sequence[str | int], data: Any) -> str:
    """The path, as for `Robot.with_`, of the value at a place of a document; empty if there is none."""
    if len(keys) < 3 or not isinstance(keys[1], int):
        return str(keys[0]) if len(keys) == 1 else ""
    name = data[keys[0]][keys[1]].get("name", "")
    words = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys[2:]]
    return f"{name}{''.join(words)}".replace(".body.", ".").removesuffix(".expression")


def _with(robot: Robot, paths: list[str]) -> str:
    """The call that makes the values at some paths those of a robot; empty if there are none."""
    values = []
    for path in paths:
        try:
            values.append(f"{path!r}: {value_at(robot, path)!r}")
        except ModelError:  # a place that is no path, such as a part of an expression
            return "model = model.with_(...)"
    return "model = model.with_({" + ", ".join(values) + "})" if values else ""


def alike(a: Model, b: Model) -> bool:
    """Whether two models have the same coordinates and inputs."""
    same = a.nq == b.nq and a.nv == b.nv and a.links.names == b.links.names and _have_same_inputs(a, b)
    return same and np.array_equal(a.links.v_start, b.links.v_start) and set(a.frames) == set(b.frames)


def _have_same_inputs(a: Model, b: Model) -> bool:
    """Whether two models have inputs of the same names and units."""
    return a.inputs.names == b.inputs.names and inputs_by_unit(a) == inputs_by_unit(b)


def kept_shape(old: Model, q: np.ndarray, new: Model) -> np.ndarray:
    """The shape of a robot, as far as another robot has links of the same names and numbers of coordinates. Only for
    robots without quaternions, whose shares of q and v agree; others begin at their start."""
    shape = start_configuration(new)
    if old.nq != old.nv or new.nq != new.nv:
        return shape
    ends = [[*model.links.v_start.tolist()[1:], model.nv] for model in (old, new)]
    before = {name: (int(old.links.v_start[k]), ends[0][k]) for k, name in enumerate(old.links.names)}
    for k, name in enumerate(new.links.names):
        first, last = int(new.links.v_start[k]), ends[1][k]
        if name in before and before[name][1] - before[name][0] == last - first:
            shape[first:last] = q[slice(*before[name])]
    return shape


def inputs_of(texts: list[str]) -> Expression | list[float]:
    """Inputs from texts: numbers, or an Expression of t if one of the texts is no number. A text such as "0: 1, 2: 5"
    is a table of times and values."""
    try:
        return [float(text) for text in texts]
    except ValueError:
        return Expression([table_expression(text) or text.strip() or "0" for text in texts], "t")


def mode_motion(found: Modes, k: int) -> Trajectory:
    """A vibration in the mode k as a motion, slow and large enough to be seen."""
    model = found.model
    assert isinstance(model, Model)
    shape = np.real(found.shapes[:, k])
    scale = float(np.abs(shape / model.dofs.scale).max()) or 1.0
    t = np.linspace(0.0, _PERIODS * _SECONDS, _PERIODS * _FRAMES + 1)
    part = _LARGE / scale * np.sin(2.0 * np.pi * t / _SECONDS)
    q = integrate(model, np.tile(found.q, (len(t), 1)), part[:, None] * shape)
    none, n = np.full((len(t), model.nv), np.nan), len(t)
    cost = Statistics("mode", n, 0, 0, 0.0)
    u = np.tile(found.u, (n, 1))
    return Trajectory(t, q, np.zeros((n, model.nv)), none, u, np.full((n, model.n_multipliers), np.nan),
                      np.zeros((n, 0)), cost)  # fmt: skip


def summary(result: Result) -> str:
    """A result in one line."""
    value = result.value
    if isinstance(value, Equilibrium):
        count = int(value.unstable_count)
        return "stable equilibrium" if not count else f"equilibrium with {count} unstable modes"
    if isinstance(value, Trajectory):
        return f"motion of {value.t[-1]:g} s, {len(value.t)} states"
    if isinstance(value, Branch):
        kinds = [event.kind for event in value.events]
        events = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        return f"branch of {len(value.factor)} points to the factor {value.factor[-1]:.3g}; {events or 'no events'}"
    if isinstance(value, Swept):
        over = " and ".join(axis.name for axis in value.axes)
        lost = int((~value.found).sum())
        return f"{len(value.q)} equilibria over {over}" + (f", {lost} not found" if lost else "")
    if isinstance(value, Fit):
        return f"{len(value.values)} values; residuals of {value.noise:.2g} m"
    hertz = ", ".join(f"{x / (2 * np.pi):.3g}" for x in value.frequencies[:4])
    return f"{len(value.frequencies)} modes: {hertz}{', ...' if len(value.frequencies) > 4 else ''} Hz"


def call_of(view: Session) -> str:
    """The call of the library that gives what a viewer shows; empty for a replay."""
    if view.mode == "equilibrium":
        return f"rest = ls.solve_statics(model, u={_listed(view.u.tolist())})"
    if view.mode == "simulate":
        return f"stepper = ls.Stepper(model, 1 / 240, u={_listed(view.u.tolist())})"
    return "" if view.mode == "replay" else "g = ls.forward_kinematics(model, q)"


def _listed(u: list[float]) -> str:
    return "[" + ", ".join(f"{x:.6g}" for x in u) + "]"


def _told(caught: list[warnings.WarningMessage]) -> list[str]:
    kinds = (AccuracyWarning, PlausibilityWarning)
    return list(dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, kinds)))


def _duration(seconds: float) -> str:
    """A computing time in words."""
    return f"{seconds:.2g} s" if seconds < 10.0 else f"{seconds:.0f} s"


def _of_syntax(message: str, name: str) -> Fault:
    """The fault of a text that is not YAML, whose message names file and line."""
    where, _, text = message.removeprefix(f"{name}, line ").partition(": ")
    return Fault(int(where), text) if where.isdecimal() else Fault(1, message)
