"""Newton's method for equilibria: plain iterations, then shortest steps where those may have missed what is neutral."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lissom.model.model import Model
from lissom.statics.newton_kernel import last_stiffness, newton_in_kernel
from lissom.statics.newton_python import newton_in_python
from lissom.statics.newton_stages import ASTRAY, CONVERGED, NO_STEP, SINGULAR
from lissom.statics.verdict import surely_stable

_LEAST_LEFT = 2  # iterations by shortest steps, however many the plain ones took

End = tuple[
    np.ndarray, np.ndarray, int, int, bool
]  # q, forces of loops, iterations, how it ended, whether surely stable


def newton(
    model: Model, q: np.ndarray, force: np.ndarray, u: np.ndarray, t: float, factor: float, opened: np.ndarray,
    tolerance: float, limit: int, hold: Any,
) -> list[End]:  # fmt: skip
    """Where the iterations of a batch end; arguments as those of newton_in_kernel."""
    ends = []
    for end, row in zip(_plain(model, q, force, u, t, factor, opened, tolerance, limit, hold), u):
        at, push, count, why, stable = end
        if why in (SINGULAR, ASTRAY, NO_STEP) or (why == CONVERGED and factor == 1.0 and not stable):
            left = max(_LEAST_LEFT, limit - count)  # what is neutral may also have ended the iteration too early
            at, push, more, why = newton_in_python(model, at, push, row, t, factor, opened, tolerance, left, hold)
            end = at, push, count + more, why, False
        ends.append(end)
    return ends


def _plain(
    model: Model, q: np.ndarray, force: np.ndarray, u: np.ndarray, t: float, factor: float, *rest: Any
) -> Iterator[End]:
    """Where plain iterations end: all in one launch, or one after the other where forces call Python."""
    if not model.calls_python:
        yield from _judged(model, factor, *newton_in_kernel(model, q, force, u, t, factor, *rest)) if len(q) else ()
        return
    for row in zip(q, force, u):
        end = newton_in_python(model, *row, t, factor, *rest, shortest=False)
        yield from _judged(model, factor, *(np.array(x)[None] for x in end))


def _judged(
    model: Model, factor: float, q: np.ndarray, force: np.ndarray, iterations: np.ndarray, ended: np.ndarray
) -> Iterator[End]:
    """The ends of the last run, with whether those that have converged surely are stable under the full load."""
    stable = [False] * len(q)
    if factor == 1.0:
        stable = surely_stable(model, *last_stiffness(model, len(q))).tolist()
    return zip(q, force, iterations.tolist(), ended.tolist(), stable)
