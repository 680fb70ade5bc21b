"""Newton's method for equilibria: plain iterations, then shortest steps where those may have missed what is neutral."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lissom.launch.workspace import Workspace
from lissom.model.model import Model
from lissom.statics.newton_kernel import Sought, last_stiffness, newton_in_kernel, results
from lissom.statics.newton_python import newton_in_python
from lissom.statics.newton_stages import ASTRAY, CONVERGED, NO_STEP, SINGULAR
from lissom.statics.verdict import surely_stable

_LEAST_LEFT = 2  # iterations by shortest steps, however many the plain ones took

End = tuple[
    np.ndarray, np.ndarray, int, int, bool
]  # q, forces of loops, iterations, how it ended, whether surely stable


def newton(model: Model, q: np.ndarray, force: np.ndarray, sought: Sought) -> list[End]:
    """Where the iterations of a batch end; arguments as those of newton_in_kernel."""
    ends = []
    for k, end in enumerate(_plain(model, q, force, sought)):
        at, push, count, why, stable = end
        if why in (SINGULAR, ASTRAY, NO_STEP) or (why == CONVERGED and sought.factor == 1.0 and not stable):
            left = max(_LEAST_LEFT, sought.limit - count)  # what is neutral may also have ended it too early
            w, why = newton_in_python(model, at, push, replace(sought.of(k), limit=left))
            at, push, more, _ = (x[0] for x in results(w))
            end = at, push, count + int(more), why, False
        ends.append(end)
    return ends


def _plain(model: Model, q: np.ndarray, force: np.ndarray, sought: Sought) -> Iterator[End]:
    """Where plain iterations end: all in one launch, or one after the other where forces call Python."""
    if not model.calls_python:
        yield from _judged(newton_in_kernel(model, q, force, sought), sought.factor) if len(q) else ()
        return
    for k in range(len(q)):
        yield from _judged(newton_in_python(model, q[k], force[k], sought.of(k), shortest=False)[0], sought.factor)


def _judged(w: Workspace, factor: float) -> Iterator[End]:
    """The ends of a run, with whether those that have converged surely are stable under the full load."""
    q, force, iterations, ended = results(w)
    stable = [False] * len(q)
    if factor == 1.0:
        stable = surely_stable(w.model, *last_stiffness(w)).tolist()
    return zip(q, force, iterations.tolist(), ended.tolist(), stable)
