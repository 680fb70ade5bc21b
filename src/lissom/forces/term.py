"""What a term is: something that acts on a robot, stated once, by functions of the same signatures as all others.

Nodes need wrenches F against what acts on them, coordinates need forces τ. A term gives, inside kernels, any of

    add(t, s, i, q, gravity, load, acting)                       takes its wrenches from F                  (1)
    respond(t, s, i, gravity, load, acting, H)                   adds how F answers to the pose and twist of nodes to H
                                                                 and s.near (N, and what ties two nodes), (1) left in s
    force(t, s, i, q, v, tau)                                    adds its own force f(q, v) to τ            (2)
    stiffen(t, s, x, i, q, v, move, by_q, by_v, out)             out += by_q ∂f/∂q T(move) + by_v ∂f/∂v, in rows of x
    change(t, s, i, q, v, dq, dv, tau)                           τ += ∂f/∂q dq + ∂f/∂v dv
    energy(t, s, i, q)                                           whose gradient (2) is at rest [J]
    renew(t, s, i, q, v, a)                                      remembers a step taken to this state

`acting` is a sum of flags; a term whose flag is not in it is not called, one with no flag always.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from lissom.model.model import Model


class Term(NamedTuple):
    """A term: name, flag (LOADS, SPRINGS, INPUTS, or 0), whether a model's kernels hold it, and the functions above.

    `users` gives the functions of a model's user that it calls; `bind` makes the functions above from those. `tables`
    makes of a model what the term reads, whole numbers and others by row; they stand in t.terms at its place in the
    list of terms, which `bind` then takes first.
    """

    name: str
    flag: int
    is_in: Callable[[Model], bool] = lambda model: True
    add: Any = None
    respond: Any = None
    force: Any = None
    stiffen: Any = None
    change: Any = None
    energy: Any = None
    renew: Any = None
    users: Callable[[Model], tuple[Any, ...]] = lambda model: ()
    bind: Callable[..., dict[str, Any]] | None = None
    tables: Callable[[Model], tuple[np.ndarray, np.ndarray]] | None = None


def chosen(functions: tuple[Any, ...], either: Callable[[Any, Any, int], Any], nothing: Any) -> Any:
    """One function that calls the one of a number; `either` makes it from two, `nothing` stands for none."""
    return reduce(lambda other, pair: either(pair[1], other, pair[0]), reversed(list(enumerate(functions))), nothing)
