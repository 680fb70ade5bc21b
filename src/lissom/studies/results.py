"""What a sweep has left, read back."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.robot import telling
from lissom.studies.store import OWN, chunk_files, read_chunk, read_header, shape_of, unit_of


@final
@telling.in_one_line
@dataclass(frozen=True, eq=False)
class SweepResults:
    """The results of a sweep, as far as it has come; what is not asked for stays on the disk.

    Fields:
        path: of its folder. count: samples asked for. header: what was asked, the robot file, versions, the seed.
    """

    path: Path
    count: int
    header: dict[str, Any] = field(repr=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SweepResults:
        """Read the folder of a sweep, finished or not.

        Raises:
            ModelError: the folder holds no sweep, or nothing of it yet.
        """
        folder = Path(path)
        header = read_header(folder)
        found = cls(folder, header["count"], header)
        if not len(found.numbers):
            raise ModelError(f"sweep: no sample of it has been finished yet (got {str(path)!r})")
        return found

    @cached_property
    def _fields(self) -> dict[str, Any]:
        """What is said of each column."""
        tables = [read_chunk(file, []) for file in chunk_files(self.path)]
        return {item.name: item for table in tables if table is not None for item in table.schema}

    @property
    def names(self) -> list[str]:
        """Names of parameters, results, and of what the sweep notes of each sample."""
        return list(self._fields)

    @cached_property
    def units(self) -> dict[str, str]:
        """Units by parameter and result."""
        return {name: unit_of(item) for name, item in self._fields.items() if name not in OWN}

    def _column(self, name: str) -> Any:
        """A column over all finished samples, in the order of their numbers."""
        import pyarrow as pa

        tables = [read_chunk(file, ["number", name]) for file in chunk_files(self.path)]
        whole = pa.concat_tables([table for table in tables if table is not None], promote_options="permissive")
        _, first = np.unique(whole.column("number").to_numpy(), return_index=True)
        return whole.take(first).column(name).combine_chunks()

    @cached_property
    def numbers(self) -> np.ndarray:
        """Numbers of the samples that are finished, shape (n,), rising."""
        files = [read_chunk(file, ["number"]) for file in chunk_files(self.path)]
        rows = [table.column("number").to_numpy() for table in files if table is not None]
        return np.unique(np.concatenate([np.zeros(0, dtype=int), *rows]))

    @cached_property
    def failures(self) -> dict[int, str]:
        """Why samples have no results, by their numbers."""
        rows = zip(self.numbers.tolist(), self._column("failure").to_pylist())
        return {number: why for number, why in rows if why}

    @property
    def is_complete(self) -> bool:
        """Whether every sample is finished, failed ones included."""
        return len(self.numbers) == self.count

    def __getitem__(self, name: str) -> np.ndarray:
        """A parameter or a result of all finished samples, shape (n, ...); NaN, or an empty text, where one failed."""
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

    def pandas(self) -> Any:
        """A pandas DataFrame, one row for each sample; arrays are spread over columns `q[0]`, `pose[0,3]`."""
        import pandas as pd

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
        """An xarray Dataset along `number`, the parameters as coordinates, units and provenance as attributes."""
        import xarray as xr

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
