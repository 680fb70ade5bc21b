"""Forms on the page: the fields of a part as inputs of NiceGUI, with units, help, and the mistakes at their fields."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

from lissom.errors import ModelError
from lissom.io.reading import Fault
from lissom.robot import fields as kinds
from lissom.studio.document import RobotDocument
from lissom.studio.drawings import graph_picture
from lissom.studio.forms import (
    BY_NAME,
    CHOICE,
    EITHER,
    LIST,
    ONE_OF,
    REFERENCES,
    TEXT,
    TRUTH,
    Field,
    Form,
    Kind,
    form_of,
    kind_of,
)
from lissom.studio.values import (
    blank,
    blank_value,
    changed_class,
    components,
    expression_of,
    graph,
    simplest,
    text_of,
    value_of,
)

Keys = list[str | int]
NONE, WORLD = "none", "the world"
_SHORT = 8  # number of fields up to which a form shows all of them
_FIRST = 4  # first fields of a long form, which are always shown
_DEEPEST = 2  # level of nested forms that are open at first
_HOW = {"constant": "number, or base, tip", "expression": "expression", "table": "table"}


@final
class PartForm:
    """The form of one part of a document, in the container that is current when it is shown.

    Args:
        document: the robot file. tell: called with a message for the user.
        refresh: called after an edit that changes which fields there are.
    Fields:
        version: version of the document that the form shows.
    """

    def __init__(self, document: RobotDocument, tell: Callable[[str], Any], refresh: Callable[[], Any]) -> None:
        self.document, self._tell, self._refresh = document, tell, refresh
        self.version = -1
        self._messages: list[tuple[tuple[str | int, ...], Any]] = []
        self._open: dict[tuple[str | int, ...], bool] = {}

    def show(self, kind: Kind, keys: Sequence[str | int]) -> None:
        """Make the inputs of the value at a place."""
        self.version = self.document.version
        self._messages = []
        data = self.document.value(keys)
        form = form_of(kind, data) if kind.word == ONE_OF else None
        if form is None:
            self._nested(Field(str(keys[-1]), kind, True, None, "", ""), list(keys), 0)
        else:
            self._choice(kind, list(keys), form, 0)
            self._fields(form, list(keys), data, 0)

    def show_values(self, own: Sequence[Field]) -> None:
        """Make the inputs of values of the whole robot."""
        self.version = self.document.version
        self._messages = []
        for one in own:
            self._field(one, [one.name], 0)

    def show_faults(self, faults: Sequence[Fault], *, scroll: bool = False) -> None:
        """Write each mistake at its field, or at the nearest field around it. With `scroll` the first new one comes
        into view."""
        places = [place for place, _ in self._messages]
        told: dict[tuple[str | int, ...], list[str]] = {}
        for fault in faults:
            around = [place for place in places if place == fault.keys[: len(place)]]
            if around:
                told.setdefault(max(around, key=len), []).append(_without_place(fault.text))
        for place, label in self._messages:
            text = "\n".join(told.get(place, ()))
            is_new = bool(text) and not label.text
            label.set_text(text)
            label.set_visibility(bool(text))
            if scroll and is_new:
                label.run_method("scrollIntoView", {"block": "nearest"})
                scroll = False

    # -- edits --------------------------------------------------------------------------------------------------------

    def _edit(self, change: Callable[[], Any], *, again: bool = False) -> None:
        """Make a change of the document; with `again` the fields are made again."""
        try:
            change()
        except ModelError as error:
            self._tell(str(error))
            again = True
        if again:
            self._refresh()
        else:
            self.version = self.document.version

    def _put(self, keys: Keys, value: Any, *, again: bool = False) -> None:
        self._edit(lambda: self.document.put(keys, value), again=again)

    def _clear(self, keys: Keys, *, again: bool = False) -> None:
        self._edit(lambda: self.document.clear(keys), again=again)

    @property
    def _names(self) -> dict[str, list[str]]:
        return self.document.known_names()

    # -- fields -------------------------------------------------------------------------------------------------------

    def _fields(self, form: Form, keys: Keys, data: Any, depth: int) -> None:
        """The fields of a form; those that a long form does not need and that are not set wait behind a click."""
        from nicegui import ui

        data = data if isinstance(data, dict) else {}
        own = [one for one in form.fields if not (depth == 0 and one.name == "name")]
        late = own[_FIRST:] if len(own) > _SHORT else []
        waiting = [one for one in late if not one.is_required and one.name not in data]
        for one in own:
            if one not in waiting:
                self._field(one, [*keys, one.name], depth)
        if waiting:
            with self._expansion(f"{len(waiting)} more", (*keys, "…"), False):
                for one in waiting:
                    self._field(one, [*keys, one.name], depth)
        if not own:
            ui.label("no fields").classes("text-caption text-grey-6")

    def _field(self, one: Field, keys: Keys, depth: int) -> None:
        from nicegui import ui

        kind = kind_of(one.kind, self.document.value(keys))
        if kind.word in (ONE_OF, LIST, BY_NAME) or one.kind.is_nested:
            self._nested(one, keys, depth)
            return
        with ui.row().classes("w-full no-wrap items-start gap-2 q-py-xs"):
            self._label(one)
            with ui.column().classes("col gap-0"):
                self._input(one, kind, keys)
                self._message(keys)

    def _label(self, one: Field) -> None:
        from nicegui import ui

        weight = "text-weight-medium" if one.is_required else ""
        label = ui.label(one.name.replace("_", " ")).classes(f"{weight} text-body2 q-pt-xs").style("width: 34%")
        if one.help:
            label.classes("cursor-help")
            with label:
                ui.tooltip(one.help).classes("text-body2").style("max-width: 30em")

    def _message(self, keys: Keys) -> None:
        from nicegui import ui

        label = ui.label("").classes("text-negative text-caption whitespace-pre-wrap mistake")
        label.set_visibility(False)
        self._messages.append((tuple(keys), label))

    def _input(self, one: Field, kind: Kind, keys: Keys) -> None:
        """The input of a value without fields of its own."""
        if kind.word == TRUTH:
            self._truth(one, keys)
        elif kind.word in REFERENCES:
            self._reference(one, kind, keys)
        elif kind.word == CHOICE or (one.words and kind.word == TEXT):
            self._words(one, kind, keys)
        elif kind.variable:
            self._function(one, kind, keys)
        elif kind.word == kinds.PLACEMENT:
            self._placement(one, keys)
        else:
            self._text(one, kind, keys)

    def _line(self, value: str, hint: str, unit: str, commit: Callable[[str], Any]) -> Any:
        """One line of text whose changes count when it is left, or at Enter."""
        from nicegui import ui

        known = [value]
        line = ui.input(value=value, placeholder=hint).props("dense outlined hide-bottom-space").classes("w-full")
        if unit:
            line.props(f'suffix="{html.escape(unit)}"')

        def changed() -> None:
            if line.value != known[0]:
                known[0] = line.value or ""
                commit(known[0])

        line.on("blur", changed)
        line.on("keydown.enter", changed)
        return line

    def _text(self, one: Field, kind: Kind, keys: Keys) -> None:
        value = self.document.value(keys)

        def commit(text: str) -> None:
            if text.strip():
                self._put(keys, value_of(kind, text))
            else:
                self._clear(keys)

        line = self._line(text_of(value), _hint(one), one.unit, commit)
        line.props(_mark(keys))

    def _truth(self, one: Field, keys: Keys) -> None:
        from nicegui import ui

        value = self.document.value(keys)
        shown = bool(one.default) if value is None else value is True
        switch = ui.switch(value=shown, on_change=lambda event: self._put(keys, bool(event.value)))
        switch.props("dense").props(_mark(keys))

    def _words(self, one: Field, kind: Kind, keys: Keys) -> None:
        from nicegui import ui

        value = self.document.value(keys)
        words = list(dict.fromkeys([*(kind.choices or one.words), *([value] if isinstance(value, str) else [])]))
        shown = value if value is not None else one.default
        shown = shown if shown in words else None
        choice = ui.select(words, value=shown, with_input=True, new_value_mode="add-unique")
        choice.on_value_change(lambda event: self._put(keys, event.value))
        choice.props("dense outlined").classes("w-full").props(_mark(keys))

    def _reference(self, one: Field, kind: Kind, keys: Keys) -> None:
        from nicegui import ui

        value, names = self.document.value(keys), list(self._names[REFERENCES[kind.word]])
        nothing = WORLD if kind.word == kinds.LINK_OR_WORLD else NONE
        several = kind.word == kinds.LINKS
        own = value if isinstance(value, list) else [] if value is None else [value]
        known = [*names, *(name for name in own if name not in names)]

        def chosen(event: Any) -> None:
            if event.value == nothing or event.value == []:
                self._clear(keys)
            else:
                self._put(keys, event.value)

        options = known if several or one.is_required else [nothing, *known]
        shown = own if several else (own[0] if own else None if one.is_required else nothing)
        ui.select(options, value=shown, multiple=several, on_change=chosen).props("dense outlined use-chips" if several
                  else "dense outlined").classes("w-full").props(_mark(keys))  # fmt: skip

    def _function(self, one: Field, kind: Kind, keys: Keys) -> None:
        """A number, (base, tip), an expression or a table, with a graph."""
        from nicegui import ui

        value = self.document.value(keys)
        how = "constant"
        if isinstance(value, dict):
            how = "expression" if "expression" in value else "table"
        picture = None

        def draw() -> None:
            if picture is not None:
                found = graph(self.document.value(keys), kind.variable, tapers="(base, tip)" in one.help)
                picture.set_content(graph_picture(found, kind.variable))

        def choose(event: Any) -> None:
            if event.value == how:
                return
            start = _first_constant(self.document.value(keys), one)  # which may have changed since
            texts = [text_of(item) for item in (start if isinstance(start, list) else [start])]
            made: dict[str, Any] = {
                "constant": start,
                "expression": expression_of(texts, kind.variable, kind.variable),
                "table": {"points": [0.0, 0.3, 0.7, 1.0], "values": [start] * 4},
            }
            self._put(keys, made[event.value], again=True)

        with ui.row().classes("w-full no-wrap items-start gap-1"):
            with ui.column().classes("col gap-1"):
                if how == "constant":
                    self._text(one, kind, keys)
                elif how == "expression":
                    self._expression(one, kind, keys, value, draw)
                else:
                    self._table(one, keys, value, draw)
                picture = ui.html("", sanitize=False)
                draw()
            ways = ui.select(_HOW, value=how, on_change=choose).props("dense borderless options-dense").classes("how")
            ways.style("width: 2.2em").props(_mark([*keys, "way"]))
            ways.tooltip("a number, two numbers (base, tip), an expression, or a table")

    def _expression(self, one: Field, kind: Kind, keys: Keys, value: Any, draw: Callable[[], Any]) -> None:
        from nicegui import ui

        texts = components(value)
        if not texts:  # a list of lists, as of a matrix
            self._line(text_of(value.get("expression")), "", one.unit,
                       lambda text: self._put([*keys, "expression"], value_of(Kind(kinds.NUMBERS), text)))  # fmt: skip
            return
        given = value.get("variable", kind.variable)

        def commit(k: int, text: str) -> None:
            texts[k] = text
            made = expression_of(texts, given, kind.variable, value.get("constants"))
            self._put([*keys, "expression"], made["expression"])
            draw()

        for k, text in enumerate(texts):
            line = self._line(text, f"expression of {given}", one.unit, lambda text, k=k: commit(k, text))
            line.props('prefix="ƒ"').props(_mark([*keys, k]))
        with ui.row().classes("gap-1"):
            more = expression_of([*texts, "0"], given, kind.variable)["expression"]
            ui.button(icon="add", on_click=lambda: self._put([*keys, "expression"], more, again=True)).props(
                "flat dense size=sm"
            ).tooltip("one more component")
            if len(texts) > 1:
                less = expression_of(texts[:-1], given, kind.variable)["expression"]
                ui.button(icon="remove", on_click=lambda: self._put([*keys, "expression"], less, again=True)).props(
                    "flat dense size=sm"
                ).tooltip("without the last component")
            if given != kind.variable:
                ui.label(f"of {given}").classes("text-caption text-grey-7")

    def _table(self, one: Field, keys: Keys, value: Any, draw: Callable[[], Any]) -> None:
        for name, unit in (("points", ""), ("values", one.unit)):
            kind = Kind(kinds.NUMBERS)

            def commit(text: str, name: str = name, kind: Kind = kind) -> None:
                self._put([*keys, name], value_of(kind, text))
                draw()

            line = self._line(text_of(value.get(name)), name, unit, commit)
            line.props(f'prefix="{name}"')

    def _placement(self, one: Field, keys: Keys) -> None:
        """A position and a turn about an axis; other placements are one line."""
        value = self.document.value(keys)
        turn = value.get("rotation") if isinstance(value, dict) else None
        if isinstance(value, list) or (turn is not None and not {"axis", "degrees"} >= set(turn)):
            self._text(one, Kind(kinds.NUMBERS), keys)
            return
        position, numbers = (value or {}).get("position"), Kind(kinds.NUMBERS)

        def moved(text: str) -> None:
            if text.strip():
                self._put([*keys, "position"], value_of(numbers, text))
            elif self.document.value([*keys, "rotation"]) is None:
                self._clear(keys, again=True)
            else:
                self._clear([*keys, "position"])

        def turned(name: str, text: str) -> None:
            now = self.document.value([*keys, "rotation"])
            found = {"axis": [0, 0, 1], "degrees": 0} | (now or {}) | {name: value_of(numbers, text)}
            if text.strip():
                self._put([*keys, "rotation"], found, again=now is None)
            else:
                self._clear([*keys, "rotation"], again=True)

        line = self._line(text_of(position), "0, 0, 0", "m", moved)
        line.props('prefix="position"').props(_mark([*keys, "position"]))
        for name, hint, unit in (("axis", "0, 0, 1", ""), ("degrees", "0", "°")):
            line = self._line(text_of((turn or {}).get(name)), hint, unit, lambda text, name=name: turned(name, text))
            line.props(f'prefix="{"turned by" if unit else "about"}"').props(_mark([*keys, name]))

    # -- values with fields of their own ------------------------------------------------------------------------------

    def _nested(self, one: Field, keys: Keys, depth: int) -> None:
        data = self.document.value(keys)
        kind = kind_of(one.kind, data)
        title = one.name.replace("_", " ")
        known = form_of(kind, data) if kind.word == ONE_OF and data is not None else None
        shown = known.title if known is not None and known.title.lower() != title else ""
        if kind.word in (LIST, BY_NAME) and data:
            shown = str(len(data))
        is_open = data not in (None, [], {}) and depth < _DEEPEST
        with self._expansion(title, tuple(keys), is_open, shown, one.help):
            if one.kind.word == EITHER:
                self._alternatives(one, kind, keys, data)
            if kind.word == ONE_OF:
                self._choice(kind, keys, known, depth, one)
                if known is not None:
                    self._fields(known, keys, data, depth + 1)
            elif kind.word == LIST and kind.item is not None:
                self._entries(one, kind.item, keys, data, depth)
            elif kind.word == BY_NAME and kind.item is not None:
                self._named(kind, keys, data, depth)
            else:
                self._input(one, kind, keys)
            self._message(keys)

    def _expansion(
        self, title: str, keys: tuple[str | int, ...], is_open: bool, shown: str = "", help: str = ""
    ) -> Any:
        """A part of the form that opens at a click, and stays as the user leaves it."""
        from nicegui import ui

        caption = f'caption="{html.escape(shown)}"' if shown else ""
        part = ui.expansion(title, value=self._open.get(keys, is_open)).props(f"dense dense-toggle {caption}")
        part.classes("w-full nested").on_value_change(lambda event: self._open.update({keys: bool(event.value)}))
        if help:
            with part.add_slot("header"), ui.row().classes("w-full items-baseline gap-2 no-wrap"):
                ui.label(title).classes("text-body2 cursor-help").tooltip(help)
                ui.label(shown).classes("text-caption text-grey-7")
        return part

    def _choice(self, kind: Kind, keys: Keys, form: Form | None, depth: int, one: Field | None = None) -> None:
        """The choice of the class of a mapping."""
        from nicegui import ui

        titles = list(kind.forms)
        optional = one is not None and not one.is_required
        if len(titles) == 1 and not optional:
            return
        options = {title: title for title in titles}
        if optional:
            default = "none" if kind.optional else "default"
            options = {NONE: default, **options}

        def chosen(event: Any) -> None:
            if event.value == NONE:
                self._clear(keys, again=True)
            else:
                made = changed_class(kind.forms[event.value], self.document.value(keys), self._names)
                self._open[tuple(keys)] = True
                self._put(keys, made, again=True)

        shown = form.title if form is not None else NONE if optional else None
        choice = ui.select(options, value=shown, on_change=chosen, with_input=len(titles) > 12)
        choice.props("dense outlined options-dense").classes("w-full q-mb-xs").props(_mark([*keys, "class"]))
        if form is not None and form.help:
            choice.tooltip(form.help)

    def _alternatives(self, one: Field, kind: Kind, keys: Keys, data: Any) -> None:
        """The choice among kinds of values, such as a name or a point."""
        from nicegui import ui

        words = {k: _kind_word(each) for k, each in enumerate(one.kind.either)}

        def chosen(event: Any) -> None:
            made = blank_value(Field(one.name, one.kind.either[event.value], True, None, "", one.unit), self._names)
            self._put(keys, made, again=True)

        here = one.kind.either.index(kind) if data is not None and kind in one.kind.either else None
        ui.toggle(words, value=here, on_change=chosen).props("dense no-caps flat")

    def _entries(self, one: Field, item: Kind, keys: Keys, data: Any, depth: int) -> None:
        """The entries of a list, and a button that adds one."""
        from nicegui import ui

        for k, value in enumerate(data if isinstance(data, list) else ()):
            there = [*keys, k]
            if item.word == ONE_OF:
                form = form_of(item, value)
                title = f"{k + 1}  {form.title if form is not None else ''}"
                with self._expansion(title, tuple(there), depth < _DEEPEST):
                    self._choice(item, there, form, depth + 1)
                    if form is not None:
                        self._fields(form, there, value, depth + 1)
                    self._remover(there)
                    self._message(there)
            else:
                with ui.row().classes("w-full no-wrap items-center gap-1"):
                    with ui.column().classes("col gap-0"):
                        self._input(Field(f"{k + 1}", item, True, None, "", one.unit), item, there)
                        self._message(there)
                    self._remover(there)

        def add(title: str = "") -> None:
            form = item.forms.get(title)
            made = blank(form, self._names) if form is not None else blank_value(
                Field("", item, True, None, "", one.unit), self._names)  # fmt: skip
            self._edit(lambda: self.document.add_entry(keys, made), again=True)

        if item.word == ONE_OF and len(item.forms) > 1:
            adder = ui.button("add", icon="add").props("flat dense no-caps size=sm").props(_mark([*keys, "add"]))
            with adder, ui.menu().props("auto-close"):
                for title in item.forms:
                    ui.menu_item(title, on_click=partial(add, title))
        else:
            first = next(iter(item.forms), "")
            ui.button("add", icon="add", on_click=lambda: add(first)).props("flat dense no-caps size=sm")

    def _remover(self, keys: Keys) -> None:
        from nicegui import ui

        ui.button(icon="delete_outline", on_click=lambda: self._clear(keys, again=True)).props(
            "flat dense size=sm color=grey-7"
        ).tooltip("remove this entry")

    def _named(self, kind: Kind, keys: Keys, data: Any, depth: int) -> None:
        """The entries of a mapping by name, and a choice that adds one."""
        from nicegui import ui

        assert kind.item is not None and kind.key is not None
        for name, value in (data if isinstance(data, dict) else {}).items():
            there = [*keys, name]
            with ui.row().classes("w-full no-wrap items-center gap-1"):
                ui.label(name).classes("text-body2").style("width: 34%")
                with ui.column().classes("col gap-0"):
                    inner = Field(name, kind.item, True, None, "", "")
                    if kind.item.is_nested:
                        form = form_of(kind.item, value)
                        self._choice(kind.item, there, form, depth + 1)
                        if form is not None:
                            self._fields(form, there, value, depth + 1)
                    else:
                        self._input(inner, kind.item, there)
                    self._message(there)
                self._remover(there)
        section = REFERENCES.get(kind.key.word, "")
        known = [name for name in self._names.get(section, []) if name not in (data or {})]

        def add(name: str) -> None:
            assert kind.item is not None
            if name:
                form = simplest(kind.item) if kind.item.word == ONE_OF else None
                start = blank(form, self._names) if form is not None else blank_value(
                    Field("", kind.item, True, None, "", ""), self._names)  # fmt: skip
                self._put([*keys, name], start, again=True)

        if section:
            adder = ui.select(known, label="add", on_change=lambda event: add(event.value)).props("dense outlined")
            adder.classes("w-full").props(_mark([*keys, "add"]))
        else:
            self._line("", "add a name", "", add)


def _mark(keys: Sequence[str | int]) -> str:
    """An attribute of the page by which programs, such as tests, find the input of a place."""
    return 'data-place="{}"'.format("-".join(str(key).replace(" ", "_").replace('"', "") for key in keys))


def _hint(one: Field) -> str:
    if one.default is not None and one.default != []:
        return text_of(one.default)
    return "required" if one.is_required else "not given"


def _first_constant(value: Any, one: Field) -> Any:
    """A constant from which another way to give a function begins."""
    if isinstance(value, dict) and "values" in value:
        return value["values"][0]
    if value is None or isinstance(value, dict):
        count = len(components(value))
        return [0.0] * count if count > 1 else 0.0 if one.unit == "" else 0.01
    return value


def _kind_word(kind: Kind) -> str:
    if kind.word == ONE_OF:
        return next(iter(kind.forms)) if len(kind.forms) == 1 else "a part"
    return {kinds.LINK: "a name", kinds.NUMBERS: "numbers", TEXT: "a word", LIST: "one for each"}.get(
        kind.word, kind.word
    )


def _without_place(text: str) -> str:
    """The end of a message: the rule and the value, without the place, which the field shows."""
    head, _, rest = text.partition(" (got ")
    return f"{head.rpartition(': ')[2]} (got {rest}" if rest else text.rpartition(": ")[2]
