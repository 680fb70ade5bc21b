"""Values of a robot file as texts in forms, texts as values, and the values with which new parts begin."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lissom.errors import ModelError
from lissom.io.text_edits import flow_text
from lissom.io.text_files import parse
from lissom.robot import fields as kinds
from lissom.robot.functions import Expression, Tabulated
from lissom.studio.forms import (
    BY_NAME,
    CHOICE,
    EITHER,
    INTEGER,
    LIST,
    NUMBER,
    ONE_OF,
    REFERENCES,
    TEXT,
    TRUTH,
    Field,
    Form,
    Kind,
)

_STARTS = Path(__file__).with_name("starts.yaml")
_BY_UNIT = {"m": 0.1, "m²": 1e-4, "kg": 0.1, "Pa": 1e6, "kg/m³": 1000.0, "N/m": 100.0}
_SAMPLES = 81  # points of a graph
_LONGEST = 5.0  # of a graph over time [s]
_WORDS = (TEXT, CHOICE, kinds.FUNCTION_OF_POINT)


def text_of(value: Any) -> str:
    """A value as the text of a form: numbers of a list are separated by commas."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, list) and value and all(_is_number(item) for item in value):
        return ", ".join(map(_number, value))
    return value if isinstance(value, str) else flow_text(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: float) -> str:
    """A number in the shortest way that is read back as the same number."""
    text = repr(value)
    if isinstance(value, int) or "e" in text or text in ("inf", "-inf", "nan"):
        return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(text, text)
    if text.endswith(".0"):
        zeros = len(text) - 2 - len(text[:-2].rstrip("0"))
        return f"{text[: -2 - zeros]}e{zeros}" if zeros >= 4 else text[:-2]
    return text


def value_of(kind: Kind, text: str) -> Any:
    """The value that a text in a form means. A text that is no value of the kind stays a text, whose mistake `check`
    tells."""
    text = text.strip()
    if kind.word in _WORDS or kind.word in REFERENCES:
        return text
    if "," in text and not text.startswith(("[", "{")):
        text = f"[{text}]"
    try:
        found = parse(f"value: {text}", "value").data([])["value"]
    except ModelError:
        return text
    if kind.word == NUMBER and isinstance(found, int) and not isinstance(found, bool):
        return found
    return found


def expression_of(texts: list[str], variable: str, default: str, constants: Any = None) -> dict[str, Any]:
    """The mapping of an expression from its components."""
    out: dict[str, Any] = {"expression": texts[0] if len(texts) == 1 else texts}
    if variable != default:
        out["variable"] = variable
    return out | ({"constants": constants} if constants else {})


def components(value: Any) -> list[str]:
    """The texts of an expression, one for each component; none if it is a nested list."""
    source = value.get("expression") if isinstance(value, dict) else None
    if isinstance(source, list):
        return [str(item) for item in source] if not any(isinstance(item, list) for item in source) else []
    return [] if source is None else [str(source)]


def graph(
    value: Any, variable: str, *, tapers: bool = False, longest: float = _LONGEST
) -> tuple[np.ndarray, np.ndarray] | None:
    """Samples of a function: the variable (n,) and the values (n, m). None if it is no function yet. With `tapers` two
    numbers are those of base and tip. `longest` is the end of a graph over time [s]."""
    x = np.linspace(0.0, 1.0 if variable == "s" else longest, _SAMPLES)
    try:
        if isinstance(value, dict) and "expression" in value:
            function: Any = Expression(value["expression"], value.get("variable", variable), value.get("constants", {}))
        elif isinstance(value, dict) and "points" in value:
            function = Tabulated(value["points"], value["values"], value.get("interpolation", "cubic"))
            x = np.linspace(float(value["points"][0]), float(value["points"][-1]), _SAMPLES)
        elif tapers and isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)):
            return x, (value[0] + (value[1] - value[0]) * x)[:, None]
        else:
            return None
        y = np.array([np.asarray(function(one), dtype=np.float64).ravel() for one in x])
    except (ModelError, ArithmeticError, IndexError, TypeError, ValueError):
        return None
    return (x, y) if np.isfinite(y).all() else None


def table_of(text: str) -> list[tuple[float, float]]:
    """The times and values of a text such as "0: 1, 2: 5"; none if it is no table with rising times."""
    pairs = [pair.split(":") for pair in text.replace(";", ",").strip(" ,").split(",")]
    try:
        found = [(float(t), float(value)) for t, value in pairs]
    except ValueError:
        return []
    rising = all(a[0] < b[0] for a, b in pairwise(found))
    return found if len(found) > 1 and rising and np.isfinite(found).all() else []


def table_expression(text: str) -> str:
    """The expression of t with the values of a table, linear between its times and constant before and after; empty if
    the text is no table.

        f(t) = v₁ + Σ (kᵢ − kᵢ₋₁) max(t − tᵢ, 0),   kᵢ = (vᵢ₊₁ − vᵢ)/(tᵢ₊₁ − tᵢ)                              (1)
    """
    table = table_of(text)
    if not table:
        return ""
    slopes = [0.0, *((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(table)), 0.0]
    parts = [f"({after - before!r})*maximum(t - ({t!r}), 0)" for (t, _), before, after in zip(table, slopes, slopes[1:])
             if after != before]  # fmt: skip
    return " + ".join([f"({table[0][1]!r})", *parts])


# -- values of new parts ----------------------------------------------------------------------------------------------


@cache
def _starts() -> dict[str, Any]:
    return parse(_STARTS.read_text(encoding="utf-8"), _STARTS.name).data([])


def blank(form: Form, names: dict[str, list[str]]) -> dict[str, Any]:
    """The mapping with which a form begins.

    Args:
        names: names of the parts by their lists, for fields that name parts, of which the last one is taken; "joints"
            are the links whose joints move.
    """
    out: dict[str, Any] = dict(form.fixed)
    given = _starts().get(form.title, {})
    for one in form.fields:
        if one.name in given:
            out[one.name] = deepcopy(given[one.name])
        elif one.is_required or (one.kind.word == kinds.LINK and one.default is None and not one.kind.optional):
            out[one.name] = blank_value(one, names)
    return out


def blank_value(one: Field, names: dict[str, list[str]]) -> Any:
    """The value with which a field begins."""
    kind = one.kind.either[0] if one.kind.word == EITHER else one.kind
    if one.default not in (None, []):
        return deepcopy(one.default)
    if kind.word in REFERENCES:
        known = names.get("joints" if kind.word == kinds.JOINT else "", []) or names.get(REFERENCES[kind.word], [])
        return known[-1] if known else ""
    if kind.word == ONE_OF:
        return blank(simplest(kind), names)
    if kind.word == LIST:
        return [blank_value(Field("", kind.item, True, None, "", one.unit), names)] if kind.item is not None else []
    if kind.word in (TEXT, CHOICE):
        return kind.choices[0] if kind.choices else (one.words[0] if one.words else one.name or "new")
    if kind.word == BY_NAME and kind.key is not None and kind.item is not None:
        known = names.get(REFERENCES.get(kind.key.word, ""), [])
        return {known[-1]: blank_value(Field("", kind.item, True, None, "", ""), names)} if known else {}
    plain = {TRUTH: False, INTEGER: 1, kinds.PLACE: 1.0, kinds.PLACEMENT: {"position": [0, 0, 0]}}
    if kind.word in plain:
        return plain[kind.word]
    return _BY_UNIT.get(one.unit, 1.0) if kind.word != kinds.FUNCTION_OF_POINT else "x"


def simplest(kind: Kind) -> Form:
    """The form of a choice whose first values are in `starts.yaml`, else the one with the fewest fields to fill."""
    known = [form for title, form in kind.forms.items() if title in _starts()]
    return min(known or kind.forms.values(), key=lambda form: sum(one.is_required for one in form.fields))


def changed_class(form: Form, before: Any, names: dict[str, list[str]]) -> dict[str, Any]:
    """The mapping of another class, with the values of the fields that both classes have."""
    out = blank(form, names)
    kept = before if isinstance(before, dict) else {}
    return out | {one.name: deepcopy(kept[one.name]) for one in form.fields if one.name in kept}


def name_of(item: Any) -> str:
    """The name of a part of a document, as a tree shows it."""
    return str(item.get("name", "?")) if isinstance(item, dict) else "?"
