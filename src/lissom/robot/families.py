"""Families of classes that describe a robot: bases, joints, sections, shapes, and those of deformable bodies.

A class joins its family by being defined in a module of the folder where the family is. There is no list to keep: robot
files, their errors and the sweeps of the tests ask here what there is.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import TypeVar

Member = TypeVar("Member")


def members(family: type[Member]) -> tuple[type[Member], ...]:
    """The concrete classes of a family that its folder defines, in the order of their names."""
    folder = family.__module__.rpartition(".")[0]
    for module in pkgutil.iter_modules(import_module(folder).__path__):
        import_module(f"{folder}.{module.name}")
    ours = {cls for cls in _below(family) if cls.__module__.startswith(f"{folder}.") and not inspect.isabstract(cls)}
    return tuple(sorted(ours, key=lambda cls: cls.__name__))


def _below(family: type[Member]) -> Iterator[type[Member]]:
    for cls in family.__subclasses__():
        yield cls
        yield from _below(cls)
