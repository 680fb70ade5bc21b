"""Objects in short words and as tables, for prompts and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

_SHOWN = 4  # names in one line


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
