"""Keeping a soft rod upright on a cart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from lissom.gym.robots import pendulum
from lissom.gym.task import Task, TaskStart, TaskState
from lissom.model.model import Model
from lissom.model.model_batch import ModelBatch
from lissom.robot.fields import Numbers


@final
@dataclass(frozen=True, eq=False)
class TaskBalance(Task):
    """Keep a soft rod upright that would fall over, by the force on the cart that it stands on.

    Episodes begin nearly straight, at rest. An action is worth how high the tip stands, over the length of the rod,
    less the square of the way of the cart over its most. They end where the tip is below 0.7 of the length, or the
    cart is at a stop.

    Seen are all coordinates and velocities: the cart in units of its most and of 1 m/s, the rod in 1/m and
    10/(m·s).

    Args:
        model: as it comes along: a cart, the first coordinate, and a rod of half a metre.
        most, least, steps, limit: as of Task. period: how long an action acts [s].
        bend: of starts at random, standard deviation [1/m].
    """

    model: Model | ModelBatch = field(default_factory=pendulum)
    most: Numbers = 10.0
    period: float = 0.02
    steps: int = 2
    limit: int = 250
    bend: float = 0.05

    def start(self, random: np.random.Generator) -> TaskStart:
        """Nearly straight."""
        q = np.zeros(self.model.nq)
        q[1:] = self.bend * random.normal(size=self.model.nq - 1)
        return TaskStart(q=q)

    def height(self, state: TaskState) -> np.ndarray:
        """Of the tip above the foot of the rod, over its length (n,)."""
        return state.place("rod")[:, 2] / 0.5

    def observe(self, state: TaskState) -> np.ndarray:
        """Everything."""
        q, v = state.q.copy(), state.v.copy()
        q[:, 0] /= self.configuration_limits[1][0]
        v[:, 1:] /= 10.0
        return np.concatenate([q, v], axis=1)

    def reward(self, state: TaskState) -> np.ndarray:
        """Upright, and in the middle."""
        return self.height(state) - (state.q[:, 0] / self.configuration_limits[1][0]) ** 2

    def terminated(self, state: TaskState) -> np.ndarray:
        """Where the rod has fallen over, or the cart is at a stop."""
        low, high = self.configuration_limits
        return (self.height(state) < 0.7) | (state.q[:, 0] <= low[0]) | (state.q[:, 0] >= high[0])

    def observation_limits(self) -> tuple[Any, Any]:
        """The stops of the cart, and more than is seen of the rod."""
        model = self.model
        most = np.concatenate([[1.0], np.full(model.nq - 1, 50.0), np.full(model.nv, 50.0)])
        return -most, most
