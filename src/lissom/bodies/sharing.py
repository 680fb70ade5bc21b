"""One object for all descriptions that are equal, so that what it compiles is compiled once; results that are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

Made = TypeVar("Made")
_known: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()


def shared(make: Callable[..., Made], *parts: Any) -> Made:
    """What `make` makes of these parts; as long as somebody keeps it, the same one for parts that are equal."""
    key = (make, *map(_identity, parts))
    found = _known.get(key)
    return _known.setdefault(key, make(*parts)) if found is None else found


def kept(function: Callable[..., Any], count: int = 16) -> Callable[..., list[np.ndarray]]:
    """A function of arrays that returns several, as NumPy arrays, and those of the last few arguments at once."""
    known: OrderedDict[tuple[bytes, ...], list[np.ndarray]] = OrderedDict()

    def call(*arguments: np.ndarray) -> list[np.ndarray]:
        key = tuple(part.tobytes() for part in arguments)
        if key not in known:
            known[key] = [np.asarray(part) for part in function(*arguments)]
            if len(known) > count:
                known.popitem(last=False)
        return known[key]

    return call


def _identity(part: Any) -> Any:
    """What is equal for equal descriptions; functions are equal to themselves alone."""
    if is_dataclass(part) and not isinstance(part, type):
        return type(part), *(_identity(getattr(part, field.name)) for field in fields(part))
    if isinstance(part, list | tuple):
        return tuple(map(_identity, part))
    if isinstance(part, Mapping):
        return tuple((key, _identity(value)) for key, value in part.items())
    if isinstance(part, np.ndarray):
        return part.shape, part.tobytes()
    try:
        hash(part)
    except TypeError:
        return id(part)
    return part
