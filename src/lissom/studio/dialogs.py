"""Dialogs of the page, which are removed when they are closed."""

from __future__ import annotations

from typing import Any


def passing_dialog() -> Any:
    """A dialog that is removed from the page when it has closed; NiceGUI keeps others as long as the page."""
    from nicegui import ui

    dialog = ui.dialog()
    dialog.on("hide", dialog.delete)
    return dialog


def name_dialog(name: str, place: str = "new-name") -> Any:
    """A dialog that asks for a new name; awaited, it gives the name, or None. `place` marks its field for programs."""
    from nicegui import ui

    with passing_dialog() as dialog, ui.card():
        line = ui.input("new name", value=name).props(f"autofocus data-place={place}")
        line.on("keydown.enter", lambda: dialog.submit(line.value))
        with ui.row().classes("w-full justify-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat no-caps")
            ui.button("Rename", on_click=lambda: dialog.submit(line.value)).props("no-caps")
    return dialog
