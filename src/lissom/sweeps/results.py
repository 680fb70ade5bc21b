"""The results of a sweep: a folder of Parquet files, one for each chunk of samples.

A chunk file is written under another name, flushed to the disk, and then renamed. If a process is killed or the disk is
full, a chunk file is therefore complete or absent. Parquet marks missing values of failed samples, and stores units and
provenance. pandas, xarray and other libraries read it without this library. Zarr would need one file for each result of
a chunk, and some of them might be missing.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.portable import NEW, optional, write_whole
from lissom.robot import formatting
from lissom.sweeps.samples import Sampling
from lissom.sweeps.workers import Chunk, Row, origin

_FORMAT = 1
_NEEDS = "results of sweeps need pyarrow"
_HEADER, _CHUNKS = "sweep.json", "chunks"
_HOLDS: dict[str, Any] = {"asked": dict, "count": int, "parameters": dict, "kind": str, "seed": int, "origin": dict,
                          "begun": str, "robot": str, "robot_file": str | None}  # fmt: skip
OWN = {"number": "", "failure": "", "remarks": "", "seconds": "s"}


@final
@dataclass(frozen=True)
class Column:
    """A result of the samples: shape, type and unit."""

    shape: tuple[int, ...]
    kind: str
    unit: str


@final
class Store:
    """The folder of one sweep."""

    def __init__(self, path: Path, names: tuple[str, ...], units: Mapping[str, str]) -> None:
        self.path, self.names, self.units = path, names, dict(units)
        self.columns: dict[str, Column] | None = None

    def open(self, asked: Mapping[str, str], more: Mapping[str, Any]) -> set[int]:
        """Create the folder, or continue the same sweep in it. Returns the numbers of the samples that it holds.

        Raises:
            ModelError: the folder holds another sweep, of which the message gives the difference, or other files; or
                pyarrow is not installed.
        """
        _parquet()
        header = self.path / _HEADER
        if not header.exists():
            self._check_empty()
        (self.path / _CHUNKS).mkdir(parents=True, exist_ok=True)
        if not header.exists():
            begun = datetime.now(timezone.utc).isoformat(timespec="seconds")
            whole = {"format": _FORMAT, "begun": begun, "asked": dict(asked), **more, "origin": origin()}
            write_whole(header, lambda file: file.write(json.dumps(whole, indent=1, ensure_ascii=False).encode()))
        known = read_header(self.path)["asked"]
        for name, value in asked.items():
            if known.get(name) != value:
                rule = f"the folder holds another sweep, whose {name} differs; take another folder"
                raise ModelError(f"out: {rule} (got {str(self.path)!r})")
        for left in (self.path / _CHUNKS).glob(f"*{NEW}*"):
            left.unlink(missing_ok=True)
        return self._there()

    def _check_empty(self) -> None:
        """Raise ModelError if the folder holds files that are not the beginning of a sweep."""
        if self.path.exists() and not self.path.is_dir():
            raise ModelError(f"out: must be a folder (got {str(self.path)!r})")
        inside = [file for folder in (self.path, self.path / _CHUNKS) if folder.is_dir() for file in folder.iterdir()]
        for file in inside:
            if file != self.path / _CHUNKS and NEW not in file.name:
                rule = f"must be a new or an empty folder, or hold a sweep, but it holds {file.name!r}"
                raise ModelError(f"out: {rule} (got {str(self.path)!r})")

    def _there(self) -> set[int]:
        """Numbers of the samples in the folder. A damaged file counts as missing."""
        found: set[int] = set()
        for file in chunk_files(self.path):
            table = read_chunk(file)
            if table is not None:
                found |= set(table.column("number").to_pylist())
                self.columns = self.columns or _columns_of(table, self.names)
        return found

    def write(self, chunk: Chunk, values: np.ndarray, unit: Callable[[str], str]) -> list[Row]:
        """Add a chunk, with the values of its parameters (n, n_parameters). Returns the rows that were written.

        Raises:
            OSError: the file cannot be written, for instance because the disk is full. Existing files are not changed.
        """
        parquet = _parquet()
        rows = [self._checked(row, unit) for row in chunk.rows]
        table = self._table(rows, values, chunk.origin)
        numbers = [row.number for row in rows]
        name = f"{min(numbers):08d}-{max(numbers):08d}.parquet"
        write_whole(self.path / _CHUNKS / name, lambda file: parquet.write_table(table, file, compression="zstd"))
        return rows

    def _checked(self, row: Row, unit: Callable[[str], str]) -> Row:
        """The row; or a failed row, if names, shapes or types of its results differ from those of other samples."""
        if row.results is None:
            return row
        kinds = {name: "U" if isinstance(x, str) else x.dtype.str for name, x in row.results.items()}
        mine = {name: Column(np.shape(x), kinds[name], unit(name)) for name, x in row.results.items()}
        taken = sorted({*self.names, *OWN} & set(mine))
        if taken:
            return _failed(row, f"the names {taken} are taken by parameters or by the sweep")
        if self.columns is None:
            self.columns = mine
        if mine != self.columns:
            known = {name: column.shape for name, column in self.columns.items()}
            got = {name: column.shape for name, column in mine.items()}
            return _failed(
                row, f"results must have the same names, shapes and types in all samples, {known} (got {got})"
            )
        return row

    def _table(self, rows: list[Row], values: np.ndarray, made_by: Mapping[str, str]) -> Any:
        import pyarrow as pa

        fields = [pa.field("number", pa.int64())]
        data = [pa.array([row.number for row in rows])]
        for k, name in enumerate(self.names):
            fields.append(_field(name, pa.float64(), (), self.units.get(name, "")))
            data.append(pa.array(values[:, k]))
        for name, column in (self.columns or {}).items():
            kind = pa.string() if column.kind == "U" else pa.from_numpy_dtype(np.dtype(column.kind))
            kind = pa.list_(kind) if column.shape else kind
            cells = [None if row.results is None else _cell(row.results[name]) for row in rows]
            fields.append(_field(name, kind, column.shape, column.unit))
            data.append(pa.array(cells, type=kind))
        texts = {"failure": pa.string(), "remarks": pa.string(), "seconds": pa.float64()}
        for name, kind in texts.items():
            fields.append(_field(name, kind, (), OWN[name]))
            data.append(pa.array([getattr(row, name) for row in rows], type=kind))
        metadata = {b"lissom.origin": json.dumps(dict(made_by)).encode()}
        return pa.Table.from_arrays(data, schema=pa.schema(fields, metadata=metadata))


def _parquet() -> Any:
    """The part of pyarrow for files; a ModelError names the extra where it is missing."""
    return optional("pyarrow.parquet", _NEEDS, "sweep")


def _failed(row: Row, why: str) -> Row:
    return Row(row.number, None, why, row.remarks, row.seconds)


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return value.ravel() if value.ndim else value[()]


def _field(name: str, kind: Any, shape: tuple[int, ...], unit: str) -> Any:
    import pyarrow as pa

    return pa.field(name, kind, metadata={b"unit": unit.encode(), b"shape": json.dumps(list(shape)).encode()})


def _columns_of(table: Any, names: tuple[str, ...]) -> dict[str, Column] | None:
    """The result columns in the table of a chunk; None if there are none."""
    found = {}
    for column in table.schema:
        if column.name not in names and column.name not in OWN:
            shape = shape_of(column)
            inner = column.type.value_type if shape else column.type
            text = str(inner) == "string"
            found[column.name] = Column(shape, "U" if text else np.dtype(inner.to_pandas_dtype()).str, unit_of(column))
    return found or None


def shape_of(field: Any) -> tuple[int, ...]:
    """The shape of a column's values."""
    return tuple(json.loads((field.metadata or {}).get(b"shape", b"[]")))


def unit_of(field: Any) -> str:
    """The unit of a column."""
    return (field.metadata or {}).get(b"unit", b"").decode()


def read_header(path: Path) -> dict[str, Any]:
    """The header of a folder, which describes its sweep.

    Raises:
        ModelError: the folder holds no sweep.
    """
    try:
        header = json.loads((path / _HEADER).read_text(encoding="utf-8"))
        for name, kind in _HOLDS.items():
            if not isinstance(header[name], kind) or isinstance(header[name], bool):
                raise ValueError(f"{_HEADER}: {name} is {header[name]!r}")
        if "study" not in header["asked"] or header["count"] < 1:
            raise ValueError(f"{_HEADER} names no study and no sample")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        raise ModelError(f"sweep: the folder must hold the files of a sweep ({why}) (got {str(path)!r})") from None
    return header


def chunk_files(path: Path) -> list[Path]:
    """The chunks of a folder, in the order of their samples."""
    return sorted((path / _CHUNKS).glob("*.parquet"))


def read_chunk(file: Path, columns: list[str] | None = None) -> Any:
    """The table of a chunk, or the given columns of it. None if the file is damaged."""
    parquet, pa = _parquet(), optional("pyarrow", _NEEDS, "sweep")
    try:
        with parquet.ParquetFile(file) as opened:
            schema = opened.schema_arrow
            if not all(name in schema.names for name in OWN) or schema.field("number").type != pa.int64():
                return None
            _ = [(shape_of(item), unit_of(item)) for item in schema]
            if columns == []:
                return schema.empty_table()
            return opened.read(None if columns is None else [name for name in columns if name in schema.names])
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):
        return None


def digest(data: bytes) -> str:
    """A hash of bytes."""
    return hashlib.sha256(data).hexdigest()[:16]


def table_digest(sampling: Sampling) -> str:
    """A hash of a table of samples."""
    return digest(repr(sampling.names).encode() + np.ascontiguousarray(sampling.table).tobytes())


def _text(value: Any) -> str:
    """A cell of a table: exact numbers, and nothing for missing values."""
    if isinstance(value, float):
        return "" if value != value else f"{value:.17g}"
    return "" if value is None else str(value)


@final
@formatting.in_one_line
@dataclass(frozen=True, eq=False)
class SweepResults:
    """The results of the finished samples of a sweep. Columns are read from the disk when they are used.

    Fields:
        path: path of the folder.
        count: number of samples of the whole sweep.
        header: arguments of the sweep, robot file, versions and seed.
    """

    path: Path
    count: int
    header: dict[str, Any] = field(repr=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SweepResults:
        """Read the folder of a sweep, finished or not.

        Raises:
            ModelError: the folder holds no sweep, or no finished sample.
        """
        folder = Path(path)
        header = read_header(folder)
        found = cls(folder, header["count"], header)
        if not len(found.numbers):
            raise ModelError(f"sweep: the folder holds no finished sample yet (got {str(path)!r})")
        return found

    @cached_property
    def _fields(self) -> dict[str, Any]:
        """The fields of the columns, by name."""
        tables = [read_chunk(file, []) for file in chunk_files(self.path)]
        return {item.name: item for table in tables if table is not None for item in table.schema}

    @property
    def names(self) -> list[str]:
        """Names of parameters, of results, and of the sweep's own columns, such as the computing time of a sample."""
        return list(self._fields)

    @cached_property
    def units(self) -> dict[str, str]:
        """Units of parameters and results, by name."""
        return {name: unit_of(item) for name, item in self._fields.items() if name not in OWN}

    def _column(self, name: str) -> Any:
        """A column for all finished samples, in the order of their numbers."""
        import pyarrow as pa

        tables = [read_chunk(file, ["number", name]) for file in chunk_files(self.path)]
        whole = pa.concat_tables([table for table in tables if table is not None], promote_options="permissive")
        _, first = np.unique(whole.column("number").to_numpy(), return_index=True)
        return whole.take(first).column(name).combine_chunks()

    @cached_property
    def numbers(self) -> np.ndarray:
        """Numbers of the finished samples in ascending order, shape (n,)."""
        files = [read_chunk(file, ["number"]) for file in chunk_files(self.path)]
        rows = [table.column("number").to_numpy() for table in files if table is not None]
        return np.unique(np.concatenate([np.zeros(0, dtype=int), *rows]))

    @cached_property
    def failures(self) -> dict[int, str]:
        """The reasons of failed samples, by number."""
        rows = zip(self.numbers.tolist(), self._column("failure").to_pylist())
        return {number: why for number, why in rows if why}

    @property
    def is_complete(self) -> bool:
        """Whether every sample is finished or failed."""
        return len(self.numbers) == self.count

    def __getitem__(self, name: str) -> np.ndarray:
        """A parameter or a result for all finished samples, shape (n, ...). Failed samples have NaN or an empty
        text."""
        if name not in self._fields:
            raise KeyError(f"{name!r} is none of {self.names}")
        column, shape = self._column(name), shape_of(self._fields[name])
        if not shape:
            is_text = str(column.type) == "string"
            return np.array([x or "" for x in column.to_pylist()]) if is_text else column.to_numpy(zero_copy_only=False)
        there = np.asarray(column.is_valid())
        rows = np.asarray(column.flatten()).reshape(int(there.sum()), *shape)
        if there.all():
            return rows
        out = np.full((len(there), *shape), np.nan)
        out[there] = rows
        return out

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each column for one sample, by name; () for numbers and texts."""
        return {name: shape_of(item) for name, item in self._fields.items()}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a table with one row for each finished sample, for spreadsheets. Arrays become columns such as `q[0]`
        or `pose[0,3]`; units follow in brackets. Failed samples have empty cells.

        Raises:
            OSError: the file cannot be written; an existing file is not changed.
        """
        header, columns = [], []
        for name in self.names:
            values, unit = self[name], self.units.get(name, "")
            for place in np.ndindex(values.shape[1:]):
                at = f"[{','.join(map(str, place))}]" if place else ""
                header.append(f"{name}{at} [{unit}]" if unit else f"{name}{at}")
                columns.append([_text(x) for x in values[(slice(None), *place)].tolist()])

        def write(file: Any) -> None:
            stream = io.TextIOWrapper(file, encoding="utf-8", newline="")
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerows([header, *zip(*columns)])
            stream.flush()
            stream.detach()

        write_whole(Path(path), write)

    def pandas(self) -> Any:
        """A pandas DataFrame with one row for each sample. Arrays become columns such as `q[0]` or `pose[0,3]`."""
        pd = optional("pandas", "a table needs pandas", "sweep")
        columns = {}
        for name in self.names:
            values = self[name]
            if values.ndim == 1:
                columns[name] = values
            else:
                for place in np.ndindex(values.shape[1:]):
                    columns[f"{name}[{','.join(map(str, place))}]"] = values[(slice(None), *place)]
        frame = pd.DataFrame(columns).set_index("number")
        frame.attrs["units"] = dict(self.units)
        return frame

    def xarray(self) -> Any:
        """An xarray Dataset with the dimension `number`. Parameters are coordinates; units and provenance are
        attributes."""
        xr = optional("xarray", "a data set needs xarray", "sweep")
        variables: dict[str, Any] = {}
        coordinates: dict[str, Any] = {"number": self.numbers}
        for name in self.names:
            if name == "number":
                continue
            values = self[name]
            dims = ("number", *(f"{name} {k}" for k in range(values.ndim - 1)))
            variable = (dims, values, {"units": self.units[name]} if self.units.get(name) else {})
            (coordinates if name in self.header["parameters"] else variables)[name] = variable
        about = {name: self.header[name] for name in ("begun", "kind", "seed", "robot", "robot_file")}
        about["study"] = self.header["asked"]["study"]
        about |= {f"version {name}": text for name, text in self.header["origin"].items()}
        return xr.Dataset(variables, coordinates, {name: text for name, text in about.items() if text is not None})
