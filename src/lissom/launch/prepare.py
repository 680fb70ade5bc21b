"""What must be known of a state before a launch: tables that only Python can fill."""

# Warp reads the annotations of kernels itself; they are no Python types.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import numpy as np

from lissom.model.model import Model
from lissom.sweep.scratch import ScratchStruct


def prepare(model: Model, scratch: ScratchStruct, host: dict[str, Any]) -> None:
    """Fill the tables of mapped nodes whose pose is a Python function, for the configurations in `host`; nothing for a
    model without such nodes."""
    if not model.maps.calls_python or "q" not in host:
        return
    maps = model.maps
    rows = {name: getattr(scratch.maps, name).numpy() for name in ("R", "p", "S", "S_q", "S_qq")}
    q = host["q"][: len(rows["R"])]
    for m, pose in maps.functions():
        first = int(maps.q_start[m])
        found = pose.derivatives(q[:, first : first + pose.n])
        here = slice(len(q))
        rows["R"][here, m], rows["p"][here, m] = found.g[:, :3, :3], found.g[:, :3, 3]
        for name, start, values in (
            ("S", maps.column_start, found.S),
            ("S_q", maps.pair_start, found.S_q),
            ("S_qq", maps.triple_start, found.S_qq),
        ):
            rows[name][here, start[m] : start[m + 1]] = values.reshape(len(q), -1, 6)
    if model.device != "cpu":
        for name, values in rows.items():
            getattr(scratch.maps, name).assign(np.ascontiguousarray(values))
