"""What a simulation must remember to go on bit for bit in another process.

That are the plain fields of the objects that take its steps, and the buffers of their kernels, in which Newton's matrix
is kept from step to step. It can be asked for between two turns of the loop of a method, behind the last point of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from lissom.dynamics.contacts import present_anchors, put_anchors
from lissom.integration.fused_runs import roomy_workspace
from lissom.integration.schemes import StepState
from lissom.integration.state import Memory, StateDerivative
from lissom.model.model import Model

LEG = 2000  # steps after which methods that cannot be remembered within begin anew, so that they can
_PLAIN = (bool, int, float, str, np.ndarray, np.generic, StepState, type(None))
_BUFFERS = 3  # arguments of the kernel of steps that it finds again: scratch, matrices, rows


def handed_out(f: StateDerivative, points: list[Any], parts: Mapping[str, Any], loop: Any) -> Iterator[Any]:
    """The points of one turn of a method's loop; behind the last of them, or behind None where there are none, its
    parts can be remembered, and where the loop stands."""
    yield from points[:-1]
    f.memory = partial(_remembered, f.model, parts, loop)
    if points or f.streams:
        yield points[-1] if points else None
    f.memory = None


def _remembered(model: Model, parts: Mapping[str, Any], loop: Any) -> Memory:
    return {
        "loop": loop,
        "fields": {name: _fields(part) for name, part in parts.items()},
        "buffers": dict(_buffers(parts)),
        "anchors": present_anchors(model) if model.surroundings.sticks else None,
    }


def recalled(f: StateDerivative, parts: Mapping[str, Any]) -> Any:
    """Put what is remembered back into parts that were made anew, and return where the loop stood."""
    memory, model = f.begun, f.model
    if memory is None:
        raise RuntimeError("nothing is remembered")
    for name, part in parts.items():
        vars(part).update(memory["fields"][name])
    if memory["anchors"] is not None:
        put_anchors(model, memory["anchors"])
    for name, arrays in memory["buffers"].items():
        part = parts[name]
        part.w = roomy_workspace(model, 1, *part.room)
        for buffer, array in zip(part.w.kept(_BUFFERS), arrays):
            buffer[...] = array
    return memory["loop"]


def _fields(part: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(part).items() if name != "streams" and _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _buffers(parts: Mapping[str, Any]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The buffers of steps in which a part finds what it left, by its name."""
    for name, part in parts.items():
        w = getattr(part, "w", None)
        if w is not None:
            yield name, [array.copy() for array in w.kept(_BUFFERS)]
