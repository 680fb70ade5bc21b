"""The tab of the page that computes: inputs, statics, motions, modes, branches, sweeps, identification, and the
results, which are compared as ghosts in the scene and as curves over each other."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.studio.drawings import graph_picture
from lissom.studio.graphs import fit_table, graph_of
from lissom.studio.runs import Axis, varied_names
from lissom.studio.session import Result, StudioSession, inputs_of, summary
from lissom.studio.values import expression_of, graph, table_expression

_SMALL = "flat dense no-caps size=sm"
_FILES = {"motion": ("npz", "csv", "mat", "png")}  # endings of files of a result; others have a picture
_WITH_GRAPH = ("motion", "branch", "sweep")
_WIDE, _HIGH = 440, 220  # of the area in which a curve is drawn [pixels]
_KEPT = 25  # points of a drawn curve


@final
class RunTab:
    """The tab "Run", in the container that is current when it is made.

    Args:
        session: the robot and its results. do: makes a change and tells its errors. tell: shows a message.
    """

    def __init__(
        self, session: StudioSession, do: Callable[[Callable[[], Any]], Any], tell: Callable[..., Any]
    ) -> None:
        self.session, self._do, self._tell = session, do, tell
        self._inputs: tuple[tuple[str, str], ...] = ()
        self._texts: list[Any] = []
        self._graphs: list[Any] = []
        self._compared: set[str] = set()
        self._noted, self._shown_calls = "", ""
        self._make()

    def _make(self) -> None:
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
                self.duration = self._number(2.0, "for", "s")
                self.begin = ui.select({True: "from rest", False: "as drawn"}, value=True).props("dense outlined")
                self.begin.tooltip(
                    "start at the equilibrium under the inputs at t = 0, or in the shape of the description"
                )
                self._button("Motion", "play_arrow", self._motion, "a motion under these inputs")
            self.duration.on_value_change(self._draw_inputs)
            self._branch_part()
            self._sweep_part()
            self._fit_part()
            self.progress = ui.linear_progress(0.0, show_value=False).props("instant-feedback")
            self.stopper = ui.button("Stop", icon="stop", on_click=self.session.stop_run).props(
                "no-caps dense flat data-place=stop"
            )
            self.note = ui.label("").classes("text-caption whitespace-pre-wrap")
            with ui.row().classes("w-full items-center justify-between"):
                ui.label("Results").classes("text-subtitle2")
                with ui.row().classes("gap-0"):
                    ui.button("Compare", icon="stacked_line_chart", on_click=self._compare).props(
                        f"{_SMALL} data-place=compare"
                    ).tooltip("curves of the results that are ticked, over each other")
                    ui.button("Back to the robot", icon="undo", on_click=lambda: self._do(self.session.back)).props(
                        _SMALL
                    )
            self.results = ui.column().classes("w-full gap-1")
            ui.label("Calls of the library").classes("text-subtitle2 q-pt-sm")
            self.calls = ui.label("").classes("calls")

    def _button(self, text: str, icon: str, react: Callable[[], Any], hint: str) -> None:
        from nicegui import ui

        button = ui.button(text, icon=icon, on_click=react).props(f"no-caps dense data-place={text.lower()}")
        button.classes("q-px-sm").tooltip(hint)

    def _number(self, value: float, prefix: str = "", suffix: str = "", place: str = "") -> Any:
        from nicegui import ui

        line = ui.number(value=value, prefix=prefix or None, suffix=suffix or None).props("dense outlined")
        if place:
            line.props(f"data-place={place}")
        return line.style("width: 8em")

    def _branch_part(self) -> None:
        from nicegui import ui

        with ui.expansion("Branch of equilibria").props("dense dense-toggle").classes("w-full nested"):
            ui.label("Gravity, loads and inputs grow by one factor; folds and bifurcations are found.").classes(
                "text-caption text-grey-7"
            )
            with ui.row().classes("w-full items-center gap-2 no-wrap"):
                self.factor = self._number(1.0, "to", "", "branch-factor")
                self.step = self._number(0.1, "step", "", "branch-step")
                self.points = self._number(200, "points", "", "branch-points")
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
                    ends = [self._number(value, prefix, "", f"sweep-{k}-{prefix}")
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
                        f'{_SMALL} data-place="draw-{name}"'
                    ).tooltip("draw a curve over time by the mouse")
                self._graphs.append(ui.html("", sanitize=False).classes("w-full"))
            if not sliders:
                ui.label("this robot has no inputs").classes("text-caption text-grey-7")
            else:
                ui.button("take the values of the scene's sliders", on_click=self._take_sliders).props(_SMALL)
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
        """A dialog in which the mouse draws an input over time; it becomes a table."""
        from nicegui import ui

        name, unit = self._inputs[k]
        points: list[tuple[float, float]] = []
        with ui.dialog() as dialog, ui.card():
            ui.label(f"{name}: drag the mouse from left to right").classes("text-subtitle2")
            with ui.row().classes("gap-2 no-wrap"):
                low = self._number(0.0, "lowest", unit)
                high = self._number(10.0, "highest", unit, "curve-high")
            blank = f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDE}' height='{_HIGH}'/>"
            source = "data:image/svg+xml;base64," + base64.b64encode(blank.encode()).decode()
            area = ui.interactive_image(
                source, events=["mousedown", "mousemove", "mouseup"], cross=True, sanitize=False
            ).props("data-place=curve")
            area.style(f"width: {_WIDE}px; height: {_HIGH}px; border: 1px solid #ccd; background: #fafbfc")
            is_down = [False]

            def moved(event: Any) -> None:
                if event.type == "mousedown":
                    points.clear()
                is_down[0] = event.type == "mousedown" or (is_down[0] and event.type == "mousemove")
                if event.type != "mouseup" and is_down[0]:
                    points[:] = [one for one in points if one[0] < event.image_x - 1.0]
                    points.append((float(event.image_x), float(event.image_y)))
                    line = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
                    area.set_content(f'<polyline points="{line}" fill="none" stroke="#2f5d8a" stroke-width="2"/>')

            area.on_mouse(moved)

            def taken() -> None:
                if len(points) > 1:
                    ends = float(low.value or 0.0), float(high.value or 0.0)
                    self._texts[k].value = table_text(points, float(self.duration.value or 1.0), ends)
                dialog.close()

            with ui.row().classes("w-full justify-end"):
                ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
                ui.button("Take", on_click=taken).props("no-caps data-place=take-curve")
        dialog.open()

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
        if self._do(start) is False:
            self._tell("another computation is running; stop it first")

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
        self.progress.set_visibility(run is not None)
        self.stopper.set_visibility(run is not None)
        if run is not None:
            self.progress.set_value(run.done or 0.0)
            if run.done is not None:
                self.progress.props(remove="indeterminate")
            else:
                self.progress.props("indeterminate")
        noted = f"{session.note}|{','.join(session.results)}|{','.join(session.ghosts)}"
        if noted != self._noted:
            self._noted = noted
            self.note.set_text(session.note)
            self._show_results()

    def _show_results(self) -> None:
        from nicegui import ui

        self._compared &= set(self.session.results)
        self.results.clear()
        with self.results:
            for result in reversed(list(self.session.results.values())):
                with ui.card().props("flat bordered").classes("w-full q-pa-xs gap-0"):
                    self._show_result(result)

    def _show_result(self, result: Result) -> None:
        from nicegui import ui

        name = result.name
        with ui.row().classes("w-full items-center gap-0 no-wrap"):
            if result.kind in _WITH_GRAPH:
                ui.checkbox(value=name in self._compared, on_change=partial(self._tick, name)).props(
                    f'dense size=xs data-place="tick-{name}"'
                ).tooltip("compare")
            with ui.column().classes("col gap-0 q-pl-xs"):
                ui.label(name).classes("text-body2 text-weight-medium cursor-pointer").on(
                    "click", partial(self._ask_name, name)
                ).tooltip("rename")
                ui.label(summary(result)).classes("text-caption text-grey-8")
        with ui.row().classes("w-full items-center gap-0 no-wrap"):
            is_ghost = name in self.session.ghosts
            for icon, place, hint, react in (
                ("visibility", "show", "show it in the scene", partial(self.session.show_result, name)),
                ("blur_on" if is_ghost else "blur_off", "ghost", "keep it in the scene beside others",
                 partial(self.session.toggle_ghost, name)),
                ("delete_outline", "forget", "forget it", partial(self.session.forget, name)),
            ):  # fmt: skip
                ui.button(icon=icon, on_click=partial(self._do, react)).props(
                    f'{_SMALL} data-place="{place}-{name}"'
                ).tooltip(hint)
            if result.kind in _WITH_GRAPH:
                ui.button(icon="show_chart", on_click=partial(self._show_graph, [name])).props(
                    f'{_SMALL} data-place="graph-{name}"'
                ).tooltip("its graph")
            if result.kind == "fit":
                ui.button("into the file", icon="edit_note", on_click=partial(self._take_values, name)).props(
                    f'{_SMALL} data-place="take-{name}"'
                ).tooltip("write the values into the robot file")
            saver = ui.button(icon="save_alt").props(_SMALL).tooltip("write a file beside the robot")
            with saver, ui.menu().props("auto-close"):
                for ending in _FILES.get(result.kind, ("png",)):
                    ui.menu_item(f".{ending}", on_click=partial(self._store, name, ending))
        if result.kind == "fit":
            ui.html(fit_table(result), sanitize=False).classes("text-caption")
        if result.kind == "modes":
            with ui.row().classes("gap-1"):
                for k, omega in enumerate(result.value.frequencies[:12]):
                    hertz = ui.button(f"{omega / (2 * np.pi):.3g} Hz").props("outline dense no-caps size=sm")
                    hertz.on_click(partial(self._do, partial(self.session.show_result, name, k)))

    def _tick(self, name: str, event: Any) -> None:
        self._compared = self._compared | {name} if event.value else self._compared - {name}

    def _compare(self) -> None:
        chosen = [name for name in self.session.results if name in self._compared]
        if len(chosen) < 2:
            self._tell("tick two results or more; a click on their names renames them")
        else:
            self._show_graph(chosen)

    def _show_graph(self, names: Sequence[str]) -> None:
        """A dialog with the graph of results."""
        from nicegui import ui

        picture = self._do(lambda: graph_of([self.session.results[name] for name in names]))
        if picture is None:
            return
        with ui.dialog() as dialog, ui.card().style("max-width: 92vw; max-height: 92vh"):
            source = "data:image/png;base64," + base64.b64encode(picture).decode()
            ui.html(
                f'<img data-place="graph" src="{source}" style="max-width: 80vw; max-height: 76vh">', sanitize=False
            )
            with ui.row().classes("w-full justify-end"):
                ui.button("Close", on_click=dialog.close).props("flat no-caps data-place=close-graph")
        dialog.open()

    async def _ask_name(self, name: str) -> None:
        new = await self._name_dialog(name)
        if new and new.strip() != name:
            self._do(lambda: self.session.rename(name, new.strip()))

    def _name_dialog(self, name: str) -> Any:
        """A dialog that asks for the new name of a result."""
        from nicegui import ui

        with ui.dialog() as dialog, ui.card():
            line = ui.input("new name", value=name).props("autofocus data-place=result-name")
            line.on("keydown.enter", lambda: dialog.submit(line.value))
            with ui.row().classes("w-full justify-end"):
                ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat no-caps")
                ui.button("Rename", on_click=lambda: dialog.submit(line.value)).props("no-caps")
        return dialog

    def _take_values(self, name: str) -> None:
        try:
            self.session.take_values(name)
        except ModelError as error:
            self._tell(str(error))

    def _store(self, name: str, ending: str) -> None:
        path = self._do(lambda: self.session.store(name, ending))
        if path is not None:
            self._tell(f"wrote {path}", good=True)


def table_text(points: Sequence[tuple[float, float]], duration: float, ends: tuple[float, float]) -> str:
    """The table of a curve that was drawn: pixels (x, y) from the upper left corner as times up to a duration [s] and
    values between two ends."""
    x, y = np.array(points).T
    at = np.linspace(x[0], x[-1], min(len(x), _KEPT))
    rows = np.interp(at, x, y)
    t, value = duration * at / _WIDE, ends[0] + (ends[1] - ends[0]) * (1.0 - rows / _HIGH)
    digits = max(int(np.ceil(-np.log10(max(duration, 1e-9)))) + 3, 0)
    return ", ".join(f"{round(a, digits):g}: {b:.4g}" for a, b in zip(t.tolist(), value.tolist()))
