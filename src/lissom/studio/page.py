"""The page of the studio: the tree of parts, their forms, computations and results beside the scene of the viewer.

All that the page shows is read from a document and a session, which know nothing of it.
"""

from __future__ import annotations

from functools import partial
from typing import Any, final

from lissom.studio.browser_parts import STYLE
from lissom.studio.cursor_plot import CursorPlot
from lissom.studio.header import HEIGHT, Header
from lissom.studio.messages import Messages
from lissom.studio.part_buttons import PartButtons
from lissom.studio.part_panel import PartPanel
from lissom.studio.results_list import ResultsList
from lissom.studio.run_tab import RunTab
from lissom.studio.scene import Studio
from lissom.studio.session import call_of
from lissom.studio.text_tabs import FileTab, PythonTab
from lissom.studio.tree import PartTree

_POLL = 0.15  # between two looks at the session [s]
_OTHER_SITE = {"localhost": "127.0.0.1", "127.0.0.1": "localhost"}


@final
class Page:
    """The page of one browser.

    Args:
        made: what all pages share.
    """

    def __init__(self, made: Studio) -> None:
        from nicegui import ui

        self.studio, self.document, self.session, self._built = made, made.document, made.session, None
        self.messages = Messages()
        ui.add_css(STYLE)
        ui.colors(primary="#2f5d8a", negative="#b3402a", positive="#3f7d58")
        self.header = Header(made, self._select, self.messages)
        two = ui.splitter(value=32, limits=(20, 60)).classes("w-full").style(f"height: calc(100vh - {HEIGHT}px)")
        with two:
            with two.before:
                self._side()
            with two.after:
                self._scene()
        ui.keyboard(on_key=self._key)
        ui.timer(_POLL, self._poll)
        self._select(made.selected)

    def _scene(self) -> None:
        """The scene of viser, at the next port of the same host, and room for curves below it. Browsers give pages of
        other sites a process of their own, so that a scene that is drawn slowly does not stop this page: the scene of
        localhost has the address 127.0.0.1, and the other way round."""
        from nicegui import ui

        request = ui.context.client.request
        host = (request.url.hostname if request else None) or "localhost"
        host = _OTHER_SITE.get(host, host)
        shown = f"[{host}]" if ":" in host else host
        with ui.column().classes("w-full h-full no-wrap gap-0"):
            frame = ui.element("iframe").props(f'src="http://{shown}:{self.studio.port}" title="scene"')
            frame.style("border: 0; width: 100%; flex: 1; min-height: 0; display: block")
            self.curves = CursorPlot(self.studio)

    def _side(self) -> None:
        """The left side: the tabs, and below them what a computation has done, the mistakes and the last call."""
        from nicegui import ui

        with ui.column().classes("w-full h-full no-wrap gap-0"):
            look = "dense no-caps align=justify active-color=primary"
            with ui.tabs().props(look).classes("w-full bg-grey-2") as tabs:
                build, run, text, python = (ui.tab(name) for name in ("Build", "Run", "File", "Python"))
            with ui.tab_panels(tabs, value=build, animated=False).classes("w-full col").style("min-height: 0"):
                with ui.tab_panel(build).classes("q-pa-none h-full column no-wrap"):
                    self._build_tab()
                with ui.tab_panel(run).classes("q-pa-sm h-full"):
                    self.run = RunTab(self.session, self.messages, self._results)
                with ui.tab_panel(text).classes("q-pa-none h-full"):
                    self.file = FileTab(self.document)
                with ui.tab_panel(python).classes("q-pa-sm h-full"):
                    self.python = PythonTab(self.session, self.messages)
            with ui.column().classes("w-full gap-0 q-px-sm q-py-xs bg-grey-2").style("max-height: 22%; overflow: auto"):
                self.run.make_progress()
                self.mistakes = ui.column().classes("w-full gap-0")
                self.call = ui.label("").classes("calls").tooltip("the last call of the library")

    def _results(self) -> ResultsList:
        return ResultsList(self.session, self.messages, lambda result: self.curves.show(result))

    def _build_tab(self) -> None:
        from nicegui import ui

        PartButtons(self.document, lambda: self.part.selected, self._select, self.messages)
        two = ui.splitter(horizontal=True, value=36, limits=(10, 85)).classes("w-full col").style("min-height: 0")
        with two:
            with two.before, ui.scroll_area().classes("w-full h-full"):
                self.tree = PartTree(self.document, self.session, self._show_part)
            with two.after, ui.scroll_area().classes("w-full h-full"):
                self.part = PartPanel(self.studio, self.messages)

    def _select(self, keys: list[str | int]) -> None:
        """Select a part in the tree and show its form."""
        self.tree.show()
        self.tree.select(keys)
        self._show_part(keys)

    def _show_part(self, keys: list[str | int]) -> None:
        self.part.selected = keys
        self.part.show()

    def _key(self, event: Any) -> None:
        if event.action.keydown and (event.modifiers.ctrl or event.modifiers.meta):
            if event.key == "z" and not event.modifiers.shift:
                self.document.undo()
            elif event.key in ("y", "Z"):
                self.document.redo()

    # -- what changes by itself ---------------------------------------------------------------------------------------

    def _poll(self) -> None:
        """Show what has changed since the last look."""
        document, session, built = self.document, self.session, self.session.built
        if document.version != self.part.form.version:
            self.tree.show()
            self.part.show()
        if built is not self._built:
            self._built = built
            self.tree.show()
            self.part.form.show_faults(built.faults, scroll=True)
            self.part.show_drawings()
            self._show_mistakes()
            self.run.show_inputs()
            self.python.show()
        self.file.poll()
        self.header.show()
        last = call_of(session.view) if session.view is not None and session.view.mode != "replay" else ""
        self.call.set_text(last or (session.calls[-1] if session.calls else ""))
        self.run.poll()

    def _show_mistakes(self) -> None:
        from nicegui import ui

        built = self.session.built
        self.mistakes.clear()
        with self.mistakes:
            for fault, color in [
                *((one, "negative") for one in built.faults),
                *((one, "warning") for one in built.doubts),
            ]:
                there = list(fault.keys[:2]) if len(fault.keys) > 1 and isinstance(fault.keys[1], int) else []
                line = ui.row().classes("w-full no-wrap gap-1 items-start cursor-pointer")
                line.on("click", partial(self._select, there))
                with line:
                    ui.icon("error" if color == "negative" else "warning", color=color, size="xs").classes("q-pt-xs")
                    ui.label(f"line {fault.line}: {fault.text}").classes("text-caption col")
