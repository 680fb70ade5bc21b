"""Time histories of the inputs as CSV."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lissom.errors import ModelError
from lissom.io.file_contents import text_of

_MOST = 2**28  # largest size of a file [B], ten million numbers


class InputHistory(NamedTuple):
    """The contents of a CSV of inputs.

    Fields: t (n,) [s]; u (n, nu) [N, Pa, N·m]; missing: names of the inputs without a column, which are zero in u.
    """

    t: np.ndarray
    u: np.ndarray
    missing: tuple[str, ...]


def read_inputs(path: str | os.PathLike[str], names: Sequence[str]) -> InputHistory:
    """Inputs over time from a CSV with the header `t,<input>,...` in any order of columns.

    Args:
        path: of the file.
        names: of the robot's inputs, in the order of u.
    Raises:
        ModelError: the file, line and column, the rule and the value.
        OSError: the file cannot be read.
    """
    name = os.fspath(path)
    text = text_of(path, _MOST)
    reader = csv.reader(text.splitlines(), skipinitialspace=True, strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise ModelError(f"{name}, line {reader.line_num}: {error}") from None
    if not rows:
        raise ModelError(f"{name}, line 1: the file is empty; its header must be t,{','.join(names)}")
    first, header = rows[0]
    _check_header(f"{name}, line {first}", header, names)
    table = np.array([_numbers(f"{name}, line {line}", row, header) for line, row in rows[1:]])
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


def _numbers(where: str, row: list[str], header: list[str]) -> list[float]:
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
