"""What fields of a model hold, and how kernels read them.

A group of a model is a class whose fields state, by their annotations, what kernels see of them; model.tables makes the
group's struct on a device from that, so that a field is written once.
"""

# Warp's vectors and matrices are no Python types.
# pyright: reportInvalidTypeForm=false

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, final, get_type_hints

import numpy as np
import warp as wp

from lissom.lie.types import mat3, mat6, vec3, vec6

vec6i = wp.types.vector(length=6, dtype=wp.int32)
vec7i = wp.types.vector(length=7, dtype=wp.int32)
ROTATION, POSITION = np.s_[..., :3, :3], np.s_[..., :3, 3]  # of poses (..., 4, 4)


@final
@dataclass(frozen=True)
class Read:
    """How kernels read a field: its entries are of type `dtype` along so many `axes` (0: it is one number), under
    another name than the field's own or only a part of it, where these are given."""

    dtype: Any
    axes: int = 1
    name: str = ""
    part: Any = ...


Int = Annotated[int, Read(wp.int32, 0)]
Float = Annotated[float, Read(wp.float64, 0)]
Flag = Annotated[bool, Read(wp.int32, 0)]
Ints = Annotated[np.ndarray, Read(wp.int32)]
Flags = Annotated[np.ndarray, Read(wp.bool)]
IntRows = Annotated[np.ndarray, Read(wp.int32, 2)]
Ints6 = Annotated[np.ndarray, Read(vec6i)]
Ints7 = Annotated[np.ndarray, Read(vec7i)]
Floats = Annotated[np.ndarray, Read(wp.float64)]
FloatRows = Annotated[np.ndarray, Read(wp.float64, 2)]
Vectors3 = Annotated[np.ndarray, Read(vec3)]
Vectors3Rows = Annotated[np.ndarray, Read(vec3, 2)]
Vectors6 = Annotated[np.ndarray, Read(vec6)]
Vectors6Rows = Annotated[np.ndarray, Read(vec6, 2)]
Matrices3 = Annotated[np.ndarray, Read(mat3)]
Matrices6 = Annotated[np.ndarray, Read(mat6)]
Poses = Annotated[np.ndarray, Read(mat3, name="R", part=ROTATION), Read(vec3, name="p", part=POSITION)]
PosesRows = Annotated[np.ndarray, Read(mat3, 2, "R", ROTATION), Read(vec3, 2, "p", POSITION)]


def hints(group: type) -> dict[str, Any]:
    """Annotations of the fields of a group, then of its properties."""
    declared = get_type_hints(group, include_extras=True)
    found = {field.name: declared[field.name] for field in fields(group)}
    for name, value in vars(group).items():
        if isinstance(value, property):
            found[name] = get_type_hints(value.fget, include_extras=True)["return"]
    return found


@cache
def read_by_kernels(group: type) -> tuple[tuple[str, Read], ...]:
    """Each field or property of a group that kernels read, and how, in the order declared."""
    found = [(name, read) for name, hint in hints(group).items() for read in getattr(hint, "__metadata__", ())]
    return tuple((name, read) for name, read in found if isinstance(read, Read))
