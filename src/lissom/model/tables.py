"""The tables of a Model on a Warp device."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import lru_cache
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np
import warp as wp

from lissom.lie.types import by_reference
from lissom.model.groups import Nodes, Read, hints, read_by_kernels
from lissom.model.model import Model
from lissom.robot.joints import MotionKind

EXP = wp.constant(wp.int32(MotionKind.EXP.value))
SPHERICAL = wp.constant(wp.int32(MotionKind.SPHERICAL.value))
FREE = wp.constant(wp.int32(MotionKind.FREE.value))


@wp.struct
class TermRows:
    """Integers and numbers of one force term, row by row, whose meaning is up to the term; and for each row of a user's
    function the addresses of cells with the addresses of its native code: of its value, then of its derivatives."""

    index: wp.array2d(dtype=wp.int32)
    number: wp.array2d(dtype=wp.float64)
    cell: wp.array2d(dtype=wp.uint64)


def _struct(group: type, name: str, *, is_row: bool = False, **nested: Any) -> Any:
    """The Warp struct of the fields of a group that kernels read, with further structs as fields."""
    declared = {
        read.name or field: read.dtype if is_row or read.axes == 0 else wp.array(dtype=read.dtype, ndim=read.axes)
        for field, read in read_by_kernels(group)
    }
    body = {"__annotations__": declared | nested, "__module__": __name__, "__doc__": group.__doc__}
    return wp.struct(type(name, (), body))


def _groups() -> dict[str, type]:
    """The groups of Model that kernels read, except Nodes, which they read as rows."""
    found = {name: hint for name, hint in hints(Model).items() if isinstance(hint, type) and is_dataclass(hint)}
    return {name: group for name, group in found.items() if group is not Nodes and any(read_by_kernels(group))}


_GROUPS = _groups()
_STRUCTS = {name: _struct(group, f"{group.__name__}Table") for name, group in _GROUPS.items()}
NodeRow = _struct(Nodes, "NodeRow", is_row=True)
NODE_ROW = np.dtype(NodeRow.numpy_dtype())  # made once: NumPy parses text for it, which threads may disturb
TablesStruct = _struct(Model, "Tables", node=wp.array(dtype=NodeRow), terms=wp.array(dtype=TermRows), **_STRUCTS)
Tables = by_reference(TablesStruct)
_WRITTEN = "contacts.anchor"  # the only array that steps write; each model needs its own


def device_tables(model: Model) -> TablesStruct:
    """The model's tables on its device, made once. For the common Model of a batch they are those of the first
    model."""
    model = model.models[0] if model.models else model
    if "tables" not in model.cache:
        model.cache["tables"] = _make(model)
    return model.cache["tables"]


def device_array(model: Model, name: str, value: Any, dtype: Any) -> Any:
    """An array of a table on the device of a model. Models share arrays without entries; those of a batch share equal
    arrays."""
    if np.size(value) == 0 and dtype is not NodeRow:
        return _array_of_none(np.shape(value), dtype, model.device)
    store = model.cache.get("store")
    if store is None or name == _WRITTEN:
        return wp.array(value, dtype=dtype, device=model.device)
    rows = np.ascontiguousarray(value)
    key = name, rows.dtype.str, rows.shape, blake2b(rows.tobytes(), digest_size=16).digest()
    if key not in store:
        store[key] = wp.array(value, dtype=dtype, device=model.device)
    return store[key]


@lru_cache(maxsize=1024)
def _array_of_none(shape: tuple[int, ...], dtype: Any, device: str) -> Any:
    return wp.array(np.zeros(shape), dtype=dtype, device=device)


def write_tables(model: Model, changed: Model) -> bool:
    """Write the tables of another model of the same structure into those of a model, whose launches then read them.

    The model takes over the groups of tables on the host too. Its arrays on the device must be its own.

    Returns:
        False if a table has another shape, or a number that launches copy differs. Then nothing was written.
    """
    t, pairs, views = device_tables(model), [], model.cache.setdefault("views of tables", {})
    for name in (*_STRUCTS, "nodes"):
        old, new = getattr(model, name), getattr(changed, name)
        for field, read in read_by_kernels(type(new)) if old is not new else ():
            before, value = getattr(old, field), getattr(new, field)
            if before is value:
                continue
            if np.shape(before) != np.shape(value) or (read.axes == 0 and before != value and name != "nodes"):
                return False
            if np.size(value) and (read.axes > 0 or name == "nodes"):  # other numbers are equal
                pairs.append((name, field, read, value))
    for name, field, read, value in pairs:
        at, column = ("nodes", "") if name == "nodes" else (name, read.name or field)
        if (at, column) not in views:
            views[at, column] = (getattr(getattr(t, name), column) if column else t.node).numpy()
        if column:
            views[at, column][...] = _entries(value[read.part], read)
        else:
            views[at, column][read.name or field] = value[read.part]
    own = ("cache", "models", "device")
    model.__dict__.update({name: value for name, value in vars(changed).items() if name not in own})
    for key in ("motions", ("steady loads",), ("laws of time",)):
        model.cache.pop(key, None)
    for array, compute in model.cache.get("derived arrays", {}).values():
        array.numpy()[...] = compute(model)
    return True


def derived_array(model: Model, name: str, compute: Callable[[Model], np.ndarray]) -> Any:
    """An array on the device of numbers that are computed from tables of a model, made once. `write_tables` computes
    them again."""
    known = model.cache.setdefault("derived arrays", {})
    if name not in known:
        known[name] = device_array(model, name, compute(model), wp.float64), compute
    return known[name][0]


def with_anchors(tables: TablesStruct, anchor: Any) -> TablesStruct:
    """The same tables with other anchors of contacts, one row for each instance."""
    return altered(tables, contacts=altered(tables.contacts, anchor=anchor))


def altered(table: Any, **other: Any) -> Any:
    """A copy of a struct that shares its arrays, with the given ones replaced."""
    out = table._cls()
    for name in table._cls.vars:
        setattr(out, name, other.get(name, getattr(table, name)))
    return out


def _make(model: Model) -> TablesStruct:
    groups = {name: _filled(model, name, struct(), getattr(model, name)) for name, struct in _STRUCTS.items()}
    t = _filled(model, "", TablesStruct(), model)
    for name, table in groups.items():
        setattr(t, name, table)
    t.node = device_array(model, "node", _node_rows(model.nodes), NodeRow)
    return t


def _filled(model: Model, name: str, table: Any, group: Any) -> Any:
    """Fill a struct with the fields of a group that kernels read."""
    for field, read in read_by_kernels(type(group)):
        value = getattr(group, field)
        if read.axes > 0:
            value = _shared_array(model, f"{name}.{read.name or field}", value, read)
        setattr(table, read.name or field, value)
    return table


def _shared_array(model: Model, name: str, value: np.ndarray, read: Read) -> Any:
    """The array of a field on the device. Models of a batch that share the array of the host share this one too."""
    store = model.cache.get("store")
    if store is None or name == _WRITTEN:
        return device_array(model, name, _entries(value[read.part], read), read.dtype)
    key = name, id(value)
    if key not in store:
        store[key] = device_array(model, name, _entries(value[read.part], read), read.dtype), value
    return store[key][0]


def _entries(value: np.ndarray, read: Read) -> np.ndarray:
    """An array whose leading axes are those that kernels see; the axes of an entry follow."""
    entry = tuple(getattr(read.dtype, "_shape_", ()))
    lead = value.shape[: read.axes - 1]
    return value.reshape(*lead, prod(value.shape[read.axes - 1 :]) // prod(entry), *entry)


def _node_rows(nodes: Nodes) -> np.ndarray:
    """The fields of the nodes as one structured array."""
    rows: Any = np.zeros(len(nodes.parent), dtype=NODE_ROW)
    for field, read in read_by_kernels(Nodes):
        rows[read.name or field] = getattr(nodes, field)[read.part]
    return rows
