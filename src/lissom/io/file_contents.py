"""Contents of files up to a limit of size. Files without an end, such as devices, are refused."""

from __future__ import annotations

import os
from pathlib import Path

from lissom.errors import ModelError

MOST = 2**26  # largest size of a description [B]


def bytes_of(path: str | os.PathLike[str], most: int = MOST) -> bytes:
    """The bytes of a file.

    Raises:
        ModelError: the file has more than `most` bytes. OSError: it cannot be read.
    """
    with Path(path).open("rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise ModelError(f"{os.fspath(path)}: must hold at most {most / 2**20:g} MiB (it has more, or no end)")
    return found


def text_of(path: str | os.PathLike[str], most: int = MOST) -> str:
    """The text of a file in UTF-8.

    Raises:
        ModelError: the file has more than `most` bytes, or is not UTF-8, and where. OSError: it cannot be read.
    """
    raw = bytes_of(path, most)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"{os.fspath(path)}, line {raw.count(bytes([10]), 0, error.start) + 1}"
        raise ModelError(f"{where}: the file is not UTF-8 text; save it as UTF-8 in your editor") from None
