"""A dialog in which the mouse draws an input over time; the curve becomes a table of times and values."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lissom.studio.dialogs import passing_dialog

_WIDE, _HIGH = 440, 220  # of the area in which a curve is drawn [pixels]
_KEPT = 25  # points of a drawn curve


def draw_curve(name: str, unit: str, duration: float, take: Callable[[str], Any]) -> None:
    """Open the dialog.

    Args:
        name, unit: of the input. duration: time that the width stands for [s]. take: called with the table.
    """
    from nicegui import ui

    points: list[tuple[float, float]] = []
    with passing_dialog() as dialog, ui.card():
        ui.label(f"{name}: drag the mouse from left to right").classes("text-subtitle2")
        with ui.row().classes("gap-2 no-wrap"):
            low = number_field(0.0, "lowest", unit)
            high = number_field(10.0, "highest", unit, "curve-high")
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
                take(table_text(points, duration, ends))
            dialog.close()

        with ui.row().classes("w-full justify-end"):
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            ui.button("Take", on_click=taken).props("no-caps data-place=take-curve")
    dialog.open()


def number_field(value: float, prefix: str = "", suffix: str = "", place: str = "") -> Any:
    """A field for a number; `place` marks it for programs."""
    from nicegui import ui

    line = ui.number(value=value, prefix=prefix or None, suffix=suffix or None).props("dense outlined")
    if place:
        line.props(f"data-place={place}")
    return line.style("width: 8em")


def table_text(points: Sequence[tuple[float, float]], duration: float, ends: tuple[float, float]) -> str:
    """The table of a curve that was drawn: pixels (x, y) from the upper left corner as times up to a duration [s] and
    values between two ends."""
    x, y = np.array(points).T
    at = np.linspace(x[0], x[-1], min(len(x), _KEPT))
    rows = np.interp(at, x, y)
    t, value = duration * at / _WIDE, ends[0] + (ends[1] - ends[0]) * (1.0 - rows / _HIGH)
    digits = max(int(np.ceil(-np.log10(max(duration, 1e-9)))) + 3, 0)
    return ", ".join(f"{round(a, digits):g}: {b:.4g}" for a, b in zip(t.tolist(), value.tolist()))
