"""Branches as they are followed, many at once: what is found of each, also where it is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np

from lissom.errors import ConvergenceError
from lissom.robot import telling
from lissom.statics.branch_events import BranchEvent
from lissom.statics.static_path import Ahead, PathPoint, StaticPath, ahead_on_each

INTERRUPTED = "interrupted"

Found = TypeVar("Found")
Following = Generator[tuple[StaticPath, PathPoint, float], Ahead, Found]  # asks for the points ahead on a path


@final
@telling.in_one_line
@dataclass(frozen=True)
class Branch:
    """Equilibria in order along a branch, and what happens between them.

    Fields:
        q: configurations (n, nq). factor: load factors (n,).
        stable: whether no small motion grows (n,). unstable_count: number of motions that grow (n,).
        events: BranchEvents in order along the branch.
        ended: why there is no further point: "factor_range", "max_points", "interrupted", or what the error says that
        carries it.
    """

    q: np.ndarray
    factor: np.ndarray
    stable: np.ndarray
    unstable_count: np.ndarray
    events: tuple[BranchEvent, ...]
    ended: str


def branch_so_far(points: list[PathPoint], events: list[BranchEvent], ended: str) -> Branch:
    """What there is of a branch, and why no more."""
    count = np.array([len(p.growing) for p in points], dtype=int)
    q, factor = np.array([p.q for p in points]), np.array([p.factor for p in points])
    return Branch(q, factor, count == 0, count, tuple(events), ended)


def driven(runs: list[Following[Branch]], tell: Callable[[], None]) -> tuple[Branch, ...]:
    """The branches, all next points that are asked for at a time found together; `tell` is called now and then."""
    found: list[Any] = [None] * len(runs)
    try:
        failed = _drive(runs, found, tell)
    except KeyboardInterrupt as stop:
        for k, run in enumerate(runs):
            found[k] = found[k] or _stopped(run)
        if any(len(branch.factor) for branch in found):
            stop.partial = found[0] if len(runs) == 1 else tuple(found)  # type: ignore[attr-defined]
        raise
    for k in sorted(failed):
        if len(runs) == 1:
            raise failed[k]
        raise ConvergenceError(f"{failed[k]} (instance {k} of {len(runs)})", tuple(found)) from failed[k]
    return tuple(found)


def _stopped(run: Following[Branch]) -> Branch:
    """A branch as far as it was followed."""
    try:
        run.throw(KeyboardInterrupt())
    except StopIteration as end:
        return end.value
    except KeyboardInterrupt:  # it had not begun
        return branch_so_far([], [], INTERRUPTED)
    raise AssertionError  # a run asks for nothing more


def _drive(runs: list[Following[Branch]], found: list[Any], tell: Callable[[], None]) -> dict[int, ConvergenceError]:
    """Follow branches to their ends and put them into `found`; the errors of those that failed."""
    failed: dict[int, ConvergenceError] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(runs)))
    while answers:
        asked = {}
        for k, answer in answers.items():
            try:
                asked[k] = runs[k].send(answer)
            except StopIteration as end:
                found[k] = end.value
                if found[k].ended == INTERRUPTED:
                    raise KeyboardInterrupt from None
            except ConvergenceError as error:
                found[k], failed[k] = error.partial, error
        tell()
        paths, points, lengths = zip(*asked.values()) if asked else ((), (), ())
        answers = dict(zip(asked, ahead_on_each(paths, points, lengths))) if asked else {}
    return failed
