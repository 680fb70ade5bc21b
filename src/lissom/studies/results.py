"""What a sweep has left, read back."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from lissom.errors import ModelError
from lissom.studies.store import OWN, chunk_files, read_chunk, read_header, shape_of, unit_of


@final
@dataclass(frozen=True, eq=False)
class SweepResults:
    """The results of a sweep, as far as it has come.

    Fields:
        path: of its folder. count: samples asked for. header: what was asked, the robot file, versions, the seed.
        units: by parameter and result.
    """

    path: Path
    count: int
    header: dict[str, Any] = field(repr=False)
    units: dict[str, str] = field(repr=False)
    table: Any = field(repr=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SweepResults:
        """Read the folder of a sweep, finished or not.

        Raises:
            ModelError: the folder holds no sweep, or nothing of it yet.
        """
        import pyarrow as pa

        folder = Path(path)
        header = read_header(folder)
        tables = [table for table in map(read_chunk, chunk_files(folder)) if table is not None]
        if not tables:
            raise ModelError(f"sweep: no sample of it has been finished yet (got {str(path)!r})")
        whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
        _, first = np.unique(whole.column("number").to_numpy(), return_index=True)
        whole = whole.take(first)
        units = {item.name: unit_of(item) for table in tables for item in table.schema}
        shapes = {item.name: shape_of(item) for table in tables for item in table.schema}
        fields = [item.with_metadata({b"shape": json.dumps(shapes[item.name]).encode()}) for item in whole.schema]
        whole = whole.cast(pa.schema(fields))
        return cls(folder, header["count"], header, {n: unit for n, unit in units.items() if n not in OWN}, whole)

    @cached_property
    def numbers(self) -> np.ndarray:
        """Numbers of the samples that are finished, shape (n,), rising."""
        return self.table.column("number").to_numpy()

    @cached_property
    def failures(self) -> dict[int, str]:
        """Why samples have no results, by their numbers."""
        rows = zip(self.numbers.tolist(), self.table.column("failure").to_pylist())
        return {number: why for number, why in rows if why}

    @property
    def is_complete(self) -> bool:
        """Whether every sample is finished, failed ones included."""
        return len(self.numbers) == self.count

    def __getitem__(self, name: str) -> np.ndarray:
        """A parameter or a result of all finished samples, shape (n, ...); NaN, or an empty text, where one failed."""
        if name not in self.table.column_names:
            raise KeyError(f"{name!r} is none of {self.table.column_names}")
        column = self.table.column(name)
        shape = shape_of(self.table.schema.field(name))
        there = np.asarray(column.is_valid())
        if not shape:
            text = str(column.type) == "string"
            out = np.array([x or "" for x in column.to_pylist()]) if text else column.to_numpy()
            return out
        inner = column.combine_chunks()
        flat = np.asarray(inner.flatten())
        rows = flat.reshape(int(there.sum()), *shape)
        if there.all():
            return rows
        out = np.full((len(there), *shape), np.nan)
        out[there] = rows
        return out

    def pandas(self) -> Any:
        """A pandas DataFrame, one row for each sample; arrays are spread over columns `q[0]`, `pose[0,3]`."""
        import pandas as pd

        columns = {}
        for name in self.table.column_names:
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
        for name in self.table.column_names:
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
