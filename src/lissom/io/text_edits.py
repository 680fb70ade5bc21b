"""Edits of a YAML text that change the edited value only. All other characters stay, comments included.

A place is a list of keys, as in `Source.locate`: ["links", 0, "body", "length"]. Written values are read back as the
same data. A value that is written once and named again (`&name`, `*name`) is edited for all its uses; an edit through
`*name` gives this place a copy of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, final

import yaml

from lissom.errors import ModelError
from lissom.io.text_files import collection_paused, fits_line, parse, parser_events, written

Keys = Sequence[str | int]
_WIDEST = 120  # of a line with a list or a mapping [characters]


@final
@dataclass
class Node:
    """A value of a YAML text and where it stands.

    Fields:
        kind: "map", "list", "scalar" or "alias".
        start, stop: where its characters begin and end; comments behind it do not count.
        flow: whether it has brackets.
        items: of a list, its values; of a mapping, its keys and values in turn.
        anchor: its `&name`, or the name that an alias names.
        text: of a scalar.
    """

    kind: str
    start: int
    stop: int
    flow: bool = False
    items: list[Node] = field(default_factory=list)
    anchor: str | None = None
    text: str = ""

    @property
    def pairs(self) -> list[tuple[Node, Node]]:
        """Keys and values of a mapping."""
        return list(zip(self.items[::2], self.items[1::2]))

    def below(self) -> Iterator[Node]:
        """The value and all values in it."""
        yield self
        for item in self.items:
            yield from item.below()


def outline(text: str, name: str) -> Node:
    """The values of a YAML text and their places.

    Raises:
        ModelError: wrong syntax; the message gives file and line.
    """
    parse(text, name)  # its messages name the line and a cure
    return _outlined(text)


@lru_cache(maxsize=2)
def _outlined(text: str) -> Node:
    """The values of a YAML text without mistakes. Nobody changes them."""
    events = (event for event in parser_events(text) if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent))
    with collection_paused():
        return _node(text, next(events), events)


def _node(text: str, event: Any, events: Iterator[Any]) -> Node:
    """The value that an event begins."""
    start, stop = event.start_mark.index, event.end_mark.index
    if isinstance(event, yaml.AliasEvent):
        return Node("alias", start, stop, anchor=event.anchor)
    if isinstance(event, yaml.ScalarEvent):
        stop -= 0 if event.style not in ("|", ">") else len(text[start:stop]) - len(text[start:stop].rstrip())
        return Node("scalar", start, stop, anchor=event.anchor, text=event.value)
    kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
    node = Node(kind, start, stop, bool(event.flow_style), anchor=event.anchor)
    inner = next(events)
    while not isinstance(inner, yaml.CollectionEndEvent):
        node.items.append(_node(text, inner, events))
        inner = next(events)
    node.stop = inner.end_mark.index if node.flow else max((item.stop for item in node.items), default=stop)
    return node


def put(text: str, keys: Keys, value: Any, name: str = "text") -> str:
    """The text with a value at a place. The last key may be new in its mapping; all others must exist.

    Args:
        value: plain data: dictionaries, lists, texts, numbers, None.
    Raises:
        ModelError: there is no such place.
    """
    text, path = _reached(text, keys, name)
    if path[-1] is None:
        return _with_entry(text, path, str(keys[-1]), value, name)
    text, path = _unnamed(text, keys, name, own=False)
    node, outer = path[-1], _outermost_flow(path[:-1])
    if outer is None or _is_short(text, outer, len(flow_text(value)) - (node.stop - node.start)):
        return _replaced(text, path, value)
    return _in_block(text, path, keys, name, value)


def remove(text: str, keys: Keys, name: str = "text") -> str:
    """The text without the entry at a place. The last entry of a list or a mapping leaves [] or {}.

    Raises:
        ModelError: there is no such place.
    """
    text, path = _unnamed(text, keys, name)
    holder, node = path[-2], path[-1]
    k, each = _index(holder, keys[-1])
    count = len(holder.items) // each
    first = holder.items[k * each]
    if count == 1:
        empty = "[]" if holder.kind == "list" else "{}"
        if holder.flow:
            return text[: holder.start] + empty + text[holder.stop :]
        if holder.kind == "map":
            return text[: first.start] + empty + text[node.stop :]
        return text[: _dash(text, first)] + " " + empty + text[node.stop :]  # dashes may have the column of their key
    if holder.flow:
        if k + 1 < count:
            return text[: first.start] + text[holder.items[(k + 1) * each].start :]
        return text[: holder.items[k * each - 1].stop] + text[node.stop :]
    start = first.start if holder.kind == "map" else _dash(text, first)
    line = text.rfind("\n", 0, start) + 1
    stop = _end_of_line(text, node.stop)
    if text[line:start].strip():  # the entry shares its line with the dash of a list, or with what is before the list
        following = holder.items[(k + 1) * each]
        return text[:start] + text[following.start if holder.kind == "map" else _dash(text, following) :]
    if holder.kind == "list" and k > 0:
        line = _with_comments_above(text, line, start - line)
    if text[:line].endswith("\n\n") and text[stop + 1 : stop + 2] in ("\n", ""):  # one empty line is enough
        line -= 1
    return text[:line] + text[stop + 1 :] if stop < len(text) else text[:line].rstrip("\n") + text[stop:]


def insert(text: str, keys: Keys, value: Any, name: str = "text") -> str:
    """The text with a new entry of a list; the last key is its index.

    Raises:
        ModelError: there is no such list, or the index is beyond its end.
    """
    text, path = _reached(text, keys[:-1], name)
    if path[-1] is not None and path[-1].kind == "alias":
        return insert(_expanded(text, path, keys, name), keys, value, name)
    node, index = path[-1], keys[-1]
    if node is None or node.kind != "list" or not isinstance(index, int) or not 0 <= index <= len(node.items):
        raise ModelError(f"{name}: must be a place in a list (got {list(keys)})")
    if _outermost_flow(path) is not None:
        data = parse(text, name).data([])
        for key in keys[:-1]:
            data = data[key]
        data.insert(index, value)
        return put(text, keys[:-1], data, name) if keys[:-1] else _behind(data, -2, False)
    column = _column_of(text, _dash(text, node.items[0]))
    new = " " * column + "-" + _behind(value, column, True)
    if index < len(node.items):
        line = text.rfind("\n", 0, _dash(text, node.items[index])) + 1
        if text[line : _dash(text, node.items[index])].strip():  # a list in a list
            data = parse(text, name).data([])
            for key in keys[:-1]:
                data = data[key]
            data.insert(index, value)
            return put(text, keys[:-1], data, name)
        line = _with_comments_above(text, line, column) if index else line
        return text[:line] + new + "\n" + text[line:]
    stop = _end_of_line(text, node.stop)
    return text[:stop] + "\n" + new + text[stop:]


def rename_key(text: str, keys: Keys, new: str, name: str = "text") -> str:
    """The text with another key of a mapping in place of the last one of `keys`.

    Raises:
        ModelError: there is no such place.
    """
    text, path = _reached(text, keys, name)
    found = [key for key, _ in path[-2].pairs if key.text == keys[-1]]
    if path[-1] is None or not found:
        raise _no_place(keys, name)
    return text[: found[0].start] + flow_text(new) + text[found[0].stop :]


def copied(text: str, keys: Keys, name: str = "text") -> str | None:
    """The text with a copy of an entry of a block list behind it, character for character; None if the entry cannot be
    copied so: it stands on a line with others, or has an `&name`."""
    path = _path(text, outline(text, name), keys, name)
    holder, node = path[-2], path[-1]
    if node is None or holder.kind != "list" or holder.flow or any(one.anchor and one.kind != "alias" for one in
                                                                   node.below()):  # fmt: skip
        return None
    dash = _dash(text, node)
    line, stop = text.rfind("\n", 0, dash) + 1, _end_of_line(text, node.stop)
    return None if text[line:dash].strip() else text[:stop] + "\n" + text[line:stop] + text[stop:]


def moved(text: str, keys: Keys, to: int, name: str = "text") -> str | None:
    """The text with an entry of a block list at another index, character for character, with the comments above it;
    None if the entries cannot be moved so, since some share a line with others. A use of a name (`*name`) that would
    then stand before the value with this name becomes a value of its own."""
    data = parse(text, name).data([])
    for key in keys[:-1]:
        data = data[key]
    if not isinstance(data, list) or not isinstance(keys[-1], int) or not 0 <= to < len(data):
        return None
    data.insert(to, data.pop(keys[-1]))
    found = _with_order(text, keys, to, name)
    if found is None or _data_at(found, keys[:-1], name) == data:
        return found
    for k in range(min(keys[-1], to), max(keys[-1], to) + 1):
        text = _unnamed(text, [*keys[:-1], k], name)[0]
    return _with_order(text, keys, to, name)


def _data_at(text: str, keys: Keys, name: str) -> Any:
    """The data at a place; None if a name is used before it is given."""
    try:
        data = parse(text, name).data([])
    except ModelError:
        return None
    for key in keys:
        data = data[key]
    return data


def _with_order(text: str, keys: Keys, to: int, name: str) -> str | None:
    """The text with an entry of a block list, and the comments above it, at another index; None if an entry on the way
    shares a line with others."""
    holder, k = _path(text, outline(text, name), keys, name)[-2], int(keys[-1])
    if holder.flow:
        return None
    first, spans = min(k, to), []
    for j in range(first, max(k, to) + 1):
        dash = _dash(text, holder.items[j])
        line, stop = text.rfind("\n", 0, dash) + 1, _end_of_line(text, holder.items[j].stop)
        if text[line:dash].strip():
            return None
        spans.append((_with_comments_above(text, line, dash - line) if j else line, stop))
    order = list(range(len(spans)))
    order.insert(to - first, order.pop(k - first))
    out, end = text[: spans[0][0]], spans[0][0]
    for (start, stop), taken in zip(spans, order):
        out, end = out + text[end:start] + text[slice(*spans[taken])], stop
    return out + text[end:]


# -- places -----------------------------------------------------------------------------------------------------------


def _no_place(keys: Keys, name: str) -> ModelError:
    return ModelError(f"{name}: the text must have this place (got {list(keys)})")


def _index(node: Node, key: str | int) -> tuple[int, int]:
    """Number of an entry, and how many items an entry has; −1 if there is none."""
    if node.kind == "list":
        return (key if isinstance(key, int) and 0 <= key < len(node.items) else -1), 1
    return next((k for k, (found, _) in enumerate(node.pairs) if found.text == key), -1), 2


def _path(text: str, root: Node, keys: Keys, name: str) -> list[Any]:
    """The values on the way to a place, the whole text first; the last one is None if its key is new."""
    path: list[Any] = [root]
    for count, key in enumerate(keys):
        node = path[-1]
        if node.kind == "alias":
            break
        k, each = _index(node, key) if node.kind in ("map", "list") else (-1, 1)
        if k < 0:
            is_new = count + 1 == len(keys) and isinstance(key, str) and _may_hold(node)
            if not is_new:
                raise _no_place(keys, name)
            path.append(None)
        else:
            path.append(node.items[(k + 1) * each - 1])
    return path


def _may_hold(node: Node) -> bool:
    return node.kind == "map" or (node.kind == "scalar" and node.text in ("", "null", "~"))


def _reached(text: str, keys: Keys, name: str) -> tuple[str, list[Any]]:
    """The text and the way to a place in it, after aliases on the way have become values of their own."""
    while True:
        path = _path(text, outline(text, name), keys, name)
        alias = next((node for node in path if node is not None and node.kind == "alias"), None)
        if alias is None:
            return text, path
        if len(path) == len(keys) + 1 and path[-1] is alias:
            return text, path
        text = _expanded(text, path[: path.index(alias) + 1], keys, name)


def _expanded(text: str, path: list[Any], keys: Keys, name: str) -> str:
    """The text with a value in place of the alias at the end of a path."""
    data = parse(text, name).data([])
    for key in keys[: len(path) - 1]:
        data = data[key]
    return _replaced(text, path, data)


def _replaced(text: str, path: list[Any], value: Any) -> str:
    """The text with another value at the end of a path. A name (`&name`) of the value stays."""
    node, holder = path[-1], path[-2]
    name = f"&{node.anchor} " if node.anchor and node.kind != "alias" else ""
    if _outermost_flow(path[:-1]) is not None:
        return text[: node.start] + name + flow_text(value) + text[node.stop :]
    if holder.kind == "list":
        head = _dash(text, node) + 1
    else:
        head = text.index(":", next(key.stop for key, one in holder.pairs if one is node)) + 1
    shown = _behind(value, _column(text, holder, node), holder.kind == "list", name)
    gap = text[head : node.start]
    comment = "\n".join(row.rstrip() for row in gap.split("\n") if row.strip())
    comment = "  " + comment.lstrip() if comment else ""
    if "\n" in shown and not shown.startswith("\n") and comment:  # the first row of a mapping behind a dash
        shown = "\n" + " " * (_column(text, holder, node) + 2) + shown.lstrip()
    first, line, rest = shown.partition("\n")
    return text[:head] + first + comment + line + rest + text[node.stop :]


def _unnamed(text: str, keys: Keys, name: str, own: bool = True) -> tuple[str, list[Any]]:
    """The text and the way to a place, after the uses elsewhere of names (`&name`) inside it, and with `own` of its own
    name, have become values of their own."""
    text, path = _reached(text, keys, name)
    if path[-1] is None:
        raise _no_place(keys, name)
    while True:
        root, node = path[0], path[-1]
        names = {one.anchor for one in node.below() if one.kind != "alias" and one.anchor and (own or one is not node)}
        outside = (keys for one, keys in _aliases(root, names, []) if not node.start <= one.start < node.stop)
        there = next(outside, None)
        if there is None:
            return text, path
        text = _expanded(text, _path(text, outline(text, name), there, name), there, name)
        path = _path(text, outline(text, name), keys, name)


def _aliases(node: Node, names: set[Any], keys: list[str | int]) -> Iterator[tuple[Node, list[str | int]]]:
    """The aliases of names in a value, and their places."""
    if node.kind == "alias" and node.anchor in names:
        yield node, keys
    if node.kind == "map":
        for key, value in node.pairs:
            yield from _aliases(value, names, [*keys, key.text])
    if node.kind == "list":
        for k, value in enumerate(node.items):
            yield from _aliases(value, names, [*keys, k])


def _outermost_flow(path: list[Any]) -> Node | None:
    return next((node for node in path if node is not None and node.flow), None)


def _column_of(text: str, index: int) -> int:
    return index - (text.rfind("\n", 0, index) + 1)


def _column(text: str, holder: Node, node: Node) -> int:
    """Column of the keys of a block mapping, or of the dashes of a block list, that holds a value."""
    first = holder.items[0]
    return _column_of(text, first.start if holder.kind == "map" else _dash(text, first))


def _dash(text: str, item: Node) -> int:
    """Where the dash of an entry of a block list stands."""
    return text.rfind("-", 0, item.start)


def _end_of_line(text: str, index: int) -> int:
    found = text.find("\n", index)
    return len(text) if found < 0 else found


def _with_comments_above(text: str, line: int, column: int) -> int:
    """Start of the comment lines directly above a line that have its column; the line itself if there are none."""
    while line > 0:
        above = text.rfind("\n", 0, line - 1) + 1
        words = text[above : line - 1]
        if not words.startswith(" " * column + "#"):
            break
        line = above
    return line


# -- writing ----------------------------------------------------------------------------------------------------------


def _with_entry(text: str, path: list[Any], key: str, value: Any, name: str) -> str:
    """The text with a new key at the end of a mapping."""
    holder = path[-2]
    outer = _outermost_flow(path[:-1])
    entry = f"{flow_text(key)}: "
    if holder.kind == "scalar" or not holder.items:
        return _replaced(text, path[:-1], {key: value}) if len(path) > 2 else written({key: value})
    last = holder.items[-1]
    if outer is not None:
        entry += flow_text(value)
        if _is_short(text, outer, len(entry) + 2):
            return text[: last.stop] + ", " + entry + text[last.stop :]
        keys = _keys_to(path[0], holder, [])
        return _in_block(text, [*path[:-1], None], [*keys, key], name, value)
    column = _column(text, holder, last)
    stop = _end_of_line(text, last.stop)
    return text[:stop] + "\n" + " " * column + flow_text(key) + ":" + _behind(value, column, False) + text[stop:]


def _keys_to(node: Node, wanted: Node, keys: list[str | int]) -> list[str | int]:
    """The place of a value."""
    if node is wanted:
        return keys
    inner = [(key.text, value) for key, value in node.pairs] if node.kind == "map" else list(enumerate(node.items))
    for key, value in inner:
        if value.start <= wanted.start and wanted.stop <= value.stop and (value.items or value is wanted):
            return _keys_to(value, wanted, [*keys, key])
    raise _no_place(keys, "text")


def _is_short(text: str, outer: Node, grown: int) -> bool:
    """Whether a value in brackets that grows stays on a short line; one with several lines, or with names, stays."""
    inside = text[outer.start : outer.stop]
    if "\n" in inside or any(one.anchor for one in outer.below()) or grown <= 0:
        return True
    return _column_of(text, outer.stop) + grown <= _WIDEST


def _in_block(text: str, path: list[Any], keys: Keys, name: str, value: Any) -> str:
    """The text with a value at a place, whose outermost value in brackets is written on lines of its own."""
    k = next(k for k, node in enumerate(path) if node is not None and node.flow)
    data = parse(text, name).data([])
    for key in keys[:k]:
        data = data[key]
    holder = data
    for key in keys[k:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    if k == 0:
        return written(data)
    return _replaced(text, path[: k + 1], data)


def _behind(value: Any, column: int, of_list: bool, name: str = "") -> str:
    """A value with its name, behind a key or behind the dash of a list at a column."""
    if not isinstance(value, dict | list) or fits_line(value) or not value:
        return f" {name}" + flow_text(value)
    if isinstance(value, dict):
        rows = [f"{flow_text(key)}:" + _behind(item, column + 2, False) for key, item in value.items()]
    else:
        rows = ["-" + _behind(item, column + 2, True) for item in value]
    indent = "\n" + " " * (column + 2)
    return (" " if of_list and not name else f" {name}".rstrip() + indent) + indent.join(rows)


def flow_text(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow_text(key)}: {flow_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow_text, value)) + "]"
    return written([value]).strip()[1:-1]
