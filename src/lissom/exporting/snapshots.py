"""All numbers that an exported robot would hold, as one vector: by it, models of changed values are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import warp as wp

from lissom.dynamics.loads import steady_loads
from lissom.dynamics.start import start_configuration
from lissom.exporting.functions import LAUNCHES, launches_of
from lissom.exporting.launches import leaves_of
from lissom.exporting.laws import laws_buffers
from lissom.launch.buffers import Buffers
from lissom.model.model import Model
from lissom.model.tables import TermRows
from lissom.stepping.schemes import sdirk
from lissom.tracing.native import code_of_cell

# Flags of nodes by which kernels leave out work: those that hold if they hold for any value of a parameter, and those
# that hold if they do for all.
ANY, ALL = ("is_placed", "has_inertia"), ("is_screw", "is_plain")


def buffers_of_launches(model: Model, functions: Sequence[str], varies: bool) -> dict[str, Buffers]:
    """Buffers of all launches of some functions, which have not run yet. `varies`: whether loads or motions are
    functions of time."""
    made = {"laws": laws_buffers(model)} if varies else {}
    return made | {launch: LAUNCHES[launch](model) for launch in launches_of(model, functions)}


def own_numbers(model: Model, varies: bool) -> dict[str, np.ndarray]:
    """Arrays of numbers that the functions read themselves, by name, each with a zero behind it."""
    own = {
        "default_configuration": start_configuration(model),
        "neutral_configuration": model.neutral(),
        "gravity": model.gravity,
        "joint_gain": model.inputs.joint_gain,
        "gain": model.channels.gain,
        "spool_slack": model.spools.slack,
        "spool_stiffness": model.spools.stiffness,
        "loads": np.zeros(0) if varies else steady_loads(model),
        "stage_ends": sdirk().ends,
    }
    return {key: np.append(np.ravel(values).astype(np.float64), 0.0) for key, values in own.items()}


@final
@dataclass(frozen=True, eq=False)
class Snapshot:
    """The numbers of an exported robot.

    Fields:
        numbers: all of them. blocks: for each, the number of its field in its array: rounding errors are in proportion
            to the largest number of a field.
        arrays: names of the arrays, by launch and path. first: index of the first number of each, and the count of all.
        fixed: what no parameter may change, by name: integers, code, and numbers that are no arrays.
        rows: arrays of structs, by launch and path.
    """

    numbers: np.ndarray
    blocks: np.ndarray
    arrays: tuple[str, ...]
    first: np.ndarray
    fixed: Mapping[str, Any]
    rows: Mapping[str, np.ndarray]

    def name_of(self, entry: int) -> str:
        """Name of the array of a number, without its launch."""
        at = int(np.searchsorted(self.first, entry, side="right")) - 1
        return self.arrays[at].partition(":")[2]


def snapshot(model: Model, launches: Mapping[str, Buffers], own: Mapping[str, np.ndarray]) -> Snapshot:
    """The numbers of the launches of a model, and its own."""
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    structs: dict[str, np.ndarray] = {}
    fixed: dict[str, Any] = {"structure": (model.nq, model.nv, model.nu, model.n_rows, tuple(model.inputs.names))}
    for launch, w in launches.items():
        kernel, leaves = leaves_of(w)
        fixed[launch] = kernel.module.name, kernel.key
        for leaf in leaves:
            key, value = f"{launch}:{leaf.path}", leaf.value
            if not isinstance(value, wp.array):
                fixed[key] = getattr(value, "value", value)
            elif value.size and value.dtype is not TermRows:  # whose arrays follow as leaves of their own
                rows = value.numpy()
                if rows.dtype.names:
                    structs[key] = rows = _without_padding(rows)
                (_put_rows if rows.dtype.names else _put)(found, fixed, key, rows)
    for name, values in own.items():
        found[f"own:{name}"] = values, np.zeros(len(values), dtype=int)
    sizes = [len(values) for values, _ in found.values()]
    tops = np.cumsum([0] + [int(blocks.max(initial=-1)) + 1 for _, blocks in found.values()])
    return Snapshot(
        np.concatenate([values for values, _ in found.values()]),
        np.concatenate([blocks + top for (_, blocks), top in zip(found.values(), tops)]),
        tuple(found),
        np.cumsum([0, *sizes]),
        fixed,
        structs,
    )


def _put(found: dict[str, Any], fixed: dict[str, Any], key: str, values: np.ndarray) -> None:
    """An array of one type."""
    if values.dtype == np.float64:
        found[key] = _finite(fixed, key, values.ravel()), np.zeros(values.size, dtype=int)
    elif values.dtype == np.uint64:
        fixed[key] = tuple(code_of_cell(int(cell)) if cell else "" for cell in values.ravel())
    else:
        fixed[key] = values.shape, values.tobytes()


def _put_rows(found: dict[str, Any], fixed: dict[str, Any], key: str, rows: np.ndarray) -> None:
    """An array of structs: its numbers of float64, at the places that they have in its memory, and the rest."""
    width = rows.dtype.itemsize // 8
    block = np.full(width, -1)
    for k, name in enumerate(rows.dtype.names or ()):
        dtype, offset = rows.dtype.fields[name][:2]  # pyright: ignore[reportOptionalSubscript]
        base, shape = dtype.subdtype or (dtype, ())
        if base == np.float64:
            block[offset // 8 : offset // 8 + int(np.prod(shape))] = k
    numbers = _finite(fixed, key, np.where(block >= 0, rows.view(np.float64).reshape(-1, width), 0.0).ravel())
    found[key] = numbers, np.tile(block + 1, len(rows.ravel()))
    for name in rows.dtype.names or ():
        if rows[name].dtype != np.float64 and name not in (*ANY, *ALL):
            fixed[f"{key}.{name}"] = rows.shape, rows[name].tobytes()


def _without_padding(rows: np.ndarray) -> np.ndarray:
    """A copy of an array of structs with zeros between the fields."""
    out = np.zeros_like(rows)
    for name in rows.dtype.names or ():
        out[name] = rows[name]
    return out


def _finite(fixed: dict[str, Any], key: str, values: np.ndarray) -> np.ndarray:
    """Numbers with zero in place of those that are not finite, which no parameter may change."""
    known = np.isfinite(values)
    if not known.all():
        fixed[f"{key}, not finite"] = values[~known].tobytes(), np.flatnonzero(~known).tobytes()
    return np.where(known, values, 0.0)
