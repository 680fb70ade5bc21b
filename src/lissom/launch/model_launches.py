"""Launches of a batch of models: which instances share a model, and what it has in place of the first one."""

# Structs of Warp are objects to pyright, not classes.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from lissom.forces.terms import tables_with_terms
from lissom.launch.warp_private import struct_of
from lissom.model.model import Model
from lissom.model.tables import TablesStruct, altered, with_anchors
from lissom.passes.block_tables import band_columns, block_columns
from lissom.passes.column_tables import ColumnsStruct, column_tables

# a model, its number in a batch, its first instance and the one behind its last
Instances = tuple[Model, int, int, int]


def shares(model: Model, batch: int, parts: int) -> list[list[Instances]]:
    """Instances of a batch split into so many parts; of a batch of models each part is a list of runs that share one,
    and there are no more parts than such runs."""
    if not model.models:
        edges = np.linspace(0, batch, parts + 1).astype(int).tolist()
        return [[(model, 0, *ends)] for ends in pairwise(edges)]
    rows = model.of_rows(batch)
    starts = [k for k, one in enumerate(rows) if k == 0 or one is not rows[k - 1]]
    runs: list[Instances] = []
    pieces = -(-parts // len(starts))  # of each, where models are few
    for first, stop in pairwise([*starts, batch]):
        edges = np.linspace(first, stop, min(pieces, stop - first) + 1).astype(int).tolist()
        runs += [(rows[first], first * len(model.models) // batch, *ends) for ends in pairwise(edges)]
    edges = np.linspace(0, len(runs), min(parts, len(runs)) + 1).astype(int).tolist()
    return [runs[first:stop] for first, stop in pairwise(edges)]


def for_model(value: Any, model: Model, k: int, own: dict[int, list[Any]]) -> Any:
    """An argument of a kernel as a model, number k of a batch, needs it: its tables, and its own arrays in place of
    others."""
    if isinstance(value, wp.array):
        return own[id(value)][k] if id(value) in own else value
    struct = struct_of(value)
    if struct is TablesStruct:
        tables = tables_with_terms(model)
        anchor = value.surroundings.anchor
        return with_anchors(tables, own[id(anchor)][k]) if id(anchor) in own else tables
    if struct is ColumnsStruct:
        return {0: block_columns, -1: band_columns}.get(value.n_slots, column_tables)(model)
    parts = {} if struct is None else {name: getattr(value, name) for name in struct.vars}
    changed = {name: for_model(part, model, k, own) for name, part in parts.items()}
    changed = {name: part for name, part in changed.items() if part is not parts[name]}
    return altered(value, **changed) if changed else value


def in_turn(calls: list[Callable[[], None]]) -> Callable[[], None]:
    """Calls as one."""

    def run() -> None:
        for call in calls:
            call()

    return run
