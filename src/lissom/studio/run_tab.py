"""The tab of the page that computes: inputs, statics, motions, modes, branches, sweeps, identification, results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np

from lissom.studio.curve_dialog import draw_curve, number_field
from lissom.studio.drawings import graph_picture
from lissom.studio.messages import Messages
from lissom.studio.results_list import SMALL, ResultsList
from lissom.studio.runs import Axis, varied_names
from lissom.studio.session import StudioSession, inputs_of
from lissom.studio.values import expression_of, graph, table_expression


@final
class RunTab:
    """The tab "Run", in the container that is current when it is made.

    Args:
        session: the robot and its results. messages: of the page. results: makes the list of results in the tab.
    """

    def __init__(self, session: StudioSession, messages: Messages, results: Callable[[], ResultsList]) -> None:
        self.session, self.messages = session, messages
        self._inputs: tuple[tuple[str, str], ...] = ()
        self._texts: list[Any] = []
        self._graphs: list[Any] = []
        self._noted, self._shown_calls = "", ""
        self._make(results)

    def _make(self, results: Callable[[], ResultsList]) -> None:
        from nicegui import ui

        with ui.scroll_area().classes("w-full h-full"), ui.column().classes("w-full gap-2"):
            ui.label("Inputs: numbers, expressions of t such as 5*sin(2*pi*t), or tables such as 0: 0, 1: 5").classes(
                "text-caption text-grey-7"
            )
            self.inputs = ui.column().classes("w-full gap-1")
            with ui.row().classes("w-full items-center gap-2 no-wrap"):
                self._button("Statics", "anchor", self._statics, "the equilibrium under these inputs (at t = 0)")
                self._button("Modes", "graphic_eq", self._modes, "natural frequencies about the equilibrium")
            with ui.row().classes("w-full items-center gap-2 no-wrap"):
                self.duration = number_field(2.0, "for", "s")
                self.begin = ui.select({True: "from rest", False: "as drawn"}, value=True).props("dense outlined")
                self.begin.tooltip(
                    "start at the equilibrium under the inputs at t = 0, or in the shape of the description"
                )
                self._button("Motion", "play_arrow", self._motion, "a motion under these inputs")
            self.duration.on_value_change(self._draw_inputs)
            self._branch_part()
            self._sweep_part()
            self._fit_part()
            self.results = results()
            ui.label("Calls of the library").classes("text-subtitle2 q-pt-sm")
            self.calls = ui.label("").classes("calls")

    def make_progress(self) -> None:
        """Make the progress of a computation and the last message about one, in the container that is current."""
        from nicegui import ui

        self.progress = ui.linear_progress(0.0, show_value=False).props("instant-feedback data-place=progress")
        with ui.row().classes("w-full items-center gap-2 no-wrap"):
            self.stopper = ui.button("Stop", icon="stop", on_click=self.session.stop_run).props(
                "no-caps dense flat data-place=stop"
            )
            self.done = ui.label("").classes("text-caption")
        self.note = ui.label("").classes("text-caption whitespace-pre-wrap").props("data-place=note")

    def _button(self, text: str, icon: str, react: Callable[[], Any], hint: str) -> None:
        from nicegui import ui

        button = ui.button(text, icon=icon, on_click=react).props(f"no-caps dense data-place={text.lower()}")
        button.classes("q-px-sm").tooltip(hint)

    def _branch_part(self) -> None:
        from nicegui import ui

        with ui.expansion("Branch of equilibria").props("dense dense-toggle").classes("w-full nested"):
            ui.label("Gravity, loads and inputs grow by one factor; folds and bifurcations are found.").classes(
                "text-caption text-grey-7"
            )
            with ui.row().classes("w-full items-center gap-2 no-wrap"):
                self.factor = number_field(1.0, "to", "", "branch-factor")
                self.step = number_field(0.1, "step", "", "branch-step")
                self.points = number_field(200, "points", "", "branch-points")
            self._button("Branch", "timeline", self._branch, "continuation from the unloaded robot")

    def _sweep_part(self) -> None:
        from nicegui import ui

        self.axes: list[tuple[Any, Any, Any, Any]] = []
        with ui.expansion("Sweep").props("dense dense-toggle").classes("w-full nested"):
            ui.label("Equilibria for values of inputs or of the description, recorded beside the robot.").classes(
                "text-caption text-grey-7"
            )
            for k in (0, 1):
                hint = "value" if k == 0 else "second value, or none"
                name = ui.select([], label=hint, with_input=True, clearable=True).props(
                    f"dense outlined data-place=sweep-{k}-name"
                )
                name.classes("w-full")
                with ui.row().classes("w-full gap-2 no-wrap"):
                    ends = [number_field(value, prefix, "", f"sweep-{k}-{prefix}")
                            for value, prefix in ((0.0, "from"), (10.0, "to"), (11, "steps"))]  # fmt: skip
                self.axes.append((name, *ends))
            self._button("Sweep", "grid_on", self._sweep, "the equilibrium for each value")

    def _fit_part(self) -> None:
        from nicegui import ui

        with ui.expansion("Identification").props("dense dense-toggle").classes("w-full nested"):
            ui.label("A CSV file below the folder of the robot with columns of inputs by name and of positions "
                     "link.x, link.y, link.z, on a rod link@0.5.x; a motion has a column t.").classes(
                "text-caption text-grey-7"
            )  # fmt: skip
            self.table = ui.select([], label="file", with_input=True).props("dense outlined data-place=fit-file")
            self.table.classes("w-full").on("focus", lambda: self.table.set_options(self._tables()))
            self.fitted = ui.select([], label="values", multiple=True, with_input=True).props(
                "dense outlined use-chips data-place=fit-values"
            )
            self.fitted.classes("w-full")
            with ui.row().classes("items-center"):
                self.is_motion = ui.switch("one motion").props("dense data-place=fit-motion")
                self._button("Identify", "tune", self._identify, "the values that explain the measurements best")

    # -- inputs -------------------------------------------------------------------------------------------------------

    def show_inputs(self) -> None:
        """One line for each input of the robot, and the names that sweeps and fits may take."""
        from nicegui import ui

        model, view = self.session.model, self.session.view
        if model is not None:
            names = varied_names(model.description, model.inputs.names)
            for name, *_ in self.axes:
                name.set_options(names)
            self.fitted.set_options([name for name in names if not name.startswith("u.")])
            self.table.set_options(self._tables())
        sliders = () if model is None or view is None else tuple((one.name, one.unit) for one in view.inputs)
        if sliders == self._inputs and self._texts:
            return
        known = {name: line.value for (name, _), line in zip(self._inputs, self._texts)}
        self._inputs = sliders
        self.inputs.clear()
        self._texts, self._graphs = [], []
        with self.inputs:
            for k, (name, unit) in enumerate(sliders):
                with ui.row().classes("w-full no-wrap items-center gap-1"):
                    ui.label(name).classes("text-body2").style("width: 30%")
                    line = ui.input(value=known.get(name, ""), placeholder="0").props(f'dense outlined suffix="{unit}"')
                    line.on_value_change(self._draw_inputs)
                    self._texts.append(line.classes("col").props(f'data-place="input-{name}"'))
                    ui.button(icon="gesture", on_click=partial(self._draw_curve, k)).props(
                        f'{SMALL} data-place="draw-{name}"'
                    ).tooltip("draw a curve over time by the mouse")
                self._graphs.append(ui.html("", sanitize=False).classes("w-full"))
            if not sliders:
                ui.label("this robot has no inputs").classes("text-caption text-grey-7")
            else:
                ui.button("take the values of the scene's sliders", on_click=self._take_sliders).props(SMALL)
        self._draw_inputs()

    def _draw_inputs(self) -> None:
        """A graph below each input that changes."""
        duration = float(self.duration.value or 0.0) or 1.0
        for line, picture in zip(self._texts, self._graphs):
            text = (line.value or "").strip()
            text = table_expression(text) or text
            found = graph(expression_of([text], "t", "t"), "t", longest=duration) if "t" in text else None
            picture.set_content(graph_picture(found, "t"))

    def _take_sliders(self) -> None:
        view = self.session.view
        if view is not None:
            for line, value in zip(self._texts, view.u.tolist()):
                line.value = f"{value:.6g}"

    def _draw_curve(self, k: int) -> None:
        """Let the mouse draw an input."""
        line, (name, unit) = self._texts[k], self._inputs[k]
        draw_curve(name, unit, float(self.duration.value or 1.0), line.set_value)

    def _start_inputs(self) -> list[float]:
        """The inputs at t = 0."""
        found = inputs_of([line.value or "0" for line in self._texts])
        return found if isinstance(found, list) else np.asarray(found(0.0), dtype=np.float64).tolist()

    def _tables(self) -> list[str]:
        """CSV files below the folder of the robot."""
        folder = self.session.document.folder
        return [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.csv"))]

    # -- computations -------------------------------------------------------------------------------------------------

    def _free(self, stem: str) -> str:
        k = 1
        while f"{stem} {k}" in self.session.results:
            k += 1
        return f"{stem} {k}"

    def _begun(self, start: Callable[[], Any]) -> None:
        if self.messages.attempt(start) is False:
            self.messages.tell("another computation is running; stop it first")

    def _statics(self) -> None:
        self._begun(lambda: self.session.solve_statics(self._free("statics"), self._start_inputs()))

    def _modes(self) -> None:
        self._begun(lambda: self.session.find_modes(self._free("modes"), self._start_inputs()))

    def _motion(self) -> None:
        texts = [line.value or "0" for line in self._texts]
        duration = float(self.duration.value or 0.0)
        self._begun(lambda: self.session.simulate(self._free("motion"), duration, texts, bool(self.begin.value)))

    def _branch(self) -> None:
        given = [float(line.value or 0.0) for line in (self.factor, self.step, self.points)]
        self._begun(lambda: self.session.follow_branch(
            self._free("branch"), self._start_inputs(), given[0], given[1], int(given[2])))  # fmt: skip

    def _sweep(self) -> None:
        axes = [Axis(name.value, float(low.value or 0.0), float(high.value or 0.0), int(steps.value or 0))
                for name, low, high, steps in self.axes if name.value]  # fmt: skip
        self._begun(lambda: self.session.sweep(self._free("sweep"), self._start_inputs(), axes))

    def _identify(self) -> None:
        file, values = str(self.table.value or ""), list(self.fitted.value or [])
        self._begun(lambda: self.session.identify(self._free("fit"), file, values, bool(self.is_motion.value)))

    # -- results ------------------------------------------------------------------------------------------------------

    def poll(self) -> None:
        """Show what has changed since the last look."""
        session, run = self.session, self.session.run
        calls = "\n".join(session.calls)
        if calls != self._shown_calls:
            self._shown_calls = calls
            self.calls.set_text(calls)
        for part in (self.progress, self.done, self.stopper):
            part.set_visibility(run is not None)
        if run is not None:
            self.progress.set_value(run.done or 0.0)
            self.progress.props(**({"add": "indeterminate"} if run.done is None else {"remove": "indeterminate"}))
            self.done.set_text(run.text)
        noted = f"{session.note}|{','.join(session.results)}|{','.join(session.ghosts)}"
        if noted != self._noted:
            self._noted = noted
            self.note.set_text(session.note)
            self.note.set_visibility(bool(session.note))
            self.results.show()
