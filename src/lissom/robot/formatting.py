"""Text forms of objects: one line for prompts, and HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import Any, TypeVar

import numpy as np

_SHOWN = 4  # most names in one line
_LONGEST = 160  # most characters of the one-line form of a result

Class = TypeVar("Class", bound=type)


def counted(kind: str, names: Iterable[str]) -> str:
    """The number of names and the first four of them: "3 links (a, b, c)". `kind` is a plural noun."""
    known = list(names)
    first = ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
    words = f"{len(known)} {kind if len(known) != 1 else kind[:-1]}"
    return f"{words} ({first})" if known else words


def ranged(name: str, values: Any) -> str:
    """The name of an array, its last size, its least and its greatest value, as text."""
    array = np.asarray(values)
    if not array.size:
        return f"{name} ({array.shape[-1] if array.ndim else 0})"
    low, high = float(np.min(array)), float(np.max(array))
    size = f" ({array.shape[-1]})" if array.ndim else ""
    return f"{name}{size} {low:.3g}" if low == high else f"{name}{size} {low:.3g} to {high:.3g}"


def format_equilibrium(found: Any) -> str:
    """An Equilibrium, or a batch of equilibria, as one line."""
    name, lead = getattr(found.model, "common", found.model).name, found.q.shape[:-1]
    state = f"batch {lead}, {int(np.sum(found.is_stable))} stable"
    if not lead:
        state = "stable" if found.is_stable else f"unstable, {found.unstable_count} motion(s) grow"
    parts = [ranged("q", found.q), *([ranged("u", found.u)] if found.u.shape[-1] else [])]
    left = float(np.max(found.residual, initial=0.0))
    return f"Equilibrium({name!r}: {state}; {', '.join(parts)}; residual {left:.2g})"


def in_one_line(public: Class) -> Class:
    """Class decorator for results: their repr is one line with numbers, and with shapes and ranges of arrays; in a
    notebook they are a table of their fields."""
    setattr(public, "__repr__", format_result)  # noqa: B010
    setattr(public, "_repr_html_", html_result)  # noqa: B010
    return public


def format_result(found: Any) -> str:
    """A result as one line: its fields in order, as many as fit."""
    shown = [(item.name, getattr(found, item.name)) for item in fields(found) if item.repr and item.name[0] != "_"]
    shown = [(name, value) for name, value in shown if value is not None]
    for with_ranges in (True, False):
        parts = [_value_words(name, value, with_ranges) for name, value in shown]
        if len(", ".join(parts)) <= _LONGEST:
            break
    while len(parts) > 1 and len(", ".join(parts)) > _LONGEST:
        parts = [*(parts[:-2] if parts[-1] == "..." else parts[:-1]), "..."]
    return f"{type(found).__name__}({', '.join(parts)[:_LONGEST]})"


def html_result(found: Any) -> str:
    """A result as an HTML table: its fields in order, arrays with their shapes and ranges."""
    rows = []
    for item in fields(found):
        value = getattr(found, item.name)
        if not item.repr or item.name[0] == "_" or value is None:
            continue
        if isinstance(value, np.ndarray) and value.size > 1 and value.dtype.kind in "iuf":
            rows.append((item.name, f"{np.min(value):.4g} to {np.max(value):.4g}", str(value.shape)))
        else:
            head, equals, words = _value_words(item.name, value, True).partition("=")
            rows.append((item.name, words if equals else head.partition(": ")[2], ""))
    return html_table(type(found).__name__, ("field", "value", "shape"), rows)


def in_brackets(title: str, words: str) -> str:
    """The class name and a text in brackets, as one line that is cut at 160 characters."""
    line = " ".join(words.split())
    return f"{title}({line if len(line) <= _LONGEST else line[: _LONGEST - 3] + '...'})"


def _value_words(name: str, value: Any, with_range: bool) -> str:
    """A field and its value as short text."""
    if isinstance(value, bool | int | float | str | np.generic):
        return f"{name}={_short(value)}"
    if isinstance(value, np.ndarray):
        return f"{name}={_array_words(value, with_range)}"
    if isinstance(value, Mapping):
        known = [f"{_short(key)}: {_inner(one)}" for key, one in list(value.items())[:_SHOWN]]
        return f"{name}={{{', '.join([*known, *(['...'] if len(value) > _SHOWN else [])])}}}"
    if isinstance(value, list | tuple):
        first = [_short(one) for one in value[:2] if isinstance(one, str | None)]
        return f"{name}: {len(value)}" + (f" ({', '.join(first)}{', ...' if len(value) > 2 else ''})" if first else "")
    title = getattr(getattr(value, "common", value), "name", None)
    return f"{name}={title!r}" if isinstance(title, str) else f"{name}: {type(value).__name__}"


def _inner(value: Any) -> str:
    """A value of a mapping as short text."""
    array = np.asarray(value)
    return _array_words(array, False) if array.dtype.kind in "biuf" else _short(str(value))


def _array_words(array: np.ndarray, with_range: bool) -> str:
    """An array as text: its number if it has one entry, otherwise its shape and, for numbers, its range."""
    if array.size == 1 and array.dtype.kind in "biuf":
        return _short(array.reshape(-1)[0])
    if with_range and array.size and array.dtype.kind in "iuf":
        return f"{array.shape} {np.min(array):.3g} to {np.max(array):.3g}"
    return str(array.shape)


def _short(value: Any) -> str:
    """A number with four digits; a text as one line, cut at 40 characters."""
    if isinstance(value, str):
        line = " ".join(value.split())
        return repr(line if len(line) <= 40 else f"{line[:37]}...")
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def html_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table with a title."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<p><code>{escape(title)}</code></p><table><tr>{head}</tr>{body}</table>"


def html_inputs(names: Sequence[str]) -> str:
    """The names of the inputs, in order, as an HTML paragraph."""
    return f"<p>inputs: {escape(', '.join(names))}</p>" if names else ""


def html_arrays(title: str, arrays: dict[str, Any]) -> str:
    """An HTML table of arrays with their shapes and ranges."""
    rows = []
    for name, value in arrays.items():
        array = np.asarray(value)
        ends = (f"{np.min(array):.4g}", f"{np.max(array):.4g}") if array.size else ("", "")
        rows.append((name, str(array.shape), *ends))
    return html_table(title, ("array", "shape", "least", "greatest"), rows)
