"""Where CVODE is to end a step: the root functions that it follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from lissom.dynamics.assembly import on_motion
from lissom.dynamics.contacts import ball_gaps
from lissom.integration.pace import Pace
from lissom.model.model import Model


@final
class StepEnds:
    """Root functions: the distance of each ball from what it may touch, since a step ends where one begins to touch;
    and one that falls below zero at the end of a step after which the order is to change.

    Args:
        ended: is told the end of every step.
    """

    def __init__(self, model: Model, pace: Pace, ended: Callable[[float], None]) -> None:
        self.model, self.pace, self.ended, self.balls = model, pace, ended, len(model.surroundings.ball_node)
        self.reached, self.end = -np.inf, np.inf
        self.terminal, self.direction = [True] * (self.balls + 1), [-1] * (self.balls + 1)

    def __call__(self, t: float, x: np.ndarray, out: np.ndarray) -> None:
        nq, nv = self.model.nq, self.model.nv
        if self.balls:
            out[:-1] = ball_gaps(self.model, on_motion(self.model, t, x[:nq], x[nq : nq + nv])[0])
        if t > self.reached:  # the end of a step, not a time asked for inside one
            is_start, self.reached = self.reached == -np.inf, t
            if not is_start:
                self.ended(t)
                self.end = t if self.pace.step(t, x[:nq]) else np.inf
        out[-1] = 1.0 if t < self.end else -1.0
