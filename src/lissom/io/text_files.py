"""Text files of the user: reading up to a size limit, YAML with line numbers, and CSV files of inputs over time.

Nothing in a file is executed. Files without an end, such as devices, are refused.
"""

from __future__ import annotations

import csv
import gc
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import yaml

from lissom.errors import ModelError
from lissom.portable import cell_of

_MOST_BYTES = 2**26  # largest size of a robot file [B]


def bytes_of(path: str | os.PathLike[str], most: int = _MOST_BYTES) -> bytes:
    """The bytes of a file.

    Raises:
        ModelError: the file has more than `most` bytes.
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise ModelError(f"{os.fspath(path)}: must hold at most {most / 2**20:g} MiB (it has more, or no end)")
    return found


def text_of(path: str | os.PathLike[str], most: int = _MOST_BYTES) -> str:
    """The text of a UTF-8 file.

    Raises:
        ModelError: the file has more than `most` bytes, or is not UTF-8 (the message gives the line).
        OSError: the file cannot be read.
    """
    raw = bytes_of(path, most)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"{os.fspath(path)}, line {raw.count(bytes([10]), 0, error.start) + 1}"
        raise ModelError(f"{where}: the file is not UTF-8 text; save it as UTF-8 in your editor") from None


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause Python's search for cyclic garbage. Reading makes many objects that stay; the search through them would
    take as long as the reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# -- YAML -------------------------------------------------------------------------------------------------------------

_TAG = "tag:yaml.org,2002:"
_TEXT = _TAG + "str"
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
_VALUES_MAX, _DEPTH_MAX = 500_000, 60  # largest number of values, and of levels, of a document
_FLOW_WIDTH = 100  # largest width of a list or a mapping on one line
_SYNTAX = (  # parts of messages of PyYAML, and remedies
    ("'\\t'", "indent with spaces, not with tabs"),
    ("mapping values are not allowed", "a text with a colon needs quotes, and keys of one mapping one indentation"),
    ("could not find expected ':'", "write a colon and a space after each key, as in length: 0.3"),
    ("expected ',' or ']'", "close the list with ], and separate its entries by commas"),
    ("expected ',' or '}'", "close the mapping with }, and separate its entries by commas"),
    ("expected <block end>", "entries of one list, and keys of one mapping, must be indented alike"),
    ("quoted scalar", "close the quotes"),
    ("undefined alias", "a text that begins with * needs quotes"),
    ("single document", "a file holds one robot: remove the line ---"),
    ("cannot start any token", "a text that begins with this character needs quotes"),
)  # fmt: skip


class _Loader(yaml.SafeLoader):
    """The parser of PyYAML, whose messages about wrong syntax name the context."""

    yaml_implicit_resolvers: dict = {}  # noqa: RUF012  (PyYAML's own protocol)


_CLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@final
class _FastLoader(_CLoader):
    """The parser of libyaml, ten times as fast, where PyYAML has it."""

    yaml_implicit_resolvers: dict = {}  # noqa: RUF012

    def resolve(self, kind: type, value: Any, implicit: tuple[bool, bool]) -> str:
        """The tag of a node. Tags of texts without quotes are cached, since keys and numbers repeat."""
        if kind is yaml.ScalarNode and implicit[0]:
            return _plain_tag(value)
        return super().resolve(kind, value, implicit)


@lru_cache(maxsize=4096)
def _plain_tag(text: str) -> str:
    """The tag of a text without quotes."""
    for tag, pattern in _FastLoader.yaml_implicit_resolvers.get(text[:1], ()):
        if pattern.match(text):
            return tag
    return _TEXT


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes each text that YAML 1.1 or 1.2 would read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@final
class _FastDumper(_CDumper):
    """The same by libyaml, where PyYAML has it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _tag, _pattern, _first in _RESOLVED:
    for _class in (_Loader, _FastLoader, _Dumper, _FastDumper):
        _class.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern})$"), _first)


@final
@dataclass(frozen=True)
class Source:
    """The nodes of a YAML text.

    Args:
        name: name of the file, for messages.
        root: node of the whole document.
    """

    name: str
    root: yaml.Node

    def data(self, found: list[tuple[int, str]]) -> Any:
        """The document as dictionaries, lists, texts and numbers.

        Args:
            found: list that receives mistakes as (line, text): a duplicate key, a key that is no text, a tag.
        Raises:
            ModelError: the document is too large.
        """
        return self._plain(self.root, iter(range(_VALUES_MAX)), 0, found)

    def locate(self, keys: Sequence[str | int]) -> tuple[int, list[str | int]]:
        """The line of the value at `keys`, and those of the keys that the text contains. Other keys are skipped."""
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
                        (where, f"a key must be a text (got {key!r}); put it in quotes, or write the intended name")
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


@lru_cache(maxsize=2)
def parse(text: str, name: str) -> Source:
    """The nodes of a YAML text. Those of the last two texts are kept, since an edit, the data and the robot of a text
    are read one after another.

    Raises:
        ModelError: wrong syntax; the message gives file and line, or the function that reads such a file.
    """
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith("<"):
        kind = "ls.load_mjcf" if "<mujoco" in start else "ls.load_urdf"
        raise ModelError(f"{name}: is an XML file, not YAML; read it by {kind}")
    try:
        try:
            root = _FastLoader(text).get_single_node()
        except yaml.YAMLError:
            root = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        # for these errors the mistake is at the start of the context
        begun = "end of stream" in str(error.problem) or "simple key" in str(error.context)
        mark = (error.context_mark if begun else None) or error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        why = ", ".join(part for part in (error.context, error.problem) if part)
        text = f"{name}, line {line}: the YAML is broken or cut off: {why}{_cure_of_syntax(why)}"
        raise ModelError(text) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise ModelError(f"{name}, line {line}: the character {error.character!r} is not allowed in YAML") from None
    except RecursionError:
        raise ModelError(f"{name}, line 1: the document is nested too deeply") from None
    if root is None:
        raise ModelError(f"{name}, line 1: the file is empty")
    return Source(name, root)


def _cure_of_syntax(why: str) -> str:
    """A remedy for a syntax error of PyYAML; empty if none is known."""
    return next((f"; {cure}" for sign, cure in _SYNTAX if sign in why), "")


def dump(data: dict[str, Any]) -> str:
    """Plain data as readable YAML. Floats are written so that they are read back bit for bit."""
    options: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": 120, "default_flow_style": False}
    text = yaml.dump(data, Dumper=_FastDumper, **options)
    return yaml.dump(data, Dumper=_Dumper, **options) if "\\U" in text else text  # libyaml escapes emoji


def written(value: Any) -> str:
    """A value as YAML of one line, or of several lines if it is long, ended by a line break."""
    options: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": 2**20, "default_flow_style": None}
    text = yaml.dump(value, Dumper=_FastDumper, **options)
    return yaml.dump(value, Dumper=_Dumper, **options) if "\\U" in text else text


def parser_events(text: str) -> Iterator[yaml.Event]:
    """The events of PyYAML's parser for a text that `parse` reads."""
    return yaml.parse(text, Loader=_FastLoader)


def _scalar(tag: str, text: str) -> Any:
    if tag == _TEXT:
        return text
    kind = tag.removeprefix(_TAG)
    if kind == "null":
        return None
    if kind == "bool":
        return {"true": True, "false": False}[text.lower()]
    if kind == "float" and text.lstrip("+-").startswith((".i", ".I", ".n", ".N")):
        return float(text.replace(".", ""))
    return {"int": int, "float": float}[kind](text)


def _child(node: yaml.Node, key: str | int) -> tuple[int, yaml.Node] | None:
    """Line (from 0) and node of an entry of a mapping or a list; None if there is no such entry."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            if key_node.value == key:
                return key_node.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key].start_mark.line, node.value[key]
    return None


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, dict | list)


def fits_line(value: Any) -> bool:
    """Whether a list or a mapping is written on one line."""
    parts = value.values() if isinstance(value, dict) else value
    flat = all(_is_leaf(part) or (isinstance(part, list) and all(map(_is_leaf, part))) for part in parts)
    return flat and len(str(value)) <= _FLOW_WIDTH


def _represent_list(dumper: yaml.SafeDumper, value: list) -> yaml.Node:
    flow = all(map(_is_leaf, value)) or (fits_line(value) and len(value) < 3)
    return dumper.represent_sequence(_TAG + "seq", value, flow_style=flow)


def _represent_dict(dumper: yaml.SafeDumper, value: dict) -> yaml.Node:
    return dumper.represent_mapping(_TAG + "map", value, flow_style=fits_line(value))


def _represent_str(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    """A text for YAML. Line breaks and other unprintable characters are escaped in double quotes, because PyYAML would
    fold U+0085."""
    return dumper.represent_scalar(_TAG + "str", value, style=None if value.isprintable() else '"')


for _class in (_Dumper, _FastDumper):
    _class.add_representer(str, _represent_str)
    _class.add_representer(list, _represent_list)
    _class.add_representer(dict, _represent_dict)


# -- inputs over time -------------------------------------------------------------------------------------------------

_MOST_INPUT_BYTES = 2**28  # largest size of a CSV file [B], about ten million numbers


class InputHistory(NamedTuple):
    """The contents of a CSV file of inputs.

    Fields:
        t: times (n,) [s].
        u: inputs (n, nu) [N, Pa, N·m].
        missing: names of the inputs without a column, which are zero in u.
    """

    t: np.ndarray
    u: np.ndarray
    missing: tuple[str, ...]


def read_inputs(path: str | os.PathLike[str], names: Sequence[str]) -> InputHistory:
    """Read inputs over time from a CSV file with the header `t,<input>,...`. The columns may have any order.

    Args:
        path: path of the file.
        names: names of the robot's inputs, in the order of u.
    Raises:
        ModelError: the file has a mistake; the message gives line, column, rule and value.
        OSError: the file cannot be read.
    """
    name = os.fspath(path)
    text = text_of(path, _MOST_INPUT_BYTES)
    reader = csv.reader(text.splitlines(), skipinitialspace=True, strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise ModelError(f"{name}, line {reader.line_num}: {error}") from None
    if not rows:
        raise ModelError(f"{name}, line 1: the file is empty; its header must be t,{','.join(names)}")
    first, header = rows[0]
    written = {cell_of(name): name for name in names}
    header = [column if column in names else written.get(column, column) for column in header]
    _check_header(f"{name}, line {first}", header, names)
    table = np.array([_row_of_numbers(f"{name}, line {line}", row, header) for line, row in rows[1:]])
    if len(table) < 2:
        raise ModelError(f"{name}, line {first}: at least 2 rows of numbers must follow the header (got {len(table)})")
    t = table[:, header.index("t")]
    for k in np.flatnonzero(np.diff(t) <= 0)[:1]:
        line = rows[k + 2][0]
        raise ModelError(f"{name}, line {line}, column 't': must be later than the row before (got {t[k + 1]:g})")
    u = np.zeros((len(t), len(names)))
    for k, column in enumerate(names):
        if column in header:
            u[:, k] = table[:, header.index(column)]
    return InputHistory(t, u, tuple(column for column in names if column not in header))


def _check_header(where: str, header: list[str], names: Sequence[str]) -> None:
    if "t" not in header:
        raise ModelError(f"{where}: the header must hold the column 't' (got {','.join(header)!r})")
    for k, column in enumerate(header, start=1):
        if column != "t" and column not in names:
            known = ", ".join(names) or "none"
            raise ModelError(f"{where}, column {k}: must be 't' or one of the robot's inputs: {known} (got {column!r})")
        if column in header[: k - 1]:
            raise ModelError(f"{where}, column {k}: {column!r} is given twice")


def _row_of_numbers(where: str, row: list[str], header: list[str]) -> list[float]:
    if len(row) != len(header):
        raise ModelError(f"{where}: must hold {len(header)} numbers, as many as the header (got {len(row)})")
    out = []
    for column, cell in zip(header, row, strict=True):
        try:
            out.append(float(cell))
        except ValueError:
            out.append(math.nan)
        if not math.isfinite(out[-1]):
            raise ModelError(f"{where}, column {column!r}: must be a finite number (got {cell!r})")
    return out
