"""Buffers of the rows of loops that are shown to the host."""

# pyright: reportGeneralTypeIssues=false
# Structs of Warp are objects to pyright, not classes.

from __future__ import annotations

import numpy as np

from lissom.launch.buffers import Buffers
from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.systems.bordered import LoopRowsStruct, loop_rows, scale_array


def with_loops(w: Buffers, model: Model, batch: int, *, whole: bool = True) -> LoopRowsStruct:
    """Buffers of loop_rows, without a matrix for robots without loops, that the host sees."""
    return shown(w, loop_rows(model, batch, whole=whole))


def chosen_rows(w: Workspace, k: int = 0) -> np.ndarray:
    """Indices of the rows A that kernels of a workspace have found independent at instance k; rising."""
    return np.flatnonzero(w.host["slot"][k] >= 0)


def shown(w: Buffers, loops: LoopRowsStruct) -> LoopRowsStruct:
    """The same buffers, shown to the host."""
    w.own(loops.scale, [scale_array(model) for model in w.model.models])
    for name in ("force", "gap", "rate", "acceleration", "A", "A_q", "slot", "kept"):
        w.share(name, getattr(loops, name))
    return loops
