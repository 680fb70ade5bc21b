"""Families of classes that describe a robot: bases, joints, sections, shapes.

A class joins its family by being defined in a module of this folder. There is no list to keep: robot files, their
errors and the sweeps of the tests ask here what there is.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import TypeVar

Member = TypeVar("Member")
_FOLDER = __name__.rpartition(".")[0]


def members(family: type[Member]) -> tuple[type[Member], ...]:
    """The concrete classes of a family that this folder defines, in the order of their names."""
    for module in pkgutil.iter_modules(import_module(_FOLDER).__path__):
        import_module(f"{_FOLDER}.{module.name}")
    ours = {cls for cls in _below(family) if cls.__module__.startswith(f"{_FOLDER}.") and not inspect.isabstract(cls)}
    return tuple(sorted(ours, key=lambda cls: cls.__name__))


def _below(family: type[Member]) -> Iterator[type[Member]]:
    for cls in family.__subclasses__():
        yield cls
        yield from _below(cls)
