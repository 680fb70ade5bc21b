"""Messages at the bottom of a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from lissom.errors import ModelError


@final
class Messages:
    """Messages for the user of the page that is current when they are told."""

    def tell(self, text: str, good: bool = False) -> None:
        """Show a message; one that is not `good` stays until it is closed, for 9 s at most."""
        from nicegui import ui

        close: Any = [] if good else [{"label": "close", "color": "white", "dense": True, "noCaps": True}]
        ui.notify(text, type="positive" if good else "negative", multi_line=True, position="bottom",
                  timeout=4000 if good else 9000, actions=close)  # fmt: skip

    def attempt(self, change: Callable[[], Any]) -> Any:
        """Make a change and return its result; None after an error, which is told."""
        try:
            return change()
        except (ModelError, OSError) as error:
            self.tell(str(error))
            return None
