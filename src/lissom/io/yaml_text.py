"""YAML text to plain data with line numbers, and back. Nothing in a text is executed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import yaml

from lissom.errors import ModelError
from lissom.io.advice import of_syntax

_TAG = "tag:yaml.org,2002:"
_RESOLVED = (  # the core schema of YAML 1.2: 1e6 is a number, `yes` is a text
    (_TAG + "null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    (_TAG + "bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    (_TAG + "int", r"[-+]?[0-9]+", list("-+0123456789")),
    (
        _TAG + "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
)
_VALUES_MAX = 500_000
_DEPTH_MAX = 60
_FLOW_WIDTH = 100


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict = {}  # noqa: RUF012  (PyYAML's own protocol)


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes each text that YAML 1.1 or 1.2 would read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _tag, _pattern, _first in _RESOLVED:
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern})$"), _first)


@final
@dataclass(frozen=True)
class Source:
    """The nodes of a YAML text.

    Args:
        name: of the file, for messages.
        root: the node of the whole document.
    """

    name: str
    root: yaml.Node

    def data(self, found: list[tuple[int, str]]) -> Any:
        """The document as dictionaries, lists, texts and numbers.

        Args:
            found: list to which mistakes are added as (line, text): a duplicate key, a key that is no text, a tag.
        Raises:
            ModelError: a document of unreasonable size.
        """
        return self._plain(self.root, iter(range(_VALUES_MAX)), 0, found)

    def locate(self, keys: Sequence[str | int]) -> tuple[int, list[str | int]]:
        """The line of the value at `keys`, and those of the keys that are in the text; the others are skipped."""
        node, line, found = self.root, self.root.start_mark.line + 1, []
        for key in keys:
            inside = _child(node, key)
            if inside is not None:
                line, node = inside[0] + 1, inside[1]
                found.append(key)
        return line, found

    def error(self, line: int, message: str) -> ModelError:
        """A ModelError that names the file and the line."""
        return ModelError(f"{self.name}, line {line}: {message}")

    def _plain(self, node: yaml.Node, budget: Iterator[int], depth: int, found: list[tuple[int, str]]) -> Any:
        line = node.start_mark.line + 1
        if next(budget, None) is None or depth > _DEPTH_MAX:
            raise self.error(line, f"the document holds more than {_VALUES_MAX} values or {_DEPTH_MAX} levels "
                                   "(do its aliases refer to each other?)")  # fmt: skip
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self._plain(item, budget, depth + 1, found) for item in node.value]
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            out: dict[str, Any] = {}
            for key_node, value in node.value:
                key, where = self._plain(key_node, budget, depth + 1, found), key_node.start_mark.line + 1
                if not isinstance(key, str):
                    found.append(
                        (where, f"a key must be a text (got {key!r}); put it in quotes, or name what is meant")
                    )
                    continue
                if key in out:
                    found.append((where, f"the key {key!r} is given twice in one mapping; remove one of the two"))
                    continue
                out[key] = self._plain(value, budget, depth + 1, found)
            return out
        if isinstance(node, yaml.ScalarNode):
            try:
                return _scalar(node.tag, node.value)
            except (KeyError, ValueError):
                pass
        text = node.value if isinstance(node, yaml.ScalarNode) else "..."
        tag = node.tag.replace(_TAG, "!!")
        why = f"the tag {tag!r} is not allowed, or its value is not of that kind (got {text[:80]!r})"
        found.append((line, f"{why}; remove the tag, or put a text that begins with ! in quotes"))
        return None


def parse(text: str, name: str) -> Source:
    """The nodes of a YAML text.

    Raises:
        ModelError: the file, the line and what is wrong with the syntax.
    """
    try:
        root = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        # for these errors the mistake is at the start of the context
        begun = "end of stream" in str(error.problem) or "simple key" in str(error.context)
        mark = (error.context_mark if begun else None) or error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        why = ", ".join(part for part in (error.context, error.problem) if part)
        text = f"{name}, line {line}: the YAML is broken or cut off: {why}{of_syntax(why)}"
        raise ModelError(text) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise ModelError(f"{name}, line {line}: the character {error.character!r} is not allowed in YAML") from None
    except RecursionError:
        raise ModelError(f"{name}, line 1: the document is nested too deeply") from None
    if root is None:
        raise ModelError(f"{name}, line 1: the file is empty")
    return Source(name, root)


def dump(data: dict[str, Any]) -> str:
    """Plain data as readable YAML. Floats are written such that reading them gives the same bits."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=False)


def _scalar(tag: str, text: str) -> Any:
    kind = tag.removeprefix(_TAG)
    if kind == "null":
        return None
    if kind == "bool":
        return {"true": True, "false": False}[text.lower()]
    if kind == "float" and text.lstrip("+-").startswith((".i", ".I", ".n", ".N")):
        return float(text.replace(".", ""))
    return {"int": int, "float": float, "str": str}[kind](text)


def _child(node: yaml.Node, key: str | int) -> tuple[int, yaml.Node] | None:
    """Line (from 0) and node of an entry of a mapping or a list; None where there is none."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            if key_node.value == key:
                return key_node.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key].start_mark.line, node.value[key]
    return None


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _fits_line(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    flat = all(_is_leaf(part) or (isinstance(part, list) and all(map(_is_leaf, part))) for part in parts)
    return flat and len(str(value)) <= _FLOW_WIDTH


def _represent_list(dumper: yaml.SafeDumper, value: list) -> yaml.Node:
    flow = all(map(_is_leaf, value)) or (_fits_line(value) and len(value) < 3)
    return dumper.represent_sequence(_TAG + "seq", value, flow_style=flow)


def _represent_dict(dumper: yaml.SafeDumper, value: dict) -> yaml.Node:
    return dumper.represent_mapping(_TAG + "map", value, flow_style=_fits_line(value))


def _represent_str(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    """Line breaks and other unprintables are escaped in double quotes; PyYAML folds U+0085 otherwise."""
    return dumper.represent_scalar(_TAG + "str", value, style=None if value.isprintable() else '"')


_Dumper.add_representer(str, _represent_str)
_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(dict, _represent_dict)
