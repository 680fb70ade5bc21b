"""Kernels of what acts on a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import warp as wp

from lissom.forces.acting import Acting, acting_on
from lissom.model.model import Model


def kernel_for(kernel: Any, model: Model) -> Any:
    """The kernel that a model needs: itself, or what a function makes of all that acts on the model.

    Such a function returns a kernel in a module of its own, which Warp compiles the first time a robot needs it and
    keeps on disk like any other; robots on which the same acts share it.
    """
    return kernel if isinstance(kernel, wp.Kernel) else _made(kernel, acting_on(model))


@cache
def _made(factory: Callable[[Acting], Any], acting: Acting) -> Any:
    return factory(acting)
