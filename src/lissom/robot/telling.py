"""Objects in short words and as tables, for prompts and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import Any, TypeVar

import numpy as np

_SHOWN = 4  # names in one line
_LONGEST = 160  # characters of a result in one line

Class = TypeVar("Class", bound=type)


def counted(kind: str, names: Iterable[str]) -> str:
    """How many there are of a kind, and the first of their names."""
    known = list(names)
    first = ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
    words = f"{len(known)} {kind if len(known) != 1 else kind[:-1]}"
    return f"{words} ({first})" if known else words


def ranged(name: str, values: Any) -> str:
    """The least and the greatest of an array, and its last size."""
    array = np.asarray(values)
    if not array.size:
        return f"{name} ({array.shape[-1] if array.ndim else 0})"
    low, high = float(np.min(array)), float(np.max(array))
    size = f" ({array.shape[-1]})" if array.ndim else ""
    return f"{name}{size} {low:.3g}" if low == high else f"{name}{size} {low:.3g} to {high:.3g}"


def equilibrium_words(found: Any) -> str:
    """An equilibrium of a model, or several of a batch."""
    name, lead = getattr(found.model, "common", found.model).name, found.q.shape[:-1]
    state = f"batch {lead}, {int(np.sum(found.is_stable))} stable"
    if not lead:
        state = "stable" if found.is_stable else f"unstable, {found.unstable_count} motion(s) grow"
    parts = [ranged("q", found.q), *([ranged("u", found.u)] if found.u.shape[-1] else [])]
    left = float(np.max(found.residual, initial=0.0))
    return f"Equilibrium({name!r}: {state}; {', '.join(parts)}; residual {left:.2g})"


def in_one_line(public: Class) -> Class:
    """Let a class of results show itself in one line: numbers as they are, of arrays their shapes and ranges."""
    setattr(public, "__repr__", result_words)  # noqa: B010
    return public


def result_words(found: Any) -> str:
    """A result in one line: its fields in their order, as many as there is room for."""
    shown = [(item.name, getattr(found, item.name)) for item in fields(found) if item.repr and item.name[0] != "_"]
    shown = [(name, value) for name, value in shown if value is not None]
    for with_ranges in (True, False):
        parts = [_value_words(name, value, with_ranges) for name, value in shown]
        if len(", ".join(parts)) <= _LONGEST:
            break
    while len(parts) > 1 and len(", ".join(parts)) > _LONGEST:
        parts = [*(parts[:-2] if parts[-1] == "..." else parts[:-1]), "..."]
    return f"{type(found).__name__}({', '.join(parts)[:_LONGEST]})"


def in_brackets(title: str, words: str) -> str:
    """Words of a result behind the name of its class, in one line that is cut where it is too long."""
    line = " ".join(words.split())
    return f"{title}({line if len(line) <= _LONGEST else line[: _LONGEST - 3] + '...'})"


def _value_words(name: str, value: Any, with_range: bool) -> str:
    """A field in a few words."""
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
    """A value of a table in a few words."""
    array = np.asarray(value)
    return _array_words(array, False) if array.dtype.kind in "biuf" else _short(str(value))


def _array_words(array: np.ndarray, with_range: bool) -> str:
    """An array of one number as this number, others by shape, and by range where they hold numbers."""
    if array.size == 1 and array.dtype.kind in "biuf":
        return _short(array.reshape(-1)[0])
    if with_range and array.size and array.dtype.kind in "iuf":
        return f"{array.shape} {np.min(array):.3g} to {np.max(array):.3g}"
    return str(array.shape)


def _short(value: Any) -> str:
    """A number with few digits; words within a line, cut."""
    if isinstance(value, str):
        line = " ".join(value.split())
        return repr(line if len(line) <= 40 else f"{line[:37]}...")
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def html_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a title."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<p><code>{escape(title)}</code></p><table><tr>{head}</tr>{body}</table>"


def html_inputs(names: Sequence[str]) -> str:
    """The inputs in their order."""
    return f"<p>inputs: {escape(', '.join(names))}</p>" if names else ""


def html_arrays(title: str, arrays: dict[str, Any]) -> str:
    """Arrays with their shapes and ranges."""
    rows = []
    for name, value in arrays.items():
        array = np.asarray(value)
        ends = (f"{np.min(array):.4g}", f"{np.max(array):.4g}") if array.size else ("", "")
        rows.append((name, str(array.shape), *ends))
    return html_table(title, ("array", "shape", "least", "greatest"), rows)
