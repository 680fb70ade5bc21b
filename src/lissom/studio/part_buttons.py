"""The buttons above the tree: add, duplicate, rename, remove and move a part."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, final

from lissom.studio.dialogs import name_dialog
from lissom.studio.document import RobotDocument
from lissom.studio.forms import part_kind, sections
from lissom.studio.messages import Messages
from lissom.studio.values import blank, name_of


@final
class PartButtons:
    """The row of buttons, in the container that is current when it is made.

    Args:
        document: the robot file. selected: gives the keys of the selected part. select: selects another one.
        messages: of the page.
    """

    def __init__(
        self,
        document: RobotDocument,
        selected: Callable[[], list[str | int]],
        select: Callable[[list[str | int]], Any],
        messages: Messages,
    ) -> None:
        self.document, self._selected, self._select, self.messages = document, selected, select, messages
        self._make()

    def _make(self) -> None:
        from nicegui import ui

        small = "flat dense size=md no-caps color=primary"
        with ui.row().classes("w-full gap-0 items-center q-px-xs bg-grey-1 no-wrap"):
            with ui.button("Add", icon="add").props(small).props("data-place=add"), ui.menu() as self.adder:
                for section, word in sections().items():
                    self._add_item(section, word)
                ui.menu_item("fluid", on_click=self._add_fluid)
            for icon, hint, react in (
                ("content_copy", "duplicate", self._duplicate),
                ("drive_file_rename_outline", "rename", self._ask_name),
                ("delete_outline", "remove, with the parts that need it", self._remove),
                ("arrow_upward", "earlier in its list: the order of links is that of q, of actuators that of u",
                 lambda: self._move(-1)),
                ("arrow_downward", "later in its list", lambda: self._move(1)),
            ):  # fmt: skip
                ui.button(icon=icon, on_click=react).props(small).tooltip(hint).props(
                    f'data-place="{hint.split(",")[0]}"'
                )

    def _add_item(self, section: str, word: str) -> None:
        from nicegui import ui

        forms = part_kind(section).forms
        if len(forms) == 1:
            ui.menu_item(word, on_click=lambda: self._add(section, next(iter(forms))))
            return
        with ui.menu_item(word, auto_close=False).props("clickable"):
            with ui.item_section().props("side"):
                ui.icon("keyboard_arrow_right")
            with ui.menu().props('anchor="top end" self="top start"'):
                for title in forms:
                    ui.menu_item(title, on_click=partial(self._add, section, title))

    def _add(self, section: str, title: str) -> None:
        self.adder.close()
        selected = self._selected()
        here = name_of(self.document.value(selected)) if selected[:1] == ["links"] else None
        names = self.document.known_names(here)
        value = blank(part_kind(section).forms[title], names)
        if section != "input_limits":
            value = {"name": self.document.free_name(section, _short(title)), **{
                key: item for key, item in value.items() if key != "name"}}  # fmt: skip
        if section == "links" and here is not None:
            value = {"name": value.pop("name"), "parent": here, **value}
        if "type" in value:
            value = {"type": value.pop("type"), **value}
        k = self.messages.attempt(lambda: self.document.add(section, value))
        if k is not None:
            self._select([section, k])

    def _add_fluid(self) -> None:
        self.adder.close()
        if self.document.value(["fluid"]) is None:
            self.messages.attempt(lambda: self.document.put(["fluid"], {"density": 1000}))
        self._select(["fluid"])

    def _part(self) -> tuple[str, int] | None:
        """The list and the index of the selected part; None, which is told, if none is selected."""
        selected = self._selected()
        if len(selected) == 2:
            return str(selected[0]), int(selected[1])
        self.messages.tell("select a part in the tree first")
        return None

    def _duplicate(self) -> None:
        if (part := self._part()) is not None:
            found = self.messages.attempt(lambda: self.document.duplicate(*part))
            if found is not None:
                self._select([part[0], found])

    def _remove(self) -> None:
        if self._selected() == ["fluid"]:
            self.messages.attempt(lambda: self.document.clear(["fluid"]))
            self._select([])
        elif (part := self._part()) is not None:
            gone = self.messages.attempt(lambda: self.document.remove(*part))
            if gone:
                self._select([])
                self.messages.tell(f"removed {', '.join(gone)}; undo brings them back", good=True)

    def _move(self, by: int) -> None:
        if (part := self._part()) is not None:
            section, k = part
            if 0 <= k + by < len(self.document.value([section])):
                self.messages.attempt(lambda: self.document.move(section, k, k + by))
                self._select([section, k + by])

    async def _ask_name(self) -> None:
        if (part := self._part()) is not None:
            new = await name_dialog(name_of(self.document.value(part)))
            if new:
                self.messages.attempt(lambda: self.document.rename(*part, new.strip()))
                self._select([*part])


def _short(title: str) -> str:
    """A first name for a part of a class."""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in title).split()
    return words[-1] if words else "part"
