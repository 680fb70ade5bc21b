"""The form of the part that is selected, with its drawings and the button that moves it in the scene."""

from __future__ import annotations

from typing import Any, final

from lissom.studio.drawings import blank_section, modes_drawing, rods_of, section_drawing
from lissom.studio.forms import ONE_OF, Kind, document_form, form_of, part_kind, sections
from lissom.studio.messages import Messages
from lissom.studio.placing import is_placed
from lissom.studio.scene import Studio
from lissom.studio.values import name_of
from lissom.studio.widgets import PartForm

_MOST_DRAWN = 4  # sections of one tendon


@final
class PartPanel:
    """The panel of the selected part, in the container that is current when it is made.

    Args:
        made: what all pages share. messages: of the page.
    Fields:
        selected: keys of the part; none are the whole robot. form: its fields.
    """

    def __init__(self, made: Studio, messages: Messages) -> None:
        from nicegui import ui

        self.studio, self.document, self.session, self.messages = made, made.document, made.session, messages
        self.selected: list[str | int] = []
        self.form = PartForm(self.document, messages.tell, self.show)
        self.drawings: Any = None
        self.modes: Any = None
        self.part = ui.column().classes("w-full gap-0 q-px-sm q-pb-lg")

    def show(self) -> None:
        """Show the form of the selected part again, or of the whole robot if the part is gone."""
        from nicegui import ui

        self.part.clear()
        self.drawings, self.modes = None, None
        self.studio.selected = self.selected
        if self.studio.placing and self.studio.placing != self.selected:
            self.studio.place([])
        self.form.version = self.document.version
        with self.part:
            if not self.document.is_readable:
                ui.label("The file is not YAML at the moment; mend it under File.").classes("text-negative q-pt-sm")
                return
            value = self.document.value(self.selected)
            if self.selected and value is None:
                self.selected = []
                value = self.document.data
            if not self.selected:
                self._show_robot()
            else:
                self._show_part(value)
        self.form.show_faults(self.session.built.faults)

    def _show_robot(self) -> None:
        """The values of the whole robot."""
        from nicegui import ui

        whole = document_form()
        parts = {*sections(), "fluid"}
        own = [one for one in whole.fields if one.name not in parts]
        self._title("robot", "the whole robot")
        self.form.show_values(own)
        if not self.document.names("links"):
            ui.markdown("**Add** a link, or take a **Template** above.").classes("text-body2 q-pt-md")

    def _show_part(self, value: Any) -> None:
        from nicegui import ui

        section = str(self.selected[0])
        if section == "fluid":
            found = document_form().field("fluid")
            kind = found.kind if found is not None else Kind(ONE_OF)
            self._title("fluid", "")
        else:
            kind = part_kind(section)
            self._title(name_of(value), sections()[section])
        form = form_of(kind, value)
        if section != "fluid" and form is not None and form.field("placement") is not None:
            self._place_button(section, name_of(value))
        is_rod = section != "fluid" and _is_rod(value)
        if is_rod:
            self.drawings = ui.html("", sanitize=False).classes("w-full").props("data-place=section")
        self.form.show(kind, self.selected)
        if section == "actuators":  # below the form, which it would move as it grows
            self.drawings = ui.html("", sanitize=False).classes("w-full").props("data-place=section")
        if is_rod:
            with ui.expansion("modes of the basis").props("dense dense-toggle").classes("w-full nested"):
                self.modes = ui.html("", sanitize=False).classes("w-full").props("data-place=modes")
        self.show_drawings()
        if form is not None and form.help:
            ui.label(form.help).classes("text-caption text-grey-7 q-pt-md")

    def _place_button(self, section: str, name: str) -> None:
        """A button that gives the part a handle in the scene."""
        from nicegui import ui

        is_on = self.studio.placing == self.selected
        button = ui.button("let go" if is_on else "move in the scene", icon="open_with").props(
            "flat dense no-caps size=sm data-place=place"
        )
        button.tooltip("drag its arrows and rings in the scene; the file gets the placement when you let go")

        def toggle() -> None:
            model = self.session.model
            if not is_on and (model is None or not is_placed(model, section, name)):
                self.messages.tell(f"{name}: mend the mistakes below first, so that the part is in the scene")
                return
            self.messages.attempt(lambda: self.studio.place([] if is_on else self.selected))
            self.show()

        button.on_click(toggle)

    def show_drawings(self) -> None:
        """Draw the section and the modes of the selected part, of the last good robot."""
        model = self.session.model
        if self.drawings is None and self.modes is None:
            return
        if model is None:
            if self.drawings is not None and self.selected[0] == "links":
                self.drawings.set_content(blank_section())
            return
        name = name_of(self.document.value(self.selected))
        links, marked = ([name], "") if self.selected[0] == "links" else (rods_of(model, name), name)
        known = [link for link in links if link in model.links.names]
        if self.drawings is not None:
            drawn = "".join(section_drawing(model, link, marked) for link in known[:_MOST_DRAWN])
            self.drawings.set_content(drawn or (blank_section() if self.selected[0] == "links" else ""))
        if self.modes is not None:
            self.modes.set_content("".join(modes_drawing(model, link) for link in known))

    def _title(self, name: str, word: str) -> None:
        from nicegui import ui

        with ui.row().classes("w-full items-baseline gap-2 q-pt-xs"):
            ui.label(name).classes("text-subtitle1 text-weight-medium")
            ui.label(word).classes("text-caption text-grey-7")


def _is_rod(item: Any) -> bool:
    body = item.get("body") if isinstance(item, dict) else None
    return isinstance(body, dict) and body.get("type") == "Rod"
