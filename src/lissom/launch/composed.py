"""Kernels of what acts on a model, or of the kinds of its nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import warp as wp

from lissom.forces.terms import Acting, acting_on, nothing_on
from lissom.model.model import Model

_FREE: set[Any] = set()  # factories whose kernels know nothing of forces


def free_of_forces(factory: Callable[[Acting], Any]) -> Callable[[Acting], Any]:
    """Marks a function that makes a kernel from the kinds of nodes alone, which robots share whatever acts on them."""
    _FREE.add(factory)
    return factory


def kernel_for(kernel: Any, model: Model) -> Any:
    """The kernel that a model needs: itself, or what a function makes of all that acts on the model.

    Such a function returns a kernel in a module of its own, which Warp compiles the first time a robot needs it and
    keeps on disk like any other; robots on which the same acts share it.
    """
    if isinstance(kernel, wp.Kernel):
        return kernel
    return _made(kernel, nothing_on(model) if kernel in _FREE else acting_on(model))


@cache
def _made(factory: Callable[[Acting], Any], acting: Acting) -> Any:
    return factory(acting)
