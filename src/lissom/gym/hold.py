"""Holding a ball with soft fingers while its table sinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from lissom.gym.robots import FINGERS, ball_start, gripper
from lissom.gym.task import Task, TaskStart, TaskState
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot.fields import Numbers


@final
@dataclass(frozen=True, eq=False)
class TaskHold(Task):
    """Take hold of a ball with three soft fingers before its table has sunk away, and keep it.

    Episodes begin with straight fingers and a ball on the table, a little away from the middle. The one
    action is the tension that closes the fingers. It is worth 1 less what the ball has fallen, in units of 0.03 m,
    and 0.1 of the tension over its most. Episodes end where the ball has fallen by 0.09 m.

    Seen are the place of the ball from where the middle of its starts is, in 0.01 m, its velocity in 0.1 m/s, the
    coordinates of the fingers over 10 and the tension, from −1 to 1.

    Args:
        model: as it comes along: three fingers, a ball and a table.
        most, least, steps, limit: as of Task. period: how long an action acts [s].
        aside: most way of the ball from the middle, along each axis [m].
    """

    model: Model | ModelBatch = field(default_factory=gripper)
    most: Numbers = 4.0
    period: float = 0.05
    steps: int = 25
    limit: int = 60
    aside: float = 0.004

    @cached_property
    def begin(self) -> tuple[np.ndarray, int]:
        """The start with the ball in the middle, and where its place stands in q."""
        return ball_start(self.model)

    def start(self, random: np.random.Generator) -> TaskStart:
        """With the ball somewhere near the middle."""
        q, at = self.begin[0].copy(), self.begin[1]
        q[at : at + 2] = self.aside * random.uniform(-1.0, 1.0, 2)
        return TaskStart(q=q)

    def fallen(self, state: TaskState) -> np.ndarray:
        """How far the ball has come down (n,) [m]."""
        q, at = self.begin
        return q[at + 2] - state.q[:, at + 2]

    def observe(self, state: TaskState) -> np.ndarray:
        """Ball, fingers and tension."""
        q, at = self.begin
        low, high = self.input_limits
        away = (state.q[:, at : at + 3] - q[at : at + 3]) / 0.01
        fingers = state.q[:, : at - 4] / 10.0
        tension = 2.0 * (state.u - low) / (high - low) - 1.0
        return np.concatenate([away, state.velocity("ball") / 0.1, fingers, tension], axis=1)

    def reward(self, state: TaskState) -> np.ndarray:
        """High, and with little tension."""
        return 1.0 - self.fallen(state) / 0.03 - 0.1 * state.u[:, 0] / self.input_limits[1][0]

    def terminated(self, state: TaskState) -> np.ndarray:
        """Where the ball is lost."""
        return self.fallen(state) > 0.09

    def told(self, state: TaskState) -> dict[str, np.ndarray]:
        """How far the ball has fallen [m], and whether it is held: less than by 0.04 m."""
        fallen = self.fallen(state)
        return {"fallen": fallen, "is_success": fallen < 0.04}

    def observation_limits(self) -> tuple[Any, Any]:
        """More than is seen; the tension is from −1 to 1."""
        most = np.append(np.full(6 + self.begin[1] - 4, 100.0), 1.0)
        return -most, most

    def drawn(self, state: TaskState, copy: int) -> dict[str, Any]:
        """Fingers and ball alone."""
        return {"links": ["palm", *FINGERS, "ball"], "obstacles": False, "view": (10.0, -75.0)}
