"""SUNDIALS without its messages on the terminal.

What its C code warns of goes where an environment variable says when a solver is made; what it fails by is printed by
its Python binding, though the status that it returns says the same, which becomes the ConvergenceError. For as long as
somebody integrates, the one goes nowhere, and the other is picked out of what is written to `sys.stdout`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any, final

_WARNINGS = "SUNLOGGER_WARNING_FILENAME"
_MESSAGE = re.compile(r"\n\[\w+, Error: -?\d+\] ")  # as the binding prints it, in one piece and then the end of a line

_lock = Lock()
_users: list[int] = []
_left: list[Any] = []  # (stream, variable), as they were before


@final
class _Filter:
    """A stream that passes on all but what SUNDIALS prints."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.ending: int | None = None  # the thread whose message still lacks its end of line

    def write(self, text: str) -> int:
        if _MESSAGE.match(text):
            self.ending = get_ident()
            return len(text)
        if text == "\n" and self.ending == get_ident():
            self.ending = None
            return 1
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def quiet_sundials() -> Iterator[None]:
    """Keep the messages of SUNDIALS from the terminal, in any number of threads at once."""
    with _lock:
        if not _users:
            _left.append((sys.stdout, os.environ.get(_WARNINGS)))
            os.environ.setdefault(_WARNINGS, os.devnull)
            if sys.stdout is not None:
                sys.stdout = _Filter(sys.stdout)
        _users.append(get_ident())
    try:
        yield
    finally:
        with _lock:
            _users.pop()
            if not _users:
                stream, variable = _left.pop()
                if isinstance(sys.stdout, _Filter):  # else somebody put another stream there meanwhile
                    sys.stdout = stream
                if variable is None:
                    os.environ.pop(_WARNINGS, None)
