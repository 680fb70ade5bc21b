"""Equilibria followed in parts of a load, of a gap that closes, or of what holds the robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def raised(here: Any, solve: Callable[[Any, float], Any], longest: float = 1.0) -> tuple[Any, float, str]:
    """Follow equilibria from part 0 to part 1 of something; the last one, how far it got, and what stopped it."""
    reached, step, remedy = 0.0, min(0.25, longest), ""
    while reached < 1.0:
        goal = min(1.0, reached + step)
        trial = solve(here, goal)
        trial.iterations += here.iterations
        if not trial.remedy:
            here, reached, step = trial, goal, min(longest, 1.5 * step)
        else:
            here.iterations, remedy = trial.iterations, trial.remedy
            step *= 0.5
            if step < 1e-3:
                break
    return here, reached, remedy
