"""The bar at the top of the page: the file, undo and redo, templates, other files, views, the state of the robot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, final

from lissom.studio.dialogs import passing_dialog
from lissom.studio.document import RobotDocument, robot_files, templates
from lissom.studio.messages import Messages
from lissom.studio.scene import Studio
from lissom.studio.segmented_arm import MOST, arm_text
from lissom.studio.session import StudioSession
from lissom.studio.widgets import WORLD

ARM = "arm of n segments"
HEIGHT = 42  # [pixels]
_SLOW = 1.5  # building time after which the page says what takes long [s]
_VIEWS = (("home", None), ("front", (1, 0, 0)), ("side", (0, -1, 0)), ("top", (0, 0, 1)))


@final
class Header:
    """The bar.

    Args:
        made: what all pages share. select: selects a part by its keys. messages: of the page.
    """

    def __init__(
        self,
        made: Studio,
        select: Callable[[list[str | int]], Any],
        messages: Messages,
    ) -> None:
        self.studio, self.document, self.session = made, made.document, made.session
        self._select, self.messages = select, messages
        self._make()

    def _make(self) -> None:
        from nicegui import ui

        flat = "flat dense no-caps size=md color=white"
        bar = ui.header(elevated=False).classes("items-center q-py-none q-px-sm gap-1 no-wrap")
        with bar.style(f"height: {HEIGHT}px"):
            ui.label("lissom studio").classes("text-subtitle1 text-weight-medium q-mr-sm")
            self.file = ui.label("").classes("text-caption ellipsis").style("max-width: 22em; opacity: 0.85")
            ui.separator().props("vertical dark").classes("q-mx-sm")
            self.undo = ui.button(icon="undo", on_click=self.document.undo).props(flat).props("data-place=undo")
            self.redo = ui.button(icon="redo", on_click=self.document.redo).props(flat).props("data-place=redo")
            with self.undo:
                self.undo_hint = ui.tooltip("undo")
            with self.redo:
                self.redo_hint = ui.tooltip("redo")
            with (
                ui.button("Template", icon="dashboard").props(flat).props("data-place=template"),
                ui.menu().props("auto-close"),
            ):
                ui.menu_item(ARM, on_click=self._ask_segments)
                for name, text in templates().items():
                    ui.menu_item(name, on_click=partial(self._take_template, name, text))
            ui.button("Attach", icon="attach_file", on_click=self._ask_attach).props(flat).tooltip(
                "add the parts of another robot's file (YAML, URDF, MJCF)"
            )
            with ui.button("View", icon="videocam").props(flat), ui.menu().props("auto-close"):
                for name, away in _VIEWS:
                    ui.menu_item(name, on_click=partial(self.studio.look, away))
            ui.space()
            self.busy = ui.spinner(size="sm", color="white")
            self.status = ui.label("").classes("text-caption ellipsis").style("max-width: 34em")
            with self.status:
                self.whole_status = ui.tooltip("").classes("text-body2").style("max-width: 30em")

    def _take_template(self, name: str, text: str) -> None:
        self.document.change(text, f"template {name}")
        self.studio.look_at_next()
        self._select([])

    async def _ask_segments(self) -> None:
        n = await self._segments_dialog()
        if n:
            self._take_template(ARM, arm_text(min(max(n, 1), MOST)))

    def _segments_dialog(self) -> Any:
        """A dialog that asks how many segments the arm has."""
        from nicegui import ui

        with passing_dialog() as dialog, ui.card():
            count = ui.number("number of segments", value=3, min=1, max=MOST, precision=0).style("width: 14em")
            count.props("autofocus data-place=segments")
            with ui.row().classes("w-full justify-end"):
                ui.button("Cancel", on_click=lambda: dialog.submit(0)).props("flat no-caps")
                ui.button("Make", on_click=lambda: dialog.submit(int(count.value or 0))).props(
                    "no-caps data-place=make-arm"
                )
        return dialog

    async def _ask_attach(self) -> None:
        dialog, file, parent, prefix = self._attach_dialog()
        if await dialog and file.value:
            on = None if parent.value == WORLD else parent.value
            added = self.messages.attempt(lambda: self.document.attach(str(file.value), on, prefix.value or ""))
            if added:
                self.messages.tell(f"added {', '.join(added)}", good=True)

    def _attach_dialog(self) -> tuple[Any, Any, Any, Any]:
        """A dialog that asks for a robot file, and its fields."""
        from nicegui import ui

        with passing_dialog() as dialog, ui.card().style("min-width: 24em"):
            ui.label("Attach the parts of a robot file").classes("text-subtitle1")
            found = list(robot_files(self.document.folder))
            if not found:
                ui.label(f"There is no other robot file below {self.document.folder}").classes("text-caption")
            file = ui.select(found, label="file", with_input=True).classes("w-full")
            parent = ui.select([WORLD, *self.document.names("links")], label="on", value=WORLD).classes("w-full")
            prefix = ui.input("prefix of its names", value="").classes("w-full")
            with ui.row().classes("w-full justify-end"):
                ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button("Attach", on_click=lambda: dialog.submit(True)).props("no-caps")
        return dialog, file, parent, prefix

    def show(self) -> None:
        """Show the present state."""
        document, session = self.document, self.session
        name = document.path.name if document.path is not None else "not stored"
        self.file.set_text(document.unsaved or name)
        self.undo.set_enabled(bool(document.undo_name))
        self.redo.set_enabled(bool(document.redo_name))
        self.undo_hint.set_text(f"undo: {document.undo_name}" if document.undo_name else "nothing to undo")
        self.redo_hint.set_text(f"redo: {document.redo_name}" if document.redo_name else "nothing to redo")
        self.busy.set_visibility(session.busy_for > 0.3 or session.run is not None)
        text = state_text(document, session)
        self.status.set_text(text)
        self.whole_status.set_text(text)


def state_text(document: RobotDocument, session: StudioSession) -> str:
    """The state of the robot in one line: what is waited for, what is wrong, or its size and its rest."""
    built, model, view, working = session.built, session.model, session.view, session.busy_for
    if working > _SLOW:
        return f"building for {working:.0f} s: kernels of a new kind of robot compile once"
    if document.unsaved:
        return document.unsaved
    if built.faults:
        count = len(built.faults)
        return f"{count} mistake{'s' if count > 1 else ''}" + ("; the last good robot is shown" if model else "")
    if model is None:
        return ""
    state = f"; {view.note}" if view is not None and view.note else ""
    sizes = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((model.nv, "coordinate"), (model.nu, "input"))]
    spent = f"{1e3 * built.seconds:.0f} ms" if built.seconds < 1.0 else f"{built.seconds:.1f} s"
    return f"{', '.join(sizes)}{state}; {spent}"
