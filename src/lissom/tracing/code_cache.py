"""Cache on disk of the code of traced functions, beside that of Warp's kernels.

A key is a hash of all that the code depends on: the traced operations of the user's function with their constants, the
parameters of the library's own functions, the source of this library, and the versions of JAX and NumPy. So a second
process traces the user's function, but neither differentiates it nor writes code. Functions whose content cannot be
hashed have no key, and are not stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from lissom.lie.start import cache_folder
from lissom.portable import read_cached, write_cached
from lissom.tracing.graph import Graph
from lissom.tracing.native import Code, Table

_PACKAGE = Path(__file__).parents[1]
_SOURCES = (
    "tracing/*.py",
    "bodies/*.py",
    "robot/poses.py",
    "robot/traced_functions.py",
    "stepping/feedback.py",
)  # code that makes operations from a user's function
_ON_DISK = 200_000_000  # largest size of the cache [bytes]
_PLAIN = (bool, int, float, str, type(None))


_unwritten: dict[Path, Code] = {}  # codes of which a part is not written yet, by file


def stored_code(key: str | None, make: Callable[[], Code]) -> Code:
    """The code of a key from the cache, or from `make`. It is then stored when its last function is written."""
    if key is None:
        return make()
    file = cache_folder("lissom-traced") / f"{key}.json"
    code = _unwritten.get(file) or read_cached(file, _read) or _storing(file, make())
    return code._replace(name=key)


def _storing(file: Path, code: Code) -> Code:
    """The same code, which writes itself to a file when all of it is written."""
    texts, lock = dict[int, str](), Lock()

    def text(k: int) -> str:
        found = code.functions[k]()
        with lock:
            texts[k] = found
            is_whole = len(texts) == len(code.functions)
        if is_whole:
            whole = [texts[k] for k in range(len(texts))]
            write_cached(file, lambda stream: stream.write(_written(whole, code.table)), _ON_DISK)
            _unwritten.pop(file, None)
        return found

    made = code._replace(functions=tuple(partial(text, k) for k in range(len(code.functions))))
    return _unwritten.setdefault(file, made)


def content_key(*parts: Any) -> str | None:
    """A hash of parts: numbers, texts, arrays, graphs, tuples of these, and descriptions of this library made of these.
    None if the content of a part is not known, as that of a user's function or class."""
    try:
        text = repr((_of_library(), *map(_content, parts)))
    except TypeError:
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _content(part: Any) -> Any:
    if isinstance(part, Graph):
        return part.nodes
    if type(part) in _PLAIN:
        return part
    if isinstance(part, np.ndarray) and part.dtype.kind in "biuf":
        return part.dtype.str, part.shape, part.tobytes()
    if type(part) in (list, tuple):
        return [_content(each) for each in part]
    kind = type(part)
    if is_dataclass(part) and kind.__module__.startswith("lissom."):
        return kind.__module__, kind.__qualname__, [_content(getattr(part, field.name)) for field in fields(part)]
    raise TypeError(f"no known content: {kind.__name__}")


@cache
def _of_library() -> str:
    """A hash of the library's code that makes native code from a user's function."""
    jax = version("jax") if find_spec("jax") else ""
    found = hashlib.sha256(f"{jax} {np.__version__}".encode())
    for pattern in _SOURCES:
        for path in sorted(_PACKAGE.glob(pattern)):
            found.update(path.read_bytes())
    return found.hexdigest()


def _read(file: Path) -> Code:
    given = json.loads(file.read_text(encoding="utf-8"))
    table = given["table"]
    if table is not None:
        graph = Graph()
        graph.nodes = [tuple(node) for node in table.pop("nodes")]
        table = Table(graph, **{name: tuple(value) for name, value in table.items()})
    return Code(tuple(partial(str, text) for text in given["functions"]), table)


def _written(texts: list[str], table: Table | None) -> bytes:
    given = None
    if table is not None:
        names = ("rows", "weights", "outer", "inner", "operations")
        given = {"nodes": table.graph.nodes, **{name: getattr(table, name) for name in names}}
    return json.dumps({"functions": texts, "table": given}, default=int).encode()
