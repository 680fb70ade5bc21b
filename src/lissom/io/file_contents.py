"""Bytes of files, of a size that can be meant: what never ends, such as a device, is refused."""

from __future__ import annotations

import os
from pathlib import Path

from lissom.errors import ModelError

MOST = 2**26  # [B] of a description


def bytes_of(path: str | os.PathLike[str], most: int = MOST) -> bytes:
    """What a file holds.

    Raises:
        ModelError: it holds more than `most` bytes. OSError: it cannot be read.
    """
    with Path(path).open("rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise ModelError(f"{os.fspath(path)}: must hold at most {most / 2**20:g} MiB (it holds more, or never ends)")
    return found


def text_of(path: str | os.PathLike[str], most: int = MOST) -> str:
    """What a file of UTF-8 text holds.

    Raises:
        ModelError: it is larger, or no UTF-8 text, and where. OSError: it cannot be read.
    """
    raw = bytes_of(path, most)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"{os.fspath(path)}, line {raw.count(bytes([10]), 0, error.start) + 1}"
        raise ModelError(f"{where}: the file is not UTF-8 text; save it as UTF-8 in your editor") from None
