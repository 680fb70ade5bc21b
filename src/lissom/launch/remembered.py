"""What Python filled into tables for states of late, so that launches at the same state ask it once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, final

import numpy as np

from lissom.model.model import Model

_KEPT = 32  # tables of states

Tables = dict[str, np.ndarray]


@final
class Remembered:
    """Rows of tables of single states, by what they depend on."""

    def __init__(self) -> None:
        self._rows: OrderedDict[tuple[Any, ...], Tables] = OrderedDict()

    def fill(self, keys: list[tuple[Any, ...]], tables: Tables, names: Sequence[str], make: Callable[[], None]) -> None:
        """Fill tables by `make`, or those of one state by what is known under the first of some keys; what was made of
        one is then known under all of them."""
        if len(tables[names[0]]) != 1:
            make()
            return
        known = self._rows.get(keys[0])
        if known is not None:
            for name, row in known.items():
                tables[name][0] = row
            return
        make()
        row = {name: tables[name][0].copy() for name in names}
        for key in keys:
            self._rows[key] = row
            self._rows.move_to_end(key)
        while len(self._rows) > _KEPT:
            self._rows.popitem(last=False)


def remembered(model: Model) -> Remembered:
    """What this thread remembers of a model."""
    return model.cached(("tables of states", get_ident()), Remembered)
