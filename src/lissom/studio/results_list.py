"""The list of results on the page: shown, compared as ghosts in the scene and as curves over each other, stored."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

import numpy as np

from lissom.studio.dialogs import name_dialog, passing_dialog
from lissom.studio.graphs import fit_table, graph_of
from lissom.studio.messages import Messages
from lissom.studio.session import Result, StudioSession, summary

SMALL = "flat dense no-caps size=sm"
_FILES = {"motion": ("npz", "csv", "mat", "png")}  # endings of files of a result; others have a picture
_WITH_GRAPH = ("motion", "branch", "sweep")


@final
class ResultsList:
    """The list, in the container that is current when it is made.

    Args:
        session: the robot and its results. messages: of the page. curves: shows the curves of a motion below the scene.
    """

    def __init__(self, session: StudioSession, messages: Messages, curves: Callable[[Result], Any]) -> None:
        from nicegui import ui

        self.session, self.messages, self._curves = session, messages, curves
        self._compared: set[str] = set()
        self._known = set(session.results)  # names of results that were shown before
        with ui.row().classes("w-full items-center justify-between"):
            ui.label("Results").classes("text-subtitle2")
            with ui.row().classes("gap-0"):
                ui.button("Compare", icon="stacked_line_chart", on_click=self._compare).props(
                    f"{SMALL} data-place=compare"
                ).tooltip("curves of the results that are ticked, over each other")
                ui.button("Back to the robot", icon="undo", on_click=lambda: messages.attempt(session.back)).props(
                    SMALL
                )
        self.results = ui.column().classes("w-full gap-1")

    def show(self) -> None:
        """Show the results that there are."""
        from nicegui import ui

        self._compared &= set(self.session.results)
        self.results.clear()
        with self.results:
            for result in reversed(list(self.session.results.values())):
                with ui.card().props("flat bordered").classes("w-full q-pa-xs gap-0"):
                    self._show_result(result)
        self._known = set(self.session.results)

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
                told = ui.label(summary(result)).classes("text-caption text-grey-8")
                if name not in self._known:  # a new result comes into view
                    told.run_method("scrollIntoView", {"block": "center"})
        with ui.row().classes("w-full items-center gap-0 no-wrap"):
            is_ghost = name in self.session.ghosts
            for icon, place, hint, react in (
                ("visibility", "show", "show it in the scene", partial(self.session.show_result, name)),
                ("blur_on" if is_ghost else "blur_off", "ghost", "keep it in the scene beside others",
                 partial(self.session.toggle_ghost, name)),
                ("delete_outline", "forget", "forget it", partial(self.session.forget, name)),
            ):  # fmt: skip
                ui.button(icon=icon, on_click=partial(self.messages.attempt, react)).props(
                    f'{SMALL} data-place="{place}-{name}"'
                ).tooltip(hint)
            if result.kind == "motion":
                ui.button(icon="ads_click", on_click=partial(self._show_curves, name)).props(
                    f'{SMALL} data-place="curves-{name}"'
                ).tooltip("curves below the scene, whose cursor moves the robot")
            if result.kind in _WITH_GRAPH:
                ui.button(icon="show_chart", on_click=partial(self._show_graph, [name])).props(
                    f'{SMALL} data-place="graph-{name}"'
                ).tooltip("its graph")
            if result.kind == "fit":
                ui.button("into the file", icon="edit_note", on_click=partial(self._take_values, name)).props(
                    f'{SMALL} data-place="take-{name}"'
                ).tooltip("write the values into the robot file")
            saver = ui.button(icon="save_alt").props(f'{SMALL} data-place="save-{name}"')
            saver.tooltip("write a file beside the robot")
            with saver, ui.menu().props("auto-close"):
                for ending in _FILES.get(result.kind, ("png",)):
                    ui.menu_item(f".{ending}", on_click=partial(self._store, name, ending))
                if result.kind != "statics":
                    ui.menu_item("film .mp4", on_click=partial(self._film, name))
        if result.kind == "fit":
            ui.html(fit_table(result), sanitize=False).classes("text-caption")
        if result.kind == "modes":
            with ui.row().classes("gap-1"):
                for k, omega in enumerate(result.value.frequencies[:12]):
                    hertz = ui.button(f"{omega / (2 * np.pi):.3g} Hz").props("outline dense no-caps size=sm")
                    hertz.on_click(partial(self.messages.attempt, partial(self.session.show_result, name, k)))

    def _back(self) -> None:
        self.messages.attempt(self.session.back)

    def _show_curves(self, name: str) -> None:
        self.messages.attempt(lambda: self.session.show_result(name))
        self._curves(self.session.results[name])

    def _tick(self, name: str, event: Any) -> None:
        self._compared = self._compared | {name} if event.value else self._compared - {name}

    def _compare(self) -> None:
        chosen = [name for name in self.session.results if name in self._compared]
        if len(chosen) < 2:
            self.messages.tell("tick two results or more; a click on their names renames them")
        else:
            self._show_graph(chosen)

    def _show_graph(self, names: Sequence[str]) -> None:
        """A dialog with the graph of results."""
        from nicegui import ui

        picture = self.messages.attempt(lambda: graph_of([self.session.results[name] for name in names]))
        if picture is None:
            return
        with passing_dialog() as dialog, ui.card().style("max-width: 92vw; max-height: 92vh"):
            source = "data:image/png;base64," + base64.b64encode(picture).decode()
            ui.html(
                f'<img data-place="graph" src="{source}" style="max-width: 80vw; max-height: 76vh">', sanitize=False
            )
            with ui.row().classes("w-full justify-end"):
                ui.button("Close", on_click=dialog.close).props("flat no-caps data-place=close-graph")
        dialog.open()

    async def _ask_name(self, name: str) -> None:
        new = await name_dialog(name, "result-name")
        if new and new.strip() != name:
            self.messages.attempt(lambda: self.session.rename(name, new.strip()))

    def _take_values(self, name: str) -> None:
        self.messages.attempt(lambda: self.session.take_values(name))

    def _film(self, name: str) -> None:
        if self.messages.attempt(lambda: self.session.film(name)) is False:
            self.messages.tell("another computation is running; stop it first")

    def _store(self, name: str, ending: str) -> None:
        path = self.messages.attempt(lambda: self.session.store(name, ending))
        if path is not None:
            self.messages.tell(f"wrote {path}", good=True)
