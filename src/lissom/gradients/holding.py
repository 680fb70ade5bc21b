"""Where contacts that stick hold on at the start of motions, and the accelerations there."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from lissom.dynamics.contacts import anchored_copy, anchors_after, put_anchors
from lissom.errors import ModelError
from lissom.model.model import Model
from lissom.stepping.driver import accelerations


def forbid_anchors(model: Model) -> None:
    """Raise ModelError where contacts stick."""
    world = model.of_row(0, 1).surroundings
    if world.sticks:
        rule = "stick_stiffness must be 0 for steps from (q, v) alone"
        raise ModelError(f"contact {world.sticking[0]!r}: {rule}, since anchors remember")


def own_anchors(model: Model, count: int) -> np.ndarray:
    """Anchors that the models of so many motions came with, (count, n_pairs, 6); of no pair where nothing sticks."""
    if not model.of_row(0, 1).surroundings.sticks:
        return np.zeros((count, 0, 6))
    return np.array([one.surroundings.anchors for one in model.of_rows(count)])


def held_starts(model: Model, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Anchors of motions that begin at states (n, ...), as of own_anchors, accelerations, and forces of loops."""
    own = own_anchors(model, len(q))
    if not own.size:
        return own, *accelerations(model, 0.0, q, v, u)
    first, found, copies = anchors_after(model, own, q, v), [], {}
    with ExitStack() as lent:
        for i, one in enumerate(model.of_rows(len(q))):
            if id(one) not in copies:
                copies[id(one)] = lent.enter_context(anchored_copy(one, own[i]))
            copy = copies[id(one)]
            put_anchors(copy, first[i])
            found.append(accelerations(copy, 0.0, q[i : i + 1], v[i : i + 1], u[i : i + 1]))
    a, force = zip(*found)
    return first, np.concatenate(a), np.concatenate(force)
