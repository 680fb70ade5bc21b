"""The tabs of the page that show text: the robot file, and the script that makes the same robot."""

from __future__ import annotations

from typing import final

from lissom.studio.document import RobotDocument
from lissom.studio.messages import Messages
from lissom.studio.python_text import python_of
from lissom.studio.session import StudioSession


@final
class FileTab:
    """The text of the robot file in an editor, in the container that is current when it is made.

    Args:
        document: the robot file.
    """

    def __init__(self, document: RobotDocument) -> None:
        from nicegui import ui

        self.document, self._shown = document, document.text
        self.editor = ui.codemirror(document.text, language="YAML", line_wrapping=True).classes("w-full h-full")
        self.editor.on("blur", self._take)

    def _take(self) -> None:
        if self.editor.value != self._shown:
            self._shown = self.editor.value or ""
            self.document.change(self._shown, "edit the text")

    def poll(self) -> None:
        """Show a changed file, unless the user is writing."""
        if self._shown != self.document.text and self.editor.value == self._shown:
            self._shown = self.document.text
            self.editor.set_value(self.document.text)


@final
class PythonTab:
    """The script of the last good robot, in the container that is current when it is made.

    Args:
        session: the robot. messages: of the page.
    """

    def __init__(self, session: StudioSession, messages: Messages) -> None:
        from nicegui import ui

        self.session, self.messages = session, messages
        with ui.scroll_area().classes("w-full h-full"):
            ui.label("The script that makes the same robot").classes("text-caption text-grey-7")
            self.code = ui.code("", language="python").classes("w-full text-caption")

    def show(self) -> None:
        """Write the script again."""
        model = self.session.model
        if model is not None:
            text = self.messages.attempt(lambda: python_of(model.description))
            if text is not None and self.code.content != text:
                self.code.set_content(text)
