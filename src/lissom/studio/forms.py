"""Forms of the parts of a robot, made from the schema of robot files and the docstrings of the described classes.

Nothing here names a class of the library: a new class, or a new field, appears in the forms with its name, default,
unit and help.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, final, get_args, get_origin

from pydantic import BaseModel, Tag
from pydantic_core import PydanticUndefined

from lissom.io.schema import SOURCES, Document
from lissom.robot import fields as kinds
from lissom.robot.robot import PARTS

TRUTH, INTEGER, NUMBER, TEXT, CHOICE = "truth", "integer", "number", "text", "choice"
ONE_OF, LIST, BY_NAME, EITHER = "one of", "list", "by name", "either"
REFERENCES = {kinds.LINK: "links", kinds.LINK_OR_WORLD: "links", kinds.LINKS: "links", kinds.JOINT: "links",
              kinds.ACTUATOR: "actuators"}  # fmt: skip
_WORDS = {*REFERENCES, kinds.NUMBERS, kinds.PLACE, kinds.PLACEMENT, kinds.BALLS, kinds.FUNCTION_OF_POINT}
_WORDS |= {kinds.FUNCTION_OF_S, kinds.FUNCTION_OF_T, kinds.FUNCTION_OF_Q}
_PLAIN = {bool: TRUTH, int: INTEGER, float: NUMBER, str: TEXT}


@final
@dataclass(frozen=True)
class Kind:
    """What a value in a robot file may be.

    Fields:
        word: one of the words above, or a kind of `robot.fields`.
        optional: whether null is allowed.
        choices: texts of a choice.
        forms: of "one of", the forms of its mappings by their titles.
        item: of a list, its entries; of "by name", its values.
        key: of "by name", its keys.
        either: of "either", the kinds of which the value has one.
    """

    word: str
    optional: bool = False
    choices: tuple[str, ...] = ()
    forms: Mapping[str, Form] = field(default_factory=dict)
    item: Kind | None = None
    key: Kind | None = None
    either: tuple[Kind, ...] = ()

    @property
    def variable(self) -> str:
        """Argument of a function of one variable; empty for other values."""
        return self.word.removeprefix("function of ") if self.word in _FUNCTIONS else ""

    @property
    def is_nested(self) -> bool:
        """Whether the value has fields or entries with a form."""
        return self.word in (ONE_OF, LIST, BY_NAME) or any(kind.is_nested for kind in self.either)


_FUNCTIONS = (kinds.FUNCTION_OF_S, kinds.FUNCTION_OF_T, kinds.FUNCTION_OF_Q)


@final
@dataclass(frozen=True)
class Field:
    """A field of a form.

    Fields:
        name: its key in the file.
        kind: what its value may be.
        is_required: whether it must be given.
        default: the value if it is not given; None if there is none, or if a part computes it.
        help: what the docstrings say about it.
        unit: from the help; empty if it gives none.
        words: texts in quotes in the help of a text, which are usually its choices.
    """

    name: str
    kind: Kind
    is_required: bool
    default: Any
    help: str
    unit: str
    words: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class Form:
    """The fields of a mapping in a robot file.

    Fields:
        title: name of the class.
        fixed: keys that make the mapping one of this class, such as `type`.
        help: first sentences of the docstring of the class.
    """

    title: str
    fields: tuple[Field, ...]
    fixed: Mapping[str, Any]
    help: str

    def field(self, name: str) -> Field | None:
        """The field of a name; None if there is no such field."""
        return next((one for one in self.fields if one.name == name), None)

    def fits(self, data: Any) -> bool:
        """Whether a mapping has the fixed keys of this form."""
        return isinstance(data, dict) and all(data.get(key) == value for key, value in self.fixed.items())


@cache
def document_form() -> Form:
    """The form of a whole robot file: its own values, and a list for each kind of part."""
    return _form(Document, "robot")


def part_kind(section: str) -> Kind:
    """What an entry of a list of parts may be, such as of "links"."""
    found = document_form().field(section)
    if found is None or found.kind.item is None:
        raise KeyError(section)
    return found.kind.item


def sections() -> dict[str, str]:
    """The lists of parts that files have, in the order of the library, and the word for one of their parts."""
    return {kind: part.word for kind, part in PARTS.items() if part.is_saved}


def form_of(kind: Kind, data: Any) -> Form | None:
    """The form of a mapping whose kind is "one of"; None if it fits none."""
    fitting = [form for form in kind.forms.values() if form.fits(data)]
    known = [form for form in fitting if all(form.field(key) or key in form.fixed for key in data)]
    return max(known or fitting, key=lambda form: len(form.fixed), default=None)


def kind_of(kind: Kind, data: Any) -> Kind:
    """The kind that a value has: of "either", the one that its form shows."""
    if kind.word != EITHER:
        return kind
    of_mappings = [one for one in kind.either if one.word in (ONE_OF, BY_NAME)]
    of_lists = [one for one in kind.either if one.word in (LIST, kinds.NUMBERS)]
    others = [one for one in kind.either if one.word not in (ONE_OF, BY_NAME, LIST)]
    wanted = of_mappings if isinstance(data, dict) else of_lists if isinstance(data, list) else others
    return (wanted or list(kind.either))[0]


def steps_into(kind: Kind, data: Any) -> Iterator[tuple[str | int, Kind, Any]]:
    """The values in a value, each with its key and its kind."""
    kind = kind_of(kind, data)
    if kind.word == ONE_OF and isinstance(data, dict):
        form = form_of(kind, data)
        for one in form.fields if form is not None else ():
            if one.name in data:
                yield one.name, one.kind, data[one.name]
    elif kind.word == LIST and isinstance(data, list) and kind.item is not None:
        yield from ((k, kind.item, item) for k, item in enumerate(data))
    elif kind.word == BY_NAME and isinstance(data, dict) and kind.item is not None:
        yield from ((key, kind.item, item) for key, item in data.items())


def references(data: Any) -> Iterator[tuple[list[str | int], str, str]]:
    """The names of parts that other parts hold: place, list of parts ("links" or "actuators"), and name. The place of a
    key of a mapping ends with this key twice."""
    yield from _references(Kind(ONE_OF, forms={"robot": document_form()}), data, [])


def _references(kind: Kind, data: Any, keys: list[str | int]) -> Iterator[tuple[list[str | int], str, str]]:
    kind = kind_of(kind, data)
    if kind.word in REFERENCES:
        if isinstance(data, str):
            yield keys, REFERENCES[kind.word], data
        if isinstance(data, list):
            yield from (
                ([*keys, k], REFERENCES[kind.word], name) for k, name in enumerate(data) if isinstance(name, str)
            )
    if kind.word == BY_NAME and kind.key is not None and kind.key.word in REFERENCES and isinstance(data, dict):
        yield from (([*keys, name, name], REFERENCES[kind.key.word], name) for name in data)
    for key, inner, value in steps_into(kind, data):
        yield from _references(inner, value, [*keys, key])


# -- from the schema --------------------------------------------------------------------------------------------------


@cache
def _form(model: type[BaseModel], title: str) -> Form:
    sources = SOURCES.get(model, ())
    fixed, found = {}, []
    for name, info in model.model_fields.items():
        if get_origin(info.annotation) is Literal and (name in ("type", "shape") or name == "format"):
            values = get_args(info.annotation)
            if info.is_required():
                fixed[name] = values[0]
            if len(values) == 1:
                continue
        kind = _kind(info.annotation, tuple(info.metadata))
        help = next((text for text in (_help(source, name) for source in sources) if text), "")
        default = _default(sources, name, info.default)
        words = tuple(dict.fromkeys(re.findall(r'"([^"]+)"', help))) if kind.word == TEXT and name != "name" else ()
        found.append(Field(name, kind, info.is_required(), default, help, _unit(help), words))
    classes = [source for source in sources if inspect.isclass(source)]
    own = {"name"}.union(*(inspect.get_annotations(source) for source in classes))
    found.sort(key=lambda one: bool(classes) and one.name not in own)  # fields of the family come last
    told = next((doc for source in sources if inspect.isclass(source) and (doc := source.__doc__)), "")
    return Form(title, tuple(found), fixed, _summary(told))


def _kind(annotation: Any, metadata: tuple[Any, ...] = ()) -> Kind:
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        metadata = (*more, *metadata)
    word = next((one for one in metadata if isinstance(one, str) and one in _WORDS), None)
    origin, parts = get_origin(annotation), get_args(annotation)
    is_optional = origin in (Union, UnionType) and type(None) in parts
    if word is not None:
        return Kind(kinds.NUMBERS if word == kinds.BALLS else word, is_optional or word == kinds.LINK_OR_WORLD)
    if origin in (Union, UnionType):
        return _union([part for part in parts if part is not type(None)], is_optional)
    if origin is Literal:
        return Kind(CHOICE, choices=tuple(map(str, parts)))
    if origin is list:
        return Kind(LIST, item=_kind(parts[0]))
    if origin is dict:
        return Kind(BY_NAME, key=_kind(parts[0]), item=_kind(parts[1]))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        title = next((str(one.tag) for one in metadata if isinstance(one, Tag)), annotation.__name__)
        return Kind(ONE_OF, forms={title: _form(annotation, title)})
    return Kind(_PLAIN.get(annotation, kinds.NUMBERS))


def _union(parts: list[Any], is_optional: bool) -> Kind:
    found = [_kind(part) for part in parts]
    if len(found) == 1:
        return dataclasses.replace(found[0], optional=is_optional or found[0].optional)
    if all(kind.word == ONE_OF for kind in found):
        return Kind(ONE_OF, is_optional, forms={title: form for kind in found for title, form in kind.forms.items()})
    return Kind(EITHER, is_optional, either=tuple(found))


def _default(sources: tuple[Any, ...], name: str, own: Any) -> Any:
    """The default of the class or function that takes the field, as plain data."""
    for source in sources:
        given = inspect.signature(source).parameters.get(name)
        if given is not None and given.default is not inspect.Parameter.empty:
            return _plain(given.default)
    return None if own is PydanticUndefined else _plain(own)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str) else None


# -- from docstrings --------------------------------------------------------------------------------------------------


def _help(source: Any, name: str) -> str:
    """What the docstring of a function, or of a class and its bases, says about an argument."""
    docs = [cls.__doc__ for cls in source.__mro__ if cls is not object] if inspect.isclass(source) else [source.__doc__]
    found = (_entries(doc or "").get(name, "") for doc in docs)
    return next((text for text in found if text), "")


@cache
def _entries(doc: str) -> dict[str, str]:
    """The entries of a docstring: what it says about each argument."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in inspect.cleandoc(doc).splitlines():
        entry = re.match(r" {4}(\w+(?:, \w+)*): (.*)", line)
        if entry:
            names = entry[1].split(", ")
            found |= dict.fromkeys(names, entry[2])
        elif line.startswith(" " * 8):
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
        else:
            names = []
    return found


def _unit(text: str) -> str:
    unit = re.search(r"\[([^\]\[]+)\]", text)
    return unit[1] if unit and unit[1] != "-" else ""


def _summary(doc: str) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join(inspect.cleandoc(doc).partition("\n\n")[0].split())
